/* SPDX-License-Identifier: Apache-2.0 */
/* yaml.c: text to values: libfyaml's events, our limits.
 *
 * Cost is linear in the text plus the expanded nodes: aliases are copies that count
 * against the node budget, duplicate keys are found through a hash. The first fault of
 * syntax or limits ends the reading; duplicate keys are all reported. */
#include "config.h"

#include "core/recipe/value.h"

#include <libfyaml.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "core/recipe/yaml_text.h"

const struct eti_yaml_limits eti_yaml_limits = {
    .bytes = 256 << 10,
    .depth = 16,
    .aliases = 64,
    .nodes = 10000,
};

struct anchor {
    struct anchor *next; /* the one before it in the text */
    const char *name;
    const struct et_value *value;
    bool is_open; /* its end has not been read: an alias to it would be a cycle */
};

struct reader {
    struct eti_arena *arena;
    const struct eti_source *source;
    const struct eti_yaml_limits *limits;
    struct et_diagnostics *errors;
    struct fy_parser *parser;
    struct anchor *anchors; /* the latest first */
    int aliases, nodes;     /* so far */
    int depth;
    const struct et_value *unclosed; /* the innermost [ or { the text ended in */
    bool is_stopped; /* memory is out, or an error that leaves no tree */
    et_status status;
};

static void *
out_of_memory(struct reader *r)
{
    r->status = ET_ENOMEM;
    r->is_stopped = true;
    return NULL;
}

/* ---- errors ---- */

static void
stop_at(struct reader *r, int code, const struct fy_mark *mark, const char *what,
        const char *name)
{
    struct et_place at = {
        .file = r->source->origin <= ETI_ORIGIN_RECIPE ? r->source->name : NULL,
        .line = mark ? mark->line + 1 : 1,
        .column = mark ? mark->column + 1 : 1,
        .order = r->source->order,
    };
    if (!r->is_stopped)
        et_diagnostics_add(r->errors, code, &at, NULL, NULL, "%s%s", what, name);
    r->is_stopped = true;
}

static int
count_lines(const char *text, size_t n)
{
    int lines = n > 0 && text[n - 1] != '\n';
    for (size_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    return lines;
}

/* libfyaml's first error is the one that counts, in its own words; but a bracket that
 * is missing at the end is one where it was opened. */
static void
report_syntax(struct reader *r, struct fy_diag *diag, const char *text, size_t n)
{
    void *iterator = NULL;
    const struct fy_diag_error *e = fy_diag_errors_iterate(diag, &iterator);
    const char *message = e && e->msg ? e->msg : "not YAML";
    struct fy_mark mark = {
        .line = e && e->line > 0 ? e->line - 1 : 0,
        .column = e && e->column > 0 ? e->column - 1 : 0,
    };
    if (r->unclosed && mark.line >= count_lines(text, n)) {
        mark.line = r->unclosed->line - 1;
        mark.column = r->unclosed->column - 1;
        message = r->unclosed->type == ET_VALUE_MAP ? "mapping not closed"
                                                    : "list not closed";
    }
    stop_at(r, ET_E_SYNTAX, &mark, message, "");
}

static void
discard(struct fy_diag *diag, void *user, const char *text, size_t n)
{
    (void)diag, (void)user, (void)text, (void)n;
}

/* ---- nodes ---- */

static const char *
copy_token(struct reader *r, struct fy_token *token)
{
    size_t n = 0;
    const char *text = token ? fy_token_get_text(token, &n) : "";
    const char *copy = eti_arena_text(r->arena, text ? text : "", text ? n : 0);
    return copy ? copy : out_of_memory(r);
}

static void
stop_at_nodes(struct reader *r, const struct fy_mark *mark)
{
    char what[80];
    int most = r->limits->nodes;
    snprintf(what, sizeof what, "%s more than %.*d%s%0*d nodes",
             r->aliases ? "aliases expand to" : "the text has", most < 1000 ? 0 : 1,
             most / 1000, most < 1000 ? "" : ",", most < 1000 ? 1 : 3, most % 1000);
    stop_at(r, ET_E_LIMIT, mark, what, "");
}

/* Where EVENT's bytes begin; NULL: it has none, as the value of "key:". (libfyaml 0.7
 * gives such a value no mark, 0.8 one behind the colon. Marks of quoted texts lie
 * inside the quotes.) */
static const struct fy_mark *
start_of(struct fy_event *event)
{
    const struct fy_mark *start = fy_event_start_mark(event),
                         *end = fy_event_end_mark(event);
    bool is_empty = event->type == FYET_SCALAR && start && end &&
                    start->input_pos == end->input_pos &&
                    fy_scalar_token_get_style(event->scalar.value) == FYSS_PLAIN;
    return is_empty ? NULL : start;
}

/* A new value at EVENT, counted; NULL when reading must stop. */
static struct et_value *
new_value(struct reader *r, struct fy_event *event, enum et_value_type type)
{
    const struct fy_mark *start = start_of(event), *end = fy_event_end_mark(event);
    if (++r->nodes > r->limits->nodes) {
        stop_at_nodes(r, fy_event_start_mark(event));
        return NULL;
    }
    struct et_value *v = eti_value_new(r->arena, type, r->source, NULL);
    if (!v)
        return out_of_memory(r);
    v->line = start ? start->line + 1 : 0; /* 0: nothing was written */
    v->column = start ? start->column + 1 : 0;
    v->start = start ? start->input_pos : 0;
    v->end = end ? end->input_pos : v->start;
    return v;
}

/* Checks the tag of a node: only those of the core schema, and only where they hold. */
static void
check_tag(struct reader *r, struct fy_event *event, struct et_value *v)
{
    static const struct {
        const char *tag;
        enum et_value_type type;
    } core[] = {
        {"!!null", ET_VALUE_NULL},  {"!!bool", ET_VALUE_BOOL},
        {"!!int", ET_VALUE_INT},    {"!!float", ET_VALUE_FLOAT},
        {"!!str", ET_VALUE_STRING}, {"!!seq", ET_VALUE_LIST},
        {"!!map", ET_VALUE_MAP},
    };
    struct fy_token *token = fy_event_get_tag_token(event);
    if (!token)
        return;
    const char *handle = fy_tag_token_handle0(token),
               *suffix = fy_tag_token_suffix0(token);
    static const char prefix[] = "tag:yaml.org,2002:";
    char tag[128];
    if (suffix && (!handle || !*handle) &&
        strncmp(suffix, prefix, sizeof prefix - 1) == 0)
        snprintf(tag, sizeof tag, "!!%s", suffix + sizeof prefix - 1);
    else
        snprintf(tag, sizeof tag, "%s%s", handle ? handle : "", suffix ? suffix : "");
    bool is_float = v->type == ET_VALUE_INT && strcmp(tag, "!!float") == 0;
    if (is_float) {
        v->f = (double)v->i;
        v->type = ET_VALUE_FLOAT;
    }
    if (strcmp(tag, "!") == 0)
        return;
    for (size_t i = 0; i < sizeof core / sizeof core[0]; i++)
        if (strcmp(core[i].tag, tag) == 0 && core[i].type == v->type)
            return;
    char what[160];
    snprintf(what, sizeof what, "tag %s not allowed", tag);
    stop_at(r, ET_E_TAG, fy_token_start_mark(token), what, "");
}

static struct anchor *
add_anchor(struct reader *r, struct fy_event *event, const struct et_value *v)
{
    struct fy_token *token = fy_event_get_anchor_token(event);
    if (!token || !v)
        return NULL;
    struct anchor *a = eti_arena_alloc(r->arena, sizeof *a);
    if (!a || !(a->name = copy_token(r, token)))
        return out_of_memory(r);
    a->next = r->anchors;
    a->value = v;
    r->anchors = a;
    return a;
}

static struct et_value *
read_alias(struct reader *r, struct fy_event *event)
{
    const struct fy_mark *start = fy_event_start_mark(event),
                         *end = fy_event_end_mark(event);
    struct fy_mark mark =
        start ? *start : (struct fy_mark){.input_pos = 1, .column = 1};
    mark.column--; /* libfyaml's mark leaves the star out */
    mark.input_pos--;
    const char *name = copy_token(r, event->alias.anchor);
    if (!name)
        return NULL;
    if (++r->aliases > r->limits->aliases) {
        char what[64];
        snprintf(what, sizeof what, "more than %d aliases", r->limits->aliases);
        stop_at(r, ET_E_LIMIT, &mark, what, "");
        return NULL;
    }
    const struct anchor *a = r->anchors;
    while (a && strcmp(a->name, name) != 0)
        a = a->next;
    if (!a) {
        stop_at(r, ET_E_SYNTAX, &mark, "no anchor before this alias is called ", name);
        return NULL;
    }
    if (a->is_open) {
        stop_at(r, ET_E_SYNTAX, &mark, "alias to a node that contains it: ", name);
        return NULL;
    }
    int budget = r->limits->nodes - r->nodes;
    struct et_value *v = eti_value_copy(r->arena, a->value, &budget);
    if (!v)
        return out_of_memory(r);
    r->nodes = r->limits->nodes - budget;
    if (budget < 0) {
        stop_at_nodes(r, &mark);
        return NULL;
    }
    /* The copy lies where the alias does; its children where they were written. */
    v->line = mark.line + 1;
    v->column = mark.column + 1;
    v->start = mark.input_pos;
    v->end = end ? end->input_pos : mark.input_pos;
    return v;
}

static struct et_value *
read_scalar(struct reader *r, struct fy_event *event)
{
    struct et_value *v = new_value(r, event, ET_VALUE_STRING);
    if (!v || !(v->text = copy_token(r, event->scalar.value)))
        return NULL;
    struct fy_token *tag = fy_event_get_tag_token(event);
    const char *suffix = tag ? fy_tag_token_suffix0(tag) : NULL;
    enum fy_scalar_style style = fy_scalar_token_get_style(event->scalar.value);
    if (style == FYSS_SINGLE_QUOTED || style == FYSS_DOUBLE_QUOTED) {
        v->column--; /* the marks lie inside the quotes */
        v->start--;
        v->end++;
    }
    bool is_text = suffix && (strcmp(suffix, "str") == 0 || !*suffix ||
                              strcmp(suffix, "tag:yaml.org,2002:str") == 0);
    v->is_quoted = is_text || (event->scalar.value && style != FYSS_PLAIN);
    if (!v->is_quoted)
        eti_value_resolve_plain(v);
    check_tag(r, event, v);
    add_anchor(r, event, v);
    return v;
}

/* ---- mappings ---- */

/* Reports the keys of MAP that occur twice: an open hash of the children so far. */
static void
check_duplicates(struct reader *r, const struct et_value *map)
{
    size_t size = 8;
    while (size < 2 * (size_t)map->n)
        size *= 2;
    const struct et_value **slots = eti_arena_alloc(r->arena, size * sizeof *slots);
    if (!slots) {
        out_of_memory(r);
        return;
    }
    for (const struct et_value *c = map->first; c; c = c->next) {
        size_t i = XXH3_64bits(c->key, strlen(c->key)) & (size - 1);
        while (slots[i] && strcmp(slots[i]->key, c->key) != 0)
            i = (i + 1) & (size - 1);
        if (!slots[i]) {
            slots[i] = c;
            continue;
        }
        struct et_place at = eti_value_key_place(c);
        et_diagnostics_add(r->errors, ET_E_DUPLICATE, &at, NULL, NULL,
                           "key '%s' already set at %d:%d", c->key, slots[i]->key_line,
                           slots[i]->key_column);
    }
}

/* Takes the children of FROM whose keys MAP does not have. */
static void
merge_missing(struct et_value *map, struct et_value *from)
{
    for (struct et_value *c = from->first, *next; c; c = next) {
        next = c->next;
        if (!eti_value_get(map, c->key))
            eti_value_append(map, c->key, c);
    }
}

/* `<<: *base` and `<<: [*a, *b]`: keys that are set here win, then the earlier
 * mapping. */
static void
apply_merges(struct reader *r, struct et_value *map)
{
    for (struct et_value *c = map->first, *next; c && !r->is_stopped; c = next) {
        next = c->next;
        if (strcmp(c->key, "<<") != 0)
            continue;
        eti_value_remove(map, c);
        bool fits = c->type == ET_VALUE_MAP || c->type == ET_VALUE_LIST;
        for (struct et_value *m = c->type == ET_VALUE_LIST ? c->first : NULL; m;
             m = m->next)
            fits &= m->type == ET_VALUE_MAP;
        if (!fits) {
            struct fy_mark mark = {.line = c->line - 1, .column = c->column - 1};
            stop_at(r, ET_E_SYNTAX, &mark, "<< takes a mapping or a list of mappings",
                    "");
        } else if (c->type == ET_VALUE_MAP) {
            merge_missing(map, c);
        } else {
            for (struct et_value *m = c->first; m; m = m->next)
                merge_missing(map, m);
        }
    }
}

static struct et_value *read_node(struct reader *r, struct fy_event *event);

/* The next event, which the caller frees; NULL when reading must stop. */
static struct fy_event *
next_event(struct reader *r)
{
    return r->is_stopped ? NULL : fy_parser_parse(r->parser);
}

/* Reads the key EVENT begins: text only. Sets its place in KEY. */
static bool
read_key(struct reader *r, struct fy_event *event, struct et_value *key)
{
    const struct fy_mark *mark = fy_event_start_mark(event);
    if (event->type != FYET_SCALAR) {
        stop_at(r, ET_E_SYNTAX, mark, "a key must be text", "");
        return false;
    }
    if (++r->nodes > r->limits->nodes) {
        stop_at_nodes(r, mark);
        return false;
    }
    key->key = copy_token(r, event->scalar.value);
    key->key_line = mark ? mark->line + 1 : 1;
    key->key_column = mark ? mark->column + 1 : 1;
    const struct fy_mark *end = fy_event_end_mark(event);
    key->end = end ? end->input_pos : 0;
    enum fy_scalar_style style = fy_scalar_token_get_style(event->scalar.value);
    bool is_quoted = style == FYSS_SINGLE_QUOTED || style == FYSS_DOUBLE_QUOTED;
    key->key_start = mark ? mark->input_pos - is_quoted : 0;
    key->end += is_quoted; /* the marks lie inside the quotes */
    return key->key != NULL;
}

/* Appends without walking: END is where the parent's list ends. */
static struct et_value **
append_at(struct et_value *parent, struct et_value **end, struct et_value *child)
{
    *end = child;
    parent->n++;
    return &child->next;
}

static void
read_children(struct reader *r, struct et_value *parent, enum fy_event_type last,
              bool is_flow)
{
    struct et_value **end = &parent->first;
    struct fy_event *event;
    while ((event = next_event(r)) != NULL) {
        bool is_end = event->type == last;
        struct et_value key = {0};
        if (is_end) {
            const struct fy_mark *mark = fy_event_end_mark(event);
            if (mark && fy_event_get_token(event))
                parent->end = mark->input_pos;
        } else if (last == FYET_MAPPING_END) {
            bool is_key = read_key(r, event, &key);
            fy_parser_event_free(r->parser, event);
            event = is_key ? next_event(r) : NULL;
        }
        struct et_value *child = is_end || !event ? NULL : read_node(r, event);
        fy_parser_event_free(r->parser, event);
        if (!child) {
            if (!is_end && !r->unclosed && is_flow)
                r->unclosed = parent;
            return;
        }
        child->key = key.key;
        child->key_line = key.key_line;
        child->key_column = key.key_column;
        child->key_start = key.key_start;
        if (child->line == 0) {
            child->line = key.key ? key.key_line : parent->line;
            child->column = key.key ? key.key_column : parent->column;
            child->start = child->end = key.key ? key.end : parent->end;
        }
        end = append_at(parent, end, child);
        parent->end = child->end;
    }
    if (!r->unclosed && is_flow)
        r->unclosed = parent;
}

static struct et_value *
read_collection(struct reader *r, struct fy_event *event)
{
    bool is_map = event->type == FYET_MAPPING_START;
    struct et_value *v = new_value(r, event, is_map ? ET_VALUE_MAP : ET_VALUE_LIST);
    if (!v)
        return NULL;
    if (r->depth >= r->limits->depth) {
        char what[64];
        snprintf(what, sizeof what, "nesting deeper than %d", r->limits->depth);
        stop_at(r, ET_E_LIMIT, fy_event_start_mark(event), what, "");
        return NULL;
    }
    check_tag(r, event, v);
    struct anchor *a = add_anchor(r, event, v);
    if (a)
        a->is_open = true;
    r->depth++;
    read_children(r, v, is_map ? FYET_MAPPING_END : FYET_SEQUENCE_END,
                  fy_event_get_node_style(event) == FYNS_FLOW);
    r->depth--;
    if (a)
        a->is_open = false;
    if (is_map && !r->is_stopped) {
        check_duplicates(r, v);
        apply_merges(r, v);
    }
    return v;
}

/* The node EVENT begins; NULL when reading must stop. */
static struct et_value *
read_node(struct reader *r, struct fy_event *event)
{
    switch (event->type) {
    case FYET_ALIAS:
        return read_alias(r, event);
    case FYET_SCALAR:
        return read_scalar(r, event);
    case FYET_MAPPING_START:
    case FYET_SEQUENCE_START:
        return read_collection(r, event);
    default:
        return NULL;
    }
}

static struct et_value *
read_stream(struct reader *r)
{
    struct et_value *root = NULL;
    struct fy_event *event;
    while ((event = next_event(r)) != NULL) {
        if (event->type == FYET_DOCUMENT_START && root)
            stop_at(r, ET_E_SYNTAX, fy_event_start_mark(event),
                    "a second document; a recipe is one", "");
        struct et_value *v = r->is_stopped ? NULL : read_node(r, event);
        if (v)
            root = v;
        fy_parser_event_free(r->parser, event);
    }
    return root;
}

/* ---- the whole ---- */

/* Reads TEXT with a parser of its own. True: one of our own limits or rules ended
 * it. */
static bool
run(struct reader *r, const char *text, size_t n, struct et_value **root)
{
    struct fy_diag_cfg diag_cfg;
    fy_diag_cfg_default(&diag_cfg);
    diag_cfg.fp = NULL;
    diag_cfg.output_fn = discard;
    diag_cfg.colorize = false;
    struct fy_diag *diag = fy_diag_create(&diag_cfg);
    if (diag)
        fy_diag_set_collect_errors(diag, true);
    struct fy_parse_cfg cfg = {
        .flags = FYPCF_DEFAULT_VERSION_1_2 | FYPCF_JSON_NONE | FYPCF_COLLECT_DIAG,
        .diag = diag,
    };
    r->parser = diag ? fy_parser_create(&cfg) : NULL;
    *root = NULL;
    if (!r->parser || fy_parser_set_string(r->parser, text, n) != 0)
        out_of_memory(r);
    else
        *root = read_stream(r);
    bool is_ours = r->is_stopped;
    if (!is_ours && fy_diag_got_error(diag))
        report_syntax(r, diag, text, n);
    fy_parser_destroy(r->parser);
    fy_diag_destroy(diag);
    return is_ours;
}

et_status
eti_yaml_parse(struct eti_arena *arena, const char *text, size_t n,
               const struct eti_source *source, const struct eti_yaml_limits *limits,
               struct et_diagnostics *errors, struct et_value **out)
{
    const struct reader fresh = {
        .arena = arena,
        .source = source,
        .limits = limits,
        .errors = errors,
    };
    struct reader r = fresh;
    struct et_value *root = NULL;
    *out = NULL;
    if (!eti_yaml_check_bytes(text, n, source, limits->bytes, errors) ||
        !eti_yaml_check_runs(text, n, source, errors))
        return ET_OK;
    /* libfyaml scans a flow collection to its end before its first event: 256 KiB of
     * "[" take 0.15 s. The part before the suspicious place is read alone; only if
     * nothing is wrong there is the whole. */
    size_t deep = eti_yaml_find_deep(text, n);
    bool is_done = false;
    if (deep < n) {
        struct et_diagnostics first = *errors;
        r.errors = &first;
        is_done = run(&r, text, deep, &root);
        if (is_done)
            *errors = first;
    }
    if (!is_done) {
        r = fresh;
        run(&r, text, n, &root);
    }
    if (!root && !r.is_stopped) {
        root = eti_value_new(arena, ET_VALUE_NULL, source, "");
        if (!root)
            out_of_memory(&r);
    }
    if (root && root->line == 0) /* nothing was written: that is at the beginning */
        root->line = root->column = 1;
    if (r.status == ET_ENOMEM)
        return ET_FAIL(arena->cx, ET_ENOMEM, "out of memory reading YAML");
    *out = r.is_stopped ? NULL : root;
    return ET_OK;
}
