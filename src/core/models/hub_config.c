/* SPDX-License-Identifier: Apache-2.0 */
/* hub_config.c: see hub_config.h.
 *
 * One table for each model_type says which members are options here, and which must
 * have one value because nothing else is computed. Members that no table names say
 * nothing about the network (transformers, configuration_<type>.py; what is left out of
 * a file has the default that stands there). */
#include "core/models/hub_config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/models/weight_folder.h"

/* What a member becomes where it is no option. */
enum fact { NO_FACT, VOCABULARY, CHANNELS, SIDE };

struct row {
    const char *key;    /* member of config.json; NULL: of ours alone */
    const char *option; /* its name here; NULL: none */
    const char *def;    /* its value where the file lacks it */
    const char *must; /* values that are possible, '|' between; the first is written */
    const char *same; /* it must be that member's value, times TIMES */
    int times;
    enum fact fact;
};

struct type {
    const char *name;       /* model_type */
    const char *models;     /* ours, blanks between */
    const struct row *rows; /* ends with neither key nor option */
    /* Our model for the config; NULL, with an error: none. */
    const char *(*choose)(struct et_ctx *cx, const char *path, const json_t *root);
    const char *architecture;
    /* Adds what no row says. */
    int (*add)(const struct et_model *m, json_t *root);
};

/* ---- values as text ---- */

/* X with DIGITS of them, or as many more as it takes to be read as X again. */
static void
number_text(double x, int digits, char out[32])
{
    for (; digits <= 17; digits++) {
        snprintf(out, 32, "%.*g", digits, x);
        if (strtod(out, NULL) == x)
            return;
    }
}

/* As YAML and our tables write it: "null", "true", "0.1", "1e-05". False: a list or an
 * object, or too long. */
static bool
value_text(const json_t *v, char out[32])
{
    if (json_is_real(v)) {
        number_text(json_real_value(v), 6, out);
        return true;
    }
    if (json_is_integer(v))
        return snprintf(out, 32, "%lld", (long long)json_integer_value(v)) < 32;
    if (json_is_string(v))
        return snprintf(out, 32, "%s", json_string_value(v)) < 32;
    snprintf(out, 32, "%s",
             json_is_true(v)    ? "true"
             : json_is_false(v) ? "false"
                                : "null");
    return !json_is_array(v) && !json_is_object(v);
}

static json_t *
text_value(const char *text)
{
    char *end;
    if (strcmp(text, "null") == 0)
        return json_null();
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        return json_boolean(*text == 't');
    long long i = strtoll(text, &end, 10);
    if (*text && !*end)
        return json_integer(i);
    double x = strtod(text, &end);
    return *text && !*end ? json_real(x) : json_string(text);
}

/* Is TEXT one of those in MUST, as words or as numbers? */
static bool
is_one_of(const char *text, const char *must)
{
    for (const char *at = must;; at++) {
        char one[32], *end;
        size_t n = strcspn(at, "|");
        snprintf(one, sizeof one, "%.*s", (int)n, at);
        double x = strtod(one, &end);
        bool is_number = *one && !*end;
        if (strcmp(one, text) == 0 || (is_number && strtod(text, &end) == x && !*end))
            return true;
        at += n;
        if (!*at)
            return false;
    }
}

/* ---- tables ---- */

#define MUST(its_key, its_values)                                                      \
    {                                                                                  \
        .key = its_key, .def = its_values, .must = its_values                          \
    }

static const struct row gpt2_rows[] = {
    {.key = "vocab_size", .option = "vocab_size", .def = "50257", .fact = VOCABULARY},
    {.key = "n_positions", .option = "max_seq_len", .def = "1024"},
    {.key = "n_embd", .option = "d_model", .def = "768"},
    {.key = "n_layer", .option = "n_layers", .def = "12"},
    {.key = "n_head", .option = "n_heads", .def = "12"},
    {.key = "resid_pdrop", .option = "dropout", .def = "0.1"},
    {.key = "embd_pdrop", .def = "0.1", .same = "resid_pdrop", .times = 1},
    {.key = "attn_pdrop", .option = "attention_dropout", .def = "0.1"},
    {.key = "n_inner", .def = "null", .same = "n_embd", .times = 4},
    {.key = "activation_function",
     .def = "gelu_new",
     .must = "gelu_new|gelu_pytorch_tanh"},
    MUST("layer_norm_epsilon", "1e-05"),
    MUST("scale_attn_weights", "true"),
    MUST("scale_attn_by_inverse_layer_idx", "false"),
    MUST("add_cross_attention", "false"),
    MUST("tie_word_embeddings", "true"),
    {.option = "position", .must = "learned"},
    {0},
};

static const struct row bert_rows[] = {
    {.key = "vocab_size", .option = "vocab_size", .def = "30522", .fact = VOCABULARY},
    {.key = "hidden_size", .option = "d_model", .def = "768"},
    {.key = "num_hidden_layers", .option = "n_layers", .def = "12"},
    {.key = "num_attention_heads", .option = "n_heads", .def = "12"},
    {.key = "max_position_embeddings", .option = "max_seq_len", .def = "512"},
    {.key = "hidden_dropout_prob", .option = "dropout", .def = "0.1"},
    {.key = "attention_probs_dropout_prob",
     .option = "attention_dropout",
     .def = "0.1"},
    {.key = "type_vocab_size", .option = "token_types", .def = "2"},
    {.key = "intermediate_size", .def = "3072", .same = "hidden_size", .times = 4},
    MUST("hidden_act", "gelu"),
    MUST("layer_norm_eps", "1e-12"),
    MUST("position_embedding_type", "absolute"),
    MUST("is_decoder", "false"),
    MUST("add_cross_attention", "false"),
    MUST("tie_word_embeddings", "true"),
    {0},
};

static const struct row vit_rows[] = {
    {.key = "hidden_size", .option = "d_model", .def = "768"},
    {.key = "num_hidden_layers", .option = "n_layers", .def = "12"},
    {.key = "num_attention_heads", .option = "n_heads", .def = "12"},
    {.key = "patch_size", .option = "patch", .def = "16"},
    {.key = "hidden_dropout_prob", .option = "dropout", .def = "0.0"},
    {.key = "attention_probs_dropout_prob",
     .option = "attention_dropout",
     .def = "0.0"},
    {.key = "layer_norm_eps", .option = "eps", .def = "1e-12"},
    {.key = "num_channels", .option = "in_channels", .def = "3", .fact = CHANNELS},
    {.key = "image_size", .def = "224", .fact = SIDE},
    {.key = "intermediate_size", .def = "3072", .same = "hidden_size", .times = 4},
    MUST("hidden_act", "gelu"),
    MUST("qkv_bias", "true"),
    {0},
};

static const struct row resnet_rows[] = {
    {.key = "num_channels", .option = "in_channels", .def = "3", .fact = CHANNELS},
    MUST("embedding_size", "64"),
    MUST("hidden_act", "relu"),
    MUST("downsample_in_first_stage", "false"),
    MUST("downsample_in_bottleneck", "false"),
    {.option = "stem", .must = "null|imagenet"},
    {0},
};

/* ---- which model ---- */

static const char *
choose_gpt2(struct et_ctx *cx, const char *path, const json_t *root)
{
    (void)cx;
    (void)path;
    (void)root;
    return "gpt2";
}

/* What a config without architectures is for: BertModel. */
static const char *
choose_bert(struct et_ctx *cx, const char *path, const json_t *root)
{
    static const char *const masked[] = {"BertForMaskedLM", "BertForPreTraining",
                                         "BertModel", "BertLMHeadModel", NULL};
    const char *name =
        json_string_value(json_array_get(json_object_get(root, "architectures"), 0));
    for (const char *const *m = masked; *m; m++)
        if (!name || strcmp(name, *m) == 0)
            return "bert";
    if (strcmp(name, "BertForSequenceClassification") == 0)
        return "bert_classifier";
    et_status said = ET_FAIL(cx, ET_EFORMAT, "%s: there is no %.64s here", path, name);
    (void)said; /* NULL says it */
    return NULL;
}

/* By its width; what else differs is an option of each. */
static const char *
choose_vit(struct et_ctx *cx, const char *path, const json_t *root)
{
    static const struct {
        int64_t width;
        const char *name;
    } sizes[] = {{192, "vit_ti16"}, {384, "vit_s16"}, {1024, "vit_l16"}};
    const json_t *width = json_object_get(root, "hidden_size");
    (void)cx;
    (void)path;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (json_integer_value(width) == sizes[i].width)
            return sizes[i].name;
    return "vit_b16";
}

static const struct resnet {
    const char *model, *layer_type;
    int depths[4];
} resnets[] = {
    {"resnet18", "basic", {2, 2, 2, 2}},
    {"resnet34", "basic", {3, 4, 6, 3}},
    {"resnet50", "bottleneck", {3, 4, 6, 3}},
    {"resnet101", "bottleneck", {3, 4, 23, 3}},
    {"resnet152", "bottleneck", {3, 8, 36, 3}},
};

static int
resnet_width(const struct resnet *r, int stage)
{
    return (strcmp(r->layer_type, "basic") == 0 ? 64 : 256) << stage;
}

/* Is LIST, or where there is none the default of R50, as R has it? */
static bool
has_numbers(const json_t *list, const struct resnet *r, bool widths)
{
    static const struct resnet *const def = &resnets[2];
    for (int i = 0; i < 4; i++) {
        int want = widths ? resnet_width(r, i) : r->depths[i];
        int64_t has = !list ? widths ? resnet_width(def, i) : def->depths[i]
                            : json_integer_value(json_array_get(list, (size_t)i));
        if (has != want)
            return false;
    }
    return !list || json_array_size(list) == 4;
}

static const char *
choose_resnet(struct et_ctx *cx, const char *path, const json_t *root)
{
    const char *type = json_string_value(json_object_get(root, "layer_type"));
    const json_t *depths = json_object_get(root, "depths");
    const json_t *widths = json_object_get(root, "hidden_sizes");
    for (size_t i = 0; i < sizeof resnets / sizeof *resnets; i++)
        if (strcmp(type ? type : "bottleneck", resnets[i].layer_type) == 0 &&
            has_numbers(depths, &resnets[i], false) &&
            has_numbers(widths, &resnets[i], true))
            return resnets[i].model;
    et_status said = ET_FAIL(cx, ET_EFORMAT,
                             "%s: depths, hidden_sizes and layer_type are those of no "
                             "ResNet here: 18, 34, 50, 101 or 152",
                             path);
    (void)said;
    return NULL;
}

static int
add_resnet(const struct et_model *m, json_t *root)
{
    for (size_t i = 0; i < sizeof resnets / sizeof *resnets; i++) {
        const struct resnet *r = &resnets[i];
        json_t *widths = json_array();
        if (strcmp(r->model, m->type->info.name) != 0) {
            json_decref(widths);
            continue;
        }
        for (int k = 0; k < 4; k++)
            json_array_append_new(widths, json_integer(resnet_width(r, k)));
        return json_object_set_new(root, "layer_type", json_string(r->layer_type)) |
               json_object_set_new(root, "hidden_sizes", widths) |
               json_object_set_new(root, "depths",
                                   json_pack("[i,i,i,i]", r->depths[0], r->depths[1],
                                             r->depths[2], r->depths[3]));
    }
    return -1;
}

static const struct type types[] = {
    {"gpt2", "gpt2", gpt2_rows, choose_gpt2, "GPT2LMHeadModel", NULL},
    {"bert", "bert", bert_rows, choose_bert, "BertForMaskedLM", NULL},
    {"bert", "bert_classifier", bert_rows, choose_bert, "BertForSequenceClassification",
     NULL},
    {"vit", "vit_ti16 vit_s16 vit_b16 vit_l16", vit_rows, choose_vit,
     "ViTForImageClassification", NULL},
    {"resnet", "resnet18 resnet34 resnet50 resnet101 resnet152", resnet_rows,
     choose_resnet, "ResNetForImageClassification", add_resnet},
};

/* ---- reading ---- */

struct reading {
    struct et_ctx *cx;
    const char *path;
    const json_t *root;
    const struct type *type;
    struct eti_hub_config *out;
};

/* The text of row KEY: the file's, else the table's. */
static et_status
row_text(const struct reading *r, const char *key, char out[32])
{
    const json_t *v = json_object_get(r->root, key);
    const struct row *row = r->type->rows;
    while (row->key && strcmp(row->key, key) != 0)
        row++;
    if (!v) {
        snprintf(out, 32, "%s", row->def ? row->def : "null");
        return ET_OK;
    }
    return value_text(v, out)
               ? ET_OK
               : ET_FAIL(r->cx, ET_EFORMAT, "%s: %s is no number and no word", r->path,
                         key);
}

static et_status
refuse(const struct reading *r, const struct row *row, const char *text,
       const char *instead)
{
    return ET_FAIL(r->cx, ET_EFORMAT, "%s: %s is %s; %s here has %s", r->path, row->key,
                   text, r->type->name, instead);
}

static et_status
check_row(const struct reading *r, const struct row *row, const char *text)
{
    char other[32], want[32];
    if (row->must && !is_one_of(text, row->must))
        return refuse(r, row, text, row->must);
    if (!row->same || strcmp(text, "null") == 0)
        return ET_OK;
    ET_TRY(row_text(r, row->same, other));
    number_text(strtod(other, NULL) * row->times, 15, want);
    return is_one_of(text, want) ? ET_OK : refuse(r, row, text, want);
}

static et_status
set(const struct reading *r, const char *name, const char *text)
{
    struct eti_hub_config *out = r->out;
    if (out->n == ETI_HUB_SETTINGS)
        return ET_FAIL(r->cx, ET_EFORMAT, "%s says too much", r->path);
    struct eti_hub_setting *s = &out->setting[out->n++];
    snprintf(s->name, sizeof s->name, "%s", name);
    snprintf(s->text, sizeof s->text, "%s", text);
    return ET_OK;
}

static et_status
take_fact(const struct reading *r, const struct row *row, const char *text)
{
    struct et_model_facts *f = &r->out->facts;
    int64_t *const place[] = {
        [VOCABULARY] = &f->vocab_size,
        [CHANNELS] = &f->channels,
        [SIDE] = &f->height,
    };
    char *end;
    long long n = strtoll(text, &end, 10);
    if (row->fact == NO_FACT)
        return ET_OK;
    if (*end || n < 1 || n > 1 << 24)
        return ET_FAIL(r->cx, ET_EFORMAT, "%s: %s is %s, not a count", r->path,
                       row->key, text);
    *place[row->fact] = n;
    f->width = f->height;
    return ET_OK;
}

/* num_labels is how many id2label names; without either it is 2. */
static int64_t
count_labels(const json_t *root)
{
    const json_t *labels = json_object_get(root, "id2label");
    const json_t *n = json_object_get(root, "num_labels");
    return json_is_object(labels) ? (int64_t)json_object_size(labels)
           : json_is_integer(n)   ? json_integer_value(n)
                                  : 2;
}

static et_status
read_rows(const struct reading *r)
{
    for (const struct row *row = r->type->rows; row->key || row->option; row++) {
        char text[32];
        if (!row->key)
            continue;
        ET_TRY(row_text(r, row->key, text));
        ET_TRY(check_row(r, row, text));
        ET_TRY(take_fact(r, row, text));
        if (row->option && strcmp(text, "null") != 0)
            ET_TRY(set(r, row->option, text));
    }
    return ET_OK;
}

static et_status
read_labels(const struct reading *r, const struct et_model_class *type)
{
    char text[32];
    if (type->task == ET_TASK_LANGUAGE)
        return ET_OK;
    int64_t n = count_labels(r->root);
    if (n < 1 || n > 1 << 24)
        return ET_FAIL(r->cx, ET_EFORMAT, "%s: num_labels is no count", r->path);
    snprintf(text, sizeof text, "%lld", (long long)n);
    r->out->facts.num_classes = n;
    /* One output is a number (BertForSequenceClassification.forward). */
    if (type->reads_tokens && n == 1)
        ET_TRY(set(r, "loss", "mse"));
    return set(r, "num_classes", text);
}

static const struct type *
find_type(const char *name)
{
    for (size_t i = 0; name && i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, name) == 0)
            return &types[i];
    return NULL;
}

et_status
eti_hub_config_parse(struct et_ctx *cx, const char *path, const json_t *root,
                     struct eti_hub_config *out)
{
    const char *name = json_string_value(json_object_get(root, "model_type"));
    struct reading r = {cx, path, root, find_type(name), out};
    *out = (struct eti_hub_config){0};
    if (!r.type)
        return ET_FAIL(cx, ET_EFORMAT,
                       "%s: model_type is %.64s; there are gpt2, bert, vit and resnet",
                       path, name ? name : "missing");
    out->model = r.type->choose(cx, path, root);
    if (!out->model)
        return ET_EFORMAT;
    ET_TRY(read_rows(&r));
    return read_labels(&r, et_model_class_find(out->model));
}

et_status
eti_hub_config_read(struct et_ctx *cx, const char *folder, struct eti_hub_config *out)
{
    char path[ETI_PATH_MAX];
    json_t *root;
    *out = (struct eti_hub_config){0};
    ET_TRY(eti_file_path(cx, path, folder, ETI_FOLDER_CONFIG));
    ET_TRY(eti_folder_json(cx, folder, ETI_FOLDER_CONFIG, &root));
    et_status status = eti_hub_config_parse(cx, path, root, out);
    json_decref(root);
    return status;
}

/* ---- writing ---- */

static const struct et_option *
find_option(const struct et_model *m, const char *name)
{
    for (const struct et_option *o = m->type->info.options; o->name; o++)
        if (strcmp(o->name, name) == 0)
            return o;
    return NULL;
}

/* The text of M's option NAME. */
static et_status
option_text(const struct et_model *m, const char *name, char out[32])
{
    const struct et_option *o = find_option(m, name);
    char *text;
    if (!o)
        return ET_FAIL(m->cx, ET_EINVAL, "%s has no option %s", m->type->info.name,
                       name);
    ET_TRY(et_option_text(m->cx, o, m->options, &text));
    snprintf(out, 32, "%s", text);
    et_free(m->cx, text);
    return ET_OK;
}

/* What M has at ROW, as text. */
static et_status
our_text(const struct et_model *m, const struct type *type, const struct row *row,
         char out[32])
{
    char other[32];
    switch (row->fact) {
    case VOCABULARY:
        snprintf(out, 32, "%lld",
                 (long long)(m->type->task == ET_TASK_LANGUAGE ? m->num_classes
                                                               : m->facts.vocab_size));
        return ET_OK;
    case CHANNELS:
        snprintf(out, 32, "%lld", (long long)m->facts.channels);
        return ET_OK;
    case SIDE:
        snprintf(out, 32, "%lld", (long long)m->facts.height);
        return ET_OK;
    case NO_FACT:
        break;
    }
    if (row->option)
        return option_text(m, row->option, out);
    if (row->same) {
        const struct row *of = type->rows;
        while (strcmp(of->key, row->same) != 0)
            of++;
        ET_TRY(option_text(m, of->option, other));
        number_text(strtod(other, NULL) * row->times, 15, out);
        return ET_OK;
    }
    snprintf(out, 32, "%.*s", (int)strcspn(row->must, "|"), row->must);
    return ET_OK;
}

static et_status
add_row(const struct et_model *m, const struct type *type, const struct row *row,
        json_t *root)
{
    char text[32];
    ET_TRY(our_text(m, type, row, text));
    if (row->option && row->must && !is_one_of(text, row->must))
        return ET_FAIL(m->cx, ET_ENOTSUP, "Hugging Face's %s has no %s %s", type->name,
                       row->option, text);
    if (row->fact == SIDE && m->facts.height != m->facts.width)
        return ET_FAIL(m->cx, ET_ENOTSUP, "Hugging Face's %s takes square images alone",
                       type->name);
    return !row->key || json_object_set_new(root, row->key, text_value(text)) == 0
               ? ET_OK
               : ET_FAIL(m->cx, ET_ENOMEM, "no memory for %s", row->key);
}

static et_status
add_rows(const struct et_model *m, const struct type *type, json_t *root)
{
    for (const struct row *row = type->rows; row->key || row->option; row++)
        ET_TRY(add_row(m, type, row, root));
    int failed = m->type->task != ET_TASK_LANGUAGE &&
                 json_object_set_new(root, "num_labels", json_integer(m->num_classes));
    if (!failed && type->add)
        failed = type->add(m, root);
    return failed ? ET_FAIL(m->cx, ET_ENOMEM, "no memory for config.json") : ET_OK;
}

static bool
names_model(const struct type *t, const char *model)
{
    size_t n = strlen(model);
    for (const char *at = t->models; (at = strstr(at, model)) != NULL; at += n)
        if ((at == t->models || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
            return true;
    return false;
}

et_status
eti_hub_config_make(const struct et_model *m, json_t **out)
{
    const struct type *type = NULL;
    *out = NULL;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (names_model(&types[i], m->type->info.name))
            type = &types[i];
    if (!type)
        return ET_FAIL(m->cx, ET_ENOTSUP, "Hugging Face has no model like %s",
                       m->type->info.name);
    json_t *root =
        json_pack("{s:s, s:[s], s:s}", "model_type", type->name, "architectures",
                  type->architecture, "torch_dtype", "float32");
    et_status status =
        root ? add_rows(m, type, root) : ET_FAIL(m->cx, ET_ENOMEM, "no memory");
    if (status == ET_OK)
        *out = root;
    else
        json_decref(root);
    return status;
}
