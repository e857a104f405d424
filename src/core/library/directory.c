/* SPDX-License-Identifier: Apache-2.0 */
/* directory.c: the run directory, and run.json, which says what became of the run.
 *
 * The directory has mode 0700, what is made here 0600: recipes may hold private
 * paths. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/need.h"
#include "core/base/seams.h"
#include "core/library/facts.h"
#include "core/library/folder.h"
#include "core/library/recover.h"
#include "core/library/run_impl.h"
#include "etude/control.h"

/* ---- where ---- */

/* runs/2025-11-20T13-56-38, or with the first of -2, -3 ... that nobody has. */
static et_status
claim_default(struct et_run *r)
{
    char stamp[32];
    struct tm local;
    time_t now = (time_t)eti_wall(r->cx);
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H-%M-%S", localtime_r(&now, &local));
    ET_TRY(eti_make_directory(r->cx, "runs", 0777));
    for (int i = 1; i < 10000; i++) {
        if (i == 1)
            snprintf(r->directory, sizeof r->directory, "runs/%s", stamp);
        else
            snprintf(r->directory, sizeof r->directory, "runs/%s-%d", stamp, i);
        if (eti_ctx_seams(r->cx)->file.make_folder(AT_FDCWD, r->directory, 0700) == 0)
            return ET_OK;
        if (errno != EEXIST)
            break;
    }
    return ET_FAIL(r->cx, ET_EIO, "cannot make %s: %s", r->directory, strerror(errno));
}

/* A directory that holds a run, even one that cannot be read, is nobody else's. */
static et_status
refuse_used(struct et_run *r)
{
    char path[ETI_RUN_FOLDER_BYTES + 64];
    snprintf(path, sizeof path, "%s/run.json", r->directory);
    if (access(path, F_OK) != 0 && !eti_has_checkpoints(r->cx, r->directory))
        return ET_OK;
    json_error_t error;
    json_t *old = eti_facts_load(path, 0, &error);
    const char *name = json_string_value(json_object_get(old, "name"));
    const char *state = json_string_value(json_object_get(old, "state"));
    et_status status = ET_FAIL(
        r->cx, ET_EINVAL,
        "%s holds %s (%s): use --resume, --autoresume or another directory",
        r->directory, name ? name : "a run", state ? state : "in an unknown state");
    et_hint(r->cx, "etude show %s tells of it", r->directory);
    json_decref(old);
    return status;
}

static et_status
take_directory(struct et_run *r, const char *directory)
{
    size_t n = strlen(directory);
    while (n > 1 && directory[n - 1] == '/')
        n--;
    if (n == 0 || n >= sizeof r->directory)
        return ET_FAIL(r->cx, ET_EINVAL,
                       "a run directory's path has 1 to %zu bytes, not %zu",
                       sizeof r->directory - 1, n);
    snprintf(r->directory, sizeof r->directory, "%.*s", (int)n, directory);
    return ET_OK;
}

/* A folder called "s3:" would be taken for a bucket. */
static et_status
refuse_remote(struct et_ctx *cx, const char *directory)
{
    if (!strstr(directory, "://"))
        return ET_OK;
    et_status status = ET_FAIL(
        cx, ET_EINVAL, "%s: a run is kept in a folder of this machine", directory);
    et_hint(cx, "train into a folder, and copy it, or a bucket that is mounted as one");
    return status;
}

static et_status
claim(struct et_run *r, const char *directory)
{
    if (!directory)
        return claim_default(r);
    ET_TRY(refuse_remote(r->cx, directory));
    ET_TRY(take_directory(r, directory));
    ET_TRY(refuse_used(r));
    ET_TRY(eti_make_parents(r->cx, r->directory));
    return eti_make_directory(r->cx, r->directory, 0700);
}

/* ---- what ---- */

json_t *
eti_run_command(const struct et_run_config *config)
{
    json_t *list = json_array();
    for (int i = 0; config->command && i < config->n_command; i++) {
        json_t *word = json_string(config->command[i]);
        json_array_append_new(list, word ? word : json_string("?")); /* not UTF-8 */
    }
    return list;
}

static json_t *
recipe_name(const struct et_run_config *config)
{
    json_t *name = json_string(config->recipe_name);
    return name ? name : json_null(); /* none, or not UTF-8 */
}

static et_status
describe(struct et_run *r, const struct et_run_config *config, const unsigned char *id)
{
    for (int i = 0; i < ETI_EVENTS_ID; i++)
        snprintf(r->id + 2 * i, 3, "%02x", id[i]);
    r->incarnation = 1;
    r->facts = json_pack(
        "{s:s, s:s, s:o, s:i, s:s, s:n, s:f, s:n, s:i, s:I, s:o, s:s, s:o, s:i}",
        "name", r->name, "id", r->id, "recipe", recipe_name(config), "incarnation", 1,
        "state", "starting", "exit_code", "started", eti_wall(r->cx), "ended", "pid",
        (int)getpid(), "pid_started", (json_int_t)eti_process_started(getpid()),
        "boot_id", eti_boot_id(), "version", PACKAGE_VERSION, "command",
        eti_run_command(config), "threads", config->threads);
    if (!r->facts)
        return ET_FAIL(r->cx, ET_ENOMEM, "out of memory: run.json");
    return ET_OK;
}

/* A state that cannot be written now may be later: a run goes on. */
static void
note_state(struct et_run *r, const char *state)
{
    const char *old = json_string_value(json_object_get(r->facts, "state"));
    if (!state || (old && strcmp(old, state) == 0))
        return;
    json_object_set_new(r->facts, "state", json_string(state));
    if (eti_save_facts(r->cx, r->directory, r->facts) == ET_OK)
        return;
    et_report(r->cx, ET_LOG_WARN, "%s", et_error_get(r->cx)->message);
    et_error_clear(r->cx);
}

/* An algorithm that the recipe does not name has joined: run.json says so from then
 * on. */
static void
note_joined(struct et_run *r, const char *text)
{
    if (eti_facts_note_joined(r->facts, text) &&
        eti_save_facts(r->cx, r->directory, r->facts) != ET_OK)
        et_error_clear(r->cx); /* the next state is written with it */
}

/* To the log, once it is known what part of another record it is: thin.h. */
static void
write_down(void *data, const struct et_record *record)
{
    struct et_run *r = data;
    eti_events_write(&r->events, record);
    r->thin.bytes = eti_events_size(&r->events);
    if (record->kind == ET_RECORD_RUN && record->rank == 0)
        note_state(r, record->text);
    if (record->kind == ET_RECORD_COMMAND && record->rank == 0)
        note_joined(r, record->text);
}

/* To the log, or to who keeps it. */
static void
keep(struct et_run *r, const struct et_record *record)
{
    if (r->to)
        r->to->write(r->to, record);
    else
        eti_thin_put(&r->thin, record);
}

static void
write_record(struct et_sink *sink, const struct et_record *record)
{
    struct et_run *r = (struct et_run *)sink;
    if (record->kind != ET_RECORD_LOG) { /* one may come from before training */
        r->ts.epoch = record->ep;
        r->ts.batch = record->ba;
        r->ts.sample = record->sp;
    }
    keep(r, record);
}

void
et_run_note(struct et_run *r, enum et_log_level level, const char *text)
{
    if (!r || !text)
        return;
    const struct et_record record = {
        .kind = ET_RECORD_LOG,
        .t = eti_wall(r->cx),
        .ep = r->ts.epoch,
        .ba = r->ts.batch,
        .sp = r->ts.sample,
        .level = level,
        .text = text,
    };
    et_run_log(r, level, text);
    keep(r, &record);
}

et_status
eti_run_lock_folder(struct et_run *r)
{
    et_status status = eti_open_folder(r->cx, r->directory, &r->dir);
    if (status != ET_OK) {
        r->dir = -1;
        return status;
    }
    if (flock(r->dir, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
        return ET_OK; /* a file system without locks is no reason not to train */
    return ET_FAIL(r->cx, ET_ECANCELED, "another process trains in %s", r->directory);
}

et_status
eti_run_open_logs(struct et_run *r)
{
    char logs[ETI_RUN_FOLDER_BYTES + 64];
    char name[32];
    snprintf(logs, sizeof logs, "%s/logs", r->directory);
    ET_TRY(eti_make_directory(r->cx, logs, 0700));
    snprintf(name, sizeof name, "logs/rank%d.txt", r->rank);
    ET_TRY(eti_output_open(r->cx, r->directory, name, &r->log));
    (void)eti_output_holds_lines(&r->log); /* and a line cut off is ended */
    return ET_OK;
}

/* The time of the log's first record; 0 for a log without records. */
static double
find_beginning(struct et_run *r)
{
    char path[ETI_RUN_FOLDER_BYTES + 64];
    struct et_events *e;
    struct et_record first = {0};
    bool got = false;
    snprintf(path, sizeof path, "%s/events.log", r->directory);
    if (et_events_open(r->cx, path, &e) == ET_OK &&
        (et_events_next(e, &first, &got) != ET_OK || !got))
        first.t = 0;
    et_events_close(&e);
    et_error_clear(r->cx);
    return first.t;
}

void
eti_run_begin_thinning(struct et_run *r, struct et_time interval)
{
    eti_thin_init(&r->thin, r->cx, interval, write_down, r);
    r->thin.begun = find_beginning(r);
    r->thin.bytes = eti_events_size(&r->events);
    eti_events_say_thinned(&r->events, r->thin.interval);
}

static et_status
fill(struct et_run *r, const struct et_run_config *config)
{
    unsigned char id[ETI_EVENTS_ID];
    if (getrandom(id, sizeof id, 0) != sizeof id)
        return ET_FAIL(r->cx, ET_EIO, "cannot draw an id: %s", strerror(errno));
    ET_TRY(eti_run_lock_folder(r));
    ET_TRY(describe(r, config, id));
    if (config->recipe)
        ET_TRY(eti_write_whole(r->cx, r->directory, "recipe.yaml", config->recipe,
                               config->recipe_bytes));
    if (config->resolved)
        ET_TRY(eti_write_whole(r->cx, r->directory, "recipe.resolved.yaml",
                               config->resolved, strlen(config->resolved)));
    ET_TRY(eti_run_open_logs(r));
    /* Of a process that died before there was a run.json. */
    (void)eti_ctx_seams(r->cx)->file.unlink(r->dir, "events.log", 0);
    ET_TRY(eti_events_begin(r->cx, r->directory, id, &r->events));
    eti_run_begin_thinning(r, config->record_interval);
    return et_run_set_state(r,
                            "starting"); /* run.json: what makes it a run comes last */
}

/* ---- life ---- */

et_status
et_run_open(struct et_ctx *cx, const struct et_run_config *config, struct et_run **out)
{
    ETI_NEED(cx, cx, config, out);
    void *block;
    char drawn[ET_RUN_NAME];
    *out = NULL;
    et_run_name_draw((uint64_t)(eti_wall(cx) * 1e9), drawn);
    const char *name = config->name ? config->name : drawn;
    ET_TRY(et_run_name_check(cx, name));
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct et_run *r = block;
    r->cx = cx;
    r->sink.write = write_record;
    r->dir = -1;
    snprintf(r->name, sizeof r->name, "%s", name);
    et_status status;
    if (config->resume) {
        status = take_directory(r, config->directory);
        if (status == ET_OK)
            status = eti_run_go_on(r, config);
    } else {
        status = claim(r, config->directory);
        if (status == ET_OK)
            status = fill(r, config);
    }
    if (status != ET_OK) {
        et_run_close(&r);
        return status;
    }
    *out = r;
    return ET_OK;
}

et_status
et_run_join(struct et_ctx *cx, const struct et_run_place *place, struct et_sink *sink,
            struct et_run **out)
{
    ETI_NEED(cx, cx, place, sink, out);
    void *block;
    *out = NULL;
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct et_run *r = block;
    r->cx = cx;
    r->sink.write = write_record;
    r->dir = -1;
    r->to = sink;
    r->rank = place->rank;
    r->incarnation = place->incarnation;
    snprintf(r->name, sizeof r->name, "%s", place->name);
    snprintf(r->id, sizeof r->id, "%s", place->id);
    et_status status = take_directory(r, place->directory);
    if (status == ET_OK)
        status = eti_run_open_logs(r);
    if (status != ET_OK) {
        et_run_close(&r);
        return status;
    }
    *out = r;
    return ET_OK;
}

void
et_run_close(struct et_run **out)
{
    if (!out)
        return;
    struct et_run *r = *out;
    *out = NULL;
    if (!r)
        return;
    if (!r->to && r->thin.out) {
        eti_thin_flush(&r->thin);
        eti_thin_release(&r->thin);
    }
    if (!r->to)
        eti_events_end(&r->events);
    eti_output_close(&r->log);
    json_decref(r->facts);
    eti_close(r->cx, r->dir);
    et_free(r->cx, r);
}

const char *
et_run_directory(const struct et_run *r)
{
    return r ? r->directory : NULL;
}

const char *
et_run_name(const struct et_run *r)
{
    return r ? r->name : NULL;
}

const char *
et_run_id(const struct et_run *r)
{
    return r ? r->id : NULL;
}

int64_t
et_run_incarnation(const struct et_run *r)
{
    if (!r)
        return 0;
    return r->incarnation;
}

struct et_sink *
et_run_sink(struct et_run *r)
{
    return r ? &r->sink : NULL;
}

bool
et_run_flush(struct et_run *r)
{
    if (!r)
        return false;
    if (r->to)
        return true;
    bool waits = eti_thin_due(&r->thin, eti_wall(r->cx));
    eti_events_flush(&r->events);
    return !waits;
}

et_status
et_run_restore(struct et_run *r)
{
    ETI_NEED(r ? r->cx : NULL, r);
    return r->to ? ET_OK : eti_events_restore(&r->events, r->directory);
}

int64_t
et_run_seq(const struct et_run *r)
{
    if (!r)
        return 0;
    return r->events.seq;
}

int
et_run_lock(const struct et_run *r)
{
    if (!r)
        return 0;
    return r->dir;
}

void
et_run_log(void *data, enum et_log_level level, const char *text)
{
    if (!data || !text)
        return;
    struct et_run *r = data;
    char stamp[32];
    time_t now = (time_t)eti_wall(r->cx);
    struct tm utc;
    if (!r->log.f)
        return;
    eti_output_restore(&r->log); /* another process may have made the file anew */
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    fprintf(r->log.f, "%s %s ", stamp, et_log_level_name(level));
    eti_put_text(r->log.f, text);
    fputc('\n', r->log.f);
    fflush(r->log.f);            /* no report: that would come back here */
    eti_output_restore(&r->log); /* (which does so once, with the file there again) */
}

/* ---- states ---- */

et_status
et_run_set_state(struct et_run *r, const char *state)
{
    ETI_NEED(r ? r->cx : NULL, r);
    const struct et_record record = {
        .kind = ET_RECORD_RUN,
        .t = eti_wall(r->cx),
        .ep = r->ts.epoch,
        .ba = r->ts.batch,
        .sp = r->ts.sample,
        .text = state,
    };
    if (!r->to) /* first, or the record would write run.json, too */
        json_object_set_new(r->facts, "state", json_string(state));
    keep(r, &record);
    if (r->to)
        return ET_OK;
    return eti_save_facts(r->cx, r->directory, r->facts);
}

static json_t *
report_json(struct et_run *r, const char *state, int exit_code,
            const struct et_run_report *report)
{
    const struct et_timestamp *ts = &report->ts;
    json_t *metrics = json_object();
    for (int i = 0; i < report->n_metrics; i++) /* not finite: null */
        json_object_set_new(metrics, report->metrics[i].name,
                            isfinite(report->metrics[i].value)
                                ? json_real(report->metrics[i].value)
                                : json_null());
    return json_pack("{s:s, s:s, s:i, s:s?, s:I, s:I, s:I, s:f, s:I, s:o}", "name",
                     r->name, "state", state, "exit_code", exit_code, "reason",
                     report->reason, "ep", (json_int_t)ts->epoch, "ba",
                     (json_int_t)ts->batch, "sp", (json_int_t)ts->sample,
                     "train_seconds", ts->total_wct, "microbatches",
                     (json_int_t)report->microbatches, "metrics", metrics);
}

void
et_run_blame(struct et_run *r, const char *reason)
{
    if (!r)
        return;
    if (!r->to)
        json_object_set_new(r->facts, "reason", json_string(reason));
}

et_status
et_run_finish(struct et_run *r, const char *state, int exit_code,
              const struct et_run_report *report)
{
    ETI_NEED(r ? r->cx : NULL, r);
    if (!r->to) {
        json_object_set_new(r->facts, "exit_code", json_integer(exit_code));
        json_object_set_new(r->facts, "ended", json_real(eti_wall(r->cx)));
    }
    if (report && r->rank == 0) {
        r->ts = report->ts;
        ET_TRY(eti_write_json(r->cx, r->directory, "report.json",
                              report_json(r, state, exit_code, report)));
    }
    return r->to ? ET_OK : et_run_set_state(r, state); /* whoever keeps it ends it */
}
