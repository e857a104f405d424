/* SPDX-License-Identifier: Apache-2.0 */
/* npy.h: NumPy's arrays in .npy files. */
#ifndef ETI_DATA_NPY_H
#define ETI_DATA_NPY_H

#include "etude/types.h"

/* What the header of a .npy file says. */
struct eti_npy {
    enum et_dtype dtype;
    int ndim;
    int64_t shape[ET_MAX_DIMS];
    int64_t header; /* bytes before the numbers, which are row-major */
    int64_t bytes;  /* of the numbers */
};

/* Reads the header that the N bytes of TEXT begin with. EFORMAT, with why in WHY: it is
 * none, or of a type or an order that is not read. */
ET_NODISCARD et_status eti_npy_parse(const uint8_t *text, int64_t n,
                                     struct eti_npy *out, struct et_error *why);

#endif
