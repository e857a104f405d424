/* timm.c: the warmup and the cycles of timm's schedules. */
#include "core/sched/timm.h"

et_status
eti_timm_at(const struct eti_sched_now *s, const struct eti_timm_warmup *o,
            struct et_time t, struct eti_timm_at *out)
{
    struct et_time whole;
    double warmup;
    ET_TRY(eti_sched_resolve(s, t, &out->now, &whole));
    ET_TRY(eti_sched_ramp(s, &o->ramp, whole, &out->now, &warmup, &out->ramp));
    out->span = whole.value;
    out->warming = out->now < warmup;
    if (o->warmup_prefix)
        out->now -= warmup;
    return ET_OK;
}

et_status
eti_timm_cycle(const struct eti_sched_now *s, const struct eti_timm_warmup *w,
               const struct eti_timm_cycles *c,
               double (*curve)(const void *options, double x), const void *options,
               double *out)
{
    struct eti_timm_at at;
    double now, cycle, peak = 1;
    ET_TRY(eti_sched_period(s, c->t_initial, "t_initial", &now, &cycle));
    ET_TRY(eti_timm_at(s, w, c->t_initial, &at));
    *out = at.ramp;
    if (at.warming)
        return ET_OK;
    now = at.now;
    for (int64_t i = 0; i < c->cycle_limit; i++) {
        if (now < cycle) {
            *out = c->alpha_f + (peak - c->alpha_f) * curve(options, now / cycle);
            return ET_OK;
        }
        now -= cycle;
        cycle *= c->cycle_mul;
        peak *= c->cycle_decay;
    }
    *out = c->alpha_f;
    return ET_OK;
}
