/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor_watch.c: hangs, and ranks that hold others back. Every training thread
 * moves its counter on the board with each part of each step, and says there which
 * collective it is in; one that stands still for too long hangs, or waits for one that
 * does. Who does, and how long is too long, is decided in verdict.h. */
#include "config.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dist/run/supervisor.h"

enum { MOST_RANKS = 1024 };
static const double LOOK_SECONDS = 0.25;
/* For ranks that hang to write down where they stand. */
static const double STACK_SECONDS = 5;

/* ---- stragglers (UX.md section 3): over 1.15 x the median for 20 batches ---- */

enum { STRAGGLE_BATCHES = 20 };
static const double STRAGGLE = 1.15;

/* What a rank's own part of a step is made of, as its health records have it, and what
 * people call that; what is left is computation. */
static const struct {
    const char *name, *text;
} parts[ETD_OWN_PARTS] = {
    [ETD_OWN_DATA] = {"data_ms", "its dataloader"},
    [ETD_OWN_HOOKS] = {"hooks_ms", "its algorithms"},
    [ETD_OWN_COMPUTE] = {NULL, "its computing"},
    [ETD_OWN_ALL] = {"own_ms", NULL},
};

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of PART over the ranks that have reported their own time; 0 if none
 * has. */
static double
median_of(const struct etd_supervisor *s, enum etd_own part)
{
    double own[MOST_RANKS];
    int n = 0;
    for (int i = 0; i < s->l->nproc && n < MOST_RANKS; i++)
        if (s->rank[i].own_ms[ETD_OWN_ALL] > 0)
            own[n++] = s->rank[i].own_ms[part];
    if (n == 0)
        return 0;
    qsort(own, (size_t)n, sizeof *own, by_value);
    return n % 2 ? own[n / 2] : (own[n / 2 - 1] + own[n / 2]) / 2;
}

/* The part of R's own time that other processes may have taken; 0 if R has no such
 * number. */
static double
queue_of(const struct et_record *r)
{
    for (int i = 0; i < r->n; i++)
        if (strcmp(r->entry[i].name, "queue_ms") == 0)
            return r->entry[i].value;
    return 0;
}

/* Reads the parts of a rank's own time from R. False: R has no own time. */
static bool
read_parts(const struct et_record *r, double *own)
{
    bool found = false;
    double rest = 0;
    for (int part = 0; part < ETD_OWN_PARTS; part++)
        for (int i = 0; i < r->n && parts[part].name; i++)
            if (strcmp(r->entry[i].name, parts[part].name) == 0) {
                own[part] = r->entry[i].value;
                rest += part == ETD_OWN_ALL ? own[part] : -own[part];
                found |= part == ETD_OWN_ALL;
            }
    own[ETD_OWN_COMPUTE] = rest > 0 ? rest : 0;
    return found;
}

/* The part by which RANK is furthest from the others. */
static const char *
cause_of(const struct etd_supervisor *s, const struct etd_sup_rank *rank)
{
    const char *cause = parts[ETD_OWN_COMPUTE].text;
    double most = 0;
    for (int part = 0; part < ETD_OWN_ALL; part++) {
        double over = rank->own_ms[part] - median_of(s, (enum etd_own)part);
        if (over > most) {
            most = over;
            cause = parts[part].text;
        }
    }
    return cause;
}

/* Warns of a straggler when it becomes one, and does not repeat that while it stays
 * one. It becomes one, and ceases to be one, only after STRAGGLE_BATCHES batches in a
 * row. The time in which other processes had the processor does not count: on a machine
 * that is overloaded the scheduler decides which rank is last. */
void
etd_sup_compare(struct etd_supervisor *s, const struct et_record *r)
{
    int i = r->rank - s->l->base;
    double own[ETD_OWN_PARTS] = {0};
    if (s->l->nproc < 2 || i < 0 || i >= s->l->nproc || !read_parts(r, own))
        return;
    struct etd_sup_rank *rank = &s->rank[i];
    memcpy(rank->own_ms, own, sizeof own);
    double all = own[ETD_OWN_ALL], median = median_of(s, ETD_OWN_ALL);
    bool slow = all - queue_of(r) > STRAGGLE * median;
    if (slow == rank->straggles) {
        rank->since_ba = 0;
        return;
    }
    if (rank->since_ba == 0)
        rank->since_ba = r->ba;
    if (r->ba - rank->since_ba < STRAGGLE_BATCHES)
        return;
    rank->since_ba = 0;
    rank->straggles = slow;
    if (slow)
        etd_sup_say(s, ET_LOG_WARN,
                    "rank %d holds every step back by %.1f ms (%.0f%%): %s. Its own "
                    "part of a step takes %.1f ms",
                    r->rank, all - median, 100 * (all / median - 1), cause_of(s, rank),
                    all);
}

/* ---- hangs ---- */

double
etd_sup_timeout(const struct etd_supervisor *s)
{
    return etd_hang_seconds(s->l->timeout, &s->steps);
}

/* ---- dumps ---- */

/* What the system says of its process, while there is one. */
static void
dump_process(FILE *out, pid_t pid)
{
    static const char *const files[] = {"status", "wchan", "stack", "syscall"};
    char path[64], text[4096];
    for (size_t k = 0; k < sizeof files / sizeof *files && pid > 0; k++) {
        snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, files[k]);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text);
        if (n > 0)
            fprintf(out, "-- %s --\n%.*s\n", files[k], (int)n, text);
        if (fd >= 0)
            close(fd);
    }
}

/* Opens the dump of rank I for appending. NULL: it cannot be opened, as on a full disk;
 * the log has what matters. */
static FILE *
open_dump(const struct etd_supervisor *s, int i)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/dumps", s->directory);
    (void)mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/dumps/rank%d.txt", s->directory, s->l->base + i);
    return s->directory[0] ? fopen(path, "ae") : NULL;
}

static void
dump_rank(struct etd_supervisor *s, int i)
{
    char text[96];
    const struct etd_board_rank *b = &s->board->rank[i];
    const struct et_comm_look look = etd_board_look(s->board, i);
    FILE *out = open_dump(s, i);
    if (!out)
        return;
    fprintf(out, "-- rank %d of start %d: after batch %lld, in %s\n", s->l->base + i,
            s->restarts + 1, (long long)b->step, etd_phase_name(b->phase));
    if (look.seq > 0)
        fprintf(out, "-- %s %s\n", look.busy ? "in" : "the last collective was",
                etd_collective_text(&look, text, sizeof text));
    dump_process(out, s->rank[i].pid);
    etd_flight_print(out, &b->recorder);
    fclose(out);
}

void
etd_sup_dump(struct etd_supervisor *s)
{
    size_t n = strlen(s->why);
    if (!s->directory[0])
        return;
    for (int i = 0; i < s->l->nproc; i++)
        dump_rank(s, i);
    snprintf(s->why + n, sizeof s->why - n, "; dumps/rank%d.txt has what it did last",
             s->l->base + s->failed);
}

void
etd_sup_dump_stack(struct etd_supervisor *s, int i)
{
    char text[4096];
    off_t at = 0;
    ssize_t n =
        s->rank[i].stack < 0 ? 0 : pread(s->rank[i].stack, text, sizeof text, 0);
    FILE *out = n > 0 ? open_dump(s, i) : NULL;
    while (out && n > 0) {
        fwrite(text, 1, (size_t)n, out);
        at += n;
        n = pread(s->rank[i].stack, text, sizeof text, at);
    }
    if (out)
        fclose(out);
}

/* ---- a hang's end ---- */

/* Process PID is stopped, by a signal or a debugger. */
static bool
is_stopped(pid_t pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *state = strrchr(text, ')');
    return state && (state[2] == 'T' || state[2] == 't');
}

/* Where rank I stands now. */
static void
look_at(struct etd_supervisor *s, int i)
{
    struct etd_sup_rank *r = &s->rank[i];
    r->moves = s->board->rank[i].moves;
    r->look = etd_board_look(s->board, i);
    r->stopped = r->pid > 0 && is_stopped(r->pid);
}

static void
say_who(struct etd_supervisor *s, int behind, double seconds)
{
    char text[96], own[96];
    const struct etd_board_rank *b = &s->board->rank[behind];
    const struct etd_sup_rank *r = &s->rank[behind];
    int n, waits = etd_rank_that_waits(s->rank, s->l->nproc, behind),
           number = s->l->base + behind;
    if (waits >= 0) {
        n = snprintf(s->why, sizeof s->why,
                     "rank %d did not arrive at %s, in which rank %d has waited for "
                     "%.0f s: it is after batch %lld, in %s",
                     number,
                     etd_collective_text(&s->rank[waits].look, text, sizeof text),
                     s->l->base + waits, seconds, (long long)b->step,
                     r->look.busy ? etd_collective_text(&r->look, own, sizeof own)
                                  : etd_phase_name(b->phase));
    } else {
        n = snprintf(s->why, sizeof s->why,
                     "rank %d has not moved for %.0f s: after batch %lld, in %s%s%s",
                     number, seconds, (long long)b->step, etd_phase_name(b->phase),
                     r->look.busy ? ", in " : "",
                     r->look.busy ? etd_collective_text(&r->look, own, sizeof own)
                                  : "");
    }
    if (n > 0 && (size_t)n < sizeof s->why)
        snprintf(s->why + n, sizeof s->why - (size_t)n, "%s",
                 r->stopped ? "; its process is stopped" : "");
}

void
etd_sup_end_hang(struct etd_supervisor *s, int longest, double seconds)
{
    for (int i = 0; i < s->l->nproc; i++)
        look_at(s, i);
    /* Rank LONGEST has stood still for too long. The rank that it waits for may have
     * moved since. */
    int behind = etd_rank_behind(s->rank, s->l->nproc, longest);
    s->hung = true;
    s->failed = behind;
    say_who(s, behind, seconds);
    etd_sup_dump(s);
    /* The ranks add their stacks; a stopped one does, too. */
    etd_sup_signal_all(s, SIGABRT);
    etd_sup_signal_all(s, SIGCONT);
    s->kill_at = etd_sup_now(s) + STACK_SECONDS;
}

void
etd_sup_watch(struct etd_supervisor *s)
{
    double t = etd_sup_now(s), passed = t - s->watched;
    int longest = -1;
    if (s->hung || s->failed >= 0 || !s->run || passed < LOOK_SECONDS)
        return;
    s->watched = t;
    etd_steps_look(&s->steps, t, s->board->rank[0].step);
    for (int i = 0; i < s->l->nproc; i++) {
        struct etd_sup_rank *r = &s->rank[i];
        const struct etd_board_rank *b = &s->board->rank[i];
        uint64_t moves = b->moves;
        bool trains = b->phase > ETD_PHASE_ENDED && r->pid > 0;
        if (moves != r->moves || !trains) {
            r->moves = moves;
            r->stood = 0;
        } else {
            r->stood += passed;
            longest = r->stood >= etd_sup_timeout(s) ? i : longest;
        }
    }
    if (longest >= 0)
        etd_sup_end_hang(s, longest, s->rank[longest].stood);
}
