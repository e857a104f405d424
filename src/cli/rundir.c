/* SPDX-License-Identifier: Apache-2.0 */
/* rundir.c: the run directory of `etude train`: from its first file to the report, and
 * what people are told who have to find out why a run did not end well. */
#include "config.h"

#include <limits.h>
#include <string.h>

#include "cli/cli.h"
#include "core/base/folders.h"
#include "core/trainer/state.h"

enum { TAIL_LINES = 20, TAIL_BYTES = 16 << 10 };

int
cli_run_begin(struct cli *c, const struct cli_run *run)
{
    struct et_device_info info;
    size_t size;
    const char *bytes = et_recipe_bytes(run->recipe, &size);
    et_device_get_info(run->dev, &info);
    const struct et_run_config config = {
        .directory = run->resumed ? run->resumed : c->opt.run_directory,
        .resume = run->resumed != NULL,
        .name = run->recipe->run_name,
        .recipe = bytes,
        .recipe_bytes = size,
        .recipe_name = run->recipe_name,
        .resolved = run->resolved,
        .command = (const char *const *)c->argv,
        .n_command = c->argc,
        .threads = info.threads,
        .record_interval = run->recipe->record_interval,
    };
    const struct etd_rank_open open = {
        .resumed = run->resumed,
        .resolved = run->resolved,
        .name = run->recipe->run_name,
        .threads = info.threads,
    };
    et_status status = c->rank ? etd_rank_open(c->cx, c->rank, &open, &c->run)
                               : et_run_open(c->cx, &config, &c->run);
    if (status != ET_OK)
        return cli_fail_status(c, ETI_STAGE_OUTPUT, status);
    const struct et_run_notice notice = {
        .name = et_run_name(c->run),
        .directory = et_run_directory(c->run),
        .state = "starting",
    };
    if (!c->rank) /* or else the front does */
        cli_run_remember(c, et_run_directory(c->run));
    if (c->progress)
        et_progress_notice(c->progress, &notice);
    et_report(c->cx, ET_LOG_INFO, "etude %s, run %s, %s, %d threads", PACKAGE_VERSION,
              et_run_name(c->run), info.name, info.threads);
    return CLI_OK;
}

/* ---- the end ---- */

/* The last lines of the file at PATH; LESS: but for the very last. */
static void
print_tail(FILE *to, const char *path, bool less)
{
    char text[TAIL_BYTES + 1];
    FILE *f = eti_open_regular(path);
    if (!f)
        return;
    if (fseek(f, -TAIL_BYTES, SEEK_END) != 0)
        rewind(f);
    size_t n = fread(text, 1, TAIL_BYTES, f);
    fclose(f);
    text[n] = '\0';
    char *from = text + n, *end = less ? NULL : text + n;
    for (int newlines = 0; from > text; from--) {
        if (from[-1] != '\n')
            continue;
        if (++newlines == 2 && less)
            end = from;
        if (newlines == TAIL_LINES + 1 + less)
            break;
    }
    for (char *line = from; end && line < end; line += strcspn(line, "\n") + 1)
        et_print(to, "    %.*s\n", (int)strcspn(line, "\n"), line);
}

/* UX.md: which rank, its last lines, where the rest is. */
void
cli_explain_end(FILE *to, const char *directory, int rank, bool less)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/logs/rank%d.txt", directory, rank);
    fprintf(to, "  rank %d, its last lines:\n", rank);
    print_tail(to, path, less);
    et_print(to, "  its log: %s\n", path);
}

void
cli_run_notice(struct cli *c, const struct cli_end *end)
{
    const struct et_run_notice notice = {
        .name = et_run_name(c->run),
        .directory = et_run_directory(c->run),
        .state = end->state,
        .at_end = end->s,
        .exit_code = end->exit,
    };
    if (c->progress && end->s)
        et_progress_notice(c->progress, &notice);
    c->progress = NULL;
}

void
cli_run_end(struct cli *c, const struct cli_end *end)
{
    const struct et_state *s = end->s;
    struct et_run_report report;
    if (s)
        report = (struct et_run_report){
            .ts = s->timestamp,
            .reason = s->stop_reason,
            .metrics = s->eval_metrics,
            .n_metrics = s->n_eval_metrics,
            .microbatches = s->grad_accum,
        };
    /* The error itself, printed just before, is the last line of the log. */
    if (end->exit != CLI_OK && !c->opt.json)
        cli_explain_end(c->err, et_run_directory(c->run),
                        c->rank ? etd_rank_number(c->rank) : 0, true);
    et_report(c->cx, ET_LOG_INFO, "%s, exit %d", end->state, end->exit);
    et_status status = et_run_finish(c->run, end->state, end->exit, s ? &report : NULL);
    if (status != ET_OK)
        (void)cli_fail_status(c, ETI_STAGE_OUTPUT, status);
    struct etd_end last = {.exit = end->exit, .began = s != NULL};
    snprintf(last.state, sizeof last.state, "%s", end->state);
    if (c->rank)
        etd_rank_end(c->rank, &last);
}
