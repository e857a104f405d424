/* SPDX-License-Identifier: Apache-2.0 */
/* join.c: an algorithm that the recipe does not name comes to a run that goes on.
 *
 * It stands behind the others, as if the recipe had named it last, and is asked for
 * between two batches. One that changes the model does so then (switch.c). What INIT
 * and the first batch would refuse is refused here, and then the run goes on as if
 * nobody had asked: a step is built with it whose evaluations are planned, with their
 * memory reserved, and not computed (et_graph_set_dry). A step that does not get to its
 * end must leave nothing behind (step.c), and this one is such a step. All ranks keep
 * the algorithm, or none does.
 *
 * A checkpoint says which algorithms have joined: a run that goes on from one has them
 * before its state is loaded (load.c), or is given the request again at its batch
 * (control.c). Either way it is the run that it was: draws are keyed by an algorithm's
 * name and the sample, not by its place. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/algorithms/methods.h"
#include "core/base/sized.h"
#include "core/graph/tensor.h"
#include "core/trainer/log.h"
#include "core/trainer/loop.h"
#include "core/trainer/ranks.h"
#include "core/trainer/trainer_impl.h"
#include "core/trainer/view.h"

enum { WORD = 64 };

/* ---- a step that is planned ---- */

/* A tensor as the loader's batches are, whose numbers nobody reads. */
static et_status
make_blank(struct et_trainer *t, const struct et_desc *desc, struct et_tensor **out)
{
    struct et_state *s = &t->state;
    struct et_storage *storage;
    *out = NULL;
    ET_TRY(et_storage_new(s->cx, s->dev, et_desc_bytes(desc), &storage));
    et_status status = et_tensor_view(s->cx, storage, 0, desc, "blank", out);
    et_storage_unref(storage);
    return status;
}

/* Up to the step only A is called, the one that is to join: the others need not stand
 * being called twice there. A batch that they would make smaller is planned whole. */
static et_status
begin_batch(struct et_trainer *t, struct et_algorithm *a)
{
    struct et_state *s = &t->state;
    struct et_algorithm **all = s->algorithms;
    int n = s->n_algorithms;
    s->algorithms = &a;
    s->n_algorithms = 1;
    et_status status = eti_run(t, ET_EVENT_AFTER_DATALOADER);
    if (status == ET_OK)
        status = eti_run(t, ET_EVENT_BATCH_START);
    s->algorithms = all;
    s->n_algorithms = n;
    return status;
}

static et_status
plan_batch(struct et_trainer *t, struct et_algorithm *a, const struct et_samples *blank)
{
    struct et_state *s = &t->state;
    et_graph_reset(s->graph);
    s->batch = s->full = *blank;
    ET_TRY(begin_batch(t, a));
    s->full = s->batch;
    s->full.n = s->full.x ? s->full.x->desc.shape[0] : 0;
    et_status status = eti_plan_step(t), undone = eti_parts_undo(t);
    return status != ET_OK ? status : undone;
}

/* What hooks count and log of that step is nobody's. */
static et_status
plan_quietly(struct et_trainer *t, struct et_algorithm *a,
             const struct et_samples *blank)
{
    struct et_state *s = &t->state;
    struct et_algorithm_count count[ET_MAX_ALGORITHMS];
    struct eti_book *book;
    int n_callbacks = s->n_callbacks;
    ET_TRY(eti_book_new(s->cx, &book));
    for (int i = 0; i < s->n_algorithms; i++)
        count[i] = s->algorithms[i]->count;
    eti_log_swap(s->log, &book);
    s->n_callbacks = 0;
    t->common.is_trial = true;
    et_graph_set_dry(s->graph, true);
    et_status status = plan_batch(t, a, blank);
    et_graph_abandon(s->graph);
    et_graph_set_dry(s->graph, t->config.dry);
    t->common.is_trial = false;
    s->n_callbacks = n_callbacks;
    eti_log_swap(s->log, &book);
    eti_book_free(&book);
    for (int i = 0; i < s->n_algorithms; i++)
        s->algorithms[i]->count = count[i];
    return status;
}

/* What a batch will be like: a transform of A's may make images smaller. */
static et_status
foresee_batch(struct et_trainer *t, struct et_loader_info *out)
{
    int64_t size[2] = {0};
    et_loader_get_info(t->config.train, out);
    ET_TRY(eti_added_try(t, size));
    for (int i = 0; i < out->n_fields; i++) {
        struct et_desc *d = &out->desc[i];
        const int64_t shape[] = {d->shape[0], d->shape[1], size[0], size[1]};
        if (out->field[i].kind == ET_FIELD_IMAGE)
            et_desc_init(d, d->dtype, 4, shape, ET_CHANNELS_LAST);
    }
    return ET_OK;
}

et_status
eti_algorithm_try(struct et_trainer *t, struct et_algorithm *a)
{
    struct et_state *s = &t->state;
    struct et_loader_info info;
    struct et_tensor *all[ET_MAX_FIELDS] = {0};
    et_status status = ET_OK;
    if (!t->config.train)
        return ET_OK;
    ET_TRY(foresee_batch(t, &info));
    for (int i = 0; i < info.n_fields && status == ET_OK; i++)
        status = make_blank(t, &info.desc[i], &all[i]);
    struct et_samples blank = {.x = all[ET_FIELD_X],
                               .target = all[ET_FIELD_TARGET],
                               .n = info.desc[ET_FIELD_X].shape[0]};
    for (int i = ET_FIELD_TARGET + 1; i < info.n_fields; i++)
        blank.other[blank.n_others++] =
            (struct et_named_tensor){info.field[i].name, all[i]};
    if (status == ET_OK)
        status = plan_quietly(t, a, &blank);
    et_graph_reset(s->graph);
    for (int i = 0; i < info.n_fields; i++)
        et_tensor_free(&all[i]);
    s->outputs = s->loss = s->grad = NULL;
    return status;
}

/* ---- who joins ---- */

/* The options of C as DEFAULTS have them, and TEXT, "name=value name=value". */
static et_status
read_options(struct et_trainer *t, const struct et_component *c, const char *text,
             void *options)
{
    struct et_ctx *cx = t->state.cx;
    char name[WORD], value[ET_REQUEST_VALUE];
    ET_TRY(et_options_init(cx, c->options, options));
    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        size_t n = strcspn(text, " "), equals = strcspn(text, "=");
        if (equals >= n || equals == 0 || equals >= sizeof name || n >= sizeof value)
            return ET_FAIL(cx, ET_EINVAL, "'%.*s' is no option=value", (int)n, text);
        snprintf(name, sizeof name, "%.*s", (int)equals, text);
        snprintf(value, sizeof value, "%.*s", (int)(n - equals - 1), text + equals + 1);
        ET_TRY(et_options_set(cx, c->options, options, name, value));
        text += n;
    }
    return ET_OK;
}

/* Is NAME among the words "name=value" of TEXT? */
static bool
is_given(const char *text, const char *name)
{
    size_t n = strlen(name);
    for (; *text; text += strcspn(text, " "), text += strspn(text, " "))
        if (strncmp(text, name, n) == 0 && text[n] == '=')
            return true;
    return false;
}

/* What has no default has to be given: all of it is asked for at once. */
static et_status
check_given(struct et_ctx *cx, const struct et_component *c, const char *text)
{
    char missing[160] = "";
    size_t used = 0;
    for (const struct et_option *row = c->options; row && row->name; row++)
        if (row->flags & ET_OPT_REQUIRED && !is_given(text, row->name) &&
            used + strlen(row->name) + 8 < sizeof missing)
            used += (size_t)snprintf(missing + used, sizeof missing - used, " %s=VALUE",
                                     row->name);
    if (!used)
        return ET_OK;
    return ET_FAIL(cx, ET_EINVAL,
                   "%s has options without a default: etude algo RUN %s on%s", c->name,
                   c->name, missing);
}

static et_status
make(struct et_trainer *t, const struct et_algorithm_class *c, const char *text,
     struct et_algorithm **out)
{
    struct et_ctx *cx = t->state.cx;
    void *options;
    ET_TRY(et_alloc(cx, c->info.options_size + 1, &options));
    et_status status = read_options(t, &c->info, text, options);
    if (status == ET_OK)
        status = et_algorithm_new(cx, c, options, out);
    et_options_release(c->info.options, options);
    et_free(cx, options);
    return status;
}

static et_status
find_class(struct et_trainer *t, const char *name,
           const struct et_algorithm_class **out)
{
    struct et_ctx *cx = t->state.cx;
    const struct et_component *c =
        et_registry_find(t->config.registry, ET_KIND_ALGORITHM, name);
    *out = (const struct et_algorithm_class *)(const void *)c;
    if (!c)
        return ET_FAIL(cx, ET_EINVAL,
                       "unknown algorithm '%s': etude algorithms lists "
                       "them",
                       name);
    const char *why = et_algorithm_why_not_join(*out);
    if (why)
        return ET_FAIL(cx, ET_EINVAL, "%s %s: put it in the recipe, and etude rerun",
                       name, why);
    if (t->state.n_algorithms == ET_MAX_ALGORITHMS)
        return ET_FAIL(cx, ET_EINVAL, "more than %d algorithms", ET_MAX_ALGORITHMS);
    return ET_OK;
}

et_status
eti_algorithm_prepare(struct et_trainer *t, struct et_algorithm *a, uint64_t events)
{
    struct et_state *s = &t->state;
    static const enum et_event order[] = {ET_EVENT_INIT, ET_EVENT_BEFORE_LOAD,
                                          ET_EVENT_AFTER_LOAD, ET_EVENT_FIT_START};
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        uint64_t bit = UINT64_C(1) << order[i];
        if ((a->type->events & events & bit) &&
            (!a->type->match || a->type->match(a, order[i], s)))
            ET_TRY(a->type->apply(a, order[i], s, s->log));
    }
    return ET_OK;
}

void
eti_algorithm_add(struct et_trainer *t, struct et_algorithm *a)
{
    t->hooks.algorithm[t->state.n_algorithms++] = a;
    t->hooks.own[t->hooks.n_own++] = a;
}

/* The last that was added goes again. */
static et_status
take_away(struct et_trainer *t, struct et_algorithm *a)
{
    et_status status = eti_switch_back(t, a);
    t->state.n_algorithms--;
    t->hooks.n_own--;
    eti_saver_left(t, a);
    if (ETI_HOOK(a->type, close))
        a->type->close(a);
    et_algorithm_free(&a);
    return status;
}

et_status
eti_algorithms_settle(struct et_trainer *t)
{
    for (int i = 0; i < t->state.n_algorithms; i++)
        ET_TRY(eti_algorithm_settle(t, t->state.algorithms[i]));
    return ET_OK;
}

et_status
eti_algorithm_settle(struct et_trainer *t, struct et_algorithm *a)
{
    return a->off || !a->type->settle ? ET_OK : a->type->settle(a, &t->state);
}

/* On this rank. *OUT: where that got. */
static et_status
join_here(struct et_trainer *t, const struct et_algorithm_class *c, const char *options,
          struct et_algorithm **out)
{
    *out = NULL;
    ET_TRY(eti_readback_deliver(t, 0));
    ET_TRY(eti_algorithms_settle(t));
    ET_TRY(make(t, c, options, out));
    (*out)->joined = true;
    eti_algorithm_add(t, *out);
    ET_TRY(eti_switch_enter(t, *out));
    return eti_saver_joined(t, *out);
}

/* Why the two are not meant together, as `validate` says it: no reason to refuse. */
static void
note_clash(const struct et_trainer *t, const struct et_algorithm *a, char *text,
           size_t size)
{
    bool order_matters;
    const struct et_state *s = &t->state;
    text[0] = '\0';
    for (int i = 0; i < s->n_algorithms && !*text; i++) {
        const char *other = s->algorithms[i]->type->info.name;
        const char *why =
            s->algorithms[i] == a
                ? NULL
                : eti_methods_clash(other, a->type->info.name, &order_matters);
        if (why)
            snprintf(text, size, ", behind %s: %s", other, why);
    }
}

et_status
eti_algorithm_join(struct et_trainer *t, const char *name, const char *options,
                   char *note, size_t size)
{
    const struct et_algorithm_class *c;
    struct et_algorithm *a;
    note[0] = '\0';
    ET_TRY(find_class(t, name, &c)); /* which all ranks find alike */
    ET_TRY(check_given(t->state.cx, &c->info, options));
    et_status status = join_here(t, c, options, &a);
    status = eti_ranks_agree(t, status, name);
    if (status == ET_OK)
        status = eti_switch_stays(t, a, true);
    else if (a && take_away(t, a) != ET_OK)
        status = ET_EINTERNAL;
    eti_show_again(t);
    if (status == ET_OK)
        note_clash(t, a, note, size);
    return status;
}
