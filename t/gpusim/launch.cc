/* SPDX-License-Identifier: Apache-2.0 */
/* launch.cc: kernels into streams: limits, addresses, faults that were asked for. */
#include <cstdio>

#include "state.h"

static const size_t PLAIN_SHARED = 48 << 10, MOST_SHARED = 232448; /* as on sm_90 */

static size_t
static_shared(const void *kernel)
{
    size_t all = 0;
    for (auto &part : gpusim_facts_of(kernel).shared)
        all += part.second;
    return all;
}

/* Of dynamic shared memory. What is static counts against the plain 48 KiB, too. */
static size_t
shared_limit(const void *kernel)
{
    auto it = gpusim().shared_limits.find(kernel);
    if (it != gpusim().shared_limits.end())
        return (size_t)it->second;
    size_t taken = static_shared(kernel);
    return taken < PLAIN_SHARED ? PLAIN_SHARED - taken : 0;
}

static cudaError_t
check_limits(const gpusim_kernel &k)
{
    uint64_t threads = (uint64_t)k.block.x * k.block.y * k.block.z;
    if (!k.address)
        return cudaErrorInvalidDeviceFunction;
    if (!threads || threads > 1024 || k.block.x > 1024 || k.block.y > 1024 ||
        k.block.z > 64 || !k.grid.x || !k.grid.y || !k.grid.z ||
        k.grid.x > 0x7fffffffu || k.grid.y > 65535 || k.grid.z > 65535)
        return cudaErrorInvalidConfiguration;
    return k.shared > shared_limit(k.address) ? cudaErrorInvalidValue : cudaSuccess;
}

bool
gpusim_must_live(const std::string &name, const void *p)
{
    bool whole;
    enum gpusim_side side = gpusim_side_of(p, 0, &whole);
    if (!p || (side != GPUSIM_PAGEABLE && whole))
        return true;
    gpusim_lose(cudaErrorIllegalAddress, "%s was given %p, %s", name.c_str(), p,
                side == GPUSIM_PAGEABLE ? "host memory that is not pinned"
                                        : "device memory that is not allocated");
    return false;
}

static cudaError_t
append_kernel(cudaStream_t stream, const std::string &name, std::function<void()> run)
{
    cudaError_t asked = gpusim_fault_now("launch");
    if (asked && !gpusim_is_fatal(asked))
        return asked;
    gpusim_work work;
    work.name = name;
    work.type = cudaGraphNodeTypeKernel;
    work.run = std::move(run);
    if (asked)
        work.run = [asked, name] {
            gpusim_lose(asked, "%s was asked to", name.c_str());
        };
    bool captured = gpusim_is_stream(stream) && stream->capture;
    cudaError_t code = gpusim_append(stream, std::move(work));
    gpusim().counts.launches += code == cudaSuccess && !captured;
    return code;
}

cudaError_t
gpusim_queue_kernel(struct gpusim_kernel kernel, cudaStream_t stream)
{
    return gpusim_call(__func__, [&] {
        cudaError_t code = check_limits(kernel);
        if (code)
            return code;
        std::string name = gpusim_facts_of(kernel.address).name;
        if (gpusim_traced())
            fprintf(stderr, "gpusim: launch %s (%u,%u,%u)x(%u,%u,%u) shared %zu\n",
                    name.c_str(), kernel.grid.x, kernel.grid.y, kernel.grid.z,
                    kernel.block.x, kernel.block.y, kernel.block.z, kernel.shared);
        return append_kernel(stream, name, [kernel, name] {
            for (const void *p : kernel.arguments)
                if (!gpusim_must_live(name, p))
                    return;
            gpusim_run_grid(kernel);
        });
    });
}

cudaError_t
gpusim_enqueue(cudaStream_t stream, const char *name, std::function<void()> run)
{
    return gpusim_call(__func__,
                       [&] { return append_kernel(stream, name, std::move(run)); });
}

cudaError_t
cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attr, int value)
{
    return gpusim_call(__func__, [&] {
        if (!kernel)
            return cudaErrorInvalidDeviceFunction;
        if (attr == cudaFuncAttributePreferredSharedMemoryCarveout)
            return value >= -1 && value <= 100 ? cudaSuccess : cudaErrorInvalidValue;
        if (attr != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
            (size_t)value + static_shared(kernel) > MOST_SHARED)
            return cudaErrorInvalidValue;
        gpusim().shared_limits[kernel] = value;
        return cudaSuccess;
    });
}

cudaError_t
cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *kernel,
                                              int threads, size_t shared)
{
    return gpusim_call(__func__, [&] {
        if (!blocks || !kernel || threads < 1)
            return cudaErrorInvalidValue;
        int warps = (threads + 31) / 32, by_threads = 2048 / (warps * 32);
        int by_shared = (int)((228u << 10) / (shared + 1024));
        *blocks = threads > 1024 || shared > shared_limit(kernel) ? 0
                  : by_shared < by_threads                        ? by_shared
                                                                  : by_threads;
        *blocks = *blocks > 32 ? 32 : *blocks;
        return cudaSuccess;
    });
}
