/* ranks_sync.c: what ranks settle between steps: that they begin alike, that they stay
 * alike, and what no step carries. */
#include "config.h"

#define XXH_INLINE_ALL
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "core/checkpoint/store.h"
#include "core/data/loader_impl.h"
#include "core/trainer/trainer_impl.h"

enum { COMPARE_EVERY = 1000, MOST_RANKS = 1024 }; /* batches; rank_env.h */

/* et_comm_mark's which of what is settled here. */
enum place {
    SETTINGS = -11,
    PARAMETERS,
    SHARED,
    GATHERED,
    LOADED,
    WENT_BACK,
    LISTENED,
    METRIC,
    REQUEST,
    JOINED,
};

static void
mark(struct et_trainer *t, enum place place)
{
    et_comm_set_mark(t->ranks.comm, -1, place, 0);
}

/* ---- digests ---- */

/* DIGEST is the same on all ranks, or EPEER: WHAT of the ranks that differ from rank 0
 * is not. */
static et_status
compare(struct et_trainer *t, uint64_t digest, const char *what)
{
    uint64_t all[MOST_RANKS];
    char who[160] = "";
    size_t n = 0;
    struct eti_ranks *r = &t->ranks;
    ET_TRY(et_comm_all_gather(t->state.cx, r->comm, &digest, sizeof digest, all));
    for (int i = 1; i < et_comm_world(r->comm); i++)
        if (all[i] != all[0] && n + 8 < sizeof who)
            n += (size_t)snprintf(who + n, sizeof who - n, "%s%d", n ? ", " : "", i);
    if (!n)
        return ET_OK;
    return ET_FAIL(t->state.cx, ET_EPEER,
                   "rank %s: %s not those of rank 0 after batch "
                   "%" PRId64,
                   who, what, t->state.timestamp.batch);
}

/* The bytes of X, wherever it lies. */
static et_status
digest_of(struct et_trainer *t, const struct et_tensor *x, uint64_t *out)
{
    struct et_ctx *cx = t->state.cx;
    size_t bytes = et_desc_bytes(&x->desc);
    void *copy;
    ET_TRY(et_alloc(cx, bytes, &copy));
    et_status status = et_tensor_read(cx, x, copy, bytes);
    *out = XXH3_64bits(copy, bytes);
    et_free(cx, copy);
    return status;
}

static et_status
compare_parameters(struct et_trainer *t)
{
    uint64_t digest;
    ET_TRY(digest_of(t, t->state.params->values, &digest));
    mark(t, PARAMETERS);
    return compare(t, digest, "its parameters are");
}

et_status
eti_ranks_compare(struct et_trainer *t)
{
    if (!t->ranks.comm || t->state.timestamp.batch % COMPARE_EVERY != 0)
        return ET_OK;
    return compare_parameters(t);
}

/* ---- beginning ---- */

/* X of rank 0 to all. */
static et_status
share(struct et_trainer *t, struct et_tensor *x)
{
    struct et_ctx *cx = t->state.cx;
    size_t bytes = et_desc_bytes(&x->desc);
    void *copy;
    ET_TRY(et_alloc(cx, bytes, &copy));
    et_status status = et_tensor_read(cx, x, copy, bytes);
    mark(t, SHARED);
    if (status == ET_OK)
        status = et_comm_broadcast(cx, t->ranks.comm, copy, bytes, 0);
    if (status == ET_OK && et_comm_rank(t->ranks.comm) > 0)
        status = et_tensor_write(cx, x, copy, bytes);
    et_free(cx, copy);
    return status;
}

et_status
eti_ranks_share_buffers(struct et_trainer *t)
{
    if (!t->ranks.comm)
        return ET_OK;
    for (int i = 0; i < t->stats.leaves.n; i++)
        ET_TRY(share(t, t->stats.leaves.v[i].param->tensor));
    return ET_OK;
}

/* What must be alike for the ranks to build the same steps, and as many of them. */
static uint64_t
digest_settings(const struct et_trainer *t)
{
    const struct et_state *s = &t->state;
    const struct et_trainer_config *c = &t->config;
    int64_t v[24] = {0};
    int n = 0;
    v[n++] = s->seed;
    v[n++] = s->precision;
    v[n++] = s->batch_size;
    v[n++] = s->train_len;
    v[n++] = s->params->total;
    v[n++] = s->params->n;
    v[n++] = t->n_train_metrics;
    v[n++] = t->n_evaluators;
    v[n++] = s->n_algorithms;
    v[n++] = t->is_auto ? 0 : t->accum;
    v[n++] = c->microbatch_size;
    v[n++] = c->nonfinite_action;
    v[n++] = c->nonfinite_grace;
    v[n++] = s->timestamp.batch;
    v[n++] = s->timestamp.sample;
    v[n++] = (int64_t)s->max_duration.unit;
    memcpy(&v[n], &s->max_duration.value, sizeof s->max_duration.value);
    return XXH3_64bits(v, sizeof v);
}

et_status
eti_ranks_begin(struct et_trainer *t)
{
    if (!t->ranks.comm)
        return ET_OK;
    mark(t, SETTINGS);
    ET_TRY(compare(t, digest_settings(t), "its seed, recipe or data are"));
    ET_TRY(share(t, t->state.params->values));
    for (int i = 0; i < t->state.params->n_moments; i++)
        ET_TRY(share(t, t->state.params->moment[i]));
    return eti_ranks_share_buffers(t);
}

/* ---- checkpoints ---- */

/* The other ranks' values that only they know; rank 0 writes them. */
et_status
eti_ranks_gather(struct et_trainer *t)
{
    struct et_ctx *cx = t->state.cx;
    struct eti_ranks *r = &t->ranks;
    int64_t n, most, *own;
    void *block;
    if (!r->comm || !t->config.train)
        return ET_OK;
    ET_TRY(eti_loader_unreadable(t->config.train, &own, &n));
    most = n;
    mark(t, GATHERED);
    et_status status = et_comm_all_reduce(cx, r->comm, &most, 1, ET_I64, ET_COMM_MAX);
    size_t row = ((size_t)most + 1) * sizeof *own;
    et_free(cx, r->unreadable);
    r->unreadable = NULL;
    r->most = most + 1;
    if (status == ET_OK)
        status = et_alloc(cx, row * (size_t)(et_comm_world(r->comm) + 1), &block);
    if (status == ET_OK) {
        int64_t *mine = (int64_t *)block + (int64_t)et_comm_world(r->comm) * r->most;
        r->unreadable = block;
        mine[0] = n;
        if (n)
            memcpy(mine + 1, own, (size_t)n * sizeof *own);
        status = et_comm_all_gather(cx, r->comm, mine, row, r->unreadable);
    }
    et_free(cx, own);
    return status;
}

static et_status
archive_one(struct et_trainer *t, struct et_archive *a, int rank)
{
    char name[16];
    et_status status;
    snprintf(name, sizeof name, "%05d", rank);
    ET_TRY(et_archive_enter(a, name));
    if (et_archive_mode(a) == ET_ARCHIVE_SAVE) {
        int64_t *row = t->ranks.unreadable + (int64_t)rank * t->ranks.most, n = row[0];
        void *list = row + 1;
        status = et_archive_list(a, "unreadable", &list, &n, sizeof *row);
    } else {
        status = eti_loader_archive(t->config.train, a);
    }
    et_archive_leave(a);
    return status;
}

et_status
eti_ranks_archive(struct et_trainer *t, struct et_archive *a)
{
    struct eti_ranks *r = &t->ranks;
    bool saves = et_archive_mode(a) == ET_ARCHIVE_SAVE;
    int first = saves ? 1 : t->state.rank, end = saves ? t->state.world : first + 1;
    if (!r->comm || !t->config.train || (!saves && first == 0))
        return ET_OK;
    ET_TRY(et_archive_enter(a, "ranks"));
    et_status status = ET_OK;
    for (int i = first; i < end && status == ET_OK; i++)
        status = archive_one(t, a, i);
    et_archive_leave(a);
    return status;
}

et_status
eti_ranks_load(struct et_trainer *t, et_status status, char *name,
               eti_load_named_fn *load)
{
    struct et_ctx *cx = t->state.cx;
    struct et_comm *comm = t->ranks.comm;
    struct {
        char name[ETI_STEP_NAME];
        uint64_t digest;
        bool good;
    } first = {.digest = t->ranks.loaded, .good = status == ET_OK};
    if (!comm)
        return status;
    if (first.good && t->state.rank == 0)
        memcpy(first.name, name, sizeof first.name);
    mark(t, LOADED);
    ET_TRY(et_comm_broadcast(cx, comm, &first, sizeof first, 0));
    if (!first.good)
        return t->state.rank == 0
                   ? status
                   : ET_FAIL(cx, ET_EPEER, "rank 0 has no checkpoint to begin with");
    if (t->state.rank > 0) {
        memcpy(name, first.name, sizeof first.name);
        status = load(t, name);
    }
    if (status == ET_OK && t->ranks.loaded != first.digest)
        status = ET_FAIL(cx, ET_EFORMAT, "%s: rank %d reads another than rank 0", name,
                         t->state.rank);
    uint8_t good = status == ET_OK;
    ET_TRY(et_comm_all_reduce(cx, comm, &good, 1, ET_U8, ET_COMM_MIN));
    if (status == ET_OK && !good)
        status = ET_FAIL(cx, ET_EPEER, "another rank could not begin with %s", name);
    return status;
}

et_status
eti_ranks_go_back(struct et_trainer *t, int64_t *step, eti_load_named_fn *load,
                  char *why, size_t size)
{
    struct et_ctx *cx = t->state.cx;
    char name[ETI_STEP_NAME];
    if (!t->ranks.comm)
        return ET_OK;
    mark(t, WENT_BACK);
    ET_TRY(et_comm_broadcast(cx, t->ranks.comm, step, sizeof *step, 0));
    if (t->state.rank > 0 && *step >= 0 &&
        load(t, eti_step_name(*step, name)) != ET_OK) {
        snprintf(why, size, "%s", et_error_get(cx)->message);
        et_error_clear(cx);
        *step = -1;
    }
    return et_comm_all_reduce(cx, t->ranks.comm, step, 1, ET_I64, ET_COMM_MIN);
}

/* ---- evaluations ---- */

et_status
eti_ranks_listen(struct et_trainer *t)
{
    struct eti_ranks *r = &t->ranks;
    uint8_t any = r->stop || eti_is_set(t->config.interrupt);
    mark(t, LISTENED);
    ET_TRY(et_comm_all_reduce(t->state.cx, r->comm, &any, 1, ET_U8, ET_COMM_MAX));
    r->stop = r->comm && any;
    return ET_OK;
}

et_status
eti_ranks_metric(struct et_trainer *t, const struct et_metric *m, double *out)
{
    struct et_ctx *cx = t->state.cx;
    int n = et_metric_n_sums(m);
    void *block;
    if (!t->ranks.comm)
        return et_metric_value(m, out);
    ET_TRY(et_alloc(cx, (size_t)n * sizeof(double), &block));
    double *sums = block;
    et_status status = et_metric_read(m, sums);
    mark(t, METRIC);
    if (status == ET_OK)
        status = et_comm_all_reduce(cx, t->ranks.comm, sums, n, ET_F64, ET_COMM_SUM);
    if (status == ET_OK)
        *out = et_metric_class(m)->compute(sums, n);
    et_free(cx, block);
    return status;
}

/* ---- requests ---- */

et_status
eti_ranks_agree(struct et_trainer *t, et_status status, const char *name)
{
    struct et_ctx *cx = t->state.cx;
    uint8_t good = status == ET_OK;
    if (!t->ranks.comm)
        return status;
    mark(t, JOINED);
    ET_TRY(et_comm_all_reduce(cx, t->ranks.comm, &good, 1, ET_U8, ET_COMM_MIN));
    if (status == ET_OK && !good)
        status = ET_FAIL(cx, ET_EPEER, "another rank could not have %s", name);
    return status;
}

et_status
eti_ranks_next_request(struct et_trainer *t, int64_t step, struct et_request *out,
                       bool *got)
{
    struct eti_ranks *r = &t->ranks;
    struct et_control *c = t->config.control;
    struct {
        bool got;
        struct et_request request;
    } next = {0};
    if (!r->comm) {
        *got = c && c->next(c, step, out);
        return ET_OK;
    }
    if (et_comm_rank(r->comm) == 0) {
        next.got = r->has_request;
        next.request = r->request;
        if (!next.got && c)
            next.got = c->next(c, step, &next.request);
        r->has_request = false;
    }
    mark(t, REQUEST);
    ET_TRY(et_comm_broadcast(t->state.cx, r->comm, &next, sizeof next, 0));
    *got = next.got;
    *out = next.request;
    return ET_OK;
}
