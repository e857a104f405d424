/* SPDX-License-Identifier: Apache-2.0 */
/* draws.h: rows of random numbers, for first weights.
 *
 * Number i of the row (key, index) is a function of i alone: any part of a row can be
 * drawn by itself, by any thread, and has the same bits on every processor. */
#ifndef ETI_DRAWS_H
#define ETI_DRAWS_H

#include <stdint.h>

/* Parts of rows begin at multiples of this. */
enum { ETI_DRAW_LOT = 64 };

/* Numbers FIRST .. FIRST + N - 1 of the row KEY (et_rng_key), INDEX into OUT, even in
 * [LOW, HIGH). Number i is made of word i of the row's Philox words, as the draws of
 * et_rng_uniform_f32 are. */
void eti_draw_uniform(uint64_t key, uint64_t index, int64_t first, int64_t n,
                      double low, double high, float *out);
/* The same of normal numbers: Box and Muller, "A note on the generation of random
 * normal deviates", 1958, in f32. Words 2i and 2i + 1 make numbers 2i and 2i + 1; of a
 * word the upper 24 bits count, so that no number is further than 5.77 deviations from
 * the mean. */
void eti_draw_normal(uint64_t key, uint64_t index, int64_t first, int64_t n,
                     double mean, double deviation, float *out);

#endif
