/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg.c: JPEG, by libjpeg-turbo.
 *
 * Its own interface, libjpeg's, and not TurboJPEG's: only there can a part of a picture
 * be read before TurboJPEG 3, which Debian 12 and 13 do not have. Columns outside the
 * part are not transformed, rows above only run through the entropy decoder, those
 * below are not looked at. What is read has the bits that it has in the whole picture:
 * two columns and rows more than wanted are asked for, since colours, which are mostly
 * stored at half the size, are interpolated from their neighbours.
 *
 * To shrink by 2, 4 or 8, a block of 8 x 8 values is transformed to fewer: for these
 * the library has fast code, not for the steps between. */
#include "config.h"

#include "core/image/decode.h"

#include <string.h>

#include "core/data/file.h"

static bool
is_jpeg(const uint8_t *bytes, size_t n)
{
    return n >= 3 && bytes[0] == 0xff && bytes[1] == 0xd8 && bytes[2] == 0xff;
}

#ifdef ET_JPEG

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>
#include <jerror.h>

enum {
    MARGIN = 2,
    /* Each scan of a progressive picture costs a pass over all of it, and takes a few
     * bytes of the file. */
    MAX_SCANS = 200
};

/* What stays between pictures. */
struct jpeg {
    struct jpeg_decompress_struct lib;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf failed; /* the library leaves its functions so, and in no other way */
    char message[JMSG_LENGTH_MAX];
};

static void
leave(struct jpeg *j, const char *message)
{
    if (message)
        snprintf(j->message, sizeof j->message, "%s", message);
    longjmp(j->failed, 1);
}

static void
on_error(j_common_ptr lib)
{
    struct jpeg *j = lib->client_data;
    j->errors.format_message(lib, j->message);
    leave(j, NULL);
}

/* Warnings, and traces, which have a level above 0. */
static void
on_message(j_common_ptr lib, int level)
{
    if (level < 0 && lib->err->msg_code == JWRN_JPEG_EOF)
        leave(lib->client_data, "it ends early");
}

static void
on_progress(j_common_ptr lib)
{
    struct jpeg *j = lib->client_data;
    if (j->lib.input_scan_number > MAX_SCANS)
        leave(j, "it has too many scans");
}

/* What the library does between two calls of setjmp, by name. */
typedef void step(struct eti_decoder *d, struct jpeg *j, void *data);

static et_status
guarded(struct eti_decoder *d, step *fn, void *data, struct et_error *why)
{
    struct jpeg *j = d->jpeg;
    if (setjmp(j->failed)) {
        jpeg_abort_decompress(&j->lib);
        return eti_why(why, ET_EFORMAT, "a JPEG picture that cannot be read: %s",
                       j->message);
    }
    fn(d, j, data);
    return ET_OK;
}

/* ---- the header ---- */

static void
create(struct eti_decoder *d, struct jpeg *j, void *data)
{
    (void)d;
    (void)data;
    jpeg_create_decompress(&j->lib);
}

static et_status
begin(struct eti_decoder *d, struct et_error *why)
{
    struct jpeg *j = calloc(1, sizeof *j);
    if (!j)
        return eti_why(why, ET_ENOMEM, "no memory for a JPEG decoder");
    j->lib.err = jpeg_std_error(&j->errors);
    j->errors.error_exit = on_error;
    j->errors.emit_message = on_message;
    j->lib.client_data = j;
    j->progress.progress_monitor = on_progress;
    d->jpeg = j;
    et_status status = guarded(d, create, NULL, why);
    if (status != ET_OK) {
        free(j);
        d->jpeg = NULL;
        return status;
    }
    j->lib.progress = &j->progress;
    return ET_OK;
}

static void
read_header(struct eti_decoder *d, struct jpeg *j, void *data)
{
    (void)data;
    jpeg_mem_src(&j->lib, d->bytes, (unsigned long)d->n);
    jpeg_read_header(&j->lib, TRUE);
    d->info.H = j->lib.image_height;
    d->info.W = j->lib.image_width;
    d->info.C = j->lib.num_components == 1 ? 1 : 3;
}

static et_status
open_jpeg(struct eti_decoder *d, struct et_error *why)
{
    if (!d->jpeg)
        ET_TRY(begin(d, why));
    struct jpeg *j = d->jpeg;
    jpeg_abort_decompress(&j->lib); /* one that was opened and not read */
    return guarded(d, read_header, NULL, why);
}

/* ---- pixels ---- */

/* What is wanted, in pixels of the shrunk picture, and what comes. */
struct reading {
    const struct eti_picture_want *want;
    JDIMENSION y, x, h, w; /* what is read; x, w: as the library rounds them */
    int C;                 /* values of a pixel, as the library gives them */
    struct et_canvas to;
    struct et_error *why;
    et_status status;
};

static unsigned
shrink_by(const struct eti_picture_want *w)
{
    unsigned by = 8;
    while (by > 1 && (w->h < w->out_h * by || w->w < w->out_w * by))
        by /= 2;
    return by;
}

static void
start(struct jpeg *j, const struct eti_picture_want *want, struct reading *r)
{
    bool four = j->lib.num_components == 4;
    j->lib.scale_num = 1;
    j->lib.scale_denom = shrink_by(want);
    j->lib.dct_method = JDCT_ISLOW;
    /* The library makes grey of YCbCr and of grey alone. */
    bool grey = want->C == 1 && (j->lib.jpeg_color_space == JCS_YCbCr ||
                                 j->lib.jpeg_color_space == JCS_GRAYSCALE);
    j->lib.out_color_space = four ? JCS_CMYK : grey ? JCS_GRAYSCALE : JCS_RGB;
    r->C = four ? 4 : grey ? 1 : 3;
    jpeg_start_decompress(&j->lib);
}

/* A range of what is wanted, [AT, AT + N) pixels, shrunk by BY, with the margin. */
static void
range(int64_t at, int64_t n, int64_t by, int64_t most, JDIMENSION *first,
      JDIMENSION *count)
{
    int64_t from = at / by - MARGIN, to = (at + n + by - 1) / by + MARGIN;
    from = from < 0 ? 0 : from;
    to = to > most ? most : to;
    *first = (JDIMENSION)from;
    *count = (JDIMENSION)(to - from);
}

static void
find_part(struct jpeg *j, struct reading *r)
{
    const struct eti_picture_want *want = r->want;
    int64_t by = j->lib.scale_denom;
    range(want->y, want->h, by, j->lib.output_height, &r->y, &r->h);
    range(want->x, want->w, by, j->lib.output_width, &r->x, &r->w);
    if (r->w < j->lib.output_width)
        jpeg_crop_scanline(&j->lib, &r->x, &r->w);
}

static void
read_rows(struct jpeg *j, struct reading *r)
{
    enum { MOST = 16 };
    JSAMPROW row[MOST];
    int64_t stride = (int64_t)r->w * r->C;
    if (r->y > 0)
        jpeg_skip_scanlines(&j->lib, r->y);
    for (JDIMENSION y = 0; y < r->h;) {
        JDIMENSION n = r->h - y < MOST ? r->h - y : MOST;
        for (JDIMENSION i = 0; i < n; i++)
            row[i] = r->to.data + (y + i) * stride;
        y += jpeg_read_scanlines(&j->lib, row, n);
    }
    jpeg_abort_decompress(&j->lib);
}

static void
read_part(struct eti_decoder *d, struct jpeg *j, void *data)
{
    struct reading *r = data;
    start(j, r->want, r);
    find_part(j, r);
    r->status = eti_decoder_room(d, r->C, r->h, r->w, &r->to, r->why);
    if (r->status == ET_OK)
        read_rows(j, r);
    else
        jpeg_abort_decompress(&j->lib);
}

static uint8_t
product(int a, int b)
{
    int v = a * b + 128;
    return (uint8_t)((v + (v >> 8)) >> 8); /* a b / 255, rounded */
}

/* CMYK to RGB, in place. Adobe's programs store 255 - ink, as the file says. */
static void
without_ink(uint8_t *p, int64_t n, bool inverted)
{
    int flip = inverted ? 0 : 255;
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < 3; c++)
            p[3 * i + c] = product(p[4 * i + c] ^ flip, p[4 * i + 3] ^ flip);
}

/* To as many channels as wanted. */
static void
convert(struct et_canvas *c, int wanted, bool inverted)
{
    int64_t n = c->H * c->W;
    if (c->C == 4) {
        without_ink(c->data, n, inverted);
        c->C = 3;
    }
    if (c->C == 3 && wanted == 1) {
        eti_grey_of_rgb(c->data, n, c->data);
        c->C = 1;
    }
}

static et_status
read_jpeg(struct eti_decoder *d, const struct eti_picture_want *want,
          struct eti_picture *out, struct et_error *why)
{
    struct jpeg *j = d->jpeg;
    struct reading r = {.want = want, .why = why};
    if (want->classes)
        return eti_why(why, ET_EFORMAT,
                       "a JPEG picture, whose pixels are not exact, is no mask");
    ET_TRY(guarded(d, read_part, &r, why));
    ET_TRY(r.status);
    int by = (int)j->lib.scale_denom;
    convert(&r.to, want->C, j->lib.saw_Adobe_marker);
    *out = (struct eti_picture){
        .pixels = eti_canvas_view(&r.to),
        .y = (double)r.y * by,
        .x = (double)r.x * by,
        .shrunk = by,
    };
    if (by > 1)
        return ET_OK;
    out->pixels =
        eti_pixels_part(&out->pixels, want->y - r.y, want->x - r.x, want->h, want->w);
    out->y = (double)want->y;
    out->x = (double)want->x;
    return ET_OK;
}

static void
close_jpeg(struct eti_decoder *d)
{
    struct jpeg *j = d->jpeg;
    if (j)
        jpeg_destroy_decompress(&j->lib);
    free(j);
    d->jpeg = NULL;
}

const struct eti_codec eti_codec_jpeg = {
    .name = "JPEG",
    .knows = is_jpeg,
    .open = open_jpeg,
    .read = read_jpeg,
    .close = close_jpeg,
};

#else

static void
close_none(struct eti_decoder *d)
{
    (void)d;
}

const struct eti_codec eti_codec_jpeg = {
    .name = "JPEG",
    .knows = is_jpeg,
    .close = close_none,
};

#endif
