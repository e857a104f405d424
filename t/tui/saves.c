/* SPDX-License-Identifier: Apache-2.0 */
/* saves.c: what Monitor says of checkpoints: of the newest that was saved, where later
 * ones are being written or failed. */
#include "config.h"

#include <string.h>

#include "t/tap.h"
#include "t/tui/picture.h"

static const char *
refuses_nothing(const struct tui_source *s)
{
    (void)s;
    return NULL;
}

static void
allow_all(struct tui_source_class *class)
{
    class->refusal = refuses_nothing;
}

/* The screen when the record TEXT has come, of batch BA. */
static void
go_to(struct tui_app *app, int64_t ba, const char *text)
{
    struct tui_source *s = app->source;
    const struct etd_model *m = s->model;
    bool is_there = false;
    for (int64_t seq = m->seq + 1; !is_there && s->class->advance(s, 1, seq); seq++) {
        const struct etd_mark *k =
            m->n_marks > 0 ? etd_model_mark(m, m->n_marks - 1) : NULL;
        is_there = k && strcmp(k->text, text) == 0;
    }
    if (!is_there || m->ba != ba)
        bail("batch %lld has no '%s'", (long long)ba, text);
    s->link = TUI_LINK_LIVE; /* as if its processes were there */
    picture_draw(app);
}

static void
kills(struct tui_app *app, const char *want, const char *name)
{
    picture_press(app, "cK");
    picture_has(want, name);
    picture_press(app, "\033\033");
}

int
main(void)
{
    char folder[] = "/tmp/etude-saves.XXXXXX";
    struct tui_source_class class;
    struct et_ctx *cx;
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    picture_run(folder, "saves");
    struct tui_app *app = picture_open(cx, folder, TUI_IN_monitor, &class, allow_all);
    tui_app_resize(app, 36, 120);
    go_to(app, 1, "begun ep1-ba1");
    ok(!strstr(picture, "ckpt"), "a checkpoint that is being written is not told of");
    kills(app, "There is no checkpoint: all 1 batches are lost.",
          "and does not keep a kill from losing all");
    go_to(app, 4, "begun ep2-ba4");
    picture_has("  ckpt ep1 ",
                "one that was saved is, while the next is being written");
    kills(app, " 3 batches since the last checkpoint are lost.",
          "and a kill loses what was trained since");
    go_to(app, 6, "saved ep2-ba4");
    picture_has("  ckpt ep2 ", "of two that were saved the newest is told of");
    kills(app, " 2 batches since",
          "a kill loses what was trained while it was written");
    picture_press(app, "cK");
    go_to(app, 9, "failed ep3-ba8: No space left on device");
    picture_has(" 5 batches since", "the box counts on while it is open");
    picture_press(app, "\033\033");
    picture_has("  ckpt ep2 ", "after one that failed it still is the newest");
    kills(app, " 5 batches since", "also for a kill");
    go_to(app, 12, "begun ep4-ba12");
    picture_has("  ckpt ep2 ", "and when one more is being written");
    kills(app, " 8 batches since", "for a kill too");
    picture_press(app, "cK");
    app->source->link = TUI_LINK_ENDED;
    picture_draw(app);
    ok(!strstr(picture, "kill this run"), "a box goes when the run has ended");
    picture_has("the run has ended: nothing is asked of it", "which is said");
    picture_close(&app, folder);
    et_ctx_free(&cx);
    return done();
}
