/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.h: copies of a leaf's memory as it lies, for who converts it later. */
#ifndef ETI_GRAPH_TENSOR_H
#define ETI_GRAPH_TENSOR_H

#include "etude/tensor.h"

/* The memory of T, dense in some order, into DST of et_desc_bytes(&t->desc): no element
 * changes its place. Waits for the device. */
ET_NODISCARD et_status eti_tensor_copy_out(struct et_ctx *cx, const struct et_tensor *t,
                                           void *dst);
/* BYTES of DEV's memory from SRC to DST, in stream order: does not wait. */
ET_NODISCARD et_status eti_device_copy(struct et_device *dev, void *dst,
                                       const void *src, size_t bytes);
/* Elements that lie as D says into row-major order. */
void eti_desc_to_rows(const struct et_desc *d, const void *array, void *rows);

#endif
