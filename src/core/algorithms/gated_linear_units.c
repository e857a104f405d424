/* SPDX-License-Identifier: Apache-2.0 */
/* gated_linear_units.c: gated feed-forward parts of BERT, by a change of modules.
 *
 *     LN(dropout(B act(A x)) + x)  becomes  LN(Wo dropout(act(Wg x) * (Wn x)) + x)
 *
 * Shazeer 2020, arXiv 2002.05202; spec/algorithms.md 2.10; the block: modules/bert.c.
 * All weights are new. */
#include "core/base/need.h"
#include "config.h"

#include "core/algorithms/algorithms.h"
#include "etude/nn.h"

struct gated_linear_units_options {
    int act_fn;
    bool gated_layer_bias, non_gated_layer_bias;
};

static const char *const acts[] = {"model", "relu", "gelu",    "gelu_tanh",
                                   "silu",  "tanh", "sigmoid", NULL};

struct surgery {
    const struct et_module_class *act; /* NULL: the model's */
    bool gated_layer_bias, non_gated_layer_bias;
    const struct et_module_class *found; /* of the model's activations */
    int kinds;                           /* how many classes they have, up to 2 */
};

/* ---- which activation ---- */

static et_status
note_act(struct et_ctx *cx, struct et_module *old, int index, void *data,
         struct et_module **out)
{
    struct surgery *s = data;
    const struct et_module *act =
        ((struct et_bert_intermediate_module *)old)->intermediate_act_fn;
    const struct et_module_class *type = act ? act->type : NULL;
    (void)cx, (void)index, (void)out;
    if (type && (s->kinds == 0 || type != s->found))
        s->kinds++;
    s->found = type;
    return ET_OK;
}

static et_status
find_act(struct et_ctx *cx, struct et_module *root, struct surgery *s)
{
    static const struct et_surgery_policy policy = {&et_bert_intermediate_class,
                                                    note_act};
    struct et_surgery none;
    et_status status = et_module_replace(cx, root, &policy, 1, s, &none);
    et_surgery_release(&none);
    ET_TRY(status);
    if (s->act)
        return ET_OK;
    if (s->kinds != 1 || !s->found)
        return ET_FAIL(cx, ET_EINVAL,
                       "gated_linear_units: the model's feed-forward parts have %s; "
                       "act_fn says which is wanted",
                       s->kinds > 1 ? "activations of several kinds" : "no activation");
    s->act = s->found;
    return ET_OK;
}

/* ---- the change ---- */

static et_status
drop_intermediate(struct et_ctx *cx, struct et_module *old, int index, void *data,
                  struct et_module **out)
{
    (void)old, (void)index, (void)data;
    return et_module_new(cx, &et_identity_class, NULL, out);
}

static et_status
replace_output(struct et_ctx *cx, struct et_module *old, int index, void *data,
               struct et_module **out)
{
    const struct surgery *s = data;
    (void)index;
    return ET_NEW(cx, out, bert_gated_output, .output = old, .act = s->act,
                  .gated_layer_bias = s->gated_layer_bias,
                  .non_gated_layer_bias = s->non_gated_layer_bias);
}

et_status
et_apply_gated_linear_units(struct et_ctx *cx, struct et_module *root,
                            const struct et_module_class *act, bool gated_layer_bias,
                            bool non_gated_layer_bias, struct et_surgery *out)
{
    static const struct et_surgery_policy policies[] = {
        {&et_bert_intermediate_class, drop_intermediate},
        {&et_bert_output_class, replace_output},
    };
    struct surgery s = {
        .act = act,
        .gated_layer_bias = gated_layer_bias,
        .non_gated_layer_bias = non_gated_layer_bias,
    };
    int parts;
    ETI_NEED(cx, cx, root, out);
    *out = (struct et_surgery){.cx = cx};
    ET_TRY(et_module_count_class(cx, root, &et_bert_layer_class, &parts));
    if (parts == 0)
        return ET_FAIL(cx, ET_EINVAL,
                       "gated_linear_units needs a BERT model: this one has no "
                       "BertLayer");
    ET_TRY(et_module_count_class(cx, root, &et_bert_intermediate_class, &parts));
    if (parts == 0)
        return ET_OK;
    ET_TRY(find_act(cx, root, &s));
    return et_module_replace(cx, root, policies, 2, &s, out);
}

static et_status
apply(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    const struct gated_linear_units_options *o = self->options;
    struct et_module *root = s->model->root;
    struct et_surgery *kept = self->state;
    int layers, before, after, changed;
    (void)event, (void)log;
    et_surgery_release(kept);
    ET_TRY(et_module_count_class(s->cx, root, &et_bert_gated_output_class, &before));
    et_status status = et_apply_gated_linear_units(
        s->cx, root, o->act_fn ? et_module_class_find(acts[o->act_fn]) : NULL,
        o->gated_layer_bias, o->non_gated_layer_bias, kept);
    changed = kept->n;
    for (int i = 0; i < changed && status == ET_OK; i++)
        status = eti_forget_values(s->cx, kept->pair[i].before);
    if (changed > 0 && status == ET_OK)
        status = et_state_follow_surgery(s);
    ET_TRY(status);
    ET_TRY(et_module_count_class(s->cx, root, &et_bert_layer_class, &layers));
    ET_TRY(et_module_count_class(s->cx, root, &et_bert_gated_output_class, &after));
    if (changed > 0 && after == before)
        et_report(s->cx, ET_LOG_WARN,
                  "gated_linear_units changed nothing: no BertOutput ends a layer");
    else if (before == 0 || after > before)
        eti_tell_changed(self, after - before, layers, "feed-forward parts");
    return ET_OK;
}

/* ---- taking it back ---- */

/* The parts that were there come back without values: these begin anew. */
static et_status
restore(struct et_ctx *cx, struct et_module *old, int index, void *data,
        struct et_module **out)
{
    const struct et_surgery *kept = data;
    (void)cx, (void)index;
    for (int i = 0; i < kept->n; i++)
        if (kept->pair[i].after == old)
            *out = et_module_ref(kept->pair[i].before);
    return ET_OK;
}

static et_status
undo(struct et_algorithm *self, struct et_state *s)
{
    static const struct et_surgery_policy policies[] = {
        {&et_identity_class, restore},
        {&et_bert_gated_output_class, restore},
    };
    struct et_surgery *kept = self->state;
    et_status status = eti_undo_surgery(s, policies, 2, kept);
    et_surgery_release(kept);
    return status;
}

static void
close_gated(struct et_algorithm *self)
{
    et_surgery_release(self->state);
}

static const struct et_option table[] = {
    ETI_ENUM(gated_linear_units_options, act_fn, "model", acts, 0,
             "activation of the gate; model: the one that the model has"),
    ETI_BOOL(gated_linear_units_options, gated_layer_bias, "false",
             "give the gate's layer a bias"),
    ETI_BOOL(gated_linear_units_options, non_gated_layer_bias, "false",
             "give the other layer a bias"),
    {.name = NULL},
};

const struct et_algorithm_class et_algorithm_gated_linear_units = {
    .info =
        {
            .name = "gated_linear_units",
            .class_name = "GatedLinearUnits",
            .summary = "put gated linear units into feed-forward parts",
            .source = "Shazeer 2020, arXiv 2002.05202",
            .applies_to = "text",
            .options = table,
            .options_size = sizeof(struct gated_linear_units_options),
        },
    .state_size = sizeof(struct et_surgery),
    .events = ET_ON(INIT),
    .flags = ET_ALG_REQUIRED_ON_LOAD,
    .apply = apply,
    .close = close_gated,
    .undo = undo,
};
