/* SPDX-License-Identifier: Apache-2.0 */
/* Viewers that were written from the manual page alone see what the log says. */
#include "config.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "t/dist/house.h"
#include "t/tap.h"

enum { RECORDS = 700, SAID = 256 << 10, PATIENCE = 120 /* seconds */ };
static struct house h;
static char said[SAID];

/* The next line that a viewer said, from AT on. */
static const char *
find_line(const char *begin)
{
    static char line[1024];
    char pattern[64];
    snprintf(pattern, sizeof pattern, "\n%s", begin);
    const char *at = strstr(said, pattern);
    snprintf(line, sizeof line, "%.*s", at ? (int)strcspn(at + 1, "\n") : 0,
             at ? at + 1 : "");
    return line;
}

/* The hub has read its log, and its next snapshot is a new one: whoever comes within a
 * second gets that of the one before. */
static void
settle(void)
{
    struct etd_client *c = house_client(&h, false);
    if (!house_drive(&h, &c, 1, all_equal))
        bail("the hub does not read its log");
    etd_client_close(&c);
    usleep(1100000);
}

/* Runs PROGRAM until it has had RECORDS records, which are told once it is there. */
static void
test_viewer(const char *what, const char *program, const char *script)
{
    int out[2], status = 0;
    size_t n = 1;
    char count[16], wanted[128];
    int64_t first = h.log.seq + 1;
    bool told = false;
    settle();
    snprintf(count, sizeof count, "%d", RECORDS + 1); /* with that of the command */
    if (pipe(out) != 0)
        bail("no pipe");
    pid_t child = fork();
    if (child == 0) {
        dup2(out[1], STDOUT_FILENO);
        close(out[0]);
        close(out[1]);
        if (script)
            execlp(program, program, script, h.socket, count, "pause", NULL);
        else
            execl(program, program, h.socket, count, "pause", NULL);
        _exit(127);
    }
    close(out[1]);
    said[0] = '\n';
    for (double end = eti_monotonic(h.cx) + PATIENCE; eti_monotonic(h.cx) < end;) {
        struct pollfd p = {.fd = out[0], .events = POLLIN};
        house_supervise(&h);
        if (poll(&p, 1, 10) == 0)
            continue;
        ssize_t got = read(out[0], said + n, sizeof said - 1 - n);
        if (got <= 0)
            break;
        n += (size_t)got;
        said[n] = '\0';
        if (!told && strstr(said, "\nAPPLIED")) {
            told = true;
            house_tell(&h, RECORDS);
        }
    }
    close(out[0]);
    waitpid(child, &status, 0);
    ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s sees its records, and ends",
       what);
    is_str(find_line("WELCOME"), "WELCOME name=test-otter role=operator",
           "it is let in");
    snprintf(wanted, sizeof wanted, "SNAP_BEGIN s=%lld bytes=", (long long)first - 1);
    ok(find_line(wanted)[0], "it gets a snapshot behind the last record: %s",
       find_line("SNAP_BEGIN"));
    ok(find_line("RECEIVED")[0], "its command is written down");
    snprintf(wanted, sizeof wanted, "APPLIED step=%lld rev=%lld",
             (long long)h.ba - (told ? RECORDS : 0), (long long)h.rev);
    ok(find_line(wanted)[0], "and applied: %s", find_line("APPLIED"));
    snprintf(wanted, sizeof wanted, "%lld command ba=%lld text=uid:%ld pause",
             (long long)first, (long long)h.ba - RECORDS, (long)getuid());
    ok(find_line(wanted)[0], "which is the first record that it sees");
    /* All of them, in order, and the numbers of the last. */
    int in_order = 0;
    const char *at = said;
    for (int64_t seq = first; at && seq <= first + RECORDS; seq++) {
        snprintf(wanted, sizeof wanted, "\n%lld ", (long long)seq);
        at = strstr(at, wanted);
        in_order += at != NULL;
    }
    is_int(in_order, RECORDS + 1, "all others follow in order");
    int64_t ba = h.ba;
    while (ba % 100 == 0 || ba % 31 == 0)
        ba--;
    snprintf(wanted, sizeof wanted,
             "%lld batch ba=%lld loss/train/total=%.9g lr-SGD/group0=0.1",
             (long long)(first + RECORDS - (h.ba - ba)), (long long)ba,
             1.0 / (double)ba);
    is_str(find_line(wanted), wanted, "with their numbers");
}

/* What SCRIPT prints of the answer to OP KEY VALUE. */
static const char *
ask(const char *python, const char *script, const char *op, const char *key,
    const char *value, const char *answer)
{
    char command[4096 + 4096];
    size_t n = 1;
    snprintf(command, sizeof command, "%s '%s' '%s' 1 %s %s '%s'", python, script,
             h.socket, op, key, value);
    FILE *out = popen(command, "r");
    if (!out)
        bail("no %s", python);
    said[0] = '\n';
    for (double end = eti_monotonic(h.cx) + PATIENCE; eti_monotonic(h.cx) < end;) {
        struct pollfd p = {.fd = fileno(out), .events = POLLIN};
        house_supervise(&h);
        if (poll(&p, 1, 10) == 0)
            continue;
        ssize_t got = read(p.fd, said + n, sizeof said - 1 - n);
        if (got <= 0)
            break;
        n += (size_t)got;
        said[n] = '\0';
        if (strstr(said, "\nREJECTED")) /* it makes no record to end with */
            house_tell(&h, 1);
        if (strstr(said, " command "))
            h.holds_answers = false;
    }
    pclose(out);
    return find_line(answer);
}

/* The viewer gives commands with arguments as the page lists them. */
static void
test_arguments(const char *python, const char *script)
{
    settle();
    h.holds_answers = true; /* until it has the one record that it asks for */
    ok(strstr(ask(python, script, "set", "optimizer.lr", "0.05", "APPLIED"), "step="),
       "a viewer sets an option, and waits for the answer: %s", find_line("APPLIED"));
    settle();
    is_str(ask(python, script, "set", "optimizer.lr", "bad", "REJECTED"),
           "REJECTED code=5008 text=optimizer.lr bad outside (0, 10]",
           "one that cannot be is rejected with the number that the page has");
    settle();
    is_str(ask(python, script, "annotate", "", "", "REJECTED"),
           "REJECTED code=5008 text=no value",
           "an operation without its argument likewise");
}

int
main(void)
{
    const char *build = getenv("ET_BUILDDIR"), *source = getenv("ET_SRCDIR");
    const char *python = NULL;
    char program[4096], script[4096];
    int code;
    house_begin(&h);
    house_tell(&h, 1000);
    if (!house_start(&h, &code))
        bail("no hub");
    snprintf(program, sizeof program, "%s/examples/viewer", build ? build : ".");
    test_viewer("examples/viewer.c", program, NULL);
    settle();
    h.holds_answers = true;
    ok(strstr(ask("", program, "pause", "", "", "APPLIED"), "step="),
       "a viewer that has its records waits for what comes of its command: %s",
       find_line("APPLIED"));
    static const char *const pythons[] = {"python3", "/usr/bin/python3"};
    for (int i = 0; i < 2 && !python; i++) {
        char try[128];
        snprintf(try, sizeof try, "%s -c 'import zmq, msgpack' 2>/dev/null",
                 pythons[i]);
        if (system(try) == 0)
            python = pythons[i];
    }
    snprintf(script, sizeof script, "%s/examples/viewer.py", source ? source : ".");
    if (python) {
        test_viewer("examples/viewer.py", python, script);
        test_arguments(python, script);
    } else
        skip(11, "python3 has no zmq and msgpack (python3-zmq, python3-msgpack)");
    house_end(&h);
    return done();
}
