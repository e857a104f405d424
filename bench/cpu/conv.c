/* SPDX-License-Identifier: Apache-2.0 */
/* GF/s of the CPU's convolutions, layer by layer: best of many runs.
 *
 *   bench/cpu/conv [THREADS [SECONDS-PER-ROW [bf16]]]
 *
 * FLOPs count the padding, as oneDNN's own benchmark does, so a figure may pass the
 * peak. Run it on an idle machine; the best of many short runs forgives some
 * neighbours. */
#include <stdio.h>
#include <string.h>

#include "bench/cpu/best.h"

struct layer {
    const char *name;
    int count; /* in the network */
    int n, c, h, k, kernel, stride, pad, groups;
};

static const struct layer layers[] = {
    {"ResNet-20/28 stem", 1, 128, 1, 28, 16, 3, 1, 1, 1},
    {"ResNet-20/28 16->16", 6, 128, 16, 28, 16, 3, 1, 1, 1},
    {"ResNet-20/28 16->32 s2", 1, 128, 16, 28, 32, 3, 2, 1, 1},
    {"ResNet-20/28 32->32", 5, 128, 32, 14, 32, 3, 1, 1, 1},
    {"ResNet-20/28 32->64 s2", 1, 128, 32, 14, 64, 3, 2, 1, 1},
    {"ResNet-20/28 64->64", 5, 128, 64, 7, 64, 3, 1, 1, 1},
    {"ResNet-20 1x1 16->32 s2", 1, 128, 16, 28, 32, 1, 2, 0, 1},
    {"ResNet-20 1x1 32->64 s2", 1, 128, 32, 14, 64, 1, 2, 0, 1},
    {"CIFAR stem", 1, 128, 3, 32, 16, 3, 1, 1, 1},
    {"LeNet 1", 1, 128, 1, 28, 6, 5, 1, 2, 1},
    {"LeNet 2", 1, 128, 6, 14, 16, 5, 1, 0, 1},
    {"depthwise k3", 1, 8, 96, 56, 96, 3, 1, 1, 96},
    {"depthwise k3 s2", 1, 8, 96, 112, 96, 3, 2, 1, 96},
    {"depthwise k5", 1, 8, 240, 28, 240, 5, 1, 2, 240},
    {"depthwise k5 s2", 1, 8, 144, 56, 144, 5, 2, 2, 144},
    {"ResNet-50 1x1", 1, 8, 256, 56, 64, 1, 1, 0, 1},
    {"ResNet-18 64->64", 1, 32, 64, 32, 64, 3, 1, 1, 1},
};

int
main(int argc, char **argv)
{
    const struct et_device_table *table = open_module();
    struct et_device_handle *device;
    char why[256] = "the CPU module was not built";
    int threads = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 0;
    double budget = argc > 2 ? strtod(argv[2], NULL) : 0.3;
    enum et_dtype dtype = argc > 3 && strcmp(argv[3], "bf16") == 0 ? ET_BF16 : ET_F32;
    double total[3] = {0};
    if (!table || table->open(0, threads, &device, why, sizeof why) != ET_OK) {
        fprintf(stderr, "conv: %s\n", why);
        return 1;
    }
    printf("%-26s %8s | %18s | %18s | %18s\n", "layer", "MFLOP", "forward",
           "grad input", "grad weight");
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        const struct layer *v = &layers[i];
        struct et_conv2d_attr a = {
            .stride = {v->stride, v->stride},
            .pad = {v->pad, v->pad},
            .dilation = {1, 1},
            .groups = v->groups,
            .shape = {v->n, v->c, v->h, v->h},
        };
        struct et_desc d[3];
        int64_t p = (v->h + 2 * v->pad - v->kernel) / v->stride + 1;
        et_desc_init(&d[0], dtype, 4, a.shape, ET_CHANNELS_LAST);
        et_desc_init(&d[1], dtype, 4,
                     (int64_t[]){v->k, v->c / v->groups, v->kernel, v->kernel},
                     ET_CHANNELS_LAST);
        et_desc_init(&d[2], dtype, 4, (int64_t[]){v->n, v->k, p, p}, ET_CHANNELS_LAST);
        double flop =
            2.0 * (double)et_desc_count(&d[2]) * (double)(et_desc_count(&d[1]) / v->k);
        static const struct {
            enum et_op_id op;
            int first, second, out;
        } op[] = {
            {ET_OP_conv2d, 0, 1, 2},
            {ET_OP_conv2d_grad_input, 2, 1, 0},
            {ET_OP_conv2d_grad_weight, 0, 2, 1},
        };
        printf("%-26s %8.1f", v->name, flop * 1e-6);
        for (int j = 0; j < 3; j++) {
            struct et_desc in[2] = {d[op[j].first], d[op[j].second]};
            struct et_call call = {
                .op = op[j].op,
                .n_in = 2,
                .n_out = 1,
                .attr = &a,
                .attr_size = sizeof a,
                .in = in,
                .out = &d[op[j].out],
            };
            double seconds = best(table, device, &call, budget);
            printf(" | %6.0f GF/s %6.3f", flop / seconds * 1e-9, 1e3 * seconds);
            if (i < 6 && !(i == 0 && j == 1))
                total[j] += v->count * seconds;
            fflush(stdout);
        }
        printf(" ms\n");
    }
    printf("ResNet-20/28, batch 128, ms of all layers: forward %.1f, grad input %.1f, "
           "grad weight %.1f\n",
           1e3 * total[0], 1e3 * total[1], 1e3 * total[2]);
    table->close(device);
    return 0;
}
