/* SPDX-License-Identifier: Apache-2.0 */
/* low_precision.c: what the two methods for norms in low precision share. */
#include "config.h"

#include "core/algorithms/low_precision.h"
#include "etude/recipe.h"

static const enum et_event events[] = {ET_EVENT_INIT, ET_EVENT_BEFORE_LOAD,
                                       ET_EVENT_AFTER_LOAD};
const char *const eti_low_precision_times[] = {"init", "before_load", "after_load",
                                               NULL};

bool
eti_low_precision_match(struct et_algorithm *self, enum et_event event,
                        const struct et_state *s)
{
    const struct eti_low_precision_options *o = self->options;
    (void)s;
    return event == events[o->apply_at];
}

et_status
eti_low_precision_apply(struct et_algorithm *self, struct et_state *s,
                        const struct et_module_class *type, const char *things,
                        eti_low_precision_fn *change)
{
    struct et_surgery surgery;
    int norms, changed;
    if (s->precision != ET_PRECISION_AMP_FP16 &&
        s->precision != ET_PRECISION_AMP_BF16) {
        et_report(s->cx, ET_LOG_WARN,
                  "%s changed nothing: it acts in precision amp_fp16 or amp_bf16",
                  self->type->info.name);
        return ET_OK;
    }
    ET_TRY(et_module_count_class(s->cx, s->model->root, type, &norms));
    et_status status = change(s->cx, s->model->root, &surgery);
    ET_TRY(eti_end_surgery(s, status, &surgery, &changed));
    eti_tell_changed(self, changed, norms, things);
    return ET_OK;
}
