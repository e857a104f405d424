/* SPDX-License-Identifier: Apache-2.0 */
/* client.c: see client.h. */
#include "config.h"

#include "dist/hub/client_parts.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "dist/wire/errors.h"
#include "etude/diagnostic.h"

enum { BATCH = 4096 };            /* messages in one step */
static const double SLICE = 0.05; /* seconds of a step at most */
static const double LONGEST_RETRY = 30;
static const double LOOK = 1; /* seconds between two steps that count, at most */

/* ---- sending ---- */

struct etd_head
etd_client_head(const struct etd_client *c, enum etd_kind kind)
{
    struct etd_head h = {
        .kind = kind,
        .incarnation = c->incarnation,
        .t_mono_ns = (int64_t)(1e9 * etd_client_now(c)),
    };
    memcpy(h.run, c->run, sizeof h.run);
    return h;
}

bool
etd_client_send(struct etd_client *c, const void *bytes, size_t n)
{
    if (!c->channel || n == 0 || !etd_channel_send(c->channel, bytes, n))
        return false;
    c->said = etd_client_now(c);
    c->touched = true;
    return true;
}

static void
send_hello(struct etd_client *c)
{
    char bytes[ETD_CONTROL_BYTES];
    struct etd_out o;
    struct etd_head h = etd_client_head(c, ETD_HELLO);
    etd_begin(&o, bytes, sizeof bytes, &h, 3 + c->has_name + !!c->as[0] + c->has_model);
    etd_put_int(&o, "minor", ETD_MINOR);
    etd_put_bool(&o, "stream", !c->control);
    etd_put_int(&o, "credit", c->credit);
    if (c->has_name)
        etd_put_text(&o, "run", c->run_name);
    if (c->as[0])
        etd_put_text(&o, "as", c->as);
    if (c->has_model)
        etd_put_int(&o, "after", c->model->seq);
    (void)etd_client_send(c, bytes, etd_end(&o));
}

void
etd_client_ping(struct etd_client *c)
{
    char bytes[ETD_CONTROL_BYTES];
    struct etd_out o;
    struct etd_head h = etd_client_head(c, ETD_PING);
    etd_begin(&o, bytes, sizeof bytes, &h, (c->owed > 0) + c->wants_digest);
    if (c->owed > 0)
        etd_put_int(&o, "credit", c->owed);
    if (c->wants_digest)
        etd_put_bool(&o, "digest", true);
    if (!etd_client_send(c, bytes, etd_end(&o)))
        return;
    c->owed = 0;
    c->wants_digest = false;
}

void
etd_client_nack(struct etd_client *c, int64_t from, int64_t to)
{
    char bytes[ETD_CONTROL_BYTES];
    struct etd_out o;
    struct etd_head h = etd_client_head(c, ETD_NACK);
    etd_begin(&o, bytes, sizeof bytes, &h, 2);
    etd_put_int(&o, "from", from);
    etd_put_int(&o, "to", to);
    if (etd_client_send(c, bytes, etd_end(&o)))
        c->nack_at = etd_client_now(c) + ETD_NACK_AGAIN;
}

/* ---- coming and going ---- */

void
etd_client_drop_snapshot(struct etd_client *c)
{
    et_free(c->cx, c->snap.bytes);
    c->snap = (struct etd_incoming){0};
    c->s.loaded = c->s.loading = 0;
}

void
etd_client_say(struct etd_client *c, const char *code, const char *text)
{
    et_visible(c->s.code, sizeof c->s.code, code, strlen(code));
    et_visible(c->s.text, sizeof c->s.text, text, strlen(text));
}

void
etd_client_hang_up(struct etd_client *c, enum etd_link link, const char *code,
                   const char *text)
{
    etd_channel_close(&c->channel);
    etd_client_drop_snapshot(c);
    etd_join_release(&c->join);
    c->s.link = link;
    etd_client_say(c, code, text);
    c->owed = 0;
}

/* 1, 2, 4 ... 30 s, a fifth more or less, so that viewers do not come back as one. */
void
etd_client_disconnect(struct etd_client *c, const char *code, const char *text)
{
    uint32_t random = 0;
    double wait = c->attempts < 5 ? (double)(1 << c->attempts) : LONGEST_RETRY;
    (void)!getrandom(&random, sizeof random, 0);
    etd_client_hang_up(c, ETD_LINK_DISCONNECTED, code, text);
    c->attempts++;
    c->retry_at = etd_client_now(c) + wait * (0.8 + 0.4 * random / UINT32_MAX);
}

static et_status
connect_now(struct etd_client *c)
{
    c->s.link = ETD_LINK_CONNECTING;
    c->began = c->heard = c->said = c->stepped = etd_client_now(c);
    c->nack_at = 0;
    et_status status = etd_channel_open(c->cx, &c->to, &c->channel);
    if (status == ET_OK) {
        send_hello(c);
        return ET_OK;
    }
    char why[ETD_TEXT];
    snprintf(why, sizeof why, "%.*s", ETD_TEXT - 1, et_error_get(c->cx)->message);
    if (status == ET_ENOMEM || status == ET_EINVAL)
        return status;
    et_error_clear(c->cx);
    if (status == ET_ECANCELED) /* another user's socket */
        etd_client_hang_up(c, ETD_LINK_REFUSED, "OWNER", why);
    else
        etd_client_disconnect(c, "UNREACHABLE", why);
    return ET_OK;
}

/* ---- time ---- */

static void
no_answer(struct etd_client *c)
{
    etd_client_disconnect(c, "SILENT", "nobody answered within 5 s");
}

/* The channel itself gives up after ETD_HANDSHAKE without an answer. */
static void
on_gone(struct etd_client *c)
{
    const char *why = etd_channel_why_gone(c->channel);
    if (c->s.link == ETD_LINK_CONNECTING &&
        etd_client_now(c) - c->began >= ETD_HANDSHAKE - LOOK)
        no_answer(c);
    else
        etd_client_disconnect(c, "GONE", why ? why : "the connection broke off");
}

static et_status
receive(struct etd_client *c)
{
    double end = etd_client_now(c) + SLICE;
    for (int i = 0; c->channel; i++) {
        const char *bytes;
        size_t n;
        if (i == BATCH || (i % 64 == 63 && etd_client_now(c) >= end)) {
            c->touched = true;
            return ET_OK;
        }
        switch (etd_channel_receive(c->channel, &bytes, &n)) {
        case ETD_GOT_NOTHING:
            return ET_OK;
        case ETD_GOT_MESSAGE:
            ET_TRY(etd_client_message(c, bytes, n));
            break;
        case ETD_GOT_GONE:
            on_gone(c);
            break;
        case ETD_GOT_DENIED:
            etd_client_hang_up(
                c, ETD_LINK_REFUSED, "KEY",
                "the key is refused, or the server's is not the one known");
        }
    }
    return ET_OK;
}

/* Silence counts only while this process listens: of the time since the last step no
 * more than LOOK does. After the machine was suspended, no channel is cut for a silence
 * that nobody could hear; a hub that is gone is silent from now on. */
static void
forgive(struct etd_client *c)
{
    double now = etd_client_now(c), deaf = now - c->stepped - LOOK;
    if (c->stepped > 0 && deaf > 0) {
        c->heard += deaf;
        c->began += deaf;
    }
    c->stepped = now;
}

static void
look_at_clock(struct etd_client *c)
{
    double now = etd_client_now(c);
    c->s.silent = c->channel ? now - c->heard : c->s.silent;
    if (!c->channel)
        return;
    if (c->s.link == ETD_LINK_CONNECTING) {
        if (now - c->began >= ETD_HANDSHAKE)
            no_answer(c);
        return;
    }
    if (now - c->heard >= ETD_DISCONNECTED) {
        etd_client_disconnect(c, "SILENT", "nothing was heard for 10 s");
        return;
    }
    if (now - c->heard >= ETD_STALE && c->s.link == ETD_LINK_LIVE)
        c->s.link = ETD_LINK_STALE;
    if (c->s.link == ETD_LINK_LIVE && !c->control && now >= c->verify_at) {
        c->verify_at = now + ETD_VERIFY;
        c->wants_digest = true;
        etd_client_ping(c);
    }
    if (now - c->said >= ETD_BEAT)
        etd_client_ping(c);
}

int
etd_client_fd(const struct etd_client *c)
{
    return c->channel ? etd_channel_fd(c->channel) : -1;
}

int
etd_client_timeout(const struct etd_client *c)
{
    double now = etd_client_now(c), next;
    if (c->touched)
        return 0;
    if (c->s.link == ETD_LINK_REFUSED || c->s.link == ETD_LINK_ENDED)
        return -1;
    if (!c->channel) {
        next = c->retry_at;
    } else if (c->s.link == ETD_LINK_CONNECTING) {
        next = now + LOOK;
        if (c->began + ETD_HANDSHAKE < next)
            next = c->began + ETD_HANDSHAKE;
    } else {
        next = c->said + ETD_BEAT;
        if (c->s.link == ETD_LINK_LIVE && c->heard + ETD_STALE < next)
            next = c->heard + ETD_STALE;
    }
    return next <= now ? 0 : (int)(1000 * (next - now)) + 1;
}

et_status
etd_client_step(struct etd_client *c)
{
    c->touched = false;
    forgive(c);
    if (!c->channel && c->s.link == ETD_LINK_DISCONNECTED && !c->once &&
        etd_client_now(c) >= c->retry_at)
        ET_TRY(connect_now(c));
    ET_TRY(receive(c));
    look_at_clock(c);
    if (c->s.link == ETD_LINK_DISCONNECTED) {
        double left = c->retry_at - etd_client_now(c);
        c->s.retry_in = left > 0 ? left : 0;
    }
    return ET_OK;
}

void
etd_client_retry(struct etd_client *c)
{
    if (c->s.link == ETD_LINK_DISCONNECTED || c->s.link == ETD_LINK_ENDED ||
        c->s.link == ETD_LINK_REFUSED) {
        c->s.link = ETD_LINK_DISCONNECTED;
        c->retry_at = 0;
        c->touched = true;
    }
}

/* ---- the rest ---- */

/* So that the hub forgets it at once. */
static void
send_bye(struct etd_client *c)
{
    char bytes[256];
    struct etd_out o;
    const struct etd_head h = etd_client_head(c, ETD_BYE);
    etd_begin(&o, bytes, sizeof bytes, &h, 0);
    (void)etd_client_send(c, bytes, etd_end(&o));
    etd_channel_finish(c->channel);
}

et_status
etd_client_open(struct et_ctx *cx, const struct etd_client_options *o,
                struct etd_client **out)
{
    void *block;
    *out = NULL;
    if (strlen(o->channel.target) >= ETD_TARGET)
        return ETD_FAIL(cx, ET_EINVAL, ADDRESS, "a target of more than %d bytes",
                        ETD_TARGET - 1);
    if (o->run)
        ET_TRY(et_run_name_check(cx, o->run));
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct etd_client *c = block;
    c->cx = cx;
    c->to = o->channel;
    snprintf(c->target, sizeof c->target, "%s", o->channel.target);
    c->to.target = c->target;
    snprintf(c->run_name, sizeof c->run_name, "%s", o->run ? o->run : "");
    c->has_name = o->run != NULL;
    snprintf(c->as, sizeof c->as, "%s", o->as ? o->as : "");
    if (o->channel.keys && o->channel.server) {
        c->keys = *o->channel.keys;
        snprintf(c->server, sizeof c->server, "%s", o->channel.server);
        c->to.keys = &c->keys;
        c->to.server = c->server;
    }
    memcpy(c->wanted, o->id, sizeof c->wanted);
    c->control = o->control;
    c->once = o->once;
    c->has_model = o->whole; /* of what was before the first record: nothing */
    c->credit = o->credit > 0 ? o->credit : ETD_CREDIT;
    etd_join_init(&c->join, cx);
    et_status status = etd_model_new(cx, &c->model);
    if (status == ET_OK)
        status = connect_now(c);
    if (status != ET_OK) {
        etd_client_close(&c);
        return status;
    }
    *out = c;
    return ET_OK;
}

void
etd_client_close(struct etd_client **out)
{
    struct etd_client *c = *out;
    *out = NULL;
    if (!c)
        return;
    if (c->channel && c->s.link != ETD_LINK_CONNECTING)
        send_bye(c);
    etd_channel_close(&c->channel);
    etd_client_drop_snapshot(c);
    etd_join_release(&c->join);
    etd_model_free(&c->model);
    et_free(c->cx, c->facts);
    et_free(c->cx, c->piece_bytes);
    et_free(c->cx, c);
}

const struct etd_client_status *
etd_client_status(const struct etd_client *c)
{
    return &c->s;
}

struct etd_model *
etd_client_model(struct etd_client *c)
{
    return c->model;
}

const char *
etd_client_facts(const struct etd_client *c, size_t *n)
{
    *n = c->n_facts;
    return c->facts;
}

void
etd_client_watch(struct etd_client *c,
                 void (*fn)(void *data, const struct et_record *r), void *data)
{
    c->fn = fn;
    c->data = data;
}

void
etd_client_verify(struct etd_client *c)
{
    c->wants_digest = true;
    if (c->s.link == ETD_LINK_LIVE)
        etd_client_ping(c);
}
