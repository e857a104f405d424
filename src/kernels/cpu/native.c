/* SPDX-License-Identifier: Apache-2.0 */
/* native.c: see native.h.
 *
 * What a processor's instructions are named says little: with AMX bf16 is several times
 * as fast as f32 and on a Zen 4 twice, but other processors that have AVX512_BF16 split
 * it, and oneDNN emulates it where there is nothing of the kind (a thread of a Cascade
 * Lake: 33 GF/s, and 165 in f32). So one product is timed in either dtype, and what was
 * the faster is kept on disk: a run that goes on later must round as it did before. */
#include "config.h"

#include "kernels/cpu/native.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/cpu/choice.h"
#include "kernels/cpu/onednn.h"

enum {
    SIDE = 768, /* of a product that takes some milliseconds */
    RUNS = 5,   /* of which the best counts */
};

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The least seconds of K's runs. */
static double
time_runs(struct et_kernel *k, void *const *ptr, void *ws)
{
    double best = 0;
    for (int i = 0; i <= RUNS; i++) { /* the first one makes ready */
        double begin = now();
        if (k->run(k, ptr, ws) != ET_OK)
            return 0;
        double took = now() - begin;
        if (i > 0 && (best == 0 || took < best))
            best = took;
    }
    return best;
}

static double
measure_product(void *data, bool bf16)
{
    struct et_device_handle *d = data;
    static const struct et_matmul_attr attr;
    struct et_desc desc[3];
    struct et_kernel *k = NULL;
    size_t bytes = SIDE * SIDE * sizeof(float), workspace = 0;
    char why[256];
    double seconds = 0;
    for (int i = 0; i < 3; i++)
        et_desc_init(&desc[i], bf16 ? ET_BF16 : ET_F32, 2, (int64_t[]){SIDE, SIDE},
                     ET_ROW_MAJOR);
    const struct et_call call = {.op = ET_OP_matmul,
                                 .attr = &attr,
                                 .attr_size = sizeof attr,
                                 .n_in = 2,
                                 .n_out = 1,
                                 .in = desc,
                                 .out = desc + 2};
    d->native_bf16 = bf16;
    if (etk_prepare_matmul(d, &call, &k, &workspace, why, sizeof why) == ET_OK) {
        char *block = aligned_alloc(64, etk_round_up(3 * bytes + workspace));
        if (block) { /* ones: 0x3f80 in bf16, 0x3f803f80 (1.002) in f32 */
            for (size_t i = 0; i < 3 * bytes; i += 2)
                memcpy(block + i, &(uint16_t){0x3f80}, 2);
            seconds =
                time_runs(k, (void *const[]){block, block + bytes, block + 2 * bytes},
                          block + 3 * bytes);
        }
        free(block);
    }
    etk_release(k);
    return seconds;
}

bool
etk_is_native_bf16(struct et_device_handle *d)
{
    char key[256], name[128];
    int major, minor, patch;
    if (!etk_onednn_has_bf16())
        return false;
    etk_cpu_name(name, sizeof name);
    etk_onednn_version(&major, &minor, &patch);
    snprintf(key, sizeof key, "bf16 1; %s; oneDNN %d.%d.%d", name, major, minor, patch);
    return etk_is_second_faster(key, measure_product, d);
}
