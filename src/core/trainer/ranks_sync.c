/* SPDX-License-Identifier: Apache-2.0 */
/* ranks_sync.c: what ranks settle between steps: that they begin alike, that they stay
 * alike, and what no step carries. */
#include "config.h"

#define XXH_INLINE_ALL
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "core/trainer/ranks.h"
#include "core/trainer/trainer_impl.h"

enum { COMPARE_EVERY = 1000 }; /* batches */

static void
mark(struct et_trainer *t, enum eti_exchange what)
{
    et_comm_set_mark(t->common.comm, -1, what, 0);
}

/* ---- digests ---- */

/* DIGEST is the same on all ranks, or EPEER: WHAT of the ranks that differ from rank 0
 * is not. */
static et_status
compare(struct et_trainer *t, uint64_t digest, const char *what)
{
    uint64_t all[ETI_MOST_RANKS];
    char who[160] = "";
    size_t n = 0;
    ET_TRY(
        et_comm_all_gather(t->state.cx, t->common.comm, &digest, sizeof digest, all));
    for (int i = 1; i < et_comm_world(t->common.comm); i++)
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
    mark(t, ETI_AT_PARAMETERS);
    return compare(t, digest, "its parameters are");
}

et_status
eti_ranks_compare(struct et_trainer *t)
{
    if (!t->common.comm || t->state.timestamp.batch % COMPARE_EVERY != 0)
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
    mark(t, ETI_AT_TENSOR);
    if (status == ET_OK)
        status = et_comm_broadcast(cx, t->common.comm, copy, bytes, 0);
    if (status == ET_OK && et_comm_rank(t->common.comm) > 0)
        status = et_tensor_write(cx, x, copy, bytes);
    et_free(cx, copy);
    return status;
}

et_status
eti_ranks_share_buffers(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    struct et_leaves leaves;
    et_status status = ET_OK;
    if (!t->common.comm)
        return ET_OK;
    ET_TRY(et_module_leaves(s->cx, s->model->root, ET_BUFFER, &leaves));
    for (int i = 0; i < leaves.n && status == ET_OK; i++)
        status = share(t, leaves.v[i].param->tensor);
    et_leaves_release(&leaves);
    return status;
}

/* What must be alike for the ranks to build the same steps, and as many of them. */
static uint64_t
digest_settings(struct et_trainer *t)
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
    v[n++] = eti_count_sums(t);
    v[n++] = t->evaluation.n;
    v[n++] = s->n_algorithms;
    v[n++] = t->pieces.is_auto ? 0 : t->pieces.accum;
    v[n++] = c->microbatch_size;
    v[n++] = c->nonfinite_action;
    v[n++] = c->nonfinite_grace;
    v[n++] = c->hold_schedule;
    v[n++] = c->sync_batch_norm;
    v[n++] = s->timestamp.batch;
    v[n++] = s->timestamp.sample;
    v[n++] = (int64_t)s->max_duration.unit;
    memcpy(&v[n], &s->max_duration.value, sizeof s->max_duration.value);
    return XXH3_64bits(v, sizeof v);
}

et_status
eti_ranks_begin(struct et_trainer *t)
{
    if (!t->common.comm)
        return ET_OK;
    mark(t, ETI_AT_SETTINGS);
    ET_TRY(compare(t, digest_settings(t), "its seed, recipe or data are"));
    ET_TRY(share(t, t->state.params->values));
    for (int i = 0; i < t->state.params->n_moments; i++)
        ET_TRY(share(t, t->state.params->moment[i]));
    for (int k = 0; k < t->state.params->n_states; k++)
        for (int i = 0; i < t->state.params->n; i++)
            if (t->state.params->state[k][i])
                ET_TRY(share(t, t->state.params->state[k][i]));
    return eti_ranks_share_buffers(t);
}

/* ---- checkpoints ---- */

et_status
eti_ranks_load(struct et_trainer *t, et_status status, char *name,
               eti_load_named_fn *load)
{
    struct et_ctx *cx = t->state.cx;
    struct et_comm *comm = t->common.comm;
    struct {
        char name[ETI_STEP_NAME];
        uint64_t digest;
        bool good;
    } first = {.digest = t->loaded, .good = status == ET_OK};
    if (!comm)
        return status;
    if (first.good && t->state.rank == 0)
        memcpy(first.name, name, sizeof first.name);
    mark(t, ETI_AT_LOADED);
    ET_TRY(et_comm_broadcast(cx, comm, &first, sizeof first, 0));
    if (!first.good)
        return t->state.rank == 0
                   ? status
                   : ET_FAIL(cx, ET_EPEER, "rank 0 has no checkpoint to begin with");
    if (t->state.rank > 0) {
        memcpy(name, first.name, sizeof first.name);
        status = load(t, name);
    }
    if (status == ET_OK && t->loaded != first.digest)
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
    if (!t->common.comm)
        return ET_OK;
    mark(t, ETI_AT_WENT_BACK);
    ET_TRY(et_comm_broadcast(cx, t->common.comm, step, sizeof *step, 0));
    if (t->state.rank > 0 && *step >= 0 &&
        load(t, eti_step_name(*step, name)) != ET_OK) {
        snprintf(why, size, "%s", et_error_get(cx)->message);
        et_error_clear(cx);
        *step = -1;
    }
    return et_comm_all_reduce(cx, t->common.comm, step, 1, ET_I64, ET_COMM_MIN);
}

/* ---- evaluations ---- */

et_status
eti_ranks_metric(struct et_trainer *t, const struct et_metric *m, double *out)
{
    struct et_ctx *cx = t->state.cx;
    int n = et_metric_n_sums(m);
    void *block;
    if (!t->common.comm)
        return et_metric_value(m, out);
    ET_TRY(et_alloc(cx, (size_t)n * sizeof(double), &block));
    double *sums = block;
    et_status status = et_metric_read(m, sums);
    mark(t, ETI_AT_METRIC);
    if (status == ET_OK)
        status = et_comm_all_reduce(cx, t->common.comm, sums, n, ET_F64, ET_COMM_SUM);
    if (status == ET_OK)
        *out = et_metric_class(m)->compute(sums, n);
    et_free(cx, block);
    return status;
}

/* ---- algorithms that join ---- */

et_status
eti_ranks_agree(struct et_trainer *t, et_status status, const char *name)
{
    struct et_ctx *cx = t->state.cx;
    uint8_t good = status == ET_OK;
    if (!t->common.comm)
        return status;
    mark(t, ETI_AT_JOINED);
    ET_TRY(et_comm_all_reduce(cx, t->common.comm, &good, 1, ET_U8, ET_COMM_MIN));
    if (status == ET_OK && !good)
        status = ET_FAIL(cx, ET_EPEER, "another rank could not have %s", name);
    return status;
}
