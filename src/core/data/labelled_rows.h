/* SPDX-License-Identifier: Apache-2.0 */
/* labelled_rows.h: files of texts with a label each, row by row: TSV, as GLUE's tasks
 * are, and lines of JSON; and where the rows of a split are. */
#ifndef ETI_DATA_LABELLED_ROWS_H
#define ETI_DATA_LABELLED_ROWS_H

#include "core/data/file.h"
#include "etude/data.h"

struct eti_row_names {
    const char *text, *text2, *label; /* columns or members; TEXT2 may be NULL */
};
/* A cell, borrowed for the call. */
struct eti_text_cell {
    const char *text; /* NULL: there is none */
    size_t n;
};
struct eti_labelled_row {
    struct eti_text_cell text, text2, label;
    int64_t line; /* from 1 */
};
typedef et_status eti_row_fn(void *data, const struct eti_labelled_row *row);

/* Calls FN with each row of PATH, whose first line names the columns where it is no
 * JSON. EFORMAT with file:line. */
ET_NODISCARD et_status eti_labelled_rows(struct et_ctx *cx, const char *path,
                                         const struct eti_row_names *names,
                                         eti_row_fn *fn, void *data);

/* The file of a split in FOLDER: train, or dev, validation or test, with one of the
 * ends that such files have. False: FOLDER has no such file. */
bool eti_split_file(const char *folder, enum et_split split, char out[ETI_PATH_MAX]);
/* Of one file for both splits: whose row I is, from 0. Each tenth is the test's. */
static inline enum et_split
eti_row_split(int64_t i)
{
    return i % 10 == 9 ? ET_SPLIT_TEST : ET_SPLIT_TRAIN;
}

#endif
