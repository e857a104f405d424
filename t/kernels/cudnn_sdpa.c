/* SPDX-License-Identifier: Apache-2.0 */
/* Attention's graphs have engines in cuDNN: the part of t/kernels/cudnn_plans about
 * them. These engines are compiled (about 2 s each here), for which cuDNN wants a
 * driver. */
#include <stdio.h>
#include <stdlib.h>
#include <dlfcn.h>

#include "kernels/cuda/sdpa_graph.h"
#include "t/kernels/cudnn_sdpa.h"
#include "t/tap.h"

struct attention {
    const char *what;
    enum et_dtype dtype;
    int64_t B, H, T, S, D;
    bool causal, packed, deterministic;
    bool biased; /* f32, one row per head, as ALiBi's */
};

static const struct attention attentions[] = {
    {"GPT-2, rows packed", ET_BF16, 8, 12, 1024, 1024, 64, true, true, false, false},
    {"GPT-2, deterministic", ET_BF16, 8, 12, 1024, 1024, 64, true, true, true, false},
    {"GPT-2 with ALiBi", ET_BF16, 8, 12, 256, 256, 64, true, true, false, true},
    {"ViT, f16", ET_F16, 8, 12, 197, 197, 64, false, true, false, false},
    {"128 elements, longer keys", ET_BF16, 2, 8, 65, 500, 128, false, false, false,
     false},
    {"256 elements", ET_BF16, 2, 8, 512, 512, 256, true, false, false, false},
    {"8 elements", ET_BF16, 2, 8, 65, 65, 8, true, false, false, false},
};

static struct etk_sdpa
sdpa_of(const struct attention *v, bool grad)
{
    struct etk_sdpa a = {
        .dtype = v->dtype,
        .bias = v->biased ? ET_F32 : ET_NONE,
        .grad = grad,
        .causal = v->causal,
        .B = v->B,
        .H = v->H,
        .T = v->T,
        .S = v->S,
        .D = v->D,
        .scale = 0.125f,
        .bias_stride = {0, v->biased ? v->S : 0, 0, v->biased ? 1 : 0},
        .lse_stride = {v->H * v->T, v->T, 1},
    };
    for (int i = 0; i < ETK_SDPA_HEADS; i++) {
        bool keys =
            i == ETK_SDPA_K || i == ETK_SDPA_V || i == ETK_SDPA_DK || i == ETK_SDPA_DV;
        /* Results, and their gradient, are rows of heads beside each other. */
        int64_t width =
            v->H * v->D * (v->packed && i != ETK_SDPA_O && i != ETK_SDPA_DO ? 3 : 1);
        a.heads[i] = (struct etk_heads){
            .b = (keys ? v->S : v->T) * width, .h = v->D, .row = width, .step = 1};
    }
    return a;
}

/* The stand-in for a driver is beside the program. */
static bool
load_driver(void)
{
    const char *folder = getenv("ET_BUILDDIR");
    char path[512];
    snprintf(path, sizeof path, "%s/t/kernels/described/libcuda.so.1",
             folder ? folder : ".");
    return dlopen(path, RTLD_NOW | RTLD_GLOBAL) != NULL;
}

void
test_attention(struct et_device_handle *d)
{
    if (!load_driver())
        bail("no stand-in for a driver: %s", dlerror());
    for (size_t i = 0; i < sizeof attentions / sizeof attentions[0]; i++)
        for (int grad = 0; grad < 2; grad++) {
            const struct attention *v = &attentions[i];
            struct etk_sdpa a = sdpa_of(v, grad);
            struct etk_dnn_graph g = {0};
            struct etk_dnn_limits limits = {.workspace = (size_t)4 << 30};
            struct etk_dnn_plan *plan = NULL;
            char why[256] = "";
            size_t ws = 0;
            d->deterministic = v->deterministic;
            etk_sdpa_graph(&g, &a, v->deterministic);
            et_status status =
                etk_dnn_plan(d, &g, &limits, &plan, &ws, why, sizeof why);
            d->deterministic = false;
            ok(status == ET_OK, "attention, %s, %s: %s, workspace %zu", v->what,
               grad ? "backward" : "forward",
               status == ET_OK ? etk_dnn_plan_name(plan) : why, ws);
            etk_dnn_plan_free(plan);
        }
}
