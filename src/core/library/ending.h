/* SPDX-License-Identifier: Apache-2.0 */
/* ending.h: what a run that has ended came to, and the ways on: the same facts for
 * `etude show` and the workbench. */
#ifndef ETI_ENDING_H
#define ETI_ENDING_H

#include <jansson.h>

#include "etude/ctx.h"

enum { ETI_WAYS = 4 };

/* Of the run FACTS (facts.h), which has ended:
 *
 *     best        {metric, value, ba}: of its evaluations; null
 *     speed       samples a second, as eti_run_speed; null
 *     earlier     {name, value, difference, better, same_seed}: the run of the same
 *                 recipe that finished before with the best value of that metric; null
 *     kept        {label, path, n, all: [{label, path}...]}: the newest checkpoint, how
 *                 many there are, and all of them, the newest first; null
 *     ways        [{key, text, command: [word...]}]: what can be done, the likeliest
 *                 first. `key` is its key on the end screen; `command` has no "etude"
 *
 * NULL: it goes on, or memory is out. The caller owns it. */
json_t *eti_ending(struct et_ctx *cx, const json_t *facts);
/* The `ways` alone, where KEPT is known from elsewhere: a run is called by its
 * `directory`. The caller owns them. */
json_t *eti_ending_ways(struct et_ctx *cx, const json_t *facts, const json_t *kept);

#endif
