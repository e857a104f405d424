/* SPDX-License-Identifier: Apache-2.0 */
/* traits.c: what the classes of components say of themselves besides their options, as
 * t/unit/traits.txt has it: the events of an algorithm or callback, its flags, which of
 * the functions that a class may leave out it has. ETUDE_UPDATE=1 writes the file anew,
 * for a person to look at. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etude/algorithm.h"
#include "etude/callback.h"
#include "etude/data.h"
#include "etude/metric.h"
#include "etude/model.h"
#include "etude/optim.h"
#include "etude/recipe.h"
#include "etude/sched.h"
#include "etude/transform.h"
#include "t/tap.h"

enum { ROOM = 1 << 16 };

static FILE *out;

static void
say_events(uint64_t events)
{
    for (int e = 0; e < ET_EVENT_COUNT; e++)
        if (events >> e & 1)
            fprintf(out, " %s", et_event_name((enum et_event)e));
}

static void
say_texts(const char *what, const char *const *list)
{
    if (list && *list)
        fprintf(out, " %s", what);
    for (; list && *list; list++)
        fprintf(out, ":%s", *list);
}

/* The names of those fields that C has: pointers that are set, bools that are true. */
#define SAY(field)                                                                     \
    if (c->field)                                                                      \
    fputs(" " #field, out)

static void
say_algorithm(const struct et_algorithm_class *c)
{
    static const char *const flag[] = {"first",     "last",     "after_surgery",
                                       "init_last", "required", "prepares"};
    say_events(c->events);
    fputs(" |", out);
    for (unsigned i = 0; i < 32; i++)
        if (c->flags >> i & 1)
            fprintf(out, " %s", i < sizeof flag / sizeof *flag ? flag[i] : "?");
    SAY(check);
    SAY(match);
    SAY(apply);
    SAY(update);
    SAY(interpolates_loss);
    SAY(settle);
    SAY(archive);
    SAY(close);
    SAY(transform);
    SAY(undo);
}

static void
say_callback(const struct et_callback_class *c)
{
    say_events(c->events);
    fputs(" |", out);
    SAY(is_logger);
    SAY(acts);
    SAY(check);
    SAY(run);
    SAY(trails);
    SAY(evaluated);
    SAY(module);
    SAY(update);
    SAY(archive);
    SAY(text);
    SAY(trace);
    SAY(close);
}

static void
say_dataset(const struct et_dataset_class *c)
{
    SAY(open);
    SAY(sample);
    SAY(tokens);
    SAY(length);
    SAY(close);
    SAY(describe);
    SAY(gives_next);
}

static void
say_transform(const struct et_transform_class *c)
{
    SAY(check);
    SAY(geometry);
    SAY(cuts);
    SAY(pixels);
    SAY(value);
    SAY(n_changes);
    SAY(changes);
}

static void
say_model(const struct et_model_class *c)
{
    fprintf(out, " task %d", (int)c->task);
    SAY(wants_masked);
    SAY(reads_tokens);
    SAY(beginning);
    say_texts("initializer", c->initializer);
}

static void
say_optimizer(const struct et_optimizer_class *c)
{
    say_texts("moments", c->moments);
    say_texts("states", c->states);
    SAY(by_parameter);
    SAY(by_tensor);
    SAY(check);
    SAY(n_moments);
    SAY(hyper);
    SAY(number_of);
    SAY(update);
    SAY(state_shape);
}

static void
say_scheduler(const struct et_scheduler_class *c)
{
    fprintf(out, " %s", c->alias ? c->alias : "-");
    SAY(alpha);
    SAY(check);
}

static void
say_metric(const struct et_metric_class *c)
{
    fprintf(out, " sums %d + %d a class of %d", c->n_sums, c->n_sums_per_class,
            c->n_classes);
    SAY(needs_model);
    SAY(update);
    SAY(compute);
}

static void
say_loss(const struct et_loss_class *c)
{
    fprintf(out, " takes %u", c->takes);
    SAY(each);
    SAY(whole);
    SAY(counted);
}

static void
say(enum et_kind kind, const struct et_component *c)
{
    fprintf(out, "%s %s:", et_kind_word(kind), c->name);
    switch (kind) {
    case ET_KIND_ALGORITHM:
        say_algorithm((const struct et_algorithm_class *)c);
        break;
    case ET_KIND_CALLBACK:
    case ET_KIND_LOGGER:
        say_callback((const struct et_callback_class *)c);
        break;
    case ET_KIND_DATASET:
        say_dataset((const struct et_dataset_class *)c);
        break;
    case ET_KIND_TRANSFORM:
        say_transform((const struct et_transform_class *)c);
        break;
    case ET_KIND_MODEL:
        say_model((const struct et_model_class *)c);
        break;
    case ET_KIND_OPTIMIZER:
        say_optimizer((const struct et_optimizer_class *)c);
        break;
    case ET_KIND_SCHEDULER:
        say_scheduler((const struct et_scheduler_class *)c);
        break;
    case ET_KIND_METRIC:
        say_metric((const struct et_metric_class *)c);
        break;
    case ET_KIND_LOSS:
        say_loss((const struct et_loss_class *)c);
        break;
    default:
        break;
    }
    fputc('\n', out);
}

/* The line that begins at AT is the one at WANT. */
static bool
same_line(const char *at, const char *want)
{
    size_t n = strcspn(at, "\n");
    return n == strcspn(want, "\n") && memcmp(at, want, n) == 0;
}

int
main(void)
{
    static char want[ROOM];
    char path[1024], *got;
    size_t n;
    const struct et_registry *r = et_registry_core();
    const char *root = getenv("ET_SRCDIR");
    snprintf(path, sizeof path, "%s/t/unit/traits.txt", root ? root : ".");
    out = open_memstream(&got, &n);
    for (int kind = 0; kind < ET_KIND_COUNT; kind++) {
        const struct et_component *c;
        for (int i = 0; (c = r->get(r, kind, i)) != NULL; i++)
            if (kind != ET_KIND_GROUP && kind != ET_KIND_LAYER)
                say((enum et_kind)kind, c);
    }
    fclose(out);
    FILE *f = fopen(path, getenv("ETUDE_UPDATE") ? "w+" : "r");
    if (!f)
        bail("cannot open %s", path);
    if (getenv("ETUDE_UPDATE")) {
        fputs(got, f);
        rewind(f);
    }
    want[fread(want, 1, sizeof want - 1, f)] = '\0';
    fclose(f);
    const char *a = got, *b = want;
    while (*a || *b) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*a ? a : b, ":\n"),
                 *a ? a : b);
        bool same = same_line(a, b);
        ok(same, "%s is as t/unit/traits.txt says", name);
        if (!same)
            diag("%.*s\n  instead of\n%.*s", (int)strcspn(a, "\n"), a,
                 (int)strcspn(b, "\n"), b);
        a += strcspn(a, "\n") + (a[strcspn(a, "\n")] == '\n');
        b += strcspn(b, "\n") + (b[strcspn(b, "\n")] == '\n');
    }
    free(got);
    return done();
}
