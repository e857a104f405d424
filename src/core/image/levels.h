/* SPDX-License-Identifier: Apache-2.0 */
/* levels.h: what changes pixels one by one, in place: torchvision's functional.v2 on
 * bytes.
 *
 * Canvases have one channel or three, which are red, green, blue. Values are computed
 * in float as torchvision does, and cut off, not rounded, where it does so. */
#ifndef ETI_IMAGE_LEVELS_H
#define ETI_IMAGE_LEVELS_H

#include "core/image/pixels.h"
#include "etude/rng.h"

/* Each value times FACTOR. */
void eti_brightness(struct et_canvas *c, double factor);
/* Between the mean of the brightness, at FACTOR 0, and the picture, at 1. */
void eti_contrast(struct et_canvas *c, double factor);
/* Between the picture in grey, at FACTOR 0, and itself. One channel stays as it is. */
void eti_saturation(struct et_canvas *c, double factor);
/* Turns the hue by SHIFT of a full turn. One channel stays as it is. */
void eti_hue(struct et_canvas *c, double shift);
/* All channels become 0.2989 R + 0.587 G + 0.114 B. */
void eti_grey(struct et_canvas *c);
/* 255 - v. */
void eti_invert(struct et_canvas *c);
/* Keeps the upper BITS of each value. */
void eti_posterize(struct et_canvas *c, int bits);
/* Inverts the values that are THRESHOLD at least. */
void eti_solarize(struct et_canvas *c, double threshold);
/* Stretches each channel to 0 .. 255. */
void eti_autocontrast(struct et_canvas *c);
/* Gives each channel an even histogram. */
void eti_equalize(struct et_canvas *c);
/* Adds to each value MEAN + SIGMA z, of 255; z of R has mean 0 and variance 1. */
void eti_noise(struct et_canvas *c, double mean, double sigma, struct et_rng *r);
/* Fills the part h x w at (Y, X) with C values, or where they are NULL with values that
 * R draws evenly. */
void eti_erase(struct et_canvas *c, int64_t y, int64_t x, int64_t h, int64_t w,
               const uint8_t *values, struct et_rng *r);

#endif
