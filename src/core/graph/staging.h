/* SPDX-License-Identifier: Apache-2.0 */
/* staging.h: writing device memory from the host without waiting. */
#ifndef ETI_GRAPH_STAGING_H
#define ETI_GRAPH_STAGING_H

#include "core/graph/graph_impl.h"

enum { ETI_STAGED_BYTES = 64 << 10 }; /* longer writes wait for the device */

/* BYTES from SRC, in host memory, to DST in DEV's, in the order of its own stream. SRC
 * may change at once. From the thread that evaluates. */
ET_NODISCARD et_status eti_device_write(struct et_device *dev, void *dst,
                                        const void *src, size_t bytes);
void eti_staging_free(struct et_device *dev);

#endif
