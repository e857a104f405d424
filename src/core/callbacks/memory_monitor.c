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
 * They are rank 0's. Every dist_aggregate_batch_interval batches each comes with the
 * ending _avg, _min and _max, too: of all ranks.
 *
 * Source: spec/trainer.md 9.2, the newest names; MosaicML Composer, MemoryMonitor.
 * Differs: on every device, not only on GPUs; at BATCH_END, for only then has a lazy
 * step used its memory. The peak of what is inactive is the most at any BATCH_END:
 * pools do not count it. On a processor Etude takes exactly what it uses and
 * caches no blocks: active, inactive and reserved_mem would repeat allocated_mem or be
 * 0, and alloc_retries counts what cannot happen. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/callbacks/callbacks.h"
#include "core/trainer/ranks.h"

struct options {
    int64_t every; /* batches; ET_INT_UNSET: never */
};

struct monitor {
    size_t inactive; /* the most so far, bytes */
};

/* What is measured, in the order in which it is logged. */
enum { MOST = 9 };
struct report {
    const char *name[MOST];
    double value[MOST];
    int n;
};

/* BYTES in GB. */
static double
in_gb(double bytes)
{
    if (bytes <= 0)
        return 0;
    double scale = pow(10, 4 - floor(log10(bytes)));
    return round(bytes * scale) / scale / 1e9;
}

static void
add(struct report *r, const char *name, double value)
{
    r->name[r->n] = name;
    r->value[r->n++] = value;
}

static void
add_pool(struct monitor *m, const struct et_device_pool *p, struct report *r)
{
    size_t inactive = p->reserved - p->used;
    m->inactive = inactive > m->inactive ? inactive : m->inactive;
    add(r, "memory/current_active_mem", (double)p->used);
    add(r, "memory/current_inactive_mem", (double)inactive);
    add(r, "memory/current_reserved_mem", (double)p->reserved);
    add(r, "memory/peak_active_mem", (double)p->peak_used);
    add(r, "memory/peak_inactive_mem", (double)m->inactive);
    add(r, "memory/peak_reserved_mem", (double)p->peak_reserved);
    add(r, "memory/alloc_retries", (double)p->retries);
}

static void
measure(struct monitor *m, struct et_device *dev, struct report *r)
{
    struct et_device_memory memory;
    et_device_get_memory(dev, &memory);
    add(r, "memory/current_allocated_mem", (double)memory.current_bytes);
    add(r, "memory/peak_allocated_mem", (double)memory.peak_bytes);
    if (memory.has_pool)
        add_pool(m, &memory.pool, r);
}

/* All but the last of a pool are bytes. */
static double
shown(const char *name, double value)
{
    return strcmp(name, "memory/alloc_retries") == 0 ? value : in_gb(value);
}

static void
log_ending(struct et_log *log, const char *name, const char *ending, double value)
{
    char text[64];
    snprintf(text, sizeof text, "%s%s", name, ending);
    et_log_metric(log, text, shown(name, value));
}

/* Value K of each of the ranks, which have N values each: ALL [world N]. */
static void
log_over_ranks(struct et_log *log, const char *name, const double *all, int world,
               int n, int k)
{
    double sum = 0, least = all[k], most = all[k];
    for (int r = 0; r < world; r++) {
        double x = all[r * n + k];
        sum += x;
        least = fmin(least, x);
        most = fmax(most, x);
    }
    log_ending(log, name, "_avg", sum / world);
    log_ending(log, name, "_min", least);
    log_ending(log, name, "_max", most);
}

static et_status
aggregate(struct et_callback *self, const struct et_state *s, const struct report *r,
          struct et_log *log)
{
    struct et_comm *comm = et_state_get_comm(s);
    int world = et_comm_world(comm);
    void *block;
    ET_TRY(et_alloc(self->cx, (size_t)world * sizeof r->value, &block));
    double *all = block;
    et_comm_set_mark(comm, -1, ETI_AT_MEMORY, (uint32_t)r->n);
    et_status status = et_comm_all_gather(self->cx, comm, r->value,
                                          (size_t)r->n * sizeof *r->value, all);
    for (int k = 0; k < r->n && status == ET_OK && et_comm_rank(comm) == 0; k++)
        log_over_ranks(log, r->name[k], all, world, r->n, k);
    et_free(self->cx, all);
    return status;
}

static bool
is_due(const struct et_callback *self, const struct et_state *s)
{
    const struct options *o = self->options;
    return o->every != ET_INT_UNSET && et_state_get_timestamp(s)->batch % o->every == 0;
}

static et_status
run(struct et_callback *self, enum et_event event, const struct et_state *s,
    struct et_log *log)
{
    struct report r = {.n = 0};
    bool due = is_due(self, s);
    (void)event;
    if (et_state_get_rank(s) > 0 && !due)
        return ET_OK;
    measure(self->state, et_state_get_device(s), &r);
    for (int k = 0; k < r.n && et_state_get_rank(s) == 0; k++)
        et_log_metric(log, r.name[k], shown(r.name[k], r.value[k]));
    return due ? aggregate(self, s, &r, log) : ET_OK;
}

/* What ranks do together comes between the same two steps on all of them. */
static bool
trails(const struct et_callback *self, const struct et_state *s)
{
    return !is_due(self, s);
}

static const struct et_option table[] = {
    {
        .name = "dist_aggregate_batch_interval",
        .type = ET_OPT_INT,
        .offset = offsetof(struct options, every),
        .flags = ET_OPT_OPTIONAL,
        .min = 1,
        .max = 0x1p53,
        .unit = "batches",
        .help = "how often the average, least and most of all ranks are logged",
    },
    {.name = NULL},
};

const struct et_callback_class et_callback_memory_monitor = {
    .info =
        {
            .name = "memory_monitor",
            .class_name = "MemoryMonitor",
            .summary = "device memory in use",
            .source = "MosaicML Composer, MemoryMonitor",
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct monitor),
    .acts = true,
    .events = ET_ON(BATCH_END),
    .run = run,
    .trails = trails,
};
