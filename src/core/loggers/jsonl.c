/* jsonl.c: metrics.jsonl, a line per batch and per evaluation:
 *
 *     {"t":1763647402.114,"ev":"batch","ep":6,"ba":3825,"sp":7833600,"m":{name:value}}
 *
 * t: seconds since 1970; ep, ba, sp: finished epochs, batches, samples; values with 9
 * significant digits (an f32 comes back exactly), null where one is NaN or infinite.
 * An evaluation's line says "ev":"eval" and of which evaluator: "label":"eval". A run
 * that goes on where another ended says "ev":"resume" first: of a batch that is there
 * twice the last line counts. Lines are written down when an evaluation, an epoch or
 * the run ends, or the buffer is full. */
#include "config.h"

#include <inttypes.h>

#include "core/base/seams.h"
#include "core/loggers/loggers.h"

struct options {
    char *filename;
};

static const struct et_option option_table[] = {
    {
        .name = "filename",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct options, filename),
        .def = "metrics.jsonl",
        .flags = ET_OPT_OUTPUT,
        .help = "file in the run directory",
    },
    {.name = NULL},
};

void
eti_jsonl_put(FILE *f, const struct et_record *r)
{
    fprintf(f,
            "{\"t\":%.3f,\"ev\":\"%s\",\"ep\":%" PRId64 ",\"ba\":%" PRId64
            ",\"sp\":%" PRId64,
            r->t, et_record_name(r->kind), r->ep, r->ba, r->sp);
    if (r->text) {
        fputs(r->kind == ET_RECORD_EVAL ? ",\"label\":" : ",\"text\":", f);
        eti_json_string(f, r->text);
    }
    if (r->kind == ET_RECORD_BATCH || r->n > 0) {
        fputs(",\"m\":", f);
        eti_json_metrics(f, r->entry, r->n);
    }
    fputs("}\n", f);
}

static et_status
run(struct et_callback *self, enum et_event event, const struct et_state *state,
    struct et_log *log)
{
    const struct options *o = self->options;
    struct eti_output *file = self->state;
    if (event == ET_EVENT_INIT)
        return eti_output_open(self->cx, self->run_directory, o->filename, file);
    struct et_record r = eti_record(event, state, log);
    if (event == ET_EVENT_AFTER_LOAD) {
        if (eti_output_holds_lines(file)) /* from here on batches are done again */
            eti_jsonl_put(file->f, &r);
        return ET_OK;
    }
    if (event == ET_EVENT_BATCH_END || (event == ET_EVENT_EVAL_END && r.n > 0))
        eti_jsonl_put(file->f, &r); /* (an evaluation without any was broken off) */
    bool saved = event != ET_EVENT_BATCH_CHECKPOINT || state->checkpoint_due;
    if (event != ET_EVENT_BATCH_END && saved) /* or a crash would leave a gap */
        eti_output_flush(file);
    return ET_OK;
}

static void
close_file(struct et_callback *self)
{
    eti_output_close(self->state);
}

const struct et_callback_class et_logger_jsonl = {
    .info =
        {
            .name = "jsonl",
            .class_name = "JSONLogger",
            .summary = "metrics.jsonl: a line per batch and per evaluation",
            .applies_to = "any",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct eti_output),
    .is_logger = true,
    .events = ET_ON(INIT) | ET_ON(AFTER_LOAD) | ET_ON(BATCH_END) | ET_ON(EVAL_END) |
              ET_ON(BATCH_CHECKPOINT) | ET_ON(EPOCH_END) | ET_ON(FIT_END),
    .run = run,
    .close = close_file,
};
