/* SPDX-License-Identifier: Apache-2.0 */
/* stand_in.c: see stand_in.h. */
#include "config.h"

#include <string.h>

#include "core/data/fields.h"
#include "core/data/stand_in.h"
#include "core/recipe/options.h"

enum {
    BATCHES = 2, /* that it has samples for */
    SIDE = 256,  /* of images whose size is not known */
};

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

/* How many there are, and how large where that differs. */
static void
complete(const struct et_dataset_class *c, const struct et_data_options *o,
         struct et_data_facts *f)
{
    int64_t batch = o->batch_size == ET_INT_UNSET ? 1 : o->batch_size;
    f->n_samples = BATCHES * batch;
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
    type->sample = c->sample ? zero_sample : NULL;
    type->tokens = c->tokens ? no_tokens : NULL;
    type->length = NULL;
    status = eti_facts_check(cx, self);
    if (status != ET_OK)
        et_dataset_close(&self);
    *out = self;
    return status;
}
