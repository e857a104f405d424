/* SPDX-License-Identifier: Apache-2.0 */
/* hub_child.h: the hub as the supervisor's child: it serves viewers, and its death
 * costs the run nothing. It is started when the run is open, and again within 2 s. */
#ifndef ETD_HUB_CHILD_H
#define ETD_HUB_CHILD_H

#include "dist/run/supervisor.h"

/* Starts it when it is time to. */
void etd_hub_due(struct etd_supervisor *s);
/* Its process has ended. */
void etd_hub_reap(struct etd_supervisor *s);
/* The run ends: viewers have been told so when this returns, or it was made to end. */
void etd_hub_end(struct etd_supervisor *s);

#endif
