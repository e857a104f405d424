/* SPDX-License-Identifier: Apache-2.0 */
/* record.c: records as frames: see wire.h. The body of one is
 *
 *     t                 seconds since 1970
 *     ep, ba, sp        finished epochs, batches, samples
 *     m  or  f          {name: number}: values of series, or facts of their moment
 *     of, from          of a record that stands for several: how many, and the first
 *                       one's ba
 *     min, max, mean    {name: number} of those numbers that differ among them
 *     n, bad            {name: count}: of numbers that not all of them had, or of which
 *                       some were not finite
 *     text, level       each if there is one
 *     part, more        of a record with more than 64 numbers. part: which of its
 *                       frames this is, from 0 (absent). more: true if another
 *                       follows, with the same hseq */
#include "config.h"

#include <string.h>

#include "core/base/memory.h"
#include "core/journal/events.h"
#include "core/loggers/spans.h"
#include "dist/wire/wire.h"

/* Of the numbers from FROM to before END. */
static void
put_about(struct etd_out *o, const struct et_record *r, int from, int end,
          enum eti_about about)
{
    int n = eti_about_size(r, from, end, about);
    if (n > 0)
        etd_put_map(o, eti_about_key(about), n);
    for (int i = from; n > 0 && i < end; i++) {
        double value;
        if (!eti_about_get(r, i, about, &value))
            continue;
        if (eti_about_is_count(about))
            etd_put_int(o, r->entry[i].name, (int64_t)value);
        else
            etd_put_double(o, r->entry[i].name, value);
    }
}

size_t
etd_record_write(void *bytes, size_t room, const struct etd_head *head,
                 const struct et_record *r, int *from)
{
    struct etd_head h = *head;
    struct etd_out o;
    int n = r->n - *from, part = *from / ETD_KEYS;
    n = n < ETD_KEYS ? n : ETD_KEYS;
    bool more = *from + n < r->n, is_log = r->kind == ET_RECORD_LOG;
    bool has_text = r->text && part == 0;
    int end = *from + n, abouts = r->of > 0 ? 2 : 0;
    for (int i = 0; i < ETI_ABOUT_COUNT; i++)
        abouts += eti_about_size(r, *from, end, (enum eti_about)i) > 0;
    h.kind = (enum etd_kind)r->kind;
    h.hseq = r->seq;
    h.rank = r->rank;
    etd_begin(&o, bytes, room, &h,
              4 + (n > 0) + has_text + is_log + (part > 0) + more + abouts);
    etd_put_double(&o, "t", r->t);
    etd_put_int(&o, "ep", r->ep);
    etd_put_int(&o, "ba", r->ba);
    etd_put_int(&o, "sp", r->sp);
    if (n > 0)
        etd_put_map(&o, eti_is_series(r) ? "m" : "f", n);
    for (int i = *from; i < end; i++)
        etd_put_double(&o, r->entry[i].name, r->entry[i].value);
    if (r->of > 0) {
        etd_put_int(&o, "of", r->of);
        etd_put_int(&o, "from", r->from);
    }
    for (int i = 0; i < ETI_ABOUT_COUNT; i++)
        put_about(&o, r, *from, end, (enum eti_about)i);
    if (has_text)
        etd_put_text(&o, "text", r->text);
    if (is_log)
        etd_put_text(&o, "level", et_log_level_name(r->level));
    if (part > 0)
        etd_put_int(&o, "part", part);
    if (more)
        etd_put_bool(&o, "more", true);
    *from += n;
    return etd_end(&o);
}

void
etd_join_init(struct etd_join *j, struct et_ctx *cx)
{
    *j = (struct etd_join){.cx = cx};
}

void
etd_join_release(struct etd_join *j)
{
    et_free(j->cx, j->entry);
    et_free(j->cx, j->span);
    *j = (struct etd_join){.cx = j->cx};
}

static et_status
add_numbers(struct etd_join *j, const struct etd_map *body)
{
    struct etd_value v, name;
    if (!etd_find(body, "m", &v))
        (void)etd_find(body, "f", &v);
    if (v.type != ETD_IS_MAP)
        return ET_OK;
    if (j->n + v.map.n > ETD_RECORD_NUMBERS)
        return ET_FAIL(j->cx, ET_EFORMAT, "a record of more than %d numbers",
                       ETD_RECORD_NUMBERS);
    ET_TRY(eti_grow(j->cx, &j->entry, &j->room, j->n + v.map.n, sizeof *j->entry));
    const unsigned char *at = v.map.at;
    for (int i = 0; i < v.map.n; i++) {
        struct etd_value number;
        struct et_log_entry *e = &j->entry[j->n];
        etd_next(&at, v.map.end, &name);
        etd_next(&at, v.map.end, &number);
        if (name.type != ETD_IS_TEXT || number.type != ETD_IS_DOUBLE)
            continue;
        size_t n = name.n < sizeof e->name ? name.n : sizeof e->name - 1;
        memcpy(e->name, name.bytes, n);
        e->name[n] = '\0';
        e->value = number.d;
        j->n++;
    }
    return ET_OK;
}

/* One map of what is said of the numbers from FIRST on. */
static void
add_about(struct etd_join *j, int first, enum eti_about about,
          const struct etd_map *map)
{
    struct etd_value name, value;
    const unsigned char *at = map->at;
    int k = first;
    for (int i = 0; i < map->n; i++) {
        etd_next(&at, map->end, &name);
        etd_next(&at, map->end, &value);
        bool is_number = value.type == ETD_IS_INT ||
                         (value.type == ETD_IS_DOUBLE && !eti_about_is_count(about));
        if (name.type != ETD_IS_TEXT || !is_number)
            continue;
        for (int seen = first; seen < j->n; seen++) { /* they come in one order */
            k = k < j->n ? k : first;
            const char *own = j->entry[k++].name;
            if (strlen(own) == name.n && memcmp(own, name.bytes, name.n) == 0) {
                eti_span_set(&j->span[k - 1], about, value.d);
                break;
            }
        }
    }
}

/* What all maps say of the numbers from FIRST on, where the record stands for several.
 * The first frame says for how many; all numbers have a span then, or none has. */
static et_status
add_spans(struct etd_join *j, const struct etd_map *body, int first)
{
    struct etd_value v;
    if (j->of == 0)
        return ET_OK;
    ET_TRY(eti_grow(j->cx, &j->span, &j->spans, j->n, sizeof *j->span));
    for (int i = first; i < j->n; i++)
        j->span[i] = eti_span_unknown;
    for (int i = 0; i < ETI_ABOUT_COUNT; i++)
        if (etd_find(body, eti_about_key((enum eti_about)i), &v) &&
            v.type == ETD_IS_MAP)
            add_about(j, first, (enum eti_about)i, &v.map);
    for (int i = first; i < j->n; i++)
        eti_span_complete(&j->span[i], j->entry[i].value, j->of);
    return ET_OK;
}

static enum et_log_level
get_level(const struct etd_map *body)
{
    char word[16];
    int level = ET_LOG_DEBUG;
    etd_get_text(body, "level", word, sizeof word);
    while (level <= ET_LOG_ERROR &&
           strcmp(word, et_log_level_name((enum et_log_level)level)) != 0)
        level++;
    return level <= ET_LOG_ERROR ? (enum et_log_level)level : ET_LOG_DEBUG;
}

et_status
etd_join_add(struct etd_join *j, const struct etd_frame *f, struct et_record *out,
             bool *whole)
{
    int64_t part = etd_get_int(&f->body, "part", 0);
    struct etd_value v;
    *whole = false;
    if ((int)f->head.kind >= ET_RECORD_COUNT || part != j->parts ||
        (part > 0 && f->head.hseq != j->hseq)) {
        int64_t expected = j->parts;
        j->parts = 0;
        return ET_FAIL(j->cx, ET_EFORMAT, "part %lld of record %lld, not %lld",
                       (long long)part, (long long)f->head.hseq, (long long)expected);
    }
    if (part == 0) {
        j->n = 0;
        j->hseq = f->head.hseq;
        int64_t of = etd_get_int(&f->body, "of", 0);
        j->of = of < 0 ? 0 : of < ETI_SPAN_MOST ? of : ETI_SPAN_MOST;
        j->has_text = etd_find(&f->body, "text", &v) && v.type == ETD_IS_TEXT;
        etd_get_text(&f->body, "text", j->text, sizeof j->text);
    }
    j->parts = 0;
    int first = j->n;
    ET_TRY(add_numbers(j, &f->body));
    ET_TRY(add_spans(j, &f->body, first));
    if (etd_get_bool(&f->body, "more", false)) {
        j->parts = (int)part + 1;
        return ET_OK;
    }
    *whole = true;
    *out = (struct et_record){
        .kind = (enum et_record_kind)f->head.kind,
        .t = etd_get_double(&f->body, "t", 0),
        .seq = f->head.hseq,
        .ep = etd_get_int(&f->body, "ep", 0),
        .ba = etd_get_int(&f->body, "ba", 0),
        .sp = etd_get_int(&f->body, "sp", 0),
        .level = get_level(&f->body),
        .rank = f->head.rank,
        .entry = j->entry,
        .n = j->n,
    };
    out->text = j->has_text ? j->text : NULL;
    if (j->of > 0) {
        int64_t from = etd_get_int(&f->body, "from", out->ba);
        out->of = j->of;
        out->from = from < out->ba ? from : out->ba;
        out->span = j->span;
    }
    return ET_OK;
}
