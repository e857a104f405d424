/* SPDX-License-Identifier: Apache-2.0 */
/* writer.h: the thread that writes a checkpoint while training goes on. */
#ifndef ETI_CHECKPOINT_WRITER_H
#define ETI_CHECKPOINT_WRITER_H

#include "core/checkpoint/store.h"

struct eti_writer;

/* What became of one save. */
struct eti_written {
    et_status status;
    char label[ETI_LABEL];
    int64_t step, bytes;
    double seconds;     /* of writing */
    double cpu_seconds; /* that it took from training */
    struct et_error why;
    char note[256]; /* what went wrong besides; "" = nothing */
};

/* DIRECTORY and LATEST, the name of a link to the newest (NULL: none), are borrowed.
 * The thread begins with the first save. */
ET_NODISCARD et_status eti_writer_new(struct et_ctx *cx, const char *directory,
                                      int64_t keep, const char *latest,
                                      struct eti_writer **out);
/* The archive to save into, once eti_writer_wait has been called: the writer does not
 * read it then. */
struct et_archive *eti_writer_archive(struct eti_writer *w);
/* Writes the archive with the facts of M (its algorithms are borrowed until it is
 * done). */
void eti_writer_start(struct eti_writer *w, const struct eti_manifest *m);
/* Is there a result? Then *OUT has it, once. Does not wait. */
bool eti_writer_poll(struct eti_writer *w, struct eti_written *out);
/* The same, after the save under way has come to an end. */
bool eti_writer_wait(struct eti_writer *w, struct eti_written *out);
/* Waits, then frees. */
void eti_writer_free(struct eti_writer **w);

#endif
