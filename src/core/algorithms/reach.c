/* SPDX-License-Identifier: Apache-2.0 */
/* reach.c: does a run in epochs come to what a method's options wait for?
 *
 * Of a run of E epochs, et_state_elapsed knows 0, 1/E, ..., (E - 1)/E while it trains,
 * as Composer's does (spec/algorithms.md 1.4): what is to happen between two of these,
 * or behind the last, does not. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/algorithms/methods.h"

/* A method's options, by name. */
struct reader {
    const struct et_component *of;
    const void *options;
};

static const void *
field(const struct reader *r, const char *name)
{
    const struct et_option *row = r->of->options;
    while (row->name && strcmp(row->name, name) != 0)
        row++;
    return (const char *)r->options + row->offset;
}

static double
fraction(const struct reader *r, const char *name)
{
    return *(const double *)field(r, name);
}

/* A time as a fraction of the run; 0 where it has another unit. */
static double
part_of_run(const struct reader *r, const char *name)
{
    const struct et_time *t = field(r, name);
    return t->unit == ET_TIME_DURATION ? t->value : 0;
}

static bool
by_batches(const struct reader *r, const char *name)
{
    return ((const struct et_time *)field(r, name))->unit == ET_TIME_BATCH;
}

/* ---- of each method: what never happens, where the last epoch begins at LAST ---- */

static const char *
resizing_misses(const struct reader *r, double last, double epochs)
{
    (void)epochs;
    return last < 1 - fraction(r, "finetune_fraction")
               ? "images never have their full size"
               : NULL;
}

/* Is there a k / EPOCHS in [start, end)? */
static const char *
selection_misses(const struct reader *r, double last, double epochs)
{
    double first = ceil(fraction(r, "start") * epochs) / epochs;
    return first > last || first >= fraction(r, "end") ? "no batch is ever pruned"
                                                       : NULL;
}

static const char *
freezing_misses(const struct reader *r, double last, double epochs)
{
    (void)epochs;
    return last <= fraction(r, "freeze_start") ? "no layer is frozen while it trains"
                                               : NULL;
}

static const char *
depth_misses(const struct reader *r, double last, double epochs)
{
    double warmup = part_of_run(r, "drop_warmup");
    (void)epochs;
    return warmup > 0 && last < warmup ? "blocks are never left out at drop_rate"
                                       : NULL;
}

/* At the end of an epoch the clock has come further. */
static const char *
ema_misses(const struct reader *r, double last, double epochs)
{
    double end = by_batches(r, "half_life") ? last : 1;
    (void)epochs;
    return end < part_of_run(r, "ema_start") ? "the average never begins" : NULL;
}

static const char *
swa_misses(const struct reader *r, double last, double epochs)
{
    double end = by_batches(r, "update_interval") ? last : 1;
    (void)epochs;
    return end < part_of_run(r, "swa_end") ? "the average never becomes the weights"
                                           : NULL;
}

static const struct {
    const char *method;
    const char *(*misses)(const struct reader *r, double last, double epochs);
} rules[] = {
    {"progressive_resizing", resizing_misses},
    {"selective_backprop", selection_misses},
    {"layer_freezing", freezing_misses},
    {"stochastic_depth", depth_misses},
    {"ema", ema_misses},
    {"swa", swa_misses},
};

bool
eti_method_misses(const struct et_component *c, const void *options,
                  struct et_time duration, char *out, size_t size)
{
    const struct reader r = {c, options};
    const char *what = NULL;
    if (duration.unit != ET_TIME_EPOCH || !(duration.value >= 1) || !options)
        return false;
    double epochs = ceil(duration.value), last = (epochs - 1) / epochs;
    for (size_t i = 0; i < sizeof rules / sizeof *rules && !what; i++)
        if (strcmp(rules[i].method, c->name) == 0)
            what = rules[i].misses(&r, last, epochs);
    if (what)
        snprintf(out, size,
                 "%s: in a run of %gep the clock of methods goes by epochs, and stands "
                 "at %.3gdur in the last: %s; max_duration in ba lets it go on",
                 c->name, epochs, last, what);
    return what != NULL;
}
