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

#include "core/trainer/trainer_impl.h"

#define SMALLEST 1.0
#define LARGEST  0x1p127 /* twice that is infinite in f32 */

static const int64_t one[] = {1};

static et_status
new_number(struct et_trainer *t, const char *name, struct et_tensor **out)
{
    struct et_state *s = &t->state;
    return et_tensor_new(s->cx, s->dev, ET_F32, 1, one, ET_ROW_MAJOR, name, out);
}

/* The scale as it is at first. */
static et_status
begin(struct et_trainer *t)
{
    const float scale = (float)t->scaler.rule.initial, none = 0;
    ET_TRY(et_tensor_write(t->state.cx, t->scaler.scale, &scale, sizeof scale));
    return et_tensor_write(t->state.cx, t->scaler.clean, &none, sizeof none);
}

et_status
eti_scaler_init(struct et_trainer *t)
{
    struct eti_scaler *k = &t->scaler;
    t->state.loss_scale = 1;
    if (t->state.precision != ET_PRECISION_AMP_FP16)
        return ET_OK;
    k->rule = t->config.loss_scaling;
    if (k->rule.initial == 0)
        k->rule.initial = 65536;
    if (k->rule.growth == 0)
        k->rule.growth = 2;
    if (k->rule.backoff == 0)
        k->rule.backoff = 0.5;
    if (k->rule.interval == 0)
        k->rule.interval = 2000;
    if (!(k->rule.initial >= SMALLEST && k->rule.growth >= 1 && k->rule.backoff > 0 &&
          k->rule.backoff < 1 && k->rule.interval >= 1))
        return ET_FAIL(
            t->state.cx, ET_EINVAL,
            "loss scaling from %g, times %g every %lld steps, times %g on overflow: "
            "it must begin at 1 or more, grow and back off",
            k->rule.initial, k->rule.growth, (long long)k->rule.interval,
            k->rule.backoff);
    t->state.loss_scale = k->rule.initial;
    ET_TRY(new_number(t, "loss scale", &k->scale));
    ET_TRY(new_number(t, "clean steps", &k->clean));
    ET_TRY(new_number(t, "overflow", &k->overflow));
    return begin(t);
}

void
eti_scaler_release(struct et_trainer *t)
{
    et_tensor_free(&t->scaler.scale);
    et_tensor_free(&t->scaler.clean);
    et_tensor_free(&t->scaler.overflow);
}

struct et_tensor *
eti_scaler_scale(struct et_trainer *t, struct et_tensor *loss)
{
    return t->scaler.scale ? et_mul(t->state.graph, loss, t->scaler.scale) : loss;
}

et_status
eti_scaler_unscale(struct et_trainer *t, int pass)
{
    struct et_state *s = &t->state;
    struct et_graph *g = s->graph;
    struct eti_scaler *k = &t->scaler;
    if (!k->scale || !s->grad)
        return et_graph_status(g);
    et_state_scale_grad(s, et_reciprocal(g, k->scale));
    struct et_tensor *overflow = eti_not_finite(g, et_state_grad_squares(s));
    et_assign(g, k->overflow,
              pass > 0 ? et_maximum(g, eti_ranks_overflow(t), overflow) : overflow);
    k->checked = s->grad;
    return et_graph_status(g);
}

/* s and clean after this step, as one chain on single numbers. */
static void
append_rule(struct et_graph *g, const struct eti_scaler *k, struct et_tensor *overflow)
{
    const struct et_loss_scaling *o = &k->rule;
    struct et_tensor *backed =
        et_clamp(g, et_mul_scalar(g, k->scale, o->backoff), SMALLEST, LARGEST);
    struct et_tensor *grown =
        et_clamp(g, et_mul_scalar(g, k->scale, o->growth), SMALLEST, LARGEST);
    struct et_tensor *clean = et_add_scalar(g, k->clean, 1);
    struct et_tensor *none = et_mul_scalar(g, k->clean, 0);
    struct et_tensor *missing = et_add_scalar(g, clean, -(double)o->interval);
    et_assign(g, k->scale,
              et_where(g, overflow, backed, et_where(g, missing, k->scale, grown)));
    et_assign(g, k->clean,
              et_where(g, overflow, none, et_where(g, missing, clean, none)));
}

struct et_tensor *
eti_scaler_skip(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    struct et_graph *g = s->graph;
    struct eti_scaler *k = &t->scaler;
    struct et_tensor *total = eti_ranks_total(t); /* the loss counts too */
    if (!k->scale)
        return eti_not_finite(g, et_add(g, et_state_grad_squares(s), total));
    struct et_tensor *overflow = et_pending(g, k->overflow);
    append_rule(g, k, overflow);
    eti_ranks_guard(t, k->scale);
    eti_ranks_guard(t, k->clean);
    if (s->grad != k->checked)
        total = et_add(g, et_state_grad_squares(s), total);
    return et_maximum(g, overflow, eti_not_finite(g, total));
}

bool
eti_scaler_settle(struct et_trainer *t, int64_t batch, float overflow, float scale)
{
    struct et_state *s = &t->state;
    if (!t->scaler.scale)
        return false;
    et_log_metric(s->log, "trainer/loss_scale", s->loss_scale);
    bool excused = overflow != 0 && s->loss_scale > SMALLEST;
    if (excused)
        et_log_text(
            s->log, ET_LOG_INFO, &s->timestamp,
            "batch %lld: the gradient overflowed f16 at a loss scale of %g; the update "
            "was skipped, the scale is now %g",
            (long long)batch, s->loss_scale, (double)scale);
    s->loss_scale = (double)scale;
    return excused;
}

et_status
eti_scaler_archive(struct et_trainer *t, struct et_archive *a)
{
    struct et_state *s = &t->state;
    struct eti_scaler *k = &t->scaler;
    float scale;
    if (!k->scale)
        return ET_OK;
    ET_TRY(et_archive_enter(a, "scaler"));
    et_status status = ET_OK;
    /* A checkpoint of another precision has none: the scale begins anew. */
    if (et_archive_has(a, "scale")) {
        status = et_archive_tensor(a, "scale", k->scale);
        if (status == ET_OK)
            status = et_archive_tensor(a, "clean_steps", k->clean);
    } else if (et_archive_mode(a) == ET_ARCHIVE_LOAD) {
        status = begin(t);
    }
    et_archive_leave(a);
    ET_TRY(status);
    ET_TRY(et_tensor_read(s->cx, k->scale, &scale, sizeof scale));
    s->loss_scale = (double)scale;
    return ET_OK;
}
