/* weights.c: a model's values from a safetensors file, and to one. See model.h.
 *
 * Loading reads the header, holds every name and shape against the model, and only then
 * reads values. Saving writes beside the file and renames, so that there is always a
 * whole one. */
#include "etude/model.h"

#include <stdio.h>
#include <string.h>

#include "core/base/seams.h"
#include "core/models/weight_file.h"

enum { CHUNK_BYTES = 1 << 12 };

/* Last parts of names that other libraries save and that nothing is computed from. */
static const char *const unused[] = {
    "num_batches_tracked", /* torch: batches that batch norm saw */
    "attn.bias",           /* Hugging Face: GPT-2's causal mask */
    "attn.masked_bias",    /* likewise: what masked scores were */
    "position_ids",        /* likewise: 0, 1, 2, ... */
    NULL,
};

static bool
is_unused(const char *name)
{
    size_t n = strlen(name);
    for (const char *const *u = unused; *u; u++) {
        size_t k = strlen(*u);
        if (n >= k && strcmp(name + n - k, *u) == 0 &&
            (n == k || name[n - k - 1] == '.'))
            return true;
    }
    return false;
}

/* ---- reading ---- */

static et_status
read_values(const struct eti_weight_file *f, const struct eti_st_tensor *t, float *out)
{
    _Alignas(8) uint8_t raw[CHUNK_BYTES];
    double wide[CHUNK_BYTES];
    int64_t width = (int64_t)et_dtype_size(t->dtype), bytes = t->end - t->begin;
    for (int64_t at = 0; at < bytes;) {
        int64_t n = bytes - at < CHUNK_BYTES ? bytes - at : CHUNK_BYTES;
        ET_TRY(eti_weight_file_read(f, t, at, raw, n));
        eti_widen(t->dtype, raw, n / width, wide);
        for (int64_t i = 0; i < n / width; i++)
            *out++ = (float)wide[i];
        at += n;
    }
    return ET_OK;
}

/* ---- does it fit ---- */

/* What does not: the first of it as a sentence. */
struct misfits {
    int n;
    char first[768];
};

static void complain(struct misfits *m, const char *fmt, ...) ET_PRINTF(2, 3);

static void
complain(struct misfits *m, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    if (m->n++ == 0)
        vsnprintf(m->first, sizeof m->first, fmt, args);
    va_end(args);
}

static const struct eti_st_tensor *
find_tensor(const struct eti_st_header *h, const char *name)
{
    for (int64_t i = 0; i < h->n; i++)
        if (strcmp(h->v[i].name, name) == 0)
            return &h->v[i];
    return NULL;
}

static void
check_leaf(const struct eti_st_header *h, const struct et_leaf *leaf, struct misfits *m)
{
    const struct et_desc *want = &leaf->param->desc;
    const struct eti_st_tensor *t = find_tensor(h, leaf->name);
    char a[192], b[192];
    eti_st_shape_text(want->ndim, want->shape, b, sizeof b);
    if (!t)
        complain(m, "'%s' is missing, model wants %s", leaf->name, b);
    else if (t->ndim != want->ndim ||
             memcmp(t->shape, want->shape, (size_t)t->ndim * sizeof *t->shape) != 0)
        complain(m, "'%s' is %s, model wants %s", leaf->name,
                 eti_st_shape_text(t->ndim, t->shape, a, sizeof a), b);
}

static et_status
check_fit(struct et_ctx *cx, const char *path, const struct eti_st_header *h,
          const struct et_leaves *l)
{
    struct misfits m = {0};
    for (int i = 0; i < l->n; i++)
        check_leaf(h, &l->v[i], &m);
    for (int64_t i = 0; i < h->n; i++)
        if (!et_leaves_find(l, h->v[i].name) && !is_unused(h->v[i].name))
            complain(&m, "'%s' is not in the model", h->v[i].name);
    if (m.n == 0)
        return ET_OK;
    if (m.n == 1)
        return ET_FAIL(cx, ET_EFORMAT, "%s: %s", path, m.first);
    return ET_FAIL(cx, ET_EFORMAT, "%s: %s (and %d more that do not fit)", path,
                   m.first, m.n - 1);
}

static et_status
load_leaf(struct et_ctx *cx, const struct eti_weight_file *f,
          const struct eti_st_tensor *t, struct et_param *p)
{
    int64_t count = et_desc_count(&p->desc);
    void *values;
    ET_TRY(et_alloc(cx, ((size_t)count + 1) * sizeof(float), &values));
    et_status status = read_values(f, t, values);
    if (status == ET_OK)
        status = et_param_write(cx, p, values, count);
    et_free(cx, values);
    return status;
}

static et_status
load_all(struct et_ctx *cx, struct et_model *model, const struct eti_weight_file *f)
{
    struct et_leaves l;
    ET_TRY(et_module_leaves(cx, model->root, ET_PARAM | ET_BUFFER, &l));
    et_status status = check_fit(cx, f->file.path, &f->header, &l);
    for (int i = 0; i < l.n && status == ET_OK; i++)
        status = load_leaf(cx, f, find_tensor(&f->header, l.v[i].name), l.v[i].param);
    et_leaves_release(&l);
    return status;
}

et_status
et_model_load_weights(struct et_ctx *cx, struct et_model *model, const char *path)
{
    struct eti_weight_file f;
    ET_TRY(eti_weight_file_open(cx, path, &f));
    et_status status = load_all(cx, model, &f);
    eti_weight_file_close(&f);
    return status;
}

/* ---- writing ---- */

static void
describe(const struct et_leaf *leaf, int64_t at, struct eti_st_tensor *t)
{
    const struct et_desc *d = &leaf->param->desc;
    t->name = leaf->name;
    t->dtype = ET_F32;
    t->ndim = d->ndim;
    memcpy(t->shape, d->shape, (size_t)d->ndim * sizeof *t->shape);
    t->begin = at;
    t->end = at + et_desc_count(d) * (int64_t)sizeof(float);
}

static et_status
write_header(struct et_ctx *cx, const char *path, int fd, const struct et_leaves *l,
             const struct eti_st_note *notes, int n_notes)
{
    struct eti_st_tensor *v;
    void *block;
    uint8_t *header;
    int64_t bytes, at = 0;
    ET_TRY(et_alloc(cx, ((size_t)l->n + 1) * sizeof *v, &block));
    v = block;
    for (int i = 0; i < l->n; i++) {
        describe(&l->v[i], at, &v[i]);
        at = v[i].end;
    }
    et_status status = eti_st_print_notes(cx, v, l->n, notes, n_notes, &header, &bytes);
    et_free(cx, v);
    if (status != ET_OK)
        return status;
    status = eti_write_all(cx, fd, path, header, (size_t)bytes);
    et_free(cx, header);
    return status;
}

static et_status
write_leaf(struct et_ctx *cx, const char *path, int fd, const struct et_leaf *leaf,
           uint32_t seed)
{
    int64_t count = et_desc_count(&leaf->param->desc);
    void *values;
    ET_TRY(et_alloc(cx, ((size_t)count + 1) * sizeof(float), &values));
    et_status status = et_param_read(cx, leaf->param, leaf->name, seed, values, count);
    if (status == ET_OK)
        status = eti_write_all(cx, fd, path, values, (size_t)count * sizeof(float));
    et_free(cx, values);
    return status;
}

static et_status
write_model(struct et_ctx *cx, const struct et_model *model, uint32_t seed,
            const struct eti_st_note *notes, int n_notes, const char *path, int fd)
{
    struct et_leaves l;
    ET_TRY(et_module_leaves(cx, model->root, ET_PARAM | ET_BUFFER, &l));
    et_status status = write_header(cx, path, fd, &l, notes, n_notes);
    for (int i = 0; i < l.n && status == ET_OK; i++)
        status = write_leaf(cx, path, fd, &l.v[i], seed);
    et_leaves_release(&l);
    return status;
}

et_status
et_model_save_weights(struct et_ctx *cx, const struct et_model *model, uint32_t seed,
                      const char *path)
{
    return eti_model_save(cx, model, seed, NULL, 0, path);
}

et_status
eti_model_save(struct et_ctx *cx, const struct et_model *model, uint32_t seed,
               const struct eti_st_note *notes, int n_notes, const char *path)
{
    struct eti_draft d;
    ET_TRY(eti_draft_open(cx, path, &d));
    et_status status = write_model(cx, model, seed, notes, n_notes, d.temporary, d.fd);
    return eti_draft_close(&d, status);
}
