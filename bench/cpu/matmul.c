/* SPDX-License-Identifier: Apache-2.0 */
/* GF/s of the CPU's matrix products: best of many runs.
 *
 *   bench/cpu/matmul [THREADS [SECONDS-PER-ROW [bf16]]] */
#include <stdio.h>
#include <string.h>

#include "bench/cpu/best.h"

struct product {
    const char *name;
    int batch, m, k, n;
    bool batched_b, trans_a, trans_b;
};

static const struct product products[] = {
    {"square 1024", 1, 1024, 1024, 1024, false, false, false},
    {"square 1024 nt", 1, 1024, 1024, 1024, false, false, true},
    {"square 1024 tn", 1, 1024, 1024, 1024, false, true, false},
    {"GPT-2 qkv", 4, 512, 768, 2304, false, false, true},
    {"GPT-2 mlp", 4, 512, 768, 3072, false, false, true},
    {"GPT-2 mlp grad input", 1, 2048, 3072, 768, false, false, false},
    {"GPT-2 mlp grad weight", 1, 3072, 2048, 768, false, true, false},
    {"GPT-2 head", 1, 512, 768, 50257, false, false, true},
    {"GPT-2 scores", 48, 512, 64, 512, true, false, true},
    {"GPT-2 values", 48, 512, 512, 64, true, false, false},
    {"small GPT", 1, 2048, 128, 384, false, false, true},
    {"MLP of 1024", 1, 128, 1024, 1024, false, false, true},
    {"MLP of 1024 grad input", 1, 128, 1024, 1024, false, false, false},
    {"MLP of 1024 grad weight", 1, 1024, 128, 1024, false, true, false},
    {"GPT of 384 qkv", 1, 2048, 384, 1152, false, false, true},
    {"GPT of 384 mlp", 1, 2048, 384, 1536, false, false, true},
    {"GPT of 384 mlp grad input", 1, 2048, 1536, 384, false, false, false},
    {"GPT of 384 mlp grad weight", 1, 1536, 2048, 384, false, true, false},
    {"GPT-2 1 x 256 mlp", 1, 256, 768, 3072, false, false, true},
    {"GPT-2 1 x 256 grad input", 1, 256, 3072, 768, false, false, false},
    {"GPT-2 1 x 256 grad weight", 1, 3072, 256, 768, false, true, false},
    {"GPT-2 1 x 256 head", 1, 256, 768, 50304, false, false, true},
    {"GPT-2 1 x 256 head grad input", 1, 256, 50304, 768, false, false, false},
    {"GPT-2 1 x 256 head grad weight", 1, 50304, 256, 768, false, true, false},
    {"MLP 1", 1, 128, 784, 256, false, false, true},
    {"MLP 1 grad weight", 1, 256, 128, 784, false, true, false},
    {"MLP 2", 1, 128, 256, 128, false, false, true},
    {"MLP head", 1, 128, 128, 10, false, false, true},
    {"ResNet-20 head", 1, 128, 64, 10, false, false, true},
    {"ResNet-20 head grad weight", 1, 10, 128, 64, false, true, false},
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
    if (!table || table->open(0, threads, &device, why, sizeof why) != ET_OK) {
        fprintf(stderr, "matmul: %s\n", why);
        return 1;
    }
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        const struct product *v = &products[i];
        struct et_matmul_attr a = {.trans_a = v->trans_a, .trans_b = v->trans_b};
        int64_t sa[] = {v->batch, v->trans_a ? v->k : v->m, v->trans_a ? v->m : v->k};
        int64_t sb[] = {v->batch, v->trans_b ? v->n : v->k, v->trans_b ? v->k : v->n};
        int skipped = v->batched_b ? 0 : 1;
        struct et_desc in[2], out;
        et_desc_init(&in[0], dtype, 3, sa, ET_ROW_MAJOR);
        et_desc_init(&in[1], dtype, 3 - skipped, sb + skipped, ET_ROW_MAJOR);
        et_desc_init(&out, dtype, 3, (int64_t[]){v->batch, v->m, v->n}, ET_ROW_MAJOR);
        struct et_call call = {
            .op = ET_OP_matmul,
            .n_in = 2,
            .n_out = 1,
            .attr = &a,
            .attr_size = sizeof a,
            .in = in,
            .out = &out,
        };
        double flop = 2.0 * v->batch * v->m * v->n * v->k;
        double seconds = best(table, device, &call, budget);
        printf("%-28s %9.1f MFLOP %6.0f GF/s %9.3f ms\n", v->name, flop * 1e-6,
               flop / seconds * 1e-9, 1e3 * seconds);
    }
    table->close(device);
    return 0;
}
