/* SPDX-License-Identifier: Apache-2.0 */
/* stand_in.c: see stand_in.h. */
#include "config.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "core/data/fields.h"
#include "core/data/picture_list.h"
#include "core/data/stand_in.h"
#include "core/data/text_source.h"
#include "core/recipe/options.h"

enum { SIDE = 256 }; /* of images whose size is not known */

static et_status
zero_sample(const struct et_dataset *self, int64_t at, struct et_sample *out,
            struct et_error *why)
{
    (void)at;
    (void)why;
    for (int i = 0; i < self->facts.n_fields; i++)
        ET_TRY(eti_sample_zero(out, i));
    return ET_OK;
}

static et_status
no_tokens(const struct et_dataset *self, int64_t at, int64_t n, int32_t *out,
          struct et_error *why)
{
    (void)self;
    (void)at;
    (void)why;
    memset(out, 0, (size_t)n * sizeof *out);
    return ET_OK;
}

static int64_t
whole_length(const struct et_dataset *self, int64_t at)
{
    (void)at;
    return self->common->seq_len;
}

/* Where the data do not say how many tokens there are, their tokenizer may, or the
 * folder that they lie in, if it is here. */
static void
find_vocabulary(struct et_ctx *cx, struct et_dataset *self)
{
    struct et_data_facts *f = &self->facts;
    struct eti_token_folder known;
    struct et_tokenizer_info info;
    struct et_tokenizer *t;
    const char *path = self->common->path;
    int64_t size = 0;
    bool found = false;
    if (f->field[ET_FIELD_X].kind != ET_FIELD_TOKENS)
        return;
    if (path && eti_token_folder_read(cx, path, &known, &found) == ET_OK && found)
        size = known.vocab_size;
    else if (f->field[ET_FIELD_X].below == 0 &&
             eti_text_tokenizer(cx, self, &t) == ET_OK) {
        et_tokenizer_get_info(t, &info);
        size = info.vocab_size;
        et_tokenizer_free(&t);
    }
    et_error_clear(cx);
    for (int i = 0; size > 0 && i <= ET_FIELD_TARGET && i < f->n_fields; i++)
        if (f->field[i].kind == ET_FIELD_TOKENS)
            f->field[i].below = size;
}

/* How many there are, and how large where that differs. */
static void
complete(const struct et_dataset_class *c, const struct et_data_options *o,
         struct et_data_facts *f)
{
    int64_t batch = o->batch_size == ET_INT_UNSET ? 1 : o->batch_size;
    f->n_samples = ETI_STAND_IN_BATCHES * batch;
    if (c->tokens) /* a window more: training begins at a phase */
        f->n_tokens = (f->n_samples + 1) * o->seq_len + 1;
    for (int i = 0; i < f->n_fields; i++)
        for (int k = 0; k < f->field[i].ndim; k++)
            if (f->field[i].shape[k] < 0)
                f->field[i].shape[k] =
                    f->field[i].kind <= ET_FIELD_MASK ? SIDE : o->seq_len;
}

et_status
eti_stand_in_open(struct et_ctx *cx, const struct et_dataset_class *c,
                  const void *options, struct et_dataset **out)
{
    void *block, *state;
    *out = NULL;
    if (!c->describe)
        return ET_FAIL(cx, ET_ENOTSUP, "what %s gives depends on its files",
                       c->info.name);
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    et_status status = et_alloc(cx, sizeof *c, &state);
    if (status != ET_OK) {
        et_free(cx, block);
        return status;
    }
    struct et_dataset *self = block;
    struct et_dataset_class *type = state; /* freed with the dataset, as its state */
    *type = *c;
    type->close = NULL;
    *self = (struct et_dataset){.type = type, .cx = cx, .state = state};
    status = eti_options_new(cx, &c->info, options, &self->options);
    if (status != ET_OK) {
        et_dataset_close(&self);
        return status;
    }
    self->common = self->options;
    c->describe(options, &self->facts);
    complete(c, self->common, &self->facts);
    find_vocabulary(cx, self);
    type->sample = c->sample ? zero_sample : NULL;
    type->tokens = c->tokens ? no_tokens : NULL;
    type->length = c->length ? whole_length : NULL;
    status = eti_facts_check(cx, self);
    if (status != ET_OK)
        et_dataset_close(&self);
    *out = self;
    return status;
}

/* What OPTIONS say of a cache of pictures; NULL: C has none. A plugin's option of that
 * name may be anything. */
static struct eti_cache_options *
cache_of(const struct et_dataset_class *c, void *options)
{
    static_assert(offsetof(struct eti_cache_options, folder) == 0,
                  "the row of the option has its place");
    const struct et_option *o = c->info.options;
    while (o->name && strcmp(o->name, "cache") != 0)
        o++;
    return o->name && c->info.class_size == 0 ? (void *)((char *)options + o->offset)
                                              : NULL;
}

et_status
eti_headers_open(struct et_ctx *cx, const struct et_dataset_class *c, void *options,
                 struct et_dataset **out)
{
    struct eti_cache_options *cache = cache_of(c, options);
    char *folder = cache ? cache->folder : NULL;
    if (cache)
        cache->folder = NULL;
    et_status status = et_dataset_open(cx, c, options, out);
    if (cache)
        cache->folder = folder;
    return status;
}

et_status
eti_trial_open(struct et_ctx *cx, const struct et_dataset_class *c, void *options,
               struct et_dataset **out)
{
    struct eti_cache_options *cache = cache_of(c, options);
    if (cache)
        cache->only_told = true;
    et_status status = et_dataset_open(cx, c, options, out);
    if (cache)
        cache->only_told = false;
    return status;
}
