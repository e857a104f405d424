/* SPDX-License-Identifier: Apache-2.0 */
/* ends.c: the page of a run that has ended, whole (ends.txt, see whole.h), and what its
 * ways on start, word by word. `etude`, which they start, is this program once more. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "t/tap.h"
#include "t/tui/made.h"
#include "t/tui/whole.h"
#include "t/unit/store.h"

static struct et_ctx *cx;

/* What is known of the end: two evaluations, three checkpoints, three ways. */
#define KEPT                                                                           \
    "\"kept\": {\"label\": \"ep4-ba40\", \"n\": 3, \"all\": ["                         \
    "{\"label\": \"ep4-ba40\", \"path\": \"old/ep4\"}, "                               \
    "{\"label\": \"ep3-ba30\", \"path\": \"old/ep3\"}, "                               \
    "{\"label\": \"ep1-ba10\", \"path\": \"old/ep1\"}]}, "
#define WAYS                                                                           \
    "\"ways\": [{\"key\": \"r\", \"text\": \"go on for longer\", \"command\": "        \
    "[\"train\", \"--resume\", \"runs/calm-heron\", \"max_duration=8ep\", "            \
    "\"note=(a)\"]}, {\"key\": \"R\", \"text\": \"begin anew from what was saved\", "  \
    "\"command\": [\"rerun\", \"runs/calm-heron\", \"load.path=old/ep4\", "            \
    "\"seed=4\"]}, {\"key\": \"l\", \"text\": \"read its log\", \"command\": "         \
    "[\"logs\", \"runs/calm-heron\", \"a b\"]}]"
static const char all_of_it[] =
    "{\"best\": {\"metric\": \"metrics/eval/Accuracy\", \"value\": 0.875, \"ba\": 30}, "
    "\"earlier\": {\"name\": \"old-yak\", \"difference\": 0.0125, \"same_seed\": "
    "true}, "
    "\"speed\": 123.5, " KEPT WAYS "}";
static const char worse[] =
    "{\"best\": {\"metric\": \"metrics/eval/CrossEntropy\", \"value\": 1.5}, "
    "\"earlier\": {\"name\": \"old-yak\", \"difference\": -0.25, \"same_seed\": "
    "false}, "
    "\"kept\": {\"label\": \"ep4\", \"n\": 1}, " WAYS "}";
static const char hardly[] =
    "{\"best\": null, \"kept\": null, \"ways\": [{\"key\": \"R\", \"text\": \"begin "
    "anew, gentler\", \"there\": true, \"command\": [\"rerun\", \"calm-heron\", "
    "\"optimizer.lr=0.01\"]}]}";

static const char gentler[] =
    "{\"ways\": [{\"key\": \"r\", \"text\": \"gentler\", \"command\": [\"rerun\", "
    "\"runs/calm-heron\"]}]}";

static void
page(const struct tui_view *v, const struct tui_pane *p, bool focus)
{
    (void)focus;
    tui_ending_draw(v, p);
}

static void
shows(struct made *m, int rows, int cols, const char *name)
{
    fputs(made_panel_text(m, page, rows, cols, true), whole_text());
    whole_is(name);
}

/* A run of 40 batches whose end is ENDING; its loss is not finite at batch BAD. */
static struct made *
ended(const char *state, const char *ending, int bad)
{
    struct made *m =
        made_run(cx, "{\"name\": \"calm-heron\", \"directory\": \"runs/calm-heron\", "
                     "\"state\": \"running\", \"id\": \"17\"}");
    made_open(m, TUI_IN_monitor, 36, 120);
    MADE_SAY(m, ET_RECORD_RUN, 0, "running", {"run/epochs", 4}, {"run/batches", 40},
             {"run/epoch_batches", 10});
    for (int i = 1; i <= 40; i++) {
        m->at.ba = i;
        m->at.sp = 80 * i;
        m->at.ep = i / 10;
        m->at.t += .5;
        MADE_SAY(m, ET_RECORD_BATCH, 0, NULL,
                 {"loss/train/total", i == bad  ? NAN
                                      : i == 35 ? 1.5
                                                : 4 - i / 20.},
                 {"lr-SGD/group0", i < 30 ? .1 : .05});
        if (i % 10 == 0)
            made_say(m, ET_RECORD_EPOCH, 0, NULL, NULL, 0);
    }
    json_object_set_new(m->source.facts, "state", json_string(state));
    made_state(m, state);
    m->source.link = TUI_LINK_ENDED;
    struct tui_view v = made_view(m);
    v.m->ending = json_loads(ending, 0, NULL);
    if (!v.m->ending)
        bail("no JSON: %s", ending);
    return m;
}

static void
show_pages(void)
{
    struct made *m = ended("finished", all_of_it, 0);
    struct tui_view v = made_view(m);
    shows(m, 22, 120, "finished: all is known");
    shows(m, 22, 80, "finished: the command that is selected is below");
    v.m->ways.at = 1;
    shows(m, 22, 80, "finished: another one");
    shows(m, 22, 63, "finished: no room for the export");
    shows(m, 9, 80, "finished: in few rows");
    made_free(&m);
    m = ended("diverged", worse, 20);
    json_object_set_new(m->source.facts, "reason", json_string("the loss is NaN"));
    shows(m, 22, 120, "diverged: what helps");
    made_free(&m);
    m = ended("failed", hardly, 40);
    shows(m, 22, 120, "failed: hardly anything is known");
    made_free(&m);
}

/* ---- what is started ---- */

/* What the question shows now; what it began with, and what is said of it. */
static void
asks(struct made *m, const char *title, const char *text, const char *line,
     const char *name)
{
    const struct tui_popup *p = &m->app->popup;
    is_str(p->title, title, "%s", name);
    is_str(p->field.text, text, "with these changes");
    is_str(p->n_lines > 0 ? p->line[0] : "", line, "from there");
}

/* Enter starts WANT: the words behind "etude". */
static void
starts(struct made *m, const char *want, const char *name)
{
    char got[400] = "";
    struct tui_view v = made_view(m);
    unlink("words");
    made_press(m, "<enter>");
    for (int i = 0; i < 600 && v.m->again.pid > 0; i++) {
        tui_ending_poll(m->app, v.m);
        usleep(10000);
    }
    FILE *f = fopen("words", "r");
    if (f && !fgets(got, sizeof got, f))
        got[0] = '\0';
    if (f)
        fclose(f);
    is_str(got, want, "%s", name);
}

static void
test_resume(void)
{
    struct made *m = ended("finished", all_of_it, 0);
    made_press(m, "jr");
    asks(m, "go on for longer", "max_duration=8ep note=(a)",
         "It goes on from ep4-ba40, the newest of 3; up: an older one.",
         "r asks with which changes it goes on");
    starts(m, "train -d --resume runs/calm-heron max_duration=8ep note=(a)",
           "which are its words");
    is_str(m->app->message,
           "x runs/calm-heron has started, but its directory was not found",
           "and the run is looked for");
    made_press(m, "r<up><up>");
    asks(m, "go on for longer", "max_duration=8ep note=(a)",
         "It goes on from ep1-ba10, 2 before the newest of 3.",
         "up goes to an older checkpoint");
    made_press(m, "<up>");
    is_str(m->app->popup.line[0], "It goes on from ep1-ba10, 2 before the newest of 3.",
           "the oldest is the last");
    made_press(m, "<down>");
    starts(m, "train -d --resume old/ep3 max_duration=8ep note=(a)",
           "it goes on from that one");
    made_press(m, "r<down>");
    asks(m, "go on for longer", "max_duration=8ep note=(a)",
         "It goes on from ep4-ba40, the newest of 3; up: an older one.",
         "the next question is of the newest again, before which is none");
    made_press(m, "<ctrl-u>broken");
    starts(m, "", "what cannot be started");
    is_str(m->app->message, "x not started: no such option", "is told, and why");
    made_free(&m);
}

static void
test_rerun(void)
{
    char want[200], *run;
    struct made *m = ended("finished", all_of_it, 0);
    struct tui_view v = made_view(m);
    made_press(m, "R");
    is_int(v.m->ways.at, 1, "the way of a key is selected");
    asks(m, "begin anew from what was saved", "load.path=old/ep4 seed=4",
         "It goes on from ep4-ba40, the newest of 3; up: an older one.",
         "R asks with which changes it begins anew");
    made_press(m, "<up>");
    is_str(m->app->popup.field.text, "load.path=old/ep3 seed=4",
           "up changes the place, and nothing beside it");
    made_press(m, "<ctrl-a>x=1 <up>");
    is_str(m->app->popup.field.text, "x=1 load.path=old/ep1 seed=4",
           "wherever it stands");
    made_press(m, "<ctrl-u>y=2<down>");
    is_str(m->app->popup.field.text, "y=2", "but where it was taken away");
    run = v.m->again_of;
    made_press(m, " ");
    made_press(m, "<enter>");
    for (int i = 0; i < 600 && v.m->again.pid > 0; i++) {
        tui_ending_poll(m->app, v.m);
        usleep(10000);
    }
    snprintf(want, sizeof want, "x %.60s has started, but its directory was not found",
             run);
    is_str(m->app->message, want, "the new run has a name, by which it is looked for");
    FILE *f = fopen("words", "r");
    char got[200] = "";
    if (f && fgets(got, sizeof got, f))
        fclose(f);
    snprintf(want, sizeof want, "rerun -d runs/calm-heron --run_name %.60s y=2", run);
    is_str(got, want, "and which it is given");
    ok(strlen(run) > 4 && strcmp(run, "runs/calm-heron") != 0, "which is a new one");
    made_free(&m);
}

static void
test_others(void)
{
    struct made *m = ended("finished", all_of_it, 0);
    struct tui_view v = made_view(m);
    ok(tui_ending_hint(v.m, TUI_DO_ending_resume) == NULL,
       "the bar says as always how it goes on");
    made_press(m, "y");
    is_str(
        m->app->message,
        "copied: calm-heron: finished; best metrics/eval/Accuracy .8750; loss 2.0000; "
        "etude train --resume calm-heron max_duration=8ep 'note=(a)'; etude rerun "
        "calm-heron load.path=old/ep4 seed=4; etude logs calm-heron 'a b'",
        "y copies what came out, and the ways on");
    m->app->config.is_readonly = true;
    made_press(m, "R");
    is_int(m->app->popup.kind, TUI_NO_POPUP, "who only watches starts nothing");
    ok(strncmp(m->app->message, "! nothing is started: ", 22) == 0, "which is said");
    m->app->config.is_readonly = false;
    made_press(m, "<esc>");
    ok(v.m->hides_ending, "esc shows the charts");
    tui_ending_forget(v.m);
    ok(!v.m->ending && !v.m->hides_ending && v.m->ways.at == 0,
       "the next end is shown from its first way on");
    made_free(&m);
    m = ended("diverged", gentler, 0);
    v = made_view(m);
    is_str(tui_ending_hint(v.m, TUI_DO_ending_resume), "gentler",
           "or that it begins anew, gentler");
    json_object_set_new(m->source.facts, "reason", json_string("the loss is NaN"));
    made_press(m, "y");
    is_str(m->app->message,
           "copied: calm-heron: diverged, the loss is NaN; loss 2.0000; etude rerun "
           "calm-heron",
           "why it ended is copied, too");
    made_free(&m);
    m = ended("failed", hardly, 0);
    v = made_view(m);
    made_press(m, "r");
    is_str(m->app->message, "! nothing was saved: R begins anew",
           "what cannot go on says so");
    is_str(tui_ending_hint(v.m, TUI_DO_ending_resume), "", "nor does the bar");
    ok(tui_ending_hint(v.m, TUI_DO_ending_rerun) == NULL, "but that it can begin anew");
    made_press(m, "R");
    is_str(m->app->message,
           "copied, for its machine: etude rerun calm-heron optimizer.lr=0.01",
           "what works on another machine is copied");
    made_free(&m);
}

static void
retry(struct tui_source *s)
{
    (void)s;
}

/* What a run on another machine came to is what it has told. */
static void
test_far(void)
{
    struct made *m = ended("diverged", hardly, 0);
    struct tui_view v = made_view(m);
    struct tui_source_class far = *m->source.class;
    far.retry = retry;
    m->source.class = &far;
    tui_ending_forget(v.m);
    json_object_del(m->source.facts, "directory");
    made_say(m, ET_RECORD_CHECKPOINT, 0, "saved ep4-ba40", NULL, 0);
    MADE_SAY(m, ET_RECORD_EVAL, 0, "eval", {"metrics/eval/Accuracy", .75});
    ok(tui_ending_is_shown(&v), "the end of a run far away is shown");
    FILE *f = whole_text();
    char *text = json_dumps(v.m->ending, JSON_INDENT(1) | JSON_SORT_KEYS);
    fprintf(f, "%s\n", text);
    free(text);
    whole_is("what is known of the end of a run far away");
    shows(m, 22, 120, "far away: its ways on");
    made_free(&m);
}

/* The facts in the run's directory are those of the end, where they are this run's. */
static void
test_near(void)
{
    static const char facts[] =
        "{\"name\": \"calm-heron\", \"id\": \"%s\", \"state\": \"failed\", "
        "\"reason\": \"disk full\", \"started\": 1, \"ended\": 2}";
    static const char *const ids[] = {"17", "18"};
    for (int i = 0; i < 2; i++) {
        struct made *m = ended("failed", hardly, 0);
        struct tui_view v = made_view(m);
        mkdir("runs/calm-heron", 0700);
        FILE *f = fopen("runs/calm-heron/run.json", "w");
        if (!f || fprintf(f, facts, ids[i]) < 0 || fclose(f) != 0)
            bail("no facts");
        tui_ending_forget(v.m);
        ok(tui_ending_is_shown(&v), "the end of a run is read");
        const char *why = json_string_value(json_object_get(m->source.facts, "reason"));
        is_str(why ? why : "-", i == 0 ? "disk full" : "-",
               i == 0 ? "with why it ended" : "but not that of another run");
        made_free(&m);
    }
}

/* `etude WORDS`: its words, or an error. */
static int
be_command(int argc, char **argv)
{
    if (strcmp(argv[argc - 1], "broken") == 0) {
        fprintf(stderr, "no such option\n");
        return 1;
    }
    FILE *f = fopen("words", "w");
    for (int i = 1; f && i < argc; i++)
        fprintf(f, "%s%s", i > 1 ? " " : "", argv[i]);
    return f && fclose(f) == 0 ? 0 : 1;
}

int
main(int argc, char **argv)
{
    struct et_alloc_stats stats;
    char dir[] = "/tmp/etude-ends.XXXXXX";
    if (argc > 1)
        return be_command(argc, argv);
    setenv("TZ", "UTC", 1);
    whole_open("ends");
    if (et_ctx_new(&cx) != ET_OK || !mkdtemp(dir) || chdir(dir) != 0)
        bail("no folder");
    setenv("XDG_STATE_HOME", dir, 1);
    mkdir("runs", 0700);
    show_pages();
    test_far();
    whole_close();
    test_resume();
    test_rerun();
    test_others();
    test_near();
    if (chdir("/") != 0)
        bail("cannot leave");
    store_remove(dir);
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
