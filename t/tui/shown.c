/* SPDX-License-Identifier: Apache-2.0 */
/* shown.c: the samples of a recipe's data at every size of the screen: what is drawn
 * stays in its pane, classes and pages have each thing once, texts their lines. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/tap.h"
#include "tui/samples.h"

enum { LINE = 256, ROWS = 64, CLASSES = 40, SAMPLES = 200 };

static struct et_ctx *cx;
static char screen[ROWS][LINE]; /* what was drawn, line by line */
static int outside;             /* cells around the pane that were drawn on */

/* ---- what is shown ---- */

static json_t *
make_sample(bool is_text, bool has_mask, int i)
{
    static const char pixels[] = "ffffff000000000000ffffff";
    char target[16];
    snprintf(target, sizeof target, "#%d#", i);
    json_t *one = json_pack("{s:s, s:i, s:i}", "target", target, "h", 2, "w", 2);
    if (is_text) {
        json_t *tokens = json_array();
        for (int k = 0; k < 20 + i % 7 * 60; k++) {
            char word[16];
            snprintf(word, sizeof word, "%d/%d", i, k);
            json_array_append_new(tokens, json_string(word));
        }
        json_object_set_new(one, "length", json_integer(3));
        json_object_set_new(one, "tokens", tokens);
        return one;
    }
    json_object_set_new(one, has_mask ? "over" : "rgb", json_string(pixels));
    json_object_set_new(one, "rgb", json_string(pixels));
    if (has_mask)
        json_object_set_new(one, "mask", json_string(pixels));
    return one;
}

static json_t *
make_all(bool is_text, bool has_mask, int n_classes)
{
    json_t *shown = json_array(), *counts = json_array(), *names = json_array();
    for (int i = 0; i < SAMPLES; i++)
        json_array_append_new(shown, make_sample(is_text, has_mask, i));
    for (int i = 0; i < n_classes; i++) {
        char name[16];
        snprintf(name, sizeof name, "kind-%d.", i);
        json_array_append_new(counts, json_integer(3 * i));
        json_array_append_new(names, json_string(name));
    }
    return json_pack("{s:s, s:i, s:[{s:s, s:[i,i,i]}], s:[{s:s}], s:o, s:o, s:i, s:o}",
                     "data", "made_up", "samples", 1000, "fields", "name", "image",
                     "shape", 3, 2, 2, "transforms", "name", "normalize", "class_names",
                     names, "counts", counts, "counted", 21, "shown", shown);
}

/* S on ROWS x COLS cells in the middle of others. */
static void
draw(struct tui_samples *s, int rows, int cols)
{
    struct tui_grid g;
    char *text;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    if (!f || tui_grid_init(&g, cx, &tui_glyphs_ascii, rows + 2, cols + 2) != ET_OK)
        bail("no memory for a screen");
    const struct tui_pane all = tui_pane_of(&g);
    const struct tui_pane p = tui_pane_part(&all, 1, 1, rows, cols);
    for (int y = 0; y < rows + 2; y++)
        tui_fill(&all, y, 0, cols + 2, '?', TUI_TEXT);
    for (int y = 0; y < rows; y++)
        tui_fill(&p, y, 0, cols, ' ', TUI_TEXT);
    tui_samples_draw(s, &p);
    tui_grid_print(&g, f);
    fclose(f);
    tui_grid_release(&g);
    const char *at = text;
    for (int y = 0; y < rows + 2; y++, at += strcspn(at, "\n") + 1) {
        const int length = (int)strcspn(at, "\n");
        if (y == 0 || y == rows + 1) {
            outside += (int)strspn(at, "?") != cols + 2;
            continue;
        }
        outside += length != cols + 2 || at[0] != '?' || at[length - 1] != '?';
        snprintf(screen[y - 1], LINE, "%.*s", length > 1 ? length - 2 : 0, at + 1);
    }
    free(text);
}

static int
count_on_screen(int rows, const char *text)
{
    int n = 0;
    for (int y = 0; y < rows; y++)
        for (const char *at = screen[y]; (at = strstr(at, text)) != NULL; at++)
            n++;
    return n;
}

/* ---- the tests ---- */

static void
test_sizes(void)
{
    for (int kind = 0; kind < 3; kind++) {
        struct tui_samples s = {.name = "a recipe", .epoch = 1};
        s.all = make_all(kind == 2, kind == 1, 10);
        outside = 0;
        for (int rows = 5; rows <= 50; rows += 5)
            for (int cols = 20; cols <= 200; cols += 20)
                draw(&s, rows, cols);
        is_int(outside, 0, "%s stay in their pane, whatever its size",
               kind == 0   ? "pictures"
               : kind == 1 ? "pictures with masks"
                           : "texts");
        json_decref(s.all);
    }
}

/* Each class has a line, or is one of two or more that have none. */
static void
test_classes(void)
{
    int wrong = 0, cut = 0, whole = 0;
    for (int n = 1; n <= CLASSES; n += 5) {
        struct tui_samples s = {.name = "a recipe", .epoch = 1};
        s.all = make_all(false, false, n);
        for (int rows = 16; rows <= 60; rows += 2) {
            int lines = 0, more = 0;
            draw(&s, rows, 90);
            while (lines < n) {
                char name[16];
                snprintf(name, sizeof name, "kind-%d.", lines);
                if (count_on_screen(rows, name) != 1)
                    break;
                lines++;
            }
            for (int y = 0; y < rows; y++) {
                const char *at = strstr(screen[y], " more");
                if (at)
                    more = (int)strtol(screen[y] + 2, NULL, 10);
            }
            wrong += lines > 0 && (lines + more != n || more == 1);
            cut += more > 1;
            whole += lines == n;
        }
        json_decref(s.all);
    }
    ok(cut > 20 && whole > 20, "some screens have all classes, some not");
    is_int(wrong, 0, "each class has a line, or is counted with others");
}

/* A page has its own samples, each once. */
static void
test_pages(void)
{
    int wrong = 0;
    for (int kind = 0; kind < 3; kind++) {
        struct tui_samples s = {.name = "a recipe", .epoch = 1};
        s.all = make_all(kind == 2, kind == 1, 3);
        for (int rows = 18; rows <= 50; rows += 8)
            for (int cols = 60; cols <= 180; cols += 40) {
                s.first = 0;
                for (int page = 0; page < 3; page++) {
                    draw(&s, rows, cols);
                    for (int i = 0; i < SAMPLES; i++) {
                        char target[16];
                        snprintf(target, sizeof target, "#%d#", i);
                        wrong += count_on_screen(rows, target) !=
                                 (i >= s.first && i < s.first + s.shown);
                    }
                    s.first += s.shown;
                }
            }
        json_decref(s.all);
    }
    is_int(wrong, 0, "each page has the samples that follow, each once");
}

/* Of texts: where lines of sample I may stand nothing of another does, and between two
 * is a line without any. */
static void
test_texts(void)
{
    struct tui_samples s = {.name = "a recipe", .epoch = 1};
    int wrong = 0, seen = 0;
    s.all = make_all(true, false, 3);
    for (int rows = 18; rows <= 50; rows += 4) {
        int at = -1, since = 0;
        draw(&s, rows, 70);
        for (int y = 0; y < rows; y++, since++) {
            const char *target = strstr(screen[y], " #");
            char own[16];
            if (target && strchr(target + 2, '#')) {
                wrong += at >= 0 && strspn(screen[y - 1], " ") != strlen(screen[y - 1]);
                at = (int)strtol(target + 2, NULL, 10);
                since = 0;
                continue;
            }
            snprintf(own, sizeof own, "  %d/", at);
            for (const char *word = screen[y]; at >= 0 && *word;) {
                word += strspn(word, " ");
                seen += *word != '\0';
                wrong += *word && strtol(word, NULL, 10) != at;
                word += strcspn(word, " ");
            }
        }
    }
    json_decref(s.all);
    ok(seen > 500, "%d words are looked at", seen);
    is_int(wrong, 0, "texts keep to their lines");
}

int
main(void)
{
    struct et_alloc_stats stats;
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    test_sizes();
    test_classes();
    test_pages();
    test_texts();
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
