/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker says when it is asked of its host: who it is, its runs, its machine,
 * how fast bytes come, and to recipes; and whom it turns away. Somebody's connection
 * may be full at any message. */
#include "config.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "dist/wire/errors.h"
#include "dist/worker/host.h"
#include "t/dist/heard.h"
#include "t/dist/house.h"
#include "t/tap.h"

static struct house h;

/* ---- saying ---- */

static char space[ETD_CHUNK_BYTES];

static struct etd_out
say(enum etd_kind kind, int n_keys)
{
    struct etd_out o;
    const struct etd_head head = {.kind = kind};
    etd_begin(&o, space, sizeof space, &head, n_keys);
    return o;
}

static void
ask(struct etd_session *s, enum etd_kind kind)
{
    struct etd_out o = say(kind, 0);
    heard_tell(s, space, etd_end(&o));
}

/* A conversation with the host. */
static struct etd_session *
greet(bool is_operator)
{
    struct etd_session *s = heard_open(is_operator);
    struct etd_out o = say(ETD_HELLO, 1);
    etd_put_bool(&o, "worker", true);
    heard_tell(s, space, etd_end(&o));
    return s;
}

static void
leave(struct etd_session *s)
{
    etd_session_free(&s);
    heard_forget();
    heard_full = false;
    heard_room = HEARD_MOST;
}

static void
is_code(enum etd_kind kind, const char *code, const char *what)
{
    char text[32];
    struct etd_frame f = heard_last(kind);
    is_str(etd_get_text(&f.body, "code", text, sizeof text), code, "%s", what);
}

/* ---- who it is ---- */

static void
test_welcome(void)
{
    char text[256];
    for (int is_operator = 0; is_operator < 2; is_operator++) {
        struct etd_session *s = greet(is_operator);
        struct etd_frame f = heard_frame(0);
        is_int((int)f.head.kind, ETD_WELCOME,
               "a worker welcomes who asks for the host");
        is_str(etd_get_text(&f.body, "role", text, sizeof text),
               is_operator ? "operator" : "viewer", "and says what his key may do,");
        is_str(etd_get_text(&f.body, "version", text, sizeof text), PACKAGE_VERSION,
               "which version it is,");
        char own[256] = "";
        (void)gethostname(own, sizeof own - 1);
        is_str(etd_get_text(&f.body, "name", text, sizeof text), own,
               "what its machine is called,");
        ok(etd_get_bool(&f.body, "worker", false) &&
               etd_get_int(&f.body, "cores", 0) == sysconf(_SC_NPROCESSORS_ONLN) &&
               etd_get_int(&f.body, "minor", -1) == ETD_MINOR,
           "that it is a worker, and how many processors it has");
        ask(s, ETD_PING);
        is_int(heard_count(ETD_PONG), 1, "it answers a PING");
        ask(s, ETD_NACK);
        ok(heard_drive(s) && heard_n == 2, "what is for a run's hub is not answered");
        leave(s);
    }
}

/* Whoever begins otherwise. */
static void
test_turned_away(void)
{
    struct etd_session *s = heard_open(true);
    ask(s, ETD_PING);
    is_code(ETD_BYE, "UNKNOWN", "who does not say HELLO is sent away");
    ok(!heard_drive(s) && heard_n == 1, "and hears nothing more");
    leave(s);

    s = greet(true);
    struct etd_out o = say(ETD_HELLO, 1);
    etd_put_bool(&o, "worker", true);
    heard_tell(s, space, etd_end(&o));
    is_code(ETD_BYE, "UNKNOWN", "who says HELLO twice is sent away");
    leave(s);

    s = heard_open(true);
    o = say(ETD_HELLO, 0);
    size_t n = etd_end(&o);
    space[1] = ETD_MAJOR + 1;
    heard_tell(s, space, n);
    is_code(ETD_REFUSE, "VERSION", "who speaks another major version is refused");
    ok(!heard_drive(s), "which is the end");
    leave(s);

    s = greet(true);
    heard_tell(s, "\x9a\x01", 2);
    is_code(ETD_BYE, "MALFORMED", "who says what is no frame is sent away");
    ok(!heard_drive(s), "which is the end");
    leave(s);
}

/* ---- runs ---- */

/* The facts of ours in the list that was told; NULL where it is not whole, in order, or
 * has other runs. The caller owns them. */
static json_t *
told_run(void)
{
    struct etd_value v;
    struct etd_frame first = heard_frame(1), last = heard_frame(2);
    if (heard_count(ETD_RUNS) != 2 || heard_n != 3 ||
        etd_get_int(&first.body, "i", -1) != 0 ||
        etd_get_bool(&first.body, "done", false) ||
        etd_get_int(&last.body, "i", -1) != 1 ||
        !etd_get_bool(&last.body, "done", false) || etd_find(&last.body, "facts", &v) ||
        !etd_find(&first.body, "facts", &v))
        return NULL;
    return json_loadb(v.bytes, v.n, 0, NULL);
}

static void
test_runs(void)
{
    for (int room = 1; room <= 3; room++) { /* WELCOME, our run, the end */
        struct etd_session *s = greet(false);
        heard_room = room;
        ask(s, ETD_RUNS);
        is_int(heard_n, room, "of its runs a worker tells as many as are taken");
        heard_room = HEARD_MOST;
        ok(heard_drive(s), "and the others when there is room");
        json_t *facts = told_run();
        is_str(json_string_value(json_object_get(facts, "name")), h.name,
               "each once, and then that it was all");
        json_decref(facts);
        ok(heard_drive(s) && heard_n == 3, "and nothing more");
        leave(s);
    }
}

/* ---- how fast bytes come ---- */

/* Bytes that were sent; -1 where not the last part alone says that it is. */
static int64_t
loaded(void)
{
    int64_t bytes = 0;
    for (int i = 1; i < heard_n; i++) {
        struct etd_frame f = heard_frame(i);
        struct etd_value v;
        if (f.head.kind != ETD_LOAD || !etd_find(&f.body, "data", &v) ||
            etd_get_bool(&f.body, "done", false) != (i == heard_n - 1))
            return -1;
        bytes += (int64_t)v.n;
    }
    return bytes;
}

static void
ask_load(struct etd_session *s, int64_t bytes)
{
    struct etd_out o = say(ETD_LOAD, 1);
    etd_put_int(&o, "bytes", bytes);
    heard_tell(s, space, etd_end(&o));
}

static void
test_load(void)
{
    static const struct {
        int64_t asked, sent;
        int parts;
    } row[] = {
        {1, 1, 1},
        {131072, 131072, 1},
        {131073, 131073, 2},
        {4 << 20, 4 << 20, 32},
        {(4 << 20) + 1, 4 << 20, 32},
        {0, 0, 0},
        {-1, 0, 0},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        for (int slow = 0; slow < 2; slow++) {
            struct etd_session *s = greet(false);
            heard_room = slow ? 1 : HEARD_MOST;
            ask_load(s, row[i].asked);
            while (slow && heard_room++ < 40)
                (void)heard_drive(s);
            is_int(loaded(), row[i].sent, "who asks for %lld bytes%s is sent %lld",
                   (long long)row[i].asked, slow ? " and takes part by part" : "",
                   (long long)row[i].sent);
            is_int(heard_count(ETD_LOAD), row[i].parts, "in %d parts", row[i].parts);
            leave(s);
        }
    struct etd_session *s = greet(false);
    heard_room = 3;
    ask_load(s, 4 << 20);
    ask_load(s, 10);
    heard_room = HEARD_MOST;
    (void)heard_drive(s);
    is_int(loaded(), 4 << 20, "who asks in the middle of it is sent no other");
    leave(s);
}

/* ---- its machine ---- */

/* From here on nvidia-smi is SCRIPT; NULL: the program is missing. */
static void
gpu_program(const char *script)
{
    char path[256];
    snprintf(path, sizeof path, "%s/bin/nvidia-smi", h.folder);
    unlink(path);
    if (!script)
        return;
    FILE *f = fopen(path, "w");
    if (!f || fprintf(f, "#!/bin/sh\n%s\n", script) < 0 || fclose(f) != 0 ||
        chmod(path, 0755) != 0)
        bail("cannot write %s", path);
}

/* Until MACHINE has come, for a minute. */
static struct etd_host_facts
hear_machine(struct etd_session *s)
{
    const struct timespec pause = {0, 1000000};
    static struct etd_host_facts facts;
    for (int i = 0; i < 60000 && heard_count(ETD_MACHINE) == 0; i++) {
        (void)etd_session_step(s);
        nanosleep(&pause, NULL);
    }
    struct etd_frame f = heard_last(ETD_MACHINE);
    if (f.head.kind != ETD_MACHINE)
        bail("nothing is said of the machine");
    etd_host_read(&f, &facts);
    return facts;
}

static void
test_machine(void)
{
    static const struct {
        const char *script, *says;
        int gpus;
    } row[] = {
        {NULL, "a machine without the program has no GPUs", 0},
        {"echo 'A, 50, 1, 2, 7'; echo 'B, 10, 1, 2, 7'", "of two GPUs it tells", 2},
        {"echo 'A, 50, 1, 2, 7'; exit 9", "of none where the program fails", 0},
    };
    struct etd_session *s;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        gpu_program(row[i].script);
        s = greet(false);
        ask(s, ETD_MACHINE);
        struct etd_host_facts facts = hear_machine(s);
        is_int(facts.n_gpus, row[i].gpus, "%s", row[i].says);
        ok(facts.uptime > 0 && facts.disk_free > 0 && facts.runs == 0,
           "and of its uptime, its disk and that no run goes on");
        leave(s);
    }
    struct eti_seams seams = eti_system;
    seams.monotonic = house_clock;
    eti_ctx_set_seams(h.cx, &seams);
    house_stop_clock();
    gpu_program("exec sleep 600");
    s = greet(false);
    ask(s, ETD_MACHINE);
    const int driver = etd_session_child_fd(s);
    ok(driver >= 0, "a driver is waited for");
    ask(s, ETD_MACHINE);
    is_int(etd_session_child_fd(s), driver, "and no other is asked meanwhile");
    house_pass(9.75);
    ok(heard_drive(s) && heard_count(ETD_MACHINE) == 0, "for 9.75 s too");
    house_pass(0.25);
    ok(heard_drive(s) && heard_count(ETD_MACHINE) == 1,
       "after 10 s it is not, and the rest is told, once");
    is_int(etd_session_child_fd(s), -1, "and its program is ended");
    leave(s);
    house_start_clock();
    eti_ctx_set_seams(h.cx, &eti_system);
    gpu_program(NULL);
}

/* ---- recipes ---- */

static void
start(struct etd_session *s, const char *id)
{
    struct etd_out o = say(ETD_START, id ? 3 : 2);
    if (id)
        etd_put_bin(&o, "id", id, ETD_CMD_ID);
    etd_put_bin(&o, "recipe", "x: [", 4);
    etd_put_texts(&o, "args", NULL, 0);
    heard_tell(s, space, etd_end(&o));
}

static void
test_start(void)
{
    static const char id[] = "0123456789abcdef", other[] = "fedcba9876543210";
    struct etd_answer a;
    struct etd_session *s = greet(true);
    start(s, NULL);
    is_code(ETD_BYE, "MALFORMED", "a recipe that is sent needs a name for its answers");
    leave(s);

    s = greet(false);
    start(s, id);
    struct etd_frame f = heard_last(ETD_REJECTED);
    ok(etd_answer_read(&f, &a) && a.code == ETD_E_ROLE && memcmp(a.id, id, 16) == 0,
       "a viewer starts none");
    leave(s);

    s = greet(true);
    start(s, id);
    is_int(heard_count(ETD_RECEIVED), 1, "an operator's is taken");
    start(s, other);
    f = heard_last(ETD_REJECTED);
    ok(etd_answer_read(&f, &a) && a.code == ETD_E_FULL && memcmp(a.id, other, 16) == 0,
       "one at a time");
    leave(s);
}

/* ---- a run ---- */

static void
test_no_run(void)
{
    char text[128];
    static const struct {
        const char *run, *says;
    } row[] = {
        {"", "no run is going on here"},
        {"no-such-run", "no run of that name is known here"},
    };
    for (int i = 0; i < 2; i++) {
        struct etd_session *s = heard_open(true);
        heard_hello(s, 1, row[i].run, -1, 16);
        struct etd_frame f = heard_last(ETD_REFUSE);
        is_code(ETD_REFUSE, "NO_RUN", "a run that is not there is refused");
        is_str(etd_get_text(&f.body, "text", text, sizeof text), row[i].says,
               "by a sentence");
        leave(s);
    }
}

/* Commands for a run that has ended, and whoever wants nothing but to give some. */
static void
test_ended(void)
{
    struct etd_answer a;
    struct etd_command c = {
        .id = "fifteen letters", .op = ETD_OP_STOP, .ttl_ms = 1000, .if_rev = -1};
    const struct etd_head head = {.kind = ETD_CMD};
    struct etd_session *s = heard_open(true);
    heard_hello(s, 1, h.name, -1, 256);
    (void)heard_drive(s);
    heard_forget();
    heard_tell(s, space, etd_command_write(space, sizeof space, &head, &c));
    struct etd_frame f = heard_last(ETD_REJECTED);
    ok(etd_answer_read(&f, &a) && a.code == ETD_E_FULL &&
           memcmp(a.id, c.id, sizeof c.id) == 0 &&
           strcmp(a.text, "the run has ended") == 0,
       "a run that has ended takes no commands, and says so");
    ok(heard_drive(s), "and goes on being told");
    leave(s);
    s = heard_open(true);
    struct etd_out o = say(ETD_HELLO, 2);
    etd_put_text(&o, "run", h.name);
    etd_put_bool(&o, "stream", false);
    heard_tell(s, space, etd_end(&o));
    is_code(ETD_REFUSE, "NO_RUN", "who would give commands alone is refused at once");
    ok(!heard_drive(s), "which is the end");
    leave(s);
}

/* Answers that a full connection does not take wait, and are told in their order: some
 * of them, and then the others. */
static void
test_waiting_answers(void)
{
    enum { N = 5 };
    const struct etd_head head = {.kind = ETD_CMD};
    struct etd_command c = {.op = ETD_OP_STOP, .ttl_ms = 1000, .if_rev = -1};
    struct etd_answer a;
    struct etd_session *s = heard_open(true);
    heard_hello(s, 1, h.name, -1, 256);
    (void)heard_drive(s);
    heard_forget();
    for (int room = 0; room <= N; room += room < 2 ? 2 : 3) {
        heard_room = room;
        for (int i = 0; i < N && room == 0; i++) {
            c.id[0] = (unsigned char)(i + 1);
            heard_tell(s, space, etd_command_write(space, sizeof space, &head, &c));
        }
        (void)etd_session_step(s);
        is_int(heard_count(ETD_REJECTED), room, "of five answers so many find room");
    }
    int order = 0;
    for (int i = 0; i < N; i++) {
        struct etd_frame f = heard_frame(i);
        order = 10 * order + (etd_answer_read(&f, &a) ? a.id[0] : 0);
    }
    is_int(order, 12345, "in the order of what was asked");
    leave(s);
}

/* Twenty questions about history a second are taken, no more. */
static void
test_question_rate(void)
{
    enum { ASKED = 30, TAKEN = 20 };
    struct eti_seams seams = eti_system;
    seams.monotonic = house_clock;
    eti_ctx_set_seams(h.cx, &seams);
    house_stop_clock();
    struct etd_session *s = heard_open(false);
    heard_hello(s, 1, h.name, -1, 256);
    (void)heard_drive(s);
    for (int round = 0; round < 3; round++) {
        const int taken = round < 2 ? TAKEN : TAKEN / 4;
        heard_forget();
        for (int i = 0; i < ASKED; i++) {
            struct etd_out o = say(ETD_HIST, 2);
            etd_put_int(&o, "id", 100 * round + i);
            etd_put_text(&o, "series", "loss/train/total");
            heard_tell(s, space, etd_end(&o));
        }
        const struct timespec pause = {0, 1000000};
        for (int i = 0; i < 60000 && heard_count(ETD_HIST) < taken; i++) {
            (void)etd_session_step(s);
            nanosleep(&pause, NULL);
        }
        while (etd_session_is_reading(s)) {
            (void)etd_session_step(s);
            nanosleep(&pause, NULL);
        }
        is_int(heard_count(ETD_HIST), taken, "of %d questions at once %d are answered",
               ASKED, taken);
        struct etd_frame f = heard_last(ETD_HIST);
        is_int(etd_get_int(&f.body, "id", -1), 100 * round + taken - 1,
               "the first ones");
        house_pass(round == 0 ? 5 : 0.25);
    }
    leave(s);
    house_start_clock();
    eti_ctx_set_seams(h.cx, &eti_system);
}

/* Its run.json becomes STATE, of process PID. */
static void
write_state(const char *state, int pid)
{
    char path[256];
    snprintf(path, sizeof path, "%s/run.json", h.directory);
    json_t *facts = json_load_file(path, 0, NULL);
    if (!facts || json_object_set_new(facts, "state", json_string(state)) != 0 ||
        json_object_set_new(facts, "pid", json_integer(pid)) != 0 ||
        json_dump_file(facts, path, JSON_INDENT(1)) != 0)
        bail("cannot write %s", path);
    json_decref(facts);
}

/* A log that is gone, for who has its records, and who has none. */
static void
test_unreadable(void)
{
    char path[256], other[256];
    snprintf(path, sizeof path, "%s/events.log", h.directory);
    snprintf(other, sizeof other, "%s/elsewhere", h.directory);
    if (rename(path, other) != 0)
        bail("cannot move %s", path);
    struct etd_session *s = heard_open(false);
    heard_hello(s, 1, h.name, 5, 256);
    is_code(ETD_REFUSE, "UNREADABLE", "a run whose log is gone is refused");
    ok(!heard_drive(s), "which is the end");
    is_int(heard_host.models, 0, "and takes no room");
    leave(s);
    if (rename(other, path) != 0)
        bail("cannot move %s back", path);
}

static int
count_records(void)
{
    int n = 0;
    for (int i = 0; i < heard_n; i++)
        n += (int)heard_frame(i).head.kind < ET_RECORD_COUNT;
    return n;
}

/* The credit that a viewer of a run that is there gives is for the run's hub. */
static void
test_live_credit(void)
{
    static const int64_t given[] = {5, 100};
    const struct timespec pause = {0, 1000000};
    int code = -1;
    h.seams = &eti_system;
    write_state("running", getpid());
    if (!house_start(&h, &code))
        bail("no hub (%d)", code);
    for (size_t i = 0; i < 2; i++) {
        struct etd_session *s = heard_open(false);
        heard_hello(s, 1, h.name, 0, given[i]);
        for (int ms = 0; ms < 30000 && count_records() < given[i]; ms++) {
            (void)etd_session_step(s);
            nanosleep(&pause, NULL);
        }
        for (int ms = 0; ms < 30; ms++) {
            (void)etd_session_step(s);
            nanosleep(&pause, NULL);
        }
        is_int(count_records(), given[i], "a viewer of a run that is there is sent %d",
               (int)given[i]);
        leave(s);
    }
    /* Who gives commands alone is sent nothing of it, and no command without the right
     * to. */
    struct etd_session *s = heard_open(false);
    struct etd_out o = say(ETD_HELLO, 3);
    etd_put_text(&o, "run", h.name);
    etd_put_bool(&o, "stream", false);
    etd_put_int(&o, "credit", 100);
    heard_tell(s, space, etd_end(&o));
    for (int ms = 0; ms < 30000 && heard_count(ETD_WELCOME) == 0; ms++) {
        (void)etd_session_step(s);
        nanosleep(&pause, NULL);
    }
    const struct etd_head head = {.kind = ETD_CMD};
    struct etd_answer a;
    struct etd_command c = {
        .id = "fifteen letters", .op = ETD_OP_STOP, .ttl_ms = 1000, .if_rev = -1};
    heard_tell(s, space, etd_command_write(space, sizeof space, &head, &c));
    for (int ms = 0; ms < 50; ms++) {
        (void)etd_session_step(s);
        nanosleep(&pause, NULL);
    }
    ok(heard_count(ETD_WELCOME) == 1 && heard_count(ETD_SNAP_BEGIN) == 0 &&
           count_records() == 0,
       "a viewer that wants no stream of such a run has none");
    struct etd_frame f = heard_last(ETD_REJECTED);
    ok(etd_answer_read(&f, &a) && a.code == ETD_E_ROLE &&
           memcmp(a.id, c.id, sizeof c.id) == 0,
       "and one that may not give commands is told so, with the command's id");
    leave(s);
    house_kill(&h);
    write_state("finished", 0);
}

int
main(void)
{
    char bin[256];
    house_begin(&h);
    if (chdir(h.folder) != 0)
        bail("no folder");
    snprintf(bin, sizeof bin, "%s/bin", h.folder);
    mkdir(bin, 0700);
    snprintf(bin, sizeof bin, "%s/bin:/usr/bin:/bin", h.folder);
    setenv("PATH", bin, 1);
    house_tell(&h, 200);
    write_state("finished", 0);
    heard_host = (struct etd_host){
        .cx = h.cx,
        .starts = {.cx = h.cx, .program = "/bin/false", .folder = h.folder}};
    test_welcome();
    test_turned_away();
    test_runs();
    test_load();
    test_machine();
    test_start();
    test_no_run();
    test_ended();
    test_waiting_answers();
    test_question_rate();
    test_unreadable();
    test_live_credit();
    house_end(&h);
    return done();
}
