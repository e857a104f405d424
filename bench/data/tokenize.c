/* SPDX-License-Identifier: Apache-2.0 */
/* tokenize.c: how fast one thread turns a text into tokens.
 *
 *     bench/data/tokenize TOKENIZER FILE [SECONDS [IDS]]
 *
 * The file's lines are encoded one by one, as documents come, again and again for so
 * many seconds, and the best round counts. IDS: a file that the ids of a round go to, 4
 * bytes each. The peer is tokenize.py beside this. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/data/file.h"
#include "etude/tokenizer.h"

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* of nobody else's programs */
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void
need(struct et_ctx *cx, et_status status)
{
    if (status == ET_OK)
        return;
    fprintf(stderr, "%s\n", et_error_get(cx)->message);
    exit(1);
}

/* Encodes each line, its end with it; returns the number of ids. */
static int64_t
run_round(struct et_ctx *cx, struct et_encoder *e, const struct eti_bytes *text,
          FILE *ids)
{
    int64_t n_ids = 0;
    for (int64_t at = 0; at < text->n;) {
        const char *line = (const char *)text->data + at;
        const char *end = memchr(line, '\n', (size_t)(text->n - at));
        int64_t n = end ? end + 1 - line : text->n - at;
        struct et_encoding a;
        need(cx, et_encode(e, line, (size_t)n, 0, &a));
        n_ids += a.n;
        at += n;
        if (ids && fwrite(a.id, sizeof *a.id, (size_t)a.n, ids) != (size_t)a.n)
            exit(1);
    }
    return n_ids;
}

int
main(int argc, char **argv)
{
    struct et_ctx *cx;
    struct et_tokenizer *t;
    struct et_encoder *e;
    struct eti_bytes text;
    if (argc < 3 || et_ctx_new(&cx) != ET_OK) {
        fprintf(stderr, "usage: tokenize TOKENIZER FILE [SECONDS [IDS]]\n");
        return 64;
    }
    need(cx, et_tokenizer_open(cx, argv[1], &t));
    need(cx, et_encoder_new(cx, t, &e));
    need(cx, eti_file_load(cx, argv[2], ETI_FILE_MAX, &text));
    double limit = argc > 3 ? strtod(argv[3], NULL) : 3, best = 1e9, begun = now();
    FILE *ids = argc > 4 ? fopen(argv[4], "wb") : NULL;
    int64_t n = run_round(cx, e, &text, ids);
    if (ids && fclose(ids) != 0)
        return 1;
    do {
        double from = now();
        (void)run_round(cx, e, &text, NULL);
        best = now() - from < best ? now() - from : best;
    } while (now() - begun < limit);
    printf("{\"program\": \"etude\", \"bytes\": %lld, \"tokens\": %lld, "
           "\"MB/s\": %.2f}\n",
           (long long)text.n, (long long)n, (double)text.n / best / 1e6);
    et_free(cx, text.data);
    et_encoder_free(&e);
    et_tokenizer_free(&t);
    et_ctx_free(&cx);
    return 0;
}
