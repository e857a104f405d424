/* SPDX-License-Identifier: Apache-2.0 */
/* generate.c: see generate.h.
 *
 * Every token is one evaluation of a plan. The prompt goes through the model as a
 * window, and the scores of one place are taken; what stands behind that place is
 * zeros, which a causal model does not see. Windows have one of PLANS lengths, so that
 * a short text costs less than a long one. Each further token goes through the model
 * alone, beside the keys and values of those before it (kv_cache.h).
 *
 * Where nothing can be kept, each token takes a window. So it does as soon as the text
 * is longer than the model looks back: then all tokens change their places. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/utf8.h"
#include "core/modules/kv_cache.h"
#include "core/trainer/generate.h"
#include "etude/rng.h"

enum { PLANS = 8 };

struct eti_generator {
    struct et_ctx *cx;
    struct et_model *model; /* borrowed */
    struct et_device *dev;  /* borrowed */
    struct et_graph *graph;
    struct et_tensor *window[PLANS]; /* i32 [1,n]; NULL until it is needed */
    struct et_tensor *at;            /* i32 [1]: the place whose scores are taken */
    struct et_tensor *last;          /* i32 [1,1]: the token there */
    struct eti_kv_cache *kv;         /* NULL: nothing can be kept */
    int64_t n_kept;                  /* tokens of the text that it has */
    int64_t T, V;
    int64_t step;          /* lengths of windows are its multiples, and T */
    int64_t n_drawn;       /* tokens below it may be drawn; V, or the tokenizer's */
    int32_t *token;        /* [T]: the window on the host */
    float *score;          /* [V] */
    float *share, *sorted; /* [V]: probabilities, but for a factor */
};

static et_status
make(struct eti_generator *g)
{
    const int64_t one[] = {1, 1};
    void *block;
    ET_TRY(et_alloc(g->cx, (size_t)g->T * sizeof *g->token, &block));
    g->token = block;
    ET_TRY(et_alloc(g->cx, (size_t)g->V * sizeof *g->score, &block));
    g->score = block;
    ET_TRY(et_alloc(g->cx, (size_t)g->V * sizeof *g->sorted, &block));
    g->sorted = block;
    ET_TRY(et_alloc(g->cx, (size_t)g->V * sizeof *g->share, &block));
    g->share = block;
    ET_TRY(et_graph_new(g->cx, g->dev, &g->graph));
    ET_TRY(et_tensor_new(g->cx, g->dev, ET_I32, 2, one, ET_ROW_MAJOR, NULL, &g->last));
    return et_tensor_new(g->cx, g->dev, ET_I32, 1, one, ET_ROW_MAJOR, NULL, &g->at);
}

et_status
eti_generator_new(struct et_ctx *cx, struct et_device *dev, struct et_model *model,
                  int64_t T, struct eti_generator **out)
{
    void *block;
    *out = NULL;
    if (T < 1 || model->type->task != ET_TASK_LANGUAGE)
        return ET_FAIL(
            cx, ET_ENOTSUP,
            "only a language model writes text: the data of this one have no tokens");
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct eti_generator *g = block;
    *g = (struct eti_generator){
        .cx = cx,
        .model = model,
        .dev = dev,
        .T = T,
        .V = model->num_classes,
        .n_drawn = model->num_classes,
        .step = (T + PLANS - 1) / PLANS,
    };
    et_status status = make(g);
    if (status != ET_OK)
        eti_generator_free(&g);
    *out = g;
    return status;
}

const struct et_graph *
eti_generator_graph(const struct eti_generator *g)
{
    return g->graph;
}

void
eti_generator_free(struct eti_generator **generator)
{
    struct eti_generator *g = *generator;
    *generator = NULL;
    if (!g)
        return;
    et_graph_free(&g->graph);
    for (int i = 0; i < PLANS; i++)
        et_tensor_free(&g->window[i]);
    et_tensor_free(&g->at);
    et_tensor_free(&g->last);
    eti_kv_cache_free(&g->kv);
    et_free(g->cx, g->token);
    et_free(g->cx, g->score);
    et_free(g->cx, g->sorted);
    et_free(g->cx, g->share);
    et_free(g->cx, g);
}

/* The shortest window that N tokens fit, and its length. */
static et_status
find_window(struct eti_generator *g, int64_t n, struct et_tensor **out, int64_t *length)
{
    int64_t i = (n - 1) / g->step, most = (i + 1) * g->step;
    *length = most < g->T ? most : g->T;
    const int64_t shape[] = {1, *length};
    if (!g->window[i])
        ET_TRY(et_tensor_new(g->cx, g->dev, ET_I32, 2, shape, ET_ROW_MAJOR, NULL,
                             &g->window[i]));
    *out = g->window[i];
    return ET_OK;
}

/* Reads the scores Y [1,n,V] has at the place PLACE, I32 [1]. */
static et_status
read_scores(struct eti_generator *g, struct et_tensor *y, struct et_tensor *place)
{
    ET_TRY(et_graph_status(g->graph));
    y = et_cast(g->graph, place ? et_take(g->graph, y, place, 1) : y, ET_F32);
    ET_TRY(et_eval(g->graph, &y, 1));
    return et_tensor_read(g->cx, y, g->score, (size_t)g->V * sizeof *g->score);
}

/* The scores of what follows the N tokens of TOKEN, at most T; KV keeps what it can. */
static et_status
score_window(struct eti_generator *g, struct eti_kv_cache *kv, const int32_t *token,
             int64_t n)
{
    struct et_tensor *window;
    int64_t length;
    ET_TRY(find_window(g, n, &window, &length));
    memset(g->token, 0, (size_t)length * sizeof *g->token);
    memcpy(g->token, token, (size_t)n * sizeof *g->token);
    ET_TRY(et_tensor_write(g->cx, window, g->token, (size_t)length * sizeof *g->token));
    struct et_forward f = {.g = g->graph};
    eti_kv_fill(g->graph, kv);
    struct et_tensor *y = et_model_forward(g->model, &f, window);
    eti_kv_end(g->graph);
    return read_scores(g, y, g->at);
}

/* The scores of what follows TOKEN, whose place is g->at: what stands before it is
 * kept. */
static et_status
score_next(struct eti_generator *g, int32_t token)
{
    ET_TRY(et_tensor_write(g->cx, g->last, &token, sizeof token));
    const struct et_samples samples = {
        .x = g->last,
        .n = 1,
        .other = {{"position", et_reshape(g->graph, g->at, ET_SHAPE(1, 1))}},
        .n_others = 1,
    };
    struct et_forward f = {.g = g->graph, .samples = &samples};
    eti_kv_go_on(g->graph, g->kv, g->at);
    struct et_tensor *y = et_model_forward(g->model, &f, g->last);
    eti_kv_end(g->graph);
    return read_scores(g, y, NULL);
}

/* The scores of what follows the N tokens of TOKEN; RECOMPUTE: keep nothing. */
static et_status
find_scores(struct eti_generator *g, const int32_t *token, int64_t n, bool recompute)
{
    const int64_t seen = n < g->T ? n : g->T;
    const int32_t at = (int32_t)seen - 1;
    struct eti_kv_cache *kv = recompute || seen < n ? NULL : g->kv;
    const bool goes_on = kv && g->n_kept > 0 && g->n_kept == n - 1;
    g->n_kept = 0;
    ET_TRY(et_tensor_write(g->cx, g->at, &at, sizeof at));
    et_graph_reset(g->graph);
    ET_TRY(goes_on ? score_next(g, token[n - 1])
                   : score_window(g, kv, token + n - seen, seen));
    g->n_kept = kv ? n : 0;
    return ET_OK;
}

/* ---- drawing ---- */

static int
falling(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x < y) - (x > y);
}

/* The numbers of FROM from the greatest to the least, in g->sorted. */
static const float *
sort(struct eti_generator *g, const float *from)
{
    memcpy(g->sorted, from, (size_t)g->n_drawn * sizeof *g->sorted);
    qsort(g->sorted, (size_t)g->n_drawn, sizeof *g->sorted, falling);
    return g->sorted;
}

/* The least score among the TOP_K greatest. */
static float
find_floor(struct eti_generator *g, int64_t top_k)
{
    if (top_k <= 0 || top_k >= g->n_drawn)
        return -INFINITY;
    return sort(g, g->score)[top_k - 1];
}

/* The least share among the fewest greatest ones that are TOP_P of SUM together. */
static float
find_least_share(struct eti_generator *g, double top_p, double sum)
{
    if (top_p >= 1)
        return 0;
    const float *sorted = sort(g, g->share);
    double reached = 0;
    int64_t i = 0;
    do
        reached += sorted[i];
    while (reached < top_p * sum && ++i < g->n_drawn);
    return sorted[i < g->n_drawn ? i : g->n_drawn - 1];
}

/* What is less than LEAST becomes 0; returns the sum of what is left. */
static double
cut_shares(struct eti_generator *g, float least)
{
    double sum = 0;
    for (int64_t i = 0; i < g->n_drawn; i++) {
        if (g->share[i] < least)
            g->share[i] = 0;
        sum += g->share[i];
    }
    return sum;
}

/* Draws with R; scores that are not finite are never drawn, if others are. */
static int32_t
draw(struct eti_generator *g, const struct eti_generate *how, struct et_rng *r)
{
    int32_t best = 0;
    for (int32_t i = 1; i < g->n_drawn; i++)
        if (g->score[i] > g->score[best] || isnan(g->score[best]))
            best = i;
    if (!(how->temperature > 0))
        return best;
    const float least = find_floor(g, how->top_k);
    for (int32_t i = 0; i < g->n_drawn; i++) {
        const double over = ((double)g->score[i] - g->score[best]) / how->temperature;
        g->share[i] = g->score[i] >= least && over <= 0 ? (float)exp(over) : 0;
    }
    double left = cut_shares(g, 0);
    left = cut_shares(g, find_least_share(g, how->top_p, left));
    left *= et_rng_uniform(r);
    for (int32_t i = 0; i < g->n_drawn; i++) {
        left -= g->share[i];
        if (left < 0 && g->share[i] > 0)
            return i;
    }
    return best;
}

/* A text: surgery may have given the model other layers since the last one. */
static et_status
begin(struct eti_generator *g)
{
    g->n_kept = 0;
    eti_kv_cache_free(&g->kv);
    return eti_kv_cache_new(g->cx, g->dev, g->model->root, g->T, &g->kv);
}

et_status
eti_generator_run(struct eti_generator *g, const struct eti_generate *how, int32_t end,
                  int32_t *token, int64_t n, int64_t *made)
{
    *made = 0;
    if (n < 1)
        return ET_FAIL(g->cx, ET_EINVAL, "a prompt has one token at least");
    ET_TRY(begin(g));
    for (int64_t i = 0; i < how->length; i++, n++) {
        struct et_rng r = et_rng_at(how->seed, ET_RNG_USER, (uint64_t)i);
        ET_TRY(find_scores(g, token, n, how->recompute));
        token[n] = draw(g, how, &r);
        *made = i + 1;
        if (token[n] == end)
            break;
    }
    return ET_OK;
}

/* ---- text ---- */

/* May the N bytes at S be the beginning of a character, and no whole one? */
static bool
is_begun(const char *s, size_t n)
{
    const unsigned char c = (unsigned char)*s;
    const size_t length = c >= 0xf0 && c < 0xf5   ? 4
                          : c >= 0xe0 && c < 0xf0 ? 3
                          : c >= 0xc2 && c < 0xe0 ? 2
                                                  : 0;
    for (size_t i = 1; i < n; i++)
        if (((unsigned char)s[i] & 0xc0) != 0x80)
            return false;
    return n < length;
}

/* Appends the N bytes at S to TEXT, which has *USED and room for three times N more. */
static void
append_utf8(char *text, size_t *used, const char *s, size_t n)
{
    static const char replacement[] = "\xef\xbf\xbd";
    uint32_t u;
    for (size_t i = 0, length; i < n; i += length) {
        length = (size_t)eti_utf8_decode(s + i, n - i, &u);
        if (length == 0 && is_begun(s + i, n - i))
            break;
        const char *from = length > 0 ? s + i : replacement;
        const size_t bytes = length > 0 ? length : sizeof replacement - 1;
        length = length > 0 ? length : 1;
        memcpy(text + *used, from, bytes);
        *used += bytes;
    }
    text[*used] = '\0';
}

/* Makes OUT->text: the prompt, and what the tokens behind it add to its text. */
static et_status
write_text(struct eti_generator *g, struct et_encoder *e, const char *prompt, size_t n,
           const int32_t *token, struct eti_generated *out)
{
    struct et_text b;
    const int64_t all = out->prompt_tokens + out->tokens;
    ET_TRY(et_decode(e, token, out->prompt_tokens, ET_DECODE_SKIP_SPECIAL, &b));
    const size_t known = b.n;
    ET_TRY(et_decode(e, token, all, ET_DECODE_SKIP_SPECIAL, &b));
    const size_t begin = known < b.n ? known : b.n;
    ET_TRY(et_alloc(g->cx, 3 * (n + b.n - begin) + 1, (void **)&out->text));
    append_utf8(out->text, &out->n, prompt, n);
    append_utf8(out->text, &out->n, b.text + begin, b.n - begin);
    return ET_OK;
}

et_status
eti_generator_text(struct eti_generator *g, const struct eti_generate *how,
                   const struct et_tokenizer *t, struct et_encoder *e,
                   const char *prompt, size_t n, struct eti_generated *out)
{
    struct et_tokenizer_info info;
    struct et_encoding a;
    int32_t *token;
    *out = (struct eti_generated){.text = NULL};
    et_tokenizer_get_info(t, &info);
    if (info.vocab_size > g->V)
        return ET_FAIL(g->cx, ET_ENOTSUP, "the model has %lld tokens, and %s has %lld",
                       (long long)g->V, info.path, (long long)info.vocab_size);
    g->n_drawn = info.vocab_size;
    ET_TRY(et_encode(e, prompt, n, 0, &a));
    out->prompt_tokens = a.n;
    const size_t room = (size_t)(a.n + how->length + 1);
    ET_TRY(et_alloc(g->cx, room * sizeof *token, (void **)&token));
    if (a.n > 0)
        memcpy(token, a.id, (size_t)a.n * sizeof *token);
    const int32_t end = info.role[ET_TOKEN_EOS];
    et_status status = eti_generator_run(g, how, end, token, a.n, &out->tokens);
    if (status == ET_OK) {
        const int64_t all = out->prompt_tokens + out->tokens;
        out->ended = out->tokens > 0 && end >= 0 && token[all - 1] == end;
        status = write_text(g, e, prompt, n, token, out);
    }
    et_free(g->cx, token);
    return status;
}
