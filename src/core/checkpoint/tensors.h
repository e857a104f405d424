/* SPDX-License-Identifier: Apache-2.0 */
/* tensors.h: the tensors of a safetensors file, of a checkpoint, or of a run's newest
 * one, as `etude weights` shows, compares and converts them.
 *
 * Headers are read strictly and nothing is loaded whole. What a checkpoint's MANIFEST
 * has a digest of is held against it while it is read, so that values which did not
 * verify never reach a result. */
#ifndef ETI_CHECKPOINT_TENSORS_H
#define ETI_CHECKPOINT_TENSORS_H

#include "core/checkpoint/store.h"
#include "core/models/weight_file.h"

/* One tensor of a set. */
struct eti_tensor {
    const struct eti_weight_file *file; /* borrowed: of the set */
    const struct eti_st_tensor *t;      /* likewise */
    const char *digest;                 /* XXH3-128 by MANIFEST; NULL: none is known */
};

struct eti_tensors {
    struct et_ctx *cx;
    char path[ETI_PATH_MAX]; /* of the file, or of the checkpoint's folder */
    bool is_checkpoint;
    struct eti_manifest manifest; /* of a checkpoint */
    struct eti_weight_file file[ETI_MANIFEST_FILES];
    int n_files;
    struct eti_tensor *v; /* owned; sorted by name */
    int64_t n;
};

/* What a checkpoint is opened for. */
enum eti_tensors_part {
    ETI_TENSORS_MODEL, /* the model's weights alone */
    ETI_TENSORS_ALL,   /* optimizer and state too */
};

/* Opens PATH: a file or folder of weights (weight_file.h), a folder step-<12 digits>, a
 * folder that holds such ones, or a run's with checkpoints/ in it; of several the
 * newest. ENOENT, EIO, EFORMAT, ENOTSUP for a later format. On failure *OUT is empty;
 * release in any case. */
ET_NODISCARD et_status eti_tensors_open(struct et_ctx *cx, const char *path,
                                        enum eti_tensors_part part,
                                        struct eti_tensors *out);
void eti_tensors_release(struct eti_tensors *s);
const struct eti_tensor *eti_tensors_find(const struct eti_tensors *s,
                                          const char *name);

/* ---- two of them ---- */

struct eti_difference {
    int64_t count;     /* elements compared */
    int64_t different; /* that are not equal; NaN equals NaN */
    double max, rms;   /* of a - b over all elements; infinity where one of the two is
                          not finite and they differ */
};
/* Compares values of one shape, whatever their dtypes. EIO; EFORMAT where one is not
 * what its MANIFEST says. */
ET_NODISCARD et_status eti_tensor_compare(const struct eti_tensor *a,
                                          const struct eti_tensor *b,
                                          struct eti_difference *out);

/* ---- a new file ---- */

struct eti_converted {
    int64_t tensors, bytes; /* of the new file; bytes with its header */
    int64_t overflowed;     /* finite values that became infinite */
};
/* Writes the tensors of S to the safetensors file PATH, those of floats as DTYPE (F32,
 * F16 or BF16, rounded to nearest, ties to even; NONE: as they are), with S's metadata.
 * The file is there whole or not at all. EINVAL where PATH is a file of S, lies in a
 * checkpoint, or is something else than a regular file; EIO, EFORMAT as above. */
ET_NODISCARD et_status eti_tensors_convert(const struct eti_tensors *s,
                                           enum et_dtype dtype, const char *path,
                                           struct eti_converted *out);

#endif
