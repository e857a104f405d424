/* SPDX-License-Identifier: Apache-2.0 */
/* What small networks compute, operation by operation, with the shape and the
 * attributes of each: a layer that is missing, or another stride, padding or share,
 * shows. Nothing is computed. (Networks that other libraries have as well are compared
 * with these in t/unit/hubs.c.) */
#include "core/graph/graph_impl.h"
#include "core/models/outline.h"
#include "etude/attr.h"
#include "etude/model.h"
#include "etude/nn.h"
#include "t/tap.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct et_ctx *cx;
static struct et_device *dev;

static void
must(et_status status)
{
    if (status != ET_OK)
        bail("%s", et_error_get(cx)->message);
}

static char listed[16384];
static size_t used;

static void put(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void
put(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    used += (size_t)vsnprintf(listed + used, sizeof listed - used, fmt, args);
    va_end(args);
    if (used >= sizeof listed)
        bail("more operations than there is room for");
}

/* Adds a node as "conv2d 8x4x4 s1x1 p1x1 k3;", with what tells networks apart. */
static void
put_node(const struct et_node *n)
{
    const struct et_desc *y = &n->out[0].desc;
    if (n->op->flags & ET_OPF_VIEW)
        return;
    put("%s%s", n->op->name, y->ndim > 1 ? " " : "");
    for (int i = 1; i < y->ndim; i++)
        put("%s%lld", i > 1 ? "x" : "", (long long)y->shape[i]);
    if (n->op->id == ET_OP_conv2d || n->op->id == ET_OP_conv2d_grad_input) {
        const struct et_conv2d_attr *o = n->attr;
        put(" s%dx%d p%dx%d", o->stride[0], o->stride[1], o->pad[0], o->pad[1]);
        put(" k%lld", (long long)n->in[1]->desc.shape[3]);
    } else if (n->op->id == ET_OP_max_pool2d) {
        const struct et_pool2d_attr *o = n->attr;
        put(" k%d s%d p%d", o->kernel[0], o->stride[0], o->pad[0]);
    } else if (n->op->id == ET_OP_dropout) {
        put(" %g", ((const struct et_dropout_attr *)n->attr)->p);
    }
    put("; ");
}

/* Lists the operations of MODEL on two images of FACTS in training. */
static void
list(const char *model, const struct et_model_facts *facts, const char *const *set)
{
    const struct et_model_class *type = et_model_class_find(model);
    const int64_t images[] = {2, facts->channels, facts->height, facts->width},
                  numbers[] = {2};
    struct et_model *m;
    struct et_tensor *x, *rng;
    struct eti_outline outline;
    void *options;
    must(et_options_new(cx, &type->info, set, &options));
    must(et_model_new(cx, type, options, facts, &m));
    must(eti_model_outline(cx, m, dev, &outline)); /* binds parameters of zeros */
    must(et_tensor_new(cx, dev, ET_F32, 4, images, ET_CHANNELS_LAST, NULL, &x));
    must(et_tensor_new(cx, dev, ET_I64, 1, numbers, ET_ROW_MAJOR, NULL, &rng));
    struct et_forward f = {.training = true, .rng = rng};
    must(et_graph_new(cx, dev, &f.g));
    (void)et_model_forward(m, &f, x);
    must(et_graph_status(f.g));
    used = 0;
    for (int i = 0; i < f.g->n_nodes; i++)
        put_node(f.g->node[i]);
    et_graph_free(&f.g);
    eti_outline_release(&outline);
    et_tensor_free(&x);
    et_tensor_free(&rng);
    et_model_free(&m);
    et_options_free(&type->info, &options);
}

static const struct {
    const char *model, *set[7];
    struct et_model_facts facts;
    const char *want;
} rows[] = {
    {"unet",
     {"width", "3", "depth", "2", NULL},
     {.channels = 2, .height = 8, .width = 12, .num_classes = 5},
     "conv2d 3x8x12 s1x1 p1x1 k3; batch_norm 3x8x12; mul_scalar; "
     "mul_scalar; add; mul_scalar; mul_scalar; add; relu 3x8x12; "
     "conv2d 3x8x12 s1x1 p1x1 k3; batch_norm 3x8x12; mul_scalar; "
     "mul_scalar; add; mul_scalar; mul_scalar; add; relu 3x8x12; "
     "max_pool2d 3x4x6 k2 s2 p0; conv2d 6x4x6 s1x1 p1x1 k3; "
     "batch_norm 6x4x6; mul_scalar; mul_scalar; add; mul_scalar; "
     "mul_scalar; add; relu 6x4x6; conv2d 6x4x6 s1x1 p1x1 k3; "
     "batch_norm 6x4x6; mul_scalar; mul_scalar; add; mul_scalar; "
     "mul_scalar; add; relu 6x4x6; max_pool2d 6x2x3 k2 s2 p0; "
     "conv2d 12x2x3 s1x1 p1x1 k3; batch_norm 12x2x3; mul_scalar; "
     "mul_scalar; add; mul_scalar; mul_scalar; add; relu 12x2x3; "
     "conv2d 12x2x3 s1x1 p1x1 k3; batch_norm 12x2x3; mul_scalar; "
     "mul_scalar; add; mul_scalar; mul_scalar; add; relu 12x2x3; "
     "conv2d_grad_input 6x4x6 s2x2 p0x0 k2; concat 12x4x6; "
     "conv2d 6x4x6 s1x1 p1x1 k3; batch_norm 6x4x6; mul_scalar; mul_scalar; "
     "add; mul_scalar; mul_scalar; add; relu 6x4x6; "
     "conv2d 6x4x6 s1x1 p1x1 k3; batch_norm 6x4x6; mul_scalar; mul_scalar; "
     "add; mul_scalar; mul_scalar; add; relu 6x4x6; "
     "conv2d_grad_input 3x8x12 s2x2 p0x0 k2; concat 6x8x12; "
     "conv2d 3x8x12 s1x1 p1x1 k3; batch_norm 3x8x12; mul_scalar; "
     "mul_scalar; add; mul_scalar; mul_scalar; add; relu 3x8x12; "
     "conv2d 3x8x12 s1x1 p1x1 k3; batch_norm 3x8x12; mul_scalar; "
     "mul_scalar; add; mul_scalar; mul_scalar; add; relu 3x8x12; "
     "conv2d 5x8x12 s1x1 p0x0 k1; "},
    {"resnet9",
     {NULL},
     {.channels = 3, .height = 32, .width = 48, .num_classes = 7},
     "conv2d 64x32x48 s1x1 p1x1 k3; batch_norm 64x32x48; mul_scalar; "
     "mul_scalar; add; mul_scalar; mul_scalar; add; relu 64x32x48; "
     "conv2d 128x32x48 s1x1 p1x1 k3; batch_norm 128x32x48; mul_scalar; "
     "mul_scalar; add; mul_scalar; mul_scalar; add; relu 128x32x48; "
     "max_pool2d 128x16x24 k2 s2 p0; conv2d 128x16x24 s1x1 p1x1 k3; "
     "batch_norm 128x16x24; mul_scalar; mul_scalar; add; mul_scalar; "
     "mul_scalar; add; relu 128x16x24; conv2d 128x16x24 s1x1 p1x1 k3; "
     "batch_norm 128x16x24; mul_scalar; mul_scalar; add; mul_scalar; "
     "mul_scalar; add; add 128x16x24; relu 128x16x24; "
     "conv2d 256x16x24 s1x1 p1x1 k3; batch_norm 256x16x24; mul_scalar; "
     "mul_scalar; add; mul_scalar; mul_scalar; add; relu 256x16x24; "
     "max_pool2d 256x8x12 k2 s2 p0; conv2d 256x8x12 s1x1 p1x1 k3; "
     "batch_norm 256x8x12; mul_scalar; mul_scalar; add; mul_scalar; "
     "mul_scalar; add; relu 256x8x12; max_pool2d 256x4x6 k2 s2 p0; "
     "conv2d 256x4x6 s1x1 p1x1 k3; batch_norm 256x4x6; mul_scalar; "
     "mul_scalar; add; mul_scalar; mul_scalar; add; relu 256x4x6; "
     "conv2d 256x4x6 s1x1 p1x1 k3; batch_norm 256x4x6; mul_scalar; "
     "mul_scalar; add; mul_scalar; mul_scalar; add; add 256x4x6; "
     "relu 256x4x6; adaptive_avg_pool2d 256x1x1; matmul 7; "},
    {"resnet8",
     {NULL},
     {.channels = 3, .height = 16, .width = 24, .num_classes = 7},
     "conv2d 16x16x24 s1x1 p1x1 k3; batch_norm 16x16x24; mul_scalar; "
     "mul_scalar; add; mul_scalar; mul_scalar; add; relu 16x16x24; "
     "conv2d 16x16x24 s1x1 p1x1 k3; batch_norm 16x16x24; mul_scalar; "
     "mul_scalar; add; mul_scalar; mul_scalar; add; relu 16x16x24; "
     "conv2d 16x16x24 s1x1 p1x1 k3; batch_norm 16x16x24; mul_scalar; "
     "mul_scalar; add; mul_scalar; mul_scalar; add; add 16x16x24; "
     "relu 16x16x24; conv2d 32x8x12 s2x2 p1x1 k3; batch_norm 32x8x12; "
     "mul_scalar; mul_scalar; add; mul_scalar; mul_scalar; add; "
     "relu 32x8x12; conv2d 32x8x12 s1x1 p1x1 k3; batch_norm 32x8x12; "
     "mul_scalar; mul_scalar; add; mul_scalar; mul_scalar; add; "
     "conv2d 32x8x12 s2x2 p0x0 k1; batch_norm 32x8x12; mul_scalar; "
     "mul_scalar; add; mul_scalar; mul_scalar; add; add 32x8x12; "
     "relu 32x8x12; conv2d 64x4x6 s2x2 p1x1 k3; batch_norm 64x4x6; "
     "mul_scalar; mul_scalar; add; mul_scalar; mul_scalar; add; "
     "relu 64x4x6; conv2d 64x4x6 s1x1 p1x1 k3; batch_norm 64x4x6; "
     "mul_scalar; mul_scalar; add; mul_scalar; mul_scalar; add; "
     "conv2d 64x4x6 s2x2 p0x0 k1; batch_norm 64x4x6; mul_scalar; "
     "mul_scalar; add; mul_scalar; mul_scalar; add; add 64x4x6; "
     "relu 64x4x6; adaptive_avg_pool2d 64x1x1; matmul 7; "},
    {"lenet",
     {NULL},
     {.channels = 1, .height = 28, .width = 28, .num_classes = 7},
     "conv2d 6x28x28 s1x1 p2x2 k5; relu 6x28x28; "
     "max_pool2d 6x14x14 k2 s2 p0; conv2d 16x10x10 s1x1 p0x0 k5; "
     "relu 16x10x10; max_pool2d 16x5x5 k2 s2 p0; copy 16x5x5; matmul 120; "
     "relu 120; matmul 84; relu 84; matmul 7; "},
    {"mnist_classifier",
     {NULL},
     {.channels = 1, .height = 28, .width = 28, .num_classes = 7},
     "conv2d 16x26x26 s1x1 p0x0 k3; relu 16x26x26; "
     "conv2d 32x24x24 s1x1 p0x0 k3; batch_norm 32x24x24; mul_scalar; "
     "mul_scalar; add; mul_scalar; mul_scalar; add; relu 32x24x24; "
     "adaptive_avg_pool2d 32x4x4; copy 32x4x4; matmul 32; relu 32; "
     "matmul 7; "},
    {"mlp",
     {"hidden", "5", "layers", "3", NULL},
     {.channels = 2, .height = 3, .width = 4, .num_classes = 7},
     "copy 2x3x4; matmul 5; relu 5; matmul 5; relu 5; matmul 5; relu 5; "
     "matmul 7; "},
};

int
main(void)
{
    must(et_ctx_new(&cx));
    must(et_device_open(cx, "ref", 0, 1, &dev));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        list(rows[i].model, &rows[i].facts, rows[i].set);
        is_str(listed, rows[i].want, "%s computes the operations of its definition",
               rows[i].model);
    }
    et_device_close(&dev);
    et_ctx_free(&cx);
    return done();
}
