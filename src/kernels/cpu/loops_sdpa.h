/* SPDX-License-Identifier: Apache-2.0 */
/* loops_sdpa.h: attention's operands (loops_sdpa.c), and their rows as products take
 * them: packed, padded to whole vectors, transposed. */
#ifndef ETUDE_KERNELS_CPU_LOOPS_SDPA_H
#define ETUDE_KERNELS_CPU_LOOPS_SDPA_H

#include "kernels/cpu/loops_product.h"

#define TILE ETK_SDPA_QUERIES

typedef int32_t shuffle __attribute__((vector_size(4 * LANES)));

enum operand { Q, K, V, O, DO, DQ, DK, DV, OPERANDS };

struct sdpa_kernel {
    struct et_kernel base;
    int64_t B, H, T, S, D;
    int64_t d_pad, s_pad;        /* up to whole vectors */
    int64_t stride[OPERANDS][4]; /* of b, h, position, element */
    int64_t lse[3], bias[4];     /* strides; 0 repeats */
    int n_in;
    float scale;
    bool causal, biased, wants[3]; /* backward: dq, dk, dv */
    int pieces;
    size_t bytes; /* of the workspace, per piece */
};

/* Where run finds them. */
struct arrays {
    float *p[OPERANDS], *lse;
    const float *bias;
};

/* A piece's packed operands and sums. */
struct scratch {
    float *k, *v, *kt, *vt; /* [S][d_pad], transposed [D][s_pad] */
    float *dk, *dv;         /* [S][d_pad] */
    float *q, *out, *grad;  /* [TILE][d_pad]: q; o or dq; do */
    float *s, *ds;          /* [TILE][s_pad] */
    float *delta;           /* [TILE]: do . o */
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
        {&x->k, k->S * k->d_pad, grad},    {&x->v, k->S * k->d_pad, !grad},
        {&x->kt, k->D * k->s_pad, true},   {&x->vt, k->D * k->s_pad, grad},
        {&x->dk, k->S * k->d_pad, grad},   {&x->dv, k->S * k->d_pad, grad},
        {&x->q, TILE * k->d_pad, true},    {&x->out, TILE * k->d_pad, true},
        {&x->grad, TILE * k->d_pad, grad}, {&x->s, TILE * k->s_pad, true},
        {&x->ds, TILE * k->s_pad, grad},   {&x->delta, TILE, grad},
    };
    int64_t at = 0;
    for (size_t i = 0; i < sizeof part / sizeof part[0]; i++) {
        *part[i].at = p && part[i].needed ? p + at : NULL;
        at += part[i].needed ? (part[i].n + 15) / 16 * 16 : 0;
    }
    return at;
}

static float *
plane_of(const struct sdpa_kernel *k, const struct arrays *x, enum operand o,
         int64_t plane)
{
    return x->p[o] + plane / k->H * k->stride[o][0] + plane % k->H * k->stride[o][1];
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

/* Rows FROM .. FROM + N - 1 of an operand, zeros behind. */
static void
pack(const struct sdpa_kernel *k, float *to, const float *plane, enum operand o,
     int64_t from, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float *row = to + i * k->d_pad;
        scale_row(row, 1, plane + (from + i) * k->stride[o][2], k->stride[o][3], k->D,
                  1);
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
    return k->stride[o][3] == 1 && k->D == k->d_pad;
}

/* Rows FROM .. FROM + N - 1 of an operand: where they lie if they will do, else in
 * TO. */
static struct rows
rows_of(const struct sdpa_kernel *k, float *to, const float *plane, enum operand o,
        int64_t from, int64_t n)
{
    int64_t stride = k->stride[o][2];
    if (is_whole_vectors(k, o))
        return (struct rows){plane + from * stride, stride};
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

/* [S] rows become [D][s_pad], zeros behind. */
static void
pack_transposed(const struct sdpa_kernel *k, float *restrict to, const float *plane,
                enum operand o)
{
    int64_t row = k->stride[o][2], step = k->stride[o][3];
    for (int64_t j0 = 0; j0 < k->S; j0 += LANES) {
        int64_t end = j0 + LANES < k->S ? j0 + LANES : k->S, d = 0;
        for (; step == 1 && j0 + LANES <= k->S && d + LANES <= k->D; d += LANES) {
            vec x[LANES];
#pragma GCC unroll 16
            for (int i = 0; i < LANES; i++)
                x[i] = *(const vec *)(plane + (j0 + i) * row + d);
            transpose(x);
#pragma GCC unroll 16
            for (int i = 0; i < LANES; i++)
                *(vec *)(to + (d + i) * k->s_pad + j0) = x[i];
        }
        for (; d < k->D; d++) {
            float *restrict y = to + d * k->s_pad;
            const float *restrict x = plane + d * step;
            for (int64_t j = j0; j < end; j++)
                y[j] = x[j * row];
            for (int64_t j = end; j < j0 + LANES; j++)
                y[j] = 0;
        }
    }
}

/* Rows back into a result, divided by their DIVISOR where there are some. */
static void
unpack(const struct sdpa_kernel *k, float *plane, enum operand o, const float *from,
       int64_t first, int64_t n, const float *divisor)
{
    for (int64_t i = 0; i < n; i++)
        scale_row(plane + (first + i) * k->stride[o][2], k->stride[o][3],
                  from + i * k->d_pad, 1, k->D, divisor ? 1 / divisor[i] : 1);
}

#endif
