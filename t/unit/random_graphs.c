/* Random graphs: what a plan computes against what the graph says.
 *
 * A seed makes a graph of some twenty operations on leaves, some of which lie on one
 * storage and overlap; and assignments to those leaves, among them exchanges and values
 * that are views of leaves. Each operation is also computed here, at once and in
 * double. All leaves hold small whole numbers and every operation keeps them whole and
 * small, so results are exact in whatever order they are computed: they are compared
 * with ==, in plans of the reference and of the cpu device and without plans.
 *
 * What operations there are, on which shapes, depends on the seed alone; where the
 * leaves lie, where slices begin and what is asked for, on the layout as well. So
 * graphs follow each other that differ in nothing else: the plan of one must not be run
 * for the other.
 *
 * ETUDE_SEED=N ETUDE_GRAPHS=1 repeats graph N and prints it. ETUDE_LONG: more graphs.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "etude/comm.h"
#include "etude/etude.h"
#include "t/tap.h"

enum {
    DIMS = 4,
    ROOM = 128,  /* elements of a value, at most */
    VALUES = 48, /* of a graph */
    LEAVES = 6,  /* f32, which are assigned to as well */
    FLAT = 40,   /* elements of the storage that leaves share */
    LAYOUTS = 3, /* of a graph */
    STEPS = 2,   /* of a layout: the second one finds the first one's plans */
    LEAST = -4,
    MOST = 4,  /* of what leaves hold at first */
    WORLD = 2, /* ranks: another one that always adds the same as this one */
    SHOWN = 3, /* failures that are described */
};

struct value {
    struct et_tensor *t;
    enum et_dtype dtype;
    int ndim;
    int64_t shape[DIMS];
    int64_t n;
    double bound; /* no element is larger, whatever the leaves hold */
    bool of_leaf; /* it may lie in a leaf's memory, and change with that */
    double v[ROOM];
};

struct leaf {
    struct et_tensor *t;
    int ndim;
    int64_t shape[DIMS];
    int64_t n, at; /* AT: its place in the flat storage; -1: it has its own */
    double v[ROOM];
};

/* How graphs are run. */
struct way {
    const char *name, *device;
    bool eager;
};
static const struct way ways[] = {
    {"plans of the reference", "ref", false},
    {"the reference without plans", "ref", true},
    {"plans of the cpu device", "cpu", false},
    {"the cpu device without plans", "cpu", true},
};

static struct et_ctx *cx;
static struct et_device *dev;
static struct et_graph *graph;
static struct et_comm *comm;
static struct et_storage *storage; /* of FLAT elements */
static double flat[FLAT];

static struct value value[VALUES];
static int n_values;
static struct leaf leaf[LEAVES];
static int n_leaves;
static uint64_t state;   /* of the random numbers */
static uint64_t variant; /* likewise: of what the layouts of a seed do not share */
static char listing[1 << 14];
static size_t listed;

/* ---- random numbers: splitmix64 ---- */

static int
draw_from(uint64_t *from, int n)
{
    uint64_t z = *from += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (int)((z ^ (z >> 31)) % (uint64_t)n);
}

/* 0 to N - 1, the same in all layouts */
static int
draw(int n)
{
    return draw_from(&state, n);
}

/* 0 to N - 1, in each layout another */
static int
draw_apart(int n)
{
    return draw_from(&variant, n);
}

/* ---- the other rank ---- */

/* Comes late now and then, so that what reads or frees too early is seen. */
static et_status
add_the_same(void *self, const struct et_comm_call *call, char *why, size_t why_size)
{
    static unsigned calls;
    (void)self, (void)why, (void)why_size;
    if (++calls % 8 == 0)
        usleep(30);
    const float *in = call->in;
    float *out = call->out;
    for (int64_t i = 0; call->kind == ET_COMM_ALL_REDUCE && i < call->n; i++)
        out[i] = WORLD * in[i];
    return ET_OK;
}

static void
leave(void *self, bool failed)
{
    (void)self, (void)failed;
}

static const struct et_comm_class twins = {"twins", add_the_same, leave};

/* ---- values ---- */

static int64_t
count(int ndim, const int64_t *shape)
{
    int64_t n = 1;
    for (int i = 0; i < ndim; i++)
        n *= shape[i];
    return n;
}

/* The largest whole number up to which all are in DTYPE. */
static double
whole_in(enum et_dtype dtype)
{
    return dtype == ET_BF16  ? 256
           : dtype == ET_F16 ? 2048
           : dtype == ET_U8  ? 255
                             : 1 << 22;
}

static void
list(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(listing + listed, sizeof listing - listed, fmt, args);
    va_end(args);
    listed += listed + (size_t)n < sizeof listing ? (size_t)n : 0;
}

/* A value of that shape, whose elements the caller fills; NULL: it has no room, or
 * would hold numbers that are not exact. */
static struct value *
claim(enum et_dtype dtype, int ndim, const int64_t *shape, double bound)
{
    if (n_values == VALUES || ndim > DIMS || count(ndim, shape) > ROOM ||
        bound > whole_in(dtype))
        return NULL;
    struct value *v = &value[n_values];
    *v = (struct value){.dtype = dtype, .ndim = ndim, .bound = bound};
    for (int i = 0; i < ndim; i++)
        v->shape[i] = shape[i];
    v->n = count(ndim, shape);
    return v;
}

static int
number_of(const struct value *v)
{
    return (int)(v - value);
}

/* V, which claim gave, is T; the line tells what it is made of. */
static void
add(struct value *v, struct et_tensor *t, const char *op, const struct value *a,
    const struct value *b, const char *fmt, ...)
{
    char more[128] = "";
    va_list args;
    va_start(args, fmt);
    vsnprintf(more, sizeof more, fmt, args);
    va_end(args);
    v->t = t;
    v->of_leaf |= a && a->t == t && a->of_leaf; /* nothing was to be done */
    list("  v%d %s[", n_values, et_dtype_name(v->dtype));
    for (int i = 0; i < v->ndim; i++)
        list("%s%d", i ? "," : "", (int)v->shape[i]);
    list("] = %s", op);
    if (a)
        list(" v%d", number_of(a));
    if (b)
        list(" v%d", number_of(b));
    list(" %s\n", more);
    n_values++;
}

/* One of the values, the newer the likelier: chains grow. */
static struct value *
pick(void)
{
    int a = draw(n_values), b = draw(n_values);
    return &value[a > b ? a : b];
}

/* One of dtype F32; NULL: the one that was drawn is not. */
static struct value *
pick_f32(void)
{
    struct value *v = pick();
    return v->dtype == ET_F32 ? v : NULL;
}

/* The coordinates of element I of a row-major array. */
static void
locate(int64_t i, int ndim, const int64_t *shape, int64_t *at)
{
    for (int d = ndim - 1; d >= 0; d--) {
        at[d] = i % shape[d];
        i /= shape[d];
    }
}

/* The element of V at AT, whose last axes are V's: axes of length 1 repeat. */
static double
element(const struct value *v, int ndim, const int64_t *at)
{
    int64_t i = 0;
    for (int d = 0; d < v->ndim; d++)
        i = i * v->shape[d] + (v->shape[d] == 1 ? 0 : at[ndim - v->ndim + d]);
    return v->v[i];
}

/* NumPy's rule; false: the shapes do not go together. */
static bool
broadcast(const struct value *a, const struct value *b, int *ndim, int64_t *shape)
{
    *ndim = a->ndim > b->ndim ? a->ndim : b->ndim;
    for (int d = 1; d <= *ndim; d++) {
        int64_t x = d <= a->ndim ? a->shape[a->ndim - d] : 1;
        int64_t y = d <= b->ndim ? b->shape[b->ndim - d] : 1;
        if (x != y && x != 1 && y != 1)
            return false;
        shape[*ndim - d] = x > y ? x : y;
    }
    return true;
}

/* ---- operations: each makes a value, or nothing where what it drew does not fit ----
 */

static double
sign_of(double x)
{
    return (x > 0) - (x < 0);
}

static void
make_unary(void)
{
    struct value *x = pick(), *y;
    int which = draw(6);
    static const char *const names[] = {"neg",  "abs",    "relu",
                                        "sign", "square", "floor"};
    if (x->dtype == ET_U8)
        return;
    y = claim(x->dtype, x->ndim, x->shape, which == 4 ? x->bound * x->bound : x->bound);
    if (!y)
        return;
    for (int64_t i = 0; i < x->n; i++) {
        double v = x->v[i];
        const double all[] = {-v, fabs(v), v > 0 ? v : 0, sign_of(v), v * v, v};
        y->v[i] = all[which];
    }
    struct et_tensor *(*const fn[])(struct et_graph *, struct et_tensor *) = {
        et_neg, et_abs, et_relu, et_sign, et_square, et_floor};
    add(y, fn[which](graph, x->t), names[which], x, NULL, "");
}

static void
make_scalar(void)
{
    struct value *x = pick(), *y;
    int which = draw(3), a = draw(7) - 3;
    if (x->dtype == ET_U8)
        return;
    y = claim(x->dtype, x->ndim, x->shape,
              which == 0   ? x->bound + 3
              : which == 1 ? 3 * x->bound
                           : 7);
    if (!y)
        return;
    for (int64_t i = 0; i < x->n; i++)
        y->v[i] = which == 0   ? x->v[i] + a
                  : which == 1 ? x->v[i] * a
                               : fmin(fmax(x->v[i], a), a + 4);
    if (which == 0)
        add(y, et_add_scalar(graph, x->t, a), "add_scalar", x, NULL, "%d", a);
    else if (which == 1)
        add(y, et_mul_scalar(graph, x->t, a), "mul_scalar", x, NULL, "%d", a);
    else
        add(y, et_clamp(graph, x->t, a, a + 4), "clamp", x, NULL, "%d", a);
}

static void
make_binary(void)
{
    static const char *const names[] = {"add",     "sub",  "mul",  "maximum",
                                        "minimum", "less", "equal"};
    struct et_tensor *(*const fn[])(struct et_graph *, struct et_tensor *,
                                    struct et_tensor *) = {
        et_add, et_sub, et_mul, et_maximum, et_minimum, et_less, et_equal};
    struct value *a = pick(), *b = pick();
    int which = draw(7), ndim;
    int64_t shape[DIMS], at[DIMS];
    if (a->dtype != b->dtype || a->dtype == ET_U8 || !broadcast(a, b, &ndim, shape))
        return;
    double sum = a->bound + b->bound, product = a->bound * b->bound;
    struct value *y = claim(which >= 5 ? ET_U8 : a->dtype, ndim, shape,
                            which >= 5   ? 1
                            : which == 2 ? product
                                         : sum);
    if (!y)
        return;
    for (int64_t i = 0; i < y->n; i++) {
        locate(i, ndim, shape, at);
        double p = element(a, ndim, at), q = element(b, ndim, at);
        const double all[] = {p + q,      p - q, p * q, fmax(p, q),
                              fmin(p, q), p < q, p == q};
        y->v[i] = all[which];
    }
    add(y, fn[which](graph, a->t, b->t), names[which], a, b, "");
}

static void
make_where(void)
{
    struct value *c = pick(), *a = pick(), *b = pick(), both = {0};
    int ndim, all;
    int64_t shape[DIMS], at[DIMS];
    if (a->dtype != b->dtype || a->dtype == ET_U8 ||
        !broadcast(a, b, &both.ndim, both.shape) || !broadcast(&both, c, &all, shape))
        return;
    ndim = all;
    struct value *y =
        claim(a->dtype, ndim, shape, a->bound > b->bound ? a->bound : b->bound);
    if (!y)
        return;
    for (int64_t i = 0; i < y->n; i++) {
        locate(i, ndim, shape, at);
        y->v[i] =
            element(c, ndim, at) != 0 ? element(a, ndim, at) : element(b, ndim, at);
    }
    add(y, et_where(graph, c->t, a->t, b->t), "where", a, b, "by v%d", number_of(c));
}

static void
make_cast(void)
{
    static const enum et_dtype to[] = {ET_F32, ET_F32, ET_BF16, ET_F16};
    struct value *x = pick();
    enum et_dtype dtype = to[draw(4)];
    struct value *y =
        x->dtype == dtype ? NULL : claim(dtype, x->ndim, x->shape, x->bound);
    if (!y)
        return;
    memcpy(y->v, x->v, sizeof y->v);
    add(y, et_cast(graph, x->t, dtype), "cast", x, NULL, "");
}

static void
make_reshape(void)
{
    struct value *x = pick();
    int64_t shape[DIMS];
    int ndim = draw(2) + 1;
    shape[0] = x->n;
    if (ndim == 2) {
        shape[1] = 2 + draw(2);
        if (x->n % shape[1])
            return;
        shape[0] = x->n / shape[1];
    }
    struct value *y = claim(x->dtype, ndim, shape, x->bound);
    if (!y)
        return;
    memcpy(y->v, x->v, sizeof y->v);
    y->of_leaf = x->of_leaf;
    add(y, et_reshape(graph, x->t, ndim, shape), "reshape", x, NULL, "");
}

static void
make_permute(void)
{
    struct value *x = pick();
    int axes[DIMS];
    int64_t shape[DIMS], at[DIMS], from[DIMS];
    if (x->ndim < 2)
        return;
    for (int i = 0; i < x->ndim; i++)
        axes[i] = i;
    for (int i = x->ndim - 1; i > 0; i--) {
        int j = draw(i + 1), old = axes[i];
        axes[i] = axes[j];
        axes[j] = old;
    }
    for (int i = 0; i < x->ndim; i++)
        shape[i] = x->shape[axes[i]];
    struct value *y = claim(x->dtype, x->ndim, shape, x->bound);
    if (!y)
        return;
    for (int64_t i = 0; i < y->n; i++) {
        locate(i, y->ndim, y->shape, at);
        for (int d = 0; d < x->ndim; d++)
            from[axes[d]] = at[d];
        y->v[i] = element(x, x->ndim, from);
    }
    y->of_leaf = x->of_leaf;
    add(y, et_permute(graph, x->t, axes), "permute", x, NULL, "by %d %d...", axes[0],
        axes[1]);
}

static void
make_expand(void)
{
    struct value *x = pick();
    int64_t shape[DIMS + 1], at[DIMS];
    int more = draw(2), ndim = x->ndim + more;
    shape[0] = 2;
    for (int d = 0; d < x->ndim; d++)
        shape[more + d] = x->shape[d] == 1 && draw(2) ? 3 : x->shape[d];
    struct value *y = claim(x->dtype, ndim, shape, x->bound);
    if (!y)
        return;
    for (int64_t i = 0; i < y->n; i++) {
        locate(i, ndim, shape, at);
        y->v[i] = element(x, ndim, at);
    }
    y->of_leaf = x->of_leaf;
    add(y, et_expand(graph, x->t, ndim, shape), "expand", x, NULL, "");
}

static void
make_slice(void)
{
    struct value *x = pick();
    int64_t shape[DIMS], at[DIMS];
    if (x->ndim == 0)
        return;
    int axis = draw(x->ndim), step = 1 + draw(2), length = (int)x->shape[axis];
    int size = 1 + draw((length + step - 1) / step);
    int start = draw_apart(length - (size - 1) * step);
    memcpy(shape, x->shape, sizeof shape);
    shape[axis] = size;
    struct value *y = claim(x->dtype, x->ndim, shape, x->bound);
    if (!y)
        return;
    for (int64_t i = 0; i < y->n; i++) {
        int64_t from = 0;
        locate(i, y->ndim, shape, at);
        at[axis] = start + at[axis] * step;
        for (int d = 0; d < x->ndim; d++)
            from = from * x->shape[d] + at[d];
        y->v[i] = x->v[from];
    }
    y->of_leaf = x->of_leaf;
    add(y, et_slice(graph, x->t, axis, start, size, step), "slice", x, NULL,
        "axis %d from %d every %d", axis, start, step);
}

static void
make_flip(void)
{
    struct value *x = pick();
    int64_t at[DIMS];
    if (x->ndim == 0 || x->dtype == ET_U8)
        return;
    uint32_t axes = 1 + (uint32_t)draw((1 << x->ndim) - 1);
    struct value *y = claim(x->dtype, x->ndim, x->shape, x->bound);
    if (!y)
        return;
    for (int64_t i = 0; i < y->n; i++) {
        int64_t from = 0;
        locate(i, y->ndim, y->shape, at);
        for (int d = 0; d < x->ndim; d++)
            from =
                from * x->shape[d] + (axes >> d & 1 ? x->shape[d] - 1 - at[d] : at[d]);
        y->v[i] = x->v[from];
    }
    add(y, et_flip(graph, x->t, axes), "flip", x, NULL, "mask %u", axes);
}

static void
make_reduction(void)
{
    static const char *const names[] = {"sum", "amax", "amin"};
    struct value *x = pick_f32();
    int which = draw(3), ndim = 0;
    int64_t shape[DIMS], at[DIMS];
    if (!x || x->ndim == 0)
        return;
    uint32_t axes = 1 + (uint32_t)draw((1 << x->ndim) - 1);
    bool keep = draw(2);
    int64_t gone = 1;
    for (int d = 0; d < x->ndim; d++)
        if (!(axes >> d & 1))
            shape[ndim++] = x->shape[d];
        else if (gone *= x->shape[d], keep)
            shape[ndim++] = 1;
    struct value *y =
        claim(ET_F32, ndim, shape, which == 0 ? x->bound * (double)gone : x->bound);
    if (!y)
        return;
    for (int64_t i = 0; i < y->n; i++)
        y->v[i] = which == 0 ? 0 : which == 1 ? -INFINITY : INFINITY;
    for (int64_t i = 0; i < x->n; i++) {
        int64_t to = 0;
        locate(i, x->ndim, x->shape, at);
        for (int d = 0; d < x->ndim; d++)
            if (!(axes >> d & 1))
                to = to * x->shape[d] + at[d];
        double *r = &y->v[to], v = x->v[i];
        *r = which == 0 ? *r + v : which == 1 ? fmax(*r, v) : fmin(*r, v);
    }
    struct et_tensor *(*const fn[])(struct et_graph *, struct et_tensor *, uint32_t,
                                    bool) = {et_sum, et_amax, et_amin};
    add(y, fn[which](graph, x->t, axes, keep), names[which], x, NULL, "mask %u", axes);
}

static void
make_matmul(void)
{
    struct value *a = pick_f32(), *b = pick_f32();
    bool ta = draw(2), tb = draw(2), linear = draw(2);
    if (!a || !b || a->ndim != 2 || b->ndim != 2)
        return;
    if (linear) {
        ta = false;
        tb = true;
    }
    int64_t m = a->shape[ta], k = a->shape[!ta], n = b->shape[!tb];
    const int64_t shape[] = {m, n};
    if (b->shape[tb] != k)
        return;
    struct value *y = claim(ET_F32, 2, shape, a->bound * b->bound * (double)k);
    if (!y)
        return;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum +=
                    a->v[ta ? p * m + i : i * k + p] * b->v[tb ? j * k + p : p * n + j];
            y->v[i * n + j] = sum;
        }
    if (linear)
        add(y, et_linear(graph, a->t, b->t, NULL), "linear", a, b, "");
    else
        add(y, et_matmul(graph, a->t, b->t, ta, tb), "matmul", a, b, "%d %d", ta, tb);
}

static void
make_concat(void)
{
    struct value *a = pick(), *b = pick();
    int64_t shape[DIMS], at[DIMS];
    if (a->ndim == 0 || a->ndim != b->ndim || a->dtype != b->dtype)
        return;
    int axis = draw(a->ndim);
    for (int d = 0; d < a->ndim; d++)
        if (d != axis && a->shape[d] != b->shape[d])
            return;
    memcpy(shape, a->shape, sizeof shape);
    shape[axis] += b->shape[axis];
    struct value *y =
        claim(a->dtype, a->ndim, shape, a->bound > b->bound ? a->bound : b->bound);
    if (!y)
        return;
    for (int64_t i = 0; i < y->n; i++) {
        locate(i, y->ndim, shape, at);
        bool second = at[axis] >= a->shape[axis];
        const struct value *from = second ? b : a;
        at[axis] -= second ? a->shape[axis] : 0;
        int64_t j = 0;
        for (int d = 0; d < y->ndim; d++)
            j = j * from->shape[d] + at[d];
        y->v[i] = from->v[j];
    }
    struct et_tensor *parts[] = {a->t, b->t};
    add(y, et_concat(graph, parts, 2, axis), "concat", a, b, "axis %d", axis);
}

static void
make_pad(void)
{
    struct value *x = pick_f32();
    int64_t before[DIMS], after[DIMS], shape[DIMS], at[DIMS];
    if (!x || x->ndim == 0)
        return;
    for (int d = 0; d < x->ndim; d++) {
        before[d] = draw(3) == 0;
        after[d] = draw(3) == 0;
        shape[d] = before[d] + x->shape[d] + after[d];
    }
    struct value *y = claim(ET_F32, x->ndim, shape, x->bound > 2 ? x->bound : 2);
    if (!y)
        return;
    for (int64_t i = 0; i < y->n; i++) {
        int64_t from = 0;
        bool inside = true;
        locate(i, y->ndim, shape, at);
        for (int d = 0; d < x->ndim; d++) {
            int64_t c = at[d] - before[d];
            inside = inside && c >= 0 && c < x->shape[d];
            from = from * x->shape[d] + c;
        }
        y->v[i] = inside ? x->v[from] : 2;
    }
    add(y, et_pad(graph, x->t, before, after, 2), "pad", x, NULL, "");
}

/* Two values in a flat array, with gaps. */
static void
make_pack(void)
{
    struct value *a = pick_f32(), *b = pick_f32();
    int64_t gap = draw(3), offsets[2], total;
    if (!a || !b || a->ndim > 3 || b->ndim > 3) /* 4-d ones are packed channels-last */
        return;
    offsets[0] = draw(2);
    offsets[1] = offsets[0] + a->n + gap;
    total = offsets[1] + b->n + draw(2);
    if (total < leaf[0].n)
        total = leaf[0].n;
    struct value *y =
        claim(ET_F32, 1, &total, a->bound > b->bound ? a->bound : b->bound);
    if (!y)
        return;
    for (int64_t i = 0; i < a->n; i++)
        y->v[offsets[0] + i] = a->v[i];
    for (int64_t i = 0; i < b->n; i++)
        y->v[offsets[1] + i] = b->v[i];
    struct et_tensor *parts[] = {a->t, b->t};
    add(y, et_pack(graph, parts, offsets, 2, total, ET_F32), "pack", a, b, "at %d, %d",
        (int)offsets[0], (int)offsets[1]);
}

static void
make_fill(void)
{
    const int64_t shape[] = {1 + draw(3), 3};
    int ndim = draw(3), a = draw(5) - 2;
    struct value *y = claim(ET_F32, ndim, shape, 2);
    if (!y)
        return;
    for (int64_t i = 0; i < y->n; i++)
        y->v[i] = a;
    add(y, et_fill(graph, ET_F32, ndim, shape, a), "fill", NULL, NULL, "%d", a);
}

static void
make_all_reduce(void)
{
    struct value *x = pick_f32();
    struct value *y = x ? claim(ET_F32, x->ndim, x->shape, WORLD * x->bound) : NULL;
    if (!y)
        return;
    for (int64_t i = 0; i < x->n; i++)
        y->v[i] = WORLD * x->v[i];
    add(y, et_all_reduce(graph, x->t, NULL), "all_reduce", x, NULL, "");
}

/* How often each is tried. */
static const struct {
    void (*make)(void);
    int weight;
} operations[] = {
    {make_unary, 6},      {make_scalar, 4},  {make_binary, 14},   {make_where, 3},
    {make_cast, 4},       {make_reshape, 3}, {make_permute, 4},   {make_expand, 2},
    {make_slice, 4},      {make_flip, 1},    {make_reduction, 4}, {make_matmul, 5},
    {make_concat, 4},     {make_pad, 2},     {make_pack, 3},      {make_fill, 1},
    {make_all_reduce, 2},
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

static void
make_one(void)
{
    int all = 0, i = 0;
    for (int k = 0; k < OPERATIONS; k++)
        all += operations[k].weight;
    int at = draw(all);
    while (at >= operations[i].weight)
        at -= operations[i++].weight;
    operations[i].make();
}

/* ---- leaves ---- */

/* Shapes by SEED; places by LAYOUT: half of the leaves lie on the storage. */
static void
make_leaves(uint64_t seed, int layout)
{
    static const int64_t sizes[] = {1, 2, 3, 3, 3};
    int64_t room[LEAVES];
    state = seed;
    n_leaves = 3 + draw(LEAVES - 2);
    for (int i = 0; i < n_leaves; i++) {
        struct leaf *l = &leaf[i];
        *l = (struct leaf){.ndim = draw(4) == 0 ? draw(4) : 2};
        for (int d = 0; d < l->ndim; d++)
            l->shape[d] = sizes[draw(5)];
        if (i == 0) { /* one that packs fit in */
            l->ndim = 1;
            l->shape[0] = 4 + draw(12);
        }
        l->n = count(l->ndim, l->shape);
        room[i] = FLAT - l->n;
    }
    state = seed * LAYOUTS + (uint64_t)layout + 1;
    for (int i = 0; i < n_leaves; i++) {
        struct leaf *l = &leaf[i];
        struct et_desc desc;
        l->at = draw(2) ? -1 : draw(3) ? draw(6) : draw((int)room[i] + 1);
        et_desc_init(&desc, ET_F32, l->ndim, l->shape, ET_ROW_MAJOR);
        et_status status = l->at < 0
                               ? et_tensor_new(cx, dev, ET_F32, l->ndim, l->shape,
                                               ET_ROW_MAJOR, NULL, &l->t)
                               : et_tensor_view(cx, storage, l->at, &desc, NULL, &l->t);
        if (status != ET_OK)
            bail("%s", et_error_get(cx)->message);
    }
}

/* What L holds, of those on the storage as the storage has it. */
static double *
contents(struct leaf *l)
{
    return l->at < 0 ? l->v : flat + l->at;
}

static void
fill_leaves(void)
{
    float bytes[ROOM];
    for (int i = 0; i < n_leaves; i++) {
        double *v = contents(&leaf[i]);
        for (int64_t k = 0; k < leaf[i].n; k++)
            bytes[k] = (float)(v[k] = LEAST + draw(MOST - LEAST + 1));
        if (et_tensor_write(cx, leaf[i].t, bytes, (size_t)leaf[i].n * sizeof *bytes) !=
            ET_OK)
            bail("%s", et_error_get(cx)->message);
    }
}

/* Leaves as the first values of a step. */
static void
begin(void)
{
    n_values = 0;
    listed = 0;
    for (int i = 0; i < n_leaves; i++) {
        struct value *v = claim(ET_F32, leaf[i].ndim, leaf[i].shape, MOST);
        v->of_leaf = true;
        memcpy(v->v, contents(&leaf[i]), (size_t)leaf[i].n * sizeof *v->v);
        add(v, leaf[i].t, "leaf", NULL, NULL, "at %d", (int)leaf[i].at);
    }
}

/* ---- a step ---- */

static double
number_in(const unsigned char *bytes, enum et_dtype dtype, int64_t i)
{
    uint16_t half;
    uint32_t word;
    float f;
    if (dtype == ET_U8)
        return bytes[i];
    if (dtype == ET_F32) {
        memcpy(&f, bytes + 4 * i, 4);
        return f;
    }
    memcpy(&half, bytes + 2 * i, 2);
    if (dtype == ET_BF16) {
        word = (uint32_t)half << 16;
        memcpy(&f, &word, 4);
        return f;
    }
    int exponent = half >> 10 & 31;
    double m = half & 1023;
    m = exponent ? ldexp(1024 + m, exponent - 25) : ldexp(m, -24);
    return half >> 15 ? -m : m;
}

/* Does T hold WANT? NAME and NUMBER say what it is. */
static bool
holds(const struct et_tensor *t, enum et_dtype dtype, const double *want, int64_t n,
      const char *name, int number)
{
    unsigned char bytes[ROOM * 4];
    if (et_tensor_read(cx, t, bytes, (size_t)n * et_dtype_size(dtype)) != ET_OK) {
        list("%s%d: %s\n", name, number, et_error_get(cx)->message);
        return false;
    }
    for (int64_t i = 0; i < n; i++) {
        double got = number_in(bytes, dtype, i);
        if (got != want[i]) {
            list("%s%d: element %d is %g, not %g\n", name, number, (int)i, got,
                 want[i]);
            return false;
        }
    }
    return true;
}

/* Asks for a few values at once. COMMITS: there are assignments, so that what lies in a
 * leaf's memory may be something else by now. */
static bool
evaluate(bool commits)
{
    struct et_tensor *want[4];
    int which[4], n = draw_apart(5);
    bool good = true;
    for (int i = 0; i < n; i++) {
        which[i] = n_values - 1 - draw_apart(1 + draw_apart(n_values));
        want[i] = value[which[i]].t;
        list("  want v%d\n", which[i]);
    }
    list("  evaluate\n");
    if (et_eval(graph, want, n) != ET_OK) {
        list("%s\n", et_error_get(cx)->message);
        return false;
    }
    for (int i = 0; i < n; i++) {
        struct value *v = &value[which[i]];
        if (!(commits && v->of_leaf))
            good = holds(v->t, v->dtype, v->v, v->n, "v", which[i]) && good;
    }
    return good;
}

/* Assigns values to leaves: of their shape, the newer the likelier. */
static void
assign(int *to, int *from, int *n)
{
    *n = 0;
    for (int i = 0; i < n_leaves; i++) {
        struct value *v = NULL;
        for (int tries = 0; tries < 6 && !v; tries++) {
            struct value *p = draw(3) ? pick() : &value[draw(n_leaves)];
            if (p->dtype == ET_F32 && p->ndim == leaf[i].ndim &&
                memcmp(p->shape, leaf[i].shape, sizeof p->shape) == 0 &&
                number_of(p) != i)
                v = p;
        }
        if (!v || draw(4) == 0)
            continue;
        to[*n] = i;
        from[(*n)++] = number_of(v);
        et_assign(graph, leaf[i].t, v->t);
        list("  leaf %d <- v%d\n", i, number_of(v));
    }
}

/* One step of the graph of SEED: builds it, asks for some of it halfway and at the end,
 * and looks at what the leaves are then. */
static bool
run_step(uint64_t seed, int layout)
{
    int to[LEAVES], from[LEAVES], n;
    bool good = true;
    begin();
    state = seed ^ 0x5eed;
    variant = state * LAYOUTS + (uint64_t)layout;
    int tries = 20 + draw(60), half = draw(3) ? -1 : draw(tries);
    for (int i = 0; i < tries && good; i++) {
        make_one();
        if (i == half)
            good = evaluate(false);
    }
    assign(to, from, &n);
    good = good && evaluate(n > 0);
    for (int i = 0; i < n; i++)
        memcpy(contents(&leaf[to[i]]), value[from[i]].v,
               (size_t)leaf[to[i]].n * sizeof(double));
    for (int i = 0; i < n_leaves && good; i++)
        good = holds(leaf[i].t, ET_F32, contents(&leaf[i]), leaf[i].n, "leaf ", i);
    et_graph_reset(graph);
    return good;
}

static bool
run_graph(uint64_t seed, bool shows)
{
    for (int layout = 0; layout < LAYOUTS; layout++) {
        bool good = true;
        make_leaves(seed, layout);
        for (int step = 0; step < STEPS && good; step++) {
            state = seed + 77 * (uint64_t)(step + STEPS * layout);
            fill_leaves();
            good = run_step(seed, layout);
            if (!good || (shows && step == 0))
                diag("seed %llu, layout %d, step %d:\n%s", (unsigned long long)seed,
                     layout, step, listing);
        }
        for (int i = 0; i < n_leaves; i++)
            et_tensor_free(&leaf[i].t);
        if (!good)
            return false;
    }
    return true;
}

static void
run_way(const struct way *way, uint64_t seed, int graphs)
{
    int failed = 0;
    if (et_device_open(cx, way->device, 0, 1, &dev) != ET_OK) {
        skip(1, et_error_get(cx)->message);
        et_error_clear(cx);
        return;
    }
    if (way->eager)
        setenv("ETUDE_EAGER", "1", 1);
    if (et_graph_new(cx, dev, &graph) != ET_OK ||
        et_comm_new(cx, &twins, NULL, 0, WORLD, &comm) != ET_OK ||
        et_storage_new(cx, dev, FLAT * sizeof(float), &storage) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    unsetenv("ETUDE_EAGER");
    et_graph_set_comm(graph, comm);
    for (int i = 0; i < graphs && failed < SHOWN; i++)
        failed += !run_graph(seed + (uint64_t)i, graphs == 1);
    ok(failed == 0, "%s compute what %d graphs say", way->name, graphs);
    et_graph_free(&graph);
    et_comm_close(&comm);
    et_storage_unref(storage);
    et_device_close(&dev);
}

/* What ETUDE_DUMP asks for. */
static void
show(void *data, enum et_log_level level, const char *text)
{
    (void)data, (void)level;
    diag("%s", text);
}

int
main(void)
{
    const char *from = getenv("ETUDE_SEED"), *many = getenv("ETUDE_GRAPHS");
    uint64_t seed = from ? strtoull(from, NULL, 10) : 1;
    int graphs = many                   ? (int)strtol(many, NULL, 10)
                 : getenv("ETUDE_LONG") ? 200000
                                        : 6000;
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    et_ctx_set_log(cx, ET_LOG_INFO, show, NULL);
    diag("seeds from %llu on", (unsigned long long)seed);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        run_way(&ways[i], seed, graphs);
    et_ctx_free(&cx);
    return done();
}
