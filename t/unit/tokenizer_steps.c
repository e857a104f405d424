/* SPDX-License-Identifier: Apache-2.0 */
/* Each step of a tokenizer.json with each of its options: the ids and texts of Hugging
 * Face's tokenizers, which t/golden/make_steps.py asked; and what is refused. */
#include "config.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "core/text/base64.h"
#include "etude/rng.h"
#include "etude/tokenizer.h"
#include "t/tap.h"

static struct et_ctx *cx;
static char dir[] = "/tmp/etude-steps-XXXXXX";

struct both {
    struct et_tokenizer *t;
    struct et_encoder *e;
};

static bool
open_bytes(const char *name, const void *bytes, size_t n, struct both *b)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f) != 0)
        bail("cannot write %s", path);
    *b = (struct both){0};
    bool opened = et_tokenizer_open(cx, path, &b->t) == ET_OK &&
                  et_encoder_new(cx, b->t, &b->e) == ET_OK;
    unlink(path);
    return opened;
}

static bool
opens(const json_t *json, struct both *b)
{
    char *text = json_dumps(json, JSON_COMPACT);
    bool opened = open_bytes("a.json", text, strlen(text), b);
    free(text);
    return opened;
}

static void
close_both(struct both *b)
{
    et_encoder_free(&b->e);
    et_tokenizer_free(&b->t);
}

/* ---- the peer's answers ---- */

static bool
same_ids(const char *what, const json_t *want, const int32_t *id, int64_t n)
{
    bool same = (int64_t)json_array_size(want) == n;
    for (int64_t i = 0; same && i < n; i++)
        same = json_integer_value(json_array_get(want, (size_t)i)) == id[i];
    if (!same) {
        char *text = json_dumps(want, JSON_COMPACT);
        diag("%s: wanted %.200s", what, text);
        for (int64_t i = 0; i < n && i < 20; i++)
            diag("  got %d", (int)id[i]);
        free(text);
    }
    return same;
}

static bool
same_types(const json_t *want, const uint8_t *type, int64_t n)
{
    bool same = (int64_t)json_array_size(want) == n;
    for (int64_t i = 0; same && i < n; i++)
        same = json_integer_value(json_array_get(want, (size_t)i)) == type[i];
    if (!same)
        diag("other types");
    return same;
}

/* Bytes that are no UTF-8 are kept here, and are U+FFFD there. */
static bool
decodes(struct both *b, const json_t *ids, const json_t *want)
{
    int32_t id[4096];
    struct et_text t;
    size_t n = json_array_size(ids);
    for (size_t i = 0; i < n; i++)
        id[i] = (int32_t)json_integer_value(json_array_get(ids, i));
    if (et_decode(b->e, id, (int64_t)n, 0, &t) != ET_OK)
        return false;
    bool same = strstr(json_string_value(want), "\xef\xbf\xbd") ||
                (json_string_length(want) == t.n &&
                 memcmp(json_string_value(want), t.text, t.n) == 0);
    if (!same)
        diag("decoded '%.200s', wanted '%.200s'", t.text, json_string_value(want));
    return same;
}

/* TIMES: what a word becomes the second time comes from the cache. */
static bool
encodes(struct both *b, const json_t *row)
{
    enum { TIMES = 2 };
    const char *text = json_string_value(json_array_get(row, 0));
    size_t n = json_string_length(json_array_get(row, 0));
    struct et_encoding a;
    bool same = true;
    for (int i = 0; same && i < TIMES; i++)
        same = et_encode(b->e, text, n, 0, &a) == ET_OK &&
               same_ids(text, json_array_get(row, 1), a.id, a.n);
    if (json_array_size(row) == 4)
        return same && et_encode(b->e, text, n, ET_ENCODE_PLAIN, &a) == ET_OK &&
               same_ids("plain", json_array_get(row, 3), a.id, a.n);
    if (json_array_size(row) < 6)
        return same;
    return same && et_encode(b->e, text, n, ET_ENCODE_SPECIAL, &a) == ET_OK &&
           same_ids("with marks", json_array_get(row, 3), a.id, a.n) &&
           et_encode_pair(b->e, text, n, "b a", 3, 0, ET_ENCODE_SPECIAL, &a) == ET_OK &&
           same_ids("a pair", json_array_get(row, 4), a.id, a.n) &&
           same_types(json_array_get(row, 5), a.type, a.n);
}

static bool
agrees(struct both *b, const json_t *row)
{
    if (json_array_size(row) == 2)
        return decodes(b, json_array_get(row, 0), json_array_get(row, 1));
    return encodes(b, row) &&
           decodes(b, json_array_get(row, 1), json_array_get(row, 2));
}

static bool
agree(struct both *b, const json_t *rows)
{
    const json_t *row;
    size_t i;
    int wrong = 0;
    json_array_foreach((json_t *)rows, i, row) wrong += !agrees(b, row);
    return i > 0 && wrong == 0;
}

/* ---- places to cut ---- */

/* Texts in whose spaces, marks and letters all steps have something to do. */
static void
draw_text(struct et_rng *r, char *text, size_t n)
{
    static const char *const parts[] = {"a",  "b",   "ab",  " a", " b",
                                        " ",  "a b", "<m>", "_",  "1",
                                        "<b", "a>",  ",",   "\n", "\xc3\xa9"};
    for (size_t i = 0; i + 4 < n; i += strlen(text + i)) {
        size_t k = (size_t)et_rng_below(r, sizeof parts / sizeof *parts);
        snprintf(text + i, n - i, "%s", parts[k]);
    }
}

/* Wherever a text may be cut, its two parts have the ids of the whole. */
static bool
same_in_two(struct both *b)
{
    struct et_rng r = et_rng_at(7, ET_RNG_USER, 0);
    struct et_encoding a;
    int32_t whole[256];
    bool same = b->e != NULL;
    for (int i = 0; same && i < 20; i++) {
        char text[40];
        draw_text(&r, text, sizeof text);
        size_t n = strlen(text), from = 1 + (size_t)i;
        size_t at = et_tokenizer_cut(b->t, text, n, from);
        same = at >= from && et_encode(b->e, text, n, 0, &a) == ET_OK && a.n < 256;
        int64_t n_whole = a.n, first = 0;
        if (same && a.n > 0)
            memcpy(whole, a.id, (size_t)a.n * sizeof *whole);
        for (int part = 0; same && part < 2; part++, first += a.n)
            same = et_encode(b->e, text + (part ? at : 0), part ? n - at : at, 0, &a) ==
                       ET_OK &&
                   first + a.n <= n_whole &&
                   (a.n == 0 ||
                    memcmp(whole + first, a.id, (size_t)a.n * sizeof *whole) == 0);
        same = same && first == n_whole;
        if (!same)
            diag("'%s' cut at %zu", text, at);
    }
    return same;
}

static void
test_step(json_t *models, const json_t *line)
{
    const char *says = json_string_value(json_array_get(line, 0));
    const char *model = json_string_value(json_array_get(line, 1));
    json_t *json = json_array_get(line, 2);
    struct both b;
    json_object_set(json, "model", json_object_get(models, model));
    bool good = opens(json, &b) && agree(&b, json_array_get(line, 3));
    if (et_error_get(cx)->message[0])
        diag("%s", et_error_get(cx)->message);
    ok(good && same_in_two(&b), "%.150s: as the peer, also where it is cut", says);
    et_error_clear(cx);
    close_both(&b);
}

/* A model of SentencePiece. */
static void
test_pieces(const json_t *line)
{
    const json_t *base64 = json_array_get(line, 1);
    uint8_t *model = NULL;
    size_t n;
    struct both b = {0};
    if (eti_base64_decode(cx, json_string_value(base64), json_string_length(base64),
                          &model, &n) != ET_OK)
        bail("no base64");
    bool good =
        open_bytes("a.model", model, n, &b) && agree(&b, json_array_get(line, 2));
    if (et_error_get(cx)->message[0])
        diag("%s", et_error_get(cx)->message);
    ok(good && same_in_two(&b), "%.150s: as the peer, also where it is cut",
       json_string_value(json_array_get(line, 0)));
    et_error_clear(cx);
    et_free(cx, model);
    close_both(&b);
}

static void
test_steps(void)
{
    char path[1024];
    char *line = NULL;
    size_t room = 0;
    json_t *models = json_object();
    int steps = 0;
    snprintf(path, sizeof path, "%s/t/golden/tokenizers/steps.jsonl",
             getenv("ET_SRCDIR") ? getenv("ET_SRCDIR") : ".");
    FILE *f = fopen(path, "r");
    if (!f)
        bail("no %s", path);
    while (getline(&line, &room, f) > 0) {
        json_t *json = json_loads(line, JSON_ALLOW_NUL, NULL);
        if (json_array_size(json) == 2)
            json_object_set(models, json_string_value(json_array_get(json, 0)),
                            json_array_get(json, 1));
        else if (json_array_size(json) == 4)
            test_step(models, json);
        else
            test_pieces(json);
        steps += json_array_size(json) > 2;
        json_decref(json);
    }
    ok(steps > 200, "all steps were tried");
    json_decref(models);
    free(line);
    fclose(f);
}

int
main(void)
{
    struct et_alloc_stats stats;
    if (et_ctx_new(&cx) != ET_OK || !mkdtemp(dir))
        bail("no context or folder");
    test_steps();
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left allocated");
    rmdir(dir);
    et_ctx_free(&cx);
    return done();
}
