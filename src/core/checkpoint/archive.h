/* SPDX-License-Identifier: Apache-2.0 */
/* archive.h: the items of a checkpoint in host memory. Internal half of
 * etude/archive.h. */
#ifndef ETI_CHECKPOINT_ARCHIVE_H
#define ETI_CHECKPOINT_ARCHIVE_H

#include "etude/archive.h"

enum {
    ETI_ARCHIVE_PATH = 512, /* bytes of a path, the final zero included */
};

/* One value. Its path begins with the part of the run that it is of: "model/fc.weight",
 * "optimizer/exp_avg/fc.weight", "algorithms/ema/weights", "trainer/ba". */
struct eti_archive_item {
    char *path;          /* owned */
    struct et_desc desc; /* of DATA: as the tensor lay (saved), row-major (read) */
    void *data;          /* saved: owned; read: within the archive's buffers */
    size_t capacity;     /* of an owned DATA */
    bool is_number;      /* not a tensor of the device */
    bool taken;          /* loading: somebody asked for it */
    bool ignored;        /* loading: whoever asks for it keeps what he has */
};

struct json_t;

struct et_archive {
    struct et_ctx *cx;
    enum et_archive_mode mode;
    char prefix[ETI_ARCHIVE_PATH]; /* "algorithms/ema/" */
    size_t length;                 /* of it */
    struct eti_archive_item *item; /* owned; read: in the order of their paths */
    int64_t n, capacity;
    bool counts; /* saving: BYTES grows by each value's, and nothing is kept */
    size_t bytes;
    const char *const *ignore; /* saving: patterns of paths that are left out; borrowed,
                                  NULL-terminated; NULL: none */
    uint64_t used;             /* bit k: something fits pattern k */
    const struct json_t *left_out; /* loading: what of a path that is not there may be:
                                      a list of such patterns; borrowed; NULL: none */
    bool lenient;       /* loading: so does who asks for a parameter that is unlike */
    const char *source; /* for messages: the checkpoint's name; borrowed */
};

/* Empty, to save: begins anew, and takes the memory of the items that come again in the
 * same order. */
void eti_archive_begin(struct et_archive *a, struct et_ctx *cx);
/* After the last value of a save: forgets items that did not come again. EINTERNAL when
 * two have one path. */
ET_NODISCARD et_status eti_archive_end(struct et_archive *a);
/* For who reads: adds an item that borrows DATA, row-major. */
ET_NODISCARD et_status eti_archive_add(struct et_archive *a, const char *path,
                                       const struct et_desc *desc, void *data);
/* When all are added. EFORMAT for a path given twice. */
ET_NODISCARD et_status eti_archive_sort(struct et_archive *a);
/* PATTERN fits PATH or a place that it lies in; '*' goes over slashes. Composer writes
 * "state/" before all of them. */
bool eti_archive_path_fits(const char *pattern, const char *path);
/* Loading: is anything below the place where we are? Saving: true. */
bool eti_archive_has_place(const struct et_archive *a);
struct eti_archive_item *eti_archive_find(const struct et_archive *a, const char *path);
void eti_archive_release(struct et_archive *a);

/* The row-major elements of an item into ROWS, which has as many bytes. */
void eti_archive_item_rows(const struct eti_archive_item *item, void *rows);
/* Do its elements lie in that order already? */
bool eti_archive_item_is_rows(const struct eti_archive_item *item);
/* Its floats are all finite. */
bool eti_archive_item_is_finite(const struct eti_archive_item *item);

#endif
