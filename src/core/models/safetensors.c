/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors.c: reads and writes the header of a safetensors file.
 *
 * A file is n (8 bytes, little-endian), n bytes of JSON
 * {"name": {"dtype": "F32", "shape": [..], "data_offsets": [begin, end]}, ...}, then
 * the data: row-major, little-endian, end to end. Source: Hugging Face, safetensors,
 * format. Differs: stricter, as RELIABILITY 3 asks. Nothing is believed before it is
 * checked: sizes are multiplied with care and the tensors must cover the data
 * exactly. */
#include "core/models/safetensors.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/data/file.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "data are copied as they lie");

const struct eti_st_limits eti_st_limits = {
    .header_bytes = 16 << 20,
    .tensors = 100000,
};

/* Commas of one tensor at most: between 3 members, 8 sizes, 2 offsets, and behind. */
enum { COMMAS = 2 + (ETI_ST_MAX_DIMS - 1) + 1 + 1 };
static const char metadata[] = "__metadata__";

static const char *const dtype_names[] = {
#define NAME_ROW(code, number, text, bytes, st) [number] = st,
    ET_DTYPE_MAP(NAME_ROW)
#undef NAME_ROW
};

/* What is being read. */
struct reading {
    struct et_ctx *cx;
    const char *name; /* of the file */
};

#define REFUSE(r, fmt, ...)                                                            \
    ET_FAIL((r)->cx, ET_EFORMAT, "%s: " fmt, (r)->name, __VA_ARGS__)

et_status
eti_st_header_bytes(struct et_ctx *cx, const char *name,
                    const uint8_t prefix[ETI_ST_PREFIX], int64_t file_bytes,
                    const struct eti_st_limits *limits, int64_t *out)
{
    const struct reading r = {.cx = cx, .name = name};
    char limit[32];
    uint64_t n;
    memcpy(&n, prefix, sizeof n);
    *out = 0;
    if (n > (uint64_t)limits->header_bytes)
        return REFUSE(&r, "header of %" PRIu64 " bytes exceeds %s", n,
                      eti_size_text(limits->header_bytes, limit, sizeof limit));
    if ((int64_t)n > file_bytes - ETI_ST_PREFIX)
        return REFUSE(&r, "header of %" PRIu64 " bytes, file has %" PRId64, n,
                      file_bytes);
    *out = (int64_t)n;
    return ET_OK;
}

const char *
eti_st_shape_text(int ndim, const int64_t *shape, char *buf, size_t n)
{
    size_t at = 0;
    for (int i = 0; i <= ndim && at < n; i++) {
        const char *before = i == 0 ? "[" : i < ndim ? "," : "";
        at += (size_t)(i < ndim
                           ? snprintf(buf + at, n - at, "%s%" PRId64, before, shape[i])
                           : snprintf(buf + at, n - at, "%s]", before));
    }
    return buf;
}

/* ---- reading ---- */

static et_status
decode(const struct reading *r, const char *text, int64_t n, int64_t tensors,
       json_t **out)
{
    json_error_t error;
    int64_t commas = 0;
    *out = NULL;
    if (n < 1 || text[0] != '{')
        return REFUSE(r, "header does not begin with '%c'", '{');
    for (int64_t i = 0; i < n; i++)
        commas += text[i] == ',';
    if (commas > tensors * COMMAS) /* before it becomes ten times as much memory */
        return REFUSE(r, "header of more than %" PRId64 " tensors", tensors);
    *out = json_loadb(text, (size_t)n, JSON_REJECT_DUPLICATES, &error);
    if (*out)
        return ET_OK;
    switch (json_error_code(&error)) {
    case json_error_out_of_memory:
        return ET_FAIL(r->cx, ET_ENOMEM,
                       "%s: no memory for a header of %" PRId64 " bytes", r->name, n);
    case json_error_duplicate_key:
        return REFUSE(r, "header: a key comes twice, byte %d", error.position);
    case json_error_invalid_utf8:
        return REFUSE(r, "header is not UTF-8, byte %d", error.position);
    default:
        return REFUSE(r, "header is not JSON, byte %d", error.position);
    }
}

/* The numbers of a JSON array of at most MAX; false where it is anything else. */
static bool
read_sizes(const json_t *array, int max, int64_t *out, int *n)
{
    if (!json_is_array(array) || json_array_size(array) > (size_t)max)
        return false;
    *n = (int)json_array_size(array);
    for (int i = 0; i < *n; i++) {
        const json_t *item = json_array_get(array, (size_t)i);
        if (!json_is_integer(item) || json_integer_value(item) < 0)
            return false;
        out[i] = json_integer_value(item);
    }
    return true;
}

static enum et_dtype
find_dtype(const char *text)
{
    for (int i = ET_NONE + 1; i < ET_DTYPE_COUNT; i++)
        if (strcmp(dtype_names[i], text) == 0)
            return (enum et_dtype)i;
    return ET_NONE;
}

/* Bytes of T by its shape; false where that is more than a file can hold. */
static bool
measure(const struct eti_st_tensor *t, int64_t *bytes)
{
    bool fits = true;
    *bytes = (int64_t)et_dtype_size(t->dtype);
    for (int i = 0; i < t->ndim; i++)
        fits &= !__builtin_mul_overflow(*bytes, t->shape[i], bytes);
    return fits;
}

bool
eti_st_is_name(const char *s)
{
    size_t n = strlen(s);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
            return false;
    return n > 0 && n < 512;
}

static et_status
read_tensor(const struct reading *r, const char *name, json_t *value,
            struct eti_st_tensor *t)
{
    const char *dtype;
    json_t *shape, *offsets;
    int64_t offset[2], bytes;
    int n = 0;
    char text[192];
    if (!eti_st_is_name(name))
        return REFUSE(
            r, "a tensor's name is empty, longer than %d bytes or unprintable", 511);
    if (json_unpack_ex(value, NULL, JSON_STRICT, "{s:s, s:o, s:o}", "dtype", &dtype,
                       "shape", &shape, "data_offsets", &offsets) != 0)
        return REFUSE(r, "tensor '%s' is not {dtype, shape, data_offsets}", name);
    t->name = name;
    t->dtype = find_dtype(dtype);
    if (t->dtype == ET_NONE)
        return REFUSE(r, "tensor '%s' has unknown dtype '%.16s'", name, dtype);
    if (!read_sizes(shape, ETI_ST_MAX_DIMS, t->shape, &t->ndim))
        return REFUSE(r, "tensor '%s': shape is not at most %d sizes", name,
                      ETI_ST_MAX_DIMS);
    if (!read_sizes(offsets, 2, offset, &n) || n != 2 || offset[0] > offset[1])
        return REFUSE(r, "tensor '%s': data_offsets are not [begin, end]", name);
    t->begin = offset[0];
    t->end = offset[1];
    eti_st_shape_text(t->ndim, t->shape, text, sizeof text);
    if (!measure(t, &bytes))
        return REFUSE(r, "tensor '%s' %s%s overflows", name, et_dtype_name(t->dtype),
                      text);
    if (bytes != t->end - t->begin)
        return REFUSE(
            r, "tensor '%s' %s%s is %" PRId64 " bytes, not [%" PRId64 ",%" PRId64 ")",
            name, et_dtype_name(t->dtype), text, bytes, t->begin, t->end);
    return ET_OK;
}

static et_status
check_metadata(const struct reading *r, json_t *value)
{
    const char *key;
    json_t *item;
    bool fits = json_is_object(value);
    json_object_foreach(value, key, item) fits &= json_is_string(item);
    return fits ? ET_OK : REFUSE(r, "%s is not an object of strings", metadata);
}

static et_status
read_tensors(const struct reading *r, struct eti_st_header *h)
{
    const char *key;
    json_t *value;
    json_object_foreach(h->json, key, value)
    {
        if (strcmp(key, metadata) == 0)
            ET_TRY(check_metadata(r, value));
        else
            ET_TRY(read_tensor(r, key, value, &h->v[h->n++]));
    }
    return ET_OK;
}

static int
by_place(const void *a, const void *b)
{
    const struct eti_st_tensor *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* Sorted by place, each must begin where the one before ends, and the last at the
 * end. */
static et_status
check_cover(const struct reading *r, struct eti_st_header *h, int64_t data_bytes)
{
    int64_t at = 0;
    qsort(h->v, (size_t)h->n, sizeof *h->v, by_place);
    for (int64_t i = 0; i < h->n; i++) {
        const struct eti_st_tensor *t = &h->v[i];
        if (t->begin < at)
            return REFUSE(r, "tensor '%s' [%" PRId64 ",%" PRId64 ") overlaps '%s'",
                          t->name, t->begin, t->end, h->v[i - 1].name);
        if (t->begin > at)
            return REFUSE(r, "bytes [%" PRId64 ",%" PRId64 ") belong to no tensor", at,
                          t->begin);
        if (t->end > data_bytes)
            return REFUSE(r,
                          "tensor '%s' [%" PRId64 ",%" PRId64 ") ends past the %" PRId64
                          " bytes of data",
                          t->name, t->begin, t->end, data_bytes);
        at = t->end;
    }
    if (at < data_bytes)
        return REFUSE(r, "bytes [%" PRId64 ",%" PRId64 ") belong to no tensor", at,
                      data_bytes);
    return ET_OK;
}

et_status
eti_st_parse(struct et_ctx *cx, const char *name, const char *text, int64_t n,
             int64_t data_bytes, const struct eti_st_limits *limits,
             struct eti_st_header *out)
{
    const struct reading r = {.cx = cx, .name = name};
    void *block;
    *out = (struct eti_st_header){.cx = cx};
    ET_TRY(decode(&r, text, n, limits->tensors, &out->json));
    int64_t most = (int64_t)json_object_size(out->json);
    et_status status = ET_OK;
    if (most > limits->tensors)
        status = REFUSE(&r, "header of more than %" PRId64 " tensors", limits->tensors);
    if (status == ET_OK)
        status = et_alloc(cx, ((size_t)most + 1) * sizeof *out->v, &block);
    if (status == ET_OK) {
        out->v = block;
        status = read_tensors(&r, out);
    }
    if (status == ET_OK)
        status = check_cover(&r, out, data_bytes);
    if (status != ET_OK)
        eti_st_release(out);
    return status;
}

void
eti_st_release(struct eti_st_header *h)
{
    et_free(h->cx, h->v);
    et_free(h->cx, h->names);
    json_decref(h->json);
    *h = (struct eti_st_header){0};
}

/* ---- writing ---- */

static json_t *
make_tensor(const struct eti_st_tensor *t)
{
    json_t *shape = json_array();
    for (int i = 0; i < t->ndim && shape; i++)
        if (json_array_append_new(shape, json_integer(t->shape[i])) != 0) {
            json_decref(shape);
            shape = NULL;
        }
    if (!shape)
        return NULL;
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", dtype_names[t->dtype], "shape",
                     shape, "data_offsets", (json_int_t)t->begin, (json_int_t)t->end);
}

static char *
make_text(const struct eti_st_tensor *v, int64_t n, const struct eti_st_note *notes,
          int n_notes)
{
    /* Readers of Hugging Face want to know which library's layout this is. */
    json_t *root = json_pack("{s:{s:s}}", metadata, "format", "pt");
    int failed = !root;
    for (int i = 0; i < n_notes && !failed; i++)
        failed = json_object_set_new(json_object_get(root, metadata), notes[i].name,
                                     json_string(notes[i].value)) != 0;
    for (int64_t i = 0; i < n && !failed; i++)
        failed = json_object_set_new(root, v[i].name, make_tensor(&v[i])) != 0;
    char *text = failed ? NULL : json_dumps(root, JSON_COMPACT);
    json_decref(root);
    return text;
}

et_status
eti_st_print(struct et_ctx *cx, const struct eti_st_tensor *v, int64_t n, uint8_t **out,
             int64_t *bytes)
{
    return eti_st_print_notes(cx, v, n, NULL, 0, out, bytes);
}

et_status
eti_st_print_notes(struct et_ctx *cx, const struct eti_st_tensor *v, int64_t n,
                   const struct eti_st_note *notes, int n_notes, uint8_t **out,
                   int64_t *bytes)
{
    char *text = make_text(v, n, notes, n_notes);
    void *block;
    if (!text)
        return ET_FAIL(cx, ET_ENOMEM, "no memory for the names of %" PRId64 " tensors",
                       n);
    size_t length = strlen(text), padded = (length + 7) & ~(size_t)7;
    et_status status = et_alloc(cx, ETI_ST_PREFIX + padded, &block);
    if (status == ET_OK) {
        uint64_t prefix = padded;
        *out = block;
        *bytes = ETI_ST_PREFIX + (int64_t)padded;
        memset(*out, ' ', (size_t)*bytes);
        memcpy(*out, &prefix, sizeof prefix);
        memcpy(*out + ETI_ST_PREFIX, text, length);
    }
    free(text);
    return status;
}
