/* SPDX-License-Identifier: Apache-2.0 */
/* index.h: the list of runs: a cache of their facts in $XDG_STATE_HOME/etude/runs.db.
 *
 * It may be deleted at any time: runs in the folders where one looks for them are found
 * again. Several processes may use it at once. Where it is damaged it is made anew,
 * with a line in the log.
 *
 * What has changed is seen by times of files: a folder that is as it was has no new
 * runs; a run that is over, and whose directory is as it was, has the facts that it
 * had: whoever writes files of a run replaces them. Only what goes on, or was written a
 * moment ago, has its files looked at. What people wrote into a file of a run that is
 * over is seen by reading all AGAIN. */
#ifndef ETI_INDEX_H
#define ETI_INDEX_H

#include "core/library/facts.h"

enum {
    ETI_INDEX_PAGE = 64, /* runs that a screen can show */
    ETI_INDEX_LOOKS =
        16, /* at runs that are known, in the time that it takes to read one */
};

struct eti_index;
/* Opens the list at PATH (NULL: the user's), and makes it where there is none. Where it
 * cannot be kept, it lives as long as the process, and that is said. ENOMEM, EIO. */
ET_NODISCARD et_status eti_index_open(struct et_ctx *cx, const char *path,
                                      struct eti_index **out);
/* Why it cannot be kept; NULL: it is. Borrowed. */
const char *eti_index_problem(const struct eti_index *index);
void eti_index_close(struct eti_index **index);

/* What was done since it was opened: what takes time, counted. */
struct eti_index_work {
    int64_t read;    /* runs, from their directories */
    int64_t loaded;  /* facts, from the index */
    int64_t looks;   /* at the time of a directory */
    int64_t stamps;  /* at the times of the files of a run */
    int64_t folders; /* read for the names in them */
};
const struct eti_index_work *eti_index_get_work(const struct eti_index *index);

/* ---- looking: index_look.c ---- */

/* Reads the run in DIRECTORY, unless it is known as it is. ENOENT where there is
 * none. */
ET_NODISCARD et_status eti_index_add(struct eti_index *index, const char *directory);
/* Begins to look for what has changed: at runs that go on, at the newest page of those
 * that are known, and for new ones in FOLDER, of which it reads the newest page.
 * However many there are: this does not take long. AGAIN: all runs are read again. */
ET_NODISCARD et_status eti_index_look(struct eti_index *index, const char *folder,
                                      bool again);
/* Goes on with that, the newest first: reads at most N runs, or looks at
 * ETI_INDEX_LOOKS times as many. *MORE: that was not all. */
ET_NODISCARD et_status eti_index_look_on(struct eti_index *index, int n, bool *more);
/* All of that: reads every run in FOLDER that is new, and those that have changed, and
 * forgets those that are gone. */
ET_NODISCARD et_status eti_index_update(struct eti_index *index, const char *folder,
                                        bool again);

/* ---- what there is: index_list.c ---- */

/* How many runs there are, those that have yet to be read among them. */
int64_t eti_index_count(struct eti_index *index);
/* May a list differ from the one that was made last? */
bool eti_index_has_changed(struct eti_index *index);
/* The facts of the newest MOST (0: of all), with true states, the newest first. The
 * caller owns *OUT; the facts in it are shared with later lists and are not changed. */
ET_NODISCARD et_status eti_index_list(struct eti_index *index, int64_t most,
                                      json_t **out);
/* The same of those that are alive. */
ET_NODISCARD et_status eti_index_live(struct eti_index *index, json_t **out);
/* The same of the newest MOST of the recipe that is called RECIPE. */
ET_NODISCARD et_status eti_index_of_recipe(struct eti_index *index, const char *recipe,
                                           int64_t most, json_t **out);
/* [{name, state}] of all, with true states, the newest first. The caller owns *OUT. */
ET_NODISCARD et_status eti_index_names(struct eti_index *index, json_t **out);
/* The newest run that is called NAME, has that directory, or one with that last part,
 * or with "last" the newest, with its true state. Looks in FOLDER, no further than it
 * must. The caller owns *OUT; NULL: NAME means no run. */
ET_NODISCARD et_status eti_index_find(struct eti_index *index, const char *folder,
                                      const char *name, json_t **out);

#endif
