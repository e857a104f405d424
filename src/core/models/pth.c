/* SPDX-License-Identifier: Apache-2.0 */
/* pth.c: see pth.h. Source: PyTorch, torch/serialization.py, _save: members are
 * NAME/data.pkl, NAME/byteorder and NAME/data/KEY, one for each array. */
#include "core/models/pth.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/models/pickle.h"
#include "core/models/zip.h"

struct reading {
    struct et_ctx *cx;
    const struct eti_file *f;
    struct eti_zip zip;
    char folder[256]; /* NAME */
    struct eti_arena arena;
    struct eti_pickle_tensor *tensor;
    int64_t n;
};

#define REFUSE(r, fmt, ...)                                                            \
    ET_FAIL((r)->cx, ET_EFORMAT, "%s: " fmt, (r)->f->path, __VA_ARGS__)

static const struct eti_zip_member *
find(const struct reading *r, const char *name)
{
    char full[1024];
    int n = snprintf(full, sizeof full, "%s/%s", r->folder, name);
    return n < (int)sizeof full ? eti_zip_find(&r->zip, full) : NULL;
}

/* The pickle's folder: there is one pickle. */
static et_status
find_folder(struct reading *r)
{
    static const char last[] = "/data.pkl";
    for (int64_t i = 0; i < r->zip.n; i++) {
        const char *name = r->zip.v[i].name, *slash = strchr(name, '/');
        if (slash && strcmp(slash, last) == 0 &&
            slash - name < (ptrdiff_t)sizeof r->folder && !*r->folder)
            snprintf(r->folder, sizeof r->folder, "%.*s", (int)(slash - name), name);
    }
    return *r->folder ? ET_OK
                      : REFUSE(r, "this archive has no data.pkl: torch.save did not %s",
                               "write it");
}

static et_status
check_byte_order(const struct reading *r)
{
    const struct eti_zip_member *m = find(r, "byteorder");
    struct eti_bytes text;
    if (!m) /* before PyTorch 2.1: little */
        return ET_OK;
    ET_TRY(eti_zip_load(&r->zip, r->f, m, 16, &text));
    bool little = text.n == 6 && memcmp(text.data, "little", 6) == 0;
    et_free(r->cx, text.data);
    return little ? ET_OK : REFUSE(r, "its numbers are not %s", "little-endian");
}

static et_status
read_pickle(struct reading *r)
{
    struct eti_bytes text;
    const struct eti_zip_member *m = find(r, "data.pkl");
    ET_TRY(eti_zip_load(&r->zip, r->f, m, ETI_PICKLE_MAX, &text));
    et_status status = eti_pickle_read(r->cx, r->f->path, text.data, text.n, &r->arena,
                                       &r->tensor, &r->n);
    et_free(r->cx, text.data);
    return status;
}

/* Are its elements one after the other, the last axis fastest? *COUNT of them; -1: more
 * than a file can hold. */
static bool
is_dense(const struct eti_pickle_tensor *t, int64_t *count)
{
    bool dense = true;
    *count = 1;
    for (int i = t->ndim; i-- > 0;) {
        dense &= t->shape[i] == 1 || t->stride[i] == *count;
        if (__builtin_mul_overflow(*count, t->shape[i], count))
            *count = -1;
        if (*count <= 0)
            break;
    }
    for (int i = 0; i < t->ndim; i++)
        dense |= t->shape[i] == 0;
    return dense;
}

static et_status
place(const struct reading *r, const struct eti_pickle_tensor *t,
      struct eti_st_tensor *out)
{
    char name[512];
    int64_t count, width = (int64_t)et_dtype_size(t->dtype), last;
    snprintf(name, sizeof name, "data/%s", t->storage);
    const struct eti_zip_member *m = find(r, name);
    if (!eti_st_is_name(t->name))
        return REFUSE(
            r, "a tensor's name is empty, longer than %d bytes or unprintable", 511);
    if (!m)
        return REFUSE(r, "'%s' is in %s, which is not there", t->name, name);
    bool dense = is_dense(t, &count);
    if (count < 0 || __builtin_add_overflow(t->offset, count, &last) ||
        last > t->elements || t->elements > m->bytes / width)
        return REFUSE(r, "'%s' is larger than %s", t->name, name);
    if (!dense)
        return REFUSE(r, "'%s' does not lie row by row: save it as tensor.contiguous()",
                      t->name);
    *out = (struct eti_st_tensor){
        .name = t->name,
        .dtype = t->dtype,
        .ndim = t->ndim,
        .begin = m->at + t->offset * width,
        .end = m->at + last * width,
    };
    memcpy(out->shape, t->shape, sizeof out->shape);
    return ET_OK;
}

/* The names outlive the arena. */
static et_status
keep_names(const struct reading *r, struct eti_st_header *h)
{
    size_t bytes = 1, used = 0;
    void *block;
    for (int64_t i = 0; i < r->n; i++)
        bytes += strlen(r->tensor[i].name) + 1;
    ET_TRY(et_alloc(r->cx, bytes, &block));
    h->names = block;
    for (int64_t i = 0; i < r->n; i++) {
        size_t n = strlen(h->v[i].name) + 1;
        memcpy(h->names + used, h->v[i].name, n);
        h->v[i].name = h->names + used;
        used += n;
    }
    return ET_OK;
}

static et_status
list(const struct reading *r, struct eti_st_header *h)
{
    void *block;
    if (r->n > eti_st_limits.tensors)
        return REFUSE(r, "more than %" PRId64 " tensors", eti_st_limits.tensors);
    ET_TRY(et_alloc(r->cx, ((size_t)r->n + 1) * sizeof *h->v, &block));
    h->v = block;
    for (int64_t i = 0; i < r->n; i++, h->n++)
        ET_TRY(place(r, &r->tensor[i], &h->v[i]));
    return keep_names(r, h);
}

et_status
eti_pth_read(struct et_ctx *cx, const struct eti_file *f, struct eti_st_header *out)
{
    struct reading r = {.cx = cx, .f = f};
    *out = (struct eti_st_header){.cx = cx};
    ET_TRY(eti_zip_read(cx, f, &r.zip));
    eti_arena_init(&r.arena, cx, 16 << 10);
    et_status status = find_folder(&r);
    if (status == ET_OK)
        status = check_byte_order(&r);
    if (status == ET_OK)
        status = read_pickle(&r);
    if (status == ET_OK)
        status = list(&r, out);
    if (status != ET_OK)
        eti_st_release(out);
    eti_arena_release(&r.arena);
    eti_zip_release(&r.zip);
    return status;
}
