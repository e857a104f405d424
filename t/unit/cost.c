/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan says of its cost: FLOPs, bytes and the least time of each kernel, their
 * sums, and the rates they are read against. Nothing here is run: graphs are dry. */
#include "etude/etude.h"
#include "t/tap.h"

#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct et_ctx *cx;
static struct et_device *dev;
static struct et_graph *g;
static char dump[1 << 15];
static struct et_tensor *leaves[64];
static int n_leaves;

static void
note(void *data, enum et_log_level level, const char *text)
{
    size_t n = strlen(dump);
    (void)data;
    (void)level;
    snprintf(dump + n, sizeof dump - n, "%s\n", text);
}

static struct et_tensor *
leaf(const char *name, enum et_dtype dtype, int64_t rows, int64_t columns)
{
    struct et_tensor *t;
    const int64_t shape[] = {rows, columns};
    if (et_tensor_new(cx, dev, dtype, 2, shape, ET_ROW_MAJOR, name, &t) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    if (n_leaves == sizeof leaves / sizeof *leaves)
        bail("more leaves than there is room for");
    return leaves[n_leaves++] = t;
}

/* A line of the dump, or of its table by operation. */
struct cost {
    int first; /* step, or count */
    double mb, gflop, us;
    char bound[16];
};

static bool
read_cost(const char *line, struct cost *c)
{
    char per_byte[16], us[16];
    *c = (struct cost){.bound = ""};
    bool whole = sscanf(line, "%d %lf %lf %15s %15s %15s", &c->first, &c->mb, &c->gflop,
                        per_byte, us, c->bound) == 6;
    c->us = strcmp(us, "-") == 0 ? NAN : strtod(us, NULL);
    return whole;
}

/* Of the only kernel OP in the dump; its line ends with the name. */
static struct cost
cost_of(const char *op)
{
    struct cost c = {.mb = NAN, .gflop = NAN, .us = NAN};
    char name[64];
    snprintf(name, sizeof name, "  %s\n", op);
    const char *end = strstr(dump, name), *at = end;
    while (at && at > dump && at[-1] != '\n')
        at--;
    if (!at || !read_cost(at, &c))
        diag("no line of %s in\n%s", op, dump);
    return c;
}

/* Plans Y, which is the dump then, and begins a new graph: one that has this plan would
 * not make it again. */
static struct et_plan_info
plan_of(struct et_tensor *y)
{
    struct et_plan_info info = {0};
    dump[0] = '\0';
    if (et_plan(g, &y, 1, &info) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    et_graph_free(&g);
    if (et_graph_new(cx, dev, &g) != ET_OK)
        bail("no graph");
    et_graph_set_dry(g, true);
    return info;
}

static void
is_cost(const char *op, double mb, double gflop, const char *says)
{
    struct cost c = cost_of(op);
    if (!ok(fabs(c.mb - mb) < 6e-4 && fabs(c.gflop - gflop) < 6e-4, "%s", says))
        diag("%g MB, %g GFLOP; wanted %g, %g", c.mb, c.gflop, mb, gflop);
}

/* ---- what is counted ---- */

static void
test_counts(void)
{
    struct et_tensor *x = leaf("x", ET_F32, 1000, 500),
                     *w = leaf("w", ET_F32, 500, 200);
    struct et_tensor *a = leaf("a", ET_F32, 1000, 1000);
    struct et_tensor *b = leaf("b", ET_F32, 1000, 1000);
    struct et_tensor *row = leaf("row", ET_F32, 1, 1000);
    struct et_tensor *table = leaf("table", ET_F32, 50000, 100);
    struct et_tensor *index = leaf("index", ET_I32, 10, 100);

    plan_of(et_matmul(g, x, w, false, false));
    is_cost("matmul", 3.2, 0.2, "a product: both operands, the result, 2 m k n");
    plan_of(et_tanh(g, et_mul(g, et_exp(g, a), b)));
    is_cost("fused", 12, 0.003, "a chain: what it reads and writes, not what it keeps");
    plan_of(et_mul(g, a, a));
    is_cost("mul", 8, 0.001, "an operand that is there twice is read once");
    plan_of(et_mul(g, a, et_expand(g, row, 2, (const int64_t[]){1000, 1000})));
    is_cost("mul", 8.004, 0.001, "one that repeats along an axis counts as it lies");
    plan_of(et_take(g, table, index, 0));
    is_cost("take", 0.804, 0, "of a table only the rows that are taken");
    plan_of(et_take(g, leaf("small", ET_F32, 10, 100), index, 0));
    is_cost("take", 0.408, 0, "and no more than there are");
    plan_of(et_pack(g, (struct et_tensor *[]){a, b}, (const int64_t[]){0, 1500000}, 2,
                    3000000, ET_F32));
    is_cost("pack", 20, 0, "a pack reads and writes its parts, and writes the gaps");
    plan_of(et_sum(g, a, 1u << 1, false));
    is_cost("sum", 4.004, 0.001, "a sum: what it reads");
}

static void
test_sums(void)
{
    struct et_tensor *x = leaf("x", ET_F32, 1000, 1000);
    struct et_tensor *w =
        leaf("a rather long name of a parameter of layer twelve", ET_F32, 1000, 1000);
    struct et_tensor *h = x;
    for (int i = 0; i < 3; i++)
        h = et_relu(g, et_add_scalar(g, et_matmul(g, h, w, false, false), 1));
    struct et_plan_info info = plan_of(et_softmax(g, h, 1));
    struct cost c, sum = {0}, ops = {0}, all = {0};
    int kernels = 0, width = 0;
    bool table = false;
    for (char *at = dump, *end; (end = strchr(at, '\n')); at = end + 1) {
        *end = '\0';
        width = (int)strlen(at) > width ? (int)strlen(at) : width;
        table = table || strncmp(at, " count", 6) == 0;
        if (at[8] == ' ' && at[12] == ' ' && strchr("[{", at[13]))
            continue;
        if (!read_cost(at, &c))
            continue;
        struct cost *to = strstr(at, "all kernels") ? &all : table ? &ops : &sum;
        to->first += table ? c.first : 1;
        to->mb += c.mb;
        to->gflop += c.gflop;
        to->us += c.us;
        kernels += !table;
    }
    is_int(kernels, info.kernels, "each kernel has a line");
    is_int(all.first, info.kernels, "all of them are in the sum");
    is_int(ops.first, info.kernels, "and in the table by operation");
    ok(fabs(all.mb - sum.mb) < 0.01 && fabs(ops.mb - sum.mb) < 0.01 &&
           fabs(all.mb - (double)info.moved_bytes / 1e6) < 0.001,
       "the sum of bytes is that of the lines, and the plan's (%g, %g MB)", all.mb,
       sum.mb);
    ok(fabs(all.gflop - sum.gflop) < 0.01 && fabs(ops.gflop - sum.gflop) < 0.01 &&
           fabs(all.gflop - (double)info.flops / 1e9) < 0.001,
       "so is that of FLOPs (%g, %g G)", all.gflop, sum.gflop);
    ok(fabs(all.us - sum.us) < 0.1 && fabs(all.us - info.least_seconds * 1e6) < 0.01,
       "and that of the least times (%g, %g us)", all.us, sum.us);
    ok(width > 60 && width <= 87, "lines fit on a terminal (%d columns)", width);
}

/* The operands of the only kernel OP in the dump: its line's end, and what follows
 * it. */
static const char *
operands_of(const char *op)
{
    char name[64];
    snprintf(name, sizeof name, "  %s\n", op);
    const char *at = strstr(dump, name);
    return at ? at + strlen(name) : "";
}

/* What a plan's lines say of operands. */
static void
test_operands(void)
{
    enum { MOST = 12, MORE = 3 };
    struct et_tensor *part[MOST + MORE];
    char one[16];
    int64_t offset[MOST + MORE];
    for (int i = 0; i < MOST + MORE; i++) {
        snprintf(one, sizeof one, "part%d.", i);
        part[i] = leaf(one, ET_F32, 2, 8);
        offset[i] = 16 * i;
    }
    plan_of(et_pack(g, part, offset, MOST, 16 * MOST, ET_F32));
    ok(strstr(dump, "part11.") && !strstr(dump, "more"),
       "twelve operands are named, and that is all");
    plan_of(et_pack(g, part, offset, MOST + MORE, 16 * (MOST + MORE), ET_F32));
    ok(strstr(dump, "part11.") && !strstr(dump, "part12.") &&
           strstr(dump, "and 3 more"),
       "of fifteen, twelve, and how many more there are");
    plan_of(et_exp(g, et_slice(g, part[0], 0, 1, 1, 1)));
    ok(strstr(operands_of("exp"), "part0.+8 ->"),
       "a view by what it is of, and where it begins");
    plan_of(et_log(g, part[1]));
    ok(strstr(operands_of("log"), "part1. ->"), "a whole array by its name");
}

/* Descriptions of more operands than an arena's block has room for: they have one of
 * their own, from the heap, which the C library finds damaged when it is overrun. */
static void
test_many_operands(void)
{
    enum { PARTS = 3000, EACH = 16 };
    static struct et_tensor *part[PARTS];
    static int64_t offset[PARTS];
    struct et_tensor *x = leaf("x", ET_F32, 2, EACH / 2);
    mallopt(M_MMAP_THRESHOLD, 1 << 28);
    for (int i = 0; i < PARTS; i++) {
        part[i] = x;
        offset[i] = EACH * i;
    }
    struct et_plan_info info =
        plan_of(et_pack(g, part, offset, PARTS, EACH * PARTS, ET_F32));
    ok(info.moved_bytes >= 4.0 * EACH * PARTS, "a pack of %d parts moves %g bytes",
       PARTS, (double)info.moved_bytes);
}

/* ETUDE_DUMP=graph and =memory. */
static void
test_dumps(void)
{
    struct et_tensor *x = leaf("x", ET_F32, 10, 10);
    struct et_tensor *a = leaf("", ET_F32, 64, 64);
    setenv("ETUDE_DUMP", "graph", 1);
    plan_of(et_exp(g, x));
    struct et_tensor *mean, *var;
    (void)et_batch_norm(g, x, NULL, NULL, 1e-5, &mean, &var);
    et_assign(g, x, et_exp(g, x));
    plan_of(et_add(g, mean, et_relu(g, var)));
    is_str(dump,
           "graph: 4 nodes, 1 assignments\n"
           "  %0 = batch_norm(x, -, -) f32[10,10] f32[10] f32[10]\n"
           "  %1 = exp(x) f32[10,10]\n"
           "  %2 = relu(%0.2) f32[10]\n"
           "  %3 = add(%0.1, %2) f32[10]\n",
           "ETUDE_DUMP=graph tells the nodes as they were built, with their operands");
    setenv("ETUDE_DUMP", "memory", 1);
    plan_of(et_exp(g, x));
    struct et_tensor *p = et_matmul(g, a, a, false, false);
    p = et_matmul(g, p, a, false, false);
    plan_of(et_matmul(g, p, p, false, false));
    is_str(dump,
           "memory: slab 32768 bytes, outputs 16384\n"
           "  v1 f32[64,64] steps 0-1 in slab 0\n"
           "  v2 f32[64,64] steps 1-2 in slab 16384\n"
           "  v3 f32[64,64] steps 2-2 in output 0\n",
           "ETUDE_DUMP=memory tells where each value lies, and how long");
    setenv("ETUDE_DUMP", "memory,graph", 1);
    plan_of(et_exp(g, x));
    et_assign(g, x, et_exp(g, x));
    plan_of(et_matmul(g, et_exp(g, et_matmul(g, a, a, false, false)), a, false, false));
    is_str(dump,
           "graph: 4 nodes, 1 assignments\n"
           "  %0 = exp(x) f32[10,10]\n"
           "  %1 = matmul(, ) f32[64,64]\n"
           "  %2 = exp(%1) f32[64,64]\n"
           "  %3 = matmul(%2, ) f32[64,64]\n"
           "memory: slab 16384 bytes, outputs 16384\n"
           "  v2 f32[10,10] steps 0-0 in leaf 0\n"
           "  v3 f32[64,64] steps 1-3 in slab 0\n"
           "  v4 f32[64,64] steps 2-3 in value 3\n"
           "  v5 f32[64,64] steps 3-3 in output 0\n",
           "a value is shown in a leaf or in another value, and memory and graph are "
           "both dumped");
    setenv("ETUDE_DUMP", "plan", 1);
    plan_of(et_exp(g, x));
}

static const char whole_plan[] =
    "plan: 14 nodes became 12 steps\n"
    "  step          MB       GFLOP   FLOP/B   least us  bound   operation\n"
    "     0       0.006       0.000      1.7      24.00  f32     matmul\n"
    "             [ref:loop] x w -> v6:f32[8,100]\n"
    "     1       0.003       0.000      0.4       3.40  memory  fused\n"
    "             [ref:loop] v6+50 a rather long name of a parameter of layer twelve "
    "->\n"
    "             v10:f32[8,50]\n"
    "             r2=exp(r0) r3=mul(r2,r1) r4=tanh(r3)\n"
    "     2       0.002       0.000      1.8       1.80  memory  batch_norm\n"
    "             [ref:loop] v10 - - -> - v12:f32[50] -\n"
    "     3       0.000       0.000      0.2       0.03  memory  fill (in the first "
    "run alone)\n"
    "             [ref:loop] -> v14:f32[7]\n"
    "     4       0.000       0.000      0.2       0.03  memory  sum\n"
    "             [ref:loop] v14 -> v15:f32[]\n"
    "     5       0.000       0.000      2.0       0.06  memory  matmul\n"
    "             [ref:loop] low low -> v16:bf16[4,4]\n"
    "     6       0.000       0.000      0.5       0.03  memory  sum\n"
    "             [ref:loop] v16 -> v17:bf16[]\n"
    "     7       0.000       0.000      0.2       0.20  memory  sum\n"
    "             [ref:loop] v12 -> v19:f32[]\n"
    "     8       0.000       0.000      0.1       0.01  memory  fused\n"
    "             [ref:loop] v17 v19 v15 -> v21:f32[]\n"
    "             r3=add(r1,r2) r4=add(r3,r0)\n"
    "     9       0.000       0.000      0.0       0.38  memory  copy\n"
    "             [ref:loop] y -> v22:f32[8,6]\n"
    "    11       0.003       0.000      0.0       3.20  memory  copy (writes a leaf)\n"
    "             [ref:loop] v6+50 -> into:f32[8,50]\n"
    " count          MB       GFLOP   FLOP/B   least us          operation\n"
    "     2       0.003       0.000      0.4       3.41          fused\n"
    "     3       0.000       0.000      0.3       0.27          sum\n"
    "     2       0.006       0.000      1.7      24.06          matmul\n"
    "     1       0.002       0.000      1.8       1.80          batch_norm\n"
    "     2       0.004       0.000      0.0       3.58          copy\n"
    "    10       0.015       0.000      1.0      33.13          all kernels\n"
    "  of these 24.00 us bound by arithmetic, 9.13 by memory\n"
    "  peaks of ETUDE_ROOFLINE: memory 0.001 TB/s, plain 0.002 TFLOP/s,\n"
    "             f32 products 0.0004 TFLOP/s, bf16 products 8 TFLOP/s\n";

/* A whole plan with something of everything: a view of a step's result, a program,
 * unused results, a constant, a leaf that is written, more than one line of operands,
 * and all rates. */
static void
test_plan_text(void)
{
    struct et_tensor *x = leaf("x", ET_F32, 8, 6), *w = leaf("w", ET_F32, 6, 100);
    struct et_tensor *long_one =
        leaf("a rather long name of a parameter of layer twelve", ET_F32, 1, 50);
    struct et_tensor *low = leaf("low", ET_BF16, 4, 4),
                     *other = leaf("y", ET_F32, 8, 6);
    struct et_tensor *mean;
    setenv("ETUDE_ROOFLINE", "memory=1e9,plain=2e9,f32=4e8,bf16=8e12", 1);
    struct et_tensor *p = et_slice(g, et_matmul(g, x, w, false, false), 1, 50, 50, 1);
    struct et_tensor *q = et_tanh(g, et_mul(g, et_exp(g, p), long_one));
    (void)et_batch_norm(g, q, NULL, NULL, 1e-5, &mean, NULL);
    struct et_tensor *one =
        et_sum(g, et_fill(g, ET_F32, 1, (const int64_t[]){7}, 2), 1, false);
    struct et_tensor *y = et_add(
        g, et_add(g, et_sum(g, mean, 1, false), one),
        et_cast(g, et_sum(g, et_matmul(g, low, low, false, false), 3, false), ET_F32));
    et_assign(g, x, other);
    et_assign(g, leaf("into", ET_F32, 8, 50), p);
    struct et_plan_info info = plan_of(y);
    ok(fabs(info.least_seconds * 1e6 - 33.13) < 0.01,
       "a step that runs only once is no part of a plan's least time (%g us)",
       info.least_seconds * 1e6);
    unsetenv("ETUDE_ROOFLINE");
    is_str(dump, whole_plan,
           "ETUDE_DUMP=plan prints each step, their sums and the rates");
}

/* ---- what it is read against ---- */

static void
test_rates(void)
{
    struct et_tensor *x = leaf("x", ET_F32, 1000, 500),
                     *w = leaf("w", ET_F32, 500, 200);
    struct et_tensor *low = leaf("low", ET_BF16, 1000, 500);
    struct et_tensor *low_w = leaf("low w", ET_BF16, 500, 200);
    struct cost c;

    setenv("ETUDE_ROOFLINE", "memory=1e9,f32=1e12,bf16=1e10,plain=1e6", 1);
    struct et_plan_info info = plan_of(et_matmul(g, x, w, false, false));
    c = cost_of("matmul");
    ok(fabs(c.us - 3200) < 0.01 && strcmp(c.bound, "memory") == 0,
       "a kernel takes as long as its bytes (%g us, %s)", c.us, c.bound);
    ok(fabs(info.least_seconds - 0.0032) < 1e-9, "so the plan says (%g s)",
       info.least_seconds);
    ok(strstr(dump, "peaks of ETUDE_ROOFLINE: memory 0.001 TB/s,"),
       "it names the rates");
    plan_of(et_matmul(g, low, low_w, false, false));
    c = cost_of("matmul");
    ok(fabs(c.us - 20000) < 0.01 && strcmp(c.bound, "bf16") == 0,
       "or as its FLOPs, at the rate of its dtype (%g us, %s)", c.us, c.bound);
    setenv("ETUDE_ROOFLINE", "memory=1e9,f32=1e12,plain=1e6", 1);
    plan_of(et_exp(g, et_matmul(g, x, w, false, false)));
    ok(strstr(dump, "of these 200000.00 us bound by arithmetic, 3200.00 by memory"),
       "the sum tells the time of what computes from that of what moves");
    plan_of(et_exp(g, x));
    c = cost_of("exp");
    ok(fabs(c.us - 500000) < 0.01 && strcmp(c.bound, "plain") == 0,
       "what is no product has a rate of its own (%g us, %s)", c.us, c.bound);

    setenv("ETUDE_ROOFLINE", "memory=1e9,f32=6.25e10", 1);
    plan_of(et_matmul(g, x, w, false, false));
    c = cost_of("matmul");
    ok(fabs(c.us - 3200) < 0.01 && strcmp(c.bound, "memory") == 0,
       "of two equal times that of memory is named as the bound (%g us, %s)", c.us,
       c.bound);

    setenv("ETUDE_ROOFLINE", "f32=1e12", 1);
    plan_of(et_tanh(g, x));
    ok(isnan(cost_of("tanh").us), "where a rate is not known there is no time");

    unsetenv("ETUDE_ROOFLINE");
    info = plan_of(et_square(g, x));
    is_cost("square", 4, 0.001, "a device that knows no rates has bytes and FLOPs");
    ok(isnan(cost_of("square").us) && info.least_seconds == 0, "and no least time");
    ok(strstr(dump, "peaks of ref: not known"), "which it says");
}

static void
test_nonsense(void)
{
    static const char *const wrong[] = {
        "4e12",
        "memory",
        "memory=",
        "memory=fast",
        "memory=-1",
        "memory=0",
        "memory=1e9x",
        "i32=1e9",
        "none=1",
        "memory=nan",
        "memory=1e999",
        "memory=1e9,,",
        "memory=1e9 bf16=1",
        "mem=1",
        "f=1e9",
        "bf=1e9",
        ",",
    };
    struct et_tensor *x = leaf("x", ET_F32, 10, 10);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct et_plan_info info;
        struct et_tensor *y = et_sqrt(g, x);
        setenv("ETUDE_ROOFLINE", wrong[i], 1);
        et_status status = et_plan(g, &y, 1, &info);
        ok(status == ET_EINVAL &&
               strstr(et_error_get(cx)->message, "ETUDE_ROOFLINE: cannot read"),
           "ETUDE_ROOFLINE=%s is refused", wrong[i]);
        et_error_clear(cx);
        et_graph_reset(g);
    }
    unsetenv("ETUDE_ROOFLINE");
    plan_of(et_sqrt(g, x));
    ok(strstr(dump, "sqrt"), "afterwards the same is planned");
}

int
main(void)
{
    setenv("ETUDE_DUMP", "plan", 1);
    unsetenv("ETUDE_ROOFLINE");
    if (et_ctx_new(&cx) != ET_OK || et_device_open(cx, "ref", 0, 1, &dev) != ET_OK ||
        et_graph_new(cx, dev, &g) != ET_OK)
        bail("no graph");
    et_ctx_set_log(cx, ET_LOG_INFO, note, NULL);
    et_graph_set_dry(g, true);
    test_counts();
    setenv("ETUDE_ROOFLINE", "memory=1e9,f32=1e12,plain=1e12", 1);
    test_sums();
    test_rates();
    test_operands();
    test_many_operands();
    test_dumps();
    test_plan_text();
    test_nonsense();
    et_graph_free(&g);
    while (n_leaves > 0)
        et_tensor_free(&leaves[--n_leaves]);
    et_device_close(&dev);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing leaks");
    et_ctx_free(&cx);
    return done();
}
