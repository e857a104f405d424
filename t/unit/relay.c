/* SPDX-License-Identifier: Apache-2.0 */
/* What shows a run that another process trains is given whole records: also one that
 * events.log holds in several. */
#include "core/journal/events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* ---- the state, record by record ---- */

static char told[512]; /* the events of a record */

static et_status
note_state(struct et_callback *self, enum et_event event, const struct et_state *s,
           struct et_log *log)
{
    static const struct {
        enum et_event event;
        const char *name;
    } names[] = {{ET_EVENT_BATCH_END, "batch"},  {ET_EVENT_EPOCH_END, "epoch"},
                 {ET_EVENT_EVAL_START, "begin"}, {ET_EVENT_EVAL_BATCH_END, "part"},
                 {ET_EVENT_EVAL_END, "eval"},    {ET_EVENT_FIT_END, "end"}};
    (void)self;
    (void)s;
    (void)log;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].event == event)
            snprintf(told + strlen(told), sizeof told - strlen(told), "%s ",
                     names[i].name);
    return ET_OK;
}

static const struct et_callback_class state_class = {
    .info = {.name = "state",
             .class_name = "State",
             .summary = "notes",
             .applies_to = "any"},
    .run = note_state,
};

/* A record of up to four numbers. */
struct sent {
    enum et_record_kind kind;
    double t;
    int64_t ep, ba, sp, of;
    const char *text;
    int rank;
    struct et_log_entry entry[4];
};

/* The state after a record, in one line. */
static const char *
state_text(const struct et_state *s)
{
    static char text[512];
    const struct et_timestamp *ts = &s->timestamp;
    snprintf(
        text, sizeof text,
        "ep=%d ba=%d sp=%d tok=%d ba/ep=%d sp/ep=%d wct=%g/%g/%g loss=%g "
        "%s:%d/%d evalwct=%g len=%g%s train=%d bs=%d ga=%d metrics=%d",
        (int)ts->epoch, (int)ts->batch, (int)ts->sample, (int)ts->token,
        (int)ts->batch_in_epoch, (int)ts->sample_in_epoch, ts->batch_wct, ts->epoch_wct,
        ts->total_wct, s->loss_value, s->dataloader_label, (int)s->eval_timestamp.batch,
        (int)s->dataloader_len, s->eval_timestamp.total_wct, s->max_duration.value,
        et_time_is_set(s->max_duration) ? et_time_unit_suffix(s->max_duration.unit)
                                        : "?",
        (int)s->train_len, (int)s->batch_size, (int)s->grad_accum, s->n_eval_metrics);
    return text;
}

static void
test_states(struct et_ctx *cx)
{
    static const struct {
        struct sent r;
        const char *events, *state;
    } rows[] = {
        {{.kind = ET_RECORD_RUN,
          .t = 1000,
          .text = "running",
          .entry = {{"run/epochs", 5},
                    {"run/epoch_batches", 40},
                    {"run/batch_size", 8},
                    {"run/grad_accum", 2}}},
         "",
         "ep=0 ba=0 sp=0 tok=0 ba/ep=0 sp/ep=0 wct=0/0/0 loss=nan train:0/-1 evalwct=0 "
         "len=5ep train=40 bs=8 ga=2 metrics=0"},
        {{.kind = ET_RECORD_RESUME, .t = 1001, .ep = 1, .ba = 41, .sp = 328},
         "",
         "ep=1 ba=41 sp=328 tok=0 ba/ep=0 sp/ep=0 wct=0/0/0 loss=nan train:0/-1 "
         "evalwct=0 len=5ep train=40 bs=8 ga=2 metrics=0"},
        {{.kind = ET_RECORD_BATCH,
          .t = 1003,
          .ep = 1,
          .ba = 42,
          .sp = 336,
          .entry = {{"time/batch_in_epoch", 2},
                    {"time/sample_in_epoch", 16},
                    {"time/token", 99},
                    {"loss/train/total", 0.5}}},
         "batch ",
         "ep=1 ba=42 sp=336 tok=99 ba/ep=2 sp/ep=16 wct=3/3/3 loss=0.5 train:0/40 "
         "evalwct=0 len=5ep train=40 bs=8 ga=2 metrics=0"},
        {{.kind = ET_RECORD_BATCH,
          .t = 1013,
          .ep = 1,
          .ba = 47,
          .sp = 376,
          .of = 5,
          .entry = {{"loss/train/total", 0.25}}},
         "batch ",
         "ep=1 ba=47 sp=376 tok=99 ba/ep=3 sp/ep=16 wct=2/13/13 loss=0.25 train:0/40 "
         "evalwct=0 len=5ep train=40 bs=8 ga=2 metrics=0"},
        {{.kind = ET_RECORD_BATCH,
          .t = 1014,
          .ep = 9,
          .ba = 99,
          .sp = 9,
          .rank = 1,
          .entry = {{"loss/train/total", 7}}},
         "",
         "ep=1 ba=47 sp=376 tok=99 ba/ep=3 sp/ep=16 wct=2/13/13 loss=0.25 train:0/40 "
         "evalwct=0 len=5ep train=40 bs=8 ga=2 metrics=0"},
        {{.kind = ET_RECORD_RUN,
          .t = 1015,
          .text = "evaluating",
          .entry = {{"eval/first/batch", 0}, {"eval/first/batches", 12}}},
         "begin ",
         "ep=1 ba=47 sp=376 tok=99 ba/ep=3 sp/ep=16 wct=2/13/13 loss=0.25 first:0/12 "
         "evalwct=0 len=5ep train=40 bs=8 ga=2 metrics=0"},
        {{.kind = ET_RECORD_RUN,
          .t = 1017,
          .text = "evaluating",
          .entry = {{"eval/first/batch", 6}, {"eval/first/batches", 12}}},
         "part ",
         "ep=1 ba=47 sp=376 tok=99 ba/ep=3 sp/ep=16 wct=2/13/13 loss=0.25 first:6/12 "
         "evalwct=0 len=5ep train=40 bs=8 ga=2 metrics=0"},
        {{.kind = ET_RECORD_EVAL,
          .t = 1019,
          .ep = 1,
          .ba = 47,
          .text = "first",
          .entry = {{"metrics/first/A", 1}, {"time/x", 3}}},
         "eval ",
         "ep=1 ba=47 sp=376 tok=99 ba/ep=3 sp/ep=16 wct=2/13/13 loss=0.25 first:6/12 "
         "evalwct=4 len=5ep train=40 bs=8 ga=2 metrics=1"},
        {{.kind = ET_RECORD_RUN,
          .t = 1030,
          .text = "evaluating",
          .entry = {{"eval/second/batch", 3}}},
         "begin part ",
         "ep=1 ba=47 sp=376 tok=99 ba/ep=3 sp/ep=16 wct=2/13/13 loss=0.25 second:3/-1 "
         "evalwct=4 len=5ep train=40 bs=8 ga=2 metrics=1"},
        {{.kind = ET_RECORD_EVAL,
          .t = 1037,
          .ep = 1,
          .ba = 47,
          .text = "second",
          .entry = {{"metrics/first/A", 2}, {"metrics/second/A", 5}}},
         "eval ",
         "ep=1 ba=47 sp=376 tok=99 ba/ep=3 sp/ep=16 wct=2/13/13 loss=0.25 second:3/-1 "
         "evalwct=7 len=5ep train=40 bs=8 ga=2 metrics=2"},
        {{.kind = ET_RECORD_RUN, .t = 1040, .text = "paused"},
         "",
         "ep=1 ba=47 sp=376 tok=99 ba/ep=3 sp/ep=16 wct=2/13/13 loss=0.25 second:0/-1 "
         "evalwct=7 len=5ep train=40 bs=8 ga=2 metrics=2"},
        {{.kind = ET_RECORD_BATCH, .t = 1050, .ep = 1, .ba = 48, .sp = 384},
         "batch ",
         "ep=1 ba=48 sp=384 tok=99 ba/ep=4 sp/ep=16 wct=0/13/13 loss=0.25 train:0/40 "
         "evalwct=7 len=5ep train=40 bs=8 ga=2 metrics=2"},
        {{.kind = ET_RECORD_BATCH, .t = 1051, .ep = 1, .ba = 49, .sp = 392},
         "batch ",
         "ep=1 ba=49 sp=392 tok=99 ba/ep=5 sp/ep=16 wct=1/14/14 loss=0.25 train:0/40 "
         "evalwct=7 len=5ep train=40 bs=8 ga=2 metrics=2"},
        {{.kind = ET_RECORD_EPOCH, .t = 1052, .ep = 3, .ba = 49, .sp = 392},
         "epoch ",
         "ep=3 ba=49 sp=392 tok=99 ba/ep=0 sp/ep=0 wct=0/0/14 loss=0.25 train:0/40 "
         "evalwct=7 len=5ep train=40 bs=8 ga=2 metrics=2"},
        {{.kind = ET_RECORD_RUN,
          .t = 1053,
          .text = "finished",
          .entry = {{"run/ended", 1}, {"run/samples", 700}, {"run/batches", 80}}},
         "end ",
         "ep=3 ba=49 sp=392 tok=99 ba/ep=0 sp/ep=0 wct=0/0/14 loss=0.25 train:0/-1 "
         "evalwct=7 len=700sp train=40 bs=8 ga=2 metrics=2"},
        {{.kind = ET_RECORD_RUN, .t = 1054, .text = "x", .entry = {{"run/tokens", 71}}},
         "",
         "ep=3 ba=49 sp=392 tok=99 ba/ep=0 sp/ep=0 wct=0/0/14 loss=0.25 train:0/-1 "
         "evalwct=7 len=71tok train=40 bs=8 ga=2 metrics=2"},
        {{.kind = ET_RECORD_RUN,
          .t = 1055,
          .text = "x",
          .entry = {{"run/seconds", 72}}},
         "",
         "ep=3 ba=49 sp=392 tok=99 ba/ep=0 sp/ep=0 wct=0/0/14 loss=0.25 train:0/-1 "
         "evalwct=7 len=72sec train=40 bs=8 ga=2 metrics=2"},
        {{.kind = ET_RECORD_RUN,
          .t = 1056,
          .text = "x",
          .entry = {{"run/batches", 73}}},
         "",
         "ep=3 ba=49 sp=392 tok=99 ba/ep=0 sp/ep=0 wct=0/0/14 loss=0.25 train:0/-1 "
         "evalwct=7 len=73ba train=40 bs=8 ga=2 metrics=2"},
    };
    struct et_callback progress = {.type = &state_class, .cx = cx};
    struct et_relay *relay;
    need(cx, et_relay_new(cx, &relay));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct sent *x = &rows[i].r;
        struct et_record r = {.kind = x->kind,
                              .t = x->t,
                              .ep = x->ep,
                              .ba = x->ba,
                              .sp = x->sp,
                              .of = x->of,
                              .text = x->text,
                              .rank = x->rank,
                              .entry = x->entry};
        while (r.n < 4 && x->entry[r.n].name[0])
            r.n++;
        told[0] = '\0';
        et_relay_record(relay, &progress, &r);
        is_str(told, rows[i].events, "a record of kind %s at %g leads to its events",
               et_record_name(x->kind), x->t);
        is_str(state_text(et_relay_state(relay)), rows[i].state,
               "the state after a record has the record's numbers");
    }
    const struct et_state *s = et_relay_state(relay);
    ok(s->eval_metrics[0].value == 2 && s->eval_metrics[1].value == 5 &&
           strcmp(s->eval_metrics[1].name, "metrics/second/A") == 0,
       "each metric of an evaluation has its newest value");
    et_relay_free(&relay);
}

/* A record whose further numbers never come. */
static void
test_cut(struct et_ctx *cx)
{
    struct et_callback progress = {.type = &note_class, .cx = cx};
    struct eti_events_writer w;
    static const unsigned char id[ETI_EVENTS_ID] = {2};
    char path[512];
    struct et_events *e;
    struct et_relay *relay;
    struct et_record r;
    bool got;
    snprintf(path, sizeof path, "%s/events.log", scratch_folder());
    unlink(path);
    need(cx, eti_events_begin(cx, scratch_folder(), id, &w));
    tell(&w, ET_RECORD_BATCH, 1, MANY);
    eti_events_end(&w);
    need(cx, et_relay_new(cx, &relay));
    need(cx, et_events_open(cx, path, &e));
    need(cx, et_events_next(e, &r, &got));
    n_shown = 0;
    et_relay_record(relay, &progress, &r);
    is_int(n_shown, 0, "a full record waits for the rest of its numbers");
    const struct et_record next = {.kind = ET_RECORD_EPOCH, .t = r.t, .ep = 1, .ba = 1};
    et_relay_record(relay, &progress, &next);
    ok(n_shown == 2 && shown[0].event == ET_EVENT_BATCH_END && shown[0].n > 0 &&
           shown[1].event == ET_EVENT_EPOCH_END && shown[1].n == 0,
       "a full record is shown with what it has when another record comes");
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
    test_states(cx);
    test_cut(cx);
    et_ctx_free(&cx);
    return done();
}
