/* SPDX-License-Identifier: Apache-2.0 */
/* update.c: what one update appends to a graph: the formulas of each run of parameters,
 * their numbers, and what a skipped update leaves as it is. See optimizer_impl.h. */
#include "core/optim/optimizer_impl.h"

#include <string.h>

#include "core/base/memory.h"
#include "core/base/need.h"
#include "core/graph/graph_impl.h"
#include "etude/ctx.h"
#include "etude/module.h"

static et_status
new_run(struct et_optimizer *opt, const struct et_param_slot *first, int64_t end,
        struct eti_param_run *r)
{
    struct et_desc desc;
    int64_t begin = first->offset, shape = end - begin;
    et_desc_init(&desc, ET_F32, 1, &shape, ET_ROW_MAJOR);
    r->begin = begin;
    r->end = end;
    if (opt->type->by_tensor) {
        r->slot = first;
        desc = first->desc;
    }
    ET_TRY(eti_param_space_views(opt->space, begin, &desc, &r->p, r->moment));
    if (!opt->type->by_parameter)
        return ET_OK;
    return eti_param_rows_init(&r->rows, opt->space, opt->type, opt->options, begin,
                               end);
}

/* The run that begins with the parameter FIRST. */
static et_status
find_run(struct et_optimizer *opt, const struct et_param_slot *first, int64_t end,
         struct eti_param_run **out)
{
    for (int i = 0; i < opt->n_runs; i++)
        if (opt->run[i]->begin == first->offset && opt->run[i]->end == end) {
            *out = opt->run[i];
            return ET_OK;
        }
    void *block;
    ET_TRY(eti_grow(opt->cx, &opt->run, &opt->cap_runs, opt->n_runs + 1,
                    sizeof *opt->run));
    ET_TRY(et_alloc(opt->cx, sizeof **opt->run, &block));
    et_status status = new_run(opt, first, end, block);
    if (status != ET_OK) { /* half of one must not be found the next time */
        eti_optimizer_free_run(opt, block);
        return status;
    }
    *out = opt->run[opt->n_runs++] = block;
    return ET_OK;
}

/* *NEXT becomes what the leaf will hold, which is LEAF, or ROWS where *NEXT has their
 * shape, or NULL where it stays. Where SKIP is not 0 (or no number at all) that is what
 * it holds now: the flag itself is the condition, so that it fuses with what it
 * chooses. */
static void
commit(struct et_graph *g, struct et_tensor *skip, struct et_tensor *leaf,
       struct et_tensor *rows, struct et_tensor **next)
{
    struct et_tensor *into = rows && (*next)->desc.ndim == 2 ? rows : leaf;
    if (*next == into) {
        *next = NULL; /* it stays */
        return;
    }
    *next = skip ? et_where(g, skip, into, *next) : *next;
    et_assign(g, into, *next);
}

/* A rule that forgets a result would leave the run where it is, as if it had ended
 * well. */
static et_status
check_written(struct et_graph *g, const struct et_optimizer *opt,
              const struct et_update *u)
{
    const char *of = "", *missing = u->new_p ? NULL : "new_p";
    ET_TRY(et_graph_status(g));
    for (int k = 0; k < opt->n_moments && !missing; k++)
        if (!u->new_moment[k]) {
            of = "new_moment of ";
            missing = opt->type->moments[k];
        }
    for (int k = 0; k < ET_MAX_STATES && !missing; k++)
        if (u->state[k] && !u->new_state[k]) {
            of = "new_state of ";
            missing = opt->type->states[k];
        }
    if (!missing)
        return ET_OK;
    et_status status =
        ET_FAIL(g->cx, ET_EINVAL,
                "optimizer %s: its update does not write %s%s: what stays as it is "
                "has to be assigned, too",
                opt->type->info.name, of, missing);
    eti_graph_fail(g, status);
    return status;
}

/* What a rule by tensor is given of its parameter. */
static void
begin_tensor(struct et_graph *g, const struct et_optimizer *opt,
             const struct eti_param_run *r, struct et_tensor *flat, struct et_update *u)
{
    const struct et_param_space *s = opt->space;
    u->slot = r->slot;
    u->grad = eti_param_shaped(g, flat, r->slot);
    for (int k = 0; k < s->n_states; k++)
        u->state[k] = s->state[k][r->slot - s->slot];
}

/* What leaves the parameters of ROW as they are: SKIP, or their gate. */
static struct et_tensor *
skip_of(struct et_graph *g, const struct eti_update_row *row, struct et_tensor *skip)
{
    if (!row->slot->gate)
        return skip;
    struct et_tensor *closed = et_gate_closed(g, row->slot->gate);
    return skip ? et_where(g, closed, closed, skip) : closed;
}

/* The formulas of row I. */
static et_status
append_row(struct et_graph *g, struct et_optimizer *opt, int i, struct et_tensor *flat,
           struct et_tensor *hyper, struct et_tensor *skip)
{
    const struct eti_param_run *r = opt->row[i].run;
    int64_t at = opt->row[i].slot - opt->space->slot;
    struct et_update *u = &opt->row[i].update;
    *u = (struct et_update){
        .options = opt->options,
        .group = opt->row[i].group,
        .rows = opt->type->by_parameter ? &r->rows : NULL,
        .p = r->p,
        .grad = flat,
    };
    if (r->slot)
        begin_tensor(g, opt, r, flat, u);
    else if (r->end - r->begin != opt->space->total)
        u->grad = et_slice(g, flat, 0, r->begin, r->end - r->begin, 1);
    for (int k = 0; k < opt->n_moments; k++)
        u->moment[k] = r->moment[k];
    for (int h = 0; h < ET_MAX_HYPER; h++)
        u->hyper[h] = et_slice(g, hyper, 0, at * ET_MAX_HYPER + h, 1, 1);
    opt->type->update(g, u);
    ET_TRY(check_written(g, opt, u));
    skip = skip_of(g, &opt->row[i], skip);
    commit(g, skip, r->p, r->rows.p, &u->new_p);
    for (int k = 0; k < opt->n_moments; k++)
        commit(g, skip, r->moment[k], r->rows.moment[k], &u->new_moment[k]);
    for (int k = 0; k < ET_MAX_STATES && r->slot; k++)
        if (u->state[k])
            commit(g, skip, u->state[k], NULL, &u->new_state[k]);
    return ET_OK;
}

/* How many parameters from ORDER[AT] on are of one run. */
static int
run_length(const struct et_optimizer *opt, int at)
{
    const struct et_param_slot *slot = opt->space->slot;
    const struct et_param_slot *first = &slot[opt->order[at]];
    int n = 0;
    while (at + n < opt->space->n) {
        int i = opt->order[at + n];
        int64_t end = slot[i].offset + eti_param_span(&slot[i]);
        if (!opt->pending[i] || slot[i].group != first->group ||
            slot[i].gate != first->gate || slot[i].updates != first->updates ||
            (n > 0 && (opt->type->by_tensor || end - first->offset > opt->longest)))
            break;
        n++;
    }
    return n;
}

/* The numbers of row I for every case, where the host has written them. */
static void
write_row(struct et_optimizer *opt, int i)
{
    const struct eti_update_row *row = &opt->row[i];
    int64_t at = row->slot - opt->space->slot;
    for (int skipped = 0; skipped <= opt->ahead; skipped++) {
        int64_t update = row->slot->updates + 1 - skipped;
        double hyper[ET_MAX_HYPER] = {0};
        opt->type->hyper(opt->options, row->group, update < 1 ? 1 : update, hyper);
        float *to = opt->hyper_host + (skipped * opt->space->n + at) * ET_MAX_HYPER;
        for (int h = 0; h < ET_MAX_HYPER; h++)
            to[h] = (float)hyper[h];
    }
}

/* Splits what is pending into runs: fills ROW and the numbers of each. */
static et_status
make_rows(struct et_optimizer *opt, int *n_rows)
{
    const struct et_param_space *s = opt->space;
    *n_rows = 0;
    for (int at = 0, n; at < s->n; at += n ? n : 1) {
        n = run_length(opt, at);
        if (n == 0)
            continue;
        const struct et_param_slot *first = &s->slot[opt->order[at]];
        const struct et_param_slot *last = &s->slot[opt->order[at + n - 1]];
        struct eti_update_row *row = &opt->row[*n_rows];
        row->group = &opt->group[first->group];
        row->slot = first;
        ET_TRY(find_run(opt, first, last->offset + eti_param_span(last), &row->run));
        write_row(opt, (*n_rows)++);
    }
    return ET_OK;
}

static et_status
send_counts(struct et_optimizer *opt)
{
    float *counts = opt->counts_host + opt->space->n * ET_MAX_HYPER;
    for (int i = 0; i < opt->space->n; i++)
        for (int h = 0; h < ET_MAX_HYPER; h++)
            *counts++ = opt->counted[i];
    return et_tensor_write(opt->cx, opt->counts, opt->counts_host,
                           et_desc_bytes(&opt->counts->desc));
}

static et_status
send_hyper(struct et_optimizer *opt)
{
    if (opt->ahead > 0)
        ET_TRY(send_counts(opt));
    return et_tensor_write(opt->cx, opt->hyper, opt->hyper_host,
                           et_desc_bytes(&opt->hyper->desc));
}

/* Block J of FLAT, an array of some [n][ET_MAX_HYPER]. */
static struct et_tensor *
block_of(struct et_graph *g, const struct et_optimizer *opt, struct et_tensor *flat,
         int j)
{
    const int64_t width = opt->space->n * ET_MAX_HYPER;
    return et_slice(g, flat, 0, j * width, width, 1);
}

/* Numbers that follow from how often a parameter was updated (Adam's bias corrections)
 * depend on updates whose outcome only the device knows: it picks the block that fits,
 * which is one kernel. */
static struct et_tensor *
choose_hyper(struct et_graph *g, struct et_optimizer *opt, struct et_tensor *skip)
{
    if (opt->ahead == 0)
        return opt->hyper;
    struct et_tensor *which = et_sub(g, opt->skipped, block_of(g, opt, opt->counts, 0));
    struct et_tensor *chosen = block_of(g, opt, opt->hyper, opt->ahead);
    for (int j = opt->ahead - 1; j >= 0; j--)
        chosen = et_where(g, et_add_scalar(g, which, -(double)j), chosen,
                          block_of(g, opt, opt->hyper, j));
    if (skip)
        et_assign(
            g, opt->skipped,
            et_add(g, opt->skipped, et_mul(g, block_of(g, opt, opt->counts, 1), skip)));
    return chosen;
}

et_status
et_optimizer_update(struct et_graph *g, struct et_optimizer *opt,
                    struct et_tensor *flat, const bool *has_grad,
                    struct et_tensor *skip)
{
    ETI_NEED(et_graph_ctx(g), g, opt);
    ET_TRY(et_graph_status(g));
    memcpy(opt->pending, has_grad ? has_grad : opt->space->has_grad,
           (size_t)opt->space->n);
    for (int i = 0; i < opt->space->n; i++) {
        const struct et_param_slot *slot = &opt->space->slot[i];
        opt->pending[i] &= !slot->frozen;
        opt->counted[i] = opt->pending[i] && !(slot->gate && slot->gate->is_closed);
    }
    opt->n_rows = 0;
    int rows;
    ET_TRY(make_rows(opt, &rows));
    ET_TRY(send_hyper(opt)); /* first: an eager graph computes as it is built */
    if (skip)
        skip = et_cast(g, skip, ET_F32);
    struct et_tensor *hyper = choose_hyper(g, opt, skip);
    for (int i = 0; i < rows; i++)
        ET_TRY(append_row(g, opt, i, flat, hyper, skip));
    opt->n_rows = rows;
    return et_graph_status(g);
}

const struct et_update *
et_optimizer_pending(const struct et_optimizer *opt, int i, int64_t *begin,
                     int64_t *end)
{
    if (!opt || i >= opt->n_rows)
        return NULL;
    *begin = opt->row[i].run->begin;
    *end = opt->row[i].run->end;
    return &opt->row[i].update;
}
