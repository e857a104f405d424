/* SPDX-License-Identifier: Apache-2.0 */
/* load.c: beginning from a checkpoint: which one, does it fit, algorithms applied
 * again.
 *
 * Order: RELIABILITY.md section 3: the newest that verifies; sizes, digests, shapes and
 * dtypes before a value is written; an older one where it does not. Algorithms: source
 * spec/trainer.md 2.8. */
#include "config.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "core/base/sized.h"
#include "core/checkpoint/archive.h"
#include "core/checkpoint/store.h"
#include "core/trainer/loop.h"
#include "core/trainer/ranks.h"
#include "core/trainer/trainer_impl.h"
#include "etude/diagnostic.h"

/* ---- what is left out ---- */

static void
leave_out(struct et_trainer *t, struct et_archive *a)
{
    for (const char *const *p = t->config.load->ignore; p && *p; p++) {
        int64_t n = 0;
        for (int64_t i = 0; i < a->n; i++)
            if (eti_archive_path_fits(*p, a->item[i].path)) {
                a->item[i].ignored = true;
                n++;
            }
        if (n == 0)
            et_report(t->state.cx, ET_LOG_WARN,
                      "load.ignore_keys: nothing is called '%s'", *p);
    }
}

/* ---- algorithms that the checkpoint was made with ---- */

static bool
is_excluded(const struct et_load_config *c, const char *name)
{
    for (const char *const *p = c->exclude; p && *p; p++)
        if (strcmp(*p, name) == 0)
            return true;
    return false;
}

static struct et_algorithm *
find_algorithm(struct et_state *s, const struct et_algorithm_class *c)
{
    for (int i = 0; i < s->n_algorithms; i++)
        if (s->algorithms[i]->type == c)
            return s->algorithms[i];
    return NULL;
}

/* Warns where the run has it with other options: the user's stand. */
static et_status
compare_options(struct et_trainer *t, const struct et_algorithm *a,
                const json_t *options)
{
    for (const struct et_option *row = a->type->info.options; row && row->name; row++) {
        const char *then = json_string_value(json_object_get(options, row->name));
        char *text;
        ET_TRY(et_option_text(t->state.cx, row, a->options, &text));
        if (!then || strcmp(then, text) != 0)
            et_report(t->state.cx, ET_LOG_WARN,
                      "%s.%s is %s here and was %s where the checkpoint was saved",
                      a->type->info.name, row->name, text, then ? then : "not there");
        et_free(t->state.cx, text);
    }
    return ET_OK;
}

static et_status
make_algorithm(struct et_trainer *t, const struct et_algorithm_class *c,
               const json_t *options, struct et_algorithm **out)
{
    struct et_ctx *cx = t->state.cx;
    const char *name;
    const json_t *value;
    void *block;
    ET_TRY(et_alloc(cx, c->info.options_size, &block));
    et_status status = et_options_init(cx, c->info.options, block);
    for (void *i = json_object_iter((json_t *)options); i && status == ET_OK;
         i = json_object_iter_next((json_t *)options, i)) {
        name = json_object_iter_key(i);
        value = json_object_iter_value(i);
        status =
            et_options_set(cx, c->info.options, block, name, json_string_value(value));
    }
    if (status == ET_OK)
        status = et_algorithm_new(cx, c, block, out);
    et_options_release(c->info.options, block);
    et_free(cx, block);
    return status;
}

/* It acts on INIT after all that have acted already, or not at all. */
static et_status
check_place(struct et_trainer *t, struct et_algorithm *added)
{
    struct et_state *s = &t->state;
    struct et_algorithm *order[ET_MAX_ALGORITHMS];
    memcpy(order, s->algorithms, (size_t)s->n_algorithms * sizeof *order);
    ET_TRY(eti_passes_run(s->cx, s->passes, s->n_passes, order, s->n_algorithms,
                          ET_EVENT_INIT));
    if (order[s->n_algorithms - 1] == added)
        return ET_OK;
    return ET_FAIL(
        s->cx, ET_EINVAL,
        "the checkpoint's model was changed by %s, which acts before %s: list it "
        "under algorithms, or under load.exclude_algorithms",
        added->type->info.name, order[s->n_algorithms - 1]->type->info.name);
}

/* It was switched on while the run went on, and is part of what was saved. One that
 * changes the model does so when switches are made again. */
static et_status
rejoin(struct et_trainer *t, const struct et_algorithm_class *c, const json_t *options)
{
    struct et_state *s = &t->state;
    struct et_algorithm *a;
    if (s->n_algorithms == ET_MAX_ALGORITHMS)
        return ET_FAIL(s->cx, ET_EINVAL, "more than %d algorithms", ET_MAX_ALGORITHMS);
    ET_TRY(make_algorithm(t, c, options, &a));
    a->joined = true;
    a->off = ETI_HOOK(c, undo);
    eti_algorithm_add(t, a);
    if (t->config.load->weights_only) /* no surprise where it is the run's model */
        et_report(s->cx, t->config.train ? ET_LOG_WARN : ET_LOG_INFO,
                  "%s was added: it had joined the run that the checkpoint is of",
                  c->info.name);
    return a->off ? ET_OK : eti_algorithm_prepare(t, a, ET_ON(INIT));
}

/* In the order in which they joined. */
static et_status
rejoin_all(struct et_trainer *t, const struct eti_manifest *m)
{
    size_t i;
    json_t *one;
    json_array_foreach(m->algorithms, i, one)
    {
        const char *name = json_string_value(json_object_get(one, "name"));
        if (!json_is_true(json_object_get(one, "joined")) ||
            is_excluded(t->config.load, name))
            continue;
        const struct et_component *found =
            et_registry_find(t->config.registry, ET_KIND_ALGORITHM, name);
        const struct et_algorithm_class *c = (const void *)found;
        if (!c)
            return ET_FAIL(t->state.cx, ET_EINVAL,
                           "the run had %s, which this program does not know", name);
        if (t->config.load->weights_only && !(c->flags & ET_ALG_REQUIRED_ON_LOAD))
            continue;
        if (!find_algorithm(&t->state, c))
            ET_TRY(rejoin(t, c, json_object_get(one, "options")));
    }
    return ET_OK;
}

static et_status
apply_again(struct et_trainer *t, const struct et_algorithm_class *c,
            const json_t *options)
{
    struct et_state *s = &t->state;
    struct et_algorithm *a;
    if (s->n_algorithms == ET_MAX_ALGORITHMS)
        return ET_FAIL(s->cx, ET_EINVAL, "more than %d algorithms", ET_MAX_ALGORITHMS);
    et_status status = make_algorithm(t, c, options, &a);
    if (status == ET_EINVAL) { /* of another version: its options are not known here */
        et_report(s->cx, ET_LOG_WARN, "%s of the checkpoint is left out: %s",
                  c->info.name, et_error_get(s->cx)->message);
        et_error_clear(s->cx);
        return ET_OK;
    }
    ET_TRY(status);
    eti_algorithm_add(t, a);
    ET_TRY(check_place(t, a));
    if (!c->match || c->match(a, ET_EVENT_INIT, s))
        ET_TRY(c->apply(a, ET_EVENT_INIT, s, s->log));
    et_report(s->cx, ET_LOG_WARN,
              "%s was added: the checkpoint's model was made with it", c->info.name);
    return ET_OK;
}

static et_status
apply_required(struct et_trainer *t, const struct eti_manifest *m)
{
    size_t i;
    json_t *one;
    json_array_foreach(m->algorithms, i, one)
    {
        const char *name = json_string_value(json_object_get(one, "name"));
        const json_t *options = json_object_get(one, "options");
        const struct et_algorithm_class *c = et_algorithm_find(name);
        if (!c || !(c->flags & ET_ALG_REQUIRED_ON_LOAD) ||
            json_is_true(json_object_get(one, "joined")) ||
            is_excluded(t->config.load, name))
            continue;
        struct et_algorithm *a = find_algorithm(&t->state, c);
        ET_TRY(a ? compare_options(t, a, options) : apply_again(t, c, options));
    }
    return ET_OK;
}

/* ---- one checkpoint ---- */

/* Has nobody asked for a parameter of it? That would be another model. */
static et_status
check_taken(struct et_trainer *t, const struct eti_checkpoint *c)
{
    const struct et_archive *a = &c->archive;
    for (int64_t i = 0; i < a->n; i++) {
        const struct eti_archive_item *item = &a->item[i];
        if (item->taken || item->ignored || strncmp(item->path, "model/", 6) != 0)
            continue;
        if (!t->config.load->lenient)
            return ET_FAIL(t->state.cx, ET_EFORMAT, "%s: '%s' is not in the model",
                           c->name, item->path + 6);
        et_report(t->state.cx, ET_LOG_WARN, "%s: '%s' is not in the model", c->name,
                  item->path + 6);
    }
    return ET_OK;
}

/* What cannot be cured by another checkpoint of the same run. */
static et_status
check_run(struct et_trainer *t, const struct eti_checkpoint *c)
{
    const struct et_load_config *load = t->config.load;
    const struct eti_manifest *m = &c->manifest;
    char data[sizeof m->data];
    if (load->weights_only)
        return ET_OK;
    if (m->weights_only)
        return ET_FAIL(t->state.cx, ET_EINVAL,
                       "%s holds weights only: load it with load.weights_only",
                       c->name);
    if (m->world_size != t->state.world)
        return ET_FAIL(t->state.cx, ET_EINVAL,
                       "%s: saved with %" PRId64
                       " rank%s, started with %d: use -n %" PRId64,
                       c->name, m->world_size, m->world_size == 1 ? "" : "s",
                       t->state.world, m->world_size);
    ET_TRY(eti_describe_data(t, data, sizeof data));
    if (strcmp(data, m->data) != 0)
        return ET_FAIL(t->state.cx, ET_EINVAL,
                       "the training data are %s; where %s was saved they were %s",
                       data, c->name, m->data);
    if (load->recipe && strcmp(load->recipe, m->recipe) != 0)
        return ET_FAIL(t->state.cx, ET_EINVAL,
                       "%s is of another recipe: resume cannot change it, rerun can",
                       c->name);
    return ET_OK;
}

/* Outside of all places, whatever was being read when something failed. */
static void
from_the_top(struct et_archive *a, enum et_archive_mode mode)
{
    a->mode = mode;
    a->length = 0;
    a->prefix[0] = '\0';
}

typedef et_status archive_fn(struct et_trainer *t, struct et_archive *a);

static et_status
walk(struct et_trainer *t, struct eti_checkpoint *c, archive_fn *fn,
     enum et_archive_mode mode)
{
    from_the_top(&c->archive, mode);
    return fn(t, &c->archive);
}

bool
et_loading_has(const struct et_loading *loading, const char *path)
{
    if (!loading || !loading->archive || !path)
        return false;
    return eti_archive_find(loading->archive, path) != NULL;
}

/* Fires LOADING. */
static et_status
tell_loading(struct et_trainer *t, struct eti_checkpoint *c)
{
    struct et_archive *a = &c->archive;
    struct et_loading loading = {.name = c->name, .archive = a};
    from_the_top(a, ET_ARCHIVE_LOAD);
    ET_TRY(et_archive_enter(a, "trainer"));
    if (et_archive_has(a, "timestamp/counts"))
        ET_TRY(et_archive_timestamp(a, "timestamp", &loading.timestamp));
    et_archive_leave(a);
    t->state.loading = &loading;
    et_status status = et_engine_run(&t->state, ET_EVENT_LOADING, NULL, NULL);
    t->state.loading = NULL;
    return status;
}

static et_status
take(struct et_trainer *t, struct eti_checkpoint *c)
{
    const struct et_load_config *load = t->config.load;
    archive_fn *fn = load->weights_only ? eti_archive_model : eti_archive_trainer;
    ET_TRY(check_run(t, c));
    ET_TRY(apply_required(t, &c->manifest));
    ET_TRY(rejoin_all(t, &c->manifest));
    ET_TRY(eti_switch_again(t, c->manifest.switched));
    leave_out(t, &c->archive);
    ET_TRY(tell_loading(t, c));
    c->archive.lenient = load->lenient;
    ET_TRY(walk(t, c, fn, ET_ARCHIVE_CHECK));
    ET_TRY(check_taken(t, c));
    t->loaded = eti_manifest_fold(&c->manifest);
    return walk(t, c, fn, ET_ARCHIVE_LOAD);
}

/* ---- which one ---- */

/* Out of the way, so that nobody stumbles over it again; where that fails it stays. */
static void
set_aside(struct et_trainer *t, int64_t step, const char *prefix)
{
    struct et_ctx *cx = t->state.cx;
    if (!t->config.load->set_aside)
        return;
    if (eti_store_set_aside(cx, t->config.load->directory, step, prefix) != ET_OK)
        et_report(cx, ET_LOG_WARN, "%s", et_error_get(cx)->message);
    et_error_clear(cx);
}

/* *VERIFIED: it is what was written, and what is wrong with it would be wrong with an
 * older one. */
static et_status
try_one(struct et_trainer *t, const char *name, bool *verified)
{
    struct eti_checkpoint c;
    et_status status = eti_store_read(t->state.cx, t->config.load->directory, name, &c);
    *verified = status == ET_OK;
    if (status == ET_OK)
        status = take(t, &c);
    eti_checkpoint_release(&c);
    return status;
}

/* Tries the checkpoints from the newest to the oldest until one loads. Then the damaged
 * ones are set aside. If none loads they stay, so that the next attempt knows that the
 * run has begun. DAMAGED [N] is 0 at first. */
static et_status
try_each(struct et_trainer *t, const int64_t *steps, int64_t n, bool *damaged,
         char name[ETI_STEP_NAME])
{
    struct et_ctx *cx = t->state.cx;
    const char *directory = t->config.load->directory;
    char why[512] = "";
    bool verified;
    int unfinished;
    for (int64_t i = 0; i < n; i++) {
        et_status status = try_one(t, eti_step_name(steps[i], name), &verified);
        if (status == ET_OK) {
            if (why[0])
                et_report(cx, ET_LOG_WARN, "%s; using %s", why, name);
            for (int64_t k = 0; k < i; k++)
                if (damaged[k])
                    set_aside(t, steps[k], "bad");
            return ET_OK;
        }
        if (verified ||
            (status != ET_EFORMAT && status != ET_EIO && status != ET_ENOENT))
            return status;
        snprintf(why, sizeof why, "%.500s", et_error_get(cx)->message);
        et_error_clear(cx);
        damaged[i] = status == ET_EFORMAT;
        if (i + 1 < n)
            et_report(cx, ET_LOG_INFO, "%s", why);
    }
    if (n > 0)
        return ET_FAIL(cx, ET_EFORMAT, "no valid checkpoint under %s: %s", directory,
                       why);
    ET_TRY(eti_store_count_unfinished(cx, directory, &unfinished));
    return ET_FAIL(cx, ET_ENOENT,
                   "no valid checkpoint under %s (%d incomplete ignored)", directory,
                   unfinished);
}

static et_status
try_all(struct et_trainer *t, const int64_t *steps, int64_t n, char name[ETI_STEP_NAME])
{
    void *damaged;
    ET_TRY(et_alloc(t->state.cx, (size_t)n + 1, &damaged));
    et_status status = try_each(t, steps, n, damaged, name);
    et_free(t->state.cx, damaged);
    return status;
}

/* A run that goes back to NAME leaves what came later behind. */
static void
leave_later(struct et_trainer *t, const int64_t *steps, int64_t n, const char *name)
{
    int64_t step = eti_step_parse(name);
    for (int64_t i = 0; i < n; i++)
        if (steps[i] > step)
            set_aside(t, steps[i], "old");
}

/* As the config says, or the newest that will do; only rank 0 moves what will not. */
static et_status
choose(struct et_trainer *t, char name[ETI_STEP_NAME])
{
    const struct et_load_config *c = t->config.load;
    int64_t *steps, n;
    bool verified;
    et_status status;
    ET_TRY(eti_store_list(t->state.cx, c->directory, &steps, &n));
    if (c->name) {
        snprintf(name, ETI_STEP_NAME, "%s", c->name);
        status = try_one(t, name, &verified);
        if (status == ET_OK)
            leave_later(t, steps, n, name);
    } else {
        status = try_all(t, steps, n, name);
    }
    et_free(t->state.cx, steps);
    return status;
}

/* The one that rank 0 has begun with. */
static et_status
follow(struct et_trainer *t, const char *name)
{
    bool verified;
    return try_one(t, name, &verified);
}

et_status
eti_load(struct et_trainer *t)
{
    struct et_state *s = &t->state;
    const struct et_load_config *c = t->config.load;
    char name[ETI_STEP_NAME];
    if (!c || t->config.dry)
        return ET_OK;
    et_status status = s->rank == 0 ? choose(t, name) : ET_OK;
    status = eti_ranks_load(t, status, name, follow);
    if (status == ET_ENOTSUP)
        et_error_set_code(s->cx, ET_E_CHECKPOINT_FORMAT);
    else if (status == ET_ENOENT)
        et_error_set_code(s->cx, ET_E_NO_CHECKPOINT);
    else if (status == ET_EFORMAT || status == ET_EINVAL || status == ET_EIO)
        et_error_set_code(s->cx, ET_E_CHECKPOINT);
    ET_TRY(status);
    if (c->weights_only) {
        et_report(s->cx, ET_LOG_INFO, "weights of %s/%s", c->directory, name);
        return ET_OK;
    }
    t->common.resumed = true;
    et_log_emit(s->log, ET_RECORD_RESUME, &s->timestamp, name);
    et_report(s->cx, ET_LOG_INFO, "resumed from %s at batch %lld", name,
              (long long)s->timestamp.batch);
    return ET_OK;
}

/* ---- going back in the midst of a run ---- */

enum { ROLLBACKS = 3 }; /* in a row: what leads there may be no accident */

/* Nothing has changed unless it is ET_OK: loading copies, after all was checked. */
static et_status
go_back_to(struct et_trainer *t, const char *name)
{
    struct eti_checkpoint c;
    const char *directory = t->config.checkpoint->directory;
    et_status status = eti_store_read(t->state.cx, directory, name, &c);
    if (status == ET_OK)
        status = tell_loading(t, &c);
    if (status == ET_OK)
        status = walk(t, &c, eti_archive_learned, ET_ARCHIVE_CHECK);
    if (status == ET_OK)
        status = walk(t, &c, eti_archive_learned, ET_ARCHIVE_LOAD);
    eti_checkpoint_release(&c);
    return status;
}

/* The newest checkpoint of this run to which one can go back; -1, with WHY: none. */
static int64_t
go_back(struct et_trainer *t, char *why, size_t size)
{
    struct et_ctx *cx = t->state.cx;
    char name[ETI_STEP_NAME];
    int64_t *steps, n, found = -1;
    snprintf(why, size, "there is no checkpoint to go back to");
    et_status status = eti_store_list(cx, t->config.checkpoint->directory, &steps, &n);
    for (int64_t i = 0; status == ET_OK && i < n && found < 0; i++) {
        if (steps[i] > t->state.timestamp.batch)
            continue; /* of a run that was taken back */
        if (go_back_to(t, eti_step_name(steps[i], name)) == ET_OK)
            found = steps[i];
        else
            snprintf(why, size, "%s", et_error_get(cx)->message);
        et_error_clear(cx);
    }
    et_error_clear(cx);
    et_free(cx, steps);
    return found;
}

bool
eti_roll_back(struct et_trainer *t, char *why, size_t size)
{
    struct eti_rollback *last = &t->rollback;
    int64_t now = t->state.timestamp.batch;
    snprintf(why, size, "checkpoints are not saved");
    if (!eti_settle_save(t))
        return false;
    int64_t step = t->state.rank == 0 ? go_back(t, why, size) : -1;
    if (eti_ranks_go_back(t, &step, go_back_to, why, size) != ET_OK || step < 0)
        return false;
    bool again = last->in_a_row > 0 && now - last->at <= last->lost;
    last->in_a_row = again ? last->in_a_row + 1 : 1;
    last->lost = now - step;
    last->at = now;
    if (last->in_a_row > ROLLBACKS) {
        snprintf(why, size, "the run went back %d times in a row already", ROLLBACKS);
        return false;
    }
    et_log_text(t->state.log, ET_LOG_WARN, &t->state.timestamp,
                "batch %lld: went back to the parameters of batch %lld", (long long)now,
                (long long)step);
    return true;
}
