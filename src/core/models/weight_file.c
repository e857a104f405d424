/* SPDX-License-Identifier: Apache-2.0 */
/* weight_file.c: see weight_file.h. */
#include "core/models/weight_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "core/models/pth.h"
#include "core/models/weight_folder.h"

/* ---- values ---- */

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

void
eti_widen(enum et_dtype dtype, const void *raw, int64_t n, double *out)
{
#define CASE(code, type, expr)                                                         \
    case ET_##code:                                                                    \
        for (int64_t i = 0; i < n; i++) {                                              \
            const type v = ((const type *)raw)[i];                                     \
            out[i] = (double)(expr);                                                   \
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

/* V with DIGITS binary digits, and no quantum below 2^LEAST: exact in a double. */
static double
round_to(double v, int digits, int least)
{
    if (v == 0 || !isfinite(v))
        return v;
    int quantum = ilogb(v) - (digits - 1);
    if (quantum < least)
        quantum = least;
    return copysign(ldexp(nearbyint(ldexp(v, -quantum)), quantum), v);
}

static uint16_t
to_bfloat(double v)
{
    float rounded = (float)round_to(v, 8, -133);
    uint32_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    return (uint16_t)(isnan(v) ? 0x7fc0 : bits >> 16);
}

static uint16_t
to_half(double v)
{
    double rounded = round_to(v, 11, -24), a = fabs(rounded);
    int sign = signbit(v) ? 0x8000 : 0;
    if (isnan(v))
        return 0x7e00;
    if (a >= 65536)
        return (uint16_t)(sign | 0x7c00);
    if (a < 0x1p-14)
        return (uint16_t)(sign | (int)ldexp(a, 24));
    int exponent = ilogb(a); /* the digit before the point carries into the exponent */
    return (uint16_t)(sign + ((exponent + 14) << 10) + (int)ldexp(a, 10 - exponent));
}

int64_t
eti_narrow(enum et_dtype dtype, const double *v, int64_t n, void *raw)
{
    int64_t overflowed = 0;
    for (int64_t i = 0; i < n; i++) {
        bool infinite;
        if (dtype == ET_F32) {
            ((float *)raw)[i] = (float)v[i];
            infinite = isinf((float)v[i]);
        } else {
            uint16_t bits = dtype == ET_F16 ? to_half(v[i]) : to_bfloat(v[i]);
            ((uint16_t *)raw)[i] = bits;
            infinite = (bits & 0x7fff) == (dtype == ET_F16 ? 0x7c00 : 0x7f80);
        }
        overflowed += infinite && isfinite(v[i]);
    }
    return overflowed;
}

/* ---- reading ---- */

static et_status
read_bytes(struct et_ctx *cx, const struct eti_file *f, void *out, int64_t n,
           int64_t at)
{
    struct et_error why = {0};
    et_status status = eti_file_read(f, out, n, at, &why);
    return status == ET_OK ? ET_OK : ET_FAIL(cx, status, "%s", why.message);
}

/* What torch.save writes. */
static bool
is_archive(const uint8_t *start, int64_t n)
{
    return n > 3 && memcmp(start, "PK\3\4", 4) == 0;
}

/* What it wrote before PyTorch 1.6, a bare stream of pickle's protocol 2 to 5, and what
 * is called so. */
static bool
is_pickle(const char *path, const uint8_t *start, int64_t n)
{
    static const char *const endings[] = {".pt", ".pth", ".ckpt", ".bin", ".pkl"};
    if (n > ETI_ST_PREFIX && start[ETI_ST_PREFIX] == '{')
        return false;
    if (n > 1 && start[0] == 0x80 && start[1] >= 2 && start[1] <= 5)
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
    *data_at = 0;
    if (is_archive(start, have))
        return eti_pth_read(cx, f, h);
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

/* PATH, a folder or a file, into *OUT. */
static et_status
open_path(struct et_ctx *cx, const char *path, bool is_folder,
          struct eti_weight_file *out)
{
    *out = (struct eti_weight_file){.cx = cx, .file.fd = -1};
    if (snprintf(out->file.path, sizeof out->file.path, "%s", path) >=
        (int)sizeof out->file.path)
        return ET_FAIL(cx, ET_EINVAL, "path longer than %d bytes", ETI_PATH_MAX - 1);
    if (is_folder)
        return eti_weight_folder_open(cx, path, out);
    ET_TRY(eti_file_open(cx, path, &out->file.fd, &out->file.size));
    return read_header(cx, &out->file, &out->header, &out->data_at);
}

et_status
eti_weight_file_open_one(struct et_ctx *cx, const char *path,
                         struct eti_weight_file *out)
{
    et_status status = open_path(cx, path, false, out);
    if (status != ET_OK)
        eti_weight_file_close(out);
    return status;
}

et_status
eti_weight_file_open(struct et_ctx *cx, const char *path, struct eti_weight_file *out)
{
    struct stat st;
    bool is_folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    et_status status = open_path(cx, path, is_folder, out);
    if (status != ET_OK)
        eti_weight_file_close(out);
    return status;
}

et_status
eti_weight_file_read(const struct eti_weight_file *f, const struct eti_st_tensor *t,
                     int64_t at, void *out, int64_t n)
{
    if (f->n_shards)
        f = &f->shard[t->shard];
    return read_bytes(f->cx, &f->file, out, n, f->data_at + t->begin + at);
}

void
eti_weight_file_close(struct eti_weight_file *f)
{
    for (int i = 0; i < f->n_shards; i++)
        eti_weight_file_close(&f->shard[i]);
    et_free(f->cx, f->shard);
    f->shard = NULL;
    f->n_shards = 0;
    if (f->header.cx)
        eti_st_release(&f->header);
    if (f->file.fd >= 0)
        close(f->file.fd);
    f->file.fd = -1;
}

/* ---- writing ---- */

et_status
eti_draft_open(struct et_ctx *cx, const char *path, struct eti_draft *out)
{
    *out = (struct eti_draft){.cx = cx, .path = path};
    int n = snprintf(out->temporary, sizeof out->temporary, "%s.tmp-%ld", path,
                     (long)getpid());
    if (n >= (int)sizeof out->temporary)
        return ET_FAIL(cx, ET_EINVAL, "path longer than %d bytes", ETI_PATH_MAX - 1);
    /* Of a process that died and had our number. */
    (void)eti_ctx_seams(cx)->file.unlink(AT_FDCWD, out->temporary, 0);
    et_status status = eti_open_at(cx, AT_FDCWD, out->temporary,
                                   O_WRONLY | O_CREAT | O_EXCL, 0666, &out->fd);
    return status == ET_ENOENT ? ET_EIO : status; /* its folder is what is not there */
}

et_status
eti_draft_close(struct eti_draft *d, et_status status)
{
    if (status == ET_OK)
        status = eti_sync(d->cx, d->fd, d->temporary);
    eti_close(d->cx, d->fd);
    if (status == ET_OK)
        status = eti_rename_at(d->cx, AT_FDCWD, d->temporary, AT_FDCWD, d->path);
    if (status != ET_OK)
        (void)eti_ctx_seams(d->cx)->file.unlink(AT_FDCWD, d->temporary, 0);
    else
        status = eti_sync_parent(d->cx, d->path);
    return status;
}
