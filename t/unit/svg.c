/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of pictures in SVG: their texts, steps between ticks, and what ticks say. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/journal/svg.h"
#include "t/tap.h"

static void
test_texts(void)
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    if (!f)
        bail("no memory");
    eti_svg_begin(f, 640, 480, "a < b");
    fflush(f);
    ok(strstr(text, " width=\"640\" height=\"480\" viewBox=\"0 0 640 480\">"),
       "a picture has its width and height, and shows as much");
    ok(strstr(text, "<title>a &lt; b</title>"), "and its title");
    const size_t begun = n;
    eti_svg_text(f, 12.34, 5.67, " class=\"s\"", "x<y && \"z\">w\n\x1b[1m");
    fflush(f);
    is_str(text + begun,
           "<text x=\"12.3\" y=\"5.7\" class=\"s\">x&lt;y &amp;&amp; "
           "\"z\"&gt;w\\x0a\\x1b[1m"
           "</text>\n",
           "a text has its place, and no signs that would mean something");
    fclose(f);
    free(text);
}

static void
test_steps(void)
{
    static const struct {
        double low, high;
        int n;
        double want;
    } rows[] = {
        {0, 10, 10, 1},     {0, 10.1, 10, 2},     {0, 20, 10, 2},   {0, 20.1, 10, 5},
        {0, 50, 10, 5},     {0, 50.1, 10, 10},    {100, 103, 3, 1}, {-30, 30, 4, 20},
        {0.5, 0.9, 4, 0.1}, {5, 5.0012, 4, 5e-4}, {0, 7e6, 5, 2e6},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        is_near(eti_svg_step(rows[i].low, rows[i].high, rows[i].n), rows[i].want, 1e-12,
                "%g to %g in %d steps", rows[i].low, rows[i].high, rows[i].n);
}

static void
test_ticks(void)
{
    static const struct {
        double value, step, most;
        const char *want;
    } rows[] = {
        {0, 0.5, 2, "0"},
        {1e-17, 0.1, 1, "0"},
        {-0.5, 0.5, 1, "-0.5"},
        {1, 0.5, 2, "1.0"},
        {0.25, 0.05, 0.5, "0.25"},
        {0.001, 0.001, 0.005, "0.001"},
        {2e-5, 1e-5, 1e-4, "0.00002"},
        {2e-6, 1e-6, 5e-6, "2e-06"},
        {40, 20, 100, "40"},
        {5000, 1000, 9999, "5000"},
        {5000, 5000, 10000, "5k"},
        {0, 5000, 10000, "0"},
        {12500, 2500, 20000, "12.5k"},
        {500000, 500000, 1e6, "0.5M"},
        {2.5e9, 5e8, 3e9, "2.5G"},
        {-3e12, 1e12, 4e12, "-3T"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char buf[32];
        is_str(eti_svg_tick(rows[i].value, rows[i].step, rows[i].most, buf, sizeof buf),
               rows[i].want, "%g, every %g up to %g", rows[i].value, rows[i].step,
               rows[i].most);
    }
}

int
main(void)
{
    test_texts();
    test_steps();
    test_ticks();
    return done();
}
