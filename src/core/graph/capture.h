/* SPDX-License-Identifier: Apache-2.0 */
/* capture.h: recordings of a plan's launches (private to src/core/graph). */
#ifndef ETI_GRAPH_CAPTURE_H
#define ETI_GRAPH_CAPTURE_H

#include "core/graph/graph_impl.h"

enum { ETI_RECORDINGS = 4 };

struct eti_recording {
    uint64_t key;               /* of the addresses it is for */
    uint64_t last_use;          /* the plan's run; 0: the place is free */
    struct et_capture *capture; /* NULL until it has been recorded */
};

struct eti_recordings {
    struct eti_recording v[ETI_RECORDINGS];
    uint64_t runs; /* of the plan */
    bool refused;  /* the device could not record it */
};

/* Does G's device record, and may it? (ETUDE_CAPTURE=0 forbids.) */
bool eti_can_capture(const struct et_graph *g);
/* Have the addresses that KEY is a digest of been met before, and not been
 * forgotten? */
bool eti_is_known(const struct eti_recordings *r, uint64_t key);
/* Runs what LAUNCH(DATA) launches: itself, recording it, or by replaying a recording of
 * the same KEY, a digest of every address that it passes. STAYS: later runs will have
 * the same addresses. */
ET_NODISCARD et_status eti_launch_recorded(struct et_graph *g, struct eti_recordings *r,
                                           uint64_t key, bool stays,
                                           et_status (*launch)(void *), void *data);
void eti_recordings_clear(const struct et_device *dev, struct eti_recordings *r);

#endif
