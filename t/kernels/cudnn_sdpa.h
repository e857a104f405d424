/* SPDX-License-Identifier: Apache-2.0 */
/* cudnn_sdpa.h: the part of t/kernels/cudnn_plans about attention. */
#ifndef T_KERNELS_CUDNN_SDPA_H
#define T_KERNELS_CUDNN_SDPA_H

#include "kernels/cuda/cuda.h"

/* D: opened with etk_dnn_open_properties, before anything else has asked for a
 * driver. */
void test_attention(struct et_device_handle *d);

#endif
