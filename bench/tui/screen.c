/* The budgets of UX.md section 8: the workbench on a terminal, with a run that has gone
 * on for a day at ten records a second.
 *
 *     bench/tui/screen [ETUDE [RECORDS]]    default ./etude 864000, in $TMPDIR
 *
 * start      from exec to the first bytes on the terminal         budget 150 ms
 * history    until all of the log is in what is shown             usable 1 s, all 5 s
 * memory     then, of the process                                 64 MB
 * key        from a key to the first byte of the answer           30 ms
 * bytes      of an answer: what a slow line has to carry
 * idle       share of a core over 5 s in which nothing changes    2 %
 * frame      to draw all cells, in this process */
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
#include "core/run/events.h"
#include "core/run/facts.h"
#include "tui/app.h"

enum { SERIES = 10, KEYS = 200, FRAMES = 200 };

static int64_t records = 864000;
static char folder[256];

/* ---- the run ---- */

static void
write_run(struct et_ctx *cx)
{
    static const unsigned char id[ETI_EVENTS_ID];
    struct eti_events_writer w;
    struct et_log_entry entry[SERIES];
    char path[300];
    snprintf(path, sizeof path, "%s/run.json", folder);
    FILE *f = fopen(path, "w");
    if (!f)
        exit(1);
    fputs("{\"name\": \"long-day\", \"id\": \"0\", \"recipe\": \"r.yaml\", \"state\": "
          "\"running\", \"started\": 1, \"pid\": 1, \"boot_id\": \"x\"}\n",
          f);
    fclose(f);
    must(cx, eti_events_begin(cx, folder, id, &w));
    snprintf(entry[0].name, sizeof entry->name, "loss/train/total");
    snprintf(entry[1].name, sizeof entry->name, "metrics/eval/Accuracy");
    snprintf(entry[2].name, sizeof entry->name, "lr-SGD/group0");
    snprintf(entry[3].name, sizeof entry->name, "throughput/samples_per_sec");
    for (int s = 4; s < SERIES; s++)
        snprintf(entry[s].name, sizeof entry->name, "loss/train/part%d", s);
    for (int64_t i = 1; i <= records; i++) {
        for (int s = 0; s < SERIES; s++)
            entry[s].value = 1.0 / (double)(1 + (i * (s + 3)) % 1009);
        eti_events_write(&w, &(struct et_record){.kind = ET_RECORD_BATCH,
                                                 .t = 1e9 + 0.1 * (double)i,
                                                 .ba = i,
                                                 .sp = 32 * i,
                                                 .entry = entry,
                                                 .n = SERIES});
    }
    eti_events_end(&w);
}

/* ---- the program on a terminal ---- */

struct seat {
    pid_t pid;
    int fd;
    int64_t bytes;
};

static void
start(struct seat *s, const char *program, int rows, int cols)
{
    struct winsize w = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols};
    s->bytes = 0;
    s->pid = forkpty(&s->fd, NULL, NULL, &w);
    if (s->pid == 0) {
        setenv("TERM", "xterm-256color", 1);
        setenv("LC_ALL", "C.UTF-8", 1);
        execl(program, program, "attach", folder, (char *)NULL);
        _exit(127);
    }
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
measure_program(const char *program, int rows, int cols)
{
    struct seat s;
    double key[KEYS], begun = now();
    start(&s, program, rows, cols);
    double first = drain(&s, 0.05, 0.1);
    if (first == 0)
        first = drain(&s, 0.05, 5);
    printf("%dx%d  start %.0f ms", cols, rows, 1e3 * (first - begun));
    drain(&s, 0.35, 60); /* the bar of the history moves until it is in */
    printf("  history %.2f s  memory %.1f MB", now() - 0.35 - begun,
           of_process(&s, "statm"));
    int64_t bytes = s.bytes;
    for (int i = 0; i < KEYS; i++) {
        double pressed = now();
        if (write(s.fd, "y", 1) != 1)
            exit(1);
        double answered = drain(&s, 0.01, 1);
        for (int k = 0; k < 20 && answered == 0; k++)
            answered = drain(&s, 0.01, 1);
        key[i] = 1e3 * (answered - pressed);
    }
    qsort(key, KEYS, sizeof *key, by_size);
    printf("  key median %.1f ms, worst of %d %.1f ms, %lld bytes each", key[KEYS / 2],
           KEYS, key[KEYS - 1], (long long)((s.bytes - bytes) / KEYS));
    double before = of_process(&s, "stat"), from = now();
    drain(&s, 5, 5);
    printf("  idle %.2f%%\n", 100 * (of_process(&s, "stat") - before) / (now() - from));
    kill(s.pid, SIGTERM);
    waitpid(s.pid, NULL, 0);
    close(s.fd);
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
    must(cx, eti_facts_read(cx, folder, &facts));
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
    char command[300];
    struct et_ctx *cx;
    if (argc > 2)
        records = strtoll(argv[2], NULL, 10);
    snprintf(folder, sizeof folder, "%s/etude-screen.XXXXXX", tmp ? tmp : "/tmp");
    if (et_ctx_new(&cx) != ET_OK || !mkdtemp(folder))
        return 1;
    setenv("XDG_STATE_HOME", folder, 1);
    setenv("ETUDE_CONFIG_DIR", folder, 1);
    write_run(cx);
    printf("%lld records of %d series\n", (long long)records, SERIES);
    measure_program(program, 24, 80);
    measure_program(program, 50, 200);
    measure_frames(cx, 24, 80);
    measure_frames(cx, 50, 200);
    et_ctx_free(&cx);
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    return system(command) == 0 ? 0 : 1;
}
