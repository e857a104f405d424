/* algorithms.c: `etude algorithms`: the training methods, and what each may set. */
#include "config.h"

#include <fnmatch.h>
#include <jansson.h>
#include <string.h>

#include "cli/cli.h"

/* All that GLOSSARY.md names, in its order. */
static const char *const all[] = {
    "alibi", "augmix", "blurpool", "channels_last", "colout", "cutmix", "cutout", "ema",
    "factorize", "gated_linear_units", "ghost_batchnorm", "gradient_clipping",
    "gyro_dropout", "label_smoothing", "layer_freezing", "low_precision_groupnorm",
    "low_precision_layernorm", "mixup", "progressive_resizing", "randaugment", "sam",
    "selective_backprop", "seq_length_warmup", "squeeze_excite", "stochastic_depth", "swa",
    "weight_standardization",
};

/* The name, or a part of it, or a pattern with * and ?. */
static bool
matches(const char *pattern, const char *name)
{
    if (!pattern)
        return true;
    return strpbrk(pattern, "*?[") ? fnmatch(pattern, name, 0) == 0
                                   : strstr(name, pattern) != NULL;
}

static json_t *
events_json(uint64_t events)
{
    json_t *list = json_array();
    for (int e = 0; e < ET_EVENT_COUNT; e++)
        if (events & UINT64_C(1) << e)
            json_array_append_new(list, json_string(et_event_name((enum et_event)e)));
    return list;
}

static json_t *
to_json(const char *name, const struct et_algorithm_class *a)
{
    if (!a)
        return json_pack("{s:s, s:b}", "name", name, "available", 0);
    const struct et_component *i = &a->info;
    return json_pack("{s:s, s:b, s:s, s:s, s:s, s:s, s:o, s:o}", "name", name, "available", 1,
                     "class", i->class_name, "summary", i->summary, "source", i->source,
                     "applies_to", i->applies_to, "events", events_json(a->events), "options",
                     cli_options_json(i->options));
}

static void
print_one(const char *name, const struct et_algorithm_class *a)
{
    if (a)
        printf("%-24s %s\n", name, a->info.summary);
    else
        printf("%-24s (not in this version)\n", name);
}

int
cli_algorithms(struct cli *c)
{
    const char *pattern = c->n_args > 0 ? c->arg[0] : NULL;
    json_t *list = c->opt.json ? json_array() : NULL;
    bool any = false;
    if (c->n_args > 1)
        return cli_fail(c, CLI_E_OPERAND, NULL, "algorithms takes one pattern, not also '%s'",
                        c->arg[1]);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const struct et_algorithm_class *a = et_algorithm_find(all[i]);
        if (!matches(pattern, all[i]))
            continue;
        any = true;
        if (list)
            json_array_append_new(list, to_json(all[i], a));
        else
            print_one(all[i], a);
    }
    if (list && any)
        return cli_print_json(list);
    json_decref(list);
    return any ? CLI_OK
               : cli_fail(c, CLI_E_NAME, "etude algorithms lists them",
                          "no algorithm matches '%s'", pattern);
}
