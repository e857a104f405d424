/* SPDX-License-Identifier: Apache-2.0 */
/* Models of Hugging Face, torchvision and timm: read under their names they compute
 * what these libraries do, and written back they have these names. Numbers:
 * t/golden/hub.txt. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "core/models/hub_config.h"
#include "core/models/weight_file.h"
#include "etude/nn.h"
#include "etude/model.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/unit/rig.h"

enum { MOST = 512 };

static struct et_ctx *cx;
static struct et_device *dev;

/* ---- one model of the file ---- */

struct tensor {
    char *name;
    int ndim;
    int64_t shape[ETI_ST_MAX_DIMS], count;
};

struct hub {
    char form[32], ours[32], options[256], kind[16];
    char *config; /* NULL: the form has none */
    struct tensor tensor[MOST];
    int n;
    struct et_desc x;
    double want[1024];
    int n_want;
};

static void
read_lengths(const char *text, int *ndim, int64_t *shape)
{
    int used;
    *ndim = 0;
    while (sscanf(text, " %lld%n", (long long *)&shape[*ndim], &used) == 1) {
        text += used;
        (*ndim)++;
    }
}

static void
read_tensor(struct hub *h, const char *text)
{
    struct tensor *t = &h->tensor[h->n++];
    size_t n = strcspn(text, " ");
    if (h->n > MOST)
        bail("more than %d tensors", MOST);
    t->name = strndup(text, n);
    read_lengths(text + n, &t->ndim, t->shape);
    t->count = 1;
    for (int i = 0; i < t->ndim; i++)
        t->count *= t->shape[i];
}

static void
read_input(struct hub *h, const char *text)
{
    int ndim;
    int64_t shape[ET_MAX_DIMS];
    size_t n = strcspn(text, " ");
    snprintf(h->kind, sizeof h->kind, "%.*s", (int)n, text);
    read_lengths(text + n, &ndim, shape);
    bool tokens = strcmp(h->kind, "image") != 0;
    et_desc_init(&h->x, tokens ? ET_I32 : ET_F32, ndim, shape, ET_ROW_MAJOR);
}

static void
read_output(struct hub *h, const char *text)
{
    int used;
    for (h->n_want = 0; sscanf(text, " %lf%n", &h->want[h->n_want], &used) == 1;
         h->n_want++)
        text += used;
}

/* The next model of F; false: that was all. */
static bool
read_hub(FILE *f, struct hub *h)
{
    static char line[1 << 16];
    memset(h, 0, sizeof *h);
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        char *rest = line + strcspn(line, " ");
        rest += *rest == ' ';
        if (sscanf(line, "model %31s %31s", h->form, h->ours) == 2)
            continue;
        if (strncmp(line, "config ", 7) == 0)
            h->config = strdup(rest);
        else if (strncmp(line, "options ", 8) == 0)
            snprintf(h->options, sizeof h->options, "%s", rest);
        else if (strncmp(line, "tensor ", 7) == 0)
            read_tensor(h, rest);
        else if (strncmp(line, "input ", 6) == 0)
            read_input(h, rest);
        else if (strncmp(line, "output ", 7) == 0) {
            read_output(h, rest);
            return true;
        }
    }
    return false;
}

static void
free_hub(struct hub *h)
{
    for (int i = 0; i < h->n; i++)
        free(h->tensor[i].name);
    free(h->config);
}

/* make_hub.py's value(). */
static void
fill(const struct tensor *t, float *out)
{
    size_t n = strlen(t->name);
    uint32_t stream = (uint32_t)crc32(0, (const Bytef *)t->name, (uInt)n) & 0xfffff;
    bool variance = n > 11 && strcmp(t->name + n - 11, "running_var") == 0;
    bool weight = n > 6 && strcmp(t->name + n - 6, "weight") == 0;
    double scale = sqrt(3 / ((double)t->count / (t->ndim ? (double)t->shape[0] : 1)));
    rig_values(stream, t->count, out);
    for (int64_t i = 0; i < t->count; i++)
        out[i] = (float)(variance      ? 1.25 + 0.25 * out[i]
                         : t->ndim < 2 ? 0.1 * out[i] + weight
                                       : out[i] * scale);
}

/* ---- files ---- */

/* The tensors of H with their values, as a safetensors file; those from FIRST to LAST
 * alone. */
static void
write_weights(const struct hub *h, const char *name, int first, int last)
{
    static struct eti_st_tensor v[MOST];
    int64_t at = 0, bytes;
    uint8_t *header;
    for (int i = first; i < last; i++) {
        struct eti_st_tensor *t = &v[i - first];
        *t = (struct eti_st_tensor){.name = h->tensor[i].name,
                                    .dtype = ET_F32,
                                    .ndim = h->tensor[i].ndim,
                                    .begin = at,
                                    .end = at + h->tensor[i].count * 4};
        memcpy(t->shape, h->tensor[i].shape, sizeof t->shape);
        at = t->end;
    }
    need(cx, eti_st_print(cx, v, last - first, &header, &bytes));
    uint8_t *all = malloc((size_t)(bytes + at) + 1);
    memcpy(all, header, (size_t)bytes);
    for (int i = first; i < last; i++)
        fill(&h->tensor[i], (float *)(void *)(all + bytes + v[i - first].begin));
    write_file(name, all, (size_t)(bytes + at), false);
    et_free(cx, header);
    free(all);
}

static char *
in_scratch(const char *name, char path[ETI_PATH_MAX])
{
    snprintf(path, ETI_PATH_MAX, "%s/%s", scratch_folder(), name);
    return path;
}

/* ---- models ---- */

static struct et_model *
make(const struct hub *h)
{
    const struct et_model_class *type = et_model_class_find(h->ours);
    const struct et_model_facts facts = {.channels = 3,
                                         .height = h->x.shape[2],
                                         .width = h->x.shape[3],
                                         .num_classes = 5};
    struct et_model *m;
    void *options;
    char name[32], value[32];
    int used;
    need(cx, et_options_new(cx, &type->info, NULL, &options));
    for (const char *o = h->options; sscanf(o, " %31s %31s%n", name, value, &used) == 2;
         o += used)
        need(cx, et_options_set(cx, type->info.options, options, name, value));
    need(cx, et_model_new(cx, type, options, &facts, &m));
    et_options_free(&type->info, &options);
    return m;
}

/* As its form has it: a folder, or a file. */
static struct et_model *
load(const struct hub *h)
{
    char path[ETI_PATH_MAX];
    struct et_model *m;
    write_weights(h, "model.safetensors", 0, h->n);
    if (!h->config) {
        m = make(h);
        need(cx, et_model_load_weights(cx, m, in_scratch("model.safetensors", path)));
        return m;
    }
    write_file("config.json", h->config, strlen(h->config), false);
    need(cx, et_model_from_folder(cx, scratch_folder(), NULL, &m));
    return m;
}

/* make_hub.py's mask() and kinds(). */
static void
add_fields(struct et_samples *s, const struct hub *h)
{
    static const char *const names[] = {"attention_mask", "token_type"};
    int32_t v[64];
    const int64_t n = h->x.shape[0], t = h->x.shape[1];
    for (int k = 0; k < 2; k++) {
        struct et_named_tensor *field = &s->other[s->n_others++];
        for (int64_t i = 0; i < n * t; i++)
            v[i] = k == 0 ? i < n * t - 2 : i % t >= 3;
        field->name = names[k];
        need(cx, et_tensor_new(cx, dev, ET_I32, 2, h->x.shape, ET_ROW_MAJOR, names[k],
                               &field->tensor));
        need(cx, et_tensor_write(cx, field->tensor, v, (size_t)(n * t) * sizeof *v));
    }
}

/* The greatest distance of what M computes from what it should, by the greatest of
 * those numbers. */
static double
distance(struct et_model *m, const struct hub *h)
{
    int64_t count = et_desc_count(&h->x);
    struct et_graph *g;
    struct et_tensor *x;
    float *v = malloc((size_t)count * sizeof *v), got[1024];
    double most = 0, worst = 0;
    need(cx, et_module_bind(cx, m->root, dev, ET_PARAM | ET_BUFFER, 0));
    need(cx, et_graph_new(cx, dev, &g));
    need(cx, et_tensor_new(cx, dev, h->x.dtype, h->x.ndim, h->x.shape, ET_ROW_MAJOR,
                           "x", &x));
    rig_values(7, count, v);
    for (int64_t i = 0; h->x.dtype == ET_I32 && i < count; i++)
        ((int32_t *)(void *)v)[i] = (int32_t)((v[i] + 1) / 2 * 11);
    need(cx, et_tensor_write(cx, x, v, (size_t)count * sizeof *v));
    struct et_samples s = {.x = x, .n = h->x.shape[0]};
    struct et_forward f = {.g = g, .samples = &s};
    if (strcmp(h->kind, "pairs") == 0)
        add_fields(&s, h);
    struct et_tensor *y = et_model_forward(m, &f, x);
    need(cx, et_eval(g, &y, 1));
    is_int(et_desc_count(&y->desc), h->n_want, "%s's %s gives as many numbers", h->form,
           h->ours);
    need(cx, et_tensor_read(cx, y, got, (size_t)h->n_want * sizeof *got));
    for (int i = 0; i < h->n_want; i++) {
        most = fmax(most, fabs(h->want[i]));
        worst = fmax(worst, fabs(got[i] - h->want[i]));
    }
    et_graph_free(&g);
    et_tensor_free(&x);
    for (int i = 0; i < s.n_others; i++)
        et_tensor_free(&s.other[i].tensor);
    free(v);
    return worst / most;
}

/* Is each tensor of H in the file at PATH, with its values, and no other but counters
 * of batches? */
static bool
is_written(const struct hub *h, const char *path)
{
    struct eti_weight_file f;
    int found = 0, counters = 0;
    need(cx, eti_weight_file_open(cx, path, &f));
    for (int64_t k = 0; k < f.header.n; k++) {
        const struct eti_st_tensor *t = &f.header.v[k];
        counters += strstr(t->name, "num_batches_tracked") != NULL;
        for (int i = 0; i < h->n; i++) {
            const struct tensor *want = &h->tensor[i];
            size_t bytes = (size_t)want->count * sizeof(float);
            if (strcmp(want->name, t->name) != 0 || want->ndim != t->ndim ||
                memcmp(want->shape, t->shape, (size_t)t->ndim * sizeof *t->shape) != 0)
                continue;
            float *a = malloc(bytes + 1), *b = malloc(bytes + 1);
            fill(want, a);
            need(cx, eti_weight_file_read(&f, t, 0, b, (int64_t)bytes));
            found += memcmp(a, b, bytes) == 0;
            free(a);
            free(b);
        }
    }
    if (found != h->n || found + counters != f.header.n)
        diag("%d of %d tensors, %d counters, %lld in the file", found, h->n, counters,
             (long long)f.header.n);
    bool all = found == h->n && found + counters == f.header.n;
    eti_weight_file_close(&f);
    return all;
}

/* What the data say counts, not a folder's config: how large pictures are; and weights
 * of other classes do not fit. */
static void
data_facts(const struct hub *h)
{
    const int64_t *shape = h->x.shape;
    struct et_model_facts facts = {
        .channels = shape[1], .height = shape[2], .width = shape[3]};
    struct et_model *m = NULL;
    if (!h->config || h->x.ndim != 4)
        return;
    need(cx, et_model_from_folder(cx, scratch_folder(), &facts, &m));
    ok(distance(m, h) < 1e-5, "%s's %s is the same for data of its shape", h->form,
       h->ours);
    et_model_free(&m);
    facts.height = facts.width = 2 * shape[2];
    et_status status = et_model_from_folder(cx, scratch_folder(), &facts, &m);
    const bool is_larger = status == ET_OK && m->facts.height == 2 * shape[2];
    ok(is_larger || strlen(take_error(cx)) > 0,
       "for larger pictures it is a network of these, or refused");
    if (status == ET_OK)
        et_model_free(&m);
    facts.height = facts.width = shape[2];
    facts.num_classes = 77;
    status = et_model_from_folder(cx, scratch_folder(), &facts, &m);
    ok(status != ET_OK && !m && strstr(take_error(cx), "77"),
       "and for data of 77 classes");
}

static void
one_hub(const struct hub *h)
{
    char path[ETI_PATH_MAX];
    struct et_model *m = load(h), *again;
    data_facts(h);
    is_str(m->type->info.name, h->ours, "a model of %s is our %s", h->form, h->ours);
    double d = distance(m, h);
    ok(d < 1e-5, "%s's %s computes the same here (%.1e)", h->form, h->ours, d);
    in_scratch("again", path);
    need(cx, et_model_export(cx, m, h->form, 0, path));
    ok(is_written(h, path), "%s's %s is written under the names it was read with",
       h->form, h->ours);
    if (h->config) {
        need(cx, et_model_from_folder(cx, path, NULL, &again));
        ok(distance(again, h) < 1e-5, "and what its config says is the same network");
        et_model_free(&again);
        snprintf(path + strlen(path), ETI_PATH_MAX - strlen(path),
                 "/model.safetensors");
        remove(path);
        in_scratch("again/config.json", path);
        remove(path);
        in_scratch("again", path);
    }
    remove(path);
    et_model_free(&m);
}

/* ---- shards ---- */

/* The weights in two files, with INDEX, whose %s is the list of tensors. */
static void
write_shards(const struct hub *h, int half, const char *first, const char *second)
{
    char *text;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    char path[ETI_PATH_MAX];
    write_weights(h, "a.safetensors", 0, half);
    write_weights(h, "b.safetensors", half, h->n);
    fprintf(f, "{\"metadata\":{},\"weight_map\":{");
    for (int i = 0; i < h->n; i++)
        fprintf(f, "%s\"%s\":\"%s\"", i ? "," : "", h->tensor[i].name,
                i < half ? first : second);
    fprintf(f, "}}");
    fclose(f);
    write_file("model.safetensors.index.json", text, n, false);
    remove(in_scratch("model.safetensors", path));
    free(text);
}

static void
shards(const struct hub *h)
{
    static const struct {
        const char *second, *want, *first;
    } wrong[] = {
        {"c.safetensors", "c.safetensors", NULL},
        {"../b.safetensors", "is in no file of the folder", NULL},
        {"sub/b.safetensors", "is in no file of the folder", NULL},
        {".b.safetensors", "is in no file of the folder", NULL},
        {"", "is in no file of the folder", NULL},
        {"a.safetensors", "tensors, model.safetensors.index.json names", NULL},
        {"a.safetensors", "' is not in this file by model.safetensors.index.json",
         "b.safetensors"},
    };
    struct et_model *m;
    write_file("config.json", h->config, strlen(h->config), false);
    write_shards(h, h->n / 2, "a.safetensors", "b.safetensors");
    need(cx, et_model_from_folder(cx, scratch_folder(), NULL, &m));
    ok(distance(m, h) < 1e-5, "a model in two files is read as one");
    et_model_free(&m);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_shards(h, h->n / 2, wrong[i].first ? wrong[i].first : "a.safetensors",
                     wrong[i].second);
        et_status status = et_model_from_folder(cx, scratch_folder(), NULL, &m);
        const char *said = take_error(cx);
        ok(status != ET_OK && strstr(said, wrong[i].want),
           "an index that names %s is refused", wrong[i].second);
        if (!strstr(said, wrong[i].want))
            diag("%s", said);
    }
    static const char twice[] = "{\"weight_map\": {\"a\": \"a.safetensors\", "
                                "\"a\": \"b.safetensors\"}}";
    write_file("model.safetensors.index.json", twice, strlen(twice), false);
    is_int(et_model_from_folder(cx, scratch_folder(), NULL, &m), ET_EFORMAT,
           "an index that says twice where a tensor lies is refused");
    ok(strstr(take_error(cx), "index.json:1: duplicate") != NULL, "with its line");
    char path[ETI_PATH_MAX];
    write_weights(h, "model.safetensors", 0, h->n);
    need(cx, et_model_from_folder(cx, scratch_folder(), NULL, &m));
    ok(distance(m, h) < 1e-5, "a file with all of them is read before an index");
    et_model_free(&m);
    remove(in_scratch("model.safetensors.index.json", path));
}

/* A leaf whose tensors are three in the file has them all, or keeps what it had. */
static void
parts_missing(struct hub *h)
{
    static const char *const parts[] = {"query", "key", "value"};
    static const char leaf[] = "blocks.0.attn.qkv.weight";
    for (int k = 0; k < 3; k++) {
        struct et_model *m;
        char path[ETI_PATH_MAX], name[96];
        static float was[1 << 16], is[1 << 16];
        const struct et_model_weights w = {.path =
                                               in_scratch("model.safetensors", path)};
        struct et_leaves l;
        int i = 0;
        snprintf(name, sizeof name, "vit.encoder.layer.0.attention.attention.%s.weight",
                 parts[k]);
        while (i < h->n && strcmp(h->tensor[i].name, name) != 0)
            i++;
        if (i == h->n)
            bail("%s is not in the file", name);
        const struct tensor dropped = h->tensor[i];
        h->tensor[i] = h->tensor[h->n - 1];
        h->tensor[h->n - 1] = dropped;
        write_file("config.json", h->config, strlen(h->config), false);
        write_weights(h, "model.safetensors", 0, h->n);
        need(cx, et_model_from_folder(cx, scratch_folder(), NULL, &m));
        write_weights(h, "model.safetensors", 0, h->n - 1);
        is_int(et_model_load_weights(cx, m, path), ET_EFORMAT, "without %s", name);
        const char *said = take_error(cx);
        if (!ok(strstr(said, "of 'blocks.0.attn.qkv.weight' a part is missing") != NULL,
                "a file does not fit"))
            diag("%s", said);
        need(cx, et_module_leaves(cx, m->root, ET_PARAM, &l));
        const int64_t n = et_desc_count(&et_leaves_find(&l, leaf)->param->desc);
        et_leaves_release(&l);
        need(cx, et_model_set_param(m, leaf, was, n));
        need(cx, et_model_load_some_weights(cx, m, &w));
        need(cx, et_model_get_param(m, leaf, 3, is, n));
        ok(memcmp(was, is, (size_t)n * sizeof *was) == 0,
           "and what it is a part of keeps its values");
        et_model_free(&m);
    }
}

/* ---- numbers of a config ---- */

static const char *
setting(const struct eti_hub_config *c, const char *name)
{
    for (int i = 0; i < c->n; i++)
        if (strcmp(c->setting[i].name, name) == 0)
            return c->setting[i].text;
    return "";
}

/* Reals of any length come out as they were; counts and labels, too. */
static void
numbers(void)
{
    struct et_rng r = et_rng_at(5, ET_RNG_DATA, 0);
    int wrong = 0;
    for (int i = 0; i < 200; i++) {
        struct eti_hub_config c;
        const double p = et_rng_uniform(&r) / (i % 3 == 0 ? 1000 : 1);
        const int heads = 1 + (int)et_rng_below(&r, 9), layers = 1 + i;
        json_t *root =
            json_pack("{s:s, s:f, s:f, s:f, s:i, s:i, s:i}", "model_type", "gpt2",
                      "resid_pdrop", p, "embd_pdrop", p, "attn_pdrop", p / 3, "n_head",
                      heads, "n_layer", layers, "vocab_size", 100 + i);
        if (eti_hub_config_parse(cx, "config.json", root, &c) != ET_OK) {
            diag("%s", take_error(cx));
            wrong++;
        }
        wrong += strtod(setting(&c, "dropout"), NULL) != p ||
                 strtod(setting(&c, "attention_dropout"), NULL) != p / 3 ||
                 strtol(setting(&c, "n_heads"), NULL, 10) != heads ||
                 strtol(setting(&c, "n_layers"), NULL, 10) != layers ||
                 c.facts.vocab_size != 100 + i;
        json_decref(root);
    }
    is_int(wrong, 0, "numbers of config.json are read to their last digit");
}

/* One label of texts is a number to come near to; one of pictures is a class. */
static void
one_label(void)
{
    static const struct {
        const char *type, *of, *loss;
    } rows[] = {
        {"bert", "BertForSequenceClassification", "mse"},
        {"vit", "ViTForImageClassification", ""},
        {"resnet", "ResNetForImageClassification", ""},
    };
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        const int k = (int)i / 2, labels = 1 + (int)i % 2;
        struct eti_hub_config c;
        json_t *root = json_pack("{s:s, s:[s], s:i}", "model_type", rows[k].type,
                                 "architectures", rows[k].of, "num_labels", labels);
        need(cx, eti_hub_config_parse(cx, "config.json", root, &c));
        is_str(setting(&c, "loss"), labels == 1 ? rows[k].loss : "",
               "the loss of %s with num_labels %d", rows[k].of, labels);
        is_int(c.facts.num_classes, labels, "which has so many outputs");
        json_decref(root);
    }
}

/* ---- what is refused ---- */

static void
configs(void)
{
    static const struct {
        const char *text, *want;
    } table[] = {
        {"{\"model_type\":\"gpt2\",\"activation_function\":\"relu\"}",
         "activation_function is relu; gpt2 here has gelu_new|gelu_pytorch_tanh"},
        {"{\"model_type\":\"gpt2\",\"n_inner\":100}",
         "n_inner is 100; gpt2 here has 3072"},
        {"{\"model_type\":\"gpt2\",\"layer_norm_epsilon\":1e-6}",
         "layer_norm_epsilon is 1e-06; gpt2 here has 1e-05"},
        {"{\"model_type\":\"bert\",\"position_embedding_type\":\"relative_key\"}",
         "position_embedding_type is relative_key; bert here has absolute"},
        {"{\"model_type\":\"bert\",\"is_decoder\":true}", "is_decoder is true"},
        {"{\"model_type\":\"bert\",\"architectures\":[\"BertForTokenClassification\"]}",
         "there is no BertForTokenClassification here"},
        {"{\"model_type\":\"vit\",\"qkv_bias\":false}", "qkv_bias is false"},
        {"{\"model_type\":\"vit\",\"image_size\":[224,224]}",
         "image_size is no number and no word"},
        {"{\"model_type\":\"vit\",\"image_size\":0}", "image_size is 0, not a count"},
        {"{\"model_type\":\"resnet\",\"depths\":[1,1,1,1]}",
         "are those of no ResNet here"},
        {"{\"model_type\":\"resnet\",\"depths\":[3,4,6,3,3]}",
         "are those of no ResNet here"},
        {"{\"model_type\":\"resnet\",\"hidden_sizes\":[256,512,1024,2048,4096]}",
         "are those of no ResNet here"},
        {"{\"model_type\":\"llama\"}",
         "model_type is llama; there are gpt2, bert, vit and resnet"},
        {"{}", "model_type is missing"},
        {"[]", "is not a JSON object"},
        {"{\"model_type\":", "config.json:1: "},
    };
    struct et_model *m;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        write_file("config.json", table[i].text, strlen(table[i].text), false);
        et_status status = et_model_from_folder(cx, scratch_folder(), NULL, &m);
        const char *said = take_error(cx);
        ok(status == ET_EFORMAT && strstr(said, table[i].want), "refused: %s",
           table[i].want);
        if (!strstr(said, table[i].want))
            diag("%s", said);
    }
}

/* What is computed here in one way alone must be so in the config: each such member is
 * refused with another value, and taken with its own. */
static void
one_way(void)
{
    static const struct {
        const char *type, *key, *own, *other;
    } rows[] = {
        {"gpt2", "n_inner", "3072", "3071"},
        {"gpt2", "embd_pdrop", "0.1", "0.2"},
        {"gpt2", "activation_function", "\"gelu_new\"", "\"gelu\""},
        {"gpt2", "layer_norm_epsilon", "1e-05", "1e-06"},
        {"gpt2", "scale_attn_weights", "true", "false"},
        {"gpt2", "scale_attn_by_inverse_layer_idx", "false", "true"},
        {"gpt2", "add_cross_attention", "false", "true"},
        {"gpt2", "tie_word_embeddings", "true", "false"},
        {"bert", "intermediate_size", "3072", "3071"},
        {"bert", "hidden_act", "\"gelu\"", "\"relu\""},
        {"bert", "layer_norm_eps", "1e-12", "1e-05"},
        {"bert", "position_embedding_type", "\"absolute\"", "\"relative_key\""},
        {"bert", "is_decoder", "false", "true"},
        {"bert", "add_cross_attention", "false", "true"},
        {"bert", "tie_word_embeddings", "true", "false"},
        {"vit", "intermediate_size", "3072", "1536"},
        {"vit", "hidden_act", "\"gelu\"", "\"relu\""},
        {"vit", "qkv_bias", "true", "false"},
        {"resnet", "embedding_size", "64", "32"},
        {"resnet", "hidden_act", "\"relu\"", "\"gelu\""},
        {"resnet", "downsample_in_first_stage", "false", "true"},
        {"resnet", "downsample_in_bottleneck", "false", "true"},
        {"resnet", "hidden_sizes", "[256, 512, 1024, 2048]", "[256, 512, 1024, 1024]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int other = 0; other < 2; other++) {
            struct eti_hub_config c;
            char text[256];
            const char *value = other ? rows[i].other : rows[i].own;
            snprintf(text, sizeof text, "{\"model_type\":\"%s\",\"%s\":%s}",
                     rows[i].type, rows[i].key, value);
            json_t *root = json_loads(text, 0, NULL);
            is_int(eti_hub_config_parse(cx, "config.json", root, &c),
                   other ? ET_EFORMAT : ET_OK, "%s with %s %s", rows[i].type,
                   rows[i].key, value);
            et_error_clear(cx);
            json_decref(root);
        }
}

/* All of what is written, with an option or a fact of its own in each member. */
static void
written_configs(void)
{
    static const struct {
        const char *model, *options, *want;
    } table[] = {
        {"gpt2",
         "n_layers 1 d_model 12 n_heads 3 max_seq_len 17 dropout 0.3 "
         "attention_dropout 0.2 vocab_size 29",
         "{\"activation_function\":\"gelu_new\",\"add_cross_attention\":false,"
         "\"architectures\":[\"GPT2LMHeadModel\"],\"attn_pdrop\":0.2,"
         "\"embd_pdrop\":0.3,\"layer_norm_epsilon\":1e-5,"
         "\"model_type\":\"gpt2\",\"n_embd\":12,\"n_head\":3,\"n_inner\":48,"
         "\"n_layer\":1,\"n_positions\":17,\"resid_pdrop\":0.3,"
         "\"scale_attn_by_inverse_layer_idx\":false,\"scale_attn_weights\":true,"
         "\"tie_word_embeddings\":true,\"torch_dtype\":\"float32\","
         "\"vocab_size\":29}"},
        {"bert",
         "n_layers 2 d_model 12 n_heads 3 max_seq_len 17 dropout 0.3 "
         "attention_dropout 0.2 token_types 4 vocab_size 29",
         "{\"add_cross_attention\":false,"
         "\"architectures\":[\"BertForMaskedLM\"],"
         "\"attention_probs_dropout_prob\":0.2,\"hidden_act\":\"gelu\","
         "\"hidden_dropout_prob\":0.3,\"hidden_size\":12,"
         "\"intermediate_size\":48,\"is_decoder\":false,"
         "\"layer_norm_eps\":1e-12,\"max_position_embeddings\":17,"
         "\"model_type\":\"bert\",\"num_attention_heads\":3,"
         "\"num_hidden_layers\":2,\"position_embedding_type\":\"absolute\","
         "\"tie_word_embeddings\":true,\"torch_dtype\":\"float32\","
         "\"type_vocab_size\":4,\"vocab_size\":29}"},
        {"bert_classifier",
         "n_layers 2 d_model 12 n_heads 3 max_seq_len 17 dropout 0.3 "
         "attention_dropout 0.2 token_types 4 vocab_size 29",
         "{\"add_cross_attention\":false,"
         "\"architectures\":[\"BertForSequenceClassification\"],"
         "\"attention_probs_dropout_prob\":0.2,\"hidden_act\":\"gelu\","
         "\"hidden_dropout_prob\":0.3,\"hidden_size\":12,"
         "\"intermediate_size\":48,\"is_decoder\":false,"
         "\"layer_norm_eps\":1e-12,\"max_position_embeddings\":17,"
         "\"model_type\":\"bert\",\"num_attention_heads\":3,"
         "\"num_hidden_layers\":2,\"num_labels\":5,"
         "\"position_embedding_type\":\"absolute\",\"tie_word_embeddings\":true,"
         "\"torch_dtype\":\"float32\",\"type_vocab_size\":4,\"vocab_size\":29}"},
        {"vit_ti16", "n_layers 1 patch 8 dropout 0.3 attention_dropout 0.2 eps 1e-07",
         "{\"architectures\":[\"ViTForImageClassification\"],"
         "\"attention_probs_dropout_prob\":0.2,\"hidden_act\":\"gelu\","
         "\"hidden_dropout_prob\":0.3,\"hidden_size\":192,\"image_size\":48,"
         "\"intermediate_size\":768,\"layer_norm_eps\":1e-7,"
         "\"model_type\":\"vit\",\"num_attention_heads\":3,\"num_channels\":3,"
         "\"num_hidden_layers\":1,\"num_labels\":5,\"patch_size\":8,"
         "\"qkv_bias\":true,\"torch_dtype\":\"float32\"}"},
        {"resnet18", "",
         "{\"architectures\":[\"ResNetForImageClassification\"],\"depths\":[2,2,"
         "2,2],\"downsample_in_bottleneck\":false,"
         "\"downsample_in_first_stage\":false,\"embedding_size\":64,"
         "\"hidden_act\":\"relu\",\"hidden_sizes\":[64,128,256,512],"
         "\"layer_type\":\"basic\",\"model_type\":\"resnet\",\"num_channels\":3,"
         "\"num_labels\":5,\"torch_dtype\":\"float32\"}"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct hub h = {.x = {.shape = {1, 3, 48, 48}}};
        json_t *root;
        snprintf(h.ours, sizeof h.ours, "%s", table[i].model);
        snprintf(h.options, sizeof h.options, "%s", table[i].options);
        struct et_model *m = make(&h);
        need(cx, eti_hub_config_make(m, &root));
        char *text =
            json_dumps(root, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(6));
        is_str(text, table[i].want, "what is written of %s", table[i].model);
        free(text);
        json_decref(root);
        et_model_free(&m);
    }
}

/* What a config says of a model: "gpt2: vocab_size 50257 ...; facts". */
static const char *
told_config(const char *text)
{
    static char out[1024];
    struct eti_hub_config c;
    json_t *root = json_loads(text, 0, NULL);
    const et_status status = eti_hub_config_parse(cx, "config.json", root, &c);
    json_decref(root);
    if (status != ET_OK) {
        snprintf(out, sizeof out, "%s", take_error(cx));
        return out;
    }
    int n = snprintf(out, sizeof out, "%s:", c.model);
    for (int i = 0; i < c.n; i++)
        n += snprintf(out + n, sizeof out - (size_t)n, " %s %s", c.setting[i].name,
                      c.setting[i].text);
    snprintf(out + n, sizeof out - (size_t)n, "; %dx%dx%d, %d classes, %d words",
             (int)c.facts.channels, (int)c.facts.height, (int)c.facts.width,
             (int)c.facts.num_classes, (int)c.facts.vocab_size);
    return out;
}

/* The defaults are those of transformers' configuration_<type>.py. */
static void
read_configs(void)
{
#define BERT_SIZES                                                                     \
    "vocab_size 30522 d_model 768 n_layers 12 n_heads 12 max_seq_len 512 dropout 0.1 " \
    "attention_dropout 0.1 token_types 2"
#define VIT_REST                                                                       \
    " n_layers 12 n_heads 12 patch 16 dropout 0.0 attention_dropout 0.0 eps 1e-12 "    \
    "in_channels 3"
    static const struct {
        const char *text, *want;
    } table[] = {
        {"{\"model_type\":\"gpt2\"}",
         "gpt2: vocab_size 50257 max_seq_len 1024 d_model 768 n_layers 12 n_heads 12 "
         "dropout 0.1 attention_dropout 0.1; 0x0x0, 0 classes, 50257 words"},
        {"{\"model_type\":\"gpt2\",\"n_embd\":64,\"n_inner\":256,\"n_positions\":32,"
         "\"n_layer\":3,\"n_head\":4,\"vocab_size\":99,\"resid_pdrop\":"
         "0.30000000000000004,\"embd_pdrop\":0.30000000000000004,\"attn_pdrop\":0,"
         "\"activation_function\":\"gelu_pytorch_tanh\",\"layer_norm_epsilon\":"
         "0.000010}",
         "gpt2: vocab_size 99 max_seq_len 32 d_model 64 n_layers 3 n_heads 4 dropout "
         "0.30000000000000004 attention_dropout 0; 0x0x0, 0 classes, 99 words"},
        {"{\"model_type\":\"gpt2\",\"n_inner\":null,\"embd_pdrop\":0.2}",
         "config.json: embd_pdrop is 0.2; gpt2 here has 0.1"},
        {"{\"model_type\":\"bert\"}",
         "bert: " BERT_SIZES "; 0x0x0, 0 classes, 30522 words"},
        {"{\"model_type\":\"bert\",\"architectures\":[\"BertLMHeadModel\"]}",
         "bert: " BERT_SIZES "; 0x0x0, 0 classes, 30522 words"},
        {"{\"model_type\":\"bert\",\"architectures\":[\"BertForSequenceClassification"
         "\"]}",
         "bert_classifier: " BERT_SIZES
         " num_classes 2; 0x0x0, 2 classes, 30522 words"},
        {"{\"model_type\":\"bert\",\"architectures\":[\"BertForSequenceClassification"
         "\"],\"num_labels\":4,\"id2label\":{\"0\":\"a\",\"1\":\"b\",\"2\":\"c\"}}",
         "bert_classifier: " BERT_SIZES
         " num_classes 3; 0x0x0, 3 classes, 30522 words"},
        {"{\"model_type\":\"bert\",\"architectures\":[\"BertForSequenceClassification"
         "\"],\"num_labels\":1}",
         "bert_classifier: " BERT_SIZES
         " loss mse num_classes 1; 0x0x0, 1 classes, 30522 words"},
        {"{\"model_type\":\"vit\"}", "vit_b16: d_model 768" VIT_REST
                                     " num_classes 2; 3x224x224, 2 classes, 0 words"},
        {"{\"model_type\":\"vit\",\"hidden_size\":192,\"intermediate_size\":768,"
         "\"num_labels\":1}",
         "vit_ti16: d_model 192" VIT_REST
         " num_classes 1; 3x224x224, 1 classes, 0 words"},
        {"{\"model_type\":\"vit\",\"hidden_size\":384,\"intermediate_size\":1536,"
         "\"image_size\":1}",
         "vit_s16: d_model 384" VIT_REST " num_classes 2; 3x1x1, 2 classes, 0 words"},
        {"{\"model_type\":\"vit\",\"hidden_size\":1024,\"intermediate_size\":4096,"
         "\"image_size\":16777216}",
         "vit_l16: d_model 1024" VIT_REST
         " num_classes 2; 3x16777216x16777216, 2 classes, 0 words"},
        {"{\"model_type\":\"vit\",\"image_size\":16777217}",
         "config.json: image_size is 16777217, not a count"},
        {"{\"model_type\":\"resnet\"}",
         "resnet50: in_channels 3 num_classes 2; 3x0x0, 2 classes, 0 words"},
        {"{\"model_type\":\"resnet\",\"depths\":[3,4,23,3],\"num_channels\":1}",
         "resnet101: in_channels 1 num_classes 2; 1x0x0, 2 classes, 0 words"},
        {"{\"model_type\":\"resnet\",\"depths\":[3,8,36,3]}",
         "resnet152: in_channels 3 num_classes 2; 3x0x0, 2 classes, 0 words"},
        {"{\"model_type\":\"resnet\",\"layer_type\":\"basic\",\"hidden_sizes\":"
         "[64,128,256,512]}",
         "resnet34: in_channels 3 num_classes 2; 3x0x0, 2 classes, 0 words"},
        {"{\"model_type\":\"resnet\",\"layer_type\":\"basic\",\"hidden_sizes\":"
         "[64,128,256,512],\"depths\":[2,2,2,2]}",
         "resnet18: in_channels 3 num_classes 2; 3x0x0, 2 classes, 0 words"},
        {"{\"model_type\":\"resnet\",\"layer_type\":\"basic\"}",
         "config.json: depths, hidden_sizes and layer_type are those of no ResNet "
         "here: "
         "18, 34, 50, 101 or 152"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        is_str(told_config(table[i].text), table[i].want, "what is read of %s",
               table[i].text);
}

/* What cannot be written as another library's. */
static void
forms(void)
{
    static const struct {
        const char *model, *options, *form, *want;
        et_status status;
    } table[] = {
        {"gpt2", "n_layers 1 position alibi", "hf",
         "Hugging Face's gpt2 has no position alibi", ET_ENOTSUP},
        {"resnet18", "stem small", "hf", "Hugging Face's resnet has no stem small",
         ET_ENOTSUP},
        {"gpt2", "n_layers 1", "timm", "gpt2 has no form 'timm'", ET_ENOTSUP},
        {"lenet", "", "hf", "lenet has no form 'hf'", ET_ENOTSUP},
        {"lenet", "", "keras", "there is no form 'keras'", ET_EINVAL},
    };
    char path[ETI_PATH_MAX];
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct hub h = {.x = {.shape = {1, 3, 32, 32}}};
        snprintf(h.ours, sizeof h.ours, "%s", table[i].model);
        snprintf(h.options, sizeof h.options, "%s", table[i].options);
        struct et_model *m = make(&h);
        et_status status =
            et_model_export(cx, m, table[i].form, 0, in_scratch("again", path));
        ok(status == table[i].status && strstr(take_error(cx), table[i].want),
           "refused: %s", table[i].want);
        et_error_clear(cx);
        et_model_free(&m);
    }
    struct hub h;
    struct et_model *m;
    for (int wide = 0; wide < 2; wide++) {
        h = (struct hub){.ours = "vit_ti16",
                         .x = {.shape = {1, 3, wide ? 32 : 48, wide ? 48 : 32}}};
        m = make(&h);
        is_int(et_model_export(cx, m, "hf", 0, in_scratch("again", path)), ET_ENOTSUP,
               "a ViT of %s images is none of Hugging Face's", wide ? "wide" : "high");
        ok(strstr(take_error(cx), "takes square images alone") != NULL,
           "and why is said");
        et_model_free(&m);
    }
    /* A layer that surgery has put in is not the library's. */
    h = (struct hub){.ours = "resnet18", .x = {.shape = {1, 3, 32, 32}}};
    m = make(&h);
    need(cx, et_module_add(cx, m->root, "more", &et_batch_norm_class,
                           &(struct et_batch_norm_options){.num_features = 5}));
    et_status status =
        et_model_export(cx, m, "torchvision", 0, in_scratch("again", path));
    ok(status == ET_ENOTSUP &&
           strstr(take_error(cx), "an algorithm has changed this resnet18, at 'more."),
       "a network with another layer is no ResNet of torchvision's");
    et_model_free(&m);
    m = make(&h);
    struct et_leaves l;
    need(cx, et_module_leaves(cx, m->root, ET_PARAM, &l));
    l.v[3].param->desc.shape[0]++;
    status = et_model_export(cx, m, "torchvision", 0, in_scratch("again", path));
    const char *said = take_error(cx);
    ok(status == ET_ENOTSUP && strstr(said, "changed this resnet18, at") &&
           strstr(said, l.v[3].name),
       "nor is one with a layer of another shape");
    l.v[3].param->desc.shape[0]--;
    et_leaves_release(&l);
    et_model_free(&m);
}

int
main(void)
{
    static struct hub h;
    FILE *f = rig_golden("hub.txt");
    int n = 0;
    cx = need_ctx();
    need(cx, et_device_open(cx, "ref", 0, 0, &dev));
    for (; read_hub(f, &h); n++) {
        one_hub(&h);
        if (strcmp(h.ours, "gpt2") == 0)
            shards(&h);
        else if (strncmp(h.ours, "vit", 3) == 0 && strcmp(h.form, "hf") == 0)
            parts_missing(&h);
        free_hub(&h);
    }
    fclose(f);
    ok(n >= 10, "%d models of other libraries are compared", n);
    configs();
    numbers();
    one_label();
    one_way();
    read_configs();
    written_configs();
    forms();
    et_device_close(&dev);
    et_ctx_free(&cx);
    return done();
}
