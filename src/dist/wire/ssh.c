/* SPDX-License-Identifier: Apache-2.0 */
/* ssh.c: see ssh.h. */
#include "config.h"

#include "dist/wire/ssh.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "dist/wire/errors.h"
#include "dist/wire/keys.h"

extern char **environ;

enum { ANSWER = 4096 }; /* bytes of it that are read: a key, and what a login prints */

bool
etd_ssh_is_host(const char *host)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_@:%[]";
    return host[0] && host[0] != '-' && strlen(host) < ETD_HOST &&
           strspn(host, allowed) == strlen(host);
}

/* Starts ssh; *OUT is what it prints. What it says of itself goes where ours does. */
static bool
spawn(const char *host, pid_t *child, int *out)
{
    const char *argv[] = {"ssh", "-T", "--", host, "etude", "worker", "key", NULL};
    posix_spawn_file_actions_t actions;
    int from[2];
    if (pipe2(from, O_CLOEXEC) != 0)
        return false;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
    int failed = posix_spawnp(child, "ssh", &actions, NULL, (char *const *)(void *)argv,
                              environ);
    posix_spawn_file_actions_destroy(&actions);
    close(from[1]);
    if (failed)
        close(from[0]);
    *out = failed ? -1 : from[0];
    errno = failed;
    return !failed;
}

/* A line of TEXT that is a key. */
static bool
find_key(char *text, char key[ETD_KEY_TEXT])
{
    char *rest = text;
    for (char *line; (line = strtok_r(rest, "\r\n", &rest)) != NULL;)
        if (etd_key_is(line)) {
            memcpy(key, line, ETD_KEY_TEXT);
            return true;
        }
    return false;
}

et_status
etd_ssh_key(struct et_ctx *cx, const char *host, double seconds, char key[ETD_KEY_TEXT])
{
    char text[ANSWER];
    size_t n = 0;
    pid_t child;
    int out, status = 0;
    ssize_t got = 1;
    double end = eti_monotonic(cx) + seconds;
    if (!etd_ssh_is_host(host))
        return ETD_FAIL(cx, ET_EINVAL, ADDRESS, "ssh://%s names no host", host);
    if (!spawn(host, &child, &out))
        return ETD_FAIL(cx, ET_EIO, UNREACHABLE, "cannot run ssh: %s", strerror(errno));
    while (got > 0 && n < sizeof text - 1) {
        struct pollfd p = {.fd = out, .events = POLLIN};
        int left = (int)(1e3 * (end - eti_monotonic(cx)));
        got = left > 0 && poll(&p, 1, left) > 0
                  ? read(out, text + n, sizeof text - 1 - n)
                  : -1;
        n += got > 0 ? (size_t)got : 0;
    }
    close(out);
    if (got < 0)
        kill(child, SIGTERM);
    waitpid(child, &status, 0);
    text[n] = '\0';
    if (got >= 0 && find_key(text, key))
        return ET_OK;
    if (got < 0)
        return ETD_FAIL(cx, ET_ENOENT, UNREACHABLE, "%s gave no answer in %.0f s", host,
                        seconds);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 255) /* ssh's own */
        return ETD_FAIL(cx, ET_ENOENT, UNREACHABLE, "ssh does not reach %s", host);
    return ETD_FAIL(cx, ET_ENOENT, KEYS, "%s says no key", host);
}
