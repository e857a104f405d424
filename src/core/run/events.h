/* events.h: writing events.log. Format: events.c. */
#ifndef ETI_EVENTS_H
#define ETI_EVENTS_H

#include "core/loggers/loggers.h"
#include "etude/run.h"

enum {
    ETI_EVENTS_ID = 16,           /* bytes of a run's id */
    ETI_EVENTS_RECORD = 64 << 10, /* bytes of a record at most, as on the wire */
};

struct eti_events_writer {
    struct eti_output file;
    char *record; /* [ETI_EVENTS_RECORD]: the one being packed */
    size_t used;
    int64_t seq;
};

/* Begins a new log in DIRECTORY. */
ET_NODISCARD et_status eti_events_begin(struct et_ctx *cx, const char *directory,
                                        const unsigned char *id,
                                        struct eti_events_writer *out);
/* Adds R under the next number. Buffered until an evaluation, an epoch, a warning, or a
 * change of state; allocates nothing. */
void eti_events_write(struct eti_events_writer *w, const struct et_record *r);
void eti_events_end(struct eti_events_writer *w);

#endif
