/* SPDX-License-Identifier: Apache-2.0 */
/* csv.c: metrics.csv, a row per number, so that columns need not be known beforehand:
 *
 *     t,ev,ep,ba,sp,name,value
 *     1763647402.114,batch,6,3825,7833600,loss/train/total,0.8123
 *
 * A run that goes on where another ended has a row without name and value first, with
 * the ev "resume": of a batch that is there twice the last rows count.
 *
 * A record of events.log that stands for several batches becomes the rows of the last.
 * Numbers that differ among them have more rows, named min(NAME), max(NAME) and
 * mean(NAME); those that not all had, or of which some were not finite, n(NAME) and
 * bad(NAME).
 *
 * Numbers as in metrics.jsonl, but nan and inf are written so. A name with a comma or a
 * quote stands in quotes (RFC 4180, but for the line ends, which are those of Unix);
 * what would end a row or move a terminal is made visible, \\x0a, so that a row is a
 * line. */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "core/loggers/loggers.h"
#include "core/loggers/spans.h"
#include "etude/diagnostic.h"

struct options {
    char *filename;
};

static const struct et_option option_table[] = {
    {
        .name = "filename",
        .type = ET_OPT_TEXT,
        .offset = offsetof(struct options, filename),
        .def = "metrics.csv",
        .flags = ET_OPT_OUTPUT,
        .help = "file in the run directory",
    },
    {.name = NULL},
};

void
eti_csv_header(FILE *f)
{
    fputs("t,ev,ep,ba,sp,name,value\n", f);
}

/* The columns before the name, which are the same in all rows of a record. */
struct when {
    char text[ETI_NUMBER + 96];
    size_t n;
};

static void
find_when(const struct et_record *r, struct when *w)
{
    int n = eti_put_fixed(w->text, r->t, 3);
    n += snprintf(w->text + n, sizeof w->text - (size_t)n,
                  ",%s,%" PRId64 ",%" PRId64 ",%" PRId64 ",", et_record_name(r->kind),
                  r->ep, r->ba, r->sp);
    w->n = (size_t)n;
}

/* NAME, or ABOUT(NAME). */
static void
put_name(FILE *f, const char *about, const char *name)
{
    char visible[4 * ET_METRIC_NAME + 1];
    et_visible(visible, sizeof visible, name, strlen(name));
    bool is_plain = !strpbrk(visible, ",\"");
    if (!is_plain)
        fputc('"', f);
    if (about)
        fprintf(f, "%s(", about);
    for (const char *at = visible; *at; at++) {
        if (*at == '"')
            fputc('"', f);
        fputc(*at, f);
    }
    if (about)
        fputc(')', f);
    if (!is_plain)
        fputc('"', f);
}

static void
put_row(FILE *f, const struct when *when, const char *about, const char *name,
        double value)
{
    char number[ETI_NUMBER + 2] = ",";
    int n = 1 + eti_put_nine(number + 1, value);
    number[n++] = '\n';
    fwrite(when->text, 1, when->n, f);
    put_name(f, about, name);
    fwrite(number, 1, (size_t)n, f);
}

void
eti_csv_put(FILE *f, const struct et_record *r)
{
    struct when when;
    find_when(r, &when);
    for (int i = 0; i < r->n; i++)
        put_row(f, &when, NULL, r->entry[i].name, r->entry[i].value);
    for (int about = 0; about < ETI_ABOUT_COUNT && r->span; about++)
        for (int i = 0; i < r->n; i++) {
            double value;
            if (!eti_about_get(r, i, (enum eti_about)about, &value))
                continue;
            put_row(f, &when, eti_about_key((enum eti_about)about), r->entry[i].name,
                    value);
        }
}

/* The first row: what the columns are, or that the rows of an earlier run go on. */
static void
begin(struct eti_output *file, const struct et_record *r)
{
    if (!eti_output_holds_lines(file)) {
        eti_csv_header(file->f);
        return;
    }
    struct when when;
    find_when(r, &when);
    fwrite(when.text, 1, when.n, file->f);
    fputs(",\n", file->f);
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
        begin(file, &r);
        return ET_OK;
    }
    if (event == ET_EVENT_BATCH_END || event == ET_EVENT_EVAL_END)
        eti_csv_put(file->f, &r);
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

const struct et_callback_class et_logger_csv = {
    .info =
        {
            .name = "csv",
            .class_name = "CSVLogger",
            .summary = "metrics.csv: a row per number",
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
