/* SPDX-License-Identifier: Apache-2.0 */
/* compare_seeds.c: runs that differ by their seed alone as one, by their medians,
 * beside those that were named first: what a setting changes; and the Pareto front,
 * drawn. */
#include "config.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/compare.h"
#include "core/loggers/progress.h"

const char *const compare_figure_keys[ETI_FIGURES] = {
    [ETI_TIME] = "seconds",         [ETI_COST] = "cost",
    [ETI_ENERGY] = "kwh",           [ETI_SAMPLES] = "samples",
    [ETI_CPU_TIME] = "cpu_seconds",
};

json_t *
compare_number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

const char *
compare_figure_text(const struct eti_comparison *k, enum eti_figure what, double x,
                    char *buf, size_t size)
{
    switch (what) {
    case ETI_COST:
        return eti_money_text(k->price, x, buf, size);
    case ETI_ENERGY:
        return eti_energy_text(x, buf, size);
    case ETI_SAMPLES:
        return cli_count(llround(x), buf, size);
    default:
        if (x >= 60)
            return eti_duration_text(x, buf, size);
        snprintf(buf, size, "%.2fs", x);
        return buf;
    }
}

/* ---- the table ---- */

static int
longest_label(const struct eti_alike *a, int n)
{
    int most = (int)strlen("setting");
    for (int i = 0; i < n; i++)
        most = (int)strlen(a[i].label) > most ? (int)strlen(a[i].label) : most;
    return most;
}

/* A row of A; FIRST is that of the first. */
static void
print_row(const struct eti_comparison *k, const struct eti_alike *first,
          const struct eti_alike *a, int width)
{
    char label[ET_VISIBLE_MAX + 1], best[64], more[64] = "-", cost[64], part[64] = "-";
    double own = eti_alike_cost(k, a), by = a->best - first->best;
    double of = own / eti_alike_cost(k, first);
    et_visible(label, sizeof label, a->label, strlen(a->label));
    if (a != first && isfinite(by))
        snprintf(more, sizeof more, "%+.4g", by);
    if (a != first && isfinite(of))
        snprintf(part, sizeof part, "x%.2f", of);
    et_print(stdout, "%-*s  %5d %16s %11s %11s %7s\n", width, label, a->n,
             isfinite(a->best) ? eti_value_text(a->best, best, sizeof best) : "-", more,
             isfinite(own) ? compare_figure_text(k, k->by, own, cost, sizeof cost)
                           : "-",
             part);
}

static void
print_table(const struct cli *c, const struct eti_comparison *k,
            const struct eti_alike *a, int n)
{
    const char *leaf = strrchr(k->metric, '/');
    int width = longest_label(a, n);
    et_print(stdout, "%-*s  seeds %16.16s %11s %11s %7s\n", width, "setting",
             leaf ? leaf + 1 : k->metric, "more", eti_figure_names[k->by], "of it");
    for (int i = 0; i < n; i++)
        print_row(k, &a[0], &a[i], width);
    et_print(stdout, "medians; %s to %s; more and of it: beside the first row\n",
             eti_figure_names[k->by], k->has_target ? c->opt.target : "the best value");
}

static json_t *
as_json(const struct cli *c, const struct eti_comparison *k, const struct eti_alike *a,
        int n)
{
    json_t *all = json_array();
    char key[32];
    snprintf(key, sizeof key, "%s_to_%s", compare_figure_keys[k->by],
             k->has_target ? "target" : "best");
    for (int i = 0; i < n; i++) {
        json_t *names = json_array();
        for (int r = 0; r < a[i].n; r++)
            json_array_append(names,
                              json_object_get(k->run[a[i].run[r]].facts, "name"));
        json_array_append_new(all, json_pack("{s:o, s:o, s:o, s:o}", "setting",
                                             cli_json_text(a[i].label), "runs", names,
                                             "best", compare_number(a[i].best), key,
                                             compare_number(eti_alike_cost(k, &a[i]))));
    }
    return json_pack("{s:o, s:s?, s:s?}", "alike", all, "metric",
                     k->metric[0] ? k->metric : NULL, "target", c->opt.target);
}

int
compare_print_seeds(struct cli *c, const struct eti_comparison *k,
                    const json_t *differences)
{
    struct eti_alike *a = calloc(ETI_COMPARED_RUNS, sizeof *a);
    if (!a)
        return cli_fail(c, CLI_E_MEMORY, NULL, "out of memory: medians");
    int code = CLI_OK, n = eti_comparison_alike(k, differences, a);
    if (c->opt.json)
        code = cli_print_json(as_json(c, k, a, n));
    else
        print_table(c, k, a, n);
    free(a);
    return code;
}

/* ---- the picture ---- */

static int
draw(struct cli *c, const struct eti_comparison *k, const struct eti_alike *a, int n)
{
    struct stat st;
    FILE *f = fopen(c->opt.svg, "we");
    if (!f)
        return cli_fail(c, CLI_E_WRITE, NULL, "cannot write %s: %s", c->opt.svg,
                        strerror(errno));
    et_status status = eti_comparison_svg(k, a, n, f);
    const bool is_file = fstat(fileno(f), &st) == 0 && S_ISREG(st.st_mode);
    if (fclose(f) != 0 && status == ET_OK)
        status =
            ET_FAIL(c->cx, ET_EIO, "cannot write %s: %s", c->opt.svg, strerror(errno));
    if (status == ET_OK)
        return CLI_OK;
    if (is_file)
        unlink(c->opt.svg); /* it is not whole */
    return cli_fail_status(c, status == ET_EIO ? ETI_STAGE_OUTPUT : ETI_STAGE_DATA,
                           status);
}

int
compare_draw(struct cli *c, const struct eti_comparison *k, const json_t *differences)
{
    struct eti_alike *a = calloc(ETI_COMPARED_RUNS, sizeof *a);
    if (!a)
        return cli_fail(c, CLI_E_MEMORY, NULL, "out of memory: the picture");
    int n = eti_comparison_alike(k, differences, a);
    int code = draw(c, k, a, n);
    free(a);
    return code;
}
