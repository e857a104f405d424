/* SPDX-License-Identifier: Apache-2.0 */
/* dnn.c: plans for graphs: cuDNN's handle, which engine, what is kept, running. What
 * was found is kept for the process under the graph's text, and on disk under that and
 * the names of GPU, driver and library, as the plan's JSON: kernels that cuDNN compiles
 * at run time (0.3-0.6 s each) are in it. */
#include "kernels/cuda/dnn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cache.h"
#include "kernels/cuda/dnn_plan.h"
#include "kernels/cuda/trial.h"

enum { MAX_TEXT = 16 << 10 };

struct etk_dnn_plan {
    struct et_device_handle *dev;
    const struct etk_dnn_engine *engine;
    int n; /* tensors that a run is given */
    int64_t uid[ETK_DNN_TENSORS];
    int slot[ETK_DNN_TENSORS]; /* or ETK_DNN_BY_VALUE */
    float value[ETK_DNN_TENSORS];
    void *ptr[ETK_DNN_TENSORS]; /* of PACK */
    void *ws;
    cudnnBackendDescriptor_t pack; /* NULL before the first run */
};

et_status
etk_dnn_fail(struct et_device_handle *d, cudnnStatus_t code, const char *what)
{
    char last[160] = "", text[256];
    cudnnGetLastErrorString(last, sizeof last);
    snprintf(text, sizeof text, "%s%s%s", what, last[0] ? ": " : "", last);
    return etk_fail(d, ETK_DNN, (int)code, text);
}

bool
etk_dnn_dtype(enum et_dtype dtype, cudnnDataType_t *out)
{
    switch (dtype) {
    case ET_F32:
        *out = CUDNN_DATA_FLOAT;
        return true;
    case ET_BF16:
        *out = CUDNN_DATA_BFLOAT16;
        return true;
    case ET_F16:
        *out = CUDNN_DATA_HALF;
        return true;
    default:
        return false;
    }
}

/* ---- opening ---- */

static et_status
open_dnn(struct et_device_handle *d)
{
    if (d->dnn)
        return ET_OK;
    cudnnHandle_t handle;
    ETK_TRY_DNN(d, cudnnCreate(&handle));
    d->dnn = etk_new(sizeof *d->dnn);
    if (!d->dnn) {
        (void)cudnnDestroy(handle);
        return ET_ENOMEM;
    }
    d->dnn->handle = handle;
    return ET_OK;
}

static et_status
describe_device(struct et_device_handle *d, const char *json)
{
    cudnnBackendDescriptor_t *props = &d->dnn->props;
    ETK_TRY_DNN(
        d, cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, props));
    ETK_TRY_DNN(
        d, cudnnBackendSetAttribute(*props, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                    CUDNN_TYPE_CHAR, (int64_t)strlen(json), json));
    ETK_TRY_DNN(d, cudnnBackendFinalize(*props));
    return ET_OK;
}

et_status
etk_dnn_open_properties(struct et_device_handle *d, const char *json)
{
    d->dnn = etk_new(sizeof *d->dnn);
    if (!d->dnn)
        return ET_ENOMEM;
    et_status status = describe_device(d, json);
    if (status != ET_OK)
        etk_dnn_close(d);
    return status;
}

void
etk_dnn_close(struct et_device_handle *d)
{
    if (!d->dnn)
        return;
    while (d->dnn->engines) {
        struct etk_dnn_engine *e = d->dnn->engines;
        d->dnn->engines = e->next;
        (void)cudnnBackendDestroyDescriptor(e->plan);
        free(e->key);
        free(e);
    }
    if (d->dnn->props)
        (void)cudnnBackendDestroyDescriptor(d->dnn->props);
    if (d->dnn->handle)
        (void)cudnnDestroy(d->dnn->handle);
    free(d->dnn);
    d->dnn = NULL;
}

/* ---- choosing ---- */

/* What a run of G is given. */
static void
list_tensors(struct etk_dnn_plan *p, const struct etk_dnn_graph *g)
{
    for (int i = 0; i < g->n_tensors; i++) {
        if (g->tensor[i].slot == ETK_DNN_VIRTUAL)
            continue;
        p->uid[p->n] = i + 1;
        p->slot[p->n] = g->tensor[i].slot;
        p->value[p->n++] = g->tensor[i].value;
    }
}

static et_status
new_plan(struct et_device_handle *d, const struct etk_dnn_graph *g,
         const struct etk_dnn_engine *engine, struct etk_dnn_plan **out)
{
    struct etk_dnn_plan *p = etk_new(sizeof *p);
    if (!p)
        return ET_ENOMEM;
    p->dev = d;
    p->engine = engine;
    list_tensors(p, g);
    *out = p;
    return ET_OK;
}

/* The fastest of C, or the first where that cannot be found out. */
static et_status
time_candidates(struct et_device_handle *d, const struct etk_dnn_graph *g,
                const struct etk_dnn_candidates *c, int *best, bool *timed)
{
    struct etk_dnn_plan *plan[ETK_DNN_CONFIGS] = {NULL};
    size_t ws = 0;
    et_status status = ET_OK;
    for (int i = 0; i < c->n && status == ET_OK; i++) {
        status = new_plan(d, g, &c->engine[i], &plan[i]);
        ws = c->engine[i].ws > ws ? c->engine[i].ws : ws;
    }
    if (status == ET_OK)
        status = etk_dnn_fastest(d, g, plan, c->n, ws, best);
    for (int i = 0; i < c->n; i++)
        etk_dnn_plan_free(plan[i]);
    *timed = *best >= 0;
    *best = *timed ? *best : 0;
    return status;
}

/* The engine of G out of the TUNE first. TIMED: whether it is known to be the
 * fastest. */
static et_status
choose(struct et_device_handle *d, const struct etk_dnn_graph *g,
       const struct etk_dnn_limits *limits, int tune, struct etk_dnn_engine *out,
       bool *timed)
{
    struct etk_dnn_candidates *c = etk_new(sizeof *c);
    if (!c)
        return ET_ENOMEM;
    int best = 0;
    c->most = tune < ETK_DNN_CONFIGS ? tune : ETK_DNN_CONFIGS;
    *timed = c->most == 1;
    et_status status = etk_dnn_gather(d, g, limits, c);
    if (status == ET_OK && c->n == 0)
        status = ET_ENOTSUP;
    if (status == ET_OK && c->n > 1)
        status = time_candidates(d, g, c, &best, timed);
    for (int i = 0; i < c->n; i++)
        if (status != ET_OK || i != best)
            (void)cudnnBackendDestroyDescriptor(c->engine[i].plan);
    if (status == ET_OK)
        *out = c->engine[best];
    free(c);
    return status;
}

/* ---- what is kept on disk: the engine's name, a line end, the plan as JSON ---- */

static bool
read_plan(const struct etk_dnn *dnn, const char *key, size_t limit,
          struct etk_dnn_engine *out)
{
    void *bytes;
    size_t size;
    if (!etk_cache_read("graph", key, &bytes, &size))
        return false;
    const char *text = bytes, *end = memchr(text, '\n', size);
    if (end) {
        snprintf(out->name, sizeof out->name, "%.*s", (int)(end - text), text);
        out->plan = etk_dnn_finish(dnn, NULL, end + 1, size - (size_t)(end + 1 - text));
        if (out->plan &&
            !(etk_dnn_workspace(out->plan, &out->ws) && out->ws <= limit)) {
            (void)cudnnBackendDestroyDescriptor(out->plan);
            out->plan = NULL;
        }
    }
    free(bytes);
    return out->plan != NULL;
}

static void
write_plan(const char *key, const struct etk_dnn_engine *e)
{
    int64_t length = 0, n = 0;
    size_t head = strlen(e->name) + 1;
    if (cudnnBackendGetAttribute(e->plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                 CUDNN_TYPE_CHAR, 0, &length,
                                 NULL) != CUDNN_STATUS_SUCCESS ||
        length <= 0)
        return;
    char *text = malloc(head + (size_t)length);
    if (!text)
        return;
    memcpy(text, e->name, head);
    text[head - 1] = '\n';
    if (cudnnBackendGetAttribute(e->plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                                 CUDNN_TYPE_CHAR, length, &n,
                                 text + head) == CUDNN_STATUS_SUCCESS &&
        n == length)
        etk_cache_write("graph", key, text, head + (size_t)length);
    free(text);
}

/* How many engines may be compared. The clock may decide nothing where runs are to be
 * repeatable, nor while work is being recorded. */
static int
tuned(const struct et_device_handle *d, const struct etk_dnn_limits *limits)
{
    return limits->tune >= 1 && d->dnn->handle && etk_may_time(d) ? limits->tune : 1;
}

/* From disk, or else chosen. On disk is what took time to find: what was timed or
 * compiled. */
static et_status
load_or_choose(struct et_device_handle *d, const struct etk_dnn_graph *g,
               const struct etk_dnn_limits *limits, const char *key,
               struct etk_dnn_engine *out)
{
    int tune = tuned(d, limits);
    bool kept = d->dnn->handle && (tune > 1 || !limits->precompiled), timed;
    if (kept && read_plan(d->dnn, key, limits->workspace, out))
        return ET_OK;
    ET_TRY(choose(d, g, limits, tune, out, &timed));
    if (kept && timed)
        write_plan(key, out);
    return ET_OK;
}

/* ---- plans ---- */

/* The engine kept under KEY, or a new one. */
static et_status
find_engine(struct et_device_handle *d, const struct etk_dnn_graph *g,
            const struct etk_dnn_limits *limits, char *key,
            const struct etk_dnn_engine **out)
{
    for (struct etk_dnn_engine *e = d->dnn->engines; e; e = e->next)
        if (strcmp(e->key, key) == 0) {
            *out = e;
            return ET_OK;
        }
    struct etk_dnn_engine *e = etk_new(sizeof *e);
    if (!e)
        return ET_ENOMEM;
    et_status status = load_or_choose(d, g, limits, key, e);
    if (status == ET_OK && !(e->key = strdup(key))) {
        (void)cudnnBackendDestroyDescriptor(e->plan);
        status = ET_ENOMEM;
    }
    if (status != ET_OK) {
        free(e);
        return status;
    }
    e->next = d->dnn->engines;
    d->dnn->engines = e;
    *out = e;
    return ET_OK;
}

/* KEY has room for MAX_TEXT bytes. */
static et_status
plan_with_key(struct et_device_handle *d, const struct etk_dnn_graph *g,
              const struct etk_dnn_limits *limits, char *key, struct etk_dnn_plan **out)
{
    ET_TRY(open_dnn(d));
    int n = snprintf(key, MAX_TEXT,
                     "graph 1; %s, sm_%d%d, %d multiprocessors, driver %d, cuDNN %zu; "
                     "without %x%s, workspace %zu, of %d\n",
                     d->gpu.name, d->gpu.major, d->gpu.minor, d->gpu.sm_count,
                     d->gpu.driver, cudnnGetVersion(), etk_dnn_unwanted(d, g),
                     limits->precompiled ? ", precompiled" : "", limits->workspace,
                     tuned(d, limits));
    if (g->overflow || !etk_dnn_text(g, key + n, (size_t)(MAX_TEXT - n)))
        return ET_EINTERNAL;
    const struct etk_dnn_engine *engine;
    ET_TRY(find_engine(d, g, limits, key, &engine));
    return new_plan(d, g, engine, out);
}

et_status
etk_dnn_plan(struct et_device_handle *d, const struct etk_dnn_graph *g,
             const struct etk_dnn_limits *limits, struct etk_dnn_plan **out, size_t *ws,
             char *why, size_t why_size)
{
    char *key = malloc(MAX_TEXT);
    if (!key)
        return ET_ENOMEM;
    et_status status = plan_with_key(d, g, limits, key, out);
    free(key);
    if (status == ET_ENOTSUP)
        return etk_refuse(why, why_size, "cuDNN has no engine for this%s%s",
                          d->why[0] ? ": " : "", d->why);
    ET_TRY(status);
    *ws = (*out)->engine->ws;
    return ET_OK;
}

void
etk_dnn_plan_free(struct etk_dnn_plan *p)
{
    if (!p)
        return;
    if (p->pack)
        (void)cudnnBackendDestroyDescriptor(p->pack);
    free(p);
}

const char *
etk_dnn_plan_name(const struct etk_dnn_plan *p)
{
    return p->engine->name;
}

/* ---- running ---- */

bool
etk_dnn_aligned(void *const *ptr, int n)
{
    for (int i = 0; i < n; i++)
        if ((uintptr_t)ptr[i] % ETK_DNN_ALIGN)
            return false;
    return true;
}

/* A new list of addresses for cuDNN. */
static et_status
pack_pointers(struct etk_dnn_plan *p, void **ptr, void *ws)
{
    if (p->pack)
        (void)cudnnBackendDestroyDescriptor(p->pack);
    p->pack = NULL;
    cudnnBackendDescriptor_t pack;
    ETK_TRY_DNN(p->dev, cudnnBackendCreateDescriptor(
                            CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack));
    p->pack = pack;
    memset(p->ptr, 0, sizeof p->ptr); /* of no run, until it is whole */
    ETK_TRY_DNN(p->dev,
                cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS,
                                         CUDNN_TYPE_INT64, p->n, p->uid));
    ETK_TRY_DNN(p->dev,
                cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                                         CUDNN_TYPE_VOID_PTR, p->n, ptr));
    ETK_TRY_DNN(p->dev,
                cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
                                         CUDNN_TYPE_VOID_PTR, 1, &ws));
    ETK_TRY_DNN(p->dev, cudnnBackendFinalize(pack));
    memcpy(p->ptr, ptr, (size_t)p->n * sizeof ptr[0]);
    p->ws = ws;
    return ET_OK;
}

et_status
etk_dnn_run(struct etk_dnn_plan *p, void *const *ptr, void *ws, cudaStream_t stream)
{
    struct etk_dnn *dnn = p->dev->dnn;
    void *now[ETK_DNN_TENSORS];
    for (int i = 0; i < p->n; i++)
        now[i] =
            p->slot[i] == ETK_DNN_BY_VALUE ? (void *)&p->value[i] : ptr[p->slot[i]];
    if (!p->pack || p->ws != ws ||
        memcmp(now, p->ptr, (size_t)p->n * sizeof now[0]) != 0)
        ET_TRY(pack_pointers(p, now, ws));
    if (dnn->stream != stream) {
        ETK_TRY_DNN(p->dev, cudnnSetStream(dnn->handle, stream));
        dnn->stream = stream;
    }
    ETK_TRY_DNN(p->dev, cudnnBackendExecute(dnn->handle, p->engine->plan, p->pack));
    return ET_OK;
}
