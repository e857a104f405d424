/* SPDX-License-Identifier: Apache-2.0 */
/* options.c: the one table of options, and the reading of a command line with it.
 *
 * --world-size and --world_size are one option; nothing is abbreviated; options may
 * follow operands, `--` ends them. Parser, help and refusals all read the table. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/text/shards.h"

static const char *const levels[] = {"debug", "info", "warn", "error", NULL};
static const char *const exports[] = {"tensorboard", "jsonl", "csv",
                                      "svg",         "onnx",  NULL};

static const char *const float_names[] = {"f32", "f16", "bf16", NULL};

#define RECIPE_COMMANDS "train rerun sweep eval predict validate explain estimate data"
#define LAUNCH_COMMANDS "train rerun"
#define SCREEN_COMMANDS                                                                \
    "attach compare compose help logs runs worker" /* and etude without one */
#define AT(field) .offset = offsetof(struct cli_options, field)
#define ROW(its_name, its_letter, its_type, its_metavar, its_help, ...)                \
    {                                                                                  \
        .name = its_name, .letter = its_letter, .type = CLI_##its_type,                \
        .metavar = its_metavar, .help = its_help, __VA_ARGS__                          \
    }
#define GLOBAL(...) ROW(__VA_ARGS__, .group = "global")
#define SCREEN(...) ROW(__VA_ARGS__, .group = "global", .commands = SCREEN_COMMANDS)
#define LAUNCH(...) ROW(__VA_ARGS__, .group = "launch", .commands = LAUNCH_COMMANDS)
#define CHANGE(...) ROW(__VA_ARGS__, .group = "recipe", .commands = RECIPE_COMMANDS)

const struct cli_option cli_option_table[] = {
    GLOBAL("directory", 'C', TEXT, "DIR", "work in this folder", AT(folder)),
    GLOBAL("config", 0, TEXT, "FILE", "a user configuration instead of your own",
           AT(config)),
    GLOBAL("verbose", 'v', COUNT, NULL, "say more; twice: all", AT(verbose)),
    GLOBAL("quiet", 'q', COUNT, NULL, "errors only, no progress", AT(quiet)),
    GLOBAL("json", 0, FLAG, NULL, "results and errors as JSON", AT(json)),
    GLOBAL("color", 0, CHOICE, "WHEN", "auto, always or never", AT(color),
           .choices = eti_color_names),
    GLOBAL("ascii", 0, FLAG, NULL, "7-bit characters only", AT(ascii)),
    SCREEN("no-mouse", 0, FLAG, NULL, "keyboard only", AT(no_mouse)),
    SCREEN("readonly", 'R', FLAG, NULL, "watch, control nothing", AT(readonly)),
    GLOBAL("progress", 0, CHOICE, "HOW", "auto, tui, bar, plain, json or none",
           AT(progress), .choices = eti_show_names),
    GLOBAL("log-level", 0, CHOICE, "LEVEL", "debug, info, warn or error", AT(log_level),
           .choices = levels),
    GLOBAL("log-file", 0, TEXT, "FILE", "add messages to this file", AT(log_file)),
    SCREEN("dump-screen", 0, TEXT, "WxH", "print the screen and end", AT(dump_screen)),
    SCREEN("keys", 0, TEXT, "KEYS", "keys to press before that: '2c<tab><esc>'",
           AT(keys)),
    SCREEN("at", 0, INT, "SEQ", "the record to stop at, before that", AT(at)),
    GLOBAL("help", 'h', FLAG, NULL, "help on the command", AT(help)),
    GLOBAL("version", 'V', FLAG, NULL, "print the version", AT(version)),

    ROW("nproc", 'n', TEXT, "N", "ranks on this node: 1", AT(nproc), .group = "launch",
        .commands = LAUNCH_COMMANDS " eval predict launch"),
    LAUNCH("world_size", 0, TEXT, "W", "ranks of all nodes: nproc", AT(world_size)),
    LAUNCH("base_rank", 0, TEXT, "B", "first rank of this node: 0", AT(base_rank)),
    LAUNCH("node_rank", 0, TEXT, "K", "which node this is: 0", AT(node_rank)),
    LAUNCH("master_addr", 0, TEXT, "HOST", "where ranks meet: 127.0.0.1",
           AT(master_addr)),
    ROW("master_port", 0, TEXT, "P", "where ranks meet: one that is free",
        AT(master_port), .group = "launch", .commands = LAUNCH_COMMANDS " launch"),
    ROW("run_directory", 0, TEXT, "DIR",
        "where the run is kept; runs/{timestamp}/; sweep: its runs, runs/",
        AT(run_directory), .group = "launch", .commands = LAUNCH_COMMANDS " sweep"),
    ROW("run_name", 0, TEXT, "NAME", "a name for people; two words", AT(run_name),
        .group = "launch", .commands = LAUNCH_COMMANDS " sweep"),
    ROW("module_mode", 'm', FLAG, NULL, "RECIPE is an installed recipe's name",
        AT(module_mode), .group = "launch", .commands = RECIPE_COMMANDS " compose"),
    LAUNCH("stdout", 0, TEXT, "FMT",
           "a file for each rank: {rank} {local_rank} {world_size} {local_world_size} "
           "{node_rank}",
           AT(rank_stdout)),
    LAUNCH("stderr", 0, TEXT, "FMT", "likewise", AT(rank_stderr)),
    LAUNCH("on", 0, TEXT, "WORKER", "train there: NAME, NAME:GPUS or an address",
           AT(on)),
    LAUNCH("detach", 'd', FLAG, NULL, "leave it running", AT(detach)),
    ROW("dry-run", 0, FLAG, NULL, "check everything, train nothing", AT(dry_run),
        .group = "launch", .commands = LAUNCH_COMMANDS " sweep"),
    ROW("resume", 0, TEXT, "RUN|CKPT", "continue a run, or a sweep", AT(resume),
        .group = "launch", .commands = LAUNCH_COMMANDS " sweep"),
    LAUNCH("autoresume", 0, FLAG, NULL,
           "continue what the run directory holds; else begin", AT(autoresume)),
    ROW("target", 0, TEXT, "METRIC>=X",
        "train: stop when reached, missed: exit 6; compare: when each was there",
        AT(target), .group = "launch", .commands = LAUNCH_COMMANDS " compare"),
    LAUNCH("every", 0, TEXT, "TIME", "between lines of progress: 10s, 50ba", AT(every)),
    LAUNCH("until", 0, TEXT, "TIME",
           "save and end with the batch behind it: 3ep, 0.25dur; --resume goes on",
           AT(until)),
    ROW("timeout", 0, TEXT, "DUR",
        "without progress for so long a run is hung; launch: a collective may take so "
        "long",
        AT(timeout), .group = "launch", .commands = LAUNCH_COMMANDS " launch"),

    CHANGE("alg", 0, CHANGE, "NAME", "add an algorithm: 'cutmix(alpha=.5)'",
           .kind = ET_OVERRIDE_ALG),
    CHANGE("no-alg", 0, CHANGE, "NAME", "leave an algorithm out",
           .kind = ET_OVERRIDE_NO_ALG),
    CHANGE("recipe-folder", 0, TEXT, "DIR", "where its relative paths begin: beside it",
           AT(recipe_folder)),
    CHANGE("unset", 0, CHANGE, "KEY", "as if the recipe did not set it",
           .kind = ET_OVERRIDE_UNSET),

    ROW("origin", 0, FLAG, NULL, "where each value comes from", AT(origin),
        .group = "command", .commands = "explain"),
    ROW("model", 0, FLAG, NULL, "the model's layers: shapes, parameters, FLOPs",
        AT(model), .group = "command", .commands = "explain"),
    ROW("load", 0, TEXT, "CKPT", "evaluate this checkpoint", AT(load),
        .group = "command", .commands = "eval predict"),
    ROW("to", 0, CHOICE, "FORMAT", "tensorboard, jsonl, csv, svg or onnx", AT(to),
        .choices = exports, .group = "command", .commands = "export"),
    ROW("as", 0, CHOICE, "FORM", "export: hf, torchvision, timm or etude", AT(form),
        .choices = et_model_forms, .group = "command", .commands = "weights"),
    ROW("output", 'o', TEXT, "PATH",
        "the file or folder to write; without: export standard output or RUN/tb, "
        "predict "
        "RUN/predictions",
        AT(output), .group = "command", .commands = "export weights predict data"),
    ROW("length", 0, TEXT, "N", "tokens to add at most, 200", AT(length),
        .group = "command", .commands = "generate"),
    ROW("temperature", 0, TEXT, "T", "scores are divided by it, 0.8; 0: the likeliest",
        AT(temperature), .group = "command", .commands = "generate"),
    ROW("top-k", 0, TEXT, "N", "draw among the N most likely; 0: all", AT(top_k),
        .group = "command", .commands = "generate"),
    ROW("top-p", 0, TEXT, "P",
        "draw among the fewest that have this probability together; 1: all", AT(top_p),
        .group = "command", .commands = "generate"),
    ROW("prompts", 0, TEXT, "FILE", "a prompt a line; JSONL: its member prompt",
        AT(prompts), .group = "command", .commands = "generate"),
    ROW("seed", 0, TEXT, "N", "of what is drawn, 17", AT(seed), .group = "command",
        .commands = "generate sweep"),
    ROW("jobs", 'j', TEXT, "N", "runs at a time, 1", AT(jobs), .group = "command",
        .commands = "sweep"),
    ROW("random", 0, TEXT, "N", "draw so many combinations", AT(random),
        .group = "command", .commands = "sweep"),
    ROW("list", 0, TEXT, "FILE", "a run for each line, which has its settings",
        AT(list), .group = "command", .commands = "sweep"),
    ROW("leave-one-out", 0, FLAG, NULL,
        "the recipe, and it without each of its algorithms", AT(leave_one_out),
        .group = "command", .commands = "sweep"),
    ROW("halving", 0, TEXT, "N", "one of N runs goes on from each rung", AT(halving),
        .group = "command", .commands = "sweep"),
    ROW("metric", 0, TEXT, "NAME", "by which runs are judged; what they are known by",
        AT(metric), .group = "command", .commands = "sweep"),
    ROW("metrics", 0, TEXT, "REGEX", "the names to take; an svg: losses and metrics",
        AT(metrics), .group = "command", .commands = "export"),
    ROW("copy", 0, TEXT, "DIR", "copy the recipe there, with files that it names",
        AT(copy), .group = "command", .commands = "recipes"),
    ROW("limit", 0, INT, "N", "samples or tokens to read or show, runs to list; 0: all",
        AT(limit), .group = "command", .commands = "data runs"),
    ROW("without", 0, TEXT, "LIST", "show: leave out transforms, by name or place: 0,2",
        AT(without), .group = "command", .commands = "data"),
    ROW("epoch", 0, INT, "N", "show: as epoch N has it, from 0", AT(epoch),
        .group = "command", .commands = "data"),
    ROW("from", 0, INT, "N", "show: the first sample, a multiple of --limit", AT(from),
        .group = "command", .commands = "data"),
    ROW("pictures", 0, FLAG, NULL,
        "show: JSON with pictures, class counts and transforms, as screens show them",
        AT(pictures), .group = "command", .commands = "data"),
    ROW("sort", 0, TEXT, "KEY",
        "by a fact, a key of the recipe or a metric; -KEY: from "
        "the greatest; started otherwise",
        AT(sort), .group = "command", .commands = "runs"),
    ROW("reindex", 0, FLAG, NULL, "read all runs again", AT(reindex),
        .group = "command", .commands = "runs"),
    ROW("pareto", 0, TEXT, "WHAT",
        "time, cost, energy, samples, cpu: runs that none beats", AT(pareto),
        .group = "command", .commands = "compare"),
    ROW("seeds", 0, FLAG, NULL, "runs that differ by their seed alone as one: medians",
        AT(seeds), .group = "command", .commands = "compare"),
    ROW("svg", 0, TEXT, "FILE", "draw the Pareto front there, too", AT(svg),
        .group = "command", .commands = "compare"),
    ROW("rank", 0, INT, "N",
        "logs: whose log, 0; kill: end the process of this rank alone", AT(rank),
        .group = "command", .commands = "logs kill",
        .others =
            "all ranks of a run do that after the same batch; etude kill --rank N "
            "ends one process"),
    ROW("follow", 'f', FLAG, NULL, "go on until the run ends", AT(follow),
        .group = "command", .commands = "logs"),
    ROW("level", 0, CHOICE, "LEVEL", "debug, info, warn or error, and worse", AT(level),
        .choices = levels, .group = "command", .commands = "logs"),
    ROW("dtype", 0, CHOICE, "DTYPE", "convert: f32, f16 or bf16; else as they are",
        AT(dtype), .choices = float_names, .group = "command", .commands = "weights"),
    ROW("listen", 0, TEXT, "ADDRESS",
        "serve: tcp://ADDRESS:PORT too, for authorized keys", AT(listen),
        .group = "command", .commands = "worker"),
    ROW("key", 0, TEXT, "FILE", "serve, keygen, key: the file of this host's keys",
        AT(key), .group = "command", .commands = "worker"),
    ROW("tokenizer", 0, TEXT, "FILE",
        "tokenizer.json, vocab.json, vocab.txt, *.model or their folder; bytes; "
        "generate: the data's",
        AT(tokenizer), .group = "command", .commands = "data generate"),
    ROW("field", 0, TEXT, "NAME", "tokenize: of a line of JSON: text", AT(field),
        .group = "command", .commands = "data"),
    ROW("document", 0, CHOICE, "WHAT",
        "file, line or blank: what is between blank lines", AT(document),
        .choices = eti_document_names, .group = "command", .commands = "data"),
    ROW("end", 0, TEXT, "TOKEN", "tokenize: behind each document; \"\": none", AT(end),
        .group = "command", .commands = "data"),
    ROW("plain", 0, FLAG, NULL, "tokenize: special tokens in texts are text", AT(plain),
        .group = "command", .commands = "data"),
    ROW("val-fraction", 0, TEXT, "X", "tokenize: of the documents, for val.bin: 0",
        AT(val_fraction), .group = "command", .commands = "data"),
    ROW("threads", 0, INT, "N", "tokenize: those that encode; one for each processor",
        AT(threads), .group = "command", .commands = "data"),
    ROW("all", 0, FLAG, NULL, "diff: optimizer and state of checkpoints too", AT(all),
        .group = "command", .commands = "weights"),
    {0},
};

enum { MAX_OPTIONS = sizeof cli_option_table / sizeof cli_option_table[0] };
_Static_assert(MAX_OPTIONS <= (int)CLI_MAX_OPTIONS,
               "struct cli.given has one for each");

bool
cli_takes(const struct cli_option *o, const char *command)
{
    size_t n = strlen(command);
    for (const char *at = o->commands; at && *at;) {
        size_t word = strcspn(at, " ");
        if (word == n && memcmp(at, command, n) == 0)
            return true;
        at += word + (at[word] == ' ');
    }
    return !o->commands;
}

/* ---- finding a row ---- */

static bool
same_name(const char *a, const char *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((a[i] == '_' ? '-' : a[i]) != (b[i] == '_' ? '-' : b[i]))
            return false;
    return a[n] == '\0';
}

static const struct cli_option *
find_long(const char *text, size_t n)
{
    for (const struct cli_option *o = cli_option_table; o->name; o++)
        if (strlen(o->name) == n && same_name(o->name, text, n))
            return o;
    return NULL;
}

static const struct cli_option *
find_letter(char letter)
{
    for (const struct cli_option *o = cli_option_table; o->name; o++)
        if (o->letter == letter)
            return o;
    return NULL;
}

const struct cli_option *
cli_option_of_word(const char *word, const char **value)
{
    const struct cli_option *o = NULL;
    *value = NULL;
    if (word[1] == '-') {
        size_t n = strcspn(word + 2, "=");
        *value = word[2 + n] ? word + 3 + n : NULL;
        return find_long(word + 2, n);
    }
    for (const char *letter = word + 1; *letter; letter++) {
        o = find_letter(*letter);
        if (!o || !o->metavar)
            continue;
        *value = letter[1] ? letter + 1 : NULL;
        return o;
    }
    return o;
}

static int
unknown_long(struct cli *c, const char *text, size_t n)
{
    const char *names[MAX_OPTIONS];
    char word[128];
    int count = 0;
    for (const struct cli_option *o = cli_option_table; o->name; o++)
        names[count++] = o->name;
    snprintf(word, sizeof word, "%.*s", (int)(n < 100 ? n : 100), text);
    const char *near = et_nearest(word, names, count);
    if (near)
        return cli_fail(c, CLI_E_OPTION, NULL,
                        "unknown option --%s (did you mean --%s?)", word, near);
    return cli_fail(c, CLI_E_OPTION, "etude help lists them", "unknown option --%s",
                    word);
}

/* ---- values ---- */

static int
choose(const char *const *choices, const char *value)
{
    for (int i = 0; choices[i]; i++)
        if (strcmp(choices[i], value) == 0)
            return i;
    return -1;
}

static int
bad_choice(struct cli *c, const struct cli_option *o, const char *value)
{
    int n = 0;
    while (o->choices[n])
        n++;
    const char *near = et_nearest(value, o->choices, n);
    if (near)
        return cli_fail(c, CLI_E_VALUE, NULL,
                        "--%s: expected %s, got '%s' (did you mean '%s'?)", o->name,
                        o->help, value, near);
    return cli_fail(c, CLI_E_VALUE, NULL, "--%s: expected %s, got '%s'", o->name,
                    o->help, value);
}

static int
not_yet(struct cli *c, const struct cli_option *o, const char *value)
{
    return cli_fail(c, CLI_E_LATER, NULL, "--%s%s%s: this version does not do that",
                    o->name, value ? " " : "", value ? value : "");
}

static int
take_int(struct cli *c, const struct cli_option *o, const char *value, int64_t *out)
{
    char *end;
    errno = 0;
    long long x = strtoll(value, &end, 10);
    if (!isdigit((unsigned char)*value) || *end || errno == ERANGE)
        return cli_fail(c, CLI_E_VALUE, NULL, "--%s: expected a number >= 0, got '%s'",
                        o->name, value);
    *out = x;
    return CLI_OK;
}

static void
add_override(struct cli *c, enum et_override_kind kind, const char *text)
{
    c->override[c->n_overrides++] = (struct et_override){kind, text};
}

static int
take(struct cli *c, const struct cli_option *o, const char *value)
{
    void *field = (char *)&c->opt + o->offset;
    c->given[o - cli_option_table] = true;
    switch (o->type) {
    case CLI_FLAG:
        *(bool *)field = true;
        break;
    case CLI_COUNT:
        ++*(int *)field;
        break;
    case CLI_TEXT:
        *(const char **)field = value;
        break;
    case CLI_CHOICE:
        *(int *)field = choose(o->choices, value);
        return *(int *)field < 0 ? bad_choice(c, o, value) : CLI_OK;
    case CLI_INT:
        return take_int(c, o, value, field);
    case CLI_CHANGE:
        add_override(c, o->kind, value);
        break;
    case CLI_LATER:
        return not_yet(c, o, value);
    }
    return CLI_OK;
}

/* ---- the command line ---- */

struct words {
    char **v;
    int n, at;
};

static int
needs_value(struct cli *c, const struct cli_option *o)
{
    return cli_fail(c, CLI_E_VALUE, NULL, "--%s needs a value: --%s %s", o->name,
                    o->name, o->metavar);
}

static int
parse_long(struct cli *c, struct words *w, const char *text)
{
    size_t n = strcspn(text, "=");
    const struct cli_option *o = find_long(text, n);
    const char *value = text[n] ? text + n + 1 : NULL;
    if (!o)
        return unknown_long(c, text, n);
    if (!o->metavar)
        return value ? cli_fail(c, CLI_E_VALUE, NULL, "--%s takes no value", o->name)
                     : take(c, o, NULL);
    if (!value && w->at == w->n)
        return needs_value(c, o);
    return take(c, o, value ? value : w->v[w->at++]);
}

/* -vq, -n 1, -n1 */
static int
parse_letters(struct cli *c, struct words *w, const char *text)
{
    int code = CLI_OK;
    for (; *text && code == CLI_OK; text++) {
        const struct cli_option *o = find_letter(*text);
        if (!o)
            return cli_fail(c, CLI_E_OPTION, "etude help lists them",
                            "unknown option -%c", *text);
        if (!o->metavar) {
            code = take(c, o, NULL);
            continue;
        }
        if (!text[1] && w->at == w->n)
            return needs_value(c, o);
        return take(c, o, text[1] ? text + 1 : w->v[w->at++]);
    }
    return code;
}

/* key.sub=value? A path with a '=' has a '/' or a '.' before names begin. */
static bool
is_override(const char *text)
{
    size_t n = strspn(
        text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");
    return n > 0 && text[n] == '=' && (isalpha((unsigned char)*text) || *text == '_');
}

/* Commands whose operands are never overrides: filters, texts and keys may look so. */
static bool
takes_words(const struct cli *c)
{
    static const char *const commands[] = {"runs",     "show",   "compare", "logs",
                                           "annotate", "worker", "launch"};
    bool does = false;
    for (size_t i = 0; c->n_args > 0 && i < sizeof commands / sizeof *commands; i++)
        does = does || strcmp(c->arg[0], commands[i]) == 0;
    return does;
}

static bool
is_recipe_path(const char *text)
{
    size_t n = strlen(text);
    return strchr(text, '/') || (n > 5 && strcmp(text + n - 5, ".yaml") == 0) ||
           (n > 4 && strcmp(text + n - 4, ".yml") == 0);
}

/* The first operand names the command, or is the recipe to train. */
static int
find_command(struct cli *c)
{
    if (c->n_args == 0)
        return CLI_OK;
    const char *name = c->arg[0];
    c->command = cli_command_find(name);
    if (c->command) {
        memmove(c->arg, c->arg + 1, (size_t)--c->n_args * sizeof *c->arg);
        return CLI_OK;
    }
    if (c->opt.module_mode || is_recipe_path(name)) {
        c->command = cli_command_find("train");
        return CLI_OK;
    }
    const char *names[CLI_COMMANDS];
    int n = 0;
    while (cli_commands[n].name) {
        names[n] = cli_commands[n].name;
        n++;
    }
    const char *near = et_nearest(name, names, n);
    if (near)
        return cli_fail(c, CLI_E_COMMAND, NULL,
                        "unknown command '%s' (did you mean '%s'?)", name, near);
    return cli_fail(c, CLI_E_COMMAND, "etude help lists them", "unknown command '%s'",
                    name);
}

static int
check_given(struct cli *c)
{
    for (int i = 0; c->command && cli_option_table[i].name; i++) {
        const struct cli_option *o = &cli_option_table[i];
        if (c->given[i] && !cli_takes(o, c->command->name))
            return cli_fail(c, CLI_E_OPTION, o->others, "--%s does not apply to '%s'",
                            o->name, c->command->name);
    }
    return CLI_OK;
}

/* Behind `launch PROGRAM` all words are the program's. */
static bool
names_program(const struct cli *c)
{
    return c->n_args > 1 && strcmp(c->arg[0], "launch") == 0;
}

/* Errors come in the form asked for wherever --json stands. */
static void
look_ahead(struct cli *c, int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--json") == 0)
            c->opt.json = true;
}

int
cli_parse(struct cli *c, int argc, char **argv)
{
    struct words w = {argv, argc, 1};
    bool ended = false;
    int code = CLI_OK;
    look_ahead(c, argc, argv);
    c->argc = argc;
    c->argv = argv;
    c->arg = calloc((size_t)argc + 1, sizeof *c->arg);
    c->override = calloc((size_t)argc + CLI_OWN_OVERRIDES, sizeof *c->override);
    if (!c->arg || !c->override)
        return cli_fail(c, CLI_E_MEMORY, NULL, "no memory for %d arguments", argc);
    while (w.at < w.n && code == CLI_OK) {
        const char *text = w.v[w.at++];
        if (!ended && strcmp(text, "--") == 0)
            ended = true;
        else if (!ended && text[0] == '-' && text[1] == '-')
            code = parse_long(c, &w, text + 2);
        else if (!ended && text[0] == '-' && text[1])
            code = parse_letters(c, &w, text + 1);
        else if (is_override(text) && !takes_words(c))
            add_override(c, ET_OVERRIDE_SET, text);
        else
            c->arg[c->n_args++] = text;
        ended = ended || names_program(c);
    }
    if (code == CLI_OK)
        code = find_command(c);
    if (code == CLI_OK)
        code = check_given(c);
    et_ctx_set_log(c->cx, ET_LOG_DEBUG, cli_log, c);
    return code;
}
