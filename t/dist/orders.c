/* SPDX-License-Identifier: Apache-2.0 */
/* What the hub keeps of RELIABILITY.md section 6: the table at the end has a row for
 * each limit. What is at the limit is passed on, what is one beyond it is refused with
 * its number. Numbers are those of the document, not those of the sources; the clock is
 * the test's (talk.h), and the test is the supervisor. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dist/wire/errors.h"
#include "t/dist/talk.h"
#include "t/tap.h"

enum { PATIENCE = 120 /* seconds of the system's clock: then it will never come */ };

static struct house h;
static struct talk watch;

static struct talk
join(const char *as)
{
    struct talk t = talk_open(&h);
    if (talk_hello(&t, -2, -1, as) != ETD_WELCOME)
        bail("an operator is not served: %s", t.code);
    return t;
}

static struct etd_command
make(enum etd_op op)
{
    static unsigned char number;
    struct etd_command c = {.op = op, .if_rev = -1, .ttl_ms = 60000};
    c.id[0] = ++number;
    return c;
}

static void
send_to(struct talk *t, const struct etd_head *head, const struct etd_command *c)
{
    char bytes[ETD_CONTROL_BYTES];
    talk_send_bytes(t, bytes, etd_command_write(bytes, sizeof bytes, head, c));
}

/* The answer that the hub has sent to T: it comes before that to a PING, so that one
 * which went elsewhere is missed at once. */
static struct etd_answer
hear(struct talk *t)
{
    struct etd_answer a, next;
    int n = 0;
    enum etd_kind heard;
    struct etd_out ping = talk_say(ETD_PING, 0);
    talk_send(t, &ping);
    while ((heard = talk_hear(t)) != ETD_PONG) {
        if (talk_is_over(heard))
            bail("an operator is left: %s", t->code);
        if (etd_answer_read(&t->f, &next))
            a = n++ == 0 ? next : a;
    }
    if (n != 1)
        bail("%d answers come where one should", n);
    return a;
}

/* Plays the supervisor until it has been asked once more than BEFORE, and the hub has
 * passed its answer on. */
static void
supervise(int64_t before)
{
    double end = eti_system.monotonic() + PATIENCE;
    while (h.commands == before && eti_system.monotonic() < end) {
        house_supervise(&h);
        usleep(200);
    }
    talk_settle(&h);
}

/* C of T, to HEAD's run: its answer, with that of the supervisor where it comes so
 * far. */
static struct etd_answer
ask_as(struct talk *t, const struct etd_head *head, const struct etd_command *c)
{
    int64_t before = h.commands;
    send_to(t, head, c);
    struct etd_answer a = hear(t);
    if (a.kind != ETD_RECEIVED)
        return a;
    supervise(before);
    return hear(t);
}

static struct etd_answer
ask(struct talk *t, const struct etd_command *c)
{
    const struct etd_head head = talk_head();
    return ask_as(t, &head, c);
}

static void
is_applied(struct talk *t, const struct etd_command *c, const char *what)
{
    struct etd_answer a = ask(t, c);
    is_str(etd_kind_name(a.kind), "APPLIED", "%s is applied", what);
}

static void
is_refused(const struct etd_answer *a, int code, const char *what)
{
    ok(a->kind == ETD_REJECTED && a->code == code, "%s is rejected: %d %s", what,
       a->code, a->text);
}

/* ---- 6.4 ---- */

static void
test_other_run(void)
{
    struct talk t = join("a");
    struct etd_command c = make(ETD_OP_PAUSE);
    struct etd_head head = talk_head();
    head.run[ETD_RUN_ID - 1] ^= 1;
    int64_t before = h.commands;
    struct etd_answer a = ask_as(&t, &head, &c);
    is_refused(&a, 5010, "a command for another run");
    a = ask_as(&t, &head, &c);
    is_refused(&a, 5010, "the same again, whose answer begins the log of commands,");
    for (int other = -1; other <= 1; other += 2) {
        head = talk_head();
        head.incarnation += other;
        c = make(ETD_OP_PAUSE);
        a = ask_as(&t, &head, &c);
        is_refused(&a, 5010, "one for another start of the run");
    }
    c = make(ETD_OP_PAUSE);
    is_applied(&t, &c, "one for this run");
    is_int(h.commands, before + 1, "no other was passed on");
    talk_close(&t);
}

static void
test_revision(void)
{
    struct talk t = join("a");
    struct etd_command c = make(ETD_OP_PAUSE);
    c.if_rev = 7;
    is_applied(&t, &c, "a command for a revision of the settings");
    is_int(h.last.if_rev, 7, "the supervisor is told which");
    talk_close(&t);
}

/* ---- 6.2 ---- */

static void
test_ttl(void)
{
    struct talk t = join("a");
    struct etd_command c = make(ETD_OP_PAUSE);
    is_applied(&t, &c, "a command that has 60,000 ms");
    is_int(h.last.ttl_ms, 60000, "the supervisor has as much time");
    c = make(ETD_OP_PAUSE);
    c.ttl_ms = 500;
    is_applied(&t, &c, "one that has half a second");
    is_int(h.last.ttl_ms, 500, "he has no more for that");
    c = make(ETD_OP_PAUSE);
    c.ttl_ms = 60001;
    struct etd_answer a = ask(&t, &c);
    is_refused(&a, 5008, "one that has a millisecond more");
    c = make(ETD_OP_PAUSE);
    c.ttl_ms = 0;
    a = ask(&t, &c);
    is_refused(&a, 5008, "one that has none");
    talk_close(&t);
}

static int64_t
log_bytes(void)
{
    char path[256];
    struct stat st;
    snprintf(path, sizeof path, "%s/control.log", h.directory);
    return stat(path, &st) == 0 ? st.st_size : -1;
}

static void
test_journal(void)
{
    struct talk t = join("a");
    const struct etd_head head = talk_head();
    struct etd_command c = make(ETD_OP_PAUSE);
    int before = atomic_load(&desk->syncs);
    int64_t bytes = log_bytes(), commands = h.commands;
    send_to(&t, &head, &c);
    is_str(etd_kind_name(hear(&t).kind), "RECEIVED", "a command is received");
    is_int(atomic_load(&desk->syncs), before + 1, "when it is down on the disk");
    ok(log_bytes() > bytes, "in control.log");
    bytes = log_bytes();
    supervise(commands);
    is_str(etd_kind_name(hear(&t).kind), "APPLIED", "and applied");
    is_int(atomic_load(&desk->syncs), before + 2, "when its answer is, too");
    ok(log_bytes() > bytes, "in control.log");
    talk_close(&t);
}

static void
test_full_disk(void)
{
    struct talk t = join("a");
    struct etd_command c = make(ETD_OP_PAUSE);
    int64_t bytes = log_bytes(), commands = h.commands;
    atomic_store(&desk->sync_fails, true);
    struct etd_answer a = ask(&t, &c);
    atomic_store(&desk->sync_fails, false);
    is_refused(&a, 5014, "a command that cannot be written down");
    is_int(log_bytes(), bytes, "nothing is left of it");
    is_applied(&t, &c, "sent again it");
    is_int(h.commands, commands + 1, "it was passed on once");
    talk_close(&t);
}

/* Its hub ends before it is answered; the next passes it on, with what time is left. */
static void
test_time_left(void)
{
    struct talk t = join("a");
    const struct etd_head head = talk_head();
    struct etd_command c = make(ETD_OP_PAUSE);
    send_to(&t, &head, &c);
    is_str(etd_kind_name(hear(&t).kind), "RECEIVED", "a command of 60 s is received");
    talk_close(&t);
    int64_t before = h.commands;
    talk_pass(&watch, 45);
    talk_restart(&h, &watch);
    supervise(before);
    is_int(h.commands, before + 1, "after 45 s another hub passes it on");
    ok(memcmp(h.last.id, c.id, sizeof c.id) == 0 && h.last.ttl_ms == 15000,
       "with 15 s that are left (%d ms)", h.last.ttl_ms);
    talk_settle(&h);
    talk_restart(&h, &watch);
    talk_settle(&h);
    house_supervise(&h);
    is_int(h.commands, before + 1, "once: a third has its answer");
}

/* Who asks again over another connection, while nobody has answered yet. */
static void
test_other_connection(void)
{
    struct talk old = join("a"), other = join("longer-name"), again = join("a");
    const struct etd_head head = talk_head();
    int64_t before = h.commands;
    struct etd_command c = make(ETD_OP_PAUSE);
    send_to(&old, &head, &c);
    is_str(etd_kind_name(hear(&old).kind), "RECEIVED", "a command is received");
    send_to(&other, &head, &c);
    is_str(etd_kind_name(hear(&other).kind), "RECEIVED",
           "and again, over another connection");
    send_to(&again, &head, &c);
    is_str(etd_kind_name(hear(&again).kind), "RECEIVED", "and over a third");
    supervise(before);
    is_str(etd_kind_name(hear(&again).kind), "APPLIED",
           "its answer comes over the one that asked last");
    ok(talk_ping(&old, 0) == ETD_PONG && talk_ping(&other, 0) == ETD_PONG,
       "and over no other");
    is_int(h.commands, before + 1, "it was passed on once");
    talk_close(&old);
    talk_close(&other);
    talk_close(&again);
}

/* Answers of all kinds, each with its own number, time and text. They are asked for
 * again in the other order, of this hub and of the next. */
static void
test_same_answers(void)
{
    enum { N = 6 };
    struct etd_command c[N];
    struct etd_answer first[N], a;
    struct talk t = join("a");
    for (int i = 0; i < N; i++) {
        c[i] = make(i % 3 == 1 ? ETD_OP_CHECKPOINT : ETD_OP_SET);
        if (c[i].op == ETD_OP_SET) {
            snprintf(c[i].key, sizeof c[i].key, "key-%.*s", 3 * i, "abcdefghijklmnopq");
            snprintf(c[i].value, sizeof c[i].value, "%s", i % 3 == 2 ? "bad" : "0.5");
        }
        house_tell(&h, 1);
        first[i] = ask(&t, &c[i]);
    }
    for (int hub = 1; hub <= 2; hub++) {
        const struct etd_head head = talk_head();
        talk_pass(&watch, 1);
        for (int i = N - 1; i >= 0; i--) {
            send_to(&t, &head, &c[i]);
            a = hear(&t);
            ok(memcmp(a.id, c[i].id, sizeof a.id) == 0 && a.kind == first[i].kind &&
                   a.step == first[i].step && a.rev == first[i].rev &&
                   a.code == first[i].code && strcmp(a.text, first[i].text) == 0,
               "a command that comes again to hub %d has its answer: %s %s", hub,
               etd_kind_name(first[i].kind), first[i].text);
        }
        talk_close(&t);
        if (hub == 1) {
            talk_restart(&h, &watch);
            t = join("a");
        }
    }
}

/* A run of which so many commands are known already, as a log that its hubs wrote
 * before; a row of them comes again. */
static void
test_many(void)
{
    enum { MANY = 1000, STEP = 23 };
    char path[256];
    int right = 0, asked = 0;
    talk_close(&watch);
    house_kill(&h);
    snprintf(path, sizeof path, "%s/control.log", h.directory);
    FILE *f = fopen(path, "a");
    if (!f)
        bail("no %s", path);
    for (int i = 0; i < MANY; i++)
        fprintf(f,
                "{\"id\":\"%08x%024x\",\"answer\":\"APPLIED\",\"step\":%d,\"rev\":%d,"
                "\"code\":0,\"text\":\"number %d\"}\n",
                (unsigned)i * 2654435761u, i, i, 2 * i, i);
    if (fclose(f) != 0)
        bail("cannot write %s", path);
    talk_restart(&h, &watch);
    const int64_t before = h.commands;
    for (int i = 0; i < MANY; i += STEP, asked++) {
        char text[32];
        struct etd_command c = {.op = ETD_OP_PAUSE, .if_rev = -1, .ttl_ms = 60000};
        const struct etd_head head = talk_head();
        const uint32_t key = (uint32_t)i * 2654435761u;
        for (int k = 0; k < 4; k++) {
            c.id[k] = (unsigned char)(key >> (24 - 8 * k));
            c.id[12 + k] = (unsigned char)((uint32_t)i >> (24 - 8 * k));
        }
        struct talk t = join("many");
        send_to(&t, &head, &c);
        struct etd_answer a = hear(&t);
        snprintf(text, sizeof text, "number %d", i);
        right += a.kind == ETD_APPLIED && a.step == i && a.rev == 2 * i &&
                 strcmp(a.text, text) == 0;
        talk_close(&t);
        talk_pass(&watch, 0.125);
    }
    is_int(right, asked, "of a thousand commands each that comes again has its answer");
    house_supervise(&h);
    is_int(h.commands, before, "and none is passed on");
}

/* ---- the supervisor, as the test plays it ---- */

/* The next command that the hub has passed on. */
static struct etd_command
take_command(void)
{
    double end = eti_system.monotonic() + PATIENCE;
    while (eti_system.monotonic() < end) {
        char bytes[ETD_CONTROL_BYTES];
        struct etd_frame f;
        struct etd_fault fault;
        struct etd_command c;
        ssize_t n = recv(h.supervisor, bytes, sizeof bytes, MSG_DONTWAIT);
        if (n <= 0) {
            usleep(200);
        } else if (etd_read(bytes, (size_t)n, &f, &fault) == ET_OK &&
                   f.head.kind == ETD_CMD) {
            (void)etd_command_read(&f, &c); /* as far as it is one */
            return c;
        }
    }
    bail("the hub passes no command on");
}

static void
answer(const struct etd_command *c, struct etd_answer a)
{
    char bytes[ETD_CONTROL_BYTES];
    const struct etd_head head = talk_head();
    memcpy(a.id, c->id, sizeof a.id);
    const size_t n = etd_answer_write(bytes, sizeof bytes, &head, &a);
    if (send(h.supervisor, bytes, n, MSG_NOSIGNAL) != (ssize_t)n)
        bail("the hub hears nothing");
}

/* Is there nothing that the hub has passed on? */
static bool
is_silent(void)
{
    char bytes[ETD_CONTROL_BYTES];
    talk_settle(&h);
    return recv(h.supervisor, bytes, sizeof bytes, MSG_DONTWAIT) < 0;
}

/* Two commands wait, and the second is answered first. What is no last word is not
 * passed on. */
static void
test_other_order(void)
{
    struct talk t[2] = {join("a"), join("b")};
    struct etd_command c[2] = {make(ETD_OP_PAUSE), make(ETD_OP_STOP)}, got;
    const struct etd_head head = talk_head();
    for (int i = 0; i < 2; i++) {
        send_to(&t[i], &head, &c[i]);
        is_str(etd_kind_name(hear(&t[i]).kind), "RECEIVED", "command %d is received",
               i);
        got = take_command();
        ok(memcmp(got.id, c[i].id, sizeof got.id) == 0 && got.op == c[i].op,
           "and passed on");
    }
    answer(&c[1], (struct etd_answer){.kind = ETD_RECEIVED});
    answer(&c[1], (struct etd_answer){.kind = ETD_APPLIED, .step = 71, .rev = 72});
    talk_settle(&h);
    struct etd_answer a = hear(&t[1]);
    ok(a.kind == ETD_APPLIED && a.step == 71 && a.rev == 72 &&
           memcmp(a.id, c[1].id, sizeof a.id) == 0,
       "the second has its answer");
    ok(talk_ping(&t[0], 0) == ETD_PONG, "the first waits");
    answer(&c[0], (struct etd_answer){.kind = ETD_EXPIRED});
    talk_settle(&h);
    a = hear(&t[0]);
    ok(a.kind == ETD_EXPIRED && memcmp(a.id, c[0].id, sizeof a.id) == 0,
       "and has another");
    talk_close(&t[0]);
    talk_close(&t[1]);
}

/* A run that could not be taken is nobody's. */
static void
test_refused_lease(void)
{
    struct talk a = join("a"), b = join("b");
    struct etd_command c = make(ETD_OP_TAKE);
    const struct etd_head head = talk_head();
    send_to(&a, &head, &c);
    is_str(etd_kind_name(hear(&a).kind), "RECEIVED", "an operator would take the run");
    c = take_command();
    answer(&c, (struct etd_answer){.kind = ETD_REJECTED, .code = 5008});
    talk_settle(&h);
    is_str(etd_kind_name(hear(&a).kind), "REJECTED", "and cannot");
    c = make(ETD_OP_PAUSE);
    is_applied(&b, &c, "another's command");
    talk_close(&a);
    talk_close(&b);
}

/* As many commands may wait for the supervisor as there are places, and one that finds
 * none may come again. */
static void
test_places(void)
{
    enum { PLACES = 256, EACH = 10 };
    static struct etd_command all[PLACES + 1];
    const struct etd_head head = talk_head();
    struct talk t = {0};
    struct etd_answer a = {0};
    int received = 0;
    for (int i = 0; i <= PLACES; i++) {
        char as[16];
        snprintf(as, sizeof as, "many-%d", i / EACH);
        if (i % EACH == 0)
            t = join(as);
        all[i] =
            (struct etd_command){.op = ETD_OP_PAUSE, .if_rev = -1, .ttl_ms = 60000};
        memcpy(all[i].id, &(uint32_t){0xabcd0000 + (uint32_t)i}, sizeof(uint32_t));
        send_to(&t, &head, &all[i]);
        a = hear(&t);
        received += a.kind == ETD_RECEIVED;
        if (i < PLACES)
            (void)take_command();
        if (i % EACH == EACH - 1)
            talk_close(&t);
    }
    is_int(received, PLACES, "256 commands wait for their answers");
    is_refused(&a, 5014, "one more");
    answer(&all[100], (struct etd_answer){.kind = ETD_EXPIRED});
    talk_settle(&h);
    send_to(&t, &head, &all[PLACES]);
    a = hear(&t);
    is_str(etd_kind_name(a.kind), "RECEIVED",
           "it comes again when one is answered, and");
    (void)take_command();
    for (int i = 0; i <= PLACES; i++)
        if (i != 100)
            answer(&all[i], (struct etd_answer){.kind = ETD_EXPIRED});
    talk_settle(&h);
    talk_close(&t);
}

/* The supervisor takes nothing any more: what cannot be passed on has expired, also for
 * who asks again when it does. */
static void
test_stuck(void)
{
    enum { MOST = 250, EACH = 10 };
    const struct etd_head head = talk_head();
    struct etd_command c = {.op = ETD_OP_ANNOTATE, .if_rev = -1, .ttl_ms = 60000};
    struct etd_answer a = {0}, next;
    struct talk t = {0};
    int sent = 0, answers = 0;
    memset(c.value, 'x', sizeof c.value - 1);
    for (; sent < MOST && a.kind != ETD_EXPIRED; sent++) {
        char as[16];
        snprintf(as, sizeof as, "stuck-%d", sent / EACH);
        if (sent % EACH == 0 && sent > 0)
            talk_close(&t);
        if (sent % EACH == 0)
            t = join(as);
        memcpy(c.id, &(uint32_t){0xdcba0000 + (uint32_t)sent}, sizeof(uint32_t));
        send_to(&t, &head, &c);
        struct etd_out ping = talk_say(ETD_PING, 0);
        talk_send(&t, &ping);
        answers = 0;
        for (enum etd_kind heard; (heard = talk_hear(&t)) != ETD_PONG;)
            if (talk_is_over(heard))
                bail("an operator is left: %s", t.code);
            else if (etd_answer_read(&t.f, &next) && ++answers)
                a = next;
    }
    ok(a.kind == ETD_EXPIRED && answers == 2,
       "command %d is received, and expires at once", sent);
    while (!is_silent()) /* (Each look takes one.) */
        ;
    send_to(&t, &head, &c);
    a = hear(&t);
    is_str(etd_kind_name(a.kind), "EXPIRED", "asked for again it still has");
    ok(is_silent(), "and is not passed on");
    for (int i = 0; i < sent - 1; i++) {
        memcpy(c.id, &(uint32_t){0xdcba0000 + (uint32_t)i}, sizeof(uint32_t));
        answer(&c, (struct etd_answer){.kind = ETD_EXPIRED});
    }
    talk_settle(&h);
    talk_close(&t);
}

/* What a hub does with a log that another has left, line by line. */
static void
test_left(void)
{
    char path[256], lines[2048], id[4][2 * ETD_CMD_ID + 1];
    const double now = eti_wall(h.cx);
    talk_close(&watch);
    house_kill(&h);
    for (int i = 0; i < 4; i++)
        snprintf(id[i], sizeof id[i], "e%030x%d", 77, i);
    snprintf(
        lines, sizeof lines,
        "{\"id\":\"%s\",\"t\":%.3f,\"who\":\"uid:7/one\",\"op\":\"stop\",\"key\":\"\","
        "\"value\":\"\",\"if_rev\":-1,\"ttl_ms\":30000}\n"
        "{\"id\":\"%s\",\"t\":%.3f,\"who\":\"uid:7/two\",\"op\":\"dance\",\"key\":\"\","
        "\"value\":\"\",\"if_rev\":-1,\"ttl_ms\":30000}\n"
        "{\"id\":\"%s\",\"t\":%.3f,\"who\":\"uid:7/three\",\"op\":\"set\","
        "\"key\":\"optimizer.lr\",\"value\":\"0.25\",\"if_rev\":41,"
        "\"ttl_ms\":30000}\n"
        "{\"id\":\"%s\",\"answer\":\"APPLIED\",\"step\":8,\"rev\":9,\"code\":0,"
        "\"text\":\"done\"}\n"
        "{\"id\":\"%s\",\"t\":%.3f,\"who\":\"uid:7/four\",\"op\":\"pause\","
        "\"key\":\"\",\"value\":\"\",\"if_rev\":-1,\"ttl_ms\":5000}\n",
        id[0], now, id[1], now, id[2], now - 10, id[0], id[3], now + 3600);
    snprintf(path, sizeof path, "%s/control.log", h.directory);
    FILE *f = fopen(path, "a");
    if (!f || fputs(lines, f) < 0 || fflush(f) != 0)
        bail("cannot write %s", path);
    const int64_t bytes = log_bytes();
    if (fputs("{\"id\":\"", f) < 0 || fclose(f) != 0)
        bail("cannot write %s", path);
    talk_restart(&h, &watch);
    struct etd_command set = take_command(), late = take_command();
    if (set.op != ETD_OP_SET) { /* in any order */
        const struct etd_command first = set;
        set = late;
        late = first;
    }
    ok(set.op == ETD_OP_SET && set.id[15] == 0xd2 &&
           strcmp(set.key, "optimizer.lr") == 0 && strcmp(set.value, "0.25") == 0 &&
           strcmp(set.who, "uid:7/three") == 0 && set.if_rev == 41 &&
           set.ttl_ms == 20000,
       "a command that waited is passed on whole, with the time that is left");
    ok(late.op == ETD_OP_PAUSE && strcmp(late.who, "uid:7/four") == 0 &&
           late.ttl_ms == 1,
       "one from the future has none left");
    ok(is_silent(), "one that has its answer is not passed on, nor one of no kind");
    is_int(log_bytes(), bytes, "half a line is cut off");
}

/* ---- 6.6 ---- */

/* What cannot be a command counts as one. */
static void
test_wrong_rate(void)
{
    struct talk t = join("wrong");
    struct etd_command c;
    struct etd_answer a = {0};
    int wrong = 0;
    for (int i = 0; i < 10; i++) {
        c = make(ETD_OP_PAUSE);
        c.ttl_ms = 0;
        a = ask(&t, &c);
        wrong += a.kind == ETD_REJECTED && a.code == 5008;
    }
    is_int(wrong, 10, "ten commands that cannot be are told so");
    c = make(ETD_OP_PAUSE);
    c.ttl_ms = 0;
    a = ask(&t, &c);
    is_refused(&a, 5012, "the eleventh");
    talk_close(&t);
}

/* More operators than there is room for: the one who was there first is forgotten. */
static void
test_many_operators(void)
{
    enum { OPERATORS = 64, COMMANDS = 10 };
    int applied = 0;
    for (int i = 0; i <= OPERATORS; i++) {
        char as[16];
        snprintf(as, sizeof as, "operator-%d", i);
        struct talk t = join(as);
        for (int k = 0; k < (i % OPERATORS == 0 ? COMMANDS : 1); k++) {
            struct etd_command c = make(ETD_OP_PAUSE);
            applied += ask(&t, &c).kind == ETD_APPLIED;
        }
        talk_close(&t);
    }
    is_int(applied, 2 * COMMANDS + OPERATORS - 1,
           "one of 65 operators may send ten commands at once");
}

static void
test_rate(void)
{
    struct talk t = join("fast"), other = join("slow");
    struct etd_command c;
    struct etd_answer a;
    for (int times = 0; times < 2; times++) {
        int applied = 0;
        talk_pass(&watch, 5);
        (void)talk_ping(&other, 0);
        for (int i = 0; i < 10; i++) {
            c = make(ETD_OP_PAUSE);
            applied += ask(&t, &c).kind == ETD_APPLIED;
        }
        is_int(applied, 10, "ten commands at once are applied, whenever the last was");
        c = make(ETD_OP_PAUSE);
        a = ask(&t, &c);
        is_refused(&a, 5012, "the eleventh");
    }
    c = make(ETD_OP_PAUSE);
    is_applied(&other, &c, "that of another operator");
    talk_pass(&watch, 0.0625);
    c = make(ETD_OP_PAUSE);
    a = ask(&t, &c);
    is_refused(&a, 5012, "one more within a tenth of a second");
    talk_pass(&watch, 0.0625);
    c = make(ETD_OP_PAUSE);
    is_applied(&t, &c, "one after it");
    c = make(ETD_OP_PAUSE);
    a = ask(&t, &c);
    is_refused(&a, 5012, "and not two: the second");
    talk_close(&t);
    talk_close(&other);
}

/* ---- 6.1 the lease ---- */

/* What a PING is told of it. */
static void
is_told(struct talk *t, const char *who, bool mine, const char *whom)
{
    char lease[ETD_WORD];
    if (talk_ping(t, 0) != ETD_PONG)
        bail("no PONG: %s", t->code);
    etd_get_text(&t->f.body, "lease", lease, sizeof lease);
    is_str(strchr(lease, '/') ? strchr(lease, '/') : lease, who,
           "%s is told who has the run", whom);
    is_int(etd_get_bool(&t->f.body, "mine", false), mine, "and whether that is he");
}

static void
test_lease(void)
{
    struct talk a = join("a"), b = join("b");
    struct etd_command c = make(ETD_OP_TAKE);
    struct etd_answer answer;
    is_told(&b, "", false, "before anybody takes it a viewer");
    is_applied(&a, &c, "an operator takes the run: that");
    is_told(&a, "/a", true, "the holder");
    is_told(&b, "/a", false, "another");
    talk_pass(&watch, 5);
    c = make(ETD_OP_TAKE);
    is_applied(&a, &c, "5 s later he takes it again: that");
    for (int i = 0; i < 12; i++) {
        talk_pass(&watch, i < 11 ? 2.5 : 2.25);
        (void)talk_ping(&a, 0);
        (void)talk_ping(&b, 0);
    }
    c = make(ETD_OP_PAUSE);
    answer = ask(&b, &c);
    is_refused(&answer, 5013, "29.75 s later another's command");
    c = make(ETD_OP_ANNOTATE);
    snprintf(c.value, sizeof c.value, "a note");
    is_applied(&b, &c, "not his note: that");
    c = make(ETD_OP_TAKE);
    answer = ask(&b, &c);
    is_refused(&answer, 5013, "also that he takes it");
    c = make(ETD_OP_PAUSE);
    is_applied(&a, &c, "the holder's command");
    struct etd_command refused = make(ETD_OP_PAUSE);
    answer = ask(&b, &refused);
    talk_pass(&watch, 0.25);
    c = make(ETD_OP_PAUSE);
    is_applied(&b, &c, "30 s later another's command");
    answer = ask(&b, &refused);
    is_refused(&answer, 5013, "one that was rejected, sent again,");
    is_told(&b, "", false, "a viewer");
    talk_close(&a);
    talk_close(&b);
}

static const struct talk_limit limits[] = {
    {"6.4", "this run, and this start of it", test_other_run},
    {"6.4", "a revision of the settings", test_revision},
    {"6.2", "60,000 ms", test_ttl},
    {"6.2", "written down before it is received", test_journal},
    {"6.2", "or rejected", test_full_disk},
    {"6.3", "once, for the life of the run", test_time_left},
    {"6.3", "answered over the connection that asked last", test_other_connection},
    {"6.3", "answered as it was", test_same_answers},
    {"6.3", "however many there are", test_many},
    {"6.3", "answered in any order", test_other_order},
    {"6.3", "256 at once", test_places},
    {"6.3", "and expired where it cannot be passed on", test_stuck},
    {"6.3", "also by a hub that comes later", test_left},
    {"6.6", "10 commands a second", test_rate},
    {"6.6", "also of what is none", test_wrong_rate},
    {"6.6", "for each of 64 operators", test_many_operators},
    {"6.1", "a lease that is refused", test_refused_lease},
    {"6.1", "a lease of 30 s, of one holder", test_lease},
};

int
main(void)
{
    talk_begin(&h, &watch);
    /* Whoever gave commands may give ten more in the next. */
    return talk_run(&h, &watch, 5, limits, sizeof limits / sizeof *limits);
}
