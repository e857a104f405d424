/* SPDX-License-Identifier: Apache-2.0 */
/* filing.c: the screen Compose and files: what it writes, and where; what it asks
 * before something is lost; the ways to another recipe. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "t/tap.h"
#include "t/tui/picture.h"
#include "t/unit/store.h"
#include "tui/compose.h"

static const char recipe[] = "max_duration: 10ba\n"
                             "model: {name: mlp}\n"
                             "train_data: {name: synthetic_images, batch_size: 4}\n"
                             "optimizer:\n"
                             "  name: sgd\n"
                             "  lr: 0.02\n";

static char exact[sizeof((struct tui_item *)0)->note]; /* a title that just fits */
static struct et_ctx *cx;

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

static bool
is_in_lib(const char *path)
{
    return strncmp(path, "lib/", 4) == 0;
}

/* Three recipes are installed, and r.yaml has TEXT. */
static struct tui_app *
open_app(const char *text)
{
    static const char long_title[] =
        "a title of many words, of which a list has no room for all, since there is no "
        "screen that is so wide as to show them";
    json_t *installed =
        json_pack("[{s:s, s:s, s:s}, {s:s, s:s, s:s}, {s:s, s:s, s:s}]", "name",
                  "alpha", "title", long_title, "path", "lib/alpha.yaml", "name",
                  "beta", "title", exact, "path", "lib/beta.yaml", "name",
                  "first_minute", "title", "the first", "path", "lib/first.yaml");
    const struct tui_compose_setup setup = {
        .runs = "kept", .installed = installed, .is_installed = is_in_lib};
    struct tui_app *app;
    struct tui_app_config config = {
        .cx = cx,
        .glyphs = &tui_glyphs_ascii,
        .first = TUI_IN_compose,
        .rows = 36,
        .cols = 120,
    };
    put("r.yaml", text);
    tui_keys_default(&config.keys);
    if (tui_app_new(&config, &app) != ET_OK ||
        tui_compose_setup(app, &setup) != ET_OK ||
        tui_compose_open(app, "r.yaml") != ET_OK)
        bail("no screen: %s", et_error_get(cx)->message);
    json_decref(installed);
    picture_draw(app);
    return app;
}

static void
press(struct tui_app *app, const char *keys)
{
    for (int key; (key = tui_keys_next(&keys)) > 0;) {
        tui_app_key(app, key);
        picture_draw(app);
    }
}

static struct compose *
state_of(struct tui_app *app)
{
    return tui_app_state(app, TUI_IN_compose);
}

static const char *
path_of(struct tui_app *app)
{
    const char *path = state_of(app)->sketch->path;
    return path ? path : "none";
}

static void
change(struct tui_app *app, const char *lr)
{
    if (eti_sketch_set(state_of(app)->sketch, "optimizer.lr", lr) != ET_OK)
        bail("no change: %s", et_error_get(cx)->message);
    picture_draw(app);
}

static bool
has(const char *path, const char *text)
{
    return strstr(text_of(path), text) != NULL;
}

/* ---- what is written, and where ---- */

/* Another program's text is written over where that was chosen, and there alone. */
static void
test_over(void)
{
    struct tui_app *app = open_app(recipe);
    put("there.yaml", "# mine\n");
    change(app, "0.5");
    press(app, "W<ctrl-u>there.yaml<enter>");
    picture_has("there.yaml is there already", "a file that is there is asked about");
    ok(!strstr(picture, "read it again"), "which is not this recipe to be read again");
    press(app, "<esc>");
    is_str(text_of("there.yaml"), "# mine\n", "esc leaves it as it was");
    put("r.yaml", "# another's\n");
    press(app, "w");
    picture_has("read it again, and lose what is here",
                "the own file, which another program wrote, may be read again");
    press(app, "o");
    ok(has("r.yaml", "lr: 0.5"), "or written over");
    is_str(text_of("there.yaml"), "# mine\n",
           "and not the one that was asked about before");
    is_str(path_of(app), "r.yaml", "it stays this recipe's file");
    picture_has("saved: r.yaml", "which is said");

    change(app, "0.25");
    press(app, "W<ctrl-u>there.yaml<enter>o");
    ok(has("there.yaml", "lr: 0.25"), "the other is written over where that is chosen");
    ok(has("r.yaml", "lr: 0.5"), "and the own file stays as it was");
    is_str(path_of(app), "there.yaml", "from then on it is the recipe's");

    change(app, "0.125");
    put("there.yaml", "# another's\nmax_duration: 7ba\n");
    press(app, "ww");
    press(app, "<esc>wr");
    is_str(state_of(app)->sketch->text, "# another's\nmax_duration: 7ba\n",
           "r takes what another program wrote");
    is_str(text_of("there.yaml"), "# another's\nmax_duration: 7ba\n",
           "and leaves it there");
    tui_app_free(&app);
}

static void
test_save(void)
{
    struct tui_app *app = open_app(recipe);
    struct stat before, after;
    stat("r.yaml", &before);
    press(app, "w");
    stat("r.yaml", &after);
    picture_has("nothing has changed since it was saved", "what says the same");
    ok(before.st_ino == after.st_ino, "is not written again");
    press(app, "W<ctrl-u><enter>");
    is_str(path_of(app), "r.yaml", "a name that is empty is none");
    ok(!strstr(app->message, "cannot"), "and nothing failed: %s", app->message);
    change(app, "0.5");
    press(app, "W<ctrl-u>lib/mine.yaml<enter>");
    picture_has("installed recipes stay as they are",
                "where recipes are installed none is saved");
    is_str(text_of("lib/mine.yaml"), "-", "and no file comes to be");
    ok(eti_sketch_is_changed(state_of(app)->sketch), "nor is anything called saved");
    press(app, "R");
    picture_has("read the file again, and lose the changes",
                "R asks where changes would be lost");
    press(app, "n");
    ok(has("r.yaml", "lr: 0.02") && strstr(state_of(app)->sketch->text, "lr: 0.5"),
       "n keeps them");
    press(app, "Rr");
    is_str(state_of(app)->sketch->text, recipe, "r reads the file");
    picture_has("r.yaml was read again", "and says so");
    put("r.yaml", "max_duration: 3ba\n");
    press(app, "R");
    is_str(state_of(app)->sketch->text, "max_duration: 3ba\n",
           "without changes R reads at once");
    tui_app_free(&app);

    app = open_app(recipe);
    press(app, "y");
    picture_has("etude train r.yaml", "y tells the command that trains it");
    tui_app_free(&app);
    app = open_app(recipe);
    if (tui_compose_open(app, "lib/beta.yaml") != ET_OK)
        bail("no lib/beta.yaml");
    change(app, "0.5");
    press(app, "w");
    is_str(app->popup.field.text, "beta.yaml",
           "a copy of an installed recipe is in the working directory");
    press(app, "<esc>");
    is_int(state_of(app)->sketch->path != NULL, 1, "which may be left");
    ok(has("lib/beta.yaml", "max_duration: 2ba"), "the installed one is as it was");
    tui_app_free(&app);
}

/* What a recipe includes goes along, unless the same is there. */
static void
test_along(void)
{
    mkdir("from", 0700);
    mkdir("to", 0700);
    mkdir("busy", 0700);
    put("from/a.yaml", "seed: 3\n");
    put("from/b.yaml", "max_duration: 10ba\n");
    put("from/c.yaml", "model: {name: mlp}\n");
    put("from/top.yaml", "include: [a.yaml, b.yaml, c.yaml]\n"
                         "train_data: {name: synthetic_images, batch_size: 4}\n"
                         "optimizer: {name: sgd, lr: 0.02}\n");
    put("to/c.yaml", "model: {name: mlp}\n");
    put("busy/c.yaml", "model: {name: lenet}\n");
    struct tui_app *app = open_app(recipe);
    if (tui_compose_open(app, "from/top.yaml") != ET_OK)
        bail("no recipe");
    press(app, "W<ctrl-u>busy/top.yaml<enter>");
    picture_has("cannot write busy/c.yaml: File exists",
                "another file of that name is in the way");
    ok(access("busy/top.yaml", F_OK) != 0 && access("busy/a.yaml", F_OK) != 0,
       "so that nothing is written");
    is_str(path_of(app), "from/top.yaml", "and the recipe stays where it is");
    press(app, "W<ctrl-u>to/new.yaml<enter>");
    picture_has("saved: to/new.yaml, with a.yaml, b.yaml",
                "what was not there goes along, and is told");
    ok(has("to/a.yaml", "seed: 3") && has("to/b.yaml", "10ba"), "with all it has");
    ok(has("to/new.yaml", "include: [a.yaml"), "beside the recipe");
    is_str(path_of(app), "to/new.yaml", "which is that one then");

    if (tui_compose_open(app, "from/top.yaml") != ET_OK)
        bail("no recipe");
    put("to/top.yaml", "# mine\n");
    press(app, "W<ctrl-u>to/top.yaml<enter>");
    picture_has("to/top.yaml is there already",
                "a recipe of that name there is asked about");
    is_str(text_of("to/top.yaml"), "# mine\n", "and not written over");
    press(app, "<esc>");
    tui_app_free(&app);
}

/* ---- on to something else ---- */

static void
test_then(void)
{
    struct tui_app *app = open_app(recipe);
    put("wanted.yaml", "max_duration: 6ba\n");
    put("later.yaml", "max_duration: 8ba\n");
    tui_compose_begin(app, "wanted.yaml");
    picture_draw(app);
    is_str(path_of(app), "wanted.yaml",
           "without changes another recipe is there at once");
    tui_compose_begin(app, "r.yaml");
    change(app, "0.5");
    tui_compose_begin(app, "later.yaml");
    picture_draw(app);
    picture_has("changes that are not saved", "with some it is asked first");
    press(app, "n");
    is_str(path_of(app), "r.yaml", "n stays");
    tui_compose_begin(app, "wanted.yaml");
    press(app, "s");
    ok(has("r.yaml", "lr: 0.5"), "s saves");
    is_str(path_of(app), "wanted.yaml", "and goes on to the one that is wanted now");
    tui_compose_begin(app, "r.yaml");
    change(app, "0.25");
    tui_compose_begin(app, "later.yaml");
    press(app, "y");
    is_str(path_of(app), "later.yaml", "y goes on");
    ok(has("r.yaml", "lr: 0.5"), "and loses them");

    if (eti_sketch_begin(state_of(app)->sketch, "max_duration: 4ba\n", 18, "of a run"))
        bail("no sketch");
    tui_compose_begin(app, "later.yaml");
    picture_draw(app);
    picture_has("changes that are not saved",
                "one that has no file yet is asked about");
    press(app, "<esc>q");
    picture_has("changes that are not saved", "where one leaves, too");
    press(app, "<esc>");
    ok(!app->leaves, "who does not answer stays");
    tui_compose_begin(app, "later.yaml");
    press(app, "y");
    is_str(path_of(app), "later.yaml", "y goes on");

    tui_compose_begin(app, "r.yaml");
    change(app, "0.125");
    put("r.yaml", "# another's\n");
    press(app, "qs");
    picture_has("read it again", "where saving has to ask it does so before leaving");
    press(app, "<esc>");
    ok(!app->leaves, "who does not answer stays");
    press(app, "wo");
    ok(has("r.yaml", "lr: 0.125") && !app->leaves, "also when it is saved later");
    change(app, "0.5");
    press(app, "qs");
    ok(app->leaves && has("r.yaml", "lr: 0.5"), "saving to leave leaves");
    tui_app_free(&app);
}

static void
test_ways(void)
{
    struct tui_app *app = open_app(recipe);
    press(app, "no<enter>");
    is_str(path_of(app), "r.yaml", "a way to a file, and no file");
    is_str(app->message, "", "is nothing that failed");
    press(app, "na");
    picture_has("alpha", "installed recipes are a list");
    is_str(app->popup.item[1].note, exact, "with their titles");
    const struct tui_item *item = app->popup.item;
    const size_t n = strlen(item[0].note);
    ok(n > 80 && n < sizeof item[0].note && strcmp(item[0].note + n - 2, "..") == 0 &&
           strncmp(item[0].note, "a title of many words", 21) == 0,
       "one that is too long ends with a sign: %s", item[0].note);
    const char *all =
        "a title of many words, of which a list has no room for all, since "
        "there is no screen that is so wide as to show them";
    ok(strncmp(all, item[0].note, n - 2) == 0 && all[n - 2] == ' ', "behind a word");
    press(app, "beta<enter>");
    is_str(path_of(app), "lib/beta.yaml", "the one that is chosen is opened");
    press(app, "n<enter>");
    is_str(path_of(app), "lib/first.yaml", "the first one by its name");
    press(app, "nbi");
    is_str(path_of(app), "none", "a blank one has no file");
    ok(strstr(state_of(app)->sketch->text, "resnet8") != NULL, "i is for images");
    press(app, "nybt");
    ok(strstr(state_of(app)->sketch->text, "gpt2") != NULL, "t for text");
    tui_app_free(&app);
}

/* ---- the recipe of a run ---- */

static void
put_run(const char *name, int hour, const char *text)
{
    char path[256];
    store_run(name, hour, "finished");
    snprintf(path, sizeof path, "runs/%s/recipe.yaml", name);
    put(path, text);
}

static void
test_runs(void)
{
    struct tui_app *app;
    put_run("calm-elk", 1, "max_duration: 5ba\n");
    put_run("odd-newt", 2, "max_duration: 6ba\n");
    put_run("wry-bat", 3, "max_duration: 7ba\n");
    if (rename("runs", "kept") != 0) /* where the composer is to look */
        bail("cannot rename runs");
    store_date("kept", 3);
    app = open_app(recipe);
    press(app, "nr");
    picture_has("odd-newt", "runs are listed");
    const struct tui_popup *p = &app->popup;
    ok(p->n_items == 3 && strcmp(p->item[1].text, "odd-newt") == 0 &&
           strcmp(p->item[1].note, "even finished") == 0,
       "the newest first, with recipe and state: %s, %s", p->item[1].text,
       p->item[1].note);
    press(app, "odd<enter>");
    is_str(state_of(app)->sketch->text, "max_duration: 6ba\n",
           "the text of the one that is chosen is taken");
    is_str(state_of(app)->sketch->name, "recipe of odd-newt", "and called by it");
    is_str(path_of(app), "none", "without a file");
    store_remove("kept");
    press(app, "nyr");
    picture_has("there is no run yet", "without runs that is said");
    tui_app_free(&app);
}

/* Relative paths of a run's recipe go on from where they began. */
static void
test_place(void)
{
    static const struct {
        const char *data, *was, *place, *name;
    } rows[] = {
        {"data", "/far/away/data", "/far/away/recipe.yaml", "a path in a folder"},
        {"data", "/far/awaydata", "none", "one that only ends so"},
        {"a/data", "/far/a/data", "/far/recipe.yaml", "a path of two parts"},
        {"/far/data", "/x//far/data", "none", "one that is not relative"},
        {"data", "/far/atad", "none", "another path of that length"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[400];
        struct tui_app *app = open_app(recipe);
        snprintf(text, sizeof text,
                 "max_duration: 1ba\nmodel: {name: lenet, num_classes: 2}\n"
                 "train_data: {name: idx, path: %s, batch_size: 4}\n"
                 "optimizer: {name: sgd, lr: 0.1}\n",
                 rows[i].data);
        put_run("far-owl", 1, text);
        json_t *facts =
            json_pack("{s:s, s:s, s:{s:s}}", "name", "far-owl", "directory",
                      "runs/far-owl", "config", "train_data.path", rows[i].was);
        if (tui_compose_from_run(app, facts) != ET_OK)
            bail("no recipe of a run: %s", et_error_get(cx)->message);
        const char *place = eti_sketch_place(state_of(app)->sketch);
        is_str(place ? place : "none", rows[i].place, "%s", rows[i].name);
        json_decref(facts);
        tui_app_free(&app);
    }
    store_remove("runs");
}

int
main(int argc, char **argv)
{
    char directory[] = "/tmp/etude-filing.XXXXXX";
    struct et_alloc_stats stats;
    (void)argv;
    if (argc > 1) /* an estimate is asked for */
        return 70;
    if (et_ctx_new(&cx) != ET_OK || !mkdtemp(directory) || chdir(directory) != 0 ||
        mkdir("lib", 0700) != 0)
        bail("no directory for files");
    setenv("XDG_STATE_HOME", directory, 1);
    put("lib/alpha.yaml", "max_duration: 1ba\n");
    put("lib/beta.yaml", "max_duration: 2ba\n");
    put("lib/first.yaml", "max_duration: 3ba\n");
    test_over();
    test_save();
    test_along();
    test_then();
    test_ways();
    test_runs();
    test_place();
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
