/* SPDX-License-Identifier: Apache-2.0 */
/* Networks spelled out with ways around layers: against a model that is built in, names
 * of parameters, values by their names, fields, and what is refused. */
#include "core/models/outline.h"
#include "core/models/ways.h"
#include "etude/etude.h"
#include "etude/nn.h"
#include "t/tap.h"

#include <stdlib.h>
#include <string.h>

enum { N = 4, SIDE = 16, CLASSES = 10 };

static struct et_ctx *cx;
static struct et_device *dev;

static const struct et_model_facts images = {
    .channels = 3, .height = SIDE, .width = SIDE, .num_classes = CLASSES};

static void
must(et_status status)
{
    if (status != ET_OK)
        bail("%s", et_error_get(cx)->message);
}

/* The model of LAYERS and BLOCKS (NULL: none), or the reason why there is none. */
static et_status
make(const char *blocks, const char *layers, const struct et_model_facts *facts,
     struct et_model **out)
{
    const char *set[] = {"layers", layers, blocks ? "blocks" : NULL, blocks, NULL};
    const struct et_model_class *type = et_model_class_find("layers");
    void *options;
    *out = NULL;
    et_status status = et_options_new(cx, &type->info, set, &options);
    if (status == ET_OK)
        status = et_model_new(cx, type, options, facts, out);
    et_options_free(&type->info, &options);
    return status;
}

/* ---- ResNet-20 ---- */

static const char resnet_blocks[] =
    "keeps:\n"
    "  - residual:\n"
    "      - conv2d: {out: $out, kernel: 3, padding: 1, no_bias: true}\n"
    "      - batch_norm\n"
    "      - relu\n"
    "      - conv2d: {out: $out, kernel: 3, padding: 1, no_bias: true}\n"
    "      - batch_norm\n"
    "  - relu\n"
    "halves:\n"
    "  - residual:\n"
    "      layers:\n"
    "        - conv2d: {out: $out, kernel: 3, stride: 2, padding: 1, no_bias: true}\n"
    "        - batch_norm\n"
    "        - relu\n"
    "        - conv2d: {out: $out, kernel: 3, padding: 1, no_bias: true}\n"
    "        - batch_norm\n"
    "      shortcut: [conv2d: {out: $out, kernel: 1, stride: 2, no_bias: true}, "
    "batch_norm]\n"
    "  - relu\n";
static const char resnet_layers[] =
    "- conv2d: {out: 16, kernel: 3, padding: 1, no_bias: true}\n"
    "- batch_norm\n"
    "- relu\n"
    "- repeat: {times: 3, layers: [keeps: {out: 16}]}\n"
    "- halves: {out: 32}\n"
    "- repeat: {times: 2, layers: [keeps: {out: 32}]}\n"
    "- halves: {out: 64}\n"
    "- repeat: {times: 2, layers: [keeps: {out: 64}]}\n"
    "- adaptive_avg_pool2d\n"
    "- flatten\n"
    "- linear: {out: 10}\n";

struct bound {
    struct et_model *m;
    struct et_leaves leaves;
    struct et_param_space *space;
};

static void
bind(struct bound *b)
{
    must(et_module_leaves(cx, b->m->root, ET_PARAM | ET_BUFFER, &b->leaves));
    must(et_model_bind_space(b->m, dev, 3, &b->space));
}

static void
release(struct bound *b)
{
    et_leaves_release(&b->leaves);
    et_param_space_free(&b->space);
    et_model_free(&b->m);
}

/* TO's leaves take the values of FROM's. False: they are not alike. */
static bool
copy_weights(const struct bound *from, const struct bound *to)
{
    if (from->leaves.n != to->leaves.n)
        return false;
    for (int i = 0; i < from->leaves.n; i++) {
        const struct et_leaf *a = &from->leaves.v[i], *b = &to->leaves.v[i];
        int64_t n = et_desc_count(&a->param->desc);
        float *v = malloc((size_t)n * sizeof *v);
        if (!v || !et_desc_same_shape(&a->param->desc, &b->param->desc)) {
            free(v);
            return false;
        }
        must(et_param_read(cx, a->param, a->name, 3, v, n));
        must(et_param_write(cx, b->param, v, n));
        free(v);
    }
    return true;
}

static void
fill(float *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        v[i] = (float)((i * 2654435761u) % 2048) / 1024 - 1;
}

/* Outputs of B at the test's images, and the gradient of all parameters after them; the
 * caller frees them. */
static float *
compute(const struct bound *b, bool training)
{
    const int64_t shape[] = {N, 3, SIDE, SIDE}, labels[] = {N};
    static float pixels[N * 3 * SIDE * SIDE];
    struct et_graph *g;
    struct et_tensor *x;
    fill(pixels, N * 3 * SIDE * SIDE);
    must(et_tensor_new(cx, dev, ET_F32, 4, shape, ET_CHANNELS_LAST, "x", &x));
    must(et_tensor_write(cx, x, pixels, sizeof pixels));
    must(et_graph_new(cx, dev, &g));
    struct et_forward f = {.g = g, .training = training};
    struct et_tensor *y = et_model_forward(b->m, &f, x);
    struct et_tensor *loss = et_model_loss(
        b->m, g, y, &(struct et_samples){.target = et_fill(g, ET_I32, 1, labels, 1)},
        ET_REDUCE_MEAN);
    struct et_tensor *all[] = {y, et_param_space_gradient(g, b->space, loss)};
    must(et_eval(g, all, 2));
    size_t outputs = N * CLASSES, total = (size_t)b->space->total;
    float *v = malloc((outputs + total) * sizeof *v);
    if (!v)
        bail("no memory");
    must(et_tensor_read(cx, all[0], v, outputs * sizeof *v));
    must(et_tensor_read(cx, all[1], v + outputs, total * sizeof *v));
    et_graph_free(&g);
    et_tensor_free(&x);
    return v;
}

static void
resnet20(void)
{
    struct bound ours = {0}, theirs = {0};
    const struct et_model_class *type = et_model_class_find("resnet20");
    must(et_model_new(cx, type, NULL, &images, &theirs.m));
    must(make(resnet_blocks, resnet_layers, &images, &ours.m));
    bind(&ours);
    bind(&theirs);
    ok(copy_weights(&theirs, &ours),
       "ResNet-20 spelled out has the parameters of the one built in");
    size_t bytes = (N * CLASSES + (size_t)theirs.space->total) * sizeof(float);
    for (int training = 0; training < 2; training++) {
        float *a = compute(&ours, training), *b = compute(&theirs, training);
        ok(ours.space->total == theirs.space->total && memcmp(a, b, bytes) == 0,
           "in %s its outputs and gradients equal that one's to the bit",
           training ? "training" : "evaluation");
        free(a);
        free(b);
    }
    release(&ours);
    release(&theirs);
}

/* ---- names ---- */

static void
names(void)
{
    static const char blocks[] = "unit: [conv2d: {out: $out, kernel: 1}, relu]";
    static const char layers[] =
        "- unit: {out: 4}\n"
        "- repeat: {times: 2, layers: [residual: [unit: {out: 4}]]}\n"
        "- residual: {layers: [unit: {out: 8}], shortcut: [conv2d: {out: 8, kernel: "
        "1}]}\n"
        "- flatten\n"
        "- linear: {out: 10}\n";
    static const char *const want[] = {
        "0.0.weight",
        "0.0.bias",
        "1.0.0.residual.0.0.weight",
        "1.0.0.residual.0.0.bias",
        "1.1.0.residual.0.0.weight",
        "1.1.0.residual.0.0.bias",
        "2.residual.0.0.weight",
        "2.residual.0.0.bias",
        "2.shortcut.0.weight",
        "2.shortcut.0.bias",
        "4.weight",
        "4.bias",
    };
    struct bound b = {0};
    int same = 0;
    const int n = sizeof want / sizeof *want;
    must(make(blocks, layers, &images, &b.m));
    must(et_module_leaves(cx, b.m->root, ET_PARAM, &b.leaves));
    for (int i = 0; i < n && i < b.leaves.n; i++)
        same += strcmp(b.leaves.v[i].name, want[i]) == 0;
    ok(same == n && b.leaves.n == n, "parameters are named by the places of layers");
    int convs;
    must(et_module_count_class(cx, b.m->root, &et_conv2d_class, &convs));
    is_int(convs, 5, "surgery finds layers at any depth");
    et_leaves_release(&b.leaves);
    et_model_free(&b.m);
}

/* ---- values by their names ---- */

/* The shape that the item PATH gives, as text. */
static const char *
gives(struct et_model *m, const char *path, char buf[80])
{
    struct eti_outline o;
    size_t at = 0;
    must(eti_model_outline(cx, m, dev, &o));
    *buf = '\0';
    for (int i = 0; i < o.n; i++)
        for (int k = 1; strcmp(o.v[i].path, path) == 0 && k < o.v[i].out.ndim; k++)
            at += (size_t)snprintf(buf + at, 80 - at, "%s%d", k > 1 ? "x" : "",
                                   (int)o.v[i].out.shape[k]);
    eti_outline_release(&o);
    return buf;
}

/* A small U-net: what was found before sizes shrank lies behind what came after. */
static void
named_values(void)
{
    static const char layers[] =
        "- {conv2d: {out: 4, kernel: 3, padding: 1}, as: early}\n"
        "- {max_pool2d: {kernel: 2}, as: half}\n"
        "- residual: [{concat: half}, {conv2d: {out: 4, kernel: 1}}]\n"
        "- conv_transpose2d: {out: 6, kernel: 2, stride: 2}\n"
        "- concat: early\n"
        "- {conv2d: {out: 3, kernel: 1}, as: low}\n"
        "- {from: [input, low], add: }\n"
        "- {from: early, conv2d: {out: 3, kernel: 1}}\n"
        "- mul: image\n"
        "- adaptive_avg_pool2d\n"
        "- flatten\n"
        "- {linear: {out: 3}, as: gate}\n"
        "- {from: low, mul: gate}\n"
        "- from: gate\n"
        "- linear: {out: 10}\n";
    struct et_model *m;
    char text[80];
    must(make(NULL, layers, &images, &m));
    is_str(gives(m, "4", text), "10x16x16", "concat puts channels behind channels");
    is_str(gives(m, "2.residual.0", text), "8x8x8",
           "a list within finds names around it");
    is_str(gives(m, "6", text), "3x16x16", "values with names are added");
    is_str(gives(m, "7", text), "3x16x16", "a layer reads from a name");
    is_str(gives(m, "12", text), "3x16x16", "a vector gives a number to each channel");
    is_str(gives(m, "13", text), "3", "and it goes on from any name");
    et_model_free(&m);
}

/* What LAYERS make of 1, 2 and -3. */
static void
makes(const char *layers, const float want[3], const char *what)
{
    const struct et_model_facts facts = {.channels = 3, .num_classes = 3};
    const int64_t shape[] = {1, 3};
    const float in[] = {1, 2, -3};
    float out[3] = {0};
    struct et_model *m;
    struct et_graph *g;
    struct et_tensor *x, *y;
    must(make(NULL, layers, &facts, &m));
    must(et_tensor_new(cx, dev, ET_F32, 2, shape, ET_ROW_MAJOR, "x", &x));
    must(et_tensor_write(cx, x, in, sizeof in));
    must(et_graph_new(cx, dev, &g));
    struct et_forward f = {.g = g};
    y = et_model_forward(m, &f, x);
    must(et_eval(g, &y, 1));
    must(et_tensor_read(cx, y, out, sizeof out));
    ok(memcmp(out, want, sizeof out) == 0, "%s: %g %g %g", what, out[0], out[1],
       out[2]);
    et_graph_free(&g);
    et_tensor_free(&x);
    et_model_free(&m);
}

static void
joined_numbers(void)
{
    makes("[{from: [input, input], add: }, residual: [relu, residual: [relu, add: "
          "input]]]",
          (float[]){7, 14, -9}, "what a network reads is found from lists in lists");
    makes("[mul: input, add: [input]]", (float[]){2, 6, 6},
          "values are multiplied and added");
    makes("[{mul: input, as: a}, {mul: a, as: b}, {from: [input, a, b], add: }]",
          (float[]){3, 22, 87}, "so are three");
    makes("[{mul: input, as: a}, residual: [{mul: a, as: b}, add: b]]",
          (float[]){3, 36, 171}, "a list within reads its own names and those around");
    makes(
        "[{mul: input, as: a}, residual: [{add: a, as: b}, residual: [{mul: b, as: c},"
        " add: b, add: a, add: c]]]",
        (float[]){14, 152, 702}, "so does one within that, of each list around");
}

/* ---- fields ---- */

static const struct et_field fields[] = {
    {.name = "values",
     .kind = ET_FIELD_VALUES,
     .dtype = ET_F32,
     .ndim = 1,
     .shape = {3}},
    {.name = "target", .kind = ET_FIELD_VALUES, .dtype = ET_I32},
    {.name = "weekday",
     .kind = ET_FIELD_VALUES,
     .dtype = ET_I32,
     .ndim = 1,
     .shape = {3}},
};

static void
batch_fields(void)
{
    const struct et_model_facts facts = {
        .channels = 3, .num_classes = 3, .field = fields, .n_fields = 3};
    const int64_t shape[] = {1, 3};
    const float in[] = {1, 2, -3}, want[] = {11, 22, 27};
    const int32_t days[] = {10, 20, 30};
    float out[3] = {0};
    struct et_model *m;
    struct et_graph *g;
    struct et_tensor *x, *day, *y;
    must(make(NULL, "[add: weekday]", &facts, &m));
    must(et_tensor_new(cx, dev, ET_F32, 2, shape, ET_ROW_MAJOR, "x", &x));
    must(et_tensor_new(cx, dev, ET_I32, 2, shape, ET_ROW_MAJOR, "day", &day));
    must(et_tensor_write(cx, x, in, sizeof in));
    must(et_tensor_write(cx, day, days, sizeof days));
    must(et_graph_new(cx, dev, &g));
    const struct et_samples samples = {
        .x = x, .n = 1, .other = {{"weekday", day}}, .n_others = 1};
    struct et_forward f = {.g = g, .samples = &samples};
    y = et_model_forward(m, &f, x);
    must(et_eval(g, &y, 1));
    must(et_tensor_read(cx, y, out, sizeof out));
    ok(memcmp(out, want, sizeof want) == 0, "a network reads a field of the samples");
    et_graph_reset(g);
    f = (struct et_forward){.g = g};
    y = et_model_forward(m, &f, x);
    ok(!y && strstr(et_error_get(cx)->message, "the field weekday"),
       "samples without it are refused: %s", et_error_get(cx)->message);
    et_error_clear(cx);
    et_graph_free(&g);
    et_tensor_free(&x);
    et_tensor_free(&day);
    et_model_free(&m);
}

/* Whoever tries a network without data makes each field that any part of it reads. */
static void
fields_of_parts(void)
{
    static const struct et_field more[] = {
        {.name = "values",
         .kind = ET_FIELD_VALUES,
         .dtype = ET_F32,
         .ndim = 1,
         .shape = {3}},
        {.name = "target", .kind = ET_FIELD_VALUES, .dtype = ET_I32},
        {.name = "day", .dtype = ET_F32, .ndim = 1, .shape = {3}},
        {.name = "hour", .dtype = ET_F32, .ndim = 1, .shape = {3}},
        {.name = "town", .dtype = ET_F32, .ndim = 1, .shape = {3}},
    };
    static const struct {
        const char *network, *read;
    } rows[] = {
        {"[relu]", ""},
        {"[add: hour]", " hour"},
        {"[add: [day, hour]]", " day hour"},
        {"[mul: [day, hour, town]]", " day hour town"},
        {"[concat: [town, day], linear: {out: 3}]", " town day"},
        {"[add: day, relu, add: hour, add: day]", " day hour"},
    };
    const struct et_model_facts facts = {
        .channels = 3, .num_classes = 3, .field = more, .n_fields = 5};
    struct et_tensor *x;
    must(et_tensor_new(cx, dev, ET_F32, 2, (const int64_t[]){2, 3}, ET_ROW_MAJOR, "x",
                       &x));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char names[64] = "";
        struct et_samples samples;
        struct et_model *m;
        must(make(NULL, rows[i].network, &facts, &m));
        must(eti_ways_samples(cx, m->root, dev, x, &samples));
        for (int k = 0; k < samples.n_others; k++)
            snprintf(names + strlen(names), sizeof names - strlen(names), " %s",
                     samples.other[k].name);
        is_str(names, rows[i].read, "%s reads its fields", rows[i].network);
        eti_ways_release(&samples);
        et_model_free(&m);
    }
    et_tensor_free(&x);
}

/* Where the target is a mask, the last layer gives each class for each pixel. */
static void
masks(void)
{
    static const struct et_field of[] = {{.name = "image",
                                          .kind = ET_FIELD_IMAGE,
                                          .dtype = ET_F32,
                                          .ndim = 3,
                                          .shape = {1, 1, 16}},
                                         {.name = "target",
                                          .kind = ET_FIELD_MASK,
                                          .dtype = ET_I32,
                                          .ndim = 2,
                                          .shape = {1, 16}}};
    struct et_model_facts facts = {.channels = 1,
                                   .height = 1,
                                   .width = 16,
                                   .num_classes = 3,
                                   .field = of,
                                   .n_fields = 2};
    static const struct {
        const char *layers, *why;
        bool is_high;
    } rows[] = {
        {"[conv2d: {out: 3, kernel: 1}]", "", false},
        {"[conv2d: {out: 4, kernel: 1}]", "4 x 1 x 16, but 3 classes", false},
        {"[conv2d: {out: 3, kernel: 1, stride: 2}]", "3 x 1 x 8, but 3 classes", false},
        {"[conv2d: {out: 3, kernel: 1, stride: 2}]", "3 x 8 x 1, but 3 classes", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_model *m = NULL;
        facts.height = rows[i].is_high ? 16 : 1;
        facts.width = rows[i].is_high ? 1 : 16;
        const et_status status = make(NULL, rows[i].layers, &facts, &m);
        const char *said = status == ET_OK ? "" : et_error_get(cx)->message;
        if (!ok((status == ET_OK) == !*rows[i].why && strstr(said, rows[i].why),
                "masks: %s of %s", *rows[i].why ? rows[i].why : "taken",
                rows[i].layers))
            diag("%s", said);
        et_error_clear(cx);
        et_model_free(&m);
    }
}

/* A field of a number for each pixel, as masks are, is a channel, and one of a number
 * for each sample a vector of one. */
static void
field_of_pixels(void)
{
    static const struct et_field of[] = {{.name = "image",
                                          .kind = ET_FIELD_IMAGE,
                                          .dtype = ET_F32,
                                          .ndim = 3,
                                          .shape = {1, 2, 3}},
                                         {.name = "target", .dtype = ET_I32},
                                         {.name = "depth",
                                          .kind = ET_FIELD_VALUES,
                                          .dtype = ET_I32,
                                          .ndim = 2,
                                          .shape = {2, 3}},
                                         {.name = "hour", .dtype = ET_I32}};
    const struct et_model_facts facts = {.channels = 1,
                                         .height = 2,
                                         .width = 3,
                                         .num_classes = 6,
                                         .field = of,
                                         .n_fields = 4};
    static const struct {
        const char *layers;
        float want[12];
    } rows[] = {
        {"[add: depth, flatten: ]",
         {11, 22, 33, 44, 55, 66, 77, 88, 99, 110, 121, 132}},
        {"[mul: hour, flatten: ]", {3, 6, 9, 12, 15, 18, 35, 40, 45, 50, 55, 60}},
        {"[{from: depth, avg_pool2d: {kernel: 1}}, flatten: ]",
         {10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120}},
        {"[{from: hour, relu: , as: h}, {add: h, as: two}, add: h,"
         " concat: [h, two, h, h, two]]",
         {9, 3, 6, 3, 3, 6, 15, 5, 10, 5, 5, 10}},
    };
    const int64_t shape[] = {2, 1, 2, 3}, planes[] = {2, 2, 3}, n = 2;
    const int32_t hours[] = {3, 5};
    float in[12];
    int32_t depths[12];
    struct et_graph *g;
    struct et_tensor *x, *depth, *hour;
    for (int i = 0; i < 12; i++) {
        in[i] = (float)(i + 1);
        depths[i] = 10 * (i + 1);
    }
    must(et_tensor_new(cx, dev, ET_F32, 4, shape, ET_ROW_MAJOR, "x", &x));
    must(et_tensor_new(cx, dev, ET_I32, 3, planes, ET_ROW_MAJOR, "depth", &depth));
    must(et_tensor_new(cx, dev, ET_I32, 1, &n, ET_ROW_MAJOR, "hour", &hour));
    must(et_tensor_write(cx, x, in, sizeof in));
    must(et_tensor_write(cx, depth, depths, sizeof depths));
    must(et_tensor_write(cx, hour, hours, sizeof hours));
    must(et_graph_new(cx, dev, &g));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct et_samples samples = {
            .x = x, .n = n, .other = {{"depth", depth}, {"hour", hour}}, .n_others = 2};
        struct et_forward f = {.g = g, .samples = &samples};
        float out[12] = {0};
        struct et_model *m;
        must(make(NULL, rows[i].layers, &facts, &m));
        struct et_tensor *y = et_model_forward(m, &f, x);
        must(et_eval(g, &y, 1));
        must(et_tensor_read(cx, y, out, sizeof out));
        is_near_array(out, rows[i].want, 12, 0, "fields read by %s", rows[i].layers);
        et_graph_reset(g);
        et_model_free(&m);
    }
    et_graph_free(&g);
    et_tensor_free(&x);
    et_tensor_free(&depth);
    et_tensor_free(&hour);
}

/* ---- what is told ---- */

static void
refused(const char *blocks, const char *layers, const char *want, const char *what)
{
    struct et_model *m;
    et_status status = make(blocks, layers, &images, &m);
    const struct et_error *e = et_error_get(cx);
    ok(status == ET_EINVAL && (strstr(e->message, want) || strstr(e->hint, want)),
       "%s: %s", what, e->message);
    et_error_clear(cx);
    et_model_free(&m);
}

#define END ", flatten, linear: {out: 10}]"

static void
refusals(void)
{
    static const char way[] = "[residual: [conv2d: {out: 8, kernel: 1, stride: 2}]" END;
    refused(NULL, way, "the layers give 8 x 8 x 8, but 3 x 16 x 16 come in",
            "a sum whose parts differ is told with both");
    refused(NULL, way, "shortcut: [conv2d: {out: 8, kernel: 1, stride: 2}]",
            "with a shortcut that fits");
    refused(NULL,
            "[residual: {layers: [conv2d: {out: 8, kernel: 1}], shortcut: [conv2d: "
            "{out: 4, kernel: 1}]}" END,
            "the layers give 8 x 16 x 16, but the shortcut 4 x 16 x 16",
            "and so is a shortcut that does not");
    refused(NULL,
            "[{conv2d: {out: 8, kernel: 1}, as: a}, conv2d: {out: 4, kernel: 1}, "
            "add: a" END,
            "add: a is 8 x 16 x 16, but 4 x 16 x 16 come in", "values that differ");
    refused(NULL,
            "[{conv2d: {out: 8, kernel: 1}, as: a}, {adaptive_avg_pool2d: , as: v}, "
            "{from: a, conv2d: {out: 4, kernel: 1}}, mul: v" END,
            "mul: v is 8 x 1 x 1, but 4 x 16 x 16 come in",
            "a number for each of other channels");
    refused(NULL, "[residual: [conv2d: {out: 5, kernel: 1, stride: 4}]" END,
            "shortcut: [conv2d: {out: 5, kernel: 1, stride: 4}]",
            "a shortcut has the channels that the layers give");
    refused(NULL, "[{max_pool2d: {kernel: 2}, as: a}, {from: [input, a], concat: }" END,
            "concat: a is 3 x 8 x 8, but 3 x 16 x 16 come in",
            "pictures of different sizes");
    refused(NULL, "[{relu: , as: early}, add: erly" END, "did you mean 'early'?",
            "a name that is misspelt");
    refused(NULL, "[add: nobody" END, "no layer before is called 'nobody'",
            "one that is not there");
    refused(NULL, "[add: late, {relu: , as: late}" END, "has its name later",
            "one that comes later");
    refused(NULL, "[{relu: , as: a}" END, "nothing reads 'a'", "a name for nobody");
    refused("a: [conv2d: {out: $n, kernel: 1}]", "[a: {n: -3}" END,
            "expected integer >= 1", "one option that is wrong where a block is used");
    refused(NULL, "[{relu: , as: a}, {relu: , as: a}, add: a" END,
            "'a' is the name of another value already", "a name given twice");
    refused(NULL, "[{from: [input, image]}" END, "expected one name, got a list",
            "several values that nothing puts together");
    refused(NULL, "[add" END, "expected more than the word", "a word alone");
    refused(NULL, "[{relu: , form: input}" END, "did you mean 'from'?",
            "a misspelt from");
    refused(NULL, "[repeat: {times: 0, layers: [relu]}" END,
            "expected integer from 1 to 1000", "no repetition");
    refused(NULL,
            "[repeat: {times: 1000, layers: [repeat: {times: 11, layers: "
            "[relu]}]}" END,
            "more than 10000 layers", "too many layers");
    refused("a: [b]\nb: [a]", "[a" END, "the block a is made of itself, by way of b",
            "blocks that are made of one another");
    refused("a: [relu]\nb: [relu]", "[a" END, "the block b is used nowhere",
            "a block for nobody");
    refused("relu: [tanh]", "[relu" END, "'relu' is the name of a layer",
            "a block called like a layer");
    refused("unit: [conv2d: {out: $out, kernel: $size}]",
            "[unit: {out: 3, size: 1, siz: 1}" END, "did you mean 'size'?",
            "a misspelt option of a block");
    refused("unit: [conv2d: {out: $out, kernel: 1}]", "[unit" END,
            "key 'out' is missing: the block unit has $out",
            "an option that a block needs");
    refused("unit: [conv2d: {out: $out, kernel: 1}]", "[unit: {out: many}" END,
            "unit.0.conv2d.out: expected integer",
            "a value that its layer cannot have");
    refused("unit: [relu]", "[unti" END, "unknown layer 'unti' (did you mean 'unit'?)",
            "a misspelt block");
    refused("unit: [add: input]", "[{relu: , as: a}, unit, add: a, unit: {x: 1}" END,
            "unknown key 'x'", "an option that a block does not have");
}

/* The linear layers of M and below that map 9 features to 9. */
static int
find_alike(struct et_module *m, struct et_module ***slot)
{
    struct et_module **child;
    const char *name;
    int n = 0;
    for (int i = 0; (child = et_module_child(m, i, &name)) != NULL; i++) {
        const struct et_linear_module *l =
            et_module_is(*child, &et_linear_class) ? (void *)*child : NULL;
        if (l && l->weight.desc.shape[0] == 9 && l->weight.desc.shape[1] == 9)
            slot[n++] = child;
        n += find_alike(*child, slot + n);
    }
    return n;
}

/* A layer that stands at two places has its parameters once. */
static void
shared_layer(void)
{
    const struct et_model_facts facts = {.channels = 4, .num_classes = 3};
    const struct et_model_class *type = et_model_class_find("mlp");
    struct et_module **slot[8];
    struct et_model *m;
    struct eti_outline o;
    struct et_leaves leaves;
    void *options;
    int64_t params = 0;
    must(et_options_new(cx, &type->info,
                        (const char *const[]){"hidden", "9", "layers", "4", NULL},
                        &options));
    must(et_model_new(cx, type, options, &facts, &m));
    is_int(find_alike(m->root, slot), 3, "three layers are alike");
    et_module_free(slot[2]);
    *slot[2] = et_module_ref(*slot[0]);
    must(et_module_leaves(cx, m->root, ET_PARAM, &leaves));
    for (int i = 0; i < leaves.n; i++)
        params += et_desc_count(&leaves.v[i].param->desc);
    must(eti_model_outline(cx, m, dev, &o));
    is_int(params, 4 * 9 + 9 + 2 * (9 * 9 + 9) + 9 * 3 + 3, "one stands at two places");
    is_int(o.v[0].params, params, "and the outline counts its parameters once");
    eti_outline_release(&o);
    et_leaves_release(&leaves);
    et_model_free(&m);
    et_options_free(&type->info, &options);
}

int
main(void)
{
    must(et_ctx_new(&cx));
    must(et_device_open(cx, "ref", 0, 1, &dev));
    resnet20();
    names();
    named_values();
    joined_numbers();
    batch_fields();
    fields_of_parts();
    field_of_pixels();
    masks();
    refusals();
    shared_layer();
    et_device_close(&dev);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "every block is given back");
    et_ctx_free(&cx);
    return done();
}
