/* SPDX-License-Identifier: Apache-2.0 */
/* monitor_export.c: the focused chart as a file in the folder that one works in. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "core/journal/export.h"
#include "core/library/facts.h"
#include "tui/monitor.h"

enum { CSV = 1, SVG, TXT };
static const struct {
    int id, key;
    const char *text, *ending;
} kinds[] = {
    {CSV, 'c', "csv: the values of its series", "csv"},
    {SVG, 's', "svg: the whole chart as a picture", "svg"},
    {TXT, 't', "txt: this screen as text", "txt"},
};

/* "^(loss/train/total|lr-SGD/group0)$": the chart's names and no others. */
static et_status
pattern_of(struct tui_app *app, const struct tui_chart *c, regex_t *out)
{
    char text[4 * ET_METRIC_NAME + 16];
    size_t n = (size_t)snprintf(text, sizeof text, "^(");
    for (int i = 0; i < TUI_CHART_SERIES && *c->name[i]; i++) {
        if (i > 0)
            text[n++] = '|';
        for (const char *s = c->name[i]; *s && n < sizeof text - 4; s++) {
            if (strchr(".[]()*+?{}^$|\\", *s))
                text[n++] = '\\';
            text[n++] = *s;
        }
    }
    snprintf(text + n, sizeof text - n, ")$");
    if (regcomp(out, text, REG_EXTENDED | REG_NOSUB) != 0)
        return ET_FAIL(app->cx, ET_EINVAL, "the names cannot be searched for");
    return ET_OK;
}

static et_status
write_kind(struct tui_app *app, const struct tui_chart *c, int id, FILE *f)
{
    char events[PATH_MAX], fact[ETI_FACT_TEXT];
    regex_t pattern;
    const char *name = eti_facts_get(app->source->facts, "name", fact);
    const char *folder =
        json_string_value(json_object_get(app->source->facts, "directory"));
    if (id == TXT) {
        tui_app_draw(app);
        tui_grid_print(&app->grid, f);
        return ET_OK;
    }
    if (!folder)
        return ET_FAIL(app->cx, ET_ENOTSUP, "the run's folder is on another machine");
    snprintf(events, sizeof events, "%s/events.log", folder);
    ET_TRY(pattern_of(app, c, &pattern));
    const struct eti_export x = {
        .events = events,
        .metrics = &pattern,
        .title = name ? name : "run",
    };
    et_status status =
        id == SVG ? eti_export_svg(app->cx, &x, f) : eti_export_csv(app->cx, &x, f);
    regfree(&pattern);
    return status;
}

static void
export_chart(struct tui_app *app, void *data, int id, const char *text)
{
    char path[256], label[ET_METRIC_NAME], fact[ETI_FACT_TEXT];
    const struct tui_chart *c = tui_chart_focused(data);
    (void)text;
    if (!app->source)
        return;
    const char *name = eti_facts_get(app->source->facts, "name", fact);
    tui_metric_label(c->name[0], label);
    for (char *s = label; *s; s++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_",
                    *s))
            *s = '-';
    snprintf(path, sizeof path, "%.60s-%.80s.%s", name ? name : "run", label,
             kinds[id - 1].ending);
    FILE *f = fopen(path, "wxe");
    if (!f) {
        tui_say(app, TUI_BAD, "x cannot write %s: %s", path, strerror(errno));
        return;
    }
    et_status status = write_kind(app, c, id, f);
    bool failed = fclose(f) != 0;
    if (status != ET_OK)
        tui_say_error(app);
    else if (failed)
        tui_say(app, TUI_BAD, "x cannot write %s: %s", path, strerror(errno));
    else
        tui_say(app, TUI_GOOD, "wrote %s", path);
}

void
tui_chart_export(const struct tui_view *v)
{
    struct tui_app *app = v->app;
    struct tui_item item[3];
    const struct tui_chart *c = tui_chart_focused(v->m);
    for (int i = 0; i < 3; i++) {
        item[i] = (struct tui_item){.id = kinds[i].id, .key = kinds[i].key};
        snprintf(item[i].text, sizeof item[i].text, "%s", kinds[i].text);
        if (!*c->name[0] && kinds[i].id != TXT)
            snprintf(item[i].why, sizeof item[i].why, "the chart has no series");
    }
    if (tui_popup_menu(&app->popup, app->cx, "export this chart", item, 3) != ET_OK) {
        tui_say_error(app);
        return;
    }
    app->popup.done = export_chart;
    app->popup.data = v->m;
}
