/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h: a plan, between making and running it (private to plan.c and replay.c). */
#ifndef ETI_GRAPH_PLAN_H
#define ETI_GRAPH_PLAN_H

#include "core/graph/capture.h"
#include "core/graph/collective.h"
#include "core/graph/inputs.h"

enum eti_base { BASE_NONE, BASE_SLAB, BASE_OUTPUT, BASE_BINDING };

struct eti_address {
    enum eti_base base;
    int binding;
    size_t offset; /* bytes */
};

enum eti_item_kind { RUN_KERNEL, BEGIN_COLLECTIVE, AWAIT_COLLECTIVES };

struct eti_plan_item {
    enum eti_item_kind kind;
    struct et_kernel *kernel;
    int ptr;        /* first entry of the address table */
    int collective; /* BEGIN: which; AWAIT: those before it */
    const char *name;
    uint8_t part; /* of the step, enum eti_spent */
};

struct eti_plan {
    uint64_t key[2];
    uint64_t last_use;
    struct et_plan_info info;
    struct eti_plan_item *item;
    int n_items;
    int n_once; /* the first of them: constants, which a second run finds computed */
    bool has_run;
    int64_t cap_items;
    struct eti_address *address;
    void **ptr; /* address resolved */
    int n_ptr;
    int64_t cap_ptr;
    struct eti_address *value; /* where each value of the lowering lies */
    int n_values;
    struct eti_inputs inputs; /* the bindings */
    void *slab;               /* at the last run */
    void *output;
    void *workspace;    /* at the last run */
    uint64_t addresses; /* digest of ptr and workspace */
    struct eti_recordings recordings;
    struct eti_collectives collectives;
};

#endif
