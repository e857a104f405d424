/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint.h: where a run or a worker of this machine listens (RELIABILITY.md 7.1).
 *
 * A socket in the user's own folder, which nobody else can enter, beside a lock file
 * that its owner holds. What stands in its place and is not a dead socket of ours is
 * never removed. */
#ifndef ETD_ENDPOINT_H
#define ETD_ENDPOINT_H

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

#include "etude/ctx.h"

enum {
    ETD_SOCKET_PATH = 108
}; /* bytes of a socket's path, zero included: the system's */

struct etd_endpoint {
    struct et_ctx *cx;
    char path[ETD_SOCKET_PATH];
    int lock;  /* held for as long as it stands; -1: not claimed */
    int fd;    /* the socket that was bound; -1: none. Whoever listens owns it */
    bool made; /* what was bound is the file of */
    dev_t dev; /* this number, which shows whether it is still there */
    ino_t ino;
};

/* The folder: $XDG_RUNTIME_DIR/etude, or /tmp/etude-UID where that variable names no
 * folder of this user: as after the last logout, or on a machine of a cluster that is
 * given the variables of another. Returns BUF. */
const char *etd_endpoint_folder(char *buf, size_t size);
/* The one in /tmp, which every process of the user finds, whatever its variables.
 * Returns BUF. */
const char *etd_endpoint_common_folder(char *buf, size_t size);
/* Is PATH a folder of ours that nobody else can enter? EIO (5001, 5002) with a hint;
 * ENOENT: it is not there. */
ET_NODISCARD et_status etd_endpoint_look(struct et_ctx *cx, const char *path);
/* Makes PATH a real folder of ours that nobody else can enter. EIO (5001, 5002), with a
 * hint. */
ET_NODISCARD et_status etd_endpoint_make_folder(struct et_ctx *cx, const char *path);
/* FOLDER/NAME.sock into PATH. EINVAL where it is too long. */
ET_NODISCARD et_status etd_endpoint_path(struct et_ctx *cx, const char *name,
                                         char path[ETD_SOCKET_PATH]);
/* The socket of the run NAME whose id is ID (32 hexadecimal digits; NULL: any), as
 * etd_endpoint_claim may have made it: in the folder, or in the one in /tmp, where a
 * run listens that lost the other. Where nobody listens: the place to try again, or EIO
 * (5001) where one of the folders is not ours alone. */
ET_NODISCARD et_status etd_endpoint_find(struct et_ctx *cx, const char *name,
                                         const char *id, char path[ETD_SOCKET_PATH]);
/* Is the socket at PATH this user's? Else ECANCELED (5001): somebody else may have put
 * it there. ENOENT: no socket is there. */
ET_NODISCARD et_status etd_endpoint_is_ours(struct et_ctx *cx, const char *path);

/* Makes the folder, takes the lock, and removes a dead socket. Where another run of
 * that NAME is alive, or something else is in the place, the path is NAME-<8 digits of
 * ID>; ID NULL: EIO then. EIO (5001, 5002), EINVAL (5003). The caller then calls
 * etd_endpoint_bind. */
ET_NODISCARD et_status etd_endpoint_claim(struct et_ctx *cx, const char *name,
                                          const char *id, struct etd_endpoint *out);
/* Who listens: LISTEN is given "ipc://PATH" and the socket, which listens already, and
 * from then on owns it; LEAVE ends that, where the place turns out to be unsafe. */
struct etd_listener {
    int (*listen)(void *data, const char *address, int fd);
    void (*leave)(void *data, const char *address, int fd);
};
/* DATA is a socket of zmq. It never removes the file, as it does with sockets of its
 * own: another's may be there by then. */
extern const struct etd_listener etd_endpoint_zmq;
/* Makes a socket that others cannot reach, has WHO listen there, and looks whether it
 * is ours alone. EIO, and then nobody listens. */
ET_NODISCARD et_status etd_endpoint_bind(struct etd_endpoint *e,
                                         const struct etd_listener *who, void *data);
/* A ROUTER that never blocks: sending to a viewer that is gone, or whose connection
 * already holds OUT messages, fails at once. IN wait at most, of MOST bytes each. OWN:
 * processes of other users are not heard on this machine's sockets. NULL: zmq has the
 * reason. */
void *etd_endpoint_router(void *zmq, int out, int in, int64_t most, bool own);
/* Asks the system for as many descriptors as it gives, 65,536 at most: how many there
 * are then. zmq ends a process that listens where none is left. */
int etd_endpoint_descriptors(void);
/* Is the socket that was bound still at its path? Folders are removed under programs:
 * XDG_RUNTIME_DIR when its user logs out. */
bool etd_endpoint_stands(const struct etd_endpoint *e);
/* Removes the socket, if it was bound and still stands there, and the lock with its
 * file. One never claimed may be all zero. */
void etd_endpoint_release(struct etd_endpoint *e);

/* Does ADDRESS, "tcp://HOST:PORT", end in a port, LEAST to 65535? (zmq takes any
 * number, and the rest of a division of it.) EINVAL (5003). */
ET_NODISCARD et_status etd_address_check_port(struct et_ctx *cx, const char *address,
                                              long least);

#endif
