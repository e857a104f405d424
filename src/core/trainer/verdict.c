/* SPDX-License-Identifier: Apache-2.0 */
/* verdict.c: does a batch's update count? It changes nothing where the gradient is not
 * finite, or where a rank has none. */
#include "config.h"

#include "core/trainer/part.h"

static et_status
skip(struct eti_part *p, struct eti_train_step *k)
{
    if (k->failed)
        k->skip = et_maximum(p->s->graph, k->skip, k->failed);
    return et_graph_status(p->s->graph);
}

static void
take(struct eti_part *p, struct eti_numbers *numbers)
{
    struct eti_common *c = p->common;
    bool counts = numbers->skipped && !numbers->excused;
    c->skipped = numbers->skipped;
    c->nonfinite_batches = counts ? c->nonfinite_batches + 1 : 0;
}

bool
eti_learned_nothing(const struct eti_common *c, const struct et_state *s)
{
    return c->nonfinite_batches > 0 && c->nonfinite_batches >= s->timestamp.batch;
}

const struct eti_part_type eti_part_verdict = {
    .skip = skip,
    .take = take,
};
