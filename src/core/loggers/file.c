/* SPDX-License-Identifier: Apache-2.0 */
/* file.c: a file that tells the whole run as text, for people and grep:
 *
 *     [hyperparameter]: rank_zero_seed: 17
 *     [metric][batch=37]: loss/train/total: 2.3026
 *     [log][warn]: batch 4: loss nan, ...
 *     [trace]: algorithm_traces/MixUp/after_dataloader: 1
 *     [stdout]: what the process printed, libraries included
 *     [stderr]: likewise
 *
 * Its name is a template. Lines come in the order in which they were said, but captured
 * ones may lag a little. What the log says at log_level and above is in it, also what
 * no screen shows; what one shows is captured as well.
 *
 * Source: MosaicML Composer, FileLogger. Differs: it appends unless overwrite says
 * otherwise (there it always overwrites: spec/trainer.md appendix B 7); a line ends in
 * no blank; traces are not there unless log_traces says so. */
#include "config.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "core/loggers/capture.h"
#include "core/loggers/loggers.h"

enum { EARLY = 4096, NAME = 96 };

struct options {
    char *filename;
    int log_level;
    bool capture_stdout, capture_stderr, overwrite, log_traces;
    int64_t flush_interval;
};

static const char *const levels[] = {"debug", "info", "warn", "error", NULL};

#define FIELD(field_name, kind)                                                        \
    .name = #field_name, .type = ET_OPT_##kind,                                        \
    .offset = offsetof(struct options, field_name)
static const struct et_option option_table[] = {
    {FIELD(filename, TEXT), .def = "logs-rank{rank}.txt", .flags = ET_OPT_OUTPUT,
     .help = "file in the run directory; {run_name} {rank} {local_rank} {world_size} "
             "{local_world_size} {node_rank} are filled in"},
    {FIELD(log_level, ENUM), .def = "info", .choices = levels,
     .help = "lines of the log from here on"},
    {FIELD(capture_stdout, BOOL), .def = "true", .help = "what is printed, too"},
    {FIELD(capture_stderr, BOOL), .def = "true", .help = "and what goes to stderr"},
    {FIELD(flush_interval, INT), .def = "100", .min = 1, .max = 1e9, .unit = "batches",
     .help = "between writes to the file"},
    {FIELD(overwrite, BOOL), .def = "false", .help = "begin the file anew"},
    {FIELD(log_traces, BOOL), .def = "false",
     .help = "a line whenever an algorithm has acted"},
    {.name = NULL},
};

struct state {
    struct eti_output file;
    struct eti_capture out, err;
    char early[EARLY]; /* lines from before the file is open, each with its newline */
    size_t n_early;
    bool opened, closed;
};

/* ---- the file's name ---- */

/* The first rank of one machine writes it. */
enum field { RUN_NAME, FIRST, WORLD };
static const struct {
    const char *name;
    enum field what;
} fields[] = {
    {"run_name", RUN_NAME}, {"rank", FIRST},      {"local_rank", FIRST},
    {"world_size", WORLD},  {"node_rank", FIRST}, {"local_world_size", WORLD},
};
enum { N_FIELDS = sizeof fields / sizeof *fields };

/* TEMPLATE with its fields filled in, of a run of WORLD ranks. EINVAL if a field is
 * unknown or the name too long. */
static et_status
format_name(struct et_ctx *cx, const char *template, const char *run_name, int world,
            char *buf, size_t size)
{
    size_t used = 0;
    char ranks[16];
    snprintf(ranks, sizeof ranks, "%d", world);
    for (const char *p = template; *p;) {
        const char *piece = p;
        size_t n = strcspn(p, "{");
        if (*p == '{') {
            int i = 0;
            n = strcspn(p + 1, "}");
            while (i < N_FIELDS && (strncmp(fields[i].name, p + 1, n) != 0 ||
                                    fields[i].name[n] != '\0'))
                i++;
            if (i == N_FIELDS || p[1 + n] != '}')
                return ET_FAIL(
                    cx, ET_EINVAL,
                    "filename: {%.*s is not one of {run_name} {rank} "
                    "{local_rank} {world_size} {local_world_size} {node_rank}",
                    (int)(n < 32 ? n : 32), p + 1);
            piece = fields[i].what == RUN_NAME ? run_name
                    : fields[i].what == WORLD  ? ranks
                                               : "0";
            p += n + 2;
            n = strlen(piece);
        } else {
            p += n;
        }
        if (used + n >= size)
            return ET_FAIL(cx, ET_EINVAL, "filename: more than %zu bytes", size - 1);
        memcpy(buf + used, piece, n);
        used += n;
    }
    buf[used] = '\0';
    return ET_OK;
}

static et_status
check(struct et_ctx *cx, const void *options)
{
    const struct options *o = options;
    char name[NAME];
    return format_name(cx, o->filename, "", 1, name, sizeof name);
}

/* ---- lines ---- */

static void
put_stdout(void *data, const char *text, size_t n)
{
    struct eti_output *file = data;
    fprintf(file->f, "[stdout]: %.*s\n", (int)n, text);
}

static void
put_stderr(void *data, const char *text, size_t n)
{
    struct eti_output *file = data;
    fprintf(file->f, "[stderr]: %.*s\n", (int)n, text);
}

/* A line is one call: what is captured comes from threads of its own, between calls. */
static void
put_metrics(FILE *f, const struct et_timestamp *ts, const struct et_log *log)
{
    int n;
    const struct et_log_entry *entry = et_log_entries(log, &n);
    for (int i = 0; i < n; i++) {
        char value[32];
        fprintf(f, "[metric][batch=%" PRId64 "]: %s: %s\n", ts->batch, entry[i].name,
                eti_number_text(entry[i].value, value, sizeof value));
    }
}

static void
put_config(FILE *f, const struct et_state *s)
{
    char name[ET_METRIC_NAME], value[32];
    for (int i = 0; eti_hyperparameter(s, i, name, value); i++)
        fprintf(f, "[hyperparameter]: %s: %s\n", name, value);
}

/* A line of the log, kept while there is no file. What does not fit then is lost. */
static void
text(struct et_callback *self, enum et_log_level level, const char *line)
{
    const struct options *o = self->options;
    struct state *l = self->state;
    if (l->closed || (int)level < o->log_level)
        return;
    if (l->opened) {
        fprintf(l->file.f, "[log][%s]: %s\n", et_log_level_name(level), line);
        if (level >= ET_LOG_WARN)
            fflush(l->file.f); /* no report: that would come back here */
        return;
    }
    int n = snprintf(l->early + l->n_early, EARLY - l->n_early, "[log][%s]: %s\n",
                     et_log_level_name(level), line);
    if (n > 0 && (size_t)n < EARLY - l->n_early)
        l->n_early += (size_t)n;
}

static void
trace(struct et_callback *self, const struct et_state *s, const struct et_algorithm *a,
      enum et_event event)
{
    const struct options *o = self->options;
    struct state *l = self->state;
    char line[ETI_TRACE];
    (void)s;
    if (o->log_traces && l->opened)
        fprintf(l->file.f, "[trace]: %s\n", eti_trace_text(a, event, line));
}

/* ---- opening and closing ---- */

/* Two that capture one descriptor would give it back in the wrong order. */
static et_status
check_alone(const struct et_callback *self, const struct et_state *s)
{
    const struct options *mine = self->options;
    for (int i = 0; i < s->n_callbacks && s->callbacks[i] != self; i++) {
        const struct options *other = s->callbacks[i]->options;
        if (s->callbacks[i]->type == self->type &&
            ((mine->capture_stdout && other->capture_stdout) ||
             (mine->capture_stderr && other->capture_stderr)))
            return ET_FAIL(self->cx, ET_EINVAL,
                           "two file loggers capture the same stream: set "
                           "capture_stdout and capture_stderr to false in one");
    }
    return ET_OK;
}

static et_status
open_file(struct et_callback *self, const struct et_state *s)
{
    const struct options *o = self->options;
    struct state *l = self->state;
    char name[NAME];
    ET_TRY(check_alone(self, s));
    ET_TRY(
        format_name(self->cx, o->filename, s->run_name, s->world, name, sizeof name));
    ET_TRY(eti_output_open(self->cx, self->run_directory, name, &l->file));
    if (o->overwrite && ftruncate(fileno(l->file.f), 0) != 0)
        return ET_FAIL(self->cx, ET_EIO, "cannot empty %s", name);
    l->out.fd = l->err.fd = -1;
    l->opened = true;
    fwrite(l->early, 1, l->n_early, l->file.f);
    if (o->capture_stdout)
        ET_TRY(
            eti_capture_begin(self->cx, STDOUT_FILENO, put_stdout, &l->file, &l->out));
    if (o->capture_stderr)
        ET_TRY(
            eti_capture_begin(self->cx, STDERR_FILENO, put_stderr, &l->file, &l->err));
    return ET_OK;
}

static et_status
run(struct et_callback *self, enum et_event event, const struct et_state *s,
    struct et_log *log)
{
    const struct options *o = self->options;
    struct state *l = self->state;
    if (event == ET_EVENT_INIT)
        return open_file(self, s);
    if (event == ET_EVENT_FIT_START)
        put_config(l->file.f, s);
    if (event == ET_EVENT_BATCH_END || event == ET_EVENT_EPOCH_END ||
        event == ET_EVENT_EVAL_END)
        put_metrics(l->file.f, &s->timestamp, log);
    if (event != ET_EVENT_BATCH_END || s->timestamp.batch % o->flush_interval == 0)
        eti_output_flush(&l->file);
    return ET_OK;
}

static void
close_file(struct et_callback *self)
{
    struct state *l = self->state;
    if (l->opened) {
        eti_capture_end(&l->out);
        eti_capture_end(&l->err);
    }
    l->opened = false;
    l->closed = true;
    eti_output_close(&l->file);
}

const struct et_callback_class et_logger_file = {
    .info =
        {
            .name = "file",
            .class_name = "FileLogger",
            .summary = "a file with numbers, log, and what the process prints",
            .source = "MosaicML Composer, FileLogger",
            .applies_to = "any",
            .options = option_table,
            .options_size = sizeof(struct options),
        },
    .state_size = sizeof(struct state),
    .is_logger = true,
    .events = ET_ON(INIT) | ET_ON(FIT_START) | ET_ON(EPOCH_START) | ET_ON(BATCH_END) |
              ET_ON(EPOCH_END) | ET_ON(EVAL_START) | ET_ON(EVAL_END) | ET_ON(FIT_END),
    .check = check,
    .run = run,
    .text = text,
    .trace = trace,
    .close = close_file,
};
