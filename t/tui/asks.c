/* SPDX-License-Identifier: Apache-2.0 */
/* asks.c: what Monitor's keys ask of a run, letter for letter, and what they refuse to.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/tui/made.h"
#include "tui/samples.h"

static struct et_ctx *cx;

static struct made *
run(void)
{
    struct made *m =
        made_run(cx, "{\"name\": \"calm-yak\", \"state\": \"running\","
                     " \"config\": {\"optimizer.lr\": 0.25},"
                     " \"algorithms\": [\"ema\", \"label_smoothing\", \"blurpool\"]}");
    made_open(m, TUI_IN_monitor, 40, 120);
    made_state(m, "running");
    made_batches(m, 7, 100, 8);
    made_say(m, ET_RECORD_CHECKPOINT, 0, "ep0-ba7", NULL, 0);
    made_batches(m, 5, 100, 8);
    return m;
}

static void
shows(struct made *m, const char *text, const char *name)
{
    if (!ok(strstr(made_screen(m), text) != NULL, "%s", name))
        diag("no '%s' in\n%s", text, made_screen(m));
}

static void
test_requests(void)
{
    static const struct {
        const char *state, *keys, *asked, *said;
    } rows[] = {
        {"running", "ck", "checkpoint", "a checkpoint is asked for; events show"},
        {"running", "cp", "pause", "asked to pause; events show"},
        {"paused", "cc", "continue", "asked to continue; events show"},
        {"running", "cs<enter>", "stop", "asked to stop; events show"},
        {"running", "cs<down><enter>", "", ""},
        {"running", "cs<esc>", "", ""},
        {"running", "cKcalm-yak<enter>", "kill", "asked to end at once; events show"},
        {"running", "cKcalm-ya<enter>", "", "type the run's name, calm-yak"},
        {"running", "ct", "take", "asked for; events show"},
        {"running", "cc", "", "(it is not paused)"},
        {"paused", "cp", "", "(it is)"},
        {"running", "cl<ctrl-u>.5<enter>", "set optimizer.lr .5",
         "asked: set optimizer.lr .5; events show"},
        {"running", "cl<ctrl-u>0 <enter>", "set optimizer.lr 0 ", ""},
        {"running", "cl<ctrl-u>0.00001234567890123456789<enter>",
         "set optimizer.lr 0.00001234567890123456789",
         "asked: set optimizer.lr 0.00001234567890123456789; events show"},
        {"running", "cl<ctrl-u>-1<enter>", "", "a number that is not below 0"},
        {"running", "cl<ctrl-u>inf<enter>", "", "a number that is not below 0"},
        {"running", "cl<ctrl-u>1x<enter>", "", "a number that is not below 0"},
        {"running", "cl<ctrl-u><enter>", "", "a number that is not below 0"},
        {"running", "c<down><down><down><down><down><down><down><enter>",
         "algo ema off", "asked: algo ema off; events show"},
        {"running", "c<down><down><down><down><down><down><down><down><enter>",
         "algo label_smoothing off", ""},
        {"running", "aslow disk<enter>", "note: slow disk", "noted: slow disk"},
        {"running", "a <enter>", "", "a note has some words"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct made *m = run();
        made_state(m, rows[i].state);
        made_press(m, rows[i].keys);
        is_str(m->asked[0], rows[i].asked, "%s: '%s' asks for '%s'", rows[i].state,
               rows[i].keys, rows[i].asked);
        shows(m, rows[i].said, "and the screen says so");
        made_free(&m);
    }
}

/* What the menu shows: commands of the command line, and what cannot be asked. */
static void
test_menu(void)
{
    struct made *m = run();
    made_press(m, "c");
    static const char *const commands[] = {"checkpoint now",
                                           "etude checkpoint calm-yak",
                                           "etude pause calm-yak",
                                           "etude stop calm-yak",
                                           "etude kill calm-yak",
                                           "etude take calm-yak",
                                           "etude set calm-yak optimizer.lr=VALUE",
                                           "turn ema off",
                                           "etude algo calm-yak ema off",
                                           "turn blurpool off  ",
                                           "not in the run",
                                           "turn mixup on",
                                           "same as: etude checkpoint calm-yak"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        shows(m, commands[i], "the menu says what each row does, and the command");
    made_press(m, "<down>");
    shows(m, "same as: etude pause calm-yak", "that of the selected row is whole");
    made_press(m, "<esc>");
    MADE_SAY(m, ET_RECORD_ALGORITHM, 0, "ema", {"fired", 9}, {"off", 1});
    made_press(m, "c");
    shows(m, "turn ema on", "an algorithm that says it is off is turned on");
    made_press(m, "<esc>");
    m->at.t += 1;
    made_say(m, ET_RECORD_COMMAND, 0, "me algo ema on", NULL, 0);
    made_press(m, "c");
    shows(m, "turn ema off", "unless it was turned on since");
    made_press(m, "<esc>");
    made_say(m, ET_RECORD_COMMAND, 0, "me algo ema off -> refused: no", NULL, 0);
    made_press(m, "c");
    shows(m, "turn ema off", "what was refused did nothing");
    made_press(m, "<esc>");
    m->at.t += 1;
    MADE_SAY(m, ET_RECORD_ALGORITHM, 0, "ema", {"off", 1});
    made_press(m, "c");
    shows(m, "turn ema on", "and what it says itself later holds");
    made_free(&m);
}

static void
test_rate(void)
{
    struct made *m = run();
    made_press(m, "cl");
    shows(m, "| 0.25  ", "the rate that is asked for begins as the recipe's");
    shows(m, "same as: etude set calm-yak optimizer.lr=VALUE", "with the command");
    made_press(m, "<esc>");
    made_say(m, ET_RECORD_COMMAND, 0, "me set optimizer.lr 0.125 -> was 0.25", NULL, 0);
    made_say(m, ET_RECORD_COMMAND, 0, "me set optimizer.lr 9 -> refused: no", NULL, 0);
    MADE_SAY(m, ET_RECORD_BATCH, 0, NULL, {"lr-SGD/group0", .0625});
    made_press(m, "cl");
    shows(m, "| 0.125  ", "or as what it was set to since,");
    shows(m, "Times the schedule it is .0625 now.",
          "with what the schedule makes of it");
    made_free(&m);
}

/* An algorithm that needs options is asked for them. */
static void
test_options(void)
{
    struct made *m = run();
    made_press(m, "c");
    int row = 0;
    while (row++ < 40 && !strstr(made_screen(m), ">    turn gradient_clipping"))
        made_press(m, "<down>");
    const char *line = strstr(made_screen(m), "turn gradient_clipping on...");
    if (!ok(line != NULL, "one that cannot do without an option says that it asks"))
        bail("%s", made_screen(m));
    shows(m,
          "same as: etude algo calm-yak gradient_clipping on "
          "clipping_type=norm clipping_threshold=VALUE",
          "its command has what is to be filled in");
    made_press(m, "<enter>");
    shows(m, "gradient_clipping: what it cannot do without", "then it asks");
    made_press(m, "<enter>");
    shows(m, "clipping_threshold= needs a value behind its =", "for each");
    is_str(m->asked[0], "", "and nothing is asked of the run before");
    made_press(m, "0.5<enter>");
    is_str(m->asked[0],
           "algo gradient_clipping on clipping_type=norm clipping_threshold=0.5",
           "then the run is asked with all of them");
    made_free(&m);
}

static void
test_losses(void)
{
    struct made *m = run();
    made_press(m, "cK");
    shows(m, "5 batches since the last checkpoint are lost.",
          "a kill says what it loses");
    made_batches(m, 3, 100, 8);
    shows(m, "8 batches since the last checkpoint are lost.", "by now");
    m->source.link = TUI_LINK_ENDED;
    shows(m, "the run has ended: nothing is asked of it any more",
          "and goes when the run ends");
    made_free(&m);
}

/* Who may not, and when nobody can. */
static void
test_refusals(void)
{
    struct made *m = run();
    m->refusal = "its hub is gone";
    made_press(m, "cp");
    shows(m, "Nothing can be asked of it: its hub is gone.",
          "why nothing can be asked");
    shows(m, "(not now)", "stands at each row");
    is_str(m->asked[0], "", "none of which does anything");
    made_press(m, "<esc>");
    m->refusal = NULL;
    snprintf(m->source.lease, sizeof m->source.lease, "ann");
    made_press(m, "cp");
    shows(m, "(taken)", "a run that another has taken takes nothing");
    shows(m, "ann", "and says who that is");
    is_str(m->asked[0], "", "nor is it asked");
    made_press(m, "<esc>");
    m->source.is_holder = true;
    made_press(m, "cp");
    is_str(m->asked[0], "pause", "of who has taken it it does");
    m->mute = "the disk is full";
    made_press(m, "a");
    shows(m, "! no note can be made: the disk is full",
          "why no note can be made is said");
    m->mute = NULL;
    m->app->is_viewer = true;
    made_press(m, "c");
    shows(m, "You watch this run as a viewer.", "a viewer is told that he is one");
    made_press(m, "n");
    ok(m->app->is_viewer, "who goes on watching stays one");
    made_press(m, "co");
    ok(!m->app->is_viewer && strcmp(m->asked[0], "take") == 0,
       "who becomes its operator takes the run");
    shows(m, "etude pause calm-yak", "and has the menu");
    made_press(m, "<esc>");
    m->app->config.is_readonly = true;
    made_press(m, "c");
    shows(m, "started with --readonly", "one who began with --readonly cannot");
    made_free(&m);
}

/* The chart's metrics. */
static void
test_metrics(void)
{
    struct made *m = run();
    MADE_SAY(m, ET_RECORD_BATCH, 0, NULL, {"loss/train/total", 1},
             {"lr-SGD/group0", .1}, {"metrics/train/Accuracy", .5});
    made_press(m, "oacc<enter>");
    struct tui_monitor *state = tui_app_state(m->app, TUI_IN_monitor);
    is_str(state->chart[0].name[0], "metrics/train/Accuracy",
           "o finds a metric by its name");
    ok(state->chart[0].is_chosen, "which stays");
    made_press(m, "Olr-<enter>");
    is_str(state->chart[0].name[1], "lr-SGD/group0", "O puts a second one beside it");
    made_press(m, "o(none)<enter>");
    is_str(state->chart[0].name[0], "lr-SGD/group0",
           "without the first the second takes its place");
    is_str(state->chart[0].name[1], "", "and has none beside it");
    made_free(&m);
}

/* Keys that move the cursor, the marks and the scale of the chart. */
static int
times(const char *screen, const char *text)
{
    int n = 0;
    for (const char *at = screen; (at = strstr(at, text)); at += strlen(text))
        n++;
    return n;
}

static void
test_export(void)
{
    static const char none[] = "(the chart has no series)";
    struct made *m = made_run(cx, "{\"name\": \"new-yak\", \"state\": \"running\"}");
    made_open(m, TUI_IN_monitor, 40, 120);
    made_state(m, "running");
    made_press(m, "E");
    shows(m, "txt: this screen as text", "there is something to export");
    is_int(times(made_screen(m), none), 2,
           "a chart without series is no CSV and no SVG, and the screen is a text");
    made_free(&m);
    m = run();
    shows(m, "loss", "a chart of the loss is there");
    made_press(m, "E");
    shows(m, "csv: the values of its series", "one with series can be exported");
    is_int(times(made_screen(m), none), 0, "as each of them");
    made_free(&m);
}

static void
test_chart_keys(void)
{
    struct made *m = run();
    MADE_SAY(m, ET_RECORD_RUN, 0, "running", {"run/batches", 24});
    struct tui_monitor *state = tui_app_state(m->app, TUI_IN_monitor);
    made_press(m, "m");
    ok(state->inspects && fabs(state->cursor - 7. / 24) < 1e-9,
       "m puts the cursor at the newest mark");
    shows(m, "checkpoint after 7ba  ep0-ba7", "and says what it is");
    made_press(m, "m");
    ok(fabs(state->cursor - 7. / 24) < 1e-9, "behind the last it begins again");
    made_say(m, ET_RECORD_ANNOTATION, 0, "odd", NULL, 0);
    made_press(m, "<esc>mm");
    ok(fabs(state->cursor - 12. / 24) < 1e-9, "each time one further back");
    made_press(m, "i");
    ok(!state->inspects, "i takes the cursor away");
    made_press(m, "i");
    ok(state->inspects && fabs(state->cursor - .5) < 1e-9,
       "and puts it where the run is");
    made_press(m, "<esc>sssss");
    is_int(state->smooth, 4, "s smooths as far as it goes");
    made_press(m, "SSSSSS");
    is_int(state->smooth, 0, "S likewise the other way");
    made_press(m, "+");
    ok(state->chart[0].to - state->chart[0].from < 1 - 1e-9, "+ shows a part");
    const double part = state->chart[0].to - state->chart[0].from;
    made_press(m, "+-");
    is_near(state->chart[0].to - state->chart[0].from, part, 1e-9, "- undoes it");
    made_press(m, "0");
    ok(state->chart[0].from == 0 && state->chart[0].to == 1, "0 shows all of it");
    made_press(m, "y");
    ok(state->chart[0].is_log && !state->chart[1].is_log,
       "y is for the chart that has the focus");
    made_press(m, "<space>");
    ok(m->app->is_frozen, "space freezes");
    made_press(m, "z<esc>");
    ok(!state->is_full && m->app->is_frozen, "esc undoes one thing after the other");
    made_press(m, "<esc>");
    ok(!m->app->is_frozen, "the last of them last");
    made_free(&m);
}

/* ---- samples ---- */

static int n_asked;

static et_status
count_asked(void *owner, struct tui_job *job, const char *const *words,
            const char *const *after)
{
    (void)owner, (void)job, (void)words, (void)after;
    n_asked++;
    return ET_OK;
}

/* Data of TOTAL samples, of which the first SHOWN have come; right is pressed when the
 * last of them stands on the screen: how often others are asked for. */
static int
asked_behind(int total, int shown)
{
    struct tui_samples s = {.is_open = true, .start = count_asked, .shown = 1};
    json_t *list = json_array();
    for (int i = 0; i < shown; i++)
        json_array_append_new(list, json_object());
    s.all = json_pack("{s:i, s:o}", "samples", total, "shown", list);
    s.first = shown - 1;
    n_asked = 0;
    (void)tui_samples_act(&s, TUI_DO_everywhere_right);
    json_decref(s.all);
    return n_asked;
}

static void
test_samples(void)
{
    is_int(asked_behind(9, 8), 1, "right asks for the samples behind those that came");
    is_int(asked_behind(8, 8), 0, "behind the last there are none to ask for");
}

/* ---- filters ---- */

static void
test_filter(void)
{
    struct made *m = run();
    struct tui_sieve s = {0};
    tui_sieve_set(m->app, &s, "a=1");
    is_str(s.text, "a=1", "a filter is what was typed");
    tui_sieve_set(m->app, &s, "a<");
    ok(!*s.text && !s.filter, "a text that is none is not kept: all pass");
    tui_sieve_release(&s);
    made_free(&m);
}

int
main(void)
{
    struct et_alloc_stats stats;
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    setenv("TZ", "UTC", 1);
    test_requests();
    test_menu();
    test_rate();
    test_options();
    test_losses();
    test_refusals();
    test_metrics();
    test_export();
    test_chart_keys();
    test_samples();
    test_filter();
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
