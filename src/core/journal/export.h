/* SPDX-License-Identifier: Apache-2.0 */
/* export.h: a run's events.log for other programs. */
#ifndef ETI_EXPORT_H
#define ETI_EXPORT_H

#include <regex.h>
#include <stdio.h>

#include "etude/run.h"

/* What to export. */
struct eti_export {
    const char *events;     /* path of events.log */
    const char *title;      /* of a chart */
    const regex_t *metrics; /* names wanted; NULL: all */
};

/* The records of a run, as if it had never been interrupted: what a resumed run did
 * again comes once, as it was done last. */
struct eti_history {
    struct et_ctx *cx;
    struct et_events *events;
    const regex_t *metrics;
    struct eti_again *again; /* N places where it was resumed, in order */
    int n, next;
    int64_t room;
    struct et_log_entry *entry; /* of the record given last; [entry_room] */
    struct et_log_span *span;   /* likewise */
    int entry_room;
};

/* A resume: what precedes SEQ and comes after BA finished batches was done again, there
 * or later. */
struct eti_again {
    int64_t seq, ba;
};

/* ENOENT, EIO, EFORMAT as et_events_open. Close it in any case. */
ET_NODISCARD et_status eti_history_open(struct et_ctx *cx, const struct eti_export *x,
                                        struct eti_history *h);
/* The next batch, epoch or evaluation with the numbers that are wanted, if it has any,
 * or annotation; borrowed until the next. *GOT is false at the end. */
ET_NODISCARD et_status eti_history_next(struct eti_history *h, struct et_record *out,
                                        bool *got);
void eti_history_close(struct eti_history *h);

/* Lines as in metrics.jsonl, rows as in metrics.csv, to OUT. EIO for what cannot be
 * written, others as eti_history_open. */
ET_NODISCARD et_status eti_export_jsonl(struct et_ctx *cx, const struct eti_export *x,
                                        FILE *out);
ET_NODISCARD et_status eti_export_csv(struct et_ctx *cx, const struct eti_export *x,
                                      FILE *out);
/* A file of events in DIRECTORY, which is made. EINVAL where it holds one already. */
ET_NODISCARD et_status eti_export_tensorboard(struct et_ctx *cx,
                                              const struct eti_export *x,
                                              const char *directory);
/* A picture that needs nothing else: a panel for each group of series. EINVAL where no
 * series is wanted. */
ET_NODISCARD et_status eti_export_svg(struct et_ctx *cx, const struct eti_export *x,
                                      FILE *out);

#endif
