/* SPDX-License-Identifier: Apache-2.0 */
/* archive.h: named values on their way into a checkpoint, and back.
 *
 * Whoever holds state that later steps depend on has one function that names each of
 * its values. It is called to save, to check that a checkpoint fits, and to load, so
 * that the three can never disagree:
 *
 *     static et_status
 *     archive(struct et_callback *self, struct et_archive *a)
 *     {
 *         struct stopper *own = self->state;
 *         ET_TRY(et_archive_f64(a, "best", &own->best, 1));
 *         return et_archive_time(a, "since", &own->since);
 *     }
 *
 * Saving copies what is there at that moment. Checking writes nothing; loading comes
 * only after every check has passed. Names are unique within their place, without
 * slashes at the ends. */
#ifndef ETUDE_ARCHIVE_H
#define ETUDE_ARCHIVE_H

#include <stdint.h>

#include "etude/tensor.h"
#include "etude/time.h"

#ifdef __cplusplus
extern "C" {
#endif

struct et_archive;

enum et_archive_mode {
    ET_ARCHIVE_SAVE = 0,
    ET_ARCHIVE_CHECK = 1, /* as LOAD, but nothing is written */
    ET_ARCHIVE_LOAD = 2,
};
enum et_archive_mode et_archive_mode(const struct et_archive *a);

/* What follows lies below NAME, until it is left: "algorithms", then "ema". */
ET_NODISCARD et_status et_archive_enter(struct et_archive *a, const char *name);
void et_archive_leave(struct et_archive *a);
/* Checking and loading: does the checkpoint have NAME here, as a value? Saving:
 * true. */
bool et_archive_has(const struct et_archive *a, const char *name);

/* EFORMAT when the checkpoint lacks NAME or holds it with another shape or dtype; the
 * sentence says which. T is a leaf, dense in memory. */
ET_NODISCARD et_status et_archive_tensor(struct et_archive *a, const char *name,
                                         struct et_tensor *t);
/* N numbers at V, exactly. */
ET_NODISCARD et_status et_archive_i64(struct et_archive *a, const char *name,
                                      int64_t *v, int64_t n);
/* The same, of which a checkpoint may hold LEAST to MOST only: EFORMAT for others,
 * before anything is loaded. For what is counted with, divides, or is a place in a
 * table. */
ET_NODISCARD et_status et_archive_counts(struct et_archive *a, const char *name,
                                         int64_t *v, int64_t n, int64_t least,
                                         int64_t most);
/* No run counts further: what a double has exactly. */
#define ET_COUNT_MAX ((int64_t)1 << 53)
ET_NODISCARD et_status et_archive_f64(struct et_archive *a, const char *name, double *v,
                                      int64_t n);
ET_NODISCARD et_status et_archive_flag(struct et_archive *a, const char *name, bool *v);
ET_NODISCARD et_status et_archive_time(struct et_archive *a, const char *name,
                                       struct et_time *v);
ET_NODISCARD et_status et_archive_timestamp(struct et_archive *a, const char *name,
                                            struct et_timestamp *v);
/* Text in a buffer of SIZE bytes. */
ET_NODISCARD et_status et_archive_text(struct et_archive *a, const char *name,
                                       char *text, size_t size);
/* A list that grows: how many items of WIDTH bytes lie at *BLOCK (et_alloc's, or NULL).
 * Loading replaces *BLOCK and *N; bytes are kept as they are. */
ET_NODISCARD et_status et_archive_list(struct et_archive *a, const char *name,
                                       void **block, int64_t *n, size_t width);

#ifdef __cplusplus
}
#endif
#endif
