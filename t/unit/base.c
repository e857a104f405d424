/* SPDX-License-Identifier: Apache-2.0 */
/* Statuses, errors, the log, memory, and descriptions of arrays. */
#include "core/base/memory.h"
#include "etude/ctx.h"
#include "etude/types.h"
#include "t/tap.h"

#include <stdio.h>
#include <string.h>

static struct et_ctx *cx;

static et_status
fail_twice(void)
{
    ET_FAIL(cx, ET_ESHAPE, "%d is not %d", 3, 4);
    return ET_FAIL(cx, ET_EIO, "while cleaning up");
}

static et_status
try_it(void)
{
    ET_TRY(ET_OK);
    ET_TRY(fail_twice());
    return ET_EINTERNAL;
}

static void
test_errors(void)
{
    const struct et_error *e = et_error_get(cx);
    ok(e->status == ET_OK, "a new context has no error");
    et_hint(cx, "nothing to try");
    is_str(e->hint, "", "a hint without an error is not kept");
    ok(try_it() == ET_EIO, "a status goes upward through ET_TRY");
    ok(e->status == ET_ESHAPE, "the first error stands");
    is_str(e->message, "3 is not 4", "with its sentence");
    ok(e->file && strstr(e->file, "base.c") && e->line > 0, "and its place");
    et_hint(cx, "use %d", 4);
    et_hint(cx, "use 5");
    is_str(e->hint, "use 4", "the first hint stands too");
    et_error_clear(cx);
    ok(e->status == ET_OK && !e->message[0] && !e->hint[0], "a cleared error is gone");
    ok(ET_FAIL(NULL, ET_EINVAL, "nobody to tell") == ET_EINVAL,
       "without a context a failure is its status");
}

static void
test_words(void)
{
    is_str(et_status_name(ET_ENOMEM), "out of memory", "a status has a name");
    is_str(et_status_hint(ET_ENOMEM), "free memory or lower the batch size",
           "and a sentence");
    bool all = true;
    for (int s = 0; s < ET_STATUS_COUNT; s++)
        all = all && et_status_name((et_status)s)[0] && et_status_hint((et_status)s)[0];
    ok(all, "all of them have both");
    is_str(et_status_name(ET_STATUS_COUNT), "unknown status", "there are no others");
    is_str(et_log_level_name(ET_LOG_WARN), "warn", "a level of the log has a name");
}

static char lines[256];

static void
keep(void *data, enum et_log_level level, const char *text)
{
    size_t used = strlen(lines);
    snprintf(lines + used, sizeof lines - used, "%s%s:%s;", (const char *)data,
             et_log_level_name(level), text);
}

static void
test_log(void)
{
    char mark[] = "-";
    et_report(cx, ET_LOG_ERROR, "to nobody");
    et_ctx_set_log(cx, ET_LOG_WARN, keep, mark);
    et_report(cx, ET_LOG_INFO, "too quiet");
    et_report(cx, ET_LOG_WARN, "%d", 1);
    et_report(cx, ET_LOG_ERROR, "two");
    is_str(lines, "-warn:1;-error:two;", "lines at the level and above reach the log");
    et_ctx_set_log(cx, ET_LOG_INFO, NULL, NULL);
    et_report(cx, ET_LOG_ERROR, "to nobody again");
    is_str(lines, "-warn:1;-error:two;", "until it is taken off");
}

static void
test_memory(void)
{
    struct et_alloc_stats before, now;
    void *a, *b;
    et_alloc_get_stats(cx, &before);
    bool made = et_alloc(cx, 100, &a) == ET_OK && et_alloc(cx, 0, &b) == ET_OK;
    ok(made && a && b && (uintptr_t)a % 64 == 0 && (uintptr_t)b % 64 == 0,
       "blocks are aligned to 64 bytes, empty ones too");
    if (!made)
        bail("%s", et_error_get(cx)->message);
    bool zero = true;
    for (int i = 0; i < 100; i++)
        zero = zero && ((char *)a)[i] == 0;
    ok(zero, "and begin as zeros");
    et_alloc_get_stats(cx, &now);
    ok(now.live == before.live + 2 && now.allocs == before.allocs + 2 &&
           now.bytes == before.bytes + 100,
       "they are counted");
    et_free(cx, a);
    et_free(cx, b);
    et_free(cx, NULL);
    et_alloc_get_stats(cx, &now);
    ok(now.live == before.live && now.bytes == before.bytes &&
           now.peak >= before.bytes + 100,
       "what is freed is subtracted, the peak stays");

    et_alloc_fail_at(cx, 2);
    ok(et_alloc(cx, 8, &a) == ET_OK, "a failure may be asked for: not the next block");
    ok(et_alloc(cx, 8, &b) == ET_ENOMEM && !b, "but the second");
    is_str(et_error_get(cx)->message, "out of memory: 8 bytes asked for, 8 in use",
           "which says how much was asked for");
    et_error_clear(cx);
    ok(et_alloc(cx, 8, &b) == ET_OK, "and no more");
    et_free(cx, a);
    et_free(cx, b);
    ok(et_alloc(cx, SIZE_MAX - 8, &a) == ET_ENOMEM && !a,
       "a size that overflows is out of memory");
    et_error_clear(cx);
}

static bool
has_memory(void)
{
    void *block;
    const bool has = et_alloc(cx, 100, &block) == ET_OK;
    et_free(cx, block);
    et_error_clear(cx);
    return has;
}

static void
test_accounts(void)
{
    struct et_alloc_stats before, now;
    void *a, *b;
    et_alloc_get_stats(cx, &before);
    if (et_alloc(cx, 50000, &a) != ET_OK || et_alloc(cx, 7000, &b) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    et_free(cx, a);
    ok(has_memory(), "memory can be allocated");
    et_alloc_get_stats(cx, &now);
    ok(now.peak == before.bytes + 57000 && now.bytes == before.bytes + 7000 &&
           now.live == before.live + 1 && now.allocs == before.allocs + 3,
       "the peak of memory is the most that was in use at once");
    et_free(cx, b);

    et_alloc_fail_from(cx, 2);
    bool first = has_memory(), second = has_memory(), third = has_memory();
    ok(first && !second && !third && !has_memory(),
       "et_alloc_fail_from lets allocations fail from the second on");
    et_alloc_fail_from(cx, 0);
    ok(has_memory() && has_memory(),
       "et_alloc_fail_from with 0 lets no allocation fail");
    et_alloc_fail_from(cx, 1);
    first = has_memory();
    et_alloc_fail_at(cx, 1);
    second = has_memory();
    ok(!first && !second && has_memory(),
       "et_alloc_fail_at after et_alloc_fail_from lets one allocation fail");
}

static void
test_growing(void)
{
    struct et_alloc_stats before, now;
    int64_t *item = NULL, room = 0;
    bool kept = true;
    et_alloc_get_stats(cx, &before);
    for (int64_t i = 0; i < 1000; i++) {
        if (eti_grow(cx, &item, &room, i + 1, sizeof *item) != ET_OK)
            bail("%s", et_error_get(cx)->message);
        item[i] = i * i;
    }
    for (int64_t i = 0; i < 1000; i++)
        kept = kept && item[i] == i * i;
    ok(kept && room >= 1000, "an array that grows keeps its items");
    et_alloc_get_stats(cx, &now);
    ok(now.allocs < before.allocs + 10 && now.live == before.live + 1,
       "it is moved seldom, and the old ones are freed");

    const int64_t *const at = item;
    const int64_t had = room;
    et_alloc_fail_at(cx, 1);
    ok(eti_grow(cx, &item, &room, room, sizeof *item) == ET_OK && item == at,
       "what fits needs no memory");
    ok(eti_grow(cx, &item, &room, room + 1, sizeof *item) == ET_ENOMEM && item == at &&
           room == had && item[999] == 999 * 999,
       "without memory the array is what it was");
    et_error_clear(cx);
    ok(eti_grow(cx, &item, &room, 5 * had, sizeof *item) == ET_OK && room >= 5 * had &&
           item[999] == 999 * 999 && item[5 * had - 1] == 0,
       "it grows by many at once, the new ones are zeros");
    et_free(cx, item);
}

static struct et_desc
desc(enum et_dtype dtype, int ndim, const int64_t *shape, enum et_format format)
{
    struct et_desc d;
    et_desc_init(&d, dtype, ndim, shape, format);
    return d;
}

static void
test_dtypes(void)
{
    bool sizes = true;
#define ROW(code, number, text, bytes, st)                                             \
    sizes = sizes && et_dtype_size(ET_##code) == bytes &&                              \
            strcmp(et_dtype_name(ET_##code), text) == 0;
    ET_DTYPE_MAP(ROW)
#undef ROW
    ok(sizes, "sizes and names of dtypes are the map's");
    ok(et_dtype_is_float(ET_BF16) && et_dtype_is_float(ET_F64) &&
           !et_dtype_is_float(ET_I32) && !et_dtype_is_float(ET_U8),
       "f32, f64, bf16 and f16 are floats");
}

static void
test_descriptions(void)
{
    static const int64_t image[] = {2, 3, 4, 5}, none[] = {2, 0, 4},
                         flat[] = {2, 3, 1, 1};
    struct et_desc rows = desc(ET_F32, 4, image, ET_ROW_MAJOR);
    struct et_desc last = desc(ET_BF16, 4, image, ET_CHANNELS_LAST);
    struct et_desc scalar = desc(ET_F64, 0, NULL, ET_ROW_MAJOR);
    struct et_desc empty = desc(ET_I32, 3, none, ET_ROW_MAJOR);
    struct et_desc pixel = desc(ET_F32, 4, flat, ET_CHANNELS_LAST);
    char text[64];

    is_str(et_desc_text(&rows, text, sizeof text), "f32[2,3,4,5]",
           "a text says what is");
    ok(rows.stride[1] == 20 && rows.stride[3] == 1,
       "row-major: the last axis is dense");
    ok(last.stride[1] == 1 && last.stride[3] == 3 && last.stride[2] == 15,
       "channels-last: channels are");
    is_int(et_desc_count(&rows), 120, "elements are the product of the lengths");
    is_int(et_desc_count(&scalar), 1, "a scalar has one");
    is_int(et_desc_count(&empty), 0, "an array with an axis of length 0 has none");
    ok(et_desc_bytes(&last) == 240 && et_desc_bytes(&scalar) == 8,
       "bytes follow the dtype");
    ok(et_desc_is_contiguous(&last, ET_CHANNELS_LAST) &&
           !et_desc_is_contiguous(&last, ET_ROW_MAJOR),
       "an array is contiguous in its own order");
    ok(et_desc_is_contiguous(&pixel, ET_CHANNELS_LAST) &&
           et_desc_is_contiguous(&pixel, ET_ROW_MAJOR),
       "in both where they are the same");
    ok(et_desc_same_shape(&rows, &last) && !et_desc_equal(&rows, &last) &&
           et_desc_equal(&rows, &rows),
       "equal is more than of one shape");

    struct et_desc view = rows, like;
    view.shape[3] = 3; /* the first columns */
    ok(et_desc_is_dense(&last) && !et_desc_is_dense(&view),
       "an array with gaps is not dense");
    et_desc_like(&like, ET_F32, 4, image, &last);
    ok(et_desc_is_contiguous(&like, ET_CHANNELS_LAST),
       "like another: in its axis order");
    view = rows;
    view.stride[1] = 0;
    et_desc_like(&like, ET_F32, 4, image, &view);
    ok(et_desc_is_contiguous(&like, ET_ROW_MAJOR) && !et_desc_is_dense(&view),
       "like one that repeats: row-major");
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("out of memory");
    test_errors();
    test_words();
    test_log();
    test_memory();
    test_accounts();
    test_growing();
    test_dtypes();
    test_descriptions();
    et_ctx_free(&cx);
    ok(!cx, "a freed context is forgotten");
    return done();
}
