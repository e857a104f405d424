/* SPDX-License-Identifier: Apache-2.0 */
/* softmax.cu: softmax and its logarithm along an axis, and their gradients.
 *
 *   softmax:      y = e^(x - max) / sum;      dx = y (dy - sum y dy)
 *   log softmax:  y = x - max - log sum;      dx = dy - e^y sum dy
 *
 * A thread, a warp or a block takes a line (etk_lines) and goes over it twice; the
 * second time it comes out of the caches: x is read from memory once and y written
 * once. Teams of one thread take lines that lie beside each other, so that a warp still
 * reads neighbours. */
#include "kernels/cuda/softmax.cuh"
#include "kernels/cuda/softmax.h"

enum { THREADS = ETK_LINE_THREADS };

template <int SIDES> struct softmax_arg {
    etk_space<SIDES> lines;
    int64_t n, step[SIDES];
};

/* Team t takes lines t, t + teams, ... below their count, and its member m the elements
 * that etk_along gives it below n. */
template <class T, int TEAM, bool LOGARITHM>
static __global__ void __launch_bounds__(THREADS, 2)
    softmax(const T *x0, T *y0, const __grid_constant__ softmax_arg<2> g)
{
    enum { LANES = etk_lanes<T>::count };
    __shared__ float slot[ETK_WARP];
    int member = threadIdx.x % TEAM;
    int64_t xs = g.step[0], ys = g.step[1];
    for (int64_t line = etk_first_line<TEAM>(); line < g.lines.count;
         line += etk_lines_apart<TEAM>()) {
        int64_t at[2];
        etk_offsets(g.lines, line, at);
        const T *x = x0 + at[0];
        T *y = y0 + at[1];
        etk_exponentials e = etk_exponentials_of<TEAM>(x, xs, g.n, member, slot);
        float scale = 1 / e.sum, shift = logf(e.sum);
        auto value = [&](T v) {
            float z = etk_up(v) - e.max;
            return etk_down<T>(LOGARITHM ? z - shift : __expf(z) * scale);
        };
        etk_along<TEAM>(
            x, g.n, member, xs == 1 && ys == 1 && etk_together(x, y),
            [&](int64_t c) {
                etk_pack<T, LANES> v = etk_load_pack(x + c);
#pragma unroll
                for (int j = 0; j < LANES; j++)
                    v.v[j] = value(v.v[j]);
                etk_store_pack(y + c, v);
            },
            [&](int64_t c) { y[c * ys] = value(x[c * xs]); });
    }
}

/* As above. */
template <class T, int TEAM, bool LOGARITHM>
static __global__ void __launch_bounds__(THREADS, 2)
    softmax_grad(const T *dy0, const T *y0, T *dx0,
                 const __grid_constant__ softmax_arg<3> g)
{
    enum { LANES = etk_lanes<T>::count };
    __shared__ float slot[ETK_WARP];
    int member = threadIdx.x % TEAM;
    int64_t ds = g.step[0], ys = g.step[1], xs = g.step[2];
    for (int64_t line = etk_first_line<TEAM>(); line < g.lines.count;
         line += etk_lines_apart<TEAM>()) {
        int64_t at[3];
        etk_offsets(g.lines, line, at);
        const T *dy = dy0 + at[0], *y = y0 + at[1];
        T *dx = dx0 + at[2];
        bool wide = ds == 1 && ys == 1 && xs == 1 && etk_together(dy, y) &&
                    etk_together(dy, dx);
        float sum = 0;
        auto add = [&](T d, T v) {
            sum += LOGARITHM ? etk_up(d) : etk_up(d) * etk_up(v);
        };
        etk_along<TEAM>(
            dy, g.n, member, wide,
            [&](int64_t c) {
                etk_pack<T, LANES> d = etk_load_pack(dy + c), v = d;
                if (!LOGARITHM)
                    v = etk_load_pack(y + c);
#pragma unroll
                for (int j = 0; j < LANES; j++)
                    add(d.v[j], v.v[j]);
            },
            [&](int64_t c) { add(dy[c * ds], y[c * ys]); });
        sum = etk_team_reduce<TEAM>(sum, etk_plus(), 0.0f, slot);
        auto value = [&](T d, T v) {
            float u = etk_up(d), w = etk_up(v);
            return etk_down<T>(LOGARITHM ? u - expf(w) * sum : w * (u - sum));
        };
        etk_along<TEAM>(
            dy, g.n, member, wide,
            [&](int64_t c) {
                etk_pack<T, LANES> d = etk_load_pack(dy + c), v = etk_load_pack(y + c);
#pragma unroll
                for (int j = 0; j < LANES; j++)
                    d.v[j] = value(d.v[j], v.v[j]);
                etk_store_pack(dx + c, d);
            },
            [&](int64_t c) { dx[c * xs] = value(dy[c * ds], y[c * ys]); });
    }
}

template <int SIDES>
static softmax_arg<SIDES>
arg_of(const struct etk_lines *l)
{
    softmax_arg<SIDES> g = {};
    g.lines = etk_space_of<SIDES>(&l->rest);
    g.n = l->n;
    for (int i = 0; i < SIDES; i++)
        g.step[i] = l->step[i];
    return g;
}

template <class T, int TEAM, bool LOGARITHM>
static cudaError_t
launch_team(const struct etk_softmax *s, void *const *ptr, cudaStream_t stream)
{
    unsigned grid = etk_line_blocks(s->lines.rest.count, TEAM);
    if (s->grad)
        return etk_launch(softmax_grad<T, TEAM, LOGARITHM>, grid, THREADS, 0, stream,
                          (const T *)ptr[0], (const T *)ptr[1], (T *)ptr[2],
                          arg_of<3>(&s->lines));
    return etk_launch(softmax<T, TEAM, LOGARITHM>, grid, THREADS, 0, stream,
                      (const T *)ptr[0], (T *)ptr[1], arg_of<2>(&s->lines));
}

template <class T, bool LOGARITHM>
static cudaError_t
launch_some(const struct etk_softmax *s, void *const *ptr, cudaStream_t stream)
{
    return s->lines.team == 1    ? launch_team<T, 1, LOGARITHM>(s, ptr, stream)
           : s->lines.team == 32 ? launch_team<T, 32, LOGARITHM>(s, ptr, stream)
                                 : launch_team<T, THREADS, LOGARITHM>(s, ptr, stream);
}

template <class T>
static cudaError_t
launch(const struct etk_softmax *s, void *const *ptr, cudaStream_t stream)
{
    return s->logarithm ? launch_some<T, true>(s, ptr, stream)
                        : launch_some<T, false>(s, ptr, stream);
}

cudaError_t
etk_launch_softmax(const struct etk_softmax *s, void *const *ptr, cudaStream_t stream)
{
    return ETK_FLOATS(s->dtype, launch, s, ptr, stream);
}
