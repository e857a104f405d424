/* SPDX-License-Identifier: Apache-2.0 */
/* mlflow.c: a file store, as MLflow reads it: `mlflow ui --backend-store-uri mlruns`.
 *
 *     mlruns/<experiment>/meta.yaml
 *     mlruns/<experiment>/<run>/meta.yaml
 *                               metrics/loss/train/total    "1763647402114 0.8123 37"
 *                               params/optimizer.lr         "0.3"
 *                               tags/mlflow.runName         "brisk-otter"
 *
 * A metric's file has a line for each value: milliseconds since 1970, value, finished
 * batches. The parameters are the values of the resolved recipe. The run's id is
 * Etude's, so that a run that is resumed goes on in its folder: of batches that are
 * done twice, the lines are there twice.
 *
 * Source: MLflow, store/tracking/file_store.py; MosaicML Composer, MLFlowLogger.
 * Differs: files alone, no server. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "core/loggers/given.h"
#include "core/loggers/loggers.h"

static const double stale_seconds = 30; /* between writes to the files, at most */
enum { PATH_BYTES = 4096, PENDING = 4096, LINE = ETI_NUMBER + 48 };

struct options {
    char *experiment, *folder;
};

static const struct et_option option_table[] = {
    {
        .name = "experiment",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct options, experiment),
        .flags = ET_OPT_OPTIONAL,
        .help = "experiment; without one the recipe's name",
    },
    {
        .name = "folder",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct options, folder),
        .def = "mlruns",
        .flags = ET_OPT_OUTPUT,
        .help = "folder in the run directory",
    },
    {.name = NULL},
};

/* A value that is not in its file yet. */
struct pending {
    double t, value;
    int64_t step;
    int next; /* of the same name; -1: it is the last */
};

struct series {
    char name[ET_METRIC_NAME];
    int first, last; /* of its pending ones; -1: there are none */
};

struct state {
    struct eti_given given;
    char folder[PATH_BYTES]; /* of the run */
    char experiment[24];     /* its id */
    double began;            /* seconds since 1970 */
    struct pending *pending; /* [PENDING] */
    int n_pending;
    struct series *series;
    int n, room;
    double flushed; /* monotonic */
    bool is_open, ended, failed;
};

/* ---- files ---- */

/* What cannot be written is said once: it ends no run. */
static void
judge(struct et_callback *self, et_status status)
{
    struct state *l = self->state;
    if (status != ET_OK && !l->failed)
        et_report(self->cx, ET_LOG_WARN, "mlflow: %s; it will have gaps",
                  et_error_get(self->cx)->message);
    if (status != ET_OK)
        et_error_clear(self->cx);
    l->failed = l->failed || status != ET_OK;
}

/* The folders of PATH below the first N bytes of it, which are there. */
static et_status
make_folders(struct et_ctx *cx, const char *path, size_t n)
{
    char part[PATH_BYTES];
    for (const char *slash = path + n; (slash = strchr(slash + 1, '/'));) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        if (eti_ctx_seams(cx)->file.make_folder(AT_FDCWD, part, 0700) != 0 &&
            errno != EEXIST)
            return ET_FAIL(cx, ET_EIO, "cannot make %s: %s", part, strerror(errno));
    }
    return ET_OK;
}

/* Makes FOLDER/NAME a file with TEXT, N bytes, or with ADDS puts them behind it. */
static et_status
put_file(struct et_ctx *cx, const char *folder, const char *name, const char *text,
         size_t n, bool adds)
{
    char path[PATH_BYTES];
    int fd;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return ET_FAIL(cx, ET_EINVAL, "the path of %s is too long", name);
    ET_TRY(make_folders(cx, path, strlen(folder) - 1));
    ET_TRY(eti_open_at(cx, AT_FDCWD, path,
                       O_WRONLY | O_CREAT | (adds ? O_APPEND : O_TRUNC), 0600, &fd));
    et_status status = eti_write_all(cx, fd, path, text, n);
    eti_close(cx, fd);
    return status;
}

/* A name as MLflow allows it: others' characters become underlines. */
static void
tame(const char *name, char *buf, size_t size)
{
    snprintf(buf, size, "%s", name);
    for (char *c = buf; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                    "_-. /",
                    *c))
            *c = '_';
    if (*buf == '/' || *buf == '.')
        *buf = '_';
    for (char *up; (up = strstr(buf, ".."));)
        *up = '_';
    for (char *twice; (twice = strstr(buf, "//"));)
        *twice = '_';
}

/* ---- values ---- */

static void
flush(struct et_callback *self)
{
    struct state *l = self->state;
    char *text;
    void *block;
    if (!l->is_open || l->n_pending == 0)
        return;
    et_status status = et_alloc(self->cx, (size_t)l->n_pending * LINE, &block);
    text = block;
    for (int i = 0; i < l->n && status == ET_OK; i++) {
        char name[ET_METRIC_NAME], file[ET_METRIC_NAME + 16], number[ETI_NUMBER];
        size_t n = 0;
        for (int k = l->series[i].first; k >= 0; k = l->pending[k].next) {
            const struct pending *p = &l->pending[k];
            number[eti_put_nine(number, p->value)] = '\0';
            n += (size_t)snprintf(text + n, LINE, "%.0f %s %" PRId64 "\n",
                                  floor(p->t * 1000), number, p->step);
        }
        l->series[i].first = l->series[i].last = -1;
        if (n == 0)
            continue;
        tame(l->series[i].name, name, sizeof name);
        snprintf(file, sizeof file, "metrics/%s", name);
        judge(self, put_file(self->cx, l->folder, file, text, n, true));
    }
    judge(self, status);
    if (status == ET_OK)
        et_free(self->cx, block);
    l->n_pending = 0;
}

/* The series NAME, the one at *HINT if it is that; NULL: there is no memory for it. */
static struct series *
find_series(struct et_ctx *cx, struct state *l, const char *name, int *hint)
{
    int i = *hint;
    if (i >= l->n || strcmp(l->series[i].name, name) != 0)
        for (i = 0; i < l->n && strcmp(l->series[i].name, name) != 0;)
            i++;
    if (i == l->n && l->n == l->room) {
        const int room = l->room ? 2 * l->room : 64;
        void *block;
        if (et_alloc(cx, (size_t)room * sizeof *l->series, &block) != ET_OK)
            return NULL;
        if (l->n > 0)
            memcpy(block, l->series, (size_t)l->n * sizeof *l->series);
        et_free(cx, l->series);
        l->series = block;
        l->room = room;
    }
    if (i == l->n) {
        snprintf(l->series[i].name, sizeof l->series[i].name, "%s", name);
        l->series[i].first = l->series[i].last = -1;
        l->n++;
    }
    *hint = i + 1;
    return &l->series[i];
}

static void
take(struct et_callback *self, const struct et_state *s, const struct et_log *log)
{
    struct state *l = self->state;
    int n, hint = 0;
    const double now = eti_wall(self->cx);
    const struct et_log_entry *entry = et_log_entries(log, &n);
    for (int i = 0; i < n; i++) {
        if (l->n_pending == PENDING)
            flush(self);
        struct series *of = find_series(self->cx, l, entry[i].name, &hint);
        if (!of) {
            judge(self, ET_ENOMEM);
            return;
        }
        const int at = l->n_pending++;
        l->pending[at] = (struct pending){now, entry[i].value, s->timestamp.batch, -1};
        if (of->first < 0)
            of->first = at;
        else
            l->pending[of->last].next = at;
        of->last = at;
    }
}

/* ---- the run ---- */

/* TEXT in single quotes, as YAML has them, into BUF. */
static const char *
quote(const char *text, char *buf, size_t size)
{
    size_t n = 0;
    buf[n++] = '\'';
    for (; *text && n + 3 < size; text++) {
        if (*text == '\'')
            buf[n++] = '\'';
        buf[n++] = *text;
    }
    buf[n++] = '\'';
    buf[n] = '\0';
    return buf;
}

enum status { RUNNING = 1, FINISHED = 3, FAILED = 4 };

static et_status
put_meta(struct et_callback *self, enum status status)
{
    const struct state *l = self->state;
    char text[3 * PATH_BYTES], name[300], place[2 * PATH_BYTES], end[32] = "null";
    if (status != RUNNING)
        snprintf(end, sizeof end, "%.0f", floor(eti_wall(self->cx) * 1000));
    char uri[PATH_BYTES + 32];
    snprintf(uri, sizeof uri, "%s/artifacts", l->folder);
    int n = snprintf(text, sizeof text,
                     "artifact_uri: %s\nend_time: %s\nentry_point_name: ''\n"
                     "experiment_id: '%s'\nlifecycle_stage: active\nrun_id: %s\n"
                     "run_name: %s\nrun_uuid: %s\nsource_name: ''\nsource_type: 4\n"
                     "source_version: ''\nstart_time: %.0f\nstatus: %d\ntags: []\n"
                     "user_id: etude\n",
                     quote(uri, place, sizeof place), end, l->experiment, l->given.id,
                     quote(l->given.name, name, sizeof name), l->given.id,
                     floor(l->began * 1000), (int)status);
    return put_file(self->cx, l->folder, "meta.yaml", text, (size_t)n, false);
}

static et_status
put_experiment(struct et_callback *self, const char *store, const char *name)
{
    const struct state *l = self->state;
    char folder[PATH_BYTES + 32], text[3 * PATH_BYTES], uri[2 * PATH_BYTES],
        quoted[300];
    char path[PATH_BYTES + 48];
    snprintf(folder, sizeof folder, "%s/%s", store, l->experiment);
    snprintf(path, sizeof path, "%s/meta.yaml", folder);
    if (access(path, F_OK) == 0)
        return ET_OK;
    int n =
        snprintf(text, sizeof text,
                 "artifact_location: %s\ncreation_time: %.0f\nexperiment_id: '%s'\n"
                 "last_update_time: %.0f\nlifecycle_stage: active\nname: %s\n",
                 quote(folder, uri, sizeof uri), floor(l->began * 1000), l->experiment,
                 floor(l->began * 1000), quote(name, quoted, sizeof quoted));
    return put_file(self->cx, folder, "meta.yaml", text, (size_t)n, false);
}

static void
put_param(void *data, const char *key, const struct et_value *v)
{
    struct et_callback *self = data;
    const struct state *l = self->state;
    char name[256], file[300];
    const char *text = v->type == ET_VALUE_NULL ? "null" : v->text ? v->text : "";
    tame(key, name, sizeof name);
    snprintf(file, sizeof file, "params/%s", name);
    judge(self, put_file(self->cx, l->folder, file, text, strlen(text), false));
}

static et_status
put_tags(struct et_callback *self)
{
    const struct state *l = self->state;
    const char *const tags[][2] = {
        {"tags/mlflow.runName", l->given.name},
        {"tags/mlflow.source.name", l->given.recipe},
        {"tags/mlflow.source.type", "LOCAL"},
        {"tags/mlflow.user", "etude"},
    };
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        ET_TRY(put_file(self->cx, l->folder, tags[i][0], tags[i][1], strlen(tags[i][1]),
                        false));
    return put_file(self->cx, l->folder, "artifacts/.keep", "", 0, false);
}

/* 18 digits, as MLflow's own ids have, that belong to NAME. */
static void
name_experiment(const char *name, char out[24])
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (const char *c = name; *c; c++)
        h = (h ^ (unsigned char)*c) * UINT64_C(1099511628211);
    snprintf(out, 24, "%018" PRIu64, h % UINT64_C(1000000000000000000));
    if (*out == '0')
        *out = '1';
}

static et_status
open_store(struct et_callback *self)
{
    const struct options *o = self->options;
    struct state *l = self->state;
    char real[PATH_BYTES], store[PATH_BYTES];
    void *block;
    if (!self->run_directory)
        return ET_FAIL(self->cx, ET_EINVAL,
                       "%s needs a run directory, and there is none", o->folder);
    /* (Readers may be elsewhere: artifacts are told by their whole path.) */
    if (!realpath(self->run_directory, real))
        return ET_FAIL(self->cx, ET_EIO, "cannot find %s: %s", self->run_directory,
                       strerror(errno));
    eti_given_read(self->run_directory, &l->given);
    const char *name = o->experiment ? o->experiment : l->given.recipe;
    name_experiment(name, l->experiment);
    if (snprintf(store, sizeof store, "%s/%s", real, o->folder) >= PATH_BYTES - 256)
        return ET_FAIL(self->cx, ET_EINVAL, "the path of %s is too long", o->folder);
    snprintf(l->folder, sizeof l->folder, "%.3800s/%s/%s", store, l->experiment,
             l->given.id);
    l->began = eti_wall(self->cx);
    l->flushed = eti_monotonic(self->cx);
    ET_TRY(et_alloc(self->cx, PENDING * sizeof *l->pending, &block));
    l->pending = block;
    char path[PATH_BYTES + 8];
    snprintf(path, sizeof path, "%s/", l->folder);
    ET_TRY(make_folders(self->cx, path, strlen(real)));
    ET_TRY(put_experiment(self, store, name));
    ET_TRY(put_meta(self, RUNNING));
    ET_TRY(put_tags(self));
    l->is_open = true;
    return eti_given_recipe(self->cx, self->run_directory, put_param, self);
}

static void
end(struct et_callback *self, enum status status)
{
    struct state *l = self->state;
    if (!l->is_open || l->ended)
        return;
    flush(self);
    judge(self, put_meta(self, status));
    l->ended = true;
}

static et_status
run(struct et_callback *self, enum et_event event, const struct et_state *s,
    struct et_log *log)
{
    struct state *l = self->state;
    const double now = eti_monotonic(self->cx);
    if (event == ET_EVENT_AFTER_LOAD)
        return open_store(self);
    if (event == ET_EVENT_BATCH_END || event == ET_EVENT_EVAL_END)
        take(self, s, log);
    if (event != ET_EVENT_BATCH_END || now - l->flushed >= stale_seconds) {
        flush(self);
        l->flushed = now;
    }
    if (event == ET_EVENT_FIT_END)
        end(self, FINISHED);
    return ET_OK;
}

static void
close_store(struct et_callback *self)
{
    struct state *l = self->state;
    end(self, FAILED); /* unless it came to its end */
    et_free(self->cx, l->pending);
    et_free(self->cx, l->series);
    l->pending = NULL;
    l->series = NULL;
}

const struct et_callback_class et_logger_mlflow = {
    .info =
        {
            .name = "mlflow",
            .class_name = "MLFlowLogger",
            .summary = "mlruns/: a file store of MLflow",
            .source = "MosaicML Composer, MLFlowLogger",
            .applies_to = "any",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct state),
    .is_logger = true,
    .events = ET_ON(AFTER_LOAD) | ET_ON(BATCH_END) | ET_ON(EVAL_END) |
              ET_ON(EPOCH_END) | ET_ON(FIT_END),
    .run = run,
    .close = close_store,
};
