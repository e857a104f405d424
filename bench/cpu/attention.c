/* SPDX-License-Identifier: Apache-2.0 */
/* GF/s of the CPU's attention: best of many runs.
 *
 *   bench/cpu/attention [THREADS [SECONDS-PER-ROW]]
 *
 * Queries, keys and values are views of one packed array, as models make them. FLOPs
 * are those of the products: two forward, five in the gradient, half of them where
 * causal. */
#include <stdio.h>

#include "bench/cpu/best.h"

struct shape {
    const char *name;
    int b, h, t, d;
    bool causal;
};

static const struct shape shapes[] = {
    {"byte GPT", 32, 4, 128, 32, true},     {"GPT-2", 2, 12, 512, 64, true},
    {"GPT-2, long", 1, 12, 1024, 64, true}, {"ViT-S", 8, 6, 197, 64, false},
    {"wide heads", 2, 8, 256, 128, false},
};

int
main(int argc, char **argv)
{
    const struct et_device_table *table = open_module();
    struct et_device_handle *device;
    char why[256] = "the CPU module was not built";
    int threads = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 0;
    double budget = argc > 2 ? strtod(argv[2], NULL) : 0.3;
    if (!table || table->open(0, threads, &device, why, sizeof why) != ET_OK) {
        fprintf(stderr, "attention: %s\n", why);
        return 1;
    }
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const struct shape *v = &shapes[i];
        struct et_sdpa_attr attr = {.scale = 0.1, .causal = v->causal};
        int64_t n[4] = {v->b, v->h, v->t, v->d};
        struct et_desc out[3], packed, lse;
        et_desc_init(&out[0], ET_F32, 4, n, ET_ROW_MAJOR);
        out[1] = out[2] = packed = out[0];
        packed.stride[0] = (int64_t)3 * v->t * v->h * v->d;
        packed.stride[1] = v->d;
        packed.stride[2] = (int64_t)3 * v->h * v->d;
        et_desc_init(&lse, ET_F32, 3, n, ET_ROW_MAJOR);
        struct et_desc forward[] = {packed, packed, packed};
        struct et_desc backward[] = {out[0], packed, packed, packed, out[0], lse};
        struct et_desc results[] = {out[0], lse};
        struct et_call call = {
            .op = ET_OP_sdpa,
            .n_in = 3,
            .n_out = 2,
            .attr = &attr,
            .attr_size = sizeof attr,
            .in = forward,
            .out = results,
        };
        double flop = 4.0 * v->b * v->h * v->t * v->t * v->d / (v->causal ? 2 : 1);
        double seconds = best(table, device, &call, budget);
        printf("%-12s %4dx%2d %5d x %3d  forward %6.1f GF/s %8.3f ms", v->name, v->b,
               v->h, v->t, v->d, flop / seconds * 1e-9, 1e3 * seconds);
        call.op = ET_OP_sdpa_grad;
        call.n_in = 6;
        call.n_out = 3;
        call.in = backward;
        call.out = out;
        flop *= 2.5;
        seconds = best(table, device, &call, budget);
        printf("  gradient %6.1f GF/s %8.3f ms\n", flop / seconds * 1e-9,
               1e3 * seconds);
    }
    table->close(device);
    return 0;
}
