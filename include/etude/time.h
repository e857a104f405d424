/* SPDX-License-Identifier: Apache-2.0 */
/* time.h: training time: epochs, batches, samples, tokens, fractions of a run, seconds.
 *
 * Source: MosaicML Composer's Time and Timestamp. Differs: clock forms may have any
 * number of hours; text takes neither signs nor blanks. */
#ifndef ETUDE_TIME_H
#define ETUDE_TIME_H

#include <stdint.h>

#include "etude/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* code, value, suffix, name. DURATION is a fraction of max_duration; others are
 * integral. */
#define ET_TIME_UNIT_MAP(X)                                                            \
    X(ITERATION, 0, "iter", "iteration")                                               \
    X(EPOCH, 1, "ep", "epoch")                                                         \
    X(BATCH, 2, "ba", "batch")                                                         \
    X(SAMPLE, 3, "sp", "sample")                                                       \
    X(TOKEN, 4, "tok", "token")                                                        \
    X(DURATION, 5, "dur", "duration")                                                  \
    X(SECOND, 6, "sec", "second")

enum et_time_unit {
#define ET_TIME_UNIT_ENUM(code, number, suffix, name) ET_TIME_##code = number,
    ET_TIME_UNIT_MAP(ET_TIME_UNIT_ENUM)
#undef ET_TIME_UNIT_ENUM
        ET_TIME_UNIT_COUNT
};

/* "ep", "epoch". */
const char *et_time_unit_suffix(enum et_time_unit unit);
const char *et_time_unit_name(enum et_time_unit unit);
/* From suffix or name, in any case. EINVAL lists the suffixes. */
ET_NODISCARD et_status et_time_unit_find(struct et_ctx *cx, const char *text,
                                         enum et_time_unit *out);

/* A span or point of training time. Integral units (all but DURATION) hold whole
 * numbers, exact to 2^53. A unit of ET_TIME_UNIT_COUNT means: not set. */
struct et_time {
    double value;
    enum et_time_unit unit;
};

#define ET_EPOCHS(n)  ((struct et_time){(n), ET_TIME_EPOCH})
#define ET_BATCHES(n) ((struct et_time){(n), ET_TIME_BATCH})

/* At no time, for an interval of a struct that a program fills: there 0, which is what
 * nobody has written, means as much as not set. (In a recipe an interval of 0 is
 * never.) */
#define ET_NEVER ((struct et_time){-1, ET_TIME_EPOCH})

static inline bool
et_time_is_set(struct et_time t)
{
    return t.unit < ET_TIME_UNIT_COUNT;
}

/* ---- text ----
 * number unit    "10ep" "1e3ba" "0.7dur": digits with at most one point, perhaps an
 *                exponent; whole for all units but dur; any case; no sign, no blanks
 * clock          "1h30m" "90s" "25h": seconds
 * whole number   "10": epochs
 *
 * EINVAL quotes the text and says which of these it is not. */
ET_NODISCARD et_status et_time_parse(struct et_ctx *cx, const char *text,
                                     struct et_time *out);
/* pytorch-accelerated writes lengths as placeholders, perhaps with a factor; a unit
 * says the same: "NUM_UPDATE_STEPS_PER_EPOCH*2" is 2ep, "NUM_EPOCHS*0.1" is 0.1dur.
 * False where there is no such unit. For hints: recipes are written in units. */
bool et_time_placeholder(const char *text, struct et_time *out);
/* "5ep", "0.5dur", "unset": parses back to the same value. Returns BUF;
 * ET_TIME_TEXT_BYTES are enough. */
enum { ET_TIME_TEXT_BYTES = 40 };
const char *et_time_text(struct et_time t, char *buf, size_t n);

/* ---- arithmetic ----
 * EINVAL where the units do not fit: one is never converted to another silently.
 * Results in integral units are truncated towards 0. */
ET_NODISCARD et_status et_time_add(struct et_ctx *cx, struct et_time a,
                                   struct et_time b,
                                   struct et_time *out); /* same unit */
ET_NODISCARD et_status et_time_sub(struct et_ctx *cx, struct et_time a,
                                   struct et_time b,
                                   struct et_time *out); /* same unit */
/* One at least is a dur; the result has the unit of the other. */
ET_NODISCARD et_status et_time_mul(struct et_ctx *cx, struct et_time a,
                                   struct et_time b, struct et_time *out);
/* Same unit, B not 0; the result is a dur. */
ET_NODISCARD et_status et_time_div(struct et_ctx *cx, struct et_time a,
                                   struct et_time b, struct et_time *out);
/* Same unit, B not 0; what is left of A after whole Bs, with the sign of A. */
ET_NODISCARD et_status et_time_mod(struct et_ctx *cx, struct et_time a,
                                   struct et_time b, struct et_time *out);
/* By a plain number; the unit stays. */
struct et_time et_time_scale(struct et_time a, double x);
ET_NODISCARD et_status et_time_over(struct et_ctx *cx, struct et_time a, double x,
                                    struct et_time *out); /* x not 0 */
/* *OUT is negative, 0 or positive as A is before, at or after B. Same unit. */
ET_NODISCARD et_status et_time_compare(struct et_ctx *cx, struct et_time a,
                                       struct et_time b, int *out);

/* ---- where a run is ----
 * Counts of finished things; all 0 at the start. Samples and tokens are those of all
 * ranks together, batches are optimizer steps. The clocks are seconds of training,
 * without evaluation. */
struct et_timestamp {
    int64_t iteration;
    int64_t epoch;
    int64_t batch;
    int64_t sample;
    int64_t token;
    int64_t epoch_in_iteration, token_in_iteration;
    int64_t batch_in_epoch, sample_in_epoch, token_in_epoch;
    double total_wct;     /* since the run began */
    double iteration_wct; /* since this iteration began */
    double epoch_wct;     /* since this epoch began */
    double batch_wct;     /* of the last batch */
};

/* A batch is done: counts it, its SAMPLES and TOKENS, and adds its SECONDS. */
void et_timestamp_next_batch(struct et_timestamp *ts, int64_t samples, int64_t tokens,
                             double seconds);
/* The epoch is done, its last batch already counted: what is counted within an epoch
 * begins again at 0. */
void et_timestamp_next_epoch(struct et_timestamp *ts);
/* The iteration is done: what is counted within an iteration begins again at 0. */
void et_timestamp_next_iteration(struct et_timestamp *ts);

/* The counter of UNIT (sec: total_wct, not truncated). EINVAL for dur, which is no
 * counter. */
ET_NODISCARD et_status et_timestamp_get(struct et_ctx *cx,
                                        const struct et_timestamp *ts,
                                        enum et_time_unit unit, struct et_time *out);
/* Compares the counter of T's unit with T, as et_time_compare. */
ET_NODISCARD et_status et_timestamp_compare(struct et_ctx *cx,
                                            const struct et_timestamp *ts,
                                            struct et_time t, int *out);
/* Fraction of MAX_DURATION that is done, in [0, 1]. It moves with the counter of that
 * unit only: in a run measured in epochs it is constant within an epoch. EINVAL when
 * MAX_DURATION is unset or 0. */
ET_NODISCARD et_status et_timestamp_elapsed(struct et_ctx *cx,
                                            const struct et_timestamp *ts,
                                            struct et_time max_duration, double *out);

/* ---- how long a run will be ---- */
struct et_run_length {
    struct et_time max_duration; /* scaled by the ratio already; may be unset */
    int64_t dataloader_len;      /* batches per epoch; -1 = not known */
    double scale_schedule_ratio; /* 1 = schedules as written */
};

/* MAX_DURATION times RATIO, truncated: what struct et_run_length wants. EINVAL when
 * nothing is left. */
ET_NODISCARD et_status et_time_scale_duration(struct et_ctx *cx,
                                              struct et_time max_duration, double ratio,
                                              struct et_time *out);

/* T in the unit a schedule counts in. A dur becomes that fraction of max_duration (of
 * its batches, when that is in epochs); epochs become batches; then all but dur, whose
 * max_duration was scaled already, are multiplied by the ratio. Truncated. EINVAL when
 * max_duration or dataloader_len is needed but unknown, and for sec. */
ET_NODISCARD et_status et_time_resolve(struct et_ctx *cx, struct et_time t,
                                       const struct et_run_length *length,
                                       struct et_time *out);

#ifdef __cplusplus
}
#endif
#endif
