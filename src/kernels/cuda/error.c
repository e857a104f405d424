/* SPDX-License-Identifier: Apache-2.0 */
/* error.c: what a library's status means, one table per library.
 *
 * The tables hold numbers, because a library is opened only when a kernel needs it and
 * each counts its own; the names are those of the libraries' headers. What no table
 * lists is a bug of ours: ET_EINTERNAL. */
#include "kernels/cuda/cuda.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct row {
    int code;
    et_status status;
    const char *name;
    const char *advice; /* for people; NULL: the name says it */
};

#define GONE  "the GPU or its driver has given up this process; start again"
#define FAULT "a kernel failed; this is a bug in etude, or a fault of the GPU"

/* CUDA runtime 13.0, driver_types.h. */
static const struct row cuda_rows[] = {
    {1, ET_EINTERNAL, "cudaErrorInvalidValue", NULL},
    {2, ET_ENOMEM, "cudaErrorMemoryAllocation", NULL},
    {3, ET_EDEVICE, "cudaErrorInitializationError", "the driver did not start"},
    {4, ET_EDEVICE, "cudaErrorCudartUnloading", "the process is ending"},
    {9, ET_EINTERNAL, "cudaErrorInvalidConfiguration", NULL},
    {34, ET_ENOTSUP, "cudaErrorStubLibrary", "libcuda.so.1 is a stub, not a driver"},
    {35, ET_ENOTSUP, "cudaErrorInsufficientDriver",
     "the driver is older than this CUDA; update the NVIDIA driver"},
    {36, ET_ENOTSUP, "cudaErrorCallRequiresNewerDriver", "update the NVIDIA driver"},
    {46, ET_EDEVICE, "cudaErrorDevicesUnavailable", "another process holds the GPU"},
    {98, ET_EINTERNAL, "cudaErrorInvalidDeviceFunction", NULL},
    {100, ET_ENOTSUP, "cudaErrorNoDevice", "the driver answers and sees no GPU"},
    {101, ET_EINVAL, "cudaErrorInvalidDevice", "there is no GPU of this number"},
    {209, ET_ENOTSUP, "cudaErrorNoKernelImageForDevice",
     "etude was built for compute capability 8.0 and later"},
    {214, ET_EDEVICE, "cudaErrorECCUncorrectable", "the GPU's memory has failed"},
    {218, ET_EINTERNAL, "cudaErrorInvalidPtx", NULL},
    {219, ET_EDEVICE, "cudaErrorInvalidGraphicsContext", NULL},
    {220, ET_EDEVICE, "cudaErrorNvlinkUncorrectable", "NVLink has failed"},
    {222, ET_ENOTSUP, "cudaErrorUnsupportedPtxVersion", "update the NVIDIA driver"},
    {300, ET_EINTERNAL, "cudaErrorInvalidSource", NULL},
    {400, ET_EINTERNAL, "cudaErrorInvalidResourceHandle", NULL},
    {600, ET_EINTERNAL, "cudaErrorNotReady", NULL},
    {700, ET_EDEVICE, "cudaErrorIllegalAddress", FAULT},
    {701, ET_EINTERNAL, "cudaErrorLaunchOutOfResources", NULL},
    {702, ET_EDEVICE, "cudaErrorLaunchTimeout", "a display's watchdog ended a kernel"},
    {709, ET_EDEVICE, "cudaErrorContextIsDestroyed", GONE},
    {710, ET_EDEVICE, "cudaErrorAssert", FAULT},
    {714, ET_EDEVICE, "cudaErrorHardwareStackError", FAULT},
    {715, ET_EDEVICE, "cudaErrorIllegalInstruction", FAULT},
    {716, ET_EDEVICE, "cudaErrorMisalignedAddress", FAULT},
    {717, ET_EDEVICE, "cudaErrorInvalidAddressSpace", FAULT},
    {718, ET_EDEVICE, "cudaErrorInvalidPc", FAULT},
    {719, ET_EDEVICE, "cudaErrorLaunchFailure", FAULT},
    {721, ET_EDEVICE, "cudaErrorTensorMemoryLeak", FAULT},
    {801, ET_ENOTSUP, "cudaErrorNotSupported", NULL},
    {802, ET_EDEVICE, "cudaErrorSystemNotReady", "the NVIDIA fabric manager is not up"},
    {803, ET_ENOTSUP, "cudaErrorSystemDriverMismatch", "update the NVIDIA driver"},
    {804, ET_ENOTSUP, "cudaErrorCompatNotSupportedOnDevice",
     "update the NVIDIA driver"},
    {900, ET_EINTERNAL, "cudaErrorStreamCaptureUnsupported", NULL},
    {901, ET_EINTERNAL, "cudaErrorStreamCaptureInvalidated", NULL},
    {905, ET_EINTERNAL, "cudaErrorStreamCaptureImplicit", NULL},
    {906, ET_EINTERNAL, "cudaErrorCapturedEvent", NULL},
    {910, ET_EINTERNAL, "cudaErrorGraphExecUpdateFailure", NULL},
    {999, ET_EDEVICE, "cudaErrorUnknown", GONE},
};

/* cublas_api.h, cublasStatus_t. */
static const struct row blas_rows[] = {
    {1, ET_EDEVICE, "CUBLAS_STATUS_NOT_INITIALIZED", "cuBLASLt did not start"},
    {3, ET_ENOMEM, "CUBLAS_STATUS_ALLOC_FAILED", NULL},
    {7, ET_EINTERNAL, "CUBLAS_STATUS_INVALID_VALUE", NULL},
    {8, ET_ENOTSUP, "CUBLAS_STATUS_ARCH_MISMATCH", "the GPU is too old"},
    {11, ET_EDEVICE, "CUBLAS_STATUS_MAPPING_ERROR", GONE},
    {13, ET_EDEVICE, "CUBLAS_STATUS_EXECUTION_FAILED", FAULT},
    {14, ET_EINTERNAL, "CUBLAS_STATUS_INTERNAL_ERROR", NULL},
    {15, ET_ENOTSUP, "CUBLAS_STATUS_NOT_SUPPORTED", NULL},
    {16, ET_ENOTSUP, "CUBLAS_STATUS_LICENSE_ERROR", NULL},
};

/* cudnn_graph.h, cudnnStatus_t of version 9: thousands are classes. */
static const struct row dnn_rows[] = {
    {1001, ET_EDEVICE, "CUDNN_STATUS_NOT_INITIALIZED", "cuDNN did not start"},
    {1002, ET_ENOTSUP, "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH",
     "parts of several versions of cuDNN are installed"},
    {1003, ET_ENOTSUP, "CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH", NULL},
    {1005, ET_ENOTSUP, "CUDNN_STATUS_LICENSE_ERROR", NULL},
    {1008, ET_ENOTSUP, "CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED",
     "a part of cuDNN is missing"},
    {2000, ET_EINTERNAL, "CUDNN_STATUS_BAD_PARAM", NULL},
    {3000, ET_ENOTSUP, "CUDNN_STATUS_NOT_SUPPORTED", NULL},
    {4000, ET_EINTERNAL, "CUDNN_STATUS_INTERNAL_ERROR", NULL},
    {4003, ET_ENOMEM, "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED", NULL},
    {4004, ET_ENOMEM, "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED", NULL},
    {5000, ET_EDEVICE, "CUDNN_STATUS_EXECUTION_FAILED", FAULT},
};

/* nvrtc.h, nvrtcResult. */
static const struct row rtc_rows[] = {
    {1, ET_ENOMEM, "NVRTC_ERROR_OUT_OF_MEMORY", NULL},
    {2, ET_ENOTSUP, "NVRTC_ERROR_PROGRAM_CREATION_FAILURE", NULL},
    {5, ET_ENOTSUP, "NVRTC_ERROR_INVALID_OPTION", "this NVRTC does not know the GPU"},
    {6, ET_EINTERNAL, "NVRTC_ERROR_COMPILATION", NULL},
    {7, ET_ENOTSUP, "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
     "libnvrtc-builtins is missing or of another version"},
};

/* nvml.h, nvmlReturn_t. */
static const struct row nvml_rows[] = {
    {1, ET_EINTERNAL, "NVML_ERROR_UNINITIALIZED", NULL},
    {2, ET_EINTERNAL, "NVML_ERROR_INVALID_ARGUMENT", NULL},
    {3, ET_ENOTSUP, "NVML_ERROR_NOT_SUPPORTED", NULL},
    {4, ET_ENOTSUP, "NVML_ERROR_NO_PERMISSION", NULL},
    {6, ET_ENOENT, "NVML_ERROR_NOT_FOUND", NULL},
    {9, ET_ENOTSUP, "NVML_ERROR_DRIVER_NOT_LOADED", NULL},
    {12, ET_ENOTSUP, "NVML_ERROR_LIBRARY_NOT_FOUND", NULL},
    {15, ET_EDEVICE, "NVML_ERROR_GPU_IS_LOST", GONE},
    {16, ET_EDEVICE, "NVML_ERROR_RESET_REQUIRED", GONE},
    {18, ET_ENOTSUP, "NVML_ERROR_LIB_RM_VERSION_MISMATCH",
     "the driver was updated while it ran; restart the machine"},
};

#define TABLE(rows)                                                                    \
    {                                                                                  \
        rows, sizeof(rows) / sizeof(rows)[0]                                           \
    }
static const struct {
    const struct row *row;
    size_t n;
} tables[ETK_LIBRARIES] = {
    [ETK_CUDA] = TABLE(cuda_rows), [ETK_BLAS] = TABLE(blas_rows),
    [ETK_DNN] = TABLE(dnn_rows),   [ETK_RTC] = TABLE(rtc_rows),
    [ETK_NVML] = TABLE(nvml_rows),
};

static const struct row *
find(enum etk_library library, int code)
{
    for (size_t i = 0; i < tables[library].n; i++)
        if (tables[library].row[i].code == code)
            return &tables[library].row[i];
    /* cuDNN's statuses that are not listed belong to the class of their thousand. */
    if (library == ETK_DNN && code % 1000 != 0)
        return find(library, code / 1000 * 1000);
    return NULL;
}

et_status
etk_classify(enum etk_library library, int code)
{
    const struct row *row = code ? find(library, code) : NULL;
    return code == 0 ? ET_OK : row ? row->status : ET_EINTERNAL;
}

/* A library that cannot run one of its algorithms answers as it does when the GPU is
 * gone. Of the latter the runtime keeps an error for good: it is asked where somebody
 * waits for the algorithm anyway. */
static bool
is_gpu_there(struct et_device_handle *d, enum etk_library library)
{
    return d->on_trial && library != ETK_CUDA &&
           cudaStreamSynchronize(d->stream) == cudaSuccess;
}

et_status
etk_fail(struct et_device_handle *d, enum etk_library library, int code,
         const char *what)
{
    et_status status = etk_classify(library, code);
    if (status == ET_OK)
        return status;
    /* The runtime keeps it for this thread, where the next library would take it for a
     * failure of its own launch. */
    (void)cudaGetLastError();
    if (!d)
        return status;
    if (status == ET_EDEVICE && is_gpu_there(d, library))
        status = ET_ENOTSUP;
    const struct row *row = find(library, code);
    pthread_mutex_lock(&d->lock);
    snprintf(d->why, sizeof d->why, "%.100s: %s (%d)%s%s", what,
             row ? row->name : "unknown status", code, row && row->advice ? ": " : "",
             row && row->advice ? row->advice : "");
    if (status == ET_EDEVICE)
        d->lost = status;
    pthread_mutex_unlock(&d->lock);
    return status;
}

void
etk_note(struct et_device_handle *d, const char *why)
{
    pthread_mutex_lock(&d->lock);
    snprintf(d->why, sizeof d->why, "%s", why);
    pthread_mutex_unlock(&d->lock);
}

const char *
etk_why(struct et_device_handle *d)
{
    static _Thread_local char copy[sizeof d->why];
    pthread_mutex_lock(&d->lock);
    memcpy(copy, d->why, sizeof copy);
    pthread_mutex_unlock(&d->lock);
    return copy;
}

et_status
etk_refuse(char *why, size_t why_size, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, why_size, fmt, args);
    va_end(args);
    return ET_ENOTSUP;
}
