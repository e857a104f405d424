/* SPDX-License-Identifier: Apache-2.0 */
/* answers.c: whole screens of a run's results, of each kind of answer. No two values
 * are alike: classes have other numbers of samples, samples other losses, pictures
 * other sides. t/tui/answers.txt has them after keys (whole.h).
 *
 * `etude predict`, which a key starts, is this program once more. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/tui/whole.h"
#include "t/unit/store.h"
#include "tui/glyphs.h"
#include "tui/results.h"

enum { SIDE_H = 2, SIDE_W = 3, NOWHERE = -1 };
static const char folder[] = "predictions";

static struct et_ctx *cx;

/* ---- the data ---- */

static void
write_sheet(struct eti_sheet *s, const char *label)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s.ppm", folder, label);
    need(cx, eti_sheet_write(s, path));
    eti_sheet_release(s);
}

/* N samples with labels LABEL; those of sample I have a score of 1 + I / 2 for
 * CLASS. */
static void
write_classes(const char *name, const int32_t *label, const int32_t *class, int n,
              int classes, const char *const *names)
{
    struct eti_predictions all = {.cx = cx};
    struct eti_sheet sheet = {.cx = cx};
    float *score = calloc((size_t)classes, sizeof *score);
    for (int i = 0; i < n; i++) {
        float picture[SIDE_H * SIDE_W] = {0};
        for (int k = 0; k < SIDE_H * SIDE_W; k++)
            picture[k] = k == i % (SIDE_H * SIDE_W) ? 1 : 0;
        score[class[i]] = 1 + (float)i / 2;
        need(cx, eti_predictions_add(&all, score, &label[i], 1, classes));
        score[class[i]] = 0;
        if (names && i != 5)
            need(cx, eti_sheet_add(&sheet, i, all.loss[i], picture, 1, SIDE_H, SIDE_W));
    }
    free(score);
    if (names)
        need(cx, eti_predictions_set_names(&all, names, classes));
    need(cx, eti_predictions_keep(&all, folder, name));
    eti_predictions_release(&all);
    if (names)
        write_sheet(&sheet, name);
}

/* Four classes with names: none is of the last, and nothing is taken for the third. */
static void
write_few(void)
{
    static const char *const names[] = {"coat", "summer dress", "bag", "sandal"};
    static const int32_t label[] = {0, 1, 2, 0, 1, 2, 1, NOWHERE, 2, 0, 2, 0, 1, 2};
    static const int32_t class[] = {0, 0, 1, 3, 1, 1, 0, 3, 0, 0, 3, 1, 0, 1};
    write_classes("a-few", label, class, sizeof label / sizeof *label, 4, names);
}

/* 24 classes, more than 80 columns have room for; 23 are taken for those above. */
static void
write_many(void)
{
    enum { CLASSES = 24, N = 3 * CLASSES };
    int32_t label[N], class[N];
    for (int i = 0; i < N; i++) {
        label[i] = i % CLASSES;
        class[i] = i < CLASSES || i % 3 ? i % CLASSES : (i + 7) % CLASSES;
    }
    write_classes("b-many", label, class, N, CLASSES, NULL);
}

/* 12 classes with names: shares of all with names take 63 columns. */
static void
write_named(void)
{
    enum { CLASSES = 12 };
    static const char *const names[CLASSES] = {"ant",  "bee", "cow", "dog",
                                               "eel",  "fox", "gnu", "hen",
                                               "ibex", "jay", "koi", "owl"};
    int32_t label[2 * CLASSES], class[2 * CLASSES];
    for (int i = 0; i < 2 * CLASSES; i++) {
        label[i] = i % CLASSES;
        class[i] = (i < CLASSES ? i : i + i % 5) % CLASSES;
    }
    write_classes("j-named", label, class, 2 * CLASSES, CLASSES, names);
}

/* Two masks of three classes, the second the worse one. */
static void
write_masks(void)
{
    enum { N = SIDE_H * SIDE_W, CLASSES = 3 };
    static const int32_t label[2][N] = {{0, 0, 1, 1, 2, 0}, {0, 1, 1, NOWHERE, 2, 2}};
    static const int32_t class[2][N] = {{0, 0, 1, 1, 2, 1}, {0, 0, 1, 1, 1, 2}};
    struct eti_predictions all = {.cx = cx};
    struct eti_sheet sheet = {.cx = cx};
    float picture[N];
    int32_t chosen[N];
    for (int i = 0; i < 2; i++) {
        float score[CLASSES * N] = {0};
        for (int k = 0; k < N; k++) {
            score[class[i][k] * N + k] = 3 + (float)i;
            picture[k] = (float)(k + i) / N;
        }
        need(cx, eti_predictions_add_mask(&all, score, label[i], N, CLASSES, chosen));
        need(cx, eti_sheet_add_masks(&sheet, i, all.loss[i], picture, 1, SIDE_H, SIDE_W,
                                     label[i], chosen));
    }
    need(cx, eti_predictions_keep(&all, folder, "c-masks"));
    eti_predictions_release(&all);
    write_sheet(&sheet, "c-masks");
}

/* Passages of bytes, or of tokens with numbers; the last has the greatest loss. */
static void
write_tokens(const char *name, int classes)
{
    enum { N = 3, PLACES = 70 };
    int32_t input[PLACES], label[PLACES], class[PLACES], chosen[PLACES];
    float *score = calloc((size_t)PLACES * (size_t)classes, sizeof *score);
    float loss[PLACES];
    struct eti_predictions all = {.cx = cx};
    for (int i = 0; i < N; i++) {
        const int places = i == 2 ? PLACES : 8;
        memset(score, 0, sizeof *score * (size_t)PLACES * (size_t)classes);
        for (int k = 0; k < places; k++) {
            input[k] = 'a' + (k + 25) % 26;
            label[k] = k == 2 ? NOWHERE : k == 3 ? '\n' : k == 4 ? 127 : 'a' + k % 26;
            class[k] = k % 7 == 5 ? (classes > 256 ? 300 + k : 'Q') : label[k];
            if (class[k] >= 0)
                score[k * classes + class[k]] = (float)(9 - i) + (float)(k % 3);
        }
        need(cx, eti_predictions_add_tokens(&all, score, label, places, classes, chosen,
                                            loss));
        if (i != 1)
            need(cx, eti_predictions_keep_sequence(&all, input, label, chosen, loss,
                                                   places));
    }
    free(score);
    need(cx, eti_predictions_keep(&all, folder, name));
    eti_predictions_release(&all);
}

/* The last one stands where the worst one does. */
static void
write_values(void)
{
    static const float value[] = {-.75F, 2, 2.5F, 4, 7, -.8F};
    static const float target[] = {-3, 2.5F, 1, 4.25F, 8, -3};
    struct eti_predictions all = {.cx = cx};
    need(cx, eti_predictions_add_values(&all, value, target, 6, 1));
    need(cx, eti_predictions_keep(&all, folder, "f-values"));
    eti_predictions_release(&all);
}

/* Five samples at three evaluations; the last has no right answer twice. */
static void
write_tracked(void)
{
    enum { N = 5, CLASSES = 3 };
    static const char *const names[] = {"coat", "dress", "a bag for the whole summer"};
    static const int32_t label[N] = {0, 1, 2, 1, 0};
    static const int32_t class[3][N] = {
        {1, 1, 0, 0, 2}, {0, 1, 0, 1, 2}, {0, 1, 2, 1, 1}};
    float picture[N * SIDE_H * SIDE_W];
    struct eti_tracked_batch b = {
        .desc = {.dtype = ET_F32, .ndim = 2, .shape = {N, CLASSES}},
        .target = label,
        .image = picture,
        .image_desc = {.dtype = ET_F32, .ndim = 4, .shape = {N, 1, SIDE_H, SIDE_W}},
        .names = names,
        .n_names = CLASSES,
    };
    for (int i = 0; i < N * SIDE_H * SIDE_W; i++)
        picture[i] = i % (SIDE_H * SIDE_W) == i / (SIDE_H * SIDE_W) ? 1 : 0;
    for (int k = 0; k < 3; k++) {
        float score[N * CLASSES] = {0};
        for (int i = 0; i < N; i++)
            score[i * CLASSES + class[k][i]] = 1 + (float)i / 4 + (float)k;
        b.outputs = score;
        b.batch = 10 + 7 * k;
        need(cx, eti_tracked_write(cx, folder, "g-tracked", &b));
        if (k == 0) /* and beside predictions */
            need(cx, eti_tracked_write(cx, folder, "a-few", &b));
        if (k == 1) { /* two, of classes without names */
            b.names = NULL;
            b.desc.shape[0] = b.image_desc.shape[0] = 2;
            need(cx, eti_tracked_write(cx, folder, "k-numbers", &b));
            b.names = names;
            b.desc.shape[0] = b.image_desc.shape[0] = N;
        }
    }
}

/* Two masks of 12 classes at two evaluations. */
static void
write_tracked_masks(void)
{
    enum { N = 2, PIXELS = SIDE_H * SIDE_W, CLASSES = 12 };
    static const int32_t label[N * PIXELS] = {0, 1, 2, 3, 4, 5, 11, 10, 9, 8, 7, 6};
    float picture[N * PIXELS];
    struct eti_tracked_batch b = {
        .desc = {.dtype = ET_F32, .ndim = 4, .shape = {N, CLASSES, SIDE_H, SIDE_W}},
        .target = label,
        .image = picture,
        .image_desc = {.dtype = ET_F32, .ndim = 4, .shape = {N, 1, SIDE_H, SIDE_W}},
    };
    for (int i = 0; i < N * PIXELS; i++)
        picture[i] = (float)i / (N * PIXELS);
    for (int k = 0; k < 2; k++) {
        float score[N * CLASSES * PIXELS] = {0};
        for (int i = 0; i < N * PIXELS; i++) {
            const int class = i % (2 + 2 * k) == 1 ? 10 : label[i];
            score[(i / PIXELS * CLASSES + class) * PIXELS + i % PIXELS] = 3;
        }
        b.outputs = score;
        b.batch = 30 + 11 * k;
        need(cx, eti_tracked_write(cx, folder, "h-masks", &b));
    }
}

static void
write_text(const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        bail("cannot write %s", path);
}

/* ---- what is compared ---- */

/* The screen of R, its message, and what the bar says of its keys; with roles. */
static void
shows(struct tui_results *r, int rows, int cols, bool with_roles, const char *name)
{
    static const enum tui_action keys[] = {TUI_DO_results_panel, TUI_DO_results_only,
                                           TUI_DO_results_data, TUI_DO_results_predict};
    struct tui_grid g;
    char message[300];
    r->app->grid.rows = rows;
    r->app->grid.cols = cols;
    need(cx, tui_grid_init(&g, cx, &tui_glyphs_ascii, rows, cols));
    const struct tui_pane p = tui_pane_of(&g);
    tui_results_draw(r, &p);
    FILE *f = whole_text();
    tui_grid_print(&g, f);
    if (with_roles)
        tui_grid_print_roles(&g, f);
    tui_results_message(r, message, sizeof message);
    fprintf(f, "message: %s\nkeys:", message);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *hint = tui_results_hint(r, keys[i]);
        fprintf(f, " %s", !hint ? "as always" : *hint ? hint : "-");
        fputs(i + 1 < sizeof keys / sizeof *keys ? "," : "\n", f);
    }
    whole_is(name);
    tui_grid_release(&g);
}

static void
press(struct tui_results *r, enum tui_action action, int times)
{
    while (times-- > 0)
        tui_results_act(r, action);
}

/* ---- the walk ---- */

static void
walk_few(struct tui_results *r)
{
    shows(r, 36, 120, true, "few: all panels");
    shows(r, 50, 200, false, "few: names have room");
    shows(r, 12, 31, true, "few: names just have room");
    shows(r, 12, 30, true, "few: names have no room");
    press(r, TUI_DO_everywhere_left, 9);
    press(r, TUI_DO_everywhere_up, 9);
    shows(r, 12, 36, false, "few: the first pair");
    press(r, TUI_DO_everywhere_right, 9);
    shows(r, 12, 36, false, "few: the last of its row");
    press(r, TUI_DO_results_panel, 1);
    press(r, TUI_DO_everywhere_down, 2);
    shows(r, 5, 80, true, "few: a class in a table with little room");
    shows(r, 12, 70, false, "few: and with more");
    press(r, TUI_DO_results_panel, 1);
    press(r, TUI_DO_everywhere_right, 2);
    shows(r, 24, 80, true, "few: the third of the worst");
    press(r, TUI_DO_everywhere_left, 1);
    shows(r, 12, 20, false, "few: the second, where one has room");
    press(r, TUI_DO_results_panel, 1);
    shows(r, 24, 80, false, "few: the same samples");
    shows(r, 36, 120, false, "few: they stand in place of the worst");
    press(r, TUI_DO_results_panel, 1);
    press(r, TUI_DO_everywhere_down, 2);
    press(r, TUI_DO_everywhere_left, 2);
    press(r, TUI_DO_results_only, 1);
    shows(r, 8, 80, false, "few: of a pair that is never taken for each other");
    press(r, TUI_DO_results_back, 1);
    shows(r, 8, 80, false, "few: esc leaves the pair");
    press(r, TUI_DO_results_panel, 2);
    press(r, TUI_DO_everywhere_up, 2);
    press(r, TUI_DO_results_only, 1);
    shows(r, 12, 80, false, "few: of one pair");
}

static void
walk_others(struct tui_results *r)
{
    press(r, TUI_DO_results_data, 1);
    shows(r, 24, 80, false, "many: from the first on");
    r->panel = TUI_RESULTS_CONFUSION;
    press(r, TUI_DO_everywhere_right, 24);
    press(r, TUI_DO_everywhere_down, 24);
    shows(r, 24, 24, true, "many: the last where few have room");
    press(r, TUI_DO_everywhere_left, 18);
    shows(r, 24, 24, true, "many: the first one left of what was there");
    press(r, TUI_DO_everywhere_right, 18);
    shows(r, 24, 24, true, "many: the first one right of what was there");
    press(r, TUI_DO_everywhere_left, 20);
    shows(r, 24, 24, false, "many: one far left of what was there");
    press(r, TUI_DO_results_panel, 1);
    shows(r, 8, 60, false, "many: a table with little room");
    press(r, TUI_DO_everywhere_last, 1);
    shows(r, 8, 60, true, "many: the last class of the table");
    press(r, TUI_DO_results_panel, 2);
    shows(r, 24, 24, false, "many: behind the worst is the first panel");
    press(r, TUI_DO_results_data, 1);
    shows(r, 36, 120, true, "masks: all panels");
    press(r, TUI_DO_results_only, 1);
    shows(r, 24, 80, false, "masks: the worst, of no pair");
    press(r, TUI_DO_results_data, 1);
    shows(r, 16, 80, true, "bytes: the worst");
    press(r, TUI_DO_everywhere_down, 1);
    shows(r, 16, 60, false, "bytes: one that was not kept, without a list");
    press(r, TUI_DO_everywhere_down, 1);
    shows(r, 16, 61, true, "bytes: the best, beside a list");
    press(r, TUI_DO_results_data, 1);
    shows(r, 10, 80, false, "tokens");
    press(r, TUI_DO_results_data, 1);
    shows(r, 16, 80, true, "values: the worst");
    press(r, TUI_DO_everywhere_down, 3);
    shows(r, 12, 50, false, "values: another, without a list");
    shows(r, 4, 80, false, "values: a list with little room");
    press(r, TUI_DO_results_data, 1);
    shows(r, 24, 80, true, "tracked: with the newest evaluations");
    press(r, TUI_DO_everywhere_last, 1);
    shows(r, 12, 60, false, "tracked: the last of five");
    shows(r, 36, 200, false, "tracked: large, side by side");
    press(r, TUI_DO_results_data, 1);
    shows(r, 24, 80, true, "tracked masks: from the first on");
    shows(r, 30, 100, true, "tracked masks: large");
    press(r, TUI_DO_results_data, 1);
    shows(r, 8, 70, false, "damaged: why");
    press(r, TUI_DO_results_data, 1);
    r->panel = TUI_RESULTS_CONFUSION;
    shows(r, 6, 57, false, "named: names before signs");
    shows(r, 6, 56, false, "named: numbers before shares");
    press(r, TUI_DO_results_data, 1);
    shows(r, 9, 100, false, "numbers: two samples, one below the other");
    shows(r, 15, 100, false, "numbers: two samples, where more have room");
    press(r, TUI_DO_results_data, 1);
    shows(r, 24, 80, false, "few: again");
    press(r, TUI_DO_results_panel, 1);
    shows(r, 12, 80, false, "few: again, from the commonest mistake on");
    press(r, TUI_DO_results_panel, 1);
    shows(r, 12, 80, false, "few: again, from the first class on");
}

/* ---- predicting ---- */

/* `etude predict FOLDER`: the third time it fails. */
static int
predict(const char *run)
{
    static const float value[] = {1, 2}, target[] = {2, 4};
    const bool was_done = access("predictions/z-new.csv", F_OK) == 0;
    struct eti_predictions all = {0};
    if (et_ctx_new(&cx) != ET_OK || strcmp(run, ".") != 0 || was_done) {
        fprintf(stderr, "no room for %s\n", run);
        return 1;
    }
    mkdir(folder, 0700);
    all.cx = cx;
    need(cx, eti_predictions_add_values(&all, value, target, 2, 1));
    need(cx, eti_predictions_keep(&all, folder, "z-new"));
    eti_predictions_release(&all);
    et_ctx_free(&cx);
    return 0;
}

/* Until what was started has ended. */
static void
wait_for(struct tui_results *r)
{
    for (int i = 0; i < 600 && !tui_results_tick(r); i++)
        usleep(10000);
}

static void
walk_predicting(struct tui_results *r)
{
    shows(r, 10, 80, false, "none: what can be done");
    press(r, TUI_DO_results_panel, 1);
    is_int(r->panel, TUI_RESULTS_TRACKED, "without results no other panel is there");
    press(r, TUI_DO_results_data, 1);
    is_int(r->at_data, 0, "and no other data");
    press(r, TUI_DO_results_predict, 1);
    wait_for(r);
    is_str(r->app->message, "- has predicted its eval_data", "that it did is told");
    shows(r, 10, 50, false, "predicted: what came is shown");
    press(r, TUI_DO_everywhere_down, 1);
    shows(r, 10, 50, false, "predicted: without a list there is a next one");
    press(r, TUI_DO_results_predict, 1);
    wait_for(r);
    is_str(r->app->message, "x no room for .", "that it could not is told, and why");
    is_int(r->app->message_role, TUI_BAD, "as what is bad");
    is_int(r->all.n, 2, "and what was there is still there");
    press(r, TUI_DO_everywhere_close, 1);
    ok(!r->is_open, "esc leaves them");
}

int
main(int argc, char **argv)
{
    char dir[] = "/tmp/etude-answers.XXXXXX";
    struct et_alloc_stats stats;
    struct tui_app *app = calloc(1, sizeof *app);
    struct tui_results *r = calloc(1, sizeof *r);
    if (argc > 2)
        return predict(argv[2]);
    whole_open("answers");
    if (!app || !r || et_ctx_new(&cx) != ET_OK || !mkdtemp(dir) || chdir(dir) != 0)
        bail("no folder");
    app->cx = cx;
    json_t *facts = json_pack("{s:s}", "directory", ".");
    tui_results_open(r, app, facts);
    walk_predicting(r);
    unlink("predictions/z-new.csv");
    unlink("predictions/z-new.json");
    write_few();
    write_many();
    write_masks();
    write_tokens("d-bytes", 256);
    write_tokens("e-tokens", 400);
    write_values();
    write_tracked();
    write_tracked_masks();
    write_named();
    write_text("i-damaged.csv", "this, is\nno, prediction\n");
    json_object_set_new(facts, "name", json_string("wry-ibis"));
    tui_results_open(r, app, facts);
    walk_few(r);
    walk_others(r);
    tui_results_close(r);
    json_decref(facts);
    whole_close();
    if (chdir("/") != 0)
        bail("cannot leave");
    store_remove(dir);
    free(app);
    free(r);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
