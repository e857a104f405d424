/* SPDX-License-Identifier: Apache-2.0 */
/* callbacks.h: what observers share. */
#ifndef ETI_CALLBACKS_H
#define ETI_CALLBACKS_H

#include "core/trainer/state.h"
#include "etude/callback.h"

#define ET_CALLBACK(name) extern const struct et_callback_class et_callback_##name;
#include "core/callbacks/callbacks.def"
#undef ET_CALLBACK

/* Rows for options that several have. */
extern const char *const eti_duration_units[]; /* choices: seconds .. days */
double eti_duration_unit(int unit);            /* seconds in it */

/* Is the counter of INTERVAL's unit at a multiple of it? *NOW is the counter. */
ET_NODISCARD et_status eti_at_interval(struct et_ctx *cx, const struct et_timestamp *ts,
                                       struct et_time interval, double *now, bool *yes);

/* What stoppers watch. Their options begin with it. */
struct eti_watch {
    char *monitor;          /* the metric's class: "Accuracy" */
    char *dataloader_label; /* whose: "train" or an evaluator's label */
    int comp;               /* index into the words below; -1 = by the metric's name */
};
extern const char *const eti_watch_comparisons[];
/* clang-format off */
#define ETI_WATCH_OPTIONS(T)                                                        \
    {                                                                               \
        .name = "monitor",                                                          \
        .type = ET_OPT_TEXT,                                                        \
        .offset = offsetof(T, watch.monitor),                                       \
        .flags = ET_OPT_REQUIRED,                                                   \
        .help = "metric to watch, such as Accuracy",                                \
    },                                                                              \
    {                                                                               \
        .name = "dataloader_label",                                                 \
        .type = ET_OPT_TEXT,                                                        \
        .offset = offsetof(T, watch.dataloader_label),                              \
        .flags = ET_OPT_REQUIRED,                                                   \
        .help = "whose metric: train, or an evaluator's label such as eval",        \
    },                                                                              \
    {                                                                               \
        .name = "comp",                                                             \
        .type = ET_OPT_ENUM,                                                        \
        .offset = offsetof(T, watch.comp),                                          \
        .choices = eti_watch_comparisons,                                           \
        .flags = ET_OPT_OPTIONAL,                                                   \
        .help = "which is better; unset: less for losses, errors, perplexities, "     \
                "entropies",                                                        \
    }
/* clang-format on */
ET_NODISCARD et_status eti_watch_check(struct et_ctx *cx, const struct eti_watch *w);
/* Is the loader of the event under way the watched one? Not in a run that ends already:
 * an evaluation that was broken off has no value. */
bool eti_watch_is_active(const struct eti_watch *w, const struct et_state *s);
/* EINVAL when there is no such metric. */
ET_NODISCARD et_status eti_watch_read(struct et_ctx *cx, const struct eti_watch *w,
                                      const struct et_state *s, double *out);
/* By the metric's name: losses, errors, perplexities, entropies. */
bool eti_less_is_better(const char *metric);
bool eti_watch_is_better(const struct eti_watch *w, double a, double b);
/* Call at FIT_END when no value was ever read: warns if epochs have gone by. */
void eti_watch_warn(const struct eti_watch *w, const char *who,
                    const struct et_state *s, struct et_log *log);

/* A metric of evaluations, by a name that may be short, and which value is better. */
struct eti_pick {
    char *watch_metric;
    int greater_is_better; /* index into eti_pick_truth; -1: by the name */
};
extern const char *const eti_pick_truth[];
/* clang-format off */
#define ETI_PICK_OPTIONS(T, field)                                                  \
    {                                                                               \
        .name = "watch_metric",                                                     \
        .type = ET_OPT_TEXT,                                                        \
        .offset = offsetof(T, field.watch_metric),                                  \
        .flags = ET_OPT_OPTIONAL,                                                   \
        .help = "an evaluation's metric, its full name or the last part; unset: the "\
                "cross entropy",                                                    \
    },                                                                              \
    {                                                                               \
        .name = "greater_is_better",                                                \
        .type = ET_OPT_ENUM,                                                        \
        .offset = offsetof(T, field.greater_is_better),                             \
        .choices = eti_pick_truth,                                                  \
        .flags = ET_OPT_OPTIONAL,                                                   \
        .help = "unset: not for losses, errors, perplexities, entropies",           \
    }
/* clang-format on */
/* After an evaluation: its value of the metric; false where it has none. METRIC, of
 * ET_METRIC_NAME bytes, is "" at first and then the full name that was settled on. */
bool eti_pick_value(const struct eti_pick *p, char *metric, const struct et_state *s,
                    double *out);
/* Is VALUE better than BEST? Not a NaN. */
bool eti_pick_is_better(const struct eti_pick *p, const char *metric, double value,
                        double best);
/* Call at FIT_END when no evaluation had it: warns if epochs have gone by. */
void eti_pick_warn(const struct eti_pick *p, const char *who, const char *outcome,
                   const struct et_state *s, struct et_log *log);

/* The file of the weights that did best. */
struct eti_best_options {
    char *save_path; /* in the run directory */
    struct eti_pick pick;
};
/* Rows for a struct that begins with them, as `best`. */
/* clang-format off */
#define ETI_BEST_OPTIONS(T, path)                                                   \
    {                                                                               \
        .name = "save_path",                                                        \
        .type = ET_OPT_TEXT,                                                        \
        .offset = offsetof(T, best.save_path),                                      \
        .def = path,                                                                \
        .flags = ET_OPT_OUTPUT,                                                     \
        .help = "file in the run directory",                                        \
    },                                                                              \
    ETI_PICK_OPTIONS(T, best.pick)
/* clang-format on */

enum { ETI_BEST_PATH = 4096 };
struct eti_best {
    char metric[ET_METRIC_NAME]; /* its full name, once seen */
    bool any;                    /* there is a best value, and a file of it */
    double best;
    struct et_timestamp at; /* when it came */
};
/* At INIT: EINVAL without a run directory. */
ET_NODISCARD et_status eti_best_open(const struct et_callback *self,
                                     const struct eti_best_options *o);
/* After an evaluation, with the weights it used: writes the file where they are the
 * best so far. */
ET_NODISCARD et_status eti_best_offer(struct et_callback *self,
                                      const struct eti_best_options *o,
                                      struct eti_best *sv, const struct et_state *s,
                                      struct et_log *log);
/* Writes it in any case, VALUE NaN: for no metric; one that cannot be written is warned
 * about. */
ET_NODISCARD et_status eti_best_save(struct et_callback *self,
                                     const struct eti_best_options *o,
                                     const struct eti_best *sv,
                                     const struct et_state *s, double value,
                                     struct et_log *log, bool *saved);
/* Into BUF of ETI_BEST_PATH bytes. */
const char *eti_best_path(const struct et_callback *self,
                          const struct eti_best_options *o, char *buf);
ET_NODISCARD et_status eti_best_archive(struct eti_best *sv, struct et_archive *a);

/* How long the run will still take, from what it took so far. Evaluations count with
 * their mean length and as often as they came; they are not in the training clock. */
enum { ETI_MAX_LABELS = 16 };
struct eti_remaining {
    int64_t skip; /* batches not counted at the start: planning, filling caches */
    bool started;
    double wct, fraction; /* where counting began */
    struct eti_evaluations {
        char label[ET_METRIC_NAME];
        int64_t n;
        double seconds;  /* all together */
        double fraction; /* of the run, at the last */
    } eval[ETI_MAX_LABELS];
    int n_eval;
};
/* Fraction of the run that is done, finer than et_state_elapsed: a run in epochs counts
 * its batches. NaN when it cannot be known. */
double eti_fraction(const struct et_state *s);
void eti_remaining_eval_end(struct eti_remaining *r, const struct et_state *s);
ET_NODISCARD et_status eti_remaining_archive(struct eti_remaining *r, struct et_ctx *cx,
                                             struct et_archive *a);
/* Call at every BATCH_END. Seconds, NaN while nothing can be said. */
double eti_remaining_batch_end(struct eti_remaining *r, const struct et_state *s);

#endif
