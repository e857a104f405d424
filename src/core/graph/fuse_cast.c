/* SPDX-License-Identifier: Apache-2.0 */
/* fuse_cast.c: a batch of images is made in the dtype that it is read in.
 *
 *   cast(image_batch(raw, frames, table), low) = image_batch(..., low)
 *   cast(image_augment(raw, rows, table), low) = image_augment(..., low)
 *
 * Each number is rounded once, as the cast does it; instead of writing it in f32 and
 * reading that again. Where somebody else reads the batch in f32 (to mix it, say) it
 * stays. */
#include "config.h"

#include <string.h>

#include "core/graph/passes.h"

static void
fuse_batch(struct eti_ir *ir, const int *uses, int cast)
{
    const struct eti_step *c = &ir->step[cast];
    int x = c->in[0], y = c->out[0];
    int step = y < 0 ? -1 : eti_ir_made_alone(ir, uses, x, ET_OP_image_batch);
    if (y >= 0 && step < 0)
        step = eti_ir_made_alone(ir, uses, x, ET_OP_image_augment);
    if (step < 0 || ir->value[x].desc.dtype != ET_F32 ||
        !eti_is_low(ir->value[y].desc.dtype) ||
        !eti_same_space(&ir->value[x].desc, &ir->value[y].desc))
        return;
    struct eti_step *s = &ir->step[step];
    struct et_image_batch_attr *attr = eti_arena_alloc(ir->arena, sizeof *attr);
    if (!attr) {
        ir->failed = true;
        return;
    }
    memcpy(attr, s->attr, sizeof *attr);
    attr->dtype = (int32_t)ir->value[y].desc.dtype;
    s->attr = attr;
    s->out[0] = y;
    ir->value[y].producer = step;
    ir->step[cast].op = NULL;
}

void
eti_fuse_cast(struct eti_ir *ir)
{
    const int *uses = eti_ir_count_uses(ir);
    for (int i = 0; uses && i < ir->n_steps && !ir->failed; i++)
        if (eti_ir_is(ir, i, ET_OP_cast))
            fuse_batch(ir, uses, i);
}
