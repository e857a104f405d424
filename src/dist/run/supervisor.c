/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor.c: a run's life: starting its ranks, passing on what is asked of it,
 * starting it again after a crash, and its end. See launch.h and supervisor.h.
 *
 * It has a session of its own, so that no terminal takes it along. What its ranks say
 * goes to events.log, whose only writer it is, at least 20 times a second. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "dist/run/hub_child.h"
#include "dist/run/ring.h"
#include "dist/run/supervisor.h"

enum { BUG = 70, PREEMPTED = 75 }; /* exit codes (UX.md section 2) */
static const double FLUSH_SECONDS = 0.05, IDLE_SECONDS = 0.5, LEAVE_SECONDS = 5;

double
etd_sup_now(struct etd_supervisor *s)
{
    double t = eti_monotonic(s->cx), passed = t - s->clock_at;
    if (s->clock_at > 0 && passed > ETD_LOOK_LASTS)
        s->away += passed - ETD_LOOK_LASTS;
    s->clock_at = t;
    return t - s->away;
}

/* ---- signals ---- */

static void
stop(struct etd_supervisor *s, int number)
{
    if (s->stops++ == 0)
        s->stop_signal = number;
    etd_sup_signal_all(s, number); /* ranks agree on the batch */
    const struct etd_patience patience =
        etd_stop_patience(s->stops, s->l->grace, etd_sup_is_starting(s));
    double t = etd_sup_now(s);
    s->stops_start = patience.first != patience.later;
    s->later_kill_at = patience.later > 0 ? t + patience.later : s->kill_at;
    s->kill_at = patience.first > 0 ? t + patience.first : s->kill_at;
}

static void
take_signals(struct etd_supervisor *s)
{
    struct signalfd_siginfo info;
    while (read(s->signals, &info, sizeof info) == sizeof info) {
        int number = (int)info.ssi_signo;
        if (number == SIGINT || number == SIGTERM || number == SIGUSR2)
            stop(s, number);
        else if (number == SIGUSR1 && s->rank[0].pid > 0)
            /* The signal goes to one rank, which tells the others. If each got it by
             * itself, a rank could hear of it after another had begun to save, and ask
             * for a second save. */
            kill(s->rank[0].pid, number);
    }
}

/* ---- the end, or another start ---- */

/* A crash at STEP: may the group be started again? SECONDS: after how long. */
static bool
may_restart(struct etd_supervisor *s, int64_t step, double *seconds)
{
    if (!s->l->restart || s->stops > 0 || s->killed || !s->directory[0])
        return false;
    enum etd_again again = etd_crashes_add(&s->crashes, step, seconds);
    size_t n = strlen(s->why);
    if (again == ETD_LOOP)
        snprintf(s->why + n, sizeof s->why - n, ": the third time at this batch");
    return again == ETD_AGAIN;
}

/* All ranks have ended by themselves. */
static struct etd_end
settle_well(const struct etd_supervisor *s)
{
    int i = etd_rank_that_counts(s->rank, s->l->nproc);
    struct etd_end end = s->rank[i].end;
    end.rank = s->l->base + i;
    end.said = i == 0;
    return end;
}

/* How the run came out, now that no rank is there. */
static struct etd_end
settle(const struct etd_supervisor *s)
{
    if (s->failed < 0)
        return settle_well(s);
    const struct etd_failure failure = {
        .status = s->rank[s->failed].status,
        .stop_signal = s->stop_signal,
        .killed = s->killed,
        .no_rank = s->no_rank,
        .hung = s->hung,
        .is_open = s->run != NULL,
        .has_directory = s->directory[0] != '\0',
        .again = s->restarts > 0 && s->board->rank[0].phase == ETD_PHASE_STARTING,
        .why = s->why,
    };
    struct etd_end end = etd_failure_end(&failure);
    end.rank = s->l->base + s->failed;
    const struct etd_sup_rank *first = &s->rank[0]; /* its last word is a move, too */
    end.began = first->ended ? first->end.began : first->moves > 0;
    if (s->directory[0])
        snprintf(end.hint, sizeof end.hint, "etude train --resume %.*s",
                 (int)sizeof end.hint - 32, s->directory);
    return end;
}

static void
reopen(struct etd_supervisor *s)
{
    const struct et_run_config config = {
        .directory = s->directory,
        .resume = true,
        .command = s->l->config.command,
        .n_command = s->l->config.n_command,
        .record_interval = s->l->config.record_interval,
    };
    if (et_run_open(s->cx, &config, &s->run) != ET_OK)
        et_error_clear(s->cx);
}

/* Writes the end down and tells the front. Returns the exit code. */
static int
conclude(struct etd_supervisor *s, const struct etd_end *end)
{
    if (!s->run && s->directory[0]) /* it was closed to be started again */
        reopen(s);
    if (s->run) {
        if (end->why[0]) {
            et_run_note(s->run, ET_LOG_ERROR, end->why);
            et_run_blame(s->run, end->why);
        }
        if (et_run_finish(s->run, end->state, end->exit, NULL) != ET_OK) {
            etd_sup_say(s, ET_LOG_WARN, "the end could not be written down: %s",
                        et_error_get(s->cx)->message);
            et_error_clear(s->cx);
        }
        et_run_flush(s->run);
        et_run_close(&s->run);
    }
    etd_sup_tell_end(s, end);
    if (s->front >= 0)
        fcntl(s->front, F_SETFL, fcntl(s->front, F_GETFL) & ~O_NONBLOCK);
    while (s->front >= 0 && s->to_front.n > 0) {
        struct pollfd p = {.fd = s->front, .events = POLLOUT};
        if (poll(&p, 1, 5000) <= 0)
            break; /* stopped, or stuck: the run's directory says all */
        etd_sup_flush_front(s);
    }
    etd_hub_end(s); /* once its log has the end */
    return end->exit;
}

static void
plan_restart(struct etd_supervisor *s, double seconds)
{
    s->restarts++;
    etd_sup_say(s, ET_LOG_WARN, "%s; it is started again in %.0f s (%d left)", s->why,
                seconds, s->crashes.left);
    etd_hub_end(s);
    et_run_flush(s->run);
    et_run_close(&s->run);
    s->start_at = etd_sup_now(s) + seconds;
}

/* True: the run is over, with *CODE. */
static bool
all_ended(struct etd_supervisor *s, int *code)
{
    double seconds;
    int64_t step = s->board->rank[0].step;
    for (int i = 0; i < s->l->nproc; i++)
        s->rank[i].moves = s->board->rank[i].moves;
    bool again =
        s->failed >= 0 && s->run && !s->no_rank && may_restart(s, step, &seconds);
    struct etd_end end = settle(s);
    for (int i = 0; i < s->l->nproc; i++)
        etd_sup_close_rank(s, i);
    if (again) {
        plan_restart(s, seconds);
        return false;
    }
    *code = conclude(s, &end);
    return true;
}

/* Asked to end while no rank is there. */
static bool
ends_between(struct etd_supervisor *s, int *code)
{
    struct etd_end end = {.rank = -1, .exit = PREEMPTED};
    if (s->alive > 0 || s->start_at <= 0 || (s->stops == 0 && !s->killed))
        return false;
    snprintf(end.state, sizeof end.state, "preempted");
    *code = conclude(s, &end);
    return true;
}

/* ---- waiting ---- */

/* Whose descriptor it is. */
enum who { SIGNALS, FRONT, HUB, HUB_PROCESS, PACKETS, PRINT, PROCESS };
enum { DESCRIPTORS = 512 };

struct watch {
    struct pollfd fd[DESCRIPTORS];
    struct {
        enum who who;
        int i, k; /* which rank; which stream */
    } of[DESCRIPTORS];
    int n;
};

/* Only those that are open: poll wants no more than a process may have. */
static void
watch(struct watch *w, int fd, short events, enum who who, int i, int k)
{
    if (fd < 0 || w->n == DESCRIPTORS)
        return;
    w->fd[w->n] = (struct pollfd){.fd = fd, .events = events};
    w->of[w->n].who = who;
    w->of[w->n].i = i;
    w->of[w->n++].k = k;
}

static double
next_deadline(struct etd_supervisor *s)
{
    double wait = IDLE_SECONDS, t = etd_sup_now(s);
    if (s->dirty)
        wait = FLUSH_SECONDS;
    const double times[] = {s->kill_at, s->start_at, s->hub_at};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        if (times[i] > 0 && times[i] - t < wait)
            wait = times[i] - t;
    return wait > 0 ? wait : 0;
}

/* The front's socket: it says nothing; at its end it has left, and the run goes on. */
static void
hear_front(struct etd_supervisor *s)
{
    char byte;
    if (s->front < 0 || recv(s->front, &byte, 1, MSG_DONTWAIT) != 0)
        return;
    close(s->front);
    s->front = -1;
}

static void
serve_one(struct etd_supervisor *s, enum who who, int i, int k)
{
    switch (who) {
    case SIGNALS:
        take_signals(s);
        break;
    case FRONT:
        hear_front(s);
        break;
    case HUB:
        etd_sup_hear(s);
        break;
    case HUB_PROCESS:
        etd_hub_reap(s);
        break;
    case PACKETS:
        etd_sup_read_packets(s, i);
        break;
    case PRINT:
        etd_sup_read_prints(s, i, k);
        break;
    case PROCESS:
        etd_sup_reap(s, i);
        break;
    }
}

static void
wait_and_serve(struct etd_supervisor *s)
{
    struct watch w;
    w.n = 0;
    for (int i = 0; i < s->l->nproc; i++) {
        const struct etd_sup_rank *r = &s->rank[i];
        watch(&w, r->from, POLLIN, PACKETS, i, 0);
        for (int k = 0; k < 2; k++)
            watch(&w, r->print[k], POLLIN, PRINT, i, k);
        watch(&w, r->pidfd, POLLIN, PROCESS, i, 0);
    }
    watch(&w, s->signals, POLLIN, SIGNALS, 0, 0);
    watch(&w, s->front, s->to_front.n ? POLLOUT | POLLIN : POLLIN, FRONT, 0, 0);
    watch(&w, s->hub_fd, POLLIN, HUB, 0, 0);
    watch(&w, s->hub_pidfd, POLLIN, HUB_PROCESS, 0, 0);
    if (poll(w.fd, (nfds_t)w.n, (int)(1e3 * next_deadline(s)) + 1) > 0)
        for (int i = 0; i < w.n; i++)
            if (w.fd[i].revents)
                serve_one(s, w.of[i].who, w.of[i].i, w.of[i].k);
    for (int i = 0; i < s->l->nproc; i++) /* where there are no pidfds */
        if (s->rank[i].pidfd < 0)
            etd_sup_reap(s, i);
    if (s->hub_pidfd < 0)
        etd_hub_reap(s);
    etd_sup_flush_front(s);
}

/* What is due. True in a new rank, or one that could not be made. */
static bool
do_due(struct etd_supervisor *s, struct etd_rank **rank, et_status *status)
{
    double t = etd_sup_now(s);
    if (s->dirty && s->run && t - s->flushed >= FLUSH_SECONDS) {
        s->dirty = !et_run_flush(s->run);
        s->flushed = t;
    }
    if (s->failed >= 0 && s->alive > 0 && s->kill_at <= 0)
        s->kill_at =
            t + LEAVE_SECONDS; /* the others leave by themselves, or are made to */
    if (s->kill_at > 0 && t >= s->kill_at && s->stops_start &&
        !etd_sup_is_starting(s)) {
        s->stops_start = false; /* it does train: it has its time to save */
        s->kill_at = s->later_kill_at;
    }
    if (s->kill_at > 0 && t >= s->kill_at) {
        s->kill_at = t + 1;
        etd_sup_signal_all(s, SIGKILL);
    }
    etd_sup_expire(s);
    etd_sup_look_at_files(s);
    etd_sup_watch_start(s);
    etd_sup_watch(s);
    etd_hub_due(s);
    if (s->start_at > 0 && t >= s->start_at) {
        s->start_at = 0;
        return etd_sup_start(s, rank, status);
    }
    return false;
}

/* ---- the process ---- */

static void
log_line(void *data, enum et_log_level level, const char *text)
{
    struct etd_supervisor *s = data;
    if (s->run)
        et_run_log(s->run, level, text);
    if (level >= ET_LOG_WARN)
        etd_sup_tell_text(s, ETD_PACKET_LINE, level, text, strlen(text));
}

/* No terminal, no standard streams of anybody: a descriptor of /dev/null each. */
static void
leave_terminal(void)
{
    setsid();
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3 && null >= 0; fd++)
        dup2(null, fd);
    if (null > 2)
        close(null);
}

static int
catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGHUP};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaddset(&set, numbers[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    /* Drops signals that the terminal sent while this process was in the front's group:
     * the front got them too, and passes them on. */
    while (sigtimedwait(&set, NULL, &(struct timespec){0}) > 0)
        ;
    etd_ignore(SIGPIPE);
    return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

static et_status
init(struct etd_supervisor *s)
{
    void *block;
    s->hub_fd = s->hub_pidfd = -1;
    s->failed = -1;
    etd_crashes_init(&s->crashes);
    s->signals = catch_signals();
    if (s->signals < 0)
        return ET_FAIL(s->cx, ET_EIO, "cannot wait for signals: %s", strerror(errno));
    (void)send(s->front, "", 1, MSG_NOSIGNAL); /* front.c waits for it */
    ET_TRY(et_alloc(s->cx, (size_t)s->l->nproc * sizeof *s->rank, &block));
    s->rank = block;
    ET_TRY(et_alloc(s->cx, ETD_RING_NAMES * sizeof *s->entry, &block));
    s->entry = block;
    for (int i = 0; i < s->l->nproc; i++)
        s->rank[i] = (struct etd_sup_rank){.pidfd = -1,
                                           .from = -1,
                                           .link = -1,
                                           .print = {-1, -1},
                                           .file = {-1, -1},
                                           .log = -1,
                                           .stack = -1};
    return etd_board_new(s->cx, s->l->nproc, &s->board);
}

/* The exit code, at the end of the run; or in a new rank, *CHILD. */
static int
serve(struct etd_supervisor *s, struct etd_rank **rank, et_status *status, bool *child)
{
    int code = BUG;
    *child = etd_sup_start(s, rank, status);
    while (!*child) {
        if (s->alive == 0 && s->start_at <= 0 && all_ended(s, &code))
            return code;
        if (ends_between(s, &code))
            return code;
        wait_and_serve(s);
        *child = do_due(s, rank, status);
    }
    return 0;
}

et_status
etd_supervise(struct et_ctx *cx, const struct etd_launch *l, int front,
              struct etd_rank **rank, int *code)
{
    void *block;
    bool child = false;
    eti_reach(cx, "supervisor");
    leave_terminal();
    ET_TRY(et_alloc(cx, sizeof(struct etd_supervisor), &block));
    struct etd_supervisor *s = block;
    s->cx = cx;
    s->l = l;
    s->front = front;
    et_ctx_set_log(cx, ET_LOG_INFO, log_line, s);
    et_status status = init(s);
    if (status == ET_OK)
        *code = serve(s, rank, &status, &child);
    et_ctx_set_log(cx, ET_LOG_INFO, NULL, NULL); /* a rank's program sets its own */
    if (!child) {
        etd_bytes_free(&s->to_front);
        etd_board_free(&s->board);
        et_free(cx, s->entry);
    }
    et_free(cx, s->rank);
    et_free(cx, s);
    return status;
}
