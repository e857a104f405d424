/* SPDX-License-Identifier: Apache-2.0 */
/* sieve.c: a filter that its user types: see widget.h. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "tui/app.h"

void
tui_sieve_set(struct tui_app *app, struct tui_sieve *s, const char *text)
{
    eti_filter_free(&s->filter);
    if (*text && eti_filter_new(app->cx, text, &s->filter) != ET_OK) {
        tui_say_error(app);
        text = "";
    }
    snprintf(s->text, sizeof s->text, "%s", text);
    if (s->changed)
        s->changed(s->data);
}

bool
tui_sieve_passes(const struct tui_sieve *s, const struct eti_subject *subject)
{
    return !s->filter || eti_filter_matches(s->filter, subject);
}

void
tui_sieve_release(struct tui_sieve *s)
{
    eti_filter_free(&s->filter);
    s->text[0] = '\0';
}

static bool
is_key(void *data, const char *key)
{
    const struct tui_sieve *s = data;
    for (const char *const *known = s->keys; known && *known; known++)
        if (strcmp(*known, key) == 0)
            return true;
    return !s->keys;
}

/* Why TEXT is no filter; it is tried as it is typed. */
static const char *
check(void *data, const char *text, char *buf)
{
    struct tui_sieve *s = data;
    struct eti_filter *f = NULL;
    int n = 0;
    if (eti_filter_new(s->cx, text, &f) != ET_OK) {
        snprintf(buf, 160, "%.150s", et_error_get(s->cx)->message);
        et_error_clear(s->cx);
        return buf;
    }
    const char *unknown = eti_filter_unknown(f, is_key, s);
    while (s->keys && s->keys[n])
        n++;
    const char *near = unknown ? et_nearest(unknown, s->keys, n) : NULL;
    if (near)
        snprintf(buf, 160, "no line has the key '%.40s' (did you mean '%s'?)", unknown,
                 near);
    else if (unknown)
        snprintf(buf, 160, "no line has the key '%.40s'", unknown);
    eti_filter_free(&f);
    return unknown ? buf : NULL;
}

static void
typed(struct tui_app *app, void *data, int id, const char *text)
{
    (void)id;
    tui_sieve_set(app, data, text);
}

void
tui_sieve_ask(struct tui_app *app, struct tui_sieve *s, const char *title)
{
    tui_popup_prompt(&app->popup, app->cx, title, s->text);
    app->popup.done = typed;
    app->popup.data = s;
    app->popup.check = check;
    app->popup.check_data = s;
    s->cx = app->cx;
}
