/* SPDX-License-Identifier: Apache-2.0 */
/* filter.h: the filters of runs, charts and logs (UX.md section 2).
 *
 *     word        stands in the text, in any case; "a b" for one with blanks
 *     key:regex   POSIX extended, in any case, in the value of the key
 *     key=v key!=v key<v key<=v key>v key>=v    as numbers where both are, else as text
 *     has:key     there is a value
 *     !term       not      a b  and      a | b  or (binds less than and) */
#ifndef ETI_FILTER_H
#define ETI_FILTER_H

#include "etude/ctx.h"

struct eti_filter;
/* EINVAL with a sentence for what is no filter; empty TEXT matches everything. */
ET_NODISCARD et_status eti_filter_new(struct et_ctx *cx, const char *text,
                                      struct eti_filter **out);
void eti_filter_free(struct eti_filter **filter);

/* What is matched. */
struct eti_subject {
    void *data;
    /* Does WORD stand in its text, in any case? */
    bool (*has_word)(void *data, const char *word);
    /* The value of KEY, borrowed until the next call; NULL: none. */
    const char *(*value)(void *data, const char *key);
};
/* The first key of FILTER that KNOWN says no to; NULL: it says no to none. */
const char *eti_filter_unknown(const struct eti_filter *filter,
                               bool (*known)(void *data, const char *key), void *data);
bool eti_filter_matches(const struct eti_filter *filter, const struct eti_subject *s);

#endif
