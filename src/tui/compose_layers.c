/* SPDX-License-Identifier: Apache-2.0 */
/* compose_layers.c: a network that a recipe spells out, layer by layer: a list of them
 * with the shape behind each, what can be done with one, layers to choose from, and the
 * options of one. What a change leads to is listed again, at the layer that changed. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/compose/layers.h"
#include "core/recipe/network.h"
#include "tui/compose.h"

enum { MOST_NAMES = 128, OPTIONS_WIDTH = 40 };

/* What is done with a layer. */
enum { BEFORE = 1, BEHIND, OPTIONS, UP, DOWN, OUT };

static const struct et_registry *
registry_of(const struct compose *c)
{
    const struct et_registry *r = c->setup.env ? c->setup.env->registry : NULL;
    return r ? r : et_registry_core();
}

static const struct et_component *
layer_of(const struct compose *c, const char *name)
{
    return et_registry_find(registry_of(c), ET_KIND_LAYER, name);
}

/* The line that was chosen. */
static const struct eti_layer_line *
chosen_line(const struct compose *c)
{
    const struct compose_layers *l = &c->layers;
    return l->at >= 0 && l->at < l->n ? &l->line[l->at] : NULL;
}

/* ---- shapes ---- */

void
compose_take_outline(struct compose *c)
{
    json_error_t error;
    json_t *all = json_loadb(c->outline.text, c->outline.n, 0, &error);
    json_decref(c->layers.shapes);
    c->layers.shapes = json_incref(json_object_get(all, "layers"));
    json_decref(all);
}

/* "16 x 28 x 28" behind LINE; "" where it is not known. Returns BUF. */
static const char *
shape_of(const struct compose *c, const struct eti_layer_line *line, char buf[64])
{
    const json_t *one, *size;
    size_t i, k, at = 0;
    *buf = '\0';
    if (!*line->module || c->layers.of != c->sketch->changes)
        return buf;
    json_array_foreach(c->layers.shapes, i, one)
    {
        if (strcmp(compose_fact(one, "path"), line->module) != 0)
            continue;
        json_array_foreach(json_object_get(one, "shape"), k, size)
        {
            if (at < 64)
                at += (size_t)snprintf(buf + at, 64 - at, "%s%lld", k ? " x " : "",
                                       (long long)json_integer_value(size));
        }
    }
    return buf;
}

/* Shapes, or why there are none, come while the list is open. */
static bool
renew(struct tui_app *app)
{
    struct compose *c = tui_app_state(app, TUI_IN_compose);
    struct tui_popup *p = &app->popup;
    p->n_lines = 0;
    if (c && c->numbers.of == c->sketch->changes && c->numbers.is_refused)
        tui_popup_line(p, "x %s", c->numbers.problem);
    for (int i = 0; c && i < p->n_items; i++) {
        int at = p->item[i].id - 1;
        char shape[64];
        if (at >= 0 && at < c->layers.n)
            snprintf(p->item[i].note, sizeof p->item[i].note, "%s",
                     shape_of(c, &c->layers.line[at], shape));
    }
    return c != NULL;
}

/* ---- the options of a layer ---- */

static void
done(struct compose *c, et_status status)
{
    char path[ETI_PATH_BYTES];
    snprintf(path, sizeof path, "%s", c->layers.path);
    if (status != ET_OK) {
        tui_say_error(c->app);
        return;
    }
    compose_refresh(c);
    if (c->sketch->errors.n > 0)
        tui_say(c->app, TUI_WARN, "! %s; u takes it back",
                c->sketch->errors.v[0].message);
    compose_pick_layers(c, path);
}

static void
set_options(struct tui_app *app, void *data, int id, const char *text)
{
    struct compose *c = data;
    const struct eti_layer_line *line = chosen_line(c);
    const bool has_braces = layer_of(c, c->layers.name) || c->layers.is_block;
    char value[TUI_FIELD + 4];
    (void)app;
    (void)id;
    snprintf(value, sizeof value, has_braces && *text ? "{%s}" : "%s", text);
    if (c->layers.is_new)
        done(c, eti_sketch_insert_layer(c->sketch, c->layers.list, c->layers.place,
                                        c->layers.name, value));
    else if (line && line->has_layers) /* repeat: how often */
        done(c, eti_sketch_set(c->sketch, c->layers.target, text));
    else if (line)
        done(c, eti_sketch_set_layer(c->sketch, line, *value ? value : "{}"));
}

static const char *
check_options(void *data, const char *text, char *buf)
{
    struct compose *c = data;
    const struct et_component *layer = layer_of(c, c->layers.name);
    char value[TUI_FIELD + 4];
    if (!layer)
        return NULL;
    snprintf(value, sizeof value, "{%s}", text);
    if (eti_layer_try(c->sketch->cx, layer, value) == ET_OK)
        return NULL;
    snprintf(buf, 160, "%.159s", et_error_get(c->sketch->cx)->message);
    et_error_clear(c->sketch->cx);
    return buf;
}

static bool
is_needed(const struct et_option *o)
{
    return o->flags & ET_OPT_REQUIRED;
}

/* The options of LAYER above what is asked, those that are needed first. */
static void
put_lines(struct tui_popup *p, const struct et_component *layer)
{
    for (int needed = 1; needed >= 0; needed--)
        for (const struct et_option *o = layer->options; o && o->name; o++)
            if (is_needed(o) == needed)
                tui_popup_line(p, "%-10s %s%s%s", o->name, o->help,
                               o->def ? "; else " : "; needed", o->def ? o->def : "");
}

/* Asks for what stands behind the name of a layer, which TEXT is at first. */
static void
ask(struct compose *c, const char *text)
{
    struct tui_popup *p = &c->app->popup;
    const struct et_component *layer = layer_of(c, c->layers.name);
    const struct eti_network_word *word = eti_network_word_find(c->layers.name);
    char title[128];
    snprintf(title, sizeof title, "%s: %s", c->layers.name,
             layer                ? "its options"
             : c->layers.is_block ? "the options of this block"
                                  : "what stands behind it");
    tui_popup_prompt(p, c->sketch->cx, title, text);
    if (layer)
        put_lines(p, layer);
    else if (word)
        tui_popup_line(p, "%s", word->help);
    p->done = set_options;
    p->check = check_options;
    p->data = c;
}

/* "out: , kernel: ": what is needed, to be filled in. */
static const char *
needed_text(const struct et_component *layer, char *buf, size_t size)
{
    size_t n = 0;
    *buf = '\0';
    for (const struct et_option *o = layer->options; o && o->name && n < size; o++)
        if (is_needed(o))
            n += (size_t)snprintf(buf + n, size - n, "%s%s: ", n ? ", " : "", o->name);
    return buf;
}

/* ---- a layer out of a list ---- */

static void
named(struct tui_app *app, void *data, int id, const char *unused)
{
    struct compose *c = data;
    char text[TUI_FIELD];
    const struct tui_item *item = NULL;
    const struct et_component *layer;
    (void)app;
    (void)unused;
    for (int i = 0; i < c->layers.n_names && !item; i++)
        item = c->layers.name_item[i].id == id ? &c->layers.name_item[i] : NULL;
    if (!item)
        return;
    snprintf(c->layers.name, sizeof c->layers.name, "%s", item->text);
    layer = layer_of(c, item->text);
    const struct eti_network_word *word = eti_network_word_find(item->text);
    c->layers.is_new = true;
    c->layers.is_block = !layer && !word && strcmp(item->text, "from") != 0;
    if (layer && !layer->options)
        set_options(app, c, 0, "");
    else if (layer)
        ask(c, needed_text(layer, text, sizeof text));
    else
        ask(c, word ? word->example : c->layers.is_block ? "" : "input");
}

static void
add_name(struct compose *c, const char *name, const char *note)
{
    struct compose_layers *l = &c->layers;
    if (l->n_names == MOST_NAMES)
        return;
    struct tui_item *item = &l->name_item[l->n_names++];
    *item = (struct tui_item){.id = l->n_names};
    snprintf(item->text, sizeof item->text, "%.79s", name);
    snprintf(item->note, sizeof item->note, "%.111s", note);
}

/* Offers layers, words, and the recipe's blocks, for the place that is chosen. */
static void
offer_names(struct compose *c)
{
    const struct et_registry *r = registry_of(c);
    const struct et_component *it;
    char title[96];
    void *block;
    c->layers.n_names = 0;
    et_free(c->sketch->cx, c->layers.name_item);
    c->layers.name_item = NULL;
    if (et_alloc(c->sketch->cx, MOST_NAMES * sizeof *c->layers.name_item, &block) !=
        ET_OK) {
        tui_say_error(c->app);
        return;
    }
    c->layers.name_item = block;
    for (int i = 0; i < c->layers.n; i++)
        if (!*c->layers.line[i].path)
            add_name(c, c->layers.line[i].name, "a block of this recipe");
    for (int i = 0; i < ETI_NETWORK_WORDS; i++)
        add_name(c, eti_network_words[i].name, eti_network_words[i].help);
    for (int i = 0; (it = r->get(r, ET_KIND_LAYER, i)) != NULL; i++)
        add_name(c, it->name, it->summary);
    snprintf(title, sizeof title, "%.50s.%d: type to search", c->layers.list,
             c->layers.place);
    if (tui_popup_menu(&c->app->popup, c->sketch->cx, title, c->layers.name_item,
                       c->layers.n_names) != ET_OK) {
        tui_say_error(c->app);
        return;
    }
    c->app->popup.filters = true;
    c->app->popup.done = named;
    c->app->popup.data = c;
}

/* ---- what is done with one ---- */

static void
insert(struct compose *c, const char *list, int place)
{
    snprintf(c->layers.list, sizeof c->layers.list, "%s", list);
    snprintf(c->layers.path, sizeof c->layers.path, "%.140s.%d", list, place);
    c->layers.place = place;
    offer_names(c);
}

static void
edit_options(struct compose *c, const struct eti_layer_line *line)
{
    c->layers.is_new = false;
    c->layers.is_block = !layer_of(c, line->name) &&
                         !eti_network_word_find(line->name) &&
                         strcmp(line->name, "from") != 0;
    snprintf(c->layers.name, sizeof c->layers.name, "%s", line->name);
    snprintf(c->layers.target, sizeof c->layers.target, "%.140s.repeat.times",
             line->path);
    ask(c, line->has_layers && strncmp(line->options, "times: ", 7) == 0
               ? line->options + 7
               : line->options);
}

static void
act_on(struct tui_app *app, void *data, int id, const char *text)
{
    struct compose *c = data;
    const struct eti_layer_line *line = chosen_line(c);
    (void)app;
    (void)text;
    if (!line)
        return;
    snprintf(c->layers.path, sizeof c->layers.path, "%s", line->path);
    if (id == BEFORE || id == BEHIND)
        insert(c, line->list, line->at + (id == BEHIND));
    else if (id == OPTIONS)
        edit_options(c, line);
    else if (id == UP || id == DOWN) {
        int by = id == UP ? -1 : 1;
        snprintf(c->layers.path, sizeof c->layers.path, "%.140s.%d", line->list,
                 line->at + by);
        done(c, eti_sketch_move_layer(c->sketch, line, by));
    } else if (id == OUT) {
        done(c, eti_sketch_remove_layer(c->sketch, line));
    }
}

/* Has LINE something behind its name that can be typed? */
static bool
has_options(const struct compose *c, const struct eti_layer_line *line)
{
    const struct et_component *layer = layer_of(c, line->name);
    return layer              ? layer->options != NULL
           : line->has_layers ? strcmp(line->name, "repeat") == 0
                              : true;
}

static void
offer_acts(struct compose *c, const struct eti_layer_line *line)
{
    struct tui_item item[] = {
        {.id = OPTIONS, .key = 'e', .text = "its options"},
        {.id = BEHIND, .key = 'a', .text = "a layer behind it"},
        {.id = BEFORE, .key = 'i', .text = "a layer before it"},
        {.id = UP, .key = '[', .text = "move it up"},
        {.id = DOWN, .key = ']', .text = "move it down"},
        {.id = OUT, .key = 'd', .text = "take it out"},
    };
    const int n = sizeof item / sizeof *item;
    const struct et_component *layer = layer_of(c, line->name);
    char title[128], shape[64];
    if (!has_options(c, line))
        snprintf(item[0].why, sizeof item[0].why, "it has none");
    if (line->at == 0)
        snprintf(item[3].why, sizeof item[3].why, "it is the first");
    if (line->at + 1 == line->n)
        snprintf(item[4].why, sizeof item[4].why, "it is the last");
    if (line->n == 1)
        snprintf(item[5].why, sizeof item[5].why, "a list has one layer at least");
    snprintf(title, sizeof title, "%.70s.%.40s", line->path, line->name);
    if (tui_popup_menu(&c->app->popup, c->sketch->cx, title, item, n) != ET_OK) {
        tui_say_error(c->app);
        return;
    }
    if (layer)
        tui_popup_line(&c->app->popup, "%s", layer->summary);
    if (*line->options)
        tui_popup_line(&c->app->popup, "%s", line->options);
    if (*shape_of(c, line, shape))
        tui_popup_line(&c->app->popup, "gives %s", shape);
    c->app->popup.done = act_on;
    c->app->popup.data = c;
}

/* ---- the list ---- */

static void
opened(struct tui_app *app, void *data, int id, const char *text)
{
    struct compose *c = data;
    (void)app;
    (void)text;
    c->layers.at = id - 1;
    const struct eti_layer_line *line = chosen_line(c);
    if (line && *line->path)
        offer_acts(c, line);
}

static void
fill_item(const struct compose *c, int i, struct tui_item *item)
{
    const struct eti_layer_line *line = &c->layers.line[i];
    char shape[64], options[OPTIONS_WIDTH + 8];
    *item = (struct tui_item){.id = i + 1, .is_heading = !*line->path};
    if (item->is_heading) {
        snprintf(item->text, sizeof item->text, "the block %s", line->name);
        return;
    }
    const bool is_long = strlen(line->options) > OPTIONS_WIDTH;
    snprintf(options, sizeof options, "%.*s%s", OPTIONS_WIDTH - (is_long ? 2 : 0),
             line->options, is_long ? ".." : "");
    const size_t n = strlen(line->list), way = strlen(".shortcut");
    const bool is_way = n > way && strcmp(line->list + n - way, ".shortcut") == 0;
    const int indent = line->depth < 12 ? 2 * line->depth : 24;
    if (snprintf(item->text, sizeof item->text, "%*s%s%d %s%s%s%s%s", indent, "",
                 is_way ? "shortcut " : "", line->at, line->name, *options ? "  " : "",
                 options, *line->as ? "  as " : "", line->as) < 0)
        *item->text = '\0';
    snprintf(item->note, sizeof item->note, "%s", shape_of(c, line, shape));
}

bool
compose_pick_layers(struct compose *c, const char *path)
{
    struct compose_layers *l = &c->layers;
    struct et_ctx *cx = c->sketch->cx;
    void *lines = NULL, *items = NULL;
    int here = 0;
    et_free(cx, l->line);
    l->line = NULL;
    l->n = 0;
    et_status status = et_alloc(cx, ETI_LAYER_LINES * sizeof *l->line, &lines);
    l->line = lines;
    if (status == ET_OK)
        l->n = eti_layer_lines(c->sketch, l->line, ETI_LAYER_LINES);
    if (status == ET_OK && l->n == 0)
        return false;
    if (status == ET_OK)
        status = et_alloc(cx, (size_t)l->n * sizeof(struct tui_item), &items);
    struct tui_item *item = items;
    for (int i = 0; item && i < l->n; i++) {
        fill_item(c, i, &item[i]);
        if (path && strcmp(l->line[i].path, path) == 0)
            here = i;
    }
    if (status == ET_OK)
        status = tui_popup_menu(&c->app->popup, cx,
                                "model.layers, and what each gives: enter changes one",
                                item, l->n);
    et_free(cx, items);
    if (status != ET_OK) {
        tui_say_error(c->app);
        return true;
    }
    c->app->popup.list.at = here;
    c->app->popup.done = opened;
    c->app->popup.renew = renew;
    c->app->popup.data = c;
    return true;
}

void
compose_forget_layers(struct compose *c)
{
    et_free(c->app->cx, c->layers.line);
    et_free(c->app->cx, c->layers.name_item);
    json_decref(c->layers.shapes);
    c->layers = (struct compose_layers){0};
}
