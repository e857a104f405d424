/* SPDX-License-Identifier: Apache-2.0 */
/* Commands are done at most once, and whoever asks again is told what came of them. */
#include "config.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "dist/wire/errors.h"
#include "etude/rng.h"
#include "t/dist/house.h"
#include "t/tap.h"

enum { PATIENCE = 120 }; /* seconds: then it will never come */
static struct house h;
static struct etd_answer answer;
static unsigned char wanted[ETD_CMD_ID];

static struct etd_client *
client_as(const char *as)
{
    struct etd_client *c;
    if (etd_client_open(h.cx,
                        &(struct etd_client_options){
                            .channel = {.target = h.socket}, .control = true, .as = as},
                        &c) != ET_OK ||
        !house_drive(&h, &c, 1, all_live))
        bail("no client");
    return c;
}

/* Of c[0]: an answer to WANTED but RECEIVED. */
static bool
is_answered(struct house *house, struct etd_client **c, int n)
{
    (void)house, (void)n;
    while (etd_client_answer(c[0], &answer))
        if (memcmp(answer.id, wanted, sizeof wanted) == 0 &&
            answer.kind != ETD_RECEIVED)
            return true;
    return false;
}

static struct etd_client *beside; /* that is not to be forgotten meanwhile; NULL */

static const char *
do_it(struct etd_client *c, enum etd_op op, const char *key, const char *value)
{
    struct etd_client *both[] = {c, beside};
    int n = beside ? 2 : 1;
    usleep(110000); /* within ten a second */
    /* (A machine that stood still for 3 s leaves lines stale, until they are heard.) */
    if (!house_drive(&h, both, n, all_live) ||
        etd_client_command(c, op, key, value, -1, ETD_TTL_MS, wanted) != ET_OK ||
        !house_drive(&h, both, n, is_answered))
        return "no answer";
    /* (The manual page lists numbers from that table.) */
    if (answer.kind == ETD_REJECTED && !etd_op_rejects(op, answer.code))
        ok(false, "etude-events(7) has the number %d for %s", answer.code,
           etd_op_name(op));
    return etd_kind_name(answer.kind);
}

static void
test_answers(void)
{
    struct etd_client *c = client_as(NULL);
    char uid[32];
    snprintf(uid, sizeof uid, "uid:%ld", (long)getuid());
    is_str(do_it(c, ETD_OP_PAUSE, NULL, NULL), "APPLIED", "a command is applied");
    is_int(answer.step, h.ba, "at a step");
    is_int(answer.rev, h.rev, "and the settings have a revision");
    is_str(answer.text, uid, "whose it was is known to the supervisor");
    is_str(do_it(c, ETD_OP_SET, "optimizer.lr", "bad"), "REJECTED",
           "a value that cannot be is rejected");
    is_int(answer.code, 5008, "with a number");
    is_str(answer.text, "optimizer.lr bad outside (0, 10]", "and a reason");
    is_str(do_it(c, ETD_OP_CHECKPOINT, NULL, NULL), "EXPIRED", "one may come too late");
    is_str(do_it(c, ETD_OP_SET, "optimizer.lr", NULL), "REJECTED",
           "one that lacks its value goes no further than the hub");
    is_int(answer.code, ETD_E_ARGUMENT, "which says so");
    etd_client_close(&c);
}

static void
test_again(void)
{
    int code;
    struct etd_client *c = client_as(NULL);
    is_str(do_it(c, ETD_OP_SET, "optimizer.lr", "0.5"), "APPLIED", "a command");
    struct etd_answer first = answer;
    struct etd_command again = {.op = ETD_OP_SET,
                                .if_rev = -1,
                                .ttl_ms = ETD_TTL_MS,
                                .key = "optimizer.lr",
                                .value = "0.5"};
    memcpy(again.id, wanted, sizeof again.id);
    int64_t applied = h.applied, commands = h.commands;
    ok(etd_client_repeat(c, &again) == ET_OK && house_drive(&h, &c, 1, is_answered),
       "that comes again is answered");
    ok(memcmp(&answer, &first, sizeof first) == 0, "as it was the first time");
    etd_client_close(&c);
    house_kill(&h);
    ok(house_start(&h, &code), "by another hub too");
    c = client_as(NULL);
    ok(etd_client_repeat(c, &again) == ET_OK && house_drive(&h, &c, 1, is_answered),
       "it is answered");
    ok(memcmp(&answer, &first, sizeof first) == 0, "in the same way");
    is_int(h.applied, applied, "it was done once");
    is_int(h.commands, commands, "and the supervisor was asked once");
    etd_client_close(&c);
}

/* A command that the supervisor has not answered when the hub dies. */
static void
test_without_answer(void)
{
    int code;
    struct etd_client *c = client_as(NULL);
    usleep(110000);
    ok(etd_client_command(c, ETD_OP_STOP, NULL, NULL, -1, ETD_TTL_MS, wanted) == ET_OK,
       "a command is sent");
    double end = eti_monotonic(h.cx) + PATIENCE;
    while (eti_monotonic(h.cx) < end) {
        if (etd_client_step(c) != ET_OK || etd_client_answer(c, &answer))
            break;
        usleep(1000);
    }
    is_str(etd_kind_name(answer.kind), "RECEIVED", "and written down");
    int64_t applied = h.applied;
    house_kill(&h);
    ok(house_start(&h, &code), "its hub dies, and another starts");
    end = eti_monotonic(h.cx) + PATIENCE;
    while (h.applied == applied && eti_monotonic(h.cx) < end) {
        house_supervise(&h);
        usleep(10000);
    }
    is_int(h.applied, applied + 1, "which passes it on");
    struct etd_command again = {.op = ETD_OP_STOP, .if_rev = -1, .ttl_ms = ETD_TTL_MS};
    memcpy(again.id, wanted, sizeof again.id);
    etd_client_close(&c);
    c = client_as(NULL);
    ok(etd_client_repeat(c, &again) == ET_OK && house_drive(&h, &c, 1, is_answered) &&
           answer.kind == ETD_APPLIED,
       "who asks again is told that it was applied");
    is_int(h.applied, applied + 1, "once");
    etd_client_close(&c);
}

/* Fifteen at once, until the hub was there for all of them within half a second, and
 * has passed on no more than ten, and ten for each second that it took. */
static void
test_rate(void)
{
    struct etd_client *c = client_as("fast");
    int rejected = 0, sent = 0;
    int64_t commands = h.commands;
    double began = eti_monotonic(h.cx);
    for (int times = 0; times < 100 && !rejected; times++) {
        for (int i = 0; i < 15; i++, sent++)
            if (etd_client_command(c, ETD_OP_PAUSE, NULL, NULL, -1, ETD_TTL_MS,
                                   wanted) != ET_OK)
                bail("%s", et_error_get(h.cx)->message);
        if (!house_drive(&h, &c, 1, is_answered))
            break;
        rejected = answer.kind == ETD_REJECTED && answer.code == ETD_E_RATE;
    }
    ok(rejected, "the last of %d commands at once is rejected", sent);
    double most = 10 + 10 * (eti_monotonic(h.cx) - began);
    ok((double)(h.commands - commands) <= most,
       "and %d were passed on: ten, and ten a second", (int)(h.commands - commands));
    etd_client_close(&c);
}

static void
test_lease(void)
{
    struct etd_client *a = client_as("a"), *b = client_as("b");
    beside = b;
    is_str(do_it(a, ETD_OP_TAKE, NULL, NULL), "APPLIED", "an operator takes the run");
    beside = a;
    is_str(do_it(b, ETD_OP_PAUSE, NULL, NULL), "REJECTED", "another's are rejected");
    is_int(answer.code, ETD_E_LEASE, "for that reason");
    ok(strstr(answer.text, "/a has taken the run") != NULL, "with the holder: %s",
       answer.text);
    is_str(do_it(b, ETD_OP_TAKE, NULL, NULL), "REJECTED", "it cannot be taken away");
    beside = b;
    is_str(do_it(a, ETD_OP_PAUSE, NULL, NULL), "APPLIED", "the holder's are applied");
    beside = a;
    is_str(do_it(b, ETD_OP_ANNOTATE, NULL, "so it is"), "APPLIED",
           "a note of another is taken all the same");
    beside = NULL;
    etd_client_close(&a);
    etd_client_close(&b);
}

static void
test_notes(void)
{
    char note[ETD_NOTE];
    struct etd_client *c = client_as(NULL);
    memset(note, '"', sizeof note - 1); /* what JSON makes longest */
    note[sizeof note - 1] = '\0';
    is_str(do_it(c, ETD_OP_ANNOTATE, NULL, note), "APPLIED",
           "a note of 1,024 bytes is taken");
    is_str(h.last.value, note, "as it is");
    struct etd_answer first = answer;
    struct etd_command again = {
        .op = ETD_OP_ANNOTATE, .if_rev = -1, .ttl_ms = ETD_TTL_MS};
    memcpy(again.id, wanted, sizeof again.id);
    memcpy(again.value, note, sizeof note);
    int64_t commands = h.commands;
    ok(etd_client_repeat(c, &again) == ET_OK && house_drive(&h, &c, 1, is_answered) &&
           memcmp(&answer, &first, sizeof first) == 0,
       "one that comes again is answered as it was");
    is_int(h.commands, commands, "and goes no further");
    is_str(do_it(c, ETD_OP_ANNOTATE, NULL, "look \033[2J here"), "APPLIED",
           "what would move a cursor");
    is_str(h.last.value, "look \\x1b[2J here", "is made visible");
    ok(etd_client_command(c, ETD_OP_ANNOTATE, NULL, NULL, -1, ETD_TTL_MS, wanted) ==
               ET_OK &&
           house_drive(&h, &c, 1, is_answered) && answer.kind == ETD_REJECTED,
       "a note without a text is none");
    etd_client_close(&c);
}

static void
test_other_run(void)
{
    int code;
    house_kill(&h); /* the lease ends with it */
    if (!house_start(&h, &code))
        bail("no hub");
    struct etd_client *c = client_as(NULL);
    const struct et_record resume = {.kind = ET_RECORD_RESUME, .t = 1e9, .ba = h.ba};
    eti_events_write(&h.log, &resume);
    eti_events_flush(&h.log);
    struct etd_client *reader = house_client(&h, false);
    if (!house_drive(&h, &reader, 1, all_equal))
        bail("the hub does not read its log");
    etd_client_close(&reader);
    is_str(do_it(c, ETD_OP_STOP, NULL, NULL), "REJECTED",
           "a command for an earlier start of the run is rejected");
    is_int(answer.code, ETD_E_OTHER_RUN, "for that reason");
    etd_client_close(&c);
    c = client_as(NULL);
    is_str(do_it(c, ETD_OP_STOP, NULL, NULL), "APPLIED", "one for this start is not");
    etd_client_close(&c);
}

/* One call, while the supervisor goes on; HALTS: when the command has come the hub
 * stands still for so long that the line is stale. A command lives for as long as its
 * answer is waited for, a minute at most; the supervisor is told what is left. */
static bool
is_asked(bool halts)
{
    struct etd_answer a;
    const struct etd_client_options o = {.channel = {.target = h.socket}};
    _Atomic int *ttl_ms = mmap(NULL, sizeof *ttl_ms, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (ttl_ms == MAP_FAILED)
        bail("no shared memory");
    pid_t child = fork();
    if (child == 0) {
        struct pollfd p = {.fd = h.supervisor, .events = POLLIN};
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        h.last.ttl_ms = 0;
        if (halts && poll(&p, 1, -1) > 0) {
            kill(h.hub, SIGSTOP);
            usleep((useconds_t)(1e6 * (ETD_STALE + 0.5)));
            kill(h.hub, SIGCONT);
        }
        for (;;) {
            house_supervise(&h);
            atomic_store(ttl_ms, h.last.ttl_ms);
            usleep(20000);
        }
    }
    bool right =
        etd_client_ask(h.cx, &o, ETD_OP_CONTINUE, NULL, NULL, PATIENCE, &a) == ET_OK &&
        a.kind == ETD_APPLIED;
    et_error_clear(h.cx);
    const double end = eti_monotonic(h.cx) + PATIENCE;
    while (right && atomic_load(ttl_ms) == 0 && eti_monotonic(h.cx) < end)
        usleep(1000);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    right &= *ttl_ms > ETD_TTL_MS / 2 && *ttl_ms <= ETD_TTL_MS;
    munmap(ttl_ms, sizeof *ttl_ms);
    return right;
}

static void
test_ask(void)
{
    struct etd_answer a;
    struct etd_client_options o = {0};
    ok(is_asked(false), "one call gives a command and waits for its answer");
    ok(is_asked(true), "also when the hub says nothing for a while");
    char nowhere[128];
    snprintf(nowhere, sizeof nowhere, "%s/no-such.sock", h.folder);
    o.channel.target = nowhere;
    ok(etd_client_ask(h.cx, &o, ETD_OP_CONTINUE, NULL, NULL, PATIENCE, &a) == ET_ENOENT,
       "where nobody listens it says so at once");
    is_int(et_error_get(h.cx)->code, ETD_E_UNREACHABLE, "with its number");
    et_error_clear(h.cx);
}

/* ---- R23 ---- */

enum { CLIENTS = 8, HUB_KILLS = 6 };

struct operator
{
    struct etd_client *c;
    struct etd_command last;
    int sent, answered, applied, other;
    double next;
};

static void
step_operator(struct operator* o, struct et_rng *r, int most)
{
    struct etd_answer a;
    double now = eti_monotonic(h.cx);
    if (etd_client_step(o->c) != ET_OK)
        bail("a client failed");
    while (etd_client_answer(o->c, &a)) {
        o->answered += a.kind != ETD_RECEIVED;
        o->applied += a.kind == ETD_APPLIED;
        o->other += a.kind == ETD_REJECTED && a.code != ETD_E_RATE;
    }
    if (o->sent >= most || now < o->next)
        return;
    o->next = now + 0.101;
    /* One in four is the one before again. */
    et_status status;
    if (o->sent > 0 && et_rng_below(r, 4) == 0) {
        status = etd_client_repeat(o->c, &o->last);
    } else {
        o->last = (struct etd_command){.op = ETD_OP_SET,
                                       .if_rev = -1,
                                       .ttl_ms = ETD_TTL_MS,
                                       .key = "optimizer.lr"};
        snprintf(o->last.value, sizeof o->last.value, "%d", o->sent + 1);
        for (int i = 0; i < ETD_CMD_ID; i++)
            o->last.id[i] = (unsigned char)et_rng_below(r, 256);
        status = etd_client_repeat(o->c, &o->last);
    }
    et_error_clear(h.cx);
    o->sent += status == ET_OK;
}

static int
by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Records of commands in the log, and whether the same one is there twice. */
static int
count_applied(bool *twice)
{
    char path[256];
    struct et_events *e;
    struct et_record r;
    bool got = true;
    int n = 0;
    char **seen = NULL;
    int room = 0;
    *twice = false;
    snprintf(path, sizeof path, "%s/events.log", h.directory);
    if (et_events_open(h.cx, path, &e) != ET_OK)
        bail("no log");
    while (et_events_next(e, &r, &got) == ET_OK && got) {
        if (r.kind != ET_RECORD_COMMAND || !strstr(r.text, "/op"))
            continue;
        if (n == room) {
            room = room ? 2 * room : 1024;
            seen = realloc(seen, (size_t)room * sizeof *seen);
        }
        if (!seen || !(seen[n++] = strdup(r.text)))
            bail("out of memory");
    }
    qsort(seen, (size_t)n, sizeof *seen, by_text);
    for (int i = 1; i < n; i++)
        *twice = *twice || strcmp(seen[i - 1], seen[i]) == 0;
    for (int i = 0; i < n; i++)
        free(seen[i]);
    free(seen);
    et_events_close(&e);
    return n;
}

static void
test_many(int commands)
{
    struct operator op[CLIENTS] = {0};
    struct et_rng r = et_rng_at(23, ET_RNG_SELECT, 0);
    int killed = 0, sent = 0, code, other = 0;
    bool twice;
    double end = eti_monotonic(h.cx) + PATIENCE; /* after the last that was sent */

    for (int i = 0; i < CLIENTS; i++) {
        char as[8];
        snprintf(as, sizeof as, "op%d", i);
        op[i].c = client_as(as);
    }
    while (sent < commands && eti_monotonic(h.cx) < end) {
        int before = sent;
        sent = 0;
        for (int i = 0; i < CLIENTS; i++) {
            step_operator(&op[i], &r, commands / CLIENTS);
            sent += op[i].sent;
            if (et_rng_below(&r, 20000) == 0) { /* a cut */
                etd_client_close(&op[i].c);
                char as[8];
                snprintf(as, sizeof as, "op%d", i);
                op[i].c = client_as(as);
            }
        }
        if (sent > before)
            end = eti_monotonic(h.cx) + PATIENCE;
        if (et_rng_below(&r, 3) > 0) /* a supervisor that is slow at times */
            house_supervise(&h);
        if (sent > (killed + 1) * commands / (HUB_KILLS + 1) && killed < HUB_KILLS) {
            house_kill(&h);
            if (!house_start(&h, &code))
                bail("no hub");
            killed++;
            for (int i = 0; i < CLIENTS; i++)
                etd_client_retry(op[i].c);
        }
        usleep(2000);
    }
    for (int i = 0; i < 200; i++) {
        for (int k = 0; k < CLIENTS; k++)
            step_operator(&op[k], &r, 0);
        house_supervise(&h);
        usleep(2000);
    }
    is_int(sent, commands, "%d clients send %d commands, a quarter of them twice",
           CLIENTS, commands);
    is_int(killed, HUB_KILLS, "while hubs are killed");
    int applied = count_applied(&twice);
    ok(!twice, "none of them was applied twice");
    int answered = 0;
    for (int i = 0; i < CLIENTS; i++) {
        answered += op[i].applied;
        other += op[i].other;
        etd_client_close(&op[i].c);
    }
    is_int(other, 0, "none was rejected");
    /* Where the machine stands still, commands expire. */
    ok(applied > commands / 10 && answered > commands / 10,
       "%d were applied, %d answers say so", applied, answered);
}

int
main(void)
{
    int code;
    const char *is_long = getenv("ETUDE_LONG");
    house_begin(&h);
    house_tell(&h, 500);
    if (!house_start(&h, &code))
        bail("no hub");
    test_answers();
    test_again();
    test_without_answer();
    test_rate();
    test_lease();
    test_notes();
    test_other_run();
    test_many(is_long ? 20000 : 2000);
    test_ask(); /* the last: a child of it writes the log */
    house_end(&h);
    return done();
}
