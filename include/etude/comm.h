/* SPDX-License-Identifier: Apache-2.0 */
/* comm.h: what the processes of a run, its ranks, do together. Who trains with one
 * process needs nothing of it.
 *
 * A rank is one process with one device; a run has world of them, each with a copy of
 * the model. The library declares here what it needs of them, and whoever starts a rank
 * fills it: the program, by Gloo, for ranks of one machine. A communicator of NULL is a
 * run of one rank: every collective is done already, and copies nothing it need not
 * copy.
 *
 * Collectives are called by all ranks in the same order with the same sizes; they come
 * back when this rank's part is done. Sums are added in an order that depends on world
 * and size alone, so they are the same bits on all ranks and in every run.
 *
 * The first failure poisons the communicator: that call and all later ones, started
 * ones among them, give EPEER, at once. Nothing is tried again; the run ends with what
 * has been saved.
 *
 * Threads: one thread calls what takes a context. et_comm_get_look and et_comm_watch
 * are for any thread. */
#ifndef ETUDE_COMM_H
#define ETUDE_COMM_H

#include "etude/ctx.h"
#include "etude/types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct et_comm;

enum et_comm_op { ET_COMM_SUM = 0, ET_COMM_MAX = 1, ET_COMM_MIN = 2 };

/* code, value, text. Reduce-scatter is an all-reduce and a slice of it. */
#define ET_COMM_KIND_MAP(X)                                                            \
    X(ALL_REDUCE, 0, "all_reduce")                                                     \
    X(ALL_GATHER, 1, "all_gather")                                                     \
    X(BROADCAST, 2, "broadcast")                                                       \
    X(BARRIER, 3, "barrier")
enum et_comm_kind {
#define ET_COMM_KIND_ENUM(code, number, text) ET_COMM_##code = number,
    ET_COMM_KIND_MAP(ET_COMM_KIND_ENUM)
#undef ET_COMM_KIND_ENUM
        ET_COMM_KIND_COUNT
};
const char *et_comm_kind_name(enum et_comm_kind kind);

/* Which of the run's collectives one is: the same on all ranks that are to meet in it.
 * Kinds and sizes do not tell: a rank that has left one out could meet the others in
 * the next of the same size, and numbers would be added that do not belong together. */
struct et_comm_mark {
    int64_t step; /* finished batches, or whatever the caller counts */
    int which;    /* of an evaluation of a graph: from 1, in the order in which they are
                     begun; else the caller's own */
    uint32_t set; /* of an evaluation: a digest of the sizes of all its collectives */
};

/* ---- for those who fill it ---- */

/* One collective of N elements. */
struct et_comm_call {
    enum et_comm_kind kind;
    enum et_comm_op op;  /* all_reduce */
    enum et_dtype dtype; /* F32, F64, I64 or U8; all but all_reduce: U8, N bytes */
    const void *in;      /* [N]; may be OUT; broadcast: OUT is both */
    void *out;           /* [N]; all_gather: [world N] */
    int64_t n;           /* > 0, but for barrier */
    int root;            /* broadcast: whose */
    struct et_comm_mark mark;
};

struct et_comm_class {
    const char *name; /* "gloo" */
    /* Does CALL, and waits for it. From one thread at a time. EPEER with a sentence in
     * WHY that names the rank that is gone or late, where that can be known. */
    et_status (*run)(void *self, const struct et_comm_call *call, char *why,
                     size_t why_size);
    /* Ends it and frees SELF. FAILED: a collective has, and nobody is waited for. */
    void (*close)(void *self, bool failed);
};

/* SELF is the communicator's from then on, and closed with it; on failure it stays the
 * caller's. WORLD is 1 or more, RANK below it. ENOMEM. */
ET_NODISCARD et_status et_comm_new(struct et_ctx *cx, const struct et_comm_class *type,
                                   void *self, int rank, int world,
                                   struct et_comm **out);
/* Waits for what has been started. NULL within is allowed. */
void et_comm_close(struct et_comm **c);

/* ---- collectives: EPEER, and what each says ---- */

int et_comm_rank(const struct et_comm *c);  /* 0 without */
int et_comm_world(const struct et_comm *c); /* 1 without */

/* DATA [N] becomes the sum, greatest or least of all ranks', element by element. U8: 0
 * or 1 in each, so that greatest is "any" and least is "all". EDTYPE. */
ET_NODISCARD et_status et_comm_all_reduce(struct et_ctx *cx, struct et_comm *c,
                                          void *data, int64_t n, enum et_dtype dtype,
                                          enum et_comm_op op);
/* The slice [rank, rank + 1) n / world of the same into OUT; IN stays. ENOMEM. */
ET_NODISCARD et_status et_comm_reduce_scatter(struct et_ctx *cx, struct et_comm *c,
                                              const void *in, int64_t n,
                                              enum et_dtype dtype, enum et_comm_op op,
                                              void *out);
/* BYTES of each rank's IN into OUT [world BYTES], in the order of the ranks. */
ET_NODISCARD et_status et_comm_all_gather(struct et_ctx *cx, struct et_comm *c,
                                          const void *in, size_t bytes, void *out);
/* DATA of rank ROOT to all. */
ET_NODISCARD et_status et_comm_broadcast(struct et_ctx *cx, struct et_comm *c,
                                         void *data, size_t bytes, int root);
/* Of those that follow, of et_comm_start the step alone; STEP -1: as it was. Ranks with
 * other marks wait for each other, until the time is over and they are named. C may be
 * NULL. */
void et_comm_set_mark(struct et_comm *c, int64_t step, int which, uint32_t set);
/* All ranks have come here. */
ET_NODISCARD et_status et_comm_barrier(struct et_ctx *cx, struct et_comm *c);

/* ---- the same beside other work ---- */

/* A sum of floats that another thread sees to: OUT = sum over ranks of weight IN. */
struct et_comm_request {
    const void *in;      /* [N], unchanged until it has been waited for */
    void *out;           /* [N], as above; IN itself, or apart from it */
    int64_t n;           /* 0: nothing to do */
    enum et_dtype dtype; /* F32 or F64 */
    const float *weight; /* this rank's, read when it runs; where it is 0, IN is not
                            read at all; NULL: 1 */
    struct et_comm_mark mark; /* but for its step */

    struct et_comm_request *next; /* et_comm's: until it has been waited for */
    et_status status;
    bool done;
};
/* Begins R, the caller's memory, after all that was started before. Every rank starts
 * its requests in the same order. Without a communicator it is done at once. EDTYPE. */
ET_NODISCARD et_status et_comm_start(struct et_ctx *cx, struct et_comm *c,
                                     struct et_comm_request *r);
/* Waits for R, which was started, and for all before it. */
ET_NODISCARD et_status et_comm_wait(struct et_ctx *cx, struct et_comm *c,
                                    struct et_comm_request *r);

/* ---- watching ---- */

/* What a communicator is at: for hang reports, and for telling a slow rank from one
 * that waits for it. */
struct et_comm_look {
    uint64_t seq; /* of the collective under way, or of the last one; from 1 */
    bool busy;    /* it is under way */
    enum et_comm_kind kind;
    enum et_dtype dtype;
    int64_t n;
    struct et_comm_mark mark;
    int64_t since_ns; /* CLOCK_MONOTONIC when it began */
    int64_t wait_ns;  /* in all: that the calling thread stood in collectives; the rest
                         of  a step is the rank's own time */
    bool failed;
    char why[512]; /* failed: the first failure's sentence */
};
/* FN is called when a collective begins and when it has ended, by the thread that does
 * it; it must not wait, and use no collective. NULL: nobody is. C may be NULL. */
typedef void et_comm_watch_fn(void *data, const struct et_comm_look *look);
void et_comm_watch(struct et_comm *c, et_comm_watch_fn *fn, void *data);
/* From any thread. Without a communicator all is 0. */
void et_comm_get_look(struct et_comm *c, struct et_comm_look *out);

#ifdef __cplusplus
}
#endif
#endif
