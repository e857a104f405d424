/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor_ranks.c: starting ranks, what they say and print, and their end. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dist/run/rank.h"
#include "dist/run/ring.h"
#include "dist/run/stack.h"
#include "dist/run/supervisor.h"
#include "etude/diagnostic.h"

enum { READ_BYTES = 64 << 10, LOG_MODE = 0600 };
/* What a collective may take, by itself, and how much more than until it is a hang. */
enum { RANK_SECONDS = 300, RANK_MORE = 60 };

/* The hub waits so long, so that it does not hold the first step back. */
static const double HUB_SECONDS = 0.2;

/* ---- in the child ---- */

void
etd_ignore(int number)
{
    struct sigaction action = {.sa_handler = SIG_IGN};
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

static void
set_number(const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

void
etd_rank_environment(const struct etd_launch *l, int number)
{
    set_number("RANK", l->base + number);
    set_number("WORLD_SIZE", l->world);
    set_number("LOCAL_RANK", number);
    set_number("LOCAL_WORLD_SIZE", l->nproc);
    set_number("NODE_RANK", l->node);
    setenv("MASTER_ADDR", l->host, 1);
    if (l->port > 0)
        set_number("MASTER_PORT", l->port);
    unsetenv("TORCHELASTIC_USE_AGENT_STORE"); /* of one that this was started in */
    if (l->listener >= 0 && number == 0)
        set_number("ETUDE_RANK_LISTENER", l->listener);
    else
        unsetenv("ETUDE_RANK_LISTENER"); /* of a run that this one was started in */
}

static void
set_environment(const struct etd_launch *l, int number)
{
    etd_rank_environment(l, number);
    /* The supervisor is to find a hang before a rank does: it knows where every rank
     * is. */
    if (!getenv("ETUDE_RANK_TIMEOUT"))
        set_number("ETUDE_RANK_TIMEOUT",
                   (int)fmin(fmax(l->timeout, RANK_SECONDS), INT_MAX / 2000) +
                       RANK_MORE);
}

/* Everything of the supervisor's is closed: a rank that lives on holds nothing open. */
static void
close_supervisor(struct etd_supervisor *s)
{
    close(s->signals);
    if (s->front >= 0)
        close(s->front);
    if (s->hub_fd >= 0)
        close(s->hub_fd);
    for (int i = 0; i < s->l->nproc; i++)
        etd_sup_close_rank(s, i);
    etd_bytes_free(&s->to_front);
    et_free(s->cx, s->entry);
}

static et_status
become(struct etd_supervisor *s, int number, pid_t parent, const int *mine, int stack,
       struct etd_rank **rank)
{
    const struct etd_launch *l = s->l;
    struct et_ctx *cx = s->cx;
    struct etd_board *board = s->board;
    sigset_t none;
    sigemptyset(&none);
    etd_ignore(SIGPIPE);
    etd_ignore(SIGHUP);
    etd_ignore(SIGUSR1); /* until it trains there is nothing to save */
    /* The path that a signal takes: the batch is finished and saved (RELIABILITY 4). */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (getppid() != parent)
        raise(SIGTERM);
    dup2(mine[2], STDOUT_FILENO);
    dup2(mine[3], STDERR_FILENO);
    close(mine[2]);
    close(mine[3]);
    close_supervisor(s);
    if (l->listener >= 0 && number > 0)
        close(l->listener);
    set_environment(l, number);
    etd_stack_begin(stack);
    return etd_rank_new(cx, l, board, number, mine[0], mine[1], s->directory, rank);
}

/* ---- starting ---- */

static int
pidfd_of(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* {from, link, out, err} of the supervisor in OURS, of the rank in MINE. */
static bool
make_pipes(int *ours, int *mine)
{
    int link[2];
    for (int i = 0; i < 4; i++)
        ours[i] = mine[i] = -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, link) != 0)
        return false;
    ours[1] = link[0];
    mine[1] = link[1];
    for (int i = 0; i < 4; i++) {
        int ends[2];
        if (i == 1)
            continue;
        if (pipe2(ends, O_CLOEXEC) != 0)
            return false;
        ours[i] = ends[0];
        mine[i] = ends[1];
        fcntl(ours[i], F_SETFL, O_NONBLOCK);
    }
    return true;
}

static void
close_all(const int *fds)
{
    for (int i = 0; i < 4; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

static et_status
start_one(struct etd_supervisor *s, int number, struct etd_rank **rank, bool *child)
{
    struct etd_sup_rank *r = &s->rank[number];
    int ours[4], mine[4];
    pid_t parent = getpid();
    int stack = etd_stack_file();
    *child = false;
    if (!make_pipes(ours, mine)) {
        int error = errno;
        close_all(ours);
        close_all(mine);
        close(stack);
        return ET_FAIL(s->cx, ET_EIO, "no pipes for rank %d: %s", s->l->base + number,
                       strerror(error));
    }
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        *child = true;
        close_all(ours);
        return become(s, number, parent, mine, stack, rank);
    }
    close_all(mine);
    if (pid < 0) {
        int error = errno;
        close_all(ours);
        close(stack);
        return ET_FAIL(s->cx, ET_EIO, "cannot start rank %d: %s", s->l->base + number,
                       strerror(error));
    }
    *r = (struct etd_sup_rank){
        .pid = pid,
        .pidfd = pidfd_of(pid),
        .from = ours[0],
        .link = ours[1],
        .print = {ours[2], ours[3]},
        .file = {-1, -1},
        .log = -1,
        .stack = stack,
    };
    s->alive++;
    return ET_OK;
}

/* Ranks that are gone may have connected without getting an answer: rank 0 would take
 * what they sent for messages of the new ranks. */
static void
forget_callers(int listener)
{
    int fd;
    while (listener >= 0 && (fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
        close(fd);
}

void
etd_sup_forget_start(struct etd_supervisor *s)
{
    etd_board_clear(s->board);
    s->failed = -1;
    s->hung = false;
    s->refusal.status = ET_OK;
    s->kill_at = 0;
    s->steps = (struct etd_steps){0};
    s->watched = s->began_looked = etd_sup_now(s);
    s->began_stood = 0;
}

bool
etd_sup_start(struct etd_supervisor *s, struct etd_rank **rank, et_status *status)
{
    bool child = false;
    etd_sup_forget_start(s);
    forget_callers(s->l->listener);
    for (int i = 0; i < s->l->nproc; i++) {
        *status = start_one(s, i, rank, &child);
        if (child)
            return true;
        if (*status != ET_OK) {
            snprintf(s->why, sizeof s->why, "%.*s", ETD_WHY - 1,
                     et_error_get(s->cx)->message);
            et_error_clear(s->cx);
            s->failed = i;
            s->no_rank = true;
            etd_sup_signal_all(s, SIGKILL);
            return false;
        }
    }
    return false;
}

void
etd_sup_close_rank(struct etd_supervisor *s, int i)
{
    struct etd_sup_rank *r = &s->rank[i];
    int *const fds[] = {&r->pidfd,   &r->from,    &r->link, &r->print[0], &r->print[1],
                        &r->file[0], &r->file[1], &r->log,  &r->stack};
    for (size_t k = 0; k < sizeof fds / sizeof *fds; k++) {
        if (*fds[k] >= 0)
            close(*fds[k]);
        *fds[k] = -1;
    }
    etd_bytes_free(&r->in);
    etd_bytes_free(&r->early);
    r->pid = 0;
}

void
etd_sup_signal_all(struct etd_supervisor *s, int number)
{
    for (int i = 0; i < s->l->nproc; i++)
        if (s->rank[i].pid > 0)
            kill(s->rank[i].pid, number);
}

/* ---- opening the run ---- */

static void
send_answer(struct etd_supervisor *s, struct etd_sup_rank *r, const char *text)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {.iov_base = (void *)(uintptr_t)text, .iov_len = strlen(text)};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    int lock = s->run ? et_run_lock(s->run) : -1;
    if (lock >= 0) { /* as long as a rank lives nobody else trains there */
        m.msg_control = control.room;
        m.msg_controllen = sizeof control.room;
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof lock);
        memcpy(CMSG_DATA(c), &lock, sizeof lock);
    }
    (void)sendmsg(r->link, &m, MSG_NOSIGNAL);
    r->waits = false;
}

/* Whatever happens a rank that waits is answered. */
static void
answer(struct etd_supervisor *s, json_t *json)
{
    static const char none[] = "{\"status\":%d,\"message\":\"the run cannot be "
                               "described: no memory, or a name that is not UTF-8\","
                               "\"hint\":\"\",\"code\":0}";
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL, instead[sizeof none + 8];
    snprintf(instead, sizeof instead, none, (int)ET_EINVAL);
    for (int i = 0; i < s->l->nproc; i++)
        if (s->rank[i].waits)
            send_answer(s, &s->rank[i], text ? text : instead);
    free(text);
    json_decref(json);
}

static void
answer_opened(struct etd_supervisor *s)
{
    answer(s, json_pack("{s:s, s:s, s:s, s:I}", "directory", et_run_directory(s->run),
                        "name", et_run_name(s->run), "id", et_run_id(s->run),
                        "incarnation", (json_int_t)et_run_incarnation(s->run)));
}

/* "{rank}.txt" with its fields filled in, beneath the run directory unless absolute. */
static int
open_print(struct etd_supervisor *s, const char *format, int number)
{
    char path[4096];
    etd_print_path(s, format, number, path, sizeof path);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, LOG_MODE);
    if (fd < 0)
        etd_sup_say(s, ET_LOG_WARN, "cannot write %s: %s", path, strerror(errno));
    return fd;
}

static void
write_bytes(int fd, const char *bytes, size_t n)
{
    while (fd >= 0 && n > 0) {
        ssize_t done = write(fd, bytes, n);
        if (done <= 0)
            return; /* a full disk ends no run */
        bytes += done;
        n -= (size_t)done;
    }
}

static void
open_files(struct etd_supervisor *s, int i)
{
    const struct etd_launch *l = s->l;
    struct etd_sup_rank *r = &s->rank[i];
    char name[64];
    snprintf(name, sizeof name, "logs/rank%d.txt", l->base + i);
    r->log = open_print(s, name, i);
    if (l->out)
        r->file[0] = open_print(s, l->out, i);
    if (l->err)
        r->file[1] = open_print(s, l->err, i);
    write_bytes(r->log, r->early.at, r->early.n);
    etd_bytes_free(&r->early);
}

void
etd_sup_open_log(struct etd_supervisor *s, int i)
{
    char name[64];
    snprintf(name, sizeof name, "logs/rank%d.txt", s->l->base + i);
    /* The run's own lines are in that of rank 0: with this one it has its file
     * again. */
    etd_sup_say(s, ET_LOG_WARN, "%s/%s was removed: what is printed goes to another",
                s->directory, name);
    close(s->rank[i].log);
    s->rank[i].log = open_print(s, name, i);
}

static void
answer_refused(struct etd_supervisor *s)
{
    const struct et_error *e = &s->refusal;
    answer(s, json_pack("{s:i, s:s, s:s, s:i}", "status", (int)e->status, "message",
                        e->message, "hint", e->hint, "code", e->code));
}

/* Why the run cannot be is kept, for ranks that ask later. */
static void
refuse(struct etd_supervisor *s)
{
    const struct et_error *e = et_error_get(s->cx);
    s->refusal = *e;
    et_visible(s->refusal.message, sizeof s->refusal.message, e->message,
               strlen(e->message));
    et_visible(s->refusal.hint, sizeof s->refusal.hint, e->hint, strlen(e->hint));
    et_error_clear(s->cx);
    answer_refused(s);
}

static void
open_run(struct etd_supervisor *s, const char *text, size_t n)
{
    json_t *ask = json_loadb(text, n, 0, NULL);
    const char *resumed = json_string_value(json_object_get(ask, "resumed"));
    struct et_run_config config = s->l->config;
    config.directory = resumed ? resumed : config.directory;
    config.resume = resumed != NULL;
    config.resolved = json_string_value(json_object_get(ask, "resolved"));
    config.name = json_string_value(json_object_get(ask, "name"));
    config.threads = (int)json_integer_value(json_object_get(ask, "threads"));
    et_status status = et_run_open(s->cx, &config, &s->run);
    json_decref(ask);
    if (status != ET_OK) {
        refuse(s);
        return;
    }
    snprintf(s->directory, sizeof s->directory, "%s", et_run_directory(s->run));
    snprintf(s->name, sizeof s->name, "%s", et_run_name(s->run));
    et_run_flush(s->run);
    for (int i = 0; i < s->l->nproc; i++)
        open_files(s, i);
    s->hub_at = etd_sup_now(s) + HUB_SECONDS;
    etd_sup_tell_opened(s);
    answer_opened(s);
}

/* ---- what they say ---- */

static void
keep_record(struct etd_supervisor *s, const struct etd_packet *p)
{
    struct et_record r;
    if (!s->run || !etd_packet_record(p, s->entry, ETD_RING_NAMES, &r))
        return;
    struct et_sink *sink = et_run_sink(s->run);
    sink->write(sink, &r);
    s->dirty = true;
    if (r.kind == ET_RECORD_HEALTH)
        etd_sup_compare(s, &r);
}

static void
take_end(struct etd_sup_rank *r, const struct etd_packet *p)
{
    json_t *json = json_loadb(p->body, p->n, 0, NULL);
    const char *state = json_string_value(json_object_get(json, "state"));
    snprintf(r->end.state, sizeof r->end.state, "%s", state ? state : "");
    r->end.exit = (int)json_integer_value(json_object_get(json, "exit"));
    r->end.began = json_is_true(json_object_get(json, "began"));
    r->ended = json != NULL;
    json_decref(json);
}

/* A line of the log of rank I. All ranks say what rank 0 does: of the others those
 * lines are told that begin with the rank's number; all stand in its log. */
static void
take_line(struct etd_supervisor *s, int i, const struct etd_packet *p)
{
    struct etd_sup_rank *r = &s->rank[i];
    char own[32], line[ETD_RING_TEXT + 32];
    const char *text = p->body + 1;
    const size_t n = p->n - 1;
    const int n_own = snprintf(own, sizeof own, "rank %d: ", s->l->base + i);
    if (i == 0 || (n > (size_t)n_own && memcmp(text, own, (size_t)n_own) == 0))
        etd_sup_tell_text(s, p->kind, p->body[0], text, n);
    if (i == 0)
        return;
    const int n_line =
        snprintf(line, sizeof line, "%s %.*s\n",
                 et_log_level_name((enum et_log_level)p->body[0]), (int)n, text);
    write_bytes(r->log, line,
                n_line < (int)sizeof line ? (size_t)n_line : sizeof line - 1);
}

/* What rank I, which is not rank 0, has for the screen: for its log; the first error
 * may be the reason of the run's end. */
static void
take_printed(struct etd_supervisor *s, int i, const struct etd_packet *p)
{
    static const char begin[] = "etude: error ";
    struct etd_sup_rank *r = &s->rank[i];
    const size_t n_begin = sizeof begin - 1;
    write_bytes(r->log, p->body, p->n);
    if (p->kind != ETD_PACKET_ERR || r->end.why[0] || p->n <= n_begin ||
        memcmp(p->body, begin, n_begin) != 0)
        return;
    const char *text = p->body + n_begin, *end = memchr(text, '\n', p->n - n_begin);
    const size_t n = end ? (size_t)(end - text) : p->n - n_begin;
    snprintf(r->end.why, sizeof r->end.why, "rank %d: %.*s", s->l->base + i,
             (int)(n < ETD_WHY ? n : ETD_WHY), text);
}

static void
take_packet(struct etd_supervisor *s, int i, const struct etd_packet *p)
{
    struct etd_sup_rank *r = &s->rank[i];
    char text[ET_REQUEST_TEXT];
    switch (p->kind) {
    case ETD_PACKET_RECORD:
        keep_record(s, p);
        break;
    case ETD_PACKET_LINE:
        if (p->n > 0)
            take_line(s, i, p);
        break;
    case ETD_PACKET_OUT:
    case ETD_PACKET_ERR:
        if (i == 0)
            etd_sup_tell(s, p->kind, p->body, p->n);
        else
            take_printed(s, i, p);
        break;
    case ETD_PACKET_OPEN:
        r->waits = true;
        if (s->run)
            answer_opened(s);
        else if (s->refusal.status != ET_OK)
            answer_refused(s);
        else if (i == 0)
            open_run(s, p->body, p->n);
        break;
    case ETD_PACKET_END:
        take_end(r, p);
        break;
    case ETD_PACKET_ANSWER:
        snprintf(text, sizeof text, "%.*s", (int)p->n, p->body);
        etd_sup_answered(s, text);
        break;
    default:
        break;
    }
}

/* Reads what is there; false: that was the end. */
static bool
fill(int fd, struct etd_bytes *b)
{
    char buf[READ_BYTES];
    for (int i = 0; i < 16; i++) { /* the others want to be heard, too */
        ssize_t n = read(fd, buf, sizeof buf);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK;
        if (n == 0)
            return false;
        etd_bytes_add(b, buf, (size_t)n);
        b->failed = false;
    }
    return true;
}

void
etd_sup_read_packets(struct etd_supervisor *s, int i)
{
    struct etd_sup_rank *r = &s->rank[i];
    struct etd_packet p;
    size_t at = 0, used;
    int got = 1;
    if (r->from < 0)
        return;
    bool more = fill(r->from, &r->in);
    while ((got = etd_packet_next(r->in.at + at, r->in.n - at, &p, &used)) == 1) {
        take_packet(s, i, &p);
        at += used;
    }
    etd_bytes_drop(&r->in, at);
    if (more && got == 0)
        return;
    close(r->from); /* at its end, or mad */
    r->from = -1;
}

void
etd_sup_read_prints(struct etd_supervisor *s, int i, int stream)
{
    struct etd_sup_rank *r = &s->rank[i];
    struct etd_bytes b = {0};
    if (r->print[stream] < 0)
        return;
    bool more = fill(r->print[stream], &b);
    if (b.n && i == 0)
        etd_sup_tell_text(s, ETD_PACKET_PRINT, stream + 1, b.at, b.n);
    if (r->log < 0 && r->early.n + b.n <= ETD_EARLY)
        etd_bytes_add(&r->early, b.at, b.n);
    write_bytes(r->log, b.at, b.n);
    write_bytes(r->file[stream], b.at, b.n);
    etd_bytes_free(&b);
    if (more)
        return;
    close(r->print[stream]);
    r->print[stream] = -1;
}

/* ---- their end ---- */

static void
note_failure(struct etd_supervisor *s, int i)
{
    const struct etd_sup_rank *r = &s->rank[i];
    int number = s->l->base + i;
    long long step = (long long)s->board->rank[i].step;
    if (s->failed >= 0)
        return;
    s->failed = i;
    if (WIFSIGNALED(r->status))
        snprintf(s->why, sizeof s->why,
                 "rank %d was ended by signal %d (%s) after batch %lld", number,
                 WTERMSIG(r->status), strsignal(WTERMSIG(r->status)), step);
    else
        snprintf(s->why, sizeof s->why,
                 "rank %d ended by itself, with exit %d, after batch %lld", number,
                 WEXITSTATUS(r->status), step);
    if ((s->stops == 0 && !s->killed) || etd_is_crash(r->status))
        etd_sup_dump(s);
}

void
etd_sup_reap(struct etd_supervisor *s, int i)
{
    struct etd_sup_rank *r = &s->rank[i];
    if (r->pid <= 0 || waitpid(r->pid, &r->status, WNOHANG) != r->pid)
        return;
    /* All that it said before: the pipes hold it still. */
    etd_sup_read_packets(s, i);
    for (int stream = 0; stream < 2; stream++)
        etd_sup_read_prints(s, i, stream);
    r->pid = 0;
    s->alive--;
    close(r->pidfd);
    r->pidfd = -1;
    bool well =
        WIFEXITED(r->status) && r->ended && WEXITSTATUS(r->status) == r->end.exit;
    if (!well)
        note_failure(s, i);
    etd_sup_dump_stack(s, i);
}
