/* SPDX-License-Identifier: Apache-2.0 */
/* lines.h: what ranks wrote and what happened meanwhile, as one stream of lines in
 * order of time: what Logs shows of a run, wherever its files are. */
#ifndef TUI_LINES_H
#define TUI_LINES_H

#include <stdio.h>

#include "tui/source.h"

struct tui_lines {
    struct et_ctx *cx;
    struct tui_lines_file *file; /* [n_files], the logs of ranks */
    int n_files;
    struct tui_lines_event *event; /* a ring, made with the first event */
    int first_event, n_events;
    int64_t seq;         /* of the newest event whose line was given */
    char text[ETD_TEXT]; /* of the event that was given last */
};

/* The log of RANK, which is read from where FILE stands (taken). A file that grows is
 * read on. ENOMEM: FILE is closed. */
ET_NODISCARD et_status tui_lines_add(struct tui_lines *l, int rank, FILE *file);
bool tui_lines_has(const struct tui_lines *l, int rank);
/* R, which is in M by now: an epoch, evaluation, checkpoint, change of state, command,
 * resume or note becomes a line. LOGS: a line of the log as well, where no file of the
 * ranks is at hand. */
void tui_lines_record(struct tui_lines *l, const struct etd_model *m,
                      const struct et_record *r, bool logs);
/* The same of the events that M has kept, after it was loaded as a whole. */
void tui_lines_model(struct tui_lines *l, const struct etd_model *m, bool logs);
/* R, of events.log, where no model has it: the end of an epoch becomes a line, in its
 * place among those of other events. What came before a line that was given, or is kept
 * already, is left out. */
void tui_lines_epoch(struct tui_lines *l, const struct et_record *r);
/* The next line: of all that come next the earliest. Lines of files that are later than
 * UNTIL wait, for events before them that have still to be read. */
bool tui_lines_next(struct tui_lines *l, double until, struct tui_log_line *out);
void tui_lines_release(struct tui_lines *l);

#endif
