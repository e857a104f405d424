/* SPDX-License-Identifier: Apache-2.0 */
/* init.c: named initialisers, as rules laid over the leaves of a tree.
 *
 * Sources: He et al. 2015 (arXiv 1502.01852) eq. 10 (fan_in) and 14 (fan_out), gain
 * sqrt 2; Glorot and Bengio 2010 eq. 16; spec/trainer.md 15.6; what torchvision and
 * timm do, by the models that name these rules. Differs: drawn at binding, keyed by
 * name (param.c). */
#include "etude/module.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "etude/nn.h"
#include "core/base/need.h"

#define TRANSFORMER_STD 0.02

/* name; what it touches; the init, from FAN_IN, FAN_OUT and N_OUT of the layer. A fan
 * counts as PyTorch does: of a depthwise filter [C,1,3,3], fan_out is 9 C. */
#define NORMAL(std)                                                                    \
    {                                                                                  \
        .kind = ET_INIT_NORMAL, .b = (std)                                             \
    }
#define UNIFORM(lo, hi)                                                                \
    {                                                                                  \
        .kind = ET_INIT_UNIFORM, .a = (lo), .b = (hi)                                  \
    }
#define CONSTANT(v)                                                                    \
    {                                                                                  \
        .kind = ET_INIT_CONSTANT, .a = (v)                                             \
    }
#define INITIALIZERS(X)                                                                \
    X(kaiming_normal, WEIGHT, NORMAL(sqrt(2 / fan_in)))                                \
    X(kaiming_uniform, WEIGHT, UNIFORM(-sqrt(6 / fan_in), sqrt(6 / fan_in)))           \
    X(xavier_normal, WEIGHT, NORMAL(sqrt(2 / (fan_in + fan_out))))                     \
    X(xavier_uniform, WEIGHT,                                                          \
      UNIFORM(-sqrt(6 / (fan_in + fan_out)), sqrt(6 / (fan_in + fan_out))))            \
    X(conv_fan_out_normal, CONV_WEIGHT, NORMAL(sqrt(2 / fan_out)))                     \
    X(conv_fan_in_normal, CONV_WEIGHT, NORMAL(sqrt(2 / fan_in)))                       \
    X(conv_zero_bias, CONV_BIAS, CONSTANT(0))                                          \
    X(linear_fan_out_uniform, LINEAR_WEIGHT,                                           \
      UNIFORM(-1 / sqrt(fan_out), 1 / sqrt(fan_out)))                                  \
    X(linear_small_normal, LINEAR_WEIGHT, NORMAL(TRANSFORMER_STD))                     \
    X(linear_zero_bias, LINEAR_BIAS, CONSTANT(0))                                      \
    X(linear_log_constant_bias, LINEAR_BIAS, CONSTANT(-log(n_out)))                    \
    X(bn_ones, BN_WEIGHT, CONSTANT(1))                                                 \
    X(bn_uniform, BN_WEIGHT, UNIFORM(0, 1))

/* Kinds of leaves, and unions of them. */
enum target {
    NOTHING = 0,
    LINEAR_WEIGHT = 1,
    LINEAR_BIAS = 2,
    CONV_WEIGHT = 4,
    CONV_BIAS = 8,
    UP_WEIGHT = 16, /* of a transposed convolution */
    BN_WEIGHT = 32,
    BN_BIAS = 64,
    WEIGHT = LINEAR_WEIGHT | CONV_WEIGHT | UP_WEIGHT,
};

enum rule {
#define RULE_ENUM(name, target, ...) RULE_##name,
    INITIALIZERS(RULE_ENUM)
#undef RULE_ENUM
};

static const enum target rule_target[] = {
#define RULE_TARGET(name, target, ...) target,
    INITIALIZERS(RULE_TARGET)
#undef RULE_TARGET
};

const char *const et_initializer_names[] = {
#define RULE_NAME(name, target, ...) #name,
    INITIALIZERS(RULE_NAME)
#undef RULE_NAME
        NULL,
};

static struct et_init
rule_init(enum rule rule, double fan_in, double fan_out, double n_out)
{
    switch (rule) {
#define RULE_CASE(name, target, ...)                                                   \
    case RULE_##name:                                                                  \
        return (struct et_init)__VA_ARGS__;
        INITIALIZERS(RULE_CASE)
#undef RULE_CASE
    }
    return (struct et_init)CONSTANT(0);
}

static bool
is_linear(const struct et_module *m)
{
    return et_module_is(m, &et_linear_class) || et_module_is(m, &et_conv1d_class);
}

static enum target
leaf_target(const struct et_leaf *leaf)
{
    const struct et_module *m = leaf->module;
    const char *dot = strrchr(leaf->name, '.'), *key = dot ? dot + 1 : leaf->name;
    bool is_weight = strcmp(key, "weight") == 0, is_bias = strcmp(key, "bias") == 0;
    if (et_module_is(m, &et_batch_norm_class))
        return is_weight ? BN_WEIGHT : is_bias ? BN_BIAS : NOTHING;
    if (is_linear(m))
        return is_weight ? LINEAR_WEIGHT : is_bias ? LINEAR_BIAS : NOTHING;
    if (et_module_is(m, &et_conv2d_class))
        return is_weight ? CONV_WEIGHT : is_bias ? CONV_BIAS : NOTHING;
    if (et_module_is(m, &et_conv_transpose2d_class))
        return is_weight ? UP_WEIGHT : NOTHING;
    return NOTHING;
}

/* Axis 0 of a weight counts outputs, all others inputs; conv1d's is the other way. */
static struct et_init
init_for(enum rule rule, const struct et_leaf *leaf)
{
    const int64_t *shape = leaf->param->desc.shape;
    double taps = 1, first = (double)shape[0], second = (double)shape[1];
    for (int i = 2; i < leaf->param->desc.ndim; i++)
        taps *= (double)shape[i];
    if (et_module_is(leaf->module, &et_conv1d_class))
        return rule_init(rule, first * taps, second * taps, first);
    return rule_init(rule, second * taps, first * taps, first);
}

static void
lay_over(enum rule rule, const struct et_leaf *leaf)
{
    enum target target = leaf_target(leaf);
    if (target == NOTHING)
        return;
    if (target & rule_target[rule])
        leaf->param->init = init_for(rule, leaf);
    else if (target == BN_BIAS && rule_target[rule] == BN_WEIGHT)
        leaf->param->init = (struct et_init)CONSTANT(0);
}

static et_status
unknown(struct et_ctx *cx, const char *name)
{
    char list[256] = "";
    size_t n = 0;
    for (const char *const *known = et_initializer_names; *known && n < sizeof list;
         known++)
        n += (size_t)snprintf(list + n, sizeof list - n, " %s", *known);
    et_status status = ET_FAIL(cx, ET_EINVAL, "there is no initializer %s", name);
    et_hint(cx, "initializers:%s", list);
    return status;
}

et_status
et_module_initializer(struct et_ctx *cx, struct et_module *root, const char *name)
{
    ETI_NEED(cx, name);
    int rule = 0;
    while (et_initializer_names[rule] && strcmp(et_initializer_names[rule], name) != 0)
        rule++;
    if (!et_initializer_names[rule])
        return unknown(cx, name);
    struct et_leaves l;
    ET_TRY(et_module_leaves(cx, root, ET_PARAM, &l));
    for (int i = 0; i < l.n; i++)
        lay_over((enum rule)rule, &l.v[i]);
    et_leaves_release(&l);
    return ET_OK;
}
