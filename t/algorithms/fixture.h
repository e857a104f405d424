/* SPDX-License-Identifier: Apache-2.0 */
/* fixture.h: what the tests of algorithms share: one on its own, one in a small run. */
#ifndef ETUDE_T_ALGORITHMS_FIXTURE_H
#define ETUDE_T_ALGORITHMS_FIXTURE_H

#include "etude/functional.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/fixture.h"

/* One rounding of f32 is 6e-8; the formulas tested chain fewer than ten. */
#define F32_TOL 1e-6
/* Losses of a few steps whose sums were taken in another order. */
#define STEPS_TOL 1e-5

#define OPTIONS(...) ((const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

/* The algorithm NAME with OPTIONS (name, value, ..., NULL), or the end of the test. */
struct et_algorithm *algorithm(struct et_ctx *cx, const char *name,
                               const char *const *options);
/* Why it cannot be had with them; "" when it can. Borrowed until the next call. */
const char *refusal(struct et_ctx *cx, const char *name, const char *const *options);

/* What a run by SETUP logs last under NAME; NaN: nothing. */
double last_logged(struct et_ctx *cx, struct run_setup setup, const char *name);

/* ---- formulas ---- */

struct formula {
    struct et_ctx *cx;
    struct et_device *dev;
    struct et_graph *g;
};
void formula_open(struct formula *f, struct et_ctx *cx);
void formula_close(struct formula *f);
/* A leaf with VALUES; the caller's. The shape is ET_SHAPE(...). */
struct et_tensor *reals(struct formula *f, const float *values, int ndim,
                        const int64_t *shape);
struct et_tensor *integers(struct formula *f, const int32_t *values, int ndim,
                           const int64_t *shape);
/* Evaluates VALUE, which must have N elements, into OUT. */
void evaluate(struct formula *f, struct et_tensor *value, float *out, int64_t n);

/* ---- runs ---- */

enum { MAX_STEPS = 64 };
struct losses {
    int n;
    double v[MAX_STEPS];
};
/* The loss of each batch of a run. LIST may be NULL. */
struct losses train(struct et_ctx *cx, struct run_setup setup,
                    struct et_algorithm **list, int n);
/* Largest relative difference; infinite when the runs differ in length. */
double difference(const struct losses *a, const struct losses *b);
/* Tests that N algorithms make a difference: the same each time, on device "cpu", and
 * however a batch is split. */
struct choice {
    const char *name;
    const char *const *options;
};
void check_runs(struct et_ctx *cx, struct run_setup setup, const char *what,
                const struct choice *choices, int n);
void check_run(struct et_ctx *cx, struct run_setup setup, const char *name,
               const char *const *options);
/* Tests that a run of MODEL with the algorithm NAME says WANT, a line of its own. */
void check_told(struct et_ctx *cx, const char *name, const char *const *options,
                const char *model, const char *want);
/* Ends the test program: nothing of CX is left. */
int finish(struct et_ctx *cx);

#endif
