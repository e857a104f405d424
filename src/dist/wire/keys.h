/* SPDX-License-Identifier: Apache-2.0 */
/* keys.h: keys of CURVE: one's own pair, and those that are let in
 * (RELIABILITY.md 7.3). */
#ifndef ETD_KEYS_H
#define ETD_KEYS_H

#include <stdint.h>
#include <sys/types.h>

#include "dist/wire/channel.h"

enum {
    ETD_FINGERPRINT = 52,      /* "SHA256:" and 43 characters, zero included */
    ETD_KEYS_MOST = 256,       /* lines of an authorized_keys that let somebody in */
    ETD_KEYS_BYTES = 64 << 10, /* of the file, at most */
    ETD_COMMENT = 64,
};

/* Is TEXT a key: 40 characters of Z85? */
bool etd_key_is(const char *text);
/* "SHA256:..." of a public key, as people compare it. Returns BUF of
 * ETD_FINGERPRINT. */
const char *etd_key_fingerprint(const char *public_key, char *buf);
/* A new pair, whose public half begins with a letter or digit. ENOTSUP where zmq was
 * built without CURVE. */
ET_NODISCARD et_status etd_keys_draw(struct et_ctx *cx, struct etd_keys *out);

/* ---- one's own: a file "curve.key" with the lines "public KEY" and "secret KEY"
 * ---- */

/* Writes it, 0600; ECANCELED where PATH is there already, which stays. EIO. */
ET_NODISCARD et_status etd_keys_write(struct et_ctx *cx, const char *path,
                                      const struct etd_keys *keys);
/* Refuses (5004) one that others can read or that belongs to somebody else. ENOENT. */
ET_NODISCARD et_status etd_keys_read(struct et_ctx *cx, const char *path,
                                     struct etd_keys *out);

/* ---- who is let in: authorized_keys ----
 *
 *     viewer|operator KEY COMMENT [until=YYYY-MM-DD]     # or empty
 *
 * A viewer sees; an operator also gives commands and, at a worker, starts recipes: that
 * is as good as a login. Until: through that day, UTC. */

struct etd_authorized {
    char key[ETD_KEY_TEXT];
    bool is_operator;
    double until; /* seconds since 1970; 0: for ever */
    char comment[ETD_COMMENT];
};
struct etd_authorized_list {
    struct etd_authorized key[ETD_KEYS_MOST];
    int n;
};
/* Reads N BYTES of such a file, a pure function: 0, or the number of the first line
 * that is wrong, with *WHY as constant text or in TEXT. Then nobody is let in. */
int etd_authorized_parse(const char *bytes, size_t n, struct etd_authorized_list *out,
                         char *why, size_t size);
/* Reads the file at PATH: ours, 0600, right from end to end. Else 5004, ENOENT. */
ET_NODISCARD et_status etd_authorized_read(struct et_ctx *cx, const char *path,
                                           struct etd_authorized_list *out);
/* Lets KEY in from now on: adds a line, or replaces the one that KEY has, which is what
 * *HAD then says (""). COMMENT says whose key it is. A missing file is made with
 * mode 0600, and its folder too. Error 5004 if the file is wrong, or the new line would
 * make it so; it then stays as it was. EIO. */
ET_NODISCARD et_status etd_authorized_allow(struct et_ctx *cx, const char *path,
                                            const char *key, bool is_operator,
                                            const char *comment, const char **had);
/* The entry of KEY that is valid at NOW; NULL: nobody. */
const struct etd_authorized *etd_authorized_find(const struct etd_authorized_list *list,
                                                 const char *key, double now);

/* ---- workers that are known: workers.yaml ----
 *
 * A line for each, "NAME: {address: ..., key: ..., since: ...}", which is YAML; lines
 * of other forms stay as they are. */

enum { ETD_ADDRESS = 300, ETD_WORKERS_MOST = 256 };
struct etd_worker {
    char name[64];
    char address[ETD_ADDRESS]; /* "tcp://HOST:PORT" or "ssh://HOST" */
    char key[ETD_KEY_TEXT];    /* the one that is pinned; "" for ssh */
    char since[16];            /* the day it was */
};
struct etd_worker_list {
    struct etd_worker worker[ETD_WORKERS_MOST];
    int n;
};
/* As etd_authorized_parse. */
int etd_workers_parse(const char *bytes, size_t n, struct etd_worker_list *out,
                      char *why, size_t size);
/* None where there is no file. EFORMAT (5016). */
ET_NODISCARD et_status etd_workers_read(struct et_ctx *cx, const char *path,
                                        struct etd_worker_list *out);
/* Adds or replaces W; NULL W: removes NAME. Error 5016 if the file is wrong, or the new
 * line would make it so; it then stays as it was. EIO. */
ET_NODISCARD et_status etd_workers_write(struct et_ctx *cx, const char *path,
                                         const char *name, const struct etd_worker *w);
const struct etd_worker *etd_workers_find(const struct etd_worker_list *list,
                                          const char *name_or_address);

#endif
