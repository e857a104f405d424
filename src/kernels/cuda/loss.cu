/* SPDX-License-Identifier: Apache-2.0 */
/* loss.cu: cross entropy of each position, and its gradient, in one reading of the
 * logits each: f32 logits are never written.
 *
 *   lse = log sum_c e^(z_c)
 *   index t:         loss = w_t (lse - z_t); 0 where t is ignored, NaN where t is no
 *                    class
 *   distribution t:  loss = sum_c w_c t_c (lse - z_c)
 *   dz_c = dloss (e^(z_c - lse) sum_k w_k t_k - w_c t_c)
 *
 * A team of threads takes a position (etk_lines). For indices forward reads C logits
 * and the gradient reads and writes them: 3 passes of C in all, in their own dtype
 * (llm.c's fused classifier: 2, as one kernel). For distributions a second pass over
 * the line comes out of the caches. dlogits may take the place of the logits: each
 * thread reads what it then writes.
 *
 * __expf errs by 2 + 1.17 |x| units in the last place of a probability e^x; the
 * probabilities that dz weighs beside its largest element are those of small |x|. */
#include "kernels/cuda/softmax.cuh"
#include "kernels/cuda/softmax.h"

enum { THREADS = ETK_LINE_THREADS };

/* In the order of the sides. */
enum { LOGITS, TARGET, LOSS, LSE, DLOGITS };

struct loss_arg {
    etk_space<5> lines;
    int64_t n, step[5], weight_step, ignore;
    const void *weight;
    int target, loss, lse, weights; /* dtypes */
};

static __device__ __forceinline__ float
weight_of(const loss_arg &g, int64_t c)
{
    return g.weight ? etk_load_any(g.weight, g.weights, c * g.weight_step) : 1;
}

/* w_c t_c of a distribution that begins at AT. */
static __device__ __forceinline__ float
share_of(const loss_arg &g, const void *target, int64_t at, int64_t c)
{
    float t = etk_load_any(target, g.target, at + c * g.step[TARGET]);
    return g.weight ? t * weight_of(g, c) : t;
}

/* Team t takes positions t, t + teams, ... below their count; its member m the classes
 * that etk_along gives it below n. An index is compared with n before it is used. */
template <class T, int TEAM, bool DENSE>
static __global__ void __launch_bounds__(THREADS, 2)
    cross_entropy(const T *logits, const void *target, void *loss, void *lse,
                  const __grid_constant__ loss_arg g)
{
    enum { LANES = etk_lanes<T>::count };
    __shared__ float slot[ETK_WARP];
    int member = threadIdx.x % TEAM;
    int64_t zs = g.step[LOGITS];
    for (int64_t line = etk_first_line<TEAM>(); line < g.lines.count;
         line += etk_lines_apart<TEAM>()) {
        int64_t at[5];
        etk_offsets(g.lines, line, at);
        const T *z = logits + at[LOGITS];
        etk_exponentials e = etk_exponentials_of<TEAM>(z, zs, g.n, member, slot);
        float all = e.lse(), value = 0;
        if (DENSE) {
            auto add = [&](int64_t c, T v) {
                float w = share_of(g, target, at[TARGET], c);
                if (w != 0)
                    value += w * (all - etk_up(v));
            };
            etk_along<TEAM>(
                z, g.n, member, zs == 1,
                [&](int64_t c) {
                    etk_pack<T, LANES> v = etk_load_pack(z + c);
#pragma unroll
                    for (int j = 0; j < LANES; j++)
                        add(c + j, v.v[j]);
                },
                [&](int64_t c) { add(c, z[c * zs]); });
            value = etk_team_reduce<TEAM>(value, etk_plus(), 0.0f, slot);
        } else {
            int64_t t = ((const int32_t *)target)[at[TARGET]];
            if (t == g.ignore) {
                value = 0;
            } else if (t < 0 || t >= g.n) {
                value = NAN;
            } else {
                float w = weight_of(g, t);
                value = w != 0 ? w * (all - etk_up(z[t * zs])) : 0;
            }
        }
        if (member == 0 && loss)
            etk_store_any(loss, g.loss, at[LOSS], value);
        if (member == 0 && lse)
            etk_store_any(lse, g.lse, at[LSE], all);
    }
}

/* As above; dlogits may be the logits, so neither is __restrict__. */
template <class T, int TEAM, bool DENSE>
static __global__ void __launch_bounds__(THREADS, 2)
    cross_entropy_grad(const T *logits, const void *target, const void *dloss,
                       const void *lse, T *dlogits, const __grid_constant__ loss_arg g)
{
    enum { LANES = etk_lanes<T>::count };
    __shared__ float slot[ETK_WARP];
    int member = threadIdx.x % TEAM;
    int64_t zs = g.step[LOGITS], ds = g.step[DLOGITS];
    for (int64_t line = etk_first_line<TEAM>(); line < g.lines.count;
         line += etk_lines_apart<TEAM>()) {
        int64_t at[5], t = -1;
        etk_offsets(g.lines, line, at);
        const T *z = logits + at[LOGITS];
        T *dz = dlogits + at[DLOGITS];
        float d = etk_load_any(dloss, g.loss, at[LOSS]);
        float all = etk_load_any(lse, g.lse, at[LSE]), sum = 0;
        bool ignored = false, wrong = false;
        if (DENSE) {
            for (int64_t c = member; c < g.n; c += TEAM)
                sum += share_of(g, target, at[TARGET], c);
            sum = etk_team_reduce<TEAM>(sum, etk_plus(), 0.0f, slot);
        } else {
            t = ((const int32_t *)target)[at[TARGET]];
            ignored = t == g.ignore;
            wrong = !ignored && (t < 0 || t >= g.n);
            sum = ignored || wrong ? 0 : weight_of(g, t);
        }
        auto value = [&](int64_t c, T v) {
            float w = DENSE ? share_of(g, target, at[TARGET], c) : c == t ? sum : 0;
            float dv = d * (__expf(etk_up(v) - all) * sum - w);
            return etk_down<T>(ignored ? 0.0f : wrong ? NAN : dv);
        };
        etk_along<TEAM>(
            z, g.n, member, zs == 1 && ds == 1 && etk_together(z, dz),
            [&](int64_t c) {
                etk_pack<T, LANES> v = etk_load_pack(z + c);
#pragma unroll
                for (int j = 0; j < LANES; j++)
                    v.v[j] = value(c + j, v.v[j]);
                etk_store_pack(dz + c, v);
            },
            [&](int64_t c) { dz[c * ds] = value(c, z[c * zs]); });
    }
}

template <class T, int TEAM, bool DENSE>
static cudaError_t
launch_team(const struct etk_cross_entropy *c, void *const *ptr, const void *weight,
            cudaStream_t stream)
{
    loss_arg g = {};
    unsigned grid = etk_line_blocks(c->lines.rest.count, TEAM);
    g.lines = etk_space_of<5>(&c->lines.rest);
    g.n = c->lines.n;
    for (int i = 0; i < 5; i++)
        g.step[i] = c->lines.step[i];
    g.weight = weight;
    g.weight_step = c->weight_step;
    g.ignore = c->ignore;
    g.target = c->target;
    g.loss = c->loss;
    g.lse = c->lse;
    g.weights = c->weight;
    if (c->grad)
        return etk_launch(cross_entropy_grad<T, TEAM, DENSE>, grid, THREADS, 0, stream,
                          (const T *)ptr[LOGITS], (const void *)ptr[TARGET],
                          (const void *)ptr[LOSS], (const void *)ptr[LSE],
                          (T *)ptr[DLOGITS], g);
    return etk_launch(cross_entropy<T, TEAM, DENSE>, grid, THREADS, 0, stream,
                      (const T *)ptr[LOGITS], (const void *)ptr[TARGET], ptr[LOSS],
                      ptr[LSE], g);
}

template <class T, bool DENSE>
static cudaError_t
launch_some(const struct etk_cross_entropy *c, void *const *ptr, const void *weight,
            cudaStream_t stream)
{
    return c->lines.team == 1 ? launch_team<T, 1, DENSE>(c, ptr, weight, stream)
           : c->lines.team == 32
               ? launch_team<T, 32, DENSE>(c, ptr, weight, stream)
               : launch_team<T, THREADS, DENSE>(c, ptr, weight, stream);
}

template <class T>
static cudaError_t
launch(const struct etk_cross_entropy *c, void *const *ptr, const void *weight,
       cudaStream_t stream)
{
    return c->target == ET_I32 ? launch_some<T, false>(c, ptr, weight, stream)
                               : launch_some<T, true>(c, ptr, weight, stream);
}

cudaError_t
etk_launch_cross_entropy(const struct etk_cross_entropy *c, void *const *ptr,
                         const void *weight, cudaStream_t stream)
{
    return ETK_FLOATS(c->dtype, launch, c, ptr, weight, stream);
}
