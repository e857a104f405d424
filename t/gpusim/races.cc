/* SPDX-License-Identifier: Apache-2.0 */
/* races.cc: that the simulated GPU finds threads at one place with nothing between
 * them, whatever the order in which they ran, and nothing where something is. */
#include <cuda_runtime.h>
#include <gpusim.h>
#include <string.h>

extern "C" {
#include "t/tap.h"
}

enum { N = 96, SEEDS = 5 };
/* What stands between a write and a read, a template's parameter. */
enum between { NOTHING, SHUFFLE, WARP, BLOCK };

static cudaStream_t stream;
static float *array;

template <enum between B>
static __device__ __forceinline__ void
pass(void)
{
    if (B == SHUFFLE)
        __shfl_sync(0xffffffffu, 1, 0);
    if (B == WARP)
        __syncwarp();
    if (B == BLOCK)
        __syncthreads();
}

/* Each thread writes a slot, and then reads that BY further on. */
template <enum between B>
static __global__ void
neighbour(float *y, int by)
{
    __shared__ float slot[N];
    slot[threadIdx.x] = 1;
    pass<B>();
    y[threadIdx.x] = slot[threadIdx.x / 32 * 32 + (threadIdx.x + by) % 32];
}

template <enum between B>
static __global__ void
across(float *y)
{
    __shared__ float slot[N];
    slot[threadIdx.x] = 1;
    pass<B>();
    y[threadIdx.x] = slot[(threadIdx.x + 32) % N];
}

/* All read what thread 0 then writes. */
template <enum between B>
static __global__ void
write_behind(float *y)
{
    float *all = (float *)gpusim_dynamic_shared();
    if (threadIdx.x == 0)
        all[0] = 1;
    __syncthreads();
    y[threadIdx.x] = all[0];
    pass<B>();
    if (threadIdx.x == 0)
        all[0] = 2;
}

/* Blocks write N floats from blockIdx.x times APART on, or read the one before. */
static __global__ void
blocks(float *y, int apart, int back)
{
    int at = (int)blockIdx.x * apart + (int)threadIdx.x;
    y[at] = 1;
    if (back && blockIdx.x > 0)
        y[at] = y[at - back];
}

static __global__ void
count(unsigned *n)
{
    atomicAdd(n, 1u);
}

/* Does LAUNCH race under every seed, or under none? */
template <class Launch>
static void
races(bool want, Launch launch, const char *what)
{
    int found = 0;
    for (int seed = 0; seed < SEEDS; seed++) {
        gpusim_reset();
        gpusim_seed((uint64_t)seed);
        void *p = nullptr;
        if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) ||
            cudaMallocAsync(&p, 4 * N * sizeof(float), stream))
            bail("%s", gpusim_report());
        array = (float *)p;
        launch();
        cudaError_t code = cudaStreamSynchronize(stream);
        found += code == cudaErrorLaunchFailure && strstr(gpusim_report(), " races: ");
        if (code && !want)
            diag("%s", gpusim_report());
    }
    is_int(found, want ? SEEDS : 0, "%s", what);
    gpusim_reset();
}

int
main(void)
{
#if defined(__SANITIZE_THREAD__)
    races(
        true, [] { gpusim_launch(across<NOTHING>, 1, N, 0, stream, array); },
        "another warp's slot needs a barrier");
    races(
        true, [] { gpusim_launch(across<WARP>, 1, N, 0, stream, array); },
        "for which __syncwarp will not do");
    races(
        false, [] { gpusim_launch(across<BLOCK>, 1, N, 0, stream, array); },
        "and __syncthreads will");
    races(
        true, [] { gpusim_launch(neighbour<NOTHING>, 1, N, 0, stream, array, 1); },
        "so does another lane's");
    races(
        true, [] { gpusim_launch(neighbour<SHUFFLE>, 1, N, 0, stream, array, 1); },
        "for which a shuffle will not do");
    races(
        false, [] { gpusim_launch(neighbour<WARP>, 1, N, 0, stream, array, 1); },
        "and __syncwarp will");
    races(
        false, [] { gpusim_launch(neighbour<NOTHING>, 1, N, 0, stream, array, 0); },
        "a thread's own needs nothing");
    races(
        true, [] { gpusim_launch(write_behind<NOTHING>, 1, N, 4, stream, array); },
        "what others may not have read yet is not written");
    races(
        false, [] { gpusim_launch(write_behind<BLOCK>, 1, N, 4, stream, array); },
        "but behind a barrier");
    races(
        false, [] { gpusim_launch(blocks, 4, N, 0, stream, array, N, 0); },
        "blocks may write beside each other");
    races(
        true, [] { gpusim_launch(blocks, 4, N, 0, stream, array, N - 1, 0); },
        "not over each other");
    races(
        true, [] { gpusim_launch(blocks, 4, N, 0, stream, array, N, N); },
        "nor read what another writes");
    races(
        false, [] { gpusim_launch(count, 4, N, 0, stream, (unsigned *)array); },
        "but for atomics");
    return done();
#else
    (void)races<void (*)(void)>;
    (void)blocks;
    (void)count;
    skip_all("kernels were not compiled for it");
#endif
}
