/* SPDX-License-Identifier: Apache-2.0 */
/* logs.c: the screen Logs keeps the newest lines. Where the oldest go, what is selected
 * and where it stands on the screen stay as they are. What its keys show of a few
 * lines. */
#include "config.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/library/facts.h"
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

/* ---- a few lines of all kinds ---- */

static const struct tui_log_line said[] = {
    {100, 0, ET_LOG_INFO, NULL, "begins"},
    {101, 1, ET_LOG_WARN, NULL, "hot GPU"},
    {102, 0, ET_LOG_ERROR, NULL, "error lost a rank"},
    {103, 2, -1, NULL, "printed"},
    {104, 0, ET_LOG_DEBUG, NULL, "detail"},
    {105, 0, ET_LOG_INFO, "eval", "Accuracy .8"},
    {106, 9, ET_LOG_INFO, NULL, "hot again"},
};
enum { SAID = sizeof said / sizeof *said };

static bool
next_said(struct tui_source *s, struct tui_log_line *out)
{
    (void)s;
    if (taken == written)
        return false;
    *out = said[taken++ % SAID];
    return true;
}

static void
write_said(struct tui_source_class *class)
{
    class->line = next_said;
}

/* The text of the line that is selected is WANT. */
static void
is_at(const char *want, const char *name)
{
    const char *at = strstr(picture, "\n>");
    const int n = at ? (int)strcspn(at + 1, "\n") : 0;
    if (!ok(n >= (int)strlen(want) &&
                strncmp(at + 1 + n - strlen(want), want, strlen(want)) == 0,
            "%s", name))
        diag("\n%s", picture);
}

static void
test_levels(struct tui_app *app)
{
    write_lines(app, SAID);
    picture_has("   7 lines   rank all   all levels", "all lines are shown");
    picture_has("error  lost a rank", "an error does not say twice that it is one");
    picture_press(app, "v");
    picture_has("   6 of 7 lines   rank all   info and worse",
                "from info on, which printed lines count as");
    picture_press(app, "v");
    picture_has("   2 of 7 lines   rank all   warn and worse", "from warnings on");
    picture_press(app, "v");
    picture_has("   1 of 7 lines   rank all   error and worse", "errors");
    picture_press(app, "v");
    picture_has("   7 lines   rank all   all levels", "and all again");
    picture_press(app, "e");
    picture_has("   1 of 7 lines   rank all   errors", "errors alone");
    picture_press(app, "e");
    picture_has("   7 lines   rank all   all levels", "or not alone");
    picture_press(app, "rv");
    picture_has("   3 of 7 lines   rank 0   info and worse",
                "a rank's lines from a level on");
    picture_press(app, "e\033");
    picture_has("   7 lines   rank all   all levels", "esc shows all lines again");
    picture_press(app, "rrrrrrrrrr");
    picture_has(
        "   1 of 7 lines   rank 9   all levels",
        "ranks that wrote lines can be chosen, whether the run has them or not");
    picture_press(app, "r");
    picture_has("   7 lines   rank all   all levels", "behind the last come all");
}

static void
test_search(struct tui_app *app)
{
    static const char other_end[] = "the search goes on from the other end";
    picture_press(app, "G");
    picture_press(app, "/HOT\r");
    is_at("hot GPU", "a search goes on from the end to the first line that has it");
    picture_has(other_end, "and says so");
    picture_press(app, "n");
    is_at("hot again", "the next one is below");
    picture_press(app, "N");
    is_at("hot GPU", "the one before above");
    ok(!strstr(picture, other_end), "within the lines nothing is said");
    picture_press(app, "N");
    is_at("hot again", "before the first comes the last");
    picture_has(other_end, "which is said, too");
    picture_press(app, "\033/nowhere\r");
    picture_has("! 'nowhere' stands in no line that is shown", "what is not there is");
    is_at("hot again", "and nothing moves");
    picture_press(app, "\033");
}

static void
test_waiting(struct tui_app *app)
{
    picture_press(app, "Gk");
    write_lines(app, 2);
    picture_has(" 2 lines wait, G", "lines wait while one has scrolled");
    is_at("Accuracy .8", "which does not move");
    picture_press(app, "G");
    is_at("hot GPU", "the end is the newest line");
    ok(!strstr(picture, " wait"), "then none waits any more");
    write_lines(app, 1);
    is_at("lost a rank", "and it is followed");
    picture_press(app, "k");
    write_lines(app, 1);
    picture_has(" 1 line waits, G", "those that have been seen are not counted again");
    picture_press(app, "f");
    is_at("printed", "f follows the end, too");
    ok(!strstr(picture, " wait"), "and none waits");
    picture_press(app, "f");
    write_lines(app, 1);
    picture_has(" 1 line waits, G", "f again stays where it is");
}

/* The line of the picture that counts lines. */
static void
second_line(char *buf, size_t size)
{
    const char *line = strchr(picture, '\n') + 1;
    snprintf(buf, size, "%.*s", (int)strcspn(line, "\n"), line);
}

/* What a filter leaves selected, what waits behind it, and what is said of none. */
static void
test_filter(struct tui_app *app)
{
    picture_press(app, "\033g&eva\r");
    picture_has("1 of ", "a word is looked for in what a line is, too");
    is_at("Accuracy .8", "which is the line of an evaluation");
    picture_press(app, "\033&zzz\r");
    picture_has("no line passes; esc shows all",
                "a filter that nothing passes says so");
    picture_press(app, "\033gjjjjj");
    is_at("Accuracy .8", "a line is selected");
    picture_press(app, "r");
    is_at("Accuracy .8", "it stays so among those of its rank");
    picture_press(app, "\033grrrr");
    while (taken % SAID != 0)
        write_lines(app, 1);
    write_lines(app, 1);
    ok(!strstr(picture, " wait"), "lines of other ranks are not waited for");
    picture_press(app, "\033");
    ok(!strstr(picture, "all levels and"), "all levels have none that are better");
    char head[200];
    second_line(head, sizeof head);
    app->is_frozen = true;
    written += 5;
    tui_app_tick(app, 0.01);
    picture_draw(app);
    char frozen[200];
    second_line(frozen, sizeof frozen);
    is_str(frozen, head, "a frozen view takes no lines");
    app->is_frozen = false;
    write_lines(app, 0);
}

/* A search leaves the end; a click selects the line that is seen there. */
static void
test_places(struct tui_app *app)
{
    picture_press(app, "G/begins\r");
    is_at("begins", "what was searched for is selected");
    write_lines(app, 1);
    is_at("begins", "and stays so when a line comes");
    picture_press(app, "\033g");
    const struct tui_mouse click = {.y = 3 + 2, .x = 30, .what = TUI_CLICK};
    tui_app_mouse(app, &click);
    picture_draw(app);
    is_at("lost a rank", "a click selects the third line, where it stands");
}

/* ---- lines that are wider than the screen ---- */

enum { ROOM = 80 - 23 }; /* columns of a text */

static bool
next_wide(struct tui_source *s, struct tui_log_line *out)
{
    static char text[200];
    (void)s;
    if (taken == written)
        return false;
    /* As wide as the room, one wider, and twice as wide and some. */
    static const int wide[] = {ROOM, ROOM + 1, 2 * ROOM + 20};
    const int n = wide[taken % 3];
    for (int i = 0; i < n; i++)
        text[i] = (char)('a' + i / 10 % 26);
    snprintf(text + n - 4, 8, "end%d", (int)(taken % 3));
    *out = (struct tui_log_line){NAN, (int)taken++, ET_LOG_INFO, NULL, text};
    return true;
}

static void
write_wide(struct tui_source_class *class)
{
    class->line = next_wide;
}

/* The row of the picture that has TEXT; -1: none has. */
static int
row_of(const char *text)
{
    const char *at = strstr(picture, text);
    int row = at ? 0 : -1;
    for (const char *c = picture; at && c < at; c++)
        row += *c == '\n';
    return row;
}

static void
arrow(struct tui_app *app, int key, int times)
{
    while (times-- > 0)
        tui_app_key(app, key);
    picture_draw(app);
}

static void
test_wide(struct et_ctx *cx)
{
    char folder[] = "/tmp/etude-logs.XXXXXX";
    struct tui_source_class class;
    written = taken = 0;
    picture_run(folder, "20");
    struct tui_app *app = picture_open(cx, folder, TUI_IN_logs, &class, write_wide);
    write_lines(app, 1);
    picture_has("   1 line   rank all", "one line is not many");
    picture_has("end0", "a line that just fits is whole");
    arrow(app, TUI_K_RIGHT, 1);
    picture_has(" aaaaaaaaaabb", "which cannot be moved");
    write_lines(app, 2);
    ok(!strstr(picture, "end1") && !strstr(picture, "end2"), "others are cut");
    arrow(app, TUI_K_RIGHT, 1);
    ok(strstr(picture, "end1") && !strstr(picture, "end2"), "right shows more of them");
    arrow(app, TUI_K_RIGHT, 3);
    picture_has("end2", "up to the end of the longest");
    arrow(app, TUI_K_RIGHT, 2);
    picture_has("end2", "and not beyond it");
    arrow(app, TUI_K_LEFT, 1);
    ok(!strstr(picture, "end2") && !strstr(picture, " aaaaa"),
       "left goes back a little");
    picture_press(app, "w");
    is_int(row_of("end0"), 3, "wrapped, what just fits has one line");
    is_int(row_of("end2"), 8, "what is one wider two, and the longest three");
    picture_has(" aaaaaaaaaabb", "each from its begin");
    picture_press(app, "w");
    ok(!strstr(picture, "end1"), "which they have again when they are cut");
    picture_close(&app, folder);
}

static void
count(void *data)
{
    (*(int *)data)++;
}

/* A filter is tried while it is typed. A wrong one lets all lines pass. */
static void
test_sieve(struct tui_app *app)
{
    static const char *const keys[] = {"rank", "level", NULL};
    static const struct {
        const char *text, *why, *any; /* ANY: where every key is one */
    } rows[] = {
        {"rank:1", "", ""},
        {"level:info rank:2", "", ""},
        {"rnak:1", "no line has the key 'rnak' (did you mean 'rank'?)", ""},
        {"ran:1", "no line has the key 'ran' (did you mean 'rank'?)", ""},
        {"rank:1 qqqqqq:1", "no line has the key 'qqqqqq'", ""},
        {"plain", "", ""},
    };
    int changes = 0;
    char buf[200];
    struct tui_sieve s = {.keys = keys, .changed = count, .data = &changes};
    for (int any = 0; any < 2; any++) {
        s.keys = any ? NULL : keys;
        tui_sieve_ask(app, &s, "filter");
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            const char *why =
                app->popup.check(app->popup.check_data, rows[i].text, buf);
            is_str(why ? why : "", any ? rows[i].any : rows[i].why, "'%s'%s",
                   rows[i].text, any ? ", of any keys" : "");
        }
        const char *why = app->popup.check(app->popup.check_data, "\"", buf);
        ok(why && !strstr(why, "key"), "half of one is none: %s", why ? why : "");
        picture_press(app, "\033");
    }
    is_int(changes, 0, "until it is taken nothing changes");
    tui_sieve_set(app, &s, "rank:1");
    ok(changes == 1 && s.filter && strcmp(s.text, "rank:1") == 0,
       "one that is taken holds, and is told");
    tui_sieve_ask(app, &s, "filter");
    is_str(app->popup.field.text, "rank:1", "it is there to be changed");
    picture_press(app, "\033");
    tui_sieve_set(app, &s, "\"");
    ok(changes == 2 && !s.filter && !*s.text, "a wrong one lets all pass");
    tui_sieve_set(app, &s, "plain");
    tui_sieve_set(app, &s, "");
    ok(changes == 4 && !s.filter && !*s.text, "as does an empty one");
    tui_sieve_release(&s);
}

static void
test_said(struct et_ctx *cx)
{
    char folder[] = "/tmp/etude-logs.XXXXXX";
    struct tui_source_class class;
    written = taken = 0;
    picture_run(folder, "20");
    struct tui_app *app = picture_open(cx, folder, TUI_IN_logs, &class, write_said);
    test_levels(app);
    test_search(app);
    test_waiting(app);
    test_sieve(app);
    test_filter(app);
    test_places(app);
    picture_close(&app, folder);
}

/* ---- files of ranks ---- */

/* Writes N lines of numbers, FORMAT, to logs/NAME of FOLDER. */
static void
put_numbers(const char *folder, const char *name, const char *format, int n)
{
    char path[512];
    snprintf(path, sizeof path, "%s/logs/%s", folder, name);
    FILE *f = fopen(path, "a");
    for (int i = 0; f && i < n; i++)
        fprintf(f, format, i);
    if (!f || fclose(f) != 0)
        bail("cannot write %s", path);
}

/* What comes of the logs: lines of each rank, the first and the last. */
struct came {
    int n[5];
    char first[5][32], last[5][32];
};

static void
take_lines(struct tui_source *s, struct came *out)
{
    struct tui_log_line l;
    *out = (struct came){0};
    while (s->class->advance(s, 1, 0))
        continue;
    while (s->class->line(s, &l)) {
        if (l.level >= 0 || l.word)
            continue; /* a record */
        const int k = l.rank >= 0 && l.rank < 4 ? l.rank : 4;
        if (out->n[k]++ == 0)
            snprintf(out->first[k], sizeof out->first[k], "%s", l.text);
        snprintf(out->last[k], sizeof out->last[k], "%s", l.text);
    }
}

static void
test_files(struct et_ctx *cx)
{
    enum { TAIL = 1 << 20, LONG = 150000, CUT = (10 * LONG - TAIL) / 10 + 1 };
    char folder[] = "/tmp/etude-logs.XXXXXX", command[256];
    struct tui_source *s;
    struct came came;
    json_t *facts;
    picture_run(folder, "20");
    snprintf(command, sizeof command, "rm -rf %s/logs && mkdir %s/logs", folder,
             folder);
    if (system(command) != 0)
        bail("no folder for logs");
    put_numbers(folder, "rank0.txt", "short %d\n", 2);
    put_numbers(folder, "rank1.txt", "%09d\n", LONG);
    put_numbers(folder, "rank2.txt.old", "old %d\n", 2);
    put_numbers(folder, "rank-2.txt", "old %d\n", 2);
    put_numbers(folder, "rank3.txt", "%07d\n", TAIL / 8);
    put_numbers(folder, "rank99999.txt", "far %d\n", 2);
    if (eti_facts_read(cx, folder, &facts) != ET_OK ||
        tui_source_dir(cx, facts, &s) != ET_OK)
        bail("no run: %s", et_error_get(cx)->message);
    take_lines(s, &came);
    ok(came.n[0] == 2 && strcmp(came.first[0], "short 0") == 0,
       "a short log is read from its beginning");
    is_int(came.n[1], LONG - CUT,
           "of a long one the last MiB, without the line that "
           "is cut");
    snprintf(command, sizeof command, "%09d", CUT);
    is_str(came.first[1], command, "from the next on");
    ok(came.n[3] == TAIL / 8 && strcmp(came.first[3], "0000000") == 0,
       "one of a MiB is whole");
    ok(came.n[2] == 0 && came.n[4] == 0, "files of other names are no logs of ranks");
    put_numbers(folder, "rank0.txt", "more %d\n", 3);
    take_lines(s, &came);
    ok(came.n[0] == 3 && strcmp(came.first[0], "more 0") == 0 && came.n[1] == 0,
       "what is added comes, and nothing else");
    tui_source_free(&s);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    (void)!system(command);
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
    test_said(cx);
    test_wide(cx);
    test_files(cx);
    et_ctx_free(&cx);
    return done();
}
