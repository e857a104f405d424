/* SPDX-License-Identifier: Apache-2.0 */
/* look.h: the samples of a batch for people: pixels as the bytes whose values the model
 * gets, masks in colours, labels by their names, tokens that are to be guessed. */
#ifndef ETI_DATA_LOOK_H
#define ETI_DATA_LOOK_H

#include "etude/data.h"

enum { ETI_LOOK_CLASSES = 1000 }; /* of masks with more, classes are not told */

struct eti_batch_look {
    struct et_loader *loader;     /* borrowed, as all of it */
    const struct et_batch *batch; /* of that loader, which has no device */
    struct et_loader_info info;   /* the loader's */
    const struct et_data_facts *facts;
};

/* The place of the first field of KIND; -1 where no field is of it. */
int eti_look_find(const struct eti_batch_look *l, enum et_field_kind kind);
/* Elements of one sample of field I of the batch; element AT of all. */
int64_t eti_look_elements(const struct eti_batch_look *l, int i);
double eti_look_element(const struct eti_batch_look *l, int i, int64_t at);
/* The pixels of sample AT of field IMAGE as RGB [H][W][3], with the colours of field
 * MASK over them (-1: without). */
void eti_look_pixels(const struct eti_batch_look *l, int image, int mask, int64_t at,
                     uint8_t *rgb);
/* The colours of field MASK alone. */
void eti_look_mask(const struct eti_batch_look *l, int mask, int64_t at, uint8_t *rgb);
/* Adds to COUNT [below of field MASK] the pixels that sample AT has of each class.
 * Returns how many count something. */
int64_t eti_look_classes(const struct eti_batch_look *l, int mask, int64_t at,
                         int64_t *count);
/* "3 Dress", "3", a number, or for a mask "29% Dress, 3% Bag" without the ground: what
 * belongs below a picture; "": more than that. Returns TEXT. */
const char *eti_look_target(const struct eti_batch_look *l, int64_t at, char *text,
                            size_t size);
/* How many of the tokens that sample AT has in field I are no padding. */
int64_t eti_look_tokens(const struct eti_batch_look *l, int i, int64_t at);
/* The token that was at place T of sample AT, where another stands for it that the
 * model is to guess; -1: none does. */
int32_t eti_look_guessed(const struct eti_batch_look *l, int64_t at, int64_t t);

#endif
