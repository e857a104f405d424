/* SPDX-License-Identifier: Apache-2.0 */
/* types.h: dtypes, shapes, and the description of a tensor in memory.
 *
 * Shapes and axes are written N,C,H,W for images and K,C,R,S for filters. Only the
 * strides say how they lie in memory: 4-d images and filters are channels-last. */
#ifndef ETUDE_TYPES_H
#define ETUDE_TYPES_H

#include <stdint.h>

#include "etude/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ET_MAX_DIMS 6

/* code, value, text, bytes, safetensors name. U8 also holds booleans (0 or 1). */
#define ET_DTYPE_MAP(X)                                                                \
    X(NONE, 0, "none", 0, "")                                                          \
    X(F32, 1, "f32", 4, "F32")                                                         \
    X(F64, 2, "f64", 8, "F64")                                                         \
    X(BF16, 3, "bf16", 2, "BF16")                                                      \
    X(F16, 4, "f16", 2, "F16")                                                         \
    X(I32, 5, "i32", 4, "I32")                                                         \
    X(I64, 6, "i64", 8, "I64")                                                         \
    X(U8, 7, "u8", 1, "U8")

enum et_dtype {
#define ET_DTYPE_ENUM(code, number, text, bytes, st) ET_##code = number,
    ET_DTYPE_MAP(ET_DTYPE_ENUM)
#undef ET_DTYPE_ENUM
        ET_DTYPE_COUNT
};

size_t et_dtype_size(enum et_dtype dtype);      /* bytes of one element */
const char *et_dtype_name(enum et_dtype dtype); /* "f32" */
bool et_dtype_is_float(enum et_dtype dtype);    /* f32, f64, bf16, f16 */

/* How an n-d array lies in memory. A stride of 0 repeats (a broadcast axis). */
struct et_desc {
    enum et_dtype dtype;
    int ndim;
    int64_t shape[ET_MAX_DIMS];  /* unused entries are 0 */
    int64_t stride[ET_MAX_DIMS]; /* in elements; unused entries are 0 */
};

/* Row-major, or channels-last (N,H,W,C in memory, axes still N,C,H,W; ndim 4 only). */
enum et_format { ET_ROW_MAJOR = 0, ET_CHANNELS_LAST = 1 };

/* Fills the description of a dense array. SHAPE has NDIM entries >= 0. */
void et_desc_init(struct et_desc *d, enum et_dtype dtype, int ndim,
                  const int64_t *shape, enum et_format format);
int64_t et_desc_count(const struct et_desc *d); /* elements; 1 for ndim 0 */
size_t et_desc_bytes(const struct et_desc *d);  /* of the dense array */
bool et_desc_is_dense(const struct et_desc *d); /* some axis order is contiguous */
/* The order of FORMAT is contiguous; strides of axes of length 1 do not matter. */
bool et_desc_is_contiguous(const struct et_desc *d, enum et_format format);
bool et_desc_same_shape(const struct et_desc *a, const struct et_desc *b);
/* The same dtype, shape and strides. */
bool et_desc_equal(const struct et_desc *a, const struct et_desc *b);
/* Dense, with the axis order of LIKE (row-major where LIKE repeats an axis): what an
 * element-wise result looks like. */
void et_desc_like(struct et_desc *d, enum et_dtype dtype, int ndim,
                  const int64_t *shape, const struct et_desc *like);
/* "f32[128,16,28,28]"; returns BUF. */
const char *et_desc_text(const struct et_desc *d, char *buf, size_t n);

#ifdef __cplusplus
}
#endif
#endif
