/* SPDX-License-Identifier: Apache-2.0 */
/* What the CUDA module settles when a kernel is prepared, what it refuses, and what it
 * says of its failures: calls on the module itself. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <gpusim.h>

#include "kernels/cuda/cuda.h"
#include "t/kernels/module.h"
#include "t/tap.h"

static const struct et_device_table *gpu;
static struct et_device_handle *handle;

/* ---- calls ---- */

enum { MOST = 9 };

/* A call on arrays of f32, inputs before outputs; I32 where said. */
struct job {
    struct et_desc desc[MOST];
    float *host[MOST]; /* borrowed; NULL: left out */
    void *block[MOST], *ws;
    int n_in, n_out;
    struct et_call call;
    struct et_kernel *kernel;
    char why[256];
};

static void
describe(struct job *j, enum et_op_id op, const void *attr, size_t size, int n_in,
         int n_out)
{
    j->n_in = n_in;
    j->n_out = n_out;
    j->call = (struct et_call){.op = op,
                               .attr = attr,
                               .attr_size = size,
                               .n_in = n_in,
                               .n_out = n_out,
                               .in = j->desc,
                               .out = j->desc + n_in};
}

static void
array(struct job *j, int i, float *host, int ndim, const int64_t *shape,
      enum et_format format)
{
    et_desc_init(&j->desc[i], ET_F32, ndim, shape, format);
    j->host[i] = host;
}

static et_status
prepare(struct job *j)
{
    size_t ws = 0;
    ET_TRY(gpu->prepare(handle, &j->call, &j->kernel, &ws, j->why, sizeof j->why));
    return gpu->alloc(handle, ws, &j->ws);
}

/* Sends the operands, runs, and fetches the results. */
static et_status
run(struct job *j)
{
    void *ptr[MOST] = {NULL};
    for (int i = 0; i < j->n_in + j->n_out; i++) {
        if (!j->host[i])
            continue;
        size_t bytes = et_desc_bytes(&j->desc[i]);
        ET_TRY(gpu->alloc(handle, bytes, &j->block[i]));
        ET_TRY(gpu->copy(handle, j->block[i], j->host[i], bytes, NULL));
        ptr[i] = j->block[i];
    }
    ET_TRY(gpu->run(j->kernel, ptr, j->ws, NULL));
    for (int i = j->n_in; i < j->n_in + j->n_out; i++)
        if (j->host[i])
            ET_TRY(gpu->copy(handle, j->host[i], j->block[i],
                             et_desc_bytes(&j->desc[i]), NULL));
    return gpu->sync(handle, NULL);
}

static void
end(struct job *j)
{
    gpu->release(j->kernel);
    gpu->free(handle, j->ws, 0);
    for (int i = 0; i < MOST; i++)
        gpu->free(handle, j->block[i], 0);
}

static bool
succeeds(et_status status, const struct job *j)
{
    if (status == ET_OK)
        return true;
    diag("%s: %s%s", et_status_name(status), j->why, gpu->why(handle));
    return false;
}

/* ---- refusals ---- */

static void
test_integers(void)
{
    struct et_reduce_attr o = {.axes = 1};
    struct job j = {.n_in = 0};
    describe(&j, ET_OP_sum, &o, sizeof o, 1, 1);
    et_desc_init(&j.desc[0], ET_I32, 1, (int64_t[]){8}, ET_ROW_MAJOR);
    et_desc_init(&j.desc[1], ET_I32, 0, NULL, ET_ROW_MAJOR);
    is_int(prepare(&j), ET_ENOTSUP, "a sum of integers is refused when it is prepared");
    ok(strstr(j.why, "i32") != NULL, "with a sentence: %s", j.why);
    end(&j);
}

/* ---- many groups ---- */

enum { GROUPS = 65537 };

static void
test_groups(void)
{
    static float x[GROUPS][2], w[GROUPS], y[GROUPS][2];
    struct et_conv2d_attr o = {.stride = {1, 1}, .dilation = {1, 1}, .groups = GROUPS};
    struct job j = {.n_in = 0};
    int wrong = 0;
    for (int i = 0; i < GROUPS; i++) {
        x[i][0] = x[i][1] = (float)(i % 7);
        w[i] = (float)(i % 5 - 2);
    }
    describe(&j, ET_OP_conv2d, &o, sizeof o, 2, 1);
    /* Row-major: no engine of cuDNN is asked. */
    array(&j, 0, &x[0][0], 4, (int64_t[]){1, GROUPS, 1, 2}, ET_ROW_MAJOR);
    array(&j, 1, w, 4, (int64_t[]){GROUPS, 1, 1, 1}, ET_ROW_MAJOR);
    array(&j, 2, &y[0][0], 4, (int64_t[]){1, GROUPS, 1, 2}, ET_ROW_MAJOR);
    et_status status = prepare(&j);
    ok(succeeds(status == ET_OK ? run(&j) : status, &j),
       "a convolution of more groups than an axis of a grid has places is computed");
    for (int i = 0; i < GROUPS; i++)
        wrong += y[i][0] != x[i][0] * w[i] || y[i][1] != x[i][1] * w[i];
    is_int(wrong, 0, "and right in every group");
    end(&j);
}

/* ---- weights of 0 ---- */

enum { POSITIONS = 5, DEPTH = 4, ELEMENTS = POSITIONS * DEPTH };

static bool
are_finite(const float *x, int n)
{
    for (int i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return false;
    return true;
}

/* The last value, which only the last query sees, is infinite. */
static void
test_masked(void)
{
    float q[ELEMENTS], k[ELEMENTS], v[ELEMENTS], o[ELEMENTS] = {0},
                                                 lse[POSITIONS] = {0};
    float grad[ELEMENTS], dq[ELEMENTS] = {0}, dk[ELEMENTS] = {0}, dv[ELEMENTS] = {0};
    const int64_t heads[] = {1, 1, POSITIONS, DEPTH};
    struct et_sdpa_attr attr = {.scale = 0.5, .causal = 1};
    struct job j = {.n_in = 0}, back = {.n_in = 0};
    const int seen = ELEMENTS - DEPTH;
    for (int i = 0; i < ELEMENTS; i++) {
        q[i] = (float)(i % 3) - 1;
        k[i] = (float)(i % 5) / 4;
        v[i] = i < seen ? (float)i : INFINITY;
        grad[i] = i < seen ? 1 : INFINITY;
    }
    describe(&j, ET_OP_sdpa, &attr, sizeof attr, 3, 2);
    float *arrays[] = {q, k, v, o};
    for (int i = 0; i < 4; i++)
        array(&j, i, arrays[i], 4, heads, ET_ROW_MAJOR);
    array(&j, 4, lse, 3, heads, ET_ROW_MAJOR);
    et_status status = prepare(&j);
    ok(succeeds(status == ET_OK ? run(&j) : status, &j) && are_finite(o, seen),
       "queries that do not see an infinite value are finite");
    ok(isinf(o[seen]), "the one that sees it is not");
    end(&j);
    for (int i = 0; i < ELEMENTS; i++) {
        v[i] = (float)i;
        o[i] = 1;
    }
    describe(&back, ET_OP_sdpa_grad, &attr, sizeof attr, 6, 3);
    float *others[] = {grad, q, k, v, o};
    for (int i = 0; i < 5; i++)
        array(&back, i, others[i], 4, heads, ET_ROW_MAJOR);
    array(&back, 5, lse, 3, heads, ET_ROW_MAJOR);
    float *results[] = {dq, dk, dv};
    for (int i = 0; i < 3; i++)
        array(&back, 6 + i, results[i], 4, heads, ET_ROW_MAJOR);
    /* The gradient of the first query's weights comes from no other query. */
    k[seen] = INFINITY;
    for (int i = 0; i < DEPTH; i++)
        grad[seen + i] = 1;
    status = prepare(&back);
    ok(succeeds(status == ET_OK ? run(&back) : status, &back) && are_finite(dq, seen),
       "nor do gradients of queries know of an infinite key that they do not see");
    end(&back);
}

/* ---- shared memory ---- */

/* Attention, and a layer norm whose sums take more than 48 KiB of shared memory. */
static void
test_settled(void)
{
    enum { ROWS = 3, WIDTH = 8192 };
    static float x[ROWS * WIDTH], dy[ROWS * WIDTH], dx[ROWS * WIDTH];
    static float gamma[WIDTH], dgamma[WIDTH], dbeta[WIDTH], mean[ROWS], rstd[ROWS];
    float q[ELEMENTS] = {0}, o[ELEMENTS], lse[POSITIONS];
    const int64_t rows[] = {ROWS, WIDTH}, heads[] = {1, 1, POSITIONS, DEPTH};
    struct et_norm_attr norm = {.axes = 1, .eps = 1e-5};
    struct et_sdpa_attr sdpa = {.scale = 0.5};
    struct job a = {.n_in = 0}, b = {.n_in = 0};
    describe(&a, ET_OP_layer_norm_grad, &norm, sizeof norm, 5, 3);
    array(&a, 0, dy, 2, rows, ET_ROW_MAJOR);
    array(&a, 1, x, 2, rows, ET_ROW_MAJOR);
    array(&a, 2, gamma, 1, rows + 1, ET_ROW_MAJOR);
    array(&a, 3, mean, 1, rows, ET_ROW_MAJOR);
    array(&a, 4, rstd, 1, rows, ET_ROW_MAJOR);
    array(&a, 5, dx, 2, rows, ET_ROW_MAJOR);
    array(&a, 6, dgamma, 1, rows + 1, ET_ROW_MAJOR);
    array(&a, 7, dbeta, 1, rows + 1, ET_ROW_MAJOR);
    describe(&b, ET_OP_sdpa, &sdpa, sizeof sdpa, 3, 2);
    for (int i = 0; i < 4; i++)
        array(&b, i, i < 3 ? q : o, 4, heads, ET_ROW_MAJOR);
    array(&b, 4, lse, 3, heads, ET_ROW_MAJOR);
    if (prepare(&a) != ET_OK || prepare(&b) != ET_OK)
        bail("%s%s", a.why, b.why);
    gpusim_fault("cudaFuncSetAttribute=1@1+");
    ok(succeeds(run(&a), &a),
       "a layer norm has its shared memory from when it is prepared");
    ok(succeeds(run(&b), &b), "and so has attention");
    gpusim_fault(NULL);
    end(&a);
    end(&b);
}

/* ---- failures of two threads ---- */

enum { TURNS = 200, LOOKS = 2000 };

static void *
fail_to_pin(void *end)
{
    while (!atomic_load((atomic_bool *)end)) {
        void *block;
        (void)gpu->host_alloc(handle, (size_t)1 << 60, &block);
    }
    return NULL;
}

/* A sentence is always one of the two, whole. */
static void
test_sentences(void)
{
    pthread_t other;
    atomic_bool enough = false;
    void *block;
    char pinned[256], device[256];
    int torn = 0;
    (void)gpu->host_alloc(handle, (size_t)1 << 60, &block);
    snprintf(pinned, sizeof pinned, "%s", gpu->why(handle));
    (void)gpu->alloc(handle, (size_t)1 << 60, &block);
    snprintf(device, sizeof device, "%s", gpu->why(handle));
    ok(strcmp(pinned, device) != 0 && pinned[0] && device[0],
       "two failures have two sentences");
    if (pthread_create(&other, NULL, fail_to_pin, &enough) != 0)
        bail("no thread");
    for (int i = 0; i < TURNS * LOOKS; i++) {
        if (i % LOOKS == 0)
            (void)gpu->alloc(handle, (size_t)1 << 60, &block);
        const char *why = gpu->why(handle);
        torn += strcmp(why, pinned) != 0 && strcmp(why, device) != 0;
    }
    atomic_store(&enough, true);
    pthread_join(other, NULL);
    is_int(torn, 0, "of failures in two threads one is told, and whole");
}

/* ---- what the device can do at most ---- */

/* The simulator says 3 multiprocessors of capability 9.0 at 1 GHz, and 5120 bits of
 * memory at 1 GHz. */
static void
test_peak(void)
{
    struct et_device_peak p;
    gpu->peak(handle, &p);
    is_near(p.bytes, 2 * 1e9 * 5120 / 8, 1, "memory: two bits a clock and line");
    is_near(p.product[ET_BF16], 3 * 4096e9, 1, "bf16 products: 4096 FLOP a clock each");
    is_near(p.product[ET_F16], 3 * 4096e9, 1, "f16 products likewise");
    is_near(p.plain, 3 * 256e9, 1, "f32 outside of tensor cores: 256");
    is_near(p.product[ET_F32], 3 * 256e9, 1, "f32 products are such");
    is_near(p.product[ET_I32], 0, 0, "integers have no rate");
    gpu->set(handle, ET_DEVICE_TF32, 1);
    gpu->peak(handle, &p);
    is_near(p.product[ET_F32], 3 * 2048e9, 1, "until they may round to TF32");
    gpu->set(handle, ET_DEVICE_TF32, 0);

    gpusim_fault("cudaDeviceGetAttribute=1@1+");
    gpu->peak(handle, &p);
    gpusim_fault(NULL);
    ok(p.bytes == 0 && p.plain == 0 && p.product[ET_BF16] == 0,
       "a driver that does not tell its clocks: nothing is known");
    ok(cudaGetLastError() == cudaSuccess, "and no later call reports it");
}

int
main(void)
{
    setenv("ETUDE_TUNE", "0", 1);
    gpu = open_module_of("gpusim");
    char why[256] = "";
    if (!gpu)
        skip_all("the device's module was not built");
    if (gpu->open(0, 0, &handle, why, sizeof why) != ET_OK)
        bail("%s", why);
    test_integers();
    test_groups();
    test_masked();
    test_settled();
    test_sentences();
    test_peak();
    gpu->close(handle);
    return done();
}
