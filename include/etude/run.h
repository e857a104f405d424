/* SPDX-License-Identifier: Apache-2.0 */
/* run.h: what a run leaves behind, and what people see of it while it goes on.
 *
 * A run directory, the sink that keeps its records, a reader of those, and progress for
 * a terminal, a pipe, or a program. The loss of each batch of a run:
 *
 *     ET_TRY(et_events_open(cx, "runs/brisk-otter/events.log", &events));
 *     ET_TRY(et_events_fetch(events, "loss/train/total", 0, INT64_MAX, 1000, points,
 *                            &n));
 *     et_events_close(&events);
 */
#ifndef ETUDE_RUN_H
#define ETUDE_RUN_H

#include <stdio.h>

#include "etude/callback.h"
#include "etude/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- progress ---- */

/* bar    one line, redrawn at most 10 times a second
 * plain  a line every 30 s, and at each epoch, evaluation, line of the log, start and
 * end json   an object for each of these and for every batch
 *
 * Metrics have short labels, but in json their full names. */
enum et_progress_kind {
    ET_PROGRESS_BAR = 0,
    ET_PROGRESS_PLAIN = 1,
    ET_PROGRESS_JSON = 2
};

struct et_progress {
    enum et_progress_kind kind;
    FILE *out;            /* borrowed; flushed after each line */
    struct et_time every; /* sec or ba between lines of training; unset or 0: 0.1 s for
                             a bar, 30 s for plain, every batch for json */
    int columns;          /* bar: of the terminal; 0 = it is asked, 132 if it is none */
};
/* A logger that writes to P->out and nowhere else. Its type->text takes lines of the
 * log and writes them all. EINVAL for another unit of every. */
ET_NODISCARD et_status et_progress_new(struct et_ctx *cx, const struct et_progress *p,
                                       struct et_callback **out);

/* Takes back what is drawn and would be written over. */
void et_progress_clear(struct et_callback *progress);

/* What the trainer cannot say of itself: that a run begins, and what became of it. */
struct et_run_notice {
    const char *name, *directory;
    const char *state;             /* as in run.json: "starting", "finished" ... */
    const struct et_state *at_end; /* NULL: it begins */
    int exit_code;                 /* at the end */
};
/* Shows NOTICE in the way of PROGRESS, which et_progress_new made. */
void et_progress_notice(struct et_callback *progress,
                        const struct et_run_notice *notice);

/* The same from the records of a run that another process trains. RELAY knows the run
 * as far as progress shows it. */
struct et_relay;
ET_NODISCARD et_status et_relay_new(struct et_ctx *cx, struct et_relay **out);
void et_relay_free(struct et_relay **relay);
/* Shows R, the next of the run, in the way of PROGRESS. */
void et_relay_record(struct et_relay *relay, struct et_callback *progress,
                     const struct et_record *r);
/* How far it is, for a notice of its end: borrowed. */
const struct et_state *et_relay_state(const struct et_relay *relay);

/* ---- profile ---- */

/* A callback, the caller's, that writes the spans (span.h) of the batches that SCHEDULE
 * picks as Chrome traces to RUN_DIRECTORY/traces, a file for each cycle. It is to stand
 * before other callbacks, and sets the context's tracer while it traces. RUN_DIRECTORY
 * is borrowed. EINVAL without one. */
ET_NODISCARD et_status et_profiler_new(struct et_ctx *cx,
                                       const struct et_recipe_profiler *schedule,
                                       const char *run_directory,
                                       struct et_callback **out);

/* ---- names ---- */

enum { ET_RUN_NAME = 64 }; /* bytes, the final zero included */
/* Two words such as brisk-otter, drawn with SEED. Returns BUF of ET_RUN_NAME bytes. */
const char *et_run_name_draw(uint64_t seed, char *buf);
/* EINVAL unless NAME is 1 to 63 of a-z A-Z 0-9 . _ - and begins with a letter or digit:
 * it becomes part of paths. */
ET_NODISCARD et_status et_run_name_check(struct et_ctx *cx, const char *name);

/* ---- the run directory ---- */

struct et_run_config {
    const char *directory; /* NULL: runs/<local start time>, with -2, -3 ... if taken */
    const char *name;      /* NULL: two words drawn from the clock */
    const char *recipe;    /* the user's bytes, for recipe.yaml; NULL: none */
    size_t recipe_bytes;
    const char *recipe_name; /* for run.json; NULL: none. A RESUMEd run keeps its own */
    const char *resolved;    /* for recipe.resolved.yaml; NULL: none */
    const char *const *command; /* for run.json; NULL: none */
    int n_command;
    int threads; /* of the device */
    /* Which records are kept: unset: every batch up to 50 a second, and of faster runs
     * one record a second that stands for many; 1ba: every batch; another time in ba or
     * sec: one record for that long. */
    struct et_time record_interval;
    bool resume; /* DIRECTORY holds a run: go on in it, under its name */
};

struct et_run;
/* Makes the directory (mode 0700) with run.json in state "starting", both recipes,
 * logs/rank0.txt and an events.log. EINVAL for a bad name, or a directory that holds a
 * run already, which is left as it is; EIO when something cannot be written.
 * With RESUME the run in the directory goes on: recipe.yaml stays, events.log and the
 * logs are added to. ENOENT: it holds none; ECANCELED: another process is at it. */
ET_NODISCARD et_status et_run_open(struct et_ctx *cx,
                                   const struct et_run_config *config,
                                   struct et_run **out);
/* A run that another process keeps, as its rank RANK sees it: records, and those of
 * states, go to SINK; of its directory only logs/rank<RANK>.txt is opened, and
 * report.json written. All text is copied. EIO. */
struct et_run_place {
    const char *directory, *name, *id;
    int64_t incarnation;
    int rank;
};
ET_NODISCARD et_status et_run_join(struct et_ctx *cx, const struct et_run_place *place,
                                   struct et_sink *sink, struct et_run **out);
/* Writes down what is buffered. run.json keeps the last state. */
void et_run_close(struct et_run **run);

const char *et_run_directory(const struct et_run *run); /* borrowed */
const char *et_run_name(const struct et_run *run);      /* likewise */
const char *et_run_id(const struct et_run *run);        /* hexadecimal; likewise */
/* How often the run has been started, from 1. */
int64_t et_run_incarnation(const struct et_run *run);
/* Keeps records in events.log, and the state that one of the kind "run" names in
 * run.json. Their seq there is the file's, from 1 without gaps. */
struct et_sink *et_run_sink(struct et_run *run);
/* Puts what has been written so far where readers see it; false where there is more,
 * that waits to be part of one record with others (record_interval). */
bool et_run_flush(struct et_run *run);
/* Makes events.log again, whole, where it was removed from the directory. EIO: it
 * cannot be; what is told from now on is not kept then. */
ET_NODISCARD et_status et_run_restore(struct et_run *run);
/* The number of the last record. */
int64_t et_run_seq(const struct et_run *run);
/* A descriptor of the directory that holds its lock, for as long as it or a copy of it
 * is open: borrowed. */
int et_run_lock(const struct et_run *run);
/* An et_log_fn for et_ctx_set_log, or for another log function to call: DATA is the
 * run, TEXT goes to logs/rank0.txt with time and level, at once. */
void et_run_log(void *data, enum et_log_level level, const char *text);
/* The same, and an event of the run. */
void et_run_note(struct et_run *run, enum et_log_level level, const char *text);
/* A state ("running", "evaluating", "stopped", ...): to run.json (replaced as a whole:
 * readers see the old one or the new one) and events.log. EIO. */
ET_NODISCARD et_status et_run_set_state(struct et_run *run, const char *state);
/* A callback, the caller's, that says in records of the kind "run" what a run is at:
 * the state "running" or "evaluating", and as far as they are known the numbers
 *
 *     run/epochs, run/batches, run/samples, run/tokens, run/seconds    of the whole run
 *     run/epoch_batches, run/batch_size, run/grad_accum
 *     run/ended    1: the last batch has been trained; an evaluation may follow
 *     eval/<label>/batch, eval/<label>/batches    done and in all, 4 times a second */
ET_NODISCARD et_status et_run_watch(struct et_ctx *cx, struct et_callback **out);

/* What report.json holds. */
struct et_run_report {
    struct et_timestamp ts;
    const char *reason; /* why it stopped early; NULL */
    const struct et_metric_value *metrics;
    int n_metrics;
    int64_t microbatches; /* of the last batch: what grad_accum auto came to; 0: none */
};
/* Why it ends so, of a run that makes no report: for run.json. */
void et_run_blame(struct et_run *run, const char *reason);
/* The final state with its exit code, and report.json (REPORT NULL: none). EIO. */
ET_NODISCARD et_status et_run_finish(struct et_run *run, const char *state,
                                     int exit_code, const struct et_run_report *report);

/* ---- reading events.log ---- */

struct et_events;
/* ENOENT, EIO; EFORMAT for a file that is none or of a later version. */
ET_NODISCARD et_status et_events_open(struct et_ctx *cx, const char *path,
                                      struct et_events **out);
/* The next record, borrowed until the next call; *GOT is false at the end. A record
 * that was cut off by a crash is the end. EFORMAT for damage before that. */
ET_NODISCARD et_status et_events_next(struct et_events *e, struct et_record *out,
                                      bool *got);
/* Looks at the file's size again: what was appended since it was opened comes next.
 * EIO; EFORMAT for a file that lost records it had. */
ET_NODISCARD et_status et_events_again(struct et_events *e);
/* Of the file, when it was last looked at. */
int64_t et_events_bytes(const struct et_events *e);
/* At the end: bytes of a record that was cut off. */
int64_t et_events_torn_bytes(const struct et_events *e);
/* From now on et_events_next gives, from the first on, those kinds alone: bit i of
 * KINDS is enum et_record_kind i. Stretches of the log without them are not read. */
ET_NODISCARD et_status et_events_only(struct et_events *e, uint64_t kinds);
void et_events_close(struct et_events **e);

/* Of the file, so far. */
uint64_t et_events_bytes_read(const struct et_events *e);

/* ---- its series: the numbers of a name, along the run ----
 *
 * The log keeps summaries of itself, so that these read a small part of a long one; a
 * log without any, or with damaged ones, is read as far as need be, with the same
 * answers. What a resumed run did again counts once, as it was done last. */

struct et_series_point {
    int64_t ba; /* finished batches */
    double t;   /* seconds since 1970 */
    double value;
};

struct et_series_stats {
    int64_t n, bad; /* finite values; those that are NaN or infinite */
    double sum;     /* of the finite ones; 0 without, and so are min and max */
    struct et_series_point last, min, max; /* last may be one that is not finite */
};

struct et_series {
    char name[ET_METRIC_NAME];
    struct et_series_stats all;
};

/* All series, in no order that means anything; borrowed until the log is closed. */
ET_NODISCARD et_status et_events_series(struct et_events *e,
                                        const struct et_series **list, int *n);
/* The one of that NAME; ENOENT. */
ET_NODISCARD et_status et_events_series_find(struct et_events *e, const char *name,
                                             const struct et_series **out);
/* At most MOST (2 or more) points of the series NAME with FROM <= ba <= TO, in the
 * order of the run, into OUT; *N of them. They are values of the run, never means, and
 * the least and greatest of the range are among them: all finite values where there are
 * few (MOST or less, in a part of the log that is not much longer), else the least and
 * greatest of each of many stretches. None for a NAME that is not there. */
ET_NODISCARD et_status et_events_fetch(struct et_events *e, const char *name,
                                       int64_t from, int64_t to, int most,
                                       struct et_series_point *out, int *n);

#ifdef __cplusplus
}
#endif
#endif
