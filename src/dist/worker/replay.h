/* SPDX-License-Identifier: Apache-2.0 */
/* replay.h: a run that has ended, told to a viewer from its directory in the frames of
 * a hub. */
#ifndef ETD_REPLAY_H
#define ETD_REPLAY_H

#include <jansson.h>

#include "dist/wire/wire.h"

/* Sends a message to the viewer. False: its connection is full at this moment. */
typedef bool etd_send_fn(void *data, const void *bytes, size_t n);

/* Whole runs in memory at once, some 16 MiB each: of conversations that are being told
 * one. Afterwards a conversation needs none. */
enum {
    ETD_REPLAY_MODELS = 8,
    ETD_REPLAY_OF_VIEWERS = 6, /* of them that viewers may hold: who steers finds one */
};

struct etd_replay_options {
    const json_t *facts; /* of the run (facts.h): directory, id and name are used */
    const char *role;    /* of the viewer: "operator" or "viewer" */
    int64_t after;       /* records after this one; -1: a snapshot of the whole run */
    int64_t credit;      /* messages until it gives more; not above 0: ETD_CREDIT */
    bool stays;          /* the viewer reads files afterwards; else it is told END */
    /* Of all conversations together, borrowed: threads that read history (hist.h), and
     * models that are held, ETD_REPLAY_MODELS at most. */
    int *readers, *models;
    etd_send_fn *send;
    void *data;
};

struct etd_replay;
/* Says WELCOME. Nothing of O but DATA and the counts is kept. ENOENT, EIO, EFORMAT: its
 * events.log cannot be read; ECANCELED: too many are being told; ENOMEM. */
ET_NODISCARD et_status etd_replay_open(struct et_ctx *cx,
                                       const struct etd_replay_options *o,
                                       struct etd_replay **out);
void etd_replay_close(struct etd_replay **p);
/* A PING, NACK or HIST of the viewer; other kinds are not answered. */
void etd_replay_message(struct etd_replay *p, const struct etd_frame *f);
/* Reads and sends for about 10 ms at most. False: the conversation is over. */
bool etd_replay_step(struct etd_replay *p);
/* Has it something to do at once? (Else it waits for the viewer.) */
bool etd_replay_is_busy(const struct etd_replay *p);
/* Is an answer to HIST under way? Then a step every few milliseconds finds it. */
bool etd_replay_is_reading(const struct etd_replay *p);

#endif
