/* SPDX-License-Identifier: Apache-2.0 */
/* mds.h: folders of shards as MosaicML's Streaming writes them: index.json, and files
 * of samples of which each has the same columns.
 *
 * Letters of a shard: N samples; its bytes are N, N + 1 offsets, a text, the samples;
 * all numbers little endian, of 32 bits. A sample is the sizes of its columns that
 * differ in size, and then the columns. */
#ifndef ETI_DATA_MDS_H
#define ETI_DATA_MDS_H

#include "core/data/file.h"

enum { ETI_MDS_COLUMNS = 64, ETI_MDS_NAME = 128 };

struct eti_mds_column {
    char name[ETI_MDS_NAME];
    char encoding[ETI_MDS_NAME]; /* "jpeg", "int", "ndarray:uint16:2048" */
    int64_t size;                /* of all samples; -1: differs */
};
struct eti_mds_shard {
    char raw[2 * ETI_MDS_NAME], zipped[2 * ETI_MDS_NAME]; /* names; "": none */
    int64_t bytes;                                        /* of the raw file */
    int64_t samples;
};
struct eti_mds {
    struct eti_mds_column column[ETI_MDS_COLUMNS];
    int n_columns, n_sized; /* those whose size differs */
    struct eti_mds_shard *shard;
    int64_t n_shards, room;
};

/* Reads index.json, the N bytes of TEXT. EFORMAT, ENOTSUP: why, without the file's
 * name. Free it in any case. */
ET_NODISCARD et_status eti_mds_parse(struct et_ctx *cx, const char *text, int64_t n,
                                     struct eti_mds *out, struct et_error *why);
/* The same of FOLDER/index.json, which errors name. */
ET_NODISCARD et_status eti_mds_read(struct et_ctx *cx, const char *folder,
                                    struct eti_mds *out);
void eti_mds_free(struct et_ctx *cx, struct eti_mds *m);
/* Has FOLDER an index.json that lists shards? */
bool eti_mds_is_folder(struct et_ctx *cx, const char *folder);
/* The place of column NAME, or -1. */
int eti_mds_column(const struct eti_mds *m, const char *name);
/* EINVAL: no column is called so; the hint has all names. */
ET_NODISCARD et_status eti_mds_need_column(struct et_ctx *cx, const struct eti_mds *m,
                                           const char *folder, const char *name,
                                           int *out);
/* FOLDER/train or val, where there is one with an index, else FOLDER; *APART says
 * which. */
ET_NODISCARD et_status eti_mds_folder(struct et_ctx *cx, const char *folder, int split,
                                      char out[ETI_PATH_MAX], bool *apart);

/* The path of shard I's raw file in FOLDER; of one that is there only compressed, in
 * the user's cache, after it was unpacked there. ENOENT; ENOTSUP: built without zstd.
 */
ET_NODISCARD et_status eti_mds_path(struct et_ctx *cx, const char *folder,
                                    const struct eti_mds_shard *shard,
                                    char out[ETI_PATH_MAX]);

/* An open shard. */
struct eti_mds_file {
    struct eti_file file;
    uint32_t *offset; /* [n + 1], ascending, within the file; malloc's, owned */
    int64_t n;
};
/* Checks F, whose file is open, against N samples, and reads its offsets. EFORMAT; EIO;
 * ENOMEM. */
ET_NODISCARD et_status eti_mds_begin(struct eti_mds_file *f, int64_t n,
                                     struct et_error *why);
/* Where column I of sample AT lies. EFORMAT: not within the sample. */
ET_NODISCARD et_status eti_mds_place(const struct eti_mds *m,
                                     const struct eti_mds_file *f, int64_t at, int i,
                                     int64_t *offset, int64_t *bytes,
                                     struct et_error *why);
void eti_mds_end(struct eti_mds_file *f);

/* The whole numbers of arrays. CODE: NumPy's in an array that says it itself. */
struct eti_mds_number {
    const char *name;
    int width; /* bytes */
    int code;
};
extern const struct eti_mds_number eti_mds_numbers[]; /* by eti_mds_number_names */
extern const char *const eti_mds_number_names[];      /* ends with NULL */

/* A column of arrays. */
struct eti_mds_array {
    const struct eti_mds *mds; /* borrowed */
    int column;
    const struct eti_mds_number *kind; /* NULL: each array says it */
    bool has_shape;                    /* the column says it, not each array */
};
bool eti_mds_is_array(const char *encoding);
/* OF_BYTES: the numbers of a column of encoding bytes. EFORMAT: no whole numbers. */
ET_NODISCARD et_status eti_mds_array_init(const struct eti_mds *m, int column,
                                          const struct eti_mds_number *of_bytes,
                                          struct eti_mds_array *out,
                                          struct et_error *why);
/* Where the numbers of sample AT lie, and which they are. EFORMAT, EIO. */
ET_NODISCARD et_status eti_mds_array_place(const struct eti_mds_array *a,
                                           const struct eti_mds_file *f, int64_t at,
                                           const struct eti_mds_number **kind,
                                           int64_t *offset, int64_t *bytes,
                                           struct et_error *why);
/* Widens N of them. Returns the place of the first that is negative or not below BELOW,
 * or -1. */
int64_t eti_mds_widen(const struct eti_mds_number *kind, const uint8_t *bytes,
                      int64_t n, int64_t below, int32_t *out);

/* A number or text that encoding says, of N bytes at DATA, as text to OUT [ROOM].
 * ENOTSUP: another encoding; EFORMAT: another size. */
ET_NODISCARD et_status eti_mds_text(const char *encoding, const uint8_t *data,
                                    int64_t n, char *out, size_t room,
                                    struct et_error *why);

#endif
