/* SPDX-License-Identifier: Apache-2.0 */
/* bind_space.c: parameters of a model or module in flat memory, for loops of one's own.
 * The trainer has its own way (core/trainer/bind.c), which can follow surgery. */
#include "config.h"

#include "core/base/memory.h"
#include "core/base/need.h"
#include "etude/model.h"

static et_status
new_space(const struct et_model *m, const struct et_leaves *leaves,
          struct et_device *dev, struct et_param_space **out)
{
    void *block;
    if (leaves->n == 0)
        return ET_FAIL(leaves->cx, ET_EINVAL, "there are no parameters to bind");
    ET_TRY(
        et_alloc(leaves->cx, (size_t)leaves->n * sizeof(struct et_param_spec), &block));
    struct et_param_spec *spec = block;
    for (int i = 0; i < leaves->n; i++)
        spec[i] = (struct et_param_spec){
            .name = leaves->v[i].name,
            .desc = leaves->v[i].param->desc,
            .role = et_model_param_role(m, leaves, i),
            .frozen = !leaves->v[i].param->requires_grad,
            .gate = leaves->v[i].param->gate,
        };
    et_status status = et_param_space_new(leaves->cx, dev, spec, leaves->n, out);
    et_free(leaves->cx, block);
    return status;
}

static et_status
bind(const struct et_leaves *leaves, struct et_param_space *space, uint32_t seed)
{
    void *block;
    ET_TRY(
        et_alloc(leaves->cx, (size_t)leaves->n * sizeof(struct et_tensor *), &block));
    space->param = block;
    for (int i = 0; i < leaves->n; i++) {
        struct et_tensor *view;
        ET_TRY(et_param_space_view(leaves->cx, space, -1, i, &view));
        et_status status = et_param_bind(leaves->cx, leaves->v[i].param,
                                         leaves->v[i].name, seed, &view);
        et_tensor_free(&view); /* NULL once the parameter has it */
        ET_TRY(status);
        space->param[i] = leaves->v[i].param->tensor;
    }
    return ET_OK;
}

et_status
et_model_bind_space(struct et_model *m, struct et_device *dev, uint32_t seed,
                    struct et_param_space **out)
{
    ETI_NEED(m ? m->cx : NULL, m, dev, out);
    struct et_leaves leaves;
    struct et_param_space *space = NULL;
    *out = NULL;
    ET_TRY(et_module_leaves(m->cx, m->root, ET_PARAM, &leaves));
    et_status status = new_space(m, &leaves, dev, &space);
    if (status == ET_OK)
        status = bind(&leaves, space, seed);
    et_leaves_release(&leaves);
    if (status == ET_OK)
        status = et_module_bind(m->cx, m->root, dev, ET_BUFFER, seed);
    if (status != ET_OK)
        et_param_space_free(&space);
    *out = space;
    return status;
}

et_status
et_module_bind_space(struct et_ctx *cx, struct et_module *root, struct et_device *dev,
                     uint32_t seed, struct et_param_space **out)
{
    ETI_NEED(cx, cx, root, dev, out);
    struct et_model alone = {.cx = cx, .root = root};
    return et_model_bind_space(&alone, dev, seed, out);
}
