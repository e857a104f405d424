/* SPDX-License-Identifier: Apache-2.0 */
/* onnx.h: a model's evaluation as an ONNX file, which other programs run. */
#ifndef ETI_ONNX_ONNX_H
#define ETI_ONNX_ONNX_H

#include "etude/model.h"

enum { ETI_ONNX_OPSET = 20 };

struct eti_onnx_info {
    int nodes, tensors; /* of the file */
    int64_t bytes;
    int64_t beside; /* bytes of PATH.data, which has the weights; 0: they are in PATH */
    int64_t limit;  /* set by the caller: bytes of a file with the weights in it, at
                       most; 0: 2 GiB, what protocol buffers can have */
};

/* Writes what M, whose parameters are bound on DEV, computes in evaluation to the file
 * PATH, whole or not at all: from "input" f32 [batch,C,H,W] as the model's facts say,
 * or I32 [batch,T] for language, from "attention_mask" and "token_type", I32 [batch,T],
 * where it is a BERT, and from the fields that a network spelled out reads, by their
 * names, to "output". The weights are inside, or in PATH.data where the file would be
 * larger than the limit of INFO, whose other members are zero before. ENOTSUP: ONNX has
 * no operation for something, which is named. EIO. */
ET_NODISCARD et_status eti_onnx_export(struct et_ctx *cx, struct et_model *m,
                                       struct et_device *dev, const char *path,
                                       struct eti_onnx_info *info);

#endif
