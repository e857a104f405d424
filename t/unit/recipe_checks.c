/* SPDX-License-Identifier: Apache-2.0 */
/* Values of a recipe that must fit each other, with a number of ranks or in a resumed
 * run; and the name that an unknown one probably meant. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/recipe/options.h"
#include "core/recipe/recipe.h"
#include "etude/ctx.h"
#include "t/tap.h"
#include "t/unit/recipe_fakes.h"
#include "t/unit/recipe_read.h"

/* LINES joined to one line. */
static const char *
one_line(const char *lines)
{
    static char text[256];
    snprintf(text, sizeof text, "%s", lines);
    for (char *c = text; *c; c++)
        *c = *c == '\n' ? ' ' : *c;
    return text;
}

/* Values that fit or do not fit the number of ranks. */
static void
test_ranks(void)
{
    static const struct {
        const char *lines;
        int64_t ranks;
        const char *path, *says; /* "": the values fit */
    } rows[] = {
        {"sync_batch_norm: true\nmicrobatch_size: 4", 1, "", ""},
        {"sync_batch_norm: true\nmicrobatch_size: 4", 2, "sync_batch_norm",
         "where there are 2 ranks"},
        {"sync_batch_norm: true\ngrad_accum: 1", 2, "", ""},
        {"sync_batch_norm: true\ngrad_accum: 2", 4, "sync_batch_norm",
         "where there are 4 ranks"},
        {"grad_accum: 2", 2, "", ""},
        {"sync_batch_norm: true", 2, "", ""},
        {"eval_data: {name: fashion_mnist, batch_size: 9}", 10, "eval_data",
         "batch 9 is not divisible by 10 ranks"},
        {"eval_data: {name: fashion_mnist, batch_size: 7}", 3, "train_data",
         "batch 100 is not divisible by 3 ranks"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[512];
        struct et_diagnostics found = {0};
        snprintf(text, sizeof text, LEAST "%s\n", rows[i].lines);
        parse(text);
        et_status s = et_recipe_check_train(cx, recipe, rows[i].ranks, &found);
        et_error_clear(cx);
        ok(*rows[i].says
               ? s == ET_EINVAL && strcmp(found.v[0].path, rows[i].path) == 0 &&
                     strstr(found.v[0].message, rows[i].says) != NULL
               : s == ET_OK && found.total == 0,
           "a recipe for %lld ranks with %s: %s", (long long)rows[i].ranks,
           one_line(rows[i].lines), *rows[i].says ? rows[i].says : "it is accepted");
    }
    parse("max_duration: 5ep\nmodel: resnet8\n"
          "train_data: {name: fashion_mnist, batch_size: 96}\n"
          "eval_data: [{name: bible_kjv, label: a}, {name: bible_kjv, label: a},\n"
          "  {name: bible_kjv, label: a}]\n");
    ok(errors.total == 2 &&
           strcmp(errors.v[1].message, "eval_data 0 and 2 are both called 'a'") == 0,
       "a label that three evaluators share is reported once for each pair with the "
       "first");
}

/* Values that a resume may leave out or change, and values that it may not change. */
static void
test_resumes(void)
{
    static const struct {
        const char *now, *saved, *says; /* "": the resume is accepted */
    } rows[] = {
        {"", "grad_accum: 2\n", ""}, /* auto */
        {"", "seed: 7\n", ""},
        {"grad_accum: 2\n", "", "grad_accum is 2, saved run has auto"},
        {"seed: 7\n", "", "seed is 7, saved run has null"},
        {"seed: 7\n", "seed: 8\n", "seed is 7, saved run has 8"},
        {"tags: [a]\n", "tags: [b]\n", ""},
        {"parallel: {zero: 1}\n", "", "parallel.zero is 1, saved run has 0"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[512];
        struct et_diagnostics found = {0};
        snprintf(text, sizeof text, LEAST "%s", rows[i].saved);
        parse(text);
        struct et_recipe *saved = recipe;
        recipe = NULL;
        snprintf(text, sizeof text, LEAST "%s", rows[i].now);
        parse(text);
        et_status s = et_recipe_check_resume(cx, recipe, saved, &found);
        et_error_clear(cx);
        ok(*rows[i].says ? s == ET_EINVAL && found.total == 1 &&
                               strstr(found.v[0].message, rows[i].says) != NULL
                         : s == ET_OK && found.total == 0,
           "a resume %s %s",
           *rows[i].says ? "cannot change:" : "may say something else:",
           *rows[i].says ? rows[i].says : one_line(rows[i].saved));
        et_recipe_free(&saved);
    }
}

/* ---- the name that was meant ---- */

static void
test_nearest(void)
{
    static const struct {
        const char *word, *names[3], *nearest; /* "": none */
    } rows[] = {
        {"abcdef", {"abcdxy"}, "abcdxy"}, /* a third of the letters may be wrong */
        {"abcdef", {"abcxyz"}, ""},
        {"abcdef", {"badcfe"}, ""}, /* three transpositions */
        {"ab", {"ac"}, "ac"},
        {"a", {"b"}, ""}, /* no letter is right */
        {"bat", {"cat", "rat"}, "cat"},
        {"classes", {"num_classes"}, "num_classes"},
        {"num", {"num_classes"}, "num_classes"},
        {"class", {"num_classes"}, ""},
        {"lasses", {"num_classes"}, ""},
        {"lr", {"base_lr"}, ""}, /* too short to be searched for */
        {"size", {"batch_size", "kernel_size"}, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int n = 0;
        while (n < 3 && rows[i].names[n])
            n++;
        const char *near = et_nearest(rows[i].word, rows[i].names, n);
        is_str(near ? near : "", rows[i].nearest,
               "the name that '%s' means among '%s' and others", rows[i].word,
               rows[i].names[0]);
    }
}

/* How values of each type are written. */
static void
test_written(void)
{
    static const struct {
        const char *lines, *path, *want;
    } rows[] = {
        {"seed: 2048", "seed", "seed = 2048  (recipe.yaml:4:7)"},
        {"timeout: 90s", "timeout", "timeout = 90s  (recipe.yaml:4:10)"},
        {"deterministic: true", "deterministic",
         "deterministic = true  (recipe.yaml:4:16)"},
        {"optimizer: {name: sgd, lr: 5.0e-4}", "optimizer.lr",
         "optimizer.lr = 0.0005  (recipe.yaml:4:28)"},
        {"eval_interval: 0.5dur", "eval_interval",
         "eval_interval = 0.5dur  (recipe.yaml:4:16)"},
        {"tags: [a, 'b c', '1']", "tags",
         "tags = [a, \"b c\", \"1\"]  (recipe.yaml:4:7)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[512];
        snprintf(text, sizeof text, LEAST "%s\n", rows[i].lines);
        parse(text);
        is_str(line_of(rows[i].path), rows[i].want, "%s", rows[i].lines);
    }
}

/* Sizes have a prefix where they are a multiple of it, other integers have none. */
static void
test_sizes(void)
{
    static const struct {
        const char *name, *value, *want;
    } rows[] = {
        {"header", "65536", "64Ki"},   {"header", "3000", "3000"},
        {"header", "1024", "1Ki"},     {"header", "0", "0"},
        {"seq_len", "65536", "65536"}, {"seq_len", "1000", "1000"},
    };
    const struct et_dataset_class *c = et_dataset_find("tokens");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *const set[] = {"path", "x", rows[i].name, rows[i].value, NULL};
        const struct et_option *row = c->info.options;
        void *options;
        char *text;
        while (strcmp(row->name, rows[i].name) != 0)
            row++;
        if (et_options_new(cx, &c->info, set, &options) != ET_OK ||
            et_option_text(cx, row, options, &text) != ET_OK)
            bail("%s", et_error_get(cx)->message);
        is_str(text, rows[i].want, "%s %s", rows[i].name, rows[i].value);
        et_free(cx, text);
        et_options_free(&c->info, &options);
    }
}

/* Where each value of a resolved recipe comes from stands in one column, as far as
 * there is room. */
static void
test_columns(void)
{
    char *text;
    int apart = 0, n = 0;
    parse(LEAST "optimizer: {name: adamw, lr: 0.1}\n");
    if (et_recipe_resolved(cx, recipe, &text) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    for (const char *line = text, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        const char *sign = strstr(line, "  # ");
        if (!sign || sign > end)
            continue;
        const char *last = sign;
        while (last > line && last[-1] == ' ')
            last--;
        apart += sign - line != (last - line > 40 ? last - line : 40);
        n++;
    }
    ok(n > 20 && apart == 0, "%d of %d origins stand elsewhere", apart, n);
    et_free(cx, text);
}

int
main(void)
{
    begin_reading();
    test_ranks();
    test_resumes();
    test_nearest();
    test_written();
    test_sizes();
    test_columns();
    end_reading();
    return done();
}
