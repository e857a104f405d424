/* SPDX-License-Identifier: Apache-2.0 */
/* generate.c: `etude generate`: what a run's language model writes. */
#include "config.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "core/assemble/assemble.h"
#include "core/base/memory.h"
#include "core/base/utf8.h"
#include "core/data/file.h"
#include "core/trainer/generate.h"
#include "etude/predict.h"

struct prompt {
    char *text;
    size_t n;
};

struct job {
    struct cli *c;
    struct eti_generate how;
    struct prompt *prompt;
    int64_t n, room;
    json_t *results;      /* --json */
    enum eti_stage stage; /* where it failed */
};

/* ---- prompts ---- */

static et_status
add_prompt(struct job *j, const char *text, size_t n)
{
    struct et_ctx *cx = j->c->cx;
    struct prompt p = {.n = n};
    ET_TRY(eti_grow(cx, &j->prompt, &j->room, j->n + 1, sizeof *j->prompt));
    ET_TRY(et_alloc(cx, n + 1, (void **)&p.text));
    memcpy(p.text, text, n);
    j->prompt[j->n++] = p;
    return ET_OK;
}

static et_status
add_json(struct job *j, const char *path, int64_t line, const char *text, size_t n)
{
    json_error_t error;
    json_t *json = json_loadb(text, n, 0, &error);
    const json_t *v = json_object_get(json, "prompt");
    et_status s;
    if (!json)
        s = ET_FAIL(j->c->cx, ET_EFORMAT, "%s:%lld:%d: %s", path, (long long)line,
                    error.column, error.text);
    else if (!json_is_string(v) || json_string_length(v) == 0)
        s = ET_FAIL(j->c->cx, ET_EFORMAT, "%s:%lld: no text called 'prompt'", path,
                    (long long)line);
    else
        s = add_prompt(j, json_string_value(v), json_string_length(v));
    json_decref(json);
    return s;
}

/* A prompt for each line that is not empty. */
static et_status
add_lines(struct job *j, const char *path, const char *text, size_t n)
{
    const bool is_json = strstr(path, ".jsonl") || strstr(path, ".ndjson");
    int64_t line = 0;
    for (size_t at = 0, length; at < n; at += length + 1) {
        const char *end = memchr(text + at, '\n', n - at);
        length = end ? (size_t)(end - (text + at)) : n - at;
        size_t kept = length && text[at + length - 1] == '\r' ? length - 1 : length;
        line++;
        if (kept > 0)
            ET_TRY(is_json ? add_json(j, path, line, text + at, kept)
                           : add_prompt(j, text + at, kept));
    }
    return j->n ? ET_OK
                : ET_FAIL(j->c->cx, ET_EFORMAT, "%s has no prompt: one a line", path);
}

static et_status
read_prompts(struct job *j)
{
    const struct cli *c = j->c;
    struct eti_bytes b;
    if (!c->opt.prompts)
        return add_prompt(j, c->arg[1], strlen(c->arg[1]));
    ET_TRY(eti_file_load(c->cx, c->opt.prompts, 1 << 30, &b));
    et_status s = add_lines(j, c->opt.prompts, (const char *)b.data, (size_t)b.n);
    et_free(c->cx, b.data);
    return s;
}

/* ---- texts ---- */

/* UTF-8 with its lines; what would move the terminal is shown as et_visible has it. */
static void
print_text(const char *text, size_t n)
{
    uint32_t u = 0;
    for (size_t i = 0, length; i < n; i += length) {
        length = (size_t)eti_utf8_decode(text + i, n - i, &u);
        length = length > 0 ? length : 1;
        if (text[i] == '\n' || text[i] == '\t' || !eti_is_hostile(u))
            fwrite(text + i, 1, length, stdout); /* raw: it moves nothing */
        else
            et_print(stdout, "%.*s", (int)length, text + i);
    }
    putchar('\n');
}

static et_status
put(struct job *j, const struct prompt *p, const struct eti_generated *made)
{
    const bool is_first = p == j->prompt;
    if (!j->c->opt.json) {
        if (!is_first)
            putchar('\n');
        print_text(made->text, made->n);
        return ET_OK;
    }
    json_t *prompt = json_stringn(p->text, p->n);
    json_t *one = json_pack("{s:o, s:s%, s:I, s:I, s:b}", "prompt",
                            prompt ? prompt : json_null(), "text", made->text, made->n,
                            "prompt_tokens", (json_int_t)made->prompt_tokens, "tokens",
                            (json_int_t)made->tokens, "ended", made->ended);
    if (one && json_array_append_new(j->results, one) == 0)
        return ET_OK;
    return ET_FAIL(j->c->cx, ET_ENOMEM, "no memory for the texts");
}

static et_status
write_texts(struct job *j, struct eti_generator *g, const struct et_tokenizer *t,
            struct et_encoder *e)
{
    for (int64_t i = 0; i < j->n; i++) {
        const struct prompt *p = &j->prompt[i];
        struct eti_generated made;
        et_status s = eti_generator_text(g, &j->how, t, e, p->text, p->n, &made);
        if (s == ET_OK)
            s = put(j, p, &made);
        et_free(j->c->cx, made.text);
        ET_TRY(s);
    }
    return ET_OK;
}

static et_status
write_with(struct job *j, struct et_predictor *p)
{
    struct cli *c = j->c;
    struct eti_generator *g = NULL;
    struct et_tokenizer *t = NULL;
    struct et_encoder *e = NULL;
    et_status s = eti_generator_new(c->cx, et_predictor_device(p),
                                    et_predictor_model(p), et_predictor_seq_len(p), &g);
    if (s == ET_OK) {
        j->stage = ETI_STAGE_DATA;
        s = eti_predictor_tokenizer(p, c->opt.tokenizer, &t);
    }
    if (s == ET_OK) {
        j->stage = ETI_STAGE_RUN;
        s = et_encoder_new(c->cx, t, &e);
    }
    if (s == ET_OK)
        s = write_texts(j, g, t, e);
    et_encoder_free(&e);
    et_tokenizer_free(&t);
    eti_generator_free(&g);
    return s;
}

static et_status
generate(struct job *j, const char *place)
{
    struct cli *c = j->c;
    struct et_predictor *p = NULL;
    struct et_device *dev = NULL; /* NULL: as the recipe says */
    const char *device = getenv("ETUDE_DEVICE");
    const struct et_recipe_env env = {.load_plugins = cli_load_plugins, .data = c};
    ET_TRY(read_prompts(j));
    j->stage = ETI_STAGE_RUN;
    et_status status =
        device && *device ? et_device_open(c->cx, device, 0, 0, &dev) : ET_OK;
    if (status == ET_OK)
        status = et_checkpoint_load_model(c->cx, place, dev, &env, &p);
    if (status == ET_OK)
        status = write_with(j, p);
    et_predictor_free(&p);
    et_device_close(&dev);
    return status;
}

/* ---- the command ---- */

/* Reads a number from TEXT, or takes UNSET where TEXT is NULL. False: not a number. */
static bool
number_of(const char *text, double unset, double most, double *out)
{
    char *end;
    *out = text ? strtod(text, &end) : unset;
    return !text || (end > text && !*end && *out >= 0 && *out <= most);
}

static int
take_numbers(struct cli *c, struct eti_generate *how)
{
    enum { MOST = 1 << 20 };
    double length, top_k, seed;
    if (!number_of(c->opt.length, 200, MOST, &length) ||
        !number_of(c->opt.temperature, 0.8, 100, &how->temperature) ||
        !number_of(c->opt.top_k, 0, 1e9, &top_k) ||
        !number_of(c->opt.seed, 17, 4294967295.0, &seed))
        return cli_fail(
            c, CLI_E_VALUE, NULL,
            "--length, --temperature, --top-k and --seed are numbers from 0 "
            "on");
    if (!number_of(c->opt.top_p, 1, 1, &how->top_p))
        return cli_fail(c, CLI_E_VALUE, NULL, "--top-p is a number from 0 to 1");
    how->length = (int64_t)length;
    how->top_k = (int64_t)top_k;
    how->seed = (uint32_t)seed;
    return CLI_OK;
}

static void
release(struct job *j)
{
    for (int64_t i = 0; i < j->n; i++)
        et_free(j->c->cx, j->prompt[i].text);
    et_free(j->c->cx, j->prompt);
    json_decref(j->results);
}

int
cli_generate(struct cli *c)
{
    struct job j = {.c = c, .stage = ETI_STAGE_DATA};
    struct eti_origin_run from;
    char place[ETI_RUN_PATH + 64];
    const bool has_file = c->opt.prompts != NULL;
    if (c->n_args != 2 - has_file || (!has_file && !*c->arg[1]))
        return cli_fail(c, CLI_E_OPERAND, "etude runs lists them",
                        "generate needs a run and a prompt, or --prompts FILE: etude "
                        "generate RUN PROMPT");
    int code = take_numbers(c, &j.how);
    if (code == CLI_OK)
        code = cli_find_origin(c, c->arg[0], &from);
    if (code != CLI_OK)
        return code;
    snprintf(place, sizeof place, "%s%s%s", from.directory, *from.name ? "/" : "",
             from.name);
    j.results = c->opt.json ? json_array() : NULL;
    et_status status = generate(&j, place);
    if (status != ET_OK)
        code = cli_fail_status(c, j.stage, status);
    else if (c->opt.json) /* one prompt: its object alone */
        code = cli_print_json(has_file ? json_incref(j.results)
                                       : json_incref(json_array_get(j.results, 0)));
    release(&j);
    return code;
}
