/* SPDX-License-Identifier: Apache-2.0 */
/* from_recipe.c: what `etude train` builds, for a C program: et_trainer_from_recipe. */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "core/assemble/assemble.h"
#include "core/assemble/saving.h"
#include "core/base/folders.h"
#include "core/base/seams.h"
#include "core/recipe/recipe.h"

/* All that the trainer borrows, in one block that goes when it does. */
struct made {
    struct et_ctx *cx;
    struct et_recipe *recipe;
    struct eti_assembly a;
    struct eti_saving saving;
    char directory[ETI_RUN_PATH], digest[ETI_RECIPE_DIGEST];
    struct et_algorithm *algorithm[ET_MAX_ALGORITHMS]; /* the recipe's, the caller's */
    struct et_callback *callback[ET_MAX_ALGORITHMS];
    struct et_trainer_config config;
};

static void
release(void *owner)
{
    struct made *m = owner;
    eti_saving_release(&m->saving);
    if (m->a.cx)
        eti_assembly_release(&m->a);
    et_recipe_free(&m->recipe);
    et_free(m->cx, m);
}

/* ---- the recipe ---- */

/* The first of ERRORS is the context's message, where there is nothing better. */
static et_status
refuse(struct et_ctx *cx, et_status status, const struct et_diagnostics *errors)
{
    char text[512];
    if (status == ET_OK || errors->n == 0)
        return status;
    return ET_FAIL(cx, status, "%s",
                   et_diagnostic_text(&errors->v[0], text, sizeof text));
}

static et_status
read_recipe(struct made *m, const char *path, const struct et_recipe_trainer *o,
            struct et_diagnostics *errors)
{
    et_status status = et_recipe_load(m->cx, path, o->overrides, o->n_overrides, o->env,
                                      &m->recipe, errors);
    if (status == ET_OK)
        status = eti_recipe_check_available(m->cx, m->recipe, errors);
    if (status == ET_OK)
        status = et_recipe_check_train(m->cx, m->recipe, 1, errors);
    ET_TRY(refuse(m->cx, status, errors));
    if (m->recipe->seed == ET_INT_UNSET) /* nobody chose one: the clock does */
        m->recipe->seed = (int64_t)(eti_wall(m->cx) * 1e3) & 0xffffffff;
    return ET_OK;
}

/* ---- the directory ---- */

/* Beside the checkpoints, for those who load them. A run that goes on keeps its own. */
static et_status
keep_recipe(struct made *m, const char *resolved)
{
    char path[ETI_RUN_PATH + 32];
    int fd;
    snprintf(path, sizeof path, "%s/checkpoints/x", m->directory);
    if (!eti_make_user_folders(path, 0700))
        return ET_FAIL(m->cx, ET_EIO, "%s cannot be made", m->directory);
    ET_TRY(eti_open_folder(m->cx, m->directory, &fd));
    et_status status =
        eti_replace_at(m->cx, fd, "recipe.resolved.yaml", resolved, strlen(resolved));
    eti_close(m->cx, fd);
    return status;
}

static et_status
begin_saving(struct made *m, const struct et_recipe_trainer *o)
{
    struct et_checkpoint_info *list = NULL;
    int n = 0, damaged = 0, unfinished;
    ET_TRY(eti_recipe_digest(m->cx, m->recipe, m->digest));
    ET_TRY(eti_saving_init_at(&m->saving, m->cx, m->recipe, m->digest, m->directory, "",
                              1));
    if (o->resume && o->directory)
        ET_TRY(et_checkpoint_list(m->cx, m->saving.directory, &list, &n, &damaged,
                                  &unfinished));
    et_free(m->cx, list);
    if (n > 0 || damaged > 0)
        eti_saving_resume(&m->saving, NULL);
    eti_saving_apply(&m->saving, &m->config);
    if (!o->directory)
        m->config.checkpoint = NULL;
    return ET_OK;
}

/* ---- all of it ---- */

static et_status
assemble(struct made *m, const struct et_recipe_trainer *o)
{
    struct eti_assemble_options options = {
        .device = o->device,
        .threads = o->threads,
        .with_train = true,
        .with_eval = true,
    };
    char *resolved = NULL;
    ET_TRY(eti_assemble_device(m->cx, m->recipe, o->device, o->threads, &options.dev));
    et_status status = et_recipe_resolved(m->cx, m->recipe, &resolved);
    if (status != ET_OK)
        et_device_close(&options.dev);
    ET_TRY(status);
    status = eti_assemble(m->cx, m->recipe, &options, &m->a);
    if (status == ET_OK)
        status = eti_assemble_callbacks(&m->a, m->recipe,
                                        o->directory ? m->directory : NULL);
    m->config = m->a.config;
    if (status == ET_OK)
        status = begin_saving(m, o);
    if (status == ET_OK && o->directory)
        status = keep_recipe(m, resolved);
    et_free(m->cx, resolved);
    return status;
}

/* The caller's own stand behind those of the recipe. */
static et_status
add_own(struct made *m, const struct et_recipe_trainer *o)
{
    struct et_trainer_config *c = &m->config;
    if (c->n_algorithms + o->n_algorithms > ET_MAX_ALGORITHMS ||
        c->n_callbacks + o->n_callbacks > ET_MAX_ALGORITHMS)
        return ET_FAIL(m->cx, ET_EINVAL, "more than %d algorithms or callbacks",
                       ET_MAX_ALGORITHMS);
    for (int i = 0; i < c->n_algorithms; i++)
        m->algorithm[i] = m->a.algorithm[i];
    for (int i = 0; i < o->n_algorithms; i++)
        m->algorithm[c->n_algorithms++] = o->algorithms[i];
    for (int i = 0; i < c->n_callbacks; i++)
        m->callback[i] = m->a.callback[i];
    for (int i = 0; i < o->n_callbacks; i++)
        m->callback[c->n_callbacks++] = o->callbacks[i];
    c->algorithms = m->algorithm;
    c->callbacks = m->callback;
    return ET_OK;
}

static et_status
make(struct made *m, const char *path, const struct et_recipe_trainer *o,
     struct et_diagnostics *errors)
{
    if (o->directory && snprintf(m->directory, sizeof m->directory, "%s",
                                 o->directory) >= (int)sizeof m->directory)
        return ET_FAIL(m->cx, ET_EINVAL, "the name of the run's directory is too long");
    ET_TRY(read_recipe(m, path, o, errors));
    ET_TRY(assemble(m, o));
    ET_TRY(add_own(m, o));
    m->config.sink = o->sink;
    m->config.interrupt = o->interrupt;
    m->config.registry = eti_recipe_registry(m->recipe);
    m->config.released = release;
    m->config.owner = m;
    return ET_OK;
}

et_status
et_trainer_from_recipe(struct et_ctx *cx, const char *path,
                       const struct et_recipe_trainer *options,
                       struct et_diagnostics *errors, struct et_trainer **out)
{
    static const struct et_recipe_trainer none;
    struct et_diagnostics own = {0};
    void *block;
    *out = NULL;
    ET_TRY(et_alloc(cx, sizeof(struct made), &block));
    struct made *m = block;
    m->cx = cx;
    et_status status = make(m, path, options ? options : &none, errors ? errors : &own);
    if (status == ET_OK)
        status = et_trainer_new(cx, &m->config, out);
    if (status != ET_OK)
        release(m);
    return status;
}
