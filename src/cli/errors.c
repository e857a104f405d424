/* SPDX-License-Identifier: Apache-2.0 */
/* errors.c: how errors and messages are printed: RELIABILITY.md section 8. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/color.h"
#include "core/base/seams.h"
#include "core/loggers/loggers.h"

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
    case ET_E_PLUGIN_MISSING:
        return CLI_MISSING;
    case ET_E_PLUGIN_DENIED:
        return CLI_DENIED;
    case ET_E_PLUGIN_ABI:
        return CLI_ABI;
    case ET_E_UNAVAILABLE:
    case ET_E_SYSTEM_LIMIT:
        return CLI_UNAVAILABLE;
    case ET_E_CHECKPOINT_FORMAT:
        return CLI_ABI;
    default:
        return CLI_WRONG;
    }
}

/* What to try where nobody who knew more has said it. */
static const struct {
    int code;
    int stage; /* enum eti_stage; -1 = any */
    const char *hint;
} hints[] = {
    {CLI_E_MEMORY, ETI_STAGE_RUN,
     "a smaller train_data.batch_size, or grad_accum=auto"},
    {CLI_E_WRITE, -1, "df and ls -ld show whether there is room, and whose it is"},
    {CLI_E_DEVICE, -1, "ETUDE_DEVICE=ref computes slowly, without libraries"},
    {ET_E_CHECKPOINT, -1, "etude rerun trains the same recipe from the start"},
    {ET_E_NO_CHECKPOINT, -1, "etude rerun trains the same recipe from the start"},
};

static const char *
hint_for(int code, enum eti_stage stage)
{
    for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++)
        if (hints[i].code == code &&
            (hints[i].stage < 0 || hints[i].stage == (int)stage))
            return hints[i].hint;
    return NULL;
}

static void
put(struct cli *c, const struct et_diagnostic *d, FILE *out)
{
    char text[ET_DIAGNOSTIC_JSON_BYTES];
    bool is_error = out == stderr;
    out = is_error ? c->err : c->out;
    et_diagnostic_text(d, text, sizeof text); /* made visible as it was added */
    if (c->opt.json) {
        char json[ET_DIAGNOSTIC_JSON_BYTES];
        /* raw: see above */
        fprintf(out, "%s\n", et_diagnostic_json(d, json, sizeof json));
    } else if (is_error && (c->rank ? c->has_color : cli_has_color(c, STDERR_FILENO))) {
        /* raw: see above */
        fprintf(out, "etude: \033[1;31merror\033[0m%s\n", text + strlen("error"));
    } else {
        fprintf(out, "etude: %s\n", text); /* raw: see above */
    }
    if (c->log)
        fprintf(c->log, "etude: %s\n", text); /* raw: see above */
    text[strcspn(text, "\n")] = '\0';         /* the hint is for who reads it now */
    if (c->run &&
        d->code == CLI_E_SIGNALLED) /* somebody wanted it: nothing went wrong */
        et_run_note(c->run, ET_LOG_WARN, text + strlen("error "));
    else if (c->run)
        et_run_note(c->run, ET_LOG_ERROR, text);
}

static void
print(struct cli *c, const struct et_diagnostic *d, FILE *out)
{
    char text[ET_DIAGNOSTIC_JSON_BYTES];
    sigset_t before;
    et_diagnostic_text(d, text, sizeof text);
    if (!cli_together_claim(c, text, &before))
        return;
    put(c, d, out);
    cli_together_said(c, &before);
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
    {ET_ENOENT, ETI_STAGE_DEVICE, CLI_E_DEVICE},
    {ET_EDEVICE, ETI_STAGE_RUN, CLI_E_LOST},
    {ET_EDEVICE, -1, CLI_E_DEVICE},
    {ET_ENOENT, ETI_STAGE_OUTPUT, CLI_E_NAME},
    {ET_ECANCELED, ETI_STAGE_OUTPUT, CLI_E_BUSY},
    {ET_EFORMAT, ETI_STAGE_OUTPUT, CLI_E_BAD_DATA},
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

static enum cli_error
error_of(enum eti_stage stage, et_status status)
{
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (meanings[i].status == status &&
            (meanings[i].stage < 0 || meanings[i].stage == (int)stage))
            return meanings[i].code;
    return CLI_E_RUN;
}

/* The error that stands may say more than its status. */
static enum cli_error
standing_error(const struct cli *c, enum eti_stage stage, et_status status)
{
    const struct et_error *e = et_error_get(c->cx);
    return e->code ? (enum cli_error)e->code : error_of(stage, status);
}

int
cli_exit_of_status(const struct cli *c, enum eti_stage stage, et_status status)
{
    return exit_of((int)standing_error(c, stage, status));
}

int
cli_fail_status_at(struct cli *c, enum eti_stage stage, et_status status,
                   const struct et_place *place, const char *key)
{
    struct et_diagnostics list = {0};
    const struct et_error *e = et_error_get(c->cx);
    enum cli_error code = standing_error(c, stage, status);
    const char *message = e->message[0] ? e->message : et_status_name(status);
    const char *hint = e->hint[0] ? e->hint : hint_for((int)code, stage);
    char way[160];
    if (c->opt.module_mode && c->n_args > 0 && code == CLI_E_NO_DATA) {
        snprintf(way, sizeof way, "etude recipes %s says where its data come from",
                 c->arg[0]);
        hint = way;
    }
    et_diagnostics_add(&list, (int)code, place, key, hint, "%s", message);
    print(c, &list.v[0], stderr);
    if (e->file)
        et_report(c->cx, ET_LOG_DEBUG, "said at %s:%d", e->file, e->line);
    et_error_clear(c->cx);
    return exit_of((int)code);
}

int
cli_fail_status(struct cli *c, enum eti_stage stage, et_status status)
{
    return cli_fail_status_at(c, stage, status, NULL, NULL);
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
        fprintf(out == stderr ? c->err : c->out, "etude: %d more errors\n",
                list->total - list->n);
    return exit;
}

enum et_log_level
cli_screen_level(const struct cli *c)
{
    if (c->rank && etd_rank_level(c->rank) >= 0)
        return (enum et_log_level)etd_rank_level(c->rank);
    if (c->opt.log_level >= 0)
        return (enum et_log_level)c->opt.log_level;
    if (c->opt.quiet)
        return ET_LOG_ERROR;
    return c->opt.verbose > 1 ? ET_LOG_DEBUG
           : c->opt.verbose   ? ET_LOG_INFO
                              : ET_LOG_WARN;
}

/* As progress_json.c has it, but no result. */
static void
print_json(const struct cli *c, enum et_log_level level, const char *text)
{
    et_print(stderr,
             "{\"t\":%.3f,\"level\":\"%s\",\"ev\":\"log\",\"text\":", eti_wall(c->cx),
             et_log_level_name(level));
    eti_json_string(stderr, text);
    fputs("}\n", stderr);
}

/* To the loggers of the run, which know what level they want. */
static void
tell_loggers(struct cli *c, enum et_log_level level, const char *text)
{
    for (int i = 0; c->callback && i < c->n_callbacks; i++)
        if (c->callback[i]->type->text)
            c->callback[i]->type->text(c->callback[i], level, text);
}

void
cli_show_line(struct cli *c, enum et_log_level level, const char *text)
{
    if (c->rank)
        etd_rank_line(c->rank, level, text);
    else if (c->progress)
        c->progress->type->text(c->progress, level, text);
    else if (c->opt.json)
        print_json(c, level, text);
    else
        et_print(stderr, "etude: %s: %s\n", et_log_level_name(level), text);
}

void
cli_log(void *data, enum et_log_level level, const char *text)
{
    struct cli *c = data;
    char visible[ET_VISIBLE_MAX + 1];
    bool shown = level >= cli_screen_level(c);
    et_visible(visible, sizeof visible, text, strlen(text));
    sigset_t before;
    if (shown && cli_together_claim(c, visible, &before)) {
        cli_show_line(c, level, visible);
        cli_together_said(c, &before);
    }
    tell_loggers(c, level, visible);
    if (c->log)
        et_print(c->log, "etude: %s: %s\n", et_log_level_name(level), visible);
    if (c->run && (shown || level >= ET_LOG_INFO))
        et_run_log(c->run, level, visible);
}
