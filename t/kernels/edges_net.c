/* SPDX-License-Identifier: Apache-2.0 */
/* edges_net.c: forms of convolution, pooling, normalisation, softmax, losses and
 * attention; see edges.h. */
#include "t/kernels/edges.h"

#include <string.h>

#include "kernels/cpu/tiles.h"
#include "t/kernels/judge.h"
#include "t/kernels/tiles.h"

/* ---- convolution: 3x3, padded by one ---- */

enum { HEIGHT = 4, KERNEL = 3 };

static void
conv_attr(struct edge *e, int groups, const int64_t *shape)
{
    e->attr.conv2d = (struct et_conv2d_attr){
        .stride = {1, 1}, .pad = {1, 1}, .dilation = {1, 1}, .groups = groups};
    if (shape)
        memcpy(e->attr.conv2d.shape, shape, sizeof e->attr.conv2d.shape);
}

static void
build_conv(struct bench *b, struct edge *e, const int64_t *n)
{
    conv_attr(e, 1, NULL);
    e->t = (struct trial){
        ATTR(e->attr.conv2d),
        IN(edge_floats(b, e, NORMAL, LAST, SHAPE(1, n[0], HEIGHT, n[2])),
           edge_floats(b, e, NORMAL, LAST, SHAPE(n[1], n[0], KERNEL, KERNEL)),
           edge_floats(b, e, NORMAL, ROW, SHAPE(n[1]))),
        .length = n[0] * KERNEL * KERNEL + 1};
}
FORM(conv, .sizes = "CKW", .usual = {3, 5, 6},
     .tiles = {TILES(VECTORS), TILES(VECTORS), TILES(ETK_LANES_V4)});

/* So many pixels and channels that the convolution may be computed in tiles. */
const struct edge_form edge_conv_tiles = {
    .sizes = "CKW",
    .usual = {ETK_LANES_V4, ETK_LANES_V4, ETK_WINOGRAD_MIN},
    .tiles = {NULL, NULL, TILES(ETK_WINOGRAD_MIN, ETK_WINOGRAD_MOST)},
    .build = build_conv,
};

static void
build_conv_follow(struct bench *b, struct edge *e, const int64_t *n)
{
    e->attr.conv2d_fused = (struct et_conv2d_fused_attr){
        .conv = {.stride = {1, 1}, .pad = {1, 1}, .dilation = {1, 1}, .groups = 1}};
    e->t = (struct trial){
        ATTR(e->attr.conv2d_fused),
        IN(edge_floats(b, e, NORMAL, LAST, SHAPE(1, n[0], HEIGHT, n[2])),
           edge_floats(b, e, NORMAL, LAST, SHAPE(n[1], n[0], KERNEL, KERNEL)),
           edge_floats(b, e, NORMAL, ROW, SHAPE(n[1])),
           edge_floats(b, e, NORMAL, ROW, SHAPE(n[1])),
           edge_floats(b, e, NORMAL, LAST, SHAPE(1, n[1], HEIGHT, n[2]))),
        .length = n[0] * KERNEL * KERNEL + 2};
}
FORM(conv_follow, .sizes = "CKW", .usual = {3, 5, 6},
     .tiles = {TILES(VECTORS), TILES(VECTORS), TILES(ETK_LANES_V4)});

static void
build_conv_input(struct bench *b, struct edge *e, const int64_t *n)
{
    conv_attr(e, 1, (const int64_t[]){1, n[0], HEIGHT, n[2]});
    e->t = (struct trial){
        ATTR(e->attr.conv2d),
        IN(edge_floats(b, e, NORMAL, LAST, SHAPE(1, n[1], HEIGHT, n[2])),
           edge_floats(b, e, NORMAL, LAST, SHAPE(n[1], n[0], KERNEL, KERNEL)),
           edge_floats(b, e, NORMAL, ROW, SHAPE(n[0]))),
        .length = n[1] * KERNEL * KERNEL + 1};
}
FORM(conv_input, .sizes = "CKW", .usual = {3, 5, 6},
     .tiles = {TILES(VECTORS), TILES(VECTORS), TILES(ETK_LANES_V4)});

static void
build_conv_weight(struct bench *b, struct edge *e, const int64_t *n)
{
    conv_attr(e, 1, (const int64_t[]){n[1], n[0], KERNEL, KERNEL});
    e->t = (struct trial){
        ATTR(e->attr.conv2d),
        IN(edge_floats(b, e, NORMAL, LAST, SHAPE(1, n[0], HEIGHT, n[2])),
           edge_floats(b, e, NORMAL, LAST, SHAPE(1, n[1], HEIGHT, n[2]))),
        .length = HEIGHT * n[2] + 1};
}
FORM(conv_weight, .sizes = "CKW", .usual = {3, 5, 6},
     .tiles = {TILES(VECTORS), TILES(VECTORS), TILES(ETK_LANES_V4)});

static void
build_depthwise_weight(struct bench *b, struct edge *e, const int64_t *n)
{
    conv_attr(e, (int)n[0], (const int64_t[]){n[0], 1, KERNEL, KERNEL});
    e->t = (struct trial){
        ATTR(e->attr.conv2d),
        IN(edge_floats(b, e, NORMAL, LAST, SHAPE(2, n[0], HEIGHT, n[1])),
           edge_floats(b, e, NORMAL, LAST, SHAPE(2, n[0], HEIGHT, n[1]))),
        .length = 2 * HEIGHT * n[1] + 1};
}
FORM(depthwise_weight, .sizes = "CW", .usual = {19, 6},
     .tiles = {TILES(ETK_DEPTHWISE_LANES, ETK_DEPTHWISE_PAIR *ETK_DEPTHWISE_LANES,
                     (ETK_DEPTHWISE_PAIR + 1) * ETK_DEPTHWISE_LANES),
               TILES(KERNEL)});

/* ---- pooling: 3x3, every second window, padded by one, the last one cut off ---- */

static void
pool_attr(struct edge *e, const int64_t *shape)
{
    e->attr.pool2d = (struct et_pool2d_attr){.kernel = {KERNEL, KERNEL},
                                             .stride = {2, 2},
                                             .pad = {1, 1},
                                             .dilation = {1, 1},
                                             .ceil_mode = 1};
    if (shape)
        memcpy(e->attr.pool2d.shape, shape, sizeof e->attr.pool2d.shape);
}

static struct operand *
image(struct bench *b, struct edge *e, const int64_t *n)
{
    return edge_floats(b, e, NORMAL, LAST, SHAPE(2, n[0], n[1], n[2]));
}

/* Numbers in the shape of the first result of OP on T, which E becomes the gradient
 * of. */
static struct operand *
like_result(struct bench *b, struct edge *e, enum et_op_id op, struct trial *t)
{
    e->refused = !edge_results(b, op, t);
    if (e->refused)
        return NULL;
    const struct et_desc *y = &t->out[0]->d;
    return edge_floats(b, e, NORMAL, LAST, y->ndim, y->shape);
}

static void
build_windows(struct bench *b, struct edge *e, const int64_t *n)
{
    pool_attr(e, NULL);
    e->t = (struct trial){ATTR(e->attr.pool2d), IN(image(b, e, n)),
                          .length = b->op == ET_OP_max_pool2d ? 0 : KERNEL * KERNEL};
}
#define IMAGES                                                                         \
    .sizes = "CHW", .usual = {19, 5, 6},                                               \
    .tiles = {TILES(VECTORS), TILES(KERNEL), TILES(KERNEL)}
FORM(windows, IMAGES);

static void
build_windows_gradient(struct bench *b, struct edge *e, const int64_t *n)
{
    const int64_t x[] = {2, n[0], n[1], n[2]};
    pool_attr(e, x);
    struct trial f = {ATTR(e->attr.pool2d), IN(normal(b, LAST, 4, x))};
    e->t = (struct trial){ATTR(e->attr.pool2d),
                          IN(like_result(b, e, ET_OP_avg_pool2d, &f)),
                          .length = KERNEL * KERNEL};
}
FORM(windows_gradient, IMAGES);

static void
build_winners_gradient(struct bench *b, struct edge *e, const int64_t *n)
{
    pool_attr(e, (const int64_t[]){2, n[0], n[1], n[2]});
    struct trial f = {ATTR(e->attr.pool2d), IN(image(b, e, n))};
    edge_compute(b, e, ET_OP_max_pool2d, &f);
    if (e->refused)
        return;
    const int64_t *y = f.out[0]->d.shape;
    e->t = (struct trial){ATTR(e->attr.pool2d),
                          IN(edge_floats(b, e, NORMAL, LAST, 4, y), f.out[1]),
                          .length = KERNEL * KERNEL};
}
FORM(winners_gradient, IMAGES);

/* Of every other window the index of the winner is outside of the plane. */
static void
build_winners_astray(struct bench *b, struct edge *e, const int64_t *n)
{
    build_winners_gradient(b, e, n);
    if (e->refused)
        return;
    struct operand *index = e->t.in[1];
    struct etk_array a = array_of(index);
    const double astray[] = {-1, (double)(n[1] * n[2]), INT32_MAX, INT32_MIN};
    for (int64_t i = 0; i < et_desc_count(&index->d); i += 2)
        etk_set(&a, etk_offset_linear(&index->d, i), astray[i / 2 % 4]);
}
FORM(winners_astray, .sizes = "CHW", .usual = {3, 5, 6}, .tiles = {NULL});

enum { PLANE_HEIGHT = 3, PLANE_WIDTH = 2 }; /* of the result */

static void
build_adaptive(struct bench *b, struct edge *e, const int64_t *n)
{
    pool_attr(e, (const int64_t[]){2, n[0], PLANE_HEIGHT, PLANE_WIDTH});
    e->t = (struct trial){ATTR(e->attr.pool2d), IN(image(b, e, n)),
                          .length = n[1] * n[2] + 1};
}
FORM(adaptive, IMAGES);

static void
build_adaptive_gradient(struct bench *b, struct edge *e, const int64_t *n)
{
    pool_attr(e, (const int64_t[]){2, n[0], n[1], n[2]});
    e->t = (struct trial){
        ATTR(e->attr.pool2d),
        IN(edge_floats(b, e, NORMAL, LAST, SHAPE(2, n[0], PLANE_HEIGHT, PLANE_WIDTH))),
        .length = PLANE_HEIGHT * PLANE_WIDTH};
}
FORM(adaptive_gradient, IMAGES);

static void
resize_attr(struct edge *e, const int64_t *shape, const int64_t *n)
{
    e->attr.resize = (struct et_resize_attr){
        .mode = ET_RESIZE_BILINEAR,
        .scale = {(double)n[1] / PLANE_HEIGHT, (double)n[2] / PLANE_WIDTH}};
    memcpy(e->attr.resize.shape, shape, sizeof e->attr.resize.shape);
}

static void
build_resized(struct bench *b, struct edge *e, const int64_t *n)
{
    resize_attr(e, (const int64_t[]){2, n[0], PLANE_HEIGHT, PLANE_WIDTH}, n);
    e->t = (struct trial){ATTR(e->attr.resize), IN(image(b, e, n)), .length = 4};
}
FORM(resized, IMAGES);

static void
build_resized_gradient(struct bench *b, struct edge *e, const int64_t *n)
{
    resize_attr(e, (const int64_t[]){2, n[0], n[1], n[2]}, n);
    e->t = (struct trial){
        ATTR(e->attr.resize),
        IN(edge_floats(b, e, NORMAL, LAST, SHAPE(2, n[0], PLANE_HEIGHT, PLANE_WIDTH))),
        .length = PLANE_HEIGHT * PLANE_WIDTH};
}
FORM(resized_gradient, IMAGES);

/* ---- normalisation ---- */

/* Batch norm of [N, C] and all that may come with it, or of x alone. */
static struct trial
batch_norm(struct bench *b, struct edge *e, int64_t n, int64_t c, bool whole)
{
    e->attr.norm = (struct et_norm_attr){
        .eps = 1e-5, .relu = whole, .stored = whole ? (int32_t)b->narrow : 0};
    struct operand *x = edge_floats(b, e, NORMAL, ROW, SHAPE(n, c));
    struct operand *gamma = whole ? edge_floats(b, e, POSITIVE, ROW, SHAPE(c)) : NULL;
    struct operand *beta = whole ? edge_floats(b, e, NORMAL, ROW, SHAPE(c)) : NULL;
    struct operand *residual =
        whole ? edge_floats(b, e, NORMAL, ROW, SHAPE(n, c)) : NULL;
    return (struct trial){ATTR(e->attr.norm), IN(x, gamma, beta, residual),
                          .length = n + 1, .narrow_part = whole};
}

static void
batch_norm_gradient(struct bench *b, struct edge *e, int64_t n, int64_t c, bool whole)
{
    struct trial f = batch_norm(b, e, n, c, whole);
    edge_compute(b, e, ET_OP_batch_norm, &f);
    if (e->refused)
        return;
    e->t = (struct trial){ATTR(e->attr.norm),
                          IN(edge_floats(b, e, NORMAL, ROW, SHAPE(n, c)), f.in[0],
                             f.in[1], f.out[1], f.out[2], whole ? f.out[0] : NULL),
                          .length = n + 1};
}

static void
build_channels(struct bench *b, struct edge *e, const int64_t *n)
{
    e->t = batch_norm(b, e, n[0], n[1], true);
}
#define CHANNELS                                                                       \
    .sizes = "NC", .usual = {7, 19},                                                   \
    .tiles = {TILES(4, ETK_BATCH_ROWS),                                                \
              TILES(VECTORS, ETK_BATCH_WIDE / 2, ETK_BATCH_WIDE)}
FORM(channels, CHANNELS);

static void
build_channels_gradient(struct bench *b, struct edge *e, const int64_t *n)
{
    batch_norm_gradient(b, e, n[0], n[1], true);
}
FORM(channels_gradient, CHANNELS);

/* So few channels that rows are put side by side. */
enum { CHANNELS_SIDE_BY_SIDE = 8 };
#define POSITIONS                                                                      \
    .sizes = "P", .usual = {35},                                                       \
    .tiles = {TILES(ETK_BATCH_WIDE / CHANNELS_SIDE_BY_SIDE,                            \
                    ETK_BATCH_BLOCK / CHANNELS_SIDE_BY_SIDE,                           \
                    ETK_BATCH_ROWS * ETK_BATCH_WIDE / CHANNELS_SIDE_BY_SIDE)}

static void
build_positions(struct bench *b, struct edge *e, const int64_t *n)
{
    e->t = batch_norm(b, e, n[0], CHANNELS_SIDE_BY_SIDE, false);
}
FORM(positions, POSITIONS);

static void
build_positions_gradient(struct bench *b, struct edge *e, const int64_t *n)
{
    batch_norm_gradient(b, e, n[0], CHANNELS_SIDE_BY_SIDE, false);
}
FORM(positions_gradient, POSITIONS);

/* Whole numbers: of one element, g less the mean of g is 0 then, not the rounding of a
 * product, which rstd makes large and of which sizes.c knows nothing. */
static struct trial
layer_norm(struct bench *b, struct edge *e, const int64_t *n)
{
    e->attr.norm = (struct et_norm_attr){.eps = 1e-5, .axes = 1};
    struct operand *x = edge_floats(b, e, COARSE, ROW, SHAPE(n[0], n[1]));
    struct operand *gamma = edge_floats(b, e, COARSE, ROW, SHAPE(n[1]));
    struct operand *beta = edge_floats(b, e, NORMAL, ROW, SHAPE(n[1]));
    struct operand *residual = edge_floats(b, e, COARSE, ROW, SHAPE(n[0], n[1]));
    return (struct trial){ATTR(e->attr.norm), IN(x, gamma, beta, residual),
                          .length = n[0] * n[1] + 1};
}

static void
build_row_norm(struct bench *b, struct edge *e, const int64_t *n)
{
    e->t = layer_norm(b, e, n);
}
#define NORMED_ROWS                                                                    \
    .sizes = "RL", .usual = {3, 35},                                                   \
    .tiles = {TILES(ETK_ROW_ROWS), TILES(VECTORS, ETK_ROW_SUM)}
FORM(row_norm, NORMED_ROWS);

static void
build_row_norm_gradient(struct bench *b, struct edge *e, const int64_t *n)
{
    struct trial f = layer_norm(b, e, n);
    edge_compute(b, e, ET_OP_layer_norm, &f);
    if (e->refused)
        return;
    struct operand *dy = edge_floats(b, e, COARSE, ROW, SHAPE(n[0], n[1]));
    struct operand *dsum = edge_floats(b, e, NORMAL, ROW, SHAPE(n[0], n[1]));
    e->t = (struct trial){ATTR(e->attr.norm),
                          IN(dy, f.out[3], f.in[1], f.out[1], f.out[2], dsum),
                          .length = n[0] * n[1] + 1, .narrow_part = true};
}
FORM(row_norm_gradient, NORMED_ROWS);

/* Two groups of C channels of L positions. */
static struct trial
group_norm(struct bench *b, struct edge *e, const int64_t *n)
{
    e->attr.norm = (struct et_norm_attr){.eps = 1e-5, .groups = 2};
    struct operand *x = edge_floats(b, e, NORMAL, ROW, SHAPE(3, 2 * n[0], n[1]));
    struct operand *gamma = edge_floats(b, e, POSITIVE, ROW, SHAPE(2 * n[0]));
    struct operand *beta = edge_floats(b, e, NORMAL, ROW, SHAPE(2 * n[0]));
    return (struct trial){ATTR(e->attr.norm), IN(x, gamma, beta),
                          .length = 3 * 2 * n[0] * n[1] + 1};
}

static void
build_groups(struct bench *b, struct edge *e, const int64_t *n)
{
    e->t = group_norm(b, e, n);
}
#define GROUPS                                                                         \
    .sizes = "CL", .usual = {3, 7}, .tiles = {TILES(ETK_LANES_V4), TILES(VECTORS)}
FORM(groups, GROUPS);

static void
build_groups_gradient(struct bench *b, struct edge *e, const int64_t *n)
{
    struct trial f = group_norm(b, e, n);
    edge_compute(b, e, ET_OP_group_norm, &f);
    if (e->refused)
        return;
    e->t = (struct trial){ATTR(e->attr.norm),
                          IN(edge_floats(b, e, NORMAL, ROW, SHAPE(3, 2 * n[0], n[1])),
                             f.in[0], f.in[1], f.out[1], f.out[2]),
                          .length = 3 * 2 * n[0] * n[1] + 1};
}
FORM(groups_gradient, GROUPS);

/* ---- softmax ---- */

static void
build_line(struct bench *b, struct edge *e, const int64_t *n)
{
    e->attr.axis = (struct et_axis_attr){.axis = 1};
    e->t = (struct trial){ATTR(e->attr.axis),
                          IN(edge_floats(b, e, NORMAL, ROW, SHAPE(3, n[0], n[1]))),
                          .length = n[0] + 1};
}
#define LINES .sizes = "LI", .usual = {35, 1}, .tiles = {TILES(VECTORS), TILES(VECTORS)}
FORM(line, LINES);

static void
build_line_gradient(struct bench *b, struct edge *e, const int64_t *n)
{
    build_line(b, e, n);
    struct trial f = e->t;
    edge_compute(b, e, b->op == ET_OP_softmax_grad ? ET_OP_softmax : ET_OP_log_softmax,
                 &f);
    if (e->refused)
        return;
    e->t = (struct trial){
        ATTR(e->attr.axis),
        IN(edge_floats(b, e, NORMAL, ROW, SHAPE(3, n[0], n[1])), f.out[0]),
        .length = n[0] + 1};
}
FORM(line_gradient, LINES);

/* ---- cross entropy of [N, C, I] ---- */

/* A target of -1 is ignored where N is odd, one of C where it is even; all others that
 * are no class are errors of the caller. */
static struct trial
loss(struct bench *b, struct edge *e, const int64_t *n, bool dense)
{
    e->attr.cross_entropy =
        (struct et_cross_entropy_attr){.ignore_index = n[0] % 2 ? -1 : n[1]};
    struct operand *z = edge_floats(b, e, NORMAL, ROW, SHAPE(n[0], n[1], n[2]));
    struct operand *weight = edge_floats(b, e, POSITIVE, ROW, SHAPE(n[1]));
    struct operand *target =
        dense ? wide_operand(b, POSITIVE, ROW, SHAPE(n[0], n[1], n[2]))
              : edge_indices(b, n[1], SHAPE(n[0], n[2]));
    return (struct trial){ATTR(e->attr.cross_entropy), IN(z, target, weight),
                          .length = n[1] + 1};
}

static void
loss_gradient(struct bench *b, struct edge *e, const int64_t *n, bool dense)
{
    struct trial f = loss(b, e, n, dense);
    edge_compute(b, e, ET_OP_cross_entropy, &f);
    if (e->refused)
        return;
    struct operand *d = wide_operand(b, NORMAL, ROW, SHAPE(n[0], n[2]));
    e->t =
        (struct trial){ATTR(e->attr.cross_entropy),
                       IN(d, f.in[0], f.in[1], f.out[1], f.in[2]), .length = n[1] + 1};
}

#define LOSSES                                                                         \
    .sizes = "NCI", .usual = {17, 19, 1},                                              \
    .tiles = {TILES(8), TILES(VECTORS), TILES(ETK_LANES_V4)}
#define LOSS(name, gradient, dense)                                                    \
    static void build_##name(struct bench *b, struct edge *e, const int64_t *n)        \
    {                                                                                  \
        e->t = loss(b, e, n, dense);                                                   \
    }                                                                                  \
    static void build_##gradient(struct bench *b, struct edge *e, const int64_t *n)    \
    {                                                                                  \
        loss_gradient(b, e, n, dense);                                                 \
    }                                                                                  \
    FORM(name, LOSSES);                                                                \
    FORM(gradient, LOSSES)
LOSS(labels, labels_gradient, false);
LOSS(distributions, distributions_gradient, true);

/* ---- attention, with a bias for each query and key of each head ---- */

static struct trial
attention(struct bench *b, struct edge *e, const int64_t *n, bool causal)
{
    e->attr.sdpa = (struct et_sdpa_attr){.scale = 0.4, .causal = causal};
    struct operand *q = edge_floats(b, e, NORMAL, ROW, SHAPE(1, 2, n[0], n[2]));
    struct operand *k = edge_floats(b, e, NORMAL, ROW, SHAPE(1, 2, n[1], n[2]));
    struct operand *v = edge_floats(b, e, NORMAL, ROW, SHAPE(1, 2, n[1], n[2]));
    struct operand *bias = edge_floats(b, e, NORMAL, ROW, SHAPE(1, 2, n[0], n[1]));
    return (struct trial){ATTR(e->attr.sdpa), IN(q, k, v, bias),
                          .length = n[1] + n[2] + 1, .narrow_terms = true};
}

static void
attention_gradient(struct bench *b, struct edge *e, const int64_t *n, bool causal)
{
    struct trial f = attention(b, e, n, causal);
    edge_compute(b, e, ET_OP_sdpa, &f);
    if (e->refused)
        return;
    e->t = (struct trial){ATTR(e->attr.sdpa),
                          IN(edge_floats(b, e, NORMAL, ROW, SHAPE(1, 2, n[0], n[2])),
                             f.in[0], f.in[1], f.in[2], f.out[0], f.out[1], f.in[3]),
                          .length = n[0] + n[1] + 4 * n[2] + 1, .narrow_terms = true};
}

#define HEADS_OF                                                                       \
    .sizes = "TSD", .usual = {5, 19, 7},                                               \
    .tiles = {TILES(ETK_SDPA_ROWS_2, ETK_SDPA_ROWS, ETK_SDPA_QUERIES),                 \
              TILES(VECTORS, 4 * ETK_LANES_V4, ETK_SDPA_DEPTH),                        \
              TILES(VECTORS, 4 * ETK_LANES_V4, ETK_SDPA_DEPTH)}
#define ATTENTION(name, gradient, causal)                                              \
    static void build_##name(struct bench *b, struct edge *e, const int64_t *n)        \
    {                                                                                  \
        e->t = attention(b, e, n, causal);                                             \
    }                                                                                  \
    static void build_##gradient(struct bench *b, struct edge *e, const int64_t *n)    \
    {                                                                                  \
        attention_gradient(b, e, n, causal);                                           \
    }                                                                                  \
    FORM(name, HEADS_OF);                                                              \
    FORM(gradient, HEADS_OF)
ATTENTION(attention, attention_gradient, false);
ATTENTION(attention_causal, attention_gradient_causal, true);
