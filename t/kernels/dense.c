/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU's convolutions and products against their definitions, summed in double. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "t/kernels/module.h"
#include "t/tap.h"

/* Relative to sum |terms|: f32 rounding of at most some thousand products. */
#define TOLERANCE    2e-6
#define MAX_ELEMENTS 70000

static const struct et_device_table *table;
static struct et_device_handle *device;

static float buffer[4][MAX_ELEMENTS];
static double want[MAX_ELEMENTS], magnitude[MAX_ELEMENTS];
static char workspace[1 << 24] __attribute__((aligned(64)));

/* Numbers in [-1, 1] that differ from place to place. */
static void
draw(float *x, uint32_t seed)
{
    for (int i = 0; i < MAX_ELEMENTS; i++) {
        seed = seed * 1664525 + 1013904223;
        x[i] = (float)(seed >> 8) / (1 << 23) - 1;
    }
}

/* Runs one op with its operands in buffer[0..], its result in buffer[3]. */
static bool
run(enum et_op_id op, const void *attr, size_t attr_size, const struct et_desc *in,
    int n_in, const struct et_desc *out, const char **what)
{
    static char text[512];
    struct et_call call = {
        .op = op,
        .n_in = n_in,
        .n_out = 1,
        .attr = attr,
        .attr_size = attr_size,
        .in = in,
        .out = out,
    };
    struct et_kernel *k;
    size_t bytes;
    void *ptr[4] = {buffer[0], buffer[1], buffer[2], buffer[2]};
    ptr[n_in] = buffer[3];
    *what = text;
    if (table->prepare(device, &call, &k, &bytes, text, sizeof text) != ET_OK)
        return false;
    snprintf(text, sizeof text, "%s", table->describe(k));
    if (bytes > sizeof workspace)
        bail("%zu bytes of workspace", bytes);
    memset(buffer[3], 0xff, sizeof buffer[3]);
    /* Twice: a run must not depend on what the last one left in the workspace. */
    bool done = table->run(k, ptr, workspace, NULL) == ET_OK;
    memset(workspace, 0x55, sizeof workspace);
    done = done && table->run(k, ptr, workspace, NULL) == ET_OK;
    table->release(k);
    return done;
}

static int64_t
offset(const struct et_desc *d, int64_t i)
{
    int64_t at = 0;
    for (int axis = d->ndim - 1; axis >= 0; axis--) {
        at += i % d->shape[axis] * d->stride[axis];
        i /= d->shape[axis];
    }
    return at;
}

/* The largest error of the result of description D, relative to its terms. */
static double
worst(const struct et_desc *d)
{
    double largest = 0;
    for (int64_t i = 0; i < et_desc_count(d); i++) {
        int64_t at = offset(d, i);
        double error = fabs(buffer[3][at] - want[at]) / (magnitude[at] + 1e-6);
        if (!(error <= largest))
            largest = error;
    }
    return largest;
}

static void
add(int64_t at, double a, double b)
{
    want[at] += a * b;
    magnitude[at] += fabs(a * b);
}

static int64_t
at4(const struct et_desc *d, int64_t a, int64_t b, int64_t c, int64_t e)
{
    return a * d->stride[0] + b * d->stride[1] + c * d->stride[2] + e * d->stride[3];
}

/* All products of a convolution, each added to the element of the array that ROLE
 * names: 0 x, 1 w, 2 y; the other two are given. */
static void
convolve(const struct et_conv2d_attr *a, const struct et_desc d[3], int role,
         const float *first, const float *second)
{
    const struct et_desc *x = &d[0], *w = &d[1], *y = &d[2];
    int64_t cg = w->shape[1], kg = w->shape[0] / a->groups;
    for (int64_t n = 0; n < y->shape[0]; n++)
        for (int64_t k = 0; k < y->shape[1]; k++)
            for (int64_t p = 0; p < y->shape[2]; p++)
                for (int64_t q = 0; q < y->shape[3]; q++)
                    for (int64_t i = 0; i < cg * w->shape[2] * w->shape[3]; i++) {
                        int64_t s = i % w->shape[3], r = i / w->shape[3] % w->shape[2];
                        int64_t c = i / w->shape[3] / w->shape[2];
                        int64_t h = p * a->stride[0] + r * a->dilation[0] - a->pad[0];
                        int64_t v = q * a->stride[1] + s * a->dilation[1] - a->pad[1];
                        if (h < 0 || h >= x->shape[2] || v < 0 || v >= x->shape[3])
                            continue;
                        int64_t ix = at4(x, n, k / kg * cg + c, h, v);
                        int64_t iw = at4(w, k, c, r, s), iy = at4(y, n, k, p, q);
                        if (role == 0)
                            add(ix, first[iy], second[iw]);
                        else if (role == 1)
                            add(iw, first[ix], second[iy]);
                        else
                            add(iy, first[ix], second[iw]);
                    }
}

/* n, c, h, w, k, r, s, stride, pad, dilation, groups, output_pad */
static const int conv_case[][12] = {
    {2, 1, 28, 28, 16, 3, 3, 1, 1, 1, 1, 0}, {3, 3, 17, 13, 16, 3, 3, 1, 1, 1, 1, 0},
    {2, 16, 9, 9, 32, 3, 3, 2, 1, 1, 1, 0},  {2, 16, 8, 8, 32, 1, 1, 2, 0, 1, 1, 0},
    {1, 5, 7, 9, 7, 3, 3, 1, 1, 1, 1, 0},    {2, 8, 11, 11, 8, 3, 3, 1, 1, 1, 8, 0},
    {2, 32, 9, 9, 32, 5, 5, 2, 2, 1, 32, 0}, {2, 33, 8, 8, 33, 3, 3, 2, 1, 1, 33, 0},
    {1, 12, 8, 8, 18, 3, 3, 1, 1, 1, 3, 0},  {2, 4, 12, 12, 8, 3, 3, 1, 2, 2, 1, 0},
    {1, 3, 31, 31, 8, 7, 7, 2, 3, 1, 1, 0},  {2, 1, 28, 28, 6, 5, 5, 1, 2, 1, 1, 0},
    {2, 6, 14, 14, 16, 5, 5, 1, 0, 1, 1, 0}, {1, 8, 9, 9, 4, 2, 2, 2, 0, 1, 1, 1},
    {1, 16, 6, 6, 16, 1, 1, 1, 0, 1, 1, 0},  {1, 4, 6, 6, 4, 3, 3, 2, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 0},    {2, 16, 12, 12, 16, 5, 5, 1, 2, 1, 16, 0},
    {2, 3, 16, 24, 24, 8, 8, 8, 0, 1, 1, 0}, {2, 53, 7, 9, 53, 5, 5, 1, 2, 1, 53, 0},
    {1, 37, 3, 2, 37, 7, 7, 1, 3, 1, 37, 0}, {3, 64, 9, 11, 64, 3, 3, 2, 1, 1, 64, 0},
};

static void
describe_case(const int *v, struct et_conv2d_attr *a, struct et_desc d[3],
              enum et_format format)
{
    *a = (struct et_conv2d_attr){
        .stride = {v[7], v[7]},
        .pad = {v[8], v[8]},
        .dilation = {v[9], v[9]},
        .groups = v[10],
        .output_pad = {v[11], v[11]},
    };
    int64_t p = (v[2] + 2 * v[8] - (v[5] - 1) * v[9] - 1 - v[11]) / v[7] + 1;
    int64_t q = (v[3] + 2 * v[8] - (v[6] - 1) * v[9] - 1 - v[11]) / v[7] + 1;
    et_desc_init(&d[0], ET_F32, 4, (int64_t[]){v[0], v[1], v[2], v[3]}, format);
    et_desc_init(&d[1], ET_F32, 4, (int64_t[]){v[4], v[1] / v[10], v[5], v[6]}, format);
    et_desc_init(&d[2], ET_F32, 4, (int64_t[]){v[0], v[4], p, q}, format);
    memcpy(a->shape, d[0].shape, sizeof a->shape);
}

/* The three ops, each with and without bias where it takes one. */
static const struct {
    enum et_op_id op;
    int role, first, second;
    bool biased;
    const char *name;
} conv_op[] = {
    {ET_OP_conv2d, 2, 0, 1, false, "conv2d"},
    {ET_OP_conv2d, 2, 0, 1, true, "conv2d with bias"},
    {ET_OP_conv2d_grad_input, 0, 2, 1, false, "conv2d_grad_input"},
    {ET_OP_conv2d_grad_input, 0, 2, 1, true, "transposed convolution with bias"},
    {ET_OP_conv2d_grad_weight, 1, 0, 2, false, "conv2d_grad_weight"},
};

static void
test_conv(const int *v, enum et_format format, size_t op)
{
    struct et_conv2d_attr a;
    struct et_desc d[3], in[3];
    describe_case(v, &a, d, format);
    const struct et_desc *out = &d[conv_op[op].role];
    in[0] = d[conv_op[op].first];
    in[1] = d[conv_op[op].second];
    et_desc_init(&in[2], ET_F32, 1, &out->shape[1], ET_ROW_MAJOR);

    memset(want, 0, sizeof want);
    memset(magnitude, 0, sizeof magnitude);
    convolve(&a, d, conv_op[op].role, buffer[0], buffer[1]);
    for (int64_t i = 0; conv_op[op].biased && i < et_desc_count(out); i++) {
        int64_t c = i / (out->shape[2] * out->shape[3]) % out->shape[1];
        add(offset(out, i), buffer[2][c], 1);
    }
    const char *what;
    bool ran =
        run(conv_op[op].op, &a, sizeof a, in, conv_op[op].biased ? 3 : 2, out, &what);
    ok(ran && worst(out) < TOLERANCE,
       "%s x[%d,%d,%d,%d] k%d %dx%d stride %d groups %d %s: %.1e by %s",
       conv_op[op].name, v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[10],
       format == ET_CHANNELS_LAST ? "channels-last" : "row-major", ran ? worst(out) : 0,
       what);
}

/* batch0, batch1, m, k, n, B has batches, trans_a, trans_b, bias, extra columns of A */
static const int matmul_case[][10] = {
    {1, 1, 17, 33, 5, 0, 0, 0, 0, 0},   {1, 1, 64, 64, 64, 0, 0, 1, 1, 0},
    {1, 1, 31, 100, 10, 0, 1, 0, 0, 0}, {3, 2, 16, 20, 24, 1, 0, 0, 0, 0},
    {3, 2, 16, 20, 24, 1, 0, 1, 0, 7},  {3, 2, 16, 20, 24, 1, 1, 0, 0, 3},
    {3, 2, 16, 20, 24, 0, 0, 1, 1, 0},  {3, 2, 7, 9, 11, 0, 1, 1, 0, 0},
    {1, 1, 1, 1, 1, 0, 0, 0, 1, 0},     {1, 5, 1, 64, 1, 1, 0, 0, 0, 0},
    {2, 1, 3, 5, 1, 0, 0, 1, 1, 2},     {2, 3, 4, 0, 5, 1, 0, 0, 1, 0},
};

static void
test_matmul(const int *v)
{
    struct et_matmul_attr a = {.trans_a = v[6], .trans_b = v[7]};
    struct et_desc in[3], out;
    int64_t m = v[2], k = v[3], n = v[4];
    int64_t sa[] = {v[0], v[1], v[6] ? k : m, (v[6] ? m : k) + v[9]};
    int64_t sb[] = {v[0], v[1], v[7] ? n : k, v[7] ? k : n};
    et_desc_init(&in[0], ET_F32, 4, sa, ET_ROW_MAJOR);
    in[0].shape[3] -= v[9];
    et_desc_init(&in[1], ET_F32, v[5] ? 4 : 2, v[5] ? sb : sb + 2, ET_ROW_MAJOR);
    et_desc_init(&in[2], ET_F32, 1, &n, ET_ROW_MAJOR);
    et_desc_init(&out, ET_F32, 4, (int64_t[]){v[0], v[1], m, n}, ET_ROW_MAJOR);

    memset(want, 0, sizeof want);
    memset(magnitude, 0, sizeof magnitude);
    for (int64_t i = 0; i < et_desc_count(&out); i++) {
        int64_t column = i % n, row = i / n % m, batch = i / n / m;
        for (int64_t j = 0; j < k; j++)
            add(i,
                buffer[0][offset(&in[0], v[6] ? (batch * k + j) * m + row
                                              : (batch * m + row) * k + j)],
                buffer[1][(v[5] ? batch * k * n : 0) +
                          (v[7] ? column * k + j : j * n + column)]);
        if (v[8])
            add(i, buffer[2][column], 1);
    }
    const char *what;
    bool ran = run(ET_OP_matmul, &a, sizeof a, in, v[8] ? 3 : 2, &out, &what);
    ok(ran && worst(&out) < TOLERANCE, "matmul [%d,%d] %dx%dx%d %s%s%s: %.1e by %s",
       v[0], v[1], v[2], v[3], v[4], v[6] ? "t" : "n", v[7] ? "t" : "n",
       v[8] ? " with bias" : "", ran ? worst(&out) : 0, what);
}

/* ---- bf16: the same op on the same numbers, against f32 ---- */

/* Half a unit in the last place of a result; its terms are exact in f32. */
#define BF16_TOLERANCE 0x1p-8

static uint16_t
to_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float
from_bf16(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Makes the first N operands bf16 in place, or f32 again. */
static void
convert(int n, bool narrow)
{
    static uint16_t narrowed[MAX_ELEMENTS];
    for (int i = 0; i < n; i++) {
        for (int64_t j = 0; j < MAX_ELEMENTS; j++)
            narrowed[j] = narrow ? to_bf16(buffer[i][j]) : ((uint16_t *)buffer[i])[j];
        for (int64_t j = 0; j < MAX_ELEMENTS && !narrow; j++)
            buffer[i][j] = from_bf16(narrowed[j]);
        if (narrow)
            memcpy(buffer[i], narrowed, sizeof narrowed);
    }
}

static void
test_bf16(enum et_op_id op, const void *attr, size_t attr_size, struct et_desc *in,
          struct et_desc *out, const char *name)
{
    static float exact[MAX_ELEMENTS];
    const char *what;
    convert(2, true); /* numbers that both dtypes can hold */
    convert(2, false);
    bool ran = run(op, attr, attr_size, in, 2, out, &what);
    memcpy(exact, buffer[3], sizeof exact);
    in[0].dtype = in[1].dtype = out->dtype = ET_BF16;
    convert(2, true);
    ran = ran && run(op, attr, attr_size, in, 2, out, &what);
    convert(2, false);
    double largest = 0;
    for (int64_t i = 0; ran && i < et_desc_count(out); i++) {
        int64_t at = offset(out, i);
        double error = fabs((double)from_bf16(((uint16_t *)buffer[3])[at]) - exact[at]);
        largest = fmax(largest, error / (fabs((double)exact[at]) + 1e-3));
    }
    ok(ran && largest <= BF16_TOLERANCE,
       "%s in bf16 is f32's result rounded: %.1e by %s", name, largest, what);
}

static void
test_low_precision(void)
{
    struct et_conv2d_attr a;
    struct et_desc d[3], in[2];
    for (size_t op = 0; op < sizeof conv_op / sizeof conv_op[0]; op++) {
        if (conv_op[op].biased)
            continue;
        describe_case(conv_case[2], &a, d, ET_CHANNELS_LAST);
        in[0] = d[conv_op[op].first];
        in[1] = d[conv_op[op].second];
        test_bf16(conv_op[op].op, &a, sizeof a, in, &d[conv_op[op].role],
                  conv_op[op].name);
    }
    struct et_matmul_attr m = {.trans_b = 1};
    et_desc_init(&in[0], ET_F32, 2, (int64_t[]){33, 100}, ET_ROW_MAJOR);
    et_desc_init(&in[1], ET_F32, 2, (int64_t[]){17, 100}, ET_ROW_MAJOR);
    et_desc_init(&d[0], ET_F32, 2, (int64_t[]){33, 17}, ET_ROW_MAJOR);
    test_bf16(ET_OP_matmul, &m, sizeof m, in, &d[0], "matmul");
}

int
main(void)
{
    table = open_module();
    if (!table)
        skip_all("the CPU module was not built");
    char why[256] = "";
    if (table->open(0, 0, &device, why, sizeof why) != ET_OK)
        bail("%s", why);
    for (uint32_t i = 0; i < 3; i++)
        draw(buffer[i], i + 1);
    for (size_t i = 0; i < sizeof conv_case / sizeof conv_case[0]; i++)
        for (size_t op = 0; op < sizeof conv_op / sizeof conv_op[0]; op++) {
            test_conv(conv_case[i], ET_CHANNELS_LAST, op);
            if (i < 4)
                test_conv(conv_case[i], ET_ROW_MAJOR, op);
        }
    for (size_t i = 0; i < sizeof matmul_case / sizeof matmul_case[0]; i++)
        test_matmul(matmul_case[i]);
    test_low_precision();
    table->close(device);
    return done();
}
