/* SPDX-License-Identifier: Apache-2.0 */
/* dnn.c: engines for graphs: cuDNN's handle, its heuristics, what is kept, running.
 *
 * The heuristics answer with engine configurations, the best first; notes of each say
 * how it computes, and those that would compute something else are passed over. What
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

/* A configuration asks for 0.05 ms (precompiled) to 0.6 s: 40 are what the largest
 * answers have. */
enum { MAX_CONFIGS = 64, MAX_TEXT = 16 << 10, MAX_KNOBS = 16, MAX_NOTES = 16 };

/* A finished plan, shared by all kernels of one graph. */
struct engine {
    struct engine *next;
    char *key;
    cudnnBackendDescriptor_t plan;
    size_t ws;
    char name[64];
};

struct etk_dnn {
    cudnnHandle_t handle;           /* NULL: PROPERTIES stand for a device */
    cudnnBackendDescriptor_t props; /* NULL beside a handle */
    cudaStream_t stream;            /* the handle's, as last set */
    struct engine *engines;
};

struct etk_dnn_plan {
    struct et_device_handle *dev;
    const struct engine *engine;
    int n; /* tensors that a run is given */
    int64_t uid[ETK_DNN_TENSORS];
    int slot[ETK_DNN_TENSORS]; /* or ETK_DNN_BY_VALUE */
    float value[ETK_DNN_TENSORS];
    void *ptr[ETK_DNN_TENSORS]; /* of PACK */
    void *ws;
    cudnnBackendDescriptor_t pack; /* NULL before the first run */
};

static et_status
fail(struct et_device_handle *d, cudnnStatus_t code, const char *what)
{
    char last[160] = "", text[256];
    cudnnGetLastErrorString(last, sizeof last);
    snprintf(text, sizeof text, "%s%s%s", what, last[0] ? ": " : "", last);
    return etk_fail(d, ETK_DNN, (int)code, text);
}

#define TRY_DNN(d, call)                                                               \
    do {                                                                               \
        cudnnStatus_t code_ = (call);                                                  \
        if (code_ != CUDNN_STATUS_SUCCESS)                                             \
            return fail(d, code_, #call);                                              \
    } while (0)

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
    TRY_DNN(d, cudnnCreate(&handle));
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
    TRY_DNN(d,
            cudnnBackendCreateDescriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, props));
    TRY_DNN(d,
            cudnnBackendSetAttribute(*props, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                                     CUDNN_TYPE_CHAR, (int64_t)strlen(json), json));
    TRY_DNN(d, cudnnBackendFinalize(*props));
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
        struct engine *e = d->dnn->engines;
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

/* ---- what an engine says of itself ---- */

/* Are f32 numbers multiplied with each other? */
static bool
multiplies_f32(const struct etk_dnn_graph *g)
{
    for (int i = 0; i < g->n_nodes; i++) {
        const struct etk_dnn_node *n = &g->node[i];
        if (n->kind >= ETK_DNN_MATMUL && n->kind <= ETK_DNN_CONV_FILTER &&
            g->tensor[n->in[0]].dtype == CUDNN_DATA_FLOAT)
            return true;
    }
    return false;
}

/* Bits by note of the engines that are passed over. Narrower inputs or sums than asked
 * for never will do, nor Fourier and Winograd's transforms, whose errors are not those
 * of a sum; of f32 on tensor cores 10 bits of each factor are left (TF32). */
static unsigned
unwanted_notes(const struct et_device_handle *d, const struct etk_dnn_graph *g)
{
    unsigned notes = 1u << CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS |
                     1u << CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION |
                     1u << CUDNN_NUMERICAL_NOTE_FFT |
                     1u << CUDNN_NUMERICAL_NOTE_WINOGRAD;
    if (d->deterministic)
        notes |= 1u << CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
    if (!d->tf32 && multiplies_f32(g))
        notes |= 1u << CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
    return notes;
}

static bool
get_desc(cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name,
         cudnnBackendDescriptor_t into)
{
    int64_t n = 0;
    return cudnnBackendGetAttribute(of, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n,
                                    &into) == CUDNN_STATUS_SUCCESS &&
           n == 1;
}

static bool
has_note(cudnnBackendDescriptor_t engine, unsigned unwanted)
{
    cudnnBackendNumericalNote_t notes[MAX_NOTES];
    int64_t n = 0;
    if (cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                 CUDNN_TYPE_NUMERICAL_NOTE, MAX_NOTES, &n,
                                 notes) != CUDNN_STATUS_SUCCESS)
        return true;
    for (int64_t i = 0; i < n && i < MAX_NOTES; i++)
        if (unwanted >> notes[i] & 1)
            return true;
    return n > MAX_NOTES;
}

/* Does making its plan run a compiler? */
static bool
is_compiled(cudnnBackendDescriptor_t engine)
{
    cudnnBackendBehaviorNote_t notes[MAX_NOTES];
    int64_t n = 0;
    if (cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE,
                                 CUDNN_TYPE_BEHAVIOR_NOTE, MAX_NOTES, &n,
                                 notes) != CUDNN_STATUS_SUCCESS)
        return true;
    for (int64_t i = 0; i < n && i < MAX_NOTES; i++)
        if (notes[i] == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION)
            return true;
    return false;
}

/* "eng7_k2=3_k13=1", as cuDNN's own logs have it. */
static void
name_engine(char *name, size_t size, cudnnBackendDescriptor_t config,
            cudnnBackendDescriptor_t engine)
{
    int64_t index = -1, n = 0, made = 0;
    cudnnBackendDescriptor_t knob[MAX_KNOBS];
    (void)cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX,
                                   CUDNN_TYPE_INT64, 1, &n, &index);
    size_t at = (size_t)snprintf(name, size, "eng%lld", (long long)index);
    while (made < MAX_KNOBS &&
           cudnnBackendCreateDescriptor(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR,
                                        &knob[made]) == CUDNN_STATUS_SUCCESS)
        made++;
    n = 0;
    (void)cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES,
                                   CUDNN_TYPE_BACKEND_DESCRIPTOR, made, &n, knob);
    for (int64_t i = 0; i < n && i < made && at < size; i++) {
        int64_t type = 0, value = 0, one;
        cudnnBackendKnobType_t kind = CUDNN_KNOB_TYPE_COUNTS;
        (void)cudnnBackendGetAttribute(knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE,
                                       CUDNN_TYPE_KNOB_TYPE, 1, &one, &kind);
        (void)cudnnBackendGetAttribute(knob[i], CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE,
                                       CUDNN_TYPE_INT64, 1, &one, &value);
        type = kind;
        at += (size_t)snprintf(name + at, size - at, "_k%lld=%lld", (long long)type,
                               (long long)value);
    }
    while (made > 0)
        (void)cudnnBackendDestroyDescriptor(knob[--made]);
}

/* ---- plans of configurations ---- */

/* Sets what a plan is made for: the handle, or the device described. */
static cudnnStatus_t
set_device(const struct etk_dnn *dnn, cudnnBackendDescriptor_t plan)
{
    return dnn->handle
               ? cudnnBackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE,
                                          CUDNN_TYPE_HANDLE, 1, &dnn->handle)
               : cudnnBackendSetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
                                          CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                          &dnn->props);
}

/* The plan of CONFIG, or of JSON; NULL where cuDNN has none. */
static cudnnBackendDescriptor_t
finish_plan(const struct etk_dnn *dnn, cudnnBackendDescriptor_t config,
            const char *json, size_t length)
{
    cudnnBackendDescriptor_t plan;
    if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan) !=
        CUDNN_STATUS_SUCCESS)
        return NULL;
    cudnnStatus_t code = set_device(dnn, plan);
    if (code == CUDNN_STATUS_SUCCESS)
        code = json ? cudnnBackendSetAttribute(
                          plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
                          CUDNN_TYPE_CHAR, (int64_t)length, json)
                    : cudnnBackendSetAttribute(
                          plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                          CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config);
    if (code == CUDNN_STATUS_SUCCESS)
        code = cudnnBackendFinalize(plan);
    if (code == CUDNN_STATUS_SUCCESS)
        return plan;
    (void)cudnnBackendDestroyDescriptor(plan);
    return NULL;
}

static bool
workspace_of(cudnnBackendDescriptor_t plan, size_t *ws)
{
    int64_t bytes = 0, n = 0;
    if (cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                 CUDNN_TYPE_INT64, 1, &n,
                                 &bytes) != CUDNN_STATUS_SUCCESS)
        return false;
    *ws = (size_t)bytes;
    return true;
}

/* The plan of CONFIG if its engine computes as asked for. */
static bool
try_config(const struct etk_dnn *dnn, cudnnBackendDescriptor_t config,
           unsigned unwanted, const struct etk_dnn_limits *limits, struct engine *out)
{
    cudnnBackendDescriptor_t engine;
    bool good = false;
    if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) !=
        CUDNN_STATUS_SUCCESS)
        return false;
    out->plan = NULL;
    if (get_desc(config, CUDNN_ATTR_ENGINECFG_ENGINE, engine) &&
        !has_note(engine, unwanted) && !(limits->precompiled && is_compiled(engine)))
        out->plan = finish_plan(dnn, config, NULL, 0);
    if (out->plan) {
        good = workspace_of(out->plan, &out->ws) && out->ws <= limits->workspace;
        if (good)
            name_engine(out->name, sizeof out->name, config, engine);
        else
            (void)cudnnBackendDestroyDescriptor(out->plan);
    }
    (void)cudnnBackendDestroyDescriptor(engine);
    return good;
}

/* ---- choosing ---- */

/* Engines that will do, the heuristics' best first. */
struct candidates {
    int n, most;
    struct engine engine[MAX_CONFIGS];
};

static et_status
ask_heuristics(struct et_device_handle *d, cudnnBackendDescriptor_t heur,
               cudnnBackendDescriptor_t graph, cudnnBackendHeurMode_t mode)
{
    TRY_DNN(d, cudnnBackendSetAttribute(heur, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                                        CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph));
    TRY_DNN(d, cudnnBackendSetAttribute(heur, CUDNN_ATTR_ENGINEHEUR_MODE,
                                        CUDNN_TYPE_HEUR_MODE, 1, &mode));
    if (d->dnn->props)
        TRY_DNN(d, cudnnBackendSetAttribute(heur, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP,
                                            CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                            &d->dnn->props));
    TRY_DNN(d, cudnnBackendFinalize(heur));
    return ET_OK;
}

/* Adds the engines that MODE knows. */
static et_status
gather_mode(struct et_device_handle *d, cudnnBackendDescriptor_t graph,
            cudnnBackendHeurMode_t mode, unsigned unwanted,
            const struct etk_dnn_limits *limits, struct candidates *c)
{
    cudnnBackendDescriptor_t heur, config[MAX_CONFIGS];
    int64_t n = 0;
    int made = 0;
    TRY_DNN(d,
            cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &heur));
    et_status status = ask_heuristics(d, heur, graph, mode);
    while (status == ET_OK && made < MAX_CONFIGS &&
           cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR,
                                        &config[made]) == CUDNN_STATUS_SUCCESS)
        made++;
    if (made > 0 && cudnnBackendGetAttribute(heur, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                             CUDNN_TYPE_BACKEND_DESCRIPTOR, made, &n,
                                             config) != CUDNN_STATUS_SUCCESS)
        n = 0;
    for (int64_t i = 0; i < n && i < made && c->n < c->most; i++)
        if (try_config(d->dnn, config[i], unwanted, limits, &c->engine[c->n]))
            c->n++;
    while (made > 0)
        (void)cudnnBackendDestroyDescriptor(config[--made]);
    (void)cudnnBackendDestroyDescriptor(heur);
    return status;
}

/* The first mode that has an engine answers for all. */
static et_status
gather(struct et_device_handle *d, const struct etk_dnn_graph *g,
       const struct etk_dnn_limits *limits, struct candidates *c)
{
    static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B,
                                                   CUDNN_HEUR_MODE_FALLBACK};
    struct etk_dnn_descs *descs = etk_new(sizeof *descs);
    if (!descs)
        return ET_ENOMEM;
    cudnnStatus_t code = etk_dnn_lower(g, d->dnn->handle, descs);
    et_status status =
        code == CUDNN_STATUS_SUCCESS ? ET_OK : fail(d, code, "the graph");
    for (size_t i = 0; i < sizeof modes / sizeof modes[0] && code == 0 && c->n == 0;
         i++)
        status =
            gather_mode(d, descs->graph, modes[i], unwanted_notes(d, g), limits, c);
    etk_dnn_drop(descs);
    free(descs);
    return c->n > 0 ? ET_OK : status;
}

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
         const struct engine *engine, struct etk_dnn_plan **out)
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
                const struct candidates *c, int *best, bool *timed)
{
    struct etk_dnn_plan *plan[MAX_CONFIGS] = {NULL};
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
       const struct etk_dnn_limits *limits, int tune, struct engine *out, bool *timed)
{
    struct candidates *c = etk_new(sizeof *c);
    if (!c)
        return ET_ENOMEM;
    int best = 0;
    c->most = tune < MAX_CONFIGS ? tune : MAX_CONFIGS;
    *timed = c->most == 1;
    et_status status = gather(d, g, limits, c);
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
read_plan(const struct etk_dnn *dnn, const char *key, size_t limit, struct engine *out)
{
    void *bytes;
    size_t size;
    if (!etk_cache_read("graph", key, &bytes, &size))
        return false;
    const char *text = bytes, *end = memchr(text, '\n', size);
    if (end) {
        snprintf(out->name, sizeof out->name, "%.*s", (int)(end - text), text);
        out->plan = finish_plan(dnn, NULL, end + 1, size - (size_t)(end + 1 - text));
        if (out->plan && !(workspace_of(out->plan, &out->ws) && out->ws <= limit)) {
            (void)cudnnBackendDestroyDescriptor(out->plan);
            out->plan = NULL;
        }
    }
    free(bytes);
    return out->plan != NULL;
}

static void
write_plan(const char *key, const struct engine *e)
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
               const struct etk_dnn_limits *limits, const char *key, struct engine *out)
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
            const struct etk_dnn_limits *limits, char *key, const struct engine **out)
{
    for (struct engine *e = d->dnn->engines; e; e = e->next)
        if (strcmp(e->key, key) == 0) {
            *out = e;
            return ET_OK;
        }
    struct engine *e = etk_new(sizeof *e);
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
                     d->gpu.driver, cudnnGetVersion(), unwanted_notes(d, g),
                     limits->precompiled ? ", precompiled" : "", limits->workspace,
                     tuned(d, limits));
    if (g->overflow || !etk_dnn_text(g, key + n, (size_t)(MAX_TEXT - n)))
        return ET_EINTERNAL;
    const struct engine *engine;
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
    TRY_DNN(p->dev,
            cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack));
    p->pack = pack;
    memset(p->ptr, 0, sizeof p->ptr); /* of no run, until it is whole */
    TRY_DNN(p->dev, cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS,
                                             CUDNN_TYPE_INT64, p->n, p->uid));
    TRY_DNN(p->dev,
            cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                                     CUDNN_TYPE_VOID_PTR, p->n, ptr));
    TRY_DNN(p->dev, cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
                                             CUDNN_TYPE_VOID_PTR, 1, &ws));
    TRY_DNN(p->dev, cudnnBackendFinalize(pack));
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
        TRY_DNN(p->dev, cudnnSetStream(dnn->handle, stream));
        dnn->stream = stream;
    }
    TRY_DNN(p->dev, cudnnBackendExecute(dnn->handle, p->engine->plan, p->pack));
    return ET_OK;
}
