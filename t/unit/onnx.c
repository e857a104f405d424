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

enum { MOST = 4096 };

static struct et_ctx *cx;
static struct et_device *dev;

/* ---- the file, read ---- */

struct span {
    const uint8_t *p, *end;
};

struct field {
    int number, wire;
    uint64_t value; /* of a varint */
    struct span bytes;
};

static uint64_t
varint(struct span *s)
{
    uint64_t v = 0;
    for (int shift = 0; s->p < s->end && shift < 64; shift += 7) {
        v |= (uint64_t)(*s->p & 127) << shift;
        if (!(*s->p++ & 128))
            break;
    }
    return v;
}

/* The next field of S; false: that was all. A length that is too long ends the test. */
static bool
next(struct span *s, struct field *f)
{
    if (s->p >= s->end)
        return false;
    uint64_t key = varint(s);
    f->number = (int)(key >> 3);
    f->wire = (int)(key & 7);
    f->bytes = (struct span){s->p, s->p};
    if (f->wire == 0) {
        f->value = varint(s);
        return true;
    }
    uint64_t n = f->wire == 5 ? 4 : varint(s);
    if ((f->wire != 2 && f->wire != 5) || n > (uint64_t)(s->end - s->p))
        bail("a field is damaged");
    f->bytes = (struct span){s->p, s->p + n};
    s->p += n;
    return true;
}

static bool
is_text(struct span s, const char *text)
{
    return (size_t)(s.end - s.p) == strlen(text) &&
           memcmp(s.p, text, strlen(text)) == 0;
}

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

/* The text of field NUMBER of the message S. */
static struct span
text_of(struct span s, int number)
{
    struct field f;
    while (next(&s, &f))
        if (f.number == number && f.wire == 2)
            return f.bytes;
    return (struct span){0};
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
    test_attributes();
    test_pools();
    test_beside();
    refused();
    et_device_close(&dev);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "every block is given back");
    et_ctx_free(&cx);
    return done();
}
