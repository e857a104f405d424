/* SPDX-License-Identifier: Apache-2.0 */
/* ctx.c: the context: error record, log, counted allocation. */
#include "etude/span.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/base/checks.h"
#include "core/base/installed.h"
#include "core/base/memory.h"
#include "core/base/need.h"
#include "core/base/seams.h"

enum {
    ALIGNMENT = 64, /* a cache line, and the widest vector register */
    LARGE_PAGE = 2 << 20,
    FIRST_ROOM = 64, /* of an array that grows, items */
};

struct et_ctx {
    struct et_error error;
    enum et_log_level log_level;
    bool muted;
    et_log_fn *log;
    void *log_data;
    struct et_tracer *tracer; /* NULL: none */
    char *module_path;        /* NULL: none */
    struct et_alloc_stats stats;
    const struct eti_seams *seams;
    uint64_t fail_in;   /* allocations until the one that fails; 0 = none */
    bool fail_for_good; /* and so do those after it */
    bool checks;
    struct et_device *devices; /* that are open */
    int n_devices;
    uint32_t number; /* given out last */
};

/* Of what fails where there is no context: et_ctx_new. */
static _Thread_local struct et_error without_ctx;

struct block_header {
    size_t bytes;
    char pad[ALIGNMENT - sizeof(size_t)];
};

et_status
et_ctx_new(struct et_ctx **out)
{
    ETI_NEED(NULL, out);
    et_error_clear(NULL);
    *out = calloc(1, sizeof **out);
    if (!*out)
        return ET_FAIL(NULL, ET_ENOMEM, "no memory for a context");
    (*out)->log_level = ET_LOG_INFO;
    (*out)->seams = &eti_system;
    (*out)->number = (uint32_t)((uintptr_t)*out / ALIGNMENT) * 2654435761u;
#ifdef ET_DEBUG
    (*out)->checks = true;
#endif
    return ET_OK;
}

void
et_ctx_set_checks(struct et_ctx *cx, bool on)
{
    if (!cx)
        return;
    cx->checks = on;
}

bool
eti_ctx_checks(const struct et_ctx *cx)
{
    return cx->checks;
}

uint32_t
eti_ctx_next_number(struct et_ctx *cx)
{
    cx->number += cx->number == UINT32_MAX ? 2 : 1;
    return cx->number;
}

struct et_device *
eti_ctx_devices(const struct et_ctx *cx)
{
    return cx->devices;
}

void
eti_ctx_set_devices(struct et_ctx *cx, struct et_device *first, int more)
{
    cx->devices = first;
    cx->n_devices += more;
}

void
eti_ctx_refuse(struct et_ctx *cx, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    ET_FAIL(cx, ET_EINVAL, "%s", text);
    if (cx->log)
        cx->log(cx->log_data, ET_LOG_ERROR, text);
    else
        fprintf(stderr, "etude: %s\n", text);
}

void
et_ctx_free(struct et_ctx **cx)
{
    if (!cx)
        return;
    if (*cx && (*cx)->checks && (*cx)->stats.live > 0) {
        eti_ctx_refuse(*cx,
                       "et_ctx_free: %d open devices and %llu blocks of memory "
                       "are left",
                       (*cx)->n_devices, (unsigned long long)(*cx)->stats.live);
        return;
    }
    if (*cx)
        free((*cx)->module_path);
    free(*cx);
    *cx = NULL;
}

et_status
et_ctx_set_module_path(struct et_ctx *cx, const char *folders)
{
    ETI_NEED(cx, cx);
    char *copy = folders ? strdup(folders) : NULL;
    if (folders && !copy)
        return ET_FAIL(cx, ET_ENOMEM, "no memory for the module path");
    free(cx->module_path);
    cx->module_path = copy;
    return ET_OK;
}

const char *
eti_ctx_module_path(const struct et_ctx *cx)
{
    return cx->module_path;
}

const char *
et_status_name(et_status status)
{
    static const char *const names[] = {
#define ROW(code, number, name, hint) [number] = name,
        ET_STATUS_MAP(ROW)
#undef ROW
    };
    return status < ET_STATUS_COUNT ? names[status] : "unknown status";
}

const char *
et_status_hint(et_status status)
{
    static const char *const hints[] = {
#define ROW(code, number, name, hint) [number] = hint,
        ET_STATUS_MAP(ROW)
#undef ROW
    };
    return status < ET_STATUS_COUNT ? hints[status] : "";
}

et_status
et_fail_at(struct et_ctx *cx, et_status status, const char *file, int line,
           const char *fmt, ...)
{
    struct et_error *e = cx ? &cx->error : &without_ctx;
    if (e->status != ET_OK)
        return status;
    va_list args;
    va_start(args, fmt);
    vsnprintf(e->message, sizeof e->message, fmt ? fmt : "no reason was given", args);
    va_end(args);
    e->status = status;
    e->file = file;
    e->line = line;
    return status;
}

void
et_error_set_code(struct et_ctx *cx, int code)
{
    if (cx && cx->error.status != ET_OK && cx->error.code == 0)
        cx->error.code = code;
}

void
et_hint(struct et_ctx *cx, const char *fmt, ...)
{
    if (!cx || cx->error.status == ET_OK || cx->error.hint[0])
        return;
    va_list args;
    va_start(args, fmt);
    vsnprintf(cx->error.hint, sizeof cx->error.hint, fmt, args);
    va_end(args);
}

const struct et_error *
et_error_get(const struct et_ctx *cx)
{
    return cx ? &cx->error : &without_ctx;
}

void
et_error_clear(struct et_ctx *cx)
{
    struct et_error *e = cx ? &cx->error : &without_ctx;
    memset(e, 0, sizeof *e);
}

void
et_ctx_set_log(struct et_ctx *cx, enum et_log_level level, et_log_fn *fn, void *data)
{
    if (!cx)
        return;
    cx->log_level = level;
    cx->log = fn;
    cx->log_data = data;
}

void
eti_ctx_mute(struct et_ctx *cx, bool on)
{
    cx->muted = on;
}

void
et_ctx_set_tracer(struct et_ctx *cx, struct et_tracer *t)
{
    if (!cx)
        return;
    cx->tracer = t;
}

struct et_tracer *
et_ctx_tracer(const struct et_ctx *cx)
{
    return cx ? cx->tracer : NULL;
}

void
et_report(struct et_ctx *cx, enum et_log_level level, const char *fmt, ...)
{
    if (!cx || !cx->log || cx->muted || level < cx->log_level)
        return;
    char text[2048];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    cx->log(cx->log_data, level, text);
}

const char *
et_log_level_name(enum et_log_level level)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    return names[level];
}

/* Room for BYTES behind a header, its memory as it comes. */
static et_status
take(struct et_ctx *cx, size_t bytes, struct block_header **out)
{
    size_t whole = sizeof(struct block_header) + bytes;
    whole = (whole + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    struct block_header *h = NULL;
    bool fails = cx->fail_in && --cx->fail_in == 0;
    cx->fail_in += fails && cx->fail_for_good; /* the next one */
    if (!fails && whole > bytes)
        h = aligned_alloc(ALIGNMENT, whole);
    if (!h)
        return ET_FAIL(cx, ET_ENOMEM, "out of memory: %zu bytes asked for, %zu in use",
                       bytes, cx->stats.bytes);
    cx->stats.allocs++;
    cx->stats.live++;
    cx->stats.bytes += bytes;
    if (cx->stats.bytes > cx->stats.peak)
        cx->stats.peak = cx->stats.bytes;
    *out = h;
    return ET_OK;
}

et_status
et_alloc(struct et_ctx *cx, size_t bytes, void **out)
{
    ETI_NEED(cx, cx, out);
    struct block_header *h;
    *out = NULL;
    ET_TRY(take(cx, bytes, &h));
    memset(h, 0, sizeof *h + bytes);
    h->bytes = bytes;
    *out = h + 1;
    return ET_OK;
}

et_status
eti_alloc_dirty(struct et_ctx *cx, size_t bytes, void **out)
{
    struct block_header *h;
    *out = NULL;
    ET_TRY(take(cx, bytes, &h));
    uintptr_t first = ((uintptr_t)h + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
    uintptr_t end = ((uintptr_t)h + sizeof *h + bytes) / LARGE_PAGE * LARGE_PAGE;
    if (end > first) /* a page fault for 2 MiB, not for 4 KiB */
        (void)madvise((void *)first, end - first, MADV_HUGEPAGE);
    h->bytes = bytes;
    *out = h + 1;
    return ET_OK;
}

et_status
eti_grow(struct et_ctx *cx, void *items, int64_t *room, int64_t n, size_t size)
{
    if (n <= *room)
        return ET_OK;
    int64_t want = *room ? *room : FIRST_ROOM;
    while (want < n)
        want *= 2;
    void *block, *old;
    ET_TRY(et_alloc(cx, (size_t)want * size, &block));
    memcpy(&old, items, sizeof old);
    if (old)
        memcpy(block, old, (size_t)*room * size);
    et_free(cx, old);
    memcpy(items, &block, sizeof block);
    *room = want;
    return ET_OK;
}

void
et_free(struct et_ctx *cx, void *block)
{
    if (!cx)
        return;
    if (!block)
        return;
    struct block_header *h = (struct block_header *)block - 1;
    cx->stats.live--;
    cx->stats.bytes -= h->bytes;
    free(h);
}

void
et_alloc_get_stats(const struct et_ctx *cx, struct et_alloc_stats *out)
{
    if (!cx || !out)
        return;
    *out = cx->stats;
}

void
et_alloc_fail_at(struct et_ctx *cx, uint64_t k)
{
    if (!cx)
        return;
    cx->fail_in = k;
    cx->fail_for_good = false;
}

void
et_alloc_fail_from(struct et_ctx *cx, uint64_t k)
{
    if (!cx)
        return;
    cx->fail_in = k;
    cx->fail_for_good = true;
}

void
eti_ctx_set_seams(struct et_ctx *cx, const struct eti_seams *seams)
{
    cx->seams = seams;
}

const struct eti_seams *
eti_ctx_seams(const struct et_ctx *cx)
{
    return cx->seams;
}
