/* SPDX-License-Identifier: Apache-2.0 */
/* model.h: what is known of a run from its records: all that a viewer shows of it.
 *
 * A model is a function of the records that it was given, in their order: two that got
 * the same ones have the same digest and the same bytes in a snapshot, whenever they
 * began and however they came by them. So a screen that is opened late is the one that
 * was open from the start, and a viewer can prove that it has missed nothing.
 *
 * Series are kept as bins: batches [i * width, (i + 1) * width) fall into bin i of
 * every series, and when a run has more than ETD_BINS of them the width doubles and
 * bins are joined in pairs. A bin keeps the least, the greatest and the last value, so
 * no peak is lost. After a "resume" the bins of the batches that are done again are
 * dropped. */
#ifndef ETD_MODEL_H
#define ETD_MODEL_H

#include "etude/logger.h"
#include "etude/run.h"

enum {
    ETD_BINS = 2048,       /* of a series: 4,096 points, as least and greatest */
    ETD_ALL_BINS = 200000, /* of all series: more, and the width doubles */
    ETD_SERIES = 512,      /* at most; values of later names are counted and left out */
    ETD_EVENTS = 256,      /* lines kept, the newest */
    ETD_MARKS = 256,       /* likewise */
    ETD_RANKS = 1024,      /* at most */
    ETD_ALGORITHMS = 64,   /* likewise */
    ETD_EVALS = 16,        /* evaluators whose progress is known */
    ETD_NUMBERS = 24,      /* of a rank or an algorithm */
    ETD_TEXT = 240,        /* bytes of a line of text, zero included */
    ETD_LABEL = 48,        /* of a name of something */
    ETD_TRAIL = 64,        /* a rank's own times that are kept */
    ETD_TICKS = 128,       /* batches whose times are kept */
};

/* ---- series ---- */

struct etd_bin {
    int32_t bin;           /* its number */
    int32_t n;             /* finite values; 0: none was */
    double min, max, last; /* last may be one that is not finite */
};

struct etd_series {
    char name[ET_METRIC_NAME];
    int64_t n, bad; /* finite values of it ever; others */
    double last,
        best; /* the newest value; for an evaluated metric the best, else NaN */
    int64_t last_ba, best_ba;
    double last_t;
    int better;          /* of an evaluated metric: less is -1, more 1; 0: it is none */
    struct etd_bin *bin; /* by number; a bin without a value has no entry */
    int n_bins, room;
};

/* Where a bin lies on the other axes: at its first record. */
struct etd_axis {
    double t; /* seconds since 1970; NaN: no record fell into it */
    int64_t ep, sp;
};

/* ---- what happened ---- */

struct etd_event {
    double t;
    int64_t seq, ba;
    int rank;
    enum et_record_kind kind;
    enum et_log_level level;
    char text[ETD_TEXT];
};

/* A point of the run that charts show: a "resume", an annotation, a checkpoint. */
struct etd_mark {
    enum et_record_kind kind;
    int64_t ba;
    double t;
    char text[ETD_LABEL];
};

/* ---- who takes part ---- */

struct etd_number {
    char name[ETD_LABEL];
    double value;
};

/* What a rank or an algorithm last said of itself: records of the kinds "health" and
 * "algorithm"; text is the algorithm's name. */
struct etd_part {
    char name[ETD_LABEL];
    double t;
    int64_t ba;
    struct etd_number number[ETD_NUMBERS];
    int n;
    float trail[ETD_TRAIL]; /* a rank's etd_part_own, the newest last; 0: not yet */
};

struct etd_eval {
    char label[ETD_LABEL];
    double batch, batches; /* batches 0: not known */
    bool running;
};

/* A batch's end. */
struct etd_tick {
    double t;
    int64_t ba, sp;
};

struct etd_model {
    struct et_ctx *cx;

    int64_t seq;    /* of the last record */
    double t, from; /* of the last, of the first */
    int64_t ep, ba, sp;
    int64_t incarnation; /* 1, and one more with each "resume" */
    char state[24];      /* a word of GLOSSARY.md; "" before the first */
    double state_since;
    struct etd_number length[ETD_NUMBERS]; /* run/epochs ... of et_run_watch */
    int n_length;
    double epoch_t;   /* when the epoch under way began; NaN */
    int64_t epoch_ba; /* finished batches then */
    /* Seconds spent training, and in evaluations that have ended, and how many. */
    double train_s, eval_s;
    int64_t n_evaluated;
    struct etd_tick tick[ETD_TICKS]; /* the newest batches, as a ring */
    int first_tick, n_ticks;
    /* When the run was to end, as estimated every ETD_TICKS / 16 batches; NaN: not. */
    double finish[4];

    struct etd_series series[ETD_SERIES];
    int n_series;
    int16_t slot[2 * ETD_SERIES]; /* 1 + index of the series of a hash; 0: free */
    int next; /* the series that is likely asked for next: records are much alike */
    int16_t
        *named; /* the series of each number of the record being applied; -1: none */
    int64_t named_room;
    int64_t left_out; /* values of series past the last */
    int64_t n_bins;   /* of all of them */
    int64_t width;    /* batches of a bin: a power of two */
    struct etd_axis axis[ETD_BINS];

    struct etd_event event[ETD_EVENTS]; /* a ring: event[(first + i) % ETD_EVENTS] */
    int first_event, n_events;
    int64_t n_warnings, n_errors;    /* ever */
    struct etd_mark mark[ETD_MARKS]; /* likewise a ring */
    int first_mark, n_marks;

    struct etd_part *rank; /* [n_ranks]; those that have said nothing have no name */
    int n_ranks, rank_room;
    struct etd_part *algorithm; /* [n_algorithms] */
    int n_algorithms, algorithm_room;
    struct etd_eval eval[ETD_EVALS];
    int n_evals;
};

/* An empty one. ENOMEM. */
ET_NODISCARD et_status etd_model_new(struct et_ctx *cx, struct etd_model **out);
void etd_model_free(struct etd_model **m);
/* Adds R. Fails with ENOMEM alone: then R is not in it, and may be given again. */
ET_NODISCARD et_status etd_model_apply(struct etd_model *m, const struct et_record *r);

/* NULL: no series has that name. Borrowed until a record is applied. */
const struct etd_series *etd_model_series(const struct etd_model *m, const char *name);
/* The first series whose name begins with PREFIX: "lr-", "metrics/eval/". */
const struct etd_series *etd_model_series_like(const struct etd_model *m,
                                               const char *prefix);
/* A number of P, or of the run's length ("run/batches"); NaN: it was never said. */
double etd_part_get(const struct etd_part *p, const char *name);
/* A rank's own_ms without queue_ms, the time in which others had the processor. It
 * decides whether the rank is slow (supervisor_watch.c); NaN: not known. */
double etd_part_own(const struct etd_part *p);
double etd_model_length(const struct etd_model *m, const char *name);
/* Event I, mark I: 0 is the oldest. */
const struct etd_event *etd_model_event(const struct etd_model *m, int i);
const struct etd_mark *etd_model_mark(const struct etd_model *m, int i);
/* Has it ended? By its state alone: a run whose processes are gone is for facts.h. */
bool etd_model_has_ended(const struct etd_model *m);
/* What part of the run is done: 0 to 1; NaN when that is not known. */
double etd_model_done(const struct etd_model *m);
/* Seconds to the end, as batches and evaluations have gone; NaN when that cannot be
 * known yet. *SETTLED: the newest estimates agree within a tenth. */
double etd_model_left(const struct etd_model *m, bool *settled);

/* progress.c, for etd_model_apply: R is the end of a batch. */
void etd_model_progress(struct etd_model *m, const struct et_record *r);

/* ---- snapshots: snapshot.c ---- */

/* Everything, as msgpack: the bytes that another model loads. The caller frees *OUT
 * with et_free. */
ET_NODISCARD et_status etd_model_save(const struct etd_model *m, char **out, size_t *n);
/* Of a model whose fields came from elsewhere: finds its series by name again and
 * counts their bins. False where it cannot be one. */
bool etd_model_adopt(struct etd_model *m);
/* Replaces all of M by the snapshot in N BYTES. EFORMAT for bytes that are no snapshot,
 * and then M is as it was. A pure function of its arguments; ENOMEM. */
ET_NODISCARD et_status etd_model_load(struct etd_model *m, const char *bytes, size_t n);
/* XXH3-128 of the snapshot: of the state at m->seq. */
ET_NODISCARD et_status etd_model_digest(const struct etd_model *m,
                                        unsigned char digest[16]);

#endif
