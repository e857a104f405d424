/* SPDX-License-Identifier: Apache-2.0 */
/* client_ask.c: what is asked of a hub, and its answers: see client.h. */
#include "config.h"

#include "dist/hub/client_parts.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "dist/wire/errors.h"

/* ---- commands ---- */

et_status
etd_client_repeat(struct etd_client *c, const struct etd_command *command)
{
    char bytes[ETD_CONTROL_BYTES];
    struct etd_head h = etd_client_head(c, ETD_CMD);
    if (c->s.link != ETD_LINK_LIVE && c->s.link != ETD_LINK_LOADING)
        return ETD_FAIL(c->cx, ET_ECANCELED, UNREACHABLE,
                        "the run does not answer: commands are not kept for later");
    if (etd_client_send(c, bytes, etd_command_write(bytes, sizeof bytes, &h, command)))
        return ET_OK;
    return ETD_FAIL(c->cx, ET_ECANCELED, FULL, "the line is full");
}

et_status
etd_client_command(struct etd_client *c, enum etd_op op, const char *key,
                   const char *value, int64_t if_rev, int ttl_ms,
                   unsigned char id[ETD_CMD_ID])
{
    struct etd_command command = {.op = op, .if_rev = if_rev, .ttl_ms = ttl_ms};
    size_t n_key = key ? strlen(key) : 0, n_value = value ? strlen(value) : 0;
    if (n_key >= ETD_WORD || n_value >= etd_op_room(op) || ttl_ms < 1 ||
        ttl_ms > ETD_TTL_MS)
        return ETD_FAIL(c->cx, ET_EINVAL, ARGUMENT,
                        "%s: its text has at most %zu bytes, and times 1 to %d ms",
                        etd_op_name(op), etd_op_room(op) - 1, ETD_TTL_MS);
    memcpy(command.key, key ? key : "", n_key);
    memcpy(command.value, value ? value : "", n_value);
    if (getrandom(command.id, sizeof command.id, 0) != sizeof command.id)
        return ET_FAIL(c->cx, ET_EIO, "no random bytes: %s", strerror(errno));
    memcpy(id, command.id, sizeof command.id);
    return etd_client_repeat(c, &command);
}

bool
etd_client_answer(struct etd_client *c, struct etd_answer *out)
{
    if (c->n_answers == 0)
        return false;
    *out = c->answer[c->first_answer];
    c->first_answer = (c->first_answer + 1) % ETD_ANSWERS;
    c->n_answers--;
    return true;
}

/* ---- history ---- */

et_status
etd_client_history(struct etd_client *c, int64_t id, const char *series, int64_t from,
                   int64_t to, int most)
{
    char bytes[ETD_CONTROL_BYTES];
    struct etd_out o;
    struct etd_head h = etd_client_head(c, ETD_HIST);
    etd_begin(&o, bytes, sizeof bytes, &h, 5);
    etd_put_int(&o, "id", id);
    etd_put_text(&o, "series", series);
    etd_put_int(&o, "from", from);
    etd_put_int(&o, "to", to);
    etd_put_int(&o, "most", most < ETD_POINTS ? most : ETD_POINTS);
    if (c->s.link == ETD_LINK_LIVE && etd_client_send(c, bytes, etd_end(&o)))
        return ET_OK;
    return ETD_FAIL(c->cx, ET_ECANCELED, UNREACHABLE, "the run does not answer");
}

bool
etd_client_points(struct etd_client *c, struct etd_points *out)
{
    bool has = c->has_points;
    c->has_points = false;
    *out = c->points;
    return has;
}

/* ---- all at once ---- */

/* Is the answer late, rather than refused? Then it is asked for again. */
static bool
is_late(const struct etd_client *c)
{
    return c->s.link == ETD_LINK_CONNECTING ||
           (c->s.link == ETD_LINK_DISCONNECTED && strcmp(c->s.code, "SILENT") == 0);
}

/* Steps until the channel is live; false: it will not be. */
static et_status
wait_live(struct etd_client *c, double end)
{
    while (is_late(c) && etd_client_now(c) < end) {
        struct pollfd p = {.fd = etd_client_fd(c), .events = POLLIN};
        int timeout = etd_client_timeout(c),
            left = (int)(1000 * (end - etd_client_now(c))) + 1;
        (void)poll(&p, 1, timeout >= 0 && timeout < left ? timeout : left);
        ET_TRY(etd_client_step(c));
    }
    if (c->s.link == ETD_LINK_LIVE)
        return ET_OK;
    if (c->s.link == ETD_LINK_REFUSED && strcmp(c->s.code, "NO_RUN") == 0)
        return ETD_FAIL(c->cx, ET_ECANCELED, UNREACHABLE, "%s", c->s.text);
    if (c->s.link == ETD_LINK_REFUSED)
        return ETD_FAIL(c->cx, ET_ECANCELED, TURNED_AWAY, "%s", c->s.text);
    return ETD_FAIL(c->cx, ET_ENOENT, UNREACHABLE, "%s",
                    c->s.text[0] ? c->s.text : "nobody answers");
}

static et_status
wait_answer(struct etd_client *c, const unsigned char *id, double end,
            struct etd_answer *out)
{
    /* (Stale is not gone: a machine that stood still for 3 s goes on.) */
    while (etd_client_now(c) < end &&
           (c->s.link == ETD_LINK_LIVE || c->s.link == ETD_LINK_STALE)) {
        struct pollfd p = {.fd = etd_client_fd(c), .events = POLLIN};
        int timeout = etd_client_timeout(c),
            left = (int)(1000 * (end - etd_client_now(c))) + 1;
        (void)poll(&p, 1, timeout >= 0 && timeout < left ? timeout : left);
        ET_TRY(etd_client_step(c));
        while (etd_client_answer(c, out))
            if (memcmp(out->id, id, ETD_CMD_ID) == 0 && out->kind != ETD_RECEIVED)
                return ET_OK;
    }
    return ETD_FAIL(c->cx, ET_ECANCELED, UNREACHABLE,
                    "no answer came; the run's events say whether it was done");
}

et_status
etd_client_ask(struct et_ctx *cx, const struct etd_client_options *o, enum etd_op op,
               const char *key, const char *value, double seconds,
               struct etd_answer *out)
{
    struct etd_client_options mine = *o;
    struct etd_client *c;
    unsigned char id[ETD_CMD_ID];
    double end = eti_monotonic(cx) + seconds;
    int ttl = (int)(1000 * seconds);
    mine.control = true;
    ET_TRY(etd_client_open(cx, &mine, &c));
    et_status status = wait_live(c, end);
    if (status == ET_OK)
        status = etd_client_command(c, op, key, value, -1,
                                    ttl < ETD_TTL_MS ? ttl : ETD_TTL_MS, id);
    if (status == ET_OK)
        status = wait_answer(c, id, end + 1, out);
    etd_client_close(&c);
    return status;
}

/* ---- files ---- */

et_status
etd_client_file(struct etd_client *c, enum etd_piece_of file, int rank, int64_t at)
{
    char bytes[ETD_CONTROL_BYTES];
    const struct etd_head h = etd_client_head(c, ETD_FILE);
    size_t n = etd_piece_ask(&h, file, rank, at, bytes, sizeof bytes);
    c->has_piece = false;
    if (c->s.has_files && c->s.link == ETD_LINK_LIVE && etd_client_send(c, bytes, n))
        return ET_OK;
    return ETD_FAIL(c->cx, ET_ECANCELED, UNREACHABLE,
                    c->s.has_files ? "the worker does not answer"
                                   : "an earlier version of Etude answers, which does "
                                     "not send files");
}

bool
etd_client_piece(struct etd_client *c, struct etd_piece *out)
{
    bool has = c->has_piece;
    c->has_piece = false;
    *out = c->piece;
    return has;
}
