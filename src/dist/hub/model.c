/* SPDX-License-Identifier: Apache-2.0 */
/* model.c: records become what is known of a run. */
#include "config.h"

#include "dist/hub/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/memory.h"
#include "core/callbacks/callbacks.h"
#include "core/journal/events.h"
#include "core/loggers/spans.h"
#include "dist/hub/step.h"

static void
copy(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from ? from : "");
}

/* ---- a model ---- */

et_status
etd_model_new(struct et_ctx *cx, struct etd_model **out)
{
    void *block;
    *out = NULL;
    ET_TRY(et_alloc(cx, sizeof **out, &block));
    struct etd_model *m = block;
    m->cx = cx;
    m->width = 1;
    m->incarnation = 1;
    m->epoch_t = NAN;
    for (int i = 0; i < ETD_BINS; i++)
        m->axis[i].t = NAN;
    for (size_t i = 0; i < sizeof m->finish / sizeof *m->finish; i++)
        m->finish[i] = NAN;
    *out = m;
    return ET_OK;
}

void
etd_model_free(struct etd_model **out)
{
    struct etd_model *m = *out;
    *out = NULL;
    if (!m)
        return;
    for (int i = 0; i < m->n_series; i++)
        et_free(m->cx, m->series[i].bin);
    et_free(m->cx, m->named);
    et_free(m->cx, m->rank);
    et_free(m->cx, m->algorithm);
    et_free(m->cx, m);
}

/* ---- series ---- */

/* FNV-1a. */
static uint64_t
hash(const char *name)
{
    uint64_t h = UINT64_C(14695981039346656037);
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * UINT64_C(1099511628211);
    return h;
}

/* The slot of NAME, or the free one that it would take. */
static const int16_t *
find_slot(const struct etd_model *m, const char *name)
{
    uint64_t mask = 2 * ETD_SERIES - 1, at = hash(name) & mask;
    while (m->slot[at] && strcmp(m->series[m->slot[at] - 1].name, name) != 0)
        at = (at + 1) & mask;
    return &m->slot[at];
}

const struct etd_series *
etd_model_series(const struct etd_model *m, const char *name)
{
    int16_t slot = *find_slot(m, name);
    return slot ? &m->series[slot - 1] : NULL;
}

const struct etd_series *
etd_model_series_like(const struct etd_model *m, const char *prefix)
{
    for (int i = 0; i < m->n_series; i++)
        if (strncmp(m->series[i].name, prefix, strlen(prefix)) == 0)
            return &m->series[i];
    return NULL;
}

/* The metric of an evaluation, "metrics/eval/Accuracy"; NULL for other names. */
static const char *
evaluated_metric(const char *name)
{
    const char *last = strrchr(name, '/');
    bool is_one =
        strncmp(name, "metrics/", 8) == 0 && strncmp(name + 8, "train/", 6) != 0;
    return is_one ? last + 1 : NULL;
}

/* What counts as best of the series NAME, as in its field. */
static int
better_of(const char *name)
{
    const char *metric = evaluated_metric(name);
    return !metric ? 0 : eti_less_is_better(metric) ? -1 : 1;
}

/* NULL: there are too many already. */
static struct etd_series *
claim_series(struct etd_model *m, const char *name)
{
    if (m->next < m->n_series && strcmp(m->series[m->next].name, name) == 0)
        return &m->series[m->next++];
    int16_t *slot = &m->slot[find_slot(m, name) - m->slot];
    if (*slot) {
        m->next = *slot;
        return &m->series[*slot - 1];
    }
    if (m->n_series == ETD_SERIES)
        return NULL;
    struct etd_series *s = &m->series[m->n_series];
    *s = (struct etd_series){.last = NAN, .best = NAN};
    copy(s->name, sizeof s->name, name);
    s->better = better_of(s->name);
    *slot = (int16_t)++m->n_series;
    m->next = m->n_series;
    return s;
}

bool
etd_model_adopt(struct etd_model *m)
{
    memset(m->slot, 0, sizeof m->slot);
    m->n_bins = 0;
    for (int i = 0; i < m->n_series; i++) {
        int16_t *slot = &m->slot[find_slot(m, m->series[i].name) - m->slot];
        if (*slot)
            return false; /* a name twice */
        *slot = (int16_t)(i + 1);
        m->series[i].better = better_of(m->series[i].name);
        m->n_bins += m->series[i].n_bins;
    }
    return (m->width & (m->width - 1)) == 0 && m->n_bins <= ETD_ALL_BINS;
}

/* As many as the count of a bin has room for. */
static int32_t
at_most(int64_t n)
{
    return n < INT32_MAX ? (int32_t)n : INT32_MAX;
}

static void
join_bins(struct etd_bin *into, const struct etd_bin *next)
{
    if (next->n > 0 && (into->n == 0 || next->min < into->min))
        into->min = next->min;
    if (next->n > 0 && (into->n == 0 || next->max > into->max))
        into->max = next->max;
    into->n = at_most((int64_t)into->n + next->n);
    into->last = next->last;
}

static void
widen(struct etd_model *m)
{
    m->width *= 2;
    m->n_bins = 0;
    for (int i = 0; i < ETD_BINS; i++) {
        struct etd_axis none = {.t = NAN};
        if (i >= ETD_BINS / 2)
            m->axis[i] = none;
        else
            m->axis[i] = m->axis[isnan(m->axis[2 * i].t) ? 2 * i + 1 : 2 * i];
    }
    for (struct etd_series *s = m->series; s < m->series + m->n_series; s++) {
        int n = 0;
        for (int i = 0; i < s->n_bins; i++) {
            struct etd_bin b = s->bin[i];
            b.bin /= 2;
            if (n > 0 && s->bin[n - 1].bin == b.bin)
                join_bins(&s->bin[n - 1], &b);
            else
                s->bin[n++] = b;
        }
        s->n_bins = n;
        m->n_bins += n;
    }
}

static et_status
grow_bins(struct etd_model *m, struct etd_series *s)
{
    void *block;
    int room = s->room ? 2 * s->room : 8;
    ET_TRY(et_alloc(m->cx, (size_t)room * sizeof *s->bin, &block));
    if (s->n_bins > 0)
        memcpy(block, s->bin, (size_t)s->n_bins * sizeof *s->bin);
    et_free(m->cx, s->bin);
    s->bin = block;
    s->room = room;
    return ET_OK;
}

/* Finds the series that R names, with room for one more bin of each, so that adding its
 * numbers cannot fail. */
static et_status
name_series(struct etd_model *m, const struct et_record *r)
{
    ET_TRY(eti_grow(m->cx, &m->named, &m->named_room, r->n, sizeof *m->named));
    m->next = 0;
    for (int i = 0; i < r->n; i++) {
        struct etd_series *s = claim_series(m, r->entry[i].name);
        m->named[i] = s ? (int16_t)(s - m->series) : -1;
        if (s && s->n_bins == s->room)
            ET_TRY(grow_bins(m, s));
    }
    return ET_OK;
}

/* Number I of R. */
static void
add_value(struct etd_model *m, struct etd_series *s, int32_t number,
          const struct et_record *r, int i)
{
    double value = r->entry[i].value;
    const struct et_log_span *v = r->span ? &r->span[i] : NULL;
    struct etd_bin one = {.bin = number, .last = value};
    if (v && v->n > 0)
        one = (struct etd_bin){number, at_most(v->n), v->min, v->max, value};
    else if (!v && isfinite(value))
        one = (struct etd_bin){number, 1, value, value, value};
    int at = s->n_bins;
    while (at > 0 && s->bin[at - 1].bin > number)
        at--;
    if (at > 0 && s->bin[at - 1].bin == number) {
        join_bins(&s->bin[at - 1], &one);
        return;
    }
    memmove(s->bin + at + 1, s->bin + at, (size_t)(s->n_bins - at) * sizeof *s->bin);
    s->bin[at] = one;
    s->n_bins++;
    m->n_bins++;
}

static void
note_value(struct etd_series *s, const struct et_record *r, int i)
{
    double value = r->entry[i].value;
    const struct et_log_span *v = r->span ? &r->span[i] : NULL;
    s->last = value;
    s->last_ba = r->ba;
    s->last_t = r->t;
    s->bad = eti_count_add(s->bad, v ? v->bad : !isfinite(value));
    s->n = eti_count_add(s->n, v ? v->n : isfinite(value));
    if (v ? v->n == 0 : !isfinite(value))
        return;
    if (v)
        value = s->better < 0 ? v->min : v->max;
    if (s->better != 0 &&
        (isnan(s->best) || (s->better < 0 ? value < s->best : value > s->best))) {
        s->best = value;
        s->best_ba = r->ba;
    }
}

static void
add_numbers(struct etd_model *m, const struct et_record *r)
{
    while (r->ba / m->width >= ETD_BINS || m->n_bins + r->n > ETD_ALL_BINS)
        widen(m);
    int32_t number = (int32_t)(r->ba / m->width);
    struct etd_axis *axis = &m->axis[number];
    if (isnan(axis->t))
        *axis = (struct etd_axis){r->t, r->ep, r->sp};
    for (int i = 0; i < r->n; i++) {
        if (m->named[i] < 0) {
            m->left_out++;
            continue;
        }
        struct etd_series *s = &m->series[m->named[i]];
        add_value(m, s, number, r, i);
        note_value(s, r, i);
    }
}

/* Points of the step's parts, whose names are in R: the ranks' medians. */
static void
add_step(struct etd_model *m, const struct et_record *r, struct et_log_entry *entry)
{
    for (int i = 0; i < r->n; i++)
        entry[i].value = etd_step_median(m, entry[i].name + strlen(ETD_STEP));
    add_numbers(m, r);
}

/* Batches after BA are done again. */
static void
drop_bins(struct etd_model *m, int64_t ba)
{
    m->n_bins = 0;
    for (int64_t i = ba / m->width + 1; i < ETD_BINS; i++)
        m->axis[i].t = NAN;
    for (struct etd_series *s = m->series; s < m->series + m->n_series; s++) {
        while (s->n_bins > 0 && s->bin[s->n_bins - 1].bin * m->width > ba)
            s->n_bins--;
        m->n_bins += s->n_bins;
    }
}

/* ---- parts: ranks and algorithms ---- */

static void
set_number(struct etd_number *list, int *n, const char *name, double value)
{
    int i = 0;
    while (i < *n && strcmp(list[i].name, name) != 0)
        i++;
    if (i == ETD_NUMBERS)
        return;
    if (i == *n)
        ++*n;
    copy(list[i].name, sizeof list[i].name, name);
    list[i].value = value;
}

static double
get_number(const struct etd_number *list, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0)
            return list[i].value;
    return NAN;
}

double
etd_part_get(const struct etd_part *p, const char *name)
{
    return get_number(p->number, p->n, name);
}

double
etd_part_own(const struct etd_part *p)
{
    double own = etd_part_get(p, "own_ms"), queue = etd_part_get(p, "queue_ms");
    return isnan(own) || isnan(queue) ? own : fmax(own - queue, 0);
}

double
etd_model_length(const struct etd_model *m, const char *name)
{
    return get_number(m->length, m->n_length, name);
}

/* Makes LIST, of ROOM parts, one of at least N. */
static et_status
grow_parts(struct etd_model *m, struct etd_part **list, int *room, int n)
{
    void *block;
    int more = *room ? *room : 4;
    if (n <= *room)
        return ET_OK;
    while (more < n)
        more *= 2;
    ET_TRY(et_alloc(m->cx, (size_t)more * sizeof **list, &block));
    if (*room)
        memcpy(block, *list, (size_t)*room * sizeof **list);
    et_free(m->cx, *list);
    *list = block;
    *room = more;
    return ET_OK;
}

static int
find_algorithm(const struct etd_model *m, const char *name)
{
    int i = 0;
    while (i < m->n_algorithms && strcmp(m->algorithm[i].name, name) != 0)
        i++;
    return i;
}

/* The part that R is about, which is added if it is new; NULL: R is not about a
 * part. */
static et_status
claim_part(struct etd_model *m, const struct et_record *r, struct etd_part **out)
{
    *out = NULL;
    if (r->kind == ET_RECORD_HEALTH && r->rank >= 0 && r->rank < ETD_RANKS) {
        ET_TRY(grow_parts(m, &m->rank, &m->rank_room, r->rank + 1));
        if (m->n_ranks <= r->rank)
            m->n_ranks = r->rank + 1;
        *out = &m->rank[r->rank];
        snprintf((*out)->name, sizeof(*out)->name, "%d", r->rank);
    }
    if (r->kind == ET_RECORD_ALGORITHM && r->text && r->rank == 0) {
        char name[ETD_LABEL];
        copy(name, sizeof name, r->text);
        int i = find_algorithm(m, name);
        if (i == ETD_ALGORITHMS)
            return ET_OK;
        ET_TRY(grow_parts(m, &m->algorithm, &m->algorithm_room, i + 1));
        if (m->n_algorithms <= i)
            m->n_algorithms = i + 1;
        *out = &m->algorithm[i];
        copy((*out)->name, sizeof(*out)->name, name);
    }
    return ET_OK;
}

static void
fill_part(struct etd_part *p, const struct et_record *r)
{
    p->t = r->t;
    p->ba = r->ba;
    for (int i = 0; i < r->n; i++)
        set_number(p->number, &p->n, r->entry[i].name, r->entry[i].value);
    double own = etd_part_own(p);
    if (r->kind != ET_RECORD_HEALTH || isnan(own))
        return;
    memmove(p->trail, p->trail + 1, (ETD_TRAIL - 1) * sizeof *p->trail);
    p->trail[ETD_TRAIL - 1] = (float)own;
}

/* ---- what happened ---- */

/* The place of one more in a ring of SIZE. */
static int
ring_place(int *first, int *n, int size)
{
    if (*n < size)
        return (*first + (*n)++) % size;
    int at = *first;
    *first = (*first + 1) % size;
    return at;
}

/* "ep 6.5  Accuracy 0.7212 (+0.0081)  CrossEntropy 1.1022": as far as there is room.
 * The first is compared with the evaluation before it: its series does not have R yet.
 * Of several evaluators the name stands first; "eval" says nothing. */
static void
describe_eval(const struct etd_model *m, const struct et_record *r, char *buf,
              size_t size)
{
    bool is_named = r->text && strcmp(r->text, "eval") != 0, is_first = true;
    const double per = etd_model_length(m, "run/epoch_batches");
    /* By batches where an epoch's are known: R->ep counts only whole epochs. */
    const double ep = per > 0 ? round(100 * (double)r->ba / per) / 100 : (double)r->ep;
    size_t n = (size_t)snprintf(buf, size, "%s%sep %.6g", is_named ? r->text : "",
                                is_named ? "  " : "", ep);
    for (int i = 0; i < r->n && n < size; i++) {
        const char *metric = evaluated_metric(r->entry[i].name);
        if (!metric)
            continue;
        double value = r->entry[i].value;
        n += (size_t)snprintf(buf + n, size - n, "  %s %.4f", metric, value);
        bool has_series = is_first && eti_is_series(r) && m->named[i] >= 0;
        const struct etd_series *s = has_series ? &m->series[m->named[i]] : NULL;
        if (s && s->n > 0 && isfinite(value - s->last) && n < size)
            n += (size_t)snprintf(buf + n, size - n, " (%+.4f)", value - s->last);
        is_first = false;
    }
}

static bool
is_event(const struct etd_model *m, const struct et_record *r)
{
    switch (r->kind) {
    case ET_RECORD_RUN:
        return r->rank == 0 && r->text && strcmp(r->text, m->state) != 0;
    case ET_RECORD_EVAL:
    case ET_RECORD_LOG:
    case ET_RECORD_CHECKPOINT:
    case ET_RECORD_COMMAND:
    case ET_RECORD_RESUME:
    case ET_RECORD_ANNOTATION:
        return true;
    default:
        return false;
    }
}

static void
add_event(struct etd_model *m, const struct et_record *r)
{
    struct etd_event *e =
        &m->event[ring_place(&m->first_event, &m->n_events, ETD_EVENTS)];
    *e = (struct etd_event){
        .t = r->t,
        .seq = r->seq,
        .ba = r->ba,
        .rank = r->rank,
        .kind = r->kind,
        .level = r->kind == ET_RECORD_LOG ? r->level : ET_LOG_INFO,
    };
    if (r->kind == ET_RECORD_EVAL)
        describe_eval(m, r, e->text, sizeof e->text);
    else
        copy(e->text, sizeof e->text, r->text);
    m->n_warnings += e->level == ET_LOG_WARN;
    m->n_errors += e->level == ET_LOG_ERROR;
}

static void
add_mark(struct etd_model *m, const struct et_record *r)
{
    struct etd_mark *k = &m->mark[ring_place(&m->first_mark, &m->n_marks, ETD_MARKS)];
    *k = (struct etd_mark){.kind = r->kind, .ba = r->ba, .t = r->t};
    copy(k->text, sizeof k->text, r->text);
}

const struct etd_event *
etd_model_event(const struct etd_model *m, int i)
{
    return &m->event[(m->first_event + i) % ETD_EVENTS];
}

const struct etd_mark *
etd_model_mark(const struct etd_model *m, int i)
{
    return &m->mark[(m->first_mark + i) % ETD_MARKS];
}

/* ---- how far ---- */

/* "eval/test/batch": the evaluator's progress. */
static void
note_progress(struct etd_model *m, const struct et_log_entry *e)
{
    const char *label = e->name + strlen("eval/"), *last = strrchr(label, '/');
    char text[ETD_LABEL];
    int i = 0;
    if (!last)
        return;
    snprintf(text, sizeof text, "%.*s", (int)(last - label), label);
    while (i < m->n_evals && strcmp(m->eval[i].label, text) != 0)
        i++;
    if (i == ETD_EVALS)
        return;
    if (i == m->n_evals)
        m->n_evals++;
    struct etd_eval *v = &m->eval[i];
    copy(v->label, sizeof v->label, text);
    if (strcmp(last, "/batches") == 0)
        v->batches = e->value;
    else
        v->batch = e->value;
    v->running = true;
}

static void
note_run(struct etd_model *m, const struct et_record *r)
{
    if (r->text && strcmp(r->text, m->state) != 0) {
        if (strcmp(m->state, "evaluating") == 0 && strcmp(r->text, "running") == 0) {
            m->eval_s += r->t - m->state_since;
            m->n_evaluated++;
        }
        copy(m->state, sizeof m->state, r->text);
        m->state_since = r->t;
        for (int i = 0; i < m->n_evals; i++)
            m->eval[i].running = false;
    }
    if (isnan(m->epoch_t) && strcmp(m->state, "running") == 0)
        m->epoch_t = r->t;
    for (int i = 0; i < r->n; i++) {
        if (strncmp(r->entry[i].name, "run/", 4) == 0)
            set_number(m->length, &m->n_length, r->entry[i].name, r->entry[i].value);
        if (strncmp(r->entry[i].name, "eval/", 5) == 0)
            note_progress(m, &r->entry[i]);
    }
}

bool
etd_model_has_ended(const struct etd_model *m)
{
    static const char *const alive[] = {
        "",           "queued",        "starting", "running",
        "evaluating", "checkpointing", "paused",   "stopping",
    };
    for (size_t i = 0; i < sizeof alive / sizeof *alive; i++)
        if (strcmp(m->state, alive[i]) == 0)
            return false;
    return true;
}

/* ---- a record ---- */

static void
note_resume(struct etd_model *m, const struct et_record *r)
{
    m->incarnation++;
    drop_bins(m, r->ba);
    m->n_ticks = m->first_tick = 0;
    m->epoch_t = NAN;
    m->epoch_ba = r->ba;
}

et_status
etd_model_apply(struct etd_model *m, const struct et_record *r)
{
    struct etd_part *part;
    struct et_log_entry entry[ETD_STEP_ROOM];
    struct et_record step = *r; /* of the series of the step's parts */
    bool is_series = eti_is_series(r) && r->n > 0;
    step.entry = entry;
    step.span = NULL;
    step.n = etd_step_name_all(r, entry);
    if (is_series || step.n > 0)
        ET_TRY(name_series(m, is_series ? r : &step));
    ET_TRY(claim_part(m, r, &part));
    if (m->seq == 0)
        m->from = r->t;
    m->seq = r->seq;
    m->t = r->t;
    if (r->rank == 0 && r->kind != ET_RECORD_LOG && r->kind != ET_RECORD_ANNOTATION) {
        m->ep = r->ep;
        m->ba = r->ba;
        m->sp = r->sp;
    }
    if (is_event(m, r))
        add_event(m, r);
    if (r->kind == ET_RECORD_RESUME)
        note_resume(m, r);
    if (is_series && r->ba >= 0)
        add_numbers(m, r);
    if (part)
        fill_part(part, r);
    if (step.n > 0)
        add_step(m, &step, entry);
    if (r->kind == ET_RECORD_RUN && r->rank == 0)
        note_run(m, r);
    if (r->kind == ET_RECORD_BATCH && r->rank == 0)
        etd_model_progress(m, r);
    if (r->kind == ET_RECORD_EPOCH) {
        m->epoch_t = r->t;
        m->epoch_ba = r->ba;
    }
    if (r->kind == ET_RECORD_RESUME || r->kind == ET_RECORD_ANNOTATION ||
        r->kind == ET_RECORD_CHECKPOINT)
        add_mark(m, r);
    return ET_OK;
}
