/* SPDX-License-Identifier: Apache-2.0 */
/* cuda.h: what the C files of the CUDA module share.
 *
 * A family of ops is <family>.c and <family>.cu, with <family>.h between them: the C
 * file settles everything when a kernel is prepared (dtypes, strides, tiles, grids, the
 * library's plan) into a struct that begins with struct et_kernel; the .cu file has the
 * kernels and one launcher each, extern "C", which takes plain data and a stream and
 * only launches. Rows of kernels.def say which function prepares which op.
 *
 * run may be recorded into a graph and replayed: it neither allocates, waits, nor reads
 * device memory, and everything that it passes by value is settled at prepare.
 *
 * All of it is compiled twice: with nvcc and CUDA's headers for a GPU, and with the
 * host's compiler and t/gpusim/include for the simulator, on which the tests run. */
#ifndef ETUDE_KERNELS_CUDA_H
#define ETUDE_KERNELS_CUDA_H

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "etude/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The module's name: "cuda", or the simulator's. */
#ifdef ETK_SIM
#define ETK_CUDA_NAME "gpusim"
#else
#define ETK_CUDA_NAME "cuda"
#endif

enum { ETK_ALIGN = 256 }; /* of every block of memory, and of parts of a workspace */

struct et_kernel {
    /* PTR: inputs, then outputs, NULL where left out. WS: ETK_ALIGN-aligned. */
    et_status (*run)(struct et_kernel *, void *const *ptr, void *ws, cudaStream_t);
    void (*release)(struct et_kernel *); /* what the struct holds; NULL = nothing */
    struct et_device_handle *dev;        /* set by the device */
    char what[64];                       /* for describe */
};

/* Prepares one kernel of a family; ENOTSUP with a sentence where it cannot. */
typedef et_status etk_prepare_fn(struct et_device_handle *, const struct et_call *,
                                 struct et_kernel **out, size_t *ws, char *why,
                                 size_t why_size);

/* What the choice of kernels depends on, as the driver tells it. */
struct etk_gpu {
    char name[128];
    int sm_count;        /* multiprocessors */
    int major, minor;    /* compute capability: 9.0 = Hopper */
    size_t memory;       /* bytes of the whole card */
    size_t l2;           /* bytes of the second-level cache */
    size_t shared;       /* bytes of shared memory that a block may ask for */
    int driver, runtime; /* versions: 13000 = 13.0 */
};

struct etk_blas; /* blas.c: cuBLASLt's handle and the cache of what was timed */
struct etk_dnn;  /* dnn.c: cuDNN's handle and its plans */
struct etk_rtc;  /* rtc.c: kernels compiled at run time */
struct etk_nvml; /* nvml.c: the GPU's sensors */

struct et_device_handle {
    int index;
    struct etk_gpu gpu;
    cudaStream_t stream; /* what NULL means to the table */
    cudaMemPool_t pool;
    bool tf32, deterministic;
    int capturing; /* streams being recorded: nothing may be timed meanwhile */
    bool on_trial; /* an algorithm is being timed: that it fails is its own affair */
    /* Opened by the first kernel that needs them, NULL before; each has a close
     * function that device.c calls. */
    struct etk_blas *blas;
    struct etk_dnn *dnn;
    struct etk_rtc *rtc;
    struct etk_nvml *nvml;
    uint64_t retries;     /* allocations for which the pool was emptied */
    pthread_mutex_t lock; /* of what follows: the loader's threads fail too */
    et_status lost;       /* ET_EDEVICE once a fault has made the context useless */
    char why[256];        /* the last failure, for the table's why */
};

/* ---- errors (error.c) ---- */

/* Which library a status comes from. */
enum etk_library { ETK_CUDA, ETK_BLAS, ETK_DNN, ETK_RTC, ETK_NVML, ETK_LIBRARIES };

/* What CODE of LIBRARY means to the caller. ET_OK for success. One table per library:
 * codes that are not in it are ET_EINTERNAL. */
ET_NODISCARD et_status etk_classify(enum etk_library library, int code);
/* The same, and notes "WHAT: <name of the code>: <what to do>" in the handle. Marks the
 * device lost where the code says that nothing more can run on it; where a library says
 * so of an algorithm on trial, and the GPU is well, it is ET_ENOTSUP. D may be NULL. */
ET_NODISCARD et_status etk_fail(struct et_device_handle *d, enum etk_library library,
                                int code, const char *what);
/* A check costs one comparison where all is well. */
#define ETK_TRY_CUDA(d, call)                                                          \
    do {                                                                               \
        cudaError_t etk_code_ = (call);                                                \
        if (etk_code_ != cudaSuccess)                                                  \
            return etk_fail(d, ETK_CUDA, (int)etk_code_, #call);                       \
    } while (0)
/* A launcher's result as that of run. */
ET_NODISCARD static inline et_status
etk_launched(const struct et_kernel *k, cudaError_t code)
{
    return code == cudaSuccess ? ET_OK : etk_fail(k->dev, ETK_CUDA, (int)code, k->what);
}
/* Notes WHY in the handle: what another than a library says. */
void etk_note(struct et_device_handle *d, const char *why);
/* The last failure, in a sentence; "" if there was none. A copy: until the thread's
 * next call. */
const char *etk_why(struct et_device_handle *d);
/* ET_ENOTSUP, with a sentence in WHY. */
et_status etk_refuse(char *why, size_t why_size, const char *fmt, ...) ET_PRINTF(3, 4);

/* ---- kernels (device.c) ---- */

/* Prepares any op of kernels.def, and frees what was prepared; NULL is allowed. For
 * families that are made of others. */
etk_prepare_fn etk_prepare;
void etk_release(struct et_kernel *);
/* A zeroed kernel of SIZE bytes (>= sizeof(struct et_kernel)); NULL when out of
 * memory. */
void *etk_new(size_t size);

#define ETK_ROW(op, prepare) etk_prepare_fn prepare;
#include "kernels/cuda/kernels.def"
#undef ETK_ROW

/* What closes what the kernels opened; nothing where they did not. */
void etk_blas_close(struct et_device_handle *d);

/* ---- what it can do at most (peak.c) ---- */

void etk_peak(struct et_device_handle *d, struct et_device_peak *out);

/* ---- sensors (nvml.c) ---- */

/* The table's sensors. */
ET_NODISCARD et_status etk_nvml_read(struct et_device_handle *d,
                                     struct et_device_sensors *s);
void etk_nvml_close(struct et_device_handle *d);

/* ---- sizes ---- */

static inline size_t
etk_round_up(size_t bytes)
{
    return (bytes + ETK_ALIGN - 1) & ~(size_t)(ETK_ALIGN - 1);
}

static inline int64_t
etk_ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* ---- copies between strided arrays (strides.c) ---- */

/* The axes of up to ETK_SIDES arrays of one shape, for kernels that walk them together:
 * sorted by the first array's strides, axes of length 1 gone, neighbours merged where
 * all arrays run on. A dense walk has ndim 1 and strides 1. */
enum { ETK_SIDES = ET_FUSED_MAX_IN + ET_FUSED_MAX_OUT };
struct etk_walk {
    int ndim, sides;
    int64_t count;                          /* elements */
    int64_t shape[ET_MAX_DIMS];             /* slowest axis first */
    int64_t stride[ETK_SIDES][ET_MAX_DIMS]; /* in elements; 0 repeats */
};
/* SIDE[0] has the full shape; the others broadcast to it (right-aligned). */
void etk_walk_init(struct etk_walk *w, const struct et_desc *const *side, int sides);

#ifdef __cplusplus
}
#endif
#endif
