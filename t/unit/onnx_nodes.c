/* SPDX-License-Identifier: Apache-2.0 */
/* What ONNX files say of each operation: its name, attributes, operands and constants,
 * read back as an expression. "x" is what the model had computed, of [batch,5]. That
 * ONNX Runtime computes the same with them was compared by hand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/data/file.h"
#include "core/onnx/onnx.h"
#include "etude/nn.h"
#include "etude/op.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/unit/onnx_file.h"

static struct et_ctx *cx;
static struct et_device *dev;

/* ---- a file as an expression ---- */

static char text[4096];

static void say(const char *fmt, ...) ET_PRINTF(1, 2);
static void
say(const char *fmt, ...)
{
    size_t n = strlen(text);
    va_list args;
    va_start(args, fmt);
    vsnprintf(text + n, sizeof text - n, fmt, args);
    va_end(args);
}

/* One number of a TensorProto's raw values; with a letter where it is no float. */
static void
say_number(int type, const uint8_t *p, int i)
{
    float f;
    int32_t v;
    int64_t l;
    if (type == 1) {
        memcpy(&f, p + 4 * i, 4);
        say("%g", (double)f);
    } else if (type == 2) {
        say("%du8", p[i]);
    } else if (type == 6) {
        memcpy(&v, p + 4 * i, 4);
        say("%di32", v);
    } else if (type == 7) {
        memcpy(&l, p + 8 * i, 8);
        say("%lld", (long long)l);
    } else {
        say("?%d", type);
    }
}

/* A constant: a number, [a list], or [2x3: more of them]. */
static void
say_constant(struct span s)
{
    static const int sizes[] = {[1] = 4, [2] = 1, [6] = 4, [7] = 8};
    struct span raw = text_of(s, 9);
    struct field f;
    int type = 0, ndim = 0, n = 1, shape[8];
    while (next(&s, &f)) {
        if (f.number == 1 && f.wire == 0) {
            n *= (int)f.value;
            shape[ndim++ % 8] = (int)f.value;
        }
        if (f.number == 2)
            type = (int)f.value;
    }
    if (type < 1 || type > 7 || raw.end - raw.p != (ptrdiff_t)n * sizes[type])
        say("(%d bytes of type %d)", (int)(raw.end - raw.p), type);
    else if (ndim == 0)
        say_number(type, raw.p, 0);
    else {
        say("[");
        for (int i = 0; i < ndim && ndim > 1; i++)
            say("%d%s", shape[i], i + 1 < ndim ? "x" : ": ");
        for (int i = 0; i < n; i++) {
            say("%s", i ? " " : "");
            say_number(type, raw.p, i);
        }
        say("]");
    }
}

static void
say_attribute(struct span s)
{
    static const char *const types[] = {
        [1] = "float", [2] = "int", [3] = "text", [7] = "ints"};
    struct span all = s, name = text_of(s, 1);
    struct field f;
    int type = 0, n = 0;
    say(" %.*s", (int)(name.end - name.p), (const char *)name.p);
    while (next(&all, &f))
        type = f.number == 20 ? (int)f.value : type;
    while (next(&s, &f)) {
        float v;
        if (f.number == 2 && type == 1 && f.wire == 5) {
            memcpy(&v, f.bytes.p, 4);
            say("=%g", (double)v);
        } else if (f.number == 3 && type == 2)
            say("=%lld", (long long)f.value);
        else if (f.number == 4 && type == 3)
            say("=%.*s", (int)(f.bytes.end - f.bytes.p), (const char *)f.bytes.p);
        else if (f.number == 8 && type == 7 && f.wire == 0)
            say("%s%lld", n++ ? "," : "=", (long long)f.value);
        else if (f.number != 1 && f.number != 20)
            say("(a value of another type than %s)",
                type > 0 && type < 8 && types[type] ? types[type] : "?");
    }
}

static bool
is_same(struct span a, struct span b)
{
    return a.end - a.p == b.end - b.p && memcmp(a.p, b.p, (size_t)(a.end - a.p)) == 0;
}

/* What NAME is in GRAPH. */
static void
say_value(struct span graph, struct span name, const char *x, int depth)
{
    struct span s = graph, inside;
    struct field f, g;
    int n = 0;
    if (is_text(name, x) || name.p == name.end || depth > 20) {
        say("%s", name.p == name.end ? "-" : "x");
        return;
    }
    while (next(&s, &f)) {
        if (f.number == 5 && is_same(text_of(f.bytes, 8), name)) {
            say_constant(f.bytes);
            return;
        }
        if (f.number != 1 || !is_same(text_of(f.bytes, 2), name))
            continue;
        struct span op = text_of(f.bytes, 4);
        say("%.*s(", (int)(op.end - op.p), (const char *)op.p);
        for (inside = f.bytes; next(&inside, &g);) {
            if (g.number != 1)
                continue;
            say("%s", n++ ? ", " : "");
            say_value(graph, g.bytes, x, depth + 1);
        }
        for (inside = f.bytes; next(&inside, &g);)
            if (g.number == 5)
                say_attribute(g.bytes);
        say(")");
        return;
    }
    say("%.*s", (int)(name.end - name.p), (const char *)name.p);
}

/* ---- operations ---- */

typedef struct et_tensor *build_fn(struct et_graph *g, struct et_tensor *x);

static build_fn *build;
static char x_name[64];
static int n_weights; /* that the last file has */

static struct et_tensor *
forward(struct et_module *m, struct et_forward *f, struct et_tensor *x)
{
    (void)m;
    snprintf(x_name, sizeof x_name, "%s_%u", x->node->op->name, (unsigned)x->node->id);
    return build(f->g, x);
}

/* Exports what FN makes of x to text: an expression, or why not. */
static const char *
written(build_fn *fn)
{
    static const struct et_module_class own_class = {
        .info = {.name = "own", .class_name = "Own"},
        .size = sizeof(struct et_module),
        .forward = forward,
    };
    const struct et_model_class *type = et_model_class_find("mlp");
    const struct et_model_facts facts = {
        .channels = 1, .height = 2, .width = 2, .num_classes = 5};
    struct eti_onnx_info info = {0};
    struct et_model *m;
    struct eti_bytes all;
    void *options;
    char path[4200];
    build = fn;
    *text = 0;
    snprintf(path, sizeof path, "%s/n.onnx", scratch_folder());
    need(cx, et_options_new(cx, &type->info, NULL, &options));
    need(cx, et_model_new(cx, type, options, &facts, &m));
    et_options_free(&type->info, &options);
    need(cx, et_module_bind(cx, m->root, dev, ET_PARAM | ET_BUFFER, 1));
    need(cx, et_module_add(cx, m->root, "own", &own_class, NULL));
    bool fine = eti_onnx_export(cx, m, dev, path, &info) == ET_OK;
    n_weights = info.tensors;
    if (!fine)
        say("%s", take_error(cx));
    else {
        need(cx, eti_file_load(cx, path, 1 << 30, &all));
        struct span graph = text_of((struct span){all.data, all.data + all.n}, 7);
        struct span s = graph, output = {0};
        struct field f;
        while (next(&s, &f))
            if (f.number == 1 && is_text(text_of(f.bytes, 2), "output"))
                output = text_of(f.bytes, 1);
        say_value(graph, output, x_name, 0);
        et_free(cx, all.data);
    }
    et_model_free(&m);
    return text;
}

static struct et_tensor *
fill(struct et_graph *g, int n, const int64_t *shape, double v)
{
    return et_fill(g, ET_F32, n, shape, v);
}

#define SHAPE(...)                                                                     \
    (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) \
    {                                                                                  \
        __VA_ARGS__                                                                    \
    }
#define ROW(name, ...)                                                                 \
    static struct et_tensor *name(struct et_graph *g, struct et_tensor *x)             \
    {                                                                                  \
        int64_t n = x->desc.shape[0];                                                  \
        (void)n;                                                                       \
        __VA_ARGS__                                                                    \
    }

#include "t/unit/onnx_nodes_rows.h"

int
main(void)
{
    cx = need_ctx();
    need(cx, et_device_open(cx, "ref", 0, 0, &dev));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        is_str(written(rows[i].fn), rows[i].says, "%s is written", rows[i].name);
    (void)written(do_bytes);
    is_int(n_weights, 0, "weights that nothing reads are not written");
    et_device_close(&dev);
    et_ctx_free(&cx);
    return done();
}
