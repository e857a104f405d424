/* index.c: the list of runs, in SQLite: directory, stamp of its files, facts.
 *
 * It is a cache: it is not synced, and what a crash makes of it is thrown away. */
#include "config.h"

#include "core/run/index.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCHEMA          3 /* of the table and of the facts in it */
#define TEXT_OF(number) #number
#define IN_TEXT(macro)  TEXT_OF(macro)

enum {
    WAIT_MS = 5000, /* for another process */
};

struct eti_index {
    struct et_ctx *cx;
    sqlite3 *db;
    json_t *listed;    /* what was last: {directory: [stamp, facts]}; NULL: nothing */
    char problem[256]; /* "": it is kept */
};

static et_status
fail(struct eti_index *x, const char *doing)
{
    return ET_FAIL(x->cx, ET_EIO, "the index of runs: cannot %s: %s", doing,
                   x->db ? sqlite3_errmsg(x->db) : "out of memory");
}

/* ---- opening ---- */

static const char *
default_path(char *buf, size_t size)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (state && *state == '/')
        snprintf(buf, size, "%s/etude/runs.db", state);
    else
        snprintf(buf, size, "%s/.local/state/etude/runs.db", home ? home : "");
    return buf;
}

/* The folders above PATH. What cannot be made shows when the file is opened. */
static void
make_parents(const char *path)
{
    char part[PATH_MAX];
    for (const char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(p - path), path);
        (void)mkdir(part, 0700);
    }
}

static int
read_int(sqlite3 *db, const char *sql, bool *is_ok)
{
    sqlite3_stmt *s = NULL;
    int value = 0;
    *is_ok = sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK &&
             sqlite3_step(s) == SQLITE_ROW;
    if (*is_ok) {
        const unsigned char *text = sqlite3_column_text(s, 0);
        *is_ok = text && strcmp((const char *)text, "ok") == 0;
        value = sqlite3_column_int(s, 0);
    }
    sqlite3_finalize(s);
    return value;
}

/* SQLITE_OK, or why not. */
static int
prepare(sqlite3 *db)
{
    static const char make[] =
        "BEGIN IMMEDIATE; DROP TABLE IF EXISTS runs; CREATE TABLE runs(directory TEXT "
        "PRIMARY KEY, stamp TEXT NOT NULL, started REAL, facts TEXT NOT NULL); PRAGMA "
        "user_version = " IN_TEXT(SCHEMA) "; COMMIT";
    bool is_ok;
    sqlite3_busy_timeout(db, WAIT_MS);
    sqlite3_extended_result_codes(db, 0);
    int code = sqlite3_exec(db, "PRAGMA synchronous = OFF", NULL, NULL, NULL);
    if (code != SQLITE_OK)
        return code;
    (void)read_int(db, "PRAGMA quick_check(1)", &is_ok);
    if (!is_ok)
        return sqlite3_errcode(db) == SQLITE_BUSY ? SQLITE_BUSY : SQLITE_CORRUPT;
    if (read_int(db, "PRAGMA user_version", &is_ok) == SCHEMA)
        return SQLITE_OK;
    code = sqlite3_exec(db, make, NULL, NULL, NULL);
    if (code != SQLITE_OK)
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    /* Another process may have been quicker. */
    return read_int(db, "PRAGMA user_version", &is_ok) == SCHEMA ? SQLITE_OK : code;
}

static int
try_open(struct eti_index *x, const char *path)
{
    int code = sqlite3_open(path, &x->db);
    if (code == SQLITE_OK)
        code = prepare(x->db);
    if (code == SQLITE_OK)
        return code;
    sqlite3_close(x->db);
    x->db = NULL;
    return code;
}

static void
remove_files(const char *path)
{
    char journal[PATH_MAX + 16];
    snprintf(journal, sizeof journal, "%s-journal", path);
    (void)unlink(journal);
    (void)unlink(path);
}

et_status
eti_index_open(struct et_ctx *cx, const char *path, struct eti_index **out)
{
    char own[PATH_MAX];
    void *block;
    *out = NULL;
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct eti_index *x = block;
    x->cx = cx;
    if (!path)
        path = default_path(own, sizeof own);
    make_parents(path);
    mode_t mask = umask(077); /* recipes may hold private paths */
    int code = try_open(x, path);
    if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) {
        et_report(cx, ET_LOG_WARN,
                  "the index of runs, %s, was damaged: it is made anew", path);
        remove_files(path);
        code = try_open(x, path);
    }
    if (code != SQLITE_OK) {
        snprintf(x->problem, sizeof x->problem, "%.180s: %.60s", path,
                 sqlite3_errstr(code));
        code = try_open(x, ":memory:");
    }
    umask(mask);
    if (code != SQLITE_OK) {
        et_status status = fail(x, "open it");
        eti_index_close(&x);
        return status;
    }
    *out = x;
    return ET_OK;
}

const char *
eti_index_problem(const struct eti_index *x)
{
    return x->problem[0] ? x->problem : NULL;
}

void
eti_index_close(struct eti_index **index)
{
    struct eti_index *x = *index;
    *index = NULL;
    if (!x)
        return;
    json_decref(x->listed);
    sqlite3_close(x->db);
    et_free(x->cx, x);
}

/* ---- rows ---- */

static bool
is_known(struct eti_index *x, const char *directory, const char *stamp)
{
    sqlite3_stmt *s = NULL;
    bool found = false;
    if (sqlite3_prepare_v2(x->db, "SELECT stamp FROM runs WHERE directory = ?", -1, &s,
                           NULL) != SQLITE_OK)
        return false;
    sqlite3_bind_text(s, 1, directory, -1, SQLITE_STATIC);
    if (sqlite3_step(s) == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(s, 0);
        found = text && strcmp(text, stamp) == 0;
    }
    sqlite3_finalize(s);
    return found;
}

static et_status
put(struct eti_index *x, const char *directory, const char *stamp, const json_t *facts)
{
    sqlite3_stmt *s = NULL;
    char *text = json_dumps(facts, JSON_COMPACT);
    bool fine = text && sqlite3_prepare_v2(
                            x->db, "INSERT OR REPLACE INTO runs VALUES(?, ?, ?, ?)", -1,
                            &s, NULL) == SQLITE_OK;
    if (fine) {
        sqlite3_bind_text(s, 1, directory, -1, SQLITE_STATIC);
        sqlite3_bind_text(s, 2, stamp, -1, SQLITE_STATIC);
        sqlite3_bind_double(s, 3, json_number_value(json_object_get(facts, "started")));
        sqlite3_bind_text(s, 4, text, -1, SQLITE_STATIC);
        fine = sqlite3_step(s) == SQLITE_DONE;
    }
    et_status status = fine ? ET_OK : fail(x, "add a run");
    sqlite3_finalize(s);
    free(text);
    return status;
}

static et_status
forget(struct eti_index *x, const char *directory)
{
    sqlite3_stmt *s = NULL;
    bool fine = sqlite3_prepare_v2(x->db, "DELETE FROM runs WHERE directory = ?", -1,
                                   &s, NULL) == SQLITE_OK;
    if (fine) {
        sqlite3_bind_text(s, 1, directory, -1, SQLITE_STATIC);
        fine = sqlite3_step(s) == SQLITE_DONE;
    }
    et_status status = fine ? ET_OK : fail(x, "forget a run");
    sqlite3_finalize(s);
    return status;
}

/* Reads the run in DIRECTORY, whose files have that STAMP. */
static et_status
read_run(struct eti_index *x, const char *directory, const char *stamp)
{
    json_t *facts;
    ET_TRY(eti_facts_read(x->cx, directory, &facts));
    et_status status = put(x, directory, stamp, facts);
    json_decref(facts);
    return status;
}

et_status
eti_index_add(struct eti_index *x, const char *directory)
{
    char whole[PATH_MAX], stamp[ETI_FACT_TEXT];
    if (!realpath(directory, whole))
        return ET_FAIL(x->cx, ET_ENOENT, "there is no %s", directory);
    eti_facts_stamp(whole, stamp);
    if (is_known(x, whole, stamp))
        return ET_OK;
    return read_run(x, whole, stamp);
}

/* Reads a run that is known again where its files have changed, or ANYHOW; forgets one
 * that is gone. */
static et_status
look_again(struct eti_index *x, const char *directory, const char *stamp, bool anyhow)
{
    char now[ETI_FACT_TEXT];
    eti_facts_stamp(directory, now);
    if (!anyhow && *now && strcmp(now, stamp) == 0)
        return ET_OK;
    et_status status = *now ? read_run(x, directory, now) : ET_ENOENT;
    if (status != ET_ENOENT)
        return status;
    et_error_clear(x->cx);
    return forget(x, directory);
}

/* Adds the runs in FOLDER that are not KNOWN. */
static et_status
add_folder(struct eti_index *x, const char *folder, const json_t *known)
{
    et_status status = ET_OK;
    char whole[PATH_MAX], path[2 * PATH_MAX];
    DIR *d = realpath(folder, whole) ? opendir(whole) : NULL;
    for (struct dirent *e; d && status == ET_OK && (e = readdir(d));) {
        size_t n = (size_t)snprintf(path, sizeof path, "%s/%s", whole, e->d_name);
        if (e->d_name[0] == '.' || json_object_get(known, path))
            continue;
        snprintf(path + n, sizeof path - n, "/run.json");
        if (access(path, F_OK) != 0)
            continue;
        path[n] = '\0';
        status = eti_index_add(x, path);
        if (status != ET_ENOENT)
            continue;
        et_error_clear(x->cx);
        status = ET_OK;
    }
    if (d)
        closedir(d);
    return status;
}

static const char *
column(sqlite3_stmt *s, int i)
{
    const char *text = (const char *)sqlite3_column_text(s, i);
    return text ? text : "";
}

/* {directory: stamp} of all rows. */
static et_status
known_runs(struct eti_index *x, json_t **out)
{
    sqlite3_stmt *s = NULL;
    int code =
        sqlite3_prepare_v2(x->db, "SELECT directory, stamp FROM runs", -1, &s, NULL);
    *out = json_object();
    while (code == SQLITE_OK && (code = sqlite3_step(s)) == SQLITE_ROW) {
        json_object_set_new(*out, column(s, 0), json_string(column(s, 1)));
        code = SQLITE_OK;
    }
    sqlite3_finalize(s);
    return code == SQLITE_DONE ? ET_OK : fail(x, "read it");
}

et_status
eti_index_update(struct eti_index *x, const char *folder, bool again)
{
    json_t *known, *stamp;
    const char *directory;
    et_status status = known_runs(x, &known);
    json_object_foreach(known, directory, stamp) if (status == ET_OK) status =
        look_again(x, directory, json_string_value(stamp), again);
    if (status == ET_OK)
        status = add_folder(x, folder, known);
    json_decref(known);
    return status;
}

/* ---- the list ---- */

/* The facts of a row; NULL: there are none. */
static json_t *
load_facts(struct eti_index *x, const char *directory)
{
    sqlite3_stmt *s = NULL;
    json_t *facts = NULL;
    if (sqlite3_prepare_v2(x->db, "SELECT facts FROM runs WHERE directory = ?", -1, &s,
                           NULL) == SQLITE_OK) {
        sqlite3_bind_text(s, 1, directory, -1, SQLITE_STATIC);
        if (sqlite3_step(s) == SQLITE_ROW)
            facts = json_loads(column(s, 0), 0, NULL);
    }
    sqlite3_finalize(s);
    return facts;
}

/* What was listed of DIRECTORY under that STAMP, or is now: [stamp, facts]. */
static json_t *
listed(struct eti_index *x, const char *directory, const char *stamp)
{
    json_t *entry = json_object_get(x->listed, directory), *facts;
    const char *before = json_string_value(json_array_get(entry, 0));
    if (before && strcmp(before, stamp) == 0)
        return json_incref(entry);
    facts = load_facts(x, directory);
    return facts ? json_pack("[s, o]", stamp, facts) : NULL;
}

/* Most runs are over, and as they were the last time: those are not read again. */
et_status
eti_index_list(struct eti_index *x, json_t **out)
{
    sqlite3_stmt *s = NULL;
    json_t *all = json_object();
    int code = sqlite3_prepare_v2(
        x->db,
        "SELECT directory, stamp FROM runs ORDER BY started DESC, directory DESC", -1,
        &s, NULL);
    *out = json_array();
    while (code == SQLITE_OK && (code = sqlite3_step(s)) == SQLITE_ROW) {
        json_t *entry = listed(x, column(s, 0), column(s, 1));
        json_t *facts = json_array_get(entry, 1);
        if (facts && eti_facts_goes_on(facts)) {
            json_t *own = json_copy(facts);
            eti_facts_make_true(own);
            json_array_append_new(*out, own);
        } else if (facts) {
            json_array_append(*out, facts);
        }
        if (entry)
            json_object_set_new(all, column(s, 0), entry);
        code = SQLITE_OK;
    }
    sqlite3_finalize(s);
    json_decref(x->listed);
    x->listed = all;
    if (code == SQLITE_DONE)
        return ET_OK;
    json_decref(*out);
    *out = NULL;
    return fail(x, "read it");
}
