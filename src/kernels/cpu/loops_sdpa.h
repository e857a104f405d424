/* SPDX-License-Identifier: Apache-2.0 */
/* loops_sdpa.h: attention's operands (loops_sdpa.c), and their rows as products take
 * them: in f32, packed, padded to whole vectors, transposed. */
#ifndef ETUDE_KERNELS_CPU_LOOPS_SDPA_H
#define ETUDE_KERNELS_CPU_LOOPS_SDPA_H

#include "kernels/cpu/loops_convert.h"
#include "kernels/cpu/loops_product.h"

#define TILE ETK_SDPA_QUERIES

typedef int32_t shuffle __attribute__((vector_size(4 * LANES)));

enum operand { Q, K, V, O, DO, DQ, DK, DV, OPERANDS };

struct sdpa_kernel {
    struct et_kernel base;
    int64_t B, H, T, S, D;
    int64_t d_pad, s_pad;          /* up to whole vectors */
    enum et_dtype type, bias_type; /* F32, BF16 or F16; TYPE: of all OPERANDS */
    int64_t stride[OPERANDS][4];   /* of b, h, position, element */
    int64_t lse[3], bias[4];       /* strides; 0 repeats */
    int n_in;
    float scale;
    bool causal, biased, wants[3]; /* backward: dq, dk, dv */
    int pieces;
    size_t bytes; /* of the workspace, per piece */
};

/* Where run finds them. */
struct arrays {
    void *p[OPERANDS];
    float *lse;
    const void *bias;
};

/* A piece's packed operands and sums. */
struct scratch {
    float *k, *v, *kt, *vt; /* [S][d_pad], transposed [D][s_pad] */
    float *dk, *dv;         /* [S][d_pad] */
    float *q, *out, *grad;  /* [TILE][d_pad]: q; o or dq; do */
    float *s, *ds;          /* [TILE][s_pad] */
    float *delta;           /* [TILE]: do . o */
    float *bias;            /* [s_pad]: a row of it, where it is not f32 */
};

/* Lays the scratch out from P on (NULL: only measures); returns its floats. */
static int64_t
lay_out(const struct sdpa_kernel *k, struct scratch *x, float *p, bool grad)
{
    struct {
        float **at;
        int64_t n;
        bool needed;
    } part[] = {
        {&x->k, k->S * k->d_pad, grad},
        {&x->v, k->S * k->d_pad, !grad},
        {&x->kt, k->D * k->s_pad, true},
        {&x->vt, k->D * k->s_pad, grad},
        {&x->dk, k->S * k->d_pad, grad},
        {&x->dv, k->S * k->d_pad, grad},
        {&x->q, TILE * k->d_pad, true},
        {&x->out, TILE * k->d_pad, true},
        {&x->grad, TILE * k->d_pad, grad},
        {&x->s, TILE * k->s_pad, true},
        {&x->ds, TILE * k->s_pad, grad},
        {&x->delta, TILE, grad},
        {&x->bias, k->s_pad, k->biased && k->bias_type != ET_F32},
    };
    int64_t at = 0;
    for (size_t i = 0; i < sizeof part / sizeof part[0]; i++) {
        *part[i].at = p && part[i].needed ? p + at : NULL;
        at += part[i].needed ? (part[i].n + 15) / 16 * 16 : 0;
    }
    return at;
}

/* Element AT of an array of TYPE. */
static inline void *
element(const void *array, int64_t at, enum et_dtype type)
{
    return (char *)array + at * (type == ET_F32 ? 4 : 2);
}

static void *
plane_of(const struct sdpa_kernel *k, const struct arrays *x, enum operand o,
         int64_t plane)
{
    return element(x->p[o],
                   plane / k->H * k->stride[o][0] + plane % k->H * k->stride[o][1],
                   k->type);
}

/* y = f x, N elements with strides; whole vectors where both are neighbours. */
INLINE void
scale_row(float *restrict y, int64_t dy, const float *restrict x, int64_t dx, int64_t n,
          float f)
{
    int64_t i = 0;
    if (dx == 1 && dy == 1)
        for (; i + LANES <= n; i += LANES)
            *(vec *)(y + i) = f * *(const vec *)(x + i);
    for (; i < n; i++)
        y[i * dy] = f * x[i * dx];
}

/* N elements of TYPE that are STEP apart, as f32 neighbours. */
static void
load_row(float *restrict to, const void *from, int64_t step, int64_t n,
         enum et_dtype type)
{
    if (type == ET_F32)
        scale_row(to, 1, from, step, n, 1);
    else if (type == ET_BF16 && step == 1)
        widen_line(to, from, n, 1, ET_BF16);
    else if (type == ET_BF16)
        widen_line(to, from, n, step, ET_BF16);
    else
        widen_line(to, from, n, step, ET_F16);
}

/* N f32 of FROM, times F and rounded, STEP apart. FROM is spent. */
static void
store_row(void *restrict to, int64_t step, float *restrict from, int64_t n, float f,
          enum et_dtype type)
{
    if (type == ET_F32) {
        scale_row(to, step, from, 1, n, f);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        from[i] *= f;
    if (type == ET_BF16 && step == 1)
        narrow_line(to, from, n, 1, ET_BF16);
    else if (type == ET_BF16)
        narrow_line(to, from, n, step, ET_BF16);
    else
        narrow_line(to, from, n, step, ET_F16);
}

/* Rows FROM .. FROM + N - 1 of an operand, zeros behind. */
static void
pack(const struct sdpa_kernel *k, float *to, const void *plane, enum operand o,
     int64_t from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float *row = to + i * k->d_pad;
        load_row(row, element(plane, (from + i) * k->stride[o][2], k->type),
                 k->stride[o][3], k->D, k->type);
        for (int64_t d = k->D; d < k->d_pad; d++)
            row[d] = 0;
    }
}

/* Rows as products take them: D elements and zeros up to whole vectors. */
struct rows {
    const float *p;
    int64_t stride;
};

static bool
is_whole_vectors(const struct sdpa_kernel *k, enum operand o)
{
    return k->type == ET_F32 && k->stride[o][3] == 1 && k->D == k->d_pad;
}

/* Rows FROM .. FROM + N - 1 of an operand: where they lie if they will do, else in
 * TO. */
static struct rows
rows_of(const struct sdpa_kernel *k, float *to, const void *plane, enum operand o,
        int64_t from, int64_t n)
{
    int64_t stride = k->stride[o][2];
    if (is_whole_vectors(k, o))
        return (struct rows){(const float *)plane + from * stride, stride};
    pack(k, to, plane, o, from, n);
    return (struct rows){to, k->d_pad};
}

/* x0 y0 x1 y1 ... from the lower or the upper halves of two vectors. */
INLINE vec
interleave(vec x, vec y, const int upper)
{
#ifdef __clang__
    vec z;
    for (int i = 0; i < LANES; i++)
        z[i] = (i % 2 ? y : x)[i / 2 + upper * (LANES / 2)];
    return z;
#else
    shuffle which;
    for (int i = 0; i < LANES; i++)
        which[i] = i / 2 + upper * (LANES / 2) + i % 2 * LANES;
    return __builtin_shuffle(x, y, which);
#endif
}

/* LANES vectors of LANES elements change rows for columns: interleaving the first half
 * of the vectors with the second, log2(LANES) times. */
INLINE void
transpose(vec x[LANES])
{
    vec y[LANES];
#pragma GCC unroll 4
    for (int round = 1; round < LANES; round *= 2) {
#pragma GCC unroll 16
        for (int i = 0; i < LANES / 2; i++) {
            y[2 * i] = interleave(x[i], x[i + LANES / 2], 0);
            y[2 * i + 1] = interleave(x[i], x[i + LANES / 2], 1);
        }
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++)
            x[i] = y[i];
    }
}

/* Rows [0, N) of X become columns from TO on, N <= LANES; zeros behind the Nth. */
INLINE void
transpose_rows(const struct sdpa_kernel *k, float *restrict to, const float *restrict x,
               int64_t row, int64_t step, int64_t n)
{
    int64_t d = 0;
    for (; step == 1 && n == LANES && d + LANES <= k->D; d += LANES) {
        vec v[LANES];
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++)
            v[i] = *(const vec *)(x + i * row + d);
        transpose(v);
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++)
            *(vec *)(to + (d + i) * k->s_pad) = v[i];
    }
    for (; d < k->D; d++) {
        float *restrict y = to + d * k->s_pad;
        for (int64_t j = 0; j < n; j++)
            y[j] = x[j * row + d * step];
        for (int64_t j = n; j < LANES; j++)
            y[j] = 0;
    }
}

/* [S] rows become [D][s_pad], zeros behind. ROWS: scratch for LANES of them. */
static void
pack_transposed(const struct sdpa_kernel *k, float *to, const void *plane,
                enum operand o, float *rows)
{
    for (int64_t j = 0; j < k->S; j += LANES) {
        int64_t n = k->S - j < LANES ? k->S - j : LANES;
        if (k->type == ET_F32) {
            transpose_rows(k, to + j, (const float *)plane + j * k->stride[o][2],
                           k->stride[o][2], k->stride[o][3], n);
        } else {
            pack(k, rows, plane, o, j, n);
            transpose_rows(k, to + j, rows, k->d_pad, 1, n);
        }
    }
}

/* Rows back into a result, divided by their DIVISOR where there are some. FROM is
 * spent. */
static void
unpack(const struct sdpa_kernel *k, void *plane, enum operand o, float *from,
       int64_t first, int64_t n, const float *divisor)
{
    for (int64_t i = 0; i < n; i++)
        store_row(element(plane, (first + i) * k->stride[o][2], k->type),
                  k->stride[o][3], from + i * k->d_pad, k->D,
                  divisor ? 1 / divisor[i] : 1, k->type);
}

#endif
