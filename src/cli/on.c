/* SPDX-License-Identifier: Apache-2.0 */
/* on.c: `etude train --on WORKER[:GPUS]`: a recipe is sent to another machine and
 * started there, as a run of the worker's user. What its data and devices are is that
 * machine's: it reads the recipe again. */
#include "config.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "core/recipe/recipe.h"
#include "dist/worker/target.h"
#include "dist/worker/worker.h"

enum { WORDS = 32, WORD = 1024 };
static const double SECONDS = 60; /* for reading the recipe and opening data there */

/* Options of a run here that mean nothing to a worker, and why. */
static const struct {
    const char *option, *why;
} others[] = {
    {"run_directory", "the worker keeps its runs in its own folder"},
    {"stdout", "it would be a path of the other machine"},
    {"stderr", "it would be a path of the other machine"},
    {"resume", "a run goes on where it is: etude train --resume there"},
    {"autoresume", "a run goes on where it is: etude train --autoresume there"},
    {"dry-run", "etude validate checks a recipe here, and the worker checks it again"},
    {"world_size", "all ranks of a run on a worker are its own"},
    {"base_rank", "all ranks of a run on a worker are its own"},
    {"node_rank", "all ranks of a run on a worker are its own"},
    {"master_addr", "all ranks of a run on a worker are its own"},
    {"master_port", "all ranks of a run on a worker are its own"},
};

static int
check_options(struct cli *c)
{
    for (int i = 0; cli_option_table[i].name; i++)
        for (size_t k = 0; k < sizeof others / sizeof *others; k++)
            if (c->given[i] && strcmp(cli_option_table[i].name, others[k].option) == 0)
                return cli_fail(c, CLI_E_OPTION, others[k].why,
                                "--%s does not go with --on", others[k].option);
    return CLI_OK;
}

/* ---- what is sent ---- */

/* A recipe, the files that it includes, and words. */
struct sent {
    struct eti_recipe_files files;
    struct etd_file_there file[ETI_MAX_FILES];
    char room[WORDS][WORD];
    const char *word[WORDS];
    int n_words;
    bool full;
};

static void
add_word(struct sent *s, const char *before, const char *text)
{
    if (!text)
        return;
    size_t n = strlen(before), more = strlen(text);
    s->full = s->full || s->n_words == WORDS || n + more >= sizeof s->room[0];
    if (s->full)
        return;
    memcpy(s->room[s->n_words], before, n);
    memcpy(s->room[s->n_words] + n, text, more + 1);
    s->word[s->n_words] = s->room[s->n_words];
    s->n_words++;
}

/* What ETUDE_SET_a__b=VALUE sets here it sets there, too: a.b=VALUE, in the order of
 * the names (core/recipe/override.c), and below what the command line says. */
static void
add_variables(struct sent *s)
{
    static const char prefix[] = "ETUDE_SET_";
    extern char **environ;
    const char *last = "";
    for (;;) {
        const char *next = NULL;
        char word[WORD];
        size_t n = 0;
        for (char **v = environ; *v; v++)
            if (strncmp(*v, prefix, strlen(prefix)) == 0 && strcmp(*v, last) > 0 &&
                (!next || strcmp(*v, next) < 0))
                next = *v;
        if (!next)
            return;
        last = next;
        const char *from = next + strlen(prefix), *equals = strchr(from, '=');
        while (*from && n + 1 < sizeof word) {
            bool is_dot = from < equals && strncmp(from, "__", 2) == 0;
            word[n++] = is_dot ? '.' : *from;
            from += is_dot ? 2 : 1;
        }
        word[n] = '\0';
        s->full = s->full || *from;
        add_word(s, "", word);
    }
}

static int
collect_words(struct cli *c, int gpus, struct sent *s)
{
    static const char *const before[] = {
        [ET_OVERRIDE_SET] = "",
        [ET_OVERRIDE_UNSET] = "--unset=",
        [ET_OVERRIDE_ALG] = "--alg=",
        [ET_OVERRIDE_NO_ALG] = "--no-alg=",
    };
    char ranks[16];
    add_variables(s);
    for (int i = 0; i < c->n_overrides; i++)
        add_word(s, before[c->override[i].kind], c->override[i].text);
    add_word(s, "--run_name=", c->opt.run_name);
    add_word(s, "--target=", c->opt.target);
    add_word(s, "--timeout=", c->opt.timeout);
    snprintf(ranks, sizeof ranks, "%d", gpus);
    if (gpus > 0 && c->opt.nproc && strcmp(c->opt.nproc, ranks) != 0)
        return cli_fail(c, CLI_E_OPTION, "each rank has a GPU",
                        "%d GPUs (--on) and %s ranks (--nproc)", gpus, c->opt.nproc);
    add_word(s, "--nproc=", gpus > 0 ? ranks : c->opt.nproc);
    return s->full ? cli_fail(c, CLI_E_OPERAND, "put them into the recipe",
                              "a worker takes %d settings of at most %d bytes", WORDS,
                              WORD - 1)
                   : CLI_OK;
}

/* The recipe at PATH and what it includes. */
static int
read_files(struct cli *c, const char *path, struct sent *s)
{
    struct et_diagnostics errors = {0};
    size_t all = 0;
    et_status status =
        eti_recipe_gather(c->cx, path, c->opt.recipe_folder, &s->files, &errors);
    if (status != ET_OK) {
        int code = errors.n > 0 ? cli_fail_list(c, &errors, stderr)
                                : cli_fail_status(c, ETI_STAGE_RECIPE, status);
        et_error_clear(c->cx);
        return code;
    }
    for (int i = 0; i < s->files.n; i++) {
        const struct eti_recipe_file *f = &s->files.file[i];
        all += f->size;
        if (i > 0)
            s->file[i - 1] = (struct etd_file_there){f->name, f->text, f->size};
    }
    if (s->files.file[0].size == 0 || all > ETD_RECIPE_BYTES)
        return cli_fail(
            c, CLI_E_OPERAND, NULL,
            "%s: a worker takes recipes of 1 byte to %d KiB, with what they include",
            path, ETD_RECIPE_BYTES >> 10);
    return CLI_OK;
}

/* ---- where ---- */

/* "lab-a:4" is NAME and *GPUS; the ports of addresses are none. */
static int
read_worker(struct cli *c, const char *text, char name[ETD_ADDRESS], int *gpus)
{
    const char *colon = strstr(text, "://") ? NULL : strrchr(text, ':');
    size_t n = colon ? (size_t)(colon - text) : strlen(text);
    char *end = NULL;
    long wanted = colon ? strtol(colon + 1, &end, 10) : 0;
    *gpus = 0;
    if (strchr(text, ','))
        return cli_fail(c, CLI_E_LATER, NULL,
                        "--on %s: this version trains on one worker", text);
    if (n == 0 || n >= ETD_ADDRESS ||
        (colon && (!colon[1] || *end || wanted < 1 || wanted > 1 << 16)))
        return cli_fail(c, CLI_E_VALUE, NULL,
                        "--on: expected WORKER or WORKER:GPUS, got '%s'", text);
    snprintf(name, ETD_ADDRESS, "%.*s", (int)n, text);
    *gpus = (int)wanted;
    return CLI_OK;
}

static int
find_worker(struct cli *c, const char *name, struct etd_target *out)
{
    char folder[PATH_MAX];
    bool is;
    et_status status =
        etd_target_parse(c->cx, name, cli_user_folder(folder, sizeof folder), out, &is);
    if (status != ET_OK)
        return cli_fail_status(c, ETI_STAGE_DATA, status);
    if (!is)
        return cli_fail(c, CLI_E_WORKER, "etude worker list shows them",
                        "no worker is called '%s'", name);
    if (out->run[0])
        return cli_fail(c, CLI_E_VALUE, NULL, "--on takes a worker, and %s is a run",
                        name);
    return CLI_OK;
}

/* ---- what came of it ---- */

/* What to do about errors of the other machine, by their numbers. */
static const struct {
    int from, to;
    const char *hint;
} cures[] = {
    {2000, 2999,
     "data are the worker's: copy them there, and name them from the root on, "
     "as nothing lies beside the recipe there: train_data.path=/..."},
    {3000, 3999, "load.path names a run or checkpoint of the worker's"},
    {4000, 4999, "the worker's user allows plugins, in config.yaml there"},
};

static int
fail_there(struct cli *c, const char *worker, const struct etd_answer *a)
{
    char hint[ETD_ADDRESS + 64];
    snprintf(hint, sizeof hint, "etude worker runs %s shows what goes on there",
             worker);
    if (a->kind == ETD_EXPIRED)
        return cli_fail(c, (enum cli_error)ETD_E_LATE, hint,
                        "%s does not know what came of it", worker);
    const char *cure = NULL;
    for (size_t i = 0; i < sizeof cures / sizeof *cures; i++)
        if (a->code >= cures[i].from && a->code <= cures[i].to)
            cure = cures[i].hint;
    return cli_fail(c, a->code > 0 ? (enum cli_error)a->code : CLI_E_RUN, cure,
                    "%s: %s", worker, a->text);
}

/* TEXT, "NAME goes on (1 rank). ...", is what `train -d` said there. */
static int
take_name(struct cli *c, const char *worker, const char *text, char *name)
{
    size_t n = strcspn(text, " ");
    snprintf(name, ET_RUN_NAME, "%.*s", (int)n, text);
    if (et_run_name_check(c->cx, name) != ET_OK) {
        et_error_clear(c->cx);
        return cli_fail(c, CLI_E_PROTOCOL, NULL, "%s does not say how it is called",
                        worker);
    }
    return CLI_OK;
}

static int
send_recipe(struct cli *c, const char *worker, struct etd_target *to,
            const struct etd_launch_there *l)
{
    struct etd_answer a;
    char text[sizeof a.text];
    const struct etd_client_options o = etd_target_options(to);
    if (etd_worker_start(c->cx, &o.channel, SECONDS, l, &a) != ET_OK)
        return cli_fail_status(c, ETI_STAGE_OUTPUT, et_error_get(c->cx)->status);
    memcpy(text, a.text, sizeof text);
    et_visible(a.text, sizeof a.text, text, strlen(text));
    if (a.kind != ETD_APPLIED)
        return fail_there(c, worker, &a);
    int code = take_name(c, worker, a.text, to->run);
    if (code == CLI_OK && c->opt.detach)
        cli_say_far(c, worker, to->run);
    else if (code == CLI_OK)
        code = cli_front_far(c, worker, to);
    return code;
}

int
cli_train_on(struct cli *c, const char *path, const char *name, const char *where)
{
    char installed[PATH_MAX], worker[ETD_ADDRESS];
    struct etd_target to;
    int gpus;
    int code = check_options(c);
    if (code == CLI_OK)
        code = cli_progress_check(c);
    if (code == CLI_OK)
        code = read_worker(c, where, worker, &gpus);
    if (code == CLI_OK)
        code = find_worker(c, worker, &to);
    if (code != CLI_OK)
        return code;
    if (c->opt.module_mode && !cli_recipe_find(path, installed, sizeof installed))
        return cli_fail(c, CLI_E_NAME, "etude recipes lists them",
                        "no installed recipe is called '%s'", path);
    struct sent *s = calloc(1, sizeof *s);
    if (!s)
        return cli_fail(c, CLI_E_MEMORY, NULL, "no memory for a recipe");
    code = read_files(c, c->opt.module_mode ? installed : path, s);
    if (code == CLI_OK)
        code = collect_words(c, gpus, s);
    bool has_name = name && et_run_name_check(c->cx, name) == ET_OK;
    et_error_clear(c->cx);
    const struct etd_launch_there l = {
        .recipe = s->files.n ? s->files.file[0].text : NULL,
        .bytes = s->files.n ? s->files.file[0].size : 0,
        .file = s->file,
        .n_files = s->files.n - 1,
        .name = has_name ? name : NULL,
        .args = s->word,
        .n = s->n_words,
        .gpus = gpus,
    };
    if (code == CLI_OK)
        code = send_recipe(c, worker, &to, &l);
    eti_recipe_files_release(&s->files);
    free(s);
    return code;
}
