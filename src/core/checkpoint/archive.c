/* SPDX-License-Identifier: Apache-2.0 */
/* archive.c: see etude/archive.h: names and values, the same way to save and to
 * load. */
#include "core/checkpoint/archive.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/base/need.h"
#include "core/graph/tensor.h"
#include "etude/ctx.h"

enum et_archive_mode
et_archive_mode(const struct et_archive *a)
{
    if (!a)
        return (enum et_archive_mode)0;
    return a->mode;
}

/* ---- the list ---- */

static void
release_item(struct et_archive *a, struct eti_archive_item *item)
{
    et_free(a->cx, item->path);
    if (item->capacity)
        et_free(a->cx, item->data);
    *item = (struct eti_archive_item){0};
}

void
eti_archive_release(struct et_archive *a)
{
    for (int64_t i = 0; i < a->capacity; i++)
        release_item(a, &a->item[i]);
    if (a->cx)
        et_free(a->cx, a->item);
    *a = (struct et_archive){0};
}

void
eti_archive_begin(struct et_archive *a, struct et_ctx *cx)
{
    a->cx = cx;
    a->mode = ET_ARCHIVE_SAVE;
    a->length = 0;
    a->prefix[0] = '\0';
    a->n = 0;
}

/* The next item, with whatever the one there before left. */
static et_status
next_item(struct et_archive *a, struct eti_archive_item **out)
{
    ET_TRY(eti_grow(a->cx, &a->item, &a->capacity, a->n + 1, sizeof *a->item));
    *out = &a->item[a->n++];
    return ET_OK;
}

static int
by_path(const void *x, const void *y)
{
    const struct eti_archive_item *a = x, *b = y;
    return strcmp(a->path, b->path);
}

static et_status
refuse_doubles(const struct et_archive *a, const struct eti_archive_item *sorted,
               et_status status)
{
    for (int64_t i = 1; i < a->n; i++)
        if (strcmp(sorted[i - 1].path, sorted[i].path) == 0)
            return ET_FAIL(a->cx, status, "two values are called '%s'", sorted[i].path);
    return ET_OK;
}

et_status
eti_archive_end(struct et_archive *a)
{
    void *block;
    for (int64_t i = a->n; i < a->capacity; i++)
        release_item(a, &a->item[i]);
    size_t bytes = (size_t)a->n * sizeof *a->item;
    ET_TRY(et_alloc(a->cx, bytes, &block));
    if (a->n) {
        memcpy(block, a->item, bytes);
        qsort(block, (size_t)a->n, sizeof *a->item, by_path);
    }
    et_status status = refuse_doubles(a, block, ET_EINTERNAL);
    et_free(a->cx, block);
    return status;
}

et_status
eti_archive_add(struct et_archive *a, const char *path, const struct et_desc *desc,
                void *data)
{
    struct eti_archive_item *item;
    void *name;
    size_t bytes = strlen(path) + 1;
    ET_TRY(next_item(a, &item));
    ET_TRY(et_alloc(a->cx, bytes, &name));
    memcpy(name, path, bytes);
    item->path = name;
    item->desc = *desc;
    item->data = data;
    return ET_OK;
}

et_status
eti_archive_sort(struct et_archive *a)
{
    if (a->n)
        qsort(a->item, (size_t)a->n, sizeof *a->item, by_path);
    return refuse_doubles(a, a->item, ET_EFORMAT);
}

struct eti_archive_item *
eti_archive_find(const struct et_archive *a, const char *path)
{
    struct eti_archive_item key = {.path = (char *)path};
    return a->n ? bsearch(&key, a->item, (size_t)a->n, sizeof key, by_path) : NULL;
}

/* ---- patterns of paths ---- */

bool
eti_archive_path_fits(const char *pattern, const char *path)
{
    char prefix[ETI_ARCHIVE_PATH];
    if (strncmp(pattern, "state/", strlen("state/")) == 0)
        pattern += strlen("state/");
    for (const char *p = path; p; p = strchr(p + 1, '/')) {
        if (p == path)
            continue;
        snprintf(prefix, sizeof prefix, "%.*s", (int)(p - path), path);
        if (fnmatch(pattern, prefix, 0) == 0)
            return true;
    }
    return fnmatch(pattern, path, 0) == 0;
}

/* Saving: is PATH not wanted? */
static bool
is_left_out(struct et_archive *a, const char *path)
{
    bool out = false;
    for (int k = 0; a->ignore && a->ignore[k]; k++)
        if (eti_archive_path_fits(a->ignore[k], path)) {
            a->used |= UINT64_C(1) << (k % 64);
            out = true;
        }
    return out;
}

/* Loading: was PATH not wanted when it was saved? */
static bool
was_left_out(const struct et_archive *a, const char *path)
{
    size_t i;
    json_t *one;
    json_array_foreach(
        (json_t *)a->left_out, i,
        one) if (eti_archive_path_fits(json_string_value(one), path)) return true;
    return false;
}

/* ---- places ---- */

et_status
et_archive_enter(struct et_archive *a, const char *name)
{
    ETI_NEED(a ? a->cx : NULL, a);
    size_t room = sizeof a->prefix - a->length;
    int n = snprintf(a->prefix + a->length, room, "%s/", name);
    if ((size_t)n >= room) {
        a->prefix[a->length] = '\0';
        return ET_FAIL(a->cx, ET_EINTERNAL,
                       "'%s%s' is longer than a checkpoint's paths", a->prefix, name);
    }
    a->length += (size_t)n;
    return ET_OK;
}

void
et_archive_leave(struct et_archive *a)
{
    if (!a)
        return;
    size_t n = a->length - 1; /* the slash */
    while (n > 0 && a->prefix[n - 1] != '/')
        n--;
    a->prefix[n] = '\0';
    a->length = n;
}

static et_status
path_of(const struct et_archive *a, const char *name, char path[ETI_ARCHIVE_PATH])
{
    int n = snprintf(path, ETI_ARCHIVE_PATH, "%s%s", a->prefix, name);
    if (n >= ETI_ARCHIVE_PATH)
        return ET_FAIL(a->cx, ET_EINTERNAL,
                       "'%s%s' is longer than a checkpoint's paths", a->prefix, name);
    return ET_OK;
}

bool
et_archive_has(const struct et_archive *a, const char *name)
{
    if (!a)
        return false;
    char path[ETI_ARCHIVE_PATH];
    if (a->mode == ET_ARCHIVE_SAVE)
        return true;
    snprintf(path, sizeof path, "%s%s", a->prefix, name);
    return eti_archive_find(a, path) != NULL;
}

bool
eti_archive_has_place(const struct et_archive *a)
{
    int64_t low = 0, high = a->n; /* items are in the order of their paths */
    if (a->mode == ET_ARCHIVE_SAVE)
        return true;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (strcmp(a->item[middle].path, a->prefix) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < a->n && strncmp(a->item[low].path, a->prefix, a->length) == 0;
}

/* ---- one value ---- */

/* A place for a value of DESC in an item with that path: the one that was here when the
 * same was saved before, if it fits. */
static et_status
reserve(struct et_archive *a, const char *path, const struct et_desc *desc,
        struct eti_archive_item **out)
{
    struct eti_archive_item *item;
    size_t bytes = et_desc_bytes(desc), room = strlen(path) + 1;
    void *block;
    ET_TRY(next_item(a, &item));
    if (!item->path || strcmp(item->path, path) != 0) {
        et_free(a->cx, item->path);
        item->path = NULL;
        ET_TRY(et_alloc(a->cx, room, &block));
        memcpy(block, path, room);
        item->path = block;
    }
    if (item->capacity < bytes || !item->data) {
        et_free(a->cx, item->data);
        item->data = NULL;
        item->capacity = 0;
        ET_TRY(eti_alloc_dirty(a->cx, bytes ? bytes : 1, &block));
        item->data = block;
        item->capacity = bytes ? bytes : 1;
    }
    item->desc = *desc;
    *out = item;
    return ET_OK;
}

/* Parameters that do not fit may be left as they are; nothing else may. */
static bool
is_excused(const struct et_archive *a, const char *path)
{
    return a->lenient && strncmp(path, "model/", strlen("model/")) == 0;
}

/* The item that a checkpoint has under NAME, which must be of that dtype and shape.
 * NULL where the value is to stay as it is. */
static et_status
fetch(struct et_archive *a, const char *name, const struct et_desc *want,
      struct eti_archive_item **out)
{
    char path[ETI_ARCHIVE_PATH], have_text[128], want_text[128];
    ET_TRY(path_of(a, name, path));
    struct eti_archive_item *item = eti_archive_find(a, path);
    *out = NULL;
    if (item ? item->ignored : was_left_out(a, path))
        return ET_OK;
    et_desc_text(want, want_text, sizeof want_text);
    bool fits = item && item->desc.dtype == want->dtype &&
                et_desc_same_shape(&item->desc, want);
    if (!fits && is_excused(a, path)) {
        if (a->mode == ET_ARCHIVE_CHECK) /* said once */
            et_report(a->cx, ET_LOG_WARN,
                      "%s: '%s' is %s, the model wants %s: it stays", a->source, path,
                      item ? et_desc_text(&item->desc, have_text, sizeof have_text)
                           : "missing",
                      want_text);
        if (item)
            item->taken = true;
        return ET_OK;
    }
    if (!item)
        return ET_FAIL(a->cx, ET_EFORMAT, "%s: '%s' is missing, the run wants %s",
                       a->source, path, want_text);
    if (!fits)
        return ET_FAIL(a->cx, ET_EFORMAT, "%s: '%s' is %s, the run wants %s", a->source,
                       path, et_desc_text(&item->desc, have_text, sizeof have_text),
                       want_text);
    item->taken = true;
    *out = item;
    return ET_OK;
}

et_status
et_archive_tensor(struct et_archive *a, const char *name, struct et_tensor *t)
{
    ETI_NEED(a ? a->cx : NULL, a, t);
    char path[ETI_ARCHIVE_PATH];
    struct eti_archive_item *item;
    if (a->counts) {
        a->bytes += et_desc_bytes(&t->desc);
        return ET_OK;
    }
    if (a->mode == ET_ARCHIVE_SAVE) {
        ET_TRY(path_of(a, name, path));
        if (is_left_out(a, path))
            return ET_OK;
        ET_TRY(reserve(a, path, &t->desc, &item));
        item->is_number = false;
        return eti_tensor_copy_out(a->cx, t, item->data);
    }
    ET_TRY(fetch(a, name, &t->desc, &item));
    if (a->mode == ET_ARCHIVE_CHECK || !item)
        return ET_OK;
    return et_tensor_write(a->cx, t, item->data, et_desc_bytes(&t->desc));
}

static et_status
numbers(struct et_archive *a, const char *name, enum et_dtype dtype, void *v, int64_t n)
{
    struct et_desc desc;
    struct eti_archive_item *item;
    et_desc_init(&desc, dtype, 1, &n, ET_ROW_MAJOR);
    size_t bytes = et_desc_bytes(&desc);
    if (a->counts) {
        a->bytes += bytes;
        return ET_OK;
    }
    if (a->mode == ET_ARCHIVE_SAVE) {
        char path[ETI_ARCHIVE_PATH];
        ET_TRY(path_of(a, name, path));
        if (is_left_out(a, path))
            return ET_OK;
        ET_TRY(reserve(a, path, &desc, &item));
        item->is_number = true;
        if (bytes)
            memcpy(item->data, v, bytes);
        return ET_OK;
    }
    ET_TRY(fetch(a, name, &desc, &item));
    if (a->mode == ET_ARCHIVE_LOAD && item && bytes)
        memcpy(v, item->data, bytes);
    return ET_OK;
}

et_status
et_archive_i64(struct et_archive *a, const char *name, int64_t *v, int64_t n)
{
    ETI_NEED(a ? a->cx : NULL, a);
    if (n > 0)
        ETI_NEED(a ? a->cx : NULL, v);
    return numbers(a, name, ET_I64, v, n);
}

et_status
et_archive_counts(struct et_archive *a, const char *name, int64_t *v, int64_t n,
                  int64_t least, int64_t most)
{
    ETI_NEED(a ? a->cx : NULL, a);
    if (n > 0)
        ETI_NEED(a ? a->cx : NULL, v);
    struct et_desc desc;
    struct eti_archive_item *item;
    et_desc_init(&desc, ET_I64, 1, &n, ET_ROW_MAJOR);
    if (a->mode == ET_ARCHIVE_SAVE)
        return et_archive_i64(a, name, v, n);
    ET_TRY(fetch(a, name, &desc, &item));
    for (int64_t i = 0; item && i < n; i++) {
        int64_t x;
        memcpy(&x, (const char *)item->data + (size_t)i * sizeof x, sizeof x);
        if (x < least || x > most)
            return ET_FAIL(a->cx, ET_EFORMAT,
                           "%s: '%s' holds %" PRId64 ", not %" PRId64 " to %" PRId64,
                           a->source, item->path, x, least, most);
        if (a->mode == ET_ARCHIVE_LOAD)
            v[i] = x;
    }
    return ET_OK;
}

et_status
et_archive_f64(struct et_archive *a, const char *name, double *v, int64_t n)
{
    ETI_NEED(a ? a->cx : NULL, a);
    if (n > 0)
        ETI_NEED(a ? a->cx : NULL, v);
    return numbers(a, name, ET_F64, v, n);
}

/* The same, but where V is the caller's own it is filled when checking too. */
static et_status
look_at(struct et_archive *a, const char *name, double *v, int64_t n)
{
    struct et_desc desc;
    struct eti_archive_item *item;
    et_desc_init(&desc, ET_F64, 1, &n, ET_ROW_MAJOR);
    if (a->mode == ET_ARCHIVE_SAVE)
        return et_archive_f64(a, name, v, n);
    ET_TRY(fetch(a, name, &desc, &item));
    if (item)
        memcpy(v, item->data, et_desc_bytes(&desc));
    return ET_OK;
}

et_status
et_archive_flag(struct et_archive *a, const char *name, bool *v)
{
    ETI_NEED(a ? a->cx : NULL, a, v);
    int64_t number = *v;
    ET_TRY(et_archive_i64(a, name, &number, 1));
    *v = number != 0;
    return ET_OK;
}

et_status
et_archive_time(struct et_archive *a, const char *name, struct et_time *v)
{
    ETI_NEED(a ? a->cx : NULL, a, v);
    double pair[2] = {v->value, (double)v->unit};
    ET_TRY(look_at(a, name, pair, 2));
    if (!(pair[1] >= 0 && pair[1] <= ET_TIME_UNIT_COUNT))
        return ET_FAIL(a->cx, ET_EFORMAT, "%s: '%s%s' is no time", a->source, a->prefix,
                       name);
    if (a->mode == ET_ARCHIVE_LOAD)
        *v = (struct et_time){pair[0], (enum et_time_unit)pair[1]};
    return ET_OK;
}

et_status
et_archive_timestamp(struct et_archive *a, const char *name, struct et_timestamp *v)
{
    ETI_NEED(a ? a->cx : NULL, a, v);
    int64_t count[] = {
        v->iteration,
        v->epoch,
        v->batch,
        v->sample,
        v->token,
        v->epoch_in_iteration,
        v->token_in_iteration,
        v->batch_in_epoch,
        v->sample_in_epoch,
        v->token_in_epoch,
    };
    double clock[] = {v->total_wct, v->iteration_wct, v->epoch_wct, v->batch_wct};
    ET_TRY(et_archive_enter(a, name));
    ET_TRY(et_archive_counts(a, "counts", count, sizeof count / sizeof *count, 0,
                             ET_COUNT_MAX));
    ET_TRY(look_at(a, "clocks", clock, sizeof clock / sizeof *clock));
    for (size_t i = 0; i < sizeof clock / sizeof *clock; i++)
        if (!(clock[i] >= 0 && clock[i] < (double)ET_COUNT_MAX))
            return ET_FAIL(a->cx, ET_EFORMAT, "%s: '%sclocks' holds %g seconds",
                           a->source, a->prefix, clock[i]);
    et_archive_leave(a);
    if (a->mode != ET_ARCHIVE_LOAD)
        return ET_OK;
    *v = (struct et_timestamp){
        .iteration = count[0],
        .epoch = count[1],
        .batch = count[2],
        .sample = count[3],
        .token = count[4],
        .epoch_in_iteration = count[5],
        .token_in_iteration = count[6],
        .batch_in_epoch = count[7],
        .sample_in_epoch = count[8],
        .token_in_epoch = count[9],
        .total_wct = clock[0],
        .iteration_wct = clock[1],
        .epoch_wct = clock[2],
        .batch_wct = clock[3],
    };
    return ET_OK;
}

/* The item that a checkpoint has under NAME, bytes of a list; NULL as of fetch. */
static et_status
fetch_list(struct et_archive *a, const char *name, size_t width,
           struct eti_archive_item **out)
{
    char path[ETI_ARCHIVE_PATH];
    ET_TRY(path_of(a, name, path));
    struct eti_archive_item *item = eti_archive_find(a, path);
    *out = NULL;
    if (!item && was_left_out(a, path))
        return ET_OK;
    if (!item)
        return ET_FAIL(a->cx, ET_EFORMAT, "%s: '%s' is missing", a->source, path);
    if (item->desc.dtype != ET_U8 || item->desc.ndim != 1 ||
        item->desc.shape[0] % (int64_t)width != 0)
        return ET_FAIL(a->cx, ET_EFORMAT, "%s: '%s' is no list of items of %zu bytes",
                       a->source, path, width);
    item->taken = true;
    *out = item;
    return ET_OK;
}

et_status
et_archive_list(struct et_archive *a, const char *name, void **block, int64_t *n,
                size_t width)
{
    ETI_NEED(a ? a->cx : NULL, a, name, block, n);
    struct eti_archive_item *item;
    if (a->mode == ET_ARCHIVE_SAVE)
        return numbers(a, name, ET_U8, *block, *n * (int64_t)width);
    ET_TRY(fetch_list(a, name, width, &item));
    if (a->mode == ET_ARCHIVE_CHECK || !item || item->ignored)
        return ET_OK;
    int64_t bytes = item->desc.shape[0];
    void *copy = NULL;
    if (bytes) {
        ET_TRY(et_alloc(a->cx, (size_t)bytes, &copy));
        memcpy(copy, item->data, (size_t)bytes);
    }
    et_free(a->cx, *block);
    *block = copy;
    *n = bytes / (int64_t)width;
    return ET_OK;
}

et_status
et_archive_text(struct et_archive *a, const char *name, char *text, size_t size)
{
    ETI_NEED(a ? a->cx : NULL, a, text);
    struct eti_archive_item *item;
    if (a->mode == ET_ARCHIVE_SAVE)
        return numbers(a, name, ET_U8, text, (int64_t)strnlen(text, size - 1));
    ET_TRY(fetch_list(a, name, 1, &item));
    if (!item || item->ignored)
        return ET_OK;
    int64_t n = item->desc.shape[0];
    if (n >= (int64_t)size)
        return ET_FAIL(a->cx, ET_EFORMAT,
                       "%s: '%s' is %" PRId64 " bytes, not below %zu", a->source,
                       item->path, n, size);
    if (a->mode == ET_ARCHIVE_LOAD)
        snprintf(text, size, "%.*s", (int)n, (const char *)item->data);
    return ET_OK;
}

/* ---- for who writes ---- */

bool
eti_archive_item_is_rows(const struct eti_archive_item *item)
{
    return et_desc_is_contiguous(&item->desc, ET_ROW_MAJOR);
}

void
eti_archive_item_rows(const struct eti_archive_item *item, void *rows)
{
    eti_desc_to_rows(&item->desc, item->data, rows);
}

/* The common case: a loop that a compiler makes wide. */
static bool
floats_are_finite(const float *v, int64_t n)
{
    const uint32_t exponent = 0x7f800000;
    uint32_t bad = 0; /* integers: an order of sums would have to be kept */
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &v[i], sizeof bits);
        bad |= (bits & exponent) == exponent;
    }
    return bad == 0;
}

bool
eti_archive_item_is_finite(const struct eti_archive_item *item)
{
    /* The exponent's bits, all set in what is not finite. */
    static const uint64_t exponent[ET_DTYPE_COUNT] = {
        [ET_F32] = 0x7f800000,
        [ET_F64] = 0x7ff0000000000000,
        [ET_BF16] = 0x7f80,
        [ET_F16] = 0x7c00,
    };
    int64_t n = et_desc_count(&item->desc);
    uint64_t bits = exponent[item->desc.dtype];
    size_t width = et_dtype_size(item->desc.dtype);
    if (item->desc.dtype == ET_F32)
        return floats_are_finite(item->data, n);
    for (int64_t i = 0; bits && i < n; i++) {
        uint64_t v = 0;
        memcpy(&v, (const char *)item->data + (size_t)i * width, width);
        if ((v & bits) == bits)
            return false;
    }
    return true;
}
