/* readback.h: what a batch came to, and how far the host runs ahead of it (readback.c).
 */
#ifndef ETI_TRAINER_READBACK_H
#define ETI_TRAINER_READBACK_H

#include "etude/logger.h"
#include "etude/trainer.h"

/* Batches that the device may still be at when the host builds the next one: enough
 * that the device's queue never runs dry while the host is at work. */
enum { ETI_AHEAD = 2 };

enum { ETI_MAX_LOSS_PARTS = 16 };

/* log.c: the numbers of one record. A log has one; another can take its place. */
struct eti_book;
ET_NODISCARD et_status eti_book_new(struct et_ctx *cx, struct eti_book **out);
void eti_book_free(struct eti_book **book);
void eti_book_clear(struct eti_book *book);
/* LOG goes on with *BOOK, and *BOOK becomes what it had. */
void eti_log_swap(struct et_log *log, struct eti_book **book);

/* engine.c: the two halves of an event, for one whose observers come later. */
ET_NODISCARD et_status eti_engine_act(struct et_state *s, enum et_event event);
ET_NODISCARD et_status eti_engine_watch(struct et_state *s, enum et_event event);
/* Does a callback have to see EVENT before the run goes on? */
bool eti_engine_waits(const struct et_state *s, enum et_event event);

/* What observers see of a batch, apart from its numbers. */
struct eti_view {
    struct et_timestamp ts;
    struct et_samples batch, full;
    double lr_factor, group_factor[1 + ET_MAX_PARAM_GROUPS];
    int64_t grad_accum, flops;
};

/* A batch whose numbers are on their way. */
struct eti_readback_batch {
    struct eti_view view;
    struct eti_book *book;  /* what has been logged of it */
    unsigned parts;         /* bit i: loss part i was given */
    float *number;          /* host memory: as the report's leaf has them */
    struct et_fence *fence; /* after their copy; NULL where copies are done at once */
};

struct eti_readback {
    int ahead;                 /* ETI_AHEAD, or 0: every batch is waited for */
    struct et_storage *report; /* room for a batch's numbers, in collect's order */
    int64_t room;              /* f32 */
    /* Its beginning as a leaf, for batches with so many loss parts; made when
     * needed. */
    struct et_tensor *leaf[ETI_MAX_LOSS_PARTS + 1];
    float *block; /* of all NUMBER, pinned where the device has such memory */
    struct eti_readback_batch batch[ETI_AHEAD + 1];
    int first, n;    /* parked: oldest, how many */
    bool delivering; /* an older batch is being shown */
};

#endif
