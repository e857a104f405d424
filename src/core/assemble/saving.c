/* SPDX-License-Identifier: Apache-2.0 */
/* saving.c: see saving.h. */
#include "config.h"

#include <stdio.h>

#include "core/assemble/saving.h"

/* A NULL-terminated copy of the list; NULL where it is empty. */
static et_status
list_of(struct et_ctx *cx, const struct et_texts *texts, const char ***out)
{
    void *block;
    if (texts->n == 0)
        return ET_OK;
    ET_TRY(et_alloc(cx, ((size_t)texts->n + 1) * sizeof **out, &block));
    *out = block;
    for (int i = 0; i < texts->n; i++)
        (*out)[i] = texts->v[i];
    return ET_OK;
}

/* Has the run checkpoints of its own, whole or damaged? Then it goes on with those
 * (eti_saving_resume). */
static bool
has_checkpoints(const struct eti_saving *s)
{
    struct et_checkpoint_info *list;
    int n, damaged, unfinished;
    if (et_checkpoint_list(s->cx, s->directory, &list, &n, &damaged, &unfinished) !=
        ET_OK) {
        et_error_clear(s->cx);
        return false;
    }
    et_free(s->cx, list);
    return n > 0 || damaged > 0;
}

static et_status
begin_from(struct eti_saving *s, const struct et_recipe_load *load)
{
    if (!load->path)
        return ET_OK;
    et_status status = eti_origin_find(s->cx, load->path, &s->from);
    if (status == ET_ENOENT &&
        has_checkpoints(s)) { /* what it began with has gone since */
        et_error_clear(s->cx);
        return ET_OK;
    }
    ET_TRY(status);
    ET_TRY(list_of(s->cx, &load->ignore_keys, &s->ignore));
    ET_TRY(list_of(s->cx, &load->exclude_algorithms, &s->exclude));
    s->load = (struct et_load_config){
        .directory = s->from.checkpoints,
        .name = s->from.name[0] ? s->from.name : NULL,
        .weights_only = load->weights_only,
        .lenient = !load->strict,
        .ignore = s->ignore,
        .exclude = s->exclude,
    };
    return ET_OK;
}

et_status
eti_saving_init(struct eti_saving *s, struct et_ctx *cx, const struct et_recipe *recipe,
                const char *digest, const struct et_run *run)
{
    return eti_saving_init_at(s, cx, recipe, digest, et_run_directory(run),
                              et_run_id(run), et_run_incarnation(run));
}

et_status
eti_saving_init_at(struct eti_saving *s, struct et_ctx *cx,
                   const struct et_recipe *recipe, const char *digest,
                   const char *directory, const char *run_id, int64_t incarnation)
{
    const struct et_recipe_checkpoint *c = &recipe->checkpoint;
    *s = (struct eti_saving){.cx = cx};
    snprintf(s->directory, sizeof s->directory, "%s/checkpoints", directory);
    s->checkpoint = (struct et_checkpoint_config){
        .directory = s->directory,
        .only_at_end = c->off,
        .interval = eti_interval(c->interval),
        .at = c->at.v,
        .n_at = c->at.n,
        .keep = c->keep,
        .label = c->name,
        .weights_only = c->weights_only,
        .stop_on_failure = c->on_failure == ET_FAILURE_STOP,
        .run_id = run_id,
        .incarnation = incarnation,
        .recipe = digest,
        .latest = c->latest,
    };
    ET_TRY(list_of(cx, &c->ignore_keys, &s->left_out));
    s->checkpoint.ignore = s->left_out;
    return begin_from(s, &recipe->load);
}

void
eti_saving_resume(struct eti_saving *s, const char *name)
{
    s->load = (struct et_load_config){
        .directory = s->directory,
        .name = name && name[0] ? name : NULL,
        .recipe = s->checkpoint.recipe,
        .set_aside = true,
    };
}

void
eti_saving_apply(const struct eti_saving *s, struct et_trainer_config *config)
{
    config->checkpoint = &s->checkpoint;
    config->load = s->load.directory ? &s->load : NULL;
}

void
eti_saving_release(struct eti_saving *s)
{
    if (!s->cx)
        return;
    et_free(s->cx, s->ignore);
    et_free(s->cx, s->left_out);
    et_free(s->cx, s->exclude);
    *s = (struct eti_saving){0};
}
