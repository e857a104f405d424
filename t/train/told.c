/* SPDX-License-Identifier: Apache-2.0 */
/* told.c: see told.h. */
#include "config.h"

#include "t/train/told.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "etude/comm.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "core/trainer/state.h"

enum { TEXT = 1 << 16, METRICS = 160, RECORDS = 64 };

struct metric {
    char name[ET_METRIC_NAME];
    uint64_t kinds; /* of records that had it */
    double value[RECORDS];
    bool has[RECORDS];
};

struct stream {
    struct et_sink sink; /* first */
    struct {
        enum et_record_kind kind;
        int64_t ep, ba;
        char text[64];
        int n_messages; /* so far, and their bytes */
        size_t message_bytes;
    } record[RECORDS];
    int n_records, n_metrics, n_messages;
    struct metric metric[METRICS];
    char messages[TEXT];
};

static struct metric *
find_metric(struct stream *s, const char *name)
{
    for (int i = 0; i < s->n_metrics; i++)
        if (strcmp(s->metric[i].name, name) == 0)
            return &s->metric[i];
    if (s->n_metrics == METRICS)
        bail("more than %d metrics", METRICS);
    struct metric *m = &s->metric[s->n_metrics++];
    snprintf(m->name, sizeof m->name, "%s", name);
    return m;
}

/* What came behind the checkpoint of a run that is resumed there, as R says, is told
 * again, as in the log of a run. */
static void
forget_the_rest(struct stream *s, const struct et_record *r)
{
    int n = s->n_records;
    while (n > 0 && (s->record[n - 1].ba > r->ba || s->record[n - 1].ep > r->ep ||
                     s->record[n - 1].kind == ET_RECORD_EVAL))
        n--;
    for (int i = 0; i < s->n_metrics; i++)
        for (int at = n; at < s->n_records; at++)
            s->metric[i].has[at] = false;
    s->n_records = n;
    s->n_messages = n > 0 ? s->record[n - 1].n_messages : 0;
    s->messages[n > 0 ? s->record[n - 1].message_bytes : 0] = '\0';
}

static void
keep(struct et_sink *sink, const struct et_record *r)
{
    struct stream *s = (struct stream *)sink;
    if (r->kind == ET_RECORD_LOG) {
        size_t n = strlen(s->messages);
        snprintf(s->messages + n, sizeof s->messages - n, "says.%d@%lld %s\n",
                 ++s->n_messages, (long long)r->ba, r->text);
        return;
    }
    if (r->kind == ET_RECORD_CHECKPOINT)
        return;
    if (r->kind == ET_RECORD_RESUME) {
        forget_the_rest(s, r);
        return;
    }
    if (s->n_records == RECORDS)
        bail("more than %d records", RECORDS);
    int at = s->n_records++;
    s->record[at].kind = r->kind;
    s->record[at].ep = r->ep;
    s->record[at].ba = r->ba;
    s->record[at].n_messages = s->n_messages;
    s->record[at].message_bytes = strlen(s->messages);
    snprintf(s->record[at].text, sizeof s->record[at].text, "%s",
             r->text ? r->text : "");
    for (int i = 0; i < r->n; i++) {
        if (strncmp(r->entry[i].name, "memory/", 7) == 0)
            continue; /* each device has its own */
        struct metric *m = find_metric(s, r->entry[i].name);
        m->kinds |= UINT64_C(1) << r->kind;
        m->value[at] = r->entry[i].value;
        m->has[at] = true;
    }
}

bool
told_varies(const char *name)
{
    static const char *const begin[] = {"throughput/",  "time/train",  "time/val",
                                        "time/total",   "wall_clock/", "time/remaining",
                                        "system/",      "cpu/",        "gpu/",
                                        "time/seconds", "disk/"};
    for (size_t i = 0; i < sizeof begin / sizeof *begin; i++)
        if (strncmp(name, begin[i], strlen(begin[i])) == 0)
            return true;
    return false;
}

static void
print_records(const struct stream *s, FILE *out)
{
    fputs("records", out);
    for (int i = 0, n; i < s->n_records; i += n) {
        for (n = 1; i + n < s->n_records &&
                    s->record[i + n].kind == s->record[i].kind &&
                    s->record[i + n].ba == s->record[i].ba + n;)
            n++;
        fprintf(out, " %s@%lld", et_record_name(s->record[i].kind),
                (long long)s->record[i].ba);
        if (n > 1)
            fprintf(out, "-%lld", (long long)s->record[i + n - 1].ba);
        if (s->record[i].text[0])
            fprintf(out, ":%s", s->record[i].text);
    }
    fputc('\n', out);
}

static void
print_metric(const struct stream *s, const struct metric *m, FILE *out)
{
    fputs(m->name, out);
    for (int i = 0; i < s->n_records; i++)
        if (m->kinds >> s->record[i].kind & 1) {
            if (!m->has[i])
                fputs(" -", out);
            else if (told_varies(m->name))
                fputs(" *", out);
            else if (isnan(m->value[i])) /* whose sign is nobody's choice */
                fputs(" nan", out);
            else
                fprintf(out, " %.6g", m->value[i]);
        }
    fputc('\n', out);
}

/* Running statistics are each rank's own, and the first one's count. */
static void
print_weights(struct recipe_run *r, FILE *out)
{
    struct et_comm *comm = r->parts.config.comm;
    size_t bytes;
    float *w = recipe_params(r, &bytes);
    if (comm && et_comm_rank(comm) > 0)
        bytes = et_desc_bytes(&r->state->params->values->desc);
    double squares = 0, weighted = 0;
    for (size_t i = 0; i < bytes / sizeof *w; i++) {
        squares += (double)w[i] * w[i];
        weighted += fabs((double)w[i]) * (double)(i % 7 + 1);
    }
    fprintf(out, "weights %zu %.6g %.6g\n", bytes / sizeof *w, sqrt(squares), weighted);
    free(w);
}

/* A run that S hears, as far as CHOICE says; what its weights are then, to OUT. */
static void
run(struct et_ctx *cx, const char *recipe, const struct recipe_choice *choice,
    struct stream *s, FILE *out)
{
    struct recipe_run r;
    recipe_prepare(&r, cx, recipe, choice);
    r.parts.config.sink = &s->sink;
    recipe_start(&r);
    recipe_fit(&r);
    if (out)
        print_weights(&r, out);
    recipe_close(&r);
}

static char *
told_with(struct et_ctx *cx, const char *recipe, struct recipe_choice choice,
          int64_t stop)
{
    static struct stream s;
    static int nth;
    char *text, *weights, folder[300], checkpoints[320];
    size_t n, n_weights;
    FILE *out = open_memstream(&text, &n), *end = open_memstream(&weights, &n_weights);
    if (!choice.folder) {
        snprintf(folder, sizeof folder, "%s/run-%d", scratch_folder(), nth++);
        if (mkdir(folder, 0700) != 0)
            bail("cannot make %s", folder);
        choice.folder = folder;
    }
    snprintf(checkpoints, sizeof checkpoints, "%s/checkpoints", choice.folder);
    const struct et_checkpoint_config save = {.directory = checkpoints,
                                              .interval = ET_BATCHES(1000000),
                                              .keep = 1,
                                              .recipe = "of this run",
                                              .incarnation = 1};
    const struct et_load_config load = {.directory = checkpoints,
                                        .recipe = save.recipe};
    if (!out || !end)
        bail("no memory");
    memset(&s, 0, sizeof s);
    s.sink.write = keep;
    if (stop) {
        choice.checkpoint = &save;
        choice.stop_after = stop;
        run(cx, recipe, &choice, &s, NULL);
        choice.stop_after = 0;
        choice.load = &load;
    }
    run(cx, recipe, &choice, &s, end);
    fclose(end);
    print_records(&s, out);
    for (int i = 0; i < s.n_metrics; i++)
        print_metric(&s, &s.metric[i], out);
    fprintf(out, "%s%s", s.messages, weights);
    fclose(out);
    free(weights);
    return text;
}

char *
told(struct et_ctx *cx, const char *recipe, const struct recipe_choice *choice)
{
    return told_with(cx, recipe, *choice, 0);
}

char *
told_in_two(struct et_ctx *cx, const char *recipe, const struct recipe_choice *choice,
            int64_t stop)
{
    return told_with(cx, recipe, *choice, stop);
}
