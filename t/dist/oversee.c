/* SPDX-License-Identifier: Apache-2.0 */
/* What a supervisor makes of its ranks: of what they print and say, of commands that
 * they do not take, of a start that comes to no end; and what its dumps tell of them.
 * The test is the ranks, the hub and the front, and has the clock. */
#include "config.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "dist/run/ring.h"
#include "dist/run/stack.h"
#include "dist/run/supervisor.h"
#include "etude/control.h"
#include "etude/run.h"
#include "t/data/fixture.h"
#include "t/tap.h"

enum { RANKS = 2, BASE = 4, ROOM = 1 << 16 };

static double time_is = 1000;
static int hub, screen; /* our ends of the sockets of hub and front */
static int says[RANKS], prints[RANKS][2], link_of[RANKS]; /* and of what ranks have */
/* The ranks 4 and 5 of eight, so that no number of theirs is a place in a list. */
static struct etd_launch launch = {
    .nproc = RANKS, .base = BASE, .world = 8, .node = 2, .timeout = 10};
static struct etd_sup_rank ranks[RANKS];
static struct etd_supervisor s = {.l = &launch, .rank = ranks, .failed = -1};

static double
test_clock(void)
{
    return time_is;
}

/* What FD has now, as a text. */
static const char *
take(int fd)
{
    static char text[ROOM];
    ssize_t n = recv(fd, text, sizeof text - 1, MSG_DONTWAIT);
    for (ssize_t i = 0; i < n; i++)
        text[i] = text[i] ? text[i] : ' '; /* packets have binary heads */
    text[n > 0 ? n : 0] = '\0';
    return text;
}

/* The file at PATH. */
static const char *
content(const char *path)
{
    static char text[ROOM];
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = '\0';
    if (f)
        fclose(f);
    return text;
}

/* Rank I says a packet, and its supervisor hears it. */
static void
say(int i, enum etd_packet_kind kind, const char *body, size_t n)
{
    struct etd_bytes b = {0};
    etd_packet_add(&b, kind, body, n);
    if (b.failed || write(says[i], b.at, b.n) != (ssize_t)b.n)
        bail("rank %d says nothing", i);
    etd_bytes_free(&b);
    etd_sup_read_packets(&s, i);
}

/* Rank I prints to its standard output, STREAM 0, or its standard error. */
static void
print(int i, int stream, const char *text)
{
    if (write(prints[i][stream], text, strlen(text)) < 0)
        bail("rank %d prints nothing", i);
    etd_sup_read_prints(&s, i, stream);
}

/* The front has been told KIND with the numbers of the record that comes next and of
 * TAG, and with TEXT, and nothing else. TEXT "": it has been told nothing. */
static void
is_told(enum etd_packet_kind kind, int tag, const char *text, const char *what)
{
    static char bytes[ROOM];
    struct etd_packet p = {0};
    size_t used = 0, n_text = strlen(text);
    int64_t seq = -1;
    ssize_t n = recv(screen, bytes, sizeof bytes, MSG_DONTWAIT);
    bool is = n > 0 && etd_packet_next(bytes, (size_t)n, &p, &used) == 1 &&
              used == (size_t)n && p.kind == kind && p.n == sizeof seq + 1 + n_text &&
              p.body[sizeof seq] == tag &&
              memcmp(p.body + sizeof seq + 1, text, n_text) == 0;
    if (is)
        memcpy(&seq, p.body, sizeof seq);
    ok(*text ? is && seq == et_run_seq(s.run) : n <= 0, "%s", what);
}

/* ---- what ranks print and say ---- */

/* The descriptor that comes with what rank I is told, which is in TEXT; -1: none. */
static int
take_lock(int i, char text[1024])
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {.iov_base = text, .iov_len = 1023};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control.room,
                       .msg_controllen = sizeof control.room};
    int fd = -1;
    ssize_t n = recvmsg(link_of[i], &m, MSG_DONTWAIT);
    text[n > 0 ? n : 0] = '\0';
    struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
    if (c && c->cmsg_type == SCM_RIGHTS)
        memcpy(&fd, CMSG_DATA(c), sizeof fd);
    return fd;
}

/* A run that cannot be: each rank that asks is told why, also those that ask later. */
static void
test_refused(void)
{
    static const char open[] = "{\"threads\": 1}";
    char first[1024], text[1024];
    launch.config.directory = "script/run";
    if (symlink("/dev/null", "script") != 0)
        bail("no link");
    for (int times = 0; times < 2; times++)
        for (int i = 0; i < RANKS; i++) {
            say(i, ETD_PACKET_OPEN, open, sizeof open - 1);
            snprintf(text, sizeof text, "%s", take(link_of[i]));
            if (times == 0 && i == 0)
                snprintf(first, sizeof first, "%s", text);
            ok(strstr(text, "\"status\":") && strcmp(text, first) == 0,
               "rank %d is told that there can be no run, time %d: %.60s", BASE + i,
               times + 1, text);
            is_str(take(link_of[!i]), "", "and nobody else is");
            launch.config.directory = "run"; /* where there could be one */
        }
    ok(!s.run && !s.directory[0], "there is none");
    etd_sup_forget_start(&s);
}

static void
test_opening(void)
{
    static const char open[] = "{\"threads\": 7, \"name\": \"calm-heron\"}";
    static char early[30 << 10];
    struct etd_bytes b = {0};
    struct stat lock, sent;
    char text[1024], want[256];
    print(1, 0, "before there was a run,\n");
    print(1, 1, "and an error\n");
    memset(early, 'e', sizeof early - 1);
    for (int i = 0; i < 3; i++)
        print(1, 0, early);
    say(1, ETD_PACKET_OPEN, open, sizeof open - 1);
    is_str(take(link_of[1]), "", "a rank waits for the first one's run");
    /* In two pieces: the second has its end, and the next packet. */
    etd_packet_add(&b, ETD_PACKET_OPEN, open, sizeof open - 1);
    etd_packet_add(&b, ETD_PACKET_LINE, "\1and a line", 11);
    for (size_t at = 0, n = 9; at < b.n; at += n, n = b.n - at) {
        if (write(says[0], b.at + at, n) != (ssize_t)n)
            bail("rank 0 says nothing");
        etd_sup_read_packets(&s, 0);
    }
    etd_bytes_free(&b);
    for (int i = 0; i < RANKS; i++) {
        int fd = take_lock(i, text);
        ok(strstr(text, "\"directory\":\"run\",\"name\":\"calm-heron\"") &&
               strstr(text, "\"incarnation\":1"),
           "rank %d is told where it is, and who", BASE + i);
        ok(fd >= 0 && fstat(fd, &sent) == 0 && fstat(et_run_lock(s.run), &lock) == 0 &&
               sent.st_ino == lock.st_ino,
           "and holds its lock");
        if (fd >= 0)
            close(fd);
    }
    say(1, ETD_PACKET_OPEN, open, sizeof open - 1);
    ok(strstr(take(link_of[1]), "calm-heron") && !*take(link_of[0]),
       "one that asks again is told again, alone");
    is_str(s.name, "calm-heron", "its name is kept");
    ok(strstr(content("run/run.json"), "\"threads\": 7"),
       "and written down with all else");
    print(1, 0, "and then\n");
    static const char before[] = "before there was a run,\nand an error\n";
    const char *log = content("run/logs/rank5.txt");
    const size_t n_before = sizeof before - 1 + 2 * (sizeof early - 1);
    ok(strncmp(log, before, sizeof before - 1) == 0 && strlen(log) > n_before,
       "the log of a rank has what it printed before there was one, too");
    is_str(log + (strlen(log) > n_before ? n_before : 0), "and then\n",
           "as much as there is room for");
    snprintf(want, sizeof want,
             "{\"directory\":\"run\",\"name\":\"calm-heron\",\"seq\":%lld}",
             (long long)et_run_seq(s.run));
    const char *told = take(screen);
    ok(strstr(told, want), "who looks on is told as well, and which record is next");
    ok(strstr(told, "and a line"), "and hears what the first rank says behind that");
}

/* Lines that ranks log: those of the first are shown, and those of others that are
 * about them alone; all that others say stands in their own logs. */
static void
test_lines(void)
{
    static const struct {
        int rank, level;
        const char *text;
        bool shown;
    } row[] = {
        {0, ET_LOG_INFO, "of the first", true},
        {0, ET_LOG_WARN, "rank 5: of the first, too", true},
        {1, ET_LOG_INFO, "of the second", false},
        {1, ET_LOG_ERROR, "rank 5: is the second", true},
        {1, ET_LOG_WARN, "rank 4: is the first", false},
        {1, ET_LOG_WARN, "rank 1: is a place in a list", false},
        {1, ET_LOG_WARN, "rank 5: ", false},
        {1, ET_LOG_DEBUG, "rank 5: x", true},
    };
    const size_t before = strlen(content("run/logs/rank5.txt"));
    const size_t first = strlen(content("run/logs/rank4.txt"));
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char line[64];
        int n = snprintf(line, sizeof line, "%c%s", row[i].level, row[i].text);
        say(row[i].rank, ETD_PACKET_LINE, line, (size_t)n);
        is_told(ETD_PACKET_LINE, row[i].level, row[i].shown ? row[i].text : "",
                row[i].text);
    }
    is_str(
        content("run/logs/rank5.txt") + before,
        "info of the second\nerror rank 5: is the second\nwarn rank 4: is the first\n"
        "warn rank 1: is a place in a list\nwarn rank 5: \ndebug rank 5: x\n",
        "its log has each line of the second rank, with its level");
    is_str(content("run/logs/rank4.txt") + first, "",
           "the lines of the first, which the run writes, are not written twice");
}

/* What ranks print is shown of the first, and each stream has its own file. */
static void
test_prints(void)
{
    const size_t before = strlen(content("run/logs/rank4.txt"));
    for (int i = 0; i < RANKS; i++)
        for (int stream = 0; stream < 2; stream++) {
            char text[32];
            snprintf(text, sizeof text, "rank %d, stream %d\n", i, stream);
            print(i, stream, text);
            is_told(ETD_PACKET_PRINT, stream + 1, i == 0 ? text : "", text);
        }
    is_str(content("run/logs/rank4.txt") + before,
           "rank 0, stream 0\nrank 0, stream 1\n", "both streams are in a rank's log");
    is_str(content("run/4-of-8.out"), "rank 0, stream 0\n", "one is in its own file");
    is_str(content("run/5-of-8.out"), "and then\nrank 1, stream 0\n",
           "as is that of another rank");
    is_str(content("run/err.0"), "rank 0, stream 1\n", "and the other stream in its");
    is_str(content("run/err.1"), "rank 1, stream 1\n", "for each of the ranks");
}

/* A rank but the first that says an error: the first one may be why the run ends. */
static void
test_errors(void)
{
    static const struct {
        enum etd_packet_kind kind;
        const char *text, *why;
    } row[] = {
        {ETD_PACKET_OUT, "etude: error E1: on the wrong stream\n", ""},
        {ETD_PACKET_ERR, "etude: warning: no error\n", ""},
        {ETD_PACKET_ERR, "etude: error ", ""},
        {ETD_PACKET_ERR, "etude: error E2: the first\nwith a hint\n",
         "rank 5: E2: the first"},
        {ETD_PACKET_ERR, "etude: error E3: the second\n", "rank 5: E2: the first"},
    };
    const size_t before = strlen(content("run/logs/rank5.txt"));
    char all[512] = "";
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        say(1, row[i].kind, row[i].text, strlen(row[i].text));
        is_str(ranks[1].end.why, row[i].why, "behind '%.24s'", row[i].text);
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s", row[i].text);
    }
    is_str(content("run/logs/rank5.txt") + before, all, "its log has all of it");
    is_str(take(screen), "", "and the screen nothing");
    say(0, ETD_PACKET_ERR, "etude: error E4: of the first rank\n", 35);
    ok(strstr(take(screen), "E4: of the first rank\n"),
       "which shows that of the first");
    is_str(ranks[0].end.why, "", "and needs nobody to say it again");
    ranks[1].end.why[0] = '\0';
}

/* How a run ended, as the front is told: each field is itself. */
static void
test_end(void)
{
    struct etd_end end = {
        .state = "failed", .why = "no\trank", .hint = "do\1this", .exit = 3, .rank = 5};
    for (int i = 0; i < 2; i++) {
        char want[256];
        end.began = i == 0;
        end.said = i == 1;
        snprintf(want, sizeof want,
                 "{\"state\":\"failed\",\"exit\":3,\"rank\":5,\"began\":%s,\"said\":%s,"
                 "\"why\":\"no\\\\x09rank\",\"hint\":\"do\\\\x01this\"}",
                 i == 0 ? "true" : "false", i == 1 ? "true" : "false");
        etd_sup_tell_end(&s, &end);
        is_str(take(screen) + ETD_PACKET_HEAD, want,
               "the front is told how a run ended");
    }
}

/* A line of the supervisor's own. */
static void
test_said(void)
{
    struct et_events *log;
    struct et_record r;
    bool got = true;
    int n = 0;
    s.dirty = false;
    etd_sup_say(&s, ET_LOG_WARN, "of %d ranks", 7);
    is_told(ETD_PACKET_LINE, ET_LOG_WARN, "of 7 ranks", "a line is shown");
    ok(s.dirty, "readers of the log are to see it soon");
    et_run_flush(s.run);
    need(s.cx, et_events_open(s.cx, "run/events.log", &log));
    while (et_events_next(log, &r, &got) == ET_OK && got)
        n += r.kind == ET_RECORD_LOG && r.level == ET_LOG_WARN && r.text &&
             strcmp(r.text, "of 7 ranks") == 0;
    et_events_close(&log);
    is_int(n, 1, "which has it with its level");
}

/* The log of a rank that is removed while the run goes on. */
static void
test_removed_log(void)
{
    static const char said[] =
        "run/logs/rank5.txt was removed: what is printed goes to another";
    if (link("run/logs/rank4.txt", "kept") != 0)
        bail("no second name for a log");
    for (int i = 0; i < 3; i++, time_is += 1)
        etd_sup_look_at_files(&s);
    is_str(take(screen), "",
           "of logs that are there, with other names too, none is new");
    unlink("run/logs/rank5.txt");
    for (int i = 0; i < 3; i++, time_is += 1)
        etd_sup_look_at_files(&s);
    is_told(ETD_PACKET_LINE, ET_LOG_WARN, said, "that one was removed is said once");
    print(1, 1, "from now on\n");
    is_str(content("run/logs/rank5.txt"), "from now on\n", "it has what comes now");
    print(0, 0, "the first\n");
    ok(strstr(content("run/logs/rank4.txt"), "the first\n"), "and the other goes on");
    (void)take(screen);
}

/* A rank says how it is after BA batches: its own part of a step. */
static void
say_health(int i, int64_t ba, double own_ms)
{
    struct etd_bytes b = {0};
    const struct et_log_entry entry = {"own_ms", own_ms};
    const struct et_record r = {
        .kind = ET_RECORD_HEALTH, .rank = BASE + i, .ba = ba, .entry = &entry, .n = 1};
    etd_packet_add_record(&b, &r);
    if (b.failed || write(says[i], b.at, b.n) != (ssize_t)b.n)
        bail("rank %d says nothing", i);
    etd_bytes_free(&b);
    etd_sup_read_packets(&s, i);
}

/* The sums of what the log has of the ranks' own parts of their steps. */
static void
logged_health(double *sum)
{
    struct et_events *log;
    struct et_record r;
    bool got = true;
    et_run_flush(s.run);
    need(s.cx, et_events_open(s.cx, "run/events.log", &log));
    while (et_events_next(log, &r, &got) == ET_OK && got)
        if (r.kind == ET_RECORD_HEALTH && r.rank >= BASE && r.rank < BASE + RANKS)
            sum[r.rank - BASE] += r.entry->value;
    et_events_close(&log);
}

static void
test_health(void)
{
    double sum[RANKS] = {0};
    for (int64_t ba = 1; ba <= 30; ba++)
        for (int i = 0; i < RANKS; i++)
            say_health(i, ba, i == 1 ? 100 : 10);
    ok(strstr(take(screen), "rank 5 holds every step back"),
       "what each rank says of its steps is compared");
    logged_health(sum);
    ok(sum[0] == 300 && sum[1] == 3000, "and the log has it, as that of its rank");
    for (int i = 0; i < RANKS; i++)
        ranks[i].straggles = false;
}

/* A front that reads nothing: what it may miss is left out when 8 MiB wait for it, and
 * the rest is not. */
static void
test_slow_front(void)
{
    enum { BLOCK = 1 << 16, BLOCKS = 200 };
    static const struct {
        enum etd_packet_kind kind;
        bool kept;
    } row[] = {
        {ETD_PACKET_STATE, true}, {ETD_PACKET_OUT, true},    {ETD_PACKET_ERR, true},
        {ETD_PACKET_LINE, false}, {ETD_PACKET_PRINT, false},
    };
    static char block[BLOCK];
    for (int i = 0; i < BLOCKS; i++)
        etd_sup_tell(&s, ETD_PACKET_PRINT, block, sizeof block);
    ok(s.to_front.n > 7 << 20 && s.to_front.n <= (8 << 20) + ETD_PACKET_HEAD,
       "for a front that reads nothing 8 MiB are kept (%zu)", s.to_front.n);
    is_int((int64_t)(s.front_lost + s.to_front.n / BLOCK) >= BLOCKS - 4, true,
           "and what is left out is counted (%d)", (int)s.front_lost);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const uint64_t lost = s.front_lost;
        const size_t n = s.to_front.n;
        etd_sup_tell(&s, row[i].kind, block, sizeof block);
        ok((s.to_front.n > n) == row[i].kept && (s.front_lost > lost) != row[i].kept,
           "then packet %d is %s", (int)row[i].kind,
           row[i].kept ? "kept all the same" : "left out");
    }
    while (s.to_front.n > 0 && *take(screen))
        etd_sup_flush_front(&s);
    while (recv(screen, block, sizeof block, MSG_DONTWAIT) > 0)
        ;
    s.front_lost = 0;
}

/* ---- commands ---- */

static void
ask(unsigned char number, enum etd_op op, int ttl_ms)
{
    char bytes[ETD_CONTROL_BYTES];
    const struct etd_head head = {.kind = ETD_CMD};
    struct etd_command c = {.op = op, .if_rev = -1, .ttl_ms = ttl_ms, .who = "me"};
    c.id[0] = number;
    if (op == ETD_OP_ANNOTATE)
        snprintf(c.value, sizeof c.value, "look here");
    size_t n = etd_command_write(bytes, sizeof bytes, &head, &c);
    if (send(hub, bytes, n, 0) < 0)
        bail("no hub");
    etd_sup_hear(&s);
}

/* The kind of the answer that the hub hears now; ETD_KIND_COUNT: it hears none. */
static enum etd_kind
heard(void)
{
    char bytes[ETD_CONTROL_BYTES];
    struct etd_answer a;
    struct etd_frame f;
    struct etd_fault fault;
    ssize_t n = recv(hub, bytes, sizeof bytes, MSG_DONTWAIT);
    bool is = n > 0 && etd_read(bytes, (size_t)n, &f, &fault) == ET_OK &&
              etd_answer_read(&f, &a);
    return is ? a.kind : ETD_KIND_COUNT;
}

/* Seconds until the hub hears that a command has expired; MOST: it does not. */
static int
expires_after(int most)
{
    for (int i = 0; i < most; i++, time_is += 1) {
        etd_sup_expire(&s);
        if (heard() == ETD_EXPIRED)
            return i;
    }
    return most;
}

static void
test_expiry(void)
{
    struct et_request r;
    ask(1, ETD_OP_PAUSE, 5000);
    is_int(expires_after(100), 5, "a command that nobody takes expires in its time");
    ok(!etd_board_next(s.board, &r), "and no rank is asked for it any more");
    ask(2, ETD_OP_PAUSE, 60000);
    is_int(expires_after(100), 60, "one that has more time later");
    ask(3, ETD_OP_PAUSE, 5000);
    ok(etd_board_next(s.board, &r), "one that a rank has taken");
    is_int(expires_after(100), 100, "does not expire");
    s.alive = 0;
    is_int(expires_after(100), 0, "unless no rank is left: then it does at once");
    s.alive = RANKS;
    ask(4, ETD_OP_PAUSE, 60000);
    s.alive = 0;
    is_int(expires_after(100), 0, "as does one that they have not taken");
    s.alive = RANKS;
    etd_board_clear(s.board);
}

/* How many notes the log on the disk has. */
static int
notes(void)
{
    struct et_events *log;
    struct et_record r;
    bool got = true;
    int n = 0;
    need(s.cx, et_events_open(s.cx, "run/events.log", &log));
    while (et_events_next(log, &r, &got) == ET_OK && got)
        n += r.kind == ET_RECORD_ANNOTATION && strcmp(r.text, "look here") == 0;
    et_events_close(&log);
    return n;
}

static void
test_note(void)
{
    ask(5, ETD_OP_ANNOTATE, 60000);
    is_int((int)heard(), ETD_APPLIED, "a note is applied");
    is_int(notes(), 1, "when readers of the log find it");
}

/* ---- dumps ---- */

static void
test_dumps(void)
{
    static char stack[10000];
    const char *path = "run/dumps/rank5.txt";
    const struct et_comm_look look = {.seq = 5, .kind = ET_COMM_BARRIER};
    etd_board_collective(s.board, 1, &look);
    etd_board_step(s.board, 1, 7);
    s.failed = 1;
    s.why[0] = '\0';
    etd_sup_dump(&s);
    is_str(s.why, "; dumps/rank5.txt has what it did last",
           "why a run fails ends with where more is");
    ok(strstr(content(path), "-- rank 5 of start 1: after batch 7,"),
       "which has how far the rank was");
    ok(strstr(content(path), "-- the last collective was barrier 5\n"),
       "and the collective that it was in last");
    s.restarts = 1;
    etd_sup_dump(&s);
    ok(strstr(content(path), "of start 1:") && strstr(content(path), "of start 2:"),
       "that of another start stands behind it");
    memset(stack, 's', sizeof stack);
    ranks[1].stack = etd_stack_file();
    if (ranks[1].stack < 0 ||
        write(ranks[1].stack, stack, sizeof stack) != sizeof stack)
        bail("no stack");
    size_t before = strlen(content(path));
    etd_sup_dump_stack(&s, 1);
    is_int((int64_t)strlen(content(path)), (int64_t)(before + sizeof stack),
           "and its whole stack, where it has left that");
    close(ranks[1].stack);
    ranks[1].stack = -1;
    s.restarts = 0;
    etd_sup_forget_start(&s);
}

/* ---- what a start forgets, and when it is over ---- */

static void
test_forgotten(void)
{
    struct et_request r = {.op = ET_REQUEST_PAUSE, .id = 99};
    s.failed = 1;
    s.hung = true;
    s.refusal.status = ET_EINVAL;
    s.kill_at = time_is + 1;
    s.steps = (struct etd_steps){.first = 1, .last = 900, .longest = 70, .at = time_is};
    s.began_stood = 9;
    for (int i = 0; i < RANKS; i++) {
        etd_board_step(s.board, i, 7);
        etd_board_move(s.board, i, ETD_PHASE_FORWARD);
    }
    ok(etd_board_ask(s.board, &r), "a rank is asked for something");
    time_is += 100;
    etd_sup_forget_start(&s);
    is_int(s.failed, -1, "in another start no rank has failed");
    ok(!s.hung, "it does not hang");
    is_int((int64_t)s.refusal.status, ET_OK, "nothing is refused");
    ok(s.kill_at <= 0, "nobody is to be killed");
    ok(s.steps.first == 0 && s.steps.last == 0 && s.steps.at <= 0 &&
           s.steps.longest <= 0,
       "no step has been measured");
    ok(s.began_stood <= 0, "nobody has stood still");
    ok(s.watched >= etd_sup_now(&s) && s.began_looked >= etd_sup_now(&s),
       "it is looked at from now on");
    ok(!etd_board_next(s.board, &r), "what was asked of the ranks before is not");
    for (int i = 0; i < RANKS; i++)
        ok(s.board->rank[i].step == 0 && s.board->rank[i].phase == ETD_PHASE_STARTING,
           "rank %d is at its beginning", i);
}

/* A run starts while each rank that is there does, and one is. */
static void
test_is_starting(void)
{
    enum { GONE = ETD_PHASE_COUNT };
    int wrong = 0;
    for (int a = 0; a <= GONE; a++)
        for (int b = 0; b <= GONE; b++) {
            const int at[RANKS] = {a, b};
            bool want = a != GONE || b != GONE;
            s.alive = 0;
            for (int i = 0; i < RANKS; i++) {
                ranks[i].pid = at[i] == GONE ? 0 : 1 << 30; /* no process has it */
                s.alive += at[i] != GONE;
                etd_board_move(s.board, i,
                               at[i] == GONE ? ETD_PHASE_DATA : (enum etd_phase)at[i]);
                want = want && (at[i] == GONE || at[i] == ETD_PHASE_STARTING);
            }
            wrong += etd_sup_is_starting(&s) != want;
        }
    is_int(wrong, 0, "a run starts until one of its ranks is at anything else");
    for (int i = 0; i < RANKS; i++)
        ranks[i].pid = 0;
    s.alive = 0;
    etd_sup_forget_start(&s);
}

/* ---- a start that comes to no end ---- */

/* Seconds of the processor that process PID has had. */
static double
used_by(pid_t pid)
{
    struct timespec t = {0};
    clockid_t clock;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
        bail("no clock of a process");
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Uses the processor for a twentieth of a second. */
static void
compute(int number)
{
    const double end = used_by(0) + 0.05;
    (void)number;
    while (used_by(0) < end)
        for (volatile int i = 0; i < 1000000; i++) /* not in the system */
            ;
}

/* A rank that computes as it begins and at SIGUSR1, reads a byte when it is given one,
 * and uses no processor otherwise. */
static pid_t
start_reader(int *to, int *from)
{
    int in[2], out[2];
    char byte;
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
        bail("no pipes");
    pid_t pid = fork();
    if (pid == 0) {
        const struct sigaction action = {.sa_handler = compute, .sa_flags = SA_RESTART};
        close(in[1]);
        close(out[0]);
        sigaction(SIGUSR1, &action, NULL);
        compute(0);
        while (read(in[0], &byte, 1) == 1 && write(out[1], &byte, 1) == 1)
            ;
        _exit(0);
    }
    close(in[0]);
    close(out[1]);
    *to = in[1];
    *from = out[0];
    return pid;
}

/* A process that does nothing; STOPPED: and cannot. */
static pid_t
start_sleeper(bool stopped)
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        for (;;)
            pause();
    if (stopped && (kill(pid, SIGSTOP) != 0 || waitpid(pid, &status, WUNTRACED) != pid))
        bail("no process is stopped");
    return pid;
}

/* Does PID end within seconds, by SIGABRT? */
static bool
is_aborted(pid_t pid)
{
    const struct timespec pause = {0, 10000000};
    int status = 0;
    for (int i = 0; i < 1000; i++) {
        if (waitpid(pid, &status, WNOHANG) == pid)
            return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
        nanosleep(&pause, NULL);
    }
    kill(pid, SIGKILL);
    (void)waitpid(pid, &status, 0);
    return false;
}

/* One of two ranks is at work, whichever it is. */
static void
test_start(void)
{
    int to, from, seconds;
    const pid_t worker = start_reader(&to, &from), other = start_sleeper(false);
    char byte = 'x';
    for (int at = 0; at < RANKS; at++) {
        etd_sup_forget_start(&s);
        s.alive = RANKS;
        ranks[at].pid = worker;
        ranks[!at].pid = other;
        for (seconds = 0; seconds < 24 && !s.hung; seconds++, time_is += 1) {
            if (seconds % 8 == 7 &&
                (write(to, &byte, 1) != 1 || read(from, &byte, 1) != 1))
                bail("rank %d is gone", BASE + at);
            etd_sup_watch_start(&s);
        }
        ok(!s.hung, "a rank that reads now and then is at work, as long as it takes");
        for (seconds = 0; seconds < 24 && !s.hung; seconds++, time_is += 1) {
            const double used = used_by(worker);
            if (seconds % 8 == 7 && kill(worker, SIGUSR1) != 0)
                bail("rank %d is gone", BASE + at);
            while (seconds % 8 == 7 && used_by(worker) < used + 0.05)
                ;
            etd_sup_watch_start(&s);
        }
        ok(!s.hung, "as is one that computes now and then");
    }
    for (seconds = 0; seconds < 17; seconds++, time_is += 1) {
        etd_board_move(s.board, 1, seconds == 8 ? ETD_PHASE_DATA : ETD_PHASE_STARTING);
        etd_sup_watch_start(&s);
    }
    ok(!s.hung, "as are all when one of them has begun to train");
    etd_sup_forget_start(&s);
    for (seconds = 0; seconds < 40 && !s.hung; seconds++, time_is += 1)
        etd_sup_watch_start(&s);
    ok(s.hung && seconds >= 9 && seconds <= 12,
       "two that do nothing for the run's timeout, 10 s, hang (after %d)", seconds);
    ok(strstr(s.why, "rank 4 has not moved for 10 s: after batch 0"), "%s", s.why);
    if (!s.hung)
        etd_sup_signal_all(&s, SIGKILL);
    for (int i = 0; i < RANKS; i++) {
        ok(is_aborted(ranks[i].pid),
           "rank %d is ended by the signal at which it leaves its stack", BASE + i);
        ranks[i].pid = 0;
    }
    close(to);
    close(from);
}

/* ---- a rank that ends ---- */

/* Rank I ends: with EXIT, or by signal -EXIT. */
static void
end_rank(int i, int exit)
{
    siginfo_t info;
    const pid_t pid = fork();
    if (pid == 0) {
        if (exit < 0) {
            signal(-exit, SIG_DFL); /* a sanitizer has a handler of its own */
            kill(getpid(), -exit);
        }
        _exit(exit);
    }
    ranks[i].pid = pid;
    if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) != 0)
        bail("no rank ends");
    etd_sup_reap(&s, i);
}

/* The first that fails is to blame, with its own batch. A rank that was asked to end
 * has no dump, unless it crashed. */
static void
test_failures(void)
{
    static const struct {
        const char *last; /* word of rank 5; "": none */
        int exit, stops;
        bool killed;
        const char *why; /* "": it has ended well */
    } row[] = {
        {"{\"state\":\"done\",\"exit\":3}", 3, 0, false, ""},
        {"{\"state\":\"done\",\"exit\":0}", 3, 0, false,
         "rank 5 ended by itself, with exit 3, after batch 12; dumps/rank5.txt has "
         "what "
         "it did last"},
        {"", 0, 0, false,
         "rank 5 ended by itself, with exit 0, after batch 12; dumps/rank5.txt has "
         "what "
         "it did last"},
        {"", 7, 1, false, "rank 5 ended by itself, with exit 7, after batch 12"},
        {"", -SIGKILL, 0, true, "rank 5 was ended by signal 9 (Killed) after batch 12"},
        {"", -SIGSEGV, 1, true,
         "rank 5 was ended by signal 11 (Segmentation fault) after batch 12; "
         "dumps/rank5.txt has what it did last"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        etd_sup_forget_start(&s);
        s.why[0] = '\0';
        s.alive = RANKS;
        s.stops = row[i].stops;
        s.killed = row[i].killed;
        ranks[1].ended = false;
        etd_board_step(s.board, 0, 99);
        etd_board_step(s.board, 1, 12);
        if (row[i].last[0])
            say(1, ETD_PACKET_END, row[i].last, strlen(row[i].last));
        end_rank(1, row[i].exit);
        is_str(s.why, row[i].why, "rank 5 ends %s",
               row[i].why[0] ? "otherwise than it should" : "as it has said");
        ok(s.alive == 1 && s.failed == (row[i].why[0] ? 1 : -1) && ranks[1].pid == 0,
           "and is there no more");
        end_rank(0, 8);
        ok(s.alive == 0 && s.failed == (row[i].why[0] ? 1 : 0) &&
               (!row[i].why[0] || strcmp(s.why, row[i].why) == 0),
           "one that ends behind it is not to blame");
    }
    s.stops = 0;
    s.killed = false;
    etd_sup_forget_start(&s);
}

/* ---- ranks that wait for each other ---- */

/* SECONDS pass, in which those ranks move that are in MOVES, a bit each. */
static void
pass(double seconds, int moves)
{
    for (double end = time_is + seconds; time_is < end; time_is += 0.9) {
        for (int i = 0; i < RANKS; i++)
            if (moves & 1 << i)
                etd_board_move(s.board, i, ETD_PHASE_BACKWARD);
        etd_sup_watch(&s);
    }
}

/* The first rank waits in a collective that the second never comes to. */
static void
test_hang(void)
{
    static const struct {
        bool busy, stopped;
        const char *why;
    } row[] = {
        {false, false, "it is after batch 7, in backward"},
        {true, false, "it is after batch 7, in all_reduce 4 of 99 f32"},
        {true, true,
         "it is after batch 7, in all_reduce 4 of 99 f32; its process is stopped"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char want[256];
        const struct et_comm_look first = {
            .busy = true, .seq = 6, .kind = ET_COMM_BARRIER};
        const struct et_comm_look second = {.busy = row[i].busy,
                                            .seq = 4,
                                            .kind = ET_COMM_ALL_REDUCE,
                                            .n = 99,
                                            .dtype = ET_F32};
        etd_sup_forget_start(&s);
        s.alive = RANKS;
        etd_board_step(s.board, 0, 8);
        etd_board_step(s.board, 1, 7);
        ranks[0].pid = start_sleeper(false);
        ranks[1].pid = start_sleeper(row[i].stopped);
        const pid_t second_pid = ranks[1].pid;
        pass(20, 3);
        s.failed = 0;
        pass(20, 0);
        ok(!s.hung, "ranks that are left by one that failed do not hang");
        s.failed = -1;
        ranks[1].pid = 0;
        pass(20, 1);
        ok(!s.hung, "nor does one whose process has ended, while others move");
        ranks[1].pid = second_pid;
        pass(3, 3);
        etd_board_collective(s.board, 0, &first);
        etd_board_collective(s.board, 1, &second);
        pass(4, 2);
        pass(5, 0);
        ok(!s.hung, "a rank has its time from when it moved last");
        pass(2, 0);
        ok(s.hung && s.failed == 1,
           "of two that wait the one that is behind has failed");
        snprintf(want, sizeof want,
                 "rank 5 did not arrive at barrier 6, in which rank 4 has waited for "
                 "11 s: %s; dumps/rank5.txt has what it did last",
                 row[i].why);
        is_str(s.why, want, "it is named, with where it is");
        ok(s.kill_at > etd_sup_now(&s), "they have time to say where they stand");
        for (int k = 0; k < RANKS; k++) {
            ok(is_aborted(ranks[k].pid), "rank %d is told to", BASE + k);
            ranks[k].pid = 0;
        }
        (void)take(screen);
    }
}

/* ---- all ---- */

static void
make_rank(int i)
{
    int from[2], out[2], err[2], link[2];
    if (pipe2(from, O_CLOEXEC | O_NONBLOCK) != 0 ||
        pipe2(out, O_CLOEXEC | O_NONBLOCK) != 0 ||
        pipe2(err, O_CLOEXEC | O_NONBLOCK) != 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, link) != 0)
        bail("no pipes");
    ranks[i] = (struct etd_sup_rank){.from = from[0],
                                     .link = link[0],
                                     .print = {out[0], err[0]},
                                     .pidfd = -1,
                                     .file = {-1, -1},
                                     .log = -1,
                                     .stack = -1};
    says[i] = from[1];
    prints[i][0] = out[1];
    prints[i][1] = err[1];
    link_of[i] = link[1];
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct eti_seams seams = eti_system;
    int commands[2], front[2];
    void *block;
    if (chdir(scratch_folder()) != 0 ||
        setenv("XDG_STATE_HOME", scratch_folder(), 1) != 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, commands) != 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, front) != 0)
        bail("no folder, or no sockets");
    seams.monotonic = test_clock;
    eti_ctx_set_seams(cx, &seams);
    need(cx, etd_board_new(cx, RANKS, &s.board));
    need(cx, et_alloc(cx, ETD_RING_NAMES * sizeof *s.entry, &block));
    s.entry = block;
    launch.config.directory = "run";
    launch.out = "{rank}-of-{world_size}.out";
    launch.err = "err.{local_rank}";
    s.cx = cx;
    s.alive = RANKS;
    s.hub_fd = commands[0];
    hub = commands[1];
    s.front = front[0];
    screen = front[1];
    for (int i = 0; i < RANKS; i++)
        make_rank(i);
    etd_sup_forget_start(&s);
    test_refused();
    test_opening();
    test_lines();
    test_prints();
    test_errors();
    test_removed_log();
    test_end();
    test_said();
    test_health();
    test_slow_front();
    test_expiry();
    test_note();
    test_dumps();
    test_forgotten();
    test_is_starting();
    test_start();
    test_hang();
    test_failures();
    for (int i = 0; i < RANKS; i++) {
        etd_sup_close_rank(&s, i);
        close(says[i]);
        close(prints[i][0]);
        close(prints[i][1]);
        close(link_of[i]);
    }
    et_run_close(&s.run);
    etd_board_free(&s.board);
    etd_bytes_free(&s.to_front);
    et_free(cx, s.entry);
    for (int i = 0; i < 2; i++) {
        close(commands[i]);
        close(front[i]);
    }
    et_ctx_free(&cx);
    return done();
}
