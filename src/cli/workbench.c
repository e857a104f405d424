/* SPDX-License-Identifier: Apache-2.0 */
/* workbench.c: see workbench.h: the user's keys and colours, and a terminal or none. */
#include "config.h"

#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/color.h"
#include "cli/workbench.h"
#include "core/library/facts.h"
#include "tui/compose.h"
#include "tui/workers.h"

extern char **environ;

bool
cli_has_screen(void)
{
    const char *term = getenv("TERM");
    return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) &&
           !(term && strcmp(term, "dumb") == 0);
}

/* What screens need of the program. ENV is borrowed by APP. */
static et_status
set_up(struct tui_app *app, const struct et_recipe_env *env)
{
    struct json_t *installed = cli_recipe_list();
    const struct tui_compose_setup setup = {
        .env = env,
        .installed = installed,
        .is_installed = cli_recipe_is_installed,
    };
    char folder[PATH_MAX];
    et_status status = tui_compose_setup(app, &setup);
    json_decref(installed);
    if (status == ET_OK)
        status = tui_workers_setup(app, cli_user_folder(folder, sizeof folder));
    return status;
}

/* Where reports of crashes go, and what the mouse has moved: the folder of the user's
 * state; NULL: no such folder is known. */
static const char *
state_folder(char *buf, size_t size)
{
    const char *xdg = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (xdg && *xdg)
        snprintf(buf, size, "%s/etude", xdg);
    else if (home && *home)
        snprintf(buf, size, "%s/.local/state/etude", home);
    else
        return NULL;
    return buf;
}

static const char *
layout_file(char *buf, size_t size)
{
    char folder[PATH_MAX - 256];
    if (!state_folder(folder, sizeof folder))
        return NULL;
    snprintf(buf, size, "%s/layout", folder);
    return buf;
}

/* FILE in the folder of the user's configuration. */
static const char *
user_file(const char *file, char *buf, size_t size)
{
    char folder[PATH_MAX - 256];
    snprintf(buf, size, "%s/%s", cli_user_folder(folder, sizeof folder), file);
    return buf;
}

/* ---- as text ---- */

static int
dump(struct cli *c, struct tui_app *app, bool roles)
{
    const struct tui_dump what = {
        .keys = c->opt.keys,
        .at = c->opt.at,
        .roles = roles,
    };
    et_status status = tui_dump_screen(app, &what, stdout);
    if (status == ET_EINVAL) {
        int code = cli_fail(c, CLI_E_VALUE, NULL, "%s", et_error_get(c->cx)->message);
        et_error_clear(c->cx);
        return code;
    }
    return status == ET_OK ? app->exit : cli_fail_status(c, ETI_STAGE_DATA, status);
}

/* ---- on a terminal ---- */

/* Lines of the log would tear the screen: the newest is its message. */
static void
log_to_screen(void *data, enum et_log_level level, const char *text)
{
    bool warns = level == ET_LOG_WARN;
    if (level >= ET_LOG_WARN)
        tui_say(data, warns ? TUI_WARN : TUI_BAD, "%s%s", warns ? "! " : "x ", text);
}

/* What goes on without the screen. */
static void
say_goodbye(const struct tui_app *app)
{
    char fact[ETI_FACT_TEXT], visible[ETI_FACT_TEXT * 4];
    const struct tui_source *s = app->source;
    if (!s || s->link == TUI_LINK_ENDED || etd_model_has_ended(s->model))
        return;
    const char *name = eti_facts_get(s->facts, "name", fact);
    et_visible(visible, sizeof visible, name ? name : "-", name ? strlen(name) : 1);
    int ranks = s->model->n_ranks > 1 ? s->model->n_ranks : 1;
    et_print(stdout, "%s goes on (%d rank%s). etude attach %s\n", visible, ranks,
             ranks == 1 ? "" : "s", visible);
}

static int
show(struct cli *c, struct tui_app *app)
{
    char crash[PATH_MAX], terminfo[PATH_MAX];
    struct tui_term *term = NULL;
    struct et_diagnostics errors = {0};
    const struct eti_config_ui *ui = &c->config->set.ui;
    const struct tui_term_config config = {
        .in = stdin,
        .out = stdout,
        .color = cli_color(c),
        .mouse = ui->mouse && !c->opt.no_mouse,
        .theme = ui->theme,
        .themes = app->config.themes,
        .terminfo = cli_terminfo_folder(terminfo, sizeof terminfo),
        .crash = state_folder(crash, sizeof crash),
        .errors = &errors,
    };
    if (config.crash)
        mkdir(config.crash, 0700);
    et_status status = tui_term_open(c->cx, &config, &term);
    if (status != ET_OK && errors.total)
        return cli_config_fail(c, status, &errors);
    if (status != ET_OK)
        return cli_fail_status(c, ETI_STAGE_OUTPUT, status);
    et_ctx_set_log(c->cx, ET_LOG_WARN, log_to_screen, app);
    app->config.is_mono = !tui_term_has_colors(term);
    int code = tui_run(app, term);
    tui_term_close(&term);
    say_goodbye(app);
    return code;
}

/* Is there a terminal to show it on, or a size to print it in? */
static int
check_place(struct cli *c, int *rows, int *cols, bool *roles)
{
    if (c->opt.dump_screen && !tui_size_read(c->opt.dump_screen, rows, cols, roles))
        return cli_fail(c, CLI_E_VALUE, NULL,
                        "--dump-screen: expected WxH such as 80x24, got '%s'",
                        c->opt.dump_screen);
    if (!c->opt.dump_screen && (c->opt.keys || c->opt.at > 0))
        return cli_fail(c, CLI_E_OPTION, NULL, "--keys and --at go with --dump-screen");
    if (!c->opt.dump_screen && !cli_has_screen())
        return cli_fail(c, CLI_E_OPERAND, "--dump-screen 80x24 prints the screen",
                        "%s needs a terminal that can place its cursor",
                        c->command ? c->command->name : "etude");
    return CLI_OK;
}

int
cli_workbench(struct cli *c, enum tui_where first,
              int (*begin)(struct cli *c, struct tui_app *app, void *data), void *data)
{
    char keys[PATH_MAX], layout[PATH_MAX], themes[PATH_MAX];
    struct et_diagnostics errors = {0};
    struct tui_app *app;
    bool roles = false;
    enum eti_plot wanted = (enum eti_plot)c->config->set.ui.plot;
    const struct et_recipe_env env = {
        .variables = (const char *const *)environ,
        .allowed = (const char *const *)c->config->set.env.v,
        .load_plugins = cli_load_plugins,
        .data = c,
    };
    struct tui_app_config config = {
        .cx = c->cx,
        .glyphs = tui_glyphs_of(tui_plot_choose(c->opt.ascii, wanted)),
        .is_readonly = c->opt.readonly,
        .is_mono = cli_color(c) == ETI_COLOR_NEVER,
        .is_still = c->config->set.ui.motion == ETI_MOTION_OFF,
        .is_dump = c->opt.dump_screen != NULL,
        .is_past = c->opt.dump_screen != NULL && c->opt.at > 0,
        .price = &c->config->set.price,
        .layout = layout_file(layout, sizeof layout),
        .index = c->index,
        .settings = c->config,
        .themes = user_file("themes", themes, sizeof themes),
        .first = first,
        .rows = 24,
        .cols = 80,
    };
    int code = check_place(c, &config.rows, &config.cols, &roles);
    if (code != CLI_OK)
        return code;
    tui_keys_default(&config.keys);
    et_status status = tui_keys_read(
        c->cx, &config.keys, user_file("keys.yaml", keys, sizeof keys), &errors);
    if (status != ET_OK)
        return cli_config_fail(c, status, &errors);
    et_ctx_set_log(c->cx, ET_LOG_ERROR, NULL, NULL); /* a line would spoil the screen */
    status = tui_app_new(&config, &app);
    if (status == ET_OK)
        status = set_up(app, &env);
    if (status == ET_OK)
        code = begin ? begin(c, app, data) : CLI_OK;
    else
        code = cli_fail_status(c, ETI_STAGE_OUTPUT, status);
    if (code == CLI_OK)
        code = c->opt.dump_screen ? dump(c, app, roles) : show(c, app);
    et_ctx_set_log(c->cx, ET_LOG_DEBUG, cli_log, c);
    tui_app_free(&app);
    return code;
}
