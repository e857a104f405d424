/* SPDX-License-Identifier: Apache-2.0 */
/* noise.h: the pictures of t/golden/make_pictures.py, and the numbers they are made
 * of. */
#ifndef ETUDE_T_IMAGE_NOISE_H
#define ETUDE_T_IMAGE_NOISE_H

#include "core/image/pixels.h"

enum { NOISE_MOST = 30 * 28 * 3 }; /* bytes of the largest */

/* Number I of the stream, in [0, 1): golden.py's unit. */
double noise_unit(uint64_t stream, uint64_t i);
/* The picture NAME in OUT [NOISE_MOST], which works in ROOM. Bails out without one. */
struct et_canvas noise_picture(const char *name, uint8_t *out,
                               struct eti_scratch *room);

#endif
