/* SPDX-License-Identifier: Apache-2.0 */
/* block.cc: the threads of a block, on one thread of the host.
 *
 * A thread is run on a fiber (a stack of its own). A fiber runs one thread after the
 * other until one has to wait at a barrier or for its warp; only then is another fiber
 * begun. So a kernel without barriers is a plain loop on one stack, and one with them
 * has as many stacks as threads that wait at once.
 *
 * Who begins, and who goes on after a barrier or a warp operation, is drawn for every
 * block and every meeting (GPUSIM_SEED): what is written into shared memory and read
 * with no barrier between comes out wrong for some orders.
 *
 * A barrier is passed when all threads that have not returned are there; a warp
 * operation when all lanes of its mask that have not returned are. When nobody can
 * move, the device is lost and the report says who waits where. */
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "state.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

/* Frames are larger where they are checked. */
#if defined(__SANITIZE_ADDRESS__) || !defined(__OPTIMIZE__)
static const size_t STACK = 512 << 10;
#else
static const size_t STACK = 128 << 10;
#endif
static const int WARP = 32;
static const size_t MOST_SHARED = 232448, SHARED_ZONE = 256;

struct gpusim_place gpusim_place;

/* ---- fibers ---- */

struct fiber {
#if defined(__x86_64__)
    void *sp;
#else
    ucontext_t context;
#endif
    const void *stack; /* lowest address */
    size_t size;
    void *fake; /* AddressSanitizer's */
};

static fiber host; /* who runs the grid */
/* (Never destroyed: another thread may compute while the process ends.) */
static std::vector<fiber *> &fibers = *new std::vector<fiber *>;
static std::vector<fiber *> &idle = *new std::vector<fiber *>;
static fiber *now;

#if defined(__x86_64__)
/* Saves what a function must keep (System V ABI) on one stack and takes it from the
 * other. The float environment is everybody's. */
extern "C" void gpusim_switch_stacks(void **from, void *to);
asm(".text\n"
    ".p2align 4\n"
    ".hidden gpusim_switch_stacks\n"
    ".globl gpusim_switch_stacks\n"
    ".type gpusim_switch_stacks, @function\n"
    "gpusim_switch_stacks:\n"
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq "
    "%r15\n"
    "  movq %rsp, (%rdi)\n"
    "  movq %rsi, %rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
    "  ret\n"
    ".size gpusim_switch_stacks, .-gpusim_switch_stacks\n");
#endif

static void
switch_fiber(fiber *to)
{
    fiber *from = now;
    now = to;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&from->fake, to->stack, to->size);
#endif
#if defined(__x86_64__)
    gpusim_switch_stacks(&from->sp, to->sp);
#else
    swapcontext(&from->context, &to->context);
#endif
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(from->fake, nullptr, nullptr);
#endif
}

static void fiber_main(void);

static void
fiber_entry(void)
{
#if defined(__SANITIZE_ADDRESS__)
    /* (The first switch to the first fiber tells where the host's own stack is.) */
    const void *stack;
    size_t size;
    __sanitizer_finish_switch_fiber(nullptr, &stack, &size);
    if (!host.stack) {
        host.stack = stack;
        host.size = size;
    }
#endif
    fiber_main();
}

/* The fiber will begin anew at the next switch to it. */
static void
rewind_fiber(fiber *f)
{
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(f->stack, f->size);
#endif
#if defined(__x86_64__)
    void **top = (void **)((char *)f->stack + f->size);
    *--top = nullptr; /* what fiber_entry would return to */
    *--top = (void *)fiber_entry;
    for (int saved = 0; saved < 6; saved++)
        *--top = nullptr;
    f->sp = top;
#else
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = (void *)f->stack;
    f->context.uc_stack.ss_size = f->size;
    f->context.uc_link = nullptr;
    makecontext(&f->context, fiber_entry, 0);
#endif
}

static fiber *
new_fiber(void)
{
    /* Below the stack lies a page that faults. */
    char *p = (char *)mmap(nullptr, STACK + 4096, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED || mprotect(p, 4096, PROT_NONE) != 0)
        gpusim_die("no memory for the stacks of %zu threads", fibers.size() + 1);
    fiber *f = new fiber();
    f->stack = p + 4096;
    f->size = STACK;
    fibers.push_back(f);
    rewind_fiber(f);
    return f;
}

/* ---- a block ---- */

struct lane {
    bool returned;
    fiber *on;
    enum gpusim_meeting kind;
    uint64_t value, result;
    int from;
};

/* Lanes of a warp that meet under one mask. */
struct meeting {
    enum gpusim_meeting kind;
    unsigned mask, arrived;
    const char *file;
    int line;
};

struct warp {
    unsigned returned; /* and lanes that do not exist */
    unsigned passed;   /* __syncwarp */
    std::vector<meeting> meetings;
};

/* The block that runs. */
struct running_block {
    const gpusim_kernel *kernel;
    const gpusim_facts *facts;
    int threads, returned, begun;
    /* Threads that may go on do so before others begin, the last that met first: a warp
     * runs ahead as far as it can. Or all begin first; or either, as it comes. */
    enum { AHEAD, ABREAST, MIXED } way;
    uint64_t dice;
    int thread;      /* that runs */
    int waiting;     /* at the barrier */
    unsigned passed; /* barriers */
    uint64_t number; /* of the block, from 1 */
    enum gpusim_meeting barrier;
    const char *barrier_file;
    int barrier_line;
    std::vector<lane> lanes;
    std::vector<bool> at_barrier;
    std::vector<uint3> places;
    std::vector<warp> warps;
    std::vector<int> order; /* in which threads begin */
    std::vector<int> ready; /* threads that could go on */
};
static running_block &block = *new running_block();

/* A number below N: splitmix64, as gpusim_draw, from what that drew for the block. */
static size_t
roll(size_t n)
{
    uint64_t z = block.dice += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (size_t)(((z ^ (z >> 31)) >> 32) * n >> 32);
}

/* Puts what is in V from FROM on into another order. */
static void
shuffle(std::vector<int> &v, size_t from)
{
    for (size_t i = v.size(); i > from + 1; i--)
        std::swap(v[i - 1], v[from + roll(i - from)]);
}

alignas(1024) static char shared[MOST_SHARED + SHARED_ZONE];

void *
gpusim_dynamic_shared(void)
{
    return shared;
}

int
gpusim_lane(void)
{
    return block.thread % WARP;
}

uint64_t
gpusim_moment(void)
{
    if (!block.kernel)
        return 0;
    unsigned warp = block.warps[(size_t)(block.thread / WARP)].passed;
    return block.number << 42 | (uint64_t)block.thread << 32 |
           (uint64_t)(block.passed & 0xffff) << 16 | (warp & 0xffff);
}

static void
become(int thread)
{
    block.thread = thread;
    gpusim_place.thread = block.places[(size_t)thread];
}

/* Leaves this fiber for whoever can move, which may be itself; the host when nobody
 * can. */
static void
move_on(void)
{
    size_t fresh = (size_t)(block.threads - block.begun), ready = block.ready.size();
    bool resume = ready && (!fresh || block.way == running_block::AHEAD ||
                            (block.way == running_block::MIXED && roll(2)));
    fiber *to = &host;
    if (resume) {
        if (block.way != running_block::AHEAD)
            std::swap(block.ready[roll(ready)], block.ready.back());
        int thread = block.ready.back();
        block.ready.pop_back();
        become(thread);
        to = block.lanes[(size_t)thread].on;
    } else if (fresh) {
        if (idle.empty())
            idle.push_back(new_fiber());
        to = idle.back();
        idle.pop_back();
    }
    if (to != now)
        switch_fiber(to);
}

/* What is said when the threads of a kernel do not meet as they must; does not
 * return. */
#define FAIL(...)                                                                      \
    do {                                                                               \
        gpusim_lose(cudaErrorLaunchFailure, __VA_ARGS__);                              \
        switch_fiber(&host);                                                           \
        abort();                                                                       \
    } while (0)

const char *
gpusim_kernel_name(void)
{
    return block.facts->name.c_str();
}

/* ---- barriers ---- */

/* All that are there may go on. */
static void
pass_barrier(void)
{
    size_t before = block.ready.size();
    int sum = 0, all = 1;
    for (int t = 0; t < block.threads; t++)
        if (block.at_barrier[(size_t)t]) {
            bool x = block.lanes[(size_t)t].value != 0;
            sum += x;
            all &= x;
        }
    uint64_t result = block.barrier == GPUSIM_BARRIER_OR    ? sum != 0
                      : block.barrier == GPUSIM_BARRIER_AND ? (uint64_t)all
                                                            : (uint64_t)sum;
    for (int t = 0; t < block.threads; t++)
        if (block.at_barrier[(size_t)t]) {
            block.at_barrier[(size_t)t] = false;
            block.lanes[(size_t)t].result = result;
            block.ready.push_back(t);
        }
    shuffle(block.ready, before);
    block.waiting = 0;
    block.passed++;
}

int
gpusim_barrier(enum gpusim_meeting kind, int value, const char *file, int line)
{
    if (!block.kernel)
        gpusim_die("a barrier outside of a kernel");
    int thread = block.thread;
    lane &l = block.lanes[(size_t)thread];
    if (block.waiting == 0) {
        block.barrier = kind;
        block.barrier_file = file;
        block.barrier_line = line;
    } else if (kind != block.barrier || line != block.barrier_line ||
               (file != block.barrier_file && strcmp(file, block.barrier_file) != 0)) {
        FAIL("%s: thread %d is at the barrier of %s:%d while others are at that of "
             "%s:%d",
             gpusim_kernel_name(), thread, file, line, block.barrier_file,
             block.barrier_line);
    }
    l.value = value != 0;
    l.on = now;
    block.at_barrier[(size_t)thread] = true;
    if (++block.waiting == block.threads - block.returned)
        pass_barrier();
    move_on();
    return (int)block.lanes[(size_t)thread].result;
}

/* ---- warps ---- */

static uint64_t
together(const meeting &m, const lane *lanes)
{
    uint64_t ballot = 0, sum = 0, least = ~(uint64_t)0, most = 0;
    for (int i = 0; i < WARP; i++)
        if (m.arrived >> i & 1) {
            uint64_t x = lanes[i].value;
            ballot |= (uint64_t)(x != 0) << i;
            sum += x;
            least = x < least ? x : least;
            most = x > most ? x : most;
        }
    switch (m.kind) {
    case GPUSIM_BALLOT:
        return ballot;
    case GPUSIM_ANY:
        return ballot != 0;
    case GPUSIM_ALL:
        return ballot == m.arrived;
    case GPUSIM_SUM:
        return sum;
    case GPUSIM_MIN:
        return least;
    case GPUSIM_MAX:
        return most;
    default:
        return 0;
    }
}

/* Gives every lane that arrived its result; they may go on. */
static void
pass_meeting(int first, const meeting &m)
{
    size_t before = block.ready.size();
    lane *lanes = &block.lanes[(size_t)first];
    uint64_t result = together(m, lanes);
    for (int i = 0; i < WARP; i++) {
        if (!(m.arrived >> i & 1))
            continue;
        lane &l = lanes[i];
        if (m.kind == GPUSIM_SHUFFLE) /* from nobody: anything, as on a GPU */
            l.result = m.arrived >> l.from & 1 ? lanes[l.from].value : ~(uint64_t)0;
        else
            l.result = result;
        block.ready.push_back(first + i);
    }
    shuffle(block.ready, before);
    block.warps[(size_t)(first / WARP)].passed += m.kind == GPUSIM_SYNCWARP;
}

uint64_t
gpusim_warp(enum gpusim_meeting kind, unsigned mask, uint64_t value, int from,
            const char *file, int line)
{
    if (!block.kernel)
        gpusim_die("a warp operation outside of a kernel");
    int thread = block.thread, first = thread / WARP * WARP;
    unsigned bit = 1u << (thread - first);
    warp &w = block.warps[(size_t)(thread / WARP)];
    lane &l = block.lanes[(size_t)thread];
    if (!(mask & bit))
        FAIL("%s: thread %d (lane %d) is not in its own mask %08x at %s:%d",
             gpusim_kernel_name(), thread, thread - first, mask, file, line);
    l.value = value;
    l.from = from & (WARP - 1);
    l.on = now;
    size_t at = 0;
    while (at < w.meetings.size() && w.meetings[at].mask != mask)
        at++;
    if (at == w.meetings.size())
        w.meetings.push_back({kind, mask, 0, file, line});
    meeting &m = w.meetings[at];
    if (m.kind != kind)
        FAIL("%s: thread %d is at the warp operation of %s:%d while others of its mask "
             "%08x "
             "are at another kind of it, %s:%d",
             gpusim_kernel_name(), thread, file, line, mask, m.file, m.line);
    m.arrived |= bit;
    if (m.arrived == (mask & ~w.returned)) {
        meeting whole = m;
        w.meetings.erase(w.meetings.begin() + (std::ptrdiff_t)at);
        pass_meeting(first, whole);
    }
    move_on();
    return block.lanes[(size_t)thread].result;
}

/* A thread has returned: others need not wait for it any more. */
static void
leave(int thread)
{
    int first = thread / WARP * WARP;
    warp &w = block.warps[(size_t)(thread / WARP)];
    block.returned++;
    block.lanes[(size_t)thread].returned = true;
    w.returned |= 1u << (thread - first);
    for (size_t i = 0; i < w.meetings.size();) {
        meeting m = w.meetings[i];
        if (m.arrived != (m.mask & ~w.returned)) {
            i++;
            continue;
        }
        w.meetings.erase(w.meetings.begin() + (std::ptrdiff_t)i);
        pass_meeting(first, m);
    }
    if (block.waiting && block.waiting == block.threads - block.returned)
        pass_barrier();
}

static void
fiber_main(void)
{
    for (;;) {
        while (block.begun < block.threads) {
            become(block.order[(size_t)block.begun++]);
            block.kernel->body();
            leave(block.thread);
            if (!block.ready.empty())
                break;
        }
        idle.push_back(now);
        move_on();
    }
}

/* ---- a grid ---- */

static std::string
who_waits(void)
{
    char text[256];
    std::string all;
    if (block.waiting) {
        int somebody = 0;
        while (!block.at_barrier[(size_t)somebody])
            somebody++;
        snprintf(text, sizeof text, "%d of %d threads (thread %d first) wait at %s:%d",
                 block.waiting, block.threads, somebody, block.barrier_file,
                 block.barrier_line);
        all = text;
    }
    for (size_t w = 0; w < block.warps.size(); w++)
        for (const meeting &m : block.warps[w].meetings) {
            snprintf(text, sizeof text,
                     "%slanes %08x of mask %08x of warp %zu wait at %s:%d",
                     all.empty() ? "" : "; ", m.arrived, m.mask, w, m.file, m.line);
            if (all.size() < 600)
                all += text;
        }
    return all;
}

/* Fibers that were left in the middle of a thread begin anew. */
static void
rewind_all(void)
{
    idle = fibers;
    for (fiber *f : fibers)
        rewind_fiber(f);
}

static void
begin_block(void)
{
    size_t n = (size_t)block.threads;
    block.returned = block.begun = block.waiting = 0;
    block.passed = 0;
    block.number++;
    block.way = (decltype(block.way))gpusim_draw(3);
    block.dice = gpusim_draw(UINT64_MAX);
    block.order.resize(n);
    std::iota(block.order.begin(), block.order.end(), 0);
    shuffle(block.order, 0);
    block.ready.clear();
    block.lanes.assign(n, lane());
    block.at_barrier.assign(n, false);
    for (size_t w = 0; w < block.warps.size(); w++) {
        block.warps[w].meetings.clear();
        block.warps[w].passed = 0;
        block.warps[w].returned =
            n - w * WARP >= WARP ? 0 : ~(unsigned)0 << (n - w * WARP);
    }
}

static void
run_block(void)
{
    begin_block();
    if (idle.empty())
        idle.push_back(new_fiber());
    fiber *f = idle.back();
    idle.pop_back();
    switch_fiber(f);
    if (!gpusim().lost && block.returned < block.threads)
        gpusim_lose(cudaErrorLaunchFailure, "%s: block (%u,%u,%u) cannot go on: %s",
                    gpusim_kernel_name(), gpusim_place.block.x, gpusim_place.block.y,
                    gpusim_place.block.z, who_waits().c_str());
    if (gpusim().lost)
        rewind_all();
}

static void
prepare_shared(size_t bytes)
{
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(shared, sizeof shared);
#endif
    memset(shared + bytes, 0xa5, SHARED_ZONE);
#if defined(__SANITIZE_ADDRESS__)
    __asan_poison_memory_region(shared + bytes, sizeof shared - bytes);
#endif
}

static void
check_shared(size_t bytes)
{
#if defined(__SANITIZE_ADDRESS__)
    (void)bytes; /* found where it is done */
#else
    for (size_t i = 0; i < SHARED_ZONE; i++)
        if ((unsigned char)shared[bytes + i] != 0xa5) {
            gpusim_lose(
                cudaErrorIllegalAddress,
                "%s wrote %zu bytes past its %zu bytes of dynamic shared memory",
                gpusim_kernel_name(), i + 1, bytes);
            return;
        }
#endif
}

static void
prepare_threads(const gpusim_kernel &k)
{
    int n = (int)(k.block.x * k.block.y * k.block.z);
    dim3 &was = gpusim_place.block_dim;
    if (n == block.threads && was.x == k.block.x && was.y == k.block.y)
        return;
    block.threads = n;
    block.places.clear();
    for (unsigned z = 0; z < k.block.z; z++)
        for (unsigned y = 0; y < k.block.y; y++)
            for (unsigned x = 0; x < k.block.x; x++)
                block.places.push_back({x, y, z});
    block.warps.resize((size_t)(n + WARP - 1) / WARP);
}

void
gpusim_run_grid(const gpusim_kernel &kernel)
{
    prepare_threads(kernel);
    gpusim_place.block_dim = kernel.block;
    gpusim_place.grid_dim = kernel.grid;
    block.kernel = &kernel;
    block.facts = &gpusim_facts_of(kernel.address);
    now = &host;
    host.stack = nullptr;
    prepare_shared(kernel.shared);
    auto parts = block.facts->shared;
    parts.push_back({shared, kernel.shared});
    gpusim_race_begin(parts);
    block.number = 0;
    /* Blocks b, b + s, b + 2 s, ... mod their number: all of them where s is
     * coprime. */
    uint64_t blocks = (uint64_t)kernel.grid.x * kernel.grid.y * kernel.grid.z;
    uint64_t b = gpusim_draw(blocks), s = 1 + gpusim_draw(blocks);
    while (std::gcd(s, blocks) != 1)
        s++;
    for (uint64_t i = 0; i < blocks && !gpusim().lost; i++) {
        gpusim_place.block = {(unsigned)(b % kernel.grid.x),
                              (unsigned)(b / kernel.grid.x % kernel.grid.y),
                              (unsigned)(b / kernel.grid.x / kernel.grid.y)};
        memset(shared, 0xff, kernel.shared);
        for (auto &part : block.facts->shared)
            memset(part.first, 0xff, part.second);
        run_block();
        check_shared(kernel.shared);
        b = (b + s) % blocks;
    }
    block.kernel = nullptr;
}

std::string
gpusim_running(void)
{
    if (!gpusim_inside)
        return "";
    if (!block.kernel)
        return gpusim().history.empty() ? "work" : gpusim().history.back();
    const uint3 &b = gpusim_place.block, &t = gpusim_place.thread;
    char where[128];
    snprintf(where, sizeof where, ", block (%u,%u,%u), thread (%u,%u,%u),", b.x, b.y,
             b.z, t.x, t.y, t.z);
    return block.facts->name + where;
}
