/* record.c: records as frames: see wire.h. The body of one is
 *
 *     t                 seconds since 1970
 *     ep, ba, sp        finished epochs, batches, samples
 *     m  or  f          {name: number}: values of series, or facts of their moment
 *     text, level       each if there is one
 *     part, more        of a record with more than 64 numbers: which of its frames this
 * is, from 0 (absent); true: another follows, with the same hseq */
#include "config.h"

#include <string.h>

#include "core/base/memory.h"
#include "core/run/events.h"
#include "dist/wire.h"

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
    h.kind = (enum etd_kind)r->kind;
    h.hseq = r->seq;
    h.rank = r->rank;
    etd_begin(&o, bytes, room, &h, 4 + (n > 0) + has_text + is_log + (part > 0) + more);
    etd_put_double(&o, "t", r->t);
    etd_put_int(&o, "ep", r->ep);
    etd_put_int(&o, "ba", r->ba);
    etd_put_int(&o, "sp", r->sp);
    if (n > 0)
        etd_put_map(&o, eti_is_series(r) ? "m" : "f", n);
    for (int i = *from; i < *from + n; i++)
        etd_put_double(&o, r->entry[i].name, r->entry[i].value);
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
        j->has_text = etd_find(&f->body, "text", &v) && v.type == ETD_IS_TEXT;
        etd_get_text(&f->body, "text", j->text, sizeof j->text);
    }
    j->parts = 0;
    ET_TRY(add_numbers(j, &f->body));
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
    return ET_OK;
}
