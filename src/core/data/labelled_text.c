/* SPDX-License-Identifier: Apache-2.0 */
/* labelled_text.c: texts, or pairs of them, with a class or a number each: GLUE's tasks
 * and others of that form.
 *
 * All rows become tokens once, when the data set is opened; a sample is a part of that
 * list. Classes are the labels of all files, by their values where all are integers,
 * else by their letters. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/memory.h"
#include "core/data/labelled_rows.h"
#include "core/text/vocab.h"
#include "etude/data.h"
#include "etude/diagnostic.h"
#include "etude/tokenizer.h"

enum target { CLASS, NUMBER };
static const char *const target_names[] = {"class", "number", NULL};

struct options {
    struct et_data_options common;
    char *tokenizer, *text, *text2, *label;
    int target;
};

struct row {
    int64_t begin; /* of its tokens */
    int64_t n;
    int32_t label; /* as a label of the vocabulary below, then as a class */
    float number;
};

struct state {
    int32_t *id;
    uint8_t *type;
    int64_t n, id_room, type_room;
    struct row *row;
    int64_t n_rows, row_room;
    struct eti_vocab labels; /* by the order in which they came */
    char **name;             /* of classes */
    int64_t n_classes;
};

static const struct et_option option_table[] = {
    ET_DATA_OPTION_PATH(struct options, NULL, ET_OPT_REQUIRED,
                        ".tsv or .jsonl, of which test is each tenth row, or folder "
                        "with train and dev, validation or test"),
    ET_DATA_OPTIONS(struct options),
    ET_DATA_SEQUENCE_OPTIONS(struct options, "128"),
    {
        .name = "tokenizer",
        .type = ET_OPT_PATH,
        .offset = offsetof(struct options, tokenizer),
        .flags = ET_OPT_REQUIRED,
        .help = "tokenizer.json, vocab.txt, *.model or their folder",
    },
    {
        .name = "text",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct options, text),
        .def = "sentence",
        .help = "the column or member of the text",
    },
    {
        .name = "text2",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct options, text2),
        .flags = ET_OPT_OPTIONAL,
        .help = "that of a second text, for pairs",
    },
    {
        .name = "label",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct options, label),
        .def = "label",
        .help = "that of the class or number",
    },
    {
        .name = "target",
        .type = ET_OPT_ENUM,
        .offset = offsetof(struct options, target),
        .def = "class",
        .choices = target_names,
        .help = "what the label is: a class, or a number to come close to",
    },
    {.name = NULL},
};

/* ---- reading ---- */

struct reading {
    struct et_ctx *cx;
    struct et_dataset *self;
    struct et_encoder *e;
    const char *path;
    bool only_labels; /* of the other split: its classes count, too */
    int part, seen;   /* of a file that is both: which rows are taken */
};

static et_status
find_label(struct reading *r, const struct eti_labelled_row *row, struct row *out)
{
    struct state *s = r->self->state;
    const struct options *o = r->self->options;
    char text[64], visible[ET_VISIBLE_MAX + 1], *end;
    if (o->target == NUMBER) {
        snprintf(text, sizeof text, "%.*s", (int)row->label.n, row->label.text);
        out->number = strtof(text, &end);
        if (end == text || *end)
            return ET_FAIL(r->cx, ET_EFORMAT, "%s:%" PRId64 ": '%s' is no number",
                           r->path, row->line,
                           et_visible(visible, sizeof visible, text, strlen(text)));
        return ET_OK;
    }
    out->label = eti_vocab_find(&s->labels, row->label.text, row->label.n);
    if (out->label >= 0)
        return ET_OK;
    out->label = (int32_t)s->labels.n;
    return eti_vocab_add(&s->labels, s->labels.n, row->label.text, row->label.n);
}

static et_status
take_tokens(struct reading *r, const struct eti_labelled_row *row, struct row *out)
{
    struct state *s = r->self->state;
    struct et_encoding a;
    ET_TRY(et_encode_pair(r->e, row->text.text, row->text.n, row->text2.text,
                          row->text2.n, r->self->common->seq_len, ET_ENCODE_SPECIAL,
                          &a));
    ET_TRY(eti_grow(r->cx, &s->id, &s->id_room, s->n + a.n + 1, sizeof *s->id));
    ET_TRY(eti_grow(r->cx, &s->type, &s->type_room, s->n + a.n + 1, 1));
    memcpy(s->id + s->n, a.id, (size_t)a.n * sizeof *a.id);
    memcpy(s->type + s->n, a.type, (size_t)a.n);
    out->begin = s->n;
    out->n = a.n;
    s->n += a.n;
    return ET_OK;
}

static et_status
take_row(void *data, const struct eti_labelled_row *row)
{
    struct reading *r = data;
    struct state *s = r->self->state;
    struct row out = {0};
    bool test = eti_row_split(r->seen++) == ET_SPLIT_TEST;
    ET_TRY(find_label(r, row, &out));
    if (r->only_labels || (r->part >= 0 && test != r->part))
        return ET_OK;
    ET_TRY(take_tokens(r, row, &out));
    ET_TRY(eti_grow(r->cx, &s->row, &s->row_room, s->n_rows + 1, sizeof *s->row));
    s->row[s->n_rows++] = out;
    return ET_OK;
}

static et_status
read_file(struct reading *r, const char *path)
{
    const struct options *o = r->self->options;
    const struct eti_row_names names = {o->text, o->text2, o->label};
    r->path = path;
    return eti_labelled_rows(r->cx, path, &names, take_row, r);
}

static et_status
read_folder(struct reading *r, const char *folder)
{
    char path[ETI_PATH_MAX];
    int split = r->self->common->split;
    for (int i = 0; i < 2; i++) {
        r->only_labels = i != split;
        if (eti_split_file(folder, i, path))
            ET_TRY(read_file(r, path));
        else if (i == split)
            return ET_FAIL(r->cx, ET_ENOENT, "%s: no %s.tsv or .jsonl", folder,
                           i ? "dev, validation or test" : "train");
    }
    return ET_OK;
}

/* ---- classes ---- */

static bool
is_integer(const char *text)
{
    char *end;
    (void)strtol(text, &end, 10);
    return *text && !*end;
}

static int
by_value(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    long i = strtol(x, NULL, 10), k = strtol(y, NULL, 10);
    return i < k ? -1 : i > k;
}

static int
by_letters(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static et_status
name_classes(struct et_ctx *cx, struct state *s)
{
    bool integers = true;
    size_t n = (size_t)s->labels.n;
    ET_TRY(et_alloc(cx, (n + 1) * sizeof *s->name, (void **)&s->name));
    for (; s->n_classes < s->labels.n; s->n_classes++) {
        size_t length;
        const char *text = eti_vocab_text(&s->labels, s->n_classes, &length);
        ET_TRY(et_alloc(cx, length + 1, (void **)&s->name[s->n_classes]));
        memcpy(s->name[s->n_classes], text, length);
        integers &= is_integer(s->name[s->n_classes]);
    }
    qsort(s->name, n, sizeof *s->name, integers ? by_value : by_letters);
    int32_t *class_of;
    ET_TRY(et_alloc(cx, (n + 1) * sizeof *class_of, (void **)&class_of));
    for (size_t i = 0; i < n; i++) {
        int32_t label = eti_vocab_find(&s->labels, s->name[i], strlen(s->name[i]));
        if (label >= 0)
            class_of[label] = (int32_t)i;
    }
    for (int64_t i = 0; i < s->n_rows; i++)
        s->row[i].label = class_of[s->row[i].label];
    et_free(cx, class_of);
    return ET_OK;
}

/* ---- the data set ---- */

static void
set_facts(struct et_data_facts *f, int64_t n, int64_t vocab_size, int32_t pad,
          bool number, int64_t classes)
{
    struct et_field tokens = {
        .name = "tokens",
        .kind = ET_FIELD_TOKENS,
        .dtype = ET_I32,
        .ndim = 1,
        .shape = {-1},
        .below = vocab_size,
        .pad = pad,
    };
    *f = (struct et_data_facts){.n_samples = n, .wants_attention_mask = true};
    et_facts_add(f, &tokens);
    et_facts_add(f, &(struct et_field){
                        .name = "target",
                        .kind = ET_FIELD_VALUES,
                        .dtype = number ? ET_F32 : ET_I32,
                        .below = number ? 0 : classes,
                    });
    tokens.name = "token_type";
    tokens.dtype = ET_U8;
    tokens.below = 256;
    tokens.pad = 0;
    et_facts_add(f, &tokens);
}

static et_status
open_with(struct reading *r, const struct et_tokenizer *t)
{
    struct et_dataset *self = r->self;
    const struct options *o = self->options;
    struct state *s = self->state;
    struct et_tokenizer_info info;
    struct stat st;
    s->labels.cx = r->cx;
    if (stat(o->common.path, &st) == 0 && S_ISDIR(st.st_mode)) {
        r->part = -1;
        ET_TRY(read_folder(r, o->common.path));
    } else {
        r->part = o->common.split;
        ET_TRY(read_file(r, o->common.path));
    }
    if (s->n_rows == 0)
        return ET_FAIL(r->cx, ET_EFORMAT, "%s: no rows (%s)", o->common.path,
                       et_split_names[o->common.split]);
    if (o->target == CLASS)
        ET_TRY(name_classes(r->cx, s));
    et_tokenizer_get_info(t, &info);
    int32_t pad = info.role[ET_TOKEN_PAD];
    set_facts(&self->facts, s->n_rows, info.vocab_size, pad > 0 ? pad : 0,
              o->target == NUMBER, s->n_classes);
    self->facts.bytes = s->n * (int64_t)sizeof *s->id;
    if (o->target == CLASS)
        self->facts.class_names = (const char *const *)s->name;
    return ET_OK;
}

static et_status
open_labelled(struct et_ctx *cx, struct et_dataset *self)
{
    const struct options *o = self->options;
    struct reading r = {.cx = cx, .self = self};
    struct et_tokenizer *t;
    ET_TRY(et_tokenizer_open(cx, o->tokenizer, &t));
    et_status s = et_encoder_new(cx, t, &r.e);
    if (s == ET_OK)
        s = open_with(&r, t);
    et_encoder_free(&r.e);
    et_tokenizer_free(&t);
    return s;
}

static void
close_labelled(struct et_dataset *self)
{
    struct state *s = self->state;
    for (int64_t i = 0; i < s->n_classes && s->name; i++)
        et_free(self->cx, s->name[i]);
    et_free(self->cx, s->name);
    et_free(self->cx, s->id);
    et_free(self->cx, s->type);
    et_free(self->cx, s->row);
    if (s->labels.cx)
        eti_vocab_release(&s->labels);
}

static et_status
read_labelled(const struct et_dataset *self, int64_t at, struct et_sample *out,
              struct et_error *why)
{
    const struct options *o = self->options;
    const struct state *s = self->state;
    const struct row *row = &s->row[at];
    (void)why;
    out->v[0].data = s->id + row->begin;
    out->v[2].data = s->type + row->begin;
    out->v[0].shape[0] = out->v[2].shape[0] = row->n;
    et_sample_number(out, 1, o->target == NUMBER ? (double)row->number : row->label);
    return ET_OK;
}

static int64_t
length_of(const struct et_dataset *self, int64_t at)
{
    const struct state *s = self->state;
    return s->row[at].n;
}

static void
describe_labelled(const void *options, struct et_data_facts *out)
{
    const struct options *o = options;
    set_facts(out, 0, 0, 0, o->target == NUMBER, 0);
}

const struct et_dataset_class et_dataset_labelled_text = {
    .info =
        {
            .name = "labelled_text",
            .class_name = "LabelledText",
            .summary = "texts or pairs of them with a class or a number each",
            .applies_to = "text",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct state),
    .open = open_labelled,
    .sample = read_labelled,
    .length = length_of,
    .close = close_labelled,
    .describe = describe_labelled,
};
