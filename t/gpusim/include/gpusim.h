/* SPDX-License-Identifier: Apache-2.0 */
/* gpusim.h: what the simulated GPU offers beyond CUDA: counters, faults, seeds.
 *
 * All functions may be called from any thread. */
#ifndef ETUDE_GPUSIM_H
#define ETUDE_GPUSIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Calls since the start or gpusim_reset. What is recorded into a graph counts when it
 * is replayed, as a node, and in pageable_copies; nothing counts twice. */
struct gpusim_counts {
    int64_t launches;        /* kernels and gpusim_enqueue, outside graphs */
    int64_t graph_launches;  /* cudaGraphLaunch */
    int64_t graph_nodes;     /* nodes of all graphs launched */
    int64_t syncs;           /* host waits: synchronize, blocking copies and frees */
    int64_t pageable_copies; /* copies from or to host memory that is not pinned */
    int64_t copies_h2d, copies_d2h, copies_d2d, memsets;
    int64_t allocs, frees; /* of device memory, of every kind */
    int64_t captures;      /* cudaStreamEndCapture that gave a graph */
    int64_t event_records;
};

/* A copy as of now, for the calling thread; valid until its next call. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored                                                         \
    "-Wshadow" /* C++: the function's name is the struct's  \
                                           */
const struct gpusim_counts *gpusim_counts(void);
#pragma GCC diagnostic pop

/* What GPUSIM_FAULT, GPUSIM_TAKE and GPUSIM_SEED set at start-up; calls and allocations
 * are counted from here. SPEC: "cudaMallocAsync=2@3,launch=700@50": the third call of
 * cudaMallocAsync answers 2; "@3+" means the third and all after it. A code that loses
 * the device does so for good; with "launch" it does when the kernel runs, as faults of
 * kernels do. NULL or "": none. False for a SPEC that is not of this form. */
bool gpusim_fault(const char *spec);
/* "1M@2": another process holds 1 MiB from the second allocation on. NULL: none. */
bool gpusim_take(const char *spec);
/* Orders of streams, blocks and threads that follow are drawn from SEED. */
void gpusim_seed(uint64_t seed);

/* A device as after start-up: queued work, streams, events, graphs, memory and counts
 * are gone, and handles to them with it; a lost device is back. Environment variables
 * are read again. Nothing of it may be in use in other threads. */
void gpusim_reset(void);

/* Why the device was lost or a kernel refused, in a sentence; "" if it was not. Valid
 * until the next call of this function in the same thread. */
const char *gpusim_report(void);

#ifdef __cplusplus
}

#include <functional>

/* Queues RUN, which may use device memory when its turn comes, and is captured and
 * counted as a kernel with this NAME. For libraries on top of the simulator. It may not
 * call the runtime. */
cudaError_t gpusim_enqueue(cudaStream_t stream, const char *name,
                           std::function<void()> run);
#endif
#endif
