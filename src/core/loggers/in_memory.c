/* SPDX-License-Identifier: Apache-2.0 */
/* in_memory.c: every number of the run, kept as series for et_logger_series.
 *
 * Series double in length when full, so that a warm run rarely allocates. */
#include "config.h"

#include <string.h>

#include "core/base/memory.h"
#include "core/loggers/loggers.h"

struct series {
    char name[ET_METRIC_NAME];
    struct et_point *point;
    int64_t n, room;
};

struct memory {
    struct series *series;
    int64_t n, room;
    int64_t next; /* where the next name is looked for first */
};

static struct series *
find(const struct memory *m, const char *name)
{
    for (int64_t i = 0; i < m->n; i++)
        if (strcmp(m->series[i].name, name) == 0)
            return &m->series[i];
    return NULL;
}

/* The same: records hold their names in one order, so that it is mostly the one behind
 * the last, however many there are. */
static struct series *
find_next(struct memory *m, const char *name)
{
    struct series *s = m->next < m->n ? &m->series[m->next] : NULL;
    if (!s || strcmp(s->name, name) != 0)
        s = find(m, name);
    m->next = s ? s - m->series + 1 : m->n + 1;
    return s;
}

static et_status
add(struct et_callback *self, const struct et_log_entry *entry,
    const struct et_timestamp *ts)
{
    struct memory *m = self->state;
    struct series *s = find_next(m, entry->name);
    if (!s) {
        ET_TRY(eti_grow(self->cx, &m->series, &m->room, m->n + 1, sizeof *s));
        s = &m->series[m->n++];
        memcpy(s->name, entry->name, sizeof s->name);
    }
    ET_TRY(eti_grow(self->cx, &s->point, &s->room, s->n + 1, sizeof *s->point));
    s->point[s->n++] = (struct et_point){*ts, entry->value};
    return ET_OK;
}

static et_status
run(struct et_callback *self, enum et_event event, const struct et_state *state,
    struct et_log *log)
{
    int n;
    const struct et_log_entry *entry = et_log_entries(log, &n);
    (void)event;
    for (int i = 0; i < n; i++)
        ET_TRY(add(self, &entry[i], &state->timestamp));
    return ET_OK;
}

bool
et_logger_series(const struct et_callback *logger, const char *name,
                 const struct et_point **points, int64_t *n)
{
    if (!logger || !points || !n)
        return false;
    const struct series *s =
        logger->type == &et_logger_in_memory ? find(logger->state, name) : NULL;
    *points = s ? s->point : NULL;
    *n = s ? s->n : 0;
    return s != NULL;
}

static void
release(struct et_callback *self)
{
    struct memory *m = self->state;
    for (int64_t i = 0; i < m->n; i++)
        et_free(self->cx, m->series[i].point);
    et_free(self->cx, m->series);
    *m = (struct memory){0};
}

const struct et_callback_class et_logger_in_memory = {
    .info =
        {
            .name = "in_memory",
            .class_name = "InMemoryLogger",
            .summary = "keeps every number of the run",
            .source = "MosaicML Composer, InMemoryLogger",
            .applies_to = "any",
        },
    .state_size = sizeof(struct memory),
    .is_logger = true,
    .events = ET_ON(BATCH_END) | ET_ON(EVAL_END),
    .run = run,
    .close = release,
};
