/* SPDX-License-Identifier: Apache-2.0 */
/* stack.c: see stack.h. */
#include "core/models/stack.h"

#include "core/base/sized.h"

et_status
eti_stack_begin(struct et_ctx *cx, const struct et_model_facts *facts,
                struct et_module **root, struct eti_stack *out)
{
    ET_TRY(et_module_new(cx, &et_sequential_class, NULL, root));
    *out = (struct eti_stack){
        .cx = cx,
        .row = *root,
        .shape = {facts->channels, facts->height, facts->width},
    };
    return ET_OK;
}

et_status
eti_stack_add(struct eti_stack *s, const char *name, const struct et_module_class *type,
              void *options)
{
    if (ETI_HOOK(type, adapt))
        ET_TRY(type->adapt(s->cx, options, s->shape));
    return et_module_add(s->cx, s->row, name, type, options);
}
