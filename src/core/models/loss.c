/* SPDX-License-Identifier: Apache-2.0 */
/* loss.c: a model's loss: which it is, whether it fits, and its nodes. The losses
 * themselves are in core/losses. */
#include <stdio.h>
#include <string.h>

#include "core/base/need.h"
#include "core/base/sized.h"
#include "core/graph/graph_impl.h"
#include "core/losses/losses.h"
#include "core/ops/ops.h"
#include "etude/model.h"

/* A plugin with older headers does not say. */
static unsigned
takes_of(const struct et_loss_class *c)
{
    return ETI_HAS(c, takes) ? c->takes : 0;
}

/* Learning numbers, or how much of each class there is: by what the loss takes. */
static void
settle_task(struct et_model *m)
{
    if (m->type->task == ET_TASK_CLASSIFICATION && m->has_numbers)
        m->task = takes_of(m->loss) & ET_TAKES_SHARES ? ET_TASK_CLASSIFICATION
                                                      : ET_TASK_REGRESSION;
}

void
et_model_set_loss(struct et_model *m, const struct et_loss_class *loss,
                  const void *options)
{
    if (!m || !loss)
        return;
    m->loss = loss;
    m->loss_options = options;
    settle_task(m);
}

/* ---- does it fit? ---- */

static unsigned
kind_of(const struct et_field *field)
{
    if (et_dtype_is_float(field->dtype)) /* one number is no share of classes */
        return field->ndim > 0 ? ET_TAKES_SHARES | ET_TAKES_NUMBERS : ET_TAKES_NUMBERS;
    return field->kind == ET_FIELD_TOKENS ? ET_TAKES_TOKENS : ET_TAKES_CLASSES;
}

static const char *
word_for(unsigned kind)
{
    return kind & ET_TAKES_TOKENS    ? "tokens"
           : kind & ET_TAKES_CLASSES ? "classes"
                                     : "numbers";
}

et_status
et_model_check_loss(const struct et_model *m, const struct et_field *field)
{
    ETI_NEED(m ? m->cx : NULL, m);
    const struct et_loss_class *c = m->loss;
    char fitting[256] = "";
    size_t used = 0;
    if (!takes_of(c) || (field && takes_of(c) & kind_of(field)))
        return ET_OK;
    if (!field)
        return ET_FAIL(m->cx, ET_EINVAL,
                       "loss %s learns from a target, and the data "
                       "have none",
                       c->info.name);
    for (int i = 0; et_loss_classes[i]; i++)
        if (et_loss_classes[i]->takes & kind_of(field) && used < sizeof fitting)
            used += (size_t)snprintf(fitting + used, sizeof fitting - used, "%s%s",
                                     used ? ", " : "", et_loss_classes[i]->info.name);
    et_status status =
        ET_FAIL(m->cx, ET_EINVAL, "loss %s takes %s, and the data's target is %s",
                c->info.name, word_for(takes_of(c)), word_for(kind_of(field)));
    et_hint(m->cx, "these take %s: %s", word_for(kind_of(field)), fitting);
    return status;
}

/* ---- its nodes ---- */

/* The loss of each sample. One number for all samples would be taken for one
 * sample's. */
static struct et_tensor *
each_reduced(struct et_model *m, struct et_graph *g, struct et_tensor *outputs,
             const struct et_samples *samples, enum et_reduction reduction)
{
    const struct et_loss_class *c = m->loss;
    char text[128];
    struct et_tensor *v = c->each(g, m->loss_options, outputs, samples);
    if (et_graph_status(g) != ET_OK)
        return NULL;
    if (v && v->desc.dtype == ET_F32 && v->desc.ndim > 0 &&
        v->desc.shape[0] == outputs->desc.shape[0])
        return eti_loss_reduce(g, v, reduction);
    return eti_graph_fail(
        g,
        ET_FAIL(m->cx, ET_ESHAPE,
                "loss %s gives %s, not f32 with one value or more for each of %lld "
                "samples",
                c->info.name, v ? et_desc_text(&v->desc, text, sizeof text) : "nothing",
                (long long)outputs->desc.shape[0]));
}

struct et_tensor *
eti_model_counted(struct et_model *m, struct et_graph *g,
                  const struct et_samples *samples, bool masked)
{
    return samples->target && ETI_HOOK(m->loss, counted)
               ? m->loss->counted(g, m->loss_options, samples, masked)
               : NULL;
}

struct et_tensor *
et_model_loss(struct et_model *m, struct et_graph *g, struct et_tensor *outputs,
              const struct et_samples *samples, enum et_reduction reduction)
{
    ETI_NEED_IN(g, m, g, samples);
    struct et_tensor *target = samples->target;
    if (!outputs || (!target && takes_of(m->loss)))
        return ETI_MISSING(g, outputs, target);
    bool was = et_autocast(g, true);
    struct et_tensor *l =
        ETI_HOOK(m->loss, whole)
            ? m->loss->whole(g, m->loss_options, outputs, samples, reduction)
            : each_reduced(m, g, outputs, samples, reduction);
    et_autocast(g, was);
    return l;
}
