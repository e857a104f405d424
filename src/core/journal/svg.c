/* SPDX-License-Identifier: Apache-2.0 */
/* svg.c: see svg.h. */
#include "core/journal/svg.h"

#include <math.h>
#include <string.h>

#include "etude/diagnostic.h"

const char *const eti_svg_colors[ETI_SVG_COLORS] = {
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000",
};

void
eti_svg_begin(FILE *f, int width, int height, const char *title)
{
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"%d\" "
            "height=\"%d\" viewBox=\"0 0 %d %d\">\n<title>",
            width, height, width, height);
    eti_svg_escape(f, title);
    fputs(
        "</title>\n<style>text{font:12px sans-serif;fill:#333}.t{font-size:18px}"
        ".h{font-weight:bold}.s{font-size:11px;fill:#777}.l{fill:none;stroke-width:1.5;"
        "stroke-linejoin:round}.g{stroke:#e4e4e4}.a{fill:none;stroke:#777}"
        ".m{stroke:#999;stroke-dasharray:3 3}</style>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        f);
}

void
eti_svg_escape(FILE *f, const char *text)
{
    char visible[ET_VISIBLE_MAX + 1];
    et_visible(visible, sizeof visible, text, strlen(text));
    for (const char *p = visible; *p; p++) {
        if (*p == '&')
            fputs("&amp;", f);
        else if (*p == '<')
            fputs("&lt;", f);
        else if (*p == '>')
            fputs("&gt;", f);
        else
            fputc(*p, f);
    }
}

void
eti_svg_text(FILE *f, double x, double y, const char *attributes, const char *text)
{
    fprintf(f, "<text x=\"%.1f\" y=\"%.1f\"%s>", x, y, attributes);
    eti_svg_escape(f, text);
    fputs("</text>\n", f);
}

double
eti_svg_step(double low, double high, int n)
{
    double rough = (high - low) / n, power = pow(10, floor(log10(rough)));
    double digit = rough / power;
    return power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
}

const char *
eti_svg_tick(double value, double step, double most, char *buf, size_t size)
{
    static const struct {
        double of;
        const char *suffix;
    } scales[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e4, "k"}};
    if (fabs(value) < step * 1e-6) {
        snprintf(buf, size, "0");
        return buf;
    }
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
        if (most >= scales[i].of) {
            double of = scales[i].of == 1e4 ? 1e3 : scales[i].of;
            snprintf(buf, size, "%.6g%s", value / of, scales[i].suffix);
            return buf;
        }
    int decimals = (int)-floor(log10(step) + 1e-9);
    if (decimals > 5)
        snprintf(buf, size, "%.3g", value);
    else
        snprintf(buf, size, "%.*f", decimals > 0 ? decimals : 0, value);
    return buf;
}
