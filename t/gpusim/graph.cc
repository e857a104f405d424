/* SPDX-License-Identifier: Apache-2.0 */
/* graph.cc: capture and graphs.
 *
 * While a stream is captured, what it is given becomes nodes of a graph. A node comes
 * after the tips of its stream: the nodes that the stream would have run last. An event
 * carries tips to another stream, which takes part from then on and must be joined
 * again before the end. A replay runs the nodes in any order that keeps this, drawn
 * anew each time. Reference: CUDA C++ Programming Guide, "CUDA Graphs", stream
 * capture. */
#include <unistd.h>

#include <sys/syscall.h>

#include <algorithm>

#include "state.h"

static thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

unsigned long
gpusim_thread_id(void)
{
    return (unsigned long)syscall(SYS_gettid);
}

/* ---- what is refused ---- */

cudaError_t
gpusim_refuse_in_capture(void)
{
    if (thread_mode == cudaStreamCaptureModeRelaxed)
        return cudaSuccess;
    cudaError_t refused = cudaSuccess;
    for (auto &c : gpusim().captures) {
        bool mine = c->thread == gpusim_thread_id();
        bool others = c->mode == cudaStreamCaptureModeGlobal &&
                      thread_mode == cudaStreamCaptureModeGlobal;
        if ((mine && c->mode != cudaStreamCaptureModeRelaxed) || (!mine && others)) {
            c->invalid = true;
            refused = cudaErrorStreamCaptureUnsupported;
        }
    }
    return refused;
}

cudaError_t
gpusim_refuse_captured(cudaStream_t stream)
{
    if (!stream->capture)
        return gpusim_refuse_in_capture();
    bool was = stream->capture->invalid;
    stream->capture->invalid = true;
    return was ? cudaErrorStreamCaptureInvalidated : cudaErrorStreamCaptureUnsupported;
}

/* ---- recording ---- */

cudaError_t
gpusim_append_captured(cudaStream_t stream, gpusim_work work)
{
    gpusim_capture &c = *stream->capture;
    if (c.invalid)
        return cudaErrorStreamCaptureInvalidated;
    auto node = std::make_unique<CUgraphNode_st>();
    node->work = std::move(work);
    node->after.assign(stream->tips.begin(), stream->tips.end());
    stream->tips = {c.graph->nodes.size()};
    c.graph->nodes.push_back(std::move(node));
    return cudaSuccess;
}

cudaError_t
gpusim_wait_event(cudaStream_t stream, cudaEvent_t event)
{
    bool recorded = event->capture && gpusim().captures.count(event->capture);
    if (recorded && event->capture->invalid)
        return cudaErrorStreamCaptureInvalidated;
    if (recorded && !stream->capture) {
        stream->capture = event->capture;
        stream->tips = event->tips;
        return cudaSuccess;
    }
    if (stream->capture) {
        if (!recorded || event->capture != stream->capture) {
            stream->capture->invalid = true;
            if (recorded)
                event->capture->invalid = true;
            return recorded ? cudaErrorStreamCaptureMerge
                            : cudaErrorStreamCaptureIsolation;
        }
        stream->tips.insert(event->tips.begin(), event->tips.end());
        return cudaSuccess;
    }
    if (!event->mark || event->mark->done)
        return event->capture ? cudaErrorCapturedEvent : cudaSuccess;
    gpusim_work work;
    work.name = "cudaStreamWaitEvent";
    work.wait = event->mark;
    return gpusim_append(stream, std::move(work));
}

cudaError_t
cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    return gpusim_call(__func__, [&] {
        if (!gpusim_is_stream(stream))
            return cudaErrorInvalidResourceHandle;
        if (stream->capture)
            return cudaErrorIllegalState;
        auto c = std::make_shared<gpusim_capture>();
        c->origin = stream;
        c->mode = mode;
        c->thread = gpusim_thread_id();
        c->graph = std::make_unique<CUgraph_st>();
        stream->capture = c;
        stream->tips.clear();
        gpusim().captures.insert(c);
        return cudaSuccess;
    });
}

/* Do all nodes of the graph come before, or are, one of TIPS? */
static bool
joined(const CUgraph_st &graph, const std::set<size_t> &tips)
{
    std::vector<bool> before(graph.nodes.size());
    for (size_t tip : tips)
        before[tip] = true;
    for (size_t i = graph.nodes.size(); i-- > 0;)
        if (before[i])
            for (size_t j : graph.nodes[i]->after)
                before[j] = true;
    return std::find(before.begin(), before.end(), false) == before.end();
}

cudaError_t
cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    return gpusim_call(__func__, [&] {
        gpusim_state &g = gpusim();
        if (!gpusim_is_stream(stream))
            return cudaErrorInvalidResourceHandle;
        if (!graph)
            return cudaErrorInvalidValue;
        *graph = nullptr;
        auto c = stream->capture;
        if (!c)
            return cudaErrorIllegalState;
        if (c->origin != stream) {
            c->invalid = true;
            return cudaErrorStreamCaptureUnmatched;
        }
        if (c->thread != gpusim_thread_id() && c->mode != cudaStreamCaptureModeRelaxed)
            return cudaErrorStreamCaptureWrongThread;
        bool whole = joined(*c->graph, stream->tips);
        for (cudaStream_t s : g.streams)
            if (s->capture == c) {
                s->capture.reset();
                s->tips.clear();
            }
        g.captures.erase(c);
        if (c->invalid)
            return cudaErrorStreamCaptureInvalidated;
        if (!whole)
            return cudaErrorStreamCaptureUnjoined;
        g.counts.captures++;
        *graph = c->graph.release();
        g.graphs.insert(*graph);
        return cudaSuccess;
    });
}

cudaError_t
cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    return gpusim_call(__func__, [&] {
        if (!gpusim_is_stream(stream))
            return cudaErrorInvalidResourceHandle;
        *status = !stream->capture           ? cudaStreamCaptureStatusNone
                  : stream->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                             : cudaStreamCaptureStatusActive;
        return cudaSuccess;
    });
}

cudaError_t
cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    return gpusim_call(__func__, [&] {
        if (!mode || *mode > cudaStreamCaptureModeRelaxed)
            return cudaErrorInvalidValue;
        std::swap(*mode, thread_mode);
        return cudaSuccess;
    });
}

/* ---- graphs ---- */

static std::shared_ptr<const CUgraph_st>
copy_graph(const CUgraph_st &from)
{
    auto graph = std::make_shared<CUgraph_st>();
    for (auto &node : from.nodes)
        graph->nodes.push_back(std::make_unique<CUgraphNode_st>(*node));
    return graph;
}

/* A node is ready when all before it have run; one of those that are is drawn. */
static void
replay(const CUgraph_st &graph)
{
    size_t n = graph.nodes.size();
    std::vector<size_t> missing(n), ready;
    std::vector<std::vector<size_t>> next(n);
    for (size_t i = 0; i < n; i++) {
        missing[i] = graph.nodes[i]->after.size();
        for (size_t j : graph.nodes[i]->after)
            next[j].push_back(i);
        if (!missing[i])
            ready.push_back(i);
    }
    while (!ready.empty() && !gpusim().lost) {
        size_t pick = gpusim_draw(ready.size()), i = ready[pick];
        ready.erase(ready.begin() + (std::ptrdiff_t)pick);
        gpusim_run(graph.nodes[i]->work);
        for (size_t j : next[i])
            if (--missing[j] == 0)
                ready.push_back(j);
    }
}

cudaError_t
cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    return gpusim_call(__func__, [&] {
        if (!exec || !gpusim().graphs.count(graph) || flags > 15)
            return cudaErrorInvalidValue;
        *exec = new CUgraphExec_st;
        (*exec)->graph = copy_graph(*graph);
        gpusim().execs.insert(*exec);
        return cudaSuccess;
    });
}

cudaError_t
cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
    return gpusim_call(__func__, [&] {
        if (!gpusim().execs.count(exec))
            return cudaErrorInvalidValue;
        if (!gpusim_is_stream(stream))
            return cudaErrorInvalidResourceHandle;
        return stream->capture ? gpusim_refuse_captured(stream) : cudaSuccess;
    });
}

cudaError_t
cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    return gpusim_call(__func__, [&] {
        gpusim_state &g = gpusim();
        if (!g.execs.count(exec))
            return cudaErrorInvalidValue;
        if (!gpusim_is_stream(stream))
            return cudaErrorInvalidResourceHandle;
        gpusim_work work;
        work.name = "graph";
        work.type = cudaGraphNodeTypeGraph;
        auto graph = exec->graph;
        work.run = [graph] { replay(*graph); };
        bool captured = stream->capture != nullptr;
        cudaError_t code = gpusim_append(stream, std::move(work));
        if (code || captured)
            return code;
        g.counts.graph_launches++;
        g.counts.graph_nodes += (int64_t)graph->nodes.size();
        for (auto &node : graph->nodes)
            g.counts.pageable_copies += node->work.pageable;
        return cudaSuccess;
    });
}

cudaError_t
cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                    cudaGraphExecUpdateResultInfo *info)
{
    return gpusim_call(__func__, [&] {
        if (!gpusim().execs.count(exec) || !gpusim().graphs.count(graph) || !info)
            return cudaErrorInvalidValue;
        const CUgraph_st &old = *exec->graph;
        *info = {cudaGraphExecUpdateSuccess, nullptr, nullptr};
        if (old.nodes.size() != graph->nodes.size())
            info->result = cudaGraphExecUpdateErrorTopologyChanged;
        for (size_t i = 0; !info->result && i < old.nodes.size(); i++) {
            if (old.nodes[i]->after != graph->nodes[i]->after)
                info->result = cudaGraphExecUpdateErrorTopologyChanged;
            else if (old.nodes[i]->work.type != graph->nodes[i]->work.type)
                info->result = cudaGraphExecUpdateErrorNodeTypeChanged;
            if (info->result)
                info->errorNode = graph->nodes[i].get();
        }
        if (info->result)
            return cudaErrorGraphExecUpdateFailure;
        exec->graph = copy_graph(*graph);
        return cudaSuccess;
    });
}

cudaError_t
cudaGraphDestroy(cudaGraph_t graph)
{
    return gpusim_call(__func__, [&] {
        if (!gpusim().graphs.erase(graph))
            return cudaErrorInvalidValue;
        delete graph;
        return cudaSuccess;
    });
}

cudaError_t
cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    return gpusim_call(__func__, [&] {
        if (!gpusim().execs.erase(exec))
            return cudaErrorInvalidValue;
        delete exec;
        return cudaSuccess;
    });
}

cudaError_t
cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    return gpusim_call(__func__, [&] {
        if (!gpusim().graphs.count(graph) || !count)
            return cudaErrorInvalidValue;
        size_t n = graph->nodes.size(), room = nodes ? *count : n;
        for (size_t i = 0; nodes && i < room; i++)
            nodes[i] = i < n ? graph->nodes[i].get() : nullptr;
        *count = n;
        return cudaSuccess;
    });
}

cudaError_t
cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type)
{
    return gpusim_call(__func__, [&] {
        if (!node || !type)
            return cudaErrorInvalidValue;
        *type = node->work.type;
        return cudaSuccess;
    });
}
