/* SPDX-License-Identifier: Apache-2.0 */
/* monitor_end.c: the page of a run that has ended: what it came to, what was kept, and
 * the ways on. It lies over the charts until esc. The facts are those of `etude show`
 * (core/library/ending.h); a way is `etude ...` in a process of its own, as in Compose.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/library/ending.h"
#include "core/library/facts.h"
#include "core/library/index.h"
#include "core/library/state.h"
#include "etude/run.h"
#include "tui/format.h"
#include "tui/monitor.h"

enum { LABEL = 11, VALUE = 20, WORDS = 32, EXPORTS = 64 };

/* ---- what is known ---- */

static const char *
text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* The newest checkpoint that the run told of, as `kept`; null. */
static json_t *
kept_afar(const struct etd_model *model)
{
    struct tui_saved k;
    return tui_saved(model, &k) ? json_pack("{s:s}", "label", k.name) : json_null();
}

/* The greatest rate that the run came to; 0: it told of none. */
static double
greatest_rate(const struct etd_model *m)
{
    double most = 0;
    for (int i = 0; i < m->n_series; i++) {
        const struct etd_series *s = &m->series[i];
        for (int k = 0; k < s->n_bins && strncmp(s->name, "lr-", 3) == 0; k++)
            if (s->bin[k].n > 0)
                most = fmax(most, s->bin[k].max);
    }
    return most;
}

/* The facts of a run whose directory is on another machine: what its records tell, and
 * the commands that somebody there can give, with the run's name. */
static json_t *
ending_afar(const struct tui_view *v)
{
    const struct etd_series *s = tui_evaluated(v->model, NULL, 0);
    const double rate = greatest_rate(v->model);
    json_t *facts = json_copy((json_t *)v->facts), *kept = kept_afar(v->model), *way;
    json_t *best = s && isfinite(s->best)
                       ? json_pack("{s:s, s:f, s:I}", "metric", s->name, "value",
                                   s->best, "ba", (json_int_t)s->best_ba)
                       : json_null();
    size_t i;
    json_object_set(facts, "directory", json_object_get(facts, "name"));
    if (rate > 0)
        json_object_set_new(facts, "greatest_lr", json_real(rate));
    json_t *ways = eti_ending_ways(v->app->cx, facts, kept);
    json_array_foreach(ways, i, way) if (strcmp(text_of(way, "key"), "l") != 0)
        json_object_set_new(way, "there", json_true());
    json_decref(facts);
    return json_pack("{s:o, s:o, s:o}", "best", best, "kept", kept, "ways", ways);
}

/* The facts of the run in FOLDER, if that is the run that is watched, and no folder of
 * the same name on this machine. NULL: it is not. */
static json_t *
read_facts(const struct tui_view *v, const char *folder)
{
    char file[PATH_MAX];
    json_t *facts = NULL;
    snprintf(file, sizeof file, "%s/run.json", folder);
    if (access(file, R_OK) != 0)
        return NULL;
    if (eti_facts_read(v->app->cx, folder, &facts) != ET_OK) {
        et_error_clear(v->app->cx);
        return NULL;
    }
    if (strcmp(text_of(facts, "id"), text_of(v->facts, "id")) != 0) {
        json_decref(facts);
        return NULL;
    }
    eti_facts_make_true(facts);
    return facts;
}

/* Reads m->ending of the run, once for each end of it. The facts that the run is
 * watched by are of its beginning: what it came to is read from its directory. */
static void
read_ending(const struct tui_view *v)
{
    struct tui_monitor *m = v->m;
    const bool is_far = v->app->source->class->retry != NULL;
    const char *folder = json_string_value(json_object_get(v->facts, "directory"));
    if (m->ending || !v->is_over || !(folder || is_far) || eti_facts_goes_on(v->facts))
        return;
    json_t *facts = folder ? read_facts(v, folder) : NULL;
    if (facts)
        m->ending = eti_ending(v->app->cx, eti_facts_goes_on(facts) ? v->facts : facts);
    else if (is_far)
        m->ending = ending_afar(v);
    else /* its file cannot be read: as far as it is known */
        m->ending = eti_ending(v->app->cx, v->facts);
    if (*text_of(facts, "reason"))
        json_object_set(v->app->source->facts, "reason",
                        json_object_get(facts, "reason"));
    json_decref(facts);
}

void
tui_ending_forget(struct tui_monitor *m)
{
    json_decref(m->ending);
    m->ending = NULL;
    m->hides_ending = false;
    m->ways = (struct tui_list){0};
}

bool
tui_ending_is_shown(const struct tui_view *v)
{
    read_ending(v);
    return v->m->ending && !v->m->hides_ending;
}

static const json_t *
ways_of(const struct tui_monitor *m)
{
    return json_object_get(m->ending, "ways");
}

/* "etude train --resume brisk-otter max_duration=8ep": the run by its name. */
static const char *
command_text(const struct tui_monitor *m, const json_t *facts, const json_t *way,
             char *buf, size_t size)
{
    const char *folder = text_of(facts, "directory"), *name = text_of(facts, "name");
    size_t i, n = (size_t)snprintf(buf, size, "etude");
    json_t *word;
    (void)m;
    json_array_foreach(json_object_get(way, "command"), i, word)
    {
        const char *text = json_string_value(word);
        const char *quote = strpbrk(text, "( ") ? "'" : ""; /* for a shell */
        if (n < size)
            n += (size_t)snprintf(buf + n, size - n, " %s%s%s", quote,
                                  *name && strcmp(text, folder) == 0 ? name : text,
                                  quote);
    }
    return buf;
}

/* ---- drawing ---- */

/* "accuracy   .9150  best, ep4   +.0105 on calm-heron (same seed)" */
static void
put_row(const struct tui_pane *p, int *y, const char *label, const char *value,
        enum tui_role role, const char *note)
{
    if (*y >= p->h)
        return;
    tui_put_cut(p, *y, 1, LABEL, TUI_DIM, label);
    int x = LABEL + 1 + tui_put_cut(p, *y, LABEL + 1, p->w - 1, role, value) + 2;
    x = x < LABEL + VALUE ? LABEL + VALUE : x;
    tui_put_cut(p, *y, x, p->w - 1, TUI_TEXT, note);
    ++*y;
}

static void
put_result(const struct tui_view *v, const struct tui_pane *p, int *y)
{
    const json_t *best = json_object_get(v->m->ending, "best");
    const json_t *earlier = json_object_get(v->m->ending, "earlier");
    char label[ET_METRIC_NAME], value[64], a[TUI_NUMBER], note[160] = "";
    double per = etd_model_length(v->model, "run/epoch_batches");
    const double difference = json_number_value(json_object_get(earlier, "difference"));
    if (!json_is_object(best))
        return;
    const char *metric = text_of(best, "metric");
    int n = snprintf(value, sizeof value, "%s",
                     tui_value(json_number_value(json_object_get(best, "value")), a));
    if (json_is_integer(json_object_get(best, "ba")))
        snprintf(
            value + n, sizeof value - (size_t)n, "  best, %s",
            tui_place_text(json_integer_value(json_object_get(best, "ba")), per, a));
    if (json_is_object(earlier))
        snprintf(note, sizeof note, "%s%s on %.64s%s", difference >= 0 ? "+" : "",
                 tui_value(difference, a), text_of(earlier, "name"),
                 json_is_true(json_object_get(earlier, "same_seed")) ? " (same seed)"
                                                                     : "");
    put_row(p, y, tui_metric_label(metric, label), value, TUI_BEST, note);
}

static void
put_loss(const struct tui_view *v, const struct tui_pane *p, int *y)
{
    const struct etd_series *s = tui_loss_of(v->model);
    char value[64], note[160] = "", a[TUI_NUMBER], b[TUI_NUMBER];
    if (!s)
        return;
    snprintf(value, sizeof value, "%s%s",
             isfinite(s->last) ? tui_value(s->last, a) : "not finite",
             isfinite(s->last) && s->bad > 0 ? ", not finite between" : "");
    for (int i = s->n_bins - 1; i >= 0 && (s->bad > 0 || !isfinite(s->last)); i--)
        if (s->bin[i].n > 0) {
            snprintf(note, sizeof note, "last finite: %s at batch %s",
                     tui_value(s->bin[i].max, a),
                     tui_count(s->bin[i].bin * v->model->width, b));
            break;
        }
    put_row(p, y, "loss", value, TUI_STRONG, note);
}

static void
put_facts(const struct tui_view *v, const struct tui_pane *p, int *y)
{
    const json_t *kept = json_object_get(v->m->ending, "kept");
    char value[64], note[128], a[TUI_NUMBER];
    const char *reason = text_of(v->facts, "reason");
    const struct etd_series *lr = etd_model_series_like(v->model, "lr-");
    const json_t *speed = json_object_get(v->m->ending, "speed");
    double rate = json_is_number(speed) ? json_number_value(speed)
                                        : tui_samples_per_second(v->model);
    if (strcmp(tui_run_state(v), "diverged") == 0 && lr)
        put_row(p, y, "lr", tui_value(lr->last, a), TUI_TEXT, "when it ended");
    bool by_batches;
    tui_length_text(v->model, value, &by_batches);
    int n =
        snprintf(note, sizeof note, "%s samples", tui_scaled((double)v->model->sp, a));
    if (!by_batches)
        snprintf(note + n, sizeof note - (size_t)n, ", %sba",
                 tui_count(v->model->ba, a));
    put_row(p, y, "trained", value, TUI_TEXT, note);
    if (!isnan(rate)) {
        snprintf(value, sizeof value, "%s samples/s", tui_rate(rate, a));
        put_row(p, y, "speed", value, TUI_TEXT, "");
    }
    if (json_is_object(kept)) {
        const json_int_t of = json_integer_value(json_object_get(kept, "n"));
        snprintf(note, sizeof note, "newest of %lld", (long long)of);
        put_row(p, y, "kept", text_of(kept, "label"), TUI_TEXT, of > 0 ? note : "");
    } else {
        put_row(p, y, "kept", "no checkpoint", TUI_TEXT, "");
    }
    if (*reason)
        put_row(p, y, "because", reason,
                tui_state_role(eti_state_kind_of(tui_run_state(v))), "");
}

static void
put_ways(const struct tui_view *v, const struct tui_pane *p, int y)
{
    struct tui_monitor *m = v->m;
    const json_t *ways = ways_of(m);
    const int n = (int)json_array_size(ways), text = 7, command = p->w >= 100 ? 44 : 0;
    const bool is_bad = eti_state_kind_of(tui_run_state(v)) == ETI_STATE_BROKEN;
    char line[PATH_MAX];
    bool is_cut = !command;
    tui_put(p, y++, 1, TUI_SECTION,
            is_bad ? "What helps, most likely first" : "What next");
    if (json_is_true(json_object_get(json_array_get(ways, 0), "there")))
        tui_put(p, y - 1, is_bad ? 33 : 13, TUI_DIM, "on its machine");
    m->ways.n = n;
    for (int i = 0; i < n && y < p->h; i++, y++) {
        const json_t *way = json_array_get(ways, (size_t)i);
        tui_put(p, y, 4, TUI_KEY, text_of(way, "key"));
        tui_put_cut(p, y, text, command ? command - 1 : p->w - 1, TUI_TEXT,
                    text_of(way, "text"));
        if (command)
            tui_put_cut(p, y, command, p->w - 1, TUI_DIM,
                        command_text(m, v->facts, way, line, sizeof line));
        if (i == m->ways.at) {
            tui_select(p, y, true);
            is_cut = is_cut || command + tui_width(line) > p->w - 1;
        }
    }
    if (y < p->h) {
        tui_put(p, y, 4, TUI_KEY, "y");
        int x = 7 + tui_put(p, y, 7, TUI_TEXT, "copy this report") + 3;
        if (p->w >= EXPORTS) {
            x += tui_put(p, y, x, TUI_KEY, "E") + 1;
            x += tui_put(p, y, x, TUI_TEXT, "export the curve") + 3;
        }
        x += tui_put(p, y, x, TUI_KEY, "esc") + 1;
        tui_put(p, y, x, TUI_TEXT, "the charts");
        y++;
    }
    const json_t *selected = json_array_get(ways, (size_t)m->ways.at);
    if (is_cut && selected) /* whole, where its row has no room for it */
        tui_put_wrapped(p, y + 1, 1, p->w - 2, TUI_DIM,
                        command_text(m, v->facts, selected, line, sizeof line));
}

void
tui_ending_draw(const struct tui_view *v, const struct tui_pane *p)
{
    int y = 1;
    tui_title(p, 0, "what came out", true);
    put_result(v, p, &y);
    put_loss(v, p, &y);
    put_facts(v, p, &y);
    put_ways(v, p, y + (p->h - y > 6));
}

/* ---- the ways on ---- */

/* Watches the run that has just been started. */
static void
watch(struct tui_app *app, const char *name)
{
    json_t *found = NULL;
    struct eti_index *index;
    struct tui_source *source;
    et_status status = eti_index_open(app->cx, NULL, &index);
    if (status == ET_OK)
        status = eti_index_find(index, "runs", name, &found);
    eti_index_close(&index);
    if (status == ET_OK && found &&
        (status = tui_source_dir(app->cx, found, &source)) == ET_OK)
        tui_app_attach(app, &source);
    else if (status == ET_OK)
        tui_say(app, TUI_BAD, "x %s has started, but its directory was not found",
                name);
    if (status != ET_OK)
        tui_say_error(app);
}

void
tui_ending_poll(struct tui_app *app, struct tui_monitor *m)
{
    if (!tui_job_poll(&m->again, 0))
        return;
    if (m->again.code == 0)
        watch(app, m->again_of);
    else
        tui_say(app, TUI_BAD, "x not started: %.200s",
                *m->again.error ? m->again.error : "etude failed");
}

/* How many words of a command are the run's, and not changes that can be edited. */
static size_t
fixed_words(const json_t *command)
{
    const char *first = json_string_value(json_array_get(command, 0));
    return first && strcmp(first, "train") == 0 ? 3 : 2;
}

/* Checkpoint I, from the newest; NULL: there are fewer. */
static const json_t *
kept_at(const struct tui_monitor *m, int i)
{
    return json_array_get(json_object_get(json_object_get(m->ending, "kept"), "all"),
                          (size_t)i);
}

/* Starts the way that was edited: its own words, and those of TEXT. */
static void
start(struct tui_app *app, void *data, int id, const char *text)
{
    struct tui_monitor *m = data;
    const json_t *way = json_array_get(ways_of(m), (size_t)m->ways.at);
    const json_t *command = json_object_get(way, "command");
    const char *argv[WORDS + 8];
    char words[TUI_FIELD], name[64] = "", *rest;
    uint64_t seed = 0;
    int n = 0;
    (void)id;
    if (!way || !app->source)
        return;
    for (size_t i = 0; i < fixed_words(command) && i < json_array_size(command); i++) {
        argv[n++] = json_string_value(json_array_get(command, i));
        if (i == 0)
            argv[n++] = "-d";
    }
    snprintf(m->again_of, sizeof m->again_of, "%s", argv[n - 1]);
    if (m->from > 0 && kept_at(m, m->from) && strcmp(argv[0], "train") == 0)
        argv[n - 1] = text_of(kept_at(m, m->from), "path");
    if (strcmp(argv[0], "rerun") == 0) {
        if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
            seed = (uint64_t)(tui_now(app) * 1e6);
        et_run_name_draw(seed, name);
        argv[n++] = "--run_name";
        argv[n++] = name;
        snprintf(m->again_of, sizeof m->again_of, "%s", name);
    }
    snprintf(words, sizeof words, "%s", text);
    for (char *w = strtok_r(words, " ", &rest); w && n < WORDS;
         w = strtok_r(NULL, " ", &rest))
        argv[n++] = w;
    argv[n] = NULL;
    if (tui_job_start(&m->again, app->cx, argv, NULL, 0) != ET_OK)
        tui_say_error(app);
    else
        tui_say(app, TUI_TEXT, "%s starts...", *name ? name : "it");
}

static bool
starts_from_kept(const json_t *way)
{
    const json_t *command = json_object_get(way, "command");
    const char *third = json_string_value(json_array_get(command, 2));
    return strcmp(json_string_value(json_array_get(command, 0)), "train") == 0 ||
           (third && strncmp(third, "load.path=", 10) == 0);
}

/* "It goes on from ep4-ba1876, the newest of 3": the first line of the question. */
static void
say_from(struct tui_app *app, const struct tui_monitor *m)
{
    const json_t *kept = json_object_get(m->ending, "kept");
    const int n = (int)json_integer_value(json_object_get(kept, "n"));
    char which[48] = "";
    if (n > 1 && m->from == 0)
        snprintf(which, sizeof which, ", the newest of %d; up: an older one", n);
    else if (n > 1)
        snprintf(which, sizeof which, ", %d before the newest of %d", m->from, n);
    snprintf(app->popup.line[0], sizeof *app->popup.line, "It goes on from %.80s%s.",
             text_of(kept_at(m, m->from), "label"), which);
}

/* Up goes to the checkpoint before, down to the one behind. What is typed stays, but
 * for the place that a new run begins at. */
static void
turn_checkpoint(struct tui_app *app, void *data, int by)
{
    struct tui_monitor *m = data;
    char text[TUI_FIELD];
    const char *was = text_of(kept_at(m, m->from), "path");
    const char *found = strstr(app->popup.field.text, was);
    if (m->from - by < 0 || !kept_at(m, m->from - by))
        return;
    m->from -= by;
    say_from(app, m);
    if (!found || !*was)
        return;
    snprintf(text, sizeof text, "%.*s%s%s", (int)(found - app->popup.field.text),
             app->popup.field.text, text_of(kept_at(m, m->from), "path"),
             found + strlen(was));
    tui_field_set(&app->popup.field, text);
}

/* Asks with which changes. */
static void
ask_changes(struct tui_app *app, struct tui_monitor *m, const json_t *way)
{
    char text[TUI_FIELD] = "", title[64];
    const json_t *command = json_object_get(way, "command");
    const json_t *kept = json_object_get(m->ending, "kept");
    size_t n = 0;
    m->from = 0;
    for (size_t i = fixed_words(command); i < json_array_size(command); i++)
        n += (size_t)snprintf(text + n, n < sizeof text ? sizeof text - n : 0, "%s%s",
                              n ? " " : "",
                              json_string_value(json_array_get(command, i)));
    snprintf(title, sizeof title, "%.60s", text_of(way, "text"));
    tui_popup_prompt(&app->popup, app->cx, title, text);
    const bool is_from_kept = starts_from_kept(way);
    if (is_from_kept) {
        tui_popup_line(&app->popup, "%s", "");
        say_from(app, m);
        app->popup.turned = turn_checkpoint;
    }
    if (strcmp(json_string_value(json_array_get(command, 0)), "train") == 0) {
        tui_popup_line(
            &app->popup,
            "The recipe is the same; its length may change: max_duration=8ep");
    } else {
        tui_popup_line(&app->popup, "A new run of this recipe, with these changes:");
        if (json_is_object(kept) && !is_from_kept)
            tui_popup_line(&app->popup, "load.path=... begins with what was saved.");
        tui_popup_line(&app->popup, "Gentler: optimizer.lr=..., gradient_clipping.");
    }
    app->popup.done = start;
    app->popup.data = m;
}

static void
copy_report(const struct tui_view *v)
{
    char text[TUI_COPY_MAX], line[PATH_MAX], a[TUI_NUMBER];
    const json_t *best = json_object_get(v->m->ending, "best");
    const struct etd_series *s = tui_loss_of(v->model);
    size_t i, n = (size_t)snprintf(text, sizeof text, "%s: %s",
                                   text_of(v->facts, "name"), tui_run_state(v));
    json_t *way;
    if (*text_of(v->facts, "reason"))
        n += (size_t)snprintf(text + n, sizeof text - n, ", %.200s",
                              text_of(v->facts, "reason"));
    if (json_is_object(best))
        n += (size_t)snprintf(
            text + n, sizeof text - n, "; best %.100s %s", text_of(best, "metric"),
            tui_value(json_number_value(json_object_get(best, "value")), a));
    if (s)
        n += (size_t)snprintf(text + n, sizeof text - n, "; loss %s",
                              tui_value(s->last, a));
    json_array_foreach(ways_of(v->m), i, way) if (n < sizeof text / 2) n +=
        (size_t)snprintf(text + n, sizeof text - n, "; %.600s",
                         command_text(v->m, v->facts, way, line, sizeof line));
    tui_copy(v->app, text);
}

/* The way with that key, selected; NULL: this end has no such way. */
static const json_t *
way_of(struct tui_monitor *m, const char *key)
{
    size_t i;
    json_t *way;
    json_array_foreach(ways_of(m), i, way) if (strcmp(text_of(way, "key"), key) == 0)
    {
        m->ways.at = (int)i;
        return way;
    }
    return NULL;
}

/* A command that works only on the run's machine is copied, for a shell there. */
static void
copy_for_there(const struct tui_view *v, const json_t *way)
{
    char line[PATH_MAX];
    command_text(v->m, v->facts, way, line, sizeof line);
    tui_copy(v->app, line);
    tui_say(v->app, TUI_TEXT, "copied, for its machine: %s", line);
}

static void
take_way(const struct tui_view *v, const json_t *way, const char *missing)
{
    if (!way)
        tui_say(v->app, TUI_WARN, "! %s", missing);
    else if (strcmp(text_of(way, "key"), "l") == 0)
        tui_logs_jump(v->app, v->model->t);
    else if (json_is_true(json_object_get(way, "there")))
        copy_for_there(v, way);
    else if (tui_app_watches(v->app))
        tui_say(v->app, TUI_WARN, "! nothing is started: %s", tui_app_watches(v->app));
    else
        ask_changes(v->app, v->m, way);
}

const char *
tui_ending_hint(const struct tui_monitor *m, enum tui_action action)
{
    const char *key = action == TUI_DO_ending_resume  ? "r"
                      : action == TUI_DO_ending_rerun ? "R"
                                                      : NULL;
    size_t i;
    json_t *way;
    if (!key)
        return NULL;
    json_array_foreach(ways_of(m), i, way) if (strcmp(text_of(way, "key"), key) == 0)
    {
        const json_t *first = json_array_get(json_object_get(way, "command"), 0);
        const bool resumes = strcmp(json_string_value(first), "train") == 0;
        return action == TUI_DO_ending_resume && !resumes ? "gentler" : NULL;
    }
    return "";
}

bool
tui_ending_act(const struct tui_view *v, enum tui_action action)
{
    struct tui_monitor *m = v->m;
    switch (action) {
    case TUI_DO_ending_resume:
        take_way(v, way_of(m, "r"), "nothing was saved: R begins anew");
        return true;
    case TUI_DO_ending_rerun:
        take_way(v, way_of(m, "R"), "its recipe is not known");
        return true;
    case TUI_DO_ending_log:
        take_way(v, way_of(m, "l"), "its log is not here");
        return true;
    case TUI_DO_ending_choose:
        take_way(v, json_array_get(ways_of(m), (size_t)m->ways.at), "nothing to do");
        return true;
    case TUI_DO_ending_copy:
        copy_report(v);
        return true;
    case TUI_DO_ending_export:
        tui_chart_export(v);
        return true;
    case TUI_DO_ending_charts:
        m->hides_ending = true;
        return true;
    default:
        return tui_list_act(&m->ways, action);
    }
}
