/* SPDX-License-Identifier: Apache-2.0 */
/* pth.h: what torch.save writes: a zip archive of a pickle and of the arrays that it
 * names. Read as a file of weights; nothing in it is executed. */
#ifndef ETI_MODELS_PTH_H
#define ETI_MODELS_PTH_H

#include "core/models/safetensors.h"

struct eti_file;

/* The tensors of F, whose begin and end are places in the file. EFORMAT: it lies, holds
 * more than tensors, or a tensor does not lie row by row; EIO, ENOMEM. Ends with
 * eti_st_release. */
ET_NODISCARD et_status eti_pth_read(struct et_ctx *cx, const struct eti_file *f,
                                    struct eti_st_header *out);

#endif
