/* SPDX-License-Identifier: Apache-2.0 */
/* kv_cache.c: see kv_cache.h.
 *
 * An attention has a leaf for its keys and one for its values, [1,H,T,D], which each
 * pass assigns anew. What a leaf holds behind the last token is of no token: the bias
 * hides it, and the tokens to come overwrite it. */
#include "core/modules/kv_cache.h"
#include "core/graph/graph_impl.h"
#include "core/base/memory.h"
#include "core/modules/common.h"

struct kept {
    const struct et_module *attention;
    struct et_tensor *leaf[2]; /* keys, values */
};

struct eti_kv_cache {
    struct et_ctx *cx;
    struct et_device *dev;
    int64_t T;
    struct et_tensor *at; /* where the one token stands; NULL: a pass that fills */
    struct kept *kept;
    int n;
    int64_t room;
};

/* ---- which models ---- */

/* Whose value at a position is of that position alone. */
static const struct et_module_class *const pointwise[] = {
    &et_linear_class,
    &et_conv1d_class,
    &et_factorized_linear_class,
    &et_layer_norm_class,
    &et_low_precision_layer_norm_class,
    &et_embedding_class,
    &et_dropout_class,
    &et_gyro_dropout_class,
    &et_relu_class,
    &et_gelu_class,
    &et_gelu_tanh_class,
    &et_silu_class,
    &et_tanh_class,
    &et_sigmoid_class,
    &et_identity_class,
    &et_sequential_class,
    &et_gpt2_mlp_class,
    &et_gpt2_block_class,
    &et_gpt2_transformer_class,
    &et_gpt2_class,
};

static bool
is_pointwise(const struct et_module *m)
{
    for (size_t i = 0; i < sizeof pointwise / sizeof *pointwise; i++)
        if (m->type == pointwise[i])
            return true;
    return false;
}

static bool
is_kept(const struct eti_kv_cache *c, const struct et_module *m)
{
    for (int i = 0; i < c->n; i++)
        if (c->kept[i].attention == m)
            return true;
    return false;
}

static et_status
add(struct eti_kv_cache *c, const struct et_module *m)
{
    const struct et_attention_options *o = &((const struct et_attention_module *)m)->o;
    const int64_t shape[] = {1, o->n_heads, c->T, o->d_model / o->n_heads};
    ET_TRY(eti_grow(c->cx, &c->kept, &c->room, c->n + 1, sizeof *c->kept));
    struct kept *k = &c->kept[c->n++];
    *k = (struct kept){.attention = m};
    for (int i = 0; i < 2; i++)
        ET_TRY(et_tensor_new(c->cx, c->dev, ET_F32, 4, shape, ET_ROW_MAJOR, NULL,
                             &k->leaf[i]));
    return ET_OK;
}

/* Adds the attentions of M and below; *FITS becomes false at what has no place here:
 * another layer, or an attention that is used twice. */
static et_status
add_below(struct eti_kv_cache *c, struct et_module *m, bool *fits)
{
    struct et_module **child;
    if (m->type == &et_attention_class && !is_kept(c, m))
        ET_TRY(add(c, m));
    else if (!is_pointwise(m))
        *fits = false;
    for (int i = 0; *fits && (child = et_module_child(m, i, NULL)); i++)
        if (*child)
            ET_TRY(add_below(c, *child, fits));
    return ET_OK;
}

et_status
eti_kv_cache_new(struct et_ctx *cx, struct et_device *dev, struct et_module *root,
                 int64_t T, struct eti_kv_cache **out)
{
    bool fits = true;
    *out = NULL;
    void *block;
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct eti_kv_cache *c = block;
    *c = (struct eti_kv_cache){.cx = cx, .dev = dev, .T = T};
    et_status status = add_below(c, root, &fits);
    if (status == ET_OK && fits)
        *out = c;
    else
        eti_kv_cache_free(&c);
    return status;
}

void
eti_kv_cache_free(struct eti_kv_cache **cache)
{
    struct eti_kv_cache *c = *cache;
    *cache = NULL;
    if (!c)
        return;
    for (int i = 0; i < c->n; i++)
        for (int j = 0; j < 2; j++)
            et_tensor_free(&c->kept[i].leaf[j]);
    et_free(c->cx, c->kept);
    et_free(c->cx, c);
}

/* ---- passes ---- */

void
eti_kv_fill(struct et_graph *g, struct eti_kv_cache *c)
{
    g->kv = c;
    if (c)
        c->at = NULL;
}

void
eti_kv_go_on(struct et_graph *g, struct eti_kv_cache *c, struct et_tensor *at)
{
    g->kv = c;
    c->at = at;
}

void
eti_kv_end(struct et_graph *g)
{
    g->kv = NULL;
}

int64_t
eti_kv_keys(const struct et_graph *g, int64_t t)
{
    return g->kv && g->kv->at ? g->kv->T : t;
}

struct et_tensor *
eti_kv_hide(struct et_graph *g, struct et_tensor *bias)
{
    const struct eti_kv_cache *c = g->kv;
    if (!c || !c->at)
        return bias;
    struct et_tensor *visible = et_less_equal(g, et_iota(g, ET_I32, c->T), c->at);
    struct et_tensor *hidden =
        eti_as_bias(g, et_reshape(g, visible, ET_SHAPE(1, 1, 1, c->T)));
    return bias ? et_add(g, bias, hidden) : hidden;
}

/* What LEAF becomes: NEW [1,H,T,D] from its beginning, or NEW [1,H,1,D] at C's
 * place. */
static struct et_tensor *
put(struct et_graph *g, const struct eti_kv_cache *c, struct et_tensor *leaf,
    struct et_tensor *new)
{
    if (!new)
        return NULL;
    if (!c->at) {
        const int64_t none[4] = {0};
        const int64_t after[4] = {0, 0, c->T - new->desc.shape[2], 0};
        return et_pad(g, new, none, after, 0);
    }
    struct et_tensor *here = et_equal(g, et_iota(g, ET_I32, c->T), c->at);
    return et_where(g, et_reshape(g, here, ET_SHAPE(1, 1, c->T, 1)), new, leaf);
}

void
eti_kv_keep(struct et_graph *g, const struct et_module *attention,
            struct et_tensor *kv[2])
{
    struct eti_kv_cache *c = g->kv;
    int i = 0;
    while (c && i < c->n && c->kept[i].attention != attention)
        i++;
    for (int j = 0; c && i < c->n && j < 2; j++) {
        struct et_tensor *leaf = c->kept[i].leaf[j];
        struct et_tensor *all = put(g, c, leaf, kv[j]);
        et_assign(g, leaf, all);
        if (c->at)
            kv[j] = all;
    }
}
