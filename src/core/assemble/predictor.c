/* SPDX-License-Identifier: Apache-2.0 */
/* predictor.c: see etude/predict.h. What `etude eval` builds, with data that stand in
 * for those of the recipe, and a data set of what the caller has in memory. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/assemble/assemble.h"
#include "core/assemble/resume.h"
#include "core/base/need.h"
#include "core/data/fields.h"
#include "core/data/text_source.h"
#include "core/assemble/raw.h"
#include "etude/predict.h"

enum {
    BATCH = 64, /* samples at a time, at most */
    TRIES = 16, /* of a sample, to see whether its transforms draw numbers */
};

/* Options of the data set in memory. */
struct memory_options {
    struct et_data_options common;   /* first */
    struct et_data_facts facts;      /* of what is there, and the target */
    const void *data[ET_MAX_FIELDS]; /* of each; NULL: zeros, which nobody looks at */
};

struct et_predictor {
    struct et_ctx *cx;
    struct et_recipe *recipe;
    struct eti_origin_run from;
    struct et_load_config load;
    struct eti_assembly a;
    struct et_device *borrowed; /* the caller's; NULL: the assembly has its own */
    struct et_trainer *trainer;
    const struct eti_data *like; /* the data whose samples are raw ones */
    struct memory_options memory;
    struct et_dataset *set; /* of MEMORY */
    struct et_loader *loader;
};

/* ---- samples in memory ---- */

static et_status
memory_open(struct et_ctx *cx, struct et_dataset *self)
{
    const struct memory_options *o = self->options;
    (void)cx;
    self->facts = o->facts;
    if (self->type->tokens) /* the last window's last target is one more */
        self->facts.n_tokens = o->facts.n_samples * o->common.seq_len + 1;
    return ET_OK;
}

/* Sample AT of the field F, whose N samples begin at DATA. */
static void
give(const struct et_field *f, const void *data, int64_t at,
     struct et_sample_value *out)
{
    const size_t bytes = (size_t)eti_field_count(f) * et_dtype_size(f->dtype);
    const int64_t *s = f->shape;
    const void *own = (const char *)data + (size_t)at * bytes;
    out->data = own;
    if (f->kind == ET_FIELD_IMAGE)
        out->pixels = et_pixels_hwc(own, (int)s[0], s[1], s[2]);
    else if (f->kind == ET_FIELD_MASK)
        out->pixels = et_pixels_hwc(own, 1, s[0], s[1]);
}

static et_status
memory_sample(const struct et_dataset *self, int64_t at, struct et_sample *out,
              struct et_error *why)
{
    const struct memory_options *o = self->options;
    (void)why;
    for (int i = 0; i < self->facts.n_fields; i++)
        if (o->data[i])
            give(&self->facts.field[i], o->data[i], at, &out->v[i]);
        else
            ET_TRY(eti_sample_zero(out, i));
    return ET_OK;
}

static et_status
memory_tokens(const struct et_dataset *self, int64_t at, int64_t n, int32_t *out,
              struct et_error *why)
{
    const struct memory_options *o = self->options;
    const int32_t *tokens = o->data[ET_FIELD_X];
    const int64_t there = o->facts.n_samples * o->common.seq_len;
    (void)why;
    for (int64_t i = 0; i < n; i++)
        out[i] = at + i < there ? tokens[at + i] : 0;
    return ET_OK;
}

/* Their rows say what is copied when the data set is opened. */
static const struct et_option image_table[] = {
    ET_DATA_OPTIONS(struct memory_options),
    ET_DATA_IMAGE_OPTIONS(struct memory_options),
    {0},
};
static const struct et_option text_table[] = {
    ET_DATA_OPTIONS(struct memory_options),
    ET_DATA_TOKEN_OPTIONS(struct memory_options),
    {0},
};

static const struct et_dataset_class memory_samples = {
    .info = {.name = "memory",
             .class_name = "Memory",
             .summary = "samples in memory",
             .options = image_table,
             .options_size = sizeof(struct memory_options)},
    .open = memory_open,
    .sample = memory_sample,
};
static const struct et_dataset_class memory_texts = {
    .info = {.name = "memory",
             .class_name = "Memory",
             .summary = "tokens in memory",
             .options = text_table,
             .options_size = sizeof(struct memory_options)},
    .open = memory_open,
    .tokens = memory_tokens,
};

static void
drop_samples(struct et_predictor *p)
{
    et_loader_free(&p->loader);
    et_dataset_close(&p->set);
}

/* Opens the samples of P->memory as batches of at most MOST, on DEV (NULL: in the
 * host's memory). */
static et_status
open_memory(struct et_predictor *p, int64_t most, struct et_device *dev)
{
    const struct et_loader_config config = {.dev = dev};
    struct et_data_options *common = &p->memory.common;
    const int64_t n = p->memory.facts.n_samples;
    drop_samples(p);
    *common = *p->like->set->common; /* transforms, resolution, seq_len */
    common->batch_size = n < most ? n : most;
    common->subset_num_batches = -1;
    common->shuffle = common->drop_last = false;
    common->workers = 0;
    common->transforms_on = ET_TRANSFORMS_ON_HOST; /* each sample is used once */
    ET_TRY(et_dataset_open(p->cx,
                           p->like->set->type->tokens ? &memory_texts : &memory_samples,
                           &p->memory, &p->set));
    return et_loader_new(p->cx, p->set, &config, &p->loader);
}

static et_status
open_fields(struct et_predictor *p, const struct et_raw_field *fields, int n)
{
    ET_TRY(
        eti_raw_take(p->cx, p->like->set, fields, n, &p->memory.facts, p->memory.data));
    return open_memory(p, BATCH, p->a.dev);
}

/* N samples of the first field alone. */
static et_status
open_samples(struct et_predictor *p, const void *samples, int64_t n, int64_t most,
             struct et_device *dev)
{
    struct et_raw_field all[ET_MAX_FIELDS];
    (void)eti_raw_fields(p->like->set, n, all);
    all[0].data = samples;
    ET_TRY(eti_raw_take(p->cx, p->like->set, all, 1, &p->memory.facts, p->memory.data));
    return open_memory(p, most, dev);
}

et_status
et_predictor_loader(struct et_predictor *p, const void *samples, int64_t n,
                    struct et_loader **out)
{
    ETI_NEED(p ? p->cx : NULL, p, out);
    *out = NULL;
    if (n < 1)
        return ET_FAIL(p->cx, ET_EINVAL, "%lld samples are none", (long long)n);
    ETI_NEED(p->cx, samples);
    ET_TRY(open_samples(p, samples, n, BATCH, p->a.dev));
    *out = p->loader;
    return ET_OK;
}

/* ---- random transforms ---- */

/* EINVAL unless TRIES samples that are the same one are the same after the
 * transforms, too. */
static et_status
compare_rows(struct et_predictor *p)
{
    const struct et_batch *batch;
    ET_TRY(et_loader_next(p->cx, p->loader, &batch));
    const struct et_batch_field *first = &batch->field[ET_FIELD_X];
    const char *x = first->host.any;
    const size_t row = et_desc_bytes(&first->desc) / TRIES;
    bool same = true;
    for (int i = 1; i < TRIES; i++)
        same = same && memcmp(x, x + row * (size_t)i, row) == 0;
    et_loader_release(p->loader, batch);
    if (same)
        return ET_OK;
    et_status status = ET_FAIL(
        p->cx, ET_EINVAL,
        "the transforms of %s are random: a sample would have other answers each time",
        p->like == &p->a.train ? "train_data" : "eval_data");
    et_hint(p->cx, "an eval_data whose transforms are not, in the run's recipe");
    return status;
}

static et_status
check_still(struct et_predictor *p)
{
    const struct et_field *f = &p->like->set->facts.field[ET_FIELD_X];
    struct et_rng r = et_rng_at(0, ET_RNG_DATA, 0);
    void *block;
    if (f->kind != ET_FIELD_IMAGE || f->shape[1] < 0 || f->shape[2] < 0)
        return ET_OK;
    const size_t bytes = (size_t)(f->shape[0] * f->shape[1] * f->shape[2]);
    ET_TRY(et_alloc(p->cx, TRIES * bytes, &block));
    unsigned char *sample = block;
    for (size_t i = 0; i < bytes; i++)
        sample[i] = (unsigned char)et_rng_u32(&r);
    for (int i = 1; i < TRIES; i++)
        memcpy(sample + (size_t)i * bytes, sample, bytes);
    et_status status = open_samples(p, block, TRIES, TRIES, NULL);
    if (status == ET_OK)
        status = compare_rows(p);
    drop_samples(p);
    et_free(p->cx, block);
    return status;
}

/* ---- predictions ---- */

struct taken {
    struct et_ctx *cx;
    float *out;
    int64_t n, count, done; /* samples; numbers there is room for, and taken */
};

static et_status
take(void *data, const struct et_state *s, const struct et_prediction *p)
{
    struct taken *t = data;
    const int64_t n = et_desc_count(&p->desc), each = n / p->desc.shape[0];
    (void)s;
    if (each * t->n != t->count)
        return ET_FAIL(t->cx, ET_ESHAPE,
                       "%lld samples have %lld numbers, and there is room for %lld",
                       (long long)t->n, (long long)(each * t->n), (long long)t->count);
    memcpy(t->out + t->done, p->outputs, (size_t)n * sizeof *t->out);
    t->done += n;
    return ET_OK;
}

et_status
et_predictor_run(struct et_predictor *p, const void *samples, int64_t n, float *out,
                 int64_t count)
{
    ETI_NEED(p ? p->cx : NULL, p);
    if (n > 0)
        ETI_NEED(p ? p->cx : NULL, samples);
    struct taken t = {.cx = p->cx, .out = out, .n = n, .count = count};
    struct et_loader *loader;
    ET_TRY(et_predictor_loader(p, samples, n, &loader));
    return et_trainer_predict(p->trainer, loader, take, &t);
}

et_status
et_predictor_run_fields(struct et_predictor *p, const struct et_raw_field *fields,
                        int n_fields, float *out, int64_t count)
{
    ETI_NEED(p ? p->cx : NULL, p, fields, out);
    ET_TRY(open_fields(p, fields, n_fields));
    struct taken t = {
        .cx = p->cx, .out = out, .n = p->memory.facts.n_samples, .count = count};
    return et_trainer_predict(p->trainer, p->loader, take, &t);
}

et_status
et_predictor_fields(struct et_predictor *p, int64_t n, struct et_raw_field *out,
                    int *n_fields)
{
    ETI_NEED(p ? p->cx : NULL, p, out, n_fields);
    *n_fields = eti_raw_fields(p->like->set, n, out);
    return ET_OK;
}

/* ---- making ---- */

static et_status
read_recipe(struct et_predictor *p, const char *path, const struct et_recipe_env *env)
{
    char file[ETI_RUN_PATH + 32];
    struct et_diagnostics errors = {0};
    ET_TRY(eti_origin_find(p->cx, path, &p->from));
    if (!p->from.directory[0])
        return ET_FAIL(p->cx, ET_ENOENT,
                       "%s lies in no run's directory, and only there is the recipe",
                       path);
    snprintf(file, sizeof file, "%s/recipe.resolved.yaml", p->from.directory);
    return et_recipe_load(p->cx, file, NULL, 0, env, &p->recipe, &errors);
}

static et_status
make(struct et_predictor *p, struct et_device *dev)
{
    const bool has_eval = p->recipe->eval_data.n > 0;
    const struct eti_assemble_options options = {
        .dev = dev,
        .with_eval = has_eval,
        .with_train = !has_eval,
        .stands_in = true,
    };
    if (p->recipe->seed == ET_INT_UNSET)
        p->recipe->seed = 0;
    p->load = (struct et_load_config){
        .directory = p->from.checkpoints,
        .name = p->from.name[0] ? p->from.name : NULL,
        .weights_only = true,
    };
    ET_TRY(eti_assemble(p->cx, p->recipe, &options, &p->a));
    p->like = has_eval ? &p->a.eval[0] : &p->a.train;
    p->a.config.load = &p->load;
    p->a.config.target = NULL;
    ET_TRY(check_still(p));
    return et_trainer_new(p->cx, &p->a.config, &p->trainer);
}

et_status
et_checkpoint_load_model(struct et_ctx *cx, const char *path, struct et_device *dev,
                         const struct et_recipe_env *env, struct et_predictor **out)
{
    ETI_NEED(cx, cx, path, out);
    void *block;
    *out = NULL;
    ET_TRY(et_alloc(cx, sizeof(struct et_predictor), &block));
    struct et_predictor *p = block;
    p->cx = cx;
    p->borrowed = dev;
    et_status status = read_recipe(p, path, env);
    if (status == ET_OK)
        status = make(p, dev);
    if (status != ET_OK)
        et_predictor_free(&p);
    *out = p;
    return status;
}

void
et_predictor_free(struct et_predictor **predictor)
{
    if (!predictor)
        return;
    struct et_predictor *p = *predictor;
    *predictor = NULL;
    if (!p)
        return;
    drop_samples(p);
    et_trainer_free(&p->trainer);
    if (p->borrowed)
        p->a.dev = NULL;
    if (p->a.cx)
        eti_assembly_release(&p->a);
    et_recipe_free(&p->recipe);
    et_free(p->cx, p);
}

struct et_model *
et_predictor_model(const struct et_predictor *p)
{
    if (!p)
        return NULL;
    return p->a.model;
}

struct et_device *
et_predictor_device(const struct et_predictor *p)
{
    if (!p)
        return NULL;
    return p->a.dev;
}

const struct et_data_facts *
et_predictor_facts(const struct et_predictor *p)
{
    if (!p)
        return NULL;
    return &p->like->set->facts;
}

int64_t
et_predictor_seq_len(const struct et_predictor *p)
{
    if (!p)
        return 0;
    const struct et_dataset *set = p->like->set;
    return set->facts.field[ET_FIELD_X].kind == ET_FIELD_TOKENS ? set->common->seq_len
                                                                : 0;
}

/* What the model makes of N samples as L has them. */
static et_status
describe_answers(struct et_predictor *p, const struct et_loader *l, int64_t n,
                 struct et_desc *out)
{
    struct et_loader_info info;
    struct et_graph *g;
    et_loader_get_info(l, &info);
    struct et_desc x = info.desc[ET_FIELD_X];
    x.shape[0] = n;
    ET_TRY(et_graph_new(p->cx, p->a.dev, &g));
    struct et_forward forward = {.g = g};
    struct et_tensor *y =
        et_model_forward(p->a.model, &forward, et_fill(g, x.dtype, x.ndim, x.shape, 0));
    et_status status = et_graph_status(g);
    if (status == ET_OK)
        et_desc_init(out, ET_F32, y->desc.ndim, y->desc.shape, ET_ROW_MAJOR);
    et_graph_free(&g);
    return status;
}

et_status
et_predictor_describe(struct et_predictor *p, int64_t n, struct et_desc *samples,
                      struct et_desc *answers)
{
    ETI_NEED(p ? p->cx : NULL, p, samples, answers);
    struct et_raw_field all[ET_MAX_FIELDS];
    (void)eti_raw_fields(p->like->set, n, all);
    *samples = all[0].desc;
    return describe_answers(p, p->like->loader, n, answers);
}

et_status
et_predictor_describe_fields(struct et_predictor *p, const struct et_raw_field *fields,
                             int n_fields, struct et_desc *answers)
{
    ETI_NEED(p ? p->cx : NULL, p, fields, answers);
    ET_TRY(open_fields(p, fields, n_fields));
    return describe_answers(p, p->loader, p->memory.facts.n_samples, answers);
}

et_status
eti_predictor_tokenizer(struct et_predictor *p, const char *path,
                        struct et_tokenizer **out)
{
    return path ? et_tokenizer_open(p->cx, path, out)
                : eti_text_tokenizer(p->cx, p->like->set, out);
}
