/* SPDX-License-Identifier: Apache-2.0 */
/* Exports of events.log: lines, rows, files for TensorBoard, and a chart. */
#include "config.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/journal/events.h"
#include "core/journal/export.h"
#include "t/data/fixture.h"
#include "t/tap.h"

/* ---- a run to export ---- */

static char directory[512];

static void
write_records(struct et_run *run, enum et_record_kind kind, int64_t ba,
              const char *text, const struct et_log_entry *entry, int n)
{
    struct et_sink *sink = et_run_sink(run);
    sink->write(sink, &(struct et_record){
                          .kind = kind,
                          .t = 1e9 + (double)ba,
                          .ba = ba,
                          .sp = 8 * ba,
                          .text = text,
                          .entry = entry,
                          .n = n,
                      });
}

static void
batch(struct et_run *run, int64_t ba, double loss)
{
    const struct et_log_entry entry[] = {{"loss/train/total", loss},
                                         {"time/batch", (double)ba}};
    write_records(run, ET_RECORD_BATCH, ba, NULL, entry, 2);
}

static void
evaluation(struct et_run *run, int64_t ba, double accuracy)
{
    const struct et_log_entry entry[] = {{"metrics/eval/Accuracy", accuracy}};
    write_records(run, ET_RECORD_EVAL, ba, "eval", entry, 1);
}

static struct et_run *
begin(struct et_ctx *cx)
{
    struct et_run *run;
    const struct et_run_config config = {.directory = directory, .name = "calm-heron"};
    need(cx, et_run_open(cx, &config, &run));
    return run;
}

static void
clean(void)
{
    static const char *const names[] = {"events.log", "run.json", "logs/rank0.txt",
                                        "logs", ""};
    char path[1024];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        if (remove(path) != 0 && i < 2)
            bail("cannot remove %s", path);
    }
}

static const char *
events_path(void)
{
    static char path[600];
    snprintf(path, sizeof path, "%s/events.log", directory);
    return path;
}

/* Twice resumed: 1 2 3 4 | from 2: 3 4 5 6 | from 3: 4 5. */
static void
write_resumed(struct et_ctx *cx)
{
    struct et_run *run = begin(cx);
    for (int ba = 1; ba <= 4; ba++)
        batch(run, ba, ba);
    evaluation(run, 2, 0.25);
    evaluation(run, 4, 0.5);
    write_records(run, ET_RECORD_RESUME, 2, NULL, NULL, 0);
    for (int ba = 3; ba <= 6; ba++)
        batch(run, ba, 10 * ba);
    write_records(run, ET_RECORD_ANNOTATION, 6, "warmer & <wiser>\x1b", NULL, 0);
    write_records(run, ET_RECORD_RESUME, 3, NULL, NULL, 0);
    batch(run, 4, NAN);
    batch(run, 5, 500);
    et_run_close(&run);
}

/* What an export to a stream gives; caller frees. */
static char *
text_of(struct et_ctx *cx,
        et_status (*run)(struct et_ctx *, const struct eti_export *, FILE *),
        const char *metrics)
{
    char *text;
    size_t n;
    regex_t regex;
    FILE *f = open_memstream(&text, &n);
    if (!f || (metrics && regcomp(&regex, metrics, REG_EXTENDED | REG_NOSUB) != 0))
        bail("no stream or no regular expression");
    const struct eti_export x = {events_path(), "calm & heron",
                                 metrics ? &regex : NULL};
    need(cx, run(cx, &x, f));
    if (metrics)
        regfree(&regex);
    fclose(f);
    return text;
}

/* ---- lines and rows ---- */

static void
test_lines(struct et_ctx *cx)
{
    write_resumed(cx);
    char *text = text_of(cx, eti_export_jsonl, "^loss|^metrics");
    is_str(
        text,
        "{\"t\":1000000001.000,\"ev\":\"batch\",\"ep\":0,\"ba\":1,\"sp\":8,\"m\":{"
        "\"loss/"
        "train/total\":1}}\n"
        "{\"t\":1000000002.000,\"ev\":\"batch\",\"ep\":0,\"ba\":2,\"sp\":16,\"m\":{"
        "\"loss/"
        "train/total\":2}}\n"
        "{\"t\":1000000002.000,\"ev\":\"eval\",\"ep\":0,\"ba\":2,\"sp\":16,\"label\":"
        "\"eval\",\"m\":{\"metrics/eval/Accuracy\":0.25}}\n"
        "{\"t\":1000000003.000,\"ev\":\"batch\",\"ep\":0,\"ba\":3,\"sp\":24,\"m\":{"
        "\"loss/"
        "train/total\":30}}\n"
        "{\"t\":1000000006.000,\"ev\":\"annotation\",\"ep\":0,\"ba\":6,\"sp\":48,"
        "\"text\":"
        "\"warmer & <wiser>\\u001b\"}\n"
        "{\"t\":1000000004.000,\"ev\":\"batch\",\"ep\":0,\"ba\":4,\"sp\":32,\"m\":{"
        "\"loss/"
        "train/total\":null}}\n"
        "{\"t\":1000000005.000,\"ev\":\"batch\",\"ep\":0,\"ba\":5,\"sp\":40,\"m\":{"
        "\"loss/"
        "train/total\":500}}\n",
        "a run resumed twice, as if it never had been; annotations stay");
    free(text);
    text = text_of(cx, eti_export_csv, "Accuracy|loss");
    is_str(text,
           "t,ev,ep,ba,sp,name,value\n"
           "1000000001.000,batch,0,1,8,loss/train/total,1\n"
           "1000000002.000,batch,0,2,16,loss/train/total,2\n"
           "1000000002.000,eval,0,2,16,metrics/eval/Accuracy,0.25\n"
           "1000000003.000,batch,0,3,24,loss/train/total,30\n"
           "1000000004.000,batch,0,4,32,loss/train/total,nan\n"
           "1000000005.000,batch,0,5,40,loss/train/total,500\n",
           "as rows");
    free(text);
    text = text_of(cx, eti_export_csv, NULL);
    ok(strstr(text, ",time/batch,5\n") != NULL, "without a choice every number");
    free(text);
    text = text_of(cx, eti_export_jsonl, "^metrics");
    int lines = 0;
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        lines++;
    is_int(lines, 2, "of records without a chosen number none, but what was noted");
    free(text);
    clean();
}

/* Resumed ever earlier, but once: what was done again is left out. */
static void
test_earlier(struct et_ctx *cx)
{
    static const struct {
        int from, to; /* batches from behind FROM */
    } row[] = {{0, 5}, {4, 6}, {2, 3}, {3, 5}, {1, 2}};
    char got[128] = "";
    struct et_run *run = begin(cx);
    for (int i = 0; i < 5; i++) {
        if (i > 0)
            write_records(run, ET_RECORD_RESUME, row[i].from, NULL, NULL, 0);
        for (int ba = row[i].from + 1; ba <= row[i].to; ba++)
            batch(run, ba, 100 * i + ba);
    }
    et_run_close(&run);
    char *text = text_of(cx, eti_export_csv, "^loss");
    for (const char *p = text; (p = strstr(p, "total,")); p += strlen("total,"))
        snprintf(got + strlen(got), sizeof got - strlen(got), "%d ",
                 (int)strtol(p + strlen("total,"), NULL, 10));
    is_str(got, "1 402 ", "of batches that were done four times the last are told");
    free(text);
    clean();
}

/* ---- TensorBoard (t/unit/tensorboard.c reads what the writer writes) ---- */

static bool
holds(const char *bytes, size_t n, const char *text)
{
    size_t length = strlen(text);
    for (size_t i = 0; i + length <= n; i++)
        if (memcmp(bytes + i, text, length) == 0)
            return true;
    return false;
}

static void
test_tensorboard(struct et_ctx *cx)
{
    char path[600];
    const struct eti_export x = {events_path(), "", NULL};
    struct dirent *e;
    int files = 0;
    write_resumed(cx);
    snprintf(path, sizeof path, "%s-tb", directory);
    need(cx, eti_export_tensorboard(cx, &x, path));
    DIR *d = opendir(path);
    char name[1024] = "";
    while (d && (e = readdir(d)))
        if (e->d_name[0] != '.') {
            files++;
            snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        }
    if (d)
        closedir(d);
    is_int(files, 1, "a file of events in a folder that is made");
    FILE *f = fopen(name, "r");
    static char bytes[1 << 16];
    size_t n = f ? fread(bytes, 1, sizeof bytes, f) : 0;
    if (f)
        fclose(f);
    int notes = 0;
    for (size_t i = 0; i + 10 <= n; i++)
        notes += memcmp(bytes + i, "annotation", 10) == 0;
    is_int(notes, 1, "a note is one, and the name of an evaluation is none");
    ok(holds(bytes, n, "metrics/eval/Accuracy") && holds(bytes, n, "warmer"),
       "with numbers, and annotations as texts");
    /* Each begins with its time, a double, and has its batch as the step. */
    const double at = 1e9 + 5;
    char when[12] = "\x09........\x10\x05";
    memcpy(when + 1, &at, sizeof at);
    ok(memmem(bytes, n, when, 11) != NULL,
       "each of the time and the batch that it had");
    ok(!strstr(name, "tfevents.0"), "in a file that is named by the time");
    is_int(eti_export_tensorboard(cx, &x, path), ET_EINVAL,
           "a second one there is refused");
    ok(strstr(take_error(cx), "files of events already") != NULL,
       "which would show the run twice");
    unlink(name);
    rmdir(path);
    clean();
}

/* ---- the chart ---- */

static int
count(const char *text, const char *what)
{
    int n = 0;
    for (const char *p = text; (p = strstr(p, what)); p += strlen(what))
        n++;
    return n;
}

/* Is every element closed by its own end, and every & an entity? */
static bool
is_well_formed(const char *text)
{
    char open[32][32];
    int depth = 0;
    for (const char *p = text; *p; p++) {
        if (*p == '&' && strncmp(p, "&amp;", 5) && strncmp(p, "&lt;", 4) &&
            strncmp(p, "&gt;", 4))
            return false;
        if ((unsigned char)*p < 0x20 && *p != '\n')
            return false;
        if (*p != '<')
            continue;
        const char *end = strchr(p, '>');
        size_t n = strcspn(p + 1, " >/");
        if (!end || n >= sizeof open[0])
            return false;
        if (p[1] == '/') {
            n = (size_t)(end - p) - 2;
            if (depth == 0 || strncmp(open[--depth], p + 2, n) != 0 || open[depth][n])
                return false;
        } else if (end[-1] != '/') {
            if (depth == 32)
                return false;
            memcpy(open[depth], p + 1, n);
            open[depth++][n] = '\0';
        }
        p = end;
    }
    return depth == 0;
}

/* Where a picture says that something is: each number behind NAME=". */
static bool
is_below(const char *text, const char *name, double most)
{
    char attribute[16];
    snprintf(attribute, sizeof attribute, " %s=\"", name);
    for (const char *at = text; (at = strstr(at, attribute)) != NULL; at++) {
        double v = strtod(at + strlen(attribute), NULL);
        if (v < 0 || v > most)
            return false;
    }
    return true;
}

/* Is all that has a place in a picture inside of it? */
static bool
is_within(const char *text)
{
    double width = 0, height = 0;
    const char *box = strstr(text, "viewBox=\"0 0 ");
    if (!box || sscanf(box, "viewBox=\"0 0 %lf %lf", &width, &height) != 2)
        return false;
    return is_below(text, "x", width) && is_below(text, "cx", width) &&
           is_below(text, "y", height) && is_below(text, "cy", height);
}

static void
test_chart(struct et_ctx *cx)
{
    write_resumed(cx);
    char *text = text_of(cx, eti_export_svg, "^loss|^metrics");
    ok(is_well_formed(text),
       "an SVG that is well formed, whatever people called things");
    is_int(count(text, "class=\"h\">"), 2, "a panel for losses, one for accuracies");
    ok(strstr(text, ">Accuracy [fraction]<") && strstr(text, ">loss<"),
       "with title and unit");
    is_int(count(text, ">finished batches<"), 2, "whose axis says what it counts");
    ok(strstr(text, "loss/train/total (1 not finite)") != NULL,
       "what cannot be drawn is counted");
    is_int(count(text, "<circle"), 5,
           "few values have dots: four losses and an accuracy");
    is_int(count(text, "><title>resumed</title>"), 4,
           "a mark at each resume, in each panel");
    ok(strstr(text, "warmer &amp; &lt;wiser&gt;\\x1b") != NULL,
       "and at what people noted");
    ok(strstr(text, "calm &amp; heron</title>") != NULL, "the run's name is its title");
    bool within = true;
    for (const char *at = text; (at = strstr(at, "class=\"m\" d=\"M")); at++) {
        double x = strtod(at + strlen("class=\"m\" d=\"M"), NULL);
        within = within && x >= 84 && x <= 840;
    }
    ok(within, "no mark lies outside, though one is of a batch that was done again");
    ok(is_within(text), "nothing is drawn or written outside of the picture");
    is_int(count(text, "http"), 1, "nothing is loaded from anywhere: one name space");
    free(text);
    FILE *f = fopen("/dev/null", "w");
    regex_t none;
    if (!f || regcomp(&none, "^zzz$", REG_NOSUB) != 0)
        bail("no stream");
    is_int(eti_export_svg(cx, &(struct eti_export){events_path(), "", &none}, f),
           ET_EINVAL, "a chart of nothing is refused");
    take_error(cx);
    regfree(&none);
    fclose(f);
    clean();
}

static const char small_picture[] =
    "<text x=\"84.0\" y=\"28.0\" class=\"t\">calm &amp; heron</text>\n"
    "<text x=\"84.0\" y=\"64.0\" class=\"h\">loss</text>\n"
    "<path class=\"g\" d=\"M84 219.6H840\"/>\n"
    "<text x=\"76.0\" y=\"223.6\" text-anchor=\"end\">1</text>\n"
    "<path class=\"g\" d=\"M84 161.5H840\"/>\n"
    "<text x=\"76.0\" y=\"165.5\" text-anchor=\"end\">2</text>\n"
    "<path class=\"g\" d=\"M84 103.3H840\"/>\n"
    "<text x=\"76.0\" y=\"107.3\" text-anchor=\"end\">3</text>\n"
    "<path class=\"a\" d=\"M84.0 256.0v5\"/>\n"
    "<text x=\"84.0\" y=\"274.0\" text-anchor=\"middle\">0</text>\n"
    "<path class=\"a\" d=\"M195.2 256.0v5\"/>\n"
    "<text x=\"195.2\" y=\"274.0\" text-anchor=\"middle\">5</text>\n"
    "<path class=\"a\" d=\"M306.4 256.0v5\"/>\n"
    "<text x=\"306.4\" y=\"274.0\" text-anchor=\"middle\">10</text>\n"
    "<path class=\"a\" d=\"M417.5 256.0v5\"/>\n"
    "<text x=\"417.5\" y=\"274.0\" text-anchor=\"middle\">15</text>\n"
    "<path class=\"a\" d=\"M528.7 256.0v5\"/>\n"
    "<text x=\"528.7\" y=\"274.0\" text-anchor=\"middle\">20</text>\n"
    "<path class=\"a\" d=\"M639.9 256.0v5\"/>\n"
    "<text x=\"639.9\" y=\"274.0\" text-anchor=\"middle\">25</text>\n"
    "<path class=\"a\" d=\"M751.1 256.0v5\"/>\n"
    "<text x=\"751.1\" y=\"274.0\" text-anchor=\"middle\">30</text>\n"
    "<path class=\"a\" d=\"M84 96V256.0H840\"/>\n"
    "<text x=\"462.0\" y=\"292.0\" text-anchor=\"middle\">finished batches</text>\n"
    "<path class=\"m\" d=\"M684.4 96v160\"><title>resumed</title></path>\n"
    "<text x=\"680.4\" y=\"108.0\" class=\"s\" text-anchor=\"end\">resumed</text>\n"
    "<path class=\"m\" d=\"M284.1 96v160\"><title>early</title></path>\n"
    "<text x=\"288.1\" y=\"108.0\" class=\"s\">early</text>\n"
    "<path class=\"l\" stroke=\"#0072b2\" d=\"M172.9 161.5L395.3 190.5L617.6 "
    "103.3L840.0 248.7\"/>\n"
    "<circle fill=\"#0072b2\" cx=\"172.9\" cy=\"161.5\" r=\"2.5\"/>\n"
    "<circle fill=\"#0072b2\" cx=\"395.3\" cy=\"190.5\" r=\"2.5\"/>\n"
    "<circle fill=\"#0072b2\" cx=\"617.6\" cy=\"103.3\" r=\"2.5\"/>\n"
    "<circle fill=\"#0072b2\" cx=\"840.0\" cy=\"248.7\" r=\"2.5\"/>\n"
    "<path class=\"l\" stroke=\"#0072b2\" d=\"M84.0 82h16\"/>\n"
    "<text x=\"105.0\" y=\"86.0\">loss/train/total</text>\n"
    "<text x=\"84.0\" y=\"330.0\" class=\"h\">Accuracy [fraction]</text>\n"
    "<path class=\"g\" d=\"M84 471.1H840\"/>\n"
    "<text x=\"76.0\" y=\"475.1\" text-anchor=\"end\">0.4</text>\n"
    "<path class=\"g\" d=\"M84 412.9H840\"/>\n"
    "<text x=\"76.0\" y=\"416.9\" text-anchor=\"end\">0.6</text>\n"
    "<path class=\"a\" d=\"M84.0 522.0v5\"/>\n"
    "<text x=\"84.0\" y=\"540.0\" text-anchor=\"middle\">0</text>\n"
    "<path class=\"a\" d=\"M195.2 522.0v5\"/>\n"
    "<text x=\"195.2\" y=\"540.0\" text-anchor=\"middle\">5</text>\n"
    "<path class=\"a\" d=\"M306.4 522.0v5\"/>\n"
    "<text x=\"306.4\" y=\"540.0\" text-anchor=\"middle\">10</text>\n"
    "<path class=\"a\" d=\"M417.5 522.0v5\"/>\n"
    "<text x=\"417.5\" y=\"540.0\" text-anchor=\"middle\">15</text>\n"
    "<path class=\"a\" d=\"M528.7 522.0v5\"/>\n"
    "<text x=\"528.7\" y=\"540.0\" text-anchor=\"middle\">20</text>\n"
    "<path class=\"a\" d=\"M639.9 522.0v5\"/>\n"
    "<text x=\"639.9\" y=\"540.0\" text-anchor=\"middle\">25</text>\n"
    "<path class=\"a\" d=\"M751.1 522.0v5\"/>\n"
    "<text x=\"751.1\" y=\"540.0\" text-anchor=\"middle\">30</text>\n"
    "<path class=\"a\" d=\"M84 362V522.0H840\"/>\n"
    "<text x=\"462.0\" y=\"558.0\" text-anchor=\"middle\">finished batches</text>\n"
    "<path class=\"m\" d=\"M684.4 362v160\"><title>resumed</title></path>\n"
    "<path class=\"m\" d=\"M284.1 362v160\"><title>early</title></path>\n"
    "<path class=\"l\" stroke=\"#0072b2\" d=\"M395.3 514.7L840.0 369.3\"/>\n"
    "<circle fill=\"#0072b2\" cx=\"395.3\" cy=\"514.7\" r=\"2.5\"/>\n"
    "<circle fill=\"#0072b2\" cx=\"840.0\" cy=\"369.3\" r=\"2.5\"/>\n"
    "<path class=\"l\" stroke=\"#0072b2\" d=\"M84.0 348h16\"/>\n"
    "<text x=\"105.0\" y=\"352.0\">metrics/eval/Accuracy (1 not finite)</text>\n"
    "</svg>\n";

/* The whole picture of a small log, with each of its places, ticks and lines. */
static void
test_picture(struct et_ctx *cx)
{
    static const double loss[] = {2, 1.5, 3, 0.5};
    struct et_run *run = begin(cx);
    for (int i = 0; i < 4; i++) {
        if (i == 3)
            write_records(run, ET_RECORD_RESUME, 27, NULL, NULL, 0);
        batch(run, 10 * i + 4, loss[i]);
    }
    evaluation(run, 14, 0.25);
    write_records(run, ET_RECORD_ANNOTATION, 9, "early", NULL, 0);
    evaluation(run, 34, INFINITY);
    evaluation(run, 34, 0.75);
    et_run_close(&run);
    char *text = text_of(cx, eti_export_svg, "^loss|^metrics");
    const char *picture = strstr(text, "<text");
    is_str(picture ? picture : "", small_picture,
           "a chart is drawn up to its last element");
    free(text);
    clean();
}

/* More notes than a chart has room for: the first ones are there. */
static void
test_many_marks(struct et_ctx *cx)
{
    enum { NOTES = 70, ROOM = 64 };
    const struct et_log_entry entry = {.name = "loss/train/total", .value = 1};
    struct et_run *run = begin(cx);
    for (int ba = 1; ba <= NOTES; ba++) {
        char note[16];
        snprintf(note, sizeof note, "note %d.", ba);
        write_records(run, ET_RECORD_METRIC, ba, NULL, &entry, 1);
        write_records(run, ET_RECORD_ANNOTATION, ba, note, NULL, 0);
    }
    et_run_close(&run);
    char *text = text_of(cx, eti_export_svg, NULL);
    is_int(count(text, "<title>note "), ROOM, "of %d notes a chart has %d", NOTES,
           ROOM);
    ok(strstr(text, "note 64.") && !strstr(text, "note 65."), "which are the first");
    free(text);
    clean();
}

/* A panel's title has the series' unit, by how its name begins and ends. */
static void
test_units(struct et_ctx *cx)
{
    static const struct {
        const char *name, *title;
    } row[] = {
        {"metrics/eval/CrossEntropy", "CrossEntropy [nats]"},
        {"metrics/eval/Accuracy", "Accuracy [fraction]"},
        {"metrics/eval/MIoU", "MIoU [fraction]"},
        {"metrics/eval/Perplexity", "Perplexity"},
        {"throughput/device/mfu", "throughput/device/mfu [fraction]"},
        {"throughput/samples_per_sec", "throughput/samples_per_sec [samples/s]"},
        {"throughput/tokens_per_sec", "throughput/tokens_per_sec [tokens/s]"},
        {"throughput/batches_per_sec", "throughput/batches_per_sec [batches/s]"},
        {"throughput/flops_per_sec", "throughput/flops_per_sec [FLOP/s]"},
        {"memory/peak_reserved_mem", "memory/peak_reserved_mem [GB]"},
        {"memory/num_ooms", "memory/num_ooms"},
        {"time/train", "time/train [hours]"},
        {"time/val", "time/val [hours]"},
        {"time/total", "time/total [hours]"},
        {"time/remaining_estimate", "time/remaining_estimate [hours]"},
        {"time/batch", "time/batch [count]"},
        {"own/train", "own/train"},
        {"loss/train/total", "loss"},
        {"lr-SGD/group0", "learning rate"},
    };
    enum { ROWS = sizeof row / sizeof *row };
    char title[128];
    struct et_log_entry entry[ROWS];
    struct et_run *run = begin(cx);
    for (int i = 0; i < ROWS; i++) {
        snprintf(entry[i].name, sizeof entry->name, "%s", row[i].name);
        entry[i].value = i;
    }
    write_records(run, ET_RECORD_METRIC, 1, NULL, entry, ROWS);
    et_run_close(&run);
    char *text = text_of(cx, eti_export_svg, NULL);
    for (int i = 0; i < ROWS; i++) {
        snprintf(title, sizeof title, "class=\"h\">%s<", row[i].title);
        is_int(count(text, title), 1, "the panel of %s is called %s", row[i].name,
               row[i].title);
    }
    free(text);
    clean();
}

/* Of a record that stands for several those numbers that are wanted keep their own
 * least, greatest and counts. */
static void
test_spans(struct et_ctx *cx)
{
    static const struct et_log_entry entry[] = {
        {"a/first", 1}, {"b/second", 2}, {"a/third", 3}, {"b/fourth", 4}};
    static const struct et_log_span span[] = {
        {3, 0, 0.5, 1.5, 3}, {2, 1, 1, 7, 8}, {1, 2, 3, 3, 3}, {3, 0, -4, 4, 1}};
    struct et_run *run = begin(cx);
    et_run_close(&run);
    struct eti_events_writer w;
    struct eti_history h;
    struct et_record r;
    regex_t wanted;
    int64_t cut;
    bool got;
    need(cx, eti_events_continue(cx, directory, &cut, &w));
    eti_events_write(&w, &(struct et_record){.kind = ET_RECORD_BATCH,
                                             .t = 1e9,
                                             .ba = 3,
                                             .of = 3,
                                             .from = 1,
                                             .entry = entry,
                                             .span = span,
                                             .n = 4});
    eti_events_end(&w);
    if (regcomp(&wanted, "^b/", REG_EXTENDED | REG_NOSUB) != 0)
        bail("no regular expression");
    const struct eti_export x = {events_path(), "", &wanted};
    need(cx, eti_history_open(cx, &x, &h));
    need(cx, eti_history_next(&h, &r, &got));
    ok(got && r.n == 2 && r.of == 3 && r.from == 1 && r.span,
       "of four numbers of a record that stands for three two are wanted");
    for (int i = 0; got && i < r.n && i < 2; i++) {
        const struct et_log_span *own = &span[2 * i + 1], *is = &r.span[i];
        ok(strcmp(r.entry[i].name, entry[2 * i + 1].name) == 0 && is->n == own->n &&
               is->bad == own->bad && is->min == own->min && is->max == own->max,
           "%s has its own: %lld values from %g to %g", r.entry[i].name,
           (long long)is->n, is->min, is->max);
    }
    regfree(&wanted);
    eti_history_close(&h);
    clean();
}

/* The colours of the lines of TEXT, or of those of its legends, in their order. */
static void
colours(const char *text, bool of_legend, char out[64])
{
    out[0] = '\0';
    for (const char *p = text; (p = strstr(p, "class=\"l\" stroke=\"")) != NULL;) {
        p += strlen("class=\"l\" stroke=\"");
        const char *end = strstr(p, "\"/>");
        const bool legend = end && memmem(p, (size_t)(end - p), "h16", 3);
        if (end && legend == of_legend)
            snprintf(out + strlen(out), 64 - strlen(out), "%.7s ", p);
    }
}

/* Lines with few points are drawn last; that changes no colour. */
static void
test_colours(struct et_ctx *cx)
{
    char lines[64], legend[64];
    struct et_run *run = begin(cx);
    for (int ba = 1; ba <= 3; ba++) {
        const struct et_log_entry first = {"loss/a", ba};
        write_records(run, ET_RECORD_METRIC, ba, NULL, &first, 1);
    }
    for (int ba = 1; ba <= 100; ba++)
        batch(run, ba, ba);
    et_run_close(&run);
    char *text = text_of(cx, eti_export_svg, "^loss");
    colours(text, false, lines);
    colours(text, true, legend);
    is_str(legend, "#0072b2 #d55e00 ", "the legend has the series by name");
    is_str(lines, "#d55e00 #0072b2 ",
           "the line with many points is below, each has its colour of the legend");
    free(text);
    clean();
}

/* What the panel called TITLE shows: the labels of its values' axis, and its dots. */
static const char *
panel_of(const char *text, const char *title)
{
    static char out[4096];
    char head[128];
    double x, y;
    size_t n = 0;
    snprintf(head, sizeof head, "class=\"h\">%s<", title);
    const char *at = strstr(text, head),
               *end = at ? strstr(at + 1, "class=\"h\"") : NULL;
    out[0] = '\0';
    for (; at && *at && (!end || at < end); at++) {
        char label[32];
        if (sscanf(at, "text-anchor=\"end\">%31[^<]<", label) == 1)
            n += (size_t)snprintf(out + n, sizeof out - n, "%s ", label);
        else if (sscanf(at, "cx=\"%lf\" cy=\"%lf\"", &x, &y) == 2)
            n += (size_t)snprintf(out + n, sizeof out - n, "(%g %g) ", x, y);
    }
    return out;
}

/* A panel is from its least to its greatest value and a little more: 5 % of what is
 * between, of a value that is alone, or 1 around 0. */
static void
test_ranges(struct et_ctx *cx)
{
    static const struct {
        const char *name[2], *title;
        double value[2][2]; /* of both, at batches 1 and 4 */
        const char *shows;
    } row[] = {
        {{"a"}, "a", {{4, 4}}, "3.8 3.9 4.0 4.1 4.2 (273 176) (840 176) "},
        {{"b"}, "b", {{-4, -4}}, "-4.2 -4.1 -4.0 -3.9 -3.8 (273 442) (840 442) "},
        {{"c"}, "c", {{0, 0}}, "-1.0 -0.5 0 0.5 1.0 (273 708) (840 708) "},
        {{"d"}, "d", {{NAN, INFINITY}}, "-1.0 -0.5 0 0.5 1.0 "},
        {{"e"}, "e", {{-1000, NAN}}, "-1040 -1020 -1000 -980 -960 (273 1240) "},
        {{"loss/a", "loss/b"},
         "loss",
         {{2, 10}, {0, 4}},
         "0 5 10 (273 1549.6) (840 1433.3) (273 1578.7) (840 1520.5) "},
        {{"metrics/a/M", "metrics/b/M"},
         "M",
         {{NAN, NAN}, {100, 120}},
         "100 105 110 115 120 (273 1844.7) (840 1699.3) "},
    };
    struct et_run *run = begin(cx);
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < sizeof row / sizeof *row; i++)
            for (int of = 0; of < 2 && row[i].name[of]; of++) {
                struct et_log_entry entry = {.value = row[i].value[of][k]};
                snprintf(entry.name, sizeof entry.name, "%s", row[i].name[of]);
                write_records(run, ET_RECORD_METRIC, 1 + 3 * k, NULL, &entry, 1);
            }
    et_run_close(&run);
    char *text = text_of(cx, eti_export_svg, NULL);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        is_str(panel_of(text, row[i].title), row[i].shows,
               "panel %s, with %g and %g in it", row[i].title, row[i].value[0][0],
               row[i].value[0][1]);
    ok(!strstr(text, "nan") && !strstr(text, "inf"), "each place is a number");
    free(text);
    clean();
    run = begin(cx);
    batch(run, 0, 7);
    et_run_close(&run);
    text = text_of(cx, eti_export_svg, "^loss");
    is_str(panel_of(text, "loss"), "6.8 7.0 7.2 (84 176) ",
           "a run of no batches has its values at the left");
    free(text);
    clean();
}

/* A series whose name is the beginning of another's that comes where that is usual. */
static void
test_beginnings(struct et_ctx *cx)
{
    static const char *const names[] = {"own/value", "own/", "own", "own/values"};
    struct et_run *run = begin(cx);
    for (int i = 0; i < 4; i++) {
        struct et_log_entry entry = {.value = i};
        snprintf(entry.name, sizeof entry.name, "%s", names[i]);
        write_records(run, ET_RECORD_METRIC, 1, NULL, &entry, 1);
    }
    et_run_close(&run);
    char *text = text_of(cx, eti_export_svg, NULL);
    for (int i = 0; i < 4; i++) {
        char head[64];
        snprintf(head, sizeof head, "class=\"h\">%s<", names[i]);
        is_int(count(text, head), 1, "%s is a series of its own", names[i]);
    }
    free(text);
    clean();
}

/* Series of up to 64 points have dots, and come behind the others. */
static void
test_dots(struct et_ctx *cx)
{
    char lines[64];
    struct et_run *run = begin(cx);
    for (int ba = 1; ba <= 65; ba++) {
        const struct et_log_entry entry[] = {{"loss/b", ba}, {"loss/a", ba}};
        write_records(run, ET_RECORD_METRIC, ba, NULL, entry, ba > 64 ? 1 : 2);
    }
    et_run_close(&run);
    char *text = text_of(cx, eti_export_svg, NULL);
    colours(text, false, lines);
    is_int(count(text, "<circle"), 64, "of 64 points each has a dot, of 65 none");
    is_int(count(text, "<circle fill=\"#0072b2\""), 64, "of their line's colour");
    is_str(lines, "#d55e00 #0072b2 ", "and their line is the upper one");
    free(text);
    clean();
}

/* Legends stand beside each other as far as there is room; the first always does. */
static void
test_legend(struct et_ctx *cx)
{
    static const int lengths[][4] = {{40, 40, 40, 0}, {95, 95, 0}, {52, 51, 20, 0}};
    static const char *const places[] = {"84 382 ", "84 ", "84 461.2 "};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct et_run *run = begin(cx);
        struct et_log_entry entry[4];
        char got[128] = "";
        int n = 0;
        for (; lengths[i][n]; n++) {
            snprintf(entry[n].name, sizeof entry[n].name, "loss/%d%0*d", n,
                     lengths[i][n] - 6, 0);
            entry[n].value = lengths[i][0] == 95 ? NAN : n; /* which is told there */
        }
        write_records(run, ET_RECORD_METRIC, 3, NULL, entry, n);
        et_run_close(&run);
        char *text = text_of(cx, eti_export_svg, NULL);
        for (const char *at = text; (at = strstr(at, "h16\"/>")) != NULL; at++) {
            const char *from = at;
            while (*from != 'M')
                from--;
            double x = strtod(from + 1, NULL);
            snprintf(got + strlen(got), sizeof got - strlen(got), "%g ", x);
        }
        is_str(got, places[i], "of names of %d, %d and %d letters these are told",
               lengths[i][0], lengths[i][1], lengths[i][2]);
        free(text);
        clean();
    }
}

static char warning[256];

static void
take_warning(void *data, enum et_log_level level, const char *text)
{
    (void)data, (void)level;
    snprintf(warning, sizeof warning, "%s", text);
}

/* A chart has room for some series. Each panel has the colours from the first on. */
static void
test_many_series(struct et_ctx *cx)
{
    enum { SERIES = 51, ROOM = 48 };
    struct et_log_entry entry[SERIES];
    for (int n = ROOM; n <= SERIES; n += SERIES - ROOM) {
        struct et_run *run = begin(cx);
        char height[64];
        for (int i = 0; i < n; i++) {
            snprintf(entry[i].name, sizeof entry[i].name, "%s/%02d",
                     i < 9 ? "loss" : "own", i);
            entry[i].value = i;
        }
        write_records(run, ET_RECORD_METRIC, 3, NULL, entry, n);
        et_run_close(&run);
        warning[0] = '\0';
        et_ctx_set_log(cx, ET_LOG_WARN, take_warning, NULL);
        char *text = text_of(cx, eti_export_svg, NULL);
        et_ctx_set_log(cx, ET_LOG_WARN, NULL, NULL);
        is_str(warning, n > ROOM ? "the chart has 48 series; 3 more are left out" : "",
               "of %d series it is told how many are left out", n);
        snprintf(height, sizeof height, " height=\"%d\"", 52 + 40 * 266);
        ok(strstr(text, height), "and the picture is as high as its panels");
        is_int(count(text, "<circle fill=\"#000000\""), 1,
               "of nine losses the seventh has the last colour,");
        is_int(count(text, "<circle fill=\"#0072b2\""), 39 + 2,
               "the eighth the first again, as each other panel's line");
        free(text);
        clean();
    }
}

static void
test_reduction(struct et_ctx *cx)
{
    enum { BATCHES = 100000, PEAK = 61803 };
    struct et_run *run = begin(cx);
    for (int ba = 1; ba <= BATCHES; ba++)
        batch(run, ba, ba == PEAK ? 95 : ba % 10);
    et_run_close(&run);
    char *text = text_of(cx, eti_export_svg, "^loss");
    int points = count(text, "L");
    ok(points > 200 && points < 700, "%d batches are some hundred points: %d", BATCHES,
       points);
    ok(strlen(text) < 20000, "and %zu bytes", strlen(text));
    /* The panel reaches 5 % past the greatest value: 95 lies at 1/22 of its height. */
    double x = 84 + (860 - 84 - 20) * (double)PEAK / BATCHES, y = 52 + 44 + 160 / 22.0;
    char vertex[64];
    snprintf(vertex, sizeof vertex, "L%.1f %.1f", x, y);
    ok(strstr(text, vertex) != NULL, "the one peak is among them: %s", vertex);
    ok(strstr(text, ">100k</text>") != NULL, "thousands are written k");
    free(text);
    clean();
}

static void
test_damage(struct et_ctx *cx)
{
    const struct eti_export x = {"no/such/events.log", "", NULL};
    FILE *f = fopen("/dev/full", "w");
    is_int(eti_export_csv(cx, &x, f), ET_ENOENT, "a log that is not there");
    et_error_clear(cx);
    rewind(f);
    write_resumed(cx);
    const struct eti_export y = {events_path(), "", NULL};
    is_int(eti_export_jsonl(cx, &y, f), ET_EIO, "a full disk");
    et_error_clear(cx);
    is_int(eti_export_svg(cx, &y, f), ET_EIO, "for a chart too");
    et_error_clear(cx);
    fclose(f);
    clean();
}

/* One batch with more numbers than usual: monitors log some for each parameter. */
static void
test_many(struct et_ctx *cx)
{
    enum { MANY = 1500 };
    struct et_log_entry *entry = calloc(MANY, sizeof *entry);
    struct et_run *run = begin(cx);
    int lines = 0;
    for (int i = 0; i < MANY; i++) {
        snprintf(entry[i].name, sizeof entry[i].name, "l2_norm/grad/%d", i);
        entry[i].value = i;
    }
    write_records(run, ET_RECORD_BATCH, 1, NULL, entry, 2);
    write_records(run, ET_RECORD_EPOCH, 1, NULL, entry + 2, 2);
    write_records(run, ET_RECORD_BATCH, 2, NULL, entry, MANY);
    et_run_close(&run);
    free(entry);
    char *text = text_of(cx, eti_export_csv, NULL);
    for (const char *p = text; (p = strchr(p, '\n')); p++)
        lines++;
    is_int(lines, MANY + 5, "a record of %d numbers is exported whole, behind others",
           MANY);
    ok(strstr(text, "1000000001.000,epoch,0,1,8,l2_norm/grad/3,3\n") != NULL,
       "so are the numbers of an epoch");
    free(text);
    clean();
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    struct et_alloc_stats stats;
    snprintf(directory, sizeof directory, "%s/run", scratch_folder());
    test_lines(cx);
    test_earlier(cx);
    test_tensorboard(cx);
    test_chart(cx);
    test_picture(cx);
    test_many_marks(cx);
    test_units(cx);
    test_spans(cx);
    test_colours(cx);
    test_ranges(cx);
    test_beginnings(cx);
    test_dots(cx);
    test_legend(cx);
    test_many_series(cx);
    test_reduction(cx);
    test_damage(cx);
    test_many(cx);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
