/* SPDX-License-Identifier: Apache-2.0 */
/* weight_file.h: a file or folder of weights open for reading, the values of its
 * tensors, and a file that takes another's place when it is whole. */
#ifndef ETI_MODELS_WEIGHT_FILE_H
#define ETI_MODELS_WEIGHT_FILE_H

#include "core/data/file.h"
#include "core/models/safetensors.h"

struct eti_weight_file {
    struct et_ctx *cx;
    struct eti_file file; /* of a folder: fd -1, and the size of all its files */
    struct eti_st_header header;
    int64_t data_at;               /* where the data begin */
    struct eti_weight_file *shard; /* of a folder: its files, whose tensors the header
                                      lists one file after the other; owned */
    int n_shards;
};

/* Opens PATH and reads its header strictly: a safetensors file, or a folder as Hugging
 * Face has it (weight_folder.h). EFORMAT where it is neither, ENOENT, EIO. On failure
 * *OUT is closed. */
ET_NODISCARD et_status eti_weight_file_open(struct et_ctx *cx, const char *path,
                                            struct eti_weight_file *out);
/* The same of a file alone: a folder is EFORMAT. */
ET_NODISCARD et_status eti_weight_file_open_one(struct et_ctx *cx, const char *path,
                                                struct eti_weight_file *out);
/* Reads N bytes of T as they lie, from its byte AT. EIO. */
ET_NODISCARD et_status eti_weight_file_read(const struct eti_weight_file *f,
                                            const struct eti_st_tensor *t, int64_t at,
                                            void *out, int64_t n);
void eti_weight_file_close(struct eti_weight_file *f);

/* N elements at RAW become doubles, exactly but for an I64 past 2^53. */
void eti_widen(enum et_dtype dtype, const void *raw, int64_t n, double *out);
/* N doubles become elements of DTYPE, a float of 4 or 2 bytes, rounded to nearest, ties
 * to even. Returns how many finite ones became infinite. */
int64_t eti_narrow(enum et_dtype dtype, const double *v, int64_t n, void *raw);

/* ---- a file being written ---- */

struct eti_draft {
    struct et_ctx *cx;
    int fd;
    const char *path; /* borrowed */
    char temporary[ETI_PATH_MAX];
};

/* Begins a file beside PATH. EIO, EINVAL for a path too long. */
ET_NODISCARD et_status eti_draft_open(struct et_ctx *cx, const char *path,
                                      struct eti_draft *out);
/* Where STATUS is OK, puts it on the disk and in the place of PATH; else removes it.
 * STATUS, or EIO. */
ET_NODISCARD et_status eti_draft_close(struct eti_draft *d, et_status status);

#endif
