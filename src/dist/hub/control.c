/* SPDX-License-Identifier: Apache-2.0 */
/* control.c: commands on their way to the supervisor, and their answers on the way
 * back.
 *
 * control.log has a line of JSON for each command that was passed on, written before it
 * was, and one for each answer; so a command that comes again, to this hub or to one
 * that was started since, gets the answer that it got. A command without an answer is
 * passed on again by a new hub: the supervisor knows the ids that it has done (wire.h).
 *
 *     {"id", "t", "who", "op", "key", "value", "if_rev", "ttl_ms"}
 *     {"id", "answer", "step", "rev", "code", "text"}
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "dist/hub/hub_parts.h"
#include "dist/wire/errors.h"

enum {
    LINE = 4096,     /* bytes of a line at most: a note of quotes is twice as long */
    KNOWN = 1 << 18, /* commands of a run at most */
    HEX = 2 * ETD_CMD_ID + 1,
};
static const double RATE = 10; /* commands a second, and as many at once */

/* ---- ids ---- */

static void
to_hex(const unsigned char *id, char out[HEX])
{
    for (int i = 0; i < ETD_CMD_ID; i++)
        snprintf(out + 2 * i, 3, "%02x", id[i]);
}

static bool
from_hex(const char *text, unsigned char *id)
{
    if (!text || strlen(text) != HEX - 1)
        return false;
    for (int i = 0; i < ETD_CMD_ID; i++) {
        unsigned x;
        if (sscanf(text + 2 * i, "%2x", &x) != 1)
            return false;
        id[i] = (unsigned char)x;
    }
    return true;
}

/* The place of ID: its own, or the free one where it would be. Ids are random. */
static struct etd_known *
find_known(const struct etd_control *k, const unsigned char *id)
{
    uint64_t at;
    memcpy(&at, id, sizeof at);
    for (;; at++) {
        struct etd_known *place = &k->known[at & (uint64_t)(k->room - 1)];
        if (!place->used || memcmp(place->id, id, ETD_CMD_ID) == 0)
            return place;
    }
}

static et_status
remember(struct etd_hub *h, const unsigned char *id, int64_t answer)
{
    struct etd_control *k = &h->control;
    if (4 * (k->n + 1) > 3 * k->room) {
        struct etd_control bigger = {.room = k->room ? 2 * k->room : 256};
        void *block;
        ET_TRY(et_alloc(h->cx, (size_t)bigger.room * sizeof *k->known, &block));
        bigger.known = block;
        for (int64_t i = 0; i < k->room; i++)
            if (k->known[i].used)
                *find_known(&bigger, k->known[i].id) = k->known[i];
        et_free(h->cx, k->known);
        k->known = bigger.known;
        k->room = bigger.room;
    }
    struct etd_known *place = find_known(k, id);
    k->n += !place->used;
    if (!place->used || answer >= 0)
        place->answer = answer;
    place->used = true;
    memcpy(place->id, id, ETD_CMD_ID);
    return ET_OK;
}

static const struct etd_known *
look_up(const struct etd_control *k, const unsigned char *id)
{
    const struct etd_known *place = k->room ? find_known(k, id) : NULL;
    return place && place->used ? place : NULL;
}

/* ---- the log ---- */

/* Appends JSON, taken over, as a line, down to the disk. *AT is where it begins. */
static bool
append(struct etd_hub *h, json_t *json, int64_t *at)
{
    struct etd_control *k = &h->control;
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    size_t n = text ? strlen(text) : 0;
    json_decref(json);
    bool written = text != NULL;
    if (written) {
        text[n] = '\n'; /* in the place of its zero */
        written = eti_write_all(h->cx, k->fd, "control.log", text, n + 1) == ET_OK &&
                  eti_sync(h->cx, k->fd, "control.log") == ET_OK;
    }
    free(text);
    if (!written) {
        et_report(h->cx, ET_LOG_WARN, "%s", et_error_get(h->cx)->message);
        et_error_clear(h->cx);
        (void)!ftruncate(k->fd, k->size); /* no half line stays */
        return false;
    }
    *at = k->size;
    k->size += (int64_t)n + 1;
    return true;
}

static bool
write_command(struct etd_hub *h, const struct etd_command *c)
{
    char id[HEX];
    int64_t at;
    to_hex(c->id, id);
    return append(h,
                  json_pack("{s:s, s:f, s:s, s:s, s:s, s:s, s:I, s:i}", "id", id, "t",
                            eti_wall(h->cx), "who", c->who, "op", etd_op_name(c->op),
                            "key", c->key, "value", c->value, "if_rev",
                            (json_int_t)c->if_rev, "ttl_ms", c->ttl_ms),
                  &at);
}

static void
write_answer(struct etd_hub *h, const struct etd_answer *a)
{
    char id[HEX];
    int64_t at;
    to_hex(a->id, id);
    json_t *json = json_pack("{s:s, s:s, s:I, s:I, s:i, s:s}", "id", id, "answer",
                             etd_kind_name(a->kind), "step", (json_int_t)a->step, "rev",
                             (json_int_t)a->rev, "code", a->code, "text", a->text);
    if (append(h, json, &at) && remember(h, a->id, at) != ET_OK)
        et_error_clear(h->cx);
}

static const char *
text_of(const json_t *json, const char *key)
{
    const char *text = json_string_value(json_object_get(json, key));
    return text ? text : "";
}

static bool
parse_answer(const json_t *json, struct etd_answer *a)
{
    const char *kind = text_of(json, "answer");
    *a = (struct etd_answer){
        .kind = ETD_RECEIVED,
        .step = json_integer_value(json_object_get(json, "step")),
        .rev = json_integer_value(json_object_get(json, "rev")),
        .code = (int)json_integer_value(json_object_get(json, "code")),
    };
    snprintf(a->text, sizeof a->text, "%s", text_of(json, "text"));
    while (a->kind <= ETD_EXPIRED && strcmp(etd_kind_name(a->kind), kind) != 0)
        a->kind++;
    return a->kind <= ETD_EXPIRED && from_hex(text_of(json, "id"), a->id);
}

/* The line at AT into LINE. */
static bool
read_answer(struct etd_hub *h, int64_t at, struct etd_answer *a)
{
    char line[LINE];
    ssize_t n = pread(h->control.fd, line, sizeof line, at);
    const char *end = n > 0 ? memchr(line, '\n', (size_t)n) : NULL;
    json_t *json = end ? json_loadb(line, (size_t)(end - line), 0, NULL) : NULL;
    bool found = json && parse_answer(json, a);
    json_decref(json);
    return found;
}

/* ---- to the supervisor ---- */

static struct etd_hub_pending *
find_pending(struct etd_control *k, const unsigned char *id)
{
    for (int i = 0; i < ETD_HUB_PENDING; i++)
        if (k->pending[i].used &&
            (!id || memcmp(k->pending[i].command.id, id, ETD_CMD_ID) == 0))
            return &k->pending[i];
    return NULL;
}

static struct etd_hub_pending *
free_pending(struct etd_control *k)
{
    for (int i = 0; i < ETD_HUB_PENDING; i++)
        if (!k->pending[i].used)
            return &k->pending[i];
    return NULL;
}

/* Packets are short, and the supervisor reads them. If it does not for a second it is
 * stopped, and the command is left for the next hub. */
static bool
pass_on(struct etd_hub *h, const struct etd_hub_pending *p)
{
    char bytes[ETD_CONTROL_BYTES];
    const struct etd_head head = etd_hub_head(h, ETD_CMD);
    struct etd_command c = p->command;
    double left = 1000 * (p->until - eti_monotonic(h->cx));
    c.ttl_ms = left < 1 ? 1 : left > ETD_TTL_MS ? ETD_TTL_MS : (int)left;
    size_t n = etd_command_write(bytes, sizeof bytes, &head, &c);
    return n > 0 &&
           send(h->supervisor, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)n;
}

/* ---- answers ---- */

static void
reply(struct etd_hub *h, const struct etd_route *to, const struct etd_answer *a)
{
    char bytes[ETD_CONTROL_BYTES];
    const struct etd_head head = etd_hub_head(h, a->kind);
    size_t n = etd_answer_write(bytes, sizeof bytes, &head, a);
    if (to->name_bytes > 0)
        (void)etd_hub_send(h, to, bytes, n);
}

static struct etd_answer
reject(struct etd_hub *h, const struct etd_peer *p, const struct etd_command *c,
       int code, const char *text)
{
    struct etd_answer a = {.kind = ETD_REJECTED, .code = code};
    memcpy(a.id, c->id, sizeof a.id);
    snprintf(a.text, sizeof a.text, "%s", text);
    reply(h, &p->to, &a);
    return a;
}

const char *
etd_control_lease(struct etd_hub *h)
{
    struct etd_control *k = &h->control;
    if (k->lease[0] && eti_monotonic(h->cx) >= k->lease_until)
        k->lease[0] = '\0';
    return k->lease;
}

void
etd_control_answer(struct etd_hub *h, const struct etd_frame *f)
{
    struct etd_control *k = &h->control;
    struct etd_answer a;
    if (!etd_answer_read(f, &a) || a.kind == ETD_RECEIVED)
        return;
    struct etd_hub_pending *p = find_pending(k, a.id);
    if (!p)
        return;
    write_answer(h, &a);
    if (p->command.op == ETD_OP_TAKE && a.kind == ETD_APPLIED) {
        memcpy(k->lease, p->command.who, sizeof k->lease);
        k->lease_until = eti_monotonic(h->cx) + ETD_LEASE_S;
    }
    reply(h, &p->to, &a);
    p->used = false;
}

/* ---- commands ---- */

/* Counts a command of WHO. False: WHO sends more than ten a second. */
static bool
is_in_rate(struct etd_hub *h, const char *who)
{
    struct etd_rate *rate = h->control.rate, *place = rate;
    double now = eti_monotonic(h->cx);
    for (int i = 0; i < ETD_OPERATORS; i++) {
        if (strcmp(rate[i].who, who) == 0) {
            place = &rate[i];
            break;
        }
        if (rate[i].commands.filled < place->commands.filled)
            place = &rate[i];
    }
    if (strcmp(place->who, who) != 0) {
        *place = (struct etd_rate){.commands = {RATE, now}};
        memcpy(place->who, who, strnlen(who, ETD_WORD - 1));
    }
    return etd_bucket_take(&place->commands, RATE, now);
}

/* The command came before: it gets the answer that it got, or will get. */
static bool
is_repeated(struct etd_hub *h, const struct etd_peer *p, const struct etd_command *c)
{
    struct etd_answer a = {.kind = ETD_RECEIVED};
    struct etd_hub_pending *waiting = find_pending(&h->control, c->id);
    const struct etd_known *known = look_up(&h->control, c->id);
    memcpy(a.id, c->id, sizeof a.id);
    if (waiting) {
        waiting->to = p->to;
        reply(h, &p->to, &a);
        return true;
    }
    if (!known)
        return false;
    if (known->answer >= 0 && read_answer(h, known->answer, &a))
        reply(h, &p->to, &a);
    return true;
}

/* NULL: it may be passed on. */
static const char *
why_not(struct etd_hub *h, const struct etd_frame *f, const struct etd_command *c,
        int *code, char *text, size_t size)
{
    const char *lease = c->op == ETD_OP_ANNOTATE ? "" : etd_control_lease(h);
    *code = ETD_E_OTHER_RUN;
    if (memcmp(f->head.run, h->run, ETD_RUN_ID) != 0)
        return "that is another run";
    if (f->head.incarnation != etd_follow_model(h->follow)->incarnation)
        return "the run was started again since";
    *code = ETD_E_LEASE;
    snprintf(text, size, "%s has taken the run, for %.0f s more", lease,
             h->control.lease_until - eti_monotonic(h->cx));
    if (lease[0] && strcmp(lease, c->who) != 0)
        return text;
    *code = ETD_E_FULL;
    if (!free_pending(&h->control))
        return "too many commands wait for their answers";
    return h->control.n >= KNOWN ? "the run's log of commands is full" : NULL;
}

void
etd_control_command(struct etd_hub *h, struct etd_peer *p, const struct etd_frame *f)
{
    struct etd_control *k = &h->control;
    struct etd_command c;
    char text[ETD_STRING / 4];
    int code;
    const char *wrong = etd_command_read(f, &c);
    memcpy(c.who, p->who, sizeof c.who);
    char raw[sizeof c.value]; /* the log of commands and that of the run are shown */
    memcpy(raw, c.value, sizeof raw);
    et_visible(c.value, sizeof c.value, raw, strlen(raw));
    if (!is_in_rate(h, p->who)) {
        (void)reject(h, p, &c, ETD_E_RATE, "more than 10 commands a second");
        return;
    }
    if (wrong) {
        (void)reject(h, p, &c, ETD_E_ARGUMENT, wrong);
        return;
    }
    if (is_repeated(h, p, &c))
        return;
    const char *why = why_not(h, f, &c, &code, text, sizeof text);
    if (why) {
        struct etd_answer a = reject(h, p, &c, code, why);
        if (code != ETD_E_FULL) /* that may be otherwise the next time */
            write_answer(h, &a);
        return;
    }
    if (!write_command(h, &c) || remember(h, c.id, -1) != ET_OK) {
        et_error_clear(h->cx);
        (void)reject(h, p, &c, ETD_E_FULL, "the command cannot be written down");
        return;
    }
    struct etd_hub_pending *waiting = free_pending(k);
    *waiting = (struct etd_hub_pending){
        .used = true,
        .command = c,
        .until = eti_monotonic(h->cx) + c.ttl_ms / 1000.0,
        .to = p->to,
    };
    struct etd_answer received = {.kind = ETD_RECEIVED};
    memcpy(received.id, c.id, sizeof received.id);
    reply(h, &p->to, &received);
    if (!pass_on(h, waiting)) {
        struct etd_answer expired = {.kind = ETD_EXPIRED};
        memcpy(expired.id, c.id, sizeof expired.id);
        write_answer(h, &expired);
        reply(h, &p->to, &expired);
        waiting->used = false;
    }
}

/* ---- reading it again ---- */

static void
reload_command(struct etd_hub *h, const json_t *json, const unsigned char *id)
{
    struct etd_hub_pending *p = free_pending(&h->control);
    if (!p)
        return;
    *p = (struct etd_hub_pending){.used = true};
    struct etd_command *c = &p->command;
    double ttl = json_integer_value(json_object_get(json, "ttl_ms")) / 1000.0;
    double age = eti_wall(h->cx) - json_number_value(json_object_get(json, "t"));
    memcpy(c->id, id, ETD_CMD_ID);
    c->op = etd_op_of(text_of(json, "op"));
    c->if_rev = json_integer_value(json_object_get(json, "if_rev"));
    snprintf(c->key, sizeof c->key, "%s", text_of(json, "key"));
    snprintf(c->value, sizeof c->value, "%s", text_of(json, "value"));
    snprintf(c->who, sizeof c->who, "%s", text_of(json, "who"));
    /* A clock that was set back must not give it more time than it had. */
    p->until = eti_monotonic(h->cx) + (age > 0 && age < ttl ? ttl - age : 0);
    p->used = c->op < ETD_OP_COUNT;
}

static et_status
reload_line(struct etd_hub *h, const char *line, size_t n, int64_t at)
{
    struct etd_answer a;
    unsigned char id[ETD_CMD_ID];
    json_t *json = json_loadb(line, n, 0, NULL);
    et_status status = ET_OK;
    if (json && parse_answer(json, &a)) {
        struct etd_hub_pending *p = find_pending(&h->control, a.id);
        if (p)
            p->used = false;
        status = remember(h, a.id, at);
    } else if (json && from_hex(text_of(json, "id"), id)) {
        status = remember(h, id, -1);
        reload_command(h, json, id);
    }
    json_decref(json);
    return status;
}

static et_status
reload(struct etd_hub *h)
{
    struct etd_control *k = &h->control;
    char line[LINE];
    struct stat st;
    int64_t at = 0;
    if (fstat(k->fd, &st) != 0)
        return ET_FAIL(h->cx, ET_EIO, "control.log: %s", strerror(errno));
    while (at < st.st_size) {
        ssize_t n = pread(k->fd, line, sizeof line, at);
        const char *end = n > 0 ? memchr(line, '\n', (size_t)n) : NULL;
        if (!end)
            break;
        ET_TRY(reload_line(h, line, (size_t)(end - line), at));
        at += end - line + 1;
    }
    k->size = at;
    if (at < st.st_size && ftruncate(k->fd, at) != 0)
        return ET_FAIL(h->cx, ET_EIO, "cannot cut control.log to %lld bytes: %s",
                       (long long)at, strerror(errno));
    return ET_OK;
}

et_status
etd_control_open(struct etd_hub *h)
{
    struct etd_control *k = &h->control;
    int dir;
    ET_TRY(eti_open_folder(h->cx, h->directory, &dir));
    et_status status =
        eti_open_at(h->cx, dir, "control.log", O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW,
                    0600, &k->fd);
    eti_close(h->cx, dir);
    ET_TRY(status);
    return reload(h);
}

void
etd_control_resume(struct etd_hub *h)
{
    struct etd_control *k = &h->control;
    for (int i = 0; i < ETD_HUB_PENDING; i++)
        if (k->pending[i].used && !pass_on(h, &k->pending[i]))
            k->pending[i].used = false; /* for the next hub */
}

void
etd_control_close(struct etd_hub *h)
{
    if (h->control.fd >= 0)
        close(h->control.fd);
    et_free(h->cx, h->control.known);
    h->control.known = NULL;
    h->control.fd = -1;
}
