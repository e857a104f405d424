/* SPDX-License-Identifier: Apache-2.0 */
/* dist.h: a program of your own as one of several ranks.
 *
 *     struct et_dist *d;
 *     ET_TRY(et_dist_init(cx, 0, &d));   // which rank is this? finds the others
 *     ...                                // et_dist_comm(d): for graphs and trainers
 *     ET_TRY(et_dist_barrier(cx, d));
 *     et_dist_end(&d);
 *
 *     etude launch -n 2 ./program        // or torchrun, mpirun, srun
 *
 * The environment says which rank a process is: RANK, WORLD_SIZE, LOCAL_RANK,
 * LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as torchrun and `etude launch` set
 * them, or the variables of Open MPI's mpirun and of srun. A process without them is
 * the only rank, needs no set-up, and every collective is done at once.
 *
 * All ranks call the same collectives in the same order, with the same sizes. A rank
 * that calls another one, or is late, or has ended, is an error in all the others:
 * EPEER with a sentence that names it, at once where the rank's process is gone, else
 * when the time is over. After that every collective fails; end and start again.
 *
 * Memory is the host's: what a tensor holds goes through et_tensor_read and
 * et_tensor_write. Within a step use et_all_reduce (op.h), which runs beside other
 * work. examples/dist.c trains so. etude-dist(3) has this text.
 *
 * Source: MosaicML Composer, composer/utils/dist.py. Differs: an object in place of a
 * global; objects are bytes. */
#ifndef ETUDE_DIST_H
#define ETUDE_DIST_H

#include "etude/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

struct et_dist;

/* Reads the environment, and waits until all ranks are there. TIMEOUT_S: the seconds
 * that this and each collective may take; 0: ETUDE_RANK_TIMEOUT, else 300. EINVAL: the
 * variables do not fit together; ENOTSUP: ranks of several machines, or a build without
 * Gloo; EPEER: not all came. */
ET_NODISCARD et_status et_dist_init(struct et_ctx *cx, int timeout_s,
                                    struct et_dist **out);
/* Leaves the others, who may go on ending. NULL within is allowed. */
void et_dist_end(struct et_dist **d);

/* Which rank this is, of how many: of all, and of those on this machine. Without D: 0,
 * and 1. */
int et_dist_global_rank(const struct et_dist *d);
int et_dist_local_rank(const struct et_dist *d);
int et_dist_node_rank(const struct et_dist *d);
int et_dist_world_size(const struct et_dist *d);
int et_dist_local_world_size(const struct et_dist *d);
int et_dist_node_count(const struct et_dist *d);
/* For et_graph_set_comm and struct et_trainer_config; borrowed. NULL: one rank. */
struct et_comm *et_dist_comm(const struct et_dist *d);

/* All ranks have come here. */
ET_NODISCARD et_status et_dist_barrier(struct et_ctx *cx, struct et_dist *d);

/* Of numbers, element by element, in the order of the ranks. BAND, BOR and BXOR are for
 * I32, I64 and U8, the others for F32, F64, I32, I64 and U8. */
enum et_dist_op {
    ET_DIST_SUM = 0,
    ET_DIST_PRODUCT = 1,
    ET_DIST_MIN = 2,
    ET_DIST_MAX = 3,
    ET_DIST_BAND = 4,
    ET_DIST_BOR = 5,
    ET_DIST_BXOR = 6
};
/* DATA, N elements of DTYPE, becomes the result, the same bits on all ranks. EDTYPE. */
ET_NODISCARD et_status et_dist_all_reduce(struct et_ctx *cx, struct et_dist *d,
                                          void *data, int64_t n, enum et_dtype dtype,
                                          enum et_dist_op op);
/* The same on rank DST alone; on the others DATA stays. */
ET_NODISCARD et_status et_dist_reduce(struct et_ctx *cx, struct et_dist *d, void *data,
                                      int64_t n, enum et_dtype dtype,
                                      enum et_dist_op op, int dst);
/* IN, N elements of DTYPE, of each rank into OUT [world N], in the order of the
 * ranks. */
ET_NODISCARD et_status et_dist_all_gather(struct et_ctx *cx, struct et_dist *d,
                                          const void *in, int64_t n,
                                          enum et_dtype dtype, void *out);
/* The same where each rank has an N of its own, as with predictions: *OUT is [world,
 * *MOST], *MOST the largest N, and behind what a rank has lies PAD, one element of
 * DTYPE (NULL: zeros). et_free frees *OUT, which is NULL where *MOST is 0. */
ET_NODISCARD et_status et_dist_all_gather_padded(struct et_ctx *cx, struct et_dist *d,
                                                 const void *in, int64_t n,
                                                 enum et_dtype dtype, const void *pad,
                                                 int64_t *most, void **out);
/* DATA, N elements of DTYPE, of rank SRC to all. */
ET_NODISCARD et_status et_dist_broadcast(struct et_ctx *cx, struct et_dist *d,
                                         void *data, int64_t n, enum et_dtype dtype,
                                         int src);

/* Bytes, of which each rank may have another number; 0 is one. */
struct et_dist_object {
    const void *data; /* aligned as et_alloc's memory is */
    size_t bytes;
};
/* The objects of all ranks, in their order: *OUT [world], which et_free frees with
 * all that it points to. */
ET_NODISCARD et_status et_dist_all_gather_object(struct et_ctx *cx, struct et_dist *d,
                                                 const void *data, size_t bytes,
                                                 struct et_dist_object **out);
/* The same on rank DST alone; on the others *OUT is NULL. */
ET_NODISCARD et_status et_dist_gather_object(struct et_ctx *cx, struct et_dist *d,
                                             const void *data, size_t bytes, int dst,
                                             struct et_dist_object **out);
/* *DATA, *BYTES long, of rank SRC, where it stays as it is; the others get a copy,
 * which et_free frees, whatever *DATA was. */
ET_NODISCARD et_status et_dist_broadcast_object(struct et_ctx *cx, struct et_dist *d,
                                                void **data, size_t *bytes, int src);

/* FN on the first rank of each machine, then on the others: for what one makes and all
 * read, as a file that is fetched. Where a first one fails, it returns FN's status, and
 * FN is not called on the others of all machines, which get EPEER. */
typedef et_status et_dist_fn(void *data);
ET_NODISCARD et_status et_dist_local_zero_first(struct et_ctx *cx, struct et_dist *d,
                                                et_dist_fn *fn, void *data);

#ifdef __cplusplus
}
#endif
#endif
