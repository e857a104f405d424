/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_runtime_api.h: the simulator's CUDA runtime, as far as Etude uses it.
 *
 * Names, arguments and codes are CUDA 13's; its manual is the reference. A trailing
 * note says only what the simulator adds. What is not here is not simulated, so code
 * that uses it does not compile. The legacy default stream is refused: every call that
 * takes a stream answers cudaErrorInvalidResourceHandle for NULL. t/gpusim/README has
 * the rest. */
#ifndef ETUDE_GPUSIM_CUDA_RUNTIME_API_H
#define ETUDE_GPUSIM_CUDA_RUNTIME_API_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CUDART_VERSION 13000

/* X(name, code, what cudaGetErrorString says) */
#define GPUSIM_ERRORS(X)                                                               \
    X(cudaSuccess, 0, "no error")                                                      \
    X(cudaErrorInvalidValue, 1, "invalid argument")                                    \
    X(cudaErrorMemoryAllocation, 2, "out of memory")                                   \
    X(cudaErrorInitializationError, 3, "initialization error")                         \
    X(cudaErrorCudartUnloading, 4, "cudart unloading")                                 \
    X(cudaErrorInvalidConfiguration, 9, "invalid configuration argument")              \
    X(cudaErrorInvalidSymbol, 13, "invalid symbol")                                    \
    X(cudaErrorInvalidDevicePointer, 17, "invalid device pointer")                     \
    X(cudaErrorInvalidMemcpyDirection, 21, "invalid memcpy direction")                 \
    X(cudaErrorNotYetImplemented, 31, "not yet implemented")                           \
    X(cudaErrorStubLibrary, 34, "stub library")                                        \
    X(cudaErrorInsufficientDriver, 35, "CUDA driver version is insufficient")          \
    X(cudaErrorCallRequiresNewerDriver, 36, "call requires newer driver")              \
    X(cudaErrorDevicesUnavailable, 46,                                                 \
      "CUDA-capable device(s) is/are busy or unavailable")                             \
    X(cudaErrorIncompatibleDriverContext, 49, "incompatible driver context")           \
    X(cudaErrorInvalidDeviceFunction, 98, "invalid device function")                   \
    X(cudaErrorNoDevice, 100, "no CUDA-capable device is detected")                    \
    X(cudaErrorInvalidDevice, 101, "invalid device ordinal")                           \
    X(cudaErrorDeviceNotLicensed, 102, "device not licensed")                          \
    X(cudaErrorStartupFailure, 127, "startup failure")                                 \
    X(cudaErrorInvalidKernelImage, 200, "invalid kernel image")                        \
    X(cudaErrorDeviceUninitialized, 201, "device uninitialized")                       \
    X(cudaErrorNoKernelImageForDevice, 209, "no kernel image for device")              \
    X(cudaErrorECCUncorrectable, 214, "uncorrectable ECC error encountered")           \
    X(cudaErrorUnsupportedLimit, 215, "unsupported limit")                             \
    X(cudaErrorDeviceAlreadyInUse, 216, "device already in use")                       \
    X(cudaErrorInvalidPtx, 218, "invalid ptx")                                         \
    X(cudaErrorInvalidGraphicsContext, 219, "invalid graphics context")                \
    X(cudaErrorNvlinkUncorrectable, 220, "nvlink uncorrectable")                       \
    X(cudaErrorJitCompilerNotFound, 221, "jit compiler not found")                     \
    X(cudaErrorUnsupportedPtxVersion, 222, "unsupported ptx version")                  \
    X(cudaErrorJitCompilationDisabled, 223, "jit compilation disabled")                \
    X(cudaErrorContained, 226, "contained")                                            \
    X(cudaErrorInvalidSource, 300, "invalid source")                                   \
    X(cudaErrorFileNotFound, 301, "file not found")                                    \
    X(cudaErrorSharedObjectSymbolNotFound, 302, "shared object symbol not found")      \
    X(cudaErrorSharedObjectInitFailed, 303, "shared object init failed")               \
    X(cudaErrorOperatingSystem, 304, "operating system")                               \
    X(cudaErrorInvalidResourceHandle, 400, "invalid resource handle")                  \
    X(cudaErrorIllegalState, 401, "illegal state")                                     \
    X(cudaErrorSymbolNotFound, 500, "symbol not found")                                \
    X(cudaErrorNotReady, 600, "device not ready")                                      \
    X(cudaErrorIllegalAddress, 700, "an illegal memory access was encountered")        \
    X(cudaErrorLaunchOutOfResources, 701, "too many resources requested for launch")   \
    X(cudaErrorLaunchTimeout, 702, "launch timeout")                                   \
    X(cudaErrorContextIsDestroyed, 709, "context is destroyed")                        \
    X(cudaErrorAssert, 710, "assert")                                                  \
    X(cudaErrorHardwareStackError, 714, "hardware stack error")                        \
    X(cudaErrorIllegalInstruction, 715, "illegal instruction")                         \
    X(cudaErrorMisalignedAddress, 716, "misaligned address")                           \
    X(cudaErrorInvalidAddressSpace, 717, "invalid address space")                      \
    X(cudaErrorInvalidPc, 718, "invalid pc")                                           \
    X(cudaErrorLaunchFailure, 719, "unspecified launch failure")                       \
    X(cudaErrorCooperativeLaunchTooLarge, 720, "cooperative launch too large")         \
    X(cudaErrorTensorMemoryLeak, 721, "tensor memory leak")                            \
    X(cudaErrorNotPermitted, 800, "not permitted")                                     \
    X(cudaErrorNotSupported, 801, "not supported")                                     \
    X(cudaErrorSystemNotReady, 802, "system not ready")                                \
    X(cudaErrorSystemDriverMismatch, 803, "system driver mismatch")                    \
    X(cudaErrorCompatNotSupportedOnDevice, 804, "compat not supported on device")      \
    X(cudaErrorMpsConnectionFailed, 805, "mps connection failed")                      \
    X(cudaErrorMpsRpcFailure, 806, "mps rpc failure")                                  \
    X(cudaErrorMpsServerNotReady, 807, "mps server not ready")                         \
    X(cudaErrorMpsMaxClientsReached, 808, "mps max clients reached")                   \
    X(cudaErrorMpsMaxConnectionsReached, 809, "mps max connections reached")           \
    X(cudaErrorMpsClientTerminated, 810, "mps client terminated")                      \
    X(cudaErrorStreamCaptureUnsupported, 900,                                          \
      "operation not permitted when stream is capturing")                              \
    X(cudaErrorStreamCaptureInvalidated, 901, "stream capture invalidated")            \
    X(cudaErrorStreamCaptureMerge, 902, "stream capture merge")                        \
    X(cudaErrorStreamCaptureUnmatched, 903, "stream capture unmatched")                \
    X(cudaErrorStreamCaptureUnjoined, 904, "stream capture unjoined")                  \
    X(cudaErrorStreamCaptureIsolation, 905, "stream capture isolation")                \
    X(cudaErrorStreamCaptureImplicit, 906, "stream capture implicit")                  \
    X(cudaErrorCapturedEvent, 907, "captured event")                                   \
    X(cudaErrorStreamCaptureWrongThread, 908, "stream capture wrong thread")           \
    X(cudaErrorTimeout, 909, "timeout")                                                \
    X(cudaErrorGraphExecUpdateFailure, 910, "graph exec update failure")               \
    X(cudaErrorExternalDevice, 911, "external device")                                 \
    X(cudaErrorInvalidClusterSize, 912, "invalid cluster size")                        \
    X(cudaErrorFunctionNotLoaded, 913, "function not loaded")                          \
    X(cudaErrorInvalidResourceType, 914, "invalid resource type")                      \
    X(cudaErrorInvalidResourceConfiguration, 915, "invalid resource configuration")    \
    X(cudaErrorUnknown, 999, "unknown error")

enum cudaError {
#define GPUSIM_ENUM(name, code, text) name = code,
    GPUSIM_ERRORS(GPUSIM_ENUM)
#undef GPUSIM_ENUM
};
typedef enum cudaError cudaError_t;

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef struct CUgraphNode_st *cudaGraphNode_t;
typedef struct CUmemPoolHandle_st *cudaMemPool_t;
typedef void (*cudaHostFn_t)(void *data);

/* ---- errors ---- */

const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError(void); /* of this thread; a lost device stays lost */
cudaError_t cudaPeekAtLastError(void);

/* ---- the device ---- */

typedef struct {
    char bytes[16];
} cudaUUID_t;

struct cudaDeviceProp {
    char name[256];
    cudaUUID_t uuid;
    size_t totalGlobalMem; /* GPUSIM_MEMORY, 3 GiB by default */
    size_t sharedMemPerBlock;
    int regsPerBlock;
    int warpSize;
    int maxThreadsPerBlock;
    int maxThreadsDim[3];
    int maxGridSize[3];
    size_t totalConstMem;
    int major, minor;
    int multiProcessorCount;
    int integrated;
    int canMapHostMemory;
    int concurrentKernels;
    int ECCEnabled;
    int pciBusID, pciDeviceID, pciDomainID;
    int asyncEngineCount;
    int unifiedAddressing;
    int memoryBusWidth;
    int l2CacheSize;
    int persistingL2CacheMaxSize;
    int maxThreadsPerMultiProcessor;
    int streamPrioritiesSupported;
    size_t sharedMemPerMultiprocessor;
    int regsPerMultiprocessor;
    int managedMemory;
    int cooperativeLaunch;
    size_t sharedMemPerBlockOptin;
    int maxBlocksPerMultiProcessor;
    size_t reservedSharedMemPerBlock;
    int memoryPoolsSupported;
};

enum cudaDeviceAttr {
    cudaDevAttrMaxThreadsPerBlock = 1,
    cudaDevAttrMaxBlockDimX = 2,
    cudaDevAttrMaxBlockDimY = 3,
    cudaDevAttrMaxBlockDimZ = 4,
    cudaDevAttrMaxGridDimX = 5,
    cudaDevAttrMaxGridDimY = 6,
    cudaDevAttrMaxGridDimZ = 7,
    cudaDevAttrMaxSharedMemoryPerBlock = 8,
    cudaDevAttrTotalConstantMemory = 9,
    cudaDevAttrWarpSize = 10,
    cudaDevAttrMaxRegistersPerBlock = 12,
    cudaDevAttrClockRate = 13,
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrIntegrated = 18,
    cudaDevAttrConcurrentKernels = 31,
    cudaDevAttrPciBusId = 33,
    cudaDevAttrPciDeviceId = 34,
    cudaDevAttrMemoryClockRate = 36,
    cudaDevAttrGlobalMemoryBusWidth = 37,
    cudaDevAttrL2CacheSize = 38,
    cudaDevAttrMaxThreadsPerMultiProcessor = 39,
    cudaDevAttrAsyncEngineCount = 40,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76,
    cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
    cudaDevAttrMaxRegistersPerMultiprocessor = 82,
    cudaDevAttrCooperativeLaunch = 95,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
    cudaDevAttrMaxBlocksPerMultiprocessor = 106,
    cudaDevAttrReservedSharedMemoryPerBlock = 111,
    cudaDevAttrMemoryPoolsSupported = 115
};

cudaError_t cudaGetDeviceCount(int *count); /* GPUSIM_DEVICES, 1 by default */
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device);
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device);
cudaError_t cudaDeviceGetPCIBusId(char *id, int size, int device);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
cudaError_t cudaDeviceSynchronize(void);

/* ---- memory ---- */

enum cudaMemcpyKind {
    cudaMemcpyHostToHost = 0,
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3,
    cudaMemcpyDefault = 4
};

#define cudaHostAllocDefault       0x00u
#define cudaHostAllocPortable      0x01u
#define cudaHostAllocMapped        0x02u
#define cudaHostAllocWriteCombined 0x04u

enum cudaMemAllocationType {
    cudaMemAllocationTypeInvalid = 0,
    cudaMemAllocationTypePinned = 1
};
enum cudaMemAllocationHandleType { cudaMemHandleTypeNone = 0 };
enum cudaMemLocationType {
    cudaMemLocationTypeInvalid = 0,
    cudaMemLocationTypeDevice = 1
};
struct cudaMemLocation {
    enum cudaMemLocationType type;
    int id;
};
struct cudaMemPoolProps {
    enum cudaMemAllocationType allocType;
    enum cudaMemAllocationHandleType handleTypes;
    struct cudaMemLocation location;
    void *win32SecurityAttributes;
    size_t maxSize; /* 0 = the whole card */
    unsigned short usage;
    unsigned char reserved[54];
};
enum cudaMemPoolAttr {
    cudaMemPoolReuseFollowEventDependencies = 1,   /* int; kept, and changes nothing */
    cudaMemPoolReuseAllowOpportunistic = 2,        /* int; the same */
    cudaMemPoolReuseAllowInternalDependencies = 3, /* int; the same */
    cudaMemPoolAttrReleaseThreshold = 4, /* the others: unsigned 64-bit bytes */
    cudaMemPoolAttrReservedMemCurrent = 5,
    cudaMemPoolAttrReservedMemHigh = 6,
    cudaMemPoolAttrUsedMemCurrent = 7,
    cudaMemPoolAttrUsedMemHigh = 8
};

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total);
cudaError_t cudaMalloc(void **ptr, size_t bytes);
cudaError_t cudaFree(void *ptr); /* waits for the device, and counts as a wait */
/* While STREAM is captured: cudaErrorStreamCaptureUnsupported (CUDA would record
 * it). */
cudaError_t cudaMallocAsync(void **ptr, size_t bytes, cudaStream_t stream);
cudaError_t cudaMallocFromPoolAsync(void **ptr, size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream);
cudaError_t cudaFreeAsync(void *ptr, cudaStream_t stream);
cudaError_t cudaMallocHost(void **ptr, size_t bytes);
cudaError_t cudaHostAlloc(void **ptr, size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void *ptr); /* waits for the device, as CUDA does */
cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool,
                              const struct cudaMemPoolProps *props);
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attr,
                                    void *value);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attr,
                                    void *value);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device);
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device);
cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool);
/* A host address not from cudaMallocHost is copied at the call when it is the source,
 * and waited for when it is the destination; both count as pageable_copies. A range
 * that leaves its allocation is cudaErrorInvalidValue. */
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes,
                            enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *dst, int byte, size_t bytes, cudaStream_t stream);

/* ---- streams and events ---- */

#define cudaStreamDefault      0x00u
#define cudaStreamNonBlocking  0x01u
#define cudaEventDefault       0x00u
#define cudaEventBlockingSync  0x01u
#define cudaEventDisableTiming 0x02u
#define cudaEventRecordDefault 0x00u
#define cudaEventWaitDefault   0x00u

cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags,
                                         int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream); /* what is queued still runs */
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream); /* the third in vain runs the work */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event); /* the third in vain runs the work */
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end);
/* FN runs when its turn comes, with device memory out of reach, and may call nothing
 * of this header: cudaErrorNotPermitted. */
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *data);

/* ---- capture and graphs ---- */

enum cudaStreamCaptureStatus {
    cudaStreamCaptureStatusNone = 0,
    cudaStreamCaptureStatusActive = 1,
    cudaStreamCaptureStatusInvalidated = 2
};
enum cudaStreamCaptureMode {
    cudaStreamCaptureModeGlobal = 0,
    cudaStreamCaptureModeThreadLocal = 1,
    cudaStreamCaptureModeRelaxed = 2
};
enum cudaGraphNodeType {
    cudaGraphNodeTypeKernel = 0,
    cudaGraphNodeTypeMemcpy = 1,
    cudaGraphNodeTypeMemset = 2,
    cudaGraphNodeTypeHost = 3,
    cudaGraphNodeTypeGraph = 4,
    cudaGraphNodeTypeEmpty = 5
};
enum cudaGraphExecUpdateResult {
    cudaGraphExecUpdateSuccess = 0,
    cudaGraphExecUpdateError = 1,
    cudaGraphExecUpdateErrorTopologyChanged = 2,
    cudaGraphExecUpdateErrorNodeTypeChanged = 3
};
typedef struct {
    enum cudaGraphExecUpdateResult result;
    cudaGraphNode_t errorNode;
    cudaGraphNode_t errorFromNode;
} cudaGraphExecUpdateResultInfo;
#define cudaGraphInstantiateFlagAutoFreeOnLaunch 1

/* Cross-stream forks and joins by events are recorded; the mode says which calls are
 * refused meanwhile (cudaMalloc, cudaFree, host allocation, queries and waits). */
cudaError_t cudaStreamBeginCapture(cudaStream_t stream,
                                   enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream,
                                  enum cudaStreamCaptureStatus *status);
cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode);
#ifdef __cplusplus
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                 unsigned long long flags = 0);
#else
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                 unsigned long long flags);
#endif
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo *info);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count);
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type);

/* ---- kernels ---- */

enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9
};
/* The limit holds at launch: 48 KiB before, at most sharedMemPerBlockOptin. */
cudaError_t cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute attr,
                                 int value);
/* From threads and dynamic shared memory alone: registers are not known here. */
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks,
                                                          const void *kernel,
                                                          int threads, size_t shared);

#ifdef __cplusplus
}
#endif
#include "gpusim_library.h"

#endif
