/* SPDX-License-Identifier: Apache-2.0 */
/* blur.h: what makes a pixel of its neighbours: torchvision's functional.v2 on bytes.
 */
#ifndef ETI_IMAGE_BLUR_H
#define ETI_IMAGE_BLUR_H

#include "core/image/pixels.h"

enum { ETI_BLUR_MOST = 63 }; /* width of the largest kernel */

/* A Gaussian of SIGMA pixels, cut to SIZE x SIZE, which is odd and at most
 * ETI_BLUR_MOST; at the edges the picture is mirrored, so that its sides are above SIZE
 * / 2. ENOMEM: in WHY. */
ET_NODISCARD et_status eti_gaussian_blur(struct et_canvas *c, int size, double sigma,
                                         struct et_error *why);
/* Between the picture smoothed, at FACTOR 0, and itself, at 1; beyond, it is sharper.
 * The outermost pixels stay as they are. */
ET_NODISCARD et_status eti_sharpness(struct et_canvas *c, double factor,
                                     struct et_error *why);

#endif
