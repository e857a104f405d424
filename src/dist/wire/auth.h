/* SPDX-License-Identifier: Apache-2.0 */
/* auth.h: who may connect over TCP: CURVE, and a list of keys (RELIABILITY.md 7.2). */
#ifndef ETD_AUTH_H
#define ETD_AUTH_H

#include <limits.h>

#include "dist/wire/keys.h"

struct etd_auth {
    struct et_ctx *cx;
    void *zmq;           /* borrowed */
    void *socket;        /* where zmq asks; NULL: closed */
    char path[PATH_MAX]; /* of authorized_keys */
    struct etd_authorized_list list;
    int64_t stamp[4]; /* of the file: another when it has changed */
    double looked;    /* when it was looked at */
    char why[256];    /* it could not be read then, as was said */
    int64_t admitted, refused;
    char last_refused[ETD_KEY_TEXT];
};

/* Begins to answer zmq's questions about keys, in the context ZMQ: before anything is
 * bound. 5004 where PATH is not in order or lets nobody in. */
ET_NODISCARD et_status etd_auth_open(struct et_ctx *cx, void *zmq, const char *path,
                                     struct etd_auth *out);
void etd_auth_close(struct etd_auth *d);
/* Answers zmq's questions, and reads the list again at most once a second. A list that
 * is no longer in order lets nobody in. False: the door itself is broken; close what it
 * guards. */
bool etd_auth_step(struct etd_auth *d);
/* The entry of a key that is in the list now; NULL: it is not, or not any more. */
const struct etd_authorized *etd_auth_find(const struct etd_auth *d, const char *key);

/* May one listen at ADDRESS: "tcp://HOST:PORT", the host written out? EINVAL (5001;
 * 5003 where the port is no port). */
ET_NODISCARD et_status etd_auth_check(struct et_ctx *cx, const char *address);

/* ROUTER gets CURVE with KEYS and is bound to ADDRESS behind D; *BOUND, of ETD_ADDRESS
 * bytes, is the address with the port that it got. 5001, 5002. */
ET_NODISCARD et_status etd_auth_listen(struct etd_auth *d, void *router,
                                       const struct etd_keys *keys, const char *address,
                                       char *bound);
/* The same, and then a stranger with a fresh key knocks: unless it is refused, ROUTER
 * is unbound again. */
ET_NODISCARD et_status etd_auth_bind(struct etd_auth *d, void *router,
                                     const struct etd_keys *keys, const char *address,
                                     char *bound);

#endif
