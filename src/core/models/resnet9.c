/* SPDX-License-Identifier: Apache-2.0 */
/* resnet9.c: conv 64, conv 128 + pool, block 128, conv 256 + pool, conv 256 + pool,
 * block 256, global average, fc; batch norm with momentum 0.9. Source:
 * spec/trainer.md 15.2. */
#include "core/models/resnet.h"
#include "core/models/stack.h"

#define BN_MOMENTUM 0.9

struct resnet9_options {
    struct et_model_options common;
};

/* conv 3x3 - BN - ReLU (- 2x2 maximum), under the name KEY. */
static et_status
conv_block(struct eti_stack *s, const char *key, int64_t channels, bool pool)
{
    ET_TRY(eti_stack_add(s, key, &et_sequential_class, NULL));
    struct eti_stack inner = *s;
    inner.row = s->row->items[s->row->n_items - 1].module;
    ET_TRY(ETI_STACK(&inner, "conv", conv2d, .out_channels = channels, .kernel = 3,
                     .padding = 1, .no_bias = true));
    ET_TRY(ETI_STACK(&inner, "bn", batch_norm, .momentum = BN_MOMENTUM));
    ET_TRY(eti_stack_add(&inner, "relu", &et_relu_class, NULL));
    if (pool)
        ET_TRY(eti_stack_add(&inner, "pool", &et_max_pool2d_class,
                             &(struct et_pool2d_options){.kernel = 2}));
    for (int i = 0; i < 3; i++)
        s->shape[i] = inner.shape[i];
    return ET_OK;
}

static et_status
res_block(struct eti_stack *s, const char *key)
{
    return et_module_add(s->cx, s->row, key, &et_basic_block_class,
                         &(struct et_basic_block_options){
                             .in_channels = s->shape[0],
                             .channels = s->shape[0],
                             .momentum = BN_MOMENTUM,
                         });
}

static et_status
resnet9_build(struct et_ctx *cx, struct et_model *m, const void *options,
              const struct et_model_facts *facts)
{
    struct eti_stack s;
    (void)options;
    ET_TRY(eti_stack_begin(cx, facts, &m->root, &s));
    ET_TRY(conv_block(&s, "conv1", 64, false));
    ET_TRY(conv_block(&s, "conv2", 128, true));
    ET_TRY(res_block(&s, "res1"));
    ET_TRY(conv_block(&s, "conv3", 256, true));
    ET_TRY(conv_block(&s, "conv4", 256, true));
    ET_TRY(res_block(&s, "res2"));
    ET_TRY(ETI_STACK(&s, "avgpool", adaptive_avg_pool2d, 0));
    ET_TRY(eti_stack_add(&s, "flatten", &et_flatten_class, NULL));
    return ETI_STACK(&s, "fc", linear, .out_features = facts->num_classes);
}

const struct et_model_class et_resnet9_model = {
    .info =
        {
            .name = "resnet9",
            .class_name = "ResNet9",
            .summary = "wide and shallow residual network for small images",
            .source = "spec/trainer.md 15.2",
            .applies_to = "vision",
            .options =
                (const struct et_option[]){ET_MODEL_OPTIONS(resnet9_options), {0}},
            .options_size = sizeof(struct resnet9_options),
        },
    .task = ET_TASK_CLASSIFICATION,
    .beginning = ETI_RESNET_BEGINNING,
    .initializer = eti_resnet_initializer,
    .build = resnet9_build,
};
