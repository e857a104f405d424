/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_schedule.c: a schedule in a shared library.
 *
 * The one of the first Transformer (Vaswani et al. 2017, arXiv 1706.03762, section
 * 5.3): the rate rises in a line for W updates, and then falls with the root of their
 * number,
 *
 *     alpha(t) = min((t + 1) / W, sqrt(W / (t + 1)))        t updates are done
 *
 * so that it is greatest, 1, after the warmup. There it is scaled by the model's width,
 * too: here that is the optimizer's lr.
 *
 *     cc -shared -fPIC $(pkg-config --cflags etude) -o noam.so plugin_schedule.c -lm
 *
 * Allowed as plugin.c says, a recipe has it as
 *
 *     plugins: [noam]
 *     scheduler: {name: inverse_sqrt, warmup: 1ep}
 *
 * and "etude explain inverse_sqrt" draws it. */
#include <etude/plugin.h>

#include <math.h>

/* The options of every scheduler begin with step_every. */
struct inverse_options {
    struct et_scheduler_options common;
    struct et_time warmup;
};

static const struct et_option inverse_table[] = {
    ET_SCHEDULER_OPTIONS(struct inverse_options),
    {
        .name = "warmup",
        .type = ET_OPT_TIME,
        .offset = offsetof(struct inverse_options, warmup),
        .def = "0.1dur",
        .units = ET_SCHEDULE_UNITS,
        .help = "how long the rate rises",
    },
    {.name = NULL},
};

/* The warmup in the unit that a schedule counts in, which what is done, *NOW, is in,
 * too: epochs are batches then, and shares of the run what they come to. */
static et_status
inverse_times(struct et_ctx *cx, const struct inverse_options *o,
              const struct et_timestamp *ts, const struct et_run_length *length,
              double *now, double *warmup)
{
    struct et_time span, done;
    ET_TRY(et_time_resolve(cx, o->warmup, length, &span));
    ET_TRY(et_timestamp_get(cx, ts, span.unit, &done));
    *now = done.value;
    *warmup = span.value;
    return ET_OK;
}

/* A pure function of where the run is: nothing is kept, so a run that goes on has the
 * rates of one that was never stopped. */
static et_status
inverse_alpha(struct et_ctx *cx, const void *options, const struct et_timestamp *ts,
              const struct et_run_length *length, double *out)
{
    double now, warmup;
    ET_TRY(inverse_times(cx, options, ts, length, &now, &warmup));
    *out = fmin((now + 1) / warmup, sqrt(warmup / (now + 1)));
    return ET_OK;
}

/* Asked before a run is made, by "etude validate" as well. A sentence that begins with
 * an option's name is shown with the place where the recipe sets it. */
static et_status
inverse_check(struct et_ctx *cx, const void *options,
              const struct et_run_length *length)
{
    const struct et_timestamp start = {0};
    double now, warmup;
    ET_TRY(inverse_times(cx, options, &start, length, &now, &warmup));
    if (warmup < 1)
        return ET_FAIL(cx, ET_EINVAL,
                       "warmup is %g updates in this run: at least 1 is needed",
                       warmup);
    return ET_OK;
}

static const struct et_scheduler_class inverse_sqrt = {
    .info =
        {
            ET_CLASS(scheduler),
            .name = "inverse_sqrt",
            .class_name = "InverseSqrt",
            .summary = "a linear warmup, then one over the root of the updates",
            .source = "Vaswani et al. 2017, arXiv 1706.03762",
            .applies_to = "any",
            .options = inverse_table,
            .options_size = sizeof(struct inverse_options),
        },
    .alpha = inverse_alpha,
    .check = inverse_check,
};

static const struct et_scheduler_class *const schedulers[] = {&inverse_sqrt, NULL};

ET_PLUGIN(.schedulers = schedulers)
