/* SPDX-License-Identifier: Apache-2.0 */
/* autocast.c: mixed precision: which dtype each operation computes in.
 *
 * Placed where a node is built, before anything is lowered or fused, so that the
 * gradient walk sees the casts (and turns them round: a parameter's gradient arrives in
 * f32), an eager run has the same ones, and the signature knows the precision by its
 * nodes.
 *
 *   LOW      products: operands go to the graph's low dtype, sums stay in f32
 *   WIDE     layer and group norm, softmax, sums, powers and e^x: operands go to f32
 *   PROMOTE  operands of several dtypes go to the widest of them
 *   (none)   as the operands are; views, activations, pooling, movement; batch norm and
 *            cross entropy, whose statistics, sums and losses are f32 in any case
 *
 * The lists are torch.autocast's for CUDA. LOW and WIDE act inside et_autocast(g, true)
 * alone: the forward pass and the loss; gradients are computed in the dtypes of what
 * they are gradients of. PROMOTE acts wherever a graph has a low dtype, so that hooks
 * may mix what they find; without one nothing is ever cast silently.
 * Differs: cross entropy reads logits in their own dtype (a cast to f32 first would
 * change no number and write 50,257 columns once more); an attention's bias stays as it
 * is (a mask of large negative numbers would overflow f16); one cast serves all readers
 * of a value, activations included. The cast of a parameter is not computed: its value
 * lies in the shadow that follows the parameters (shadow.h). A step of several
 * evaluations keeps the casts of other leaves from the first. */
#include "config.h"

#include <string.h>

#include "core/base/need.h"
#include "core/graph/shadow.h"
#include "core/ops/ops.h"

enum policy { AS_IS, LOW, WIDE, PROMOTE };

struct rule {
    enum policy policy;
    unsigned operands; /* bit i: operand i takes part; 0 = all */
};

/* clang-format off */
static const struct rule rules[ET_OP_COUNT] = {
    [ET_OP_matmul]             = {LOW, 0},
    [ET_OP_conv2d]             = {LOW, 0},
    [ET_OP_conv2d_grad_input]  = {LOW, 0}, /* forward: a transposed convolution */
    [ET_OP_conv2d_grad_weight] = {LOW, 0},
    [ET_OP_sdpa]               = {LOW, 7}, /* q, k, v */

    [ET_OP_exp]           = {WIDE, 0},
    [ET_OP_log]           = {WIDE, 0},
    [ET_OP_rsqrt]         = {WIDE, 0},
    [ET_OP_square]        = {WIDE, 0},
    [ET_OP_reciprocal]    = {WIDE, 0},
    [ET_OP_pow_scalar]    = {WIDE, 0},
    [ET_OP_softplus]      = {WIDE, 0},
    [ET_OP_sum]           = {WIDE, 0},
    [ET_OP_cumsum]        = {WIDE, 0},
    [ET_OP_sum_squares]   = {WIDE, 0},
    [ET_OP_segment_sum_squares] = {WIDE, 1},
    [ET_OP_layer_norm]    = {WIDE, 7}, /* a residual is added as it is */
    [ET_OP_group_norm]    = {WIDE, 0},
    [ET_OP_softmax]       = {WIDE, 0},
    [ET_OP_log_softmax]   = {WIDE, 0},

    [ET_OP_add]        = {PROMOTE, 0},
    [ET_OP_sub]        = {PROMOTE, 0},
    [ET_OP_mul]        = {PROMOTE, 0},
    [ET_OP_div]        = {PROMOTE, 0},
    [ET_OP_maximum]    = {PROMOTE, 0},
    [ET_OP_minimum]    = {PROMOTE, 0},
    [ET_OP_equal]      = {PROMOTE, 0},
    [ET_OP_less]       = {PROMOTE, 0},
    [ET_OP_less_equal] = {PROMOTE, 0},
    [ET_OP_where]      = {PROMOTE, 6}, /* the two it chooses between */
    [ET_OP_concat]     = {PROMOTE, 0},
};
/* clang-format on */

et_status
et_graph_set_low_dtype(struct et_graph *g, enum et_dtype low)
{
    ETI_NEED(et_graph_ctx(g), g);
    if (low != ET_NONE && !eti_is_low(low))
        return ET_FAIL(g->cx, ET_EDTYPE, "mixed precision is bf16 or f16, not %s",
                       et_dtype_name(low));
    g->low = low;
    return ET_OK;
}

bool
et_autocast(struct et_graph *g, bool on)
{
    if (!g)
        return false;
    bool was = g->autocast;
    g->autocast = on;
    return was;
}

/* ---- casts, each made once ---- */

/* Where the cast of X to DTYPE is in the table, or belongs. */
static struct eti_cast *
slot_of(const struct et_graph *g, const struct et_tensor *x, enum et_dtype dtype)
{
    uint64_t mask = (uint64_t)g->cap_casts - 1;
    uint64_t at = (uintptr_t)x / sizeof(void *) * 0x9E3779B97F4A7C15u >> 32;
    for (at += (uint64_t)dtype;; at++) {
        struct eti_cast *c = &g->cast[at & mask];
        if (!c->from || (c->from == x && c->to->desc.dtype == dtype))
            return c;
    }
}

/* Room for one more: at most half of the table is used. */
static et_status
make_room(struct et_graph *g)
{
    if (2 * (g->n_casts + 1) <= g->cap_casts)
        return ET_OK;
    struct eti_cast *old = g->cast;
    int n = g->cap_casts;
    void *block;
    ET_TRY(et_alloc(g->cx, (size_t)(n ? 2 * n : 256) * sizeof *old, &block));
    g->cast = block;
    g->cap_casts = n ? 2 * n : 256;
    for (int i = 0; i < n; i++)
        if (old[i].from)
            *slot_of(g, old[i].from, old[i].to->desc.dtype) = old[i];
    et_free(g->cx, old);
    return ET_OK;
}

void
eti_autocast_reset(struct et_graph *g)
{
    if (g->n_casts)
        memset(g->cast, 0, (size_t)g->cap_casts * sizeof *g->cast);
    g->n_casts = 0;
}

/* Is T computed from what leaves hold now? */
static bool
is_fresh(const struct et_graph *g, const struct et_tensor *t)
{
    return ((const struct eti_node *)t->node)->epoch == g->epoch;
}

/* What X was cast from, where casting it back gives exactly that. */
static struct et_tensor *
before_cast(const struct et_graph *g, const struct et_tensor *x, enum et_dtype dtype)
{
    if (!x->node || x->node->op->id != ET_OP_cast || !is_fresh(g, x))
        return NULL;
    struct et_tensor *from = x->node->in[0];
    return eti_is_low(dtype) && from->desc.dtype == dtype ? from : NULL;
}

static struct et_tensor *
cast(struct et_graph *g, struct et_tensor *x, enum et_dtype dtype)
{
    struct et_tensor *from = before_cast(g, x, dtype);
    if (from)
        return from;
    et_status status = make_room(g);
    if (status != ET_OK) {
        g->status = status;
        return NULL;
    }
    struct eti_cast *c = slot_of(g, x, dtype);
    if (c->from && is_fresh(g, c->to))
        return c->to;
    struct et_tensor *to = et_cast(g, x, dtype);
    if (!to)
        return NULL;
    eti_shadow_read(g, x, to);
    g->n_casts += !c->from;
    *c = (struct eti_cast){x, to};
    return to;
}

/* A leaf's cast that has been computed. */
static bool
is_kept(const struct eti_cast *c)
{
    return c->from && !c->from->node && c->to->data;
}

static bool
changes(const struct et_graph *g, const struct et_tensor *leaf)
{
    for (int i = 0; i < g->n_assign; i++)
        if (g->assign[i].leaf->storage == leaf->storage)
            return true;
    return false;
}

void
eti_autocast_commit(struct et_graph *g)
{
    for (int i = 0; g->n_casts && i < g->cap_casts; i++)
        if (is_kept(&g->cast[i]) && !changes(g, g->cast[i].from))
            ((struct eti_node *)g->cast[i].to->node)->epoch = g->epoch;
}

et_status
et_eval_keeping_casts(struct et_graph *g)
{
    ETI_NEED(et_graph_ctx(g), g);
    struct et_tensor **want =
        eti_graph_alloc(g, ((size_t)g->n_casts + 1) * sizeof *want);
    int n = 0;
    if (!want)
        return g->status;
    for (int i = 0; g->n_casts && i < g->cap_casts; i++) {
        const struct eti_cast *c = &g->cast[i];
        if (c->from && !c->from->node && is_fresh(g, c->to))
            want[n++] = c->to;
    }
    return et_eval(g, want, n);
}

/* ---- the rules ---- */

static bool
takes_part(const struct rule *rule, const struct et_tensor *x, int i)
{
    return x && (!rule->operands || rule->operands >> i & 1);
}

/* The dtype that all floats of the operation go to; NONE: they stay. */
static enum et_dtype
target(const struct et_graph *g, const struct rule *rule, struct et_tensor *const *in,
       int n)
{
    enum et_dtype widest = ET_NONE;
    bool mixed = false;
    for (int i = 0; i < n; i++) {
        if (!takes_part(rule, in[i], i))
            continue;
        enum et_dtype dtype = in[i]->desc.dtype;
        if (dtype != ET_F32 && !eti_is_low(dtype)) {
            if (et_dtype_is_float(dtype) || rule->policy == PROMOTE)
                return ET_NONE; /* f64, integers: the operation says what it thinks */
            continue;
        }
        mixed |= widest && widest != dtype;
        widest = widest && widest != dtype ? ET_F32 : dtype;
    }
    if (rule->policy == PROMOTE)
        return mixed ? widest : ET_NONE;
    return !g->autocast ? ET_NONE : rule->policy == LOW ? g->low : ET_F32;
}

et_status
eti_autocast(struct et_graph *g, enum et_op_id op, struct et_tensor *const **in, int n)
{
    const struct rule *rule = &rules[op];
    if (rule->policy == AS_IS)
        return ET_OK;
    enum et_dtype dtype = target(g, rule, *in, n);
    struct et_tensor **out = NULL;
    for (int i = 0; dtype && i < n; i++) {
        struct et_tensor *x = (*in)[i];
        if (!takes_part(rule, x, i) || x->desc.dtype == dtype ||
            !et_dtype_is_float(x->desc.dtype))
            continue;
        if (!out) {
            out = eti_graph_alloc(g, (size_t)n * sizeof *out);
            if (!out)
                return g->status;
            memcpy(out, *in, (size_t)n * sizeof *out);
            *in = out;
        }
        out[i] = cast(g, x, dtype);
    }
    return g->status;
}

struct et_tensor *
eti_autocast_low(struct et_graph *g, struct et_tensor *x)
{
    bool wide = x && g->low && g->autocast && x->desc.dtype == ET_F32;
    return wide ? cast(g, x, g->low) : x;
}

struct et_tensor *
eti_autocast_wide(struct et_graph *g, struct et_tensor *x)
{
    bool low = x && g->low && g->autocast && eti_is_low(x->desc.dtype);
    return low ? cast(g, x, ET_F32) : x;
}
