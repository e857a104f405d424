/* SPDX-License-Identifier: Apache-2.0 */
/* ssh.h: what is asked of another machine by ssh, once. (Conversations are lines.) */
#ifndef ETD_SSH_H
#define ETD_SSH_H

#include "dist/wire/channel.h"

/* May HOST, "[USER@]HOST", stand on ssh's command line? No option, nothing for a
 * shell. */
bool etd_ssh_is_host(const char *host);

/* The public key of this user at HOST: what `etude worker key` prints there, of at most
 * SECONDS, which is also for whoever types a password. 5003, 5005; 5004 where it has
 * none. */
ET_NODISCARD et_status etd_ssh_key(struct et_ctx *cx, const char *host, double seconds,
                                   char key[ETD_KEY_TEXT]);

#endif
