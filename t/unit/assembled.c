/* SPDX-License-Identifier: Apache-2.0 */
/* Trainers from recipes and models from checkpoints, as C programs have them: they do
 * what parts made by hand do, own what they make, and say what is wrong. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "etude/etude.h"
#include "t/data/fixture.h"
#include "t/tap.h"

enum { SIDE = 6, CLASSES = 3, IMAGES = 70, PIXELS = SIDE * SIDE };

static struct et_ctx *cx;
static char recipe[4096], folder[4096];

static void
must(et_status status)
{
    if (status != ET_OK)
        bail("%s: %s", et_status_name(status), et_error_get(cx)->message);
}

/* NAME in the test's folder. */
static const char *
in_folder(const char *name, char buf[4200])
{
    snprintf(buf, 4200, "%.4000s/%s", folder, name);
    return buf;
}

static int64_t
live(void)
{
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    return (int64_t)stats.live;
}

/* ---- options ---- */

static void
options(void)
{
    static const char *const set[] = {"lr", "0.5", "betas", "[0.5, 0.6]", NULL};
    static const char *const wrong[] = {"lr", "0.5", "beta", "1", NULL};
    const struct et_optimizer_class *adam = et_optimizer_find("adam");
    int64_t before = live();
    void *block;
    must(et_options_new(cx, &adam->info, set, &block));
    const struct et_optimizer_options *common = block;
    ok(common->lr == 0.5, "options are made with what is set");
    et_options_free(&adam->info, &block);
    ok(!block && live() == before, "and freed with what they own");
    ok(et_options_new(cx, &adam->info, wrong, &block) == ET_EINVAL && !block &&
           strstr(et_error_get(cx)->message, "betas"),
       "a name that is wrong is refused, with one that is near");
    et_error_clear(cx);
    is_int(live(), before, "and nothing stays");
}

/* Without options a model has its class's defaults. */
static void
default_options(void)
{
    const struct et_model_class *mlp = et_model_class_find("mlp");
    const struct et_model_facts facts = {
        .channels = 1, .height = SIDE, .width = SIDE, .num_classes = CLASSES};
    int64_t before = live(), params[2] = {0, 1};
    void *own;
    must(et_options_new(cx, &mlp->info, NULL, &own));
    for (int i = 0; i < 2; i++) {
        struct et_model *m;
        must(et_model_new(cx, mlp, i ? own : NULL, &facts, &m));
        must(et_module_count(cx, m->root, &params[i]));
        et_model_free(&m);
    }
    et_options_free(&mlp->info, &own);
    is_int(params[0], params[1], "a model without options has the defaults");
    is_int(live(), before, "which are freed");
}

/* ---- a space that a model is bound to ---- */

static void
bound(void)
{
    static const char *const hidden[] = {"hidden", "5", NULL};
    const struct et_model_class *mlp = et_model_class_find("mlp");
    const struct et_model_facts facts = {
        .channels = 1, .height = SIDE, .width = SIDE, .num_classes = CLASSES};
    const int64_t shape[] = {4, 1, SIDE, SIDE}, labels[] = {4};
    struct et_device *dev;
    struct et_param_space *space;
    struct et_model *m;
    struct et_graph *g;
    void *own;
    must(et_device_open(cx, "ref", 0, 1, &dev));
    must(et_options_new(cx, &mlp->info, hidden, &own));
    must(et_model_new(cx, mlp, own, &facts, &m));
    must(et_model_bind_space(m, dev, 3, &space));
    struct et_leaves leaves;
    must(et_module_leaves(cx, m->root, ET_PARAM, &leaves));
    int same = leaves.n == space->n;
    for (int i = 0; i < leaves.n && same; i++)
        same = strcmp(leaves.v[i].name, space->slot[i].name) == 0 &&
               leaves.v[i].param->tensor->storage == space->values->storage;
    ok(same, "all parameters of a model are views of one space");
    ok(space->slot[0].role == ET_ROLE_MATRIX &&
           space->slot[space->n - 2].role == ET_ROLE_OTHER,
       "the last layer is told from the hidden ones");

    must(et_graph_new(cx, dev, &g));
    struct et_tensor *grads[16], *x = et_fill(g, ET_F32, 4, shape, 0.5);
    struct et_tensor *params[16];
    for (int i = 0; i < leaves.n; i++)
        params[i] = leaves.v[i].param->tensor;
    struct et_forward f = {.g = g, .training = true};
    struct et_tensor *loss =
        et_model_loss(m, g, et_model_forward(m, &f, x),
                      &(struct et_samples){.target = et_fill(g, ET_I32, 1, labels, 1)},
                      ET_REDUCE_MEAN);
    struct et_tensor *flat = et_param_space_gradient(g, space, loss);
    must(et_grad(g, loss, params, leaves.n, grads));
    struct et_tensor *both[] = {flat, et_param_space_pack(g, space, grads)};
    must(et_eval(g, both, 2));
    size_t bytes = (size_t)space->total * sizeof(float);
    float *a = malloc(bytes), *b = malloc(bytes);
    if (!a || !b)
        bail("no memory");
    must(et_tensor_read(cx, both[0], a, bytes));
    must(et_tensor_read(cx, both[1], b, bytes));
    ok(memcmp(a, b, bytes) == 0, "their gradient in one call is that of each");
    et_graph_reset(g);
    space->slot[0].frozen = true;
    x = et_fill(g, ET_F32, 4, shape, 0.5);
    f = (struct et_forward){.g = g, .training = true};
    loss =
        et_model_loss(m, g, et_model_forward(m, &f, x),
                      &(struct et_samples){.target = et_fill(g, ET_I32, 1, labels, 1)},
                      ET_REDUCE_MEAN);
    flat = et_param_space_gradient(g, space, loss);
    must(et_eval(g, &flat, 1));
    must(et_tensor_read(cx, flat, a, bytes));
    const struct et_param_slot *last = &space->slot[space->n - 1];
    ok(!space->has_grad[0] && space->has_grad[1] && a[0] == 0 &&
           a[last->offset] == b[last->offset],
       "what is frozen has none, and the others have theirs");
    free(a);
    free(b);
    et_leaves_release(&leaves);
    et_graph_free(&g);
    et_param_space_free(&space);
    et_model_free(&m);
    et_options_free(&mlp->info, &own);
    et_device_close(&dev);
}

/* ---- a trainer of a recipe ---- */

struct count {
    int calls;
};

static et_status
count_run(struct et_callback *self, enum et_event event, const struct et_state *s,
          struct et_log *log)
{
    struct count *c = self->state;
    (void)event;
    (void)s;
    (void)log;
    c->calls++;
    return ET_OK;
}

static const struct et_callback_class count_class = {
    .info = {.name = "count", .class_name = "Count"},
    .events = ET_ON(BATCH_END),
    .run = count_run,
};

static bool
has_file(const char *name)
{
    char path[4200];
    return access(in_folder(name, path), R_OK) == 0;
}

/* The weights of T's model as one array; the caller frees it. */
static float *
weights(struct et_trainer *t, size_t *bytes)
{
    const struct et_param_space *space = et_state_get_params(et_trainer_state(t));
    *bytes = (size_t)space->total * sizeof(float);
    float *v = malloc(*bytes);
    if (!v)
        bail("no memory");
    must(et_tensor_read(cx, space->values, v, *bytes));
    return v;
}

static void
from_recipe(void)
{
    static const struct et_override shorter[] = {
        {ET_OVERRIDE_SET, "max_duration=3ba"},
        {ET_OVERRIDE_SET, "loggers={csv: }"},
    };
    char directory[4200];
    struct count count = {0};
    struct et_callback own = {.type = &count_class, .cx = cx, .state = &count};
    struct et_callback *callbacks[] = {&own};
    struct et_session_options o = {.device = "ref",
                                   .directory = in_folder("run/a", directory),
                                   .callbacks = callbacks,
                                   .n_callbacks = 1};
    struct et_trainer *t;
    size_t bytes, same;
    int64_t before = live();
    must(et_trainer_from_recipe(cx, recipe, &o, NULL, &t));
    must(et_trainer_fit(t, ET_TIME_UNSET));
    is_int((int)et_state_get_timestamp(et_trainer_state(t))->batch, 6,
           "a recipe is trained");
    is_int(count.calls, 6, "with a callback of the caller's own");
    int n;
    (void)et_state_get_eval_metrics(et_trainer_state(t), &n);
    is_int(n, 2, "and evaluated");
    float *whole = weights(t, &bytes);
    et_trainer_free(&t);
    is_int(live(), before, "and owns all that it made");
    ok(has_file("run/a/metrics.jsonl") && has_file("run/a/recipe.resolved.yaml"),
       "loggers write, and the recipe is kept");

    o.overrides = shorter;
    o.n_overrides = 2;
    o.directory = in_folder("run/b", directory);
    must(et_trainer_from_recipe(cx, recipe, &o, NULL, &t));
    must(et_trainer_fit(t, ET_TIME_UNSET));
    is_int((int)et_state_get_timestamp(et_trainer_state(t))->batch, 3,
           "overrides are above it");
    et_trainer_free(&t);
    ok(has_file("run/b/metrics.csv"), "also in what is logged");
    o.n_overrides = 0;
    o.resume = true;
    must(et_trainer_from_recipe(cx, recipe, &o, NULL, &t));
    is_int((int)et_state_get_timestamp(et_trainer_state(t))->batch, 3,
           "a directory with checkpoints is gone on with");
    must(et_trainer_fit(t, ET_TIME_UNSET));
    float *resumed = weights(t, &same);
    ok(same == bytes && memcmp(whole, resumed, bytes) == 0,
       "to the weights of the whole run, bit for bit");
    et_trainer_free(&t);

    o = (struct et_session_options){.device = "ref", .no_directory = true};
    must(et_trainer_from_recipe(cx, recipe, &o, NULL, &t));
    must(et_trainer_fit(t, ET_TIME_UNSET));
    free(resumed);
    resumed = weights(t, &same);
    ok(memcmp(whole, resumed, bytes) == 0, "without a directory it trains as well");
    et_trainer_free(&t);
    is_int(live(), before, "and all is given back each time");
    free(whole);
    free(resumed);
}

static void
refused(void)
{
    static const struct et_override wrong[] = {
        {ET_OVERRIDE_SET, "optimizer.lrr=1"},
        {ET_OVERRIDE_SET, "modle=x"},
    };
    const struct et_session_options o = {
        .overrides = wrong, .n_overrides = 2, .no_directory = true};
    struct et_diagnostics errors = {0};
    struct et_trainer *t;
    int64_t before = live();
    char path[4200];
    ok(et_trainer_from_recipe(cx, recipe, &o, &errors, &t) == ET_EINVAL && !t &&
           errors.total == 2,
       "all that is wrong with a recipe is in the list");
    et_error_clear(cx);
    static const struct et_override nowhere[] = {
        {ET_OVERRIDE_SET, "seed.x=1"},
        {ET_OVERRIDE_SET, "modle=x"},
    };
    struct et_session_options other = o;
    other.overrides = nowhere;
    errors = (struct et_diagnostics){0};
    ok(et_trainer_from_recipe(cx, recipe, &other, &errors, &t) == ET_EINVAL &&
           errors.total == 2,
       "also beside a change that has no place in it");
    et_error_clear(cx);
    ok(et_trainer_from_recipe(cx, recipe, &o, NULL, &t) == ET_EINVAL &&
           strstr(et_error_get(cx)->message, "lrr"),
       "without a list the first is in the message");
    et_error_clear(cx);
    ok(et_trainer_from_recipe(cx, in_folder("none.yaml", path), NULL, NULL, &t) ==
               ET_ENOENT &&
           strstr(et_error_get(cx)->message, "none.yaml"),
       "a recipe that is not there is ENOENT");
    et_error_clear(cx);
    struct et_predictor *p;
    ok(et_checkpoint_load_model(cx, folder, NULL, NULL, &p) == ET_ENOENT && !p,
       "a folder that holds no run has no model");
    et_error_clear(cx);
    is_int(live(), before, "and nothing stays");
}

/* ---- a model of a checkpoint ---- */

struct expected {
    float v[IMAGES * CLASSES];
    int n;
};

static et_status
keep(void *data, const struct et_state *s, const struct et_prediction *p)
{
    struct expected *e = data;
    int64_t n = et_desc_count(&p->desc);
    (void)s;
    memcpy(e->v + e->n, p->outputs, (size_t)n * sizeof *e->v);
    e->n += (int)n;
    return ET_OK;
}

/* The images of the recipe's eval_data as a file would have them, [N,H,W,C]. */
static void
read_raw(const struct et_dataset *set, uint8_t *out)
{
    for (int64_t i = 0; i < set->facts.n_samples; i++) {
        struct et_sample s = {.facts = &set->facts};
        struct et_error why;
        must(set->type->sample(set, i, &s, &why));
        const struct et_pixels *p = &s.v[ET_FIELD_X].pixels;
        for (int64_t y = 0; y < p->H; y++)
            for (int64_t x = 0; x < p->W; x++)
                *out++ = p->data[y * p->stride_y + x * p->stride_x];
    }
}

static void
predictor(void)
{
    /* clang-format off */
    static const char *const set[] = {
        "channels", "1", "resolution", "6", "num_classes", "3", "num_samples", "70",
        "split", "test", "shuffle", "false", "batch_size", "16", "workers", "0",
        "transforms", "[center_crop: {size: 4}, normalize: {mean: [0.4], std: [0.3]}]",
        NULL,
    };
    /* clang-format on */
    static struct expected want;
    static uint8_t pixels[IMAGES * PIXELS];
    static float got[IMAGES * CLASSES];
    const struct et_dataset_class *c = et_dataset_find("synthetic_images");
    char directory[4200];
    void *data_options;
    struct et_predictor *p;
    struct et_device *dev;
    struct et_dataset *data;
    struct et_trainer *t;
    struct et_loader *loader;
    const struct et_batch *b;
    int64_t before = live();
    /* What the trainer of that run makes of its own images. */
    const struct et_session_options o = {
        .device = "ref", .directory = in_folder("run/a", directory), .resume = true};
    must(et_trainer_from_recipe(cx, recipe, &o, NULL, &t));
    must(et_options_new(cx, &c->info, set, &data_options));
    must(et_dataset_open(cx, c, data_options, &data));
    const struct et_loader_config config = {
        .dev = et_state_get_device(et_trainer_state(t))};
    must(et_loader_new(cx, data, &config, &loader));
    must(et_trainer_predict(t, loader, keep, &want));
    read_raw(data, pixels);
    et_loader_free(&loader);
    et_dataset_close(&data);
    et_options_free(&c->info, &data_options);
    et_trainer_free(&t);

    must(et_device_open(cx, "ref", 0, 1, &dev));
    must(et_checkpoint_load_model(cx, directory, dev, NULL, &p));
    const int64_t *shape = et_predictor_facts(p)->field[ET_FIELD_X].shape;
    ok(shape[0] == 1 && shape[1] == SIDE && shape[2] == SIDE &&
           et_predictor_seq_len(p) == 0 &&
           et_predictor_model(p)->num_classes == CLASSES &&
           et_predictor_device(p) == dev,
       "a predictor says what samples and answers are");
    struct et_desc samples, answers;
    must(et_predictor_describe(p, IMAGES, &samples, &answers));
    ok(samples.dtype == ET_U8 && et_desc_bytes(&samples) == sizeof pixels &&
           answers.dtype == ET_F32 && et_desc_bytes(&answers) == sizeof got,
       "and how large so many are");
    must(et_predictor_run(p, pixels, IMAGES, got, IMAGES * CLASSES));
    ok(memcmp(got, want.v, sizeof got) == 0,
       "of raw bytes it makes what the run's trainer does, transforms included");
    ok(et_predictor_run(p, pixels, 2, got, 5) == ET_ESHAPE &&
           strstr(et_error_get(cx)->message, "2 samples have 6 numbers"),
       "room for another count of numbers is refused, with the right one");
    et_error_clear(cx);
    ok(et_predictor_run(p, pixels, 2, got, 7) == ET_ESHAPE, "so is more room");
    et_error_clear(cx);
    for (int n = 0; n >= -2; n--) {
        char none[32];
        snprintf(none, sizeof none, "%d samples are none", n);
        ok(et_predictor_run(p, pixels, n, got, 0) == ET_EINVAL &&
               strcmp(et_error_get(cx)->message, none) == 0,
           "%s", none);
        et_error_clear(cx);
    }
    must(et_predictor_loader(p, pixels, 2, &loader));
    must(et_loader_next(cx, loader, &b));
    ok(b->n_samples == 2 && fabs(b->field[ET_FIELD_X].host.f32[0] -
                                 (pixels[SIDE + 1] / 255.0 - 0.4) / 0.3) < 1e-6,
       "or raw bytes become a batch for a graph of one's own");
    et_loader_release(loader, b);
    et_predictor_free(&p);
    /* This run stopped there, was resumed, and came to the weights of the other. */
    must(et_checkpoint_load_model(
        cx, in_folder("run/b/checkpoints/step-000000000003", directory), dev, NULL,
        &p));
    must(et_predictor_run(p, pixels, IMAGES, got, IMAGES * CLASSES));
    et_predictor_free(&p);
    int early = memcmp(got, want.v, sizeof got);
    must(et_checkpoint_load_model(cx, in_folder("run/b", directory), dev, NULL, &p));
    must(et_predictor_run(p, pixels, IMAGES, got, IMAGES * CLASSES));
    et_predictor_free(&p);
    ok(early != 0 && memcmp(got, want.v, sizeof got) == 0,
       "a checkpoint that is named is loaded, and of a run the newest");
    et_device_close(&dev);
    must(et_checkpoint_load_model(
        cx, in_folder("run/a/checkpoints/step-000000000006", directory), NULL, NULL,
        &p));
    ok(et_predictor_device(p) != NULL, "without a device it opens one");
    et_predictor_free(&p);
    is_int(live(), before, "and nothing is left");
}

/* Samples of several batches have the answers that each has alone, in their order,
 * though the recipe shuffles its data, takes a part of them, and drops a last batch. */
static void
all_are_answered(struct et_predictor *p)
{
    enum { MANY = 150 };
    static uint8_t pixels[MANY * PIXELS];
    static float got[MANY * CLASSES];
    float one[CLASSES];
    int wrong = 0;
    for (int i = 0; i < MANY * PIXELS; i++)
        pixels[i] = (uint8_t)(i * 37 + i / PIXELS * 11);
    must(et_predictor_run(p, pixels, MANY, got, MANY * CLASSES));
    for (int i = 0; i < MANY; i++) {
        must(et_predictor_run(p, pixels + i * PIXELS, 1, one, CLASSES));
        for (int c = 0; c < CLASSES; c++)
            wrong += !(fabsf(one[c] - got[i * CLASSES + c]) < 1e-5f);
    }
    is_int(wrong, 0, "whatever the recipe does with its data, each has its own answer");
}

/* ---- fields by name ---- */

/* Does P refuse FIELDS [N] with STATUS, and TEXT in its sentence? */
static void
refuses(struct et_predictor *p, const struct et_raw_field *fields, int n,
        et_status status, const char *text)
{
    float out[64];
    const et_status got = et_predictor_run_fields(p, fields, n, out, 6);
    ok(got == status && strstr(et_error_get(cx)->message, text), "%s", text);
    if (!strstr(et_error_get(cx)->message, text))
        diag("%s: %s", et_status_name(got), et_error_get(cx)->message);
    et_error_clear(cx);
}

static struct et_raw_field
raw_field(const char *name, enum et_dtype dtype, int ndim, const int64_t *shape,
          const void *data)
{
    struct et_raw_field f = {.name = name, .data = data};
    et_desc_init(&f.desc, dtype, ndim, shape, ET_ROW_MAJOR);
    return f;
}

static void
image_fields(void)
{
    static const int64_t two[] = {2, SIDE, SIDE, 1}, three[] = {2, SIDE, SIDE, 3},
                         none[] = {0, SIDE, SIDE, 1};
    static uint8_t pixels[2 * PIXELS * 3];
    float want[2 * CLASSES], got[2 * CLASSES];
    char directory[4200];
    struct et_predictor *p;
    struct et_desc answers;
    struct et_raw_field known[ET_MAX_FIELDS];
    int n;
    for (int i = 0; i < 2 * PIXELS; i++)
        pixels[i] = (uint8_t)(7 * i);
    must(et_checkpoint_load_model(cx, in_folder("run/a", directory), NULL, NULL, &p));
    must(et_predictor_fields(p, 5, known, &n));
    ok(n == 1 && strcmp(known[0].name, "image") == 0 && !known[0].data &&
           known[0].desc.dtype == ET_U8 && known[0].desc.shape[0] == 5 &&
           known[0].desc.shape[3] == 1,
       "a predictor lists what samples may have: not the target");
    const struct et_raw_field good = raw_field("image", ET_U8, 4, two, pixels),
                              first = raw_field(NULL, ET_U8, 4, two, pixels);
    must(et_predictor_run(p, pixels, 2, want, 2 * CLASSES));
    must(et_predictor_run_fields(p, &good, 1, got, 2 * CLASSES));
    ok(memcmp(want, got, sizeof got) == 0, "an image by its name has the same answers");
    must(et_predictor_run_fields(p, &first, 1, got, 2 * CLASSES));
    ok(memcmp(want, got, sizeof got) == 0, "one without a name is the first");
    must(et_predictor_describe_fields(p, &good, 1, &answers));
    ok(answers.ndim == 2 && answers.shape[0] == 2 && answers.shape[1] == CLASSES,
       "how large the answers are is said before");
    struct et_raw_field bad = raw_field("image", ET_U8, 4, three, pixels);
    refuses(p, &bad, 1, ET_ESHAPE,
            "image is u8[2,6,6,3], and the model's data have u8[N,6,6,1]");
    bad = raw_field("image", ET_F32, 4, two, pixels);
    refuses(p, &bad, 1, ET_EDTYPE,
            "image is f32[2,6,6,1], and the model's data have u8[N,6,6,1]");
    bad = good;
    bad.desc.stride[0] *= 2;
    refuses(p, &bad, 1, ET_ESHAPE, "and not row-major");
    bad = raw_field("imgae", ET_U8, 4, two, pixels);
    refuses(p, &bad, 1, ET_EINVAL, "no field 'imgae' (did you mean 'image'?)");
    bad = raw_field("target", ET_U8, 4, two, pixels);
    refuses(p, &bad, 1, ET_EINVAL, "no field 'target'");
    bad = raw_field("image", ET_U8, 4, none, pixels);
    refuses(p, &bad, 1, ET_EINVAL, "0 samples are none");
    bad = good;
    bad.data = NULL;
    refuses(p, &bad, 1, ET_EINVAL, "image has no data");
    const struct et_raw_field twice[] = {good, first};
    refuses(p, twice, 2, ET_EINVAL, "image is there twice");
    refuses(p, twice, 0, ET_EINVAL, "image, which the model reads, is not there");
    et_predictor_free(&p);
}

/* A model of texts reads three arrays of a sample. */
static void
text_fields(void)
{
    enum { TEXTS = 4, MOST = 16 };
    static const char rows[] = "a\tb\tlabel\nin the beginning\tgod\t0\n"
                               "the earth was\twithout form and void\t1\n"
                               "light\tday\t2\nand\tnight and the evening\t1\n";
    char tsv[4200], bert[4200], text[12000], path[4200], directory[4200];
    const char *source = getenv("ET_SRCDIR") ? getenv("ET_SRCDIR") : ".";
    snprintf(tsv, sizeof tsv, "%s", write_file("a.tsv", rows, sizeof rows - 1, false));
    snprintf(bert, sizeof bert, "%.4000s/t/golden/tokenizers/bert.json", source);
    snprintf(text, sizeof text,
             "max_duration: 2ba\nseed: 5\n"
             "model: {name: bert_classifier, n_layers: 1, d_model: 8, n_heads: 2,\n"
             "    max_seq_len: 16, num_classes: 3}\n"
             "train_data: &data {name: labelled_text, path: '%s', tokenizer: '%s',\n"
             "    text: a, text2: b, seq_len: 16, batch_size: 4, workers: 0,\n"
             "    shuffle: false, split: train}\n"
             "eval_data: *data\n"
             "optimizer: {name: sgd, lr: 0.5}\n",
             tsv, bert);
    snprintf(path, sizeof path, "%s", write_file("t.yaml", text, strlen(text), false));
    struct et_trainer *t;
    struct et_loader *loader;
    struct et_dataset *data;
    const struct et_batch *b;
    struct et_session_options o = {.device = "ref",
                                   .directory = in_folder("run/text", directory)};
    must(et_trainer_from_recipe(cx, path, &o, NULL, &t));
    must(et_trainer_fit(t, ET_TIME_UNSET));
    et_trainer_free(&t);

    /* Its own data, padded, and what a trainer makes of them. */
    static struct expected want;
    const char *const all[] = {"path",       tsv,     "tokenizer", bert,      "text",
                               "a",          "text2", "b",         "seq_len", "16",
                               "batch_size", "4",     "workers",   "0",       "shuffle",
                               "false",      "split", "train",     NULL};
    const struct et_dataset_class *c = et_dataset_find("labelled_text");
    void *own;
    o.resume = true;
    must(et_trainer_from_recipe(cx, path, &o, NULL, &t));
    must(et_options_new(cx, &c->info, all, &own));
    must(et_dataset_open(cx, c, own, &data));
    const struct et_loader_config config = {
        .dev = et_state_get_device(et_trainer_state(t))};
    must(et_loader_new(cx, data, &config, &loader));
    must(et_trainer_predict(t, loader, keep, &want));
    must(et_loader_seek(cx, loader, 0, 0));
    must(et_loader_next(cx, loader, &b));
    const int64_t T = b->field[ET_FIELD_X].desc.shape[1];
    const int64_t shape[] = {TEXTS, T}, longer[] = {TEXTS, 17}, fewer[] = {3, T};
    static int32_t tokens[TEXTS * MOST], mask[TEXTS * MOST];
    static uint8_t type[TEXTS * (MOST + 1)];
    for (int i = 0; i < b->n_fields; i++)
        for (int64_t k = 0; k < TEXTS * T; k++) {
            const int32_t *v = b->field[i].host.i32;
            if (strcmp(b->fields[i].name, "tokens") == 0)
                tokens[k] = v[k];
            else if (strcmp(b->fields[i].name, "attention_mask") == 0)
                mask[k] = v[k];
            else if (strcmp(b->fields[i].name, "token_type") == 0)
                type[k] = (uint8_t)v[k];
        }
    et_loader_release(loader, b);
    et_loader_free(&loader);
    et_dataset_close(&data);
    et_options_free(&c->info, &own);
    et_trainer_free(&t);

    struct et_predictor *p;
    float got[TEXTS * CLASSES];
    struct et_raw_field f[3] = {
        raw_field("attention_mask", ET_I32, 2, shape, mask),
        raw_field("tokens", ET_I32, 2, shape, tokens),
        raw_field("token_type", ET_U8, 2, shape, type),
    };
    ok(et_checkpoint_load_model(cx, directory, NULL, NULL, &p) == ET_OK,
       "data and evaluations both have a label: the run's recipe is read again");
    struct et_raw_field known[ET_MAX_FIELDS];
    int n_known, n_pairs = 0;
    must(et_predictor_fields(p, 5, known, &n_known));
    for (int i = 0; i < n_known; i++)
        n_pairs += known[i].desc.ndim == 2 && known[i].desc.shape[0] == 5 &&
                   known[i].desc.shape[1] == MOST;
    ok(n_known == 3 && n_pairs == 3 && strcmp(known[2].name, "attention_mask") == 0 &&
           known[2].desc.dtype == ET_I32,
       "tokens, kinds and mask are listed, each as long as a sample may be");
    must(et_predictor_run_fields(p, f, 3, got, TEXTS * CLASSES));
    double apart = 0;
    for (int i = 0; i < TEXTS * CLASSES; i++)
        apart = fmax(apart, fabs((double)got[i] - (double)want.v[i]));
    ok(apart < 1e-5,
       "tokens, mask and kinds have the answers of the run's trainer (%g)", apart);
    must(et_predictor_run_fields(p, f + 1, 1, got, TEXTS * CLASSES));
    apart = 0;
    for (int i = 0; i < TEXTS * CLASSES; i++)
        apart = fmax(apart, fabs((double)got[i] - (double)want.v[i]));
    ok(apart > 1e-6, "without mask and kinds padding is read as text (%g)", apart);
    f[2] = raw_field("token_type", ET_U8, 2, longer, type);
    refuses(p, f, 3, ET_ESHAPE,
            "token_type is u8[4,17], and the model's data have u8[N,<=16]");
    f[2] = raw_field("token_type", ET_U8, 2, fewer, type);
    refuses(p, f, 3, ET_ESHAPE, "token_type has 3 samples, and another field 4");
    tokens[3] = 1 << 20;
    refuses(p, f, 2, ET_EFORMAT, "sample 0 has the token 1048576");
    et_predictor_free(&p);
}

/* A model of a stream of tokens: rows of the caller's are its windows. */
static void
token_rows(void)
{
    enum { TEXTS = 3, LONG = 4, WORDS = 11 };
    static const char text[] =
        "max_duration: 1ba\nseed: 5\n"
        "model: {name: gpt2, n_layers: 1, d_model: 8, n_heads: 2, max_seq_len: 4,\n"
        "    dropout: 0}\n"
        "train_data: {name: synthetic_tokens, vocab_size: 11, num_samples: 10,\n"
        "    seq_len: 4, batch_size: 2, workers: 0}\n"
        "optimizer: {name: sgd, lr: 0.1}\n";
    static const int32_t tokens[TEXTS * LONG] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8};
    float got[TEXTS * LONG * WORDS], one[LONG * WORDS];
    char path[4200], directory[4200];
    struct et_trainer *t;
    struct et_predictor *p;
    struct et_desc samples, answers;
    int wrong = 0;
    snprintf(path, sizeof path, "%s",
             write_file("lm.yaml", text, sizeof text - 1, false));
    const struct et_session_options o = {.device = "ref",
                                         .directory = in_folder("run/lm", directory)};
    must(et_trainer_from_recipe(cx, path, &o, NULL, &t));
    must(et_trainer_fit(t, ET_TIME_UNSET));
    et_trainer_free(&t);
    must(et_checkpoint_load_model(cx, directory, NULL, NULL, &p));
    is_int(et_predictor_seq_len(p), LONG, "rows of tokens have one length");
    must(et_predictor_describe(p, TEXTS, &samples, &answers));
    ok(samples.dtype == ET_I32 && samples.ndim == 2 && samples.shape[0] == TEXTS &&
           samples.shape[1] == LONG && answers.ndim == 3 && answers.shape[0] == TEXTS &&
           answers.shape[1] == LONG && answers.shape[2] == WORDS,
       "and an answer for each token");
    must(et_predictor_run(p, tokens, TEXTS, got, TEXTS * LONG * WORDS));
    for (int i = 0; i < TEXTS; i++) {
        must(et_predictor_run(p, tokens + i * LONG, 1, one, LONG * WORDS));
        for (int k = 0; k < LONG * WORDS; k++)
            wrong += !(fabsf(one[k] - got[i * LONG * WORDS + k]) < 1e-5f);
    }
    is_int(wrong, 0, "each row of tokens has its own answers");
    et_predictor_free(&p);
}

/* Transforms that draw numbers would give a sample other answers each time. */
static void
random_transforms(void)
{
    static const struct et_override still[] = {
        {ET_OVERRIDE_SET, "eval_data=null"},
        {ET_OVERRIDE_SET, "max_duration=1ba"},
        {ET_OVERRIDE_SET, "train_data.drop_last=true"},
        {ET_OVERRIDE_SET, "train_data.shuffle=true"},
        {ET_OVERRIDE_SET, "train_data.subset_num_batches=1"}};
    static const struct et_override flips[] = {
        {ET_OVERRIDE_SET, "eval_data=null"},
        {ET_OVERRIDE_SET, "max_duration=1ba"},
        {ET_OVERRIDE_SET, "train_data.transforms=[horizontal_flip: {p: 0.2}]"}};
    char directory[4200];
    struct et_session_options o = {
        .device = "ref", .overrides = still, .n_overrides = 5};
    for (int i = 0; i < 2; i++) {
        struct et_trainer *t;
        struct et_predictor *p;
        struct et_device *dev;
        o.directory = in_folder(i ? "run/flips" : "run/still", directory);
        must(et_trainer_from_recipe(cx, recipe, &o, NULL, &t));
        must(et_trainer_fit(t, ET_TIME_UNSET));
        et_trainer_free(&t);
        must(et_device_open(cx, "ref", 0, 1, &dev));
        et_status status = et_checkpoint_load_model(cx, directory, dev, NULL, &p);
        if (i == 0) {
            ok(status == ET_OK && p,
               "without eval_data samples are prepared as those that are trained on");
            all_are_answered(p);
        } else
            ok(status == ET_EINVAL && !p &&
                   strstr(et_error_get(cx)->message,
                          "the transforms of train_data are random"),
               "but not where these are random: that is refused");
        et_error_clear(cx);
        et_predictor_free(&p);
        et_device_close(&dev);
        o.overrides = flips;
        o.n_overrides = 3;
    }
}

int
main(void)
{
    static const char text[] =
        "max_duration: 6ba\n"
        "seed: 5\n"
        "model: {name: mlp, hidden: 8}\n"
        "train_data: {name: synthetic_images, channels: 1, resolution: 6,\n"
        "    num_classes: 3, num_samples: 64, batch_size: 16, workers: 0,\n"
        "    transforms: [center_crop: {size: 4}]}\n"
        "eval_data: {name: synthetic_images, channels: 1, resolution: 6,\n"
        "    num_classes: 3, num_samples: 70, batch_size: 16, workers: 0,\n"
        "    transforms: [center_crop: {size: 4}, normalize: {mean: [0.4], std: "
        "[0.3]}]}\n"
        "optimizer: {name: sgd, lr: 0.1, momentum: 0.9}\n";
    cx = need_ctx();
    snprintf(folder, sizeof folder, "%s", scratch_folder());
    snprintf(recipe, sizeof recipe, "%s",
             write_file("r.yaml", text, sizeof text - 1, false));
    options();
    default_options();
    bound();
    from_recipe();
    refused();
    predictor();
    image_fields();
    text_fields();
    token_rows();
    random_transforms();
    et_ctx_free(&cx);
    return done();
}
