/* errors.c: how errors and messages are printed: RELIABILITY.md section 8. */
#include "config.h"

#include <string.h>

#include "cli/cli.h"

static const struct {
    int code, exit;
} exits[] = {
#define EXIT_ROW(number, code, exit, what) {number, exit},
    CLI_ERROR_MAP(EXIT_ROW)
#undef EXIT_ROW
};

static int
exit_of(int code)
{
    for (size_t i = 0; i < sizeof exits / sizeof exits[0]; i++)
        if (exits[i].code == code)
            return exits[i].exit;
    switch (code) {
    case ET_E_READ:
        return CLI_MISSING;
    case ET_E_UNAVAILABLE:
        return CLI_UNAVAILABLE;
    default:
        return CLI_WRONG;
    }
}

static void
print(struct cli *c, const struct et_diagnostic *d, FILE *out)
{
    char text[ET_DIAGNOSTIC_JSON_BYTES];
    if (c->opt.json) {
        fprintf(out, "%s\n", et_diagnostic_json(d, text, sizeof text));
        return;
    }
    et_diagnostic_text(d, text, sizeof text);
    if (c->color && out == stderr)
        fprintf(out, "etude: \033[1;31merror\033[0m%s\n", text + strlen("error"));
    else
        fprintf(out, "etude: %s\n", text);
    if (c->log)
        fprintf(c->log, "etude: %s\n", text);
}

int
cli_fail(struct cli *c, enum cli_error code, const char *hint, const char *fmt, ...)
{
    struct et_diagnostics list = {0};
    char message[2 * ET_VISIBLE_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof message, fmt, args);
    va_end(args);
    et_diagnostics_add(&list, code, NULL, NULL, hint, "%s", message);
    print(c, &list.v[0], stderr);
    return exit_of(code);
}

/* What a status means where it was met; the first row that fits. */
static const struct {
    et_status status;
    int stage; /* enum eti_stage; -1 = any */
    enum cli_error code;
} meanings[] = {
    {ET_ENOMEM, -1, CLI_E_MEMORY},
    {ET_EINTERNAL, -1, CLI_E_BUG},
    {ET_ENOENT, ETI_STAGE_DATA, CLI_E_NO_DATA},
    {ET_EIO, ETI_STAGE_DATA, CLI_E_NO_DATA},
    {ET_EFORMAT, ETI_STAGE_DATA, CLI_E_BAD_DATA},
    {ET_EINVAL, ETI_STAGE_DATA, CLI_E_BAD_DATA},
    {ET_ENOTSUP, ETI_STAGE_DEVICE, CLI_E_DEVICE},
    {ET_EDEVICE, -1, CLI_E_DEVICE},
    {ET_EIO, ETI_STAGE_OUTPUT, CLI_E_WRITE},
    {ET_EINVAL, ETI_STAGE_OUTPUT, CLI_E_WRITE},
    {ET_EFORMAT, ETI_STAGE_RUN, CLI_E_BAD_DATA},
    {ET_EIO, ETI_STAGE_RUN, CLI_E_BAD_DATA},
    {ET_EINVAL, -1, CLI_E_PARTS},
    {ET_ESHAPE, -1, CLI_E_PARTS},
    {ET_EDTYPE, -1, CLI_E_PARTS},
    {ET_ENOENT, -1, CLI_E_PARTS},
    {ET_EFORMAT, -1, CLI_E_PARTS},
    {ET_ENOTSUP, -1, CLI_E_LATER},
};

int
cli_fail_status(struct cli *c, enum eti_stage stage, et_status status)
{
    const struct et_error *e = et_error_get(c->cx);
    enum cli_error code = CLI_E_RUN;
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (meanings[i].status == status &&
            (meanings[i].stage < 0 || meanings[i].stage == (int)stage)) {
            code = meanings[i].code;
            break;
        }
    const char *message = e->message[0] ? e->message : et_status_name(status);
    int exit = cli_fail(c, code, e->hint, "%s", message);
    if (e->file)
        et_report(c->cx, ET_LOG_DEBUG, "said at %s:%d", e->file, e->line);
    et_error_clear(c->cx);
    return exit;
}

int
cli_fail_list(struct cli *c, const struct et_diagnostics *list, FILE *out)
{
    int exit = CLI_OK;
    for (int i = 0; i < list->n; i++) {
        print(c, &list->v[i], out);
        if (exit == CLI_OK || exit == CLI_UNAVAILABLE)
            exit = exit_of(list->v[i].code);
    }
    if (list->total > list->n && !c->opt.json)
        fprintf(out, "etude: %d more errors\n", list->total - list->n);
    return exit;
}

/* On the screen: warnings; more with -v, errors alone with -q. */
static enum et_log_level
screen_level(const struct cli *c)
{
    if (c->opt.log_level >= 0)
        return (enum et_log_level)c->opt.log_level;
    if (c->opt.quiet)
        return ET_LOG_ERROR;
    return c->opt.verbose > 1 ? ET_LOG_DEBUG
           : c->opt.verbose   ? ET_LOG_INFO
                              : ET_LOG_WARN;
}

void
cli_log(void *data, enum et_log_level level, const char *text)
{
    struct cli *c = data;
    char visible[ET_VISIBLE_MAX + 1];
    et_visible(visible, sizeof visible, text, strlen(text));
    if (level >= screen_level(c) && c->progress)
        c->progress->type->text(c->progress, level, visible);
    else if (level >= screen_level(c))
        fprintf(stderr, "etude: %s: %s\n", et_log_level_name(level), visible);
    if (c->log)
        fprintf(c->log, "etude: %s: %s\n", et_log_level_name(level), visible);
}
