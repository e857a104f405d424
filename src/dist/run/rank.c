/* SPDX-License-Identifier: Apache-2.0 */
/* rank.c: see rank.h. */
#include "config.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "dist/run/rank.h"
#include "dist/run/rank_impl.h"

enum { PAUSE_MS = 20 }; /* between looks at the board while the run is paused */

/* ---- texts ---- */

struct stream {
    struct etd_rank *rank;
    enum etd_packet_kind kind;
};

static ssize_t
put_text(void *cookie, const char *text, size_t n)
{
    const struct stream *s = cookie;
    etd_sender_put(s->rank->sender, s->kind, text, n);
    return (ssize_t)n;
}

static int
close_stream(void *cookie)
{
    free(cookie);
    return 0;
}

static FILE *
open_stream(struct etd_rank *r, enum etd_packet_kind kind)
{
    struct stream *s = malloc(sizeof *s);
    if (!s)
        return NULL;
    *s = (struct stream){r, kind};
    FILE *f = fopencookie(
        s, "w", (cookie_io_functions_t){.write = put_text, .close = close_stream});
    if (!f)
        free(s);
    else
        setvbuf(f, NULL, _IOLBF, BUFSIZ);
    return f;
}

FILE *
etd_rank_out(struct etd_rank *r)
{
    return r->out;
}

FILE *
etd_rank_err(struct etd_rank *r)
{
    return r->err;
}

void
etd_rank_line(struct etd_rank *r, enum et_log_level level, const char *text)
{
    etd_sender_line(r->sender, level, text);
}

/* ---- beginning and end ---- */

int
etd_rank_number(const struct etd_rank *r)
{
    return r->rank;
}

int
etd_rank_world(const struct etd_rank *r)
{
    return r->world;
}

const char *
etd_rank_resumes(const struct etd_rank *r)
{
    return r->resumes[0] ? r->resumes : NULL;
}

et_status
etd_rank_new(struct et_ctx *cx, const struct etd_launch *l, struct etd_board *board,
             int number, int to, int link, const char *resumes, struct etd_rank **out)
{
    void *block;
    *out = NULL;
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct etd_rank *r = block;
    r->cx = cx;
    r->board = board;
    r->local = number;
    r->rank = l->base + number;
    r->world = l->world;
    r->to = to;
    r->link = link;
    r->lock = -1;
    snprintf(r->resumes, sizeof r->resumes, "%s", resumes);
    etd_rank_init_control(r);
    et_status status = etd_sender_start(cx, to, r->rank, &r->sender);
    if (status == ET_OK) {
        r->out = open_stream(r, ETD_PACKET_OUT);
        r->err = open_stream(r, ETD_PACKET_ERR);
        if (!r->out || !r->err)
            status = ET_FAIL(cx, ET_ENOMEM, "out of memory: streams of a rank");
    }
    if (status != ET_OK)
        etd_rank_free(&r);
    *out = r;
    return status;
}

void
etd_rank_free(struct etd_rank **rank)
{
    struct etd_rank *r = *rank;
    *rank = NULL;
    if (!r)
        return;
    if (r->out)
        fclose(r->out);
    if (r->err)
        fclose(r->err);
    etd_sender_stop(&r->sender);
    close(r->to);
    close(r->link);
    if (r->lock >= 0)
        close(r->lock);
    et_free(r->cx, r);
}

/* False: it cannot be said, as memory is out or a text of it is not UTF-8. */
static bool
put_json(struct etd_rank *r, enum etd_packet_kind kind, json_t *json)
{
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    bool whole = text != NULL;
    if (text)
        etd_sender_put(r->sender, kind, text, strlen(text));
    free(text);
    json_decref(json);
    return whole;
}

/* The supervisor's answer, with the run's lock if it is sent along. */
static ssize_t
receive(struct etd_rank *r, char *buf, size_t size)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {.iov_base = buf, .iov_len = size};
    struct msghdr m = {
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = control.room,
        .msg_controllen = sizeof control.room,
    };
    ssize_t n;
    do
        n = recvmsg(r->link, &m, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
    if (c && c->cmsg_type == SCM_RIGHTS && r->lock < 0)
        memcpy(&r->lock, CMSG_DATA(c), sizeof r->lock);
    return n;
}

static et_status
join(struct etd_rank *r, const json_t *answer, struct et_run **out)
{
    const char *directory, *name, *id, *message, *hint = "";
    int status, code;
    json_int_t incarnation;
    if (json_unpack((json_t *)(uintptr_t)answer, "{s:i, s:s, s:s, s:i}", "status",
                    &status, "message", &message, "hint", &hint, "code", &code) == 0) {
        (void)ET_FAIL(r->cx, (et_status)status, "%s", message);
        if (*hint)
            et_hint(r->cx, "%s", hint);
        if (code)
            et_error_set_code(r->cx, code);
        return (et_status)status;
    }
    if (json_unpack((json_t *)(uintptr_t)answer, "{s:s, s:s, s:s, s:I}", "directory",
                    &directory, "name", &name, "id", &id, "incarnation",
                    &incarnation) != 0)
        return ET_FAIL(r->cx, ET_EINTERNAL, "the supervisor's answer is none");
    const struct et_run_place place = {
        .directory = directory,
        .name = name,
        .id = id,
        .incarnation = incarnation,
        .rank = r->rank,
    };
    return et_run_join(r->cx, &place, etd_sender_sink(r->sender), out);
}

et_status
etd_rank_open(struct et_ctx *cx, struct etd_rank *r, const struct etd_rank_open *o,
              struct et_run **out)
{
    char buf[16 << 10];
    *out = NULL;
    if (!put_json(r, ETD_PACKET_OPEN,
                  json_pack("{s:s?, s:s?, s:s?, s:i}", "resumed", o->resumed,
                            "resolved", o->resolved, "name", o->name, "threads",
                            o->threads)))
        return ET_FAIL(cx, ET_EINVAL,
                       "the run cannot be described: no memory, or a name that is not "
                       "UTF-8");
    ssize_t n = receive(r, buf, sizeof buf);
    if (n <= 0)
        return ET_FAIL(cx, ET_EIO, "the supervisor of this run is gone");
    json_t *answer = json_loadb(buf, (size_t)n, 0, NULL);
    et_status status = join(r, answer, out);
    json_decref(answer);
    return status;
}

void
etd_rank_end(struct etd_rank *r, const struct etd_end *end)
{
    fflush(r->out);
    fflush(r->err);
    etd_board_move(r->board, r->local, ETD_PHASE_ENDED);
    (void)put_json(r, ETD_PACKET_END,
                   json_pack("{s:s, s:i, s:b}", "state", end->state, "exit", end->exit,
                             "began", end->began));
}

/* ---- requests ---- */

static struct etd_rank *
rank_of(struct et_control *c)
{
    return (struct etd_rank *)(void *)((char *)c - offsetof(struct etd_rank, control));
}

static bool
next_request(struct et_control *c, int64_t step, struct et_request *out)
{
    struct etd_rank *r = rank_of(c);
    (void)step; /* after which it is asked for: now */
    return etd_board_next(r->board, out);
}

static void
answer_request(struct et_control *c, const struct et_request *q, int64_t step,
               bool applied, const char *answer)
{
    struct etd_rank *r = rank_of(c);
    char head[128];
    char text[ET_REQUEST_ANSWER + sizeof head];
    /* Of one line, so that nothing waits where JSON would need escapes. */
    int n = snprintf(text, sizeof text, "%llu %lld %d %s", (unsigned long long)q->id,
                     (long long)step, applied, answer);
    if (r->rank == 0 && n > 0)
        etd_sender_put(r->sender, ETD_PACKET_ANSWER, text,
                       (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

static void
wait_for_request(struct et_control *c)
{
    const struct timespec pause = {0, PAUSE_MS * 1000000L};
    struct etd_rank *r = rank_of(c);
    double begin = eti_monotonic(r->cx);
    etd_board_move(r->board, r->local, ETD_PHASE_PAUSED);
    nanosleep(&pause, NULL);
    r->held += eti_monotonic(r->cx) - begin;
}

static void
set_level(struct et_control *c, enum et_log_level level)
{
    rank_of(c)->level = (int)level;
}

void
etd_rank_init_control(struct etd_rank *r)
{
    r->level = -1;
    r->control = (struct et_control){
        .next = next_request,
        .done = answer_request,
        .wait = wait_for_request,
        .level = set_level,
    };
}

struct et_control *
etd_rank_control(struct etd_rank *r)
{
    return &r->control;
}

int
etd_rank_level(const struct etd_rank *r)
{
    return r->level;
}

et_status
etd_rank_replay(struct et_ctx *cx, const char *directory, struct et_request **out,
                int *n)
{
    char path[4096];
    struct et_events *log;
    struct et_record record;
    struct et_request q;
    void *list = NULL;
    int room = 0;
    bool got = true;
    *out = NULL;
    *n = 0;
    snprintf(path, sizeof path, "%s/events.log", directory);
    et_status status = et_events_open(cx, path, &log);
    if (status == ET_OK)
        status = et_events_only(log, UINT64_C(1) << ET_RECORD_COMMAND);
    while (status == ET_OK && got) {
        status = et_events_next(log, &record, &got);
        if (status != ET_OK || !got || !record.text ||
            !et_request_replay(record.text, record.ba, &q))
            continue;
        if (*n == room) {
            void *more;
            room = room ? 2 * room : 16;
            status = et_alloc(cx, (size_t)room * sizeof q, &more);
            if (status != ET_OK)
                break;
            if (*n)
                memcpy(more, list, (size_t)*n * sizeof q);
            et_free(cx, list);
            list = more;
        }
        *n = et_request_add(list, *n, &q);
    }
    et_events_close(&log);
    *out = list;
    if (status == ET_ENOMEM)
        return status;
    et_error_clear(cx); /* a log that is damaged: what could be read of it counts */
    return ET_OK;
}
