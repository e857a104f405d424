/* SPDX-License-Identifier: Apache-2.0 */
/* tiles.h: how forms of edges.h are written down. */
#ifndef T_KERNELS_TILES_H
#define T_KERNELS_TILES_H

#define FORM(name, ...)                                                                \
    const struct edge_form edge_##name = {__VA_ARGS__, .build = build_##name}

/* Sizes about which something changes; and those of vectors. */
#define TILES(...) ((const int64_t[]){__VA_ARGS__, 0})
#define VECTORS    ETK_LANES_BASE, ETK_LANES_V3, ETK_LANES_V4, 2 * ETK_LANES_V4

#endif
