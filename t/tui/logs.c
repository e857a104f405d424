/* logs.c: the screen Logs keeps the newest lines. Where the oldest go, what is selected
 * and where it stands on the screen stay as they are. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "t/tap.h"
#include "t/tui/picture.h"

enum { KEPT = 20000, DROPPED = KEPT / 10, RANKS = 4 };

static int64_t written, taken; /* lines that ranks wrote; that the screen has */

static bool
next_line(struct tui_source *s, struct tui_log_line *out)
{
    static char text[32];
    (void)s;
    if (taken == written)
        return false;
    snprintf(text, sizeof text, "line %lld", (long long)taken);
    *out = (struct tui_log_line){NAN, (int)(taken++ % RANKS), ET_LOG_INFO, NULL, text};
    return true;
}

/* Ranks write N lines more, and the screen takes them. */
static void
write_lines(struct tui_app *app, int n)
{
    written += n;
    while (taken < written)
        tui_app_tick(app, 0.01);
    picture_draw(app);
}

/* Row and text of the line that is selected: "7: line 19990". */
static void
is_selected(const char *want, const char *name)
{
    char got[64] = "nothing";
    const char *at = picture;
    for (int row = 0; *at; row++) {
        const int n = (int)strcspn(at, "\n");
        const char *text = strstr(at, "line ");
        if (*at == '>' && text)
            snprintf(got, sizeof got, "%d: %.*s", row,
                     (int)strcspn(text, " \n") + 1 +
                         (int)strspn(text + 5, "0123456789"),
                     text);
        at += n + (at[n] == '\n');
    }
    if (!is_str(got, want, "%s", name))
        diag("\n%s", picture);
}

static void
write_own(struct tui_source_class *class)
{
    class->line = next_line;
}

static void
test_all_ranks(struct tui_app *app)
{
    write_lines(app, KEPT);
    picture_has(" 20,000 lines ", "all lines are kept while there are few");
    picture_press(app, "kkkkk");
    is_selected("16: line 19994", "five lines above the end one is selected");
    write_lines(app, 1);
    picture_has(" 18,001 lines ",
                "the oldest tenth goes at once, for the first beyond that");
    picture_has("2,000 older lines are in the run's folder logs/", "which is said");
    is_selected("16: line 19994", "the selected line stays, and its place");
    write_lines(app, DROPPED);
    picture_has("4,000 older lines", "the next tenth goes when as many have come");
    is_selected("16: line 19994", "and it stays again");
}

/* One line in four is shown, and one in four of those that go was. */
static void
test_one_rank(struct tui_app *app)
{
    picture_press(app, "Grr");
    picture_has(" 4,500 of 18,001 lines   rank 1", "one rank's lines are shown");
    picture_press(app, "kk");
    is_selected("19: line 21989", "two lines above the end one is selected");
    write_lines(app, DROPPED);
    picture_has(" 4,500 of 18,001 lines", "as many go as come");
    is_selected("19: line 21989", "the selected line of one rank stays too");
}

/* Nothing stays that is gone: the oldest of those that are left is selected. */
static void
test_oldest(struct tui_app *app)
{
    picture_press(app, "\033g");
    is_selected("3: line 6000", "the first line is the oldest");
    picture_press(app, "jj");
    write_lines(app, DROPPED);
    is_selected("3: line 8000", "where it goes the oldest that is left is selected");
    picture_press(app, "G");
    write_lines(app, DROPPED);
    is_selected("21: line 28000", "who follows the end goes on following");
}

int
main(void)
{
    char folder[] = "/tmp/etude-logs.XXXXXX";
    struct tui_source_class class;
    struct et_ctx *cx;
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    picture_run(folder, "20");
    struct tui_app *app = picture_open(cx, folder, TUI_IN_logs, &class, write_own);
    test_all_ranks(app);
    test_one_rank(app);
    test_oldest(app);
    picture_close(&app, folder);
    et_ctx_free(&cx);
    return done();
}
