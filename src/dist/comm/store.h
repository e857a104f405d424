/* SPDX-License-Identifier: Apache-2.0 */
/* store.h: where the ranks of a run find each other: a table of names in rank 0.
 *
 * Rank 0 serves it on MASTER_ADDR and MASTER_PORT, in a thread; every rank, rank 0 too,
 * has a connection that lasts as long as the rank. What it is for:
 *
 *   set, get    rendezvous: each rank's addresses, waited for until they are there
 *   report      after a collective failed: who is gone, and who never came to it
 *   watch       tells of a rank that is lost, whatever the collectives notice
 *
 * A connection counts once it has said the run's secret, its rank and how many ranks
 * there are; anything else is cut off, and costs the run nothing. Messages are a struct
 * etd_store_head, a key and a value; ranks run the same program, so bytes need no
 * order.
 *
 * No function has a context: they are called from whatever thread does collectives, and
 * say what went wrong in WHY. */
#ifndef ETD_STORE_H
#define ETD_STORE_H

#include <stdint.h>

#include "etude/ctx.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    ETD_STORE_KEY = 256,       /* bytes, at most */
    ETD_STORE_VALUE = 1 << 16, /* likewise */
    ETD_STORE_SECRET = 32,     /* bytes */
    ETD_STORE_RANKS = 1024,
};

struct etd_store_config {
    const char *host; /* a name or number of an address; rank 0 binds it */
    int port;
    int listener; /* rank 0: a socket that listens there already, its own; or -1 */
    int rank, world;
    int timeout_ms; /* for each call; rank 0 may start as much later */
    uint8_t secret[ETD_STORE_SECRET]; /* the same for all ranks; zeros: none */
};

struct etd_store;

/* A socket that listens at HOST, at a port that was free: *PORT. It does not block. For
 * rank 0, from whoever starts it: a port that is chosen first and bound later may be
 * somebody else's by then. -1: none is free. */
int etd_store_listen(const char *host, int *port);

/* Serves (rank 0) and connects. ENOTSUP: rank 0 cannot have the address or port; EPEER:
 * nobody answered in time, or this rank was refused. */
ET_NODISCARD et_status etd_store_open(const struct etd_store_config *config,
                                      struct etd_store **out, char *why, size_t size);
/* All ranks are waited for at most LINGER_MS: until then rank 0 answers. 0: something
 * has failed, and rank 0 answers until all have said so. NULL within is allowed. */
void etd_store_close(struct etd_store **store, int linger_ms);

/* KEY is VALUE, of N bytes. EPEER: rank 0 is gone. */
ET_NODISCARD et_status etd_store_set(struct etd_store *s, const char *key,
                                     const void *value, size_t n, char *why,
                                     size_t size);
/* What KEY is, as soon as somebody has set it: *N bytes at VALUE, which has
 * ETD_STORE_VALUE. EPEER: in the time there is, nobody did. */
ET_NODISCARD et_status etd_store_get(struct etd_store *s, const char *key, void *value,
                                     size_t *n, char *why, size_t size);

/* What became of a rank, as far as rank 0 knows. */
enum etd_fate {
    ETD_FATE_SILENT,   /* its process is there, and did not report */
    ETD_FATE_REPORTED, /* it found a collective failed itself; it may have ended since
                        */
    ETD_FATE_GONE,     /* its connection broke */
    ETD_FATE_LEFT,     /* it said that it ends */
    ETD_FATE_ABSENT,   /* it has not come yet */
};

struct etd_report {
    int32_t fate; /* enum etd_fate */
    uint32_t pad_;
    uint64_t seq; /* reported: the collective that failed */
};

/* Collective SEQ of this rank failed: waits, three seconds at most, until the fate of
 * every rank is known. OUT has an entry for each. Where rank 0 does not answer it is
 * gone, and nothing is known of the others. */
void etd_store_report(struct etd_store *s, uint64_t seq, struct etd_report *out);

/* Calls LOST with DATA, once and from a thread of the store, as soon as the connection
 * of a rank has broken, rank 0's too; not while or after S is closed. EPEER. */
ET_NODISCARD et_status etd_store_watch(struct etd_store *s, void (*lost)(void *data),
                                       void *data, char *why, size_t size);

#ifdef __cplusplus
}
#endif
#endif
