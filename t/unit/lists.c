/* SPDX-License-Identifier: Apache-2.0 */
/* What lists of runs show: which of them a filter leaves, in which order they stand,
 * how far each is, and which keys there are. The runs are JSON of this test. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/library/list.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static json_t *
parse(const char *text)
{
    json_error_t error;
    json_t *json = json_loads(text, 0, &error);
    if (!json)
        bail("%s: %s", error.text, text);
    return json;
}

/* The names in LIST, blanks between. */
static const char *
names_of(const json_t *list)
{
    static char text[4096];
    size_t i, n = 0;
    json_t *v;
    text[0] = '\0';
    json_array_foreach(list, i, v) n +=
        (size_t)snprintf(text + n, sizeof text - n, "%s%s", i ? " " : "",
                         json_string_value(json_object_get(v, "name")));
    return text;
}

/* ---- which ---- */

static const char three[] =
    "[{'name':'calm-heron','state':'finished','recipe':'mnist.yaml','ba':10,"
    "  'directory':'runs/a','tags':'first good','algorithms':['mixup','ema'],"
    "  'config':{'model.name':'lenet','train_data.name':'fashion','optimizer.lr':0.1},"
    "  'metrics':{'metrics/eval/Accuracy':{'best':0.9,'n':1}}},"
    " {'name':'brisk-otter','state':'failed','recipe':'cifar.yaml','ba':200,"
    "  'directory':'runs/b','tags':'second','algorithms':['sam'],"
    "  'config':{'model.name':'resnet20','train_data.name':'cifar10',"
    "  'optimizer.lr':0.02},"
    "  'metrics':{'metrics/eval/Accuracy':{'best':0.7,'n':1}}},"
    " {'name':'dry-newt','state':'running','recipe':null,'ba':3,'directory':'runs/c',"
    "  'algorithms':[],'config':{},'metrics':{}}]";

static json_t *
parse_single(const char *quoted)
{
    char text[4096];
    snprintf(text, sizeof text, "%s", quoted);
    for (char *p = text; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    return parse(text);
}

static void
test_choose(struct et_ctx *cx)
{
    static const struct {
        const char *filter, *names;
    } row[] = {
        {"", "calm-heron brisk-otter dry-newt"},
        {"HERON", "calm-heron"},
        {"finished", "calm-heron"},
        {"cifar.yaml", "brisk-otter"},
        {"resnet", "brisk-otter"},
        {"fashion", "calm-heron"},
        {"runs/c", "dry-newt"},
        {"second", "brisk-otter"},
        {"EMA", "calm-heron"},
        {"mixup", "calm-heron"},
        {"0.02", ""},
        {"!heron", "brisk-otter dry-newt"},
        {"heron | otter", "calm-heron brisk-otter"},
        {"heron otter", ""},
        {"ba>3", "calm-heron brisk-otter"},
        {"ba<=10", "calm-heron dry-newt"},
        {"optimizer.lr=0.02", "brisk-otter"},
        {"accuracy>0.8", "calm-heron"},
        {"model=lenet", "calm-heron"},
    };
    json_t *list = parse_single(three);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct eti_filter *f;
        need(cx, eti_filter_new(cx, row[i].filter, &f));
        json_t *chosen = eti_runs_choose(f, list);
        is_str(names_of(chosen), row[i].names, "'%s' leaves those that it fits",
               row[i].filter);
        json_decref(chosen);
        eti_filter_free(&f);
    }
    json_decref(list);
}

/* ---- keys that there are ---- */

static void
test_check(struct et_ctx *cx)
{
    static const struct {
        const char *filter, *sort, *why; /* "": it is right */
    } row[] = {
        {NULL, NULL, ""},
        {NULL, "name", ""},
        {NULL, "-name", ""},
        {NULL, "reason", ""}, /* no run has one yet */
        {NULL, "accuracy", ""},
        {NULL, "-Accuracy", ""},
        {NULL, "optimizer.lr", ""},
        {"ba>1", NULL, ""},
        {"optimizer.lr>0", "ba", ""},
        {NULL, "nonsense", "no run has the key 'nonsense'"},
        {NULL, "-nonsense", "no run has the key 'nonsense'"},
        {NULL, "nam", "no run has the key 'nam' (did you mean 'name'?)"},
        {NULL, "optimizer.lrr",
         "no run has the key 'optimizer.lrr' (did you mean 'optimizer.lr'?)"},
        {"stat=failed", "nonsense",
         "no run has the key 'stat' (did you mean 'state'?)"},
        {"acc>0.5", NULL, "no run has the key 'acc' (did you mean 'Accuracy'?)"},
        {"ac>0.5", NULL, "no run has the key 'ac'"},
        {"tra>1", NULL, "no run has the key 'tra' (did you mean 'train_data'?)"},
        {"MAX_DUR>1", NULL,
         "no run has the key 'MAX_DUR' (did you mean 'max_duration'?)"},
    };
    json_t *list = parse_single(three), *none = json_array();
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct eti_filter *f = NULL;
        if (row[i].filter)
            need(cx, eti_filter_new(cx, row[i].filter, &f));
        et_status status = eti_runs_check(cx, f, row[i].sort, list);
        is_int(status, *row[i].why ? ET_EINVAL : ET_OK, "%s by %s",
               row[i].filter ? row[i].filter : "all",
               row[i].sort ? row[i].sort : "age");
        is_str(status == ET_OK ? "" : take_error(cx), row[i].why, "what is said of it");
        is_int(eti_runs_check(cx, f, row[i].sort, none), ET_OK,
               "where there are no runs nothing is wrong with it");
        eti_filter_free(&f);
    }
    json_decref(list);
    json_decref(none);
}

/* ---- in which order: thousands of lists against a plain second way ---- */

enum { TEXTS = 256, MOST = 12 };

/* A value of a run, of which the JSON is made. */
struct own {
    int kind; /* 0: none, 1: a number, 2: text */
    double number;
    const char *text;
};
struct key {
    const char *key, *json; /* where the value lies: "%s" */
    bool is_more_better;
};
static const struct key keys[] = {
    {"ba", "\"ba\":%s", false},
    {"optimizer.lr", "\"config\":{\"optimizer.lr\":%s}", false},
    {"recipe", "\"recipe\":%s", false},
    {"accuracy", "\"metrics\":{\"metrics/eval/Accuracy\":{\"best\":%s}}", true},
    {"metrics/eval/Accuracy", "\"metrics\":{\"metrics/eval/Accuracy\":{\"best\":%s}}",
     true},
    {"loss/train/total", "\"metrics\":{\"loss/train/total\":{\"best\":%s}}", false},
};

static struct own
draw(unsigned *seed, const struct key *key)
{
    static const char *const texts[] = {"1a", "a", "B", "10x", "nan", "2 3", "zz"};
    bool is_metric = strstr(key->json, "metrics") != NULL;
    struct own v = {.kind = rand_r(seed) % (is_metric ? 2 : 3)};
    v.number = rand_r(seed) % 12;
    v.text = texts[(size_t)rand_r(seed) % (sizeof texts / sizeof *texts)];
    return v;
}

static json_t *
run_of(int i, const struct own *v, const struct key *key)
{
    char value[32], part[128], text[256];
    if (v->kind == 1)
        snprintf(value, sizeof value, "%g", v->number);
    else if (v->kind == 2)
        snprintf(value, sizeof value, "\"%s\"", v->text);
    else
        snprintf(value, sizeof value, "null");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(part, sizeof part, key->json, value);
#pragma GCC diagnostic pop
    snprintf(text, sizeof text, "{\"name\":\"r%d\",%s}", i, part);
    return parse(text);
}

/* Does A stand before B? Numbers from the least, then texts, then what has none; the
 * other way round, but for these, where it is REVERSED. */
static bool
stands_before(const struct own *a, const struct own *b, bool reversed)
{
    if (!a->kind || !b->kind)
        return a->kind && !b->kind;
    int order = a->kind != b->kind ? a->kind - b->kind
                : a->kind == 1     ? (a->number > b->number) - (a->number < b->number)
                                   : strcmp(a->text, b->text);
    return reversed ? order > 0 : order < 0;
}

/* By looking again and again for one that stands before all that are left: their names
 * into TEXT [TEXTS]. */
static void
sort_plainly(const struct own *v, int n, bool reversed, char *text)
{
    bool used[MOST] = {false};
    text[0] = '\0';
    for (int k = 0; k < n; k++) {
        int first = -1;
        for (int i = 0; i < n; i++)
            if (!used[i] && (first < 0 || stands_before(&v[i], &v[first], reversed)))
                first = i;
        used[first] = true;
        size_t end = strlen(text);
        snprintf(text + end, TEXTS - end, "%sr%d", k ? " " : "", first);
    }
}

static void
test_sort(void)
{
    enum { LISTS = 3000 };
    unsigned seed = 7;
    int wrong = 0;
    for (int t = 0; t < LISTS; t++) {
        const struct key *key =
            &keys[(size_t)rand_r(&seed) % (sizeof keys / sizeof *keys)];
        bool minus = rand_r(&seed) % 2;
        int n = rand_r(&seed) % (MOST + 1);
        struct own v[MOST];
        char want[TEXTS], name[64];
        json_t *list = json_array();
        for (int i = 0; i < n; i++) {
            v[i] = draw(&seed, key);
            json_array_append_new(list, run_of(i, &v[i], key));
        }
        sort_plainly(v, n, minus != key->is_more_better, want);
        snprintf(name, sizeof name, "%s%s", minus ? "-" : "", key->key);
        json_t *sorted = eti_runs_sort(list, name);
        if (strcmp(names_of(sorted), want) != 0 && wrong++ == 0)
            diag("list %d by %s: %s, not %s", t, name, names_of(sorted), want);
        json_decref(sorted);
        json_decref(list);
    }
    is_int(wrong, 0, "runs stand in the order of any key, either way round");
}

/* ---- what is shown of one ---- */

static void
test_progress(void)
{
    static const struct {
        const char *facts, *progress;
        double done;
    } row[] = {
        {"{'ba':7}", "7ba", NAN},
        {"{}", "-", NAN},
        {"{'ep':6,'ba':60,'config':{'max_duration':'16ep'}}", "6/16ep", 6 / 16.},
        {"{'ep':6,'ba':60,'config':{'max_duration':'120ba'}}", "60/120ba", .5},
        {"{'sp':30,'ba':60,'config':{'max_duration':'120sp'}}", "30/120sp", .25},
        {"{'ba':60,'config':{'max_duration':'16ep'}}", "60ba", NAN},
        {"{'ep':6,'ba':60,'config':{'max_duration':'1h'}}", "60ba", NAN},
        {"{'ep':6,'ba':60,'config':{'max_duration':'ep'}}", "60ba", NAN},
        {"{'ep':17,'ba':60,'config':{'max_duration':'16ep'}}", "17/16ep", 1},
        {"{'ep':6,'ba':60,'batches':80,'config':{'max_duration':'16ep'}}", "6/16ep",
         .75},
        {"{'ba':90,'batches':80}", "90ba", 1},
        {"{'ep':0,'ba':0,'config':{'max_duration':'0ep'}}", "0/0ep", NAN},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char text[64];
        json_t *facts = parse_single(row[i].facts);
        is_str(eti_run_progress(facts, text, sizeof text), row[i].progress,
               "how far %s is", row[i].facts);
        double done = eti_run_done(facts);
        ok(isnan(row[i].done) ? isnan(done) : done == row[i].done, "which is %g of it",
           row[i].done);
        json_decref(facts);
    }
}

static void
test_speed(void)
{
    static const struct {
        const char *facts;
        double speed;
    } row[] = {
        {"{'sp':300,'train_seconds':10,'metrics':{"
         "'throughput/samples_per_sec':{'last':25,'best':99}}}",
         25},
        {"{'sp':300,'train_seconds':10,'metrics':{"
         "'throughput/samples_per_sec':{'last':null}}}",
         30},
        {"{'sp':300,'train_seconds':10}", 30},
        {"{'sp':300,'train_seconds':0}", NAN},
        {"{'sp':300}", NAN},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        json_t *facts = parse_single(row[i].facts);
        double speed = eti_run_speed(facts);
        ok(isnan(row[i].speed) ? isnan(speed) : speed == row[i].speed,
           "the speed of %s is %g", row[i].facts, row[i].speed);
        json_decref(facts);
    }
}

static void
test_metric(void)
{
    static const struct {
        const char *facts, *name;
    } row[] = {
        {"{'metrics':{'loss/train/total':{},'metrics/train/Accuracy':{},"
         "'metrics/eval/Accuracy':{},'metrics/eval/Error':{}}}",
         "metrics/eval/Accuracy"},
        {"{'metrics':{'loss/train/total':{},'metrics/train/Accuracy':{}}}", NULL},
        {"{'metrics':{'metrics/training/Accuracy':{}}}", "metrics/training/Accuracy"},
        {"{}", NULL},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const char *name = "none";
        json_t *facts = parse_single(row[i].facts);
        const json_t *entry = eti_run_metric(facts, &name);
        ok(row[i].name
               ? entry == json_object_get(json_object_get(facts, "metrics"), name) &&
                     strcmp(name, row[i].name) == 0
               : !entry,
           "%s: known by %s", row[i].facts, row[i].name ? row[i].name : "none");
        json_decref(facts);
    }
}

/* A run of this process goes on; one of a process that began at another time is of
 * another that had its number. */
static void
test_kind(void)
{
    static const struct {
        const char *state;
        enum eti_state_kind alive, gone;
    } row[] = {
        {"running", ETI_STATE_ACTIVE, ETI_STATE_BROKEN},
        {"paused", ETI_STATE_WAITING, ETI_STATE_BROKEN},
        {"finished", ETI_STATE_DONE, ETI_STATE_DONE},
        {"preempted", ETI_STATE_HALTED, ETI_STATE_HALTED},
        {"failed", ETI_STATE_BROKEN, ETI_STATE_BROKEN},
        {"nonsense", ETI_STATE_BROKEN, ETI_STATE_BROKEN},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        for (int gone = 0; gone < 2; gone++) {
            json_t *facts =
                json_pack("{s:s, s:I, s:I, s:o}", "state", row[i].state, "pid",
                          (json_int_t)getpid(), "pid_started",
                          (json_int_t)(eti_process_started(getpid()) + gone), "boot_id",
                          eti_boot_id());
            is_int(eti_run_kind(facts), gone ? row[i].gone : row[i].alive,
                   "'%s', and its process is %s", row[i].state,
                   gone ? "gone" : "there");
            json_decref(facts);
        }
}

static void
test_when(void)
{
    static const struct {
        double t, today;
        const char *text;
    } row[] = {
        {1763646960, 1763679600, "today 13:56"}, /* 2025-11-20 */
        {1763646960, 1763683200, "11-20 13:56"}, /* a second later: the 21st */
        {1763646960, 1763596800, "today 13:56"}, /* the day's first second */
        {1763646960, 1767225599, "11-20 13:56"}, /* the year's last */
        {1763646960, 1767225600, "2025-11-20"},
        {1763646960, 1795182960, "2025-11-20"}, /* the same day of another year */
        {0, 1763679600, "-"},
        {-1, 1763679600, "-"},
    };
    setenv("TZ", "UTC", 1);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char text[32];
        is_str(eti_run_when(row[i].t, row[i].today, text, sizeof text), row[i].text,
               "%.0f, when it is %.0f", row[i].t, row[i].today);
    }
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    test_choose(cx);
    test_check(cx);
    test_sort();
    test_progress();
    test_speed();
    test_metric();
    test_kind();
    test_when();
    et_ctx_free(&cx);
    return done();
}
