/* SPDX-License-Identifier: Apache-2.0 */
/* start.h: recipes that operators send, started as runs of this user.
 *
 * FOLDER/start-<id>/ is made before the recipe in it is given to `etude train -d`, and
 * the answer is written there when that has come back: a command that comes again, to
 * this process or another of this user, starts nothing, and gets the answer that it
 * got. Folders of more than a day are removed. */
#ifndef ETD_START_H
#define ETD_START_H

#include "dist/wire/wire.h"
#include "dist/worker/child.h"

enum {
    ETD_STARTING = 4,             /* at once */
    ETD_RECIPE_BYTES = 200 << 10, /* of a recipe that is sent */
};

/* One under way. */
struct etd_start {
    bool used;
    unsigned char id[ETD_CMD_ID];
    struct etd_child child;
};

struct etd_starts {
    struct et_ctx *cx;
    const char *program; /* this one, */
    const char *folder;  /* and the endpoints' (endpoint.h); both borrowed */
    struct etd_start start[ETD_STARTING];
};

/* Begins what START in F asks for, unless that was begun before: an answer will come.
 * False: *OUT is the answer, REJECTED. GPUS: how many this machine has. */
bool etd_start_take(struct etd_starts *s, const struct etd_frame *f, int gpus,
                    struct etd_answer *out);
/* The answer to the command ID; false: it has no answer yet. EXPIRED, where whoever
 * began it is gone and nobody knows what came of it. */
bool etd_start_answer(struct etd_starts *s, const unsigned char *id,
                      struct etd_answer *out);
/* Takes what has been said since, and writes answers down. */
void etd_starts_step(struct etd_starts *s);
/* Is any under way? */
bool etd_starts_any(const struct etd_starts *s);

#endif
