/* SPDX-License-Identifier: Apache-2.0 */
/* A part of a flat array that is a sum, as the gradient of a weight that is used twice:
 * its first operand is computed in the array, and so takes no memory of its own.
 * Planned numbers are those of eager mode. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph/graph_impl.h"
#include "t/tap.h"

enum { SIDE = 32, PART = SIDE * SIDE, TOTAL = 2 * PART, PART_BYTES = PART * 4 };

static struct et_ctx *cx;
static struct et_device *dev;
static struct et_tensor *x, *y;

static struct et_tensor *
square(float phase)
{
    float value[PART];
    struct et_tensor *t;
    for (int i = 0; i < PART; i++)
        value[i] = sinf((float)i + phase);
    if (et_tensor_new(cx, dev, ET_F32, 2, (int64_t[]){SIDE, SIDE}, ET_ROW_MAJOR, "leaf",
                      &t) != ET_OK ||
        et_tensor_write(cx, t, value, sizeof value) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    return t;
}

/* What the flat array is made of, and what is read beside it; gives the array. */
typedef struct et_tensor *formula(struct et_graph *g);

static struct et_tensor *
pack(struct et_graph *g, struct et_tensor *a, struct et_tensor *b)
{
    struct et_tensor *part[] = {a, b};
    return et_pack(g, part, (const int64_t[]){0, PART}, 2, TOTAL, ET_F32);
}

static struct et_tensor *
product(struct et_graph *g, struct et_tensor *a, struct et_tensor *b)
{
    return et_matmul(g, a, b, false, true);
}

static struct et_tensor *
tied(struct et_graph *g)
{
    struct et_tensor *first = product(g, x, y), *last = product(g, x, x);
    struct et_tensor *other = product(g, y, y);
    return et_mul_scalar(g, pack(g, et_add(g, first, last), other), 2);
}

/* Either operand would do, and neither may be overwritten before it is read. */
static struct et_tensor *
of_products(struct et_graph *g)
{
    struct et_tensor *a = product(g, x, y), *b = product(g, a, x);
    struct et_tensor *sum = et_add(g, b, a);
    return et_mul_scalar(g, pack(g, sum, product(g, b, y)), 2);
}

static struct et_tensor *
twice(struct et_graph *g)
{
    struct et_tensor *a = product(g, x, y);
    return et_mul_scalar(g, pack(g, et_add(g, a, a), a), 2);
}

static struct et_tensor *
turned(struct et_graph *g)
{
    struct et_tensor *a = product(g, x, y);
    struct et_tensor *t = et_transpose(g, a, 0, 1);
    return et_mul_scalar(g, pack(g, et_add(g, a, t), product(g, y, y)), 2);
}

/* It is read behind the sum. */
static struct et_tensor *
read_later(struct et_graph *g)
{
    struct et_tensor *a = product(g, x, y), *b = product(g, x, x);
    struct et_tensor *flat = pack(g, et_add(g, a, b), product(g, y, y));
    return et_mul(g, flat, et_sum(g, product(g, a, a), 0, false));
}

/* It is there long before the array is, and lies behind the beginning. */
static struct et_tensor *
made_early(struct et_graph *g)
{
    struct et_tensor *early = product(g, x, y), *a = product(g, y, y);
    for (int i = 0; i < 4; i++)
        a = product(g, et_tanh(g, a), i % 2 ? x : y);
    struct et_tensor *first = product(g, a, x);
    return et_mul_scalar(g, pack(g, first, et_add(g, early, a)), 2);
}

static const struct {
    const char *what;
    formula *f;
} rows[] = {
    {"a sum of two products", tied},
    {"operands that depend on each other", of_products},
    {"one operand twice", twice},
    {"an operand and its transpose", turned},
    {"an operand that is read later", read_later},
    {"an operand that is made early", made_early},
};

static void
compute(formula *f, bool eager, float out[TOTAL], struct et_plan_info *info)
{
    struct et_graph *g;
    setenv("ETUDE_EAGER", eager ? "1" : "0", 1);
    if (et_graph_new(cx, dev, &g) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    unsetenv("ETUDE_EAGER");
    for (int round = 0; round < 3; round++) {
        struct et_tensor *want = f(g);
        if (et_eval(g, &want, 1) != ET_OK ||
            et_tensor_read(cx, want, out, TOTAL * sizeof *out) != ET_OK)
            bail("%s", et_error_get(cx)->message);
        et_graph_last_plan(g, info);
        et_graph_reset(g);
    }
    et_graph_free(&g);
}

int
main(void)
{
    static const char *const devices[] = {"ref", "cpu", "gpusim"};
    static float planned[TOTAL], eager[TOTAL];
    struct et_plan_info info;
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    for (int d = 0; d < 3; d++) {
        if (et_device_open(cx, devices[d], 0, 1, &dev) != ET_OK) {
            diag("%s", et_error_get(cx)->message);
            et_error_clear(cx);
            continue;
        }
        x = square(0);
        y = square(0.5F);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            compute(rows[i].f, true, eager, &info);
            compute(rows[i].f, false, planned, &info);
            ok(memcmp(planned, eager, sizeof eager) == 0,
               "%s on %s: planned is eager, bit for bit", rows[i].what, devices[d]);
        }
        compute(tied, false, planned, &info);
        ok(info.slab_bytes <= 3 * PART_BYTES,
           "on %s the array and one operand have memory (%zu bytes), not both",
           devices[d], info.slab_bytes);
        et_tensor_free(&x);
        et_tensor_free(&y);
        et_device_close(&dev);
    }
    et_ctx_free(&cx);
    return done();
}
