/* SPDX-License-Identifier: Apache-2.0 */
/* text.h: a text that grows, and YAML scalars that read back as they were. */
#ifndef ETI_TEXT_H
#define ETI_TEXT_H

#include "core/recipe/value.h"

/* Start with {.cx = cx}. The first failure sticks: later additions do nothing. */
struct eti_text {
    struct et_ctx *cx;
    /* NUL-terminated once anything was added; the caller frees with et_free */
    char *text;
    size_t used, size;
    et_status status;
};

void eti_text_add(struct eti_text *t, const char *fmt, ...) ET_PRINTF(2, 3);
/* Plain where that reads back as the same text, else in double quotes. */
void eti_text_add_scalar(struct eti_text *t, const char *text);
/* The fewest digits that read back as X, which is not NaN. */
void eti_text_add_number(struct eti_text *t, double x);
/* A duration such as 25s or 5m; a size such as 64Ki. */
void eti_text_add_duration(struct eti_text *t, double seconds);
void eti_text_add_size(struct eti_text *t, int64_t bytes);
/* A tree in flow style, on one line. */
void eti_text_add_value(struct eti_text *t, const struct et_value *v);

#endif
