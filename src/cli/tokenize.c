/* SPDX-License-Identifier: Apache-2.0 */
/* tokenize.c: `etude data tokenize`: texts as tokens for the dataset `tokens`. */
#include "config.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/base/thread.h"
#include "core/text/shards.h"

/* ---- while it works ---- */

static bool
show_progress(void *data, const struct eti_shards_progress *p)
{
    struct cli *c = data;
    char bytes[32], speed[32], tokens[32];
    if (cli_signal_received())
        return false;
    if (c->opt.quiet || c->opt.json || !isatty(STDERR_FILENO))
        return true;
    int percent = p->all_bytes > 0 ? (int)(100 * p->bytes / p->all_bytes) : 100;
    double seconds = p->seconds > 0 ? p->seconds : 1;
    et_print(stderr, "\r%3d%%  %s at %s/s, %s tokens  ", percent,
             cli_bytes((double)p->text_bytes, bytes, sizeof bytes),
             cli_bytes((double)p->text_bytes / seconds, speed, sizeof speed),
             cli_scaled((double)p->tokens, "", tokens, sizeof tokens));
    fflush(stderr);
    return true;
}

/* ---- what came of it ---- */

static json_t *
result_json(const struct et_tokenizer_info *t, const struct eti_shards_config *s,
            const struct eti_shards_progress *p)
{
    return json_pack("{s:o, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f}",
                     "folder", cli_json_text(s->folder), "model", t->model,
                     "vocab_size", (json_int_t)t->vocab_size, "files",
                     (json_int_t)p->n_files, "skipped", (json_int_t)p->skipped,
                     "text_bytes", (json_int_t)p->text_bytes, "documents",
                     (json_int_t)p->documents, "tokens", (json_int_t)p->tokens,
                     "val_documents", (json_int_t)p->val_documents, "val_tokens",
                     (json_int_t)p->val_tokens, "seconds", p->seconds);
}

static void
print_split(const char *name, int64_t tokens, int64_t documents)
{
    char a[32], b[32];
    et_print(stdout, "%-10s %s tokens of %s document%s\n", name,
             cli_count(tokens, a, sizeof a), cli_count(documents, b, sizeof b),
             documents == 1 ? "" : "s");
}

static void
print_result(const struct et_tokenizer_info *t, const struct eti_shards_config *s,
             const struct eti_shards_progress *p)
{
    char a[32], b[32];
    et_print(stdout, "tokenizer  %s, vocabulary %s\n", t->model,
             cli_count(t->vocab_size, a, sizeof a));
    et_print(stdout, "text       %s of %s file%s\n",
             cli_bytes((double)p->text_bytes, a, sizeof a),
             cli_count(p->n_files - p->skipped, b, sizeof b),
             p->n_files - p->skipped == 1 ? "" : "s");
    if (p->skipped > 0)
        et_print(stdout, "skipped    %s, which hold no text\n",
                 cli_count(p->skipped, a, sizeof a));
    print_split("train", p->tokens - p->val_tokens, p->documents - p->val_documents);
    if (p->val_tokens > 0)
        print_split("val", p->val_tokens, p->val_documents);
    et_print(stdout, "written    %s\n", s->folder);
}

/* Not on stdout: the same input has the same result there. */
static void
say_speed(const struct cli *c, const struct eti_shards_progress *p)
{
    char a[32];
    if (c->opt.quiet || c->opt.json || p->seconds <= 0)
        return;
    et_print(stderr, "%s%.1f s, %s/s\n", isatty(STDERR_FILENO) ? "\r\x1b[K" : "",
             p->seconds, cli_bytes((double)p->text_bytes / p->seconds, a, sizeof a));
}

/* ---- the command ---- */

static int
take_fraction(struct cli *c, double *out)
{
    const char *text = c->opt.val_fraction;
    char *end = NULL;
    *out = 0;
    if (!text)
        return CLI_OK;
    *out = strtod(text, &end);
    if (end == text || *end || !(*out >= 0 && *out < 1))
        return cli_fail(c, CLI_E_VALUE, NULL,
                        "--val-fraction: expected a number from 0 to below 1, got '%s'",
                        text);
    return CLI_OK;
}

static int
write_shards(struct cli *c, const struct et_tokenizer *t, struct eti_shards_config *s)
{
    struct eti_shards_progress p;
    struct et_tokenizer_info info;
    cli_signals_catch(0);
    et_status status = eti_shards_write(c->cx, t, s, &p);
    if (status == ET_ECANCELED && cli_signal_received()) {
        et_error_clear(c->cx);
        if (!c->opt.quiet)
            et_print(stderr, "etude: stopped; nothing is written\n");
        return CLI_SIGNAL + cli_signal_received();
    }
    if (status != ET_OK)
        return cli_fail_status(c, ETI_STAGE_DATA, status);
    et_tokenizer_get_info(t, &info);
    say_speed(c, &p);
    if (c->opt.json)
        return cli_print_json(result_json(&info, s, &p));
    print_result(&info, s, &p);
    return CLI_OK;
}

int
cli_data_tokenize(struct cli *c)
{
    struct eti_shards_config s = {
        .input = c->arg + 1,
        .n_inputs = c->n_args - 1,
        .folder = c->opt.output,
        .field = c->opt.field ? c->opt.field : "text",
        .document = (enum eti_document)c->opt.document,
        .end = c->opt.end,
        .threads = c->opt.threads > 0 ? (int)c->opt.threads : eti_thread_count(),
        .plain = c->opt.plain,
        .tell = show_progress,
        .data = c,
    };
    struct et_tokenizer *t;
    if (s.n_inputs < 1 || !s.folder || !c->opt.tokenizer)
        return cli_fail(c, CLI_E_OPERAND, NULL,
                        "data tokenize needs FILE... --tokenizer FILE -o FOLDER");
    int code = take_fraction(c, &s.val_fraction);
    if (code != CLI_OK)
        return code;
    et_status status = et_tokenizer_open(c->cx, c->opt.tokenizer, &t);
    if (status != ET_OK)
        return cli_fail_status(c, ETI_STAGE_DATA, status);
    code = write_shards(c, t, &s);
    et_tokenizer_free(&t);
    return code;
}
