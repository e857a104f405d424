/* ranks.h: what the ranks of a run do together in a step, and between steps (ranks.c,
 * ranks_sync.c). Of a run of one rank COMM is NULL, and nothing here does anything. */
#ifndef ETI_TRAINER_RANKS_H
#define ETI_TRAINER_RANKS_H

#include "etude/comm.h"
#include "etude/control.h"
#include "etude/metric.h"
#include "etude/trainer.h"

/* What ranks tell each other in every step, f32 each, added up: first what the host of
 * each says, then what its part of the batch came to. Its size depends on the model and
 * the metrics alone, so that a rank that is short of memory can take part without
 * having built anything. */
enum {
    ETI_SAID_WEIGHT,  /* rows of its batch / rows of a full one; 0: spare rows */
    ETI_SAID_FAILED,  /* 1: it has no gradient for this batch, for want of memory */
    ETI_SAID_STOP,    /* 1: somebody asked it to stop */
    ETI_SAID_SAVE,    /* 1: ... to save; rank 0: or it is time */
    ETI_SAID_REQUEST, /* rank 0: 1: there is a request (control.h) */
    ETI_SAID_SECONDS, /* rank 0: since the last batch */
    ETI_SAID_HOST,    /* so many are the host's */
    ETI_SAID_OVERFLOW =
        ETI_SAID_HOST, /* 1: an earlier pass's gradient was not finite */
    ETI_SAID_TOTAL,    /* weight times loss */
    ETI_SAID_PARTS, /* the same of its parts, ETI_MAX_LOSS_PARTS of them; then metrics
                     */
};

/* 4 MB: below it a sum takes as long as its latency (ENGINE.md section 4), and a model
 * has its first bucket when a part of the backward pass is still to come. */
enum { ETI_BUCKET = 1 << 20, ETI_MAX_BUCKETS = 256 };

struct eti_bucket {
    int first, n;       /* parameters */
    int64_t begin, end; /* of the flat array */
};

struct eti_ranks {
    struct et_comm *comm;       /* borrowed */
    struct et_tensor *own;      /* f32 [ETI_SAID_HOST]: what the host says */
    struct et_tensor *weight;   /* its first number */
    struct et_tensor *together; /* f32 [n_said]: of all ranks, of the last step */
    int64_t n_said;
    struct eti_bucket bucket[ETI_MAX_BUCKETS];
    int n_buckets;
    float *nothing;    /* host, as long as the longest bucket, and n_said */
    bool spare;        /* the batch under way is another rank's */
    bool stop, save;   /* agreed on in the last step */
    bool asks_to_stop; /* this rank has a reason that the others do not know */
    bool has_request,
        requested; /* rank 0: REQUEST is to be told; agreed: there is one */
    struct et_request request;
    int64_t *unreadable; /* rank 0, while saving: [world][most], each with its number */
    int64_t most;
    uint64_t loaded; /* of the checkpoint that this rank begins with; 0: none */
    double seconds;  /* since the last batch, at the last look */
    float took;      /* the last batch, for rank 0 */
};

/* In setup: leaves; after parameters have been bound: buckets. */
ET_NODISCARD et_status eti_ranks_init(struct et_trainer *t);
ET_NODISCARD et_status eti_ranks_bind(struct et_trainer *t);
void eti_ranks_release(struct et_trainer *t);

/* ---- in a step ---- */

/* state->grad, this rank's, becomes the mean over the batch of all; what ranks tell
 * each other goes with it. ALONE: it is still made of t->grads. Not for a gradient that
 * is to stay the rank's own (state->keep_local). */
ET_NODISCARD et_status eti_ranks_reduce(struct et_trainer *t, int pass, bool alone);
/* The batch's loss and its part I so far: of all ranks where they have been reduced. */
struct et_tensor *eti_ranks_total(struct et_trainer *t);
struct et_tensor *eti_ranks_part(struct et_trainer *t, int i);
/* The totals of train metric I. */
void eti_ranks_metric_totals(struct et_trainer *t, int i, struct et_tensor **sum,
                             struct et_tensor **carry);
/* Has an earlier pass of the step overflowed, on any rank? */
struct et_tensor *eti_ranks_overflow(struct et_trainer *t);
/* SKIP, and where a rank has no gradient. */
struct et_tensor *eti_ranks_skip(struct et_trainer *t, struct et_tensor *skip);
/* Where a rank has none LEAF stays what it was. */
void eti_ranks_guard(struct et_trainer *t, struct et_tensor *leaf);
/* After the evaluation: what was agreed on. *AGAIN: a rank had no gradient. */
ET_NODISCARD et_status eti_ranks_hear(struct et_trainer *t, bool *again);
/* This rank had no memory for the batch: takes part, so that the others learn of it. */
ET_NODISCARD et_status eti_ranks_stand_in(struct et_trainer *t);

/* ---- between steps ---- */

/* Begins with the parameters and buffers of rank 0, and with the same settings. */
ET_NODISCARD et_status eti_ranks_begin(struct et_trainer *t);
/* Rank 0 has loaded the checkpoint NAME, or failed with STATUS: the others LOAD the
 * same. All ranks fail, or none does. NAME is ETI_STEP_NAME bytes. */
typedef et_status eti_load_named_fn(struct et_trainer *t, const char *name);
ET_NODISCARD et_status eti_ranks_load(struct et_trainer *t, et_status status,
                                      char *name, eti_load_named_fn *load);
/* Rank 0 has gone back to *STEP; -1: it could not. So do the others; *STEP is -1 on all
 * ranks where any could not, with WHY. */
ET_NODISCARD et_status eti_ranks_go_back(struct et_trainer *t, int64_t *step,
                                         eti_load_named_fn *load, char *why,
                                         size_t size);
/* What only a rank knows (samples that it could not read): rank 0 saves it for all,
 * each loads its own. All ranks at once to save. */
ET_NODISCARD et_status eti_ranks_archive(struct et_trainer *t, struct et_archive *a);
/* In a save: what eti_ranks_archive will write. */
ET_NODISCARD et_status eti_ranks_gather(struct et_trainer *t);
/* Buffers (running statistics) of rank 0, before an evaluation. */
ET_NODISCARD et_status eti_ranks_share_buffers(struct et_trainer *t);
/* Where no step carries it: has any rank been asked to stop? */
ET_NODISCARD et_status eti_ranks_listen(struct et_trainer *t);
/* M's value over all ranks. */
ET_NODISCARD et_status eti_ranks_metric(struct et_trainer *t, const struct et_metric *m,
                                        double *out);
/* Are the parameters those of rank 0? Now and then. EPEER names the ranks where not. */
ET_NODISCARD et_status eti_ranks_compare(struct et_trainer *t);
/* STATUS of all ranks, each with its own: EPEER where another could not have NAME. */
ET_NODISCARD et_status eti_ranks_agree(struct et_trainer *t, et_status status,
                                       const char *name);
/* Rank 0's next request after STEP batches, *GOT on all ranks alike. */
ET_NODISCARD et_status eti_ranks_next_request(struct et_trainer *t, int64_t step,
                                              struct et_request *r, bool *got);

#endif
