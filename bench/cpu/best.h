/* SPDX-License-Identifier: Apache-2.0 */
/* best.h: the best time of a kernel of the CPU module. */
#ifndef BENCH_CPU_BEST_H
#define BENCH_CPU_BEST_H

#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "bench/program.h"
#include "t/kernels/module.h"

/* In large pages, as the module's own memory is: a product of 256 x 3072 by 3072 x 768
 * reads rows that lie 3 KB apart; in small pages it ran at 90 GF/s, in large at 126. */
static inline void *
numbers(size_t bytes)
{
    const size_t page = 1 << 21, size = (bytes + page + 4095) & ~(page - 1);
    float *x = bytes < page ? aligned_alloc(4096, (bytes + 8191) & ~(size_t)4095)
                            : aligned_alloc(page, size);
    if (x && bytes >= page)
        (void)madvise(x, size, MADV_HUGEPAGE);
    for (size_t i = 0; x && i < bytes / sizeof *x; i++)
        x[i] = (float)(i % 251) / 251 - 0.5f;
    return x;
}

/* Bytes from the first to the last element: of the array or, for a view, around it. */
static inline size_t
extent(const struct et_desc *d)
{
    int64_t n = 1;
    for (int i = 0; i < d->ndim; i++)
        n += (d->shape[i] - 1) * d->stride[i];
    return (size_t)n * et_dtype_size(d->dtype);
}

/* The best time of one run of CALL (<= 16 arrays), in seconds; 0 when it is
 * refused. Runs for BUDGET seconds, three times at least. */
static inline double
best(const struct et_device_table *table, struct et_device_handle *device,
     const struct et_call *call, double budget)
{
    struct et_kernel *k;
    size_t bytes;
    char why[256];
    void *ptr[16] = {0};
    int n = call->n_in + call->n_out;
    if (table->prepare(device, call, &k, &bytes, why, sizeof why) != ET_OK)
        return 0;
    void *workspace = numbers(bytes + 64);
    for (int i = 0; i < n; i++)
        ptr[i] =
            numbers(extent(i < call->n_in ? &call->in[i] : &call->out[i - call->n_in]));
    double least = INFINITY, end = now() + budget;
    for (int i = 0; i < 3 || now() < end; i++) {
        double start = now();
        if (table->run(k, ptr, workspace, NULL) != ET_OK)
            break;
        least = fmin(least, now() - start);
    }
    for (int i = 0; i < n; i++)
        free(ptr[i]);
    free(workspace);
    table->release(k);
    return least;
}

#endif
