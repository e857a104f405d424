/* weights.c: a model's values from a safetensors file, and to one. See model.h.
 *
 * Loading reads the header, holds every name and shape against the model, and only then
 * reads values. Saving writes beside the file and renames, so that there is always a
 * whole one. */
#include "etude/model.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/data/file.h"
#include "core/models/safetensors.h"

enum { CHUNK_BYTES = 1 << 14 };

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

static float
from_half(uint16_t bits)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    float v = exponent == 0    ? ldexpf((float)fraction, -24)
              : exponent == 31 ? (fraction ? NAN : INFINITY)
                               : ldexpf((float)(fraction | 1024), exponent - 25);
    return bits >> 15 ? -v : v;
}

static float
from_bfloat(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float v;
    memcpy(&v, &wide, sizeof v);
    return v;
}

/* N elements at RAW become floats. */
static void
widen(enum et_dtype dtype, const void *raw, int64_t n, float *out)
{
#define CASE(code, type, expr)                                                         \
    case ET_##code:                                                                    \
        for (int64_t i = 0; i < n; i++) {                                              \
            const type v = ((const type *)raw)[i];                                     \
            out[i] = (float)(expr);                                                    \
        }                                                                              \
        break;
    switch (dtype) {
        CASE(F32, float, v)
        CASE(F64, double, v)
        CASE(F16, uint16_t, from_half(v))
        CASE(BF16, uint16_t, from_bfloat(v))
        CASE(I32, int32_t, v)
        CASE(I64, int64_t, v)
        CASE(U8, uint8_t, v)
    case ET_NONE:
    case ET_DTYPE_COUNT:
        break;
    }
#undef CASE
}

static et_status
read_bytes(struct et_ctx *cx, const struct eti_file *f, void *out, int64_t n,
           int64_t at)
{
    struct et_error why = {0};
    et_status status = eti_file_read(f, out, n, at, &why);
    return status == ET_OK ? ET_OK : ET_FAIL(cx, status, "%s", why.message);
}

static et_status
read_values(struct et_ctx *cx, const struct eti_file *f, const struct eti_st_tensor *t,
            int64_t data_at, float *out)
{
    _Alignas(8) uint8_t raw[CHUNK_BYTES];
    int64_t width = (int64_t)et_dtype_size(t->dtype);
    for (int64_t at = t->begin; at < t->end;) {
        int64_t n = t->end - at < CHUNK_BYTES ? t->end - at : CHUNK_BYTES;
        ET_TRY(read_bytes(cx, f, raw, n, data_at + at));
        widen(t->dtype, raw, n / width, out);
        out += n / width;
        at += n;
    }
    return ET_OK;
}

/* What torch.save writes: a zip archive, or a bare stream of pickle's protocol 2 to 5.
 */
static bool
is_pickle(const char *path, const uint8_t *start, int64_t n)
{
    static const char *const endings[] = {".pt", ".pth", ".ckpt", ".bin", ".pkl"};
    if (n > ETI_ST_PREFIX && start[ETI_ST_PREFIX] == '{')
        return false;
    if ((n > 3 && memcmp(start, "PK\3\4", 4) == 0) ||
        (n > 1 && start[0] == 0x80 && start[1] >= 2 && start[1] <= 5))
        return true;
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot && i < sizeof endings / sizeof *endings; i++)
        if (strcmp(dot, endings[i]) == 0)
            return true;
    return false;
}

static et_status
read_header(struct et_ctx *cx, const struct eti_file *f, struct eti_st_header *h,
            int64_t *data_at)
{
    uint8_t start[ETI_ST_PREFIX + 1] = {0};
    int64_t have = f->size < (int64_t)sizeof start ? f->size : (int64_t)sizeof start, n;
    void *text;
    ET_TRY(read_bytes(cx, f, start, have, 0));
    if (is_pickle(f->path, start, have))
        return ET_FAIL(cx, ET_EFORMAT,
                       "%s is a pickle; convert it to safetensors elsewhere", f->path);
    if (have < ETI_ST_PREFIX)
        return ET_FAIL(cx, ET_EFORMAT,
                       "%s: %" PRId64 " bytes are too few for safetensors", f->path,
                       have);
    ET_TRY(eti_st_header_bytes(cx, f->path, start, f->size, &eti_st_limits, &n));
    *data_at = ETI_ST_PREFIX + n;
    ET_TRY(et_alloc(cx, (size_t)n + 1, &text));
    et_status status = read_bytes(cx, f, text, n, ETI_ST_PREFIX);
    if (status == ET_OK)
        status =
            eti_st_parse(cx, f->path, text, n, f->size - *data_at, &eti_st_limits, h);
    et_free(cx, text);
    return status;
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
load_leaf(struct et_ctx *cx, const struct eti_file *f, const struct eti_st_tensor *t,
          int64_t data_at, struct et_param *p)
{
    int64_t count = et_desc_count(&p->desc);
    void *values;
    ET_TRY(et_alloc(cx, ((size_t)count + 1) * sizeof(float), &values));
    et_status status = read_values(cx, f, t, data_at, values);
    if (status == ET_OK)
        status = et_param_write(cx, p, values, count);
    et_free(cx, values);
    return status;
}

static et_status
load_all(struct et_ctx *cx, struct et_model *model, const struct eti_file *f,
         const struct eti_st_header *h, int64_t data_at)
{
    struct et_leaves l;
    ET_TRY(et_module_leaves(cx, model->root, ET_PARAM | ET_BUFFER, &l));
    et_status status = check_fit(cx, f->path, h, &l);
    for (int i = 0; i < l.n && status == ET_OK; i++)
        status = load_leaf(cx, f, find_tensor(h, l.v[i].name), data_at, l.v[i].param);
    et_leaves_release(&l);
    return status;
}

et_status
et_model_load_weights(struct et_ctx *cx, struct et_model *model, const char *path)
{
    struct eti_file f;
    struct eti_st_header h = {0};
    int64_t data_at = 0;
    if (snprintf(f.path, sizeof f.path, "%s", path) >= (int)sizeof f.path)
        return ET_FAIL(cx, ET_EINVAL, "path longer than %d bytes", ETI_PATH_MAX - 1);
    ET_TRY(eti_file_open(cx, path, &f.fd, &f.size));
    et_status status = read_header(cx, &f, &h, &data_at);
    if (status == ET_OK)
        status = load_all(cx, model, &f, &h, data_at);
    if (h.cx)
        eti_st_release(&h);
    close(f.fd);
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
    status = eti_file_write(cx, path, fd, header, bytes);
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
        status = eti_file_write(cx, path, fd, values, count * (int64_t)sizeof(float));
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

/* A rename is kept over a power cut once its folder is. */
static bool
sync_folder(const char *path)
{
    char folder[ETI_PATH_MAX];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1,
             slash ? path : ".");
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool synced = fsync(fd) == 0;
    close(fd);
    return synced;
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
    char temporary[ETI_PATH_MAX];
    int n = snprintf(temporary, sizeof temporary, "%s.tmp-%ld", path, (long)getpid());
    if (n >= (int)sizeof temporary)
        return ET_FAIL(cx, ET_EINVAL, "path longer than %d bytes", ETI_PATH_MAX - 1);
    unlink(temporary); /* of a process that died and had our number */
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return ET_FAIL(cx, ET_EIO, "cannot write %s: %s", temporary, strerror(errno));
    et_status status = write_model(cx, model, seed, notes, n_notes, temporary, fd);
    if (status == ET_OK && fsync(fd) != 0)
        status = ET_FAIL(cx, ET_EIO, "cannot write %s: %s", temporary, strerror(errno));
    if (close(fd) != 0 && status == ET_OK)
        status = ET_FAIL(cx, ET_EIO, "cannot write %s: %s", temporary, strerror(errno));
    if (status == ET_OK && rename(temporary, path) != 0)
        status = ET_FAIL(cx, ET_EIO, "cannot write %s: %s", path, strerror(errno));
    if (status != ET_OK)
        unlink(temporary);
    else if (!sync_folder(path))
        status = ET_FAIL(cx, ET_EIO, "cannot write the folder of %s: %s", path,
                         strerror(errno));
    return status;
}
