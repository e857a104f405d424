/* SPDX-License-Identifier: Apache-2.0 */
/* events.h: events.log: its format, and how it is written.
 *
 *     file    "etude.ev", major u16, minor u16, thinned u32, id of the run [16],
 *             record...
 *     thinned which batches are kept (since minor 2): 0: each; ETI_THINNED_AUTO: while
 *             there are more than 50 a second, or more bytes than a day has room for,
 *             one record of many (core/loggers/thin.h); else one for that many
 *             milliseconds, or with ETI_THINNED_BATCHES batches
 *     record  length u32, crc32 u32, payload [length]          (all little endian)
 *     payload msgpack [kind, seq, t, ep, ba, sp, body]
 *     body    {"m": {name: number}, "f": {name: number}, "text": text, "level": text,
 *             "rank": number}, each if there is one (no rank: 0), and of a record that
 *             stands for several (since minor 2)
 *             {"of": how many, "from": ba of the first, "min": {name: number},
 *             "max": {name: number}, "mean": {name: number}, "n": {name: count},
 *             "bad": {name: count}}: numbers that differ among them are in min, max and
 *             mean; n has those that not all of them had, bad those of which some were
 *             not finite. "m" is what the last one had.
 *
 * kind is a word of logger.h, seq counts from 1 without gaps, t is in seconds since
 * 1970, numbers are IEEE doubles. Those of "m" are values of series; those of "f"
 * (since minor 1) are facts of their moment: what the run, a rank or an algorithm is
 * at. The checksum is zlib's, of the payload. A minor version adds kinds and keys of
 * the body only: readers skip what they do not know. A record with too many numbers for
 * one is followed by others of the kind "metric".
 *
 * A crash can cut the last record off: a length that runs past the end of the file, a
 * length of 0 (space the file system had set aside), or a wrong checksum in the last
 * record mean that the log ends before it. The same anywhere else is damage.
 *
 * Between the records stand summaries, so that a long log opens without being read:
 * records of the kind "summary" (since major 2), with the seq of the record before
 * them, derived from what they follow and of no meaning of their own. A summary of
 * level 1 stands for the records since the one before, in up to 16 parts of 128; one of
 * level k + 1 for up to 16 of level k, each of which is a part. Its body:
 *
 *     at      byte of the file at which this record begins: how a reader that searches
 *             backwards knows that it is one
 *     level   1...
 *     from    byte at which the first of its records begins
 *     end     byte behind the last of them
 *     parts   [[at, n, low, high, resume]...]
 *             at: level 1: byte of the part's first record; above: of the summary that
 *             the part is. n: its records. low, high: least and greatest ba with
 *             numbers (low > high: none). resume: ba of a "resume" among them, else -1
 *     last    [at...]: the newest summary of each level before this one; 0: none
 *     kinds   {kind: records}
 *     s       {name: [cell or nil for each part]}, a cell being
 *             [n, bad, sum, last, min, max]: how many values are finite, how many are
 *             not, the sum of the finite ones, and the last, least and greatest of
 *             them, each as [ba, t, value]
 *     more    byte of the record with more of s, 0 for none; done is true in the one
 *             that others point to
 *
 * A "resume" begins a new summary of level 1: its records repeat what came after its
 * ba, and replace it. */
#ifndef ETI_EVENTS_H
#define ETI_EVENTS_H

#include <stdatomic.h>

#include "etude/logger.h"
#include "etude/run.h"

enum {
    ETI_EVENTS_MAJOR = 2, /* 1 had no summaries */
    ETI_EVENTS_MINOR = 2,
    ETI_EVENTS_ID = 16,           /* bytes of a run's id */
    ETI_EVENTS_HEADER = 32,       /* bytes before the first record */
    ETI_EVENTS_FRAME = 8,         /* bytes before a payload */
    ETI_EVENTS_RECORD = 64 << 10, /* bytes of a payload at most, as on the wire */

    ETI_PART_RECORDS = 128,
    ETI_PARTS = 16,
    ETI_LEVELS = 6, /* the uppermost begins at 128 * 16^6 records, 2 * 10^9 */
};

#define ETI_THINNED_AUTO    UINT32_MAX
#define ETI_THINNED_BATCHES (UINT32_C(1) << 31)
#define ETI_EVENTS_MAGIC    "etude.ev"
#define ETI_SUMMARY_BEGIN   "\x97\xa7summary" /* of a summary's payload */

/* From now on et_events_next gives the newest records alone, in their order: those
 * behind the newest summary and some 200 before it. Of a log without summaries all.
 * ENOMEM. */
ET_NODISCARD et_status eti_events_newest(struct et_events *e);
/* Once *STOP is set, by another thread, E reads as if it ended where it is: for whoever
 * wants no answer any more. STOP is borrowed until E is closed. */
void eti_events_stop_when(struct et_events *e, const atomic_bool *stop);

/* As et_events_open of the file FD (taken, also on failure), which messages call
 * NAME. */
ET_NODISCARD et_status eti_events_open_fd(struct et_ctx *cx, int fd, const char *name,
                                          struct et_events **out);
/* et_events_next goes on at the first whole record that begins at byte AT or later, as
 * its checksum tells: for a log of which what is before AT is not at hand. *FOUND is
 * false where there is no such record, and nothing changes. ENOMEM. */
ET_NODISCARD et_status eti_events_seek(struct et_events *e, int64_t at, bool *found);

/* ---- summaries: summary.c ---- */

/* Names in the order they were first met, found by hashing. */
struct eti_series_names {
    char (*name)[ET_METRIC_NAME];
    int n, room;
    int *slot; /* [2 room]: 1 + index into NAME, 0 = free */
    int next;  /* the index that is likely asked for next */
};
/* Are the numbers of R values of series? */
bool eti_is_series(const struct et_record *r);
/* Index of the name of N bytes (cut at 95), added where it is new; -1 when memory is
 * out. */
int eti_series_index(struct et_ctx *cx, struct eti_series_names *names,
                     const char *name, size_t n);
void eti_series_names_free(struct et_ctx *cx, struct eti_series_names *names);

/* Adds number I of R, the newest so far. */
void eti_stats_add(struct et_series_stats *s, const struct et_record *r, int i);
/* Adds others; NEWER: they came after and have the last value. */
void eti_stats_merge(struct et_series_stats *s, const struct et_series_stats *other,
                     bool newer);

struct eti_events_part {
    int64_t at, n, low, high, resume; /* as in the file */
};
extern const struct eti_events_part eti_events_part_empty;
void eti_events_part_merge(struct eti_events_part *p,
                           const struct eti_events_part *other);

/* A summary under way. */
struct eti_block {
    struct eti_events_part part[ETI_PARTS];
    int n;        /* parts that are complete; another may be under way */
    int64_t from; /* as in the file */
    int64_t size; /* level 1: records of a part */
    int64_t kinds[ET_RECORD_COUNT];
};

/* What the next summary of each level will say: of level 1 in block[0], and so on. */
struct eti_tally {
    struct et_ctx *cx;
    struct eti_series_names names;
    struct et_series_stats *cell; /* [ETI_LEVELS][ETI_PARTS][room] */
    int room;
    struct eti_block block[ETI_LEVELS];
    int64_t last[ETI_LEVELS];
    bool off; /* memory or disk were short: there will be no more summaries */
};
ET_NODISCARD et_status eti_tally_init(struct eti_tally *t, struct et_ctx *cx);
void eti_tally_free(struct eti_tally *t);
struct et_series_stats *eti_tally_cell(const struct eti_tally *t, int level, int part,
                                       int series);
/* The index of a name; -1 when memory is out, and then the tally is off. */
int eti_tally_series(struct eti_tally *t, const char *name, size_t n);
/* Counts R, which stands at byte AT. */
void eti_tally_add(struct eti_tally *t, const struct et_record *r, int64_t at);
/* Parts of block[LEVEL], the one under way included. */
int eti_tally_parts(const struct eti_tally *t, int level);
/* The summary of block[LEVEL] is at byte AT: it becomes a part of the next level, and
 * another begins. */
void eti_tally_close(struct eti_tally *t, int level, int64_t at);
/* Instead: goes on with parts of twice the size. */
void eti_tally_widen(struct eti_tally *t);

/* ---- writing: events.c ---- */

struct eti_events_writer {
    struct et_ctx *cx;
    int fd;                /* -1: closed */
    char *buffer;          /* what is not in the file yet; NULL: not begun */
    size_t used;           /* bytes of it */
    size_t packed;         /* bytes of the payload under way, behind those */
    int64_t in_file;       /* bytes */
    int64_t seq, lost;     /* of the last record; records left out */
    bool failed;           /* writing did, and it was said */
    struct et_record last; /* of a log that goes on: its last; no text, no numbers */
    struct eti_tally tally;
};

/* Begins a new log in DIRECTORY and holds its lock until the end. EIO. */
ET_NODISCARD et_status eti_events_begin(struct et_ctx *cx, const char *directory,
                                        const unsigned char *id,
                                        struct eti_events_writer *out);
/* Goes on with the log in DIRECTORY: what a crash cut off is cut away, *CUT bytes.
 * ENOENT, EIO; EFORMAT for a log with damage before its end or of an older version;
 * ECANCELED while another process writes it. */
ET_NODISCARD et_status eti_events_continue(struct et_ctx *cx, const char *directory,
                                           int64_t *cut, struct eti_events_writer *out);
/* Makes the header say that records are thinned by INTERVAL (unset, ba or sec), as
 * thin.h has it; one that cannot be written says what it did. */
void eti_events_say_thinned(struct eti_events_writer *w, struct et_time interval);
/* Bytes of the log, with those that are not in the file yet. */
int64_t eti_events_size(const struct eti_events_writer *w);
/* Adds R under the next number. Buffered until an evaluation, an epoch, a warning, or a
 * change of state; allocates nothing but where a number has a new name. */
void eti_events_write(struct eti_events_writer *w, const struct et_record *r);
/* May the numbers of R, as read, go on in the record after it? They do if that is of
 * the kind "metric" and of the same time. */
bool eti_events_is_full(const struct et_record *r);
void eti_events_flush(struct eti_events_writer *w);
/* Makes the log in DIRECTORY again, as it was, where its file was removed from there:
 * byte for byte what W has written, and W goes on in it. EIO: it cannot be, and W
 * writes on into the file that has no name. */
ET_NODISCARD et_status eti_events_restore(struct eti_events_writer *w,
                                          const char *directory);
void eti_events_end(struct eti_events_writer *w);
/* Adds a note of TEXT, made visible, behind the last record of the log in DIRECTORY, of
 * a run that nobody writes. *OUT is that record, without its text. Fails as
 * eti_events_continue does. */
ET_NODISCARD et_status eti_events_annotate(struct et_ctx *cx, const char *directory,
                                           const char *text, int64_t *cut,
                                           struct et_record *out);

#endif
