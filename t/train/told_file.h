/* SPDX-License-Identifier: Apache-2.0 */
/* told_file.h: files of recipes and what their runs tell (told.h):
 *
 *     # what it is about
 *     max_duration: 4ba
 *     optimizer: {name: sgd}
 *     == adam: the largest second moment is kept
 *     optimizer: {name: adam, amsgrad: true}
 *     --
 *     records batch@1-4
 *     loss/train/total 2.3026 2.2981 2.2876 2.2743
 *     weights 120 3.4142 25.71
 *
 * The lines before the first "==" are a recipe, a key on each. A case is that recipe
 * with the lines behind "==" in place of those of the same key; behind "--" stands what
 * its run tells. Cases behind the first have only lines that differ from its, and
 * "- NAME" for each that they lack. $SRC in a recipe is the folder of the sources.
 *
 * Whether the numbers are right is told elsewhere, by formulas and PyTorch's numbers:
 * this tells whether any of them changes. */
#ifndef ETUDE_T_TRAIN_TOLD_FILE_H
#define ETUDE_T_TRAIN_TOLD_FILE_H

struct told_file;

/* What the run of RECIPE tells, for free(). */
typedef char *told_fn(const struct told_file *file, const char *recipe);

struct told_file {
    const char *root, *folder, *name; /* of the sources; in it; in that */
    const char *where;                /* it runs: behind the name of each test */
    const char *only; /* besides the first the case of this title; NULL: all */
    told_fn *tell;
    /* Where not NULL and ETUDE_UPDATE is set: the file is written anew as this tells,
     * for a person to look at, before the cases are compared. */
    told_fn *write;
    /* NULL, or another test of a case, called NAME, that TOLD its text. */
    void (*also)(const struct told_file *file, const char *name, const char *recipe,
                 const char *told);
};

/* A test of each case. */
void told_file_run(const struct told_file *file);

#endif
