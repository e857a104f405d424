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

static const enum et_progress_kind kinds[] = {
    [ETI_SHOW_BAR] = ET_PROGRESS_BAR,
    [ETI_SHOW_PLAIN] = ET_PROGRESS_PLAIN,
    [ETI_SHOW_JSON] = ET_PROGRESS_JSON,
};

int
cli_progress_check(struct cli *c)
{
    struct et_time every;
    enum eti_show how = choose(c);
    if (how == ETI_SHOW_TUI)
        return cli_fail(c, CLI_E_LATER, NULL,
                        "--progress tui: this version has no monitor");
    if (c->opt.every &&
        (et_time_parse(NULL, c->opt.every, &every) != ET_OK || every.value <= 0 ||
         (every.unit != ET_TIME_SECOND && every.unit != ET_TIME_BATCH)))
        return cli_fail(
            c, CLI_E_VALUE, NULL,
            "--every: expected seconds or batches such as 10s or 50ba, got '%s'",
            c->opt.every);
    c->results_are_json = how == ETI_SHOW_JSON;
    return CLI_OK;
}

int
cli_progress_new(struct cli *c, struct et_callback **out)
{
    enum eti_show how = choose(c);
    struct et_progress p = {
        .every = ET_TIME_UNSET,
    };
    *out = NULL;
    int code = cli_progress_check(c);
    if (code != CLI_OK || how == ETI_SHOW_NONE)
        return code;
    if (c->opt.every && et_time_parse(NULL, c->opt.every, &p.every) != ET_OK)
        p.every = ET_TIME_UNSET; /* it has been looked at */
    p.kind = kinds[how];
    p.out = how == ETI_SHOW_JSON ? stdout : stderr;
    et_status status = et_progress_new(c->cx, &p, out);
    c->progress = *out;
    return status == ET_OK ? CLI_OK : cli_fail_status(c, ETI_STAGE_RECIPE, status);
}
