/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c: whichever allocation fails, the screens stay, and leak nothing.
 * RELIABILITY.md section 10, R25: draw a frame. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/library/facts.h"
#include "t/tap.h"
#include "tui/app.h"

enum { MOST = 4000 };

static char folder[] = "/tmp/etude-memory.XXXXXX";

static void
show(struct tui_app *app, const char *keys)
{
    for (int key = 0; key >= 0;) {
        tui_app_tick(app, 0.01);
        tui_app_draw(app);
        key = tui_keys_next(&keys);
        if (key == TUI_K_NONE)
            return;
        tui_app_key(app, key);
    }
}

/* All that a person does in a minute. Returns the blocks that are left. */
static uint64_t
use(struct et_ctx *cx)
{
    struct tui_app *app = NULL;
    struct tui_source *source = NULL;
    json_t *facts = NULL;
    struct et_alloc_stats stats;
    struct tui_app_config config = {
        .cx = cx,
        .glyphs = tui_glyphs_of(ETI_PLOT_BRAILLE),
        .first = TUI_IN_monitor,
        .rows = 24,
        .cols = 80,
    };
    tui_keys_default(&config.keys);
    et_status status = tui_app_new(&config, &app);
    if (status == ET_OK)
        status = eti_facts_read(cx, folder, &facts);
    if (status == ET_OK)
        status = tui_source_dir(cx, facts, &source);
    if (status == ET_OK) {
        tui_app_attach(app, &source);
        show(app,
             "+ic<esc>?<esc>:<esc>o<esc>/eval<enter><esc>5/step<enter>&rank=3<enter>2");
        tui_app_resize(app, 50, 200);
        show(app, "<tab>z");
    }
    tui_app_free(&app);
    et_error_clear(cx);
    et_alloc_get_stats(cx, &stats);
    return stats.live;
}

int
main(void)
{
    char command[512];
    const char *build = getenv("ET_BUILDDIR");
    struct et_ctx *cx;
    struct et_alloc_stats before, after;
    if (!mkdtemp(folder) || et_ctx_new(&cx) != ET_OK)
        bail("no folder");
    snprintf(command, sizeof command, "%s/t/tui/example %s 200", build ? build : ".",
             folder);
    if (system(command) != 0)
        bail("no example");
    et_alloc_get_stats(cx, &before);
    is_int((int64_t)use(cx), 0, "nothing is left when all goes well");
    et_alloc_get_stats(cx, &after);
    uint64_t all = after.allocs - before.allocs, leaks = 0, tried = 0;
    uint64_t stride = getenv("ETUDE_LONG") ? 1 : all / 120 + 1;
    for (uint64_t k = 1; k <= all && tried < MOST; k += stride, tried++) {
        et_alloc_fail_at(cx, k);
        leaks += use(cx) != 0;
        et_alloc_fail_at(cx, 0);
        et_alloc_fail_from(cx, k);
        leaks += use(cx) != 0;
        et_alloc_fail_at(cx, 0);
    }
    is_int((int64_t)leaks, 0, "nor when one of %d allocations fails, or all from it on",
           (int)all);
    is_int((int64_t)use(cx), 0, "and then all goes well again");
    et_ctx_free(&cx);
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) == 0 ? done() : 1;
}
