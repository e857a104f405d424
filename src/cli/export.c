/* SPDX-License-Identifier: Apache-2.0 */
/* export.c: `etude export`: what a run recorded, for other programs. */
#include "config.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/journal/export.h"

typedef et_status export_fn(struct et_ctx *cx, const struct eti_export *x, FILE *out);

/* In the order of --to's choices. METRICS: what is taken where nobody says. */
static const struct {
    export_fn *run; /* NULL: tensorboard, which writes to a folder */
    const char *metrics;
} formats[] = {
    {NULL, NULL},
    {eti_export_jsonl, NULL},
    {eti_export_csv, NULL},
    {eti_export_svg, "^(loss/train/total|metrics/.*)$"},
};

/* The file at PATH, or standard output. */
static int
write_file(struct cli *c, const struct eti_export *x, const char *path)
{
    export_fn *run = formats[c->opt.to].run;
    struct stat st;
    FILE *f = path ? fopen(path, "we") : stdout;
    if (!f)
        return cli_fail(c, CLI_E_WRITE, NULL, "cannot write %s: %s", path,
                        strerror(errno));
    et_status status = run(c->cx, x, f);
    bool is_file = path && fstat(fileno(f), &st) == 0 && S_ISREG(st.st_mode);
    if (path && fclose(f) != 0 && status == ET_OK)
        status = ET_FAIL(c->cx, ET_EIO, "cannot write %s: %s", path, strerror(errno));
    if (status == ET_OK)
        return CLI_OK;
    if (is_file)
        unlink(path); /* it is not whole */
    return cli_fail_status(c, status == ET_EIO ? ETI_STAGE_OUTPUT : ETI_STAGE_DATA,
                           status);
}

/* The folder at PATH, or tb/ of the run. */
static int
write_folder(struct cli *c, const struct eti_export *x, const char *directory,
             const char *path)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s/tb", directory);
    if (!path)
        path = folder;
    et_status status = eti_export_tensorboard(c->cx, x, path);
    if (status != ET_OK)
        return cli_fail_status(
            c, status == ET_EFORMAT ? ETI_STAGE_DATA : ETI_STAGE_OUTPUT, status);
    if (c->opt.json)
        return cli_print_json(json_pack("{s:o}", "path", cli_json_text(path)));
    if (!c->opt.quiet)
        et_print(stdout, "%s\n", path);
    return CLI_OK;
}

/* The run of those FACTS, the names that match METRICS. */
static int export(struct cli *c, const json_t *facts, const regex_t *metrics)
{
    const char *directory = json_string_value(json_object_get(facts, "directory"));
    const char *name = json_string_value(json_object_get(facts, "name"));
    char events[PATH_MAX];
    snprintf(events, sizeof events, "%s/events.log", directory);
    const struct eti_export x = {
        .events = events,
        .title = name ? name : directory,
        .metrics = metrics,
    };
    return formats[c->opt.to].run ? write_file(c, &x, c->opt.output)
                                  : write_folder(c, &x, directory, c->opt.output);
}

int
cli_export(struct cli *c)
{
    regex_t metrics;
    int code;
    if (c->n_args != 1)
        return cli_fail(c, CLI_E_OPERAND, "etude runs lists them",
                        "export takes one run");
    if (c->opt.to < 0)
        return cli_fail(c, CLI_E_VALUE, NULL,
                        "export needs --to tensorboard, jsonl, csv, svg or onnx");
    if (c->opt.to == sizeof formats / sizeof *formats)
        return cli_export_onnx(c);
    const char *wanted = c->opt.metrics ? c->opt.metrics : formats[c->opt.to].metrics;
    if (wanted && regcomp(&metrics, wanted, REG_EXTENDED | REG_ICASE | REG_NOSUB) != 0)
        return cli_fail(c, CLI_E_VALUE, NULL,
                        "--metrics: '%s' is not a regular expression", wanted);
    json_t *facts = cli_run_find(c, c->arg[0], &code);
    if (facts)
        code = export(c, facts, wanted ? &metrics : NULL);
    json_decref(facts);
    if (wanted)
        regfree(&metrics);
    return code;
}
