/* SPDX-License-Identifier: Apache-2.0 */
/* weight_maps.h: what hubs call the tensors of our models, one table for each form and
 * family of models, read in both directions. */
#ifndef ETI_WEIGHT_MAPS_H
#define ETI_WEIGHT_MAPS_H

#include <stdbool.h>

enum { ETI_WEIGHT_NAME = 512, ETI_WEIGHT_PARTS = 3 };

/* Beginnings of a leaf's name and of the hub's; what follows is the same in both. '#'
 * is a number; '-' in THEIRS is one less than the '#' in its place. PARTS > 1: the leaf
 * is several tensors there, one below the other along axis 0, this one the PART-th. */
struct eti_weight_rule {
    const char *ours, *theirs;
    int part, parts; /* 0, 0: all of it */
};

struct eti_weight_map {
    const char *form;   /* "hf", "torchvision", "timm" */
    const char *models; /* names of models, blanks between; '*' stands for anything */
    /* Ends with OURS NULL; NULL: all names are the same. The first rule that fits a
     * name counts. */
    const struct eti_weight_rule *rules;
    bool counts_batches; /* there is a num_batches_tracked beside running statistics */
};

/* Ends with a NULL form. */
extern const struct eti_weight_map eti_weight_maps[];

/* Is M for the model called MODEL? */
bool eti_weight_map_fits(const struct eti_weight_map *m, const char *model);
/* The map of FORM for MODEL, or NULL. */
const struct eti_weight_map *eti_weight_map_find(const char *form, const char *model);
/* NAME rewritten by FROM -> TO into OUT; false: it does not begin as FROM does. */
bool eti_weight_rewrite(const char *name, const char *from, const char *to,
                        char out[ETI_WEIGHT_NAME]);
/* Writes to OUT what M calls PART of the leaf NAME, and to *PARTS how many it has there
 * (1 where it is whole). False: M has no such leaf. */
bool eti_weight_map_name(const struct eti_weight_map *m, const char *name, int part,
                         char out[ETI_WEIGHT_NAME], int *parts);

#endif
