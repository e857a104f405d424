/* SPDX-License-Identifier: Apache-2.0 */
/* run_impl.h: a run as the files that begin one and go on with one see it (private to
 * this folder). */
#ifndef ETI_RUN_IMPL_H
#define ETI_RUN_IMPL_H

#include <jansson.h>

#include "core/journal/events.h"
#include "core/loggers/progress.h"
#include "core/loggers/thin.h"
#include "etude/control.h"

enum { ETI_RUN_FOLDER_BYTES = 3072 };
struct et_run {
    struct et_sink sink; /* first */
    struct et_ctx *cx;
    struct eti_events_writer events;
    struct eti_thin thin;  /* what goes there */
    struct eti_output log; /* logs/rank<rank>.txt */
    json_t *facts;         /* run.json */
    char directory[ETI_RUN_FOLDER_BYTES];
    char name[ET_RUN_NAME];
    char id[2 * ETI_EVENTS_ID + 1];
    int64_t incarnation;
    int dir;                /* open and locked for as long as the run is; -1: not */
    struct et_timestamp ts; /* of the last event seen, for records made here */
    struct et_sink *to; /* of a run that another process keeps; NULL: it is this one */
    int rank;
};

/* The folder is one process's, from before its first file on. ECANCELED: another has
 * it. */
ET_NODISCARD et_status eti_run_lock_folder(struct et_run *r);
/* Opens what is written beside the log: logs/. */
ET_NODISCARD et_status eti_run_open_logs(struct et_run *r);
/* Records go to the log by way of what makes them fewer. */
void eti_run_begin_thinning(struct et_run *r, struct et_time interval);
/* What run.json says of the command line. */
json_t *eti_run_command(const struct et_run_config *config);

/* directory_resume.c: takes over the directory of a run that has ended, or whose
 * process is gone. */
ET_NODISCARD et_status eti_run_go_on(struct et_run *r,
                                     const struct et_run_config *config);

#endif
