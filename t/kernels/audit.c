/* SPDX-License-Identifier: Apache-2.0 */
/* No dense op of the models we train falls to a slow implementation of oneDNN.
 *
 * Its reference convolution is 100 to 4000 times slower than the others (ENGINE.md
 * section 1), its im2col path 3 to 10 times: an answer of either kind is a bug in the
 * layouts that the adapter asks for. Kernels are prepared, not run. */
#include <stdio.h>
#include <string.h>

#include "t/kernels/module.h"
#include "t/tap.h"

static const struct et_device_table *table;
static struct et_device_handle *device;

struct conv {
    const char *where;
    int n, c, h, k, kernel, stride, pad, dilation, groups;
    bool first; /* of the model: nobody asks for the gradient of its input */
};

static const struct conv convs[] = {
    {"ResNet-20 stem, Fashion-MNIST", 128, 1, 28, 16, 3, 1, 1, 1, 1, true},
    {"ResNet-20 stem, CIFAR", 128, 3, 32, 16, 3, 1, 1, 1, 1, true},
    {"ResNet-20 stage 1", 128, 16, 28, 16, 3, 1, 1, 1, 1, false},
    {"ResNet-20 stage 2", 128, 32, 14, 32, 3, 1, 1, 1, 1, false},
    {"ResNet-20 stage 3", 128, 64, 7, 64, 3, 1, 1, 1, 1, false},
    {"ResNet-20 to stage 2", 128, 16, 28, 32, 3, 2, 1, 1, 1, false},
    {"ResNet-20 to stage 3", 128, 32, 14, 64, 3, 2, 1, 1, 1, false},
    {"ResNet-20 shortcut", 128, 16, 28, 32, 1, 2, 0, 1, 1, false},
    {"ResNet-20, last uneven batch", 96, 16, 28, 16, 3, 1, 1, 1, 1, false},
    {"ResNet-18 stage 1", 128, 64, 32, 64, 3, 1, 1, 1, 1, false},
    {"ResNet-18 stage 4", 128, 512, 4, 512, 3, 1, 1, 1, 1, false},
    {"ResNet-50 stem", 8, 3, 224, 64, 7, 2, 3, 1, 1, true},
    {"ResNet-50 reduce", 8, 256, 56, 64, 1, 1, 0, 1, 1, false},
    {"ResNet-50 expand", 8, 64, 56, 256, 1, 1, 0, 1, 1, false},
    {"ResNet-50 stride 2", 8, 128, 56, 128, 3, 2, 1, 1, 1, false},
    {"ResNet-50 shortcut", 8, 1024, 14, 2048, 1, 2, 0, 1, 1, false},
    {"ResNeXt groups", 8, 128, 56, 128, 3, 1, 1, 1, 32, false},
    {"LeNet 1", 128, 1, 28, 6, 5, 1, 2, 1, 1, true},
    {"LeNet 2", 128, 6, 14, 16, 5, 1, 0, 1, 1, false},
    {"EfficientNet stem", 8, 3, 224, 32, 3, 2, 1, 1, 1, true},
    {"EfficientNet depthwise k3", 8, 32, 112, 32, 3, 1, 1, 1, 32, false},
    {"EfficientNet depthwise k3 s2", 8, 96, 112, 96, 3, 2, 1, 1, 96, false},
    {"EfficientNet depthwise k5", 8, 240, 28, 240, 5, 1, 2, 1, 240, false},
    {"EfficientNet depthwise k5 s2", 8, 144, 56, 144, 5, 2, 2, 1, 144, false},
    {"EfficientNet squeeze", 8, 96, 1, 4, 1, 1, 0, 1, 1, false},
    {"EfficientNet excite", 8, 4, 1, 96, 1, 1, 0, 1, 1, false},
    {"BlurPool", 8, 64, 56, 64, 3, 2, 1, 1, 64, false},
    {"U-Net 1", 2, 3, 128, 64, 3, 1, 1, 1, 1, true},
    {"U-Net 2", 2, 128, 64, 128, 3, 1, 1, 1, 1, false},
    {"U-Net head", 2, 64, 128, 1, 1, 1, 0, 1, 1, false},
    {"dilated", 8, 64, 28, 64, 3, 1, 2, 2, 1, false},
    {"ViT patches", 8, 3, 224, 192, 16, 16, 0, 1, 1, true},
};

struct product {
    const char *where;
    int b0, b1, m, k, n;
    bool batched_b, trans_a, trans_b, biased;
};

static const struct product products[] = {
    {"MLP", 1, 1, 128, 784, 256, false, false, true, true},
    {"MLP head", 1, 1, 128, 128, 10, false, false, true, true},
    {"MLP weight gradient", 1, 1, 256, 128, 784, false, true, false, false},
    {"ResNet-20 head", 1, 1, 128, 64, 10, false, false, true, true},
    {"GPT qkv", 8, 1, 1024, 768, 2304, false, false, true, true},
    {"GPT mlp", 8, 1, 1024, 768, 3072, false, false, true, true},
    {"GPT mlp input gradient", 8, 1, 1024, 3072, 768, false, false, false, false},
    {"GPT mlp weight gradient", 1, 1, 3072, 8192, 768, false, true, false, false},
    {"GPT head", 8, 1, 1024, 768, 50257, false, false, true, false},
    {"attention scores", 8, 12, 1024, 64, 1024, true, false, true, false},
    {"attention values", 8, 12, 1024, 1024, 64, true, false, false, false},
    {"attention transposed", 8, 12, 1024, 1024, 64, true, true, false, false},
    {"small GPT", 4, 1, 64, 128, 384, false, false, true, true},
};

/* Whether the processor has AVX-512, and oneDNN is not told to forget it. */
static bool
is_wide(void)
{
#ifdef __x86_64__
    return __builtin_cpu_supports("avx512f") && !getenv("DNNL_MAX_CPU_ISA");
#else
    return false;
#endif
}

static void
is_fast(const struct et_call *call, const char *name, const char *where)
{
    struct et_kernel *k;
    size_t bytes;
    char text[512] = "";
    bool fast = table->prepare(device, call, &k, &bytes, text, sizeof text) == ET_OK;
    if (fast) {
        snprintf(text, sizeof text, "%s", table->describe(k));
        table->release(k);
        fast = !strstr(text, "ref");
    }
    /* Convolution by im2col; narrower processors have nothing better for some. */
    if (is_wide())
        fast = fast && !strstr(text, "x64:gemm");
    ok(fast, "%s, %s: %s", where, name, text);
}

static void
audit_conv(const struct conv *v)
{
    struct et_conv2d_attr a = {
        .stride = {v->stride, v->stride},
        .pad = {v->pad, v->pad},
        .dilation = {v->dilation, v->dilation},
        .groups = v->groups,
        .shape = {v->n, v->c, v->h, v->h},
    };
    struct et_desc x, w, y, b;
    int64_t p = (v->h + 2 * v->pad - (v->kernel - 1) * v->dilation - 1) / v->stride + 1;
    et_desc_init(&x, ET_F32, 4, (int64_t[]){v->n, v->c, v->h, v->h}, ET_CHANNELS_LAST);
    et_desc_init(&w, ET_F32, 4,
                 (int64_t[]){v->k, v->c / v->groups, v->kernel, v->kernel},
                 ET_CHANNELS_LAST);
    et_desc_init(&y, ET_F32, 4, (int64_t[]){v->n, v->k, p, p}, ET_CHANNELS_LAST);
    et_desc_init(&b, ET_F32, 1, (int64_t[]){v->k}, ET_ROW_MAJOR);
    struct et_desc forward[] = {x, w, b}, grad_input[] = {y, w}, grad_weight[] = {x, y};
    struct et_call call = {.attr = &a, .attr_size = sizeof a, .n_out = 1};

    call.op = ET_OP_conv2d;
    call.n_in = 3;
    call.in = forward;
    call.out = &y;
    is_fast(&call, "forward", v->where);
    call.op = ET_OP_conv2d_grad_weight;
    call.n_in = 2;
    call.in = grad_weight;
    call.out = &w;
    is_fast(&call, "weight gradient", v->where);
    call.op = ET_OP_conv2d_grad_input;
    call.in = grad_input;
    call.out = &x;
    if (!v->first)
        is_fast(&call, "input gradient", v->where);
}

static void
audit_product(const struct product *v)
{
    struct et_matmul_attr a = {.trans_a = v->trans_a, .trans_b = v->trans_b};
    struct et_desc in[3], out;
    int64_t sa[] = {v->b0, v->b1, v->trans_a ? v->k : v->m, v->trans_a ? v->m : v->k};
    int64_t sb[] = {v->b0, v->b1, v->trans_b ? v->n : v->k, v->trans_b ? v->k : v->n};
    int skipped = v->batched_b ? 0 : 2;
    et_desc_init(&in[0], ET_F32, 4, sa, ET_ROW_MAJOR);
    et_desc_init(&in[1], ET_F32, 4 - skipped, sb + skipped, ET_ROW_MAJOR);
    et_desc_init(&in[2], ET_F32, 1, (int64_t[]){v->n}, ET_ROW_MAJOR);
    et_desc_init(&out, ET_F32, 4, (int64_t[]){v->b0, v->b1, v->m, v->n}, ET_ROW_MAJOR);
    struct et_call call = {
        .op = ET_OP_matmul,
        .n_in = v->biased ? 3 : 2,
        .n_out = 1,
        .attr = &a,
        .attr_size = sizeof a,
        .in = in,
        .out = &out,
    };
    is_fast(&call, "product", v->where);
}

/* Transposed convolution as U-Net uses it: twice the size. */
static void
audit_transposed(void)
{
    struct et_conv2d_attr a = {
        .stride = {2, 2},
        .dilation = {1, 1},
        .groups = 1,
        .shape = {2, 64, 128, 128},
    };
    struct et_desc in[3], out;
    et_desc_init(&in[0], ET_F32, 4, (int64_t[]){2, 128, 64, 64}, ET_CHANNELS_LAST);
    et_desc_init(&in[1], ET_F32, 4, (int64_t[]){128, 64, 2, 2}, ET_CHANNELS_LAST);
    et_desc_init(&in[2], ET_F32, 1, (int64_t[]){64}, ET_ROW_MAJOR);
    et_desc_init(&out, ET_F32, 4, a.shape, ET_CHANNELS_LAST);
    struct et_call call = {
        .op = ET_OP_conv2d_grad_input,
        .n_in = 3,
        .n_out = 1,
        .attr = &a,
        .attr_size = sizeof a,
        .in = in,
        .out = &out,
    };
    is_fast(&call, "transposed convolution", "U-Net up");
}

int
main(void)
{
    table = open_module();
    if (!table)
        skip_all("the CPU module was not built");
    char why[256] = "";
    if (table->open(0, 0, &device, why, sizeof why) != ET_OK)
        bail("%s", why);
    for (size_t i = 0; i < sizeof convs / sizeof convs[0]; i++)
        audit_conv(&convs[i]);
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++)
        audit_product(&products[i]);
    audit_transposed();
    table->close(device);
    return done();
}
