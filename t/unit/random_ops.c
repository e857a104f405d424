/* SPDX-License-Identifier: Apache-2.0 */
/* random_ops.c: the operations of random graphs; each is also computed here, in
 * double. */
#include "t/unit/random_values.h"

#include <math.h>
#include <string.h>

/* ---- operations: each makes a value, or nothing where what it drew does not fit
 * ---- */

static double
sign_of(double x)
{
    return (x > 0) - (x < 0);
}

enum unary { NEG, ABS, RELU, SIGN, SQUARE, FLOOR, UNARY };

/* NULL: it has no room, or is not computed in X's dtype. */
static struct value *
unary_of(struct value *x, enum unary which)
{
    static const char *const names[] = {"neg",  "abs",    "relu",
                                        "sign", "square", "floor"};
    if (x->dtype == ET_U8)
        return NULL;
    struct value *y = rg_claim(x->dtype, x->ndim, x->shape,
                               which == SQUARE ? x->bound * x->bound : x->bound);
    if (!y)
        return NULL;
    for (int64_t i = 0; i < x->n; i++) {
        double v = x->v[i];
        const double all[] = {-v, fabs(v), v > 0 ? v : 0, sign_of(v), v * v, v};
        y->v[i] = all[which];
    }
    struct et_tensor *(*const fn[])(struct et_graph *, struct et_tensor *) = {
        et_neg, et_abs, et_relu, et_sign, et_square, et_floor};
    rg_add(y, fn[which](rg.graph, x->t), names[which], x, NULL, "");
    return y;
}

static void
make_unary(void)
{
    struct value *x = rg_pick();
    unary_of(x, (enum unary)rg_draw(UNARY));
}

static bool
is_low(const struct value *x)
{
    return x->dtype == ET_BF16 || x->dtype == ET_F16;
}

static void
make_scalar_of(struct value *x)
{
    const int most = is_low(x) ? 60 : 3; /* so that results have to be rounded */
    int which = rg_draw(3), a = rg_draw(2 * most + 1) - most;
    struct value *y;
    if (x->dtype == ET_U8)
        return;
    y = rg_claim(x->dtype, x->ndim, x->shape,
                 which == 0   ? x->bound + most
                 : which == 1 ? most * x->bound
                              : most + 4);
    if (!y)
        return;
    for (int64_t i = 0; i < x->n; i++)
        y->v[i] = which == 0   ? x->v[i] + a
                  : which == 1 ? x->v[i] * a
                               : fmin(fmax(x->v[i], a), a + 4);
    if (which == 0)
        rg_add(y, et_add_scalar(rg.graph, x->t, a), "add_scalar", x, NULL, "%d", a);
    else if (which == 1)
        rg_add(y, et_mul_scalar(rg.graph, x->t, a), "mul_scalar", x, NULL, "%d", a);
    else
        rg_add(y, et_clamp(rg.graph, x->t, a, a + 4), "clamp", x, NULL, "%d", a);
}

static void
make_scalar(void)
{
    make_scalar_of(rg_pick());
}

enum binary { ADD, SUB, MUL, MAXIMUM, MINIMUM, LESS, EQUAL, BINARY };

/* NULL: A and B do not go together, or it has no room. */
static struct value *
binary_of(struct value *a, struct value *b, enum binary which)
{
    static const char *const names[] = {"add",     "sub",  "mul",  "maximum",
                                        "minimum", "less", "equal"};
    struct et_tensor *(*const fn[])(struct et_graph *, struct et_tensor *,
                                    struct et_tensor *) = {
        et_add, et_sub, et_mul, et_maximum, et_minimum, et_less, et_equal};
    int ndim;
    int64_t shape[DIMS], at[DIMS];
    if (a->dtype != b->dtype || a->dtype == ET_U8 || !rg_broadcast(a, b, &ndim, shape))
        return NULL;
    double sum = a->bound + b->bound, product = a->bound * b->bound;
    struct value *y = rg_claim(which >= LESS ? ET_U8 : a->dtype, ndim, shape,
                               which >= LESS  ? 1
                               : which == MUL ? product
                                              : sum);
    if (!y)
        return NULL;
    for (int64_t i = 0; i < y->n; i++) {
        rg_locate(i, ndim, shape, at);
        double p = rg_element(a, ndim, at), q = rg_element(b, ndim, at);
        const double all[] = {p + q,      p - q, p * q, fmax(p, q),
                              fmin(p, q), p < q, p == q};
        y->v[i] = all[which];
    }
    rg_add(y, fn[which](rg.graph, a->t, b->t), names[which], a, b, "");
    return y;
}

static void
make_binary_of(struct value *a, struct value *b)
{
    binary_of(a, b, (enum binary)rg_draw(BINARY));
}

static void
make_binary(void)
{
    struct value *a = rg_pick();
    make_binary_of(a, rg_pick());
}

static void
make_where(void)
{
    struct value *c = rg_pick(), *a = rg_pick(), *b = rg_pick(), both = {0};
    int ndim, all;
    int64_t shape[DIMS], at[DIMS];
    if (a->dtype != b->dtype || a->dtype == ET_U8 ||
        !rg_broadcast(a, b, &both.ndim, both.shape) ||
        !rg_broadcast(&both, c, &all, shape))
        return;
    ndim = all;
    struct value *y =
        rg_claim(a->dtype, ndim, shape, a->bound > b->bound ? a->bound : b->bound);
    if (!y)
        return;
    for (int64_t i = 0; i < y->n; i++) {
        rg_locate(i, ndim, shape, at);
        y->v[i] = rg_element(c, ndim, at) != 0 ? rg_element(a, ndim, at)
                                               : rg_element(b, ndim, at);
    }
    rg_add(y, et_where(rg.graph, c->t, a->t, b->t), "where", a, b, "by v%d",
           rg_number_of(c));
}

static void
make_cast_of(struct value *x, enum et_dtype dtype)
{
    struct value *y =
        x->dtype == dtype ? NULL : rg_claim(dtype, x->ndim, x->shape, x->bound);
    if (!y)
        return;
    memcpy(y->v, x->v, sizeof y->v);
    rg_add(y, et_cast(rg.graph, x->t, dtype), "cast", x, NULL, "");
}

static void
make_cast(void)
{
    static const enum et_dtype to[] = {ET_F32, ET_F32, ET_BF16, ET_F16};
    struct value *x = rg_pick();
    make_cast_of(x, to[rg_draw(4)]);
}

/* Some steps in a low dtype, each of the one before, and back; now and then more than
 * the program of a chain has room for. */
static void
make_low_chain(void)
{
    make_cast_of(rg_pick(), rg_draw(2) ? ET_BF16 : ET_F16);
    struct value *first = &rg.value[rg.n_values - 1], *last = first;
    for (int i = rg_draw(4) ? 2 + rg_draw(4) : 40; i > 0 && is_low(first); i--) {
        if (rg_draw(3))
            make_scalar_of(last);
        else
            make_binary_of(last, first);
        if (is_low(&rg.value[rg.n_values - 1]))
            last = &rg.value[rg.n_values - 1];
    }
    make_cast_of(last, ET_F32);
}

static void
make_reshape(void)
{
    struct value *x = rg_pick();
    int64_t shape[DIMS];
    int ndim = rg_draw(2) + 1;
    shape[0] = x->n;
    if (ndim == 2) {
        shape[1] = 2 + rg_draw(2);
        if (x->n % shape[1])
            return;
        shape[0] = x->n / shape[1];
    }
    struct value *y = rg_claim(x->dtype, ndim, shape, x->bound);
    if (!y)
        return;
    memcpy(y->v, x->v, sizeof y->v);
    y->of_leaf = x->of_leaf;
    rg_add(y, et_reshape(rg.graph, x->t, ndim, shape), "reshape", x, NULL, "");
}

static void
make_permute(void)
{
    struct value *x = rg_pick();
    int axes[DIMS];
    int64_t shape[DIMS], at[DIMS], from[DIMS];
    if (x->ndim < 2)
        return;
    for (int i = 0; i < x->ndim; i++)
        axes[i] = i;
    for (int i = x->ndim - 1; i > 0; i--) {
        int j = rg_draw(i + 1), old = axes[i];
        axes[i] = axes[j];
        axes[j] = old;
    }
    for (int i = 0; i < x->ndim; i++)
        shape[i] = x->shape[axes[i]];
    /* In other layouts the same shape is another view, where two axes are as long. */
    const int a = rg_draw_apart(x->ndim), b = rg_draw_apart(x->ndim), old = axes[a];
    if (shape[a] == shape[b]) {
        axes[a] = axes[b];
        axes[b] = old;
    }
    struct value *y = rg_claim(x->dtype, x->ndim, shape, x->bound);
    if (!y)
        return;
    for (int64_t i = 0; i < y->n; i++) {
        rg_locate(i, y->ndim, y->shape, at);
        for (int d = 0; d < x->ndim; d++)
            from[axes[d]] = at[d];
        y->v[i] = rg_element(x, x->ndim, from);
    }
    y->of_leaf = x->of_leaf;
    rg_add(y, et_permute(rg.graph, x->t, axes), "permute", x, NULL, "by %d %d...",
           axes[0], axes[1]);
}

static void
make_expand(void)
{
    struct value *x = rg_pick();
    int64_t shape[DIMS + 1], at[DIMS];
    int more = rg_draw(2), ndim = x->ndim + more;
    shape[0] = 2;
    for (int d = 0; d < x->ndim; d++)
        shape[more + d] = x->shape[d] == 1 && rg_draw(2) ? 3 : x->shape[d];
    struct value *y = rg_claim(x->dtype, ndim, shape, x->bound);
    if (!y)
        return;
    for (int64_t i = 0; i < y->n; i++) {
        rg_locate(i, ndim, shape, at);
        y->v[i] = rg_element(x, ndim, at);
    }
    y->of_leaf = x->of_leaf;
    rg_add(y, et_expand(rg.graph, x->t, ndim, shape), "expand", x, NULL, "");
}

/* SIZE indices of an axis of X, every STEP-th from START on; NULL: it has no room. */
static struct value *
slice_of(struct value *x, int axis, int start, int size, int step)
{
    int64_t shape[DIMS], at[DIMS];
    memcpy(shape, x->shape, sizeof shape);
    shape[axis] = size;
    struct value *y = rg_claim(x->dtype, x->ndim, shape, x->bound);
    if (!y)
        return NULL;
    for (int64_t i = 0; i < y->n; i++) {
        int64_t from = 0;
        rg_locate(i, y->ndim, shape, at);
        at[axis] = start + at[axis] * step;
        for (int d = 0; d < x->ndim; d++)
            from = from * x->shape[d] + at[d];
        y->v[i] = x->v[from];
    }
    y->of_leaf = x->of_leaf;
    rg_add(y, et_slice(rg.graph, x->t, axis, start, size, step), "slice", x, NULL,
           "axis %d from %d every %d", axis, start, step);
    return y;
}

static void
make_slice(void)
{
    struct value *x = rg_pick();
    if (x->ndim == 0)
        return;
    int axis = rg_draw(x->ndim), step = 1 + rg_draw(2), length = (int)x->shape[axis];
    int size = 1 + rg_draw((length + step - 1) / step);
    if (2 * (size - 1) < length) /* likewise: elements that are further apart */
        step = 1 + rg_draw_apart(2);
    slice_of(x, axis, rg_draw_apart(length - (size - 1) * step), size, step);
}

static void
make_flip(void)
{
    struct value *x = rg_pick();
    int64_t at[DIMS];
    if (x->ndim == 0 || x->dtype == ET_U8)
        return;
    uint32_t axes = 1 + (uint32_t)rg_draw((1 << x->ndim) - 1);
    struct value *y = rg_claim(x->dtype, x->ndim, x->shape, x->bound);
    if (!y)
        return;
    for (int64_t i = 0; i < y->n; i++) {
        int64_t from = 0;
        rg_locate(i, y->ndim, y->shape, at);
        for (int d = 0; d < x->ndim; d++)
            from =
                from * x->shape[d] + (axes >> d & 1 ? x->shape[d] - 1 - at[d] : at[d]);
        y->v[i] = x->v[from];
    }
    rg_add(y, et_flip(rg.graph, x->t, axes), "flip", x, NULL, "mask %u", axes);
}

/* WHICH: sum, amax, amin; NULL: it has no room. */
static struct value *
reduction_of(struct value *x, int which, uint32_t axes, bool keep)
{
    static const char *const names[] = {"sum", "amax", "amin"};
    int ndim = 0;
    int64_t shape[DIMS], at[DIMS];
    int64_t gone = 1;
    for (int d = 0; d < x->ndim; d++)
        if (!(axes >> d & 1))
            shape[ndim++] = x->shape[d];
        else if (gone *= x->shape[d], keep)
            shape[ndim++] = 1;
    struct value *y =
        rg_claim(ET_F32, ndim, shape, which == 0 ? x->bound * (double)gone : x->bound);
    if (!y)
        return NULL;
    for (int64_t i = 0; i < y->n; i++)
        y->v[i] = which == 0 ? 0 : which == 1 ? -INFINITY : INFINITY;
    for (int64_t i = 0; i < x->n; i++) {
        int64_t to = 0;
        rg_locate(i, x->ndim, x->shape, at);
        for (int d = 0; d < x->ndim; d++)
            if (!(axes >> d & 1))
                to = to * x->shape[d] + at[d];
        double *r = &y->v[to], v = x->v[i];
        *r = which == 0 ? *r + v : which == 1 ? fmax(*r, v) : fmin(*r, v);
    }
    struct et_tensor *(*const fn[])(struct et_graph *, struct et_tensor *, uint32_t,
                                    bool) = {et_sum, et_amax, et_amin};
    rg_add(y, fn[which](rg.graph, x->t, axes, keep), names[which], x, NULL, "mask %u",
           axes);
    return y;
}

static void
make_reduction(void)
{
    struct value *x = rg_pick_f32();
    if (!x || x->ndim == 0)
        return;
    const int which = rg_draw(3);
    reduction_of(x, which, 1 + (uint32_t)rg_draw((1 << x->ndim) - 1), rg_draw(2));
}

/* Two sums that are alike but for where what they sum begins, and their difference. */
static void
make_twins(void)
{
    struct value *x = rg_pick_f32(), *y[2];
    if (!x || x->ndim == 0)
        return;
    const int axis = rg_draw(x->ndim), size = 1 + rg_draw((int)x->shape[axis]);
    for (int i = 0; i < 2; i++) {
        const int start = rg_draw((int)x->shape[axis] - size + 1);
        y[i] = slice_of(x, axis, start, size, 1);
        y[i] = y[i] ? reduction_of(y[i], 0, (1u << x->ndim) - 1, false) : NULL;
    }
    if (y[0] && y[1])
        make_binary_of(y[0], y[1]);
}

static void
make_matmul(void)
{
    struct value *a = rg_pick_f32(), *b = rg_pick_f32();
    bool ta = rg_draw(2), tb = rg_draw(2), linear = rg_draw(2);
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
    struct value *y = rg_claim(ET_F32, 2, shape, a->bound * b->bound * (double)k);
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
        rg_add(y, et_linear(rg.graph, a->t, b->t, NULL), "linear", a, b, "");
    else
        rg_add(y, et_matmul(rg.graph, a->t, b->t, ta, tb), "matmul", a, b, "%d %d", ta,
               tb);
}

static void
make_concat(void)
{
    struct value *a = rg_pick(), *b = rg_pick();
    int64_t shape[DIMS], at[DIMS];
    if (a->ndim == 0 || a->ndim != b->ndim || a->dtype != b->dtype)
        return;
    int axis = rg_draw(a->ndim);
    for (int d = 0; d < a->ndim; d++)
        if (d != axis && a->shape[d] != b->shape[d])
            return;
    memcpy(shape, a->shape, sizeof shape);
    shape[axis] += b->shape[axis];
    struct value *y =
        rg_claim(a->dtype, a->ndim, shape, a->bound > b->bound ? a->bound : b->bound);
    if (!y)
        return;
    for (int64_t i = 0; i < y->n; i++) {
        rg_locate(i, y->ndim, shape, at);
        bool second = at[axis] >= a->shape[axis];
        const struct value *from = second ? b : a;
        at[axis] -= second ? a->shape[axis] : 0;
        int64_t j = 0;
        for (int d = 0; d < y->ndim; d++)
            j = j * from->shape[d] + at[d];
        y->v[i] = from->v[j];
    }
    struct et_tensor *parts[] = {a->t, b->t};
    rg_add(y, et_concat(rg.graph, parts, 2, axis), "concat", a, b, "axis %d", axis);
}

static struct value *
pad_of(struct value *x, const int64_t *before, const int64_t *after, int border)
{
    int64_t shape[DIMS], at[DIMS];
    for (int d = 0; d < x->ndim; d++)
        shape[d] = before[d] + x->shape[d] + after[d];
    struct value *y = rg_claim(ET_F32, x->ndim, shape, x->bound > 2 ? x->bound : 2);
    if (!y)
        return NULL;
    for (int64_t i = 0; i < y->n; i++) {
        int64_t from = 0;
        bool inside = true;
        rg_locate(i, y->ndim, shape, at);
        for (int d = 0; d < x->ndim; d++) {
            int64_t c = at[d] - before[d];
            inside = inside && c >= 0 && c < x->shape[d];
            from = from * x->shape[d] + c;
        }
        y->v[i] = inside ? x->v[from] : border;
    }
    rg_add(y, et_pad(rg.graph, x->t, before, after, border), "pad", x, NULL, "with %d",
           border);
    return y;
}

static void
make_pad(void)
{
    struct value *x = rg_pick_f32();
    int64_t before[DIMS], after[DIMS];
    if (!x || x->ndim == 0)
        return;
    for (int d = 0; d < x->ndim; d++) {
        before[d] = rg_draw(3) == 0;
        after[d] = rg_draw(3) == 0;
    }
    pad_of(x, before, after, 2);
}

/* A sum of parts of an axis, each with a border around it, as gradients of slices are:
 * they fill the axis, or leave gaps, or overlap. */
static void
make_parts(void)
{
    struct value *x = rg_pick_f32(), *sum = NULL;
    int64_t begin = 0;
    if (!x || x->ndim == 0)
        return;
    const int axis = rg_draw(x->ndim), parts = 2 + rg_draw(2);
    const int64_t length = parts * x->shape[axis] + (rg_draw(3) == 0);
    for (int i = 0; i < parts; i++) {
        int64_t before[DIMS] = {0}, after[DIMS] = {0};
        before[axis] = begin;
        after[axis] = length - begin - x->shape[axis];
        struct value *y = i ? unary_of(x, SQUARE) : x;
        y = y ? pad_of(y, before, after, rg_draw(6) == 0) : NULL;
        sum = sum && y ? binary_of(sum, y, ADD) : y;
        if (!sum)
            return;
        begin += rg_draw(6) ? x->shape[axis] : 0;
    }
}

/* Two values in a flat array of TOTAL elements. */
static void
pack_of(struct value *a, struct value *b, const int64_t offsets[2], int64_t total)
{
    struct value *y =
        rg_claim(ET_F32, 1, &total, a->bound > b->bound ? a->bound : b->bound);
    if (!y)
        return;
    for (int64_t i = 0; i < a->n; i++)
        y->v[offsets[0] + i] = a->v[i];
    for (int64_t i = 0; i < b->n; i++)
        y->v[offsets[1] + i] = b->v[i];
    struct et_tensor *parts[] = {a->t, b->t};
    rg_add(y, et_pack(rg.graph, parts, offsets, 2, total, ET_F32), "pack", a, b,
           "at %d, %d", (int)offsets[0], (int)offsets[1]);
}

static void
make_pack(void)
{
    struct value *a = rg_pick_f32(), *b = rg_pick_f32();
    int64_t gap = rg_draw(3), offsets[2], total;
    if (!a || !b || a->ndim > 3 || b->ndim > 3) /* 4-d ones are packed channels-last */
        return;
    offsets[0] = rg_draw(2);
    offsets[1] = offsets[0] + a->n + gap;
    total = offsets[1] + b->n + rg_draw(2);
    pack_of(a, b, offsets, total < rg.value[0].n ? rg.value[0].n : total);
}

/* SIZE of leaf 0's elements, as they are or with something done to them. */
static struct value *
stretch(int size)
{
    const int step = 1 + (rg_draw(4) == 0), n = (int)rg.value[0].n;
    const int room = n - (size - 1) * step;
    struct value *x =
        room < 1 ? NULL : slice_of(rg.value, 0, rg_draw(room), size, step);
    if (!x || rg_draw(2))
        return x;
    make_scalar_of(x);
    x = &rg.value[rg.n_values - 1];
    return x->n == size ? x : NULL;
}

/* Two stretches of leaf 0, packed to an array that it can be. */
static void
make_shuffle(void)
{
    const int n = (int)rg.value[0].n, size = 1 + rg_draw(n - 1);
    int64_t offsets[2];
    struct value *a = stretch(size), *b = stretch(1 + rg_draw(n - size));
    if (!a || !b)
        return;
    const int room = n - size - (int)b->n + 1;
    offsets[0] = rg_draw(room);
    offsets[1] = offsets[0] + size;
    pack_of(a, b, offsets, n);
}

static void
make_fill(void)
{
    const int64_t shape[] = {1 + rg_draw(3), 3};
    int ndim = rg_draw(3), a = rg_draw(5) - 2;
    struct value *y = rg_claim(ET_F32, ndim, shape, 2);
    if (!y)
        return;
    for (int64_t i = 0; i < y->n; i++)
        y->v[i] = a;
    rg_add(y, et_fill(rg.graph, ET_F32, ndim, shape, a), "fill", NULL, NULL, "%d", a);
}

static void
make_all_reduce(void)
{
    struct value *x = rg_pick_f32();
    struct value *y = x ? rg_claim(ET_F32, x->ndim, x->shape, WORLD * x->bound) : NULL;
    if (!y)
        return;
    for (int64_t i = 0; i < x->n; i++)
        y->v[i] = WORLD * x->v[i];
    rg_add(y, et_all_reduce(rg.graph, x->t, NULL), "all_reduce", x, NULL, "");
}

/* How often each is tried. */
static const struct {
    void (*make)(void);
    int weight;
} operations[] = {
    {make_unary, 6},      {make_scalar, 4},    {make_binary, 14},   {make_where, 3},
    {make_cast, 4},       {make_reshape, 3},   {make_permute, 4},   {make_expand, 2},
    {make_slice, 4},      {make_flip, 1},      {make_reduction, 4}, {make_matmul, 5},
    {make_concat, 4},     {make_pad, 2},       {make_pack, 3},      {make_fill, 1},
    {make_all_reduce, 2}, {make_low_chain, 1}, {make_twins, 1},     {make_shuffle, 1},
    {make_parts, 1},
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

void
rg_make_one(void)
{
    int all = 0, i = 0;
    for (int k = 0; k < OPERATIONS; k++)
        all += operations[k].weight;
    int at = rg_draw(all);
    while (at >= operations[i].weight)
        at -= operations[i++].weight;
    operations[i].make();
}
