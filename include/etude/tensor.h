/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.h: devices, storages, and tensors with memory of their own (leaves).
 *
 * A tensor is a small handle: a description on a storage (a leaf), or the value that a
 * node of a graph will have. Views share storage. References are counted on storages
 * only. Handles made here belong to the caller; handles made by graph functions belong
 * to the graph and end at its reset. */
#ifndef ETUDE_TENSOR_H
#define ETUDE_TENSOR_H

#include <stdint.h>

#include "etude/ctx.h"
#include "etude/device.h"
#include "etude/types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct et_device;
struct et_node;

/* Loads a device module and opens device INDEX. NAME: "cpu", "cuda", "ref" (the plain C
 * reference, always there). THREADS 0 = all cores. ENOENT: there is no such
 * module, driver or hardware; ENOTSUP: there is, and it cannot be used; the sentence
 * says why. To ask for "cuda" costs 0.1 ms where there is no driver. CX must outlive
 * the device.
 *
 * No handler of a signal may run in threads of "cpu": some of its libraries (oneDNN
 * 2.6 in matrix products) keep their stack in the heap while they compute. Block what
 * the program catches before this call, which threads that begin later inherit, and
 * take it in another thread with sigwait; a program that computes with one thread may
 * instead give its handlers a stack of their own (SA_ONSTACK). */
ET_NODISCARD et_status et_device_open(struct et_ctx *cx, const char *name, int index,
                                      int threads, struct et_device **out);
/* When all its storages and graphs are gone; see et_ctx_set_checks. *DEV becomes
 * NULL. */
void et_device_close(struct et_device **dev);
void et_device_get_info(const struct et_device *dev, struct et_device_info *out);
const char *et_device_name(const struct et_device *dev); /* "cpu"; borrowed */
/* Before the first graph on it. ENOTSUP where the device has nothing of the kind; every
 * device knows ET_DEVICE_DETERMINISTIC, be it that it does nothing else. */
ET_NODISCARD et_status et_device_set(struct et_device *dev,
                                     enum et_device_option option, int value);

/* What the device says of itself; some milliseconds. ENOTSUP where it has no
 * sensors. */
ET_NODISCARD et_status et_device_get_sensors(struct et_device *dev,
                                             struct et_device_sensors *out);

/* What the device's memory was used for, as its callers asked for it. */
struct et_device_memory {
    size_t current_bytes; /* allocated now: storages, plan slabs, outputs, workspace */
    size_t peak_bytes;    /* most ever */
    uint64_t allocs;      /* blocks ever allocated */
    bool has_pool;        /* blocks come from a pool, which is: */
    struct et_device_pool pool;
};
void et_device_get_memory(const struct et_device *dev, struct et_device_memory *out);
/* Allocations that would make more than BYTES in use fail with ENOMEM; 0 = no limit. */
void et_device_set_limit(struct et_device *dev, size_t bytes);

/* A block of device memory that several tensors may share. */
struct et_storage {
    struct et_device *dev;    /* borrowed; must outlive the storage */
    void *data;               /* device memory; 64-byte aligned unless it was wrapped */
    size_t bytes;             /* of DATA */
    int refs;                 /* holders; the last one to go frees it */
    struct et_shadow *shadow; /* internal; NULL: none */
};
/* Zeroed, with one reference, which is the caller's. ENOMEM. */
ET_NODISCARD et_status et_storage_new(struct et_ctx *cx, struct et_device *dev,
                                      size_t bytes, struct et_storage **out);
/* One of BYTES at DATA, which are not copied: RELEASE(OWNER) is called when the last
 * holder is gone, on its thread; until then DATA is there, aligned for its elements.
 * What is in it changes with what is computed into tensors there, and is to change
 * between evaluations only. ENOTSUP: DEV does not compute in the host's memory; ENOMEM.
 * After a failure RELEASE is not called. */
ET_NODISCARD et_status et_storage_wrap(struct et_ctx *cx, struct et_device *dev,
                                       void *data, size_t bytes,
                                       void (*release)(void *owner), void *owner,
                                       struct et_storage **out);
struct et_storage *et_storage_ref(struct et_storage *s); /* one holder more; S */
void et_storage_unref(struct et_storage *s);             /* NULL does nothing */

struct et_tensor {
    struct et_desc desc;
    struct et_storage *storage; /* leaf, or evaluated value; NULL until then */
    int64_t offset;       /* first element, in elements from the storage's start */
    struct et_node *node; /* producer; NULL for a leaf */
    int output;           /* which of the producer's outputs */
    uint32_t generation;  /* of the graph it belongs to: stale use is caught */
    const char *name;     /* for dumps; leaf: owned; may be NULL */
    void *data;           /* evaluated value: where it lies; leaf: NULL */
    uint64_t plan_id;     /* internal */
};

/* A leaf with a zeroed storage of its own. NAME is copied; may be NULL. ENOMEM. */
ET_NODISCARD et_status et_tensor_new(struct et_ctx *cx, struct et_device *dev,
                                     enum et_dtype dtype, int ndim,
                                     const int64_t *shape, enum et_format format,
                                     const char *name, struct et_tensor **out);
/* A leaf on (part of) a storage that exists; takes a reference. OFFSET in elements. */
ET_NODISCARD et_status et_tensor_view(struct et_ctx *cx, struct et_storage *storage,
                                      int64_t offset, const struct et_desc *desc,
                                      const char *name, struct et_tensor **out);
/* For leaves only: values are their graph's. What is built of it must have been
 * evaluated, if it ever will be; see et_ctx_set_checks. NULL within is allowed. */
void et_tensor_free(struct et_tensor **t);

/* Where the elements begin; device memory. NULL for a value not yet evaluated. */
void *et_tensor_data(const struct et_tensor *t);
/* Copy all elements in row-major order, converting layout but not dtype; BYTES must be
 * the array's size (ESHAPE). EINVAL: not evaluated. Wait for the device. */
ET_NODISCARD et_status et_tensor_write(struct et_ctx *cx, struct et_tensor *t,
                                       const void *src, size_t bytes);
ET_NODISCARD et_status et_tensor_read(struct et_ctx *cx, const struct et_tensor *t,
                                      void *dst, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
