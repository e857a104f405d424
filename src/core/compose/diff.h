/* SPDX-License-Identifier: Apache-2.0 */
/* diff.h: the lines in which two texts differ, with one of what is around each. */
#ifndef ETI_DIFF_H
#define ETI_DIFF_H

#include "etude/ctx.h"

struct eti_diff_line {
    char sign; /* '-' only in the old text, '+' only in the new one, ' ' in both */
    int line;  /* of the old text for '-', else of the new one; from 1 */
    const char *text; /* N bytes without the line's end, borrowed from the texts */
    size_t n;
};

struct eti_diff {
    struct et_ctx *cx;
    struct eti_diff_line *line;
    int n;
};

/* The texts must outlive *OUT; release it in any case. ENOMEM. */
ET_NODISCARD et_status eti_diff_new(struct et_ctx *cx, const char *old, size_t n_old,
                                    const char *now, size_t n_now,
                                    struct eti_diff *out);
void eti_diff_release(struct eti_diff *diff);

#endif
