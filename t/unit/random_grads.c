/* SPDX-License-Identifier: Apache-2.0 */
/* Random graphs of smooth operations: their gradients against central differences in
 * double, and those of f32, planned and not, on the reference and the cpu device,
 * against those in double.
 *
 * A seed makes leaves and a dozen operations on them: views among them, values that
 * many use, leaves that nobody uses, shapes that are broadcast. The loss adds up means
 * of some values. Sums of gradients that come by several ways, through views and
 * broadcasts, are what single operations (t/ops/gradients) cannot show.
 *
 * ETUDE_SEED=N ETUDE_GRAPHS=1 repeats graph N and prints it. ETUDE_LONG: more
 * graphs. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etude/etude.h"
#include "t/tap.h"

enum {
    LEAVES = 4,
    MOST = 40, /* values, with the leaves */
    DIMS = 3,
    ROOM = 27, /* elements of a leaf */
    LARGEST = 200,
    STEPS = 2, /* of a graph: the second finds the first one's plan */
    SHOWN = 3, /* failures that are described */
};

/* As in t/ops/gradients.c, whose loss is as large. A difference over H is off by h^2 /
 * 6 times the third derivative, which a dozen operations can make 1e5 and more: where
 * it disagrees, one over FINER, whose rounding is still below the tolerance, decides.
 */
static const double h = 1e-5, finer = 1e-6, tolerance = 1e-6;
/* Of f32, by the largest gradient of its graph: a dozen operations with sums of 30
 * terms round some hundred times, by 6e-8 each, of terms that are some times larger
 * than what comes of them. */
static const double tolerance_f32 = 3e-4;

struct leaf {
    int ndim;
    int64_t shape[DIMS], n;
    double v[ROOM];
    struct et_tensor *t;
};

static struct et_ctx *cx;
static struct leaf leaf[LEAVES];
static int n_leaves;

/* The graph that is being built. */
static struct et_graph *graph;
static struct et_tensor *value[MOST];
static int n_values;
static enum et_dtype dtype;
static uint64_t state;
static char listing[8192];
static size_t listed;

/* ---- draws, and the listing ---- */

static int
draw(int n)
{
    state += 0x9e3779b97f4a7c15;
    uint64_t z = state;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (int)((z ^ z >> 31) % (uint64_t)n);
}

__attribute__((format(printf, 1, 2))) static void
list(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    if (listed < sizeof listing)
        listed +=
            (size_t)vsnprintf(listing + listed, sizeof listing - listed, fmt, args);
    va_end(args);
}

static int
number_of(const struct et_tensor *t)
{
    int i = 0;
    while (i < n_values && value[i] != t)
        i++;
    return i;
}

/* ---- operations ---- */

/* One of the values, the newer the likelier. */
static struct et_tensor *
pick(void)
{
    int a = draw(n_values), b = draw(n_values);
    return value[a > b ? a : b];
}

/* Notes what an operation made of A, and of B if there is one. Values stay between -3
 * and 3, where differences are good: GROWS says whether this one may leave that. */
static void
keep(struct et_tensor *y, const char *what, const struct et_tensor *a,
     const struct et_tensor *b, bool grows)
{
    if (!y || n_values == MOST || et_desc_count(&y->desc) > LARGEST)
        return;
    list("  v%d = %s v%d", n_values, what, number_of(a));
    if (b)
        list(" v%d", number_of(b));
    if (grows) {
        y = et_mul_scalar(graph, et_tanh(graph, y), 2);
        list(", 2 tanh of it");
    }
    char text[96];
    list(": %s\n", et_desc_text(&y->desc, text, sizeof text));
    value[n_values++] = y;
}

static void
make_unary(void)
{
    static struct et_tensor *(*const fn[])(struct et_graph *, struct et_tensor *) = {
        et_neg,  et_square,   et_gelu, et_gelu_tanh, et_silu, et_sigmoid,
        et_tanh, et_softplus, et_exp,  et_sin,       et_cos};
    static const char *const names[] = {"neg",  "square",  "gelu", "gelu_tanh",
                                        "silu", "sigmoid", "tanh", "softplus",
                                        "exp",  "sin",     "cos"};
    int k = draw(11);
    struct et_tensor *x = pick();
    keep(fn[k](graph, x), names[k], x, NULL, k != 0 && k != 5 && k != 6 && k < 9);
}

static void
make_scaled(void)
{
    struct et_tensor *x = pick();
    if (draw(2))
        keep(et_mul_scalar(graph, x, 0.25 * (draw(9) - 4)), "mul_scalar", x, NULL,
             false);
    else
        keep(et_add_scalar(graph, x, 0.25 * (draw(9) - 4)), "add_scalar", x, NULL,
             true);
}

/* Can A and B be broadcast to one shape? */
static bool
are_alike(const struct et_desc *a, const struct et_desc *b)
{
    for (int i = 1; i <= a->ndim && i <= b->ndim; i++) {
        int64_t n = a->shape[a->ndim - i], m = b->shape[b->ndim - i];
        if (n != m && n != 1 && m != 1)
            return false;
    }
    return true;
}

static void
make_binary(void)
{
    struct et_tensor *a = pick(), *b = pick();
    if (!are_alike(&a->desc, &b->desc))
        return;
    switch (draw(4)) {
    case 0:
        keep(et_add(graph, a, b), "add", a, b, true);
        break;
    case 1:
        keep(et_sub(graph, a, b), "sub", a, b, true);
        break;
    case 2:
        keep(et_mul(graph, a, b), "mul", a, b, true);
        break;
    case 3: /* by what is far from 0 */
        keep(et_div(graph, a, et_add_scalar(graph, et_square(graph, b), 1)),
             "div by a square and 1", a, b, true);
        break;
    }
}

static void
make_view(void)
{
    struct et_tensor *x = pick();
    int ndim = x->desc.ndim;
    int64_t shape[ET_MAX_DIMS];
    memcpy(shape, x->desc.shape, sizeof shape);
    if (ndim == 0)
        return;
    int a = draw(ndim), b = draw(ndim);
    int64_t start = draw((int)shape[a]), step = 1 + draw(2);
    switch (draw(5)) {
    case 0:
        keep(et_transpose(graph, x, a, b), "transpose", x, NULL, false);
        break;
    case 1:
        keep(et_slice(graph, x, a, start, (shape[a] - start + step - 1) / step, step),
             "slice", x, NULL, false);
        break;
    case 2:
        keep(et_reshape(graph, x, 1, (int64_t[]){-1}), "flatten", x, NULL, false);
        break;
    case 3: /* an axis in front, which repeats, and one that does if it can */
        if (ndim == DIMS)
            return;
        memmove(shape + 1, shape, (size_t)ndim * sizeof *shape);
        shape[0] = 1 + draw(3);
        if (shape[1 + a] == 1)
            shape[1 + a] = 1 + draw(3);
        keep(et_expand(graph, x, ndim + 1, shape), "expand", x, NULL, false);
        break;
    case 4:
        keep(et_flip(graph, x, 1u << a), "flip", x, NULL, false);
        break;
    }
}

static void
make_reduced(void)
{
    struct et_tensor *x = pick();
    int ndim = x->desc.ndim;
    if (ndim == 0)
        return;
    uint32_t axes = 1 + (uint32_t)draw((1 << ndim) - 1);
    bool keeps = draw(2);
    int axis = draw(ndim);
    switch (draw(6)) {
    case 0:
        keep(et_sum(graph, x, axes, keeps), "sum", x, NULL, true);
        break;
    case 1:
        keep(et_mean(graph, x, axes, keeps), "mean", x, NULL, false);
        break;
    case 2:
        keep(et_softmax(graph, x, axis), "softmax", x, NULL, false);
        break;
    case 3:
        keep(et_log_softmax(graph, x, axis), "log_softmax", x, NULL, true);
        break;
    case 4:
        keep(et_layer_norm(graph, x, NULL, NULL, 1, 0.3), "layer_norm", x, NULL, false);
        break;
    case 5:
        keep(et_var(graph, x, axes, keeps, 0), "var", x, NULL, true);
        break;
    }
}

static void
make_joined(void)
{
    struct et_tensor *x = pick(), *y = pick();
    int ndim = x->desc.ndim;
    if (ndim == 0 || y->desc.ndim != ndim)
        return;
    int axis = draw(ndim);
    int64_t before[ET_MAX_DIMS] = {0}, after[ET_MAX_DIMS] = {0};
    bool fits = true, multiplies = ndim >= 2;
    for (int i = 0; i < ndim; i++) {
        fits &= i == axis || x->desc.shape[i] == y->desc.shape[i];
        multiplies &= i == ndim - 2 || x->desc.shape[i] == y->desc.shape[i];
    }
    switch (draw(3)) {
    case 0:
        if (fits)
            keep(et_concat(graph, (struct et_tensor *[]){x, y, x}, 3, axis),
                 "concat of three:", x, y, false);
        break;
    case 1:
        before[axis] = draw(2);
        after[axis] = draw(3);
        keep(et_pad(graph, x, before, after, 0.5), "pad", x, NULL, false);
        break;
    case 2: /* x y^T, batched over what is in front */
        if (multiplies)
            keep(et_matmul(graph, x, y, false, true), "product with turned", x, y,
                 true);
        break;
    }
}

/* ---- a graph ---- */

static void
make_leaves(uint64_t seed, struct et_device *dev)
{
    state = seed;
    n_leaves = 2 + draw(LEAVES - 1);
    for (int i = 0; i < n_leaves; i++) {
        struct leaf *l = &leaf[i];
        *l = (struct leaf){.ndim = draw(DIMS + 1), .n = 1};
        for (int d = 0; d < l->ndim; d++)
            l->n *= l->shape[d] = 1 + draw(3);
        if (et_tensor_new(cx, dev, dtype, l->ndim, l->shape, ET_ROW_MAJOR, NULL,
                          &l->t) != ET_OK)
            bail("%s", et_error_get(cx)->message);
    }
}

/* What STEP's leaves hold: between -1.5 and 1.5. */
static void
fill_leaves(uint64_t seed, int step)
{
    state = seed * STEPS + (uint64_t)step + 99;
    for (int i = 0; i < n_leaves; i++)
        for (int64_t k = 0; k < leaf[i].n; k++)
            leaf[i].v[k] = (draw(3001) - 1500) / 1000.0;
}

static void
write_leaf(const struct leaf *l)
{
    float narrow[ROOM];
    for (int64_t k = 0; k < l->n; k++)
        narrow[k] = (float)l->v[k];
    bool wide = dtype == ET_F64;
    if (et_tensor_write(cx, l->t, wide ? (const void *)l->v : narrow,
                        (size_t)l->n * et_dtype_size(dtype)) != ET_OK)
        bail("%s", et_error_get(cx)->message);
}

static double
read(const struct et_tensor *t, double *out, int64_t n)
{
    float narrow[ROOM];
    bool wide = dtype == ET_F64;
    if (et_tensor_read(cx, t, wide ? (void *)out : narrow,
                       (size_t)n * et_dtype_size(dtype)) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    for (int64_t k = 0; k < n && !wide; k++)
        out[k] = narrow[k];
    return out[0];
}

/* The loss of the graph of SEED: means of squares of three values, newer ones likelier,
 * weighted. */
static struct et_tensor *
build(uint64_t seed)
{
    static void (*const make[])(void) = {make_unary,   make_scaled, make_binary,
                                         make_binary,  make_view,   make_view,
                                         make_reduced, make_joined};
    state = seed ^ 0x9ad5;
    listed = 0;
    listing[0] = '\0';
    n_values = 0;
    for (int i = 0; i < n_leaves; i++) {
        char text[96];
        list("  v%d = leaf %s\n", i, et_desc_text(&leaf[i].t->desc, text, sizeof text));
        value[n_values++] = leaf[i].t;
    }
    for (int tries = 8 + draw(16); tries > 0; tries--)
        make[draw(8)]();
    struct et_tensor *loss = NULL;
    for (int i = 0; i < 3; i++) {
        struct et_tensor *v = pick(), *s = et_add_scalar(graph, v, 0.5 * (1 + draw(4)));
        list("  loss has v%d\n", number_of(v));
        uint32_t all = (1u << v->desc.ndim) - 1;
        s = et_mean(graph, et_square(graph, s), all, false);
        loss = loss ? et_add(graph, loss, s) : s;
    }
    return loss;
}

static double
loss_of(uint64_t seed)
{
    double out[ROOM];
    struct et_tensor *loss = build(seed);
    if (et_eval(graph, &loss, 1) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    read(loss, out, 1);
    et_graph_reset(graph);
    return out[0];
}

struct gradients {
    bool is_used[LEAVES];
    double v[LEAVES][ROOM];
};

static void
gradients_of(uint64_t seed, struct gradients *out)
{
    struct et_tensor *params[LEAVES], *grads[LEAVES], *want[LEAVES + 1];
    int n = 0;
    memset(out, 0, sizeof *out);
    for (int i = 0; i < n_leaves; i++)
        params[i] = leaf[i].t;
    struct et_tensor *loss = build(seed);
    if (et_grad(graph, loss, params, n_leaves, grads) != ET_OK)
        bail("%s\n%s", et_error_get(cx)->message, listing);
    for (int i = 0; i < n_leaves; i++)
        if (grads[i])
            want[n++] = grads[i];
    want[n++] = loss;
    if (et_eval(graph, want, n) != ET_OK)
        bail("%s\n%s", et_error_get(cx)->message, listing);
    for (int i = 0; i < n_leaves; i++)
        if (grads[i]) {
            out->is_used[i] = true;
            read(grads[i], out->v[i], leaf[i].n);
        }
    et_graph_reset(graph);
}

/* ---- what they should be ---- */

static void
differences_of(uint64_t seed, double by, struct gradients *out)
{
    memset(out, 0, sizeof *out);
    for (int i = 0; i < n_leaves; i++)
        for (int64_t k = 0; k < leaf[i].n; k++) {
            double x = leaf[i].v[k];
            leaf[i].v[k] = x + by;
            write_leaf(&leaf[i]);
            double above = loss_of(seed);
            leaf[i].v[k] = x - by;
            write_leaf(&leaf[i]);
            double below = loss_of(seed);
            leaf[i].v[k] = x;
            write_leaf(&leaf[i]);
            out->v[i][k] = (above - below) / (2 * by);
        }
}

static double
scale_of(const struct gradients *g)
{
    double most = 1;
    for (int i = 0; i < n_leaves; i++)
        for (int64_t k = 0; k < leaf[i].n; k++)
            most = fmax(most, fabs(g->v[i][k]));
    return most;
}

/* The first element by which they are more than OFF of WANT's largest apart, in WHY;
 * true: there is none. */
static bool
agree(const struct gradients *got, const struct gradients *want, double off,
      char why[128])
{
    double most = off * scale_of(want);
    for (int i = 0; i < n_leaves; i++)
        for (int64_t k = 0; k < leaf[i].n; k++)
            if (!(fabs(got->v[i][k] - want->v[i][k]) <= most)) {
                snprintf(why, 128, "element %d of leaf %d: got %.9g, wanted %.9g",
                         (int)k, i, got->v[i][k], want->v[i][k]);
                return false;
            }
    return true;
}

/* Is GOT what differences are? */
static bool
is_slope(uint64_t seed, const struct gradients *got, char why[128])
{
    struct gradients want;
    differences_of(seed, h, &want);
    if (agree(got, &want, tolerance, why))
        return true;
    differences_of(seed, finer, &want);
    return agree(got, &want, tolerance, why);
}

/* ---- ways of running it ---- */

static const struct way {
    const char *name, *device;
    bool eager;
} ways[] = {
    {"plans of the reference", "ref", false},
    {"the reference without plans", "ref", true},
    {"plans of the cpu device", "cpu", false},
    {"the cpu device without plans", "cpu", true},
};

static struct gradients (*right)[STEPS]; /* of each graph, in double */

static struct et_device *
open_way(const struct way *way)
{
    struct et_device *dev;
    if (et_device_open(cx, way->device, 0, 1, &dev) != ET_OK) {
        skip(1, et_error_get(cx)->message);
        et_error_clear(cx);
        return NULL;
    }
    if (way->eager)
        setenv("ETUDE_EAGER", "1", 1);
    if (et_graph_new(cx, dev, &graph) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    unsetenv("ETUDE_EAGER");
    return dev;
}

static void
close_way(struct et_device *dev)
{
    et_graph_free(&graph);
    et_device_close(&dev);
}

/* Is graph number I, of SEED, right in all steps? WIDE: in double, against
 * differences. */
static bool
is_right(struct et_device *dev, uint64_t seed, int i, bool wide)
{
    bool good = true;
    dtype = wide ? ET_F64 : ET_F32;
    make_leaves(seed, dev);
    for (int step = 0; step < STEPS && good; step++) {
        struct gradients got;
        char why[128];
        fill_leaves(seed, step);
        for (int k = 0; k < n_leaves; k++)
            write_leaf(&leaf[k]);
        gradients_of(seed, &got);
        if (wide)
            right[i][step] = got;
        if (!wide)
            good = agree(&got, &right[i][step], tolerance_f32, why);
        else if (step == 0)
            good = is_slope(seed, &got, why);
        if (!good)
            diag("%s\nseed %llu, step %d:\n%s", why, (unsigned long long)seed, step,
                 listing);
    }
    for (int k = 0; k < n_leaves; k++)
        et_tensor_free(&leaf[k].t);
    return good;
}

static void
run_way(const struct way *way, uint64_t seed, int graphs, bool wide)
{
    int failed = 0;
    struct et_device *dev = open_way(way);
    if (!dev)
        return;
    for (int i = 0; i < graphs && failed < SHOWN; i++)
        failed += !is_right(dev, seed + (uint64_t)i, i, wide);
    if (graphs == 1)
        diag("seed %llu:\n%s", (unsigned long long)seed, listing);
    ok(failed == 0,
       wide ? "%s differentiate %d graphs in double as differences do"
            : "%s differentiate the same %d in f32 as in double",
       way->name, graphs);
    close_way(dev);
}

int
main(void)
{
    const char *from = getenv("ETUDE_SEED"), *many = getenv("ETUDE_GRAPHS");
    uint64_t seed = from ? strtoull(from, NULL, 10) : 1;
    int graphs = many                   ? (int)strtol(many, NULL, 10)
                 : getenv("ETUDE_LONG") ? 20000
                                        : 1000;
    right = calloc((size_t)graphs, sizeof *right);
    if (!right || et_ctx_new(&cx) != ET_OK)
        bail("no memory");
    run_way(&ways[0], seed, graphs, true);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        run_way(&ways[i], seed, graphs, false);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left allocated");
    et_ctx_free(&cx);
    free(right);
    return done();
}
