/* SPDX-License-Identifier: Apache-2.0 */
/* keys.c: the table of keys, what users may change of it, and what is typed. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "t/tap.h"
#include "tui/glyphs.h"
#include "tui/widget.h"

static struct et_ctx *cx;

/* How many texts of the help of WHERE, seen from AT, have no room in W columns behind
 * their keys. */
static int
too_wide(const struct tui_keys *k, enum tui_where where, enum tui_where at, int w)
{
    int longest = 10, wide = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < TUI_ACTIONS - 1; i++) {
            const struct tui_binding *b = &tui_bindings[i];
            char row[64];
            if (!b->help || b->where != where || !tui_binding_holds(k, b, at))
                continue;
            int keys = tui_width(tui_binding_keys(k, i, at, row, sizeof row));
            if (pass == 0)
                longest = keys > longest ? keys : longest;
            else if (longest + 2 + tui_width(b->help) > w) {
                diag("%s of %s: '%s'", b->id, tui_where_word(at), b->help);
                wide++;
            }
        }
    return wide;
}

static void
test_table(void)
{
    struct tui_keys k;
    int doubles = 0, nameless = 0, lost = 0, uncounted = 0;
    tui_keys_default(&k);
    for (int i = 0; i < TUI_ACTIONS - 1; i++) {
        const struct tui_binding *b = &tui_bindings[i];
        int n = 0;
        is_int(b->action, i + 1, "row %s.%s is where its action says",
               tui_where_word(b->where), b->id);
        for (; n < TUI_TWINS && k.key[b->action][n]; n++)
            if (tui_keys_find(&k, b->where, k.key[b->action][n]) != b->action) {
                diag("%s.%s has the key of another", tui_where_word(b->where), b->id);
                doubles++;
            }
        nameless += n == 0 || !b->name;
        int words = 0;
        for (const char *list = b->key; list; list = list == b->key ? b->twin : NULL)
            for (const char *c = list; *c; c++)
                words += *c != ' ' && (c == list || c[-1] == ' ');
        uncounted += n != words;
        /* Keys that some terminals do not send have a plain twin. */
        if (n == 1 &&
            (k.key[b->action][0] >= TUI_K_F1 && k.key[b->action][0] <= TUI_K_F12))
            lost++;
    }
    int wide = 0;
    for (int at = 0; at < TUI_WHERES; at++)
        wide += too_wide(&k, TUI_IN_everywhere, (enum tui_where)at, 35) +
                too_wide(&k, (enum tui_where)at, (enum tui_where)at, 42);
    is_int(wide, 0, "help has room for its texts in 80 columns");
    is_int(doubles, 0, "no key of a screen does two things");
    is_int(nameless, 0, "every row has a key that is one, and a name");
    is_int(uncounted, 0, "every key that a row names is one of its keys");
    is_int(lost, 0, "no action has a function key alone");
    is_int(tui_keys_find(&k, TUI_IN_monitor, 'x'), TUI_DO_monitor_axis, "x in Monitor");
    is_int(tui_keys_find(&k, TUI_IN_logs, 'x'), TUI_DO_nothing,
           "x elsewhere is nothing");
    is_int(tui_keys_find(&k, TUI_IN_monitor, ' '), TUI_DO_monitor_freeze,
           "a screen's own key goes before everywhere's");
    is_int(tui_keys_find(&k, TUI_IN_logs, TUI_K_PGUP), TUI_DO_everywhere_page_up,
           "where it has none, everywhere's holds");
    is_int(tui_keys_find(&k, TUI_IN_logs, ' '), TUI_DO_nothing,
           "but not on a screen that it is not for");
    char text[64];
    is_str(tui_binding_keys(&k, TUI_DO_everywhere_left - 1, TUI_IN_monitor, text,
                            sizeof text),
           "left right", "help shows the keys of a row");
    is_str(tui_binding_keys(&k, TUI_DO_everywhere_left - 1, TUI_IN_runs, text,
                            sizeof text),
           "", "those that hold on its screen");
    is_int(tui_keys_find(&k, TUI_IN_logs, TUI_CTRL('c')), TUI_DO_everywhere_leave,
           "ctrl-c leaves");
}

static void
test_names(void)
{
    char buf[TUI_KEY_TEXT];
    static const char *const names[] = {
        "x",    "tab", "s-tab", "enter", "esc", "space",  "bksp", "up", "PgUp",
        "Home", "F1",  "F12",   "?",     ":",   "ctrl-l", "[",    "Del"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        is_str(tui_key_text(tui_key_of(names[i], strlen(names[i])), buf), names[i],
               "%s is the name of a key", names[i]);
    static const char *const none[] = {"ctrl",   "ctrl-", "ctrl-ab", "ctrl-A",
                                       "ctrl-{", "F13",   "F0",      "",
                                       "\x7f",   "\x1f",  "xy",      "Tab"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        is_int(tui_key_of(none[i], strlen(none[i])), TUI_K_NONE, "'%s' is none",
               none[i]);
    is_int(tui_key_of("ctrl-a", 6), TUI_CTRL('a'), "ctrl-a is the first of its kind");
    is_int(tui_key_of("ctrl-z", 6), TUI_CTRL('z'), "and ctrl-z the last");
    const char *keys = "2x<tab><lt><ctrl-d>\u00e9<nope>";
    const int want[] = {'2', 'x', TUI_K_TAB, '<', TUI_CTRL('d'), 0xe9, -1};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        is_int(tui_keys_next(&keys), want[i], "key %zu of a list of keys", i);
    is_str(keys, "<nope>", "which stops at what is none");
}

static et_status
read_text(const char *text, struct tui_keys *k, struct et_diagnostics *errors)
{
    char path[] = "/tmp/etude-keys.XXXXXX";
    FILE *f = fdopen(mkstemp(path), "w");
    fputs(text, f);
    fclose(f);
    *errors = (struct et_diagnostics){0};
    tui_keys_default(k);
    et_status status = tui_keys_read(cx, k, path, errors);
    et_error_clear(cx);
    unlink(path);
    return status;
}

static void
test_file(void)
{
    struct tui_keys k;
    struct et_diagnostics e = {0};
    is_int(read_text("monitor: {axis: X, log_y: [Y, F5]}\n", &k, &e), ET_OK,
           "keys.yaml");
    is_int(tui_keys_find(&k, TUI_IN_monitor, 'X'), TUI_DO_monitor_axis, "binds anew");
    is_int(tui_keys_find(&k, TUI_IN_monitor, 'x'), TUI_DO_nothing,
           "and frees the old key");
    is_int(tui_keys_find(&k, TUI_IN_monitor, TUI_K_F1 + 4), TUI_DO_monitor_log_y,
           "a list has several keys");
    is_int(read_text("monitor: {axsi: X}\n", &k, &e), ET_EINVAL,
           "an action that is none");
    ok(strstr(e.v[0].message, "did you mean 'axis'") != NULL,
       "is told with the nearest");
    is_int(e.v[0].line, 1, "and its line");
    is_int(read_text("monitr: {axis: X}\n", &k, &e), ET_EINVAL,
           "a screen that is none");
    is_int(read_text("monitor: {axis: hyper-x}\n", &k, &e), ET_EINVAL,
           "a key that is none");
    is_int(read_text("monitor: {axis: y}\n", &k, &e), ET_EINVAL,
           "one key for two actions");
    ok(strstr(e.v[0].message, "both axis and log_y") != NULL, "names the two");
    is_int(read_text("monitor: {axis: [X, y]}\n", &k, &e), ET_EINVAL,
           "also where it is a second one");
    is_int(read_text("monitor: {axis: [X, Z], log_y: [Y, Z]}\n", &k, &e), ET_EINVAL,
           "of both");
    is_int(read_text("monitor: {axis: [A, B, C, D, E]}\n", &k, &e), ET_EINVAL,
           "more keys than an action may have");
    is_int(read_text("monitor: {axis: []}\n", &k, &e), ET_EINVAL, "or none");
    is_int(tui_keys_find(&k, TUI_IN_monitor, 'x'), TUI_DO_monitor_axis,
           "which leaves it the one it had");
    char most[64] = "";
    for (int i = 0; i < TUI_TWINS; i++)
        snprintf(most + strlen(most), sizeof most - strlen(most), "%s%c", i ? ", " : "",
                 'A' + i);
    char text[128];
    snprintf(text, sizeof text, "monitor: {axis: [%s]}\n", most);
    is_int(read_text(text, &k, &e), ET_OK, "as many as it may have");
    is_int(tui_keys_find(&k, TUI_IN_monitor, 'A' + TUI_TWINS - 1), TUI_DO_monitor_axis,
           "of which the last acts as the first");
    is_int(read_text("monitor: x\n", &k, &e), ET_EINVAL, "a screen without actions");
    is_int(read_text("logs: {axis: X}\n", &k, &e), ET_EINVAL,
           "an action of another screen");
    is_int(read_text("logs: {wrpa: X}\n", &k, &e), ET_EINVAL, "one that is none");
    ok(strstr(e.v[0].message, "did you mean 'wrap'") != NULL,
       "may be meant as one of its screen: %s", e.v[0].message);
    /* An action with two keys gets one: the second is not its any more. */
    for (int i = 0; i < TUI_ACTIONS - 1; i++) {
        const struct tui_binding *b = &tui_bindings[i];
        tui_keys_default(&k);
        const int twin = k.key[b->action][1];
        if (b->where != TUI_IN_monitor || twin == TUI_K_NONE)
            continue;
        snprintf(text, sizeof text, "monitor: {%s: F9}\n", b->id);
        is_int(read_text(text, &k, &e), ET_OK, "%s has two keys, and gets one", b->id);
        ok(tui_keys_find(&k, TUI_IN_monitor, TUI_K_F1 + 8) == b->action &&
               tui_keys_find(&k, TUI_IN_monitor, twin) != b->action,
           "which is all it has");
    }
    is_int(read_text("monitor: {axis: F12}\nlogs: {wrap: y}\n", &k, &e), ET_OK,
           "one key on two screens");
    ok(tui_keys_find(&k, TUI_IN_logs, 'y') == TUI_DO_logs_wrap &&
           tui_keys_find(&k, TUI_IN_monitor, 'y') == TUI_DO_monitor_log_y &&
           tui_keys_find(&k, TUI_IN_monitor, TUI_K_F12) == TUI_DO_monitor_axis,
       "does on each what it is for there");
    is_int(read_text("", &k, &e), ET_OK, "an empty file changes nothing");
    is_int(tui_keys_read(cx, &k, "/nonexistent/keys.yaml", &e), ET_OK, "nor does none");
    is_int(tui_keys_read(cx, &k, "/dev/null/keys.yaml", &e), ET_OK,
           "nor one where there is no folder");
    is_int(tui_keys_read(cx, &k, "/tmp", &e), ET_EIO, "a folder is no file");
    et_error_clear(cx);
}

/* A file has 64 KiB at most; one that is longer is not read as far as that. */
static void
test_long_file(void)
{
    enum { MOST = 64 << 10 };
    static const char first[] = "monitor: {axis: X}\n#";
    static char text[MOST + 2];
    struct tui_keys k;
    struct et_diagnostics e;
    for (int more = 0; more < 2; more++) {
        memset(text, '-', sizeof text);
        memcpy(text, first, sizeof first - 1);
        text[MOST + more - 1] = '\n';
        text[MOST + more] = '\0';
        et_status status = read_text(text, &k, &e);
        is_int(status, more ? ET_EIO : ET_OK, "%d bytes: %s", MOST + more,
               more ? "refused" : "read");
        is_int(tui_keys_find(&k, TUI_IN_monitor, 'X'),
               more ? TUI_DO_nothing : TUI_DO_monitor_axis, "... %s",
               more ? "and nothing of it holds" : "to the end");
    }
    ok(e.total == 1 && strstr(e.v[0].message, "File too large"), "with the reason");
}

static void
type(struct tui_field *f, const char *keys)
{
    for (int key; (key = tui_keys_next(&keys)) > 0;)
        tui_field_key(f, key);
}

static void
test_field(void)
{
    struct tui_field f = {0};
    type(&f, "loss<left><left>X");
    is_str(f.text, "loXss", "letters go in at the cursor");
    type(&f, "<bksp><Del>");
    is_str(f.text, "los", "and out on both sides");
    type(&f, "<End> \u00e9t\u00e9<left><bksp>");
    is_str(f.text, "los \u00e9\u00e9", "a character is one, however many bytes");
    type(&f, "<End><ctrl-w>");
    is_str(f.text, "los ", "ctrl-w takes a word");
    type(&f, "<Home><ctrl-k>");
    is_str(f.text, "", "ctrl-k takes the rest");
    for (int i = 0; i < 2 * TUI_FIELD; i++)
        tui_field_key(&f, 'a');
    is_int((int64_t)f.n, TUI_FIELD - 1, "a full field takes no more");
    ok(!tui_field_key(&f, TUI_K_TAB), "tab is no letter");
}

/* A generator that tests may repeat: xorshift64*. */
static unsigned
draw(unsigned most)
{
    static uint64_t state = 27;
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (unsigned)(state * UINT64_C(0x2545f4914f6cdd1d) >> 33) % most;
}

/* What a field should hold: characters, and how many stand before the cursor. */
struct typed {
    int ch[TUI_FIELD];
    int n, at;
};

static void
take_out(struct typed *t, int from, int to)
{
    memmove(t->ch + from, t->ch + to, (size_t)(t->n - to) * sizeof *t->ch);
    t->n -= to - from;
    t->at = from;
}

static void
type_plainly(struct typed *t, int key)
{
    int word = t->at;
    while (word > 0 && t->ch[word - 1] == ' ')
        word--;
    while (word > 0 && t->ch[word - 1] != ' ')
        word--;
    if (key == TUI_K_LEFT)
        t->at -= t->at > 0;
    else if (key == TUI_K_RIGHT)
        t->at += t->at < t->n;
    else if (key == TUI_K_HOME || key == TUI_CTRL('a'))
        t->at = 0;
    else if (key == TUI_K_END || key == TUI_CTRL('e'))
        t->at = t->n;
    else if (key == TUI_K_BACKSPACE)
        take_out(t, t->at > 0 ? t->at - 1 : 0, t->at);
    else if (key == TUI_K_DELETE)
        take_out(t, t->at, t->at < t->n ? t->at + 1 : t->at);
    else if (key == TUI_CTRL('u'))
        take_out(t, 0, t->at);
    else if (key == TUI_CTRL('k'))
        take_out(t, t->at, t->n);
    else if (key == TUI_CTRL('w'))
        take_out(t, word, t->at);
    else {
        memmove(t->ch + t->at + 1, t->ch + t->at,
                (size_t)(t->n - t->at) * sizeof *t->ch);
        t->ch[t->at++] = key;
        t->n++;
    }
}

/* Is F the text of T, with its cursor where T's is? */
static bool
is_as_typed(const struct tui_field *f, const struct typed *t)
{
    char want[4 * TUI_FIELD + 1] = "";
    size_t n = 0, at = 0;
    for (int i = 0; i < t->n; i++) {
        at = i == t->at ? n : at;
        n += (size_t)tui_utf8((uint32_t)t->ch[i], want + n);
    }
    at = t->at == t->n ? n : at;
    return strcmp(f->text, want) == 0 && f->n == n && f->at == at;
}

/* Keys at random, against characters in an array. */
static void
test_any_keys(void)
{
    static const int letters[] = {'a', 'b', ' ', ' ', 0xe9, 0x2192, 'c', 0xb5};
    static const int keys[] = {
        TUI_K_LEFT,    TUI_K_LEFT,    TUI_K_RIGHT,   TUI_K_HOME,   TUI_CTRL('a'),
        TUI_K_END,     TUI_CTRL('e'), TUI_K_DELETE,  TUI_K_DELETE, TUI_K_BACKSPACE,
        TUI_CTRL('u'), TUI_CTRL('k'), TUI_CTRL('w'),
    };
    enum { KEYS = 20000, LONGEST = 40 };
    struct tui_field f = {0};
    struct typed t = {0};
    int wrong = 0;
    for (int i = 0; i < KEYS && !wrong; i++) {
        const bool is_letter = t.n < LONGEST && draw(3) > 0;
        const int key = is_letter ? letters[draw(sizeof letters / sizeof *letters)]
                                  : keys[draw(sizeof keys / sizeof *keys)];
        tui_field_key(&f, key);
        type_plainly(&t, key);
        if (!is_as_typed(&f, &t)) {
            wrong++;
            diag("key %d, number %d: '%s', the cursor behind byte %zu", key, i, f.text,
                 f.at);
        }
    }
    is_int(wrong, 0, "%d keys change a field as they change an array of characters",
           KEYS);
}

/* The first line of N to be shown so that AT is among ROWS, nearest to BEFORE. */
static int
nearest_top(int n, int rows, int at, int before)
{
    int best = -1;
    for (int top = 0; top <= (n > rows ? n - rows : 0); top++)
        if (at >= top && at < top + rows &&
            (best < 0 || abs(top - before) < abs(best - before)))
            best = top;
    return best;
}

/* Actions at random on lists whose length and room change. */
static void
test_any_list(void)
{
    static const struct {
        enum tui_action action;
        int by; /* lines; pages where it is more than one */
    } moves[] = {
        {TUI_DO_everywhere_up, -1},       {TUI_DO_everywhere_down, 1},
        {TUI_DO_everywhere_page_up, -2},  {TUI_DO_everywhere_page_down, 2},
        {TUI_DO_everywhere_first, -1000}, {TUI_DO_everywhere_last, 1000},
    };
    enum { MOVES = 20000 };
    struct tui_list l = {0};
    int n = 30, rows = 10, wrong = 0;
    tui_list_show(&l, n, rows);
    for (int i = 0; i < MOVES && !wrong; i++) {
        const unsigned move = draw(sizeof moves / sizeof *moves);
        const int by = moves[move].by, page = rows > 2 ? rows - 1 : 1;
        int at = l.at + (abs(by) == 2 ? by / 2 * page : by);
        at = at > n - 1 ? n - 1 : at;
        at = at < 0 ? 0 : at;
        if (!tui_list_act(&l, moves[move].action) || l.at != at) {
            wrong++;
            diag("move %u of %d lines, %d shown: line %d, not %d", move, n, rows, l.at,
                 at);
        }
        if (draw(8) == 0) {
            n = 1 + (int)draw(40);
            rows = 1 + (int)draw(12);
        }
        const int before = l.top;
        at = at > n - 1 ? n - 1 : at;
        tui_list_show(&l, n, rows);
        if (l.at != at || l.top != nearest_top(n, rows, at, before)) {
            wrong++;
            diag("line %d of %d, %d shown: from %d on, before from %d on", l.at, n,
                 rows, l.top, before);
        }
    }
    is_int(wrong, 0,
           "%d moves in a list go as far as they say, and scroll no more than need be",
           MOVES);
}

static void
test_list(void)
{
    struct tui_list l = {0};
    tui_list_show(&l, 100, 10);
    tui_list_act(&l, TUI_DO_everywhere_last);
    tui_list_show(&l, 100, 10);
    ok(l.at == 99 && l.top == 90, "the last line is the last that is shown");
    tui_list_act(&l, TUI_DO_everywhere_page_up);
    tui_list_show(&l, 100, 10);
    ok(l.at == 90 && l.top == 90, "a page keeps one line");
    tui_list_act(&l, TUI_DO_everywhere_up);
    tui_list_show(&l, 100, 10);
    ok(l.at == 89 && l.top == 89, "going up scrolls by one");
    const struct tui_mouse click = {.what = TUI_CLICK}, drag = {.what = TUI_DRAG},
                           down = {.what = TUI_WHEEL_DOWN}, up = {.what = TUI_WHEEL_UP};
    ok(!tui_list_opens(&l, &click, 3) && tui_list_mouse(&l, &click, 3) && l.at == 92,
       "a click selects the line under it, also where the list was scrolled");
    ok(tui_list_opens(&l, &click, 3) && !tui_list_opens(&l, &click, 4) &&
           !tui_list_opens(&l, &drag, 3),
       "and a second one opens it");
    ok(!tui_list_mouse(&l, &click, -1) && !tui_list_mouse(&l, &click, 10) &&
           !tui_list_mouse(&l, &drag, 0) && l.at == 92,
       "what is no click on a line selects nothing");
    ok(tui_list_mouse(&l, &up, 0) && l.at == 89 && tui_list_mouse(&l, &down, 0) &&
           l.at == 92,
       "a wheel moves by three lines");
    tui_list_show(&l, 4, 10);
    ok(!tui_list_mouse(&l, &click, 4) && !tui_list_opens(&l, &click, 4) && l.at == 3,
       "below the last line there is nothing to click at");
    tui_list_show(&l, 5, 10);
    l.at = 99;
    tui_list_show(&l, 5, 10);
    ok(l.at == 4 && l.top == 0, "a list that became short has no empty lines above");
    tui_list_show(&l, 0, 10);
    ok(l.at == 0 && l.top == 0, "an empty list is at its beginning");
}

static int chosen;
static char answered[64];
static void
choose(struct tui_app *app, void *data, int id, const char *text)
{
    (void)app, (void)data;
    chosen = id;
    snprintf(answered, sizeof answered, "%s", text);
}

static const char *
must_be_owl(void *data, const char *text, char *buf)
{
    (void)data, (void)buf;
    return strcmp(text, "owl") == 0 ? NULL : "type the run's name";
}

static void
press(struct tui_popup *p, const char *keys)
{
    for (int key; (key = tui_keys_next(&keys)) > 0;)
        tui_popup_key(p, NULL, key);
}

static void
test_popup(void)
{
    static const struct tui_item items[] = {
        {.id = 7, .key = 'p', .text = "pause"},
        {.id = 8, .key = 's', .text = "stop"},
        {.id = 9, .key = 'k', .text = "kill", .why = "the run has ended"},
    };
    struct tui_popup p = {0};
    ok(tui_popup_menu(&p, cx, "control", items, 3) == ET_OK, "a menu opens");
    p.done = choose;
    press(&p, "k");
    ok(p.kind == TUI_MENU && chosen == 0, "what cannot be chosen is not");
    press(&p, "<up><enter>");
    ok(p.kind == TUI_NO_POPUP && chosen == 8, "arrows and enter choose");
    ok(tui_popup_menu(&p, cx, "palette", items, 3) == ET_OK, "a menu with a filter");
    p.done = choose;
    p.filters = true;
    press(&p, "pau<enter>");
    is_int(chosen, 7, "finds what is typed");
    chosen = 0;
    tui_popup_prompt(&p, cx, "kill", "");
    p.done = choose;
    p.check = must_be_owl;
    press(&p, "ow<enter>");
    ok(p.kind == TUI_PROMPT && chosen == 0, "a wrong answer is not taken");
    press(&p, "l<enter>");
    is_str(answered, "owl", "the right one is");
    tui_popup_prompt(&p, cx, "kill", "owl");
    p.done = choose;
    answered[0] = '\0';
    press(&p, "<esc>");
    ok(p.kind == TUI_NO_POPUP && !*answered, "esc does nothing");
}

/* The ids of the items that P shows, in their order. */
static const char *
shown_in(const struct tui_popup *p)
{
    static char text[128];
    size_t n = 0;
    text[0] = '\0';
    for (int i = 0; i < p->list.n; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%d", n ? " " : "",
                              p->item[p->shown[i]].id);
    return text;
}

static void
test_filter(void)
{
    static const struct tui_item items[] = {
        {.id = 1, .text = "Curves", .is_heading = true},
        {.id = 2, .text = "train loss"},
        {.id = 3, .text = "loss of eval", .note = "held"},
        {.id = 4, .text = "rate", .is_held = true},
        {.id = 5, .text = "Runs", .is_heading = true},
        {.id = 6, .text = "Loss"},
        {.id = 7, .text = "owl", .note = "its eval"},
        {.id = 8, .text = "None", .is_heading = true},
        {.id = 9, .text = "held back", .is_held = true},
    };
    struct tui_popup p = {0};
    ok(tui_popup_menu(&p, cx, "palette", items, 9) == ET_OK, "a palette opens");
    p.filters = true;
    tui_popup_sift(&p);
    is_str(shown_in(&p), "1 2 3 5 6 7",
           "it shows all but what is held back, and no heading of that alone");
    is_int(p.list.at, 1, "its first item is selected, not the heading");
    press(&p, "loss");
    is_str(
        shown_in(&p), "5 6 1 3 2",
        "the item that is called so comes first with its heading, then what begins so");
    press(&p, " eval");
    is_str(shown_in(&p), "1 3", "all words have to stand in an item");
    press(&p, "<ctrl-u>eval");
    is_str(shown_in(&p), "1 3 5 7", "in its text or its note");
    press(&p, "<ctrl-u>HELD");
    is_str(shown_in(&p), "8 9 1 3", "what was held back is found when it is typed");
    press(&p, "<ctrl-u>nothing");
    is_str(shown_in(&p), "", "nothing is called so");
    press(&p, "<enter>");
    is_int(p.kind, TUI_MENU, "and enter chooses nothing");
    press(&p, "<ctrl-u><down><down>");
    is_int(p.item[p.shown[p.list.at]].id, 6, "moving goes over a heading");
    press(&p, "<up>");
    is_int(p.item[p.shown[p.list.at]].id, 3, "in both directions");
    press(&p, "<up><up><up>");
    is_int(p.item[p.shown[p.list.at]].id, 2, "and never stays on the first one");
    tui_popup_close(&p);
}

/* A menu of two items as it stands on the screen. */
static void
open_on_screen(struct tui_popup *p, const struct tui_pane *screen)
{
    static const struct tui_item items[] = {
        {.id = 7, .key = 'p', .text = "pause"},
        {.id = 8, .key = 's', .text = "stop"},
    };
    chosen = 0;
    if (tui_popup_menu(p, cx, "control", items, 2) != ET_OK)
        bail("no memory");
    tui_popup_line(p, "the run");
    p->done = choose;
    tui_popup_draw(p, screen);
}

static void
test_clicks(void)
{
    struct tui_grid g;
    if (tui_grid_init(&g, cx, tui_glyphs_of(ETI_PLOT_ASCII), 24, 80) != ET_OK)
        bail("no memory");
    const struct tui_pane screen = tui_pane_of(&g);
    struct tui_popup p = {0};
    open_on_screen(&p, &screen);
    const struct tui_pane a = p.area;
    tui_popup_click(&p, NULL, a.y + p.first_row + 1, a.x + 1);
    ok(p.kind == TUI_NO_POPUP && chosen == 8, "a click chooses the item under it");
    const struct {
        int y, x;
        bool closes;
        const char *where;
    } clicks[] = {
        {a.y, a.x, false, "on what is said above"},
        {a.y - 1, a.x - 2, false, "on its upper left corner"},
        {a.y + a.h, a.x + a.w + 1, false, "on its lower right corner"},
        {a.y - 2, a.x, true, "above it"},
        {a.y + a.h + 1, a.x, true, "below it"},
        {a.y, a.x - 3, true, "left of it"},
        {a.y, a.x + a.w + 2, true, "right of it"},
    };
    for (size_t i = 0; i < sizeof clicks / sizeof *clicks; i++) {
        open_on_screen(&p, &screen);
        tui_popup_click(&p, NULL, clicks[i].y, clicks[i].x);
        ok((p.kind == TUI_NO_POPUP) == clicks[i].closes && chosen == 0,
           "a click %s %s it", clicks[i].where, clicks[i].closes ? "closes" : "leaves");
    }
    tui_popup_close(&p);
    tui_grid_release(&g);
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    test_table();
    test_names();
    test_file();
    test_long_file();
    test_field();
    test_any_keys();
    test_list();
    test_any_list();
    test_popup();
    test_filter();
    test_clicks();
    et_ctx_free(&cx);
    return done();
}
