/* directory.c: the run directory, and run.json, which says what became of the run.
 *
 * run.json and report.json are replaced as a whole: written beside, synced, renamed. On
 * a full disk run.json is written over itself: a run that ends there is not one that
 * crashed.
 * The directory has mode 0700, what is made here 0600: recipes may hold private paths.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "core/loggers/progress.h"
#include "core/run/events.h"
#include "core/run/facts.h"

enum { PATH_BYTES = 3072, BOOT_ID = 64, DISK_BLOCK = 4096 };
/* Ten seconds in all. Counted, as the time in which the machine stands still is not. */
enum { LOCK_TRIES = 501, LOCK_PAUSE_NS = 20000000 };

struct et_run {
    struct et_sink sink; /* first */
    struct et_ctx *cx;
    struct eti_events_writer events;
    struct eti_output log; /* logs/rank<rank>.txt */
    json_t *facts;         /* run.json */
    char directory[PATH_BYTES];
    char name[ET_RUN_NAME];
    char id[2 * ETI_EVENTS_ID + 1];
    int64_t incarnation;
    int dir;                /* open and locked for as long as the run is; -1: not */
    struct et_timestamp ts; /* of the last event seen, for records made here */
    struct et_sink *to; /* of a run that another process keeps; NULL: it is this one */
    int rank;
};

/* ---- files ---- */

/* Makes NAME in DIRECTORY a file with these bytes, or leaves what was there. */
static et_status
write_whole(struct et_ctx *cx, const char *directory, const char *name,
            const char *bytes, size_t n)
{
    int dir;
    et_status status = eti_open_folder(cx, directory, &dir);
    if (status == ET_OK) {
        status = eti_replace_at(cx, dir, name, bytes, n);
        eti_close(cx, dir);
    }
    return status == ET_ENOENT ? ET_EIO : status;
}

/* Takes over JSON. */
static et_status
write_json(struct et_ctx *cx, const char *directory, const char *name, json_t *json)
{
    char *text = json ? json_dumps(json, JSON_INDENT(2)) : NULL;
    json_decref(json);
    if (!text)
        return ET_FAIL(cx, ET_ENOMEM, "out of memory: %s", name);
    size_t n = strlen(text);
    text[n] = '\n'; /* in the place of its zero */
    et_status status = write_whole(cx, directory, name, text, n + 1);
    free(text);
    return status;
}

static et_status
make_directory(struct et_ctx *cx, const char *path, mode_t mode)
{
    struct stat st;
    if (eti_ctx_seams(cx)->file.make_folder(AT_FDCWD, path, mode) == 0)
        return ET_OK;
    int error = errno;
    bool is_there = error == EEXIST && stat(path, &st) == 0;
    if (is_there && S_ISDIR(st.st_mode))
        return ET_OK;
    return ET_FAIL(cx, ET_EIO, "cannot make %s: %s", path,
                   is_there ? "it is no folder" : strerror(error));
}

static et_status
make_parents(struct et_ctx *cx, const char *path)
{
    char part[PATH_BYTES];
    for (const char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(p - path), path);
        ET_TRY(make_directory(cx, part, 0777));
    }
    return ET_OK;
}

/* ---- where ---- */

/* runs/2025-11-20T13-56-38, or with the first of -2, -3 ... that nobody has. */
static et_status
claim_default(struct et_run *r)
{
    char stamp[32];
    struct tm local;
    time_t now = (time_t)eti_wall(r->cx);
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H-%M-%S", localtime_r(&now, &local));
    ET_TRY(make_directory(r->cx, "runs", 0777));
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
    char path[PATH_BYTES + 64];
    snprintf(path, sizeof path, "%s/run.json", r->directory);
    if (access(path, F_OK) != 0)
        return ET_OK;
    json_t *old = json_load_file(path, 0, NULL);
    const char *name = json_string_value(json_object_get(old, "name"));
    const char *state = json_string_value(json_object_get(old, "state"));
    et_status status = ET_FAIL(
        r->cx, ET_EINVAL,
        "%s holds %s (%s): use --resume, --autoresume or another directory",
        r->directory, name ? name : "a run", state ? state : "in an unknown state");
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

static et_status
claim(struct et_run *r, const char *directory)
{
    if (!directory)
        return claim_default(r);
    ET_TRY(take_directory(r, directory));
    ET_TRY(refuse_used(r));
    ET_TRY(make_parents(r->cx, r->directory));
    return make_directory(r->cx, r->directory, 0700);
}

/* ---- what ---- */

/* Tells a run that is alive from one whose machine was restarted. */
static json_t *
boot_id(void)
{
    char id[BOOT_ID] = "";
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (f && !fgets(id, sizeof id, f))
        id[0] = '\0';
    if (f)
        fclose(f);
    id[strcspn(id, "\n")] = '\0';
    return id[0] ? json_string(id) : json_null();
}

static json_t *
command_line(const struct et_run_config *config)
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
        "boot_id", boot_id(), "version", PACKAGE_VERSION, "command",
        command_line(config), "threads", config->threads);
    if (!r->facts)
        return ET_FAIL(r->cx, ET_ENOMEM, "out of memory: run.json");
    return ET_OK;
}

static bool
is_disk_full(const char *directory)
{
    struct statvfs v;
    return statvfs(directory, &v) == 0 &&
           (uint64_t)v.f_bavail * v.f_frsize < DISK_BLOCK;
}

/* run.json on a full disk: TEXT over the old text, in the blocks that it has. Blanks
 * end it where it is the shorter one: a reader never meets a piece of both. */
static et_status
overwrite_facts(struct et_run *r, const char *text, size_t n)
{
    struct stat st;
    void *block;
    int dir, fd;
    ET_TRY(eti_open_folder(r->cx, r->directory, &dir));
    et_status status = eti_open_at(r->cx, dir, "run.json", O_WRONLY, 0, &fd);
    eti_close(r->cx, dir);
    ET_TRY(status);
    bool known = fstat(fd, &st) == 0;
    size_t size = known && (size_t)st.st_size > n ? (size_t)st.st_size : n;
    if (!known || size > (size_t)st.st_blocks * 512)
        status = ET_FAIL(r->cx, ET_EIO, "no room for the %zu bytes of run.json", n);
    if (status == ET_OK)
        status = et_alloc(r->cx, size, &block);
    if (status == ET_OK) {
        memset(block, ' ', size);
        memcpy(block, text, n);
        status = eti_write_all(r->cx, fd, "run.json", block, size);
        if (status == ET_OK)
            status = eti_sync(r->cx, fd, "run.json");
        et_free(r->cx, block);
    }
    eti_close(r->cx, fd);
    return status;
}

static et_status
save_facts(struct et_run *r)
{
    et_status status =
        write_json(r->cx, r->directory, "run.json", json_incref(r->facts));
    if (status != ET_EIO || !is_disk_full(r->directory))
        return status;
    char *text = json_dumps(r->facts, JSON_INDENT(2));
    if (text)
        status = overwrite_facts(r, text, strlen(text));
    free(text);
    return status;
}

/* A state that cannot be written now may be later: a run goes on. */
static void
note_state(struct et_run *r, const char *state)
{
    const char *old = json_string_value(json_object_get(r->facts, "state"));
    if (!state || (old && strcmp(old, state) == 0))
        return;
    json_object_set_new(r->facts, "state", json_string(state));
    if (save_facts(r) == ET_OK)
        return;
    et_report(r->cx, ET_LOG_WARN, "%s", et_error_get(r->cx)->message);
    et_error_clear(r->cx);
}

/* To the log, or to who keeps it. */
static void
keep(struct et_run *r, const struct et_record *record)
{
    if (r->to)
        r->to->write(r->to, record);
    else
        eti_events_write(&r->events, record);
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
    if (!r->to && record->kind == ET_RECORD_RUN && record->rank == 0)
        note_state(r, record->text);
}

void
et_run_note(struct et_run *r, enum et_log_level level, const char *text)
{
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

/* One process at a time, from before the first file on. */
static et_status
lock_directory(struct et_run *r)
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

/* What is written beside a log: logs/, for both beginnings. */
static et_status
open_logs(struct et_run *r)
{
    char logs[PATH_BYTES + 64];
    char name[32];
    snprintf(logs, sizeof logs, "%s/logs", r->directory);
    ET_TRY(make_directory(r->cx, logs, 0700));
    snprintf(name, sizeof name, "logs/rank%d.txt", r->rank);
    ET_TRY(eti_output_open(r->cx, r->directory, name, &r->log));
    (void)eti_output_holds_lines(&r->log); /* and a line cut off is ended */
    return ET_OK;
}

static et_status
fill(struct et_run *r, const struct et_run_config *config)
{
    unsigned char id[ETI_EVENTS_ID];
    if (getrandom(id, sizeof id, 0) != sizeof id)
        return ET_FAIL(r->cx, ET_EIO, "cannot draw an id: %s", strerror(errno));
    ET_TRY(lock_directory(r));
    ET_TRY(describe(r, config, id));
    if (config->recipe)
        ET_TRY(write_whole(r->cx, r->directory, "recipe.yaml", config->recipe,
                           config->recipe_bytes));
    if (config->resolved)
        ET_TRY(write_whole(r->cx, r->directory, "recipe.resolved.yaml",
                           config->resolved, strlen(config->resolved)));
    ET_TRY(open_logs(r));
    /* Of a process that died before there was a run.json. */
    (void)eti_ctx_seams(r->cx)->file.unlink(r->dir, "events.log", 0);
    ET_TRY(eti_events_begin(r->cx, r->directory, id, &r->events));
    return et_run_set_state(r,
                            "starting"); /* run.json: what makes it a run comes last */
}

/* ---- going on with a run ---- */

static et_status
copy_fact(struct et_run *r, const char *key, char *out, size_t size)
{
    const char *text = json_string_value(json_object_get(r->facts, key));
    if (!text || strlen(text) >= size)
        return ET_FAIL(r->cx, ET_EFORMAT, "%s/run.json has no %s", r->directory, key);
    snprintf(out, size, "%s", text);
    return ET_OK;
}

static et_status
read_facts(struct et_run *r)
{
    char path[PATH_BYTES + 64];
    json_error_t error;
    snprintf(path, sizeof path, "%s/run.json", r->directory);
    if (access(path, F_OK) != 0)
        return ET_FAIL(r->cx, ET_ENOENT, "%s holds no run", r->directory);
    r->facts = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(r->facts))
        return ET_FAIL(r->cx, ET_EFORMAT, "%s is not JSON: line %d", path, error.line);
    ET_TRY(copy_fact(r, "name", r->name, sizeof r->name));
    ET_TRY(copy_fact(r, "id", r->id, sizeof r->id));
    json_int_t before = json_integer_value(json_object_get(r->facts, "incarnation"));
    r->incarnation = before > 0 ? before + 1 : 2; /* older versions wrote none */
    return et_run_name_check(r->cx, r->name);
}

/* "brisk-otter is active (pid 4121 since 2025-11-20 13:56)". */
static et_status
refuse_active(struct et_run *r)
{
    int pid = (int)json_integer_value(json_object_get(r->facts, "pid"));
    time_t since = (time_t)json_number_value(json_object_get(r->facts, "started"));
    char stamp[32];
    struct tm local;
    strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M", localtime_r(&since, &local));
    et_error_clear(r->cx);
    et_status status = ET_FAIL(r->cx, ET_ECANCELED, "%s is active (pid %d since %s)",
                               r->name, pid, stamp);
    et_hint(r->cx, "etude logs -f %s", r->name);
    return status;
}

/* Takes over the directory and its log from those who are gone. The locks of a run
 * whose process is gone may be held for a moment still, by what is left of it, or by a
 * rank that saves (dist/rank.c): they are waited for. ECANCELED: one that lives has
 * them. */
static et_status
take_over(struct et_run *r, int64_t *cut)
{
    const struct timespec pause = {0, LOCK_PAUSE_NS};
    for (int tries = 1;; tries++) {
        et_status status = lock_directory(r);
        if (status == ET_OK)
            status = eti_events_continue(r->cx, r->directory, cut, &r->events);
        if (status != ET_ECANCELED || tries == LOCK_TRIES ||
            eti_facts_is_alive(r->facts))
            return status;
        et_error_clear(r->cx);
        eti_close(r->cx, r->dir);
        r->dir = -1;
        nanosleep(&pause, NULL);
    }
}

static et_status
go_on(struct et_run *r, const struct et_run_config *config)
{
    int64_t cut;
    char path[PATH_BYTES + 64];
    ET_TRY(read_facts(r));
    et_status status = take_over(r, &cut);
    if (status == ET_ECANCELED)
        return refuse_active(r);
    ET_TRY(status);
    snprintf(path, sizeof path, "%s/report.json", r->directory);
    (void)eti_ctx_seams(r->cx)->file.unlink(AT_FDCWD, path, 0); /* it has not ended */
    json_object_set_new(r->facts, "incarnation", json_integer(r->incarnation));
    json_object_set_new(r->facts, "exit_code", json_null());
    json_object_set_new(r->facts, "ended", json_null());
    json_object_set_new(r->facts, "pid", json_integer(getpid()));
    json_object_set_new(r->facts, "pid_started",
                        json_integer(eti_process_started(getpid())));
    json_object_set_new(r->facts, "boot_id", boot_id());
    json_object_set_new(r->facts, "version", json_string(PACKAGE_VERSION));
    json_object_set_new(r->facts, "command", command_line(config));
    json_object_set_new(r->facts, "threads", json_integer(config->threads));
    if (config->resolved)
        ET_TRY(write_whole(r->cx, r->directory, "recipe.resolved.yaml",
                           config->resolved, strlen(config->resolved)));
    ET_TRY(open_logs(r));
    if (cut > 0)
        et_report(r->cx, ET_LOG_WARN,
                  "events.log: %lld bytes that a crash cut off are gone",
                  (long long)cut);
    return et_run_set_state(r, "starting");
}

et_status
et_run_open(struct et_ctx *cx, const struct et_run_config *config, struct et_run **out)
{
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
            status = go_on(r, config);
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
        status = open_logs(r);
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
    struct et_run *r = *out;
    *out = NULL;
    if (!r)
        return;
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
    return r->directory;
}

const char *
et_run_name(const struct et_run *r)
{
    return r->name;
}

const char *
et_run_id(const struct et_run *r)
{
    return r->id;
}

int64_t
et_run_incarnation(const struct et_run *r)
{
    return r->incarnation;
}

struct et_sink *
et_run_sink(struct et_run *r)
{
    return &r->sink;
}

void
et_run_flush(struct et_run *r)
{
    if (!r->to)
        eti_events_flush(&r->events);
}

int64_t
et_run_seq(const struct et_run *r)
{
    return r->events.seq;
}

int
et_run_lock(const struct et_run *r)
{
    return r->dir;
}

void
et_run_log(void *data, enum et_log_level level, const char *text)
{
    struct et_run *r = data;
    char stamp[32];
    time_t now = (time_t)eti_wall(r->cx);
    struct tm utc;
    if (!r->log.f)
        return;
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    fprintf(r->log.f, "%s %s ", stamp, et_log_level_name(level));
    eti_put_text(r->log.f, text);
    fputc('\n', r->log.f);
    fflush(r->log.f); /* no report: that would come back here */
}

/* ---- states ---- */

et_status
et_run_set_state(struct et_run *r, const char *state)
{
    const struct et_record record = {
        .kind = ET_RECORD_RUN,
        .t = eti_wall(r->cx),
        .ep = r->ts.epoch,
        .ba = r->ts.batch,
        .sp = r->ts.sample,
        .text = state,
    };
    keep(r, &record);
    if (r->to)
        return ET_OK;
    json_object_set_new(r->facts, "state", json_string(state));
    return save_facts(r);
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

et_status
et_run_finish(struct et_run *r, const char *state, int exit_code,
              const struct et_run_report *report)
{
    if (!r->to) {
        json_object_set_new(r->facts, "exit_code", json_integer(exit_code));
        json_object_set_new(r->facts, "ended", json_real(eti_wall(r->cx)));
    }
    if (report && r->rank == 0) {
        r->ts = report->ts;
        ET_TRY(write_json(r->cx, r->directory, "report.json",
                          report_json(r, state, exit_code, report)));
    }
    return r->to ? ET_OK : et_run_set_state(r, state); /* whoever keeps it ends it */
}
