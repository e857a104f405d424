/* SPDX-License-Identifier: Apache-2.0 */
/* far.c: a run at a worker, as `train --on` shows it. Its records come from its hub,
 * and requests go there; one whose answer a broken line took is sent again. What
 * happens while the worker is out of reach is fetched afterwards. How the run ended is
 * in the worker's list of runs. */
#include "config.h"

#include <jansson.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "cli/cli.h"
#include "core/base/seams.h"
#include "core/library/facts.h"
#include "dist/worker/target.h"
#include "dist/worker/worker.h"
#include "core/trainer/state.h"

enum { LINES = 20, LONGEST = 30, WAIT_MS = 250, ASKED = 4 };
static const double ASK_SECONDS = 10;
static const double GONE_SECONDS = 3; /* then it is worth a word */

struct far {
    struct cli *c;
    const char *worker;
    struct etd_target *to;
    struct etd_client *client;
    struct et_callback *progress; /* NULL: nothing is shown */
    struct et_relay *relay;
    bool asks;   /* a question stands on the screen */
    double gone; /* monotonic: since when the worker does not; NaN: it does */
    bool away;   /* and people have been told */
    int stops;   /* times it was told to stop */
    struct {
        struct etd_command command;
        bool sent;  /* on the line that there is */
    } asked[ASKED]; /* what has no answer yet */
    int n_asked;
    json_t *facts;  /* as the worker had them last; NULL: it has not told yet */
    double look_at; /* monotonic: when they are asked for again, */
    int looks;      /* for so many times in vain */
    bool ended;     /* FACTS say so */
    bool left;
    int code;
    char line[LINES][ET_VISIBLE_MAX + 1]; /* the last of rank 0's log */
    int64_t n_lines;
};

/* ---- what comes ---- */

static void
say(struct far *f, enum et_log_level level, const char *text)
{
    if (level >= cli_screen_level(f->c))
        cli_show_line(f->c, level, text);
}

static void
on_record(void *data, const struct et_record *r)
{
    struct far *f = data;
    if (r->kind == ET_RECORD_LOG && r->rank == 0 && r->text) {
        char *line = f->line[f->n_lines++ % LINES];
        et_visible(line, sizeof f->line[0], r->text, strlen(r->text));
        say(f, r->level, line);
    }
    /* (A bar would be drawn over a question; lines of JSON are a result.) */
    if (f->progress && (!f->asks || f->c->results_are_json))
        et_relay_record(f->relay, f->progress, r);
}

/* Says when the worker is gone, and when it is back. */
static void
look_at_link(struct far *f)
{
    const struct etd_client_status *s = etd_client_status(f->client);
    char text[ETD_ADDRESS + 512];
    double now = eti_monotonic(f->c->cx);
    if (s->link == ETD_LINK_DISCONNECTED && isnan(f->gone))
        f->gone = now;
    if (s->link == ETD_LINK_LIVE)
        f->gone = NAN;
    if (!f->away && now - f->gone >= GONE_SECONDS) {
        snprintf(text, sizeof text,
                 "%s does not answer (%s): it is tried again, and the run goes on",
                 f->worker, s->text);
        say(f, ET_LOG_WARN, text);
        f->away = true;
    } else if (f->away && isnan(f->gone)) {
        snprintf(text, sizeof text, "%s answers again, gap filled: %lld events",
                 f->worker, (long long)s->missed);
        say(f, ET_LOG_WARN, text);
        f->away = false;
    }
}

/* It is the hub's from here on. */
static void
forget(struct far *f, const unsigned char *id)
{
    for (int i = 0; i < f->n_asked; i++)
        if (memcmp(f->asked[i].command.id, id, ETD_CMD_ID) == 0) {
            f->asked[i] = f->asked[--f->n_asked];
            return;
        }
}

static void
look_at_answers(struct far *f)
{
    struct etd_answer a;
    char text[ETD_ADDRESS + sizeof a.text];
    while (etd_client_answer(f->client, &a)) {
        forget(f, a.id);
        if (a.kind != ETD_REJECTED && a.kind != ETD_EXPIRED)
            continue;
        snprintf(text, sizeof text, "%s: %s", f->worker,
                 a.kind == ETD_EXPIRED ? "it was not done in time" : a.text);
        say(f, ET_LOG_WARN, text);
    }
}

/* ---- how it ended ---- */

/* Asks the worker: again after 1, 2, 4 ... 30 s. */
static void
look_at_facts(struct far *f)
{
    struct et_ctx *cx = f->c->cx;
    const struct etd_client_options o = etd_target_options(f->to);
    json_t *list = NULL, *facts;
    size_t i;
    if (eti_monotonic(cx) < f->look_at)
        return;
    if (etd_worker_runs(cx, &o.channel, ASK_SECONDS, &list) != ET_OK)
        et_error_clear(cx);
    json_array_foreach(list, i, facts)
    {
        const char *name = json_string_value(json_object_get(facts, "name"));
        if (!name || strcmp(name, f->to->run) != 0)
            continue;
        json_decref(f->facts);
        f->facts = json_incref(facts);
        f->ended = !eti_facts_goes_on(facts);
        break;
    }
    json_decref(list);
    double wait = f->looks < 5 ? (double)(1 << f->looks) : LONGEST;
    f->looks++;
    f->look_at = eti_monotonic(cx) + wait;
}

static const char *
fact(const struct far *f, const char *key)
{
    const char *text = json_string_value(json_object_get(f->facts, key));
    return text ? text : "";
}

static double
number(const struct far *f, const char *key)
{
    return json_number_value(json_object_get(f->facts, key));
}

/* "lab:/home/me/runs/..." */
static void
name_directory(const struct far *f, char *out, size_t size)
{
    char visible[ET_VISIBLE_MAX + 1];
    const char *directory = fact(f, "directory");
    et_visible(visible, sizeof visible, directory, strlen(directory));
    snprintf(out, size, "%s:%s", f->worker, visible);
}

/* "metrics/eval/Accuracy": one of an evaluation, the last value of which counts. */
static bool
is_result(const char *name)
{
    return strncmp(name, "metrics/", 8) == 0 &&
           strncmp(name, "metrics/train/", 14) != 0;
}

static json_t *
collect_results(const struct far *f)
{
    const char *name;
    json_t *value, *out = json_object();
    json_object_foreach(json_object_get(f->facts, "metrics"), name, value)
    {
        if (is_result(name))
            json_object_set(out, name, json_object_get(value, "last"));
    }
    return out;
}

static void
summarise(const struct far *f, const char *state, const char *directory)
{
    const char *name;
    json_t *value, *results = collect_results(f);
    double seconds = number(f, "train_seconds");
    char text[64];
    et_print(stdout, "%s: %s after %s batches", f->to->run, state,
             cli_count((int64_t)number(f, "ba"), text, sizeof text));
    json_object_foreach(results, name, value)
    {
        et_print(stdout, ", %s ", name + strlen("metrics/"));
        if (json_is_number(value))
            printf("%.4f", json_number_value(value));
        else
            printf("nan");
    }
    if (seconds > 0)
        printf(", %.1f s of training, %.0f samples/s on average", seconds,
               number(f, "sp") / seconds);
    et_print(stdout, "\n%s\n", directory);
    json_decref(results);
}

static void
explain(const struct far *f, const char *state)
{
    static const struct {
        int exit;
        enum cli_error error;
    } errors[] = {
        {CLI_DIVERGED, CLI_E_NOT_FINITE}, {CLI_NO_MEMORY, CLI_E_MEMORY},
        {CLI_HUNG, CLI_E_HUNG},           {CLI_MISSED, CLI_E_TARGET},
        {CLI_CANNOT_WRITE, CLI_E_WRITE},  {CLI_PREEMPTED, CLI_E_SIGNALLED},
        {CLI_UNAVAILABLE, CLI_E_DEVICE},
    };
    enum cli_error error = CLI_E_RUN;
    char why[ETD_TEXT_ROOM], hint[PATH_MAX];
    const char *reason = fact(f, "reason"), *directory = fact(f, "directory");
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].exit == f->code)
            error = errors[i].error;
    et_visible(why, sizeof why, reason, strlen(reason));
    snprintf(hint, sizeof hint, "at %s: etude train --resume %s", f->worker, directory);
    (void)cli_fail(f->c, error, hint, "%s: the run is %s after batch %lld%s%s",
                   f->worker, state, (long long)number(f, "ba"), *why ? ": " : "", why);
    if (f->c->opt.json || f->n_lines == 0)
        return;
    fprintf(stderr, "  rank 0, its last lines:\n");
    for (int64_t i = f->n_lines > LINES ? f->n_lines - LINES : 0; i < f->n_lines; i++)
        et_print(stderr, "    %s\n", f->line[i % LINES]);
    et_print(stderr, "  its log: %s:%s/logs/rank0.txt\n", f->worker, directory);
}

/* Null where its processes are gone without a word. */
static int
exit_code(const struct far *f)
{
    const json_t *code = json_object_get(f->facts, "exit_code");
    return json_is_integer(code) ? (int)json_integer_value(code) : CLI_FAILED;
}

static void
report_end(struct far *f)
{
    struct cli *c = f->c;
    char state[ET_VISIBLE_MAX + 1], directory[PATH_MAX];
    struct et_state s = *et_relay_state(f->relay);
    et_visible(state, sizeof state, fact(f, "state"), strlen(fact(f, "state")));
    name_directory(f, directory, sizeof directory);
    f->code = exit_code(f);
    s.timestamp.batch = (int64_t)number(f, "ba"); /* where its records were not seen */
    s.timestamp.epoch = (int64_t)number(f, "ep");
    s.timestamp.sample = (int64_t)number(f, "sp");
    const struct et_run_notice notice = {
        .name = f->to->run,
        .directory = directory,
        .state = state,
        .at_end = &s,
        .exit_code = f->code,
    };
    if (f->progress)
        et_progress_notice(f->progress, &notice);
    c->progress = NULL;
    if (f->progress && f->progress->type->close)
        f->progress->type->close(f->progress);
    if (c->opt.json && !c->results_are_json)
        (void)cli_print_json(json_pack(
            "{s:s, s:s, s:s, s:s, s:i, s:I, s:I, s:f, s:o}", "name", f->to->run,
            "worker", f->worker, "directory", fact(f, "directory"), "state", state,
            "exit_code", f->code, "ba", (json_int_t)number(f, "ba"), "sp",
            (json_int_t)number(f, "sp"), "train_seconds", number(f, "train_seconds"),
            "metrics", collect_results(f)));
    else if (!c->opt.quiet && !c->results_are_json)
        summarise(f, state, directory);
    fflush(stdout);
    if (f->code != CLI_OK)
        explain(f, state);
}

/* ---- what is asked ---- */

/* Sends what has no answer yet, once on each line: what went with a line that broke off
 * may be lost, and the same id is not done twice. */
static void
ask(struct far *f)
{
    const enum etd_link link = etd_client_status(f->client)->link;
    bool is_down = link == ETD_LINK_DISCONNECTED || link == ETD_LINK_CONNECTING;
    for (int i = 0; i < f->n_asked; i++) {
        bool sent = f->asked[i].sent && !is_down;
        f->asked[i].sent =
            sent ||
            (!is_down && etd_client_repeat(f->client, &f->asked[i].command) == ET_OK);
        et_error_clear(f->c->cx); /* a line that is slow: the next step tries again */
    }
}

static void
pass_signal(void *data, int signal)
{
    struct far *f = data;
    char text[ETD_ADDRESS + 128];
    bool stops = signal != SIGUSR1;
    struct etd_command c = {
        .op = !stops     ? ETD_OP_CHECKPOINT
              : f->stops ? ETD_OP_KILL
                         : ETD_OP_STOP,
        .if_rev = -1,
        .ttl_ms = ETD_TTL_MS,
    };
    if (stops && f->away) { /* nothing can be done for it from here */
        f->left = true;
        f->code = CLI_UNAVAILABLE;
        return;
    }
    if (f->away || f->n_asked == ASKED ||
        getrandom(c.id, sizeof c.id, 0) != sizeof c.id) {
        snprintf(text, sizeof text, "%s cannot be told to %s now", f->worker,
                 etd_op_name(c.op));
        say(f, ET_LOG_WARN, text);
        return;
    }
    f->stops += stops;
    f->asked[f->n_asked].command = c;
    f->asked[f->n_asked++].sent = false;
    ask(f);
}

/* ---- the whole ---- */

/* Takes what there is. True: it is over. */
static bool
step(struct far *f)
{
    const struct etd_client_status *s = etd_client_status(f->client);
    if (etd_client_step(f->client) != ET_OK) {
        f->code = cli_fail_status(f->c, ETI_STAGE_RUN, ET_ENOMEM);
        return f->left = true;
    }
    look_at_link(f);
    look_at_answers(f);
    ask(f);
    bool no_run = s->link == ETD_LINK_REFUSED && strcmp(s->code, "NO_RUN") == 0;
    if (s->link == ETD_LINK_REFUSED && !no_run) {
        f->code = cli_fail(f->c, (enum cli_error)ETD_E_TURNED_AWAY,
                           "the run goes on there", "%s says: %s", f->worker, s->text);
        return f->left = true;
    }
    bool is_past = s->link == ETD_LINK_LIVE && s->has_ended;
    if (s->link == ETD_LINK_ENDED || is_past || no_run)
        look_at_facts(f);
    return f->ended;
}

static bool
step_while_asking(void *data)
{
    struct far *f = data;
    f->asks = true;
    bool over = step(f);
    f->asks = false;
    return over;
}

static void
wait_for_news(const struct far *f)
{
    int wait = etd_client_timeout(f->client);
    struct pollfd p = {.fd = etd_client_fd(f->client), .events = POLLIN};
    (void)poll(&p, 1, wait >= 0 && wait < WAIT_MS ? wait : WAIT_MS);
}

static void
follow(struct far *f)
{
    while (!f->left && !step(f)) {
        const struct cli_passing p = {
            .fd = etd_client_fd(f->client),
            .wait_ms = WAIT_MS,
            .can_ask = true,
            .progress = f->progress,
            .hear = step_while_asking,
            .pass = pass_signal,
            .data = f,
        };
        wait_for_news(f);
        f->left = cli_pass_signals(&p) || f->left;
    }
}

static int
begin(struct far *f)
{
    struct cli *c = f->c;
    char directory[PATH_MAX];
    struct etd_client_options o = etd_target_options(f->to);
    o.whole = true;
    look_at_facts(f);
    name_directory(f, directory, sizeof directory);
    const struct et_run_notice notice = {
        .name = f->to->run,
        .directory = directory,
        .state = "starting",
    };
    int code = cli_progress_new(c, &f->progress);
    if (code != CLI_OK)
        return code;
    if (f->progress)
        et_progress_notice(f->progress, &notice);
    et_status status = et_relay_new(c->cx, &f->relay);
    if (status == ET_OK)
        status = etd_client_open(c->cx, &o, &f->client);
    if (status != ET_OK)
        return cli_fail_status(c, ETI_STAGE_OUTPUT, status);
    etd_client_watch(f->client, on_record, f);
    f->look_at = 0;
    f->looks = 0;
    f->ended = false; /* what its hub has still to say comes first */
    return CLI_OK;
}

/* The workbench until it is left. */
static void
watch(struct far *f)
{
    f->code = cli_watch_far(f->c, f->to);
    if (f->code != CLI_OK)
        return;
    look_at_facts(f);
    if (f->ended)
        f->code = exit_code(f);
}

void
cli_say_far(const struct cli *c, const char *worker, const char *name)
{
    if (c->opt.json)
        (void)cli_print_json(json_pack("{s:s, s:s}", "name", name, "worker", worker));
    else if (!c->opt.quiet)
        et_print(stdout, "%s goes on at %s. etude attach %s@%s\n", name, worker, name,
                 worker);
}

int
cli_front_far(struct cli *c, const char *worker, struct etd_target *to)
{
    struct far *f = calloc(1, sizeof *f);
    if (!f)
        return cli_fail(c, CLI_E_MEMORY, NULL, "no memory to show a run");
    *f = (struct far){.c = c, .worker = worker, .to = to, .gone = NAN};
    if (cli_progress_is_tui(c)) {
        watch(f);
    } else {
        cli_passing_begin();
        f->code = begin(f);
        if (f->code == CLI_OK)
            follow(f);
        if (f->ended)
            report_end(f);
    }
    c->progress = NULL;
    if (f->left && f->code == CLI_OK)
        cli_say_far(c, worker, to->run);
    else if (f->left && f->code == CLI_UNAVAILABLE)
        (void)cli_fail(c, (enum cli_error)ETD_E_UNREACHABLE,
                       "etude stop RUN@WORKER, when it answers",
                       "%s does not answer: %s goes on there", worker, to->run);
    int code = f->code;
    etd_client_close(&f->client);
    et_relay_free(&f->relay);
    et_callback_free(&f->progress);
    json_decref(f->facts);
    free(f);
    return code;
}
