/* SPDX-License-Identifier: Apache-2.0 */
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

#include "core/callbacks/callbacks.h"

struct options {
    struct eti_best_options best;
    bool reset_on_train;
    bool load_at_end;
};

static const struct et_option option_table[] = {
    ETI_BEST_OPTIONS(struct options, "best_model.safetensors"),
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

struct saver {
    struct eti_best best;
    bool fitted; /* in this process */
};

static et_status
evaluated(struct et_callback *self, const struct et_state *s, struct et_log *log)
{
    const struct options *o = self->options;
    struct saver *sv = self->state;
    return eti_best_offer(self, &o->best, &sv->best, s, log);
}

static et_status
end(struct et_callback *self, const struct et_state *s, struct et_log *log)
{
    const struct options *o = self->options;
    struct saver *sv = self->state;
    char path[ETI_BEST_PATH];
    sv->fitted = true;
    if (!sv->best.any) {
        if (!sv->best.metric[0])
            eti_pick_warn(&o->best.pick, self->type->info.name, "nothing was saved", s,
                          log);
        return ET_OK;
    }
    if (!o->load_at_end || s->interrupted)
        return ET_OK;
    et_log_text(log, ET_LOG_INFO, &s->timestamp,
                "best_model_saver: the model takes the weights of ep%" PRId64
                "-ba%" PRId64 ", %s %g",
                sv->best.at.epoch, sv->best.at.batch, sv->best.metric, sv->best.best);
    return et_model_load_weights(self->cx, s->model,
                                 eti_best_path(self, &o->best, path));
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
            sv->best.any = false;
        return ET_OK;
    }
    return eti_best_open(self, &o->best);
}

static et_status
archive(struct et_callback *self, struct et_archive *a)
{
    struct saver *sv = self->state;
    return eti_best_archive(&sv->best, a);
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
