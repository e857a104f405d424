/* SPDX-License-Identifier: Apache-2.0 */
/* edges_forms.c: forms of element-wise ops, reductions, products and movement; see
 * edges.h. */
#include "t/kernels/edges.h"

#include "kernels/cpu/tiles.h"
#include "t/kernels/tiles.h"

/* ---- single elements ---- */

static void
build_elements(struct bench *b, struct edge *e, const int64_t *n)
{
    e->attr.scalar = scalars_of(b->op);
    e->t = element_trial(b, &e->attr.scalar);
    for (int k = 0; k < e->t.n_in; k++) {
        bool asked = b->op == ET_OP_where && k == 0; /* with zeros among it */
        bool divides = b->op == ET_OP_div && k == 1;
        enum contents c = asked ? COARSE : divides ? POSITIVE : contents_of(b->op);
        e->t.in[k] = edge_floats(b, e, c, ROW, SHAPE(n[0]));
    }
    e->t.n_out = 0;
}
FORM(elements, .sizes = "N", .usual = {35}, .tiles = {TILES(VECTORS, ETK_ELEMENT_MAX)});

/* Blocks hold whole rows where one operand is a row. */
static void
build_rows_and_a_row(struct bench *b, struct edge *e, const int64_t *n)
{
    e->t = (struct trial){IN(edge_floats(b, e, NORMAL, ROW, SHAPE(n[0], n[1])),
                             edge_floats(b, e, NORMAL, ROW, SHAPE(n[1]))),
                          .length = 1};
}
FORM(rows_and_a_row, .sizes = "RC", .usual = {3, 35},
     .tiles = {TILES(ETK_LANES_V4), TILES(VECTORS, ETK_ELEMENT_MIN, ETK_ELEMENT_MAX)});

/* As many steps as there may be: the shortest blocks. */
static void
build_chain(struct bench *b, struct edge *e, const int64_t *n)
{
    struct et_fused_attr *o = &e->attr.fused;
    *o = (struct et_fused_attr){.n_in = 1,
                                .n_out = 1,
                                .n_steps = ET_FUSED_MAX_STEPS,
                                .out = {ET_FUSED_MAX_STEPS}};
    for (int i = 0; i < o->n_steps; i++)
        o->step[i] = (struct et_fused_step){.op = i % 2 ? ET_OP_mul_scalar : ET_OP_neg,
                                            .n_src = 1,
                                            .src = {(uint8_t)i},
                                            .a = 1.0625};
    e->t = (struct trial){.attr = o,
                          .attr_size = sizeof *o,
                          .length = o->n_steps,
                          IN(edge_floats(b, e, NORMAL, ROW, SHAPE(n[0]))),
                          .n_out = 1};
}
FORM(chain, .sizes = "N", .usual = {35}, .tiles = {TILES(VECTORS, ETK_ELEMENT_MIN)});

static void
cast(struct bench *b, struct edge *e, const int64_t *n, enum et_dtype from,
     enum et_dtype to)
{
    e->attr.cast = (struct et_cast_attr){.dtype = (int32_t)to};
    e->t = (struct trial){ATTR(e->attr.cast),
                          IN(edge_operand(b, e, from, NORMAL, ROW, SHAPE(n[0])))};
}

#define CAST(name, from, to)                                                           \
    static void build_##name(struct bench *b, struct edge *e, const int64_t *n)        \
    {                                                                                  \
        cast(b, e, n, from, to);                                                       \
    }                                                                                  \
    FORM(name, .sizes = "N", .usual = {35}, .tiles = {TILES(VECTORS, ETK_ELEMENT_MAX)})
CAST(widened_bf16, ET_BF16, ET_F32);
CAST(widened_f16, ET_F16, ET_F32);
CAST(cast_f64, ET_F32, ET_F64);
CAST(cast_bf16, ET_F32, ET_BF16);
CAST(cast_f16, ET_F32, ET_F16);
CAST(cast_i32, ET_F32, ET_I32);
CAST(cast_i64, ET_F32, ET_I64);
CAST(cast_u8, ET_F32, ET_U8);

static void
build_constant(struct bench *b, struct edge *e, const int64_t *n)
{
    (void)b;
    e->attr.shape = (struct et_shape_attr){
        .dtype = ET_F32, .ndim = 1, .shape = {n[0]}, .value = -0.1};
    e->t = (struct trial){ATTR(e->attr.shape)};
}
FORM(constant, .sizes = "N", .usual = {35}, .tiles = {TILES(VECTORS)});

/* ---- reductions ---- */

static void
reduced(struct bench *b, struct edge *e, const int64_t *n, uint32_t axes,
        int64_t length)
{
    e->attr.reduce = (struct et_reduce_attr){.axes = axes};
    e->t = (struct trial){ATTR(e->attr.reduce),
                          IN(edge_floats(b, e, NORMAL, ROW, SHAPE(n[0], n[1]))),
                          .length = b->op == ET_OP_sum ? length + 1 : 0};
}

static void
build_runs(struct bench *b, struct edge *e, const int64_t *n)
{
    reduced(b, e, n, 2, n[1]);
}
FORM(runs, .sizes = "RL", .usual = {3, 35},
     .tiles = {NULL, TILES(VECTORS, ETK_REDUCE_LANES, ETK_REDUCE_RUN)});

static void
build_columns(struct bench *b, struct edge *e, const int64_t *n)
{
    reduced(b, e, n, 1, n[0]);
}
FORM(columns, .sizes = "LC", .usual = {6, 35},
     .tiles = {TILES(ETK_REDUCE_ROWS, 2 * ETK_REDUCE_ROWS),
               TILES(VECTORS, ETK_REDUCE_FOLD / 2, ETK_REDUCE_FOLD, ETK_REDUCE_COLS)});

static void
build_all(struct bench *b, struct edge *e, const int64_t *n)
{
    e->t = (struct trial){IN(edge_floats(b, e, NORMAL, ROW, SHAPE(n[0]))),
                          .length = n[0] + 1};
}
FORM(all, .sizes = "N", .usual = {35},
     .tiles = {TILES(VECTORS, ETK_REDUCE_LANES, ETK_REDUCE_RUN)});

/* Stretches of R rows, of none and of one row, and one that ends outside. */
static void
build_stretches(struct bench *b, struct edge *e, const int64_t *n)
{
    int32_t r = (int32_t)n[0], first[] = {INT32_MIN, r, r, r + 1, INT32_MAX};
    struct operand *table = operand(b, ET_I32, GIVEN, 0, ROW, SHAPE(5));
    for (int i = 0; i < 5; i++)
        ((int32_t *)(void *)table->block)[i] = first[i];
    e->t =
        (struct trial){IN(edge_floats(b, e, NORMAL, ROW, SHAPE(n[0] + 3, n[1])), table),
                       .length = (n[0] + 3) * n[1] + 1};
}
FORM(stretches, .sizes = "RC", .usual = {35, 1},
     .tiles = {TILES(ETK_SEGMENT_LANES, ETK_SEGMENT_PART),
               TILES(VECTORS, ETK_SEGMENT_LANES)});

/* ---- where the largest lies ---- */

static void
build_places(struct bench *b, struct edge *e, const int64_t *n)
{
    e->attr.axis = (struct et_axis_attr){.axis = 1};
    e->t = (struct trial){ATTR(e->attr.axis),
                          IN(edge_floats(b, e, COARSE, ROW, SHAPE(3, n[0], n[1])))};
}
FORM(places, .sizes = "LI", .usual = {35, 1},
     .tiles = {TILES(VECTORS), TILES(VECTORS)});

static void
build_first_places(struct bench *b, struct edge *e, const int64_t *n)
{
    e->attr.axis = (struct et_axis_attr){.axis = 1, .n = n[0] < 5 ? n[0] : 5};
    e->t = (struct trial){ATTR(e->attr.axis),
                          IN(edge_floats(b, e, COARSE, ROW, SHAPE(3, n[0])))};
}
FORM(first_places, .sizes = "L", .usual = {35}, .tiles = {TILES(5, VECTORS)});

/* ---- lines ---- */

static void
line(struct bench *b, struct edge *e, const int64_t *n, bool reverse,
     enum contents contents)
{
    e->attr.axis = (struct et_axis_attr){.axis = 1, .reverse = reverse};
    e->t = (struct trial){ATTR(e->attr.axis),
                          IN(edge_floats(b, e, contents, ROW, SHAPE(3, n[0], n[1])))};
    if (b->op == ET_OP_cumsum)
        e->t.length = n[0] + 1;
}

static void
build_ordered(struct bench *b, struct edge *e, const int64_t *n)
{
    line(b, e, n, false, COARSE);
}
FORM(ordered, .sizes = "LI", .usual = {35, 1},
     .tiles = {TILES(ETK_SORT_RUN, 2 * ETK_SORT_RUN, 4 * ETK_SORT_RUN), NULL});

static void
build_ordered_down(struct bench *b, struct edge *e, const int64_t *n)
{
    line(b, e, n, true, COARSE);
}
FORM(ordered_down, .sizes = "LI", .usual = {35, 2},
     .tiles = {TILES(ETK_SORT_RUN, 2 * ETK_SORT_RUN), NULL});

static void
build_summed(struct bench *b, struct edge *e, const int64_t *n)
{
    line(b, e, n, false, NORMAL);
}
FORM(summed, .sizes = "LI", .usual = {35, 1},
     .tiles = {TILES(VECTORS), TILES(VECTORS, ETK_SCAN_COLS, 2 * ETK_SCAN_COLS)});

static void
build_summed_back(struct bench *b, struct edge *e, const int64_t *n)
{
    line(b, e, n, true, NORMAL);
}
FORM(summed_back, .sizes = "LI", .usual = {35, 5},
     .tiles = {TILES(VECTORS), TILES(VECTORS, ETK_SCAN_COLS)});

/* ---- products ---- */

static void
build_product(struct bench *b, struct edge *e, const int64_t *n)
{
    e->attr.matmul = (struct et_matmul_attr){.trans_b = 1};
    e->t = (struct trial){ATTR(e->attr.matmul),
                          IN(edge_floats(b, e, NORMAL, ROW, SHAPE(n[0], n[1])),
                             edge_floats(b, e, NORMAL, ROW, SHAPE(n[2], n[1])),
                             edge_floats(b, e, NORMAL, ROW, SHAPE(n[2]))),
                          .length = n[1] + 1};
}
FORM(product, .sizes = "MKN", .usual = {5, 7, 19},
     .tiles = {TILES(ETK_LANES_V4, ETK_MATMUL_PACK), TILES(VECTORS), TILES(VECTORS)});

static void
build_product_turned(struct bench *b, struct edge *e, const int64_t *n)
{
    e->attr.matmul = (struct et_matmul_attr){.trans_a = 1};
    e->t = (struct trial){ATTR(e->attr.matmul),
                          IN(edge_floats(b, e, NORMAL, ROW, SHAPE(n[1], n[0])),
                             edge_floats(b, e, NORMAL, ROW, SHAPE(n[1], n[2]))),
                          .length = n[1] + 1};
}
FORM(product_turned, .sizes = "MKN", .usual = {5, 7, 19},
     .tiles = {TILES(VECTORS), TILES(VECTORS, ETK_MATMUL_STAND), TILES(VECTORS)});

static void
build_product_gelu(struct bench *b, struct edge *e, const int64_t *n)
{
    build_product(b, e, n);
    e->attr.matmul_fused =
        (struct et_matmul_fused_attr){.trans_b = 1, .form = ET_EPILOGUE_GELU};
    e->t.attr = &e->attr.matmul_fused;
    e->t.attr_size = sizeof e->attr.matmul_fused;
    e->t.narrow_terms = true;
}
FORM(product_gelu, .sizes = "MKN", .usual = {5, 7, 19},
     .tiles = {TILES(ETK_LANES_V4), TILES(ETK_LANES_V4), TILES(ETK_LANES_V4)});

/* ---- indices ---- */

static void
build_taken(struct bench *b, struct edge *e, const int64_t *n)
{
    e->attr.axis = (struct et_axis_attr){.axis = 0, .n = n[0]};
    e->t = (struct trial){ATTR(e->attr.axis),
                          IN(edge_floats(b, e, NORMAL, ROW, SHAPE(n[0], n[2])),
                             edge_indices(b, n[0], SHAPE(n[1])))};
}
FORM(taken, .sizes = "VMI", .usual = {5, 17, 7},
     .tiles = {NULL, TILES(VECTORS), TILES(VECTORS)});

static void
build_taken_gradient(struct bench *b, struct edge *e, const int64_t *n)
{
    e->attr.axis = (struct et_axis_attr){.axis = 0, .n = n[0]};
    e->t = (struct trial){ATTR(e->attr.axis),
                          IN(edge_floats(b, e, NORMAL, ROW, SHAPE(n[1], n[2])),
                             edge_indices(b, n[0], SHAPE(n[1]))),
                          .length = n[1] + 1};
}
FORM(taken_gradient, .sizes = "VMI", .usual = {5, 17, 7},
     .tiles = {NULL, TILES(VECTORS), TILES(VECTORS)});

static void
build_gathered(struct bench *b, struct edge *e, const int64_t *n)
{
    e->attr.axis = (struct et_axis_attr){.axis = 1, .n = n[0]};
    e->t = (struct trial){ATTR(e->attr.axis),
                          IN(edge_floats(b, e, NORMAL, ROW, SHAPE(2, n[0], n[2])),
                             edge_indices(b, n[0], SHAPE(2, n[1], n[2])))};
}
FORM(gathered, .sizes = "VMI", .usual = {5, 9, 3},
     .tiles = {NULL, TILES(VECTORS), TILES(VECTORS)});

static void
build_scattered(struct bench *b, struct edge *e, const int64_t *n)
{
    e->attr.axis = (struct et_axis_attr){.axis = 1, .n = n[0]};
    e->t = (struct trial){ATTR(e->attr.axis),
                          IN(edge_floats(b, e, NORMAL, ROW, SHAPE(2, n[1], n[2])),
                             edge_indices(b, n[0], SHAPE(2, n[1], n[2]))),
                          .length = n[1] + 1};
}
FORM(scattered, .sizes = "VMI", .usual = {5, 9, 3},
     .tiles = {NULL, TILES(VECTORS), TILES(VECTORS)});

/* ---- movement ---- */

static void
build_turned(struct bench *b, struct edge *e, const int64_t *n)
{
    e->attr.copy = (struct et_copy_attr){.format = ET_ROW_MAJOR};
    e->t = (struct trial){ATTR(e->attr.copy),
                          IN(edge_floats(b, e, NORMAL, TURNED, SHAPE(n[0], n[1])))};
}
FORM(turned, .sizes = "MN", .usual = {5, 7},
     .tiles = {TILES(ETK_COPY_TILE, 2 * ETK_COPY_TILE),
               TILES(ETK_COPY_TILE, 2 * ETK_COPY_TILE)});

static void
build_joined(struct bench *b, struct edge *e, const int64_t *n)
{
    e->attr.axis = (struct et_axis_attr){.axis = 1};
    e->t = (struct trial){ATTR(e->attr.axis),
                          IN(edge_floats(b, e, NORMAL, ROW, SHAPE(3, n[0])),
                             edge_floats(b, e, NORMAL, ROW, SHAPE(3, n[1])))};
}
FORM(joined, .sizes = "MN", .usual = {5, 7}, .tiles = {TILES(VECTORS), TILES(VECTORS)});

static void
build_packed(struct bench *b, struct edge *e, const int64_t *n)
{
    const int64_t o[] = {n[0] + n[1] + 5, 2, n[0] + 4}; /* struct et_pack_attr */
    for (int i = 0; i < 3; i++)
        e->attr.pack[i] = o[i];
    e->t = (struct trial){.attr = e->attr.pack,
                          .attr_size = sizeof o,
                          IN(edge_floats(b, e, NORMAL, ROW, SHAPE(n[0])),
                             edge_floats(b, e, NORMAL, ROW, SHAPE(n[1])))};
}
FORM(packed, .sizes = "MN", .usual = {5, 7}, .tiles = {TILES(VECTORS), TILES(VECTORS)});

static void
build_padded(struct bench *b, struct edge *e, const int64_t *n)
{
    e->attr.pad =
        (struct et_pad_attr){.before = {0, 2}, .after = {1, 1}, .value = -1.5};
    e->t = (struct trial){ATTR(e->attr.pad),
                          IN(edge_floats(b, e, NORMAL, ROW, SHAPE(3, n[0])))};
}
FORM(padded, .sizes = "N", .usual = {5}, .tiles = {TILES(VECTORS)});

static void
build_flipped(struct bench *b, struct edge *e, const int64_t *n)
{
    e->attr.flip = (struct et_flip_attr){.axes = 3};
    e->t = (struct trial){ATTR(e->attr.flip),
                          IN(edge_floats(b, e, NORMAL, ROW, SHAPE(n[0], n[1])))};
}
FORM(flipped, .sizes = "MN", .usual = {5, 7}, .tiles = {NULL, TILES(VECTORS)});

static void
build_dropped(struct bench *b, struct edge *e, const int64_t *n)
{
    e->attr.dropout = (struct et_dropout_attr){.p = 0.3, .ordinal = 5};
    e->t = (struct trial){ATTR(e->attr.dropout),
                          IN(edge_floats(b, e, NORMAL, ROW, SHAPE(n[0], n[1])),
                             operand(b, ET_I64, INDEX, 1 << 20, ROW, SHAPE(2))),
                          .length = 1};
}
FORM(dropped, .sizes = "NS", .usual = {3, 35},
     .tiles = {NULL, TILES(4, ETK_DRAW, 2 * ETK_DRAW)});

static void
drawn(struct bench *b, struct edge *e, const int64_t *n, enum et_random_kind kind)
{
    e->attr.random = (struct et_random_attr){
        .kind = kind, .ndim = 2, .p = 0.3, .ordinal = 5, .shape = {n[0], n[1]}};
    e->t = (struct trial){ATTR(e->attr.random),
                          IN(operand(b, ET_I64, INDEX, 1 << 20, ROW, SHAPE(2))),
                          .length = kind == ET_RANDOM_NORMAL};
}

static void
build_drawn(struct bench *b, struct edge *e, const int64_t *n)
{
    drawn(b, e, n, ET_RANDOM_BERNOULLI);
}
FORM(drawn, .sizes = "NS", .usual = {3, 35},
     .tiles = {NULL, TILES(4, ETK_DRAW, 2 * ETK_DRAW)});

static void
build_drawn_normal(struct bench *b, struct edge *e, const int64_t *n)
{
    drawn(b, e, n, ET_RANDOM_NORMAL);
}
FORM(drawn_normal, .sizes = "NS", .usual = {3, 35},
     .tiles = {NULL, TILES(4, ETK_DRAW, 2 * ETK_DRAW)});

static void
build_frames(struct bench *b, struct edge *e, const int64_t *n)
{
    e->attr.image_batch = (struct et_image_batch_attr){.shape = {n[1], n[2]}};
    e->t = (struct trial){
        ATTR(e->attr.image_batch),
        IN(operand(b, ET_U8, INDEX, 256, ROW, SHAPE(3, 2, 5, 6)),
           operand(b, ET_I32, INDEX, 6, ROW, SHAPE(n[0], ET_FRAME_NUMBERS)),
           edge_floats(b, e, NORMAL, ROW, SHAPE(2, 256)))};
}
FORM(frames, .sizes = "NHW", .usual = {9, 4, 5},
     .tiles = {NULL, NULL, TILES(ETK_LANES_V4)});

static void
build_rows_shown(struct bench *b, struct edge *e, const int64_t *n)
{
    e->attr.image_batch = (struct et_image_batch_attr){.shape = {n[1], n[2]}};
    e->t = (struct trial){ATTR(e->attr.image_batch),
                          IN(operand(b, ET_U8, INDEX, 256, ROW, SHAPE(3, 2, 5, 6)),
                             operand(b, ET_I32, INDEX, 6, ROW,
                                     SHAPE(n[0], ET_SHOWN_NUMBERS + ET_CHANGE_NUMBERS)),
                             edge_floats(b, e, NORMAL, ROW, SHAPE(2, 256)))};
}
FORM(rows_shown, .sizes = "NHW", .usual = {9, 4, 5},
     .tiles = {NULL, NULL, TILES(ETK_LANES_V4)});
