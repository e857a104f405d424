/* SPDX-License-Identifier: Apache-2.0 */
/* algorithms.h: what the files of src/core/algorithms share. */
#ifndef ETI_ALGORITHMS_H
#define ETI_ALGORITHMS_H

#include "core/trainer/state.h"
#include "etude/algorithm.h"
#include "etude/functional.h"

#define ET_ALGORITHM(name) extern const struct et_algorithm_class et_algorithm_##name;
#include "core/algorithms/algorithms.def"
#undef ET_ALGORITHM

/* ---- rows of option tables ---- */

/* LO .. HI inclusive unless FLAGS say otherwise; HI below LO: none above. DEFAULTS NULL
 * with ET_OPT_REQUIRED or ET_OPT_OPTIONAL in FLAGS. */
#define ETI_ROW(code, S, field, defaults, lo, hi, more, words, ...)                    \
    {                                                                                  \
        .name = #field, .type = ET_OPT_##code, .offset = offsetof(struct S, field),    \
        .def = defaults, .min = lo, .max = hi, .flags = more, .help = words,           \
        __VA_ARGS__                                                                    \
    }
#define ETI_BOOL(S, field, defaults, words)                                            \
    ETI_ROW(BOOL, S, field, defaults, 0, 0, 0, words)
#define ETI_ENUM(S, field, defaults, names, more, words)                               \
    {                                                                                  \
        .name = #field, .type = ET_OPT_ENUM, .offset = offsetof(struct S, field),      \
        .def = defaults, .choices = names, .flags = more, .help = words,               \
    }

/* EINVAL where OPTIONS, of INFO's type, have a value that INFO's table refuses. */
ET_NODISCARD et_status eti_check_options(struct et_ctx *cx,
                                         const struct et_component *info,
                                         const void *options);

/* ---- surgery ---- */

/* What follows the functions that replace modules: STATUS is how it went. The state
 * follows, SURGERY is released; *N: how many were replaced. */
ET_NODISCARD et_status eti_end_surgery(struct et_state *s, et_status status,
                                       struct et_surgery *surgery, int *n);
/* An undo that is surgery: POLICIES give modules what was in their place before, with
 * the values that it has now. */
ET_NODISCARD et_status eti_undo_surgery(struct et_state *s,
                                        const struct et_surgery_policy *policies, int n,
                                        void *data);
/* Of a module that waits outside of the model: its leaves lose their values. */
ET_NODISCARD et_status eti_forget_values(struct et_ctx *cx, struct et_module *m);
/* Says "SELF: N of ALL THINGS"; where N is 0, warns that nothing was changed. */
void eti_tell_changed(const struct et_algorithm *self, int n, int all,
                      const char *things);

/* Says that the loader has SELF's transform. */
void eti_tell_transform(const struct et_algorithm *self);

/* ---- draws ---- */

/* Where SELF's draws of kind PART begin in STREAM at sample INDEX: no two algorithms,
 * nor two parts of one, share any. */
struct et_rng eti_draws(const struct et_algorithm *self, const struct et_state *s,
                        enum et_rng_stream stream, int64_t index, int part);

/* ---- what changes from step to step ---- */

/* N row numbers: written in V on the host, then read by nodes from LEAF, I32 [n]. */
struct eti_rows {
    int32_t *v;
    struct et_tensor *leaf;
    int64_t n;
};
/* Room for N; allocates only when N changes. */
ET_NODISCARD et_status eti_rows_reserve(struct et_state *s, struct eti_rows *r,
                                        int64_t n);
ET_NODISCARD et_status eti_rows_write(struct et_state *s, struct eti_rows *r);
void eti_rows_release(struct et_ctx *cx, struct eti_rows *r);

/* X [N,...] -> [n,...]: the rows of axis 0 that INDEX (I32 [n]) names. Images stay
 * channels-last. */
struct et_tensor *eti_take_rows(struct et_graph *g, struct et_tensor *x,
                                struct et_tensor *index);

/* Optimizer steps of the whole run, for SELF. EINVAL: the epoch's length is not known,
 * or the run's is neither in epochs nor in batches. */
ET_NODISCARD et_status eti_total_steps(const struct et_algorithm *self,
                                       const struct et_state *s, int64_t *steps);

/* True for models whose loss takes targets of the outputs' shape. */
bool eti_takes_dense_targets(const struct et_state *s);

#endif
