/* SPDX-License-Identifier: Apache-2.0 */
/* list.c: what people see of the folder checkpoints/. */
#include "etude/checkpoint.h"

#include <stdio.h>

#include "core/base/need.h"
#include "core/checkpoint/store.h"

static void
describe(const struct eti_manifest *m, struct et_checkpoint_info *out)
{
    out->step = m->step;
    out->epoch = m->epoch;
    out->saved = m->saved;
    out->weights_only = m->weights_only;
    snprintf(out->label, sizeof out->label, "%s", m->label);
    eti_step_name(m->step, out->name);
}

et_status
et_checkpoint_list(struct et_ctx *cx, const char *directory,
                   struct et_checkpoint_info **out, int *n, int *damaged,
                   int *unfinished)
{
    ETI_NEED(cx, cx, directory, out, n, damaged, unfinished);
    int64_t *steps, count;
    void *block;
    *out = NULL;
    *n = *damaged = *unfinished = 0;
    ET_TRY(eti_store_count_unfinished(cx, directory, unfinished));
    ET_TRY(eti_store_list(cx, directory, &steps, &count));
    et_status status = et_alloc(cx, ((size_t)count + 1) * sizeof **out, &block);
    if (status == ET_OK)
        *out = block;
    for (int64_t i = 0; i < count && status == ET_OK; i++) {
        char name[ETI_STEP_NAME];
        struct eti_manifest m;
        status =
            eti_store_read_manifest(cx, directory, eti_step_name(steps[i], name), &m);
        if (status == ET_OK && m.step == steps[i]) {
            describe(&m, &(*out)[(*n)++]);
        } else if (status != ET_ENOMEM) {
            ++*damaged;
            et_error_clear(cx);
            status = ET_OK;
        }
        eti_manifest_release(&m);
    }
    et_free(cx, steps);
    return status;
}
