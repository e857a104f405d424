/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX files: each model there is becomes a graph in which every value is made once and
 * before it is used, whose lengths follow the batch. That ONNX Runtime computes the
 * same with them was compared by hand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/data/file.h"
#include "core/onnx/onnx.h"
#include "etude/nn.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/unit/onnx_file.h"

enum { MOST = 4096 };

static struct et_ctx *cx;
static struct et_device *dev;

/* ---- the file, read ---- */

struct graph {
    struct span name[MOST]; /* of values that are there */
    int n, nodes, wrong;
    struct span input[4], output; /* ValueInfoProto */
    int n_inputs;
};

static bool
is_known(const struct graph *g, struct span s)
{
    for (int i = 0; i < g->n; i++)
        if (g->name[i].end - g->name[i].p == s.end - s.p &&
            memcmp(g->name[i].p, s.p, (size_t)(s.end - s.p)) == 0)
            return true;
    return false;
}

static void
add(struct graph *g, struct span s)
{
    g->wrong += is_known(g, s) || s.p == s.end;
    if (g->n < MOST)
        g->name[g->n++] = s;
}

static void
add_input(struct graph *g, struct span value)
{
    add(g, text_of(value, 1));
    if (g->n_inputs < 4)
        g->input[g->n_inputs++] = value;
}

/* Initializers are values from the start, wherever they stand. */
static void
read_values(struct graph *g, struct span s)
{
    struct field f;
    while (next(&s, &f)) {
        if (f.number == 5)
            add(g, text_of(f.bytes, 8));
        if (f.number == 11)
            add_input(g, f.bytes);
        if (f.number == 12)
            g->output = f.bytes;
    }
}

static void
read_node(struct graph *g, struct span s)
{
    struct field f;
    struct span made = {0};
    g->nodes++;
    while (next(&s, &f)) {
        if (f.number == 1 && f.bytes.p < f.bytes.end)
            g->wrong += !is_known(g, f.bytes);
        if (f.number == 2)
            made = f.bytes;
    }
    add(g, made);
}

static void
read_graph(struct graph *g, struct span s)
{
    struct field f;
    read_values(g, s);
    while (next(&s, &f))
        if (f.number == 1)
            read_node(g, f.bytes);
    g->wrong += !is_known(g, text_of(g->output, 1));
}

/* Is the first length of VALUE, a ValueInfoProto, "batch"? */
static bool
follows_batch(struct span value)
{
    struct span shape = text_of(text_of(text_of(value, 2), 1), 2);
    return is_text(text_of(text_of(shape, 1), 2), "batch");
}

/* ---- models ---- */

static struct et_model *
make(const char *name, const char *const *set)
{
    const struct et_model_class *type = et_model_class_find(name);
    const struct et_model_facts facts = {.channels = 3,
                                         .height = 32,
                                         .width = 32,
                                         .num_classes = 5,
                                         .vocab_size = 11,
                                         .seq_len = 6};
    struct et_model *m;
    void *options;
    need(cx, et_options_new(cx, &type->info, NULL, &options));
    for (int i = 0; set && set[i]; i += 2)
        need(cx, et_options_set(cx, type->info.options, options, set[i], set[i + 1]));
    need(cx, et_model_new(cx, type, options, &facts, &m));
    et_options_free(&type->info, &options);
    need(cx, et_module_bind(cx, m->root, dev, ET_PARAM | ET_BUFFER, 1));
    return m;
}

static void
one_model(const char *name, const char *const *set)
{
    static struct graph g;
    struct et_model *m = make(name, set);
    struct eti_onnx_info info = {0};
    struct eti_bytes all;
    struct field f;
    char path[4200];
    int opset = 0;
    snprintf(path, sizeof path, "%s/m.onnx", scratch_folder());
    need(cx, eti_onnx_export(cx, m, dev, path, &info));
    need(cx, eti_file_load(cx, path, 1 << 30, &all));
    struct span s = {all.data, all.data + all.n};
    g = (struct graph){0};
    while (next(&s, &f)) {
        if (f.number == 7)
            read_graph(&g, f.bytes);
        struct span version = f.bytes;
        struct field v;
        if (f.number == 8 && next(&version, &v))
            opset = (int)v.value;
    }
    is_int(g.wrong, 0, "%s: each value is made once, before it is used", name);
    ok(g.nodes == info.nodes && opset == ETI_ONNX_OPSET && all.n == info.bytes,
       "%s: %d nodes of opset %d", name, g.nodes, opset);
    ok(follows_batch(g.input[g.n_inputs - 1]) && follows_batch(g.output),
       "%s: of any batch", name);
    if (strcmp(name, "bert") == 0 || strcmp(name, "bert_classifier") == 0)
        ok(g.n_inputs == 3 && is_text(text_of(g.input[1], 1), "attention_mask") &&
               is_text(text_of(g.input[2], 1), "token_type"),
           "%s: it is given a mask and types of tokens, too", name);
    else
        is_int(g.n_inputs, 1, "%s: it has one input", name);
    et_free(cx, all.data);
    et_model_free(&m);
}

/* ---- what a file says of its model ---- */

static char said[2048];

static void say(const char *fmt, ...) ET_PRINTF(1, 2);
static void
say(const char *fmt, ...)
{
    size_t n = strlen(said);
    va_list args;
    va_start(args, fmt);
    vsnprintf(said + n, sizeof said - n, fmt, args);
    va_end(args);
}

/* A ValueInfoProto: its name, number of its type, and lengths. */
static void
say_value(struct span s)
{
    struct span name = text_of(s, 1), tensor = text_of(text_of(s, 2), 1);
    struct span shape = text_of(tensor, 2);
    struct field f, length;
    int type = 0, n = 0;
    while (next(&tensor, &f))
        type = f.number == 1 ? (int)f.value : type;
    say("%.*s %d[", (int)(name.end - name.p), (const char *)name.p, type);
    while (next(&shape, &f)) {
        struct span dim = f.bytes;
        say("%s", n++ ? "," : "");
        while (next(&dim, &length))
            if (length.number == 1)
                say("%d", (int)length.value);
            else
                say("%.*s", (int)(length.bytes.end - length.bytes.p),
                    (const char *)length.bytes.p);
    }
    say("]\n");
}

/* A weight's name, number of its type, lengths and bytes. Constants: "". */
static void
say_weight(struct span s)
{
    struct span name = text_of(s, 8), raw = text_of(s, 9);
    struct span lengths = s;
    struct field f;
    int type = 0, n = 0;
    while (next(&s, &f))
        type = f.number == 2 ? (int)f.value : type;
    if (!memchr(name.p, '.', (size_t)(name.end - name.p)))
        return;
    say("%.*s %d[", (int)(name.end - name.p), (const char *)name.p, type);
    while (next(&lengths, &f))
        if (f.number == 1)
            say("%s%d", n++ ? "," : "", (int)f.value);
    say("] of %d bytes\n", (int)(raw.end - raw.p));
}

/* M's, which is freed. */
static void
say_model(struct et_model *m, bool weights)
{
    struct eti_onnx_info info = {0};
    struct eti_bytes all;
    struct field f;
    char path[4200];
    *said = 0;
    snprintf(path, sizeof path, "%s/w.onnx", scratch_folder());
    need(cx, eti_onnx_export(cx, m, dev, path, &info));
    need(cx, eti_file_load(cx, path, 1 << 30, &all));
    struct span s = {all.data, all.data + all.n}, graph = text_of(s, 7);
    while (next(&s, &f))
        if (f.number == 1)
            say("version %d\n", (int)f.value);
    struct span title = text_of(graph, 2);
    say("%.*s\n", (int)(title.end - title.p), (const char *)title.p);
    while (next(&graph, &f))
        if (f.number == 11 || f.number == 12)
            say_value(f.bytes);
        else if (f.number == 5 && weights)
            say_weight(f.bytes);
    et_free(cx, all.data);
    et_model_free(&m);
}

static void
test_said(const char *const *small)
{
    say_model(make("lenet", NULL), true);
    is_str(said,
           "version 9\nlenet\ninput 1[batch,3,32,32]\noutput 1[batch,5]\n"
           "conv1.weight 1[6,3,5,5] of 1800 bytes\nconv1.bias 1[6] of 24 bytes\n"
           "conv2.weight 1[16,6,5,5] of 9600 bytes\nconv2.bias 1[16] of 64 bytes\n"
           "fc1.weight 1[120,576] of 276480 bytes\nfc1.bias 1[120] of 480 bytes\n"
           "fc2.weight 1[84,120] of 40320 bytes\nfc2.bias 1[84] of 336 bytes\n"
           "fc3.weight 1[5,84] of 1680 bytes\nfc3.bias 1[5] of 20 bytes\n",
           "a file says what goes in and out, and of what shape weights are");
    say_model(make("bert_classifier", small), false);
    is_str(said,
           "version 9\nbert_classifier\ninput 6[batch,6]\nattention_mask 6[batch,6]\n"
           "token_type 6[batch,6]\noutput 1[batch,5]\n",
           "tokens and their fields are whole numbers");
    struct et_model *m = make("mlp", NULL);
    m->facts.channels = 3 * 32 * 32;
    m->facts.height = m->facts.width = 0;
    say_model(m, false);
    is_str(said, "version 9\nmlp\ninput 1[batch,3072]\noutput 1[batch,5]\n",
           "features of no picture are a row");
}

/* ---- attributes ---- */

/* The integers that attribute NAME of the first node of OP has in the file S. */
static const char *
ints_of(struct span s, const char *op, const char *name)
{
    static char out[128];
    struct span graph = text_of(s, 7);
    struct field node, f;
    int used = 0;
    *out = 0;
    while (next(&graph, &node)) {
        struct span inside = node.bytes;
        if (node.number != 1 || !is_text(text_of(node.bytes, 4), op))
            continue;
        while (next(&inside, &f)) {
            struct span ints = f.bytes;
            if (f.number != 5 || !is_text(text_of(f.bytes, 1), name))
                continue;
            for (struct field i; next(&ints, &i);) {
                if (i.number == 8 && i.wire == 0)
                    used += snprintf(out + used, sizeof out - (size_t)used, " %d",
                                     (int)i.value);
                while (i.number == 8 && i.wire == 2 && i.bytes.p < i.bytes.end)
                    used += snprintf(out + used, sizeof out - (size_t)used, " %d",
                                     (int)varint(&i.bytes));
            }
        }
        break;
    }
    return out;
}

/* A convolution for which height and width are not alike. */
static struct et_tensor *
oblong(struct et_module *m, struct et_forward *f, struct et_tensor *x)
{
    static const struct et_conv2d_attr attr = {
        .stride = {1, 2}, .dilation = {3, 4}, .pad = {5, 6}, .groups = 1};
    (void)m;
    const int64_t planes[] = {x->desc.shape[0], 1, 1, 5}, one[] = {1, 1, 3, 3};
    struct et_tensor *y = et_reshape(f->g, x, 4, planes);
    y = et_conv2d(f->g, y, et_fill(f->g, ET_F32, 4, one, 1), NULL, &attr);
    return et_reshape(f->g, y, 2, (const int64_t[]){x->desc.shape[0], 25});
}

static void
test_attributes(void)
{
    static const struct et_module_class oblong_class = {
        .info = {.name = "oblong", .class_name = "Oblong"},
        .size = sizeof(struct et_module),
        .forward = oblong,
    };
    struct et_model *m = make("mlp", NULL);
    struct eti_onnx_info info = {0};
    struct eti_bytes all;
    char path[4200];
    snprintf(path, sizeof path, "%s/m.onnx", scratch_folder());
    need(cx, et_module_add(cx, m->root, "own", &oblong_class, NULL));
    need(cx, eti_onnx_export(cx, m, dev, path, &info));
    need(cx, eti_file_load(cx, path, 1 << 30, &all));
    const struct span s = {all.data, all.data + all.n};
    is_str(ints_of(s, "Conv", "strides"), " 1 2", "strides are of height and width");
    is_str(ints_of(s, "Conv", "dilations"), " 3 4", "so are dilations");
    is_str(ints_of(s, "Conv", "pads"), " 5 6 5 6",
           "padding is said of both beginnings, then of both ends");
    et_free(cx, all.data);
    et_model_free(&m);
}

static void
test_pools(void)
{
    struct et_model *m =
        make("layers",
             (const char *const[]){"layers",
                                   "[avg_pool2d: {kernel: 3, stride: 2, padding: 1}, "
                                   "max_pool2d: {kernel: 2, stride: 1}, flatten, "
                                   "linear: {out: 5}]",
                                   NULL});
    struct eti_onnx_info info = {0};
    struct eti_bytes all;
    char path[4200];
    snprintf(path, sizeof path, "%s/p.onnx", scratch_folder());
    need(cx, eti_onnx_export(cx, m, dev, path, &info));
    need(cx, eti_file_load(cx, path, 1 << 30, &all));
    const struct span s = {all.data, all.data + all.n};
    is_str(ints_of(s, "AveragePool", "kernel_shape"), " 3 3", "a mean of windows,");
    is_str(ints_of(s, "AveragePool", "strides"), " 2 2", "by its steps");
    is_str(ints_of(s, "AveragePool", "pads"), " 1 1 1 1", "and with its padding");
    is_str(ints_of(s, "MaxPool", "kernel_shape"), " 2 2", "a greatest of windows,");
    is_str(ints_of(s, "MaxPool", "strides"), " 1 1", "by its steps");
    is_str(ints_of(s, "MaxPool", "pads"), " 0 0 0 0", "and without padding");
    et_free(cx, all.data);
    et_model_free(&m);
}

/* ---- weights beside the file ---- */

/* The Nth weight or constant of the file S. */
static struct span
weight_of(struct span s, int n)
{
    struct span graph = text_of(s, 7);
    struct field f;
    while (next(&graph, &f))
        if (f.number == 5 && n-- == 0)
            return f.bytes;
    return (struct span){0};
}

/* The value of KEY of a weight whose values are beside the file; "": it has none. */
static const char *
entry_of(struct span weight, const char *key)
{
    static char out[128];
    struct field f;
    snprintf(out, sizeof out, "%s", "");
    while (next(&weight, &f))
        if (f.number == 13 && is_text(text_of(f.bytes, 1), key)) {
            struct span v = text_of(f.bytes, 2);
            snprintf(out, sizeof out, "%.*s", (int)(v.end - v.p), (const char *)v.p);
        }
    return out;
}

/* Has the weight B, without values, the values of A at its place in DATA? */
static bool
is_beside(struct span a, struct span b, const struct eti_bytes *data)
{
    const struct span values = text_of(a, 9);
    const int64_t n = values.end - values.p;
    const int64_t offset = strtoll(entry_of(b, "offset"), NULL, 10);
    return n > 0 && text_of(b, 9).p == NULL && offset % 4096 == 0 &&
           strtoll(entry_of(b, "length"), NULL, 10) == n && offset + n <= data->n &&
           strcmp(entry_of(b, "location"), "m.onnx.data") == 0 &&
           memcmp(data->data + offset, values.p, (size_t)n) == 0;
}

static void
test_beside(void)
{
    struct et_model *m = make("lenet", NULL);
    struct eti_onnx_info inside = {0}, beside = {.limit = 8192};
    struct eti_bytes all, small, data;
    char path[4200], of_data[4208];
    int n = 0, wrong = 0;
    snprintf(path, sizeof path, "%s/m.onnx", scratch_folder());
    snprintf(of_data, sizeof of_data, "%s.data", path);
    need(cx, eti_onnx_export(cx, m, dev, path, &inside));
    need(cx, eti_file_load(cx, path, 1 << 30, &all));
    ok(inside.beside == 0 && access(of_data, F_OK) != 0,
       "weights that a file has room for are in it");
    need(cx, eti_onnx_export(cx, m, dev, path, &beside));
    need(cx, eti_file_load(cx, path, 1 << 30, &small));
    need(cx, eti_file_load(cx, of_data, 1 << 30, &data));
    ok(small.n == beside.bytes && data.n == beside.beside && small.n < all.n / 4,
       "others are in a file beside it, of %d bytes", (int)data.n);
    struct span a, b;
    for (int i = 0; (a = weight_of((struct span){all.data, all.data + all.n}, i)).p;
         i++) {
        b = weight_of((struct span){small.data, small.data + small.n}, i);
        if (text_of(b, 9).p)
            continue; /* a constant */
        n++;
        wrong += !is_beside(a, b, &data);
    }
    ok(n == inside.tensors && n == beside.tensors && wrong == 0,
       "where each of the %d weights is, at a page, is said in the model's file", n);
    et_free(cx, all.data);
    et_free(cx, small.data);
    et_free(cx, data.data);
    et_model_free(&m);
}

/* Some 4 KiB are left for what stands before the graph. */
static void
test_limit(void)
{
    struct et_model *m = make("lenet", NULL);
    struct eti_onnx_info all = {0}, fits, is_short;
    char path[4200];
    snprintf(path, sizeof path, "%s/l.onnx", scratch_folder());
    need(cx, eti_onnx_export(cx, m, dev, path, &all));
    fits = (struct eti_onnx_info){.limit = all.bytes + 4096};
    is_short = (struct eti_onnx_info){.limit = all.bytes + 4096 - 200};
    need(cx, eti_onnx_export(cx, m, dev, path, &fits));
    need(cx, eti_onnx_export(cx, m, dev, path, &is_short));
    ok(fits.beside == 0 && fits.bytes == all.bytes && fits.limit == all.bytes + 4096,
       "a file that its limit has room for has the weights");
    ok(is_short.beside > 0 && is_short.bytes < all.bytes,
       "where room for what stands before the graph is short, they are beside it");
    et_model_free(&m);
}

static void
refused(void)
{
    struct et_model *m =
        make("vit_ti16", (const char *const[]){"d_model", "16", "n_heads", "2",
                                               "n_layers", "1", NULL});
    struct eti_onnx_info info = {0};
    char path[4200];
    snprintf(path, sizeof path, "%s/m.onnx", scratch_folder());
    need(cx, et_module_add(cx, m->root, "own", &et_relu_class, NULL));
    m->facts.height = 48; /* the table of positions is for 32 */
    ok(eti_onnx_export(cx, m, dev, path, &info) == ET_ESHAPE,
       "a graph that cannot be built is refused");
    et_error_clear(cx);
    et_model_free(&m);
    m = make("gpt2", (const char *const[]){"d_model", "16", "n_heads", "2", "n_layers",
                                           "1", NULL});
    m->facts.seq_len = 0;
    ok(eti_onnx_export(cx, m, dev, path, &info) == ET_EINVAL &&
           strstr(take_error(cx), "how long the sequences are"),
       "so is a model of sequences of no length");
    et_model_free(&m);
}

int
main(void)
{
    static const char *const small[] = {
        "d_model", "16", "n_heads", "2", "n_layers", "2", "max_seq_len", "8", NULL};
    static const char *const alibi[] = {"d_model",  "16",    "n_heads",     "2",
                                        "n_layers", "2",     "max_seq_len", "8",
                                        "position", "alibi", NULL};
    static const char *const patches[] = {"d_model",  "16", "n_heads", "2",
                                          "n_layers", "2",  NULL};
    cx = need_ctx();
    need(cx, et_device_open(cx, "ref", 0, 0, &dev));
    one_model("mlp", NULL);
    one_model("lenet", NULL);
    one_model("mnist_classifier", NULL);
    one_model("resnet8", NULL);
    one_model("resnet9", NULL);
    one_model("resnet18", NULL);
    one_model("efficientnet_b0", NULL);
    one_model("vit_ti16", patches);
    one_model("unet", NULL);
    one_model("gpt2", small);
    one_model("gpt2", alibi);
    one_model("bert", small);
    one_model("bert_classifier", small);
    test_said(small);
    test_attributes();
    test_pools();
    test_beside();
    test_limit();
    refused();
    et_device_close(&dev);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "every block is given back");
    et_ctx_free(&cx);
    return done();
}
