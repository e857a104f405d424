/* SPDX-License-Identifier: Apache-2.0 */
/* decode.h: pictures in files' bytes: JPEG, PNG, WebP, known by how they begin.
 *
 *     ET_TRY(eti_decoder_open(d, bytes, n, &why));   // d->info: how large it is
 *     ET_TRY(eti_decoder_read(d, &want, &picture, &why));
 *
 * A picture comes as it is stored, as from torchvision's default loader: EXIF's
 * orientation is not applied, nor a file's gamma or colour profile. Grey and palettes
 * become RGB where that is wanted, RGB becomes grey (eti_grey_of_rgb; a JPEG's grey is
 * its luma, which differs where a colour is cut off at 0 or 255); an alpha channel is
 * left out, 16 bits are their upper eight, CMYK is (255 - C) (255 - K) / 255 and so
 * on.
 *
 * One decoder is for one thread at a time. It keeps its memory; what libraries allocate
 * for a picture they free with it. A file that ends early is refused; what else a
 * library warns of is not an error, as in Pillow: the picture may then be damaged. */
#ifndef ETI_IMAGE_DECODE_H
#define ETI_IMAGE_DECODE_H

#include "core/image/pixels.h"

/* Pixels of the largest picture that is read. */
#define ETI_PICTURE_MAX ((int64_t)1 << 27)

struct eti_picture_info {
    const char *format; /* "JPEG"; borrowed */
    int C;              /* 1 or 3: as stored, alpha not counted; a palette's are 3 */
    int64_t H, W;
};

/* What is wanted of it. */
struct eti_picture_want {
    int C;              /* 1 or 3 */
    bool classes;       /* a mask: C is 1, and values are as stored: of a palette the
                           entries' numbers, of 1, 2 and 4 bits 0 to 15 */
    int64_t y, x, h, w; /* this part; h 0: all of it */
    int64_t out_h,
        out_w; /* it is to be shrunk to this size, so that it may come smaller,
                             but not below it; 0: as it is */
};

/* What came: PIXELS has all of the part, and a few columns and rows more where it was
 * shrunk. A point (y, x) of the file's picture is ((y - Y) / SHRUNK, (x - X) / SHRUNK)
 * in PIXELS. Valid until the decoder's next call. */
struct eti_picture {
    struct et_pixels pixels;
    double y, x;
    int shrunk; /* 1, 2, 4 or 8 */
};

struct eti_decoder;
struct eti_codec {
    const char *name;
    bool (*knows)(const uint8_t *bytes, size_t n); /* is it of this format? */
    et_status (*open)(struct eti_decoder *d, struct et_error *why);
    et_status (*read)(struct eti_decoder *d, const struct eti_picture_want *want,
                      struct eti_picture *out, struct et_error *why);
    void (*close)(struct eti_decoder *d); /* optional */
};

struct eti_decoder {
    const uint8_t *bytes; /* of the file; borrowed */
    size_t n;
    struct eti_picture_info info;
    int64_t max_pixels;             /* 0: ETI_PICTURE_MAX */
    const struct eti_codec *codec;  /* of the open picture */
    struct eti_scratch pixels, row; /* the result; what a codec needs besides */
    void *jpeg;                     /* jpeg.c's, kept from picture to picture */
};

/* Zero a decoder to begin. Reads the header of a picture: EFORMAT what no codec knows,
 * ENOTSUP what this program was built without. BYTES is borrowed until the next
 * call. */
ET_NODISCARD et_status eti_decoder_open(struct eti_decoder *d, const uint8_t *bytes,
                                        size_t n, struct et_error *why);
ET_NODISCARD et_status eti_decoder_read(struct eti_decoder *d,
                                        const struct eti_picture_want *want,
                                        struct eti_picture *out, struct et_error *why);
void eti_decoder_free(struct eti_decoder *d);

/* ---- for codecs ---- */

extern const struct eti_codec eti_codec_jpeg, eti_codec_png, eti_codec_webp;
/* Room for h x w pixels of C values, packed; OUT is a view of it at (Y, X), not
 * shrunk. */
ET_NODISCARD et_status eti_decoder_room(struct eti_decoder *d, int C, int64_t h,
                                        int64_t w, struct et_canvas *out,
                                        struct et_error *why);

#endif
