/* SPDX-License-Identifier: Apache-2.0 */
/* order.c: a keyed permutation of 0 .. n-1.
 *
 * The index is split into two halves (H, L) of about b/2 bits, 2^b the least power of
 * two that is >= n. Round r replaces one half by itself XOR F(key_r, other half), which
 * can be undone, so the whole is a permutation of 0 .. 2^b-1. Results >= n are sent
 * through again until one is below (cycle walking: twice at most on average), which
 * leaves a permutation of 0 .. n-1. Any place of any epoch is found at once: a resume
 * or another rank replays nothing, and a billion samples need no table.
 *
 * Source: Luby, Rackoff, "How to construct pseudorandom permutations", SIAM J. Comput.
 * 1988; Black, Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002 (walking);
 * Mitchell, Stokes, Frank, Holmes, 2021, arXiv 2106.06161 (for shuffling).
 * Differs: F is MurmurHash3's 32-bit finaliser (A. Appleby, public domain). */
#include "core/data/order.h"

#include "etude/rng.h"

static uint32_t
mix(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x85ebca6bu;
    x ^= x >> 13;
    x *= 0xc2b2ae35u;
    return x ^ x >> 16;
}

void
eti_order_init(struct eti_order *o, int64_t n, uint32_t seed, int64_t epoch)
{
    o->n = n;
    int bits = 0;
    while (bits < 62 && ((int64_t)1 << bits) < n)
        bits++;
    o->low_bits = bits / 2;
    o->high_bits = bits - o->low_bits;
    struct et_rng r = et_rng_at(seed, ET_RNG_SHUFFLE, (uint64_t)epoch);
    for (int i = 0; i < ETI_ORDER_ROUNDS; i++)
        o->key[i] = et_rng_u32(&r);
}

static int64_t
permute(const struct eti_order *o, int64_t i)
{
    uint32_t low_mask = ((uint32_t)1 << o->low_bits) - 1;
    uint32_t high_mask = ((uint32_t)1 << o->high_bits) - 1;
    uint32_t low = (uint32_t)i & low_mask, high = (uint32_t)(i >> o->low_bits);
    for (int r = 0; r < ETI_ORDER_ROUNDS; r += 2) {
        high ^= mix(low ^ o->key[r]) & high_mask;
        low ^= mix(high ^ o->key[r + 1]) & low_mask;
    }
    return (int64_t)high << o->low_bits | low;
}

int64_t
eti_order_at(const struct eti_order *o, int64_t i)
{
    do
        i = permute(o, i);
    while (i >= o->n);
    return i;
}
