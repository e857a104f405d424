/* SPDX-License-Identifier: Apache-2.0 */
/* transform.h: what is done with a picture on its way into a batch.
 *
 * A transform is one of three kinds, by which of its functions is set:
 *
 *   geometry  what the sample shows of its picture: cut, resized, flipped, turned. It
 *             changes a view; no pixel is touched. Geometry that follows geometry is
 *             one view, and pixels are read once. Masks follow, by the nearest pixel.
 *   pixels    the bytes of the picture: brighter, blurred, with a hole.
 *   values    the numbers that bytes become, such as (x - mean) / std. The last of a
 *             list.
 *
 * What a transform draws comes from R, which is the sample's own and the transform's
 * own: a function of the run's seed, of the sample's place in the order of consumption,
 * and of the transform's place in the list. So a batch is the same from any number of
 * workers and ranks, and a draw more in one transform changes no other.
 *
 * Letters: C channels, H W pixels. */
#ifndef ETUDE_TRANSFORM_H
#define ETUDE_TRANSFORM_H

#include <stdint.h>

#include "etude/attr.h"
#include "etude/ctx.h"
#include "etude/option.h"
#include "etude/rng.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A picture that is somewhere: value (y, x, c) is data[y * stride_y + x * stride_x +
 * c * stride_c]. Strides may be negative; a mask has one channel. Borrowed memory. */
struct et_pixels {
    const uint8_t *data;
    int C;
    int64_t H, W, stride_c, stride_y, stride_x;
};

/* Bytes that lie dense, the channels of a pixel side by side [H,W,C]; or channel by
 * channel [C,H,W]. */
static inline struct et_pixels
et_pixels_hwc(const uint8_t *data, int C, int64_t H, int64_t W)
{
    const struct et_pixels p = {data, C, H, W, 1, W * C, C};
    return p;
}
static inline struct et_pixels
et_pixels_chw(const uint8_t *data, int C, int64_t H, int64_t W)
{
    const struct et_pixels p = {data, C, H, W, H * W, W, 1};
    return p;
}

/* ---- geometry ---- */

enum et_filter { ET_NEAREST = 0, ET_BILINEAR = 1, ET_BICUBIC = 2 };
extern const char *const et_filter_names[]; /* "nearest", "bilinear", "bicubic", NULL */

/* What a sample shows of its picture: h x w pixels. Read H and W; all else is changed
 * by the functions below alone. */
struct et_view {
    int64_t h, w;
    int filter; /* enum et_filter */
    /* Pixel i lies at ORIGIN + (i + 1/2) STEP of what is before, where pixel j reaches
     * from j to j + 1, and sees nothing outside [LO, HI) of that. Those outside
     * [FROM, TO) are black. */
    struct et_view_axis {
        double origin, step;
        int64_t lo, hi, from, to;
    } y, x;
    /* What is before is the picture; or, where TURNED, the picture as FIRST shows it,
     * turned by TURN: (x, y) lies at (t[0] x + t[1] y + t[2], t[3] x + t[4] y + t[5]).
     */
    bool turned;
    double turn[6];
    int64_t first_h, first_w;
    struct et_view_axis first_y, first_x;
};

/* The view of a whole picture. */
struct et_view et_view_of(int64_t h, int64_t w);
/* H x W pixels from (Y, X) on, which may hang over: that is black. What an earlier crop
 * cut off does not come back. */
void et_view_crop(struct et_view *v, int64_t y, int64_t x, int64_t h, int64_t w);
/* At another size, as Pillow resizes: where it shrinks, a pixel is the weighted mean of
 * what it covers. */
void et_view_resize(struct et_view *v, int64_t h, int64_t w, enum et_filter filter);
/* Left and right exchanged; top and bottom exchanged. */
void et_view_flip_x(struct et_view *v);
void et_view_flip_y(struct et_view *v);
/* About the middle, in the same size: turned clockwise by ANGLE degrees, sheared by
 * SHEAR_X and SHEAR_Y degrees, made larger by SCALE, which is above 0, and moved by DX,
 * DY pixels; what comes in is black. As torchvision's affine; a pixel is one place of
 * the picture, or between four, also where it shrinks. */
void et_view_turn(struct et_view *v, double angle, double dx, double dy, double scale,
                  double shear_x, double shear_y, enum et_filter filter);

/* ---- pixels ---- */

/* A picture that is worked on: value (y, x, c) is data[(y * W + x) * C + c]. */
struct et_canvas {
    uint8_t *data;
    int C;
    int64_t H, W;
    struct eti_scratch *room; /* internal: et_canvas_room */
};
/* BYTES to work in, until the function returns: the same block, sample after sample.
 * NULL: no memory. */
void *et_canvas_room(struct et_canvas *c, size_t bytes);

/* Makes one change of the canvas. */
void et_canvas_change(struct et_canvas *c, const struct et_pixel_change *change);

/* ---- a transform ---- */

struct et_transform_class {
    struct et_component info;
    /* Checks the options against pictures of C channels and H x W pixels, -1 where they
     * differ by sample, and sets the size that leaves: -1 where that differs. Called
     * once. Geometry that sets no size must have it: for others it is optional. */
    et_status (*check)(struct et_ctx *cx, const void *options, int C, int64_t *h,
                       int64_t *w);
    /* Geometry: changes the view of one sample. Called from any thread at once, as are
     * those below. Where CHECK gave a size, that is what it leaves. */
    void (*geometry)(const void *options, struct et_rng *r, struct et_view *v);
    /* Of geometry: it cuts and flips left and right, and does nothing else; so that it
     * can be done where a device has all pictures. */
    bool cuts;
    /* Pixels: changes them in place, and leaves fewer where CHECK said so. ENOMEM, or
     * what else went wrong, in WHY. */
    et_status (*pixels)(const void *options, struct et_rng *r, struct et_canvas *c,
                        struct et_error *why);
    /* Values: what byte 0..255 of channel C becomes, from byte / 255. */
    double (*value)(const void *options, int c, double v);
    /* Pixels, where they are told instead of done, so that a device can do them (both
     * optional, and set together). How many changes there are at most; 0: these options
     * cannot be told. */
    int (*n_changes)(const void *options);
    /* Draws what PIXELS draws for a picture of H x W, and writes the changes that it
     * makes to OUT, in order. Returns how many. */
    int (*changes)(const void *options, struct et_rng *r, int64_t h, int64_t w,
                   struct et_pixel_change *out);
};
extern const struct et_transform_class *const et_transform_classes[];
/* By name; NULL if there is none. */
const struct et_transform_class *et_transform_find(const char *name);

#ifdef __cplusplus
}
#endif
#endif
