/* SPDX-License-Identifier: Apache-2.0 */
/* keys.c: see keys.h. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "core/base/utf8.h"
#include "etude/option.h"
#include "tui/keys.h"
#include "tui/userfile.h"

static const char *const where_titles[] = {
#define TITLE(word, title) title,
    TUI_WHERE_MAP(TITLE)
#undef TITLE
};
static const char *const where_words[] = {
#define WORD(word, title) #word,
    TUI_WHERE_MAP(WORD)
#undef WORD
};

const char *
tui_where_title(enum tui_where where)
{
    return where_titles[where];
}

const char *
tui_where_word(enum tui_where where)
{
    return where_words[where];
}

const struct tui_binding tui_bindings[] = {
#define TUI_KEY(its_where, its_id, its_key, its_name, ...)                             \
    {.where = TUI_IN_##its_where,                                                      \
     .action = TUI_DO_##its_where##_##its_id,                                          \
     .id = #its_id,                                                                    \
     .key = its_key,                                                                   \
     .name = its_name,                                                                 \
     __VA_ARGS__},
#include "tui/keys.def"
#undef TUI_KEY
};

/* ---- names of keys ---- */

static const struct {
    int key;
    const char *text;
} key_names[] = {
    {TUI_K_TAB, "tab"},
    {TUI_K_BACKTAB, "s-tab"},
    {TUI_K_ENTER, "enter"},
    {TUI_K_ESC, "esc"},
    {' ', "space"},
    {TUI_K_BACKSPACE, "bksp"},
    {TUI_K_UP, "up"},
    {TUI_K_DOWN, "down"},
    {TUI_K_LEFT, "left"},
    {TUI_K_RIGHT, "right"},
    {TUI_K_PGUP, "PgUp"},
    {TUI_K_PGDN, "PgDn"},
    {TUI_K_HOME, "Home"},
    {TUI_K_END, "End"},
    {TUI_K_DELETE, "Del"},
    {TUI_K_INSERT, "Ins"},
    {'<', "lt"},
};

const char *
tui_key_text(int key, char buf[TUI_KEY_TEXT])
{
    for (size_t i = 0; i < sizeof key_names / sizeof *key_names; i++)
        if (key_names[i].key == key && key != '<') {
            snprintf(buf, TUI_KEY_TEXT, "%s", key_names[i].text);
            return buf;
        }
    if (key >= TUI_K_F1 && key <= TUI_K_F12)
        snprintf(buf, TUI_KEY_TEXT, "F%d", key - TUI_K_F1 + 1);
    else if (key > 0 && key < 32)
        snprintf(buf, TUI_KEY_TEXT, "ctrl-%c", key + 96);
    else if (key > 0 && key < 0x110000)
        buf[0] = (char)key, buf[1] = '\0'; /* bindings are ASCII */
    else
        buf[0] = '\0';
    return buf;
}

int
tui_key_of(const char *text, size_t n)
{
    uint32_t ch;
    int number;
    char word[TUI_KEY_TEXT];
    if (n == 0 || n >= sizeof word)
        return TUI_K_NONE;
    if ((size_t)eti_utf8_decode(text, n, &ch) == n && ch >= 32 && ch != 127)
        return (int)ch;
    snprintf(word, sizeof word, "%.*s", (int)n, text);
    for (size_t i = 0; i < sizeof key_names / sizeof *key_names; i++)
        if (strcmp(key_names[i].text, word) == 0)
            return key_names[i].key;
    if (strncmp(word, "ctrl-", 5) == 0 && n == 6 && word[5] >= 'a' && word[5] <= 'z')
        return TUI_CTRL(word[5]);
    if (sscanf(word, "F%2d", &number) == 1 && number >= 1 && number <= 12)
        return TUI_K_F1 + number - 1;
    return TUI_K_NONE;
}

int
tui_keys_next(const char **text)
{
    uint32_t ch;
    const char *at = *text, *end = strchr(at, '>');
    if (!*at)
        return TUI_K_NONE;
    if (*at == '<') {
        int key = end ? tui_key_of(at + 1, (size_t)(end - at) - 1) : TUI_K_NONE;
        if (key == TUI_K_NONE)
            return -1;
        *text = end + 1;
        return key;
    }
    int n = eti_utf8_decode(at, strlen(at), &ch);
    if (n == 0 || ch < 32)
        return -1;
    *text += n;
    return (int)ch;
}

/* ---- the keys in force ---- */

/* The keys that TEXT names, separated by blanks. Returns how many. */
static int
read_list(const char *text, int key[TUI_TWINS], int n)
{
    while (text && *text && n < TUI_TWINS) {
        size_t length = strcspn(text, " ");
        key[n++] = tui_key_of(text, length);
        text += length + (text[length] == ' ');
    }
    return n;
}

void
tui_keys_default(struct tui_keys *k)
{
    memset(k, 0, sizeof *k);
    for (int i = 0; i < TUI_ACTIONS - 1; i++) {
        const struct tui_binding *b = &tui_bindings[i];
        int n = read_list(b->key, k->key[b->action], 0);
        read_list(b->twin, k->key[b->action], n);
    }
}

static bool
has_key(const struct tui_keys *k, enum tui_action action, int key)
{
    for (int i = 0; i < TUI_TWINS; i++)
        if (key != TUI_K_NONE && k->key[action][i] == key)
            return true;
    return false;
}

/* Is B a row of WHERE, or one of everywhere's that is for it? */
static bool
reaches(const struct tui_binding *b, enum tui_where where)
{
    return b->where == where ||
           (b->where == TUI_IN_everywhere && (!b->only || b->only & 1u << where));
}

enum tui_action
tui_keys_find(const struct tui_keys *k, enum tui_where where, int key)
{
    enum tui_action found = TUI_DO_nothing;
    for (int i = 0; i < TUI_ACTIONS - 1; i++) {
        const struct tui_binding *b = &tui_bindings[i];
        if (!reaches(b, where) || !has_key(k, b->action, key))
            continue;
        if (b->where == where)
            return b->action;
        if (found == TUI_DO_nothing)
            found = b->action;
    }
    return found;
}

bool
tui_binding_holds(const struct tui_keys *k, const struct tui_binding *b,
                  enum tui_where where)
{
    if (where == TUI_IN_everywhere)
        return b->where == where && !b->only;
    if (b->where != TUI_IN_everywhere)
        return b->where == where;
    for (int i = 0; i < TUI_TWINS; i++)
        if (tui_keys_find(k, where, k->key[b->action][i]) == b->action)
            return true;
    return false;
}

const char *
tui_binding_key(const struct tui_keys *k, const struct tui_binding *b,
                char buf[TUI_KEY_TEXT])
{
    return tui_key_text(k->key[b->action][0], buf);
}

const char *
tui_binding_keys(const struct tui_keys *k, int i, enum tui_where where, char *buf,
                 size_t size)
{
    char text[TUI_KEY_TEXT];
    size_t used = 0;
    const enum tui_where rows = tui_bindings[i].where;
    buf[0] = '\0';
    do {
        int key = k->key[tui_bindings[i].action][0];
        if (key != TUI_K_NONE && used < size &&
            tui_binding_holds(k, &tui_bindings[i], where))
            used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? " " : "",
                                     tui_key_text(key, text));
        i++;
    } while (i < TUI_ACTIONS - 1 && tui_bindings[i].where == rows &&
             !tui_bindings[i].help);
    return buf;
}

/* ---- keys.yaml ---- */

struct reading {
    struct tui_keys *keys;
    struct et_diagnostics *errors;
};

static void
unknown(struct reading *r, const struct et_value *v, const char *what,
        const char *const *names, int n)
{
    struct et_place at = eti_value_key_place(v);
    const char *near = et_nearest(v->key, names, n);
    et_diagnostics_add(r->errors, ET_E_UNKNOWN, &at, NULL, "etude-keys(5) lists them",
                       "unknown %s '%s'%s%s%s", what, v->key,
                       near ? " (did you mean '" : "", near ? near : "",
                       near ? "'?)" : "");
}

static int
read_key(struct reading *r, const struct et_value *v)
{
    struct et_place at = eti_value_place(v);
    int key = v->text ? tui_key_of(v->text, strlen(v->text)) : TUI_K_NONE;
    if (key == TUI_K_NONE)
        et_diagnostics_add(r->errors, ET_E_VALUE, &at, v->key,
                           "keys are x, ctrl-x, tab, enter, F1, PgUp ...",
                           "expected the name of a key");
    return key;
}

static void
bind(struct reading *r, const struct tui_binding *b, const struct et_value *v)
{
    struct et_place at = eti_value_place(v);
    int key[TUI_TWINS] = {0}, n = 0;
    if (v->type != ET_VALUE_LIST) {
        key[n++] = read_key(r, v);
    } else if (v->n == 0 || v->n > TUI_TWINS) {
        et_diagnostics_add(r->errors, ET_E_VALUE, &at, v->key, NULL,
                           "expected 1 to %d keys, got %d", TUI_TWINS, v->n);
        return;
    } else {
        for (const struct et_value *item = v->first; item; item = item->next)
            key[n++] = read_key(r, item);
    }
    memcpy(r->keys->key[b->action], key, sizeof key);
}

static void
bind_screen(struct reading *r, enum tui_where where, const struct et_value *map)
{
    const char *ids[TUI_ACTIONS];
    int n = 0;
    for (int i = 0; i < TUI_ACTIONS - 1; i++)
        if (tui_bindings[i].where == where)
            ids[n++] = tui_bindings[i].id;
    for (const struct et_value *v = map->first; v; v = v->next) {
        const struct tui_binding *found = NULL;
        for (int i = 0; i < TUI_ACTIONS - 1 && !found; i++)
            if (tui_bindings[i].where == where &&
                strcmp(tui_bindings[i].id, v->key) == 0)
                found = &tui_bindings[i];
        if (found)
            bind(r, found, v);
        else
            unknown(r, v, "action", ids, n);
    }
}

/* A key that two actions of one screen share would never reach the second. */
static void
refuse_doubles(struct reading *r)
{
    char text[TUI_KEY_TEXT];
    for (int i = 0; i < TUI_ACTIONS - 1; i++)
        for (int k = 0; k < TUI_TWINS; k++) {
            const struct tui_binding *b = &tui_bindings[i];
            int key = r->keys->key[b->action][k];
            enum tui_action first = tui_keys_find(r->keys, b->where, key);
            if (key == TUI_K_NONE || first == b->action)
                continue;
            et_diagnostics_add(r->errors, ET_E_CONFLICT, NULL, where_words[b->where],
                               NULL, "%s is the key of both %s and %s",
                               tui_key_text(key, text), tui_bindings[first - 1].id,
                               b->id);
        }
}

et_status
tui_keys_read(struct et_ctx *cx, struct tui_keys *k, const char *path,
              struct et_diagnostics *errors)
{
    struct eti_arena arena;
    struct et_value *root;
    struct reading r = {k, errors};
    eti_arena_init(&arena, cx, 4096);
    et_status status = tui_user_file(cx, &arena, path, errors, &root);
    for (struct et_value *v = status == ET_OK && root ? root->first : NULL; v;
         v = v->next) {
        int where = 0;
        while (where < TUI_WHERES && strcmp(where_words[where], v->key) != 0)
            where++;
        if (where < TUI_WHERES && v->type == ET_VALUE_MAP)
            bind_screen(&r, (enum tui_where)where, v);
        else
            unknown(&r, v, "screen", where_words, TUI_WHERES);
    }
    if (status == ET_OK && !errors->total)
        refuse_doubles(&r);
    if (status == ET_OK && errors->total)
        status = ET_FAIL(cx, ET_EINVAL, "%s: %s", path, errors->v[0].message);
    eti_arena_release(&arena);
    return status;
}

const struct tui_binding *
tui_binding_of(enum tui_action action)
{
    for (int i = 0; i < TUI_ACTIONS - 1; i++)
        if (tui_bindings[i].action == action)
            return &tui_bindings[i];
    return NULL;
}
