/* logs.c: the screen Logs keeps the newest lines. Where the oldest go, what is selected
 * and where it stands on the screen stay as they are. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/run/facts.h"
#include "t/tap.h"
#include "tui/app.h"

enum { KEPT = 20000, DROPPED = KEPT / 10, RANKS = 4 };

static char folder[] = "/tmp/etude-logs.XXXXXX";
static char *picture;          /* of the last draw */
static int64_t written, taken; /* lines that ranks wrote; that the screen has */
static struct tui_source_class class;

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

static void
draw(struct tui_app *app)
{
    size_t n;
    free(picture);
    picture = NULL;
    FILE *f = open_memstream(&picture, &n);
    if (!f)
        bail("no memory for a picture");
    tui_app_draw(app);
    tui_grid_print(&app->grid, f);
    fclose(f);
}

/* Ranks write N lines more, and the screen takes them. */
static void
write_lines(struct tui_app *app, int n)
{
    written += n;
    while (taken < written)
        tui_app_tick(app, 0.01);
    draw(app);
}

static void
press(struct tui_app *app, const char *keys)
{
    for (; *keys; keys++)
        tui_app_key(app, *keys);
    draw(app);
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
has(const char *text, const char *name)
{
    if (!ok(strstr(picture, text) != NULL, "%s", name))
        diag("\n%s", picture);
}

static struct tui_app *
open_app(struct et_ctx *cx)
{
    struct tui_app *app;
    struct tui_source *source;
    json_t *facts;
    struct tui_app_config config = {
        .cx = cx,
        .glyphs = &tui_glyphs_ascii,
        .first = TUI_IN_logs,
        .rows = 24,
        .cols = 80,
    };
    tui_keys_default(&config.keys);
    if (tui_app_new(&config, &app) != ET_OK ||
        eti_facts_read(cx, folder, &facts) != ET_OK ||
        tui_source_dir(cx, facts, &source) != ET_OK)
        bail("no screen: %s", et_error_get(cx)->message);
    class = *source->class;
    class.line = next_line;
    source->class = &class;
    tui_app_attach(app, &source);
    draw(app);
    return app;
}

static void
test_all_ranks(struct tui_app *app)
{
    write_lines(app, KEPT);
    has(" 20,000 lines ", "all lines are kept while there are few");
    press(app, "kkkkk");
    is_selected("16: line 19994", "five lines above the end one is selected");
    write_lines(app, 1);
    has(" 18,001 lines ", "the oldest tenth goes at once, for the first beyond that");
    has("2,000 older lines are in the run's folder logs/", "which is said");
    is_selected("16: line 19994", "the selected line stays, and its place");
    write_lines(app, DROPPED);
    has("4,000 older lines", "the next tenth goes when as many have come");
    is_selected("16: line 19994", "and it stays again");
}

/* One line in four is shown, and one in four of those that go was. */
static void
test_one_rank(struct tui_app *app)
{
    press(app, "Grr");
    has(" 4,500 of 18,001 lines   rank 1", "one rank's lines are shown");
    press(app, "kk");
    is_selected("19: line 21989", "two lines above the end one is selected");
    write_lines(app, DROPPED);
    has(" 4,500 of 18,001 lines", "as many go as come");
    is_selected("19: line 21989", "the selected line of one rank stays too");
}

/* Nothing stays that is gone: the oldest of those that are left is selected. */
static void
test_oldest(struct tui_app *app)
{
    press(app, "\033g");
    is_selected("3: line 6000", "the first line is the oldest");
    press(app, "jj");
    write_lines(app, DROPPED);
    is_selected("3: line 8000", "where it goes the oldest that is left is selected");
    press(app, "G");
    write_lines(app, DROPPED);
    is_selected("21: line 28000", "who follows the end goes on following");
}

int
main(void)
{
    char command[512];
    const char *build = getenv("ET_BUILDDIR");
    struct et_ctx *cx;
    if (!mkdtemp(folder) || et_ctx_new(&cx) != ET_OK)
        bail("no folder");
    snprintf(command, sizeof command, "%s/t/tui/example %s 20", build ? build : ".",
             folder);
    if (system(command) != 0)
        bail("no example");
    struct tui_app *app = open_app(cx);
    test_all_ranks(app);
    test_one_rank(app);
    test_oldest(app);
    tui_app_free(&app);
    free(picture);
    et_ctx_free(&cx);
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) == 0 ? done() : 1;
}
