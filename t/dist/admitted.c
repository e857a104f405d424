/* SPDX-License-Identifier: Apache-2.0 */
/* Who is let in over TCP (auth.h): what zmq asks is answered by the list as it is now,
 * and by nothing else. The test asks as zmq does (ZAP, RFC 27), and has the clock. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include "core/base/seams.h"
#include "dist/wire/auth.h"
#include "dist/wire/errors.h"
#include "t/data/fixture.h"
#include "t/tap.h"

enum { DAY = 24 * 3600 };

static struct et_ctx *cx;
static double time_is = 1000, day_is = 10 * DAY; /* since 1970 */
static void *zmq;
static struct etd_auth d;
static char path[512];
static int warnings;
static struct etd_keys known, other, stranger;

static double
test_clock(void)
{
    return time_is;
}

static double
test_day(void)
{
    return day_is;
}

static void
count_warnings(void *data, enum et_log_level level, const char *text)
{
    (void)data;
    warnings += level == ET_LOG_WARN && strstr(text, "nobody is let in") != NULL;
}

/* The list becomes TEXT. */
static void
write_list(const char *text)
{
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0 || chmod(path, 0600) != 0)
        bail("cannot write %s", path);
}

static const char *
line_of(const char *role, const struct etd_keys *keys, const char *until)
{
    static char text[2][160];
    static int turn;
    turn = !turn;
    snprintf(text[turn], sizeof text[turn], "%s %s me%s\n", role, keys->public_key,
             until);
    return text[turn];
}

/* ---- questions ---- */

struct question {
    const char *version, *mechanism;
    int bytes; /* of the key */
    int parts;
    bool admitted; /* where the key is known */
};

/* Asks about KEY by Q, and is answered: is it let in? */
static bool
ask(const struct etd_keys *key, const struct question *q)
{
    static int number;
    static const char *const said[] = {"1.0", NULL, "400", "no such key", "", ""};
    char got[8][64] = {{0}}, id[16];
    unsigned char raw[64] = {0};
    int n = 0, more = 1;
    size_t size = sizeof more;
    void *socket = zmq_socket(zmq, ZMQ_REQ);
    if (!socket || zmq_connect(socket, "inproc://zeromq.zap.01") != 0)
        bail("nobody answers");
    zmq_z85_decode(raw, key->public_key);
    snprintf(id, sizeof id, "id-%d", ++number);
    const void *part[8] = {q->version, id,           "etude", "192.0.2.1",
                           "",         q->mechanism, raw,     "more"};
    const size_t length[8] = {strlen(q->version),   strlen(id),       5, 9, 0,
                              strlen(q->mechanism), (size_t)q->bytes, 4};
    for (int i = 0; i < q->parts; i++)
        if (zmq_send(socket, part[i], length[i], i < q->parts - 1 ? ZMQ_SNDMORE : 0) <
            0)
            bail("nothing is asked");
    zmq_pollitem_t item = {.socket = socket, .events = ZMQ_POLLIN};
    for (int i = 0; zmq_poll(&item, 1, 5) == 0; i++)
        if (!etd_auth_step(&d) || i == 5000)
            bail("there is no answer");
    for (; more && n < 8; n++) {
        int bytes = zmq_recv(socket, got[n], sizeof got[n] - 1, 0);
        if (bytes < 0 || zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size) != 0)
            bail("the answer has no end");
    }
    zmq_close(socket);
    bool right = strcmp(got[2], "200") == 0, well = n == 6;
    for (int i = 0; i < 6 && well; i++)
        well = strcmp(got[i], i == 1            ? id
                              : right && i == 2 ? "200"
                              : right && i == 3 ? "OK"
                              : right && i == 4 ? key->public_key
                                                : said[i]) == 0;
    ok(well, "question %s is answered with its own number, and %s", id,
       right ? "who it is" : "without a name");
    return right;
}

static const struct question usual = {"1.0", "CURVE", 32, 7, true};

static void
is_admitted(const struct etd_keys *key, bool want, const char *what)
{
    const int64_t in = d.admitted, out = d.refused;
    is_int(ask(key, &usual), want, "%s", what);
    ok(d.admitted == in + want && d.refused == out + !want, "which is counted");
    if (!want)
        is_str(d.last_refused, key->public_key, "and kept");
}

static void
test_questions(void)
{
    static const struct question row[] = {
        {"1.0", "CURVE", 32, 7, true},  {"2.0", "CURVE", 32, 7, false},
        {"1.0", "NULL", 32, 7, false},  {"1.0", "CURVES", 32, 7, false},
        {"1.0", "CURVE", 31, 7, false}, {"1.0", "CURVE", 33, 7, false},
        {"1.0", "CURVE", 32, 8, false}, {"1.0", "CURVE", 32, 2, false},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const int64_t in = d.admitted, out = d.refused;
        is_int(ask(&known, &row[i]), row[i].admitted,
               "a known key by version %s, %s, of %d bytes, in %d parts",
               row[i].version, row[i].mechanism, row[i].bytes, row[i].parts);
        ok(d.admitted == in + row[i].admitted && d.refused == out + !row[i].admitted,
           "is counted as it is answered");
    }
    is_admitted(&stranger, false, "a stranger is not let in");
}

/* ---- the list ---- */

static void
test_opening(void)
{
    static const struct {
        const char *text;
        const char *why;
    } row[] = {{"", "lets nobody in"}, {"root\n", "neither viewer nor operator"}};
    char text[512];
    for (int i = 0; i < 3; i++) {
        write_list(i < 2 ? row[i].text
                         : line_of("viewer", &known, " until=1970-01-10"));
        ok(etd_auth_open(cx, zmq, path, &d) != ET_OK &&
               et_error_get(cx)->code == ETD_E_KEYS &&
               strstr(et_error_get(cx)->message, i < 2 ? row[i].why : "lets nobody in"),
           "a list that lets nobody in opens no door: %s", et_error_get(cx)->message);
        et_error_clear(cx);
    }
    snprintf(text, sizeof text, "%s%s", line_of("viewer", &other, " until=1970-01-10"),
             line_of("viewer", &known, " until=1970-01-11"));
    write_list(text);
    need(cx, etd_auth_open(cx, zmq, path, &d));
    is_admitted(&known, true, "a key is let in on its last day");
    is_admitted(&other, false, "one whose last day was yesterday is not");
    day_is += DAY;
    is_admitted(&known, false, "nor is the first on the day behind its last");
    day_is -= DAY;
}

/* The list is read again when it has changed, once a second at most. */
static void
test_changes(void)
{
    struct rlimit before;
    write_list(line_of("operator", &other, ""));
    time_is += 0.6;
    is_admitted(&known, true, "half a second behind a change the list is as it was");
    time_is += 0.6;
    is_admitted(&known, false, "a second behind it who was taken out is not let in");
    is_admitted(&other, true, "and who was put in is");
    ok(etd_auth_find(&d, other.public_key)->is_operator, "with its role");
    time_is += 0.5;
    write_list(line_of("viewer", &known, ""));
    is_admitted(&other, true, "the next second counts from the look before");
    time_is += 0.6;
    is_admitted(&known, true, "and then it is read again");
    is_int(warnings, 0, "nothing is said of that");
    write_list("root\n");
    for (int i = 0; i < 3; i++) {
        time_is += 1.1;
        is_admitted(&known, false, "a list that is wrong lets nobody in");
        is_int(warnings, 1, "which is said once");
    }
    write_list(line_of("viewer", &known, ""));
    chmod(path, 0644);
    time_is += 1.1;
    is_admitted(&known, false, "nor does one that others can read");
    is_int(warnings, 2, "which is said, too");
    chmod(path, 0600);
    time_is += 1.1;
    is_admitted(&known, true, "and when it is in order again it does");
    /* What keeps us from reading is nothing that the file shows. */
    write_list(line_of("operator", &known, ""));
    time_is += 1.1;
    getrlimit(RLIMIT_NOFILE, &before);
    int next = dup(0);
    close(next);
    const struct rlimit none = {(rlim_t)next, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    (void)etd_auth_step(&d);
    setrlimit(RLIMIT_NOFILE, &before);
    ok(!etd_auth_find(&d, known.public_key), "a list that cannot be opened has nobody");
    is_int(warnings, 3, "which is said");
    time_is += 1.1;
    is_admitted(&known, true, "and is tried again, although it is the same");
}

/* ---- listening ---- */

static void
test_addresses(void)
{
    static const struct {
        const char *address;
        int code; /* 0: it may be listened at */
    } row[] = {
        {"tcp://127.0.0.1:0", 0},           {"tcp://0.0.0.0:65535", 0},
        {"tcp://*:7000", ETD_E_UNSAFE},     {"tcp://127.0.0.1:*", ETD_E_UNSAFE},
        {"ipc://x:1", ETD_E_UNSAFE},        {"127.0.0.1:7000", ETD_E_UNSAFE},
        {"tcp://127.0.0.1", ETD_E_ADDRESS}, {"tcp://127.0.0.1:65536", ETD_E_ADDRESS},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        et_status status = etd_auth_check(cx, row[i].address);
        is_int(status == ET_OK ? 0 : et_error_get(cx)->code, row[i].code, "%s",
               row[i].address);
        et_error_clear(cx);
    }
}

/* A door is open when a stranger has been seen to be turned away there. */
static void
test_binding(void)
{
    static const char *const at[] = {"tcp://127.0.0.1:0", "tcp://0.0.0.0:0",
                                     "tcp://127.0.0.2:0"};
    for (int i = 0; i < 3; i++) {
        const int64_t in = d.admitted, out = d.refused;
        char bound[ETD_ADDRESS] = "";
        void *router = zmq_socket(zmq, ZMQ_ROUTER);
        need(cx, etd_auth_bind(&d, router, &other, at[i], bound));
        ok(strncmp(bound, at[i], strlen(at[i]) - 1) == 0 &&
               strtol(strrchr(bound, ':') + 1, NULL, 10) > 0,
           "%s is listened at: %s", at[i], bound);
        ok(d.admitted == in && d.refused == out + 1,
           "when one stranger was turned away");
        ok(strcmp(d.last_refused, known.public_key) != 0 && etd_key_is(d.last_refused),
           "whom nobody knows");
        zmq_close(router);
    }
}

int
main(void)
{
    struct eti_seams seams = eti_system;
    cx = need_ctx();
    zmq = zmq_ctx_new();
    snprintf(path, sizeof path, "%s/authorized_keys", scratch_folder());
    need(cx, etd_keys_draw(cx, &known));
    need(cx, etd_keys_draw(cx, &other));
    need(cx, etd_keys_draw(cx, &stranger));
    seams.monotonic = test_clock;
    seams.wall = test_day;
    eti_ctx_set_seams(cx, &seams);
    et_ctx_set_log(cx, ET_LOG_WARN, count_warnings, NULL);
    test_opening();
    test_questions();
    test_changes();
    test_addresses();
    test_binding();
    etd_auth_close(&d);
    zmq_ctx_term(zmq);
    et_ctx_free(&cx);
    return done();
}
