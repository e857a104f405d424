/* SPDX-License-Identifier: Apache-2.0 */
/* resident.h: sets of images that lie on a device as bytes. */
#ifndef ETI_DATA_RESIDENT_H
#define ETI_DATA_RESIDENT_H

#include "etude/data.h"

struct eti_resident;

/* Leaves the images of DATA on DEV, or finds them there, for one more loader. *OUT is
 * NULL where they stay with the host: DEV works in the host's memory, they take more
 * than an eighth of what DEV has free, or one of them cannot be read or is not kept in
 * memory. With MUST only what cannot be read, is a file or is of another size stays
 * there, and *WHY is the rest of a sentence; they may be read once to be sent, and
 * ENOMEM is told. DATA outlives it. */
ET_NODISCARD et_status eti_resident_open(struct et_ctx *cx, struct et_dataset *data,
                                         struct et_device *dev, bool must,
                                         struct eti_resident **out, const char **why);
/* For one loader less. NULL within does nothing. */
void eti_resident_close(struct eti_resident **r);
/* Says in TEXT, of SIZE bytes, where the transforms of a set of images run by its
 * OPTIONS, and why; "": it has none, or what it gives depends on its files. */
void eti_transforms_where(struct et_ctx *cx, const struct et_dataset_class *c,
                          const void *options, char *text, size_t size);
/* The images: U8 [S,C,H,W], in the strides of the data set; borrowed. */
struct et_tensor *eti_resident_tensor(const struct eti_resident *r);

#endif
