/* SPDX-License-Identifier: Apache-2.0 */
/* graph_impl.h: what the files of src/core/graph share.
 *
 * Building: build.c, with the casts of mixed precision by autocast.c. Then an
 * evaluation goes: lower.c (what is reachable, its signature, and as a list of steps on
 * values, ir.h), passes.c (rewrites the steps, by the files that passes.def names),
 * place.c (where each value lies), cost.c (what each step computes and moves), plan.c
 * (kernels and addresses), replay.c, eval.c (cache and replay). */
#ifndef ETI_GRAPH_IMPL_H
#define ETI_GRAPH_IMPL_H

#include "core/base/arena.h"
#include "core/base/assert.h"
#include "core/base/checks.h"
#include "core/base/memory.h"
#include "core/graph/ir.h"
#include "core/graph/spent.h"

struct et_device {
    struct et_ctx *cx;
    const struct et_device_table *table;
    struct et_device_handle *handle;
    void *library; /* dlopen's handle; NULL for "ref" */
    struct et_device_memory memory;
    size_t limit;                /* bytes; 0 = none */
    struct et_device *next;      /* of the context */
    struct et_graph *graphs;     /* on it: whose caches go when memory is short */
    int64_t storages;            /* on it */
    struct et_tensor *freed;     /* leaves that graphs may still name: usable.c */
    struct eti_staging *staging; /* staging.c; NULL until something is written */
    struct et_stream *uploads;   /* upload.c; NULL until there is a lane */
};

ET_NODISCARD et_status eti_device_alloc(struct et_ctx *cx, struct et_device *dev,
                                        size_t bytes, void **out);
void eti_device_free(struct et_device *dev, void *block, size_t bytes);
/* STATUS, with a sentence where it is a failure: what DEV says of WHAT. */
ET_NODISCARD et_status eti_device_check(struct et_device *dev, et_status status,
                                        const char *what);

/* Why G cannot use T, or cannot do without it where it is NULL: "CALL: WHICH is ..." */
ET_NODISCARD et_status eti_unusable(struct et_graph *g, const char *call,
                                    const char *which, const struct et_tensor *t);
/* Refuses T where it is NULL or G cannot use it. */
ET_NODISCARD et_status eti_check_usable(struct et_graph *g, const char *call,
                                        const char *which, const struct et_tensor *t);
/* With checks on: T, whose storage is given back, stays as a handle that no graph can
 * use for as long as a graph on DEV may name it. False: the caller frees it. */
bool eti_keep_freed(struct et_device *dev, struct et_tensor *t);
/* Frees those handles. */
void eti_release_freed(struct et_device *dev);
/* The same if none but G, which is empty now or going, could name one. */
void eti_forget_freed(struct et_graph *g);
/* Was T freed, and is it kept as above? */
bool eti_is_freed(const struct et_tensor *t);
/* STATUS, which has been said, sticks to G, unless one does already. NULL. */
struct et_tensor *eti_graph_fail(struct et_graph *g, et_status status);

/* Zeroed memory of G until its reset. NULL when memory is out, which then sticks to
 * G. */
void *eti_graph_alloc(struct et_graph *g, size_t bytes);

/* A node with what evaluation notes down about it. */
struct eti_node {
    struct et_node pub; /* first: et_tensor.node points here */
    uint32_t mark;      /* of the last walk that reached it */
    int first_value;    /* in the plan being made: value of output 0 */
    uint64_t epoch;     /* commits that had happened when it was built */
    uint8_t part;       /* the graph's, when it was built */
};

struct eti_assignment {
    struct et_tensor *leaf, *value;
    struct et_tensor *shadow; /* the leaf that follows LEAF; NULL: none (shadow.h) */
};

/* A value in another dtype, for whoever asks for it next. */
struct eti_cast {
    const struct et_tensor *from; /* NULL: the place is free */
    struct et_tensor *to;
};

enum { ETI_PLANS = 32 }; /* plans kept; the least recently used goes first */

struct et_graph {
    struct et_ctx *cx;
    struct et_device *dev;
    struct et_comm *comm;      /* of the ranks; NULL: there is one */
    struct et_graph *next;     /* on the device */
    struct et_storage results; /* what evaluated values say their storage is */
    struct eti_arena arena;    /* nodes, attributes, values: until reset */
    struct eti_arena scratch;  /* lowering and planning: until the evaluation ends */
    et_status status;          /* sticky */
    uint32_t generation;       /* of this step of this graph alone */
    uint32_t walk;             /* counts walks, for marks */
    uint64_t epoch;            /* counts commits */
    bool eager;                /* ETUDE_EAGER=1 */
    bool dry;                  /* plan, do not run */
    bool capture;      /* record plans where the device can; not ETUDE_CAPTURE=0 */
    bool autocast;     /* nodes being built take the low dtype where they may */
    enum et_dtype low; /* of mixed precision: BF16, F16; NONE = all is as written */
    unsigned dump;     /* ETUDE_DUMP, ETI_DUMP_* bits */

    struct et_node **node;
    int n_nodes;
    int64_t cap_nodes;
    struct eti_assignment *assign;
    int n_assign;
    int64_t cap_assign;
    struct eti_cast *cast; /* of this step, by address: open addressing */
    int n_casts, cap_casts;
    int eager_collectives;                /* done since the graph was empty */
    struct eti_eager_block *eager_blocks; /* values computed at once */

    struct eti_ir *ir; /* reused by every evaluation */
    struct eti_plan *plan[ETI_PLANS];
    uint64_t plan_clock; /* counts runs */
    uint64_t step_clock; /* at the last reset */
    void *slab;          /* intermediates of whichever plan runs */
    size_t slab_bytes;
    void *workspace;
    size_t workspace_bytes;
    struct et_graph_stats stats;
    struct et_plan_info last;
    size_t short_of, had;     /* bytes: et_graph_shortage */
    enum eti_spent part;      /* of nodes that are built from now on */
    double spent[ETI_SPENTS]; /* seconds */
    struct eti_kv_cache *kv;  /* of the forward pass under way; NULL: none
                                 (modules/kv_cache.h) */
};

/* May G use T, which is not NULL: a value of this step, or a leaf on its device? A leaf
 * that has been freed is on none. */
static inline bool
eti_is_usable(const struct et_graph *g, const struct et_tensor *t)
{
    return t->node ? t->generation == g->generation : t->storage->dev == g->dev;
}

/* Does T lie in a storage that others may share: a leaf's, or a shadow? What
 * evaluations gave does not. */
static inline bool
eti_has_storage(const struct et_graph *g, const struct et_tensor *t)
{
    return t->storage && t->storage != &g->results;
}

enum {
    ETI_DUMP_GRAPH = 1,
    ETI_DUMP_PLAN = 2,
    ETI_DUMP_MEMORY = 4,
    ETI_DUMP_PASSES = 8,
};

/* Puts casts before the N operands IN of a node about to be built, as the graph's mixed
 * precision has it; IN may become another list. */
ET_NODISCARD et_status eti_autocast(struct et_graph *g, enum et_op_id op,
                                    struct et_tensor *const **in, int n);
void eti_autocast_reset(struct et_graph *g);
/* A commit is done, its assignments still listed: computed casts of other leaves
 * hold. */
void eti_autocast_commit(struct et_graph *g);

/* ---- making a plan ---- */

/* Walks back from WANT and the assignments; fills IR and its key. */
ET_NODISCARD et_status eti_lower(struct et_graph *g, struct et_tensor *const *want,
                                 int n, struct eti_ir *ir);
/* The value that tensor T became in the lowering just made. */
int eti_value_of(const struct et_tensor *t);
/* Decides where every value lies; fills slab and output sizes. */
ET_NODISCARD et_status eti_place(struct eti_ir *ir, size_t *slab, size_t *output);

/* S as a call. DESC has room for its operands and results, to which it points. */
struct et_call eti_step_call(const struct eti_ir *ir, const struct eti_step *s,
                             struct et_desc *desc);
/* What each step computes and moves, once its values have their places. ENOMEM. */
ET_NODISCARD et_status eti_count_costs(struct eti_ir *ir);
/* Is S, its costs counted, a kernel of every run? */
bool eti_step_runs(const struct eti_step *s);
/* What DEV can do at most: as its module says, or ETUDE_ROOFLINE. EINVAL: that variable
 * cannot be read. */
ET_NODISCARD et_status eti_device_peak(struct et_ctx *cx, struct et_device *dev,
                                       struct et_device_peak *out);
/* The longer of the times for S's bytes and FLOPs, as far as they are known: the least
 * it can take. BOUND: which of the rates that is, "memory", "plain" or a product's
 * dtype; "-" and 0 seconds where nothing is known. */
double eti_least_seconds(const struct et_device_peak *peak, const struct eti_ir *ir,
                         const struct eti_step *s, const char **bound);

void eti_ir_free(struct et_graph *g);
/* The kernel of an operation called NAME has failed with STATUS: says so. */
ET_NODISCARD et_status eti_kernel_failed(struct et_graph *g, et_status status,
                                         const char *name);
/* Frees what can be made again: slab, workspace, and plans but KEEP that this step has
 * not run (the results of those it has run may still be read). Between evaluations. */
void eti_drop_caches(struct et_graph *g, const struct eti_plan *keep);

struct eti_plan;
ET_NODISCARD et_status eti_plan_new(struct et_graph *g, struct eti_ir *ir,
                                    struct eti_plan **out);
/* Memory for a run: G's slab and workspace, grown where they are too small. */
ET_NODISCARD et_status eti_plan_reserve(struct et_graph *g, const struct eti_plan *p);
void eti_plan_free(struct et_graph *g, struct eti_plan *p);
bool eti_plan_matches(const struct eti_plan *p, const uint64_t key[2]);
uint64_t eti_plan_last_use(const struct eti_plan *p);
void eti_plan_info(const struct eti_plan *p, struct et_plan_info *info);
/* Bytes that pack S moves: parts that lie elsewhere, and the gaps. 0: it is no
 * kernel. */
int64_t eti_pack_bytes(const struct eti_ir *ir, const struct eti_step *s);
/* The same of a pad. */
int64_t eti_pad_bytes(const struct eti_ir *ir, const struct eti_step *s);
/* Binds the leaves of IR, runs all kernels, and gives WANT their addresses. P has been
 * made or reserved last. */
ET_NODISCARD et_status eti_plan_run(struct et_graph *g, struct eti_plan *p,
                                    const struct eti_ir *ir,
                                    struct et_tensor *const *want, int n);

void eti_dump_graph(const struct et_graph *g);
/* The steps of IR as they are before any pass, and a line's columns. */
void eti_dump_passes(const struct eti_ir *ir);
/* A pass after which there are AFTER steps of each operation, where BEFORE have been.
 */
void eti_dump_pass(const struct et_graph *g, const char *name,
                   const int before[ET_OP_COUNT], const int after[ET_OP_COUNT]);
/* Steps of IR, whose costs are counted, with the kernels that are prepared. */
void eti_dump_plan(const struct eti_ir *ir, const struct et_device_peak *peak);
void eti_dump_memory(const struct eti_ir *ir, size_t slab, size_t output);

/* ETUDE_EAGER: computes NODE now. */
ET_NODISCARD et_status eti_eager_run(struct et_graph *g, struct et_node *node);
void eti_eager_reset(struct et_graph *g);

#endif
