/* SPDX-License-Identifier: Apache-2.0 */
/* sam.c: sharpness-aware minimisation: the gradient of a worse place nearby.
 *
 *     e = rho g / (|g| + epsilon), g = grad L(w);  update w with grad L(w + e)
 *
 * Foret et al. 2021, arXiv 2010.01412; spec/algorithms.md 2.21.
 * Differs: the step counter is the run's batch count, so a resumed run goes on as it
 * would have (D18); a loss of 0 is no failure (D17); both passes draw alike and running
 * statistics follow the first (D29, D30). */
#include "config.h"

#include "core/algorithms/algorithms.h"

struct sam_options {
    double rho, epsilon;
    int64_t interval;
};

struct sam {
    struct et_tensor *weights; /* as they were; flat as state->params->values */
};

/* Weights w + e; w is kept. */
static et_status
perturb(struct et_state *s, const struct sam_options *o, struct sam *own)
{
    struct et_graph *g = s->graph;
    struct et_tensor *w = s->params->values;
    if (own->weights && !et_desc_equal(&own->weights->desc, &w->desc))
        et_tensor_free(&own->weights);
    if (!own->weights)
        ET_TRY(et_tensor_new(s->cx, s->dev, ET_F32, 1, w->desc.shape, ET_ROW_MAJOR,
                             "sam", &own->weights));
    struct et_tensor *norm =
        et_add_scalar(g, et_sqrt(g, et_state_grad_squares(s)), o->epsilon);
    struct et_tensor *scale = et_mul_scalar(g, et_reciprocal(g, norm), o->rho);
    et_assign(g, own->weights, w);
    et_assign(g, w, et_add(g, w, et_mul(g, s->grad, scale)));
    return et_eval(g, NULL, 0);
}

/* The weights after a pass that failed; the first error stays the one reported. */
static et_status
put_back(struct et_state *s, struct sam *own, et_status status)
{
    et_graph_abandon(s->graph);
    et_assign(s->graph, s->params->values, own->weights);
    if (et_eval(s->graph, NULL, 0) != ET_OK)
        return ET_EINTERNAL; /* nobody may go on from here */
    return status;
}

/* The second pass's gradient is computed where its weights still are; restoring them is
 * the commit of that same evaluation. */
static et_status
step(struct et_state *s, void *data, et_closure_fn *closure)
{
    struct et_algorithm *self = data;
    const struct sam_options *o = self->options;
    struct sam *own = self->state;
    bool looks = (s->timestamp.batch + 1) % o->interval == 0;
    s->keep_local = looks; /* each rank looks around its own way */
    et_status first = closure(s, 0);
    s->keep_local = false;
    if (first != ET_OK || !looks)
        return first;
    ET_TRY(perturb(s, o, own));
    et_status status = closure(s, 1);
    if (status == ET_OK) {
        et_assign(s->graph, s->params->values, own->weights);
        status = et_eval(s->graph, &s->grad, 1);
    }
    return status == ET_OK ? ET_OK : put_back(s, own, status);
}

static et_status
apply(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    (void)event;
    (void)log;
    if (s->step)
        return ET_FAIL(
            s->cx, ET_EINVAL,
            "sam: another algorithm has already replaced the optimizer's step");
    s->step = step;
    s->step_data = self;
    return ET_OK;
}

static et_status
undo(struct et_algorithm *self, struct et_state *s)
{
    if (s->step_data == self)
        s->step = NULL;
    return ET_OK;
}

static void
close_sam(struct et_algorithm *self)
{
    et_tensor_free(&((struct sam *)self->state)->weights);
}

static const struct et_option table[] = {
    ETI_ROW(FLOAT, sam_options, rho, "0.05", 0, -1, 0, "radius of the neighbourhood"),
    ETI_ROW(FLOAT, sam_options, epsilon, "1e-12", 0, -1, ET_OPT_MIN_OPEN,
            "added to the gradient's norm"),
    ETI_ROW(INT, sam_options, interval, "1", 1, -1, 0,
            "every so many steps look around; the others are ordinary"),
    {.name = NULL},
};

const struct et_algorithm_class et_algorithm_sam = {
    .info =
        {
            .name = "sam",
            .class_name = "SAM",
            .summary = "step with the gradient at the worst place nearby; running "
                       "statistics follow the first of its two passes",
            .source = "Foret et al. 2021, arXiv 2010.01412",
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct sam_options),
        },
    .state_size = sizeof(struct sam),
    .events = ET_ON(AFTER_LOAD),
    .apply = apply,
    .close = close_sam,
    .undo = undo,
};
