/* SPDX-License-Identifier: Apache-2.0 */
/* average.h: a second set of a model's values, kept beside those that are trained. */
#ifndef ETI_TRAINER_AVERAGE_H
#define ETI_TRAINER_AVERAGE_H

#include "core/trainer/state.h"
#include "etude/archive.h"

/* The flat weights, and every buffer of the model: after surgery those of the same name
 * and shape go on, and others begin as the model has them. While ACTIVE the two sets
 * hold each other's contents. Zeroed = none yet. */
struct eti_average {
    struct et_param_copy *weights; /* owned */
    struct eti_average_pair *pair; /* the buffers; owned */
    int n;
    const struct et_state *of; /* borrowed; its model is what it is an average of */
    int64_t surgeries;         /* those that the buffers have followed */
    struct et_tensor **part; /* leaves on stretches of the average of weights; owned */
    int n_parts;
    int64_t cap_parts;
    bool active;
};

/* Lists what the model consists of now and copies it. */
ET_NODISCARD et_status eti_average_copy(struct eti_average *a,
                                        const struct et_state *s);
/* average = SMOOTHING average + (1 - SMOOTHING) values. */
ET_NODISCARD et_status eti_average_add(struct eti_average *a, const struct et_state *s,
                                       double smoothing);
/* The same with what the values will be when the evaluation that is being built has
 * committed its assignments, as part of that evaluation: of an optimizer's pass over
 * the weights the average is one more output. *DONE is false, and nothing was appended,
 * where the weights are assigned other than in stretches of flat memory. */
ET_NODISCARD et_status eti_average_append(struct eti_average *a,
                                          const struct et_state *s, double smoothing,
                                          bool *done);
/* average += SHARE (values - average), SHARE f32 [1]; buffers become what they are. */
ET_NODISCARD et_status eti_average_mean(struct eti_average *a, const struct et_state *s,
                                        struct et_tensor *share);
/* The values become the average, which stays. */
ET_NODISCARD et_status eti_average_adopt(struct eti_average *a,
                                         const struct et_state *s);
/* Makes the average active, or the trained values again; nothing where they are. The N
 * tensors in WANT, values of the graph, are computed before; without any the graph is
 * reset first. */
ET_NODISCARD et_status eti_average_use(struct eti_average *a, const struct et_state *s,
                                       bool yes, struct et_tensor *const *want, int n);
/* Both sets are saved where they are; the trained values are the model's to save. */
ET_NODISCARD et_status eti_average_archive(struct eti_average *a,
                                           struct et_archive *to);
void eti_average_release(struct eti_average *a, struct et_ctx *cx);

#endif
