/* SPDX-License-Identifier: Apache-2.0 */
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
 * ETUDE_SEED=N ETUDE_GRAPHS=1 repeats graph N and prints it. ETUDE_LONG: more
 * graphs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "etude/comm.h"
#include "t/tap.h"
#include "t/unit/random_values.h"

enum {
    LEAVES = 6,  /* f32, which are assigned to as well */
    FLAT = 40,   /* elements of the storage that leaves share */
    LAYOUTS = 3, /* of a graph */
    STEPS = 2,   /* of a layout: the second one finds the first one's plans */
    LEAST = -4,
    MOST = 4,  /* of what leaves hold at first */
    SHOWN = 3, /* failures that are described */
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
static struct et_comm *comm;
static struct et_storage *storage; /* of FLAT elements */
static double flat[FLAT];

static struct leaf leaf[LEAVES];

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

/* ---- leaves ---- */

/* A place on the storage for leaf I, which has ROOM places: near its beginning, where
 * leaves overlap; with its first element on the last one of another leaf; anywhere. */
static int64_t
draw_place(int i, int64_t room)
{
    if (rg_draw(3) > 0)
        return rg_draw(6);
    const struct leaf *other = &leaf[rg_draw(i + 1)];
    int64_t end = other->at + other->n - 1;
    return other != &leaf[i] && other->at >= 0 && end <= room ? end
                                                              : rg_draw((int)room + 1);
}

/* Shapes by SEED; places by LAYOUT: half of the leaves lie on the storage. */
static void
make_leaves(uint64_t seed, int layout)
{
    static const int64_t sizes[] = {1, 2, 3, 3, 3};
    int64_t room[LEAVES];
    rg.state = seed;
    rg.n_leaves = 3 + rg_draw(LEAVES - 2);
    for (int i = 0; i < rg.n_leaves; i++) {
        struct leaf *l = &leaf[i];
        *l = (struct leaf){.ndim = rg_draw(4) == 0 ? rg_draw(4) : 2};
        for (int d = 0; d < l->ndim; d++)
            l->shape[d] = sizes[rg_draw(5)];
        if (i == 0) { /* one that packs fit in */
            l->ndim = 1;
            l->shape[0] = 4 + rg_draw(12);
        }
        l->n = rg_count(l->ndim, l->shape);
        room[i] = FLAT - l->n;
    }
    rg.state = seed * LAYOUTS + (uint64_t)layout + 1;
    for (int i = 0; i < rg.n_leaves; i++) {
        struct leaf *l = &leaf[i];
        struct et_desc desc;
        l->at = rg_draw(2) ? -1 : draw_place(i, room[i]);
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
    for (int i = 0; i < rg.n_leaves; i++) {
        double *v = contents(&leaf[i]);
        for (int64_t k = 0; k < leaf[i].n; k++)
            bytes[k] = (float)(v[k] = LEAST + rg_draw(MOST - LEAST + 1));
        if (et_tensor_write(cx, leaf[i].t, bytes, (size_t)leaf[i].n * sizeof *bytes) !=
            ET_OK)
            bail("%s", et_error_get(cx)->message);
    }
}

/* Leaves as the first values of a step. */
static void
begin(void)
{
    rg.n_values = 0;
    rg.listed = 0;
    for (int i = 0; i < rg.n_leaves; i++) {
        struct value *v = rg_claim(ET_F32, leaf[i].ndim, leaf[i].shape, MOST);
        v->of_leaf = true;
        memcpy(v->v, contents(&leaf[i]), (size_t)leaf[i].n * sizeof *v->v);
        rg_add(v, leaf[i].t, "leaf", NULL, NULL, "at %d", (int)leaf[i].at);
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
        rg_list("%s%d: %s\n", name, number, et_error_get(cx)->message);
        return false;
    }
    for (int64_t i = 0; i < n; i++) {
        double got = number_in(bytes, dtype, i);
        if (got != want[i]) {
            rg_list("%s%d: element %d is %g, not %g\n", name, number, (int)i, got,
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
    int which[4], n = rg_draw_apart(5);
    bool good = true;
    for (int i = 0; i < n; i++) {
        which[i] = rg.n_values - 1 - rg_draw_apart(1 + rg_draw_apart(rg.n_values));
        want[i] = rg.value[which[i]].t;
        rg_list("  want v%d\n", which[i]);
    }
    rg_list("  evaluate\n");
    if (et_eval(rg.graph, want, n) != ET_OK) {
        rg_list("%s\n", et_error_get(cx)->message);
        return false;
    }
    for (int i = 0; i < n; i++) {
        struct value *v = &rg.value[which[i]];
        if (!(commits && v->of_leaf))
            good = holds(v->t, v->dtype, v->v, v->n, "v", which[i]) && good;
    }
    return good;
}

/* May leaf I be V? */
static bool
fits(const struct value *v, int i)
{
    return v->dtype == ET_F32 && v->ndim == leaf[i].ndim &&
           memcmp(v->shape, leaf[i].shape, sizeof v->shape) == 0 &&
           rg_number_of(v) != i;
}

/* The value made last that leaf I may be; NULL: no value may. */
static struct value *
newest_for(int i)
{
    int k = rg.n_values - 1;
    while (k >= rg.n_leaves && !fits(&rg.value[k], i))
        k--;
    return k >= rg.n_leaves ? &rg.value[k] : NULL;
}

/* Assigns values to leaves: of their shape, the newer the likelier. */
static void
assign(int *to, int *from, int *n)
{
    *n = 0;
    for (int i = 0; i < rg.n_leaves; i++) {
        struct value *v = i == 0 && rg_draw(2) ? newest_for(i) : NULL;
        for (int tries = 0; tries < 6 && !v; tries++) {
            struct value *p = rg_draw(3) ? rg_pick() : &rg.value[rg_draw(rg.n_leaves)];
            v = fits(p, i) ? p : NULL;
        }
        if (!v || rg_draw(4) == 0)
            continue;
        to[*n] = i;
        from[(*n)++] = rg_number_of(v);
        et_assign(rg.graph, leaf[i].t, v->t);
        rg_list("  leaf %d <- v%d\n", i, rg_number_of(v));
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
    rg.state = seed ^ 0x5eed;
    rg.variant = rg.state * LAYOUTS + (uint64_t)layout;
    int tries = 20 + rg_draw(60), half = rg_draw(3) ? -1 : rg_draw(tries);
    for (int i = 0; i < tries && good; i++) {
        rg_make_one();
        if (i == half)
            good = evaluate(false);
    }
    assign(to, from, &n);
    good = good && evaluate(n > 0);
    for (int i = 0; i < n; i++)
        memcpy(contents(&leaf[to[i]]), rg.value[from[i]].v,
               (size_t)leaf[to[i]].n * sizeof(double));
    for (int i = 0; i < rg.n_leaves && good; i++)
        good = holds(leaf[i].t, ET_F32, contents(&leaf[i]), leaf[i].n, "leaf ", i);
    et_graph_reset(rg.graph);
    return good;
}

static bool
run_graph(uint64_t seed, bool shows)
{
    for (int layout = 0; layout < LAYOUTS; layout++) {
        bool good = true;
        make_leaves(seed, layout);
        for (int step = 0; step < STEPS && good; step++) {
            rg.state = seed + 77 * (uint64_t)(step + STEPS * layout);
            fill_leaves();
            good = run_step(seed, layout);
            if (!good || (shows && step == 0))
                diag("seed %llu, layout %d, step %d:\n%s", (unsigned long long)seed,
                     layout, step, rg.listing);
        }
        for (int i = 0; i < rg.n_leaves; i++)
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
    if (et_graph_new(cx, dev, &rg.graph) != ET_OK ||
        et_comm_new(cx, &twins, NULL, 0, WORLD, &comm) != ET_OK ||
        et_storage_new(cx, dev, FLAT * sizeof(float), &storage) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    unsetenv("ETUDE_EAGER");
    et_graph_set_comm(rg.graph, comm);
    for (int i = 0; i < graphs && failed < SHOWN; i++)
        failed += !run_graph(seed + (uint64_t)i, graphs == 1);
    ok(failed == 0, "%s compute what %d graphs say", way->name, graphs);
    et_graph_free(&rg.graph);
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
