/* SPDX-License-Identifier: Apache-2.0 */
/* Models: parameter counts and names against known figures, shapes, loss. */
#include "core/graph/graph_impl.h"
#include "core/models/outline.h"
#include "etude/attr.h"
#include "etude/model.h"
#include "etude/nn.h"
#include "t/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct et_ctx *cx;

static void
must(et_status status)
{
    if (status != ET_OK)
        bail("%s", et_error_get(cx)->message);
}

/* A model with its table's defaults, changed by NAME = TEXT pairs up to NULL. */
static struct et_model *
make(const char *model, const struct et_model_facts *facts, const char *const *set)
{
    const struct et_model_class *type = et_model_class_find(model);
    struct et_model *m;
    if (!type)
        bail("there is no model %s", model);
    void *options = calloc(1, type->info.options_size);
    must(et_options_init(cx, type->info.options, options));
    for (int i = 0; set && set[i]; i += 2)
        must(et_options_set(cx, type->info.options, options, set[i], set[i + 1]));
    must(et_model_new(cx, type, options, facts, &m));
    et_options_release(type->info.options, options);
    free(options);
    return m;
}

static const struct et_model_facts imagenet = {
    .channels = 3,
    .height = 224,
    .width = 224,
    .num_classes = 1000,
};
static const struct et_model_facts cifar = {
    .channels = 3,
    .height = 32,
    .width = 32,
    .num_classes = 10,
};
static const struct et_model_facts fashion = {
    .channels = 1,
    .height = 28,
    .width = 28,
    .num_classes = 10,
};

static void
counts(void)
{
    struct {
        const char *model;
        const struct et_model_facts *facts;
        int64_t count;
    } known[] = {
        /* torchvision's documented figures */
        {"resnet18", &imagenet, 11689512},
        {"resnet34", &imagenet, 21797672},
        {"resnet50", &imagenet, 25557032},
        {"resnet101", &imagenet, 44549160},
        {"resnet152", &imagenet, 60192808},
        /* by hand; the paper's parameter-free shortcuts give 269,722 for depth 20, the
         * two 1x1 convolutions with batch norm add 2,752 */
        {"resnet8", &cifar, 78042},
        {"resnet8", &fashion, 77754},
        {"resnet20", &cifar, 272474},
        {"resnet56", &cifar, 855770},
        /* LeNet-5 with a padded first layer */
        {"lenet", &fashion, 61706},
        /* 160 + 4,640 + 64 + 16,416 + 330 */
        {"mnist_classifier", &fashion, 21610},
        /* 784 256 + 256, 256 256 + 256, 256 10 + 10 */
        {"mlp", &fashion, 269322},
        {"efficientnet_b0", &imagenet, 5288548},
        {"efficientnet_b1", &imagenet, 7794184},
        {"efficientnet_b2", &imagenet, 9109994},
        {"efficientnet_b3", &imagenet, 12233232},
        /* timm's vit_{tiny,small,base,large}_patch16_224 */
        {"vit_ti16", &imagenet, 5717416},
        {"vit_s16", &imagenet, 22050664},
        {"vit_b16", &imagenet, 86567656},
        {"vit_l16", &imagenet, 304326632},
        /* Hugging Face's gpt2 */
        {"gpt2", NULL, 124439808},
        /* its BertForMaskedLM, bert-base-uncased */
        {"bert", NULL, 109514298},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct et_model *m = make(known[i].model, known[i].facts, NULL);
        int64_t count;
        must(et_module_count(cx, m->root, &count));
        is_int(count, known[i].count, "%s has its number of parameters",
               known[i].model);
        et_model_free(&m);
    }
}

static void
stems(void)
{
    struct {
        const char *model, *stem;
        const struct et_model_facts *facts;
        int64_t count;
    } known[] = {
        {"resnet8", "strided", &fashion, 77754},
        /* the usual net for CIFAR: the first layer has 64 3 (7^2 - 3^2) weights less
         * and the last 990 rows of 512 and a bias */
        {"resnet18", "small", &cifar, 11689512 - 7680 - 990 * 513},
        {"resnet20", "imagenet", &cifar, 272474 + 16 * 3 * 40},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct et_model *m = make(known[i].model, known[i].facts,
                                  (const char *[]){"stem", known[i].stem, NULL});
        int64_t count;
        must(et_module_count(cx, m->root, &count));
        is_int(count, known[i].count, "%s with a %s stem has its number of parameters",
               known[i].model, known[i].stem);
        et_model_free(&m);
    }
}

static void
names(void)
{
    struct {
        const char *model;
        const struct et_model_facts *facts;
        int leaves; /* parameters and buffers; batch counters of batch norm aside */
        const char *const *has;
    } known[] = {
        {"resnet50", &imagenet, 161 + 106,
         (const char *[]){"conv1.weight", "bn1.running_var", "layer1.0.conv1.weight",
                          "layer2.0.downsample.0.weight",
                          "layer2.0.downsample.1.running_mean", "layer4.2.bn3.bias",
                          "fc.bias", NULL}},
        {"efficientnet_b0", &imagenet, 213 + 98,
         (const char *[]){"features.0.0.weight", "features.1.0.block.1.fc1.bias",
                          "features.2.0.block.2.fc2.weight",
                          "features.8.1.running_mean", "classifier.1.weight", NULL}},
        {"vit_s16", &imagenet, 152,
         (const char *[]){"cls_token", "pos_embed", "patch_embed.proj.weight",
                          "blocks.0.attn.qkv.bias", "blocks.11.mlp.fc2.weight",
                          "norm.weight", "head.bias", NULL}},
        {"bert", NULL, 202, /* the tied head once */
         (const char *[]){
             "bert.embeddings.word_embeddings.weight", "bert.embeddings.LayerNorm.bias",
             "bert.encoder.layer.0.attention.self.query.weight",
             "bert.encoder.layer.11.attention.output.dense.bias",
             "bert.encoder.layer.3.intermediate.dense.weight",
             "bert.encoder.layer.3.output.LayerNorm.weight", "cls.predictions.bias",
             "cls.predictions.transform.dense.weight", NULL}},
        {"gpt2", NULL, 148, /* the tied head once */
         (const char *[]){
             "transformer.wte.weight", "transformer.wpe.weight",
             "transformer.h.0.ln_1.weight", "transformer.h.0.attn.c_attn.weight",
             "transformer.h.11.mlp.c_proj.bias", "transformer.ln_f.bias", NULL}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct et_model *m = make(known[i].model, known[i].facts, NULL);
        struct et_leaves l;
        must(et_module_leaves(cx, m->root, ET_PARAM | ET_BUFFER, &l));
        is_int(l.n, known[i].leaves, "%s has as many leaves as its weight files",
               known[i].model);
        for (const char *const *name = known[i].has; *name; name++)
            ok(et_leaves_find(&l, *name), "%s has their %s", known[i].model, *name);
        et_leaves_release(&l);
        et_model_free(&m);
    }
}

static void
values(void)
{
    struct et_model *m = make("lenet", &fashion, NULL);
    float bias[10], back[10];
    for (int i = 0; i < 10; i++)
        bias[i] = (float)i;
    must(et_model_set_param(m, "fc3.bias", bias, 10));
    must(et_model_get_param(m, "fc3.bias", 17, back, 10));
    ok(memcmp(bias, back, sizeof bias) == 0, "a parameter written by name reads back");
    ok(et_model_set_param(m, "fc4.bias", bias, 10) == ET_ENOENT,
       "a wrong name is refused");
    et_error_clear(cx);
    ok(et_model_set_param(m, "fc3.bias", bias, 9) == ET_ESHAPE, "so is a wrong count");
    et_error_clear(cx);
    et_model_free(&m);
}

/* A model with its defaults is refused. */
static bool
is_refused(const char *model, const struct et_model_facts *facts)
{
    const struct et_model_class *type = et_model_class_find(model);
    struct et_model *m = NULL;
    void *options;
    must(et_options_new(cx, &type->info, NULL, &options));
    bool refused = et_model_new(cx, type, options, facts, &m) == ET_EINVAL && !m;
    et_options_free(&type->info, &options);
    et_error_clear(cx);
    return refused;
}

static void
refusals(void)
{
    const struct et_model_facts tiny = {
        .channels = 1, .height = 4, .width = 4, .num_classes = 2};
    ok(is_refused("resnet20", NULL), "a model whose outputs nobody states is refused");
    ok(is_refused("lenet", &tiny), "a filter that does not fit the image is refused");
    struct et_model_facts sides = {
        .channels = 3, .height = 32, .width = 40, .num_classes = 2};
    ok(is_refused("vit_ti16", &sides), "so is a width that is no whole patches");
    sides = (struct et_model_facts){
        .channels = 3, .height = 40, .width = 32, .num_classes = 2};
    ok(is_refused("vit_ti16", &sides), "and such a height");
}

/* The sentence that refuses a list of layers; "" where none does. */
static void
layers(const char *text, const char *want, const char *what)
{
    const char *set[] = {"layers", text, NULL};
    const struct et_model_class *type = et_model_class_find("layers");
    struct et_model *m = NULL;
    void *options = calloc(1, type->info.options_size);
    must(et_options_init(cx, type->info.options, options));
    et_status status = et_options_set(cx, type->info.options, options, set[0], set[1]);
    if (status == ET_OK)
        status = et_model_new(cx, type, options, &fashion, &m);
    if (*want)
        ok(status == ET_EINVAL && strstr(et_error_get(cx)->message, want), "%s: %s",
           what, et_error_get(cx)->message);
    else
        ok(status == ET_OK, "%s%s", what, et_error_get(cx)->message);
    et_error_clear(cx);
    if (m) {
        struct et_leaves l;
        must(et_module_leaves(cx, m->root, ET_PARAM, &l));
        is_int(l.n, 15, "its layers have their parameters");
        struct et_leaf *fc = et_leaves_find(&l, "6.weight");
        ok(fc && fc->param->desc.shape[1] == 16 * 7 * 7,
           "sizes follow from the input's");
        et_leaves_release(&l);
    }
    et_model_free(&m);
    et_options_release(type->info.options, options);
    free(options);
}

static void
spelled_out(void)
{
    layers(
        "[conv2d: {out: 8, kernel: 3, padding: 1}, batch_norm, relu, max_pool2d: "
        "{kernel: 2}, basic_block: {channels: 16, stride: 2}, flatten, linear: {out: "
        "10}]",
        "", "a network spelled out is built");
    layers("[flatten, linear: {out: 7}]", "10 classes",
           "a wrong number of outputs is told");
    layers("[linear: {out: 10}]", "flatten", "images before linear are told");
    layers("[conv: {out: 10}]", "unknown layer 'conv'", "an unknown layer is told");
    layers("[flatten, linear: {out: 10, bias: 1}]", "bias",
           "an unknown option is told");
    layers("[flatten, linear]", "'out' is missing", "a missing option is told");
    layers("[relu: 5]", "expected mapping", "options that are no mapping are told");
    layers("[[flatten]]", "expected name", "a list in the list is told");
}

/* Fails each allocation of a construction in turn. */
static void
torture(const char *name)
{
    const struct et_model_class *type = et_model_class_find(name);
    struct et_alloc_stats before, after;
    struct et_model *m = NULL;
    void *options = calloc(1, type->info.options_size);
    must(et_options_init(cx, type->info.options, options));
    et_alloc_get_stats(cx, &before);
    uint64_t k = 0;
    bool clean = true;
    et_status status;
    do {
        et_alloc_fail_at(cx, ++k);
        status = et_model_new(cx, type, options, &fashion, &m);
        et_alloc_fail_at(cx, 0);
        et_error_clear(cx);
        et_alloc_get_stats(cx, &after);
        clean &=
            status == ET_OK || (status == ET_ENOMEM && after.live == before.live && !m);
    } while (status != ET_OK && clean && k < 100000);
    ok(clean && status == ET_OK && k > 10,
       "%s: each of %d failed allocations leaves nothing", name, (int)k - 1);
    et_model_free(&m);
    et_options_release(type->info.options, options);
    free(options);
}

/* ---- with a device ---- */

static struct et_device *dev;

static struct et_tensor *
leaf(enum et_dtype dtype, int ndim, const int64_t *shape)
{
    struct et_tensor *t;
    must(et_tensor_new(cx, dev, dtype, ndim, shape,
                       ndim == 4 ? ET_CHANNELS_LAST : ET_ROW_MAJOR, NULL, &t));
    return t;
}

/* The loss is the one that a recipe names; where it names none, the target's. */
static void
choices_of_losses(void)
{
    static const struct et_field image = {
        .name = "image", .dtype = ET_F32, .ndim = 1, .shape = {7}};
    static const struct {
        enum et_dtype target;
        const char *named, *want;
    } rows[] = {
        {ET_I32, NULL, "soft_cross_entropy"},
        {ET_I32, "focal", "focal"},
        {ET_F32, NULL, "mse"},
        {ET_F32, "mse", "mse"},
        {ET_F32, "l1", "l1"},
        {ET_F32, "huber", "huber"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_field field[2] = {image, {.name = "target"}};
        const char *const set[] = {"loss", rows[i].named, NULL};
        field[1].dtype = rows[i].target;
        const struct et_model_facts facts = {
            .channels = 7, .num_classes = 3, .field = field, .n_fields = 2};
        struct et_model *m = make("mlp", &facts, rows[i].named ? set : NULL);
        is_str(m->loss->info.name, rows[i].want, "a target of %s, loss %s",
               et_dtype_name(rows[i].target),
               rows[i].named ? rows[i].named : "unnamed");
        et_model_free(&m);
    }
}

/* A model has as many outputs as the recipe says, else as many as there are numbers in
 * a target, else as the data have classes; what is not a classifier's to learn as
 * numbers does not count. */
static void
outputs(void)
{
    static const struct {
        const char *model, *option, *loss;
        enum et_dtype target;
        int ndim, want;
        bool are_numbers;
        const char *want_loss;
    } rows[] = {
        {"mlp", NULL, NULL, ET_I32, 0, 4, false, "soft_cross_entropy"},
        {"mlp", "9", NULL, ET_I32, 0, 9, false, "soft_cross_entropy"},
        {"mlp", NULL, NULL, ET_F32, 0, 1, true, "mse"},
        {"mlp", NULL, NULL, ET_F32, 1, 2, true, "mse"},
        {"mlp", NULL, NULL, ET_F32, 2, 6, true, "mse"},
        {"mlp", "5", NULL, ET_F32, 2, 5, true, "mse"},
        {"mlp", NULL, "l1", ET_F32, 2, 6, true, "l1"},
        {"unet", NULL, NULL, ET_F32, 2, 4, false, "soft_cross_entropy"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_field field[] = {
            {.name = "image", .dtype = ET_F32, .ndim = 3, .shape = {3, 32, 32}},
            {.name = "target",
             .dtype = rows[i].target,
             .ndim = rows[i].ndim,
             .shape = {2, 3}}};
        const struct et_model_facts facts = {.channels = 3,
                                             .height = 32,
                                             .width = 32,
                                             .num_classes = 4,
                                             .field = field,
                                             .n_fields = 2};
        const char *set[5] = {NULL};
        int n = 0;
        if (rows[i].option)
            set[n++] = "num_classes", set[n++] = rows[i].option;
        if (rows[i].loss)
            set[n++] = "loss", set[n++] = rows[i].loss;
        struct et_model *m = make(rows[i].model, &facts, set);
        is_int(m->num_classes, rows[i].want, "row %zu: outputs of %s", i,
               rows[i].model);
        ok(m->has_numbers == rows[i].are_numbers && m->facts.channels == 3 &&
               m->facts.num_classes == rows[i].want && !m->facts.field &&
               m->facts.n_fields == 0,
           "which are numbers or not; the data's fields are not kept");
        is_str(m->loss->info.name, rows[i].want_loss, "and its loss");
        et_model_free(&m);
    }
}

/* FLOPs of an evaluation of one 32 x 32 image by a resnet8 with STEM. */
static double
flops_of(const char *stem)
{
    struct et_model *m = make("resnet8", &cifar, (const char *[]){"stem", stem, NULL});
    struct et_plan_info info;
    struct et_graph *g;
    must(et_module_bind(cx, m->root, dev, ET_PARAM | ET_BUFFER, 3));
    must(et_graph_new(cx, dev, &g));
    struct et_tensor *x = leaf(ET_F32, 4, (const int64_t[]){1, 3, 32, 32});
    struct et_forward f = {.g = g};
    struct et_tensor *y = et_model_forward(m, &f, x);
    must(et_plan(g, &y, 1, &info));
    et_graph_free(&g);
    et_tensor_free(&x);
    et_model_free(&m);
    return (double)info.flops;
}

/* A strided stem leaves a quarter of the positions, that of ImageNet with its pooling a
 * sixteenth, and has 49 terms in place of 9. */
static void
strides_of_stems(void)
{
    double small = flops_of("small"), strided = flops_of("strided") / small,
           pooled = flops_of("imagenet") / small;
    ok(strided > 0.24 && strided < 0.27, "a strided stem leaves a quarter: %.3f",
       strided);
    ok(pooled > 0.06 && pooled < 0.13, "that of ImageNet a sixteenth: %.3f", pooled);
}

/* The logits of X in an evaluation do not depend on what RNG says is drawn: nothing is
 * dropped there. */
static void
evaluates_alike(struct et_model *m, struct et_graph *g, struct et_tensor *x,
                struct et_tensor *rng, const char *name)
{
    struct et_forward f = {.g = g, .training = false, .rng = rng};
    float *z[2];
    size_t bytes = 0;
    for (int i = 0; i < 2; i++) {
        must(et_tensor_write(cx, rng, (int64_t[]){7 + i, i}, 2 * sizeof(int64_t)));
        struct et_tensor *logits = et_model_forward(m, &f, x);
        must(et_eval(g, &logits, 1));
        bytes = et_desc_bytes(&logits->desc);
        z[i] = malloc(bytes);
        must(et_tensor_read(cx, logits, z[i], bytes));
        et_graph_reset(g);
    }
    ok(memcmp(z[0], z[1], bytes) == 0, "%s: evaluations draw nothing", name);
    free(z[0]);
    free(z[1]);
}

static void
forward(const char *name, const struct et_model_facts *facts, const char *const *set,
        struct et_tensor *x, int ndim, const int64_t *want)
{
    struct et_model *m = make(name, facts, set);
    struct et_graph *g;
    must(et_module_bind(cx, m->root, dev, ET_PARAM | ET_BUFFER, 17));
    must(et_graph_new(cx, dev, &g));
    struct et_tensor *rng = leaf(ET_I64, 1, (int64_t[]){2});
    struct et_forward f = {.g = g, .training = true, .rng = rng};
    struct et_tensor *z = et_model_forward(m, &f, x), *loss[2];
    if (!z)
        bail("%s: %s", name, et_error_get(cx)->message);
    bool same = z->desc.ndim == ndim;
    for (int i = 0; i < ndim && same; i++)
        same = z->desc.shape[i] == want[i];
    char text[128];
    ok(same, "%s gives logits of its shape, %s", name,
       et_desc_text(&z->desc, text, sizeof text));

    /* Index targets have the logits' shape without the classes: axis 1, or the last. */
    int64_t shape[ET_MAX_DIMS] = {want[0]};
    bool language = m->task == ET_TASK_LANGUAGE;
    for (int i = 1; i < ndim - 1; i++)
        shape[i] = want[language ? i : i + 1];
    struct et_tensor *target = leaf(ET_I32, ndim - 1, shape);
    const struct et_samples samples = {.target = target};
    loss[0] = et_model_loss(m, g, z, &samples, ET_REDUCE_MEAN);
    loss[1] = et_model_loss(m, g, z, &samples, ET_REDUCE_NONE);
    must(et_eval(g, loss, 2));
    double mean, sum = 0;
    float *each = calloc((size_t)want[0], sizeof *each);
    must(et_item(g, loss[0], &mean));
    must(et_tensor_read(cx, loss[1], each, (size_t)want[0] * sizeof *each));
    for (int64_t i = 0; i < want[0]; i++)
        sum += each[i];
    ok(isfinite(mean) && mean > 0, "%s has a positive loss, %g", name, mean);
    is_near(sum / (double)want[0], mean, 1e-5,
            "%s: losses per sample average to the loss", name);
    free(each);
    et_graph_reset(g);
    evaluates_alike(m, g, x, rng, name);
    et_graph_free(&g);
    et_tensor_free(&target);
    et_tensor_free(&rng);
    et_model_free(&m);
}

static void
forwards(void)
{
    struct et_model_facts small = {
        .channels = 3, .height = 8, .width = 8, .num_classes = 4};
    struct et_tensor *image = leaf(ET_F32, 4, (int64_t[]){2, 3, 8, 8});
    struct et_tensor *token = leaf(ET_I32, 2, (int64_t[]){2, 5});
    float pixel[2 * 3 * 64];
    for (int i = 0; i < 2 * 3 * 64; i++)
        pixel[i] = (float)sin(i);
    must(et_tensor_write(cx, image, pixel, sizeof pixel));
    const char *vision[] = {"mlp", "mnist_classifier", "resnet8", "resnet20"};
    for (int i = 0; i < 4; i++)
        forward(vision[i], &small, NULL, image, 2, (int64_t[]){2, 4});
    forward("resnet8", &small, (const char *[]){"stem", "strided", NULL}, image, 2,
            (int64_t[]){2, 4});
    forward("resnet8", &small, (const char *[]){"stem", "imagenet", NULL}, image, 2,
            (int64_t[]){2, 4});
    forward("efficientnet_b0", &small, NULL, image, 2, (int64_t[]){2, 4});
    forward("vit_s16", &small,
            (const char *[]){"patch", "4", "d_model", "8", "n_layers", "2", "n_heads",
                             "2", NULL},
            image, 2, (int64_t[]){2, 4});
    forward("unet", &small, (const char *[]){"width", "4", "depth", "2", NULL}, image,
            4, (int64_t[]){2, 4, 8, 8});
    const char *tiny[] = {"n_layers", "2",           "d_model", "8",          "n_heads",
                          "2",        "max_seq_len", "6",       "vocab_size", "11",
                          "position", "learned",     NULL};
    forward("gpt2", NULL, tiny, token, 3, (int64_t[]){2, 5, 11});
    tiny[10] = NULL;
    forward("bert", NULL, tiny, token, 3, (int64_t[]){2, 5, 11});
    tiny[10] = "position";
    tiny[11] = "alibi";
    forward("gpt2", NULL, tiny, token, 3, (int64_t[]){2, 5, 11});
    et_tensor_free(&image);
    et_tensor_free(&token);
}

static void
flops(void)
{
    struct et_model *m = make("resnet20", &cifar, NULL);
    struct et_graph *g;
    int64_t count = 0, macs = 3 * 16 * 9 * 1024 + 64 * 10;
    /* Multiply-adds of each stage: blocks of 3x3 convolutions, and the 1x1
     * shortcuts. */
    for (int64_t c = 16, area = 1024; c <= 64; c *= 2, area /= 4)
        macs += area * (c == 16 ? 6 * c * c * 9 : 5 * c * c * 9 + c / 2 * c * 10);
    struct et_tensor *x = leaf(ET_F32, 4, (int64_t[]){1, 3, 32, 32});
    must(et_module_bind(cx, m->root, dev, ET_PARAM | ET_BUFFER, 17));
    must(et_graph_new(cx, dev, &g));
    must(et_model_flops(m, g, x, &count));
    /* Norms, activations and additions come on top: under 2 % of the convolutions. */
    ok(count >= 2 * macs && count < 2.04 * (double)macs,
       "resnet20 costs two operations a multiply-add: %lld of %lld", (long long)count,
       (long long)(2 * macs));
    struct et_forward f = {.g = g};
    int64_t once = count;
    (void)et_model_forward(m, &f, x);
    ok(!et_autocast(g, false), "a model leaves a graph's casting as it was");
    must(et_model_flops(m, g, x, &count));
    is_int(count, once, "what a graph has had before does not count");
    is_int(g->n_nodes, 0, "and nothing of the count stays in it");
    et_graph_free(&g);
    et_tensor_free(&x);
    et_model_free(&m);
}

/* Buffers of one name lie in one storage without gaps, in the order of the modules:
 * one kernel updates them. */
static void
side_by_side(void)
{
    static const char *const names[] = {"running_mean", "running_var"};
    struct et_model *m = make("resnet20", &cifar, NULL);
    struct et_leaves l;
    int64_t end = 0;
    int astray = 0, n = 0;
    must(et_module_bind(cx, m->root, dev, ET_PARAM | ET_BUFFER, 17));
    must(et_module_leaves(cx, m->root, ET_BUFFER, &l));
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < l.n; i++) {
            const struct et_tensor *t = l.v[i].param->tensor;
            if (!strstr(l.v[i].name, names[k]))
                continue;
            astray += t->storage != l.v[0].param->tensor->storage || t->offset != end;
            end = t->offset + et_desc_count(&t->desc);
            n++;
        }
    ok(n == l.n && n > 40 && astray == 0,
       "of %d running statistics of resnet20 %d do not lie behind the one before", n,
       astray);
    et_leaves_release(&l);
    et_model_free(&m);
}

static bool
has_option(const struct et_model_class *type, const char *name)
{
    for (const struct et_option *o = type->info.options; o->name; o++)
        if (strcmp(o->name, name) == 0)
            return true;
    return false;
}

/* Of a training pass of M over X: how many dropouts of attention have 0.5, as is right,
 * how many others 0.25, as is right; and how many have the wrong probability. */
static void
count_dropouts(struct et_model *m, struct et_tensor *x, int n[2], int *wrong)
{
    struct et_graph *g;
    struct et_tensor *rng = leaf(ET_I64, 1, (int64_t[]){2});
    struct et_forward f = {.training = true, .rng = rng};
    n[0] = n[1] = *wrong = 0;
    must(et_graph_new(cx, dev, &g));
    f.g = g;
    (void)et_model_forward(m, &f, x);
    must(et_graph_status(g));
    for (int i = 0; i < g->n_nodes; i++) {
        const struct et_node *node = g->node[i];
        if (node->op->id != ET_OP_dropout)
            continue;
        const struct et_node *of = node->in[0]->node;
        const bool attends = of && of->op->id == ET_OP_softmax;
        const double p = ((const struct et_dropout_attr *)node->attr)->p;
        n[attends]++;
        *wrong += p != (attends ? 0.5 : 0.25);
    }
    et_graph_free(&g);
    et_tensor_free(&rng);
}

/* What every model with attention has: its dropouts where they belong, and heads that
 * divide its width. */
static void
attention_options(void)
{
    const struct et_model_facts texts = {
        .seq_len = 8, .vocab_size = 16, .num_classes = 3};
    static const char *const small[] = {"n_layers",          "2",   "d_model", "8",
                                        "n_heads",           "2",   "dropout", "0.25",
                                        "attention_dropout", "0.5", NULL};
    struct et_tensor *tokens = leaf(ET_I32, 2, (int64_t[]){1, 8});
    struct et_tensor *image = leaf(ET_F32, 4, (int64_t[]){1, 3, 32, 32});
    for (int i = 0; et_model_classes[i]; i++) {
        const struct et_model_class *type = et_model_classes[i];
        const bool reads = strcmp(type->info.applies_to, "text") == 0;
        const struct et_model_facts *facts = reads ? &texts : &cifar;
        struct et_model *m;
        void *options;
        int n[2], wrong;
        if (!has_option(type, "n_heads"))
            continue;
        m = make(type->info.name, facts, small);
        must(et_module_bind(cx, m->root, dev, ET_PARAM | ET_BUFFER, 17));
        count_dropouts(m, reads ? tokens : image, n, &wrong);
        ok(n[0] >= 3 && n[1] == 2 && wrong == 0,
           "%s: each dropout has the share that is for it", type->info.name);
        et_model_free(&m);
        must(et_options_new(cx, &type->info,
                            (const char *const[]){"n_heads", "5", NULL}, &options));
        is_int(et_model_new(cx, type, options, facts, &m), ET_EINVAL,
               "%s: 5 heads are refused", type->info.name);
        ok(strstr(et_error_get(cx)->message, "head") != NULL, "%s",
           et_error_get(cx)->message);
        et_error_clear(cx);
        et_options_free(&type->info, &options);
    }
    et_tensor_free(&tokens);
    et_tensor_free(&image);
}

/* What DeepLab is made of, of its graph: nothing is computed. */
static void
deeplab(void)
{
    const struct et_model_facts facts = {
        .channels = 3, .height = 64, .width = 96, .num_classes = 5};
    struct et_model *m = make("deeplabv3plus_resnet50", &facts,
                              (const char *[]){"dropout", "0.25", NULL});
    struct eti_outline outline;
    struct et_tensor *x = leaf(ET_F32, 4, (int64_t[]){2, 3, 64, 96});
    struct et_tensor *rng = leaf(ET_I64, 1, (int64_t[]){2});
    struct et_forward f = {.training = true, .rng = rng};
    int dilated[25] = {0}, enlarged = 0, wrong = 0, dropouts = 0;
    must(eti_model_outline(cx, m, dev, &outline)); /* which binds zeros */
    must(et_graph_new(cx, dev, &f.g));
    struct et_tensor *y = et_model_forward(m, &f, x);
    must(et_graph_status(f.g));
    ok(y->desc.ndim == 4 && y->desc.shape[1] == 5 && y->desc.shape[2] == 64 &&
           y->desc.shape[3] == 96,
       "DeepLab gives classes of each pixel");
    for (int i = 0; i < f.g->n_nodes; i++) {
        const struct et_node *node = f.g->node[i];
        if (node->op->id == ET_OP_conv2d) {
            const struct et_conv2d_attr *o = node->attr;
            int rate = o->dilation[0] < 25 ? o->dilation[0] : 0;
            dilated[rate]++;
            wrong +=
                o->dilation[0] != o->dilation[1] || (rate > 1 && o->pad[0] != rate);
        } else if (node->op->id == ET_OP_resize2d) {
            enlarged++;
            wrong +=
                ((const struct et_resize_attr *)node->attr)->mode != ET_RESIZE_BILINEAR;
        } else if (node->op->id == ET_OP_dropout) {
            dropouts++;
            wrong += ((const struct et_dropout_attr *)node->attr)->p != 0.25;
        }
    }
    ok(dilated[6] == 1 && dilated[12] == 1 && dilated[18] == 1 && dilated[2] == 2,
       "its rates are 6, 12 and 18, behind a last stage of rate 2");
    is_int(enlarged, 3, "it enlarges the image's mean, ASPP and the classes");
    is_int(dropouts, 1, "and has one dropout");
    is_int(wrong, 0, "each is padded by its rate, bilinear, as likely as it is to be");
    et_graph_free(&f.g);
    eti_outline_release(&outline);
    et_tensor_free(&x);
    et_tensor_free(&rng);
    et_model_free(&m);
}

/* Samples skip the branches of an EfficientNet as torchvision's do: block I of 16 with
 * probability 0.2 I / 16, where it has a sum. */
static void
skipped_branches(void)
{
    static const int summed[] = {2, 4, 6, 7, 9, 10, 12, 13, 14};
    enum { SUMMED = sizeof summed / sizeof *summed };
    struct et_model *m = make("efficientnet_b0", &cifar, NULL);
    struct eti_outline outline;
    struct et_tensor *x = leaf(ET_F32, 4, (int64_t[]){2, 3, 32, 32});
    struct et_tensor *rng = leaf(ET_I64, 1, (int64_t[]){2});
    struct et_forward f = {.training = true, .rng = rng};
    int n = 0, wrong = 0;
    must(eti_model_outline(cx, m, dev, &outline)); /* which binds zeros */
    must(et_graph_new(cx, dev, &f.g));
    (void)et_model_forward(m, &f, x);
    must(et_graph_status(f.g));
    for (int i = 0; i < f.g->n_nodes; i++) {
        const struct et_node *node = f.g->node[i];
        if (node->op->id != ET_OP_dropout || node->out[0].desc.ndim != 4)
            continue;
        const double p = ((const struct et_dropout_attr *)node->attr)->p;
        wrong += n >= SUMMED || fabs(p - 0.2 * summed[n] / 16) > 1e-12;
        n++;
    }
    is_int(n, SUMMED, "each branch of an EfficientNet that has a sum may be skipped");
    is_int(wrong, 0, "the more often the later it comes");
    et_graph_free(&f.g);
    eti_outline_release(&outline);
    et_tensor_free(&x);
    et_tensor_free(&rng);
    et_model_free(&m);
}

/* What a recipe says of sizes is above what the data are like. */
static void
facts_and_options(void)
{
    static const struct et_field fields[] = {
        {.name = "values",
         .kind = ET_FIELD_VALUES,
         .dtype = ET_F32,
         .ndim = 1,
         .shape = {5}},
        {.name = "target",
         .kind = ET_FIELD_VALUES,
         .dtype = ET_F32,
         .ndim = 2,
         .shape = {2, 3}},
    };
    const struct et_model_facts facts = {.channels = 5, .field = fields, .n_fields = 2};
    struct et_model *m = make("mlp", &facts, NULL);
    is_int(m->num_classes, 6, "numbers to learn are those of all axes");
    et_model_free(&m);
    m = make("mlp", &facts, (const char *[]){"num_classes", "7", NULL});
    is_int(m->num_classes, 7, "num_classes of a recipe is above them");
    et_model_free(&m);
    m = make("resnet20", &cifar,
             (const char *[]){"num_classes", "4", "in_channels", "2", NULL});
    struct et_param *first = NULL;
    struct et_leaves leaves;
    must(et_module_leaves(cx, m->root, ET_PARAM, &leaves));
    first = leaves.v[0].param;
    ok(m->facts.channels == 2 && m->num_classes == 4 && first->desc.shape[1] == 2,
       "and so are in_channels and num_classes above the data's");
    et_leaves_release(&leaves);
    et_model_free(&m);
}

int
main(void)
{
    must(et_ctx_new(&cx));
    counts();
    facts_and_options();
    stems();
    names();
    values();
    refusals();
    spelled_out();
    torture("lenet");
    torture("resnet20");
    torture("gpt2");
    must(et_device_open(cx, "ref", 0, 1, &dev));
    forwards();
    flops();
    strides_of_stems();
    choices_of_losses();
    outputs();
    side_by_side();
    attention_options();
    deeplab();
    skipped_branches();
    et_device_close(&dev);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "every block is given back");
    et_ctx_free(&cx);
    return done();
}
