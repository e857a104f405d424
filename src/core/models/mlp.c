/* SPDX-License-Identifier: Apache-2.0 */
/* mlp.c: fully connected layers with ReLU between: the smallest model. */
#include "core/models/stack.h"

#include <stdio.h>

struct mlp_options {
    struct et_model_options common;
    int64_t hidden, layers;
};

static et_status
mlp_build(struct et_ctx *cx, struct et_model *m, const void *options,
          const struct et_model_facts *facts)
{
    const struct mlp_options *o = options;
    struct eti_stack s;
    ET_TRY(eti_stack_begin(cx, facts, &m->root, &s));
    ET_TRY(eti_stack_add(&s, "flatten", &et_flatten_class, NULL));
    for (int64_t i = 0; i < o->layers; i++) {
        char fc[24], relu[24];
        snprintf(fc, sizeof fc, "fc%d", (int)i + 1);
        snprintf(relu, sizeof relu, "relu%d", (int)i + 1);
        ET_TRY(ETI_STACK(&s, fc, linear, .out_features = o->hidden));
        ET_TRY(eti_stack_add(&s, relu, &et_relu_class, NULL));
    }
    return ETI_STACK(&s, "fc", linear, .out_features = facts->num_classes);
}

const struct et_model_class et_mlp_model = {
    .info =
        {
            .name = "mlp",
            .class_name = "MLP",
            .summary = "fully connected layers with ReLU between",
            .source = "Rumelhart et al. 1986",
            .applies_to = "vision",
            .options =
                (const struct et_option[]){
                    ET_MODEL_OPTIONS(mlp_options),
                    {
                        .name = "hidden",
                        .type = ET_OPT_INT,
                        .offset = offsetof(struct mlp_options, hidden),
                        .def = "256",
                        .min = 1,
                        .max = 1 << 20,
                        .unit = "features",
                        .help = "width of the hidden layers",
                    },
                    {
                        .name = "layers",
                        .type = ET_OPT_INT,
                        .offset = offsetof(struct mlp_options, layers),
                        .def = "2",
                        .min = 0,
                        .max = 1000,
                        .help = "number of hidden layers",
                    },
                    {0},
                },
            .options_size = sizeof(struct mlp_options),
        },
    .task = ET_TASK_CLASSIFICATION,
    .build = mlp_build,
};
