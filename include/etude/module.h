/* SPDX-License-Identifier: Apache-2.0 */
/* module.h: a network as a tree of modules whose forward builds nodes.
 *
 * A module is an instance of a const class; it owns its children and declares its
 * parameters and buffers. Declared is not stored: until something binds it to a tensor
 * (the flat parameter space of optim.h, or et_module_bind), a parameter is a
 * description and a rule for its first value, so a model costs no memory to look at.
 *
 *     struct et_module *fc;
 *     ET_TRY(ET_NEW(cx, &fc, linear, .in_features = 784, .out_features = 10));
 *     ET_TRY(et_module_bind(cx, fc, dev, ET_PARAM, seed));
 *     struct et_forward f = {.g = g, .training = true};
 *     struct et_tensor *y = et_forward(&f, fc, x);
 *
 * Names are dotted paths as in torchvision, timm and Hugging Face
 * ("layer1.0.conv1.weight"), so safetensors weights load without a converter.
 *
 * The tree may be a DAG: a module reachable by several paths is counted.
 *
 * A layer of one's own is a struct et_module_class: examples/plugin_layer.c. */
#ifndef ETUDE_MODULE_H
#define ETUDE_MODULE_H

#include <stdint.h>

#include "etude/field.h"
#include "etude/graph.h"
#include "etude/option.h"
#include "etude/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct et_module;

/* ---- parameters and buffers ---- */

enum et_init_kind { ET_INIT_CONSTANT = 0, ET_INIT_UNIFORM = 1, ET_INIT_NORMAL = 2 };

/* How first values are drawn: a, U[a, b), or N(a, b^2). */
struct et_init {
    enum et_init_kind kind;
    double a, b;
    int64_t zeros; /* elements in front that are 0 instead */
};

enum et_leaf_kind {
    ET_PARAM = 1,  /* trained */
    ET_BUFFER = 2, /* state of the model that no optimizer touches */
};

/* A part of a model that a step may leave out: what it computes is not used, its
 * running statistics stay, and no update touches its parameters. Who owns the gate says
 * before each step, in both places alike, whether it is closed, and keeps it for as
 * long as modules and parameters name it. Steps have one plan, open or closed. */
struct et_gate {
    struct et_tensor *closed; /* leaf f32 [n]; element AT is 1: left out; 0: not */
    int64_t at;
    bool is_closed; /* the same, for the host */
};
/* That element, f32 [1], as a value of G. */
struct et_tensor *et_gate_closed(struct et_graph *g, const struct et_gate *gate);

/* A leaf of the model, in the module that declares it. All are f32. */
struct et_param {
    enum et_leaf_kind kind;
    struct et_desc desc;      /* dtype ET_NONE: this instance has none (bias: false) */
    struct et_init init;      /* used when neither tensor nor value is there */
    struct et_tensor *tensor; /* owned; NULL until bound */
    float *value;       /* owned; a value given before binding, row-major; or NULL */
    bool requires_grad; /* false: frozen. Buffers never require one */
    const struct et_gate *gate; /* of the part that it belongs to, borrowed; NULL: no
                                   step leaves it out */
};

/* Declares a leaf of that shape; 4-d ones (filters) are channels-last in memory. */
void et_param_declare(struct et_param *p, struct et_init init, int ndim,
                      const int64_t *shape);
void et_buffer_declare(struct et_param *p, struct et_init init, int ndim,
                       const int64_t *shape);
/* ndim and shape as two arguments: ET_SHAPE(64, 3, 7, 7). */
/* clang-format off */
#define ET_SHAPE(...)                                                                  \
    (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                   \
        (const int64_t[]){__VA_ARGS__}
/* clang-format on */

/* Gives P its storage: *TENSOR (of P's shape, f32; owned by P from here on and set
 * NULL) takes P's present value. That is the old tensor's, else the one written before
 * binding, else a draw of P's initialiser keyed by SEED and the full NAME. On failure
 * nothing changes. */
ET_NODISCARD et_status et_param_bind(struct et_ctx *cx, struct et_param *p,
                                     const char *name, uint32_t seed,
                                     struct et_tensor **tensor);
/* The value P has or would get at binding, COUNT = elements of P, row-major by axes. */
ET_NODISCARD et_status et_param_read(struct et_ctx *cx, const struct et_param *p,
                                     const char *name, uint32_t seed, float *out,
                                     int64_t count);
/* Sets the value, bound or not. ESHAPE when COUNT differs. */
ET_NODISCARD et_status et_param_write(struct et_ctx *cx, struct et_param *p,
                                      const float *values, int64_t count);
/* FROM's value (tensor included) becomes TO's: how surgery keeps trained weights. FROM
 * is left with none. ESHAPE when the shapes differ. */
ET_NODISCARD et_status et_param_move(struct et_ctx *cx, struct et_param *to,
                                     struct et_param *from);

/* ---- forward ---- */

/* Looks at what a module was given and made, as values of the pass's graph; inner
 * modules come before outer ones. */
typedef void et_look_fn(void *data, struct et_graph *g, struct et_module *m,
                        struct et_tensor *x, struct et_tensor *y);

/* One forward pass. The caller fills it; modules read it and count the ordinal. */
struct et_forward {
    struct et_graph *g;
    const struct et_samples *samples; /* what X is of: et_forward_input. NULL: X alone
                                         is known */
    bool training;                    /* batch statistics and dropout */
    bool keep_stats;       /* training, but running statistics stay as they are: SAM's
                              second pass, so that they move once a step */
    struct et_tensor *rng; /* I64 [2]: key, index of the first sample; for dropout */
    uint64_t ordinal;      /* of the next dropout; starts at 0 */
    /* What a module that ends a branch adds (BertOutput, what replaces it): set by its
     * caller for the call. */
    struct et_tensor *residual;
    et_look_fn *look;           /* called by et_forward; NULL: nobody looks */
    void *look_data;            /* borrowed */
    const struct et_gate *gate; /* of the part under way; set by the module whose part
                                   it is, for the calls. NULL: it is used */
    /* Batch norm's statistics are of all ranks: f32 [ranks], 1 at this rank's place, 0
     * there where its rows are not to count. NULL: they are the rank's own. */
    struct et_tensor *place;
};

/* The field NAME of the samples under way, such as "attention_mask" or "token_type",
 * for a module that reads more than X; NULL: the data have no such field. */
struct et_tensor *et_forward_input(const struct et_forward *f, const char *name);

/* M's value at X. A NULL module is the identity: an absent child needs no case. */
struct et_tensor *et_forward(struct et_forward *f, struct et_module *m,
                             struct et_tensor *x);

/* ---- classes ---- */

/* Where in an instance a parameter (struct et_param) or a child (struct et_module *)
 * lies. Order of rows = order of names and of parameters. */
struct et_slot {
    const char *name;
    size_t offset;
};
/* clang-format off */
#define ET_SLOT(type, field) {#field, offsetof(struct type, field)}
/* clang-format on */

struct et_module_class {
    struct et_component info;           /* "conv2d", "Conv2d"; options of `layers:` */
    const struct et_module_class *base; /* policies for BASE take it too (optional) */
    size_t size;                        /* of an instance; struct et_module is first */
    const struct et_slot *params;       /* ends with a NULL name (optional: none) */
    const struct et_slot *children;     /* likewise */

    /* Declares parameters and makes children. OPTIONS: info.options_size bytes,
     * borrowed; zeros mean defaults. What it made so far is freed if it fails.
     * (optional) */
    et_status (*init)(struct et_ctx *cx, struct et_module *m, const void *options);
    /* Builds nodes; never launches kernels. */
    struct et_tensor *(*forward)(struct et_module *m, struct et_forward *f,
                                 struct et_tensor *x);
    /* The size of one sample behind it: SHAPE [3] = C, H, W (H = 0: a vector) becomes
     * the output's; an option for the input size left 0 is filled in. `layers:` models
     * ask before init. (optional: the shape stays) */
    et_status (*adapt)(struct et_ctx *cx, void *options, int64_t shape[3]);
};

struct et_child {
    char name[32];
    struct et_module *module;
};

/* First member of every instance. */
struct et_module {
    const struct et_module_class *type;
    struct et_ctx *cx;
    struct et_child *items; /* children added one by one, after the slots' */
    int n_items;
    int refs;     /* parents, surgery lists, and the maker's one */
    bool marked;  /* made or kept by surgery, which skips it next time */
    bool as_eval; /* it and what is below computes as in evaluation, also in training */
};

/* All classes, NULL-terminated; and one of them, NULL when unknown. */
extern const struct et_module_class *const et_module_classes[];
const struct et_module_class *et_module_class_find(const char *name);

/* A new instance with one reference, into *OUT. */
ET_NODISCARD et_status et_module_new(struct et_ctx *cx,
                                     const struct et_module_class *type,
                                     const void *options, struct et_module **out);
/* The same, appended to PARENT's items; NAME NULL = its index. */
ET_NODISCARD et_status et_module_add(struct et_ctx *cx, struct et_module *parent,
                                     const char *name,
                                     const struct et_module_class *type,
                                     const void *options);
/* The same with options of SIZE bytes, where that may not be what the class has: of a
 * caller with older headers, whose missing fields are 0. */
ET_NODISCARD et_status et_module_new_sized(struct et_ctx *cx,
                                           const struct et_module_class *type,
                                           const void *options, size_t size,
                                           struct et_module **out);
ET_NODISCARD et_status et_module_add_sized(struct et_ctx *cx, struct et_module *parent,
                                           const char *name,
                                           const struct et_module_class *type,
                                           const void *options, size_t size);
/* Options by field: ET_NEW(cx, &m->fc, linear, .in_features = 3, .out_features = 16) */
#define ET_NEW(cx, out, name, ...)                                                     \
    et_module_new_sized((cx), &et_##name##_class,                                      \
                        &(const struct et_##name##_options){__VA_ARGS__},              \
                        sizeof(struct et_##name##_options), (out))
#define ET_ADD(cx, parent, key, name, ...)                                             \
    et_module_add_sized((cx), (parent), (key), &et_##name##_class,                     \
                        &(const struct et_##name##_options){__VA_ARGS__},              \
                        sizeof(struct et_##name##_options))

struct et_module *et_module_ref(struct et_module *m);
/* Drops one reference and sets *M to NULL; the last one frees the tree below. */
void et_module_free(struct et_module **m);
bool et_module_is(const struct et_module *m, const struct et_module_class *type);

/* Child I, its slot and name: NULL past the end; *slot is NULL for an absent child. */
struct et_module **et_module_child(struct et_module *m, int i, const char **name);
/* Parameter or buffer I: NULL past the end; dtype ET_NONE for an absent one. */
struct et_param *et_module_param(struct et_module *m, int i, const char **name);
/* The module at a dotted path below ROOT ("" = ROOT); NULL when there is none. */
struct et_module *et_module_find(struct et_module *root, const char *path);

/* ---- the leaves of a tree ---- */

struct et_leaf {
    char name[128];           /* full dotted path */
    struct et_param *param;   /* borrowed from the module */
    struct et_module *module; /* that declares it; borrowed */
};

struct et_leaves {
    struct et_ctx *cx;
    struct et_leaf *v;
    int n;
};

/* Every leaf whose kind is in KINDS (ET_PARAM | ET_BUFFER), once, module by module from
 * the root in declaration order. Valid until the tree changes. */
ET_NODISCARD et_status et_module_leaves(struct et_ctx *cx, struct et_module *root,
                                        unsigned kinds, struct et_leaves *out);
void et_leaves_release(struct et_leaves *l);
struct et_leaf *et_leaves_find(const struct et_leaves *l, const char *name);
/* Elements of all parameters, each counted once. */
ET_NODISCARD et_status et_module_count(struct et_ctx *cx, struct et_module *root,
                                       int64_t *out);

/* Gives every leaf of KINDS without a tensor one of its own on DEV. */
ET_NODISCARD et_status et_module_bind(struct et_ctx *cx, struct et_module *root,
                                      struct et_device *dev, unsigned kinds,
                                      uint32_t seed);

/* Changes the rules by which the leaves of ROOT get their first values. Of weights of
 * linear and convolution layers: "kaiming_normal", "kaiming_uniform", "xavier_normal",
 * "xavier_uniform": N(0, 2/fan_in), U(+-sqrt(6/fan_in)), N(0, 2/(fan_in + fan_out)),
 * U(+-sqrt(6/(fan_in + fan_out))). Of convolutions alone: "conv_fan_out_normal",
 * "conv_fan_in_normal" (N(0, 2/fan)), "conv_zero_bias". Of linear layers alone:
 * "linear_fan_out_uniform" (U(+-1/sqrt(fan_out))), "linear_small_normal" (N(0,
 * 0.02^2)), "linear_zero_bias", "linear_log_constant_bias" (-log of the outputs). Of
 * batch norm: "bn_ones", "bn_uniform" (U(0, 1)). Several apply in turn. EINVAL, with
 * the list as hint, for another name. Sources: He et al. 2015, arXiv 1502.01852; Glorot
 * and Bengio 2010. */
ET_NODISCARD et_status et_module_initializer(struct et_ctx *cx, struct et_module *root,
                                             const char *name);
extern const char *const et_initializer_names[]; /* NULL-terminated */

/* FROZEN: modules with running statistics (batch norm) use these in training too, and
 * leave them as they are. A sample's value then no longer depends on its batch: for
 * fine-tuning, and where a batch must not matter. False: as they were made. */
ET_NODISCARD et_status et_module_freeze_stats(struct et_ctx *cx, struct et_module *root,
                                              bool frozen);

/* ---- fine-tuning: parts that are not trained ---- */

/* The children of a module in their order, FROM and TO included, in either order;
 * negative places count from the end. All but the last: {.from = 0, .to = -2}. */
struct et_module_range {
    int from, to;
    bool batch_norms; /* freeze the parameters of batch norms with the rest */
    bool as_eval;     /* freeze: what is in the range computes as in evaluation, also in
                         training: no dropout, running statistics as they are. unfreeze:
                         that it no longer does */
};
/* Parameters below those children of M, the model's root or any part of it, require no
 * gradient from here on, or do again: a trainer computes no gradient for those that do
 * not, and leaves them, their moments and their place as they are. Call it before the
 * trainer is made, or et_state_follow_surgery after it. *N, which may be NULL: how many
 * parameters changed. EINVAL when there is no such child. pytorch-accelerated's
 * ModelFreezer. */
ET_NODISCARD et_status et_module_freeze(struct et_ctx *cx, struct et_module *m,
                                        const struct et_module_range *range, int *n);
ET_NODISCARD et_status et_module_unfreeze(struct et_ctx *cx, struct et_module *m,
                                          const struct et_module_range *range, int *n);

/* ---- surgery ---- */

/* For instances of TYPE (its subclasses too). INDEX counts those met so far. *OUT: the
 * replacement with one reference, or NULL to keep OLD. It may hold OLD as a child. A
 * child of OLD may be dropped, and is not visited then. */
struct et_surgery_policy {
    const struct et_module_class *type;
    et_status (*replace)(struct et_ctx *cx, struct et_module *old, int index,
                         void *data, struct et_module **out);
};

struct et_surgery_pair {
    struct et_module *before, *after; /* one reference each */
};

struct et_surgery {
    struct et_ctx *cx;
    struct et_surgery_pair *pair; /* in the order of replacement */
    int n;
};

/* Walks the tree below ROOT: pre-order, each module once, each policy in turn; all
 * parents of a replaced module are relinked; replacements are not walked, the children
 * of replaced modules are. The pairs are what optimizers and parameter spaces need to
 * follow; release them afterwards. A failure midway leaves the replacements made so far
 * in place. DATA goes to every policy. */
ET_NODISCARD et_status et_module_replace(struct et_ctx *cx, struct et_module *root,
                                         const struct et_surgery_policy *policies,
                                         int n, void *data, struct et_surgery *out);
void et_surgery_release(struct et_surgery *s);
/* Distinct instances of TYPE below ROOT. */
ET_NODISCARD et_status et_module_count_class(struct et_ctx *cx, struct et_module *root,
                                             const struct et_module_class *type,
                                             int *out);

#ifdef __cplusplus
}
#endif
#endif
