/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA C that is generated for element-wise programs, compiled by the real NVRTC
 * for the GPUs it is for. Needs the toolkit, and no GPU. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph/gpu_libs.h"
#include "kernels/cuda/program.h"
#include "kernels/cuda/rtc.h"
#include "t/tap.h"

static const int architectures[] = {80, 90};

static struct et_desc
dense(enum et_dtype dtype, int ndim, const int64_t *shape, enum et_format format)
{
    struct et_desc d;
    et_desc_init(&d, dtype, ndim, shape, format);
    return d;
}

static struct et_desc
vector(enum et_dtype dtype)
{
    return dense(dtype, 1, (int64_t[]){1000003}, ET_ROW_MAJOR);
}

static struct et_desc
images(enum et_dtype dtype)
{
    return dense(dtype, 4, (int64_t[]){32, 64, 28, 28}, ET_CHANNELS_LAST);
}

static struct et_desc
number(enum et_dtype dtype)
{
    return dense(dtype, 0, NULL, ET_ROW_MAJOR);
}

static struct et_fused_step
step(int op, int n_src, int s0, int s1, int s2, double a)
{
    return (struct et_fused_step){
        .op = (uint16_t)op,
        .src = {(uint8_t)s0, (uint8_t)s1, (uint8_t)s2},
        .n_src = (uint8_t)n_src,
        .a = a,
        .b = 1e-3,
    };
}

/* Does a step of O reduce its argument? CUDA's sinf and cosf keep the digits of 2/pi
 * for large ones in an array, which has a stack frame. */
static bool
reduces(const struct et_fused_attr *o)
{
    for (int i = 0; i < o->n_steps; i++)
        if (o->step[i].op == ET_OP_sin || o->step[i].op == ET_OP_cos)
            return true;
    return false;
}

/* Compiles the program of IN and OUT for each GPU; LANES is what a thread must take. */
static void
compiles(const char *what, const struct et_fused_attr *o, const struct et_desc *in,
         const struct et_desc *out, int lanes)
{
    struct et_call call = {
        .op = ET_OP_fused,
        .n_in = o->n_in,
        .n_out = o->n_out,
        .attr = o,
        .attr_size = sizeof *o,
        .in = in,
        .out = out,
    };
    struct etk_program p;
    struct etk_shape shape;
    char why[256] = "", report[8192];
    if (etk_program_of(&call, &p, &shape, why, sizeof why) != ET_OK)
        bail("%s: %s", what, why);
    if (!ok(shape.lanes == lanes, "%s: %d elements at once", what, lanes))
        diag("it takes %d", shape.lanes);
    char *source = etk_program_source(&p, &shape);
    for (size_t i = 0; source && i < sizeof architectures / sizeof *architectures;
         i++) {
        void *code;
        size_t size;
        et_status status = etk_rtc_compile(source, architectures[i], &code, &size,
                                           report, sizeof report);
        bool whole = strstr(report, " 0 bytes spill stores, 0 bytes spill loads") &&
                     (reduces(o) || strstr(report, " 0 bytes stack frame"));
        if (!ok(status == ET_OK && size > 0 && whole,
                "%s: compiles for sm_%d without spilling registers", what,
                architectures[i])) {
            diag("%s", report);
            diag("%s", source + strlen(etk_elements_text));
        }
        free(code);
    }
    free(source);
}

/* m = mu m + g; w = w - lr m: f32, and the rate a number on the device. */
static void
momentum(void)
{
    struct et_fused_attr o = {.n_in = 4, .n_out = 2, .n_steps = 4, .out = {7, 5}};
    o.step[0] = step(ET_OP_mul_scalar, 1, 1, 0, 0, 0.9);
    o.step[1] = step(ET_OP_add, 2, 4, 2, 0, 0);
    o.step[2] = step(ET_OP_mul, 2, 5, 3, 0, 0);
    o.step[3] = step(ET_OP_sub, 2, 0, 6, 0, 0);
    struct et_desc v = vector(ET_F32), in[] = {v, v, v, number(ET_F32)}, out[] = {v, v};
    compiles("momentum", &o, in, out, 4);
}

/* As large as programs are: 16 operands, of which 8 are numbers; 8 results; 40
 * steps. */
static void
largest(void)
{
    struct et_fused_attr o = {.n_in = 16, .n_out = 8, .n_steps = 40};
    struct et_desc in[16], out[8];
    for (int i = 0; i < 16; i++)
        in[i] = i < 8 ? vector(i == 7 ? ET_BF16 : ET_F32) : number(ET_F32);
    for (int k = 0; k < 40; k++)
        o.step[k] = step(k % 5 == 4 ? ET_OP_sqrt
                         : k % 3    ? ET_OP_mul
                                    : ET_OP_add,
                         k % 5 == 4 ? 1 : 2, k < 16 ? k : k + 15, k % 16, 0, 0);
    for (int i = 0; i < 8; i++) {
        o.out[i] = (uint8_t)(16 + 39 - 2 * i);
        out[i] = vector(i == 7 ? ET_BF16 : ET_F32);
    }
    compiles("the largest program", &o, in, out, 8);
}

/* Every function once, in a chain from FIRST to LAST, in DTYPE. */
static void
functions(const char *what, enum et_dtype dtype, int first, int last, int lanes)
{
    struct et_fused_attr o = {.n_in = 3, .n_out = 1, .n_steps = last - first + 1};
    struct et_desc v = vector(dtype), in[] = {v, v, v};
    for (int k = 0; k < o.n_steps; k++) {
        int op = first + k, before = k == 0 ? 0 : 2 + k;
        int n = op < ET_OP_add ? 1 : op == ET_OP_where ? 3 : 2;
        o.step[k] = step(op, n, before, 1, 2, op == ET_OP_cast ? ET_BF16 : 1.7);
    }
    o.out[0] = (uint8_t)(2 + o.n_steps);
    compiles(what, &o, in, &v, lanes);
}

static void
every_dtype(void)
{
    static const enum et_dtype narrow[] = {ET_F32, ET_BF16, ET_F16, ET_U8};
    struct et_fused_attr o = {.n_in = 7, .n_out = 7, .n_steps = 7};
    struct et_desc v[7];
    for (int i = 0; i < 7; i++) {
        v[i] = vector((enum et_dtype)(ET_F32 + i));
        o.step[i] = step(ET_OP_cast, 1, (i + 3) % 7, 0, 0, ET_F32 + i);
        o.out[i] = (uint8_t)(7 + i);
    }
    compiles("every dtype to another, through f64", &o, v, v, 8);
    o.n_in = o.n_out = o.n_steps = 4;
    for (int i = 0; i < 4; i++) {
        v[i] = vector(narrow[i]);
        o.step[i] = step(ET_OP_cast, 1, (i + 1) % 4, 0, 0, narrow[i]);
        o.out[i] = (uint8_t)(4 + i);
    }
    compiles("every narrow dtype to another", &o, v, v, 8);
}

/* y = gelu(x + bias) scale + shift, with a bias and a scale that repeat as SECOND and
 * THIRD do. */
static void
broadcast(const char *what, struct et_desc x, struct et_desc second,
          struct et_desc third, int lanes)
{
    struct et_fused_attr o = {.n_in = 3, .n_out = 1, .n_steps = 4, .out = {6}};
    o.step[0] = step(ET_OP_add, 2, 0, 1, 0, 0);
    o.step[1] = step(ET_OP_gelu, 1, 3, 0, 0, 0);
    o.step[2] = step(ET_OP_mul, 2, 4, 2, 0, 0);
    o.step[3] = step(ET_OP_add_scalar, 1, 5, 0, 0, -INFINITY);
    struct et_desc in[] = {x, second, third};
    compiles(what, &o, in, &x, lanes);
}

static void
broadcasts(void)
{
    struct et_desc x = images(ET_BF16);
    struct et_desc channel =
        dense(ET_BF16, 4, (int64_t[]){1, 64, 1, 1}, ET_CHANNELS_LAST);
    struct et_desc gate =
        dense(ET_BF16, 4, (int64_t[]){32, 64, 1, 1}, ET_CHANNELS_LAST);
    struct et_desc place =
        dense(ET_F32, 4, (int64_t[]){32, 1, 28, 28}, ET_CHANNELS_LAST);
    broadcast("a bias by channel and a gate by image", x, channel, gate, 8);
    broadcast("a number for each place, in f32", x, place, number(ET_F32), 8);
    struct et_desc odd = dense(ET_F32, 2, (int64_t[]){100, 33}, ET_ROW_MAJOR);
    struct et_desc row = dense(ET_F32, 1, (int64_t[]){33}, ET_ROW_MAJOR);
    broadcast("rows of odd length", odd, row, number(ET_F32), 1);
    struct et_desc turned = odd;
    turned.stride[0] = 1;
    turned.stride[1] = 100;
    broadcast("a turned matrix", odd, turned, row, 1);
    struct et_desc huge = dense(ET_U8, 2, (int64_t[]){1 << 20, 1 << 15}, ET_ROW_MAJOR);
    struct et_desc wide_row = dense(ET_F32, 1, (int64_t[]){1 << 15}, ET_ROW_MAJOR);
    broadcast("more than 2^31 places", huge, wide_row, number(ET_F32), 8);
}

int
main(void)
{
    void *code;
    size_t size;
    char report[8192];
    eti_gpu_libs_use_rtc("");
    if (etk_rtc_compile("", 90, &code, &size, report, sizeof report) == ET_ENOTSUP)
        skip_all(report);
    free(code);
    momentum();
    largest();
    functions("functions of one operand, f32", ET_F32, ET_OP_neg, ET_OP_cast, 4);
    functions("functions of one operand, bf16", ET_BF16, ET_OP_neg, ET_OP_cast, 8);
    functions("functions of one operand, f64", ET_F64, ET_OP_neg, ET_OP_cast, 2);
    functions("functions of several operands, f32", ET_F32, ET_OP_add, ET_OP_tanh_grad,
              4);
    functions("functions of several operands, f16", ET_F16, ET_OP_add, ET_OP_tanh_grad,
              8);
    functions("functions of several operands, f64", ET_F64, ET_OP_add, ET_OP_tanh_grad,
              2);
    every_dtype();
    broadcasts();
    et_status status =
        etk_rtc_compile("this is not CUDA", 90, &code, &size, report, sizeof report);
    ok(status == ET_EINTERNAL && !code && strstr(report, "error"),
       "a text that does not compile is refused with the compiler's words");
    return done();
}
