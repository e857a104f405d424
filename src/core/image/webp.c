/* SPDX-License-Identifier: Apache-2.0 */
/* webp.c: WebP, by libwebp: still pictures. */
#include "config.h"

#include "core/image/decode.h"

#include <string.h>

#include "core/data/file.h"

static bool
is_webp(const uint8_t *bytes, size_t n)
{
    return n >= 12 && memcmp(bytes, "RIFF", 4) == 0 &&
           memcmp(bytes + 8, "WEBP", 4) == 0;
}

#ifdef ET_WEBP

#include <webp/decode.h>

/* As in jpeg.c: colours at the edge of a part are interpolated from beyond it. The
 * library takes even places alone. */
enum { MARGIN = 2 };

static et_status
refuse(VP8StatusCode code, struct et_error *why)
{
    if (code == VP8_STATUS_OUT_OF_MEMORY)
        return eti_why(why, ET_ENOMEM, "no memory to read a WebP picture");
    return eti_why(why, ET_EFORMAT, "a WebP picture that cannot be read: %s",
                   code == VP8_STATUS_NOT_ENOUGH_DATA ? "it ends early"
                   : code == VP8_STATUS_UNSUPPORTED_FEATURE
                       ? "it needs what the library does not know"
                       : "it is damaged");
}

static et_status
open_webp(struct eti_decoder *d, struct et_error *why)
{
    WebPBitstreamFeatures f;
    VP8StatusCode code = WebPGetFeatures(d->bytes, d->n, &f);
    if (code != VP8_STATUS_OK)
        return refuse(code, why);
    if (f.has_animation)
        return eti_why(why, ET_EFORMAT, "a WebP animation, and not a picture");
    d->info.H = f.height;
    d->info.W = f.width;
    d->info.C = 3;
    return ET_OK;
}

/* [*AT, *AT + *N) with the margin, from an even place on, within MOST. */
static void
widen(int64_t *at, int64_t *n, int64_t most)
{
    int64_t from = (*at > MARGIN ? *at - MARGIN : 0) & ~(int64_t)1;
    int64_t to = *at + *n + MARGIN < most ? *at + *n + MARGIN : most;
    *at = from;
    *n = to - from;
}

static et_status
read_webp(struct eti_decoder *d, const struct eti_picture_want *want,
          struct eti_picture *out, struct et_error *why)
{
    WebPDecoderConfig config;
    struct et_canvas to;
    int64_t y = want->y, x = want->x, h = want->h, w = want->w;
    if (want->classes)
        return eti_why(why, ET_EFORMAT,
                       "a WebP picture, which has colours, is no mask");
    if (!WebPInitDecoderConfig(&config))
        return eti_why(why, ET_ENOTSUP, "libwebp is another than it was built with");
    widen(&y, &h, d->info.H);
    widen(&x, &w, d->info.W);
    ET_TRY(eti_decoder_room(d, 3, h, w, &to, why));
    config.options.use_cropping = 1;
    config.options.crop_left = (int)x;
    config.options.crop_top = (int)y;
    config.options.crop_width = (int)w;
    config.options.crop_height = (int)h;
    config.output.colorspace = MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = to.data;
    config.output.u.RGBA.stride = (int)(w * 3);
    config.output.u.RGBA.size = (size_t)(h * w * 3);
    VP8StatusCode code = WebPDecode(d->bytes, d->n, &config);
    WebPFreeDecBuffer(&config.output);
    if (code != VP8_STATUS_OK)
        return refuse(code, why);
    if (want->C == 1) {
        eti_grey_of_rgb(to.data, h * w, to.data);
        to.C = 1;
    }
    *out = (struct eti_picture){
        .pixels = eti_canvas_view(&to),
        .y = (double)want->y,
        .x = (double)want->x,
        .shrunk = 1,
    };
    out->pixels =
        eti_pixels_part(&out->pixels, want->y - y, want->x - x, want->h, want->w);
    return ET_OK;
}

const struct eti_codec eti_codec_webp = {
    .name = "WebP",
    .knows = is_webp,
    .open = open_webp,
    .read = read_webp,
};

#else

const struct eti_codec eti_codec_webp = {
    .name = "WebP",
    .knows = is_webp,
};

#endif
