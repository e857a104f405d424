/* SPDX-License-Identifier: Apache-2.0 */
/* idx_format.c: the IDX format.
 *
 * Two zero bytes, a byte for the type (0x08: unsigned byte), one for the number of
 * axes, then each axis as a 32-bit big-endian count, then the elements in row-major
 * order. Source: Y. LeCun, C. Cortes, C. Burges, "The MNIST database", file formats. */
#include "core/data/idx.h"

#include <stdio.h>

enum { UNSIGNED_BYTE = 0x08, MAX_AXES = 4 };

static int64_t
big_endian_32(const uint8_t *p)
{
    return (int64_t)p[0] << 24 | (int64_t)p[1] << 16 | (int64_t)p[2] << 8 | p[3];
}

static void
shape_text(const struct eti_idx *idx, char *out, size_t size)
{
    size_t at = 0;
    for (int i = 0; i < idx->ndim; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%lld", i ? "x" : "",
                               (long long)idx->shape[i]);
}

et_status
eti_idx_parse(const uint8_t *bytes, int64_t n, struct eti_idx *out,
              struct et_error *why)
{
    *out = (struct eti_idx){0};
    if (n < 4)
        return eti_why(why, ET_EFORMAT, "%lld bytes are too few for an IDX header",
                       (long long)n);
    if (bytes[0] || bytes[1] || bytes[3] < 1 || bytes[3] > MAX_AXES)
        return eti_why(why, ET_EFORMAT, "bad magic %02x%02x%02x%02x, not an IDX file",
                       bytes[0], bytes[1], bytes[2], bytes[3]);
    if (bytes[2] != UNSIGNED_BYTE)
        return eti_why(why, ET_EFORMAT,
                       "IDX type 0x%02x, only unsigned bytes (0x08) are read",
                       bytes[2]);
    out->ndim = bytes[3];
    int64_t header = 4 + 4 * out->ndim;
    if (n < header)
        return eti_why(why, ET_EFORMAT, "%lld bytes are too few for a header of %lld",
                       (long long)n, (long long)header);
    out->item_bytes = 1;
    for (int i = 0; i < out->ndim; i++)
        out->shape[i] = big_endian_32(bytes + 4 + 4 * i);
    bool fits = true;
    for (int i = 1; i < out->ndim; i++)
        fits &=
            !__builtin_mul_overflow(out->item_bytes, out->shape[i], &out->item_bytes);
    int64_t payload, total;
    fits &= !__builtin_mul_overflow(out->item_bytes, out->shape[0], &payload);
    char shape[64];
    shape_text(out, shape, sizeof shape);
    if (!fits || __builtin_add_overflow(payload, header, &total))
        return eti_why(why, ET_EFORMAT, "header says %s, more than any file holds",
                       shape);
    if (total != n)
        return eti_why(why, ET_EFORMAT, "header says %s (%lld bytes), file has %lld",
                       shape, (long long)total, (long long)n);
    if (payload == 0)
        return eti_why(why, ET_EFORMAT, "header says %s: no samples", shape);
    out->data = bytes + header;
    return ET_OK;
}
