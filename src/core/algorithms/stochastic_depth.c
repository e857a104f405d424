/* SPDX-License-Identifier: Apache-2.0 */
/* stochastic_depth.c: leaves out residual blocks at random.
 *
 *     p_i = drop_rate (uniform), drop_rate (i + 1) / L (linear), of block i of L
 *     block:  y = relu(F + S) or, with the probability p_i, relu(S); x where S is x
 *     sample: y = relu(m F + S), m of each sample 0 with the probability p_i, else 1
 *     in evaluation y = relu((1 - p_i) F + S)
 *
 * Huang et al. 2016, arXiv 1603.09382; MosaicML Composer; spec/algorithms.md 2.25.
 * Differs: one draw a block and step, on all ranks and for all microbatches (D29);
 * behind the warm-up the rate is drop_rate (D19). A block that is left out is computed
 * all the same, under one plan: its gate (etude/module.h) chooses what counts. */
#include "config.h"

#include "core/algorithms/algorithms.h"
#include "core/base/need.h"
#include "etude/nn.h"

struct stochastic_depth_options {
    int target_layer_name;
    int stochastic_method; /* enum et_stochastic_method */
    double drop_rate;
    int drop_distribution; /* enum et_drop_distribution */
    struct et_time drop_warmup;
};

struct block {
    struct et_bottleneck_module *module; /* one reference */
    struct et_gate gate;
};

struct et_stochastic_depth {
    struct et_ctx *cx;
    enum et_stochastic_method method;
    enum et_drop_distribution distribution;
    struct block *block;
    int n;
    struct et_tensor *closed; /* leaf f32 [n]; NULL: no gates */
    float *v;                 /* [n]: what is written there */
};

double
et_block_drop_rate(double drop_rate, enum et_drop_distribution distribution, int i,
                   int n)
{
    return distribution == ET_DROP_LINEAR ? drop_rate * (i + 1) / n : drop_rate;
}

/* ---- the blocks of a model ---- */

static et_status
collect(struct et_ctx *cx, struct et_module *m, int index, void *data,
        struct et_module **out)
{
    struct et_stochastic_depth *d = data;
    (void)cx, (void)index, (void)out;
    d->block[d->n++].module = (struct et_bottleneck_module *)et_module_ref(m);
    return ET_OK;
}

/* Sets the gate of all parameters that the shortcut of B does without. With a HAVE that
 * is not NULL it does so only where HAVE is their gate. */
static et_status
set_gates(struct et_ctx *cx, const struct block *b, const struct et_gate *have,
          const struct et_gate *gate)
{
    const struct et_bottleneck_module *m = b->module;
    struct et_module *const branch[] = {m->conv1, m->bn1,   m->conv2,
                                        m->bn2,   m->conv3, m->bn3};
    for (int k = 0; k < 6; k++) {
        struct et_leaves l;
        if (!branch[k])
            continue;
        ET_TRY(et_module_leaves(cx, branch[k], ET_PARAM, &l));
        for (int i = 0; i < l.n; i++)
            if (!have || l.v[i].param->gate == have)
                l.v[i].param->gate = gate;
        et_leaves_release(&l);
    }
    return ET_OK;
}

static et_status
make_gates(struct et_stochastic_depth *d, struct et_device *dev)
{
    int64_t n = d->n;
    void *block;
    ET_TRY(et_alloc(d->cx, (size_t)n * sizeof *d->v, &block));
    d->v = block;
    ET_TRY(et_tensor_new(d->cx, dev, ET_F32, 1, &n, ET_ROW_MAJOR, "blocks left out",
                         &d->closed));
    for (int i = 0; i < d->n; i++) {
        struct block *b = &d->block[i];
        b->gate = (struct et_gate){.closed = d->closed, .at = i};
        b->module->gate = &b->gate;
        ET_TRY(set_gates(d->cx, b, NULL, &b->gate));
    }
    return ET_OK;
}

static et_status
make(struct et_stochastic_depth *d, struct et_module *root, struct et_device *dev)
{
    struct et_surgery none;
    void *block;
    int n;
    ET_TRY(et_module_count_class(d->cx, root, &et_bottleneck_class, &n));
    ET_TRY(et_alloc(d->cx, ((size_t)n + 1) * sizeof *d->block, &block));
    d->block = block;
    et_status status = et_module_replace(
        d->cx, root, &(struct et_surgery_policy){&et_bottleneck_class, collect}, 1, d,
        &none);
    et_surgery_release(&none);
    for (int i = 0; i < d->n; i++) {
        d->block[i].module->gate = NULL;
        d->block[i].module->drops_samples = d->method == ET_STOCHASTIC_SAMPLE;
    }
    if (status == ET_OK && d->n > 0 && d->method == ET_STOCHASTIC_BLOCK)
        status = make_gates(d, dev);
    return status;
}

et_status
et_apply_stochastic_depth(struct et_ctx *cx, struct et_module *root,
                          struct et_device *dev, enum et_stochastic_method method,
                          double drop_rate, enum et_drop_distribution distribution,
                          struct et_stochastic_depth **out)
{
    void *block;
    ETI_NEED(cx, out);
    *out = NULL;
    ETI_NEED(cx, cx, root, dev);
    if (!(drop_rate >= 0 && drop_rate <= 1))
        return ET_FAIL(cx, ET_EINVAL,
                       "stochastic_depth needs a drop_rate in [0, 1], not %g",
                       drop_rate);
    ET_TRY(et_alloc(cx, sizeof(struct et_stochastic_depth), &block));
    struct et_stochastic_depth *d = block;
    *d = (struct et_stochastic_depth){
        .cx = cx, .method = method, .distribution = distribution};
    et_status status = make(d, root, dev);
    et_stochastic_depth_set_rate(d, drop_rate);
    if (status == ET_OK)
        *out = d;
    else
        et_stochastic_depth_free(&d);
    return status;
}

void
et_stochastic_depth_free(struct et_stochastic_depth **out)
{
    struct et_stochastic_depth *d = out ? *out : NULL;
    if (!d)
        return;
    *out = NULL;
    for (int i = 0; i < d->n; i++) {
        struct block *b = &d->block[i];
        struct et_module *m = &b->module->base;
        if (b->module->gate == &b->gate) {
            b->module->gate = NULL;
            /* Lists of so few leaves were made before: if there is no memory for one
             * now, the model is not trained any more either. */
            (void)!set_gates(d->cx, b, &b->gate, NULL);
        }
        et_module_free(&m);
    }
    et_tensor_free(&d->closed);
    et_free(d->cx, d->v);
    et_free(d->cx, d->block);
    et_free(d->cx, d);
}

int
et_stochastic_depth_blocks(const struct et_stochastic_depth *d)
{
    return d ? d->n : 0;
}

void
et_stochastic_depth_set_rate(struct et_stochastic_depth *d, double drop_rate)
{
    for (int i = 0; d && i < d->n; i++)
        d->block[i].module->drop_rate =
            et_block_drop_rate(drop_rate, d->distribution, i, d->n);
}

et_status
et_stochastic_depth_draw(struct et_stochastic_depth *d, struct et_rng *rng)
{
    ETI_NEED(d ? d->cx : NULL, d, rng);
    if (!d->closed)
        return ET_OK;
    for (int i = 0; i < d->n; i++) {
        struct block *b = &d->block[i];
        b->gate.is_closed = et_rng_uniform(rng) < b->module->drop_rate;
        d->v[i] = b->gate.is_closed;
    }
    return et_tensor_write(d->cx, d->closed, d->v, (size_t)d->n * sizeof *d->v);
}

/* ---- the algorithm ---- */

struct stochastic_depth {
    struct et_stochastic_depth *blocks;
};

static et_status
operate(struct et_algorithm *self, struct et_state *s, struct et_log *log)
{
    const struct stochastic_depth_options *o = self->options;
    struct stochastic_depth *own = self->state;
    et_stochastic_depth_free(&own->blocks);
    ET_TRY(et_apply_stochastic_depth(
        s->cx, s->model->root, s->dev, (enum et_stochastic_method)o->stochastic_method,
        o->drop_rate, (enum et_drop_distribution)o->drop_distribution, &own->blocks));
    int n = et_stochastic_depth_blocks(own->blocks);
    if (n == 0)
        et_report(s->cx, ET_LOG_WARN,
                  "stochastic_depth changed nothing: the model has no bottlenecks, as "
                  "resnet50 has");
    else if (o->drop_rate == 0)
        et_report(s->cx, ET_LOG_WARN,
                  "stochastic_depth changes nothing with a drop_rate of 0");
    else
        eti_tell_changed(self, n, n, "residual blocks");
    et_log_metric(log, "stochastic_depth/num_stochastic_layers", n);
    return n > 0 ? et_state_follow_surgery(s) : ET_OK;
}

/* That of the step to come. */
static et_status
rate_now(const struct stochastic_depth_options *o, const struct et_state *s,
         double *rate)
{
    double elapsed;
    *rate = o->drop_rate;
    if (o->drop_warmup.value == 0)
        return ET_OK;
    ET_TRY(et_state_elapsed(s, &elapsed));
    if (elapsed < o->drop_warmup.value)
        *rate *= elapsed / o->drop_warmup.value;
    return ET_OK;
}

static et_status
draw(struct et_algorithm *self, struct et_state *s, struct et_log *log)
{
    struct stochastic_depth *own = self->state;
    struct et_rng rng = eti_draws(self, s, ET_RNG_MIX, s->timestamp.sample, 0);
    double rate;
    ET_TRY(rate_now(self->options, s, &rate));
    et_stochastic_depth_set_rate(own->blocks, rate);
    et_log_metric(log, "stochastic_depth/drop_rate", rate);
    return et_stochastic_depth_draw(own->blocks, &rng);
}

static bool
match(struct et_algorithm *self, enum et_event event, const struct et_state *s)
{
    const struct stochastic_depth *own = self->state;
    (void)s;
    return event == ET_EVENT_INIT || et_stochastic_depth_blocks(own->blocks) > 0;
}

static et_status
apply(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    return event == ET_EVENT_INIT ? operate(self, s, log) : draw(self, s, log);
}

/* All blocks are as they were without it; the next BATCH_START has its rates again. */
static et_status
settle(struct et_algorithm *self, struct et_state *s)
{
    struct stochastic_depth *own = self->state;
    struct et_rng rng = eti_draws(self, s, ET_RNG_MIX, s->timestamp.sample, 0);
    if (!own->blocks)
        return ET_OK;
    et_stochastic_depth_set_rate(own->blocks, 0);
    return et_stochastic_depth_draw(own->blocks, &rng);
}

static et_status
undo(struct et_algorithm *self, struct et_state *s)
{
    struct stochastic_depth *own = self->state;
    if (!own->blocks)
        return ET_OK;
    et_stochastic_depth_set_rate(own->blocks, 0);
    for (int i = 0; i < own->blocks->n; i++)
        own->blocks->block[i].module->drops_samples = false;
    et_stochastic_depth_free(&own->blocks);
    return et_state_follow_surgery(s);
}

static void
close_stochastic_depth(struct et_algorithm *self)
{
    et_stochastic_depth_free(&((struct stochastic_depth *)self->state)->blocks);
}

static et_status
check(struct et_ctx *cx, const void *options)
{
    const struct stochastic_depth_options *o = options;
    const struct et_time *warmup = &o->drop_warmup;
    char text[ET_TIME_TEXT_BYTES];
    if (warmup->value == 0)
        return ET_OK;
    et_time_text(*warmup, text, sizeof text);
    if (warmup->unit != ET_TIME_DURATION || warmup->value > 1)
        return ET_FAIL(
            cx, ET_EINVAL,
            "stochastic_depth: drop_warmup is a fraction of the run, 0dur to "
            "1dur, not %s",
            text);
    if (o->stochastic_method == ET_STOCHASTIC_SAMPLE)
        return ET_FAIL(
            cx, ET_EINVAL,
            "stochastic_depth: drop_warmup %s is for stochastic_method block; "
            "with sample it is 0dur",
            text);
    return ET_OK;
}

static const char *const layers[] = {"ResNetBottleneck", NULL};
static const char *const stochastic_methods[] = {"block", "sample", NULL};
static const char *const distributions[] = {"uniform", "linear", NULL};

static const struct et_option table[] = {
    ETI_ENUM(stochastic_depth_options, target_layer_name, NULL, layers, ET_OPT_REQUIRED,
             "the kind of block that is left out"),
    ETI_ENUM(stochastic_depth_options, stochastic_method, "block", stochastic_methods,
             0, "leave out a block for the whole batch, or for each sample by itself"),
    ETI_ROW(FLOAT, stochastic_depth_options, drop_rate, "0.2", 0, 1, 0,
            "probability of leaving out a block: with linear, of the last one"),
    ETI_ENUM(stochastic_depth_options, drop_distribution, "linear", distributions, 0,
             "the same rate for all blocks, or one that grows from block to block"),
    ETI_ROW(TIME, stochastic_depth_options, drop_warmup, "0dur", 0, -1, 0,
            "fraction of the run in which the rates grow from 0"),
    {.name = NULL},
};

const struct et_algorithm_class et_algorithm_stochastic_depth = {
    .info =
        {
            .name = "stochastic_depth",
            .class_name = "StochasticDepth",
            .summary = "leave out residual blocks at random",
            .source = "Huang et al. 2016, arXiv 1603.09382",
            .applies_to = "vision",
            .options = table,
            .options_size = sizeof(struct stochastic_depth_options),
        },
    .state_size = sizeof(struct stochastic_depth),
    .events = ET_ON(INIT) | ET_ON(BATCH_START),
    .flags = ET_ALG_REQUIRED_ON_LOAD | ET_ALG_INIT_AFTER_SURGERY,
    .check = check,
    .match = match,
    .apply = apply,
    .settle = settle,
    .close = close_stochastic_depth,
    .undo = undo,
};
