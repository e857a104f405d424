/* SPDX-License-Identifier: Apache-2.0 */
/* hosts.c: the screen Workers by what workers answer. Those who are asked are this
 * program once more, which answers as `etude worker` would. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/seams.h"
#include "core/library/facts.h"
#include "dist/wire/keys.h"
#include "t/tap.h"
#include "t/tui/picture.h"
#include "t/tui/whole.h"
#include "tui/workers.h"

/* ---- the commands that the screen starts ---- */

static int
be_command(int n, char **word)
{
    FILE *f = fopen("asked", "a");
    for (int i = 1; f && i < n; i++)
        fprintf(f, "%s%s", word[i], i + 1 < n ? " " : "\n");
    if (f)
        fclose(f);
    const char *what = word[2], *name = n > 3 ? word[3] : "";
    if (access("silent", F_OK) == 0) {
        fputs("no route to host\n", stderr);
        return 69;
    }
    if (strcmp(what, "list") == 0 && strcmp(name, "lab") == 0)
        puts(
            "[{\"name\": \"lab\", \"state\": \"ready\", \"host\": \"h1\", \"version\": "
            "\"0.9\", \"role\": \"operator\", \"cores\": 96, \"gpus\": 4, \"rtt_ms\": "
            "12.4}]");
    else if (strcmp(what, "list") == 0 && strcmp(name, "old") == 0)
        puts("[{\"name\": \"old\", \"state\": \"version\", \"why\": \"speaks protocol "
             "1\"}]");
    else if (strcmp(what, "list") == 0 && strcmp(name, "shut") == 0)
        puts("[{\"name\": \"shut\", \"state\": \"refused\", \"why\": \"key \\u001b[2J "
             "not "
             "allowed\"}]");
    else if (strcmp(what, "list") == 0)
        puts("[{\"state\": \"lost\", \"why\": \"nobody answers\"}]");
    else if (strcmp(what, "test") == 0 && strcmp(name, "old") == 0)
        puts(
            "{\"host\": \"h3\", \"version\": \"0.7\", \"role\": \"viewer\", \"cores\": "
            "8, "
            "\"gpus\": 0, \"rtt_ms\": 1234, \"bandwidth\": 7e6, \"uptime_s\": 90000, "
            "\"disk_free\": 61000000000, \"runs\": 0, \"run\": \"\", \"driver\": \"\", "
            "\"gpu\": []}");
    else if (strcmp(what, "test") == 0 && strcmp(name, "shut") == 0)
        puts("{\"host\": \"h4\", \"version\": \"0.8\", \"role\": \"operator\", "
             "\"cores\": "
             "12, \"gpus\": 5, \"rtt_ms\": 88, \"bandwidth\": 9e8, \"uptime_s\": "
             "700000, "
             "\"disk_free\": 42000000, \"runs\": 2, \"run\": \"odd-newt\", \"driver\": "
             "\"570\", \"gpu\": [{\"util\": 0.1, \"used\": 1e9, \"total\": 16e9}, "
             "{\"util\": "
             "0.3, \"used\": 4e9, \"total\": 16e9}, {\"util\": 0.5, \"used\": 7e9, "
             "\"total\": 16e9}, {\"util\": 0.7, \"used\": 11e9, \"total\": 24e9}, "
             "{\"util\": "
             "0.9, \"used\": 23e9, \"total\": 24e9}]}");
    else if (strcmp(what, "test") == 0)
        puts(
            "{\"host\": \"h2\", \"version\": \"0.9\", \"role\": \"viewer\", \"cores\": "
            "64, \"gpus\": 3, \"rtt_ms\": 3.04, \"bandwidth\": 2.5e8, \"uptime_s\": "
            "260000, \"disk_free\": 3500000000000, \"runs\": 1, \"run\": \"calm-yak\", "
            "\"driver\": \"550.1\", \"gpu\": [{\"util\": 0.5, \"used\": 8e10, "
            "\"total\": "
            "8e10}, {\"util\": null, \"used\": null, \"total\": null}, {\"util\": 1, "
            "\"used\": 4e10, \"total\": 8e10}]}");
    else if (strcmp(what, "runs") == 0 && strcmp(name, "lab") == 0)
        puts("[{\"name\": \"calm-yak\", \"state\": \"running\"}, {\"name\": "
             "\"odd-newt\", "
             "\"state\": \"failed\"}]");
    else if (strcmp(what, "runs") == 0)
        puts("[]");
    else if (strcmp(what, "keygen") == 0) {
        char key[128] = "";
        f = fopen("public", "r");
        if (f && fgets(key, sizeof key, f))
            printf("{\"public\": \"%s\"}\n", key);
    } else if (strcmp(what, "add") == 0)
        puts("new is added\nmore");
    return 0;
}

/* What was asked since, in order of their coming; "" . Forgets it. */
static const char *
asked(void)
{
    static char text[4096];
    FILE *f = fopen("asked", "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    text[n] = '\0';
    if (f)
        fclose(f);
    unlink("asked");
    return text;
}

/* ---- the screen ---- */

static double now = 100;

static double
tell_now(void)
{
    return now;
}

static void
settle(struct tui_app *app)
{
    const struct workers *w = tui_app_state(app, TUI_IN_workers);
    bool waits = true;
    for (int i = 0; i < 6000 && waits; i++) {
        tui_app_tick(app, 0);
        waits = w->doing != WORKERS_NOTHING;
        for (int k = 0; k < w->n; k++)
            waits = waits || w->row[k].job.pid > 0;
        if (waits)
            usleep(5000);
    }
    if (waits)
        bail("an answer has not come");
    picture_draw(app);
}

static void
press(struct tui_app *app, const char *keys)
{
    for (int key; (key = tui_keys_next(&keys)) > 0;)
        tui_app_key(app, key);
    settle(app);
}

static void
lacks(const char *text, const char *name)
{
    if (!ok(strstr(picture, text) == NULL, "%s", name))
        diag("\n%s", picture);
}

static void
put_workers(const char *more)
{
    FILE *f = fopen("conf/workers.yaml", "w");
    if (!f)
        bail("no workers.yaml");
    fprintf(f,
            "lab: {address: \"ssh://lab\"}\n"
            "old: {address: \"ssh://old\"}\n"
            "shut: {address: \"ssh://shut\"}\n"
            "gone: {address: \"ssh://gone\"}\n%s",
            more);
    fclose(f);
    chmod("conf/workers.yaml", 0600);
}

static void
check_rows(struct tui_app *app)
{
    settle(app);
    picture_has("5 workers, 2 reachable   4 GPUs",
                "workers are counted, and their GPUs");
    picture_has(
        "* lab           ssh://lab                      4      96    operator     "
        "12ms",
        "one that is ready says what it has and how far away it is");
    picture_has("! old           ssh://old                    another version",
                "one of another version that");
    picture_has("x shut          ssh://shut                   key refused",
                "one that lets nobody in");
    picture_has("x gone          ssh://gone                   unreachable, retry 10s",
                "one that does not answer, and when it is asked again");
    press(app, "j");
    picture_has("h1   etude 0.9   96 cores   as operator",
                "the selected one says more");
    picture_has("t tests it: GPUs, disk, bandwidth", "and how to know the rest");
    press(app, "j");
    picture_has("speaks protocol 1", "another version says which");
    picture_has("both sides need versions", "with what helps");
    press(app, "j");
    picture_has("key \\x1b[2J not allowed", "what it says moves no cursor");
    picture_has("k copies the command", "with what helps");
    press(app, "j");
    picture_has("nobody answers", "why it is not reached");
    picture_has("R asks again", "with what helps");
}

static void
check_times(struct tui_app *app)
{
    (void)asked();
    now += 9.9;
    settle(app);
    is_str(asked(), "", "within ten seconds nobody is asked again");
    now += .2;
    settle(app);
    ok(strstr(asked(), "worker list gone --json") != NULL, "then all are");
    picture_has("unreachable, retry 12s", "one that did not answer has some more time");
    now += 10;
    settle(app);
    const char *all = asked();
    ok(strstr(all, "worker list lab --json") && strstr(all, "worker list old --json") &&
           !strstr(all, "gone"),
       "than the others");
    picture_has("unreachable, retry 2s", "which counts down");
    now += 2;
    settle(app);
    is_str(asked(), "worker list gone --json\n", "until it is asked again");
    fclose(fopen("silent", "w"));
    now += 8.1;
    settle(app);
    picture_has(
        "? lab           ssh://lab                      4      96    operator  10s "
        "ago",
        "of one that answers no more the last is shown, with its age");
    picture_has("1 reachable   0 GPUs", "and whose GPUs do not count");
    press(app, "gj");
    picture_has("no route to host", "and why");
    now += 5;
    picture_draw(app);
    picture_has("operator  15s ago", "which grows");
    unlink("silent");
    press(app, "R");
    picture_has("* lab", "R asks at once");
}

static void
check_test(struct tui_app *app)
{
    (void)asked();
    press(app, "t");
    is_str(asked(), "worker test lab --json\n", "t tests the selected one");
    picture_has("lab answers in 3.0ms, 250 MB/s come from there",
                "and says how it went");
    picture_has("h2   etude 0.9   64 cores   as viewer", "what it said is shown");
    picture_has(
        "up 3d   disk 3.5 TB free   250 MB/s from there   driver 550.1   calm-yak",
        "how long it is up, its disk, its run");
    picture_has("0  [#####....]  50% [######! 80/80G", "a GPU that is busy and full");
    picture_has("2  [#########] 100% [###...] 40/80G", "and one that is busy");
    tui_app_resize(app, 30, 120);
    picture_draw(app);
    picture_has("[####...] [####...]  calm-yak",
                "where there is room, the means of its GPUs stand in its row");
    tui_app_resize(app, 24, 80);
    press(app, "gt");
    picture_has("this machine needs no worker", "this machine is not tested");
}

static void
check_asks(struct tui_app *app)
{
    press(app, "gj");
    (void)asked();
    press(app, "<enter>");
    is_str(asked(), "worker runs lab --json\n", "enter asks for its runs");
    picture_has("its runs: type to search", "which are a menu");
    picture_has("calm-yak", "with their names");
    picture_has("failed", "and their states");
    press(app, "<esc>j<enter>");
    picture_has("old has no runs", "one without runs says so");
    (void)asked();
    press(app, "+new tcp://h:1 KEY more<enter>");
    ok(strstr(asked(), "worker add new tcp://h:1 KEY\n") != NULL,
       "+ adds what is typed, three words of it");
    picture_has("new is added", "and says its first line");
    lacks("more", "and no more");
    press(app, "gjj");
    (void)asked();
    press(app, "Xn");
    is_str(asked(), "", "X asks first");
    press(app, "Xy");
    ok(strstr(asked(), "worker remove old\n") != NULL, "then forgets the selected one");
    picture_has("it is forgotten here", "and says so");
    press(app, "/shut<enter>");
    const struct workers *w = tui_app_state(app, TUI_IN_workers);
    is_str(w->row[w->list.at].name, "shut", "/ goes to one by a part of its name");
    press(app, "/ssh://gon<enter>");
    is_str(w->row[w->list.at].name, "gone", "or of its address");
    press(app, "/nobody<enter>");
    picture_has("no worker here is called 'nobody'", "and says where there is none");
}

/* Another program changes the file. */
static void
check_file(struct tui_app *app)
{
    struct workers *w = tui_app_state(app, TUI_IN_workers);
    put_workers("zoo: {address: \"ssh://zoo\"}\n");
    settle(app);
    picture_has("6 workers", "a worker that another program adds is there");
    is_str(w->row[w->list.at].name, "gone", "and the selected one stays it");
    put_workers("");
    settle(app);
    press(app, "/shut<enter>X");
    FILE *f = fopen("conf/workers.yaml", "w");
    fputs("shut: {address: \"ssh://shut\"}\ngone: {address: \"ssh://gone\"}\n", f);
    fclose(f);
    settle(app);
    is_int(w->n, 5, "while a question about one is open the list stays as it is");
    picture_has("shut, ssh://shut", "as does the question");
    press(app, "n");
    is_int(w->n, 3, "then it is read");
    is_str(w->row[w->list.at].name, "shut",
           "and the selected one stays it, wherever it stands");
    f = fopen("conf/workers.yaml", "w");
    fputs("lab: [", f);
    fclose(f);
    settle(app);
    picture_has("1 worker, 1 reachable",
                "of a file that cannot be read this machine stays");
    picture_has("! ", "and why is said");
}

/* This machine's key for others, and the one that a worker is held to. */
static void
check_keys(struct tui_app *app)
{
    struct etd_keys ours = {0}, theirs = {0};
    struct etd_worker w = {
        .name = "tcpone", .address = "tcp://h:5", .since = "2025-01-02"};
    char print[ETD_FINGERPRINT], want[300];
    if (etd_keys_draw(app->cx, &ours) != ET_OK ||
        etd_keys_draw(app->cx, &theirs) != ET_OK)
        bail("no keys: %s", et_error_get(app->cx)->message);
    snprintf(w.key, sizeof w.key, "%s", theirs.public_key);
    put_workers("");
    if (etd_workers_write(app->cx, "conf/workers.yaml", w.name, &w) != ET_OK)
        bail("no worker: %s", et_error_get(app->cx)->message);
    settle(app);
    is_str(((struct workers *)tui_app_state(app, TUI_IN_workers))->problem, "",
           "a file that was mended has no fault any more");
    press(app, "/tcpone<enter>");
    snprintf(want, sizeof want, "key   %s   pinned 2025-01-02",
             etd_key_fingerprint(theirs.public_key, print));
    picture_has(want, "the key of a worker is told, and since when");
    FILE *f = fopen("public", "w");
    fputs(ours.public_key, f);
    fclose(f);
    press(app, "k");
    snprintf(want, sizeof want, "this machine's: %s", ours.public_key);
    picture_has(want, "k tells this machine's key,");
    picture_has(etd_key_fingerprint(ours.public_key, print), "in short,");
    snprintf(want, sizeof want, "tcpone is held to %s",
             etd_key_fingerprint(theirs.public_key, print));
    picture_has(want, "and the one that the worker is held to");
    press(app, "o");
    snprintf(want, sizeof want, "copied: etude worker allow '%s' operator",
             ours.public_key);
    is_str(app->message, want, "o copies the command for an operator");
    press(app, "k");
    press(app, "v");
    snprintf(want, sizeof want, "copied: etude worker allow '%s'", ours.public_key);
    is_str(app->message, want, "v that for a viewer");
    f = fopen("public", "w");
    fputs("no key", f);
    fclose(f);
    press(app, "k");
    is_int(app->popup.kind, TUI_NO_POPUP, "what is no key is not offered");
    press(app, "/lab<enter>");
    picture_has("key   ssh's own", "ssh knows its keys itself");
    press(app, "/local<enter>");
    lacks("ssh's own", "and this machine has none");
}

static void
check_typing(struct tui_app *app)
{
    struct workers *w = tui_app_state(app, TUI_IN_workers);
    press(app, "anobody");
    ok(w->is_typing, "a asks for an address");
    press(app, "<enter>");
    ok(w->is_typing && strstr(w->fault, "no run and no worker is called 'nobody'"),
       "one that is none has a fault: %s", w->fault);
    press(app, "x");
    is_str(w->fault, "", "until it is changed");
    press(app, "<enter><esc>");
    ok(!w->is_typing && !*w->fault, "esc leaves it, and its fault");
    press(app, "a");
    is_str(w->address.text, "", "the next begins empty");
    press(app, "b<enter>");
    const int y = w->form_y + tui_layout_frame(24, 80).body.y;
    tui_app_mouse(app, &(struct tui_mouse){.y = y, .x = 5, .what = TUI_CLICK});
    is_str(w->address.text, "b", "a click goes on with what is typed");
    is_str(w->fault, "", "without its fault");
    press(app, "<esc>");
}

static void
check_role(struct tui_app *app)
{
    press(app, "v");
    ok(app->is_viewer, "v makes a viewer");
    picture_has("role     viewer (v: operator)", "which is told");
    press(app, "v");
    ok(!app->is_viewer, "and an operator again");
    picture_has("role     operator (v: viewer)", "likewise");
    app->config.is_readonly = true;
    press(app, "v");
    picture_has("role: viewer: ", "who may only look stays a viewer");
    app->config.is_readonly = false;
}

static void
check_mouse(struct tui_app *app)
{
    struct workers *w = tui_app_state(app, TUI_IN_workers);
    const int top = tui_layout_frame(app->grid.rows, app->grid.cols).body.y;
    press(app, "g");
    struct tui_mouse m = {.y = top + WORKERS_FIRST + 2, .x = 5, .what = TUI_CLICK};
    tui_app_mouse(app, &m);
    is_int(w->list.at, 2, "a click selects the worker there");
    ok(!w->is_typing, "and does no more");
    (void)asked();
    tui_app_mouse(app, &m);
    settle(app);
    ok(strstr(asked(), "worker runs old --json\n") != NULL,
       "another click on it asks for its runs");
    ok(w->form_y > WORKERS_FIRST, "below them is the form");
    m.y = top + w->form_y - 1;
    tui_app_mouse(app, &m);
    ok(!w->is_typing, "a click above it begins nothing");
    m.y = top + w->form_y;
    tui_app_mouse(app, &m);
    ok(w->is_typing, "one on it begins to attach");
    press(app, "<esc>");
}

static void
check_hidden(struct tui_app *app)
{
    settle(app);
    tui_app_go(app, TUI_IN_logs);
    (void)asked();
    now += 60;
    settle(app);
    is_str(asked(), "", "nobody is asked while another screen is shown");
    tui_app_go(app, TUI_IN_workers);
    settle(app);
    ok(strstr(asked(), "worker list lab --json") != NULL, "but when this one is again");
}

/* The whole screen, without its first line, which tells the time, and without this
 * machine's row, which tells of its processor. */
static void
is_whole(struct tui_app *app, const char *name)
{
    FILE *f = whole_text();
    picture_draw(app);
    for (const char *at = strchr(picture, '\n') + 1; *at; at += strcspn(at, "\n") + 1) {
        const int n = (int)strcspn(at, "\n");
        if (n < 9 || strncmp(at + 4, "local", 5) != 0)
            fprintf(f, "%.*s\n", n, at);
    }
    whole_is(name);
}

static void
check_scroll(struct tui_app *app)
{
    char more[1024] = "";
    for (int i = 0; i < 12; i++)
        snprintf(more + strlen(more), sizeof more - strlen(more),
                 "w%02d: {address: \"ssh://w%02d\"}\n", i, i);
    put_workers(more);
    settle(app);
    press(app, "G");
    picture_has("w11           ssh://w11",
                "the last of many workers can be scrolled to");
    lacks("lab           ssh://lab", "which takes the first from the screen");
    press(app, "<up><up>");
    is_whole(app, "a worker before the last of many");
    put_workers("");
    settle(app);
}

/* Workers with other numbers of GPUs, each other busy and full, at several sizes. */
static void
check_whole(struct tui_app *app)
{
    static const int sizes[][2] = {{80, 24},  {119, 36}, {120, 36},
                                   {200, 50}, {60, 19},  {60, 13}};
    char name[64];
    put_workers("zoo: {address: \"ssh://zoo\"}\n");
    settle(app);
    press(app, "g");
    for (int i = 0; i < 3; i++)
        press(app, "jt");
    app->message[0] = '\0';
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        tui_app_resize(app, sizes[i][1], sizes[i][0]);
        snprintf(name, sizeof name, "workers that were tested at %d x %d", sizes[i][0],
                 sizes[i][1]);
        is_whole(app, name);
    }
    fclose(fopen("silent", "w"));
    now += 12.25;
    settle(app);
    tui_app_resize(app, 36, 120);
    is_whole(app, "workers that answer no more");
    press(app, "gj");
    now += 1.5;
    is_whole(app, "another one of them, later");
    press(app, "G");
    is_whole(app, "one that has never answered");
    unlink("silent");
    tui_app_resize(app, 24, 80);
}

/* What was asked for and does not come; a run that is chosen, and one whose worker is
 * not known any more. */
static void
check_chosen(struct tui_app *app)
{
    put_workers("");
    settle(app);
    fclose(fopen("silent", "w"));
    press(app, "gjt");
    picture_has("x no route to host", "a test that fails says why");
    press(app, "<enter>");
    picture_has("x no route to host", "as do runs that do not come");
    ok(app->popup.kind == TUI_NO_POPUP, "which are no menu");
    unlink("silent");
    press(app, "gj<enter>");
    FILE *f = fopen("conf/workers.yaml", "w");
    fputs("other: {address: \"ssh://other\"}\n", f);
    fclose(f);
    press(app, "<enter>");
    picture_has("x no ", "a run of a worker that is not known any more is not shown");
    ok(!app->source, "and no other one either");
    put_workers("");
    settle(app);
    press(app, "gj<enter>");
    char name[ETI_FACT_TEXT], path[4096];
    snprintf(path, sizeof path, "%s", getenv("PATH"));
    setenv("PATH", "nowhere", 1); /* (without an ssh) */
    tui_app_key(app, TUI_K_DOWN);
    tui_app_key(app, TUI_K_ENTER);
    setenv("PATH", path, 1);
    ok(app->source != NULL, "one that is chosen is shown");
    const char *is = app->source ? eti_facts_get(app->source->facts, "name", name) : "";
    is_str(is ? is : "", "odd-newt", "the one that was selected");
    is_str(app->source ? app->source->place : "", "lab", "of that worker");
    const struct workers *w = tui_app_state(app, TUI_IN_workers);
    is_str(w->fault, "", "and the fault of the one before is gone");
}

/* A test's answer, whose numbers are all different. */
static void
check_answer(void)
{
    struct workers_row r = {.state = WORKER_LOST, .is_alone = true};
    const struct etd_host_facts *h = &r.host_facts;
    json_t *all = json_loads(
        "{\"host\": \"h9\", \"version\": \"0.8\", \"role\": \"viewer\", \"cores\": 48, "
        "\"gpus\": 2, \"rtt_ms\": 7.5, \"bandwidth\": 3e8, \"uptime_s\": 1234, "
        "\"disk_free\": 5678, \"runs\": 3, \"run\": \"odd-elk\", \"driver\": \"9.1\", "
        "\"gpu\": [{\"util\": 0.25, \"used\": 11, \"total\": 22}, {\"util\": null, "
        "\"used\": 33, \"total\": 44}]}",
        0, NULL);
    tui_workers_take_test(&r, all);
    json_decref(all);
    ok(r.state == WORKER_READY && r.is_tested && !r.is_alone,
       "a worker that is tested is ready");
    is_str(r.host, "h9", "its host,");
    is_str(r.version, "0.8", "version,");
    is_str(r.role, "viewer", "role,");
    ok(r.cores == 48 && r.gpus == 2 && r.rtt_ms == 7.5, "cores, GPUs, distance,");
    ok(r.bandwidth == 3e8 && h->uptime == 1234 && h->disk_free == 5678 && h->runs == 3,
       "bandwidth, time, disk and runs,");
    is_str(h->run, "odd-elk", "the newest of them,");
    is_str(h->driver, "9.1", "its driver,");
    ok(h->n_gpus == 2 && h->gpu[0].util == 0.25 && h->gpu[0].used == 11 &&
           h->gpu[0].total == 22 && isnan(h->gpu[1].util) && h->gpu[1].used == 33 &&
           h->gpu[1].total == 44,
       "and each of its GPUs");
}

int
main(int argc, char **argv)
{
    char directory[] = "/tmp/etude-hosts.XXXXXX", state[64];
    struct eti_seams seams = eti_system;
    struct tui_app *app;
    struct et_ctx *cx;
    if (argc > 1)
        return be_command(argc, argv);
    whole_open("hosts");
    if (et_ctx_new(&cx) != ET_OK || !mkdtemp(directory) || chdir(directory) != 0 ||
        mkdir("conf", 0700) != 0)
        bail("no directory for files");
    snprintf(state, sizeof state, "%s", directory);
    setenv("XDG_STATE_HOME", state, 1);
    setenv("XDG_RUNTIME_DIR", state, 1);
    seams.monotonic = tell_now;
    eti_ctx_set_seams(cx, &seams);
    put_workers("");
    struct tui_app_config config = {
        .cx = cx,
        .glyphs = &tui_glyphs_ascii,
        .first = TUI_IN_workers,
        .rows = 24,
        .cols = 80,
    };
    tui_keys_default(&config.keys);
    if (tui_app_new(&config, &app) != ET_OK || tui_workers_setup(app, "conf") != ET_OK)
        bail("no screen: %s", et_error_get(cx)->message);
    check_rows(app);
    check_times(app);
    check_test(app);
    check_asks(app);
    check_file(app);
    check_keys(app);
    check_typing(app);
    check_role(app);
    check_mouse(app);
    check_hidden(app);
    check_scroll(app);
    check_whole(app);
    check_chosen(app);
    check_answer();
    whole_close();
    picture_close(&app, directory);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left behind");
    et_ctx_free(&cx);
    return done();
}
