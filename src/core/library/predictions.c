/* SPDX-License-Identifier: Apache-2.0 */
/* predictions.c: see predictions.h.
 *
 * An .npz is a zip file of arrays, each an .npy: "\x93NUMPY", version 1.0, the length
 * of a header u16, the header, a Python dictionary that ends a multiple of 64 bytes,
 * and the numbers. Nothing is compressed. Sources: numpy.org, "NPY format"; PKWARE,
 * APPNOTE. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "core/base/folders.h"
#include "core/base/seams.h"
#include "core/library/predictions.h"

enum { MOST_CLASSES = 100000, LINE = 64 };

void
eti_predictions_release(struct eti_predictions *all)
{
    if (all->cx) {
        et_free(all->cx, all->label);
        et_free(all->cx, all->class);
        et_free(all->cx, all->loss);
        et_free(all->cx, all->p);
    }
    *all = (struct eti_predictions){.cx = all->cx};
}

/* *BLOCK, USED bytes of it, becomes one of BYTES. */
static et_status
grow(struct et_ctx *cx, void **block, size_t used, size_t bytes)
{
    void *new;
    ET_TRY(et_alloc(cx, bytes, &new));
    if (used > 0)
        memcpy(new, *block, used);
    et_free(cx, *block);
    *block = new;
    return ET_OK;
}

static et_status
make_room(struct eti_predictions *all, int64_t n)
{
    int64_t room = all->room ? all->room : 256;
    const size_t used = (size_t)all->n, c = (size_t)all->classes;
    while (room < n)
        room *= 2;
    if (room == all->room)
        return ET_OK;
    void *label = all->label, *class = all->class, *loss = all->loss, *p = all->p;
    et_status status = grow(all->cx, &label, used * 4, (size_t)room * 4);
    all->label = label;
    if (status == ET_OK)
        status = grow(all->cx, &class, used * 4, (size_t)room * 4);
    all->class = class;
    if (status == ET_OK)
        status = grow(all->cx, &loss, used * 4, (size_t)room * 4);
    all->loss = loss;
    if (status == ET_OK)
        status = grow(all->cx, &p, used * c * 4, (size_t)room * c * 4);
    all->p = p;
    if (status == ET_OK)
        all->room = room;
    return status;
}

/* One sample behind those there are. */
static void
add_one(struct eti_predictions *all, const float *score, int32_t label)
{
    const int c = all->classes;
    float *p = all->p + all->n * c;
    double sum = 0, most = -INFINITY;
    int best = 0;
    for (int k = 0; k < c; k++)
        if (score[k] > most) {
            most = score[k];
            best = k;
        }
    for (int k = 0; k < c; k++)
        sum += exp(score[k] - most);
    for (int k = 0; k < c; k++)
        p[k] = (float)(exp(score[k] - most) / sum);
    const bool counts = label >= 0 && label < c;
    all->label[all->n] = label;
    all->class[all->n] = best;
    all->loss[all->n++] = counts ? (float)(log(sum) + most - score[label]) : NAN;
}

et_status
eti_predictions_add(struct eti_predictions *all, const float *scores,
                    const int32_t *label, int64_t n, int classes)
{
    if (all->classes == 0)
        all->classes = classes;
    if (classes != all->classes)
        return ET_FAIL(all->cx, ET_EINVAL, "%d classes after %d", classes,
                       all->classes);
    ET_TRY(make_room(all, all->n + n));
    for (int64_t i = 0; i < n; i++)
        add_one(all, scores + i * classes, label[i]);
    return ET_OK;
}

int64_t
eti_predictions_worst(const struct eti_predictions *all, int label, int class,
                      int64_t *out, int64_t most)
{
    int64_t n = 0;
    for (int64_t i = 0; i < all->n; i++) {
        const bool is_wrong = all->class[i] != all->label[i];
        const bool is_pair = all->class[i] == class && all->label[i] == label;
        if (isnan(all->loss[i]) || !(label < 0 ? is_wrong : is_pair))
            continue;
        int64_t at = n < most ? n : most; /* insertion: MOST is small */
        while (at > 0 && all->loss[out[at - 1]] < all->loss[i]) {
            if (at < most)
                out[at] = out[at - 1];
            at--;
        }
        if (at < most)
            out[at] = i;
        n += n < most;
    }
    return n;
}

/* ---- writing ---- */

bool
eti_predictions_format(const char *path, enum eti_predictions_as *out)
{
    static const char *const endings[] = {
        [ETI_AS_CSV] = ".csv", [ETI_AS_JSONL] = ".jsonl", [ETI_AS_NPZ] = ".npz"};
    const size_t n = strlen(path);
    for (int i = 0; i < 3; i++) {
        const size_t end = strlen(endings[i]);
        *out = (enum eti_predictions_as)i;
        if (n > end && strcmp(path + n - end, endings[i]) == 0)
            return true;
    }
    return false;
}

static void
put_csv(const struct eti_predictions *all, FILE *f)
{
    fputs("sample,label,class,loss", f);
    for (int k = 0; k < all->classes; k++)
        fprintf(f, ",p%d", k);
    fputc('\n', f);
    for (int64_t i = 0; i < all->n; i++) {
        fprintf(f, "%" PRId64 ",%d,%d,", i, (int)all->label[i], (int)all->class[i]);
        if (!isnan(all->loss[i]))
            fprintf(f, "%.9g", (double)all->loss[i]);
        for (int k = 0; k < all->classes; k++)
            fprintf(f, ",%.9g", (double)all->p[i * all->classes + k]);
        fputc('\n', f);
    }
}

static void
put_json_number(FILE *f, double v)
{
    if (isfinite(v))
        fprintf(f, "%.9g", v);
    else
        fputs("null", f);
}

static void
put_jsonl(const struct eti_predictions *all, FILE *f)
{
    for (int64_t i = 0; i < all->n; i++) {
        fprintf(f, "{\"sample\":%" PRId64 ",\"label\":%d,\"class\":%d,\"loss\":", i,
                (int)all->label[i], (int)all->class[i]);
        put_json_number(f, all->loss[i]);
        fputs(",\"p\":[", f);
        for (int k = 0; k < all->classes; k++) {
            if (k > 0)
                fputc(',', f);
            put_json_number(f, all->p[i * all->classes + k]);
        }
        fputs("]}\n", f);
    }
}

/* ---- npz ---- */

static void
put_little(FILE *f, uint64_t x, int bytes)
{
    for (int i = 0; i < bytes; i++)
        fputc((int)(x >> 8 * i & 0xff), f);
}

struct array {
    const char *name, *type; /* "loss.npy", "<f4" */
    const void *data;        /* 4 bytes each */
    int64_t n, columns;      /* columns 0: it has one axis */
    uint32_t crc;
    int64_t at;
};

/* Its header in BUF; returns the bytes. */
static int
npy_head(const struct array *a, char *buf, size_t size)
{
    char shape[64];
    if (a->columns > 0)
        snprintf(shape, sizeof shape, "(%" PRId64 ", %" PRId64 ")", a->n, a->columns);
    else
        snprintf(shape, sizeof shape, "(%" PRId64 ",)", a->n);
    int n = snprintf(buf + 10, size - 10,
                     "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", a->type,
                     shape);
    const int all = (10 + n + 1 + 63) / 64 * 64;
    memset(buf + 10 + n, ' ', (size_t)(all - 10 - n));
    buf[all - 1] = '\n';
    memcpy(buf, "\x93NUMPY\x01\x00", 8);
    buf[8] = (char)((all - 10) & 0xff);
    buf[9] = (char)((all - 10) >> 8);
    return all;
}

/* What both of a file's entries have: version, method, time, checksum, sizes, name. */
static void
put_entry(FILE *f, const struct array *a, uint64_t bytes)
{
    put_little(f, 20, 2); /* version */
    put_little(f, 0, 2);  /* flags */
    put_little(f, 0, 2);  /* stored */
    put_little(f, 0, 2);
    put_little(f, 0x21, 2); /* 1980-01-01 */
    put_little(f, a->crc, 4);
    put_little(f, bytes, 4);
    put_little(f, bytes, 4);
    put_little(f, strlen(a->name), 2);
    put_little(f, 0, 2);
}

static void
put_npz(const struct eti_predictions *all, FILE *f)
{
    struct array array[] = {
        {"label.npy", "<i4", all->label, all->n, 0, 0, 0},
        {"class.npy", "<i4", all->class, all->n, 0, 0, 0},
        {"loss.npy", "<f4", all->loss, all->n, 0, 0, 0},
        {"p.npy", "<f4", all->p, all->n, all->classes, 0, 0},
    };
    enum { ARRAYS = sizeof array / sizeof *array };
    char head[256];
    uint64_t bytes[ARRAYS];
    for (int i = 0; i < ARRAYS; i++) {
        struct array *a = &array[i];
        const int n = npy_head(a, head, sizeof head);
        const size_t data = 4 * (size_t)(a->n * (a->columns > 0 ? a->columns : 1));
        bytes[i] = (uint64_t)n + data;
        uLong crc = crc32(crc32(0, Z_NULL, 0), (const Bytef *)head, (uInt)n);
        for (size_t at = 0; at < data; at += 1 << 20)
            crc = crc32(crc, (const Bytef *)a->data + at,
                        (uInt)(data - at < 1 << 20 ? data - at : 1 << 20));
        a->crc = (uint32_t)crc;
        a->at = ftell(f);
        put_little(f, 0x04034b50, 4);
        put_entry(f, a, bytes[i]);
        fputs(a->name, f);
        fwrite(head, 1, (size_t)n, f);
        fwrite(a->data, 1, data, f);
    }
    const int64_t from = ftell(f);
    for (int i = 0; i < ARRAYS; i++) {
        put_little(f, 0x02014b50, 4);
        put_little(f, 20, 2);
        put_entry(f, &array[i], bytes[i]);
        put_little(f, 0, 2 + 2 + 2); /* comment, disk, what it is */
        put_little(f, 0, 4);
        put_little(f, (uint64_t)array[i].at, 4);
        fputs(array[i].name, f);
    }
    const int64_t to = ftell(f);
    put_little(f, 0x06054b50, 4);
    put_little(f, 0, 4);
    put_little(f, ARRAYS, 2);
    put_little(f, ARRAYS, 2);
    put_little(f, (uint64_t)(to - from), 4);
    put_little(f, (uint64_t)from, 4);
    put_little(f, 0, 2);
}

et_status
eti_predictions_write(const struct eti_predictions *all, const char *path,
                      enum eti_predictions_as as)
{
    char *text = NULL;
    size_t n = 0;
    int folder = -1;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (as == ETI_AS_NPZ && (double)all->n * (all->classes + 3) * 4 > 4e9)
        return ET_FAIL(all->cx, ET_ENOTSUP,
                       "%s: more than 4 GB, which such a file cannot have", path);
    FILE *f = open_memstream(&text, &n);
    if (!f)
        return ET_FAIL(all->cx, ET_ENOMEM, "out of memory: %s", path);
    if (as == ETI_AS_CSV)
        put_csv(all, f);
    else if (as == ETI_AS_JSONL)
        put_jsonl(all, f);
    else
        put_npz(all, f);
    et_status status = fclose(f) == 0 && text
                           ? eti_open_parent(all->cx, path, &folder)
                           : ET_FAIL(all->cx, ET_ENOMEM, "out of memory: %s", path);
    if (status == ET_OK)
        status = eti_replace_at(all->cx, folder, name, text, n);
    if (folder >= 0)
        eti_close(all->cx, folder);
    free(text);
    return status;
}

/* ---- reading ---- */

/* The next number of *AT, which then stands behind the comma. False: there is none. */
static bool
next_number(char **at, double *out)
{
    char *end;
    if (!**at || **at == '\n')
        return false;
    *out = strtod(*at, &end);
    if (end == *at)
        *out = NAN; /* an empty field */
    if (*end != ',' && *end != '\n' && *end != '\0' && *end != '\r')
        return false;
    *at = end + (*end == ',');
    return true;
}

static int
count_classes(const char *head)
{
    const char *at = strstr(head, "loss");
    int n = 0;
    for (at = at ? strchr(at, ',') : NULL; at; at = strchr(at + 1, ','))
        n++;
    return strncmp(head, "sample,label,class,loss,p0", 26) == 0 ? n : 0;
}

static bool
read_line(struct eti_predictions *all, char *line)
{
    double v[4], p;
    for (int k = 0; k < 4; k++)
        if (!next_number(&line, &v[k]))
            return false;
    if (!(fabs(v[1]) < 1e9) || !(v[2] >= 0 && v[2] < all->classes))
        return false;
    all->label[all->n] = (int32_t)v[1];
    all->class[all->n] = (int32_t)v[2];
    all->loss[all->n] = (float)v[3];
    for (int k = 0; k < all->classes; k++) {
        if (!next_number(&line, &p))
            return false;
        all->p[all->n * all->classes + k] = (float)p;
    }
    all->n++;
    return true;
}

et_status
eti_predictions_read(struct et_ctx *cx, const char *path, struct eti_predictions *out)
{
    char *line = NULL;
    size_t room = 0;
    int64_t number = 1;
    *out = (struct eti_predictions){.cx = cx};
    FILE *f = eti_open_regular(path);
    if (!f)
        return ET_FAIL(cx, errno == ENOENT ? ET_ENOENT : ET_EIO, "cannot read %s: %s",
                       path, strerror(errno));
    et_status status = ET_OK;
    if (getline(&line, &room, f) > 0)
        out->classes = count_classes(line);
    if (out->classes < 1 || out->classes > MOST_CLASSES)
        status = ET_FAIL(cx, ET_EFORMAT, "%s: not what etude predict writes", path);
    while (status == ET_OK && getline(&line, &room, f) > 0) {
        number++;
        status = make_room(out, out->n + 1);
        if (status == ET_OK && !read_line(out, line))
            status = ET_FAIL(cx, ET_EFORMAT,
                             "%s:%" PRId64 ": not what etude predict "
                             "writes",
                             path, number);
    }
    free(line);
    fclose(f);
    if (status != ET_OK)
        eti_predictions_release(out);
    return status;
}
