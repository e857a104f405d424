/* SPDX-License-Identifier: Apache-2.0 */
/* algorithm.h: training methods that change the run.
 *
 * An algorithm is one file: a private state, an option table, hooks, and a const class
 * at the bottom; and one row of algorithms.def. */
#ifndef ETUDE_ALGORITHM_H
#define ETUDE_ALGORITHM_H

#include "etude/archive.h"
#include "etude/logger.h"
#include "etude/state.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What became of an algorithm in a run so far. */
struct et_algorithm_count {
    int64_t fired, applied; /* events of its own that came; at which it acted */
    int64_t last_ba;        /* finished batches when it last acted */
    double seconds;         /* that its hooks took */
};

struct et_algorithm {
    const struct et_algorithm_class *type;
    struct et_ctx *cx;
    void *options; /* type->info.options_size bytes, its own */
    void *state;   /* type->state_size bytes, zeroed at creation, owned */
    bool off;    /* switched off while the run goes on (control.h): nothing is called */
    bool joined; /* switched on while the run went on, and not of the recipe */
    struct et_algorithm_count count;
};

enum {
    ET_ALG_FIRST = 1,              /* runs before all others (SelectiveBackprop) */
    ET_ALG_LAST = 2,               /* runs after all others (LowPrecisionLayerNorm) */
    ET_ALG_INIT_AFTER_SURGERY = 4, /* on INIT after every surgery (ChannelsLast) */
    ET_ALG_INIT_LAST = 8,          /* on INIT after that (EMA, SWA) */
    ET_ALG_REQUIRED_ON_LOAD = 16,  /* a model trained with it cannot load without it */
    ET_ALG_PREPARES = 32, /* what it does on INIT, AFTER_LOAD and FIT_START makes ready
                             what is its own, at any time between two batches */
};

struct et_algorithm_class {
    struct et_component info;
    size_t state_size;
    uint64_t events; /* ET_ON(...) bits at which it may act */
    unsigned flags;  /* ET_ALG_* */

    /* Refuses what the table cannot: values that exclude each other. (optional) */
    et_status (*check)(struct et_ctx *cx, const void *options);
    /* Acts at EVENT now? Called for all algorithms before any is applied, on the events
     * above only. (optional: NULL = always) */
    bool (*match)(struct et_algorithm *self, enum et_event event,
                  const struct et_state *state);
    /* Changes STATE. Between BEFORE_TRAIN_BATCH and AFTER_TRAIN_BATCH it must stand
     * being run again for the same batch. */
    et_status (*apply)(struct et_algorithm *self, enum et_event event,
                       struct et_state *state, struct et_log *log);
    /* In a training step, when the update is formulas and nothing of it has run: may
     * append nodes to the state's graph and assign leaves of its own, computed with the
     * update. BATCH_END of that batch follows, unless the step fails or goes back. Must
     * stand being called again for the same batch. (optional) */
    et_status (*update)(struct et_algorithm *self, struct et_state *state);
    /* Mixes losses instead of targets: two such are warned about. (optional) */
    bool (*interpolates_loss)(const struct et_algorithm *self);
    /* Between two batches: the run is to be as its next batch would find it, such as
     * with its own weights, where others have been put in their place. Called before
     * the algorithm is switched off, and before another joins. (optional: it is so) */
    et_status (*settle)(struct et_algorithm *self, struct et_state *state);
    /* Names the state that later steps depend on, to save and to load (archive.h).
     * Loading comes after INIT and before AFTER_LOAD. (optional: it has no state) */
    et_status (*archive)(struct et_algorithm *self, struct et_state *state,
                         struct et_archive *a);
    /* Frees what apply made; the structs themselves are the caller's. (optional) */
    void (*close)(struct et_algorithm *self);
    /* The transform that it adds to those of the training data while it is on: behind
     * those that the data name, before one of values, and behind those of algorithms
     * that come before it in the recipe. It is given a copy of the algorithm's options,
     * so its table is the algorithm's; its draws are keyed by its name. NULL: it adds
     * none. (optional) */
    const struct et_transform_class *(*transform)(const struct et_algorithm *self);
    /* Between two batches: takes back what apply did to the model or to the step on
     * INIT, BEFORE_LOAD, AFTER_LOAD and FIT_START. Leaves of the model have the names
     * and shapes again that they had without the algorithm; what has no value from
     * before begins anew. Other algorithms may have changed the model since, in front
     * of it and behind. apply may be called at these events again afterwards. With it
     * an algorithm that acts at them can be switched, on and off, while a run goes on
     * (control.h). (optional: what it did stays) */
    et_status (*undo)(struct et_algorithm *self, struct et_state *state);
};

/* Every algorithm built in, NULL-terminated, in the order of algorithms.def. */
extern const struct et_algorithm_class *const et_algorithm_classes[];
const struct et_algorithm_class *et_algorithm_find(const char *name);

/* Algorithms that are switched while a run goes on (control.h): what acts before the
 * first batch alone, and has no undo, stays as it is, on or off. */
bool et_algorithm_switches(const struct et_algorithm_class *c);
/* Why an algorithm of class C cannot be switched on in a run that goes on without it, a
 * sentence without its subject: "changes the model before the first batch". NULL: it
 * can. It then joins after the others, as if the recipe had named it last; before that
 * a step is built with it whose evaluations are planned, and not computed, of a blank
 * batch: all that is called between BEFORE_TRAIN_BATCH and AFTER_TRAIN_BATCH is called
 * once more, and it alone at AFTER_DATALOADER and BATCH_START. */
const char *et_algorithm_why_not_join(const struct et_algorithm_class *c);

/* OPTIONS: a struct of the class's type, copied (option.h); NULL = all defaults. */
ET_NODISCARD et_status et_algorithm_new(struct et_ctx *cx,
                                        const struct et_algorithm_class *c,
                                        const void *options, struct et_algorithm **out);
void et_algorithm_free(struct et_algorithm **a);

#ifdef __cplusplus
}
#endif
#endif
