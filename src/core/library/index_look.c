/* SPDX-License-Identifier: Apache-2.0 */
/* index_look.c: what has changed since runs were written into their index. See index.h.
 *
 * Times of files are compared with what they were, never with each other, but for one:
 * what was written a moment ago may be written again with the same time. */
#include "config.h"

#include "core/library/index_db.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "core/library/facts_pack.h"

static const double MOMENT = 2; /* seconds: the coarsest times that file systems keep */

static double
time_of(const struct stat *st)
{
    return (double)st->st_mtim.tv_sec + 1e-9 * (double)st->st_mtim.tv_nsec;
}

static bool
is_recent(const struct eti_index *x, double t)
{
    return t > eti_wall(x->cx) - MOMENT;
}

/* The place of DIRECTORY, and when it was written. Is it there? */
static bool
place_of(struct eti_index *x, const char *directory, char place[ETI_PLACE], double *t)
{
    struct stat st;
    x->work.looks++;
    if (stat(directory, &st) != 0 || !S_ISDIR(st.st_mode))
        return false;
    snprintf(place, ETI_PLACE, "%lld.%09ld:%llu", (long long)st.st_mtim.tv_sec,
             st.st_mtim.tv_nsec, (unsigned long long)st.st_ino);
    *t = time_of(&st);
    return true;
}

/* ---- one run ---- */

struct state {
    char place[ETI_PLACE], stamp[ETI_FACT_TEXT];
    bool is_recent;
};

/* Is there a run in DIRECTORY? */
static bool
state_of(struct eti_index *x, const char *directory, struct state *now)
{
    double t, newest;
    if (!place_of(x, directory, now->place, &t))
        return false;
    x->work.stamps++;
    eti_facts_stamp(directory, now->stamp, &newest);
    now->is_recent = is_recent(x, fmax(t, newest));
    return *now->stamp;
}

static void
bind_fact(sqlite3_stmt *s, int i, const json_t *facts, const char *key)
{
    const char *text = json_string_value(json_object_get(facts, key));
    sqlite3_bind_text(s, i, text, -1, SQLITE_TRANSIENT);
}

static et_status
put(struct eti_index *x, const char *directory, const struct state *now, json_t *facts)
{
    sqlite3_stmt *s = eti_index_ask(x, ETI_Q_PUT, directory);
    char *bytes;
    size_t n;
    bool fine = eti_facts_pack(facts, &bytes, &n);
    enum eti_index_watch watch = eti_facts_goes_on(facts) ? ETI_GOES_ON
                                 : now->is_recent         ? ETI_RECENT
                                                          : ETI_SETTLED;
    if (s && fine) {
        sqlite3_bind_int(s, 2, watch);
        sqlite3_bind_text(s, 3, now->place, -1, SQLITE_TRANSIENT);
        sqlite3_bind_text(s, 4, now->stamp, -1, SQLITE_TRANSIENT);
        sqlite3_bind_double(s, 5, json_number_value(json_object_get(facts, "started")));
        bind_fact(s, 6, facts, "name");
        bind_fact(s, 7, facts, "state");
        bind_fact(s, 8, facts, "recipe");
        sqlite3_bind_blob64(s, 9, bytes, n, SQLITE_TRANSIENT);
    }
    free(bytes);
    /* FACTS lie scattered among what it took to read them: lists load their own. */
    json_object_del(x->listed, directory);
    return eti_index_write(x, fine ? s : NULL);
}

/* A directory that is gone may have been moved to another name in its folder, and its
 * row may have been wrong: the folder is read again. */
static et_status
forget(struct eti_index *x, const char *directory)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", directory);
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = '\0';
    json_object_del(x->listed, directory);
    ET_TRY(eti_index_write(x, eti_index_ask(x, ETI_Q_FORGET, directory)));
    return eti_index_write(x, eti_index_ask(x, ETI_Q_DOUBT_FOLDER, folder));
}

static et_status
read_run(struct eti_index *x, const char *directory, const struct state *now)
{
    json_t *facts;
    x->work.read++;
    ET_TRY(eti_facts_read(x->cx, directory, &facts));
    et_status status = put(x, directory, now, facts);
    json_decref(facts);
    return status;
}

/* A row: [directory, watch, place, stamp, started]. */
static const char *
text_of(const json_t *row, size_t i)
{
    const char *text = json_string_value(json_array_get(row, i));
    return text ? text : "";
}

static et_status
settle(struct eti_index *x, const char *directory, const char *place)
{
    sqlite3_stmt *s = eti_index_ask(x, ETI_Q_SETTLE, directory);
    if (s) {
        sqlite3_bind_text(s, 2, place, -1, SQLITE_TRANSIENT);
        sqlite3_bind_int(s, 3, ETI_SETTLED);
    }
    return eti_index_write(x, s);
}

/* Looks at the run of ROW; ANYHOW: reads it. */
static et_status
check(struct eti_index *x, const json_t *row, bool anyhow)
{
    const char *directory = text_of(row, 0);
    enum eti_index_watch watch =
        (enum eti_index_watch)json_integer_value(json_array_get(row, 1));
    struct state now;
    double t;
    if (!anyhow && watch == ETI_SETTLED && place_of(x, directory, now.place, &t) &&
        strcmp(now.place, text_of(row, 2)) == 0)
        return ET_OK;
    if (!state_of(x, directory, &now))
        return forget(x, directory);
    if (anyhow || strcmp(now.stamp, text_of(row, 3)) != 0) {
        et_status status = read_run(x, directory, &now);
        if (status != ET_ENOENT)
            return status;
        et_error_clear(x->cx);
        return forget(x, directory);
    }
    if (watch == ETI_GOES_ON || now.is_recent)
        return ET_OK;
    return settle(x, directory, now.place);
}

/* Takes what is left of the answer of S: rows. */
static et_status
take_rows(struct eti_index *x, sqlite3_stmt *s, json_t **out)
{
    int code;
    *out = json_array();
    while (eti_index_next(s, &code))
        json_array_append_new(
            *out, json_pack("[s, i, s, s, f]", eti_index_column(s, 0),
                            sqlite3_column_int(s, 1), eti_index_column(s, 2),
                            eti_index_column(s, 3), sqlite3_column_double(s, 4)));
    return eti_index_answered(x, s, code);
}

static et_status
check_all(struct eti_index *x, const json_t *rows, bool anyhow)
{
    et_status status = ET_OK;
    for (size_t i = 0; i < json_array_size(rows) && status == ET_OK; i++)
        status = check(x, json_array_get(rows, i), anyhow);
    return status;
}

et_status
eti_index_check(struct eti_index *x, const char *directory)
{
    json_t *rows;
    et_status status = take_rows(x, eti_index_ask(x, ETI_Q_ROW, directory), &rows);
    if (status == ET_OK)
        status = check_all(x, rows, false);
    json_decref(rows);
    return eti_index_commit(x, status);
}

/* Reads the run in the directory WHOLE unless it has not changed. ENOENT: it is not a
 * run. */
static et_status
add(struct eti_index *x, const char *whole)
{
    json_t *rows;
    struct state now;
    et_status status = take_rows(x, eti_index_ask(x, ETI_Q_ROW, whole), &rows);
    if (status == ET_OK && json_array_size(rows) > 0)
        status = check_all(x, rows, false);
    else if (status == ET_OK)
        status = state_of(x, whole, &now)
                     ? read_run(x, whole, &now)
                     : ET_FAIL(x->cx, ET_ENOENT, "%s holds no run", whole);
    json_decref(rows);
    return status;
}

et_status
eti_index_add(struct eti_index *x, const char *directory)
{
    char whole[PATH_MAX];
    if (!realpath(directory, whole))
        return ET_FAIL(x->cx, ET_ENOENT, "there is no %s", directory);
    et_status status = eti_index_commit(x, add(x, whole));
    if (status != ET_OK && eti_index_mend(x))
        status = eti_index_commit(x, add(x, whole));
    return status;
}

/* ---- a folder ---- */

void
eti_index_stop_looking(struct eti_index *x)
{
    struct eti_look *l = &x->look;
    for (size_t i = 0; i < l->n; i++)
        free(l->unknown[i].directory);
    free(l->unknown);
    *l = (struct eti_look){0};
}

static et_status
add_unknown(struct eti_index *x, const char *directory, double t)
{
    struct eti_look *l = &x->look;
    if (l->n == l->room) {
        size_t room = 2 * l->room + 64;
        struct eti_unknown *more = realloc(l->unknown, room * sizeof *more);
        if (!more)
            return ET_FAIL(x->cx, ET_ENOMEM, "no memory for a list of %zu runs", room);
        l->unknown = more;
        l->room = room;
    }
    char *copy = strdup(directory);
    if (!copy)
        return ET_FAIL(x->cx, ET_ENOMEM, "no memory for the name of a run");
    l->unknown[l->n++] = (struct eti_unknown){copy, t};
    return ET_OK;
}

static int
by_time(const void *left, const void *right)
{
    const struct eti_unknown *a = left, *b = right;
    return a->t != b->t ? (a->t < b->t) - (a->t > b->t)
                        : -strcmp(a->directory, b->directory);
}

static et_status
put_other(struct eti_index *x, const char *directory, const char *folder,
          const char *place)
{
    sqlite3_stmt *s = eti_index_ask(x, ETI_Q_PUT_OTHER, directory);
    if (s) {
        sqlite3_bind_text(s, 2, folder, -1, SQLITE_TRANSIENT);
        sqlite3_bind_text(s, 3, place, -1, SQLITE_TRANSIENT);
    }
    return eti_index_write(x, s);
}

/* Directories of FOLDER that were no runs: one that was written to may be one now. They
 * are added to NAMES. */
static et_status
look_at_others(struct eti_index *x, const char *folder, json_t *names)
{
    sqlite3_stmt *s = eti_index_ask(x, ETI_Q_OTHERS, folder);
    json_t *others = json_object(), *before;
    const char *directory;
    char place[ETI_PLACE];
    double t = 0;
    int code;
    while (eti_index_next(s, &code))
        json_object_set_new(others, eti_index_column(s, 0),
                            json_string(eti_index_column(s, 1)));
    et_status status = eti_index_answered(x, s, code);
    json_object_foreach(others, directory, before)
    {
        if (status != ET_OK)
            break;
        json_object_set_new(names, directory, json_true());
        if (!place_of(x, directory, place, &t))
            status =
                eti_index_write(x, eti_index_ask(x, ETI_Q_FORGET_OTHER, directory));
        else if (strcmp(place, json_string_value(before)) != 0)
            status = add_unknown(x, directory, t);
    }
    json_decref(others);
    return status;
}

/* Adds to what is unknown the directories of FOLDER that are not in KNOWN. */
static et_status
read_folder(struct eti_index *x, const char *folder, const json_t *known)
{
    char path[2 * PATH_MAX], place[ETI_PLACE];
    et_status status = ET_OK;
    double t;
    DIR *d = opendir(folder);
    x->work.folders++;
    for (struct dirent *e; d && status == ET_OK && (e = readdir(d));) {
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (e->d_name[0] == '.' || e->d_type == DT_REG || json_object_get(known, path))
            continue;
        if (place_of(x, path, place, &t))
            status = add_unknown(x, path, t);
    }
    if (d)
        closedir(d);
    return status;
}

/* Is the folder as it was when all in it was read? */
static et_status
is_as_it_was(struct eti_index *x, const char *folder, const char *place, bool *same)
{
    int code;
    sqlite3_stmt *s = eti_index_ask(x, ETI_Q_FOLDER, folder);
    *same = eti_index_next(s, &code) && strcmp(eti_index_column(s, 0), place) == 0;
    return eti_index_answered(x, s, code);
}

/* Finds what is unknown in x->look.whole. */
static et_status
look_at_folder(struct eti_index *x)
{
    struct eti_look *l = &x->look;
    json_t *known = json_object();
    bool same = false;
    double t;
    int code;
    if (!place_of(x, l->whole, l->place, &t)) {
        l->place[0] = '\0';
        json_decref(known);
        return ET_OK;
    }
    et_status status = look_at_others(x, l->whole, known);
    if (status == ET_OK && !l->again)
        status = is_as_it_was(x, l->whole, l->place, &same);
    if (status == ET_OK && !same) {
        sqlite3_stmt *s = eti_index_ask(x, ETI_Q_BELOW, l->whole);
        while (eti_index_next(s, &code))
            json_object_set_new(known, eti_index_column(s, 0), json_true());
        status = eti_index_answered(x, s, code);
    }
    if (status == ET_OK && !same)
        status = read_folder(x, l->whole, known);
    json_decref(known);
    if (same || is_recent(x, t))
        l->place[0] = '\0';
    if (l->n > 0)
        qsort(l->unknown, l->n, sizeof *l->unknown, by_time);
    return status;
}

/* ---- all of it ---- */

/* Reads the next that is unknown, or puts it among the others. */
static et_status
read_unknown(struct eti_index *x)
{
    struct eti_look *l = &x->look;
    const struct eti_unknown *u = &l->unknown[l->at++];
    char whole[PATH_MAX], folder[PATH_MAX], place[ETI_PLACE];
    double t;
    et_status status = realpath(u->directory, whole) ? add(x, whole) : ET_ENOENT;
    if (status == ET_OK)
        return eti_index_write(x, eti_index_ask(x, ETI_Q_FORGET_OTHER, u->directory));
    if (status != ET_ENOENT)
        return status;
    et_error_clear(x->cx);
    if (!place_of(x, u->directory, place, &t))
        return ET_OK;
    snprintf(folder, sizeof folder, "%.*s",
             (int)(strrchr(u->directory, '/') - u->directory), u->directory);
    return put_other(x, u->directory, folder, is_recent(x, t) ? "" : place);
}

/* Reads at most N that are unknown. What is in the folder is known when all are read: a
 * process that ends before has read some, and the next one goes on. */
static et_status
read_page(struct eti_index *x, size_t n)
{
    struct eti_look *l = &x->look;
    et_status status = ET_OK;
    for (; n > 0 && l->at < l->n && status == ET_OK; n--)
        status = read_unknown(x);
    if (status != ET_OK || l->at < l->n || !*l->place)
        return status;
    sqlite3_stmt *s = eti_index_ask(x, ETI_Q_PUT_FOLDER, l->whole);
    if (s)
        sqlite3_bind_text(s, 2, l->place, -1, SQLITE_TRANSIENT);
    l->place[0] = '\0';
    return eti_index_write(x, s);
}

/* Looks at the next N rows. */
static et_status
check_page(struct eti_index *x, size_t n)
{
    struct eti_look *l = &x->look;
    json_t *rows;
    sqlite3_stmt *s = eti_index_ask(x, ETI_Q_PAGE, l->last);
    if (s) {
        sqlite3_bind_double(s, 2, l->last_started);
        sqlite3_bind_int64(s, 3, (int64_t)n);
    }
    et_status status = take_rows(x, s, &rows);
    size_t got = json_array_size(rows);
    if (status == ET_OK)
        status = check_all(x, rows, l->again);
    if (got > 0) {
        const json_t *row = json_array_get(rows, got - 1);
        snprintf(l->last, sizeof l->last, "%s", text_of(row, 0));
        l->last_started = json_real_value(json_array_get(row, 4));
    }
    json_decref(rows);
    l->has_all = status == ET_OK && got < n;
    return status;
}

static et_status
look(struct eti_index *x, const char *folder, bool again)
{
    struct eti_look *l = &x->look;
    char own[PATH_MAX]; /* it may be that of the last look */
    json_t *rows;
    snprintf(own, sizeof own, "%s", folder);
    eti_index_stop_looking(x);
    snprintf(l->folder, sizeof l->folder, "%s", own);
    l->again = again;
    l->last_started = INFINITY;
    et_status status = take_rows(x, eti_index_ask(x, ETI_Q_GOING_ON, NULL), &rows);
    if (status == ET_OK)
        status = check_all(x, rows, false);
    json_decref(rows);
    if (status == ET_OK)
        status = check_page(x, ETI_INDEX_PAGE);
    if (status == ET_OK && realpath(l->folder, l->whole))
        status = look_at_folder(x);
    if (status == ET_OK)
        status = read_page(x, ETI_INDEX_PAGE);
    return eti_index_commit(x, status);
}

et_status
eti_index_look(struct eti_index *x, const char *folder, bool again)
{
    et_status status = look(x, folder, again);
    if (status != ET_OK && eti_index_mend(x))
        status = look(x, folder, again);
    return status;
}

et_status
eti_index_look_on(struct eti_index *x, int n, bool *more)
{
    struct eti_look *l = &x->look;
    size_t room = (size_t)n, before = l->at;
    et_status status = read_page(x, room);
    room -= l->at - before;
    if (status == ET_OK && room > 0 && !l->has_all)
        status = check_page(x, l->again ? room : room * ETI_INDEX_LOOKS);
    status = eti_index_commit(x, status);
    if (status != ET_OK && eti_index_mend(x))
        status = eti_index_look(x, l->folder, false);
    *more = status == ET_OK && (l->at < l->n || !l->has_all);
    return status;
}

et_status
eti_index_update(struct eti_index *x, const char *folder, bool again)
{
    enum { MANY = 64 };
    bool more = true;
    et_status status = eti_index_look(x, folder, again);
    while (status == ET_OK && more)
        status = eti_index_look_on(x, MANY, &more);
    return status;
}
