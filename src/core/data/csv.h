/* SPDX-License-Identifier: Apache-2.0 */
/* csv.h: tables as text: rows of cells, with where each stands. */
#ifndef ETI_DATA_CSV_H
#define ETI_DATA_CSV_H

#include <stdbool.h>
#include <stdint.h>

#include "etude/status.h"

/* A file that is read cell by cell. TEXT is changed on the way: cells end with a NUL,
 * and quotes are taken off. */
struct eti_csv {
    char *text, *end; /* what is left; *END is writable */
    char separator;
    int64_t line; /* of the next cell, from 1 */
    int64_t column;
};

struct eti_cell {
    char *text; /* lies in the file's text */
    int64_t line, column;
    bool last; /* of its row */
};

/* TEXT [N] and one byte behind it, which is written to. A byte order mark is skipped.
 */
void eti_csv_begin(struct eti_csv *c, char *text, int64_t n, char separator);
/* The next cell, or false at the end. Empty lines are skipped. EFORMAT: a quote that is
 * not closed, told in WHY with line and column, as OUT has them. */
bool eti_csv_next(struct eti_csv *c, struct eti_cell *out, et_status *status,
                  struct et_error *why);
/* Reads CELL as a number, without the blanks around it. False: it is not a number, or
 * not a finite one. */
bool eti_cell_number(const struct eti_cell *cell, double *out);

#endif
