/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors.h: the header of a safetensors file. Internal; see model.h. */
#ifndef ETI_MODELS_SAFETENSORS_H
#define ETI_MODELS_SAFETENSORS_H

#include <stdint.h>

#include "etude/ctx.h"
#include "etude/types.h"

enum { ETI_ST_PREFIX = 8, ETI_ST_MAX_DIMS = 8 };

struct eti_st_limits {
    int64_t header_bytes;
    int64_t tensors;
};
/* RELIABILITY 3: 16 MiB and 100,000 tensors. */
extern const struct eti_st_limits eti_st_limits;

struct eti_st_tensor {
    const char *name;    /* borrowed: from the header's JSON, or the caller's */
    enum et_dtype dtype; /* never ET_NONE */
    int ndim;            /* 0 .. ETI_ST_MAX_DIMS */
    int64_t shape[ETI_ST_MAX_DIMS];
    int64_t begin, end; /* bytes, from the first one behind the header */
    int shard;          /* which file of a folder it is in; else 0 */
};

struct eti_st_header {
    struct et_ctx *cx;
    struct json_t *json;     /* owned; the names are its */
    struct eti_st_tensor *v; /* owned; in the order of their data, without a hole */
    int64_t n;
    char *names; /* owned; NULL: they are the JSON's */
};

/* Is S a name that a model could have and that a terminal can show? */
bool eti_st_is_name(const char *s);

/* How long the header is that follows the first eight bytes of a file of FILE_BYTES.
 * EFORMAT: longer than LIMITS or the file. NAME is the file's, for messages. */
ET_NODISCARD et_status eti_st_header_bytes(struct et_ctx *cx, const char *name,
                                           const uint8_t prefix[ETI_ST_PREFIX],
                                           int64_t file_bytes,
                                           const struct eti_st_limits *limits,
                                           int64_t *out);
/* Reads a header of N bytes before DATA_BYTES of data: pure but for CX's error and
 * memory. EFORMAT where it lies; *OUT is then empty. Free with eti_st_release. */
ET_NODISCARD et_status eti_st_parse(struct et_ctx *cx, const char *name,
                                    const char *text, int64_t n, int64_t data_bytes,
                                    const struct eti_st_limits *limits,
                                    struct eti_st_header *out);
void eti_st_release(struct eti_st_header *h);

/* What readers show and nobody computes with: text in the header. */
struct eti_st_note {
    const char *name, *value; /* UTF-8; borrowed */
};

/* The prefix and header of N tensors, padded to eight bytes. Free with et_free. */
ET_NODISCARD et_status eti_st_print(struct et_ctx *cx, const struct eti_st_tensor *v,
                                    int64_t n, uint8_t **out, int64_t *bytes);
/* The same with N_NOTES notes. */
ET_NODISCARD et_status eti_st_print_notes(struct et_ctx *cx,
                                          const struct eti_st_tensor *v, int64_t n,
                                          const struct eti_st_note *notes, int n_notes,
                                          uint8_t **out, int64_t *bytes);

struct et_model;
/* et_model_save_weights (model.h) with notes. */
ET_NODISCARD et_status eti_model_save(struct et_ctx *cx, const struct et_model *model,
                                      uint32_t seed, const struct eti_st_note *notes,
                                      int n_notes, const char *path);

/* "[64,3,7,7]"; returns BUF. */
const char *eti_st_shape_text(int ndim, const int64_t *shape, char *buf, size_t n);

#endif
