/* SPDX-License-Identifier: Apache-2.0 */
/* golden_run.h: the networks of t/golden, trained as PyTorch trained them. */
#ifndef T_TRAIN_GOLDEN_RUN_H
#define T_TRAIN_GOLDEN_RUN_H

#include "etude/comm.h"
#include "etude/model.h"
#include "etude/optim.h"

struct golden {
    const char *file, *model, *optimizer;
    const char *const *model_options, *const
                                          *optimizer_options; /* name, text ..., NULL */
    struct et_model_facts facts;
    double scale;        /* of initial weights; 0: sqrt(3 / fan_in) */
    double weight, bias; /* initial values of arrays with one axis */
    struct et_desc x, target;
    int products, samples; /* in a row; in the loss's mean */
    void (*batch)(int step, void *x, int32_t *target);
};

extern const struct golden golden_resnet20, golden_gpt;

/* Trains STEPS steps with products in LOW (NONE: f32) and fills LOSS. Of COMM's ranks
 * each takes its part of every batch. Returns how many plans that took; bails out. */
int64_t golden_train(struct et_ctx *cx, struct et_device *dev, struct et_comm *comm,
                     const struct golden *r, enum et_dtype low, int steps,
                     double *loss);
/* The lines of t/golden/FILE, COLUMNS numbers behind that of each of the STEPS steps,
 * into VALUE [STEPS][COLUMNS]. */
void golden_load(const char *file, int steps, int columns, double *value);
/* The first step of N at which GOT is further than TOLERANCE of WANT from it; -1:
 * none. */
int golden_compare(const double *got, const double *want, int n, double tolerance,
                   double *worst);

#endif
