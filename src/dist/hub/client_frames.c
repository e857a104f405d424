/* SPDX-License-Identifier: Apache-2.0 */
/* client_frames.c: what a hub sends: see client.h. */
#include "config.h"

#include "dist/hub/client_parts.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etude/diagnostic.h"

static void
take_lease(struct etd_client *c, const struct etd_frame *f)
{
    etd_get_text(&f->body, "lease", c->s.lease, sizeof c->s.lease);
    c->s.is_holder = etd_get_bool(&f->body, "mine", false);
}

static void
on_welcome(struct etd_client *c, const struct etd_frame *f)
{
    char role[16];
    bool is_same = !c->knows_run || memcmp(c->run, f->head.run, sizeof c->run) == 0;
    bool goes_on = etd_get_bool(&f->body, "goes_on", false);
    static const unsigned char any[ETD_RUN_ID];
    if (c->s.link != ETD_LINK_CONNECTING)
        return;
    if (memcmp(c->wanted, any, sizeof any) != 0 &&
        memcmp(c->wanted, f->head.run, sizeof any) != 0) {
        etd_client_disconnect(c, "OTHER_RUN", "another run of that name answers");
        return;
    }
    char name[ET_RUN_NAME];
    etd_get_text(&f->body, "name", name, sizeof name);
    et_visible(c->s.name, sizeof c->s.name, name, strlen(name));
    c->s.is_operator =
        strcmp(etd_get_text(&f->body, "role", role, sizeof role), "operator") == 0;
    c->s.has_ended = etd_get_bool(&f->body, "ended", false);
    c->s.has_files = etd_get_bool(&f->body, "files", false);
    take_lease(c, f);
    memcpy(c->run, f->head.run, sizeof c->run);
    c->knows_run = true;
    c->incarnation = f->head.incarnation;
    c->attempts = 0;
    c->s.missed = 0;
    etd_client_say(c, "", "");
    c->has_model = c->has_model && is_same && goes_on;
    if (c->has_model) {
        int64_t head = etd_get_int(&f->body, "head", c->model->seq);
        c->s.missed = head > c->model->seq ? head - c->model->seq : 0;
    }
    c->s.link = c->control || c->has_model ? ETD_LINK_LIVE : ETD_LINK_LOADING;
    c->verify_at = etd_client_now(c) + ETD_VERIFY;
}

static et_status
on_snap_begin(struct etd_client *c, const struct etd_frame *f)
{
    void *block;
    int64_t bytes = etd_get_int(&f->body, "bytes", -1);
    int64_t facts = etd_get_int(&f->body, "facts", 0);
    int64_t s = etd_get_int(&f->body, "s", -1);
    unsigned char digest[ETD_DIGEST];
    etd_client_drop_snapshot(c);
    if (bytes < 1 || bytes > ETD_SNAPSHOT_BYTES || facts < 0 ||
        facts > ETD_SNAPSHOT_BYTES || s < 0 ||
        !etd_get_id(&f->body, "digest", digest, sizeof digest)) {
        etd_client_disconnect(c, "MALFORMED",
                              "the hub announced a snapshot that cannot be");
        return ET_OK;
    }
    ET_TRY(et_alloc(c->cx, (size_t)(bytes + facts), &block));
    c->snap = (struct etd_incoming){
        .bytes = block,
        .facts = (size_t)facts,
        .all = (size_t)(bytes + facts),
        .s = s,
    };
    memcpy(c->snap.digest, digest, sizeof digest);
    c->s.loading = bytes + facts;
    c->s.link = ETD_LINK_LOADING;
    return ET_OK;
}

static void
on_snap_chunk(struct etd_client *c, const struct etd_frame *f)
{
    struct etd_value data;
    struct etd_incoming *in = &c->snap;
    if (!in->bytes || !etd_find(&f->body, "data", &data) || data.type != ETD_IS_BIN ||
        etd_get_int(&f->body, "at", -1) != (int64_t)in->got ||
        data.n > in->all - in->got) {
        etd_client_disconnect(c, "MALFORMED",
                              "a part of the snapshot is not the next one");
        return;
    }
    memcpy(in->bytes + in->got, data.bytes, data.n);
    in->got += data.n;
    c->s.loaded = (int64_t)in->got;
}

/* Digest of the model; false where memory is short. */
static bool
is_digest(struct etd_client *c, const unsigned char *want)
{
    unsigned char mine[ETD_DIGEST];
    if (etd_model_digest(c->model, mine) != ET_OK) {
        et_error_clear(c->cx);
        return false;
    }
    return memcmp(mine, want, sizeof mine) == 0;
}

static et_status
on_snap_end(struct etd_client *c)
{
    struct etd_incoming *in = &c->snap;
    if (!in->bytes || in->got != in->all) {
        etd_client_disconnect(c, "MALFORMED", "the snapshot ended too early");
        return ET_OK;
    }
    et_status status =
        etd_model_load(c->model, in->bytes + in->facts, in->all - in->facts);
    if (status == ET_ENOMEM)
        return status;
    et_error_clear(c->cx);
    bool same = status == ET_OK && c->model->seq == in->s && is_digest(c, in->digest);
    c->has_model = same;
    if (!same) {
        c->s.wrong++;
        etd_client_disconnect(c, "DIGEST", "the snapshot is not what the hub has");
        return ET_OK;
    }
    c->s.verified++;
    et_free(c->cx, c->facts);
    c->facts = in->bytes;
    c->n_facts = in->facts;
    c->most_facts = in->facts + ETD_STREAM_BYTES;
    in->bytes = NULL;
    etd_client_drop_snapshot(c);
    c->s.facts++;
    c->s.snapshots++;
    c->s.link = ETD_LINK_LIVE;
    return ET_OK;
}

/* The facts of run.json; the snapshot's other facts stay. They have the same keys each
 * time: a hub that adds keys without end is disconnected. */
static et_status
on_facts(struct etd_client *c, const struct etd_frame *f)
{
    struct etd_value v;
    void *block;
    if (!c->facts || !etd_find(&f->body, "facts", &v) || v.type != ETD_IS_BIN)
        return ET_OK;
    json_t *all = json_loadb(c->facts, c->n_facts, 0, NULL);
    json_t *new = json_loadb(v.bytes, v.n, 0, NULL);
    bool good =
        json_is_object(all) && json_is_object(new) && json_object_update(all, new) == 0;
    char *text = good ? json_dumps(all, JSON_COMPACT) : NULL;
    json_decref(all);
    json_decref(new);
    size_t n = text ? strlen(text) : 0;
    if (n > c->most_facts) {
        char why[ETD_TEXT];
        snprintf(why, sizeof why, "facts of %zu bytes, where %zu were expected at most",
                 n, c->most_facts);
        free(text);
        etd_client_disconnect(c, "MALFORMED", why);
        return ET_OK;
    }
    et_status status = text ? et_alloc(c->cx, n, &block) : ET_OK;
    if (text && status == ET_OK) {
        memcpy(block, text, n);
        et_free(c->cx, c->facts);
        c->facts = block;
        c->n_facts = n;
        c->s.facts++;
    }
    free(text);
    return status;
}

static et_status
on_record(struct etd_client *c, const struct etd_frame *f)
{
    struct et_record r;
    bool whole;
    int64_t next = c->model->seq + 1;
    if (!c->has_model || c->snap.bytes || f->head.hseq < next)
        return ET_OK;
    if (f->head.hseq > next) {
        if (c->nack_at == 0) {
            c->s.gaps++;
            c->s.missed += f->head.hseq - next;
        }
        if (etd_client_now(c) >= c->nack_at)
            etd_client_nack(c, next, f->head.hseq - 1);
        return ET_OK;
    }
    et_status status = etd_join_add(&c->join, f, &r, &whole);
    if (status == ET_EFORMAT) {
        et_error_clear(c->cx);
        if (etd_client_now(c) >= c->nack_at)
            etd_client_nack(c, next, next);
        return ET_OK;
    }
    ET_TRY(status);
    c->nack_at = 0;
    if (!whole)
        return ET_OK;
    ET_TRY(etd_model_apply(c->model, &r));
    c->incarnation = f->head.incarnation;
    if (c->fn)
        c->fn(c->data, &r);
    return ET_OK;
}

static void
on_pong(struct etd_client *c, const struct etd_frame *f)
{
    unsigned char digest[ETD_DIGEST];
    take_lease(c, f);
    if (!c->has_model || !etd_get_id(&f->body, "digest", digest, sizeof digest) ||
        etd_get_int(&f->body, "at", -1) != c->model->seq)
        return;
    if (is_digest(c, digest)) {
        c->s.verified++;
        return;
    }
    c->s.wrong++;
    c->has_model = false; /* a snapshot is what helps */
    etd_client_disconnect(c, "DIGEST", "what is shown is not what the hub has");
}

static void
on_points(struct etd_client *c, const struct etd_frame *f)
{
    static const size_t most = ETD_POINTS;
    int64_t ba[ETD_POINTS];
    double t[ETD_POINTS], v[ETD_POINTS];
    int n = etd_get_ints(&f->body, "ba", ba, (int)most);
    int n_t = etd_get_doubles(&f->body, "t", t, (int)most);
    int n_v = etd_get_doubles(&f->body, "v", v, (int)most);
    n = n < n_t ? n : n_t;
    n = n < n_v ? n : n_v;
    for (int i = 0; i < n; i++)
        c->point[i] = (struct et_series_point){.ba = ba[i], .t = t[i], .value = v[i]};
    c->points = (struct etd_points){etd_get_int(&f->body, "id", 0), n, c->point};
    c->has_points = true;
}

static et_status
on_file(struct etd_client *c, const struct etd_frame *f)
{
    struct etd_piece piece;
    void *block;
    if (!etd_piece_read(f, &piece) || piece.n > ETD_PIECE_BYTES)
        return ET_OK;
    if (!c->piece_bytes) {
        ET_TRY(et_alloc(c->cx, ETD_PIECE_BYTES, &block));
        c->piece_bytes = block;
    }
    memcpy(c->piece_bytes, piece.bytes, piece.n);
    piece.bytes = c->piece_bytes;
    c->piece = piece;
    c->has_piece = true;
    return ET_OK;
}

static void
on_answer(struct etd_client *c, const struct etd_frame *f)
{
    struct etd_answer a;
    if (!etd_answer_read(f, &a))
        return;
    char text[sizeof a.text];
    memcpy(text, a.text, sizeof text);
    et_visible(a.text, sizeof a.text, text, strlen(text));
    if (c->n_answers == ETD_ANSWERS) {
        c->first_answer = (c->first_answer + 1) % ETD_ANSWERS;
        c->n_answers--;
    }
    c->answer[(c->first_answer + c->n_answers++) % ETD_ANSWERS] = a;
    if (a.kind == ETD_APPLIED) /* the run may have been taken by it */
        etd_client_ping(c);
}

static void
on_refuse(struct etd_client *c, const struct etd_frame *f)
{
    char code[ETD_LABEL], text[ETD_TEXT];
    etd_get_text(&f->body, "code", code, sizeof code);
    etd_get_text(&f->body, "text", text, sizeof text);
    if (strcmp(code, "FULL") == 0)
        etd_client_disconnect(c, code, text);
    else
        etd_client_hang_up(c, ETD_LINK_REFUSED, code, text);
}

static void
on_bye(struct etd_client *c, const struct etd_frame *f)
{
    char code[ETD_LABEL], text[ETD_TEXT];
    etd_get_text(&f->body, "code", code, sizeof code);
    etd_get_text(&f->body, "text", text, sizeof text);
    if (strcmp(code, "END") == 0)
        etd_client_hang_up(c, ETD_LINK_ENDED, code, text);
    else if (strcmp(code, "KEY") == 0 || strcmp(code, "VERSION") == 0)
        etd_client_hang_up(c, ETD_LINK_REFUSED, code, text);
    else
        etd_client_disconnect(c, code, text);
}

static et_status
on_frame(struct etd_client *c, const struct etd_frame *f)
{
    bool before = c->s.link == ETD_LINK_CONNECTING;
    if (before && f->head.kind != ETD_WELCOME && f->head.kind != ETD_REFUSE &&
        f->head.kind != ETD_BYE)
        return ET_OK;
    if ((int)f->head.kind < ET_RECORD_COUNT)
        return on_record(c, f);
    switch (f->head.kind) {
    case ETD_WELCOME:
        on_welcome(c, f);
        break;
    case ETD_REFUSE:
        on_refuse(c, f);
        break;
    case ETD_SNAP_BEGIN:
        return on_snap_begin(c, f);
    case ETD_SNAP_CHUNK:
        on_snap_chunk(c, f);
        break;
    case ETD_SNAP_END:
        return on_snap_end(c);
    case ETD_PONG:
        on_pong(c, f);
        break;
    case ETD_PING:
        etd_client_ping(c);
        break;
    case ETD_FACTS:
        return on_facts(c, f);
    case ETD_HIST:
        on_points(c, f);
        break;
    case ETD_FILE:
        return on_file(c, f);
    case ETD_RECEIVED:
    case ETD_APPLIED:
    case ETD_REJECTED:
    case ETD_EXPIRED:
        on_answer(c, f);
        break;
    case ETD_BYE:
        on_bye(c, f);
        break;
    default:
        c->s.unknown++;
    }
    return ET_OK;
}

/* Does this message count against the credit? */
static bool
is_stream(enum etd_kind kind)
{
    return (int)kind < ET_RECORD_COUNT || kind == ETD_SNAP_CHUNK;
}

et_status
etd_client_message(struct etd_client *c, const char *bytes, size_t n)
{
    struct etd_frame f;
    struct etd_fault fault;
    char text[ETD_TEXT];
    et_status status = etd_read(bytes, n, &f, &fault);
    c->heard = etd_client_now(c);
    if (c->s.link == ETD_LINK_STALE)
        c->s.link = ETD_LINK_LIVE;
    if (status == ET_ENOTSUP) {
        snprintf(text, sizeof text, "hub speaks protocol %d, this is %d", f.head.major,
                 ETD_MAJOR);
        etd_client_hang_up(c, ETD_LINK_REFUSED, "VERSION", text);
        return ET_OK;
    }
    if (status != ET_OK) {
        snprintf(text, sizeof text, "a message is malformed at byte %zu: %s", fault.at,
                 fault.why);
        etd_client_disconnect(c, "MALFORMED", text);
        return ET_OK;
    }
    c->owed += is_stream(f.head.kind);
    ET_TRY(on_frame(c, &f));
    if (c->channel && c->owed >= (c->credit + 1) / 2)
        etd_client_ping(c);
    return ET_OK;
}
