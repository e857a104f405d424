/* SPDX-License-Identifier: Apache-2.0 */
/* device.h: what a device module gives the engine: for who writes one. Of what programs
 * use it has struct et_device_info and the enumerations.
 *
 * A device is a shared library with one exported function, et_device_module, that
 * returns this table. The program links none: libetude-cpu.so is loaded after OpenMP's
 * spin count is set, libetude-cuda.so only where a driver answers. The library sees
 * pointers, sizes and descriptions; it allocates nothing while a kernel runs, keeps no
 * policy, and synchronises with the host only where asked to.
 *
 * Kernels must accept every legal description (strides included) of the op, or answer
 * ENOTSUP from prepare with a sentence. All arrays of one call are disjoint, except
 * that an output of an element-wise op may be exactly one of its inputs of the same
 * description, and output 0 of an op flagged ET_OPF_IN_PLACE its input 0. */
#ifndef ETUDE_DEVICE_H
#define ETUDE_DEVICE_H

#include <stdint.h>

#include "etude/attr.h"
#include "etude/types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ET_DEVICE_ABI 7

enum et_op_id {
#define ET_OP(name, number) ET_OP_##name = number,
#include "etude/ops.def"
#undef ET_OP
#define ET_OP(name, number) +1
    ET_OP_COUNT = 0
#include "etude/ops.def"
#undef ET_OP
};

/* One operation on arrays of known description: what a kernel is prepared for. */
struct et_call {
    enum et_op_id op;
    int n_in, n_out;
    const void *attr; /* the op's attribute struct; borrowed for the call */
    size_t attr_size;
    const struct et_desc *in;  /* n_in entries; dtype ET_NONE = input left out */
    const struct et_desc *out; /* n_out entries; dtype ET_NONE = nobody wants it */
};

struct et_kernel;  /* the module's: a prepared primitive or loop */
struct et_stream;  /* the module's: a queue of work; NULL = the device's default */
struct et_capture; /* the module's: a recorded sequence of kernels */
struct et_fence;   /* the module's: a mark in a stream that others can wait for */
struct et_device_handle; /* the module's */

struct et_device_info {
    char name[128];      /* for people: processor or GPU */
    char library[128];   /* "oneDNN 2.6.3" */
    int threads;         /* CPU: compute threads; else 0 */
    size_t memory_bytes; /* total; 0 = unknown */
    bool host_memory;    /* the host may read and write device pointers */
    enum et_dtype fast;  /* what mixed precision should multiply in; NONE: it gains
                            nothing here */
};

/* What a device may be told before its first kernel is prepared. */
enum et_device_option {
    ET_DEVICE_TF32 = 0, /* 1: f32 products may round their operands to 10 bits */
    ET_DEVICE_DETERMINISTIC = 1, /* 1: only kernels that give the same bits each time */
};

/* What holds a device's clocks down. */
enum et_device_slowed {
    ET_SLOWED_POWER = 1,    /* it may not draw more */
    ET_SLOWED_HEAT = 2,     /* it is too hot */
    ET_SLOWED_HARDWARE = 4, /* it protects itself: one of these, or its supply */
};

/* What a device says of itself at this moment. NAN: it has no such sensor. */
struct et_device_sensors {
    double busy;        /* percent of the time since it last looked that a kernel ran */
    double memory_busy; /* the same of reading and writing its memory */
    double memory_used; /* bytes, by all processes */
    double temperature; /* degrees Celsius */
    double power;       /* watts */
    double clock;       /* of the multiprocessors, MHz */
    double memory_clock; /* MHz */
    double slowed;       /* bits of enum et_device_slowed */
};

/* The most that a device can do in a second, at its highest clocks. No kernel reaches
 * it: time computed from it is the least there can be. 0 = not known. */
struct et_device_peak {
    double bytes; /* read from and written to its memory */
    double plain; /* FLOP of loops in f32; a multiply-add counts as two */
    /* FLOP of products and convolutions (the ops with ET_OPF_PRODUCT), by the dtype of
     * their operands. */
    double product[ET_DTYPE_COUNT];
};

/* What the pool behind alloc has taken from the device, bytes. */
struct et_device_pool {
    size_t used, peak_used;         /* in blocks, with what rounding adds */
    size_t reserved, peak_reserved; /* used, and kept for the next blocks */
    uint64_t retries; /* allocations that fitted, or not, only after it was emptied */
};

struct et_device_table {
    uint32_t abi;     /* ET_DEVICE_ABI */
    uint32_t size;    /* sizeof(struct et_device_table) */
    const char *name; /* "cpu" */
    /* Forms of matmul_fused that it computes, as bits 1 << enum et_epilogue: a plan for
     * it has those in place of a product and what follows. 0: it gains nothing
     * there. */
    uint32_t epilogues;
    /* Does it compute conv2d_fused, and gain by it? */
    bool fuses_convolutions;
    /* A matrix is multiplied fastest when its rows have a multiple of so many elements:
     * et_linear pads wide results to one. 0: it makes no difference. */
    int64_t aligned_columns;

    /* Opens device INDEX. THREADS: compute threads, 0 = all. WHY takes a sentence. */
    et_status (*open)(int index, int threads, struct et_device_handle **out, char *why,
                      size_t why_size);
    void (*close)(struct et_device_handle *);
    void (*info)(struct et_device_handle *, struct et_device_info *);

    /* 64-byte aligned, contents undefined. ENOMEM when there is none. */
    et_status (*alloc)(struct et_device_handle *, size_t bytes, void **out);
    void (*free)(struct et_device_handle *, void *block, size_t bytes);
    /* Copies in stream order; either side may be host memory, which must stay as it is
     * until the copy is done. Host memory of host_alloc is copied beside what else
     * goes on; the caller waits for the copy of any other. */
    et_status (*copy)(struct et_device_handle *, void *dst, const void *src,
                      size_t bytes, struct et_stream *);
    et_status (*fill)(struct et_device_handle *, void *dst, int byte, size_t bytes,
                      struct et_stream *);

    /* Prepares a kernel; WORKSPACE is what run needs besides its operands, in bytes. */
    et_status (*prepare)(struct et_device_handle *, const struct et_call *,
                         struct et_kernel **out, size_t *workspace, char *why,
                         size_t why_size);
    void (*release)(struct et_kernel *);
    /* PTR: inputs, then outputs (NULL where left out). WORKSPACE: 64-byte aligned.
     * Does not allocate, look up, or wait. */
    et_status (*run)(struct et_kernel *, void *const *ptr, void *workspace,
                     struct et_stream *);
    /* What was picked, for dumps and the audit: "brgconv:avx512_core". Borrowed. */
    const char *(*describe)(const struct et_kernel *);

    /* Streams, fences and capture. All of these, or none: NULL where work runs at once,
     * as on the CPU. Between capture_begin and capture_end nothing runs: copy, fill and
     * run of that stream are recorded, with their addresses. */
    et_status (*stream_new)(struct et_device_handle *, struct et_stream **out);
    void (*stream_free)(struct et_stream *);
    et_status (*sync)(struct et_device_handle *, struct et_stream *);
    et_status (*capture_begin)(struct et_device_handle *, struct et_stream *);
    et_status (*capture_end)(struct et_device_handle *, struct et_stream *,
                             struct et_capture **out);
    et_status (*replay)(struct et_capture *, struct et_stream *);
    void (*capture_free)(struct et_capture *);
    et_status (*fence_new)(struct et_device_handle *, struct et_fence **out);
    void (*fence_free)(struct et_fence *);
    /* Marks the end of what STREAM has been given so far. */
    et_status (*fence_set)(struct et_fence *, struct et_stream *);
    /* Has everything before the mark run? OUT is true for a fence never set. */
    et_status (*fence_passed)(struct et_fence *, bool *out);
    et_status (*fence_wait)(struct et_fence *); /* the host waits */
    /* What STREAM is given from now on runs after the mark; the host goes on. */
    et_status (*stream_wait)(struct et_stream *, struct et_fence *);

    /* Optional. Host memory that the device copies from and to by itself (pinned);
     * 64-byte aligned. Where NULL any memory will do. */
    et_status (*host_alloc)(struct et_device_handle *, size_t bytes, void **out);
    void (*host_free)(struct et_device_handle *, void *block);
    /* Optional. Bytes that alloc could still give, as the driver counts them. */
    et_status (*memory_free)(struct et_device_handle *, size_t *bytes);
    /* Optional. What the pool behind alloc holds; without one: NULL. */
    et_status (*pool)(struct et_device_handle *, struct et_device_pool *);
    /* Optional. Reads the sensors, in 0.1 to 5 ms; the first time opens them. ENOTSUP
     * where there are none, EDEVICE where the device is lost. */
    et_status (*sensors)(struct et_device_handle *, struct et_device_sensors *);
    /* Optional. As the options now are. NULL: nothing of it is known. */
    void (*peak)(struct et_device_handle *, struct et_device_peak *);
    /* Optional. ENOTSUP where the device knows no such option. NULL: it knows none, and
     * gives the same bits each time. */
    et_status (*set)(struct et_device_handle *, enum et_device_option, int value);
    /* Optional. Why the last call on this handle failed: a sentence, "" if none did.
     * Borrowed until the next call. */
    const char *(*why)(struct et_device_handle *);
};

/* The module's only exported symbol. */
const struct et_device_table *et_device_module(void);

#ifdef __cplusplus
}
#endif
#endif
