/* SPDX-License-Identifier: Apache-2.0 */
/* model_of.c: the model of a run with its weights, for the commands that write it in
 * the forms of others. */
#include "config.h"

#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/assemble/assemble.h"
#include "core/models/hub_config.h"
#include "core/onnx/onnx.h"
#include "etude/predict.h"
#include "etude/tokenizer.h"

struct opened {
    struct et_device *dev; /* the processor: it is everywhere */
    struct et_predictor *predictor;
};

static int
open_at(struct cli *c, const char *path, struct opened *out)
{
    const struct et_recipe_env env = {.load_plugins = cli_load_plugins, .data = c};
    et_status status = et_device_open(c->cx, eti_assemble_cpu, 0, 0, &out->dev);
    if (status != ET_OK)
        return cli_fail_status(c, ETI_STAGE_DEVICE, status);
    status = et_checkpoint_load_model(c->cx, path, out->dev, &env, &out->predictor);
    return status == ET_OK ? CLI_OK : cli_fail_status(c, ETI_STAGE_DATA, status);
}

/* TEXT is the folder of a run or of a checkpoint, or the name of a run. */
static int
open_model(struct cli *c, const char *text, struct opened *out)
{
    int code = CLI_OK;
    *out = (struct opened){0};
    if (access(text, F_OK) == 0 || strpbrk(text, "/."))
        return open_at(c, text, out);
    json_t *facts = cli_run_find(c, text, &code);
    const char *directory = json_string_value(json_object_get(facts, "directory"));
    if (directory)
        code = open_at(c, directory, out);
    json_decref(facts);
    return code;
}

static void
close_model(struct opened *m)
{
    et_predictor_free(&m->predictor);
    et_device_close(&m->dev);
}

/* How to end after writing PATH came to STATUS. */
static int
conclude(struct cli *c, et_status status)
{
    if (status == ET_OK)
        return CLI_OK;
    return cli_fail_status(c, status == ET_ENOTSUP ? ETI_STAGE_PARTS : ETI_STAGE_OUTPUT,
                           status);
}

/* ---- weights export ---- */

/* The ids of tokens, by the tokenizer of the run's data. */
static et_status
add_tokens(struct cli *c, struct et_predictor *p)
{
    struct et_tokenizer *t = NULL;
    if (et_predictor_seq_len(p) == 0)
        return ET_OK;
    if (eti_predictor_tokenizer(p, NULL, &t) != ET_OK) {
        et_report(c->cx, ET_LOG_WARN, "no token begins or ends texts in %s: %s",
                  c->opt.output, et_error_get(c->cx)->message);
        et_error_clear(c->cx);
    }
    et_status status =
        eti_hub_add_tokens(c->cx, et_predictor_model(p), t, c->opt.output);
    et_tokenizer_free(&t);
    return status;
}

static et_status
write_model(struct cli *c, struct et_predictor *p, const char *form)
{
    ET_TRY(et_model_export(c->cx, et_predictor_model(p), form, 0, c->opt.output));
    return strcmp(form, "hf") == 0 ? add_tokens(c, p) : ET_OK;
}

int
cli_weights_export(struct cli *c)
{
    struct opened m;
    if (!c->opt.output)
        return cli_fail(c, CLI_E_OPERAND, NULL, "weights export needs -o PATH");
    if (c->opt.form < 0)
        return cli_fail(c, CLI_E_VALUE, NULL,
                        "weights export needs --as hf, torchvision, timm or etude");
    int code = open_model(c, c->arg[1], &m);
    const char *form = et_model_forms[c->opt.form];
    if (code == CLI_OK)
        code = conclude(c, write_model(c, m.predictor, form));
    if (code == CLI_OK && c->opt.json)
        code = cli_print_json(
            json_pack("{s:o, s:s, s:s}", "path", cli_json_text(c->opt.output), "as",
                      form, "model", et_predictor_model(m.predictor)->type->info.name));
    else if (code == CLI_OK && !c->opt.quiet)
        et_print(stdout, "%s: %s as %s\n", c->opt.output,
                 et_predictor_model(m.predictor)->type->info.name, form);
    close_model(&m);
    return code;
}

/* ---- export --to onnx ---- */

static int
print_onnx(struct cli *c, const struct eti_onnx_info *info)
{
    char bytes[32];
    if (c->opt.json)
        return cli_print_json(json_pack(
            "{s:o, s:i, s:i, s:i, s:I, s:I}", "path", cli_json_text(c->opt.output),
            "opset", ETI_ONNX_OPSET, "nodes", info->nodes, "tensors", info->tensors,
            "bytes", (json_int_t)info->bytes, "data_bytes", (json_int_t)info->beside));
    if (!c->opt.quiet && info->beside > 0)
        et_print(stdout, "%s: %d operations; %s.data: %d weights, %s\n", c->opt.output,
                 info->nodes, c->opt.output, info->tensors,
                 cli_bytes((double)info->beside, bytes, sizeof bytes));
    else if (!c->opt.quiet)
        et_print(stdout, "%s: %d operations, %d weights, %s\n", c->opt.output,
                 info->nodes, info->tensors,
                 cli_bytes((double)info->bytes, bytes, sizeof bytes));
    return CLI_OK;
}

int
cli_export_onnx(struct cli *c)
{
    struct opened m;
    struct eti_onnx_info info = {0};
    if (!c->opt.output)
        return cli_fail(c, CLI_E_OPERAND, NULL, "export --to onnx needs -o FILE");
    if (c->opt.metrics)
        return cli_fail(c, CLI_E_OPTION, NULL, "--metrics does not apply to onnx");
    int code = open_model(c, c->arg[0], &m);
    if (code == CLI_OK)
        code = conclude(c, eti_onnx_export(c->cx, et_predictor_model(m.predictor),
                                           et_predictor_device(m.predictor),
                                           c->opt.output, &info));
    if (code == CLI_OK)
        code = print_onnx(c, &info);
    close_model(&m);
    return code;
}
