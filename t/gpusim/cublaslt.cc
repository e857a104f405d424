/* SPDX-License-Identifier: Apache-2.0 */
/* cublaslt.cc: cuBLASLt on the simulated GPU: what its manual demands, and plain loops.
 *
 * D = alpha opA(A) opB(B) + beta C, column-major. Sums are in f32; operands of TF32 are
 * rounded to 10 bits first. An algorithm carries a digest of the problem it was found
 * for, so that one used for another, which a GPU might not notice, is refused. */
#include <cmath>
#include <cstring>

#include "cublasLt.h"
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "state.h"

enum { WORKSPACE_ALIGN = 256, PARTS = 3 };

struct cublasLtContext {
    uint64_t magic;
};
static const uint64_t HANDLE = 0x6c62616c74686421;

struct gpusim_matrix_layout {
    cudaDataType type;
    uint64_t rows, cols;
    int64_t ld, stride;
    int32_t batch;
};

struct gpusim_matmul_desc {
    cublasComputeType_t compute;
    cudaDataType scale;
    int32_t transa, transb, bias_type;
    uint32_t epilogue;
    void *bias, *aux; /* the vector: a bias, or sums */
    int64_t aux_ld;
};

struct gpusim_matmul_preference {
    uint64_t workspace;
    uint32_t schemes, align[4];
};

/* What the 64 bytes of an algorithm mean. */
struct algorithm {
    uint64_t magic, number, parts, scheme, align, problem, workspace, zero;
};
static const uint64_t ALGORITHM = 0x616c676f72697468;
static_assert(sizeof(struct algorithm) == sizeof(cublasLtMatmulAlgo_t), "one for one");

static int delay_ms[8];

void
gpusim_blas_delay(int number, int ms)
{
    delay_ms[number] = ms;
}

/* Copies an attribute of exactly its size. */
template <class T>
static cublasStatus_t
set(T *to, const void *buf, size_t bytes)
{
    if (!buf || bytes != sizeof *to)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, buf, sizeof *to);
    return CUBLAS_STATUS_SUCCESS;
}

template <class T>
static cublasStatus_t
create(T **out, T value)
{
    if (!out)
        return CUBLAS_STATUS_INVALID_VALUE;
    *out = new T(value);
    return CUBLAS_STATUS_SUCCESS;
}

template <class T>
static cublasStatus_t
destroy(T *p)
{
    delete p;
    return CUBLAS_STATUS_SUCCESS;
}

/* Every call that takes a handle: under the lock, unless it was asked to fail. */
static cublasStatus_t
call(const char *name, cublasLtHandle_t handle,
     const std::function<cublasStatus_t()> &body)
{
    if (gpusim_inside)
        return CUBLAS_STATUS_INTERNAL_ERROR;
    gpusim_state &g = gpusim();
    std::lock_guard<std::recursive_mutex> hold(g.lock);
    int asked = (int)gpusim_fault_now(name);
    if (asked)
        return (cublasStatus_t)asked;
    if (g.lost)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    if (!handle || handle->magic != HANDLE)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    return body();
}

/* ---- handles and descriptions ---- */

cublasStatus_t
cublasLtCreate(cublasLtHandle_t *handle)
{
    static cublasLtContext any = {HANDLE};
    return call(__func__, &any, [&] { return create(handle, any); });
}

cublasStatus_t
cublasLtDestroy(cublasLtHandle_t handle)
{
    if (!handle || handle->magic != HANDLE)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    handle->magic = 0;
    return destroy(handle);
}

size_t
cublasLtGetVersion(void)
{
    return 130000;
}

cublasStatus_t
cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
                           uint64_t rows, uint64_t cols, int64_t ld)
{
    return create(layout, gpusim_matrix_layout{type, rows, cols, ld, 0, 1});
}

cublasStatus_t
cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    return destroy(layout);
}

cublasStatus_t
cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                 cublasLtMatrixLayoutAttribute_t attr, const void *buf,
                                 size_t bytes)
{
    switch (attr) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
        return set(&layout->batch, buf, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
        return set(&layout->stride, buf, bytes);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t
cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute,
                         cudaDataType_t scale)
{
    return create(desc,
                  gpusim_matmul_desc{compute, scale, CUBLAS_OP_N, CUBLAS_OP_N, -1,
                                     CUBLASLT_EPILOGUE_DEFAULT, nullptr, nullptr, 0});
}

cublasStatus_t
cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    return destroy(desc);
}

cublasStatus_t
cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                               cublasLtMatmulDescAttributes_t attr, const void *buf,
                               size_t bytes)
{
    switch (attr) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return set(&desc->transa, buf, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return set(&desc->transb, buf, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return set(&desc->epilogue, buf, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return set(&desc->bias, buf, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
        return set(&desc->bias_type, buf, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
        return set(&desc->aux, buf, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
        return set(&desc->aux_ld, buf, bytes);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t
cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *pref)
{
    return create(pref, gpusim_matmul_preference{
                            0, CUBLASLT_REDUCTION_SCHEME_MASK, {256, 256, 256, 256}});
}

cublasStatus_t
cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t pref)
{
    return destroy(pref);
}

cublasStatus_t
cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t pref,
                                     cublasLtMatmulPreferenceAttributes_t attr,
                                     const void *buf, size_t bytes)
{
    switch (attr) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        return set(&pref->workspace, buf, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
        return set(&pref->schemes, buf, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
        return set(&pref->align[attr - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], buf,
                   bytes);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

/* ---- problems ---- */

static size_t
size_of(int type)
{
    return type == CUDA_R_32F ? 4 : 2;
}

struct problem {
    gpusim_matmul_desc op;
    gpusim_matrix_layout a, b, c, d;
    uint64_t m, n, k;
};

static bool
is_known(int type)
{
    return type == CUDA_R_32F || type == CUDA_R_16F || type == CUDA_R_16BF;
}

/* Matrices that lie apart, in a number of them that int32_t holds. */
static bool
is_matrix(const gpusim_matrix_layout &x)
{
    return is_known(x.type) && x.rows && x.cols && x.rows <= INT32_MAX &&
           x.cols <= INT32_MAX && x.ld >= (int64_t)x.rows && x.batch >= 1 &&
           x.stride >= 0;
}

static int64_t
extent_of(const gpusim_matrix_layout &x)
{
    return (int64_t)(x.cols - 1) * x.ld + (int64_t)x.rows;
}

/* The table of types in cublasLtMatmul's manual. */
static bool
are_types(const problem &p)
{
    int in = p.a.type, out = p.d.type;
    bool tf32 = p.op.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    if (p.op.scale != CUDA_R_32F || in != p.b.type || out != p.c.type)
        return false;
    if (!tf32 && p.op.compute != CUBLAS_COMPUTE_32F)
        return false;
    return (out == in || out == CUDA_R_32F) && (!tf32 || in == CUDA_R_32F);
}

/* What an epilogue does: its bits, of which the header makes each name. */
struct epilogue {
    bool known, adds, gelu, dgelu, sums_result, sums_a, sums_b, aux;

    explicit epilogue(uint32_t e)
        : known(false), adds(e & 4), gelu(e & 32), dgelu(e & 64), sums_result(e & 16),
          sums_a(e & 256), sums_b(e & 512), aux(e & 128)
    {
        static const uint32_t all[] = {
            CUBLASLT_EPILOGUE_DEFAULT,   CUBLASLT_EPILOGUE_BIAS,
            CUBLASLT_EPILOGUE_GELU,      CUBLASLT_EPILOGUE_GELU_AUX,
            CUBLASLT_EPILOGUE_GELU_BIAS, CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
            CUBLASLT_EPILOGUE_DGELU,     CUBLASLT_EPILOGUE_DGELU_BGRAD,
            CUBLASLT_EPILOGUE_BGRADA,    CUBLASLT_EPILOGUE_BGRADB};
        for (uint32_t one : all)
            known |= e == one;
    }
    bool vector(void) const
    {
        return adds || sums_result || sums_a || sums_b;
    }
    bool plain(void) const
    {
        return !gelu && !dgelu && !sums_a && !sums_b;
    }
};

/* What the header's comments on epilogues, vectors and auxiliary matrices demand; with
 * more than one matrix NVIDIA promises nothing. */
static cublasStatus_t
check_epilogue(const problem &p)
{
    epilogue e(p.op.epilogue);
    if (!e.known || (!e.plain() && p.d.batch > 1))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (e.vector() && !p.op.bias)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (e.vector() && p.op.bias_type != -1 && p.op.bias_type != (int)p.d.type)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (e.aux && (!p.op.aux || p.op.aux_ld % 8 || p.op.aux_ld < (int64_t)p.m))
        return CUBLAS_STATUS_INVALID_VALUE;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t
read_problem(problem &p, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
             cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
             cublasLtMatrixLayout_t d)
{
    if (!desc || !a || !b || !c || !d)
        return CUBLAS_STATUS_INVALID_VALUE;
    memset(&p, 0, sizeof p);
    p.op = *desc, p.a = *a, p.b = *b, p.c = *c, p.d = *d;
    p.m = d->rows, p.n = d->cols, p.k = desc->transa ? a->rows : a->cols;
    uint64_t left = desc->transa ? a->cols : a->rows;
    uint64_t inner = desc->transb ? b->cols : b->rows;
    uint64_t right = desc->transb ? b->rows : b->cols;
    bool fits = left == p.m && right == p.n && inner == p.k && c->rows == p.m &&
                c->cols == p.n && a->batch == d->batch && b->batch == d->batch &&
                c->batch == d->batch;
    if (!fits || !is_matrix(*a) || !is_matrix(*b) || !is_matrix(*c) || !is_matrix(*d) ||
        (d->batch > 1 && d->stride < extent_of(*d)))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!are_types(p))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    return check_epilogue(p);
}

/* FNV-1a of everything but addresses. */
static uint64_t
digest_of(const problem &p)
{
    uint64_t facts[] = {
        (uint64_t)p.op.compute,
        (uint64_t)p.op.transa,
        (uint64_t)p.op.transb,
        p.op.epilogue,
        (uint64_t)p.a.type,
        (uint64_t)p.d.type,
        p.m,
        p.n,
        p.k,
        (uint64_t)p.a.ld,
        (uint64_t)p.b.ld,
        (uint64_t)p.d.ld,
        (uint64_t)p.a.stride,
        (uint64_t)p.b.stride,
        (uint64_t)p.d.stride,
        (uint64_t)p.d.batch,
        (uint64_t)p.op.aux_ld,
    };
    uint64_t h = 0xcbf29ce484222325u;
    for (uint64_t f : facts)
        for (int i = 0; i < 64; i += 8)
            h = (h ^ (f >> i & 0xff)) * 0x100000001b3u;
    return h;
}

/* ---- algorithms ---- */

static bool
strides_fit(const gpusim_matrix_layout &x, uint64_t align)
{
    uint64_t size = size_of(x.type);
    return (uint64_t)x.ld * size % align == 0 &&
           (x.batch == 1 || (uint64_t)x.stride * size % align == 0);
}

static bool
is_wide(const problem &p, const gpusim_matmul_preference &pref)
{
    for (uint32_t align : pref.align)
        if (align < 16)
            return false;
    epilogue e(p.op.epilogue);
    bool bias = !e.vector() || (uintptr_t)p.op.bias % 16 == 0;
    bool aux = !e.aux || (uintptr_t)p.op.aux % 16 == 0;
    return bias && aux && strides_fit(p.a, 16) && strides_fit(p.b, 16) &&
           strides_fit(p.d, 16);
}

cublasStatus_t
cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                               cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                               cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                               cublasLtMatmulPreference_t pref, int requested,
                               cublasLtMatmulHeuristicResult_t *results, int *returned)
{
    return call(__func__, handle, [&] {
        problem p;
        if (!pref || requested <= 0 || !results || !returned)
            return CUBLAS_STATUS_INVALID_VALUE;
        cublasStatus_t status = read_problem(p, desc, a, b, c, d);
        if (status)
            return status;
        uint64_t problem = digest_of(p);
        uint64_t parts = p.m * p.n * (uint64_t)p.d.batch * PARTS * sizeof(float);
        bool whole = epilogue(p.op.epilogue).plain();
        int n = 0;
        auto add = [&](algorithm x, cublasStatus_t state) {
            if (n == requested)
                return;
            cublasLtMatmulHeuristicResult_t r = {};
            x.magic = ALGORITHM, x.problem = problem;
            memcpy(&r.algo, &x, sizeof x);
            r.workspaceSize = x.workspace;
            r.state = state;
            results[n++] = r;
        };
        if (is_wide(p, *pref))
            add({0, 1, 1, CUBLASLT_REDUCTION_SCHEME_NONE, 16, 0, 0, 0},
                CUBLAS_STATUS_SUCCESS);
        add({0, 5, 1, CUBLASLT_REDUCTION_SCHEME_NONE, 1, 0, 0, 0},
            CUBLAS_STATUS_NOT_SUPPORTED);
        if (whole && p.k >= 32 && parts <= pref->workspace &&
            (pref->schemes & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE))
            add({0, 2, PARTS, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, 1, 0, parts, 0},
                CUBLAS_STATUS_SUCCESS);
        if (whole && p.k >= 32 && (pref->schemes & CUBLASLT_REDUCTION_SCHEME_INPLACE))
            add({0, 3, PARTS, CUBLASLT_REDUCTION_SCHEME_INPLACE, 1, 0, 0, 0},
                CUBLAS_STATUS_SUCCESS);
        add({0, 4, 1, CUBLASLT_REDUCTION_SCHEME_NONE, 1, 0, 0, 0},
            CUBLAS_STATUS_SUCCESS);
        *returned = n;
        return CUBLAS_STATUS_SUCCESS;
    });
}

static bool
read_algorithm(const cublasLtMatmulAlgo_t *algo, algorithm &x)
{
    if (!algo)
        return false;
    memcpy(&x, algo, sizeof x);
    return x.magic == ALGORITHM && x.number >= 1 && x.number <= 4;
}

cublasStatus_t
cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                        cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                        cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                        const cublasLtMatmulAlgo_t *algo,
                        cublasLtMatmulHeuristicResult_t *result)
{
    return call(__func__, handle, [&] {
        problem p;
        algorithm x;
        cublasStatus_t status = read_problem(p, desc, a, b, c, d);
        if (status)
            return status;
        if (!result || !read_algorithm(algo, x) || x.problem != digest_of(p))
            return CUBLAS_STATUS_INVALID_VALUE;
        result->workspaceSize = x.workspace;
        result->state = CUBLAS_STATUS_SUCCESS;
        return CUBLAS_STATUS_SUCCESS;
    });
}

cublasStatus_t
cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
                                     cublasLtMatmulAlgoConfigAttributes_t attr,
                                     void *buf, size_t bytes, size_t *written)
{
    algorithm x;
    if (!read_algorithm(algo, x) || !buf || bytes != sizeof(uint32_t))
        return CUBLAS_STATUS_INVALID_VALUE;
    uint64_t value = attr == CUBLASLT_ALGO_CONFIG_ID                 ? x.number
                     : attr == CUBLASLT_ALGO_CONFIG_SPLITK_NUM       ? x.parts
                     : attr == CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME ? x.scheme
                                                                     : 0;
    uint32_t narrow = (uint32_t)value;
    memcpy(buf, &narrow, sizeof narrow);
    if (written)
        *written = sizeof narrow;
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- products ---- */

static float
load(const void *p, int type, int64_t at)
{
    switch (type) {
    case CUDA_R_16BF:
        return __bfloat162float(((const __nv_bfloat16 *)p)[at]);
    case CUDA_R_16F:
        return __half2float(((const __half *)p)[at]);
    default:
        return ((const float *)p)[at];
    }
}

static void
store(void *p, int type, int64_t at, float x)
{
    switch (type) {
    case CUDA_R_16BF:
        ((__nv_bfloat16 *)p)[at] = __float2bfloat16_rn(x);
        break;
    case CUDA_R_16F:
        ((__half *)p)[at] = __float2half_rn(x);
        break;
    default:
        ((float *)p)[at] = x;
    }
}

/* To 10 bits behind the point, ties to even; NaN and infinities stay. */
static float
to_tf32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7f800000u) == 0x7f800000u)
        return x;
    bits += 0xfffu + (bits >> 13 & 1);
    bits &= ~0x1fffu;
    memcpy(&x, &bits, sizeof bits);
    return x;
}

/* Matrix I of X by columns; by rows where TURN. */
static std::vector<float>
unpack(const void *p, const gpusim_matrix_layout &x, bool turn, int64_t i, bool tf32)
{
    std::vector<float> out(x.rows * x.cols);
    for (uint64_t c = 0; c < x.cols; c++)
        for (uint64_t r = 0; r < x.rows; r++) {
            float v = load(p, x.type, i * x.stride + (int64_t)c * x.ld + (int64_t)r);
            out[turn ? r * x.cols + c : c * x.rows + r] = tf32 ? to_tf32(v) : v;
        }
    return out;
}

struct pointers {
    const void *a, *b, *c;
    void *vector, *aux, *d, *workspace;
    float alpha, beta;
};

/* 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), and its slope. */
static float
gelu(float x)
{
    float u = 0.7978845608f * (x + 0.044715f * x * x * x);
    return 0.5f * x * (1 + std::tanh(u));
}

static float
gelu_slope(float x)
{
    float u = 0.7978845608f * (x + 0.044715f * x * x * x), t = std::tanh(u);
    float du = 0.7978845608f * (1 + 3 * 0.044715f * x * x);
    return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * du;
}

/* Row R, column C of the result from SUM, which is in f32. */
static float
finish(const problem &p, const epilogue &e, const pointers &at, uint64_t r, uint64_t c,
       float sum)
{
    int64_t place = (int64_t)c * p.op.aux_ld + (int64_t)r;
    if (e.adds)
        sum += load(at.vector, p.d.type, (int64_t)r);
    if (e.gelu && e.aux)
        store(at.aux, p.d.type, place, sum);
    if (e.gelu)
        return gelu(sum);
    return e.dgelu ? sum * gelu_slope(load(at.aux, p.d.type, place)) : sum;
}

/* The vector of sums of an operand over its terms. A is [k][m], B [k][n]. */
static void
sum_terms(const problem &p, const std::vector<float> &x, uint64_t n, void *vector)
{
    for (uint64_t i = 0; i < n; i++) {
        float sum = 0;
        for (uint64_t t = 0; t < p.k; t++)
            sum += x[t * n + i];
        store(vector, p.d.type, (int64_t)i, sum);
    }
}

/* Terms FROM .. TO - 1, added to SUM [n][m]. A is [k][m], B [k][n]. */
static void
add_terms(const problem &p, const std::vector<float> &a, const std::vector<float> &b,
          uint64_t from, uint64_t to, float *sum)
{
    for (uint64_t j = 0; j < p.n; j++)
        for (uint64_t t = from; t < to; t++) {
            float y = b[t * p.n + j];
            const float *x = &a[t * p.m];
            for (uint64_t i = 0; i < p.m; i++)
                sum[j * p.m + i] += x[i] * y;
        }
}

static void
multiply(const problem &p, const algorithm &x, const pointers &at)
{
    bool tf32 = p.op.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    uint64_t size = p.m * p.n;
    epilogue e(p.op.epilogue);
    std::vector<float> sums(e.sums_result ? p.m : 0);
    gpusim().ms += delay_ms[x.number];
    for (int64_t i = 0; i < p.d.batch; i++) {
        std::vector<float> a = unpack(at.a, p.a, p.op.transa, i, tf32);
        std::vector<float> b = unpack(at.b, p.b, !p.op.transb, i, tf32);
        std::vector<float> own(size * x.parts);
        float *part = x.workspace ? (float *)at.workspace + (uint64_t)i * size * x.parts
                                  : own.data();
        std::fill(part, part + size * x.parts, 0.0f);
        for (uint64_t s = 0; s < x.parts; s++)
            add_terms(p, a, b, p.k * s / x.parts, p.k * (s + 1) / x.parts,
                      part + s * size);
        for (uint64_t c = 0; c < p.n; c++)
            for (uint64_t r = 0; r < p.m; r++) {
                float sum = 0;
                for (uint64_t s = 0; s < x.parts; s++)
                    sum += part[s * size + c * p.m + r];
                int64_t place = (int64_t)c * p.d.ld + (int64_t)r;
                sum *= at.alpha;
                if (at.beta != 0)
                    sum += at.beta * load(at.c, p.c.type, i * p.c.stride + place);
                sum = finish(p, e, at, r, c, sum);
                if (e.sums_result)
                    sums[r] += sum;
                store(at.d, p.d.type, i * p.d.stride + place, sum);
            }
        if (e.sums_a || e.sums_b)
            sum_terms(p, e.sums_a ? a : b, e.sums_a ? p.m : p.n, at.vector);
    }
    for (uint64_t r = 0; r < sums.size(); r++)
        store(at.vector, p.d.type, (int64_t)r, sums[r]);
}

/* Is P device memory from there to the end of X, aligned as the algorithm wants? */
static bool
is_operand(const void *p, const gpusim_matrix_layout &x, uint64_t align)
{
    bool whole = false;
    size_t size = size_of(x.type);
    int64_t count = (x.batch - 1) * x.stride + extent_of(x);
    return p && (uintptr_t)p % (align > size ? align : size) == 0 &&
           gpusim_side_of(p, (size_t)count * size, &whole) != GPUSIM_PAGEABLE && whole;
}

static bool
is_vector(const void *p, uint64_t count, int type, uint64_t align)
{
    return is_operand(p, {(cudaDataType)type, count, 1, (int64_t)count, 0, 1}, align);
}

cublasStatus_t
cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
               const void *A, cublasLtMatrixLayout_t a, const void *B,
               cublasLtMatrixLayout_t b, const void *beta, const void *C,
               cublasLtMatrixLayout_t c, void *D, cublasLtMatrixLayout_t d,
               const cublasLtMatmulAlgo_t *algo, void *workspace,
               size_t workspace_bytes, cudaStream_t stream)
{
    return call(__func__, handle, [&] {
        problem p;
        algorithm x;
        cublasStatus_t status = read_problem(p, desc, a, b, c, d);
        if (status)
            return status;
        if (!alpha || !beta || !read_algorithm(algo, x) || x.problem != digest_of(p))
            return CUBLAS_STATUS_INVALID_VALUE;
        epilogue e(p.op.epilogue);
        bool whole = false;
        if (!is_operand(A, p.a, x.align) || !is_operand(B, p.b, x.align) ||
            !is_operand(C, p.c, x.align) || !is_operand(D, p.d, x.align) ||
            (e.vector() &&
             !is_vector(p.op.bias, e.sums_b ? p.n : p.m, p.d.type, x.align)) ||
            (e.aux &&
             !is_operand(p.op.aux, {p.d.type, p.m, p.n, p.op.aux_ld, 0, 1}, x.align)))
            return CUBLAS_STATUS_INVALID_VALUE;
        if (x.workspace &&
            (!workspace || workspace_bytes < x.workspace ||
             (uintptr_t)workspace % WORKSPACE_ALIGN ||
             gpusim_side_of(workspace, x.workspace, &whole) == GPUSIM_PAGEABLE ||
             !whole))
            return CUBLAS_STATUS_INVALID_VALUE;
        pointers at = {A,
                       B,
                       C,
                       p.op.bias,
                       p.op.aux,
                       D,
                       workspace,
                       *(const float *)alpha,
                       *(const float *)beta};
        cudaError_t code = gpusim_enqueue(stream, "cublasLtMatmul",
                                          [p, x, at] { multiply(p, x, at); });
        /* Asked after its launch, it takes what another call left for its own. */
        return code || cudaPeekAtLastError() ? CUBLAS_STATUS_EXECUTION_FAILED
                                             : CUBLAS_STATUS_SUCCESS;
    });
}
