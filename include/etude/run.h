/* run.h: what a run leaves behind, and what people see of it while it goes on.
 *
 * A run directory, what is in it (GLOSSARY.md), the sink that keeps its records, a
 * reader of those, and progress for a terminal, a pipe, or a program. */
#ifndef ETUDE_RUN_H
#define ETUDE_RUN_H

#include <stdio.h>

#include "etude/callback.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- progress ---- */

/* bar    one line, redrawn at most 10 times a second
 * plain  a line every 30 s, and at each epoch, evaluation, warning, and the end
 * json   an object per batch, epoch, evaluation, line of the log, and the end
 *
 * Formats: UX.md section 2; short labels, but in json full names. */
enum et_progress_kind { ET_PROGRESS_BAR, ET_PROGRESS_PLAIN, ET_PROGRESS_JSON };

struct et_progress {
    enum et_progress_kind kind;
    FILE *out;            /* borrowed; flushed after each line */
    struct et_time every; /* sec or ba between lines of training; unset or 0: 0.1 s for
                             a bar, 30 s for plain, every batch for json */
    int columns;          /* bar: of the terminal; 0 = 132 */
};
/* A logger that writes to P->out and nowhere else. Its type->text takes lines of the
 * log: plain and bar write warnings and errors, json all. EINVAL for another unit of
 * every. */
ET_NODISCARD et_status et_progress_new(struct et_ctx *cx, const struct et_progress *p,
                                       struct et_callback **out);

#ifdef __cplusplus
}
#endif
#endif
