/* SPDX-License-Identifier: Apache-2.0 */
/* usable.c: why a graph cannot use a tensor that it was given.
 *
 * Each of these is a mistake of the caller that would otherwise compute with memory
 * that has nothing to do with the graph. What is here runs only when there is one. */
#include "config.h"

#include <stdio.h>

#include "core/base/need.h"
#include "core/graph/graph_impl.h"
#include "core/ops/ops.h"

/* The graph of G's context whose present step is GENERATION, or NULL. */
static const struct et_graph *
graph_at(const struct et_graph *g, uint32_t generation)
{
    for (const struct et_device *d = eti_ctx_devices(g->dev->cx); d; d = d->next)
        for (const struct et_graph *other = d->graphs; other; other = other->next)
            if (other->generation == generation)
                return other;
    return NULL;
}

static et_status
refuse_value(struct et_graph *g, const char *call, const char *which,
             const struct et_tensor *t)
{
    const struct et_graph *other = graph_at(g, t->generation);
    if (!other)
        return ET_FAIL(g->cx, ET_EINVAL, "%s: %s is a value of a step that has ended",
                       call, which);
    return ET_FAIL(g->cx, ET_EINVAL,
                   "%s: %s is a value of another graph (on the device '%s', this one "
                   "is on '%s')",
                   call, which, et_device_name(other->dev), et_device_name(g->dev));
}

static et_status
refuse_leaf(struct et_graph *g, const char *call, const char *which,
            const struct et_tensor *t)
{
    const char *name = t->name ? t->name : "a leaf";
    if (eti_is_freed(t))
        return ET_FAIL(g->cx, ET_EINVAL, "%s: %s (%s) has been freed", call, which,
                       name);
    return ET_FAIL(g->cx, ET_EINVAL,
                   "%s: %s (%s) is on another device, '%s'; the graph is on '%s'", call,
                   which, name, et_device_name(t->storage->dev),
                   et_device_name(g->dev));
}

et_status
eti_unusable(struct et_graph *g, const char *call, const char *which,
             const struct et_tensor *t)
{
    if (!t)
        return ET_FAIL(g->cx, ET_EINVAL, "%s: %s is NULL", call, which);
    return t->node ? refuse_value(g, call, which, t) : refuse_leaf(g, call, which, t);
}

/* ---- leaves that were freed ---- */

/* The storage of them all. It is on no device, so that no graph takes them. */
static struct et_storage *
nowhere(void)
{
    static const struct et_storage storage;
    return (struct et_storage *)&storage; /* nobody writes to it */
}

bool
eti_is_freed(const struct et_tensor *t)
{
    return t->storage == nowhere();
}

static bool
is_empty(const struct et_graph *g)
{
    return g->n_nodes == 0 && g->n_assign == 0;
}

/* The list of them goes through plan_id, which only a usable leaf needs. */
bool
eti_keep_freed(struct et_device *dev, struct et_tensor *t)
{
    const struct et_graph *g = dev->graphs;
    if (!eti_ctx_checks(dev->cx))
        return false;
    while (g && is_empty(g))
        g = g->next;
    if (!g)
        return false;
    t->storage = nowhere();
    t->plan_id = (uintptr_t)dev->freed;
    dev->freed = t;
    return true;
}

void
eti_release_freed(struct et_device *dev)
{
    struct et_tensor *next;
    for (struct et_tensor *t = dev->freed; t; t = next) {
        next = (struct et_tensor *)(uintptr_t)t->plan_id;
        et_free(dev->cx, t);
    }
    dev->freed = NULL;
}

void
eti_forget_freed(struct et_graph *g)
{
    for (const struct et_graph *other = g->dev->graphs; other; other = other->next)
        if (other != g && !is_empty(other))
            return;
    eti_release_freed(g->dev);
}

et_status
eti_check_usable(struct et_graph *g, const char *call, const char *which,
                 const struct et_tensor *t)
{
    return t && eti_is_usable(g, t) ? ET_OK : eti_unusable(g, call, which, t);
}

struct et_tensor *
eti_missing(struct et_graph *g, const char *call, struct et_tensor *const *in, int n)
{
    char which[32];
    int i = 0;
    if (!g)
        return eti_graph_null(NULL, call, "g", 0);
    if (g->status != ET_OK)
        return NULL;
    while (i < n && in[i])
        i++;
    ET_ASSERT(i < n);
    snprintf(which, sizeof which, "operand %d", i + 1);
    return eti_graph_fail(g, eti_unusable(g, call, which, NULL));
}

struct et_tensor *
eti_graph_null(struct et_graph *g, const char *call, const char *names, int i)
{
    if (!g || g->status == ET_OK) {
        et_status status = eti_null(g ? g->cx : NULL, call, names, i);
        return g ? eti_graph_fail(g, status) : NULL;
    }
    return NULL;
}
