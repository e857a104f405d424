/* SPDX-License-Identifier: Apache-2.0 */
/* alibi.c: a bias on attention scores that falls with distance, in place of positions.
 *
 *     GPT-2:  scores + m_h j;  BERT:  scores - m_h |i - j|;  m_h: et_alibi_slopes
 *     batches [B, T] are trained on as [B / s, T s], row-major
 *
 * Press et al. 2022, arXiv 2108.12409; spec/algorithms.md 2.1. Differs: a model's table
 * of positions goes, where Composer's stays as zeros; samples and their draws are
 * counted as the loader gave them. */
#include "core/base/need.h"
#include "config.h"

#include <math.h>

#include "core/algorithms/algorithms.h"
#include "core/base/memory.h"
#include "etude/nn.h"

struct alibi_options {
    int64_t max_sequence_length;
    double train_sequence_length_scaling;
};

struct surgery {
    int64_t length;
    int changed, tables;
};

/* A table of positions that was dropped, and where it was. */
struct table {
    struct et_module *holder, *positions; /* one reference each */
};

struct alibi {
    struct table *table;
    int n;
    int64_t room;
    int64_t own; /* length of a bias that the model had anyway; 0: it had none */
};

static et_status
set_bias(struct et_ctx *cx, struct et_module *m, int index, void *data,
         struct et_module **out)
{
    struct surgery *s = data;
    (void)index, (void)out;
    s->changed++;
    return et_attention_set_alibi(cx, m, s->length);
}

static et_status
drop_gpt2(struct et_ctx *cx, struct et_module *m, int index, void *data,
          struct et_module **out)
{
    struct et_gpt2_transformer_module *t = (struct et_gpt2_transformer_module *)m;
    (void)cx, (void)index, (void)out;
    ((struct surgery *)data)->tables += t->wpe != NULL;
    et_module_free(&t->wpe);
    return ET_OK;
}

static et_status
drop_bert(struct et_ctx *cx, struct et_module *m, int index, void *data,
          struct et_module **out)
{
    struct et_bert_embeddings_module *e = (struct et_bert_embeddings_module *)m;
    (void)cx, (void)index, (void)out;
    ((struct surgery *)data)->tables += e->position_embeddings != NULL;
    et_module_free(&e->position_embeddings);
    return ET_OK;
}

et_status
et_apply_alibi(struct et_ctx *cx, struct et_module *root, int64_t max_sequence_length,
               int *n)
{
    static const struct et_surgery_policy tables[] = {
        {&et_gpt2_transformer_class, drop_gpt2},
        {&et_bert_embeddings_class, drop_bert},
    };
    static const struct et_surgery_policy attentions[] = {
        {&et_attention_class, set_bias},
        {&et_bert_self_attention_class, set_bias},
    };
    struct surgery s = {.length = max_sequence_length};
    struct et_surgery none;
    ETI_NEED(cx, cx, root, n);
    et_status status = et_module_replace(cx, root, attentions, 2, &s, &none);
    et_surgery_release(&none);
    if (status == ET_OK && s.changed > 0) {
        status = et_module_replace(cx, root, tables, 2, &s, &none);
        et_surgery_release(&none);
    }
    *n = s.changed;
    return status;
}

et_status
et_alibi_batch(struct et_graph *g, struct et_tensor **x, double scaling)
{
    struct et_ctx *cx = et_graph_ctx(g);
    ETI_NEED(cx, g, x);
    ETI_NEED(cx, *x);
    const struct et_desc *d = &(*x)->desc;
    if (d->ndim != 2)
        return ET_FAIL(cx, ET_EINVAL,
                       "alibi: train_sequence_length_scaling needs sequences [B,T]; "
                       "these have %d axes",
                       d->ndim);
    /* 0.1 times 10 is a little above 1, and 7 / 0.7 a little below 10. */
    int64_t length = (int64_t)((double)d->shape[1] * scaling + 1e-9);
    int64_t rows = (int64_t)((double)d->shape[0] / scaling + 1e-9);
    if (length < 1 || length * rows != d->shape[0] * d->shape[1])
        return ET_FAIL(cx, ET_EINVAL,
                       "alibi: train_sequence_length_scaling %g does not divide a "
                       "batch of %lld sequences of %lld tokens",
                       scaling, (long long)d->shape[0], (long long)d->shape[1]);
    *x = et_reshape(g, *x, ET_SHAPE(rows, length));
    return et_graph_status(g);
}

/* ---- what an undo needs ---- */

/* Where HOLDER, of one of the two classes below, has its table. */
static struct et_module **
positions_of(struct et_module *holder)
{
    return et_module_is(holder, &et_gpt2_transformer_class)
               ? &((struct et_gpt2_transformer_module *)holder)->wpe
               : &((struct et_bert_embeddings_module *)holder)->position_embeddings;
}

static struct et_param *
bias_of(struct et_module *attention)
{
    return et_module_is(attention, &et_attention_class)
               ? &((struct et_attention_module *)attention)->alibi
               : &((struct et_bert_self_attention_module *)attention)->alibi;
}

static et_status
note_table(struct et_ctx *cx, struct et_module *m, int index, void *data,
           struct et_module **out)
{
    struct alibi *own = data;
    struct et_module *positions = *positions_of(m);
    (void)index, (void)out;
    if (!positions)
        return ET_OK;
    ET_TRY(eti_grow(cx, &own->table, &own->room, own->n + 1, sizeof *own->table));
    own->table[own->n++] = (struct table){et_module_ref(m), et_module_ref(positions)};
    return ET_OK;
}

static et_status
note_bias(struct et_ctx *cx, struct et_module *m, int index, void *data,
          struct et_module **out)
{
    const struct et_param *p = bias_of(m);
    (void)cx, (void)index, (void)out;
    if (p->desc.dtype != ET_NONE)
        ((struct alibi *)data)->own = p->desc.shape[3];
    return ET_OK;
}

static et_status
drop_bias(struct et_ctx *cx, struct et_module *m, int index, void *data,
          struct et_module **out)
{
    const struct alibi *own = data;
    struct et_param *p = bias_of(m);
    (void)index, (void)out;
    if (own->own)
        return et_attention_set_alibi(cx, m, own->own);
    et_tensor_free(&p->tensor);
    et_free(cx, p->value);
    *p = (struct et_param){0};
    return ET_OK;
}

static void
release_tables(struct et_algorithm *self)
{
    struct alibi *own = self->state;
    for (int i = 0; i < own->n; i++) {
        et_module_free(&own->table[i].holder);
        et_module_free(&own->table[i].positions);
    }
    et_free(self->cx, own->table);
    *own = (struct alibi){0};
}

static et_status
take_notes(struct et_algorithm *self, struct et_state *s)
{
    static const struct et_surgery_policy policies[] = {
        {&et_gpt2_transformer_class, note_table},
        {&et_bert_embeddings_class, note_table},
        {&et_attention_class, note_bias},
        {&et_bert_self_attention_class, note_bias},
    };
    struct et_surgery none;
    release_tables(self);
    et_status status =
        et_module_replace(s->cx, s->model->root, policies, 4, self->state, &none);
    et_surgery_release(&none);
    return status;
}

/* Positions are learned anew, from 0 on: they had been taken from the sum. */
static et_status
undo(struct et_algorithm *self, struct et_state *s)
{
    static const struct et_surgery_policy policies[] = {
        {&et_attention_class, drop_bias},
        {&et_bert_self_attention_class, drop_bias},
    };
    struct alibi *own = self->state;
    struct et_surgery none;
    for (int i = 0; i < own->n; i++) {
        struct table *t = &own->table[i];
        struct et_embedding_module *e = (struct et_embedding_module *)t->positions;
        ET_TRY(eti_forget_values(s->cx, t->positions));
        e->weight.init = (struct et_init){.kind = ET_INIT_CONSTANT};
        *positions_of(t->holder) = t->positions;
        t->positions = NULL;
    }
    et_status status =
        et_module_replace(s->cx, s->model->root, policies, 2, own, &none);
    et_surgery_release(&none);
    release_tables(self);
    return status == ET_OK ? et_state_follow_surgery(s) : status;
}

/* ---- the algorithm ---- */

static et_status
operate(struct et_algorithm *self, struct et_state *s)
{
    const struct alibi_options *o = self->options;
    int changed;
    ET_TRY(take_notes(self, s));
    ET_TRY(et_apply_alibi(s->cx, s->model->root, o->max_sequence_length, &changed));
    if (changed == 0) {
        et_report(s->cx, ET_LOG_WARN,
                  "alibi changed nothing: it knows the attention of GPT-2 and BERT");
        return ET_OK;
    }
    eti_tell_changed(self, changed, changed, "attentions");
    struct alibi *own = self->state;
    for (int i = 0; i < own->n; i++)
        ET_TRY(eti_forget_values(s->cx, own->table[i].positions));
    return et_state_follow_surgery(s);
}

static et_status
check_length(const struct alibi_options *o, const struct et_state *s)
{
    if (s->max_seq_len <= o->max_sequence_length)
        return ET_OK;
    return ET_FAIL(s->cx, ET_EINVAL,
                   "alibi: max_sequence_length %lld is less than the data's %lld",
                   (long long)o->max_sequence_length, (long long)s->max_seq_len);
}

static et_status
cut(const struct alibi_options *o, struct et_state *s)
{
    double scaling = o->train_sequence_length_scaling;
    ET_TRY(et_alibi_batch(s->graph, &s->batch.target, scaling));
    ET_TRY(et_alibi_batch(s->graph, &s->batch.x, scaling));
    for (int i = 0; i < s->batch.n_others; i++)
        ET_TRY(et_alibi_batch(s->graph, &s->batch.other[i].tensor, scaling));
    s->batch.n = s->batch.x->desc.shape[0];
    return ET_OK;
}

static et_status
apply(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    (void)log;
    switch (event) {
    case ET_EVENT_INIT:
        return operate(self, s);
    case ET_EVENT_FIT_START:
        return check_length(self->options, s);
    default: /* AFTER_DATALOADER */
        return cut(self->options, s);
    }
}

static bool
match(struct et_algorithm *self, enum et_event event, const struct et_state *s)
{
    const struct alibi_options *o = self->options;
    return event != ET_EVENT_AFTER_DATALOADER ||
           (o->train_sequence_length_scaling != 1 &&
            s->model->type->task == ET_TASK_LANGUAGE);
}

static const struct et_option table[] = {
    ETI_ROW(INT, alibi_options, max_sequence_length, NULL, 1, 1 << 24, ET_OPT_REQUIRED,
            "tokens of the longest sequence that the model will see"),
    ETI_ROW(FLOAT, alibi_options, train_sequence_length_scaling, "0.25", 0, 1,
            ET_OPT_MIN_OPEN,
            "sequences are trained on in pieces of this part of their length"),
    {.name = NULL},
};

const struct et_algorithm_class et_algorithm_alibi = {
    .info =
        {
            .name = "alibi",
            .class_name = "Alibi",
            .summary = "attention with linear biases in place of position embeddings",
            .source = "Press et al. 2022, arXiv 2108.12409",
            .applies_to = "text",
            .options = table,
            .options_size = sizeof(struct alibi_options),
        },
    .state_size = sizeof(struct alibi),
    .events = ET_ON(INIT) | ET_ON(FIT_START) | ET_ON(AFTER_DATALOADER),
    .flags = ET_ALG_REQUIRED_ON_LOAD,
    .match = match,
    .apply = apply,
    .close = release_tables,
    .undo = undo,
};
