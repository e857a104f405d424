/* SPDX-License-Identifier: Apache-2.0 */
/* index.cu: reading through indices, and summing where they point.
 *
 * Reading copies in the widest unit that both rows allow: 16 bytes a thread for an
 * embedding, so at the speed of a copy.
 *
 * Sums have no atomics on floats and one order. For many tokens into few rows
 * (embeddings: 65,536 tokens into 50,304 rows of 768) keys are sorted stably, two
 * passes of 8 bits, and each ETK_RUN sorted positions are summed by a block, thread by
 * column: the work of a block does not depend on how often a word occurs. A run of one
 * key that leaves its block is summed up in parts, which a last kernel adds in order.
 * Moves: x once, y once for zeros and once for its sums; keys and positions, 8 bytes,
 * 3 times a pass. Method: radix sort with ranks by ballots (Merrill and Grimshaw 2011,
 * "multisplit" of Ashkiani 2016), segmented sum over sorted keys (as PyTorch's
 * embedding_dense_backward, without its order by chance). */
#include "kernels/cuda/index.h"
#include "kernels/cuda/space.cuh"

enum { THREADS = 256, DIGITS = 1 << ETK_DIGIT, WARPS = THREADS / ETK_WARP };

/* ---- reading ---- */

struct gather_arg {
    etk_space<3> walk;
    int64_t n, step;
    int nothing;
};

template <class U>
static __device__ __forceinline__ U
filled(int byte)
{
    return byte ? (U) ~(U)0 : (U)0;
}
typedef etk_pack<uint32_t, 4> sixteen;
template <>
__device__ __forceinline__ sixteen
filled<sixteen>(int byte)
{
    uint32_t v = byte ? ~(uint32_t)0 : 0;
    return {{v, v, v, v}};
}

/* Thread t writes units t, t + threads, ... below their count; an index is compared
 * with n before it is used. */
template <class U>
static __global__ void __launch_bounds__(THREADS)
    gather(const U *__restrict__ x, const int32_t *__restrict__ index,
           U *__restrict__ y, const __grid_constant__ gather_arg g)
{
    for (int64_t i = etk_thread(); i < g.walk.count; i += etk_threads()) {
        int64_t at[3];
        etk_offsets(g.walk, i, at);
        int64_t from = index[at[2]];
        y[at[0]] =
            from >= 0 && from < g.n ? x[at[1] + from * g.step] : filled<U>(g.nothing);
    }
}

template <class U>
static cudaError_t
launch_gather(const struct etk_gather *r, const void *x, const int32_t *index, void *y,
              cudaStream_t stream)
{
    gather_arg g = {};
    g.walk = etk_space_of<3>(&r->walk);
    g.n = r->n;
    g.step = r->step;
    g.nothing = r->nothing;
    return etk_launch(gather<U>, etk_blocks(r->walk.count, 2, THREADS, r->sm_count),
                      THREADS, 0, stream, (const U *)x, index, (U *)y, g);
}

cudaError_t
etk_launch_gather(const struct etk_gather *g, const void *x, const int32_t *index,
                  void *y, cudaStream_t stream)
{
    switch (g->unit) {
    case 1:
        return launch_gather<uint8_t>(g, x, index, y, stream);
    case 2:
        return launch_gather<uint16_t>(g, x, index, y, stream);
    case 4:
        return launch_gather<uint32_t>(g, x, index, y, stream);
    case 8:
        return launch_gather<uint64_t>(g, x, index, y, stream);
    default:
        return launch_gather<sixteen>(g, x, index, y, stream);
    }
}

/* ---- sorting ---- */

/* Thread t writes the key of positions t, t + threads, ... below COUNT. */
static __global__ void __launch_bounds__(THREADS)
    make_keys(const int32_t *__restrict__ index, uint32_t *key, uint32_t *token,
              int64_t n, int64_t step, uint32_t outside,
              const __grid_constant__ etk_space<3> tokens)
{
    for (int64_t i = etk_thread(); i < tokens.count; i += etk_threads()) {
        int64_t at[3];
        etk_offsets(tokens, i, at);
        int64_t v = index[at[0]];
        key[i] = v >= 0 && v < n ? (uint32_t)(v * step + at[2]) : outside;
        token[i] = (uint32_t)i;
    }
}

/* Block b counts the digits of tile b: count[digit, b]. */
static __global__ void __launch_bounds__(THREADS)
    count_digits(const uint32_t *__restrict__ key, uint32_t *count, int64_t n,
                 int shift)
{
    __shared__ uint32_t of[DIGITS];
    of[threadIdx.x] = 0;
    __syncthreads();
    int64_t first = (int64_t)blockIdx.x * ETK_TILE;
    for (int64_t i = first + threadIdx.x; i < first + ETK_TILE && i < n; i += THREADS)
        atomicAdd(&of[key[i] >> shift & (DIGITS - 1)], 1u);
    __syncthreads();
    count[(int64_t)threadIdx.x * gridDim.x + blockIdx.x] = of[threadIdx.x];
}

enum { SCAN = 1024 };

/* One block: count[i] becomes the sum of those before it. Thread t has N / SCAN
 * neighbours. */
static __global__ void __launch_bounds__(SCAN) sum_before(uint32_t *count, int64_t n)
{
    __shared__ uint32_t total[SCAN];
    int64_t each = (n + SCAN - 1) / SCAN, first = threadIdx.x * each;
    int64_t end = first + each < n ? first + each : n;
    uint32_t sum = 0;
    for (int64_t i = first; i < end; i++)
        sum += count[i];
    total[threadIdx.x] = sum;
    __syncthreads();
    for (int by = 1; by < SCAN; by *= 2) {
        uint32_t more = (int)threadIdx.x >= by ? total[threadIdx.x - by] : 0;
        __syncthreads();
        total[threadIdx.x] += more;
        __syncthreads();
    }
    uint32_t at = total[threadIdx.x] - sum;
    for (int64_t i = first; i < end; i++) {
        uint32_t own = count[i];
        count[i] = at;
        at += own;
    }
}

/* The lanes of a warp with the same digit as this one; 0 for a lane that takes no
 * part. */
static __device__ __forceinline__ uint32_t
lanes_of(uint32_t digit, bool takes_part)
{
    uint32_t peers = __ballot_sync(0xffffffffu, takes_part);
#pragma unroll
    for (int bit = 0; bit < ETK_DIGIT; bit++) {
        uint32_t ones = __ballot_sync(0xffffffffu, digit >> bit & 1);
        peers &= digit >> bit & 1 ? ones : ~ones;
    }
    return takes_part ? peers : 0;
}

/* Block b moves tile b to where its digits go; equals keep their order. Warp w has the
 * tile's ETK_TILE / WARPS positions from w times that on, 32 at a time: a position's
 * place is that of its digit and tile (BEFORE), plus its equals in the warps before,
 * in the warp's earlier turns, and in the lanes before its own. */
static __global__ void __launch_bounds__(THREADS)
    move_digits(const uint32_t *__restrict__ key, const uint32_t *__restrict__ token,
                const uint32_t *__restrict__ before, uint32_t *key_to,
                uint32_t *token_to, int64_t n, int shift)
{
    enum { TURNS = ETK_TILE / THREADS };
    __shared__ uint32_t place[WARPS][DIGITS];
    int lane = threadIdx.x % ETK_WARP, warp = threadIdx.x / ETK_WARP;
    int64_t first = (int64_t)blockIdx.x * ETK_TILE + warp * (ETK_TILE / WARPS) + lane;
    for (int w = 0; w < WARPS; w++)
        place[w][threadIdx.x] = 0;
    __syncthreads();
    for (int turn = 0; turn < TURNS; turn++) {
        int64_t i = first + turn * ETK_WARP;
        uint32_t digit = i < n ? key[i] >> shift & (DIGITS - 1) : 0;
        uint32_t peers = lanes_of(digit, i < n);
        if (peers && __ffs((int)peers) - 1 == lane)
            place[warp][digit] += __popc(peers);
        __syncwarp();
    }
    __syncthreads();
    uint32_t at = before[(int64_t)threadIdx.x * gridDim.x + blockIdx.x];
    for (int w = 0; w < WARPS; w++) {
        uint32_t own = place[w][threadIdx.x];
        place[w][threadIdx.x] = at;
        at += own;
    }
    __syncthreads();
    for (int turn = 0; turn < TURNS; turn++) {
        int64_t i = first + turn * ETK_WARP;
        uint32_t own = i < n ? key[i] : 0, digit = own >> shift & (DIGITS - 1);
        uint32_t peers = lanes_of(digit, i < n);
        if (peers) {
            uint32_t to = place[warp][digit] + __popc(peers & ((1u << lane) - 1));
            key_to[to] = own;
            token_to[to] = token[i];
        }
        __syncwarp();
        if (peers && __ffs((int)peers) - 1 == lane)
            place[warp][digit] += __popc(peers);
        __syncwarp();
    }
}

/* ---- summing ---- */

struct sum_arg {
    etk_space<3> tokens;
    etk_space<2> columns;
    int64_t scale;
    uint32_t outside;
};

enum { COLUMNS = 128, AHEAD = 8 };

template <class T, int LANES>
static __device__ __forceinline__ void
store(T *to, const float (&v)[LANES])
{
    etk_pack<T, LANES> p;
#pragma unroll
    for (int j = 0; j < LANES; j++)
        p.v[j] = etk_down<T>(v[j]);
    *(etk_pack<T, LANES> *)to = p;
}

/* Block (r, b) sums the sorted positions ETK_RUN r .. below their count, in order;
 * thread t does columns (packs) t, t + all threads of b, ... below the columns' count.
 * A run of equal keys that begins and ends here goes to y; one that began before to
 * part 2 r, one that goes on behind to part 2 r + 1. */
template <class T, int LANES>
static __global__ void __launch_bounds__(COLUMNS, 4)
    sum_runs(const T *__restrict__ x, T *__restrict__ y,
             const uint32_t *__restrict__ key, const uint32_t *__restrict__ token,
             float *__restrict__ part, const __grid_constant__ sum_arg g)
{
    __shared__ uint32_t own[ETK_RUN + 1];
    __shared__ int64_t from[ETK_RUN];
    int64_t n = g.tokens.count, first = (int64_t)blockIdx.x * ETK_RUN;
    int count = n - first < ETK_RUN ? (int)(n - first) : ETK_RUN;
    for (int i = threadIdx.x; i <= ETK_RUN; i += COLUMNS) {
        own[i] = first + i < n ? key[first + i] : g.outside;
        int64_t at[3] = {0, 0, 0};
        if (i < count)
            etk_offsets(g.tokens, token[first + i], at);
        if (i < ETK_RUN)
            from[i] = at[1];
    }
    __syncthreads();
    bool goes_on = first > 0 && key[first - 1] == own[0];
    for (int64_t c = (int64_t)blockIdx.y * COLUMNS + threadIdx.x; c < g.columns.count;
         c += (int64_t)gridDim.y * COLUMNS) {
        int64_t at[2];
        etk_offsets(g.columns, c, at);
        float sum[LANES] = {};
        for (int i = 0; i < count && own[i] != g.outside; i += AHEAD) {
            etk_pack<T, LANES> v[AHEAD];
#pragma unroll
            for (int k = 0; k < AHEAD; k++)
                if (i + k < count)
                    v[k] = *(const etk_pack<T, LANES> *)(x + from[i + k] + at[1]);
#pragma unroll
            for (int k = 0; k < AHEAD; k++) {
                if (i + k >= count || own[i + k] == g.outside)
                    continue;
                uint32_t one = own[i + k];
#pragma unroll
                for (int j = 0; j < LANES; j++)
                    sum[j] += etk_up(v[k].v[j]);
                bool last = i + k == count - 1, ends = own[i + k + 1] != one;
                if (!ends && !last)
                    continue;
                bool began = goes_on && one == own[0];
                if (ends && !began)
                    store<T, LANES>(y + at[0] + one * g.scale, sum);
                else
                    store<float, LANES>(
                        part +
                            ((2 * (int64_t)blockIdx.x + !began) * g.columns.count + c) *
                                LANES,
                        sum);
#pragma unroll
                for (int j = 0; j < LANES; j++)
                    sum[j] = 0;
            }
        }
    }
}

/* Block (r, b): adds the part of the run of equal keys that begins in r and goes on
 * behind it to those of the blocks that follow, in order, and stores the sum; blocks
 * without such a run have nothing to do. Columns as above. */
template <class T, int LANES>
static __global__ void __launch_bounds__(COLUMNS, 4)
    join_runs(T *__restrict__ y, const uint32_t *__restrict__ key,
              const float *__restrict__ part, const __grid_constant__ sum_arg g)
{
    int64_t n = g.tokens.count, first = (int64_t)blockIdx.x * ETK_RUN;
    int64_t end = first + ETK_RUN;
    if (end >= n)
        return;
    uint32_t own = key[end - 1];
    if (own == g.outside || key[end] != own || (first > 0 && key[first - 1] == own))
        return;
    int64_t low = end, high = n; /* key[low] is own; where it ends, between them */
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (key[middle] == own)
            low = middle;
        else
            high = middle;
    }
    int64_t last = low / ETK_RUN;
    for (int64_t c = (int64_t)blockIdx.y * COLUMNS + threadIdx.x; c < g.columns.count;
         c += (int64_t)gridDim.y * COLUMNS) {
        typedef etk_pack<float, LANES> pack;
        int64_t at[2];
        etk_offsets(g.columns, c, at);
        pack v =
            ((const pack *)part)[(2 * (int64_t)blockIdx.x + 1) * g.columns.count + c];
#pragma unroll 4
        for (int64_t r = blockIdx.x + 1; r <= last; r++) {
            pack more = ((const pack *)part)[2 * r * g.columns.count + c];
#pragma unroll
            for (int j = 0; j < LANES; j++)
                v.v[j] += more.v[j];
        }
        store<T, LANES>(y + at[0] + own * g.scale, v.v);
    }
}

/* Thread t writes elements t, t + threads, ... of all. */
template <class T>
static __global__ void __launch_bounds__(THREADS)
    clear(T *y, const __grid_constant__ etk_space<1> walk)
{
    for (int64_t i = etk_thread(); i < walk.count; i += etk_threads()) {
        int64_t at[1];
        etk_offsets(walk, i, at);
        y[at[0]] = etk_down<T>(0.0f);
    }
}

struct etk_segment_room
etk_segment_room_of(int64_t tokens, int64_t columns)
{
    struct etk_segment_room room = {};
    size_t list = etk_round_up((size_t)tokens * sizeof(uint32_t));
    size_t tiles = (size_t)etk_ceil_div(tokens, ETK_TILE);
    size_t runs = (size_t)etk_ceil_div(tokens, ETK_RUN);
    room.key[1] = list;
    room.token[0] = 2 * list;
    room.token[1] = 3 * list;
    room.count = 4 * list;
    room.part = room.count + etk_round_up(tiles * DIGITS * sizeof(uint32_t));
    room.bytes = room.part;
    if (runs > 1)
        room.bytes += 2 * runs * (size_t)columns * sizeof(float);
    return room;
}

static cudaError_t
sort(const struct etk_segment *s, const etk_space<3> &tokens, const int32_t *index,
     const struct etk_segment_room &room, char *ws, cudaStream_t stream)
{
    int64_t n = s->tokens.count;
    unsigned tiles = (unsigned)etk_ceil_div(n, ETK_TILE);
    uint32_t *key[2], *token[2], *count = (uint32_t *)(ws + room.count);
    for (int i = 0; i < 2; i++) {
        key[i] = (uint32_t *)(ws + room.key[i]);
        token[i] = (uint32_t *)(ws + room.token[i]);
    }
    cudaError_t code =
        etk_launch(make_keys, etk_blocks(n, 2, THREADS, s->sm_count), THREADS, 0,
                   stream, index, key[0], token[0], s->n, s->step, s->outside, tokens);
    for (int pass = 0; pass < s->passes && code == cudaSuccess; pass++) {
        int from = pass & 1, shift = pass * ETK_DIGIT;
        code = etk_launch(count_digits, tiles, THREADS, 0, stream, key[from], count, n,
                          shift);
        if (code == cudaSuccess)
            code = etk_launch(sum_before, 1, SCAN, 0, stream, count,
                              (int64_t)tiles * DIGITS);
        if (code == cudaSuccess)
            code = etk_launch(move_digits, tiles, THREADS, 0, stream, key[from],
                              token[from], count, key[!from], token[!from], n, shift);
    }
    return code;
}

template <class T, int LANES>
static cudaError_t
launch_sum(const struct etk_segment *s, const void *x, const int32_t *index, void *y,
           char *ws, cudaStream_t stream)
{
    int64_t n = s->tokens.count, columns = s->columns.count;
    struct etk_segment_room room = etk_segment_room_of(n, columns * LANES);
    sum_arg g = {};
    g.tokens = etk_space_of<3>(&s->tokens);
    g.columns = etk_space_of<2>(&s->columns);
    g.scale = s->scale;
    g.outside = s->outside;
    cudaError_t code = sort(s, g.tokens, index, room, ws, stream);
    if (code != cudaSuccess)
        return code;
    const uint32_t *key = (const uint32_t *)(ws + room.key[s->passes & 1]);
    const uint32_t *token = (const uint32_t *)(ws + room.token[s->passes & 1]);
    int64_t wide = etk_ceil_div(columns, COLUMNS);
    dim3 grid((unsigned)etk_ceil_div(n, ETK_RUN),
              (unsigned)(wide < 65535 ? wide : 65535));
    /* With one run there are no parts, nor room for them. */
    float *part = grid.x > 1 ? (float *)(ws + room.part) : NULL;
    code = etk_launch(sum_runs<T, LANES>, grid, COLUMNS, 0, stream, (const T *)x,
                      (T *)y, key, token, part, g);
    if (code != cudaSuccess || grid.x == 1)
        return code;
    return etk_launch(join_runs<T, LANES>, grid, COLUMNS, 0, stream, (T *)y, key,
                      (const float *)part, g);
}

template <class T>
static cudaError_t
launch_segment(const struct etk_segment *s, bool packs, const void *x,
               const int32_t *index, void *y, void *ws, cudaStream_t stream)
{
    cudaError_t code;
    if (s->dense)
        code = cudaMemsetAsync(y, 0, (size_t)s->clear.count * sizeof(T), stream);
    else
        code = etk_launch(clear<T>, etk_blocks(s->clear.count, 4, THREADS, s->sm_count),
                          THREADS, 0, stream, (T *)y, etk_space_of<1>(&s->clear));
    if (code != cudaSuccess || s->tokens.count == 0)
        return code;
    return packs
               ? launch_sum<T, etk_lanes<T>::count>(s, x, index, y, (char *)ws, stream)
               : launch_sum<T, 1>(s, x, index, y, (char *)ws, stream);
}

cudaError_t
etk_launch_segment(const struct etk_segment *s, bool packs, const void *x,
                   const int32_t *index, void *y, void *ws, cudaStream_t stream)
{
    return ETK_FLOATS(s->dtype, launch_segment, s, packs, x, index, y, ws, stream);
}

/* ---- a thread a line ---- */

struct scatter_arg {
    etk_space<3> lines;
    int64_t m, n, to, from, by;
};

/* Thread t clears line t of the sums, adds its elements in order, and stores them where
 * they were not summed in y. Nothing else touches the line; lines beside each other are
 * neighbours in SUMS. */
template <class T>
static __global__ void __launch_bounds__(THREADS)
    scatter(const T *__restrict__ x0, const int32_t *__restrict__ index0,
            T *__restrict__ y0, float *sums, const __grid_constant__ scatter_arg g)
{
    int64_t line = etk_thread(), at[3];
    if (line >= g.lines.count)
        return;
    etk_offsets(g.lines, line, at);
    const T *x = x0 + at[1];
    const int32_t *index = index0 + at[2];
    T *y = y0 + at[0];
    float *sum = sums ? sums + line : (float *)y;
    int64_t apart = sums ? g.lines.count : g.to;
    for (int64_t k = 0; k < g.n; k++)
        sum[k * apart] = 0;
    for (int64_t i = 0; i < g.m; i++) {
        int64_t to = index[i * g.by];
        if (to >= 0 && to < g.n)
            sum[to * apart] += etk_up(x[i * g.from]);
    }
    for (int64_t k = 0; sums && k < g.n; k++)
        y[k * g.to] = etk_down<T>(sum[k * apart]);
}

template <class T>
static cudaError_t
launch_scatter(const struct etk_scatter *s, const void *x, const int32_t *index,
               void *y, float *sums, cudaStream_t stream)
{
    scatter_arg g = {};
    g.lines = etk_space_of<3>(&s->lines);
    g.m = s->m;
    g.n = s->n;
    g.to = s->to;
    g.from = s->from;
    g.by = s->by;
    return etk_launch(scatter<T>, (unsigned)etk_ceil_div(g.lines.count, THREADS),
                      THREADS, 0, stream, (const T *)x, index, (T *)y, sums, g);
}

cudaError_t
etk_launch_scatter(const struct etk_scatter *s, const void *x, const int32_t *index,
                   void *y, float *sums, cudaStream_t stream)
{
    return ETK_FLOATS(s->dtype, launch_scatter, s, x, index, y, sums, stream);
}
