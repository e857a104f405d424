/* SPDX-License-Identifier: Apache-2.0 */
/* predictions_sheet.c: pictures of the samples that a model is most wrong about: see
 * predictions.h. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/folders.h"
#include "core/base/seams.h"
#include "core/image/class_color.h"
#include "core/library/predictions.h"

void
eti_sheet_release(struct eti_sheet *s)
{
    for (int i = 0; i < s->n; i++)
        et_free(s->cx, s->rgb[i]);
    *s = (struct eti_sheet){.cx = s->cx};
}

bool
eti_sheet_wants(const struct eti_sheet *s, float loss)
{
    return !isnan(loss) && (s->n < ETI_TILES || loss > s->loss[s->n - 1]);
}

/* The mean of the pixels of X that pixel ROW, COLUMN of a tile stands for. */
static double
mean_of(const struct eti_sheet *s, const float *x, int C, int H, int W, int row,
        int column, int channel)
{
    const int y0 = row * H / s->h, y1 = (row + 1) * H / s->h;
    const int x0 = column * W / s->w, x1 = (column + 1) * W / s->w;
    double sum = 0;
    int n = 0;
    for (int y = y0; y < y1 || y == y0; y++)
        for (int k = x0; k < x1 || k == x0; k++, n++)
            sum += x[((int64_t)y * W + k) * C + channel];
    return sum / n;
}

/* Into the first S->w of a tile's STRIDE columns. */
static void
paint(const struct eti_sheet *s, uint8_t *rgb, int stride, const float *x, int C, int H,
      int W)
{
    float least = INFINITY, most = -INFINITY;
    for (int64_t i = 0; i < (int64_t)C * H * W; i++) {
        least = fminf(least, x[i]);
        most = fmaxf(most, x[i]);
    }
    const double scale = most > least ? 255 / ((double)most - least) : 0;
    for (int row = 0; row < s->h; row++)
        for (int column = 0; column < s->w; column++)
            for (int k = 0; k < 3; k++) {
                const double v =
                    scale *
                    (mean_of(s, x, C, H, W, row, column, C < 3 ? 0 : k) - least);
                rgb[3 * (row * stride + column) + k] =
                    (uint8_t)(v > 0 ? lrint(fmin(v, 255)) : 0); /* NaN is black */
            }
}

/* The tile of SAMPLE in its place, to be painted. */
static et_status
make_tile(struct eti_sheet *s, int64_t sample, float loss, uint8_t **out)
{
    void *block;
    ET_TRY(et_alloc(s->cx, 3 * (size_t)s->w * (size_t)s->h, &block));
    if (s->n == ETI_TILES)
        et_free(s->cx, s->rgb[--s->n]);
    int at = s->n++;
    for (; at > 0 && s->loss[at - 1] < loss; at--) {
        s->loss[at] = s->loss[at - 1];
        s->sample[at] = s->sample[at - 1];
        s->rgb[at] = s->rgb[at - 1];
    }
    s->loss[at] = loss;
    s->sample[at] = sample;
    s->rgb[at] = *out = block;
    return ET_OK;
}

et_status
eti_sheet_add(struct eti_sheet *s, int64_t sample, float loss, const float *x, int C,
              int H, int W)
{
    uint8_t *rgb;
    if (!eti_sheet_wants(s, loss))
        return ET_OK;
    if (s->n == 0) {
        s->w = W < ETI_TILE ? W : ETI_TILE;
        s->h = H < ETI_TILE ? H : ETI_TILE;
    }
    ET_TRY(make_tile(s, sample, loss, &rgb));
    paint(s, rgb, s->w, x, C, H, W);
    return ET_OK;
}

/* Row ROW of a tile that is three times W wide: the colours of CHOSEN over the picture
 * that is in its first third, then LABEL's and CHOSEN's alone. */
static void
paint_masks(const struct eti_sheet *s, uint8_t *rgb, int w, const int32_t *label,
            const int32_t *chosen, int H, int W)
{
    for (int row = 0; row < s->h; row++)
        for (int column = 0; column < w; column++) {
            uint8_t *to = rgb + 3 * (row * s->w + column), color[3];
            const int64_t at = (int64_t)(row * H / s->h) * W + column * W / w;
            const bool is_over = eti_class_color(chosen[at], to + 2 * (size_t)w * 3);
            memcpy(color, to + 2 * (size_t)w * 3, 3);
            for (int k = 0; k < 3 && is_over; k++)
                to[k] = (uint8_t)((to[k] + color[k]) / 2);
            (void)eti_class_color(label[at], to + (size_t)w * 3);
        }
}

et_status
eti_sheet_add_masks(struct eti_sheet *s, int64_t sample, float loss, const float *x,
                    int C, int H, int W, const int32_t *label, const int32_t *chosen)
{
    uint8_t *rgb;
    const int w = W < ETI_TILE ? W : ETI_TILE;
    if (!eti_sheet_wants(s, loss))
        return ET_OK;
    if (s->n == 0) {
        s->w = w;
        s->h = H < ETI_TILE ? H : ETI_TILE;
    }
    s->w = 3 * w;
    ET_TRY(make_tile(s, sample, loss, &rgb));
    const struct eti_sheet third = {.w = w, .h = s->h};
    paint(&third, rgb, s->w, x, C, H, W);
    paint_masks(s, rgb, w, label, chosen, H, W);
    return ET_OK;
}

et_status
eti_sheet_write(const struct eti_sheet *s, const char *path)
{
    char *text = NULL;
    size_t n = 0;
    int folder = -1;
    const char *slash = strrchr(path, '/');
    FILE *f = open_memstream(&text, &n);
    if (!f)
        return ET_FAIL(s->cx, ET_ENOMEM, "out of memory: %s", path);
    fprintf(f, "P6\n# etude %d %d %d", s->w, s->h, s->n);
    for (int i = 0; i < s->n; i++)
        fprintf(f, " %" PRId64, s->sample[i]);
    fprintf(f, "\n%d %d\n255\n", s->n > 0 ? s->n * s->w : 1, s->n > 0 ? s->h : 1);
    for (int row = 0; row < s->h; row++)
        for (int i = 0; i < s->n; i++)
            fwrite(s->rgb[i] + 3 * (ptrdiff_t)row * s->w, 3, (size_t)s->w, f);
    if (s->n == 0)
        fwrite("\0\0\0", 1, 3, f);
    et_status status = fclose(f) == 0 && text
                           ? eti_open_parent(s->cx, path, &folder)
                           : ET_FAIL(s->cx, ET_ENOMEM, "out of memory: %s", path);
    if (status == ET_OK)
        status = eti_replace_at(s->cx, folder, slash ? slash + 1 : path, text, n);
    if (folder >= 0)
        eti_close(s->cx, folder);
    free(text);
    return status;
}

/* The head of the file: how many pictures, their size, which samples. */
static bool
read_head(FILE *f, struct eti_sheet *out, int *n)
{
    int w, h, most;
    char end;
    if (fscanf(f, "P6\n# etude %d %d %d", &out->w, &out->h, n) != 3 || *n < 0 ||
        *n > ETI_TILES)
        return false;
    for (int i = 0; i < *n; i++)
        if (fscanf(f, " %" SCNd64, &out->sample[i]) != 1)
            return false;
    if (fscanf(f, "%d %d %d%c", &w, &h, &most, &end) != 4 || most != 255)
        return false;
    if (*n == 0)
        return true;
    return out->w > 0 && out->w <= 3 * ETI_TILE && out->h > 0 && out->h <= ETI_TILE &&
           h == out->h && w == *n * out->w;
}

static et_status
read_tiles(FILE *f, struct eti_sheet *out, int n)
{
    for (; out->n < n; out->n++) {
        void *block;
        ET_TRY(et_alloc(out->cx, 3 * (size_t)out->w * (size_t)out->h, &block));
        out->rgb[out->n] = block;
    }
    for (int row = 0; row < out->h && n > 0; row++)
        for (int i = 0; i < n; i++)
            if (fread(out->rgb[i] + 3 * (ptrdiff_t)row * out->w, 3, (size_t)out->w,
                      f) != (size_t)out->w)
                return ET_EFORMAT;
    return ET_OK;
}

et_status
eti_sheet_read(struct et_ctx *cx, const char *path, struct eti_sheet *out)
{
    int n = 0;
    *out = (struct eti_sheet){.cx = cx};
    FILE *f = eti_open_regular(path);
    if (!f)
        return ET_FAIL(cx, errno == ENOENT ? ET_ENOENT : ET_EIO, "cannot read %s: %s",
                       path, strerror(errno));
    et_status status = read_head(f, out, &n) ? read_tiles(f, out, n) : ET_EFORMAT;
    fclose(f);
    if (status == ET_EFORMAT)
        status = ET_FAIL(cx, ET_EFORMAT, "%s: not what etude predict writes", path);
    if (status != ET_OK)
        eti_sheet_release(out);
    return status;
}
