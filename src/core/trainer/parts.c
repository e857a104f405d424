/* SPDX-License-Identifier: Apache-2.0 */
/* parts.c: calling the parts of a trainer, stage by stage. See part.h. */
#include "config.h"

#include "core/trainer/trainer_impl.h"

static const struct eti_part_type *const types[] = {
#define PART(id, type) [ETI_PART_##id] = &type,
#include "core/trainer/parts.def"
};

struct eti_part *
eti_part_of(struct et_trainer *t, enum eti_part_id id)
{
    return &t->part[id];
}

void *
eti_part_own(struct et_trainer *t, enum eti_part_id id)
{
    return t->part[id].own;
}

struct eti_train_step *
eti_train_step_of(struct et_trainer *t)
{
    return &t->step;
}

et_status
eti_parts_make(struct et_trainer *t)
{
    for (int i = 0; i < ETI_N_PARTS; i++) {
        t->part[i] = (struct eti_part){
            .type = types[i],
            .t = t,
            .s = &t->state,
            .config = &t->config,
            .common = &t->common,
        };
        if (types[i]->size)
            ET_TRY(et_alloc(t->state.cx, types[i]->size, &t->part[i].own));
    }
    return ET_OK;
}

void
eti_parts_free(struct et_trainer *t)
{
    eti_parts_release(t);
    for (int i = 0; i < ETI_N_PARTS; i++) {
        et_free(t->state.cx, t->part[i].own);
        t->part[i].own = NULL;
    }
}

/* ---- stages ---- */

/* STAGE of each part P that has it, with the arguments behind. */
#define CALL_ALL(t, stage, ...)                                                        \
    do {                                                                               \
        for (struct eti_part *p = (t)->part; p < (t)->part + ETI_N_PARTS; p++)         \
            if (p->type->stage)                                                        \
                ET_TRY(p->type->stage(__VA_ARGS__));                                   \
        return ET_OK;                                                                  \
    } while (0)

et_status
eti_parts_init(struct et_trainer *t)
{
    CALL_ALL(t, init, p);
}

et_status
eti_parts_bind(struct et_trainer *t)
{
    CALL_ALL(t, bind, p);
}

et_status
eti_parts_begin(struct et_trainer *t)
{
    CALL_ALL(t, begin, p, &t->step);
}

et_status
eti_parts_loss(struct et_trainer *t)
{
    CALL_ALL(t, loss, p, &t->step);
}

et_status
eti_parts_add(struct et_trainer *t)
{
    CALL_ALL(t, add, p, &t->step);
}

et_status
eti_parts_grad(struct et_trainer *t)
{
    CALL_ALL(t, grad, p, &t->step);
}

et_status
eti_parts_skip(struct et_trainer *t)
{
    CALL_ALL(t, skip, p, &t->step);
}

et_status
eti_parts_append(struct et_trainer *t)
{
    CALL_ALL(t, append, p, &t->step);
}

et_status
eti_parts_undo(struct et_trainer *t)
{
    CALL_ALL(t, undo, p);
}

et_status
eti_parts_gather(struct et_trainer *t)
{
    CALL_ALL(t, gather, p);
}

et_status
eti_parts_archive(struct et_trainer *t, struct et_archive *a)
{
    CALL_ALL(t, archive, p, a);
}

/* From the last to the first: a part may need what an earlier one has. */
void
eti_parts_release(struct et_trainer *t)
{
    for (int i = ETI_N_PARTS; i-- > 0;)
        if (t->part[i].own && t->part[i].type->release)
            t->part[i].type->release(&t->part[i]);
}

/* ---- numbers ---- */

int64_t
eti_sums_before(const struct eti_part *p)
{
    int64_t n = 0;
    for (const struct eti_part *q = p->t->part; q < p; q++)
        n += q->type->n_sums ? q->type->n_sums(q) : 0;
    return n;
}

int64_t
eti_count_sums(struct et_trainer *t)
{
    int64_t n = 0;
    for (int i = 0; i < ETI_N_PARTS; i++)
        n += t->part[i].type->n_sums ? t->part[i].type->n_sums(&t->part[i]) : 0;
    return n;
}

int
eti_parts_sums(struct et_trainer *t, struct et_tensor *v[ETI_MAX_NUMBERS])
{
    int n = 0;
    for (int i = 0; i < ETI_N_PARTS; i++)
        if (t->part[i].type->sums)
            n += t->part[i].type->sums(&t->part[i], &t->step, v + n);
    return n;
}

int
eti_count_said(struct et_trainer *t)
{
    int n = 0;
    for (int i = 0; i < ETI_N_PARTS; i++)
        n += t->part[i].type->say != NULL;
    return n;
}

void
eti_parts_say(struct et_trainer *t, float *said)
{
    for (int i = 0; i < ETI_N_PARTS; i++)
        if (t->part[i].type->say)
            *said++ = t->part[i].type->say(&t->part[i]);
}

void
eti_parts_hear(struct et_trainer *t, const float *said, bool again)
{
    for (int i = 0; i < ETI_N_PARTS; i++)
        if (t->part[i].type->say)
            t->part[i].type->hear(&t->part[i], *said++, again);
}

int64_t
eti_count_reported(struct et_trainer *t)
{
    int64_t n = 0;
    for (int i = 0; i < ETI_N_PARTS; i++)
        n += t->part[i].type->n_reported ? t->part[i].type->n_reported(&t->part[i]) : 0;
    return n;
}

int
eti_parts_report(struct et_trainer *t, struct et_tensor *v[ETI_MAX_NUMBERS])
{
    int n = 0;
    for (int i = 0; i < ETI_N_PARTS; i++)
        if (t->part[i].type->report)
            n += t->part[i].type->report(&t->part[i], &t->step, v + n);
    return n;
}

void
eti_parts_take(struct et_trainer *t, struct eti_numbers *numbers)
{
    for (int i = 0; i < ETI_N_PARTS; i++)
        if (t->part[i].type->take)
            t->part[i].type->take(&t->part[i], numbers);
}
