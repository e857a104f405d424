/* SPDX-License-Identifier: Apache-2.0 */
/* image.cu: batches of images from raw ones: see et_image_batch in op.h. */
#include "kernels/cuda/image.h"
#include "kernels/cuda/kernel.cuh"
#include "kernels/cuda/table.cuh"

enum {
    THREADS = 256,
    BLOCKS = 8,           /* a multiprocessor: 2048 threads */
    SHARED_TABLE = 16384, /* bytes: larger tables stay where they are */
};

struct frame {
    int32_t v[ET_FRAME_NUMBERS];
};

/* Row N of the frames: in two loads where they are dense. The threads of a block read
 * the same one, which the cache hands to all of a warp at once. */
static __device__ __forceinline__ frame
load_frame(const etk_image &k, const int32_t *frames, int64_t n)
{
    frame f;
    if (k.wide_frames) {
        const etk_pack<int32_t, 4> *row =
            (const etk_pack<int32_t, 4> *)(frames + n * ET_FRAME_NUMBERS);
        etk_pack<int32_t, 4> low = row[0], high = row[1];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            f.v[i] = low.v[i];
            f.v[4 + i] = high.v[i];
        }
        return f;
    }
#pragma unroll
    for (int i = 0; i < ET_FRAME_NUMBERS; i++)
        f.v[i] = frames[n * k.frames[0] + i * k.frames[1]];
    return f;
}

/* What one element of the result is of: channel C of pixel (I, J). */
struct place {
    uint32_t c, i, j;
};

static __device__ __forceinline__ place
place_of(uint32_t e, const etk_divisor &channels, const etk_divisor &width)
{
    uint32_t pixel = etk_divide(e, channels), i = etk_divide(pixel, width);
    return {e - pixel * channels.d, i, pixel - i * width.d};
}

/* The byte there, 0 where the frame does not show it. Inside of the raw image is
 * checked besides, so that no frame, whatever it holds, leaves the array. Sums of two
 * numbers of 32 bits are kept in 64. */
static __device__ __forceinline__ uint32_t
byte_at(const etk_image &k, const frame &f, const uint8_t *raw, const place &p)
{
    bool flipped = f.v[ET_FRAME_FLIPPED] != 0;
    int64_t y = (int64_t)f.v[ET_FRAME_Y] + p.i;
    int64_t x = (int64_t)f.v[ET_FRAME_X] + (flipped ? k.w - 1 - (int)p.j : (int)p.j);
    bool seen = y >= f.v[ET_FRAME_Y_MIN] && y < f.v[ET_FRAME_Y_MAX] && y >= 0 &&
                y < k.raw_h && x >= f.v[ET_FRAME_X_MIN] && x < f.v[ET_FRAME_X_MAX] &&
                x >= 0 && x < k.raw_w;
    return seen ? raw[f.v[ET_FRAME_SAMPLE] * k.raw[0] + p.c * k.raw[1] + y * k.raw[2] +
                      x * k.raw[3]]
                : 0;
}

/* A block takes tiles of THREADS * LANES neighbours of one sample's result, tile
 * blockIdx.x, blockIdx.x + gridDim.x, ... of n * tiles; thread t of it the elements
 * t * LANES + [0, LANES) of the tile, where the sample has so many (LANES divides it,
 * or is 1): neighbouring threads store neighbours. Values come from a copy of the table
 * in shared memory, made once per block, or from the table itself where SHARED is
 * false: its rows are 256 long and indexed by bytes.
 *
 * Where the table has the result's dtype, From and To are the unsigned integer of an
 * element's size: bits are moved, not numbers, so that a batch is the host pipeline's
 * bit for bit. Else they are f32 and a 16-bit format, and the copy of the table is
 * rounded: 256 numbers a channel, instead of the batch. Moves one byte in and
 * sizeof(To) out per element; the table and a row of 32 bytes a sample come from the
 * cache. */
template <class From, class To, int LANES>
static __global__ void __launch_bounds__(THREADS)
    image_batch(const etk_image k, etk_divisor channels, etk_divisor width,
                uint32_t per_sample, uint32_t tiles, bool shared, const uint8_t *raw,
                const int32_t *frames, const From *table, To *out)
{
    ETK_SHARED(To, copy);
    if (shared) {
        for (int t = threadIdx.x; t < k.channels * 256; t += THREADS)
            copy[t] =
                etk_element_of<To>(table[t / 256 * k.table[0] + t % 256 * k.table[1]]);
        __syncthreads();
    }
    for (int64_t at = blockIdx.x; at < k.n * tiles; at += gridDim.x) {
        int64_t n = at / tiles;
        uint32_t tile = (uint32_t)(at - n * tiles);
        uint32_t e = (tile * THREADS + threadIdx.x) * LANES;
        if (e >= per_sample)
            continue;
        frame f = load_frame(k, frames, n);
        int32_t sample = f.v[ET_FRAME_SAMPLE];
        bool exists = sample >= 0 && sample < k.samples;
        etk_pack<To, LANES> y;
        place p;
#pragma unroll
        for (int lane = 0; lane < LANES; lane++) {
            p = place_of(e + lane, channels, width);
            uint32_t byte = exists ? byte_at(k, f, raw, p) : 0;
            To v =
                shared
                    ? copy[p.c * 256 + byte]
                    : etk_element_of<To>(table[p.c * k.table[0] + byte * k.table[1]]);
            y.v[lane] = exists ? v : etk_nothing<To>();
        }
        if (k.plain)
            *(etk_pack<To, LANES> *)(out + n * per_sample + e) = y;
        else
            out[n * k.result[0] + p.c * k.result[1] + p.i * k.result[2] +
                p.j * k.result[3]] = y.v[0];
    }
}

template <class From, class To, int LANES>
static cudaError_t
launch(const struct etk_image *k, const uint8_t *raw, const int32_t *frames,
       const void *table, void *out, cudaStream_t stream)
{
    uint32_t per_sample = (uint32_t)k->h * (uint32_t)k->w * (uint32_t)k->channels;
    uint32_t tiles = (uint32_t)etk_ceil_div(per_sample, THREADS * LANES);
    int64_t units = k->n * tiles, most = (int64_t)k->sm_count * BLOCKS;
    size_t bytes = (size_t)k->channels * 256 * sizeof(To);
    bool shared = bytes <= SHARED_TABLE;
    return etk_launch(
        image_batch<From, To, LANES>, (unsigned)(units < most ? units : most), THREADS,
        shared ? bytes : 0, stream, *k, etk_divisor_of((uint32_t)k->channels),
        etk_divisor_of((uint32_t)k->w), per_sample, tiles, shared, raw, frames,
        (const From *)table, (To *)out);
}

template <class From, class To>
static cudaError_t
launch_dtypes(const struct etk_image *k, bool wide, const uint8_t *raw,
              const int32_t *frames, const void *table, void *out, cudaStream_t stream)
{
    return wide ? launch<From, To, etk_lanes<To>::count>(k, raw, frames, table, out,
                                                         stream)
                : launch<From, To, 1>(k, raw, frames, table, out, stream);
}

cudaError_t
etk_launch_image_batch(const struct etk_image *k, bool wide, const uint8_t *raw,
                       const int32_t *frames, const void *table, void *out,
                       cudaStream_t stream)
{
    if (k->rounded == ET_BF16)
        return launch_dtypes<float, etk_bf16>(k, wide, raw, frames, table, out, stream);
    if (k->rounded == ET_F16)
        return launch_dtypes<float, etk_f16>(k, wide, raw, frames, table, out, stream);
    switch (k->size) {
    case 2:
        return launch_dtypes<uint16_t, uint16_t>(k, wide, raw, frames, table, out,
                                                 stream);
    case 4:
        return launch_dtypes<uint32_t, uint32_t>(k, wide, raw, frames, table, out,
                                                 stream);
    case 8:
        return launch_dtypes<uint64_t, uint64_t>(k, wide, raw, frames, table, out,
                                                 stream);
    default:
        return cudaErrorInvalidValue;
    }
}
