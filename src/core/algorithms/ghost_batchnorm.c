/* SPDX-License-Identifier: Apache-2.0 */
/* ghost_batchnorm.c: batch norms over parts of a batch, by a change of modules.
 *
 * Hoffer et al. 2017, arXiv 1705.08741; spec/algorithms.md 2.11; the formula:
 * modules/ghost_norm.c. Differs: a batch that is smaller than ghost_batch_size is
 * refused in training alone (D9). */
#include "core/base/need.h"
#include "config.h"

#include "core/algorithms/algorithms.h"
#include "etude/nn.h"

struct ghost_batchnorm_options {
    int64_t ghost_batch_size;
};

struct surgery {
    int64_t ghost_batch_size;
    struct et_module *inside; /* of the last ghost norm met: its batch norm is next */
};

static et_status
note_ghost(struct et_ctx *cx, struct et_module *old, int index, void *data,
           struct et_module **out)
{
    struct surgery *s = data;
    (void)cx, (void)index, (void)out;
    s->inside = ((struct et_ghost_batch_norm_module *)old)->batchnorm;
    return ET_OK;
}

static et_status
replace_norm(struct et_ctx *cx, struct et_module *old, int index, void *data,
             struct et_module **out)
{
    const struct surgery *s = data;
    (void)index;
    if (old == s->inside)
        return ET_OK;
    return ET_NEW(cx, out, ghost_batch_norm, .batchnorm = old,
                  .ghost_batch_size = s->ghost_batch_size);
}

et_status
et_apply_ghost_batchnorm(struct et_ctx *cx, struct et_module *root,
                         int64_t ghost_batch_size, struct et_surgery *out)
{
    static const struct et_surgery_policy policies[] = {
        {&et_ghost_batch_norm_class, note_ghost},
        {&et_batch_norm_class, replace_norm},
    };
    ETI_NEED(cx, cx, root, out);
    struct surgery s = {.ghost_batch_size = ghost_batch_size};
    return et_module_replace(cx, root, policies, 2, &s, out);
}

static et_status
apply(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    const struct ghost_batchnorm_options *o = self->options;
    struct et_module *root = s->model->root;
    struct et_surgery surgery;
    int norms, changed, ghosts;
    (void)event;
    ET_TRY(et_module_count_class(s->cx, root, &et_batch_norm_class, &norms));
    et_status status =
        et_apply_ghost_batchnorm(s->cx, root, o->ghost_batch_size, &surgery);
    ET_TRY(eti_end_surgery(s, status, &surgery, &changed));
    ET_TRY(et_module_count_class(s->cx, root, &et_ghost_batch_norm_class, &ghosts));
    et_log_metric(log, "GhostBatchNorm/num_new_modules", ghosts);
    eti_tell_changed(self, changed, norms, "batch norms");
    return ET_OK;
}

static et_status
restore_norm(struct et_ctx *cx, struct et_module *old, int index, void *data,
             struct et_module **out)
{
    (void)cx, (void)index, (void)data;
    *out = et_module_ref(((struct et_ghost_batch_norm_module *)old)->batchnorm);
    return ET_OK;
}

static et_status
undo(struct et_algorithm *self, struct et_state *s)
{
    static const struct et_surgery_policy policy = {&et_ghost_batch_norm_class,
                                                    restore_norm};
    (void)self;
    return eti_undo_surgery(s, &policy, 1, NULL);
}

static const struct et_option table[] = {
    ETI_ROW(INT, ghost_batchnorm_options, ghost_batch_size, "32", 1, -1, 0,
            "samples that are normalised together"),
    {.name = NULL},
};

const struct et_algorithm_class et_algorithm_ghost_batchnorm = {
    .info =
        {
            .name = "ghost_batchnorm",
            .class_name = "GhostBatchNorm",
            .summary = "take batch statistics over smaller ghost batches",
            .source = "Hoffer et al. 2017, arXiv 1705.08741",
            .applies_to = "vision",
            .options = table,
            .options_size = sizeof(struct ghost_batchnorm_options),
        },
    .events = ET_ON(INIT),
    .flags = ET_ALG_REQUIRED_ON_LOAD,
    .apply = apply,
    .undo = undo,
};
