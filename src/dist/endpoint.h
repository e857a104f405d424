/* endpoint.h: where a run or a worker of this machine listens (RELIABILITY.md 7.1).
 *
 * A socket in the user's own folder, which nobody else can enter, beside a lock file
 * that its owner holds. What stands in its place and is not a dead socket of ours is
 * never removed. */
#ifndef ETD_ENDPOINT_H
#define ETD_ENDPOINT_H

#include <limits.h>

#include "etude/ctx.h"

enum {
    ETD_SOCKET_PATH = 108
}; /* bytes of a socket's path, zero included: the system's */

struct etd_endpoint {
    struct et_ctx *cx;
    char path[ETD_SOCKET_PATH];
    int lock;  /* held for as long as it stands; -1: not claimed */
    bool made; /* what stands at PATH is what was bound */
};

/* The folder: $XDG_RUNTIME_DIR/etude, or /tmp/etude-UID. Returns BUF. */
const char *etd_endpoint_folder(char *buf, size_t size);
/* Makes PATH a real folder of ours that nobody else can enter. EIO (5001). */
ET_NODISCARD et_status etd_endpoint_make_folder(struct et_ctx *cx, const char *path);
/* FOLDER/NAME.sock into PATH. EINVAL where it is too long. */
ET_NODISCARD et_status etd_endpoint_path(struct et_ctx *cx, const char *name,
                                         char path[ETD_SOCKET_PATH]);
/* The socket of the run NAME whose id is ID (32 hexadecimal digits; NULL: any), as
 * etd_endpoint_claim may have made it. */
ET_NODISCARD et_status etd_endpoint_find(struct et_ctx *cx, const char *name,
                                         const char *id, char path[ETD_SOCKET_PATH]);

/* Makes the folder, takes the lock, and removes a dead socket. Where another run of
 * that NAME is alive the path is NAME-<8 digits of ID>; ID NULL: EIO then. EIO (5001,
 * 5002), EINVAL (5003). The caller binds under etd_endpoint_bind and then calls that.
 */
ET_NODISCARD et_status etd_endpoint_claim(struct et_ctx *cx, const char *name,
                                          const char *id, struct etd_endpoint *out);
/* Calls BIND with "ipc://PATH" under a mask that keeps others out, and looks at what it
 * made. EIO. */
ET_NODISCARD et_status etd_endpoint_bind(struct etd_endpoint *e,
                                         int (*bind)(void *data, const char *address),
                                         void *data);
/* Removes the socket, if it was bound, and gives the lock back. One never claimed may
 * be all zero. */
void etd_endpoint_release(struct etd_endpoint *e);

#endif
