/* best_model_saver.c: the weights that did best in an evaluation, as a file.
 *
 * After each evaluation that has the watched metric: where its value is the first, or
 * strictly better than the best so far, save_path is replaced by the weights that were
 * evaluated (an average's, where one is in use), at once or not at all. The file's
 * notes say which metric and value it was and when; `etude weights ls` shows them.
 *
 * Source: spec/trainer.md 14.6, SaveBestModel. Differs: f32 safetensors, without the
 * optimizer, which is in checkpoints; watch_metric is a name of GLOSSARY.md, in full or
 * its last part; greater_is_better may be left to the name; after every evaluation, not
 * only at the ends of epochs; loading the best at the end is an option, load_at_end,
 * and is left out in a run that was interrupted. A file that cannot be written is
 * warned about, and the value does not count as the best. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/callbacks/callbacks.h"
#include "core/models/safetensors.h"

struct options {
    char *save_path;
    char *watch_metric;
    int greater_is_better; /* index into false, true; -1: by the name */
    bool reset_on_train;
    bool load_at_end;
};

static const char *const truth[] = {"false", "true", NULL};

static const struct et_option option_table[] = {
    {
        .name = "save_path",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct options, save_path),
        .def = "best_model.safetensors",
        .flags = ET_OPT_OUTPUT,
        .help = "file in the run directory",
    },
    {
        .name = "watch_metric",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct options, watch_metric),
        .flags = ET_OPT_OPTIONAL,
        .help = "an evaluation's metric, its full name or the last part; unset: the "
                "cross entropy",
    },
    {
        .name = "greater_is_better",
        .type = ET_OPT_ENUM,
        .offset = offsetof(struct options, greater_is_better),
        .choices = truth,
        .flags = ET_OPT_OPTIONAL,
        .help = "unset: not for losses, errors, perplexities, entropies",
    },
    {
        .name = "reset_on_train",
        .type = ET_OPT_BOOL,
        .offset = offsetof(struct options, reset_on_train),
        .def = "true",
        .help = "a further call of fit forgets the best value of those before",
    },
    {
        .name = "load_at_end",
        .type = ET_OPT_BOOL,
        .offset = offsetof(struct options, load_at_end),
        .def = "false",
        .help = "the model takes the best weights when training has ended",
    },
    {.name = NULL},
};

enum { PATH_BYTES = 4096 };

struct saver {
    char metric[ET_METRIC_NAME]; /* its full name, once seen */
    bool any;                    /* there is a best value, and a file of it */
    double best;
    struct et_timestamp at; /* when it came */
    bool fitted;            /* in this process */
};

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
find_value(const struct options *o, struct saver *sv, const struct et_state *s,
           double *out)
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
is_better(const struct options *o, const struct saver *sv, double value)
{
    bool greater = o->greater_is_better < 0 ? !eti_less_is_better(sv->metric)
                                            : o->greater_is_better > 0;
    if (isnan(value))
        return false;
    return !sv->any || (greater ? value > sv->best : value < sv->best);
}

static const char *
path_of(const struct et_callback *self, char *buf)
{
    const struct options *o = self->options;
    snprintf(buf, PATH_BYTES, "%s/%s", self->run_directory, o->save_path);
    return buf;
}

static et_status
save(struct et_callback *self, const struct et_state *s, double value)
{
    const struct saver *sv = self->state;
    const struct et_timestamp *ts = &s->timestamp;
    char path[PATH_BYTES], number[32], epoch[24], batch[24];
    snprintf(number, sizeof number, "%.9g", value);
    snprintf(epoch, sizeof epoch, "%" PRId64, ts->epoch);
    snprintf(batch, sizeof batch, "%" PRId64, ts->batch);
    const struct eti_st_note notes[] = {
        {"metric", sv->metric}, {"value", number},    {"ep", epoch},
        {"ba", batch},          {"run", s->run_name},
    };
    return eti_model_save(self->cx, s->model, s->seed, notes,
                          sizeof notes / sizeof *notes, path_of(self, path));
}

static et_status
evaluated(struct et_callback *self, const struct et_state *s, struct et_log *log)
{
    const struct options *o = self->options;
    struct saver *sv = self->state;
    double value;
    if (!find_value(o, sv, s, &value) || !is_better(o, sv, value))
        return ET_OK;
    et_status status = save(self, s, value);
    if (status == ET_ENOMEM)
        return status;
    if (status != ET_OK) {
        et_log_text(log, ET_LOG_WARN, &s->timestamp,
                    "best_model_saver: %s; %s %g is not kept",
                    et_error_get(self->cx)->message, sv->metric, value);
        et_error_clear(self->cx);
        return ET_OK;
    }
    sv->any = true;
    sv->best = value;
    sv->at = s->timestamp;
    et_log_text(log, ET_LOG_INFO, &s->timestamp,
                "best_model_saver: %s %g, the best so far", sv->metric, value);
    return ET_OK;
}

static et_status
end(struct et_callback *self, const struct et_state *s, struct et_log *log)
{
    const struct options *o = self->options;
    struct saver *sv = self->state;
    char path[PATH_BYTES];
    sv->fitted = true;
    if (!sv->any) {
        if (!s->stop && s->timestamp.epoch > 0 && !sv->metric[0])
            et_log_text(log, ET_LOG_WARN, &s->timestamp,
                        "best_model_saver: no evaluation had %s; nothing was saved",
                        o->watch_metric ? o->watch_metric : "a cross entropy");
        return ET_OK;
    }
    if (!o->load_at_end || s->interrupted)
        return ET_OK;
    et_log_text(log, ET_LOG_INFO, &s->timestamp,
                "best_model_saver: the model takes the weights of ep%" PRId64
                "-ba%" PRId64 ", %s %g",
                sv->at.epoch, sv->at.batch, sv->metric, sv->best);
    return et_model_load_weights(self->cx, s->model, path_of(self, path));
}

static et_status
run(struct et_callback *self, enum et_event event, const struct et_state *s,
    struct et_log *log)
{
    const struct options *o = self->options;
    struct saver *sv = self->state;
    if (event == ET_EVENT_FIT_END)
        return end(self, s, log);
    if (event == ET_EVENT_FIT_START) {
        if (o->reset_on_train && sv->fitted)
            sv->any = false;
        return ET_OK;
    }
    if (!self->run_directory)
        return ET_FAIL(self->cx, ET_EINVAL,
                       "best_model_saver needs a run directory, and there is none");
    if (strlen(self->run_directory) + strlen(o->save_path) + 2 > PATH_BYTES)
        return ET_FAIL(self->cx, ET_EINVAL, "the path of %s is longer than %d bytes",
                       o->save_path, PATH_BYTES - 1);
    return ET_OK;
}

static et_status
archive(struct et_callback *self, struct et_archive *a)
{
    struct saver *sv = self->state;
    ET_TRY(et_archive_text(a, "metric", sv->metric, sizeof sv->metric));
    ET_TRY(et_archive_flag(a, "any", &sv->any));
    ET_TRY(et_archive_f64(a, "best", &sv->best, 1));
    return et_archive_timestamp(a, "at", &sv->at);
}

const struct et_callback_class et_callback_best_model_saver = {
    .info =
        {
            .name = "best_model_saver",
            .class_name = "SaveBestModel",
            .summary = "keeps the weights that did best in an evaluation",
            .source = "pytorch-accelerated, SaveBestModelCallback",
            .applies_to = "any",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct saver),
    .events = ET_ON(INIT) | ET_ON(FIT_START) | ET_ON(FIT_END),
    .evaluated = evaluated,
    .run = run,
    .archive = archive,
};
