/* SPDX-License-Identifier: Apache-2.0 */
/* predictions_detail.c: the class of each pixel, and of each token: see
 * predictions.h. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/image/encode.h"
#include "core/library/npz.h"
#include "core/library/predictions.h"

enum { NONE = 255 /* of a mask in bytes: counts nothing */ };

bool
eti_detail_has(enum eti_answer answer, enum eti_predictions_as as)
{
    return (answer == ETI_ANSWER_MASK && (as == ETI_AS_NPZ || as == ETI_AS_FOLDER)) ||
           (answer == ETI_ANSWER_TOKENS && as == ETI_AS_JSONL);
}

void
eti_detail_release(struct eti_detail *d)
{
    if (d->lines)
        fclose(d->lines);
    free(d->text);
    if (d->cx) {
        et_free(d->cx, d->mask);
        et_free(d->cx, d->label);
    }
    *d = (struct eti_detail){.cx = d->cx};
}

static et_status
grow(struct eti_detail *d, uint8_t **at, size_t used, size_t bytes)
{
    void *block;
    ET_TRY(et_alloc(d->cx, bytes, &block));
    if (used > 0)
        memcpy(block, *at, used);
    et_free(d->cx, *at);
    *at = block;
    return ET_OK;
}

static et_status
to_bytes(struct eti_detail *d, const int32_t *from, uint8_t *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (from[i] >= NONE)
            return ET_FAIL(d->cx, ET_ENOTSUP,
                           "%s: class %d: masks in bytes have at most %d classes",
                           d->path, (int)from[i], NONE);
        to[i] = from[i] < 0 ? NONE : (uint8_t)from[i];
    }
    return ET_OK;
}

static et_status
write_picture(struct eti_detail *d, const int32_t *chosen)
{
    char path[4096];
    const int n = snprintf(path, sizeof path, "%s%06" PRId64 ".png", d->path, d->n);
    if (n < 0 || n >= (int)sizeof path)
        return ET_FAIL(d->cx, ET_EINVAL, "the path of a mask is too long");
    if (d->n == 0 && mkdir(d->path, 0777) != 0 && errno != EEXIST)
        return ET_FAIL(d->cx, ET_EIO, "cannot make %s: %s", d->path, strerror(errno));
    ET_TRY(to_bytes(d, chosen, d->mask, d->H * d->W));
    return eti_png_write_mask(d->cx, path, d->mask, d->W, d->H);
}

et_status
eti_detail_mask(struct eti_detail *d, const int32_t *chosen, const int32_t *label,
                int64_t H, int64_t W)
{
    const size_t each = (size_t)(H * W);
    const bool keeps = d->as == ETI_AS_NPZ;
    if (d->n == 0) {
        d->H = H;
        d->W = W;
    }
    if (H != d->H || W != d->W)
        return ET_FAIL(d->cx, ET_ENOTSUP,
                       "%s: a mask of %" PRId64 " x %" PRId64 " after %" PRId64
                       " x %" PRId64,
                       d->path, H, W, d->H, d->W);
    if (d->n == d->room && (keeps || d->n == 0)) {
        const int64_t room = !keeps ? 1 : d->room > 0 ? 2 * d->room : 64;
        ET_TRY(grow(d, &d->mask, (size_t)d->n * each, (size_t)room * each));
        ET_TRY(grow(d, &d->label, (size_t)d->n * each, (size_t)room * each));
        d->room = room;
    }
    if (keeps) {
        ET_TRY(to_bytes(d, chosen, d->mask + (size_t)d->n * each, H * W));
        ET_TRY(to_bytes(d, label, d->label + (size_t)d->n * each, H * W));
    } else {
        ET_TRY(write_picture(d, chosen));
    }
    d->n++;
    return ET_OK;
}

static void
put_list(FILE *f, const char *key, const int32_t *v, int64_t n)
{
    fprintf(f, ",\"%s\":[", key);
    for (int64_t i = 0; i < n; i++)
        fprintf(f, i > 0 ? ",%d" : "%d", (int)v[i]);
    fputc(']', f);
}

et_status
eti_detail_tokens(struct eti_detail *d, const int32_t *input, const int32_t *label,
                  const int32_t *chosen, const float *loss, int64_t T)
{
    if (!d->lines)
        d->lines = open_memstream(&d->text, &d->n_text);
    if (!d->lines)
        return ET_FAIL(d->cx, ET_ENOMEM, "out of memory: %s", d->path);
    fprintf(d->lines, "{\"sample\":%" PRId64, d->n++);
    put_list(d->lines, "input", input, T);
    put_list(d->lines, "label", label, T);
    put_list(d->lines, "class", chosen, T);
    fputs(",\"losses\":[", d->lines);
    for (int64_t i = 0; i < T; i++) {
        if (i > 0)
            fputc(',', d->lines);
        if (isfinite(loss[i]))
            fprintf(d->lines, "%.6g", (double)loss[i]);
        else
            fputs("null", d->lines);
    }
    fputs("]}\n", d->lines);
    return ET_OK;
}

static et_status
write_arrays(struct eti_detail *d, const struct eti_predictions *all, FILE *f)
{
    const struct eti_npz_array array[] = {
        {"mask.npy", "|u1", 1, d->mask, 3, {d->n, d->H, d->W}},
        {"label.npy", "|u1", 1, d->label, 3, {d->n, d->H, d->W}},
        {"loss.npy", "<f4", 4, all->loss, 1, {all->n}},
    };
    if (!eti_npz_put(f, array, 3))
        return ET_FAIL(d->cx, ET_ENOTSUP,
                       "%s: more than 4 GB, which such a file cannot have; a folder, "
                       "-o NAME/, can",
                       d->path);
    return ET_OK;
}

et_status
eti_detail_write(struct eti_detail *d, const struct eti_predictions *all)
{
    et_status status = ET_OK;
    if (d->as == ETI_AS_FOLDER)
        return ET_OK;
    if (!d->lines)
        d->lines = open_memstream(&d->text, &d->n_text);
    if (d->lines && d->as == ETI_AS_NPZ)
        status = write_arrays(d, all, d->lines);
    const bool is_whole = d->lines && fclose(d->lines) == 0;
    d->lines = NULL;
    if (status == ET_OK && !is_whole)
        status = ET_FAIL(d->cx, ET_ENOMEM, "out of memory: %s", d->path);
    return status == ET_OK ? eti_text_replace(d->cx, d->path, d->text, d->n_text)
                           : status;
}
