/* SPDX-License-Identifier: Apache-2.0 */
/* complete.c: what may follow on a command line being typed. See complete.h.
 *
 * Commands, options and their choices are the tables'; what an operand may be is read
 * from the synopsis of the command: words in small letters are themselves, those in
 * capitals are found in the table below. */
#include "config.h"

#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/complete.h"
#include "dist/wire/keys.h"

/* Do TEXT and the first N bytes of WORD agree? In options - and _ are alike. */
static bool
agrees(const char *text, const char *word, size_t n)
{
    bool option = strncmp(word, "--", 2) == 0;
    for (size_t i = 0; i < n; i++) {
        char a = text[i], b = word[i];
        if (option && a == '_')
            a = '-';
        if (option && b == '_')
            b = '-';
        if (a != b) /* also where TEXT is shorter */
            return false;
    }
    return true;
}

void
cli_candidate(const struct cli_typed *t, const char *text, const char *what)
{
    const char *word = t->word + t->fixed;
    size_t n = strlen(word);
    if (!agrees(text, word, n))
        return;
    /* As it was typed, as shells would not see it otherwise. */
    et_print(stdout, "%s%s\t%.*s\n", t->word, text + n, (int)strcspn(what, "\t\n"),
             what);
}

/* ---- what words in capitals stand for ---- */

void
cli_complete_config(const struct cli_typed *t)
{
    if (!t->c->config)
        (void)cli_config_load(t->c); /* wrong: no plugin is known */
}

void
cli_complete_components(const struct cli_typed *t, enum et_kind kind)
{
    cli_complete_config(t);
    const struct et_registry *all = cli_all_components(t->c);
    const struct et_component *c;
    for (int i = 0; (c = all->get(all, kind, i)); i++)
        cli_candidate(t, c->name, c->summary);
}

static void
offer_list(const struct cli_typed *t, const json_t *list, const char *what)
{
    const json_t *name;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        const char *text = json_string_value(json_object_get(one, what));
        if ((name = json_object_get(one, "name")))
            cli_candidate(t, json_string_value(name), text ? text : "");
    }
}

static void
offer_installed(const struct cli_typed *t)
{
    json_t *list = cli_recipe_list();
    offer_list(t, list, "title");
    json_decref(list);
}

static void
offer_recipes(const struct cli_typed *t)
{
    if (t->module_mode)
        offer_installed(t);
    else
        puts(":recipes");
}

static void
offer_runs(const struct cli_typed *t)
{
    json_t *list = cli_run_names(t->c);
    offer_list(t, list, "state");
    json_decref(list);
    cli_candidate(t, "last", "the newest run");
    puts(":folders");
}

static void
offer_checkpoints(const struct cli_typed *t)
{
    (void)t;
    puts(":folders");
}

static void
offer_all_components(const struct cli_typed *t)
{
    for (int kind = 0; kind < ET_KIND_COUNT; kind++)
        cli_complete_components(t, (enum et_kind)kind);
}

static void
offer_algorithms(const struct cli_typed *t)
{
    cli_complete_components(t, ET_KIND_ALGORITHM);
}

static bool
is_among(const json_t *list, const char *name)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(json_string_value(json_array_get(list, i)), name) == 0)
            return true;
    return false;
}

/* The algorithms of the run that is named and those that can join it; without a run
 * all. */
static void
offer_run_algorithms(const struct cli_typed *t)
{
    json_t *facts = cli_complete_run(t);
    const json_t *list = json_object_get(facts, "algorithms");
    const struct et_algorithm_class *const *c = et_algorithm_classes;
    for (size_t i = 0; i < json_array_size(list); i++)
        cli_candidate(t, json_string_value(json_array_get(list, i)), "");
    for (; facts && *c; c++)
        if (!et_algorithm_why_not_join(*c) && !is_among(list, (*c)->info.name))
            cli_candidate(t, (*c)->info.name, (*c)->info.summary);
    if (!facts)
        offer_algorithms(t);
    json_decref(facts);
}

static void
offer_datasets(const struct cli_typed *t)
{
    cli_complete_components(t, ET_KIND_DATASET);
}

static void
offer_commands(const struct cli_typed *t)
{
    for (const struct cli_command *m = cli_commands; m->name; m++)
        if (m->run)
            cli_candidate(t, m->name, m->summary);
}

static void
offer_setting(void *data, const char *path, const struct et_option *row)
{
    cli_candidate(data, path, row->help);
}

static void
offer_settings(const struct cli_typed *t)
{
    eti_config_each(NULL, offer_setting, (void *)t);
}

/* Those of workers.yaml. */
static void
offer_workers(const struct cli_typed *t)
{
    char folder[PATH_MAX - 64], path[PATH_MAX];
    void *block;
    snprintf(path, sizeof path, "%s/workers.yaml",
             cli_user_folder(folder, sizeof folder));
    if (et_alloc(t->c->cx, sizeof(struct etd_worker_list), &block) != ET_OK)
        return;
    const struct etd_worker_list *list = block;
    if (etd_workers_read(t->c->cx, path, block) == ET_OK)
        for (int i = 0; i < list->n; i++)
            cli_candidate(t, list->worker[i].name, list->worker[i].address);
    et_error_clear(t->c->cx);
    et_free(t->c->cx, block);
}

static void
offer_files(const struct cli_typed *t)
{
    (void)t;
    puts(":files");
}

static const struct {
    const char *name;
    void (*offer)(const struct cli_typed *t);
} metavars[] = {
    {"RECIPE", offer_recipes},
    {"NAME", offer_installed},
    {"RUN", offer_runs},
    {"CKPT", offer_checkpoints},
    {"COMPONENT", offer_all_components},
    {"PATTERN", offer_algorithms},
    {"ALGORITHM", offer_run_algorithms},
    {"DATASET", offer_datasets},
    {"COMMAND", offer_commands},
    {"KEY", offer_settings},
    {"WORKER", offer_workers},
    {"FILE", offer_files},
    {"PATH", offer_files},
    {"DIR", offer_checkpoints},
};

/* WORD is one of a synopsis or an option's: "RUN|CKPT", "ls", "bash|zsh|fish". */
static void
offer_word(const struct cli_typed *t, const char *word, size_t n)
{
    char one[64];
    for (size_t at = 0, length; at < n; at += length + 1) {
        length = 0;
        while (at + length < n && word[at + length] != '|')
            length++;
        snprintf(one, sizeof one, "%.*s", (int)length, word + at);
        if (islower((unsigned char)*one))
            cli_candidate(t, one, "");
        for (size_t i = 0; i < sizeof metavars / sizeof *metavars; i++)
            if (strcmp(metavars[i].name, one) == 0)
                metavars[i].offer(t);
    }
}

/* ---- options ---- */

static void
offer_value(struct cli_typed *t, const struct cli_option *o, size_t fixed)
{
    t->fixed = fixed;
    if (o->type == CLI_CHANGE && o->kind == ET_OVERRIDE_UNSET)
        cli_complete_keys(t, true);
    else if (o->type == CLI_CHANGE)
        offer_algorithms(t);
    else if (o->choices)
        for (const char *const *c = o->choices; *c; c++)
            cli_candidate(t, *c, "");
    else if (strcmp(o->metavar, "NAME") != 0 && /* that one is to be invented */
             strcmp(o->metavar, "KEY") != 0)    /* of runs, not of the configuration */
        offer_word(t, o->metavar, strlen(o->metavar));
}

static void
offer_options(const struct cli_typed *t)
{
    char text[64];
    for (const struct cli_option *o = cli_option_table; o->name; o++) {
        if (o->type == CLI_LATER ||
            (o->commands && !(t->command && cli_takes(o, t->command->name))))
            continue;
        snprintf(text, sizeof text, "--%s", o->name);
        cli_candidate(t, text, o->help);
    }
}

/* ---- operands ---- */

/* One alternative of a synopsis, word by word. */
struct alternative {
    const char *at, *end;
};

/* The next word, without brackets and dots; an option and its value are passed over.
 * *N 0: no word is left. */
static const char *
next_word(struct alternative *a, size_t *n, bool *repeats)
{
    for (;;) {
        a->at += strspn(a->at, " ");
        *n = a->at < a->end ? strcspn(a->at, " ") : 0;
        if (*n > (size_t)(a->end - a->at))
            *n = (size_t)(a->end - a->at);
        if (*n == 0 || *a->at != '-')
            break;
        a->at += *n;
        a->at += strspn(a->at, " ");
        a->at += strcspn(a->at, " ");
    }
    const char *word = a->at;
    a->at += *n;
    if (*n > 1 && word[0] == '[') {
        word++;
        *n -= 2;
    }
    *repeats = *n > 3 && memcmp(word + *n - 3, "...", 3) == 0;
    *n -= *repeats ? 3 : 0;
    return word;
}

/* Could OPERAND be what WORD says? Capitals may be anything. */
static bool
fits(const char *word, size_t n, const char *operand)
{
    size_t length = strlen(operand);
    if (!islower((unsigned char)*word))
        return true;
    for (const char *at = word; at < word + n; at++)
        if ((at == word || at[-1] == '|') && (size_t)(word + n - at) >= length &&
            memcmp(at, operand, length) == 0 &&
            (at + length == word + n || at[length] == '|'))
            return true;
    return false;
}

/* Settings are no operands; they come after those. */
static bool
is_setting(const char *word, size_t n)
{
    return n > 0 && memchr(word, '=', n);
}

/* The settings behind the word LAST of a synopsis: of the data set that was named, or
 * of a recipe. */
static void
offer_settings_behind(const struct cli_typed *t, const char *last, size_t n)
{
    struct cli_typed of = *t;
    const struct et_component *data = NULL;
    if (n == strlen("DATASET") && memcmp(last, "DATASET", n) == 0)
        data = et_registry_find(NULL, ET_KIND_DATASET, t->operand[t->n_operands - 1]);
    of.keys = data ? data->options : NULL;
    if (t->command->run == cli_set)
        cli_complete_changes(t);
    else
        cli_complete_keys(&of, false);
}

/* What may stand where the word is, by one alternative of the synopsis. */
static void
offer_operand(const struct cli_typed *t, struct alternative a)
{
    size_t n, n_last = 0;
    bool repeats;
    const char *word = next_word(&a, &n, &repeats), *last = "";
    for (int i = 0; i < t->n_operands && n > 0 && !is_setting(word, n); i++) {
        if (!fits(word, n, t->operand[i]))
            return;
        last = word;
        n_last = n;
        if (!repeats)
            word = next_word(&a, &n, &repeats);
    }
    if (n > 0 && !is_setting(word, n)) {
        offer_word(t, word, n);
        if (t->n_operands == 0 || !repeats)
            return;
        word = next_word(&a, &n, &repeats);
    }
    if (is_setting(word, n))
        offer_settings_behind(t, last, n_last);
}

static void
offer_operands(const struct cli_typed *t)
{
    const char *at = t->command->synopsis;
    while (*at) {
        const char *end = strstr(at, " | ");
        struct alternative a = {at, end ? end : at + strlen(at)};
        offer_operand(t, a);
        at = end ? end + 3 : a.end;
    }
}

/* ---- the line ---- */

/* Goes over the words before the one typed. Returns the option that wants it as its
 * value, or NULL. */
static const struct cli_option *
read_words(struct cli_typed *t, char **word, int n)
{
    for (int i = 0; i < n; i++) {
        const struct cli_option *o = NULL;
        const char *value = NULL;
        if (!t->ended && strcmp(word[i], "--") == 0) {
            t->ended = true;
            continue;
        }
        if (!t->ended && word[i][0] == '-' && word[i][1])
            o = cli_option_of_word(word[i], &value);
        else if (!t->command && (t->command = cli_command_find(word[i])))
            continue;
        else if (strchr(word[i], '=') && !strchr(word[i], '/'))
            t->setting[t->n_settings++] = word[i];
        else
            t->operand[t->n_operands++] = word[i];
        if (!o)
            continue;
        if (o->metavar && !value && i + 1 == n)
            return o;
        if (o->metavar && !value)
            value = word[++i];
        if (strcmp(o->name, "module_mode") == 0)
            t->module_mode = true;
        if (strcmp(o->name, "directory") == 0 && chdir(value) != 0)
            continue; /* then its files are not offered */
    }
    if (!t->command && (t->n_operands > 0 || t->module_mode))
        t->command = cli_command_find("train");
    return NULL;
}

static void
complete(struct cli_typed *t, char **word, int n)
{
    t->word = word[n - 1];
    const struct cli_option *o = read_words(t, word, n - 1);
    const char *equals = strchr(t->word, '=');
    const char *value = NULL;
    if (o) {
        offer_value(t, o, 0);
    } else if (t->word[0] == '-' && !t->ended) {
        o = equals ? cli_option_of_word(t->word, &value) : NULL;
        if (o && o->metavar)
            offer_value(t, o, (size_t)(equals - t->word) + 1);
        else if (!equals)
            offer_options(t);
    } else if (t->command) {
        offer_operands(t);
    } else {
        offer_commands(t);
        puts(":recipes");
    }
}

/* Splits LINE as a shell does: blanks, quotes, backslashes. Writes into it. */
static int
split(char *line, char **word, int most)
{
    int n = 0;
    char *from = line, *to = line, quote = '\0';
    bool inside = false;
    for (; *from; from++) {
        char c = *from;
        if (!inside && !quote && isblank((unsigned char)c))
            continue;
        if (!inside && n < most)
            word[n++] = to;
        inside = true;
        if (quote && c == quote)
            quote = '\0';
        else if (!quote && (c == '\'' || c == '"'))
            quote = c;
        else if (c == '\\' && quote != '\'' && from[1])
            *to++ = *++from;
        else if (!quote && isblank((unsigned char)c)) {
            *to++ = '\0';
            inside = false;
        } else
            *to++ = c;
    }
    *to = '\0';
    if (!inside && n < most)
        word[n++] = to; /* a new word begins */
    return n;
}

int
cli_complete(struct cli *c, int argc, char **argv)
{
    enum { MOST = 1024 };
    static char nothing[] = "";
    char *word[MOST + 1] = {nothing};
    const char *operand[MOST], *setting[MOST];
    struct cli_typed t = {.c = c, .operand = operand, .setting = setting};
    int n = 0;
    if (argc == 2 && strcmp(argv[0], "--line") == 0) {
        n = split(argv[1], word, MOST);
        memmove(word, word + 1, sizeof word - sizeof *word); /* the program itself */
        n--;
    } else {
        for (; n < argc && n < MOST; n++)
            word[n] = argv[n];
    }
    if (n > 0)
        complete(&t, word, n);
    return CLI_OK;
}
