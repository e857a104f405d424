/* SPDX-License-Identifier: Apache-2.0 */
/* mdoc.h: text as mdoc(7), and the hand-written part of a manual page. */
#ifndef ETUDE_MAN_MDOC_H
#define ETUDE_MAN_MDOC_H

#include <stddef.h>
#include <stdio.h>

/* Prints TEXT as lines of text, a sentence beginning a new one, filled to 72 columns.
 * What would be read as a macro or an escape is not. */
void mdoc_text(FILE *out, const char *text);
/* The same for a sentence that begins small and lacks its full stop. */
void mdoc_sentence(FILE *out, const char *text);
/* One word as an argument of a macro. */
void mdoc_word(FILE *out, const char *word);

/* What is written by hand: sections of a page, in any order. */
struct prose {
    char *text; /* owned; "" where there is no file */
};

/* Reads PATH, which need not be there; ends the program where it cannot be read. */
void prose_read(struct prose *p, const char *path);
void prose_release(struct prose *p);
/* The lines of the section called NAME, *N bytes of them; NULL: it has none. */
const char *prose_section(const struct prose *p, const char *name, size_t *n);
/* The name of the I-th section, *N bytes; NULL past the end. */
const char *prose_name(const struct prose *p, int i, size_t *n);

/* References to other pages that a page makes, sorted as SEE ALSO wants them. */
enum { MAX_REFERENCES = 64 };
struct references {
    struct reference {
        char name[48];
        int section;
    } v[MAX_REFERENCES];
    int n;
};
/* Adds one, once. */
void references_add(struct references *r, const char *name, int section);
/* Adds every ".Xr NAME SECTION" of the prose. */
void references_of(struct references *r, const struct prose *p);
void references_print(struct references *r, FILE *out);

#endif
