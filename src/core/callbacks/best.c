/* best.c: the weights that did best in an evaluation, as a file: what best_model_saver
 * and model_ema share.
 *
 * Where the watched metric's value is the first, or strictly better than the best so
 * far, the file is replaced by the weights of the moment, at once or not at all. Its
 * notes say which metric and value it was and when. A file that cannot be written is
 * warned about, and the value does not count as the best. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/callbacks/callbacks.h"
#include "core/models/safetensors.h"

const char *const eti_best_truth[] = {"false", "true", NULL};

static bool
fits(const char *metric, const char *wanted)
{
    static const char usual[] = "CrossEntropy";
    const char *slash = strrchr(metric, '/'), *last = slash ? slash + 1 : metric;
    size_t n = strlen(last), k = sizeof usual - 1;
    if (!wanted)
        return n >= k && strcmp(last + n - k, usual) == 0;
    return strcmp(metric, wanted) == 0 || strcasecmp(last, wanted) == 0;
}

/* The value of the watched metric, where this evaluation has it. */
static bool
find_value(const struct eti_best_options *o, struct eti_best *sv,
           const struct et_state *s, double *out)
{
    char place[ET_METRIC_NAME];
    size_t n =
        (size_t)snprintf(place, sizeof place, "metrics/%s/", s->dataloader_label);
    for (int i = 0; i < s->n_eval_metrics; i++) {
        const struct et_metric_value *v = &s->eval_metrics[i];
        if (n >= sizeof place || strncmp(v->name, place, n) != 0)
            continue;
        if (sv->metric[0] ? strcmp(v->name, sv->metric) != 0
                          : !fits(v->name, o->watch_metric))
            continue;
        snprintf(sv->metric, sizeof sv->metric, "%s", v->name);
        *out = v->value;
        return true;
    }
    return false;
}

static bool
is_better(const struct eti_best_options *o, const struct eti_best *sv, double value)
{
    bool greater = o->greater_is_better < 0 ? !eti_less_is_better(sv->metric)
                                            : o->greater_is_better > 0;
    if (isnan(value))
        return false;
    return !sv->any || (greater ? value > sv->best : value < sv->best);
}

const char *
eti_best_path(const struct et_callback *self, const struct eti_best_options *o,
              char *buf)
{
    snprintf(buf, ETI_BEST_PATH, "%s/%s", self->run_directory, o->save_path);
    return buf;
}

et_status
eti_best_open(const struct et_callback *self, const struct eti_best_options *o)
{
    const char *name = self->type->info.name;
    if (!self->run_directory)
        return ET_FAIL(self->cx, ET_EINVAL,
                       "%s needs a run directory, and there is none", name);
    if (strlen(self->run_directory) + strlen(o->save_path) + 2 > ETI_BEST_PATH)
        return ET_FAIL(self->cx, ET_EINVAL,
                       "%s: the path of %s is longer than %d bytes", name, o->save_path,
                       ETI_BEST_PATH - 1);
    return ET_OK;
}

static et_status
write_file(struct et_callback *self, const struct eti_best_options *o,
           const struct eti_best *sv, const struct et_state *s, double value)
{
    const struct et_timestamp *ts = &s->timestamp;
    char path[ETI_BEST_PATH], number[32], epoch[24], batch[24];
    snprintf(number, sizeof number, "%.9g", value);
    snprintf(epoch, sizeof epoch, "%" PRId64, ts->epoch);
    snprintf(batch, sizeof batch, "%" PRId64, ts->batch);
    const struct eti_st_note notes[] = {
        {"ep", epoch},          {"ba", batch},     {"run", s->run_name},
        {"metric", sv->metric}, {"value", number},
    };
    const int n = isnan(value) ? 3 : 5; /* without a value there is no metric */
    return eti_model_save(self->cx, s->model, s->seed, notes, n,
                          eti_best_path(self, o, path));
}

et_status
eti_best_save(struct et_callback *self, const struct eti_best_options *o,
              const struct eti_best *sv, const struct et_state *s, double value,
              struct et_log *log, bool *saved)
{
    const char *name = self->type->info.name;
    et_status status = write_file(self, o, sv, s, value);
    *saved = status == ET_OK;
    if (status == ET_OK || status == ET_ENOMEM)
        return status;
    et_log_text(log, ET_LOG_WARN, &s->timestamp, "%s: %s", name,
                et_error_get(self->cx)->message);
    et_error_clear(self->cx);
    return ET_OK;
}

et_status
eti_best_offer(struct et_callback *self, const struct eti_best_options *o,
               struct eti_best *sv, const struct et_state *s, struct et_log *log)
{
    double value;
    bool saved;
    if (!find_value(o, sv, s, &value) || !is_better(o, sv, value))
        return ET_OK;
    ET_TRY(eti_best_save(self, o, sv, s, value, log, &saved));
    if (!saved)
        return ET_OK;
    sv->any = true;
    sv->best = value;
    sv->at = s->timestamp;
    et_log_text(log, ET_LOG_INFO, &s->timestamp, "%s: %s %g, the best so far",
                self->type->info.name, sv->metric, value);
    return ET_OK;
}

et_status
eti_best_archive(struct eti_best *sv, struct et_archive *a)
{
    ET_TRY(et_archive_text(a, "metric", sv->metric, sizeof sv->metric));
    ET_TRY(et_archive_flag(a, "any", &sv->any));
    ET_TRY(et_archive_f64(a, "best", &sv->best, 1));
    return et_archive_timestamp(a, "at", &sv->at);
}
