/* SPDX-License-Identifier: Apache-2.0 */
/* ranks.c: data-parallel training: what ranks do together in a step.
 *
 *   g = sum_r w_r g_r / W,   w_r = n_r / n,   W = sum_r w_r
 *
 * with g_r the gradient of rank r's mean loss over its n_r rows and n the rows of a
 * full rank batch: the gradient of the mean over all rows, as one rank would have it
 * (where all batches are full w_r is 1 and W the number of ranks;
 * spec/algorithms.md 1.7). Where the mean is one over the positions that count, n_r and
 * n are numbers of these; g_r then comes as c_r g_r, with c_r what counts of the rank's
 * positions, of which the host knows only how many there are (accumulate.c). The loss,
 * its parts and the metrics' totals are summed the same way.
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
#include "core/trainer/part.h"
#include "core/trainer/ranks.h"
#include "etude/nn.h"

/* What ranks tell each other in every step, f32 each, added up: these, what the other
 * parts' hosts say, and what their sums came to. How much that is depends on the model
 * and the metrics alone, so that a rank that is short of memory can take part without
 * having built anything. */
enum {
    WEIGHT, /* what counts of its batch / positions of a full one; 0: spare rows */
    FAILED, /* 1: it has no gradient for this batch, for want of memory */
    OWN_SAID,
};

/* 4 MB: below it a sum takes as long as its latency (ENGINE.md section 4), and a model
 * has its first bucket when a part of the backward pass is still to come. */
enum { BUCKET = 1 << 20, MAX_BUCKETS = 256 };

struct bucket {
    int first, n;       /* parameters */
    int64_t begin, end; /* of the flat array */
};

struct ranks {
    struct et_tensor *own;      /* f32 [n_host]: what the host says */
    struct et_tensor *weight;   /* its first number */
    struct et_tensor *together; /* f32 [n_said]: of all ranks, of the last step */
    int64_t n_host, n_said;
    float *host;                      /* [n_host] */
    const struct et_param_space *cut; /* into these: */
    struct bucket bucket[MAX_BUCKETS];
    int n_buckets;
    float *nothing; /* host, as long as the longest bucket, and n_said */
    /* For batch norm's statistics over all ranks; NULL: they are each rank's own. */
    struct et_tensor *place; /* f32 [world]: et_forward.place */
    struct et_tensor *share; /* f32 [1]: as WEIGHT */
};

static const int64_t one[] = {1};

/* ---- setting up ---- */

static et_status
make_leaves(struct eti_part *p)
{
    struct et_state *s = p->s;
    struct ranks *r = p->own;
    struct et_desc first;
    et_desc_init(&first, ET_F32, 1, one, ET_ROW_MAJOR);
    ET_TRY(et_tensor_new(s->cx, s->dev, ET_F32, 1, &r->n_host, ET_ROW_MAJOR, "rank",
                         &r->own));
    ET_TRY(et_tensor_view(s->cx, r->own->storage, 0, &first, "weight", &r->weight));
    return et_tensor_new(s->cx, s->dev, ET_F32, 1, &r->n_said, ET_ROW_MAJOR, "ranks",
                         &r->together);
}

/* From the last parameter to the first, whole ones, until a bucket is long enough. */
static void
cut_buckets(struct ranks *r, const struct et_param_space *s)
{
    int64_t most = s->total / MAX_BUCKETS, end = s->total;
    int last = s->n;
    most = most > BUCKET ? most : BUCKET;
    r->n_buckets = 0;
    for (int i = s->n - 1; i >= 0; i--) {
        bool room = r->n_buckets < MAX_BUCKETS - 1;
        if (i > 0 && !(room && end - s->slot[i].offset >= most))
            continue;
        int64_t begin = i > 0 ? s->slot[i].offset : 0;
        r->bucket[r->n_buckets++] = (struct bucket){i, last - i, begin, end};
        last = i;
        end = begin;
    }
}

static et_status
bind(struct eti_part *p)
{
    struct ranks *r = p->own;
    int64_t longest = r->n_said;
    void *block;
    if (!r->own || r->cut == p->s->params)
        return ET_OK; /* one rank, or before init; or nothing has moved */
    r->cut = p->s->params;
    cut_buckets(r, r->cut);
    for (int i = 0; i < r->n_buckets; i++) {
        int64_t n = r->bucket[i].end - r->bucket[i].begin;
        longest = n > longest ? n : longest;
    }
    et_free(p->s->cx, r->nothing);
    r->nothing = NULL;
    ET_TRY(et_alloc(p->s->cx, (size_t)longest * sizeof *r->nothing, &block));
    r->nothing = block;
    return ET_OK;
}

/* Nothing is accepted and does nothing; but one rank has all statistics anyhow. */
static et_status
count_batch_norms(const struct eti_part *p)
{
    int n;
    ET_TRY(
        et_module_count_class(p->s->cx, p->s->model->root, &et_batch_norm_class, &n));
    if (n == 0)
        et_report(p->s->cx, ET_LOG_WARN,
                  "sync_batch_norm: the model has no batch norm");
    return ET_OK;
}

static et_status
prepare_sync(struct eti_part *p)
{
    struct et_state *s = p->s;
    struct ranks *r = p->own;
    const int64_t world = s->world;
    if (!p->config->sync_batch_norm)
        return ET_OK;
    ET_TRY(count_batch_norms(p));
    if (!p->common->comm)
        return ET_OK;
    ET_TRY(et_tensor_new(s->cx, s->dev, ET_F32, 1, &world, ET_ROW_MAJOR, "place",
                         &r->place));
    return et_tensor_new(s->cx, s->dev, ET_F32, 1, one, ET_ROW_MAJOR, "share",
                         &r->share);
}

static et_status
init(struct eti_part *p)
{
    struct ranks *r = p->own;
    void *block;
    ET_TRY(prepare_sync(p));
    if (!p->common->comm)
        return ET_OK;
    r->n_host = OWN_SAID + eti_count_said(p->t);
    r->n_said = r->n_host + eti_count_sums(p->t);
    et_graph_set_comm(p->s->graph, p->common->comm);
    ET_TRY(et_alloc(p->s->cx, (size_t)r->n_host * sizeof *r->host, &block));
    r->host = block;
    ET_TRY(make_leaves(p));
    return bind(p);
}

static void
release(struct eti_part *p)
{
    struct ranks *r = p->own;
    et_tensor_free(&r->weight);
    et_tensor_free(&r->own);
    et_tensor_free(&r->together);
    et_tensor_free(&r->place);
    et_tensor_free(&r->share);
    et_free(p->s->cx, r->host);
    et_free(p->s->cx, r->nothing);
    r->host = r->nothing = NULL;
}

/* ---- what the host says ---- */

static void
say(const struct eti_part *p, bool failed, bool spare, float *said)
{
    said[WEIGHT] = failed || spare ? 0 : (float)eti_rank_share(p);
    said[FAILED] = failed;
    eti_parts_say(p->t, said + OWN_SAID);
}

/* ---- batch norm's statistics ---- */

struct et_tensor *
eti_ranks_place(struct et_trainer *t)
{
    const struct ranks *r = eti_part_own(t, ETI_PART_RANKS);
    return r->place;
}

/* Spare rows have no place in the statistics, and no share of the loss. */
static et_status
begin(struct eti_part *p, struct eti_train_step *k)
{
    struct ranks *r = p->own;
    struct et_state *s = p->s;
    float place[ETI_MOST_RANKS] = {0}, share;
    if (!r->place)
        return ET_OK;
    share = k->spare ? 0 : (float)eti_rank_share(p);
    place[s->rank] = k->spare ? 0 : 1;
    ET_TRY(et_tensor_write(s->cx, r->place, place, (size_t)s->world * sizeof *place));
    return et_tensor_write(s->cx, r->share, &share, sizeof share);
}

/* What a rank's loss does to the statistics goes into all ranks' gradients: so each is
 * weighed before, and the gradients are only added up. */
static et_status
loss(struct eti_part *p, struct eti_train_step *k)
{
    const struct ranks *r = p->own;
    if (r->place)
        k->loss = et_mul(p->s->graph, k->loss, r->share);
    return ET_OK;
}

/* ---- in the graph ---- */

struct et_tensor *
eti_counted(struct et_graph *g, const struct eti_train_step *k, struct et_tensor *v)
{
    return et_where(g, k->weight, v, et_fill(g, ET_F32, 1, one, 0));
}

struct et_tensor *
eti_weighed(struct et_graph *g, const struct eti_train_step *k, struct et_tensor *v)
{
    return eti_counted(g, k, et_mul(g, v, k->weight));
}

/* What this rank's host says. Of its rows only as much as counts weighs. */
static struct et_tensor *
own_said(const struct eti_part *p, const struct eti_train_step *k)
{
    const struct ranks *r = p->own;
    struct et_graph *g = p->s->graph;
    if (!k->counted)
        return r->own;
    struct et_tensor *v[] = {
        et_mul(g, r->weight, k->counted),
        et_slice(g, r->own, 0, WEIGHT + 1, r->n_host - WEIGHT - 1, 1),
    };
    return et_concat(g, v, 2, 0);
}

/* What this rank's part of the batch came to, behind what its host says. */
static struct et_tensor *
collect(struct eti_part *p, struct eti_train_step *k)
{
    struct ranks *r = p->own;
    struct et_tensor *v[1 + ETI_MAX_NUMBERS];
    v[0] = own_said(p, k);
    k->weight = r->weight;
    int n = eti_parts_sums(p->t, v + 1);
    return et_concat(p->s->graph, v, 1 + n, 0);
}

/* Number I of what all ranks said, N of them. */
static struct et_tensor *
said(const struct eti_part *p, int64_t i, int64_t n)
{
    const struct ranks *r = p->own;
    struct et_graph *g = p->s->graph;
    return et_slice(g, et_pending(g, r->together), 0, i, n, 1);
}

/* The gradients of bucket B as one array, of this rank. */
static struct et_tensor *
own_bucket(struct et_state *s, const struct bucket *b, const struct eti_train_step *k)
{
    if (!k->alone)
        return et_slice(s->graph, s->grad, 0, b->begin, b->end - b->begin, 1);
    return eti_param_space_pack_part(s->graph, s->params, k->grads, b->first, b->n,
                                     b->begin, b->end);
}

/* state->grad, this rank's, becomes the mean over the batch of all; what ranks tell
 * each other goes with it. Not for a gradient that is to stay the rank's own. */
static et_status
grad(struct eti_part *p, struct eti_train_step *k)
{
    struct et_state *s = p->s;
    struct et_graph *g = s->graph;
    struct ranks *r = p->own;
    struct et_tensor *part[MAX_BUCKETS];
    int64_t offset[MAX_BUCKETS];
    int n = r->n_buckets;
    if (!p->common->comm || s->keep_local)
        return et_graph_status(g);
    say(p, false, k->spare, r->host);
    ET_TRY(et_tensor_write(s->cx, r->own, r->host, (size_t)r->n_host * sizeof(float)));
    et_assign(g, r->together, et_all_reduce(g, collect(p, k), NULL));
    for (int i = 0; i < n; i++) { /* packed by rising offset */
        const struct bucket *b = &r->bucket[i];
        part[n - 1 - i] =
            et_all_reduce(g, own_bucket(s, b, k), r->place ? NULL : r->weight);
        offset[n - 1 - i] = b->begin;
    }
    if (!s->grad)
        return et_graph_status(g);
    s->grad = et_mul(g, et_pack(g, part, offset, n, s->params->total, ET_F32),
                     et_reciprocal(g, said(p, WEIGHT, 1)));
    return et_graph_status(g);
}

static et_status
skip(struct eti_part *p, struct eti_train_step *k)
{
    k->failed = p->common->comm ? said(p, FAILED, 1) : NULL;
    return ET_OK;
}

/* ---- what came of it, in the graph ---- */

static const struct eti_part *
ranks_of(const struct eti_part *p)
{
    return eti_part_of(p->t, ETI_PART_RANKS);
}

struct et_tensor *
eti_sum_over_ranks(const struct eti_part *p, int64_t at, int64_t n)
{
    const struct eti_part *own = ranks_of(p);
    const struct ranks *r = own->own;
    return said(own, r->n_host + eti_sums_before(p) + at, n);
}

struct et_tensor *
eti_mean_over_ranks(const struct eti_part *p, int64_t at)
{
    struct et_graph *g = p->s->graph;
    return et_mul(g, eti_sum_over_ranks(p, at, 1),
                  et_reciprocal(g, said(ranks_of(p), WEIGHT, 1)));
}

/* ---- after the evaluation ---- */

et_status
eti_ranks_hear(struct et_trainer *t, bool *again)
{
    const struct eti_part *p = eti_part_of(t, ETI_PART_RANKS);
    struct ranks *r = p->own;
    *again = false;
    if (!p->common->comm)
        return ET_OK;
    memcpy(r->host, et_tensor_data(r->together), (size_t)r->n_host * sizeof(float));
    *again = r->host[FAILED] > 0;
    eti_parts_hear(t, r->host + OWN_SAID, *again);
    return ET_OK;
}

et_status
eti_ranks_stand_in(struct et_trainer *t)
{
    const struct eti_part *p = eti_part_of(t, ETI_PART_RANKS);
    struct ranks *r = p->own;
    struct et_ctx *cx = p->s->cx;
    struct et_comm *comm = p->common->comm;
    int64_t size[1 + MAX_BUCKETS];
    if (!comm)
        return ET_OK;
    size[0] = r->n_said;
    for (int i = 0; i < r->n_buckets; i++)
        size[1 + i] = r->bucket[i].end - r->bucket[i].begin;
    uint32_t set = eti_collectives_set(p->s->graph, size, 1 + r->n_buckets);
    memset(r->nothing, 0, (size_t)r->n_said * sizeof *r->nothing);
    say(p, true, true, r->nothing);
    et_comm_set_mark(comm, -1, 1, set);
    ET_TRY(et_comm_all_reduce(cx, comm, r->nothing, r->n_said, ET_F32, ET_COMM_SUM));
    eti_parts_hear(t, r->nothing + OWN_SAID, true);
    for (int i = 0; i < r->n_buckets; i++) {
        int64_t n = size[1 + i];
        memset(r->nothing, 0, (size_t)n * sizeof *r->nothing);
        et_comm_set_mark(comm, -1, 2 + i, set);
        ET_TRY(et_comm_all_reduce(cx, comm, r->nothing, n, ET_F32, ET_COMM_SUM));
    }
    return ET_OK;
}

const struct eti_part_type eti_part_ranks = {
    .size = sizeof(struct ranks),
    .init = init,
    .release = release,
    .bind = bind,
    .begin = begin,
    .loss = loss,
    .grad = grad,
    .skip = skip,
};
