/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.c: metrics of a run's model, by their names. */
#include "config.h"

#include <string.h>

#include "core/trainer/part.h"

/* OPTIONS are the class's own struct, NULL where it has no table; they are told of the
 * model. */
static et_status
new_metric(struct et_state *s, const struct et_metric_class *c, const void *options,
           struct et_metric **out)
{
    void *block;
    size_t size = c->info.options_size;
    size = size > sizeof(struct et_metric_options) ? size
                                                   : sizeof(struct et_metric_options);
    ET_TRY(et_alloc(s->cx, size, &block));
    struct et_metric_options *own = block;
    if (options)
        memcpy(own, options, c->info.options_size ? c->info.options_size : sizeof *own);
    else
        own->ignore_index = ET_IGNORE_INDEX;
    if (own->num_classes < 1)
        own->num_classes = s->model->num_classes;
    own->model = s->model;
    et_status status = et_metric_new(s->cx, s->dev, c, own, out);
    et_free(s->cx, block);
    return status;
}

/* One of the task's, with its defaults. */
static et_status
new_usual(struct et_state *s, const struct et_metric_class *c, struct et_metric **out)
{
    struct et_metric_options options;
    ET_TRY(et_options_init(s->cx, c->info.options, &options));
    options.num_classes = s->model->num_classes;
    return new_metric(s, c, &options, out);
}

et_status
eti_metrics_add(struct et_state *s, const struct et_metric_use *use,
                struct et_metric **out, int *n)
{
    void *defaults = NULL;
    for (int i = 0; i < *n; i++)
        if (et_metric_class(out[i]) == use->type)
            return ET_OK; /* the task has it */
    if (*n == ETI_MAX_METRICS)
        return ET_FAIL(s->cx, ET_EINVAL, "more than %d metrics", ETI_MAX_METRICS);
    if (!use->options)
        ET_TRY(et_options_new(s->cx, &use->type->info, NULL, &defaults));
    et_status status =
        new_metric(s, use->type, use->options ? use->options : defaults, &out[*n]);
    et_options_free(&use->type->info, &defaults);
    *n += status == ET_OK;
    return status;
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
        ET_TRY(new_usual(s, c, &out[*n]));
        (*n)++;
    }
    return ET_OK;
}
