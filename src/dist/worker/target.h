/* SPDX-License-Identifier: Apache-2.0 */
/* target.h: what people call a run that is elsewhere.
 *
 *     tcp://HOST:PORT[/RUN]    a worker whose key is in workers.yaml
 *     ssh://[USER@]HOST[/RUN]
 *     [RUN@]WORKER             by its name in workers.yaml
 *
 * Without a RUN the newest that goes on there is meant. */
#ifndef ETD_TARGET_H
#define ETD_TARGET_H

#include "dist/hub/client.h"
#include "dist/wire/keys.h"

struct etd_target {
    char address[ETD_ADDRESS]; /* of a line: a path, tcp://HOST:PORT, ssh://HOST */
    char run[ET_RUN_NAME];     /* "": none was named */
    char place[64]; /* the worker's name, else its host; "": it is this machine */
    unsigned char id[ETD_RUN_ID]; /* of a run of this machine; zeros: not known */
    bool has_keys;
    struct etd_keys keys;      /* tcp: ours */
    char server[ETD_KEY_TEXT]; /* tcp: its */
};

/* Reads TEXT with the files of the user's FOLDER. *IS false: it is none of the above,
 * and so something on this machine. 5003, 5004, 5016. */
ET_NODISCARD et_status etd_target_parse(struct et_ctx *cx, const char *text,
                                        const char *folder, struct etd_target *out,
                                        bool *is);
/* The run NAME with this ID (hexadecimal) on this machine. */
ET_NODISCARD et_status etd_target_local(struct et_ctx *cx, const char *name,
                                        const char *id, struct etd_target *out);
/* Options that borrow from T. */
struct etd_client_options etd_target_options(const struct etd_target *t);

#endif
