/* SPDX-License-Identifier: Apache-2.0 */
/* decode.c: which codec reads a picture, and what all have in common. See decode.h. */
#include "config.h"

#include "core/image/decode.h"

#include "core/data/file.h"

/* Loops of resample.c read up to so many bytes behind the last pixel. */
enum { SPARE = 16 };

static const struct eti_codec *const codecs[] = {
    &eti_codec_jpeg,
    &eti_codec_png,
    &eti_codec_webp,
};

static const struct eti_codec *
find_codec(const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++)
        if (codecs[i]->knows(bytes, n))
            return codecs[i];
    return NULL;
}

et_status
eti_decoder_open(struct eti_decoder *d, const uint8_t *bytes, size_t n,
                 struct et_error *why)
{
    d->bytes = bytes;
    d->n = n;
    d->info = (struct eti_picture_info){0};
    d->codec = find_codec(bytes, n);
    if (!d->codec)
        return eti_why(why, ET_EFORMAT,
                       n == 0
                           ? "an empty file is no picture"
                           : "it does not begin as a JPEG, PNG or WebP picture does");
    d->info.format = d->codec->name;
    if (!d->codec->open)
        return eti_why(why, ET_ENOTSUP, "this program was built without %s",
                       d->codec->name);
    ET_TRY(d->codec->open(d, why));
    int64_t most = d->max_pixels ? d->max_pixels : ETI_PICTURE_MAX;
    if (d->info.H < 1 || d->info.W < 1)
        return eti_why(why, ET_EFORMAT, "a %s picture without pixels", d->info.format);
    if (d->info.H > most / d->info.W)
        return eti_why(
            why, ET_EFORMAT,
            "a %s picture of %lld x %lld pixels, more than %lld are not read",
            d->info.format, (long long)d->info.W, (long long)d->info.H,
            (long long)most);
    return ET_OK;
}

et_status
eti_decoder_read(struct eti_decoder *d, const struct eti_picture_want *want,
                 struct eti_picture *out, struct et_error *why)
{
    struct eti_picture_want w = *want;
    if (w.C != 1 && w.C != 3)
        return eti_why(why, ET_EINVAL, "pictures have 1 or 3 channels, and not %d",
                       w.C);
    if (w.h == 0) {
        w.y = w.x = 0;
        w.h = d->info.H;
        w.w = d->info.W;
    }
    if (w.out_h < 1 || w.out_w < 1) {
        w.out_h = w.h;
        w.out_w = w.w;
    }
    return d->codec->read(d, &w, out, why);
}

et_status
eti_decoder_room(struct eti_decoder *d, int C, int64_t h, int64_t w,
                 struct et_canvas *out, struct et_error *why)
{
    ET_TRY(eti_scratch_need(&d->pixels, (size_t)(h * w * C) + SPARE, why));
    *out = (struct et_canvas){.data = d->pixels.data, .C = C, .H = h, .W = w};
    return ET_OK;
}

void
eti_decoder_free(struct eti_decoder *d)
{
    eti_codec_jpeg.close(d);
    eti_scratch_free(&d->pixels);
    eti_scratch_free(&d->row);
}
