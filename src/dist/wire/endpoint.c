/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint.c: see endpoint.h. */
#include "config.h"

#include "dist/wire/endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>

#include "core/base/seams.h"
#include "dist/wire/errors.h"
#include "dist/wire/wire.h"

_Static_assert(sizeof((struct sockaddr_un *)0)->sun_path == ETD_SOCKET_PATH,
               "the system's paths of sockets are as long as ours");

static et_status
path_in(struct et_ctx *cx, const char *folder, const char *name,
        char path[ETD_SOCKET_PATH])
{
    if ((size_t)snprintf(path, ETD_SOCKET_PATH, "%s/%s.sock", folder, name) <
        ETD_SOCKET_PATH)
        return ET_OK;
    return ETD_FAIL(cx, ET_EINVAL, ADDRESS,
                    "%s/%s.sock has %zu bytes; a socket's path has at most %d", folder,
                    name, strlen(folder) + strlen(name) + 6, ETD_SOCKET_PATH - 1);
}

et_status
etd_endpoint_path(struct et_ctx *cx, const char *name, char path[ETD_SOCKET_PATH])
{
    char folder[PATH_MAX];
    return path_in(cx, etd_endpoint_folder(folder, sizeof folder), name, path);
}

/* NAME-<8 digits of ID>. Returns BUF. */
static const char *
name_with_id(char buf[128], const char *name, const char *id)
{
    snprintf(buf, 128, "%s-%.8s", name, id);
    return buf;
}

/* Does nobody listen at the socket PATH? */
static bool
is_dead(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    memcpy(address.sun_path, path, strlen(path) + 1);
    bool dead = fd >= 0 &&
                connect(fd, (struct sockaddr *)&address, sizeof address) != 0 &&
                errno == ECONNREFUSED;
    if (fd >= 0)
        close(fd);
    return dead;
}

/* Is the socket at PATH one that somebody listens at? */
static bool
is_live(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) && !is_dead(path);
}

et_status
etd_endpoint_find(struct et_ctx *cx, const char *name, const char *id,
                  char path[ETD_SOCKET_PATH])
{
    char folder[2][PATH_MAX], longer[128];
    const char *names[] = {id ? name_with_id(longer, name, id) : name, name};
    etd_endpoint_folder(folder[0], sizeof folder[0]);
    etd_endpoint_common_folder(folder[1], sizeof folder[1]);
    bool safe[2];
    for (int i = 0; i < 2; i++) {
        safe[i] = etd_endpoint_look(cx, folder[i]) == ET_OK;
        et_error_clear(cx);
    }
    for (int k = id ? 0 : 1; k < 2; k++)
        for (int i = 0; i < 2; i++) {
            ET_TRY(path_in(cx, folder[i], names[k], path));
            if (safe[i] && is_live(path))
                return ET_OK;
        }
    /* Nobody listens at PATH: is that because the folder is not safe to listen in? */
    ET_TRY(path_in(cx, folder[0], name, path));
    for (int i = 0; i < 2; i++) {
        et_status status = etd_endpoint_look(cx, folder[i]);
        if (status != ET_OK && et_error_get(cx)->code == ETD_E_UNSAFE)
            return status;
        et_error_clear(cx);
    }
    return ET_OK;
}

et_status
etd_endpoint_is_ours(struct et_ctx *cx, const char *path)
{
    struct stat st;
    if (lstat(path, &st) != 0 || !S_ISSOCK(st.st_mode))
        return ETD_FAIL(cx, ET_ENOENT, UNREACHABLE, "nothing listens at %s", path);
    if (st.st_uid == getuid())
        return ET_OK;
    return ETD_FAIL(cx, ET_ECANCELED, UNSAFE,
                    "%s belongs to uid %ld, and this is uid %ld: nothing is said there",
                    path, (long)st.st_uid, (long)getuid());
}

enum { LOCK_PATH = ETD_SOCKET_PATH + 8, LOCK_TRIES = 16 };

/* "NAME.lock" beside "NAME.sock". */
static void
name_lock(const char *socket, char path[LOCK_PATH])
{
    snprintf(path, LOCK_PATH, "%.*s.lock", (int)(strlen(socket) - strlen(".sock")),
             socket);
}

static bool
is_file_at(int fd, const char *path)
{
    struct stat own, there;
    return fstat(fd, &own) == 0 && lstat(path, &there) == 0 &&
           own.st_dev == there.st_dev && own.st_ino == there.st_ino;
}

/* Takes the lock. ECANCELED: somebody else has it. Its holder removes the file when it
 * is done, perhaps between our opening and locking it: then a new file is the lock. */
static et_status
take_lock(struct et_ctx *cx, const char *socket, int *fd)
{
    char path[LOCK_PATH];
    int why = EWOULDBLOCK;
    name_lock(socket, path);
    for (int i = 0; i < LOCK_TRIES; i++) {
        *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
        if (*fd < 0)
            return ETD_FAIL(cx, ET_EIO, TAKEN, "cannot open %s: %s", path,
                            strerror(errno));
        bool locked = flock(*fd, LOCK_EX | LOCK_NB) == 0;
        why = locked ? EWOULDBLOCK : errno;
        if (locked && is_file_at(*fd, path))
            return ET_OK;
        close(*fd);
        *fd = -1;
        if (!locked)
            break;
    }
    return ETD_FAIL(cx, why == EWOULDBLOCK ? ET_ECANCELED : ET_EIO, TAKEN,
                    why == EWOULDBLOCK ? "%s is in use" : "cannot lock %s", socket);
}

/* With the lock held: what stands at PATH is a dead socket of ours, and goes; anything
 * else stays. (libzmq would remove it, whatever it is.) */
static et_status
clear_place(struct et_ctx *cx, const char *path)
{
    struct stat st;
    if (lstat(path, &st) != 0)
        return errno == ENOENT ? ET_OK
                               : ETD_FAIL(cx, ET_EIO, TAKEN, "cannot look at %s: %s",
                                          path, strerror(errno));
    if (!S_ISSOCK(st.st_mode) || st.st_uid != getuid())
        return ETD_FAIL(cx, ET_EIO, TAKEN,
                        "%s is there and is not etude's socket: it is left alone",
                        path);
    if (!is_dead(path))
        return ETD_FAIL(cx, ET_EIO, TAKEN, "something listens at %s already", path);
    if (unlink(path) == 0)
        return ET_OK;
    return ETD_FAIL(cx, ET_EIO, TAKEN, "cannot remove %s: %s", path, strerror(errno));
}

/* Lock and place at OUT->path. ECANCELED: another has the lock. */
static et_status
take_place(struct etd_endpoint *out)
{
    et_status status = take_lock(out->cx, out->path, &out->lock);
    if (status == ET_OK)
        status = clear_place(out->cx, out->path);
    if (status != ET_OK && out->lock >= 0) {
        close(out->lock);
        out->lock = -1;
    }
    return status;
}

et_status
etd_endpoint_claim(struct et_ctx *cx, const char *name, const char *id,
                   struct etd_endpoint *out)
{
    char folder[PATH_MAX], longer[128];
    *out = (struct etd_endpoint){.cx = cx, .lock = -1, .fd = -1};
    etd_endpoint_folder(folder, sizeof folder);
    ET_TRY(path_in(cx, folder, name, out->path));
    ET_TRY(etd_endpoint_make_folder(cx, folder));
    et_status status = take_place(out);
    if (status != ET_OK && id) {
        et_error_clear(cx);
        ET_TRY(path_in(cx, folder, name_with_id(longer, name, id), out->path));
        status = take_place(out);
    }
    return status == ET_ECANCELED ? ET_EIO : status;
}

/* A socket at E->path that nobody else can open. */
static et_status
make_socket(struct etd_endpoint *e)
{
    enum { BACKLOG = 128 };
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat st;
    memcpy(address.sun_path, e->path, strlen(e->path) + 1);
    e->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t mask = umask(077);
    bool bound =
        e->fd >= 0 && bind(e->fd, (struct sockaddr *)&address, sizeof address) == 0;
    int why = errno;
    umask(mask);
    if (bound && lstat(e->path, &st) == 0) {
        e->made = true;
        e->dev = st.st_dev;
        e->ino = st.st_ino;
    }
    if (bound && listen(e->fd, BACKLOG) == 0)
        return ET_OK;
    return ETD_FAIL(e->cx, ET_EIO, TAKEN, "cannot listen at %s: %s", e->path,
                    strerror(bound ? errno : why));
}

et_status
etd_endpoint_bind(struct etd_endpoint *e, const struct etd_listener *who, void *data)
{
    char address[ETD_SOCKET_PATH + 8];
    struct stat st;
    et_status status = make_socket(e);
    snprintf(address, sizeof address, "ipc://%s", e->path);
    if (status == ET_OK && who->listen(data, address, e->fd) != 0)
        status = ETD_FAIL(e->cx, ET_EIO, TAKEN, "cannot listen at %s: %s", e->path,
                          strerror(errno));
    if (status != ET_OK) {
        if (e->fd >= 0)
            close(e->fd);
        e->fd = -1;
        return status;
    }
    if (lstat(e->path, &st) == 0 && S_ISSOCK(st.st_mode) &&
        !(st.st_mode & (S_IRWXG | S_IRWXO)) && st.st_uid == getuid())
        return ET_OK;
    who->leave(data, address, e->fd);
    e->fd = -1;
    return ETD_FAIL(e->cx, ET_EIO, UNSAFE, "%s is open to others: it is given up",
                    e->path);
}

/* ---- for zmq ---- */

static int
listen_zmq(void *data, const char *address, int fd)
{
    int none = -1;
    int result = zmq_setsockopt(data, ZMQ_USE_FD, &fd, sizeof fd) == 0
                     ? zmq_bind(data, address)
                     : -1;
    (void)zmq_setsockopt(data, ZMQ_USE_FD, &none, sizeof none);
    return result;
}

/* Its thread closes the descriptor. */
static void
leave_zmq(void *data, const char *address, int fd)
{
    (void)fd;
    (void)zmq_unbind(data, address);
}

const struct etd_listener etd_endpoint_zmq = {
    .listen = listen_zmq,
    .leave = leave_zmq,
};

void *
etd_endpoint_router(void *zmq, int out, int in, int64_t most, bool own)
{
    int one = 1, zero = 0, handshake = (int)(1000 * ETD_HANDSHAKE);
    uid_t uid = getuid();
    void *r = zmq ? zmq_socket(zmq, ZMQ_ROUTER) : NULL;
    if (r && zmq_setsockopt(r, ZMQ_ROUTER_MANDATORY, &one, sizeof one) == 0 &&
        zmq_setsockopt(r, ZMQ_SNDHWM, &out, sizeof out) == 0 &&
        zmq_setsockopt(r, ZMQ_RCVHWM, &in, sizeof in) == 0 &&
        zmq_setsockopt(r, ZMQ_LINGER, &zero, sizeof zero) == 0 &&
        zmq_setsockopt(r, ZMQ_MAXMSGSIZE, &most, sizeof most) == 0 &&
        zmq_setsockopt(r, ZMQ_HANDSHAKE_IVL, &handshake, sizeof handshake) == 0 &&
        (!own || zmq_setsockopt(r, ZMQ_IPC_FILTER_UID, &uid, sizeof uid) == 0))
        return r;
    if (r)
        zmq_close(r);
    return NULL;
}

int
etd_endpoint_descriptors(void)
{
    enum { ENOUGH = 65536 };
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) != 0)
        return 1024; /* what systems begin with */
    rlim_t asked = l.rlim_max < ENOUGH ? l.rlim_max : ENOUGH, had = l.rlim_cur;
    if (had < asked) {
        l.rlim_cur = asked;
        had = setrlimit(RLIMIT_NOFILE, &l) == 0 ? asked : had;
    }
    return had < ENOUGH ? (int)had : ENOUGH;
}

bool
etd_endpoint_stands(const struct etd_endpoint *e)
{
    struct stat st;
    return e->made && lstat(e->path, &st) == 0 && S_ISSOCK(st.st_mode) &&
           st.st_dev == e->dev && st.st_ino == e->ino;
}

void
etd_endpoint_release(struct etd_endpoint *e)
{
    char lock[LOCK_PATH];
    if (!e->cx || e->lock < 0)
        return;
    if (etd_endpoint_stands(e))
        (void)unlink(e->path);
    name_lock(e->path, lock);
    if (is_file_at(e->lock, lock))
        (void)unlink(lock);
    close(e->lock);
    *e = (struct etd_endpoint){.lock = -1, .fd = -1};
}

et_status
etd_address_check_port(struct et_ctx *cx, const char *address, long least)
{
    const char *colon = strrchr(address, ':'), *port = colon ? colon + 1 : "";
    size_t n = strspn(port, "0123456789");
    long value = n > 0 && n <= 5 && !port[n] ? strtol(port, NULL, 10) : -1;
    if (value >= least && value <= 65535)
        return ET_OK;
    return ETD_FAIL(cx, ET_EINVAL, ADDRESS, "%s: a port is a number from %ld to 65535",
                    address, least);
}
