/* SPDX-License-Identifier: Apache-2.0 */
/* weights.c: a model's values from a file or folder of weights. See model.h.
 *
 * Loading reads the header, holds every name and shape against the model, and only then
 * reads values. */
#include "etude/model.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "core/base/need.h"
#include "core/models/weight_file.h"
#include "core/models/weight_maps.h"
#include "core/models/weight_names.h"

enum { CHUNK_BYTES = 1 << 12 };

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

/* ---- which tensor is for which leaf ---- */

/* What a leaf of the model takes: tensors of the file by their places, its PARTS along
 * axis 0; -1 where none is found. COPY: a second tensor that must equal it, or -1.
 * PARTS 0: it keeps its first values. */
struct taking {
    int64_t source[ETI_WEIGHT_PARTS], copy;
    int parts;
};

struct loading {
    struct et_ctx *cx;
    const struct eti_weight_file *file;
    const char *model; /* the name of its class */
    const struct et_model_weights *wish;
    struct et_leaves leaves;
    struct taking *taking; /* of each leaf */
    int n_taken;
    int n_wrong;     /* what does not fit though it has to */
    char first[768]; /* the first that does not fit */
    int n_left, n_listed;
    char left[1400]; /* what is left out, as a list of N_LISTED; the rest has no room */
};

/* "A; B; C" */
static void
list(struct loading *l, const char *what)
{
    size_t used = strlen(l->left), room = sizeof l->left - used;
    const char *between = used ? "; " : "";
    bool is_full = l->n_listed < l->n_left++;
    if (is_full || strlen(between) + strlen(what) >= room)
        return;
    snprintf(l->left + used, room, "%s%s", between, what);
    l->n_listed++;
}

static void leave_out(struct loading *l, const char *fmt, ...) ET_PRINTF(2, 3);
static void complain(struct loading *l, const char *fmt, ...) ET_PRINTF(2, 3);

/* As the recipe wishes. */
static void
leave_out(struct loading *l, const char *fmt, ...)
{
    char what[sizeof l->first];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    list(l, what);
}

/* It does not fit: left out, where that is allowed. */
static void
complain(struct loading *l, const char *fmt, ...)
{
    char what[sizeof l->first];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    if (!*l->first)
        memcpy(l->first, what, sizeof what);
    if (l->wish->strict)
        l->n_wrong++;
    else
        list(l, what);
}

static const char *
name_at(const struct loading *l, int64_t tensor)
{
    return l->file->header.v[tensor].name;
}

static bool
is_ignored(const struct loading *l, const char *name)
{
    for (int i = 0; i < l->wish->ignore.n; i++)
        if (fnmatch(l->wish->ignore.v[i], name, 0) == 0)
            return true;
    return false;
}

/* The shape of one of PARTS of D along axis 0, which they divide: the leaves that maps
 * have in parts are queries, keys and values. */
static void
part_shape(const struct et_desc *d, int parts, int64_t shape[ET_MAX_DIMS])
{
    memcpy(shape, d->shape, (size_t)d->ndim * sizeof *shape);
    if (parts > 1)
        shape[0] /= parts;
}

static bool
same_shape(const struct eti_st_tensor *t, int ndim, const int64_t *shape)
{
    return t->ndim == ndim &&
           memcmp(t->shape, shape, (size_t)ndim * sizeof *shape) == 0;
}

/* Tensor K is for the leaf at PLACE, if it may be. */
static void
take(struct loading *l, int64_t k, const struct eti_weight_place *place)
{
    const struct eti_st_tensor *t = &l->file->header.v[k];
    const struct et_leaf *leaf = place->leaf;
    const struct et_desc *want = &leaf->param->desc;
    struct taking *taking = &l->taking[leaf - l->leaves.v];
    int64_t shape[ET_MAX_DIMS];
    char a[192], b[192];
    part_shape(want, place->parts, shape);
    if (is_ignored(l, t->name) || is_ignored(l, leaf->name))
        leave_out(l, "'%s' is ignored", t->name);
    else if (!same_shape(t, want->ndim, shape))
        complain(l, "'%s' is %s, model wants %s", t->name,
                 eti_st_shape_text(t->ndim, t->shape, a, sizeof a),
                 eti_st_shape_text(want->ndim, shape, b, sizeof b));
    else if (!place->is_tied && taking->source[place->part] < 0 &&
             (taking->parts == 0 || taking->parts == place->parts)) {
        taking->source[place->part] = k;
        taking->parts = place->parts;
    } else if (taking->copy < 0 && place->parts == 1 && taking->parts <= 1)
        taking->copy = k;
    else
        complain(l, "'%s' is one more tensor for %s", t->name, leaf->name);
}

static void
assign(struct loading *l)
{
    for (int64_t k = 0; k < l->file->header.n; k++) {
        const char *name = name_at(l, k);
        struct eti_weight_place place;
        if (eti_weight_place(&l->leaves, l->model, name, &place))
            take(l, k, &place);
        else if (is_ignored(l, name))
            leave_out(l, "'%s' is ignored", name);
        else if (!eti_weight_is_unused(name))
            complain(l, "'%s' is not in the model", name);
    }
}

/* Has the file a tensor for leaf I that has been left out, and told? */
static bool
is_told(const struct loading *l, int i)
{
    for (int64_t k = 0; k < l->file->header.n; k++) {
        struct eti_weight_place place;
        if (eti_weight_place(&l->leaves, l->model, name_at(l, k), &place) &&
            place.leaf == &l->leaves.v[i])
            return true;
    }
    return false;
}

/* Is all of it there? A copy may stand for the whole. */
static bool
is_whole(struct taking *t)
{
    if (t->parts == 0 && t->copy >= 0) {
        t->source[0] = t->copy;
        t->parts = 1;
        t->copy = -1;
    }
    for (int i = 0; i < t->parts; i++)
        if (t->source[i] < 0)
            return false;
    return t->parts > 0;
}

/* Leaves that nothing was found for. */
static void
look_for_missing(struct loading *l)
{
    for (int i = 0; i < l->leaves.n; i++) {
        const struct et_leaf *leaf = &l->leaves.v[i];
        const struct et_desc *want = &leaf->param->desc;
        struct taking *t = &l->taking[i];
        char shape[192];
        if (is_whole(t))
            l->n_taken++;
        else if (t->parts > 0)
            complain(l, "of '%s' a part is missing", leaf->name);
        else if (is_told(l, i))
            continue;
        else if (is_ignored(l, leaf->name))
            leave_out(l, "'%s' is ignored", leaf->name);
        else
            complain(l, "'%s' is missing, model wants %s", leaf->name,
                     eti_st_shape_text(want->ndim, want->shape, shape, sizeof shape));
        if (!is_whole(t))
            t->parts = 0;
    }
}

/* A pattern that nothing matches is a mistake. */
static et_status
check_patterns(const struct loading *l)
{
    for (int i = 0; i < l->wish->ignore.n; i++) {
        const char *pattern = l->wish->ignore.v[i];
        bool found = false;
        for (int64_t k = 0; k < l->file->header.n && !found; k++)
            found = fnmatch(pattern, name_at(l, k), 0) == 0;
        for (int k = 0; k < l->leaves.n && !found; k++)
            found = fnmatch(pattern, l->leaves.v[k].name, 0) == 0;
        if (!found)
            return ET_FAIL(
                l->cx, ET_EFORMAT,
                "%s: ignore: no tensor of the file or the model matches '%s'",
                l->file->file.path, pattern);
    }
    return ET_OK;
}

/* ---- values ---- */

/* COUNT elements of leaf I in f32, from the N tensors at SOURCE one after the other; to
 * be freed. */
static et_status
read_tensors(const struct loading *l, int i, const int64_t *source, int n, float **out)
{
    int64_t count = et_desc_count(&l->leaves.v[i].param->desc);
    void *values;
    et_status status = ET_OK;
    *out = NULL;
    ET_TRY(et_alloc(l->cx, ((size_t)count + 1) * sizeof(float), &values));
    for (int k = 0; k < n && status == ET_OK; k++)
        status = read_values(l->file, &l->file->header.v[source[k]],
                             (float *)values + count / n * k);
    if (status == ET_OK)
        *out = values;
    else
        et_free(l->cx, values);
    return status;
}

/* Copies of tied leaves must be copies. */
static et_status
check_copy(struct loading *l, int i)
{
    const struct taking *t = &l->taking[i];
    size_t bytes = et_desc_bytes(&l->leaves.v[i].param->desc);
    float *a, *b = NULL;
    ET_TRY(read_tensors(l, i, t->source, 1, &a));
    et_status status = read_tensors(l, i, &t->copy, 1, &b);
    if (status == ET_OK && memcmp(a, b, bytes) != 0)
        complain(l, "'%s' differs from '%s', which are one in the model",
                 name_at(l, t->copy), name_at(l, t->source[0]));
    et_free(l->cx, a);
    et_free(l->cx, b);
    return status;
}

static et_status
load_leaf(struct loading *l, int i)
{
    const struct taking *t = &l->taking[i];
    struct et_param *p = l->leaves.v[i].param;
    float *values;
    ET_TRY(read_tensors(l, i, t->source, t->parts, &values));
    et_status status = et_param_write(l->cx, p, values, et_desc_count(&p->desc));
    et_free(l->cx, values);
    return status;
}

/* A file that does not fit is an error, what is left out of it a warning. */
static et_status
judge(struct loading *l)
{
    const char *path = l->file->file.path;
    if (l->n_wrong == 0 && l->n_taken == 0)
        return ET_FAIL(l->cx, ET_EFORMAT, "%s: nothing of it is for this model%s%s",
                       path, *l->first ? ": " : ", the rest is ignored", l->first);
    if (l->n_wrong > 0) {
        char more[64] = "";
        if (l->n_wrong > 1)
            snprintf(more, sizeof more, " (and %d more that do not fit)",
                     l->n_wrong - 1);
        et_status status = ET_FAIL(l->cx, ET_EFORMAT, "%s: %s%s", path, l->first, more);
        if (l->n_taken > 0)
            et_hint(l->cx,
                    "%d of the model's %d tensors fit: weights: {path: FILE, strict: "
                    "false} loads them and leaves the others out",
                    l->n_taken, l->leaves.n);
        return status;
    }
    if (l->n_left > 0) {
        char more[64] = "";
        if (l->n_left > l->n_listed)
            snprintf(more, sizeof more, "; and %d more", l->n_left - l->n_listed);
        et_report(l->cx, ET_LOG_WARN,
                  "%s: %d of the model's %d tensors are loaded; left out: %s%s", path,
                  l->n_taken, l->leaves.n, l->left, more);
    }
    return ET_OK;
}

static et_status
load_all(struct loading *l)
{
    et_status status = check_patterns(l);
    for (int i = 0; i < l->leaves.n; i++)
        l->taking[i] = (struct taking){.source = {-1, -1, -1}, .copy = -1};
    if (status == ET_OK) {
        assign(l);
        look_for_missing(l);
    }
    for (int i = 0; i < l->leaves.n && status == ET_OK; i++)
        if (l->taking[i].parts && l->taking[i].copy >= 0)
            status = check_copy(l, i);
    if (status == ET_OK)
        status = judge(l);
    for (int i = 0; i < l->leaves.n && status == ET_OK; i++)
        if (l->taking[i].parts)
            status = load_leaf(l, i);
    return status;
}

static et_status
load_file(struct et_ctx *cx, struct et_model *model, const struct eti_weight_file *file,
          const struct et_model_weights *wish)
{
    struct loading l = {
        .cx = cx, .file = file, .model = model->type->info.name, .wish = wish};
    void *block;
    ET_TRY(et_module_leaves(cx, model->root, ET_PARAM | ET_BUFFER, &l.leaves));
    et_status status =
        et_alloc(cx, ((size_t)l.leaves.n + 1) * sizeof *l.taking, &block);
    if (status == ET_OK) {
        l.taking = block;
        status = load_all(&l);
        et_free(cx, block);
    }
    et_leaves_release(&l.leaves);
    return status;
}

et_status
et_model_load_some_weights(struct et_ctx *cx, struct et_model *model,
                           const struct et_model_weights *weights)
{
    ETI_NEED(cx, cx, weights);
    ETI_NEED(cx, weights->path);
    struct eti_weight_file f;
    ET_TRY(eti_weight_file_open(cx, weights->path, &f));
    et_status status = load_file(cx, model, &f, weights);
    eti_weight_file_close(&f);
    return status;
}

et_status
et_model_load_weights(struct et_ctx *cx, struct et_model *model, const char *path)
{
    ETI_NEED(cx, cx, path);
    struct eti_weight_file f;
    const struct et_model_weights all = {.strict = true};
    ET_TRY(eti_weight_file_open(cx, path, &f));
    et_status status = load_file(cx, model, &f, &all);
    eti_weight_file_close(&f);
    return status;
}
