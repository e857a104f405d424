/* SPDX-License-Identifier: Apache-2.0 */
/* The results of a run: what is read, counted and drawn, and pictures in half blocks.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/image/class_color.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "tui/glyphs.h"
#include "tui/halves.h"
#include "tui/results.h"

static struct et_ctx *cx;

/* ---- pictures ---- */

static const struct tui_cell *
cell(const struct tui_grid *g, int y, int x)
{
    return &g->cell[y * g->cols + x];
}

static void
test_halves(void)
{
    /* White above black, black above white, both white, both black; then greys. */
    static const uint8_t rgb[4][4][3] = {
        {{255, 255, 255}, {0}, {255, 255, 255}, {0}},
        {{0}, {255, 255, 255}, {255, 255, 255}, {0}},
        {{120, 120, 120}, {120, 120, 120}, {255, 255, 255}, {0}},
        {{120, 120, 120}, {130, 130, 130}, {60, 60, 60}, {0}},
    };
    struct tui_grid g;
    need(cx, tui_grid_init(&g, cx, tui_glyphs_of(ETI_PLOT_BLOCK), 2, 4));
    const struct tui_pane p = tui_pane_of(&g);
    tui_halves_draw(&p, &rgb[0][0][0], 4, 4);
    is_int(cell(&g, 0, 0)->ch, 0x2580, "white above black is an upper half");
    is_int(cell(&g, 0, 1)->ch, 0x2584, "black above white a lower half");
    is_int(cell(&g, 0, 2)->ch, 0x2588, "white and white a full block");
    is_int(cell(&g, 0, 3)->ch, ' ', "black is the ground");
    is_int(cell(&g, 0, 2)->role, TUI_STRONG, "white is the brightest shade");
    is_int(cell(&g, 1, 0)->ch, 0x2588, "greys that are alike are one block");
    ok(cell(&g, 1, 0)->role != TUI_STRONG, "of a darker shade");
    is_int(cell(&g, 0, 0)->upper, TUI_RGB | 0xffffff,
           "a terminal with colours shows the upper pixel's");
    is_int(cell(&g, 0, 0)->lower, TUI_RGB, "and the lower one's");
    is_int(cell(&g, 1, 2)->ch, 0x2580, "of a bright and a dark one the bright is seen");
    tui_grid_release(&g);
    need(cx, tui_grid_init(&g, cx, &tui_glyphs_ascii, 1, 2));
    const struct tui_pane small = tui_pane_of(&g);
    static const uint8_t two[] = {255, 255, 255, 0, 0, 0};
    tui_halves_draw(&small, two, 2, 1);
    is_int(cell(&g, 0, 0)->ch, '@', "in ASCII the brightest is a character");
    is_int(cell(&g, 0, 1)->ch, ' ', "and black a blank");
    tui_grid_release(&g);
}

/* ---- results ---- */

static char folder[] = "results-XXXXXX";

/* Of 10 samples with three classes: two of label 2 are taken for 0, one of 1 for 2. */
static void
write_predictions(const char *label)
{
    static const float score[3][3] = {{4, 0, 0}, {0, 4, 0}, {0, 0, 4}};
    static const int32_t pairs[10][2] = {{0, 0}, {0, 0}, {0, 0}, {1, 1}, {1, 1},
                                         {1, 2}, {2, 2}, {2, 0}, {2, 0}, {2, 2}};
    char path[256];
    struct eti_predictions all = {.cx = cx};
    struct eti_sheet sheet = {.cx = cx};
    const float picture[4] = {0, 1, 1, 0};
    for (int i = 0; i < 10; i++)
        need(cx, eti_predictions_add(&all, score[pairs[i][1]], &pairs[i][0], 1, 3));
    need(cx, eti_sheet_add(&sheet, 7, all.loss[7], picture, 1, 2, 2));
    snprintf(path, sizeof path, "%s/predictions/%s.csv", folder, label);
    need(cx, eti_predictions_write(&all, path, ETI_AS_CSV));
    snprintf(path, sizeof path, "%s/predictions/%s.ppm", folder, label);
    need(cx, eti_sheet_write(&sheet, path));
    eti_predictions_release(&all);
    eti_sheet_release(&sheet);
}

static const char *
drawn_as(struct tui_results *r, int rows, int cols,
         void (*print)(const struct tui_grid *g, FILE *out))
{
    static char *text;
    static size_t n;
    struct tui_grid g;
    r->app->grid.rows = rows;
    r->app->grid.cols = cols;
    need(cx, tui_grid_init(&g, cx, &tui_glyphs_ascii, rows, cols));
    const struct tui_pane p = tui_pane_of(&g);
    tui_results_draw(r, &p);
    free(text);
    FILE *f = open_memstream(&text, &n);
    print(&g, f);
    fclose(f);
    tui_grid_release(&g);
    return text;
}

static const char *
drawn(struct tui_results *r, int rows, int cols)
{
    return drawn_as(r, rows, cols, tui_grid_print);
}

/* What takes the place of classes: LABEL's masks, tokens or values. */
static void
write_others(void)
{
    static const float scores[2 * 4] = {1, 1, 0, 0, 0, 0, 1, 1};
    static const int32_t label[4] = {0, 0, 1, 0}, text[3] = {'c', 'a', 't'},
                         next[3] = {'a', 't', 's'};
    static const float picture[4] = {0, 1, 1, 0}, value[] = {1, 2}, target[] = {1, 4};
    static float tokens[3 * 256];
    int32_t chosen[4];
    float loss[3];
    char path[256];
    snprintf(path, sizeof path, "%s/predictions", folder);
    struct eti_predictions all = {.cx = cx};
    struct eti_sheet sheet = {.cx = cx};
    need(cx, eti_predictions_add_mask(&all, scores, label, 4, 2, chosen));
    need(cx,
         eti_sheet_add_masks(&sheet, 0, all.loss[0], picture, 1, 2, 2, label, chosen));
    need(cx, eti_predictions_keep(&all, path, "a-masks"));
    eti_predictions_release(&all);
    tokens[0 * 256 + 'a'] = tokens[1 * 256 + 'x'] = tokens[2 * 256 + 's'] = 9;
    need(cx, eti_predictions_add_tokens(&all, tokens, next, 3, 256, chosen, loss));
    need(cx, eti_predictions_keep_sequence(&all, text, next, chosen, loss, 3));
    need(cx, eti_predictions_keep(&all, path, "b-tokens"));
    eti_predictions_release(&all);
    need(cx, eti_predictions_add_values(&all, value, target, 2, 1));
    need(cx, eti_predictions_keep(&all, path, "c-values"));
    eti_predictions_release(&all);
    snprintf(path, sizeof path, "%s/predictions/a-masks.ppm", folder);
    need(cx, eti_sheet_write(&sheet, path));
    eti_sheet_release(&sheet);
}

/* The same two samples of three classes, at two evaluations, and once more at the
 * second: a run that was resumed. */
static void
write_tracked(void)
{
    static const float early[] = {9, 0, 0, 0, 9, 0}, late[] = {9, 0, 0, 0, 0, 9};
    static const int32_t label[] = {0, 2};
    static const char *const names[] = {"coat", "dress", "bag"};
    static const float picture[2 * 4] = {0, 1, 1, 0, 1, 1, 0, 0};
    char path[256];
    struct eti_tracked_batch b = {
        .outputs = early,
        .desc = {.dtype = ET_F32, .ndim = 2, .shape = {2, 3}},
        .target = label,
        .image = picture,
        .image_desc = {.dtype = ET_F32, .ndim = 4, .shape = {2, 1, 2, 2}},
        .batch = 10,
    };
    snprintf(path, sizeof path, "%s/predictions", folder);
    need(cx, eti_tracked_write(cx, path, "d-track", &b));
    b.batch = 20;
    need(cx, eti_tracked_write(cx, path, "d-track", &b));
    b.outputs = late;
    b.names = names;
    b.n_names = 3;
    need(cx, eti_tracked_write(cx, path, "d-track", &b));
}

static void
test_swatch(void)
{
    struct tui_grid g;
    uint8_t rgb[3];
    need(cx, tui_grid_init(&g, cx, tui_glyphs_of(ETI_PLOT_BLOCK), 1, 4));
    const struct tui_pane p = tui_pane_of(&g);
    is_int(tui_swatch_put(&p, 0, 1, 1), 3, "a swatch is two cells and a blank");
    ok(eti_class_color(1, rgb), "a class of a mask has a colour");
    const uint32_t color = (uint32_t)rgb[0] << 16 | (uint32_t)rgb[1] << 8 | rgb[2];
    is_int(cell(&g, 0, 0)->ch, ' ', "which begins where it is put");
    is_int(cell(&g, 0, 1)->upper, TUI_RGB | color, "in the colour that the mask has");
    is_int(cell(&g, 0, 2)->lower, TUI_RGB | color, "from end to end");
    tui_grid_release(&g);
}

/* The colour of a token's loss, on both sides of each boundary. */
static void
test_heat(struct tui_results *r)
{
    static const struct {
        float loss;
        const char *role;
    } rows[] = {
        {0, "heat0"},      {.499F, "heat0"},    {.501F, "heat1"},  {1.499F, "heat1"},
        {1.501F, "heat2"}, {2.999F, "heat2"},   {3.001F, "heat3"}, {5.999F, "heat3"},
        {6.001F, "heat4"}, {INFINITY, "heat4"}, {NAN, "dim"},
    };
    struct eti_sequence *one = &r->all.sequences->v[0];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char want[32];
        for (int k = 0; k < one->n; k++)
            one->loss[k] = rows[i].loss;
        snprintf(want, sizeof want, "  %s 37-%d\n", rows[i].role, 36 + one->n);
        const char *roles = drawn_as(r, 24, 80, tui_grid_print_roles);
        if (!ok(strstr(roles, want) != NULL, "a token's loss of %g is %s",
                (double)rows[i].loss, rows[i].role))
            diag("no '%s' in\n%s", want, roles);
    }
}

static void
test_others(struct tui_app *app, const json_t *facts)
{
    struct tui_results r;
    write_others();
    write_tracked();
    tui_results_open(&r, app, facts);
    is_int(r.n_data, 6, "other answers are listed beside them");
    is_int(tui_results_count(&r, 0, 1), 1, "of masks pixels are counted");
    ok(strstr(drawn(&r, 24, 80), "mean IoU") != NULL, "with their IoU");
    r.panel = TUI_RESULTS_CLASSES;
    ok(strstr(drawn(&r, 24, 80), ".6667    1.0000   .6667") != NULL,
       "of each class, too");
    test_swatch();
    r.panel = TUI_RESULTS_WORST;
    ok(strstr(drawn(&r, 24, 80), "right: over it, target, prediction") != NULL,
       "and pictures of the worst");
    tui_results_act(&r, TUI_DO_results_data);
    ok(strstr(drawn(&r, 24, 80), "ats\n") != NULL &&
           strstr(drawn(&r, 24, 80), " x\n") != NULL,
       "tokens are shown as they were to come, and what was said instead");
    test_heat(&r);
    tui_results_act(&r, TUI_DO_results_data);
    ok(strstr(drawn(&r, 24, 80), "#1: target 4, value 2") != NULL,
       "values against their targets, the worst selected");
    tui_results_act(&r, TUI_DO_results_data);
    is_int((int64_t)json_array_size(r.track), 2,
           "of what was evaluated twice the last counts");
    ok(strstr(drawn(&r, 24, 80), "10ba") && strstr(drawn(&r, 24, 80), "+ 2") &&
           strstr(drawn(&r, 24, 80), "x 1"),
       "the same samples are shown at each evaluation");
    ok(strstr(drawn(&r, 24, 120), "+ 2 bag") && strstr(drawn(&r, 24, 120), "+ 0 coat"),
       "with the names of their classes, where the data have them");
    const json_t *line = json_array_get(r.track, 1);
    ok(eti_tracked_name(line, 2) && !eti_tracked_name(line, 1) &&
           !eti_tracked_name(json_array_get(r.track, 0), 2),
       "a line has the names of the classes that it has");
    r.panel = TUI_RESULTS_TRACKED;
    const char *two = strstr(drawn(&r, 12, 120), "10ba");
    ok(two && strstr(two + 1, "10ba") < strchr(two, '\n'),
       "side by side where one below the other has no room");
    ok(strstr(strchr(strstr(drawn(&r, 24, 120), "10ba"), '\n'), "10ba") == NULL,
       "below each other where it has");
    static const int size[][2] = {{1, 1}, {5, 20}, {16, 60}, {36, 120}, {50, 200}};
    for (int data = 0; data < 6; data++, tui_results_act(&r, TUI_DO_results_data))
        for (size_t i = 0; i < sizeof size / sizeof *size; i++)
            for (int panel = 0; panel < TUI_RESULTS_PANELS; panel++) {
                r.panel = (enum tui_results_panel)panel;
                ok(drawn(&r, size[i][0], size[i][1]) != NULL,
                   "data %d, panel %d at %d x %d", data, panel, size[i][1], size[i][0]);
            }
    tui_results_close(&r);
}

/* The line of SCREEN that is ROWS below WHAT, from the column of WHAT on; "" where that
 * line is shorter. */
static const char *
below(const char *screen, const char *what, int rows)
{
    const char *line = strstr(screen, what);
    if (!line)
        return "";
    size_t column = 0;
    while (line > screen && line[-1] != '\n')
        line--, column++;
    for (; rows > 0 && line; rows--) {
        line = strchr(line, '\n');
        line += line != NULL;
    }
    return line && strcspn(line, "\n") > column ? line + column : "";
}

/* What a share looks like: a number where there is room for it, else a sign, and a
 * role. */
static void
test_shares(struct tui_app *app)
{
    static const int count[] = {127, 75, 37, 10, 1}; /* of 250 */
    static const enum tui_role role[] = {TUI_HEAT4, TUI_HEAT3, TUI_HEAT2, TUI_HEAT1,
                                         TUI_HEAT0};
    enum { CLASSES = sizeof count / sizeof *count, FIRST = 6 };
    const int32_t label = 1;
    char path[256];
    struct eti_predictions all = {.cx = cx};
    struct tui_results r;
    struct tui_grid g;
    for (int k = 0; k < CLASSES; k++)
        for (int i = 0; i < count[k]; i++) {
            float score[CLASSES] = {[0] = 0};
            score[k] = 9;
            need(cx, eti_predictions_add(&all, score, &label, 1, CLASSES));
        }
    snprintf(path, sizeof path, "%s/shares", folder);
    json_t *facts = json_pack("{s:s, s:s}", "name", "calm-heron", "directory", path);
    if (mkdir(path, 0700) != 0)
        bail("no folder");
    snprintf(path, sizeof path, "%s/shares/predictions", folder);
    if (mkdir(path, 0700) != 0)
        bail("no folder");
    snprintf(path, sizeof path, "%s/shares/predictions/eval.csv", folder);
    need(cx, eti_predictions_write(&all, path, ETI_AS_CSV));
    eti_predictions_release(&all);
    tui_results_open(&r, app, facts);
    ok(strstr(drawn(&r, 24, 80), "    1  51  30  15   4  <1") != NULL,
       "shares are in percent, and less than a half of one is not 0");
    ok(strstr(drawn(&r, 24, 20), "    1 #+-..") != NULL,
       "where there is no room each has a sign of its size");
    need(cx, tui_grid_init(&g, cx, &tui_glyphs_ascii, 24, 20));
    const struct tui_pane p = tui_pane_of(&g);
    tui_results_draw(&r, &p);
    int y = 0;
    while (y < 23 && cell(&g, y, FIRST)->ch != '#')
        y++;
    for (int k = 0; k < CLASSES; k++)
        is_int(cell(&g, y, FIRST + k)->role, role[k], "%d of 250 are as hot as that",
               count[k]);
    tui_grid_release(&g);
    tui_results_close(&r);
    json_decref(facts);
}

/* Data of which there are predictions, or what was tracked, or both: each once, in the
 * order of their names. */
static void
test_list(struct tui_app *app)
{
    static const char *const files[] = {
        "b.csv", "d.track.jsonl", "c.csv", "c.track.jsonl", "a.track.jsonl",
        "a.csv", ".hidden.csv",   "x.txt", "e.csv.old",     "b.ppm"};
    char path[256], seen[64] = "";
    struct tui_results r = {0};
    mkdir("list", 0700);
    mkdir("list/predictions", 0700);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "list/predictions/%s", files[i]);
        FILE *f = fopen(path, "w");
        if (!f || fclose(f) != 0)
            bail("cannot write %s", path);
    }
    json_t *facts = json_pack("{s:s, s:s}", "name", "otter", "directory", "list");
    tui_results_open(&r, app, facts);
    for (int i = 0; i < r.n_data; i++)
        snprintf(seen + strlen(seen), sizeof seen - strlen(seen), " %s", r.data[i]);
    is_str(seen, " a b c d", "data are listed once each");
    tui_results_close(&r);
    json_decref(facts);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "list/predictions/%s", files[i]);
        unlink(path);
    }
    rmdir("list/predictions");
    rmdir("list");
}

static void
test_results(void)
{
    char path[256], message[200];
    struct tui_app app = {.cx = cx};
    struct tui_results r;
    if (!mkdtemp(folder))
        bail("no folder");
    json_t *facts = json_pack("{s:s, s:s}", "name", "calm-heron", "directory", folder);
    snprintf(path, sizeof path, "%s/predictions", folder);
    tui_results_open(&r, &app, facts);
    ok(strstr(drawn(&r, 24, 80), "is not known yet") != NULL,
       "a run without predictions says so");
    tui_results_close(&r);
    if (mkdir(path, 0700) != 0)
        bail("no folder of predictions");
    write_predictions("eval");
    write_predictions("more");
    tui_results_open(&r, &app, facts);
    is_int(r.n_data, 2, "all data that were predicted are there");
    is_int(tui_results_count(&r, 2, 0), 2, "pairs are counted");
    ok(r.label == 2 && r.class == 0, "the commonest mistake is selected first");
    tui_results_message(&r, message, sizeof message);
    is_str(message, "2 of 4 samples of class 2 are taken for 0 (50.0%)", "and told");
    tui_results_act(&r, TUI_DO_everywhere_up);
    is_int(r.label * 10 + r.class, 10, "up goes to the label above it");
    tui_results_act(&r, TUI_DO_everywhere_right);
    is_int(r.label * 10 + r.class, 11, "right to the next class, of that label");
    tui_results_act(&r, TUI_DO_everywhere_left);
    tui_results_act(&r, TUI_DO_everywhere_down);
    is_int(r.label * 10 + r.class, 20, "and down and left back");
    ok(strstr(drawn(&r, 24, 80), "    2  50   .  50") != NULL,
       "rows are the label's, in percent");
    ok(strstr(drawn(&r, 8, 18), "    2  50   .  50") != NULL,
       "with all columns where the last just fits");
    r.panel = TUI_RESULTS_CLASSES;
    ok(strstr(drawn(&r, 24, 80), "0                3  1.0000     .6000   .7500") !=
           NULL,
       "recall, precision and F1 of each class");
    static const char first[] = "0                3  1.0000";
    ok(strncmp(below(drawn(&r, 24, 80), first, 1), "1                3   .6667", 26) ==
               0 &&
           strncmp(below(drawn(&r, 24, 80), first, 2), "2                4   .5000",
                   26) == 0,
       "in a row for each");
    const char *end = below(drawn(&r, 24, 80), first, 3);
    ok(strspn(end, " ") >= 20 || strcspn(end, "\n") == 0, "and below the last is none");
    r.panel = TUI_RESULTS_WORST;
    is_int(r.n_mistakes, 3, "mistakes are listed");
    (void)tui_results_message(&r, message, sizeof message);
    ok(strstr(message, ": loss ") != NULL && strstr(message, ", taken for ") != NULL,
       "of the selected one the message has both names in full");
    drawn(&r, 24, 80);
    is_int(r.worst.page, 10, "80x24 has room for two rows of them");
    ok(strstr(drawn(&r, 24, 80), "0 for 2") != NULL &&
           strstr(drawn(&r, 24, 80), "@@@@@@@") != NULL &&
           strstr(drawn(&r, 24, 80), "no picture") != NULL,
       "with their pictures, where there are some");
    tui_results_act(&r, TUI_DO_results_only);
    is_int(r.n_mistakes, 2, "or those of the pair alone");
    tui_results_act(&r, TUI_DO_everywhere_close);
    is_int(r.n_mistakes, 3, "until esc");
    tui_results_act(&r, TUI_DO_results_data);
    is_str(r.data[r.at_data], "more", "o goes to the next data");
    static const int size[][2] = {{1, 1}, {5, 20}, {16, 60}, {36, 120}, {50, 200}};
    for (size_t i = 0; i < sizeof size / sizeof *size; i++)
        for (int panel = 0; panel < TUI_RESULTS_PANELS; panel++) {
            r.panel = (enum tui_results_panel)panel;
            ok(drawn(&r, size[i][0], size[i][1]) != NULL, "panel %d at %d x %d", panel,
               size[i][1], size[i][0]);
        }
    tui_results_close(&r);
    test_others(&app, facts);
    test_shares(&app);
    test_list(&app);
    json_decref(facts);
    snprintf(path, sizeof path, "rm -r '%s'", folder);
    if (system(path) != 0)
        diag("%s stays", folder);
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    test_halves();
    test_results();
    et_ctx_free(&cx);
    return done();
}
