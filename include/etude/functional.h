/* functional.h: what the algorithms do, as functions.
 *
 * Each is the pure core of the algorithm that its comment names (spec/algorithms.md 2):
 * no state, no events, random numbers as arguments. Those on a graph append nodes and
 * return NULL as the functions of op.h do. */
#ifndef ETUDE_FUNCTIONAL_H
#define ETUDE_FUNCTIONAL_H

#include "etude/module.h"
#include "etude/op.h"
#include "etude/optim.h"
#include "etude/rng.h"

#ifdef __cplusplus
extern "C" {
#endif

/* LabelSmoothing: TARGET, I32 [N,...] or dense f32 [N,C,...], as dense targets of which
 * SMOOTHING is spread evenly over the classes. LOGITS [N,C,...] says how many. Rows of
 * ignored (negative) labels stay zero. */
struct et_tensor *et_smooth_labels(struct et_graph *g, struct et_tensor *logits,
                                   struct et_tensor *target, double smoothing);

/* MixUp: (1 - m) x + m batch[index]. X f32 [n,...], BATCH [N,...] whose rows INDEX
 * (I32 [n]) names, M f32 [1], the partner's weight. */
struct et_tensor *et_mixup_batch(struct et_graph *g, struct et_tensor *x,
                                 struct et_tensor *batch, struct et_tensor *index,
                                 struct et_tensor *m);
/* A weight for it: min(b, 1 - b) of b ~ Beta(alpha, alpha), in [0, 0.5]; 0 for alpha 0. */
double et_mixup_coefficient(struct et_rng *rng, double alpha);

/* GradientClipping: GRAD, flat f32 [total] as SPACE lays it out, bounded. AGC_EPS: the
 * least norm that weights count as having; used by ET_CLIP_ADAPTIVE, which also needs to
 * know which parameters have a gradient (space->has_grad). */
enum et_clipping { ET_CLIP_NORM, ET_CLIP_VALUE, ET_CLIP_ADAPTIVE };
struct et_tensor *et_apply_gradient_clipping(struct et_graph *g, struct et_tensor *grad,
                                             const struct et_param_space *space,
                                             enum et_clipping type, double threshold,
                                             double agc_eps);

#ifdef __cplusplus
}
#endif
#endif
