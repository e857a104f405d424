/* SPDX-License-Identifier: Apache-2.0 */
/* lines.c: see lines.h. */
#include "config.h"

#include "tui/lines.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tui/format.h"

enum { EVENTS = 4096 }; /* lines of events that nobody has taken yet: the newest */

/* The log of a rank. */
struct tui_lines_file {
    int rank;
    FILE *file;
    double t;   /* of the last line that said one */
    char *line; /* the one that comes next, of getline */
    size_t room;
    bool has_line;
    struct tui_log_line next;
};

struct tui_lines_event {
    double t;
    int64_t seq;
    int rank, level;
    const char *word; /* constant text; NULL: the level's */
    char text[ETD_TEXT];
};

/* ---- files ---- */

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

/* What the line of F says: time and level are cut off where there are any. */
static struct tui_log_line
parse_line(struct tui_lines_file *f)
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
peek(struct tui_lines_file *f)
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

bool
tui_lines_has(const struct tui_lines *l, int rank)
{
    for (int i = 0; i < l->n_files; i++)
        if (l->file[i].rank == rank)
            return true;
    return false;
}

et_status
tui_lines_add(struct tui_lines *l, int rank, FILE *file)
{
    void *grown;
    et_status status =
        et_alloc(l->cx, (size_t)(l->n_files + 1) * sizeof *l->file, &grown);
    if (status != ET_OK) {
        fclose(file);
        return status;
    }
    if (l->file)
        memcpy(grown, l->file, (size_t)l->n_files * sizeof *l->file);
    et_free(l->cx, l->file);
    l->file = grown;
    l->file[l->n_files++] =
        (struct tui_lines_file){.rank = rank, .file = file, .t = NAN};
    return ET_OK;
}

/* ---- events ---- */

/* The word in the place of the level; NULL: the record does not become a line here,
 * since another file tells of it. LOGS: log records are lines, too; without it rank 0's
 * file has the saves and how the run ended. */
static const char *
word_of(enum et_record_kind kind, const char *text, bool logs)
{
    static const char *const usual[] = {"running", "evaluating", "checkpointing"};
    static const char *const lasting[] = {"queued", "starting", "paused", "stopping"};
    switch (kind) {
    case ET_RECORD_EVAL:
        return "eval";
    case ET_RECORD_CHECKPOINT:
        return logs || strncmp(text, "begun", 5) == 0 || strncmp(text, "saved", 5) == 0
                   ? NULL
                   : "ckpt";
    case ET_RECORD_RUN:
        for (size_t i = 0; logs && i < sizeof usual / sizeof *usual; i++)
            if (strcmp(text, usual[i]) == 0)
                return NULL;
        for (size_t i = 0; i < sizeof lasting / sizeof *lasting; i++)
            if (strcmp(text, lasting[i]) == 0)
                return "state";
        return logs ? "state" : NULL;
    case ET_RECORD_COMMAND:
        return "cmd";
    case ET_RECORD_RESUME:
        return "resume";
    case ET_RECORD_ANNOTATION:
        return "note";
    default:
        return NULL;
    }
}

static struct tui_lines_event *
event_at(const struct tui_lines *l, int i)
{
    return &l->event[(l->first_event + i) % EVENTS];
}

/* In the order of their numbers; each once. */
static void
keep(struct tui_lines *l, const struct tui_lines_event *e)
{
    void *block;
    int at = l->n_events;
    while (at > 0 && event_at(l, at - 1)->seq > e->seq)
        at--;
    if (e->seq <= l->seq || (at > 0 && event_at(l, at - 1)->seq == e->seq))
        return;
    if (!l->event) {
        if (et_alloc(l->cx, EVENTS * sizeof *l->event, &block) != ET_OK) {
            et_error_clear(l->cx); /* the next one tries again */
            return;
        }
        l->event = block;
    }
    if (l->n_events == EVENTS) {
        if (at == 0)
            return;
        l->first_event = (l->first_event + 1) % EVENTS;
        l->n_events--;
        at--;
    }
    for (int i = l->n_events++; i > at; i--)
        *event_at(l, i) = *event_at(l, i - 1);
    *event_at(l, at) = *e;
}

static void
keep_event(struct tui_lines *l, const struct etd_event *e, bool logs)
{
    struct tui_lines_event line = {
        .t = e->t, .seq = e->seq, .rank = e->rank, .level = (int)e->level};
    line.word = word_of(e->kind, e->text, logs);
    if (!line.word && !(logs && e->kind == ET_RECORD_LOG))
        return;
    if (e->kind == ET_RECORD_EVAL)
        tui_without_zeros(e->text, line.text, sizeof line.text);
    else
        snprintf(line.text, sizeof line.text, "%s", e->text);
    keep(l, &line);
}

/* "ep 3  1,407ba  loss 0.4381": the numbers that an epoch ends with. */
static void
keep_epoch(struct tui_lines *l, const struct et_record *r)
{
    struct tui_lines_event line = {.t = r->t,
                                   .seq = r->seq,
                                   .rank = r->rank,
                                   .level = ET_LOG_INFO,
                                   .word = "epoch"};
    size_t n = (size_t)snprintf(line.text, sizeof line.text, "ep %lld  %lldba",
                                (long long)r->ep, (long long)r->ba);
    for (int i = 0; i < r->n && n < sizeof line.text; i++)
        n += (size_t)snprintf(line.text + n, sizeof line.text - n, "  %s %.4g",
                              r->entry[i].name, r->entry[i].value);
    keep(l, &line);
}

void
tui_lines_epoch(struct tui_lines *l, const struct et_record *r)
{
    if (r->kind == ET_RECORD_EPOCH && r->rank == 0)
        keep_epoch(l, r);
}

void
tui_lines_record(struct tui_lines *l, const struct etd_model *m,
                 const struct et_record *r, bool logs)
{
    const struct etd_event *e =
        m->n_events > 0 ? etd_model_event(m, m->n_events - 1) : NULL;
    tui_lines_epoch(l, r);
    if (e && e->seq == r->seq)
        keep_event(l, e, logs);
}

void
tui_lines_model(struct tui_lines *l, const struct etd_model *m, bool logs)
{
    for (int i = 0; i < m->n_events; i++)
        keep_event(l, etd_model_event(m, i), logs);
}

/* ---- both ---- */

/* (Files have whole seconds: what happened within one is put before its lines, so that
 * how the run ended stands last.) */
bool
tui_lines_next(struct tui_lines *l, double until, struct tui_log_line *out)
{
    struct tui_lines_file *best = NULL;
    for (int i = 0; i < l->n_files; i++) {
        struct tui_lines_file *f = &l->file[i];
        if (!peek(f))
            continue;
        if (!best || f->next.t < best->next.t ||
            (f->next.t == best->next.t && f->rank < best->rank))
            best = f;
    }
    const struct tui_lines_event *e = l->n_events > 0 ? event_at(l, 0) : NULL;
    if (e && (!best || !(floor(e->t) > best->next.t))) {
        snprintf(l->text, sizeof l->text, "%s", e->text);
        *out = (struct tui_log_line){e->t, e->rank, e->level, e->word, l->text};
        l->seq = e->seq;
        l->first_event = (l->first_event + 1) % EVENTS;
        l->n_events--;
        return true;
    }
    if (!best || best->next.t > until)
        return false;
    best->has_line = false;
    *out = best->next;
    return true;
}

void
tui_lines_release(struct tui_lines *l)
{
    for (int i = 0; i < l->n_files; i++) {
        fclose(l->file[i].file);
        free(l->file[i].line);
    }
    et_free(l->cx, l->file);
    et_free(l->cx, l->event);
}
