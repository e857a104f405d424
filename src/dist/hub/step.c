/* SPDX-License-Identifier: Apache-2.0 */
/* step.c: see step.h. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dist/hub/step.h"

const struct etd_step_part etd_step_parts[] = {
    {"data_ms", false, "data wait"},      {"h2d_ms", false, "h2d copy"},
    {"forward_ms", false, "forward"},     {"loss_ms", false, "loss"},
    {"backward_ms", false, "backward"},   {ETD_COMPUTE, false, "compute"},
    {"comm_ms", false, "allreduce"},      {"wait_ms", true, "wait for ranks"},
    {"optimizer_ms", false, "optimizer"}, {"hooks_ms", false, "algorithms"},
    {"save_ms", false, "checkpoints"},    {NULL, false, NULL},
};
_Static_assert(sizeof etd_step_parts / sizeof *etd_step_parts <= ETD_STEP_ROOM,
               "a series for each, and one for the step");

/* ---- numbers ---- */

/* The part of own time that is not measured by itself. NaN: all of it is measured, or
 * own time is not known. */
static double
compute_ms(const struct etd_part *p)
{
    static const char *const measured[] = {"data_ms", "h2d_ms",       "loss_ms",
                                           "comm_ms", "optimizer_ms", "hooks_ms"};
    double rest = etd_part_get(p, "own_ms");
    if (!isnan(etd_part_get(p, "forward_ms")))
        return NAN;
    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++) {
        double x = etd_part_get(p, measured[i]);
        rest -= isnan(x) ? 0 : x;
    }
    return isnan(rest) ? rest : fmax(rest, 0);
}

double
etd_step_number(const struct etd_part *p, const char *number)
{
    return strcmp(number, ETD_COMPUTE) == 0 ? compute_ms(p) : etd_part_get(p, number);
}

static int
by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double
etd_step_median(const struct etd_model *m, const char *number)
{
    double v[ETD_RANKS];
    int n = 0;
    for (int i = 0; i < m->n_ranks && n < ETD_RANKS; i++) {
        double x = etd_step_number(&m->rank[i], number);
        if (!isnan(x))
            v[n++] = x;
    }
    if (n == 0)
        return NAN;
    qsort(v, (size_t)n, sizeof *v, by_size);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* ---- series ---- */

const char *
etd_step_name(const char *name)
{
    const size_t begin = strlen(ETD_STEP);
    if (strncmp(name, ETD_STEP, begin) != 0)
        return NULL;
    for (const struct etd_step_part *q = etd_step_parts; q->number; q++)
        if (strcmp(name + begin, q->number) == 0)
            return q->name;
    return strcmp(name, ETD_STEP_ALL) == 0 ? "step" : NULL;
}

static bool
has_number(const struct et_record *r, const char *number)
{
    for (int i = 0; i < r->n; i++)
        if (strcmp(r->entry[i].name, number) == 0)
            return true;
    return false;
}

static bool
says(const struct et_record *r, const char *number)
{
    if (strcmp(number, ETD_COMPUTE) == 0)
        return has_number(r, "own_ms") && !has_number(r, "forward_ms");
    return has_number(r, number);
}

/* (A second without a batch's end has no times.) */
int
etd_step_name_all(const struct et_record *r, struct et_log_entry *entry)
{
    int n = 0;
    if (r->kind != ET_RECORD_HEALTH || r->rank != 0 || r->ba < 0 ||
        !has_number(r, "step_ms"))
        return 0;
    snprintf(entry[n++].name, sizeof entry->name, "%s", ETD_STEP_ALL);
    for (const struct etd_step_part *q = etd_step_parts; q->number; q++)
        if (says(r, q->number))
            snprintf(entry[n++].name, sizeof entry->name, "%s%s", ETD_STEP, q->number);
    return n;
}
