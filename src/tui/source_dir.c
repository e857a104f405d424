/* SPDX-License-Identifier: Apache-2.0 */
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

#include "core/base/folders.h"
#include "core/base/seams.h"
#include "core/journal/events.h"
#include "core/library/facts.h"
#include "dist/hub/follow.h"
#include "dist/hub/preview.h"
#include "tui/lines.h"
#include "tui/source.h"

static const double LOOK = 2; /* seconds between looks at the processes of a run */
enum {
    TAIL =
        1
        << 20, /* bytes of a rank's log that are read; what is before is in the file */
    MAX_LOGS = ETD_RANKS,
    LONG = 1 << 20, /* bytes of history that are worth a preview */
};

struct directory {
    struct tui_source source; /* first */
    char *path;
    /* to the run's hub, for requests; NULL: no hub was found yet */
    struct etd_client *client;
    char hub[ETD_ADDRESS]; /* and where that listens */
    char no_hub[ETD_TEXT]; /* why nobody is spoken to there; "" */
    struct etd_follow *follow;
    struct etd_preview *preview; /* what stands in while its history is read; NULL */
    bool has_previewed;          /* there will be no other */
    double next_hub;             /* when its hub is looked for again, monotonic */
    double next_look;            /* at run.json, monotonic */
    struct tui_lines lines;      /* of Logs */
    double next_scan;            /* for logs of ranks that are new */
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
    static const char *const kept[] = {"state", "exit_code", "ended", "reason",
                                       "joined"};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        json_t *v = json_object_get(facts, kept[i]);
        if (!v)
            continue;
        changed |= !json_equal(v, json_object_get(d->source.facts, kept[i]));
        json_object_set(d->source.facts, kept[i], v);
    }
    eti_facts_add_joined(d->source.facts);
    json_decref(facts);
    return changed;
}

/* Ranks report their health once a second. Some seconds without a report mean that the
 * log is no longer written. */
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
    snprintf(d->no_hub, sizeof d->no_hub, "%.*s", ETD_TEXT - 1,
             status != ET_OK ? et_error_get(d->source.cx)->message : "");
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

/* What a preview showed is now there in truth. */
static void
end_preview(struct directory *d)
{
    d->source.model = etd_follow_model(d->follow);
    etd_preview_close(&d->preview);
    d->has_previewed = true;
}

static bool
preview(struct tui_source *s, double seconds)
{
    struct directory *d = of(s);
    int64_t done, all;
    bool finest = false;
    etd_follow_progress(d->follow, &done, &all);
    if (d->has_previewed || *s->problem || all - done < LONG)
        return false;
    et_status status =
        d->preview ? ET_OK : etd_preview_open(s->cx, d->path, &d->preview);
    const struct etd_model *before = d->preview ? etd_preview_model(d->preview) : NULL;
    if (status == ET_OK)
        status = etd_preview_step(d->preview, seconds, &finest);
    if (status != ET_OK)
        et_error_clear(s->cx); /* reading on will tell, if it is worth telling */
    d->has_previewed = finest || status != ET_OK;
    const struct etd_model *now = d->preview ? etd_preview_model(d->preview) : NULL;
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
    if (d->preview && (left < TUI_LITTLE || status != ET_OK))
        end_preview(d);
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

static void
take_record(void *data, const struct et_record *r)
{
    struct directory *d = data;
    tui_lines_record(&d->lines, etd_follow_model(d->follow), r, false);
}

static void
open_log(struct directory *d, int rank)
{
    char path[PATH_MAX], *line = NULL;
    size_t room = 0;
    if (tui_lines_has(&d->lines, rank))
        return;
    snprintf(path, sizeof path, "%s/logs/rank%d.txt", d->path, rank);
    FILE *file = eti_open_regular(path);
    if (!file)
        return;
    if (fseek(file, 0, SEEK_END) == 0 && ftell(file) > TAIL) {
        fseek(file, -TAIL, SEEK_END);
        if (getline(&line, &room, file) < 0) /* the end of one cut in two */
            clearerr(file);
        free(line);
    } else {
        rewind(file);
    }
    if (tui_lines_add(&d->lines, rank, file) != ET_OK)
        et_error_clear(d->source.cx); /* the next scan tries again */
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

static bool
line(struct tui_source *s, struct tui_log_line *out)
{
    struct directory *d = of(s);
    scan_logs(d);
    return tui_lines_next(
        &d->lines, tui_source_is_loading(s) ? etd_follow_model(d->follow)->t : INFINITY,
        out);
}

/* ---- the rest ---- */

static const char *
refusal(const struct tui_source *s)
{
    const struct directory *d = (const struct directory *)s;
    if (s->link == TUI_LINK_ENDED)
        return "the run has ended";
    if (!d->client || etd_client_status(d->client)->link != ETD_LINK_LIVE)
        return d->no_hub[0] ? d->no_hub : "its hub does not answer";
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
    tui_lines_release(&d->lines);
    if (d->client)
        etd_client_close(&d->client);
    etd_preview_close(&d->preview);
    if (d->follow)
        etd_follow_close(&d->follow);
    free(d->path);
}

static const struct tui_source_class directory_class = {
    .free = release,
    .advance = advance,
    .progress = progress,
    .preview = preview,
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
    d->lines.cx = cx;
    etd_follow_watch(d->follow, take_record, d);
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
