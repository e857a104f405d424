/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.c: metrics of a run's model, by their names. */
#include "config.h"

#include <string.h>

#include "core/trainer/part.h"

static et_status
new_metric(struct et_state *s, const struct et_metric_class *c, struct et_metric **out)
{
    struct et_metric_options options;
    ET_TRY(et_options_init(s->cx, c->info.options, &options));
    options.num_classes = s->model->num_classes;
    options.model = s->model;
    return et_metric_new(s->cx, s->dev, c, &options, out);
}

et_status
eti_metrics_new(struct et_state *s, const char *names, struct et_metric **out, int *n)
{
    char name[64];
    while (*names) {
        size_t length = strcspn(names, " ");
        if (length >= sizeof name || *n == ETI_MAX_METRICS)
            return ET_FAIL(s->cx, ET_EINTERNAL, "bad list of metrics '%s'", names);
        memcpy(name, names, length);
        name[length] = '\0';
        names += length + (names[length] == ' ');
        const struct et_metric_class *c = et_metric_find(name);
        if (!c)
            return ET_FAIL(s->cx, ET_EINTERNAL, "there is no metric %s", name);
        ET_TRY(new_metric(s, c, &out[*n]));
        (*n)++;
    }
    return ET_OK;
}
