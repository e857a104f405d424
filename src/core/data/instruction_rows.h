/* SPDX-License-Identifier: Apache-2.0 */
/* instruction_rows.h: lines of JSON that ask something and answer it, as text.
 *
 * A line is an object whose members a template names, or has a member "messages", a
 * list of objects with "role" and "content", of which each is written by a template
 * too. Where a template says {NAME} the member NAME stands, a string; all else is
 * text. */
#ifndef ETI_DATA_INSTRUCTION_ROWS_H
#define ETI_DATA_INSTRUCTION_ROWS_H

#include "core/data/file.h"

struct eti_instruction_form {
    const char *text;     /* template of a line: "{prompt}{response}" */
    const char *message;  /* template of one of its messages */
    const char *response; /* the member that is the answer; in a message "content" of
                             the role "assistant" is */
};
/* EINVAL: TEXT does not name the response, or MESSAGE not the content. */
ET_NODISCARD et_status eti_instruction_check(struct et_ctx *cx,
                                             const struct eti_instruction_form *form);

/* Text that is either given or to be learned; borrowed for the call. */
struct eti_instruction_part {
    size_t at, n; /* in the row's text */
    bool is_learned;
};
struct eti_instruction {
    const char *text;
    const struct eti_instruction_part *part; /* in turn, the first one given */
    int64_t n_parts;
    int64_t line; /* from 1 */
};
typedef et_status eti_instruction_fn(void *data, const struct eti_instruction *row);

/* Calls FN with each line of PATH that is not empty. EFORMAT with file:line. */
ET_NODISCARD et_status eti_instruction_rows(struct et_ctx *cx, const char *path,
                                            const struct eti_instruction_form *form,
                                            eti_instruction_fn *fn, void *data);
/* The same with the N bytes of TEXT; PATH is for messages. */
ET_NODISCARD et_status eti_instruction_lines(struct et_ctx *cx, const char *path,
                                             const char *text, size_t n,
                                             const struct eti_instruction_form *form,
                                             eti_instruction_fn *fn, void *data);

#endif
