/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of random YAML texts set, inserted, removed and moved, against a model.
 *
 * A seed makes a tree of mappings and a text of it: in block and in flow style, with
 * empty values, texts in quotes and over several lines, and comments above, behind and
 * within its entries. The edited text is read again, and holds what the same edit makes
 * of the tree; each comment is in it once, as before.
 *
 *     ETUDE_SEED=17 t/unit/random_edits   the text of that seed, as it is and edited */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/recipe/edit.h"
#include "core/recipe/text.h"
#include "etude/ctx.h"
#include "t/tap.h"

enum { MOST_ENTRIES = 5, DEPTH = 3, NODES = 200, TEXT = 8192 };

enum form { PLAIN, QUOTED, LINES, NOTHING, MAPPING };

struct node {
    char key[16];
    enum form form;
    bool is_flow; /* a mapping in braces */
    int number;   /* of a value */
    struct node *child[MOST_ENTRIES + 2];
    int n;
};

static struct et_ctx *cx;
static uint64_t state;
static struct node pool[NODES];
static int n_nodes, n_comments, n_keys;

static int
draw(int n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((state >> 33) % (uint64_t)n);
}

/* ---- trees ---- */

static struct node *
new_node(enum form form)
{
    if (n_nodes == NODES)
        bail("a tree of more than %d nodes", NODES);
    struct node *v = &pool[n_nodes++];
    *v = (struct node){.form = form, .number = n_nodes};
    snprintf(v->key, sizeof v->key, draw(6) ? "k%d" : "k#%d", ++n_keys);
    return v;
}

static struct node *
new_tree(int depth, bool in_flow)
{
    bool is_map = depth == 0 || (depth < DEPTH && draw(3) == 0);
    struct node *v = new_node(is_map ? MAPPING : (enum form)draw(MAPPING));
    if (in_flow && v->form == LINES)
        v->form = QUOTED;
    v->is_flow = is_map && depth > 0 && (in_flow || draw(2));
    int n = !is_map ? 0 : v->is_flow ? draw(MOST_ENTRIES) : 1 + draw(MOST_ENTRIES - 1);
    for (; v->n < n; v->n++)
        v->child[v->n] = new_tree(depth + 1, v->is_flow);
    return v;
}

/* The entries of V without that at INDEX, or with NEW there. */
static void
take_out(struct node *v, int index)
{
    memmove(&v->child[index], &v->child[index + 1],
            sizeof(struct node *) * (size_t)(v->n - index - 1));
    if (--v->n == 0 && !v->is_flow)
        v->form = NOTHING;
}

static void
put_in(struct node *v, int index, struct node *new)
{
    index = index < 0 || index > v->n ? v->n : index;
    memmove(&v->child[index + 1], &v->child[index],
            sizeof(struct node *) * (size_t)(v->n - index));
    v->child[index] = new;
    v->n++;
    v->form = MAPPING;
}

/* What eti_text_add_value says of V. */
static void
add_canonical(struct eti_text *t, const struct node *v)
{
    switch (v->form) {
    case PLAIN:
        eti_text_add(t, "v%d", v->number);
        return;
    case QUOTED:
        eti_text_add(t, "\"v # %d\"", v->number);
        return;
    case LINES:
        eti_text_add(t, "\"v # %d\\n# no comment\\n\"", v->number);
        return;
    case NOTHING:
        eti_text_add(t, "null");
        return;
    case MAPPING:
        break;
    }
    eti_text_add(t, "{");
    for (int i = 0; i < v->n; i++) {
        eti_text_add(t, i ? ", " : "");
        eti_text_add_scalar(t, v->child[i]->key);
        eti_text_add(t, ": ");
        add_canonical(t, v->child[i]);
    }
    eti_text_add(t, "}");
}

/* ---- texts ---- */

static void
add_flow(struct eti_text *t, const struct node *v)
{
    static const char *const separators[] = {", ", ",", ",  "};
    if (v->form == PLAIN)
        eti_text_add(t, "v%d", v->number);
    else if (v->form == QUOTED)
        eti_text_add(t, draw(2) ? "\"v # %d\"" : "'v # %d'", v->number);
    if (v->form != MAPPING)
        return;
    eti_text_add(t, "{");
    for (int i = 0; i < v->n; i++) {
        eti_text_add(t, "%s%s: ", i ? separators[draw(3)] : "", v->child[i]->key);
        add_flow(t, v->child[i]);
    }
    eti_text_add(t, "}");
}

static void
add_comment(struct eti_text *t, int indent)
{
    if (draw(3) == 0)
        eti_text_add(t, "%*s# c%d.\n", indent, "", ++n_comments);
}

/* The entries of V, each on lines of its own. */
static void
add_block(struct eti_text *t, const struct node *v, int indent)
{
    for (int i = 0; i < v->n; i++) {
        const struct node *c = v->child[i];
        bool is_block = c->form == MAPPING && !c->is_flow;
        add_comment(t, indent);
        eti_text_add(t, "%*s%s:%s", indent, "", c->key,
                     is_block || c->form == NOTHING ? "" : " ");
        if (c->form == LINES) {
            eti_text_add(t, "|\n%*sv # %d\n%*s# no comment\n", indent + 3, "",
                         c->number, indent + 3, "");
            continue;
        }
        if (!is_block)
            add_flow(t, c);
        if (draw(3) == 0)
            eti_text_add(t, "  # c%d.", ++n_comments);
        eti_text_add(t, "\n");
        if (is_block)
            add_block(t, c, indent + 2 + 2 * draw(2));
    }
}

/* The comments of TEXT that stand in it once. */
static int
count_comments(const char *text)
{
    int found = 0;
    for (int i = 1; i <= n_comments; i++) {
        char comment[16];
        snprintf(comment, sizeof comment, "# c%d.", i);
        const char *at = strstr(text, comment);
        found += at && !strstr(at + 1, comment);
    }
    return found;
}

/* ---- edits ---- */

struct chosen {
    char path[128]; /* of PARENT; "" is the root's */
    struct node *parent;
    int index; /* -1: it has no entry */
};

/* A mapping of V, or with EMPTY a value that may become one, and one of its entries. */
static struct chosen
choose(struct node *v, bool empty)
{
    struct chosen c = {.parent = v, .index = -1};
    for (;;) {
        struct node *next = NULL;
        if (c.parent->n > 0) {
            c.index = draw(c.parent->n);
            next = c.parent->child[c.index];
        }
        bool goes_on =
            next && (next->form == MAPPING || (empty && next->form == NOTHING));
        if (!goes_on || draw(3) == 0)
            return c;
        size_t used = strlen(c.path);
        snprintf(c.path + used, sizeof c.path - used, "%s%s", used ? "." : "",
                 next->key);
        if (!empty && next->n == 0)
            return (struct chosen){.parent = v, .index = v->n ? 0 : -1};
        c.parent = next;
        c.index = -1;
    }
}

static void
name_entry(const struct chosen *c, const char *key, char *path, size_t size)
{
    snprintf(path, size, "%s%s%s", c->path, *c->path ? "." : "", key);
}

/* Edits the model as EDIT says, whose path PATH is filled in. False: there is nothing
 * that it could be tried at. */
static bool
edit_model(struct node *root, struct eti_edit *edit, char *path, size_t size)
{
    static char value[16];
    bool adds =
        edit->kind == ETI_EDIT_INSERT || (edit->kind == ETI_EDIT_SET && draw(2) == 0);
    struct chosen c = choose(root, adds);
    struct node *new = new_node(PLAIN);
    edit->index = draw(c.parent->n + 3) - 1;
    snprintf(value, sizeof value, "v%d", new->number);
    edit->value = value;
    if (adds) {
        int index = edit->kind == ETI_EDIT_SET ? -1 : edit->index;
        name_entry(&c, new->key, path, size);
        if (draw(3) == 0) { /* two keys that are not there: the upper one comes last */
            struct node *outer = new_node(MAPPING);
            name_entry(&c, outer->key, path, size);
            snprintf(path + strlen(path), size - strlen(path), ".%s", new->key);
            put_in(outer, 0, new);
            new = outer;
            index = -1;
        }
        if (c.parent->form == NOTHING)
            c.parent->is_flow = true; /* or not: it has one entry, and is not edited */
        put_in(c.parent, index, new);
        return true;
    }
    if (c.index < 0)
        return false;
    struct node *old = c.parent->child[c.index];
    name_entry(&c, old->key, path, size);
    if (edit->kind == ETI_EDIT_SET) {
        if (old->form == MAPPING || old->form == LINES)
            return false; /* what stands in it would go; the latter is refused */
        old->form = PLAIN;
        old->number = new->number;
        return true;
    }
    take_out(c.parent, c.index);
    if (edit->kind == ETI_EDIT_MOVE)
        put_in(c.parent, edit->index, old);
    return true;
}

/* What OUT holds, said as add_canonical says it. */
static void
read_back(const char *out, struct eti_text *t)
{
    static const struct eti_source source = {.origin = ETI_ORIGIN_RECIPE, .name = "y"};
    struct et_diagnostics errors = {0};
    struct eti_arena arena;
    struct et_value *root = NULL;
    eti_arena_init(&arena, cx, 4096);
    if (eti_yaml_parse(&arena, out, strlen(out), &source, &eti_yaml_limits, &errors,
                       &root) == ET_OK &&
        root)
        eti_text_add_value(t, root);
    else
        eti_text_add(t, "no YAML");
    eti_arena_release(&arena);
}

static bool
try_edit(uint64_t seed, bool shows)
{
    static const char *const kinds[] = {"set", "remove", "insert", "move"};
    struct eti_text text = {.cx = cx}, want = {.cx = cx}, got = {.cx = cx};
    struct et_diagnostics errors = {0};
    char path[192], *out = NULL;
    state = seed;
    n_nodes = n_comments = n_keys = 0;
    struct node *root = new_tree(0, false);
    struct eti_edit edit = {
        .kind = (enum eti_edit_kind)draw(4), .path = path, .is_recipe = true};
    add_block(&text, root, 0);
    if (!edit_model(root, &edit, path, sizeof path)) {
        et_free(cx, text.text);
        return true;
    }
    add_canonical(&want, root);
    et_status status = eti_yaml_edit(cx, text.text, strlen(text.text), "y", &edit,
                                     &errors, &out, NULL);
    if (status == ET_OK)
        read_back(out, &got);
    bool good = status == ET_OK && strcmp(got.text, want.text) == 0 &&
                count_comments(out) == n_comments;
    if (!good || shows)
        diag("seed %llu, %s %s %d:\n%sis edited to\n%s%sof which is read\n%s\nnot\n%s",
             (unsigned long long)seed, kinds[edit.kind], path, edit.index, text.text,
             out ? out : et_error_get(cx)->message, out ? "" : "\n",
             got.text ? got.text : "", want.text);
    et_error_clear(cx);
    et_free(cx, out);
    et_free(cx, text.text);
    et_free(cx, want.text);
    et_free(cx, got.text);
    return good;
}

int
main(void)
{
    const char *from = getenv("ETUDE_SEED");
    uint64_t seed = from ? strtoull(from, NULL, 10) : 1;
    int failed = 0, n = from ? 1 : getenv("ETUDE_LONG") ? 200000 : 3000;
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    for (int i = 0; i < n && failed < 3; i++)
        failed += !try_edit(seed + (uint64_t)i, from != NULL);
    is_int(failed, 0, "%d random texts hold what an edit should make of them", n);
    et_ctx_free(&cx);
    return done();
}
