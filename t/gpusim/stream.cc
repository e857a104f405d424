/* SPDX-License-Identifier: Apache-2.0 */
/* stream.cc: streams, events, copies, and when queued work runs.
 *
 * Nothing runs before somebody waits for it. Then, as drawn: only what the wait needs;
 * or whatever stream is ready, in random turns; or one stream as far as it goes. A wait
 * that is missing between two streams, or between a stream and the host, thus shows as
 * wrong numbers for some seeds, and the same ones each time. */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "state.h"

static const int PATIENCE = 3;        /* the query that runs the work it asks about */
static const size_t HISTORY = 16;     /* names that gpusim_die prints */
static const int64_t CHECK_EACH = 16; /* waits of the host between looks at red zones */
static const double WORK_MS = 0.1;    /* what a piece of work takes, whatever it does */

bool
gpusim_is_stream(cudaStream_t stream)
{
    return stream && gpusim().streams.count(stream) && !stream->dying;
}

cudaError_t
gpusim_append(cudaStream_t stream, gpusim_work work)
{
    if (!gpusim_is_stream(stream))
        return cudaErrorInvalidResourceHandle;
    if (stream->capture)
        return gpusim_append_captured(stream, std::move(work));
    stream->asked = 0;
    stream->queue.push_back(std::move(work));
    return cudaSuccess;
}

/* ---- running ---- */

void
gpusim_run(const gpusim_work &work)
{
    gpusim_state &g = gpusim();
    static const bool check = getenv("GPUSIM_CHECK") != nullptr;
    if (!work.run || g.lost)
        return;
    g.history.push_back(work.name);
    if (g.history.size() > HISTORY)
        g.history.pop_front();
    if (gpusim_traced())
        fprintf(stderr, "gpusim: run %s\n", work.name.c_str());
    bool host = work.type == cudaGraphNodeTypeHost;
    gpusim_inside = true;
    g.ms += WORK_MS;
    if (host)
        gpusim_close();
    work.run();
    if (host)
        gpusim_open();
    if (check)
        gpusim_check_memory();
    gpusim_inside = false;
}

/* Takes the first piece of work of S, which may be gone afterwards. */
static void
step(cudaStream_t s)
{
    gpusim_work work = std::move(s->queue.front());
    s->queue.pop_front();
    gpusim_run(work);
    if (work.signal) {
        work.signal->done = true;
        work.signal->ms = gpusim().ms;
    }
    if (s->dying && s->queue.empty()) {
        gpusim().streams.erase(s);
        delete s;
    }
}

static bool
is_ready(cudaStream_t s)
{
    return !s->queue.empty() && (!s->queue.front().wait || s->queue.front().wait->done);
}

/* The stream that must move for S to move. */
static cudaStream_t
needed(cudaStream_t s)
{
    while (!is_ready(s)) {
        if (s->queue.empty())
            gpusim_die("a stream waits for an event that no stream will pass");
        s = s->queue.front().wait->stream;
    }
    return s;
}

void
gpusim_run_until(cudaStream_t stream, const std::function<bool()> &done)
{
    gpusim_state &g = gpusim();
    if (g.lost || done())
        return;
    enum { NEEDED, TURNS, FAR } way = (decltype(way))gpusim_draw(3);
    unsigned at = 0; /* the id of the stream that goes far */
    gpusim_open();
    while (!g.lost && !done()) {
        if (way == NEEDED && stream) {
            step(needed(stream));
            continue;
        }
        std::vector<cudaStream_t> ready;
        for (cudaStream_t s : g.streams)
            if (is_ready(s))
                ready.push_back(s);
        if (ready.empty())
            gpusim_die("streams wait for each other");
        std::sort(ready.begin(), ready.end(),
                  [](cudaStream_t a, cudaStream_t b) { return a->id < b->id; });
        auto same = std::find_if(ready.begin(), ready.end(),
                                 [at](cudaStream_t s) { return s->id == at; });
        cudaStream_t next = way != TURNS && same != ready.end()
                                ? *same
                                : ready[gpusim_draw(ready.size())];
        at = next->id;
        step(next);
    }
    gpusim_close();
    if (g.lost)
        for (cudaStream_t s : g.streams)
            s->queue.clear();
}

void
gpusim_run_all(void)
{
    gpusim_run_until(nullptr, [] {
        for (cudaStream_t s : gpusim().streams)
            if (!s->queue.empty())
                return false;
        return true;
    });
}

/* The host has waited: what that means beside the work being done. */
static cudaError_t
waited(void)
{
    gpusim_state &g = gpusim();
    g.counts.syncs++;
    if (!g.lost) {
        gpusim_trim_pools();
        if (g.counts.syncs % CHECK_EACH == 0)
            gpusim_check_memory();
    }
    return g.lost;
}

static void
run_stream(cudaStream_t stream)
{
    gpusim_run_until(stream, [stream] { return stream->queue.empty(); });
}

static void
run_to_mark(std::shared_ptr<gpusim_mark> mark)
{
    gpusim_run_until(mark->stream, [mark] { return mark->done; });
}

cudaError_t
cudaDeviceSynchronize(void)
{
    return gpusim_call(__func__, [] {
        cudaError_t refused = gpusim_refuse_in_capture();
        for (cudaStream_t s : gpusim().streams)
            if (!refused && s->capture)
                refused = gpusim_refuse_captured(s);
        if (refused)
            return refused;
        gpusim_run_all();
        return waited();
    });
}

/* ---- streams ---- */

cudaError_t
cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int)
{
    return gpusim_call(__func__, [&] {
        if (!stream || flags > cudaStreamNonBlocking)
            return cudaErrorInvalidValue;
        *stream = new CUstream_st;
        (*stream)->id = ++gpusim().stream_ids;
        gpusim().streams.insert(*stream);
        return cudaSuccess;
    });
}

cudaError_t
cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    cudaError_t asked = gpusim_call(__func__, [] { return cudaSuccess; });
    return asked ? asked : cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t
cudaStreamCreate(cudaStream_t *stream)
{
    return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t
cudaStreamDestroy(cudaStream_t stream)
{
    return gpusim_call(__func__, [&] {
        gpusim_state &g = gpusim();
        if (!gpusim_is_stream(stream))
            return cudaErrorInvalidResourceHandle;
        if (stream->capture) {
            stream->capture->invalid = true;
            g.captures.erase(stream->capture);
        }
        if (stream->queue.empty()) {
            g.streams.erase(stream);
            delete stream;
        } else {
            stream->dying = true;
        }
        return cudaSuccess;
    });
}

cudaError_t
cudaStreamSynchronize(cudaStream_t stream)
{
    return gpusim_call(__func__, [&] {
        if (!gpusim_is_stream(stream))
            return cudaErrorInvalidResourceHandle;
        cudaError_t refused = gpusim_refuse_captured(stream);
        if (refused)
            return refused;
        run_stream(stream);
        return waited();
    });
}

cudaError_t
cudaStreamQuery(cudaStream_t stream)
{
    return gpusim_call(__func__, [&] {
        if (!gpusim_is_stream(stream))
            return cudaErrorInvalidResourceHandle;
        cudaError_t refused = gpusim_refuse_captured(stream);
        if (refused)
            return refused;
        if (!stream->queue.empty() && ++stream->asked < PATIENCE)
            return cudaErrorNotReady;
        run_stream(stream);
        return gpusim().lost;
    });
}

cudaError_t
cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    return gpusim_call(__func__, [&] {
        if (!gpusim_is_stream(stream) || !gpusim().events.count(event))
            return cudaErrorInvalidResourceHandle;
        if (flags)
            return cudaErrorInvalidValue;
        return gpusim_wait_event(stream, event);
    });
}

/* ---- events ---- */

cudaError_t
cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    return gpusim_call(__func__, [&] {
        if (!event || flags > 3)
            return cudaErrorInvalidValue;
        *event = new CUevent_st;
        (*event)->flags = flags;
        gpusim().events.insert(*event);
        return cudaSuccess;
    });
}

cudaError_t
cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t
cudaEventDestroy(cudaEvent_t event)
{
    return gpusim_call(__func__, [&] {
        if (!gpusim().events.erase(event))
            return cudaErrorInvalidResourceHandle;
        delete event;
        return cudaSuccess;
    });
}

cudaError_t
cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    return gpusim_call(__func__, [&] {
        if (!gpusim_is_stream(stream) || !gpusim().events.count(event))
            return cudaErrorInvalidResourceHandle;
        event->asked = 0;
        if (stream->capture) {
            if (stream->capture->invalid)
                return cudaErrorStreamCaptureInvalidated;
            event->capture = stream->capture;
            event->tips = stream->tips;
            event->mark.reset();
            return cudaSuccess;
        }
        event->capture.reset();
        event->mark = std::make_shared<gpusim_mark>();
        event->mark->stream = stream;
        gpusim().counts.event_records++;
        gpusim_work work;
        work.name = "cudaEventRecord";
        work.signal = event->mark;
        return gpusim_append(stream, std::move(work));
    });
}

/* What an event that was recorded into a capture answers to a host that asks. */
static cudaError_t
refuse_event(cudaEvent_t event)
{
    if (!gpusim().events.count(event))
        return cudaErrorInvalidResourceHandle;
    if (!event->capture)
        return gpusim_refuse_in_capture();
    event->capture->invalid = true;
    return cudaErrorCapturedEvent;
}

cudaError_t
cudaEventQuery(cudaEvent_t event)
{
    return gpusim_call(__func__, [&] {
        cudaError_t refused = refuse_event(event);
        if (refused || !event->mark || event->mark->done)
            return refused;
        if (++event->asked < PATIENCE)
            return cudaErrorNotReady;
        run_to_mark(event->mark);
        return gpusim().lost;
    });
}

cudaError_t
cudaEventSynchronize(cudaEvent_t event)
{
    return gpusim_call(__func__, [&] {
        cudaError_t refused = refuse_event(event);
        if (refused || !event->mark)
            return refused;
        run_to_mark(event->mark);
        return waited();
    });
}

cudaError_t
cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    return gpusim_call(__func__, [&] {
        for (cudaEvent_t e : {start, end})
            if (!gpusim().events.count(e) || !e->mark ||
                (e->flags & cudaEventDisableTiming))
                return cudaErrorInvalidResourceHandle;
        if (!start->mark->done || !end->mark->done)
            return cudaErrorNotReady;
        *ms = (float)(end->mark->ms - start->mark->ms);
        return cudaSuccess;
    });
}

cudaError_t
cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *data)
{
    return gpusim_call(__func__, [&] {
        if (!fn)
            return cudaErrorInvalidValue;
        gpusim_work work;
        work.name = "host function";
        work.type = cudaGraphNodeTypeHost;
        work.run = [fn, data] { fn(data); };
        return gpusim_append(stream, std::move(work));
    });
}

/* ---- copies ---- */

static bool
kind_fits(enum cudaMemcpyKind kind, bool from_device, bool to_device)
{
    switch (kind) {
    case cudaMemcpyHostToHost:
        return !from_device && !to_device;
    case cudaMemcpyHostToDevice:
        return !from_device && to_device;
    case cudaMemcpyDeviceToHost:
        return from_device && !to_device;
    case cudaMemcpyDeviceToDevice:
        return from_device && to_device;
    case cudaMemcpyDefault:
        return true;
    }
    return false;
}

cudaError_t
cudaMemcpyAsync(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind,
                cudaStream_t stream)
{
    return gpusim_call(__func__, [&] {
        gpusim_state &g = gpusim();
        if (!gpusim_is_stream(stream))
            return cudaErrorInvalidResourceHandle;
        if (!bytes)
            return cudaSuccess;
        bool whole_from, whole_to;
        enum gpusim_side from = gpusim_side_of(src, bytes, &whole_from);
        enum gpusim_side to = gpusim_side_of(dst, bytes, &whole_to);
        bool down = from == GPUSIM_DEVICE, up = to == GPUSIM_DEVICE;
        if (!dst || !src || !whole_from || !whole_to || !kind_fits(kind, down, up))
            return cudaErrorInvalidValue;
        bool captured = stream->capture != nullptr;
        gpusim_work work;
        work.name = down && up ? "copy d2d" : down ? "copy d2h" : "copy h2d";
        work.type = cudaGraphNodeTypeMemcpy;
        work.pageable = from == GPUSIM_PAGEABLE || to == GPUSIM_PAGEABLE;
        std::string name = work.name;
        if (from == GPUSIM_PAGEABLE && !captured) {
            const char *p = (const char *)src;
            auto staged = std::make_shared<std::vector<char>>(p, p + bytes);
            work.run = [dst, staged, name] {
                if (gpusim_must_live(name, dst))
                    memcpy(dst, staged->data(), staged->size());
            };
        } else {
            work.run = [dst, src, bytes, name, to, from] {
                if ((to == GPUSIM_PAGEABLE || gpusim_must_live(name, dst)) &&
                    (from == GPUSIM_PAGEABLE || gpusim_must_live(name, src)))
                    memmove(dst, src, bytes);
            };
        }
        bool pageable = work.pageable;
        cudaError_t code = gpusim_append(stream, std::move(work));
        if (code || captured)
            return code;
        g.counts.copies_h2d += !down && up;
        g.counts.copies_d2h += down && !up;
        g.counts.copies_d2d += down && up;
        g.counts.pageable_copies += pageable;
        if (to != GPUSIM_PAGEABLE)
            return cudaSuccess;
        run_stream(stream);
        return waited();
    });
}

cudaError_t
cudaMemsetAsync(void *dst, int byte, size_t bytes, cudaStream_t stream)
{
    return gpusim_call(__func__, [&] {
        if (!gpusim_is_stream(stream))
            return cudaErrorInvalidResourceHandle;
        if (!bytes)
            return cudaSuccess;
        bool whole;
        if (gpusim_side_of(dst, bytes, &whole) == GPUSIM_PAGEABLE || !whole)
            return cudaErrorInvalidValue;
        gpusim_work work;
        work.name = "memset";
        work.type = cudaGraphNodeTypeMemset;
        work.run = [dst, byte, bytes] {
            if (gpusim_must_live("memset", dst))
                memset(dst, byte, bytes);
        };
        bool captured = stream->capture != nullptr;
        cudaError_t code = gpusim_append(stream, std::move(work));
        gpusim().counts.memsets += code == cudaSuccess && !captured;
        return code;
    });
}
