/* SPDX-License-Identifier: Apache-2.0 */
/* rng.c: draws from Philox positions. See rng.h. */
#include "etude/rng.h"

#include <math.h>

uint64_t
et_rng_key(uint32_t seed, enum et_rng_stream stream)
{
    return (uint64_t)stream << 32 | seed;
}

struct et_rng
et_rng_at(uint32_t seed, enum et_rng_stream stream, uint64_t index)
{
    return (struct et_rng){.key = et_rng_key(seed, stream), .index = index};
}

uint32_t
et_rng_u32(struct et_rng *r)
{
    if (!r)
        return 0;
    if (r->left == 0) {
        et_philox(r->word, r->key, r->index, r->ordinal++);
        r->left = 4;
    }
    return r->word[4 - r->left--];
}

uint64_t
et_rng_u64(struct et_rng *r)
{
    if (!r)
        return 0;
    uint64_t low = et_rng_u32(r);
    return low | (uint64_t)et_rng_u32(r) << 32;
}

double
et_rng_uniform(struct et_rng *r)
{
    if (!r)
        return 0;
    return (double)(et_rng_u64(r) >> 11) * 0x1p-53;
}

float
et_rng_uniform_f32(struct et_rng *r)
{
    if (!r)
        return 0;
    return (float)(et_rng_u32(r) >> 8) * 0x1p-24f;
}

double
et_rng_normal(struct et_rng *r)
{
    if (!r)
        return 0;
    /* Box-Muller; the second value is not kept, so that a draw has a fixed cost. */
    double u = 1.0 - et_rng_uniform(r); /* (0, 1] */
    double v = et_rng_uniform(r);
    return sqrt(-2.0 * log(u)) * cos(2.0 * M_PI * v);
}

uint64_t
et_rng_below(struct et_rng *r, uint64_t n)
{
    if (!r)
        return 0;
    /* Rejection from the top, so that every value is equally likely. */
    uint64_t limit = UINT64_MAX - UINT64_MAX % n;
    uint64_t x;
    do
        x = et_rng_u64(r);
    while (x >= limit);
    return x % n;
}

/* Marsaglia and Tsang, "A simple method for generating gamma variables", 2000; for
 * shapes below 1 the boost of its section 6. Returns log(gamma) so that tiny shapes do
 * not underflow. */
static double
log_gamma_draw(struct et_rng *r, double shape)
{
    double boost = 0;
    if (shape < 1) {
        boost = log(1.0 - et_rng_uniform(r)) / shape;
        shape += 1;
    }
    double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double x = et_rng_normal(r), v = 1 + c * x;
        if (v <= 0)
            continue;
        v = v * v * v;
        double u = 1.0 - et_rng_uniform(r);
        if (log(u) < 0.5 * x * x + d - d * v + d * log(v))
            return log(d * v) + boost;
    }
}

double
et_rng_beta(struct et_rng *r, double a, double b)
{
    if (!r)
        return 0;
    double x = log_gamma_draw(r, a), y = log_gamma_draw(r, b);
    return 1 / (1 + exp(y - x));
}

void
et_rng_dirichlet(struct et_rng *r, double alpha, double *out, int64_t n)
{
    double most = -INFINITY, sum = 0;
    if (!r || !out)
        return;
    for (int64_t i = 0; i < n; i++) {
        out[i] = log_gamma_draw(r, alpha);
        most = fmax(most, out[i]);
    }
    for (int64_t i = 0; i < n; i++)
        sum += out[i] = exp(out[i] - most);
    for (int64_t i = 0; i < n; i++)
        out[i] /= sum;
}

void
et_rng_permutation(struct et_rng *r, int32_t *out, int64_t n)
{
    if (!r || (n > 0 && !out))
        return;
    for (int64_t i = 0; i < n; i++) {
        int64_t j = (int64_t)et_rng_below(r, (uint64_t)i + 1);
        out[i] = out[j];
        out[j] = (int32_t)i;
    }
}
