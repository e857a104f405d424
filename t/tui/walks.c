/* SPDX-License-Identifier: Apache-2.0 */
/* walks.c: what each key changes on the screen, cell by cell. A walk is a file of
 * t/tui/walks:
 *
 *     # what it is about
 *     open runs 80x24
 *     = j: the next run is selected
 *      5.1-1
 *      6.1-1 >
 *     ~ k: and the one before
 *      5.1-1 >
 *      5 ~ focus@select 1-2 ...
 *
 * "open" says which screen, and how many columns and rows it has. "= KEYS: NAME" is a
 * test: after KEYS exactly these lines have another text than before them, from the
 * first column that differs to the last. "~ KEYS: NAME" looks at the roles of their
 * cells, too (tui_grid_print_roles). KEYS may be what a mouse does (point).
 * ETUDE_UPDATE=1 writes the lines anew, for a person to look at.
 *
 * The commands that a screen starts are this program once more. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "core/library/facts.h"
#include "t/tap.h"
#include "t/unit/store.h"
#include "tui/app.h"
#include "tui/compose.h"

enum { LINE = 4096, ROWS = 64, KEYS = 200 };

static struct et_ctx *cx;
static char srcdir[LINE / 2], builddir[LINE / 2];

/* ---- the commands that screens start ---- */

/* `etude data show`: two pictures of 2 x 2 pixels, or with eval_data texts, and what
 * was asked for as their targets. */
static int
show_data(int argc, char **argv)
{
    const char *from = "", *without = "nothing", *epoch = "";
    bool is_text = false;
    for (int i = 2; i < argc; i++) {
        from = strcmp(argv[i], "--from") == 0 ? argv[i + 1] : from;
        without = strcmp(argv[i], "--without") == 0 ? argv[i + 1] : without;
        epoch = strcmp(argv[i], "--epoch") == 0 ? argv[i + 1] : epoch;
        is_text = is_text || strcmp(argv[i], "eval_data") == 0;
    }
    printf("{\"data\": \"made_up\", \"samples\": 21, \"fields\": [{\"name\": "
           "\"image\", \"shape\": [3, 2, 2]}], \"first\": 0, \"transforms\": "
           "[{\"name\": \"random_crop\"}, {\"name\": \"normalize\"}], "
           "\"class_names\": [\"cat\", \"dog\"], \"counts\": [15, 6], "
           "\"counted\": 21, \"shown\": [");
    for (int i = 0; i < (*from == '0' ? 20 : 1); i++)
        if (is_text)
            printf("%s{\"target\": \"%d\", \"length\": 3, \"tokens\": [\"the\", "
                   "\"[MASK]\", \"sat\"], \"guessed\": {\"1\": \"cat\"}}",
                   i > 0 ? "," : "", i);
        else
            printf("%s{\"target\": \"%s less %s ep %s\", \"h\": 2, \"w\": 2, "
                   "\"rgb\": \"ffffff000000000000ffffff\"}",
                   i > 0 ? "," : "", from, without, epoch);
    puts("]}");
    return 0;
}

static int
be_command(int argc, char **argv)
{
    const char *what = argv[1];
    if (strcmp(what, "data") == 0)
        return show_data(argc, argv);
    if (strcmp(what, "estimate") == 0)
        puts("{\"seconds_per_batch\": 0.5, \"peak_bytes\": 1.5e6, \"params\": 98765}");
    else if (strcmp(what, "explain") == 0)
        puts("{\"learning_rate\": {\"batches\": 10, \"points\": [{\"ba\": 0, \"lr\": "
             "0.1}, {\"ba\": 4, \"lr\": 0.4}, {\"ba\": 9, \"lr\": 0.01}]}}");
    return 0;
}

/* ---- what is walked through ---- */

static double clock_s = 100;

static double
tell_now(void)
{
    return clock_s;
}

static double
tell_day(void) /* 2025-11-21 */
{
    return 1763690400 + clock_s;
}

static struct tui_app *
new_app(enum tui_where where, int rows, int cols)
{
    struct tui_app *app;
    struct tui_app_config config = {
        .cx = cx,
        .glyphs = &tui_glyphs_ascii,
        .is_dump = true,
        .first = where,
        .rows = rows,
        .cols = cols,
    };
    tui_keys_default(&config.keys);
    if (tui_app_new(&config, &app) != ET_OK)
        bail("no screen: %s", et_error_get(cx)->message);
    return app;
}

static void
do_shell(const char *fmt, const char *a, const char *b)
{
    char command[2 * LINE];
    snprintf(command, sizeof command, fmt, a, b);
    if (system(command) != 0)
        bail("%s has failed", command);
}

/* Seven runs; with MORE "none" no run. */
static struct tui_app *
open_runs(const char *more, int rows, int cols)
{
    if (strcmp(more, "none") != 0)
        do_shell("%s/t/tui/rivals", builddir, "");
    return new_app(TUI_IN_runs, rows, cols);
}

/* Compose with the recipe MORE of t/tui, or without one. */
static struct tui_app *
open_compose(const char *more, int rows, int cols)
{
    json_t *installed = json_pack(
        "[{s:s, s:s, s:s}, {s:s, s:s, s:s}]", "name", "first_minute", "title",
        "a first one", "path", "first_minute.yaml", "name", "other", "title",
        "a recipe whose title is longer than there is room for it in a line of a menu",
        "path", "other.yaml");
    const struct tui_compose_setup setup = {.runs = "runs", .installed = installed};
    do_shell("cp %s/t/tui/mild.yaml first_minute.yaml", srcdir, "");
    do_shell("cp %s/t/tui/faults.yaml other.yaml", srcdir, "");
    if (*more)
        do_shell("cp %s/t/tui/%s r.yaml", srcdir, more);
    struct tui_app *app = new_app(TUI_IN_compose, rows, cols);
    if (tui_compose_setup(app, &setup) != ET_OK ||
        (*more && tui_compose_open(app, "r.yaml") != ET_OK))
        bail("no recipe: %s", et_error_get(cx)->message);
    json_decref(installed);
    return app;
}

static struct tui_app *
open_run(enum tui_where where, const char *more, int rows, int cols)
{
    struct tui_source *source;
    json_t *facts;
    do_shell("%s/t/tui/example run %s", builddir, more);
    struct tui_app *app = new_app(where, rows, cols);
    if (eti_facts_read(cx, "run", &facts) != ET_OK ||
        tui_source_dir(cx, facts, &source) != ET_OK)
        bail("no run: %s", et_error_get(cx)->message);
    tui_app_attach(app, &source);
    return app;
}

/* Monitor or Logs with the run that "t/tui/example run MORE" writes. */
static struct tui_app *
open_monitor(const char *more, int rows, int cols)
{
    return open_run(TUI_IN_monitor, more, rows, cols);
}

static struct tui_app *
open_logs(const char *more, int rows, int cols)
{
    return open_run(TUI_IN_logs, more, rows, cols);
}

static const struct {
    const char *name;
    struct tui_app *(*open)(const char *more, int rows, int cols);
} places[] = {
    {"runs", open_runs},
    {"compose", open_compose},
    {"monitor", open_monitor},
    {"logs", open_logs},
};

static struct tui_app *
open_place(const char *line)
{
    char name[16], more[LINE] = "";
    int rows, cols;
    if (sscanf(line, "open %15s %dx%d %4095[^\n]", name, &cols, &rows, more) < 3 ||
        rows > ROWS)
        bail("no place to open: %s", line);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (strcmp(places[i].name, name) == 0)
            return places[i].open(more, rows, cols);
    bail("no place '%s'", name);
}

/* ---- the picture, and what has changed in it ---- */

struct picture {
    char text[ROWS][LINE], roles[ROWS][LINE];
};

/* N bytes at AT of TEXT become INSTEAD. */
static void
put_instead(char text[LINE], char *at, size_t n, const char *instead)
{
    char rest[LINE];
    snprintf(rest, sizeof rest, "%s", at + n);
    snprintf(at, LINE - (size_t)(at - text), "%s%s", instead, rest);
}

/* What would be another text each time, or with each option that is added: the folder
 * of the walk, "all 116 keys". */
static void
mask(char text[LINE])
{
    char here[LINE / 2];
    char *at = getcwd(here, sizeof here) ? strstr(text, here) : NULL;
    if (at)
        put_instead(text, at, strlen(here), "HERE");
    at = strstr(text, "> all ");
    size_t n = at ? strspn(at + 6, "0123456789") : 0;
    if (n > 0 && strncmp(at + 6 + n, " keys", 5) == 0)
        memset(at + 6, 'N', n);
}

/* "@click 6 10", "@up 6 10" and "@down 6 10", of the wheel: in that line and column. */
static void
point(struct tui_app *app, const char *text)
{
    static const struct {
        const char *word;
        int what;
    } all[] = {{"click", TUI_CLICK}, {"up", TUI_WHEEL_UP}, {"down", TUI_WHEEL_DOWN}};
    char word[8];
    struct tui_mouse m;
    if (sscanf(text, "@%7[a-z] %d %d", word, &m.y, &m.x) != 3)
        bail("no such thing to point at: %s", text);
    m.y--;
    m.x--;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].word, word) == 0) {
            m.what = all[i].what;
            tui_app_mouse(app, &m);
            return;
        }
    bail("nothing is done with a mouse so: %s", text);
}

static void
take_picture(struct tui_app *app, const char *keys, struct picture *out)
{
    const struct tui_dump dump = {.keys = *keys == '@' ? NULL : keys, .roles = true};
    char *text, *at, *rest;
    size_t n;
    bool has_roles = false;
    int y = 0;
    FILE *f = open_memstream(&text, &n);
    clock_s += 60;
    if (*keys == '@')
        point(app, keys);
    if (!f || tui_dump_screen(app, &dump, f) != ET_OK)
        bail("no picture: %s", et_error_get(cx)->message);
    fclose(f);
    memset(out, 0, sizeof *out);
    for (at = text; (rest = strchr(at, '\n')); at = rest + 1) {
        *rest = '\0';
        if (strcmp(at, "roles:") == 0)
            has_roles = true;
        else if (!has_roles) {
            snprintf(out->text[y], LINE, "%s", at);
            mask(out->text[y++]);
        } else
            snprintf(out->roles[strtol(at, NULL, 10) - 1], LINE, "%s", at + 4);
    }
    free(text);
}

/* What has changed in line Y: the columns from the first to the last that differ, and
 * what stands there NOW. */
static void
print_change(int y, const char *before, const char *now, FILE *out)
{
    int was = (int)strlen(before), n = (int)strlen(now), from = 0;
    int end = was > n ? was : n;
    while (from < end &&
           (from < was ? before[from] : ' ') == (from < n ? now[from] : ' '))
        from++;
    while (end > from &&
           (end <= was ? before[end - 1] : ' ') == (end <= n ? now[end - 1] : ' '))
        end--;
    if (from == end)
        return;
    fprintf(out, "%2d.%d-%d ", y + 1, from + 1, end);
    fprintf(out, "%.*s\n", from < n ? end - from : 0, from < n ? now + from : "");
}

/* The lines of NOW that are not as they were BEFORE. */
static void
print_changes(const struct picture *before, const struct picture *now, bool roles,
              FILE *out)
{
    for (int y = 0; y < ROWS; y++) {
        print_change(y, before->text[y], now->text[y], out);
        if (roles && strcmp(before->roles[y], now->roles[y]) != 0)
            fprintf(out, "%2d ~ %s\n", y + 1, now->roles[y]);
    }
}

/* ---- a walk ---- */

static bool
begins_step(const char *line)
{
    return strncmp(line, "= ", 2) == 0 || strncmp(line, "~ ", 2) == 0;
}

/* Compares the step's GOT with what stands in the file behind *AT, up to the next step,
 * and moves *AT there. */
static void
compare_step(const char *got, const char **at, const char *name)
{
    char want[ROWS * LINE];
    const char *from = *at;
    while (**at && !begins_step(*at))
        *at += strcspn(*at, "\n") + 1;
    snprintf(want, sizeof want, "%.*s", (int)(*at - from), from);
    is_str(got, want, "%s", name);
}

static void
take_step(struct tui_app *app, const char *line, const char **at,
          struct picture *before, FILE *all)
{
    static struct picture now;
    char keys[KEYS], name[LINE], *got;
    size_t n;
    const char *colon = strstr(line, ": ");
    if (!begins_step(line) || !colon || colon - line >= KEYS)
        bail("no step: %s", line);
    snprintf(keys, sizeof keys, "%.*s", (int)(colon - line - 2), line + 2);
    snprintf(name, sizeof name, "%s: %s", *keys ? keys : "at first", colon + 2);
    take_picture(app, keys, &now);
    FILE *f = open_memstream(&got, &n);
    if (!f)
        bail("no memory");
    print_changes(before, &now, line[0] == '~', f);
    fclose(f);
    fprintf(all, "%s\n%s", line, got);
    compare_step(got, at, name);
    *before = now;
    free(got);
}

static char *
read_file(const char *path)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = fopen(path, "r");
    if (!f || getdelim(&text, &n, '\0', f) < 0)
        bail("cannot read %s", path);
    fclose(f);
    return text;
}

static void
write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        bail("cannot write %s", path);
}

/* The walk of the file PATH, in an empty folder. */
static void
walk(const char *path)
{
    static struct picture before;
    char line[LINE], folder[] = "walk-XXXXXX";
    char *text = read_file(path), *written;
    struct tui_app *app = NULL;
    size_t n;
    FILE *all = open_memstream(&written, &n);
    memset(&before, 0, sizeof before);
    if (!all || !mkdtemp(folder) || chdir(folder) != 0)
        bail("no folder");
    for (const char *at = text; *at;) {
        snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
        at += strcspn(at, "\n") + 1;
        if (app) {
            take_step(app, line, &at, &before, all);
            continue;
        }
        fprintf(all, "%s\n", line);
        if (line[0] != '#')
            app = open_place(line);
    }
    tui_app_free(&app);
    fclose(all);
    if (chdir("..") != 0)
        bail("cannot leave");
    store_remove(folder);
    if (getenv("ETUDE_UPDATE"))
        write_file(path, written);
    free(written);
    free(text);
}

int
main(int argc, char **argv)
{
    static const char *const walks[] = {
        "runs",  "compare", "compose",      "compose-small", "faults", "broken",
        "begin", "monitor", "monitor-text", "logs",          "narrow", "keys",
        "mouse", "ends",    "data",         "none",          "charts", "wall",
    };
    char folder[] = "/tmp/etude-walks.XXXXXX", path[LINE];
    struct et_alloc_stats stats;
    struct eti_seams seams = eti_system;
    const char *src = getenv("ET_SRCDIR"), *build = getenv("ET_BUILDDIR");
    if (argc > 2)
        return be_command(argc, argv);
    if (!realpath(src ? src : ".", srcdir) || !realpath(build ? build : ".", builddir))
        bail("no sources");
    if (et_ctx_new(&cx) != ET_OK || !mkdtemp(folder) || chdir(folder) != 0)
        bail("no folder for files");
    setenv("XDG_STATE_HOME", folder, 1);
    setenv("TZ", "UTC", 1);
    seams.monotonic = tell_now;
    seams.wall = tell_day;
    eti_ctx_set_seams(cx, &seams);
    for (size_t i = 0; i < sizeof walks / sizeof *walks; i++) {
        snprintf(path, sizeof path, "%s/t/tui/walks/%s.txt", srcdir, walks[i]);
        if (argc < 2 || strcmp(argv[1], walks[i]) == 0)
            walk(path);
    }
    if (chdir("/") != 0)
        bail("cannot leave");
    store_remove(folder);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
