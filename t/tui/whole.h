/* SPDX-License-Identifier: Apache-2.0 */
/* whole.h: whole screens, compared with a file that has them one behind the other, each
 * below "## " and its name. ETUDE_UPDATE=1 writes the file anew, for a person to look
 * at. */
#ifndef ETUDE_T_TUI_WHOLE_H
#define ETUDE_T_TUI_WHOLE_H

#include <stdio.h>

/* Reads t/tui/NAME.txt of the sources, before the working directory is left. */
void whole_open(const char *name);
/* What the next screen is written to, as text. */
FILE *whole_text(void);
/* A test, NAME: what was written is what the file has below that name. */
void whole_is(const char *name);
void whole_close(void);

#endif
