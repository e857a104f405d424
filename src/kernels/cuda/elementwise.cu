/* SPDX-License-Identifier: Apache-2.0 */
/* elementwise.cu: a kernel that interprets programs of single elements.
 *
 * What rtc_source.c generates computes the same bits at the speed of memory; this one
 * needs no compiler, and is what runs where NVRTC is missing or an address is not a
 * multiple of 16 bytes. Thread t of a block takes elements t, t + threads, ... of a
 * tile of LANES x threads. Its registers are a column of shared memory, which no other
 * thread touches, so that nothing waits: slot s of lane v lies at (s LANES + v) threads
 * + t. Each step is one switch, the same in all threads, for LANES elements.
 *
 * All operands of an element are loaded before its results are stored, by one thread:
 * an output may be an input. Elements are below count, where the walk's strides keep
 * inside the arrays. Bound by shared memory: three accesses for each step. */
#include "kernels/cuda/kernel.cuh"

#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/program.h"

#include <stdlib.h>

enum { MAX_THREADS = 128, LOCAL_BYTES = 48 * 1024 };

struct instruction {
    unsigned short op;
    unsigned char to, from[3]; /* slots */
    double a, b;
};

struct etk_interpretation {
    struct etk_sides sides;
    int n_in, n_out, n_steps, n_slots, threads;
    bool wide;
    unsigned char dtype[ETK_SIDES];
    unsigned char loaded[ET_FUSED_MAX_IN], stored[ET_FUSED_MAX_OUT]; /* slots */
    struct instruction step[ET_FUSED_MAX_STEPS];
};

/* ---- the kernel ---- */

static __device__ __forceinline__ long long
offset(const struct etk_sides &a, int side, long long element)
{
    long long at = 0;
#pragma unroll
    for (int axis = ETK_MAX_AXES - 1; axis > 0; axis--)
        if (axis < a.ndim)
            at += etk_over(a, axis, element) * a.stride[side][axis];
    return at + element * a.stride[side][0];
}

template <class R>
static __device__ __forceinline__ R
load(int dtype, const void *p, long long at)
{
    switch (dtype) {
    case ET_F32:
        return etk_from<R>(((const float *)p)[at]);
    case ET_F64:
        return etk_from<R>(((const double *)p)[at]);
    case ET_BF16:
        return etk_from<R>(((const etk_b16 *)p)[at]);
    case ET_F16:
        return etk_from<R>(((const etk_h16 *)p)[at]);
    case ET_I32:
        return etk_from<R>(((const int *)p)[at]);
    case ET_I64:
        return etk_from<R>(((const long long *)p)[at]);
    default:
        return etk_from<R>(((const unsigned char *)p)[at]);
    }
}

template <class R>
static __device__ __forceinline__ void
store(int dtype, void *p, long long at, R x)
{
    switch (dtype) {
    case ET_F32:
        return etk_put(((float *)p)[at], x);
    case ET_F64:
        return etk_put(((double *)p)[at], x);
    case ET_BF16:
        return etk_put(((etk_b16 *)p)[at], x);
    case ET_F16:
        return etk_put(((etk_h16 *)p)[at], x);
    case ET_I32:
        return etk_put(((int *)p)[at], x);
    case ET_I64:
        return etk_put(((long long *)p)[at], x);
    default:
        return etk_put(((unsigned char *)p)[at], x);
    }
}

/* A cast inside a program rounds to the dtype that its scalar names. */
template <class R>
static __device__ __forceinline__ R
rounded(int dtype, R x)
{
    switch (dtype) {
    case ET_F32:
        return etk_rounded<float>(x);
    case ET_BF16:
        return etk_rounded<etk_b16>(x);
    case ET_F16:
        return etk_rounded<etk_h16>(x);
    case ET_I32:
        return etk_rounded<int>(x);
    case ET_I64:
        return etk_rounded<long long>(x);
    case ET_U8:
        return etk_rounded<unsigned char>(x);
    default:
        return x;
    }
}

template <class R, int LANES>
static __device__ __forceinline__ void
apply(const struct instruction &s, R *own, int pitch)
{
    R x[LANES], y[LANES], z[LANES], a = (R)s.a, b = (R)s.b;
#pragma unroll
    for (int v = 0; v < LANES; v++) {
        x[v] = own[(s.from[0] * LANES + v) * pitch];
        y[v] = own[(s.from[1] * LANES + v) * pitch];
        z[v] = own[(s.from[2] * LANES + v) * pitch];
    }
    switch (s.op) {
#define ETK_ELEMENT(name, n, first, value)                                             \
    case ET_OP_##name:                                                                 \
        _Pragma("unroll") for (int v = 0; v < LANES; v++) x[v] =                       \
            etk_step_##name(x[v], y[v], z[v], a, b);                                   \
        break;
#include "kernels/elements.def"
    default: /* cast */
#pragma unroll
        for (int v = 0; v < LANES; v++)
            x[v] = rounded((int)s.a, x[v]);
    }
#pragma unroll
    for (int v = 0; v < LANES; v++)
        own[(s.to * LANES + v) * pitch] = x[v];
}

template <class R, int LANES>
static __global__ void __launch_bounds__(MAX_THREADS)
    interpret(const __grid_constant__ struct etk_interpretation p)
{
    ETK_SHARED(R, registers);
    R *own = registers + threadIdx.x;
    int pitch = blockDim.x;
    long long tile = (long long)LANES * pitch;
    for (long long from = blockIdx.x * tile; from < p.sides.count;
         from += gridDim.x * tile) {
        for (int i = 0; i < p.n_in; i++)
            for (int v = 0; v < LANES; v++) {
                long long e = from + v * pitch + threadIdx.x;
                int side = p.n_out + i;
                if (e < p.sides.count)
                    own[(p.loaded[i] * LANES + v) * pitch] = load<R>(
                        p.dtype[side], p.sides.ptr[side], offset(p.sides, side, e));
            }
        for (int s = 0; s < p.n_steps; s++)
            apply<R, LANES>(p.step[s], own, pitch);
        for (int o = 0; o < p.n_out; o++)
            for (int v = 0; v < LANES; v++) {
                long long e = from + v * pitch + threadIdx.x;
                if (e < p.sides.count)
                    store<R>(p.dtype[o], p.sides.ptr[o], offset(p.sides, o, e),
                             own[(p.stored[o] * LANES + v) * pitch]);
            }
    }
}

/* ---- what it is given ---- */

/* LANES neighbours of the last axis make a place. A dense walk may have fewer elements
 * than a place: no place, and a rest. Nothing divides by its axis' length, which then
 * is 0 and has no reciprocal. */
static void
fill_sides(struct etk_sides *a, const struct etk_walk *w, int lanes)
{
    a->count = w->count / lanes;
    a->elements = w->count;
    a->ndim = w->ndim;
    for (int i = 0; i < w->ndim; i++) {
        a->length64[i] = w->shape[i] / (i == w->ndim - 1 ? lanes : 1);
        if (a->count > 0 && a->count <= INT32_MAX) { /* no axis is longer than all */
            struct etk_divisor d = etk_divisor_of((uint32_t)a->length64[i]);
            a->length[i] = d.d;
            a->multiplier[i] = d.m;
            a->shift[i] = d.s;
        }
    }
    for (int side = 0; side < w->sides; side++)
        for (int i = 0; i < w->ndim; i++)
            a->stride[side][i] = w->stride[side][i];
}

/* A register's slot is free again after the last step that reads it. */
static void
choose_slots(struct etk_interpretation *to, const struct etk_program *p)
{
    int last[ETK_MAX_REG], owner[ETK_MAX_REG], slot[ETK_MAX_REG];
    for (int r = 0; r < p->n_in + p->n_steps; r++)
        last[r] = -1;
    for (int s = 0; s < p->n_steps; s++)
        for (int i = 0; i < p->step[s].n_src; i++)
            last[p->step[s].src[i]] = s;
    for (int o = 0; o < p->n_out; o++)
        last[p->result[o]] = p->n_steps;
    for (int i = 0; i < p->n_in; i++) {
        slot[i] = i;
        owner[i] = last[i];
        to->loaded[i] = (unsigned char)i;
    }
    to->n_slots = p->n_in;
    for (int s = 0; s < p->n_steps; s++) {
        const struct et_fused_step *from = &p->step[s];
        struct instruction *in = &to->step[s];
        int r = p->n_in + s, at = 0;
        while (at < to->n_slots && owner[at] > s)
            at++;
        to->n_slots += at == to->n_slots;
        owner[at] = last[r] > s ? last[r] : s;
        slot[r] = at;
        in->op = from->op;
        in->to = (unsigned char)at;
        in->a = from->a;
        in->b = from->b;
        for (int i = 0; i < 3; i++)
            in->from[i] = (unsigned char)slot[from->src[i < from->n_src ? i : 0]];
    }
    for (int o = 0; o < p->n_out; o++)
        to->stored[o] = (unsigned char)slot[p->result[o]];
}

static int
lanes_of(const struct etk_interpretation *p)
{
    return p->wide ? 1 : 4;
}

static size_t
bytes_of_thread(const struct etk_interpretation *p)
{
    size_t size = p->wide ? sizeof(double) : sizeof(float);
    return (size_t)p->n_slots * (size_t)lanes_of(p) * size;
}

struct etk_interpretation *
etk_interpretation_new(const struct etk_program *p, const struct etk_shape *shape)
{
    struct etk_interpretation *to = (struct etk_interpretation *)calloc(1, sizeof *to);
    if (!to)
        return NULL;
    fill_sides(&to->sides, &shape->walk, 1);
    to->n_in = p->n_in;
    to->n_out = p->n_out;
    to->n_steps = p->n_steps;
    to->wide = p->wide;
    for (int i = 0; i < p->n_in + p->n_out; i++)
        to->dtype[i] = p->dtype[i];
    choose_slots(to, p);
    /* 56 slots at most: 896 bytes a thread, so that there is a warp at least. */
    size_t threads = LOCAL_BYTES / bytes_of_thread(to) / ETK_WARP * ETK_WARP;
    to->threads = threads < MAX_THREADS ? (int)threads : MAX_THREADS;
    return to;
}

cudaError_t
etk_launch_interpreter(const struct etk_interpretation *given, void *const *ptr,
                       int sm_count, cudaStream_t stream)
{
    struct etk_interpretation p = *given;
    for (int i = 0; i < p.n_in + p.n_out; i++)
        p.sides.ptr[i] = ptr[i];
    unsigned blocks = etk_blocks(p.sides.count, lanes_of(&p), p.threads, sm_count);
    size_t shared = bytes_of_thread(&p) * (size_t)p.threads;
    if (p.wide)
        return etk_launch(interpret<double, 1>, blocks, p.threads, shared, stream, p);
    return etk_launch(interpret<float, 4>, blocks, p.threads, shared, stream, p);
}

/* ---- compiled programs ---- */

struct etk_sides *
etk_sides_new(const struct etk_shape *shape)
{
    struct etk_sides *a = (struct etk_sides *)calloc(1, sizeof *a);
    if (a)
        fill_sides(a, &shape->walk, shape->lanes);
    return a;
}

cudaError_t
etk_launch_program(const void *kernel, const struct etk_sides *given, int n_sides,
                   void *const *ptr, int sm_count, cudaStream_t stream)
{
    struct etk_sides a = *given;
    for (int i = 0; i < n_sides; i++)
        a.ptr[i] = ptr[i];
    /* A dense walk leaves a rest that is shorter than a place: a place more. */
    dim3 blocks(etk_blocks(a.count + 1, 1, ETK_PROGRAM_THREADS, sm_count));
#ifdef ETK_SIM
    return etk_launch((void (*)(struct etk_sides))kernel, blocks, ETK_PROGRAM_THREADS,
                      0, stream, a);
#else
    cudaLaunchConfig_t config = {};
    config.gridDim = blocks;
    config.blockDim = dim3(ETK_PROGRAM_THREADS);
    config.stream = stream;
    void *args[] = {&a};
    return cudaLaunchKernelExC(&config, kernel, args);
#endif
}
