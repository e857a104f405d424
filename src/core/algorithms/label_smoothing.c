/* SPDX-License-Identifier: Apache-2.0 */
/* label_smoothing.c: targets mixed with the uniform distribution.
 *
 *     t = (1 - s) dense(y) + s / C
 *
 * Szegedy et al. 2016, arXiv 1512.00567; spec/algorithms.md 2.14.
 * Differs: rows of an ignored label stay zero, as part of them does where such a row
 * was mixed with another (D14). */
#include "config.h"

#include "core/algorithms/algorithms.h"
#include "core/base/need.h"
#include "core/ops/ops.h"

struct label_smoothing_options {
    double smoothing;
};

struct label_smoothing {
    struct et_tensor *target; /* as it was before the loss; value of the step's graph */
};

struct et_tensor *
et_smooth_labels(struct et_graph *g, struct et_tensor *logits, struct et_tensor *target,
                 double smoothing)
{
    ETI_NEED_IN(g, g);
    if (!logits || !target)
        return ETI_MISSING(g, logits, target);
    int64_t classes = logits->desc.shape[1];
    struct et_tensor *t = target;
    if (!et_dtype_is_float(t->desc.dtype))
        t = et_one_hot(g, t, classes);
    struct et_tensor *mass = et_clamp(g, et_sum(g, t, 1u << 1, true), 0, 1);
    return et_add(g, et_mul_scalar(g, t, 1 - smoothing),
                  et_mul_scalar(g, mass, smoothing / (double)classes));
}

static et_status
apply(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    const struct label_smoothing_options *o = self->options;
    struct label_smoothing *own = self->state;
    (void)log;
    if (event == ET_EVENT_AFTER_LOSS) {
        s->batch.target = own->target;
        return ET_OK;
    }
    if (!eti_takes_dense_targets(s))
        return ET_FAIL(
            s->cx, ET_ENOTSUP,
            "label_smoothing: the loss of a language model takes indices only");
    own->target = s->batch.target;
    s->batch.target =
        et_smooth_labels(s->graph, s->outputs, s->batch.target, o->smoothing);
    return et_graph_status(s->graph);
}

static const struct et_option table[] = {
    ETI_ROW(FLOAT, label_smoothing_options, smoothing, "0.1", 0, 1, ET_OPT_MAY_CHANGE,
            "weight of the uniform distribution"),
    {.name = NULL},
};

const struct et_algorithm_class et_algorithm_label_smoothing = {
    .info =
        {
            .name = "label_smoothing",
            .class_name = "LabelSmoothing",
            .summary = "mix targets with the uniform distribution",
            .source = "Szegedy et al. 2016, arXiv 1512.00567",
            .applies_to = "vision",
            .options = table,
            .options_size = sizeof(struct label_smoothing_options),
        },
    .state_size = sizeof(struct label_smoothing),
    .events = ET_ON(BEFORE_LOSS) | ET_ON(AFTER_LOSS),
    .apply = apply,
};
