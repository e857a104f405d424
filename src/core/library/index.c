/* SPDX-License-Identifier: Apache-2.0 */
/* index.c: the list of runs, in SQLite: its database. See index.h, index_db.h.
 *
 * It is a cache: it is not synced, and what a crash makes of it is thrown away. */
#include "config.h"

#include "core/base/folders.h"
#include "core/library/index_db.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCHEMA          6 /* of the tables and of the facts in them */
#define TEXT_OF(number) #number
#define IN_TEXT(macro)  TEXT_OF(macro)

enum {
    WAIT_MS = 5000, /* for another process */
};

static const char *const queries[] = {
#define ETI_QUERY(name, sql) [ETI_Q_##name] = sql,
    ETI_QUERIES(ETI_QUERY)
#undef ETI_QUERY
};

/* ---- statements ---- */

/* Codes that say that what is on the disk is wrong. */
static bool
is_damage(int code)
{
    return code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
}

et_status
eti_index_fail(struct eti_index *x, const char *doing)
{
    int code = x->db ? sqlite3_errcode(x->db) : SQLITE_NOMEM;
    x->is_damaged = x->is_damaged || is_damage(code);
    x->is_locked = code == SQLITE_BUSY;
    return ET_FAIL(x->cx, ET_EIO, "the index of runs: cannot %s: %s", doing,
                   x->db ? sqlite3_errmsg(x->db) : "out of memory");
}

sqlite3_stmt *
eti_index_ask(struct eti_index *x, enum eti_query q, const char *a)
{
    sqlite3_stmt **s = &x->query[q];
    if (!*s &&
        (!x->db || sqlite3_prepare_v3(x->db, queries[q], -1, SQLITE_PREPARE_PERSISTENT,
                                      s, NULL) != SQLITE_OK))
        return NULL;
    sqlite3_reset(*s);
    if (a)
        sqlite3_bind_text(*s, 1, a, -1, SQLITE_TRANSIENT);
    return *s;
}

bool
eti_index_next(sqlite3_stmt *s, int *code)
{
    *code = s ? sqlite3_step(s) : SQLITE_ERROR;
    return *code == SQLITE_ROW;
}

et_status
eti_index_answered(struct eti_index *x, sqlite3_stmt *s, int code)
{
    bool fine = code == SQLITE_DONE || code == SQLITE_ROW;
    et_status status = fine ? ET_OK : eti_index_fail(x, "read it");
    if (s)
        sqlite3_reset(s);
    return status;
}

const char *
eti_index_column(sqlite3_stmt *s, int i)
{
    const char *text = (const char *)sqlite3_column_text(s, i);
    return text ? text : "";
}

/* One that begins by reading and then writes fails where another has written meanwhile:
 * this one waits first. */
et_status
eti_index_write(struct eti_index *x, sqlite3_stmt *s)
{
    bool fine = s != NULL;
    if (fine && !x->writes) {
        fine = sqlite3_exec(x->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK;
        x->writes = fine;
    }
    fine = fine && sqlite3_step(s) == SQLITE_DONE;
    et_status status = fine ? ET_OK : eti_index_fail(x, "write it");
    if (s)
        sqlite3_reset(s);
    x->changes++;
    return status;
}

et_status
eti_index_commit(struct eti_index *x, et_status status)
{
    if (!x->writes)
        return status;
    x->writes = false;
    if (status == ET_OK && sqlite3_exec(x->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
        status = eti_index_fail(x, "write it");
    if (status != ET_OK)
        sqlite3_exec(x->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
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

/* The number that SQL answers; -1: it could not be asked, for the reason *CODE. */
static int
read_int(sqlite3 *db, const char *sql, int *code)
{
    sqlite3_stmt *s = NULL;
    int value = -1;
    *code = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
    if (*code == SQLITE_OK && (*code = sqlite3_step(s)) == SQLITE_ROW) {
        value = sqlite3_column_int(s, 0);
        *code = SQLITE_OK;
    }
    sqlite3_finalize(s);
    return value;
}

/* SQLITE_OK, or why not. What a list is made of without the facts is in "newest". */
static int
prepare(sqlite3 *db)
{
    static const char before[] = "PRAGMA synchronous = OFF; PRAGMA cell_size_check = "
                                 "ON; PRAGMA cache_size = -4096";
    static const char make[] =
        "DROP TABLE IF EXISTS runs; DROP TABLE IF EXISTS others; DROP TABLE IF EXISTS "
        "folders; CREATE TABLE runs(directory TEXT PRIMARY KEY, watch INTEGER, place "
        "TEXT, stamp TEXT, started REAL, name TEXT, state TEXT, recipe TEXT, facts "
        "BLOB); CREATE INDEX newest ON runs(started DESC, directory DESC, name, state, "
        "watch, place, stamp); CREATE INDEX going_on ON runs(watch) WHERE watch = 2; "
        "CREATE INDEX of_recipe ON runs(recipe, started DESC, directory DESC); CREATE "
        "TABLE others(directory TEXT PRIMARY KEY, folder TEXT, place TEXT); CREATE "
        "TABLE folders(directory TEXT PRIMARY KEY, place TEXT); PRAGMA user_version "
        "= " IN_TEXT(SCHEMA);
    sqlite3_busy_timeout(db, WAIT_MS);
    sqlite3_extended_result_codes(db, 0);
    int code = sqlite3_exec(db, before, NULL, NULL, NULL);
    if (code != SQLITE_OK)
        return code;
    if (read_int(db, "PRAGMA user_version", &code) == SCHEMA || code != SQLITE_OK)
        return code;
    code = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    /* Another process may have been quicker, and have written into its tables. */
    if (code == SQLITE_OK && read_int(db, "PRAGMA user_version", &code) != SCHEMA &&
        code == SQLITE_OK)
        code = sqlite3_exec(db, make, NULL, NULL, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    if (code != SQLITE_OK)
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return code;
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
close_db(struct eti_index *x)
{
    for (int i = 0; i < ETI_Q_COUNT_OF; i++) {
        sqlite3_finalize(x->query[i]);
        x->query[i] = NULL;
    }
    sqlite3_close(x->db);
    x->db = NULL;
    x->writes = false;
}

static void
remove_files(const char *path)
{
    char journal[PATH_MAX + 16];
    snprintf(journal, sizeof journal, "%s-journal", path);
    (void)unlink(journal);
    (void)unlink(path);
}

/* Opens x->path unless CODE is what keeps that from being used, and makes it anew where
 * it is damaged. Where it cannot be kept it is in memory. */
static et_status
open_db(struct eti_index *x, int code)
{
    mode_t mask = umask(077); /* recipes may hold private paths */
    if (code == SQLITE_OK)
        code = try_open(x, x->path);
    if (is_damage(code)) {
        et_report(x->cx, ET_LOG_WARN,
                  "the index of runs, %s, was damaged: it is made anew", x->path);
        remove_files(x->path);
        code = try_open(x, x->path);
    }
    if (code != SQLITE_OK) {
        snprintf(x->problem, sizeof x->problem, "%.180s: %.60s", x->path,
                 sqlite3_errstr(code));
        code = try_open(x, ":memory:");
    }
    umask(mask);
    return code == SQLITE_OK ? ET_OK : eti_index_fail(x, "open it");
}

/* Once is enough: a disk that does not keep what is written is not helped. */
bool
eti_index_mend(struct eti_index *x)
{
    int code = x->is_damaged ? SQLITE_CORRUPT : x->is_locked ? SQLITE_BUSY : SQLITE_OK;
    if (code == SQLITE_OK || x->n_mended++ > 0)
        return false;
    x->is_damaged = x->is_locked = false;
    et_error_clear(x->cx);
    close_db(x);
    return open_db(x, code) == ET_OK;
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
    x->listed = json_object();
    snprintf(x->path, sizeof x->path, "%s",
             path ? path : default_path(own, sizeof own));
    (void)eti_make_user_folders(x->path, 0700);
    et_status status = open_db(x, SQLITE_OK);
    if (status != ET_OK)
        eti_index_close(&x);
    *out = x;
    return status;
}

const char *
eti_index_problem(const struct eti_index *x)
{
    return x->problem[0] ? x->problem : NULL;
}

const struct eti_index_work *
eti_index_get_work(const struct eti_index *x)
{
    return &x->work;
}

void
eti_index_close(struct eti_index **index)
{
    struct eti_index *x = *index;
    *index = NULL;
    if (!x)
        return;
    eti_index_stop_looking(x);
    json_decref(x->listed);
    close_db(x);
    et_free(x->cx, x);
}
