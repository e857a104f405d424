/* SPDX-License-Identifier: Apache-2.0 */
/* thin.h: records of a fast run, made fewer by time.
 *
 * A net of a few layers does 2,000 batches a second, and a record has 1.5 KB: written
 * down one by one they would be 10 GB an hour, of which no chart shows more than some
 * points a second. So while there are more than 50 records a second of one class
 * (batches; epochs; evaluations; changes between training and evaluating) those of one
 * second become one, which says of each number its last value and the number, mean,
 * least and greatest of all (struct et_log_span). What is kept has a budget besides, by
 * which a file of this kind grows by less than 500 MB a day: once it is used up, also
 * slower runs are thinned, and seconds become up to a minute.
 *
 * Anything else (warnings, checkpoints, commands, ends) is kept as it is, behind what
 * came before it. */
#ifndef ETI_LOGGERS_THIN_H
#define ETI_LOGGERS_THIN_H

#include "etude/logger.h"

enum {
    ETI_THIN_RATE = 50, /* records a second that are all kept; this many seconds in */
    ETI_THIN_SECONDS = 20, /* advance may be used up at once */
    ETI_THIN_SLOTS = 16,   /* kinds of records, and evaluators, at most */
    ETI_THIN_CLASSES = 4,
};
/* Bytes that a file may have at once, and by which it may grow each second. */
#define ETI_THIN_ADVANCE (192.0 * (1 << 20))
#define ETI_THIN_GROWTH  3000.0

/* What becomes one record. */
struct eti_thin_slot {
    struct et_record r; /* the last, without numbers; of 0: nothing waits here */
    char text[64];
    double since; /* when the first of them was */
    struct et_log_entry *entry;
    struct et_log_span *span;
    int n, room;
};

struct eti_thin {
    struct et_ctx *cx;
    /* Unset, or in other units than ba and sec: as above. "1ba": nothing is thinned.
     * Other times: batches are, always, to one record for each. */
    struct et_time interval;
    void (*out)(void *data, const struct et_record *r); /* where records go */
    void *data;
    double begun; /* when the file was, in seconds since 1970; 0: at the first record */
    int64_t bytes; /* of the file: whoever keeps it says so */
    bool poor;     /* the budget is used up */
    struct {
        double left, t; /* records that may still be kept whole, at that time */
    } class[ETI_THIN_CLASSES];
    struct eti_thin_slot slot[ETI_THIN_SLOTS];
};

void eti_thin_init(struct eti_thin *t, struct et_ctx *cx, struct et_time interval,
                   void (*out)(void *data, const struct et_record *r), void *data);
/* Hands R on, now or as part of another one. Memory that is short costs no record: R
 * then goes out as it is. */
void eti_thin_put(struct eti_thin *t, const struct et_record *r);
/* Hands on what has waited long enough at NOW, in seconds since 1970. Returns whether
 * anything waits for time to pass. */
bool eti_thin_due(struct eti_thin *t, double now);
/* All that waits. */
void eti_thin_flush(struct eti_thin *t);
/* Without handing anything on. */
void eti_thin_release(struct eti_thin *t);

#endif
