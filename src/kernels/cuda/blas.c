/* SPDX-License-Identifier: Apache-2.0 */
/* blas.c: cuBLASLt's handle, and which of its algorithms multiplies a shape.
 *
 * cuBLASLt's advice is an order by estimated time; the first is seldom the fastest.
 * Each of up to 32 is timed on random numbers when a kernel is prepared, and the choice
 * is kept, in the process and on disk. Not so in deterministic mode, where no bit may
 * depend on a clock, with ETUDE_TUNE=0, and where memory is short: there the first of
 * them is taken.
 *
 * Sums stay in f32, and no order depends on which block is done first: sums that are
 * cut into parts (split-K) are put together from f32 in the workspace, never in the
 * result and in its dtype (CUBLASLT_REDUCTION_SCHEME_INPLACE, _OUTPUT_TYPE). */
#include "config.h"
#include "kernels/cuda/gemm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cache.h"
#include "kernels/cuda/noise.h"
#include "kernels/cuda/trial.h"

/* What cuBLASLt itself takes for Hopper is 32 MiB; split-K of large gradients of
 * weights gains from more. */
#define MOST_WORKSPACE ((size_t)64 << 20)

enum {
    MOST_TRIED = 32, /* algorithms per shape */
};

struct entry {
    struct entry *next;
    struct etk_choice choice;
    char key[];
};

struct etk_blas {
    cublasLtHandle_t handle;
    cublasLtMatmulPreference_t preference;
    struct entry *known; /* choices of this process */
};

#define TRY_BLAS(d, call)                                                              \
    do {                                                                               \
        cublasStatus_t code_ = (call);                                                 \
        if (code_ != CUBLAS_STATUS_SUCCESS)                                            \
            return etk_fail(d, ETK_BLAS, (int)code_, #call);                           \
    } while (0)

/* ---- the handle ---- */

static et_status
set_preference(struct et_device_handle *d, cublasLtMatmulPreferenceAttributes_t which,
               const void *value, size_t size)
{
    TRY_BLAS(d, cublasLtMatmulPreferenceSetAttribute(d->blas->preference, which, value,
                                                     size));
    return ET_OK;
}

static et_status
start(struct et_device_handle *d)
{
    TRY_BLAS(d, cublasLtCreate(&d->blas->handle));
    TRY_BLAS(d, cublasLtMatmulPreferenceCreate(&d->blas->preference));
    uint64_t workspace = MOST_WORKSPACE;
    uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    ET_TRY(set_preference(d, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                          sizeof workspace));
    return set_preference(d, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes,
                          sizeof schemes);
}

static et_status
open_blas(struct et_device_handle *d)
{
    if (d->blas)
        return ET_OK;
    d->blas = calloc(1, sizeof *d->blas);
    if (!d->blas)
        return ET_ENOMEM;
    et_status status = start(d);
    if (status != ET_OK)
        etk_blas_close(d);
    return status;
}

void
etk_blas_close(struct et_device_handle *d)
{
    struct etk_blas *blas = d->blas;
    if (!blas)
        return;
    for (struct entry *e = blas->known; e;) {
        struct entry *next = e->next;
        free(e);
        e = next;
    }
    /* Failures while closing have nobody to go to. */
    if (blas->preference)
        (void)cublasLtMatmulPreferenceDestroy(blas->preference);
    if (blas->handle)
        (void)cublasLtDestroy(blas->handle);
    free(blas);
    d->blas = NULL;
}

/* ---- what is known ---- */

void
etk_blas_key(const struct et_device_handle *d, const struct etk_gemm_shape *s,
             unsigned align, char key[ETK_GEMM_KEY])
{
    const struct etk_gemm_side *a = &s->a, *b = &s->b, *y = &s->y;
    snprintf(
        key, ETK_GEMM_KEY,
        "product 2; %s, sm_%d%d, %d multiprocessors, driver %d, cuBLASLt %zu; "
        "%s to %s, epilogue %u%s%s; %lld x %lld x %lld, %lld times; "
        "a %s%lld %lld, b %s%lld %lld, y %lld %lld, aux %lld; align %u, workspace %zu",
        d->gpu.name, d->gpu.major, d->gpu.minor, d->gpu.sm_count, d->gpu.driver,
        cublasLtGetVersion(), et_dtype_name(s->in), et_dtype_name(s->out),
        (unsigned)s->epilogue, s->tf32 ? ", tf32" : "",
        d->deterministic ? ", deterministic" : "", (long long)s->m, (long long)s->k,
        (long long)s->n, (long long)s->batch, a->turned ? "turned " : "",
        (long long)a->ld, (long long)a->batch, b->turned ? "turned " : "",
        (long long)b->ld, (long long)b->batch, (long long)y->ld, (long long)y->batch,
        (long long)s->aux_ld, align, MOST_WORKSPACE);
}

static const struct entry *
find(const struct etk_blas *blas, const char *key)
{
    const struct entry *e = blas->known;
    while (e && strcmp(e->key, key) != 0)
        e = e->next;
    return e;
}

static et_status
remember(struct etk_blas *blas, const char *key, const struct etk_choice *choice)
{
    size_t bytes = strlen(key) + 1;
    struct entry *e = calloc(1, sizeof *e + bytes);
    if (!e)
        return ET_ENOMEM;
    e->choice = *choice;
    memcpy(e->key, key, bytes);
    e->next = blas->known;
    blas->known = e;
    return ET_OK;
}

/* What an earlier process chose, if this cuBLASLt still takes it. */
static bool
read_choice(struct et_device_handle *d, const struct etk_gemm *g, const char *key,
            struct etk_choice *out)
{
    void *bytes = NULL;
    size_t size = 0;
    if (!etk_cache_read("product", key, &bytes, &size))
        return false;
    bool fits = size == sizeof *out;
    if (fits)
        memcpy(out, bytes, sizeof *out);
    free(bytes);
    cublasLtMatmulHeuristicResult_t result;
    memset(&result, 0, sizeof result);
    return fits && out->workspace <= MOST_WORKSPACE &&
           cublasLtMatmulAlgoCheck(d->blas->handle, g->op, g->b, g->a, g->y, g->y,
                                   &out->algo, &result) == CUBLAS_STATUS_SUCCESS &&
           result.workspaceSize <= out->workspace;
}

/* ---- what cuBLASLt has ---- */

/* Sums in f32, put together in an order of its own: what the mask asks for, seen to in
 * the algorithms that say how they do it. */
static bool
may_take(const cublasLtMatmulHeuristicResult_t *r)
{
    int32_t parts = 1;
    uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_NONE;
    size_t written;
    bool tells = cublasLtMatmulAlgoConfigGetAttribute(
                     &r->algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &parts, sizeof parts,
                     &written) == CUBLAS_STATUS_SUCCESS &&
                 cublasLtMatmulAlgoConfigGetAttribute(
                     &r->algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme,
                     sizeof scheme, &written) == CUBLAS_STATUS_SUCCESS;
    return r->state == CUBLAS_STATUS_SUCCESS && r->workspaceSize <= MOST_WORKSPACE &&
           (!tells || parts <= 1 || scheme == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
}

/* Fills OUT with what may be taken, cuBLASLt's first choice first; ENOTSUP if
 * nothing. */
static et_status
ask(struct et_device_handle *d, const struct etk_gemm *g, unsigned align,
    struct etk_choice out[MOST_TRIED], int *n_out)
{
    static const cublasLtMatmulPreferenceAttributes_t alignments[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
    };
    uint32_t bytes = align;
    for (size_t i = 0; i < sizeof alignments / sizeof alignments[0]; i++)
        ET_TRY(set_preference(d, alignments[i], &bytes, sizeof bytes));
    cublasLtMatmulHeuristicResult_t result[MOST_TRIED];
    memset(result, 0, sizeof result);
    int n = 0;
    cublasStatus_t code =
        cublasLtMatmulAlgoGetHeuristic(d->blas->handle, g->op, g->b, g->a, g->y, g->y,
                                       d->blas->preference, MOST_TRIED, result, &n);
    if (code != CUBLAS_STATUS_SUCCESS && code != CUBLAS_STATUS_NOT_SUPPORTED)
        return etk_fail(d, ETK_BLAS, (int)code, "cublasLtMatmulAlgoGetHeuristic");
    *n_out = 0;
    for (int i = 0; code == CUBLAS_STATUS_SUCCESS && i < n; i++)
        if (may_take(&result[i]))
            out[(*n_out)++] = (struct etk_choice){.algo = result[i].algo,
                                                  .workspace = result[i].workspaceSize};
    return *n_out > 0 ? ET_OK : ET_ENOTSUP;
}

/* ---- running ---- */

et_status
etk_blas_run(struct et_device_handle *d, struct etk_gemm *g,
             const struct etk_choice *choice, const struct etk_gemm_operands *o,
             void *ws, cudaStream_t stream)
{
    static const float one = 1, zero = 0;
    if (o->vector)
        ET_TRY(etk_gemm_set_vector(d, g, o->vector));
    if (o->aux)
        ET_TRY(etk_gemm_set_aux(d, g, o->aux));
    TRY_BLAS(d, cublasLtMatmul(d->blas->handle, g->op, &one, o->b, g->b, o->a, g->a,
                               &zero, o->y, g->y, o->y, g->y, &choice->algo, ws,
                               choice->workspace, stream));
    return ET_OK;
}

/* ---- timing ---- */

/* Operands to time a shape on. */
struct scratch {
    struct etk_trial trial;
    struct etk_gemm_operands at;
    char *ws;
};

/* Elements from the first to the last of SIDE, of ROWS x COLUMNS. */
static int64_t
extent(const struct etk_gemm_side *side, int64_t rows, int64_t columns, int64_t batch)
{
    int64_t inner = side->turned ? rows : columns,
            outer = side->turned ? columns : rows;
    return (batch - 1) * side->batch + (outer - 1) * side->ld + inner;
}

/* False where memory is short. The caller closes the trial in either case. */
static bool
take_scratch(struct et_device_handle *d, const struct etk_gemm_shape *s,
             struct scratch *out)
{
    size_t in = et_dtype_size(s->in), to = et_dtype_size(s->out);
    int64_t count_a = extent(&s->a, s->m, s->k, s->batch);
    int64_t count_b = extent(&s->b, s->k, s->n, s->batch);
    int64_t count_y = extent(&s->y, s->m, s->n, s->batch);
    int64_t count_vector = s->m > s->n ? s->m : s->n;
    int64_t count_aux = etk_gemm_has_aux(s) ? s->m * s->aux_ld : 0;
    size_t at_b = etk_round_up((size_t)count_a * in);
    size_t at_vector = at_b + etk_round_up((size_t)count_b * in);
    size_t at_aux = at_vector + etk_round_up((size_t)count_vector * to);
    size_t at_y = at_aux + etk_round_up((size_t)count_aux * to);
    size_t at_ws = at_y + etk_round_up((size_t)count_y * to);
    const struct {
        size_t at;
        int64_t count;
        enum et_dtype dtype;
    } parts[] = {{0, count_a, s->in},
                 {at_b, count_b, s->in},
                 {at_vector, count_vector, s->out},
                 {at_aux, count_aux, s->out}};
    memset(out, 0, sizeof *out);
    if (!etk_trial_open(d, at_ws + MOST_WORKSPACE, &out->trial))
        return false;
    char *block = out->trial.block;
    out->at = (struct etk_gemm_operands){
        .a = block,
        .b = block + at_b,
        .vector = etk_gemm_has_vector(s) ? block + at_vector : NULL,
        .aux = etk_gemm_has_aux(s) ? block + at_aux : NULL,
        .y = block + at_y,
    };
    out->ws = block + at_ws;
    for (int i = 0; i < 4; i++)
        if (parts[i].count > 0 &&
            etk_launch_noise(parts[i].dtype, block + parts[i].at, parts[i].count,
                             (uint64_t)i + 1, d->gpu.sm_count,
                             d->stream) != cudaSuccess)
            return false;
    return true;
}

/* An algorithm to be run. */
struct attempt {
    struct et_device_handle *dev;
    struct etk_gemm *gemm;
    const struct etk_choice *choice;
    const struct scratch *scratch;
};

static et_status
run_choice(void *data)
{
    const struct attempt *a = data;
    return etk_blas_run(a->dev, a->gemm, a->choice, &a->scratch->at, a->scratch->ws,
                        a->dev->stream);
}

/* An algorithm that does not run after all is left out; ENOTSUP where that is each. */
static et_status
time_all(struct et_device_handle *d, struct etk_gemm *g, const struct scratch *s,
         const struct etk_choice *choice, int n, int *best)
{
    float least = INFINITY;
    *best = -1;
    for (int i = 0; i < n; i++) {
        float ms;
        struct attempt a = {d, g, &choice[i], s};
        et_status status = etk_trial_measure(d, &s->trial, run_choice, &a, least, &ms);
        if (status == ET_EDEVICE)
            return status;
        if (status == ET_OK && ms < least) {
            least = ms;
            *best = i;
        }
    }
    return *best < 0 ? ET_ENOTSUP : ET_OK;
}

/* Which of N choices is the fastest. TIMED: false where there was no room to find out,
 * and the first is taken. */
static et_status
pick(struct et_device_handle *d, const struct etk_gemm_shape *shape, struct etk_gemm *g,
     const struct etk_choice *choice, int n, int *best, bool *timed)
{
    struct scratch s;
    et_status status = ET_OK;
    *best = 0;
    *timed = take_scratch(d, shape, &s);
    if (*timed)
        status = time_all(d, g, &s, choice, n, best);
    etk_trial_close(d, &s.trial);
    return status;
}

/* ---- choosing ---- */

/* The alignment of vector and aux is told by an address. */
static et_status
choose(struct et_device_handle *d, const struct etk_gemm_shape *shape,
       struct etk_gemm *g, const char *key, unsigned align, struct etk_choice *out)
{
    bool timed = align >= ETK_WIDE && etk_may_time(d);
    if (etk_gemm_has_vector(shape))
        ET_TRY(etk_gemm_set_vector(d, g, (void *)(uintptr_t)align));
    if (etk_gemm_has_aux(shape))
        ET_TRY(etk_gemm_set_aux(d, g, (void *)(uintptr_t)align));
    if (timed && read_choice(d, g, key, out))
        return ET_OK;
    struct etk_choice choice[MOST_TRIED];
    int n = 0, best = 0;
    ET_TRY(ask(d, g, align, choice, &n));
    if (timed && n > 1)
        ET_TRY(pick(d, shape, g, choice, n, &best, &timed));
    *out = choice[best];
    if (timed)
        etk_cache_write("product", key, out, sizeof *out);
    return ET_OK;
}

et_status
etk_blas_choose(struct et_device_handle *d, const struct etk_gemm_shape *shape,
                struct etk_gemm *g, unsigned align, struct etk_choice *out)
{
    char key[ETK_GEMM_KEY];
    ET_TRY(open_blas(d));
    etk_blas_key(d, shape, align, key);
    const struct entry *known = find(d->blas, key);
    if (known) {
        *out = known->choice;
        return ET_OK;
    }
    memset(out, 0, sizeof *out);
    ET_TRY(choose(d, shape, g, key, align, out));
    return remember(d->blas, key, out);
}

void
etk_blas_describe(const struct etk_choice *choice, char *out, size_t size)
{
    int32_t id = -1, parts = 1;
    uint32_t tile = 0;
    size_t written;
    (void)cublasLtMatmulAlgoConfigGetAttribute(&choice->algo, CUBLASLT_ALGO_CONFIG_ID,
                                               &id, sizeof id, &written);
    (void)cublasLtMatmulAlgoConfigGetAttribute(
        &choice->algo, CUBLASLT_ALGO_CONFIG_TILE_ID, &tile, sizeof tile, &written);
    (void)cublasLtMatmulAlgoConfigGetAttribute(
        &choice->algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &parts, sizeof parts, &written);
    snprintf(out, size, "cuBLASLt:%d tile %u, %d part%s", (int)id, (unsigned)tile,
             (int)parts, parts == 1 ? "" : "s");
}
