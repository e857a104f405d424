/* SPDX-License-Identifier: Apache-2.0 */
/* supervisor_front.c: what the supervisor sends to the process that started the run,
 * while that is there. It never waits for that process: messages that would block are
 * dropped, except how the run ended. */
#include "config.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "dist/run/supervisor.h"
#include "etude/diagnostic.h"

enum { FRONT_BYTES = 8 << 20 };

void
etd_sup_flush_front(struct etd_supervisor *s)
{
    while (s->front >= 0 && s->to_front.n > 0) {
        ssize_t n =
            send(s->front, s->to_front.at, s->to_front.n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (n <= 0) {
            close(s->front);
            s->front = -1;
            return;
        }
        etd_bytes_drop(&s->to_front, (size_t)n);
    }
    if (s->front < 0)
        s->to_front.n = 0;
}

void
etd_sup_tell(struct etd_supervisor *s, enum etd_packet_kind kind, const void *body,
             size_t n)
{
    bool is_state =
        kind == ETD_PACKET_STATE || kind == ETD_PACKET_OUT || kind == ETD_PACKET_ERR;
    if (s->front < 0)
        return;
    if (!is_state && s->to_front.n + n > FRONT_BYTES) {
        s->front_lost++;
        return;
    }
    etd_packet_add(&s->to_front, kind, body, n);
    etd_sup_flush_front(s);
}

void
etd_sup_tell_text(struct etd_supervisor *s, enum etd_packet_kind kind, int tag,
                  const char *text, size_t n)
{
    struct etd_bytes b = {0};
    const int64_t seq = s->run ? et_run_seq(s->run) : 0;
    const unsigned char byte = (unsigned char)tag;
    if (s->front < 0)
        return;
    etd_bytes_add(&b, &seq, sizeof seq);
    etd_bytes_add(&b, &byte, 1);
    etd_bytes_add(&b, text, n);
    if (!b.failed)
        etd_sup_tell(s, kind, b.at, b.n);
    etd_bytes_free(&b);
}

static void
tell_json(struct etd_supervisor *s, json_t *json)
{
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    if (text)
        etd_sup_tell(s, ETD_PACKET_STATE, text, strlen(text));
    free(text);
    json_decref(json);
}

void
etd_sup_tell_opened(struct etd_supervisor *s)
{
    tell_json(s, json_pack("{s:s, s:s, s:I}", "directory", et_run_directory(s->run),
                           "name", et_run_name(s->run), "seq",
                           (json_int_t)et_run_seq(s->run)));
}

void
etd_sup_tell_end(struct etd_supervisor *s, const struct etd_end *end)
{
    char why[sizeof end->why], hint[sizeof end->hint]; /* they may name any file */
    et_visible(why, sizeof why, end->why, strlen(end->why));
    et_visible(hint, sizeof hint, end->hint, strlen(end->hint));
    tell_json(s, json_pack("{s:s, s:i, s:i, s:b, s:b, s:s, s:s}", "state", end->state,
                           "exit", end->exit, "rank", end->rank, "began", end->began,
                           "said", end->said, "why", why, "hint", hint));
}

void
etd_sup_say(struct etd_supervisor *s, enum et_log_level level, const char *fmt, ...)
{
    char text[ETD_WHY];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (s->run)
        et_run_note(s->run, level, text);
    s->dirty = true;
    etd_sup_tell_text(s, ETD_PACKET_LINE, level, text, strlen(text));
}
