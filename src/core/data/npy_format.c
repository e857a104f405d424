/* SPDX-License-Identifier: Apache-2.0 */
/* npy_format.c: see npy.h.
 *
 * A header is "\x93NUMPY", a version of two bytes, its length (two bytes, or four from
 * version 2 on) and a Python dictionary:
 *
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }
 *
 * Source: numpy/lib/format.py. What is read is bounded by the bytes there are. */
#include "core/data/npy.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/data/file.h"
#include "etude/diagnostic.h"

enum { MOST_HEADER = 65536 };

static const struct {
    const char *descr;
    enum et_dtype dtype;
} types[] = {
    {"|u1", ET_U8},  {"|b1", ET_U8},  {"<i4", ET_I32}, {"<i8", ET_I64},
    {"<f2", ET_F16}, {"<f4", ET_F32}, {"<f8", ET_F64},
};

/* The value of KEY in the dictionary TEXT; NULL: it is not there. */
static const char *
find_value(const char *text, const char *key)
{
    char quoted[32];
    size_t n = (size_t)snprintf(quoted, sizeof quoted, "'%s':", key);
    const char *at = strstr(text, quoted);
    return at ? at + n + strspn(at + n, " ") : NULL;
}

static et_status
parse_type(const char *text, struct eti_npy *out, struct et_error *why)
{
    const char *at = find_value(text, "descr");
    char visible[64];
    for (size_t i = 0; at && i < sizeof types / sizeof *types; i++)
        if (at[0] == '\'' && strncmp(at + 1, types[i].descr, 3) == 0 && at[4] == '\'') {
            out->dtype = types[i].dtype;
            return ET_OK;
        }
    return eti_why(why, ET_EFORMAT,
                   "its numbers are %s, and not u1, b1, i4, i8, f2, f4 or f8, little "
                   "endian",
                   at ? et_visible(visible, sizeof visible, at, strnlen(at, 12))
                      : "not described");
}

static et_status
parse_shape(const char *text, struct eti_npy *out, struct et_error *why)
{
    const char *at = find_value(text, "shape");
    int64_t count = (int64_t)et_dtype_size(out->dtype);
    if (!at || *at != '(')
        return eti_why(why, ET_EFORMAT, "the header says no shape");
    for (at += 1 + strspn(at + 1, " "); *at != ')'; at += strspn(at, ", ")) {
        char *end;
        long long n = strtoll(at, &end, 10);
        if (end == at || n < 0)
            return eti_why(why, ET_EFORMAT, "the shape in the header is none");
        if (out->ndim == ET_MAX_DIMS)
            return eti_why(why, ET_EFORMAT, "more than %d axes", ET_MAX_DIMS);
        out->shape[out->ndim++] = n;
        if (n > 0 && count > INT64_MAX / 2 / n)
            return eti_why(why, ET_EFORMAT, "more numbers than there can be");
        count *= n;
        at = end;
    }
    out->bytes = count;
    return ET_OK;
}

et_status
eti_npy_parse(const uint8_t *text, int64_t n, struct eti_npy *out, struct et_error *why)
{
    static const char magic[] = "\x93NUMPY";
    char header[MOST_HEADER + 1];
    *out = (struct eti_npy){0};
    if (n < 12 || memcmp(text, magic, 6) != 0)
        return eti_why(why, ET_EFORMAT, "it does not begin as a .npy file does");
    int64_t first = text[6] == 1 ? 10 : 12;
    int64_t length = text[8] | text[9] << 8;
    if (first == 12)
        length |= (int64_t)text[10] << 16 | (int64_t)text[11] << 24;
    if (length > MOST_HEADER || first + length > n)
        return eti_why(why, ET_EFORMAT, "a header of %" PRId64 " bytes, of %" PRId64,
                       length, n);
    memcpy(header, text + first, (size_t)length);
    header[length] = '\0';
    ET_TRY(parse_type(header, out, why));
    ET_TRY(parse_shape(header, out, why));
    const char *order = find_value(header, "fortran_order");
    if (!order || (strncmp(order, "False", 5) != 0 && out->ndim > 1))
        return eti_why(
            why, ET_EFORMAT,
            "its numbers lie in Fortran's order: np.ascontiguousarray first");
    out->header = first + length;
    return ET_OK;
}
