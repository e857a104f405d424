/* index.h: the list of runs: a cache of their facts in $XDG_STATE_HOME/etude/runs.db.
 *
 * It may be deleted at any time: runs in the folders where one looks for them are found
 * again. Several processes may use it at once. */
#ifndef ETI_INDEX_H
#define ETI_INDEX_H

#include "core/run/facts.h"

struct eti_index;
/* Opens the list at PATH (NULL: the user's), makes it where there is none, and makes it
 * anew where it is damaged, with a line in the log. Where it cannot be kept, it lives
 * as long as the process, and that is said. ENOMEM, EIO. */
ET_NODISCARD et_status eti_index_open(struct et_ctx *cx, const char *path,
                                      struct eti_index **out);
/* Why it cannot be kept; NULL: it is. Borrowed. */
const char *eti_index_problem(const struct eti_index *index);
void eti_index_close(struct eti_index **index);

/* Reads the run in DIRECTORY, unless it is known as it is. ENOENT where there is none.
 */
ET_NODISCARD et_status eti_index_add(struct eti_index *index, const char *directory);
/* Adds every run in FOLDER, reads again those that have changed, and forgets those that
 * are gone. AGAIN: reads all. */
ET_NODISCARD et_status eti_index_update(struct eti_index *index, const char *folder,
                                        bool again);
/* The facts of all, with true states, the newest first. The caller owns *OUT; the facts
 * in it are shared with later lists and are not changed. */
ET_NODISCARD et_status eti_index_list(struct eti_index *index, json_t **out);

#endif
