/* callbacks.h: what observers share. */
#ifndef ETI_CALLBACKS_H
#define ETI_CALLBACKS_H

#include "etude/callback.h"

#define ET_CALLBACK(name) extern const struct et_callback_class et_callback_##name;
#include "core/callbacks/callbacks.def"
#undef ET_CALLBACK

/* Rows for options that several have. */
extern const char *const eti_duration_units[]; /* choices: seconds .. days */
double eti_duration_unit(int unit);            /* seconds in it */

/* How long the run will still take, from what it took so far. Evaluations count with
 * their mean length and as often as they came; they are not in the training clock. */
enum { ETI_MAX_LABELS = 16 };
struct eti_remaining {
    int64_t skip; /* batches not counted at the start: planning, filling caches */
    bool started;
    double wct, fraction; /* where counting began */
    struct eti_evaluations {
        const char *label; /* borrowed */
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
/* Call at every BATCH_END. Seconds, NaN while nothing can be said. */
double eti_remaining_batch_end(struct eti_remaining *r, const struct et_state *s);

#endif
