/* ranks.c: data-parallel training: what ranks do together in a step.
 *
 *   g = sum_r w_r g_r / W,   w_r = n_r / n,   W = sum_r w_r
 *
 * with g_r the gradient of rank r's mean loss over its n_r rows and n the rows of a
 * full rank batch: the gradient of the mean over all rows, as one rank would have it
 * (where all batches are full w_r is 1 and W the number of ranks;
 * spec/algorithms.md 1.7). The loss, its parts and the metrics' totals are summed the
 * same way.
 *
 * The flat gradient is summed in buckets of whole parameters, from its end: the last
 * layers' gradients are there first, and their sums go on while the others are
 * computed. All ranks build the same collectives in the same order, whatever their rows
 * or microbatches. What is not known in a step (whether a rank had memory for it,
 * whether somebody wants the run to stop) goes with it, so that all ranks learn of it
 * after the same batch (RELIABILITY.md section 4).
 *
 * Source: Li et al. 2020, PyTorch Distributed (2006.15704): buckets in reverse order.
 * Differs: buckets are slices of the one array that updates read, and nothing is copied
 * back. */
#include "config.h"

#include <string.h>

#include "core/graph/collective.h"
#include "core/optim/optim.h"
#include "core/trainer/trainer_impl.h"

static const int64_t one[] = {1};

/* ---- setting up ---- */

static et_status
make_leaves(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    struct eti_ranks *r = &t->ranks;
    const int64_t host[] = {ETI_SAID_HOST};
    struct et_desc first;
    et_desc_init(&first, ET_F32, 1, one, ET_ROW_MAJOR);
    ET_TRY(
        et_tensor_new(s->cx, s->dev, ET_F32, 1, host, ET_ROW_MAJOR, "rank", &r->own));
    ET_TRY(et_tensor_view(s->cx, r->own->storage, 0, &first, "weight", &r->weight));
    return et_tensor_new(s->cx, s->dev, ET_F32, 1, &r->n_said, ET_ROW_MAJOR, "ranks",
                         &r->together);
}

et_status
eti_ranks_init(struct et_trainer *t)
{
    struct eti_ranks *r = &t->ranks;
    if (et_comm_world(t->config.comm) == 1)
        return ET_OK;
    r->comm = t->config.comm;
    r->n_said = ETI_SAID_PARTS + ETI_MAX_LOSS_PARTS;
    for (int i = 0; i < t->n_train_metrics; i++)
        r->n_said += 2 * et_metric_n_sums(t->train_metric[i]);
    et_graph_set_comm(t->state.graph, r->comm);
    ET_TRY(make_leaves(t));
    return eti_ranks_bind(t);
}

/* From the last parameter to the first, whole ones, until a bucket is long enough. */
static void
cut_buckets(struct eti_ranks *r, const struct et_param_space *s)
{
    int64_t most = s->total / ETI_MAX_BUCKETS, end = s->total;
    int last = s->n;
    most = most > ETI_BUCKET ? most : ETI_BUCKET;
    r->n_buckets = 0;
    for (int i = s->n - 1; i >= 0; i--) {
        bool room = r->n_buckets < ETI_MAX_BUCKETS - 1;
        if (i > 0 && !(room && end - s->slot[i].offset >= most))
            continue;
        int64_t begin = i > 0 ? s->slot[i].offset : 0;
        r->bucket[r->n_buckets++] = (struct eti_bucket){i, last - i, begin, end};
        last = i;
        end = begin;
    }
}

et_status
eti_ranks_bind(struct et_trainer *t)
{
    struct eti_ranks *r = &t->ranks;
    int64_t longest = r->n_said;
    void *block;
    if (!r->comm)
        return ET_OK;
    cut_buckets(r, t->state.params);
    for (int i = 0; i < r->n_buckets; i++) {
        int64_t n = r->bucket[i].end - r->bucket[i].begin;
        longest = n > longest ? n : longest;
    }
    et_free(t->state.cx, r->nothing);
    r->nothing = NULL;
    ET_TRY(et_alloc(t->state.cx, (size_t)longest * sizeof *r->nothing, &block));
    r->nothing = block;
    return ET_OK;
}

void
eti_ranks_release(struct et_trainer *t)
{
    et_tensor_free(&t->ranks.weight);
    et_tensor_free(&t->ranks.own);
    et_tensor_free(&t->ranks.together);
    et_free(t->state.cx, t->ranks.nothing);
    et_free(t->state.cx, t->ranks.unreadable);
    t->ranks.nothing = NULL;
    t->ranks.unreadable = NULL;
}

/* ---- what the host says ---- */

static void
note_time(struct et_trainer *t)
{
    double now = eti_monotonic(t->state.cx);
    t->ranks.seconds += now - t->clock;
    t->clock = now;
}

/* Rank 0 alone is asked: requests are applied by all after the same batch. */
static bool
has_request(struct et_trainer *t)
{
    struct eti_ranks *r = &t->ranks;
    struct et_control *c = t->config.control;
    if (!r->has_request && c && et_comm_rank(r->comm) == 0 && !t->is_trial)
        r->has_request = c->next(c, t->state.timestamp.batch + 1, &r->request);
    return r->has_request;
}

static void
say(struct et_trainer *t, bool failed, float said[ETI_SAID_HOST])
{
    struct eti_ranks *r = &t->ranks;
    int64_t full = t->state.batch_size / et_comm_world(r->comm);
    bool first = et_comm_rank(r->comm) == 0;
    note_time(t);
    said[ETI_SAID_WEIGHT] =
        failed || r->spare ? 0 : (float)((double)t->state.full.n / (double)full);
    said[ETI_SAID_FAILED] = failed;
    said[ETI_SAID_STOP] = eti_is_set(t->config.interrupt) || r->asks_to_stop;
    said[ETI_SAID_SAVE] = eti_save_is_wanted(t);
    said[ETI_SAID_REQUEST] = has_request(t);
    said[ETI_SAID_SECONDS] = first ? (float)r->seconds : 0;
}

/* ---- in the graph ---- */

/* V, a rank's own, where its rows count. */
static struct et_tensor *
counted(struct et_trainer *t, struct et_tensor *v)
{
    struct et_graph *g = t->state.graph;
    return et_where(g, t->ranks.weight, v, et_fill(g, ET_F32, 1, one, 0));
}

static struct et_tensor *
weighed(struct et_trainer *t, struct et_tensor *v)
{
    return counted(t, et_mul(t->state.graph, v, t->ranks.weight));
}

/* What this rank's part of the batch came to, behind what its host says. */
static struct et_tensor *
collect(struct et_trainer *t, int pass)
{
    struct et_graph *g = t->state.graph;
    struct et_tensor *v[3 + ETI_MAX_LOSS_PARTS + 2 * ETI_MAX_METRICS];
    struct et_tensor *none = et_fill(g, ET_F32, 1, one, 0);
    int n = 0;
    v[n++] = t->ranks.own;
    v[n++] = pass > 0 && t->scaler.scale ? t->scaler.overflow : none;
    v[n++] = weighed(t, et_pending(g, t->total));
    for (int i = 0; i < ETI_MAX_LOSS_PARTS; i++)
        v[n++] = i < t->n_parts && t->part[i].logged
                     ? weighed(t, et_pending(g, t->part[i].sum))
                     : none;
    for (int i = 0; i < t->n_train_metrics; i++) {
        et_metric_totals(g, t->train_metric[i], &v[n], &v[n + 1]);
        v[n] = counted(t, v[n]);
        v[n + 1] = counted(t, v[n + 1]);
        n += 2;
    }
    return et_concat(g, v, n, 0);
}

/* Number I of what all ranks said, N of them. */
static struct et_tensor *
said(struct et_trainer *t, int64_t i, int64_t n)
{
    struct et_graph *g = t->state.graph;
    return et_slice(g, et_pending(g, t->ranks.together), 0, i, n, 1);
}

/* The gradients of bucket B as one array, of this rank. */
static struct et_tensor *
own_bucket(struct et_trainer *t, const struct eti_bucket *b, bool alone)
{
    struct et_graph *g = t->state.graph;
    if (!alone)
        return et_slice(g, t->grad_sum, 0, b->begin, b->end - b->begin, 1);
    return eti_param_space_pack_part(g, t->state.params, t->grads, b->first, b->n,
                                     b->begin, b->end);
}

et_status
eti_ranks_reduce(struct et_trainer *t, int pass, bool alone)
{
    struct et_state *s = &t->state;
    struct et_graph *g = s->graph;
    struct eti_ranks *r = &t->ranks;
    struct et_tensor *part[ETI_MAX_BUCKETS];
    int64_t offset[ETI_MAX_BUCKETS];
    float own[ETI_SAID_HOST];
    if (!r->comm || s->keep_local)
        return et_graph_status(g);
    say(t, false, own);
    ET_TRY(et_tensor_write(s->cx, r->own, own, sizeof own));
    et_assign(g, r->together, et_all_reduce(g, collect(t, pass), NULL));
    for (int i = 0; i < r->n_buckets; i++) {
        const struct eti_bucket *b = &r->bucket[i];
        part[i] = et_all_reduce(g, own_bucket(t, b, alone), r->weight);
        offset[i] = b->begin;
    }
    if (!s->grad)
        return et_graph_status(g);
    for (int i = 0, k = r->n_buckets - 1; i < k; i++, k--) { /* offsets rise */
        struct et_tensor *p = part[i];
        int64_t at = offset[i];
        part[i] = part[k], offset[i] = offset[k];
        part[k] = p, offset[k] = at;
    }
    s->grad =
        et_mul(g, et_pack(g, part, offset, r->n_buckets, s->params->total, ET_F32),
               et_reciprocal(g, said(t, ETI_SAID_WEIGHT, 1)));
    return et_graph_status(g);
}

/* ---- what came of it, in the graph ---- */

static struct et_tensor *
mean(struct et_trainer *t, int64_t i)
{
    struct et_graph *g = t->state.graph;
    return et_mul(g, said(t, i, 1), et_reciprocal(g, said(t, ETI_SAID_WEIGHT, 1)));
}

struct et_tensor *
eti_ranks_total(struct et_trainer *t)
{
    return t->ranks.comm ? mean(t, ETI_SAID_TOTAL)
                         : et_pending(t->state.graph, t->total);
}

struct et_tensor *
eti_ranks_part(struct et_trainer *t, int i)
{
    return t->ranks.comm ? mean(t, ETI_SAID_PARTS + i)
                         : et_pending(t->state.graph, t->part[i].sum);
}

void
eti_ranks_metric_totals(struct et_trainer *t, int i, struct et_tensor **sum,
                        struct et_tensor **carry)
{
    int64_t at = ETI_SAID_PARTS + ETI_MAX_LOSS_PARTS;
    if (!t->ranks.comm) {
        et_metric_totals(t->state.graph, t->train_metric[i], sum, carry);
        return;
    }
    for (int k = 0; k < i; k++)
        at += 2 * et_metric_n_sums(t->train_metric[k]);
    int64_t n = et_metric_n_sums(t->train_metric[i]);
    *sum = said(t, at, n);
    *carry = said(t, at + n, n);
}

struct et_tensor *
eti_ranks_overflow(struct et_trainer *t)
{
    return t->ranks.comm && !t->state.keep_local ? said(t, ETI_SAID_OVERFLOW, 1)
                                                 : t->scaler.overflow;
}

struct et_tensor *
eti_ranks_skip(struct et_trainer *t, struct et_tensor *skip)
{
    if (!t->ranks.comm)
        return skip;
    return et_maximum(t->state.graph, skip, said(t, ETI_SAID_FAILED, 1));
}

void
eti_ranks_guard(struct et_trainer *t, struct et_tensor *leaf)
{
    struct et_graph *g = t->state.graph;
    struct et_tensor *next = et_pending(g, leaf);
    if (t->ranks.comm && next != leaf)
        et_reassign(g, leaf, et_where(g, said(t, ETI_SAID_FAILED, 1), leaf, next));
}

/* ---- after the evaluation ---- */

static void
heed(struct et_trainer *t, const float *said, bool *again)
{
    struct eti_ranks *r = &t->ranks;
    r->stop = r->stop || said[ETI_SAID_STOP] > 0;
    r->save = r->save || said[ETI_SAID_SAVE] > 0;
    r->requested = said[ETI_SAID_REQUEST] > 0;
    r->took = said[ETI_SAID_SECONDS];
    *again = said[ETI_SAID_FAILED] > 0;
    if (!*again)
        r->seconds = 0;
}

et_status
eti_ranks_hear(struct et_trainer *t, bool *again)
{
    float said[ETI_SAID_HOST];
    struct eti_ranks *r = &t->ranks;
    *again = false;
    if (!r->comm)
        return ET_OK;
    memcpy(said, et_tensor_data(r->together), sizeof said);
    heed(t, said, again);
    return ET_OK;
}

et_status
eti_ranks_stand_in(struct et_trainer *t)
{
    struct et_ctx *cx = t->state.cx;
    struct eti_ranks *r = &t->ranks;
    bool again;
    int64_t size[1 + ETI_MAX_BUCKETS];
    if (!r->comm)
        return ET_OK;
    size[0] = r->n_said;
    for (int i = 0; i < r->n_buckets; i++)
        size[1 + i] = r->bucket[i].end - r->bucket[i].begin;
    uint32_t set = eti_collectives_set(t->state.graph, size, 1 + r->n_buckets);
    memset(r->nothing, 0, (size_t)r->n_said * sizeof *r->nothing);
    say(t, true, r->nothing);
    et_comm_set_mark(r->comm, -1, 1, set);
    ET_TRY(et_comm_all_reduce(cx, r->comm, r->nothing, r->n_said, ET_F32, ET_COMM_SUM));
    heed(t, r->nothing, &again);
    for (int i = 0; i < r->n_buckets; i++) {
        int64_t n = size[1 + i];
        memset(r->nothing, 0, (size_t)n * sizeof *r->nothing);
        et_comm_set_mark(r->comm, -1, 2 + i, set);
        ET_TRY(et_comm_all_reduce(cx, r->comm, r->nothing, n, ET_F32, ET_COMM_SUM));
    }
    return ET_OK;
}
