/* SPDX-License-Identifier: Apache-2.0 */
/* mds_numbers.c: whole numbers in a column of MDS shards: an array (ndarray), or the
 * bytes of one. See mds.h. */
#include <inttypes.h>
#include <string.h>

#include "core/data/mds.h"

const struct eti_mds_number eti_mds_numbers[] = {
    {"uint8", 1, 8},  {"uint16", 2, 16}, {"int16", 2, 17}, {"uint32", 4, 32},
    {"int32", 4, 33}, {"uint64", 8, 64}, {"int64", 8, 65},
};
enum { N_NUMBERS = sizeof eti_mds_numbers / sizeof *eti_mds_numbers };
const char *const eti_mds_number_names[] = {"uint8", "uint16", "int16", "uint32",
                                            "int32", "uint64", "int64", NULL};

static const struct eti_mds_number *
number_of_code(int code)
{
    for (int i = 0; i < N_NUMBERS; i++)
        if (eti_mds_numbers[i].code == code)
            return &eti_mds_numbers[i];
    return NULL;
}

/* The numbers that "ndarray:NAME:..." says; *FOUND false: it says none. */
static const struct eti_mds_number *
number_of_encoding(const char *encoding, bool *found)
{
    const char *name = strchr(encoding, ':');
    *found = name != NULL;
    name = name ? name + 1 : "";
    size_t n = strcspn(name, ":");
    for (int i = 0; i < N_NUMBERS; i++)
        if (strlen(eti_mds_numbers[i].name) == n &&
            strncmp(eti_mds_numbers[i].name, name, n) == 0)
            return &eti_mds_numbers[i];
    return NULL;
}

bool
eti_mds_is_array(const char *encoding)
{
    return strcmp(encoding, "bytes") == 0 || strcmp(encoding, "ndarray") == 0 ||
           strncmp(encoding, "ndarray:", 8) == 0;
}

et_status
eti_mds_array_init(const struct eti_mds *m, int column,
                   const struct eti_mds_number *of_bytes, struct eti_mds_array *out,
                   struct et_error *why)
{
    const char *encoding = m->column[column].encoding;
    bool array = strncmp(encoding, "ndarray", 7) == 0, has_kind = true;
    *out = (struct eti_mds_array){.mds = m, .column = column};
    out->kind = array ? number_of_encoding(encoding, &has_kind) : of_bytes;
    out->has_shape = !array || (has_kind && strchr(strchr(encoding, ':') + 1, ':'));
    if (has_kind && !out->kind)
        return eti_why(why, ET_EFORMAT, "%s is not of whole numbers", encoding);
    return ET_OK;
}

/* What an array has before its numbers: *SKIP bytes; its kind where the column does not
 * say it. */
static et_status
read_head(const struct eti_mds_array *a, const struct eti_mds_file *f, int64_t offset,
          int64_t bytes, const struct eti_mds_number **kind, int64_t *skip,
          struct et_error *why)
{
    uint8_t head[2] = {0};
    int64_t n = !a->kind + !a->has_shape;
    *skip = n;
    if (bytes < n)
        return eti_why(why, ET_EFORMAT, "an array of %" PRId64 " bytes", bytes);
    ET_TRY(eti_file_read(&f->file, head, n, offset, why));
    *kind = a->kind ? a->kind : number_of_code(head[0]);
    if (!*kind)
        return eti_why(why, ET_EFORMAT, "its arrays are not of whole numbers");
    if (!a->has_shape) {
        uint8_t shape = head[!a->kind];
        *skip += (int64_t)(shape >> 2) << (shape & 3);
    }
    return ET_OK;
}

et_status
eti_mds_array_place(const struct eti_mds_array *a, const struct eti_mds_file *f,
                    int64_t at, const struct eti_mds_number **kind, int64_t *offset,
                    int64_t *bytes, struct et_error *why)
{
    int64_t skip = 0;
    ET_TRY(eti_mds_place(a->mds, f, at, a->column, offset, bytes, why));
    *kind = a->kind;
    if (!a->kind || !a->has_shape)
        ET_TRY(read_head(a, f, *offset, *bytes, kind, &skip, why));
    *offset += skip;
    *bytes -= skip;
    if (*bytes < 0 || *bytes % (*kind)->width)
        return eti_why(why, ET_EFORMAT, "%" PRId64 " bytes are not a multiple of %d",
                       *bytes, (*kind)->width);
    return ET_OK;
}

int64_t
eti_mds_widen(const struct eti_mds_number *kind, const uint8_t *bytes, int64_t n,
              int64_t below, int32_t *out)
{
    for (int64_t i = 0; i < n; i++) {
        uint64_t v = 0;
        memcpy(&v, bytes + i * kind->width, (size_t)kind->width);
        /* A negative one is too large, too. */
        out[i] = v > INT32_MAX ? INT32_MAX : (int32_t)v;
        if (out[i] >= below)
            return i;
    }
    return -1;
}
