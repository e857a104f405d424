/* SPDX-License-Identifier: Apache-2.0 */
/* loops_augment.c: pictures shown, turned and changed: see et_image_augment.
 *
 * A thread takes whole samples: what each shows goes to a canvas of bytes in the
 * workspace, changes are made there one by one, most of them by a table of 256, and the
 * batch is written through the operand's table at the end. What columns are made of is
 * found once for all rows.
 *
 * Its bytes are those of the host's pipeline, so a product and a sum are not to become
 * one instruction that rounds once. */
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC optimize("fp-contract=off")
#endif

#define ETK_PICTURE    static inline
#define ETK_MUL(a, b)  ((double)(a) * (double)(b))
#define ETK_ADD(a, b)  ((double)(a) + (double)(b))
#define ETK_MULF(a, b) ((float)(a) * (float)(b))
#define ETK_ADDF(a, b) ((float)(a) + (float)(b))
#define ETK_ONE_BY_ONE

#include "kernels/cpu/loops_convert.h"
#include "kernels/cpu/loops_side.h"
#include "kernels/picture.h"

#include <string.h>

enum { CHANNELS = ETK_PICTURE_CHANNELS };

struct augment_kernel {
    struct et_kernel base;
    struct et_desc raw;
    struct side rows, table, out;
    int64_t n, numbers; /* rows, and numbers in each */
    int h, w;
    int room;            /* changes behind a row */
    size_t size;         /* of an element of the result */
    size_t rounded;      /* where the table in the result's dtype lies */
    etk_store_fn *round; /* makes it; NULL: the table has that dtype */
    size_t canvas, taps; /* where a piece's begin; each has its own, STEP apart */
    size_t canvas_step, taps_step;
    int pieces;
};

/* A sample on its way. */
struct sample {
    struct et_shown row;
    struct et_pixel_change change[ET_MAX_CHANGES];
    struct etk_raw raw;
    struct etk_show show;
    uint8_t *canvas; /* h x w pixels of C bytes */
    struct etk_tap *column;
    int h, w;
};

/* ---- what it shows ---- */

static void
show_resampled(struct sample *s)
{
    const struct etk_line *y = &s->show.y, *x = &s->show.x;
    const int C = s->raw.C;
    struct etk_tap row;
    for (int j = 0; j < s->w; j++)
        if (etk_is_seen(x, j))
            etk_find_tap(x, j, &s->column[j]);
    for (int i = 0; i < s->h; i++) {
        uint8_t *to = s->canvas + (int64_t)i * s->w * C;
        memset(to, 0, (size_t)(s->w * C));
        if (!etk_is_seen(y, i))
            continue;
        etk_find_tap(y, i, &row);
        for (int j = 0; j < s->w; j++)
            if (etk_is_seen(x, j))
                etk_resampled(&s->raw, y, &row, x, &s->column[j], to + j * C);
    }
}

static void
show_pixels(struct sample *s)
{
    uint8_t *to = s->canvas;
    for (int i = 0; i < s->h; i++)
        for (int j = 0; j < s->w; j++, to += s->raw.C)
            etk_shown_pixel(&s->raw, &s->show, i, j, to);
}

/* ---- changes ---- */

static void
count_bytes(const struct sample *s, int kind, uint32_t times[][256])
{
    const int C = s->raw.C;
    const int64_t n = (int64_t)s->h * s->w;
    memset(times, 0, CHANNELS * sizeof *times);
    for (int64_t k = 0; k < n; k++)
        for (int c = 0; c < C; c++) {
            int byte = etk_counted(kind, C, c, s->canvas + k * C);
            if (byte >= 0)
                times[c][byte]++;
        }
}

static void
change_by_table(struct sample *s, const struct et_pixel_change *t)
{
    const int C = s->raw.C;
    const int64_t n = (int64_t)s->h * s->w;
    uint32_t times[CHANNELS][256];
    uint8_t table[CHANNELS][256];
    if (etk_change_counts(t->kind))
        count_bytes(s, t->kind, times);
    for (int c = 0; c < C; c++)
        for (int v = 0; v < 256; v++)
            table[c][v] = etk_changed_byte(
                t, times[t->kind == ET_CHANGE_CONTRAST ? 0 : c], (int)n, v);
    for (int64_t k = 0; k < n; k++)
        for (int c = 0; c < C; c++)
            s->canvas[k * C + c] = table[c][s->canvas[k * C + c]];
}

static void
change_pixels(struct sample *s, const struct et_pixel_change *t)
{
    uint8_t *p = s->canvas;
    for (int i = 0; i < s->h; i++)
        for (int j = 0; j < s->w; j++, p += s->raw.C)
            etk_change_pixel(t, s->raw.C, i, j, p);
}

/* ---- a sample ---- */

static void
make_canvas(struct sample *s)
{
    etk_show_of(&s->row, &s->raw, &s->show);
    if (!s->show.turned && s->show.y.filter != ETK_NEAREST)
        show_resampled(s);
    else
        show_pixels(s);
    for (int k = 0; k < s->row.n_changes; k++)
        if (etk_change_is_table(s->change[k].kind))
            change_by_table(s, &s->change[k]);
        else
            change_pixels(s, &s->change[k]);
}

INLINE void
write_canvas(const struct sample *s, const char *table, char *out, const size_t size)
{
    const int C = s->raw.C;
    const int64_t n = (int64_t)s->h * s->w;
    for (int64_t k = 0; k < n; k++)
        for (int c = 0; c < C; c++, out += size)
            memcpy(out, table + (size_t)(c * 256 + s->canvas[k * C + c]) * size, size);
}

static void
read_row(const struct augment_kernel *k, const int32_t *row, const uint8_t *raw,
         struct sample *s)
{
    const struct et_desc *d = &k->raw;
    memcpy(&s->row, row, sizeof s->row);
    s->row.n_changes = etk_bound(s->row.n_changes, 0, k->room);
    memcpy(s->change, row + ET_SHOWN_NUMBERS, (size_t)k->room * sizeof *s->change);
    s->raw = (struct etk_raw){
        .data = raw + s->row.sample * d->stride[0],
        .stride_c = d->stride[1],
        .stride_y = d->stride[2],
        .stride_x = d->stride[3],
        .C = (int)d->shape[1],
        .H = (int)d->shape[2],
        .W = (int)d->shape[3],
    };
    s->h = k->h;
    s->w = k->w;
}

static void
run_piece(const struct augment_kernel *k, int piece, const uint8_t *raw,
          const int32_t *rows, const char *table, char *out, char *ws)
{
    struct sample s;
    const size_t count = (size_t)k->h * (size_t)k->w * (size_t)k->raw.shape[1];
    s.canvas = (uint8_t *)ws + k->canvas + (size_t)piece * k->canvas_step;
    s.column = (void *)(ws + k->taps + (size_t)piece * k->taps_step);
    for (int64_t n = k->n * piece / k->pieces; n < k->n * (piece + 1) / k->pieces;
         n++) {
        const int32_t *row = rows + n * k->numbers;
        char *to = out + (size_t)n * count * k->size;
        if (row[0] < 0 || row[0] >= k->raw.shape[0]) {
            memset(to, 0xff, count * k->size); /* NaN */
            continue;
        }
        read_row(k, row, raw, &s);
        make_canvas(&s);
        if (k->size == sizeof(float))
            write_canvas(&s, table, to, sizeof(float));
        else
            write_canvas(&s, table, to, k->size);
    }
}

static et_status
run_image_augment(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    const struct augment_kernel *k = (const struct augment_kernel *)kernel;
    const int32_t *rows = side_read(&k->rows, ptr[1], ws);
    const char *table = side_read(&k->table, ptr[2], ws);
    if (k->round) {
        k->round(table, (char *)ws + k->rounded, 1, k->raw.shape[1] * 256);
        table = (char *)ws + k->rounded;
    }
    char *out = side_write(&k->out, ptr[3], ws);
#pragma omp parallel for schedule(static) num_threads(k->pieces) if (k->pieces > 1)
    for (int piece = 0; piece < k->pieces; piece++)
        run_piece(k, piece, ptr[0], rows, table, out, ws);
    side_flush(&k->out, ptr[3], ws);
    return ET_OK;
}

static void
reserve_pieces(struct augment_kernel *k, size_t *ws)
{
    k->canvas_step = etk_round_up((size_t)(k->h * (int64_t)k->w * k->raw.shape[1]));
    k->taps_step = etk_round_up((size_t)k->w * sizeof(struct etk_tap));
    k->canvas = reserve(ws, (size_t)k->pieces * k->canvas_step);
    k->taps = reserve(ws, (size_t)k->pieces * k->taps_step);
}

et_status
ETK_NAME(etk_prepare_image_augment)(struct et_device_handle *d,
                                    const struct et_call *call, struct et_kernel **out,
                                    size_t *ws, char *why, size_t why_size)
{
    const struct et_desc *rows = &call->in[1], *table = &call->in[2];
    const struct et_desc *y = &call->out[0];
    struct et_desc plain_rows = row_major(rows), plain_table = row_major(table);
    struct et_desc plain;
    (void)why, (void)why_size;
    struct augment_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    et_desc_init(&plain, y->dtype, 4, y->shape, ET_CHANNELS_LAST);
    side_init(&k->rows, rows, &plain_rows, false, ws);
    side_init(&k->table, table, &plain_table, false, ws);
    side_init(&k->out, y, &plain, true, ws);
    k->raw = call->in[0];
    k->n = y->shape[0];
    k->numbers = rows->shape[1];
    k->room = (int)((rows->shape[1] - ET_SHOWN_NUMBERS) / ET_CHANGE_NUMBERS);
    k->h = (int)y->shape[2];
    k->w = (int)y->shape[3];
    k->size = et_dtype_size(y->dtype);
    if (y->dtype != table->dtype) {
        k->rounded = reserve(ws, (size_t)et_desc_count(table) * k->size);
        k->round = etk_stores[y->dtype][0];
    }
    k->pieces = pieces_for(d, et_desc_count(y), k->n);
    reserve_pieces(k, ws);
    k->base.run = run_image_augment;
    k->base.what = "loop:image_augment";
    *out = &k->base;
    return ET_OK;
}
