/* SPDX-License-Identifier: Apache-2.0 */
/* build.c: appending nodes to a graph, and its life.
 *
 * A node is bump-allocated with its operands, results and attributes; the operation's
 * infer rule says at once what the results look like, so a wrong shape fails at the
 * line that wrote it. Nothing is hashed or looked up until an evaluation. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/need.h"
#include "core/graph/shadow.h"
#include "core/ops/ops.h"

enum { ARENA_BLOCK = 1 << 18 }; /* a ResNet-20 step's nodes take some 200 KB */

static unsigned
dump_bits(const char *text)
{
    static const struct {
        const char *word;
        unsigned bit;
    } words[] = {
        {"graph", ETI_DUMP_GRAPH},
        {"plan", ETI_DUMP_PLAN},
        {"memory", ETI_DUMP_MEMORY},
        {"passes", ETI_DUMP_PASSES},
    };
    unsigned bits = 0;
    for (size_t i = 0; text && i < sizeof words / sizeof *words; i++)
        if (strstr(text, words[i].word))
            bits |= words[i].bit;
    return bits;
}

et_status
et_graph_new(struct et_ctx *cx, struct et_device *dev, struct et_graph **out)
{
    ETI_NEED(cx, cx, dev, out);
    *out = NULL;
    void *block;
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct et_graph *g = block;
    g->cx = cx;
    g->dev = dev;
    g->results.dev = dev;
    g->results.refs = 1;
    g->generation = eti_ctx_next_number(g->cx);
    const char *capture = getenv("ETUDE_CAPTURE");
    const char *eager = getenv("ETUDE_EAGER");
    g->eager = eager && strcmp(eager, "0") != 0;
    g->capture = !capture || strcmp(capture, "0") != 0;
    g->dump = dump_bits(getenv("ETUDE_DUMP"));
    eti_arena_init(&g->arena, cx, ARENA_BLOCK);
    eti_arena_init(&g->scratch, cx, ARENA_BLOCK);
    g->next = dev->graphs;
    dev->graphs = g;
    *out = g;
    return ET_OK;
}

void
et_graph_free(struct et_graph **out)
{
    if (!out)
        return;
    struct et_graph *g = *out;
    *out = NULL;
    if (!g)
        return;
    struct et_graph **at = &g->dev->graphs;
    while (*at != g)
        at = &(*at)->next;
    *at = g->next;
    eti_forget_freed(g);
    eti_eager_reset(g);
    for (int i = 0; i < ETI_PLANS; i++)
        eti_plan_free(g, g->plan[i]);
    eti_device_free(g->dev, g->slab, g->slab_bytes);
    eti_device_free(g->dev, g->workspace, g->workspace_bytes);
    eti_ir_free(g);
    eti_arena_release(&g->arena);
    eti_arena_release(&g->scratch);
    et_free(g->cx, g->node);
    et_free(g->cx, g->assign);
    et_free(g->cx, g->cast);
    et_free(g->cx, g);
}

void
et_graph_reset(struct et_graph *g)
{
    if (!g)
        return;
    eti_eager_reset(g);
    eti_autocast_reset(g);
    eti_arena_reset(&g->arena);
    g->n_nodes = g->n_assign = 0;
    if (g->dev->freed)
        eti_forget_freed(g);
    g->status = ET_OK;
    g->generation = eti_ctx_next_number(g->cx);
    g->step_clock = g->plan_clock;
}

et_status
et_graph_status(const struct et_graph *g)
{
    ETI_NEED(et_graph_ctx(g), g);
    return g->status;
}

struct et_ctx *
et_graph_ctx(const struct et_graph *g)
{
    if (!g)
        return NULL;
    return g->cx;
}

void
et_graph_set_comm(struct et_graph *g, struct et_comm *comm)
{
    if (!g)
        return;
    g->comm = comm;
}

struct et_device *
et_graph_device(const struct et_graph *g)
{
    if (!g)
        return NULL;
    return g->dev;
}

void
et_graph_get_stats(const struct et_graph *g, struct et_graph_stats *out)
{
    if (!g || !out)
        return;
    *out = g->stats;
}

struct et_tensor *
eti_graph_fail(struct et_graph *g, et_status status)
{
    if (g->status == ET_OK)
        g->status = status;
    return NULL;
}

void *
eti_graph_alloc(struct et_graph *g, size_t bytes)
{
    void *p = g->status == ET_OK ? eti_arena_alloc(&g->arena, bytes) : NULL;
    if (!p)
        eti_graph_fail(g, ET_ENOMEM);
    return p;
}

static struct eti_node *
new_node(struct et_graph *g, const struct et_op *op, int n_in, const void *attr,
         size_t attr_size)
{
    size_t out_size = (size_t)op->n_out * sizeof(struct et_tensor);
    size_t in_size = (size_t)n_in * sizeof(struct et_tensor *);
    size_t attr_room = (attr_size + 15) & ~(size_t)15;
    char *p = eti_arena_alloc(&g->arena, sizeof(struct eti_node) + out_size + in_size +
                                             attr_room + 16);
    if (!p || eti_grow(g->cx, &g->node, &g->cap_nodes, g->n_nodes + 1, sizeof *g->node))
        return NULL;
    struct eti_node *n = (struct eti_node *)p;
    n->pub.op = op;
    n->pub.n_in = n_in;
    n->pub.n_out = op->n_out;
    n->pub.out = (struct et_tensor *)(n + 1);
    n->pub.in = (struct et_tensor **)((char *)n->pub.out + out_size);
    n->pub.attr = memcpy((char *)n->pub.in + in_size, attr ? attr : "", attr_size);
    n->pub.attr_size = attr_size;
    n->pub.id = (uint32_t)g->n_nodes;
    n->epoch = g->epoch;
    n->part = (uint8_t)g->part;
    return n;
}

static et_status
infer(struct et_graph *g, struct eti_node *n, struct et_tensor *const *in)
{
    const struct et_op *op = n->pub.op;
    struct et_desc in_small[8], out[8], *in_desc = in_small;
    if (n->pub.n_in > 8) {
        in_desc = eti_arena_alloc(&g->arena, (size_t)n->pub.n_in * sizeof *in_desc);
        if (!in_desc)
            return ET_ENOMEM;
    }
    for (int i = 0; i < n->pub.n_in; i++) {
        n->pub.in[i] = in[i];
        if (in[i])
            in_desc[i] = in[i]->desc;
        else
            memset(&in_desc[i], 0, sizeof in_desc[i]);
    }
    memset(out, 0, sizeof out);
    ET_ASSERT(op->n_out <= 8);
    const struct et_call call = {
        .op = op->id,
        .n_in = n->pub.n_in,
        .n_out = op->n_out,
        .attr = n->pub.attr,
        .attr_size = n->pub.attr_size,
        .in = in_desc,
        .out = out,
    };
    int64_t view_offset = 0;
    et_status status = op->infer(g->cx, &call, out, &view_offset);
    if (status != ET_OK)
        return ET_FAIL(g->cx, status, "%s: operands do not fit", op->name);
    for (int i = 0; i < op->n_out; i++) {
        struct et_tensor *t = &n->pub.out[i];
        t->desc = out[i];
        t->node = &n->pub;
        t->output = i;
        t->generation = g->generation;
        t->offset = view_offset;
    }
    return ET_OK;
}

static struct et_tensor *
refuse_operand(struct et_graph *g, const struct et_op *op, int i,
               const struct et_tensor *t)
{
    char call[64], which[32];
    /* A class of the user's has no function of its name. */
    snprintf(call, sizeof call, "%s%s", op->id == ET_OP_custom ? "" : "et_", op->name);
    snprintf(which, sizeof which, "operand %d", i + 1);
    return eti_graph_fail(g, eti_unusable(g, call, which, t));
}

struct et_tensor *
eti_apply_op(struct et_graph *g, const struct et_op *op, struct et_tensor *const *in,
             int n_in, const void *attr, size_t attr_size, struct et_tensor **out)
{
    for (int i = 0; out && i < op->n_out; i++)
        out[i] = NULL;
    if (!g) {
        (void)ET_FAIL(NULL, ET_EINVAL, "et_%s: g is NULL", op->name);
        return NULL;
    }
    if (g->status != ET_OK)
        return NULL;
    if (n_in < op->min_in || (op->max_in >= 0 && n_in > op->max_in))
        return eti_graph_fail(g, ET_FAIL(g->cx, ET_EINVAL,
                                         "%s takes %d to %d operands, got %d", op->name,
                                         op->min_in, op->max_in, n_in));
    for (int i = 0; i < n_in; i++)
        if (in[i] ? !eti_is_usable(g, in[i]) : i < op->min_in)
            return refuse_operand(g, op, i, in[i]);
    et_status status = g->low ? eti_autocast(g, op->id, &in, n_in) : ET_OK;
    if (status != ET_OK)
        return eti_graph_fail(g, status);
    struct eti_node *n = new_node(g, op, n_in, attr, attr_size);
    if (!n)
        return eti_graph_fail(g, ET_ENOMEM);
    status = infer(g, n, in);
    if (status != ET_OK)
        return eti_graph_fail(g, status);
    g->node[g->n_nodes++] = &n->pub;
    if (g->eager && (status = eti_eager_run(g, &n->pub)) != ET_OK)
        return eti_graph_fail(g, status);
    for (int i = 0; out && i < op->n_out; i++)
        out[i] = &n->pub.out[i];
    return op->n_out ? &n->pub.out[0] : NULL;
}

struct et_tensor *
et_apply(struct et_graph *g, enum et_op_id id, struct et_tensor *const *in, int n_in,
         const void *attr, size_t attr_size, struct et_tensor **out)
{
    ETI_NEED_IN(g, g);
    return eti_apply_op(g, et_op_get(id), in, n_in, attr, attr_size, out);
}

/* The assignment to LEAF that is pending, or NULL. */
static struct eti_assignment *
find_assignment(struct et_graph *g, const struct et_tensor *leaf)
{
    for (int i = 0; i < g->n_assign; i++)
        if (g->assign[i].leaf == leaf)
            return &g->assign[i];
    return NULL;
}

/* Drops what LEAF has been assigned, and with it its shadow. */
static void
drop_assignment(struct et_graph *g, const struct et_tensor *leaf)
{
    struct eti_assignment *pending = find_assignment(g, leaf);
    if (!pending)
        return;
    const struct et_tensor *low = pending->shadow;
    *pending = g->assign[--g->n_assign];
    if (low)
        drop_assignment(g, low);
}

void
et_reassign(struct et_graph *g, struct et_tensor *leaf, struct et_tensor *value)
{
    if (!g)
        return;
    drop_assignment(g, leaf);
    et_assign(g, leaf, value);
}

void
et_assign(struct et_graph *g, struct et_tensor *leaf, struct et_tensor *value)
{
    if (!g)
        return;
    char a[128], b[128];
    if (g->status != ET_OK)
        return;
    et_status status = eti_check_usable(g, "et_assign", "the leaf", leaf);
    if (status == ET_OK)
        status = eti_check_usable(g, "et_assign", "the value", value);
    if (status != ET_OK) {
        eti_graph_fail(g, status);
        return;
    }
    if (leaf->node) {
        eti_graph_fail(g, ET_FAIL(g->cx, ET_EINVAL, "assign: %s is not a leaf",
                                  et_desc_text(&leaf->desc, a, sizeof a)));
        return;
    }
    if (leaf->desc.dtype != value->desc.dtype ||
        !et_desc_same_shape(&leaf->desc, &value->desc)) {
        eti_graph_fail(g, ET_FAIL(g->cx, ET_ESHAPE, "assign: %s cannot take %s",
                                  et_desc_text(&leaf->desc, a, sizeof a),
                                  et_desc_text(&value->desc, b, sizeof b)));
        return;
    }
    if (find_assignment(g, leaf)) {
        eti_graph_fail(
            g,
            ET_FAIL(g->cx, ET_EINVAL, "assign: %s is assigned twice in one evaluation",
                    leaf->name ? leaf->name : et_desc_text(&leaf->desc, a, sizeof a)));
        return;
    }
    status =
        eti_grow(g->cx, &g->assign, &g->cap_assign, g->n_assign + 1, sizeof *g->assign);
    if (status != ET_OK) {
        eti_graph_fail(g, status);
        return;
    }
    struct et_tensor *low = eti_shadow_leaf(g, leaf);
    g->assign[g->n_assign++] = (struct eti_assignment){leaf, value, low};
    if (low)
        et_assign(g, low, et_cast(g, value, low->desc.dtype));
}

struct et_tensor *
et_pending(struct et_graph *g, struct et_tensor *leaf)
{
    ETI_NEED_IN(g, g);
    for (int i = 0; i < g->n_assign; i++)
        if (g->assign[i].leaf == leaf)
            return g->assign[i].value;
    return leaf;
}

void
et_graph_abandon(struct et_graph *g)
{
    if (!g)
        return;
    g->n_assign = 0;
    g->status = ET_OK;
}

void
et_graph_set_dry(struct et_graph *g, bool dry)
{
    if (!g)
        return;
    g->dry = dry;
}

void
et_graph_last_plan(const struct et_graph *g, struct et_plan_info *info)
{
    if (!g || !info)
        return;
    *info = g->last;
}

void
et_graph_shortage(const struct et_graph *g, size_t *needed, size_t *had)
{
    if (!g || !needed || !had)
        return;
    *needed = g->short_of;
    *had = g->had;
}

int64_t
eti_aligned_columns(const struct et_graph *g)
{
    return g->dev->table->aligned_columns;
}
