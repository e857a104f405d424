/* SPDX-License-Identifier: Apache-2.0 */
/* control.h: what people ask of a run while it goes on.
 *
 * Whoever starts a run may fill the hole struct et_control. The trainer asks it on its
 * own thread between two batches, never in one, and says what came of each request,
 * which also is a record of the kind "command":
 *
 *     WHO OP ARGS -> ANSWER          uid:1000 set optimizer.lr 0.05 -> was 0.1
 *
 * An answer that begins with "refused: " says why nothing has changed. Requests are
 * applied after the batch that the record counts; "set" and "algo" take values that are
 * absolute, so that a run that goes on from a checkpoint and is given those of its log
 * again (et_trainer_config.replay) is the run that it was, bit for bit. */
#ifndef ETUDE_CONTROL_H
#define ETUDE_CONTROL_H

#include "etude/logger.h"

#ifdef __cplusplus
extern "C" {
#endif

/* code, value, word, operands */
#define ET_REQUEST_MAP(X)                                                              \
    X(PAUSE, 0, "pause", "")           /* holds before the next batch */               \
    X(CONTINUE, 1, "continue", "")     /* ends that */                                 \
    X(STOP, 2, "stop", "")             /* saves and ends the run */                    \
    X(CHECKPOINT, 3, "checkpoint", "") /* saves and goes on */                         \
    X(SET, 4, "set", "KEY VALUE")      /* an option that may change: optimizer.lr */   \
    /* an algorithm's hooks; OPTION=VALUE... of one that the run has not */            \
    X(ALGO, 5, "algo", "NAME on|off")                                                  \
    X(LOGLEVEL, 6, "loglevel", "LEVEL") /* lines of the log from here on are shown */

enum et_request_op {
#define ET_REQUEST_ENUM(code, number, word, operands) ET_REQUEST_##code = number,
    ET_REQUEST_MAP(ET_REQUEST_ENUM)
#undef ET_REQUEST_ENUM
        ET_REQUEST_COUNT
};
const char *et_request_name(enum et_request_op op); /* "pause" */

enum {
    ET_REQUEST_WHO = 64, /* bytes, the final zero included, as below */
    ET_REQUEST_VALUE = 160,
    ET_REQUEST_TEXT = 512, /* of a record's text */
    ET_REQUEST_ANSWER = 200,
};

struct et_request {
    enum et_request_op op;
    uint64_t id;              /* whose meaning is the caller's */
    int64_t step;             /* replayed: the finished batches it was applied after */
    char who[ET_REQUEST_WHO]; /* "uid:1000": no blanks */
    char key[ET_METRIC_NAME]; /* set: the option; algo: the algorithm */
    char value[ET_REQUEST_VALUE]; /* set: YAML; algo: on, off; loglevel: its word */
};

/* Reads "set optimizer.lr 0.05", the words behind WHO. EINVAL says what is wrong. */
ET_NODISCARD et_status et_request_parse(struct et_ctx *cx, const char *text,
                                        struct et_request *out);
/* "set optimizer.lr 0.05" in BUF, which it returns. */
const char *et_request_text(const struct et_request *r, char *buf, size_t size);
/* The request that the text of a "command" record tells of; false for one that was
 * refused, or that a resumed run is not given again. */
bool et_request_replay(const char *record, int64_t step, struct et_request *out);

/* Adds Q, the newest, to LIST [N] of such requests by step, which has room for it. What
 * the list has of the same setting for a later step belongs to batches that a crash has
 * undone, and is dropped: the newest word counts. Returns how many there are then. */
int et_request_add(struct et_request *list, int n, const struct et_request *q);

/* How the answer to "algo NAME on" begins where the run had no such algorithm. */
#define ET_ANSWER_JOINED "joined"
/* How one ends that refuses what this version does not have yet. */
#define ET_ANSWER_LATER "comes with a later version"

/* et_state_get_stop_reason of a run that "stop" has ended. */
#define ET_STOPPED_ON_REQUEST "stopped on request"

/* The struct begins one of the caller's own. All slots are called on the trainer's
 * thread. Of several ranks rank 0 alone is asked and told; what it gets, all apply
 * after the same batch. Those that have a control wait on it as well. */
struct et_control {
    /* The next request that is to be applied after STEP batches into *OUT; false: there
     * is none. Must not wait. */
    bool (*next)(struct et_control *c, int64_t step, struct et_request *out);
    /* R has been applied after STEP batches, or refused, with ANSWER. */
    void (*done)(struct et_control *c, const struct et_request *r, int64_t step,
                 bool applied, const char *answer);
    /* The run is paused: returns when there may be a request, after 100 ms at most. */
    void (*wait)(struct et_control *c);
    /* Lines from LEVEL on are to be shown. (optional: refused) */
    void (*level)(struct et_control *c, enum et_log_level level);
};

#ifdef __cplusplus
}
#endif
#endif
