/* SPDX-License-Identifier: Apache-2.0 */
/* resnet.h: the first values that residual networks have in common. */
#ifndef ETI_RESNET_H
#define ETI_RESNET_H

#include "etude/model.h"

#define ETI_RESNET_BEGINNING                                                           \
    "convolutions N(0, 2/fan_out), norms 1 and 0, the head U(+-1/sqrt(fan_in)), as "   \
    "torchvision"
extern const char *const eti_resnet_initializer[];

/* The stages of a ResNet of bottlenecks, BLOCKS [4] in each, without a head; the last
 * is not strided but dilated, so that an image becomes 1/16 of its size: torchvision's
 * resnet with replace_stride_with_dilation [false, false, true]. */
ET_NODISCARD et_status eti_resnet_backbone(struct et_ctx *cx, const int64_t blocks[4],
                                           int64_t in_channels, struct et_module **out);
/* What it makes of X; *FIRST: of the first stage, 1/4 of the size. */
struct et_tensor *eti_resnet_stages(struct et_forward *f, struct et_module *backbone,
                                    struct et_tensor *x, struct et_tensor **first);

#endif
