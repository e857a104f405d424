/* SPDX-License-Identifier: Apache-2.0 */
/* device.c: an NVIDIA GPU as a device: the module's table.
 *
 * Each handle has one stream that stands for NULL, a pool from which memory comes in
 * that stream's order and to which it returns without waiting, and kernels from one
 * table by op id. Streams are non-blocking ones: nothing waits for CUDA's legacy
 * default stream, and nothing is put into it. */
#include "config.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/dnn.h"
#include "kernels/cuda/rtc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct et_stream {
    struct et_device_handle *dev;
    cudaStream_t stream;
};

struct et_fence {
    struct et_device_handle *dev;
    cudaEvent_t event;
    bool set;
};

struct et_capture {
    struct et_device_handle *dev;
    cudaGraphExec_t exec;
};

static cudaStream_t
stream_of(struct et_device_handle *d, struct et_stream *s)
{
    return s ? s->stream : d->stream;
}

/* Every thread has a current GPU of its own; the loader's threads come here too. A lost
 * device answers nothing else any more. */
static et_status
enter(struct et_device_handle *d)
{
    static _Thread_local int current = -1;
    pthread_mutex_lock(&d->lock);
    et_status lost = d->lost;
    pthread_mutex_unlock(&d->lock);
    ET_TRY(lost);
    if (current == d->index)
        return ET_OK;
    ETK_TRY_CUDA(d, cudaSetDevice(d->index));
    current = d->index;
    return ET_OK;
}

/* ---- opening ---- */

static etk_prepare_fn *const kernels[ET_OP_COUNT] = {
#define ETK_ROW(op, prepare) [ET_OP_##op] = prepare,
#include "kernels/cuda/kernels.def"
#undef ETK_ROW
};

static et_status
read_gpu(struct et_device_handle *d)
{
    struct cudaDeviceProp p;
    ETK_TRY_CUDA(d, cudaGetDeviceProperties(&p, d->index));
    snprintf(d->gpu.name, sizeof d->gpu.name, "%.*s", (int)sizeof d->gpu.name - 1,
             p.name);
    d->gpu.sm_count = p.multiProcessorCount;
    d->gpu.major = p.major;
    d->gpu.minor = p.minor;
    d->gpu.memory = p.totalGlobalMem;
    d->gpu.l2 = (size_t)p.l2CacheSize;
    d->gpu.shared = p.sharedMemPerBlockOptin;
    ETK_TRY_CUDA(d, cudaDriverGetVersion(&d->gpu.driver));
    ETK_TRY_CUDA(d, cudaRuntimeGetVersion(&d->gpu.runtime));
    return ET_OK;
}

/* The pool keeps what was freed: the next step asks for the same again. */
static et_status
open_pool(struct et_device_handle *d)
{
    struct cudaMemPoolProps props;
    memset(&props, 0, sizeof props);
    props.allocType = cudaMemAllocationTypePinned; /* the only kind there is */
    props.location.type = cudaMemLocationTypeDevice;
    props.location.id = d->index;
    ETK_TRY_CUDA(d, cudaMemPoolCreate(&d->pool, &props));
    uint64_t keep = UINT64_MAX;
    ETK_TRY_CUDA(
        d, cudaMemPoolSetAttribute(d->pool, cudaMemPoolAttrReleaseThreshold, &keep));
    return ET_OK;
}

static et_status
start(struct et_device_handle *d)
{
    int count = 0;
    ETK_TRY_CUDA(d, cudaGetDeviceCount(&count));
    if (d->index < 0 || d->index >= count) {
        snprintf(d->why, sizeof d->why, "GPU %d was asked for; there are %d, from 0 on",
                 d->index, count);
        return ET_EINVAL;
    }
    ET_TRY(enter(d));
    ET_TRY(read_gpu(d));
    if (d->gpu.major < 8) {
        snprintf(d->why, sizeof d->why,
                 "%s has compute capability %d.%d; 8.0 (Ampere) or later is needed",
                 d->gpu.name, d->gpu.major, d->gpu.minor);
        return ET_ENOTSUP;
    }
    ETK_TRY_CUDA(d, cudaStreamCreateWithFlags(&d->stream, cudaStreamNonBlocking));
    return open_pool(d);
}

static void
cuda_close(struct et_device_handle *d)
{
    /* Failures while closing have nobody to go to. */
    if (d->stream)
        (void)cudaStreamSynchronize(d->stream);
    etk_blas_close(d);
    etk_dnn_close(d);
    etk_rtc_close(d);
    etk_nvml_close(d);
    if (d->pool)
        (void)cudaMemPoolDestroy(d->pool);
    if (d->stream)
        (void)cudaStreamDestroy(d->stream);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

static et_status
cuda_open(int index, int threads, struct et_device_handle **out, char *why,
          size_t why_size)
{
    (void)threads;
    struct et_device_handle *d = calloc(1, sizeof *d);
    if (!d)
        return ET_ENOMEM;
    d->index = index;
    pthread_mutex_init(&d->lock, NULL);
    et_status status = start(d);
    if (status != ET_OK) {
        snprintf(why, why_size, "%s", d->why);
        cuda_close(d);
        return status;
    }
    *out = d;
    return ET_OK;
}

static void
cuda_info(struct et_device_handle *d, struct et_device_info *info)
{
    memset(info, 0, sizeof *info);
    memcpy(info->name, d->gpu.name, sizeof info->name);
    snprintf(info->library, sizeof info->library,
             "CUDA %d.%d, driver for %d.%d, sm_%d%d", d->gpu.runtime / 1000,
             d->gpu.runtime % 1000 / 10, d->gpu.driver / 1000,
             d->gpu.driver % 1000 / 10, d->gpu.major, d->gpu.minor);
    info->memory_bytes = d->gpu.memory;
    info->host_memory = false;
    info->fast = ET_BF16; /* from compute capability 8.0 on, which is asked for */
}

static et_status
cuda_set(struct et_device_handle *d, enum et_device_option option, int value)
{
    switch (option) {
    case ET_DEVICE_TF32:
        d->tf32 = value != 0;
        return ET_OK;
    case ET_DEVICE_DETERMINISTIC:
        d->deterministic = value != 0;
        return ET_OK;
    }
    return ET_ENOTSUP;
}

/* ---- memory ---- */

/* Blocks freed in stream order are the pool's only once the stream is there; what it
 * keeps in pieces that do not fit goes back to the driver, which makes one piece. */
static cudaError_t
alloc_again(struct et_device_handle *d, size_t bytes, void **out)
{
    (void)cudaGetLastError();
    d->retries++;
    cudaError_t code = cudaStreamSynchronize(d->stream);
    if (code == cudaSuccess)
        code = cudaMemPoolTrimTo(d->pool, 0);
    if (code == cudaSuccess)
        code = cudaMallocFromPoolAsync(out, bytes, d->pool, d->stream);
    (void)cudaGetLastError();
    return code;
}

static et_status
cuda_alloc(struct et_device_handle *d, size_t bytes, void **out)
{
    *out = NULL;
    bytes = bytes ? bytes : 1;
    ET_TRY(enter(d));
    cudaError_t code = cudaMallocFromPoolAsync(out, bytes, d->pool, d->stream);
    if (code == cudaErrorMemoryAllocation)
        code = alloc_again(d, bytes, out);
    return code == cudaSuccess ? ET_OK
                               : etk_fail(d, ETK_CUDA, (int)code, "allocating memory");
}

static void
cuda_free(struct et_device_handle *d, void *block, size_t bytes)
{
    (void)bytes;
    if (block && enter(d) == ET_OK)
        (void)cudaFreeAsync(block, d->stream);
}

static et_status
cuda_host_alloc(struct et_device_handle *d, size_t bytes, void **out)
{
    *out = NULL;
    ET_TRY(enter(d));
    ETK_TRY_CUDA(d, cudaHostAlloc(out, bytes ? bytes : 1, cudaHostAllocDefault));
    return ET_OK;
}

static void
cuda_host_free(struct et_device_handle *d, void *block)
{
    if (block && enter(d) == ET_OK)
        (void)cudaFreeHost(block);
}

/* The pool takes memory from the driver in pieces of this (the granularity that
 * cuMemGetAllocationGranularity names on every GPU so far). */
enum { PIECE = 2 << 20 };

/* What the pool keeps unused can be given again too. */
static et_status
cuda_memory_free(struct et_device_handle *d, size_t *bytes)
{
    size_t total;
    uint64_t reserved, used;
    *bytes = 0;
    ET_TRY(enter(d));
    ETK_TRY_CUDA(d, cudaMemGetInfo(bytes, &total));
    ETK_TRY_CUDA(d, cudaMemPoolGetAttribute(d->pool, cudaMemPoolAttrReservedMemCurrent,
                                            &reserved));
    ETK_TRY_CUDA(
        d, cudaMemPoolGetAttribute(d->pool, cudaMemPoolAttrUsedMemCurrent, &used));
    *bytes = *bytes / PIECE * PIECE + (size_t)(reserved - used);
    return ET_OK;
}

static et_status
cuda_pool(struct et_device_handle *d, struct et_device_pool *out)
{
    uint64_t v[4];
    static const enum cudaMemPoolAttr attributes[] = {
        cudaMemPoolAttrUsedMemCurrent,
        cudaMemPoolAttrUsedMemHigh,
        cudaMemPoolAttrReservedMemCurrent,
        cudaMemPoolAttrReservedMemHigh,
    };
    ET_TRY(enter(d));
    for (int i = 0; i < 4; i++)
        ETK_TRY_CUDA(d, cudaMemPoolGetAttribute(d->pool, attributes[i], &v[i]));
    *out = (struct et_device_pool){
        .used = (size_t)v[0],
        .peak_used = (size_t)v[1],
        .reserved = (size_t)v[2],
        .peak_reserved = (size_t)v[3],
        .retries = d->retries,
    };
    return ET_OK;
}

static et_status
cuda_copy(struct et_device_handle *d, void *dst, const void *src, size_t bytes,
          struct et_stream *stream)
{
    ET_TRY(enter(d));
    if (bytes > 0)
        ETK_TRY_CUDA(d, cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault,
                                        stream_of(d, stream)));
    return ET_OK;
}

static et_status
cuda_fill(struct et_device_handle *d, void *dst, int byte, size_t bytes,
          struct et_stream *stream)
{
    ET_TRY(enter(d));
    if (bytes > 0)
        ETK_TRY_CUDA(d, cudaMemsetAsync(dst, byte, bytes, stream_of(d, stream)));
    return ET_OK;
}

/* ---- kernels ---- */

void *
etk_new(size_t size)
{
    return calloc(1, size);
}

static et_status
run_nothing(struct et_kernel *k, void *const *ptr, void *ws, cudaStream_t stream)
{
    (void)k;
    (void)ptr;
    (void)ws;
    (void)stream;
    return ET_OK;
}

static et_status
prepare_nothing(struct et_kernel **out)
{
    struct et_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    k->run = run_nothing;
    snprintf(k->what, sizeof k->what, "nothing");
    *out = k;
    return ET_OK;
}

/* No result has an element. */
static bool
is_empty(const struct et_call *call)
{
    for (int i = 0; i < call->n_out; i++)
        if (call->out[i].dtype != ET_NONE && et_desc_count(&call->out[i]) > 0)
            return false;
    return true;
}

et_status
etk_prepare(struct et_device_handle *d, const struct et_call *call,
            struct et_kernel **out, size_t *workspace, char *why, size_t why_size)
{
    *out = NULL;
    *workspace = 0;
    ET_TRY(enter(d));
    if (call->op < 0 || call->op >= ET_OP_COUNT || !kernels[call->op])
        return etk_refuse(why, why_size, "the CUDA module has no kernel for op %d",
                          (int)call->op);
    if (is_empty(call)) {
        ET_TRY(prepare_nothing(out));
    } else {
        et_status status = kernels[call->op](d, call, out, workspace, why, why_size);
        if (status != ET_OK && !why[0])
            snprintf(why, why_size, "%s", etk_why(d));
        ET_TRY(status);
    }
    (*out)->dev = d;
    return ET_OK;
}

void
etk_release(struct et_kernel *k)
{
    if (!k)
        return;
    if (k->release)
        k->release(k);
    free(k);
}

static et_status
cuda_run(struct et_kernel *k, void *const *ptr, void *workspace,
         struct et_stream *stream)
{
    ET_TRY(enter(k->dev));
    return k->run(k, ptr, workspace, stream_of(k->dev, stream));
}

static const char *
cuda_describe(const struct et_kernel *k)
{
    return k->what;
}

/* ---- streams ---- */

static et_status
cuda_stream_new(struct et_device_handle *d, struct et_stream **out)
{
    *out = NULL;
    ET_TRY(enter(d));
    struct et_stream *s = calloc(1, sizeof *s);
    if (!s)
        return ET_ENOMEM;
    s->dev = d;
    cudaError_t code = cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking);
    if (code != cudaSuccess) {
        free(s);
        return etk_fail(d, ETK_CUDA, (int)code, "cudaStreamCreateWithFlags");
    }
    *out = s;
    return ET_OK;
}

static void
cuda_stream_free(struct et_stream *s)
{
    if (!s)
        return;
    if (enter(s->dev) == ET_OK)
        (void)cudaStreamDestroy(s->stream);
    free(s);
}

static et_status
cuda_sync(struct et_device_handle *d, struct et_stream *stream)
{
    ET_TRY(enter(d));
    ETK_TRY_CUDA(d, cudaStreamSynchronize(stream_of(d, stream)));
    return ET_OK;
}

/* ---- capture ---- */

/* Another thread's queries must not break it: thread-local. */
static et_status
cuda_capture_begin(struct et_device_handle *d, struct et_stream *s)
{
    ET_TRY(enter(d));
    ETK_TRY_CUDA(
        d, cudaStreamBeginCapture(stream_of(d, s), cudaStreamCaptureModeThreadLocal));
    d->capturing++;
    return ET_OK;
}

static et_status
cuda_capture_end(struct et_device_handle *d, struct et_stream *s,
                 struct et_capture **out)
{
    cudaGraph_t graph = NULL;
    *out = NULL;
    d->capturing--;
    ET_TRY(enter(d));
    ETK_TRY_CUDA(d, cudaStreamEndCapture(stream_of(d, s), &graph));
    struct et_capture *c = calloc(1, sizeof *c);
    if (!c) {
        (void)cudaGraphDestroy(graph);
        return ET_ENOMEM;
    }
    c->dev = d;
    cudaError_t code = cudaGraphInstantiate(&c->exec, graph, 0);
    (void)cudaGraphDestroy(graph);
    if (code == cudaSuccess)
        code = cudaGraphUpload(c->exec, stream_of(d, s));
    if (code != cudaSuccess) {
        if (c->exec)
            (void)cudaGraphExecDestroy(c->exec);
        free(c);
        return etk_fail(d, ETK_CUDA, (int)code, "cudaGraphInstantiate");
    }
    *out = c;
    return ET_OK;
}

static et_status
cuda_replay(struct et_capture *c, struct et_stream *s)
{
    ET_TRY(enter(c->dev));
    ETK_TRY_CUDA(c->dev, cudaGraphLaunch(c->exec, stream_of(c->dev, s)));
    return ET_OK;
}

static void
cuda_capture_free(struct et_capture *c)
{
    if (!c)
        return;
    if (enter(c->dev) == ET_OK)
        (void)cudaGraphExecDestroy(c->exec);
    free(c);
}

/* ---- fences ---- */

static et_status
cuda_fence_new(struct et_device_handle *d, struct et_fence **out)
{
    *out = NULL;
    ET_TRY(enter(d));
    struct et_fence *f = calloc(1, sizeof *f);
    if (!f)
        return ET_ENOMEM;
    f->dev = d;
    cudaError_t code = cudaEventCreateWithFlags(&f->event, cudaEventDisableTiming);
    if (code != cudaSuccess) {
        free(f);
        return etk_fail(d, ETK_CUDA, (int)code, "cudaEventCreateWithFlags");
    }
    *out = f;
    return ET_OK;
}

static void
cuda_fence_free(struct et_fence *f)
{
    if (!f)
        return;
    if (enter(f->dev) == ET_OK)
        (void)cudaEventDestroy(f->event);
    free(f);
}

static et_status
cuda_fence_set(struct et_fence *f, struct et_stream *s)
{
    ET_TRY(enter(f->dev));
    ETK_TRY_CUDA(f->dev, cudaEventRecord(f->event, stream_of(f->dev, s)));
    f->set = true;
    return ET_OK;
}

static et_status
cuda_fence_passed(struct et_fence *f, bool *out)
{
    *out = true;
    if (!f->set)
        return ET_OK;
    ET_TRY(enter(f->dev));
    cudaError_t code = cudaEventQuery(f->event);
    *out = code == cudaSuccess;
    if (code == cudaErrorNotReady) {
        (void)cudaGetLastError(); /* no error to us, but kept as one: etk_fail */
        return ET_OK;
    }
    if (code == cudaSuccess)
        return ET_OK;
    return etk_fail(f->dev, ETK_CUDA, (int)code, "cudaEventQuery");
}

static et_status
cuda_fence_wait(struct et_fence *f)
{
    if (!f->set)
        return ET_OK;
    ET_TRY(enter(f->dev));
    ETK_TRY_CUDA(f->dev, cudaEventSynchronize(f->event));
    return ET_OK;
}

static et_status
cuda_stream_wait(struct et_stream *s, struct et_fence *f)
{
    if (!f->set)
        return ET_OK;
    ET_TRY(enter(f->dev));
    ETK_TRY_CUDA(f->dev, cudaStreamWaitEvent(stream_of(f->dev, s), f->event, 0));
    return ET_OK;
}

const struct et_device_table *
et_device_module(void)
{
    static const struct et_device_table table = {
        .abi = ET_DEVICE_ABI,
        .size = sizeof table,
        .name = ETK_CUDA_NAME,
        .epilogues = (1u << ET_EPILOGUES) - 1,
        /* 16 bytes are what tensor cores are fed by, 128 a line of the cache. */
        .aligned_columns = 64,
        .open = cuda_open,
        .close = cuda_close,
        .info = cuda_info,
        .alloc = cuda_alloc,
        .free = cuda_free,
        .copy = cuda_copy,
        .fill = cuda_fill,
        .prepare = etk_prepare,
        .release = etk_release,
        .run = cuda_run,
        .describe = cuda_describe,
        .stream_new = cuda_stream_new,
        .stream_free = cuda_stream_free,
        .sync = cuda_sync,
        .capture_begin = cuda_capture_begin,
        .capture_end = cuda_capture_end,
        .replay = cuda_replay,
        .capture_free = cuda_capture_free,
        .fence_new = cuda_fence_new,
        .fence_free = cuda_fence_free,
        .fence_set = cuda_fence_set,
        .fence_passed = cuda_fence_passed,
        .fence_wait = cuda_fence_wait,
        .stream_wait = cuda_stream_wait,
        .host_alloc = cuda_host_alloc,
        .host_free = cuda_host_free,
        .memory_free = cuda_memory_free,
        .pool = cuda_pool,
        .sensors = etk_nvml_read,
        .peak = etk_peak,
        .set = cuda_set,
        .why = etk_why,
    };
    return &table;
}
