/* SPDX-License-Identifier: Apache-2.0 */
/* weights.h: the weights of an ONNX file, in it or, where it would be too large, in a
 * file beside it. Source: onnx/docs/ExternalData.md. */
#ifndef ETI_ONNX_WEIGHTS_H
#define ETI_ONNX_WEIGHTS_H

#include "core/onnx/writing.h"

/* Where weights go, one behind the other. */
struct eti_onnx_weights {
    const char *location; /* of the file beside, as the model names it; NULL: inside */
    int64_t at;           /* bytes of that file so far */
};

/* Bytes of all weights of O as fields of the graph, without those of the file beside,
 * which become w->at; *N: how many there are. */
int64_t eti_onnx_measure(struct eti_onnx *o, struct eti_onnx_weights *w, int *n);
struct eti_draft;
/* Writes them to MODEL, and to BESIDE where there is a location. */
ET_NODISCARD et_status eti_onnx_write_weights(struct eti_onnx *o,
                                              struct eti_onnx_weights *w,
                                              const struct eti_draft *model,
                                              const struct eti_draft *beside);

#endif
