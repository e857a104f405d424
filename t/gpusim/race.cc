/* SPDX-License-Identifier: Apache-2.0 */
/* race.cc: two threads of a kernel at one place with nothing between them.
 *
 * Kernels that are compiled with -fsanitize=thread call these functions at each access,
 * which are libtsan's elsewhere (make gpu-races; t/gpusim/races). Each byte of shared
 * and of device memory remembers who wrote it last and two threads that have read it
 * since. Accesses of one block are ordered by the barriers between them, those of one
 * warp by __syncwarp too, and those of two blocks by nothing: shuffles and ballots
 * order no memory, and kernels here wait for no other block. So a missing barrier is
 * found in whatever order the threads ran; atomics are left out. */
#include <dlfcn.h>

#include <unordered_map>

#include "state.h"

enum { PAGE = 4096, MOST_PAGES = 4096 };

/* A moment of a thread, see gpusim_moment; 0: never. */
struct cell {
    uint64_t write, read[2];
};
struct page {
    cell at[PAGE];
};

static auto &pages = *new std::unordered_map<uintptr_t, std::unique_ptr<page>>;
static std::vector<std::pair<char *, size_t>> &shared =
    *new std::vector<std::pair<char *, size_t>>;

void
gpusim_race_begin(const std::vector<std::pair<char *, size_t>> &parts)
{
    if (!pages.empty())
        pages.clear();
    shared = parts;
}

static bool
is_shared(const char *p)
{
    for (auto &part : shared)
        if (p >= part.first && p < part.first + part.second)
            return true;
    return false;
}

static unsigned
thread_of(uint64_t m)
{
    return m >> 32 & 1023;
}

/* Did the access at A come before that at B for everybody? */
static bool
ordered(uint64_t a, uint64_t b, bool in_shared)
{
    if (!a || a >> 32 == b >> 32) /* never, or the same thread of the same block */
        return true;
    if (a >> 42 != b >> 42)
        return in_shared; /* which each block has for itself */
    bool one_warp = thread_of(a) / 32 == thread_of(b) / 32;
    return (a >> 16 & 0xffff) != (b >> 16 & 0xffff) ||
           (one_warp && (a & 0xffff) != (b & 0xffff));
}

static void
report(uint64_t a, uint64_t b, bool a_writes, bool b_writes, bool in_shared,
       const void *pc)
{
    Dl_info info = {};
    dladdr(pc, &info);
    gpusim_lose(cudaErrorLaunchFailure,
                "%s races: block %llu, thread %u %s %s memory that block %llu, thread "
                "%u %s, with nothing between, at %s+0x%zx",
                gpusim_kernel_name(), (unsigned long long)(b >> 42) - 1, thread_of(b),
                b_writes ? "writes" : "reads", in_shared ? "shared" : "device",
                (unsigned long long)(a >> 42) - 1, thread_of(a),
                a_writes ? "wrote" : "read", info.dli_fname ? info.dli_fname : "?",
                (size_t)((const char *)pc - (const char *)info.dli_fbase));
}

static void
touch(const char *p, size_t bytes, bool writes, const void *pc)
{
    uint64_t now = gpusim_moment();
    if (!now)
        return;
    bool in_shared = is_shared(p);
    if (!in_shared && !gpusim_is_device_address(p))
        return;
    for (size_t i = 0; i < bytes; i++) {
        uintptr_t at = (uintptr_t)p + i;
        auto &place = pages[at / PAGE];
        if (!place) {
            if (pages.size() > MOST_PAGES)
                return;
            place = std::make_unique<page>();
        }
        cell &c = place->at[at % PAGE];
        if (!ordered(c.write, now, in_shared))
            report(c.write, now, true, writes, in_shared, pc);
        if (writes) {
            for (uint64_t r : c.read)
                if (!ordered(r, now, in_shared))
                    report(r, now, false, true, in_shared, pc);
            c = {now, {0, 0}};
        } else if (c.read[0] >> 32 != now >> 32) {
            c.read[1] = c.read[0];
            c.read[0] = now;
        } else {
            c.read[0] = now;
        }
    }
}

extern "C" {
#define HERE __builtin_return_address(0)
#define ACCESS(size)                                                                   \
    void __tsan_read##size(void *p);                                                   \
    void __tsan_read##size(void *p)                                                    \
    {                                                                                  \
        touch((const char *)p, size, false, HERE);                                     \
    }                                                                                  \
    void __tsan_write##size(void *p);                                                  \
    void __tsan_write##size(void *p)                                                   \
    {                                                                                  \
        touch((const char *)p, size, true, HERE);                                      \
    }
#define UNALIGNED(size)                                                                \
    void __tsan_unaligned_read##size(void *p);                                         \
    void __tsan_unaligned_read##size(void *p)                                          \
    {                                                                                  \
        touch((const char *)p, size, false, HERE);                                     \
    }                                                                                  \
    void __tsan_unaligned_write##size(void *p);                                        \
    void __tsan_unaligned_write##size(void *p)                                         \
    {                                                                                  \
        touch((const char *)p, size, true, HERE);                                      \
    }
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)
UNALIGNED(2)
UNALIGNED(4)
UNALIGNED(8)
UNALIGNED(16)
void __tsan_read_range(void *p, unsigned long size);
void
__tsan_read_range(void *p, unsigned long size)
{
    touch((const char *)p, size, false, HERE);
}
void __tsan_write_range(void *p, unsigned long size);
void
__tsan_write_range(void *p, unsigned long size)
{
    touch((const char *)p, size, true, HERE);
}
void __tsan_vptr_update(void **, void *);
void
__tsan_vptr_update(void **, void *)
{
}
void __tsan_vptr_read(void **);
void
__tsan_vptr_read(void **)
{
}
void __tsan_func_entry(void *);
void
__tsan_func_entry(void *)
{
}
void __tsan_func_exit(void);
void
__tsan_func_exit(void)
{
}
void __tsan_init(void);
void
__tsan_init(void)
{
}
}
