/* SPDX-License-Identifier: Apache-2.0 */
/* ranks.c: four ranks on two machines beside each other, each with its own numbers. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/tui/made.h"

static struct et_ctx *cx;

static struct made *
run(void)
{
    struct made *m = made_run(cx, "{}");
    made_open(m, TUI_IN_monitor, 36, 120);
    made_state(m, "running");
    return m;
}

/* Line I of TEXT, from 0. */
static const char *
line_of(const char *text, int i)
{
    static char line[512];
    for (; i > 0 && *text; i--)
        text += strcspn(text, "\n") + 1;
    snprintf(line, sizeof line, "%.*s", (int)strcspn(text, "\n"), text);
    return line;
}

/* ---- slow ranks ---- */

static const char *
cause_of(struct made *m)
{
    static char text[128];
    const struct tui_view v = made_view(m);
    snprintf(text, sizeof text, "%s",
             v.m->slowest >= 0 ? v.m->rank[v.m->slowest].cause : "none");
    return text;
}

/* Three ranks of which the second is slow, with their own times and processors. */
static struct made *
three(void)
{
    struct made *m = run();
    for (int k = 0; k < 3; k++)
        for (int r = 0; r < 3; r++)
            MADE_SAY(m, ET_RECORD_HEALTH, r, NULL, {"own_ms", r == 1 ? 130 : 100},
                     {"cpu_util", .2});
    return m;
}

static void
test_causes(void)
{
    static const double part[2][3][2] = {
        {{8, 2}, {4, 12}, {8, 2}}, /* reads and writes more in all than the others */
        {{1.2, 0},
         {16, 0},
         {14, 0}} /* reads more than the least of them, but not than the median */
    };
    static const char *const want[] = {"its reading and writing",
                                       "its computing, which stands still"};
    struct made *m;
    for (int i = 0; i < 2; i++) {
        m = three();
        for (int r = 0; r < 3; r++)
            MADE_SAY(m, ET_RECORD_HEALTH, r, NULL, {"read_mb_s", part[i][r][0]},
                     {"write_mb_s", part[i][r][1]});
        is_str(cause_of(m), want[i],
               "reading and writing slow a rank down where they exceed the median");
        made_free(&m);
    }
    m = three();
    MADE_SAY(m, ET_RECORD_HEALTH, 0, NULL, {"host_cpu", .96});
    is_str(cause_of(m), "the load of its machine",
           "the load of a machine slows a rank down where any rank of it reports it");
    made_free(&m);
    m = three();
    for (int r = 0; r < 3; r++)
        MADE_SAY(m, ET_RECORD_HEALTH, r, NULL, {"data_ms", r == 1 ? 25 : 5},
                 {"hooks_ms", r == 1 ? 10 : 5});
    is_str(cause_of(m), "its dataloader",
           "of two parts that grew, the one that grew most slows a rank down");
    made_free(&m);
}

static void
test_slowest(void)
{
    static const double own[] = {120, 140, 130, 100, 100, 100, 100};
    struct made *m = run();
    for (int k = 0; k < 3; k++)
        for (int r = 0; r < 7; r++)
            MADE_SAY(m, ET_RECORD_HEALTH, r, NULL, {"own_ms", own[r]});
    const struct tui_view v = made_view(m);
    is_int(v.m->n_slow, 3, "three of seven ranks are slow");
    is_int(v.m->slowest, 1, "the rank with the longest own time is the slowest");
    is_near(v.m->rank[1].over, 1.4, 1e-6,
            "a slow rank has the factor by which it exceeds the median");
    made_free(&m);
}

static void
test_ties(void)
{
    static const double own[] = {80, 95, 80, 95, NAN};
    struct made *m = run();
    char got[8] = "";
    for (int r = 0; r < 5; r++)
        MADE_SAY(m, ET_RECORD_HEALTH, r, NULL, {"own_ms", own[r]}, {"data_ms", 1});
    struct tui_view v = made_view(m);
    v.m->order = TUI_BY_OWN;
    v = made_view(m);
    for (int k = 0; k < v.m->n_ranks && k < 7; k++)
        snprintf(got + k, 2, "%d", v.m->rank[k].number);
    is_str(got, "13024", "ranks with equal own times stand in order of their numbers");
    made_free(&m);
}

/* ---- the lines ---- */

/* Four ranks; the first rank of each machine reports the machine's numbers. */
static struct made *
four(bool has_gpus)
{
    struct made *m = run();
    for (int k = 0; k < 3; k++)
        for (int r = 0; r < 4; r++) {
            MADE_SAY(m, ET_RECORD_HEALTH, r, NULL, {"own_ms", r == 3 ? 130 : 97 + r},
                     {"data_ms", r == 3 ? 40.25 : 3.5 + r}, {"wait_ms", 30 + 10 * r},
                     {"hooks_ms", 1.5 * r}, {"ba_per_s", 8.94 + r},
                     {"cpu_util", .11 * (1 + r)}, {"rss_gb", 8 * (1 + r)},
                     {"read_mb_s", .04 + r}, {"write_mb_s", 1200 * r});
            if (has_gpus)
                MADE_SAY(m, ET_RECORD_HEALTH, r, NULL, {"gpu_util", .9 - .2 * r},
                         {"mem_gb", 20 + 10 * r}, {"mem_total_gb", 60},
                         {"temp_c", 5 + 31 * r}, {"power_w", 9.94 + 100 * r},
                         {"sm_mhz", 2000 - r});
        }
    for (int r = 0; r < 4; r += 2)
        MADE_SAY(m, ET_RECORD_HEALTH, r, NULL, {"host_cpu", .3 + .1 * r},
                 {"ram_gb", 20 + r}, {"ram_total_gb", 64 + 32 * r},
                 {"net_mb_s", 7 + r});
    MADE_SAY(m, ET_RECORD_HEALTH, 1, NULL, {"net_mb_s", 500});
    return m;
}

/* Checks the lines of all ranks, without the rule behind a title and without empty
 * lines. */
static void
lines_are(struct made *m, enum tui_rank_columns set, int rows, int cols,
          const char *const *want, const char *name)
{
    struct tui_view v = made_view(m);
    v.m->columns = set;
    const char *text = made_panel_text(m, tui_monitor_ranks, rows, cols, false);
    for (int i = 0, y = 0; want[i] && y < rows; y++) {
        char line[512];
        snprintf(line, sizeof line, "%s", line_of(text, y));
        size_t n = strlen(line);
        while (n > 0 && strchr(" -", line[n - 1]))
            line[--n] = '\0';
        if (n > 0)
            is_str(line, want[i], "%s: line %d", name, i);
        i += n > 0;
    }
}

static void
test_lines(void)
{
    static const struct {
        enum tui_rank_columns set;
        int rows, cols;
        const char *name, *want[7];
    } rows[] = {
        {TUI_COLUMNS_GPU,
         46,
         200,
         "a wide panel of GPUs",
         {"-- ranks     gpu util          memory GB                    temp  power    "
          "sm clk  own time    skew   state",
          " 0 [##################..] 90%  [######............]  20/60    5C   9.9W   "
          "2000MHz    97.0ms   -1.5%   ok",
          " 1 [##############......] 70%  [#########.........]  30/60   36C   110W   "
          "1999MHz    98.0ms   -0.5%   ok",
          " 2 [##########..........] 50%  [############......]  40/60   67C   210W   "
          "1998MHz    99.0ms   +0.5%   ok",
          "!3 [######..............] 30%  [###############...]  50/60   98C   310W   "
          "1997MHz   130.0ms  +32.0%   slow: its dataloader",
          " hosts  cpu [########............] 40%   ram [####..............] 42/192 GB "
          "  disk read 6.2 MB/s   net 16 MB/s",
          NULL}},
        {TUI_COLUMNS_HOST,
         46,
         200,
         "a wide panel of processes",
         {"-- ranks     cpu               ram                          data   algo     "
          "speed  own time    skew   state",
          " 0 [##..................] 11%  [##................]   8.0G 3.5ms  0.0ms   "
          "8.9ba/s    97.0ms   -1.5%   ok",
          " 1 [####................] 22%  [#####.............]    16G 4.5ms  1.5ms   "
          "9.9ba/s    98.0ms   -0.5%   ok",
          " 2 [#######.............] 33%  [###...............]    24G 5.5ms  3.0ms    "
          "11ba/s    99.0ms   +0.5%   ok",
          "!3 [#########...........] 44%  [#####.............]    32G  40ms  4.5ms    "
          "12ba/s   130.0ms  +32.0%   slow: its dataloader",
          " hosts  cpu [########............] 40%   ram [####..............] 42/192 GB "
          "  disk read 6.2 MB/s   net 16 MB/s",
          NULL}},
        {TUI_COLUMNS_IO,
         46,
         200,
         "a wide panel of waits and files",
         {"-- ranks     waits for data    waits for ranks              read  write   "
          "net B/s  own time    skew   state",
          " 0 [#...................]  3%  [####..............]    24%     0      0     "
          " 7.0M    97.0ms   -1.5%   ok",
          " 1 [#...................]  3%  [#####.............]    29%  1.0M   1.2G     "
          " 500M    98.0ms   -0.5%   ok",
          " 2 [#...................]  4%  [######............]    34%  2.0M   2.4G     "
          " 9.0M    99.0ms   +0.5%   ok",
          "!3 [####................] 21%  [######............]    32%  3.0M   3.6G     "
          "    -   130.0ms  +32.0%   slow: its dataloader",
          " hosts  cpu [########............] 40%   ram [####..............] 42/192 GB "
          "  disk read 6.2 MB/s   net 16 MB/s",
          NULL}},
        {TUI_COLUMNS_GPU,
         5,
         80,
         "a narrow panel of GPUs",
         {"-- ranks ---------------------- util ------------------------------ mem --- "
          "own",
          " 0 [########################...] 90% [########................]  20/60G    "
          "97ms",
          " 1 [###################........] 70% [############............]  30/60G    "
          "98ms",
          " 2 [##############.............] 50% [################........]  40/60G    "
          "99ms",
          "!3 [########...................] 30% [####################....]  50/60G   "
          "130ms",
          NULL}},
        {TUI_COLUMNS_HOST,
         5,
         80,
         "a narrow panel of processes",
         {"-- ranks ----------------------- cpu ------------------------------ ram --- "
          "own",
          " 0 [###........................] 11% [###.....................]    8.0G    "
          "97ms",
          " 1 [######.....................] 22% [######..................]     16G    "
          "98ms",
          " 2 [#########..................] 33% [#####...................]     24G    "
          "99ms",
          "!3 [############...............] 44% [######..................]     32G   "
          "130ms",
          NULL}},
        {TUI_COLUMNS_IO,
         5,
         80,
         "a narrow panel of waits and files",
         {"-- ranks ---------------------- data --------------------- read --- net --- "
          "own",
          " 0 [#..........................]  3%                          0    7.0M    "
          "97ms",
          " 1 [#..........................]  3%                       1.0M    500M    "
          "98ms",
          " 2 [#..........................]  4%                       2.0M    9.0M    "
          "99ms",
          "!3 [######.....................] 21%                       3.0M       -   "
          "130ms",
          NULL}},
        {TUI_COLUMNS_GPU,
         5,
         39,
         "a panel of GPUs with one gauge",
         {"-- ranks ------- util ---- mem --- own",
          " 0 [###########.] 90%   20/60G    97ms",
          " 1 [########....] 70%   30/60G    98ms",
          " 2 [######......] 50%   40/60G    99ms",
          "!3 [####........] 30%   50/60G   130ms", NULL}},
        {TUI_COLUMNS_IO,
         5,
         39,
         "a panel of waits with one gauge",
         {"-- ranks ------- data ---- net --- own",
          " 0 [#...........]  3%     7.0M    97ms",
          " 1 [#...........]  3%     500M    98ms",
          " 2 [#...........]  4%     9.0M    99ms",
          "!3 [###.........] 21%        -   130ms", NULL}},
        {TUI_COLUMNS_GPU,
         3,
         80,
         "a panel too low for all ranks",
         {"-- ranks ---------------------- util ------------------------------ mem --- "
          "own",
          " 0 [########################...] 90% [########................]  20/60G    "
          "97ms",
          " 3 more   own time: min 97ms  median 98ms  max 130ms", NULL}},
    };
    struct made *m = four(true);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        lines_are(m, rows[i].set, rows[i].rows, rows[i].cols, rows[i].want,
                  rows[i].name);
    made_free(&m);
    m = four(false);
    lines_are(m, TUI_COLUMNS_GPU, 46, 200, rows[1].want,
              "a panel of GPUs for ranks that have none");
    made_free(&m);
}

/* Full memory and slow ranks have the colour of warnings. */
static void
test_roles(void)
{
    struct made *m = four(true);
    MADE_SAY(m, ET_RECORD_HEALTH, 0, NULL, {"mem_gb", 50.9});
    MADE_SAY(m, ET_RECORD_HEALTH, 1, NULL, {"mem_gb", 51.1});
    struct tui_view v = made_view(m);
    v.m->columns = TUI_COLUMNS_GPU;
    const char *text = made_panel_text(m, tui_monitor_ranks, 5, 39, true);
    const char *roles = strstr(text, "\n 1  ") + 1;
    is_str(line_of(roles, 1),
           " 2  dim 4  bar_low 5-8  bar 9-12  bar_high 13-15  track 16  dim 17",
           "a GPU's memory that has room has no colour of warnings");
    is_str(line_of(roles, 2),
           " 3  dim 4  bar_low 5-8  bar 9-12  track 13-16  dim 17  warning 25-30",
           "a GPU's memory that is nearly full has the colour of warnings");
    is_str(line_of(roles, 4),
           " 5  warning 1-2  dim 4  bar_low 5-8  track 9-16  dim 17  warning 34-38",
           "a slow rank has the colour of warnings");
    made_free(&m);
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    test_causes();
    test_slowest();
    test_ties();
    test_lines();
    test_roles();
    et_ctx_free(&cx);
    return done();
}
