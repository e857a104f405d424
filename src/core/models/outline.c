/* SPDX-License-Identifier: Apache-2.0 */
/* outline.c: see outline.h. The evaluation of one sample is built as a graph and not
 * run; et_forward tells when a module has been gone through. */
#include "core/models/outline.h"

#include <stdio.h>
#include <string.h>

#include "core/graph/graph_impl.h"
#include "core/models/language.h"
#include "core/models/ways.h"

/* ---- rows ---- */

static int
count_modules(struct et_module *m)
{
    struct et_module **child;
    const char *name;
    int n = 1;
    for (int i = 0; (child = et_module_child(m, i, &name)) != NULL; i++)
        if (*child)
            n += count_modules(*child);
    return n;
}

static int64_t
own_params(struct et_module *m)
{
    struct et_param *p;
    const char *name;
    int64_t n = 0;
    for (int i = 0; (p = et_module_param(m, i, &name)) != NULL; i++)
        if (p->desc.dtype != ET_NONE && p->kind == ET_PARAM)
            n += et_desc_count(&p->desc);
    return n;
}

static bool
is_listed(const struct eti_outline *o, const struct et_module *m)
{
    for (int i = 0; i < o->n; i++)
        if (o->v[i].module == m)
            return true;
    return false;
}

static void
list(struct eti_outline *o, struct et_module *m, const char *path, int depth)
{
    struct et_module **child;
    const char *name;
    int at = o->n;
    struct eti_outline_row *r = &o->v[at];
    bool again = is_listed(o, m);
    const char *block = eti_ways_block(m);
    *r = (struct eti_outline_row){
        .module = m,
        .layer = block ? block : m->type->info.class_name,
        .depth = depth,
    };
    snprintf(r->path, sizeof r->path, "%s", path);
    r->params = again ? 0 : own_params(m);
    o->n++;
    for (int i = 0; (child = et_module_child(m, i, &name)) != NULL; i++) {
        char below[sizeof r->path];
        if (!*child || snprintf(below, sizeof below, "%s%s%s", path, *path ? "." : "",
                                name) >= (int)sizeof below)
            continue;
        int first = o->n;
        list(o, *child, below, depth + 1);
        o->v[at].params += again ? 0 : o->v[first].params;
    }
    o->v[at].end = o->n;
}

/* ---- costs ---- */

struct looking {
    struct eti_outline *o;
    int n_nodes; /* that belong to modules already */
};

static int64_t
node_flops(const struct et_node *n)
{
    struct et_desc in[16];
    if (n->op->flags & ET_OPF_VIEW)
        return 0;
    if (!n->op->flops || n->n_in > 16)
        return et_desc_count(&n->out[0].desc);
    for (int i = 0; i < n->n_in; i++)
        in[i] = n->in[i] ? n->in[i]->desc : (struct et_desc){0};
    const struct et_call call = {
        .op = n->op->id,
        .attr = n->attr,
        .n_in = n->n_in,
        .n_out = n->n_out,
        .in = in,
        .out = &n->out[0].desc,
    };
    return n->op->flops(&call);
}

/* What has been built since a module was last left is M's. */
static void
look(void *data, struct et_graph *g, struct et_module *m, struct et_tensor *x,
     struct et_tensor *y)
{
    struct looking *l = data;
    int i = 0;
    (void)x;
    while (i < l->o->n && l->o->v[i].module != m)
        i++;
    if (i == l->o->n || !y)
        return;
    struct eti_outline_row *r = &l->o->v[i];
    for (; l->n_nodes < g->n_nodes; l->n_nodes++)
        r->flops += node_flops(g->node[l->n_nodes]);
    r->out = y->desc;
    r->called = true;
}

/* Zeros for M's leaves: nothing is computed with them. */
static et_status
bind(struct et_ctx *cx, struct et_model *m, struct et_device *dev)
{
    struct et_leaves l;
    ET_TRY(et_module_leaves(cx, m->root, ET_PARAM | ET_BUFFER, &l));
    et_status status = ET_OK;
    for (int i = 0; i < l.n && status == ET_OK; i++) {
        struct et_param *p = l.v[i].param;
        if (!p->tensor)
            status = et_tensor_new(cx, dev, ET_F32, p->desc.ndim, p->desc.shape,
                                   p->desc.ndim == 4 ? ET_CHANNELS_LAST : ET_ROW_MAJOR,
                                   l.v[i].name, &p->tensor);
    }
    et_leaves_release(&l);
    return status;
}

static et_status
new_input(struct et_ctx *cx, const struct et_model *m, struct et_device *dev,
          struct et_tensor **x)
{
    const struct et_model_facts *f = &m->facts;
    if (eti_reads_tokens(m))
        return et_tensor_new(cx, dev, ET_I32, 2, (const int64_t[]){1, f->seq_len},
                             ET_ROW_MAJOR, "input", x);
    if (f->height > 0)
        return et_tensor_new(cx, dev, ET_F32, 4,
                             (const int64_t[]){1, f->channels, f->height, f->width},
                             ET_CHANNELS_LAST, "input", x);
    return et_tensor_new(cx, dev, ET_F32, 2, (const int64_t[]){1, f->channels},
                         ET_ROW_MAJOR, "input", x);
}

static et_status
measure(struct et_ctx *cx, struct et_model *m, struct et_device *dev,
        struct eti_outline *o)
{
    struct looking l = {.o = o};
    struct et_samples samples = {0};
    struct et_tensor *x = NULL;
    struct et_graph *g = NULL;
    ET_TRY(bind(cx, m, dev));
    et_status status = new_input(cx, m, dev, &x);
    if (status == ET_OK)
        status = eti_ways_samples(cx, m->root, dev, x, &samples);
    if (status == ET_OK)
        status = et_graph_new(cx, dev, &g);
    if (status == ET_OK) {
        struct et_forward f = {
            .g = g, .samples = &samples, .look = look, .look_data = &l};
        (void)et_model_forward(m, &f, x); /* the graph's status says what is wrong */
        status = et_graph_status(g);
        et_graph_free(&g);
    }
    et_tensor_free(&x);
    eti_ways_release(&samples);
    /* What is in a module counts for it, too: from the last row to the first. */
    for (int i = o->n; i-- > 0;)
        for (int k = i + 1; k < o->v[i].end; k = o->v[k].end)
            o->v[i].flops += o->v[k].flops;
    return status;
}

et_status
eti_model_outline(struct et_ctx *cx, struct et_model *m, struct et_device *dev,
                  struct eti_outline *out)
{
    void *block;
    *out = (struct eti_outline){.cx = cx};
    ET_TRY(et_alloc(cx, (size_t)count_modules(m->root) * sizeof *out->v, &block));
    out->v = block;
    list(out, m->root, "", 0);
    et_status status = measure(cx, m, dev, out);
    if (status != ET_OK)
        eti_outline_release(out);
    return status;
}

void
eti_outline_release(struct eti_outline *o)
{
    if (o->cx)
        et_free(o->cx, o->v);
    *o = (struct eti_outline){0};
}
