/* SPDX-License-Identifier: Apache-2.0 */
/* order.h: the order of samples in an epoch, as a function that needs no memory. */
#ifndef ETI_DATA_ORDER_H
#define ETI_DATA_ORDER_H

#include <stdint.h>

enum { ETI_ORDER_ROUNDS = 12 };

/* A permutation of 0 .. n-1. */
struct eti_order {
    int64_t n;
    int low_bits, high_bits; /* of the power of two that holds n */
    uint32_t key[ETI_ORDER_ROUNDS];
};

/* Keyed by (SEED, ET_RNG_SHUFFLE, EPOCH). N >= 1. */
void eti_order_init(struct eti_order *o, int64_t n, uint32_t seed, int64_t epoch);
/* Which sample comes at place I, 0 <= I < n. */
int64_t eti_order_at(const struct eti_order *o, int64_t i);

#endif
