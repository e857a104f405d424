/* SPDX-License-Identifier: Apache-2.0 */
/* Progress: the exact lines of UX.md section 2. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/fixture.h"

#include "core/loggers/progress.h"
#include "etude/run.h"

static char *text; /* what the last progress wrote */
static size_t length;
static FILE *out;

static struct et_callback *
start(struct et_ctx *cx, enum et_progress_kind kind, struct et_time every, int columns)
{
    struct et_callback *c;
    free(text);
    text = NULL;
    out = open_memstream(&text, &length);
    const struct et_progress p = {kind, out, every, columns};
    need(cx, et_progress_new(cx, &p, &c));
    return c;
}

static const char *
finish(struct et_callback **c)
{
    (*c)->type->close(*c);
    et_callback_free(c);
    fclose(out);
    return text;
}

/* The line that follows, N lines on; without its newline. */
static const char *
line(int n)
{
    static char buf[1024];
    const char *p = text;
    for (int i = 0; i < n && p; i++) {
        p = strchr(p, '\n');
        p += p != NULL;
    }
    snprintf(buf, sizeof buf, "%.*s", p ? (int)strcspn(p, "\n") : 0, p ? p : "");
    return buf;
}

static void
fire(struct et_callback *c, enum et_event event, struct et_state *s)
{
    if (c->type->events & (UINT64_C(1) << event))
        need(s->cx, c->type->run(c, event, s, s->log));
}

/* Six epochs of 16 are done and 74 batches; the next one ends after 75/8.4 seconds. */
static void
place(struct et_state *s)
{
    s->timestamp = (struct et_timestamp){
        .epoch = 6,
        .batch = 6 * 625 + 75,
        .sample = 7833600,
        .batch_in_epoch = 75,
        .sample_in_epoch = 75 * 2048,
        .epoch_wct = 75 / 8.4,
        .total_wct = 500,
    };
    s->train_len = s->dataloader_len = 625;
    s->max_duration = ET_EPOCHS(16);
    s->loss_value = 0.81234;
    s->dataloader_label = "train";
    et_log_emit(s->log, ET_RECORD_METRIC, &s->timestamp, NULL);
    et_log_metric(s->log, "loss/train/total", s->loss_value);
    et_log_metric(s->log, "lr-SGD/group0", 0.18341);
    et_log_metric(s->log, "throughput/samples_per_sec", 17210.4);
    et_log_metric(s->log, "memory/peak_allocated_mem", 61.04);
}

/* One batch earlier, so that there is a rate: 776 seconds are left after the next. */
static void
place_before(struct et_state *s)
{
    place(s);
    s->timestamp.batch--;
    s->timestamp.batch_in_epoch--;
    s->timestamp.total_wct -= 776.4 / (10000 - 3825);
}

static void
place_eval(struct et_state *s)
{
    place(s);
    s->dataloader_label = "eval";
    s->eval_timestamp.total_wct = 4.1;
    et_log_emit(s->log, ET_RECORD_METRIC, &s->timestamp, NULL);
    et_log_metric(s->log, "metrics/eval/Accuracy", 0.7212);
    et_log_metric(s->log, "metrics/eval/CrossEntropy", 1.1022);
}

/* That the run ends at S, or begins. */
static const struct et_run_notice *
notice(const struct et_state *s)
{
    static struct et_run_notice n;
    n = (struct et_run_notice){
        .name = "brisk-otter",
        .directory = "runs/x",
        .state = "diverged",
        .at_end = s,
        .exit_code = 3,
    };
    return &n;
}

static void
test_plain(struct et_ctx *cx, struct et_state s)
{
    struct et_callback *c = start(cx, ET_PROGRESS_PLAIN, ET_BATCHES(1), 0);
    place_before(&s);
    fire(c, ET_EVENT_BATCH_END, &s);
    place(&s);
    fire(c, ET_EVENT_BATCH_END, &s);
    place_eval(&s);
    fire(c, ET_EVENT_EVAL_END, &s);
    s.timestamp.epoch = 7;
    s.timestamp.batch_in_epoch = 0;
    fire(c, ET_EVENT_EPOCH_END, &s);
    fire(c, ET_EVENT_FIT_END, &s);
    et_progress_notice(c, notice(&s));
    c->type->text(c, ET_LOG_WARN, "red \033[31m");
    et_progress_notice(c, notice(NULL));
    finish(&c);
    const char *stamp = line(1);
    ok(strlen(stamp) > 21 && stamp[4] == '-' && stamp[10] == 'T' && stamp[19] == 'Z',
       "a plain line begins with the time in UTC");
    is_str(line(0) + 20,
           " info train ep=6 ba=74/625 total=38% loss/train=0.8123 lr=0.1834 "
           "samples/s=17210 "
           "mem=61.0G eta=-",
           "before the second batch the end is not known");
    is_str(line(1) + 20,
           " info train ep=6 ba=75/625 total=38% loss/train=0.8123 lr=0.1834 "
           "samples/s=17210 "
           "mem=61.0G eta=12m56s",
           "a line of training as the manual shows it");
    is_str(line(2) + 20, " info eval ep=6 ba=3825 accuracy=0.7212 ce=1.1022 time=4s",
           "an evaluation, under short labels");
    is_str(line(3) + 20, " info epoch ep=7 ba=3825 total=43% loss/train=0.8123 time=8s",
           "an epoch, with the seconds it took");
    is_str(line(4) + 20,
           " info end brisk-otter diverged ep=7 ba=3825 total=43% loss/train=0.8123 "
           "time=8m20s",
           "the end, with those of the run");
    is_str(line(5) + 20, " warn red \\x1b[31m",
           "lines of the log, with no control byte");
    is_str(line(6) + 20, " info start brisk-otter in runs/x",
           "the start, and where it is");
    is_str(line(7), "", "and nothing else");
}

/* How fast samples come in an epoch, by the log or the clock, and the memory. */
static void
test_plain_numbers(struct et_ctx *cx, struct et_state s)
{
    static const struct {
        int64_t samples;
        double seconds, logged, gb; /* of the epoch; NaN: not in the log */
        const char *shows;
    } row[] = {
        {40, 8, NAN, NAN, " lr=0.2500 samples/s=5.00 eta=-"},
        {80, 8, NAN, 0.0625, " lr=0.2500 samples/s=10 mem=62M eta=-"},
        {400, 8, NAN, 1, " lr=0.2500 samples/s=50 mem=1.0G eta=-"},
        {400, 8, 0.5, 0.999, " lr=0.2500 samples/s=0.50 mem=999M eta=-"},
        {0, 0, NAN, 61.04, " lr=0.2500 mem=61.0G eta=-"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct et_callback *c = start(cx, ET_PROGRESS_PLAIN, ET_BATCHES(1), 0);
        place_before(&s);
        s.timestamp.sample_in_epoch = row[i].samples;
        s.timestamp.epoch_wct = row[i].seconds;
        et_log_emit(s.log, ET_RECORD_METRIC, &s.timestamp, NULL);
        et_log_metric(s.log, "lr-SGD/group0", 0.25);
        et_log_metric(s.log, "lr-SGD/group1", 0.125);
        if (!isnan(row[i].logged))
            et_log_metric(s.log, "throughput/samples_per_sec", row[i].logged);
        if (!isnan(row[i].gb))
            et_log_metric(s.log, "memory/peak_allocated_mem", row[i].gb);
        fire(c, ET_EVENT_BATCH_END, &s);
        finish(&c);
        const char *lr = strstr(line(0), " lr=");
        is_str(lr ? lr : line(0), row[i].shows, "%d samples in %g s",
               (int)row[i].samples, row[i].seconds);
    }
    struct et_callback *c = start(cx, ET_PROGRESS_PLAIN, ET_BATCHES(1), 0);
    place(&s);
    fire(c, ET_EVENT_FIT_END, &s);
    et_progress_notice(c, notice(&s));
    finish(&c);
    is_str(line(0) + 20,
           " info end brisk-otter diverged ep=6 ba=3825 total=38% time=8m20s",
           "who has trained no batch has no loss");
}

static void
test_every(struct et_ctx *cx, struct et_state s)
{
    struct et_callback *c = start(cx, ET_PROGRESS_PLAIN, ET_BATCHES(50), 0);
    place(&s);
    for (int i = 0; i < 120; i++, s.timestamp.batch++)
        fire(c, ET_EVENT_BATCH_END, &s);
    finish(&c);
    is_str(line(3), "",
           "every 50 batches: three lines in 120, the first batch's among them");
    ok(line(2)[0] != '\0', "not fewer");
    c = start(cx, ET_PROGRESS_PLAIN, ET_TIME_UNSET, 0);
    for (int i = 0; i < 120; i++)
        fire(c, ET_EVENT_BATCH_END, &s);
    own_clock(cx)->now += 29;
    fire(c, ET_EVENT_BATCH_END, &s);
    own_clock(cx)->now += 1;
    fire(c, ET_EVENT_BATCH_END, &s);
    finish(&c);
    ok(line(1)[0] && !line(2)[0], "without a wish: a line, then none for 30 seconds");
    is_int(strtol(line(1) + 17, NULL, 10) - strtol(line(0) + 17, NULL, 10), 30,
           "until there is another");
    const struct et_progress wrong = {ET_PROGRESS_PLAIN, stderr, ET_EPOCHS(1), 0};
    is_int(et_progress_new(cx, &wrong, &c), ET_EINVAL, "other units are refused");
    et_error_clear(cx);
}

static void
test_json(struct et_ctx *cx, struct et_state s)
{
    struct et_callback *c = start(cx, ET_PROGRESS_JSON, ET_TIME_UNSET, 0);
    place_before(&s);
    fire(c, ET_EVENT_BATCH_END, &s);
    place(&s);
    fire(c, ET_EVENT_BATCH_END, &s);
    c->type->text(c, ET_LOG_INFO, "say \"hello\"");
    et_progress_notice(c, notice(NULL));
    et_progress_notice(c, notice(&s));
    fire(c, ET_EVENT_EVAL_END, &s);
    et_log_emit(s.log, ET_RECORD_METRIC, &s.timestamp, NULL);
    fire(c, ET_EVENT_EVAL_END, &s);
    finish(&c);
    ok(strncmp(line(1), "{\"t\":", 5) == 0, "a JSON line begins with its time");
    is_str(strchr(line(1), ','),
           ",\"level\":\"info\",\"ev\":\"batch\",\"ep\":6,\"ba\":3825,\"m\":{\"loss/"
           "train/total\":"
           "0.81234,\"lr-SGD/group0\":0.18341,\"throughput/samples_per_sec\":17210.4,"
           "\"memory/peak_allocated_mem\":61.04},\"eta_s\":776}",
           "a batch, with full names");
    is_str(strchr(line(2), ','),
           ",\"level\":\"info\",\"ev\":\"log\",\"text\":\"say \\\"hello\\\"\"}",
           "a line of the log");
    is_str(strchr(line(3), ','),
           ",\"level\":\"info\",\"ev\":\"run\",\"name\":\"brisk-otter\",\"directory\":"
           "\"runs/x\",\"state\":\"diverged\"}",
           "the start of a run");
    is_str(strchr(line(4), ','),
           ",\"level\":\"info\",\"ev\":\"run\",\"name\":\"brisk-otter\",\"directory\":"
           "\"runs/x\",\"state\":\"diverged\",\"exit_code\":3,\"ep\":6,\"ba\":3825,"
           "\"m\":{}}",
           "and its end");
    ok(strstr(line(5), "\"ev\":\"eval\"") && !line(6)[0],
       "an evaluation that was broken off, without a value, gets no line");
}

/* JSON lines in full: what is not known is left out, and lists are lists. */
static void
test_json_lines(struct et_ctx *cx, struct et_state s)
{
    static const struct et_metric_value metrics[] = {
        {"metrics/eval/A", 0.5}, {"metrics/eval/B", 2}, {"metrics/eval/C", -1}};
    struct et_callback *c = start(cx, ET_PROGRESS_JSON, ET_TIME_UNSET, 0);
    place_before(&s);
    fire(c, ET_EVENT_BATCH_END, &s);
    place_eval(&s);
    fire(c, ET_EVENT_EVAL_END, &s);
    s.eval_metrics = (struct et_metric_value *)(uintptr_t)metrics;
    s.n_eval_metrics = 3;
    et_progress_notice(c, notice(&s));
    finish(&c);
    ok(!strstr(line(0), "eta_s") && !strstr(line(0), "nan"),
       "a time to go that is not known is left out: %s", line(0));
    ok(strstr(line(1), ",\"ba\":3825,\"label\":\"eval\",\"m\":{") != NULL,
       "an evaluation says of which data it is: %s", line(1));
    ok(strstr(line(2), "\"m\":{\"metrics/eval/A\":0.5,\"metrics/eval/B\":2,"
                       "\"metrics/eval/C\":-1}}") != NULL,
       "the end has all metrics: %s", line(2));
}

/* The one bar that COLUMNS have room for. */
static const char *
bar_of(struct et_ctx *cx, struct et_state *s, int columns)
{
    struct et_callback *c = start(cx, ET_PROGRESS_BAR, ET_BATCHES(1), columns);
    double loss = s->loss_value;
    place(s);
    s->loss_value = loss;
    fire(c, ET_EVENT_BATCH_END, s);
    finish(&c);
    return line(0) + 1; /* behind its \r */
}

static void
test_bar(struct et_ctx *cx, struct et_state s)
{
    struct et_callback *c = start(cx, ET_PROGRESS_BAR, ET_BATCHES(1), 0);
    place_before(&s);
    fire(c, ET_EVENT_BATCH_END, &s);
    place(&s);
    fire(c, ET_EVENT_BATCH_END, &s);
    fflush(out);
    is_str(strrchr(text, '\r') + 1,
           "train  Epoch   6:  12%|===                      | 75/625 [00:08<01:05, "
           "8.40ba/s, "
           "loss/train=0.8123]  total 38% ETA 12m56s",
           "the bar as the manual shows it");
    c->type->text(c, ET_LOG_WARN, "hot");
    is_str(strrchr(text, '\r') + 1, "warn: hot\n", "a warning takes the bar's place");
    place_eval(&s);
    fire(c, ET_EVENT_EVAL_END, &s);
    ok(strstr(text, "\neval   Epoch   6: accuracy=0.7212 ce=1.1022 time=4s\n") != NULL,
       "an evaluation stays");
    finish(&c);

    is_str(bar_of(cx, &s, 101),
           "train  Epoch   6:  12%|=        | 75/625 [00:08<01:05, 8.40ba/s, "
           "loss/train=0.8123]  total 38% ETA -",
           "where there is less room, the bar itself gets shorter");
    is_str(
        bar_of(cx, &s, 80),
        "train  Epoch   6:  12%|=          | 75/625 [8.40ba/s, loss/train=0.8123]  ETA "
        "-",
        "80 columns have room for rate, loss and the time to go; the last stays free");
    is_str(bar_of(cx, &s, 60),
           "train  Epoch   6:  12%|        | 75/625 [loss/train=0.8123]",
           "60 for the loss alone");
    is_str(bar_of(cx, &s, 30), "train  Epoch   6:  12%|     |",
           "still fewer cut it off");
    s.loss_value = -NAN;
    ok(strstr(bar_of(cx, &s, 0), "loss/train=nan]"), "nan has no sign");
    s.loss_value = 1e30;
    ok(strstr(bar_of(cx, &s, 0), "loss/train=1e+30]"), "large numbers stay short");

    c = start(cx, ET_PROGRESS_BAR, ET_BATCHES(1), 0);
    place(&s);
    fire(c, ET_EVENT_BATCH_END, &s);
    s.timestamp.epoch++;
    s.timestamp.batch_in_epoch = 0;
    fire(c, ET_EVENT_EPOCH_END, &s);
    finish(&c);
    ok(strstr(text, "\rtrain  Epoch   6: 100%|=========================| 625/625 [") &&
           text[strlen(text) - 1] == '\n',
       "an epoch's bar is filled and stays");

    c = start(cx, ET_PROGRESS_BAR, ET_BATCHES(1), 0);
    s.max_duration = ET_BATCHES(5000);
    fire(c, ET_EVENT_BATCH_END, &s);
    finish(&c);
    ok(strstr(line(0),
              " 76%|===================      | 3825/5000 [08:20<02:33, 7.65ba/s") !=
           NULL,
       "a run in batches has one bar for all of it: %s", line(0));
}

/* ---- a bar on a terminal ---- */

enum { WIDEST = 200 };

/* What a terminal of COLUMNS shows in its last line after TEXT, without the blanks
 * at its end, in SCREEN; false: a line reached the last column, and terminals wrap. */
static bool
show_on(const char *got, int columns, char *screen)
{
    int at = 0, end = 0;
    memset(screen, ' ', WIDEST);
    for (; *got; got++) {
        if (*got == '\r' || *got == '\n')
            at = 0;
        if (*got == '\n')
            memset(screen, ' ', WIDEST);
        if (*got == '\r' || *got == '\n')
            continue;
        if (at + 1 >= columns)
            return false;
        screen[at++] = *got;
    }
    for (int i = 0; i < WIDEST; i++)
        if (screen[i] != ' ')
            end = i + 1;
    screen[end] = '\0';
    return true;
}

/* Lines that grow and shrink, drawn over each other on one terminal, show what the last
 * one alone would, at every width. */
static void
test_terminals(struct et_ctx *cx, struct et_state s)
{
    static const double losses[] = {0.5, 123456.75, 1.5, NAN, 99999.5, 2};
    char screen[WIDEST + 1], alone[WIDEST + 1];
    int wrapped = 0, left_over = 0;
    for (int columns = 2; columns < WIDEST; columns++)
        for (int n = 1; n <= 6; n++) {
            struct et_callback *c = start(cx, ET_PROGRESS_BAR, ET_BATCHES(1), columns);
            for (int i = 0; i < n; i++) {
                place(&s);
                s.timestamp.batch += i; /* or it is not due */
                s.loss_value = losses[i];
                fire(c, ET_EVENT_BATCH_END, &s);
            }
            fflush(out);
            wrapped += !show_on(text, columns, screen);
            finish(&c);
            c = start(cx, ET_PROGRESS_BAR, ET_BATCHES(1), columns);
            fire(c, ET_EVENT_BATCH_END, &s);
            fflush(out);
            wrapped += !show_on(text, columns, alone);
            finish(&c);
            left_over += strncmp(screen, alone, 60) != 0;
        }
    is_int(wrapped, 0, "a bar leaves the last column of any terminal free");
    is_int(left_over, 0, "and nothing of a longer line stays behind a shorter one");
}

/* What the bar says of the time that 75 of 625 batches took, and the others will. */
static void
test_clocks(struct et_ctx *cx, struct et_state s)
{
    static const struct {
        double seconds;
        const char *text;
    } rows[] = {
        {0, "[00:00<?, 0.00ba/s"},
        {7.5, "[00:07<00:55, 10.00ba/s"},
        {59.9, "[00:59<07:19, 1.25ba/s"},
        {60, "[01:00<07:20, 1.25ba/s"},
        {3599.9, "[59:59<7:19:59, 0.02ba/s"},
        {3600, "[1:00:00<7:20:00, 0.02ba/s"},
        {4530, "[1:15:30<9:13:40, 0.02ba/s"},
        {90000, "[25:00:00<183:20:00, 0.00ba/s"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_callback *c = start(cx, ET_PROGRESS_BAR, ET_BATCHES(1), 0);
        place(&s);
        s.timestamp.epoch_wct = rows[i].seconds;
        fire(c, ET_EVENT_BATCH_END, &s);
        finish(&c);
        ok(strstr(line(0), rows[i].text) != NULL, "after %g s a bar says %s: %s",
           rows[i].seconds, rows[i].text, line(0));
    }
}

/* ---- numbers for people ---- */

static void
test_numbers(void)
{
    static const struct {
        double value;
        const char *text;
    } durations[] =
        {
            {NAN, "-"},       {-1, "-"},        {INFINITY, "-"},   {0, "0s"},
            {59.99, "59s"},   {60, "1m00s"},    {776.4, "12m56s"}, {3599, "59m59s"},
            {3600, "1h00m"},  {3661, "1h01m"},  {86399, "23h59m"}, {86400, "1d00h"},
            {89999, "1d00h"}, {90000, "1d01h"}, {191000, "2d05h"}, {863999, "9d23h"},
        },
      values[] = {
          {0, "0.0000"},           {-0.5, "-0.5000"},     {0.001, "0.0010"},
          {-NAN, "nan"},           {9.99e-4, "0.000999"}, {1.5e-5, "1.5e-05"},
          {999999, "999999.0000"}, {1e6, "1e+06"},        {-2e9, "-2e+09"},
          {INFINITY, "inf"},
      };
    char buf[40];
    for (size_t i = 0; i < sizeof durations / sizeof *durations; i++)
        is_str(eti_duration_text(durations[i].value, buf, sizeof buf),
               durations[i].text, "%g seconds", durations[i].value);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        is_str(eti_value_text(values[i].value, buf, sizeof buf), values[i].text,
               "the value %g", values[i].value);
}

/* ---- plain lines ---- */

/* What the line of a batch says of the machine, whatever its place on earth. */
static void
test_machine(struct et_ctx *cx, struct et_state s)
{
    static const struct {
        double gb;
        const char *text;
    } rows[] = {
        {0.0004, " mem=0M "}, {0.0612, " mem=61M "},  {0.9994, " mem=999M "},
        {1, " mem=1.0G "},    {61.04, " mem=61.0G "},
    };
    const char *zone = getenv("TZ");
    char before[64], utc[32];
    snprintf(before, sizeof before, "%s", zone ? zone : "");
    setenv("TZ", "XYZ-5:30", 1);
    tzset();
    const time_t now = (time_t)own_clock(cx)->now;
    strftime(utc, sizeof utc, "%Y-%m-%dT%H:%M:%SZ ", gmtime(&now));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_callback *c = start(cx, ET_PROGRESS_PLAIN, ET_BATCHES(1), 0);
        place(&s);
        et_log_metric(s.log, "memory/peak_allocated_mem", rows[i].gb);
        et_log_metric(s.log, "lr-SGD/group1", 0.5);
        fire(c, ET_EVENT_BATCH_END, &s);
        finish(&c);
        ok(strstr(line(0), rows[i].text) != NULL, "%g GB are%s", rows[i].gb,
           rows[i].text);
        ok(strstr(line(0), " lr=0.1834 ") != NULL,
           "of two groups of parameters the first one's rate");
        is_int(strncmp(line(0), utc, strlen(utc)), 0,
               "a place with another time has the same: %s", line(0));
    }
    if (zone)
        setenv("TZ", before, 1);
    else
        unsetenv("TZ");
    tzset();
}

/* Each unit of time, as what lines are apart. */
static void
test_units(struct et_ctx *cx, struct et_state s)
{
    struct et_callback *c;
    int wrong = 0;
    for (int u = 0; u < ET_TIME_UNIT_COUNT; u++) {
        const struct et_progress p = {
            ET_PROGRESS_PLAIN, stderr, {2, (enum et_time_unit)u}, 0};
        const et_status status = et_progress_new(cx, &p, &c);
        const bool is_fine = u == ET_TIME_SECOND || u == ET_TIME_BATCH;
        wrong += status != (is_fine ? ET_OK : ET_EINVAL);
        if (status == ET_OK)
            et_callback_free(&c);
        et_error_clear(cx);
    }
    is_int(wrong, 0, "lines are so many seconds or batches apart, and nothing else");
    c = start(cx, ET_PROGRESS_PLAIN, ET_BATCHES(50), 0);
    place(&s);
    for (int i = 0; i < 120; i++, s.timestamp.batch++) {
        s.timestamp.batch_in_epoch = s.timestamp.batch;
        fire(c, ET_EVENT_BATCH_END, &s);
    }
    finish(&c);
    static const char *const shown[] = {" ba=3825/", " ba=3850/", " ba=3900/"};
    for (int i = 0; i < 3; i++)
        ok(strstr(line(i), shown[i]) != NULL,
           "a run that goes on has a line at once, then at each fiftieth batch: %s",
           line(i));
}

static void
test_run(struct et_ctx *cx)
{
    struct run r;
    struct et_callback *c = start(cx, ET_PROGRESS_PLAIN, ET_BATCHES(1), 0);
    run_open(&r, cx,
             &(struct run_setup){.callbacks = &c, .n_callbacks = 1, .evaluate = true});
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    run_close(&r);
    et_callback_free(&c);
    fclose(out);
    static const char *const order[] = {
        " train ep=0 ba=1/2 total=50%", " train ep=0 ba=2/2",
        " epoch ep=1 ba=2 total=100%", " eval ep=1 ba=2 accuracy="};
    for (int i = 0; i < 4; i++)
        ok(strstr(line(i), order[i]) != NULL, "a run writes%s: %s", order[i], line(i));
}

int
main(void)
{
    struct et_ctx *cx;
    struct et_alloc_stats stats;
    struct run r;
    need(NULL, et_ctx_new(&cx));
    (void)own_clock(cx);
    run_open(&r, cx, &(struct run_setup){0});
    test_plain(cx, *r.state);
    test_plain_numbers(cx, *r.state);
    test_every(cx, *r.state);
    test_json(cx, *r.state);
    test_json_lines(cx, *r.state);
    test_bar(cx, *r.state);
    test_terminals(cx, *r.state);
    test_clocks(cx, *r.state);
    test_numbers();
    test_machine(cx, *r.state);
    test_units(cx, *r.state);
    run_close(&r);
    test_run(cx);
    free(text);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
