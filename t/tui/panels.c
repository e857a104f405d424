/* SPDX-License-Identifier: Apache-2.0 */
/* panels.c: what Monitor's panels say of runs that are made up: every boundary of what
 * a number, a sign or a word depends on, on both sides. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/tui/made.h"
#include "tui/format.h"

static struct et_ctx *cx;

static const char facts[] =
    "{\"name\": \"calm-yak\", \"recipe\": \"a/mild.yml\", \"state\": \"running\","
    " \"precision\": \"amp_bf16\", \"seed\": 7, \"eval_interval\": \"1ep\","
    " \"algorithms\": [\"ema\", \"mixup\"]}";

static struct made *
run(void)
{
    struct made *m = made_run(cx, facts);
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

static void
has(const char *text, const char *part, const char *name)
{
    if (!ok(strstr(text, part) != NULL, "%s", name))
        diag("no '%s' in\n%s", part, text);
}

static void
lacks(const char *text, const char *part, const char *name)
{
    if (!ok(strstr(text, part) == NULL, "%s", name))
        diag("'%s' in\n%s", part, text);
}

/* ---- ranks ---- */

static void
own(struct made *m, int rank, double ms)
{
    MADE_SAY(m, ET_RECORD_HEALTH, rank, NULL, {"own_ms", ms});
}

/* The map's sign of the last of N ranks, whose time is MS where the others' is 100. */
static char
heat(int n, double ms)
{
    struct made *m = run();
    for (int i = 0; i < n; i++)
        own(m, i, i == n - 1 ? ms : 100);
    const char *line =
        line_of(made_panel_text(m, tui_monitor_map, n + 2, 60, false), n);
    char sign = line[strlen(line) - 1];
    made_free(&m);
    return sign;
}

static void
test_map(void)
{
    static const struct {
        int n;
        double ms;
        char sign;
        const char *name;
    } rows[] = {
        {3, 104.9, '.', "under 105 % of the median a rank is no slower"},
        {3, 105.1, '-', "above it has the first sign"},
        {3, 114.9, '-', "up to 115 %"},
        {3, 115.1, '+', "above the second"},
        {3, 129.9, '+', "up to 130 %"},
        {3, 130.1, '#', "and above the last"},
        {2, 150, '+', "of two ranks the median is between them"},
        {4, 150, '#', "of four between the middle two"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char got[2] = {heat(rows[i].n, rows[i].ms)}, want[2] = {rows[i].sign};
        is_str(got, want, "%s", rows[i].name);
    }
    struct made *m = run();
    for (int i = 0; i < 12; i++)
        for (int k = 0; k < ETD_TRAIL + 10; k++)
            own(m, i, k < 10 ? 1000 : 100 + (i == 11 && k == ETD_TRAIL + 8 ? 50 : 0));
    struct tui_view v = made_view(m);
    v.m->ranks.top = 3;
    const char *text = made_panel_text(m, tui_monitor_map, 11, 80, false);
    const char *line = line_of(text, 9);
    has(line, " 11 ...", "of many ranks those that are scrolled to have a row");
    is_int((int)strlen(line), 4 + ETD_TRAIL, "with as many batches as are kept");
    is_str(line + strlen(line) - 3, ".#.", "the newest at the right");
    has(line_of(text, 1), "  3 ", "from the first that is shown");
    made_free(&m);
    m = run();
    for (int i = 1; i < 9; i++)
        own(m, 0, 10 * i);
    text = made_panel_text(m, tui_monitor_map, 4, 40, false);
    has(text, "_..--==#", "of one rank the way of its time is drawn");
    has(text, "80ms", "with the newest");
    has(text, "one rank: nothing to compare", "and nothing is compared");
    made_free(&m);
}

/* Ranks are slow by their newest three samples, for a cause. */
static void
test_slow(void)
{
    static const struct {
        double ms[3];
        bool slow;
        const char *name;
    } rows[] = {
        {{116, 116, 116}, true, "a rank over 1.15 times the median is slow"},
        {{114, 116, 116}, false, "not one that was only for two samples"},
        {{116, 116, 114}, false, "nor one that is not any more"},
        {{114, 114, 114}, false, "nor one below"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct made *m = run();
        for (int k = 0; k < 3; k++)
            for (int r = 0; r < 5; r++)
                own(m, r, r == 3 ? rows[i].ms[k] : 100);
        struct tui_view v = made_view(m);
        ok(v.m->n_slow == rows[i].slow && v.m->slowest == (rows[i].slow ? 3 : -1), "%s",
           rows[i].name);
        made_free(&m);
    }
}

/* What the slow one of three ranks has beside the others' numbers: its cause. */
static void
test_causes(void)
{
    static const struct {
        struct et_log_entry slow[2], usual[2];
        const char *cause;
    } rows[] = {
        {{{"data_ms", 30}}, {{"data_ms", 5}}, "its dataloader"},
        {{{"h2d_ms", 30}}, {{"h2d_ms", 5}}, "its copies to the device"},
        {{{"optimizer_ms", 30}}, {{"optimizer_ms", 5}}, "its optimizer"},
        {{{"hooks_ms", 30}}, {{"hooks_ms", 5}}, "its algorithms"},
        {{{"forward_ms", 90}, {"save_ms", 30}},
         {{"forward_ms", 90}, {"save_ms", 0}},
         "its checkpoints"},
        {{{"forward_ms", 90}, {"backward_ms", 1}},
         {{"forward_ms", 60}, {"backward_ms", 1}},
         "its computing"},
        {{{"backward_ms", 90}, {"forward_ms", 1}},
         {{"backward_ms", 60}, {"forward_ms", 1}},
         "its computing"},
        {{{"sm_mhz", 1780}, {"gpu_util", .9}},
         {{"sm_mhz", 2000}, {"gpu_util", .9}},
         "its clock, which is throttled"},
        {{{"sm_mhz", 1820}, {"gpu_util", .9}},
         {{"sm_mhz", 2000}, {"gpu_util", .9}},
         "its computing"},
        {{{"cpu_util", .22}}, {{"cpu_util", .20}}, "its computing"},
        {{{"cpu_util", .20}}, {{"cpu_util", .20}}, "its computing, which stands still"},
        {{{"cpu_util", .2}, {"host_cpu", .96}},
         {{"cpu_util", .2}, {"host_cpu", .96}},
         "the load of its machine"},
        {{{"cpu_util", .2}, {"host_cpu", .94}},
         {{"cpu_util", .2}, {"host_cpu", .94}},
         "its computing, which stands still"},
        {{{"cpu_util", .2}, {"write_mb_s", 16}},
         {{"cpu_util", .2}, {"write_mb_s", 10}},
         "its reading and writing"},
        {{{"cpu_util", .2}, {"read_mb_s", 14}},
         {{"cpu_util", .2}, {"read_mb_s", 10}},
         "its computing, which stands still"},
        {{{"cpu_util", .2}, {"read_mb_s", .9}},
         {{"cpu_util", .2}, {"read_mb_s", .1}},
         "its computing, which stands still"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct made *m = run();
        for (int k = 0; k < 3; k++)
            for (int r = 0; r < 3; r++) {
                const struct et_log_entry *e = r == 1 ? rows[i].slow : rows[i].usual;
                own(m, r, r == 1 ? 130 : 100);
                made_say(m, ET_RECORD_HEALTH, r, NULL, e, e[1].name[0] ? 2 : 1);
            }
        struct tui_view v = made_view(m);
        is_str(v.m->slowest >= 0 ? v.m->rank[v.m->slowest].cause : "none",
               rows[i].cause, "a rank with %s %g for %g is slow for %s",
               rows[i].slow[rows[i].slow[1].name[0] != '\0'].name,
               rows[i].slow[rows[i].slow[1].name[0] != '\0'].value,
               rows[i].usual[rows[i].slow[1].name[0] != '\0'].value, rows[i].cause);
        made_free(&m);
    }
}

static void
test_order(void)
{
    static const struct {
        enum tui_rank_order order;
        const char *want;
    } rows[] = {{TUI_BY_RANK, "0123"},
                {TUI_BY_OWN, "2130"},
                {TUI_BY_UTIL, "1203"},
                {TUI_BY_MEM, "3012"}};
    struct made *m = run();
    MADE_SAY(m, ET_RECORD_HEALTH, 0, NULL, {"cpu_util", .2}, {"rss_gb", 3});
    MADE_SAY(m, ET_RECORD_HEALTH, 1, NULL, {"own_ms", 80}, {"gpu_util", .9},
             {"cpu_util", .1}, {"mem_gb", 2}, {"rss_gb", 9});
    MADE_SAY(m, ET_RECORD_HEALTH, 2, NULL, {"own_ms", 95}, {"cpu_util", .3},
             {"rss_gb", 1});
    MADE_SAY(m, ET_RECORD_HEALTH, 3, NULL, {"own_ms", 60}, {"rss_gb", 4});
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tui_view v = made_view(m);
        v.m->order = rows[i].order;
        v = made_view(m);
        char got[8] = "";
        for (int k = 0; k < v.m->n_ranks && k < 7; k++)
            snprintf(got + k, 2, "%d", v.m->rank[k].number);
        is_str(got, rows[i].want, "ranks by %s: the most first, those without it last",
               tui_rank_order_name(rows[i].order));
    }
    made_free(&m);
}

/* ---- numbers ---- */

static void
test_batch_ms(void)
{
    double mean, p99;
    struct made *m = run();
    made_batches(m, 1, 100, 8);
    tui_batch_ms(m->model, &mean, &p99);
    ok(isnan(mean) && isnan(p99), "one batch has no time yet");
    made_batches(m, 98, 100, 8);
    made_batches(m, 2, 300, 8);
    made_batches(m, 1, 9000, 8);
    tui_batch_ms(m->model, &mean, &p99);
    is_near(mean, (98 * 100 + 2 * 300) / 100., 1e-6,
            "the mean of batches leaves out those that an evaluation lay before");
    is_near(p99, 300, 1e-6, "99 of 100 are not longer than the second longest");
    made_batches(m, 1, 499, 8);
    tui_batch_ms(m->model, &mean, &p99);
    is_near(p99, 300, 1e-6, "five times the median is none of those");
    is_near(tui_samples_per_second(m->model), 8000 / mean, 1e-6,
            "samples a second are by that mean");
    MADE_SAY(m, ET_RECORD_BATCH, 0, NULL, {"throughput/samples_per_sec", 321});
    is_near(tui_samples_per_second(m->model), 321, 0,
            "where a callback measures them its word stands");
    made_free(&m);
    m = run();
    for (int i = 0; i < 9; i++) {
        made_batches(m, 1, 100, 8);
        m->at.t += i % 2 ? 0.4 : 0.9; /* records that did not come */
        m->at.ba += i % 2 ? 4 : 9;
        m->at.sp += i % 2 ? 32 : 72;
    }
    tui_batch_ms(m->model, &mean, &p99);
    is_near(mean, 100, 1e-6, "records that stand for several batches are so counted");
    is_near(p99, 100, 1e-6, "each with its mean");
    is_near(tui_samples_per_second(m->model), 80, 1e-6, "and as many samples a second");
    made_free(&m);
}

/* The panel "now" of a run that has everything, line by line. */
static void
test_numbers(void)
{
    struct made *m = run();
    made_batches(m, 60, 100, 8);
    for (int k = 0; k < 3; k++)
        for (int r = 0; r < 4; r++)
            MADE_SAY(m, ET_RECORD_HEALTH, r, NULL, {"own_ms", r == 2 ? 120 : 90},
                     {"gpu_util", .5}, {"mem_gb", 10 + r}, {"mem_total_gb", 15});
    MADE_SAY(m, ET_RECORD_BATCH, 0, NULL, {"lr-SGD/group0", .05},
             {"l2_norm/grad/global", 1.25}, {"throughput/tokens_per_sec", 5000},
             {"throughput/device/mfu", .5}, {"throughput/device/flops_per_sec", 4e12});
    const char *text = made_panel_text(m, tui_monitor_numbers, 12, 40, false);
    is_str(line_of(text, 1), "| step        100ms  p99 100ms",
           "how long a batch takes");
    is_str(line_of(text, 2), "| samples/s    80.0  20.0 a GPU",
           "samples a second, and how many of them each GPU");
    is_str(line_of(text, 3), "| tokens/s    5,000", "tokens a second");
    is_str(line_of(text, 4), "| lr          .0500", "the rate");
    is_str(line_of(text, 5), "| grad       1.2500  norm", "the gradient's norm");
    is_str(line_of(text, 6), "| memory      13 GB  of 15 GB !",
           "the most memory of a GPU, of how much, and that it is scarce");
    is_str(line_of(text, 7), "| MFU         50.0%  of 8 TF",
           "what part of the GPU's speed is used, of how much");
    is_str(line_of(text, 8), "| ! waits for rank 2 30ms 30%",
           "and for whom all wait, how long, and what part of a step that is");
    made_free(&m);

    m = run();
    made_batches(m, 3, 100, 8);
    MADE_SAY(m, ET_RECORD_HEALTH, 0, NULL, {"own_ms", 90}, {"rss_gb", 12.7},
             {"ram_total_gb", 15});
    text = made_panel_text(m, tui_monitor_numbers, 12, 40, false);
    has(text, "memory      13 GB  of 15 GB\n", "85 % of the memory is not scarce");
    lacks(text, " a rank", "one rank has no share of its own");
    lacks(text, "grad", "what the run does not say has no line,");
    has(text, "lr              -", "but the rate has one");
    made_free(&m);
}

static void
test_step(void)
{
    struct made *m = run();
    made_batches(m, 20, 100, 8);
    const char *text = made_panel_text(m, tui_monitor_step, 8, 60, false);
    has(text, "ranks have not said it yet", "no rank has said its parts");
    for (int r = 0; r < 2; r++)
        MADE_SAY(m, ET_RECORD_HEALTH, r, NULL, {"own_ms", r ? 90 : 70},
                 {"data_ms", r ? 30 : 10}, {"h2d_ms", .0004}, {"wait_ms", r ? 4 : 6},
                 {"hooks_ms", 5});
    text = made_panel_text(m, tui_monitor_step, 8, 60, false);
    has(line_of(text, 0), "where the step goes, 100ms", "the step has its time");
    has(line_of(text, 1), "data wait             20ms", "the median of each part");
    has(line_of(text, 1), "20%", "and what part of the step it is");
    has(line_of(text, 2), "compute               55ms",
        "what is none of the parts of own time is computing");
    has(line_of(text, 3), "wait for ranks       5.0ms", "others are waited for");
    has(line_of(text, 4), "algorithms           5.0ms", "algorithms take their time");
    has(line_of(text, 5), "other                 15ms",
        "and what no part explains is told as well");
    lacks(text, "h2d", "what takes no time has no line");
    made_free(&m);
}

/* ---- the lines above ---- */

static const char *
status(struct made *m, int cols)
{
    static char line[512];
    struct tui_grid g;
    char *text = NULL;
    size_t n;
    tui_app_resize(m->app, 36, cols);
    const struct tui_view v = made_view(m);
    FILE *f = open_memstream(&text, &n);
    if (!f || tui_grid_init(&g, cx, &tui_glyphs_ascii, 36, cols) != ET_OK)
        bail("no memory");
    const struct tui_pane all = tui_pane_of(&g);
    tui_monitor_status(&v, &all);
    tui_grid_print(&g, f);
    fclose(f);
    tui_grid_release(&g);
    snprintf(line, sizeof line, "%.*s", (int)strcspn(text, "\n"), text);
    free(text);
    return line;
}

/* LINE without its right end, that blanks part from the rest. */
static const char *
without_end(const char *line)
{
    static char text[512];
    const char *end = strstr(line, "      ");
    snprintf(text, sizeof text, "%.*s", end ? (int)(end - line) : 0, line);
    return text;
}

static void
test_status(void)
{
    struct made *m = run();
    MADE_SAY(m, ET_RECORD_RUN, 0, "running", {"run/batch_size", 64},
             {"run/grad_accum", 4}, {"run/epoch_batches", 100});
    made_batches(m, 150, 100, 64);
    MADE_SAY(m, ET_RECORD_HEALTH, 1, NULL, {"own_ms", 90});
    made_say(m, ET_RECORD_CHECKPOINT, 0, "ep1-ba150", NULL, 0);
    m->at.t += 84.5;
    made_state(m, "evaluating");
    const char *line = status(m, 200);
    has(line, "  * live", "and ends with how far away it is");
    is_str(without_end(line),
           " mild    * EVALUATING  00:01:39   2 ranks   bf16   seed 7   batch 64 = 8 x "
           "2 x "
           "4   ckpt ep1 1m24s ago   2 algorithms",
           "the first line says what the run is");
    made_free(&m);

    m = made_run(cx, "{\"model\": \"mlp\", \"precision\": \"fp32\"}");
    made_open(m, TUI_IN_monitor, 36, 120);
    made_state(m, "running");
    MADE_SAY(m, ET_RECORD_RUN, 0, "running", {"run/batch_size", 64});
    has(status(m, 120), " mlp ", "a run without a recipe is called by its model");
    has(status(m, 120), "1 rank   fp32   batch 64 ", "one rank has all of the batch");
    made_free(&m);
}

static void
test_link(void)
{
    struct made *m = run();
    m->app->config.is_dump = false;
    m->source.heard = tui_now(m->app);
    m->source.rtt_ms = 12;
    has(status(m, 120), "* live", "a run that is heard of is live");
    has(status(m, 180), "* live  rtt 12ms", "and where there is room how far it is");
    m->source.heard = tui_now(m->app) - 7;
    m->source.link = TUI_LINK_CONNECTING;
    has(status(m, 120), "connecting, 7s", "before anybody answers it is said how long");
    m->source.link = TUI_LINK_STALE;
    has(status(m, 120), "stale 7s", "what is silent is stale");
    m->source.why = "paused";
    has(status(m, 120), "stale 7s: paused", "with why, where that is known");
    m->source.link = TUI_LINK_LOST;
    m->source.retry = tui_now(m->app) + 9.6;
    has(status(m, 120), "! no link since ", "a lost line is said,");
    has(status(m, 120), "retry in 10s, R now", "and when it is tried again");
    m->source.link = TUI_LINK_LIVE;
    m->app->is_frozen = true;
    has(status(m, 120), "frozen ", "a view that is frozen says so");
    snprintf(m->source.problem, sizeof m->source.problem, "bad record");
    has(status(m, 120), "x damaged", "a log that cannot be read is damaged");
    m->source.is_refused = true;
    has(status(m, 120), "x refused", "who is turned away is refused");
    made_free(&m);
}

static void
test_eta(void)
{
    char buf[64];
    struct made *m = run();
    struct tui_view v = made_view(m);
    is_str(tui_eta_text(&v, true, buf), "ETA not known yet",
           "at first nothing is known");
    MADE_SAY(m, ET_RECORD_RUN, 0, "running", {"run/batches", 1000});
    made_batches(m, 400, 500, 8);
    v = made_view(m);
    is_str(tui_eta_text(&v, true, buf), "ETA 5m00s (14:04)",
           "600 batches of half a second are five minutes");
    is_str(tui_eta_text(&v, false, buf), "ETA 5m00s", "without the clock as well");
    v.now += 60;
    is_str(tui_eta_text(&v, false, buf), "ETA 4m00s", "a minute later they are four");
    v.now += 600;
    is_str(tui_eta_text(&v, false, buf), "ETA 0s", "and never less than nothing");
    MADE_SAY(m, ET_RECORD_RUN, 0, "running", {"run/batches", 200000});
    v = made_view(m);
    is_str(tui_eta_text(&v, true, buf), "ETA ~1d03h (11-21)",
           "what is more than a day away has a date, and ~ until it has settled");
    made_state(m, "paused");
    m->at.t += 130;
    made_line(m, 0, ET_LOG_INFO, "x");
    v = made_view(m);
    is_str(tui_eta_text(&v, true, buf), "paused 2m10s",
           "of a run that is paused it is said since when");
    made_state(m, "stopped");
    v = made_view(m);
    is_str(tui_eta_text(&v, true, buf), "", "of one that has ended nothing");
    made_free(&m);
}

static void
test_places(void)
{
    static const struct {
        int64_t ba;
        double per;
        const char *want;
    } rows[] = {{0, 100, "ep0"},       {150, 100, "ep1.5"},    {1, 3, "ep0.33"},
                {2, 3, "ep0.67"},      {1500, NAN, "1,500ba"}, {300, 100, "ep3"},
                {99999, 100, "ep1000"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[TUI_NUMBER];
        is_str(tui_place_text(rows[i].ba, rows[i].per, text), rows[i].want,
               "%lld batches of %g are %s", (long long)rows[i].ba, rows[i].per,
               rows[i].want);
    }
}

/* ---- events and algorithms ---- */

static void
test_events(void)
{
    struct made *m = run();
    m->at.ba = 5;
    MADE_SAY(m, ET_RECORD_HEALTH, 3, NULL, {"own_ms", 90});
    made_state(m, "evaluating");
    MADE_SAY(m, ET_RECORD_EVAL, 0, "eval", {"metrics/eval/Accuracy", .5});
    made_say(m, ET_RECORD_CHECKPOINT, 0, "begun ep1-ba5", NULL, 0);
    made_say(m, ET_RECORD_CHECKPOINT, 0, "saved ep1-ba5", NULL, 0);
    made_state(m, "running");
    made_line(m, 3, ET_LOG_WARN, "slow storage");
    made_line(m, 0, ET_LOG_ERROR, "gone");
    made_say(m, ET_RECORD_COMMAND, 0, "me pause", NULL, 0);
    made_say(m, ET_RECORD_ANNOTATION, 0, "mind this", NULL, 0);
    made_say(m, ET_RECORD_RESUME, 0, "from ep1-ba5", NULL, 0);
    made_state(m, "paused");
    const char *text = made_panel_text(m, tui_monitor_events, 12, 80, false);
    static const char *const want[] = {
        "state paused",        "resume from ep1-ba5",
        "note  mind this",     "cmd   me pause",
        "error gone",          "warn  rank 3  slow storage",
        "ckpt  saved ep1-ba5", "eval  ep 0  Accuracy .5000"};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        has(line_of(text, 1 + (int)i), want[i],
            "an event has its kind and its text, the newest first");
    lacks(text, "begun", "that a checkpoint is begun is none, nor that a run goes on");
    lacks(text, "running", "which says itself");
    struct tui_view v = made_view(m);
    static const struct {
        const char *filter, *shown;
        int n;
    } filters[] = {
        {"level=warn | level=error", "slow", 2},
        {"rank=3", "slow", 1},
        {"kind=command", "pause", 1},
        {"ba=5", "begun", 11},
        {"text=gone", "gone", 1},
        {"note", "mind", 1},
        {"STORAGE", "slow", 1},
        {"kind=checkpoint", "begun", 2},
    };
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
        tui_sieve_set(m->app, &v.m->sieve, filters[i].filter);
        text = made_panel_text(m, tui_monitor_events, 20, 80, false);
        int n = 0;
        for (int k = 1; *line_of(text, k); k++)
            n++;
        if (!ok(n == filters[i].n && strstr(text, filters[i].shown), "'%s' leaves %d",
                filters[i].filter, filters[i].n))
            diag("%d:\n%s", n, text);
    }
    tui_sieve_set(m->app, &v.m->sieve, "rank=9");
    has(made_panel_text(m, tui_monitor_events, 20, 80, false),
        "no event passes the filter", "where none passes it is said");
    made_free(&m);
}

static void
test_algorithms(void)
{
    struct made *m = run();
    MADE_SAY(m, ET_RECORD_ALGORITHM, 0, "ema", {"fired", 2000}, {"applied", 1500},
             {"ms", .25}, {"off", 1});
    const char *text = made_panel_text(m, tui_monitor_algorithms, 4, 80, false);
    has(line_of(text, 1),
        "  ema                   off, applied 1,500 of 2,000   0.2ms/step",
        "an algorithm says how often it has acted, and that it is off");
    has(line_of(text, 2), "  mixup                 on", "one that said nothing is on");
    has(made_panel_text(m, tui_monitor_algorithms, 2, 80, false), "and 2 more",
        "those that have no room are counted");
    made_free(&m);
}

/* ---- pages in place of a run that has said nothing ---- */

static void
test_refused(void)
{
    static const struct {
        const char *code, *ways[3];
    } rows[] = {
        {"NO_RUN",
         {"4  enter on the worker lists the runs that it has",
          "3  the runs of this machine"}},
        {"KEY",
         {"etude worker key  here prints the key of this machine",
          "etude worker allow KEY  there lets it in; then R tries again",
          "4  k shows this machine's key and the one of the host"}},
        {"VERSION",
         {"etude version  here and there: the older one is to be updated",
          "4  the workers, with their versions"}},
        {"FULL", {"R  try again", "4  t tests the worker"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct made *m = made_run(cx, facts);
        m->source.is_refused = true;
        snprintf(m->source.problem, sizeof m->source.problem, "because of 7");
        snprintf(m->source.code, sizeof m->source.code, "%s", rows[i].code);
        made_open(m, TUI_IN_monitor, 24, 100);
        const char *text = made_screen(m);
        is_str(line_of(text, 2), " calm-yak cannot be shown.",
               "a run that is refused (%s) has a page", rows[i].code);
        is_str(line_of(text, 3), " because of 7", "which says why,");
        for (int k = 0; k < 3; k++) {
            char want[100] = "";
            if (rows[i].ways[k])
                snprintf(want, sizeof want, " %s %s", k ? " " : ">", rows[i].ways[k]);
            is_str(line_of(text, 5 + k), want, "and what can be done (%d)", k);
        }
        char first[100];
        snprintf(first, sizeof first, " > %s", rows[i].ways[0]);
        m->source.problem[0] = '\0';
        is_str(line_of(made_screen(m), 4), first,
               "without a reason the ways stand a line higher");
        made_free(&m);
    }
}

static void
test_waiting(void)
{
    struct made *m = made_run(cx, facts);
    m->source.link = TUI_LINK_CONNECTING;
    made_open(m, TUI_IN_monitor, 24, 100);
    m->source.class->progress(&m->source, &(int64_t){0}, &(int64_t){0});
    const char *text = made_screen(m);
    is_str(line_of(text, 2), " calm-yak has not answered yet.",
           "a run that has not answered has a page, too");
    is_str(line_of(text, 3), " Its history comes: 100% of it are here.",
           "with how much of it has come");
    is_str(line_of(text, 5), " > R  try at once", "where one can try at once");
    is_str(line_of(text, 6), "   4  the workers: t tests one",
           "or look at the workers");
    made_free(&m);
}

static void
test_digits(void)
{
    static const struct {
        int ranks, digits;
    } rows[] = {{1, 1}, {10, 1}, {11, 2}, {100, 2}, {101, 3}, {1000, 3}, {1001, 4}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct made *m = run();
        own(m, rows[i].ranks - 1, 100);
        is_int(tui_rank_digits(m->model), rows[i].digits,
               "the last of %d ranks has %d digits", rows[i].ranks, rows[i].digits);
        made_free(&m);
    }
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    setenv("TZ", "UTC", 1);
    test_map();
    test_slow();
    test_causes();
    test_order();
    test_batch_ms();
    test_numbers();
    test_step();
    test_status();
    test_link();
    test_eta();
    test_places();
    test_events();
    test_algorithms();
    test_refused();
    test_waiting();
    test_digits();
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
