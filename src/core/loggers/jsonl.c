/* SPDX-License-Identifier: Apache-2.0 */
/* jsonl.c: metrics.jsonl, a line per batch and per evaluation:
 *
 *     {"t":1763647402.114,"ev":"batch","ep":6,"ba":3825,"sp":7833600,"m":{name:value}}
 *
 * t: seconds since 1970; ep, ba, sp: finished epochs, batches, samples; values with 9
 * significant digits (an f32 comes back exactly), null where one is NaN or infinite.
 * A line that stands for several batches (core/loggers/thin.h) has the values of the
 * last and says "of": how many, "from": the first one's ba, and of numbers that differ
 * among them "min", "max" and "mean" ({name:value} each); "n" and "bad" have how many
 * values of a number there were, and how many of them were not finite, where that is
 * not all, or none. An evaluation's line says "ev":"eval" and of which evaluator:
 * "label":"eval". A run that goes on where another ended says "ev":"resume" first: of a
 * batch that is there twice the last line counts. Lines are written down when an
 * evaluation, an epoch or the run ends, or the buffer is full. */
#include "config.h"

#include <inttypes.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "core/loggers/loggers.h"
#include "core/loggers/spans.h"
#include "core/loggers/thin.h"

struct options {
    char *filename;
    struct et_time record_interval;
};

struct state {
    struct eti_output file;
    struct eti_thin thin;
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
    ETI_RECORD_INTERVAL(struct options),
    {.name = NULL},
};

static void
put_about(FILE *f, const struct et_record *r, enum eti_about about)
{
    const char *before = "{";
    double value;
    if (eti_about_size(r, 0, r->n, about) == 0)
        return;
    fprintf(f, ",\"%s\":", eti_about_key(about));
    for (int i = 0; i < r->n; i++) {
        if (!eti_about_get(r, i, about, &value))
            continue;
        fputs(before, f);
        eti_json_string(f, r->entry[i].name);
        fputc(':', f);
        eti_json_number(f, value);
        before = ",";
    }
    fputc('}', f);
}

void
eti_jsonl_put(FILE *f, const struct et_record *r)
{
    char t[ETI_NUMBER];
    eti_put_fixed(t, r->t, 3);
    fprintf(f,
            "{\"t\":%s,\"ev\":\"%s\",\"ep\":%" PRId64 ",\"ba\":%" PRId64
            ",\"sp\":%" PRId64,
            t, et_record_name(r->kind), r->ep, r->ba, r->sp);
    if (r->text) {
        fputs(r->kind == ET_RECORD_EVAL ? ",\"label\":" : ",\"text\":", f);
        eti_json_string(f, r->text);
    }
    if (r->of > 0)
        fprintf(f, ",\"of\":%" PRId64 ",\"from\":%" PRId64, r->of, r->from);
    if (r->kind == ET_RECORD_BATCH || r->n > 0) {
        fputs(",\"m\":", f);
        eti_json_metrics(f, r->entry, r->n);
    }
    for (int i = 0; i < ETI_ABOUT_COUNT; i++)
        put_about(f, r, (enum eti_about)i);
    fputs("}\n", f);
}

static void
put(void *data, const struct et_record *r)
{
    struct state *own = data;
    eti_jsonl_put(own->file.f, r);
    own->thin.bytes = eti_output_bytes(&own->file);
}

/* When the first line of the file was written; 0: it has none. */
static double
find_beginning(const struct eti_output *file)
{
    char text[64] = "";
    double t;
    if (pread(fileno(file->f), text, sizeof text - 1, 0) <= 0 ||
        sscanf(text, "{\"t\":%lf", &t) != 1)
        return 0;
    return t;
}

static et_status
open_file(struct et_callback *self)
{
    const struct options *o = self->options;
    struct state *own = self->state;
    eti_thin_init(&own->thin, self->cx, o->record_interval, put, own);
    ET_TRY(eti_output_open(self->cx, self->run_directory, o->filename, &own->file));
    (void)eti_output_holds_lines(&own->file); /* and one cut off is ended, once */
    eti_output_flush(&own->file);
    own->thin.begun = find_beginning(&own->file);
    own->thin.bytes = eti_output_bytes(&own->file);
    return ET_OK;
}

static et_status
run(struct et_callback *self, enum et_event event, const struct et_state *state,
    struct et_log *log)
{
    struct state *own = self->state;
    struct eti_output *file = &own->file;
    if (event == ET_EVENT_INIT)
        return open_file(self);
    struct et_record r = eti_record(event, state, log);
    if (event == ET_EVENT_AFTER_LOAD) {
        if (eti_output_holds_lines(file)) /* from here on batches are done again */
            eti_thin_put(&own->thin, &r);
        return ET_OK;
    }
    if (event == ET_EVENT_BATCH_END || (event == ET_EVENT_EVAL_END && r.n > 0))
        eti_thin_put(&own->thin, &r); /* (an evaluation without any was broken off) */
    bool saved = event != ET_EVENT_BATCH_CHECKPOINT || state->checkpoint_due;
    if (event == ET_EVENT_FIT_END || (event == ET_EVENT_BATCH_CHECKPOINT && saved))
        eti_thin_flush(&own->thin);
    if (event != ET_EVENT_BATCH_END && saved) /* or a crash would leave a gap */
        eti_output_flush(file);
    return ET_OK;
}

static void
close_file(struct et_callback *self)
{
    struct state *own = self->state;
    if (own->file.f)
        eti_thin_flush(&own->thin);
    eti_thin_release(&own->thin);
    eti_output_close(&own->file);
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
    .state_size = sizeof(struct state),
    .is_logger = true,
    .events = ET_ON(INIT) | ET_ON(AFTER_LOAD) | ET_ON(BATCH_END) | ET_ON(EVAL_END) |
              ET_ON(BATCH_CHECKPOINT) | ET_ON(EPOCH_END) | ET_ON(FIT_END),
    .run = run,
    .close = close_file,
};
