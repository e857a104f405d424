/* SPDX-License-Identifier: Apache-2.0 */
/* show.c: `etude show`: one run, at a glance. */
#include "config.h"

#include <jansson.h>
#include <limits.h>
#include <string.h>

#include "cli/cli.h"
#include "core/library/ending.h"
#include "core/library/facts.h"
#include "core/loggers/progress.h"

enum { SHOWN = 512 };

/* What was said of the run, what it was told to do and when it went on: [{t, ba, kind,
 * text}...], or NULL with *EXIT. */
static json_t *
read_notes(struct cli *c, const json_t *facts, int *exit)
{
    struct et_record r;
    bool got = true;
    json_t *notes = json_array();
    struct et_events *e = cli_run_events(c, facts, exit);
    if (!e) {
        json_decref(notes);
        return NULL;
    }
    et_status status = et_events_only(e, UINT64_C(1) << ET_RECORD_ANNOTATION |
                                             UINT64_C(1) << ET_RECORD_COMMAND |
                                             UINT64_C(1) << ET_RECORD_RESUME);
    while (status == ET_OK && got) {
        status = et_events_next(e, &r, &got);
        if (status == ET_OK && got)
            json_array_append_new(notes,
                                  json_pack("{s:f, s:I, s:s, s:s?}", "t", r.t, "ba",
                                            (json_int_t)r.ba, "kind",
                                            et_record_name(r.kind), "text", r.text));
    }
    et_events_close(&e);
    if (status == ET_OK)
        return notes;
    *exit = cli_fail_status(c, ETI_STAGE_DATA, status);
    json_decref(notes);
    return NULL;
}

static void
print_fact(const json_t *facts, const char *label, const char *key)
{
    char text[SHOWN];
    cli_fact(facts, key, text, sizeof text);
    if (strcmp(text, "-") != 0)
        et_print(stdout, "  %-12s %s\n", label, text);
}

static void
print_head(const json_t *facts)
{
    char name[SHOWN], state[SHOWN], code[SHOWN], begun[32], took[32];
    double started = json_number_value(json_object_get(facts, "started"));
    double ended = json_number_value(json_object_get(facts, "ended"));
    et_print(stdout, "%s: %s", cli_fact(facts, "name", name, sizeof name),
             cli_fact(facts, "state", state, sizeof state));
    if (json_is_integer(json_object_get(facts, "exit_code")))
        et_print(stdout, ", exit %s", cli_fact(facts, "exit_code", code, sizeof code));
    et_print(stdout, "\n  %-12s %s", "started",
             cli_clock(started, begun, sizeof begun));
    double rested = json_number_value(json_object_get(facts, "rested"));
    if (ended > started)
        et_print(stdout, ", for %s",
                 eti_duration_text(ended - started - rested, took, sizeof took));
    if (ended > started && rested >= 1)
        et_print(stdout, ", and %s between its starts",
                 eti_duration_text(rested, took, sizeof took));
    putchar('\n');
}

static void
print_list(const json_t *list, const char *label)
{
    char text[SHOWN];
    size_t i;
    json_t *v;
    if (json_array_size(list) == 0)
        return;
    et_print(stdout, "  %-12s", label);
    json_array_foreach(list, i, v) et_print(
        stdout, " %s",
        et_visible(text, sizeof text, json_string_value(v), json_string_length(v)));
    putchar('\n');
}

static void
print_progress(const json_t *facts)
{
    static const char *const counts[] = {"ep", "ba", "sp"};
    char text[SHOWN];
    et_print(stdout, "  %-12s", "progress");
    for (size_t i = 0; i < 3; i++) {
        const json_t *v = json_object_get(facts, counts[i]);
        if (json_is_integer(v))
            et_print(stdout, " %s%s",
                     cli_count(json_integer_value(v), text, sizeof text), counts[i]);
    }
    et_print(stdout, " of %s", cli_fact(facts, "max_duration", text, sizeof text));
    if (json_is_number(json_object_get(facts, "train_seconds")))
        et_print(stdout, ", %s of training",
                 eti_duration_text(
                     json_number_value(json_object_get(facts, "train_seconds")), text,
                     sizeof text));
    putchar('\n');
}

static const char *
number(const json_t *v, char *buf, size_t size)
{
    if (!json_is_number(v))
        return "-";
    return eti_value_text(json_number_value(v), buf, size);
}

static void
print_metrics(const json_t *facts)
{
    json_t *metrics = json_object_get(facts, "metrics"), *v;
    const char *key;
    char label[SHOWN], last[32], best[32], at[32];
    if (json_object_size(metrics) > 0)
        et_print(stdout, "  %-36s %10s %10s %12s\n", "metric", "last", "best",
                 "at batch");
    json_object_foreach(metrics, key, v)
    {
        const json_t *ba = json_object_get(v, "best_ba");
        et_print(stdout, "  %-36s %10s %10s %12s\n",
                 et_visible(label, sizeof label, key, strlen(key)),
                 number(json_object_get(v, "last"), last, sizeof last),
                 number(json_object_get(v, "best"), best, sizeof best),
                 json_is_integer(ba) ? cli_count(json_integer_value(ba), at, sizeof at)
                                     : "-");
    }
}

static void
print_notes(const json_t *notes)
{
    size_t i;
    json_t *v;
    char when[32], text[SHOWN], count[32];
    json_array_foreach(notes, i, v)
    {
        const char *what = json_string_value(json_object_get(v, "text"));
        const char *kind = json_string_value(json_object_get(v, "kind"));
        bool resumed = strcmp(kind, "resume") == 0;
        et_print(
            stdout, "  %-16s after %sba  %s%s%s\n",
            cli_clock(json_number_value(json_object_get(v, "t")), when, sizeof when),
            cli_count(json_integer_value(json_object_get(v, "ba")), count,
                      sizeof count),
            resumed ? "resumed" : "", resumed && what ? ": " : "",
            what ? et_visible(text, sizeof text, what, strlen(what)) : "");
    }
}

static void
print_ending(const json_t *ending)
{
    char text[SHOWN];
    const json_t *earlier = json_object_get(ending, "earlier"), *way, *word;
    const json_t *kept = json_object_get(ending, "kept");
    const char *label = json_string_value(json_object_get(kept, "label"));
    size_t i, k;
    if (json_is_object(earlier)) {
        const char *name = json_string_value(json_object_get(earlier, "name"));
        et_print(stdout, "  %-12s %+.4g on %s%s\n", "compared",
                 json_number_value(json_object_get(earlier, "difference")),
                 name ? et_visible(text, sizeof text, name, strlen(name)) : "-",
                 json_is_true(json_object_get(earlier, "same_seed")) ? " (same seed)"
                                                                     : "");
    }
    if (label)
        et_print(stdout, "  %-12s %s, of %lld\n", "kept",
                 et_visible(text, sizeof text, label, strlen(label)),
                 (long long)json_integer_value(json_object_get(kept, "n")));
    json_array_foreach(json_object_get(ending, "ways"), i, way)
    {
        et_print(stdout, "  %-12s etude", i == 0 ? "next" : "");
        json_array_foreach(json_object_get(way, "command"), k, word)
        {
            const char *quote = strpbrk(json_string_value(word), "( ") ? "'" : "";
            et_print(stdout, " %s%s%s", quote,
                     et_visible(text, sizeof text, json_string_value(word),
                                json_string_length(word)),
                     quote);
        }
        putchar('\n');
    }
}

static void
print(const json_t *facts, const json_t *notes, const json_t *ending)
{
    print_head(facts);
    print_fact(facts, "problem", "problem");
    print_fact(facts, "reason", "reason");
    print_progress(facts);
    print_fact(facts, "recipe", "recipe");
    print_fact(facts, "model", "model.name");
    print_fact(facts, "data", "train_data.name");
    print_fact(facts, "optimizer", "optimizer.name");
    print_fact(facts, "precision", "precision");
    print_fact(facts, "device", "device");
    print_fact(facts, "seed", "seed");
    print_list(json_object_get(facts, "algorithms"), "algorithms");
    print_fact(facts, "version", "version");
    print_fact(facts, "directory", "directory");
    print_metrics(facts);
    print_notes(notes);
    print_ending(ending);
}

int
cli_show(struct cli *c)
{
    int code;
    if (c->n_args != 1)
        return cli_fail(c, CLI_E_OPERAND, "etude runs lists them",
                        "show takes one run");
    json_t *facts = cli_run_find(c, c->arg[0], &code);
    if (!facts)
        return code;
    /* A run whose log is damaged is shown with that, and without notes. */
    json_t *notes =
        json_object_get(facts, "problem") ? json_array() : read_notes(c, facts, &code);
    json_t *ending = notes ? eti_ending(c->cx, facts) : NULL;
    if (notes && c->opt.json) {
        json_object_set(facts, "notes", notes);
        if (ending)
            json_object_set(facts, "ending", ending);
        code = cli_print_json(json_incref(facts));
    } else if (notes) {
        print(facts, notes, ending);
    }
    json_decref(ending);
    json_decref(notes);
    json_decref(facts);
    return code;
}
