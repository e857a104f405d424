/* SPDX-License-Identifier: Apache-2.0 */
/* picture.c: see picture.h. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/library/facts.h"
#include "t/tap.h"
#include "t/tui/picture.h"

char *picture;

void
picture_run(char *folder, const char *args)
{
    char command[4096];
    const char *build = getenv("ET_BUILDDIR");
    if (!mkdtemp(folder))
        bail("no folder");
    snprintf(command, sizeof command, "%s/t/tui/example %s %s", build ? build : ".",
             folder, args);
    if (system(command) != 0)
        bail("no example");
}

struct tui_app *
picture_open(struct et_ctx *cx, const char *folder, enum tui_where where,
             struct tui_source_class *class,
             void (*change)(struct tui_source_class *class))
{
    struct tui_app *app;
    struct tui_source *source;
    json_t *facts;
    struct tui_app_config config = {
        .cx = cx,
        .glyphs = &tui_glyphs_ascii,
        .first = where,
        .rows = 24,
        .cols = 80,
    };
    tui_keys_default(&config.keys);
    if (tui_app_new(&config, &app) != ET_OK ||
        eti_facts_read(cx, folder, &facts) != ET_OK ||
        tui_source_dir(cx, facts, &source) != ET_OK)
        bail("no screen: %s", et_error_get(cx)->message);
    *class = *source->class;
    change(class);
    source->class = class;
    tui_app_attach(app, &source);
    picture_draw(app);
    return app;
}

void
picture_draw(struct tui_app *app)
{
    size_t n;
    free(picture);
    picture = NULL;
    FILE *f = open_memstream(&picture, &n);
    if (!f)
        bail("no memory for a picture");
    tui_app_draw(app);
    tui_grid_print(&app->grid, f);
    fclose(f);
}

void
picture_press(struct tui_app *app, const char *keys)
{
    for (; *keys; keys++)
        tui_app_key(app, *keys);
    picture_draw(app);
}

void
picture_has(const char *text, const char *name)
{
    if (!ok(strstr(picture, text) != NULL, "%s", name))
        diag("\n%s", picture);
}

void
picture_close(struct tui_app **app, const char *folder)
{
    char command[4096];
    tui_app_free(app);
    free(picture);
    picture = NULL;
    snprintf(command, sizeof command, "rm -r %s", folder);
    if (system(command) != 0)
        bail("%s stays", folder);
}
