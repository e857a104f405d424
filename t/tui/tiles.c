/* SPDX-License-Identifier: Apache-2.0 */
/* tiles.c: whole screens of the samples of a recipe's data (tiles.txt, see whole.h):
 * pictures, masks, texts and numbers, and what stands to their left, at sizes on both
 * sides of where they are divided otherwise. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/tui/whole.h"
#include "tui/glyphs.h"
#include "tui/samples.h"

static struct et_ctx *cx;
static struct tui_app *app;

/* What was asked for comes from answer. */
static et_status
ask(void *owner, struct tui_job *job, const char *const *words,
    const char *const *after)
{
    (void)owner, (void)job, (void)words, (void)after;
    return ET_OK;
}

static void
answer(struct tui_samples *s, const char *head, const char *shown)
{
    json_error_t error;
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    fprintf(f, "{%s, \"shown\": [%s]}", head, shown);
    fclose(f);
    json_decref(s->all);
    s->all = json_loads(text, 0, &error);
    if (!s->all)
        bail("%s: %s", text, error.text);
    free(text);
}

static void
shows(struct tui_samples *s, int rows, int cols, bool with_roles, const char *name)
{
    struct tui_grid g;
    app->grid.rows = rows;
    app->grid.cols = cols;
    need(cx, tui_grid_init(&g, cx, &tui_glyphs_ascii, rows, cols));
    const struct tui_pane p = tui_pane_of(&g);
    tui_samples_draw(s, &p);
    FILE *f = whole_text();
    tui_grid_print(&g, f);
    if (with_roles)
        tui_grid_print_roles(&g, f);
    fprintf(f, "a page: %lld\n", (long long)s->shown);
    whole_is(name);
    tui_grid_release(&g);
}

/* N pictures of H x W pixels, of which one is white: number I of sample I; the rest is
 * as bright as I says. With MASK, one of each sample. */
static char *
pictures(int n, int h, int w, bool with_mask)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    for (int i = 0; i < n; i++) {
        fprintf(f, "%s{\"target\": \"%d of %d\", \"h\": %d, \"w\": %d", i ? ", " : "",
                i, n, h, w);
        for (int part = 0; part < (with_mask ? 3 : 1); part++) {
            static const char *const keys[] = {"rgb", "over", "mask"};
            fprintf(f, ", \"%s\": \"", keys[part]);
            for (int k = 0; k < h * w; k++) {
                const int grey = k == i % (h * w) ? 0xff : 0x0a + 0x1a * (i % 4 + part);
                fprintf(f, "%02x%02x%02x", grey, grey, grey);
            }
            fputs("\"", f);
        }
        fputs("}", f);
    }
    fclose(f);
    return text;
}

static void
show_pictures(struct tui_samples *s)
{
    static const char head[] =
        "\"data\": \"made_up\", \"samples\": 1234, \"fields\": [{\"name\": \"image\", "
        "\"shape\": [3, 4, 6]}, {\"name\": \"label\", \"shape\": []}], "
        "\"transforms\": [{\"name\": \"random_crop\"}, {\"name\": \"normalize\"}, "
        "{\"name\": \"a transform with a very long name that has no room\"}], "
        "\"class_names\": [\"cat\", \"dog\", \"hen\"], \"counts\": [15, 1000, 219], "
        "\"counted_what\": \"samples\", \"counted\": 1234";
    char *text = pictures(20, 4, 6, false);
    answer(s, head, text);
    s->off[1] = true;
    s->steps.at = 2;
    shows(s, 24, 80, true, "pictures");
    s->first = 6;
    shows(s, 24, 76, false, "pictures: the second page, just beside the rest");
    shows(s, 16, 75, false, "pictures: without the rest");
    s->first = 15;
    s->epoch = 3;
    s->from = 40;
    shows(s, 16, 120, false, "pictures: the last of those that were read");
    s->first = 0;
    shows(s, 13, 99, false, "pictures: no room for all classes");
    shows(s, 12, 100, false, "pictures: no room for any class");
    shows(s, 11, 100, false, "pictures: no room for a word about classes");
    shows(s, 36, 124, false, "pictures: high enough for large ones, not wide enough");
    shows(s, 36, 125, true, "pictures: large ones");
    shows(s, 34, 125, false, "pictures: wide enough, not high enough");
    shows(s, 5, 20, false, "pictures: hardly any room");
    free(text);
    text = pictures(3, 2, 12, false);
    answer(s, head, text);
    shows(s, 16, 60, false, "pictures: wide ones");
    free(text);
    text = pictures(3, 12, 2, false);
    answer(s, head, text);
    shows(s, 16, 60, false, "pictures: narrow ones");
    free(text);
}

static void
show_masks(struct tui_samples *s)
{
    static const char head[] =
        "\"data\": \"shapes\", \"samples\": 9, \"fields\": [], \"transforms\": [], "
        "\"counts\": [70, 20, 10], \"counted_what\": \"pixels\", \"counted\": 100";
    char *text = pictures(9, 4, 6, true);
    s->is_eval = true;
    answer(s, head, text);
    s->first = 0;
    shows(s, 24, 80, true, "masks");
    s->first = 3;
    shows(s, 16, 61, false, "masks: small ones");
    shows(s, 16, 62, false, "masks: two beside each other");
    shows(s, 50, 200, false, "masks: large ones");
    free(text);
}

static void
show_texts(struct tui_samples *s)
{
    static const char head[] =
        "\"data\": \"tales\", \"samples\": 321, \"fields\": [{\"name\": \"tokens\", "
        "\"shape\": [128]}], \"transforms\": [{\"name\": \"mask_tokens\"}], "
        "\"class_names\": [], \"counts\": [], \"counted\": 0";
    static const char words[] =
        "{\"target\": \"tale\", \"length\": 128, \"tokens\": [\"once\", \"[MASK]\", "
        "\"a\", \"\\n\", \"time\", \"there\", \"were\", \"[MASK]\", \"bears\", \"in\", "
        "\"the\", \"deepest\", \"forest\", \"of\", \"all\", \"the\", \"forests\", "
        "\"which\", \"nobody\", \"had\", \"ever\", \"seen\"], \"guessed\": {\"1\": "
        "\"upon\", \"7\": \"three\"}}";
    static const char bytes[] =
        "{\"length\": 64, \"tokens\": [\"t\", \"h\", \"e\", \"\\n\", \"c\", \"a\", "
        "\"t\"], \"guessed\": {\"0\": \"T\"}}";
    char text[4096];
    snprintf(text, sizeof text, "%s, %s, %s, %s", words, bytes, bytes, words);
    s->is_eval = false;
    answer(s, head, text);
    s->first = 0;
    shows(s, 24, 100, true, "texts");
    shows(s, 30, 60, false, "texts: more lines each");
    s->first = 1;
    shows(s, 12, 44, true, "texts: from the second on, narrow");
}

static void
show_numbers(struct tui_samples *s)
{
    static const char head[] =
        "\"data\": \"table\", \"samples\": 7, \"fields\": [{\"name\": \"x\", "
        "\"shape\": [9]}], \"transforms\": []";
    static const char one[] =
        "{\"target\": \"2.5\", \"values\": {\"x\": [1, 2.25, -3, 4e6, 5.12345, 6, 7, "
        "8.875, 9], \"y\": [10, 11]}}, {\"values\": {\"x\": [0.5]}}";
    answer(s, head, one);
    s->first = 0;
    shows(s, 14, 80, true, "numbers");
    shows(s, 8, 50, false, "numbers: where not all have room");
    s->first = 1;
    shows(s, 8, 50, false, "numbers: from the second on");
}

static void
show_nothing(struct tui_samples *s)
{
    json_decref(s->all);
    s->all = NULL;
    s->is_eval = true;
    snprintf(s->problem, sizeof s->problem, "eval_data: there is no such folder");
    shows(s, 10, 80, false, "nothing: why");
    s->job.pid = 1;
    shows(s, 10, 80, false, "nothing yet");
    s->job.pid = 0;
}

int
main(void)
{
    struct et_alloc_stats stats;
    struct tui_samples *s = calloc(1, sizeof *s);
    app = calloc(1, sizeof *app);
    if (!app || !s || et_ctx_new(&cx) != ET_OK)
        bail("no memory");
    app->cx = cx;
    whole_open("tiles");
    tui_samples_open(s, app, "mild", ask, NULL);
    show_pictures(s);
    show_masks(s);
    show_texts(s);
    show_numbers(s);
    show_nothing(s);
    tui_samples_close(s);
    whole_close();
    free(s);
    free(app);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
