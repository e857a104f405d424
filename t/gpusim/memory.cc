/* SPDX-License-Identifier: Apache-2.0 */
/* memory.cc: device memory, pools of it, and pinned host memory.
 *
 * Device memory is one reserved range of addresses that the host may touch only while
 * queued work runs. A block lies between two red zones:
 *
 *     start: 256 bytes of 0xa5 | size bytes, given out | 0xa5 to the end of the space
 *
 * What is new or freed is 0xff: a NaN in every float format, -1 in every integer. Freed
 * space is handed out again late, oldest first, so that stale addresses read 0xff. */
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "state.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n)   ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

static const size_t ZONE =
    256; /* of a red zone, and the alignment of what is given out */
static const size_t CHUNK = (size_t)2
                            << 20; /* what pools grow by, as on a GPU; a large page */
static const size_t RANGE = (size_t)64 << 30; /* of addresses */
/* Freed bytes that are not used yet; and what is filled at each end of a block, or of a
 * freed one: between are zeros. */
static const size_t QUARANTINE = (size_t)64 << 20, FILLED = (size_t)32 << 20;
static const int RED = 0xa5, STALE = 0xff;

static char *range, *range_end, *used_end; /* used_end: nothing was given out above */
static int opened;
/* Free space, neighbours merged; and what was freed last. */
static auto &spaces = *new std::map<char *, size_t>;
static auto &quarantine = *new std::deque<std::pair<char *, size_t>>;
static size_t quarantined;

size_t
gpusim_total_memory(void)
{
    static const size_t total = [] {
        const char *text = getenv("GPUSIM_MEMORY"), *end;
        return text ? gpusim_read_bytes(text, &end) : (size_t)3 << 30;
    }();
    return total;
}

static size_t
round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

static void
reserve_range(void)
{
    size_t bytes = RANGE;
    void *p = MAP_FAILED;
    for (; p == MAP_FAILED && bytes >= gpusim_total_memory(); bytes /= 2)
        p = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                 -1, 0);
    if (p == MAP_FAILED)
        gpusim_die("%zu bytes of addresses cannot be had", gpusim_total_memory());
    range_end = (char *)p + bytes * 2; /* (the loop halved it once more) */
    range = used_end = (char *)round_up((size_t)p, CHUNK);
    /* Reach is taken and given at every wait. That takes 50 ns a page on the machine
     * this was written on: 400 us for 8 MiB of small pages, 3 us for large ones. */
    madvise(range, (size_t)(range_end - range), MADV_HUGEPAGE);
    gpusim_explain_traps();
}

/* ---- reach ---- */

static void
protect(int how)
{
    if (used_end > range && mprotect(range, (size_t)(used_end - range), how) != 0)
        gpusim_die("device memory cannot be protected");
}

void
gpusim_open(void)
{
    if (opened++ == 0)
        protect(PROT_READ | PROT_WRITE);
}

void
gpusim_close(void)
{
    if (--opened == 0)
        protect(PROT_NONE);
}

/* ---- red zones ---- */

static void
fill_ends(char *p, size_t bytes, int byte)
{
    if (bytes <= 2 * FILLED) {
        memset(p, byte, bytes);
    } else {
        memset(p, byte, FILLED);
        memset(p + bytes - FILLED, byte, FILLED);
    }
}

static void
check_zone(const gpusim_block &b, const char *from, const char *to, const char *where)
{
    ASAN_UNPOISON_MEMORY_REGION(from, (size_t)(to - from));
    for (const char *p = from; p < to; p++)
        if ((unsigned char)*p != RED)
            gpusim_die("byte %td %s a block of %zu bytes was written over",
                       where[0] == 'b' ? to - p : p - from + 1, where, b.size);
    ASAN_POISON_MEMORY_REGION(from, (size_t)(to - from));
}

static void
check_block(const gpusim_block &b)
{
    if (!b.made)
        return;
    const char *data = b.start + ZONE;
    check_zone(b, b.start, data, "before");
    check_zone(b, data + b.size, b.start + b.space, "after");
}

void
gpusim_check_memory(void)
{
    gpusim_open();
    for (auto &entry : gpusim().blocks)
        check_block(entry.second);
    gpusim_close();
}

/* ---- spaces ---- */

static void
add_space(char *start, size_t bytes)
{
    /* Whole large pages go back to the system, and are zeros when they are used
     * again. */
    char *page = range + round_up((size_t)(start - range), CHUNK);
    char *end = range + (size_t)(start + bytes - range) / CHUNK * CHUNK;
    if (end > page)
        madvise(page, (size_t)(end - page), MADV_DONTNEED);
    auto next = spaces.lower_bound(start);
    if (next != spaces.end() && start + bytes == next->first) {
        bytes += next->second;
        next = spaces.erase(next);
    }
    if (next != spaces.begin()) {
        auto before = std::prev(next);
        if (before->first + before->second == start) {
            before->second += bytes;
            return;
        }
    }
    spaces[start] = bytes;
}

/* The first place that is large enough, else fresh addresses. NULL: out of those. */
static char *
take_space(size_t bytes)
{
    for (auto it = spaces.begin(); it != spaces.end(); ++it)
        if (it->second >= bytes) {
            char *start = it->first;
            size_t rest = it->second - bytes;
            spaces.erase(it);
            if (rest)
                spaces[start + bytes] = rest;
            return start;
        }
    if (bytes > (size_t)(range_end - used_end))
        return nullptr;
    char *start = used_end;
    used_end += round_up(bytes, CHUNK);
    if (opened)
        protect(PROT_READ | PROT_WRITE);
    if (used_end > start + bytes)
        spaces[start + bytes] = (size_t)(used_end - start) - bytes;
    return start;
}

static void
release_space(char *start, size_t bytes)
{
    quarantine.push_back({start, bytes});
    quarantined += bytes;
    while (quarantined > QUARANTINE) {
        auto oldest = quarantine.front();
        quarantine.pop_front();
        quarantined -= oldest.second;
        ASAN_UNPOISON_MEMORY_REGION(oldest.first, oldest.second);
        add_space(oldest.first, oldest.second);
    }
}

/* ---- how much is left ---- */

static cudaMemPool_t
pool_or_default(cudaMemPool_t pool)
{
    gpusim_state &g = gpusim();
    if (!g.default_pool) {
        g.default_pool = g.current_pool = new CUmemPoolHandle_st;
        g.pools.insert(g.default_pool);
    }
    return pool ? pool : g.current_pool;
}

static size_t
free_memory(size_t taken)
{
    gpusim_state &g = gpusim();
    size_t held = taken + g.plain;
    for (cudaMemPool_t pool : g.pools)
        held += pool->reserved;
    return held < gpusim_total_memory() ? gpusim_total_memory() - held : 0;
}

static void
trim(cudaMemPool_t pool, size_t keep)
{
    keep = round_up(std::max(keep, pool->used), CHUNK);
    pool->reserved = std::min(pool->reserved, keep);
}

void
gpusim_trim_pools(void)
{
    for (cudaMemPool_t pool : gpusim().pools)
        if (pool->reserved > pool->threshold)
            trim(pool, pool->threshold);
}

/* Room for BYTES more in POOL (NULL: outside of pools). */
static bool
grow(cudaMemPool_t pool, size_t bytes, size_t taken)
{
    size_t need = bytes;
    if (pool) {
        if (pool->most && pool->used + bytes > pool->most)
            return false;
        size_t want = round_up(pool->used + bytes, CHUNK);
        need = want > pool->reserved ? want - pool->reserved : 0;
    }
    if (need > free_memory(taken))
        return false;
    if (pool) {
        pool->reserved += need;
        pool->used += bytes;
        pool->used_high = std::max(pool->used_high, pool->used);
        pool->reserved_high = std::max(pool->reserved_high, pool->reserved);
    } else {
        gpusim().plain += bytes;
    }
    return true;
}

/* ---- blocks ---- */

/* The block DATA, if there still is one, gets its red zones and its garbage. */
static void
make_block(char *data)
{
    auto it = gpusim().blocks.find(data);
    if (it == gpusim().blocks.end())
        return;
    gpusim_block &b = it->second;
    size_t after = b.space - ZONE - b.size;
    ASAN_UNPOISON_MEMORY_REGION(b.start, b.space);
    memset(b.start, RED, ZONE);
    memset(data + b.size, RED, after);
    fill_ends(data, b.size, STALE);
    ASAN_POISON_MEMORY_REGION(b.start, ZONE);
    ASAN_POISON_MEMORY_REGION(data + b.size, after);
    b.made = true;
}

static cudaError_t
new_block(cudaMemPool_t pool, size_t size, void **out)
{
    gpusim_state &g = gpusim();
    if (!range)
        reserve_range();
    size_t taken = gpusim_taken(true), counted = round_up(size, 512);
    if (size > gpusim_total_memory())
        return cudaErrorMemoryAllocation;
    if (!grow(pool, counted, taken)) {
        /* What is queued may free some: a GPU's driver waits for that too. */
        gpusim_run_all();
        if (g.lost)
            return g.lost;
        for (cudaMemPool_t p : g.pools)
            trim(p, 0);
        if (!grow(pool, counted, taken))
            return cudaErrorMemoryAllocation;
    }
    gpusim_block b = {size, nullptr, ZONE + round_up(size, ZONE) + ZONE,
                      pool, false,   false};
    b.start = take_space(b.space);
    if (!b.start)
        gpusim_die("%zu bytes of addresses are used up", RANGE);
    *out = b.start + ZONE;
    g.blocks[b.start + ZONE] = b;
    g.counts.allocs++;
    return cudaSuccess;
}

static void
free_block(char *data)
{
    gpusim_state &g = gpusim();
    auto it = g.blocks.find(data);
    if (it == g.blocks.end())
        return;
    gpusim_block b = it->second;
    size_t counted = round_up(b.size, 512);
    gpusim_open();
    check_block(b);
    ASAN_UNPOISON_MEMORY_REGION(b.start, b.space);
    fill_ends(b.start, b.space, STALE);
    ASAN_POISON_MEMORY_REGION(b.start, b.space);
    gpusim_close();
    g.blocks.erase(it);
    release_space(b.start, b.space);
    if (!b.pool) {
        g.plain -= counted;
    } else {
        b.pool->used -= counted;
        if (b.pool->dying && b.pool->used == 0) {
            g.pools.erase(b.pool);
            delete b.pool;
        }
    }
}

cudaError_t
cudaMalloc(void **ptr, size_t bytes)
{
    return gpusim_call(__func__, [&] {
        cudaError_t refused = gpusim_refuse_in_capture();
        if (refused || !ptr)
            return refused ? refused : cudaErrorInvalidValue;
        *ptr = nullptr;
        if (!bytes)
            return cudaSuccess;
        cudaError_t code = new_block(nullptr, bytes, ptr);
        if (!code) {
            gpusim_open();
            make_block((char *)*ptr);
            gpusim_close();
        }
        return code;
    });
}

cudaError_t
cudaFree(void *ptr)
{
    return gpusim_call(__func__, [&] {
        gpusim_state &g = gpusim();
        cudaError_t refused = gpusim_refuse_in_capture();
        if (refused || !ptr)
            return refused;
        auto it = g.blocks.find((char *)ptr);
        if (it == g.blocks.end() || it->second.freeing)
            return cudaErrorInvalidValue;
        g.counts.syncs++;
        g.counts.frees++;
        gpusim_run_all();
        if (!g.lost)
            free_block((char *)ptr);
        return g.lost;
    });
}

static cudaError_t
malloc_async(void **ptr, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
    if (!ptr || (pool && (!gpusim().pools.count(pool) || pool->dying)))
        return cudaErrorInvalidValue;
    if (!gpusim_is_stream(stream))
        return cudaErrorInvalidResourceHandle;
    cudaError_t refused = gpusim_refuse_captured(stream);
    if (refused)
        return refused;
    *ptr = nullptr;
    if (!bytes)
        return cudaSuccess;
    cudaError_t code = new_block(pool_or_default(pool), bytes, ptr);
    if (code)
        return code;
    /* The block is new when its turn comes: what another stream wrote there before is
     * gone then. */
    gpusim_work work;
    work.name = "cudaMallocAsync";
    char *data = (char *)*ptr;
    work.run = [data] { make_block(data); };
    return gpusim_append(stream, work);
}

cudaError_t
cudaMallocAsync(void **ptr, size_t bytes, cudaStream_t stream)
{
    return gpusim_call(__func__,
                       [&] { return malloc_async(ptr, bytes, nullptr, stream); });
}

cudaError_t
cudaMallocFromPoolAsync(void **ptr, size_t bytes, cudaMemPool_t pool,
                        cudaStream_t stream)
{
    return gpusim_call(__func__, [&] {
        return pool ? malloc_async(ptr, bytes, pool, stream) : cudaErrorInvalidValue;
    });
}

cudaError_t
cudaFreeAsync(void *ptr, cudaStream_t stream)
{
    return gpusim_call(__func__, [&] {
        gpusim_state &g = gpusim();
        if (!gpusim_is_stream(stream))
            return cudaErrorInvalidResourceHandle;
        cudaError_t refused = gpusim_refuse_captured(stream);
        if (refused || !ptr)
            return refused;
        auto it = g.blocks.find((char *)ptr);
        if (it == g.blocks.end() || it->second.freeing)
            return cudaErrorInvalidValue;
        it->second.freeing = true;
        g.counts.frees++;
        gpusim_work work;
        work.name = "cudaFreeAsync";
        work.run = [ptr] { free_block((char *)ptr); };
        return gpusim_append(stream, work);
    });
}

cudaError_t
cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    return gpusim_call(__func__, [&] {
        *free_bytes = free_memory(gpusim_taken(false));
        *total = gpusim_total_memory();
        return cudaSuccess;
    });
}

/* ---- pinned memory ---- */

static cudaError_t
new_pinned(void **ptr, size_t bytes)
{
    cudaError_t refused = gpusim_refuse_in_capture();
    if (refused || !ptr)
        return refused ? refused : cudaErrorInvalidValue;
    *ptr = nullptr;
    if (!bytes)
        return cudaSuccess;
    void *p = aligned_alloc(4096, round_up(bytes, 4096));
    if (!p)
        return cudaErrorMemoryAllocation;
    memset(p, STALE, bytes);
    gpusim().pinned[(char *)p] = bytes;
    *ptr = p;
    return cudaSuccess;
}

cudaError_t
cudaMallocHost(void **ptr, size_t bytes)
{
    return gpusim_call(__func__, [&] { return new_pinned(ptr, bytes); });
}

cudaError_t
cudaHostAlloc(void **ptr, size_t bytes, unsigned flags)
{
    return gpusim_call(__func__, [&] {
        return flags > 7 ? cudaErrorInvalidValue : new_pinned(ptr, bytes);
    });
}

cudaError_t
cudaFreeHost(void *ptr)
{
    return gpusim_call(__func__, [&] {
        gpusim_state &g = gpusim();
        cudaError_t refused = gpusim_refuse_in_capture();
        if (refused || !ptr)
            return refused;
        if (!g.pinned.count((char *)ptr))
            return cudaErrorInvalidValue;
        g.counts.syncs++;
        gpusim_run_all();
        if (g.lost)
            return g.lost;
        g.pinned.erase((char *)ptr);
        free(ptr);
        return cudaSuccess;
    });
}

bool
gpusim_is_device_address(const void *p)
{
    return range && (const char *)p >= range && (const char *)p < range_end;
}

enum gpusim_side
gpusim_side_of(const void *p, size_t bytes, bool *whole)
{
    gpusim_state &g = gpusim();
    char *at = (char *)p;
    if (gpusim_is_device_address(p)) {
        auto it = g.blocks.upper_bound(at);
        if (whole)
            *whole = it != g.blocks.begin() && bytes <= std::prev(it)->second.size &&
                     at + bytes <= std::prev(it)->first + std::prev(it)->second.size;
        return GPUSIM_DEVICE;
    }
    auto it = g.pinned.upper_bound(at);
    if (it != g.pinned.begin() && at <= std::prev(it)->first + std::prev(it)->second) {
        --it;
        if (whole)
            *whole = at + bytes <= it->first + it->second;
        /* (The byte after the end belongs to whoever comes next, but for nothing.) */
        if (at < it->first + it->second || bytes == 0)
            return GPUSIM_PINNED;
    }
    if (whole)
        *whole = true;
    return GPUSIM_PAGEABLE;
}

/* ---- pools ---- */

static bool
is_pool(cudaMemPool_t pool)
{
    pool_or_default(nullptr);
    return pool && gpusim().pools.count(pool) && !pool->dying;
}

cudaError_t
cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *props)
{
    return gpusim_call(__func__, [&] {
        pool_or_default(nullptr);
        if (!pool || !props || props->allocType != cudaMemAllocationTypePinned ||
            props->location.type != cudaMemLocationTypeDevice ||
            props->location.id != 0)
            return cudaErrorInvalidValue;
        *pool = new CUmemPoolHandle_st;
        (*pool)->most = props->maxSize;
        gpusim().pools.insert(*pool);
        return cudaSuccess;
    });
}

cudaError_t
cudaMemPoolDestroy(cudaMemPool_t pool)
{
    return gpusim_call(__func__, [&] {
        gpusim_state &g = gpusim();
        if (!is_pool(pool) || pool == g.default_pool)
            return cudaErrorInvalidValue;
        if (g.current_pool == pool)
            g.current_pool = g.default_pool;
        if (pool->used) {
            pool->dying = true;
            trim(pool, 0);
        } else {
            g.pools.erase(pool);
            delete pool;
        }
        return cudaSuccess;
    });
}

cudaError_t
cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attr, void *value)
{
    return gpusim_call(__func__, [&] {
        if (!is_pool(pool) || !value)
            return cudaErrorInvalidValue;
        switch (attr) {
        case cudaMemPoolReuseFollowEventDependencies:
        case cudaMemPoolReuseAllowOpportunistic:
        case cudaMemPoolReuseAllowInternalDependencies:
            pool->reuse[attr] = *(int *)value;
            return cudaSuccess;
        case cudaMemPoolAttrReleaseThreshold:
            pool->threshold = *(uint64_t *)value;
            return cudaSuccess;
        case cudaMemPoolAttrReservedMemHigh:
            pool->reserved_high = pool->reserved;
            return *(uint64_t *)value ? cudaErrorInvalidValue : cudaSuccess;
        case cudaMemPoolAttrUsedMemHigh:
            pool->used_high = pool->used;
            return *(uint64_t *)value ? cudaErrorInvalidValue : cudaSuccess;
        default:
            return cudaErrorInvalidValue;
        }
    });
}

cudaError_t
cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attr, void *value)
{
    return gpusim_call(__func__, [&] {
        if (!is_pool(pool) || !value)
            return cudaErrorInvalidValue;
        uint64_t *bytes = (uint64_t *)value;
        switch (attr) {
        case cudaMemPoolReuseFollowEventDependencies:
        case cudaMemPoolReuseAllowOpportunistic:
        case cudaMemPoolReuseAllowInternalDependencies:
            *(int *)value = pool->reuse[attr];
            return cudaSuccess;
        case cudaMemPoolAttrReleaseThreshold:
            *bytes = pool->threshold;
            return cudaSuccess;
        case cudaMemPoolAttrReservedMemCurrent:
            *bytes = pool->reserved;
            return cudaSuccess;
        case cudaMemPoolAttrReservedMemHigh:
            *bytes = pool->reserved_high;
            return cudaSuccess;
        case cudaMemPoolAttrUsedMemCurrent:
            *bytes = pool->used;
            return cudaSuccess;
        case cudaMemPoolAttrUsedMemHigh:
            *bytes = pool->used_high;
            return cudaSuccess;
        default:
            return cudaErrorInvalidValue;
        }
    });
}

cudaError_t
cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep)
{
    return gpusim_call(__func__, [&] {
        if (!is_pool(pool))
            return cudaErrorInvalidValue;
        trim(pool, keep);
        return cudaSuccess;
    });
}

cudaError_t
cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
    return gpusim_call(__func__, [&] {
        pool_or_default(nullptr);
        *pool = gpusim().default_pool;
        return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
    });
}

cudaError_t
cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
    return gpusim_call(__func__, [&] {
        *pool = pool_or_default(nullptr);
        return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
    });
}

cudaError_t
cudaDeviceSetMemPool(int device, cudaMemPool_t pool)
{
    return gpusim_call(__func__, [&] {
        if (device != 0)
            return cudaErrorInvalidDevice;
        if (!is_pool(pool))
            return cudaErrorInvalidValue;
        gpusim().current_pool = pool;
        return cudaSuccess;
    });
}

void
gpusim_memory_reset(void)
{
    gpusim_state &g = gpusim();
    for (auto &entry : g.pinned)
        free(entry.first);
    g.pinned.clear();
    g.blocks.clear();
    for (cudaMemPool_t pool : g.pools)
        delete pool;
    g.pools.clear();
    g.default_pool = g.current_pool = nullptr;
    g.plain = 0;
    spaces.clear();
    quarantine.clear();
    quarantined = 0;
    if (range) {
        ASAN_UNPOISON_MEMORY_REGION(range, (size_t)(used_end - range));
        madvise(range, (size_t)(used_end - range), MADV_DONTNEED);
        if (used_end > range)
            spaces[range] = (size_t)(used_end - range);
    }
}
