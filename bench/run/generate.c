/* SPDX-License-Identifier: Apache-2.0 */
/* generate.c: tokens per second of `generate`, with the keys and values of the text
 * kept and with the whole text computed again for each token.
 *
 *     bench/run/generate [LAYERS WIDTH LENGTH [TOKENS]]
 *
 * A GPT of LAYERS blocks, WIDTH wide, which looks LENGTH tokens back and has 8,192
 * kinds of them, writes TOKENS (all but one of LENGTH) behind a prompt of one token.
 * The best of three texts counts; the first one, in which plans are made, does not. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/trainer/generate.h"
#include "etude/nn.h"

static void
need(struct et_ctx *cx, et_status status)
{
    if (status == ET_OK)
        return;
    fprintf(stderr, "%s\n", et_error_get(cx)->message);
    exit(1);
}

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Tokens per second. */
static double
rate(struct et_ctx *cx, struct eti_generator *g, int32_t *token, int64_t n,
     bool recompute)
{
    const struct eti_generate how = {.length = n, .top_p = 1, .recompute = recompute};
    double best = 1e30;
    for (int i = 0; i < 4; i++) {
        const double from = now();
        int64_t made;
        need(cx, eti_generator_run(g, &how, -1, token, 1, &made));
        const double took = now() - from;
        best = i > 0 && took < best ? took : best;
    }
    return (double)n / best;
}

static void
set(struct et_ctx *cx, const struct et_model_class *type, void *options,
    const char *name, const char *value)
{
    need(cx, et_options_set(cx, type->info.options, options, name, value));
}

int
main(int argc, char **argv)
{
    const char *layers = argc > 3 ? argv[1] : "4", *width = argc > 3 ? argv[2] : "256";
    const char *length = argc > 3 ? argv[3] : "256";
    const int64_t T = strtoll(length, NULL, 10);
    const int64_t n = argc > 4 ? strtoll(argv[4], NULL, 10) : T - 1;
    const struct et_model_facts facts = {.vocab_size = 8192, .seq_len = T};
    const struct et_model_class *type = et_model_class_find("gpt2");
    struct et_ctx *cx;
    struct et_device *dev;
    struct et_model *model;
    struct eti_generator *g;
    void *options;
    int32_t *token = T > 0 && n > 0 ? calloc((size_t)n + 1, sizeof *token) : NULL;
    if (!token || et_ctx_new(&cx) != ET_OK) {
        fprintf(stderr, "usage: generate [LAYERS WIDTH LENGTH [TOKENS]]\n");
        return 64;
    }
    need(cx, et_options_new(cx, &type->info, NULL, &options));
    set(cx, type, options, "n_layers", layers);
    set(cx, type, options, "d_model", width);
    set(cx, type, options, "n_heads", "4");
    set(cx, type, options, "max_seq_len", length);
    set(cx, type, options, "vocab_size", "8192");
    need(cx, et_model_new(cx, type, options, &facts, &model));
    et_options_free(&type->info, &options);
    need(cx, et_device_open(cx, "cpu", 0, 0, &dev));
    need(cx, et_module_bind(cx, model->root, dev, ET_PARAM | ET_BUFFER, 1));
    need(cx, eti_generator_new(cx, dev, model, T, &g));
    const double kept = rate(cx, g, token, n, false);
    const double again = rate(cx, g, token, n, true);
    printf("{\"layers\": %s, \"width\": %s, \"length\": %s, \"tokens\": %lld, "
           "\"kept_per_s\": %.1f, \"recomputed_per_s\": %.1f, \"ratio\": %.1f}\n",
           layers, width, length, (long long)n, kept, again, kept / again);
    eti_generator_free(&g);
    et_model_free(&model);
    et_device_close(&dev);
    et_ctx_free(&cx);
    free(token);
    return 0;
}
