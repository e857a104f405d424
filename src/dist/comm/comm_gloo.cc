/* SPDX-License-Identifier: Apache-2.0 */
/* comm_gloo.cc: collectives by Gloo, over TCP on this machine.
 *
 * C++, because Gloo has no other interface: a class with what etude/comm.h asks for,
 * and no exception that leaves it. (terminate.cc beside it is the only other file of
 * C++ outside of devices.) Sums are Gloo's ring (reduce-scatter, then all-gather, in
 * segments whose order depends on the number of ranks and elements alone), so that
 * their bits are the same on all ranks and in every run. A sum of 4 bytes takes 55 us,
 * one of 100 MB 80 ms (ENGINE.md section 4).
 *
 * Rendezvous is by rank 0's store (store.h), which also says who is gone when a
 * collective has failed: Gloo itself knows an address at best. */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <mutex>

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/transport/tcp/device.h>

#include "dist/comm/rank_env.h"

namespace
{

/* Gloo's rendezvous on rank 0's table. */
class Store : public gloo::rendezvous::Store
{
  public:
    explicit Store(struct etd_store *of) : store(of)
    {
    }

    void set(const std::string &key, const std::vector<char> &data) override
    {
        char why[256];
        if (etd_store_set(store, key.c_str(), data.data(), data.size(), why,
                          sizeof why) != ET_OK)
            throw gloo::Exception(why);
    }

    std::vector<char> get(const std::string &key) override
    {
        std::vector<char> data(ETD_STORE_VALUE);
        char why[256];
        size_t n;
        if (etd_store_get(store, key.c_str(), data.data(), &n, why, sizeof why) !=
            ET_OK)
            throw gloo::Exception(why);
        data.resize(n);
        return data;
    }

    void wait(const std::vector<std::string> &keys) override
    {
        for (const std::string &key : keys)
            (void)get(key);
    }

  private:
    struct etd_store *store;
};

/* A peer that is gone gives SIGPIPE to whoever writes to it; here that is an error like
 * any other. */
class NoPipeSignal
{
  public:
    NoPipeSignal()
    {
        sigemptyset(&pipe);
        sigaddset(&pipe, SIGPIPE);
        sigset_t pending;
        sigpending(&pending);
        was_pending = sigismember(&pending, SIGPIPE);
        pthread_sigmask(SIG_BLOCK, &pipe, &before);
    }
    ~NoPipeSignal()
    {
        const struct timespec now = {0, 0};
        if (!was_pending)
            while (sigtimedwait(&pipe, nullptr, &now) > 0)
                ;
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }

  private:
    sigset_t pipe, before;
    bool was_pending;
};

struct Gloo {
    struct etd_rank_env rank_env;
    struct etd_store *store;
    std::shared_ptr<gloo::rendezvous::Context> context;
    uint32_t seq; /* of the collective under way, from 1 */
    uint32_t tag; /* what goes with its messages */

    std::mutex lock; /* guards what is below: the watcher is another thread */
    gloo::transport::UnboundBuffer *in, *out; /* of the collective under way; NULL */
    bool lost; /* a rank is gone: what is waited for may never come */
    bool closing;
};

/* A collective's buffer, which the watcher can reach while it exists. When a peer dies
 * just after Gloo has begun to send, sometimes only the store notices, and the send
 * would wait until its time is over. */
std::unique_ptr<gloo::transport::UnboundBuffer>
make_buffer(Gloo *g, const void *data, size_t bytes,
            gloo::transport::UnboundBuffer **known)
{
    auto buffer = g->context->createUnboundBuffer(const_cast<void *>(data), bytes);
    std::lock_guard<std::mutex> hold(g->lock);
    *known = buffer.get();
    return buffer;
}

/* Nobody looks at buffers that are about to go. */
class Known
{
  public:
    explicit Known(Gloo *of) : g(of)
    {
    }
    ~Known()
    {
        std::lock_guard<std::mutex> hold(g->lock);
        g->in = g->out = nullptr;
    }

  private:
    Gloo *g;
};

/* ---- collectives ---- */

template <typename T>
gloo::AllreduceOptions::Func
reduction(enum et_comm_op op)
{
    void (*const sum)(void *, const void *, const void *, size_t) = gloo::sum<T>;
    void (*const max)(void *, const void *, const void *, size_t) = gloo::max<T>;
    void (*const min)(void *, const void *, const void *, size_t) = gloo::min<T>;
    return op == ET_COMM_SUM ? sum : op == ET_COMM_MAX ? max : min;
}

template <typename T>
void
all_reduce(Gloo *g, const struct et_comm_call *call)
{
    gloo::AllreduceOptions o(g->context);
    Known scope(g); /* it goes before the buffers do */
    size_t bytes = (size_t)call->n * sizeof(T);
    if (call->in != call->out)
        o.setInput<T>(make_buffer(g, call->in, bytes, &g->in));
    o.setOutput<T>(make_buffer(g, call->out, bytes, &g->out));
    o.setReduceFunction(reduction<T>(call->op));
    o.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
    o.setTag(g->tag);
    gloo::allreduce(o);
}

void
all_gather(Gloo *g, const struct et_comm_call *call)
{
    gloo::AllgatherOptions o(g->context);
    Known scope(g);
    size_t n = (size_t)call->n;
    o.setInput<uint8_t>(make_buffer(g, call->in, n, &g->in));
    o.setOutput<uint8_t>(
        make_buffer(g, call->out, n * (size_t)g->rank_env.world, &g->out));
    o.setTag(g->tag);
    gloo::allgather(o);
}

void
broadcast(Gloo *g, const struct et_comm_call *call)
{
    gloo::BroadcastOptions o(g->context);
    Known scope(g);
    o.setOutput<uint8_t>(make_buffer(g, call->out, (size_t)call->n, &g->out));
    o.setRoot(call->root);
    o.setTag(g->tag);
    gloo::broadcast(o);
}

void
barrier(Gloo *g)
{
    gloo::BarrierOptions o(g->context);
    o.setTag(g->tag);
    gloo::barrier(o);
}

/* Messages of ranks at different collectives must not meet: the numbers of a rank that
 * has left one out would be added to others. So a tag has the collective's number, and
 * in its lower half the kind of collective and which one it is. Ranks at different
 * collectives then wait until the time is over, and are named. */
uint32_t
tag_of(uint32_t seq, const struct et_comm_call *call)
{
    const uint64_t what[] = {(uint64_t)call->kind,       (uint64_t)call->op,
                             (uint64_t)call->dtype,      (uint64_t)call->n,
                             (uint64_t)call->root,       (uint64_t)call->mark.step,
                             (uint64_t)call->mark.which, (uint64_t)call->mark.set};
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (uint64_t x : what)
        for (int i = 0; i < 8; i++)
            hash = (hash ^ (x >> 8 * i & 0xff)) * 1099511628211u;
    return seq << 16 | (uint32_t)((hash ^ hash >> 16 ^ hash >> 32) & 0xffff);
}

void
dispatch(Gloo *g, const struct et_comm_call *call)
{
    g->seq++;
    g->tag = tag_of(g->seq, call);
    if (call->kind == ET_COMM_BARRIER)
        barrier(g);
    else if (call->kind == ET_COMM_BROADCAST)
        broadcast(g, call);
    else if (call->kind == ET_COMM_ALL_GATHER)
        all_gather(g, call);
    else if (call->dtype == ET_F32)
        all_reduce<float>(g, call);
    else if (call->dtype == ET_F64)
        all_reduce<double>(g, call);
    else if (call->dtype == ET_I64)
        all_reduce<int64_t>(g, call);
    else
        all_reduce<uint8_t>(g, call);
}

/* ---- failure ---- */

/* The store says that a rank is gone: stops waiting for it. Repeats that, since a
 * collective waits for one thing after another. */
void
lose(void *data)
{
    Gloo *g = static_cast<Gloo *>(data);
    const struct timespec pause = {0, 20 * 1000 * 1000};
    for (bool closing = false; !closing;) {
        {
            std::lock_guard<std::mutex> hold(g->lock);
            g->lost = true;
            closing = g->closing;
            for (gloo::transport::UnboundBuffer *b : {g->in, g->out})
                if (b) {
                    b->abortWaitSend();
                    b->abortWaitRecv();
                }
        }
        nanosleep(&pause, nullptr);
    }
}

/* The result of a collective during which a rank was lost may be wrong. */
bool
is_lost(Gloo *g)
{
    std::lock_guard<std::mutex> hold(g->lock);
    return g->lost;
}

struct Text {
    char *at;
    size_t size, n;
};

void
append(Text *t, const char *what, int number)
{
    int n = snprintf(t->at + t->n, t->size - t->n, "%s%d", what, number);
    t->n = n < 0 || t->n + (size_t)n >= t->size ? t->size - 1 : t->n + (size_t)n;
}

/* Writes the ranks whose fate is one of FATES; nothing if there are none. */
bool
name_ranks(const Gloo *g, const std::vector<struct etd_report> &report, unsigned fates,
           const char *verb, char *why, size_t size)
{
    Text t = {why, size, 0};
    for (int i = 0; i < g->rank_env.world; i++)
        if (i != g->rank_env.rank && (fates >> report[(size_t)i].fate & 1))
            append(&t, t.n ? ", " : "rank ", i);
    if (!t.n)
        return false;
    snprintf(why + t.n, size - t.n, " %s", verb);
    return true;
}

/* Names who is at fault: the ranks that are gone; else those that did not come, or are
 * at another collective; else what Gloo says. Others learn it because their connections
 * break. */
void
blame(Gloo *g, const struct et_comm_call *call, const char *what, char *why,
      size_t size)
{
    std::vector<struct etd_report> report((size_t)g->rank_env.world);
    char who[200], at[96];
    try {
        g->context->closeConnections();
    } catch (const std::exception &) {
        /* they are broken, then */
    }
    etd_store_report(g->store, g->seq, report.data());
    snprintf(at, sizeof at, "%s %u of %lld %s", et_comm_kind_name(call->kind), g->seq,
             (long long)call->n, et_dtype_name(call->dtype));
    for (int i = 0; i < g->rank_env.world; i++)
        if (report[(size_t)i].fate == ETD_FATE_REPORTED &&
            report[(size_t)i].seq < g->seq)
            report[(size_t)i].fate = ETD_FATE_SILENT;
    if (name_ranks(g, report, 1u << ETD_FATE_GONE, "is gone", who, sizeof who) ||
        name_ranks(g, report, 1u << ETD_FATE_LEFT, "has ended", who, sizeof who) ||
        name_ranks(g, report, 1u << ETD_FATE_SILENT, "did not come", who, sizeof who))
        snprintf(why, size, "%s: rank %d was in %s", who, g->rank_env.rank, at);
    else
        snprintf(why, size, "rank %d failed in %s: %s", g->rank_env.rank, at, what);
}

et_status
run(void *self, const struct et_comm_call *call, char *why, size_t size)
{
    Gloo *g = static_cast<Gloo *>(self);
    NoPipeSignal quiet;
    try {
        if (!is_lost(g))
            dispatch(g, call);
        if (!is_lost(g))
            return ET_OK;
        blame(g, call, "a rank is gone", why, size);
    } catch (const std::exception &e) {
        blame(g, call, e.what(), why, size);
    } catch (...) {
        blame(g, call, "an exception of no known kind", why, size);
    }
    return ET_EPEER;
}

void
close(void *self, bool failed)
{
    Gloo *g = static_cast<Gloo *>(self);
    NoPipeSignal quiet;
    {
        std::lock_guard<std::mutex> hold(g->lock);
        g->closing = true;
    }
    /* The others may still be in the last collective, or on their way to it: rank 0
     * knows when all have come to their end, or are gone. Where this rank has failed
     * they may have, too, and each is to say why by itself; but nobody waits long for
     * it. */
    etd_store_close(&g->store, failed ? std::min(g->rank_env.timeout_ms / 100, 5000)
                                      : g->rank_env.timeout_ms);
    try {
        if (!failed)
            g->context->closeConnections();
        g->context.reset();
    } catch (...) {
        /* nobody is there to be told */
    }
    delete g;
}

/* ---- beginning ---- */

void
connect(Gloo *g)
{
    gloo::transport::tcp::attr attr(g->rank_env.host);
    std::shared_ptr<gloo::transport::Device> device =
        gloo::transport::tcp::CreateDevice(attr);
    Store store(g->store);
    g->context = std::make_shared<gloo::rendezvous::Context>(g->rank_env.rank,
                                                             g->rank_env.world);
    g->context->setTimeout(std::chrono::milliseconds(g->rank_env.timeout_ms));
    g->context->connectFullMesh(store, device);
    char why[256];
    if (etd_store_watch(g->store, lose, g, why, sizeof why) != ET_OK)
        throw gloo::Exception(why);
}

} // namespace

const struct et_comm_class etd_gloo = {"gloo", run, close};

et_status
etd_gloo_new(const struct etd_rank_env *rank_env, struct etd_store *store, void **out,
             char *why, size_t size)
{
    Gloo *g = new (std::nothrow)
        Gloo{*rank_env, store, nullptr, 0, 0, {}, nullptr, nullptr, false, false};
    sigset_t all, before;
    et_status status = ET_OK;
    *out = nullptr;
    if (!g) {
        snprintf(why, size, "out of memory: Gloo's context");
        return ET_ENOMEM;
    }
    sigfillset(
        &all); /* Gloo's threads leave signals to who knows what to do about them */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        connect(g);
    } catch (const std::exception &e) {
        snprintf(why, size, "rank %d did not reach the other %d: %s", rank_env->rank,
                 rank_env->world - 1, e.what());
        status = ET_EPEER;
    } catch (...) {
        snprintf(why, size, "rank %d did not reach the other %d", rank_env->rank,
                 rank_env->world - 1);
        status = ET_EPEER;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (status != ET_OK) {
        delete g;
        return status;
    }
    *out = g;
    return ET_OK;
}
