/* SPDX-License-Identifier: Apache-2.0 */
/* Leaves side by side that are assigned by one formula (fuse_neighbours.c): one kernel
 * does it, with the bits of single steps (ETUDE_EAGER). What only looks like that stays
 * apart. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etude/ctx.h"
#include "etude/graph.h"
#include "etude/op.h"
#include "etude/tensor.h"
#include "t/tap.h"

/* Leaves R lie one behind the other and have 4, 8 and 6 elements; S lie as they do in
 * another storage; X are rows of which the sums are 4, 8 and 6 elements. */
enum { N = 3, ROWS = 5, TOTAL = 4 + 8 + 6, ROOM = TOTAL + 8 };
static const int64_t count[N] = {4, 8, 6};

static struct et_ctx *cx;
static struct et_device *dev;
static struct et_storage *storage[2];
static struct et_tensor *r[N], *s[N], *x[N], *flag, *over, *turned[2], *pairs;

static void
must(et_status status)
{
    if (status != ET_OK)
        bail("%s: %s", et_status_name(status), et_error_get(cx)->message);
}

/* ---- formulas ---- */

/* Builds assignments; what is asked for goes to WANT, and its number is returned. */
typedef int formula(struct et_graph *g, struct et_tensor **want);

/* What no element-wise step makes. */
static struct et_tensor *
part(struct et_graph *g, int i)
{
    return et_sum(g, x[i], 1 << 1, false);
}

static struct et_tensor *
moved(struct et_graph *g, struct et_tensor *leaf, struct et_tensor *to, double momentum)
{
    struct et_tensor *kept = et_mul_scalar(g, leaf, 1 - momentum);
    return et_add(g, kept, et_mul_scalar(g, to, momentum));
}

static int
statistics(struct et_graph *g, struct et_tensor **want)
{
    (void)want;
    for (int i = 0; i < N; i++)
        et_assign(g, r[i], moved(g, r[i], part(g, i), 0.1));
    return 0;
}

/* In the order from the last to the first, and each or none by a number that all
 * read. */
static int
guarded(struct et_graph *g, struct et_tensor **want)
{
    struct et_tensor *skip = et_mul_scalar(g, flag, 0.5);
    (void)want;
    for (int i = N - 1; i >= 0; i--)
        et_assign(g, r[i], et_where(g, skip, r[i], moved(g, r[i], part(g, i), 0.1)));
    return 0;
}

/* An average of what the leaves become, in other leaves. */
static int
averaged(struct et_graph *g, struct et_tensor **want)
{
    (void)want;
    for (int i = 0; i < N; i++) {
        struct et_tensor *next = moved(g, r[i], part(g, i), 0.1);
        et_assign(g, r[i], next);
        et_assign(g, s[i], moved(g, s[i], next, 0.25));
    }
    return 0;
}

/* The first one has another factor. */
static int
other_factor(struct et_graph *g, struct et_tensor **want)
{
    (void)want;
    for (int i = 0; i < N; i++)
        et_assign(g, r[i], moved(g, r[i], part(g, i), i > 0 ? 0.1 : 0.2));
    return 0;
}

/* The one between them is left out. */
static int
gap(struct et_graph *g, struct et_tensor **want)
{
    (void)want;
    for (int i = 0; i < N; i += 2)
        et_assign(g, r[i], moved(g, r[i], part(g, i), 0.1));
    return 0;
}

/* Side by side, but what they read of other leaves is not. */
static int
crossed(struct et_graph *g, struct et_tensor **want)
{
    (void)want;
    et_assign(g, r[0], moved(g, r[0], et_slice(g, s[1], 0, 4, 4, 1), 0.1));
    et_assign(g, r[1], moved(g, r[1], s[1], 0.1));
    return 0;
}

/* The same, and they read of two. */
static int
crossed_leaves(struct et_graph *g, struct et_tensor **want)
{
    (void)want;
    et_assign(g, r[0], moved(g, r[0], et_slice(g, s[2], 0, 0, 4, 1), 0.1));
    et_assign(g, r[1], moved(g, r[1], s[1], 0.1));
    return 0;
}

/* Parts of one value, which do not lie side by side as the leaves do. */
static int
scattered(struct et_graph *g, struct et_tensor **want)
{
    struct et_tensor *both =
        et_concat(g, (struct et_tensor *[]){part(g, 0), part(g, 2)}, 2, 0);
    (void)want;
    both = et_neg(g, both);
    et_assign(g, r[0], et_slice(g, both, 0, 0, 4, 1));
    et_assign(g, r[2], et_slice(g, both, 0, 4, 6, 1));
    return 0;
}

/* The first part of a value, of which the rest is assigned to nobody. */
static int
first_part(struct et_graph *g, struct et_tensor **want)
{
    struct et_tensor *all = et_neg(g, part(g, 1));
    want[0] = et_neg(g, et_slice(g, all, 0, 4, 4, 1));
    et_assign(g, r[0], et_slice(g, all, 0, 0, 4, 1));
    return 1;
}

/* Each times another number. */
static int
other_number(struct et_graph *g, struct et_tensor **want)
{
    (void)want;
    for (int i = 0; i < 2; i++)
        et_assign(g, r[i], et_mul(g, r[i], i ? flag : et_add_scalar(g, flag, 2)));
    return 0;
}

/* The second waits for the first, through a step that no chain takes. */
static int
one_waits(struct et_graph *g, struct et_tensor **want)
{
    struct et_tensor *first = moved(g, r[0], part(g, 0), 0.1);
    struct et_tensor *sum = et_sum(g, first, 0, false);
    struct et_tensor *row = et_mul(g, et_sum(g, x[1], 1 << 1, false), sum);
    (void)want;
    et_assign(g, r[0], first);
    et_assign(g, r[1],
              moved(g, r[1], et_sum(g, et_mul(g, x[1], sum), 1 << 1, false), 0.1));
    et_assign(g, r[2], moved(g, r[2], et_slice(g, row, 0, 0, 6, 1), 0.1));
    return 0;
}

/* The second reads a piece of what the first is made of. */
static int
piece_of_another(struct et_graph *g, struct et_tensor **want)
{
    struct et_tensor *kept = et_mul_scalar(g, r[1], 0.9);
    (void)want;
    et_assign(g, r[1], et_add(g, kept, part(g, 1)));
    et_assign(g, r[2],
              et_add(g, et_mul_scalar(g, r[2], 0.9), et_slice(g, kept, 0, 1, 6, 1)));
    return 0;
}

/* What the leaves were is read behind the assignments, and a new value is asked for. */
static int
read_before(struct et_graph *g, struct et_tensor **want)
{
    struct et_tensor *next = NULL;
    for (int i = 0; i < N; i++) {
        struct et_tensor *to = moved(g, r[i], part(g, i), 0.1);
        et_assign(g, r[i], to);
        next = i == 1 ? to : next;
    }
    want[0] = et_mul(g, r[1], et_sum(g, next, 0, false));
    want[1] = et_neg(g, next);
    return 2;
}

static int
asked_for(struct et_graph *g, struct et_tensor **want)
{
    for (int i = 0; i < N; i++) {
        struct et_tensor *to = moved(g, r[i], part(g, i), 0.1);
        et_assign(g, r[i], to);
        want[i] = to;
    }
    return N;
}

/* Another leaf lies across two of them, and is assigned behind them. */
static int
overlapped(struct et_graph *g, struct et_tensor **want)
{
    (void)want;
    for (int i = 0; i < N; i++)
        et_assign(g, r[i], moved(g, r[i], part(g, i), 0.1));
    et_assign(g, over, et_neg(g, part(g, 1)));
    return 0;
}

/* Each becomes what the next one of them was: nothing may be written before it is
 * read. */
static int
shifted(struct et_graph *g, struct et_tensor **want)
{
    (void)want;
    et_assign(g, r[0], et_neg(g, et_slice(g, r[1], 0, 0, 4, 1)));
    et_assign(g, r[1], et_neg(g, over));
    return 0;
}

/* As above, but the first becomes what is one element on in the second. */
static int
shifted_unevenly(struct et_graph *g, struct et_tensor **want)
{
    (void)want;
    et_assign(g, r[0], et_neg(g, et_slice(g, r[1], 0, 1, 4, 1)));
    et_assign(g, r[1], et_neg(g, over));
    return 0;
}

/* Squares that lie side by side, each by columns, and take rows. */
static int
by_columns(struct et_graph *g, struct et_tensor **want)
{
    (void)want;
    for (int i = 0; i < 2; i++) {
        struct et_tensor *sums =
            et_sum(g, et_slice(g, x[1], 0, 4 * i, 4, 1), 1 << 1, false);
        et_assign(g, turned[i], et_neg(g, et_reshape(g, sums, 2, (int64_t[]){2, 2})));
    }
    return 0;
}

/* As statistics, where the last leaf has two axes: what is joined ends in it. */
static int
two_axes(struct et_graph *g, struct et_tensor **want)
{
    (void)want;
    for (int i = 0; i < N - 1; i++)
        et_assign(g, r[i], moved(g, r[i], part(g, i), 0.1));
    struct et_tensor *rows = et_reshape(g, x[N - 1], 3, (int64_t[]){3, 2, ROWS});
    struct et_tensor *last = et_sum(g, rows, 1 << 2, false);
    et_assign(g, pairs, moved(g, pairs, last, 0.1));
    return 0;
}

/* ---- running ---- */

struct answers {
    float leaf[2][ROOM], value[N][8];
    int kernels;
};

static void
start(void)
{
    float values[ROOM];
    for (int k = 0; k < 2; k++) {
        struct et_tensor *all;
        struct et_desc d;
        et_desc_init(&d, ET_F32, 1, (int64_t[]){ROOM}, ET_ROW_MAJOR);
        for (int i = 0; i < ROOM; i++)
            values[i] = sinf(1 + 0.7f * (float)(i + 100 * k));
        must(et_tensor_view(cx, storage[k], 0, &d, NULL, &all));
        must(et_tensor_write(cx, all, values, sizeof values));
        et_tensor_free(&all);
    }
}

static void
compute(formula *f, bool eager, struct answers *a)
{
    struct et_graph *g;
    struct et_tensor *want[N];
    struct et_plan_info info;
    setenv("ETUDE_EAGER", eager ? "1" : "0", 1);
    must(et_graph_new(cx, dev, &g));
    unsetenv("ETUDE_EAGER");
    start();
    memset(a, 0, sizeof *a);
    for (int round = 0; round < 3; round++) { /* computed, recorded, replayed */
        int n = f(g, want);
        must(et_eval(g, want, n));
        for (int i = 0; i < n; i++)
            must(et_tensor_read(cx, want[i], a->value[i],
                                et_desc_bytes(&want[i]->desc)));
        et_graph_last_plan(g, &info);
        et_graph_reset(g);
    }
    a->kernels = info.kernels;
    for (int k = 0; k < 2; k++) {
        struct et_desc d;
        struct et_tensor *all;
        et_desc_init(&d, ET_F32, 1, (int64_t[]){ROOM}, ET_ROW_MAJOR);
        must(et_tensor_view(cx, storage[k], 0, &d, NULL, &all));
        must(et_tensor_read(cx, all, a->leaf[k], sizeof a->leaf[k]));
        et_tensor_free(&all);
    }
    et_graph_free(&g);
}

static const struct row {
    const char *what;
    formula *f;
    int kernels;
} rows[] = {
    {"leaves that follow statistics", statistics, N + 1},
    {"leaves of which one has two axes", two_axes, N + 1},
    {"those that a number guards", guarded, N + 2},
    {"those that an average follows", averaged, N + 1},
    {"two of one factor and one of another", other_factor, N + 2},
    {"two with a gap between them", gap, 4},
    {"two that read of leaves that lie otherwise", crossed, 2},
    {"two that read of two leaves that lie otherwise", crossed_leaves, 2},
    {"leaves that lie otherwise than the parts that they take", scattered, 6},
    {"a leaf that takes the first part of a value", first_part, 4},
    {"two that read another number each", other_number, 3},
    {"three of which one waits for another", one_waits, 9},
    {"two of which one reads a piece of the other's", piece_of_another, 3},
    {"leaves that are read behind", read_before, N + 1 + 3 + N},
    {"new values that are asked for", asked_for, 3 * N},
    {"leaves of which two lie below another", overlapped, 10},
    {"leaves that become one another", shifted, 3},
    {"leaves that become one another, one element apart", shifted_unevenly, 3},
    {"squares by columns that take rows", by_columns, 6},
};

static void
check(const struct row *row, const char *where)
{
    static struct answers planned, eager;
    compute(row->f, false, &planned);
    compute(row->f, true, &eager);
    ok(memcmp(planned.leaf, eager.leaf, sizeof eager.leaf) == 0 &&
           memcmp(planned.value, eager.value, sizeof eager.value) == 0,
       "%s on %s become what single steps make of them, bit for bit", row->what, where);
    is_int(planned.kernels, row->kernels, "%s on %s take so many kernels", row->what,
           where);
}

/* A leaf of N elements from element AT of storage K on. */
static void
view(int k, int64_t at, int64_t n, struct et_tensor **out)
{
    struct et_desc d;
    et_desc_init(&d, ET_F32, 1, &n, ET_ROW_MAJOR);
    must(et_tensor_view(cx, storage[k], at, &d, NULL, out));
}

static void
make_leaves(void)
{
    int64_t at = 0;
    for (int k = 0; k < 2; k++)
        must(et_storage_new(cx, dev, ROOM * sizeof(float), &storage[k]));
    for (int i = 0; i < N; at += count[i++]) {
        float values[ROWS * 8];
        view(0, at, count[i], &r[i]);
        view(1, at, count[i], &s[i]);
        for (int j = 0; j < ROWS * 8; j++)
            values[j] = cosf(0.3f * (float)(j + 50 * i));
        must(et_tensor_new(cx, dev, ET_F32, 2, (int64_t[]){count[i], ROWS},
                           ET_ROW_MAJOR, NULL, &x[i]));
        must(et_tensor_write(cx, x[i], values, et_desc_bytes(&x[i]->desc)));
    }
    for (int i = 0; i < 2; i++) {
        const struct et_desc d = {ET_F32, 2, {2, 2}, {1, 2}};
        must(et_tensor_view(cx, storage[0], TOTAL + 4 * i, &d, NULL, &turned[i]));
    }
    const struct et_desc two = {ET_F32, 2, {3, 2}, {2, 1}};
    must(et_tensor_view(cx, storage[0], TOTAL - 6, &two, NULL, &pairs));
    view(0, 8, 4 + 4, &over);
    must(et_tensor_new(cx, dev, ET_F32, 1, (int64_t[]){1}, ET_ROW_MAJOR, NULL, &flag));
}

static void
free_leaves(void)
{
    for (int i = 0; i < N; i++) {
        et_tensor_free(&r[i]);
        et_tensor_free(&s[i]);
        et_tensor_free(&x[i]);
    }
    for (int i = 0; i < 2; i++)
        et_tensor_free(&turned[i]);
    et_tensor_free(&pairs);
    et_tensor_free(&over);
    et_tensor_free(&flag);
    for (int k = 0; k < 2; k++)
        et_storage_unref(storage[k]);
}

int
main(void)
{
    static const char *const devices[] = {"ref", "cpu", "gpusim"};
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    for (int d = 0; d < 3; d++) {
        if (et_device_open(cx, devices[d], 0, 1, &dev) != ET_OK) {
            diag("%s", et_error_get(cx)->message);
            et_error_clear(cx);
            continue;
        }
        make_leaves();
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
            check(&rows[i], devices[d]);
        free_leaves();
        et_device_close(&dev);
    }
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing leaks");
    et_ctx_free(&cx);
    return done();
}
