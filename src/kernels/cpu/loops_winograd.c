/* SPDX-License-Identifier: Apache-2.0 */
/* loops_winograd.c: convolution with 3 x 3 filters in steps of one pixel, by Winograd's
 * algorithm F(2x2, 3x3).
 *
 *   Y = A^T [(G w G^T) . (B^T X B)] A     of each tile of 2 x 2 results, X: 4 x 4
 *
 * Lavin and Gray, arXiv:1509.09308. The products of all channels and filters are 16
 * products of matrices, [tiles, C] by [C, K], so a result takes 4 C multiplications
 * instead of 9 C. The sums have fewer terms, and the error is below that of the direct
 * sum: 1.4 units in the last place in the mean square for C = 16, against 1.8. (Tiles
 * of 4 x 4 results take 2.25 C, and their error is 4 to 9 units.)
 *
 * A thread takes a block of tiles through all three stages, so that the 16 arrays of a
 * block stay in the second cache. */
#include <omp.h>
#include <string.h>

#include "kernels/cpu/loops_product.h"

#define POINTS 16 /* of a tile of X: 4 x 4 */

#if defined __AVX512F__
#define ROWS ETK_WINOGRAD_ROWS_V4
#else
#define ROWS ETK_WINOGRAD_ROWS
#endif
#define NARROW ETK_WINOGRAD_ROWS_V4 /* where a row is one vector */
/* Of filters: those whose sums are in registers together. */
#define PANEL (2 * LANES)

typedef int32_t mask __attribute__((vector_size(4 * LANES)));

/* Operands behind x and w, and the result. -1: the call has no such operand. */
struct slots {
    int bias, scale, shift, residual, y;
};

struct winograd_kernel {
    struct et_kernel base;
    int64_t h, w, c, p, q, k, pad[2];
    int64_t rows, columns, tiles; /* tiles of an image's height and width, and of all */
    int64_t block;                /* tiles at a time */
    int64_t x[4], f[4], y[4], r[4]; /* strides; f: of the filters, r: of the residual */
    struct slots at;
    bool relu;
};

/* The workspace: a pixel of zeros; the filters' transform, for each point
 * [K / PANEL][C][PANEL]; and for each thread and point [block][C] and [block][K]. From
 * one point to the next there is a line more, since steps of a power of two would map
 * all points to the same places of the first cache. */
enum { LINE = 16 };

static int64_t
filter_step(const struct winograd_kernel *k)
{
    return k->c * k->k + LINE;
}

static int64_t
block_step(const struct winograd_kernel *k, int64_t channels)
{
    return k->block * channels + LINE;
}

static int64_t
thread_size(const struct winograd_kernel *k)
{
    return POINTS * (block_step(k, k->c) + block_step(k, k->k));
}

/* ---- filters ---- */

INLINE vec
load(const float *p)
{
    return *(const vec *)p;
}

/* u = G w G^T for LANES channels of one filter: u[point][lane], points LANES apart. */
static void
transform_filter(const struct winograd_kernel *k, const float *w, float *u)
{
    vec t[4][3];
    for (int s = 0; s < 3; s++) {
        vec a = load(w + s * k->f[3]), b = load(w + k->f[2] + s * k->f[3]),
            c = load(w + 2 * k->f[2] + s * k->f[3]);
        t[0][s] = a;
        t[1][s] = 0.5f * (a + b + c);
        t[2][s] = 0.5f * (a - b + c);
        t[3][s] = c;
    }
    for (int i = 0; i < 4; i++) {
        vec a = t[i][0], b = t[i][1], c = t[i][2];
        vec *to = (vec *)(u + i * 4 * LANES);
        to[0] = a;
        to[1] = 0.5f * (a + b + c);
        to[2] = 0.5f * (a - b + c);
        to[3] = c;
    }
}

/* Filters FROM .. FROM + LANES - 1 of the transform U. */
static void
transform_filters(const struct winograd_kernel *k, const float *w, float *u,
                  int64_t from)
{
    float part[LANES][POINTS * LANES];
    int64_t panel = from / PANEL * PANEL;
    int64_t width = k->k - panel < PANEL ? k->k - panel : PANEL;
    float *to = u + panel * k->c + from % PANEL;
    for (int64_t c = 0; c < k->c; c += LANES) {
        for (int64_t i = 0; i < LANES; i++)
            transform_filter(k, w + (from + i) * k->f[0] + c, part[i]);
        for (int64_t point = 0; point < POINTS; point++)
            for (int64_t j = 0; j < LANES; j++)
                for (int64_t i = 0; i < LANES; i++)
                    to[point * filter_step(k) + (c + j) * width + i] =
                        part[i][point * LANES + j];
    }
}

/* ---- a tile of pixels ---- */

/* A tile: its image, and the first row and column of its results. */
struct place {
    int64_t n, p, q;
};

static struct place
place_of(const struct winograd_kernel *k, int64_t i)
{
    int64_t in_image = i % (k->rows * k->columns);
    return (struct place){.n = i / (k->rows * k->columns),
                          .p = in_image / k->columns * 2,
                          .q = in_image % k->columns * 2};
}

INLINE void
step_on(const struct winograd_kernel *k, struct place *t)
{
    if ((t->q += 2) < k->q)
        return;
    t->q = 0;
    if ((t->p += 2) < k->p)
        return;
    t->p = 0;
    t->n++;
}

/* The pixels of tile T. What lies outside the image is ZERO. */
INLINE void
find_pixels(const struct winograd_kernel *k, const float *x, const float *zero,
            struct place t, const float *at[4][4])
{
    x += t.n * k->x[0];
    for (int r = 0; r < 4; r++) {
        int64_t h = t.p + r - k->pad[0];
        bool inside = h >= 0 && h < k->h;
        for (int s = 0; s < 4; s++) {
            int64_t w = t.q + s - k->pad[1];
            at[r][s] =
                inside && w >= 0 && w < k->w ? x + h * k->x[2] + w * k->x[3] : zero;
        }
    }
}

enum { AHEAD = 10 }; /* columns */

/* Asks for the results of tile T and what is added to them, which are needed once the
 * products are done, and for the pixels of a tile ahead. */
INLINE void
fetch(const struct winograd_kernel *k, const float *x, const float *residual, float *y,
      struct place t)
{
    y += t.n * k->y[0] + t.p * k->y[2] + t.q * k->y[3];
    if (residual)
        residual += t.n * k->r[0] + t.p * k->r[2] + t.q * k->r[3];
    x += t.n * k->x[0] + (t.p + 2 - k->pad[0]) * k->x[2] +
         (t.q + AHEAD - k->pad[1]) * k->x[3];
    for (int r = 0; r < 2; r++)
        for (int s = 0; s < 2; s++) {
            for (int64_t n = 0; n < k->k; n += LINE) {
                __builtin_prefetch(y + r * k->y[2] + s * k->y[3] + n, 1);
                if (residual)
                    __builtin_prefetch(residual + r * k->r[2] + s * k->r[3] + n);
            }
            for (int64_t c = 0; c < k->c; c += LINE)
                __builtin_prefetch(x + r * k->x[2] + s * k->x[3] + c);
        }
}

/* v = B^T X B of the pixels AT, points STEP apart. */
static void
transform_tile(const float *const at[4][4], int64_t channels, float *v, int64_t step)
{
    for (int64_t c = 0; c < channels; c += LANES) {
        vec d[4][4];
#pragma GCC unroll 4
        for (int s = 0; s < 4; s++) {
            vec e = load(at[0][s] + c), f = load(at[1][s] + c), g = load(at[2][s] + c),
                h = load(at[3][s] + c);
            d[0][s] = e - g;
            d[1][s] = f + g;
            d[2][s] = g - f;
            d[3][s] = f - h;
        }
#pragma GCC unroll 4
        for (int r = 0; r < 4; r++) {
            float *to = v + r * 4 * step + c;
            *(vec *)to = d[r][0] - d[r][2];
            *(vec *)(to + step) = d[r][1] + d[r][2];
            *(vec *)(to + 2 * step) = d[r][2] - d[r][1];
            *(vec *)(to + 3 * step) = d[r][1] - d[r][3];
        }
    }
}

/* ---- products ---- */

/* M = V U for one point, ROWS of tiles at a time, or NARROW. What there is
 * behind the last tile is computed too, and not read. */
static void
multiply_point(const struct winograd_kernel *k, const float *v, const float *u,
               float *m, int64_t tiles)
{
    for (int64_t n = 0; n < k->k; n += PANEL) {
        bool narrow = k->k - n < PANEL;
        struct product g = {.c_row = k->k,
                            .a_row = k->c,
                            .a_column = 1,
                            .b_row = narrow ? LANES : PANEL};
        const float *b = u + n * k->c;
        if (narrow)
            for (int64_t i = 0; i < tiles; i += NARROW)
                product_tile(&g, m + i * k->k + n, v + i * k->c, b, k->c, false, NARROW,
                             1);
        else
            for (int64_t i = 0; i < tiles; i += ROWS)
                product_tile(&g, m + i * k->k + n, v + i * k->c, b, k->c, false, ROWS,
                             2);
    }
}

/* ---- a tile of results ---- */

/* The value as it is when stored: a product and a sum that follow must not become one
 * instruction, since they are rounded one by one where they are steps of their own. */
INLINE vec
rounded(vec v)
{
#if defined __AVX512F__
    __asm__("" : "+v"(v));
#else
    __asm__("" : "+x"(v));
#endif
    return v;
}

/* What follows the convolution: arrays, NULL where there are none. */
struct after {
    const float *bias, *scale, *shift;
    int64_t row, column; /* strides of the residual */
    bool relu;
};

INLINE void
finish(const struct after *f, vec v, int64_t n, float *y, const float *residual)
{
    if (f->bias)
        v += load(f->bias + n);
    if (f->scale)
        v = rounded(v * load(f->scale + n)) + load(f->shift + n);
    if (residual)
        v += load(residual + n);
    if (f->relu)
        v = (vec)((mask)v & ~(mask)(v < 0)); /* NaN passes */
    *(vec *)(y + n) = v;
}

/* y = A^T m A of a tile, and what follows. BELOW: it has a second row of results;
 * RIGHT: a second column. */
INLINE void
finish_tile(const struct after f, const float *m, int64_t step, int64_t channels,
            float *y, int64_t row, int64_t column, const float *residual, bool below,
            bool right)
{
    for (int64_t n = 0; n < channels; n += LANES) {
        vec s[2][4];
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
            const float *from = m + j * step + n;
            vec a = load(from), b = load(from + 4 * step), c = load(from + 8 * step),
                d = load(from + 12 * step);
            s[0][j] = a + b + c;
            s[1][j] = b - c - d;
        }
#pragma GCC unroll 2
        for (int r = 0; r < 2; r++) {
            if (r == 1 && !below)
                continue;
            float *to = y + r * row;
            const float *other = residual ? residual + r * f.row : NULL;
            finish(&f, s[r][0] + s[r][1] + s[r][2], n, to, other);
            if (right)
                finish(&f, s[r][1] - s[r][2] - s[r][3], n, to + column,
                       other ? other + f.column : NULL);
        }
    }
}

static const float *
array(void *const *ptr, int slot)
{
    return slot < 0 ? NULL : ptr[slot];
}

/* Tiles FROM .. FROM + N - 1. */
static void
finish_tiles(const struct winograd_kernel *k, void *const *ptr, int64_t from, int64_t n,
             const float *m, int64_t step)
{
    const struct after f = {
        .bias = array(ptr, k->at.bias),
        .scale = array(ptr, k->at.scale),
        .shift = array(ptr, k->at.shift),
        .row = k->r[2],
        .column = k->r[3],
        .relu = k->relu,
    };
    float *y = ptr[k->at.y];
    const float *residual = array(ptr, k->at.residual);
    struct place t = place_of(k, from);
    for (int64_t i = 0; i < n; i++, step_on(k, &t))
        finish_tile(f, m + i * k->k, step, k->k,
                    y + t.n * k->y[0] + t.p * k->y[2] + t.q * k->y[3], k->y[2], k->y[3],
                    residual ? residual + t.n * k->r[0] + t.p * k->r[2] + t.q * k->r[3]
                             : NULL,
                    t.p + 1 < k->p, t.q + 1 < k->q);
}

/* ---- all of it ---- */

static void
run_block(const struct winograd_kernel *k, void *const *ptr, const float *zero,
          const float *u, float *mine, int64_t from)
{
    int64_t n = k->tiles - from < k->block ? k->tiles - from : k->block;
    int64_t step = block_step(k, k->c), m_step = block_step(k, k->k);
    float *m = mine + POINTS * step;
    struct place t = place_of(k, from);
    for (int64_t i = 0; i < n; i++, step_on(k, &t)) {
        const float *at[4][4];
        find_pixels(k, ptr[0], zero, t, at);
        fetch(k, ptr[0], k->at.residual < 0 ? NULL : ptr[k->at.residual], ptr[k->at.y],
              t);
        transform_tile(at, k->c, mine + i * k->c, step);
    }
    for (int64_t point = 0; point < POINTS; point++)
        multiply_point(k, mine + point * step, u + point * filter_step(k),
                       m + point * m_step, n);
    finish_tiles(k, ptr, from, n, m, m_step);
}

static et_status
run_winograd(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    const struct winograd_kernel *k = (const struct winograd_kernel *)kernel;
    float *zero = ws, *u = zero + k->c, *blocks = u + POINTS * filter_step(k);
    int64_t n = (k->tiles + k->block - 1) / k->block;
    memset(zero, 0, (size_t)k->c * sizeof *zero);
#pragma omp parallel num_threads(k->base.threads)
    {
        float *mine = blocks + omp_get_thread_num() * thread_size(k);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < k->k; i += LANES)
            transform_filters(k, ptr[1], u, i);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < n; i++)
            run_block(k, ptr, zero, u, mine, i * k->block);
    }
    return ET_OK;
}

static bool
takes(const struct et_call *call, const struct et_conv2d_attr *a)
{
    const struct et_desc *x = &call->in[0], *w = &call->in[1], *y = &call->out[0];
    bool plain = x->dtype == ET_F32 && w->dtype == ET_F32 && y->dtype == ET_F32 &&
                 a->groups == 1 && w->shape[2] == 3 && w->shape[3] == 3;
    for (int i = 0; i < 2; i++)
        plain = plain && a->stride[i] == 1 && a->dilation[i] == 1;
    return plain && x->stride[1] == 1 && w->stride[1] == 1 && y->stride[1] == 1 &&
           x->shape[1] % LANES == 0 && y->shape[1] % LANES == 0 && x->shape[1] >= 16 &&
           y->shape[1] >= 16;
}

static bool
has(const struct et_call *call, int i)
{
    return i < call->n_in && call->in[i].dtype != ET_NONE;
}

/* Vectors of operand I are read; where they do not lie so, another kernel does it. */
static bool
is_dense(const struct et_call *call, int i)
{
    return !has(call, i) || (call->in[i].dtype == ET_F32 &&
                             call->in[i].stride[call->in[i].ndim == 1 ? 0 : 1] == 1);
}

static void
set_shapes(struct winograd_kernel *k, const struct et_conv2d_attr *a,
           const struct et_call *call)
{
    const struct et_desc *x = &call->in[0], *y = &call->out[0];
    k->c = x->shape[1];
    k->h = x->shape[2];
    k->w = x->shape[3];
    k->k = y->shape[1];
    k->p = y->shape[2];
    k->q = y->shape[3];
    k->pad[0] = a->pad[0];
    k->pad[1] = a->pad[1];
    k->rows = (k->p + 1) / 2;
    k->columns = (k->q + 1) / 2;
    k->tiles = x->shape[0] * k->rows * k->columns;
    memcpy(k->x, x->stride, sizeof k->x);
    memcpy(k->f, call->in[1].stride, sizeof k->f);
    memcpy(k->y, y->stride, sizeof k->y);
    if (has(call, 4))
        memcpy(k->r, call->in[4].stride, sizeof k->r);
}

/* As many tiles as leave the arrays of a block in the second cache, and no thread
 * without one. Whole ROWS of them. */
static int64_t
block_of(const struct winograd_kernel *k, int threads)
{
    int64_t most =
        ETK_WINOGRAD_BYTES / (POINTS * (int64_t)sizeof(float)) / (k->c + k->k);
    int64_t share = (k->tiles + threads - 1) / threads;
    most = most < ETK_WINOGRAD_LEAST  ? ETK_WINOGRAD_LEAST
           : most > ETK_WINOGRAD_MOST ? ETK_WINOGRAD_MOST
                                      : most;
    most = share < most ? share : most;
    return (most + ETK_WINOGRAD_ROWS_V4 - 1) / ETK_WINOGRAD_ROWS_V4 *
           ETK_WINOGRAD_ROWS_V4;
}

et_status
ETK_NAME(etk_prepare_winograd)(struct et_device_handle *d, const struct et_call *call,
                               struct et_kernel **out, size_t *ws, char *why,
                               size_t why_size)
{
    const struct et_conv2d_attr *a = call->attr; /* conv2d_fused's has it first */
    bool fused = call->op == ET_OP_conv2d_fused;
    bool dense = true;
    for (int i = 2; i < call->n_in; i++)
        dense = dense && is_dense(call, i);
    if (LANES < ETK_LANES_V3 || !dense || !takes(call, a))
        return etk_refuse(why, why_size, "not a convolution for Winograd's algorithm");
    struct winograd_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    set_shapes(k, a, call);
    if (k->tiles < ETK_WINOGRAD_MIN) {
        etk_release(&k->base);
        return etk_refuse(why, why_size, "too few tiles for Winograd's algorithm");
    }
    k->block = block_of(k, d->threads);
    k->at = (struct slots){
        .bias = !fused && has(call, 2) ? 2 : -1,
        .scale = fused ? 2 : -1,
        .shift = fused ? 3 : -1,
        .residual = fused && has(call, 4) ? 4 : -1,
        .y = call->n_in,
    };
    k->relu = fused && ((const struct et_conv2d_fused_attr *)call->attr)->relu;
    k->base.run = run_winograd;
    k->base.what = "winograd 2x2";
    *ws = (size_t)(k->c + POINTS * filter_step(k) + d->threads * thread_size(k)) *
          sizeof(float);
    *out = &k->base;
    return ET_OK;
}
