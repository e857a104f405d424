/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients that add up in a flat leaf (fuse_sum.c): each is added where it lies, with
 * the bits that adding flat arrays gives (ETUDE_EAGER), and without memory for one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etude/ctx.h"
#include "etude/graph.h"
#include "etude/op.h"
#include "etude/tensor.h"
#include "t/tap.h"

enum { ROWS = 6, IN = 24, OUT = 40, IMAGE = 8, MOST = 4 };
enum { W_AT = 64, B_AT = 1100, C_AT = 1200, TOTAL = 2048, C_COUNT = 8 * 4 * 3 * 3 };

static struct et_ctx *cx;
static struct et_device *dev;

/* Leaves: rows and images, a weight, a factor a column, a filter; the flat sum. */
enum { X, R, W, B, C, S, LEAVES };
static struct et_tensor *leaf[LEAVES];

static void
make_leaf(int i, int ndim, const int64_t *shape)
{
    float *values;
    enum et_format format = ndim == 4 ? ET_CHANNELS_LAST : ET_ROW_MAJOR;
    if (et_tensor_new(cx, dev, ET_F32, ndim, shape, format, "leaf", &leaf[i]) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    size_t bytes = et_desc_bytes(&leaf[i]->desc);
    values = malloc(bytes);
    for (size_t k = 0; k < bytes / sizeof *values; k++)
        values[k] = sinf(0.7f * (float)((int)k + 31 * i));
    if (!values || et_tensor_write(cx, leaf[i], values, bytes) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    free(values);
}

/* ---- what is added ---- */

/* Assigns the sum; what else is asked for goes to WANT, whose number it returns. */
typedef int formula(struct et_graph *g, struct et_tensor **want);

/* (No bias: on a GPU the product for dw sums up its gradient, in another order.) */
static void
gradients(struct et_graph *g, struct et_tensor *grad[3])
{
    struct et_tensor *const params[] = {leaf[W], leaf[B], leaf[C]};
    const struct et_conv2d_attr o = {.pad = {1, 1}};
    struct et_tensor *y = et_tanh(g, et_linear(g, leaf[X], leaf[W], NULL));
    y = et_mul(g, y, leaf[B]);
    struct et_tensor *z = et_conv2d(g, leaf[R], leaf[C], NULL, &o);
    struct et_tensor *loss = et_add(g, et_sum(g, et_square(g, y), 0, false),
                                    et_sum(g, et_square(g, z), 0, false));
    if (et_grad(g, loss, params, 3, grad) != ET_OK)
        bail("%s", et_error_get(et_graph_ctx(g))->message);
}

static struct et_tensor *
add_at(struct et_graph *g, struct et_tensor **part, const int64_t *at, int n)
{
    struct et_tensor *flat = et_pack(g, part, at, n, TOTAL, ET_F32);
    et_assign(g, leaf[S], et_add(g, leaf[S], flat));
    return flat;
}

static int
all(struct et_graph *g, struct et_tensor **want)
{
    struct et_tensor *grad[3];
    (void)want;
    gradients(g, grad);
    add_at(g, grad, (const int64_t[]){W_AT, B_AT, C_AT}, 3);
    return 0;
}

/* As the first microbatch does it: nothing is added, and the gaps are zeros. */
static int
first(struct et_graph *g, struct et_tensor **want)
{
    struct et_tensor *grad[3];
    (void)want;
    gradients(g, grad);
    et_assign(g, leaf[S],
              et_pack(g, grad, (const int64_t[]){W_AT, B_AT, C_AT}, 3, TOTAL, ET_F32));
    return 0;
}

/* One has no gradient: what the sum holds of it stays. */
static int
two(struct et_graph *g, struct et_tensor **want)
{
    struct et_tensor *grad[3];
    (void)want;
    gradients(g, grad);
    grad[1] = NULL;
    add_at(g, grad, (const int64_t[]){W_AT, B_AT, C_AT}, 3);
    return 0;
}

/* From the end of the array to its beginning, with no gaps but one. */
static int
backwards(struct et_graph *g, struct et_tensor **want)
{
    struct et_tensor *grad[3];
    (void)want;
    gradients(g, grad);
    add_at(g, grad, (const int64_t[]){TOTAL - IN * OUT, C_COUNT, 0}, 3);
    return 0;
}

static int
asked_for(struct et_graph *g, struct et_tensor **want)
{
    struct et_tensor *grad[3];
    gradients(g, grad);
    want[0] = add_at(g, grad, (const int64_t[]){W_AT, B_AT, C_AT}, 3);
    return 1;
}

/* Who reads the sum sees what it was. */
static int
read_before(struct et_graph *g, struct et_tensor **want)
{
    struct et_tensor *grad[3];
    gradients(g, grad);
    add_at(g, grad, (const int64_t[]){W_AT, B_AT, C_AT}, 3);
    want[0] = et_mul(g, leaf[S], et_sum(g, grad[0], 0, false));
    return 1;
}

/* Parts are added to what is no leaf, and that becomes the sum. */
static int
to_another(struct et_graph *g, struct et_tensor **want)
{
    struct et_tensor *grad[3], *twice = et_mul_scalar(g, leaf[S], 2);
    (void)want;
    gradients(g, grad);
    const int64_t at[] = {W_AT, B_AT, C_AT};
    et_assign(g, leaf[S], et_add(g, et_pack(g, grad, at, 3, TOTAL, ET_F32), twice));
    return 0;
}

/* Parts that no kernel of the step makes, and one twice. */
static int
leaves(struct et_graph *g, struct et_tensor **want)
{
    struct et_tensor *part[] = {leaf[W], leaf[B], leaf[B]};
    (void)want;
    add_at(g, part, (const int64_t[]){W_AT, B_AT, C_AT}, 3);
    return 0;
}

/* ---- running ---- */

struct answers {
    float sum[TOTAL], value[TOTAL];
    uint64_t kernels;
    size_t slab;
};

static void
compute(formula *f, enum et_dtype low, bool eager, struct answers *a)
{
    float start[TOTAL];
    struct et_graph *g;
    struct et_tensor *want[MOST] = {NULL};
    struct et_graph_stats stats;
    struct et_plan_info info;
    for (int i = 0; i < TOTAL; i++)
        start[i] = cosf((float)i);
    setenv("ETUDE_EAGER", eager ? "1" : "0", 1);
    if (et_tensor_write(cx, leaf[S], start, sizeof start) != ET_OK ||
        et_graph_new(cx, dev, &g) != ET_OK || et_graph_set_low_dtype(g, low) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    unsetenv("ETUDE_EAGER");
    memset(a, 0, sizeof *a);
    for (int round = 0; round < 3; round++) { /* computed, recorded, replayed */
        et_autocast(g, low != ET_NONE);
        int n = f(g, want);
        if (et_eval(g, want, n) != ET_OK ||
            (n && et_tensor_read(cx, want[0], a->value, sizeof a->value) != ET_OK))
            bail("%s", et_error_get(cx)->message);
        et_graph_last_plan(g, &info);
        et_graph_reset(g);
    }
    et_graph_get_stats(g, &stats);
    a->kernels = stats.kernels_run / 3;
    a->slab = info.slab_bytes;
    if (et_tensor_read(cx, leaf[S], a->sum, sizeof a->sum) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    et_graph_free(&g);
}

static const struct row {
    const char *what;
    formula *f;
} rows[] = {
    {"three gradients", all},
    {"the first three", first},
    {"two of three", two},
    {"from the end to the beginning", backwards},
    {"an array that is asked for", asked_for},
    {"a sum that is read", read_before},
    {"parts that are there", leaves},
    {"parts that are added to another array", to_another},
};

static void
check(const struct row *row, enum et_dtype low, const char *where)
{
    static struct answers planned, eager;
    const char *dtype = low ? et_dtype_name(low) : "f32";
    compute(row->f, low, false, &planned);
    compute(row->f, low, true, &eager);
    ok(memcmp(planned.sum, eager.sum, sizeof eager.sum) == 0,
       "%s in %s on %s: planned is eager, bit for bit", row->what, dtype, where);
    if (memcmp(planned.value, eager.value, sizeof eager.value) != 0)
        ok(false, "and so is what is asked for");
}

/* Against an array that is asked for, and so lies there for itself: no kernel adds that
 * or fills what is between its parts. Gradients in low precision are cast by a kernel,
 * which then adds them, too; the factor's is in f32, and one more adds it. */
static void
check_cost(enum et_dtype low, const char *where)
{
    static struct answers apart, together;
    const char *dtype = low ? et_dtype_name(low) : "f32";
    compute(all, low, false, &apart);
    ok(apart.slab < sizeof apart.sum,
       "%s on %s: no array of all has memory (%zu bytes)", dtype, where, apart.slab);
    if (low == ET_NONE) {
        compute(first, low, false, &together);
        ok(together.slab < apart.slab,
           "on %s the product that begins a sum is computed there (%zu bytes)", where,
           together.slab);
        return;
    }
    compute(asked_for, low, false, &together);
    is_int((int64_t)together.kernels - (int64_t)apart.kernels, 2 - 1,
           "%s on %s: nor kernels that add it", dtype, where);
}

int
main(void)
{
    static const char *const devices[] = {"ref", "cpu", "gpusim"};
    static const enum et_dtype lows[] = {ET_NONE, ET_BF16, ET_F16};
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    for (int d = 0; d < 3; d++) {
        if (et_device_open(cx, devices[d], 0, 1, &dev) != ET_OK) {
            diag("%s", et_error_get(cx)->message);
            et_error_clear(cx);
            continue;
        }
        make_leaf(X, 2, (const int64_t[]){ROWS, IN});
        make_leaf(R, 4, (const int64_t[]){2, 4, IMAGE, IMAGE});
        make_leaf(W, 2, (const int64_t[]){OUT, IN});
        make_leaf(B, 1, (const int64_t[]){OUT});
        make_leaf(C, 4, (const int64_t[]){8, 4, 3, 3});
        make_leaf(S, 1, (const int64_t[]){TOTAL});
        for (int k = 0; k < 3; k++) {
            for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
                check(&rows[i], lows[k], devices[d]);
            check_cost(lows[k], devices[d]);
        }
        for (int i = 0; i < LEAVES; i++)
            et_tensor_free(&leaf[i]);
        et_device_close(&dev);
    }
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing leaks");
    et_ctx_free(&cx);
    return done();
}
