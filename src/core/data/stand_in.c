/* SPDX-License-Identifier: Apache-2.0 */
/* stand_in.c: see stand_in.h. */
#include "config.h"

#include <string.h>

#include "core/data/stand_in.h"
#include "core/recipe/options.h"

enum { BATCHES = 2 }; /* that it has samples for */

static et_status
black_image(const struct et_dataset *self, int64_t at, uint8_t *scratch,
            const uint8_t **pixels, int32_t *label, struct et_error *why)
{
    const struct et_data_facts *f = &self->facts;
    (void)at;
    (void)why;
    memset(scratch, 0, (size_t)f->C * (size_t)f->H * (size_t)f->W);
    *pixels = scratch;
    *label = 0;
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

/* How many there are, and how they lie. */
static void
complete(const struct et_data_options *o, struct et_data_facts *f)
{
    int64_t batch = o->batch_size == ET_INT_UNSET ? 1 : o->batch_size;
    f->n_samples = BATCHES * batch;
    if (f->kind == ET_DATA_TOKENS) { /* a window more: training begins at a phase */
        f->n_tokens = (f->n_samples + 1) * o->seq_len + 1;
        f->bytes = f->n_tokens * (int64_t)sizeof(int32_t);
        return;
    }
    f->stride_c = 1;
    f->stride_x = f->C;
    f->stride_y = (int64_t)f->C * f->W;
    f->bytes = f->n_samples * f->stride_y * f->H;
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
    complete(self->common, &self->facts);
    type->image = self->facts.kind == ET_DATA_IMAGES ? black_image : NULL;
    type->tokens = self->facts.kind == ET_DATA_TOKENS ? no_tokens : NULL;
    *out = self;
    return ET_OK;
}
