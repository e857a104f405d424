/* SPDX-License-Identifier: Apache-2.0 */
/* offers.c: whole menus and questions (offers.txt, see whole.h), what is selected in
 * them after keys and clicks, and all that the palette offers. `etude config set`,
 * which it starts, is this program once more. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/config/settings.h"
#include "t/tap.h"
#include "t/tui/made.h"
#include "t/tui/whole.h"
#include "t/unit/store.h"

enum { ROWS = 20, COLS = 70 };

static struct et_ctx *cx;
static struct tui_popup p;
static char told[200]; /* by callbacks */

static void
tell(const char *what, int id)
{
    snprintf(told + strlen(told), sizeof told - strlen(told), "%s%s %d",
             *told ? ", " : "", what, id);
}

static void
is_told(const char *want, const char *name)
{
    is_str(told, want, "%s", name);
    told[0] = '\0';
}

static void
done_with(struct tui_app *app, void *data, int id, const char *text)
{
    (void)app, (void)data;
    tell(*text ? text : "done", id);
}

static void
moved_to(struct tui_app *app, int id)
{
    (void)app;
    tell("at", id);
}

static void
turned_by(struct tui_app *app, void *data, int by)
{
    (void)app, (void)data;
    tell("turned", by);
}

static void
press(const char *keys)
{
    for (int key; (key = tui_keys_next(&keys)) > 0;)
        tui_popup_key(&p, NULL, key);
}

/* What P draws over a screen of small letters. */
static void
shows(int rows, int cols, bool with_roles, const char *name)
{
    struct tui_grid g;
    if (tui_grid_init(&g, cx, &tui_glyphs_ascii, rows, cols) != ET_OK)
        bail("no memory");
    const struct tui_pane all = tui_pane_of(&g);
    for (int y = 0; y < rows; y++)
        for (int x = 0; x < cols; x++)
            tui_put_ch(&all, y, x, 'a' + (unsigned)(x + y) % 26, TUI_TEXT, 0);
    tui_popup_draw(&p, &all);
    FILE *f = whole_text();
    tui_grid_print(&g, f);
    if (with_roles)
        tui_grid_print_roles(&g, f);
    whole_is(name);
    tui_grid_release(&g);
}

static void
menu(const char *title, const struct tui_item *item, int n)
{
    if (tui_popup_menu(&p, cx, title, item, n) != ET_OK)
        bail("no menu");
    p.done = done_with;
    p.moved = moved_to;
    told[0] = '\0';
}

/* ---- menus ---- */

static void
show_menus(void)
{
    static const struct tui_item brief[] = {
        {.text = "first", .is_heading = true},
        {.id = 3, .key = 'p', .text = "pause it", .note = "p"},
        {.id = 4,
         .key = TUI_K_PGUP,
         .text = "stop it, and the runs behind it",
         .note = "^S"},
        {.id = 5, .text = "kill it", .why = "it has ended"},
        {.text = "then", .is_heading = true},
        {.id = 6,
         .text = "a very long name of what is to be done, which is wide",
         .note = "all"},
    };
    static const struct tui_item texts[] = {
        {.id = 1, .text = "one", .note = "etude algo calm-heron mixup on alpha=0.2"},
        {.id = 2, .key = 'x', .text = "number two", .note = "brief"},
        {.id = 3, .text = "3", .note = "", .why = "not now"},
    };
    menu("take one", brief, 6);
    shows(ROWS, COLS, true, "a menu");
    shows(ROWS, 40, false, "a menu where not all of it has room");
    press("<down><down><up>");
    is_told("at 4, at 5, at 4", "what is selected is told once");
    press("<enter>");
    is_told("done 4", "enter takes it");
    menu("take one", brief, 6);
    press("<down><down><enter>");
    ok(p.kind == TUI_MENU, "what cannot be taken is not");
    is_told("at 4, at 5", "and stays selected");
    press("<down>");
    is_told("at 6", "a heading is stepped over");
    press("<up><up><up><up><up>");
    is_int(p.list.at, 1, "up ends at the first that can be taken");
    told[0] = '\0';
    press("<esc>");
    is_told("at -1", "esc is told as well");
    menu("with texts", texts, 3);
    tui_popup_line(&p, "These are the commands: %s.", "each does what its row says");
    tui_popup_line(&p, "%s", "");
    tui_popup_line(&p, "A line that is much longer than the screen has columns, which "
                       "is why it goes on in the next one.");
    press("<down>");
    shows(ROWS, COLS, true, "a menu whose notes are texts");
    shows(8, COLS, false, "in few rows the lines above are cut");
    tui_popup_close(&p);
}

/* 30 items with two words each. */
static int
many(struct tui_item *item)
{
    static const char *const what[] = {"Loss", "rate", "loss of eval"};
    int n = 0;
    for (int i = 0; i < 30; i++) {
        if (i % 15 == 0) {
            item[n] = (struct tui_item){.is_heading = true};
            snprintf(item[n++].text, sizeof item->text, "group %d", i / 15);
        }
        item[n] = (struct tui_item){.id = 100 + i, .is_held = i % 5 == 4};
        snprintf(item[n].text, sizeof item->text, "%s %d", what[i % 3], i);
        snprintf(item[n].note, sizeof item->note, "note%d", i % 2);
        snprintf(item[n++].mid, sizeof item->mid, i % 4 ? "leads to %d" : "", i);
    }
    return n;
}

static void
offer_many(bool wide)
{
    struct tui_item item[40];
    menu("look among them", item, many(item));
    p.filters = true;
    p.wide = wide;
    tui_popup_sift(&p);
}

/* A click at the row that is Y below the first item of P. */
static void
click(int y)
{
    tui_popup_click(&p, NULL, p.area.y + p.first_row + y, p.area.x + 3);
}

static void
show_filters(void)
{
    offer_many(true);
    shows(30, 90, false, "a wide menu");
    for (int i = 0; i < 15; i++)
        press("<down>");
    shows(30, 90, true, "scrolled");
    told[0] = '\0';
    click(0);
    is_told("done 106", "a click takes what is seen there");
    offer_many(true);
    press("LOSS note1");
    shows(30, 90, true, "what has both words, wherever they stand");
    press("<down><down>");
    press("<bksp><bksp><bksp><bksp><bksp>");
    is_int(p.list.at, 1, "what is typed selects the first again");
    press("of eval 29");
    shows(30, 90, false, "one is left");
    press("<ctrl-u>eva los 5");
    shows(30, 90, true, "each word is marked where it stands");
    press("x");
    shows(30, 90, false, "none is left");
    press("<enter>");
    ok(p.kind == TUI_MENU, "of which none can be taken");
    tui_popup_close(&p);
    offer_many(false);
    press("loss of eval ");
    shows(30, 60, false, "a menu that filters: what begins so comes first");
    press("2<down>");
    told[0] = '\0';
    tui_popup_click(&p, NULL, p.area.y - 1, p.area.x);
    ok(p.kind == TUI_MENU, "a click on the border does nothing");
    tui_popup_click(&p, NULL, p.area.y - 2, p.area.x);
    ok(p.kind == TUI_NO_POPUP, "one beside it leaves the menu");
    is_told("at -1", "which is told");
    offer_many(false);
    for (int i = 0; i < 40; i++)
        press("<down>");
    is_int(p.list.at, p.list.n - 1, "down ends at the last");
    press("rate");
    p.list.at = p.list.n;
    tui_popup_sift(&p);
    is_int(p.list.at, p.list.n - 1, "what was selected behind the last is the last");
    tui_popup_close(&p);
}

/* ---- questions ---- */

static const char *
must_be(void *data, const char *text, char *buf)
{
    if (strcmp(text, data) == 0)
        return NULL;
    snprintf(buf, 160, "it has to be %s", (const char *)data);
    return buf;
}

static void
show_questions(void)
{
    static char right[] = "owl", wrong[] = "yak";
    char text[200];
    tui_popup_prompt(&p, cx, "what", "a text that is there already, and quite wide");
    shows(ROWS, COLS, true, "a question with an answer");
    press("<ctrl-u>no");
    shows(ROWS, COLS, false, "which stays as wide when it is cleared");
    tui_popup_prompt(&p, cx, "its name", "ow");
    tui_popup_line(&p,
                   "A sentence above what is asked for, wider than all else in it.");
    p.done = done_with;
    p.check = must_be;
    p.data = wrong;
    p.check_data = right;
    shows(ROWS, COLS, true, "a question whose answer will not do");
    told[0] = '\0';
    press("<enter>");
    is_told("", "which is not taken");
    press("l<enter>");
    is_told("owl 0", "the right one is");
    tui_popup_prompt(&p, cx, "turn", "ab");
    p.done = done_with;
    p.turned = turned_by;
    press("<up><down><up><enter>");
    is_told("turned -1, turned 1, turned -1, ab 0", "up and down turn");
    memset(text, 'w', sizeof text);
    snprintf(text + 180, 20, " end");
    tui_popup_prompt(&p, cx, "much", text);
    shows(ROWS, COLS, false, "an answer of several rows");
    shows(6, COLS, false, "where there is no room it has one");
    tui_popup_close(&p);
}

/* ---- the palette ---- */

static void
write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        bail("cannot write %s", path);
}

/* All that M's palette offers, held back or not. */
static void
lists(struct made *m, const char *name)
{
    const struct tui_popup *all = &m->app->popup;
    FILE *f = whole_text();
    for (int i = 0; i < all->n_items; i++) {
        const struct tui_item *item = &all->item[i];
        if (item->is_heading)
            fprintf(f, "%s\n", item->text);
        else
            fprintf(f, " %c %s | %s | %s\n", item->is_held ? '-' : '+', item->text,
                    item->mid, item->note);
    }
    whole_is(name);
}

static void
says(struct made *m, const char *keys, const char *want, const char *name)
{
    m->app->message[0] = '\0';
    made_press(m, keys);
    is_str(m->app->message, want, "%s", name);
}

/* What is being saved has been: the message is WANT. */
static void
ends(struct made *m, const char *want, const char *name)
{
    for (int i = 0; i < 600 && !tui_palette_tick(m->app); i++)
        usleep(10000);
    is_str(m->app->message, want, "%s", name);
}

static void
test_palette(void)
{
    const char *path[ETI_LAYERS] = {NULL, "config.yaml", NULL};
    struct et_diagnostics errors = {0};
    struct eti_config *config = NULL;
    struct made *m =
        made_run(cx, "{\"name\": \"brisk-otter\", \"state\": \"running\"}");
    mkdir("themes", 0700);
    write_text("themes/dusk.yaml", "ground: dark\n");
    write_text("themes/light.yaml", "ground: light\n");
    write_text("themes/notes.txt", "\n");
    write_text("config.yaml", "ui: {plot: ascii}\n");
    store_run("calm-heron", 1, "finished");
    store_run("wry-ibis", 3, "failed");
    store_run("old-yak", 2, "stopped");
    if (eti_config_load(cx, path, &config, &errors) != ET_OK)
        bail("no settings: %s", et_error_get(cx)->message);
    made_open(m, TUI_IN_monitor, 24, 80);
    m->app->config.settings = config;
    m->app->config.themes = "themes";
    made_press(m, ":");
    lists(m, "what the palette offers in Monitor");
    made_press(m, "<esc>3:");
    lists(m, "and in Runs");
    made_press(m, "ui.plot<enter>");
    is_str(m->app->popup.title, "ui.plot", "a setting is asked for");
    is_str(m->app->popup.field.text, "ascii", "with its value");
    made_press(m, "<esc>");
    made_press(m, ":old-yak<enter>");
    ok(strstr(m->app->message, "runs/old-yak/events.log: ") != NULL,
       "the run that was chosen is to be watched");
    says(m, ":theme light<enter>", "", "a theme that is chosen is saved");
    ends(m, "ui.theme: light", "which is told when it is done");
    says(m, ":progress<enter><ctrl-u>never<enter>", "", "and so is a setting");
    ends(m, "progress: never, from the next start on", "which holds later");
    made_press(m, ":color<enter><ctrl-u>purple<enter>");
    ends(m, "x no such value: purple", "what cannot be saved is told, and why");
    is_int(m->app->message_role, TUI_BAD, "as what is bad");
    made_press(m, "2:logarithmic or lin<enter>");
    ok(tui_app_state(m->app, TUI_IN_monitor) != NULL, "a command of here is done here");
    made_press(m, "3:smooth more<enter>");
    is_int(tui_app_place(m->app), TUI_IN_monitor,
           "one of another screen is done there");
    made_press(m, "3:");
    store_remove("runs/wry-ibis");
    says(m, "wry-ibis<enter>", "! wry-ibis is not there any more",
         "one that is gone meanwhile is not");
    made_free(&m);
    eti_config_free(&config);
}

/* ---- pages of ways on ---- */

/* The row of M's screen that has TEXT; -1: none has. */
static int
row_of(struct made *m, const char *text)
{
    const char *screen = made_screen(m), *at = strstr(screen, text);
    int row = at ? 0 : -1;
    for (; at && screen < at; screen++)
        row += *screen == '\n';
    return row;
}

static void
no_history(const struct tui_source *s, int64_t *done, int64_t *all)
{
    (void)s;
    *done = *all = 0;
}

static void
test_ways(void)
{
    struct made *m = made_run(cx, "{\"name\": \"calm-yak\"}");
    struct tui_source_class class = *m->source.class;
    class.progress = no_history;
    m->source.class = &class;
    made_open(m, TUI_IN_monitor, 24, 80);
    m->source.link = TUI_LINK_CONNECTING;
    snprintf(m->source.code, sizeof m->source.code, "LOST");
    snprintf(m->source.said, sizeof m->source.said, "nobody listens");
    m->source.retry = tui_now(m->app) - 5;
    ok(row_of(m, " nobody listens; it is tried again in 0 s") > 0,
       "a try that is late is not one of before");
    const struct tui_mouse click = {
        .y = row_of(m, "the workers: t tests one"), .x = 8, .what = TUI_CLICK};
    tui_app_mouse(m->app, &click);
    is_int(tui_app_place(m->app), TUI_IN_workers, "a click on a way takes it");
    made_press(m, "2");
    MADE_SAY(m, ET_RECORD_RUN, 0, "running", {"run/batches", 4});
    ok(row_of(m, "has not answered") < 0,
       "a run of which something was seen stays, while its link is tried again");
    m->source.is_refused = true;
    ok(row_of(m, "cannot be shown") < 0, "and when it is refused later");
    m->app->source = NULL;
    m->app->config.recent = "Lately: calm-heron.";
    is_int(row_of(m, " Lately: calm-heron."),
           row_of(m, "attach to another machine") + 2,
           "without a run it is said where to begin");
    m->app->source = &m->source;
    made_free(&m);
}

/* ---- help ---- */

static void
helps(struct made *m, int rows, int cols, const char *keys, const char *name)
{
    tui_app_resize(m->app, rows, cols);
    made_press(m, keys);
    fputs(made_screen(m), whole_text());
    whole_is(name);
}

/* A click at the line that has TEXT, in the half that begins at column X. */
static void
click_at(struct made *m, const char *text, int x)
{
    const struct tui_mouse click = {
        .y = row_of(m, text), .x = x + 3, .what = TUI_CLICK};
    tui_app_mouse(m->app, &click);
    (void)made_screen(m);
}

static void
test_help(void)
{
    struct made *m = made_run(cx, "{\"name\": \"calm-yak\"}");
    made_open(m, TUI_IN_monitor, 30, 80);
    helps(m, 30, 80, "?", "help: both lists beside each other");
    helps(m, 30, 76, "", "help: both just have room");
    helps(m, 30, 75, "", "help: one below the other");
    helps(m, 16, 60, "<down><down><down><PgDn><PgDn><PgDn>", "help: scrolled");
    const int first = m->app->help.top, was = m->app->help.at;
    const struct tui_mouse click = {.y = 5, .x = 4, .what = TUI_CLICK};
    tui_app_mouse(m->app, &click);
    ok(m->app->help.at >= first && m->app->help.at != was,
       "a click selects what is seen there");
    helps(m, 16, 60, "", "help: what was clicked at is selected");
    helps(m, 30, 80, "<ctrl-u>ctrl-", "help: by a key");
    helps(m, 30, 80, "<ctrl-u>own, util", "help: by what it says");
    helps(m, 30, 80, "<ctrl-u>a<down><down><down>", "help: the fourth of several");
    helps(m, 30, 80, "n", "help: the first when more is typed");
    made_press(m, "<ctrl-u>");
    FILE *f = whole_text();
    for (int rows = 20; rows < 30; rows++) {
        tui_app_resize(m->app, rows, 80);
        const bool both = row_of(m, " EVERYWHERE") == row_of(m, " HERE: Monitor");
        fprintf(f, "%d rows: %s, the last key is %sthere\n", rows,
                both ? "beside each other" : "below each other",
                row_of(m, "back to the last mark") > 0 ? "" : "not ");
    }
    whole_is("help: where it is divided");
    tui_app_resize(m->app, 30, 80);
    click_at(m, " redraw", 0);
    helps(m, 30, 80, "", "help: a click in the left list");
    click_at(m, " annotate this step", 37);
    helps(m, 30, 80, "", "help: a click in the right list");
    const int noted = m->app->help.at;
    click_at(m, " shift-drag", 37);
    is_int(m->app->help.at, noted, "below it there is nothing");
    made_press(m, "<enter>");
    is_str(m->app->popup.title, "a note at this batch", "enter does what is selected");
    made_press(m, "<esc>5?");
    const int at = m->app->help.at;
    click_at(m, " ctrl-z ", 37);
    is_int(m->app->help.at, at, "nor beside what is only on the left");
    made_free(&m);
}

/* `etude config set PATH VALUE`. */
static int
save(const char *value)
{
    if (strcmp(value, "purple") != 0)
        return 0;
    fprintf(stderr, "no such value: %s\n", value);
    return 1;
}

/* ---- the first line and the last two ---- */

/* Row Y of the screen, from its end where Y is below 0; TEXT has room for it. */
static const char *
row_at(struct made *m, int y, char text[512])
{
    const char *screen = made_screen(m);
    for (y += y < 0 ? m->app->grid.rows : 0; y > 0; y--)
        screen = strchr(screen, '\n') + 1;
    snprintf(text, 512, "%.*s", (int)strcspn(screen, "\n"), screen);
    return text;
}

static void
test_frame(void)
{
    struct made *m = made_run(cx, "{\"name\": \"calm-yak\"}");
    char text[512], long_text[4 * 60] = "";
    int apart = 0;
    made_open(m, TUI_IN_monitor, 24, 80);
    for (int i = TUI_SCREENS - 1; i >= 0; i--)
        for (int side = 0; side < 2; side++) {
            made_press(m, side ? "3" : "4");
            const char *row = row_at(m, 0, text);
            char name[2] = {(char)('1' + i), '\0'};
            const int x = (int)(strstr(row, name) - row);
            const int w = (int)strcspn(row + x + 2, " ]") + 1;
            tui_app_mouse(
                m->app,
                &(struct tui_mouse){.y = 0, .x = side ? x + w : x, .what = TUI_CLICK});
            apart += m->app->at != i;
        }
    is_int(apart, 0, "a click on a tab, from its first letter to its last, goes there");

    FILE *f = whole_text();
    made_press(m, "2");
    for (int cols = 20; cols <= 200; cols += cols < 110 ? 3 : 15) {
        tui_app_resize(m->app, 24, cols);
        fprintf(f, "%s\n", row_at(m, 0, text));
        fprintf(f, "%s\n", row_at(m, -1, text));
    }
    whole_is("frame: tabs and hints at each width");

    apart = 0;
    for (int cols = 40; cols <= 200; cols += 20) {
        tui_app_resize(m->app, 24, cols);
        row_at(m, -1, text);
        const int n = m->app->n_spots;
        row_at(m, -1, text);
        apart += m->app->n_spots != n;
        for (int i = 0; i < n; i++) {
            const struct tui_spot *a = &m->app->spot[i];
            if (a->y == 23) /* from a key to the end of its text */
                apart += a->x < 1 || text[a->x - 1] != ' ' || text[a->x] == ' ' ||
                         text[a->x + a->w - 1] == ' ' ||
                         (text[a->x + a->w] != ' ' && text[a->x + a->w] != '\0');
        }
    }
    is_int(apart, 0, "what can be clicked in the last line are its hints");

    for (int i = 0; i < 40; i++)
        snprintf(long_text + strlen(long_text), 7, "word%d ", i % 10);
    static const int sizes[][2] = {{60, 10}, {150, 10}, {60, 6}, {60, 4}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char name[64];
        tui_app_resize(m->app, sizes[i][1], sizes[i][0]);
        tui_say(m->app, TUI_WARN, "%s", long_text);
        snprintf(name, sizeof name, "frame: a long message at %d x %d", sizes[i][0],
                 sizes[i][1]);
        fputs(made_screen(m), whole_text());
        whole_is(name);
    }
    made_free(&m);
}

int
main(int argc, char **argv)
{
    struct et_alloc_stats stats;
    char dir[] = "/tmp/etude-offers.XXXXXX";
    if (argc == 5)
        return save(argv[4]);
    setenv("TZ", "UTC", 1);
    whole_open("offers");
    if (et_ctx_new(&cx) != ET_OK || !mkdtemp(dir) || chdir(dir) != 0)
        bail("no folder");
    setenv("XDG_STATE_HOME", dir, 1);
    setenv("XDG_DATA_HOME", dir, 1);
    setenv("XDG_DATA_DIRS", dir, 1);
    show_menus();
    show_filters();
    show_questions();
    test_help();
    test_palette();
    test_ways();
    test_frame();
    whole_close();
    if (chdir("/") != 0)
        bail("cannot leave");
    store_remove(dir);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
