/* SPDX-License-Identifier: Apache-2.0 */
/* progress.h: what the three ways to show progress share. */
#ifndef ETI_PROGRESS_H
#define ETI_PROGRESS_H

#include "core/base/seams.h"
#include "core/callbacks/callbacks.h"
#include "core/loggers/loggers.h"
#include "etude/run.h"

struct eti_style;

struct eti_progress {
    struct et_ctx *cx; /* for its clock */
    struct et_progress config;
    const struct eti_style *style;
    struct eti_remaining remaining;
    bool has_trained;                /* a batch, since it was made */
    double left;                     /* seconds to the end; NaN = not known */
    double next;                     /* monotonic time of the next line */
    int64_t next_batch;              /* or the batch of it */
    double epoch_seconds;            /* of training in the epoch that ends */
    double eval_start, eval_seconds; /* of the evaluation under way */
    int drawn;                       /* bar: columns it fills now */
    int terminal;                    /* bar: asked for its width; -1: no terminal */
};

/* One way: what it writes at each point. A NULL slot writes nothing. */
struct eti_style {
    double
        seconds; /* between lines of training where the user did not say; 0 = batches */
    void (*batch)(struct eti_progress *p, const struct et_state *s,
                  const struct et_log *log);
    void (*eval_batch)(struct eti_progress *p, const struct et_state *s,
                       const struct et_log *log);
    void (*epoch)(struct eti_progress *p, const struct et_state *s,
                  const struct et_log *log);
    void (*eval)(struct eti_progress *p, const struct et_state *s,
                 const struct et_log *log);
    void (*fit_end)(struct eti_progress *p, const struct et_state *s,
                    const struct et_log *log);
    void (*notice)(struct eti_progress *p, const struct et_run_notice *notice);
    void (*text)(struct eti_progress *p, enum et_log_level level, const char *text);
    /* Takes back what is drawn and would be written over. */
    void (*clear)(struct eti_progress *p);
    void (*close)(struct eti_progress *p);
};
extern const struct eti_style eti_style_bar, eti_style_plain, eti_style_json;

/* Before another logger writes to the terminal: clears the bar of the run, if any. */
void eti_progress_clear(const struct et_state *s);

/* "12m56s", "3h05m", "2d04h"; "-" when not known. Returns BUF. */
const char *eti_duration_text(double seconds, char *buf, size_t n);
/* "0.8123", small ones as "1.5e-05". Returns BUF. */
const char *eti_value_text(double value, char *buf, size_t n);
/* " accuracy=0.7212 ce=1.1022": the metrics of an evaluation, under short labels. */
void eti_put_metrics(FILE *f, const struct et_log *log);
/* Text from outside as et_visible shows it, so that none of it moves a terminal. */
void eti_put_text(FILE *f, const char *text);

#endif
