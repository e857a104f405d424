/* SPDX-License-Identifier: Apache-2.0 */
/* encode.c: see encode.h. libpng's simplified interface, which returns errors. */
#include "config.h"

#include "core/image/encode.h"

#include <errno.h>
#include <png.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/image/class_color.h"

/* PALETTE: RGB of the numbers that PIXELS are; NULL: they are RGB. */
static et_status
write_png(struct et_ctx *cx, const char *path, const uint8_t *pixels, int64_t width,
          int64_t height, const uint8_t *palette)
{
    char temporary[4096];
    png_image image = {
        .version = PNG_IMAGE_VERSION,
        .width = (png_uint_32)width,
        .height = (png_uint_32)height,
        .format = palette ? PNG_FORMAT_RGB_COLORMAP : PNG_FORMAT_RGB,
        .colormap_entries = palette ? 256 : 0,
    };
    int n = snprintf(temporary, sizeof temporary, "%s.tmp", path);
    if (n < 0 || n >= (int)sizeof temporary)
        return ET_FAIL(cx, ET_EINVAL, "path longer than %zu bytes", sizeof temporary);
    if (width < 1 || height < 1 || width > 1 << 16 || height > 1 << 16)
        return ET_FAIL(cx, ET_EINVAL, "a picture of %lld x %lld pixels",
                       (long long)width, (long long)height);
    FILE *f = fopen(temporary, "wb");
    if (!f)
        return ET_FAIL(cx, ET_EIO, "cannot write %s: %s", temporary, strerror(errno));
    int fine = png_image_write_to_stdio(&image, f, 0, pixels, 0, palette);
    int closed = fclose(f) == 0;
    if (fine && closed && rename(temporary, path) == 0)
        return ET_OK;
    et_status status = ET_FAIL(cx, ET_EIO, "cannot write %s: %s", path,
                               fine ? strerror(errno) : image.message);
    png_image_free(&image);
    unlink(temporary);
    return status;
}

et_status
eti_png_write(struct et_ctx *cx, const char *path, const uint8_t *rgb, int64_t width,
              int64_t height)
{
    return write_png(cx, path, rgb, width, height, NULL);
}

et_status
eti_png_write_mask(struct et_ctx *cx, const char *path, const uint8_t *mask,
                   int64_t width, int64_t height)
{
    uint8_t palette[256][3];
    for (int k = 0; k < 256; k++)
        eti_voc_color(k, palette[k]);
    return write_png(cx, path, mask, width, height, palette[0]);
}
