/* SPDX-License-Identifier: Apache-2.0 */
/* source_hub.c: a run as its hub tells it, from this machine or another. See
 * source.h. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "core/journal/events.h"
#include "core/library/facts.h"
#include "dist/hub/client.h"
#include "tui/format.h"
#include "tui/lines.h"
#include "tui/source.h"

enum { COMMAND_MS = 30000 }; /* a request that took longer is not done any more */
/* Seconds until an answer that did not come is asked for again, and until a log that
 * was read is looked at. */
static const double ASK_AGAIN = 2;

/* The log of a rank, as far as it was fetched: a file in memory, which tui_lines
 * reads. */
struct copy {
    int fd;       /* -1: not asked for yet, or the rank has no log */
    int64_t from; /* byte of the rank's log that the copy begins at; -1: not known */
    int64_t n;    /* bytes of the copy */
    bool is_missing;
};

/* events.log, as far as it was fetched, each byte at its place: for the epochs before
 * the snapshot, of which a model keeps none. */
struct records {
    int fd;                /* -1: not asked for yet */
    struct et_events *log; /* of it; NULL: not read yet */
    int64_t next;          /* byte that is asked for next; -1: that of its last MiB */
    int64_t end;    /* bytes that it had when it was first asked for; -1: not known */
    int64_t from;   /* byte from which on all are there */
    bool is_wanted; /* a snapshot came since it was read */
    bool was_told;  /* that what is before FROM is not shown */
};

struct hub {
    struct tui_source source; /* first */
    struct etd_client *client;
    struct tui_lines lines; /* of Logs */
    bool wants_logs;        /* somebody reads them */
    struct records records;
    struct copy *copy; /* [n_copies], by rank */
    int n_copies, asked_rank;
    double asked_at, look_at; /* monotonic; asked_at 0: nothing is asked for */
    int64_t missed;           /* of the client's status, told so far */
    int64_t snapshots;
    int64_t facts;  /* of the client's status: those in source.facts */
    bool came_back; /* for the logs, after the run's hub had said END */
};

static struct hub *
of(struct tui_source *s)
{
    return (struct hub *)s;
}

/* ---- requests ---- */

static et_status
send_op(struct tui_source *s, struct etd_client *client, enum etd_op op,
        const char *key, const char *value)
{
    unsigned char id[ETD_CMD_ID];
    ET_TRY(etd_client_command(client, op, key, value, -1, COMMAND_MS, id));
    s->asked++;
    return ET_OK;
}

et_status
tui_hub_request(struct tui_source *s, struct etd_client *client, const char *text)
{
    char word[ETD_WORD], key[ETD_WORD] = "", value[ETD_WORD] = "";
    if (sscanf(text, "%159s %159s %159[^\n]", word, key, value) < 1 ||
        etd_op_of(word) == ETD_OP_COUNT)
        return ET_FAIL(s->cx, ET_EINVAL, "'%s' is nothing that a run does", text);
    return send_op(s, client, etd_op_of(word), *key ? key : NULL,
                   *value ? value : NULL);
}

et_status
tui_hub_annotate(struct tui_source *s, struct etd_client *client, const char *text)
{
    const char *why = s->class->mute(s);
    return why ? ET_FAIL(s->cx, ET_ENOTSUP, "no note can be made: %s", why)
               : send_op(s, client, ETD_OP_ANNOTATE, NULL, text);
}

bool
tui_hub_answers(struct tui_source *s, struct etd_client *client)
{
    struct etd_answer a;
    const struct etd_client_status *c = etd_client_status(client);
    bool any = strcmp(s->lease, c->lease) != 0 || s->is_holder != c->is_holder;
    if (c->link != ETD_LINK_LIVE && c->link != ETD_LINK_STALE)
        s->asked = 0; /* a break ends the wait for answers */
    memcpy(s->lease, c->lease, sizeof s->lease);
    s->is_holder = c->is_holder;
    while (etd_client_answer(client, &a)) {
        any = true;
        s->asked -= a.kind != ETD_RECEIVED && s->asked > 0;
        s->notice_role = TUI_TEXT;
        if (a.kind == ETD_REJECTED) {
            s->notice_role = TUI_BAD;
            snprintf(s->notice, sizeof s->notice, "x refused: %.200s", a.text);
        } else if (a.kind == ETD_EXPIRED) {
            s->notice_role = TUI_WARN;
            snprintf(s->notice, sizeof s->notice,
                     "! the run did not take it in time: it is not done");
        } else if (a.kind == ETD_APPLIED) {
            snprintf(s->notice, sizeof s->notice, "done after batch %lld%s%.200s",
                     (long long)a.step, *a.text ? ": " : "", a.text);
        }
    }
    return any;
}

/* ---- lines ---- */

static void
take_record(void *data, const struct et_record *r)
{
    struct hub *h = data;
    tui_lines_record(&h->lines, h->source.model, r,
                     !etd_client_status(h->client)->has_files);
}

/* Takes the epochs out of what is new of the log. */
static et_status
read_epochs(struct hub *h)
{
    struct records *e = &h->records;
    struct et_record r;
    bool found = true, got = true;
    et_status status = ET_OK;
    if (!e->log) {
        int fd = dup(e->fd);
        ET_TRY(fd < 0 ? ET_FAIL(h->source.cx, ET_EIO, "no descriptor is left")
                      : eti_events_open_fd(h->source.cx, fd, "events.log", &e->log));
        if (e->from > 0)
            status = eti_events_seek(e->log, e->from, &found);
        if (status != ET_OK || !found) { /* the next snapshot tries again */
            et_events_close(&e->log);
            return status;
        }
    } else {
        status = et_events_again(e->log);
    }
    while (status == ET_OK && got) {
        status = et_events_next(e->log, &r, &got);
        if (status != ET_OK || !got)
            break;
        if (e->from > 0 && !e->was_told) {
            char clock[TUI_NUMBER];
            e->was_told = true;
            h->source.notice_role = TUI_TEXT;
            snprintf(h->source.notice, sizeof h->source.notice,
                     "epochs are told from %s on; those before are in the run's folder",
                     tui_clock(r.t, 2, clock));
        }
        tui_lines_epoch(&h->lines, &r);
    }
    return status;
}

/* Without a readable log the epochs are missing; the snapshot has all the rest. */
static void
finish_records(struct hub *h)
{
    h->records.is_wanted = false;
    if (h->records.fd >= 0 && read_epochs(h) != ET_OK)
        et_error_clear(h->source.cx);
}

/* The first piece has the log's header; of a long one those of its end follow. */
static void
take_records(struct hub *h, const struct etd_piece *p)
{
    struct records *e = &h->records;
    const int64_t after = p->at + (int64_t)p->n, tail = p->size - ETD_PIECE_TAIL;
    if (p->file != ETD_PIECE_EVENTS || (e->next >= 0 && p->at != e->next))
        return; /* an answer to an earlier question */
    if (e->fd < 0 && !p->is_missing)
        e->fd = memfd_create("etude-events", MFD_CLOEXEC);
    if (p->is_missing || p->n == 0 || e->fd < 0 ||
        pwrite(e->fd, p->bytes, p->n, (off_t)p->at) != (ssize_t)p->n) {
        finish_records(h);
        return;
    }
    if (e->next < 0)
        e->from = p->at;
    if (e->end < 0)
        e->end = p->size;
    e->next = p->at == 0 && after < tail ? -1 : after;
    if (e->next >= e->end)
        finish_records(h);
}

/* One copy for each rank that is known. */
static bool
make_copies(struct hub *h)
{
    int n = h->source.model->n_ranks > 1 ? h->source.model->n_ranks : 1;
    void *grown;
    if (n <= h->n_copies)
        return true;
    if (et_alloc(h->source.cx, (size_t)n * sizeof *h->copy, &grown) != ET_OK) {
        et_error_clear(h->source.cx);
        return false;
    }
    if (h->copy)
        memcpy(grown, h->copy, (size_t)h->n_copies * sizeof *h->copy);
    et_free(h->source.cx, h->copy);
    h->copy = grown;
    for (; h->n_copies < n; h->n_copies++)
        h->copy[h->n_copies] = (struct copy){.fd = -1, .from = -1};
    return true;
}

/* A file in memory, to be written here and read by tui_lines. */
static bool
begin_copy(struct hub *h, int rank)
{
    struct copy *c = &h->copy[rank];
    int fd = memfd_create("etude-log", MFD_CLOEXEC), reader = fd >= 0 ? dup(fd) : -1;
    FILE *file = reader >= 0 ? fdopen(reader, "r") : NULL;
    if (!file && reader >= 0)
        close(reader);
    if (!file || tui_lines_add(&h->lines, rank, file) != ET_OK) {
        et_error_clear(h->source.cx);
        if (fd >= 0)
            close(fd);
        c->is_missing = true;
        return false;
    }
    c->fd = fd;
    return true;
}

static void
take_piece(struct hub *h, const struct etd_piece *p)
{
    if (p->file != ETD_PIECE_LOG || p->rank >= h->n_copies)
        return;
    struct copy *c = &h->copy[p->rank];
    const char *bytes = p->bytes;
    size_t n = p->n;
    c->is_missing = p->is_missing;
    if (p->is_missing || (c->fd < 0 && !begin_copy(h, p->rank)))
        return;
    if (c->from < 0 && p->at > 0) { /* the end of a line that was cut in two */
        const char *end = memchr(bytes, '\n', n);
        size_t cut = end ? (size_t)(end + 1 - bytes) : n;
        bytes += cut;
        n -= cut;
        c->from = p->at + (int64_t)cut;
    } else if (c->from < 0) {
        c->from = 0;
    } else if (p->at != c->from + c->n) {
        return; /* an answer to an earlier question */
    }
    if (n > 0 && pwrite(c->fd, bytes, n, (off_t)c->n) == (ssize_t)n)
        c->n += (int64_t)n;
}

/* Asks for the next piece of a log, of one rank after the other. */
static void
ask_for_logs(struct hub *h)
{
    struct etd_piece p;
    double now = eti_monotonic(h->source.cx);
    if (etd_client_piece(h->client, &p)) {
        bool more = p.n > 0 && p.at + (int64_t)p.n < p.size;
        take_records(h, &p);
        take_piece(h, &p);
        h->asked_at = 0;
        h->asked_rank += p.file == ETD_PIECE_LOG && !more;
    }
    if (!etd_client_status(h->client)->has_files || now < h->look_at ||
        !make_copies(h) || (h->asked_at > 0 && now < h->asked_at + ASK_AGAIN))
        return;
    if (h->records.is_wanted) {
        if (etd_client_file(h->client, ETD_PIECE_EVENTS, 0, h->records.next) == ET_OK)
            h->asked_at = now;
        et_error_clear(h->source.cx);
        return;
    }
    while (h->asked_rank < h->n_copies && h->copy[h->asked_rank].is_missing &&
           h->source.link == TUI_LINK_ENDED)
        h->asked_rank++;
    if (h->asked_rank >= h->n_copies) { /* all were read: what is new comes later */
        h->asked_rank = 0;
        h->look_at = now + ASK_AGAIN;
        return;
    }
    const struct copy *c = &h->copy[h->asked_rank];
    if (etd_client_file(h->client, ETD_PIECE_LOG, h->asked_rank,
                        c->from < 0 ? -1 : c->from + c->n) == ET_OK)
        h->asked_at = now;
    et_error_clear(h->source.cx);
}

/* Are the logs of all ranks still on their way for the first time, or the epochs before
 * a snapshot? */
static bool
reads_logs(const struct hub *h)
{
    return h->wants_logs && (h->look_at == 0 || h->records.is_wanted) &&
           etd_client_status(h->client)->has_files;
}

static bool
line(struct tui_source *s, struct tui_log_line *out)
{
    struct hub *h = of(s);
    h->wants_logs = true;
    /* Lines that come later belong between those that are here. */
    return !reads_logs(h) && tui_lines_next(&h->lines, INFINITY, out);
}

/* ---- the line to the hub ---- */

static void
read_facts(struct hub *h)
{
    size_t n;
    const char *text = etd_client_facts(h->client, &n);
    int64_t version = etd_client_status(h->client)->facts;
    if (!text || version == h->facts)
        return;
    json_t *facts = json_loadb(text, n, 0, NULL);
    h->facts = version;
    if (!json_is_object(facts)) {
        json_decref(facts);
        return;
    }
    json_decref(h->source.facts);
    h->source.facts = facts;
    eti_facts_add_joined(facts);
}

static enum tui_link
link_of(const struct hub *h, const struct etd_client_status *c)
{
    if (c->has_ended && h->snapshots > 0)
        return TUI_LINK_ENDED; /* whether or not its worker is still there */
    switch (c->link) {
    case ETD_LINK_STALE:
        return TUI_LINK_STALE;
    case ETD_LINK_DISCONNECTED:
        return TUI_LINK_LOST;
    case ETD_LINK_ENDED:
        return TUI_LINK_ENDED;
    case ETD_LINK_CONNECTING:
    case ETD_LINK_LOADING:
    case ETD_LINK_REFUSED:
        return h->snapshots > 0 ? TUI_LINK_LOST : TUI_LINK_CONNECTING;
    default:
        return TUI_LINK_LIVE;
    }
}

static void
tell(struct hub *h, const struct etd_client_status *c)
{
    struct tui_source *s = &h->source;
    if (c->link == ETD_LINK_DISCONNECTED || c->link == ETD_LINK_CONNECTING) {
        h->missed = 0; /* the next connection counts from there */
    } else if (c->missed > h->missed) {
        s->notice_role = TUI_GOOD;
        snprintf(s->notice, sizeof s->notice, "gap filled: %lld events",
                 (long long)(c->missed - h->missed));
        h->missed = c->missed;
    }
    memcpy(s->code, c->code, sizeof s->code);
    memcpy(s->said, c->text, sizeof s->said);
    s->is_refused = c->link == ETD_LINK_REFUSED;
    if (s->is_refused)
        snprintf(s->problem, sizeof s->problem, "%s", c->text);
}

static bool
advance(struct tui_source *s, double seconds, int64_t until)
{
    struct hub *h = of(s);
    const struct etd_client_status *c = etd_client_status(h->client);
    int64_t before = s->model->seq, loaded = c->loaded, facts = h->facts;
    enum tui_link link = s->link;
    double now = eti_monotonic(s->cx);
    (void)seconds, (void)until;
    if (etd_client_step(h->client) != ET_OK)
        et_error_clear(s->cx); /* memory was short: the next step tries again */
    c = etd_client_status(h->client);
    bool more = tui_hub_answers(s, h->client);
    if (c->snapshots > h->snapshots && c->link != ETD_LINK_LOADING) {
        h->snapshots = c->snapshots;
        tui_lines_model(&h->lines, s->model, !c->has_files);
        h->records.is_wanted = c->has_files;
        h->records.end = -1;
    }
    /* A worker has the logs of the ranks also when the run's hub is gone. */
    if (c->link == ETD_LINK_ENDED && c->has_files && !h->came_back) {
        h->came_back = true;
        etd_client_retry(h->client);
    }
    if (h->wants_logs)
        ask_for_logs(h);
    read_facts(h);
    tell(h, c);
    s->link = link_of(h, c);
    s->heard = now - c->silent;
    s->retry = now + c->retry_in;
    return more || s->model->seq != before || s->link != link || c->loaded != loaded ||
           h->facts != facts || *s->problem || s->link == TUI_LINK_LOST ||
           s->link == TUI_LINK_STALE;
}

static void
progress(const struct tui_source *s, int64_t *done, int64_t *all)
{
    const struct etd_client_status *c =
        etd_client_status(((const struct hub *)s)->client);
    *done = c->link == ETD_LINK_LOADING ? c->loaded : c->loading;
    *all = c->loading;
}

static const char *
refusal(const struct tui_source *s)
{
    const struct etd_client_status *c =
        etd_client_status(((const struct hub *)s)->client);
    return s->link == TUI_LINK_ENDED  ? "the run has ended"
           : c->link != ETD_LINK_LIVE ? "there is no contact with its hub"
           : !c->is_operator          ? "your key may watch, not control"
                                      : NULL;
}

static et_status
request(struct tui_source *s, const char *text)
{
    const char *why = refusal(s);
    return why ? ET_FAIL(s->cx, ET_ENOTSUP, "%s: %s", text, why)
               : tui_hub_request(s, of(s)->client, text);
}

static et_status
annotate(struct tui_source *s, const char *text)
{
    return tui_hub_annotate(s, of(s)->client, text);
}

static bool
waits(const struct tui_source *s)
{
    const struct hub *h = (const struct hub *)s;
    return !*s->problem &&
           (h->snapshots == 0 || s->link == TUI_LINK_STALE || reads_logs(h) ||
            (s->link == TUI_LINK_LIVE && s->asked > 0));
}

static void
retry(struct tui_source *s)
{
    s->problem[0] = '\0';
    etd_client_retry(of(s)->client);
}

static void
release(struct tui_source *s)
{
    struct hub *h = of(s);
    if (h->client)
        etd_client_close(&h->client);
    tui_lines_release(&h->lines);
    for (int i = 0; i < h->n_copies; i++)
        if (h->copy[i].fd >= 0)
            close(h->copy[i].fd);
    et_free(s->cx, h->copy);
    et_events_close(&h->records.log);
    if (h->records.fd >= 0)
        close(h->records.fd);
}

static const struct tui_source_class hub_class = {
    .free = release,
    .advance = advance,
    .progress = progress,
    .line = line,
    .refusal = refusal,
    .request = request,
    .mute = refusal,
    .annotate = annotate,
    .waits = waits,
    .retry = retry,
};

et_status
tui_source_hub(struct et_ctx *cx, const struct etd_target *target,
               struct tui_source **out)
{
    void *block;
    *out = NULL;
    ET_TRY(et_alloc(cx, sizeof(struct hub), &block));
    struct hub *h = block;
    struct tui_source *s = &h->source;
    const struct etd_client_options o = etd_target_options(target);
    *s = (struct tui_source){
        .class = &hub_class,
        .cx = cx,
        .facts = *target->run ? json_pack("{s:s}", "name", target->run) : json_object(),
        .rtt_ms = NAN,
        .heard = eti_monotonic(cx),
    };
    snprintf(s->place, sizeof s->place, "%s", target->place);
    h->records = (struct records){.fd = -1, .end = -1};
    et_status status = etd_client_open(cx, &o, &h->client);
    if (status != ET_OK) {
        tui_source_free(&s);
        return status;
    }
    h->lines.cx = cx;
    s->model = etd_client_model(h->client);
    etd_client_watch(h->client, take_record, h);
    *out = s;
    return ET_OK;
}
