/* SPDX-License-Identifier: Apache-2.0 */
/* kept.c: the parameter space from before a change of the model that may be taken back.
 *
 * An algorithm that changes the model of a run that goes on (switch.c) may be refused
 * after its surgery: by the step that is planned with it. The run then goes on as if
 * nobody had asked, so values, moments and averages must be those of before, also of
 * parameters that surgery had dropped. They are where they were: the old space is freed
 * when the change stays. */
#include "config.h"

#include <string.h>

#include "core/optim/optim.h"
#include "core/trainer/trainer_impl.h"

/* Room for another space, with what its optimizer and averages have of it. */
static et_status
check_room(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    const struct et_param_space *space = s->params;
    struct et_storage *room;
    int64_t arrays = 1 + space->n_moments + (eti_low_dtype(s->precision) != ET_NONE);
    for (const struct et_param_copy *c = space->copies; c; c = c->next)
        arrays++;
    size_t bytes = (size_t)(arrays * space->total) * sizeof(float);
    et_status status = et_storage_new(s->cx, s->dev, bytes, &room);
    if (status == ET_OK)
        et_storage_unref(room);
    return status;
}

et_status
eti_keep_space(struct et_trainer *t)
{
    ET_TRY(check_room(t));
    t->params.kept.wanted = true;
    return ET_OK;
}

static void
forget_copies(struct et_trainer *t)
{
    struct eti_kept *kept = &t->params.kept;
    for (int i = 0; i < kept->n_copies; i++)
        et_tensor_free(&kept->copy[i].values);
    et_free(t->state.cx, kept->copy);
    kept->copy = NULL;
    kept->n_copies = 0;
}

void
eti_forget_kept(struct et_trainer *t)
{
    forget_copies(t);
    et_param_space_free(&t->params.kept.space);
    t->params.kept.wanted = false;
}

et_status
eti_note_copies(struct et_trainer *t)
{
    struct eti_kept *kept = &t->params.kept;
    struct et_ctx *cx = t->state.cx;
    void *block;
    int n = 0;
    if (!kept->wanted || kept->space)
        return ET_OK;
    forget_copies(t);
    for (struct et_param_copy *c = t->state.params->copies; c; c = c->next)
        n++;
    ET_TRY(et_alloc(cx, ((size_t)n + 1) * sizeof *kept->copy, &block));
    kept->copy = block;
    for (struct et_param_copy *c = t->state.params->copies; c; c = c->next) {
        struct eti_kept_copy *one = &kept->copy[kept->n_copies];
        ET_TRY(et_tensor_view(cx, c->values->storage, c->values->offset,
                              &c->values->desc, c->values->name, &one->values));
        one->copy = c;
        kept->n_copies++;
    }
    return ET_OK;
}

void
eti_replaced_space(struct et_trainer *t, struct et_param_space *old)
{
    struct eti_kept *kept = &t->params.kept;
    if (kept->wanted && !kept->space)
        kept->space = old;
    else
        et_param_space_free(&old);
}

bool
eti_kept_fits(const struct et_trainer *t, const struct et_leaves *leaves)
{
    const struct et_param_space *space = t->params.kept.space;
    if (!space || leaves->n != space->n)
        return false;
    for (int i = 0; i < leaves->n; i++)
        if (strcmp(leaves->v[i].name, space->slot[i].name) != 0 ||
            !et_desc_equal(&leaves->v[i].param->desc, &space->slot[i].desc))
            return false;
    return true;
}

/* Parameter I of the trainer's lists gets the value that SPACE has. */
static et_status
bind_to(struct et_trainer *t, struct et_param_space *space, int i)
{
    struct et_param *p = t->params.v[i];
    struct et_tensor *view;
    ET_TRY(et_param_space_view(t->state.cx, space, -1, i, &view));
    et_tensor_free(&p->tensor);
    et_free(t->state.cx, p->value);
    p->value = NULL;
    p->tensor = view;
    p->gate = space->slot[i].gate;
    return ET_OK;
}

et_status
eti_take_kept(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    struct eti_kept *kept = &t->params.kept;
    struct et_param_space *space = kept->space;
    for (int i = 0; i < t->params.n; i++)
        ET_TRY(bind_to(t, space, i));
    if (s->optimizer)
        ET_TRY(eti_optimizer_return(s->optimizer, space));
    for (int i = 0; i < kept->n_copies; i++)
        eti_param_copy_adopt(space, kept->copy[i].copy, &kept->copy[i].values);
    et_param_space_free(&s->params);
    s->params = space;
    kept->space = NULL;
    forget_copies(t);
    return eti_follow_frozen(t);
}
