/* SPDX-License-Identifier: Apache-2.0 */
/* generate.c: see generate.h.
 *
 * Every token is one evaluation of the same plan: the whole window goes through the
 * model, and the scores of one place are taken. What stands behind that place is zeros,
 * which a causal model does not see. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/trainer/generate.h"
#include "etude/rng.h"

struct eti_generator {
    struct et_ctx *cx;
    struct et_model *model; /* borrowed */
    struct et_graph *graph;
    struct et_tensor *window,
        *at; /* i32 [1,T]; [1]: the place whose scores are taken */
    int64_t T, V;
    int32_t *token;        /* [T]: the window on the host */
    float *score, *sorted; /* [V] */
};

static et_status
make(struct eti_generator *g, struct et_device *dev)
{
    const int64_t shape[] = {1, g->T}, one[] = {1};
    void *block;
    ET_TRY(et_alloc(g->cx, (size_t)g->T * sizeof *g->token, &block));
    g->token = block;
    ET_TRY(et_alloc(g->cx, (size_t)g->V * sizeof *g->score, &block));
    g->score = block;
    ET_TRY(et_alloc(g->cx, (size_t)g->V * sizeof *g->sorted, &block));
    g->sorted = block;
    ET_TRY(et_graph_new(g->cx, dev, &g->graph));
    ET_TRY(et_tensor_new(g->cx, dev, ET_I32, 2, shape, ET_ROW_MAJOR, NULL, &g->window));
    return et_tensor_new(g->cx, dev, ET_I32, 1, one, ET_ROW_MAJOR, NULL, &g->at);
}

et_status
eti_generator_new(struct et_ctx *cx, struct et_device *dev, struct et_model *model,
                  int64_t T, struct eti_generator **out)
{
    void *block;
    *out = NULL;
    if (T < 1 || model->type->task != ET_TASK_LANGUAGE)
        return ET_FAIL(cx, ET_ENOTSUP, "the model is none of language: it has no text");
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct eti_generator *g = block;
    *g = (struct eti_generator){
        .cx = cx, .model = model, .T = T, .V = model->num_classes};
    et_status status = make(g, dev);
    if (status != ET_OK)
        eti_generator_free(&g);
    *out = g;
    return status;
}

void
eti_generator_free(struct eti_generator **generator)
{
    struct eti_generator *g = *generator;
    *generator = NULL;
    if (!g)
        return;
    et_graph_free(&g->graph);
    et_tensor_free(&g->window);
    et_tensor_free(&g->at);
    et_free(g->cx, g->token);
    et_free(g->cx, g->score);
    et_free(g->cx, g->sorted);
    et_free(g->cx, g);
}

/* The scores of what follows the last N tokens of TOKEN, N of them at most T. */
static et_status
find_scores(struct eti_generator *g, const int32_t *token, int64_t n)
{
    const int32_t at = (int32_t)n - 1;
    memset(g->token, 0, (size_t)g->T * sizeof *g->token);
    memcpy(g->token, token, (size_t)n * sizeof *g->token);
    ET_TRY(
        et_tensor_write(g->cx, g->window, g->token, (size_t)g->T * sizeof *g->token));
    ET_TRY(et_tensor_write(g->cx, g->at, &at, sizeof at));
    et_graph_reset(g->graph);
    struct et_forward f = {.g = g->graph};
    struct et_tensor *y = et_model_forward(g->model, &f, g->window);
    ET_TRY(et_graph_status(g->graph));
    y = et_cast(g->graph, et_take(g->graph, y, g->at, 1), ET_F32);
    ET_TRY(et_eval(g->graph, &y, 1));
    return et_tensor_read(g->cx, y, g->score, (size_t)g->V * sizeof *g->score);
}

static int
falling(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

/* The least score that may be drawn. */
static float
find_floor(struct eti_generator *g, int64_t top_k)
{
    if (top_k <= 0 || top_k >= g->V)
        return -INFINITY;
    memcpy(g->sorted, g->score, (size_t)g->V * sizeof *g->sorted);
    qsort(g->sorted, (size_t)g->V, sizeof *g->sorted, falling);
    return g->sorted[top_k - 1];
}

/* Draws with R; scores that are not finite are never drawn, if others are. */
static int32_t
draw(struct eti_generator *g, const struct eti_generate *how, struct et_rng *r)
{
    int32_t best = 0;
    double sum = 0;
    for (int32_t i = 1; i < g->V; i++)
        if (g->score[i] > g->score[best] || isnan(g->score[best]))
            best = i;
    if (!(how->temperature > 0))
        return best;
    const float least = find_floor(g, how->top_k);
    for (int32_t i = 0; i < g->V; i++) {
        const double over = ((double)g->score[i] - g->score[best]) / how->temperature;
        g->sorted[i] = g->score[i] >= least && over <= 0 ? (float)exp(over) : 0;
        sum += g->sorted[i];
    }
    double left = et_rng_uniform(r) * sum;
    for (int32_t i = 0; i < g->V; i++) {
        left -= g->sorted[i];
        if (left < 0 && g->sorted[i] > 0)
            return i;
    }
    return best;
}

et_status
eti_generator_run(struct eti_generator *g, const struct eti_generate *how,
                  int32_t *token, int64_t n)
{
    if (n < 1)
        return ET_FAIL(g->cx, ET_EINVAL, "a prompt has one token at least");
    for (int64_t i = 0; i < how->length; i++, n++) {
        const int64_t seen = n < g->T ? n : g->T;
        struct et_rng r = et_rng_at(how->seed, ET_RNG_USER, (uint64_t)i);
        ET_TRY(find_scores(g, token + n - seen, seen));
        token[n] = draw(g, how, &r);
    }
    return ET_OK;
}

et_status
eti_generator_bytes(struct eti_generator *g, const struct eti_generate *how, char *text,
                    int64_t n)
{
    enum { BYTES = 256 };
    const int64_t all = n + how->length;
    void *block;
    if (g->V != BYTES)
        return ET_FAIL(g->cx, ET_ENOTSUP,
                       "the model has %lld tokens, and text is made of the 256 bytes",
                       (long long)g->V);
    ET_TRY(et_alloc(g->cx, (size_t)all * sizeof(int32_t), &block));
    int32_t *token = block;
    for (int64_t i = 0; i < n; i++)
        token[i] = (unsigned char)text[i];
    et_status status = eti_generator_run(g, how, token, n);
    for (int64_t i = n; i < all && status == ET_OK; i++)
        text[i] = (char)token[i];
    text[status == ET_OK ? all : n] = '\0';
    et_free(g->cx, token);
    return status;
}
