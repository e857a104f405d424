/* time.h: training time: epochs, batches, samples, tokens, fractions of a run, seconds.
 *
 * Source: spec/trainer.md section 4 (MosaicML Composer's Time and Timestamp). */
#ifndef ETUDE_TIME_H
#define ETUDE_TIME_H

#include <stdint.h>

#include "etude/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* code, suffix, name. DUR is a fraction of max_duration; the others are integral. */
#define ET_TIME_UNIT_MAP(X)                                                    \
    X(ITERATION, "iter", "iteration")                                          \
    X(EPOCH, "ep", "epoch")                                                    \
    X(BATCH, "ba", "batch")                                                    \
    X(SAMPLE, "sp", "sample")                                                  \
    X(TOKEN, "tok", "token")                                                   \
    X(DURATION, "dur", "duration")                                             \
    X(SECOND, "sec", "second")

enum et_time_unit {
#define ET_TIME_UNIT_ENUM(code, suffix, name) ET_TIME_##code,
    ET_TIME_UNIT_MAP(ET_TIME_UNIT_ENUM)
#undef ET_TIME_UNIT_ENUM
    ET_TIME_UNIT_COUNT
};

/* A span or point of training time. Integral units hold whole numbers, exact to 2^53. */
struct et_time {
    double value;
    enum et_time_unit unit;
};

#define ET_EPOCHS(n) ((struct et_time){(n), ET_TIME_EPOCH})
#define ET_BATCHES(n) ((struct et_time){(n), ET_TIME_BATCH})

#ifdef __cplusplus
}
#endif
#endif
