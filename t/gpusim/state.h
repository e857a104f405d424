/* SPDX-License-Identifier: Apache-2.0 */
/* state.h: what the files of the simulator share. One lock guards all of it; work of
 * streams runs under that lock, on the thread that waits for it. */
#ifndef ETUDE_GPUSIM_STATE_H
#define ETUDE_GPUSIM_STATE_H

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "cuda_runtime.h"
#include "gpusim.h"

struct gpusim_mark; /* an event, as recorded once */

/* One entry of a stream's queue, or one node of a graph. */
struct gpusim_work {
    std::string name;
    cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
    std::function<void()> run; /* empty for events */
    bool pageable = false;     /* a copy that counts as one when it is replayed */
    std::shared_ptr<gpusim_mark> wait, signal;
};

struct gpusim_mark {
    bool done = false;
    double ms = 0;                 /* when it was passed */
    cudaStream_t stream = nullptr; /* that will pass it */
};

struct CUgraphNode_st {
    gpusim_work work;
    std::vector<size_t> after; /* indices of the nodes that come before */
};

struct CUgraph_st {
    std::vector<std::unique_ptr<CUgraphNode_st>>
        nodes; /* each after what it waits for */
};

struct CUgraphExec_st {
    std::shared_ptr<const CUgraph_st> graph; /* launches that are queued share it */
};

struct gpusim_capture {
    cudaStream_t origin;
    cudaStreamCaptureMode mode;
    unsigned long thread; /* that began it */
    bool invalid = false;
    std::unique_ptr<CUgraph_st> graph;
};

struct CUstream_st {
    unsigned id;
    bool dying = false; /* destroyed with work left */
    int asked = 0;      /* queries in vain */
    std::deque<gpusim_work> queue;
    std::shared_ptr<gpusim_capture> capture;
    std::set<size_t> tips; /* nodes of the capture that the next one comes after */
};

struct CUevent_st {
    unsigned flags;
    int asked = 0;
    std::shared_ptr<gpusim_mark> mark;       /* NULL before the first record */
    std::shared_ptr<gpusim_capture> capture; /* where it was recorded last, if in one */
    std::set<size_t> tips;
};

struct CUmemPoolHandle_st {
    size_t threshold = 0, most = 0; /* most: 0 = the card */
    size_t used = 0, reserved = 0, used_high = 0, reserved_high = 0;
    int reuse[4] = {0, 1, 1, 1}; /* by attribute */
    bool dying = false;          /* destroyed with blocks left */
};

/* A block of device memory. */
struct gpusim_block {
    size_t size;        /* as asked for */
    char *start;        /* of the space, with the red zones */
    size_t space;       /* bytes of it */
    cudaMemPool_t pool; /* NULL: cudaMalloc */
    bool freeing;       /* cudaFreeAsync is queued */
    bool made;          /* has its red zones: its turn has come */
};

struct gpusim_state {
    std::recursive_mutex lock;
    cudaError_t lost = cudaSuccess;
    std::string report;
    struct gpusim_counts counts = {};
    uint64_t seed = 0, draws = 0;
    double ms = 0;                   /* the device's time, which passes as work runs */
    std::deque<std::string> history; /* names of what ran last */

    std::set<cudaStream_t> streams;
    std::set<cudaEvent_t> events;
    std::set<cudaGraph_t> graphs;
    std::set<cudaGraphExec_t> execs;
    std::set<cudaMemPool_t> pools;
    std::set<std::shared_ptr<gpusim_capture>> captures; /* going on */
    cudaMemPool_t default_pool = nullptr, current_pool = nullptr;
    unsigned stream_ids = 0;

    std::map<char *, gpusim_block> blocks; /* by the address that was given out */
    std::map<char *, size_t> pinned;
    std::map<const void *, int> shared_limits; /* cudaFuncSetAttribute */
    size_t plain = 0;                          /* bytes of cudaMalloc */
};

/* The one state; made at the first call and never freed. */
gpusim_state &gpusim(void);

/* ---- calls.cc: how every call begins and ends ---- */

/* Runs BODY under the lock, unless a fault was asked for, the device is lost, or the
 * call comes from work of a stream. Notes the error for cudaGetLastError. */
cudaError_t gpusim_call(const char *name, const std::function<cudaError_t()> &body);
/* The fault that was asked for this call of NAME. */
cudaError_t gpusim_fault_now(const char *name);
/* After which nothing runs any more in the process: the context is gone. */
bool gpusim_is_fatal(cudaError_t code);
/* "64", "64K", "1M", "3G": bytes; END is behind it. */
size_t gpusim_read_bytes(const char *text, const char **end);
/* Bytes that another process holds at this allocation. */
size_t gpusim_taken(bool count_one);
/* Loses the device: queued work is dropped, every call answers CODE from now on. */
void gpusim_lose(cudaError_t code, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The simulator or its user is wrong beyond repair: what, what ran last; aborts. */
[[noreturn]] void gpusim_die(const char *fmt, ...)
    __attribute__((format(printf, 1, 2)));
bool gpusim_traced(void);
/* A number below N, the next of the seed's sequence. */
uint64_t gpusim_draw(uint64_t n);
/* Work of a stream runs on this thread. */
extern thread_local bool gpusim_inside;

/* ---- memory.cc ---- */

enum gpusim_side { GPUSIM_PAGEABLE, GPUSIM_PINNED, GPUSIM_DEVICE };
/* What memory P is of. WHOLE, if not NULL: do BYTES from P lie in one block? A device
 * address outside all blocks is GPUSIM_DEVICE and not whole. */
enum gpusim_side gpusim_side_of(const void *p, size_t bytes, bool *whole);
bool gpusim_is_device_address(const void *p);
/* Makes device memory accessible, or takes it out of reach. Calls nest. */
void gpusim_open(void);
void gpusim_close(void);
/* Looks at all red zones; dies where one is damaged. */
void gpusim_check_memory(void);
/* What a wait of the host does to pools: they give back what they need not keep. */
void gpusim_trim_pools(void);
void gpusim_memory_reset(void);
size_t gpusim_total_memory(void);

/* ---- stream.cc ---- */

bool gpusim_is_stream(cudaStream_t stream);
/* Appends to STREAM, or to the capture it takes part in. */
cudaError_t gpusim_append(cudaStream_t stream, gpusim_work work);
/* Runs queued work until DONE, that of STREAM first if it is not NULL. */
void gpusim_run_until(cudaStream_t stream, const std::function<bool()> &done);
void gpusim_run_all(void);
/* Runs one piece of work, with device memory open but for host functions. */
void gpusim_run(const gpusim_work &work);

/* ---- graph.cc ---- */

/* cudaSuccess, or the error of a call that may not be made while something is captured;
 * ends that capture. */
cudaError_t gpusim_refuse_in_capture(void);
/* The same for a call that waits for or asks about STREAM. */
cudaError_t gpusim_refuse_captured(cudaStream_t stream);
cudaError_t gpusim_append_captured(cudaStream_t stream, gpusim_work work);
/* cudaStreamWaitEvent of a stream and an event that exist. */
cudaError_t gpusim_wait_event(cudaStream_t stream, cudaEvent_t event);
unsigned long gpusim_thread_id(void);

/* ---- launch.cc ---- */

/* Is P NULL, pinned, or in device memory that is allocated? Loses the device if not:
 * NAME was given it. */
bool gpusim_must_live(const std::string &name, const void *p);

/* ---- block.cc ---- */

/* Runs a grid. Loses the device when a barrier cannot be passed. */
void gpusim_run_grid(const gpusim_kernel &kernel);

/* Kernel, block and thread that run on this thread of the host, or the host function;
 * "" if none does. */
std::string gpusim_running(void);

/* When it is for the thread that runs: its block's number (22 bits, from 1), its own
 * (10), the barriers that the block has passed (16), and the warp's __syncwarps (16). 0
 * outside of a kernel. */
uint64_t gpusim_moment(void);
/* Of the kernel that runs. */
const char *gpusim_kernel_name(void);

/* ---- race.cc ---- */

/* A kernel begins, with these PARTS of shared memory. */
void gpusim_race_begin(const std::vector<std::pair<char *, size_t>> &parts);

/* ---- trap.cc ---- */

void gpusim_explain_traps(void);

/* ---- symbols.cc ---- */

struct gpusim_facts {
    std::string name; /* demangled; the address where there is no symbol */
    std::vector<std::pair<char *, size_t>> shared; /* its static shared memory */
};
const gpusim_facts &gpusim_facts_of(const void *kernel);

#endif
