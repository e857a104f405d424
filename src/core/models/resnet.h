/* SPDX-License-Identifier: Apache-2.0 */
/* resnet.h: the first values that residual networks have in common. */
#ifndef ETI_RESNET_H
#define ETI_RESNET_H

#include "etude/model.h"

#define ETI_RESNET_BEGINNING                                                           \
    "convolutions N(0, 2/fan_out), norms 1 and 0, the head U(+-1/sqrt(fan_in)), as "   \
    "torchvision"
extern const char *const eti_resnet_initializer[];

#endif
