/* SPDX-License-Identifier: Apache-2.0 */
/* progress.c: how a run shows itself: --progress made into a logger. UX.md section
 * 2. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"

static bool
has_room(void)
{
    struct winsize w;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_row >= 24 &&
           w.ws_col >= 80;
}

/* Without --progress: the monitor on a terminal that has room for it, a bar on another,
 * plain lines elsewhere; with --json, JSON. */
static enum eti_show
choose(const struct cli *c)
{
    enum eti_show set =
        c->config ? (enum eti_show)c->config->set.progress : ETI_SHOW_AUTO;
    if (c->opt.progress != ETI_SHOW_AUTO)
        return (enum eti_show)c->opt.progress;
    if (c->opt.quiet)
        return ETI_SHOW_NONE;
    if (c->opt.json)
        return ETI_SHOW_JSON;
    if (set != ETI_SHOW_AUTO && (set != ETI_SHOW_TUI || cli_has_screen()))
        return set;
    if (cli_has_screen() && isatty(STDERR_FILENO) && has_room())
        return ETI_SHOW_TUI;
    return isatty(STDIN_FILENO) && isatty(STDERR_FILENO) ? ETI_SHOW_BAR
                                                         : ETI_SHOW_PLAIN;
}

static const enum et_progress_kind kinds[] = {
    [ETI_SHOW_BAR] = ET_PROGRESS_BAR,
    [ETI_SHOW_PLAIN] = ET_PROGRESS_PLAIN,
    [ETI_SHOW_JSON] = ET_PROGRESS_JSON,
};

bool
cli_progress_is_tui(const struct cli *c)
{
    return choose(c) == ETI_SHOW_TUI;
}

int
cli_progress_check(struct cli *c)
{
    struct et_time every;
    enum eti_show how = choose(c);
    if (how == ETI_SHOW_TUI && !cli_has_screen())
        return cli_fail(c, CLI_E_DEVICE, "--progress plain does without",
                        "--progress tui needs a terminal that can place its cursor");
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
