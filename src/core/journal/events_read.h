/* SPDX-License-Identifier: Apache-2.0 */
/* events_read.h: what the files that read events.log share. */
#ifndef ETI_EVENTS_READ_H
#define ETI_EVENTS_READ_H

#include <msgpack.h>
#include <stdatomic.h>

#include "core/journal/events.h"

/* A stretch of records: [at, end). */
struct eti_range {
    int64_t at, end;
};

/* Reads records one after the other. */
struct eti_cursor {
    int64_t at, end;
    int64_t begun;   /* byte at which the last record begins */
    int64_t seq;     /* of the last record; -1: any may be next */
    int64_t damaged; /* byte of one that had a wrong checksum just before; 0: none */
};

struct et_events {
    struct et_ctx *cx;
    int fd;
    char *path;                     /* of it; NULL: it has none */
    const atomic_bool *stop;        /* nothing more is read once it is set; NULL */
    int64_t size;                   /* bytes of the file when it was opened */
    unsigned major;                 /* version of its format */
    char id[2 * ETI_EVENTS_ID + 1]; /* of its run, in hexadecimal digits */
    uint64_t read;                  /* bytes */
    int failed;                     /* errno of the read that failed last; 0 */
    struct eti_cursor cursor;       /* of et_events_next */
    struct eti_range *range;        /* what it reads; NULL: all of the file */
    int n_ranges, next_range;
    uint64_t kinds; /* that it gives */
    char *window;   /* bytes of the file, cached */
    int64_t window_at;
    size_t window_used, window_room;
    msgpack_zone zone; /* of the summary read last */
    /* Of the record read last: its numbers, bytes of their names, its text. */
    struct et_log_entry *entry;
    struct et_log_span *span; /* n is -1 where nothing was said of it */
    unsigned char *length;
    char *text;
    int64_t room, lengths, text_room, spans;
    enum et_record_kind kind;      /* of the last record that has one */
    struct eti_series_names names; /* of the series, once they are counted */
    struct et_series *series;
    bool counted;
    int64_t low, high; /* ba of their values */
};

/* A summary as it was read. */
struct eti_summary {
    int level; /* from 1 */
    int64_t at, from, end, more, last[ETI_LEVELS];
    bool done;
    struct eti_events_part part[ETI_PARTS];
    int n;
    int64_t kinds[ET_RECORD_COUNT];
};

/* The payload of a record. */
struct eti_payload {
    struct et_record r; /* kind ET_RECORD_COUNT: one that is not known; borrowed */
    bool is_summary;    /* and then r has seq to sp alone */
    bool is_series;     /* its numbers are values of series */
    bool has_spans;     /* something is said of those that it stands for */
};
/* payload.c: N BYTES as a record whose numbers and text live in E until another is
 * read. *SOUND is false where they are none. ENOMEM. */
ET_NODISCARD et_status eti_payload_read(struct et_events *e, const char *bytes,
                                        size_t n, struct eti_payload *out, bool *sound);

/* The next record, of any kind but a summary, borrowed until another is read. *GOT is
 * false at the end of the cursor, or where the file is torn. After ENOMEM the same
 * record comes again. */
ET_NODISCARD et_status eti_events_read(struct et_events *e, struct eti_cursor *c,
                                       struct eti_payload *out, bool *got);
/* The summary whose record begins at AT. *SERIES has its cells by name, and lives until
 * another record is read. False where there is none that can be used: no error. */
bool eti_summary_read(struct et_events *e, int64_t at, struct eti_summary *s,
                      const msgpack_object **series);
/* A cell; false where it is nil, or none. */
bool eti_summary_cell(const msgpack_object *o, struct et_series_stats *out);
/* The newest summary whose records lie before END; false: none does. *NEXT: the byte
 * behind it. */
bool eti_summary_find_last(struct et_events *e, int64_t end, struct eti_summary *s,
                           int64_t *next);

/* Walks over a log from its end to its beginning, in stretches that summaries stand
 * for. */
struct eti_summary_walk {
    struct et_events *e;
    void *data;
    /* For S, which it may open with eti_summary_walk_part. */
    et_status (*summary)(struct eti_summary_walk *w, const struct eti_summary *s);
    /* For records without one. ALONE: no "resume" but perhaps the first. */
    et_status (*records)(struct eti_summary_walk *w, struct eti_range range,
                         bool alone);
};
ET_NODISCARD et_status eti_summary_walk(struct eti_summary_walk *w);
/* Walks over part I of S: its summary, or its records. */
ET_NODISCARD et_status eti_summary_walk_part(struct eti_summary_walk *w,
                                             const struct eti_summary *s, int i);

/* For eti_events_continue: the tally that the writer of the log in DIRECTORY had at its
 * end, the last record without text and numbers, and where the end is. */
ET_NODISCARD et_status eti_events_recount(struct et_ctx *cx, const char *directory,
                                          struct eti_tally *t, struct et_record *last,
                                          int64_t *end);

#endif
