/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever makes a component copies its options: the caller's may be changed, released
 * and overwritten as soon as it has returned. */
#include "etude/etude.h"
#include "t/data/fixture.h"
#include "t/tap.h"

#include <stdio.h>
#include <string.h>

static struct et_ctx *cx;
static struct et_device *dev;

struct inner {
    char *word;
    int64_t number;
};

struct every {
    int64_t number;
    char *text;
    struct et_times times;
    struct et_floats floats;
    struct et_texts texts;
    const struct et_value *node;
    struct inner inner;
    struct et_part part;
    struct et_parts parts;
    void *beside; /* no row is about it */
};

static const struct et_option inner_table[] = {
    {.name = "word", .type = ET_OPT_TEXT, .offset = offsetof(struct inner, word)},
    {.name = "number",
     .type = ET_OPT_INT,
     .offset = offsetof(struct inner, number),
     .def = "3"},
    {.name = NULL},
};

#define ROW(field, kind_of, ...)                                                       \
    {                                                                                  \
        .name = #field, .type = ET_OPT_##kind_of,                                      \
        .offset = offsetof(struct every, field), __VA_ARGS__                           \
    }
static const struct et_option table[] = {
    ROW(number, INT, .def = "1"),
    ROW(text, TEXT, .def = NULL),
    ROW(times, TIMES, .def = NULL),
    ROW(floats, FLOATS, .def = NULL),
    ROW(texts, TEXTS, .def = NULL),
    ROW(node, NODE, .def = NULL),
    ROW(inner, TABLE, .sub = inner_table, .sub_size = sizeof(struct inner)),
    ROW(part, PART, .kind = ET_KIND_OPTIMIZER),
    ROW(parts, PARTS, .kind = ET_KIND_TRANSFORM, .flags = ET_OPT_BY_NAME,
        .sub = inner_table, .sub_size = sizeof(struct inner)),
    {.name = NULL},
};

static const char *const settings[] = {
    "number", "7",
    "text",   "some words",
    "times",  "[1ep, 2ba]",
    "floats", "[0.5, 0.25]",
    "texts",  "[one, two]",
    "node",   "[a, {b: 2}]",
    "inner",  "{word: within, number: 4}",
    "part",   "{name: adam, betas: [0.8, 0.7]}",
    "parts",  "{resize: false, normalize: {mean: [0.5], std: [0.2], word: at}}",
};
enum { SETTINGS = sizeof settings / sizeof *settings };

/* The texts of all rows, one after the other. */
static void
describe(const struct every *o, char *out, size_t size)
{
    out[0] = '\0';
    for (const struct et_option *row = table; row->name; row++) {
        char *text;
        need(cx, et_option_text(cx, row, o, &text));
        size_t n = strlen(out);
        snprintf(out + n, size - n, "%s: %s\n", row->name, text);
        et_free(cx, text);
    }
}

static void
make(struct every *o)
{
    memset(o, 0, sizeof *o);
    need(cx, et_options_init(cx, table, o));
    for (int i = 0; i < SETTINGS; i += 2)
        need(cx, et_options_set(cx, table, o, settings[i], settings[i + 1]));
    o->beside = &cx;
}

static void
test_copy(void)
{
    struct every from, to;
    char before[2000], after[2000];
    struct et_alloc_stats start, now;
    et_alloc_get_stats(cx, &start);
    make(&from);
    describe(&from, before, sizeof before);
    memset(&to, 0xA5, sizeof to);
    need(cx, et_options_copy(cx, table, sizeof to, &from, &to));
    et_options_release(table, &from);
    memset(&from, 0xA5, sizeof from);
    describe(&to, after, sizeof after);
    is_str(after, before, "a copy says what the options said that are released");
    ok(to.beside == &cx, "what no row is about is copied as it stands");
    ok(to.parts.n == 2 && to.parts.v[0].off && !to.parts.v[1].off,
       "a part that is switched off stays it");
    et_options_release(table, &to);
    memset(&from, 0, sizeof from);
    need(cx, et_options_init(cx, table, &from));
    describe(&from, before, sizeof before);
    need(cx, et_options_copy(cx, table, sizeof to, &from, &to));
    describe(&to, after, sizeof after);
    is_str(after, before, "and so for options that are all unset");
    et_options_release(table, &to);
    et_options_release(table, &from);
    et_alloc_get_stats(cx, &now);
    is_int((int64_t)now.live, (int64_t)start.live, "nothing of either is left");
}

static void
test_short_of_memory(void)
{
    struct every from, to;
    struct et_alloc_stats before, now;
    int failures = 0;
    make(&from);
    et_alloc_get_stats(cx, &before);
    for (uint64_t k = 1;; k++) {
        et_alloc_fail_at(cx, k);
        et_status status = et_options_copy(cx, table, sizeof to, &from, &to);
        et_alloc_fail_at(cx, 0);
        et_error_clear(cx);
        if (status == ET_OK)
            break;
        failures++;
        et_alloc_get_stats(cx, &now);
        if (status != ET_ENOMEM || now.live != before.live)
            ok(false, "block %d: status %d, %d blocks left", (int)k, (int)status,
               (int)(now.live - before.live));
    }
    ok(failures > 12, "whichever of %d blocks fails, a copy owns nothing", failures);
    et_options_release(table, &to);
    et_options_release(table, &from);
}

/* ---- who copies ---- */

/* Options of C with NAME set to TEXT. */
static void *
options_of(const struct et_component *c, const char *name, const char *text)
{
    void *o;
    need(cx, et_alloc(cx, c->options_size, &o));
    need(cx, et_options_init(cx, c->options, o));
    need(cx, et_options_set(cx, c->options, o, name, text));
    return o;
}

/* The caller's options end, and their memory is used for something else. */
static void
spoil(const struct et_component *c, void *o)
{
    et_options_release(c->options, o);
    memset(o, 0xA5, c->options_size);
    et_free(cx, o);
}

/* The option NAME of OPTIONS is TEXT. */
static void
has(const struct et_component *c, const void *options, const char *name,
    const char *text)
{
    const struct et_option *row = c->options;
    char *got;
    while (strcmp(row->name, name) != 0)
        row++;
    need(cx, et_option_text(cx, row, options, &got));
    is_str(got, text, "%s: %s is %s", c->name, name, text);
    et_free(cx, got);
}

static void
test_dataset(void)
{
    const struct et_dataset_class *c = et_dataset_find("synthetic_images");
    void *o =
        options_of(&c->info, "transforms", "{normalize: {mean: [0.5], std: [2]}}");
    struct et_dataset *data;
    struct et_loader *loader;
    const struct et_batch *b;
    need(cx, et_options_set(cx, c->info.options, o, "batch_size", "5"));
    need(cx, et_dataset_open(cx, c, o, &data));
    spoil(&c->info, o);
    has(&c->info, data->options, "batch_size", "5");
    need(cx, et_loader_new(cx, data, &(struct et_loader_config){.seed = 1}, &loader));
    need(cx, et_loader_next(cx, loader, &b));
    is_int(b->n_samples, 5, "a loader reads the copy");
    et_loader_release(loader, b);
    et_loader_free(&loader);
    et_dataset_close(&data);
    need(cx, et_dataset_open(cx, c, NULL, &data));
    has(&c->info, data->options, "shuffle", "true");
    et_dataset_close(&data);
    const struct et_dataset_class none = {.info = {.name = "small"}};
    ok(et_dataset_open(cx, &none, NULL, &data) == ET_EINVAL && !data,
       "a class whose options are too short is refused");
    et_error_clear(cx);
}

static void
test_optimizer(void)
{
    const struct et_optimizer_class *c = et_optimizer_find("adam");
    const int64_t n = 4;
    struct et_param_spec spec = {.name = "w"};
    struct et_param_space *space;
    struct et_optimizer *opt;
    struct et_graph *g;
    void *o = options_of(&c->info, "betas", "[0, 0]");
    float w[4];
    et_desc_init(&spec.desc, ET_F32, 1, &n, ET_ROW_MAJOR);
    need(cx, et_options_set(cx, c->info.options, o, "lr", "0.5"));
    need(cx, et_param_space_new(cx, dev, &spec, 1, &space));
    need(cx, et_optimizer_new(cx, c, o, space, &opt));
    spoil(&c->info, o);
    need(cx, et_graph_new(cx, dev, &g));
    struct et_tensor *grad = et_fill(g, ET_F32, 1, &n, 3), *view;
    struct et_tensor *flat = et_param_space_pack(g, space, &grad);
    need(cx, et_optimizer_update(g, opt, flat, NULL, NULL));
    need(cx, et_eval(g, NULL, 0));
    need(cx, et_param_space_view(cx, space, -1, 0, &view));
    need(cx, et_tensor_read(cx, view, w, sizeof w));
    /* Adam's first step of any gradient is its rate. */
    is_near(w[0], -0.5, 1e-6, "an optimizer updates by the copy");
    et_tensor_free(&view);
    et_graph_free(&g);
    et_optimizer_free(&opt);
    et_param_space_free(&space);
}

static et_status
do_nothing(struct et_algorithm *self, enum et_event event, struct et_state *state,
           struct et_log *log)
{
    (void)self;
    (void)event;
    (void)state;
    (void)log;
    return ET_OK;
}

static const struct et_algorithm_class wordy = {
    .info = {.name = "wordy",
             .options = inner_table,
             .options_size = sizeof(struct inner)},
    .apply = do_nothing,
};

static void
test_hooks(void)
{
    const struct et_algorithm_class *ac = &wordy;
    const struct et_callback_class *cc = et_callback_find("speed_monitor");
    struct et_algorithm *a;
    struct et_callback *c;
    void *o = options_of(&ac->info, "word", "said");
    need(cx, et_algorithm_new(cx, ac, o, &a));
    has(&ac->info, o, "word", "said");
    spoil(&ac->info, o);
    has(&ac->info, a->options, "word", "said");
    et_algorithm_free(&a);
    o = options_of(&cc->info, "window_size", "23");
    need(cx, et_callback_new(cx, cc, o, NULL, &c));
    has(&cc->info, o, "window_size", "23");
    spoil(&cc->info, o);
    has(&cc->info, c->options, "window_size", "23");
    et_callback_free(&c);
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK || et_device_open(cx, "ref", 0, 1, &dev) != ET_OK)
        bail("no device");
    et_ctx_set_checks(cx, true);
    test_copy();
    test_short_of_memory();
    test_dataset();
    test_optimizer();
    test_hooks();
    et_device_close(&dev);
    et_ctx_free(&cx);
    ok(!cx, "nothing is left at the end");
    return done();
}
