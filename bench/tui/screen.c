/* SPDX-License-Identifier: Apache-2.0 */
/* The budgets of UX.md section 8: the workbench on a terminal, with a run that has gone
 * on for a day at ten records a second, among few runs and among many.
 *
 *     bench/tui/screen [ETUDE [RECORDS [RUNS]]]    default: ./etude 864000 2000
 *
 * It works in a folder of $TMPDIR, and prints
 *
 * start      from exec to the first bytes on the terminal         budget 150 ms
 * all        until nothing more comes: the log, or all runs       usable 1 s, all 5 s
 * memory     then, of the process                                 64 MB
 * key        from a key to the first byte of the answer           30 ms
 * bytes      of an answer: what a slow line has to carry
 * idle       share of a core over 5 s in which nothing changes    2 %
 * live       the same while a run adds ten records a second       2 %
 * frame      to draw all cells, in this process
 *
 * start, all and key are by the clock: others on the machine count. The shares are
 * processor time of the process alone. */
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utmp.h>

#include "bench/program.h"
#include "core/base/seams.h"
#include "core/library/facts.h"
#include "etude/run.h"
#include "tui/app.h"

enum { SERIES = 10, KEYS = 200, FRAMES = 200, FEW = 62, LINES = 200000 };

static int64_t records = 864000;
static char folder[200], day[256], live[256];

/* ---- runs ---- */

/* Thousands of runs are made to be looked at, not to be kept: nothing is synced. */
static int
do_not_sync(int fd)
{
    (void)fd;
    return 0;
}

static void
name_series(struct et_log_entry *entry)
{
    static const char *const names[] = {"loss/train/total", "metrics/eval/Accuracy",
                                        "lr-SGD/group0", "throughput/samples_per_sec"};
    for (int s = 0; s < SERIES; s++)
        if (s < 4)
            snprintf(entry[s].name, sizeof entry->name, "%s", names[s]);
        else
            snprintf(entry[s].name, sizeof entry->name, "loss/train/part%d", s);
}

/* Batch BA, with a line of the log at each thousandth. */
static void
tell(struct et_sink *sink, struct et_log_entry *entry, int64_t ba, double t)
{
    struct et_record r = {.kind = ET_RECORD_BATCH, .t = t, .ba = ba, .sp = 32 * ba};
    for (int s = 0; s < SERIES; s++)
        entry[s].value = 1.0 / (double)(1 + (ba * (s + 3)) % 1009);
    r.entry = entry;
    r.n = SERIES;
    sink->write(sink, &r);
    if (ba % 1000 != 0)
        return;
    r = (struct et_record){
        .kind = ET_RECORD_LOG, .t = t, .ba = ba, .level = ET_LOG_INFO};
    r.text = "so far, so good";
    sink->write(sink, &r);
}

static struct et_run *
open_run(struct et_ctx *cx, const char *directory)
{
    struct et_run *run;
    static const char text[] = "max_duration: 16ep\nmodel: {name: resnet8}\n";
    const struct et_run_config config = {.directory = directory,
                                         .recipe = text,
                                         .recipe_bytes = sizeof text - 1,
                                         .recipe_name = "r.yaml",
                                         .threads = 1};
    must(cx, et_run_open(cx, &config, &run));
    must(cx, et_run_set_state(run, "running"));
    return run;
}

/* A day of one, which is over, and logs/rank0.txt with LINES lines. */
static void
write_day(struct et_ctx *cx)
{
    struct et_log_entry entry[SERIES];
    struct et_run *run = open_run(cx, day);
    name_series(entry);
    for (int64_t i = 1; i <= records; i++)
        tell(et_run_sink(run), entry, i, 1e9 + 0.1 * (double)i);
    for (int i = 0; i < LINES; i++)
        et_run_log(run, ET_LOG_INFO, "batch done, nothing to report");
    must(cx, et_run_finish(run, "finished", 0, NULL));
    et_run_close(&run);
}

/* Runs [FROM, TO) beside it. */
static void
write_runs(struct et_ctx *cx, int from, int to)
{
    struct et_log_entry entry[SERIES];
    char path[300];
    name_series(entry);
    for (int i = from; i < to; i++) {
        snprintf(path, sizeof path, "%s/runs/n%04d", folder, i);
        struct et_run *run = open_run(cx, path);
        for (int64_t ba = 1; ba <= 20; ba++)
            tell(et_run_sink(run), entry, ba + i, 1e9 + 1e3 * i + (double)ba);
        must(cx, et_run_finish(run, "finished", 0, NULL));
        et_run_close(&run);
    }
}

/* Goes on with a run of its own, ten records a second, until it is killed. */
static pid_t
start_live(struct et_ctx *cx)
{
    const struct timespec tenth = {0, 100000000};
    struct et_log_entry entry[SERIES];
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    struct et_run *run = open_run(cx, live);
    name_series(entry);
    for (int64_t ba = 1;; ba++) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        tell(et_run_sink(run), entry, ba, (double)t.tv_sec + 1e-9 * (double)t.tv_nsec);
        et_run_flush(run);
        nanosleep(&tenth, NULL);
    }
}

/* ---- the program on a terminal ---- */

struct seat {
    pid_t pid;
    int fd;
    int64_t bytes;
};

static void
start(struct seat *s, const char *const *argv, int rows, int cols)
{
    struct winsize w = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols};
    s->bytes = 0;
    s->pid = forkpty(&s->fd, NULL, NULL, &w);
    if (s->pid == 0) {
        setenv("TERM", "xterm-256color", 1);
        setenv("LC_ALL", "C.UTF-8", 1);
        execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
}

static void
stop(struct seat *s)
{
    kill(s->pid, SIGTERM);
    waitpid(s->pid, NULL, 0);
    close(s->fd);
}

/* Reads what comes until nothing has for QUIET seconds, or MOST are over. Returns when
 * the first byte came; 0: none did. */
static double
drain(struct seat *s, double quiet, double most)
{
    char buf[1 << 16];
    double first = 0, end = now() + most;
    struct pollfd p = {.fd = s->fd, .events = POLLIN};
    while (now() < end && poll(&p, 1, (int)(1000 * quiet)) > 0) {
        ssize_t n = read(s->fd, buf, sizeof buf);
        if (n <= 0)
            break;
        if (first == 0)
            first = now();
        s->bytes += n;
    }
    return first;
}

static double
of_process(const struct seat *s, const char *what)
{
    char path[64], line[1024];
    long a = 0, b = 0;
    snprintf(path, sizeof path, "/proc/%d/%s", (int)s->pid, what);
    FILE *f = fopen(path, "r");
    if (!f || !fgets(line, sizeof line, f))
        exit(1);
    fclose(f);
    if (strcmp(what, "statm") == 0) {
        sscanf(line, "%*d %ld", &a);
        return (double)a * (double)sysconf(_SC_PAGESIZE) / 1e6;
    }
    sscanf(strrchr(line, ')') + 2,
           "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &a, &b);
    return (double)(a + b) / (double)sysconf(_SC_CLK_TCK);
}

static void
press(const struct seat *s, char key)
{
    if (write(s->fd, &key, 1) != 1)
        exit(1);
}

/* Processor time of its process over SECONDS, as a share of them in %. */
static double
share(struct seat *s, double seconds)
{
    double before = of_process(s, "stat"), from = now(), end = from + seconds;
    while (now() < end)
        drain(s, end - now(), end - now());
    return 100 * (of_process(s, "stat") - before) / (now() - from);
}

/* A screen: how it is started, the keys that lead to it, and those that are timed. */
struct scene {
    const char *name;
    const char *argv[5];
    const char *way, *keys;
};

static void
measure_scene(const struct scene *c, int rows, int cols)
{
    struct seat s;
    double key[KEYS], begun = now(), first = 0;
    int n_keys = (int)strlen(c->keys);
    start(&s, c->argv, rows, cols);
    for (int i = 0; i < 100 && first == 0; i++)
        first = drain(&s, 0.05, 0.1);
    printf("%-14s %3dx%-2d  start %3.0f ms", c->name, cols, rows,
           1e3 * (first - begun));
    for (const char *k = c->way; *k; k++) {
        drain(&s, 0.1, 1);
        press(&s, *k);
    }
    drain(&s, 0.35, 60); /* the bar of the history moves until it is in */
    printf("  all %.2f s  memory %4.1f MB", now() - 0.35 - begun,
           of_process(&s, "statm"));
    int64_t bytes = s.bytes;
    for (int i = 0; i < KEYS; i++) {
        double pressed = now(), answered = 0;
        press(&s, c->keys[i % n_keys]);
        for (int k = 0; k < 50 && answered == 0; k++)
            answered = drain(&s, 0.02, 1);
        key[i] = 1e3 * ((answered > 0 ? answered : now()) - pressed);
    }
    qsort(key, KEYS, sizeof *key, by_size);
    printf("  key %.1f ms, 9 of 10 %.1f, worst %.1f; %lld bytes", part(key, KEYS, 0.5),
           part(key, KEYS, 0.9), key[KEYS - 1], (long long)((s.bytes - bytes) / KEYS));
    printf("  idle %.2f %%\n", share(&s, 5));
    stop(&s);
}

static void
measure_live(struct et_ctx *cx, const char *program, int rows, int cols)
{
    struct seat s;
    const char *const argv[] = {program, "attach", live, NULL};
    pid_t writer = start_live(cx);
    usleep(500000);
    start(&s, argv, rows, cols);
    drain(&s, 2, 2);
    double used = share(&s, 20);
    printf("%-14s %3dx%-2d  live %.2f %% of a core\n", "Monitor", cols, rows, used);
    stop(&s);
    kill(writer, SIGKILL);
    waitpid(writer, NULL, 0);
}

/* ---- frames ---- */

static void
measure_frames(struct et_ctx *cx, int rows, int cols)
{
    struct tui_app *app;
    struct tui_source *source;
    json_t *facts;
    struct tui_app_config config = {
        .cx = cx,
        .glyphs = tui_glyphs_of(ETI_PLOT_BRAILLE),
        .is_dump = true,
        .first = TUI_IN_monitor,
        .rows = rows,
        .cols = cols,
    };
    tui_keys_default(&config.keys);
    must(cx, tui_app_new(&config, &app));
    must(cx, eti_facts_read(cx, day, &facts));
    must(cx, tui_source_dir(cx, facts, &source));
    tui_app_attach(app, &source);
    while (app->source->class->advance(app->source, 1, 0))
        continue;
    double from = now();
    for (int i = 0; i < FRAMES; i++)
        tui_app_draw(app);
    printf("%dx%d  frame %.2f ms\n", cols, rows, 1e3 * (now() - from) / FRAMES);
    tui_app_free(&app);
}

int
main(int argc, char **argv)
{
    const char *program = argc > 1 ? argv[1] : "./etude", *tmp = getenv("TMPDIR");
    int many = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 2000;
    const struct scene scenes[] = {
        {"Monitor", {program, "attach", day}, "", "y"},
        {"Logs", {program, "attach", day}, "5", "kj"},
        {"Compose", {program, "compose", "-m", "fashion_mnist"}, "", "jk"},
        {"Compose, edits", {program, "compose", "-m", "fashion_mnist"}, "", " "},
        {"Runs, few", {program, "-C", folder}, "3", "jk"},
        {"Runs, many", {program, "-C", folder}, "3", "jk"},
    };
    const int sizes[][2] = {{24, 80}, {50, 200}};
    char command[300], path[4096];
    struct et_ctx *cx;
    if (argc > 2)
        records = strtoll(argv[2], NULL, 10);
    if (!realpath(program, path))
        return 1;
    program = path;
    snprintf(folder, sizeof folder, "%s/etude-screen.XXXXXX", tmp ? tmp : "/tmp");
    if (et_ctx_new(&cx) != ET_OK || !mkdtemp(folder))
        return 1;
    setenv("XDG_STATE_HOME", folder, 1);
    setenv("XDG_RUNTIME_DIR", folder, 1);
    setenv("ETUDE_CONFIG_DIR", folder, 1);
    snprintf(day, sizeof day, "%s/runs", folder);
    if (mkdir(day, 0700) != 0)
        return 1;
    snprintf(day, sizeof day, "%s/runs/day", folder);
    snprintf(live, sizeof live, "%s/live", folder);
    struct eti_seams quick = eti_system;
    quick.file.sync = do_not_sync;
    eti_ctx_set_seams(cx, &quick);
    write_day(cx);
    write_runs(cx, 1, FEW);
    printf("%lld records of %d series; %d and %d runs\n", (long long)records, SERIES,
           FEW, many);
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++) {
        if (strcmp(scenes[i].name, "Runs, many") == 0)
            write_runs(cx, FEW, many);
        for (int k = 0; k < 2; k++)
            measure_scene(&scenes[i], sizes[k][0], sizes[k][1]);
    }
    measure_live(cx, program, 24, 80);
    measure_frames(cx, 24, 80);
    measure_frames(cx, 50, 200);
    et_ctx_free(&cx);
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command) == 0 ? 0 : 1;
}
