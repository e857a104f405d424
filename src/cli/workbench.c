/* workbench.c: see workbench.h: the user's keys and colours, and a terminal or none. */
#include "config.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "cli/workbench.h"
#include "tui/compose.h"

extern char **environ;

/* What Compose needs of the program. ENV is borrowed by APP. */
static et_status
set_up_compose(struct cli *c, struct tui_app *app, const struct et_recipe_env *env)
{
    struct json_t *installed = cli_recipe_list();
    const struct tui_compose_setup setup = {
        .env = env,
        .installed = installed,
    };
    et_status status = tui_compose_setup(app, &setup);
    (void)c;
    json_decref(installed);
    return status;
}

static int
dump(struct cli *c, struct tui_app *app)
{
    const struct tui_dump what = {
        .keys = c->opt.keys,
        .at = c->opt.at,
    };
    et_status status = tui_dump_screen(app, &what, stdout);
    if (status == ET_EINVAL) {
        int code = cli_fail(c, CLI_E_VALUE, NULL, "%s", et_error_get(c->cx)->message);
        et_error_clear(c->cx);
        return code;
    }
    return status == ET_OK ? app->exit : cli_fail_status(c, ETI_STAGE_DATA, status);
}

static int
show(struct cli *c, struct tui_app *app, const struct tui_term_config *config)
{
    struct tui_term *term;
    et_status status = tui_term_open(c->cx, config, &term);
    if (status == ET_EINVAL)
        return cli_config_fail(c, status, config->errors);
    if (status != ET_OK)
        return cli_fail_status(c, ETI_STAGE_OUTPUT, status);
    int code = tui_run(app, term);
    tui_term_close(&term);
    return code;
}

/* Is there a terminal to show it on, or a size to print it in? */
static int
check_place(struct cli *c, int *rows, int *cols)
{
    if (c->opt.dump_screen && !tui_size_read(c->opt.dump_screen, rows, cols))
        return cli_fail(c, CLI_E_VALUE, NULL,
                        "--dump-screen: expected WxH such as 80x24, got '%s'",
                        c->opt.dump_screen);
    if (!c->opt.dump_screen && (c->opt.keys || c->opt.at > 0))
        return cli_fail(c, CLI_E_OPTION, NULL, "--keys and --at go with --dump-screen");
    if (!c->opt.dump_screen && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)))
        return cli_fail(c, CLI_E_OPERAND, "--dump-screen 80x24 prints the screen",
                        "%s needs a terminal", c->command ? c->command->name : "etude");
    return CLI_OK;
}

int
cli_workbench(struct cli *c, enum tui_where first,
              int (*begin)(struct cli *c, struct tui_app *app, void *data), void *data)
{
    char folder[PATH_MAX], keys[PATH_MAX + 16];
    struct et_diagnostics errors = {0};
    struct tui_app *app;
    int wanted = c->config ? c->config->set.ui.plot : ETI_PLOT_AUTO;
    const struct et_recipe_env env = {
        .variables = (const char *const *)environ,
        .allowed = c->config ? (const char *const *)c->config->set.env.v : NULL,
        .load_plugins = cli_load_plugins,
        .data = c,
    };
    struct tui_app_config config = {
        .cx = c->cx,
        .glyphs = tui_glyphs_of(tui_plot_choose(c->opt.ascii, (enum eti_plot)wanted)),
        .is_readonly = c->opt.readonly,
        .is_dump = c->opt.dump_screen != NULL,
        .first = first,
        .rows = 24,
        .cols = 80,
    };
    const struct tui_term_config term = {
        .in = stdin,
        .out = stdout,
        .color = c->opt.color,
        .mouse = !c->opt.no_mouse,
        .errors = &errors,
    };
    int code = check_place(c, &config.rows, &config.cols);
    if (code != CLI_OK)
        return code;
    snprintf(keys, sizeof keys, "%s/keys.yaml", cli_user_folder(folder, sizeof folder));
    tui_keys_default(&config.keys);
    et_status status = tui_keys_read(c->cx, &config.keys, keys, &errors);
    if (status != ET_OK)
        return cli_config_fail(c, status, &errors);
    et_ctx_set_log(c->cx, ET_LOG_ERROR, NULL, NULL); /* a line would spoil the screen */
    status = tui_app_new(&config, &app);
    if (status == ET_OK)
        status = set_up_compose(c, app, &env);
    if (status == ET_OK)
        code = begin ? begin(c, app, data) : CLI_OK;
    else
        code = cli_fail_status(c, ETI_STAGE_OUTPUT, status);
    if (code == CLI_OK)
        code = c->opt.dump_screen ? dump(c, app) : show(c, app, &term);
    tui_app_free(&app);
    return code;
}
