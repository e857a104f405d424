/* SPDX-License-Identifier: Apache-2.0 */
/* rendezvous.c: how ranks of a launcher find their rank 0: a file that counts as long
 * as rank 0 holds it. */
#include "config.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dist/comm/rendezvous.h"
#include "dist/wire/endpoint.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static struct et_ctx *cx;
static const uint8_t none[ETD_STORE_SECRET];

static struct etd_rendezvous
begin(const char *job, const uint8_t *secret)
{
    struct etd_rendezvous m;
    need(cx, etd_rendezvous_begin(cx, job, "127.0.0.1", secret, &m));
    return m;
}

/* One look, without waiting. */
static bool
finds(const char *job, struct etd_rendezvous *out)
{
    et_status status = etd_rendezvous_find(cx, job, 0, out);
    if (status != ET_OK && status != ET_EPEER)
        need(cx, status);
    et_error_clear(cx);
    return status == ET_OK;
}

static bool
is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

static void
test_meeting(void)
{
    uint8_t secret[ETD_STORE_SECRET];
    struct etd_rendezvous found, second;
    struct stat st;
    for (int i = 0; i < ETD_STORE_SECRET; i++)
        secret[i] = (uint8_t)(3 + 11 * i);
    ok(!finds("job", &found), "before rank 0 has come nobody finds it");
    struct etd_rendezvous m = begin("job", secret), other = begin("another job", none);
    ok(finds("job", &found), "another rank finds it then:");
    is_int(found.port, m.port, "its port");
    ok(memcmp(found.secret, secret, sizeof secret) == 0, "and the secret it was given");
    ok(found.lock < 0 && found.listener < 0 && !found.path[0],
       "which leaves it nothing to give back");
    ok(stat(m.path, &st) == 0 && (st.st_mode & 0777) == 0600,
       "the file is for nobody else's eyes");
    ok(finds("another job", &found) && found.port == other.port,
       "another job has another rank 0,");
    ok(memcmp(other.secret, none, sizeof none) != 0 &&
           memcmp(found.secret, other.secret, sizeof none) == 0,
       "with a secret that is drawn where none was given");
    is_int(etd_rendezvous_begin(cx, "job", "127.0.0.1", none, &second), ET_EIO,
           "a second rank 0 of a job is refused");
    ok(strstr(et_error_get(cx)->message, "another rank 0 of job") != NULL,
       "with that sentence");
    et_error_clear(cx);
    etd_rendezvous_end(&second);
    ok(finds("job", &found) && found.port == m.port, "the first one stays");
    char path[sizeof m.path];
    memcpy(path, m.path, sizeof path);
    etd_rendezvous_end(&m);
    ok(!is_there(path), "when all have come its file goes");
    ok(m.lock < 0 && m.listener < 0, "with all that it held");
    ok(!finds("job", &found) && finds("another job", &found),
       "so that nobody finds it; the other is still there");
    struct etd_rendezvous again = begin("job", none);
    ok(finds("job", &found) && found.port == again.port &&
           memcmp(found.secret, again.secret, sizeof none) == 0,
       "the same job may begin again");
    ok(memcmp(again.secret, other.secret, sizeof none) != 0,
       "with a secret that nobody else has");
    etd_rendezvous_end(&again);
    etd_rendezvous_end(&other);
}

static void
test_refused(void)
{
    struct etd_rendezvous m;
    is_int(etd_rendezvous_begin(cx, "job", "192.0.2.1", none, &m), ET_EIO,
           "an address that is not this machine's cannot be listened at");
    ok(strstr(et_error_get(cx)->message, "no port is free at 192.0.2.1") != NULL,
       "which is said");
    et_error_clear(cx);
    ok(m.lock < 0 && m.listener < 0 && !m.path[0], "and nothing is left of it");
    is_int(etd_rendezvous_find(cx, "job", 0, &m), ET_EPEER, "a rank 0 that is away");
    ok(strstr(et_error_get(cx)->message, "rank 0 of job has left no word at") != NULL,
       "is told by the job's name");
    et_error_clear(cx);
}

/* Words that a file may have, whose holder has it locked or not. */
static void
test_words(void)
{
    static const char good[] = "7018 "
                               "000102030405060708090a0b0c0d0e0f"
                               "101112131415161718191a1b1c1d1e1f";
    static const struct {
        const char *what, *before, *after; /* and the good words between them */
        int cut;                           /* bytes that its end lacks */
        bool held, found;
    } rows[] = {
        {"with a port and a secret", "", "\n", 0, true, true},
        {"that nobody holds any more", "", "\n", 0, false, false},
        {"whose line has no end yet", "", "", 0, true, false},
        {"whose secret is too short", "", "\n", 1, true, false},
        {"whose secret is too long", "", "0\n", 0, true, false},
        {"whose port is below 1", "-", "\n", 0, true, false},
        {"that has no number", "x", "\n", 0, true, false},
    };
    struct etd_rendezvous m = begin("job", none), found;
    char path[sizeof m.path];
    memcpy(path, m.path, sizeof path);
    etd_rendezvous_end(&m);
    if (strlen(good) != 5 + 2 * (size_t)ETD_STORE_SECRET)
        bail("a secret has another length");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[200];
        int n = snprintf(text, sizeof text, "%s%.*s%s", rows[i].before,
                         (int)strlen(good) - rows[i].cut, good, rows[i].after);
        int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (fd < 0 || write(fd, text, (size_t)n) != n ||
            (rows[i].held && flock(fd, LOCK_EX | LOCK_NB) != 0))
            bail("no file");
        ok(finds("job", &found) == rows[i].found, "a file %s is %s", rows[i].what,
           rows[i].found ? "found" : "not");
        if (rows[i].found)
            ok(found.port == 7018 && found.secret[0] == 0 && found.secret[31] == 31,
               "with what it says");
        close(fd);
        unlink(path);
    }
}

static int
count_files(void)
{
    char folder[PATH_MAX];
    int n = 0;
    DIR *d = opendir(etd_endpoint_folder(folder, sizeof folder));
    for (const struct dirent *e; d && (e = readdir(d)) != NULL;)
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

/* A folder stands where the word is to be. */
static void
test_in_the_way(void)
{
    struct etd_rendezvous m = begin("job", none);
    char path[sizeof m.path];
    memcpy(path, m.path, sizeof path);
    etd_rendezvous_end(&m);
    const int before = count_files();
    if (mkdir(path, 0700) != 0)
        bail("no folder");
    is_int(etd_rendezvous_begin(cx, "job", "127.0.0.1", none, &m), ET_EIO,
           "a word that cannot be left is an error");
    et_error_clear(cx);
    is_int(count_files(), before + 1, "nothing of it lies about");
    ok(m.lock < 0 && m.listener < 0 && !m.path[0] && is_there(path),
       "nor is held, and what is in the way stays");
    rmdir(path);
}

static void *
begin_late(void *data)
{
    struct etd_rendezvous *m = data;
    struct et_ctx *own = need_ctx();
    usleep(20000);
    need(own, etd_rendezvous_begin(own, "late", "127.0.0.1", none, m));
    et_ctx_free(&own);
    return NULL;
}

static void
test_late(void)
{
    struct etd_rendezvous m, found;
    pthread_t thread;
    if (pthread_create(&thread, NULL, begin_late, &m) != 0)
        bail("no thread");
    ok(etd_rendezvous_find(cx, "late", 60000, &found) == ET_OK,
       "a rank waits for a rank 0 that comes later");
    pthread_join(thread, NULL);
    is_int(found.port, m.port, "and finds it");
    etd_rendezvous_end(&m);
}

int
main(void)
{
    cx = need_ctx();
    if (setenv("XDG_RUNTIME_DIR", scratch_folder(), 1) != 0)
        bail("no folder");
    test_meeting();
    test_refused();
    test_words();
    test_in_the_way();
    test_late();
    et_ctx_free(&cx);
    return done();
}
