/* SPDX-License-Identifier: Apache-2.0 */
/* GB/s of the CPU's own loops: best of many runs.
 *
 *   bench/cpu/loops [THREADS [SECONDS-PER-ROW]]
 *
 * Bytes are those of the passes that an op must make: each array once, but x twice in
 * batch norm (statistics, then values), and everything twice in its gradient. Arrays
 * that fit a cache pass the memory's own speed. */
#include <stdio.h>
#include <string.h>

#include "bench/cpu/best.h"

struct row {
    const char *name;
    enum et_op_id op;
    enum et_format format;
    int n_in, n_out;
    const char
        *arrays; /* per array: x of SHAPE, t turned, c channels, i index, r rows, 1 */
    int64_t shape[4];
    double passes; /* over arrays of SHAPE */
};

#define BIG                                                                            \
    {                                                                                  \
        128, 16, 28, 28                                                                \
    }
#define DEEP                                                                           \
    {                                                                                  \
        128, 64, 7, 7                                                                  \
    }
#define FLAT                                                                           \
    {                                                                                  \
        1, 1, 1, 4 << 20                                                               \
    }
static const struct row rows[] = {
    {"copy", ET_OP_copy, ET_ROW_MAJOR, 1, 1, "xx", FLAT, 2},
    {"copy NHWC to NCHW", ET_OP_copy, ET_CHANNELS_LAST, 1, 1, "xt", BIG, 2},
    {"copy NCHW to NHWC", ET_OP_copy, ET_CHANNELS_LAST, 1, 1, "tx", BIG, 2},
    {"copy NHWC to NCHW, 64", ET_OP_copy, ET_CHANNELS_LAST, 1, 1, "xt", DEEP, 2},
    {"add", ET_OP_add, ET_ROW_MAJOR, 2, 1, "xxx", FLAT, 3},
    {"relu", ET_OP_relu, ET_CHANNELS_LAST, 1, 1, "xx", BIG, 2},
    {"exp", ET_OP_exp, ET_ROW_MAJOR, 1, 1, "xx", FLAT, 2},
    {"gelu", ET_OP_gelu, ET_ROW_MAJOR, 1, 1, "xx", FLAT, 2},
    {"gelu_grad", ET_OP_gelu_grad, ET_ROW_MAJOR, 2, 1, "xxx", FLAT, 3},
    {"mul per channel", ET_OP_mul, ET_CHANNELS_LAST, 2, 1, "xbx", BIG, 2},
    {"SGD, fused", ET_OP_fused, ET_ROW_MAJOR, 4, 2, "xxx1xx", FLAT, 5},
    {"SGD, fused, ResNet-20",
     ET_OP_fused,
     ET_ROW_MAJOR,
     4,
     2,
     "xxx1xx",
     {1, 1, 1, 270000},
     5},
    {"sum of all", ET_OP_sum, ET_ROW_MAJOR, 1, 1, "x1", FLAT, 1},
    {"sum_squares", ET_OP_sum_squares, ET_ROW_MAJOR, 1, 1, "x1", FLAT, 1},
    {"sum per channel, 16", ET_OP_sum, ET_CHANNELS_LAST, 1, 1, "xc", BIG, 1},
    {"sum per channel, 64", ET_OP_sum, ET_CHANNELS_LAST, 1, 1, "xc", DEEP, 1},
    {"softmax 1024", ET_OP_softmax, ET_ROW_MAJOR, 1, 1, "xx", {1, 1, 2048, 1024}, 2},
    {"layer_norm 128",
     ET_OP_layer_norm,
     ET_ROW_MAJOR,
     1,
     3,
     "xxrr",
     {1, 8, 512, 128},
     2},
    {"layer_norm 768",
     ET_OP_layer_norm,
     ET_ROW_MAJOR,
     1,
     3,
     "xxrr",
     {1, 4, 1024, 768},
     2},
    {"batch_norm 16x28x28", ET_OP_batch_norm, ET_CHANNELS_LAST, 3, 3, "xccxcc", BIG, 3},
    {"batch_norm 64x7x7", ET_OP_batch_norm, ET_CHANNELS_LAST, 3, 3, "xccxcc", DEEP, 3},
    {"batch_norm_grad 16x28x28", ET_OP_batch_norm_grad, ET_CHANNELS_LAST, 6, 3,
     "xxcccxxcc", BIG, 7},
    {"batch_norm_grad 64x7x7", ET_OP_batch_norm_grad, ET_CHANNELS_LAST, 6, 3,
     "xxcccxxcc", DEEP, 7},
};

/* m' = mu m + g; p' = p - lr m'; operands p, m, g, lr. */
static void
write_sgd(struct et_fused_attr *a)
{
    a->n_in = 4;
    a->n_out = 2;
    a->n_steps = 4;
    a->step[0] =
        (struct et_fused_step){.op = ET_OP_mul_scalar, .src = {1}, .n_src = 1, .a = .9};
    a->step[1] = (struct et_fused_step){.op = ET_OP_add, .src = {4, 2}, .n_src = 2};
    a->step[2] = (struct et_fused_step){.op = ET_OP_mul, .src = {5, 3}, .n_src = 2};
    a->step[3] = (struct et_fused_step){.op = ET_OP_sub, .src = {0, 6}, .n_src = 2};
    a->out[0] = 7;
    a->out[1] = 5;
}

static void
describe(struct et_desc *d, const struct row *row, char kind)
{
    const int64_t *n = row->shape;
    if (kind == 'x')
        et_desc_init(d, ET_F32, 4, n, row->format);
    else if (kind == 't')
        et_desc_init(d, ET_F32, 4, n, ET_ROW_MAJOR);
    else if (kind == 'c')
        et_desc_init(d, ET_F32, 1, n + 1, ET_ROW_MAJOR);
    else if (kind == 'b')
        et_desc_init(d, ET_F32, 4, (int64_t[]){1, n[1], 1, 1}, row->format);
    else if (kind == 'r')
        et_desc_init(d, ET_F32, 3, n, ET_ROW_MAJOR);
    else
        et_desc_init(d, ET_F32, 0, NULL, ET_ROW_MAJOR);
}

int
main(int argc, char **argv)
{
    static union {
        struct et_fused_attr fused;
        struct et_reduce_attr reduce;
        struct et_norm_attr norm;
        struct et_axis_attr axis;
        struct et_scalar_attr scalar;
    } attr;
    const struct et_device_table *table = open_module();
    struct et_device_handle *device;
    char why[256] = "the CPU module was not built";
    int threads = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 0;
    double budget = argc > 2 ? strtod(argv[2], NULL) : 0.3;
    if (!table || table->open(0, threads, &device, why, sizeof why) != ET_OK) {
        fprintf(stderr, "loops: %s\n", why);
        return 1;
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *r = &rows[i];
        struct et_desc d[12];
        for (int k = 0; r->arrays[k]; k++)
            describe(&d[k], r, r->arrays[k]);
        memset(&attr, 0, sizeof attr);
        if (r->op == ET_OP_fused)
            write_sgd(&attr.fused);
        else if (r->op == ET_OP_sum)
            attr.reduce.axes = r->arrays[1] == 'c' ? 13 : 15;
        else if (r->op == ET_OP_softmax)
            attr.axis.axis = 3;
        else
            attr.norm = (struct et_norm_attr){.eps = 1e-5, .axes = 1, .relu = 1};
        struct et_call call = {
            .op = r->op,
            .n_in = r->n_in,
            .n_out = r->n_out,
            .attr = &attr,
            .attr_size = sizeof attr,
            .in = d,
            .out = d + r->n_in,
        };
        double bytes = r->passes * (double)et_desc_bytes(&d[0]);
        double seconds = best(table, device, &call, budget);
        printf("%-26s %7.2f MB %7.1f GB/s %9.3f ms\n", r->name, bytes * 1e-6,
               bytes / seconds * 1e-9, 1e3 * seconds);
    }
    table->close(device);
    return 0;
}
