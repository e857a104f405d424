/* SPDX-License-Identifier: Apache-2.0 */
/* fetch.c: a run of another machine as a directory of this one, for as long as a
 * command takes: its worker sends the files that say what it did. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/base/seams.h"
#include "core/library/comparison.h"
#include "core/library/facts.h"
#include "dist/hub/client.h"
#include "dist/worker/target.h"

static const double PATIENCE = 30; /* seconds without an answer */
static const double AGAIN = 3;     /* until one is asked for once more */

/* The files of a copy, and how long they may be: what a worker says is not believed. A
 * day of the fastest run has 500 MB of events; a recipe is 256 KiB at most, and its
 * resolved one some times that. */
static const struct {
    enum etd_piece_of file;
    bool is_needed;
    int64_t most; /* bytes */
} files[] = {
    {ETD_PIECE_RUN, true, 16 << 20},
    {ETD_PIECE_RESOLVED, false, 4 << 20},
    {ETD_PIECE_RECIPE, false, 4 << 20},
    {ETD_PIECE_EVENTS, true, INT64_C(8000000000)},
};
enum { FILES = sizeof files / sizeof *files, COPIES = ETI_COMPARED_RUNS, NAME = 64 };
static const int64_t SPARE = 64 << 20; /* bytes of the disk that are left alone */

/* ---- what is removed, however the command ends ---- */

/* For the handler: the folders, and the names of what is in them. */
static char *volatile copies[COPIES];
static char names[FILES][NAME];

static void
remove_copy(const char *folder)
{
    int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    for (size_t i = 0; i < FILES && dir >= 0; i++)
        (void)unlinkat(dir, names[i], 0);
    if (dir >= 0)
        close(dir);
    (void)rmdir(folder);
}

/* A signal that ends the program, and still does. */
static void
on_end(int number)
{
    for (int i = 0; i < COPIES; i++)
        if (copies[i])
            remove_copy(copies[i]);
    raise(number); /* (SA_RESETHAND) */
}

static void
catch_ends(void)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct sigaction now, then = {.sa_handler = on_end, .sa_flags = SA_RESETHAND};
        if (sigaction(ends[i], NULL, &now) == 0 && now.sa_handler == SIG_DFL)
            sigaction(ends[i], &then, NULL);
    }
}

/* Makes FOLDER, of a template, and remembers it. */
static bool
make_folder(char *folder)
{
    sigset_t all, before;
    int i = 0;
    for (size_t k = 0; k < FILES; k++)
        etd_piece_path(files[k].file, 0, names[k], NAME);
    catch_ends();
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    while (i < COPIES && copies[i])
        i++;
    char *copy = i < COPIES && mkdtemp(folder) ? strdup(folder) : NULL;
    if (copy)
        copies[i] = copy;
    int why = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    errno = why;
    return copy != NULL;
}

void
cli_run_forget_copy(const char *folder)
{
    remove_copy(folder);
    for (int i = 0; i < COPIES; i++) {
        char *copy = copies[i];
        if (!copy || strcmp(copy, folder) != 0)
            continue;
        copies[i] = NULL;
        free(copy);
    }
}

/* ---- copying ---- */

/* Takes what has arrived. False: nothing has come for too long, or the worker
 * refuses. */
static bool
step(struct cli *c, struct etd_client *client, double end)
{
    const struct etd_client_status *s = etd_client_status(client);
    int wait = etd_client_timeout(client);
    struct pollfd p = {.fd = etd_client_fd(client), .events = POLLIN};
    (void)poll(&p, 1, wait >= 0 && wait < 250 ? wait : 250);
    if (etd_client_step(client) != ET_OK)
        return false;
    return s->link != ETD_LINK_REFUSED && s->link != ETD_LINK_ENDED &&
           s->link != ETD_LINK_DISCONNECTED && eti_monotonic(c->cx) < end;
}

static int
failed(struct cli *c, const char *text, const struct etd_client *client)
{
    const struct etd_client_status *s = etd_client_status(client);
    et_error_clear(c->cx);
    if (s->link == ETD_LINK_REFUSED)
        return cli_fail(c, (enum cli_error)ETD_E_TURNED_AWAY, NULL, "%s: %s", text,
                        s->text);
    return cli_fail(c, (enum cli_error)ETD_E_UNREACHABLE, NULL, "%s: %s", text,
                    *s->text ? s->text : "the worker does not answer");
}

/* May a file of SIZE bytes, at most MOST, come to where FD is? EFORMAT, EIO. */
static et_status
check_size(struct cli *c, const char *path, int fd, int64_t size, int64_t most)
{
    char has[32], text[32];
    struct statvfs disk;
    if (size < 0 || size > most)
        return ET_FAIL(c->cx, ET_EFORMAT,
                       "%s is said to have %s: more than %s are not copied",
                       strrchr(path, '/') + 1, cli_bytes((double)size, has, sizeof has),
                       cli_bytes((double)most, text, sizeof text));
    if (fstatvfs(fd, &disk) == 0 &&
        (double)disk.f_bavail * (double)disk.f_frsize < (double)(size + SPARE))
        return ET_FAIL(c->cx, ET_EIO, "no room for %s, of %s", path,
                       cli_bytes((double)size, has, sizeof has));
    return ET_OK;
}

/* One file to FD, as long as it was when its first piece came: that of a run that goes
 * on grows. *IS: there is one. EPEER: it does not come; EFORMAT: it is too long; EIO:
 * it cannot be written. */
static et_status
copy_file(struct cli *c, struct etd_client *client, size_t i, const char *path, int fd,
          bool *is)
{
    const enum etd_piece_of file = files[i].file;
    struct etd_piece p;
    int64_t at = 0, size = 0;
    for (bool more = true; more;) {
        double asked = eti_monotonic(c->cx), end = asked + PATIENCE;
        if (etd_client_file(client, file, 0, at) != ET_OK)
            return ET_EPEER;
        while (!etd_client_piece(client, &p) || p.file != file || p.at != at) {
            if (!step(c, client, end))
                return ET_EPEER;
            /* (Workers of earlier versions drop answers to a pipe that is full.) */
            if (eti_monotonic(c->cx) < asked + AGAIN)
                continue;
            asked = eti_monotonic(c->cx);
            if (etd_client_file(client, file, 0, at) != ET_OK)
                et_error_clear(c->cx);
        }
        *is = !p.is_missing;
        size = at == 0 ? p.size : size;
        if (at == 0)
            ET_TRY(check_size(c, path, fd, size, files[i].most));
        if (p.n > 0)
            ET_TRY(eti_write_all(c->cx, fd, path, p.bytes, p.n));
        at += (int64_t)p.n;
        more = *is && p.n > 0 && at < size;
    }
    return ET_OK;
}

static int
copy_files(struct cli *c, const char *text, struct etd_client *client, bool with_events,
           const char *folder)
{
    char path[PATH_MAX + sizeof names];
    for (size_t i = 0; i < FILES; i++) {
        bool is = false;
        if (files[i].file == ETD_PIECE_EVENTS && !with_events)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0)
            return cli_fail(c, CLI_E_WRITE, NULL, "cannot make %s: %s", path,
                            strerror(errno));
        et_status status = copy_file(c, client, i, path, fd, &is);
        close(fd);
        if (status == ET_EIO)
            return cli_fail(c, CLI_E_WRITE, "set TMPDIR to a folder with more room",
                            "%s", et_error_get(c->cx)->message);
        if (status == ET_EFORMAT)
            return cli_fail(c, (enum cli_error)ETD_E_TURNED_AWAY, NULL, "%s: %s", text,
                            et_error_get(c->cx)->message);
        if (status != ET_OK)
            return failed(c, text, client);
        if (!is)
            (void)unlink(path);
        if (!is && files[i].is_needed)
            return cli_fail(c, CLI_E_NO_RUN, NULL, "%s has no %s", text, names[i]);
    }
    return CLI_OK;
}

static int
fetch(struct cli *c, const char *text, const struct etd_target *target,
      bool with_events, const char *folder)
{
    struct etd_client *client = NULL;
    struct etd_client_options o = etd_target_options(target);
    o.once = true;
    if (etd_client_open(c->cx, &o, &client) != ET_OK)
        return cli_fail_status(c, ETI_STAGE_DATA, ET_EIO);
    double end = eti_monotonic(c->cx) + PATIENCE;
    while (etd_client_status(client)->link != ETD_LINK_LIVE && step(c, client, end))
        continue;
    int code = etd_client_status(client)->link == ETD_LINK_LIVE
                   ? copy_files(c, text, client, with_events, folder)
                   : failed(c, text, client);
    etd_client_close(&client);
    return code;
}

bool
cli_run_is_far(struct cli *c, const char *text, struct etd_target *target)
{
    char folder[PATH_MAX];
    bool is = false;
    if (!strchr(text, '@') && !strstr(text, "://"))
        return false; /* (a worker's name alone is a run's here) */
    et_status status = etd_target_parse(
        c->cx, text, cli_user_folder(folder, sizeof folder), target, &is);
    et_error_clear(c->cx);
    return status == ET_OK && is;
}

struct json_t *
cli_run_fetch(struct cli *c, const char *text, const struct etd_target *target,
              bool with_events, int *exit)
{
    const char *base = getenv("TMPDIR");
    char folder[PATH_MAX];
    json_t *facts = NULL;
    snprintf(folder, sizeof folder, "%.4000s/etude-run-XXXXXX",
             base && *base ? base : "/tmp");
    if (!make_folder(folder)) {
        *exit = cli_fail(c, CLI_E_WRITE, NULL, "cannot make %s: %s", folder,
                         strerror(errno));
        return NULL;
    }
    *exit = fetch(c, text, target, with_events, folder);
    et_status status = *exit == CLI_OK ? eti_facts_read(c->cx, folder, &facts) : ET_OK;
    if (status != ET_OK)
        *exit = cli_fail_status(c, ETI_STAGE_DATA, status);
    if (facts)
        json_object_set_new(facts, "name", json_string(text)); /* "NAME@WORKER" */
    else
        cli_run_forget_copy(folder);
    return facts;
}
