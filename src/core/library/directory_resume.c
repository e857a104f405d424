/* SPDX-License-Identifier: Apache-2.0 */
/* directory_resume.c: going on with a run in its directory. */
#include "config.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "core/library/facts.h"
#include "core/library/folder.h"
#include "core/library/recover.h"
#include "core/library/run_impl.h"

/* Ten seconds in all. Counted, as the time in which the machine stands still is not. */
enum { LOCK_TRIES = 501, LOCK_PAUSE_NS = 20000000 };

static et_status
copy_fact(struct et_run *r, const char *key, char *out, size_t size)
{
    const char *text = json_string_value(json_object_get(r->facts, key));
    if (!text || strlen(text) >= size)
        return ET_FAIL(r->cx, ET_EFORMAT, "%s/run.json has no %s", r->directory, key);
    snprintf(out, size, "%s", text);
    return ET_OK;
}

/* Older versions wrote none, and a damaged run.json may have any number. */
static int64_t
next_incarnation(const json_t *facts)
{
    json_int_t last = json_integer_value(json_object_get(facts, "incarnation"));
    return last > 0 && last < INT32_MAX ? last + 1 : 2;
}

/* What run.json says; EFORMAT where that is not enough to go on with. */
static et_status
read_facts(struct et_run *r)
{
    char path[ETI_RUN_FOLDER_BYTES + 64], name[ET_RUN_NAME];
    json_error_t error;
    snprintf(path, sizeof path, "%s/run.json", r->directory);
    r->facts = eti_facts_load(path, JSON_REJECT_DUPLICATES, &error);
    if (r->facts && !json_is_object(r->facts))
        return ET_FAIL(r->cx, ET_EFORMAT, "%s is not a JSON object", path);
    if (!r->facts && error.line > 0)
        return ET_FAIL(r->cx, ET_EFORMAT, "%s is not JSON: line %d", path, error.line);
    if (!r->facts)
        return ET_FAIL(r->cx, ET_EFORMAT, "%s is not of a run: %s", path, error.text);
    ET_TRY(copy_fact(r, "name", name, sizeof name));
    ET_TRY(copy_fact(r, "id", r->id, sizeof r->id));
    if (et_run_name_check(r->cx, name) != ET_OK) {
        et_error_clear(r->cx); /* which is about a name that somebody chose */
        return ET_FAIL(r->cx, ET_EFORMAT, "%s names no run", path);
    }
    snprintf(r->name, sizeof r->name, "%s", name);
    r->incarnation = next_incarnation(r->facts);
    return ET_OK;
}

/* ECANCELED: another process is at the run, whatever its run.json says. */
static et_status
look_for_others(struct et_run *r)
{
    et_status status = eti_run_lock_folder(r);
    eti_close(r->cx, r->dir);
    r->dir = -1;
    return status;
}

/* The same where it is lost: checkpoints make a directory that of a run, too. */
static et_status
find_facts(struct et_run *r, char said[ETI_RECOVER_TEXT])
{
    char path[ETI_RUN_FOLDER_BYTES + 64];
    snprintf(path, sizeof path, "%s/run.json", r->directory);
    if (access(path, F_OK) != 0 && !eti_has_checkpoints(r->cx, r->directory))
        return ET_FAIL(r->cx, ET_ENOENT, "%s holds no run", r->directory);
    et_status status = read_facts(r);
    if (status != ET_EFORMAT)
        return status;
    ET_TRY(look_for_others(r));
    json_decref(r->facts);
    r->facts = NULL;
    ET_TRY(eti_recover_facts(r->cx, r->directory, r->name, &r->facts, said));
    ET_TRY(copy_fact(r, "name", r->name, sizeof r->name));
    ET_TRY(copy_fact(r, "id", r->id, sizeof r->id));
    r->incarnation = next_incarnation(r->facts);
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
 * rank that saves (dist/run/rank.c): they are waited for. ECANCELED: one that lives has
 * them. */
static et_status
take_over(struct et_run *r, char said[ETI_RECOVER_TEXT])
{
    int64_t cut;
    const struct timespec pause = {0, LOCK_PAUSE_NS};
    for (int tries = 1;; tries++) {
        et_status status = eti_run_lock_folder(r);
        if (status == ET_OK)
            status = eti_events_continue(r->cx, r->directory, &cut, &r->events);
        if (status == ET_OK && cut > 0)
            snprintf(said, ETI_RECOVER_TEXT,
                     "events.log: %lld bytes that a crash cut off are gone",
                     (long long)cut);
        if (r->dir >= 0 && status != ET_OK && status != ET_ECANCELED &&
            status != ET_ENOMEM)
            status = eti_recover_events(r->cx, r->directory, r->id, &r->events, said);
        if (status != ET_ECANCELED || tries == LOCK_TRIES ||
            eti_facts_is_alive(r->facts))
            return status;
        et_error_clear(r->cx);
        eti_close(r->cx, r->dir);
        r->dir = -1;
        nanosleep(&pause, NULL);
    }
}

/* What was not as it should be: to who starts the run, and to its log. */
static void
tell(struct et_run *r, const char *text)
{
    if (!text[0])
        return;
    et_report(r->cx, ET_LOG_WARN, "%s", text);
    et_run_note(r, ET_LOG_WARN, text);
}

/* A run that is resumed did not run since it ended: that time is counted apart. */
static void
add_rest(json_t *facts, double now)
{
    const json_t *ended = json_object_get(facts, "ended");
    double rested = json_number_value(json_object_get(facts, "rested"));
    if (json_is_number(ended) && now > json_number_value(ended))
        json_object_set_new(facts, "rested",
                            json_real(rested + now - json_number_value(ended)));
}

et_status
eti_run_go_on(struct et_run *r, const struct et_run_config *config)
{
    char path[ETI_RUN_FOLDER_BYTES + 64];
    char of_facts[ETI_RECOVER_TEXT] = "", of_log[ETI_RECOVER_TEXT] = "";
    ET_TRY(find_facts(r, of_facts));
    et_status status = take_over(r, of_log);
    if (status == ET_ECANCELED)
        return refuse_active(r);
    ET_TRY(status);
    snprintf(path, sizeof path, "%s/report.json", r->directory);
    (void)eti_ctx_seams(r->cx)->file.unlink(AT_FDCWD, path, 0); /* it has not ended */
    add_rest(r->facts, eti_wall(r->cx));
    json_object_set_new(r->facts, "incarnation", json_integer(r->incarnation));
    json_object_set_new(r->facts, "exit_code", json_null());
    json_object_del(r->facts, "reason");
    json_object_set_new(r->facts, "ended", json_null());
    json_object_set_new(r->facts, "pid", json_integer(getpid()));
    json_object_set_new(r->facts, "pid_started",
                        json_integer(eti_process_started(getpid())));
    json_object_set_new(r->facts, "boot_id", eti_boot_id());
    json_object_set_new(r->facts, "version", json_string(PACKAGE_VERSION));
    json_object_set_new(r->facts, "command", eti_run_command(config));
    json_object_set_new(r->facts, "threads", json_integer(config->threads));
    if (config->resolved)
        ET_TRY(eti_write_whole(r->cx, r->directory, "recipe.resolved.yaml",
                               config->resolved, strlen(config->resolved)));
    ET_TRY(eti_run_open_logs(r));
    eti_run_begin_thinning(r, config->record_interval);
    tell(r, of_facts);
    tell(r, of_log);
    return et_run_set_state(r, "starting");
}
