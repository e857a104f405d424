/* SPDX-License-Identifier: Apache-2.0 */
/* What a rank says to its supervisor and makes of its answers: each field of either, of
 * the first rank and of another. The test is the supervisor. */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/journal/events.h"
#include "dist/run/rank_impl.h"
#include "etude/run.h"
#include "t/data/fixture.h"
#include "t/tap.h"

enum { ROOM = 1 << 16, BASE = 4 };

static int packets, answers; /* our ends of its pipe and its socket */
static struct etd_launch launch = {.nproc = 2, .base = BASE, .world = 8};

/* Rank NUMBER of those here, whose run there is in RESUMES. */
static struct etd_rank *
begin(struct et_ctx *cx, struct etd_board *board, int number, const char *resumes)
{
    int to[2], link[2];
    struct etd_rank *r;
    if (pipe2(to, O_CLOEXEC) != 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, link) != 0)
        bail("no pipe");
    packets = to[0];
    answers = link[0];
    need(cx, etd_rank_new(cx, &launch, board, number, to[1], link[1], resumes, &r));
    return r;
}

/* All that it has said since, once it is gone, as "KIND:BODY\n". */
static const char *
end(struct etd_rank **r)
{
    static char text[ROOM];
    static char bytes[ROOM];
    struct etd_packet p;
    size_t n = 0, used, size = 0;
    etd_rank_free(r);
    for (ssize_t got; (got = read(packets, bytes + n, sizeof bytes - n)) > 0;)
        n += (size_t)got;
    text[0] = '\0';
    for (size_t at = 0; etd_packet_next(bytes + at, n - at, &p, &used) == 1; at += used)
        if (p.kind != ETD_PACKET_RECORD)
            size += (size_t)snprintf(text + size, sizeof text - size, "%d:%.*s\n",
                                     (int)p.kind, (int)p.n, p.body);
    close(packets);
    close(answers);
    return text;
}

static void
will_answer(const char *text)
{
    if (send(answers, text, strlen(text), 0) < 0)
        bail("a rank cannot be answered");
}

/* Answers TEXT, and hands on the descriptor FD. */
static void
will_answer_with(const char *text, int fd)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {.iov_base = (void *)(uintptr_t)text, .iov_len = strlen(text)};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control.room,
                       .msg_controllen = sizeof control.room};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    if (sendmsg(answers, &m, 0) < 0)
        bail("a rank cannot be answered");
    close(fd);
}

/* Takes the lock of the file "lock"; -1: somebody has it. */
static int
take_lock(void)
{
    int fd = open("lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    close(fd);
    return -1;
}

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

/* ---- the run ---- */

static void
test_open(struct et_ctx *cx, struct etd_board *board, int number)
{
    char want[256], path[64];
    struct et_run *run;
    const struct etd_rank_open open = {
        .resumed = number ? "there" : NULL,
        .resolved = "a: 1",
        .name = "calm-bird",
        .threads = 3,
    };
    struct etd_rank *r = begin(cx, board, number, "");
    ok(!etd_rank_resumes(r), "a rank of a first start has no run to go on with");
    is_int(etd_rank_number(r), BASE + number, "it has its place");
    is_int(etd_rank_world(r), 8, "among all there are");
    will_answer_with("{\"directory\":\"place\",\"name\":\"calm-bird\",\"id\":\"0a0b\","
                     "\"incarnation\":5}",
                     take_lock());
    need(cx, etd_rank_open(cx, r, &open, &run));
    is_int(take_lock(), -1, "a rank holds the run's lock");
    ok(strstr(et_run_directory(run), "place"), "it is told where the run is");
    is_str(et_run_name(run), "calm-bird", "what it is called");
    is_str(et_run_id(run), "0a0b", "which run it is");
    is_int(et_run_incarnation(run), 5, "and which start");
    et_run_log(run, ET_LOG_WARN, "a line of a rank");
    et_run_close(&run);
    snprintf(path, sizeof path, "place/logs/rank%d.txt", BASE + number);
    ok(strstr(content(path), "a line of a rank"), "%s has what it logs", path);
    snprintf(want, sizeof want,
             "%d:{\"resumed\":%s,\"resolved\":\"a: 1\",\"name\":\"calm-bird\","
             "\"threads\":3}\n",
             ETD_PACKET_OPEN, number ? "\"there\"" : "null");
    is_str(end(&r), want, "it has said what is to be opened");
    int lock = take_lock();
    ok(lock >= 0, "when it has ended the lock is free");
    close(lock);
}

static void
test_refusals(struct et_ctx *cx, struct etd_board *board)
{
    static const struct {
        const char *answer;
        et_status status;
        const char *message, *hint;
        int code;
    } row[] = {
        {"{\"status\":2,\"message\":\"no\",\"hint\":\"yes\",\"code\":4021}",
         (et_status)2, "no", "yes", 4021},
        {"{\"status\":3,\"message\":\"100 % no\",\"hint\":\"\",\"code\":0}",
         (et_status)3, "100 % no", "", 0},
        {"{\"directory\":\"place\",\"name\":\"x\",\"id\":\"0a\"}", ET_EINTERNAL,
         "the supervisor's answer is none", "", 0},
        {"what", ET_EINTERNAL, "the supervisor's answer is none", "", 0},
    };
    const struct etd_rank_open open = {.threads = 1};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct et_run *run;
        struct etd_rank *r = begin(cx, board, 0, "");
        will_answer(row[i].answer);
        et_status status = etd_rank_open(cx, r, &open, &run);
        const struct et_error *e = et_error_get(cx);
        is_int((int64_t)status, (int64_t)row[i].status, "%s", row[i].answer);
        ok(!run && strstr(e->message, row[i].message), "says '%s'", e->message);
        is_str(e->hint, row[i].hint, "with its hint");
        is_int(e->code, row[i].code, "and its code");
        et_error_clear(cx);
        (void)end(&r);
    }
}

static void
test_no_supervisor(struct et_ctx *cx, struct etd_board *board)
{
    struct et_run *run;
    const struct etd_rank_open open = {.threads = 1}, odd = {.name = "\xff"};
    struct etd_rank *r = begin(cx, board, 1, "before");
    is_str(etd_rank_resumes(r), "before", "a rank of a later start knows its run");
    is_int((int64_t)etd_rank_open(cx, r, &odd, &run), ET_EINVAL,
           "a name that is not UTF-8 is refused, without asking");
    et_error_clear(cx);
    shutdown(answers, SHUT_RDWR);
    is_int((int64_t)etd_rank_open(cx, r, &open, &run), ET_EIO,
           "a supervisor that is gone is an error");
    et_error_clear(cx);
    (void)end(&r);
}

/* ---- words ---- */

static void
test_words(struct et_ctx *cx, struct etd_board *board)
{
    char want[256];
    const struct etd_end last = {.state = "done", .exit = 7, .began = true};
    struct etd_rank *r = begin(cx, board, 1, "");
    etd_rank_line(r, ET_LOG_WARN, "a line");
    fprintf(etd_rank_out(r), "a result\n");
    fprintf(etd_rank_err(r), "an excuse\n");
    fprintf(etd_rank_out(r), "without an end");
    fprintf(etd_rank_err(r), "nor has this");
    etd_rank_end(r, &last);
    fprintf(etd_rank_err(r), "as it goes");
    is_int(board->rank[1].phase, ETD_PHASE_ENDED, "at its end a rank is at its end");
    ok(board->rank[0].phase != ETD_PHASE_ENDED, "and no other is");
    snprintf(want, sizeof want,
             "%d:\2a line\n%d:a result\n\n%d:an excuse\n\n%d:without an end\n"
             "%d:nor has "
             "this\n%d:{\"state\":\"done\",\"exit\":7,\"began\":true}\n%d:as it goes\n",
             ETD_PACKET_LINE, ETD_PACKET_OUT, ETD_PACKET_ERR, ETD_PACKET_OUT,
             ETD_PACKET_ERR, ETD_PACKET_END, ETD_PACKET_ERR);
    is_str(end(&r), want, "all that it says comes in its order, to the last");
    etd_board_clear(board);
}

/* ---- requests ---- */

/* Of the rank at NUMBER where the first has place FIRST. */
static void
test_requests(struct et_ctx *cx, struct etd_board *board, int first, int number)
{
    char want[128] = "";
    struct et_request q = {.op = ET_REQUEST_SET, .id = 12}, got;
    launch.base = first;
    struct etd_rank *r = begin(cx, board, number, "");
    struct et_control *c = etd_rank_control(r);
    snprintf(q.key, sizeof q.key, "optimizer.lr");
    snprintf(q.value, sizeof q.value, "0.5");
    snprintf(q.who, sizeof q.who, "uid:7");
    ok(!c->next(c, 3, &got), "nothing is asked of a rank");
    ok(etd_board_ask(board, &q) && c->next(c, 3, &got), "it is asked for something");
    ok(got.op == q.op && got.id == q.id && strcmp(got.key, q.key) == 0 &&
           strcmp(got.value, q.value) == 0 && strcmp(got.who, q.who) == 0,
       "and hears what, from whom");
    ok(!c->next(c, 3, &got), "once");
    c->done(c, &q, 40, true, "0.1 -> 0.5");
    q.id = 13;
    c->done(c, &q, 41, false, "refused: it is large");
    is_int(etd_rank_level(r), -1, "its lines are shown as the program was called");
    c->level(c, ET_LOG_DEBUG);
    is_int(etd_rank_level(r), ET_LOG_DEBUG, "or as is asked for");
    for (int i = 0; i < 2; i++) {
        etd_board_move(board, 0, ETD_PHASE_DATA);
        etd_board_move(board, 1, ETD_PHASE_DATA);
        c->wait(c);
        ok(board->rank[number].phase == ETD_PHASE_PAUSED &&
               board->rank[!number].phase == ETD_PHASE_DATA,
           "while it waits for a request it is paused, so that nobody takes it for "
           "hung");
    }
    if (first + number == 0)
        snprintf(want, sizeof want,
                 "%d:12 40 1 0.1 -> 0.5\n%d:13 41 0 refused: it is large\n",
                 ETD_PACKET_ANSWER, ETD_PACKET_ANSWER);
    is_str(end(&r), want, "rank %d %s", first + number,
           *want ? "says what became of it" : "leaves the answer to rank 0");
    etd_board_clear(board);
}

/* ---- requests of a run that goes on ---- */

/* Settings that people had changed, each another: all of them are made again, in their
 * order. What was refused, or is no setting, is not. */
static void
test_replay(struct et_ctx *cx)
{
    static const int lengths[] = {0, 1, 15, 16, 17, 32, 33, 100};
    static const unsigned char id[ETI_EVENTS_ID] = "replay";
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct eti_events_writer w;
        struct et_request *list;
        char text[128];
        int n, wrong = 0;
        remove("place/events.log");
        need(cx, eti_events_begin(cx, "place", id, &w));
        for (int k = 0; k < lengths[i]; k++) {
            struct et_record r = {
                .kind = ET_RECORD_COMMAND, .ba = 10 + k, .text = text};
            snprintf(text, sizeof text, "uid:%d set a.b%d %d -> 0 -> %d", k, k, 2 * k,
                     2 * k);
            eti_events_write(&w, &r);
            snprintf(text, sizeof text, "uid:1 set a.c%d 1 -> refused: no", k);
            eti_events_write(&w, &r);
            snprintf(text, sizeof text, "uid:1 pause -> paused");
            eti_events_write(&w, &r);
        }
        eti_events_end(&w);
        need(cx, etd_rank_replay(cx, "place", &list, &n));
        for (int k = 0; k < n && k < lengths[i]; k++) {
            snprintf(text, sizeof text, "a.b%d", k);
            wrong += list[k].op != ET_REQUEST_SET || strcmp(list[k].key, text) != 0 ||
                     list[k].step != 10 + k;
        }
        ok(n == lengths[i] && wrong == 0, "of %d changed settings %d are made again",
           lengths[i], n);
        et_free(cx, list);
    }
    struct et_request *list;
    int n;
    need(cx, etd_rank_replay(cx, "nothing", &list, &n));
    ok(n == 0 && et_error_get(cx)->status == ET_OK, "of a log that is not there none");
    et_free(cx, list);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct etd_board *board;
    if (chdir(scratch_folder()) != 0 || mkdir("place", 0700) != 0 ||
        mkdir("place/logs", 0700) != 0)
        bail("no folder");
    need(cx, etd_board_new(cx, 2, &board));
    etd_board_clear(board);
    for (int number = 0; number < 2; number++)
        test_open(cx, board, number);
    test_refusals(cx, board);
    test_no_supervisor(cx, board);
    test_words(cx, board);
    for (int number = 0; number < 2; number++)
        test_requests(cx, board, 0, number);
    test_requests(cx, board, BASE, 0);
    test_replay(cx);
    etd_board_free(&board);
    et_ctx_free(&cx);
    return done();
}
