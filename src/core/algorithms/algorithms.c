/* SPDX-License-Identifier: Apache-2.0 */
/* algorithms.c: the list of algorithms, making one, and what several of them need.
 *
 * A batch is (x, target): Composer's input_key and target_key are no options here. */
#include "config.h"

#include <string.h>

#include "core/algorithms/algorithms.h"
#include "core/base/need.h"
#include "core/base/sized.h"
#include "core/recipe/options.h"

const struct et_algorithm_class *const et_algorithm_classes[] = {
#define ET_ALGORITHM(name) &et_algorithm_##name,
#include "core/algorithms/algorithms.def"
#undef ET_ALGORITHM
    NULL,
};

const struct et_algorithm_class *
et_algorithm_find(const char *name)
{
    if (!name)
        return NULL;
    for (const struct et_algorithm_class *const *c = et_algorithm_classes; *c; c++)
        if (strcmp((*c)->info.name, name) == 0)
            return *c;
    return NULL;
}

/* ---- switching ---- */

/* What an algorithm did there stays, unless it has an undo: surgery, another step. */
static const uint64_t before_first =
    ET_ON(INIT) | ET_ON(BEFORE_LOAD) | ET_ON(AFTER_LOAD) | ET_ON(FIT_START);

bool
et_algorithm_switches(const struct et_algorithm_class *c)
{
    if (!c)
        return false;
    return (c->events & ~before_first) != 0 || ETI_HOOK(c, transform) ||
           ETI_HOOK(c, undo);
}

const char *
et_algorithm_why_not_join(const struct et_algorithm_class *c)
{
    if (!c || ETI_HOOK(c, undo))
        return NULL;
    if (c->flags & ET_ALG_REQUIRED_ON_LOAD)
        return "changes the model before the first batch";
    if (!et_algorithm_switches(c))
        return "changes how steps are taken before the first batch";
    if ((c->events & before_first) && !(c->flags & ET_ALG_PREPARES))
        return "does a part of its work before the first batch";
    return NULL;
}

/* ---- making one ---- */

/* A value must read back from its own text: the table's rules are the only ones. */
static et_status
check_row(struct et_ctx *cx, const struct et_component *info,
          const struct et_option *row, const void *options, void *scratch)
{
    char *text;
    ET_TRY(et_option_text(cx, row, options, &text));
    et_status status;
    if (strcmp(text, "null") == 0 && !(row->flags & ET_OPT_OPTIONAL)) {
        char expected[128];
        status = ET_FAIL(cx, ET_EINVAL, "%s needs %s: %s", info->name, row->name,
                         et_option_expects(row, expected, sizeof expected));
    } else {
        status = et_options_set(cx, info->options, scratch, row->name, text);
    }
    et_free(cx, text);
    return status;
}

et_status
eti_check_options(struct et_ctx *cx, const struct et_component *info,
                  const void *options)
{
    void *scratch;
    if (!info->options_size)
        return ET_OK;
    ET_TRY(et_alloc(cx, info->options_size, &scratch));
    et_status status = et_options_init(cx, info->options, scratch);
    const struct et_option *row = info->options;
    for (; row && row->name && status == ET_OK; row++)
        status = check_row(cx, info, row, options, scratch);
    et_options_release(info->options, scratch);
    et_free(cx, scratch);
    return status;
}

static et_status
check_options(struct et_ctx *cx, const struct et_algorithm_class *c,
              const void *options)
{
    ET_TRY(eti_check_options(cx, &c->info, options));
    return c->check ? c->check(cx, options) : ET_OK;
}

et_status
et_algorithm_new(struct et_ctx *cx, const struct et_algorithm_class *c,
                 const void *options, struct et_algorithm **out)
{
    ETI_NEED(cx, out);
    void *block;
    *out = NULL;
    ET_TRY(eti_need_class(cx, "et_algorithm_new", c));
    ETI_NEED(cx, cx);
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct et_algorithm *a = block;
    a->type = c;
    a->cx = cx;
    et_status status = ET_OK;
    if (c->state_size)
        status = et_alloc(cx, c->state_size, &a->state);
    if (status == ET_OK)
        status = eti_options_new(cx, &c->info, options, &a->options);
    if (status == ET_OK)
        status = check_options(cx, c, a->options);
    if (status != ET_OK) {
        et_algorithm_free(&a);
        return status;
    }
    *out = a;
    return ET_OK;
}

void
et_algorithm_free(struct et_algorithm **out)
{
    if (!out)
        return;
    struct et_algorithm *a = *out;
    *out = NULL;
    if (!a)
        return;
    eti_options_free(a->cx, &a->type->info, &a->options);
    et_free(a->cx, a->state);
    et_free(a->cx, a);
}

/* ---- surgery ---- */

et_status
eti_end_surgery(struct et_state *s, et_status status, struct et_surgery *surgery,
                int *n)
{
    *n = surgery->n;
    if (status == ET_OK && surgery->n > 0)
        status = et_state_follow_surgery(s);
    et_surgery_release(surgery);
    return status;
}

et_status
eti_undo_surgery(struct et_state *s, const struct et_surgery_policy *policies, int n,
                 void *data)
{
    struct et_surgery surgery;
    int changed;
    et_status status =
        et_module_replace(s->cx, s->model->root, policies, n, data, &surgery);
    return eti_end_surgery(s, status, &surgery, &changed);
}

et_status
eti_forget_values(struct et_ctx *cx, struct et_module *m)
{
    struct et_leaves l;
    ET_TRY(et_module_leaves(cx, m, ET_PARAM | ET_BUFFER, &l));
    for (int i = 0; i < l.n; i++) {
        struct et_param *p = l.v[i].param;
        et_tensor_free(&p->tensor);
        et_free(cx, p->value);
        p->value = NULL;
        p->gate = NULL;
    }
    et_leaves_release(&l);
    return ET_OK;
}

void
eti_tell_changed(const struct et_algorithm *self, int n, int all, const char *things)
{
    const char *name = self->type->info.name;
    if (n > 0)
        et_report(self->cx, ET_LOG_INFO, "%s: %d of %d %s", name, n, all, things);
    else if (all == 0)
        et_report(self->cx, ET_LOG_WARN, "%s changed nothing: the model has no %s",
                  name, things);
    else
        et_report(self->cx, ET_LOG_WARN,
                  "%s changed nothing: none of %d %s is one for its options", name, all,
                  things);
}

void
eti_tell_transform(const struct et_algorithm *self)
{
    et_report(self->cx, ET_LOG_INFO, "%s: the loader changes pictures to train on",
              self->type->info.name);
}

/* ---- draws ---- */

/* FNV-1a: a name's draws stay when the list of algorithms grows. */
static uint32_t
hash(const char *name)
{
    uint32_t h = 2166136261u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 16777619u;
    return h;
}

struct et_rng
eti_draws(const struct et_algorithm *self, const struct et_state *s,
          enum et_rng_stream stream, int64_t index, int part)
{
    struct et_rng r = et_rng_at(s->seed, stream, (uint64_t)index);
    r.ordinal = (uint64_t)hash(self->type->info.name) << 32 | (uint64_t)part << 28;
    return r;
}

/* ---- row numbers ---- */

et_status
eti_rows_reserve(struct et_state *s, struct eti_rows *r, int64_t n)
{
    if (r->leaf && r->n == n)
        return ET_OK;
    eti_rows_release(s->cx, r);
    void *block;
    ET_TRY(et_alloc(s->cx, (size_t)n * sizeof *r->v, &block));
    r->v = block;
    r->n = n;
    return et_tensor_new(s->cx, s->dev, ET_I32, 1, &n, ET_ROW_MAJOR, "rows", &r->leaf);
}

et_status
eti_rows_write(struct et_state *s, struct eti_rows *r)
{
    return et_tensor_write(s->cx, r->leaf, r->v, (size_t)r->n * sizeof *r->v);
}

void
eti_rows_release(struct et_ctx *cx, struct eti_rows *r)
{
    et_tensor_free(&r->leaf);
    et_free(cx, r->v);
    *r = (struct eti_rows){0};
}

struct et_tensor *
eti_take_rows(struct et_graph *g, struct et_tensor *x, struct et_tensor *index)
{
    static const int to_nhwc[] = {0, 2, 3, 1}, to_nchw[] = {0, 3, 1, 2};
    if (!x || x->desc.ndim != 4)
        return et_take(g, x, index, 0);
    return et_permute(g, et_take(g, et_permute(g, x, to_nhwc), index, 0), to_nchw);
}

et_status
eti_total_steps(const struct et_algorithm *self, const struct et_state *s,
                int64_t *steps)
{
    const char *name = self->type->info.name;
    bool in_epochs = s->max_duration.unit == ET_TIME_EPOCH;
    char text[ET_TIME_TEXT_BYTES];
    if (in_epochs && s->train_len < 1)
        return ET_FAIL(s->cx, ET_EINVAL,
                       "%s: the data do not say how many batches an epoch has; give "
                       "max_duration in batches (ba)",
                       name);
    if (!in_epochs && s->max_duration.unit != ET_TIME_BATCH)
        return ET_FAIL(s->cx, ET_EINVAL,
                       "%s: max_duration %s is not in epochs (ep) or batches (ba), so "
                       "that the run's steps cannot be counted",
                       name, et_time_text(s->max_duration, text, sizeof text));
    *steps = (int64_t)s->max_duration.value * (in_epochs ? s->train_len : 1);
    return ET_OK;
}

bool
eti_takes_dense_targets(const struct et_state *s)
{
    return s->model->task != ET_TASK_LANGUAGE;
}
