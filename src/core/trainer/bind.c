/* SPDX-License-Identifier: Apache-2.0 */
/* bind.c: the model's parameters and the flat parameter space.
 *
 * Every parameter has a slot, also one that is frozen: freezing is a flag, and nothing
 * moves by it. Only where surgery gave the model other parameters is a new space laid
 * out. Values, moments and copies are carried to it: a parameter whose value lies in
 * the old space goes on from there, whatever surgery has named it since. */
#include "config.h"

#include <string.h>

#include "core/graph/tensor.h"
#include "core/optim/optim.h"
#include "core/trainer/trainer_impl.h"

/* What each precision multiplies in; NONE: as written, in f32. */
enum et_dtype
eti_low_dtype(int precision)
{
    static const enum et_dtype low[] = {
        [ET_PRECISION_FP32] = ET_NONE,
        [ET_PRECISION_AMP_FP16] = ET_F16,
        [ET_PRECISION_AMP_BF16] = ET_BF16,
    };
    return low[precision];
}

/* ---- what is trained ---- */

static et_status
list_trained(struct et_trainer *t)
{
    struct eti_trained *of = &t->params.trained;
    of->n = 0;
    for (int i = 0; i < t->params.n; i++) {
        if (t->state.params->slot[i].frozen)
            continue;
        of->slot[of->n] = i;
        of->leaf[of->n++] = t->params.v[i]->tensor;
    }
    if (of->n == 0)
        return ET_FAIL(t->state.cx, ET_EINVAL, "the model has no parameters to train");
    return ET_OK;
}

et_status
eti_follow_frozen(struct et_trainer *t)
{
    for (int i = 0; i < t->params.n; i++)
        t->params.v[i]->requires_grad = !t->state.params->slot[i].frozen;
    return list_trained(t);
}

/* ---- the space there is ---- */

/* Has each of LEAVES its slot, in this order? */
static bool
is_bound(const struct et_trainer *t, const struct et_leaves *leaves)
{
    const struct et_param_space *space = t->state.params;
    if (!space || leaves->n != t->params.n)
        return false;
    for (int i = 0; i < leaves->n; i++)
        if (leaves->v[i].param != t->params.v[i] ||
            strcmp(leaves->v[i].name, space->slot[i].name) != 0 ||
            !et_desc_equal(&leaves->v[i].param->desc, &space->slot[i].desc))
            return false;
    return true;
}

static et_status
flag_as_model(struct et_trainer *t)
{
    for (int i = 0; i < t->params.n; i++) {
        t->state.params->slot[i].frozen = !t->params.v[i]->requires_grad;
        t->state.params->slot[i].gate = t->params.v[i]->gate;
    }
    return list_trained(t);
}

/* ---- another space ---- */

static void
release_lists(struct et_trainer *t)
{
    struct et_ctx *cx = t->state.cx;
    et_free(cx, t->params.v);
    et_free(cx, t->params.grads);
    et_free(cx, t->params.trained.leaf);
    et_free(cx, t->params.trained.grad);
    et_free(cx, t->params.trained.slot);
    t->params = (struct eti_params){.kept = t->params.kept};
}

static et_status
make_lists(struct et_trainer *t, const struct et_leaves *leaves)
{
    struct et_ctx *cx = t->state.cx;
    size_t n = (size_t)leaves->n;
    void *block;
    release_lists(t);
    ET_TRY(et_alloc(cx, n * sizeof *t->params.v, &block));
    t->params.v = block;
    ET_TRY(et_alloc(cx, n * sizeof(struct et_tensor *), &block));
    t->params.grads = block;
    ET_TRY(et_alloc(cx, n * sizeof(struct et_tensor *), &block));
    t->params.trained.leaf = block;
    ET_TRY(et_alloc(cx, n * sizeof(struct et_tensor *), &block));
    t->params.trained.grad = block;
    ET_TRY(et_alloc(cx, n * sizeof(int), &block));
    t->params.trained.slot = block;
    for (int i = 0; i < leaves->n; i++)
        t->params.v[i] = leaves->v[i].param;
    t->params.n = leaves->n;
    return ET_OK;
}

static et_status
new_space(struct et_trainer *t, const struct et_leaves *leaves,
          struct et_param_space **out)
{
    struct et_state *s = &t->state;
    struct et_param_spec *spec;
    void *block;
    ET_TRY(et_alloc(s->cx, (size_t)leaves->n * sizeof *spec, &block));
    spec = block;
    for (int i = 0; i < leaves->n; i++)
        spec[i] = (struct et_param_spec){
            .name = leaves->v[i].name,
            .desc = leaves->v[i].param->desc,
            .group = eti_groups_find(t, leaves->v[i].name),
            .role = et_model_param_role(s->model, leaves, i),
            .frozen = !leaves->v[i].param->requires_grad,
            .gate = leaves->v[i].param->gate,
        };
    et_status status = et_param_space_new(s->cx, s->dev, spec, leaves->n, out);
    et_free(s->cx, block);
    if (status == ET_OK) /* those without a parameter count, too */
        (*out)->n_groups = 1 + t->config.n_groups;
    return status;
}

/* The parameters become views of SPACE, which takes their values. */
static et_status
bind_views(struct et_trainer *t, struct et_param_space *space)
{
    for (int i = 0; i < t->params.n; i++) {
        struct et_tensor *view;
        ET_TRY(et_param_space_view(t->state.cx, space, -1, i, &view));
        et_status status = et_param_bind(t->state.cx, t->params.v[i],
                                         space->slot[i].name, t->state.seed, &view);
        et_tensor_free(&view);
        ET_TRY(status);
    }
    return ET_OK;
}

/* The slot of SPACE that P's value lies in; -1: none. */
static int
slot_of(const struct et_param_space *space, const struct et_param *p)
{
    if (!space || !p->tensor || p->tensor->storage != space->values->storage)
        return -1;
    for (int i = 0; i < space->n; i++)
        if (space->slot[i].offset == p->tensor->offset)
            return i;
    return -1;
}

/* Binds the parameters to SPACE, where values, moments and copies go, too. */
static et_status
move_to(struct et_trainer *t, struct et_param_space *space)
{
    struct et_state *s = &t->state;
    void *block;
    ET_TRY(et_alloc(s->cx, (size_t)space->n * sizeof(int), &block));
    int *was = block;
    for (int i = 0; i < space->n; i++)
        was[i] = slot_of(s->params, t->params.v[i]);
    et_status status = bind_views(t, space);
    if (status == ET_OK)
        status = eti_note_copies(t);
    if (status == ET_OK && s->optimizer)
        status = eti_optimizer_move(s->optimizer, space, was);
    et_free(s->cx, was);
    return status;
}

static et_status
lay_out(struct et_trainer *t, const struct et_leaves *leaves)
{
    struct et_state *s = &t->state;
    struct et_param_space *space = NULL;
    if (leaves->n == 0)
        return ET_FAIL(s->cx, ET_EINVAL, "the model has no parameters to train");
    bool back = eti_kept_fits(t, leaves);
    ET_TRY(make_lists(t, leaves));
    s->surgeries++;
    if (back)
        return eti_take_kept(t);
    et_status status = new_space(t, leaves, &space);
    if (status == ET_OK)
        status = et_param_space_shadow(space, eti_low_dtype(s->precision));
    if (status == ET_OK)
        status = move_to(t, space);
    if (status != ET_OK) {
        et_param_space_free(&space);
        return status;
    }
    eti_replaced_space(t, s->params);
    s->params = space;
    return list_trained(t);
}

et_status
eti_bind_parameters(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    struct et_leaves leaves;
    ET_TRY(et_module_leaves(s->cx, s->model->root, ET_PARAM, &leaves));
    et_status status = is_bound(t, &leaves) ? flag_as_model(t) : lay_out(t, &leaves);
    et_leaves_release(&leaves);
    if (status == ET_OK)
        status = et_module_bind(s->cx, s->model->root, s->dev, ET_PARAM | ET_BUFFER,
                                s->seed);
    return status == ET_OK ? eti_parts_bind(t) : status;
}

void
eti_unbind_parameters(struct et_trainer *t)
{
    release_lists(t);
    eti_forget_kept(t);
    et_param_space_free(&t->state.params);
}
