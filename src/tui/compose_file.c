/* SPDX-License-Identifier: Apache-2.0 */
/* compose_file.c: the screen Compose and files: saving, where a recipe may begin, the
 * command line. */
#include "config.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/compose/command.h"
#include "core/library/index.h"
#include "core/library/list.h"
#include "core/recipe/beside.h"
#include "tui/compose.h"
#include "tui/format.h"

/* ---- saving ---- */

static void
saved(struct compose *c, const char *with)
{
    const enum tui_action then = c->then;
    c->then = TUI_DO_nothing;
    tui_say(c->app, TUI_GOOD, "saved: %s%s%s", c->sketch->path, *with ? ", with " : "",
            with);
    compose_list_changes(c); /* the text is as it was: the file is not */
    compose_refresh(c);
    if (then == TUI_DO_compose_another)
        compose_begin_wanted(c);
    else
        tui_app_act(c->app, then);
}

static void
refused(struct tui_app *app, void *data, int id, const char *text)
{
    struct compose *c = data;
    (void)text;
    if (id == 1) {
        if (eti_sketch_save(c->sketch, *c->path ? c->path : NULL, true) == ET_OK)
            saved(c, "");
        else
            tui_say_error(app);
    } else if (id == 2) {
        if (tui_compose_open(app, c->sketch->path) != ET_OK)
            tui_say_error(app);
    } else {
        compose_save_as(c);
    }
}

/* Another program's text stands there: what now? */
static void
ask(struct compose *c, bool is_other)
{
    struct tui_item items[3] = {
        {.id = 3, .key = 'W', .text = "save under another name"},
        {.id = 1, .key = 'o', .text = "write over it"},
        {.id = 2, .key = 'r', .text = "read it again, and lose what is here"},
    };
    char why[160];
    snprintf(why, sizeof why, "%.150s.", et_error_get(c->sketch->cx)->message);
    et_error_clear(c->sketch->cx);
    if (tui_popup_menu(&c->app->popup, c->sketch->cx, "save", items,
                       is_other ? 2 : 3) != ET_OK) {
        tui_say_error(c->app);
        return;
    }
    tui_popup_line(&c->app->popup, "%s", why);
    c->app->popup.done = refused;
    c->app->popup.data = c;
}

static bool
is_installed(const struct compose *c, const char *path)
{
    return c->setup.is_installed && c->setup.is_installed(path);
}

bool
compose_is_ours(const struct compose *c)
{
    const char *path = c->sketch->path;
    return path && access(path, W_OK) == 0 && !is_installed(c, path);
}

/* The folder of PATH. */
static void
folder_of(const char *path, char folder[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    snprintf(folder, PATH_MAX, "%.*s", slash && slash > path ? (int)(slash - path) : 1,
             slash ? path : ".");
}

/* Copies FILES, but for the recipe, into FOLDER. WITH gets the names of those that were
 * not there. */
static et_status
bring(struct compose *c, const struct eti_beside *files, const char *folder,
      char with[160])
{
    char target[PATH_MAX];
    size_t used = 0;
    for (int i = 1; i < files->n; i++) {
        ET_TRY(eti_beside_copy(c->sketch->cx, files, i, folder, target));
        if (*target && used + 2 < 160)
            used += (size_t)snprintf(with + used, 160 - used, "%s%s", used ? ", " : "",
                                     files->name[i]);
    }
    return ET_OK;
}

/* Saves at PATH, in another folder than the recipe's: what it includes goes along. */
static et_status
save_elsewhere(struct compose *c, const char *path, char with[160])
{
    char folder[PATH_MAX];
    void *block;
    ET_TRY(et_alloc(c->sketch->cx, sizeof(struct eti_beside), &block));
    struct eti_beside *files = block;
    eti_beside_find(c->sketch->path, files);
    folder_of(path, folder);
    et_status status = eti_beside_check(c->sketch->cx, files, 1, folder);
    if (status == ET_OK)
        status = eti_sketch_save(c->sketch, path, false);
    if (status == ET_OK)
        status = bring(c, files, folder, with);
    et_free(c->sketch->cx, files);
    return status;
}

static bool
is_elsewhere(const struct compose *c, const char *path)
{
    char own[PATH_MAX], other[PATH_MAX];
    struct stat a, b;
    if (!path || !c->sketch->path)
        return false;
    folder_of(c->sketch->path, own);
    folder_of(path, other);
    return stat(own, &a) == 0 && stat(other, &b) == 0 &&
           (a.st_dev != b.st_dev || a.st_ino != b.st_ino);
}

static void
save_to(struct compose *c, const char *path)
{
    char with[160] = "";
    if (path && is_installed(c, path)) {
        tui_say(c->app, TUI_BAD,
                "x installed recipes stay as they are: save it in another folder");
        return;
    }
    et_status status = is_elsewhere(c, path) ? save_elsewhere(c, path, with)
                                             : eti_sketch_save(c->sketch, path, false);
    snprintf(c->path, sizeof c->path, "%s", path ? path : "");
    if (status == ET_OK)
        saved(c, with);
    else if (status == ET_ECANCELED)
        ask(c, path != NULL);
    else
        tui_say_error(c->app);
}

static void
named(struct tui_app *app, void *data, int id, const char *text)
{
    struct compose *c = data;
    (void)app;
    (void)id;
    if (*text)
        save_to(c, text);
}

void
compose_save_as(struct compose *c)
{
    const struct eti_sketch *s = c->sketch;
    char name[PATH_MAX];
    /* An installed recipe is not for writing: its copy is in this folder. */
    bool is_ours = compose_is_ours(c);
    const char *base = s->path ? strrchr(s->path, '/') : NULL;
    snprintf(name, sizeof name, "%s",
             is_ours   ? s->path
             : base    ? base + 1
             : s->path ? s->path
                       : "recipe.yaml");
    tui_popup_prompt(&c->app->popup, s->cx, "save as", name);
    if (s->path && is_installed(c, s->path))
        tui_popup_line(&c->app->popup, "Installed recipes stay as they are; this is "
                                       "your copy, in the working directory.");
    c->app->popup.done = named;
    c->app->popup.data = c;
}

void
compose_save(struct compose *c)
{
    if (!compose_is_ours(c))
        compose_save_as(c);
    else if (!eti_sketch_is_changed(c->sketch))
        tui_say(c->app, TUI_TEXT, "nothing has changed since it was saved");
    else
        save_to(c, NULL);
}

void
compose_save_then(struct compose *c, enum tui_action then)
{
    c->then = then;
    compose_save(c);
}

static void
reload(struct tui_app *app, void *data, int id, const char *text)
{
    struct compose *c = data;
    (void)text;
    if (id != 1)
        return;
    if (tui_compose_open(app, c->sketch->path) != ET_OK)
        tui_say_error(app);
    else
        tui_say(app, TUI_TEXT, "%.200s was read again", c->sketch->path);
}

void
compose_reload(struct compose *c)
{
    static const struct tui_item items[] = {
        {.id = 2, .key = 'n', .text = "stay"},
        {.id = 1, .key = 'r', .text = "read the file again, and lose the changes"},
    };
    if (!c->sketch->path) {
        tui_say(c->app, TUI_TEXT, "there is no file to read again: W saves as one");
        return;
    }
    if (!eti_sketch_is_changed(c->sketch)) {
        reload(c->app, c, 1, NULL);
        return;
    }
    if (tui_popup_menu(&c->app->popup, c->sketch->cx, "reload", items, 2) != ET_OK) {
        tui_say_error(c->app);
        return;
    }
    c->app->popup.done = reload;
    c->app->popup.data = c;
}

/* ---- the command line ---- */

void
compose_copy(struct compose *c)
{
    struct eti_command command;
    char *text = NULL;
    et_status status = eti_command_new(c->sketch, &command);
    if (status == ET_OK)
        status = eti_command_text(&command, "train", &text);
    if (status == ET_OK)
        tui_copy(c->app, text);
    else
        tui_say_error(c->app);
    et_free(c->sketch->cx, text);
    eti_command_release(&command);
}

/* ---- where to begin ---- */

static void
begin(struct compose *c, const char *path)
{
    if (tui_compose_open(c->app, path) != ET_OK)
        tui_say_error(c->app);
}

static void
installed(struct tui_app *app, void *data, int id, const char *text)
{
    struct compose *c = data;
    const json_t *one = json_array_get(c->setup.installed, (size_t)id - 1);
    (void)app;
    (void)text;
    begin(c, json_string_value(json_object_get(one, "path")));
}

/* The recipe that any machine can run; where it is not installed, all that are. */
/* As many words of TEXT as OUT has room for. */
static void
shorten(const char *text, char *out, size_t size)
{
    size_t n = strlen(text);
    snprintf(out, size, "%s", text);
    if (n < size)
        return;
    for (n = size - 3; n > 0 && text[n] != ' ';)
        n--;
    snprintf(out + n, size - n, "..");
}

void
compose_start_first(struct compose *c)
{
    json_t *one;
    size_t i;
    json_array_foreach(c->setup.installed, i,
                       one) if (strcmp(json_string_value(json_object_get(one, "name")),
                                       "first_minute") == 0)
    {
        begin(c, json_string_value(json_object_get(one, "path")));
        tui_say(c->app, TUI_TEXT, "L launches it; all of this may be changed first");
        return;
    }
    compose_start_installed(c);
}

void
compose_start_installed(struct compose *c)
{
    enum { MOST = 64 };
    struct tui_item item[MOST];
    int n = 0;
    size_t i;
    json_t *one;
    json_array_foreach(c->setup.installed, i, one)
    {
        if (n == MOST)
            break;
        item[n] = (struct tui_item){.id = (int)i + 1};
        snprintf(item[n].text, sizeof item[n].text, "%s",
                 json_string_value(json_object_get(one, "name")));
        shorten(json_string_value(json_object_get(one, "title")), item[n].note,
                sizeof item[n].note);
        n++;
    }
    if (n == 0) {
        tui_say(c->app, TUI_WARN, "! no recipe is installed: b begins a blank one");
    } else if (tui_popup_menu(&c->app->popup, c->sketch->cx,
                              "installed recipes: type to search", item, n) != ET_OK) {
        tui_say_error(c->app);
    } else {
        c->app->popup.filters = true;
        c->app->popup.done = installed;
        c->app->popup.data = c;
    }
}

const char *
compose_folder(const struct compose *c)
{
    return c->runs ? c->runs : "runs";
}

et_status
compose_list_runs(struct compose *c, const char *recipe, json_t **out)
{
    struct eti_index *index;
    *out = NULL;
    et_status status = eti_index_open(c->sketch->cx, NULL, &index);
    if (status == ET_OK)
        status = eti_index_look(index, compose_folder(c), false);
    if (status == ET_OK)
        status = recipe ? eti_index_of_recipe(index, recipe, ETI_INDEX_PAGE, out)
                        : eti_index_list(index, ETI_INDEX_PAGE, out);
    eti_index_close(&index);
    return status;
}

const char *
compose_fact(const json_t *facts, const char *key)
{
    const char *text = json_string_value(json_object_get(facts, key));
    return text ? text : "";
}

/* Where the relative paths of a run's recipe began: the run keeps its text, and with
 * all values resolved, of which one is put before the text's. */
static et_status
find_place(struct compose *c, const json_t *facts)
{
    struct eti_form form;
    char place[PATH_MAX] = "";
    et_status status = ET_OK;
    if (!c->sketch->recipe)
        return ET_OK;
    ET_TRY(eti_form_of_recipe(c->sketch->cx, c->sketch->recipe, &form));
    for (int i = 0; i < form.n && !*place; i++) {
        const struct eti_form_row *r = &form.row[i];
        const char *was = json_string_value(
            json_object_get(json_object_get(facts, "config"), r->path));
        size_t n = strlen(r->value), all = was ? strlen(was) : 0;
        bool is_path = r->row->type == ET_OPT_PATH && r->is_set && *r->value != '/';
        if (is_path && all > n + 1 && was[all - n - 1] == '/' &&
            strcmp(was + all - n, r->value) == 0)
            snprintf(place, sizeof place, "%.*s/recipe.yaml", (int)(all - n - 1), was);
    }
    if (*place)
        status = eti_sketch_put_place(c->sketch, place);
    eti_form_release(&form);
    return status;
}

et_status
tui_compose_from_run(struct tui_app *app, const json_t *facts)
{
    struct compose *c = tui_app_state(app, TUI_IN_compose);
    struct eti_sketch *other = NULL;
    char path[PATH_MAX], name[128];
    if (!c)
        return ET_EINVAL;
    snprintf(path, sizeof path, "%.4000s/recipe.yaml",
             compose_fact(facts, "directory"));
    snprintf(name, sizeof name, "recipe of %.100s", compose_fact(facts, "name"));
    ET_TRY(eti_sketch_new(app->cx, c->setup.env, &other));
    et_status status = eti_sketch_open(other, path);
    if (status == ET_OK)
        status = eti_sketch_begin(c->sketch, other->text, other->n, name);
    eti_sketch_free(&other);
    if (status == ET_OK)
        status = find_place(c, facts);
    if (status == ET_OK)
        compose_begun(c);
    return status;
}

static void
from_run(struct tui_app *app, void *data, int id, const char *text)
{
    struct compose *c = data;
    json_t *list;
    (void)text;
    if (compose_list_runs(c, NULL, &list) != ET_OK ||
        tui_compose_from_run(app, json_array_get(list, (size_t)id - 1)) != ET_OK)
        tui_say_error(app);
    json_decref(list);
}

void
compose_start_run(struct compose *c)
{
    struct tui_item item[ETI_INDEX_PAGE];
    json_t *list, *one;
    size_t i;
    int n = 0;
    if (compose_list_runs(c, NULL, &list) != ET_OK) {
        tui_say_error(c->app);
        return;
    }
    json_array_foreach(list, i, one)
    {
        item[n] = (struct tui_item){.id = (int)i + 1};
        snprintf(item[n].text, sizeof item[n].text, "%s", compose_fact(one, "name"));
        snprintf(item[n].note, sizeof item[n].note, "%s %s",
                 compose_fact(one, "recipe"), compose_fact(one, "state"));
        n++;
    }
    json_decref(list);
    if (n == 0) {
        tui_say(c->app, TUI_WARN, "! there is no run yet: a shows installed recipes");
    } else if (tui_popup_menu(&c->app->popup, c->sketch->cx,
                              "the recipe of a run: type to search", item,
                              n) != ET_OK) {
        tui_say_error(c->app);
    } else {
        c->app->popup.filters = true;
        c->app->popup.done = from_run;
        c->app->popup.data = c;
    }
}

static void
blank(struct tui_app *app, void *data, int id, const char *text)
{
    static const char vision[] = "# Images: what is trained, on what, and how.\n"
                                 "max_duration: 2ep\n"
                                 "model:\n  name: resnet8\n"
                                 "train_data:\n  name: synthetic_images\n"
                                 "  type: separable\n  batch_size: 64\n"
                                 "eval_data:\n  name: synthetic_images\n"
                                 "  type: separable\n"
                                 "optimizer:\n  name: decoupled_sgdw\n  lr: 0.1\n"
                                 "algorithms:\n";
    static const char language[] = "# Text: what is trained, on what, and how.\n"
                                   "max_duration: 200ba\n"
                                   "model:\n  name: gpt2\n  n_layers: 2\n"
                                   "  d_model: 64\n  n_heads: 2\n  max_seq_len: 64\n"
                                   "  vocab_size: 256\n"
                                   "train_data:\n  name: bible_kjv\n  seq_len: 64\n"
                                   "  batch_size: 16\n"
                                   "eval_data:\n  name: bible_kjv\n  seq_len: 64\n"
                                   "  subset_num_batches: 10\n"
                                   "optimizer:\n  name: decoupled_adamw\n  lr: 1.0e-3\n"
                                   "algorithms:\n";
    struct compose *c = data;
    const char *what = id == 1 ? vision : language;
    (void)text;
    if (eti_sketch_begin(c->sketch, what, strlen(what), "new recipe") != ET_OK)
        tui_say_error(app);
    else
        compose_begun(c);
}

void
compose_start_blank(struct compose *c)
{
    static const struct tui_item items[] = {
        {.id = 1, .key = 'i', .text = "images", .note = "a small residual net"},
        {.id = 2, .key = 't', .text = "text", .note = "a small transformer"},
    };
    if (tui_popup_menu(&c->app->popup, c->sketch->cx, "a new recipe, of", items, 2) !=
        ET_OK) {
        tui_say_error(c->app);
        return;
    }
    c->app->popup.done = blank;
    c->app->popup.data = c;
}
