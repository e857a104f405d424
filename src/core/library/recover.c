/* SPDX-License-Identifier: Apache-2.0 */
/* recover.c: see recover.h. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "core/base/seams.h"
#include "core/checkpoint/manifest.h"
#include "core/checkpoint/store.h"
#include "core/journal/events_read.h"
#include "core/library/facts.h"
#include "core/library/recover.h"

bool
eti_has_checkpoints(struct et_ctx *cx, const char *directory)
{
    char path[PATH_MAX];
    int64_t *steps = NULL, n = 0;
    snprintf(path, sizeof path, "%s/checkpoints", directory);
    if (eti_store_list(cx, path, &steps, &n) != ET_OK) {
        et_error_clear(cx);
        return false;
    }
    et_free(cx, steps);
    return n > 0;
}

/* ---- what is there ---- */

enum { ASIDE_NAME = 32, REASON = 512, MOST_KEPT = 9999 };

/* NAME in DIRECTORY becomes KEPT, "NAME.bad-1" or with the next number that is free,
 * and past MOST_KEPT of them "NAME.bad-last", in the place of the one before; "" where
 * there is no such file. SIZE: its bytes, -1 if it is no file. */
static et_status
set_aside(struct et_ctx *cx, const char *directory, const char *name,
          char kept[ASIDE_NAME], int64_t *size)
{
    struct stat st;
    int dir;
    kept[0] = '\0';
    *size = -1;
    ET_TRY(eti_open_folder(cx, directory, &dir));
    et_status status = ET_OK;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        int i = 0;
        *size = S_ISREG(st.st_mode) ? st.st_size : -1;
        do
            snprintf(kept, ASIDE_NAME, "%s.bad-%d", name, ++i);
        while (i <= MOST_KEPT && fstatat(dir, kept, &st, AT_SYMLINK_NOFOLLOW) == 0);
        if (i > MOST_KEPT)
            snprintf(kept, ASIDE_NAME, "%s.bad-last", name);
        status = eti_rename_at(cx, dir, name, dir, kept);
    }
    eti_close(cx, dir);
    return status;
}

/* Why NAME could not be used: the error that stands in CX, without the path. It is
 * cleared. */
static void
take_reason(struct et_ctx *cx, const char *name, char reason[REASON])
{
    const char *text = et_error_get(cx)->message, *at = strstr(text, name);
    snprintf(reason, REASON, "%.*s", REASON - 1, at ? at : text);
    et_error_clear(cx);
}

/* "events.log is empty: it is kept as events.log.bad-1" */
static size_t
say_kept(char said[ETI_RECOVER_TEXT], const char *name, const char *kept, int64_t size,
         const char *reason)
{
    char why[REASON + 64];
    if (!kept[0])
        return (size_t)snprintf(said, ETI_RECOVER_TEXT, "%s is missing", name);
    if (size == 0)
        snprintf(why, sizeof why, "%s is empty", name);
    else
        snprintf(why, sizeof why, "%s", reason);
    return (size_t)snprintf(said, ETI_RECOVER_TEXT, "%s: it is kept as %s", why, kept);
}

/* ---- run.json ---- */

/* What the log of events knows: whose it is, when the run began and how often, and what
 * joined it. */
static void
ask_events(struct et_ctx *cx, const char *directory, json_t *facts)
{
    char path[PATH_MAX];
    struct et_events *e;
    struct et_record r;
    bool got = true, any = false;
    json_int_t starts = 0;
    snprintf(path, sizeof path, "%s/events.log", directory);
    if (et_events_open(cx, path, &e) == ET_OK) {
        json_object_set_new(facts, "id", json_string(e->id));
        while (et_events_next(e, &r, &got) == ET_OK && got) {
            if (!any)
                json_object_set_new(facts, "started", json_real(r.t));
            starts += r.kind == ET_RECORD_RUN && r.text && !strcmp(r.text, "starting");
            if (r.kind == ET_RECORD_COMMAND && r.rank == 0)
                (void)eti_facts_note_joined(facts, r.text);
            any = true;
        }
        et_events_close(&e);
    }
    et_error_clear(cx);
    json_object_set_new(facts, "incarnation", json_integer(starts));
}

/* What had joined when M was written: where the log is lost, too. */
static void
add_joined(json_t *facts, const struct eti_manifest *m)
{
    size_t i;
    const json_t *one;
    json_array_foreach(m->algorithms, i, one)
    {
        const char *name = json_string_value(json_object_get(one, "name"));
        if (name && json_is_true(json_object_get(one, "joined")))
            (void)eti_facts_note_name(facts, name);
    }
}

/* What the newest checkpoint knows that can be read. */
static void
ask_checkpoints(struct et_ctx *cx, const char *directory, json_t *facts)
{
    char path[PATH_MAX], step[ETI_STEP_NAME];
    int64_t *steps = NULL, n = 0;
    snprintf(path, sizeof path, "%s/checkpoints", directory);
    if (eti_store_list(cx, path, &steps, &n) != ET_OK)
        n = 0;
    for (int64_t i = 0; i < n; i++) {
        struct eti_manifest m;
        et_status status =
            eti_store_read_manifest(cx, path, eti_step_name(steps[i], step), &m);
        if (status == ET_OK) {
            json_t *starts = json_object_get(facts, "incarnation");
            if (m.incarnation > json_integer_value(starts))
                json_integer_set(starts, m.incarnation);
            if (m.run_name[0])
                json_object_set_new(facts, "name", json_string(m.run_name));
            if (!json_object_get(facts, "id") && m.run_id[0])
                json_object_set_new(facts, "id", json_string(m.run_id));
            if (!json_object_get(facts, "started"))
                json_object_set_new(facts, "started", json_real(m.saved));
            add_joined(facts, &m);
        }
        eti_manifest_release(&m);
        if (status == ET_OK)
            break;
    }
    et_free(cx, steps);
    et_error_clear(cx);
}

static et_status
draw_id(struct et_ctx *cx, unsigned char id[ETI_EVENTS_ID])
{
    if (getrandom(id, ETI_EVENTS_ID, 0) == ETI_EVENTS_ID)
        return ET_OK;
    return ET_FAIL(cx, ET_EIO, "cannot draw an id: %s", strerror(errno));
}

/* Makes a new value for each fact that neither log nor checkpoint had. */
static et_status
complete(struct et_ctx *cx, const char *name, json_t *facts)
{
    unsigned char id[ETI_EVENTS_ID];
    char digits[2 * ETI_EVENTS_ID + 1];
    ET_TRY(draw_id(cx, id));
    for (int i = 0; i < ETI_EVENTS_ID; i++)
        snprintf(digits + 2 * i, 3, "%02x", id[i]);
    if (!json_object_get(facts, "name"))
        json_object_set_new(facts, "name", json_string(name));
    if (!json_object_get(facts, "id"))
        json_object_set_new(facts, "id", json_string(digits));
    if (!json_object_get(facts, "started"))
        json_object_set_new(facts, "started", json_real(eti_wall(cx)));
    json_object_set_new(facts, "recipe", json_null());
    return ET_OK;
}

et_status
eti_recover_facts(struct et_ctx *cx, const char *directory, const char *name,
                  json_t **out, char said[ETI_RECOVER_TEXT])
{
    char kept[ASIDE_NAME], reason[REASON];
    int64_t size;
    *out = NULL;
    take_reason(cx, "run.json", reason);
    ET_TRY(set_aside(cx, directory, "run.json", kept, &size));
    json_t *facts = json_object();
    ask_events(cx, directory, facts);
    ask_checkpoints(cx, directory, facts);
    et_status status = complete(cx, name, facts);
    if (status == ET_OK && json_object_size(facts) < 5)
        status = ET_FAIL(cx, ET_ENOMEM, "out of memory: run.json");
    if (status != ET_OK) {
        json_decref(facts);
        return status;
    }
    size_t n = say_kept(said, "run.json", kept, size, reason);
    snprintf(said + n, ETI_RECOVER_TEXT - n, "; a new one is made");
    *out = facts;
    return ET_OK;
}

/* ---- events.log ---- */

static bool
read_id(const char *digits, unsigned char id[ETI_EVENTS_ID])
{
    for (int i = 0; i < ETI_EVENTS_ID; i++) {
        unsigned byte;
        if (sscanf(digits + 2 * i, "%2x", &byte) != 1)
            return false;
        id[i] = (unsigned char)byte;
    }
    return true;
}

/* Records of the log at PATH, up to the first that cannot be read. */
static int64_t
copy_records(struct et_ctx *cx, const char *path, struct eti_events_writer *to)
{
    struct et_events *e;
    struct et_record r;
    bool got = true;
    if (et_events_open(cx, path, &e) == ET_OK) {
        while (et_events_next(e, &r, &got) == ET_OK && got)
            eti_events_write(to, &r);
        et_events_close(&e);
    }
    et_error_clear(cx);
    eti_events_flush(to);
    return to->seq;
}

et_status
eti_recover_events(struct et_ctx *cx, const char *directory, const char *id,
                   struct eti_events_writer *out, char said[ETI_RECOVER_TEXT])
{
    char kept[ASIDE_NAME], reason[REASON], path[PATH_MAX];
    unsigned char bytes[ETI_EVENTS_ID];
    int64_t size, copied = 0;
    take_reason(cx, "events.log", reason);
    if (!read_id(id, bytes))
        ET_TRY(draw_id(cx, bytes));
    ET_TRY(set_aside(cx, directory, "events.log", kept, &size));
    ET_TRY(eti_events_begin(cx, directory, bytes, out));
    snprintf(path, sizeof path, "%s/%s", directory, kept);
    if (size > 0)
        copied = copy_records(cx, path, out);
    size_t n = say_kept(said, "events.log", kept, size, reason);
    if (copied > 0)
        snprintf(said + n, ETI_RECOVER_TEXT - n,
                 "; a new one begins with the %lld records that could be read",
                 (long long)copied);
    else
        snprintf(said + n, ETI_RECOVER_TEXT - n,
                 "; a new one begins, without the charts so far and the settings that "
                 "were changed while the run went on");
    return ET_OK;
}
