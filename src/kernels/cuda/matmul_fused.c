/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_fused.c: a product of matrices and what follows it: see et_epilogue in attr.h.
 *
 *   GELU       y = gelu_tanh(a b + bias), more = a b + bias   GELU[_AUX][_BIAS]
 *   GELU_GRAD  y = gelu_tanh'(pre) (a b), more = sums of y    DGELU[_BGRAD]
 *   SUM_A      y = a b, more = sums of a over its terms       BGRADB
 *   SUM_B      y = a b, more = sums of b over its terms       BGRADA
 *
 * Two ways: cuBLASLt's epilogue (one kernel; the product is rounded once, after what
 * follows it), or split: the product, an element-wise kernel in place and a sum. The
 * epilogues are not always the faster way: llm.c keeps them off for small models. Both
 * are timed, where a clock may decide; elsewhere the epilogue is taken. Split is what
 * remains for layouts, dtypes and addresses that cuBLASLt refuses, and for a gelu of
 * f32: the epilogue's has the processor's tanh, which is right to 10 bits (on an H200
 * its gradient is off by 5e-5), as products in TF32 are. */
#include "config.h"
#include "kernels/cuda/matmul_fused.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cache.h"
#include "kernels/cuda/noise.h"
#include "kernels/cuda/trial.h"

enum { A, B, BIAS, PRE, Y, MORE, ARRAYS };

/* Steps of the split way, and which arrays each reads (up to 3) and writes. */
enum { STEPS = 3, READS = 3 };
struct part {
    struct et_kernel *kernel; /* NULL: none */
    int n_in, in[READS], out;
};

struct fused_kernel {
    struct et_kernel base;
    struct et_device_handle *dev; /* set before base.dev is */
    int form, n_in;
    struct part part[STEPS];
    struct etk_gemm gemm;
    struct etk_choice choice;
    bool epilogue; /* cuBLASLt's is there, and to be taken */
    size_t ws;     /* of either way */
};

/* ---- running ---- */

static et_status
run_split(struct fused_kernel *k, void *const *at, void *ws, cudaStream_t stream)
{
    for (int i = 0; i < STEPS; i++) {
        struct part *p = &k->part[i];
        void *ptr[READS + 1];
        if (!p->kernel)
            continue;
        for (int j = 0; j < p->n_in; j++)
            ptr[j] = p->in[j] < 0 ? NULL : at[p->in[j]];
        ptr[p->n_in] = at[p->out];
        ET_TRY(p->kernel->run(p->kernel, ptr, ws, stream));
    }
    return ET_OK;
}

static et_status
run_epilogue(struct fused_kernel *k, void *const *at, void *ws, cudaStream_t stream)
{
    struct etk_gemm_operands o = {.a = at[A], .b = at[B], .y = at[Y]};
    bool gelu = k->form == ET_EPILOGUE_GELU;
    o.vector = gelu ? at[BIAS] : at[MORE];
    o.aux = gelu ? at[MORE] : at[PRE];
    return etk_blas_run(k->dev, &k->gemm, &k->choice, &o, ws, stream);
}

static et_status
run_fused(struct et_kernel *base, void *const *ptr, void *ws, cudaStream_t stream)
{
    struct fused_kernel *k = (struct fused_kernel *)base;
    void *at[ARRAYS] = {NULL};
    uintptr_t all = 0;
    for (int i = 0; i < k->n_in; i++)
        at[i] = ptr[i];
    for (int i = 0; i < 2; i++)
        at[Y + i] = ptr[k->n_in + i];
    for (int i = 0; i < ARRAYS; i++)
        all |= (uintptr_t)at[i];
    return k->epilogue && all % ETK_WIDE == 0 ? run_epilogue(k, at, ws, stream)
                                              : run_split(k, at, ws, stream);
}

static void
release_fused(struct et_kernel *base)
{
    struct fused_kernel *k = (struct fused_kernel *)base;
    etk_gemm_close(&k->gemm);
    for (int i = 0; i < STEPS; i++)
        etk_release(k->part[i].kernel);
}

/* ---- the split way ---- */

/* The arrays of a call; DTYPE NONE: left out. */
struct arrays {
    struct et_desc d[ARRAYS];
};

/* P becomes a kernel of OP that reads IN (-1: left out) and writes OUT. */
static et_status
prepare_part(struct fused_kernel *k, struct part *p, enum et_op_id op, const void *attr,
             size_t attr_size, const struct arrays *x, char *why, size_t why_size)
{
    struct et_desc in[READS];
    memset(in, 0, sizeof in);
    for (int i = 0; i < p->n_in; i++)
        if (p->in[i] >= 0)
            in[i] = x->d[p->in[i]];
    const struct et_call call = {.op = op,
                                 .attr = attr,
                                 .attr_size = attr_size,
                                 .n_in = p->n_in,
                                 .n_out = 1,
                                 .in = in,
                                 .out = &x->d[p->out]};
    size_t ws = 0;
    ET_TRY(etk_prepare(k->dev, &call, &p->kernel, &ws, why, why_size));
    k->ws = ws > k->ws ? ws : k->ws;
    return ET_OK;
}

/* Which axes of X, a or b of two axes or y, go into MORE. */
static uint32_t
summed_axes(const struct et_matmul_fused_attr *o, const struct et_desc *x)
{
    if (o->form == ET_EPILOGUE_SUM_A)
        return o->trans_a ? 1 : 2;
    if (o->form == ET_EPILOGUE_SUM_B)
        return o->trans_b ? 2 : 1;
    return (1u << (x->ndim - 1)) - 1;
}

static et_status
prepare_split(struct fused_kernel *k, const struct et_matmul_fused_attr *o,
              const struct arrays *x, char *why, size_t why_size)
{
    bool gelu = o->form == ET_EPILOGUE_GELU, wanted = x->d[MORE].dtype != ET_NONE;
    const struct et_matmul_attr product = {.trans_a = o->trans_a,
                                           .trans_b = o->trans_b};
    int p = gelu && wanted ? MORE : Y; /* where the product goes */
    k->part[0] = (struct part){.n_in = 3, .in = {A, B, BIAS}, .out = p};
    ET_TRY(prepare_part(k, &k->part[0], ET_OP_matmul, &product, sizeof product, x, why,
                        why_size));
    k->part[1] = (struct part){.n_in = gelu ? 1 : 2, .in = {p, PRE}, .out = Y};
    if (gelu)
        return prepare_part(k, &k->part[1], ET_OP_gelu_tanh, NULL, 0, x, why, why_size);
    if (o->form == ET_EPILOGUE_GELU_GRAD)
        ET_TRY(prepare_part(k, &k->part[1], ET_OP_gelu_tanh_grad, NULL, 0, x, why,
                            why_size));
    if (!wanted)
        return ET_OK;
    int from = o->form == ET_EPILOGUE_SUM_A ? A : o->form == ET_EPILOGUE_SUM_B ? B : Y;
    const struct et_reduce_attr sum = {.axes = summed_axes(o, &x->d[from])};
    k->part[2] = (struct part){.n_in = 1, .in = {from}, .out = MORE};
    return prepare_part(k, &k->part[2], ET_OP_sum, &sum, sizeof sum, x, why, why_size);
}

/* ---- cuBLASLt's way ---- */

static cublasLtEpilogue_t
epilogue_of(int form, bool biased, bool more)
{
    if (form == ET_EPILOGUE_GELU && more)
        return biased ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    if (form == ET_EPILOGUE_GELU)
        return biased ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    if (form == ET_EPILOGUE_GELU_GRAD)
        return more ? CUBLASLT_EPILOGUE_DGELU_BGRAD : CUBLASLT_EPILOGUE_DGELU;
    if (!more)
        return CUBLASLT_EPILOGUE_DEFAULT;
    /* Our a is its B: gemm.c. */
    return form == ET_EPILOGUE_SUM_A ? CUBLASLT_EPILOGUE_BGRADB
                                     : CUBLASLT_EPILOGUE_BGRADA;
}

/* All of one dtype, and what has the result's shape by rows. */
static bool
fits(const struct arrays *x)
{
    for (int i = 0; i < ARRAYS; i++)
        if (x->d[i].dtype != ET_NONE &&
            (x->d[i].dtype != x->d[A].dtype ||
             (i >= BIAS && !et_desc_is_contiguous(&x->d[i], ET_ROW_MAJOR))))
            return false;
    return true;
}

/* Sets the way and *STATUS; false: cuBLASLt does not take it. */
static bool
find_epilogue(struct fused_kernel *k, const struct et_matmul_fused_attr *o,
              const struct arrays *x, struct etk_gemm_shape *shape, et_status *status)
{
    const struct et_matmul_attr product = {.trans_a = o->trans_a,
                                           .trans_b = o->trans_b};
    const struct et_call call = {.op = ET_OP_matmul,
                                 .attr = &product,
                                 .attr_size = sizeof product,
                                 .n_in = 2,
                                 .n_out = 1,
                                 .in = x->d,
                                 .out = &x->d[Y]};
    *status = ET_OK;
    bool gelu = o->form == ET_EPILOGUE_GELU || o->form == ET_EPILOGUE_GELU_GRAD;
    if (!fits(x) || !etk_matmul_shape(&call, k->dev->tf32, shape) ||
        (gelu && shape->in == ET_F32 && !shape->tf32))
        return false;
    shape->epilogue =
        epilogue_of(o->form, x->d[BIAS].dtype != ET_NONE, x->d[MORE].dtype != ET_NONE);
    if (etk_gemm_has_aux(shape))
        shape->aux_ld = shape->n;
    if (shape->aux_ld % ETK_AUX_LD != 0)
        return false;
    *status = etk_gemm_open(k->dev, shape, &k->gemm);
    if (*status == ET_OK)
        *status = etk_blas_choose(k->dev, shape, &k->gemm, ETK_WIDE, &k->choice);
    if (*status != ET_ENOTSUP)
        return *status == ET_OK;
    *status = ET_OK;
    return false;
}

/* ---- which of them ---- */

struct attempt {
    struct fused_kernel *kernel;
    void *at[ARRAYS], *ws;
};

static et_status
try_epilogue(void *data)
{
    struct attempt *a = data;
    return run_epilogue(a->kernel, a->at, a->ws, a->kernel->dev->stream);
}

static et_status
try_split(void *data)
{
    struct attempt *a = data;
    return run_split(a->kernel, a->at, a->ws, a->kernel->dev->stream);
}

/* Lays the arrays out in the trial's block (NULL: only measures); bytes used. */
static size_t
lay_out(const struct arrays *x, struct attempt *a, char *block)
{
    size_t bytes = 0;
    for (int i = 0; i < ARRAYS; i++) {
        if (x->d[i].dtype == ET_NONE)
            continue;
        a->at[i] = block ? block + bytes : NULL;
        bytes += etk_round_up(et_desc_bytes(&x->d[i]));
    }
    a->ws = block ? block + bytes : NULL;
    return bytes;
}

/* Milliseconds of either way; false where there was no room to find out. */
static bool
measure(struct fused_kernel *k, const struct arrays *x, float ms[2], et_status *status)
{
    struct etk_trial t;
    struct attempt a = {.kernel = k};
    struct et_device_handle *d = k->dev;
    bool open = etk_trial_open(d, lay_out(x, &a, NULL) + k->ws, &t);
    *status = ET_OK;
    if (open)
        (void)lay_out(x, &a, t.block);
    for (int i = 0; open && i < Y; i++)
        if (a.at[i])
            open = etk_launch_noise(x->d[i].dtype, a.at[i], et_desc_count(&x->d[i]),
                                    (uint64_t)i + 1, d->gpu.sm_count,
                                    d->stream) == cudaSuccess;
    etk_trial_fn *const ways[] = {try_epilogue, try_split};
    for (int i = 0; open && i < 2 && *status != ET_EDEVICE; i++) {
        *status = etk_trial_measure(d, &t, ways[i], &a, INFINITY, &ms[i]);
        if (*status != ET_OK)
            ms[i] = INFINITY;
    }
    etk_trial_close(d, &t);
    if (*status != ET_EDEVICE)
        *status = ET_OK;
    return open;
}

/* Is the epilogue the faster way? Known, or timed and kept. */
static et_status
decide(struct fused_kernel *k, const struct arrays *x, const struct etk_gemm_shape *s)
{
    char key[ETK_GEMM_KEY + 32], kept = 0;
    void *bytes = NULL;
    size_t size = 0;
    float ms[2];
    et_status status = ET_OK;
    int n = snprintf(key, sizeof key, "epilogue 1; ");
    etk_blas_key(k->dev, s, ETK_WIDE, key + n);
    if (etk_cache_read("epilogue", key, &bytes, &size)) {
        bool whole = size == 1;
        kept = whole ? *(const char *)bytes : 0;
        free(bytes);
        if (whole) {
            k->epilogue = kept == 1;
            return ET_OK;
        }
    }
    if (!measure(k, x, ms, &status) || status != ET_OK)
        return status;
    kept = k->epilogue = ms[0] <= ms[1];
    etk_cache_write("epilogue", key, &kept, sizeof kept);
    return ET_OK;
}

/* ---- preparing ---- */

static et_status
prepare_ways(struct fused_kernel *k, const struct et_matmul_fused_attr *o,
             const struct arrays *x, char *why, size_t why_size)
{
    struct etk_gemm_shape shape;
    et_status status;
    ET_TRY(prepare_split(k, o, x, why, why_size));
    k->epilogue = find_epilogue(k, o, x, &shape, &status);
    if (!k->epilogue)
        return status;
    k->ws = k->choice.workspace > k->ws ? k->choice.workspace : k->ws;
    return etk_may_time(k->dev) ? decide(k, x, &shape) : ET_OK;
}

et_status
etk_prepare_matmul_fused(struct et_device_handle *d, const struct et_call *call,
                         struct et_kernel **out, size_t *ws, char *why, size_t why_size)
{
    const struct et_matmul_fused_attr *o = call->attr;
    struct arrays x;
    memset(&x, 0, sizeof x);
    for (int i = 0; i < call->n_in; i++)
        x.d[i] = call->in[i];
    for (int i = 0; i < 2; i++)
        x.d[Y + i] = call->out[i];
    if (x.d[Y].dtype == ET_NONE)
        return etk_refuse(why, why_size, "a product that nobody wants");
    struct fused_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    k->base.run = run_fused;
    k->base.release = release_fused;
    k->dev = d;
    k->form = o->form;
    k->n_in = call->n_in;
    et_status status = prepare_ways(k, o, &x, why, why_size);
    if (status != ET_OK) {
        etk_release(&k->base);
        return status;
    }
    if (k->epilogue)
        etk_blas_describe(&k->choice, k->base.what, sizeof k->base.what);
    else
        snprintf(k->base.what, sizeof k->base.what, "split: %.50s",
                 k->part[0].kernel->what);
    *ws = k->ws;
    *out = &k->base;
    return ET_OK;
}
