/* SPDX-License-Identifier: Apache-2.0 */
/* predictions_file.c: predictions in files: see predictions.h. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/folders.h"
#include "core/base/seams.h"
#include "core/library/npz.h"
#include "core/library/predictions.h"

enum { MOST_CLASSES = 100000 };

/* The columns of each answer: those that come first, and how those of p begin. */
static const struct form {
    const char *head, *p;
    const char *label, *class; /* NULL: it has neither */
} forms[ETI_ANSWERS] = {
    [ETI_ANSWER_CLASS] = {"sample,label,class,loss", "p", "label", "class"},
    [ETI_ANSWER_MASK] = {"sample,pixels,right,loss", "iou", "pixels", "right"},
    [ETI_ANSWER_TOKENS] = {"sample,tokens,right,loss", NULL, "tokens", "right"},
    [ETI_ANSWER_VALUES] = {"sample,loss", "target", NULL, NULL},
};

bool
eti_predictions_format(const char *path, enum eti_predictions_as *out)
{
    static const char *const endings[] = {
        [ETI_AS_CSV] = ".csv", [ETI_AS_JSONL] = ".jsonl", [ETI_AS_NPZ] = ".npz"};
    const size_t n = strlen(path);
    *out = ETI_AS_FOLDER;
    if (n > 0 && path[n - 1] == '/')
        return true;
    for (int i = 0; i < 3; i++) {
        const size_t end = strlen(endings[i]);
        *out = (enum eti_predictions_as)i;
        if (n > end && strcmp(path + n - end, endings[i]) == 0)
            return true;
    }
    return false;
}

/* ---- lines ---- */

/* A field of a CSV: in quotes, if it has what would end it (RFC 4180). */
static void
put_field(FILE *f, const char *text)
{
    const bool is_plain = !strpbrk(text, ",\"\r\n");
    if (!is_plain)
        fputc('"', f);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', f);
        fputc(*text, f);
    }
    if (!is_plain)
        fputc('"', f);
}

static const char *
name_of(const struct eti_predictions *all, int class)
{
    return class >= 0 && class < all->classes ? all->name[class] : "";
}

static void
put_csv_head(const struct eti_predictions *all, FILE *f)
{
    fputs(forms[all->answer].head, f);
    for (int k = 0; k < all->columns; k++)
        if (all->answer == ETI_ANSWER_VALUES)
            fprintf(f, ",%s%d", k % 2 ? "value" : "target", k / 2);
        else
            fprintf(f, ",%s%d", forms[all->answer].p, k);
    if (all->answer == ETI_ANSWER_CLASS && all->name)
        fputs(",label_name,class_name", f);
    fputc('\n', f);
}

static void
put_csv(const struct eti_predictions *all, FILE *f)
{
    put_csv_head(all, f);
    for (int64_t i = 0; i < all->n; i++) {
        fprintf(f, "%" PRId64 ",", i);
        if (forms[all->answer].label)
            fprintf(f, "%d,%d,", (int)all->label[i], (int)all->class[i]);
        if (!isnan(all->loss[i]))
            fprintf(f, "%.9g", (double)all->loss[i]);
        for (int k = 0; k < all->columns; k++) {
            const double v = all->p[i * all->columns + k];
            fputc(',', f);
            if (!isnan(v) || all->answer == ETI_ANSWER_VALUES)
                fprintf(f, "%.9g", v);
        }
        if (all->answer == ETI_ANSWER_CLASS && all->name) {
            fputc(',', f);
            put_field(f, name_of(all, all->label[i]));
            fputc(',', f);
            put_field(f, name_of(all, all->class[i]));
        }
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
put_json_text(FILE *f, const char *key, const char *text)
{
    json_t *s = json_string(text);
    char *quoted = s ? json_dumps(s, JSON_ENCODE_ANY) : NULL;
    fprintf(f, ",\"%s\":%s", key, quoted ? quoted : "null"); /* null: no UTF-8 */
    free(quoted);
    json_decref(s);
}

/* Numbers [FIRST], [FIRST + STEP] ... of P. */
static void
put_json_list(FILE *f, const char *key, const float *p, int n, int first, int step)
{
    fprintf(f, ",\"%s\":[", key);
    for (int k = first; k < n; k += step) {
        if (k > first)
            fputc(',', f);
        put_json_number(f, p[k]);
    }
    fputc(']', f);
}

static void
put_jsonl(const struct eti_predictions *all, FILE *f)
{
    const struct form *form = &forms[all->answer];
    for (int64_t i = 0; i < all->n; i++) {
        const float *p = all->p + i * all->columns;
        fprintf(f, "{\"sample\":%" PRId64, i);
        if (form->label)
            fprintf(f, ",\"%s\":%d,\"%s\":%d", form->label, (int)all->label[i],
                    form->class, (int)all->class[i]);
        if (all->answer == ETI_ANSWER_CLASS && all->name) {
            put_json_text(f, "label_name", name_of(all, all->label[i]));
            put_json_text(f, "class_name", name_of(all, all->class[i]));
        }
        fputs(",\"loss\":", f);
        put_json_number(f, all->loss[i]);
        if (all->answer == ETI_ANSWER_VALUES) {
            put_json_list(f, "target", p, all->columns, 0, 2);
            put_json_list(f, "value", p, all->columns, 1, 2);
        } else if (form->p) {
            put_json_list(f, form->p, p, all->columns, 0, 1);
        }
        fputs("}\n", f);
    }
}

/* ---- npz ---- */

static et_status
put_npz(const struct eti_predictions *all, FILE *f, const char *path)
{
    const struct form *form = &forms[all->answer];
    struct eti_npz_array array[4];
    char name[3][32];
    int n = 0;
    if (form->label) {
        snprintf(name[0], sizeof name[0], "%s.npy", form->label);
        snprintf(name[1], sizeof name[1], "%s.npy", form->class);
        array[n++] = (struct eti_npz_array){name[0], "<i4", 4, all->label, 1, {all->n}};
        array[n++] = (struct eti_npz_array){name[1], "<i4", 4, all->class, 1, {all->n}};
    }
    array[n++] = (struct eti_npz_array){"loss.npy", "<f4", 4, all->loss, 1, {all->n}};
    if (all->answer == ETI_ANSWER_VALUES) /* [n][0]: target, [n][1]: value */
        array[n++] = (struct eti_npz_array){
            "target_value.npy", "<f4", 4, all->p, 3, {all->n, all->classes, 2}};
    else if (form->p) {
        snprintf(name[2], sizeof name[2], "%s.npy", form->p);
        array[n++] = (struct eti_npz_array){name[2], "<f4", 4,
                                            all->p,  2,     {all->n, all->columns}};
    }
    if (!eti_npz_put(f, array, n))
        return ET_FAIL(all->cx, ET_ENOTSUP,
                       "%s: more than 4 GB, which such a file cannot have", path);
    return ET_OK;
}

et_status
eti_predictions_write(const struct eti_predictions *all, const char *path,
                      enum eti_predictions_as as)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f)
        return ET_FAIL(all->cx, ET_ENOMEM, "out of memory: %s", path);
    et_status status = ET_OK;
    if (as == ETI_AS_CSV)
        put_csv(all, f);
    else if (as == ETI_AS_JSONL)
        put_jsonl(all, f);
    else
        status = put_npz(all, f, path);
    if (fclose(f) != 0 || !text)
        status = ET_FAIL(all->cx, ET_ENOMEM, "out of memory: %s", path);
    if (status == ET_OK)
        status = eti_text_replace(all->cx, path, text, n);
    free(text);
    return status;
}

et_status
eti_text_replace(struct et_ctx *cx, const char *path, const char *text, size_t n)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    int folder = -1;
    et_status status = eti_open_parent(cx, path, &folder);
    if (status == ET_OK)
        status = eti_replace_at(cx, folder, name, text, n);
    if (folder >= 0)
        eti_close(cx, folder);
    return status;
}

et_status
eti_predictions_keep(const struct eti_predictions *all, const char *folder,
                     const char *label)
{
    char path[4096];
    const int n = snprintf(path, sizeof path, "%s/%s.json", folder, label);
    if (n < 0 || n >= (int)sizeof path)
        return ET_FAIL(all->cx, ET_EINVAL, "the path of predictions is too long");
    json_t *sum = eti_predictions_json(all, label);
    char *text = sum ? json_dumps(sum, JSON_COMPACT) : NULL;
    json_decref(sum);
    et_status status = text ? eti_text_replace(all->cx, path, text, strlen(text))
                            : ET_FAIL(all->cx, ET_ENOMEM, "out of memory: %s", path);
    free(text);
    if (status != ET_OK)
        return status;
    snprintf(path, sizeof path, "%s/%s.csv", folder, label);
    return eti_predictions_write(all, path, ETI_AS_CSV);
}

/* ---- reading ---- */

/* The next number of *AT, which then stands behind the comma, or is NULL at the line's
 * end. False: there is none. An empty field is NaN. */
static bool
next_number(char **at, double *out)
{
    char *end;
    if (!*at)
        return false;
    *out = strtod(*at, &end);
    if (end == *at)
        *out = NAN;
    if (*end != ',' && *end != '\n' && *end != '\0' && *end != '\r')
        return false;
    *at = *end == ',' ? end + 1 : NULL;
    return true;
}

/* Which answers a file with the line HEAD has, and how many columns of p. */
static bool
read_head(const char *head, struct eti_predictions *out)
{
    for (int i = 0; i < ETI_ANSWERS; i++) {
        const struct form *form = &forms[i];
        const size_t n = strlen(form->head);
        if (strncmp(head, form->head, n) != 0 || !strchr(",\r\n", head[n]))
            continue;
        out->answer = (enum eti_answer)i;
        for (const char *at = head + n; *at == ',';
             at += strcspn(at + 1, ",\r\n") + 1) {
            const size_t name = strcspn(at + 1, "0123456789,\r\n");
            const bool is_p =
                form->p &&
                (strncmp(at + 1, form->p, name) == 0 ||
                 (i == ETI_ANSWER_VALUES && strncmp(at + 1, "value", name) == 0));
            out->columns += is_p && strchr("0123456789", at[1 + name]) && at[1 + name];
        }
        out->classes = i == ETI_ANSWER_VALUES   ? out->columns / 2
                       : i == ETI_ANSWER_TOKENS ? 1
                                                : out->columns;
        return out->classes > 0 && out->columns <= MOST_CLASSES &&
               (i != ETI_ANSWER_VALUES || out->columns % 2 == 0);
    }
    return false;
}

/* Label and class, or how many count and are right. */
static bool
read_pair(struct eti_predictions *all, char **line)
{
    double label, class;
    all->label[all->n] = all->class[all->n] = 0;
    if (!forms[all->answer].label)
        return true;
    if (!next_number(line, &label) || !next_number(line, &class))
        return false;
    const double most = all->answer == ETI_ANSWER_CLASS ? all->classes : label + 1;
    if (!(fabs(label) < 1e9) || !(class >= 0 && class < most))
        return false;
    all->label[all->n] = (int32_t)label;
    all->class[all->n] = (int32_t) class;
    return true;
}

static bool
read_line(struct eti_predictions *all, char *line)
{
    double v;
    float *p = all->p + all->n * all->columns;
    if (!next_number(&line, &v) || !read_pair(all, &line) || !next_number(&line, &v))
        return false;
    all->loss[all->n] = (float)v;
    for (int k = 0; k < all->columns; k++) {
        if (!next_number(&line, &v))
            return false;
        p[k] = (float)v;
    }
    all->n++;
    return true;
}

static et_status
read_lines(struct eti_predictions *out, FILE *f, const char *path)
{
    char *line = NULL;
    size_t room = 0;
    et_status status = ET_OK;
    if (getline(&line, &room, f) <= 0 || !read_head(line, out))
        status =
            ET_FAIL(out->cx, ET_EFORMAT, "%s: not what etude predict writes", path);
    while (status == ET_OK && getline(&line, &room, f) > 0) {
        status = eti_predictions_make_room(out, out->n + 1);
        if (status == ET_OK && !read_line(out, line))
            status = ET_FAIL(out->cx, ET_EFORMAT,
                             "%s:%" PRId64 ": not what etude predict writes", path,
                             out->n + 2);
    }
    free(line);
    return status;
}

/* What lies beside PATH, an .csv: a .json, which older versions did not write. */
static et_status
read_beside(struct eti_predictions *out, const char *path)
{
    char name[4096];
    json_error_t error;
    const int n = snprintf(name, sizeof name, "%s", path);
    if (n < 4 || n + 2 >= (int)sizeof name || strcmp(name + n - 4, ".csv") != 0)
        return ET_OK;
    snprintf(name + n - 3, sizeof name - (size_t)(n - 3), "json");
    FILE *f = eti_open_regular(name);
    if (!f)
        return ET_OK;
    json_t *all = json_loadf(f, 0, &error);
    fclose(f);
    et_status status =
        all ? eti_predictions_take_json(out, all)
            : ET_FAIL(out->cx, ET_EFORMAT, "%s:%d: %s", name, error.line, error.text);
    json_decref(all);
    return status;
}

et_status
eti_predictions_read(struct et_ctx *cx, const char *path, struct eti_predictions *out)
{
    *out = (struct eti_predictions){.cx = cx};
    FILE *f = eti_open_regular(path);
    if (!f)
        return ET_FAIL(cx, errno == ENOENT ? ET_ENOENT : ET_EIO, "cannot read %s: %s",
                       path, strerror(errno));
    et_status status = read_lines(out, f, path);
    fclose(f);
    if (status == ET_OK)
        status = read_beside(out, path);
    if (status != ET_OK)
        eti_predictions_release(out);
    return status;
}
