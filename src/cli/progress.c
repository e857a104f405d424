/* progress.c: how a run shows itself: --progress made into a logger. UX.md section 2.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

/* Without --progress: a bar on a terminal, plain lines elsewhere; with --json, JSON. */
static enum eti_show
choose(const struct cli *c)
{
    if (c->opt.progress != ETI_SHOW_AUTO)
        return (enum eti_show)c->opt.progress;
    if (c->opt.quiet)
        return ETI_SHOW_NONE;
    if (c->opt.json)
        return ETI_SHOW_JSON;
    if (c->config && c->config->set.progress != ETI_SHOW_AUTO)
        return (enum eti_show)c->config->set.progress;
    return isatty(STDIN_FILENO) && isatty(STDERR_FILENO) ? ETI_SHOW_BAR
                                                         : ETI_SHOW_PLAIN;
}

int
cli_progress_new(struct cli *c, struct et_callback **out)
{
    static const enum et_progress_kind kinds[] = {
        [ETI_SHOW_BAR] = ET_PROGRESS_BAR,
        [ETI_SHOW_PLAIN] = ET_PROGRESS_PLAIN,
        [ETI_SHOW_JSON] = ET_PROGRESS_JSON,
    };
    enum eti_show how = choose(c);
    struct et_progress p = {
        .every = ET_TIME_UNSET,
    };
    *out = NULL;
    if (how == ETI_SHOW_TUI)
        return cli_fail(c, CLI_E_LATER, NULL,
                        "--progress tui: this version has no monitor");
    if (c->opt.every &&
        (et_time_parse(NULL, c->opt.every, &p.every) != ET_OK || p.every.value <= 0 ||
         (p.every.unit != ET_TIME_SECOND && p.every.unit != ET_TIME_BATCH)))
        return cli_fail(
            c, CLI_E_VALUE, NULL,
            "--every: expected seconds or batches such as 10s or 50ba, got '%s'",
            c->opt.every);
    if (how == ETI_SHOW_NONE)
        return CLI_OK;
    p.kind = kinds[how];
    p.out = how == ETI_SHOW_JSON ? stdout : stderr;
    c->results_are_json = how == ETI_SHOW_JSON;
    et_status status = et_progress_new(c->cx, &p, out);
    c->progress = *out;
    return status == ET_OK ? CLI_OK : cli_fail_status(c, ETI_STAGE_RECIPE, status);
}
