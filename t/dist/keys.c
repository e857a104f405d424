/* SPDX-License-Identifier: Apache-2.0 */
/* Files of keys: what is right is read, what is wrong lets nobody in. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "dist/wire/errors.h"
#include "dist/wire/keys.h"
#include "t/data/fixture.h"
#include "t/tap.h"

#define KEY "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7" /* of RFC 26 */

static struct et_ctx *cx;
static struct etd_authorized_list list;
static struct etd_worker_list workers;

static void
is_authorized(const char *text, int line, const char *why)
{
    char said[128] = "";
    is_int(etd_authorized_parse(text, strlen(text), &list, said, sizeof said), line,
           "%.40s", text);
    is_str(said, why, "for that reason");
    if (line > 0)
        is_int(list.n, 0, "and nobody is let in");
}

static void
test_drawn(void)
{
    struct etd_keys keys;
    int options = 0, bad = 0;
    for (int i = 0; i < 500; i++) {
        bad += etd_keys_draw(cx, &keys) != ET_OK || !etd_key_is(keys.public_key);
        options += keys.public_key[0] == '-';
    }
    is_int(bad, 0, "500 keys are drawn");
    is_int(options, 0, "none of which a command line takes for an option");
}

static void
test_authorized(void)
{
    const double day = 24 * 3600;
    is_authorized("", 0, "");
    is_authorized("# nobody\n\n   \n\t\n \t \n", 0, "");
    is_authorized("viewer " KEY " ann's laptop until=2027-01-31\n"
                  "operator " KEY "\tbob # at home",
                  0, "");
    is_int(list.n, 2, "two keys");
    is_str(list.key[0].comment, "ann's laptop", "a comment may have several words");
    ok(!list.key[0].is_operator && list.key[1].is_operator, "each has its role");
    is_near(list.key[0].until, 1801440000, 0, "until the end of that day");
    ok(etd_authorized_find(&list, KEY, 1801440000 - 1) == &list.key[0], "it is valid");
    ok(etd_authorized_find(&list, KEY, 1801440000 + day) == &list.key[1],
       "and then no more");
    ok(!etd_authorized_find(&list, "another", 0), "another key is nobody's");

    is_authorized("viewer rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf# me # home\n", 0, "");
    ok(list.n == 1 && list.key[0].key[39] == '#', "a key may end in #");
    is_str(list.key[0].comment, "me", "which is no comment there");
    is_authorized("viewer " KEY " a\nroot " KEY " b\n", 2,
                  "it begins with neither viewer nor operator");
    is_authorized("viewer\n", 1, "it has no key");
    is_authorized("viewer abc me\n", 1, "key is 3 characters, expected 40");
    is_authorized("viewer " KEY "7 me\n", 1, "key is 41 characters, expected 40");
    is_authorized("viewer rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf\" me\n", 1,
                  "the key is not Z85");
    is_authorized("viewer " KEY "\n", 1, "it has no comment that says whose key it is");
    is_authorized("viewer " KEY " me until=soon\n", 1,
                  "until= is no day such as 2027-01-31");
    is_authorized("viewer " KEY " me until=2027-02-30\n", 1,
                  "until= is no day such as 2027-01-31");
    char many[300];
    memset(many, 'x', sizeof many - 1);
    many[sizeof many - 1] = '\0';
    is_authorized(many, 1, "it is no line of text, or longer than 255 bytes");
    char said[128];
    is_int(etd_authorized_parse("viewer\0", 7, &list, said, sizeof said), 1,
           "a zero byte is no text");
}

static void
is_denied(et_status status, const char *what, const char *why)
{
    ok(status != ET_OK, "%s is refused", what);
    is_int(et_error_get(cx)->code, ETD_E_KEYS, "with its number");
    if (!ok(strstr(et_error_get(cx)->message, why), "as %s", why))
        diag("%s", et_error_get(cx)->message);
    et_error_clear(cx);
}

static void
test_files(void)
{
    struct etd_keys keys, again;
    struct stat st;
    char path[512], fingerprint[ETD_FINGERPRINT];
    snprintf(path, sizeof path, "%s/curve.key", scratch_folder());
    ok(etd_keys_draw(cx, &keys) == ET_OK && etd_key_is(keys.public_key),
       "a pair of keys");
    int odd = 0;
    for (int i = 0; i < 300; i++)
        odd += etd_keys_draw(cx, &keys) != ET_OK ||
               !isalnum((unsigned char)keys.public_key[0]);
    is_int(odd, 0, "none of 300 begins as an option does");
    ok(etd_keys_write(cx, path, &keys) == ET_OK, "is written");
    ok(lstat(path, &st) == 0 && (st.st_mode & 07777) == 0600, "for its owner alone");
    ok(etd_keys_read(cx, path, &again) == ET_OK &&
           memcmp(&keys, &again, sizeof keys) == 0,
       "and read");
    is_denied(etd_keys_write(cx, path, &keys), "another in its place", "there already");
    chmod(path, 0640);
    is_denied(etd_keys_read(cx, path, &again), "a secret that the group can read",
              "mode 0640, must be 0600");
    chmod(path, 0600);
    if (geteuid() == 0) {
        ok(chown(path, 65534, 65534) == 0, "(given away)");
        is_denied(etd_keys_read(cx, path, &again), "somebody else's secret",
                  "belongs to uid 65534, not to you");
        ok(chown(path, 0, 0) == 0, "(and back)");
    } else {
        skip(5, "root alone can give files away");
    }
    struct etd_keys other;
    ok(etd_keys_draw(cx, &other) == ET_OK, "(another pair)");
    unlink(path);
    memcpy(other.public_key, keys.public_key, sizeof keys.public_key);
    ok(etd_keys_write(cx, path, &other) == ET_OK, "(and its secret beside the first)");
    is_denied(etd_keys_read(cx, path, &again), "a secret that is not of the public key",
              "its two keys are no pair");
    unlink(path);
    ok(symlink("/dev/null", path) == 0, "(a link)");
    is_denied(etd_keys_read(cx, path, &again), "a link",
              "Too many levels of symbolic links");
    unlink(path);
    is_denied(etd_keys_read(cx, path, &again), "one that is not there", "there is no ");
    etd_key_fingerprint(KEY, fingerprint);
    is_int((int64_t)strlen(fingerprint), 50, "a fingerprint has 50 characters");
    ok(strncmp(fingerprint, "SHA256:", 7) == 0, "%s", fingerprint);
}

/* A line of a file that lets nobody in: where it is, whichever it is. */
static void
test_wrong_line(void)
{
    static const char right[] = "viewer " KEY " me\n";
    char path[512], want[600];
    snprintf(path, sizeof path, "%s/authorized_keys", scratch_folder());
    for (int wrong = 0; wrong <= 4; wrong++) { /* 0: none is */
        FILE *f = fopen(path, "w");
        for (int line = 1; f && line <= 4; line++)
            fputs(line == wrong ? "viewer\n" : line == 1 ? right : "\n", f);
        if (!f || fclose(f) != 0 || chmod(path, 0600) != 0)
            bail("cannot write %s", path);
        et_status status = etd_authorized_read(cx, path, &list);
        snprintf(want, sizeof want, "%s:%d: it has no key", path, wrong);
        ok(wrong ? status == ET_EFORMAT &&
                       strncmp(et_error_get(cx)->message, want, strlen(want)) == 0
                 : status == ET_OK && list.n == 1,
           "line %d of a file is wrong, and nobody is let in: %s", wrong,
           et_error_get(cx)->message);
        et_error_clear(cx);
    }
    unlink(path);
}

/* A file that lets so many in as there may be, and nobody else. */
static void
test_allow(void)
{
    char path[512], first[ETD_KEY_TEXT] = "";
    const char *had;
    struct etd_keys keys;
    snprintf(path, sizeof path, "%s/authorized_keys", scratch_folder());
    ok(etd_authorized_allow(cx, path, KEY, false, "ann", &had) == ET_OK && !*had &&
           etd_authorized_read(cx, path, &list) == ET_OK && list.n == 1,
       "the first key that is let in makes the file");
    is_denied(etd_authorized_allow(cx, path, KEY, false, "  ", &had), "a key of nobody",
              "no comment that says whose key it is");
    int refused = 0;
    for (int i = 1; i < ETD_KEYS_MOST; i++) {
        if (etd_keys_draw(cx, &keys) != ET_OK)
            bail("no keys");
        refused +=
            etd_authorized_allow(cx, path, keys.public_key, true, "b", &had) != ET_OK;
    }
    is_int(refused, 0, "%d keys are let in", ETD_KEYS_MOST);
    memcpy(first, keys.public_key, sizeof first);
    if (etd_keys_draw(cx, &keys) != ET_OK)
        bail("no keys");
    is_denied(etd_authorized_allow(cx, path, keys.public_key, true, "c", &had),
              "one more", "more than 256 keys");
    ok(etd_authorized_read(cx, path, &list) == ET_OK && list.n == ETD_KEYS_MOST &&
           !etd_authorized_find(&list, keys.public_key, 0),
       "and those before it are let in as they were");
    ok(etd_authorized_allow(cx, path, first, false, "b", &had) == ET_OK &&
           strcmp(had, "operator") == 0,
       "the role of one of them can still be changed");
    unlink(path);
}

/* Each of CHILDREN processes lets KEYS keys in, and writes as many workers. */
static void
test_at_once(void)
{
    enum { CHILDREN = 4, KEYS = 10 };
    char path[512], list_path[512];
    const char *had;
    int failed = 0, status;
    snprintf(path, sizeof path, "%s/authorized_keys", scratch_folder());
    snprintf(list_path, sizeof list_path, "%s/workers.yaml", scratch_folder());
    for (int i = 0; i < CHILDREN; i++) {
        if (fork() != 0)
            continue;
        for (int k = 0; k < KEYS; k++) {
            char name[32];
            struct etd_keys keys;
            const struct etd_worker w = {
                .address = "tcp://192.0.2.4:7017", .key = KEY, .since = "2027-01-31"};
            snprintf(name, sizeof name, "lab-%d-%d", i, k);
            failed += etd_keys_draw(cx, &keys) != ET_OK ||
                      etd_authorized_allow(cx, path, keys.public_key, true, name,
                                           &had) != ET_OK ||
                      etd_workers_write(cx, list_path, name, &w) != ET_OK;
        }
        _exit(failed);
    }
    while (wait(&status) > 0)
        failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    is_int(failed, 0, "%d processes let keys in at once, and add workers", CHILDREN);
    ok(etd_authorized_read(cx, path, &list) == ET_OK, "the list is in order,");
    is_int(list.n, CHILDREN * KEYS, "and lacks none of them");
    ok(etd_workers_read(cx, list_path, &workers) == ET_OK, "so is that of workers,");
    is_int(workers.n, CHILDREN * KEYS, "which lacks none either");
    unlink(path);
    unlink(list_path);
}

static void
test_workers(void)
{
    char path[512], said[128], text[512] = "";
    static const char wrong[] = "a: {address: \"tcp://h:1\"}\n";
    struct etd_worker w = {.name = "lab-a",
                           .address = "tcp://192.0.2.4:7017",
                           .key = KEY,
                           .since = "2026-11-22"};
    snprintf(path, sizeof path, "%s/workers.yaml", scratch_folder());
    ok(etd_workers_read(cx, path, &workers) == ET_OK && workers.n == 0,
       "none at first");
    FILE *f = fopen(path, "w");
    fputs("# mine\nlab-ab: {address: ssh://b, since: 2026-01-01}\n", f);
    fclose(f);
    ok(etd_workers_write(cx, path, w.name, &w) == ET_OK &&
           etd_workers_read(cx, path, &workers) == ET_OK && workers.n == 2,
       "one is added");
    const struct etd_worker *got = etd_workers_find(&workers, "tcp://192.0.2.4:7017");
    ok(got && memcmp(got, &w, sizeof w) == 0, "and found by its address");
    ok(etd_workers_find(&workers, "lab-ab")->key[0] == '\0', "one by ssh has no key");
    ok(etd_workers_write(cx, path, w.name, NULL) == ET_OK, "it is removed");
    f = fopen(path, "r");
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    is_str(text, "# mine\nlab-ab: {address: ssh://b, since: 2026-01-01}\n",
           "all else stands as it did");
    f = fopen(path, "w");
    fputs("# mine\nlab-ab: {address: ssh://b, since: 2026-01-01}", f);
    fclose(f);
    ok(etd_workers_write(cx, path, w.name, &w) == ET_OK &&
           etd_workers_read(cx, path, &workers) == ET_OK && workers.n == 2 &&
           memcmp(etd_workers_find(&workers, w.name), &w, sizeof w) == 0,
       "a last line that has no end keeps to itself");
    f = fopen(path, "w");
    for (int i = 0; i < ETD_WORKERS_MOST; i++)
        fprintf(f, "lab-%d: {address: ssh://b, since: 2026-01-01}\n", i);
    fclose(f);
    ok(etd_workers_read(cx, path, &workers) == ET_OK && workers.n == ETD_WORKERS_MOST &&
           strcmp(workers.worker[255].name, "lab-255") == 0,
       "there may be 256 workers");
    ok(etd_workers_write(cx, path, "one-more", &w) == ET_EFORMAT,
       "one more is refused");
    is_int(et_error_get(cx)->code, ETD_E_WORKER, "%s", et_error_get(cx)->message);
    ok(strstr(et_error_get(cx)->message, "line 257: more than 256 workers"),
       "by a sentence that says why");
    et_error_clear(cx);
    ok(etd_workers_read(cx, path, &workers) == ET_OK && workers.n == ETD_WORKERS_MOST &&
           !etd_workers_find(&workers, "one-more"),
       "and those before it stand as they did");
    ok(etd_workers_write(cx, path, "lab-7", &w) == ET_OK,
       "one of them can be replaced");
    is_int(etd_workers_parse(wrong, strlen(wrong), &workers, said, sizeof said), 1,
           "a TCP worker without a key is none");
    is_int(etd_workers_parse("x\n", 2, &workers, said, sizeof said), 1,
           "nor is any line of text");
}

/* ---- what stands in a file, to the letter ---- */

static void
write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0 || chmod(path, 0600) != 0)
        bail("cannot write %s", path);
}

static const char *
read_text(const char *path)
{
    static char text[1 << 10];
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = '\0';
    if (f)
        fclose(f);
    return text;
}

/* One line: what it lets in, or why nobody is let in. */
static void
test_lines(void)
{
    static const struct {
        const char *line, *comment;
        double until;
        const char *why;
    } row[] = {
        {"viewer " KEY " ann\t# at home", "ann", 0, NULL},
        {"viewer " KEY " ann\r", "ann", 0, NULL},
        {"  viewer\t" KEY "  ann  b", "ann b", 0, NULL},
        {"operator " KEY " ann#1", "ann#1", 0, NULL},
        {"viewer " KEY " until=1970-01-02 ann", "ann", 2 * 24 * 3600, NULL},
        {"viewer " KEY " ann until=2028-02-29", "ann", 1835481600, NULL},
        {"viewer " KEY " until=2027-01-31", NULL, 0, "it has no comment"},
        {"viewer " KEY " ann until=2027-1-31", NULL, 0, "until= is no day"},
        {"viewer " KEY " ann until=2027-01-31x", NULL, 0, "until= is no day"},
        {"viewer " KEY " ann until=2027-02-29", NULL, 0, "until= is no day"},
        {"viewer " KEY " ann until=2027-04-31", NULL, 0, "until= is no day"},
        {"view " KEY " ann", NULL, 0, "neither viewer nor operator"},
        {"viewers " KEY " ann", NULL, 0, "neither viewer nor operator"},
        {"operators " KEY " ann", NULL, 0, "neither viewer nor operator"},
    };
    char line[300], why[128];
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        int wrong = etd_authorized_parse(row[i].line, strlen(row[i].line), &list, why,
                                         sizeof why);
        if (row[i].why)
            ok(wrong == 1 && list.n == 0 && strstr(why, row[i].why), "%.8s..%s: %s",
               row[i].line, strrchr(row[i].line, ' '), row[i].why);
        else
            ok(wrong == 0 && list.n == 1 &&
                   strcmp(list.key[0].comment, row[i].comment) == 0 &&
                   strcmp(list.key[0].key, KEY) == 0 &&
                   fabs(list.key[0].until - row[i].until) < 0.5 &&
                   list.key[0].is_operator == (row[i].line[0] == 'o'),
               "%.8s..%s lets '%s' in", row[i].line, strrchr(row[i].line, ' '),
               row[i].comment);
    }
    is_int(
        etd_authorized_parse(row[4].line, strlen(row[4].line), &list, why, sizeof why),
        0, "(a day of which all seconds are known)");
    ok(etd_authorized_find(&list, KEY, 2 * 24 * 3600 - 1e-3) &&
           !etd_authorized_find(&list, KEY, 2 * 24 * 3600),
       "a key holds until its day is over, and no longer");
    for (int n = 254; n <= 256; n++) {
        snprintf(line, sizeof line, "viewer %s %0*d", KEY, n - 48, 1);
        is_int(etd_authorized_parse(line, strlen(line), &list, why, sizeof why),
               n > 255, "a line of %d bytes", n);
    }
}

/* What is changed in a list, and what stands as it did. */
static void
test_changed_lists(void)
{
    static const char other[] = "operator rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf8 b\n";
    char path[512], text[512], want[512];
    const char *had;
    snprintf(path, sizeof path, "%s/authorized_keys", scratch_folder());
    for (int i = 0; i < 2; i++) {
        snprintf(text, sizeof text, "# mine\n%s%s\t%s  old%s\n%s", i ? "  " : "",
                 i ? "operator" : "viewer", KEY, i ? "" : "\r", other);
        snprintf(want, sizeof want, "# mine\n%s%s %s new\n", other,
                 i ? "viewer" : "operator", KEY);
        write_text(path, text);
        ok(etd_authorized_allow(cx, path, KEY, !i, "new", &had) == ET_OK,
           "a key gets another role");
        is_str(had, i ? "operator" : "viewer", "the one that it had is told");
        is_str(read_text(path), want, "all lines of others stand as they did");
    }
    snprintf(text, sizeof text, "%sroot %s c\n", other, KEY);
    write_text(path, text);
    is_denied(etd_authorized_allow(cx, path, KEY, false, "new", &had),
              "a change of a list that is wrong", "neither viewer nor operator");
    is_str(read_text(path), text, "which stands as it did");
    unlink(path);
    snprintf(path, sizeof path, "%s/workers.yaml", scratch_folder());
    write_text(path, "# mine\nlab\n");
    ok(etd_workers_write(cx, path, "lab", NULL) == ET_EFORMAT,
       "nothing is removed from a list of workers that is wrong");
    et_error_clear(cx);
    is_str(read_text(path), "# mine\nlab\n", "which stands as it did, too");
    unlink(path);
}

/* One line of a list of workers. */
static void
test_worker_lines(void)
{
    static const struct {
        const char *line, *address, *key, *since; /* NULL: it is wrong */
        int n;
    } row[] = {
        {"a: {address: ssh://b}", "ssh://b", "", "", 1},
        {"a: {address: \"ssh://b,c}d\", since: 2026-01-02}", "ssh://b,c}d", "",
         "2026-01-02", 1},
        {"a: {since: 2026-01-02, address: tcp://h:1, key: \"" KEY "\"}", "tcp://h:1",
         KEY, "2026-01-02", 1},
        {" \t", "", "", "", 0},
        {"---", "", "", "", 0},
        {"# a: b", "", "", "", 0},
        {"a: {address: ssh://b", NULL, NULL, NULL, 0},
        {"a: {address: ssh://b, key: \"" KEY "\"}", NULL, NULL, NULL, 0},
        {"a: {address: ssh://b, since: 2026-01-02-0345}", "ssh://b", "",
         "2026-01-02-0345", 1},
        {"a: {address: ssh://b, since: 2026-01-02-03456}", NULL, NULL, NULL, 0},
        {"a: {address: tcp://h:1, key: \"" KEY "7\"}", NULL, NULL, NULL, 0},
        {": {address: ssh://b}", NULL, NULL, NULL, 0},
    };
    char why[128], text[512];
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const char *line = row[i].line;
        int wrong = etd_workers_parse(line, strlen(line), &workers, why, sizeof why);
        const struct etd_worker *w = &workers.worker[0];
        ok(row[i].address ? wrong == 0 && workers.n == row[i].n
                          : wrong == 1 && workers.n == 0,
           "'%s' is %s", line, row[i].address ? "right" : "wrong");
        if (row[i].n > 0)
            ok(strcmp(w->name, "a") == 0 && strcmp(w->address, row[i].address) == 0 &&
                   strcmp(w->key, row[i].key) == 0 &&
                   strcmp(w->since, row[i].since) == 0,
               "and is read to the letter");
    }
    for (int n = 62; n <= 64; n++) {
        snprintf(text, sizeof text, "%0*d: {address: ssh://host.example}", n, 1);
        is_int(etd_workers_parse(text, strlen(text), &workers, why, sizeof why), n > 63,
               "a name of %d bytes", n);
    }
    snprintf(text, sizeof text, "a: {address: ssh://host.example}");
    (void)etd_workers_parse(text, strlen(text), &workers, why, sizeof why);
    ok(etd_workers_find(&workers, "ssh://host.example") &&
           !etd_workers_find(&workers, "ssh://host") &&
           !etd_workers_find(&workers, "host.example"),
       "a worker is found by its whole address");
}

/* ---- a key's file ---- */

static ssize_t
write_nothing(int fd, const void *buf, size_t n)
{
    (void)fd;
    (void)buf;
    (void)n;
    errno = ENOSPC;
    return -1;
}

/* A disk that is full, a file as long as it may be, and words that are no keys. */
static void
test_key_files(void)
{
    struct eti_seams seams = eti_system;
    struct etd_keys keys, again;
    char path[512], text[1100];
    snprintf(path, sizeof path, "%s/curve.key", scratch_folder());
    need(cx, etd_keys_draw(cx, &keys));
    seams.file.write = write_nothing;
    eti_ctx_set_seams(cx, &seams);
    ok(etd_keys_write(cx, path, &keys) != ET_OK, "a key is not written to a full disk");
    et_error_clear(cx);
    eti_ctx_set_seams(cx, &eti_system);
    ok(access(path, F_OK) != 0, "and leaves no file that would keep another out");
    for (int n = 1022; n <= 1024; n++) {
        int used = snprintf(text, sizeof text,
                            "publicly none\nsecret-less\npublic %s\nsecret %s\n#",
                            keys.public_key, keys.secret);
        memset(text + used, 'x', (size_t)(n - used));
        text[n] = '\0';
        write_text(path, text);
        if (n > 1023)
            is_denied(etd_keys_read(cx, path, &again), "a file of 1,024 bytes",
                      "more than 1023 bytes");
        else
            ok(etd_keys_read(cx, path, &again) == ET_OK &&
                   memcmp(&keys, &again, sizeof keys) == 0,
               "a key is found in a file of %d bytes", n);
    }
    unlink(path);
}

int
main(void)
{
    umask(022);
    cx = need_ctx();
    test_drawn();
    test_authorized();
    test_files();
    test_wrong_line();
    test_allow();
    test_at_once();
    test_workers();
    test_lines();
    test_changed_lists();
    test_worker_lines();
    test_key_files();
    et_ctx_free(&cx);
    return done();
}
