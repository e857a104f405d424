/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives over a transport of the test: the calls that it gets, what a watcher
 * sees, failures, and collectives of a single rank. */
#include "config.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "core/base/comm.h"
#include "core/base/thread.h"
#include "core/base/well_formed.h"
#include "etude/ctx.h"
#include "t/tap.h"

static struct et_ctx *cx;

enum { CALLS = 16 };

struct transport {
    struct et_comm_call call[CALLS];
    int n, fail_at; /* fail_at: the call that fails, from 1 */
};

static et_status
transport_run(void *self, const struct et_comm_call *call, char *why, size_t why_size)
{
    struct transport *t = self;
    if (t->n < CALLS)
        t->call[t->n] = *call;
    if (++t->n != t->fail_at)
        return ET_OK;
    snprintf(why, why_size, "rank 2 is late");
    return ET_EIO;
}

static void
transport_close(void *self, bool failed)
{
    ((struct transport *)self)->fail_at = failed ? -1 : 0;
}

static const struct et_comm_class transport_class = {
    .name = "test", .run = transport_run, .close = transport_close};

/* Rank 1 of 3. */
static struct et_comm *
open_comm(struct transport *t)
{
    struct et_comm *c;
    if (et_comm_new(cx, &transport_class, t, 1, 3, &c) != ET_OK)
        bail("no communicator");
    return c;
}

/* ---- calls ---- */

static void
test_calls(void)
{
    static const struct {
        enum et_comm_kind kind;
        enum et_comm_op op;
        enum et_dtype dtype;
        int64_t n;
        int root;
    } want[] = {
        {ET_COMM_ALL_REDUCE, ET_COMM_MAX, ET_F64, 5, 0},
        {ET_COMM_ALL_REDUCE, ET_COMM_MIN, ET_I64, 4, 0},
        {ET_COMM_ALL_REDUCE, ET_COMM_MAX, ET_F32, 7, 0},
        {ET_COMM_ALL_GATHER, ET_COMM_SUM, ET_U8, 6, 0},
        {ET_COMM_BROADCAST, ET_COMM_SUM, ET_U8, 9, 2},
        {ET_COMM_BARRIER, ET_COMM_SUM, ET_U8, 0, 0},
    };
    enum { N = sizeof want / sizeof *want };
    struct transport t = {0};
    struct et_comm *c = open_comm(&t);
    struct et_comm_look look;
    double data[12] = {0}, all[12];
    float whole[7] = {0}, part[3];
    for (int k = 0; k < N; k++) {
        et_comm_set_mark(c, 100 + k, 10 + k, 20 + (uint32_t)k);
        et_status status =
            k == 0   ? et_comm_all_reduce(cx, c, data, 5, ET_F64, want[k].op)
            : k == 1 ? et_comm_all_reduce(cx, c, data, 4, ET_I64, want[k].op)
            : k == 2 ? et_comm_reduce_scatter(cx, c, whole, 7, ET_F32, want[k].op, part)
            : k == 3 ? et_comm_all_gather(cx, c, data, 6, all)
            : k == 4 ? et_comm_broadcast(cx, c, data, 9, want[k].root)
                     : et_comm_barrier(cx, c);
        const struct et_comm_call *call = &t.call[k];
        const char *name = et_comm_kind_name(want[k].kind);
        ok(status == ET_OK && t.n == k + 1 && call->kind == want[k].kind &&
               call->op == want[k].op && call->dtype == want[k].dtype &&
               call->n == want[k].n && call->root == want[k].root,
           "call %d is %s of %lld numbers, as it was asked for", k, name,
           (long long)want[k].n);
        ok(call->mark.step == 100 + k && call->mark.which == 10 + k &&
               call->mark.set == 20 + (uint32_t)k,
           "a call has the mark that was set");
        et_comm_get_look(c, &look);
        ok(look.seq == (uint64_t)k + 1 && !look.busy && look.kind == want[k].kind &&
               look.dtype == want[k].dtype && look.n == want[k].n &&
               look.mark.step == 100 + k && look.mark.which == 10 + k &&
               look.mark.set == 20 + (uint32_t)k && look.since_ns > 0 && !look.failed,
           "a look at the communicator shows the call");
    }
    ok(t.call[0].in == data && t.call[0].out == data && t.call[3].in == data &&
           t.call[3].out == all && t.call[4].in == data && t.call[4].out == data,
       "gathering writes to other memory, reducing and broadcasting write in place");
    et_comm_close(&c);
}

/* ---- watchers ---- */

struct seen {
    int n, busy;
    struct et_comm_look last;
};

static void
see(void *data, const struct et_comm_look *look)
{
    struct seen *s = data;
    s->n++;
    s->busy += look->busy;
    s->last = *look;
}

static void
test_watching(void)
{
    struct transport t = {.fail_at = 3};
    struct et_comm *c = open_comm(&t);
    struct seen s = {0};
    double data[8] = {0};
    et_comm_watch(c, see, &s);
    (void)!et_comm_broadcast(cx, c, data, 8, 0);
    ok(s.n == 2 && s.busy == 1 && !s.last.busy && s.last.seq == 1 && s.last.n == 8,
       "a watcher is told when a collective begins and when it ends");
    et_comm_watch(c, NULL, NULL);
    (void)!et_comm_barrier(cx, c);
    is_int(s.n, 2, "a watcher that was removed is told nothing");
    et_comm_watch(c, see, &s);
    is_int(et_comm_barrier(cx, c), ET_EPEER,
           "a barrier fails with ET_EPEER, whatever its transport's error");
    et_error_clear(cx);
    ok(s.n == 4 && !s.last.busy && s.last.failed &&
           strcmp(s.last.why, "rank 2 is late") == 0,
       "a watcher is told of a failure with its reason");
    (void)!et_comm_barrier(cx, c);
    et_error_clear(cx);
    is_int(s.n, 4, "a watcher is not told of collectives after a failure");
    et_comm_close(&c);
}

/* ---- failures ---- */

static bool
meets(struct et_comm *c)
{
    bool met = et_comm_barrier(cx, c) == ET_OK;
    if (met)
        et_error_clear(cx);
    return met;
}

static void
test_failing(void)
{
    struct transport t = {0};
    struct et_comm *c = open_comm(&t);
    eti_comm_fail(c, ET_OK);
    ok(meets(c), "a rank that has not failed meets the others");
    eti_comm_fail(c, ET_EPEER);
    ok(meets(c), "a rank that was told of another's failure meets the others");
    eti_comm_fail(c, ET_EIO);
    ok(!meets(c) && t.n == 2, "a rank that has failed itself does not meet the others");
    is_str(et_error_get(cx)->message, "rank 1 has failed",
           "a rank that has failed names itself in the error");
    et_error_clear(cx);
    eti_comm_begin(c);
    ok(meets(c) && t.n == 3,
       "a rank that has failed meets the others after a new beginning");
    t.fail_at = 4;
    ok(!meets(c), "a barrier whose transport fails does not meet the others");
    et_error_clear(cx);
    eti_comm_fail(c, ET_EINVAL);
    eti_comm_begin(c);
    ok(!meets(c) && t.n == 4, "a failed transport stays failed after a new beginning");
    is_str(et_error_get(cx)->message, "rank 2 is late",
           "a failed transport keeps its reason");
    et_error_clear(cx);
    et_comm_close(&c);
    is_int(t.fail_at, -1, "a communicator that has failed is closed as failed");
    c = open_comm(&t);
    t.fail_at = 0;
    eti_comm_fail(c, ET_EIO);
    eti_comm_begin(c);
    et_comm_close(&c);
    is_int(t.fail_at, 0, "a communicator that began anew is closed as working");
}

/* ---- one rank ---- */

static void
test_alone(void)
{
    float f[3] = {1, 2, 3}, g[3] = {0}, weight = 3;
    double d[2] = {5, 7}, e[2] = {NAN, NAN};
    struct et_comm_request r = {.in = f, .out = g, .n = 2, .dtype = ET_F32};
    ok(et_comm_reduce_scatter(cx, NULL, f, 3, ET_F32, ET_COMM_MAX, g) == ET_OK &&
           g[0] == 1 && g[1] == 2 && g[2] == 3,
       "a single rank's slice of a reduction is the whole array");
    ok(et_comm_all_gather(cx, NULL, d, sizeof d, e) == ET_OK && e[0] == 5 && e[1] == 7,
       "a single rank gathers its own array");
    r.weight = &weight;
    ok(et_comm_start(cx, NULL, &r) == ET_OK && et_comm_wait(cx, NULL, &r) == ET_OK &&
           r.done && g[0] == 3 && g[1] == 6 && g[2] == 3,
       "a single rank's sum is weighted, in the N numbers of the request alone");
    r = (struct et_comm_request){
        .in = d, .out = d, .n = 2, .dtype = ET_F64, .weight = &weight};
    ok(et_comm_start(cx, NULL, &r) == ET_OK && d[0] == 15 && d[1] == 21,
       "a single rank's sum of f64 is weighted in place");
    weight = 1;
    r.out = e;
    ok(et_comm_start(cx, NULL, &r) == ET_OK && e[0] == 15 && e[1] == 21,
       "a single rank's sum with weight 1 is a copy");
    weight = 0;
    d[1] = NAN;
    ok(et_comm_start(cx, NULL, &r) == ET_OK && e[0] == 0 && e[1] == 0,
       "a single rank's sum with weight 0 is 0, even of NaN");
    r.dtype = ET_I64;
    is_int(et_comm_start(cx, NULL, &r), ET_EDTYPE,
           "weighted sums of whole numbers are refused");
    et_error_clear(cx);
}

/* ---- threads ---- */

static void *
see_mask(void *data)
{
    pthread_sigmask(SIG_SETMASK, NULL, data);
    return NULL;
}

static void
test_signals(void)
{
    sigset_t own, theirs, now;
    pthread_t thread;
    sigemptyset(&own);
    sigaddset(&own, SIGUSR1);
    pthread_sigmask(SIG_SETMASK, &own, NULL);
    sigemptyset(&theirs);
    if (eti_thread_begin(&thread, see_mask, &theirs) != 0)
        bail("no thread");
    pthread_join(thread, NULL);
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    ok(sigismember(&theirs, SIGTERM) && sigismember(&theirs, SIGWINCH) &&
           sigismember(&theirs, SIGUSR1),
       "a thread that the library begins takes no signals");
    ok(sigismember(&now, SIGUSR1) && !sigismember(&now, SIGTERM) &&
           !sigismember(&now, SIGWINCH),
       "the thread that begins another keeps its own signal mask");
    sigemptyset(&own);
    pthread_sigmask(SIG_SETMASK, &own, NULL);
}

/* ---- msgpack from outside: every header that has a length or a size ---- */

static void
test_headers(void)
{
    static const struct {
        unsigned char first;
        size_t length, fixed, elements; /* bytes, bytes, per unit of the length */
    } row[] = {
        {0xc0, 0, 0, 0},  {0xc2, 0, 0, 0},  {0xc3, 0, 0, 0},  {0xc4, 1, 0, 0},
        {0xc5, 2, 0, 0},  {0xc6, 4, 0, 0},  {0xc7, 1, 1, 0},  {0xc8, 2, 1, 0},
        {0xc9, 4, 1, 0},  {0xca, 0, 4, 0},  {0xcb, 0, 8, 0},  {0xcc, 0, 1, 0},
        {0xcd, 0, 2, 0},  {0xce, 0, 4, 0},  {0xcf, 0, 8, 0},  {0xd0, 0, 1, 0},
        {0xd1, 0, 2, 0},  {0xd2, 0, 4, 0},  {0xd3, 0, 8, 0},  {0xd4, 0, 2, 0},
        {0xd5, 0, 3, 0},  {0xd6, 0, 5, 0},  {0xd7, 0, 9, 0},  {0xd8, 0, 17, 0},
        {0xd9, 1, 0, 0},  {0xda, 2, 0, 0},  {0xdb, 4, 0, 0},  {0xdc, 2, 0, 1},
        {0xdd, 4, 0, 1},  {0xde, 2, 0, 2},  {0xdf, 4, 0, 2},  {0xe0, 0, 0, 0},
        {0x7f, 0, 0, 0},  {0x80, 0, 0, 0},  {0x90, 0, 0, 0},  {0xa0, 0, 0, 0},
        {0xbf, 0, 31, 0}, {0x9f, 0, 15, 0}, {0x8f, 0, 30, 0},
    };
    static char bytes[1024];
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const size_t count = row[i].length == 1 ? 200 : row[i].length ? 258 : 0;
        const size_t n = 1 + row[i].length + row[i].fixed +
                         (row[i].elements ? row[i].elements * count : count);
        memset(bytes, 0, sizeof bytes);
        bytes[0] = (char)row[i].first;
        bytes[row[i].length] = row[i].length ? (char)(count & 255) : bytes[0];
        if (row[i].length > 1)
            bytes[row[i].length - 1] = (char)(count >> 8);
        ok(eti_is_well_formed(bytes, n) && !eti_is_well_formed(bytes, n - 1) &&
               !eti_is_well_formed(bytes, n + 1),
           "a msgpack value of %02x is well formed with %zu bytes, and not with more "
           "or fewer",
           row[i].first, n);
    }
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    test_calls();
    test_watching();
    test_failing();
    test_alone();
    test_signals();
    test_headers();
    et_ctx_free(&cx);
    return done();
}
