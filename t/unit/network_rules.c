/* SPDX-License-Identifier: Apache-2.0 */
/* A list of layers as it is read, item by item, and all that is told of one that is
 * wrong: each fault once, at its path. Then the sizes of pictures that are not square.
 * What networks compute: t/unit/network.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/recipe/network.h"
#include "core/recipe/options.h"
#include "etude/model.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static struct et_ctx *cx;
static char told[8192]; /* "PATH: MESSAGE (HINT)" of each fault, or the list as read */
static size_t used;

/* A long list is cut off. */
#define SAY(...)                                                                       \
    (used += used < sizeof told                                                        \
                 ? (size_t)snprintf(told + used, sizeof told - used, __VA_ARGS__)      \
                 : 0)

/* ---- a list as text ---- */

static void
say_refs(const char *word, const struct eti_network_refs *refs)
{
    for (int i = 0; i < refs->n; i++)
        SAY("%s%s@%d^%d", i ? "," : word, refs->v[i].name, refs->v[i].item,
            refs->v[i].up);
}

static void
say_list(const struct eti_network *net)
{
    static const char *const kinds[] = {
        [ETI_NETWORK_RESIDUAL] = "residual", [ETI_NETWORK_REPEAT] = "repeat",
        [ETI_NETWORK_ADD] = "add",           [ETI_NETWORK_MUL] = "mul",
        [ETI_NETWORK_CONCAT] = "concat",     [ETI_NETWORK_FROM] = "from",
        [ETI_NETWORK_LAYER] = "layer",       [ETI_NETWORK_BLOCK] = "block",
    };
    for (int i = 0; i < net->n; i++) {
        const struct eti_network_item *item = &net->item[i];
        SAY("%s%s", i ? " " : "", kinds[item->kind]);
        if (item->layer)
            SAY(":%s", item->layer->name);
        if (item->kind == ETI_NETWORK_BLOCK)
            SAY(":%s", item->name);
        if (item->times)
            SAY("*%d", (int)item->times);
        say_refs("<", &item->from);
        say_refs("+", &item->with);
        if (item->as)
            SAY("=%s", item->as);
        if (item->inner.n) {
            SAY("[");
            say_list(&item->inner);
            SAY("]");
        }
        if (item->way.n) {
            SAY("/[");
            say_list(&item->way);
            SAY("]");
        }
    }
}

/* What LIST, with BLOCKS (NULL: none), is read as, or all that is wrong with it. */
static const char *
reads(const char *blocks, const char *list, bool is_alone)
{
    struct et_diagnostics errors = {0};
    const struct eti_fill fill = {.cx = cx, .errors = &errors};
    struct et_value *of_blocks = NULL, *value;
    struct eti_network net;
    struct eti_arena arena;
    used = 0;
    told[0] = '\0';
    if (blocks)
        need(cx, eti_value_read(cx, blocks, &errors, &of_blocks));
    need(cx, eti_value_read(cx, list, &errors, &value));
    if (errors.n)
        bail("%s", errors.v[0].message);
    eti_arena_init(&arena, cx, 4 << 10);
    need(cx, eti_network_read(&fill, &arena, value, of_blocks, is_alone, "net", &net));
    for (int i = 0; i < errors.n; i++)
        SAY("%s%s: %s", i ? "; " : "", errors.v[i].path, errors.v[i].message);
    if (!errors.n)
        say_list(&net);
    eti_arena_release(&arena);
    eti_value_free(of_blocks);
    eti_value_free(value);
    return told;
}

/* ---- items ---- */

struct row {
    const char *blocks, *list, *want;
};

static const struct row rows[] = {
    {NULL, "[relu, conv2d: {out: 2}, {tanh: }]", "layer:relu layer:conv2d layer:tanh"},
    {NULL, "[repeat: {times: 1, layers: [relu, tanh]}]",
     "repeat*1[layer:relu layer:tanh]"},
    {NULL, "[repeat: {times: 1000, layers: [relu]}]", "repeat*1000[layer:relu]"},
    {NULL, "[residual: [relu]]", "residual[layer:relu]"},
    {NULL, "[residual: {layers: [relu], shortcut: [tanh, gelu]}]",
     "residual[layer:relu]/[layer:tanh layer:gelu]"},
    {NULL, "[residual: {layers: [relu], shortcut: }]", "residual[layer:relu]"},
    /* values with names */
    {NULL, "[{relu: , as: a}, {tanh: , as: b}, mul: a, concat: b, add: input]",
     "layer:relu=a layer:tanh=b mul+a@0^0 concat+b@1^0 add+input@-1^0"},
    {NULL, "[{relu: , as: a}, {tanh: , as: b}, {from: [b, a, input], concat: }]",
     "layer:relu=a layer:tanh=b concat<b@1^0+a@0^0,input@-1^0"},
    {NULL, "[{relu: , as: a}, {from: input}, {from: a, as: b}, {from: b, gelu: }]",
     "layer:relu=a from<input@-1^0 from<a@0^0=b layer:gelu<b@2^0"},
    {NULL, "[{relu: , as: a}, residual: [tanh, residual: [gelu, add: a]]]",
     "layer:relu=a residual[layer:tanh residual[layer:gelu add+a@0^2]]"},
    {NULL, "[{relu: , as: a}, {from: a, add: input}]",
     "layer:relu=a add<a@0^0+input@-1^0"},
    /* blocks */
    {"u: [conv2d: {out: $n, kernel: $k}, relu]\nv: [u: {n: 3, k: $k}]",
     "[v: {k: 5}, u: {n: 2, k: 1}, repeat: {times: 2, layers: [v: {k: 7}]}]",
     "block:v[block:u[layer:conv2d layer:relu]] block:u[layer:conv2d layer:relu] "
     "repeat*2[block:v[block:u[layer:conv2d layer:relu]]]"},
    {"u: [relu]", "[u, u, {u: }]",
     "block:u[layer:relu] block:u[layer:relu] "
     "block:u[layer:relu]"},
    {"a-b_2: [relu]", "[a-b_2]", "block:a-b_2[layer:relu]"},
    /* faults of blocks: each once */
    {"u: [conv2d: {out: $n, kernel: 1}]", "[u: {n: -3}, u: {n: -4}]",
     "net.0.u.0.conv2d.out: expected integer >= 1 and <= 16777216, got -3"},
    {"u: [conv2d: {out: $n}, conv2d: {out: $n, kernel: $k}]", "[u]",
     "net.0.u: key 'n' is missing: the block u has $n; "
     "net.0.u: key 'k' is missing: the block u has $k"},
    {"u: [relu, u]", "[u]", "net.0.u.1.u: the block u is made of itself"},
    {"u: [v]\nv: [relu, w]\nw: [u]", "[u]",
     "net.0.u.0.v.1.w.0.u: the block u is made of itself, by way of w"},
    {"u: [relu]\nv: [tanh]", "[relu]",
     "model.blocks.u: the block u is used nowhere; "
     "model.blocks.v: the block v is used nowhere"},
    {"u: 3", "[u]", "net.0.u: expected list of layers, got 3"},
    {"[relu]", "[relu]",
     "model.blocks: expected mapping from names to lists of layers, got a list of 1 "
     "item"},
    {"residual: [relu]\nrepeat: [relu]\nconcat: [relu]", "[relu]",
     "model.blocks.residual: 'residual' is the name of a layer, so no block can have "
     "it; model.blocks.repeat: 'repeat' is the name of a layer, so no block can have "
     "it; model.blocks.concat: 'concat' is the name of a layer, so no block can have "
     "it"},
    {"as: [relu]\nfrom: [relu]\nconv2d: [relu]", "[relu]",
     "model.blocks.as: 'as' is the name of a layer, so no block can have it; "
     "model.blocks.from: 'from' is the name of a layer, so no block can have it; "
     "model.blocks.conv2d: 'conv2d' is the name of a layer, so no block can have it"},
    {"'a b': [relu]", "[relu]",
     "model.blocks.a b: a block's name has letters, digits, _ and -"},
    {"u: [relu]", "[u: {n: 1}]", "net.0.u: unknown key 'n'"},
    {"u: [relu]", "[u: 3]", "net.0.u: expected mapping of options, got 3"},
    /* faults of items */
    {NULL, "[]", "net: expected list of layers, got a list of 0 items"},
    {NULL, "{relu: }", "net: expected list of layers, got a mapping"},
    {NULL, "[relu, conv2d: 3]", "net.1.conv2d: expected mapping of options, got 3"},
    {NULL, "[repeat: {times: 0, layers: [relu]}]",
     "net.0.repeat.times: expected integer from 1 to 1000, got 0"},
    {NULL, "[repeat: {times: 1001, layers: [relu]}]",
     "net.0.repeat.times: expected integer from 1 to 1000, got 1001"},
    {NULL, "[repeat: {times: 1.5, layers: [relu]}]",
     "net.0.repeat.times: expected integer from 1 to 1000, got 1.5"},
    {NULL, "[repeat: {times: 2}]",
     "net.0.repeat: expected mapping with times and layers, got a mapping"},
    {NULL, "[repeat: {layers: [relu]}]",
     "net.0.repeat: expected mapping with times and layers, got a mapping"},
    {NULL, "[repeat: {times: 2, layers: [relu, {conv2d: {out: -1}}]}]",
     "net.0.repeat.layers.1.conv2d.out: expected integer >= 1 and <= 16777216, got -1"},
    {NULL, "[repeat: {times: 2, layers: [relu], layer: 1}]",
     "net.0.repeat: unknown key 'layer' (did you mean 'layers'?)"},
    {NULL, "[residual: 3]",
     "net.0.residual: expected list of layers, or mapping with layers, got 3"},
    {NULL, "[residual: {shortcut: [relu]}]",
     "net.0.residual: expected list of layers, or mapping with layers, got a mapping"},
    {NULL, "[residual: {layers: [relu], short: [relu]}]",
     "net.0.residual: unknown key 'short'"},
    {NULL,
     "[residual: {layers: [conv2d: {out: -1}], shortcut: [relu, conv2d: {out: -2}]}]",
     "net.0.residual.layers.0.conv2d.out: expected integer >= 1 and <= 16777216, got "
     "-1; "
     "net.0.residual.shortcut.1.conv2d.out: expected integer >= 1 and <= 16777216, got "
     "-2"},
    {NULL, "[residual: [relu, conv2d: {out: -1}]]",
     "net.0.residual.1.conv2d.out: expected integer >= 1 and <= 16777216, got -1"},
    {NULL, "[{relu: , as: a}, {from: [a, input], add: a}]",
     "net.1.add: expected nothing here where from: has several names, got \"a\""},
    {NULL, "[{relu: , as: a}, {from: a, add: }]",
     "net.1.add: expected name of a value, got nothing"},
    {NULL, "[add: ]", "net.0.add: expected name of a value, got nothing"},
    {NULL, "[{relu: , as: a}, {from: [a, input], tanh: }]",
     "net.1.from: expected one name, got a list of 2 items"},
    {NULL, "[{relu: , as: a}, {from: [a, input]}]",
     "net.1.from: expected one name, got a list of 2 items"},
    {NULL, "[{relu: , form: input}]",
     "net.0: unknown key 'form' (did you mean 'from'?)"},
    {NULL, "[{from: input, relu: , fron: input}]",
     "net.0: unknown key 'fron' (did you mean 'from'?)"},
    {NULL, "[{relu: , tanh: }]",
     "net.0: expected name, or one name with its options, got a mapping"},
    {NULL, "[{as: a}]",
     "net.0: expected name, or one name with its options, got a "
     "mapping"},
    {NULL, "[relu, 3]", "net.1: expected name, or one name with its options, got 3"},
    {NULL, "[relu, [tanh]]",
     "net.1: expected name, or one name with its options, got a list of 1 item"},
    {NULL, "[relu, relo]", "net.1.relo: unknown layer 'relo' (did you mean 'relu'?)"},
    {"unit: [relu]", "[unit, unti]",
     "net.1.unti: unknown layer 'unti' (did you mean 'unit'?)"},
};

/* Where only a part of a recipe is read, what is elsewhere is no fault. */
static const struct row alone[] = {
    {"u: [relu]\nv: [tanh]", "[relu]", "layer:relu"},
    {NULL, "[unit, relu]", "layer layer:relu"},
    {"u: [relu]", "[unit: {n: 1}, u]", "layer block:u[layer:relu]"},
    {NULL, "[conv2d: {out: -1}]",
     "net.0.conv2d.out: expected integer >= 1 and <= 16777216, got -1"},
};

static void
items(const struct row *r, int n, bool is_alone)
{
    for (int i = 0; i < n; i++)
        is_str(reads(r[i].blocks, r[i].list, is_alone), r[i].want, "%s%s%s", r[i].list,
               r[i].blocks ? ", with blocks" : "", is_alone ? ", alone" : "");
}

/* ---- limits ---- */

/* BEGIN, EACH so often, and END. */
static const char *
many(const char *begin, const char *each, int n, const char *end)
{
    static char text[160 << 10];
    size_t at = (size_t)snprintf(text, sizeof text, "%s", begin);
    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s", each);
    snprintf(text + at, sizeof text - at, "%s", end);
    return text;
}

/* Each list is read with so many layers, and not with one more. */
static void
limits(void)
{
    static const struct {
        const char *what, *begin, *each, *end, *want;
        int most;
    } row[] = {
        {"layers behind some that are repeated",
         "[repeat: {times: 1000, layers: [relu, relu, relu, relu, relu, relu, relu, "
         "relu, relu]},",
         "relu,", "]", "net.1000: the network has more than 10000 layers", 999},
        {"layers behind some that are repeated within others",
         "[repeat: {times: 100, layers: [repeat: {times: 10, layers: [relu, relu, "
         "relu, relu, relu, relu, relu, relu]}]},",
         "relu,", "]", "net.1900: the network has more than 10000 layers", 1899},
        {"layers that are repeated", "[repeat: {times: 1000, layers: [", "relu,", "]}]",
         "net.0.repeat.layers.9: the network has more than 10000 layers", 9},
        {"values with names", "[{relu: , as: a},", "{from: a, relu: },", "]",
         "net: expected at most 64 layers with as: or from: in one list, got a list of "
         "65 items",
         63},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const char *got =
            reads(NULL, many(row[i].begin, row[i].each, row[i].most, row[i].end), true);
        ok(strstr(got, ": ") == NULL, "%s: so many are read", row[i].what);
        if (strstr(got, ": "))
            diag("%s", got);
        is_str(reads(NULL, many(row[i].begin, row[i].each, row[i].most + 1, row[i].end),
                     true),
               row[i].want, "and one more is told");
    }
}

/* ---- sizes ---- */

/* Samples whose heights and widths differ, as those of fields do. */
static const struct et_field fields[] = {
    {.name = "image", .dtype = ET_F32, .ndim = 3, .shape = {3, 6, 10}},
    {.name = "mask",
     .kind = ET_FIELD_MASK,
     .dtype = ET_I32,
     .ndim = 2,
     .shape = {6, 10}},
    {.name = "depth", .dtype = ET_F32, .ndim = 2, .shape = {6, 10}},
    {.name = "map", .dtype = ET_F32, .ndim = 3, .shape = {2, 6, 10}},
    {.name = "sign", .dtype = ET_F32, .ndim = 1, .shape = {3}},
    {.name = "hour", .dtype = ET_F32},
};
enum { FIELDS = sizeof fields / sizeof *fields };

/* Why there is no network of LAYERS for CLASSES, with the hint; "" where there is one,
 * whose task is *TASK. IS_TURNED: heights are widths. */
static const char *
builds(const char *layers, int classes, bool is_turned, bool has_masks,
       enum et_task *task)
{
    struct et_field own[FIELDS];
    memcpy(own, fields, sizeof own);
    for (int i = 0; i < FIELDS && is_turned; i++)
        for (int k = 0; k < own[i].ndim; k++)
            own[i].shape[k] = own[i].shape[k] == 6    ? 10
                              : own[i].shape[k] == 10 ? 6
                                                      : own[i].shape[k];
    if (!has_masks)
        own[ET_FIELD_TARGET] = (struct et_field){.name = "class", .dtype = ET_I32};
    const struct et_model_facts facts = {.channels = 3,
                                         .height = is_turned ? 10 : 6,
                                         .width = is_turned ? 6 : 10,
                                         .num_classes = classes,
                                         .field = own,
                                         .n_fields = FIELDS};
    const struct et_model_class *type = et_model_class_find("layers");
    const char *set[] = {"layers", layers, NULL};
    struct et_model *m = NULL;
    void *options;
    need(cx, et_options_new(cx, &type->info, set, &options));
    et_status status = et_model_new(cx, type, options, &facts, &m);
    const struct et_error *e = et_error_get(cx);
    snprintf(told, sizeof told, "%s%s%s", status == ET_OK ? "" : e->message,
             status != ET_OK && *e->hint ? "; " : "", status == ET_OK ? "" : e->hint);
    *task = m ? m->task : ET_TASK_LANGUAGE;
    et_error_clear(cx);
    et_model_free(&m);
    et_options_free(&type->info, &options);
    return told;
}

/* What the last layer gives is told where it is not a class for each pixel. */
static void
sizes(void)
{
    static const struct {
        const char *layers, *gives, *turned; /* TURNED NULL: the same */
    } row[] = {
        {"[identity]", "3 x 6 x 10", "3 x 10 x 6"},
        {"[conv2d: {out: 4, kernel: 3, stride: 2, padding: 1}]", "4 x 3 x 5",
         "4 x 5 x 3"},
        {"[conv2d: {out: 4, dilation: 2}]", "4 x 2 x 6", "4 x 6 x 2"},
        {"[conv_transpose2d: {out: 5, kernel: 3, stride: 2, padding: 1, "
         "output_padding: 1}]",
         "5 x 12 x 20", "5 x 20 x 12"},
        {"[conv_transpose2d: {out: 5}]", "5 x 7 x 11", "5 x 11 x 7"},
        {"[max_pool2d: {kernel: 2}]", "3 x 3 x 5", "3 x 5 x 3"},
        {"[max_pool2d: {kernel: 3, stride: 3, padding: 1}]", "3 x 2 x 4", "3 x 4 x 2"},
        {"[adaptive_avg_pool2d]", "3 x 1 x 1", NULL},
        {"[flatten]", "180 x 0 x 0", NULL},
        {"[flatten, linear: {out: 7}]", "7 x 0 x 0", NULL},
        {"[repeat: {times: 2, layers: [conv2d: {out: 4, kernel: 3}]}]", "4 x 2 x 6",
         "4 x 6 x 2"},
        {"[residual: {layers: [conv2d: {out: 4, kernel: 1}], shortcut: [conv2d: {out: "
         "4, kernel: 1}]}]",
         "4 x 6 x 10", "4 x 10 x 6"},
        /* values with names, and fields */
        {"[{conv2d: {out: 4, kernel: 1}, as: a}, max_pool2d: {kernel: 2}, {from: a}]",
         "4 x 6 x 10", "4 x 10 x 6"},
        {"[{conv2d: {out: 4, kernel: 1}, as: a}, repeat: {times: 1, layers: "
         "[max_pool2d: {kernel: 2}, {from: a}]}]",
         "4 x 6 x 10", "4 x 10 x 6"},
        {"[conv2d: {out: 4, kernel: 1}, max_pool2d: {kernel: 2}, {from: image}]",
         "3 x 6 x 10", "3 x 10 x 6"},
        {"[max_pool2d: {kernel: 2}, residual: [{from: input}, max_pool2d: {kernel: "
         "2}]]",
         "3 x 3 x 5", "3 x 5 x 3"},
        {"[{from: depth}]", "1 x 6 x 10", "1 x 10 x 6"},
        {"[{from: map}]", "2 x 6 x 10", "2 x 10 x 6"},
        {"[{from: sign}]", "3 x 0 x 0", NULL},
        {"[{from: hour}]", "1 x 0 x 0", NULL},
        {"[concat: depth]", "4 x 6 x 10", "4 x 10 x 6"},
        {"[{from: [map, input, depth], concat: }]", "6 x 6 x 10", "6 x 10 x 6"},
        {"[add: sign]", "3 x 6 x 10", "3 x 10 x 6"},
        {"[{adaptive_avg_pool2d: , as: v}, {from: input, mul: v}]", "3 x 6 x 10",
         "3 x 10 x 6"},
    };
    enum et_task task;
    char want[256];
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        for (int t = 0; t < 2; t++) {
            const char *got = builds(row[i].layers, 99, t, true, &task);
            snprintf(want, sizeof want,
                     "the last layer gives %s, but 99 classes are to be told apart in "
                     "each of %s pixels; end with conv2d: {out: 99, kernel: 1} at the "
                     "image's size",
                     t && row[i].turned ? row[i].turned : row[i].gives,
                     t ? "10 x 6" : "6 x 10");
            is_str(got, want, "%s of %s", row[i].layers, t ? "10 x 6" : "6 x 10");
        }
}

/* What does not fit is told with both sizes, also where it is the width alone. */
static void
misfits(void)
{
    static const struct {
        const char *layers;
        bool is_turned, has_masks;
        const char *want;
    } row[] = {
        {"[conv2d: {out: 3, kernel: 1}]", false, true, ""},
        {"[conv2d: {out: 3, kernel: 1}, flatten, linear: {out: 3}]", false, false, ""},
        {"[conv2d: {out: 3, kernel: 1}]", false, false,
         "the last layer gives images of 3, but 3 classes are to be told apart; end "
         "with flatten and linear: {out: 3}"},
        {"[flatten, linear: {out: 4}]", false, false,
         "the last layer gives a vector of 4, but 3 classes are to be told apart; end "
         "with linear: {out: 3}"},
        {"[conv2d: {out: 3, kernel: 2, stride: 2, padding: 3}]", false, true,
         "the last layer gives 3 x 6 x 8, but 3 classes are to be told apart in each "
         "of 6 x 10 pixels; end with conv2d: {out: 3, kernel: 1} at the image's size"},
        {"[conv2d: {out: 3, kernel: 2, stride: 2, padding: 3}]", true, true,
         "the last layer gives 3 x 8 x 6, but 3 classes are to be told apart in each "
         "of 10 x 6 pixels; end with conv2d: {out: 3, kernel: 1} at the image's size"},
        {"[conv2d: {out: 3, kernel: 7}]", false, true,
         "a 7x7 filter does not fit its input"},
        {"[conv2d: {out: 3, kernel: 7}]", true, true,
         "a 7x7 filter does not fit its input"},
        {"[conv2d: {in: 4, out: 3, kernel: 1}]", false, true,
         "conv2d has in: 4, but 3 channels come in; without in: it takes what comes "
         "in"},
        {"[conv2d: {in: 2, out: 3, kernel: 1}]", false, true,
         "conv2d has in: 2, but 3 channels come in; without in: it takes what comes "
         "in"},
        {"[conv2d: {out: 4, groups: 3}]", false, true,
         "3 groups divide neither or only one of 3 input and 4 output channels"},
        {"[conv2d: {out: 4, groups: 2}]", false, true,
         "2 groups divide neither or only one of 3 input and 4 output channels"},
        {"[residual: [conv2d: {out: 8, kernel: 1, stride: 4}]]", true, true,
         "the layers give 8 x 3 x 2, but 3 x 10 x 6 come in; shortcut: [conv2d: {out: "
         "8, kernel: 1, stride: 4}]"},
        {"[residual: {layers: [conv2d: {out: 8, kernel: 1}], shortcut: [conv2d: {out: "
         "8, kernel: 3}]}]",
         false, true,
         "the layers give 8 x 6 x 10, but the shortcut 8 x 4 x 8; shortcut: [conv2d: "
         "{out: 8, kernel: 1, stride: 1}]"},
        {"[{conv2d: {out: 3, kernel: 6}, as: v}, {from: input, mul: v}]", false, true,
         "mul: v is 3 x 1 x 5, but 3 x 6 x 10 come in; their sizes must be alike, or "
         "that of v one number for each channel"},
        {"[{conv2d: {out: 3, kernel: 6}, as: v}, {from: input, mul: v}]", true, true,
         "mul: v is 3 x 5 x 1, but 3 x 10 x 6 come in; their sizes must be alike, or "
         "that of v one number for each channel"},
        {"[{conv2d: {out: 2, kernel: 6, stride: 5}, as: v}, {from: input, conv2d: "
         "{out: 3, kernel: 6}}, concat: v]",
         false, true,
         "concat: v is 2 x 1 x 1, but 3 x 1 x 5 come in; their heights and widths must "
         "be alike, their channels need not be"},
        {"[{conv2d: {out: 2, kernel: 6, stride: 5}, as: v}, {from: input, conv2d: "
         "{out: 3, kernel: 6}}, concat: v]",
         true, true,
         "concat: v is 2 x 1 x 1, but 3 x 5 x 1 come in; their heights and widths must "
         "be alike, their channels need not be"},
        {"[{from: mask}]", false, true,
         "no layer before is called 'mask', and the data have no such field"},
        {"[{from: dept}]", false, true,
         "no layer before is called 'dept', and the data have no such field (did you "
         "mean 'depth'?)"},
        {"[flatten, conv2d: {out: 3}]", false, true,
         "conv2d takes images, but a vector comes in"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        enum et_task task;
        is_str(builds(row[i].layers, 3, row[i].is_turned, row[i].has_masks, &task),
               row[i].want, "%s%s", row[i].layers, row[i].is_turned ? ", turned" : "");
        if (!*row[i].want)
            is_int(task,
                   row[i].has_masks ? ET_TASK_SEGMENTATION : ET_TASK_CLASSIFICATION,
                   "which learns what its data have");
    }
}

int
main(void)
{
    cx = need_ctx();
    items(rows, sizeof rows / sizeof *rows, false);
    items(alone, sizeof alone / sizeof *alone, true);
    limits();
    sizes();
    misfits();
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "every block is given back");
    et_ctx_free(&cx);
    return done();
}
