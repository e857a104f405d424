/* SPDX-License-Identifier: Apache-2.0 */
/* memory_monitor.c: device memory in use, in GB (1e9 bytes), to 5 significant digits.
 *
 *     memory/current_allocated_mem   storages, plan slabs, outputs, workspaces now
 *     memory/peak_allocated_mem      the most so far
 *
 * and where the device has a pool, as a GPU has:
 *
 *     memory/{current,peak}_active_mem     the same with what rounding adds, and memory
 *                                          that is freed once the GPU has got there
 *     memory/{current,peak}_inactive_mem   kept for later
 *     memory/{current,peak}_reserved_mem   active and inactive: taken from the device
 *     memory/alloc_retries           allocations for which the pool was emptied
 *
 * Source: spec/trainer.md 9.2, the newest names. Differs: on every device, not only on
 * GPUs; at BATCH_END, for only then has a lazy step used its memory. The peak of what
 * is inactive is the most at any BATCH_END: pools do not count it. On a processor Etude
 * takes exactly what it uses and caches no blocks: active, inactive and reserved_mem
 * would repeat allocated_mem or be 0, and alloc_retries counts what cannot happen. */
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

struct monitor {
    size_t inactive; /* the most so far, bytes */
};

static void
log_gb(struct et_log *log, const char *name, size_t bytes)
{
    et_log_metric(log, name, in_gb(bytes));
}

static void
log_pool(struct monitor *m, const struct et_device_pool *p, struct et_log *log)
{
    size_t inactive = p->reserved - p->used;
    m->inactive = inactive > m->inactive ? inactive : m->inactive;
    log_gb(log, "memory/current_active_mem", p->used);
    log_gb(log, "memory/current_inactive_mem", inactive);
    log_gb(log, "memory/current_reserved_mem", p->reserved);
    log_gb(log, "memory/peak_active_mem", p->peak_used);
    log_gb(log, "memory/peak_inactive_mem", m->inactive);
    log_gb(log, "memory/peak_reserved_mem", p->peak_reserved);
    et_log_metric(log, "memory/alloc_retries", (double)p->retries);
}

static et_status
run(struct et_callback *self, enum et_event event, const struct et_state *state,
    struct et_log *log)
{
    struct et_device_memory m;
    (void)event;
    et_device_get_memory(state->dev, &m);
    log_gb(log, "memory/current_allocated_mem", m.current_bytes);
    log_gb(log, "memory/peak_allocated_mem", m.peak_bytes);
    if (m.has_pool)
        log_pool(self->state, &m.pool, log);
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
    .state_size = sizeof(struct monitor),
    .events = ET_ON(BATCH_END),
    .run = run,
    .trails = et_callback_trails,
};
