/* SPDX-License-Identifier: Apache-2.0 */
/* Loggers: the exact lines they write. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "core/loggers/loggers.h"
#include "core/loggers/protobuf.h"
#include "core/loggers/spans.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/fixture.h"

static char directory[] = "loggers-XXXXXX";

static const char *
path_of(const char *name)
{
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

/* Line LINE (from 0) of a file, without its time; "" when there is none. */
static const char *
line_of(const char *name, int line)
{
    static char text[4096];
    FILE *f = fopen(path_of(name), "r");
    text[0] = '\0';
    for (int i = 0; f && i <= line; i++)
        if (!fgets(text, sizeof text, f))
            text[0] = '\0';
    if (f)
        fclose(f);
    text[strcspn(text, "\n")] = '\0';
    char *first = strchr(text, ',');
    return first && strncmp(text, "t,", 2) != 0 ? first + 1 : text;
}

static struct et_callback *
open_logger(struct et_ctx *cx, const char *name, struct et_state *s)
{
    struct et_callback *c;
    need(cx, et_callback_new(cx, et_logger_find(name), NULL, directory, &c));
    need(cx, c->type->run(c, ET_EVENT_INIT, s, s->log));
    return c;
}

/* A batch and an evaluation with numbers of every sort. */
static void
play(struct et_callback *c, struct et_state *s)
{
    s->timestamp = (struct et_timestamp){.epoch = 6, .batch = 3825, .sample = 7833600};
    et_log_metric(s->log, "loss/train/total", (double)0.1f);
    et_log_metric(s->log, "time/token", 12345678901.0);
    et_log_metric(s->log, "a\"b", NAN);
    et_log_metric(s->log, "inf", -INFINITY);
    need(s->cx, c->type->run(c, ET_EVENT_BATCH_END, s, s->log));
    et_log_emit(s->log, ET_RECORD_BATCH, &s->timestamp, NULL);
    et_log_metric(s->log, "metrics/eval/Accuracy", 0.75);
    s->dataloader_label = "eval";
    need(s->cx, c->type->run(c, ET_EVENT_EVAL_END, s, s->log));
    et_log_emit(s->log, ET_RECORD_EVAL, &s->timestamp, NULL);
}

static void
finish(struct et_callback **c)
{
    (*c)->type->close(*c);
    et_callback_free(c);
}

/* Leaves half a line at the end of the file NAME. */
static void
cut_line(const char *name)
{
    FILE *f = fopen(path_of(name), "a");
    if (!f || fputs("{\"t\":1,\"ba\":1,", f) < 0 || fclose(f) != 0)
        bail("cannot write %s", name);
}

static void
test_jsonl(struct et_ctx *cx, struct et_state s)
{
    struct et_callback *c = open_logger(cx, "jsonl", &s);
    play(c, &s);
    is_str(line_of("metrics.jsonl", 0),
           "\"ev\":\"batch\",\"ep\":6,\"ba\":3825,\"sp\":7833600,\"m\":{\"loss/train/"
           "total\":"
           "0.100000001,\"time/token\":12345678901,\"a\\\"b\":null,\"inf\":null}}",
           "a batch: 9 digits, whole numbers whole, null for what is not finite");
    is_str(line_of("metrics.jsonl", 1),
           "\"ev\":\"eval\",\"ep\":6,\"ba\":3825,\"sp\":7833600,\"label\":\"eval\","
           "\"m\":{\"metrics/eval/Accuracy\":0.75}}",
           "an evaluation, written down at its end");
    finish(&c);
    cut_line("metrics.jsonl");
    s.timestamp = (struct et_timestamp){.epoch = 5, .batch = 3800, .sample = 7782400};
    c = open_logger(cx, "jsonl", &s);
    need(cx, c->type->run(c, ET_EVENT_AFTER_LOAD, &s, s.log));
    play(c, &s);
    finish(&c);
    is_str(line_of("metrics.jsonl", 2), "\"ba\":1,",
           "what a crash cut off stays a line of its own");
    is_str(line_of("metrics.jsonl", 3),
           "\"ev\":\"resume\",\"ep\":5,\"ba\":3800,\"sp\":7782400}",
           "a run that is resumed says from where");
    ok(strncmp(line_of("metrics.jsonl", 4), "\"ev\":\"batch\"", 12) == 0,
       "and adds its lines");
    unlink(path_of("metrics.jsonl"));
}

/* Names of plugins, and of logs from elsewhere. */
static void
test_csv_names(void)
{
    static const char *const rows[] = {
        "batch,0,7,0,\"a,b\",1",         "batch,0,7,0,\"=\"\"1\"\"\",2",
        "batch,0,7,0,a\\x0ab\\x1b[2J,3", "batch,0,7,0,\"min(a,b)\",0.5",
        "batch,0,7,0,\"max(a,b)\",1.5",  "batch,0,7,0,\"mean(a,b)\",1",
    };
    struct et_log_entry entry[] = {
        {.name = "a,b", .value = 1},
        {.name = "=\"1\"", .value = 2},
        {.name = "a\nb\x1b[2J", .value = 3},
    };
    const struct et_log_span span[] = {
        {.n = 2, .min = 0.5, .max = 1.5, .sum = 2},
        {.n = 2, .min = 2, .max = 2, .sum = 4},
        {.n = 2, .min = 3, .max = 3, .sum = 6},
    };
    const struct et_record r = {.kind = ET_RECORD_BATCH,
                                .ba = 7,
                                .of = 2,
                                .from = 6,
                                .entry = entry,
                                .span = span,
                                .n = 3};
    FILE *f = fopen(path_of("names.csv"), "w");
    if (!f)
        bail("no file");
    eti_csv_put(f, &r);
    fclose(f);
    for (int i = 0; i < 6; i++)
        is_str(line_of("names.csv", i), rows[i], "a row that readers take apart");
    is_str(line_of("names.csv", 6), "", "and no more rows than that");
    unlink(path_of("names.csv"));
}

static void
test_csv(struct et_ctx *cx, struct et_state s)
{
    struct et_callback *c = open_logger(cx, "csv", &s);
    need(cx, c->type->run(c, ET_EVENT_AFTER_LOAD, &s, s.log));
    play(c, &s);
    finish(&c);
    is_str(line_of("metrics.csv", 0), "t,ev,ep,ba,sp,name,value", "columns are named");
    is_str(line_of("metrics.csv", 1),
           "batch,6,3825,7833600,loss/train/total,0.100000001", "a row per number");
    is_str(line_of("metrics.csv", 5), "eval,6,3825,7833600,metrics/eval/Accuracy,0.75",
           "evaluations too");
    is_str(line_of("metrics.csv", 3), "batch,6,3825,7833600,\"a\"\"b\",nan",
           "a name with a quote stands in quotes");
    cut_line("metrics.csv");
    s.timestamp = (struct et_timestamp){.epoch = 5, .batch = 3800, .sample = 7782400};
    c = open_logger(cx, "csv", &s);
    need(cx, c->type->run(c, ET_EVENT_AFTER_LOAD, &s, s.log));
    play(c, &s);
    finish(&c);
    is_str(line_of("metrics.csv", 7), "resume,5,3800,7782400,,",
           "a run that is resumed says from where, in a row of its own after what a "
           "crash cut off");
    is_str(line_of("metrics.csv", 8),
           "batch,6,3825,7833600,loss/train/total,0.100000001",
           "and adds its rows, no columns' names");
    unlink(path_of("metrics.csv"));
}

/* ---- what is no line ---- */

/* The bytes of a file; "" when the file is missing. */
static const char *
bytes_of(const char *name)
{
    static char bytes[256 << 10];
    FILE *f = fopen(path_of(name), "r");
    size_t n = f ? fread(bytes, 1, sizeof bytes - 1, f) : 0;
    if (f)
        fclose(f);
    bytes[n] = '\0';
    return bytes;
}

/* A run that loads weights into a new folder does not go on there; one that goes on has
 * not computed yet what stood in its log; an evaluation that was broken off has no
 * numbers. */
static void
test_silence(struct et_ctx *cx, struct et_state s)
{
    static const struct {
        const char *logger, *file, *first, *resume;
    } rows[] = {
        {"jsonl", "metrics.jsonl", "",
         "{\"t\":1.500,\"ev\":\"resume\",\"ep\":0,"
         "\"ba\":9,\"sp\":90}\n"},
        {"csv", "metrics.csv", "t,ev,ep,ba,sp,name,value\n", "1.500,resume,0,9,90,,\n"},
    };
    struct own_clock *clock = own_clock(cx);
    s.timestamp = (struct et_timestamp){.batch = 9, .sample = 90};
    s.dataloader_label = "eval";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char whole[4096];
        struct et_callback *c = open_logger(cx, rows[i].logger, &s);
        et_log_metric(s.log, "old/number", 3);
        need(cx, c->type->run(c, ET_EVENT_AFTER_LOAD, &s, s.log));
        et_log_emit(s.log, ET_RECORD_METRIC, &s.timestamp, NULL);
        need(cx, c->type->run(c, ET_EVENT_EVAL_END, &s, s.log));
        finish(&c);
        is_str(bytes_of(rows[i].file), rows[i].first,
               "%s: nothing is said of what there is not", rows[i].logger);
        c = open_logger(cx, rows[i].logger, &s);
        play(c, &s);
        finish(&c);
        snprintf(whole, sizeof whole, "%s%s", bytes_of(rows[i].file), rows[i].resume);
        s.timestamp = (struct et_timestamp){.batch = 9, .sample = 90};
        clock->now = 1.5;
        c = open_logger(cx, rows[i].logger, &s);
        et_log_metric(s.log, "old/number", 3);
        need(cx, c->type->run(c, ET_EVENT_AFTER_LOAD, &s, s.log));
        et_log_emit(s.log, ET_RECORD_METRIC, &s.timestamp, NULL);
        finish(&c);
        is_str(bytes_of(rows[i].file), whole, "%s: a run goes on without old numbers",
               rows[i].logger);
        unlink(path_of(rows[i].file));
    }
}

/* Times in seconds, to a thousandth. */
static void
test_times(void)
{
    static const struct {
        double t;
        const char *text;
    } rows[] = {
        {1763647402.114, "1763647402.114"},
        {1763647402.9996, "1763647403.000"},
        {0, "0.000"},
        {0.0625, "0.062"},
        {9.99, "9.990"},
    };
    const struct et_log_entry entry = {.name = "a", .value = 1};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct et_record r = {
            .kind = ET_RECORD_BATCH, .t = rows[i].t, .entry = &entry, .n = 1};
        char want[80];
        FILE *f = fopen(path_of("times"), "w");
        if (!f)
            bail("no file");
        eti_jsonl_put(f, &r);
        eti_csv_put(f, &r);
        fclose(f);
        snprintf(want, sizeof want, "{\"t\":%s,", rows[i].text);
        ok(strncmp(bytes_of("times"), want, strlen(want)) == 0, "a line begins with %s",
           rows[i].text);
        snprintf(want, sizeof want, "\n%s,batch,", rows[i].text);
        ok(strstr(bytes_of("times"), want) != NULL, "and so does a row");
    }
    unlink(path_of("times"));
}

/* Text in JSON: what moves a terminal is escaped, what is no UTF-8 is replaced. */
static void
test_json_text(void)
{
    static const char *const rows[][2] = {
        {"plain/text", "\"plain/text\""},
        {"a\"b\\c", "\"a\\\"b\\\\c\""},
        {"a\nb\x1b[2J", "\"a\\u000ab\\u001b[2J\""},
        {"\x7f", "\"\\u007f\""},
        {"\xc2\x9b"
         "2J",
         "\"\\u009b2J\""},
        {"\xe2\x80\xae", "\"\\u202e\""},
        {"\xc3\xa9 \xe2\x82\xac", "\"\xc3\xa9 \xe2\x82\xac\""},
        {"a\xff"
         "b",
         "\"a\\ufffdb\""},
        {"cut \xe2\x82", "\"cut \\ufffd\\ufffd\""},
        {"", "\"\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        FILE *f = fopen(path_of("text"), "w");
        if (!f)
            bail("no file");
        eti_json_string(f, rows[i][0]);
        fclose(f);
        is_str(bytes_of("text"), rows[i][1], "a text as JSON has it");
    }
    unlink(path_of("text"));
}

/* A file that somebody removes, which is longer than what is copied at a time. */
static void
test_removed(struct et_ctx *cx)
{
    static char all[100 << 10];
    struct eti_output out;
    size_t n = 0;
    need(cx, eti_output_open(cx, directory, "removed.txt", &out));
    for (int i = 0; n + 20 < sizeof all; i++) {
        n += (size_t)snprintf(all + n, sizeof all - n, "line %d\n", i);
        if (i % 3000 == 2999) {
            fputs("", out.f);
            eti_output_flush(&out);
            unlink(path_of("removed.txt"));
        }
        fprintf(out.f, "line %d\n", i);
    }
    eti_output_flush(&out);
    ok(strcmp(bytes_of("removed.txt"), all) == 0,
       "a file that was removed again and again has all of its lines");
    is_int(eti_output_bytes(&out), (int64_t)n, "and its length is theirs");
    eti_output_close(&out);
    unlink(path_of("removed.txt"));
}

/* Lines for several batches: what is held back is written when training ends. */
static void
test_held_back(struct et_ctx *cx, struct et_state s)
{
    const struct et_callback_class *type = et_logger_find("jsonl");
    struct et_callback *c;
    void *options;
    need(cx,
         et_options_new(cx, &type->info,
                        (const char *[]){"record_interval", "10ba", NULL}, &options));
    need(cx, et_callback_new(cx, type, options, directory, &c));
    need(cx, c->type->run(c, ET_EVENT_INIT, &s, s.log));
    for (int ba = 1; ba <= 13; ba++) {
        s.timestamp = (struct et_timestamp){.batch = ba};
        et_log_metric(s.log, "loss/train/total", ba);
        need(cx, c->type->run(c, ET_EVENT_BATCH_END, &s, s.log));
        et_log_emit(s.log, ET_RECORD_BATCH, &s.timestamp, NULL);
    }
    need(cx, c->type->run(c, ET_EVENT_EPOCH_END, &s, s.log));
    int lines = 0;
    for (const char *p = bytes_of("metrics.jsonl"); (p = strchr(p, '\n')); p++)
        lines++;
    is_int(lines, 1, "of 13 batches a line for ten is there when an epoch ends");
    need(cx, c->type->run(c, ET_EVENT_FIT_END, &s, s.log));
    ok(strstr(bytes_of("metrics.jsonl"), "\"ba\":13,") &&
           strstr(bytes_of("metrics.jsonl"), "\"of\":3,\"from\":11,"),
       "and one for the other three when training ends");
    finish(&c);
    et_options_free(&type->info, &options);
    unlink(path_of("metrics.jsonl"));
}

/* ---- spans ---- */

/* SPAN of OF records, whose last number was VALUE, as a reader of a log has it. */
static struct et_log_span
read_back(struct et_log_span span, int64_t of, double value)
{
    const struct et_log_entry entry = {.name = "a", .value = value};
    const struct et_record r = {
        .kind = ET_RECORD_BATCH, .of = of, .entry = &entry, .span = &span, .n = 1};
    struct et_log_span got = eti_span_unknown;
    double about;
    for (int i = 0; i < ETI_ABOUT_COUNT; i++)
        if (eti_about_get(&r, 0, (enum eti_about)i, &about))
            eti_span_set(&got, (enum eti_about)i, about);
    eti_span_complete(&got, value, of);
    return got;
}

/* What logs say of a number in several records is read as it was. */
static void
test_spans(void)
{
    int wrong = 0, tried = 0;
    for (int n = 1; n <= 4; n++)
        for (int bad = 0; bad <= 3; bad++)
            for (int without = 0; without <= 2; without++)
                for (int differ = 0; differ <= (n > 1); differ++)
                    for (int last_is_bad = 0; last_is_bad <= (bad > 0); last_is_bad++) {
                        const double low = 0.5, high = differ ? 2.5 : 0.5;
                        const struct et_log_span span = {.n = n,
                                                         .bad = bad,
                                                         .min = low,
                                                         .max = high,
                                                         .sum = low * (n - 1) + high};
                        const struct et_log_span got = read_back(
                            span, n + bad + without, last_is_bad ? NAN : high);
                        wrong += got.n != n || got.bad != bad || got.min != low ||
                                 got.max != high || fabs(got.sum - span.sum) > 1e-12;
                        tried++;
                    }
    is_int(wrong, 0, "%d spans are read as they were written", tried);
}

/* Logs are files: whatever they say, bounds and counts fit each other. */
static void
test_hostile_spans(void)
{
    static const double said[] = {NAN, INFINITY, -1, 0, 2, 7, 1e300};
    enum { N = sizeof said / sizeof *said };
    const int64_t of = 5;
    int wrong = 0;
    for (int i = 0; i < N * N * N * N; i++)
        for (int k = 0; k < 2; k++) {
            struct et_log_span s = eti_span_unknown;
            eti_span_set(&s, ETI_ABOUT_MIN, said[i % N]);
            eti_span_set(&s, ETI_ABOUT_MAX, said[i / N % N]);
            eti_span_set(&s, ETI_ABOUT_MEAN, 1);
            eti_span_set(&s, ETI_ABOUT_VALUES, said[i / N / N % N]);
            eti_span_set(&s, ETI_ABOUT_BAD, said[i / N / N / N]);
            eti_span_complete(&s, k ? NAN : 3, of);
            wrong += !(s.min <= s.max) || s.n < 0 || s.bad < 0 || s.n + s.bad > of ||
                     !isfinite(s.sum);
        }
    is_int(wrong, 0, "no log has more values than records, or bounds that cross");
}

/* ---- protocol buffers ---- */

/* The varint at *AT, which then stands behind it. */
static uint64_t
take_varint(const unsigned char **at)
{
    uint64_t x = 0;
    int shift = 0;
    for (; **at & 0x80; shift += 7)
        x |= (uint64_t)(*(*at)++ & 0x7f) << shift;
    return x | (uint64_t) * (*at)++ << shift;
}

static void
test_varints(void)
{
    int wrong = 0;
    for (int bits = 0; bits <= 64; bits++)
        for (int off = -1; off <= 1; off++) {
            const uint64_t x =
                (bits < 64 ? UINT64_C(1) << bits : 0) + (uint64_t)(int64_t)off;
            unsigned char bytes[16];
            const unsigned char *at = bytes, *end = eti_pb_varint(bytes, x);
            wrong += take_varint(&at) != x || at != end;
        }
    is_int(wrong, 0, "numbers of all lengths are read as they were");
}

/* A message of texts of every length up to LONGEST, beyond its own room several times;
 * and within another. */
static void
test_messages(struct et_ctx *cx)
{
    enum { LONGEST = 300 };
    struct eti_message inner = {.cx = cx}, outer = {.cx = cx},
                       failed = {.cx = cx, .status = ET_ENOMEM};
    int wrong = 0;
    char text[LONGEST + 1] = "";
    for (int n = 0; n <= LONGEST; n++) {
        memset(text, 'a' + n % 26, (size_t)n);
        text[n] = '\0';
        eti_message_text(&inner, 7, text);
    }
    eti_message_add(&outer, 3, &inner);
    const unsigned char *at = outer.bytes;
    wrong += take_varint(&at) != (3 << 3 | ETI_PB_BYTES) || take_varint(&at) != inner.n;
    for (int n = 0; n <= LONGEST; n++) {
        wrong += take_varint(&at) != (7 << 3 | ETI_PB_BYTES) ||
                 take_varint(&at) != (uint64_t)n;
        for (int i = 0; i < n; i++)
            wrong += *at++ != 'a' + n % 26;
    }
    is_int(wrong, 0, "a message holds what was put into it, however often it grew");
    ok(outer.status == ET_OK && at == outer.bytes + outer.n, "and nothing more");
    eti_message_add(&outer, 4, &failed);
    is_int(outer.status, ET_ENOMEM, "one with a part that is not whole is not whole");
    eti_message_release(&inner);
    eti_message_release(&outer);
}

static void
test_refusal(struct et_ctx *cx, struct et_state s)
{
    struct et_callback *c;
    need(cx, et_callback_new(cx, et_logger_find("jsonl"), NULL, NULL, &c));
    is_int(c->type->run(c, ET_EVENT_INIT, &s, s.log), ET_EINVAL,
           "no directory, no file");
    et_error_clear(cx);
    finish(&c);
    need(cx, et_callback_new(cx, et_logger_find("jsonl"), NULL, "no/such/place", &c));
    is_int(c->type->run(c, ET_EVENT_INIT, &s, s.log), ET_EIO,
           "nor in a place that is none");
    ok(strstr(et_error_get(cx)->message, "no/such/place/metrics.jsonl") != NULL,
       "the message names the file");
    et_error_clear(cx);
    finish(&c);
}

/* ---- lines that wait (t/unit/thin.c has the rules) ---- */

static struct et_callback *
open_thin(struct et_ctx *cx, const char *interval, struct et_state *s)
{
    const struct et_callback_class *type = et_logger_find("jsonl");
    const char *const options[] = {interval ? "record_interval" : NULL, interval, NULL};
    struct et_callback *c;
    void *block;
    need(cx, et_options_new(cx, &type->info, options, &block));
    need(cx, et_callback_new(cx, type, block, directory, &c));
    et_options_free(&type->info, &block);
    need(cx, c->type->run(c, ET_EVENT_INIT, s, s->log));
    return c;
}

static void
end_batch(struct et_callback *c, struct et_state *s)
{
    s->timestamp.batch++;
    need(s->cx, c->type->run(c, ET_EVENT_BATCH_END, s, s->log));
}

static void
test_waiting(struct et_ctx *cx, struct et_state s)
{
    s.timestamp = (struct et_timestamp){0};
    struct et_callback *c = open_thin(cx, "3ba", &s);
    for (int i = 0; i < 3; i++)
        end_batch(c, &s);
    end_batch(c, &s);
    end_batch(c, &s);
    s.checkpoint_due = false;
    need(cx, c->type->run(c, ET_EVENT_BATCH_CHECKPOINT, &s, s.log));
    need(cx, c->type->run(c, ET_EVENT_EPOCH_END, &s, s.log));
    is_str(line_of("metrics.jsonl", 0),
           "\"ev\":\"batch\",\"ep\":0,\"ba\":3,\"sp\":0,\"of\":3,\"from\":1,\"m\":{}}",
           "three batches without numbers are a line");
    is_str(line_of("metrics.jsonl", 1), "", "two more wait for a third,");
    s.checkpoint_due = true;
    need(cx, c->type->run(c, ET_EVENT_BATCH_CHECKPOINT, &s, s.log));
    is_str(line_of("metrics.jsonl", 1),
           "\"ev\":\"batch\",\"ep\":0,\"ba\":5,\"sp\":0,\"of\":2,\"from\":4,\"m\":{}}",
           "or for a save");
    s.checkpoint_due = false;
    end_batch(c, &s);
    finish(&c);
    is_str(line_of("metrics.jsonl", 2),
           "\"ev\":\"batch\",\"ep\":0,\"ba\":6,\"sp\":0,\"m\":{}}", "or for the end");
    unlink(path_of("metrics.jsonl"));
}

/* A file of SIZE bytes that was begun AGE seconds ago, most of which no disk has; what
 * four batches add to it. */
static const char *
added_to(struct et_ctx *cx, struct et_state s, off_t size, double age)
{
    static char text[1024];
    FILE *f = fopen(path_of("metrics.jsonl"), "w");
    if (!f || fprintf(f, "{\"t\":%.3f}\n", eti_wall(cx) - age) < 0 || fflush(f) != 0 ||
        ftruncate(fileno(f), size - 1) != 0 || fseeko(f, size - 1, SEEK_SET) != 0 ||
        fputc('\n', f) < 0 || fclose(f) != 0)
        bail("no file of %lld bytes", (long long)size);
    s.timestamp = (struct et_timestamp){0};
    struct et_callback *c = open_thin(cx, NULL, &s);
    for (int i = 0; i < 4; i++) {
        end_batch(c, &s);
        need(cx, c->type->run(c, ET_EVENT_EPOCH_END, &s, s.log)); /* onto the disk */
    }
    finish(&c);
    f = fopen(path_of("metrics.jsonl"), "r");
    if (!f || fseeko(f, size, SEEK_SET) != 0)
        bail("the file is gone");
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    unlink(path_of("metrics.jsonl"));
    return text;
}

/* What a file may have grown to counts from its first line, of an earlier run, and with
 * all of its bytes. */
static void
test_large_file(struct et_ctx *cx, struct et_state s)
{
    const off_t most = 192 << 20;
    static const struct {
        off_t more;
        double age;
        int lines, of; /* and for how many batches the last line stands */
        const char *what;
    } row[] = {
        {1 << 20, 10, 1, 4, "in a file that is too large already batches become one"},
        {1 << 20, 1e6, 4, 0, "but not in one that is as large after days"},
        {-30, -60, 3, 2, "once it is, batches are no longer kept one by one"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const char *text = added_to(cx, s, most + row[i].more, row[i].age);
        int lines = 0, of = 0;
        for (const char *p = text; (p = strchr(p, '\n')); p++)
            lines++;
        const char *at = strstr(text, "\"of\":");
        if (at)
            of = (int)strtol(at + strlen("\"of\":"), NULL, 10);
        ok(lines == row[i].lines && of == row[i].of, "%s: %d lines", row[i].what,
           lines);
    }
}

static void
test_warm(struct et_ctx *cx)
{
    struct et_callback *c;
    struct et_alloc_stats before, after;
    struct run r;
    need(cx, et_callback_new(cx, et_logger_find("jsonl"), NULL, directory, &c));
    run_open(&r, cx, &(struct run_setup){.callbacks = &c, .n_callbacks = 1});
    struct et_state *s = r.state;
    et_log_metric(s->log, "loss/train/total", 1);
    et_alloc_get_stats(cx, &before);
    for (int i = 0; i < 1000; i++)
        need(cx, c->type->run(c, ET_EVENT_BATCH_END, s, s->log));
    et_alloc_get_stats(cx, &after);
    is_int((int64_t)(after.allocs - before.allocs), 0, "1000 lines allocate nothing");
    run_close(&r);
    et_callback_free(&c);
    unlink(path_of("metrics.jsonl"));
}

int
main(void)
{
    struct et_ctx *cx;
    struct et_alloc_stats stats;
    struct run r;
    need(NULL, et_ctx_new(&cx));
    if (!mkdtemp(directory))
        bail("no directory for files");
    run_open(&r, cx, &(struct run_setup){0});
    test_jsonl(cx, *r.state);
    test_csv(cx, *r.state);
    test_csv_names();
    test_times();
    test_json_text();
    test_removed(cx);
    test_spans();
    test_hostile_spans();
    test_varints();
    test_messages(cx);
    test_held_back(cx, *r.state);
    test_silence(cx, *r.state);
    test_waiting(cx, *r.state);
    test_large_file(cx, *r.state);
    test_refusal(cx, *r.state);
    run_close(&r);
    test_warm(cx);
    rmdir(directory);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
