/* SPDX-License-Identifier: Apache-2.0 */
/* augment.cu: pictures shown, turned and changed: see et_image_augment in op.h.
 *
 * A pixel is computed from the raw image through all its changes in registers; no
 * picture lies in between. A change that asks of the whole picture how often each byte
 * occurs has all its pixels computed once more, before. */
#include "kernels/cuda/image.h"
#include "kernels/cuda/kernel.cuh"
#include "kernels/cuda/table.cuh"

/* Each is rounded by itself: the bytes are those of the host. */
#define ETK_PICTURE    static __device__ __forceinline__
#define ETK_MUL(a, b)  __dmul_rn(a, b)
#define ETK_ADD(a, b)  __dadd_rn(a, b)
#define ETK_MULF(a, b) __fmul_rn(a, b)
#define ETK_ADDF(a, b) __fadd_rn(a, b)
#define ETK_ONE_BY_ONE _Pragma("unroll 1")
#include "kernels/picture.h"

enum {
    THREADS = 256,
    BLOCKS = 4, /* a multiprocessor */
    CHANNELS = ETK_PICTURE_CHANNELS
};

/* What the threads of a block share of a sample. */
struct sample {
    struct et_shown row; /* these two are filled number by number */
    struct et_pixel_change change[ET_MAX_CHANGES];
    struct etk_show show;
    uint8_t table[ET_MAX_CHANGES][CHANNELS][256];
    uint32_t times[CHANNELS][256];
};
static_assert(sizeof(et_shown) == ET_SHOWN_NUMBERS * 4 &&
                  sizeof(et_pixel_change) == ET_CHANGE_NUMBERS * 4,
              "a row is read number by number");

/* Row N into the block's memory. More numbers than there are do not exist: infer. */
static __device__ void
load_row(const etk_augment &k, const int32_t *rows, int64_t n, const etk_raw &raw,
         sample *s)
{
    int32_t *to = (int32_t *)s;
    __syncthreads(); /* the sample before is done */
    for (int t = threadIdx.x; t < k.numbers; t += THREADS)
        to[t] = rows[n * k.image.frames[0] + t * k.image.frames[1]];
    __syncthreads();
    if (threadIdx.x == 0) {
        int room = (k.numbers - ET_SHOWN_NUMBERS) / ET_CHANGE_NUMBERS;
        s->row.n_changes = etk_bound(s->row.n_changes, 0, room);
        etk_show_of(&s->row, &raw, &s->show);
    }
    __syncthreads();
}

/* Pixel (I, J) after N changes, of which those that are tables have theirs. */
static __device__ __forceinline__ void
pixel_after(const etk_raw &raw, const sample *s, int n, int i, int j, uint8_t *p)
{
    etk_shown_pixel(&raw, &s->show, i, j, p);
    for (int t = 0; t < n; t++) {
        if (!etk_change_is_table(s->change[t].kind)) {
            etk_change_pixel(&s->change[t], raw.C, i, j, p);
            continue;
        }
        for (int c = 0; c < raw.C; c++)
            p[c] = s->table[t][c][p[c]];
    }
}

/* How often each byte occurs before change T: sums of whole numbers, in any order. */
static __device__ void
count_bytes(const etk_augment &k, const etk_raw &raw, const etk_divisor &width,
            sample *s, int t)
{
    const int kind = s->change[t].kind, pixels = k.image.h * k.image.w;
    for (int v = threadIdx.x; v < CHANNELS * 256; v += THREADS)
        s->times[v / 256][v % 256] = 0;
    __syncthreads();
    for (int at = threadIdx.x; at < pixels; at += THREADS) {
        uint8_t p[CHANNELS];
        int i = (int)etk_divide((uint32_t)at, width);
        pixel_after(raw, s, t, i, at - i * k.image.w, p);
        for (int c = 0; c < raw.C; c++) {
            int byte = etk_counted(kind, raw.C, c, p);
            if (byte >= 0)
                atomicAdd(&s->times[c][byte], 1u);
        }
    }
    __syncthreads();
}

static __device__ void
make_tables(const etk_augment &k, const etk_raw &raw, const etk_divisor &width,
            sample *s)
{
    for (int t = 0; t < s->row.n_changes; t++) {
        const int kind = s->change[t].kind;
        if (!etk_change_is_table(kind))
            continue;
        if (etk_change_counts(kind))
            count_bytes(k, raw, width, s, t);
        for (int v = threadIdx.x; v < raw.C * 256; v += THREADS) {
            int c = v / 256;
            s->table[t][c][v % 256] = etk_changed_byte(
                &s->change[t], s->times[kind == ET_CHANGE_CONTRAST ? 0 : c],
                k.image.h * k.image.w, v % 256);
        }
        __syncthreads();
    }
}

/* A block takes parts of samples, part blockIdx.x, blockIdx.x + gridDim.x, ... of
 * n * PARTS: pixels part * THREADS + thread, and every PARTS * THREADS-th after that,
 * of sample at / PARTS. Samples are in PARTS where there are too few of them to keep
 * the GPU busy; each part makes all tables of its sample.
 *
 * No index leaves its array: samples that do not exist are not read, and picture.h
 * keeps places within the image, whatever a row holds. */
template <class From, class To>
static __global__ void __launch_bounds__(THREADS, 2)
    image_augment(const etk_augment k, etk_divisor width, int parts, const uint8_t *raw,
                  const int32_t *rows, const From *table, To *out)
{
    __shared__ struct sample s;
    __shared__ To copy[CHANNELS * 256];
    const struct etk_image &g = k.image;
    const int pixels = g.h * g.w;
    for (int t = threadIdx.x; t < g.channels * 256; t += THREADS)
        copy[t] =
            etk_element_of<To>(table[t / 256 * g.table[0] + t % 256 * g.table[1]]);
    for (int64_t at = blockIdx.x; at < g.n * parts; at += gridDim.x) {
        int64_t n = at / parts;
        int32_t sample = rows[n * g.frames[0]];
        bool exists = sample >= 0 && sample < g.samples;
        etk_raw from = {raw + (exists ? sample : 0) * g.raw[0],
                        g.raw[1],
                        g.raw[2],
                        g.raw[3],
                        g.channels,
                        g.raw_h,
                        g.raw_w};
        load_row(k, rows, n, from, &s);
        if (exists)
            make_tables(k, from, width, &s);
        for (int pixel = (int)(at - n * parts) * THREADS + (int)threadIdx.x;
             pixel < pixels; pixel += parts * THREADS) {
            uint8_t p[CHANNELS] = {};
            int i = (int)etk_divide((uint32_t)pixel, width), j = pixel - i * g.w;
            if (exists)
                pixel_after(from, &s, s.row.n_changes, i, j, p);
            To *to = out + n * g.result[0] + i * g.result[2] + j * g.result[3];
            for (int c = 0; c < g.channels; c++)
                to[c * g.result[1]] = exists ? copy[c * 256 + p[c]] : etk_nothing<To>();
        }
    }
}

/* As many parts as fill the GPU; no more than there are pixels for. */
static int
parts_of(const struct etk_image *k)
{
    int64_t most = etk_ceil_div((int64_t)k->h * k->w, THREADS);
    int64_t want = (int64_t)k->sm_count * BLOCKS / (k->n > 0 ? k->n : 1);
    return (int)(want < 1 ? 1 : want < most ? want : most);
}

template <class From, class To>
static cudaError_t
launch(const struct etk_augment *k, const uint8_t *raw, const int32_t *rows,
       const void *table, void *out, cudaStream_t stream)
{
    int parts = parts_of(&k->image);
    int64_t units = k->image.n * parts, most = INT32_MAX;
    return etk_launch(image_augment<From, To>, (unsigned)(units < most ? units : most),
                      THREADS, 0, stream, *k, etk_divisor_of((uint32_t)k->image.w),
                      parts, raw, rows, (const From *)table, (To *)out);
}

cudaError_t
etk_launch_image_augment(const struct etk_augment *k, const uint8_t *raw,
                         const int32_t *rows, const void *table, void *out,
                         cudaStream_t stream)
{
    if (k->image.rounded == ET_BF16)
        return launch<float, etk_bf16>(k, raw, rows, table, out, stream);
    if (k->image.rounded == ET_F16)
        return launch<float, etk_f16>(k, raw, rows, table, out, stream);
    switch (k->image.size) {
    case 2:
        return launch<uint16_t, uint16_t>(k, raw, rows, table, out, stream);
    case 4:
        return launch<uint32_t, uint32_t>(k, raw, rows, table, out, stream);
    case 8:
        return launch<uint64_t, uint64_t>(k, raw, rows, table, out, stream);
    default:
        return cudaErrorInvalidValue;
    }
}
