/* SPDX-License-Identifier: Apache-2.0 */
/* device.cc: what the simulated GPU says it is: a small Hopper. */
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "state.h"

/* Few multiprocessors: grids that are sized by them stay small, and their threads take
 * several turns. */
static const int PROCESSORS = 3;

static int
devices(void)
{
    const char *text = getenv("GPUSIM_DEVICES");
    return text ? (int)strtol(text, nullptr, 10) : 1;
}

static cudaError_t
check_device(int device)
{
    if (devices() < 1)
        return cudaErrorNoDevice;
    return device >= 0 && device < devices() ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t
cudaGetDeviceCount(int *count)
{
    return gpusim_call(__func__, [&] {
        *count = devices();
        return *count ? cudaSuccess : cudaErrorNoDevice;
    });
}

cudaError_t
cudaSetDevice(int device)
{
    return gpusim_call(__func__, [&] {
        cudaError_t code = check_device(device);
        /* There is one state: a second device could be listed and not used. */
        return code || device == 0 ? code : cudaErrorDevicesUnavailable;
    });
}

cudaError_t
cudaGetDevice(int *device)
{
    return gpusim_call(__func__, [&] {
        *device = 0;
        return check_device(0);
    });
}

static void
describe(struct cudaDeviceProp *p)
{
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "gpusim");
    memcpy(p->uuid.bytes, "gpusim-000000001", sizeof p->uuid.bytes);
    p->totalGlobalMem = gpusim_total_memory();
    p->sharedMemPerBlock = 48 << 10;
    p->regsPerBlock = p->regsPerMultiprocessor = 65536;
    p->warpSize = 32;
    p->maxThreadsPerBlock = 1024;
    p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024;
    p->maxThreadsDim[2] = 64;
    p->maxGridSize[0] = 0x7fffffff;
    p->maxGridSize[1] = p->maxGridSize[2] = 65535;
    p->totalConstMem = 64 << 10;
    p->major = 9;
    p->multiProcessorCount = PROCESSORS;
    p->canMapHostMemory = 1;
    p->concurrentKernels = 1;
    p->pciBusID = 1;
    p->asyncEngineCount = 2;
    p->unifiedAddressing = 1;
    p->memoryBusWidth = 5120;
    p->l2CacheSize = 50 << 20;
    p->maxThreadsPerMultiProcessor = 2048;
    p->streamPrioritiesSupported = 1;
    p->sharedMemPerMultiprocessor = 228 << 10;
    p->sharedMemPerBlockOptin = 232448;
    p->maxBlocksPerMultiProcessor = 32;
    p->reservedSharedMemPerBlock = 1024;
    p->memoryPoolsSupported = 1;
}

cudaError_t
cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
    return gpusim_call(__func__, [&] {
        describe(prop);
        return check_device(device);
    });
}

cudaError_t
cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device)
{
    return gpusim_call(__func__, [&] {
        struct cudaDeviceProp p;
        describe(&p);
        const struct {
            enum cudaDeviceAttr attr;
            int value;
        } table[] = {
            {cudaDevAttrMaxThreadsPerBlock, p.maxThreadsPerBlock},
            {cudaDevAttrMaxBlockDimX, p.maxThreadsDim[0]},
            {cudaDevAttrMaxBlockDimY, p.maxThreadsDim[1]},
            {cudaDevAttrMaxBlockDimZ, p.maxThreadsDim[2]},
            {cudaDevAttrMaxGridDimX, p.maxGridSize[0]},
            {cudaDevAttrMaxGridDimY, p.maxGridSize[1]},
            {cudaDevAttrMaxGridDimZ, p.maxGridSize[2]},
            {cudaDevAttrMaxSharedMemoryPerBlock, (int)p.sharedMemPerBlock},
            {cudaDevAttrTotalConstantMemory, (int)p.totalConstMem},
            {cudaDevAttrWarpSize, p.warpSize},
            {cudaDevAttrMaxRegistersPerBlock, p.regsPerBlock},
            {cudaDevAttrClockRate, 1000000},
            {cudaDevAttrMultiProcessorCount, p.multiProcessorCount},
            {cudaDevAttrIntegrated, p.integrated},
            {cudaDevAttrConcurrentKernels, p.concurrentKernels},
            {cudaDevAttrPciBusId, p.pciBusID},
            {cudaDevAttrPciDeviceId, p.pciDeviceID},
            {cudaDevAttrMemoryClockRate, 1000000},
            {cudaDevAttrGlobalMemoryBusWidth, p.memoryBusWidth},
            {cudaDevAttrL2CacheSize, p.l2CacheSize},
            {cudaDevAttrMaxThreadsPerMultiProcessor, p.maxThreadsPerMultiProcessor},
            {cudaDevAttrAsyncEngineCount, p.asyncEngineCount},
            {cudaDevAttrComputeCapabilityMajor, p.major},
            {cudaDevAttrComputeCapabilityMinor, p.minor},
            {cudaDevAttrMaxSharedMemoryPerMultiprocessor,
             (int)p.sharedMemPerMultiprocessor},
            {cudaDevAttrMaxRegistersPerMultiprocessor, p.regsPerMultiprocessor},
            {cudaDevAttrCooperativeLaunch, p.cooperativeLaunch},
            {cudaDevAttrMaxSharedMemoryPerBlockOptin, (int)p.sharedMemPerBlockOptin},
            {cudaDevAttrMaxBlocksPerMultiprocessor, p.maxBlocksPerMultiProcessor},
            {cudaDevAttrReservedSharedMemoryPerBlock, (int)p.reservedSharedMemPerBlock},
            {cudaDevAttrMemoryPoolsSupported, p.memoryPoolsSupported},
        };
        cudaError_t code = check_device(device);
        if (code)
            return code;
        for (const auto &row : table)
            if (row.attr == attr) {
                *value = row.value;
                return cudaSuccess;
            }
        return cudaErrorInvalidValue;
    });
}

cudaError_t
cudaDeviceGetPCIBusId(char *id, int size, int device)
{
    return gpusim_call(__func__, [&] {
        cudaError_t code = check_device(device);
        if (!code && snprintf(id, (size_t)size, "0000:01:00.0") >= size)
            code = cudaErrorInvalidValue;
        return code;
    });
}

static cudaError_t
version(const char *name, int *out)
{
    return gpusim_call(name, [&] {
        *out = CUDART_VERSION;
        return cudaSuccess;
    });
}

cudaError_t
cudaRuntimeGetVersion(int *out)
{
    return version(__func__, out);
}

cudaError_t
cudaDriverGetVersion(int *out)
{
    return version(__func__, out);
}

cudaError_t
cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    return gpusim_call(__func__, [&] {
        *least = 0;
        *greatest = -5;
        return cudaSuccess;
    });
}
