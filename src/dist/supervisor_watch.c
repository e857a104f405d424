/* supervisor_watch.c: hangs, and ranks that hold others back. Every training thread
 * moves its counter on the board with each part of each step; one that stands still for
 * too long hangs, or waits for one that does: the ranks whose counters stand lowest are
 * those behind.
 *
 * Too long is the timeout of the recipe, 5 minutes; where neither it nor the command
 * line says how long, after 200 steps it is 10 of the longest steps of late, and at
 * least 60 s (RELIABILITY.md 4). */
#include "config.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "dist/supervisor.h"

enum { SETTLED_STEPS = 200, MOST_RANKS = 1024 };
static const double LOOK_SECONDS = 0.25, LEAST_SECONDS = 60, DEFAULT_SECONDS = 300;

/* ---- stragglers (UX.md section 3): over 1.15 x the median for 20 batches ---- */

enum { STRAGGLE_BATCHES = 20 };
static const double STRAGGLE = 1.15;

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of the ranks that have said how long their own part of a step takes; 0 for none. */
static double
median_own(const struct etd_supervisor *s)
{
    double own[MOST_RANKS];
    int n = 0;
    for (int i = 0; i < s->l->nproc && n < MOST_RANKS; i++)
        if (s->rank[i].own_ms > 0)
            own[n++] = s->rank[i].own_ms;
    if (n == 0)
        return 0;
    qsort(own, (size_t)n, sizeof *own, by_value);
    return n % 2 ? own[n / 2] : (own[n / 2 - 1] + own[n / 2]) / 2;
}

void
etd_sup_compare(struct etd_supervisor *s, const struct et_record *r)
{
    int i = r->rank - s->l->base, at = 0;
    while (at < r->n && strcmp(r->entry[at].name, "own_ms") != 0)
        at++;
    if (s->l->nproc < 2 || i < 0 || i >= s->l->nproc || at == r->n)
        return;
    struct etd_sup_rank *rank = &s->rank[i];
    rank->own_ms = r->entry[at].value;
    double median = median_own(s);
    if (rank->own_ms <= STRAGGLE * median) {
        rank->slow_ba = -1;
        rank->straggles = false;
    } else if (rank->slow_ba < 0) {
        rank->slow_ba = r->ba;
    } else if (r->ba - rank->slow_ba >= STRAGGLE_BATCHES && !rank->straggles) {
        rank->straggles = true;
        etd_sup_say(
            s, ET_LOG_WARN,
            "rank %d holds every step back by %.1f ms (%.0f%%): its own part of a "
            "step takes %.1f ms",
            r->rank, rank->own_ms - median, 100 * (rank->own_ms / median - 1),
            rank->own_ms);
    }
}

/* ---- hangs ---- */

static double
timeout_of(const struct etd_supervisor *s)
{
    if (s->l->timeout > 0)
        return s->l->timeout;
    if (s->looked_step < SETTLED_STEPS || s->step_seconds <= 0)
        return DEFAULT_SECONDS;
    double some = 10 * s->step_seconds;
    return some < LEAST_SECONDS     ? LEAST_SECONDS
           : some < DEFAULT_SECONDS ? some
                                    : DEFAULT_SECONDS;
}

/* Copies what the system says of each thread of the rank to dumps/. */
static void
dump_rank(struct etd_supervisor *s, int i)
{
    static const char *const files[] = {"status", "wchan", "stack", "syscall"};
    char path[4096], text[4096];
    snprintf(path, sizeof path, "%s/dumps/rank%d.txt", s->directory, s->l->base + i);
    FILE *out = fopen(path, "we");
    if (!out)
        return;
    const struct etd_board_rank *b = &s->board->rank[i];
    fprintf(out, "rank %d: after batch %lld, in %s\n", s->l->base + i,
            (long long)b->step, etd_phase_name(b->phase));
    for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
        snprintf(path, sizeof path, "/proc/%d/%s", (int)s->rank[i].pid, files[k]);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text);
        if (n > 0)
            fprintf(out, "-- %s --\n%.*s\n", files[k], (int)n, text);
        if (fd >= 0)
            close(fd);
    }
    fclose(out);
}

static void
end_hang(struct etd_supervisor *s, int behind, double seconds)
{
    char path[4096];
    const struct etd_board_rank *b = &s->board->rank[behind];
    int others = 0;
    for (int i = 0; i < s->l->nproc; i++)
        others += i != behind && s->board->rank[i].moves > b->moves;
    s->hung = true;
    s->failed = behind;
    snprintf(s->why, sizeof s->why,
             "rank %d has not moved for %.0f s: after batch %lld, in %s%s",
             s->l->base + behind, seconds, (long long)b->step, etd_phase_name(b->phase),
             others ? "; the others wait for it" : "");
    snprintf(path, sizeof path, "%s/dumps", s->directory);
    (void)mkdir(path, 0700);
    for (int i = 0; i < s->l->nproc; i++)
        if (s->rank[i].pid > 0)
            dump_rank(s, i);
    /* They write where they stand to their logs, one that was stopped too. */
    etd_sup_signal_all(s, SIGABRT);
    etd_sup_signal_all(s, SIGCONT);
    s->kill_at = eti_monotonic(s->cx) + 1;
}

void
etd_sup_watch(struct etd_supervisor *s)
{
    double t = eti_monotonic(s->cx);
    int behind = -1;
    if (s->hung || s->failed >= 0 || !s->run || t - s->looked < LOOK_SECONDS)
        return;
    int64_t step = s->board->rank[0].step;
    if (s->looked > 0 && step > s->looked_step) {
        double mean = (t - s->looked) / (double)(step - s->looked_step);
        s->step_seconds = mean > s->step_seconds ? mean : s->step_seconds;
        s->looked_step = step;
        s->looked = t;
    } else if (s->looked == 0) {
        s->looked = t;
    }
    for (int i = 0; i < s->l->nproc; i++) {
        struct etd_sup_rank *r = &s->rank[i];
        const struct etd_board_rank *b = &s->board->rank[i];
        uint64_t moves = b->moves;
        bool trains = b->phase > ETD_PHASE_ENDED && r->pid > 0;
        if (moves != r->moves || !trains) {
            r->moves = moves;
            r->moved_at = t;
        } else if (t - r->moved_at >= timeout_of(s) &&
                   (behind < 0 || moves < s->board->rank[behind].moves)) {
            behind = i;
        }
    }
    if (behind >= 0)
        end_hang(s, behind, t - s->rank[behind].moved_at);
}
