/* SPDX-License-Identifier: Apache-2.0 */
/* listing.c: the screen Runs by what it keeps: which runs are listed and marked, what
 * they are measured by, what is put aside. The commands that it starts are this program
 * once more. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/library/facts.h"
#include "t/tap.h"
#include "t/tui/picture.h"
#include "t/unit/store.h"
#include "tui/runs.h"

static struct et_ctx *cx;

/* ---- the commands that the screen starts ---- */

/* Writes down its words, and answers; where ./fails is, it does not. */
static int
be_command(int n, char **word)
{
    FILE *f = fopen("asked", "w");
    for (int i = 1; f && i < n; i++)
        fprintf(f, "%s%s", word[i], i + 1 < n ? " " : "");
    if (f)
        fclose(f);
    if (access("fails", F_OK) == 0) {
        fputs("no memory for that", stderr);
        return 1;
    }
    fputs("{\"an\": \"answer\"}", stdout);
    return 0;
}

/* What the file PATH has, "-" where there is no such file. Good until the next call. */
static const char *
text_of(const char *path)
{
    static char text[4096];
    FILE *f = fopen(path, "r");
    if (!f)
        return "-";
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    return text;
}

static void
put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        bail("cannot write %s", path);
}

/* ---- the screen ---- */

static struct runs *
state_of(struct tui_app *app)
{
    return tui_app_state(app, TUI_IN_runs);
}

/* Ticks until there is no more to do. */
static void
settle(struct tui_app *app)
{
    for (int i = 0; i < 20000; i++) {
        app->changed = false;
        const bool more = tui_app_tick(app, 0.02), waits = state_of(app)->job.pid > 0;
        if (!more && !waits && !app->changed) {
            picture_draw(app);
            return;
        }
        if (waits)
            usleep(2000);
    }
    bail("the screen does not come to rest");
}

static void
press(struct tui_app *app, const char *keys)
{
    for (int key; (key = tui_keys_next(&keys)) > 0;) {
        tui_app_key(app, key);
        picture_draw(app);
    }
    settle(app);
}

/* Seven runs of t/tui/rivals, and OTHERS that are older and have no values, in a folder
 * of their own, which is entered. */
static struct tui_app *
open_more(int rows, int cols, const struct eti_config_price *price, int others)
{
    static int number;
    char name[32], command[4096];
    const char *build = getenv("ET_BUILDDIR");
    struct tui_app *app;
    struct tui_app_config config = {
        .cx = cx,
        .glyphs = &tui_glyphs_ascii,
        .price = price,
        .first = TUI_IN_runs,
        .rows = rows,
        .cols = cols,
    };
    snprintf(name, sizeof name, "rivals%d", number++);
    snprintf(command, sizeof command, "%s/t/tui/rivals", build ? build : ".");
    if (mkdir(name, 0700) != 0 || chdir(name) != 0 || system(command) != 0)
        bail("no runs");
    if (!getcwd(command, sizeof command))
        bail("no folder");
    setenv("XDG_STATE_HOME", command, 1); /* where no other runs are known */
    store_runs(1, 1 + others);
    tui_keys_default(&config.keys);
    if (tui_app_new(&config, &app) != ET_OK)
        bail("no screen: %s", et_error_get(cx)->message);
    picture_draw(app);
    settle(app);
    return app;
}

static struct tui_app *
open_rivals(int rows, int cols, const struct eti_config_price *price)
{
    return open_more(rows, cols, price, 0);
}

static void
close_rivals(struct tui_app **app)
{
    tui_app_free(app);
    if (chdir("..") != 0)
        bail("cannot leave");
}

/* The first letters of the names in LIST: "bcdebfg". Good until the next call. */
static const char *
letters(const json_t *list)
{
    static char text[64];
    size_t i;
    json_t *one;
    text[0] = '\0';
    json_array_foreach((json_t *)list, i, one) if (i < sizeof text - 1)
    {
        text[i] = runs_fact(one, "name")[0];
        text[i + 1] = '\0';
    }
    return text;
}

static json_t *
run_called(struct tui_app *app, const char *name)
{
    json_t *one;
    size_t i;
    json_array_foreach(state_of(app)->all, i, one)
    {
        if (strcmp(runs_fact(one, "name"), name) == 0)
            return one;
    }
    bail("no run %s", name);
}

static const char *
selected(struct tui_app *app)
{
    return runs_fact(runs_selected(state_of(app)), "name");
}

/* ---- which runs, in which order ---- */

static void
test_sort(void)
{
    static const struct {
        const char *keys, *sort, *order, *name;
    } rows[] = {
        {"on", "name", "bbcdefg", "by name"},
        {"ow", "state", "gcdebfb", "by state"},
        {"ot", "train_seconds", "cdebfgb", "by time of training"},
        {"ov", "throughput/samples_per_sec", "cdebbfg", "by speed"},
        {"om", "metrics/eval/Accuracy", "ecdbbgf", "by the metric, the best first"},
        {"os", "", "bcdebfg", "the newest first"},
    };
    struct tui_app *app = open_rivals(24, 80, NULL);
    struct runs *r = state_of(app);
    is_str(letters(r->list), "bcdebfg", "at first the newest come first");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        press(app, rows[i].keys);
        is_str(r->sort, rows[i].sort, "sorted %s", rows[i].name);
        if (i != 1) /* of equal states any may be first */
            is_str(letters(r->list), rows[i].order, "%s", rows[i].name);
        press(app, "o");
        is_int(app->popup.list.at, (int[]){1, 2, 4, 5, 3, 0}[i],
               "the menu begins at what holds");
        press(app, "<esc>");
    }
    close_rivals(&app);
}

static void
test_filter(void)
{
    struct tui_app *app = open_rivals(24, 80, NULL);
    struct runs *r = state_of(app);
    press(app, "jjj");
    is_str(selected(app), "early-mole", "the fourth run is selected");
    press(app, "/finished");
    is_str(letters(r->list), "cdeb", "a filter leaves out the others");
    is_str(selected(app), "early-mole", "the selection stays on its run");
    press(app, " \"");
    ok(*r->fault != '\0', "half a filter has a fault");
    is_str(letters(r->list), "cdeb", "and the one before holds");
    press(app, "<bksp>");
    is_str(r->fault, "", "which is gone when it is mended");
    press(app, "<enter>");
    is_str(r->filter.text, "finished ", "enter keeps the filter");
    press(app, "G/<ctrl-u>stopped");
    is_str(selected(app), "brisk-otter",
           "where the run is left out another one is selected");
    press(app, "<esc>");
    is_str(letters(r->list), "bcdebfg", "esc shows all again");
    is_str(r->filter.text, "", "and empties the field");
    press(app, "/heron<enter><esc>");
    is_str(letters(r->list), "bcdebfg", "esc does that later, too");
    press(app, "/nobody<enter>");
    is_int(r->rows.n, 0, "a filter may leave no run");
    is_int(r->rows.at, 0, "and the cursor at the beginning");
    close_rivals(&app);
}

/* The list scrolls with the line under the cursor when runs above it come or go. */
static void
test_scroll(void)
{
    struct tui_app *app = open_more(16, 60, NULL, 12);
    struct runs *r = state_of(app);
    press(app, "Gkk");
    const int line = r->rows.at - r->rows.top;
    ok(r->rows.top > 0, "nineteen runs have no room in sixteen lines");
    store_run("alfa", 300000, "finished");
    runs_read(r);
    is_str(selected(app), "n0003", "a run that comes leaves the selected one");
    is_int(r->rows.at - r->rows.top, line, "in its line of the screen");
    close_rivals(&app);
}

static void
test_mouse(void)
{
    static const int sizes[][2] = {{50, 200}, {24, 80}, {16, 60}, {10, 40}};
    for (int i = 0; i < 4; i++) {
        struct tui_app *app = open_rivals(sizes[i][0], sizes[i][1], NULL);
        struct runs *r = state_of(app);
        const char *line = picture;
        int y = 0;
        for (; *line && strncmp(line + 4, "early-mole", 10) != 0; y++)
            line = strchr(line, '\n') + 1;
        struct tui_mouse m = {.y = y, .x = 6, .what = TUI_CLICK};
        ok(*line, "it is in the list");
        tui_app_mouse(app, &m);
        is_str(selected(app), "early-mole", "%d x %d: a click selects the run there",
               sizes[i][1], sizes[i][0]);
        m.x = r->list_w;
        m.y = y - 1;
        tui_app_mouse(app, &m);
        is_str(selected(app), "early-mole", "one beside the list selects none");
        close_rivals(&app);
    }
}

/* ---- what they are measured by ---- */

static void
test_target(void)
{
    struct tui_app *app = open_rivals(24, 100, NULL);
    struct runs *r = state_of(app);
    const json_t *heron = run_called(app, "calm-heron");
    const json_t *toad = run_called(app, "grim-toad");
    is_near(runs_time_to(r, heron), 16.2 * 60 * .925, 30,
            "without a target it is the time to the best value");
    press(app, "taccuracy>=.765<enter>");
    is_str(r->target, "accuracy>=.765", "t sets a target");
    is_near(runs_time_to(r, heron), 891, 30, "which a run came to");
    ok(isnan(runs_time_to(r, toad)), "or did not");
    press(app, "t<ctrl-u>accuracy>=.6<enter>");
    const double early = runs_time_to(r, heron);
    ok(early > 60 && early < 600, "a lower target came earlier: %g s", early);
    ok(runs_time_to(r, toad) > 0, "and to more of them");
    /* The run has gone on: what it came to then is not what it comes to now. */
    json_object_set_new((json_t *)toad, "ba", json_integer(7));
    json_t *known = json_object_get(r->judged, runs_fact(toad, "directory"));
    json_object_set_new(known, "to", json_real(12345));
    settle(app);
    ok(runs_time_to(r, toad) != 12345, "a run that goes on is judged again");
    press(app, "t<ctrl-u><enter>");
    is_str(r->target, "", "an empty one takes it away");
    is_near(runs_time_to(r, heron), 16.2 * 60 * .925, 30, "and the best counts again");
    close_rivals(&app);
}

static void
test_bests(void)
{
    static const char *const best = "early-mole";
    struct tui_app *app = open_rivals(24, 100, NULL);
    struct runs *r = state_of(app);
    json_t *one;
    size_t i;
    json_array_foreach(r->all, i, one)
        is_int(runs_is_best(r, one), strcmp(runs_fact(one, "name"), best) == 0,
               "of one recipe one is the best: %s", runs_fact(one, "name"));
    /* Another recipe has its own best, and one that is alone has none. */
    if (system("sed -i 's/_mild/_hot/' runs/base-r50/run.json runs/fond-lynx/run.json "
               "&& sed -i 's/_mild/_cold/' runs/early-mole/run.json") != 0)
        bail("no other recipes");
    press(app, "R");
    is_int(runs_is_best(r, run_called(app, "base-r50")), 1,
           "the best of another recipe");
    is_int(runs_is_best(r, run_called(app, "fond-lynx")), 0, "and not the other");
    is_int(runs_is_best(r, run_called(app, "early-mole")), 0, "one alone is no best");
    is_int(runs_is_best(r, run_called(app, "calm-heron")), 1,
           "the next best of the first is its best then");
    close_rivals(&app);
}

/* Curves and sparklines are read once, and again when the run has gone on. */
static void
test_curves(void)
{
    struct tui_app *app = open_rivals(24, 100, NULL);
    struct runs *r = state_of(app);
    json_t *mole = run_called(app, "early-mole"),
           *heron = run_called(app, "calm-heron");
    const struct runs_curve *loss = runs_curve_of(r, mole, "loss/train/total");
    const struct runs_curve *other = runs_curve_of(r, mole, "metrics/eval/Accuracy");
    ok(loss->n == 40 && other->n == 40, "a curve has all values");
    is_near(loss->point[39].x, 37, 0.01, "over minutes since the run began");
    is_near(loss->point[0].x, 37. / 40, 0.01, "from the first");
    is_near(other->point[39].last, .7701, 1e-6, "those of its metric");
    ok(loss->point[39].last > 1, "and of the other its own");
    is_near(runs_curve_of(r, heron, "loss/train/total")->point[39].x, 16.2, 0.01,
            "as of the other run");
    const int read = r->next_curve;
    ok(runs_curve_of(r, mole, "loss/train/total") == loss, "it is known then");
    is_int(r->next_curve, read, "and not read again");
    json_object_set_new(mole, "ba", json_integer(7));
    (void)runs_curve_of(r, mole, "loss/train/total");
    is_int(r->next_curve, read + 1, "until the run has gone on");

    double value[RUNS_SPARK];
    is_int(runs_spark(r, mole, value), RUNS_SPARK, "a sparkline has ten values");
    json_t *known = json_object_get(r->sparks, runs_fact(heron, "directory"));
    json_object_set_new(known, "v", json_array());
    settle(app);
    is_int(runs_spark(r, heron, value), 0, "which are read once");
    json_object_set_new(heron, "ba", json_integer(7));
    settle(app);
    is_int(runs_spark(r, heron, value), RUNS_SPARK, "and again when the run went on");
    close_rivals(&app);
}

/* Only of the rows on the screen. */
static void
test_sparks(void)
{
    struct tui_app *app = open_more(16, 60, NULL, 12);
    struct runs *r = state_of(app);
    ok(r->rows.page < 12, "of nineteen runs %d have a row", r->rows.page);
    is_int((int64_t)json_object_size(r->sparks), r->rows.page, "theirs alone are read");
    press(app, "G");
    is_int((int64_t)json_object_size(r->sparks), 2 * r->rows.page,
           "and those that are scrolled to");
    close_rivals(&app);
}

/* ---- marks, and comparing ---- */

static void
test_series(void)
{
    static const char *const names[] = {"brisk-otter", "calm-heron", "dry-finch",
                                        "early-mole",  "base-r50",   "grim-toad"};
    static const int want[] = {-1, 0, -1, 1, -1, 2};
    struct tui_app *app = open_rivals(24, 100, NULL);
    struct runs *r = state_of(app);
    press(app, "j j G ");
    is_int(runs_n_marked(r), 3, "three runs are marked");
    is_int(r->rows.at, 6, "below the last there is none to go on to");
    for (int i = 0; i < 6; i++)
        is_int(runs_series_of(r, run_called(app, names[i])), want[i],
               "colours go by the place among those that are marked: %s", names[i]);
    press(app, " ");
    is_int(runs_n_marked(r), 2, "space takes a mark away");
    close_rivals(&app);
}

static void
test_contest(void)
{
    static const struct eti_config_price price = {.hour = 2, .currency = "EUR"};
    struct tui_app *app = open_rivals(24, 100, &price);
    struct runs *r = state_of(app);
    struct eti_comparison *k = &r->comparison;
    press(app, "g    C");
    ok(r->compares && k->n == 4 && !r->shows_pareto,
       "C compares those that are marked");
    is_str(k->metric, "metrics/eval/Accuracy", "by what the first is known by");
    ok(!k->less && k->price == &price, "of which more is better, at a price");
    is_near(k->run[1].best, .7668, 1e-6, "whose best is read");
    press(app, "x");
    is_int(k->by, ETI_COST, "x goes by another figure");
    is_near(eti_comparison_cost(k, &k->run[1]),
            2 * 2 * k->run[1].to_best[ETI_TIME] / 3600, 1e-3,
            "which is read at once: two ranks at 2 EUR an hour");
    press(app, "<tab>");
    is_str(k->metric, "loss/train/total", "tab turns to another metric");
    ok(k->less, "of which less is better");
    is_int(k->by, ETI_COST, "and it goes by the same");
    press(app, "mthroughput<enter>");
    is_str(k->metric, "throughput/samples_per_sec", "m chooses one");
    ok(!k->less, "of which more is better");
    press(app, "m");
    is_str(app->popup.item[app->popup.list.at].text, "throughput/samples_per_sec",
           "the menu begins at the one that is compared");
    press(app, "<esc>taccuracy>=.7<enter>");
    is_str(k->metric, "metrics/eval/Accuracy", "a target has its metric");
    ok(k->has_target && !k->less, "and its direction");
    press(app, "<tab>");
    ok(!k->has_target && !*r->target, "another metric has no target");
    press(app, "taccuracy>=.7<enter>mthroughput<enter>");
    ok(!k->has_target && !*r->target, "nor has one that is chosen");
    is_str(k->metric, "throughput/samples_per_sec", "which is compared then");
    press(app, "<esc>gj C");
    is_int(k->n, 3, "another comparison has other runs");
    close_rivals(&app);
}

/* Of a comparison begun anew nothing stays of the one before. */
static void
test_again(void)
{
    struct tui_app *app = open_rivals(24, 60, NULL);
    struct runs *r = state_of(app);
    press(app, "g       P");
    ok(r->shows_pareto, "P shows the front");
    json_t *before = json_incref(r->differences);
    press(app, "<right><right>j<tab>");
    ok(r->first > 0, "right shows further runs");
    for (int i = 0; i < 9; i++)
        press(app, "<left>");
    is_int(r->first, 0, "left the first again, and no further");
    press(app, "<right><right><esc>");
    ok(!r->compares, "esc leads back to the list");
    press(app, "g   j j C");
    ok(r->compares && !r->shows_pareto, "C shows curves");
    is_int(r->comparison.n, 2, "of those that are still marked");
    ok(r->first == 0 && r->keys.at == 0, "from the first run, and the first key");
    is_str(r->metric, "", "by no metric that was chosen before");
    ok(!json_equal(before, r->differences), "and what differs is theirs");
    json_decref(before);
    close_rivals(&app);
}

static void
test_target_of(void)
{
    struct tui_app *app = open_rivals(24, 100, NULL);
    struct runs *r = state_of(app);
    char why[200];
    press(app, "G k C"); /* the two that recorded no speed */
    ok(r->compares, "two are compared");
    press(app, "t");
    ok(app->popup.check != NULL, "a target is checked while it is typed");
    const char *no = app->popup.check(app->popup.data, "samples_per_sec>=100", why);
    ok(no != NULL, "against the runs that are compared");
    press(app, "<esc><esc>t");
    no = app->popup.check(app->popup.data, "samples_per_sec>=100", why);
    ok(no == NULL, "else against all, also where the first lack it: %s", no ? no : "");
    is_str(app->popup.check(app->popup.data, "", why), NULL, "none is one, too");
    press(app, "<esc>");
    close_rivals(&app);
}

/* Runs that another program gives, and what else it sets. */
static void
test_setup(void)
{
    struct tui_app *app = open_rivals(24, 100, NULL);
    struct runs *r = state_of(app);
    json_t *guest = json_pack("{s:s, s:s, s:s, s:i}", "name", "zebra", "directory",
                              "/elsewhere/zebra", "state", "finished", "started", 5);
    json_t *copy = json_deep_copy(run_called(app, "calm-heron"));
    const json_t *both[] = {guest, copy};
    const struct tui_runs_setup setup = {.filter = "finished",
                                         .sort = "name",
                                         .target = "accuracy>=.7",
                                         .compare = both,
                                         .n = 2,
                                         .pareto = true,
                                         .by = ETI_SAMPLES};
    is_int(tui_runs_setup(app, &setup), ET_OK, "a program sets the screen up");
    is_str(letters(r->list), "bcdez", "its filter and its order hold");
    is_str(r->target, "accuracy>=.7", "and its target");
    ok(r->compares && r->comparison.n == 2, "both runs are compared");
    ok(r->shows_pareto && r->comparison.by == ETI_SAMPLES, "as it says");
    is_int(runs_n_marked(r), 2, "and marked");
    is_int((int64_t)json_array_size(r->all), 8, "the one that is known is there once");
    is_int(r->of, 8, "all are counted");
    runs_read(r);
    is_int((int64_t)json_array_size(r->all), 8, "the guest stays when all are read");
    is_int(r->of, 8, "and counts");
    json_decref(guest);
    json_decref(copy);
    close_rivals(&app);
}

static void
test_wall(void)
{
    struct tui_app *app = open_rivals(24, 100, NULL);
    struct runs *r = state_of(app);
    press(app, "jv");
    ok(r->wall.is_open && r->wall.n_runs == 1,
       "v shows the charts of the selected run");
    is_str(runs_fact(r->wall.run[0].source->facts, "name"), "calm-heron",
           "of that one");
    press(app, "<esc>G kk gv");
    is_int(r->wall.n_runs, 2, "or of those that are marked, without the selected one");
    press(app, "<esc>");
    ok(!r->wall.is_open, "esc leads back");
    close_rivals(&app);
}

/* ---- what is done to a run ---- */

static bool
is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

static void
test_trash(void)
{
    struct tui_app *app = open_rivals(24, 100, NULL);
    struct runs *r = state_of(app);
    press(app, "g  gD");
    is_str(letters(r->list), "cdebfg", "D takes the selected run out of the list");
    ok(!is_there("runs/brisk-otter") && is_there("runs/.trash/brisk-otter/run.json"),
       "into the trash");
    is_int(runs_n_marked(r), 1, "and its mark with it");
    press(app, "gjD");
    ok(is_there("runs/.trash/dry-finch/run.json"), "another one follows it");
    press(app, "u");
    is_str(letters(r->list), "cdebfg", "u brings back the last");
    ok(is_there("runs/dry-finch/run.json") && !is_there("runs/.trash/dry-finch"),
       "with its files");
    press(app, "u");
    picture_has("nothing was thrown away", "and only that one");

    mkdir("runs/.trash/calm-heron", 0700);
    put("runs/.trash/calm-heron/mine", "x");
    press(app, "gD");
    ok(is_there("runs/calm-heron/run.json") && is_there("runs/.trash/calm-heron/mine"),
       "what lies in the trash under that name stays, and so does the run");
    picture_has("runs/calm-heron cannot be moved: File exists", "which is said");
    unlink("runs/.trash/calm-heron/mine");
    rmdir("runs/.trash/calm-heron");

    press(app, "jD");
    mkdir("runs/dry-finch", 0700);
    put("runs/dry-finch/mine", "x");
    press(app, "u");
    picture_has("cannot be brought back", "a run whose place is taken stays away");
    ok(is_there("runs/dry-finch/mine") && is_there("runs/.trash/dry-finch/run.json"),
       "and both are as they were");
    unlink("runs/dry-finch/mine");
    rmdir("runs/dry-finch");
    press(app, "u");
    ok(is_there("runs/dry-finch/run.json"), "until its place is free");

    store_run("busy", 300000, "running");
    press(app, "R");
    press(app, "g");
    is_str(selected(app), "busy", "a run that goes on");
    press(app, "D");
    ok(is_there("runs/busy/run.json"), "is not thrown away");
    picture_has("busy is going on: stop it first", "but to be stopped first");
    close_rivals(&app);
}

static void
test_tags(void)
{
    struct tui_app *app = open_rivals(24, 100, NULL);
    struct runs *r = state_of(app);
    press(app, "j#best keep-me<enter>");
    is_str(text_of("runs/calm-heron/tags"), "best keep-me", "# writes the run's tags");
    is_str(runs_fact(runs_selected(r), "tags"), "best keep-me", "and knows them");
    press(app, "#");
    is_str(app->popup.field.text, "best keep-me", "they can be changed");
    press(app, "<ctrl-u><enter>");
    is_str(text_of("runs/calm-heron/tags"), "", "and taken away");
    is_str(runs_fact(runs_selected(r), "tags"), "", "at once");
    close_rivals(&app);
}

static void
test_export(void)
{
    struct tui_app *app = open_rivals(24, 100, NULL);
    const struct runs *r = state_of(app);
    char heron[1024], finch[1024], want[4096];
    snprintf(heron, sizeof heron, "%s",
             runs_fact(run_called(app, "calm-heron"), "directory"));
    snprintf(finch, sizeof finch, "%s",
             runs_fact(run_called(app, "dry-finch"), "directory"));
    press(app, "je");
    snprintf(want, sizeof want, "export %s --to svg -o calm-heron.svg", heron);
    is_str(text_of("asked"), want, "e exports the charts of the selected run");
    picture_has("its charts are in calm-heron.svg", "and says where they are");
    press(app, "  Ce");
    snprintf(want, sizeof want, "compare --json %s %s --pareto time", heron, finch);
    is_str(text_of("asked"), want, "in Compare what is compared");
    is_str(text_of("compare.json"), "{\"an\": \"answer\"}", "whose answer is a file");
    press(app, "xtaccuracy>=.7<enter>e");
    snprintf(want, sizeof want,
             "compare --json %s %s --target accuracy>=.7 --pareto %s", heron, finch,
             eti_figure_names[r->comparison.by]);
    is_str(text_of("asked"), want, "with its target, and what it goes by");
    put("compare.json", "old");
    put("fails", "");
    press(app, "e");
    is_str(text_of("compare.json"), "old", "one that fails writes no file");
    picture_has("x no memory for that", "and says why");
    unlink("fails");
    press(app, "<esc>ge");
    is_str(text_of("compare.json"), "old", "nor does the export of a run");
    unlink("compare.json");
    mkdir("compare.json", 0700);
    press(app, "Ce");
    picture_has("x cannot write compare.json", "a file that cannot be written is told");
    rmdir("compare.json");
    if (symlink("/dev/full", "compare.json") == 0) {
        press(app, "e");
        picture_has("x cannot write compare.json", "so is a disk that is full");
    }
    close_rivals(&app);
}

int
main(int argc, char **argv)
{
    char directory[] = "/tmp/etude-listing.XXXXXX";
    struct et_alloc_stats stats;
    if (argc > 1)
        return be_command(argc, argv);
    if (et_ctx_new(&cx) != ET_OK || !mkdtemp(directory) || chdir(directory) != 0)
        bail("no directory for files");
    setenv("TZ", "UTC", 1);
    test_sort();
    test_filter();
    test_scroll();
    test_mouse();
    test_target();
    test_bests();
    test_curves();
    test_sparks();
    test_series();
    test_contest();
    test_again();
    test_target_of();
    test_setup();
    test_wall();
    test_trash();
    test_tags();
    test_export();
    free(picture);
    picture = NULL;
    if (chdir("/") != 0)
        bail("cannot leave");
    store_remove(directory);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
