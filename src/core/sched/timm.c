/* SPDX-License-Identifier: Apache-2.0 */
/* timm.c: the warmup, the cycles and the noise of timm's schedules. */
#include "core/sched/timm.h"
#include "etude/rng.h"

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

et_status
eti_timm_add_noise(const struct eti_sched_now *s, const struct eti_timm_noise *o,
                   double *out)
{
    double now, noise;
    struct et_time from, to;
    if (o->range.n == 0)
        return ET_OK;
    ET_TRY(eti_sched_resolve(s, o->range.v[0], &now, &from));
    if (now < from.value)
        return ET_OK;
    struct et_rng r = et_rng_at((uint32_t)o->seed, ET_RNG_NOISE, (uint64_t)now);
    if (o->range.n > 1) {
        double there;
        ET_TRY(eti_sched_resolve(s, o->range.v[1], &there, &to));
        if (there >= to.value)
            return ET_OK;
    }
    do
        noise = o->std * et_rng_normal(&r);
    while (fabs(noise) >= o->pct);
    *out *= 1 + noise;
    return ET_OK;
}

et_status
eti_timm_check(struct et_ctx *cx, const struct eti_timm_warmup *w,
               const struct eti_timm_noise *noise, const struct et_run_length *length)
{
    if (noise->range.n > 2)
        return ET_FAIL(cx, ET_EINVAL,
                       "noise_range_t has %d times: it is a beginning and an end",
                       noise->range.n);
    return eti_sched_ramp_check(cx, &w->ramp, ET_TIME_UNSET, length);
}
