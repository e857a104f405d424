/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of several operations through dnn.h, as attention writes them: computed right,
 * refused with a sentence, and found again on disk. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda_runtime_api.h>
#include <gpusim.h>

#include "kernels/cuda/dnn.h"
#include "t/tap.h"

/* device.c's. */
void *
etk_new(size_t size)
{
    return calloc(1, size);
}

static cudaStream_t stream;

enum { B = 1, H = 2, S = 5, D = 8, COUNT = B * H * S * D };

/* Half precision of numbers that have few bits. */
static uint16_t
bf16_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)(bits >> 16);
}

static float
of_bf16(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float y;
    memcpy(&y, &bits, sizeof y);
    return y;
}

/* Causal attention forward: q, k, v, y in slots 0..3, statistics in 4. WIDE: of f32. */
static void
write_attention(struct etk_dnn_graph *g, bool wide)
{
    cudnnDataType_t t = wide ? CUDNN_DATA_FLOAT : CUDNN_DATA_BFLOAT16;
    int64_t shape[4] = {B, H, S, D}, turned[4] = {B, H, D, S}, square[4] = {B, H, S, S};
    int64_t dense[4] = {H * S * D, S * D, D, 1}, across[4] = {H * S * D, S * D, 1, D};
    int64_t row[4] = {B, H, S, 1}, rows[4] = {H * S, S, 1, 1};
    const int none = ETK_DNN_NO_TENSOR;
    memset(g, 0, sizeof *g);
    int q = etk_dnn_tensor(g, t, 4, shape, dense, 0);
    int k = etk_dnn_tensor(g, t, 4, turned, across, 1);
    int v = etk_dnn_tensor(g, t, 4, shape, dense, 2);
    int y = etk_dnn_tensor(g, t, 4, shape, dense, 3);
    int stats = etk_dnn_tensor(g, CUDNN_DATA_FLOAT, 4, row, rows, 4);
    int s[4], index[2], r[4];
    for (int i = 0; i < 4; i++)
        s[i] = etk_dnn_virtual(g, i == 3 ? t : CUDNN_DATA_FLOAT, 4, square);
    for (int i = 0; i < 2; i++)
        index[i] = etk_dnn_virtual(g, CUDNN_DATA_INT32, 4, square);
    for (int i = 0; i < 3; i++)
        r[i] = etk_dnn_virtual(g, CUDNN_DATA_FLOAT, 4, row);
    int mask = etk_dnn_virtual(g, CUDNN_DATA_BOOLEAN, 4, square);
    int masked = etk_dnn_virtual(g, CUDNN_DATA_FLOAT, 4, square);
    int shifted = etk_dnn_virtual(g, CUDNN_DATA_FLOAT, 4, square);
    etk_dnn_matmul(g, q, k, s[0]);
    etk_dnn_pointwise(g, CUDNN_POINTWISE_MUL, s[0], etk_dnn_value(g, 4, 0.5f), none,
                      s[1]);
    etk_dnn_index(g, 2, s[1], index[0]);
    etk_dnn_index(g, 3, s[1], index[1]);
    etk_dnn_pointwise(g, CUDNN_POINTWISE_CMP_GE, index[0], index[1], none, mask);
    etk_dnn_pointwise(g, CUDNN_POINTWISE_BINARY_SELECT, s[1],
                      etk_dnn_value(g, 4, -INFINITY), mask, masked);
    etk_dnn_reduce(g, CUDNN_REDUCE_TENSOR_MAX, masked, r[0]);
    etk_dnn_pointwise(g, CUDNN_POINTWISE_SUB, masked, r[0], none, shifted);
    etk_dnn_pointwise(g, CUDNN_POINTWISE_EXP, shifted, none, none, s[2]);
    etk_dnn_reduce(g, CUDNN_REDUCE_TENSOR_ADD, s[2], r[1]);
    etk_dnn_pointwise(g, CUDNN_POINTWISE_LOG, r[1], none, none, r[2]);
    etk_dnn_pointwise(g, CUDNN_POINTWISE_ADD, r[0], r[2], none, stats);
    etk_dnn_pointwise(g, CUDNN_POINTWISE_DIV, s[2], r[1], none, s[3]);
    etk_dnn_matmul(g, s[3], v, y);
}

/* The same by its definition, in double: Y and STATS. */
static void
attend(const float *q, const float *k, const float *v, double *y, double *stats)
{
    for (int h = 0; h < B * H; h++)
        for (int i = 0; i < S; i++) {
            double p[S], sum = 0;
            for (int j = 0; j <= i; j++) {
                p[j] = 0;
                for (int d = 0; d < D; d++)
                    p[j] += q[(h * S + i) * D + d] * k[(h * S + j) * D + d];
                sum += p[j] = exp(0.5 * p[j]);
            }
            stats[h * S + i] = log(sum);
            for (int d = 0; d < D; d++) {
                y[(h * S + i) * D + d] = 0;
                for (int j = 0; j <= i; j++)
                    y[(h * S + i) * D + d] += p[j] / sum * v[(h * S + j) * D + d];
            }
        }
}

static bool
move(void *to, const void *from, size_t bytes)
{
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream) == cudaSuccess &&
           cudaStreamSynchronize(stream) == cudaSuccess;
}

static void *
on_device(const void *from, size_t bytes)
{
    void *p;
    if (cudaMalloc(&p, bytes) != cudaSuccess || (from && !move(p, from, bytes)))
        bail("no memory on the simulated GPU");
    return p;
}

/* P is rounded to bf16 (2^-9 relative) and so is y. */
#define BF16_TWICE 0x1p-7

static void
test_attention(struct et_device_handle *d, const char *when)
{
    struct etk_dnn_graph g;
    struct etk_dnn_limits limits = {.workspace = 1 << 20, .tune = 4};
    struct etk_dnn_plan *plan = NULL;
    float in[3][COUNT], got[COUNT], got_stats[B * H * S], want[COUNT];
    uint16_t narrow[3][COUNT], out[COUNT];
    double y[COUNT], stats[B * H * S], worst = 0;
    void *ptr[5];
    char why[256] = "";
    size_t ws = 0;
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < COUNT; j++) {
            in[i][j] = (float)((j * 37 + i * 11) % 17 - 8) / 8;
            narrow[i][j] = bf16_of(in[i][j]);
        }
        ptr[i] = on_device(narrow[i], sizeof narrow[i]);
    }
    ptr[3] = on_device(NULL, sizeof out);
    ptr[4] = on_device(NULL, sizeof got_stats);
    write_attention(&g, false);
    if (etk_dnn_plan(d, &g, &limits, &plan, &ws, why, sizeof why) != ET_OK)
        bail("%s%s", why, d->why);
    void *workspace = on_device(NULL, ws + 1);
    ok(etk_dnn_run(plan, ptr, workspace, d->stream) == ET_OK &&
           cudaStreamSynchronize(d->stream) == cudaSuccess,
       "%s: causal attention of 14 operations runs, by %s", when,
       etk_dnn_plan_name(plan));
    ok(move(out, ptr[3], sizeof out) && move(got_stats, ptr[4], sizeof got_stats),
       "and leaves what can be read");
    attend(in[0], in[1], in[2], y, stats);
    for (int i = 0; i < COUNT; i++) {
        got[i] = of_bf16(out[i]);
        want[i] = (float)y[i];
    }
    is_near_array(got, want, COUNT, BF16_TWICE, "its result is the definition's");
    for (int i = 0; i < B * H * S; i++)
        worst = fmax(worst, fabs(got_stats[i] - stats[i]));
    ok(worst < 1e-5, "and so are its statistics, within %g", worst);
    etk_dnn_plan_free(plan);
    cudaFree(workspace);
    for (int i = 0; i < 5; i++)
        cudaFree(ptr[i]);
}

static void
test_refusals(struct et_device_handle *d)
{
    struct etk_dnn_graph g;
    struct etk_dnn_limits limits = {.workspace = 1 << 20};
    struct etk_dnn_plan *plan = NULL;
    char why[256] = "";
    size_t ws;
    write_attention(&g, true);
    ok(etk_dnn_plan(d, &g, &limits, &plan, &ws, why, sizeof why) == ET_ENOTSUP &&
           why[0],
       "f32 is refused: %s", why);
    write_attention(&g, false);
    limits.precompiled = true;
    ok(etk_dnn_plan(d, &g, &limits, &plan, &ws, why, sizeof why) == ET_ENOTSUP,
       "so is an engine that needs no compiler");
    limits.precompiled = false;
    struct etk_dnn_node swap = g.node[0];
    g.node[0] = g.node[1];
    g.node[1] = swap;
    ok(etk_dnn_plan(d, &g, &limits, &plan, &ws, why, sizeof why) != ET_OK,
       "and a result that is used before it is made");
    write_attention(&g, false);
    g.tensor[3].shape[3]++;
    ok(etk_dnn_plan(d, &g, &limits, &plan, &ws, why, sizeof why) != ET_OK,
       "and one of the wrong size");
    void *odd[2] = {(void *)256, (void *)264};
    ok(etk_dnn_aligned(odd, 1) && !etk_dnn_aligned(odd, 2),
       "addresses in the middle of 16 bytes are told");
}

/* A reshape that exchanges two axes: y[j, i] = 2 x[i, j]. */
static void
test_reshape(struct et_device_handle *d)
{
    struct etk_dnn_graph g = {0};
    struct etk_dnn_limits limits = {.workspace = 1 << 20};
    struct etk_dnn_plan *plan = NULL;
    int64_t shape[3] = {1, 2, 3}, dense[3] = {6, 3, 1}, turned[3] = {1, 3, 2};
    int64_t across[3] = {6, 1, 3}, out_dense[3] = {6, 2, 1};
    float x[6] = {1, 2, 3, 4, 5, 6}, y[6], want[6] = {2, 8, 4, 10, 6, 12};
    char why[256] = "";
    size_t ws;
    int a = etk_dnn_tensor(&g, CUDNN_DATA_FLOAT, 3, shape, dense, 0);
    int b = etk_dnn_virtual_strided(&g, CUDNN_DATA_FLOAT, 3, turned, across);
    int c = etk_dnn_tensor(&g, CUDNN_DATA_FLOAT, 3, turned, out_dense, 1);
    etk_dnn_reshape(&g, a, b);
    etk_dnn_pointwise(&g, CUDNN_POINTWISE_MUL, b, etk_dnn_value(&g, 3, 2),
                      ETK_DNN_NO_TENSOR, c);
    if (etk_dnn_plan(d, &g, &limits, &plan, &ws, why, sizeof why) != ET_OK)
        bail("%s%s", why, d->why);
    void *ptr[2] = {on_device(x, sizeof x), on_device(NULL, sizeof y)};
    void *workspace = on_device(NULL, ws + 1);
    ok(etk_dnn_run(plan, ptr, workspace, d->stream) == ET_OK,
       "a transposing reshape runs");
    move(y, ptr[1], sizeof y);
    is_near_array(y, want, 6, 0, "and has exchanged the axes");
    etk_dnn_plan_free(plan);
    cudaFree(ptr[0]);
    cudaFree(ptr[1]);
    cudaFree(workspace);
}

int
main(void)
{
    static char top[] = "/tmp/etude-graphs-XXXXXX";
    struct et_device_handle d = {.lock = PTHREAD_MUTEX_INITIALIZER};
    if (!mkdtemp(top))
        bail("cannot make %s", top);
    setenv("ETUDE_CACHE_DIR", top, 1);
    unsetenv("ETUDE_TUNE");
    d.gpu.memory = (size_t)1 << 30;
    d.gpu.sm_count = 4;
    if (cudaStreamCreateWithFlags(&d.stream, cudaStreamNonBlocking) != cudaSuccess ||
        cudaDeviceGetDefaultMemPool(&d.pool, 0) != cudaSuccess)
        bail("no simulated GPU");
    stream = d.stream;
    int64_t before = gpusim_counts()->launches;
    test_attention(&d, "timed");
    int64_t timed = gpusim_counts()->launches - before;
    etk_dnn_close(&d);
    test_attention(&d, "from disk, as by another start");
    is_int(gpusim_counts()->launches - before - timed, 1, "which times nothing");
    ok(timed > 1, "where the first has run %d times", (int)timed);
    etk_dnn_close(&d);
    d.deterministic = true;
    before = gpusim_counts()->launches;
    test_attention(&d, "deterministic");
    is_int(gpusim_counts()->launches - before, 1, "which times nothing either");
    test_refusals(&d);
    test_reshape(&d);
    etk_dnn_close(&d);
    cudaStreamDestroy(d.stream);
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", top);
    ok(system(command) == 0, "the test leaves nothing");
    return done();
}
