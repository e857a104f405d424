/* SPDX-License-Identifier: Apache-2.0 */
/* datasets.c: the list of datasets, and opening one. */
#include <string.h>

#include "core/base/need.h"
#include "core/base/sized.h"
#include "core/data/fields.h"
#include "core/recipe/options.h"
#include "etude/data.h"

#define ET_DATASET(name) extern const struct et_dataset_class et_dataset_##name;
#include "core/data/datasets.def"
#undef ET_DATASET

const struct et_dataset_class *const et_dataset_classes[] = {
#define ET_DATASET(name) &et_dataset_##name,
#include "core/data/datasets.def"
#undef ET_DATASET
    NULL,
};

const char *const et_split_names[] = {"train", "test", NULL};
const char *const et_data_auto[] = {"auto", NULL};
const char *const et_pad_names[] = {"longest", "max", NULL};
const char *const et_transforms_on_names[] = {"auto", "host", "device", NULL};

const struct et_dataset_class *
et_dataset_find(const char *name)
{
    if (!name)
        return NULL;
    for (const struct et_dataset_class *const *c = et_dataset_classes; *c; c++)
        if (strcmp((*c)->info.name, name) == 0)
            return *c;
    return NULL;
}

static void
prepare(struct et_data_options *o, enum et_split role)
{
    o->split = role;
    o->shuffle = role == ET_SPLIT_TRAIN;
}

void
et_data_prepare_train(void *options)
{
    if (!options)
        return;
    prepare(options, ET_SPLIT_TRAIN);
}

void
et_data_prepare_eval(void *options)
{
    if (!options)
        return;
    prepare(options, ET_SPLIT_TEST);
}

static et_status
open_class(struct et_ctx *cx, struct et_dataset *self)
{
    const struct et_dataset_class *c = self->type;
    if (c->state_size)
        ET_TRY(et_alloc(cx, c->state_size, &self->state));
    ET_TRY(c->open(cx, self));
    struct et_data_facts *f = &self->facts;
    ET_TRY(eti_facts_check(cx, self));
    if (c->tokens) {
        if (f->n_tokens <= self->common->seq_len)
            return ET_FAIL(
                cx, ET_EFORMAT, "%s: %lld tokens (%s) but seq_len %lld needs %lld",
                c->info.name, (long long)f->n_tokens,
                et_split_names[self->common->split], (long long)self->common->seq_len,
                (long long)self->common->seq_len + 1);
        f->n_samples = (f->n_tokens - 1) / self->common->seq_len;
        f->field[ET_FIELD_X].shape[0] = f->field[ET_FIELD_TARGET].shape[0] =
            self->common->seq_len;
    }
    return ET_OK;
}

et_status
et_dataset_open(struct et_ctx *cx, const struct et_dataset_class *c,
                const void *options, struct et_dataset **out)
{
    ETI_NEED(cx, out);
    struct et_dataset *self;
    *out = NULL;
    ET_TRY(eti_need_class(cx, "et_dataset_open", c));
    ETI_NEED(cx, cx);
    if (c->info.options_size < sizeof *self->common)
        return ET_FAIL(cx, ET_EINVAL,
                       "the data set %s has options of %zu bytes, which cannot begin "
                       "with those that all share",
                       c->info.name, c->info.options_size);
    ET_TRY(et_alloc(cx, sizeof *self, (void **)&self));
    self->type = c;
    self->cx = cx;
    et_status s = eti_options_new(cx, &c->info, options, &self->options);
    self->common = self->options;
    if (s == ET_OK)
        s = open_class(cx, self);
    if (s != ET_OK)
        et_dataset_close(&self);
    *out = self;
    return s;
}

void
et_dataset_close(struct et_dataset **data)
{
    if (!data)
        return;
    struct et_dataset *self = *data;
    if (!self)
        return;
    if (self->state && self->type->close)
        self->type->close(self);
    eti_options_free(self->cx, &self->type->info, &self->options);
    et_free(self->cx, self->state);
    et_free(self->cx, self);
    *data = NULL;
}
