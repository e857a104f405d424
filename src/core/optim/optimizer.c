/* SPDX-License-Identifier: Apache-2.0 */
/* optimizer.c: the registry, and one update: runs of parameters, their formulas,
 * skipping.
 *
 * A run is the longest stretch of flat memory whose parameters are of one group, all
 * have a gradient, and have been updated equally often. Usually that is everything, and
 * the update is one fused pass over flat memory. A rule that tells parameters apart
 * gets the run as rows, too, and tables of which parameter is where. Such a rule goes
 * through a run several times: on a processor, where a kernel more costs nothing, runs
 * are cut to what stays in its caches meanwhile. */
#include "core/base/sized.h"
#include "core/optim/optim.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/memory.h"
#include "core/graph/graph_impl.h"
#include "core/optim/group.h"
#include "core/recipe/options.h"
#include "etude/ctx.h"

static const struct et_optimizer_class *const classes[] = {
#define ET_OPTIMIZER(name) &et_optimizer_##name,
#include "core/optim/optimizers.def"
#undef ET_OPTIMIZER
};
enum { CLASSES = sizeof classes / sizeof *classes };

const struct et_optimizer_class *
et_optimizer_find(const char *name)
{
    for (int i = 0; i < CLASSES; i++)
        if (strcmp(name, classes[i]->info.name) == 0)
            return classes[i];
    return NULL;
}

const struct et_optimizer_class *const *
et_optimizer_list(int *n)
{
    *n = CLASSES;
    return classes;
}

enum {
    ETI_MAX_AHEAD = 4,
    /* Elements of a run on a processor, for rules by parameter; one parameter may have
     * more. LAMB on a Xeon with 2 MiB of second-level cache: 1.14 times as long a step
     * for 5 million weights where they were one run. */
    CACHED = 1 << 18,
};

static const int64_t one[] = {1};

/* Leaves on a stretch of the flat arrays. */
struct run {
    int64_t begin, end;
    struct et_tensor *p, *moment[ET_MAX_MOMENTS];
    struct et_param_rows rows;        /* all zero but for rules by parameter */
    const struct et_param_slot *slot; /* of rules by tensor: all there is in it */
};

/* A run in the update being made: row i of the hyper leaf is its. */
struct row {
    struct run *run;
    const struct et_optimizer_group *group;
    const struct et_param_slot *slot; /* the first of the run */
    struct et_update update;          /* with what was appended for it */
};

struct et_optimizer {
    struct et_ctx *cx;
    const struct et_optimizer_class *type;
    void *options; /* its own */
    struct et_param_space *space;
    int n_moments;
    int64_t longest;                  /* elements of a run of several parameters */
    struct et_optimizer_group *group; /* [n_groups], at least those of the space */
    int n_groups;
    int *order;      /* parameters by offset */
    bool *pending;   /* [n]: in the update being made */
    struct row *row; /* [n]: there are at most as many runs */
    int n_rows;      /* of the last update */
    /* [1 + ahead][n][ET_MAX_HYPER]; rows not in use keep old numbers. Block j is for
     * the case that j of the updates not yet settled were skipped. */
    float *hyper_host;
    struct et_tensor *hyper; /* leaf f32 of the same, flat */
    int ahead;               /* updates that may be unsettled when another is built */
    int unsettled;
    bool *made[ETI_MAX_AHEAD + 1]; /* [n] each, oldest first: whom they changed */
    struct et_tensor
        *skipped; /* leaf f32 [1]: updates skipped so far; NULL: ahead is 0 */
    struct et_tensor *settled; /* leaf f32 [1]: those of them the host knows of */
    float n_settled;
    struct run *
        *run; /* every stretch ever asked for: a graph may still name its leaves */
    int n_runs;
    int64_t cap_runs;
};

/* ---- making ---- */

static void
free_run(struct et_optimizer *opt, struct run *r)
{
    et_tensor_free(&r->p);
    for (int k = 0; k < opt->n_moments; k++)
        et_tensor_free(&r->moment[k]);
    eti_param_rows_release(&r->rows, opt->cx);
    et_free(opt->cx, r);
}

static void
free_runs(struct et_optimizer *opt)
{
    for (int i = 0; i < opt->n_runs; i++)
        free_run(opt, opt->run[i]);
    opt->n_runs = 0;
}

/* Frees the numbers of updates, which depend on space and ahead. */
static void
release_numbers(struct et_optimizer *opt)
{
    et_free(opt->cx, opt->hyper_host);
    et_tensor_free(&opt->hyper);
    for (int i = 0; i <= ETI_MAX_AHEAD; i++) {
        et_free(opt->cx, opt->made[i]);
        opt->made[i] = NULL;
    }
    opt->hyper_host = NULL;
    opt->unsettled = 0;
}

/* Frees what depends on the space. */
static void
release_space(struct et_optimizer *opt)
{
    free_runs(opt);
    release_numbers(opt);
    et_free(opt->cx, opt->order);
    et_free(opt->cx, opt->pending);
    et_free(opt->cx, opt->row);
    opt->order = NULL;
    opt->pending = NULL;
    opt->row = NULL;
    opt->n_rows = 0;
}

static void
sort_by_offset(const struct et_param_space *s, int *order)
{
    int at = 0;
    for (int group = 0; group < s->n_groups; group++)
        for (int i = 0; i < s->n; i++)
            if (s->slot[i].group == group)
                order[at++] = i;
}

/* Makes the numbers of updates. */
static et_status
make_numbers(struct et_optimizer *opt, const struct et_param_space *space)
{
    struct et_ctx *cx = opt->cx;
    int64_t numbers = (1 + opt->ahead) * space->n * ET_MAX_HYPER;
    void *block;
    ET_TRY(et_alloc(cx, (size_t)numbers * sizeof *opt->hyper_host, &block));
    opt->hyper_host = block;
    for (int i = 0; opt->ahead > 0 && i <= opt->ahead; i++) {
        ET_TRY(et_alloc(cx, (size_t)space->n * sizeof *opt->made[i], &block));
        opt->made[i] = block;
    }
    return et_tensor_new(cx, space->dev, ET_F32, 1, &numbers, ET_ROW_MAJOR, "hyper",
                         &opt->hyper);
}

static int
count_moments(const struct et_optimizer_class *type, const void *options)
{
    int n = 0;
    if (type->n_moments)
        return type->n_moments(options);
    while (type->moments[n])
        n++;
    return n;
}

/* Makes what depends on the space. */
static et_status
attach_space(struct et_optimizer *opt, struct et_param_space *space)
{
    struct et_ctx *cx = opt->cx;
    struct et_device_info info;
    opt->n_moments = count_moments(opt->type, opt->options);
    ET_ASSERT(opt->n_moments <= ET_MAX_MOMENTS);
    size_t n = (size_t)space->n;
    void *block;
    et_device_get_info(space->dev, &info);
    opt->longest = opt->type->by_parameter && info.host_memory ? CACHED : INT64_MAX;
    ET_TRY(eti_param_space_add_moments(cx, space, opt->type->moments, opt->n_moments));
    ET_TRY(eti_param_states_add(cx, space, opt->type, opt->options));
    ET_TRY(et_alloc(cx, n * sizeof *opt->order, &block));
    opt->order = block;
    ET_TRY(et_alloc(cx, n * sizeof *opt->pending, &block));
    opt->pending = block;
    ET_TRY(et_alloc(cx, n * sizeof *opt->row, &block));
    opt->row = block;
    ET_TRY(make_numbers(opt, space));
    sort_by_offset(space, opt->order);
    opt->space = space;
    return ET_OK;
}

/* As many as N; those that are new begin as the options say. */
static et_status
make_groups(struct et_optimizer *opt, int n)
{
    const struct et_optimizer_options *common = opt->options;
    int64_t room = opt->n_groups;
    if (n > room)
        ET_TRY(eti_grow(opt->cx, &opt->group, &room, n, sizeof *opt->group));
    for (; opt->n_groups < n; opt->n_groups++)
        opt->group[opt->n_groups] = (struct et_optimizer_group){
            .initial_lr = common->lr,
            .lr = common->lr,
            .weight_decay = common->weight_decay,
        };
    return ET_OK;
}

et_status
et_optimizer_new(struct et_ctx *cx, const struct et_optimizer_class *type,
                 const void *options, struct et_param_space *space,
                 struct et_optimizer **out)
{
    *out = NULL;
    void *block;
    ET_TRY(eti_need_class(cx, "et_optimizer_new", type));
    ET_TRY(et_alloc(cx, sizeof(struct et_optimizer), &block));
    struct et_optimizer *opt = block;
    opt->cx = cx;
    opt->type = type;
    ET_ASSERT(!type->by_tensor || !type->by_parameter);
    et_status status = eti_options_new(cx, &type->info, options, &opt->options);
    if (status == ET_OK && type->check)
        status = type->check(cx, opt->options);
    if (status == ET_OK)
        status = make_groups(opt, space->n_groups);
    if (status == ET_OK)
        status = attach_space(opt, space);
    if (status != ET_OK)
        et_optimizer_free(&opt);
    *out = opt;
    return status;
}

void
et_optimizer_free(struct et_optimizer **optimizer)
{
    struct et_optimizer *opt = *optimizer;
    *optimizer = NULL;
    if (!opt)
        return;
    release_space(opt);
    et_tensor_free(&opt->skipped);
    et_tensor_free(&opt->settled);
    et_free(opt->cx, opt->run);
    et_free(opt->cx, opt->group);
    eti_options_free(opt->cx, &opt->type->info, &opt->options);
    et_free(opt->cx, opt);
}

et_status
et_optimizer_move(struct et_ctx *cx, struct et_optimizer *opt,
                  struct et_param_space *space)
{
    ET_TRY(make_groups(opt, space->n_groups));
    struct et_param_space *old = opt->space;
    release_space(opt);
    ET_TRY(attach_space(opt, space));
    return eti_param_space_carry(cx, space, old);
}

/* ---- reading ---- */

const struct et_optimizer_class *
et_optimizer_class(const struct et_optimizer *opt)
{
    return opt->type;
}

void *
eti_optimizer_options(struct et_optimizer *opt)
{
    return opt->options;
}

struct et_param_space *
et_optimizer_space(const struct et_optimizer *opt)
{
    return opt->space;
}

struct et_optimizer_group *
et_optimizer_group(struct et_optimizer *opt, int i)
{
    ET_ASSERT(i >= 0 && i < opt->n_groups);
    return &opt->group[i];
}

void
et_optimizer_set_alpha(struct et_optimizer *opt, double alpha)
{
    for (int i = 0; i < opt->n_groups; i++)
        et_optimizer_set_group_alpha(opt, i, alpha);
}

void
et_optimizer_set_group_alpha(struct et_optimizer *opt, int i, double alpha)
{
    struct et_optimizer_group *group = et_optimizer_group(opt, i);
    group->lr = group->initial_lr * alpha;
}

/* ---- updating ---- */

static et_status
new_run(struct et_optimizer *opt, const struct et_param_slot *first, int64_t end,
        struct run *r)
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
         struct run **out)
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
        free_run(opt, block);
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
begin_tensor(struct et_graph *g, const struct et_optimizer *opt, const struct run *r,
             struct et_tensor *flat, struct et_update *u)
{
    const struct et_param_space *s = opt->space;
    u->slot = r->slot;
    u->grad = eti_param_shaped(g, flat, r->slot);
    for (int k = 0; k < s->n_states; k++)
        u->state[k] = s->state[k][r->slot - s->slot];
}

/* The formulas of row I. */
static et_status
append_row(struct et_graph *g, struct et_optimizer *opt, int i, struct et_tensor *flat,
           struct et_tensor *hyper, struct et_tensor *skip)
{
    const struct run *r = opt->row[i].run;
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
        u->hyper[h] = et_slice(g, hyper, 0, i * ET_MAX_HYPER + h, 1, 1);
    opt->type->update(g, u);
    ET_TRY(check_written(g, opt, u));
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
            slot[i].updates != first->updates ||
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
    const struct row *row = &opt->row[i];
    for (int skipped = 0; skipped <= opt->ahead; skipped++) {
        int64_t update = row->slot->updates + 1 - skipped;
        double hyper[ET_MAX_HYPER] = {0};
        opt->type->hyper(opt->options, row->group, update < 1 ? 1 : update, hyper);
        float *to = opt->hyper_host + (skipped * opt->space->n + i) * ET_MAX_HYPER;
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
        struct row *row = &opt->row[*n_rows];
        row->group = &opt->group[first->group];
        row->slot = first;
        ET_TRY(find_run(opt, first, last->offset + eti_param_span(last), &row->run));
        write_row(opt, (*n_rows)++);
    }
    return ET_OK;
}

static et_status
send_hyper(struct et_optimizer *opt)
{
    if (opt->ahead > 0)
        ET_TRY(et_tensor_write(opt->cx, opt->settled, &opt->n_settled,
                               sizeof opt->n_settled));
    return et_tensor_write(opt->cx, opt->hyper, opt->hyper_host,
                           et_desc_bytes(&opt->hyper->desc));
}

/* Block J of the numbers. */
static struct et_tensor *
block_of(struct et_graph *g, const struct et_optimizer *opt, int j)
{
    const int64_t width = opt->space->n * ET_MAX_HYPER;
    return et_slice(g, opt->hyper, 0, j * width, width, 1);
}

/* Numbers that follow from how often a parameter was updated (Adam's bias corrections)
 * depend on updates whose outcome only the device knows: it picks the block that fits,
 * which is one kernel.
 * NEEDSWORK: a parameter that had no gradient in an update that was skipped and is not
 * settled is counted one less than it should be. No model here has parameters that get
 * a gradient only now and then; one that had would need a count of skips for each
 * row. */
static struct et_tensor *
choose_hyper(struct et_graph *g, struct et_optimizer *opt, struct et_tensor *skip)
{
    const int64_t width = opt->space->n * ET_MAX_HYPER;
    if (opt->ahead == 0)
        return opt->hyper;
    struct et_tensor *which =
        et_sub(g, et_expand(g, opt->skipped, 1, &width), opt->settled);
    struct et_tensor *chosen = block_of(g, opt, opt->ahead);
    for (int j = opt->ahead - 1; j >= 0; j--)
        chosen = et_where(g, et_add_scalar(g, which, -(double)j), chosen,
                          block_of(g, opt, j));
    if (skip)
        et_assign(g, opt->skipped,
                  et_add(g, opt->skipped, et_reshape(g, skip, 1, one)));
    return chosen;
}

et_status
et_optimizer_update(struct et_graph *g, struct et_optimizer *opt,
                    struct et_tensor *flat, const bool *has_grad,
                    struct et_tensor *skip)
{
    ET_TRY(et_graph_status(g));
    memcpy(opt->pending, has_grad ? has_grad : opt->space->has_grad,
           (size_t)opt->space->n);
    for (int i = 0; i < opt->space->n; i++)
        opt->pending[i] &= !opt->space->slot[i].frozen;
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
    if (i >= opt->n_rows)
        return NULL;
    *begin = opt->row[i].run->begin;
    *end = opt->row[i].run->end;
    return &opt->row[i].update;
}

void
et_optimizer_done(struct et_optimizer *opt, bool skipped)
{
    for (int i = 0; i < opt->space->n && !skipped; i++)
        opt->space->slot[i].updates += opt->pending[i];
    if (opt->ahead > 0) {
        ET_ASSERT(opt->unsettled <= opt->ahead && !skipped);
        memcpy(opt->made[opt->unsettled++], opt->pending, (size_t)opt->space->n);
    }
    memset(opt->pending, 0, (size_t)opt->space->n);
}

et_status
et_optimizer_run_ahead(struct et_optimizer *opt, int ahead)
{
    ET_ASSERT(ahead >= 0 && ahead <= ETI_MAX_AHEAD && opt->unsettled == 0);
    if (ahead == opt->ahead)
        return ET_OK;
    if (!opt->skipped) {
        ET_TRY(et_tensor_new(opt->cx, opt->space->dev, ET_F32, 1, one, ET_ROW_MAJOR,
                             "skipped updates", &opt->skipped));
        ET_TRY(et_tensor_new(opt->cx, opt->space->dev, ET_F32, 1, one, ET_ROW_MAJOR,
                             "settled skips", &opt->settled));
    }
    release_numbers(opt);
    opt->ahead = ahead;
    return make_numbers(opt, opt->space);
}

void
et_optimizer_settle(struct et_optimizer *opt, bool skipped)
{
    ET_ASSERT(opt->unsettled > 0);
    bool *oldest = opt->made[0];
    for (int i = 0; i < opt->space->n && skipped; i++)
        opt->space->slot[i].updates -= oldest[i];
    opt->n_settled += skipped;
    opt->unsettled--;
    for (int i = 0; i < opt->unsettled; i++)
        opt->made[i] = opt->made[i + 1];
    opt->made[opt->unsettled] = oldest;
}

/* ---- what update rules share ---- */

double
eti_decoupled_decay(const struct et_optimizer_group *group)
{
    double ratio = group->initial_lr == 0 ? 1 : group->lr / group->initial_lr;
    return ratio * group->weight_decay;
}

void
eti_warn_decay(struct et_ctx *cx, const char *name, double weight_decay)
{
    if (weight_decay >= 1e-3)
        et_report(cx, ET_LOG_WARN,
                  "%s: weight_decay %g is not scaled by the learning rate: every step "
                  "multiplies the weights by %g",
                  name, weight_decay, 1 - weight_decay);
}

et_status
eti_check_betas(struct et_ctx *cx, const struct et_floats *betas)
{
    if (betas->n != 2)
        return ET_FAIL(cx, ET_EINVAL, "betas has %d numbers, not 2", betas->n);
    return ET_OK;
}

struct et_tensor *
eti_coupled_decay(struct et_graph *g, const struct et_update *u)
{
    double decay = u->group->weight_decay;
    return decay != 0 ? et_add(g, u->grad, et_mul_scalar(g, u->p, decay)) : u->grad;
}

struct et_tensor *
eti_apart_decay(struct et_graph *g, const struct et_update *u,
                struct et_tensor *fraction)
{
    bool decays = u->group->weight_decay != 0;
    return decays ? et_sub(g, u->p, et_mul(g, u->p, fraction)) : u->p;
}

struct et_tensor *
eti_average(struct et_graph *g, struct et_tensor *x, struct et_tensor *y, double decay)
{
    return et_add(g, et_mul_scalar(g, et_sub(g, y, x), 1 - decay), x);
}
