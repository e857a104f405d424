/* SPDX-License-Identifier: Apache-2.0 */
/* upload.h: batches on their way to a device, beside what it computes.
 *
 * A lane is a piece of device memory that is written from the host again and again. Its
 * copies go through a stream of the device's own for them: they wait for the steps that
 * still read what the lane had before, later steps wait for them, and the host waits
 * for neither. */
#ifndef ETI_GRAPH_UPLOAD_H
#define ETI_GRAPH_UPLOAD_H

#include "etude/graph.h"

struct eti_lane;

/* Is DEV's memory out of the host's reach? Otherwise no lane is needed. */
bool eti_lane_needed(struct et_device *dev);
/* Host memory that copies are made from without the host; freed by eti_pinned_free. */
ET_NODISCARD et_status eti_pinned_new(struct et_device *dev, size_t bytes, void **out);
void eti_pinned_free(struct et_device *dev, void *block);

/* For tensors that exist already. */
ET_NODISCARD et_status eti_lane_new(struct et_device *dev, struct eti_lane **out);
/* Waits for its copies. */
void eti_lane_free(struct eti_lane **lane);
/* Queues the copies of all N tensors T from SOURCE, dense and in their memory's order.
 * SOURCE is pinned, and stays as it is until eti_lane_wait. */
ET_NODISCARD et_status eti_lane_send(struct eti_lane *lane, struct et_tensor *const *t,
                                     const void *const *source, int n);
/* Nothing that is queued from now on reads the lane's tensors before the next send.
 * What fails here fails there again. */
ET_NODISCARD et_status eti_lane_release(struct eti_lane *lane);
/* The host waits until the last send's sources have been read. From any thread; the
 * context is not told of a failure. */
ET_NODISCARD et_status eti_lane_wait(struct eti_lane *lane);

#endif
