/* dump.c: ETUDE_DUMP=graph,plan,memory: what the engine is about to do, as text. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/graph/graph_impl.h"

struct line {
    char text[1024];
    size_t n;
};

static void ET_PRINTF(2, 3)
add(struct line *l, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(l->text + l->n, sizeof l->text - l->n, fmt, args);
    va_end(args);
    if (n > 0)
        l->n += (size_t)n;
    if (l->n >= sizeof l->text)
        l->n = sizeof l->text - 1;
}

void
eti_dump_graph(const struct et_graph *g)
{
    char text[128];
    et_report(g->cx, ET_LOG_INFO, "graph: %d nodes, %d assignments", g->n_nodes, g->n_assign);
    for (int i = 0; i < g->n_nodes; i++) {
        const struct et_node *n = g->node[i];
        struct line l = {.n = 0};
        add(&l, "  %%%u = %s(", n->id, n->op->name);
        for (int j = 0; j < n->n_in; j++) {
            const struct et_tensor *t = n->in[j];
            add(&l, "%s", j ? ", " : "");
            if (!t)
                add(&l, "-");
            else if (!t->node)
                add(&l, "%s", t->name ? t->name : et_desc_text(&t->desc, text, sizeof text));
            else if (t->output)
                add(&l, "%%%u.%d", t->node->id, t->output);
            else
                add(&l, "%%%u", t->node->id);
        }
        add(&l, ")");
        for (int j = 0; j < n->n_out; j++)
            add(&l, " %s", et_desc_text(&n->out[j].desc, text, sizeof text));
        et_report(g->cx, ET_LOG_INFO, "%s", l.text);
    }
}

static void
add_value(struct line *l, const struct eti_ir *ir, int value)
{
    if (value < 0) {
        add(l, "-");
        return;
    }
    const struct eti_value *v = &ir->value[value];
    const struct eti_value *root = &ir->value[v->root];
    if (root->leaf >= 0 && ir->binding[root->leaf]->name)
        add(l, "%s", ir->binding[root->leaf]->name);
    else
        add(l, "v%d", v->root);
    if (v->root != value)
        add(l, "+%lld", (long long)v->offset);
}

static void
add_program(struct line *l, const struct et_fused_attr *a)
{
    add(l, " {");
    for (int k = 0; k < a->n_steps; k++) {
        const struct et_fused_step *s = &a->step[k];
        add(l, "%sr%d=%s", k ? "; " : "", a->n_in + k,
            et_op_get((enum et_op_id)s->op)->name);
        for (int i = 0; i < s->n_src; i++)
            add(l, " r%d", s->src[i]);
    }
    add(l, "}");
}

void
eti_dump_plan(const struct eti_ir *ir)
{
    char text[128];
    et_report(ir->g->cx, ET_LOG_INFO, "plan: %d nodes became %d steps", ir->n_nodes,
              ir->n_steps);
    for (int i = 0; i < ir->n_steps; i++) {
        const struct eti_step *s = &ir->step[i];
        struct line l = {.n = 0};
        if (!s->op)
            continue;
        add(&l, "  %4d %s%s ", i, s->commit ? "commit " : "", s->op->name);
        for (int j = 0; j < s->n_in; j++) {
            add(&l, "%s", j ? "," : "");
            add_value(&l, ir, s->in[j]);
        }
        add(&l, " -> ");
        for (int j = 0; j < s->n_out; j++) {
            add(&l, "%s", j ? "," : "");
            add_value(&l, ir, s->out[j]);
            if (s->out[j] >= 0)
                add(&l, ":%s", et_desc_text(&ir->value[s->out[j]].desc, text, sizeof text));
        }
        if (s->op->id == ET_OP_fused)
            add_program(&l, s->attr);
        et_report(ir->g->cx, ET_LOG_INFO, "%s", l.text);
    }
}

void
eti_dump_memory(const struct eti_ir *ir, size_t slab, size_t output)
{
    static const char *const places[] = {"slab", "output", "leaf", "value"};
    char text[128];
    et_report(ir->g->cx, ET_LOG_INFO, "memory: slab %zu bytes, outputs %zu", slab, output);
    for (int i = 0; i < ir->n_values; i++) {
        const struct eti_value *v = &ir->value[i];
        if (v->root != i || v->leaf >= 0 || v->first < 0)
            continue;
        et_report(ir->g->cx, ET_LOG_INFO, "  v%d %s steps %d-%d in %s %lld", i,
                  et_desc_text(&v->desc, text, sizeof text), v->first, v->last,
                  places[v->place],
                  v->place == ETI_IN_SLAB || v->place == ETI_IN_OUTPUT ? (long long)v->at
                                                                       : (long long)v->into);
    }
}
