/* SPDX-License-Identifier: Apache-2.0 */
/* rendezvous.h: where ranks of a launcher that gives them no port of their own meet.
 *
 * mpirun and srun give none, and torchrun's MASTER_PORT is its agent's. Rank 0 listens
 * at a port that is free, and leaves it, with a secret that it draws, in a file of the
 * user's own folder (endpoint.h), under what the launcher calls the job. The file is
 * locked for as long as rank 0 waits for the others: one that is left behind counts for
 * nothing. */
#ifndef ETD_RENDEZVOUS_H
#define ETD_RENDEZVOUS_H

#include "dist/comm/store.h"
#include "dist/wire/endpoint.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { ETD_RENDEZVOUS_JOB = 256 }; /* bytes of a job's name, zero included */

struct etd_rendezvous {
    int port;
    int listener; /* rank 0: listens there; -1. Whoever takes it sets it to -1 */
    uint8_t secret[ETD_STORE_SECRET];
    int lock;                   /* rank 0: the file; -1 */
    char path[ETD_SOCKET_PATH]; /* of it */
};
/* Rank 0 of JOB: listens at HOST and says where; zeros for SECRET: one is drawn.
 * EIO. */
ET_NODISCARD et_status etd_rendezvous_begin(struct et_ctx *cx, const char *job,
                                            const char *host, const uint8_t *secret,
                                            struct etd_rendezvous *out);
/* Another one: where rank 0 is, as soon as it has said so. EPEER: it did not within
 * TIMEOUT_MS. */
ET_NODISCARD et_status etd_rendezvous_find(struct et_ctx *cx, const char *job,
                                           int timeout_ms, struct etd_rendezvous *out);
/* Call it when all have come, or will not: removes the file and closes the listener. */
void etd_rendezvous_end(struct etd_rendezvous *m);

#ifdef __cplusplus
}
#endif
#endif
