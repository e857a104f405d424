/* SPDX-License-Identifier: Apache-2.0 */
/* npy.c: arrays that NumPy saved, whose first axis is the samples.
 *
 * PATH is an .npz file of np.savez, or a folder of .npy files; or a folder in which
 * "train" and "test" are either. Arrays are held in memory whole, and samples are read
 * where they lie: images [N,H,W], [N,H,W,C] or [N,C,H,W] of bytes, tokens [N,T], or
 * values of any shape; with a class or a number each, a class for each pixel [N,H,W],
 * tokens to guess [N,T], or as many numbers as you like. Further arrays are fields by
 * their own names. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/data/fields.h"
#include "core/data/file.h"
#include "core/data/npy.h"
#include "core/models/zip.h"

enum { KIND_AUTO, KIND_IMAGE, KIND_TOKENS, KIND_VALUES };
static const char *const kind_names[] = {"auto", "image", "tokens", "values", NULL};

struct options {
    struct et_data_options common;
    char *input, *target;
    struct et_texts others;
    int kind;
    int64_t num_classes;
};

struct array {
    struct eti_npy is;
    uint8_t *block;      /* its file; owned */
    const uint8_t *data; /* its numbers, in BLOCK */
    int64_t each;        /* bytes of a sample */
    bool channels_first; /* an image [C,H,W] */
};

struct state {
    struct eti_file file; /* an .npz, and what is in it, where IS_ZIP */
    struct eti_zip zip;
    bool is_zip;
    struct array array[ET_MAX_FIELDS];
    char name[ET_MAX_FIELDS][64];
    int n;
};

/* ---- finding arrays ---- */

static bool
is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* PATH, or what in it is of the split. */
static et_status
find_split(struct et_ctx *cx, const struct options *o, char out[ETI_PATH_MAX])
{
    static const char *const suffix[] = {"", ".npz"};
    struct stat st;
    for (int i = 0; i < 2 && is_folder(o->common.path); i++) {
        char name[32];
        snprintf(name, sizeof name, "%s%s", et_split_names[o->common.split], suffix[i]);
        ET_TRY(eti_file_path(cx, out, o->common.path, name));
        if (stat(out, &st) == 0)
            return ET_OK;
    }
    snprintf(out, ETI_PATH_MAX, "%s", o->common.path);
    return ET_OK;
}

/* The bytes of array NAME, header and all. */
static et_status
load_bytes(struct et_ctx *cx, struct state *s, const char *path, const char *name,
           struct eti_bytes *out)
{
    char file[ETI_PATH_MAX], leaf[80];
    snprintf(leaf, sizeof leaf, "%s.npy", name);
    if (!s->is_zip) {
        ET_TRY(eti_file_path(cx, file, path, leaf));
        return eti_file_load(cx, file, ETI_FILE_MAX, out);
    }
    const struct eti_zip_member *m = eti_zip_find(&s->zip, leaf);
    if (!m)
        return ET_FAIL(cx, ET_ENOENT, "%s has no array '%s'", path, name);
    return eti_zip_load(&s->zip, &s->file, m, ETI_FILE_MAX, out);
}

/* Where array NAME is, for messages: in a file of PATH, or a member of it. */
static const char *
place_of(const struct state *s, const char *path, const char *name, char *out, size_t n)
{
    snprintf(out, n, s->is_zip ? "%s: %s" : "%s/%s.npy", path, name);
    return out;
}

static et_status
load_array(struct et_ctx *cx, struct state *s, const char *path, const char *name)
{
    struct eti_bytes file;
    struct et_error why = {0};
    char place[ETI_PATH_MAX + 80];
    if (s->n == ET_MAX_FIELDS)
        return ET_FAIL(cx, ET_EINVAL, "npy: more than %d arrays", ET_MAX_FIELDS);
    struct array *a = &s->array[s->n];
    snprintf(s->name[s->n], sizeof s->name[s->n], "%s", name);
    s->n++;
    ET_TRY(load_bytes(cx, s, path, name, &file));
    a->block = file.data;
    (void)place_of(s, path, name, place, sizeof place);
    if (eti_npy_parse(file.data, file.n, &a->is, &why) != ET_OK)
        return ET_FAIL(cx, ET_EFORMAT, "%s: %s", place, why.message);
    if (a->is.ndim < 1 || a->is.shape[0] < 1)
        return ET_FAIL(cx, ET_EFORMAT, "%s has no samples", place);
    if (a->is.bytes > file.n - a->is.header)
        return ET_FAIL(cx, ET_EFORMAT, "%s is cut off: %lld bytes of %lld", place,
                       (long long)(file.n - a->is.header), (long long)a->is.bytes);
    if (a->is.shape[0] != s->array[0].is.shape[0])
        return ET_FAIL(cx, ET_EFORMAT, "%s: %lld samples in %s, and %lld in %s", path,
                       (long long)a->is.shape[0], name,
                       (long long)s->array[0].is.shape[0], s->name[0]);
    a->data = file.data + a->is.header;
    a->each = a->is.bytes / a->is.shape[0];
    if ((uintptr_t)a->data % et_dtype_size(a->is.dtype) == 0)
        return ET_OK;
    return ET_FAIL(cx, ET_EFORMAT,
                   "%s has a header of %lld bytes, and its numbers "
                   "cannot be read behind it",
                   place, (long long)a->is.header);
}

/* ---- what the arrays are ---- */

static enum et_field_kind
kind_of_input(const struct options *o, const struct eti_npy *is)
{
    if (o->kind != KIND_AUTO)
        return o->kind == KIND_IMAGE    ? ET_FIELD_IMAGE
               : o->kind == KIND_TOKENS ? ET_FIELD_TOKENS
                                        : ET_FIELD_VALUES;
    if (is->dtype == ET_U8 && (is->ndim == 3 || is->ndim == 4))
        return ET_FIELD_IMAGE;
    return !et_dtype_is_float(is->dtype) && is->ndim == 2 ? ET_FIELD_TOKENS
                                                          : ET_FIELD_VALUES;
}

/* The images [H,W], [H,W,C] or [C,H,W]: which channels are there the number tells. */
static et_status
describe_image(struct et_ctx *cx, const struct state *s, struct array *a,
               struct et_field *f)
{
    const int64_t *n = a->is.shape + 1;
    if (a->is.ndim < 3 || a->is.ndim > 4 || a->is.dtype != ET_U8)
        return ET_FAIL(cx, ET_EFORMAT,
                       "%s: images are bytes [N,H,W], [N,H,W,C] or [N,C,H,W]",
                       s->name[0]);
    a->channels_first = a->is.ndim == 4 && n[2] > ET_MAX_CHANNELS;
    f->shape[0] = a->is.ndim == 3 ? 1 : a->channels_first ? n[0] : n[2];
    f->shape[1] = a->channels_first ? n[1] : n[0];
    f->shape[2] = a->channels_first ? n[2] : n[1];
    f->ndim = 3;
    return ET_OK;
}

/* One more than the largest of an array of integers. */
static int64_t
count_classes(const struct array *a, int ignored)
{
    int64_t n = a->is.bytes / (int64_t)et_dtype_size(a->is.dtype), largest = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t x = a->is.dtype == ET_U8 ? a->data[i]
                    : a->is.dtype == ET_I32
                        ? ((const int32_t *)(const void *)a->data)[i]
                        : ((const int64_t *)(const void *)a->data)[i];
        largest = x > largest && x != ignored ? x : largest;
    }
    return largest + 1;
}

static et_status
describe_array(struct et_ctx *cx, const struct options *o, struct state *s, int i,
               struct et_data_facts *f)
{
    struct array *a = &s->array[i];
    struct et_field field = {
        .name = i == ET_FIELD_TARGET ? "target" : s->name[i],
        .kind = ET_FIELD_VALUES,
        .dtype = a->is.dtype,
        .ndim = a->is.ndim - 1,
    };
    memcpy(field.shape, a->is.shape + 1, sizeof field.shape - sizeof *field.shape);
    if (i == ET_FIELD_X)
        field.kind = kind_of_input(o, &a->is);
    else if (a->is.dtype == ET_U8 && a->is.ndim == 3 &&
             f->field[ET_FIELD_X].kind == ET_FIELD_IMAGE)
        field.kind = ET_FIELD_MASK;
    else if (i == ET_FIELD_TARGET && a->is.ndim == 2 &&
             !et_dtype_is_float(a->is.dtype) &&
             f->field[ET_FIELD_X].kind == ET_FIELD_TOKENS)
        field.kind = ET_FIELD_TOKENS;
    if (field.kind == ET_FIELD_IMAGE)
        ET_TRY(describe_image(cx, s, a, &field));
    if (field.kind == ET_FIELD_TOKENS)
        field.below = count_classes(a, -1);
    if (i == ET_FIELD_TARGET && !et_dtype_is_float(a->is.dtype))
        field.below = o->num_classes
                          ? o->num_classes
                          : count_classes(a, field.kind == ET_FIELD_MASK ? 255 : -1);
    et_facts_add(f, &field);
    return ET_OK;
}

/* ---- the class ---- */

static et_status
open_zip(struct et_ctx *cx, struct state *s, const char *path)
{
    ET_TRY(eti_file_open(cx, path, &s->file.fd, &s->file.size));
    snprintf(s->file.path, sizeof s->file.path, "%s", path);
    s->is_zip = true;
    et_status status = eti_zip_read(cx, &s->file, &s->zip);
    if (status == ET_EFORMAT)
        et_hint(cx, "np.savez writes what is read, np.savez_compressed does not");
    return status;
}

static void
close_zip(struct state *s)
{
    if (!s->is_zip)
        return;
    eti_zip_release(&s->zip);
    close(s->file.fd);
    s->is_zip = false;
}

static et_status
load_arrays(struct et_ctx *cx, const struct options *o, struct state *s,
            const char *path)
{
    ET_TRY(load_array(cx, s, path, o->input));
    if (*o->target)
        ET_TRY(load_array(cx, s, path, o->target));
    for (int i = 0; i < o->others.n; i++)
        ET_TRY(load_array(cx, s, path, o->others.v[i]));
    return ET_OK;
}

static et_status
open_npy(struct et_ctx *cx, struct et_dataset *self)
{
    const struct options *o = self->options;
    struct state *s = self->state;
    char path[ETI_PATH_MAX];
    ET_TRY(find_split(cx, o, path));
    if (!is_folder(path))
        ET_TRY(open_zip(cx, s, path));
    et_status status = load_arrays(cx, o, s, path);
    close_zip(s);
    ET_TRY(status);
    self->facts = (struct et_data_facts){.n_samples = s->array[0].is.shape[0]};
    for (int i = 0; i < s->n; i++) {
        ET_TRY(describe_array(cx, o, s, i, &self->facts));
        self->facts.bytes += s->array[i].is.bytes;
    }
    return ET_OK;
}

static et_status
read_sample(const struct et_dataset *self, int64_t at, struct et_sample *out,
            struct et_error *why)
{
    const struct state *s = self->state;
    (void)why;
    for (int i = 0; i < s->n; i++) {
        const struct array *a = &s->array[i];
        const struct et_field *f = &self->facts.field[i];
        const uint8_t *data = a->data + at * a->each;
        out->v[i].data = data;
        if (f->kind == ET_FIELD_IMAGE)
            out->v[i].pixels = (a->channels_first ? et_pixels_chw : et_pixels_hwc)(
                data, (int)f->shape[0], f->shape[1], f->shape[2]);
        else if (f->kind == ET_FIELD_MASK)
            out->v[i].pixels = et_pixels_hwc(data, 1, f->shape[0], f->shape[1]);
    }
    return ET_OK;
}

static void
close_npy(struct et_dataset *self)
{
    struct state *s = self->state;
    for (int i = 0; i < s->n; i++)
        et_free(self->cx, s->array[i].block);
    close_zip(s);
}

static const struct et_option option_table[] = {
    ET_DATA_OPTION_PATH(struct options, NULL, ET_OPT_REQUIRED,
                        ".npz file, folder of .npy files, or folder in which train and "
                        "test are either"),
    ET_DATA_OPTIONS(struct options),
    ET_DATA_IMAGE_OPTIONS(struct options),
    {
        .name = "input",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct options, input),
        .def = "x",
        .help = "array that the model reads",
    },
    {
        .name = "target",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct options, target),
        .def = "y",
        .help = "array to learn: classes, numbers, or bytes [N,H,W] for the pixels of "
                "images; empty: there is none",
    },
    {
        .name = "others",
        .type = ET_OPT_TEXTS,
        .offset = offsetof(struct options, others),
        .def = "[]",
        .help = "further arrays, which models and losses find by these names",
    },
    {
        .name = "kind",
        .type = ET_OPT_ENUM,
        .offset = offsetof(struct options, kind),
        .def = "auto",
        .choices = kind_names,
        .help = "what the input is; auto: images where it is bytes of three or four "
                "axes, tokens where it is integers of two",
    },
    {
        .name = "num_classes",
        .type = ET_OPT_INT,
        .offset = offsetof(struct options, num_classes),
        .def = "0",
        .max = 1e9,
        .help = "classes are below it; 0 = the largest says",
    },
    {.name = NULL},
};

const struct et_dataset_class et_dataset_npy = {
    .info =
        {
            .name = "npy",
            .class_name = "NPY",
            .summary = "arrays that NumPy saved, in .npy files or an .npz",
            .source = "numpy/lib/format.py",
            .applies_to = "any",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct state),
    .open = open_npy,
    .sample = read_sample,
    .close = close_npy,
};
