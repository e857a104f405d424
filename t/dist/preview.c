/* SPDX-License-Identifier: Apache-2.0 */
/* preview.c: what a long log says before all of it has been read. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/journal/events.h"
#include "dist/hub/follow.h"
#include "dist/hub/preview.h"
#include "t/tap.h"

enum { BATCHES = 12000, EPOCH = 500, AGAIN = 7000, BATCH = 32 };
static char folder[] = "/tmp/etude-glance.XXXXXX";

static void
need(struct et_ctx *cx, et_status status)
{
    if (status != ET_OK)
        bail("%s", et_error_get(cx)->message);
}

static void
put(struct eti_events_writer *w, enum et_record_kind kind, int64_t ba, const char *text,
    const struct et_log_entry *entry, int n)
{
    const struct et_record r = {
        .kind = kind,
        .t = 1e9 + 0.1 * (double)w->seq,
        .ep = ba / EPOCH,
        .ba = ba,
        .sp = ba * BATCH,
        .text = text,
        .entry = entry,
        .n = n,
    };
    eti_events_write(w, &r);
}

/* A peak that is one batch wide, and falls otherwise. */
static double
loss(int64_t ba)
{
    return ba == 4321 ? 99 : 1.0 + 5.0 / (1.0 + (double)ba / 100);
}

static void
batches(struct eti_events_writer *w, int64_t from, int64_t to, double more)
{
    for (int64_t ba = from; ba <= to; ba++) {
        const struct et_log_entry e[] = {
            {"loss/train/total", loss(ba) + more},
            {"lr-SGD/group0", 0.1},
        };
        put(w, ET_RECORD_BATCH, ba, NULL, e, 2);
        if (ba % EPOCH == 0)
            put(w, ET_RECORD_EPOCH, ba, NULL, NULL, 0);
    }
}

/* A run that went 500 batches beyond AGAIN, and then did those again. */
static void
write_log(struct et_ctx *cx)
{
    static const unsigned char id[ETI_EVENTS_ID] = "glance";
    const struct et_log_entry length[] = {
        {"run/batches", 2 * BATCHES},
        {"run/epoch_batches", EPOCH},
        {"run/batch_size", BATCH},
    };
    const struct et_log_entry own[] = {{"own_ms", 42}};
    struct eti_events_writer w;
    need(cx, eti_events_begin(cx, folder, id, &w));
    put(&w, ET_RECORD_RUN, 0, "running", length, 3);
    batches(&w, 1, AGAIN + 500, 1000);
    put(&w, ET_RECORD_RESUME, AGAIN, NULL, NULL, 0);
    batches(&w, AGAIN + 1, BATCHES, 0);
    put(&w, ET_RECORD_HEALTH, BATCHES, NULL, own, 1);
    eti_events_end(&w);
}

static struct etd_follow *
read_all(struct et_ctx *cx)
{
    struct etd_follow *f;
    int64_t left = 1;
    need(cx, etd_follow_open(cx, folder, &f));
    while (left > 0)
        need(cx, etd_follow_read(f, 1, 0, &left));
    return f;
}

/* The greatest value of all bins. */
static double
peak(const struct etd_series *s)
{
    double most = -INFINITY;
    for (int i = 0; i < s->n_bins; i++)
        most = s->bin[i].n > 0 ? fmax(most, s->bin[i].max) : most;
    return most;
}

static void
test_newest(const struct etd_model *g, const struct etd_model *all)
{
    const struct etd_series *a = etd_model_series(g, "loss/train/total");
    const struct etd_series *b = etd_model_series(all, "loss/train/total");
    ok(g->ba == all->ba && g->sp == all->sp && g->t == all->t && g->seq == all->seq,
       "its moment is that of the newest record");
    ok(a && a->last == b->last && a->last_ba == b->last_ba, "with its values");
    ok(g->epoch_ba == all->epoch_ba, "the epoch under way began where it did");
    ok(strcmp(g->state, "running") == 0 && etd_model_length(g, "run/batches") == 24000,
       "what the run is and how long stands as at its start");
    ok(g->n_ranks == 1 && etd_part_get(&g->rank[0], "own_ms") == 42,
       "ranks are as they said last");
    bool settled;
    ok(!isnan(etd_model_left(g, &settled)), "and when it ends can be told");
}

static void
test_log(struct et_ctx *cx)
{
    struct etd_preview *g;
    struct etd_follow *f = read_all(cx);
    const struct etd_model *all = etd_follow_model(f), *first;
    const struct etd_series *s, *whole = etd_model_series(all, "loss/train/total");
    bool done;
    int bins[8], n = 0, steps = 0;
    need(cx, etd_preview_open(cx, folder, &g));
    ok(etd_preview_model(g) == NULL, "before a step there is nothing");
    need(cx, etd_preview_step(g, 0, &done));
    first = etd_preview_model(g);
    if (!ok(first && !done, "one step shows something"))
        bail("there is no first glance");
    test_newest(first, all);
    bins[n++] = etd_model_series(first, "loss/train/total")->n_bins;
    for (done = false; !done && steps < 100; steps++) {
        const struct etd_model *before = etd_preview_model(g);
        need(cx, etd_preview_step(g, 0, &done));
        if (etd_preview_model(g) != before && n < 8)
            bins[n++] =
                etd_model_series(etd_preview_model(g), "loss/train/total")->n_bins;
    }
    ok(done, "it comes to an end");
    bool finer = n > 2;
    for (int i = 1; i < n; i++)
        finer = finer && bins[i] > bins[i - 1];
    ok(finer, "charts get finer: %d, %d, %d bins", bins[0], bins[1], bins[n - 1]);
    test_newest(etd_preview_model(g), all);
    s = etd_model_series(etd_preview_model(g), "loss/train/total");
    ok(peak(s) == peak(whole) && peak(s) > 1000, "no peak is missed");
    for (int i = 0; i < s->n_bins; i++)
        done = done && (s->bin[i].bin * etd_preview_model(g)->width <= AGAIN ||
                        s->bin[i].max < 100);
    ok(done, "what was done again is shown as it was done last");
    const struct etd_model *m = etd_preview_model(g);
    int64_t axis = s->bin[s->n_bins / 2].bin, ba = axis * m->width, off = 0;
    ok(isfinite(m->axis[axis].t), "and bins know when they were");
    for (int i = 0; i < s->n_bins; i++) {
        axis = s->bin[i].bin;
        ba = axis * m->width;
        off += m->axis[axis].ep < ba / EPOCH ||
               m->axis[axis].ep > (ba + m->width) / EPOCH ||
               m->axis[axis].sp < ba * BATCH ||
               m->axis[axis].sp > (ba + m->width) * BATCH;
    }
    is_int(off, 0, "in which epoch, and behind how many samples");
    etd_preview_close(&g);
    etd_follow_close(&f);
}

/* Logs whose newest records are also their first. */
static void
test_short(struct et_ctx *cx)
{
    static const int lengths[] = {1, 2, 63, 64, 65, 66, 200};
    static const unsigned char id[ETI_EVENTS_ID] = "glance";
    char path[64];
    snprintf(path, sizeof path, "%s/events.log", folder);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct eti_events_writer w;
        struct etd_preview *g;
        bool done;
        need(cx, eti_events_begin(cx, folder, id, &w));
        for (int ba = 1; ba <= lengths[i]; ba++) {
            const struct et_log_entry e = {"loss/train/total", loss(ba)};
            put(&w, ET_RECORD_BATCH, ba, NULL, &e, 1);
        }
        eti_events_end(&w);
        need(cx, etd_preview_open(cx, folder, &g));
        need(cx, etd_preview_step(g, 0, &done));
        const struct etd_model *m = etd_preview_model(g);
        const struct etd_series *s = m ? etd_model_series(m, "loss/train/total") : NULL;
        ok(s && s->n == lengths[i] && s->last_ba == lengths[i],
           "of %d records each is counted once: %d", lengths[i], s ? (int)s->n : 0);
        etd_preview_close(&g);
        unlink(path);
    }
}

/* An epoch that began before the newest records: they do not say when. */
static void
test_epoch(struct et_ctx *cx)
{
    enum { LONG = 9000, LAST = 3 * LONG / 2 };
    static const unsigned char id[ETI_EVENTS_ID] = "glance";
    const struct et_log_entry length[] = {{"run/batches", 2 * LONG},
                                          {"run/epoch_batches", LONG}};
    struct eti_events_writer w;
    struct etd_preview *g;
    bool done;
    char path[64];
    snprintf(path, sizeof path, "%s/events.log", folder);
    need(cx, eti_events_begin(cx, folder, id, &w));
    put(&w, ET_RECORD_RUN, 0, "running", length, 2);
    for (int ba = 1; ba <= LAST; ba++) {
        const struct et_log_entry e = {"loss/train/total", loss(ba)};
        put(&w, ET_RECORD_BATCH, ba, NULL, &e, 1);
        if (ba == LONG)
            put(&w, ET_RECORD_EPOCH, ba, NULL, NULL, 0);
    }
    eti_events_end(&w);
    need(cx, etd_preview_open(cx, folder, &g));
    need(cx, etd_preview_step(g, 0, &done));
    const struct etd_model *m = etd_preview_model(g);
    is_int(m ? m->epoch_ba : -1, LONG, "an epoch began where its length says");
    etd_preview_close(&g);
    unlink(path);
}

static void
test_faults(struct et_ctx *cx)
{
    struct etd_preview *g;
    char path[64];
    snprintf(path, sizeof path, "%s/events.log", folder);
    if (truncate(path, 20) != 0)
        bail("%s cannot be cut off", path);
    is_int(etd_preview_open(cx, folder, &g), ET_EFORMAT,
           "a log that is none is refused");
    ok(g == NULL, "without a glance");
    et_error_clear(cx);
    unlink(path);
    is_int(etd_preview_open(cx, folder, &g), ET_ENOENT, "as is one that is not there");
    et_error_clear(cx);
}

int
main(void)
{
    struct et_ctx *cx;
    if (!mkdtemp(folder) || et_ctx_new(&cx) != ET_OK)
        bail("no folder");
    test_short(cx);
    test_epoch(cx);
    write_log(cx);
    test_log(cx);
    test_faults(cx);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    rmdir(folder);
    return done();
}
