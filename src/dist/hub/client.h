/* SPDX-License-Identifier: Apache-2.0 */
/* client.h: a viewer's end of the conversation with a hub (RELIABILITY.md 5 and 6).
 *
 * A machine that the caller's poll loop drives; nothing here waits:
 *
 *     struct pollfd p = {.fd = etd_client_fd(c), .events = POLLIN};
 *     poll(&p, 1, etd_client_timeout(c));
 *     etd_client_step(c);
 *     ... look at etd_client_status(c) and etd_client_model(c)
 *
 * The descriptor and the timeout may be others after every call. It connects, loads a
 * snapshot into a model, and applies the records that follow; what is missing it asks
 * for by number; when the hub is gone it tries again after 1, 2, 4 ... 30 s, and goes
 * on where it was. What is shown meanwhile stays as it was. */
#ifndef ETD_CLIENT_H
#define ETD_CLIENT_H

#include "dist/hub/model.h"
#include "dist/wire/channel.h"
#include "dist/wire/piece.h"
#include "dist/wire/wire.h"

enum etd_link {
    ETD_LINK_CONNECTING, /* nobody has answered yet */
    ETD_LINK_LOADING,    /* a snapshot is on its way */
    ETD_LINK_LIVE,
    ETD_LINK_STALE,        /* nothing was heard for 3 s */
    ETD_LINK_DISCONNECTED, /* it is tried again in retry_in seconds */
    ETD_LINK_REFUSED,      /* for good: code and text say why */
    ETD_LINK_ENDED,        /* the hub said that it ends, as it does after the run */
};

struct etd_client_status {
    enum etd_link link;
    double silent;           /* seconds since anything was heard */
    double retry_in;         /* DISCONNECTED */
    char code[ETD_LABEL];    /* REFUSED, or why it was cut the last time: "FULL" */
    char text[ETD_TEXT];     /* the same for people */
    char name[ET_RUN_NAME];  /* of the run; "" before WELCOME */
    bool is_operator;        /* may give commands */
    int64_t loaded, loading; /* bytes of the snapshot */
    int64_t missed;          /* records since the last break that have been filled in */
    int64_t snapshots, gaps; /* ever loaded; ever noticed */
    int64_t unknown;         /* frames of kinds and with keys of later versions */
    int64_t facts;           /* times that they have changed */
    int64_t verified, wrong; /* digests that were compared; that differed */
    char lease[ETD_WORD];    /* who has taken the run; "" nobody */
    bool is_holder;          /* this viewer has */
    bool has_ended; /* the run: a worker tells it from its directory, and it is LIVE
                       while more of its files can be asked for */
    bool has_files; /* etd_client_file is answered */
};

struct etd_client_options {
    struct etd_channel_options channel; /* texts are copied */
    unsigned char id[ETD_RUN_ID]; /* the run that is meant: another's hub, which may
                                     listen in its place, is nobody; zeros: any */
    const char *run;              /* at a worker: the run's name; NULL: its latest */
    const char *as; /* said of this viewer in the log of commands; NULL: nothing */
    bool control;   /* commands alone: no snapshot, no records */
    bool whole; /* all records, from the first, if the hub still has them: then there
                       is no snapshot, and no facts */
    int credit; /* messages the hub may be ahead; 0: ETD_CREDIT */
    bool once;  /* a break is the end: nothing is tried again */
};

struct etd_client;
/* EINVAL if TARGET is malformed. A hub that is not there yet is no error. */
ET_NODISCARD et_status etd_client_open(struct et_ctx *cx,
                                       const struct etd_client_options *o,
                                       struct etd_client **out);
void etd_client_close(struct etd_client **c);

int etd_client_fd(const struct etd_client *c);      /* -1: none at this moment */
int etd_client_timeout(const struct etd_client *c); /* for poll: ms, -1 without end */
/* Does what there is to do. ENOMEM alone fails; the model is then as it was. */
ET_NODISCARD et_status etd_client_step(struct etd_client *c);
/* Tries again at once. */
void etd_client_retry(struct etd_client *c);

/* All borrowed until the next step. */
const struct etd_client_status *etd_client_status(const struct etd_client *c);
struct etd_model *etd_client_model(struct etd_client *c);
/* What facts.h describes, as the snapshot had it, and what run.json says since; NULL
 * before. Not zero-terminated. */
const char *etd_client_facts(const struct etd_client *c, size_t *n);
/* Calls FN for each record once it is in the model; NULL: calls nothing. */
void etd_client_watch(struct etd_client *c,
                      void (*fn)(void *data, const struct et_record *r), void *data);
/* Asks for the hub's digest: status.verified or status.wrong goes up. It also does so
 * by itself, every 10 s. */
void etd_client_verify(struct etd_client *c);

/* ---- commands ---- */

/* Sends OP; KEY and VALUE may be NULL. IF_REV -1: whatever the settings' revision. ID
 * is drawn, and names the answers. ECANCELED while the channel is not live: commands
 * are never kept for later. EINVAL where OP is no command. */
ET_NODISCARD et_status etd_client_command(struct etd_client *c, enum etd_op op,
                                          const char *key, const char *value,
                                          int64_t if_rev, int ttl_ms,
                                          unsigned char id[ETD_CMD_ID]);
/* The same again, for an answer that was lost: it is not done twice. */
ET_NODISCARD et_status etd_client_repeat(struct etd_client *c,
                                         const struct etd_command *command);
/* The next answer; false: no other has arrived. */
bool etd_client_answer(struct etd_client *c, struct etd_answer *out);

/* ---- history ---- */

enum { ETD_POINTS = 2048 }; /* of an answer, at most */
struct etd_points {
    int64_t id; /* of the question */
    int n;
    struct et_series_point *point; /* borrowed until the next step */
};
/* Asks for at most MOST points of SERIES with FROM <= ba <= TO. ECANCELED. */
ET_NODISCARD et_status etd_client_history(struct etd_client *c, int64_t id,
                                          const char *series, int64_t from, int64_t to,
                                          int most);
/* The answer that came last: false, none has since the last call. */
bool etd_client_points(struct etd_client *c, struct etd_points *out);

/* ---- files ---- */

/* Asks for a piece of FILE: see etd_piece_ask. One question at a time: the next one
 * takes its place. ECANCELED where the channel is not live, or has no files. */
ET_NODISCARD et_status etd_client_file(struct etd_client *c, enum etd_piece_of file,
                                       int rank, int64_t at);
/* The answer that came last, borrowed until the next step: false, none has since the
 * last call. */
bool etd_client_piece(struct etd_client *c, struct etd_piece *out);

/* ---- all at once ---- */

/* Connects, sends one command, and waits for its answer, SECONDS at most (that is its
 * time to live too). Waits: for commands of the shell. ENOENT: nobody listens;
 * ECANCELED: no answer came. */
ET_NODISCARD et_status etd_client_ask(struct et_ctx *cx,
                                      const struct etd_client_options *o,
                                      enum etd_op op, const char *key,
                                      const char *value, double seconds,
                                      struct etd_answer *out);

#endif
