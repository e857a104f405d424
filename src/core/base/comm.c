/* SPDX-License-Identifier: Apache-2.0 */
/* comm.c: collectives, whoever fills them: order, failure, and a thread for those that
 * go on beside other work. See etude/comm.h.
 *
 * A filler does one collective at a time and waits for it. What is started is put into
 * a queue that one thread works through; a collective that is waited for lets the queue
 * run dry and is then done by the thread that asked for it, which saves two changes of
 * thread. So all of them happen in the order in which they were asked for. */
#include "etude/comm.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/base/assert.h"
#include "core/base/comm.h"
#include "core/base/need.h"
#include "core/base/thread.h"

struct et_comm {
    struct et_ctx *cx;
    const struct et_comm_class *type;
    void *self;
    int rank, world;
    struct et_comm_mark mark; /* of the calling thread's next */

    pthread_mutex_t lock;      /* guards all below */
    pthread_cond_t work, idle; /* for the thread; for those who wait for it */
    struct et_comm_request *first, **end;
    struct et_comm_look look;
    bool left;               /* look.failed is by eti_comm_fail, and nothing was lost */
    et_comm_watch_fn *watch; /* NULL: nobody does */
    void *watch_data;
    bool threaded, stop;
    pthread_t thread;
};

const char *
et_comm_kind_name(enum et_comm_kind kind)
{
    static const char *const names[] = {
#define ET_COMM_KIND_TEXT(code, number, text) [number] = text,
        ET_COMM_KIND_MAP(ET_COMM_KIND_TEXT)
#undef ET_COMM_KIND_TEXT
    };
    return names[kind];
}

/* Not the context's clock: the thread has no context, and a test that turns that one
 * back means the run's. */
static int64_t
clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

et_status
et_comm_new(struct et_ctx *cx, const struct et_comm_class *type, void *self, int rank,
            int world, struct et_comm **out)
{
    ETI_NEED(cx, cx, type, out);
    void *block;
    *out = NULL;
    ET_ASSERT(world >= 1 && rank >= 0 && rank < world);
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct et_comm *c = block;
    c->cx = cx;
    c->type = type;
    c->self = self;
    c->rank = rank;
    c->world = world;
    c->end = &c->first;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->work, NULL);
    pthread_cond_init(&c->idle, NULL);
    *out = c;
    return ET_OK;
}

void
et_comm_close(struct et_comm **out)
{
    if (!out)
        return;
    struct et_comm *c = *out;
    *out = NULL;
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->stop = true;
    pthread_cond_broadcast(&c->work);
    pthread_mutex_unlock(&c->lock);
    if (c->threaded)
        pthread_join(c->thread, NULL);
    c->type->close(c->self, c->look.failed);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->work);
    pthread_cond_destroy(&c->idle);
    et_free(c->cx, c);
}

void
eti_comm_fail(struct et_comm *c, et_status status)
{
    if (!c || status == ET_OK || status == ET_EPEER)
        return;
    pthread_mutex_lock(&c->lock);
    if (!c->look.failed) {
        c->look.failed = c->left = true;
        snprintf(c->look.why, sizeof c->look.why, "rank %d has failed", c->rank);
    }
    pthread_mutex_unlock(&c->lock);
}

void
eti_comm_begin(struct et_comm *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    if (c->left)
        c->look.failed = c->left = false;
    pthread_mutex_unlock(&c->lock);
}

int
et_comm_rank(const struct et_comm *c)
{
    return c ? c->rank : 0;
}

int
et_comm_world(const struct et_comm *c)
{
    return c ? c->world : 1;
}

/* ---- one collective ---- */

static void
tell(struct et_comm *c)
{
    if (c->watch)
        c->watch(c->watch_data, &c->look);
}

/* With the lock held, and without it meanwhile. */
static et_status
run(struct et_comm *c, const struct et_comm_call *call)
{
    char why[sizeof c->look.why] = "";
    if (c->look.failed)
        return ET_EPEER;
    if (call->n == 0 && call->kind != ET_COMM_BARRIER)
        return ET_OK;
    c->look.seq++;
    c->look.busy = true;
    c->look.kind = call->kind;
    c->look.dtype = call->dtype;
    c->look.n = call->n;
    c->look.mark = call->mark;
    c->look.since_ns = clock_ns();
    tell(c);
    pthread_mutex_unlock(&c->lock);
    et_status status = c->type->run(c->self, call, why, sizeof why);
    pthread_mutex_lock(&c->lock);
    c->look.busy = false;
    if (status != ET_OK) {
        c->look.failed = true;
        memcpy(c->look.why, why, sizeof why);
    }
    tell(c);
    return status == ET_OK ? ET_OK : ET_EPEER;
}

/* The sentence of the failure that poisoned C. */
static et_status
fail(struct et_ctx *cx, struct et_comm *c)
{
    struct et_comm_look look;
    et_comm_get_look(c, &look);
    return ET_FAIL(cx, ET_EPEER, "%s", look.why);
}

void
et_comm_set_mark(struct et_comm *c, int64_t step, int which, uint32_t set)
{
    if (c)
        c->mark = (struct et_comm_mark){step < 0 ? c->mark.step : step, which, set};
}

/* In this thread, after all that was started. */
static et_status
run_now(struct et_ctx *cx, struct et_comm *c, struct et_comm_call *call)
{
    int64_t begin = clock_ns();
    call->mark = c->mark;
    pthread_mutex_lock(&c->lock);
    while (c->first)
        pthread_cond_wait(&c->idle, &c->lock);
    et_status status = run(c, call);
    c->look.wait_ns += clock_ns() - begin;
    pthread_mutex_unlock(&c->lock);
    return status == ET_OK ? ET_OK : fail(cx, c);
}

static et_status
check_dtype(struct et_ctx *cx, enum et_dtype dtype)
{
    if (dtype == ET_F32 || dtype == ET_F64 || dtype == ET_I64 || dtype == ET_U8)
        return ET_OK;
    return ET_FAIL(cx, ET_EDTYPE, "ranks reduce f32, f64, i64 and u8, not %s",
                   et_dtype_name(dtype));
}

et_status
et_comm_all_reduce(struct et_ctx *cx, struct et_comm *c, void *data, int64_t n,
                   enum et_dtype dtype, enum et_comm_op op)
{
    struct et_comm_call call = {
        .kind = ET_COMM_ALL_REDUCE,
        .op = op,
        .dtype = dtype,
        .in = data,
        .out = data,
        .n = n,
    };
    ET_TRY(check_dtype(cx, dtype));
    return et_comm_world(c) > 1 ? run_now(cx, c, &call) : ET_OK;
}

et_status
et_comm_reduce_scatter(struct et_ctx *cx, struct et_comm *c, const void *in, int64_t n,
                       enum et_dtype dtype, enum et_comm_op op, void *out)
{
    if (n > 0)
        ETI_NEED(cx, in, out);
    size_t size = et_dtype_size(dtype);
    int world = et_comm_world(c), rank = et_comm_rank(c);
    int64_t begin = n * rank / world, end = n * (rank + 1) / world;
    void *all;
    if (world == 1) {
        memmove(out, in, (size_t)n * size);
        return ET_OK;
    }
    ET_TRY(et_alloc(cx, (size_t)n * size + 1, &all));
    memcpy(all, in, (size_t)n * size);
    et_status status = et_comm_all_reduce(cx, c, all, n, dtype, op);
    if (status == ET_OK)
        memcpy(out, (char *)all + (size_t)begin * size, (size_t)(end - begin) * size);
    et_free(cx, all);
    return status;
}

et_status
et_comm_all_gather(struct et_ctx *cx, struct et_comm *c, const void *in, size_t bytes,
                   void *out)
{
    if (bytes > 0)
        ETI_NEED(cx, in, out);
    struct et_comm_call call = {
        .kind = ET_COMM_ALL_GATHER,
        .dtype = ET_U8,
        .in = in,
        .out = out,
        .n = (int64_t)bytes,
    };
    if (et_comm_world(c) > 1)
        return run_now(cx, c, &call);
    memmove(out, in, bytes);
    return ET_OK;
}

et_status
et_comm_broadcast(struct et_ctx *cx, struct et_comm *c, void *data, size_t bytes,
                  int root)
{
    if (bytes > 0)
        ETI_NEED(cx, data);
    struct et_comm_call call = {
        .kind = ET_COMM_BROADCAST,
        .dtype = ET_U8,
        .in = data,
        .out = data,
        .n = (int64_t)bytes,
        .root = root,
    };
    ET_ASSERT(root >= 0 && root < et_comm_world(c));
    return et_comm_world(c) > 1 ? run_now(cx, c, &call) : ET_OK;
}

et_status
et_comm_barrier(struct et_ctx *cx, struct et_comm *c)
{
    struct et_comm_call call = {.kind = ET_COMM_BARRIER, .dtype = ET_U8};
    return et_comm_world(c) > 1 ? run_now(cx, c, &call) : ET_OK;
}

/* ---- those that go on beside other work ---- */

#define WEIGH(T)                                                                       \
    static void weigh_##T(T *out, const T *in, int64_t n, T weight)                    \
    {                                                                                  \
        for (int64_t i = 0; i < n; i++)                                                \
            out[i] = weight * in[i];                                                   \
    }
WEIGH(float)
WEIGH(double)

/* OUT = weight IN; what has no weight may hold anything. */
static void
weigh(const struct et_comm_request *r)
{
    size_t bytes = (size_t)r->n * et_dtype_size(r->dtype);
    float weight = r->weight ? *r->weight : 1;
    if (weight == 0)
        memset(r->out, 0, bytes);
    else if (weight == 1 && r->in != r->out)
        memcpy(r->out, r->in, bytes);
    else if (weight != 1 && r->dtype == ET_F64)
        weigh_double(r->out, r->in, r->n, (double)weight);
    else if (weight != 1)
        weigh_float(r->out, r->in, r->n, weight);
}

static et_status
run_request(struct et_comm *c, const struct et_comm_request *r)
{
    struct et_comm_call call = {
        .kind = ET_COMM_ALL_REDUCE,
        .op = ET_COMM_SUM,
        .dtype = r->dtype,
        .in = r->in,
        .out = r->out,
        .n = r->n,
        .mark = r->mark,
    };
    if (r->weight && *r->weight != 1 && !c->look.failed) {
        pthread_mutex_unlock(&c->lock);
        weigh(r);
        pthread_mutex_lock(&c->lock);
        call.in = r->out;
    }
    return run(c, &call);
}

static void *
work(void *data)
{
    struct et_comm *c = data;
    pthread_mutex_lock(&c->lock);
    for (;;) {
        struct et_comm_request *r = c->first;
        if (!r && c->stop)
            break;
        if (!r) {
            pthread_cond_wait(&c->work, &c->lock);
            continue;
        }
        r->status = run_request(c, r);
        c->first = r->next;
        if (!c->first)
            c->end = &c->first;
        r->done = true;
        pthread_cond_broadcast(&c->idle);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static et_status
start_thread(struct et_ctx *cx, struct et_comm *c)
{
    if (c->threaded)
        return ET_OK;
    int error = eti_thread_begin(&c->thread, work, c);
    c->threaded = error == 0;
    return error == 0 ? ET_OK
                      : ET_FAIL(cx, ET_EIO, "cannot start a thread for collectives: %s",
                                strerror(error));
}

et_status
et_comm_start(struct et_ctx *cx, struct et_comm *c, struct et_comm_request *r)
{
    ETI_NEED(cx, r);
    r->next = NULL;
    r->status = ET_OK;
    r->done = et_comm_world(c) == 1;
    if (r->dtype != ET_F32 && r->dtype != ET_F64)
        return ET_FAIL(cx, ET_EDTYPE, "ranks add up f32 and f64, not %s",
                       et_dtype_name(r->dtype));
    if (r->done) {
        weigh(r);
        return ET_OK;
    }
    ET_TRY(start_thread(cx, c));
    r->mark.step = c->mark.step;
    pthread_mutex_lock(&c->lock);
    *c->end = r;
    c->end = &r->next;
    pthread_cond_signal(&c->work);
    pthread_mutex_unlock(&c->lock);
    return ET_OK;
}

et_status
et_comm_wait(struct et_ctx *cx, struct et_comm *c, struct et_comm_request *r)
{
    if (et_comm_world(c) == 1)
        return ET_OK;
    int64_t begin = clock_ns();
    pthread_mutex_lock(&c->lock);
    while (!r->done)
        pthread_cond_wait(&c->idle, &c->lock);
    c->look.wait_ns += clock_ns() - begin;
    pthread_mutex_unlock(&c->lock);
    return r->status == ET_OK ? ET_OK : fail(cx, c);
}

void
et_comm_watch(struct et_comm *c, et_comm_watch_fn *fn, void *data)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->watch = fn;
    c->watch_data = data;
    pthread_mutex_unlock(&c->lock);
}

void
et_comm_get_look(struct et_comm *c, struct et_comm_look *out)
{
    if (!out)
        return;
    memset(out, 0, sizeof *out);
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    *out = c->look;
    pthread_mutex_unlock(&c->lock);
}
