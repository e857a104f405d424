/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor_control.c: what is asked of the run: commands, which the hub passes on
 * (wire.h has the packets, control.h what the ranks do with them).
 *
 * Every command is answered once, and its answer kept by its id: a second packet with
 * the same id changes nothing and is answered again. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "dist/run/supervisor.h"
#include "dist/wire/endpoint.h"
#include "dist/wire/errors.h"
#include "dist/wire/wire.h"
#include "etude/control.h"

/* ---- answers ---- */

static void
send_answer(const struct etd_supervisor *s, const struct etd_answer *a)
{
    char bytes[ETD_CONTROL_BYTES];
    const struct etd_head head = {.kind = a->kind};
    size_t n = etd_answer_write(bytes, sizeof bytes, &head, a);
    if (s->hub_fd >= 0 && n > 0)
        (void)send(s->hub_fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Keeps it, too: the same id is the same command. */
static void
answer(struct etd_supervisor *s, const struct etd_answer *a)
{
    s->kept[s->n_kept++ % ETD_KEPT] = *a;
    send_answer(s, a);
}

static void
reject(struct etd_supervisor *s, const struct etd_command *c, int code,
       const char *text)
{
    struct etd_answer a = {.kind = ETD_REJECTED, .code = code};
    memcpy(a.id, c->id, sizeof a.id);
    snprintf(a.text, sizeof a.text, "%s", text);
    answer(s, &a);
}

static void
accept_now(struct etd_supervisor *s, const struct etd_command *c)
{
    struct etd_answer a = {.kind = ETD_APPLIED, .rev = s->revision};
    memcpy(a.id, c->id, sizeof a.id);
    a.step = s->board->rank[0].step;
    answer(s, &a);
}

/* ---- commands ---- */

/* A record as the trainer writes them, for what never reaches it. ARGS: of the command;
 * "" without. */
static void
record_command(struct etd_supervisor *s, const struct etd_command *c, const char *args,
               const char *answer)
{
    char text[ET_REQUEST_TEXT];
    struct et_sink *sink = et_run_sink(s->run);
    const struct et_record r = {
        .kind = ET_RECORD_COMMAND,
        .t = eti_wall(s->cx),
        .ba = s->board->rank[0].step,
        .text = text,
    };
    snprintf(text, sizeof text, "%s %s%s%.40s -> %s", c->who, etd_op_name(c->op),
             *args ? " " : "", args, answer);
    sink->write(sink, &r);
    s->dirty = true;
}

static void
end_at_once(struct etd_supervisor *s, const struct etd_command *c)
{
    record_command(s, c, "", "killed");
    s->killed = true;
    etd_sup_signal_all(s, SIGKILL);
    accept_now(s, c);
}

/* One rank's process: what follows is what follows when a rank dies (supervisor.c). */
static void
end_rank(struct etd_supervisor *s, const struct etd_command *c)
{
    const struct etd_launch *l = s->l;
    char text[ETD_STRING / 4], *end;
    long rank = strtol(c->value, &end, 10), last = l->base + l->nproc - 1;
    if (!isdigit((unsigned char)c->value[0]) || *end || rank < l->base || rank > last) {
        snprintf(text, sizeof text, "the ranks here are %d to %ld, and none is '%.40s'",
                 l->base, last, c->value);
        reject(s, c, ETD_E_ARGUMENT, text);
        return;
    }
    const struct etd_sup_rank *r = &s->rank[rank - l->base];
    if (r->pid <= 0) {
        reject(s, c, ETD_E_FULL, "that rank is not running now");
        return;
    }
    record_command(s, c, c->value, "killed");
    kill(r->pid, SIGKILL); /* nobody else waits for it: the number is still its own */
    accept_now(s, c);
}

/* Onto the board, from which the ranks take it between two batches. */
static void
ask_ranks(struct etd_supervisor *s, const struct etd_command *c)
{
    static const enum et_request_op ops[ETD_OP_COUNT] = {
        [ETD_OP_PAUSE] = ET_REQUEST_PAUSE,
        [ETD_OP_CONTINUE] = ET_REQUEST_CONTINUE,
        [ETD_OP_STOP] = ET_REQUEST_STOP,
        [ETD_OP_CHECKPOINT] = ET_REQUEST_CHECKPOINT,
        [ETD_OP_SET] = ET_REQUEST_SET,
        [ETD_OP_ALGO] = ET_REQUEST_ALGO,
        [ETD_OP_LOGLEVEL] = ET_REQUEST_LOGLEVEL,
    };
    struct et_request r = {.op = ops[c->op], .id = s->next_id + 1};
    int free = 0;
    while (free < ETD_SUP_PENDING && s->pending[free].id)
        free++;
    snprintf(r.who, sizeof r.who, "%.*s", (int)sizeof r.who - 1, c->who);
    for (char *p = r.who; *p; p++)
        *p = *p == ' ' ? ':' : *p;
    if (c->op == ETD_OP_SET || c->op == ETD_OP_ALGO)
        snprintf(r.key, sizeof r.key, "%.*s", (int)sizeof r.key - 1, c->key);
    if (c->op != ETD_OP_CHECKPOINT)
        snprintf(r.value, sizeof r.value, "%.*s", (int)sizeof r.value - 1, c->value);
    if (s->alive == 0 || s->board->rank[0].phase == ETD_PHASE_ENDED) {
        reject(s, c, ETD_E_FULL, "no rank is training now");
    } else if (free == ETD_SUP_PENDING || !etd_board_ask(s->board, &r)) {
        reject(s, c, ETD_E_FULL, "too many commands wait already");
    } else {
        int ttl = c->ttl_ms > 0 && c->ttl_ms < ETD_TTL_MS ? c->ttl_ms : ETD_TTL_MS;
        s->next_id++;
        s->pending[free] =
            (struct etd_sup_pending){.id = r.id, .until = etd_sup_now(s) + 1e-3 * ttl};
        memcpy(s->pending[free].name, c->id, sizeof s->pending[free].name);
    }
}

/* The note itself is a record of its own, which says no more than its text. */
static void
annotate(struct etd_supervisor *s, const struct etd_command *c)
{
    struct et_sink *sink = et_run_sink(s->run);
    const struct et_record r = {
        .kind = ET_RECORD_ANNOTATION,
        .t = eti_wall(s->cx),
        .ba = s->board->rank[0].step,
        .text = c->value,
    };
    record_command(s, c, "", "noted");
    sink->write(sink, &r);
    et_run_flush(s->run); /* who is told that it is noted finds it */
    accept_now(s, c);
}

static void
obey(struct etd_supervisor *s, struct etd_command *c)
{
    for (int i = 0; i < ETD_KEPT && i < s->n_kept; i++)
        if (memcmp(s->kept[i].id, c->id, sizeof c->id) == 0) {
            send_answer(s, &s->kept[i]);
            return;
        }
    for (int i = 0; i < ETD_SUP_PENDING; i++)
        if (s->pending[i].id && memcmp(s->pending[i].name, c->id, sizeof c->id) == 0)
            return; /* asked again, perhaps by a new hub, which will be told */
    /* What is on its way to the ranks changes them too. */
    bool changes = c->if_rev >= 0 && c->if_rev != s->revision;
    for (int i = 0; i < ETD_SUP_PENDING && c->if_rev >= 0; i++)
        changes = changes || s->pending[i].id;
    if (changes)
        reject(s, c, ETD_E_REVISION, "the settings have changed meanwhile");
    else if (c->op == ETD_OP_KILL && c->value[0])
        end_rank(s, c);
    else if (c->op == ETD_OP_KILL)
        end_at_once(s, c);
    else if (c->op == ETD_OP_ANNOTATE)
        annotate(s, c);
    else if (c->op == ETD_OP_TAKE) {
        record_command(s, c, "", "taken");
        accept_now(s, c);
    } else
        ask_ranks(s, c);
}

/* Tells the front and the log where the hub listens, or why it does not. A hub that
 * listens right after its start is not mentioned: people expect that. */
static void
hear_place(struct etd_supervisor *s, const struct etd_frame *f)
{
    char path[ETD_SOCKET_PATH], why[ETD_WHY];
    s->hub_heard = true;
    s->hub_failures = 0;
    etd_get_text(&f->body, "endpoint", path, sizeof path);
    etd_get_text(&f->body, "why", why, sizeof why);
    if (!path[0] && strcmp(why, s->no_hub) != 0)
        etd_sup_say(s, ET_LOG_WARN,
                    "nobody can attach to this run, and no command reaches it: %s",
                    why);
    else if (path[0] && (s->no_hub[0] || why[0]))
        etd_sup_say(s, ET_LOG_WARN, "%s: the run listens at %s now",
                    why[0] ? why : s->no_hub, path);
    snprintf(s->no_hub, sizeof s->no_hub, "%s", path[0] ? "" : why);
}

void
etd_sup_hear(struct etd_supervisor *s)
{
    char bytes[ETD_CONTROL_BYTES];
    struct etd_frame f;
    struct etd_fault fault;
    struct etd_command c = {.op = ETD_OP_COUNT};
    ssize_t n = recv(s->hub_fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        close(s->hub_fd);
        s->hub_fd = -1; /* its process ends, or is made to when the run does */
        return;
    }
    if (!s->run || etd_read(bytes, (size_t)n, &f, &fault) != ET_OK)
        return;
    if (f.head.kind == ETD_HELLO)
        hear_place(s, &f);
    if (f.head.kind != ETD_CMD)
        return;
    const char *wrong = etd_command_read(&f, &c);
    if (wrong)
        reject(s, &c, ETD_E_ARGUMENT, wrong);
    else
        obey(s, &c);
}

/* The error number of a request that the ranks have refused with TEXT. */
static int
code_of_refusal(const char *text)
{
    static const char later[] = ET_ANSWER_LATER;
    size_t n = strlen(text), tail = strlen(later);
    bool is_later = n >= tail && strcmp(text + n - tail, later) == 0;
    return is_later ? ETD_E_NOT_YET : ETD_E_ARGUMENT;
}

void
etd_sup_answered(struct etd_supervisor *s, const char *text)
{
    static const char refused[] = "refused: ";
    unsigned long long id;
    long long step;
    int applied, at = 0;
    if (sscanf(text, "%llu %lld %d %n", &id, &step, &applied, &at) != 3 || id == 0)
        return; /* a signal's */
    for (int i = 0; i < ETD_SUP_PENDING; i++) {
        struct etd_sup_pending *p = &s->pending[i];
        if (p->id != id)
            continue;
        const char *what = text + at;
        struct etd_answer a = {
            .kind = applied ? ETD_APPLIED : ETD_REJECTED,
            .step = step,
            .code = applied ? 0 : code_of_refusal(what),
        };
        memcpy(a.id, p->name, sizeof a.id);
        if (applied)
            a.rev = ++s->revision;
        else if (strncmp(what, refused, strlen(refused)) == 0)
            what += strlen(refused);
        snprintf(a.text, sizeof a.text, "%s", what);
        p->id = 0;
        et_run_flush(s->run); /* who is told that it is applied finds it in the log */
        answer(s, &a);
    }
}

void
etd_sup_expire(struct etd_supervisor *s)
{
    double t = etd_sup_now(s);
    for (int i = 0; i < ETD_SUP_PENDING; i++) {
        struct etd_sup_pending *p = &s->pending[i];
        if (!p->id || (t < p->until && s->alive > 0))
            continue;
        if (s->alive > 0 && !etd_board_withdraw(s->board, p->id))
            continue; /* the ranks have it, and say what came of it */
        struct etd_answer a = {.kind = ETD_EXPIRED};
        memcpy(a.id, p->name, sizeof a.id);
        p->id = 0;
        answer(s, &a);
    }
}
