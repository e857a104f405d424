/* SPDX-License-Identifier: Apache-2.0 */
/* lr_monitor.c: lr-<OptimizerClass>/group<i>, the rate that the update used. */
#include "config.h"

#include <stdio.h>

#include "core/callbacks/callbacks.h"

static et_status
run(struct et_callback *self, enum et_event event, const struct et_state *state,
    struct et_log *log)
{
    const char *class = et_optimizer_class(state->optimizer)->info.class_name;
    char name[ET_METRIC_NAME];
    (void)self;
    (void)event;
    for (int i = 0; i < state->params->n_groups; i++) {
        snprintf(name, sizeof name, "lr-%s/group%d", class, i);
        et_log_metric(log, name, et_optimizer_group(state->optimizer, i)->lr);
    }
    return ET_OK;
}

const struct et_callback_class et_callback_lr_monitor = {
    .info =
        {
            .name = "lr_monitor",
            .class_name = "LRMonitor",
            .summary = "learning rate of each parameter group",
            .source = "MosaicML Composer, LRMonitor",
            .applies_to = "any",
        },
    .events = ET_ON(BATCH_END),
    .run = run,
    .trails = et_callback_trails,
};
