/* SPDX-License-Identifier: Apache-2.0 */
/* progress.c: when progress is shown; how is in bar.c, plain.c, progress_json.c. */
#include "config.h"

#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "core/loggers/progress.h"
#include "core/base/need.h"
#include "etude/diagnostic.h"

/* ---- text that the ways share ---- */

const char *
eti_duration_text(double seconds, char *buf, size_t n)
{
    static const struct {
        double from;
        long long big, small;
        const char *format;
    } forms[] = {
        {86400, 86400, 3600, "%lldd%02lldh"},
        {3600, 3600, 60, "%lldh%02lldm"},
        {60, 60, 1, "%lldm%02llds"},
    };
    if (!(seconds >= 0 && seconds < 1e15)) {
        snprintf(buf, n, "-");
        return buf;
    }
    long long whole = (long long)seconds;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (seconds >= forms[i].from) {
            snprintf(buf, n, forms[i].format, whole / forms[i].big,
                     whole % forms[i].big / forms[i].small);
            return buf;
        }
    snprintf(buf, n, "%llds", whole);
    return buf;
}

const char *
eti_value_text(double value, char *buf, size_t n)
{
    double size = fabs(value);
    bool plain = value == 0 || (size >= 1e-3 && size < 1e6);
    if (isnan(value))
        snprintf(buf, n, "nan"); /* whatever its sign */
    else
        snprintf(buf, n, plain ? "%.4f" : "%.4g", value);
    return buf;
}

/* Where a short label exists, it is used (GLOSSARY.md). */
static const char *
label_of(const char *name)
{
    static const char *const labels[][2] = {
        {"Accuracy", "accuracy"},
        {"CrossEntropy", "ce"},
        {"LanguageCrossEntropy", "ce"},
        {"LanguagePerplexity", "perplexity"},
        {"MIoU", "miou"},
    };
    const char *last = strrchr(name, '/');
    last = last ? last + 1 : name;
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
        if (strcmp(last, labels[i][0]) == 0)
            return labels[i][1];
    return last;
}

void
eti_put_metrics(FILE *f, const struct et_log *log)
{
    int n;
    const struct et_log_entry *entry = et_log_entries(log, &n);
    char value[32];
    for (int i = 0; i < n; i++)
        if (strncmp(entry[i].name, "metrics/", 8) == 0)
            et_print(f, " %s=%s", label_of(entry[i].name),
                     eti_value_text(entry[i].value, value, sizeof value));
}

void
eti_put_text(FILE *f, const char *text)
{
    char visible[ET_VISIBLE_MAX + 1];
    fputs(et_visible(visible, sizeof visible, text, strlen(text)), f);
}

/* ---- when ---- */

/* Is a line of training due? The first batch is, so that people see life. */
static bool
is_due(struct eti_progress *p, const struct et_state *s)
{
    const struct et_time every = p->config.every;
    double seconds = p->style->seconds;
    if (every.unit == ET_TIME_BATCH) {
        if (s->timestamp.batch < p->next_batch)
            return false;
        p->next_batch =
            (s->timestamp.batch / (int64_t)every.value + 1) * (int64_t)every.value;
        return true;
    }
    if (every.unit == ET_TIME_SECOND)
        seconds = every.value;
    double t = eti_monotonic(p->cx);
    if (t < p->next)
        return false;
    p->next = t + seconds;
    return true;
}

static et_status
run(struct et_callback *self, enum et_event event, const struct et_state *s,
    struct et_log *log)
{
    struct eti_progress *p = self->state;
    const struct eti_style *style = p->style;
    int n;
    void (*show)(struct eti_progress *, const struct et_state *,
                 const struct et_log *) = NULL;
    switch (event) {
    case ET_EVENT_BATCH_END:
        p->has_trained = true;
        p->left = eti_remaining_batch_end(&p->remaining, s);
        p->epoch_seconds = s->timestamp.epoch_wct;
        show = is_due(p, s) ? style->batch : NULL;
        break;
    case ET_EVENT_EVAL_START:
        p->eval_start = eti_monotonic(p->cx);
        break;
    case ET_EVENT_EVAL_BATCH_END:
        p->eval_seconds = eti_monotonic(p->cx) - p->eval_start;
        show = style->eval_batch && is_due(p, s) ? style->eval_batch : NULL;
        break;
    case ET_EVENT_EPOCH_END:
        show = style->epoch;
        break;
    case ET_EVENT_EVAL_END:
        eti_remaining_eval_end(&p->remaining, s);
        (void)et_log_entries(log, &n);
        show = n > 0 ? style->eval : NULL; /* none: it was broken off */
        break;
    case ET_EVENT_FIT_END:
        show = style->fit_end;
        break;
    default:
        break;
    }
    if (show) {
        show(p, s, log);
        fflush(p->config.out);
    }
    return ET_OK;
}

static void
text(struct et_callback *self, enum et_log_level level, const char *line)
{
    struct eti_progress *p = self->state;
    p->style->text(p, level, line);
    fflush(p->config.out);
}

static void
close_progress(struct et_callback *self)
{
    struct eti_progress *p = self->state;
    if (p->style->close)
        p->style->close(p);
    fflush(p->config.out);
    if (p->terminal >= 0)
        close(p->terminal);
    p->terminal = -1;
}

void
et_progress_notice(struct et_callback *progress, const struct et_run_notice *notice)
{
    if (!progress || !notice)
        return;
    struct eti_progress *p = progress->state;
    p->style->notice(p, notice);
    fflush(p->config.out);
}

void
et_progress_clear(struct et_callback *progress)
{
    if (!progress)
        return;
    struct eti_progress *p = progress->state;
    if (p->style->clear)
        p->style->clear(p);
    fflush(p->config.out);
}

static const struct et_callback_class progress_class = {
    .info =
        {
            .name = "progress",
            .class_name = "Progress",
            .summary = "a bar, plain lines, or JSON lines",
            .source = "MosaicML Composer, ProgressBarLogger",
            .applies_to = "any",
        },
    .state_size = sizeof(struct eti_progress),
    .is_logger = true,
    .events = ET_ON(BATCH_END) | ET_ON(EPOCH_END) | ET_ON(EVAL_START) |
              ET_ON(EVAL_BATCH_END) | ET_ON(EVAL_END) | ET_ON(FIT_END),
    .run = run,
    .text = text,
    .close = close_progress,
};

void
eti_progress_clear(const struct et_state *s)
{
    for (int i = 0; i < s->n_callbacks; i++) {
        struct eti_progress *p = s->callbacks[i]->state;
        if (s->callbacks[i]->type != &progress_class || !p->style->clear)
            continue;
        p->style->clear(p);
        fflush(p->config.out);
    }
}

et_status
et_progress_new(struct et_ctx *cx, const struct et_progress *config,
                struct et_callback **out)
{
    ETI_NEED(cx, cx, config, out);
    static const struct eti_style *const styles[] = {
        [ET_PROGRESS_BAR] = &eti_style_bar,
        [ET_PROGRESS_PLAIN] = &eti_style_plain,
        [ET_PROGRESS_JSON] = &eti_style_json,
    };
    const struct et_time every = config->every;
    bool has = et_time_is_set(every) && every.value > 0;
    if (has && every.unit != ET_TIME_SECOND && every.unit != ET_TIME_BATCH) {
        char buf[ET_TIME_TEXT_BYTES];
        return ET_FAIL(cx, ET_EINVAL,
                       "progress every %s: only seconds or batches will do",
                       et_time_text(every, buf, sizeof buf));
    }
    ET_TRY(et_callback_new(cx, &progress_class, NULL, NULL, out));
    struct eti_progress *p = (*out)->state;
    p->cx = cx;
    p->config = *config;
    p->config.every = has ? every : ET_TIME_UNSET;
    p->style = styles[config->kind];
    p->left = NAN;
    int fd = fileno(config->out);
    p->terminal = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
    return ET_OK;
}
