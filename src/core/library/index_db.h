/* SPDX-License-Identifier: Apache-2.0 */
/* index_db.h: what the files of the index of runs share: its database. See index.h.
 *
 *     runs     what was read of a run. watch: its files have to be looked at; without
 *              it the run has settled, and its directory alone is. stamp: of its files,
 *              place: of its directory, both as they were when they were read
 *     others   a directory beside runs that is not a run yet: run.json is written later
 *     folders  a directory that was read for the names in it
 *
 * A place is the time of a directory, and "" where that was a moment ago: it may be
 * written again without having another. */
#ifndef ETI_INDEX_DB_H
#define ETI_INDEX_DB_H

#include <limits.h>
#include <sqlite3.h>

#include "core/library/index.h"

enum { ETI_PLACE = 64 };
enum eti_index_watch { ETI_SETTLED, ETI_RECENT, ETI_GOES_ON };

/* All that is asked of it. */
#define ETI_INDEX_ROWS   "SELECT directory, watch, place, stamp, started FROM runs "
#define ETI_INDEX_FACTS  "SELECT directory, stamp, facts FROM runs "
#define ETI_INDEX_NEWEST " ORDER BY started DESC, directory DESC "
#define ETI_QUERIES(X)                                                                 \
    X(ROW, ETI_INDEX_ROWS "WHERE directory = ?")                                       \
    X(GOING_ON, ETI_INDEX_ROWS "WHERE watch = 2")                                      \
    X(PAGE, ETI_INDEX_ROWS "WHERE (started, directory) < (?2, ?1)" ETI_INDEX_NEWEST    \
                           "LIMIT ?3")                                                 \
    X(PUT, "INSERT OR REPLACE INTO runs(directory, watch, place, stamp, started, "     \
           "name, state, recipe, facts) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)")            \
    X(SETTLE, "UPDATE runs SET place = ?2, watch = ?3 WHERE directory = ?1")           \
    X(FORGET, "DELETE FROM runs WHERE directory = ?")                                  \
    X(BELOW, "SELECT directory FROM runs WHERE directory > ?1 || '/' AND directory < " \
             "?1 || '0'")                                                              \
    X(OTHERS, "SELECT directory, place FROM others WHERE folder = ?")                  \
    X(PUT_OTHER, "INSERT OR REPLACE INTO others(directory, folder, place) "            \
                 "VALUES(?, ?, ?)")                                                    \
    X(FORGET_OTHER, "DELETE FROM others WHERE directory = ?")                          \
    X(FOLDER, "SELECT place FROM folders WHERE directory = ?")                         \
    X(PUT_FOLDER, "INSERT OR REPLACE INTO folders(directory, place) VALUES(?, ?)")     \
    X(DOUBT_FOLDER, "UPDATE folders SET place = '' WHERE directory = ?")               \
    X(VERSION, "PRAGMA data_version")                                                  \
    X(COUNT, "SELECT count(*) FROM runs")                                              \
    X(LIST, ETI_INDEX_FACTS ETI_INDEX_NEWEST "LIMIT ?1")                               \
    X(LIVE, ETI_INDEX_FACTS "WHERE watch = 2" ETI_INDEX_NEWEST)                        \
    X(OF_RECIPE, ETI_INDEX_FACTS "WHERE recipe = ?1" ETI_INDEX_NEWEST "LIMIT ?2")      \
    X(FACTS, ETI_INDEX_FACTS "WHERE directory = ?")                                    \
    X(NAMES, "SELECT directory, name, state, watch FROM runs" ETI_INDEX_NEWEST)        \
    X(NEWEST, "SELECT directory, started FROM runs" ETI_INDEX_NEWEST "LIMIT 1")        \
    X(CALLED,                                                                          \
      "SELECT directory, started FROM runs WHERE name = ?1 OR directory = ?1 "         \
      "OR substr(directory, -1 - length(?1)) = '/' || ?1" ETI_INDEX_NEWEST "LIMIT 1")

enum eti_query {
#define ETI_QUERY(name, sql) ETI_Q_##name,
    ETI_QUERIES(ETI_QUERY)
#undef ETI_QUERY
        ETI_Q_COUNT_OF
};

/* A directory in a folder of which no row tells. */
struct eti_unknown {
    char *directory;
    double t; /* when it was changed */
};

/* What is being looked for. */
struct eti_look {
    char folder[PATH_MAX]; /* as it was asked for */
    bool again;
    char whole[PATH_MAX], place[ETI_PLACE]; /* of it, to be kept when all is read */
    struct eti_unknown *unknown; /* [n], the newest first; AT of them are read */
    size_t n, at, room;
    char last[PATH_MAX]; /* of the rows, the newest first, that were looked at */
    double last_started;
    bool has_all; /* no row is behind it */
};

struct eti_index {
    struct et_ctx *cx;
    char path[PATH_MAX];
    sqlite3 *db;
    sqlite3_stmt *query[ETI_Q_COUNT_OF]; /* NULL: not needed yet */
    bool writes;                         /* within a transaction */
    bool is_damaged, is_locked; /* by another process, for longer than one waits */
    int n_mended;
    struct eti_look look;
    json_t *listed;    /* what was so far: {directory: [stamp, facts]} */
    int64_t changes;   /* of rows, by this process */
    int64_t seen[2];   /* changes and data_version when the last list was made */
    bool lists_living; /* and it had runs that may die */
    struct eti_index_work work;
    char problem[256]; /* "": it is kept */
};

/* EIO with what the database says, which may be damaged. */
ET_NODISCARD et_status eti_index_fail(struct eti_index *x, const char *doing);
/* If that is why the last call failed: makes a damaged database anew, and one in memory
 * in the place of one that another process does not let go. Is it worth another try? */
bool eti_index_mend(struct eti_index *x);
/* A statement to be stepped, A bound to its first parameter (NULL: that is bound by the
 * caller); NULL: it cannot be made. Borrowed; eti_index_answered ends it. */
sqlite3_stmt *eti_index_ask(struct eti_index *x, enum eti_query q, const char *a);
/* Its next row; false: no row follows, *CODE says why. */
bool eti_index_next(sqlite3_stmt *s, int *code);
ET_NODISCARD et_status eti_index_answered(struct eti_index *x, sqlite3_stmt *s,
                                          int code);
/* "" for NULL. */
const char *eti_index_column(sqlite3_stmt *s, int i);
/* Steps a statement that answers nothing, in a transaction that eti_index_commit
 * ends. */
ET_NODISCARD et_status eti_index_write(struct eti_index *x, sqlite3_stmt *s);
/* STATUS, or that of the end: where it is none, what was written is taken back. */
ET_NODISCARD et_status eti_index_commit(struct eti_index *x, et_status status);

/* Looks at a run that is known again, and at no other. */
ET_NODISCARD et_status eti_index_check(struct eti_index *x, const char *directory);
void eti_index_stop_looking(struct eti_index *x);

#endif
