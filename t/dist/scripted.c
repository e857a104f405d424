/* SPDX-License-Identifier: Apache-2.0 */
/* scripted.c: see scripted.h. */
#include "config.h"

#include "t/dist/scripted.h"

#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "t/data/fixture.h"
#include "t/tap.h"

enum { PATIENCE_MS = 30000 };          /* for what another process is to do */
enum { IN_VAIN = 97, NOT_BEGUN = 98 }; /* exit codes of processes that give up */

struct scripted *all;
struct et_ctx *context;
struct heard heard;
struct etd_front *front;

static int place; /* of this rank */
static int ranks; /* of the run */

/* ---- the clock ---- */

static double
test_clock(void)
{
    if (getpid() == all->supervisor)
        all->looks++;
    return all->now;
}

static void
note_point(const char *point)
{
    if (strcmp(point, "supervisor") == 0)
        all->supervisor = getpid();
}

static void
wait_a_little(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* SIGUSR1 wakes it; ranks ignore the one that is passed on, or catch it. */
void
settle(void)
{
    enum { TWO_ROUNDS = 20 }; /* looks at the clock */
    int until = all->looks + TWO_ROUNDS;
    for (int ms = 0; all->looks < until && all->code < 0; ms++) {
        if (ms == PATIENCE_MS)
            bail("the supervisor does not go on");
        kill(all->supervisor, SIGUSR1);
        wait_a_little();
    }
}

void
pass(double seconds)
{
    settle();
    for (double end = all->now + seconds; all->now < end && all->code < 0;) {
        all->now = fmin(end, all->now + 0.5);
        settle();
    }
}

/* ---- ranks ---- */

int
own_place(void)
{
    return place;
}

void
reach(int stage)
{
    all->stage[place] = stage;
}

static void
wait_until(const _Atomic int *what, int value)
{
    for (int ms = 0; *what < value; ms++) {
        if (ms == 2 * PATIENCE_MS) /* the test gives up first, and says on what */
            _exit(IN_VAIN);
        wait_a_little();
    }
}

void
wait_to_go(int stage)
{
    wait_until(&all->go, stage);
}

void
wait_for_rank(int other, int stage)
{
    wait_until(&all->stage[other], stage);
}

static void
note_signal(int number)
{
    all->got[place] |= 1 << number;
    all->saves[place] += number == SIGUSR1;
}

void
catch_signal(int number)
{
    struct sigaction action = {.sa_handler = note_signal};
    sigaction(number, &action, NULL);
}

void
wait_for_signal(int number)
{
    for (int ms = 0; !(all->got[place] & 1 << number); ms++) {
        if (ms == 2 * PATIENCE_MS)
            _exit(IN_VAIN);
        wait_a_little();
    }
}

struct et_run *
open_run(struct etd_rank *r)
{
    struct et_run *run;
    const struct etd_rank_open open = {.resumed = etd_rank_resumes(r), .threads = 1};
    if (etd_rank_open(context, r, &open, &run) != ET_OK)
        _exit(NOT_BEGUN);
    return run;
}

void
train_to(struct etd_rank *r, int64_t step)
{
    etd_board_step(r->board, r->local, step);
    etd_board_move(r->board, r->local, ETD_PHASE_DATA);
}

int
end_rank(struct etd_rank *r, const char *state, int code)
{
    struct etd_end end = {.exit = code, .began = r->board->rank[place].step > 0};
    snprintf(end.state, sizeof end.state, "%s", state);
    etd_rank_end(r, &end);
    etd_rank_free(&r);
    return code;
}

static void
be_rank(struct etd_rank *r, act_fn *act)
{
    place = r->local;
    all->pid[place] = getpid();
    _exit(act(r, ++all->starts[place]));
}

/* ---- the front ---- */

static void
keep(const struct etd_news *news)
{
    static const char *const words[] = {[ETD_NEWS_LINE] = "line",
                                        [ETD_NEWS_OUT] = "out",
                                        [ETD_NEWS_ERR] = "err",
                                        [ETD_NEWS_RAW] = "raw"};
    size_t n = strlen(heard.text);
    int tag = news->kind == ETD_NEWS_LINE  ? (int)news->level
              : news->kind == ETD_NEWS_RAW ? news->stream
                                           : 0;
    heard.raw += news->kind == ETD_NEWS_RAW ? news->n : 0;
    if (news->kind == ETD_NEWS_LINE)
        heard.line_seq = news->seq;
    if (news->kind == ETD_NEWS_RAW)
        heard.raw_seq = news->seq;
    snprintf(heard.text + n, sizeof heard.text - n, "%s %d %.*s\n", words[news->kind],
             tag, (int)news->n, news->text);
}

/* False: there was nothing. */
static bool
hear_one(void)
{
    struct etd_news news;
    etd_front_next(front, 0.002, &news);
    switch (news.kind) {
    case ETD_NEWS_NONE:
        break;
    case ETD_NEWS_OPENED:
        heard.opened++;
        heard.as = news;
        break;
    case ETD_NEWS_END:
        heard.over = true;
        heard.end = news.end;
        break;
    case ETD_NEWS_LOST:
        heard.over = heard.lost = true;
        break;
    default:
        keep(&news);
    }
    return news.kind != ETD_NEWS_NONE;
}

void
hear_rest(void)
{
    while (!heard.over && hear_one())
        ;
}

bool
is_over(int unused)
{
    (void)unused;
    return heard.over;
}

bool
are_at(int stage)
{
    for (int i = 0; i < ranks; i++)
        if (all->stage[i] < stage)
            return false;
    return true;
}

bool
has_started(int times)
{
    return all->starts[0] >= times;
}

bool
is_said(int times)
{
    int n = 0;
    for (const char *at = heard.text; (at = strstr(at, "it is started again")); at++)
        n++;
    return n >= times;
}

void
hear_until(bool (*come)(int), int value, const char *what)
{
    for (int times = 0; !come(value); times++) {
        if (times == PATIENCE_MS / 2 || (heard.over && come != is_over))
            bail("%s does not come; heard: %s%s", what, heard.text, heard.end.why);
        hear_one();
    }
}

struct etd_launch
launch_of(const char *directory, int nproc)
{
    struct etd_launch l = {
        .nproc = nproc,
        .world = nproc,
        .listener = -1,
        .host = "127.0.0.1",
        .config.directory = directory,
    };
    return l;
}

void
launch(const struct etd_launch *l, act_fn *act)
{
    struct etd_rank *rank;
    int code = 0;
    memset(&heard, 0, sizeof heard);
    memset(all, 0, sizeof *all);
    all->now = 1000;
    all->code = -1;
    ranks = l->nproc;
    et_status status = etd_launch(context, l, &front, &rank, &code);
    if (front) {
        etd_front_catch(SIG_DFL);
        return;
    }
    if (rank && status == ET_OK)
        be_rank(rank, act);
    if (status == ET_OK)
        all->code = code;
    _exit(status == ET_OK ? code : NOT_BEGUN);
}

void
finish(void)
{
    hear_until(is_over, 0, "the end");
    etd_front_wait(front, PATIENCE_MS / 1e3);
    etd_front_free(&front);
}

/* ---- what has become of it ---- */

const char *
ending(void)
{
    static char text[64];
    snprintf(text, sizeof text, "%s %d %d", heard.end.state, heard.end.exit,
             heard.end.rank);
    return heard.lost ? "lost" : text;
}

const char *
text_of(const char *directory, const char *name)
{
    static char text[1 << 18], path[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = '\0';
    return text;
}

const char *
facts(const char *directory)
{
    static char text[64];
    json_t *json = json_loads(text_of(directory, "run.json"), 0, NULL);
    const char *state = json_string_value(json_object_get(json, "state"));
    snprintf(text, sizeof text, "%s %d %d", state ? state : "none",
             (int)json_integer_value(json_object_get(json, "exit_code")),
             (int)json_integer_value(json_object_get(json, "incarnation")));
    json_decref(json);
    return text;
}

void
begin_scripted(void)
{
    static struct eti_seams seams;
    context = need_ctx();
    seams = eti_system;
    seams.monotonic = test_clock;
    seams.reach = note_point;
    eti_ctx_set_seams(context, &seams);
    all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
               -1, 0);
    if (all == MAP_FAILED || chdir(scratch_folder()) != 0 ||
        setenv("XDG_STATE_HOME", scratch_folder(), 1) != 0 ||
        unsetenv("ETUDE_RANK_SECRET") != 0 || unsetenv("ETUDE_RANK_TIMEOUT") != 0)
        bail("no memory to share, or no folder");
}

void
end_scripted(void)
{
    et_ctx_free(&context);
    munmap(all, sizeof *all);
}
