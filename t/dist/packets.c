/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of the pipe between a rank and its supervisor: every field of the records in
 * them, records that do not fit, and bytes that are no record; and frames that are
 * joined to records. */
#include "config.h"

#include <string.h>

#include "dist/wire/packet.h"
#include "dist/wire/wire.h"
#include "t/tap.h"

static bool
is_whole(const struct etd_bytes *b, size_t at, struct etd_packet *p, size_t *used)
{
    return etd_packet_next(b->at + at, b->n - at, p, used) == 1;
}

/* Two records and a line, one after the other. */
static void
test_fields(void)
{
    static const struct et_log_entry numbers[] = {{"a", 1.5}, {"loss/train/total", -2}};
    const struct et_record told[] = {
        {.kind = ET_RECORD_LOG,
         .t = 1e9 + 0.25,
         .seq = 3,
         .ep = 5,
         .ba = 7,
         .sp = 11,
         .text = "a text",
         .level = ET_LOG_ERROR,
         .rank = 13,
         .entry = numbers,
         .n = 2},
        {.kind = ET_RECORD_EPOCH, .t = 2, .seq = 17, .ep = 19, .ba = 23, .sp = 29},
    };
    struct etd_bytes b = {0};
    struct etd_packet p;
    struct et_log_entry entry[2];
    struct et_record got;
    size_t at = 0, used = 0;
    for (int i = 0; i < 2; i++)
        etd_packet_add_record(&b, &told[i]);
    etd_packet_add_line(&b, ET_LOG_WARN, "a line");
    for (int i = 0; i < 2; i++, at += used) {
        const struct et_record *r = &told[i];
        ok(is_whole(&b, at, &p, &used) && p.kind == ETD_PACKET_RECORD &&
               etd_packet_record(&p, entry, 2, &got),
           "record %d is read from its packet", i);
        ok(got.kind == r->kind && got.t == r->t && got.seq == r->seq &&
               got.ep == r->ep && got.ba == r->ba && got.sp == r->sp &&
               got.level == r->level && got.rank == r->rank && got.n == r->n,
           "a record that is read has all its fields");
        ok(r->text ? got.text && strcmp(got.text, r->text) == 0 : !got.text,
           "a record is read %s a text", r->text ? "with" : "without");
        if (i == 0)
            ok(strcmp(entry[0].name, "a") == 0 && entry[0].value == 1.5 &&
                   strcmp(entry[1].name, "loss/train/total") == 0 &&
                   entry[1].value == -2,
               "a record that is read has its numbers");
    }
    ok(is_whole(&b, at, &p, &used) && p.kind == ETD_PACKET_LINE && p.n == 7 &&
           p.body[0] == ET_LOG_WARN && memcmp(p.body + 1, "a line", 6) == 0 &&
           at + used == b.n,
       "a line is read with its level and its text, and ends where the bytes end");
    etd_bytes_drop(&b, at);
    ok(b.n == used && is_whole(&b, 0, &p, &used) && p.kind == ETD_PACKET_LINE,
       "bytes that are dropped leave those behind them");
    etd_bytes_drop(&b, b.n);
    is_int((int64_t)b.n, 0, "all bytes may be dropped");
    etd_bytes_free(&b);
    ok(!b.at && b.n == 0 && b.room == 0,
       "bytes that are freed leave no memory and no room");
}

/* A record whose head has a field that cannot be, or is at its limit. */
static void
test_heads(void)
{
    enum {
        KIND = 40,
        LEVEL = 44,
        RANK = 48,
        N = 52,
        TEXT_N = 56
    }; /* offsets in the head of a record */
    static const struct {
        int at, value;
        bool fine;
        const char *what;
    } row[] = {
        {KIND, -1, false, "a kind below the first"},
        {KIND, ET_RECORD_COUNT - 1, true, "the last kind"},
        {KIND, ET_RECORD_COUNT, false, "a kind beyond the last"},
        {LEVEL, -1, false, "a level below the first"},
        {LEVEL, ET_LOG_ERROR, true, "the last level"},
        {LEVEL, ET_LOG_ERROR + 1, false, "a level beyond the last"},
        {RANK, -1, false, "a rank below 0"},
        {RANK, 0, true, "rank 0"},
        {N, -1, false, "a negative number of numbers"},
        {N, 1, true, "as many numbers as there are"},
        {N, 2, false, "one number more than there are"},
        {TEXT_N, -1, false, "a text of negative length"},
        {TEXT_N, 1 << 20, false, "a text longer than the packet"},
    };
    const struct et_log_entry one = {"x", 4};
    const struct et_record r = {
        .kind = ET_RECORD_LOG, .text = "abc", .entry = &one, .n = 1};
    struct et_log_entry entry[3];
    struct et_record got;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct etd_bytes b = {0};
        struct etd_packet p;
        size_t used;
        const int32_t value = row[i].value;
        etd_packet_add_record(&b, &r);
        memcpy(b.at + ETD_PACKET_HEAD + row[i].at, &value, sizeof value);
        ok(is_whole(&b, 0, &p, &used) &&
               etd_packet_record(&p, entry, 3, &got) == row[i].fine,
           "a record with %s %s", row[i].what, row[i].fine ? "is read" : "is refused");
        etd_bytes_free(&b);
    }
}

/* A packet longer than a reader takes is left out, and its neighbours stay. */
static void
test_longest(void)
{
    static char body[ETD_PACKET_MAX];
    struct etd_bytes b = {0};
    struct etd_packet p;
    size_t used;
    etd_packet_add(&b, ETD_PACKET_OUT, "x", 1);
    etd_packet_add(&b, ETD_PACKET_ERR, body, ETD_PACKET_MAX - ETD_PACKET_HEAD + 1);
    etd_packet_add(&b, ETD_PACKET_END, "yz", 2);
    ok(is_whole(&b, 0, &p, &used) && p.kind == ETD_PACKET_OUT && p.n == 1 &&
           is_whole(&b, used, &p, &used) && p.kind == ETD_PACKET_END && p.n == 2,
       "a packet that is too long by a byte is left out");
    etd_bytes_free(&b);
    etd_packet_add(&b, ETD_PACKET_ERR, body, ETD_PACKET_MAX - ETD_PACKET_HEAD);
    ok(is_whole(&b, 0, &p, &used) && used == ETD_PACKET_MAX,
       "a packet of the greatest length is kept");
    const char none[] = {0, 0, 0, 0, 1};
    is_int(etd_packet_next(none, 3, &p, &used), 0,
           "three bytes are not enough for a packet");
    is_int(etd_packet_next(none, sizeof none, &p, &used), -1,
           "a packet without a kind is refused");
    etd_bytes_free(&b);
}

/* ---- frames of a record ---- */

static struct et_ctx *cx;

/* Joins the frame in O by J; returns the status. */
static et_status
join(struct etd_join *j, struct etd_out *o, const char *bytes, struct et_record *r,
     bool *whole)
{
    struct etd_frame f;
    struct etd_fault fault;
    if (etd_read(bytes, etd_end(o), &f, &fault) != ET_OK)
        bail("no frame: %s", fault.why);
    et_status status = etd_join_add(j, &f, r, whole);
    et_error_clear(cx);
    return status;
}

static void
begin(struct etd_out *o, char *bytes, size_t room, enum etd_kind kind, int64_t hseq,
      int n_keys)
{
    const struct etd_head head = {.kind = kind, .hseq = hseq, .rank = 3};
    etd_begin(o, bytes, room, &head, n_keys);
}

/* Part PART of record HSEQ; more parts follow. */
static et_status
join_part(struct etd_join *j, int64_t hseq, int part, bool *whole)
{
    static char bytes[4096];
    struct etd_out o;
    struct et_record r;
    begin(&o, bytes, sizeof bytes, (enum etd_kind)ET_RECORD_METRIC, hseq, 3);
    etd_put_map(&o, "m", 1);
    etd_put_double(&o, "a", 1);
    etd_put_int(&o, "part", part);
    etd_put_bool(&o, "more", true);
    return join(j, &o, bytes, &r, whole);
}

static void
test_parts(void)
{
    struct etd_join j;
    bool whole = true;
    etd_join_init(&j, cx);
    ok(join_part(&j, 7, 0, &whole) == ET_OK && !whole,
       "a first part is not a whole record");
    is_int(join_part(&j, 8, 1, &whole), ET_EFORMAT,
           "a part of another record is refused");
    is_int(join_part(&j, 7, 1, &whole), ET_EFORMAT,
           "a record whose parts were mixed up is given up");
    ok(join_part(&j, 9, 0, &whole) == ET_OK && join_part(&j, 9, 1, &whole) == ET_OK &&
           join_part(&j, 9, 3, &whole) == ET_EFORMAT,
       "a part that does not follow the one before is refused");
    etd_join_release(&j);
}

/* A record that stands for several, with the metrics a, b and c. */
static void
test_spans(void)
{
    static char bytes[4096];
    struct etd_join j;
    struct etd_out o;
    struct et_record r;
    bool whole = false;
    etd_join_init(&j, cx);
    begin(&o, bytes, sizeof bytes, (enum etd_kind)ET_RECORD_METRIC, 4, 8);
    etd_put_int(&o, "ba", 40);
    etd_put_int(&o, "of", 3);
    etd_put_int(&o, "from", 41);
    etd_put_map(&o, "m", 3);
    etd_put_double(&o, "a", 5);
    etd_put_double(&o, "b", 6);
    etd_put_double(&o, "c", 7);
    etd_put_map(&o, "min", 3); /* in another order than m */
    etd_put_double(&o, "c", 2);
    etd_put_double(&o, "b", -3);
    etd_put_double(&o, "a", 1);
    etd_put_map(&o, "max", 3);
    etd_put_double(&o, "a", 9);
    etd_put_double(&o, "c", 8);
    etd_put_text(&o, "b", "a text");
    etd_put_map(&o, "mean", 3);
    etd_put_double(&o, "b", -1);
    etd_put_double(&o, "c", 4);
    etd_put_double(&o, "a", 6);
    etd_put_text(&o, "level", "loud");
    ok(join(&j, &o, bytes, &r, &whole) == ET_OK && whole && r.n == 3 && r.of == 3,
       "a record that stands for three is read");
    is_int(r.from, 40, "a record's first batch is no later than its last");
    ok(r.span[0].min == 1 && r.span[0].max == 9 && r.span[0].sum == 18 &&
           r.span[2].min == 2 && r.span[2].max == 8 && r.span[2].sum == 12,
       "minimum, maximum and mean are found by the metric's name");
    is_near(r.span[1].max, 6, 0, "a maximum that is a text is replaced by the value");
    is_int(r.level, ET_LOG_DEBUG, "an unknown level is read as the lowest");
    etd_join_release(&j);
}

/* A text has its end, and a name may be as long as names are. */
static void
test_ends(void)
{
    struct et_log_entry entry = {.value = 3}, back[1];
    const struct et_record r = {
        .kind = ET_RECORD_LOG, .text = "a line", .entry = &entry, .n = 1};
    struct et_record got;
    struct etd_bytes b = {0};
    struct etd_packet f;
    size_t used;
    memset(entry.name, 'n', sizeof entry.name - 1);
    etd_packet_add_record(&b, &r);
    ok(etd_packet_next(b.at, b.n, &f, &used) == 1 &&
           etd_packet_record(&f, back, 1, &got) && got.n == 1 &&
           strcmp(back[0].name, entry.name) == 0 && strcmp(got.text, "a line") == 0,
       "the longest name comes back");
    char *end = memmem(b.at, b.n, "a line", sizeof "a line");
    if (!end)
        bail("a text is not in its packet");
    end[strlen("a line")] = 'x';
    ok(!etd_packet_record(&f, back, 1, &got), "a text without an end is none");
    etd_bytes_free(&b);
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    test_parts();
    test_spans();
    et_ctx_free(&cx);
    test_fields();
    test_heads();
    test_longest();
    test_ends();
    return done();
}
