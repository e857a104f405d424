/* SPDX-License-Identifier: Apache-2.0 */
/* layers.c: a network spelled out in the recipe, one layer an item:
 *
 *     layers:
 *       - conv2d: {out: 16, kernel: 3, padding: 1}
 *       - residual: [conv2d: {out: 16, kernel: 3, padding: 1}, batch_norm]
 *       - relu
 *
 * Each layer adapts to what comes before it; parameters are named by their places,
 * "0.weight", "1.residual.0.weight". core/recipe/network.h has the ways around layers
 * and reads them, core/models/ways.h has their modules. */
#include "core/models/stack.h"
#include "core/models/ways.h"
#include "core/recipe/network.h"

#include <stdio.h>
#include <string.h>

struct layers_options {
    struct et_model_options common;
    const struct et_value *layers, *blocks;
};

bool
eti_is_layer(const struct et_module_class *c)
{
    return c != &et_sequential_class && (c->info.options || !c->info.options_size);
}

struct shape {
    int64_t v[3]; /* C, H, W; H = 0: a vector */
};

/* A list that is being built, and those around it. */
struct level {
    const struct level *outer;
    struct eti_row_module *row;
    const struct eti_network *network;
    struct shape *given; /* by each of its items so far */
};

struct builder {
    struct et_ctx *cx;
    const struct et_model_facts *facts;
    struct shape input; /* of the network */
};

/* ---- sentences ---- */

/* "16 x 28 x 28", "10 numbers" */
static const char *
shape_text(const struct shape *s, char buf[80])
{
    if (s->v[1] > 0)
        snprintf(buf, 80, "%lld x %lld x %lld", (long long)s->v[0], (long long)s->v[1],
                 (long long)s->v[2]);
    else
        snprintf(buf, 80, "%lld numbers", (long long)s->v[0]);
    return buf;
}

/* Says at which place of the recipe, that of V or of its key, building failed so. */
static et_status
at_value(struct et_ctx *cx, const struct et_value *v, et_status status)
{
    const struct et_error said = *et_error_get(cx);
    const struct et_place at = v->key ? eti_value_key_place(v) : eti_value_place(v);
    if (status == ET_OK || status == ET_ENOMEM || !v->source->name)
        return status;
    et_error_clear(cx);
    (void)ET_FAIL(cx, status, "%s:%d:%d: %s", at.file, at.line, at.column,
                  said.message);
    if (*said.hint)
        et_hint(cx, "%s", said.hint);
    return status;
}

static bool
same(const struct shape *a, const struct shape *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* ---- values by their names ---- */

static int64_t
size_of(const struct et_field *field, int axis)
{
    return axis < field->ndim ? field->shape[axis] : 1;
}

/* The field of the samples that REF names, as layers read it. */
static et_status
find_field(const struct builder *b, const struct eti_network_ref *ref,
           struct eti_ways_ref *way, struct shape *out)
{
    const struct et_model_facts *facts = b->facts;
    const char *names[ET_MAX_FIELDS] = {NULL};
    int n = 0;
    const struct et_field *f = NULL;
    for (int i = 0; i < facts->n_fields && i < ET_MAX_FIELDS; i++) {
        if (i == ET_FIELD_TARGET)
            continue;
        names[n++] = facts->field[i].name;
        if (strcmp(facts->field[i].name, ref->name) == 0)
            f = &facts->field[i];
    }
    const char *near = et_nearest(ref->name, names, n);
    if (!f)
        return ET_FAIL(b->cx, ET_EINVAL,
                       "no layer before is called '%s', and the data have no such "
                       "field%s%s%s",
                       ref->name, near ? " (did you mean '" : "", near ? near : "",
                       near ? "'?)" : "");
    if (f->ndim > 3 || strlen(f->name) >= sizeof way->field ||
        (f->ndim > 0 && size_of(f, 0) < 1) || size_of(f, 1) < 1 || size_of(f, 2) < 1)
        return ET_FAIL(b->cx, ET_EINVAL,
                       "the field %s has no size that a network can be made for",
                       f->name);
    *way = (struct eti_ways_ref){
        .kind = ETI_WAY_FIELD, .dtype = f->dtype, .ndim = f->ndim};
    snprintf(way->field, sizeof way->field, "%s", f->name);
    memcpy(way->shape, f->shape, sizeof way->shape);
    const int first = f->ndim == 2 ? -1 : 0; /* a picture without channels has one */
    *out = (struct shape){{first < 0 ? 1 : size_of(f, 0)}};
    if (f->ndim >= 2) {
        out->v[1] = size_of(f, first + 1);
        out->v[2] = size_of(f, first + 2);
    }
    return ET_OK;
}

/* Is NAME what the network itself reads? */
static bool
is_input(const struct builder *b, const char *name)
{
    const char *first = b->facts->n_fields > 0 ? b->facts->field[0].name
                        : b->input.v[1] > 0    ? "image"
                                               : "values";
    return strcmp(name, "input") == 0 || strcmp(name, first) == 0;
}

static et_status
find_way(const struct builder *b, const struct level *l,
         const struct eti_network_ref *ref, struct eti_ways_ref *way, struct shape *out)
{
    *way = (struct eti_ways_ref){.kind = ETI_WAY_NAMED, .up = ref->up};
    if (ref->item < 0 && !is_input(b, ref->name))
        return at_value(b->cx, ref->at, find_field(b, ref, way, out));
    if (ref->item < 0) {
        way->kind = ETI_WAY_INPUT;
        for (; l->outer; l = l->outer)
            way->up++;
        *out = b->input;
        return ET_OK;
    }
    for (int i = 0; i < ref->up; i++)
        l = l->outer;
    while (l->row->named[way->named].item != ref->item)
        way->named++;
    *out = l->given[ref->item];
    return ET_OK;
}

/* ---- items ---- */

static et_status build_list(const struct builder *b, const struct level *outer,
                            const struct eti_network *network, struct shape *shape,
                            struct et_module **out);

/* A plugin's layers have a size of their class (etude/option.h). */
static bool
is_own(const struct eti_network_item *item)
{
    return item->layer->class_size > 0;
}

/* Notes what item AT of ROW, a plugin's layer, is to make of IN. */
static void
note_own(struct eti_row_module *row, int at, const struct eti_network_item *item,
         const struct shape *in, const struct shape *out)
{
    const struct et_value *v = item->at;
    if (row->n_own == ETI_WAYS_OWN)
        return;
    struct eti_row_own *own = &row->own[row->n_own++];
    *own = (struct eti_row_own){.item = at};
    memcpy(own->in, in->v, sizeof own->in);
    memcpy(own->out, out->v, sizeof own->out);
    if (!v->source->name)
        return;
    const struct et_place place = v->key ? eti_value_key_place(v) : eti_value_place(v);
    own->line = place.line;
    own->column = place.column;
    snprintf(row->file, sizeof row->file, "%s", place.file);
}

/* What comes in is said with a plugin's sentence, which may be none. */
static et_status
refuse_own(struct et_ctx *cx, const struct eti_network_item *item,
           const struct shape *in, et_status status)
{
    const struct et_error said = *et_error_get(cx);
    char text[80];
    if (status == ET_OK || status == ET_ENOMEM || !is_own(item))
        return status;
    shape_text(in, text);
    et_error_clear(cx);
    if (said.message[0])
        (void)ET_FAIL(cx, status, "layer %s: %s; %s come in", item->layer->name,
                      said.message, text);
    else
        (void)ET_FAIL(cx, status, "layer %s does not take %s", item->layer->name, text);
    if (*said.hint)
        et_hint(cx, "%s", said.hint);
    return status;
}

/* A layer with its options, for what comes in. */
static et_status
add_layer(const struct builder *b, struct et_module *row,
          const struct eti_network_item *item, struct shape *shape)
{
    static const struct et_option none[] = {{0}};
    const struct et_module_class *type = (const void *)item->layer; /* info is first */
    const struct et_option *table = type->info.options ? type->info.options : none;
    struct eti_stack s = {.cx = b->cx, .row = row};
    struct et_diagnostics errors = {0};
    struct eti_fill fill = {.cx = b->cx, .errors = &errors};
    char path[ETI_PATH_BYTES], text[1024];
    void *options;
    memcpy(s.shape, shape->v, sizeof s.shape);
    eti_path_join(path, "model.layers", type->info.name);
    ET_TRY(et_alloc(b->cx, type->info.options_size + 1, &options));
    et_status status =
        eti_options_from_value(&fill, table, options, item->options, path);
    if (status == ET_OK && errors.n)
        status = ET_FAIL(b->cx, ET_EINVAL, "%s",
                         et_diagnostic_text(&errors.v[0], text, sizeof text));
    if (status == ET_OK)
        status =
            eti_stack_add(&s, NULL, type, type->info.options_size ? options : NULL);
    et_options_release(table, options);
    et_free(b->cx, options);
    struct shape made;
    memcpy(made.v, s.shape, sizeof made.v);
    status = refuse_own(b->cx, item, shape, status);
    if (status == ET_OK && is_own(item))
        note_own((struct eti_row_module *)row, row->n_items - 1, item, shape, &made);
    *shape = made;
    return at_value(b->cx, item->at, status);
}

static et_status
refuse_sum(const struct builder *b, bool has_shortcut, const struct shape *residual,
           const struct shape *other)
{
    char a[80], c[80];
    shape_text(residual, a);
    shape_text(other, c);
    et_status status =
        has_shortcut
            ? ET_FAIL(b->cx, ET_EINVAL, "the layers give %s, but the shortcut %s", a, c)
            : ET_FAIL(b->cx, ET_EINVAL, "the layers give %s, but %s come in", a, c);
    if (residual->v[1] < 1 || other->v[1] < 1)
        return status;
    et_hint(b->cx, "shortcut: [conv2d: {out: %lld, kernel: 1, stride: %lld}]",
            (long long)residual->v[0],
            (long long)((other->v[1] + residual->v[1] - 1) / residual->v[1]));
    return status;
}

static et_status
add_residual(const struct builder *b, const struct level *l,
             const struct eti_network_item *item, struct shape *shape)
{
    struct et_module *row = &l->row->base;
    struct shape other = *shape;
    ET_TRY(et_module_add(b->cx, row, NULL, &eti_residual_class, NULL));
    struct eti_residual_module *m =
        (struct eti_residual_module *)row->items[row->n_items - 1].module;
    ET_TRY(build_list(b, l, &item->inner, shape, &m->residual));
    if (item->way.n > 0)
        ET_TRY(build_list(b, l, &item->way, &other, &m->shortcut));
    if (same(shape, &other))
        return ET_OK;
    return at_value(b->cx, item->at, refuse_sum(b, item->way.n > 0, shape, &other));
}

static et_status
add_repeat(const struct builder *b, const struct level *l,
           const struct eti_network_item *item, struct shape *shape)
{
    struct et_module *row = &l->row->base;
    ET_TRY(et_module_add(b->cx, row, NULL, &eti_repeat_class, NULL));
    struct et_module *m = row->items[row->n_items - 1].module;
    for (int64_t i = 0; i < item->times; i++) {
        ET_TRY(et_module_add(b->cx, m, NULL, &eti_row_class, NULL));
        et_module_free(&m->items[m->n_items - 1].module);
        ET_TRY(build_list(b, l, &item->inner, shape, &m->items[m->n_items - 1].module));
    }
    return ET_OK;
}

/* Is the value of shape OTHER joined to one of shape S? *S becomes the result's. */
static bool
joins(enum eti_network_kind kind, struct shape *s, const struct shape *other)
{
    if (kind != ETI_NETWORK_CONCAT)
        return same(s, other) || (s->v[1] > 0 && other->v[0] == s->v[0] &&
                                  other->v[1] <= 1 && other->v[2] <= 1);
    if (s->v[1] != other->v[1] || s->v[2] != other->v[2])
        return false;
    s->v[0] += other->v[0];
    return true;
}

static et_status
refuse_join(const struct builder *b, const struct eti_network_item *item,
            const char *name, const struct shape *s, const struct shape *other)
{
    char a[80], c[80];
    et_status status =
        ET_FAIL(b->cx, ET_EINVAL, "%s: %s is %s, but %s come in", item->name, name,
                shape_text(other, a), shape_text(s, c));
    et_hint(
        b->cx,
        item->kind == ETI_NETWORK_CONCAT
            ? "their heights and widths must be alike, their channels need not be"
            : "their sizes must be alike, or that of %s one number for each channel",
        name);
    return status;
}

static et_status
add_join(const struct builder *b, const struct level *l,
         const struct eti_network_item *item, struct shape *shape)
{
    static const struct et_module_class *const classes[] = {
        [ETI_NETWORK_ADD] = &eti_add_class,
        [ETI_NETWORK_MUL] = &eti_mul_class,
        [ETI_NETWORK_CONCAT] = &eti_concat_class,
    };
    struct et_module *row = &l->row->base;
    ET_TRY(et_module_add(b->cx, row, NULL, classes[item->kind], NULL));
    struct eti_join_module *m =
        (struct eti_join_module *)row->items[row->n_items - 1].module;
    m->row = l->row;
    for (; m->n < item->with.n; m->n++) {
        const struct eti_network_ref *ref = &item->with.v[m->n];
        struct shape other;
        ET_TRY(find_way(b, l, ref, &m->way[m->n], &other));
        if (!joins(item->kind, shape, &other))
            return at_value(b->cx, ref->at,
                            refuse_join(b, item, ref->name, shape, &other));
    }
    return ET_OK;
}

static et_status
add_block(const struct builder *b, const struct level *l,
          const struct eti_network_item *item, struct shape *shape)
{
    struct et_module *row = &l->row->base;
    ET_TRY(et_module_add(b->cx, row, NULL, &eti_row_class, NULL));
    struct et_module **made = &row->items[row->n_items - 1].module;
    et_module_free(made);
    ET_TRY(build_list(b, l, &item->inner, shape, made));
    struct eti_row_module *use = (struct eti_row_module *)*made;
    snprintf(use->block, sizeof use->block, "%s", item->name);
    return ET_OK;
}

/* What ITEM reads is not what the one before gives: it is noted, and *SHAPE is its. */
static et_status
read_from(const struct builder *b, const struct level *l, int at, struct shape *shape)
{
    const struct eti_network_item *item = &l->network->item[at];
    struct eti_row_from *from = &l->row->from[l->row->n_from];
    if (item->from.n == 0)
        return ET_OK;
    from->item = at;
    from->is_integer = item->layer == &et_embedding_class.info;
    ET_TRY(find_way(b, l, &item->from.v[0], &from->way, shape));
    l->row->n_from++;
    return ET_OK;
}

static et_status
add_item(const struct builder *b, const struct level *l, int at, struct shape *shape)
{
    const struct eti_network_item *item = &l->network->item[at];
    ET_TRY(read_from(b, l, at, shape));
    switch (item->kind) {
    case ETI_NETWORK_RESIDUAL:
        return add_residual(b, l, item, shape);
    case ETI_NETWORK_REPEAT:
        return add_repeat(b, l, item, shape);
    case ETI_NETWORK_ADD:
    case ETI_NETWORK_MUL:
    case ETI_NETWORK_CONCAT:
        return add_join(b, l, item, shape);
    case ETI_NETWORK_FROM:
        return et_module_add(b->cx, &l->row->base, NULL, &eti_from_class, NULL);
    case ETI_NETWORK_BLOCK:
        return add_block(b, l, item, shape);
    default:
        return add_layer(b, &l->row->base, item, shape);
    }
}

static et_status
build_list(const struct builder *b, const struct level *outer,
           const struct eti_network *network, struct shape *shape,
           struct et_module **out)
{
    void *given;
    ET_TRY(et_module_new(b->cx, &eti_row_class, NULL, out));
    struct eti_row_module *row = (struct eti_row_module *)*out;
    row->outer = outer ? outer->row : NULL;
    ET_TRY(et_alloc(b->cx, (size_t)network->n * sizeof(struct shape) + 1, &given));
    const struct level l = {
        .outer = outer, .row = row, .network = network, .given = given};
    et_status status = ET_OK;
    for (int i = 0; i < network->n && status == ET_OK; i++) {
        status = add_item(b, &l, i, shape);
        l.given[i] = *shape;
        if (network->item[i].as)
            row->named[row->n_named++].item = i;
    }
    et_free(b->cx, given);
    return status;
}

/* ---- the model ---- */

/* Have the data a class for each pixel? */
static bool
wants_masks(const struct et_model_facts *f)
{
    return f->field && f->n_fields > ET_FIELD_TARGET &&
           f->field[ET_FIELD_TARGET].kind == ET_FIELD_MASK;
}

static et_status
check_mask(const struct builder *b, const struct eti_network *network,
           const struct shape *s)
{
    const struct et_model_facts *f = b->facts;
    if (s->v[0] == f->num_classes && s->v[1] == f->height && s->v[2] == f->width)
        return ET_OK;
    et_status status =
        ET_FAIL(b->cx, ET_EINVAL,
                "the last layer gives %lld x %lld x %lld, but %lld classes are to be "
                "told apart in each of %lld x %lld pixels",
                (long long)s->v[0], (long long)s->v[1], (long long)s->v[2],
                (long long)f->num_classes, (long long)f->height, (long long)f->width);
    et_hint(b->cx, "end with conv2d: {out: %lld, kernel: 1} at the image's size",
            (long long)f->num_classes);
    return at_value(b->cx, network->item[network->n - 1].at, status);
}

static et_status
check_end(const struct builder *b, const struct eti_network *network,
          const struct shape *s)
{
    const int64_t classes = b->facts->num_classes;
    if (wants_masks(b->facts))
        return check_mask(b, network, s);
    if (s->v[1] == 0 && s->v[0] == classes)
        return ET_OK;
    et_status status = ET_FAIL(
        b->cx, ET_EINVAL,
        "the last layer gives %s of %lld, but %lld classes are to be told "
        "apart",
        s->v[1] > 0 ? "images" : "a vector", (long long)s->v[0], (long long)classes);
    et_hint(b->cx,
            s->v[1] > 0 ? "end with flatten and linear: {out: %lld}"
                        : "end with linear: {out: %lld}",
            (long long)classes);
    return at_value(b->cx, network->item[network->n - 1].at, status);
}

/* What is wrong with the list has been said when the recipe was read (ET_OPT_ITEMS),
 * unless its options were set one by one. */
static et_status
read_network(struct et_ctx *cx, const struct layers_options *o,
             const struct et_model_facts *facts, struct eti_arena *arena,
             struct eti_network *out)
{
    struct et_diagnostics errors = {0};
    const struct eti_fill fill = {
        .cx = cx, .registry = facts->registry, .errors = &errors};
    ET_TRY(eti_network_read(&fill, arena, o->layers, o->blocks, false, "model.layers",
                            out));
    if (!errors.n)
        return ET_OK;
    const struct et_diagnostic *d = &errors.v[0];
    et_status status = ET_FAIL(cx, ET_EINVAL, "%s: %s", d->path, d->message);
    if (*d->hint)
        et_hint(cx, "%s", d->hint);
    return status;
}

static et_status
layers_build(struct et_ctx *cx, struct et_model *m, const void *options,
             const struct et_model_facts *facts)
{
    const struct layers_options *o = options;
    struct builder b = {
        .cx = cx,
        .facts = facts,
        .input = {{facts->channels, facts->height, facts->width}},
    };
    struct shape shape = b.input;
    struct eti_network network;
    struct eti_arena arena;
    if (!o->layers || o->layers->type != ET_VALUE_LIST || o->layers->n < 1)
        return ET_FAIL(cx, ET_EINVAL, "model.layers is a list of layers");
    eti_arena_init(&arena, cx, 4 << 10);
    et_status status = read_network(cx, o, facts, &arena, &network);
    if (status == ET_OK)
        status = build_list(&b, NULL, &network, &shape, &m->root);
    if (status == ET_OK)
        status = check_end(&b, &network, &shape);
    if (status == ET_OK && wants_masks(facts))
        m->task = ET_TASK_SEGMENTATION;
    eti_arena_release(&arena);
    return status;
}

static void
name_layers(void *field)
{
    eti_network_name(*(struct et_value **)field); /* the loader's tree, or our own */
}

static void
name_blocks(void *field)
{
    const struct et_value *blocks = *(const struct et_value **)field;
    for (struct et_value *c = blocks ? blocks->first : NULL; c; c = c->next)
        eti_network_name(c);
}

const struct et_model_class et_layers_model = {
    .info =
        {
            .name = "layers",
            .class_name = "Layers",
            .summary = "a network spelled out as a list of layers",
            .source = "Etude",
            .applies_to = "vision",
            .options =
                (const struct et_option[]){
                    ET_MODEL_OPTIONS(layers_options),
                    {
                        .name = "blocks",
                        .type = ET_OPT_NODE,
                        .offset = offsetof(struct layers_options, blocks),
                        .flags = ET_OPT_OPTIONAL | ET_OPT_LATER,
                        .help = "lists of layers by names, which layers uses like "
                                "layers",
                        .prepare = name_blocks,
                    },
                    {
                        .name = "layers",
                        .type = ET_OPT_NODE,
                        .offset = offsetof(struct layers_options, layers),
                        .flags = ET_OPT_REQUIRED | ET_OPT_ITEMS,
                        .help = "layers in order: a name, or a name with its options",
                        .kind = ET_KIND_LAYER,
                        .prepare = name_layers,
                    },
                    {0},
                },
            .options_size = sizeof(struct layers_options),
        },
    .task = ET_TASK_CLASSIFICATION,
    .build = layers_build,
};
