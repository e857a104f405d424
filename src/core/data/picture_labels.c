/* SPDX-License-Identifier: Apache-2.0 */
/* picture_labels.c: see picture_labels.h. */
#include "core/data/picture_labels.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/data/csv.h"
#include "core/data/file.h"

enum { MOST_CLASSES = 1 << 24 };

const char *const eti_label_task_names[] = {"auto", "classification", "regression",
                                            NULL};
const char *const eti_label_classes_names[] = {"auto", NULL};

struct labels {
    struct et_ctx *cx;
    struct eti_picture_list *l;
    const struct eti_strings *text;
    const struct eti_label_options *o;
    int64_t *at;
    struct et_error *why;
};

static bool
number_of(const char *text, double *out)
{
    return eti_cell_number(&(struct eti_cell){.text = (char *)text}, out);
}

static bool
is_class_number(double v)
{
    return v >= 0 && v < MOST_CLASSES && v == floor(v);
}

/* ---- numbers ---- */

static et_status
take_values(struct labels *s, int64_t k)
{
    struct eti_picture_list *l = s->l;
    int64_t n = s->text->n;
    void *block;
    ET_TRY(et_alloc(s->cx, (size_t)n * sizeof *l->values, &block));
    l->values = block;
    l->n_values = k;
    for (int64_t i = 0; i < n; i++) {
        const char *text = eti_string(s->text, i);
        double v;
        if (!number_of(text, &v)) {
            *s->at = i;
            return eti_why(s->why, ET_EFORMAT, "'%.60s' is not a number", text);
        }
        l->values[i] = (float)v;
    }
    return ET_OK;
}

static et_status
take_class_numbers(struct labels *s)
{
    struct eti_picture_list *l = s->l;
    int64_t classes = 0, most = s->o->num_classes;
    for (int64_t i = 0; i < s->text->n; i++) {
        double v = 0;
        (void)number_of(eti_string(s->text, i), &v);
        l->label[i] = (int32_t)v;
        classes = v >= (double)classes ? (int64_t)v + 1 : classes;
        if (most == ET_INT_UNSET || classes <= most)
            continue;
        *s->at = i;
        return eti_why(s->why, ET_EFORMAT,
                       "the class %" PRId64 ", and num_classes is %" PRId64,
                       classes - 1, most);
    }
    l->n_classes = most == ET_INT_UNSET ? classes : most;
    return ET_OK;
}

/* ---- names ---- */

/* The different texts, sorted. */
static et_status
find_different(struct labels *s, struct eti_strings *out)
{
    struct eti_strings sorted = *s->text;
    void *at;
    size_t n = (size_t)sorted.n;
    ET_TRY(eti_alloc_dirty(s->cx, n * sizeof *sorted.at, &at));
    memcpy(at, s->text->at, n * sizeof *sorted.at);
    sorted.at = at;
    eti_strings_sort(&sorted);
    et_status status = ET_OK;
    for (int64_t i = 0; status == ET_OK && i < sorted.n; i++)
        if (i == 0 || strcmp(eti_string(&sorted, i), eti_string(&sorted, i - 1)) != 0)
            status = eti_strings_add(s->cx, out, eti_string(&sorted, i));
    et_free(s->cx, at);
    return status;
}

/* The place of NAME in the user's list. */
static int64_t
place_in(const struct et_texts *list, const char *name)
{
    for (int i = 0; i < list->n; i++)
        if (strcmp(list->v[i], name) == 0)
            return i;
    return -1;
}

/* The number of each of the DIFFERENT names to NUMBER; -1: it is not in the user's
 * list. */
static et_status
number_names(struct labels *s, const struct eti_strings *different, int64_t *number)
{
    const struct et_texts *own = &s->o->classes;
    struct eti_strings *classes = &s->l->classes;
    for (int i = 0; i < own->n; i++)
        ET_TRY(eti_strings_add(s->cx, classes, own->v[i]));
    for (int64_t i = 0; i < different->n; i++) {
        number[i] = own->n ? place_in(own, eti_string(different, i)) : i;
        if (own->n == 0)
            ET_TRY(eti_strings_add(s->cx, classes, eti_string(different, i)));
    }
    return ET_OK;
}

static et_status
write_numbers(struct labels *s, const struct eti_strings *different,
              const int64_t *number)
{
    for (int64_t i = 0; i < s->text->n; i++) {
        const char *text = eti_string(s->text, i);
        int64_t which = eti_strings_find(different, text);
        if (which >= 0 && number[which] >= 0 && text[0]) {
            s->l->label[i] = (int32_t)number[which];
            continue;
        }
        *s->at = i;
        return text[0] ? eti_why(s->why, ET_EFORMAT,
                                 "the class '%.60s' is not one of the %d of classes",
                                 text, s->o->classes.n)
                       : eti_why(s->why, ET_EFORMAT, "the label is empty");
    }
    return ET_OK;
}

static et_status
take_names(struct labels *s)
{
    struct eti_strings different = {0};
    void *number = NULL;
    et_status status = find_different(s, &different);
    if (status == ET_OK)
        status = et_alloc(s->cx, (size_t)different.n * sizeof(int64_t), &number);
    if (status == ET_OK)
        status = number_names(s, &different, number);
    if (status == ET_OK)
        status = write_numbers(s, &different, number);
    et_free(s->cx, number);
    eti_strings_free(s->cx, &different);
    return status;
}

/* ---- which of them ---- */

/* *NUMBERS: all are; *CLASSES: and whole ones that may be of classes. */
static void
look_at_all(const struct eti_strings *text, bool *numbers, bool *classes)
{
    *numbers = true;
    *classes = true;
    for (int64_t i = 0; *numbers && i < text->n; i++) {
        double v;
        *numbers = number_of(eti_string(text, i), &v);
        *classes = *classes && *numbers && is_class_number(v);
    }
    *classes = *classes && *numbers;
}

et_status
eti_labels_end(struct et_ctx *cx, struct eti_picture_list *l,
               const struct eti_strings *text, int64_t k,
               const struct eti_label_options *o, int64_t *at, struct et_error *why)
{
    struct labels s = {cx, l, text, o, at, why};
    bool numbers, classes;
    *at = -1;
    if (text->n == 0)
        return ET_OK;
    look_at_all(text, &numbers, &classes);
    if (k > 1 || o->task == ETI_LABELS_REGRESSION ||
        (o->task == ETI_LABELS_AUTO && numbers && !classes && o->classes.n == 0))
        return take_values(&s, k);
    ET_TRY(et_alloc(cx, (size_t)text->n * sizeof *l->label, (void **)&l->label));
    return classes && o->classes.n == 0 ? take_class_numbers(&s) : take_names(&s);
}
