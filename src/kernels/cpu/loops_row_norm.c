/* loops_row_norm.c: layer and group normalisation, and their gradients.
 *
 *   y  = gamma x^ + beta, x^ = (x - mean) rstd, over a row of SIZE neighbours
 *   dx = rstd (g - mean(g) - x^ mean(g x^)), g = gamma dy
 *   dgamma = sum of dy x^, dbeta = sum of dy, over all rows
 *
 * A row is the last axes of a position (layer norm; Ba et al., arXiv:1607.06450), each
 * element with its gamma, or a group of channels of a sample (group norm; Wu and He,
 * arXiv:1803.08494), where REPEAT neighbours share one. The passes over a row find it
 * in the first cache. Threads take ranges of rows and keep sums of dgamma and dbeta, in
 * f32 over some rows and in doubles beyond, which are added in order. Reads and writes
 * each array once. */
#include <math.h>

#include "kernels/cpu/loops_arrays.h"

#define SUM_BLOCK 2048 /* floats summed in f32, 128 per lane */
#define SUM_ROWS  64   /* rows whose dgamma is summed in f32 */

struct row_kernel {
    struct et_kernel base;
    struct arrays arrays;
    int64_t count, size, groups, repeat; /* rows, floats, rows of a sample, floats */
    int64_t channels;                    /* gammas */
    double eps;
    int pieces;
    size_t ones, zeros; /* in the workspace: for a gamma or beta left out */
    size_t parts, part_bytes;
};

static double
sum_of(const float *x, int64_t n)
{
    double total = 0;
    for (int64_t at = 0; at < n; at += SUM_BLOCK) {
        int64_t end = n - at < SUM_BLOCK ? n : at + SUM_BLOCK;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = at; i < end; i++)
            sum += x[i];
        total += (double)sum;
    }
    return total;
}

static double
squares_about(const float *x, float mean, int64_t n)
{
    double total = 0;
    for (int64_t at = 0; at < n; at += SUM_BLOCK) {
        int64_t end = n - at < SUM_BLOCK ? n : at + SUM_BLOCK;
        float sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = at; i < end; i++)
            sum += (x[i] - mean) * (x[i] - mean);
        total += (double)sum;
    }
    return total;
}

/* The first gamma of a row. */
static int64_t
first_channel(const struct row_kernel *k, int64_t row)
{
    return row % k->groups * (k->size / k->repeat);
}

/* ---- forward ---- */

static void
normalise_row(const struct row_kernel *k, float *restrict y, const float *restrict x,
              const float *restrict gamma, const float *restrict beta, float mean,
              float rstd)
{
    if (k->repeat == 1) {
#pragma omp simd
        for (int64_t i = 0; i < k->size; i++)
            y[i] = (x[i] - mean) * rstd * gamma[i] + beta[i];
        return;
    }
    for (int64_t c = 0; c < k->size / k->repeat; c++) {
        float scale = rstd * gamma[c], shift = beta[c];
#pragma omp simd
        for (int64_t i = c * k->repeat; i < (c + 1) * k->repeat; i++)
            y[i] = (x[i] - mean) * scale + shift;
    }
}

static void
forward_row(const struct row_kernel *k, const struct bound *b, int64_t row)
{
    const float *x = (const float *)b->in[0] + row * k->size;
    float *y = b->out[0], *means = b->out[1], *rstds = b->out[2];
    float mean = (float)(sum_of(x, k->size) / (double)k->size);
    double var = squares_about(x, mean, k->size) / (double)k->size;
    float rstd = (float)(1 / sqrt(var + k->eps));
    int64_t c = first_channel(k, row);
    if (y)
        normalise_row(k, y + row * k->size, x, (const float *)b->in[1] + c,
                      (const float *)b->in[2] + c, mean, rstd);
    if (means)
        means[row] = mean;
    if (rstds)
        rstds[row] = rstd;
}

/* A VALUE per channel, at AT in the workspace. */
static const float *
constant(const struct row_kernel *k, void *ws, size_t at, float value)
{
    float *p = (float *)((char *)ws + at);
    for (int64_t c = 0; c < k->channels; c++)
        p[c] = value;
    return p;
}

static et_status
run_forward(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    const struct row_kernel *k = (const struct row_kernel *)kernel;
    struct bound b = arrays_bind(&k->arrays, ptr, ws);
    if (!b.in[1])
        b.in[1] = constant(k, ws, k->ones, 1);
    if (!b.in[2])
        b.in[2] = constant(k, ws, k->zeros, 0);
#pragma omp parallel for schedule(static) num_threads(k->pieces) if (k->pieces > 1)
    for (int64_t row = 0; row < k->count; row++)
        forward_row(k, &b, row);
    arrays_flush(&k->arrays, ptr, ws);
    return ET_OK;
}

/* ---- backward ---- */

/* A piece's sums for dgamma and dbeta. */
struct part {
    float *dgamma, *dbeta; /* of the rows at hand */
    double *all_dgamma, *all_dbeta;
};

static struct part
part_of(const struct row_kernel *k, void *ws, int piece)
{
    char *p = (char *)ws + k->parts + (size_t)piece * k->part_bytes;
    double *all = (double *)(p + k->part_bytes / 3);
    return (struct part){
        .dgamma = (float *)p,
        .dbeta = (float *)p + k->channels,
        .all_dgamma = all,
        .all_dbeta = all + k->channels,
    };
}

/* What a row's dx needs: sums of g and of g x^. */
struct sums {
    float g, product;
};

static struct sums
add_row(const float *restrict dy, const float *restrict x, const float *restrict gamma,
        float *restrict dgamma, float *restrict dbeta, float mean, float rstd,
        int64_t n)
{
    float sum = 0, product = 0;
#pragma omp simd reduction(+ : sum, product)
    for (int64_t i = 0; i < n; i++) {
        float xhat = (x[i] - mean) * rstd, g = dy[i] * gamma[i];
        sum += g;
        product += g * xhat;
        dgamma[i] += dy[i] * xhat;
        dbeta[i] += dy[i];
    }
    return (struct sums){sum, product};
}

/* Channels of REPEAT floats. */
static struct sums
add_channels(const struct row_kernel *k, const float *restrict dy,
             const float *restrict x, const float *gamma, float *dgamma, float *dbeta,
             float mean, float rstd)
{
    double all = 0, all_products = 0;
    for (int64_t c = 0; c < k->size / k->repeat; c++) {
        float sum = 0, product = 0;
#pragma omp simd reduction(+ : sum, product)
        for (int64_t i = c * k->repeat; i < (c + 1) * k->repeat; i++) {
            sum += dy[i];
            product += dy[i] * ((x[i] - mean) * rstd);
        }
        dgamma[c] += product;
        dbeta[c] += sum;
        all += (double)(gamma[c] * sum);
        all_products += (double)(gamma[c] * product);
    }
    return (struct sums){(float)all, (float)all_products};
}

static void
gradient_row(const struct row_kernel *k, float *restrict dx, const float *restrict dy,
             const float *restrict x, const float *restrict gamma, struct sums s,
             float mean, float rstd)
{
    float slope = s.product / (float)k->size, shift = s.g / (float)k->size;
    if (k->repeat == 1) {
#pragma omp simd
        for (int64_t i = 0; i < k->size; i++)
            dx[i] = rstd * (dy[i] * gamma[i] - shift - (x[i] - mean) * rstd * slope);
        return;
    }
    for (int64_t c = 0; c < k->size / k->repeat; c++)
#pragma omp simd
        for (int64_t i = c * k->repeat; i < (c + 1) * k->repeat; i++)
            dx[i] = rstd * (dy[i] * gamma[c] - shift - (x[i] - mean) * rstd * slope);
}

static void
flush_rows(const struct row_kernel *k, struct part p)
{
    for (int64_t c = 0; c < k->channels; c++) {
        p.all_dgamma[c] += (double)p.dgamma[c];
        p.all_dbeta[c] += (double)p.dbeta[c];
    }
    memset(p.dgamma, 0, (size_t)k->channels * 2 * sizeof *p.dgamma);
}

static void
backward_rows(const struct row_kernel *k, const struct bound *b, struct part p,
              int64_t from, int64_t to)
{
    const float *means = b->in[3], *rstds = b->in[4];
    memset(p.dgamma, 0, k->part_bytes);
    for (int64_t row = from; row < to; row++) {
        const float *dy = (const float *)b->in[0] + row * k->size;
        const float *x = (const float *)b->in[1] + row * k->size;
        float *dx = b->out[0], mean = means[row], rstd = rstds[row];
        int64_t c = first_channel(k, row);
        const float *gamma = (const float *)b->in[2] + c;
        struct sums s =
            k->repeat == 1
                ? add_row(dy, x, gamma, p.dgamma + c, p.dbeta + c, mean, rstd, k->size)
                : add_channels(k, dy, x, gamma, p.dgamma + c, p.dbeta + c, mean, rstd);
        if (dx)
            gradient_row(k, dx + row * k->size, dy, x, gamma, s, mean, rstd);
        if ((row - from) % SUM_ROWS == SUM_ROWS - 1 || row == to - 1)
            flush_rows(k, p);
    }
}

static et_status
run_backward(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    const struct row_kernel *k = (const struct row_kernel *)kernel;
    struct bound b = arrays_bind(&k->arrays, ptr, ws);
    if (!b.in[2])
        b.in[2] = constant(k, ws, k->ones, 1);
#pragma omp parallel for schedule(static) num_threads(k->pieces) if (k->pieces > 1)
    for (int piece = 0; piece < k->pieces; piece++)
        backward_rows(k, &b, part_of(k, ws, piece), k->count * piece / k->pieces,
                      k->count * (piece + 1) / k->pieces);
    for (int which = 0; which < 2; which++) {
        float *to = b.out[1 + which];
        for (int64_t c = 0; to && c < k->channels; c++) {
            double sum = 0;
            for (int piece = 0; piece < k->pieces; piece++)
                sum += part_of(k, ws, piece).all_dgamma[which * k->channels + c];
            to[c] = (float)sum;
        }
    }
    arrays_flush(&k->arrays, ptr, ws);
    return ET_OK;
}

/* ---- preparing ---- */

static void
set_rows(struct row_kernel *k, const struct et_desc *x, const struct et_norm_attr *o,
         bool group)
{
    k->groups = k->repeat = k->size = 1;
    for (int i = group ? 2 : x->ndim - o->axes; i < x->ndim; i++)
        *(group ? &k->repeat : &k->size) *= x->shape[i];
    if (group) {
        k->groups = o->groups;
        k->size = x->shape[1] / o->groups * k->repeat;
    }
    k->count = k->size > 0 ? et_desc_count(x) / k->size : 0;
    k->channels = k->repeat > 0 ? k->groups * k->size / k->repeat : 0;
}

et_status
ETK_NAME(etk_prepare_row_norm)(struct et_device_handle *d, const struct et_call *call,
                               struct et_kernel **out, size_t *ws, char *why,
                               size_t why_size)
{
    bool grad = call->op == ET_OP_layer_norm_grad || call->op == ET_OP_group_norm_grad;
    bool group = call->op == ET_OP_group_norm || call->op == ET_OP_group_norm_grad;
    const struct et_norm_attr *o = call->attr;
    ET_TRY(arrays_need_f32(call, -1, why, why_size));
    struct row_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    struct et_desc x = row_major(&call->in[grad]);
    arrays_init(&k->arrays, call, &x, ws);
    set_rows(k, &x, o, group);
    k->eps = o->eps;
    k->pieces = pieces_for(d, et_desc_count(&x), k->count);
    k->ones = reserve(ws, (size_t)k->channels * sizeof(float));
    k->zeros = reserve(ws, (size_t)k->channels * sizeof(float));
    /* Two floats, then two doubles a channel. */
    k->part_bytes = etk_round_up((size_t)k->channels * 2 * sizeof(float)) * 3;
    k->parts = reserve(ws, (size_t)k->pieces * k->part_bytes);
    k->base.run = grad ? run_backward : run_forward;
    k->base.what = group ? "loop:group_norm" : "loop:layer_norm";
    *out = &k->base;
    return ET_OK;
}
