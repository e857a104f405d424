/* SPDX-License-Identifier: Apache-2.0 */
/* png.c: PNG, by libpng.
 *
 * Its full interface: the simplified one, which returns errors, applies a file's gamma
 * and cannot give the numbers of a palette's entries, which masks are made of. */
#include "config.h"

#include "core/image/decode.h"

#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "core/data/file.h"

/* Of a chunk that is not the picture: a profile or a text. */
enum { CHUNK_MOST = 4 << 20, SIDE_MOST = 1 << 20 };

/* One file on its way. */
struct reading {
    struct eti_decoder *d;
    const struct eti_picture_want *want; /* NULL: the header alone */
    struct eti_picture *out;
    struct et_error *why;
    et_status status;
    size_t at; /* bytes of the file that are read */
    char message[128];
    png_structp png;
    png_infop info;
    jmp_buf failed; /* the library leaves its functions so, and in no other way */
};

static bool
is_png(const uint8_t *bytes, size_t n)
{
    static const uint8_t magic[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    return n >= sizeof magic && memcmp(bytes, magic, sizeof magic) == 0;
}

static void
on_error(png_structp png, png_const_charp message)
{
    struct reading *r = png_get_error_ptr(png);
    snprintf(r->message, sizeof r->message, "%s", message);
    longjmp(r->failed, 1);
}

static void
on_warning(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

static void
give_bytes(png_structp png, png_bytep out, size_t n)
{
    struct reading *r = png_get_io_ptr(png);
    if (n > r->d->n - r->at)
        png_error(png, "it ends early");
    memcpy(out, r->d->bytes + r->at, n);
    r->at += n;
}

static void
read_header(struct reading *r)
{
    struct eti_picture_info *info = &r->d->info;
    png_set_read_fn(r->png, r, give_bytes);
    png_set_user_limits(r->png, SIDE_MOST, SIDE_MOST);
    png_set_chunk_malloc_max(r->png, CHUNK_MOST);
    png_read_info(r->png, r->info);
    int type = png_get_color_type(r->png, r->info);
    info->H = png_get_image_height(r->png, r->info);
    info->W = png_get_image_width(r->png, r->info);
    info->C = type & PNG_COLOR_MASK_COLOR ? 3 : 1;
}

/* Has the library give 8 bits of C values: those of a pixel as they come. */
static int
set_form(struct reading *r)
{
    int type = png_get_color_type(r->png, r->info);
    png_set_packing(r->png);
    png_set_strip_16(r->png);
    png_set_strip_alpha(r->png);
    if (type == PNG_COLOR_TYPE_PALETTE && !r->want->classes)
        png_set_palette_to_rgb(r->png);
    if (type == PNG_COLOR_TYPE_GRAY && !r->want->classes)
        png_set_expand_gray_1_2_4_to_8(r->png);
    return png_set_interlace_handling(r->png);
}

/* One row of the part, from values of C channels to as many as wanted. */
static void
put_row(const struct reading *r, const uint8_t *row, int C, uint8_t *to)
{
    const struct eti_picture_want *want = r->want;
    row += want->x * C;
    if (C == want->C)
        memcpy(to, row, (size_t)(want->w * C));
    else if (C == 3)
        eti_grey_of_rgb(row, want->w, to);
    else
        for (int64_t x = 0; x < want->w; x++)
            to[3 * x] = to[3 * x + 1] = to[3 * x + 2] = row[x];
}

/* Rows that come in passes lie in the decoder's second room, all of them; others pass
 * through it one by one, and those below the part are not read. */
static void
read_rows(struct reading *r, const struct et_canvas *to, int passes, size_t stride)
{
    const struct eti_picture_want *want = r->want;
    uint8_t *row = r->d->row.data;
    int C = png_get_channels(r->png, r->info);
    for (int pass = 1; pass < passes; pass++)
        for (int64_t y = 0; y < r->d->info.H; y++)
            png_read_row(r->png, row + (size_t)y * stride, NULL);
    for (int64_t y = 0; y < want->y + want->h; y++) {
        uint8_t *here = passes > 1 ? row + (size_t)y * stride : row;
        png_read_row(r->png, here, NULL);
        if (y >= want->y)
            put_row(r, here, C, to->data + (y - want->y) * to->W * to->C);
    }
}

static void
read_picture(struct reading *r)
{
    const struct eti_picture_want *want = r->want;
    struct et_canvas to;
    int type = png_get_color_type(r->png, r->info);
    bool colours = (type & PNG_COLOR_MASK_COLOR) && type != PNG_COLOR_TYPE_PALETTE;
    if (want->classes && (colours || png_get_bit_depth(r->png, r->info) > 8)) {
        r->status = eti_why(r->why, ET_EFORMAT,
                            "a mask has one value of up to 8 bits for each pixel, and "
                            "this PNG picture has colours or more bits");
        return;
    }
    int passes = set_form(r);
    png_read_update_info(r->png, r->info);
    size_t stride = png_get_rowbytes(r->png, r->info);
    r->status = eti_decoder_room(r->d, want->C, want->h, want->w, &to, r->why);
    if (r->status == ET_OK)
        r->status = eti_scratch_need(
            &r->d->row, stride * (size_t)(passes > 1 ? r->d->info.H : 1), r->why);
    if (r->status != ET_OK)
        return;
    read_rows(r, &to, passes, stride);
    *r->out = (struct eti_picture){
        .pixels = eti_canvas_view(&to),
        .y = (double)want->y,
        .x = (double)want->x,
        .shrunk = 1,
    };
}

static et_status
guarded(struct reading *r)
{
    if (setjmp(r->failed))
        return eti_why(r->why, ET_EFORMAT, "a PNG picture that cannot be read: %s",
                       r->message);
    r->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, r, on_error, on_warning);
    if (r->png)
        r->info = png_create_info_struct(r->png);
    if (!r->info)
        return eti_why(r->why, ET_ENOMEM, "no memory for a PNG decoder");
    read_header(r);
    if (r->want)
        read_picture(r);
    return r->status;
}

static et_status
run(struct reading *r)
{
    et_status status = guarded(r);
    png_destroy_read_struct(&r->png, &r->info, NULL);
    return status;
}

static et_status
open_png(struct eti_decoder *d, struct et_error *why)
{
    struct reading r = {.d = d, .why = why};
    return run(&r);
}

static et_status
read_png(struct eti_decoder *d, const struct eti_picture_want *want,
         struct eti_picture *out, struct et_error *why)
{
    struct reading r = {.d = d, .want = want, .out = out, .why = why};
    return run(&r);
}

const struct eti_codec eti_codec_png = {
    .name = "PNG",
    .knows = is_png,
    .open = open_png,
    .read = read_png,
};
