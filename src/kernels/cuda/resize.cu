/* SPDX-License-Identifier: Apache-2.0 */
/* resize.cu: resampling of images, and its gradient.
 *
 * nearest:  src = min(floor(dst scale), size - 1), in f32 as PyTorch has it.
 * bilinear: src = max(0, (dst + 1/2) scale - 1/2), between its two neighbours, the
 *           border repeated. In f32: a position near V is off by V units in the last
 *           place, which moves weight between two pixels and loses none.
 *
 * A thread makes one pixel of a channel, or of as many as 16 bytes hold. The gradient
 * gathers: it asks of each result that could have read this pixel with what weight it
 * did, rows before columns: one order, no atomics. */
#include "kernels/cuda/image.cuh"
#include "kernels/cuda/pool.h"

enum { THREADS = 256 };

/* One axis. */
struct scaling {
    int size, result;  /* pixels of the source and of the result */
    float scale, back; /* source pixels for one of the result, and its inverse */
    bool nearest;
};

struct resize_arg {
    etk_pixels pixels; /* of what is written */
    etk_strides from, to;
    scaling h, w;
};

/* Pixels low and high, of which high has the weight t. */
struct blend {
    int low, high;
    float t;
};

static __device__ __forceinline__ blend
blend_of(const scaling &s, int dst)
{
    if (s.nearest) {
        int at = min((int)floorf((float)dst * s.scale), s.size - 1);
        return {at, at, 0};
    }
    float src = fmaxf(0.0f, fmaf((float)dst + 0.5f, s.scale, -0.5f));
    int low = min((int)src, s.size - 1);
    return {low, min(low + 1, s.size - 1), fminf(src - (float)low, 1.0f)};
}

/* Thread t makes y at places t, t + threads, ...; pixels of weight 0 are not read, and
 * blend_of stays within the source. */
template <class T, int LANES>
static __global__ void __launch_bounds__(THREADS, 2)
    resize(const T *__restrict__ x, T *__restrict__ y,
           const __grid_constant__ resize_arg g)
{
    for (int64_t i = etk_thread(); i < g.pixels.count; i += etk_threads()) {
        etk_pixel at = etk_pixel_at(g.pixels, i);
        const T *plane = x + etk_plane(g.from, at);
        blend row = blend_of(g.h, at.h), col = blend_of(g.w, at.w);
        float sum[LANES] = {};
#pragma unroll
        for (int k = 0; k < 4; k++) {
            float weight = (k / 2 ? row.t : 1 - row.t) * (k % 2 ? col.t : 1 - col.t);
            if (weight == 0)
                continue;
            int64_t from = etk_in_plane(g.from, k / 2 ? row.high : row.low,
                                        k % 2 ? col.high : col.low);
            etk_pack<T, LANES> v = *(const etk_pack<T, LANES> *)(plane + from);
#pragma unroll
            for (int j = 0; j < LANES; j++)
                sum[j] += weight * etk_up(v.v[j]);
        }
        etk_store_lanes<T, LANES>(
            y + etk_plane(g.to, at) + etk_in_plane(g.to, at.h, at.w), sum);
    }
}

/* With which weight result DST read pixel AT. */
static __device__ __forceinline__ float
weight_of(const scaling &s, int dst, int at)
{
    blend b = blend_of(s, dst);
    return (b.low == at ? 1 - b.t : 0) + (b.high == at ? b.t : 0);
}

/* The results that may have read pixel AT, and one more on each side for rounding; the
 * border was read by all beyond it. */
static __device__ __forceinline__ int
first_reader(const scaling &s, int at)
{
    float first = floorf(((float)at - 0.5f) * s.back - 0.5f) - 1;
    return at == 0 || first < 0 ? 0 : (int)first;
}

static __device__ __forceinline__ int
last_reader(const scaling &s, int at)
{
    float last = ceilf(((float)at + 1.5f) * s.back - 0.5f) + 1;
    return at == s.size - 1 || last > (float)(s.result - 1) ? s.result - 1 : (int)last;
}

/* Thread t makes dx at places t, t + threads, ... */
template <class T, int LANES>
static __global__ void __launch_bounds__(THREADS, 2)
    resize_grad(const T *__restrict__ dy, T *__restrict__ dx,
                const __grid_constant__ resize_arg g)
{
    for (int64_t i = etk_thread(); i < g.pixels.count; i += etk_threads()) {
        etk_pixel at = etk_pixel_at(g.pixels, i);
        const T *plane = dy + etk_plane(g.from, at);
        int last_row = last_reader(g.h, at.h), last_col = last_reader(g.w, at.w);
        float sum[LANES] = {};
        for (int p = first_reader(g.h, at.h); p <= last_row; p++) {
            float down = weight_of(g.h, p, at.h);
            if (down == 0)
                continue;
            for (int q = first_reader(g.w, at.w); q <= last_col; q++) {
                float weight = down * weight_of(g.w, q, at.w);
                if (weight == 0)
                    continue;
                etk_pack<T, LANES> v =
                    *(const etk_pack<T, LANES> *)(plane + etk_in_plane(g.from, p, q));
#pragma unroll
                for (int j = 0; j < LANES; j++)
                    sum[j] += weight * etk_up(v.v[j]);
            }
        }
        etk_store_lanes<T, LANES>(
            dx + etk_plane(g.to, at) + etk_in_plane(g.to, at.h, at.w), sum);
    }
}

static scaling
scaling_of(const struct etk_resize *r, int axis)
{
    return {r->size[axis], r->result[axis], r->scale[axis], 1 / r->scale[axis],
            r->nearest};
}

template <class T, int LANES>
static cudaError_t
launch_lanes(const struct etk_resize *r, const void *from, void *to,
             cudaStream_t stream)
{
    resize_arg g = {};
    const int *size = r->grad ? r->size : r->result;
    g.pixels = etk_pixels_of(r->n, r->c / LANES, size[0], size[1]);
    g.from = etk_strides_of(r->from, LANES);
    g.to = etk_strides_of(r->to, LANES);
    g.h = scaling_of(r, 0);
    g.w = scaling_of(r, 1);
    return etk_launch(r->grad ? resize_grad<T, LANES> : resize<T, LANES>,
                      etk_blocks(g.pixels.count, 1, THREADS, r->sm_count), THREADS, 0,
                      stream, (const T *)from, (T *)to, g);
}

template <class T>
static cudaError_t
launch(const struct etk_resize *r, bool packs, const void *from, void *to,
       cudaStream_t stream)
{
    return packs ? launch_lanes<T, etk_lanes<T>::count>(r, from, to, stream)
                 : launch_lanes<T, 1>(r, from, to, stream);
}

cudaError_t
etk_launch_resize(const struct etk_resize *r, bool packs, const void *from, void *to,
                  cudaStream_t stream)
{
    return ETK_FLOATS(r->dtype, launch, r, packs, from, to, stream);
}
