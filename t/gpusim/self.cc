/* SPDX-License-Identifier: Apache-2.0 */
/* self.cc: the simulated GPU itself: that kernels compute what they would on a GPU, and
 * that the mistakes it is there to find are found. */
#include <sys/wait.h>
#include <unistd.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <gpusim.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "kernels/cuda/image.cuh"

extern "C" {
#include "t/tap.h"
}

enum { N = 1000, SEEDS = 20 };

static cudaStream_t stream, other;

static void
fresh(void)
{
    gpusim_reset();
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) ||
        cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking))
        bail("no streams: %s", gpusim_report());
}

template <class T>
static T *
device(size_t n)
{
    void *p = nullptr;
    if (cudaMallocAsync(&p, n * sizeof(T), stream) != cudaSuccess)
        bail("no memory for %zu elements", n);
    return (T *)p;
}

template <class T>
static T *
pinned(size_t n)
{
    void *p = nullptr;
    if (cudaMallocHost(&p, n * sizeof(T)) != cudaSuccess)
        bail("no pinned memory for %zu elements", n);
    return (T *)p;
}

template <class T>
static std::vector<T>
read_back(const T *from, size_t n)
{
    std::vector<T> host(n);
    cudaMemcpyAsync(host.data(), from, n * sizeof(T), cudaMemcpyDeviceToHost, stream);
    return host;
}

/* ---- kernels ---- */

/* Thread i of all: y[i] = a x[i] + y[i]. */
static __global__ void
axpy(float a, const float *x, float *y, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] += a * x[i];
}

static __global__ void
iota(float *y, int n, float start)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += gridDim.x * blockDim.x)
        y[i] = start + (float)i;
}

/* One block: *sum of x[0..n), by shuffles within warps and shared memory between. */
static __global__ void
block_sum(const float *x, int n, float *sum)
{
    __shared__ float slot[32];
    float s = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        s += x[i];
    for (int by = 16; by > 0; by /= 2)
        s += __shfl_down_sync(0xffffffffu, s, by);
    if (threadIdx.x % 32 == 0)
        slot[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x >= 32)
        return;
    s = threadIdx.x < blockDim.x / 32 ? slot[threadIdx.x] : 0.0f;
    for (int by = 16; by > 0; by /= 2)
        s += __shfl_xor_sync(0xffffffffu, s, by);
    if (threadIdx.x == 0)
        *sum = s;
}

/* y [cols,rows] = transpose of x [rows,cols], by tiles of 16 x 16. */
static __global__ void
transpose(const float *x, float *y, int rows, int cols)
{
    float *tile = (float *)gpusim_dynamic_shared();
    int r = blockIdx.y * 16 + threadIdx.y, c = blockIdx.x * 16 + threadIdx.x;
    if (r < rows && c < cols)
        tile[threadIdx.y * 17 + threadIdx.x] = x[r * cols + c];
    __syncthreads();
    r = blockIdx.y * 16 + threadIdx.x;
    c = blockIdx.x * 16 + threadIdx.y;
    if (r < rows && c < cols)
        y[c * rows + r] = tile[threadIdx.x * 17 + threadIdx.y];
}

/* The same reversal of a block's elements with and without the barrier it needs. */
template <bool barrier>
static __global__ void
reverse(float *x)
{
    float *all = (float *)gpusim_dynamic_shared();
    all[threadIdx.x] = x[threadIdx.x];
    if (barrier)
        __syncthreads();
    x[threadIdx.x] = all[blockDim.x - 1 - threadIdx.x];
}

/* Sums of a block's x and 2 x, as every thread has them; the second one's parts take
 * the place of the first one's, with and without the barrier that this needs. */
template <bool barrier>
static __global__ void
two_sums(const float *x, float *out)
{
    __shared__ float slot[32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int turn = 0; turn < 2; turn++) {
        float s = (float)(turn + 1) * x[threadIdx.x];
        for (int by = 16; by > 0; by /= 2)
            s += __shfl_xor_sync(0xffffffffu, s, by);
        if (lane == 0)
            slot[warp] = s;
        __syncthreads();
        s = lane < (int)blockDim.x / 32 ? slot[lane] : 0.0f;
        for (int by = 16; by > 0; by /= 2)
            s += __shfl_xor_sync(0xffffffffu, s, by);
        out[turn * blockDim.x + threadIdx.x] = s;
        if (barrier)
            __syncthreads();
    }
}

static __global__ void
histogram(unsigned *count, unsigned long long *sum, float *most)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&count[i % 7], 1u);
    atomicAdd(sum, (unsigned long long)i);
    unsigned *bits = (unsigned *)most;
    for (unsigned old = *bits;;) {
        unsigned seen = old;
        if (__uint_as_float(seen) >= (float)i)
            break;
        old = atomicCAS(bits, seen, __float_as_uint((float)i));
        if (old == seen)
            break;
    }
}

/* What each kind of warp operation gives lane i, ten numbers a lane. */
static __global__ void
warp_operations(int *out)
{
    int lane = threadIdx.x, *mine = out + lane * 10;
    const unsigned all = 0xffffffffu;
    mine[0] = __shfl_sync(all, lane * lane, 5);
    mine[1] = __shfl_sync(all, lane, 3, 8);
    mine[2] = __shfl_up_sync(all, lane, 3);
    mine[3] = __shfl_down_sync(all, lane, 3, 16);
    mine[4] = __shfl_xor_sync(all, lane, 9);
    mine[5] = (int)__ballot_sync(all, lane % 3 == 0);
    mine[6] = __any_sync(all, lane == 31) + 2 * __all_sync(all, lane < 31);
    mine[7] = (int)__reduce_add_sync(all, (unsigned)lane);
    /* Two halves, each by itself. */
    unsigned half = lane < 16 ? 0x0000ffffu : 0xffff0000u;
    mine[8] =
        lane < 16 ? __shfl_xor_sync(half, lane, 1) : __shfl_xor_sync(half, lane, 2);
    mine[9] = (int)__shfl_sync(all, (double)lane / 2, 7);
}

/* Lanes return one after the other; those that are left go on. */
static __global__ void
leavers(int *out)
{
    for (int round = 0; round < 8; round++) {
        if ((int)threadIdx.x % 8 == round && threadIdx.x % 16 < 8)
            return;
        __syncthreads();
        out[threadIdx.x] = round + 1;
    }
}

static __global__ void
counted(int *out)
{
    out[threadIdx.x * 3] = __syncthreads_count(threadIdx.x % 5 == 0);
    out[threadIdx.x * 3 + 1] = __syncthreads_or(threadIdx.x == 7);
    out[threadIdx.x * 3 + 2] = __syncthreads_and(threadIdx.x != 7);
}

static __global__ void
half_at_barrier(int *out)
{
    if (threadIdx.x < 32)
        __syncthreads();
    else if (threadIdx.x == 40)
        out[1] = __shfl_sync(0xffffffffu, 1, 0);
    else
        __syncthreads();
    out[threadIdx.x] = 1;
}

/* Lane 3 waits for lanes that wait at the barrier, for it. */
static __global__ void
warp_at_barrier(int *out)
{
    if (threadIdx.x == 3)
        out[3] = __any_sync(0xffffffffu, 1);
    __syncthreads();
}

static __global__ void
two_barriers(int *out)
{
    if (threadIdx.x < 32)
        __syncthreads();
    else
        __syncthreads();
    out[threadIdx.x] = 1;
}

static __global__ void
outside_mask(int *out)
{
    out[threadIdx.x] = __shfl_sync(0x0000fffeu, 1, 2);
}

static __global__ void
past_shared(int bytes)
{
    char *all = (char *)gpusim_dynamic_shared();
    all[bytes] = 0;
}

static __global__ void
write_at(float *x, long i)
{
    x[i] = 1.0f;
}

/* What a block finds in shared memory of both kinds. */
static __global__ void
shared_garbage(unsigned *out)
{
    __shared__ unsigned fixed[4];
    unsigned *all = (unsigned *)gpusim_dynamic_shared();
    out[blockIdx.x] = all[3] & fixed[2];
    all[3] = fixed[2] = 0;
}

/* Which block came how many-th. */
static __global__ void
order_of_blocks(int *next, int *order)
{
    order[(*next)++] = (int)blockIdx.x;
}

/* ---- what kernels compute ---- */

static void
test_grids(void)
{
    fresh();
    float *x = device<float>(N), *y = device<float>(N);
    gpusim_launch(iota, 3, 64, 0, stream, x, N, 0.0);
    gpusim_launch(iota, 2, 96, 0, stream, y, N, 1);
    gpusim_launch(axpy, (N + 127) / 128, 128, 0, stream, 2.0, x, y, N);
    std::vector<float> got = read_back(y, N), want(N);
    for (int i = 0; i < N; i++)
        want[i] = 3.0f * (float)i + 1.0f;
    ok(got == want, "a kernel's arguments are converted and every element is computed");

    int *next = device<int>(1), *order = device<int>(64);
    std::vector<std::vector<int>> orders;
    bool all = true;
    for (uint64_t seed : {1, 2, 1}) {
        gpusim_seed(seed);
        cudaMemsetAsync(next, 0, sizeof *next, stream);
        gpusim_launch(order_of_blocks, 64, 1, 0, stream, next, order);
        orders.push_back(read_back(order, 64));
        std::vector<int> sorted = orders.back();
        std::sort(sorted.begin(), sorted.end());
        for (int i = 0; i < 64; i++)
            all = all && sorted[i] == i;
    }
    ok(all, "every block of a grid runs once");
    ok(orders[0] != orders[1], "in an order that the seed decides");
    ok(orders[0] == orders[2], "and the same one for the same seed");
}

/* A warp that runs ahead writes what others have not read yet. */
static void
test_slots(void)
{
    fresh();
    float *x = device<float>(96), *out = device<float>(2 * 96);
    gpusim_launch(iota, 1, 96, 0, stream, x, 96, 0);
    bool wrong = false, right = true;
    for (int seed = 0; seed < SEEDS; seed++) {
        gpusim_seed(seed);
        for (bool barrier : {true, false}) {
            gpusim_launch(barrier ? two_sums<true> : two_sums<false>, 1, 96, 0, stream,
                          (const float *)x, out);
            std::vector<float> got = read_back(out, 2 * 96);
            bool good = true;
            for (int i = 0; i < 2 * 96; i++)
                good = good && got[i] == (float)((i / 96 + 1) * 96 * 95 / 2);
            (barrier ? right : wrong) = barrier ? right && good : wrong || !good;
        }
    }
    ok(right, "with a barrier between, shared memory is used again");
    ok(wrong, "without it warps that run ahead spoil it, for some seeds");
}

static void
test_blocks(void)
{
    fresh();
    float *x = device<float>(N), *sum = device<float>(1);
    gpusim_launch(iota, 1, 256, 0, stream, x, N, 0);
    bool same = true;
    for (int threads : {32, 64, 256, 1024}) {
        gpusim_launch(block_sum, 1, threads, 0, stream, x, N, sum);
        same = same && read_back(sum, 1)[0] == (float)(N * (N - 1) / 2);
    }
    ok(same, "a block's sum is right by shuffles, shared memory and a barrier");

    const int rows = 37, cols = 50;
    float *y = device<float>(rows * cols), *z = device<float>(rows * cols);
    gpusim_launch(iota, 4, 32, 0, stream, y, rows * cols, 0);
    gpusim_launch(transpose, dim3(4, 3), dim3(16, 16), 17 * 16 * sizeof(float), stream,
                  y, z, rows, cols);
    std::vector<float> t = read_back(z, rows * cols);
    same = true;
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < cols; c++)
            same = same && t[c * rows + r] == (float)(r * cols + c);
    ok(same, "tiles in shared memory are transposed");

    bool wrong = false, right = true;
    for (int seed = 0; seed < SEEDS; seed++) {
        gpusim_seed(seed);
        for (bool barrier : {true, false}) {
            gpusim_launch(iota, 1, 96, 0, stream, x, 96, 0);
            gpusim_launch(barrier ? reverse<true> : reverse<false>, 1, 96, 96 * 4,
                          stream, x);
            std::vector<float> got = read_back(x, 96);
            bool reversed = true;
            for (int i = 0; i < 96; i++)
                reversed = reversed && got[i] == (float)(95 - i);
            if (barrier)
                right = right && reversed;
            else
                wrong = wrong || !reversed;
        }
    }
    ok(right, "with a barrier threads read what others wrote");
    ok(wrong, "without it they do not");

    unsigned *count = device<unsigned>(7);
    unsigned long long *total = device<unsigned long long>(1);
    cudaMemsetAsync(count, 0, 7 * sizeof *count, stream);
    cudaMemsetAsync(total, 0, sizeof *total, stream);
    cudaMemsetAsync(sum, 0, sizeof *sum, stream);
    gpusim_launch(histogram, 10, 70, 0, stream, count, total, sum);
    ok(read_back(count, 7) == std::vector<unsigned>(7, 100) &&
           read_back(total, 1)[0] == 700 * 699 / 2 && read_back(sum, 1)[0] == 699.0f,
       "atomics add, and compare and swap, over all blocks");

    unsigned *garbage = device<unsigned>(20);
    gpusim_launch(shared_garbage, 20, 1, 64, stream, garbage);
    ok(read_back(garbage, 20) == std::vector<unsigned>(20, 0xffffffffu),
       "shared memory is garbage at the start of every block");
}

static void
test_warps(void)
{
    fresh();
    int *out = device<int>(320);
    gpusim_launch(warp_operations, 1, 32, 0, stream, out);
    std::vector<int> got = read_back(out, 320);
    int wrong = 0;
    for (int lane = 0; lane < 32; lane++) {
        const int want[10] = {25,
                              lane / 8 * 8 + 3,
                              lane < 3 ? lane : lane - 3,
                              lane % 16 + 3 > 15 ? lane : lane + 3,
                              lane ^ 9,
                              0x49249249,
                              1,
                              496,
                              lane < 16 ? lane ^ 1 : lane ^ 2,
                              3};
        for (int i = 0; i < 10; i++)
            if (got[lane * 10 + i] != want[i] && wrong++ < 3)
                diag("lane %d, operation %d: got %d, wanted %d", lane, i,
                     got[lane * 10 + i], want[i]);
    }
    is_int(wrong, 0, "warp operations give every lane what CUDA's manual says");

    cudaMemsetAsync(out, 0, 64 * sizeof *out, stream);
    gpusim_launch(leavers, 1, 64, 0, stream, out);
    got = read_back(out, 64);
    wrong = 0;
    for (int t = 0; t < 64; t++)
        wrong += got[t] != (t % 16 < 8 ? t % 8 : 8);
    is_int(wrong, 0, "threads that have returned are not waited for");

    gpusim_launch(counted, 1, 50, 0, stream, out);
    got = read_back(out, 150);
    wrong = 0;
    for (int t = 0; t < 50; t++)
        wrong += got[t * 3] != 10 || got[t * 3 + 1] != 1 || got[t * 3 + 2] != 0;
    is_int(wrong, 0, "barriers count, and take the or and the and");
}

static bool
reported(const char *words)
{
    bool has = strstr(gpusim_report(), words) != nullptr;
    if (!has)
        diag("the report is: %s", gpusim_report());
    return has;
}

static void
test_deadlocks(void)
{
    fresh();
    int *out = device<int>(64);
    ok(gpusim_launch(half_at_barrier, 1, 64, 0, stream, out) == cudaSuccess,
       "a kernel that cannot end is launched");
    is_int(cudaStreamSynchronize(stream), cudaErrorLaunchFailure,
           "waiting for it tells that it failed");
    ok(reported("half_at_barrier") && reported("self.cc"),
       "and the report names it and the lines where threads wait");
    is_int(cudaStreamSynchronize(other), cudaErrorLaunchFailure,
           "every call fails from then on");
    is_int(cudaGetLastError(), cudaErrorLaunchFailure, "the error is noted");
    is_int(cudaGetLastError(), cudaErrorLaunchFailure, "and stays");

    fresh();
    out = device<int>(64);
    gpusim_launch(two_barriers, 1, 64, 0, stream, out);
    is_int(cudaStreamSynchronize(stream), cudaErrorLaunchFailure,
           "two barriers do not stand for one");
    ok(reported("two_barriers"), "the report names the kernel");

    fresh();
    out = device<int>(64);
    gpusim_launch(warp_at_barrier, 1, 64, 0, stream, out);
    is_int(cudaStreamSynchronize(stream), cudaErrorLaunchFailure,
           "lanes and a block that wait for each other are found");
    ok(reported("warp_at_barrier") && reported("63 of 64 threads") &&
           reported("lanes 00000008 of mask ffffffff of warp 0"),
       "and the report says who waits where");

    fresh();
    out = device<int>(64);
    gpusim_launch(outside_mask, 1, 32, 0, stream, out);
    is_int(cudaStreamSynchronize(stream), cudaErrorLaunchFailure,
           "a lane that its own mask leaves out is an error");

    fresh();
    float *x = device<float>(N), *sum = device<float>(1);
    gpusim_launch(iota, 1, 256, 0, stream, x, N, 0);
    gpusim_launch(block_sum, 1, 256, 0, stream, x, N, sum);
    is_int((int64_t)read_back(sum, 1)[0], N * (N - 1) / 2,
           "after a reset the device works again");
}

static void
test_limits(void)
{
    fresh();
    float *x = device<float>(8);
    is_int(gpusim_launch(iota, 0, 32, 0, stream, x, 8, 0),
           cudaErrorInvalidConfiguration, "a grid of no blocks is refused");
    is_int(gpusim_launch(iota, 1, 1025, 0, stream, x, 8, 0),
           cudaErrorInvalidConfiguration, "1025 threads are too many");
    is_int(gpusim_launch(iota, dim3(1, 65536), 1, 0, stream, x, 8, 0),
           cudaErrorInvalidConfiguration, "65536 blocks are too many but along x");
    is_int(gpusim_launch(iota, 1, 32, 0, nullptr, x, 8, 0),
           cudaErrorInvalidResourceHandle, "the default stream is refused");
    is_int(gpusim_launch(past_shared, 1, 1, 49153, stream, 0), cudaErrorInvalidValue,
           "48 KiB of shared memory is the limit");
    cudaFuncSetAttribute(past_shared, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         50000);
    is_int(gpusim_launch(past_shared, 1, 1, 49153, stream, 0), cudaSuccess,
           "but where a kernel asked for more");
    is_int(cudaStreamSynchronize(stream), cudaSuccess, "and then it has it");
    is_int(gpusim_launch(past_shared, 1, 1, 50001, stream, 0), cudaErrorInvalidValue,
           "not more than that");
    unsigned *found_there = device<unsigned>(1);
    is_int(gpusim_launch(shared_garbage, 1, 1, 49152 - 16, stream, found_there),
           cudaSuccess, "a kernel's static shared memory");
    is_int(gpusim_launch(shared_garbage, 1, 1, 49152 - 12, stream, found_there),
           cudaErrorInvalidValue, "counts against the 48 KiB");
    is_int(cudaFuncSetAttribute(shared_garbage,
                                cudaFuncAttributeMaxDynamicSharedMemorySize, 232440),
           cudaErrorInvalidValue, "and against what it may ask for");
    is_int(cudaGetLastError(), cudaErrorInvalidValue, "the last error is kept");
    is_int(cudaGetLastError(), cudaSuccess, "until it is asked for");

    std::vector<float> host(8);
    gpusim_launch(iota, 1, 32, 0, stream, host.data(), 8, 0);
    is_int(cudaStreamSynchronize(stream), cudaErrorIllegalAddress,
           "a kernel cannot reach memory of the host that is not pinned");
    fresh();
    x = device<float>(8);
    cudaFreeAsync(x, stream);
    gpusim_launch(iota, 1, 32, 0, stream, x, 8, 0);
    is_int(cudaStreamSynchronize(stream), cudaErrorIllegalAddress,
           "nor memory that was freed before");
    bool found = false;
    for (int seed = 0; seed < SEEDS; seed++) {
        fresh();
        gpusim_seed(seed);
        x = device<float>(8);
        float *from = pinned<float>(8);
        cudaStreamSynchronize(stream);
        cudaMemcpyAsync(x, from, 32, cudaMemcpyHostToDevice, other);
        cudaFreeAsync(x, stream);
        cudaDeviceSynchronize();
        found = found || cudaGetLastError() == cudaErrorIllegalAddress;
    }
    ok(found,
       "nor can a copy that another stream's free does not wait for, for some seeds");
    fresh();
    float *p = pinned<float>(8);
    gpusim_launch(iota, 1, 32, 0, stream, p, 8, 5);
    cudaStreamSynchronize(stream);
    is_int((int64_t)p[7], 12, "but memory that is pinned");
}

/* ---- streams ---- */

/* What the other stream reads of x when FIRST is written to it on this one, with or
 * without the wait between them. Bit 0: the old value was seen for some seed, 1: the
 * new one. */
static int
seen(bool wait)
{
    int values = 0;
    for (int seed = 0; seed < SEEDS; seed++) {
        fresh();
        gpusim_seed(seed);
        cudaEvent_t written;
        cudaEventCreateWithFlags(&written, cudaEventDisableTiming);
        float *x = device<float>(1), *copy = pinned<float>(1);
        cudaMemsetAsync(x, 0, sizeof *x, stream);
        cudaStreamSynchronize(stream);
        gpusim_launch(iota, 1, 1, 0, stream, x, 1, 7);
        cudaEventRecord(written, stream);
        if (wait)
            cudaStreamWaitEvent(other, written, 0);
        cudaMemcpyAsync(copy, x, sizeof *x, cudaMemcpyDeviceToHost, other);
        cudaStreamSynchronize(other);
        values |= *copy == 0.0f ? 1 : *copy == 7.0f ? 2 : 4;
    }
    return values;
}

static void
test_streams(void)
{
    is_int(seen(true), 2, "a stream that waits for another's event sees what it wrote");
    is_int(seen(false), 3, "one that does not sees old data, for some seeds");

    fresh();
    float *x = device<float>(N), *from = pinned<float>(N), *to = pinned<float>(N);
    std::vector<float> pageable(N, 1.0f);
    for (int i = 0; i < N; i++)
        from[i] = 1.0f;
    cudaMemcpyAsync(x, pageable.data(), N * 4, cudaMemcpyHostToDevice, stream);
    pageable[0] = 2.0f;
    cudaMemcpyAsync(to, x, N * 4, cudaMemcpyDefault, stream);
    ok(to[0] != 1.0f, "nothing is copied before somebody waits");
    cudaStreamSynchronize(stream);
    ok(to[0] == 1.0f, "memory that is not pinned is read at the call");
    is_int(gpusim_counts()->pageable_copies, 1, "and counted");
    cudaMemcpyAsync(x, from, N * 4, cudaMemcpyHostToDevice, stream);
    from[0] = 3.0f;
    cudaMemcpyAsync(to, x, N * 4, cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    ok(to[0] == 3.0f, "a pinned buffer that is used again too early gives wrong data");
    is_int(cudaMemcpyAsync(x + 1, from, N * 4, cudaMemcpyHostToDevice, stream),
           cudaErrorInvalidValue, "a copy past the end of a block is refused");
    is_int(cudaMemcpyAsync(x, from, N * 4, cudaMemcpyDeviceToHost, stream),
           cudaErrorInvalidValue, "so is one in another direction than it says");

    cudaEvent_t event;
    cudaEventCreateWithFlags(&event, cudaEventDefault);
    is_int(cudaEventQuery(event), cudaSuccess, "an event never recorded has passed");
    gpusim_launch(iota, 1, 32, 0, stream, x, N, 0);
    cudaEventRecord(event, stream);
    is_int(cudaEventQuery(event), cudaErrorNotReady,
           "one whose work is queued has not");
    is_int(cudaEventQuery(event), cudaErrorNotReady, "nor at the second question");
    is_int(cudaEventQuery(event), cudaSuccess, "but at the third");
    float ms = -1;
    ok(cudaEventElapsedTime(&ms, event, event) == cudaSuccess && ms == 0.0f,
       "events that passed have a time");
    is_int(gpusim_counts()->launches, 1, "launches are counted");
    cudaEvent_t later;
    cudaEventCreateWithFlags(&later, cudaEventDefault);
    cudaEventRecord(event, stream);
    for (int i = 0; i < 3; i++)
        gpusim_launch(iota, 1, 32, 0, stream, x, N, 0);
    cudaEventRecord(later, stream);
    cudaStreamSynchronize(stream);
    ok(cudaEventElapsedTime(&ms, event, later) == cudaSuccess &&
           fabsf(ms - 0.3f) < 1e-6f,
       "work takes a tenth of a millisecond, however long the host needs: %g", ms);

    int order[2] = {0, 0};
    cudaHostFn_t note = [](void *data) {
        int *counter = (int *)data;
        counter[1] = cudaStreamCreate(&stream) == cudaErrorNotPermitted;
        counter[0]++;
    };
    cudaLaunchHostFunc(stream, note, order);
    is_int(order[0], 0, "a host function is queued");
    cudaDeviceSynchronize();
    is_int(order[0], 1, "and runs once");
    ok(order[1], "and may not call the runtime");
}

static void
test_threads(void)
{
    fresh();
    std::vector<std::thread> threads;
    bool right[4] = {};
    for (int i = 0; i < 4; i++)
        threads.emplace_back([i, &right] {
            cudaStream_t mine;
            float *x = nullptr, *copy = nullptr;
            right[i] = !cudaStreamCreateWithFlags(&mine, cudaStreamNonBlocking) &&
                       !cudaMallocHost(&copy, N * 4);
            for (int turn = 0; turn < 50 && right[i]; turn++) {
                right[i] =
                    !cudaMallocAsync((void **)&x, N * 4, mine) &&
                    !gpusim_launch(iota, 2, 64, 0, mine, x, N, turn + i) &&
                    !cudaMemcpyAsync(copy, x, N * 4, cudaMemcpyDeviceToHost, mine) &&
                    !cudaFreeAsync(x, mine) && !cudaStreamSynchronize(mine) &&
                    copy[N - 1] == (float)(N - 1 + turn + i);
            }
        });
    for (std::thread &t : threads)
        t.join();
    ok(right[0] && right[1] && right[2] && right[3],
       "four threads use the device at once");
}

/* ---- graphs ---- */

static void
test_graphs(void)
{
    fresh();
    float *x = device<float>(N), *y = device<float>(N);
    float *from = pinned<float>(N), *to = pinned<float>(N);
    cudaEvent_t fork, join;
    cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&join, cudaEventDisableTiming);
    is_int(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
           cudaSuccess, "a capture begins");
    cudaMemcpyAsync(x, from, N * 4, cudaMemcpyHostToDevice, stream);
    cudaEventRecord(fork, stream);
    cudaStreamWaitEvent(other, fork, 0);
    gpusim_launch(iota, 1, 64, 0, other, y, N, 1);
    cudaEventRecord(join, other);
    cudaStreamWaitEvent(stream, join, 0);
    gpusim_launch(axpy, 8, 128, 0, stream, 10, x, y, N);
    cudaMemcpyAsync(to, y, N * 4, cudaMemcpyDeviceToHost, stream);
    enum cudaStreamCaptureStatus status;
    cudaStreamIsCapturing(other, &status);
    is_int(status, cudaStreamCaptureStatusActive,
           "a stream that waits for it takes part");
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    is_int(cudaStreamEndCapture(stream, &graph), cudaSuccess, "and ends");
    size_t nodes;
    cudaGraphGetNodes(graph, nullptr, &nodes);
    is_int((int64_t)nodes, 4, "kernels and copies are nodes");
    cudaGraphInstantiate(&exec, graph, 0);
    cudaGraphDestroy(graph);
    cudaStreamSynchronize(stream);
    ok(isnan(to[0]), "nothing ran meanwhile");
    bool right = true;
    for (int turn = 0; turn < 5; turn++) {
        for (int i = 0; i < N; i++)
            from[i] = (float)turn;
        cudaGraphLaunch(exec, stream);
        cudaStreamSynchronize(stream);
        for (int i = 0; i < N; i++)
            right = right && to[i] == (float)(i + 1 + 10 * turn);
    }
    ok(right, "a replay computes the same from what the buffers hold then");
    is_int(gpusim_counts()->graph_launches, 5, "replays are counted");
    is_int(gpusim_counts()->graph_nodes, 20, "and their nodes");
    is_int(gpusim_counts()->launches, 0, "not as launches");
    cudaGraphExecDestroy(exec);
}

/* What a capture in which CALL was made ends with. */
template <class F>
static cudaError_t
captured_with(cudaError_t *said, cudaStreamCaptureMode mode, F call)
{
    cudaGraph_t graph;
    cudaStreamBeginCapture(stream, mode);
    *said = call();
    cudaError_t end = cudaStreamEndCapture(stream, &graph);
    cudaGetLastError();
    return end;
}

static void
test_capture_rules(void)
{
    fresh();
    void *p;
    cudaError_t said, end;
    const cudaStreamCaptureMode local = cudaStreamCaptureModeThreadLocal,
                                global = cudaStreamCaptureModeGlobal;
    end = captured_with(&said, local, [] { return cudaStreamSynchronize(stream); });
    is_int(said, cudaErrorStreamCaptureUnsupported,
           "a captured stream is not waited for");
    is_int(end, cudaErrorStreamCaptureInvalidated, "the attempt spoils the capture");
    end = captured_with(&said, local, [&] { return cudaMalloc(&p, 10); });
    is_int(said, cudaErrorStreamCaptureUnsupported, "nor is memory allocated");
    end = captured_with(&said, local, [&] { return cudaMallocAsync(&p, 10, stream); });
    is_int(said, cudaErrorStreamCaptureUnsupported, "not in its order either");
    end = captured_with(&said, local, [] { return cudaDeviceSynchronize(); });
    is_int(said, cudaErrorStreamCaptureUnsupported, "nor is the device waited for");

    auto elsewhere = [&] {
        cudaError_t code;
        std::thread([&] { code = cudaMalloc(&p, 10); }).join();
        return code;
    };
    end = captured_with(&said, local, elsewhere);
    is_int(said, cudaSuccess, "another thread may allocate where the capture is local");
    is_int(end, cudaSuccess, "and the capture goes on");
    end = captured_with(&said, global, elsewhere);
    is_int(said, cudaErrorStreamCaptureUnsupported, "but not where it is global");

    cudaEvent_t event;
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    end = captured_with(&said, local, [&] {
        cudaEventRecord(event, stream);
        return cudaEventQuery(event);
    });
    is_int(said, cudaErrorCapturedEvent, "an event of a capture cannot be asked");
    cudaEventRecord(event, other);
    end = captured_with(&said, local,
                        [&] { return cudaStreamWaitEvent(stream, event, 0); });
    is_int(said, cudaErrorStreamCaptureIsolation,
           "a capture cannot wait for what is outside");
    cudaFreeAsync(nullptr, stream);
    float *x = device<float>(4);
    end = captured_with(&said, local, [&] {
        cudaEventRecord(event, stream);
        cudaStreamWaitEvent(other, event, 0);
        return gpusim_launch(iota, 1, 1, 0, other, x, 4, 0);
    });
    is_int(end, cudaErrorStreamCaptureUnjoined,
           "a stream that took part must be joined again");
}

/* ---- memory ---- */

static void
test_memory(void)
{
    fresh();
    size_t all, left;
    cudaMemGetInfo(&left, &all);
    is_int((int64_t)left, (int64_t)all, "a fresh device has all its memory");
    void *p, *q;
    is_int(cudaMallocAsync(&p, all + 1, stream), cudaErrorMemoryAllocation,
           "more than that is not to be had");
    is_int(cudaMallocAsync(&p, all - (64 << 20), stream), cudaSuccess,
           "nearly all of it is");
    is_int(cudaMallocAsync(&q, 65 << 20, stream), cudaErrorMemoryAllocation,
           "and then not much more");
    cudaFreeAsync(p, stream);
    is_int(cudaMallocAsync(&q, 65 << 20, stream), cudaSuccess,
           "what is freed in stream order can be had again");
    cudaFreeAsync(q, stream);

    gpusim_take("2500M@2");
    is_int(cudaMallocAsync(&p, 1 << 20, stream), cudaSuccess,
           "the first allocation goes");
    is_int(cudaMallocAsync(&q, 1 << 30, stream), cudaErrorMemoryAllocation,
           "the second finds another process in its place");
    gpusim_take(nullptr);

    cudaMemPool_t pool;
    struct cudaMemPoolProps props = {};
    props.allocType = cudaMemAllocationTypePinned;
    props.location = {cudaMemLocationTypeDevice, 0};
    cudaMemPoolCreate(&pool, &props);
    uint64_t keep = ~(uint64_t)0, used, reserved;
    cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep);
    cudaMallocFromPoolAsync(&q, 10 << 20, pool, stream);
    cudaFreeAsync(q, stream);
    cudaStreamSynchronize(stream);
    cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used);
    cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved);
    ok(used == 0 && reserved == 10 << 20,
       "a pool keeps what its threshold lets it keep");
    cudaMemPoolTrimTo(pool, 0);
    cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved);
    is_int((int64_t)reserved, 0, "until it is trimmed");
    cudaMemPoolDestroy(pool);

    float *x = device<float>(4);
    ok(isnan(read_back(x, 4)[3]), "new memory is full of NaN");
    is_int(cudaFreeAsync((char *)x + 4, stream), cudaErrorInvalidValue,
           "what is no block cannot be freed");
    is_int(cudaFreeAsync(x, stream), cudaSuccess, "what is can");
    is_int(cudaFreeAsync(x, stream), cudaErrorInvalidValue, "once");
}

/* Does a process that calls F die of a signal, or of AddressSanitizer? What it said is
 * kept in SAID. */
static std::string said;
template <class F>
static bool
dies(F f)
{
    int ends[2], status;
    fflush(stdout);
    if (pipe(ends) != 0)
        bail("no pipe");
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_set_report_path("stderr");
#endif
        f();
        _exit(0);
    }
    close(ends[1]);
    said.clear();
    char part[512];
    for (ssize_t n; (n = read(ends[0], part, sizeof part)) > 0;)
        said.append(part, (size_t)n);
    close(ends[0]);
    return waitpid(pid, &status, 0) == pid && status != 0;
}

/* AddressSanitizer says it in its own words. */
static bool
it_said(const char *words)
{
#if defined(__SANITIZE_ADDRESS__)
    (void)words;
    return said.find("AddressSanitizer") != std::string::npos;
#else
    if (said.find(words) == std::string::npos)
        diag("it said: %s", said.c_str());
    return said.find(words) != std::string::npos;
#endif
}

static void
test_deaths(void)
{
    fresh();
    float *x = device<float>(10);
    cudaStreamSynchronize(stream);
    ok(dies([x] { x[3] = 1.0f; }), "the host that touches device memory dies");
    ok(it_said("the host touched device memory"), "and is told why");
    ok(dies([] {
           cudaLaunchHostFunc(
               stream, [](void *p) { *(float *)p = 1; }, device<float>(1));
           cudaStreamSynchronize(stream);
       }),
       "so does a host function");
    ok(!dies([x] {
        gpusim_launch(write_at, 1, 1, 0, stream, x, 9);
        cudaStreamSynchronize(stream);
        cudaFree(x);
    }),
       "a kernel that writes the last element of a block is fine");
    ok(dies([x] {
           gpusim_launch(write_at, 1, 1, 0, stream, x, 1L << 40);
           cudaStreamSynchronize(stream);
       }),
       "one that writes where nothing is dies");
    ok(it_said("write_at(float*, long), block (0,0,0), thread (0,0,0), touched"),
       "and is named");
    ok(dies([x] {
           gpusim_launch(write_at, 1, 1, 0, stream, x, 10);
           cudaStreamSynchronize(stream);
           cudaFree(x);
       }),
       "one that writes behind it is found");
    ok(dies([x] {
           gpusim_launch(write_at, 1, 1, 0, stream, x, -1);
           cudaStreamSynchronize(stream);
           cudaFree(x);
       }),
       "and before it");
    ok(dies([] {
           gpusim_launch(past_shared, 1, 1, 64, stream, 64);
           if (cudaStreamSynchronize(stream) == cudaErrorIllegalAddress)
               abort();
       }),
       "and one that leaves its shared memory");
}

/* ---- faults ---- */

static void
test_faults(void)
{
    fresh();
    void *p;
    ok(gpusim_fault("cudaMallocAsync=2@2,cudaEventCreateWithFlags=999@1+"),
       "faults are taken");
    is_int(cudaMallocAsync(&p, 8, stream), cudaSuccess, "calls before it go");
    is_int(cudaMallocAsync(&p, 8, stream), cudaErrorMemoryAllocation,
           "that call fails");
    is_int(cudaMallocAsync(&p, 8, stream), cudaSuccess, "and the next goes again");
    ok(!gpusim_fault("nonsense"), "what is no fault is refused");

    fresh();
    float *x = device<float>(8);
    gpusim_fault("launch=700@2");
    gpusim_launch(iota, 1, 1, 0, stream, x, 8, 0);
    is_int(gpusim_launch(iota, 1, 1, 0, stream, x, 8, 0), cudaSuccess,
           "a launch whose kernel will fault succeeds");
    is_int(cudaEventQuery(nullptr), cudaErrorInvalidResourceHandle,
           "and more calls do");
    is_int(cudaStreamSynchronize(stream), cudaErrorIllegalAddress,
           "until somebody waits: the device is lost");
    is_int(cudaMallocAsync(&p, 8, stream), cudaErrorIllegalAddress, "for good");
    is_str(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress",
           "errors have names");
    fresh();
    gpusim_fault("launch=701@1");
    x = device<float>(8);
    is_int(gpusim_launch(iota, 1, 1, 0, stream, x, 8, 0), cudaErrorLaunchOutOfResources,
           "a launch can be refused");
    is_int(gpusim_launch(iota, 1, 1, 0, stream, x, 8, 0), cudaSuccess, "once");

    fresh();
    x = device<float>(1);
    gpusim_enqueue(stream, "a library's work", [x] { *x = 42.0f; });
    is_int((int64_t)read_back(x, 1)[0], 42, "libraries queue what they compute");
}

/* ---- half precision ---- */

/* Every value of a 16-bit format, with one function each way. WIDE(h) must round back
 * to h; halfway between it and the next the even one wins; one f32 beside that, the
 * nearer. */
static void
test_format(const char *name, float (*wide)(unsigned short),
            unsigned short (*narrow)(float), unsigned infinity, unsigned nan)
{
    int wrong = 0, ties = 0, near = 0, nans = 0;
    for (unsigned h = 0; h < 65536; h++) {
        float x = wide((unsigned short)h);
        unsigned size = h & 0x7fff, sign = h & 0x8000;
        if (size > infinity) {
            nans += !isnan(x) || narrow(x) != nan;
            continue;
        }
        wrong += narrow(x) != h;
        if (size + 1 >= infinity)
            continue;
        float next = wide((unsigned short)(h + 1));
        float middle = (float)(((double)x + next) / 2);
        ties += narrow(middle) != (sign | (size & 1 ? size + 1 : size));
        near += narrow(nextafterf(middle, x)) != h;
        near += narrow(nextafterf(middle, next)) != h + 1;
    }
    is_int(wrong, 0, "%s: all numbers and infinities survive the way to f32 and back",
           name);
    is_int(nans, 0, "%s: all NaNs become the one of the hardware", name);
    is_int(ties, 0, "%s: ties go to the even neighbour", name);
    is_int(near, 0, "%s: a little beside a tie goes to the nearer", name);
    float most = wide((unsigned short)(infinity - 1));
    float step = most - wide((unsigned short)(infinity - 2));
    is_int(narrow(most + step / 2), infinity,
           "%s: half a step above the largest is infinite", name);
    is_int(narrow(nextafterf(most + step / 2, 0)), infinity - 1, "%s: less is not",
           name);
}

static void
test_formats(void)
{
    test_format(
        "bf16",
        [](unsigned short h) { return __bfloat162float(__ushort_as_bfloat16(h)); },
        [](float x) { return __bfloat16_as_ushort(__float2bfloat16_rn(x)); }, 0x7f80,
        0x7fff);
    test_format(
        "fp16", [](unsigned short h) { return __half2float(__ushort_as_half(h)); },
        [](float x) { return __half_as_ushort(__float2half_rn(x)); }, 0x7c00, 0x7fff);
    is_int(__bfloat16_as_ushort(__double2bfloat16(1.0 + 0x1p-8 + 0x1p-40)), 0x3f81,
           "a double is rounded once to bf16");
    is_int(__half_as_ushort(__double2half(1.0 + 0x1p-11 + 0x1p-40)), 0x3c01,
           "and once to fp16");
    is_int(__float2int_rn(2.5f), 2, "floats become integers by ties to even");
    is_int(__float2int_rn(3e9f), INT32_MAX, "and the nearest where they do not fit");
    is_int(__float2int_rz(NAN), 0, "and 0 where they are none");
    ok(__clz(0) == 32 && __clz(1) == 31 && __ffs(8) == 4 && __popc(0xf0f0u) == 8 &&
           __brev(1u) == 0x80000000u && __umulhi(0x80000000u, 6u) == 3,
       "integer intrinsics count and turn bits");
}

/* What kernels of images divide by, where a length does not fit 32 bits. */
static void
test_lengths(void)
{
    const int64_t n = (int64_t)1 << 32;
    etk_length length = etk_length_of(n);
    int64_t i = 5 * n + 3;
    ok(etk_peel(i, length, true) == 3 && i == 5, "a length of 2^32 is divided by");
}

int
main(void)
{
    test_grids();
    test_blocks();
    test_slots();
    test_warps();
    test_deadlocks();
    test_limits();
    test_streams();
    test_threads();
    test_graphs();
    test_capture_rules();
    test_memory();
    test_deaths();
    test_faults();
    test_formats();
    test_lengths();
    gpusim_reset();
    return done();
}
