/* SPDX-License-Identifier: Apache-2.0 */
/* channels_last.c: filters, and so activations, in the order N H W C.
 *
 * They are so from the start here: it looks, changes nothing and says so. Spec:
 * algorithms.md 2.4. */
#include "core/base/need.h"
#include "config.h"

#include "core/algorithms/algorithms.h"

et_status
et_apply_channels_last(struct et_ctx *cx, struct et_module *root, int *n, int *all)
{
    struct et_leaves l;
    ETI_NEED(cx, cx, root, n, all);
    *n = *all = 0;
    ET_TRY(et_module_leaves(cx, root, ET_PARAM, &l));
    for (int i = 0; i < l.n; i++) {
        const struct et_desc *d = &l.v[i].param->desc;
        *all += d->ndim == 4;
        *n += d->ndim == 4 && et_desc_is_contiguous(d, ET_CHANNELS_LAST);
    }
    et_leaves_release(&l);
    return ET_OK;
}

static et_status
apply(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    int n, all;
    (void)self, (void)event, (void)log;
    ET_TRY(et_apply_channels_last(s->cx, s->model->root, &n, &all));
    et_report(s->cx, n < all || all == 0 ? ET_LOG_WARN : ET_LOG_INFO,
              "channels_last changes nothing: %d of %d filters are channels-last", n,
              all);
    return ET_OK;
}

static et_status
undo(struct et_algorithm *self, struct et_state *s)
{
    (void)self, (void)s; /* it has changed nothing */
    return ET_OK;
}

const struct et_algorithm_class et_algorithm_channels_last = {
    .info =
        {
            .name = "channels_last",
            .class_name = "ChannelsLast",
            .summary = "keep activations in NHWC order, as they are here anyway",
            .source = "MosaicML Composer",
            .applies_to = "vision",
        },
    .events = ET_ON(INIT),
    .flags = ET_ALG_INIT_AFTER_SURGERY,
    .apply = apply,
    .undo = undo,
};
