/* SPDX-License-Identifier: Apache-2.0 */
/* spans.h: what a record says of the numbers of those that it stands for, as logs,
 * frames and JSON have it: maps of names, each of the numbers about which it has
 * something to say. A number that was always the same is in none of them. */
#ifndef ETI_LOGGERS_SPANS_H
#define ETI_LOGGERS_SPANS_H

#include "etude/logger.h"

/* kind, key of the map, is it a count? */
#define ETI_ABOUT_MAP(X)                                                               \
    X(MIN, "min", false)                                                               \
    X(MAX, "max", false)                                                               \
    X(MEAN, "mean", false)                                                             \
    X(VALUES, "n", true) /* where not all records had the number */                    \
    X(BAD, "bad", true)  /* values that were not finite, where there were any */

enum eti_about {
#define ETI_ABOUT_ENUM(code, key, count) ETI_ABOUT_##code,
    ETI_ABOUT_MAP(ETI_ABOUT_ENUM)
#undef ETI_ABOUT_ENUM
        ETI_ABOUT_COUNT
};
const char *eti_about_key(enum eti_about about);
bool eti_about_is_count(enum eti_about about);
/* The one with the key of N bytes; ETI_ABOUT_COUNT: none has. */
enum eti_about eti_about_find(const char *key, size_t n);

/* ---- writing ---- */

/* Numbers from FROM to before END of R that have something to say; 0 without spans. */
int eti_about_size(const struct et_record *r, int from, int end, enum eti_about about);
/* Number I of R; false: nothing. */
bool eti_about_get(const struct et_record *r, int i, enum eti_about about, double *out);

/* ---- reading ---- */

/* Before anything has been said. */
extern const struct et_log_span eti_span_unknown;
void eti_span_set(struct et_log_span *s, enum eti_about about, double value);
/* What was left out follows from the last VALUE, of OF records. */
void eti_span_complete(struct et_log_span *s, double value, int64_t of);
/* Records that one is believed to stand for: sums of them stay whole numbers. */
#define ETI_SPAN_MOST (INT64_C(1) << 40)

/* The sum of counts above 0, and INT64_MAX for all that are more: logs may say that
 * they have any number of records. */
static inline int64_t
eti_count_add(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

#endif
