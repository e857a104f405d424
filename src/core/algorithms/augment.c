/* SPDX-License-Identifier: Apache-2.0 */
/* augment.c: see augment.h. */
#include "config.h"

#include "core/algorithms/augment.h"

et_status
eti_augment_image(struct et_ctx *cx, const struct et_transform_class *t,
                  const void *options, enum et_augmentation_set set, uint8_t *pixels,
                  int C, int64_t H, int64_t W, struct et_rng *rng)
{
    struct et_error why = {0};
    struct eti_scratch room = {0};
    struct et_canvas c = {.data = pixels, .C = C, .H = H, .W = W, .room = &room};
    if (set < ET_AUGMENT_ALL || set > ET_AUGMENT_ORIGINAL)
        return ET_FAIL(cx, ET_EINVAL, "%s: there is no augmentation set %d",
                       t->info.name, (int)set);
    ET_TRY(eti_check_options(cx, &t->info, options));
    ET_TRY(t->check(cx, options, C, &c.H, &c.W));
    if (H < 1 || W < 1)
        return ET_FAIL(cx, ET_EINVAL, "%s: a picture of %lld x %lld pixels",
                       t->info.name, (long long)W, (long long)H);
    et_status status = t->pixels(options, rng, &c, &why);
    eti_scratch_free(&room);
    return status == ET_OK ? ET_OK : ET_FAIL(cx, status, "%s", why.message);
}
