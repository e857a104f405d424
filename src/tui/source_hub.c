/* source_hub.c: a run as its hub tells it, from this machine or another. See source.h.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/seams.h"
#include "dist/client.h"
#include "tui/source.h"

enum {
    QUEUE = 512,        /* lines of the log that nobody has taken yet */
    COMMAND_MS = 30000, /* a request that took longer is not done any more */
};

/* A line of the log, kept. */
struct kept {
    double t;
    int rank, level;
    char text[ETD_TEXT];
};

struct hub {
    struct tui_source source; /* first */
    struct etd_client *client;
    struct kept line[QUEUE];
    int first, n;
    struct kept given; /* to who asked last */
    int64_t missed;    /* of the client's status, told so far */
    int64_t snapshots;
    int64_t facts; /* of the client's status: those in source.facts */
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
        s->asked = 0; /* answers do not come after a break; silence is none */
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
keep(struct hub *h, double t, int rank, enum et_log_level level, const char *text)
{
    struct kept *k = &h->line[(h->first + h->n) % QUEUE];
    if (h->n == QUEUE)
        h->first = (h->first + 1) % QUEUE; /* the oldest goes */
    else
        h->n++;
    k->t = t;
    k->rank = rank;
    k->level = (int)level;
    snprintf(k->text, sizeof k->text, "%s", text ? text : "");
}

static void
take_record(void *data, const struct et_record *r)
{
    if (r->kind == ET_RECORD_LOG)
        keep(data, r->t, r->rank, r->level, r->text);
}

/* Those of a snapshot are among its events. */
static void
take_events(struct hub *h)
{
    const struct etd_model *m = h->source.model;
    for (int i = 0; i < m->n_events; i++) {
        const struct etd_event *e = etd_model_event(m, i);
        if (e->kind == ET_RECORD_LOG)
            keep(h, e->t, e->rank, e->level, e->text);
    }
}

static bool
line(struct tui_source *s, struct tui_log_line *out)
{
    struct hub *h = of(s);
    if (h->n == 0)
        return false;
    h->given = h->line[h->first];
    h->first = (h->first + 1) % QUEUE;
    h->n--;
    *out =
        (struct tui_log_line){h->given.t, h->given.rank, h->given.level, h->given.text};
    return true;
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
}

static enum tui_link
link_of(const struct hub *h, const struct etd_client_status *c)
{
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
    if (c->missed > h->missed) {
        s->notice_role = TUI_GOOD;
        snprintf(s->notice, sizeof s->notice, "gap filled: %lld events",
                 (long long)(c->missed - h->missed));
        h->missed = c->missed;
    }
    if (c->link == ETD_LINK_REFUSED)
        snprintf(s->problem, sizeof s->problem, "refused: %s", c->text);
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
        take_events(h);
    }
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
    return c->link != ETD_LINK_LIVE ? "there is no contact with its hub"
           : !c->is_operator        ? "your key may watch, not control"
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
    return !*s->problem && (h->snapshots == 0 || s->link == TUI_LINK_STALE ||
                            (s->link == TUI_LINK_LIVE && s->asked > 0));
}

static void
retry(struct tui_source *s)
{
    etd_client_retry(of(s)->client);
}

static void
release(struct tui_source *s)
{
    if (of(s)->client)
        etd_client_close(&of(s)->client);
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
    et_status status = etd_client_open(cx, &o, &h->client);
    if (status != ET_OK) {
        tui_source_free(&s);
        return status;
    }
    s->model = etd_client_model(h->client);
    etd_client_watch(h->client, take_record, h);
    *out = s;
    return ET_OK;
}
