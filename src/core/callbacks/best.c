/* SPDX-License-Identifier: Apache-2.0 */
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

#include "core/callbacks/callbacks.h"
#include "core/models/safetensors.h"

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
    if (!eti_pick_value(&o->pick, sv->metric, s, &value) || isnan(value) ||
        (sv->any && !eti_pick_is_better(&o->pick, sv->metric, value, sv->best)))
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
