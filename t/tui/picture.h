/* SPDX-License-Identifier: Apache-2.0 */
/* picture.h: a screen of a run that t/tui/example wrote, and what stands on it. */
#ifndef ETUDE_T_PICTURE_H
#define ETUDE_T_PICTURE_H

#include "tui/app.h"

extern char *picture; /* of the last draw: lines of text; NULL before the first */

/* Makes FOLDER, whose name ends with XXXXXX, and a run in it: ARGS of t/tui/example. */
void picture_run(char *folder, const char *args);
/* The run's screen WHERE, 80x24 in ASCII. CLASS gets its source's functions, of which
 * CHANGE, called before the first use, may exchange some. */
struct tui_app *picture_open(struct et_ctx *cx, const char *folder,
                             enum tui_where where, struct tui_source_class *class,
                             void (*change)(struct tui_source_class *class));
void picture_draw(struct tui_app *app);
/* Types KEYS, characters each of which is a key, and draws. */
void picture_press(struct tui_app *app, const char *keys);
/* A test: TEXT stands on the screen. */
void picture_has(const char *text, const char *name);
/* Frees APP and the picture, and removes FOLDER. */
void picture_close(struct tui_app **app, const char *folder);

#endif
