/* SPDX-License-Identifier: Apache-2.0 */
/* generate.c: `etude generate`: what a run's language model writes. */
#include "config.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "core/trainer/generate.h"
#include "etude/predict.h"

static int
put_text(struct cli *c, const char *prompt, const char *text)
{
    if (c->opt.json)
        return cli_print_json(json_pack("{s:s%, s:s%}", "prompt", prompt,
                                        strlen(prompt), "text", text, strlen(text)));
    et_print(stdout, "%s\n", text);
    return CLI_OK;
}

static et_status
write_text(struct cli *c, const char *directory, const struct eti_generate *how,
           char *text, int64_t n)
{
    struct et_predictor *p = NULL;
    struct eti_generator *g = NULL;
    struct et_device *dev = NULL; /* NULL: as the recipe says */
    const char *device = getenv("ETUDE_DEVICE");
    const struct et_recipe_env env = {.load_plugins = cli_load_plugins, .data = c};
    et_status status =
        device && *device ? et_device_open(c->cx, device, 0, 0, &dev) : ET_OK;
    if (status == ET_OK)
        status = et_checkpoint_load_model(c->cx, directory, dev, &env, &p);
    if (status == ET_OK)
        status = eti_generator_new(c->cx, et_predictor_device(p), et_predictor_model(p),
                                   et_predictor_seq_len(p), &g);
    if (status == ET_OK)
        status = eti_generator_bytes(g, how, text, n);
    eti_generator_free(&g);
    et_predictor_free(&p);
    et_device_close(&dev);
    return status;
}

/* Reads a number from TEXT, or takes UNSET where TEXT is NULL. False: not a number. */
static bool
number_of(const char *text, double unset, double most, double *out)
{
    char *end;
    *out = text ? strtod(text, &end) : unset;
    return !text || (end > text && !*end && *out >= 0 && *out <= most);
}

int
cli_generate(struct cli *c)
{
    enum { MOST = 1 << 20 };
    struct eti_origin_run from;
    double length, temperature, top_k, seed;
    char place[ETI_RUN_PATH + 64];
    void *block;
    if (c->n_args != 2 || !*c->arg[1])
        return cli_fail(c, CLI_E_OPERAND, NULL,
                        "generate needs a run and a prompt: etude generate RUN PROMPT");
    if (!number_of(c->opt.length, 200, MOST, &length) ||
        !number_of(c->opt.temperature, 0.8, 100, &temperature) ||
        !number_of(c->opt.top_k, 0, 1e9, &top_k) ||
        !number_of(c->opt.seed, 17, 4294967295.0, &seed))
        return cli_fail(
            c, CLI_E_VALUE, NULL,
            "--length, --temperature, --top-k and --seed are numbers from 0 "
            "on");
    int code = cli_find_origin(c, c->arg[0], &from);
    if (code != CLI_OK)
        return code;
    snprintf(place, sizeof place, "%s%s%s", from.directory, *from.name ? "/" : "",
             from.name);
    const size_t n = strlen(c->arg[1]);
    const struct eti_generate how = {.length = (int64_t)length,
                                     .temperature = temperature,
                                     .top_k = (int64_t)top_k,
                                     .seed = (uint32_t)seed};
    et_status status = et_alloc(c->cx, n + (size_t)length + 1, &block);
    if (status != ET_OK)
        return cli_fail_status(c, ETI_STAGE_RUN, status);
    char *text = memcpy(block, c->arg[1], n);
    status = write_text(c, place, &how, text, (int64_t)n);
    code = status == ET_OK ? put_text(c, c->arg[1], text)
                           : cli_fail_status(c, ETI_STAGE_RUN, status);
    et_free(c->cx, block);
    return code;
}
