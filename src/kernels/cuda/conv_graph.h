/* SPDX-License-Identifier: Apache-2.0 */
/* conv_graph.h: a convolution as a graph for cuDNN. */
#ifndef ETUDE_KERNELS_CUDA_CONV_GRAPH_H
#define ETUDE_KERNELS_CUDA_CONV_GRAPH_H

#include "kernels/cuda/conv.h"
#include "kernels/cuda/dnn.h"

/* Appends the convolution to the empty graph G. Slots: 0 and 1 the operands, 2 the
 * result. PACKED: of x' and w'. ADDS: the result is added to what is there. */
void etk_conv_graph(struct etk_dnn_graph *g, const struct etk_conv *v, bool packed,
                    bool adds);

#endif
