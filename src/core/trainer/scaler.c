/* SPDX-License-Identifier: Apache-2.0 */
/* scaler.c: dynamic loss scaling for amp_fp16.
 *
 *   backward from s L;  g = g' / s
 *   g not finite:  the update is skipped, s = max(backoff s, 1), clean = 0
 *   else:          clean += 1; at the interval s = growth s (while finite), clean = 0
 *
 * f16 holds nothing below 2^-24: small gradients would vanish, so the loss is scaled up
 * until the largest nearly overflow (Micikevicius et al. 2018, 1710.03740; the rule and
 * its numbers are torch.amp.GradScaler's; spec/trainer.md 11.2). Scale and count are
 * leaves: the verdict, the skip and the new scale are part of the step's evaluation,
 * and no change of scale makes another plan. Growth and backoff are powers of two, so
 * scaling changes no bit of a gradient that f16 can hold.
 *
 * With two passes (SAM) the verdict is that of either: the first one's is kept in a
 * leaf. Differs: the scale stops at 1, as DeepSpeed's does. An overflow there is no
 * fault of the scale, and counts as a batch that is not finite. */
#include "config.h"

#include "core/trainer/part.h"

#define SMALLEST 1.0
#define LARGEST  0x1p127 /* twice that is infinite in f32 */

/* All NULL without scaling; tensors are f32 [1]. */
struct scaler {
    struct et_loss_scaling rule;
    struct et_tensor *scale;
    struct et_tensor *clean;    /* updates since the scale changed */
    struct et_tensor *overflow; /* 1 if a gradient of this step was not finite */
    const struct et_tensor
        *checked; /* the gradient that OVERFLOW speaks of; never read */
};

static const int64_t one[] = {1};

static et_status
new_number(struct et_state *s, const char *name, struct et_tensor **out)
{
    return et_tensor_new(s->cx, s->dev, ET_F32, 1, one, ET_ROW_MAJOR, name, out);
}

/* The scale as it is at first. */
static et_status
write_first(const struct eti_part *p)
{
    const struct scaler *own = p->own;
    const float scale = (float)own->rule.initial, none = 0;
    ET_TRY(et_tensor_write(p->s->cx, own->scale, &scale, sizeof scale));
    return et_tensor_write(p->s->cx, own->clean, &none, sizeof none);
}

static et_status
take_rule(struct et_ctx *cx, const struct et_loss_scaling *given,
          struct et_loss_scaling *rule)
{
    *rule = *given;
    if (rule->initial == 0)
        rule->initial = 65536;
    if (rule->growth == 0)
        rule->growth = 2;
    if (rule->backoff == 0)
        rule->backoff = 0.5;
    if (rule->interval == 0)
        rule->interval = 2000;
    if (rule->initial >= SMALLEST && rule->growth >= 1 && rule->backoff > 0 &&
        rule->backoff < 1 && rule->interval >= 1)
        return ET_OK;
    return ET_FAIL(
        cx, ET_EINVAL,
        "loss scaling from %g, times %g every %lld steps, times %g on overflow: "
        "it must begin at 1 or more, grow and back off",
        rule->initial, rule->growth, (long long)rule->interval, rule->backoff);
}

static void
release(struct eti_part *p)
{
    struct scaler *own = p->own;
    et_tensor_free(&own->scale);
    et_tensor_free(&own->clean);
    et_tensor_free(&own->overflow);
}

/* Also when the precision changes: the scale begins anew. */
static et_status
init(struct eti_part *p)
{
    struct scaler *own = p->own;
    struct et_state *s = p->s;
    release(p);
    s->loss_scale = 1;
    if (s->precision != ET_PRECISION_AMP_FP16)
        return ET_OK;
    ET_TRY(take_rule(s->cx, &p->config->loss_scaling, &own->rule));
    s->loss_scale = own->rule.initial;
    ET_TRY(new_number(s, "loss scale", &own->scale));
    ET_TRY(new_number(s, "clean steps", &own->clean));
    ET_TRY(new_number(s, "overflow", &own->overflow));
    return write_first(p);
}

/* 1 where V, f32 [1], is not finite, else 0: inf and NaN times 0 are not 0. */
static struct et_tensor *
not_finite(struct et_graph *g, struct et_tensor *v)
{
    struct et_tensor *zero = et_fill(g, ET_F32, 1, one, 0);
    return et_where(g, et_equal(g, et_mul_scalar(g, v, 0), zero), zero,
                    et_fill(g, ET_F32, 1, one, 1));
}

static et_status
loss(struct eti_part *p, struct eti_train_step *k)
{
    const struct scaler *own = p->own;
    if (own->scale)
        k->loss = et_mul(p->s->graph, k->loss, own->scale);
    return ET_OK;
}

/* Has an earlier pass of the step overflowed, on any rank? */
static struct et_tensor *
earlier(const struct eti_part *p)
{
    const struct scaler *own = p->own;
    return p->common->comm && !p->s->keep_local ? eti_sum_over_ranks(p, 0, 1)
                                                : own->overflow;
}

/* state->grad, all of the batch's, becomes the true gradient. */
static et_status
unscale(struct eti_part *p, struct eti_train_step *k)
{
    struct scaler *own = p->own;
    struct et_state *s = p->s;
    struct et_graph *g = s->graph;
    (void)k;
    if (!own->scale || !s->grad)
        return et_graph_status(g);
    et_state_scale_grad(s, et_reciprocal(g, own->scale));
    struct et_tensor *overflow = not_finite(g, et_state_grad_squares(s));
    et_assign(g, own->overflow,
              s->pass > 0 ? et_maximum(g, earlier(p), overflow) : overflow);
    own->checked = s->grad;
    return et_graph_status(g);
}

/* Where a rank has no gradient LEAF stays what it was. */
static void
guard(struct et_graph *g, const struct eti_train_step *k, struct et_tensor *leaf)
{
    struct et_tensor *next = et_pending(g, leaf);
    if (k->failed && next != leaf)
        et_reassign(g, leaf, et_where(g, k->failed, leaf, next));
}

/* s and clean after this step, as one chain on single numbers. */
static void
append_rule(struct et_graph *g, const struct scaler *own, struct et_tensor *overflow)
{
    const struct et_loss_scaling *o = &own->rule;
    struct et_tensor *backed =
        et_clamp(g, et_mul_scalar(g, own->scale, o->backoff), SMALLEST, LARGEST);
    struct et_tensor *grown =
        et_clamp(g, et_mul_scalar(g, own->scale, o->growth), SMALLEST, LARGEST);
    struct et_tensor *clean = et_add_scalar(g, own->clean, 1);
    struct et_tensor *none = et_mul_scalar(g, own->clean, 0);
    struct et_tensor *missing = et_add_scalar(g, clean, -(double)o->interval);
    et_assign(g, own->scale,
              et_where(g, overflow, backed, et_where(g, missing, own->scale, grown)));
    et_assign(g, own->clean,
              et_where(g, overflow, none, et_where(g, missing, clean, none)));
}

/* The update is skipped where gradient or loss is not finite. */
static et_status
skip(struct eti_part *p, struct eti_train_step *k)
{
    struct scaler *own = p->own;
    struct et_state *s = p->s;
    struct et_graph *g = s->graph;
    struct et_tensor *total = k->total;
    if (!own->scale) {
        k->skip = not_finite(g, et_add(g, et_state_grad_squares(s), total));
        return et_graph_status(g);
    }
    struct et_tensor *overflow = et_pending(g, own->overflow);
    append_rule(g, own, overflow);
    guard(g, k, own->scale);
    guard(g, k, own->clean);
    if (s->grad != own->checked)
        total = et_add(g, et_state_grad_squares(s), total);
    k->skip = et_maximum(g, overflow, not_finite(g, total));
    return et_graph_status(g);
}

static int64_t
count_sums(const struct eti_part *p)
{
    (void)p;
    return 1;
}

static int
sums(struct eti_part *p, struct eti_train_step *k, struct et_tensor **v)
{
    const struct scaler *own = p->own;
    (void)k;
    v[0] = p->s->pass > 0 && own->scale ? own->overflow
                                        : et_fill(p->s->graph, ET_F32, 1, one, 0);
    return 1;
}

static int64_t
count_reported(const struct eti_part *p)
{
    (void)p;
    return 2;
}

static int
report(struct eti_part *p, struct eti_train_step *k, struct et_tensor **v)
{
    const struct scaler *own = p->own;
    struct et_graph *g = p->s->graph;
    v[0] = own->scale ? et_pending(g, own->overflow) : k->skip;
    v[1] = own->scale ? et_pending(g, own->scale) : k->skip;
    return 2;
}

/* Was the scale to blame for a skip? */
static void
take(struct eti_part *p, struct eti_numbers *numbers)
{
    const struct scaler *own = p->own;
    struct et_state *s = p->s;
    bool overflow = *numbers->at++ != 0;
    double scale = (double)*numbers->at++;
    if (!own->scale)
        return;
    et_log_metric(s->log, "trainer/loss_scale", s->loss_scale);
    numbers->excused = overflow && s->loss_scale > SMALLEST;
    if (numbers->excused)
        et_log_text(
            s->log, ET_LOG_INFO, &s->timestamp,
            "batch %lld: the gradient overflowed f16 at a loss scale of %g; the update "
            "was skipped, the scale is now %g",
            (long long)numbers->batch, s->loss_scale, scale);
    s->loss_scale = scale;
}

static et_status
archive(struct eti_part *p, struct et_archive *a)
{
    const struct scaler *own = p->own;
    float scale;
    if (!own->scale)
        return ET_OK;
    ET_TRY(et_archive_enter(a, "scaler"));
    et_status status = ET_OK;
    /* A checkpoint of another precision has none: the scale begins anew. */
    if (et_archive_has(a, "scale")) {
        status = et_archive_tensor(a, "scale", own->scale);
        if (status == ET_OK)
            status = et_archive_tensor(a, "clean_steps", own->clean);
    } else if (et_archive_mode(a) == ET_ARCHIVE_LOAD) {
        status = write_first(p);
    }
    et_archive_leave(a);
    ET_TRY(status);
    ET_TRY(et_tensor_read(p->s->cx, own->scale, &scale, sizeof scale));
    p->s->loss_scale = (double)scale;
    return ET_OK;
}

const struct eti_part_type eti_part_scaler = {
    .size = sizeof(struct scaler),
    .init = init,
    .release = release,
    .loss = loss,
    .grad = unscale,
    .skip = skip,
    .n_sums = count_sums,
    .sums = sums,
    .n_reported = count_reported,
    .report = report,
    .take = take,
    .archive = archive,
};
