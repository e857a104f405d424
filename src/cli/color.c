/* SPDX-License-Identifier: Apache-2.0 */
/* color.c: whether what is printed has colours, and which. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/color.h"
#include "tui/grid.h"

enum eti_color
cli_color(const struct cli *c)
{
    const char *no = getenv("NO_COLOR"), *force = getenv("CLICOLOR_FORCE");
    if (c->opt.color != ETI_COLOR_AUTO)
        return (enum eti_color)c->opt.color;
    if (no && *no)
        return ETI_COLOR_NEVER;
    if (force && *force && strcmp(force, "0") != 0)
        return ETI_COLOR_ALWAYS;
    return c->config ? (enum eti_color)c->config->set.color : ETI_COLOR_AUTO;
}

bool
cli_has_color(const struct cli *c, int fd)
{
    const char *term = getenv("TERM");
    enum eti_color when = cli_color(c);
    return when == ETI_COLOR_ALWAYS || (when == ETI_COLOR_AUTO && isatty(fd) &&
                                        (!term || strcmp(term, "dumb") != 0));
}

const char *
cli_sgr(enum tui_role role, char buf[CLI_SGR])
{
    static const struct {
        int attr;
        const char *code;
    } attrs[] = {{TUI_BOLD, ";1"},
                 {TUI_FAINT, ";2"},
                 {TUI_UNDERLINE, ";4"},
                 {TUI_REVERSE, ";7"}};
    struct tui_paint p = tui_theme_paint(NULL, TUI_DEPTH_8, role, TUI_ON_OWN);
    int n = snprintf(buf, CLI_SGR, "\033[0");
    for (size_t i = 0; i < sizeof attrs / sizeof *attrs; i++)
        if (p.attr & attrs[i].attr)
            n += snprintf(buf + n, CLI_SGR - (size_t)n, "%s", attrs[i].code);
    if (p.fg >= 0)
        n += snprintf(buf + n, CLI_SGR - (size_t)n, ";3%d", p.fg);
    snprintf(buf + n, CLI_SGR - (size_t)n, "m");
    return buf;
}
