/* SPDX-License-Identifier: Apache-2.0 */
/* dnn_engine.c: the engines that cuDNN has for a graph.
 *
 * Its heuristics answer with engine configurations, the best first; notes of each say
 * how it computes, and those that would compute something else are passed over. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/dnn_plan.h"

enum { MAX_KNOBS = 16, MAX_NOTES = 16 };

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

unsigned
etk_dnn_unwanted(const struct et_device_handle *d, const struct etk_dnn_graph *g)
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

cudnnBackendDescriptor_t
etk_dnn_finish(const struct etk_dnn *dnn, cudnnBackendDescriptor_t config,
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

bool
etk_dnn_workspace(cudnnBackendDescriptor_t plan, size_t *ws)
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
           unsigned unwanted, const struct etk_dnn_limits *limits,
           struct etk_dnn_engine *out)
{
    cudnnBackendDescriptor_t engine;
    bool good = false;
    if (cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine) !=
        CUDNN_STATUS_SUCCESS)
        return false;
    out->plan = NULL;
    if (get_desc(config, CUDNN_ATTR_ENGINECFG_ENGINE, engine) &&
        !has_note(engine, unwanted) && !(limits->precompiled && is_compiled(engine)))
        out->plan = etk_dnn_finish(dnn, config, NULL, 0);
    if (out->plan) {
        good = etk_dnn_workspace(out->plan, &out->ws) && out->ws <= limits->workspace;
        if (good)
            name_engine(out->name, sizeof out->name, config, engine);
        else
            (void)cudnnBackendDestroyDescriptor(out->plan);
    }
    (void)cudnnBackendDestroyDescriptor(engine);
    return good;
}

/* ---- choosing ---- */

static et_status
ask_heuristics(struct et_device_handle *d, cudnnBackendDescriptor_t heur,
               cudnnBackendDescriptor_t graph, cudnnBackendHeurMode_t mode)
{
    ETK_TRY_DNN(d, cudnnBackendSetAttribute(heur, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
                                            CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph));
    ETK_TRY_DNN(d, cudnnBackendSetAttribute(heur, CUDNN_ATTR_ENGINEHEUR_MODE,
                                            CUDNN_TYPE_HEUR_MODE, 1, &mode));
    if (d->dnn->props)
        ETK_TRY_DNN(d, cudnnBackendSetAttribute(heur, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP,
                                                CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                                &d->dnn->props));
    ETK_TRY_DNN(d, cudnnBackendFinalize(heur));
    return ET_OK;
}

/* Adds the engines that MODE knows. */
static et_status
gather_mode(struct et_device_handle *d, cudnnBackendDescriptor_t graph,
            cudnnBackendHeurMode_t mode, unsigned unwanted,
            const struct etk_dnn_limits *limits, struct etk_dnn_candidates *c)
{
    cudnnBackendDescriptor_t heur, config[ETK_DNN_CONFIGS];
    int64_t n = 0;
    int made = 0;
    ETK_TRY_DNN(
        d, cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &heur));
    et_status status = ask_heuristics(d, heur, graph, mode);
    while (status == ET_OK && made < ETK_DNN_CONFIGS &&
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

et_status
etk_dnn_gather(struct et_device_handle *d, const struct etk_dnn_graph *g,
               const struct etk_dnn_limits *limits, struct etk_dnn_candidates *c)
{
    static const cudnnBackendHeurMode_t modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B,
                                                   CUDNN_HEUR_MODE_FALLBACK};
    struct etk_dnn_descs *descs = etk_new(sizeof *descs);
    if (!descs)
        return ET_ENOMEM;
    cudnnStatus_t code = etk_dnn_lower(g, d->dnn->handle, descs);
    et_status status =
        code == CUDNN_STATUS_SUCCESS ? ET_OK : etk_dnn_fail(d, code, "the graph");
    for (size_t i = 0; i < sizeof modes / sizeof modes[0] && code == 0 && c->n == 0;
         i++)
        status =
            gather_mode(d, descs->graph, modes[i], etk_dnn_unwanted(d, g), limits, c);
    etk_dnn_drop(descs);
    free(descs);
    return c->n > 0 ? ET_OK : status;
}
