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

/* Why TEXT is no filter; it is tried as it is typed. */
static const char *
check(void *data, const char *text, char *buf)
{
    struct tui_app *app = data;
    struct eti_filter *f = NULL;
    if (eti_filter_new(app->cx, text, &f) == ET_OK) {
        eti_filter_free(&f);
        return NULL;
    }
    snprintf(buf, 160, "%.150s", et_error_get(app->cx)->message);
    et_error_clear(app->cx);
    return buf;
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
    app->popup.check_data = app;
}
