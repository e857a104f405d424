/* SPDX-License-Identifier: Apache-2.0 */
/* activation.c: element-wise functions as modules, one row each. */
#include "core/modules/common.h"

/* name (of the op too), class, summary, source */
#define ACTIVATIONS(X)                                                                 \
    X(relu, "ReLU", "max(0, x)", "torch.nn.ReLU")                                      \
    X(gelu, "GELU", "x Phi(x), exact", "arXiv 1606.08415")                             \
    X(gelu_tanh, "GELUTanh", "x Phi(x), tanh approximation", "arXiv 1606.08415")       \
    X(silu, "SiLU", "x sigmoid(x)", "arXiv 1702.03118")                                \
    X(tanh, "Tanh", "hyperbolic tangent", "torch.nn.Tanh")                             \
    X(sigmoid, "Sigmoid", "1 / (1 + exp(-x))", "torch.nn.Sigmoid")

#define ACTIVATION_CLASS(op, class_text, summary_text, source_text)                    \
    static struct et_tensor *op##_forward(struct et_module *m, struct et_forward *f,   \
                                          struct et_tensor *x)                         \
    {                                                                                  \
        (void)m;                                                                       \
        return et_##op(f->g, x);                                                       \
    }                                                                                  \
    const struct et_module_class et_##op##_class = {                                   \
        .info =                                                                        \
            {                                                                          \
                .name = #op,                                                           \
                .class_name = class_text,                                              \
                .summary = summary_text,                                               \
                .source = source_text,                                                 \
                .applies_to = "any",                                                   \
            },                                                                         \
        .size = sizeof(struct et_module),                                              \
        .forward = op##_forward,                                                       \
    };
ACTIVATIONS(ACTIVATION_CLASS)
