/* SPDX-License-Identifier: Apache-2.0 */
/* layout.c: what a program in another language reads of structs and states: numbers by
 * their names, and where fields are in this library. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "etude/diagnostic.h"
#include "etude/plugin.h"
#include "etude/predict.h"
#include "etude/run.h"
#include "etude/session.h"
#include "core/trainer/state.h"

/* ---- numbers of a state ---- */

struct number {
    const char *name;
    double value;
};

static double
rate_of(const struct et_state *s)
{
    return s->optimizer && et_optimizer_group(s->optimizer, 0)
               ? et_optimizer_group(s->optimizer, 0)->lr
               : NAN;
}

bool
et_state_number(const struct et_state *s, const char *name, double *out)
{
    if (!s || !name)
        return false;
    const struct et_timestamp *ts = &s->timestamp;
    const struct number numbers[] = {
        {"epoch", (double)ts->epoch},
        {"batch", (double)ts->batch},
        {"sample", (double)ts->sample},
        {"token", (double)ts->token},
        {"batch_in_epoch", (double)ts->batch_in_epoch},
        {"seconds", ts->total_wct},
        {"loss", s->loss_value},
        {"lr", rate_of(s)},
        {"batch_size", (double)s->batch_size},
        {"grad_accum", (double)s->grad_accum},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(numbers[i].name, name) == 0) {
            *out = numbers[i].value;
            return true;
        }
    if (et_log_find(s->log, name, out))
        return true;
    for (int i = 0; i < s->n_eval_metrics; i++)
        if (strcmp(s->eval_metrics[i].name, name) == 0) {
            *out = s->eval_metrics[i].value;
            return true;
        }
    return false;
}

const char *
et_state_number_name(const struct et_state *s, int i)
{
    if (!s || i < 0)
        return NULL;
    int n;
    double x;
    const struct et_log_entry *entry = et_log_entries(s->log, &n);
    if (i < n)
        return entry[i].name;
    /* What the record has is named once. */
    for (int k = 0; k < s->n_eval_metrics; k++)
        if (!et_log_find(s->log, s->eval_metrics[k].name, &x) && i-- == n)
            return s->eval_metrics[k].name;
    return NULL;
}

/* ---- where fields are ---- */

struct field {
    const char *owner, *name;
    size_t offset, size;
};

#define WHOLE(S)                                                                       \
    {                                                                                  \
#S, "", 0, sizeof(struct S)                                                    \
    }
#define FIELD(S, f)                                                                    \
    {                                                                                  \
#S, #f, offsetof(struct S, f), sizeof(((struct S *)0)->f)                      \
    }

static const struct field fields[] = {
    WHOLE(et_error),
    FIELD(et_error, status),
    FIELD(et_error, code),
    FIELD(et_error, message),
    FIELD(et_error, hint),
    WHOLE(et_diagnostics),
    FIELD(et_diagnostics, n),
    FIELD(et_diagnostics, v),
    WHOLE(et_diagnostic),
    FIELD(et_diagnostic, code),
    WHOLE(et_desc),
    FIELD(et_desc, dtype),
    FIELD(et_desc, ndim),
    FIELD(et_desc, shape),
    FIELD(et_desc, stride),
    FIELD(et_tensor, desc),
    FIELD(et_tensor, storage),
    WHOLE(et_device_info),
    FIELD(et_device_info, name),
    FIELD(et_device_info, library),
    FIELD(et_device_info, threads),
    FIELD(et_device_info, host_memory),
    WHOLE(et_override),
    FIELD(et_override, kind),
    FIELD(et_override, text),
    WHOLE(et_session_options),
    FIELD(et_session_options, overrides),
    FIELD(et_session_options, n_overrides),
    FIELD(et_session_options, threads),
    FIELD(et_session_options, device),
    FIELD(et_session_options, directory),
    FIELD(et_session_options, no_directory),
    FIELD(et_session_options, no_train),
    FIELD(et_session_options, no_eval),
    FIELD(et_session_options, events),
    FIELD(et_session_options, fn),
    FIELD(et_session_options, data),
    FIELD(et_session_options, env),
    WHOLE(et_recipe_env),
    FIELD(et_recipe_env, load_plugins),
    WHOLE(et_plugin_entry),
    FIELD(et_plugin_entry, name),
    FIELD(et_plugin_entry, path),
    FIELD(et_plugin_entry, sha256),
    FIELD(et_batch, field),
    FIELD(et_batch, fields),
    FIELD(et_batch, n_fields),
    WHOLE(et_batch_field),
    FIELD(et_batch_field, desc),
    FIELD(et_batch_field, host),
    WHOLE(et_field),
    FIELD(et_field, name),
    WHOLE(et_raw_field),
    FIELD(et_raw_field, name),
    FIELD(et_raw_field, desc),
    FIELD(et_raw_field, data),
    WHOLE(et_series),
    FIELD(et_series, name),
    FIELD(et_series, all.n),
    FIELD(et_series, all.bad),
    WHOLE(et_series_point),
    FIELD(et_series_point, ba),
    FIELD(et_series_point, t),
    FIELD(et_series_point, value),
    WHOLE(et_record),
    FIELD(et_record, kind),
    FIELD(et_record, t),
    FIELD(et_record, seq),
    FIELD(et_record, ep),
    FIELD(et_record, ba),
    FIELD(et_record, sp),
    FIELD(et_record, text),
    FIELD(et_record, entry),
    FIELD(et_record, n),
    WHOLE(et_log_entry),
    FIELD(et_log_entry, name),
    FIELD(et_log_entry, value),
};

bool
et_layout_field(const char *name, const char *field, size_t *offset, size_t *size)
{
    if (!name)
        return false;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strcmp(fields[i].owner, name) == 0 && strcmp(fields[i].name, field) == 0) {
            *offset = fields[i].offset;
            *size = fields[i].size;
            return true;
        }
    return false;
}
