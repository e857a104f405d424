/* SPDX-License-Identifier: Apache-2.0 */
/* A program as one of several ranks, by etude/dist.h: who they are, what they do
 * together, and what they say when one of them is gone, late or elsewhere. */
#include "config.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/trainer/gather.h"
#include "etude/dist.h"
#include "t/data/fixture.h"
#include "t/dist/group.h"
#include "t/tap.h"

/* In a rank: what is wrong is its text, and its exit code. */
#define EXPECT(x)                                                                      \
    do {                                                                               \
        if (!(x)) {                                                                    \
            printf("line %d: %s (%s)\n", __LINE__, #x, et_error_get(cx)->message);     \
            return 1;                                                                  \
        }                                                                              \
    } while (0)

/* Runs FN as WORLD ranks; they all end with 0. */
static bool
have_ended_well(struct group *g, int world)
{
    bool well = true;
    group_wait(g, 60, -1);
    for (int r = 0; r < world; r++) {
        if (g->exit[r] != 0)
            diag("rank %d of %d: exit %d: %s", r, world, g->exit[r], g->text[r]);
        well &= g->exit[r] == 0;
    }
    return well;
}

/* FN opens its communicator itself. */
static bool
all_well(int world, group_fn *fn, void *data)
{
    struct group g;
    group_start_bare(&g, world, 20, fn, data);
    return have_ended_well(&g, world);
}

/* FN is given one. */
static bool
all_well_with(int world, group_fn *fn, void *data)
{
    struct group g;
    group_start(&g, world, 20, fn, data);
    return have_ended_well(&g, world);
}

/* ---- who they are ---- */

static int
know_themselves(struct et_ctx *cx, struct et_comm *c, void *data)
{
    const int *world = data;
    struct et_dist *d;
    (void)c;
    EXPECT(et_dist_init(cx, 0, &d) == ET_OK);
    int rank = (int)strtol(getenv("RANK"), NULL, 10);
    EXPECT(et_dist_global_rank(d) == rank && et_dist_local_rank(d) == rank);
    EXPECT(et_dist_world_size(d) == *world && et_dist_local_world_size(d) == *world);
    EXPECT(et_dist_node_rank(d) == 0 && et_dist_node_count(d) == 1);
    EXPECT((et_dist_comm(d) == NULL) == (*world == 1));
    EXPECT(et_dist_barrier(cx, d) == ET_OK);
    et_dist_end(&d);
    return 0;
}

static void
test_alone(struct et_ctx *cx)
{
    struct et_dist *d;
    struct et_dist_object *all;
    double x[] = {2, 3}, y[2];
    void *bytes = "abc";
    size_t n = 4;
    unsetenv("RANK");
    unsetenv("WORLD_SIZE");
    need(cx, et_dist_init(cx, 0, &d));
    ok(et_dist_global_rank(d) == 0 && et_dist_world_size(d) == 1 && !et_dist_comm(d),
       "a process without an environment is the only rank");
    bool same = et_dist_all_reduce(cx, d, x, 2, ET_F64, ET_DIST_PRODUCT) == ET_OK &&
                et_dist_all_gather(cx, d, x, 2, ET_F64, y) == ET_OK &&
                et_dist_broadcast(cx, d, x, 2, ET_F64, 0) == ET_OK &&
                et_dist_barrier(cx, d) == ET_OK && y[0] == 2 && y[1] == 3;
    ok(same, "and its collectives are done at once");
    int64_t most;
    void *padded;
    need(cx, et_dist_all_gather_padded(cx, d, x, 2, ET_F64, NULL, &most, &padded));
    ok(most == 2 && memcmp(padded, x, sizeof x) == 0,
       "one rank has nothing to fill up");
    et_free(cx, padded);
    need(cx, et_dist_all_gather_padded(cx, d, NULL, 0, ET_F64, NULL, &most, &padded));
    ok(most == 0 && !padded, "nor where there is nothing");
    need(cx, et_dist_all_gather_object(cx, d, bytes, n, &all));
    ok(all[0].bytes == 4 && strcmp(all[0].data, "abc") == 0, "also those of objects");
    et_free(cx, all);
    ok(et_dist_broadcast_object(cx, d, &bytes, &n, 0) == ET_OK && n == 4,
       "an object of its own stays as it is");
    static const int ranks[] = {-1, 1};
    for (int i = 0; i < 2; i++) {
        is_int(et_dist_broadcast(cx, d, x, 2, ET_F64, ranks[i]), ET_EINVAL,
               "nobody has what rank %d would say", ranks[i]);
        is_int(et_dist_reduce(cx, d, x, 2, ET_F64, ET_DIST_SUM, ranks[i]), ET_EINVAL,
               "nor is anything for rank %d", ranks[i]);
        et_error_clear(cx);
    }
    is_int(et_dist_all_reduce(cx, d, x, -1, ET_F64, ET_DIST_SUM), ET_EINVAL,
           "there are no fewer than no numbers");
    et_error_clear(cx);
    et_dist_end(&d);
    ok(!d && et_dist_world_size(NULL) == 1 && et_dist_global_rank(NULL) == 0,
       "without an object there is one rank, too");
}

/* ---- numbers ---- */

/* What OP makes of the numbers 1 + RANK, of which there are WORLD. */
static int64_t
expected(enum et_dist_op op, int world)
{
    int64_t out = 1;
    for (int64_t x = 2; x <= world; x++)
        out = op == ET_DIST_SUM       ? out + x
              : op == ET_DIST_PRODUCT ? out * x
              : op == ET_DIST_MIN     ? (x < out ? x : out)
              : op == ET_DIST_MAX     ? (x > out ? x : out)
              : op == ET_DIST_BAND    ? (out & x)
              : op == ET_DIST_BOR     ? (out | x)
                                      : (out ^ x);
    return out;
}

/* X as a number of DTYPE at AT. */
static void
put(void *at, enum et_dtype dtype, int64_t x)
{
    switch (dtype) {
    case ET_F32:
        *(float *)at = (float)x;
        break;
    case ET_F64:
        *(double *)at = (double)x;
        break;
    case ET_I32:
        *(int32_t *)at = (int32_t)x;
        break;
    case ET_I64:
        *(int64_t *)at = x;
        break;
    default:
        *(uint8_t *)at = (uint8_t)x;
    }
}

static int
reduce_all(struct et_ctx *cx, struct et_comm *c, void *data)
{
    static const enum et_dtype types[] = {ET_F32, ET_F64, ET_I32, ET_I64, ET_U8};
    struct et_dist *d;
    (void)c;
    (void)data;
    EXPECT(et_dist_init(cx, 0, &d) == ET_OK);
    int rank = et_dist_global_rank(d), world = et_dist_world_size(d);
    for (int t = 0; t < 5; t++)
        for (int op = ET_DIST_SUM; op <= ET_DIST_BXOR; op++) {
            bool real = types[t] == ET_F32 || types[t] == ET_F64;
            char x[64], want[64], before[64];
            size_t size = et_dtype_size(types[t]);
            for (int i = 0; i < 3; i++) {
                put(x + (size_t)i * size, types[t], 1 + rank);
                put(want + (size_t)i * size, types[t], expected(op, world));
            }
            memcpy(before, x, sizeof x);
            et_status s = et_dist_reduce(cx, d, x, 3, types[t], op, world - 1);
            if (real && op >= ET_DIST_BAND) {
                EXPECT(s == ET_EDTYPE);
                et_error_clear(cx);
                continue;
            }
            EXPECT(s == ET_OK);
            EXPECT(memcmp(x, rank == world - 1 ? want : before, 3 * size) == 0);
            memcpy(x, before, sizeof x);
            EXPECT(et_dist_all_reduce(cx, d, x, 3, types[t], op) == ET_OK);
            EXPECT(memcmp(x, want, 3 * size) == 0);
        }
    et_dist_end(&d);
    return 0;
}

/* Sums of numbers that do not add up exactly: the same bits everywhere. NaN is kept. */
static int
agree_on_bits(struct et_ctx *cx, struct et_comm *c, void *data)
{
    struct et_dist *d;
    double x[100], all[400];
    (void)c;
    (void)data;
    EXPECT(et_dist_init(cx, 0, &d) == ET_OK);
    int rank = et_dist_global_rank(d), world = et_dist_world_size(d);
    for (int i = 0; i < 100; i++)
        x[i] = sin(1.7 * i + rank) * pow(10, i % 7);
    EXPECT(et_dist_all_reduce(cx, d, x, 100, ET_F64, ET_DIST_SUM) == ET_OK);
    EXPECT(et_dist_all_gather(cx, d, x, 100, ET_F64, all) == ET_OK);
    for (int r = 0; r < world; r++)
        EXPECT(memcmp(all + 100 * r, x, sizeof x) == 0);
    float y = rank == 1 ? NAN : 1;
    EXPECT(et_dist_all_reduce(cx, d, &y, 1, ET_F32, ET_DIST_PRODUCT) == ET_OK);
    EXPECT(isnan(y));
    EXPECT(et_dist_all_reduce(cx, d, &y, 1, ET_BF16, ET_DIST_SUM) == ET_EDTYPE);
    et_error_clear(cx);
    EXPECT(et_dist_broadcast(cx, d, &y, 1, ET_F32, world) == ET_EINVAL);
    EXPECT(strstr(et_error_get(cx)->message, "src is rank"));
    et_error_clear(cx);
    et_dist_end(&d);
    return 0;
}

static int
spread(struct et_ctx *cx, struct et_comm *c, void *data)
{
    struct et_dist *d;
    (void)c;
    (void)data;
    EXPECT(et_dist_init(cx, 0, &d) == ET_OK);
    int rank = et_dist_global_rank(d), world = et_dist_world_size(d);
    int32_t all[8], own = 10 * rank;
    EXPECT(et_dist_all_gather(cx, d, &own, 1, ET_I32, all) == ET_OK);
    for (int r = 0; r < world; r++)
        EXPECT(all[r] == 10 * r);
    for (int src = 0; src < world; src++) {
        uint16_t half[3] = {(uint16_t)rank, (uint16_t)(rank + 1), 7};
        EXPECT(et_dist_broadcast(cx, d, half, 3, ET_BF16, src) == ET_OK);
        EXPECT(half[0] == src && half[1] == src + 1 && half[2] == 7);
    }
    et_dist_end(&d);
    return 0;
}

/* Rank R has R numbers, 100 R and on; behind them is -1, or 0. */
static int
fill_up(struct et_ctx *cx, struct et_comm *c, void *data)
{
    struct et_dist *d;
    int32_t own[8];
    const int32_t pad = -1;
    int64_t most;
    void *out;
    (void)c;
    (void)data;
    EXPECT(et_dist_init(cx, 0, &d) == ET_OK);
    int rank = et_dist_global_rank(d), world = et_dist_world_size(d);
    for (int i = 0; i < rank; i++)
        own[i] = 100 * rank + i;
    for (int filled = 0; filled < 2; filled++) {
        EXPECT(et_dist_all_gather_padded(cx, d, own, rank, ET_I32, filled ? &pad : NULL,
                                         &most, &out) == ET_OK);
        EXPECT(most == world - 1);
        const int32_t *v = out;
        for (int r = 0; r < world; r++)
            for (int i = 0; i < most; i++)
                EXPECT(v[r * most + i] == (i < r ? 100 * r + i : filled ? pad : 0));
        et_free(cx, out);
    }
    et_dist_end(&d);
    return 0;
}

/* ---- rows ---- */

/* Number I of row R of rank RANK. */
static float
of_row(int rank, int64_t r, int64_t i)
{
    return (float)(10000 * rank + 100 * r + i);
}

/* Rows of each sort, RANK + 1 of them, or of one rank none; pictures in both orders,
 * and lengths that differ. */
static int
gather_rows(struct et_ctx *cx, struct et_comm *c, void *data)
{
    enum { MOST = 1024, PAD = -7 };
    static const struct {
        int ndim;
        int64_t shape[4]; /* of a row from axis 1 on */
        enum et_format order;
        bool differs; /* axis 1 is longer by the rank */
    } rows[] = {
        {1, {0}, ET_ROW_MAJOR, false},
        {2, {5}, ET_ROW_MAJOR, false},
        {2, {2}, ET_ROW_MAJOR, true},
        {4, {3, 2, 4}, ET_ROW_MAJOR, false},
        {4, {3, 2, 4}, ET_CHANNELS_LAST, false},
        {4, {1, 3, 2}, ET_CHANNELS_LAST, false},
    };
    const int world = et_comm_world(c), rank = et_comm_rank(c);
    EXPECT(world == *(const int *)data);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int empty = -1; empty < world; empty++) {
            float own[MOST];
            struct et_desc d, want;
            struct eti_rows_of out;
            int64_t all = 0, at = 0;
            int64_t shape[ET_MAX_DIMS] = {rank == empty ? 0 : rank + 1};
            for (int k = 1; k < rows[i].ndim; k++)
                shape[k] =
                    rows[i].shape[k - 1] + (k == 1 && rows[i].differs ? rank : 0);
            et_desc_init(&d, ET_F32, rows[i].ndim, shape, rows[i].order);
            const int64_t n = shape[0], row = n ? et_desc_count(&d) / n : 0;
            for (int64_t k = 0; k < n * row; k++)
                own[k] = of_row(rank, k / row, k % row);
            EXPECT(eti_gather_rows(cx, c, own, n, &d, PAD, &out) == ET_OK);
            int longest = empty == world - 1 ? world - 2 : world - 1;
            for (int r = 0; r < world; r++)
                all += r == empty ? 0 : r + 1;
            shape[0] = all;
            if (rows[i].differs)
                shape[1] = rows[i].shape[0] + longest;
            if (all > 0) {
                et_desc_init(&want, ET_F32, rows[i].ndim, shape, rows[i].order);
                EXPECT(et_desc_equal(&out.desc, &want));
            }
            const float *v = out.data;
            const int64_t wide = all ? et_desc_count(&out.desc) / all : 0;
            for (int r = 0; r < world; r++)
                for (int64_t k = 0; r != empty && k < r + 1; k++, at++)
                    for (int64_t e = 0; e < wide; e++) {
                        bool is_own = !rows[i].differs || e < rows[i].shape[0] + r;
                        EXPECT(v[at * wide + e] == (is_own ? of_row(r, k, e) : PAD));
                    }
            eti_gathered_free(cx, &out);
        }
    return 0;
}

/* ---- objects ---- */

enum { BIG = 3 << 20 };

/* Rank r's object: nothing, a few bytes, 3 MB. */
static size_t
object_size(int rank)
{
    return rank == 0 ? 0 : rank == 1 ? 5 : BIG;
}

static int
pass_objects(struct et_ctx *cx, struct et_comm *c, void *data)
{
    struct et_dist *d;
    struct et_dist_object *all;
    (void)c;
    (void)data;
    EXPECT(et_dist_init(cx, 0, &d) == ET_OK);
    int rank = et_dist_global_rank(d), world = et_dist_world_size(d);
    char *own = malloc(BIG);
    memset(own, 'a' + rank, BIG);
    for (int dst = -1; dst < world; dst++) {
        et_status s =
            dst < 0 ? et_dist_all_gather_object(cx, d, own, object_size(rank), &all)
                    : et_dist_gather_object(cx, d, own, object_size(rank), dst, &all);
        EXPECT(s == ET_OK);
        EXPECT((all != NULL) == (dst < 0 || dst == rank));
        for (int r = 0; all && r < world; r++) {
            const char *bytes = all[r].data;
            EXPECT(all[r].bytes == object_size(r));
            EXPECT((uintptr_t)bytes % 16 == 0);
            for (size_t i = 0; i < all[r].bytes; i++)
                if (bytes[i] != 'a' + r)
                    return 2;
        }
        et_free(cx, all);
    }
    for (int src = 0; src < world; src++) {
        void *bytes = own;
        size_t n = rank == src ? object_size(src) : 77;
        EXPECT(et_dist_broadcast_object(cx, d, &bytes, &n, src) == ET_OK);
        EXPECT(n == object_size(src));
        EXPECT((bytes == own) == (rank == src));
        EXPECT(n == 0 || ((char *)bytes)[n - 1] == 'a' + src);
        if (rank != src)
            et_free(cx, bytes);
    }
    free(own);
    et_dist_end(&d);
    return 0;
}

/* ---- one first ---- */

struct first {
    char path[64];
    int rank;
    bool fails;
    struct et_ctx *cx;
};

/* The first makes a file, which the others find. */
static et_status
make_or_find(void *data)
{
    const struct first *f = data;
    if (f->rank > 0)
        return access(f->path, R_OK) == 0
                   ? ET_OK
                   : ET_FAIL(f->cx, ET_ENOENT, "the file is not there yet");
    usleep(100000);
    FILE *file = f->fails ? NULL : fopen(f->path, "we");
    if (!file)
        return ET_FAIL(f->cx, ET_EIO, "the file cannot be made");
    fclose(file);
    return ET_OK;
}

static int
let_one_go_first(struct et_ctx *cx, struct et_comm *c, void *data)
{
    struct first f = *(struct first *)data;
    struct et_dist *d;
    (void)c;
    EXPECT(et_dist_init(cx, 0, &d) == ET_OK);
    f.rank = et_dist_global_rank(d);
    f.cx = cx;
    et_status s = et_dist_local_zero_first(cx, d, make_or_find, &f);
    if (!f.fails) {
        EXPECT(s == ET_OK);
    } else {
        EXPECT(s == (f.rank == 0 ? ET_EIO : ET_EPEER));
        EXPECT(f.rank == 0 || strcmp(et_error_get(cx)->message,
                                     "rank 0 could not do what it does first") == 0);
        et_error_clear(cx);
    }
    EXPECT(et_dist_barrier(cx, d) == ET_OK); /* nobody is poisoned by that */
    et_dist_end(&d);
    return 0;
}

/* ---- ranks that are gone, late, or at something else ---- */

static int
lose_one(struct et_ctx *cx, struct et_comm *c, void *data)
{
    struct et_dist *d;
    double x = 1;
    (void)c;
    (void)data;
    EXPECT(et_dist_init(cx, 0, &d) == ET_OK);
    et_status s = et_dist_barrier(cx, d);
    if (et_dist_global_rank(d) == 1)
        raise(SIGKILL);
    if (s == ET_OK) /* rank 1 may go while others are still in the barrier */
        s = et_dist_all_reduce(cx, d, &x, 1, ET_F64, ET_DIST_SUM);
    EXPECT(s == ET_EPEER);
    printf("%s", et_error_get(cx)->message);
    et_error_clear(cx);
    EXPECT(et_dist_barrier(cx, d) == ET_EPEER);
    et_dist_end(&d);
    return 7;
}

static void
test_loss(void)
{
    struct group g;
    group_start_bare(&g, 3, 20, lose_one, NULL);
    group_wait(&g, 15, -1);
    is_int(g.exit[1], -SIGKILL, "of three ranks one is killed");
    ok(g.exit[0] == 7 && g.exit[2] == 7,
       "the others have EPEER long before the time is "
       "over");
    ok(strstr(g.text[0], "rank 1") && strstr(g.text[2], "rank 1"),
       "and their sentences name it: %s", g.text[0]);
}

static int
come_late(struct et_ctx *cx, struct et_comm *c, void *data)
{
    struct et_dist *d;
    (void)c;
    (void)data;
    EXPECT(et_dist_init(cx, 2, &d) == ET_OK);
    if (et_dist_global_rank(d) == 1)
        sleep(6);
    et_status s = et_dist_barrier(cx, d);
    printf("%s", et_error_get(cx)->message);
    et_error_clear(cx);
    et_dist_end(&d);
    return s == ET_EPEER ? 7 : 1;
}

/* Rank 0 adds numbers up while rank 1 has another number of them. */
static int
part_ways(struct et_ctx *cx, struct et_comm *c, void *data)
{
    struct et_dist *d;
    double x[2] = {1, 1};
    (void)c;
    (void)data;
    EXPECT(et_dist_init(cx, 2, &d) == ET_OK);
    et_status s =
        et_dist_all_reduce(cx, d, x, 1 + et_dist_global_rank(d), ET_F64, ET_DIST_SUM);
    printf("%s", et_error_get(cx)->message);
    et_error_clear(cx);
    et_dist_end(&d);
    return s == ET_EPEER ? 7 : 1;
}

static void
test_unlike(const char *what, group_fn *fn)
{
    struct group g;
    group_start_bare(&g, 2, 20, fn, NULL);
    group_wait(&g, 30, -1);
    ok(g.exit[0] == 7, "%s: EPEER within the time given to et_dist_init: %s", what,
       g.text[0]);
}

/* Two ranks reduce as many bytes, by another operation or as another type. What none of
 * both does itself goes by a gather, which would not tell. */
static int
reduce_unlike(struct et_ctx *cx, enum et_dtype dtype, enum et_dist_op op)
{
    struct et_dist *d;
    int32_t x[2] = {3, 5};
    EXPECT(et_dist_init(cx, 1, &d) == ET_OK);
    const bool first = et_dist_global_rank(d) == 0;
    et_status s = et_dist_all_reduce(cx, d, x, 2, first ? ET_I32 : dtype,
                                     first ? ET_DIST_PRODUCT : op);
    printf("%s", et_error_get(cx)->message);
    et_error_clear(cx);
    et_dist_end(&d);
    return s == ET_EPEER ? 7 : 1;
}

static int
part_types(struct et_ctx *cx, struct et_comm *c, void *data)
{
    (void)c, (void)data;
    return reduce_unlike(cx, ET_F32, ET_DIST_PRODUCT);
}

static int
part_operations(struct et_ctx *cx, struct et_comm *c, void *data)
{
    (void)c, (void)data;
    return reduce_unlike(cx, ET_I32, ET_DIST_BXOR);
}

/* Both at once: each waits until its time is over. */
static void
test_other_numbers(void)
{
    struct group g[2];
    group_start_bare(&g[0], 2, 20, part_types, NULL);
    group_start_bare(&g[1], 2, 20, part_operations, NULL);
    for (int i = 0; i < 2; i++) {
        group_wait(&g[i], 30, -1);
        ok(g[i].exit[0] == 7 && g[i].exit[1] == 7,
           "ranks that reduce %s do not get each other's numbers: %s",
           i ? "by another operation" : "another type", g[i].text[0]);
    }
}

static int
ask_for_nonsense(struct et_ctx *cx, struct et_comm *c, void *data)
{
    struct et_dist *d;
    (void)c;
    (void)data;
    setenv("RANK", "5", 1);
    EXPECT(et_dist_init(cx, 0, &d) == ET_EINVAL);
    EXPECT(!d && strstr(et_error_get(cx)->message, "RANK is 5 and WORLD_SIZE 2"));
    et_error_clear(cx);
    EXPECT(et_dist_init(cx, -1, &d) == ET_EINVAL);
    et_error_clear(cx);
    return 0;
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct first first = {.fails = false};
    test_alone(cx);
    et_ctx_free(&cx);
    if (!group_possible()) {
        ok(true, "the rest needs Gloo # SKIP built without");
        return done();
    }
    for (int world = 1; world <= 3; world++)
        ok(all_well(world, know_themselves, &world), "%d ranks know who they are",
           world);
    for (int world = 2; world <= 3; world++) {
        ok(all_well(world, reduce_all, NULL),
           "%d ranks reduce five types by seven operations, for all and for one",
           world);
        ok(all_well(world, agree_on_bits, NULL),
           "%d ranks have the same bits, and what cannot be reduced is refused", world);
        ok(all_well(world, spread, NULL), "%d ranks gather, and each has a word",
           world);
        ok(all_well(world, fill_up, NULL), "%d ranks gather as many as each has",
           world);
        ok(all_well_with(world, gather_rows, &world),
           "%d ranks gather rows of every sort", world);
        ok(all_well(world, pass_objects, NULL),
           "%d ranks pass objects of no bytes, a few, and 3 MB", world);
    }
    snprintf(first.path, sizeof first.path, "/tmp/etude-facade-%ld", (long)getpid());
    ok(all_well(3, let_one_go_first, &first), "others come after the first");
    unlink(first.path);
    first.fails = true;
    ok(all_well(3, let_one_go_first, &first),
       "where it fails, they say whose failure that is");
    ok(all_well(2, ask_for_nonsense, NULL),
       "an environment that does not fit is refused");
    test_loss();
    test_unlike("a rank that is late", come_late);
    test_unlike("ranks that reduce different numbers of numbers", part_ways);
    test_other_numbers();
    return done();
}
