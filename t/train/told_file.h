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

#include <stdint.h>

struct told_file {
    const char *folder, *name; /* in the sources; in that */
    const char *where;         /* it runs: behind the name of each test */
    const char *only;          /* besides the first the case of this title; NULL: all */
    /* What the run of RECIPE tells, for free(). */
    char *(*tell)(const struct told_file *file, const char *recipe);
    /* Where not NULL and ETUDE_UPDATE is set: the file is written anew as this tells,
     * for a person to look at, before the cases are compared. */
    char *(*write)(const struct told_file *file, const char *recipe);
    /* Where not NULL: the run of each case is stopped after another of its batches and
     * resumed, too, and must tell the same. It may return NULL: not this one's. */
    char *(*tell_in_two)(const struct told_file *file, const char *recipe,
                         int64_t stop);
};

/* Tests of each case. */
void told_file_run(const struct told_file *file);
/* Of all files in the folder; or, as main's operands say, of one by its name, or of one
 * of its cases by its title. */
void told_files_run(struct told_file *file, int argc, char **argv);

#endif
