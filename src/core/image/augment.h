/* SPDX-License-Identifier: Apache-2.0 */
/* augment.h: the augmentations that AugMix and RandAugment choose from: Pillow's, byte
 * for byte.
 *
 * Canvases have one channel or three, which are red, green, blue. Source: MosaicML
 * Composer, whose functions call Pillow; spec/algorithms.md 1.14. levels.h has
 * torchvision's, which round elsewhere. */
#ifndef ETI_IMAGE_AUGMENT_H
#define ETI_IMAGE_AUGMENT_H

#include "core/image/pixels.h"
#include "etude/functional.h"

enum eti_augment_kind {
    ETI_AUGMENT_AUTOCONTRAST,   /* each channel from 0 to 255 */
    ETI_AUGMENT_EQUALIZE,       /* an even histogram for each channel */
    ETI_AUGMENT_POSTERIZE,      /* value: bits that are kept */
    ETI_AUGMENT_ROTATE,         /* value: whole degrees, counter-clockwise */
    ETI_AUGMENT_SOLARIZE,       /* value: bytes of that at least become 255 - v */
    ETI_AUGMENT_SHEAR_X,        /* value: pixels along x for each row */
    ETI_AUGMENT_SHEAR_Y,        /* value: pixels along y for each column */
    ETI_AUGMENT_TRANSLATE_X,    /* value: pixels that go to the left */
    ETI_AUGMENT_TRANSLATE_Y,    /* value: pixels that go up */
    ETI_AUGMENT_COLOR,          /* value, of this and the next: 0 grey, 1 as it is */
    ETI_AUGMENT_CONTRAST,       /* 0: the mean */
    ETI_AUGMENT_BRIGHTNESS,     /* 0: black */
    ETI_AUGMENT_SHARPNESS,      /* 0: smoothed */
    ETI_AUGMENT_COLOR_ORIGINAL, /* the same, drawn as AugMix's authors do */
    ETI_AUGMENT_CONTRAST_ORIGINAL,
    ETI_AUGMENT_BRIGHTNESS_ORIGINAL,
    ETI_AUGMENT_SHARPNESS_ORIGINAL,
    ETI_AUGMENT_KINDS
};

struct eti_augment {
    enum eti_augment_kind kind;
    double value;
};

extern const char *const eti_augment_sets[]; /* of enum et_augmentation_set, NULL */

/* KIND with the value that two draws in [0, 1) make, for H x W pixels at a level up to
 * SEVERITY. */
struct eti_augment eti_augment_of(enum eti_augment_kind kind, double severity,
                                  int64_t H, int64_t W, const double u[2]);
/* One of SET, evenly, and its value for H x W pixels at a level up to SEVERITY. */
struct eti_augment eti_augment_draw(enum et_augmentation_set set, double severity,
                                    int64_t H, int64_t W, struct et_rng *r);
/* SPARE: as many bytes as the canvas has, to work in. */
void eti_augment_apply(struct et_canvas *c, const struct eti_augment *a,
                       uint8_t *spare);

/* EINVAL where WHO, a method's name, is to change pictures of C channels. */
ET_NODISCARD et_status eti_augment_check(struct et_ctx *cx, const char *who, int C);

#endif
