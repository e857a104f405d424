/* source_dir.c: a run as its directory shows it: events.log as it grows, and the logs
 * of its ranks. See source.h. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>

#include "core/base/seams.h"
#include "core/run/events.h"
#include "core/run/facts.h"
#include "dist/follow.h"
#include "dist/glance.h"
#include "tui/source.h"

static const double LOOK = 2; /* seconds between looks at the processes of a run */
enum {
    TAIL =
        1
        << 20, /* bytes of a rank's log that are read; what is before is in the file */
    MAX_LOGS = ETD_RANKS,
    LONG = 1 << 20, /* bytes of history that are worth a glance */
};

/* The log of a rank. */
struct log_file {
    int rank;
    FILE *file;
    double t;   /* of the last line that said one */
    char *line; /* the one that comes next, of getline */
    size_t room;
    bool has_line;
    struct tui_log_line next;
};

struct directory {
    struct tui_source source; /* first */
    char *path;
    struct etd_client *client; /* to the run's hub, for requests; NULL: none yet */
    char hub[ETD_ADDRESS];     /* and where that listens */
    struct etd_follow *follow;
    struct etd_glance *glance; /* what stands in while its history is read; NULL */
    bool has_glanced;          /* there will be no other */
    double next_hub;           /* when its hub is looked for again, monotonic */
    double next_look;          /* at run.json, monotonic */
    struct log_file *log;
    int n_logs;
    double next_scan; /* for logs of ranks that are new */
};

static struct directory *
of(struct tui_source *s)
{
    return (struct directory *)s;
}

/* ---- records ---- */

/* Is it still written? A run whose processes are gone is told by run.json alone. */
static bool
look(struct directory *d)
{
    json_t *facts;
    double now = eti_monotonic(d->source.cx);
    if (now < d->next_look)
        return false;
    d->next_look = now + LOOK;
    if (eti_facts_read_state(d->source.cx, d->path, &facts) != ET_OK) {
        et_error_clear(d->source.cx); /* what was known stands */
        return false;
    }
    eti_facts_make_true(facts);
    bool was_alive = d->source.link != TUI_LINK_ENDED;
    bool changed = was_alive != eti_facts_is_alive(facts);
    if (changed)
        d->source.link = was_alive ? TUI_LINK_ENDED : TUI_LINK_LIVE;
    static const char *const kept[] = {"state", "exit_code", "ended", "reason"};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        json_t *v = json_object_get(facts, kept[i]);
        if (!v)
            continue;
        changed |= !json_equal(v, json_object_get(d->source.facts, kept[i]));
        json_object_set(d->source.facts, kept[i], v);
    }
    json_decref(facts);
    return changed;
}

/* Ranks say once a second how they are: nothing of them for some seconds means that
 * nobody writes it down. */
static void
judge_silence(struct directory *d)
{
    struct statvfs v;
    struct tui_source *s = &d->source;
    if (s->link == TUI_LINK_ENDED)
        return;
    bool is_silent =
        s->model->n_ranks > 0 && eti_monotonic(s->cx) - s->heard >= ETD_STALE;
    if (is_silent && s->link != TUI_LINK_STALE)
        s->why =
            statvfs(d->path, &v) == 0 && v.f_bavail == 0 ? "its disk is full" : NULL;
    s->link = is_silent ? TUI_LINK_STALE : TUI_LINK_LIVE;
}

/* The run's hub, if it has one that listens: without it the run is only watched. It may
 * come to listen elsewhere than it was looked for, where a run of the same name has the
 * place. */
static void
find_hub(struct directory *d)
{
    struct etd_target target;
    bool has_one =
        d->client && etd_client_status(d->client)->link != ETD_LINK_DISCONNECTED;
    const char *name = json_string_value(json_object_get(d->source.facts, "name"));
    const char *id = json_string_value(json_object_get(d->source.facts, "id"));
    double now = eti_monotonic(d->source.cx);
    if (now < d->next_hub || !name || has_one)
        return;
    d->next_hub = now + LOOK;
    et_status status = etd_target_local(d->source.cx, name, id, &target);
    if (status == ET_OK && d->client && strcmp(target.address, d->hub) == 0)
        return; /* it tries again by itself */
    if (d->client)
        etd_client_close(&d->client);
    snprintf(d->hub, sizeof d->hub, "%s", target.address);
    struct etd_client_options o = etd_target_options(&target);
    o.control = true;
    if (status == ET_OK)
        status = etd_client_open(d->source.cx, &o, &d->client);
    if (status != ET_OK)
        et_error_clear(d->source.cx); /* it may come */
}

/* What a glance showed is now there in truth. */
static void
end_glance(struct directory *d)
{
    d->source.model = etd_follow_model(d->follow);
    etd_glance_close(&d->glance);
    d->has_glanced = true;
}

static bool
glance(struct tui_source *s, double seconds)
{
    struct directory *d = of(s);
    int64_t done, all;
    bool finest = false;
    etd_follow_progress(d->follow, &done, &all);
    if (d->has_glanced || *s->problem || all - done < LONG)
        return false;
    et_status status = d->glance ? ET_OK : etd_glance_open(s->cx, d->path, &d->glance);
    const struct etd_model *before = d->glance ? etd_glance_model(d->glance) : NULL;
    if (status == ET_OK)
        status = etd_glance_step(d->glance, seconds, &finest);
    if (status != ET_OK)
        et_error_clear(s->cx); /* reading on will tell, if it is worth telling */
    d->has_glanced = finest || status != ET_OK;
    const struct etd_model *now = d->glance ? etd_glance_model(d->glance) : NULL;
    if (!now || now == before)
        return false;
    s->model = now;
    return true;
}

static bool
advance(struct tui_source *s, double seconds, int64_t until)
{
    struct directory *d = of(s);
    const struct etd_model *model = etd_follow_model(d->follow);
    int64_t before = model->seq, left;
    if (*s->problem)
        return look(d);
    et_status status = etd_follow_read(d->follow, seconds, until, &left);
    if (status != ET_OK) {
        snprintf(s->problem, sizeof s->problem, "%s", et_error_get(s->cx)->message);
        et_error_clear(s->cx);
    }
    bool more = model->seq != before || status != ET_OK;
    if (d->glance && (left < TUI_LITTLE || status != ET_OK))
        end_glance(d);
    if (d->client && etd_client_step(d->client) == ET_OK)
        more = tui_hub_answers(s, d->client) || more;
    et_error_clear(s->cx);
    if (more)
        s->heard = eti_monotonic(s->cx);
    if (s->link != TUI_LINK_ENDED)
        find_hub(d);
    more = look(d) || more;
    judge_silence(d);
    return more;
}

static void
progress(const struct tui_source *s, int64_t *done, int64_t *all)
{
    etd_follow_progress(((const struct directory *)s)->follow, done, all);
}

/* ---- logs of ranks ---- */

/* "2025-11-20T14:03:22Z info text". Seconds since 1970, or NaN. */
static double
time_of(const char *line)
{
    struct tm day = {0};
    const char *end = strptime(line, "%Y-%m-%dT%H:%M:%S", &day);
    if (!end || *end != 'Z')
        return NAN;
    return (double)timegm(&day);
}

/* What LINE of rank RANK says: time and level are cut off where there are any. */
static struct tui_log_line
parse_line(struct log_file *f)
{
    struct tui_log_line l = {.t = time_of(f->line), .rank = f->rank, .level = -1};
    l.text = f->line;
    const char *word = isnan(l.t) ? NULL : strchr(f->line, ' ');
    for (int level = ET_LOG_DEBUG; word && level <= ET_LOG_ERROR; level++) {
        const char *name = et_log_level_name((enum et_log_level)level);
        size_t n = strlen(name);
        if (strncmp(word + 1, name, n) != 0 || word[1 + n] != ' ')
            continue;
        l.level = level;
        l.text = word + 2 + n;
    }
    if (!isnan(l.t))
        f->t = l.t;
    else
        l.t = f->t; /* printed after the line before */
    return l;
}

/* The next whole line of F, if there is one. */
static bool
peek(struct log_file *f)
{
    if (f->has_line)
        return true;
    clearerr(f->file);
    long at = ftell(f->file);
    ssize_t n = getline(&f->line, &f->room, f->file);
    if (n <= 0)
        return false;
    if (f->line[n - 1] != '\n') {
        fseek(f->file, at, SEEK_SET); /* the rest will come */
        return false;
    }
    f->line[n - 1] = '\0';
    f->next = parse_line(f);
    f->has_line = true;
    return true;
}

static void
open_log(struct directory *d, int rank)
{
    char path[PATH_MAX];
    void *grown;
    for (int i = 0; i < d->n_logs; i++)
        if (d->log[i].rank == rank)
            return;
    snprintf(path, sizeof path, "%s/logs/rank%d.txt", d->path, rank);
    if (et_alloc(d->source.cx, (size_t)(d->n_logs + 1) * sizeof *d->log, &grown) !=
        ET_OK) {
        et_error_clear(d->source.cx); /* the next scan tries again */
        return;
    }
    FILE *file = fopen(path, "re");
    if (!file) {
        et_free(d->source.cx, grown);
        return;
    }
    if (d->log)
        memcpy(grown, d->log, (size_t)d->n_logs * sizeof *d->log);
    et_free(d->source.cx, d->log);
    d->log = grown;
    struct log_file *f = &d->log[d->n_logs++];
    *f = (struct log_file){.rank = rank, .file = file, .t = NAN};
    if (fseek(file, 0, SEEK_END) == 0 && ftell(file) > TAIL) {
        fseek(file, -TAIL, SEEK_END);
        if (getline(&f->line, &f->room, file) < 0) /* the end of one cut in two */
            clearerr(file);
    } else {
        rewind(file);
    }
}

static void
scan_logs(struct directory *d)
{
    char path[PATH_MAX];
    int rank, end;
    double now = eti_monotonic(d->source.cx);
    if (now < d->next_scan)
        return;
    d->next_scan = now + LOOK;
    snprintf(path, sizeof path, "%s/logs", d->path);
    DIR *folder = opendir(path);
    for (struct dirent *e; folder && (e = readdir(folder));) {
        end = 0;
        if (sscanf(e->d_name, "rank%d.txt%n", &rank, &end) == 1 && end > 0 &&
            !e->d_name[end] && rank >= 0 && rank < MAX_LOGS)
            open_log(d, rank);
    }
    if (folder)
        closedir(folder);
}

/* Of the lines that come next, one of each rank, the earliest. */
static bool
line(struct tui_source *s, struct tui_log_line *out)
{
    struct directory *d = of(s);
    struct log_file *best = NULL;
    scan_logs(d);
    for (int i = 0; i < d->n_logs; i++) {
        struct log_file *f = &d->log[i];
        if (!peek(f))
            continue;
        if (!best || f->next.t < best->next.t ||
            (f->next.t == best->next.t && f->rank < best->rank))
            best = f;
    }
    if (!best)
        return false;
    best->has_line = false;
    *out = best->next;
    return true;
}

/* ---- the rest ---- */

static const char *
refusal(const struct tui_source *s)
{
    const struct directory *d = (const struct directory *)s;
    if (s->link == TUI_LINK_ENDED)
        return "the run has ended";
    if (!d->client || etd_client_status(d->client)->link != ETD_LINK_LIVE)
        return "its hub does not answer";
    return NULL;
}

static et_status
request(struct tui_source *s, const char *text)
{
    const char *why = refusal(s);
    return why ? ET_FAIL(s->cx, ET_ENOTSUP, "%s: %s", text, why)
               : tui_hub_request(s, of(s)->client, text);
}

/* For what the hub says; that there is one shows soon. One that is silent is tried
 * again. */
static bool
waits(const struct tui_source *s)
{
    const struct directory *d = (const struct directory *)s;
    if (s->link == TUI_LINK_ENDED || !d->client)
        return false;
    const struct etd_client_status *c = etd_client_status(d->client);
    return c->link == ETD_LINK_CONNECTING || c->link == ETD_LINK_STALE ||
           (c->link == ETD_LINK_LIVE && s->asked > 0) ||
           (c->link == ETD_LINK_DISCONNECTED && strcmp(c->code, "SILENT") == 0);
}

static const char *
mute(const struct tui_source *s)
{
    return s->link == TUI_LINK_ENDED ? NULL : refusal(s);
}

/* A run that goes on writes its log itself. */
static et_status
annotate(struct tui_source *s, const char *text)
{
    struct et_record note;
    int64_t cut;
    if (s->link != TUI_LINK_ENDED)
        return tui_hub_annotate(s, of(s)->client, text);
    return eti_events_annotate(s->cx, of(s)->path, text, &cut, &note);
}

static void
release(struct tui_source *s)
{
    struct directory *d = of(s);
    for (int i = 0; i < d->n_logs; i++) {
        fclose(d->log[i].file);
        free(d->log[i].line);
    }
    et_free(s->cx, d->log);
    if (d->client)
        etd_client_close(&d->client);
    etd_glance_close(&d->glance);
    if (d->follow)
        etd_follow_close(&d->follow);
    free(d->path);
}

static const struct tui_source_class directory_class = {
    .free = release,
    .advance = advance,
    .progress = progress,
    .glance = glance,
    .line = line,
    .refusal = refusal,
    .request = request,
    .mute = mute,
    .annotate = annotate,
    .waits = waits,
};

et_status
tui_source_dir(struct et_ctx *cx, json_t *facts, struct tui_source **out)
{
    void *block;
    const char *path = json_string_value(json_object_get(facts, "directory"));
    *out = NULL;
    et_status status = et_alloc(cx, sizeof(struct directory), &block);
    if (status != ET_OK) {
        json_decref(facts);
        return status;
    }
    struct directory *d = block;
    struct tui_source *s = &d->source;
    d->path = path ? strdup(path) : NULL;
    *s = (struct tui_source){
        .class = &directory_class,
        .cx = cx,
        .facts = facts,
        .rtt_ms = NAN,
        .heard = eti_monotonic(cx),
    };
    if (!d->path)
        status = path ? ET_FAIL(cx, ET_ENOMEM, "too little memory for a path")
                      : ET_FAIL(cx, ET_EFORMAT, "the run does not say where it is");
    if (status == ET_OK)
        status = etd_follow_open(cx, d->path, &d->follow);
    if (status != ET_OK) {
        tui_source_free(&s);
        return status;
    }
    s->model = etd_follow_model(d->follow);
    s->link = eti_facts_is_alive(facts) ? TUI_LINK_LIVE : TUI_LINK_ENDED;
    *out = s;
    return ET_OK;
}

bool
tui_source_is_loading(const struct tui_source *s)
{
    int64_t done, all;
    s->class->progress(s, &done, &all);
    return !*s->problem && all - done > TUI_LITTLE;
}

void
tui_source_free(struct tui_source **source)
{
    struct tui_source *s = *source;
    *source = NULL;
    if (!s)
        return;
    s->class->free(s);
    json_decref(s->facts);
    et_free(s->cx, s);
}
