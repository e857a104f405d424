/* SPDX-License-Identifier: Apache-2.0 */
/* Weight files under the names that Hugging Face, timm and wrappers give to tensors,
 * and files that fit in part. */
#include "core/models/weight_maps.h"
#include "core/models/weight_names.h"
#include "etude/model.h"
#include "t/data/fixture.h"
#include "t/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 256, SEED = 3 };

static struct et_ctx *cx;
static char said[4096]; /* the last warning */

static void
on_log(void *data, enum et_log_level level, const char *text)
{
    (void)data;
    if (level >= ET_LOG_WARN)
        snprintf(said, sizeof said, "%s", text);
}

static struct et_model *
make(const char *name, int64_t classes, const char *const *set)
{
    const struct et_model_facts facts = {
        .channels = 3, .height = 32, .width = 32, .num_classes = classes};
    const struct et_model_class *type = et_model_class_find(name);
    struct et_model *m;
    void *options;
    need(cx, et_alloc(cx, type->info.options_size, &options));
    need(cx, et_options_init(cx, type->info.options, options));
    for (int i = 0; set && set[i]; i += 2)
        need(cx, et_options_set(cx, type->info.options, options, set[i], set[i + 1]));
    need(cx, et_model_new(cx, type, options, &facts, &m));
    et_options_release(type->info.options, options);
    et_free(cx, options);
    return m;
}

/* ---- files ---- */

/* A tensor beside the model's own: a copy of leaf OF with FACTOR, or one number. */
struct extra {
    const char *name, *of;
    float factor;
};

/* What a library calls leaf NAME; "" = the file lacks it. */
typedef void rename_fn(const char *name, char out[NAME]);

struct draft {
    FILE *header;
    char *data;
    size_t bytes;
};

static void
add(struct draft *d, const char *name, const struct et_desc *desc, const float *v)
{
    size_t n = desc ? (size_t)et_desc_count(desc) : 1, size = n * sizeof *v;
    fprintf(d->header, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[", d->bytes ? "," : "{",
            name);
    for (int i = 0; i < (desc ? desc->ndim : 1); i++)
        fprintf(d->header, "%s%lld", i ? "," : "",
                desc ? (long long)desc->shape[i] : 1LL);
    fprintf(d->header, "],\"data_offsets\":[%zu,%zu]}", d->bytes, d->bytes + size);
    memcpy(d->data + d->bytes, v, size);
    d->bytes += size;
}

/* M as a library writes it. Borrowed until the next. */
static const char *
file_of(struct et_model *m, rename_fn *rename, const struct extra *extra)
{
    enum { DATA = 48 << 20 };
    char *text = NULL;
    size_t size;
    struct draft d = {.header = open_memstream(&text, &size), .data = malloc(DATA)};
    float *v = malloc(DATA), one = 1;
    struct et_leaves l;
    need(cx, et_module_leaves(cx, m->root, ET_PARAM | ET_BUFFER, &l));
    for (int i = 0; i < l.n; i++) {
        char name[NAME] = "";
        const struct et_desc *desc = &l.v[i].param->desc;
        need(cx, et_model_get_param(m, l.v[i].name, SEED, v, et_desc_count(desc)));
        rename(l.v[i].name, name);
        if (*name)
            add(&d, name, desc, v);
        for (const struct extra *e = extra; e && e->name; e++)
            if (e->of && strcmp(e->of, l.v[i].name) == 0) {
                v[et_desc_count(desc) - 1] *= e->factor; /* the last number alone */
                add(&d, e->name, desc, v);
            }
    }
    for (const struct extra *e = extra; e && e->name; e++)
        if (!e->of)
            add(&d, e->name, NULL, &one);
    fputc('}', d.header);
    fclose(d.header);
    uint64_t header = size;
    char *all = malloc(8 + size + d.bytes);
    memcpy(all, &header, 8);
    memcpy(all + 8, text, size);
    memcpy(all + 8 + size, d.data, d.bytes);
    const char *path = write_file("m.safetensors", all, 8 + size + d.bytes, false);
    et_leaves_release(&l);
    free(all);
    free(text);
    free(d.data);
    free(v);
    return path;
}

/* How many leaves of TO are not FROM's. */
static int
differing(struct et_model *from, struct et_model *to)
{
    struct et_leaves l;
    int n = 0;
    need(cx, et_module_leaves(cx, to->root, ET_PARAM | ET_BUFFER, &l));
    for (int i = 0; i < l.n; i++) {
        int64_t count = et_desc_count(&l.v[i].param->desc);
        float *a = malloc((size_t)count * sizeof *a);
        float *b = malloc((size_t)count * sizeof *b);
        need(cx, et_model_get_param(to, l.v[i].name, SEED + 1, b, count));
        if (et_model_get_param(from, l.v[i].name, SEED, a, count) != ET_OK ||
            memcmp(a, b, (size_t)count * sizeof *a) != 0)
            n++;
        et_error_clear(cx);
        free(a);
        free(b);
    }
    et_leaves_release(&l);
    return n;
}

/* ---- names ---- */

static void
same(const char *name, char out[NAME])
{
    snprintf(out, NAME, "%s", name);
}

/* As torch names them in DistributedDataParallel within torch.compile. */
static void
wrapped(const char *name, char out[NAME])
{
    snprintf(out, NAME, "_orig_mod.module.%s", name);
}

static void
in_model(const char *name, char out[NAME])
{
    snprintf(out, NAME, "model.%s", name);
}

/* Of openai-community/gpt2: GPT2Model's own names, "wte.weight", "h.0.ln_1.weight". */
static void
gpt2_body(const char *name, char out[NAME])
{
    snprintf(out, NAME, "%s", name + strlen("transformer."));
}

/* With the head instead of the table. */
static void
gpt2_head(const char *name, char out[NAME])
{
    same(strcmp(name, "transformer.wte.weight") == 0 ? "lm_head.weight" : name, out);
}

/* Of BertModel.save_pretrained: no "bert.", no head. */
static void
bert_body(const char *name, char out[NAME])
{
    if (strncmp(name, "bert.", 5) == 0)
        snprintf(out, NAME, "%s", name + 5);
}

/* Of google-bert/bert-base-uncased: TensorFlow's names of norms. */
static void
bert_tf(const char *name, char out[NAME])
{
    const char *dot = strrchr(name, '.');
    bool norm = strstr(name, "LayerNorm.") != NULL;
    snprintf(out, NAME, "%.*s.%s", (int)(dot - name), name,
             !norm                         ? dot + 1
             : strcmp(dot, ".weight") == 0 ? "gamma"
                                           : "beta");
}

/* timm's efficientnet_b0 (models/efficientnet.py: conv_stem, bn1, blocks, conv_head,
 * bn2, classifier; _efficientnet_blocks.py: DepthwiseSeparableConv and
 * InvertedResidual). */
static void
timm(const char *name, char out[NAME])
{
    static const char *const narrow[][2] = {
        {"conv_dw", "bn1"}, {0}, {"conv_pw", "bn2"}};
    static const char *const wide[][2] = {
        {"conv_pw", "bn1"}, {"conv_dw", "bn2"}, {0}, {"conv_pwl", "bn3"}};
    const char *tail = strrchr(name, '.') + 1;
    int stage, block, part, layer;
    if (sscanf(name, "features.%d.%d.block.%d.%d.", &stage, &block, &part, &layer) == 4)
        snprintf(out, NAME, "blocks.%d.%d.%s.%s", stage - 1, block,
                 (stage == 1 ? narrow : wide)[part][layer], tail);
    else if (sscanf(name, "features.%d.%d.block.%d.fc%d.", &stage, &block, &part,
                    &layer) == 4)
        snprintf(out, NAME, "blocks.%d.%d.se.conv_%s.%s", stage - 1, block,
                 layer == 1 ? "reduce" : "expand", tail);
    else if (sscanf(name, "features.%d.%d.", &stage, &layer) == 2)
        snprintf(out, NAME, "%s.%s",
                 stage == 0 ? layer ? "bn1" : "conv_stem"
                 : layer    ? "bn2"
                            : "conv_head",
                 tail);
    else
        snprintf(out, NAME, "classifier.%s", tail);
}

static const char *const small_gpt2[] = {"n_layers",   "2",  "d_model",     "16",
                                         "n_heads",    "2",  "max_seq_len", "8",
                                         "vocab_size", "11", NULL};

static const struct extra masks[] = {
    {"h.0.attn.bias", NULL, 1}, {"h.1.attn.masked_bias", NULL, 1}, {0}};
static const struct extra third[] = {{"lm_head.weight", "transformer.wte.weight", 1},
                                     {"wte.weight", "transformer.wte.weight", 1},
                                     {0}};
static const struct extra head[] = {{"lm_head.weight", "transformer.wte.weight", 1},
                                    {0}};
static const struct extra other_head[] = {
    {"lm_head.weight", "transformer.wte.weight", 2}, {0}};
/* What BertForPreTraining saves besides. */
static const struct extra pretraining[] = {
    {"bert.pooler.dense.weight", "bert.embeddings.token_type_embeddings.weight", 1},
    {"bert.pooler.dense.bias", NULL, 1},
    {"cls.seq_relationship.weight", NULL, 1},
    {"cls.seq_relationship.bias", NULL, 1},
    {"bert.embeddings.position_ids", NULL, 1},
    {"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight", 1},
    {"cls.predictions.decoder.bias", "cls.predictions.bias", 1},
    {0}};
static const struct extra counter[] = {{"bn1.num_batches_tracked", NULL, 1}, {0}};

static void
names(void)
{
    static const struct {
        const char *model, *what;
        const char *const *set;
        rename_fn *rename;
        const struct extra *extra;
        const char *refused; /* part of the sentence; NULL: it loads */
    } table[] = {
        {"gpt2", "GPT-2's body without prefix, with masks", small_gpt2, gpt2_body,
         masks, NULL},
        {"gpt2", "GPT-2 with its head as a copy of the table", small_gpt2, same, head,
         NULL},
        {"gpt2", "GPT-2 with the head in place of the table", small_gpt2, gpt2_head,
         NULL, NULL},
        {"gpt2", "GPT-2 with another head", small_gpt2, same, other_head,
         "'lm_head.weight' differs from 'transformer.wte.weight'"},
        {"gpt2", "GPT-2 with its table three times", small_gpt2, same, third,
         "is one more tensor for transformer.wte.weight"},
        {"gpt2", "a compiled, distributed GPT-2", small_gpt2, wrapped, NULL, NULL},
        {"bert", "BERT with TensorFlow's names and all of its heads", small_gpt2,
         bert_tf, pretraining, NULL},
        {"bert", "BERT's body, without its head", small_gpt2, bert_body, NULL,
         "'cls.predictions.bias' is missing, model wants [11] (and 4 more that do not "
         "fit)"},
        {"efficientnet_b0", "timm's EfficientNet", NULL, timm, counter, NULL},
        {"efficientnet_b0", "torchvision's", NULL, same, NULL, NULL},
        {"resnet8", "a ResNet within a wrapper", NULL, in_model, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct et_model *from = make(table[i].model, 10, table[i].set);
        struct et_model *to = make(table[i].model, 10, table[i].set);
        const char *path = file_of(from, table[i].rename, table[i].extra);
        et_status status = et_model_load_weights(cx, to, path);
        const char *why = status == ET_OK ? "" : take_error(cx);
        ok(table[i].refused ? strstr(why, table[i].refused) != NULL : status == ET_OK,
           "%s %s", table[i].what, table[i].refused ? "is refused" : "is read");
        if (status != ET_OK)
            diag("%s", why);
        else
            is_int(differing(from, to), 0, "and all of it has its place");
        et_model_free(&from);
        et_model_free(&to);
    }
}

/* What MODEL maps the names of TABLE to; NULL behind one: to nothing. NULL ends it. */
static void
is_spelled(const char *model, const char *whose, const char *const table[][2])
{
    struct et_model *m = make(model, 10, NULL);
    struct et_leaves l;
    need(cx, et_module_leaves(cx, m->root, ET_PARAM | ET_BUFFER, &l));
    for (size_t i = 0; table[i][0]; i++) {
        struct eti_weight_place place;
        bool found = eti_weight_place(&l, model, table[i][0], &place);
        is_str(found ? place.leaf->name : "", table[i][1] ? table[i][1] : "", "%s's %s",
               whose, table[i][0]);
    }
    et_leaves_release(&l);
    et_model_free(&m);
}

/* Names as the libraries' own state_dicts list them, so that two mistakes cannot
 * cancel. */
static void
spelled(void)
{
    static const char *const timm[][2] = {
        {"conv_stem.weight", "features.0.0.weight"},
        {"bn1.running_mean", "features.0.1.running_mean"},
        {"blocks.0.0.conv_dw.weight", "features.1.0.block.0.0.weight"},
        {"blocks.0.0.se.conv_reduce.bias", "features.1.0.block.1.fc1.bias"},
        {"blocks.0.0.conv_pw.weight", "features.1.0.block.2.0.weight"},
        {"blocks.0.0.bn2.bias", "features.1.0.block.2.1.bias"},
        {"blocks.1.0.conv_pw.weight", "features.2.0.block.0.0.weight"},
        {"blocks.2.1.conv_dw.weight", "features.3.1.block.1.0.weight"},
        {"blocks.5.3.se.conv_expand.weight", "features.6.3.block.2.fc2.weight"},
        {"blocks.6.0.conv_pwl.weight", "features.7.0.block.3.0.weight"},
        {"conv_head.weight", "features.8.0.weight"},
        {"bn2.weight", "features.8.1.weight"},
        {"classifier.bias", "classifier.1.bias"},
        {"blocks.7.0.conv_pwl.weight", NULL},
        {"blocks.x.0.bn1.weight", NULL},
        {"blocks.99999999999999999999.0.bn1.weight", NULL},
        {NULL, NULL},
    };
    /* ViTForImageClassification, and ViTModel, which has no "vit." in front. */
    static const char *const vit[][2] = {
        {"vit.embeddings.cls_token", "cls_token"},
        {"embeddings.cls_token", "cls_token"},
        {"vit.encoder.layer.3.layernorm_before.bias", "blocks.3.norm1.bias"},
        {"encoder.layer.3.layernorm_before.bias", "blocks.3.norm1.bias"},
        {"bert.embeddings.cls_token", NULL},
        {NULL, NULL},
    };
    is_spelled("efficientnet_b0", "timm", timm);
    is_spelled("vit_ti16", "transformers", vit);
}

/* ---- files that fit in part ---- */

static void
parts(void)
{
    static char *head_pattern[] = {"fc.*"}, *wrong_pattern[] = {"head.*"};
    static char *all_pattern[] = {"*"};
    struct et_model *ten = make("resnet8", 10, NULL), *five;
    char *path = strdup(file_of(ten, same, NULL));
    struct et_model_weights w = {.path = path, .strict = true};

    five = make("resnet8", 5, NULL);
    ok(et_model_load_some_weights(cx, five, &w) == ET_EFORMAT &&
           strstr(et_error_get(cx)->message,
                  "'fc.weight' is [10,64], model wants [5,64] (and 1 more"),
       "a head of ten classes does not fit five");
    ok(strstr(et_error_get(cx)->hint, "strict: false"), "what can be done is said");
    et_error_clear(cx);

    w.strict = false;
    *said = '\0';
    need(cx, et_model_load_some_weights(cx, five, &w));
    is_int(differing(ten, five), 2, "without strict all but the head is loaded");
    ok(strstr(said, "45 of the model's 47 tensors are loaded; left out: 'fc.weight' is "
                    "[10,64], model wants [5,64]; 'fc.bias' is [10], model wants [5]"),
       "and one warning lists what was left out");
    et_model_free(&five);

    five = make("resnet8", 5, NULL);
    w.strict = true;
    w.ignore = (struct et_texts){head_pattern, 1};
    need(cx, et_model_load_some_weights(cx, five, &w));
    is_int(differing(ten, five), 2, "so it is where the head is ignored by name");
    et_model_free(&five);

    /* The same size, but a head of one's own is wished. */
    five = make("resnet8", 10, NULL);
    need(cx, et_model_load_some_weights(cx, five, &w));
    is_int(differing(ten, five), 2, "also where it would fit");
    w.ignore = (struct et_texts){wrong_pattern, 1};
    ok(et_model_load_some_weights(cx, five, &w) == ET_EFORMAT &&
           strstr(et_error_get(cx)->message, "matches 'head.*'"),
       "a pattern that nothing matches is refused");
    et_error_clear(cx);
    w.ignore = (struct et_texts){all_pattern, 1};
    ok(et_model_load_some_weights(cx, five, &w) == ET_EFORMAT,
       "so is a file of which nothing is left");
    et_error_clear(cx);
    et_model_free(&five);

    five = make("lenet", 10, NULL);
    w = (struct et_model_weights){.path = path};
    ok(et_model_load_some_weights(cx, five, &w) == ET_EFORMAT &&
           strstr(et_error_get(cx)->message, "nothing of it is for this model"),
       "and another network's, however lenient");
    et_error_clear(cx);
    et_model_free(&five);
    et_model_free(&ten);
    free(path);
}

/* A file without the head of a ResNet. */
static void
headless(const char *name, char out[NAME])
{
    if (strncmp(name, "fc.", 3) != 0)
        same(name, out);
}

/* What a pattern may name: a tensor as the file or as the model calls it, one that the
 * file lacks, and one that the model lacks. */
static void
ignored(void)
{
    static const struct extra more[] = {{"notes", NULL, 0}, {0}};
    static const struct {
        const char *name, *pattern;
        rename_fn *rename;
        const struct extra *extra;
        int differing;
        const char *said;
    } table[] = {
        {"a tensor is ignored by the model's name", "fc.*", in_model, NULL, 2,
         "'model.fc.weight' is ignored; 'model.fc.bias' is ignored"},
        {"or by the file's", "model.fc.*", in_model, NULL, 2,
         "'model.fc.weight' is ignored; 'model.fc.bias' is ignored"},
        {"one that the file lacks by the model's", "fc.*", headless, NULL, 2,
         "'fc.weight' is ignored; 'fc.bias' is ignored"},
        {"one that the model lacks by the file's", "note?", same, more, 0,
         "'notes' is ignored"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char *pattern[] = {strdup(table[i].pattern)};
        struct et_model *from = make("resnet8", 10, NULL);
        struct et_model *to = make("resnet8", 10, NULL);
        char *path = strdup(file_of(from, table[i].rename, table[i].extra));
        const struct et_model_weights w = {path, true, {pattern, 1}};
        *said = '\0';
        need(cx, et_model_load_some_weights(cx, to, &w));
        is_int(differing(from, to), table[i].differing, "%s", table[i].name);
        const char *out = strstr(said, "left out: ");
        is_str(out ? out + 10 : said, table[i].said, "and is told");
        et_model_free(&from);
        et_model_free(&to);
        free(pattern[0]);
        free(path);
    }
}

/* ---- each rule of each map ---- */

/* TEXT with its marks as numbers, NUMBER[i] - less where the mark is '-', then REST; -1
 * where one would be negative. */
static int
fill_marks(const char *text, const int *number, const char *rest, char *out, size_t n)
{
    size_t used = 0;
    for (int i = 0; *text; text++) {
        int k = *text == '#' || *text == '-' ? number[i++] - (*text == '-') : 0;
        if (k < 0)
            return -1;
        if (*text == '#' || *text == '-')
            used += (size_t)snprintf(out + used, n - used, "%d", k);
        else
            used += (size_t)snprintf(out + used, n - used, "%c", *text);
    }
    return (int)used + snprintf(out + used, n - used, "%s", rest);
}

static void
rewrites(void)
{
    static const int numbers[][3] = {{1, 1, 1}, {2, 10, 3}, {123, 0, 45}, {0, 0, 0}};
    char ours[800], theirs[800], got[ETI_WEIGHT_NAME], rest[600];
    int wrong = 0, rules = 0, refused = 0;
    for (const struct eti_weight_map *m = eti_weight_maps; m->form; m++)
        for (const struct eti_weight_rule *r = m->rules; r && r->ours; r++, rules++)
            for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
                fill_marks(r->ours, numbers[i], "weight", ours, sizeof ours);
                bool is = fill_marks(r->theirs, numbers[i], "weight", theirs,
                                     sizeof theirs) > 0;
                bool done = eti_weight_rewrite(ours, r->ours, r->theirs, got);
                refused += !is;
                wrong += done != is || (is && strcmp(got, theirs) != 0);
                wrong += is && (!eti_weight_rewrite(theirs, r->theirs, r->ours, got) ||
                                strcmp(got, ours) != 0);
            }
    ok(rules > 50 && refused > 0, "%d rules of names are tried", rules);
    is_int(wrong, 0, "each leads there and back, and to no stage before the first");
    wrong = 0;
    for (size_t n = 1; n < sizeof rest; n++) {
        memset(rest, 'x', n);
        rest[n] = '\0';
        snprintf(ours, sizeof ours, "blocks.7.%s", rest);
        snprintf(theirs, sizeof theirs, "some.layer.7.of.%s", rest);
        bool fits = strlen(theirs) < ETI_WEIGHT_NAME;
        bool done = eti_weight_rewrite(ours, "blocks.#.", "some.layer.#.of.", got);
        wrong += done != fits || (fits && strcmp(got, theirs) != 0);
    }
    is_int(wrong, 0, "a name is written whole or not at all, however long it is");
}

/* Every allocation fails once. */
static void
torture(void)
{
    struct et_model *from = make("gpt2", 0, small_gpt2);
    char *path = strdup(file_of(from, gpt2_head, NULL));
    struct et_model *to = make("gpt2", 0, small_gpt2);
    et_status status = ET_ENOMEM;
    int k = 0;
    while (status == ET_ENOMEM && k < 10000) {
        et_alloc_fail_at(cx, (uint64_t)++k);
        status = et_model_load_weights(cx, to, path);
        et_alloc_fail_at(cx, 0);
        et_error_clear(cx);
    }
    ok(status == ET_OK && k > 5, "a load that runs out of memory can be repeated");
    is_int(differing(from, to), 0, "and then loads all");
    et_model_free(&from);
    et_model_free(&to);
    free(path);
}

int
main(void)
{
    cx = need_ctx();
    et_ctx_set_log(cx, ET_LOG_WARN, on_log, NULL);
    names();
    rewrites();
    spelled();
    parts();
    ignored();
    torture();
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "every block is given back");
    et_ctx_free(&cx);
    return done();
}
