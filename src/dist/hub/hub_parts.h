/* SPDX-License-Identifier: Apache-2.0 */
/* hub_parts.h: what the files of the hub share.
 *
 * hub.c is the loop and the conversation, hub_send.c how it sends, stream.c what
 * viewers are sent, hub_listen.c where it listens, and control.c commands. */
#ifndef ETD_HUB_PARTS_H
#define ETD_HUB_PARTS_H

#include <stdatomic.h>
#include <zmq.h>

#include "dist/hub/follow.h"
#include "dist/hub/hist.h"
#include "dist/wire/endpoint.h"
#include "dist/wire/router.h"
#include "dist/wire/wire.h"

enum {
    ETD_BACKLOG_BYTES = 8 << 20,
    ETD_BACKLOG_MESSAGES = 65536,
    ETD_BACKLOG_SLOTS = 2 * ETD_BACKLOG_MESSAGES, /* a power of two */
    ETD_PEERS = ETD_CLIENTS,
    ETD_HEX_ID = 2 * ETD_RUN_ID + 1,
    ETD_OUTBOX = 64,              /* answers that a full connection may keep waiting, */
    ETD_OUTBOX_BYTES = 128 << 10, /* and bytes of them */
};

/* ---- what is sent ---- */

/* Frames of the newest records, each encoded once. Position P, counted from 0 since the
 * hub began, is in slot P % ETD_BACKLOG_SLOTS. */
struct etd_backlog {
    struct etd_backlog_slot {
        zmq_msg_t message;
        int64_t seq;  /* of its record, */
        int64_t at;   /* and byte of all frames ever encoded at which it begins */
        bool first;   /* frame of its record */
    } * slot;         /* [ETD_BACKLOG_SLOTS] */
    int64_t from, to; /* positions that it holds: [from, to) */
    int64_t bytes;    /* of all frames ever */
};

/* The model at a moment, in messages for whoever comes. */
struct etd_snap {
    int users; /* viewers that are being sent it, and one while it is the newest */
    int64_t s; /* the record it is behind */
    int n;
    zmq_msg_t *message; /* [n]: SNAP_BEGIN, chunks, SNAP_END */
};

struct etd_peer {
    bool used;
    struct etd_route to;
    char who[ETD_WORD]; /* in the log of commands */
    bool streams;
    int64_t credit;        /* messages of the stream that it will take */
    int64_t next;          /* position of the next frame */
    struct etd_snap *snap; /* being sent; NULL: none is */
    int snap_next;         /* message of it */
    bool wants_snap;       /* as soon as there is room for one */
    int64_t facts_version; /* that it was told of; 0: none yet */
    /* Answers that its connection did not take: they go before more of the stream. */
    zmq_msg_t outbox[ETD_OUTBOX];
    int n_outbox;
    size_t outbox_bytes;
    double heard, said;
    int64_t at;                            /* bytes of all frames before that */
    double behind_since;                   /* past the ring; 0: it is not */
    double moved;                          /* when it was sent the last of the stream */
    struct etd_bucket messages, questions; /* that it may send; questions: of history */
    struct etd_hist *hist;                 /* NULL: it has asked none */
};

/* ---- commands ---- */

enum { ETD_HUB_PENDING = 256, ETD_OPERATORS = 64 };

/* What is known of a command: where its answer stands in control.log. */
struct etd_known {
    unsigned char id[ETD_CMD_ID];
    int64_t answer; /* byte of the line; -1: it is not answered yet */
    bool used;
};

struct etd_hub_pending {
    bool used;
    struct etd_command command;
    double until;        /* monotonic */
    struct etd_route to; /* whom to tell */
};

struct etd_control {
    int fd;                  /* control.log; -1 */
    int64_t size;            /* bytes of it */
    struct etd_known *known; /* [room], by hash */
    int64_t n, room;         /* room: a power of two */
    struct etd_hub_pending pending[ETD_HUB_PENDING];
    struct etd_rate {
        char who[ETD_WORD];
        struct etd_bucket commands;
    } rate[ETD_OPERATORS];
    char lease[ETD_WORD]; /* who has taken the run */
    double lease_until;
};

/* ---- the hub ---- */

struct etd_hub {
    struct et_ctx *cx;
    char directory[PATH_MAX];
    unsigned char run[ETD_RUN_ID];
    char id[ETD_HEX_ID];
    char name[ET_RUN_NAME];
    int supervisor; /* its socket */
    int inotify;    /* -1: none, and the log is looked at 20 times a second */
    bool ended;     /* the supervisor said so, or is gone */
    struct etd_endpoint endpoint;
    double stood_at;        /* when it was looked whether that stands */
    char nowhere[ETD_TEXT]; /* why it listens nowhere; "": it does */
    int places;             /* at which it has listened */
    void *zmq, *router;
    struct etd_follow *follow;
    int64_t left; /* bytes of the log that are not in the model yet */

    struct etd_backlog ring;
    struct etd_snap *snap; /* the newest */
    double snap_at;
    atomic_size_t held; /* bytes of snapshots that zmq or we still have */
    bool blocked;       /* somebody's connection was full */
    unsigned char digest[ETD_DIGEST];
    int64_t digest_at;      /* seq; -1: none */
    char *facts;            /* of run.json, as JSON; NULL: not read yet */
    int64_t facts_version;  /* how often they have changed */
    int64_t facts_stamp[3]; /* of the file */
    double facts_at;        /* when it was looked at */

    struct etd_peer peer[ETD_PEERS];
    struct etd_bucket strangers; /* messages of others that may be looked at now */
    int readers;                 /* of history: hist.h */
    double swept; /* when the places of those that are gone were looked for */
    int64_t n_malformed;

    struct etd_control control;
    char bytes[ETD_CHUNK_BYTES + 256]; /* a frame being made */
};

/* hub_listen.c: where it listens. Makes the router, and claims a place for it; where
 * that cannot be the supervisor is told why, and it is tried again. EIO, ENOMEM. */
ET_NODISCARD et_status etd_hub_listen(struct etd_hub *h);
/* To be called often: listens again where its place is gone, or there was none. EIO
 * where another process of this program has to take over. */
ET_NODISCARD et_status etd_hub_listen_again(struct etd_hub *h);

/* hub_send.c */
struct etd_peer *etd_hub_find(struct etd_hub *h, const struct etd_route *from);
void etd_hub_forget(struct etd_hub *h, struct etd_peer *p);
/* REFUSE or BYE. */
void etd_hub_send_end(struct etd_hub *h, const struct etd_route *to, enum etd_kind kind,
                      const char *code, const char *text);
/* Sends BYTES, or a copy of MESSAGE that shares its bytes: false, not now. */
bool etd_hub_send(struct etd_hub *h, const struct etd_route *to, const void *bytes,
                  size_t n);
/* Sends what waits for P: true, nothing does any more. */
bool etd_hub_flush(struct etd_hub *h, struct etd_peer *p);
bool etd_hub_send_message(struct etd_hub *h, struct etd_peer *p, zmq_msg_t *message);
struct etd_head etd_hub_head(const struct etd_hub *h, enum etd_kind kind);
void etd_hub_drop(struct etd_hub *h, struct etd_peer *p, const char *code,
                  const char *text);

/* stream.c */
ET_NODISCARD et_status etd_backlog_init(struct etd_hub *h);
void etd_backlog_release(struct etd_hub *h);
/* For etd_follow_watch: DATA is the hub. */
void etd_backlog_add(void *data, const struct et_record *r);
/* P begins: after record AFTER (-1: with a snapshot). True: it needs no snapshot. */
bool etd_stream_begin(struct etd_hub *h, struct etd_peer *p, int64_t after);
/* Again from record FROM on, or with a snapshot where the ring has it no more. */
void etd_stream_rewind(struct etd_hub *h, struct etd_peer *p, int64_t from);
/* Sends P what it has credit for. */
void etd_stream_pump(struct etd_hub *h, struct etd_peer *p);
void etd_stream_forget(struct etd_hub *h, struct etd_peer *p);
/* Nobody is sent anything any more. */
void etd_stream_end(struct etd_hub *h);
/* Bytes of frames that P has not been sent yet. */
int64_t etd_stream_behind(const struct etd_hub *h, const struct etd_peer *p);
/* The digest of the model, made at most once for each record; false: no memory. */
bool etd_hub_digest(struct etd_hub *h, unsigned char digest[ETD_DIGEST]);

/* control.c */
/* Reads control.log, and cuts off what a crash left of a line. EIO, ENOMEM. */
ET_NODISCARD et_status etd_control_open(struct etd_hub *h);
/* Sends the supervisor what had no answer when an earlier hub ended. */
void etd_control_resume(struct etd_hub *h);
void etd_control_close(struct etd_hub *h);
void etd_control_command(struct etd_hub *h, struct etd_peer *p,
                         const struct etd_frame *f);
/* An answer of the supervisor. */
void etd_control_answer(struct etd_hub *h, const struct etd_frame *f);
/* Who has taken the run; "" nobody. */
const char *etd_control_lease(struct etd_hub *h);

#endif
