/* SPDX-License-Identifier: Apache-2.0 */
/* image.cuh: a thread's place in an image, for kernels that give each thread a pixel of
 * one channel, or of as many as 16 bytes hold. */
#ifndef ETUDE_KERNELS_IMAGE_CUH
#define ETUDE_KERNELS_IMAGE_CUH

#include "kernels/cuda/space.cuh"

/* One length that a position is divided by. */
struct etk_length {
    int64_t n;
    etk_divisor by;
    etk_long_divisor long_by;
};

/* Threads count channels (packs) fastest, then columns, rows and samples. */
struct etk_pixels {
    int64_t count;
    bool wide;
    etk_length c, w, h;
};

/* The short divisor is of use only where positions are below 2^31. */
static inline etk_length
etk_length_of(int64_t n)
{
    return {n, etk_divisor_of(n > INT32_MAX ? 1 : (uint32_t)n),
            etk_long_divisor_of((uint64_t)n)};
}

/* N samples of C channels (packs) of H x W, all at least 1. */
static inline etk_pixels
etk_pixels_of(int64_t n, int64_t c, int64_t h, int64_t w)
{
    etk_pixels p = {n * c * h * w, n * c * h * w > INT32_MAX, etk_length_of(c),
                    etk_length_of(w), etk_length_of(h)};
    return p;
}

struct etk_pixel {
    int64_t n, c;
    int h, w;
};

/* Takes the fastest coordinate off I. */
static __device__ __forceinline__ int64_t
etk_peel(int64_t &i, const etk_length &length, bool wide)
{
    int64_t whole = wide ? etk_divide(i, length.long_by)
                         : (int64_t)etk_divide((uint32_t)i, length.by);
    int64_t rest = i - whole * length.n;
    i = whole;
    return rest;
}

static __device__ __forceinline__ etk_pixel
etk_pixel_at(const etk_pixels &p, int64_t i)
{
    etk_pixel at;
    at.c = etk_peel(i, p.c, p.wide);
    at.w = (int)etk_peel(i, p.w, p.wide);
    at.h = (int)etk_peel(i, p.h, p.wide);
    at.n = i;
    return at;
}

/* Strides of an image in elements: N, C (of a pack), H, W. */
struct etk_strides {
    int64_t n, c, h, w;
};

static inline etk_strides
etk_strides_of(const int64_t *stride, int64_t lanes)
{
    return {stride[0], stride[1] * lanes, stride[2], stride[3]};
}

/* Of the plane of AT's sample and channel; of a pixel in it. */
static __device__ __forceinline__ int64_t
etk_plane(const etk_strides &s, const etk_pixel &at)
{
    return at.n * s.n + at.c * s.c;
}

static __device__ __forceinline__ int64_t
etk_in_plane(const etk_strides &s, int h, int w)
{
    return h * s.h + w * s.w;
}

template <class T, int LANES>
static __device__ __forceinline__ void
etk_store_lanes(T *to, const float (&v)[LANES])
{
    etk_pack<T, LANES> p;
#pragma unroll
    for (int j = 0; j < LANES; j++)
        p.v[j] = etk_down<T>(v[j]);
    *(etk_pack<T, LANES> *)to = p;
}

#endif
