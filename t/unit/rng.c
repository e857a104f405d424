/* SPDX-License-Identifier: Apache-2.0 */
/* Philox draws: known answers, range, independence of streams, distributions. */
#include "etude/rng.h"
#include "t/tap.h"

#include <math.h>
#include <stdlib.h>

/* Mean and variance of a draw with mean M from parameters whose sum is A0, as beta and
 * Dirichlet distributions have them. */
struct share {
    double sum, squares;
};

static void
count_share(struct share *s, double x, double m)
{
    s->sum += x;
    s->squares += (x - m) * (x - m);
}

static void
is_share(const struct share *s, int n, double m, double a0, const char *what)
{
    const double variance = m * (1 - m) / (a0 + 1);
    /* Five standard errors; a square in [0, 1] deviates by its mean's root at most. */
    is_near(s->sum / n, m, 5 * sqrt(variance / n), "%s has the mean %g", what, m);
    is_near(s->squares / n, variance, 5 * sqrt(variance / n) * fmax(m, 1 - m),
            "the draws have the variance %g", variance);
}

static void
test_shares(struct et_rng *r)
{
    enum { N = 20000 };
    static const double beta[][2] = {{2, 3}, {0.5, 1.5}, {4, 0.25}};
    for (int k = 0; k < 3; k++) {
        const double a0 = beta[k][0] + beta[k][1], m = beta[k][0] / a0;
        struct share s = {0};
        for (int i = 0; i < N; i++)
            count_share(&s, et_rng_beta(r, beta[k][0], beta[k][1]), m);
        is_share(&s, N, m, a0, "a beta draw");
    }
    static const double alpha[] = {0.5, 8};
    for (int k = 0; k < 2; k++) {
        struct share s[3] = {{0, 0}};
        double worst = 0, x[3];
        for (int i = 0; i < N; i++) {
            et_rng_dirichlet(r, alpha[k], x, 3);
            worst = fmax(worst, fabs(x[0] + x[1] + x[2] - 1));
            for (int j = 0; j < 3; j++)
                count_share(&s[j], x[j], 1.0 / 3);
        }
        is_near(worst, 0, 1e-12, "Dirichlet draws add up to 1");
        for (int j = 0; j < 3; j++)
            is_share(&s[j], N, 1.0 / 3, 3 * alpha[k], "one of three Dirichlet draws");
    }
    int odd = 0, high = 0;
    for (int i = 0; i < 1000; i++) {
        double x = et_rng_beta(r, 1e-3, 1e-3), y[2];
        et_rng_dirichlet(r, 1e-3, y, 2);
        odd += !(x >= 0 && x <= 1) || !(y[0] >= 0 && y[0] + y[1] <= 1 + 1e-12);
        high += x > 0.5;
    }
    ok(odd == 0 && high > 400 && high < 600,
       "draws with tiny parameters stay in [0, 1] and come out on both sides");
}

int
main(void)
{
    /* Known answers of Philox-4x32-10 from the Random123 distribution (kat_vectors). */
    uint32_t w[4];
    et_philox(w, 0, 0, 0);
    ok(w[0] == 0x6627e8d5 && w[1] == 0xe169c58d && w[2] == 0xbc57ac4c &&
           w[3] == 0x9b00dbd8,
       "Philox of all zeros is the published answer");
    et_philox(w, 0xffffffffffffffff, 0xffffffffffffffff, 0xffffffffffffffff);
    ok(w[0] == 0x408f276d && w[1] == 0x41c83b0e && w[2] == 0xa20bc7c6 &&
           w[3] == 0x6d5451fd,
       "Philox of all ones is the published answer");
    et_philox(w, 0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88);
    ok(w[0] == 0xd16cfe09 && w[1] == 0x94fdcceb && w[2] == 0x5001e420 &&
           w[3] == 0x24126ea1,
       "Philox of the digits of pi is the published answer");

    struct et_rng a = et_rng_at(17, ET_RNG_MIX, 5), b = et_rng_at(17, ET_RNG_MIX, 5);
    struct et_rng c = et_rng_at(17, ET_RNG_SELECT, 5), d = et_rng_at(17, ET_RNG_MIX, 6);
    uint64_t x = et_rng_u64(&a);
    ok(x == et_rng_u64(&b), "the same place in the same stream gives the same draw");
    ok(x != et_rng_u64(&c), "another stream gives another draw");
    ok(x != et_rng_u64(&d), "another index gives another draw");

    enum { N = 200000 };
    double sum = 0, squares = 0, beta = 0, low = 1, high = 0;
    for (int i = 0; i < N; i++) {
        double z = et_rng_normal(&a), u = et_rng_uniform(&a);
        sum += z;
        squares += z * z;
        beta += et_rng_beta(&a, 2, 3);
        low = fmin(low, u);
        high = fmax(high, u);
    }
    /* Five standard errors of each mean. */
    is_near(sum / N, 0, 5 / sqrt(N), "normal draws have mean 0");
    is_near(squares / N, 1, 5 * sqrt(2.0 / N), "normal draws have variance 1");
    is_near(beta / N, 0.4, 5 * 0.2 / sqrt(N), "Beta(2, 3) draws have mean 2/5");
    ok(low >= 0 && low < 1e-3 && high < 1 && high > 1 - 1e-3,
       "uniform draws fill [0, 1)");

    int count[3] = {0};
    for (int i = 0; i < N; i++)
        count[et_rng_below(&a, 3)]++;
    ok(count[0] + count[1] + count[2] == N && abs(count[0] - N / 3) < 5 * sqrt(N),
       "bounded draws are even");
    int32_t p[100], seen[100] = {0};
    et_rng_permutation(&a, p, 100);
    bool moved = false;
    for (int i = 0; i < 100; i++) {
        seen[p[i]]++;
        moved |= p[i] != i;
    }
    bool once = true;
    for (int i = 0; i < 100; i++)
        once &= seen[i] == 1;
    ok(once && moved, "a permutation holds every index once");
    test_shares(&a);
    return done();
}
