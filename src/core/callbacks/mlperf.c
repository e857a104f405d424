/* SPDX-License-Identifier: Apache-2.0 */
/* mlperf.c: a result file in the form that MLPerf Training asks for.
 *
 *     <root_folder>/results/<system_name>/<benchmark>/result_<index>.txt
 *     <root_folder>/systems/<system_name>.json
 *
 * The first holds lines of mlperf_logging, ":::MLLOG " and an object with namespace,
 * time_ms, event_type, key, value and metadata, from init_start to run_stop; the second
 * describes the machine as far as it says so itself, and is to be completed by hand.
 *
 * Source: spec/trainer.md 9.3, MLPerfCallback; mlcommons/logging. Differs: an epoch's
 * start and stop, and a block's, carry one number, where Composer counts on between;
 * starts and stops are intervals; run_stop says "aborted" when the target was not
 * reached; eval_samples are those that the first evaluation counted; a recipe runs no
 * commands, so that caches are cleared by who starts the run, and cache_cleared says
 * that they were. A run that was interrupted goes on in its file. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "core/callbacks/callbacks.h"

struct options {
    char *root_folder;
    int64_t index;
    int benchmark;
    double target;
    int division;
    char *metric_name, *metric_label;
    char *submitter, *system_name;
    int status;
    bool cache_cleared;
    int64_t host_processors_per_node;
    bool exit_at_target;
};

static const char *const benchmarks[] = {"resnet", NULL};
static const char *const divisions[] = {"open", NULL};
static const char *const statuses[] = {"onprem", "cloud", "preview", NULL};

#define ROW(kind, field, words, ...)                                                   \
    {                                                                                  \
        .name = #field, .type = ET_OPT_##kind,                                         \
        .offset = offsetof(struct options, field), .help = words, __VA_ARGS__          \
    }
static const struct et_option option_table[] = {
    ROW(PATH, root_folder, "submission folder; unset: mlperf in the run directory",
        .flags = ET_OPT_OPTIONAL),
    ROW(INT, index, "which repetition this run is: of result_<index>.txt",
        .flags = ET_OPT_REQUIRED, .min = 0, .max = 1e6),
    ROW(ENUM, benchmark, "of MLPerf Training", .def = "resnet", .choices = benchmarks),
    ROW(FLOAT, target, "the clock stops when the metric is above", .def = "0.759"),
    ROW(ENUM, division, "of the submission", .def = "open", .choices = divisions),
    ROW(TEXT, metric_name, "what is compared with the target", .def = "Accuracy"),
    ROW(TEXT, metric_label, "the evaluator that has it", .def = "eval"),
    ROW(TEXT, submitter, "organisation", .def = "etude"),
    ROW(TEXT, system_name, "unset: 1x<device>_etude", .flags = ET_OPT_OPTIONAL),
    ROW(ENUM, status, "of the submission", .def = "onprem", .choices = statuses),
    ROW(BOOL, cache_cleared, "the system's caches were cleared before this run",
        .def = "false"),
    ROW(INT, host_processors_per_node, "for the system's description",
        .flags = ET_OPT_OPTIONAL, .min = 1, .max = 1e6),
    ROW(BOOL, exit_at_target, "the run ends when the target is reached",
        .def = "false"),
    {.name = NULL},
};
#undef ROW

enum { PATH_BYTES = 4096 };

struct mlperf {
    int64_t init_ms; /* when INIT came */
    int fd;          /* of the results; 0: not open */
    bool success;    /* run_stop has been written with it */
    bool evaluated;  /* eval_samples have been written */
    bool failed;     /* something could not be written */
    bool interrupted;
    int64_t epoch; /* that began last */
    char system_name[128];
    char root[PATH_BYTES / 2];
};

/* ---- lines ---- */

static int64_t
now_ms(const struct et_callback *self)
{
    return (int64_t)(eti_wall(self->cx) * 1000);
}

static const char *
type_of(const char *key)
{
    static const char start[] = "_start", stop[] = "_stop";
    size_t n = strlen(key);
    if (n >= sizeof start && strcmp(key + n - sizeof start + 1, start) == 0)
        return "INTERVAL_START";
    if (n >= sizeof stop && strcmp(key + n - sizeof stop + 1, stop) == 0)
        return "INTERVAL_END";
    return "POINT_IN_TIME";
}

/* Takes over VALUE and METADATA, which may be NULL. A line that cannot be written is
 * reported once; the run goes on. */
static void
line_at(struct et_callback *self, int64_t ms, int lineno, const char *key,
        json_t *value, json_t *metadata)
{
    struct mlperf *m = self->state;
    json_t *meta = json_pack("{s:s, s:i}", "file", "src/core/callbacks/mlperf.c",
                             "lineno", lineno);
    if (metadata)
        json_object_update(meta, metadata);
    json_decref(metadata);
    json_t *object = json_pack("{s:s, s:I, s:s, s:s, s:o?, s:o}", "namespace", "",
                               "time_ms", (json_int_t)ms, "event_type", type_of(key),
                               "key", key, "value", value, "metadata", meta);
    char *text = object ? json_dumps(object, 0) : NULL;
    bool fine = text && dprintf(m->fd, ":::MLLOG %s\n", text) > 0;
    json_decref(object);
    free(text);
    if (fine || m->failed)
        return;
    m->failed = true;
    et_report(self->cx, ET_LOG_WARN,
              "mlperf: cannot write the results: %s; they are no submission",
              text ? strerror(errno) : "no memory");
}

#define LINE(self, key, value, metadata)                                               \
    line_at(self, now_ms(self), __LINE__, key, value, metadata)

static json_t *
epoch_number(int64_t epoch)
{
    return json_pack("{s:I}", "epoch_num", (json_int_t)epoch);
}

/* ---- files ---- */

/* Makes the folders above PATH, those of the submission with it. */
static et_status
make_folders(struct et_ctx *cx, const char *path)
{
    char part[PATH_BYTES];
    for (const char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(p - path), path);
        if (mkdir(part, 0777) != 0 && errno != EEXIST)
            return ET_FAIL(cx, ET_EIO, "cannot make %s: %s", part, strerror(errno));
    }
    return ET_OK;
}

static et_status
open_results(struct et_callback *self, bool resumed)
{
    const struct options *o = self->options;
    struct mlperf *m = self->state;
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/results/%s/%s/result_%" PRId64 ".txt", m->root,
             m->system_name, benchmarks[o->benchmark], o->index);
    ET_TRY(make_folders(self->cx, path));
    m->fd = open(
        path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (resumed ? 0 : O_EXCL), 0666);
    if (m->fd > 0)
        return ET_OK;
    m->fd = 0;
    return ET_FAIL(self->cx, errno == EEXIST ? ET_EINVAL : ET_EIO,
                   "mlperf: cannot write %s: %s", path, strerror(errno));
}

/* The first "model name" of /proc/cpuinfo, and how many cores it lists. */
static void
describe_processor(char *name, size_t size, int *cores)
{
    char text[256];
    int sockets = 0, per_socket = 0, threads = 0, id = -1, last = -1;
    FILE *f = fopen("/proc/cpuinfo", "r");
    snprintf(name, size, "CPU");
    while (f && fgets(text, sizeof text, f)) {
        const char *value = strchr(text, ':');
        value = value ? value + 1 + (value[1] == ' ') : "";
        text[strcspn(text, "\n")] = '\0';
        if (strncmp(text, "model name", 10) == 0 && threads++ == 0)
            snprintf(name, size, "%s", value);
        if (strncmp(text, "cpu cores", 9) == 0)
            per_socket = (int)strtol(value, NULL, 10);
        if (strncmp(text, "physical id", 11) == 0 &&
            (id = (int)strtol(value, NULL, 10)) > last) {
            sockets++;
            last = id;
        }
    }
    if (f)
        fclose(f);
    *cores = sockets && per_socket ? sockets * per_socket : threads;
}

static json_t *
describe_system(const struct options *o, const struct mlperf *m)
{
    static const char *const unknown[] = {
        "host_processor_frequency",
        "host_processor_caches",
        "host_processor_interconnect",
        "host_storage_type",
        "host_storage_capacity",
        "host_networking",
        "host_networking_topology",
        "host_memory_configuration",
        "accelerator_model_name",
        "accelerator_host_interconnect",
        "accelerator_frequency",
        "accelerator_on-chip_memories",
        "accelerator_memory_configuration",
        "accelerator_memory_capacity",
        "accelerator_interconnect",
        "accelerator_interconnect_topology",
        "cooling",
        "hw_notes",
        "sw_notes",
    };
    char processor[160], count[24], cores_text[24], threads[24], memory[32],
        system[256];
    struct utsname u = {0};
    int cores;
    describe_processor(processor, sizeof processor, &cores);
    snprintf(cores_text, sizeof cores_text, "%d", cores);
    snprintf(threads, sizeof threads, "%ld", sysconf(_SC_NPROCESSORS_ONLN));
    snprintf(count, sizeof count, "%" PRId64, o->host_processors_per_node);
    snprintf(memory, sizeof memory, "%.1f GB",
             (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / 1e9);
    (void)uname(&u);
    snprintf(system, sizeof system, "%.100s %.100s", u.sysname, u.release);
    json_t *out = json_pack(
        "{s:s, s:s, s:s, s:s, s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:{s:s}, s:s}",
        "submitter", o->submitter, "division", divisions[o->division], "status",
        statuses[o->status], "system_name", m->system_name, "number_of_nodes", 1,
        "host_processors_per_node",
        o->host_processors_per_node == ET_INT_UNSET ? "" : count,
        "host_processor_model_name", processor, "host_processor_core_count", cores_text,
        "host_processor_vcpu_count", threads, "host_memory_capacity", memory,
        "accelerators_per_node", "0", "framework", "Etude v" PACKAGE_VERSION,
        "other_software_stack", "etude_version", PACKAGE_VERSION, "operating_system",
        system);
    for (size_t i = 0; out && i < sizeof unknown / sizeof *unknown; i++)
        json_object_set_new(out, unknown[i], json_string(""));
    return out;
}

/* What somebody has completed by hand stays. */
static et_status
write_description(struct et_callback *self)
{
    const struct mlperf *m = self->state;
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/systems/%s.json", m->root, m->system_name);
    ET_TRY(make_folders(self->cx, path));
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno == EEXIST)
        return ET_OK;
    json_t *system = describe_system(self->options, m);
    bool fine = fd >= 0 && system && json_dumpfd(system, fd, JSON_INDENT(4)) == 0;
    json_decref(system);
    if (fd >= 0)
        close(fd);
    if (!fine)
        return ET_FAIL(self->cx, ET_EIO, "mlperf: cannot write %s: %s", path,
                       strerror(errno));
    return ET_OK;
}

/* ---- events ---- */

static et_status
begin(struct et_callback *self, const struct et_state *s)
{
    const struct options *o = self->options;
    struct mlperf *m = self->state;
    m->init_ms = now_ms(self);
    if (o->system_name)
        snprintf(m->system_name, sizeof m->system_name, "%s", o->system_name);
    else
        snprintf(m->system_name, sizeof m->system_name, "1x%s_etude",
                 et_device_name(s->dev));
    if (strchr(m->system_name, '/') || m->system_name[0] == '.')
        return ET_FAIL(self->cx, ET_EINVAL, "mlperf: '%s' is no name for a file",
                       m->system_name);
    if (!o->root_folder && !self->run_directory)
        return ET_FAIL(self->cx, ET_EINVAL,
                       "mlperf needs root_folder or a run directory");
    int n = o->root_folder
                ? snprintf(m->root, sizeof m->root, "%s", o->root_folder)
                : snprintf(m->root, sizeof m->root, "%s/mlperf", self->run_directory);
    if (n >= (int)sizeof m->root)
        return ET_FAIL(self->cx, ET_EINVAL,
                       "mlperf: root_folder is longer than %zu bytes",
                       sizeof m->root - 1);
    return ET_OK;
}

static void
write_facts(struct et_callback *self, const struct et_state *s)
{
    const struct options *o = self->options;
    const struct mlperf *m = self->state;
    if (o->cache_cleared)
        line_at(self, m->init_ms, __LINE__, "cache_clear", json_true(), NULL);
    else
        et_report(
            self->cx, ET_LOG_WARN,
            "mlperf: a submission needs cleared caches, and cache_cleared is false");
    line_at(self, m->init_ms, __LINE__, "init_start", NULL, NULL);
    LINE(self, "submission_benchmark", json_string(benchmarks[o->benchmark]), NULL);
    LINE(self, "submission_division", json_string(divisions[o->division]), NULL);
    LINE(self, "submission_org", json_string(o->submitter), NULL);
    LINE(self, "submission_platform", json_string(m->system_name), NULL);
    LINE(self, "submission_status", json_string(statuses[o->status]), NULL);
    LINE(self, "seed", json_integer(s->seed), NULL);
    LINE(self, "global_batch_size", json_integer(s->batch_size), NULL);
    LINE(self, "gradient_accumulation_steps", json_integer(s->grad_accum), NULL);
    LINE(self, "train_samples", json_integer(s->train_samples), NULL);
    LINE(self, "init_stop", NULL, NULL);
    LINE(self, "run_start", NULL, NULL);
}

static et_status
start(struct et_callback *self, const struct et_state *s)
{
    struct mlperf *m = self->state;
    bool resumed = s->timestamp.batch > 0;
    if (m->fd > 0) /* fit is called again */
        return ET_OK;
    ET_TRY(write_description(self));
    ET_TRY(open_results(self, resumed));
    if (!resumed)
        write_facts(self, s);
    return ET_OK;
}

static void
start_epoch(struct et_callback *self, const struct et_state *s)
{
    struct mlperf *m = self->state;
    m->epoch = s->timestamp.epoch;
    LINE(self, "epoch_start", NULL, epoch_number(m->epoch));
    LINE(self, "block_start", NULL,
         json_pack("{s:I, s:i}", "first_epoch_num", (json_int_t)m->epoch, "epoch_count",
                   1));
}

static et_status
end_evaluation(struct et_callback *self, const struct et_state *s)
{
    const struct options *o = self->options;
    struct mlperf *m = self->state;
    char name[2 * ET_METRIC_NAME];
    double accuracy;
    if (s->interrupted)
        return ET_OK;
    snprintf(name, sizeof name, "metrics/%s/%s", o->metric_label, o->metric_name);
    if (!et_state_metric(s, name, &accuracy))
        return ET_FAIL(self->cx, ET_EINVAL, "mlperf: metric_name: there is no %s",
                       name);
    if (!m->evaluated)
        LINE(self, "eval_samples", json_integer(s->eval_timestamp.sample), NULL);
    m->evaluated = true;
    LINE(self, "eval_stop", NULL, epoch_number(s->timestamp.epoch));
    LINE(self, "eval_accuracy", json_real(accuracy), epoch_number(s->timestamp.epoch));
    LINE(self, "block_stop", NULL,
         json_pack("{s:I}", "first_epoch_num", (json_int_t)m->epoch));
    if (accuracy > o->target && !m->success) {
        m->success = true;
        LINE(self, "run_stop", NULL, json_pack("{s:s}", "status", "success"));
        if (o->exit_at_target)
            self->stop = "MLPerf's target was reached";
    }
    return ET_OK;
}

static et_status
run(struct et_callback *self, enum et_event event, const struct et_state *s,
    struct et_log *log)
{
    const struct options *o = self->options;
    struct mlperf *m = self->state;
    (void)log;
    if (event == ET_EVENT_INIT)
        return begin(self, s);
    if (event == ET_EVENT_FIT_START)
        return start(self, s);
    if (m->fd <= 0 || m->success)
        return ET_OK;
    bool ours =
        s->dataloader_label && strcmp(s->dataloader_label, o->metric_label) == 0;
    if (event == ET_EVENT_EPOCH_START)
        start_epoch(self, s);
    else if (event == ET_EVENT_EPOCH_END)
        LINE(self, "epoch_stop", NULL, epoch_number(m->epoch));
    else if (event == ET_EVENT_EVAL_START && ours)
        LINE(self, "eval_start", NULL, epoch_number(s->timestamp.epoch));
    else if (event == ET_EVENT_EVAL_END && ours)
        return end_evaluation(self, s);
    else if (event == ET_EVENT_FIT_END)
        m->interrupted = s->interrupted;
    return ET_OK;
}

static et_status
archive(struct et_callback *self, struct et_archive *a)
{
    struct mlperf *m = self->state;
    ET_TRY(et_archive_flag(a, "success", &m->success));
    ET_TRY(et_archive_flag(a, "evaluated", &m->evaluated));
    return et_archive_i64(a, "epoch", &m->epoch, 1);
}

/* The last evaluation comes after FIT_END, so only here is it known that the target was
 * missed; who interrupts may go on. */
static void
finish(struct et_callback *self)
{
    struct mlperf *m = self->state;
    if (m->fd <= 0)
        return;
    if (!m->success && !m->interrupted)
        LINE(self, "run_stop", NULL, json_pack("{s:s}", "status", "aborted"));
    (void)fsync(m->fd);
    close(m->fd);
    m->fd = 0;
}

const struct et_callback_class et_callback_mlperf = {
    .info =
        {
            .name = "mlperf",
            .class_name = "MLPerfCallback",
            .summary = "a result file as MLPerf Training asks for",
            .source = "MosaicML Composer, MLPerfCallback; mlcommons/logging",
            .applies_to = "any",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct mlperf),
    .events = ET_ON(INIT) | ET_ON(FIT_START) | ET_ON(EPOCH_START) | ET_ON(EPOCH_END) |
              ET_ON(EVAL_START) | ET_ON(EVAL_END) | ET_ON(FIT_END),
    .run = run,
    .archive = archive,
    .close = finish,
};
