/* SPDX-License-Identifier: Apache-2.0 */
/* logger.h: what a run says: one record per batch and per evaluation.
 *
 * Trainer, algorithms and callbacks add numbers to the record under way; loggers, which
 * run last on BATCH_END, EPOCH_END and EVAL_END, write it; then the trainer begins the
 * next. Everything of a step carries the count of finished batches.
 *
 * Metric names are those of MosaicML Composer's newest versions: "loss/train/total",
 * "metrics/eval/Accuracy", "lr-DecoupledSGDW/group0". */
#ifndef ETUDE_LOGGER_H
#define ETUDE_LOGGER_H

#include "etude/ctx.h"
#include "etude/event.h"
#include "etude/time.h"

#ifdef __cplusplus
extern "C" {
#endif

/* kind, value, text: what a record is about. */
#define ET_RECORD_MAP(X)                                                               \
    X(RUN, 0, "run")                                                                   \
    X(EPOCH, 1, "epoch")                                                               \
    X(BATCH, 2, "batch")                                                               \
    X(EVAL, 3, "eval")                                                                 \
    X(METRIC, 4, "metric")                                                             \
    X(MEMORY, 5, "memory")                                                             \
    X(THROUGHPUT, 6, "throughput")                                                     \
    X(HEALTH, 7, "health")                                                             \
    X(LOG, 8, "log")                                                                   \
    X(CHECKPOINT, 9, "checkpoint")                                                     \
    X(ALGORITHM, 10, "algorithm")                                                      \
    X(COMMAND, 11, "command")                                                          \
    X(RESUME, 12, "resume")                                                            \
    X(ANNOTATION, 13, "annotation")

enum et_record_kind {
#define ET_RECORD_ENUM(code, number, text) ET_RECORD_##code = number,
    ET_RECORD_MAP(ET_RECORD_ENUM)
#undef ET_RECORD_ENUM
        ET_RECORD_COUNT
};
const char *et_record_name(enum et_record_kind kind); /* "batch" */

enum { ET_METRIC_NAME = 96 }; /* bytes, the final zero included */

struct et_log_entry {
    char name[ET_METRIC_NAME];
    double value;
};

/* What a number was in the records that one stands for: N finite values with their sum,
 * the least and the greatest of them, and BAD others. */
struct et_log_span {
    int64_t n, bad;
    double min, max, sum;
};

/* A record on its way to loggers and sink. One that a log keeps may stand for several
 * of its kind, where the run was faster than is worth keeping (etude-events(7)): its
 * own values are then those of the last. */
struct et_record {
    enum et_record_kind kind;
    double t;           /* seconds since the epoch of 1970 */
    int64_t seq;        /* from 1, without gaps, per run */
    int64_t ep, ba, sp; /* finished epochs, batches, samples */
    const char *text; /* log lines, evaluator label, state of the run; NULL; borrowed */
    enum et_log_level level;          /* log lines */
    int rank;                         /* whose it is */
    const struct et_log_entry *entry; /* numbers; borrowed */
    int n;
    int64_t of;                     /* records that it stands for; 0: for itself */
    int64_t from;                   /* ba of the first of them */
    const struct et_log_span *span; /* [n], of each number; NULL: of is 0; borrowed */
};

/* Where records go: a file, a screen, another process. Whoever starts the run fills the
 * hole; the struct begins one of its own. */
struct et_sink {
    /* RECORD is borrowed for the call. On the trainer's thread: must not wait. */
    void (*write)(struct et_sink *sink, const struct et_record *record);
};

struct et_log;
/* An empty record; the trainer makes one. SINK: borrowed; NULL = nowhere. */
ET_NODISCARD et_status et_log_new(struct et_ctx *cx, struct et_sink *sink,
                                  struct et_log **out);
void et_log_free(struct et_log **log);

/* Adds a number to the record under way; a second value of a name replaces the first.
 * Names longer than 95 bytes are cut. Allocates nothing once the names are known. */
void et_log_metric(struct et_log *log, const char *name, double value);
/* The numbers so far: borrowed until the next call. */
const struct et_log_entry *et_log_entries(const struct et_log *log, int *n);
/* The number of that NAME in it, into *OUT; false when there is none. */
bool et_log_find(const struct et_log *log, const char *name, double *out);
/* Hands the record to the sink (TEXT may be NULL) and begins an empty one. */
void et_log_emit(struct et_log *log, enum et_record_kind kind,
                 const struct et_timestamp *ts, const char *text);
/* Hands R on beside the record under way, which stays. T and seq are filled in, and ep,
 * ba, sp from TS unless that is NULL. */
void et_log_record(struct et_log *log, struct et_record *r,
                   const struct et_timestamp *ts);
/* A line of text for people: to the sink at once, and to the context's log. */
void et_log_text(struct et_log *log, enum et_log_level level,
                 const struct et_timestamp *ts, const char *fmt, ...) ET_PRINTF(4, 5);

#ifdef __cplusplus
}
#endif
#endif
