/* SPDX-License-Identifier: Apache-2.0 */
/* facts.c: what is known of a run: run.json, report.json, recipe.resolved.yaml, and the
 * series of events.log.
 *
 * A process is the run's if pid, boot id and the moment it began are: numbers of
 * processes are used again. */
#include "config.h"

#include "core/library/facts.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/folders.h"
#include "core/callbacks/callbacks.h"
#include "core/loggers/given.h"
#include "core/recipe/value.h"
#include "etude/control.h"

enum {
    FILE_PATH = PATH_MAX + 64, /* of a file in a directory */
    MOST_JSON = 16 << 20,      /* bytes; a run's own are some KB */
};

static const char *const alive[] = {"queued",     "starting",      "running",
                                    "evaluating", "checkpointing", "paused",
                                    "stopping"};

/* Series that are worth a place among the facts: others are as many as layers. */
static const char *const kept[] = {"metrics/", "loss/", "throughput/"};

static void
say_problem(json_t *facts, const char *text)
{
    char visible[ET_VISIBLE_MAX + 1];
    et_visible(visible, sizeof visible, text, strlen(text));
    if (!json_object_get(facts, "problem"))
        json_object_set_new(facts, "problem", json_string(visible));
}

json_t *
eti_facts_load(const char *path, size_t flags, struct json_error_t *error)
{
    struct stat st;
    FILE *f = eti_open_regular(path);
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    json_t *json = NULL;
    error->line = 0;
    if (!f)
        snprintf(error->text, sizeof error->text, "%.100s is no file that can be read",
                 name);
    else if (fstat(fileno(f), &st) == 0 && st.st_size > MOST_JSON)
        snprintf(error->text, sizeof error->text,
                 "%.60s has %lld bytes: more than %d are not read", name,
                 (long long)st.st_size, MOST_JSON);
    else
        json = json_loadf(f, flags, error);
    if (f)
        fclose(f);
    return json;
}

/* ---- run.json, report.json ---- */

/* A name that is not UTF-8 is told as it is shown: no file is found by it, and that is
 * said. */
static void
set_directory(json_t *facts, const char *path)
{
    char visible[ET_VISIBLE_MAX + 1];
    if (json_object_set_new(facts, "directory", json_string(path)) == 0)
        return;
    et_visible(visible, sizeof visible, path, strlen(path));
    json_object_set_new(facts, "directory", json_string(visible));
    say_problem(facts, "the directory's name is not UTF-8");
}

static et_status
read_run(struct et_ctx *cx, json_t *facts, const char *directory)
{
    static const char *const keys[] = {
        "name",    "id",      "recipe", "state",       "exit_code",
        "started", "ended",   "pid",    "pid_started", "boot_id",
        "version", "threads", "joined", "reason",      "rested",
    };
    char path[FILE_PATH];
    json_error_t error;
    snprintf(path, sizeof path, "%s/run.json", directory);
    if (access(path, F_OK) != 0)
        return ET_FAIL(cx, ET_ENOENT, "%s holds no run: there is no run.json",
                       directory);
    json_t *run = eti_facts_load(path, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(run)) {
        json_object_set_new(facts, "state", json_string("unreadable"));
        say_problem(facts, run ? "run.json is no object" : error.text);
    } else {
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
            json_t *v = json_object_get(run, keys[i]);
            if (v && !json_is_object(v) && !json_is_array(v))
                json_object_set(facts, keys[i], v);
        }
    }
    json_decref(run);
    return ET_OK;
}

static void
read_report(json_t *facts, const char *directory)
{
    static const char *const keys[] = {"reason",        "ep",          "ba", "sp",
                                       "train_seconds", "microbatches"};
    char path[FILE_PATH];
    json_error_t error;
    snprintf(path, sizeof path, "%s/report.json", directory);
    if (access(path, F_OK) != 0)
        return;
    json_t *report = eti_facts_load(path, 0, &error);
    if (!json_is_object(report))
        say_problem(facts, "report.json cannot be read");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_t *v = json_object_get(report, keys[i]);
        if (v && !(json_is_null(v) && json_object_get(facts, keys[i])))
            json_object_set(facts, keys[i], v);
    }
    json_decref(report);
}

/* ---- the recipe ---- */

static const char resolved_name[] = "recipe.resolved.yaml";

static json_t *
scalar(const struct et_value *v)
{
    switch (v->type) {
    case ET_VALUE_BOOL:
        return json_boolean(v->b);
    case ET_VALUE_INT:
        return json_integer(v->i);
    case ET_VALUE_FLOAT:
        return isfinite(v->f) ? json_real(v->f) : json_string(v->text);
    case ET_VALUE_STRING:
        return json_string(v->text);
    default:
        return json_null();
    }
}

static void
put_scalar(void *data, const char *key, const struct et_value *v)
{
    json_object_set_new(data, key, scalar(v));
}

static char *
read_text(const char *directory, const char *name, size_t most, size_t *n)
{
    char path[FILE_PATH];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *f = eti_open_regular(path);
    char *text = f ? malloc(most) : NULL;
    *n = text ? fread(text, 1, most, f) : 0;
    if (f)
        fclose(f);
    return text;
}

json_t *
eti_facts_config(struct et_ctx *cx, const char *text, size_t n, json_t **algorithms)
{
    static const struct eti_source source = {.name = resolved_name};
    struct et_diagnostics errors = {0};
    struct eti_arena arena;
    struct et_value *root = NULL;
    json_t *config = json_object(), *names = json_array();
    eti_arena_init(&arena, cx, 64 << 10);
    if (eti_yaml_parse(&arena, text, n, &source, &eti_yaml_limits, &errors, &root) !=
        ET_OK)
        et_error_clear(cx);
    const bool is_one = root != NULL;
    if (is_one)
        eti_given_walk(root, put_scalar, config);
    const struct et_value *all = eti_value_get(root, "algorithms");
    for (const struct et_value *a = all ? all->first : NULL; a; a = a->next)
        if (a->key && !(a->type == ET_VALUE_BOOL && !a->b)) /* false: it is off */
            json_array_append_new(names, json_string(a->key));
    eti_arena_release(&arena);
    if (algorithms && is_one)
        *algorithms = json_incref(names);
    json_decref(names);
    if (is_one)
        return config;
    json_decref(config);
    return NULL;
}

static void
read_recipe(struct et_ctx *cx, json_t *facts, const char *directory)
{
    size_t n;
    char *text = read_text(directory, resolved_name, eti_yaml_limits.bytes, &n);
    json_t *algorithms = NULL;
    json_t *config = text ? eti_facts_config(cx, text, n, &algorithms) : NULL;
    if (text && !config)
        say_problem(facts, "recipe.resolved.yaml cannot be read");
    json_object_set_new(facts, "config", config ? config : json_object());
    json_object_set_new(facts, "algorithms", algorithms ? algorithms : json_array());
    free(text);
}

/* What people called the run: its recipe's tags, or those of the file "tags". */
static void
read_tags(json_t *facts, const char *directory)
{
    enum { MOST = 200 };
    char visible[MOST + 1], key[32];
    const json_t *config = json_object_get(facts, "config");
    size_t n, used = 0;
    char *text = read_text(directory, "tags", MOST, &n);
    visible[0] = '\0';
    if (text)
        et_visible(visible, sizeof visible, text, n);
    for (int i = 0; !text && used < MOST; i++) {
        snprintf(key, sizeof key, "tags.%d", i);
        const char *tag = json_string_value(json_object_get(config, key));
        if (!tag)
            break;
        used +=
            (size_t)snprintf(visible + used, MOST - used, "%s%s", i ? " " : "", tag);
    }
    free(text);
    if (*visible)
        json_object_set_new(facts, "tags", json_string(visible));
}

/* ---- events.log ---- */

static json_t *
number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static void
add_metric(json_t *metrics, const struct et_series *s)
{
    const struct et_series_stats *a = &s->all;
    bool is_kept = false;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        is_kept = is_kept || strncmp(s->name, kept[i], strlen(kept[i])) == 0;
    if (!is_kept)
        return;
    const struct et_series_point *best =
        eti_less_is_better(s->name) ? &a->min : &a->max;
    bool any = a->n > 0;
    json_object_set_new(metrics, s->name,
                        json_pack("{s:I, s:o, s:I, s:o, s:o, s:o, s:o, s:o}", "n",
                                  (json_int_t)a->n, "last", number(a->last.value), "ba",
                                  (json_int_t)a->last.ba, "best",
                                  any ? number(best->value) : json_null(), "best_ba",
                                  any ? json_integer(best->ba) : json_null(), "best_t",
                                  any ? number(best->t) : json_null(), "min",
                                  any ? number(a->min.value) : json_null(), "max",
                                  any ? number(a->max.value) : json_null()));
}

/* While a run goes on, how far it is stands in its counts alone. */
static void
add_progress(json_t *facts, const struct et_series *s)
{
    static const char *const counts[][2] = {
        {"time/epoch", "ep"}, {"time/batch", "ba"}, {"time/sample", "sp"}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (strcmp(s->name, counts[i][0]) == 0 &&
            !json_object_get(facts, counts[i][1]) && isfinite(s->all.last.value))
            json_object_set_new(facts, counts[i][1],
                                json_integer((json_int_t)s->all.last.value));
}

/* The greatest rate that any group of parameters had: a schedule, or a command, may
 * have led far from what the recipe sets. */
static void
add_rate(json_t *facts, const struct et_series *s)
{
    const double most = s->all.n > 0 ? s->all.max.value : NAN;
    if (strncmp(s->name, "lr-", 3) == 0 && isfinite(most) &&
        most > json_number_value(json_object_get(facts, "greatest_lr")))
        json_object_set_new(facts, "greatest_lr", json_real(most));
}

/* How often the run was resumed, and how many batches it is to have, where that is
 * known: a resume may make it longer, so the last word counts. */
static et_status
read_course(struct et_events *e, json_t *facts)
{
    struct et_record r;
    bool got;
    int n = 0;
    ET_TRY(et_events_only(e, UINT64_C(1) << ET_RECORD_RESUME | UINT64_C(1)
                                                                   << ET_RECORD_RUN));
    for (;;) {
        ET_TRY(et_events_next(e, &r, &got));
        if (!got)
            break;
        n += r.kind == ET_RECORD_RESUME;
        for (int i = 0; i < r.n && r.kind == ET_RECORD_RUN; i++)
            if (strcmp(r.entry[i].name, "run/batches") == 0 && r.entry[i].value >= 1 &&
                r.entry[i].value < 0x1p53)
                json_object_set_new(facts, "batches",
                                    json_integer((json_int_t)r.entry[i].value));
    }
    json_object_set_new(facts, "resumes", json_integer(n));
    return ET_OK;
}

static void
read_series(struct et_ctx *cx, json_t *facts, const char *directory)
{
    char path[FILE_PATH];
    struct et_events *e;
    const struct et_series *list;
    int n = 0;
    json_t *metrics = json_object();
    snprintf(path, sizeof path, "%s/events.log", directory);
    et_status status = et_events_open(cx, path, &e);
    if (status == ET_OK)
        status = et_events_series(e, &list, &n);
    for (int i = 0; i < n && status == ET_OK; i++) {
        add_metric(metrics, &list[i]);
        add_progress(facts, &list[i]);
        add_rate(facts, &list[i]);
    }
    if (status == ET_OK)
        status = read_course(e, facts);
    if (status != ET_OK && status != ET_ENOENT)
        say_problem(facts, et_error_get(cx)->message);
    et_error_clear(cx);
    et_events_close(&e);
    json_object_set_new(facts, "metrics", metrics);
}

et_status
eti_facts_read_state(struct et_ctx *cx, const char *directory, json_t **out)
{
    *out = json_object();
    et_status status = read_run(cx, *out, directory);
    set_directory(*out, directory);
    if (status == ET_OK)
        return ET_OK;
    json_decref(*out);
    *out = NULL;
    return status;
}

et_status
eti_facts_read(struct et_ctx *cx, const char *directory, json_t **out)
{
    char whole[PATH_MAX];
    const char *path = realpath(directory, whole) ? whole : directory;
    ET_TRY(eti_facts_read_state(cx, path, out));
    read_report(*out, path);
    read_recipe(cx, *out, path);
    eti_facts_add_joined(*out);
    read_tags(*out, path);
    read_series(cx, *out, path);
    return ET_OK;
}

const char *
eti_facts_stamp(const char *directory, char *buf, double *newest)
{
    static const char *const files[] = {"run.json", "report.json", "events.log",
                                        "tags"};
    char path[FILE_PATH];
    size_t used = 0;
    buf[0] = '\0';
    *newest = 0;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct stat st = {0};
        snprintf(path, sizeof path, "%s/%s", directory, files[i]);
        if (stat(path, &st) != 0 && i == 0)
            return buf;
        *newest = fmax(*newest,
                       (double)st.st_mtim.tv_sec + 1e-9 * (double)st.st_mtim.tv_nsec);
        int n = snprintf(buf + used, ETI_FACT_TEXT - used, "%lld.%09ld:%lld:%llu ",
                         (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
                         (long long)st.st_size, (unsigned long long)st.st_ino);
        used += n > 0 ? (size_t)n : 0;
    }
    return buf;
}

/* ---- the truth ---- */

json_t *
eti_boot_id(void)
{
    char id[64] = "";
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (f && !fgets(id, sizeof id, f))
        id[0] = '\0';
    if (f)
        fclose(f);
    id[strcspn(id, "\n")] = '\0';
    return id[0] ? json_string(id) : json_null();
}

static bool
same_boot(const char *id)
{
    json_t *now = eti_boot_id();
    bool same = id && json_is_string(now) && strcmp(id, json_string_value(now)) == 0;
    json_decref(now);
    return same;
}

int64_t
eti_process_started(int64_t pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = '\0';
    char *at = strrchr(text, ')'); /* the name before it may hold anything */
    if (at && (strncmp(at, ") Z", 3) == 0 || strncmp(at, ") X", 3) == 0))
        return 0;
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoll(at + 1, NULL, 10) : 0;
}

bool
eti_facts_goes_on(const json_t *facts)
{
    const char *state = json_string_value(json_object_get(facts, "state"));
    for (size_t i = 0; state && i < sizeof alive / sizeof *alive; i++)
        if (strcmp(state, alive[i]) == 0)
            return true;
    return false;
}

bool
eti_facts_is_alive(const json_t *facts)
{
    int64_t pid = json_integer_value(json_object_get(facts, "pid"));
    int64_t started = json_integer_value(json_object_get(facts, "pid_started"));
    if (!eti_facts_goes_on(facts) || pid <= 0 || pid > INT_MAX ||
        !same_boot(json_string_value(json_object_get(facts, "boot_id"))) ||
        (kill((pid_t)pid, 0) != 0 && errno != EPERM))
        return false;
    return eti_process_started(pid) == started;
}

/* Reads run.json again for a run whose process is gone: it may have ended since FACTS
 * were read. */
static void
read_end(json_t *facts)
{
    static const char *const keys[] = {"state", "exit_code", "ended", "reason"};
    const char *directory = json_string_value(json_object_get(facts, "directory"));
    char path[FILE_PATH];
    json_error_t error;
    snprintf(path, sizeof path, "%s/run.json", directory ? directory : "");
    json_t *run = directory ? eti_facts_load(path, 0, &error) : NULL;
    const char *state = json_string_value(json_object_get(run, "state"));
    for (size_t i = 0; state && !eti_facts_goes_on(run) && i < 4; i++)
        json_object_set(facts, keys[i], json_object_get(run, keys[i]));
    json_decref(run);
}

void
eti_facts_make_true(json_t *facts)
{
    if (!eti_facts_goes_on(facts) || eti_facts_is_alive(facts))
        return;
    read_end(facts);
    if (!eti_facts_goes_on(facts))
        return;
    json_object_set_new(facts, "state", json_string("crashed"));
    json_object_set_new(facts, "reason",
                        json_string("its process is gone, and left no word of why"));
}

/* ---- algorithms that joined ---- */

/* The first name at *AT, of *N bytes; *AT goes behind it. NULL: there is no more. */
static const char *
next_name(const char **at, size_t *n)
{
    const char *name = *at + strspn(*at, " ");
    *n = strcspn(name, " ");
    *at = name + *n;
    return *n ? name : NULL;
}

static bool
has_joined(const json_t *facts, const char *name)
{
    const char *at = json_string_value(json_object_get(facts, "joined")), *one;
    size_t n;
    while (at && (one = next_name(&at, &n)) != NULL)
        if (strlen(name) == n && strncmp(one, name, n) == 0)
            return true;
    return false;
}

bool
eti_facts_note_name(json_t *facts, const char *name)
{
    char names[ET_REQUEST_TEXT];
    const char *old = json_string_value(json_object_get(facts, "joined"));
    int n =
        snprintf(names, sizeof names, "%s%s%s", old ? old : "", old ? " " : "", name);
    return !has_joined(facts, name) && n > 0 && (size_t)n < sizeof names &&
           json_object_set_new(facts, "joined", json_string(names)) == 0;
}

bool
eti_facts_note_joined(json_t *facts, const char *text)
{
    struct et_request q;
    return text && strstr(text, " -> " ET_ANSWER_JOINED) &&
           et_request_replay(text, 0, &q) && q.op == ET_REQUEST_ALGO &&
           eti_facts_note_name(facts, q.key);
}

void
eti_facts_add_joined(json_t *facts)
{
    const char *at = json_string_value(json_object_get(facts, "joined")), *one;
    json_t *all = json_object_get(facts, "algorithms"), *v;
    size_t n, i;
    if (!json_is_array(all))
        return;
    while (at && (one = next_name(&at, &n)) != NULL) {
        bool is_there = false;
        json_array_foreach(all, i, v) is_there =
            is_there || (json_is_string(v) && json_string_length(v) == n &&
                         strncmp(json_string_value(v), one, n) == 0);
        if (!is_there)
            json_array_append_new(all, json_stringn(one, n));
    }
}

/* ---- keys ---- */

const json_t *
eti_facts_metric(const json_t *facts, const char *name, size_t n, const char **full)
{
    json_t *metrics = json_object_get(facts, "metrics"), *v;
    const json_t *found = NULL;
    const char *key;
    int fitting = 0;
    json_object_foreach(metrics, key, v)
    {
        const char *slash = strrchr(key, '/'), *last = slash ? slash + 1 : key;
        bool whole = strlen(key) == n && strncmp(key, name, n) == 0;
        bool is_evaluated = strncmp(key, "metrics/train/", 14) != 0;
        if (whole ||
            (is_evaluated && strlen(last) == n && strncasecmp(last, name, n) == 0)) {
            *full = key;
            found = v;
            fitting++;
        }
        if (whole)
            return found;
    }
    return fitting == 1 ? found : NULL;
}

static const char *
as_text(const json_t *v, char *buf)
{
    if (json_is_string(v))
        return json_string_value(v);
    if (json_is_integer(v))
        snprintf(buf, ETI_FACT_TEXT, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
    else if (json_is_real(v))
        snprintf(buf, ETI_FACT_TEXT, "%.15g", json_real_value(v));
    else if (json_is_boolean(v))
        snprintf(buf, ETI_FACT_TEXT, "%s", json_is_true(v) ? "true" : "false");
    else
        return NULL;
    return buf;
}

const char *
eti_facts_get(const json_t *facts, const char *key, char *buf)
{
    const json_t *config = json_object_get(facts, "config");
    const char *text = as_text(json_object_get(facts, key), buf), *full;
    char longer[ETI_FACT_TEXT];
    if (!text)
        text = as_text(json_object_get(config, key), buf);
    snprintf(longer, sizeof longer, "%s.name", key);
    if (!text)
        text = as_text(json_object_get(config, longer), buf);
    snprintf(longer, sizeof longer, "%s.0.name", key);
    if (!text)
        text = as_text(json_object_get(config, longer), buf);
    if (text)
        return text;
    const json_t *metric = eti_facts_metric(facts, key, strlen(key), &full);
    if (metric)
        return as_text(json_object_get(metric, "best"), buf);
    /* "algorithms.ema" has no value of its own but is there. */
    size_t n = (size_t)snprintf(longer, sizeof longer, "%s.", key);
    const char *other;
    json_t *v;
    json_object_foreach((json_t *)config, other,
                        v) if (strncmp(other, longer, n) == 0) return "";
    if (strncmp(key, "algorithms.", 11) == 0) {
        size_t i;
        json_array_foreach(json_object_get(facts, "algorithms"), i,
                           v) if (strcmp(json_string_value(v), key + 11) ==
                                  0) return "";
    }
    return NULL;
}
