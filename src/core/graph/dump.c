/* SPDX-License-Identifier: Apache-2.0 */
/* dump.c: ETUDE_DUMP=graph,passes,plan,memory: what the engine is about to do, as text.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph/graph_impl.h"

struct line {
    char text[1024];
    size_t n;
};

ET_PRINTF(2, 3)
static void
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
    et_report(g->cx, ET_LOG_INFO, "graph: %d nodes, %d assignments", g->n_nodes,
              g->n_assign);
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
                add(&l, "%s",
                    t->name ? t->name : et_desc_text(&t->desc, text, sizeof text));
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

/* ---- lines ---- */

enum {
    WIDTH = 86,  /* columns of lines: 99 behind "etude: info: " */
    INDENT = 13, /* of what continues a line */
    SHOWN = 12,  /* operands named of one kernel */
};

static void
finish(const struct et_graph *g, struct line *l)
{
    if (l->n > 0)
        et_report(g->cx, ET_LOG_INFO, "%s", l->text);
    l->n = 0;
}

/* Adds a word, on a new line where it does not fit on this one. */
ET_PRINTF(3, 4)
static void
add_word(const struct et_graph *g, struct line *l, const char *fmt, ...)
{
    char word[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(word, sizeof word, fmt, args);
    va_end(args);
    bool fits = l->n + 1 + strlen(word) <= WIDTH;
    if (l->n > 0 && !fits)
        finish(g, l);
    add(l, "%*s%s", l->n > 0 ? 1 : INDENT, "", word);
}

/* ---- the passes ---- */

void
eti_dump_passes(const struct eti_ir *ir)
{
    et_report(ir->g->cx, ET_LOG_INFO, "passes: %d nodes became %d steps", ir->n_nodes,
              ir->n_steps);
    et_report(ir->g->cx, ET_LOG_INFO, "%-16s %6s %6s %s", "pass", "before", "after",
              "steps less and more");
}

void
eti_dump_pass(const struct et_graph *g, const char *name, const int before[ET_OP_COUNT],
              const int after[ET_OP_COUNT])
{
    int was = 0, is = 0;
    for (int i = 0; i < ET_OP_COUNT; i++) {
        was += before[i];
        is += after[i];
    }
    struct line l = {.n = 0};
    add(&l, "%-16s %6d %6d", name, was, is);
    for (int i = 0; i < ET_OP_COUNT; i++)
        if (after[i] != before[i])
            add_word(g, &l, "%s %+d", et_op_get((enum et_op_id)i)->name,
                     after[i] - before[i]);
    finish(g, &l);
}

/* ---- the plan ---- */

static const char *
value_name(const struct eti_ir *ir, int value, char *buf, size_t n)
{
    if (value < 0)
        return "-";
    const struct eti_value *v = &ir->value[value];
    const struct eti_value *root = &ir->value[v->root];
    char offset[32] = "";
    if (v->root != value)
        snprintf(offset, sizeof offset, "+%lld", (long long)v->offset);
    if (root->leaf >= 0 && ir->binding[root->leaf]->name)
        snprintf(buf, n, "%s%s", ir->binding[root->leaf]->name, offset);
    else
        snprintf(buf, n, "v%d%s", v->root, offset);
    return buf;
}

static void
add_operands(const struct eti_ir *ir, struct line *l, const struct eti_step *s)
{
    char name[256], text[128];
    for (int i = 0; i < s->n_in && i < SHOWN; i++)
        add_word(ir->g, l, "%s", value_name(ir, s->in[i], name, sizeof name));
    if (s->n_in > SHOWN)
        add_word(ir->g, l, "and %d more", s->n_in - SHOWN);
    add_word(ir->g, l, "->");
    for (int i = 0; i < s->n_out; i++)
        add_word(ir->g, l, "%s%s%s", value_name(ir, s->out[i], name, sizeof name),
                 s->out[i] < 0 ? "" : ":",
                 s->out[i] < 0
                     ? ""
                     : et_desc_text(&ir->value[s->out[i]].desc, text, sizeof text));
}

static void
add_program(const struct eti_ir *ir, struct line *l, const struct et_fused_attr *a)
{
    for (int k = 0; k < a->n_steps; k++) {
        const struct et_fused_step *s = &a->step[k];
        struct line word = {.n = 0};
        add(&word, "r%d=%s", a->n_in + k, et_op_get((enum et_op_id)s->op)->name);
        for (int i = 0; i < s->n_src; i++)
            add(&word, "%cr%d", i ? ',' : '(', s->src[i]);
        add_word(ir->g, l, "%s)", word.text);
    }
}

/* What kernels, or those of one operation, come to. */
struct sum {
    int kernels;
    int64_t flops, bytes;
    double seconds, computing; /* the least; that of those bound by arithmetic */
};

static void
add_to(struct sum *to, const struct eti_step *s, double seconds, const char *bound)
{
    to->kernels++;
    to->flops += s->flops;
    to->bytes += s->bytes;
    to->seconds += seconds;
    to->computing += strcmp(bound, "memory") == 0 ? 0 : seconds;
}

/* "     1.573       0.805   512.0       1.6" */
static void
add_costs(struct line *l, int64_t bytes, int64_t flops, double seconds)
{
    add(l, "%11.3f %11.3f", (double)bytes / 1e6, (double)flops / 1e9);
    if (bytes > 0)
        add(l, " %8.1f", (double)flops / (double)bytes);
    else
        add(l, " %8s", "-");
    if (seconds > 0)
        add(l, " %10.2f", seconds * 1e6);
    else
        add(l, " %10s", "-");
}

static void
dump_step(const struct eti_ir *ir, int i, double seconds, const char *bound)
{
    const struct eti_step *s = &ir->step[i];
    const struct et_device_table *t = ir->g->dev->table;
    struct line l = {.n = 0};
    add(&l, "%6d ", i);
    add_costs(&l, s->bytes, s->flops, seconds);
    add(&l, "  %-6s  %s%s%s", bound, s->op->name, s->commit ? " (writes a leaf)" : "",
        eti_step_runs(s) ? ""
        : s->once        ? " (in the first run alone)"
                         : " (no kernel)");
    finish(ir->g, &l);
    if (s->kernel && t->describe)
        add_word(ir->g, &l, "[%s]", t->describe(s->kernel));
    add_operands(ir, &l, s);
    finish(ir->g, &l);
    if (s->op->id == ET_OP_fused)
        add_program(ir, &l, s->attr);
    finish(ir->g, &l);
}

static void
dump_sum(const struct eti_ir *ir, const char *name, const struct sum *sum)
{
    struct line l = {.n = 0};
    add(&l, "%6d ", sum->kernels);
    add_costs(&l, sum->bytes, sum->flops, sum->seconds);
    add(&l, "          %s", name);
    finish(ir->g, &l);
}

static void
dump_peak(const struct et_graph *g, const struct et_device_peak *peak)
{
    struct line l = {.n = 0};
    add(&l, "  peaks of %s:",
        getenv("ETUDE_ROOFLINE") ? "ETUDE_ROOFLINE" : g->dev->table->name);
    size_t none = l.n;
    if (peak->bytes > 0)
        add_word(g, &l, "memory %.4g TB/s,", peak->bytes / 1e12);
    if (peak->plain > 0)
        add_word(g, &l, "plain %.4g TFLOP/s,", peak->plain / 1e12);
    for (int i = 0; i < ET_DTYPE_COUNT; i++)
        if (peak->product[i] > 0)
            add_word(g, &l, "%s products %.4g TFLOP/s,",
                     et_dtype_name((enum et_dtype)i), peak->product[i] / 1e12);
    if (l.n == none)
        add_word(g, &l, "not known; ETUDE_ROOFLINE=memory=2e10,f32=2e11 would say");
    else
        l.text[l.n - 1] = '\0';
    finish(g, &l);
}

void
eti_dump_plan(const struct eti_ir *ir, const struct et_device_peak *peak)
{
    struct et_ctx *cx = ir->g->cx;
    struct sum all = {0}, of[ET_OP_COUNT] = {{0}};
    et_report(cx, ET_LOG_INFO, "plan: %d nodes became %d steps", ir->n_nodes,
              ir->n_steps);
    et_report(cx, ET_LOG_INFO, "%6s %11s %11s %8s %10s  %-6s  %s", "step", "MB",
              "GFLOP", "FLOP/B", "least us", "bound", "operation");
    for (int i = 0; i < ir->n_steps; i++) {
        const struct eti_step *s = &ir->step[i];
        const char *bound;
        if (!s->op)
            continue;
        double seconds = eti_least_seconds(peak, ir, s, &bound);
        dump_step(ir, i, seconds, bound);
        if (eti_step_runs(s)) {
            add_to(&all, s, seconds, bound);
            add_to(&of[s->op->id], s, seconds, bound);
        }
    }
    et_report(cx, ET_LOG_INFO, "%6s %11s %11s %8s %10s          %s", "count", "MB",
              "GFLOP", "FLOP/B", "least us", "operation");
    for (int i = 0; i < ET_OP_COUNT; i++)
        if (of[i].kernels > 0)
            dump_sum(ir, et_op_get((enum et_op_id)i)->name, &of[i]);
    dump_sum(ir, "all kernels", &all);
    if (all.seconds > 0)
        et_report(cx, ET_LOG_INFO,
                  "  of these %.2f us bound by arithmetic, %.2f by memory",
                  all.computing * 1e6, (all.seconds - all.computing) * 1e6);
    dump_peak(ir->g, peak);
}

void
eti_dump_memory(const struct eti_ir *ir, size_t slab, size_t output)
{
    static const char *const places[] = {"slab", "output", "leaf", "value"};
    char text[128];
    et_report(ir->g->cx, ET_LOG_INFO, "memory: slab %zu bytes, outputs %zu", slab,
              output);
    for (int i = 0; i < ir->n_values; i++) {
        const struct eti_value *v = &ir->value[i];
        if (v->root != i || v->leaf >= 0 || v->first < 0)
            continue;
        et_report(ir->g->cx, ET_LOG_INFO, "  v%d %s steps %d-%d in %s %lld", i,
                  et_desc_text(&v->desc, text, sizeof text), v->first, v->last,
                  places[v->place],
                  v->place == ETI_IN_SLAB || v->place == ETI_IN_OUTPUT
                      ? (long long)v->at
                      : (long long)v->into);
    }
}
