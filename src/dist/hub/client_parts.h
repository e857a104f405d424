/* SPDX-License-Identifier: Apache-2.0 */
/* client_parts.h: what the files of the client share.
 *
 * client.c connects, keeps time and sends; client_frames.c is what arrives,
 * client_ask.c what is asked: commands and history. */
#ifndef ETD_CLIENT_PARTS_H
#define ETD_CLIENT_PARTS_H

#include "core/base/seams.h"
#include "dist/hub/client.h"

enum {
    ETD_ANSWERS = 64,  /* that wait to be fetched; the oldest go */
    ETD_TARGET = 1024, /* bytes of a target's name */
};
#define ETD_VERIFY     10.0 /* seconds between digests */
#define ETD_NACK_AGAIN 1.0  /* until a gap is asked for once more */

/* A snapshot on its way: facts, then the model. */
struct etd_incoming {
    char *bytes;
    size_t got, facts, all;
    int64_t s;
    unsigned char digest[ETD_DIGEST];
};

struct etd_client {
    struct et_ctx *cx;
    struct etd_channel_options to;
    char target[ETD_TARGET], run_name[ET_RUN_NAME], as[ETD_WORD], server[ETD_KEY_TEXT];
    struct etd_keys keys;
    bool has_name, control, once;
    int credit;

    struct etd_channel *channel;
    struct etd_client_status s;
    double heard, said, began, retry_at, verify_at, nack_at;
    double stepped; /* when it was looked at last; 0: it has not been */
    int attempts;
    bool wants_digest;
    bool touched; /* there may be more to do at once */

    unsigned char wanted[ETD_RUN_ID], run[ETD_RUN_ID];
    int64_t incarnation;
    bool knows_run; /* which one it is */
    bool has_model; /* of that run, up to model->seq */
    struct etd_model *model;
    struct etd_join join;
    struct etd_incoming snap;
    char *facts;
    size_t n_facts, most_facts; /* bytes they have, and may have after FACTS */
    int owed;                   /* messages since credit was given the last time */
    void (*fn)(void *data, const struct et_record *r);
    void *data;

    struct etd_answer answer[ETD_ANSWERS];
    int first_answer, n_answers;
    struct et_series_point point[ETD_POINTS];
    struct etd_points points;
    bool has_points;
    char *piece_bytes; /* [ETD_PIECE_BYTES], once there was one */
    struct etd_piece piece;
    bool has_piece;
};

static inline double
etd_client_now(const struct etd_client *c)
{
    return eti_monotonic(c->cx);
}

/* client.c */
struct etd_head etd_client_head(const struct etd_client *c, enum etd_kind kind);
/* False: not now, or N is 0. */
bool etd_client_send(struct etd_client *c, const void *bytes, size_t n);
/* Also what gives credit, and asks for a digest. */
void etd_client_ping(struct etd_client *c);
void etd_client_nack(struct etd_client *c, int64_t from, int64_t to);
void etd_client_drop_snapshot(struct etd_client *c);
void etd_client_say(struct etd_client *c, const char *code, const char *text);
/* For good, and for a while. */
void etd_client_hang_up(struct etd_client *c, enum etd_link link, const char *code,
                        const char *text);
void etd_client_disconnect(struct etd_client *c, const char *code, const char *text);

/* client_frames.c: ENOMEM alone. */
ET_NODISCARD et_status etd_client_message(struct etd_client *c, const char *bytes,
                                          size_t n);

#endif
