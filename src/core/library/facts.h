/* SPDX-License-Identifier: Apache-2.0 */
/* facts.h: what is known of a run from its directory, as JSON; and what of it is true.
 *
 *     directory name id state exit_code started ended pid boot_id version threads
 *     written (when run.json was)
 *     rested      seconds between its ends and its next starts; absent
 *     recipe reason ep ba sp train_seconds resumes
 *     algorithms  [name...]: of the recipe, those that are off left out, then those
 *                 that joined
 *     joined      text: those that the recipe does not name, blanks between; absent
 *     tags        text: words with blanks between; absent
 *     config      {"optimizer.lr": value...}: the resolved recipe, flat
 *     metrics     {name: {n, last, ba, best, best_ba, best_t, min, max}}: values of
 *                 evaluations, losses and speeds; best as its name says
 *     problem     text: what could not be read; absent
 *
 * Times are in seconds since 1970. What is not known is null or absent. */
#ifndef ETI_FACTS_H
#define ETI_FACTS_H

#include <jansson.h>

#include "etude/run.h"

enum { ETI_FACT_TEXT = 256 };

/* Reads DIRECTORY. ENOENT without a run.json; what else is damaged becomes its problem.
 * The caller owns *OUT. */
ET_NODISCARD et_status eti_facts_read(struct et_ctx *cx, const char *directory,
                                      json_t **out);
/* The "config" of facts, of the N bytes of a recipe.resolved.yaml; *ALGORITHMS, which
 * may be NULL, becomes its algorithms. Returns NULL if they are no such recipe. The
 * caller owns both. */
struct json_t *eti_facts_config(struct et_ctx *cx, const char *text, size_t n,
                                struct json_t **algorithms);
/* The JSON of the file at PATH, read with jansson's FLAGS; NULL with *ERROR where it is
 * none, or no regular file: a pipe is not waited for. */
struct json_error_t;
struct json_t *eti_facts_load(const char *path, size_t flags,
                              struct json_error_t *error);
/* The same from run.json alone: enough to see whether the run is alive. */
ET_NODISCARD et_status eti_facts_read_state(struct et_ctx *cx, const char *directory,
                                            json_t **out);
/* Text that is another when the files of DIRECTORY that facts are from have changed; ""
 * where there is no run. *NEWEST: when they were written last. Returns BUF of
 * ETI_FACT_TEXT bytes. */
const char *eti_facts_stamp(const char *directory, char *buf, double *newest);
/* TEXT, of a command's record, may tell that an algorithm joined, which FACTS have from
 * then on. True: that is new. */
bool eti_facts_note_joined(json_t *facts, const char *text);
/* NAME joined. True: that is new. */
bool eti_facts_note_name(json_t *facts, const char *name);
/* FACTS whose "joined" may be newer than its "algorithms": these have them all
 * again. */
void eti_facts_add_joined(json_t *facts);
/* Gives a run whose process is gone the state that it has written since, or "crashed":
 * call it at the moment that they are looked at. */
void eti_facts_make_true(json_t *facts);
/* The machine's since it was started, which tells a run that is alive from one whose
 * machine was restarted; null where that is not known. The caller owns it. */
json_t *eti_boot_id(void);
/* When the process began, in ticks of its machine since that started: no clock that
 * somebody may set. 0: no process has that id, or it has ended and its parent has yet
 * to ask how. */
int64_t eti_process_started(int64_t pid);
/* Is its process alive? */
bool eti_facts_is_alive(const json_t *facts);
/* Does it go on by its state alone? */
bool eti_facts_goes_on(const json_t *facts);

/* The value of a key as people write it: one of the above, a key of the recipe ("model"
 * stands for "model.name"), or a metric by its full name or, in any case, its last
 * part: its best value. NULL: the run says nothing of it. Borrowed, or in BUF of
 * ETI_FACT_TEXT bytes. */
const char *eti_facts_get(const json_t *facts, const char *key, char *buf);
/* The metrics entry of NAME, and its full name; NULL: none, or two fit. */
const json_t *eti_facts_metric(const json_t *facts, const char *name, size_t n,
                               const char **full);

#endif
