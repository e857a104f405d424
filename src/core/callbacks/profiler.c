/* SPDX-License-Identifier: Apache-2.0 */
/* profiler.c: spans of some batches as Chrome trace files, for Perfetto and
 * chrome://tracing.
 *
 * After skip_first batches, cycles of wait, warmup and active ones; each cycle's active
 * batches, with what follows them until the next is fetched, make one file,
 * traces/ep{epoch}-ba{batch}-rank{rank}.json of the first of them. Warmup ones are
 * traced and thrown away, so that the kept ones find the tracer's own code and memory
 * warm. Where there are several ranks, rank 0 puts their files together when a cycle is
 * over, as traces/ep{epoch}-ba{batch}-merged.json: pid is the rank, and its clock is
 * rank 0's.
 *
 *     [
 *     {"ph":"B","cat":"kernel","name":"conv2d","pid":0,"tid":7,"ts":12.3,"args":{...}},
 *     {"ph":"E","cat":"kernel","name":"conv2d","pid":0,"tid":7,"ts":13.6}
 *     ]
 *
 * ts in microseconds of the monotonic clock of rank 0's machine. Only whole events are
 * handed to the system, so a run that is killed leaves a file that lacks no more than
 * its bracket, which both readers allow. The graph computes where values are asked for:
 * kernels stand inside "replay", while "forward" and "backward" are the building of
 * nodes.
 *
 * Source: MosaicML Composer, Profiler, cyclic_schedule, JSONTraceHandler. Differs: the
 * schedule counts batches of the run, not of the epoch. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/need.h"
#include "core/base/seams.h"
#include "core/callbacks/callbacks.h"
#include "core/loggers/loggers.h"
#include "core/trainer/ranks.h"
#include "etude/run.h"
#include "etude/span.h"

enum {
    DEPTH = 32, /* spans open at once; the trainer's own come to 8 */
    NAME = 64,
    DETAIL = 160,
    LINE = 512,
};

enum phase { IDLE, WARMUP, ACTIVE };

struct open_span {
    char category[16], name[NAME];
};

struct profiler {
    struct et_tracer tracer; /* first */
    struct et_ctx *cx;       /* for its clock */
    struct et_recipe_profiler schedule;
    enum phase phase;
    int rank, world;
    int64_t offset;         /* ns from this machine's monotonic clock to rank 0's */
    char stem[64];          /* "traces/ep0-ba2-": of the cycle's files; "": none */
    int64_t cycle;          /* of the file */
    struct eti_output file; /* file.f is NULL while nothing is kept */
    size_t pending;         /* bytes in the file's buffer */
    int64_t thread;
    struct open_span open[DEPTH];
    int depth;
};

/* ---- events ---- */

static int64_t
nanoseconds(const struct profiler *p)
{
    return (int64_t)(eti_monotonic(p->cx) * 1e9) + p->offset;
}

/* TEXT as the inside of a JSON string: what is not plain ASCII becomes '?'. */
static const char *
escape(char *buf, size_t size, const char *text)
{
    size_t used = 0;
    for (const char *p = text; *p && used + 2 < size; p++) {
        if (*p == '"' || *p == '\\')
            buf[used++] = '\\';
        buf[used++] = *p;
        if ((unsigned char)*p < 0x20 || (unsigned char)*p > 0x7e)
            buf[used - 1] = '?';
    }
    buf[used] = '\0';
    return buf;
}

/* An event, and what parts it from the one before. Whole ones leave the buffer. */
static void
put(struct profiler *p, const char *line, int n)
{
    if (!p->file.f)
        return;
    if (p->pending + (size_t)n > ETI_OUTPUT_BUFFER) {
        eti_output_flush(&p->file);
        p->pending = 0;
    }
    fwrite(line, 1, (size_t)n, p->file.f);
    p->pending += (size_t)n;
}

static void
put_span(struct profiler *p, char how, const struct open_span *s, const char *detail)
{
    int64_t t = nanoseconds(p);
    char line[LINE], name[2 * NAME], category[32], text[DETAIL], args[DETAIL + 32] = "";
    if (detail)
        snprintf(args, sizeof args, ",\"args\":{\"detail\":\"%s\"}",
                 escape(text, sizeof text, detail));
    int n = snprintf(line, sizeof line,
                     ",\n{\"ph\":\"%c\",\"cat\":\"%s\",\"name\":\"%s\",\"pid\":%d,"
                     "\"tid\":%" PRId64 ",\"ts\":%" PRId64 ".%03d%s}",
                     how, escape(category, sizeof category, s->category),
                     escape(name, sizeof name, s->name), p->rank, p->thread, t / 1000,
                     (int)(t % 1000), args);
    put(p, line, n);
}

static void
begin(struct et_tracer *tracer, const char *category, const char *name,
      const char *detail)
{
    struct profiler *p = (struct profiler *)tracer;
    if (p->depth == DEPTH)
        return;
    struct open_span *s = &p->open[p->depth++];
    snprintf(s->category, sizeof s->category, "%s", category);
    snprintf(s->name, sizeof s->name, "%s", name);
    put_span(p, 'B', s, detail);
}

/* Ends all spans that are open at DEPTH and deeper. */
static void
unwind(struct profiler *p, int depth)
{
    while (p->depth > depth)
        put_span(p, 'E', &p->open[--p->depth], NULL);
}

static void
end(struct et_tracer *tracer, const char *category, const char *name)
{
    struct profiler *p = (struct profiler *)tracer;
    for (int i = p->depth - 1; i >= 0; i--)
        if (strncmp(p->open[i].name, name, NAME - 1) == 0 &&
            strcmp(p->open[i].category, category) == 0) {
            unwind(p, i);
            return;
        }
}

/* ---- files ---- */

/* Names for the rows of a viewer, and what the clock showed. */
static void
put_header(struct profiler *p, const struct et_state *s)
{
    char line[LINE], run[2 * NAME];
    int64_t t = nanoseconds(p);
    int n = snprintf(
        line, sizeof line,
        "[\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"args\":"
        "{\"name\":\"%s, rank %d\"}},\n"
        "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%" PRId64
        ",\"args\":{\"name\":\"trainer\"}}",
        p->rank, escape(run, sizeof run, s->run_name), p->rank, p->rank, p->thread);
    put(p, line, n);
    n = snprintf(line, sizeof line,
                 ",\n{\"ph\":\"i\",\"s\":\"p\",\"cat\":\"event\",\"name\":\"begin\","
                 "\"pid\":%d,\"tid\":%" PRId64 ",\"ts\":%" PRId64 ".%03d,\"args\":"
                 "{\"unix_seconds\":%.6f,\"finished_batches\":%" PRId64 "}}",
                 p->rank, p->thread, t / 1000, (int)(t % 1000), eti_wall(p->cx),
                 s->timestamp.batch);
    put(p, line, n);
}

static et_status
open_file(struct et_callback *self, const struct et_state *s)
{
    struct profiler *p = self->state;
    char name[96], path[4096];
    snprintf(path, sizeof path, "%s/traces", self->run_directory);
    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return ET_FAIL(self->cx, ET_EIO, "cannot make %s: %s", path, strerror(errno));
    snprintf(name, sizeof name, "%srank%d.json", p->stem, p->rank);
    snprintf(path, sizeof path, "%s/%s", self->run_directory, name);
    unlink(path); /* of the same batches, before the run was resumed */
    ET_TRY(eti_output_open(self->cx, self->run_directory, name, &p->file));
    p->pending = 0;
    put_header(p, s);
    return ET_OK;
}

static void
close_file(struct profiler *p)
{
    unwind(p, 0);
    put(p, "\n]\n", 3);
    eti_output_close(&p->file);
}

/* ---- several ranks ---- */

/* Ranks of one machine have one monotonic clock. Others are as far apart as the clocks
 * of day say, which are set by the network: what differs by less is the reading. */
static et_status
align_clocks(struct profiler *p, struct et_comm *comm)
{
    static const double same = 1e-3; /* seconds */
    void *block;
    ET_TRY(et_alloc(p->cx, (size_t)p->world * sizeof(double), &block));
    double *all = block, own = eti_wall(p->cx) - eti_monotonic(p->cx);
    et_comm_set_mark(comm, -1, ETI_AT_CLOCK, 0);
    et_status status = et_comm_all_gather(p->cx, comm, &own, sizeof own, all);
    double away = status == ET_OK ? own - all[0] : 0;
    p->offset = fabs(away) < same ? 0 : (int64_t)(away * 1e9);
    et_free(p->cx, block);
    return status;
}

/* Appends the events of rank R's file to OUT; *ANY: there are some. */
static et_status
append_trace(struct et_callback *self, const struct profiler *p, int r,
             struct eti_output *out, bool *any)
{
    char path[4096];
    void *block;
    struct stat st;
    int fd;
    snprintf(path, sizeof path, "%s/%srank%d.json", self->run_directory, p->stem, r);
    ET_TRY(eti_open_at(self->cx, AT_FDCWD, path, O_RDONLY, 0, &fd));
    size_t n = fstat(fd, &st) == 0 && st.st_size > 5 ? (size_t)st.st_size : 0;
    et_status status = et_alloc(self->cx, n + 1, &block);
    if (status == ET_OK)
        status = eti_read_all(self->cx, fd, path, block, n, 0);
    /* "[\n" in front of the events, and "\n]\n" behind them */
    if (status == ET_OK && n > 0) {
        if (*any)
            fputs(",\n", out->f);
        *any = true;
        fwrite((char *)block + 2, 1, n - 5, out->f);
    }
    if (block)
        et_free(self->cx, block);
    eti_close(self->cx, fd);
    return status;
}

static et_status
merge(struct et_callback *self, const struct profiler *p)
{
    struct eti_output out = {0};
    char name[96], path[4096];
    et_status status = ET_OK;
    snprintf(name, sizeof name, "%smerged.json", p->stem);
    snprintf(path, sizeof path, "%s/%s", self->run_directory, name);
    unlink(path);
    ET_TRY(eti_output_open(self->cx, self->run_directory, name, &out));
    bool any = false;
    fputs("[\n", out.f);
    for (int r = 0; r < p->world && status == ET_OK; r++) {
        status = append_trace(self, p, r, &out, &any);
        eti_output_flush(&out);
    }
    fputs("\n]\n", out.f);
    eti_output_close(&out);
    return status;
}

/* The cycle is over on all ranks: their files are whole. */
static et_status
end_cycle(struct et_callback *self, struct et_comm *comm)
{
    struct profiler *p = self->state;
    close_file(p);
    if (!p->stem[0])
        return ET_OK;
    if (p->world > 1) {
        et_comm_set_mark(comm, -1, ETI_AT_TRACE, 0);
        ET_TRY(et_comm_barrier(self->cx, comm));
    }
    if (p->world > 1 && p->rank == 0 && merge(self, p) != ET_OK) {
        et_report(self->cx, ET_LOG_WARN, "the traces of the ranks are not merged: %s",
                  et_error_get(self->cx)->message);
        et_error_clear(self->cx);
    }
    p->stem[0] = '\0';
    return ET_OK;
}

/* ---- the schedule ---- */

/* The phase of the batch that follows BATCH finished ones, and its cycle. */
static enum phase
phase_of(const struct et_recipe_profiler *s, int64_t batch, int64_t *cycle)
{
    int64_t length = s->wait + s->warmup + s->active, at = batch - s->skip_first;
    *cycle = at >= 0 ? at / length : -1;
    if (at < 0 || (s->repeat > 0 && *cycle >= s->repeat) || at % length < s->wait)
        return IDLE;
    return at % length < s->wait + s->warmup ? WARMUP : ACTIVE;
}

static et_status
begin_cycle(struct et_callback *self, const struct et_state *s)
{
    struct profiler *p = self->state;
    snprintf(p->stem, sizeof p->stem, "traces/ep%" PRId64 "-ba%" PRId64 "-",
             s->timestamp.epoch, s->timestamp.batch + 1);
    if (p->world > 1)
        ET_TRY(align_clocks(p, s->comm));
    if (open_file(self, s) == ET_OK)
        return ET_OK;
    et_report(self->cx, ET_LOG_WARN, "no profile: %s", et_error_get(self->cx)->message);
    et_error_clear(self->cx);
    return ET_OK;
}

/* Before each batch; not when BEFORE_DATALOADER fires once more at an epoch's end, so
 * that what is done there belongs to the batch before. And when the run ends. */
static et_status
run(struct et_callback *self, enum et_event event, const struct et_state *s,
    struct et_log *log)
{
    struct profiler *p = self->state;
    int64_t cycle;
    enum phase phase = phase_of(&p->schedule, s->timestamp.batch, &cycle);
    (void)log;
    p->rank = s->rank;
    p->world = s->world;
    if (event == ET_EVENT_FIT_END)
        phase = IDLE;
    else if (s->train_len > 0 && s->timestamp.batch_in_epoch == s->train_len)
        return ET_OK;
    if (phase == p->phase && (phase == IDLE || cycle == p->cycle))
        return ET_OK;
    ET_TRY(end_cycle(self, s->comm));
    p->phase = phase;
    p->cycle = cycle;
    et_ctx_set_tracer(self->cx, phase == IDLE ? NULL : &p->tracer);
    return phase == ACTIVE ? begin_cycle(self, s) : ET_OK;
}

static void
finish(struct et_callback *self)
{
    struct profiler *p = self->state;
    if (et_ctx_tracer(self->cx) == &p->tracer)
        et_ctx_set_tracer(self->cx, NULL);
    close_file(p);
}

static const struct et_callback_class profiler_class = {
    .info =
        {
            .name = "profiler",
            .class_name = "Profiler",
            .summary = "traces/: Chrome traces of some batches",
            .source = "MosaicML Composer, Profiler",
            .applies_to = "any",
        },
    .state_size = sizeof(struct profiler),
    .events = ET_ON(BEFORE_DATALOADER) | ET_ON(FIT_END),
    .run = run,
    .close = finish,
};

et_status
et_profiler_new(struct et_ctx *cx, const struct et_recipe_profiler *schedule,
                const char *run_directory, struct et_callback **out)
{
    ETI_NEED(cx, cx, schedule, out);
    *out = NULL;
    if (!run_directory)
        return ET_FAIL(cx, ET_EINVAL, "a profile needs a run directory");
    ET_TRY(et_callback_new(cx, &profiler_class, NULL, run_directory, out));
    struct profiler *p = (*out)->state;
    p->tracer = (struct et_tracer){begin, end};
    p->cx = cx;
    p->schedule = *schedule;
    p->thread = (int64_t)syscall(SYS_gettid);
    return ET_OK;
}
