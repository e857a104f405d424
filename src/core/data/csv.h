/* SPDX-License-Identifier: Apache-2.0 */
/* csv.h: tables as text: named columns, then rows of cells. */
#ifndef ETI_DATA_CSV_H
#define ETI_DATA_CSV_H

#include <stdbool.h>
#include <stdint.h>

#include "core/data/file.h"
#include "etude/status.h"

struct eti_cell {
    char *text; /* lies in the file's text */
    int64_t line, column;
    bool last; /* of its row */
};

/* A file that is read row by row. Its text is changed on the way: cells end with a NUL,
 * and quotes are taken off. */
struct eti_csv {
    struct et_ctx *cx;
    const char *path; /* that messages name */
    struct eti_bytes file;
    char *text, *end; /* what is left; *END is writable */
    char separator;
    int64_t line, column;  /* of the next cell, from 1 */
    struct eti_cell *name; /* [n]: of the columns, from the first line */
    struct eti_cell *cell; /* [n]: of the row that was read last */
    int64_t n, room;
};

/* Opens the file at PATH, plain or .gz, whose cells stand between SEPARATORs, and reads
 * the columns' names from its first line. A byte order mark is skipped. EINVAL:
 * SEPARATOR is not one character. EFORMAT: no line, a name twice, too many columns.
 * Whatever it returns, eti_csv_close ends it. PATH is kept. */
ET_NODISCARD et_status eti_csv_open(struct et_ctx *cx, struct eti_csv *c,
                                    const char *path, const char *separator);
/* The same of TEXT [N] and one byte behind it, which is written to; both stay the
 * caller's. */
ET_NODISCARD et_status eti_csv_begin(struct et_ctx *cx, struct eti_csv *c,
                                     const char *path, char *text, int64_t n,
                                     char separator);
/* Reads a row into C->cell; *GOT is false at the end of the file. Empty lines are
 * skipped. EFORMAT: a quote that is not closed, or another number of cells than of
 * columns. */
ET_NODISCARD et_status eti_csv_row(struct eti_csv *c, bool *got);
void eti_csv_close(struct eti_csv *c);

/* The place of the column NAME, or -1. */
int64_t eti_csv_find(const struct eti_csv *c, const char *name);
/* Finds the place of the column NAME. EINVAL: the file has no such column; the message
 * names the OPTION that asked for it. */
ET_NODISCARD et_status eti_csv_need(const struct eti_csv *c, const char *option,
                                    const char *name, int64_t *out);
/* EFORMAT, "PATH:LINE:COLUMN: ..." of CELL. */
ET_NODISCARD et_status eti_csv_refuse(const struct eti_csv *c,
                                      const struct eti_cell *cell, const char *fmt, ...)
    ET_PRINTF(3, 4);
/* Reads CELL as a number, without the blanks around it. False: it is not a number, or
 * not a finite one. */
bool eti_cell_number(const struct eti_cell *cell, double *out);

#endif
