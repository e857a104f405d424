/* SPDX-License-Identifier: Apache-2.0 */
/* session.h: one viewer's conversation with a host: with the host itself, or through it
 * with the hub of one of its runs. A worker has one for each connection, and what ssh
 * starts on the other side one for its pipe. */
#ifndef ETD_SESSION_H
#define ETD_SESSION_H

#include <sys/types.h>

#include "dist/wire/keys.h"
#include "dist/wire/wire.h"
#include "dist/worker/start.h"

enum {
    ETD_LOAD_MOST = 4 << 20, /* bytes that LOAD asks for */
    ETD_READING_MS = 5,      /* from step to step, as long as history is read beside */
};

/* What sessions of a process share. */
struct etd_host {
    struct et_ctx *cx;
    void *zmq;           /* a context */
    int readers, models; /* of history, and of ended runs: replay.h */
    struct etd_starts starts;
};

struct etd_session;
/* SEND is called with messages for the viewer: false, not now. WHO and the role are of
 * its key. DATA and HOST are borrowed. ENOMEM. */
ET_NODISCARD et_status etd_session_new(struct etd_host *host, const char *who,
                                       bool is_operator,
                                       bool (*send)(void *data, const void *bytes,
                                                    size_t n),
                                       void *data, struct etd_session **out);
void etd_session_free(struct etd_session **s);
/* A message of the viewer. ENOMEM; what it may not say is answered. */
ET_NODISCARD et_status etd_session_message(struct etd_session *s, const void *bytes,
                                           size_t n);
/* To poll for reading; -1: it talks to no hub, waits for no child. */
int etd_session_hub_fd(const struct etd_session *s);
int etd_session_child_fd(const struct etd_session *s);
/* Passes on what has come since. False: the conversation is over. */
bool etd_session_step(struct etd_session *s);
/* Can it go on at once, without waiting for input? */
bool etd_session_is_busy(const struct etd_session *s);
/* Is a thread reading for it, so that a step every few milliseconds is enough? */
bool etd_session_is_reading(const struct etd_session *s);
/* Says BYE with a reason. */
void etd_session_bye(struct etd_session *s, const char *code, const char *text);

#endif
