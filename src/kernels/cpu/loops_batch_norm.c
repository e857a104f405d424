/* loops_batch_norm.c: batch normalisation of channels-last arrays, and its gradient.
 *
 *   y  = a x + b (+ residual), a = gamma/sqrt(v + eps), b = beta - a m; through relu
 *   dx = a (g - mean(g) - (x - m) mean(g (x - m))/(v + eps)), g = dy where y > 0
 *
 * Ioffe and Szegedy, arXiv:1502.03167. The array is one row of pixels of C channels,
 * walked in rows of WIDTH floats: some whole pixels, so that channels repeat at the
 * same places and a row has many independent vectors. Sums run in f32 over a block that
 * stays in the first caches and go on in doubles; a block's squares are summed about
 * its own mean in a second look at it and joined as by Chan, Golub and LeVeque (1979),
 * so a mean far from zero costs no digits. Threads' sums are joined in order. Other
 * layouts are copied first.
 *
 * Memory: forward reads x twice and writes y once; backward reads dy, x (and y) twice
 * and writes dx once. The second pass runs backwards, over what is still in cache. */
#include <math.h>
#include <string.h>

#include "kernels/cpu/loops_arrays.h"

#define MIN_WIDTH    256  /* floats: 16 vectors hide the latency of their sums */
#define BLOCK_FLOATS 8192 /* 32 KiB */
#define MIN_BLOCK    16   /* rows: what a block costs besides is small then */

struct batch_kernel {
    struct et_kernel base;
    struct arrays arrays;
    int64_t count, channels, width, rows, block; /* floats, floats, rows, rows */
    double eps;
    bool relu;
    int pieces;
    size_t coefficients;      /* in the workspace: 4 rows of WIDTH floats */
    size_t parts, part_bytes; /* per piece: 2 doubles a channel, 3 rows of floats */
};

/* A piece's sums and scratch. */
struct part {
    double *first, *second; /* forward: mean, squares about it; backward: sums */
    float *row[3];
};

static struct part
part_of(const struct batch_kernel *k, void *ws, int piece)
{
    char *p = (char *)ws + k->parts + (size_t)piece * k->part_bytes;
    double *sums = (double *)p;
    float *row = (float *)(p + etk_round_up((size_t)k->channels * 2 * sizeof(double)));
    return (struct part){
        .first = sums,
        .second = sums + k->channels,
        .row = {row, row + k->width, row + 2 * k->width},
    };
}

static float *
coefficient(const struct batch_kernel *k, void *ws, int which)
{
    return (float *)((char *)ws + k->coefficients) + which * k->width;
}

/* The piece's floats begin and end here. */
static void
bounds(const struct batch_kernel *k, int piece, int64_t *begin, int64_t *end)
{
    *begin = k->rows * piece / k->pieces * k->width;
    *end = k->rows * (piece + 1) / k->pieces * k->width;
    *end = *end < k->count ? *end : k->count;
}

/* Sums over the pixels of a row: what a channel has at its first place. */
static void
fold(float *row, int64_t width, int64_t channels)
{
    for (int64_t at = channels; at < width; at += channels)
        for (int64_t c = 0; c < channels; c++)
            row[c] += row[at + c];
}

/* Every pixel of the row gets what the first one has. */
static void
spread(float *row, int64_t width, int64_t channels)
{
    for (int64_t at = channels; at < width; at++)
        row[at] = row[at - channels];
}

/* ---- forward ---- */

static void
add_rows(float *restrict sum, const float *restrict x, int64_t n, int64_t width)
{
    memset(sum, 0, (size_t)width * sizeof *sum);
    for (int64_t at = 0; at < n; at += width) {
        int64_t m = n - at < width ? n - at : width;
        for (int64_t i = 0; i < m; i++)
            sum[i] += x[at + i];
    }
}

static void
add_squares(float *restrict sum, const float *restrict x, const float *restrict mean,
            int64_t n, int64_t width)
{
    memset(sum, 0, (size_t)width * sizeof *sum);
    for (int64_t at = 0; at < n; at += width) {
        int64_t m = n - at < width ? n - at : width;
        for (int64_t i = 0; i < m; i++) {
            float d = x[at + i] - mean[i];
            sum[i] += d * d;
        }
    }
}

/* N pixels with MEAN and SQUARES join those that the part already HAS. */
static void
join(struct part *p, double has, const float *restrict mean,
     const float *restrict squares, double n, int64_t channels)
{
    double *restrict first = p->first, *restrict second = p->second;
    double share = n / (has + n), weight = has * share;
    for (int64_t c = 0; c < channels; c++) {
        double d = (double)mean[c] - first[c];
        first[c] += d * share;
        second[c] += (double)squares[c] + d * d * weight;
    }
}

static void
piece_statistics(const struct batch_kernel *k, const float *x, struct part p, int piece)
{
    int64_t begin, end, step = k->block * k->width;
    bounds(k, piece, &begin, &end);
    memset(p.first, 0, (size_t)k->channels * 2 * sizeof(double));
    for (int64_t at = begin; at < end; at += step) {
        int64_t n = end - at < step ? end - at : step;
        int64_t pixels = n / k->channels;
        float *mean = p.row[0], *squares = p.row[1];
        add_rows(mean, x + at, n, k->width);
        fold(mean, k->width, k->channels);
        for (int64_t c = 0; c < k->channels; c++)
            mean[c] /= (float)pixels;
        spread(mean, k->width, k->channels);
        add_squares(squares, x + at, mean, n, k->width);
        fold(squares, k->width, k->channels);
        join(&p, (double)(at - begin) / (double)k->channels, mean, squares,
             (double)pixels, k->channels);
    }
}

/* All pieces into the first, in order. */
static void
join_pieces(const struct batch_kernel *k, void *ws)
{
    struct part all = part_of(k, ws, 0);
    int64_t begin, end;
    bounds(k, 0, &begin, &end);
    double has = (double)end;
    for (int piece = 1; piece < k->pieces; piece++) {
        struct part p = part_of(k, ws, piece);
        bounds(k, piece, &begin, &end);
        double n = (double)(end - begin), share = n / (has + n);
        for (int64_t c = 0; c < k->channels; c++) {
            double d = p.first[c] - all.first[c];
            all.first[c] += d * share;
            all.second[c] += p.second[c] + d * d * share * has / (double)k->channels;
        }
        has += n;
    }
}

static void
settle_forward(const struct batch_kernel *k, const struct bound *b, void *ws)
{
    const float *gamma = b->in[1], *beta = b->in[2];
    float *mean = b->out[1], *var = b->out[2];
    float *scale = coefficient(k, ws, 0), *shift = coefficient(k, ws, 1);
    struct part all = part_of(k, ws, 0);
    double pixels = (double)k->count / (double)k->channels;
    join_pieces(k, ws);
    for (int64_t c = 0; c < k->channels; c++) {
        double v = all.second[c] / pixels;
        scale[c] = (float)((gamma ? (double)gamma[c] : 1) / sqrt(v + k->eps));
        shift[c] = (float)((beta ? (double)beta[c] : 0) - scale[c] * all.first[c]);
        if (mean)
            mean[c] = (float)all.first[c];
        if (var)
            var[c] = (float)v;
    }
    spread(scale, k->width, k->channels);
    spread(shift, k->width, k->channels);
}

/* In these loops every load is unconditional and every choice a constant of the inlined
 * copy: that is what the vectoriser needs. Absent arrays alias one that is there. */
static inline __attribute__((always_inline)) void
normalise_row(float *restrict y, const float *restrict x, const float *restrict scale,
              const float *restrict shift, const float *residual, int64_t n,
              const bool adds, const bool relu)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float v = x[i] * scale[i] + shift[i];
        if (adds)
            v += residual[i];
        y[i] = relu && v < 0 ? 0 : v;
    }
}

static void
normalise(const struct batch_kernel *k, const struct bound *b, void *ws, int piece)
{
    const float *x = b->in[0], *residual = b->in[3];
    const float *scale = coefficient(k, ws, 0), *shift = coefficient(k, ws, 1);
    float *y = b->out[0];
    int64_t begin, end, w = k->width;
    bounds(k, piece, &begin, &end);
    for (int64_t at = begin + (end - begin - 1) / w * w; at >= begin; at -= w) {
        int64_t n = end - at < w ? end - at : w;
        if (residual && k->relu)
            normalise_row(y + at, x + at, scale, shift, residual + at, n, true, true);
        else if (residual)
            normalise_row(y + at, x + at, scale, shift, residual + at, n, true, false);
        else if (k->relu)
            normalise_row(y + at, x + at, scale, shift, x, n, false, true);
        else
            normalise_row(y + at, x + at, scale, shift, x, n, false, false);
    }
}

static et_status
run_forward(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    const struct batch_kernel *k = (const struct batch_kernel *)kernel;
    struct bound b = arrays_bind(&k->arrays, ptr, ws);
#pragma omp parallel num_threads(k->pieces) if (k->pieces > 1)
    {
#pragma omp for schedule(static)
        for (int piece = 0; piece < k->pieces; piece++)
            piece_statistics(k, b.in[0], part_of(k, ws, piece), piece);
#pragma omp single
        settle_forward(k, &b, ws);
#pragma omp for schedule(static)
        for (int piece = 0; piece < k->pieces; piece++)
            if (b.out[0])
                normalise(k, &b, ws, piece);
    }
    arrays_flush(&k->arrays, ptr, ws);
    return ET_OK;
}

/* ---- backward ---- */

static inline __attribute__((always_inline)) void
add_gradients(float *restrict sum, float *restrict product, const float *restrict dy,
              const float *restrict x, const float *y, const float *restrict mean,
              int64_t n, int64_t width, const bool relu)
{
    for (int64_t at = 0; at < n; at += width) {
        int64_t m = n - at < width ? n - at : width;
#pragma omp simd
        for (int64_t i = 0; i < m; i++) {
            float d = dy[at + i], g = !relu || y[at + i] > 0 ? d : 0;
            sum[i] += g;
            product[i] += g * (x[at + i] - mean[i]);
        }
    }
}

static void
piece_gradients(const struct batch_kernel *k, const struct bound *b, struct part p,
                const float *mean, int piece)
{
    const float *dy = b->in[0], *x = b->in[1], *y = b->in[5];
    int64_t begin, end, step = k->block * k->width;
    bounds(k, piece, &begin, &end);
    memset(p.first, 0, (size_t)k->channels * 2 * sizeof(double));
    for (int64_t at = begin; at < end; at += step) {
        int64_t n = end - at < step ? end - at : step;
        memset(p.row[0], 0, (size_t)k->width * 2 * sizeof(float));
        if (k->relu)
            add_gradients(p.row[0], p.row[1], dy + at, x + at, y + at, mean, n,
                          k->width, true);
        else
            add_gradients(p.row[0], p.row[1], dy + at, x + at, x, mean, n, k->width,
                          false);
        fold(p.row[0], k->width, k->channels);
        fold(p.row[1], k->width, k->channels);
        for (int64_t c = 0; c < k->channels; c++) {
            p.first[c] += (double)p.row[0][c];
            p.second[c] += (double)p.row[1][c];
        }
    }
}

/* dx = scale g + slope (x - mean) + shift */
static void
settle_backward(const struct batch_kernel *k, const struct bound *b, void *ws)
{
    const float *gamma = b->in[2], *var = b->in[4];
    float *dgamma = b->out[1], *dbeta = b->out[2];
    float *scale = coefficient(k, ws, 1), *slope = coefficient(k, ws, 2),
          *shift = coefficient(k, ws, 3);
    double pixels = (double)k->count / (double)k->channels;
    for (int64_t c = 0; c < k->channels; c++) {
        double sum = 0, product = 0, rstd = 1 / sqrt((double)var[c] + k->eps);
        for (int piece = 0; piece < k->pieces; piece++) {
            sum += part_of(k, ws, piece).first[c];
            product += part_of(k, ws, piece).second[c];
        }
        double a = (gamma ? (double)gamma[c] : 1) * rstd;
        scale[c] = (float)a;
        slope[c] = (float)(-a * rstd * rstd * product / pixels);
        shift[c] = (float)(-a * sum / pixels);
        if (dgamma)
            dgamma[c] = (float)(product * rstd);
        if (dbeta)
            dbeta[c] = (float)sum;
    }
    spread(scale, k->width, k->channels);
    spread(slope, k->width, k->channels);
    spread(shift, k->width, k->channels);
}

struct gradient_rows {
    float *dx, *dresidual;
    const float *dy, *x, *y;
    const float *mean, *scale, *slope, *shift;
};

static inline __attribute__((always_inline)) void
gradient_row(const struct gradient_rows *r, int64_t at, int64_t n, const bool has_dx,
             const bool has_dresidual, const bool relu)
{
    /* dx may be dy: each element is read before it is written. */
    float *dx = r->dx + at, *dresidual = r->dresidual + at;
    const float *dy = r->dy + at, *x = r->x + at, *y = r->y + at;
    const float *restrict mean = r->mean, *restrict scale = r->scale;
    const float *restrict slope = r->slope, *restrict shift = r->shift;
#pragma omp simd
    for (int64_t i = 0; i < n; i++) {
        float d = dy[i], g = !relu || y[i] > 0 ? d : 0;
        if (has_dx)
            dx[i] = scale[i] * g + (slope[i] * (x[i] - mean[i]) + shift[i]);
        if (has_dresidual)
            dresidual[i] = g;
    }
}

static void
gradients(const struct batch_kernel *k, const struct bound *b, void *ws, int piece)
{
    const float *mean = coefficient(k, ws, 0);
    bool has_dx = b->out[0] != NULL, has_dresidual = b->out[3] != NULL;
    float *any = has_dx ? b->out[0] : b->out[3];
    const struct gradient_rows r = {
        .dx = has_dx ? b->out[0] : any,
        .dresidual = has_dresidual ? b->out[3] : any,
        .dy = b->in[0],
        .x = b->in[1],
        .y = k->relu ? b->in[5] : b->in[1],
        .mean = mean,
        .scale = mean + k->width,
        .slope = mean + 2 * k->width,
        .shift = mean + 3 * k->width,
    };
    int64_t begin, end, w = k->width;
    bounds(k, piece, &begin, &end);
    if (!any)
        return;
    for (int64_t at = begin + (end - begin - 1) / w * w; at >= begin; at -= w) {
        int64_t n = end - at < w ? end - at : w;
        if (has_dx && has_dresidual && k->relu)
            gradient_row(&r, at, n, true, true, true);
        else if (has_dx && has_dresidual)
            gradient_row(&r, at, n, true, true, false);
        else if (has_dx && k->relu)
            gradient_row(&r, at, n, true, false, true);
        else if (has_dx)
            gradient_row(&r, at, n, true, false, false);
        else if (k->relu)
            gradient_row(&r, at, n, false, true, true);
        else
            gradient_row(&r, at, n, false, true, false);
    }
}

static et_status
run_backward(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    const struct batch_kernel *k = (const struct batch_kernel *)kernel;
    struct bound b = arrays_bind(&k->arrays, ptr, ws);
    float *mean = coefficient(k, ws, 0);
    memcpy(mean, b.in[3], (size_t)k->channels * sizeof *mean);
    spread(mean, k->width, k->channels);
#pragma omp parallel num_threads(k->pieces) if (k->pieces > 1)
    {
#pragma omp for schedule(static)
        for (int piece = 0; piece < k->pieces; piece++)
            piece_gradients(k, &b, part_of(k, ws, piece), mean, piece);
#pragma omp single
        settle_backward(k, &b, ws);
#pragma omp for schedule(static)
        for (int piece = 0; piece < k->pieces; piece++)
            gradients(k, &b, ws, piece);
    }
    arrays_flush(&k->arrays, ptr, ws);
    return ET_OK;
}

/* ---- preparing ---- */

/* Pixels of a row: enough for MIN_WIDTH floats, and whole vectors of 16. */
static int64_t
pixels_of_row(int64_t channels)
{
    int64_t whole = 16;
    while (whole > 1 && channels * whole / 2 % 16 == 0)
        whole /= 2;
    int64_t pixels = (MIN_WIDTH + channels * whole - 1) / (channels * whole) * whole;
    return channels >= MIN_WIDTH ? 1 : pixels;
}

/* Axis 1 fastest, then the last axis, and so on. */
static struct et_desc
channels_last(const struct et_desc *x)
{
    struct et_desc d = *x;
    int64_t stride = d.shape[1];
    d.stride[1] = 1;
    for (int i = d.ndim - 1; i >= 0; i--) {
        if (i == 1)
            continue;
        d.stride[i] = stride;
        stride *= d.shape[i];
    }
    return d;
}

et_status
ETK_NAME(etk_prepare_batch_norm)(struct et_device_handle *d, const struct et_call *call,
                                 struct et_kernel **out, size_t *ws, char *why,
                                 size_t why_size)
{
    const struct et_norm_attr *o = call->attr;
    bool grad = call->op == ET_OP_batch_norm_grad;
    ET_TRY(arrays_need_f32(call, -1, why, why_size));
    struct batch_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    struct et_desc x = channels_last(&call->in[grad]);
    arrays_init(&k->arrays, call, &x, ws);
    k->eps = o->eps;
    k->relu = o->relu;
    k->count = et_desc_count(&x);
    k->channels = x.shape[1];
    k->width = pixels_of_row(k->channels) * k->channels;
    k->rows = (k->count + k->width - 1) / k->width;
    k->block =
        BLOCK_FLOATS / k->width > MIN_BLOCK ? BLOCK_FLOATS / k->width : MIN_BLOCK;
    k->pieces = pieces_for(d, k->count, k->rows);
    k->part_bytes = etk_round_up((size_t)k->channels * 2 * sizeof(double)) +
                    etk_round_up((size_t)k->width * 3 * sizeof(float));
    k->coefficients = reserve(ws, (size_t)k->width * 4 * sizeof(float));
    k->parts = reserve(ws, (size_t)k->pieces * k->part_bytes);
    k->base.run = grad ? run_backward : run_forward;
    k->base.what = grad ? "loop:batch_norm_grad" : "loop:batch_norm";
    *out = &k->base;
    return ET_OK;
}
