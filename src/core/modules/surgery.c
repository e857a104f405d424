/* SPDX-License-Identifier: Apache-2.0 */
/* surgery.c: replaces modules of a tree. See module.h and spec/algorithms.md 1.9.
 *
 * The edges of the tree are listed before anything changes, so replacements are never
 * walked and every parent of a shared module is found. */
#include "etude/module.h"
#include "core/base/need.h"

#include <string.h>

/* All references below the root, in pre-order: edge i is the first one to its module
 * exactly when `first` is set. */
struct edge {
    struct et_module **slot;
    struct et_module *child;
    bool first;
};

struct edges {
    struct edge *v;
    int n;
};

/* Counts (V NULL) or lists the references below M. */
static void
list_edges(struct et_module *m, struct edges *e, struct edge *v)
{
    struct et_module **slot;
    for (int i = 0; (slot = et_module_child(m, i, NULL)); i++) {
        if (!*slot)
            continue;
        bool first = true;
        for (int j = 0; v && j < e->n && first; j++)
            first = v[j].child != *slot;
        if (v)
            v[e->n] = (struct edge){slot, *slot, first};
        e->n++;
        if (first)
            list_edges(*slot, e, v);
    }
}

static et_status
edges_new(struct et_ctx *cx, struct et_module *root, struct edges *out)
{
    void *block;
    *out = (struct edges){0};
    list_edges(root, out, NULL); /* shared subtrees count again: an upper bound */
    ET_TRY(et_alloc(cx, (size_t)(out->n + 1) * sizeof *out->v, &block));
    out->v = block;
    out->n = 0;
    list_edges(root, out, out->v);
    return ET_OK;
}

static void
relink(struct edges *e, struct et_module *before, struct et_module *after)
{
    for (int i = 0; i < e->n; i++) {
        if (e->v[i].child != before || *e->v[i].slot != before)
            continue;
        struct et_module *old = *e->v[i].slot;
        *e->v[i].slot = et_module_ref(after);
        et_module_free(&old);
    }
}

/* A policy may drop a child that the walk has yet to come to. */
static void
hold_children(const struct edges *e)
{
    for (int i = 0; i < e->n; i++)
        if (e->v[i].first)
            (void)et_module_ref(e->v[i].child);
}

static void
release_children(const struct edges *e)
{
    for (int i = 0; i < e->n; i++)
        if (e->v[i].first)
            et_module_free(&e->v[i].child);
}

static bool
is_dropped(const struct et_module *held)
{
    return held->refs == 1;
}

static et_status
replace_one(struct et_ctx *cx, struct edges *e, struct et_module *m,
            const struct et_surgery_policy *policies, int n, int *met, void *data,
            struct et_surgery *out)
{
    struct et_module *after = NULL;
    for (int k = 0; k < n; k++) {
        struct et_module *made = NULL;
        if (!et_module_is(m, policies[k].type))
            continue;
        ET_TRY(policies[k].replace(cx, m, met[k]++, data, &made));
        if (made && after) {
            et_module_free(&made);
            return ET_FAIL(cx, ET_EINVAL, "two policies of one surgery replace a %s",
                           m->type->info.class_name);
        }
        if (!made)
            continue;
        after = made;
        out->pair[out->n++] = (struct et_surgery_pair){et_module_ref(m), after};
        relink(e, m, after);
    }
    return ET_OK;
}

et_status
et_module_replace(struct et_ctx *cx, struct et_module *root,
                  const struct et_surgery_policy *policies, int n, void *data,
                  struct et_surgery *out)
{
    ETI_NEED(cx, cx, root, out);
    struct edges e;
    void *pairs = NULL, *met = NULL;
    *out = (struct et_surgery){.cx = cx};
    ET_TRY(edges_new(cx, root, &e));
    et_status status = et_alloc(cx, (size_t)(e.n + 1) * sizeof *out->pair, &pairs);
    if (status == ET_OK)
        status = et_alloc(cx, (size_t)(n + 1) * sizeof(int), &met);
    out->pair = pairs;
    hold_children(&e);
    for (int i = 0; i < e.n && status == ET_OK; i++)
        if (e.v[i].first && !is_dropped(e.v[i].child))
            status = replace_one(cx, &e, e.v[i].child, policies, n, met, data, out);
    release_children(&e);
    et_free(cx, met);
    et_free(cx, e.v);
    return status;
}

void
et_surgery_release(struct et_surgery *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->n; i++) {
        et_module_free(&s->pair[i].before);
        et_module_free(&s->pair[i].after);
    }
    if (s->pair)
        et_free(s->cx, s->pair);
    *s = (struct et_surgery){0};
}

et_status
et_module_count_class(struct et_ctx *cx, struct et_module *root,
                      const struct et_module_class *type, int *out)
{
    ETI_NEED(cx, cx, root, out);
    struct edges e;
    *out = 0;
    ET_TRY(edges_new(cx, root, &e));
    for (int i = 0; i < e.n; i++)
        *out += e.v[i].first && et_module_is(e.v[i].child, type);
    et_free(cx, e.v);
    return ET_OK;
}
