/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives as part of a graph: values, order, overlap with kernels, failure. */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph/collective.h"
#include "etude/etude.h"
#include "t/device.h"
#include "t/dist/group.h"
#include "t/tap.h"

enum { N = 3000, PARTS = 6 };

struct bench {
    struct et_ctx *cx;
    struct et_device *dev;
    struct et_graph *g;
    struct et_tensor *x[PARTS], *weight, *kept;
};

static int
said(struct et_ctx *cx)
{
    printf("%s", et_error_get(cx)->message);
    return 2;
}

#define TRY(expr)                                                                      \
    do {                                                                               \
        if ((expr) != ET_OK)                                                           \
            return said(b->cx);                                                        \
    } while (0)

static int
make(struct bench *b, struct et_ctx *cx, struct et_comm *c)
{
    const int64_t n[] = {N}, one[] = {1};
    float values[N], weight = (float)et_comm_rank(c);
    *b = (struct bench){.cx = cx};
    TRY(et_device_open(cx, "ref", 0, 1, &b->dev));
    TRY(et_graph_new(cx, b->dev, &b->g));
    et_graph_set_comm(b->g, c);
    for (int k = 0; k < PARTS; k++) {
        for (int i = 0; i < N; i++)
            values[i] = (float)(i % 10 + 10 * k + 100 * et_comm_rank(c));
        TRY(et_tensor_new(cx, b->dev, ET_F32, 1, n, ET_ROW_MAJOR, "x", &b->x[k]));
        TRY(et_tensor_write(cx, b->x[k], values, sizeof values));
    }
    TRY(et_tensor_new(cx, b->dev, ET_F32, 1, one, ET_ROW_MAJOR, "weight", &b->weight));
    TRY(et_tensor_new(cx, b->dev, ET_F32, 1, n, ET_ROW_MAJOR, "kept", &b->kept));
    TRY(et_tensor_write(cx, b->weight, &weight, sizeof weight));
    return 0;
}

static void
release(struct bench *b)
{
    for (int k = 0; k < PARTS; k++)
        et_tensor_free(&b->x[k]);
    et_tensor_free(&b->weight);
    et_tensor_free(&b->kept);
    et_graph_free(&b->g);
    et_device_close(&b->dev);
}

/* Of element I of part K: x itself, and its sum over the ranks. */
static float
own(int k, int i, int rank)
{
    return (float)(i % 10 + 10 * k + 100 * rank);
}

static float
total(int k, int i, int world)
{
    return (float)(world * (i % 10 + 10 * k) + 100 * (world * (world - 1) / 2));
}

/* y_k = all_reduce(2 x_k) for every k, side by side in one array, while h = x_0 + 2 x_1
 * +
 * ... is computed through memory that the plan shares out. */
static int
step(struct bench *b, struct et_comm *c)
{
    struct et_graph *g = b->g;
    static float got[PARTS * N], sum[N], kept[N];
    struct et_tensor *y[PARTS], *h = NULL, *want[2];
    int64_t offset[PARTS];
    int world = et_comm_world(c), rank = et_comm_rank(c);
    et_graph_reset(g);
    for (int k = 0; k < PARTS; k++) {
        struct et_tensor *twice = et_mul_scalar(g, b->x[k], 2);
        y[k] = et_all_reduce(g, twice, NULL);
        offset[k] = k * N;
        h = h ? et_sqrt(g, et_square(g, et_add(g, h, twice))) : twice;
    }
    want[0] = et_pack(g, y, offset, PARTS, PARTS * N, ET_F32);
    want[1] = h;
    et_assign(g, b->kept, et_all_reduce(g, b->x[2], b->weight));
    TRY(et_eval(g, want, 2));
    TRY(et_tensor_read(b->cx, want[0], got, sizeof got));
    TRY(et_tensor_read(b->cx, want[1], sum, sizeof sum));
    TRY(et_tensor_read(b->cx, b->kept, kept, sizeof kept));
    for (int i = 0; i < N; i++) {
        float h_want = 0, weighted = 0;
        for (int k = 0; k < PARTS; k++) {
            h_want += 2 * own(k, i, rank);
            if (got[k * N + i] != 2 * total(k, i, world))
                return printf("y_%d [%d] is %g, not %g", k, i, (double)got[k * N + i],
                              (double)(2 * total(k, i, world))),
                       1;
        }
        for (int r = 0; r < world; r++)
            weighted += (float)r * own(2, i, r);
        if (sum[i] != h_want || kept[i] != weighted)
            return printf("h [%d] is %g, not %g; kept %g, not %g", i, (double)sum[i],
                          (double)h_want, (double)kept[i], (double)weighted),
                   1;
    }
    return 0;
}

static int
values(struct et_ctx *cx, struct et_comm *c, void *data)
{
    struct bench b;
    int code = make(&b, cx, c);
    (void)data;
    for (int i = 0; i < 3 && code == 0; i++)
        code = step(&b, c);
    release(&b);
    return code;
}

/* Of the step above, the collectives' place in the order: begun before the last
 * kernel. */
static char plan_text[1 << 14];

static void
note(void *data, enum et_log_level level, const char *text)
{
    size_t n = strlen(plan_text);
    (void)data;
    (void)level;
    snprintf(plan_text + n, sizeof plan_text - n, "%s\n", text);
}

static int
order(struct et_ctx *cx, struct et_comm *c, void *data)
{
    struct bench b;
    (void)data;
    setenv("ETUDE_DUMP", "plan", 1);
    et_ctx_set_log(cx, ET_LOG_INFO, note, NULL);
    int code = make(&b, cx, c);
    struct et_graph *g = b.g;
    struct et_tensor *x = b.x[0], *h = x, *y[3];
    for (int k = 0; k < 3; k++)
        h = et_sum_squares(g,
                           et_mul(g, h, b.x[k])); /* three kernels that cannot fuse */
    for (int k = 0; k < 3; k++)
        y[k] = et_all_reduce(g, et_mul_scalar(g, b.x[k], 2), NULL);
    struct et_tensor *want[] = {et_add(g, et_add(g, y[0], et_add(g, y[1], y[2])), h)};
    if (code == 0 && et_eval(g, want, 1) != ET_OK)
        code = said(cx);
    char *table = strstr(plan_text, "\n count "); /* by operation, no longer in order */
    if (table)
        *table = '\0';
    const char *first = strstr(plan_text, "all_reduce"), *last = NULL;
    for (const char *at = plan_text; (at = strstr(at, "sum_squares")); at++)
        last = at;
    if (code == 0 && !(first && last && strstr(last, "all_reduce")))
        code = (printf("%s", plan_text), 3);
    release(&b);
    return code;
}

static int
peer_dies(struct et_ctx *cx, struct et_comm *c, void *data)
{
    struct bench b;
    int code = make(&b, cx, c);
    (void)data;
    int failed = code == 0 ? step(&b, c) : 0;
    if (et_comm_rank(c) == 1)
        raise(SIGKILL); /* perhaps before the other has all of that step */
    if (code == 0 && !failed)
        failed = step(&b, c);
    if (code == 0 && (failed != 2 || et_error_get(cx)->status != ET_EPEER))
        code = (printf("the step did not fail"), 3);
    et_error_clear(cx);
    release(&b);
    return code == 0 ? 42 : code;
}

static int
narrow(struct et_ctx *cx, struct et_comm *c, void *data)
{
    struct bench b;
    int code = make(&b, cx, c);
    (void)data;
    if (code == 0 && et_all_reduce(b.g, et_cast(b.g, b.x[0], ET_BF16), NULL))
        code = (printf("bf16 was taken"), 3);
    if (code == 0 && et_graph_status(b.g) != ET_EDTYPE)
        code = said(cx);
    et_error_clear(cx);
    release(&b);
    return code;
}

/* How rank 1 differs: all collectives have the same kind and size, so that only what
 * they are could tell. */
enum stray {
    LEAVES_OUT, /* its graph lacks the first of them */
    IS_AHEAD,   /* it is a step further */
    STANDS_IN,  /* it does them without the graph, as one that is short of memory: right
                 */
};

static int
strays(struct et_ctx *cx, struct et_comm *c, void *data)
{
    const enum stray *how = data;
    struct bench b;
    float got[N];
    int64_t sizes[] = {N, N, N};
    int code = make(&b, cx, c);
    bool differs = et_comm_rank(c) == 1;
    struct et_tensor *y[3] = {0};
    uint32_t set = eti_collectives_set(b.g, sizes, 3);
    et_status status = ET_OK;
    et_comm_set_mark(c, 7 + (differs && *how == IS_AHEAD), 0, 0);
    for (int k = 0; k < 3 && differs && *how == STANDS_IN && status == ET_OK; k++) {
        memset(got, 0, sizeof got);
        et_comm_set_mark(c, -1, 1 + k, set);
        status = et_comm_all_reduce(cx, c, got, N, ET_F32, ET_COMM_SUM);
    }
    if (!differs || *how != STANDS_IN) {
        int first = differs && *how == LEAVES_OUT;
        for (int k = first; k < 3; k++)
            y[k - first] = et_all_reduce(b.g, et_mul_scalar(b.g, b.x[k], 2), NULL);
        status = et_eval(b.g, y, 3 - first);
    }
    struct et_comm_look look;
    et_comm_get_look(c, &look);
    if (code == 0 && status == ET_EPEER)
        code = (printf("%s at collective %d", et_error_get(cx)->message, (int)look.seq),
                42);
    else if (code == 0 && status != ET_OK)
        code = said(cx);
    et_error_clear(cx);
    release(&b);
    return code;
}

/* (They have more time than to meet takes on any machine.) */
static void
test_strays(enum stray how, const char *what)
{
    struct group g;
    group_start(&g, 2, 8, strays, &how);
    group_wait(&g, 300, -1);
    ok(g.exit[0] == 42 && strstr(g.text[0], "at collective 1"),
       "%s: the ranks add nothing up: %s", what, g.text[0]);
    is_int(g.exit[1], 42, "... neither of them");
}

int
main(void)
{
    if (!group_possible())
        skip_all("built without Gloo");
    struct group g;
    for (int world = 2; world <= 3; world++)
        ok(group_run(world, values, NULL),
           "%d ranks: sums in a graph are right, and so is what is computed beside "
           "them",
           world);
    setenv("ETUDE_EAGER", "1", 1);
    ok(group_run(2, values, NULL), "... node by node as well");
    unsetenv("ETUDE_EAGER");
    ok(group_run(2, order, NULL),
       "a collective begins before kernels that it needs not");
    ok(group_run(2, narrow, NULL), "half floats are refused");
    test_strays(LEAVES_OUT, "a rank leaves out one of several alike");
    test_strays(IS_AHEAD, "a rank is a step further");
    ok(group_run(2, strays, &(enum stray){STANDS_IN}),
       "who does a step's collectives without its graph meets the others");
    setenv("ETUDE_EAGER", "1", 1);
    ok(group_run(2, strays, &(enum stray){STANDS_IN}), "... node by node as well");
    unsetenv("ETUDE_EAGER");
    group_start(&g, 2, 3600, peer_dies, NULL);
    group_wait(&g, 300, -1);
    is_int(g.exit[0], 42, "a rank is killed: the other's evaluation fails");
    ok(strstr(g.text[0], "all_reduce") && strstr(g.text[0], "rank 1 is gone"),
       "... and says so: %s", g.text[0]);
    return done();
}
