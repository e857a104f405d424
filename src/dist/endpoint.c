/* endpoint.c: see endpoint.h. */
#include "config.h"

#include "dist/endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "dist/errors.h"

_Static_assert(sizeof((struct sockaddr_un *)0)->sun_path == ETD_SOCKET_PATH,
               "the system's paths of sockets are as long as ours");

enum { OTHERS = S_IRWXG | S_IRWXO };

const char *
etd_endpoint_folder(char *buf, size_t size)
{
    const char *base = getenv("XDG_RUNTIME_DIR");
    if (base && base[0] == '/')
        snprintf(buf, size, "%s/etude", base);
    else
        snprintf(buf, size, "/tmp/etude-%ld", (long)getuid());
    return buf;
}

et_status
etd_endpoint_path(struct et_ctx *cx, const char *name, char path[ETD_SOCKET_PATH])
{
    char folder[PATH_MAX];
    etd_endpoint_folder(folder, sizeof folder);
    if ((size_t)snprintf(path, ETD_SOCKET_PATH, "%s/%s.sock", folder, name) <
        ETD_SOCKET_PATH)
        return ET_OK;
    return ETD_FAIL(cx, ET_EINVAL, ADDRESS,
                    "%s/%s.sock has %zu bytes; a socket's path has at most %d", folder,
                    name, strlen(folder) + strlen(name) + 6, ETD_SOCKET_PATH - 1);
}

static et_status
path_of_id(struct et_ctx *cx, const char *name, const char *id,
           char path[ETD_SOCKET_PATH])
{
    char longer[128];
    snprintf(longer, sizeof longer, "%s-%.8s", name, id);
    return etd_endpoint_path(cx, longer, path);
}

et_status
etd_endpoint_find(struct et_ctx *cx, const char *name, const char *id,
                  char path[ETD_SOCKET_PATH])
{
    struct stat st;
    if (id) {
        ET_TRY(path_of_id(cx, name, id, path));
        if (lstat(path, &st) == 0)
            return ET_OK;
    }
    return etd_endpoint_path(cx, name, path);
}

et_status
etd_endpoint_make_folder(struct et_ctx *cx, const char *path)
{
    struct stat st;
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return ETD_FAIL(cx, ET_EIO, TAKEN, "cannot make %s: %s", path, strerror(errno));
    if (lstat(path, &st) != 0)
        return ETD_FAIL(cx, ET_EIO, TAKEN, "cannot look at %s: %s", path,
                        strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return ETD_FAIL(cx, ET_EIO, UNSAFE, "%s is no folder: nothing listens there",
                        path);
    if (st.st_uid != getuid())
        return ETD_FAIL(cx, ET_EIO, UNSAFE,
                        "%s belongs to uid %ld: nothing listens there", path,
                        (long)st.st_uid);
    if (st.st_mode & OTHERS)
        return ETD_FAIL(cx, ET_EIO, UNSAFE,
                        "%s has mode %04o: others can enter; it must be 0700", path,
                        (unsigned)st.st_mode & 07777);
    return ET_OK;
}

/* ECANCELED: somebody else has it. */
static et_status
take_lock(struct et_ctx *cx, const char *socket, int *fd)
{
    char path[ETD_SOCKET_PATH + 8];
    snprintf(path, sizeof path, "%.*s.lock", (int)(strlen(socket) - strlen(".sock")),
             socket);
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (*fd < 0)
        return ETD_FAIL(cx, ET_EIO, TAKEN, "cannot open %s: %s", path, strerror(errno));
    if (flock(*fd, LOCK_EX | LOCK_NB) == 0)
        return ET_OK;
    int why = errno;
    close(*fd);
    *fd = -1;
    return ETD_FAIL(cx, why == EWOULDBLOCK ? ET_ECANCELED : ET_EIO, TAKEN,
                    why == EWOULDBLOCK ? "%s is in use" : "cannot lock %s", socket);
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

et_status
etd_endpoint_claim(struct et_ctx *cx, const char *name, const char *id,
                   struct etd_endpoint *out)
{
    char folder[PATH_MAX];
    *out = (struct etd_endpoint){.cx = cx, .lock = -1};
    ET_TRY(etd_endpoint_path(cx, name, out->path));
    ET_TRY(etd_endpoint_make_folder(cx, etd_endpoint_folder(folder, sizeof folder)));
    et_status status = take_lock(cx, out->path, &out->lock);
    if (status == ET_ECANCELED && id) {
        et_error_clear(cx);
        ET_TRY(path_of_id(cx, name, id, out->path));
        status = take_lock(cx, out->path, &out->lock);
    }
    if (status == ET_OK)
        status = clear_place(cx, out->path);
    if (status != ET_OK && out->lock >= 0) {
        close(out->lock);
        out->lock = -1;
    }
    return status == ET_ECANCELED ? ET_EIO : status;
}

et_status
etd_endpoint_bind(struct etd_endpoint *e, int (*bind)(void *data, const char *address),
                  void *data)
{
    char address[ETD_SOCKET_PATH + 8];
    struct stat st;
    snprintf(address, sizeof address, "ipc://%s", e->path);
    mode_t mask = umask(077);
    int result = bind(data, address);
    int why = errno;
    umask(mask);
    if (result != 0)
        return ETD_FAIL(e->cx, ET_EIO, TAKEN, "cannot listen at %s: %s", e->path,
                        strerror(why));
    e->made = true;
    if (lstat(e->path, &st) == 0 && S_ISSOCK(st.st_mode) && !(st.st_mode & OTHERS) &&
        st.st_uid == getuid())
        return ET_OK;
    return ETD_FAIL(e->cx, ET_EIO, UNSAFE, "%s is open to others: it is given up",
                    e->path);
}

void
etd_endpoint_release(struct etd_endpoint *e)
{
    if (!e->cx || e->lock < 0)
        return;
    if (e->made)
        (void)unlink(e->path);
    close(e->lock);
    *e = (struct etd_endpoint){.lock = -1};
}
