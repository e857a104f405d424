/* SPDX-License-Identifier: Apache-2.0 */
/* described_driver.c: a CUDA driver that has no device and takes every kernel: what
 * cuDNN wants of libcuda.so.1 when it compiles kernels for a device that is only
 * described. It is built under that name and loaded by t/kernels/cudnn_plans; nothing
 * can run on it. */
enum { SUCCESS = 0, NO_DEVICE = 100 };

#define REFUSES(name)                                                                  \
    int name(void);                                                                    \
    int name(void)                                                                     \
    {                                                                                  \
        return NO_DEVICE;                                                              \
    }

REFUSES(cuCtxGetCurrent)
REFUSES(cuCtxGetLimit)
REFUSES(cuCtxPopCurrent)
REFUSES(cuCtxPushCurrent)
REFUSES(cuDeviceGet)
REFUSES(cuDeviceGetCount)
REFUSES(cuDriverGetVersion)
REFUSES(cuGetErrorName)
REFUSES(cuGetErrorString)
REFUSES(cuInit)
REFUSES(cuLaunchCooperativeKernel)
REFUSES(cuLaunchKernel)
REFUSES(cuLaunchKernelEx)
REFUSES(cuLibraryLoadFromFile)
REFUSES(cuLinkAddData)
REFUSES(cuLinkComplete)
REFUSES(cuLinkCreate)
REFUSES(cuLinkDestroy)
REFUSES(cuOccupancyMaxPotentialClusterSize)
REFUSES(cuStreamGetCtx)

/* What is loaded and found: handles, which are never looked into. */
static int handle;

int cuLibraryLoadData(void **library);
int cuLibraryGetKernel(void **kernel);
int cuLibraryUnload(void *library);
int cuKernelSetAttribute(void);
int cuKernelGetAttribute(int *value);

int
cuLibraryLoadData(void **library)
{
    *library = &handle;
    return SUCCESS;
}

int
cuLibraryGetKernel(void **kernel)
{
    *kernel = &handle;
    return SUCCESS;
}

int
cuLibraryUnload(void *library)
{
    return library ? SUCCESS : NO_DEVICE;
}

int
cuKernelSetAttribute(void)
{
    return SUCCESS;
}

int
cuKernelGetAttribute(int *value)
{
    *value = 0;
    return SUCCESS;
}
