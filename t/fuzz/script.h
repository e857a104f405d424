/* SPDX-License-Identifier: Apache-2.0 */
/* script.h: a conversation as text, for fuzz targets of whole conversations.
 *
 *     times 40                      what is below is done so often
 *     viewer HELLO run=test-otter   a frame that the viewer sends: keys and values are
 *     hub WELCOME minor=0 lease=me  integers, yes and no, @N (N bytes) or else texts
 *     step                          a word that the target knows
 *
 * What cannot be understood is left out, so that each damaged script is still one. */
#ifndef ETUDE_T_FUZZ_SCRIPT_H
#define ETUDE_T_FUZZ_SCRIPT_H

#include <stddef.h>
#include <stdint.h>

#include "dist/wire/wire.h"

struct script_line {
    const char *who;  /* its first word */
    const char *rest; /* behind that; "" without */
    char *bytes;      /* the frame, for "WHO KIND ..." */
    size_t n;         /* of it; 0: the line has none */
};
/* Calls FN with each line, in order. RUN becomes the run of every frame's head. */
void script_play(const uint8_t *data, size_t size, const unsigned char run[ETD_RUN_ID],
                 void (*fn)(void *data, const struct script_line *line), void *arg);

#endif
