/* SPDX-License-Identifier: Apache-2.0 */
/* Each public function is called with each of its pointers NULL, the others as good as
 * there are, each time in a process of its own: it fails with a sentence, or does
 * nothing, and never crashes (status.h). The calls are written from the headers
 * (null_calls.pl), so a new function is among them. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "etude/etude.h"

#include "core/checkpoint/archive.h"
#include "t/data/fixture.h"
#include "t/tap.h"

enum { PATIENCE = 20, BUFFER = 1 << 16, MANY = 16 };

/* How a child ends. */
enum { FINE = 0, SILENT = 3, NAMELESS = 4 };

struct call {
    const char *name;
    void (*fn)(int null); /* which parameter is NULL, from 0; -1: none */
    unsigned pointers;    /* those that are pointers, as bits */
};

/* ---- good values ---- */

static struct {
    struct et_ctx *cx;
    struct et_device *dev;
    struct et_graph *g;
    struct et_tensor *leaf, *many[MANY];
    struct et_module *module;
    struct et_model *model;
    struct et_param_space *space;
    struct et_optimizer *optimizer;
    struct et_dataset *dataset;
    struct et_loader *loader;
    const struct et_batch *batch;
    struct et_metric *metric;
    struct et_log *log;
    struct et_sink sink;
    struct et_callback *history, *memory, *progress, *callbacks[2];
    struct et_algorithm *algorithm, *algorithms[2];
    struct et_session *session;
    struct et_trainer *trainer;
    struct et_state *state;
    struct et_run *run;
    struct et_events *events;
    struct et_recipe *recipe;
    struct et_predictor *predictor;
    struct et_plugins *plugins;
    struct et_relay *relay;
    struct et_archive archive;
    struct et_leaves leaves;
    struct et_forward forward;
    struct et_param param;
    struct et_tracer tracer;
    struct et_comm *comm;
    struct et_dist *dist;
    struct et_param_copy *copy;
    struct et_stochastic_depth *depth;
    struct et_gyro_dropout *masks;
    struct et_gate gate;
    struct et_samples samples;
    struct et_tokenizer *tokenizer;
    struct et_encoder *encoder;
    struct et_diagnostic diagnostic;
    struct et_record record;
    void *options, *block;
    FILE *file;
} v;

static _Alignas(64) char zeros[BUFFER]; /* any struct without pointers that matter */
static void *slot[MANY];                /* where results go */
static int64_t twos[MANY] = {2, 2, 2, 2, 2, 2, 2, 2};
static double numbers[MANY] = {.5, .5};
static const char *texts[] = {"lr", "0.1", NULL};
static va_list nothing __attribute__((unused));

static void
drop_record(struct et_sink *sink, const struct et_record *record)
{
    (void)sink;
    (void)record;
}

static void
begin_span(struct et_tracer *t, const char *category, const char *name,
           const char *detail)
{
    (void)t;
    (void)category;
    (void)name;
    (void)detail;
}

static void
end_span(struct et_tracer *t, const char *category, const char *name)
{
    (void)t;
    (void)category;
    (void)name;
}

static et_status
run_alone(void *self, const struct et_comm_call *call, char *why, size_t why_size)
{
    (void)self;
    (void)call;
    (void)why;
    (void)why_size;
    return ET_OK;
}

static void
close_alone(void *self, bool failed)
{
    (void)self;
    (void)failed;
}

static const struct et_comm_class alone = {
    .name = "alone",
    .run = run_alone,
    .close = close_alone,
};

static const struct et_pool2d_attr window = {
    .kernel = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}};
static struct et_progress progress = {.kind = ET_PROGRESS_PLAIN};
static struct et_scheduler schedule;
static const struct et_run_length run_length = {
    .max_duration = {2, ET_TIME_EPOCH}, .dataloader_len = 4, .scale_schedule_ratio = 1};

static const struct et_option *
sgd_options(void)
{
    return et_optimizer_find("sgd")->info.options;
}

/* A good value for each type of pointer that a parameter has, its const left out. */
#define VALUES(X)                                                                      \
    X("struct et_ctx *", v.cx)                                                         \
    X("struct et_device *", v.dev)                                                     \
    X("struct et_graph *", v.g)                                                        \
    X("struct et_tensor *", v.leaf)                                                    \
    X("struct et_tensor *const *", v.many)                                             \
    X("struct et_storage *", v.leaf->storage)                                          \
    X("struct et_desc *", &v.leaf->desc)                                               \
    X("struct et_module *", v.module)                                                  \
    X("struct et_module_class *", v.module->type)                                      \
    X("struct et_model *", v.model)                                                    \
    X("struct et_model_class *", v.model->type)                                        \
    X("struct et_param_space *", v.space)                                              \
    X("struct et_param_copy *", v.copy)                                                \
    X("struct et_stochastic_depth *", v.depth)                                         \
    X("struct et_gyro_dropout *", v.masks)                                             \
    X("struct et_gate *", &v.gate)                                                     \
    X("struct et_optimizer *", v.optimizer)                                            \
    X("struct et_optimizer_class *", et_optimizer_find("sgd"))                         \
    X("struct et_component *", &et_optimizer_find("sgd")->info)                        \
    X("struct et_option *", sgd_options())                                             \
    X("struct et_dataset *", v.dataset)                                                \
    X("struct et_dataset_class *", v.dataset->type)                                    \
    X("struct et_loader *", v.loader)                                                  \
    X("struct et_tokenizer *", v.tokenizer)                                            \
    X("struct et_encoder *", v.encoder)                                                \
    X("struct et_batch *", v.batch)                                                    \
    X("struct et_metric *", v.metric)                                                  \
    X("struct et_metric_class *", et_metric_find("Accuracy"))                          \
    X("struct et_log *", v.log)                                                        \
    X("struct et_sink *", &v.sink)                                                     \
    X("struct et_tracer *", &v.tracer)                                                 \
    X("struct et_algorithm *", v.algorithm)                                            \
    X("struct et_algorithm_class *", v.algorithm->type)                                \
    X("struct et_session *", v.session)                                                \
    X("struct et_trainer *", v.trainer)                                                \
    X("struct et_state *", v.state)                                                    \
    X("struct et_run *", v.run)                                                        \
    X("struct et_events *", v.events)                                                  \
    X("struct et_recipe *", v.recipe)                                                  \
    X("struct et_predictor *", v.predictor)                                            \
    X("struct et_plugins *", v.plugins)                                                \
    X("struct et_relay *", v.relay)                                                    \
    X("struct et_archive *", &v.archive)                                               \
    X("struct et_leaves *", &v.leaves)                                                 \
    X("struct et_forward *", &v.forward)                                               \
    X("struct et_param *", &v.param)                                                   \
    X("struct et_comm *", v.comm)                                                      \
    X("struct et_dist *", v.dist)                                                      \
    X("struct et_comm_class *", &alone)                                                \
    X("struct et_samples *", &v.samples)                                               \
    X("struct et_record *", &v.record)                                                 \
    X("struct et_registry *", et_registry_core())                                      \
    X("struct et_algorithm **", v.algorithms)                                          \
    X("struct et_pool2d_attr *", &window)                                              \
    X("struct et_progress *", &progress)                                               \
    X("struct et_scheduler *", &schedule)                                              \
    X("struct et_run_length *", &run_length)                                           \
    X("char *const *", texts)                                                          \
    X("char *", "x")                                                                   \
    X("int64_t *", twos)                                                               \
    X("double *", numbers)                                                             \
    X("FILE *", v.file)

/* Whose pointer to a pointer ends something: it is that which is given. */
#define ENDS(X)                                                                        \
    X("et_ctx_free", v.cx)                                                             \
    X("et_device_close", v.dev)                                                        \
    X("et_graph_free", v.g)                                                            \
    X("et_tensor_free", v.leaf)                                                        \
    X("et_param_bind", v.leaf)                                                         \
    X("et_module_free", v.module)                                                      \
    X("et_model_free", v.model)                                                        \
    X("et_param_space_free", v.space)                                                  \
    X("et_param_copy_free", v.copy)                                                    \
    X("et_stochastic_depth_free", v.depth)                                             \
    X("et_gyro_dropout_free", v.masks)                                                 \
    X("et_optimizer_free", v.optimizer)                                                \
    X("et_dataset_close", v.dataset)                                                   \
    X("et_loader_free", v.loader)                                                      \
    X("et_tokenizer_free", v.tokenizer)                                                \
    X("et_encoder_free", v.encoder)                                                    \
    X("et_metric_free", v.metric)                                                      \
    X("et_log_free", v.log)                                                            \
    X("et_callback_free", v.history)                                                   \
    X("et_algorithm_free", v.algorithm)                                                \
    X("et_session_close", v.session)                                                   \
    X("et_trainer_free", v.trainer)                                                    \
    X("et_run_close", v.run)                                                           \
    X("et_events_close", v.events)                                                     \
    X("et_recipe_free", v.recipe)                                                      \
    X("et_predictor_free", v.predictor)                                                \
    X("et_plugins_free", v.plugins)                                                    \
    X("et_relay_free", v.relay)                                                        \
    X("et_comm_close", v.comm)                                                         \
    X("et_dist_end", v.dist)                                                           \
    X("et_options_free", v.options)

static const struct et_run_place place = {.directory = "run", .name = "x", .id = "0"};
static const struct et_run_notice notice = {
    .name = "x", .directory = "run", .state = "starting"};
static const struct et_plugin_entry entry = {
    .name = "x", .path = "/nowhere", .sha256 = "0"};
static int64_t nothing_there;

/* Where a function needs another value of a type than most do. */
#define SPECIAL(X)                                                                     \
    X("et_run_log", "void *", v.run)                                                   \
    X("et_free", "void *", v.block)                                                    \
    X("et_plugins_load", "struct et_plugin_entry *", &entry)                           \
    X("et_archive_list", "int64_t *", &nothing_there)                                  \
    X("et_run_join", "struct et_run_place *", &place)                                  \
    X("et_progress_notice", "struct et_run_notice *", &notice)

/* What has to have come before is not here: its good call is left out. */
static const char *const unready[] = {"et_optimizer_settle", "et_archive_leave"};

/* TYPE without its first "const ". */
static const char *
plain(const char *type)
{
    return strncmp(type, "const ", 6) == 0 ? type + 6 : type;
}

static void *
value_of(const char *function, const char *type)
{
    const struct {
        const char *type;
        const void *value;
    } values[] = {
#define ROW(type, value) {type, value},
        VALUES(ROW)
#undef ROW
    };
    const bool writes = plain(type) == type;
#define ROW(its, value)                                                                \
    if (strcmp(function, its) == 0 && strstr(type, "**"))                              \
        return &(value);
    ENDS(ROW)
#undef ROW
#define ROW(its, its_type, value)                                                      \
    if (strcmp(function, its) == 0 && strcmp(plain(type), its_type) == 0)              \
        return (void *)(uintptr_t)(value);
    SPECIAL(ROW)
#undef ROW
    if (strstr(type, "_fn *"))
        return NULL;
    if (strcmp(plain(type), "struct et_callback *") == 0)
        return strncmp(function, "et_progress", 11) == 0 ||
                       strncmp(function, "et_relay", 8) == 0
                   ? v.progress
               : strncmp(function, "et_logger", 9) == 0 ? v.memory
                                                        : v.history;
    if (writes && strcmp(type, "char *") == 0)
        return zeros;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (strcmp(values[i].type, plain(type)) == 0)
            return (void *)(uintptr_t)values[i].value;
    return strstr(type, "**") ? (void *)slot : (void *)zeros;
}

/* A number for a parameter of that name: 1, but 0 for a place in a list. */
static int
number_of(const char *parameter)
{
    static const char *const places[] = {"i",    "array", "group", "axis",
                                         "rank", "root",  "index"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (strcmp(parameter, places[i]) == 0)
            return 0;
    return 1;
}

/* ---- what a call says ---- */

static void
judge(const char *name, et_status status)
{
    const struct et_error *e = et_error_get(v.cx);
    if (e->status == ET_OK)
        e = et_error_get(NULL);
    if (status == ET_OK)
        return;
    if (!*e->message)
        _exit(SILENT);
    /* (A macro stands for a function that is given the size of a struct.) */
    size_t n = strlen(name);
    if (n > 6 && strcmp(name + n - 6, "_sized") == 0)
        n -= 6;
    else if (strcmp(name, "et_grad_from") == 0)
        n = strlen("et_grad");
    if (strstr(e->message, " is NULL") && strncmp(e->message, name, n) != 0)
        _exit(NAMELESS);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-result"
#include "t/unit/null_calls.h"
#pragma GCC diagnostic pop

/* ---- running them ---- */

static int
run_call(const struct call *c, int null)
{
    fflush(stdout);
    pid_t pid = fork();
    int status;
    if (pid < 0)
        bail("no process");
    if (pid == 0) {
        const struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
            _exit(1);
        alarm(PATIENCE);
        et_error_clear(v.cx);
        et_error_clear(NULL);
        c->fn(null);
        _exit(FINE);
    }
    if (waitpid(pid, &status, 0) != pid)
        bail("a process is lost");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static bool
is_unready(const char *name)
{
    for (size_t i = 0; i < sizeof unready / sizeof *unready; i++)
        if (strcmp(unready[i], name) == 0)
            return true;
    return false;
}

static void
check(const struct call *c)
{
    int faults = 0;
    for (int null = -1; null < 32; null++) {
        if (null >= 0 ? !(c->pointers & 1u << null) : is_unready(c->name))
            continue;
        int code = run_call(c, null);
        if (code == FINE)
            continue;
        faults++;
        diag("%s with %s%d: %s", c->name, null < 0 ? "no NULL " : "NULL as parameter ",
             null + 1,
             code == SILENT     ? "fails without a sentence"
             : code == NAMELESS ? "its sentence has another name"
                                : "ends the process");
    }
    ok(faults == 0, "%s stands a NULL", c->name);
}

/* ---- making the values ---- */

static const char text[] =
    "max_duration: 1ba\n"
    "seed: 5\n"
    "model: {name: mlp, hidden: 4}\n"
    "train_data: {name: synthetic_images, channels: 1, resolution: 4,\n"
    "    num_classes: 3, num_samples: 16, batch_size: 8, workers: 0}\n"
    "eval_data: {name: synthetic_images, channels: 1, resolution: 4,\n"
    "    num_classes: 3, num_samples: 8, batch_size: 8, workers: 0}\n"
    "optimizer: {name: sgd, lr: 0.1, momentum: 0.9}\n"
    "loggers: {in_memory: }\n";

static void
must(et_status status)
{
    need(v.cx, status);
}

static void
make_run(const char *recipe)
{
    const struct et_session_options o = {.device = "ref", .directory = "run"};
    struct et_diagnostics errors = {0};
    must(et_session_open(v.cx, recipe, &o, NULL, &v.session));
    must(et_session_fit(v.session));
    must(et_session_trainer(v.session, &v.trainer));
    v.state = et_trainer_state(v.trainer);
    must(et_checkpoint_load_model(v.cx, "run", v.dev, NULL, &v.predictor));
    must(et_events_open(v.cx, "run/events.log", &v.events));
    must(et_run_open(v.cx, &(struct et_run_config){.directory = "other"}, &v.run));
    must(et_recipe_parse(v.cx, text, sizeof text - 1, "r", NULL, 0, NULL, &v.recipe,
                         &errors));
    must(et_plugins_load(v.cx, NULL, 0, NULL, NULL, 0, &errors, &v.plugins));
    must(et_relay_new(v.cx, &v.relay));
}

static void
make_model(void)
{
    const struct et_model_facts facts = {
        .channels = 1, .height = 4, .width = 4, .num_classes = 3};
    const int64_t shape[] = {2, 2};
    must(et_graph_new(v.cx, v.dev, &v.g));
    must(et_tensor_new(v.cx, v.dev, ET_F32, 2, shape, ET_ROW_MAJOR, "leaf", &v.leaf));
    for (int i = 0; i < MANY; i++)
        v.many[i] = v.leaf;
    must(et_model_new(v.cx, et_model_class_find("mlp"), NULL, &facts, &v.model));
    must(et_model_bind_space(v.model, v.dev, 1, &v.space));
    must(et_optimizer_new(v.cx, et_optimizer_find("sgd"), NULL, v.space, &v.optimizer));
    must(et_param_copy_new(v.space, "copy", &v.copy));
    must(ET_NEW(v.cx, &v.module, linear, .in_features = 2, .out_features = 2));
    must(et_apply_stochastic_depth(v.cx, v.module, v.dev, ET_STOCHASTIC_BLOCK, 0,
                                   ET_DROP_LINEAR, &v.depth));
    must(et_apply_gyro_dropout(v.cx, v.module, v.dev, 2, 0, 2, 1, 0, &v.masks));
    v.gate = (struct et_gate){.closed = v.leaf};
    must(et_module_leaves(v.cx, v.model->root, ET_PARAM, &v.leaves));
    v.forward = (struct et_forward){.g = v.g};
    et_param_declare(&v.param, (struct et_init){.a = 1}, 2, shape);
    must(et_metric_new(v.cx, v.dev, et_metric_find("Accuracy"), NULL, &v.metric));
}

static void
make_data(void)
{
    static const char *const set[] = {
        "resolution", "4", "num_samples", "8", "batch_size", "4", "workers", "0", NULL};
    const struct et_dataset_class *c = et_dataset_find("synthetic_images");
    const struct et_loader_config config = {.dev = v.dev};
    void *o;
    must(et_options_new(v.cx, &c->info, set, &o));
    must(et_dataset_open(v.cx, c, o, &v.dataset));
    et_options_free(&c->info, &o);
    must(et_loader_new(v.cx, v.dataset, &config, &v.loader));
    must(et_loader_next(v.cx, v.loader, &v.batch));
    must(et_tokenizer_open(v.cx, "bytes", &v.tokenizer));
    must(et_encoder_new(v.cx, v.tokenizer, &v.encoder));
    v.samples = (struct et_samples){.x = v.batch->field[ET_FIELD_X].tensor,
                                    .target = v.batch->field[ET_FIELD_TARGET].tensor,
                                    .n = 4};
}

static void
make_watchers(void)
{
    progress.out = v.file;
    void *linear;
    v.sink.write = drop_record;
    v.tracer = (struct et_tracer){.begin = begin_span, .end = end_span};
    must(et_log_new(v.cx, &v.sink, &v.log));
    must(
        et_callback_new(v.cx, et_callback_find("run_history"), NULL, NULL, &v.history));
    must(et_callback_new(v.cx, et_logger_find("in_memory"), NULL, NULL, &v.memory));
    must(et_progress_new(v.cx, &progress, &v.progress));
    must(et_algorithm_new(v.cx, et_algorithm_find("ema"), NULL, &v.algorithm));
    v.algorithms[0] = v.algorithm;
    must(et_comm_new(v.cx, &alone, NULL, 0, 1, &v.comm));
    must(et_dist_init(v.cx, 0, &v.dist));
    must(et_options_new(v.cx, &et_optimizer_find("sgd")->info, NULL, &v.options));
    must(et_alloc(v.cx, 8, &v.block));
    schedule.type = et_scheduler_find("linear");
    must(et_options_new(v.cx, &schedule.type->info, NULL, &linear));
    schedule.options = linear;
    eti_archive_begin(&v.archive, v.cx);
}

int
main(void)
{
    char recipe[4096];
    v.cx = need_ctx();
    snprintf(recipe, sizeof recipe, "%s",
             write_file("r.yaml", text, sizeof text - 1, false));
    if (chdir(scratch_folder()) != 0)
        bail("no folder");
    v.file = fopen("/dev/null", "we");
    if (!v.file)
        bail("no /dev/null");
    must(et_device_open(v.cx, "ref", 0, 1, &v.dev));
    make_run(recipe);
    make_model();
    make_data();
    make_watchers();
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        check(&calls[i]);
    int code = done();
    fflush(NULL);
    _exit(code); /* it holds one of everything: no leak that LeakSanitizer is to find */
}
