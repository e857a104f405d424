/* SPDX-License-Identifier: Apache-2.0 */
/* rank_env.h: which rank this process is, as the environment says, and its
 * communicator.
 *
 *     RANK, WORLD_SIZE              of all ranks: 0 .. WORLD_SIZE - 1
 *     LOCAL_RANK, LOCAL_WORLD_SIZE  of those on this machine
 *     MASTER_ADDR, MASTER_PORT      where rank 0 answers; 127.0.0.1. Where torchrun's
 *                                   agent has that port, rank 0 takes another and
 *                                   leaves word of it: rendezvous.h
 *
 *     ETUDE_RANK_SECRET   64 hexadecimal digits, the same for all ranks: others are
 *                         refused (optional)
 *     ETUDE_RANK_TIMEOUT  seconds that a collective may take (optional; 300)
 *     ETUDE_RANK_LISTENER the descriptor of a socket that rank 0 inherits, and that
 *                         listens at MASTER_PORT already (optional)
 *
 * The names are torchrun's. Open MPI's mpirun (OMPI_COMM_WORLD_RANK ...) and a step of
 * srun of several tasks (SLURM_PROCID ...) say the same in words of theirs, and give no
 * port. A process with a WORLD_SIZE above 1, or with RANK and LOCAL_RANK, trains as one
 * rank and starts no other ranks. */
#ifndef ETD_RANK_ENV_H
#define ETD_RANK_ENV_H

#include "dist/comm/rendezvous.h"
#include "dist/comm/store.h"
#include "etude/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

struct etd_rank_env {
    bool is_rank;                 /* else all below is that of a process alone */
    const char *launcher;         /* "torchrun": whose words these are; NULL */
    char job[ETD_RENDEZVOUS_JOB]; /* the ranks meet by a file of it; "": at PORT */
    int rank, world, local_rank, local_world;
    char host[256]; /* of rank 0 */
    int port;
    int listener; /* of rank 0; -1: it makes its own */
    uint8_t secret[ETD_STORE_SECRET];
    int timeout_ms;
};

/* What has started this process as one rank of a run: "torchrun" (or anything that sets
 * its variables), "mpirun" or "srun"; NULL: nothing has. */
const char *etd_rank_env_launcher(void);
/* What ranks that are all on this machine call HOST: a loopback address as it is, and
 * 127.0.0.1 for this machine's name or the address of an interface; NULL: HOST is
 * another machine. */
const char *etd_rank_env_on_loopback(const char *host);

/* Reads the environment. EINVAL for what does not fit together, naming the variable;
 * ENOTSUP for ranks on several machines. */
ET_NODISCARD et_status etd_rank_env_read(struct et_ctx *cx, struct etd_rank_env *out);

/* Can this program train with more than one? Not without Gloo. */
bool etd_comm_possible(void);
/* The communicator of the rank of ENV: finds the others, and waits for them as long
 * as a collective may take. NULL, and ET_OK, for one rank. ENOTSUP: this program was
 * built without Gloo, or the address cannot be had; EPEER: not all came. */
ET_NODISCARD et_status etd_comm_open(struct et_ctx *cx, const struct etd_rank_env *env,
                                     struct et_comm **out);

/* comm_gloo.cc: Gloo's context on STORE, which is its own from then on; on failure it
 * stays the caller's. */
extern const struct et_comm_class etd_gloo;
ET_NODISCARD et_status etd_gloo_new(const struct etd_rank_env *env,
                                    struct etd_store *store, void **out, char *why,
                                    size_t size);

#ifdef __cplusplus
}
#endif
#endif
