/* SPDX-License-Identifier: Apache-2.0 */
/* What fusion joins, and what it must not: chains have the bits that each step gives by
 * itself (ETUDE_EAGER), and a joined kernel reads nothing too early. And which graphs
 * have one plan. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "etude/etude.h"
#include "t/tap.h"

static struct et_ctx *cx;
static struct et_device *dev;

static void
must(et_status status)
{
    if (status != ET_OK)
        bail("%s: %s", et_status_name(status), et_error_get(cx)->message);
}

static struct et_tensor *
leaf(int ndim, const int64_t *shape, const float *values)
{
    struct et_tensor *t;
    must(et_tensor_new(cx, dev, ET_F32, ndim, shape, ET_ROW_MAJOR, NULL, &t));
    must(et_tensor_write(cx, t, values, et_desc_bytes(&t->desc)));
    return t;
}

static void
read_into(float *out, const struct et_tensor *t)
{
    must(et_tensor_read(cx, t, out, et_desc_bytes(&t->desc)));
}

/* Chain B reads of chain A, and A, through a flip and a sum that no chain takes, of B's
 * first step. (The flip stands before all of A.) */
static void
test_chains_in_a_ring(void)
{
    const int64_t shape[] = {3};
    const float values[] = {-1, -2, -3};
    float row[3], one;
    struct et_graph *g;
    struct et_tensor *x = leaf(1, shape, values), *want[2];
    must(et_graph_new(cx, dev, &g));
    struct et_tensor *b = et_neg(g, x), *flipped = et_flip(g, b, 1);
    struct et_tensor *a = et_neg(g, et_sum(g, x, 1, false));
    struct et_tensor *c = et_sum(g, flipped, 1, false);
    want[0] = et_maximum(g, b, a);
    want[1] = et_sub(g, et_mul_scalar(g, c, 2), a);
    must(et_eval(g, want, 2));
    read_into(row, want[0]);
    read_into(&one, want[1]);
    ok(row[0] == 6 && row[1] == 6 && row[2] == 6 && one == 6,
       "of two chains that read of each other each has what it reads: %g %g %g, %g",
       (double)row[0], (double)row[1], (double)row[2], (double)one);
    et_tensor_free(&x);
    et_graph_free(&g);
}

/* ---- chains, beside each step by itself ---- */

enum { ROWS = 20, COLUMNS = 12, COUNT = ROWS * COLUMNS, MOST = 12 };

/* Builds values that are asked for of matrices X and Y of the dtype T, which are made
 * of leaves in f32, and of FLAGS; returns their number. */
struct operands {
    struct et_tensor *x, *y, *flags;
    enum et_dtype t;
};
typedef int formula(struct et_graph *g, const struct operands *in,
                    struct et_tensor **want);

/* N steps on from X, of which each rounds. */
static struct et_tensor *
chain(struct et_graph *g, struct et_tensor *x, int n)
{
    for (int i = 0; i < n; i++)
        x = i % 2 ? et_add_scalar(g, x, 0.37) : et_mul_scalar(g, x, -0.93);
    return x;
}

static int
long_chain(struct et_graph *g, const struct operands *in, struct et_tensor **want)
{
    want[0] = chain(g, in->x, 70);
    return 1;
}

static int
two_chains(struct et_graph *g, const struct operands *in, struct et_tensor **want)
{
    want[0] = et_mul(g, chain(g, in->x, 13), chain(g, in->y, 12));
    return 1;
}

static int
through_bytes(struct et_graph *g, const struct operands *in, struct et_tensor **want)
{
    struct et_tensor *bytes = et_cast(g, et_mul_scalar(g, in->x, 40), ET_U8);
    want[0] = et_mul(g, et_cast(g, bytes, in->t), in->y);
    return 1;
}

static int
to_f32_and_back(struct et_graph *g, const struct operands *in, struct et_tensor **want)
{
    struct et_tensor *wide = et_cast(g, chain(g, in->x, 3), ET_F32);
    want[0] = et_cast(g, et_mul(g, wide, et_add_scalar(g, wide, 1e-3)), in->t);
    want[1] = et_sub(g, wide, et_cast(g, want[0], ET_F32));
    return 2;
}

/* A row of a step's result is added to all of it. */
static int
row_of_itself(struct et_graph *g, const struct operands *in, struct et_tensor **want)
{
    struct et_tensor *a = chain(g, in->x, 2);
    want[0] = et_mul_scalar(g, et_add(g, a, et_slice(g, a, 0, 7, 1, 1)), 0.7);
    return 1;
}

/* The same, where a third step reads both. */
static int
row_of_another(struct et_graph *g, const struct operands *in, struct et_tensor **want)
{
    struct et_tensor *b = chain(g, in->x, 2);
    struct et_tensor *a = et_mul(g, in->y, et_slice(g, b, 0, 5, 1, 1));
    want[0] = et_add(g, et_add_scalar(g, a, 2), b);
    return 1;
}

/* Sums of nine rows each, and their product: of more operands than a kernel takes. */
static int
many_operands(struct et_graph *g, const struct operands *in, struct et_tensor **want)
{
    struct et_tensor *sum[2] = {NULL};
    for (int i = 0; i < 18; i++) {
        struct et_tensor *row = et_slice(g, i % 2 ? in->x : in->y, 0, i, 1, 1);
        sum[i / 9] = i % 9 ? et_add(g, sum[i / 9], row) : et_neg(g, row);
    }
    want[0] = et_mul(g, sum[0], sum[1]);
    return 1;
}

/* More values are asked for than a kernel stores. */
static int
many_results(struct et_graph *g, const struct operands *in, struct et_tensor **want)
{
    want[0] = et_neg(g, in->x);
    for (int i = 1; i < MOST; i++)
        want[i] = et_add_scalar(g, want[i - 1], i);
    return MOST;
}

static int
comparison_wanted(struct et_graph *g, const struct operands *in,
                  struct et_tensor **want)
{
    want[0] = et_less(g, et_neg(g, in->x), in->y);
    want[1] = et_where(g, want[0], in->x, chain(g, in->y, 2));
    return 2;
}

/* A comparison within a chain. */
static int
limited(struct et_graph *g, const struct operands *in, struct et_tensor **want)
{
    struct et_tensor *low = et_clamp(g, chain(g, in->x, 1), -0.25, 0.5);
    want[0] = et_where(g, et_less(g, low, in->y), low, et_square(g, in->y));
    return 1;
}

/* A condition that a leaf holds. */
static int
flagged(struct et_graph *g, const struct operands *in, struct et_tensor **want)
{
    want[0] = et_where(g, in->flags, et_neg(g, in->x), et_mul(g, in->x, in->y));
    return 1;
}

/* Two results of one chain, which others read that are none. */
static int
read_by_others(struct et_graph *g, const struct operands *in, struct et_tensor **want)
{
    struct et_tensor *a = chain(g, in->x, 2), *b = et_mul(g, a, in->y);
    want[0] = et_sum(g, et_cast(g, a, ET_F32), 1, false);
    want[1] = et_flip(g, b, 2);
    want[2] = et_sub(g, et_flip(g, a, 1), b);
    return 3;
}

/* ---- sums of padded parts, and what is computed twice ---- */

/* Rows FROM to FROM + N of X, with BEFORE and AFTER rows of VALUE around them. */
static struct et_tensor *
padded(struct et_graph *g, struct et_tensor *x, int64_t from, int64_t n, int64_t before,
       int64_t after, double value)
{
    return et_pad(g, et_slice(g, x, 0, from, n, 1), (int64_t[]){before, 0},
                  (int64_t[]){after, 0}, value);
}

/* Three parts, the middle one first. */
static int
parts(struct et_graph *g, const struct operands *in, struct et_tensor **want)
{
    struct et_tensor *middle = padded(g, in->x, 2, 6, 5, 9, 0);
    struct et_tensor *ends =
        et_add(g, padded(g, in->y, 0, 9, 11, 0, 0), padded(g, in->x, 9, 5, 0, 15, 0));
    want[0] = et_add(g, middle, ends);
    return 1;
}

/* Sums that are no such parts: with a gap in front, between, or behind them, of parts
 * that overlap, amid another number, and of parts along either axis. */
static int
no_parts(struct et_graph *g, const struct operands *in, struct et_tensor **want)
{
    static const struct {
        int64_t first, n, second, m;
        double value;
    } v[] = {{2, 8, 10, 10, 0},
             {0, 8, 10, 10, 0},
             {0, 8, 8, 10, 0},
             {0, 12, 10, 10, 0},
             {0, 10, 10, 10, 0.5}};
    enum { SUMS = sizeof v / sizeof *v };
    for (int i = 0; i < SUMS; i++)
        want[i] = et_add(g,
                         padded(g, in->x, 1, v[i].n, v[i].first,
                                ROWS - v[i].first - v[i].n, v[i].value),
                         padded(g, in->y, 0, v[i].m, v[i].second,
                                ROWS - v[i].second - v[i].m, v[i].value));
    struct et_tensor *left = et_pad(g, et_slice(g, in->x, 1, 0, 8, 1),
                                    (int64_t[]){0, 0}, (int64_t[]){0, 4}, 0);
    want[SUMS] = et_add(g, padded(g, in->y, 0, 8, 0, 12, 0), left);
    /* As long as the result, but the second begins within the first. */
    struct et_tensor *two =
        et_add(g, padded(g, in->x, 0, 10, 0, 10, 0), padded(g, in->y, 0, 6, 8, 6, 0));
    want[SUMS + 1] = et_add(g, two, padded(g, in->x, 4, 4, 14, 2, 0));
    /* A corner beside columns. */
    struct et_tensor *corner =
        et_pad(g, et_slice(g, et_slice(g, in->x, 0, 0, 8, 1), 1, 0, 6, 1),
               (int64_t[]){0, 0}, (int64_t[]){12, 6}, 0);
    want[SUMS + 2] = et_add(g, corner,
                            et_pad(g, et_slice(g, in->y, 1, 0, 6, 1), (int64_t[]){0, 6},
                                   (int64_t[]){0, 0}, 0));
    return SUMS + 3;
}

/* More parts than are put together at once. */
static int
many_parts(struct et_graph *g, const struct operands *in, struct et_tensor **want)
{
    want[0] = NULL;
    for (int i = 0; i < ROWS / 2; i++) {
        struct et_tensor *part = padded(g, in->x, 3 + i, 2, 2 * i, ROWS - 2 * i - 2, 0);
        want[0] = want[0] ? et_add(g, want[0], part) : part;
    }
    return 1;
}

/* Equal sums, of which both are asked for, pieces are read, or one axis differs; behind
 * them are others that take memory. */
static int
equal_sums(struct et_graph *g, const struct operands *in, struct et_tensor **want)
{
    struct et_tensor *again = et_sum(g, in->x, 2, false);
    want[0] = et_sum(g, in->x, 2, false);
    want[1] = et_sum(g, in->x, 2, false);
    want[2] = et_sum(g, in->x, 1, false);
    want[3] =
        et_mul(g, et_slice(g, want[0], 0, 1, 9, 1), et_slice(g, again, 0, 7, 9, 1));
    want[4] = want[3];
    for (int i = 0; i < 6; i++)
        want[4] = et_flip(g, i % 2 ? want[4] : et_cumsum(g, want[4], 0, false), 1);
    return 5;
}

/* Products of which the second operand differs, and rows in order of which the values
 * and the places are asked for by two. */
static int
nearly_equal(struct et_graph *g, const struct operands *in, struct et_tensor **want)
{
    struct et_tensor *place, *other = et_slice(g, in->y, 0, 0, COLUMNS, 1);
    struct et_tensor *own = et_slice(g, in->x, 0, 0, COLUMNS, 1);
    want[0] = et_matmul(g, in->x, own, false, false);
    want[1] = et_matmul(g, in->x, other, false, false);
    want[2] = et_topk(g, et_cast(g, in->x, ET_F32), 2, NULL);
    (void)et_topk(g, et_cast(g, in->x, ET_F32), 2, &place);
    want[3] = et_cast(g, place, ET_F32);
    return 4;
}

struct answers {
    char bytes[MOST][COUNT * sizeof(float)];
    int n, kernels;
};

static void
compute(formula *build, enum et_dtype dtype, bool eager, struct answers *a)
{
    static const int64_t shape[] = {ROWS, COLUMNS};
    struct et_tensor *leaves[2], *flags, *want[MOST];
    uint8_t flag[COUNT];
    struct et_graph *g;
    struct et_plan_info info;
    for (int i = 0; i < 2; i++) {
        float values[COUNT];
        for (int k = 0; k < COUNT; k++) {
            values[k] = 2 * sinf(1 + 0.7f * (float)(k + 50 * i));
            flag[k] = k % 3 == 1;
        }
        leaves[i] = leaf(2, shape, values);
    }
    must(et_tensor_new(cx, dev, ET_U8, 2, shape, ET_ROW_MAJOR, NULL, &flags));
    must(et_tensor_write(cx, flags, flag, sizeof flag));
    setenv("ETUDE_EAGER", eager ? "1" : "0", 1);
    must(et_graph_new(cx, dev, &g));
    unsetenv("ETUDE_EAGER");
    const struct operands in = {et_cast(g, leaves[0], dtype),
                                et_cast(g, leaves[1], dtype), flags, dtype};
    memset(a, 0, sizeof *a);
    a->n = build(g, &in, want);
    must(et_eval(g, want, a->n));
    for (int i = 0; i < a->n; i++)
        must(et_tensor_read(cx, want[i], a->bytes[i], et_desc_bytes(&want[i]->desc)));
    et_graph_last_plan(g, &info);
    a->kernels = info.kernels;
    et_graph_free(&g);
    for (int i = 0; i < 2; i++)
        et_tensor_free(&leaves[i]);
    et_tensor_free(&flags);
}

static const struct row {
    const char *what;
    formula *build;
    int kernels[2]; /* of a plan: in f32, and in 16 bits */
} rows[] = {
    {"a chain that is longer than a kernel", long_chain, {2, 4}},
    {"two chains, together longer than one", two_chains, {1, 2}},
    {"a chain through bytes", through_bytes, {4, 4}},
    {"a chain to f32 and back", to_f32_and_back, {1, 1}},
    {"a chain that reads a row of its own", row_of_itself, {2, 2}},
    {"a chain and a row of another", row_of_another, {2, 2}},
    {"more operands than a kernel takes", many_operands, {2, 4}},
    {"more results than one stores", many_results, {12, 13}},
    {"a comparison that is asked for", comparison_wanted, {5, 7}},
    {"a comparison within a chain", limited, {1, 1}},
    {"a condition that a leaf holds", flagged, {3, 5}},
    {"parts that follow each other", parts, {1, 3}},
    {"parts that do not", no_parts, {25, 27}},
    {"ten parts", many_parts, {11, 12}},
    {"equal sums", equal_sums, {12, 13}},
    {"what is nearly equal", nearly_equal, {4, 7}},
    {"results that others read", read_by_others, {5, 5}},
};

static void
test_chains(const char *where)
{
    static const enum et_dtype dtypes[] = {ET_F32, ET_BF16, ET_F16};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int k = 0; k < 3; k++) {
            static struct answers planned, eager;
            const char *type = et_dtype_name(dtypes[k]);
            compute(rows[i].build, dtypes[k], false, &planned);
            compute(rows[i].build, dtypes[k], true, &eager);
            ok(memcmp(planned.bytes, eager.bytes, sizeof eager.bytes) == 0,
               "%s in %s on %s: planned is eager, bit for bit", rows[i].what, type,
               where);
            is_int(planned.kernels, rows[i].kernels[k > 0],
                   "%s in %s on %s: so many kernels", rows[i].what, type, where);
        }
}

/* ---- graphs that follow each other and differ in one thing: two plans ---- */

enum { LONG = 8, HALF = 4 };

/* Arrays of Y, one after the other: more than have memory of their own. */
static struct et_tensor *
tower(struct et_graph *g, struct et_tensor *y)
{
    for (int i = 0; i < 6; i++)
        y = i % 2 ? et_flip(g, y, 1) : et_cumsum(g, y, 0, false);
    return y;
}

static void
holds(const struct et_tensor *t, const float *want, const char *says, const char *where)
{
    float got[LONG];
    read_into(got, t);
    is_near_array(got, want, (int)et_desc_count(&t->desc), 0, "%s on %s", says, where);
}

static void
test_values_alike(struct et_graph *g, struct et_tensor *x, const char *where)
{
    struct et_tensor *y, *z;
    for (int n = 1; n <= 2; n++) {
        et_graph_reset(g);
        y = et_flip(g, x, 1);
        must(et_eval(g, (struct et_tensor *[]){tower(g, y), y}, n));
    }
    holds(y, (const float[]){34, 21, 13, 8, 5, 3, 2, 1},
          "a value is asked for that was not before", where);
    for (int half = 0; half < 2; half++) {
        et_graph_reset(g);
        y = et_slice(g, et_flip(g, x, 1), 0, HALF * half, HALF, 1);
        z = et_cumsum(g, y, 0, false);
        must(et_eval(g, &z, 1));
        holds(z, half ? (const float[]){5, 8, 10, 11} : (const float[]){34, 55, 68, 76},
              half ? "the second half is read, then" : "the first half is read", where);
    }
    et_graph_reset(g);
    y = et_flip(g, x, 1);
    struct et_tensor *view = et_slice(g, y, 0, 1, 3, 1);
    must(et_eval(g, (struct et_tensor *[]){view, tower(g, y)}, 2));
    holds(view, (const float[]){21, 13, 8}, "a piece of what is not asked for is kept",
          where);
    et_graph_reset(g);
}

static void
test_leaves_alike(struct et_graph *g, struct et_tensor *x, const char *where)
{
    const int64_t half = HALF;
    struct et_tensor *a = leaf(1, &half, (const float[]){1, 2, 3, 4}), *same;
    struct et_tensor *b = leaf(1, &half, (const float[]){5, 6, 7, 9});
    must(et_tensor_view(cx, a->storage, 0, &a->desc, NULL, &same));
    for (int k = 0; k < 2; k++) {
        et_assign(g, a, et_flip(g, k ? same : b, 1));
        must(et_eval(g, NULL, 0));
        et_graph_reset(g);
    }
    holds(a, (const float[]){5, 6, 7, 9},
          "a leaf becomes another one in reverse, and then itself", where);
    for (int k = 0; k < 2; k++) {
        struct et_tensor *pair[] = {x, a};
        struct et_tensor *value[] = {et_neg(g, x), et_slice(g, x, 0, 2, HALF, 1)};
        et_assign(g, pair[k], value[k]);
        et_assign(g, pair[!k], value[!k]);
        must(et_eval(g, NULL, 0));
        et_graph_reset(g);
        holds(a, k ? (const float[]){-3, -5, -8, -13} : (const float[]){3, 5, 8, 13},
              "a piece is what it was before its leaf was assigned", where);
    }
    et_tensor_free(&same);
    et_tensor_free(&b);
    et_tensor_free(&a);
}

static void
test_alike(const char *where)
{
    const int64_t eight = LONG;
    struct et_tensor *x = leaf(1, &eight, (const float[]){1, 2, 3, 5, 8, 13, 21, 34});
    struct et_graph *g;
    must(et_graph_new(cx, dev, &g));
    test_values_alike(g, x, where);
    test_leaves_alike(g, x, where);
    et_graph_free(&g);
    et_tensor_free(&x);
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    must(et_device_open(cx, "ref", 0, 1, &dev));
    test_chains_in_a_ring();
    test_chains("ref");
    test_alike("ref");
    et_device_close(&dev);
    if (et_device_open(cx, "cpu", 0, 1, &dev) == ET_OK) {
        test_chains("cpu");
        test_alike("cpu");
        et_device_close(&dev);
    }
    et_error_clear(cx);
    et_ctx_free(&cx);
    return done();
}
