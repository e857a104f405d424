/* SPDX-License-Identifier: Apache-2.0 */
/* common.h: what the layer classes share: initial values, option defaults, values. */
#ifndef ETI_MODULES_COMMON_H
#define ETI_MODULES_COMMON_H

#include <math.h>

#include "etude/nn.h"

/* The default for linear and convolution layers (spec/algorithms.md 1.9). */
static inline struct et_init
eti_init_fan_in(double fan_in)
{
    double bound = 1 / sqrt(fan_in);
    return (struct et_init){.kind = ET_INIT_UNIFORM, .a = -bound, .b = bound};
}

static inline struct et_init
eti_init_constant(double a)
{
    return (struct et_init){.kind = ET_INIT_CONSTANT, .a = a};
}

static inline struct et_init
eti_init_normal(double std)
{
    return (struct et_init){.kind = ET_INIT_NORMAL, .b = std};
}

static inline int64_t
eti_int_or(int64_t value, int64_t fallback)
{
    return value ? value : fallback;
}

/* *SIZE, what LAYER takes of WHAT ("channels"), is the HERE that come in where it is 0.
 * EINVAL: it is another. */
ET_NODISCARD et_status eti_adapt_in(struct et_ctx *cx, const char *layer,
                                    const char *what, int64_t here, int64_t *size);

static inline double
eti_float_or(double value, double fallback)
{
    return value != 0 ? value : fallback;
}

/* attend.c: attention of queries, keys and values [B,H,T,D], as et_sdpa; in training
 * each probability is 0 with the probability DROPOUT, and the others are scaled. */
struct et_tensor *eti_attend(struct et_forward *f, struct et_tensor *const qkv[3],
                             struct et_tensor *bias, bool causal, double dropout);
/* BIAS [1|B,1|H,1|T,T], which may be NULL, and what keeps from being seen, as good as
 * -infinity: keys that the field attention_mask has as 0, and keys of another document
 * than the query's, where the field document says which each token is of. */
struct et_tensor *eti_hide_fields(struct et_forward *f, struct et_tensor *bias);
/* 0 where VISIBLE is 1, and -1e9 where it is 0; f32. */
struct et_tensor *eti_as_bias(struct et_graph *g, struct et_tensor *visible);
/* X [B,T,D] and the rows of the table WPE for the places of its tokens: those that the
 * field position says, else 0 .. T-1. WPE NULL: X. */
struct et_tensor *eti_add_positions(struct et_forward *f, struct et_module *wpe,
                                    struct et_tensor *x);

/* EINVAL, naming the layer, unless VALUE >= 1. */
#define ETI_NEED_POSITIVE(cx, layer, options, field)                                   \
    do {                                                                               \
        if ((options)->field < 1)                                                      \
            return ET_FAIL((cx), ET_EINVAL, "%s needs %s >= 1, not %lld", (layer),     \
                           #field, (long long)(options)->field);                       \
    } while (0)

/* Rows of the option tables of layers; 0 = the default the layer has. */
#define ETI_LAYER_INT(tag, key, field, deflt, text, ...)                               \
    {                                                                                  \
        .name = (key), .type = ET_OPT_INT, .offset = offsetof(struct tag, field),      \
        .def = (deflt), .min = 0, .max = 1 << 24, .help = (text), __VA_ARGS__          \
    }
#define ETI_LAYER_NEED(tag, key, field, text, ...)                                     \
    {                                                                                  \
        .name = (key), .type = ET_OPT_INT, .offset = offsetof(struct tag, field),      \
        .min = 1, .max = 1 << 24, .flags = ET_OPT_REQUIRED, .help = (text),            \
        __VA_ARGS__                                                                    \
    }
#define ETI_LAYER_FLOAT(tag, key, field, deflt, lo, hi, text, ...)                     \
    {                                                                                  \
        .name = (key), .type = ET_OPT_FLOAT, .offset = offsetof(struct tag, field),    \
        .def = (deflt), .min = (lo), .max = (hi), .help = (text), __VA_ARGS__          \
    }
#define ETI_LAYER_BOOL(tag, key, field, text, ...)                                     \
    {                                                                                  \
        .name = (key), .type = ET_OPT_BOOL, .offset = offsetof(struct tag, field),     \
        .def = "false", .help = (text), __VA_ARGS__                                    \
    }

#endif
