/* SPDX-License-Identifier: Apache-2.0 */
/* What cuBLASLt is told of products, by the library itself: descriptions need no GPU.
 * Where the toolkit is not installed there is no library to ask. */
#include "t/tap.h"

#ifndef WITH_CUBLASLT
int
main(void)
{
    skip_all("etude was built without CUDA's toolkit");
    return done();
}
#else

#include <string.h>

#include "kernels/cuda/gemm.h"
#include "t/kernels/blas_names.h"

/* ---- the simulator's header ---- */

static const struct {
    const char *name;
    long value;
} names[] = {
#define NAME(x) {#x, (long)(x)},
#define SIZE(x) {"the size of " #x, (long)sizeof(x)},
    BLAS_NAMES(NAME, SIZE)
#undef NAME
#undef SIZE
};

static void
test_names(void)
{
    int differ = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].value != simulated_names[i]) {
            diag("%s: %ld, simulated as %ld", names[i].name, names[i].value,
                 simulated_names[i]);
            differ++;
        }
    is_int(differ, 0, "the simulator's codes are cuBLASLt's");
}

/* ---- shapes ---- */

/* Products of GPT-2, forward and backward, and some that are awkward. */
static const struct {
    const char *what;
    struct etk_gemm_shape s;
} shapes[] = {
    {"a linear layer with bias",
     {.in = ET_BF16,
      .out = ET_BF16,
      .epilogue = CUBLASLT_EPILOGUE_BIAS,
      .m = 65536,
      .k = 768,
      .n = 3072,
      .batch = 1,
      .a = {.ld = 768},
      .b = {.turned = true, .ld = 768},
      .y = {.ld = 3072}}},
    {"the gradient of its input",
     {.in = ET_BF16,
      .out = ET_BF16,
      .m = 65536,
      .k = 3072,
      .n = 768,
      .batch = 1,
      .a = {.ld = 3072},
      .b = {.ld = 768},
      .y = {.ld = 768}}},
    {"the gradient of its weight, in f32",
     {.in = ET_BF16,
      .out = ET_F32,
      .m = 3072,
      .k = 65536,
      .n = 768,
      .batch = 1,
      .a = {.turned = true, .ld = 3072},
      .b = {.ld = 768},
      .y = {.ld = 768}}},
    {"a head of 50257 classes",
     {.in = ET_F16,
      .out = ET_F32,
      .epilogue = CUBLASLT_EPILOGUE_BIAS,
      .m = 4096,
      .k = 768,
      .n = 50257,
      .batch = 1,
      .a = {.ld = 768},
      .b = {.turned = true, .ld = 768},
      .y = {.ld = 50257}}},
    {"a batch of turned matrices in TF32",
     {.in = ET_F32,
      .out = ET_F32,
      .tf32 = true,
      .m = 7,
      .k = 31,
      .n = 5,
      .batch = 6,
      .a = {.turned = true, .ld = 7, .batch = 217},
      .b = {.turned = true, .ld = 31, .batch = 155},
      .y = {.ld = 5, .batch = 35}}},
    {"a batch with one matrix for all",
     {.in = ET_F32,
      .out = ET_F32,
      .m = 3,
      .k = 5,
      .n = 2,
      .batch = 1000,
      .a = {.ld = 5, .batch = 0},
      .b = {.ld = 2, .batch = 10},
      .y = {.ld = 2, .batch = 6}}},
    {"a linear layer, gelu and what it is taken of",
     {.in = ET_BF16,
      .out = ET_BF16,
      .epilogue = CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
      .m = 65536,
      .k = 768,
      .n = 3072,
      .batch = 1,
      .a = {.ld = 768},
      .b = {.turned = true, .ld = 768},
      .y = {.ld = 3072},
      .aux_ld = 3072}},
    {"gelu for inference, without bias",
     {.in = ET_F32,
      .out = ET_F32,
      .epilogue = CUBLASLT_EPILOGUE_GELU,
      .m = 64,
      .k = 48,
      .n = 96,
      .batch = 1,
      .a = {.ld = 48},
      .b = {.ld = 96},
      .y = {.ld = 96}}},
    {"the gradient through gelu, and of the bias before it",
     {.in = ET_F16,
      .out = ET_F16,
      .epilogue = CUBLASLT_EPILOGUE_DGELU_BGRAD,
      .m = 65536,
      .k = 768,
      .n = 3072,
      .batch = 1,
      .a = {.ld = 768},
      .b = {.ld = 3072},
      .y = {.ld = 3072},
      .aux_ld = 3072}},
    {"the gradients of a weight and a bias, from our a",
     {.in = ET_BF16,
      .out = ET_BF16,
      .epilogue = CUBLASLT_EPILOGUE_BGRADB,
      .m = 3072,
      .k = 65536,
      .n = 768,
      .batch = 1,
      .a = {.turned = true, .ld = 3072},
      .b = {.ld = 768},
      .y = {.ld = 768}}},
    {"the same of a turned weight, from our b",
     {.in = ET_BF16,
      .out = ET_BF16,
      .epilogue = CUBLASLT_EPILOGUE_BGRADA,
      .m = 768,
      .k = 65536,
      .n = 3072,
      .batch = 1,
      .a = {.turned = true, .ld = 768},
      .b = {.ld = 3072},
      .y = {.ld = 3072}}},
    {"one number",
     {.in = ET_F32,
      .out = ET_F32,
      .epilogue = CUBLASLT_EPILOGUE_BIAS,
      .m = 1,
      .k = 1,
      .n = 1,
      .batch = 1,
      .a = {.ld = 1},
      .b = {.ld = 1},
      .y = {.ld = 1}}},
};

/* What the library says a layout is. */
static bool
is_layout(cublasLtMatrixLayout_t x, int64_t type, uint64_t rows, uint64_t cols,
          const struct etk_gemm_side *side, int64_t batch)
{
    uint32_t got_type = 0;
    uint64_t got_rows = 0, got_cols = 0;
    int64_t ld = 0, stride = 0;
    int32_t count = 0, order = -1;
    size_t n;
    const struct {
        cublasLtMatrixLayoutAttribute_t which;
        void *to;
        size_t size;
    } rows_of[] = {
        {CUBLASLT_MATRIX_LAYOUT_TYPE, &got_type, sizeof got_type},
        {CUBLASLT_MATRIX_LAYOUT_ROWS, &got_rows, sizeof got_rows},
        {CUBLASLT_MATRIX_LAYOUT_COLS, &got_cols, sizeof got_cols},
        {CUBLASLT_MATRIX_LAYOUT_LD, &ld, sizeof ld},
        {CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride},
        {CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count},
        {CUBLASLT_MATRIX_LAYOUT_ORDER, &order, sizeof order},
    };
    for (size_t i = 0; i < sizeof rows_of / sizeof rows_of[0]; i++)
        if (cublasLtMatrixLayoutGetAttribute(x, rows_of[i].which, rows_of[i].to,
                                             rows_of[i].size,
                                             &n) != CUBLAS_STATUS_SUCCESS)
            return false;
    return got_type == (uint32_t)type && got_rows == rows && got_cols == cols &&
           ld == side->ld && stride == side->batch && count == batch &&
           order == CUBLASLT_ORDER_COL;
}

static int64_t
type_of(enum et_dtype dtype)
{
    return dtype == ET_BF16 ? CUDA_R_16BF : dtype == ET_F16 ? CUDA_R_16F : CUDA_R_32F;
}

static bool
has(const struct etk_gemm *g, cublasLtMatmulDescAttributes_t which, int64_t want)
{
    int32_t got = -1;
    size_t n;
    return cublasLtMatmulDescGetAttribute(g->op, which, &got, sizeof got, &n) ==
               CUBLAS_STATUS_SUCCESS &&
           got == want;
}

static bool
points(const struct etk_gemm *g, cublasLtMatmulDescAttributes_t which, const void *want)
{
    const void *got = NULL;
    size_t n;
    return cublasLtMatmulDescGetAttribute(g->op, which, &got, sizeof got, &n) ==
               CUBLAS_STATUS_SUCCESS &&
           got == want;
}

static void
test_shape(const char *what, const struct etk_gemm_shape *s)
{
    struct etk_gemm g;
    bool opened = etk_gemm_open(NULL, s, &g) == ET_OK;
    ok(opened, "cuBLASLt takes the description of %s", what);
    if (!opened)
        return etk_gemm_close(&g);
    uint64_t m = (uint64_t)s->m, n = (uint64_t)s->n, k = (uint64_t)s->k;
    ok(is_layout(g.b, type_of(s->in), s->b.turned ? k : n, s->b.turned ? n : k, &s->b,
                 s->batch) &&
           is_layout(g.a, type_of(s->in), s->a.turned ? m : k, s->a.turned ? k : m,
                     &s->a, s->batch) &&
           is_layout(g.y, type_of(s->out), n, m, &s->y, s->batch),
       "and has the matrices by columns");
    ok(has(&g, CUBLASLT_MATMUL_DESC_TRANSA, s->b.turned ? CUBLAS_OP_T : CUBLAS_OP_N) &&
           has(&g, CUBLASLT_MATMUL_DESC_TRANSB,
               s->a.turned ? CUBLAS_OP_T : CUBLAS_OP_N) &&
           has(&g, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE,
               s->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F) &&
           has(&g, CUBLASLT_MATMUL_DESC_SCALE_TYPE, CUDA_R_32F) &&
           has(&g, CUBLASLT_MATMUL_DESC_EPILOGUE,
               s->epilogue ? (int64_t)s->epilogue : CUBLASLT_EPILOGUE_DEFAULT),
       "and the operation, with sums in f32");
    if (etk_gemm_has_vector(s))
        ok(has(&g, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(s->out)) &&
               etk_gemm_set_vector(NULL, &g, &g) == ET_OK &&
               points(&g, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &g),
           "and a vector of the result's dtype");
    int64_t ld = 0;
    size_t written;
    if (etk_gemm_has_aux(s))
        ok(cublasLtMatmulDescGetAttribute(g.op, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD,
                                          &ld, sizeof ld,
                                          &written) == CUBLAS_STATUS_SUCCESS &&
               ld == s->aux_ld && ld % ETK_AUX_LD == 0 && ld >= s->n &&
               has(&g, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, -1) &&
               etk_gemm_set_aux(NULL, &g, &g) == ET_OK &&
               points(&g, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &g),
           "and an auxiliary matrix that lies as the result does");
    etk_gemm_close(&g);
}

int
main(void)
{
    test_names();
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        test_shape(shapes[i].what, &shapes[i].s);
    return done();
}
#endif
