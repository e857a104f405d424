/* SPDX-License-Identifier: Apache-2.0 */
/* loops_row_norm.c: layer and group normalisation, and their gradients.
 *
 *   y  = gamma x^ + beta, x^ = (x - mean) rstd, over a row of SIZE neighbours
 *   dx = rstd (g - mean(g) - x^ mean(g x^)), g = gamma dy
 *   dgamma = sum of dy x^, dbeta = sum of dy, over all rows
 *
 * A row is the last axes of a position (layer norm; Ba et al., arXiv:1607.06450), each
 * element with its gamma, or a group of channels of a sample (group norm; Wu and He,
 * arXiv:1803.08494), where REPEAT neighbours share one. Layer norm may be of a sum, x +
 * residual, which is stored too, and its dx be added to the gradient that the sum has
 * besides, dsum.
 *
 * The passes over a row find it in the first cache. Rows in bf16 and f16 are widened
 * there, and rounded where they are stored, so that a number is the one that a
 * kernel for each step would give. Threads take ranges of rows and keep sums of dgamma
 * and dbeta, in f32 over some rows and in doubles beyond, which are added in order.
 * Reads and writes each array once. */
#include <math.h>

#include "kernels/cpu/loops_arrays.h"
#include "kernels/cpu/loops_convert.h"
#include "kernels/cpu/tiles.h"

#define SUM_BLOCK ETK_ROW_SUM
#define SUM_ROWS  ETK_ROW_ROWS /* of which dgamma is summed */
#define BUFFERS   4            /* rows that a piece may have widened at once */

struct row_kernel {
    struct et_kernel base;
    struct arrays arrays;
    enum et_dtype in[ARRAYS_MAX_IN], out[ARRAYS_MAX_OUT]; /* dtypes */
    int64_t count, size, groups, repeat; /* rows, floats, rows of a sample, floats */
    int64_t channels;                    /* gammas */
    double eps;
    int pieces;
    size_t gammas, betas; /* in the workspace: for those left out, and narrow ones */
    size_t rows, row_bytes;
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

/* ---- rows of any dtype ---- */

static const void *
row_at(const struct row_kernel *k, const void *array, enum et_dtype dtype, int64_t row)
{
    return (const char *)array + (size_t)(row * k->size) * et_dtype_size(dtype);
}

/* Row ROW of operand I in f32: where it lies, or in BUFFER. */
static const float *
read_row(const struct row_kernel *k, const struct bound *b, int i, int64_t row,
         float *buffer)
{
    const void *p = row_at(k, b->in[i], k->in[i], row);
    if (k->in[i] == ET_F32)
        return p;
    etk_loads[k->in[i]][0](buffer, p, 1, k->size);
    return buffer;
}

/* Where to compute row ROW of result I: where it lies, or in BUFFER. */
static float *
begin_row(const struct row_kernel *k, const struct bound *b, int i, int64_t row,
          float *buffer)
{
    bool there = b->out[i] && k->out[i] == ET_F32;
    return there ? (float *)b->out[i] + row * k->size : buffer;
}

/* V is row ROW of result I, if that is wanted. */
static void
write_row(const struct row_kernel *k, const struct bound *b, int i, int64_t row,
          const float *v)
{
    if (!b->out[i])
        return;
    char *p = (char *)b->out[i] + (size_t)(row * k->size) * et_dtype_size(k->out[i]);
    if (k->out[i] != ET_F32)
        etk_stores[k->out[i]][0](v, p, 1, k->size);
    else if ((const float *)p != v)
        memcpy(p, v, (size_t)k->size * sizeof *v);
}

/* V as DTYPE holds it. SPARE: room for N elements of that. */
static void
round_row(enum et_dtype dtype, float *v, void *spare, int64_t n)
{
    if (dtype == ET_F32)
        return;
    etk_stores[dtype][0](v, spare, 1, n);
    etk_loads[dtype][0](v, spare, 1, n);
}

static void
add_rows(float *restrict to, const float *restrict a, const float *restrict b,
         int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        to[i] = a[i] + b[i];
}

static void
add_to_row(float *restrict to, const float *restrict a, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        to[i] += a[i];
}

static float *
buffer_of(const struct row_kernel *k, void *ws, int piece, int i)
{
    return (float *)((char *)ws + k->rows +
                     (size_t)(piece * BUFFERS + i) * k->row_bytes);
}

/* Operand I, a number per channel, in f32, at AT in the workspace unless it lies so
 * already; VALUE where it is left out. */
static const float *
parameter(const struct row_kernel *k, const struct bound *b, int i, void *ws, size_t at,
          float value)
{
    const void *have = i < k->arrays.n_in ? b->in[i] : NULL;
    float *p = (float *)((char *)ws + at);
    if (have && k->in[i] == ET_F32)
        return have;
    if (have)
        etk_loads[k->in[i]][0](p, have, 1, k->channels);
    for (int64_t c = 0; !have && c < k->channels; c++)
        p[c] = value;
    return p;
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

/* x, or x + residual, which is stored where it is wanted. */
static const float *
input_row(const struct row_kernel *k, const struct bound *b, int64_t row,
          float *const *buffer)
{
    const float *x = read_row(k, b, 0, row, buffer[0]);
    if (b->in[3]) {
        float *sum = begin_row(k, b, 3, row, buffer[1]);
        add_rows(sum, x, read_row(k, b, 3, row, buffer[2]), k->size);
        round_row(k->in[0], sum, buffer[2], k->size);
        x = sum;
    }
    write_row(k, b, 3, row, x);
    return x;
}

static void
forward_rows(const struct row_kernel *k, const struct bound *b, float *const *buffer,
             int64_t from, int64_t to)
{
    float *means = b->out[1], *rstds = b->out[2];
    for (int64_t row = from; row < to; row++) {
        const float *x = input_row(k, b, row, buffer);
        float mean = (float)(sum_of(x, k->size) / (double)k->size);
        double var = squares_about(x, mean, k->size) / (double)k->size;
        float rstd = (float)(1 / sqrt(var + k->eps));
        int64_t c = first_channel(k, row);
        if (b->out[0]) {
            float *y = begin_row(k, b, 0, row, buffer[3]);
            normalise_row(k, y, x, (const float *)b->in[1] + c,
                          (const float *)b->in[2] + c, mean, rstd);
            write_row(k, b, 0, row, y);
        }
        if (means)
            means[row] = mean;
        if (rstds)
            rstds[row] = rstd;
    }
}

/* The widened rows of a piece. */
#define PIECE_BUFFERS(k, ws, piece)                                                    \
    ((float *const[BUFFERS]){buffer_of(k, ws, piece, 0), buffer_of(k, ws, piece, 1),   \
                             buffer_of(k, ws, piece, 2), buffer_of(k, ws, piece, 3)})

static et_status
run_forward(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    const struct row_kernel *k = (const struct row_kernel *)kernel;
    struct bound b = arrays_bind(&k->arrays, ptr, ws);
    b.in[1] = parameter(k, &b, 1, ws, k->gammas, 1);
    b.in[2] = parameter(k, &b, 2, ws, k->betas, 0);
#pragma omp parallel for schedule(static) num_threads(k->pieces) if (k->pieces > 1)
    for (int piece = 0; piece < k->pieces; piece++)
        forward_rows(k, &b, PIECE_BUFFERS(k, ws, piece), k->count * piece / k->pieces,
                     k->count * (piece + 1) / k->pieces);
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

/* dx + dsum into whichever of its two results are wanted. */
static void
write_gradient(const struct row_kernel *k, const struct bound *b, int64_t row,
               float *dx, float *spare)
{
    round_row(k->in[1], dx, spare, k->size);
    if (b->in[5])
        add_to_row(dx, read_row(k, b, 5, row, spare), k->size);
    round_row(k->in[1], dx, spare, k->size);
    write_row(k, b, 0, row, dx);
    write_row(k, b, 3, row, dx);
}

static void
backward_rows(const struct row_kernel *k, const struct bound *b, struct part p,
              float *const *buffer, int64_t from, int64_t to)
{
    const float *means = b->in[3], *rstds = b->in[4];
    memset(p.dgamma, 0, k->part_bytes);
    for (int64_t row = from; row < to; row++) {
        const float *dy = read_row(k, b, 0, row, buffer[0]);
        const float *x = read_row(k, b, 1, row, buffer[1]);
        float mean = means[row], rstd = rstds[row];
        int64_t c = first_channel(k, row);
        const float *gamma = (const float *)b->in[2] + c;
        struct sums s =
            k->repeat == 1
                ? add_row(dy, x, gamma, p.dgamma + c, p.dbeta + c, mean, rstd, k->size)
                : add_channels(k, dy, x, gamma, p.dgamma + c, p.dbeta + c, mean, rstd);
        if (b->out[0] || b->out[3]) {
            float *dx = begin_row(k, b, 0, row, buffer[2]);
            gradient_row(k, dx, dy, x, gamma, s, mean, rstd);
            write_gradient(k, b, row, dx, buffer[3]);
        }
        if ((row - from) % SUM_ROWS == SUM_ROWS - 1 || row == to - 1)
            flush_rows(k, p);
    }
}

/* The pieces' sums of dgamma (WHICH 0) or dbeta. */
static void
gather_parts(const struct row_kernel *k, const struct bound *b, void *ws, int which)
{
    void *to = b->out[1 + which];
    size_t size = et_dtype_size(k->out[1 + which]);
    for (int64_t c = 0; to && c < k->channels; c++) {
        double sum = 0;
        for (int piece = 0; piece < k->pieces; piece++)
            sum += part_of(k, ws, piece).all_dgamma[which * k->channels + c];
        float v = (float)sum;
        etk_stores[k->out[1 + which]][0](&v, (char *)to + (size_t)c * size, 1, 1);
    }
}

static et_status
run_backward(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    const struct row_kernel *k = (const struct row_kernel *)kernel;
    struct bound b = arrays_bind(&k->arrays, ptr, ws);
    b.in[2] = parameter(k, &b, 2, ws, k->gammas, 1);
#pragma omp parallel for schedule(static) num_threads(k->pieces) if (k->pieces > 1)
    for (int piece = 0; piece < k->pieces; piece++)
        backward_rows(k, &b, part_of(k, ws, piece), PIECE_BUFFERS(k, ws, piece),
                      k->count * piece / k->pieces, k->count * (piece + 1) / k->pieces);
    for (int which = 0; which < 2; which++)
        gather_parts(k, &b, ws, which);
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

/* Notes the dtypes down: f32, bf16 or f16, and f32 for statistics. */
static et_status
set_dtypes(struct row_kernel *k, const struct et_call *call, bool grad, char *why,
           size_t why_size)
{
    for (int i = 0; i < call->n_in + call->n_out; i++) {
        int o = i - call->n_in;
        enum et_dtype dtype = o < 0 ? call->in[i].dtype : call->out[o].dtype;
        bool statistic = grad ? o < 0 && (i == 3 || i == 4) : o == 1 || o == 2;
        if (dtype != ET_NONE && dtype != ET_F32 &&
            (statistic || (dtype != ET_BF16 && dtype != ET_F16)))
            return etk_refuse(why, why_size, "the CPU does not norm with %s",
                              et_dtype_name(dtype));
        *(o < 0 ? &k->in[i] : &k->out[o]) = dtype;
    }
    return ET_OK;
}

/* Are there rows to be widened, or summed and not stored? */
static bool
needs_buffers(const struct row_kernel *k, const struct et_call *call, bool grad)
{
    bool narrow = grad ? call->n_out > 3 : call->n_in > 3 && k->in[3];
    for (int i = 0; i < ARRAYS_MAX_IN; i++)
        narrow |= k->in[i] && k->in[i] != ET_F32;
    for (int i = 0; i < ARRAYS_MAX_OUT; i++)
        narrow |= k->out[i] && k->out[i] != ET_F32;
    return narrow;
}

et_status
ETK_NAME(etk_prepare_row_norm)(struct et_device_handle *d, const struct et_call *call,
                               struct et_kernel **out, size_t *ws, char *why,
                               size_t why_size)
{
    bool grad = call->op == ET_OP_layer_norm_grad || call->op == ET_OP_group_norm_grad;
    bool group = call->op == ET_OP_group_norm || call->op == ET_OP_group_norm_grad;
    const struct et_norm_attr *o = call->attr;
    struct row_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    et_status status = set_dtypes(k, call, grad, why, why_size);
    if (status != ET_OK) {
        etk_release(&k->base);
        return status;
    }
    struct et_desc x = row_major(&call->in[grad]);
    arrays_init(&k->arrays, call, &x, ws);
    set_rows(k, &x, o, group);
    k->eps = o->eps;
    k->pieces = pieces_for(d, et_desc_count(&x), k->count);
    k->gammas = reserve(ws, (size_t)k->channels * sizeof(float));
    k->betas = reserve(ws, (size_t)k->channels * sizeof(float));
    if (needs_buffers(k, call, grad))
        k->row_bytes = etk_round_up((size_t)k->size * sizeof(float));
    k->rows = reserve(ws, (size_t)(k->pieces * BUFFERS) * k->row_bytes);
    /* Two floats, then two doubles a channel. */
    k->part_bytes = etk_round_up((size_t)k->channels * 2 * sizeof(float)) * 3;
    k->parts = reserve(ws, (size_t)k->pieces * k->part_bytes);
    k->base.run = grad ? run_backward : run_forward;
    k->base.what = group ? "loop:group_norm" : "loop:layer_norm";
    *out = &k->base;
    return ET_OK;
}
