/* SPDX-License-Identifier: Apache-2.0 */
/* recipe.c: the schema of a recipe, and its reading from end to end. */
#include "config.h"

#include "core/recipe/recipe.h"
#include "core/base/need.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "etude/data.h"

/* ---- the table: RECIPE.md section 2 ---- */

static const char *const auto_words[] = {"auto", NULL};
static const char *const devices[] = {"auto", "cpu", "gpu", NULL};
static const char *const precisions[] = {"auto",     "fp32",    "amp_fp16",
                                         "amp_bf16", "amp_fp8", NULL};
static const char *const failures[] = {"continue", "stop", NULL};
static const char *const actions[] = {"stop", "skip", "rollback", NULL};
static const char *const syncs[] = {"auto", "single_auto_sync", "multi_auto_sync",
                                    "forced_sync", NULL};

enum {
    ALL_UNITS = (1u << ET_TIME_UNIT_COUNT) - 1,
    NOT_DUR = ALL_UNITS & ~(1u << ET_TIME_DURATION),
    BATCHES_OR_SECONDS = 1u << ET_TIME_BATCH | 1u << ET_TIME_SECOND,
    EPOCHS_OR_TOKENS = 1u << ET_TIME_EPOCH | 1u << ET_TIME_TOKEN,
};
#define UNBOUNDED 0x1p53 /* whole numbers are exact up to here */

/* A row: field FIELD of the struct called IN at that point, of type ET_OPT_<KIND>. */
#define ROW(field_name, kind, its_help, ...)                                           \
    {                                                                                  \
        .name = #field_name, .type = ET_OPT_##kind,                                    \
        .offset = offsetof(IN, field_name), .help = its_help, __VA_ARGS__              \
    }
#define SECTION(its_table, type) .sub = its_table, .sub_size = sizeof(type)

#define IN struct et_recipe_checkpoint
static const struct et_option checkpoint_table[] = {
    ROW(interval, TIME,
        "how often; auto = as often as 3.5 % of time allows, not more than every 5 s",
        .def = "1ep", .choices = auto_words),
    ROW(at, TIMES, "times to save at besides, such as 500ba or 0.5dur; these stay",
        .units = ((1u << ET_TIME_UNIT_COUNT) - 1) & ~(1u << ET_TIME_SECOND),
        .flags = ET_OPT_LATER | ET_OPT_RESUME),
    ROW(keep, INT, "newest checkpoints to keep; -1 = all", .def = "3", .min = -1,
        .max = UNBOUNDED),
    ROW(name, TEXT, "label; {epoch}, {batch}, {run_name} and others are filled in",
        .def = "ep{epoch}-ba{batch}", .flags = ET_OPT_OUTPUT),
    ROW(weights_only, BOOL, "leave out what resuming needs", .def = "false"),
    ROW(on_failure, ENUM, "when one cannot be written", .def = "continue",
        .choices = failures),
    ROW(ignore_keys, TEXTS, "parts of the state to leave out, such as optimizer/*",
        .flags = ET_OPT_LATER | ET_OPT_RESUME),
    ROW(latest, TEXT, "a link beside them to the newest, by this name",
        .flags = ET_OPT_OPTIONAL | ET_OPT_LATER | ET_OPT_RESUME),
    {0},
};
#undef IN
#define IN struct et_recipe_load
static const struct et_option load_table[] = {
    ROW(path, PATH, "run or checkpoint to start from", .flags = ET_OPT_OPTIONAL),
    ROW(weights_only, BOOL, "take the model, begin at batch 0", .def = "false"),
    ROW(strict, BOOL, "all names and shapes must match", .def = "true"),
    ROW(ignore_keys, TEXTS, "parts of the state to leave out"),
    ROW(exclude_algorithms, TEXTS, "algorithms of the saved run to do without"),
    {0},
};
#undef IN
#define IN struct et_recipe_nonfinite
static const struct et_option nonfinite_table[] = {
    ROW(action, ENUM, "when the loss is not a number", .def = "stop",
        .choices = actions),
    ROW(grace, INT, "batches in a row before it is taken", .def = "3", .min = 0,
        .max = UNBOUNDED, .unit = "batches"),
    ROW(hold_schedule, BOOL, "an update that is skipped does not move the schedule",
        .def = "false", .flags = ET_OPT_LATER),
    {0},
};
#undef IN
#define IN struct et_recipe_parallel
static const struct et_option parallel_table[] = {
    ROW(zero, INT, "ZeRO stage: what ranks share out", .def = "0", .min = 0, .max = 3),
    ROW(bucket_mb, INT, "gradients reduced together", .def = "25", .min = 1,
        .max = 4096, .unit = "MB"),
    ROW(sync, ENUM, "when gradients are reduced with microbatches", .def = "auto",
        .choices = syncs),
    {0},
};
#undef IN
#define IN struct et_recipe_launch
static const struct et_option launch_table[] = {
    ROW(nproc, INT, "ranks, where -n does not say", .min = 1, .max = 1 << 16,
        .flags = ET_OPT_OPTIONAL),
    ROW(worker, TEXT, "where to run, as --on", .flags = ET_OPT_OPTIONAL),
    {0},
};
#undef IN
#define IN struct et_recipe_profiler
static const struct et_option profiler_table[] = {
    ROW(skip_first, INT, "before the first cycle", .def = "0", .min = 0,
        .max = UNBOUNDED, .unit = "batches"),
    ROW(wait, INT, "idle at the start of a cycle", .def = "0", .min = 0,
        .max = UNBOUNDED, .unit = "batches"),
    ROW(warmup, INT, "traced and thrown away", .def = "1", .min = 0, .max = UNBOUNDED,
        .unit = "batches"),
    ROW(active, INT, "traced and kept", .def = "4", .min = 1, .max = UNBOUNDED,
        .unit = "batches"),
    ROW(repeat, INT, "cycles; 0 = until the end", .def = "1", .min = 0,
        .max = UNBOUNDED),
    {0},
};
#undef IN
#define IN struct et_recipe_optimizer
static const struct et_option optimizer_table[] = {
    ROW(groups, PARTS, "parameters with a rate, decay or schedule of their own",
        .kind = ET_KIND_GROUP, .flags = ET_OPT_LATER),
    {0},
};
#undef IN
#define IN struct et_recipe_eval
static const struct et_option eval_table[] = {
    ROW(label, TEXT, "its name in metrics/<label>/...", .def = "eval"),
    ROW(metrics, TEXTS, "regular expressions of the metrics wanted; none = all"),
    {.name = "eval_interval",
     .type = ET_OPT_TIME,
     .offset = offsetof(IN, interval),
     .flags = ET_OPT_OPTIONAL,
     .help = "instead of the recipe's"},
    {0},
};
#undef IN

#define IN struct et_recipe
const struct et_option et_recipe_table[] = {
    ROW(include, TEXTS, "files merged first, in order"),
    ROW(run_name, TEXT, "a name for people", .flags = ET_OPT_OPTIONAL),
    ROW(tags, TEXTS, "words for people", .flags = ET_OPT_RESUME),
    ROW(seed, INT, "the run's one seed; drawn and recorded if not given", .min = 0,
        .max = 4294967295.0, .flags = ET_OPT_OPTIONAL),
    ROW(deterministic, BOOL,
        "nothing follows free memory or the clock: grad_accum auto is 1",
        .def = "false"),
    ROW(device, ENUM, "auto = gpu where one answers", .def = "auto",
        .choices = devices),
    ROW(precision, ENUM, "auto = fp32 on a CPU, amp_bf16 or amp_fp16 on a GPU",
        .def = "auto", .choices = precisions),
    ROW(tf32, BOOL, "let fp32 matmul and convolution use TF32", .def = "false"),
    ROW(max_duration, TIME, "when training ends", .units = NOT_DUR, .min = 0,
        .max = UNBOUNDED, .flags = ET_OPT_REQUIRED | ET_OPT_RESUME | ET_OPT_MIN_OPEN),
    ROW(iteration_length, TIME, "fires ITERATION_* events", .units = EPOCHS_OR_TOKENS,
        .min = 0, .max = UNBOUNDED, .flags = ET_OPT_OPTIONAL | ET_OPT_MIN_OPEN),
    ROW(model, PART, "what to train", .kind = ET_KIND_MODEL, .flags = ET_OPT_REQUIRED),
    ROW(train_data, PART, "what to train on", .kind = ET_KIND_DATASET,
        .prepare = et_data_prepare_train),
    ROW(eval_data, PARTS, "what to evaluate on", .kind = ET_KIND_DATASET,
        SECTION(eval_table, struct et_recipe_eval), .prepare = et_data_prepare_eval),
    ROW(eval_interval, TIME, "how often; 0 = never", .def = "1ep",
        .flags = ET_OPT_RESUME),
    ROW(optimizer, PART, "how weights change", .kind = ET_KIND_OPTIMIZER,
        SECTION(optimizer_table, struct et_recipe_optimizer), .def = "decoupled_sgdw"),
    ROW(scheduler, PARTS, "how the learning rate changes; several multiply",
        .kind = ET_KIND_SCHEDULER, .def = "constant"),
    ROW(scale_schedule_ratio, FLOAT, "scales max_duration and schedules", .def = "1.0",
        .min = 0, .max = INFINITY, .flags = ET_OPT_MIN_OPEN),
    ROW(grad_accum, INT, "microbatches per rank batch; auto = the fewest that fit",
        .def = "auto", .choices = auto_words, .min = 1, .max = UNBOUNDED),
    ROW(microbatch_size, INT, "samples per microbatch instead of grad_accum", .min = 1,
        .max = UNBOUNDED, .unit = "samples", .flags = ET_OPT_OPTIONAL),
    ROW(sync_batch_norm, BOOL,
        "batch norm takes its statistics over the batch of all ranks", .def = "false",
        .flags = ET_OPT_LATER),
    ROW(algorithms, PARTS, "training methods, in the order they apply",
        .kind = ET_KIND_ALGORITHM, .flags = ET_OPT_BY_NAME),
    ROW(callbacks, PARTS, "observers", .kind = ET_KIND_CALLBACK,
        .def = "[speed_monitor, memory_monitor, lr_monitor, runtime_estimator]",
        .flags = ET_OPT_BY_NAME | ET_OPT_KEEP | ET_OPT_RESUME),
    ROW(loggers, PARTS, "where records go", .kind = ET_KIND_LOGGER, .def = "[jsonl]",
        .flags = ET_OPT_BY_NAME | ET_OPT_KEEP | ET_OPT_RESUME),
    ROW(metrics, PARTS, "what is measured beside the task's own metrics",
        .kind = ET_KIND_METRIC, .flags = ET_OPT_BY_NAME | ET_OPT_RESUME),
    ROW(loss, PART, "what training minimises, instead of the model's loss",
        .kind = ET_KIND_LOSS, .flags = ET_OPT_LATER),
    ROW(record_interval, TIME,
        "one record of training for so long; auto = each batch up to 50 a second, else "
        "1 s",
        .def = "auto", .choices = auto_words, .units = BATCHES_OR_SECONDS, .min = 0,
        .max = 86400, .flags = ET_OPT_MIN_OPEN | ET_OPT_RESUME),
    ROW(checkpoint, TABLE, "when to save; false = only at stop and end",
        SECTION(checkpoint_table, struct et_recipe_checkpoint),
        .flags = ET_OPT_FALSE | ET_OPT_RESUME),
    ROW(load, TABLE, "start from a checkpoint",
        SECTION(load_table, struct et_recipe_load)),
    ROW(target, TEXT, "stop when reached, such as accuracy>=.765",
        .flags = ET_OPT_OPTIONAL | ET_OPT_RESUME),
    ROW(nonfinite, TABLE, "a loss that is not a number",
        SECTION(nonfinite_table, struct et_recipe_nonfinite)),
    ROW(timeout, SECONDS, "without progress: hung", .def = "5m", .min = 0,
        .max = UNBOUNDED, .flags = ET_OPT_MIN_OPEN | ET_OPT_RESUME),
    ROW(grace, SECONDS, "to save after a signal", .def = "25s", .min = 0,
        .max = UNBOUNDED, .flags = ET_OPT_RESUME),
    ROW(parallel, TABLE, "how ranks work together",
        SECTION(parallel_table, struct et_recipe_parallel)),
    ROW(launch, TABLE, "where and how many, as -n and --on",
        SECTION(launch_table, struct et_recipe_launch), .flags = ET_OPT_RESUME),
    ROW(profiler, TABLE, "Chrome traces",
        SECTION(profiler_table, struct et_recipe_profiler), .def = "false",
        .flags = ET_OPT_FALSE),
    ROW(plugins, TEXTS, "names from the user's own configuration"),
    {0},
};
#undef IN

/* RECIPE.md section 7: the names of Composer, llm-foundry and others. */
static const struct eti_foreign foreign[] = {
    {"", "data", "train_data"},
    {"", "train_dataset", "train_data"},
    {"", "train_dataloader", "train_data"},
    {"", "train_loader", "train_data"},
    {"", "dataloader", "train_data"},
    {"", "dataset", "train_data"},
    {"", "val_data", "eval_data"},
    {"", "test_data", "eval_data"},
    {"", "val_dataset", "eval_data"},
    {"", "eval_dataset", "eval_data"},
    {"", "eval_dataloader", "eval_data"},
    {"", "eval_loader", "eval_data"},
    {"", "eval_loaders", "eval_data"},
    {"", "evaluators", "eval_data"},
    {"", "train_batch_size", "train_data.batch_size"},
    {"", "global_train_batch_size", "train_data.batch_size"},
    {"", "batch_size", "train_data.batch_size"},
    {"", "eval_batch_size", "eval_data.batch_size"},
    {"", "device_eval_batch_size", "eval_data.batch_size"},
    {"", "eval_subset_num_batches", "eval_data.subset_num_batches"},
    {"", "train_subset_num_batches", "train_data.subset_num_batches"},
    {"", "validate_every_n_epochs", "eval_interval"},
    {"", "validate_every_n_batches", "eval_interval"},
    {"", "epochs", "max_duration"},
    {"", "max_epochs", "max_duration"},
    {"", "num_epochs", "max_duration"},
    {"", "num_train_epochs", "max_duration"},
    {"", "max_steps", "max_duration"},
    {"", "network", "model"},
    {"", "optimizers", "optimizer"},
    {"", "schedulers", "scheduler"},
    {"", "lr_scheduler", "scheduler"},
    {"", "lr", "optimizer.lr"},
    {"", "learning_rate", "optimizer.lr"},
    {"", "weight_decay", "optimizer.weight_decay"},
    {"", "device_train_microbatch_size", "microbatch_size"},
    {"", "save_interval", "checkpoint.interval"},
    {"", "save_num_checkpoints_to_keep", "checkpoint.keep"},
    {"", "save_filename", "checkpoint.name"},
    {"", "save_weights_only", "checkpoint.weights_only"},
    {"", "save_ignore_keys", "checkpoint.ignore_keys"},
    {"", "save_latest_filename", "checkpoint.latest"},
    {"", "save_folder", "checkpoint"},
    {"", "load_path", "load.path"},
    {"", "load_weights_only", "load.weights_only"},
    {"", "load_strict_model_weights", "load.strict"},
    {"", "load_ignore_keys", "load.ignore_keys"},
    {"", "load_exclude_algorithms", "load.exclude_algorithms"},
    {"", "deterministic_mode", "deterministic"},
    {"", "ddp_sync_strategy", "parallel.sync"},
    {"", "dist_timeout", "timeout"},
    {"", "deepspeed_config", "parallel.zero"},
    {"", "fsdp_config", "parallel.zero"},
    {"", "log_to_console", "--progress"},
    {"", "progress_bar", "--progress"},
    {"", "autoresume", "--autoresume"},
    {"", "variables", "include"},
    {"loggers", "progress_bar", "--progress"},
    {"precision", "amp", "amp_fp16"},
    {"precision", "fp16", "amp_fp16"},
    {"precision", "bf16", "amp_bf16"},
    {"precision", "fp8", "amp_fp8"},
    {0},
};

/* ---- reading ---- */

static const struct et_recipe_env no_env;

static et_status
new_recipe(struct et_ctx *cx, struct eti_recipe **out)
{
    void *block;
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    *out = block;
    (*out)->cx = cx;
    eti_arena_init(&(*out)->arena, cx, 16 << 10);
    return ET_OK;
}

void
et_recipe_free(struct et_recipe **recipe)
{
    if (!recipe)
        return;
    struct eti_recipe *r = (struct eti_recipe *)*recipe;
    *recipe = NULL;
    if (!r)
        return;
    et_options_release(et_recipe_table, &r->recipe);
    eti_arena_release(&r->arena);
    et_free(r->cx, r);
}

const struct et_registry *
eti_recipe_registry(const struct et_recipe *recipe)
{
    const struct et_registry *own = ((const struct eti_recipe *)recipe)->registry;
    return own ? own : et_registry_core();
}

const char *
et_recipe_bytes(const struct et_recipe *recipe, size_t *size)
{
    if (!recipe || !size)
        return NULL;
    const struct eti_recipe *r = (const struct eti_recipe *)recipe;
    *size = r->size;
    return r->text;
}

/* What `plugins` of ROOT names is known from here on: FILL's registry. */
static et_status
load_plugins(struct eti_loader *l, const struct et_value *root, struct eti_fill *fill)
{
    enum { MOST = 16 };
    const struct et_value *list = eti_value_get(root, "plugins");
    const char *names[MOST];
    struct et_place places[MOST];
    int n = 0;
    bool is_list = list && list->type == ET_VALUE_LIST;
    for (const struct et_value *v = is_list ? list->first : list; v;
         v = is_list ? v->next : NULL) {
        if (v->type != ET_VALUE_STRING) /* a fault, or none: the table says so later */
            return ET_OK;
        places[n] = eti_value_place(v);
        names[n++] = v->text;
        if (n == MOST || !l->env->load_plugins) {
            et_diagnostics_add(l->errors, n == MOST ? ET_E_LIMIT : ET_E_UNAVAILABLE,
                               &places[n - 1], "plugins",
                               n == MOST ? NULL
                                         : "a program that loads plugins gives its "
                                           "struct et_recipe_env a load_plugins",
                               n == MOST ? "more than 15 plugins"
                                         : "this program loads no plugins");
            return ET_OK;
        }
    }
    int before = l->errors->total;
    et_status status = ET_OK;
    if (n)
        status = l->env->load_plugins(l->env->data, names, places, n, l->errors,
                                      &fill->registry);
    if ((status == ET_OK || status == ET_EINVAL) && l->errors->total > before) {
        et_error_clear(l->cx); /* the errors say it, and where */
        status = ET_OK;
    }
    return status;
}

/* Everything after the bytes are there. FOLDER is absolute, or NULL. */
static et_status
build(struct eti_loader *l, struct eti_recipe *r, const char *text, size_t size,
      const char *name, const char *folder, const struct et_override *overrides, int n)
{
    ET_TRY(eti_load_text(l, text, size, name, 0, "", &r->root));
    if (!r->root)
        return ET_OK;
    ET_TRY(eti_apply_overrides(l, r->root, overrides, n));
    struct eti_fill fill = {
        .cx = l->cx,
        .registry = l->env->registry,
        .folder = folder,
        .foreign = foreign,
        .errors = l->errors,
    };
    int before = l->errors->total;
    ET_TRY(eti_model_from(l, r->root, folder));
    ET_TRY(load_plugins(l, r->root, &fill));
    if (l->errors->total > before) /* what they would have made known is no fault */
        return ET_OK;
    r->registry = fill.registry;
    r->is_filled = true;
    ET_TRY(eti_options_from_value(&fill, et_recipe_table, &r->recipe, r->root, ""));
    return eti_recipe_check(r, l->errors);
}

/* Turns what was built into what the caller gets. */
static et_status
finish(struct eti_loader *l, struct eti_recipe *r, et_status status,
       struct et_recipe **out)
{
    struct et_recipe *recipe = &r->recipe;
    *out = NULL;
    if (status == ET_OK && l->errors->total) {
        const struct et_diagnostic *d = &l->errors->v[0];
        char text[1024], *place = text + strlen("error E1234: ");
        et_diagnostic_text(d, text, sizeof text);
        place[strcspn(place, "\n")] = '\0';
        status = ET_FAIL(l->cx, ET_EINVAL, "%s", place);
        et_hint(l->cx, "%s", d->hint);
    }
    if (status == ET_OK)
        *out = recipe;
    else
        et_recipe_free(&recipe);
    return status;
}

/* The folder that a recipe's relative paths begin in. */
struct folder {
    int fd;         /* -1: it could not be opened */
    char *absolute; /* NULL likewise */
};

static struct folder
open_folder(const char *path, const char *instead)
{
    const char *slash = strrchr(path, '/');
    char name[PATH_MAX];
    snprintf(name, sizeof name, "%.*s", slash ? (int)(slash - path) : 1,
             slash ? path : ".");
    if (slash == path)
        snprintf(name, sizeof name, "/");
    if (instead)
        snprintf(name, sizeof name, "%s", instead);
    return (struct folder){
        .fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
        .absolute = realpath(name, NULL),
    };
}

static void
close_folder(struct folder *f)
{
    free(f->absolute);
    if (f->fd >= 0)
        close(f->fd);
}

et_status
et_recipe_parse(struct et_ctx *cx, const char *text, size_t size, const char *name,
                const struct et_override *overrides, int n,
                const struct et_recipe_env *env, struct et_recipe **out,
                struct et_diagnostics *errors)
{
    ETI_NEED(cx, cx, name, out, errors);
    if (size > 0)
        ETI_NEED(cx, text);
    *out = NULL;
    struct eti_recipe *r;
    ET_TRY(new_recipe(cx, &r));
    struct eti_loader l = {
        .cx = cx,
        .arena = &r->arena,
        .env = env ? env : &no_env,
        .errors = errors,
        .folder = -1,
    };
    et_status status = build(&l, r, text, size, name, NULL, overrides, n);
    return finish(&l, r, status, out);
}

et_status
eti_recipe_sketch(struct et_ctx *cx, const char *text, size_t size, const char *name,
                  const char *path, const struct et_override *overrides, int n,
                  const struct et_recipe_env *env, struct et_recipe **out,
                  struct et_diagnostics *errors)
{
    *out = NULL;
    struct eti_recipe *r;
    ET_TRY(new_recipe(cx, &r));
    struct folder folder = {.fd = -1};
    r->is_sketch = true;
    if (path)
        folder = open_folder(path, NULL);
    struct eti_loader l = {
        .cx = cx,
        .arena = &r->arena,
        .env = env ? env : &no_env,
        .errors = errors,
        .folder = folder.fd,
    };
    et_status status = build(&l, r, text, size, name, folder.absolute, overrides, n);
    close_folder(&folder);
    struct et_recipe *recipe = &r->recipe;
    if (status == ET_OK && r->is_filled)
        *out = recipe;
    else
        et_recipe_free(&recipe);
    return status;
}

static et_status
cannot_read(struct et_ctx *cx, struct et_diagnostics *errors, const char *path,
            int code)
{
    const char *why = eti_read_reason(code);
    et_diagnostics_add(errors, ET_E_READ, NULL, NULL,
                       code == ENOENT ? "etude recipes lists the installed ones" : NULL,
                       "cannot read %s: %s", path, why);
    return ET_FAIL(cx, ET_ENOENT, "cannot read %s: %s", path, why);
}

et_status
et_recipe_load(struct et_ctx *cx, const char *path, const struct et_override *overrides,
               int n, const struct et_recipe_env *env, struct et_recipe **out,
               struct et_diagnostics *errors)
{
    ETI_NEED(cx, cx, path, out, errors);
    *out = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return cannot_read(cx, errors, path, errno);
    struct folder folder = open_folder(path, env ? env->folder : NULL);
    struct eti_recipe *r = NULL;
    struct eti_loader l = {
        .cx = cx,
        .env = env ? env : &no_env,
        .errors = errors,
        .folder = folder.fd,
    };
    et_status status = new_recipe(cx, &r);
    if (status == ET_OK) {
        char *text = NULL;
        size_t size = 0;
        l.arena = &r->arena;
        status = eti_load_bytes(&l, fd, &text, &size);
        if (status == ET_EIO)
            status = cannot_read(cx, errors, path, errno);
        else if (status == ET_OK)
            status = build(&l, r, text, size, path, folder.absolute, overrides, n);
        r->text = text;
        r->size = size;
        status = finish(&l, r, status, out);
    }
    close_folder(&folder);
    close(fd);
    return status;
}

et_status
eti_recipe_gather(struct et_ctx *cx, const char *path, const char *folder_path,
                  struct eti_recipe_files *out, struct et_diagnostics *errors)
{
    char *text = NULL;
    size_t size = 0;
    struct et_value *root;
    *out = (struct eti_recipe_files){0};
    eti_arena_init(&out->arena, cx, 16 << 10);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return cannot_read(cx, errors, path, errno);
    struct folder folder = open_folder(path, folder_path);
    struct eti_loader l = {
        .cx = cx,
        .arena = &out->arena,
        .env = &no_env,
        .errors = errors,
        .folder = folder.fd,
        .gather = out,
    };
    et_status status = eti_load_bytes(&l, fd, &text, &size);
    if (status == ET_EIO)
        status = cannot_read(cx, errors, path, errno);
    if (status == ET_OK)
        status = eti_gather_file(&l, path, text, size);
    if (status == ET_OK)
        status = eti_load_text(&l, text, size, path, 0, "", &root);
    close_folder(&folder);
    close(fd);
    if (status == ET_OK && errors->total)
        status = ET_FAIL(cx, ET_EINVAL, "%s cannot be read", path);
    return status;
}

void
eti_recipe_files_release(struct eti_recipe_files *files)
{
    eti_arena_release(&files->arena);
    files->n = 0;
}
