/* SPDX-License-Identifier: Apache-2.0 */
/* The low-precision copy of the parameters: mixed precision reads it, and it is right
 * whatever has changed them. On the reference device. */
#include "etude/etude.h"
#include "t/tap.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 4, IN = 8, OUT = 8, WEIGHTS = IN * OUT };

static struct et_ctx *cx;
static struct et_device *dev;
static struct et_graph *g;
static struct et_param_space *space; /* two matrices [IN, OUT] */
static struct et_tensor *w, *other;  /* views of it */
static struct et_tensor *x, *plain;  /* [ROWS, IN]; [IN, OUT] without a shadow */

static void
must(et_status status)
{
    if (status != ET_OK)
        bail("%s", et_error_get(cx)->message);
}

static struct et_tensor *
leaf(int64_t rows, int64_t columns)
{
    struct et_tensor *t;
    must(et_tensor_new(cx, dev, ET_F32, 2, (const int64_t[]){rows, columns},
                       ET_ROW_MAJOR, NULL, &t));
    return t;
}

static void
fill(struct et_tensor *t, int seed)
{
    float v[WEIGHTS];
    for (int i = 0; i < WEIGHTS; i++)
        v[i] = 0.1234567f * (float)((i * 7 + seed * 13) % 31 - 15);
    must(et_tensor_write(cx, t, v, et_desc_bytes(&t->desc)));
}

static void
start(struct et_graph *on, enum et_dtype low)
{
    et_graph_reset(on);
    must(et_graph_set_low_dtype(on, low));
    et_autocast(on, true);
}

static struct et_tensor *
product(struct et_graph *on, struct et_tensor *weights)
{
    return et_cast(on, et_matmul(on, x, weights, false, false), ET_F32);
}

static void
read(struct et_tensor *y, float *out)
{
    must(et_tensor_read(cx, y, out, ROWS * OUT * sizeof *out));
}

/* Does Y, computed, hold the product with what PLAIN holds? */
static bool
is_product(struct et_tensor *y, enum et_dtype low)
{
    float got[ROWS * OUT], want[ROWS * OUT];
    struct et_graph *own;
    read(y, got);
    must(et_graph_new(cx, dev, &own));
    start(own, low);
    struct et_tensor *z = product(own, plain);
    must(et_eval(own, &z, 1));
    read(z, want);
    et_graph_free(&own);
    return memcmp(got, want, sizeof got) == 0;
}

/* What WEIGHTS hold now, into PLAIN. */
static void
note(struct et_tensor *weights)
{
    float v[WEIGHTS];
    must(et_tensor_read(cx, weights, v, sizeof v));
    must(et_tensor_write(cx, plain, v, sizeof v));
}

static bool
is_right(struct et_tensor *weights, enum et_dtype low)
{
    start(g, low);
    struct et_tensor *y = product(g, weights);
    must(et_eval(g, &y, 1));
    note(weights);
    return is_product(y, low);
}

static int
kernels(struct et_tensor *const *want, int n)
{
    struct et_plan_info info;
    must(et_plan(g, want, n, &info));
    return info.kernels;
}

static void
test_reading(enum et_dtype low, const char *name)
{
    fill(w, 1);
    fill(other, 2);
    start(g, low);
    struct et_tensor *y = product(g, w);
    int with = kernels(&y, 1);
    must(et_eval(g, &y, 1));
    note(w);
    ok(is_product(y, low), "%s: a product is that of the weights", name);
    start(g, low);
    y = product(g, plain);
    is_int(with, kernels(&y, 1) - 1, "%s: and they are not cast for it", name);
    ok(is_right(other, low), "%s: so for each parameter", name);
    start(g, low);
    y = product(g, w);
    fill(w, 3);
    must(et_eval(g, &y, 1));
    note(w);
    ok(is_product(y, low), "%s: what the host writes before an evaluation counts",
       name);
    fill(w, 4);
    ok(is_right(w, low), "%s: and before the product is built", name);
}

static void
test_gradient(enum et_dtype low, const char *name)
{
    struct et_tensor *grad[2], *params[] = {w, plain};
    float got[2][WEIGHTS];
    note(w);
    for (int i = 0; i < 2; i++) {
        start(g, low);
        struct et_tensor *y = product(g, params[i]);
        must(et_grad(g, et_sum(g, et_square(g, y), 3, false), &params[i], 1, &grad[i]));
        must(et_eval(g, &grad[i], 1));
        is_int(grad[i]->desc.dtype, ET_F32, "%s: a gradient is f32", name);
        must(et_tensor_read(cx, grad[i], got[i], sizeof got[i]));
    }
    ok(memcmp(got[0], got[1], sizeof got[0]) == 0,
       "%s: and that of a weight without a copy", name);
}

static void
test_assigning(enum et_dtype low, const char *name)
{
    start(g, low);
    et_assign(g, w, et_add_scalar(g, et_mul_scalar(g, w, 1.7), 0.01));
    is_int(kernels(NULL, 0), 1, "%s: an update and its copy are one kernel", name);
    must(et_eval(g, NULL, 0));
    ok(is_right(w, low), "%s: an assignment is followed", name);
    ok(is_right(other, low), "%s: the neighbour stays what it was", name);
    start(g, low);
    et_assign(g, space->values, et_mul_scalar(g, space->values, -0.7));
    must(et_eval(g, NULL, 0));
    ok(is_right(w, low) && is_right(other, low), "%s: one to all of them too", name);
    start(g, low);
    et_assign(g, w, et_mul_scalar(g, w, 3));
    et_reassign(g, w, et_mul_scalar(g, w, 5));
    float before[WEIGHTS], after[WEIGHTS];
    int wrong = 0;
    must(et_tensor_read(cx, w, before, sizeof before));
    must(et_eval(g, NULL, 0));
    ok(is_right(w, low), "%s: of two the one that took the other's place", name);
    must(et_tensor_read(cx, w, after, sizeof after));
    for (int i = 0; i < WEIGHTS; i++)
        wrong += after[i] != before[i] * 5;
    is_int(wrong, 0, "%s: which is what the weights become", name);
    start(g, low);
    et_assign(g, w, et_mul_scalar(g, w, 3));
    et_graph_abandon(g);
    must(et_eval(g, NULL, 0));
    ok(is_right(w, low), "%s: one that was dropped changes nothing", name);
    start(g, low);
    et_assign(g, w, other);
    et_assign(g, other, w);
    must(et_eval(g, NULL, 0));
    ok(is_right(w, low) && is_right(other, low), "%s: two are exchanged", name);
}

/* A step reads the weights as they were, wherever its update stands. */
static void
test_order(enum et_dtype low, const char *name)
{
    start(g, low);
    struct et_tensor *y[2] = {product(g, w)};
    et_assign(g, w, et_mul_scalar(g, w, 1.5));
    y[1] = product(g, w);
    note(w);
    must(et_eval(g, y, 2));
    ok(is_product(y[0], low), "%s: a product reads what was there before the update",
       name);
    ok(is_product(y[1], low), "%s: one built after the assignment does", name);
    struct et_tensor *next = product(g, w);
    must(et_eval(g, &next, 1));
    note(w);
    ok(is_product(next, low), "%s: one built after the commit reads the new ones",
       name);
    start(g, low);
    struct et_tensor *z = product(g, w);
    et_assign(g, w, et_mul_scalar(g, w, 1.5));
    fill(w, 5);
    note(w);
    must(et_eval(g, &z, 1));
    ok(is_product(z, low) && is_right(w, low),
       "%s: with a write, an update and a product in one step", name);
}

static void
test_eager(enum et_dtype low, const char *name)
{
    struct et_graph *eager;
    setenv("ETUDE_EAGER", "1", 1);
    must(et_graph_new(cx, dev, &eager));
    unsetenv("ETUDE_EAGER");
    fill(w, 6);
    start(eager, low);
    struct et_tensor *y = product(eager, w);
    note(w);
    ok(is_product(y, low), "%s: an eager graph computes the same", name);
    et_assign(eager, w, et_mul_scalar(eager, w, 1.25));
    must(et_eval(eager, NULL, 0));
    et_graph_free(&eager);
    ok(is_right(w, low), "%s: and what it assigns others read", name);
}

/* Every allocation of an evaluation that makes the copy anew fails once: the next one
 * makes it. */
static void
test_broken_off(enum et_dtype low, const char *name)
{
    int broken = 0, wrong = 0, status = ET_ENOMEM;
    for (int k = 1; k < 300 && status != ET_OK; k++) {
        struct et_tensor *y;
        fill(w, k);
        note(w);
        start(g, low);
        y = product(g, w);
        et_alloc_fail_at(cx, (uint64_t)k);
        status = et_eval(g, &y, 1);
        et_alloc_fail_at(cx, 0);
        et_error_clear(cx);
        if (status != ET_OK) {
            broken++;
            start(g, low);
            y = product(g, w);
            must(et_eval(g, &y, 1));
        }
        wrong += !is_product(y, low);
    }
    ok(broken > 5 && status == ET_OK, "%s: %d evaluations break off", name, broken);
    is_int(wrong, 0, "and the next finds the weights as they are");
}

static void
test_dtypes(void)
{
    fill(w, 7);
    must(et_param_space_shadow(space, ET_F16));
    ok(is_right(w, ET_F16), "a copy in another dtype takes the place of the first");
    ok(is_right(w, ET_BF16), "a graph in a third casts by itself");
    must(et_param_space_shadow(space, ET_BF16));
    ok(is_right(w, ET_BF16), "a new copy is made of what there is");
    must(et_param_space_shadow(space, ET_NONE));
    ok(is_right(w, ET_F16), "without a copy too");
    ok(is_right(w, ET_NONE), "in f32 the weights themselves are read");
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK || et_device_open(cx, "ref", 0, 1, &dev) != ET_OK ||
        et_graph_new(cx, dev, &g) != ET_OK)
        bail("no device");
    struct et_param_spec specs[2] = {{.name = "w"}, {.name = "other"}};
    for (int i = 0; i < 2; i++)
        et_desc_init(&specs[i].desc, ET_F32, 2, (const int64_t[]){IN, OUT},
                     ET_ROW_MAJOR);
    must(et_param_space_new(cx, dev, specs, 2, &space));
    must(et_param_space_view(cx, space, -1, 0, &w));
    must(et_param_space_view(cx, space, -1, 1, &other));
    x = leaf(ROWS, IN);
    plain = leaf(IN, OUT);
    fill(x, 0);
    static const enum et_dtype low[] = {ET_BF16, ET_F16};
    for (int i = 0; i < 2; i++) {
        const char *name = et_dtype_name(low[i]);
        must(et_param_space_shadow(space, low[i]));
        test_reading(low[i], name);
        test_gradient(low[i], name);
        test_assigning(low[i], name);
        test_order(low[i], name);
        test_eager(low[i], name);
        test_broken_off(low[i], name);
    }
    test_dtypes();
    et_tensor_free(&w);
    et_tensor_free(&other);
    et_tensor_free(&x);
    et_tensor_free(&plain);
    et_param_space_free(&space);
    et_graph_free(&g);
    et_device_close(&dev);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing leaks");
    et_ctx_free(&cx);
    return done();
}
