/* SPDX-License-Identifier: Apache-2.0 */
/* resume.c: see resume.h. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/assemble/resume.h"
#include "core/base/arena.h"
#include "core/checkpoint/manifest.h"
#include "core/checkpoint/store.h"
#include "core/library/recover.h"
#include "core/models/weight_file.h"
#include "core/recipe/recipe.h"

/* ---- which checkpoint ---- */

static bool
is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool
eti_is_run(struct et_ctx *cx, const char *directory)
{
    char path[ETI_RUN_PATH + 16];
    snprintf(path, sizeof path, "%s/run.json", directory);
    return access(path, F_OK) == 0 || eti_has_checkpoints(cx, directory);
}

/* A file, where a run or checkpoint was meant: its reader says what is wrong with
 * it. */
static et_status
refuse_file(struct et_ctx *cx, const char *path)
{
    struct eti_weight_file f;
    ET_TRY(eti_weight_file_open(cx, path, &f));
    eti_weight_file_close(&f);
    return ET_FAIL(cx, ET_EFORMAT,
                   "%s holds weights; a run or a checkpoint is a folder", path);
}

static void
set_run(struct eti_origin_run *out, const char *directory)
{
    snprintf(out->directory, sizeof out->directory, "%s", directory);
    snprintf(out->checkpoints, sizeof out->checkpoints, "%s/checkpoints", directory);
    out->name[0] = '\0';
}

/* Which of the checkpoints beneath OUT is called LAST, or has that label? */
static et_status
find_named(struct et_ctx *cx, const char *last, struct eti_origin_run *out)
{
    struct et_checkpoint_info *list;
    int n, damaged, unfinished;
    if (eti_step_parse(last) >= 0) {
        snprintf(out->name, sizeof out->name, "%.31s", last);
        return ET_OK;
    }
    ET_TRY(et_checkpoint_list(cx, out->checkpoints, &list, &n, &damaged, &unfinished));
    for (int i = n - 1; i >= 0; i--) /* the newest of a label wins */
        if (strcmp(list[i].label, last) == 0)
            snprintf(out->name, sizeof out->name, "%s", list[i].name);
    et_free(cx, list);
    if (out->name[0])
        return ET_OK;
    return ET_FAIL(cx, ET_ENOENT, "%s has no checkpoint called '%s'", out->directory,
                   last);
}

et_status
eti_origin_find(struct et_ctx *cx, const char *text, struct eti_origin_run *out)
{
    char path[ETI_RUN_PATH], folder[ETI_RUN_PATH];
    size_t n = strlen(text);
    *out = (struct eti_origin_run){0};
    if (n == 0) /* not /checkpoints */
        return ET_FAIL(cx, ET_ENOENT,
                       "an empty path is neither a run's directory nor a checkpoint");
    while (n > 1 && text[n - 1] == '/')
        n--;
    if (n >= sizeof path)
        return ET_FAIL(cx, ET_EINVAL, "a path of %zu bytes is too long", n);
    snprintf(path, sizeof path, "%.*s", (int)n, text);
    if (eti_is_run(cx, path)) {
        set_run(out, path);
        return ET_OK;
    }
    const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
    char target[ETI_STEP_NAME] = "";
    if (readlink(path, target, sizeof target - 1) > 0 && eti_step_parse(target) >= 0)
        last = target; /* checkpoint.latest */
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 1,
             slash ? path : ".");
    if (is_folder(path) && eti_step_parse(last) >= 0) {
        size_t length = strlen(folder), tail = strlen("/checkpoints");
        bool in_run =
            length > tail && strcmp(folder + length - tail, "/checkpoints") == 0;
        snprintf(out->checkpoints, sizeof out->checkpoints, "%s", folder);
        snprintf(out->name, sizeof out->name, "%.31s", last);
        if (in_run) {
            folder[length - tail] = '\0';
            if (eti_is_run(cx, folder))
                snprintf(out->directory, sizeof out->directory, "%s", folder);
        }
        return ET_OK;
    }
    if (slash && eti_is_run(cx, folder)) {
        set_run(out, folder);
        return find_named(cx, last, out);
    }
    struct stat st;
    if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
        return refuse_file(cx, path);
    return ET_FAIL(cx, ET_ENOENT, "%s is neither a run's directory nor a checkpoint",
                   path);
}

/* ---- what may have changed ---- */

/* The lines of a recipe that count, in order. */
struct fixed_line {
    struct fixed_line *next;
    const char *path, *value;
};
struct fixed {
    struct eti_arena arena;
    struct fixed_line *first, **end;
    bool full; /* memory is out */
};

static const char *
copy(struct fixed *f, const char *text)
{
    size_t n = strlen(text) + 1;
    char *out = eti_arena_alloc(&f->arena, n);
    if (out)
        memcpy(out, text, n);
    else
        f->full = true;
    return out;
}

static void
add_line(void *data, const struct eti_line *line)
{
    struct fixed *f = data;
    if (line->top->flags & ET_OPT_RESUME || !line->value)
        return;
    if (line->row && line->row->flags & ET_OPT_LATER &&
        (strcmp(line->value, "[]") == 0 || strcmp(line->value, "null") == 0 ||
         (line->row->def && strcmp(line->value, line->row->def) == 0)))
        return;
    struct fixed_line *l = eti_arena_alloc(&f->arena, sizeof *l);
    if (!l) {
        f->full = true;
        return;
    }
    l->path = copy(f, line->path);
    l->value = copy(f, line->value);
    *f->end = l;
    f->end = &l->next;
}

/* Release in any case. */
static et_status
list_fixed(struct et_ctx *cx, const struct et_recipe *recipe, struct fixed *f)
{
    *f = (struct fixed){0};
    f->end = &f->first;
    eti_arena_init(&f->arena, cx, 1 << 14);
    ET_TRY(eti_recipe_walk(cx, recipe, add_line, f));
    return f->full ? ET_FAIL(cx, ET_ENOMEM, "out of memory: the lines of a recipe")
                   : ET_OK;
}

et_status
eti_recipe_digest(struct et_ctx *cx, const struct et_recipe *recipe,
                  char out[ETI_RECIPE_DIGEST])
{
    struct fixed f;
    size_t bytes = 0, at = 0;
    void *text = NULL;
    et_status status = list_fixed(cx, recipe, &f);
    for (const struct fixed_line *l = f.first; l && status == ET_OK; l = l->next)
        bytes += strlen(l->path) + strlen(l->value) + 2;
    if (status == ET_OK)
        status = et_alloc(cx, bytes + 1, &text);
    for (const struct fixed_line *l = f.first; l && status == ET_OK; l = l->next)
        at += (size_t)snprintf((char *)text + at, bytes + 1 - at, "%s=%s\n", l->path,
                               l->value);
    if (status == ET_OK)
        eti_digest_text(text, at, out);
    et_free(cx, text);
    eti_arena_release(&f.arena);
    return status;
}

static const char *
value_at(const struct fixed *f, const char *path)
{
    for (const struct fixed_line *l = f->first; l; l = l->next)
        if (strcmp(l->path, path) == 0)
            return l->value;
    return NULL;
}

static void
report(struct et_diagnostics *errors, const char *path, const char *now,
       const char *then)
{
    et_diagnostics_add(errors, ET_E_RESUME, NULL, NULL,
                       "leave it as it was, or: etude rerun",
                       "%s is %s, saved run has %s; resume cannot change it, rerun can",
                       path, now ? now : "not set", then ? then : "none");
}

et_status
eti_recipe_check_resume(struct et_ctx *cx, const struct et_recipe *then,
                        const struct et_recipe *now, struct et_diagnostics *errors)
{
    struct fixed a, b = {0};
    int before = errors->total;
    et_status status = list_fixed(cx, then, &a);
    if (status == ET_OK)
        status = list_fixed(cx, now, &b);
    for (const struct fixed_line *l = b.first; l && status == ET_OK; l = l->next) {
        const char *was = value_at(&a, l->path);
        if (!was || strcmp(was, l->value) != 0)
            report(errors, l->path, l->value, was);
    }
    for (const struct fixed_line *l = a.first; l && status == ET_OK; l = l->next)
        if (!value_at(&b, l->path))
            report(errors, l->path, NULL, l->value);
    eti_arena_release(&a.arena);
    eti_arena_release(&b.arena);
    if (status == ET_OK && errors->total > before)
        return ET_FAIL(cx, ET_EINVAL, "the recipe is not that of the saved run");
    return status;
}

et_status
eti_resume_check_length(struct et_ctx *cx, const struct eti_origin_run *run,
                        const struct et_recipe *now, struct et_diagnostics *errors)
{
    struct et_time most;
    struct et_checkpoint_info *list;
    int n, damaged, unfinished, at = 0;
    int64_t trained = 0;
    char text[ET_TIME_TEXT_BYTES];
    const bool is_epochs = now->max_duration.unit == ET_TIME_EPOCH;
    if (!is_epochs && now->max_duration.unit != ET_TIME_BATCH)
        return ET_OK;
    ET_TRY(et_time_scale_duration(cx, now->max_duration, now->scale_schedule_ratio,
                                  &most));
    ET_TRY(et_checkpoint_list(cx, run->checkpoints, &list, &n, &damaged, &unfinished));
    while (run->name[0] && at < n && strcmp(list[at].name, run->name) != 0)
        at++;
    if (at < n)
        trained = is_epochs ? list[at].epoch : list[at].step;
    et_free(cx, list);
    if ((double)trained <= most.value)
        return ET_OK;
    et_diagnostics_add(errors, ET_E_RESUME, NULL, NULL,
                       "a longer max_duration, or: etude rerun",
                       "max_duration is %s, but the saved run has trained %lld%s",
                       et_time_text(most, text, sizeof text), (long long)trained,
                       is_epochs ? "ep" : "ba");
    return ET_FAIL(cx, ET_EINVAL, "the saved run is longer than max_duration");
}

et_status
eti_resume_take_over(struct et_ctx *cx, const struct et_recipe *then,
                     struct et_recipe *now)
{
    if (now->seed == ET_INT_UNSET)
        now->seed = then->seed;
    if (now->device == ET_RUN_AUTO)
        now->device = then->device;
    if (now->precision == ET_PRECISION_AUTO)
        now->precision = then->precision;
    if (now->run_name || !then->run_name)
        return ET_OK;
    return et_options_set(cx, et_recipe_table, now, "run_name", then->run_name);
}
