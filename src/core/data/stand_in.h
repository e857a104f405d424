/* SPDX-License-Identifier: Apache-2.0 */
/* stand_in.h: blank samples in place of data that are not read: to see whether a model
 * fits them. */
#ifndef ETI_DATA_STAND_IN_H
#define ETI_DATA_STAND_IN_H

#include "etude/data.h"

/* Batches of an epoch: how many the real dataset has is not known. */
enum { ETI_STAND_IN_BATCHES = 1000 };

/* A dataset of black images of class 0, or of tokens 0, with the shapes that C and
 * OPTIONS, borrowed, say those of the real one have. ENOTSUP: nobody knows them without
 * its files. Close it with et_dataset_close. */
ET_NODISCARD et_status eti_stand_in_open(struct et_ctx *cx,
                                         const struct et_dataset_class *c,
                                         const void *options, struct et_dataset **out);

/* Opens data of which no sample will be read: without a cache of pictures, which would
 * be filled first. OPTIONS are as they were afterwards. */
ET_NODISCARD et_status eti_headers_open(struct et_ctx *cx,
                                        const struct et_dataset_class *c, void *options,
                                        struct et_dataset **out);
/* Opens data for a run that is only tried: a cache of pictures that is not there is
 * told of and not made; samples come from their files then. OPTIONS likewise. */
ET_NODISCARD et_status eti_trial_open(struct et_ctx *cx,
                                      const struct et_dataset_class *c, void *options,
                                      struct et_dataset **out);

#endif
