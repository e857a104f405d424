/* memory_monitor.c: device memory in use, in GB (1e9 bytes), to 5 significant digits.
 *
 *     memory/current_allocated_mem   storages, plan slabs, outputs, workspaces now
 *     memory/peak_allocated_mem      the most so far
 *
 * Source: spec/trainer.md 9.2, the newest names. Differs: on every device, not only on
 * GPUs; at BATCH_END, for only then has a lazy step used its memory. Etude takes from a
 * device exactly what it uses and caches no blocks, so Composer's active, inactive and
 * reserved_mem would repeat allocated_mem or be 0, and alloc_retries counts what cannot
 * happen: they are left out. */
#include "config.h"

#include <math.h>

#include "core/callbacks/callbacks.h"

static double
in_gb(size_t bytes)
{
    if (bytes == 0)
        return 0;
    double scale = pow(10, 4 - floor(log10((double)bytes)));
    return round((double)bytes * scale) / scale / 1e9;
}

static et_status
run(struct et_callback *self, enum et_event event, const struct et_state *state,
    struct et_log *log)
{
    struct et_device_memory m;
    (void)self;
    (void)event;
    et_device_get_memory(state->dev, &m);
    et_log_metric(log, "memory/current_allocated_mem", in_gb(m.current_bytes));
    et_log_metric(log, "memory/peak_allocated_mem", in_gb(m.peak_bytes));
    return ET_OK;
}

const struct et_callback_class et_callback_memory_monitor = {
    .info =
        {
            .name = "memory_monitor",
            .class_name = "MemoryMonitor",
            .summary = "device memory in use",
            .source = "MosaicML Composer, MemoryMonitor",
            .applies_to = "any",
        },
    .events = ET_ON(BATCH_END),
    .run = run,
    .trails = et_callback_trails,
};
