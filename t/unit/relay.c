/* SPDX-License-Identifier: Apache-2.0 */
/* What shows a run that another process trains is given whole records: also one that
 * events.log holds in several. */
#include "core/journal/events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etude/callback.h"
#include "etude/run.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "core/trainer/state.h"

enum { MOST = 16, MANY = 3000, FITTING = 20, METRICS = 64 /* relay.c's */ };

/* Every event that progress is given, with its numbers. */
static struct shown {
    enum et_event event;
    int64_t ba;
    int n, n_metrics;
    double last;
} shown[MOST];
static int n_shown;

static et_status
note(struct et_callback *self, enum et_event event, const struct et_state *s,
     struct et_log *log)
{
    int n;
    const struct et_log_entry *entry = et_log_entries(log, &n);
    (void)self;
    if (n_shown < MOST)
        shown[n_shown++] =
            (struct shown){event, s->timestamp.batch, n, s->n_eval_metrics,
                           n ? entry[n - 1].value : -1};
    return ET_OK;
}

static const struct et_callback_class note_class = {
    .info = {.name = "note",
             .class_name = "Note",
             .summary = "notes",
             .applies_to = "any"},
    .run = note,
};

static void
tell(struct eti_events_writer *w, enum et_record_kind kind, int64_t ba, int n)
{
    static struct et_log_entry entry[MANY];
    for (int i = 0; i < n; i++) {
        snprintf(entry[i].name, sizeof entry[i].name,
                 "metrics/a_name_of_some_length/%d", i);
        entry[i].value = (double)(1000 * ba + i);
    }
    const struct et_record r = {
        .kind = kind,
        .t = 1e9 + (double)ba,
        .ba = ba,
        .text = kind == ET_RECORD_EVAL ? "eval" : NULL,
        .entry = entry,
        .n = n,
    };
    eti_events_write(w, &r);
}

/* The log's records through a relay. */
static void
show(struct et_ctx *cx, const char *folder, int64_t *records)
{
    char path[512];
    struct et_events *e;
    struct et_relay *relay;
    struct et_record r;
    struct et_callback progress = {.type = &note_class, .cx = cx};
    bool got = true;
    snprintf(path, sizeof path, "%s/events.log", folder);
    need(cx, et_relay_new(cx, &relay));
    need(cx, et_events_open(cx, path, &e));
    *records = 0;
    while (et_events_next(e, &r, &got) == ET_OK && got) {
        et_relay_record(relay, &progress, &r);
        ++*records;
    }
    et_events_close(&e);
    et_relay_free(&relay);
}

int
main(void)
{
    static const unsigned char id[ETI_EVENTS_ID] = {1};
    struct et_ctx *cx = need_ctx();
    struct eti_events_writer w;
    int64_t records;
    need(cx, eti_events_begin(cx, scratch_folder(), id, &w));
    tell(&w, ET_RECORD_BATCH, 1, FITTING);
    tell(&w, ET_RECORD_BATCH, 2, MANY);
    tell(&w, ET_RECORD_BATCH, 3, FITTING);
    tell(&w, ET_RECORD_EVAL, 4, MANY);
    tell(&w, ET_RECORD_EPOCH, 5, 0);
    tell(&w, ET_RECORD_EVAL, 6, METRICS + 1);
    eti_events_end(&w);
    show(cx, scratch_folder(), &records);
    ok(records > 6, "events.log holds a record of %d numbers in several (%d for 6)",
       MANY, (int)records);
    is_int(n_shown, 6, "each is shown once");
    ok(shown[0].n == FITTING && shown[2].n == FITTING && shown[2].ba == 3,
       "those that fit as they are");
    ok(shown[1].event == ET_EVENT_BATCH_END && shown[1].ba == 2 && shown[1].n == MANY &&
           shown[1].last == 2000 + MANY - 1,
       "a batch whole, with its last number (%d of them)", shown[1].n);
    ok(shown[3].event == ET_EVENT_EVAL_END && shown[3].n == MANY, "an evaluation too");
    is_int(shown[3].n_metrics, METRICS, "whose metrics are kept while there is room");
    ok(shown[4].event == ET_EVENT_EPOCH_END && shown[4].n == 0,
       "and nothing of it after");
    ok(shown[5].n_metrics == METRICS && shown[5].n == METRICS + 1,
       "as are those of one that is told again");
    et_ctx_free(&cx);
    return done();
}
