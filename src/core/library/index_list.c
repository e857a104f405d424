/* SPDX-License-Identifier: Apache-2.0 */
/* index_list.c: what the index of runs answers. See index.h. */
#include "config.h"

#include "core/library/index_db.h"

#include <string.h>

#include "core/library/facts_pack.h"

/* A process that has ended changes no file. */
static bool
may_die(const json_t *facts)
{
    return eti_facts_goes_on(facts);
}

int64_t
eti_index_count(struct eti_index *x)
{
    int code;
    sqlite3_stmt *s = eti_index_ask(x, ETI_Q_COUNT, NULL);
    int64_t n = eti_index_next(s, &code) ? sqlite3_column_int64(s, 0) : 0;
    if (s)
        sqlite3_reset(s);
    return n + (int64_t)(x->look.n - x->look.at);
}

/* What other processes have written changes this number. */
static int64_t
version(struct eti_index *x)
{
    int code;
    sqlite3_stmt *s = eti_index_ask(x, ETI_Q_VERSION, NULL);
    int64_t v = eti_index_next(s, &code) ? sqlite3_column_int64(s, 0) : -1;
    if (s)
        sqlite3_reset(s);
    return v;
}

bool
eti_index_has_changed(struct eti_index *x)
{
    return x->lists_living || x->seen[0] != x->changes || x->seen[1] != version(x);
}

/* The entry of a row of facts: what was listed of it under its stamp, or is now:
 * [stamp, facts]. NULL: the row is none. */
static json_t *
listed(struct eti_index *x, sqlite3_stmt *s)
{
    const char *directory = eti_index_column(s, 0), *stamp = eti_index_column(s, 1);
    json_t *entry = json_object_get(x->listed, directory);
    const char *before = json_string_value(json_array_get(entry, 0));
    if (before && strcmp(before, stamp) == 0)
        return json_incref(entry);
    const char *bytes = sqlite3_column_blob(s, 2);
    json_t *facts = eti_facts_unpack(bytes, (size_t)sqlite3_column_bytes(s, 2));
    x->work.loaded++;
    if (!json_is_object(facts)) {
        json_decref(facts);
        return NULL;
    }
    entry = json_pack("[s, o]", stamp, facts);
    json_object_set(x->listed, directory, entry);
    return entry;
}

/* Appends the answer of S to *OUT, with true states. */
static et_status
take(struct eti_index *x, sqlite3_stmt *s, json_t **out)
{
    int code;
    bool is_wrong = false;
    *out = json_array();
    while (eti_index_next(s, &code) && !is_wrong) {
        json_t *entry = listed(x, s), *facts = json_array_get(entry, 1);
        is_wrong = !entry;
        if (facts && may_die(facts)) {
            json_t *own = json_copy(facts);
            eti_facts_make_true(own);
            json_array_append_new(*out, own);
            x->lists_living = true;
        } else if (facts) {
            json_array_append(*out, facts);
        }
        json_decref(entry);
    }
    et_status status = eti_index_answered(x, s, code);
    if (status == ET_OK && is_wrong) {
        x->is_damaged = true;
        status =
            ET_FAIL(x->cx, ET_EIO, "the index of runs: a row of it holds no facts");
    }
    if (status != ET_OK) {
        json_decref(*out);
        *out = NULL;
    }
    return status;
}

/* What Q answers to A and MOST; made anew if need be, and then as it was. */
static et_status
answer(struct eti_index *x, enum eti_query q, const char *a, int64_t most, json_t **out)
{
    et_status status = ET_OK;
    do {
        if (status != ET_OK)
            status = eti_index_update(x, x->look.folder, false);
        sqlite3_stmt *s = eti_index_ask(x, q, a);
        if (s && most != 0)
            sqlite3_bind_int64(s, sqlite3_bind_parameter_count(s), most);
        status = take(x, s, out);
    } while (status != ET_OK && eti_index_mend(x));
    return status;
}

et_status
eti_index_list(struct eti_index *x, int64_t most, json_t **out)
{
    x->lists_living = false;
    x->seen[0] = x->changes;
    x->seen[1] = version(x);
    return answer(x, ETI_Q_LIST, NULL, most > 0 ? most : -1, out);
}

et_status
eti_index_live(struct eti_index *x, json_t **out)
{
    ET_TRY(answer(x, ETI_Q_LIVE, NULL, 0, out));
    for (size_t i = json_array_size(*out); i-- > 0;)
        if (!eti_facts_goes_on(json_array_get(*out, i)))
            json_array_remove(*out, i);
    return ET_OK;
}

et_status
eti_index_of_recipe(struct eti_index *x, const char *recipe, int64_t most, json_t **out)
{
    return answer(x, ETI_Q_OF_RECIPE, recipe, most, out);
}

/* The true state of the run in DIRECTORY, for the row ONE. */
static et_status
set_state(struct eti_index *x, const char *directory, json_t *one)
{
    json_t *list;
    ET_TRY(answer(x, ETI_Q_FACTS, directory, 0, &list));
    json_t *state = json_object_get(json_array_get(list, 0), "state");
    if (state)
        json_object_set(one, "state", state);
    json_decref(list);
    return ET_OK;
}

static et_status
names(struct eti_index *x, json_t **out)
{
    sqlite3_stmt *s = eti_index_ask(x, ETI_Q_NAMES, NULL);
    json_t *living = json_object(), *one;
    const char *directory;
    int code;
    *out = json_array();
    while (eti_index_next(s, &code)) {
        one = json_pack("{s:s, s:s}", "name", eti_index_column(s, 1), "state",
                        eti_index_column(s, 2));
        if (sqlite3_column_int(s, 3) == ETI_GOES_ON)
            json_object_set(living, eti_index_column(s, 0), one);
        json_array_append_new(*out, one);
    }
    et_status status = eti_index_answered(x, s, code);
    json_object_foreach(living, directory, one) if (status == ET_OK) status =
        set_state(x, directory, one);
    json_decref(living);
    if (status != ET_OK) {
        json_decref(*out);
        *out = NULL;
    }
    return status;
}

et_status
eti_index_names(struct eti_index *x, json_t **out)
{
    et_status status = names(x, out);
    if (status == ET_OK || !eti_index_mend(x))
        return status;
    ET_TRY(eti_index_update(x, x->look.folder, false));
    return names(x, out);
}

/* ---- one ---- */

/* Of the row that Q answers: its directory and when it was started; "": Q found no
 * run. */
static et_status
first_row(struct eti_index *x, enum eti_query q, const char *name,
          char directory[PATH_MAX], double *started)
{
    int code;
    sqlite3_stmt *s = eti_index_ask(x, q, name);
    bool any = eti_index_next(s, &code);
    snprintf(directory, PATH_MAX, "%s", any ? eti_index_column(s, 0) : "");
    *started = any ? sqlite3_column_double(s, 1) : 0;
    return eti_index_answered(x, s, code);
}

/* The directory of the run that NAME means; "": no run. Directories are written
 * to after their runs have begun: of those that are unknown, none is of a run that is
 * newer than the time of the next. */
static et_status
find_row(struct eti_index *x, const char *name, char directory[PATH_MAX])
{
    enum { SOME = 8 };
    const struct eti_look *l = &x->look;
    bool is_last = strcmp(name, "last") == 0, more;
    double started;
    for (;;) {
        ET_TRY(first_row(x, is_last ? ETI_Q_NEWEST : ETI_Q_CALLED,
                         is_last ? NULL : name, directory, &started));
        if (l->at == l->n || (is_last && *directory && started >= l->unknown[l->at].t))
            return ET_OK;
        ET_TRY(eti_index_look_on(x, SOME, &more));
    }
}

static et_status
find(struct eti_index *x, const char *folder, const char *name, json_t **out)
{
    char directory[PATH_MAX], before[PATH_MAX] = "";
    json_t *list;
    *out = NULL;
    ET_TRY(eti_index_look(x, folder, false));
    /* One that is gone since it was read is forgotten by looking at it. */
    for (;;) {
        ET_TRY(find_row(x, name, directory));
        if (!*directory)
            return ET_OK;
        if (strcmp(directory, before) == 0)
            break;
        ET_TRY(eti_index_check(x, directory));
        snprintf(before, sizeof before, "%s", directory);
    }
    ET_TRY(answer(x, ETI_Q_FACTS, directory, 0, &list));
    *out = json_incref(json_array_get(list, 0));
    json_decref(list);
    return ET_OK;
}

et_status
eti_index_find(struct eti_index *x, const char *folder, const char *name, json_t **out)
{
    et_status status = find(x, folder, name, out);
    return status != ET_OK && eti_index_mend(x) ? find(x, folder, name, out) : status;
}
