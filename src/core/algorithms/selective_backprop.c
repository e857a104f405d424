/* SPDX-License-Identifier: Apache-2.0 */
/* selective_backprop.c: only hard samples are trained on.
 *
 *     losses of the whole batch, sorted; rank i (0 = easiest) of N weighs
 *     ((i + 1/2) / N)^(1/keep - 1); trunc(keep N) are drawn without replacement
 *
 * Jiang et al. 2019, arXiv 1910.00762; spec/algorithms.md 2.22.
 * Differs: it selects before other algorithms have changed the batch (D1; compat: after
 * them), at least one sample is kept, and scale_factor is for images [N,C,H,W] only. */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "core/algorithms/algorithms.h"
#include "core/base/need.h"

struct selective_backprop_options {
    double start, end, keep, scale_factor;
    int64_t interrupt;
    bool eval_mode, compat;
};

struct selective_backprop {
    struct et_tensor *rng; /* I64 [2], as the trainer's: the masks of training */
    struct eti_rows kept;
};

struct candidate {
    double weight; /* 0 once drawn */
    float loss;
    int32_t row;
};

bool
et_should_selective_backprop(double elapsed, int64_t batch_in_epoch, double start,
                             double end, double keep, int64_t interrupt)
{
    if (keep >= 1 || elapsed < start || elapsed >= end)
        return false;
    return interrupt == 0 || (batch_in_epoch + 1) % interrupt != 0;
}

int64_t
et_selection_size(int64_t n, double keep)
{
    int64_t kept = (int64_t)(keep * (double)n);
    return kept > 1 ? kept : 1;
}

void
et_selection_weights(int64_t n, double keep, double *weight)
{
    if ((n > 0 && !weight))
        return;
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += weight[i] = pow(((double)i + 0.5) / (double)n, 1 / keep - 1);
    for (int64_t i = 0; i < n; i++)
        weight[i] /= sum;
}

/* ---- drawing ---- */

/* Ascending; what is not a number is hardest; equal ones by row. */
static int
by_loss(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (isnan(x->loss) != isnan(y->loss))
        return isnan(x->loss) ? 1 : -1;
    if (x->loss != y->loss && !isnan(x->loss))
        return x->loss < y->loss ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* The first candidate up to which the weights add up to more than MARK; where rounding
 * leaves none, the hardest one not yet drawn. */
static int64_t
find_mark(const struct candidate *c, int64_t n, double mark)
{
    double sum = 0;
    int64_t last = -1;
    for (int64_t i = 0; i < n; i++) {
        if (c[i].weight <= 0)
            continue;
        last = i;
        sum += c[i].weight;
        if (sum > mark)
            break;
    }
    return last;
}

/* Draws as many as are missing with the weights as they are, keeps first occurrences,
 * then does it again without those. */
static int64_t
draw_round(struct candidate *c, int64_t n, struct et_rng *rng, int32_t *rows,
           int64_t found, int64_t wanted)
{
    double total = 0;
    for (int64_t i = 0; i < n; i++)
        total += c[i].weight;
    int64_t before = found;
    for (int64_t k = before; k < wanted; k++) {
        int64_t at = find_mark(c, n, et_rng_uniform(rng) * total);
        int64_t same = before;
        while (same < found && rows[same] != at)
            same++;
        if (at >= 0 && same == found)
            rows[found++] = (int32_t)at;
    }
    for (int64_t k = before; k < found; k++)
        c[rows[k]].weight = 0;
    return found;
}

et_status
et_select_using_loss(struct et_ctx *cx, const float *loss, int64_t n, double keep,
                     struct et_rng *rng, int32_t *rows)
{
    ETI_NEED(cx, cx, rng);
    if (n > 0)
        ETI_NEED(cx, loss, rows);
    int64_t wanted = et_selection_size(n, keep), found = 0, before = -1;
    void *block;
    ET_TRY(
        et_alloc(cx, (size_t)n * (sizeof(struct candidate) + sizeof(double)), &block));
    struct candidate *c = block;
    double *weight = (double *)(c + n);
    et_selection_weights(n, keep, weight);
    for (int64_t i = 0; i < n; i++)
        c[i] = (struct candidate){.loss = loss[i], .row = (int32_t)i};
    qsort(c, (size_t)n, sizeof *c, by_loss);
    for (int64_t i = 0; i < n; i++)
        c[i].weight = weight[i];
    while (found < wanted && found > before) {
        before = found;
        found = draw_round(c, n, rng, rows, found, wanted);
    }
    /* Weights too small for a double are never drawn: the hardest of them fill up. */
    for (int64_t i = n - 1; i >= 0 && found < wanted; i--) {
        int64_t same = 0;
        while (same < found && rows[same] != i)
            same++;
        if (same == found)
            rows[found++] = (int32_t)i;
    }
    for (int64_t k = 0; k < found; k++)
        rows[k] = c[rows[k]].row;
    et_free(cx, block);
    return ET_OK;
}

/* ---- selecting ---- */

static et_status
shrink(struct et_state *s, double factor, struct et_tensor **x)
{
    const struct et_desc *d = &(*x)->desc;
    if (factor >= 1)
        return ET_OK;
    if (d->ndim != 4)
        return ET_FAIL(
            s->cx, ET_EINVAL,
            "selective_backprop: scale_factor %g needs images [N,C,H,W]; the "
            "inputs have %d axes",
            factor, d->ndim);
    int64_t h = (int64_t)((double)d->shape[2] * factor);
    int64_t w = (int64_t)((double)d->shape[3] * factor);
    *x = et_resize2d(s->graph, *x, ET_RESIZE_BILINEAR, h > 1 ? h : 1, w > 1 ? w : 1);
    return ET_OK;
}

/* LOSS [n] of the batch as it is. What the batch is computed from ends with this
 * evaluation's commit (running statistics), so it is computed too. */
static et_status
measure(struct et_algorithm *self, struct et_state *s, float *loss, int64_t n)
{
    const struct selective_backprop_options *o = self->options;
    struct selective_backprop *own = self->state;
    const int64_t draws[] = {(int64_t)et_rng_key(s->seed, ET_RNG_DROPOUT),
                             s->first_sample};
    const int64_t two = 2;
    struct et_tensor *x = s->batch.x;
    if (!own->rng)
        ET_TRY(et_tensor_new(s->cx, s->dev, ET_I64, 1, &two, ET_ROW_MAJOR, "rng",
                             &own->rng));
    ET_TRY(et_tensor_write(s->cx, own->rng, draws, sizeof draws));
    ET_TRY(shrink(s, o->scale_factor, &x));
    struct et_forward f = {.g = s->graph,
                           .samples = &s->batch,
                           .training = !o->eval_mode,
                           .rng = own->rng};
    struct et_tensor *outputs = et_model_forward(s->model, &f, x);
    struct et_tensor *each = et_state_loss(s, outputs, s->batch.target, ET_REDUCE_NONE);
    ET_TRY(et_graph_status(s->graph));
    if (et_desc_count(&each->desc) != n)
        return ET_FAIL(
            s->cx, ET_EINVAL,
            "selective_backprop needs one loss per sample; this model gives %lld "
            "for %lld",
            (long long)et_desc_count(&each->desc), (long long)n);
    struct et_tensor *want[ET_MAX_FIELDS + 1] = {each, s->batch.x, s->batch.target};
    for (int i = 0; i < s->batch.n_others; i++)
        want[3 + i] = s->batch.other[i].tensor;
    ET_TRY(et_eval(s->graph, want, 3 + s->batch.n_others));
    return et_tensor_read(s->cx, each, loss, (size_t)n * sizeof *loss);
}

static et_status
choose(struct et_algorithm *self, struct et_state *s, int64_t n, float *loss)
{
    const struct selective_backprop_options *o = self->options;
    struct selective_backprop *own = self->state;
    ET_TRY(measure(self, s, loss, n));
    struct et_rng rng = eti_draws(self, s, ET_RNG_SELECT, s->first_sample, 0);
    ET_TRY(eti_rows_reserve(s, &own->kept, et_selection_size(n, o->keep)));
    ET_TRY(et_select_using_loss(s->cx, loss, n, o->keep, &rng, own->kept.v));
    ET_TRY(eti_rows_write(s, &own->kept));
    s->batch.x = eti_take_rows(s->graph, s->batch.x, own->kept.leaf);
    s->batch.target = eti_take_rows(s->graph, s->batch.target, own->kept.leaf);
    for (int i = 0; i < s->batch.n_others; i++)
        s->batch.other[i].tensor =
            eti_take_rows(s->graph, s->batch.other[i].tensor, own->kept.leaf);
    s->batch.n = own->kept.n;
    return et_graph_status(s->graph);
}

static bool
match(struct et_algorithm *self, enum et_event event, const struct et_state *s)
{
    const struct selective_backprop_options *o = self->options;
    double elapsed;
    if (event != (o->compat ? ET_EVENT_BATCH_START : ET_EVENT_AFTER_DATALOADER) ||
        et_state_elapsed(s, &elapsed) != ET_OK)
        return false;
    return et_should_selective_backprop(elapsed, s->timestamp.batch_in_epoch, o->start,
                                        o->end, o->keep, o->interrupt);
}

static et_status
apply(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    (void)event;
    (void)log;
    if (!s->batch.x || !s->batch.target)
        return et_graph_status(s->graph);
    int64_t n = s->batch.x->desc.shape[0];
    void *loss;
    if (n == 0)
        return ET_OK;
    ET_TRY(et_alloc(s->cx, (size_t)n * sizeof(float), &loss));
    et_status status = choose(self, s, n, loss);
    et_free(s->cx, loss);
    return status;
}

static void
close_selective_backprop(struct et_algorithm *self)
{
    struct selective_backprop *own = self->state;
    et_tensor_free(&own->rng);
    eti_rows_release(self->cx, &own->kept);
}

static et_status
check(struct et_ctx *cx, const void *options)
{
    const struct selective_backprop_options *o = options;
    if (o->end >= o->start)
        return ET_OK;
    return ET_FAIL(cx, ET_EINVAL, "selective_backprop: end %g comes before start %g",
                   o->end, o->start);
}

#define FRACTION(field, defaults, more, words)                                         \
    ETI_ROW(FLOAT, selective_backprop_options, field, defaults, 0, 1, more, words)

static const struct et_option table[] = {
    FRACTION(start, "0.5", 0, "fraction of the run from which it selects"),
    FRACTION(end, "0.9", 0, "fraction of the run to which it selects"),
    FRACTION(keep, "0.5", ET_OPT_MIN_OPEN,
             "fraction of the batch trained on; 1 is all"),
    FRACTION(scale_factor, "1.0", ET_OPT_MIN_OPEN,
             "size of images for selection, relative to their own"),
    ETI_ROW(INT, selective_backprop_options, interrupt, "2", 0, -1, 0,
            "every so many batches one is left whole; 0 = none, 1 = all"),
    ETI_BOOL(selective_backprop_options, eval_mode, "false",
             "select with the model in evaluation mode, which moves no statistics"),
    ETI_BOOL(selective_backprop_options, compat, "false",
             "select after other algorithms have changed the batch, as Composer does"),
    {.name = NULL},
};

const struct et_algorithm_class et_algorithm_selective_backprop = {
    .info =
        {
            .name = "selective_backprop",
            .class_name = "SelectiveBackprop",
            .summary = "back-propagate only hard samples",
            .source = "Jiang et al. 2019, arXiv 1910.00762",
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct selective_backprop_options),
        },
    .state_size = sizeof(struct selective_backprop),
    .events = ET_ON(AFTER_DATALOADER) | ET_ON(BATCH_START),
    .flags = ET_ALG_FIRST,
    .check = check,
    .match = match,
    .apply = apply,
    .close = close_selective_backprop,
};
