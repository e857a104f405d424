/* SPDX-License-Identifier: Apache-2.0 */
/* loggers.c: the list of loggers, and what they share. */
#include "config.h"

#include "core/loggers/loggers.h"
#include "etude/algorithm.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "core/base/utf8.h"

const struct et_callback_class *const et_logger_classes[] = {
#define ET_LOGGER(name) &et_logger_##name,
#include "core/loggers/loggers.def"
#undef ET_LOGGER
    NULL,
};

const struct et_callback_class *
et_logger_find(const char *name)
{
    if (!name)
        return NULL;
    for (const struct et_callback_class *const *c = et_logger_classes; *c; c++)
        if (strcmp((*c)->info.name, name) == 0)
            return *c;
    return NULL;
}

et_status
eti_output_open(struct et_ctx *cx, const char *directory, const char *name,
                struct eti_output *out)
{
    char path[4096];
    if (!directory)
        return ET_FAIL(cx, ET_EINVAL, "%s needs a run directory, and there is none",
                       name);
    if ((size_t)snprintf(path, sizeof path, "%s/%s", directory, name) >= sizeof path)
        return ET_FAIL(cx, ET_EINVAL, "the path of %s is longer than %zu bytes", name,
                       sizeof path - 1);
    *out = (struct eti_output){.cx = cx};
    snprintf(out->name, sizeof out->name, "%s", name);
    ET_TRY(et_alloc(cx, ETI_OUTPUT_BUFFER + strlen(path) + 1, &out->buffer));
    out->path = memcpy((char *)out->buffer + ETI_OUTPUT_BUFFER, path, strlen(path) + 1);
    int fd = eti_ctx_seams(cx)->file.open(
        AT_FDCWD, path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    out->f = fd < 0 ? NULL : fdopen(fd, "a+");
    if (!out->f) {
        et_status status =
            ET_FAIL(cx, ET_EIO, "cannot write %s: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        et_free(cx, out->buffer);
        out->buffer = NULL;
        return status;
    }
    setvbuf(out->f, out->buffer, _IOFBF, ETI_OUTPUT_BUFFER);
    return ET_OK;
}

bool
eti_output_holds_lines(struct eti_output *f)
{
    char last;
    struct stat st;
    int fd = fileno(f->f);
    if (fstat(fd, &st) != 0 || st.st_size == 0)
        return false;
    if (pread(fd, &last, 1, st.st_size - 1) == 1 && last != '\n')
        fputc('\n', f->f);
    return true;
}

int64_t
eti_output_bytes(const struct eti_output *f)
{
    struct stat st;
    return f->f && fstat(fileno(f->f), &st) == 0 ? (int64_t)st.st_size : 0;
}

static void
judge(struct eti_output *f, bool fine)
{
    if (fine || f->failed)
        return;
    f->failed = true;
    et_report(f->cx, ET_LOG_WARN, "cannot write %s: %s; it will have gaps", f->name,
              strerror(errno));
}

/* All that is in FROM, to the end of TO. */
static bool
copy_all(struct et_ctx *cx, int from, int to, const char *path)
{
    char some[16 << 10];
    off_t at = 0;
    ssize_t n;
    while ((n = pread(from, some, sizeof some, at)) > 0) {
        if (eti_write_all(cx, to, path, some, (size_t)n) != ET_OK) {
            et_error_clear(cx);
            return false;
        }
        at += n;
    }
    return n == 0;
}

/* Its file has no name any more: another, with what was in it. Of several who write it
 * the first makes it, and the others go on there. Folders are not made again, but for
 * one within the run directory. */
void
eti_output_restore(struct eti_output *f)
{
    int fd = fileno(f->f);
    int (*const open_file)(int, const char *, int, mode_t) =
        eti_ctx_seams(f->cx)->file.open;
    const int flags = O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC;
    struct stat st;
    char folder[4096];
    const char *slash = strrchr(f->path, '/');
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_nlink > 0)
        return;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - f->path), f->path);
    if (strchr(f->name, '/'))
        (void)eti_ctx_seams(f->cx)->file.make_folder(AT_FDCWD, folder, 0700);
    int new = open_file(AT_FDCWD, f->path, flags | O_EXCL, 0600);
    bool whole = new >= 0 && copy_all(f->cx, fd, new, f->path);
    if (new < 0 && errno == EEXIST) {
        new = open_file(AT_FDCWD, f->path, flags, 0600);
        whole = true;
    }
    if (new < 0)
        return; /* the folder is gone, too: whoever keeps the run says so */
    (void)dup3(new, fd, O_CLOEXEC);
    close(new);
    et_report(f->cx, ET_LOG_WARN, "%s was removed: it is made again%s", f->name,
              whole ? "" : ", without what was in it");
}

void
eti_output_flush(struct eti_output *f)
{
    if (!f->f)
        return;
    eti_output_restore(f); /* another writer may have made the file anew */
    judge(f, fflush(f->f) == 0 && !ferror(f->f));
    eti_output_restore(f);
}

void
eti_output_close(struct eti_output *f)
{
    if (f->f)
        judge(f, fclose(f->f) == 0);
    f->f = NULL;
    if (f->buffer)
        et_free(f->cx, f->buffer);
    f->buffer = NULL;
}

struct et_record
eti_record(enum et_event event, const struct et_state *state, const struct et_log *log)
{
    bool is_eval = event == ET_EVENT_EVAL_END, is_resume = event == ET_EVENT_AFTER_LOAD;
    struct et_record r = {
        .kind = is_resume ? ET_RECORD_RESUME
                : is_eval ? ET_RECORD_EVAL
                          : ET_RECORD_BATCH,
        .t = eti_wall(state->cx),
        .ep = state->timestamp.epoch,
        .ba = state->timestamp.batch,
        .sp = state->timestamp.sample,
        .text = is_eval ? state->dataloader_label : NULL,
    };
    if (!is_resume)
        r.entry = et_log_entries(log, &r.n);
    return r;
}

const char *
eti_number_text(double value, char *buf, size_t n)
{
    const double exact = 9007199254740992; /* 2^53 */
    double size = fabs(value);
    char text[ETI_NUMBER];
    if (isnan(value)) { /* whatever its sign */
        snprintf(buf, n, "nan");
        return buf;
    }
    bool is_whole = value == trunc(value) && size < exact;
    if (is_whole || (size >= 1e-3 && size < 1e6))
        eti_put_fixed(text, value, is_whole ? 0 : 4);
    else
        snprintf(text, sizeof text, "%.4g", value);
    snprintf(buf, n, "%s", text);
    return buf;
}

const char *
eti_trace_text(const struct et_algorithm *a, enum et_event event, char *buf)
{
    snprintf(buf, ETI_TRACE, "algorithm_traces/%.96s/%s: 1", a->type->info.class_name,
             et_event_name(event));
    return buf;
}

/* A run is one rank on one node, so far. */
bool
eti_hyperparameter(const struct et_state *s, int i, char *name, char *value)
{
    static const char *const ranks[] = {"num_cpus_per_node", "num_nodes"};
    int more = i - s->n_algorithms;
    snprintf(value, 32, more < 0 ? "true" : "1");
    if (more < 0)
        snprintf(name, ET_METRIC_NAME, "enabled_algorithms/%.70s",
                 s->algorithms[i]->type->info.class_name);
    else if (more < 2)
        snprintf(name, ET_METRIC_NAME, "%s", ranks[more]);
    else if (more == 2) {
        snprintf(name, ET_METRIC_NAME, "rank_zero_seed");
        snprintf(value, 32, "%" PRIu32, s->seed);
    }
    return more <= 2;
}

void
eti_json_number(FILE *f, double value)
{
    const double exact = 9007199254740992; /* 2^53 */
    char text[ETI_NUMBER];
    if (!isfinite(value)) {
        fputs("null", f);
        return;
    }
    bool is_whole = value == trunc(value) && fabs(value) < exact;
    int n = is_whole ? eti_put_fixed(text, value, 0) : eti_put_nine(text, value);
    fwrite(text, 1, (size_t)n, f);
}

/* How many of TEXT's first bytes stand for themselves in JSON: those of ASCII but for
 * quotes, backslashes and what moves a terminal. */
static size_t
count_plain(const char *text)
{
    size_t n = 0;
    while (text[n] >= ' ' && text[n] < 0x7f && text[n] != '"' && text[n] != '\\')
        n++;
    return n;
}

void
eti_json_string(FILE *f, const char *text)
{
    size_t plain = count_plain(text);
    fputc('"', f);
    fwrite(text, 1, plain, f);
    text += plain;
    for (size_t n = strlen(text), length; n > 0; n -= length, text += length) {
        uint32_t u = 0;
        int bytes = eti_utf8_decode(text, n, &u);
        length = bytes > 0 ? (size_t)bytes : 1;
        if (bytes == 0)
            fputs("\\ufffd", f);
        else if (eti_is_hostile(u))
            fprintf(f, "\\u%04x", (unsigned)u);
        else if (u == '"' || u == '\\')
            fprintf(f, "\\%c", (int)u);
        else
            fwrite(text, 1, length, f);
    }
    fputc('"', f);
}

void
eti_json_metrics(FILE *f, const struct et_log_entry *entry, int n)
{
    fputc('{', f);
    for (int i = 0; i < n; i++) {
        if (i)
            fputc(',', f);
        eti_json_string(f, entry[i].name);
        fputc(':', f);
        eti_json_number(f, entry[i].value);
    }
    fputc('}', f);
}
