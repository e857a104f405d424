/* SPDX-License-Identifier: Apache-2.0 */
/* session_parts.h: what the files of a session share.
 *
 * session.c is the conversation, and with it what is said of runs; session_host.c what
 * the host says of itself. */
#ifndef ETD_SESSION_PARTS_H
#define ETD_SESSION_PARTS_H

#include <jansson.h>
#include <limits.h>

#include "dist/worker/child.h"
#include "dist/worker/replay.h"
#include "dist/worker/session.h"

/* What a conversation is about: its first message says so, for all of it. */
enum talk {
    TALK_NONE, /* nothing was said yet */
    TALK_HOST,
    TALK_RUN,    /* and then, and only then, there is a channel */
    TALK_REPLAY, /* a run that has ended: then, and only then, there is a past */
    TALK_OVER,   /* nothing is taken any more, and nothing said */
};

enum {
    ETD_SESSION_WAITING = 32,            /* answers that wait for the viewer, and */
    ETD_SESSION_WAITING_BYTES = 1 << 20, /* bytes of them */
};

struct etd_session {
    struct etd_host *host;
    char who[ETD_WORD];
    bool is_operator;
    bool (*send)(void *data, const void *bytes, size_t n);
    void *data;
    enum talk talk;
    struct etd_channel *channel;   /* to the hub; NULL unless TALK_RUN */
    struct etd_replay *replay;     /* NULL unless TALK_REPLAY */
    char directory[PATH_MAX];      /* of the run, where there is one */
    unsigned char run[ETD_RUN_ID]; /* whose it is to be */
    struct etd_session_answer {
        char *bytes;
        size_t n;
    } waiting[ETD_SESSION_WAITING]; /* its connection did not take them: oldest first */
    int n_waiting;
    size_t waiting_bytes;
    const char *held; /* of the hub, that the viewer did not take; NULL: none */
    size_t n_held;
    json_t *runs; /* being told; NULL: none are */
    size_t next_run;
    struct etd_child gpus; /* what it says of them goes into MACHINE */
    double gpus_until;     /* monotonic */
    int64_t load;          /* bytes that are still to be sent */
    bool waits;            /* for the answer to */
    unsigned char start_id[ETD_CMD_ID];
    char bytes[ETD_CHUNK_BYTES];
};

/* session.c */
/* Sends an answer now, or in a later step where the viewer's connection is full: nobody
 * asks again for what was answered. One that takes no answers at all is left. */
void etd_session_say(struct etd_session *s, const void *bytes, size_t n);
struct etd_head etd_session_head(const struct etd_session *s, enum etd_kind kind);
void etd_session_answer(struct etd_session *s, const unsigned char *id,
                        enum etd_kind kind, int code, const char *text);

/* session_host.c */
void etd_session_welcome_host(struct etd_session *s);
/* A question to the host itself. */
void etd_session_ask_host(struct etd_session *s, const struct etd_frame *f);
void etd_session_step_host(struct etd_session *s);
/* Facts of the newest runs, or of those that are ALIVE; the caller owns them. NULL: the
 * list cannot be read. */
json_t *etd_session_runs(struct etd_session *s, bool alive);

#endif
