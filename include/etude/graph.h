/* SPDX-License-Identifier: Apache-2.0 */
/* graph.h: expressions that compute when they are asked to.
 *
 *     struct et_tensor *y = et_relu(g, et_matmul(g, x, w, false, false));
 *     ET_TRY(et_eval(g, &y, 1));
 *     ET_TRY(et_tensor_read(cx, y, numbers, sizeof numbers));
 *     et_graph_reset(g);
 *
 * A function such as et_relu(g, x) appends a node to the graph and returns the tensor
 * that will hold its value: ~100 ns, no kernel. et_eval plans and runs what is pending.
 * What is built from one et_graph_reset to the next is a step. The plan is found again
 * by the graph's signature (ops, shapes, dtypes, attributes, topology; never values),
 * so from the second step on evaluating is a replay of prepared kernels over fixed
 * addresses.
 *
 * The first error of a function that appends sticks to the graph; later functions
 * return NULL and do nothing, whatever they are given; et_eval returns the status.
 * Model code stays formulas. An evaluation that fails by itself, for want of memory or
 * in a kernel, does not stick.
 *
 * A step is a transaction: et_assign'ed leaves change only at the end of an evaluation,
 * in the commit. Until then every read of a leaf sees the old value. */
#ifndef ETUDE_GRAPH_H
#define ETUDE_GRAPH_H

#include "etude/op.h"
#include "etude/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct et_graph;

/* One graph serves many steps; its plan cache lives as long as it does. CX and DEV are
 * borrowed and must outlive it. */
ET_NODISCARD et_status et_graph_new(struct et_ctx *cx, struct et_device *dev,
                                    struct et_graph **out);
void et_graph_free(struct et_graph **g);

/* Forgets all nodes and the sticky error; tensors of the step become stale. */
void et_graph_reset(struct et_graph *g);
/* The status that sticks, ET_OK when there is none; its sentence is in the context. */
ET_NODISCARD et_status et_graph_status(const struct et_graph *g);
struct et_ctx *et_graph_ctx(const struct et_graph *g);
struct et_device *et_graph_device(const struct et_graph *g);
/* Whose ranks et_all_reduce is of; borrowed, NULL (the start): there is one. Between
 * steps. */
struct et_comm;
void et_graph_set_comm(struct et_graph *g, struct et_comm *comm);

/* Gradients of the scalar LOSS with respect to the N PARAMS, as more nodes, into GRADS
 * [N]: of PARAMS[i]'s shape and dtype, or NULL where LOSS does not depend on it. PARAMS
 * may be leaves or values of this graph. ESHAPE: LOSS is no scalar. EINVAL, which
 * sticks: a tensor is NULL, or not this graph's or device's. */
ET_NODISCARD et_status et_grad(struct et_graph *g, struct et_tensor *loss,
                               struct et_tensor *const *params, int n,
                               struct et_tensor **grads);
/* The same for any OUTPUT with its gradient DY given (NULL = ones). */
ET_NODISCARD et_status et_grad_from(struct et_graph *g, struct et_tensor *output,
                                    struct et_tensor *dy,
                                    struct et_tensor *const *params, int n,
                                    struct et_tensor **grads);

/* LEAF takes VALUE (same shape and dtype) in the commit of the next evaluation. One
 * assignment to a leaf per evaluation. What is wrong sticks to the graph. */
void et_assign(struct et_graph *g, struct et_tensor *leaf, struct et_tensor *value);
/* The same in place of what LEAF has been assigned in this evaluation, if anything. */
void et_reassign(struct et_graph *g, struct et_tensor *leaf, struct et_tensor *value);
/* The value that was assigned and is not yet committed, or LEAF itself. */
struct et_tensor *et_pending(struct et_graph *g, struct et_tensor *leaf);

/* Mixed precision: products built inside et_autocast(g, true) take operands of LOW,
 * BF16 or F16, and add in f32; norms, softmax, losses and sums there take f32; operands
 * of unlike floats go to the widest. Leaves keep their dtype: so do parameters and
 * their gradients. ET_NONE (the start): every node is as written. Between steps.
 * EDTYPE: LOW is something else. */
ET_NODISCARD et_status et_graph_set_low_dtype(struct et_graph *g, enum et_dtype low);
/* From now on nodes are (ON) part of a forward pass or loss; returns what was so
 * before, to be put back. et_model_forward and et_model_loss do this themselves. */
bool et_autocast(struct et_graph *g, bool on);

/* Drops the pending assignments and the sticky error; nodes stay. After ENOMEM the same
 * step can be tried again in smaller pieces. */
void et_graph_abandon(struct et_graph *g);
/* From now on evaluations plan, reserve memory and give zeros, but run nothing. */
void et_graph_set_dry(struct et_graph *g, bool dry);

/* Runs everything pending: the N tensors asked for (NULLs are skipped), then the
 * commit. Values asked for stay until the graph is reset or the same plan runs again.
 * One that is a view of a leaf lies in the leaf's memory: after a commit it shows what
 * the leaf holds then.
 * ENOMEM says how many bytes were needed. After a failure no leaf has changed, the
 * pending assignments are dropped, and the nodes stay: what else they make can be asked
 * for. */
ET_NODISCARD et_status et_eval(struct et_graph *g, struct et_tensor *const *want,
                               int n);
/* As et_eval of nothing. Casts of leaves that mixed precision has put in the graph are
 * kept for this step's later evaluations, until a commit changes the leaf: for what is
 * computed in several pieces. */
ET_NODISCARD et_status et_eval_keeping_casts(struct et_graph *g);
/* What a plan takes, known before it runs. */
struct et_plan_info {
    size_t slab_bytes;      /* intermediates, by liveness */
    size_t output_bytes;    /* values asked for */
    size_t workspace_bytes; /* the largest kernel's scratch */
    int64_t flops;          /* one run */
    int64_t moved_bytes;    /* operands read and written, one run */
    int nodes, kernels;     /* before and after the passes */
    double least_seconds; /* one run at the device's peaks (device.h); 0 = not known */
};
/* Plans what et_eval would run, and runs nothing. */
ET_NODISCARD et_status et_plan(struct et_graph *g, struct et_tensor *const *want, int n,
                               struct et_plan_info *info);

/* What the last evaluation's plan took. */
void et_graph_last_plan(const struct et_graph *g, struct et_plan_info *info);

/* What the plan made last needed and what there was, in bytes, where it was refused for
 * want of memory before anything was asked for; else both are 0. */
void et_graph_shortage(const struct et_graph *g, size_t *needed, size_t *had);

/* The number in a tensor with one element, which is evaluated if it was not. ESHAPE:
 * more elements; EDTYPE: bf16 or f16. Waits for the device. */
ET_NODISCARD et_status et_item(struct et_graph *g, struct et_tensor *t, double *out);

/* Counted since the graph was made. */
struct et_graph_stats {
    uint64_t plans_built;       /* signatures that were new, or had left the cache */
    uint64_t replays;           /* evaluations */
    uint64_t kernels_run;       /* less constants, which a plan computes once */
    uint64_t captures;          /* plans recorded, a set of addresses each */
    uint64_t launches;          /* recordings replayed */
    int64_t flops, moved_bytes; /* of all evaluations, dry ones included */
    uint64_t allocs; /* host and device blocks evaluating took; flat when warm */
};
void et_graph_get_stats(const struct et_graph *g, struct et_graph_stats *out);

#ifdef __cplusplus
}
#endif
#endif
