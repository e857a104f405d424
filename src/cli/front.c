/* SPDX-License-Identifier: Apache-2.0 */
/* front.c: `etude train` as it is seen: the run trains elsewhere, and this process
 * shows it from its log, passes signals on, and ends as it ends. Nothing is lost with
 * it.
 *
 * Lines of the log and what rank 0 prints come through a socket, with the number of the
 * record that they follow; they are shown when that has been. */
#include "config.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/base/seams.h"
#include "core/library/facts.h"

static const double LOOK_SECONDS = 0.05, READ_SECONDS = 0.1, IDLE_SECONDS = 0.25;
/* For the hub's last words (five seconds: dist/run/hub_child.c), and ten more for who
 * is slow: what comes next finds nobody at work in the run's directory. */
static const double LEAVE_SECONDS = 15;
/* A line waits so long for its record: on a full disk the log does not get it. */
static const double LINE_SECONDS = 1;

/* What waits for its record, or for the end of the run. */
struct later {
    enum etd_news_kind kind;
    int64_t seq;
    double until; /* monotonic: then it is shown in any case */
    enum et_log_level level;
    int stream;
    size_t n;
    struct later *next;
    char text[];
};

struct front {
    struct cli *c;
    struct etd_front *link;
    struct et_callback *progress; /* NULL: nothing is shown */
    struct et_relay *relay;
    struct et_events *log;
    int64_t seq;                    /* of the last record shown */
    int64_t skip;                   /* records up to this one were there before */
    struct later *wait, **wait_end; /* lines and prints */
    struct later *said, **said_end; /* texts of the end */
    struct etd_news run;            /* OPENED */
    struct etd_end end;
    bool over; /* it has ended, with CODE */
    int code;
    bool left;    /* the run goes on without */
    bool watches; /* the workbench shows the run: a viewer, that owns nothing of it */
};

/* ---- signals ---- */

static void
say_it_goes_on(const struct front *f)
{
    const struct cli *c = f->c;
    if (c->opt.json)
        (void)cli_print_json(json_pack("{s:s, s:o}", "name", f->run.name, "directory",
                                       cli_json_text(f->run.directory)));
    else if (!c->opt.quiet)
        et_print(stdout, "%s goes on (%d rank%s). etude logs -f %s\n", f->run.name,
                 f->c->nproc, f->c->nproc == 1 ? "" : "s", f->run.name);
}

static bool hear(struct front *f, int *code);

static bool
hear_while_asking(void *data)
{
    struct front *f = data;
    f->over = hear(f, &f->code);
    return f->over;
}

static void
pass_signal(void *data, int number)
{
    struct front *f = data;
    etd_front_signal(f->link, number);
}

static void
pass_signals(struct front *f)
{
    const struct cli_passing p = {
        .fd = etd_front_fd(f->link),
        .wait_ms = -1,
        .can_ask = f->run.directory[0] != '\0',
        .progress = f->progress,
        .hear = hear_while_asking,
        .pass = pass_signal,
        .data = f,
    };
    f->left = cli_pass_signals(&p) || f->left;
}

/* ---- lines ---- */

static void
put_by(struct et_ctx *cx, struct later ***end, const struct etd_news *news)
{
    struct later *l = malloc(sizeof *l + news->n + 1);
    if (!l)
        return;
    *l = (struct later){
        .kind = news->kind,
        .seq = news->seq,
        .until = eti_monotonic(cx) + LINE_SECONDS,
        .level = news->level,
        .stream = news->stream,
        .n = news->n,
    };
    memcpy(l->text, news->text, news->n);
    l->text[news->n] = '\0';
    **end = l;
    *end = &l->next;
}

static void
show_later(struct front *f, const struct later *l)
{
    FILE *to = l->kind == ETD_NEWS_OUT || l->stream == STDOUT_FILENO ? stdout : stderr;
    if (l->kind == ETD_NEWS_LINE) {
        cli_show_line(f->c, l->level, l->text);
        return;
    }
    if (f->progress)
        et_progress_clear(f->progress);
    fwrite(l->text, 1, l->n, to); /* raw: what a rank prints is a program's own */
    fflush(to);
}

/* Shows the lines whose record has been shown, or did not come; ALL: the others,
 * too. */
static void
show_waiting(struct front *f, bool all)
{
    double now = eti_monotonic(f->c->cx);
    while (f->wait &&
           (all || !f->log || f->wait->seq <= f->seq || now >= f->wait->until)) {
        struct later *l = f->wait;
        f->wait = l->next;
        if (!f->wait)
            f->wait_end = &f->wait;
        show_later(f, l);
        free(l);
    }
}

static void
show_said(struct front *f)
{
    while (f->said) {
        struct later *l = f->said;
        f->said = l->next;
        show_later(f, l);
        free(l);
    }
}

/* ---- records ---- */

/* Shows records that are new in the log, for READ_SECONDS at most unless it is the
 * END. */
static void
show_records(struct front *f, bool end)
{
    struct et_record r;
    struct et_ctx *cx = f->c->cx;
    bool got = f->log != NULL;
    double until = eti_monotonic(cx) + READ_SECONDS;
    if (got && et_events_again(f->log) != ET_OK)
        got = false;
    while (got && (end || eti_monotonic(cx) < until) &&
           et_events_next(f->log, &r, &got) == ET_OK && got) {
        f->seq = r.seq;
        if (r.seq > f->skip && f->progress)
            et_relay_record(f->relay, f->progress, &r);
        show_waiting(f, false);
    }
    et_error_clear(cx);
}

static void
open_log(struct front *f, const struct etd_news *news)
{
    char path[sizeof news->directory + 16];
    bool again = f->run.directory[0] != '\0';
    f->run = *news;
    cli_run_remember(f->c, news->directory);
    const struct et_run_notice notice = {
        .name = news->name,
        .directory = news->directory,
        .state = "starting",
    };
    if (f->progress && !again)
        et_progress_notice(f->progress, &notice);
    snprintf(path, sizeof path, "%s/events.log", news->directory);
    if (!again) {
        f->skip = news->seq;
        if (f->progress && et_events_open(f->c->cx, path, &f->log) != ET_OK)
            et_error_clear(f->c->cx); /* the run is there; it is only not seen */
    }
}

/* ---- the end ---- */

static int
report_end(struct front *f)
{
    struct cli *c = f->c;
    const struct etd_end *end = &f->end;
    show_records(f, true);
    show_waiting(f, true);
    if (f->progress && end->began) {
        const struct et_run_notice notice = {
            .name = f->run.name,
            .directory = f->run.directory,
            .state = end->state,
            .at_end = et_relay_state(f->relay),
            .exit_code = end->exit,
        };
        et_progress_notice(f->progress, &notice);
    }
    c->progress = NULL;
    if (f->progress && f->progress->type->close)
        f->progress->type->close(f->progress);
    show_said(f);
    if (end->why[0] && !end->said) {
        enum cli_error what = end->exit == CLI_HUNG ? CLI_E_HUNG
                              : end->exit == CLI_UNAVAILABLE
                                  ? (enum cli_error)ET_E_SYSTEM_LIMIT
                                  : CLI_E_RUN;
        (void)cli_fail(c, what, end->hint[0] ? end->hint : NULL, "%s", end->why);
        if (!c->opt.json && f->run.directory[0] && end->rank >= 0)
            cli_explain_end(stderr, f->run.directory, end->rank, false);
    }
    return end->exit;
}

static int
report_lost(struct front *f)
{
    char hint[sizeof f->run.directory + 32];
    show_records(f, true);
    show_waiting(f, true);
    f->c->progress = NULL;
    show_said(f);
    snprintf(hint, sizeof hint, "etude train --resume %s", f->run.directory);
    return cli_fail(f->c, CLI_E_RUN, f->run.directory[0] ? hint : NULL,
                    "the run's supervisor is gone, and its ranks with it");
}

/* ---- the whole ---- */

/* True: it is over, with *CODE. */
static bool
hear(struct front *f, int *code)
{
    struct etd_news news;
    double wait = f->log ? LOOK_SECONDS : IDLE_SECONDS;
    etd_front_next(f->link, wait, &news);
    switch (news.kind) {
    case ETD_NEWS_OPENED:
        open_log(f, &news);
        f->left = f->c->opt.detach || f->watches;
        break;
    case ETD_NEWS_LINE:
    case ETD_NEWS_RAW:
        put_by(f->c->cx, &f->wait_end, &news);
        break;
    case ETD_NEWS_OUT:
    case ETD_NEWS_ERR:
        put_by(f->c->cx, &f->said_end, &news);
        break;
    case ETD_NEWS_END:
        f->end = news.end;
        *code = report_end(f);
        return true;
    case ETD_NEWS_LOST:
        *code = report_lost(f);
        return true;
    default:
        break;
    }
    return false;
}

/* The workbench until it is left. Returns how the run has ended, if it has. */
static int
watch(struct cli *c, const char *directory)
{
    json_t *facts;
    int code = cli_watch(c, directory);
    if (code != CLI_OK || eti_facts_read_state(c->cx, directory, &facts) != ET_OK)
        return code;
    const json_t *ended = json_object_get(facts, "exit_code");
    code = json_is_integer(ended) ? (int)json_integer_value(ended) : CLI_OK;
    json_decref(facts);
    return code;
}

int
cli_front(struct cli *c, struct etd_front *link)
{
    struct front f = {.c = c, .link = link};
    f.wait_end = &f.wait;
    f.said_end = &f.said;
    cli_passing_begin();
    et_status status = et_relay_new(c->cx, &f.relay);
    f.watches = !c->opt.detach && cli_progress_is_tui(c);
    if (status == ET_OK && !c->opt.detach && !f.watches)
        f.code = cli_progress_new(c, &f.progress);
    if (status != ET_OK)
        f.code = cli_fail_status(c, ETI_STAGE_RECIPE, status);
    while (!f.over && !f.left) {
        f.over = hear(&f, &f.code);
        if (!f.over)
            pass_signals(&f);
        if (f.over)
            break;
        show_records(&f, false);
        show_waiting(&f, false);
    }
    c->progress = NULL;
    if (f.left && !f.watches)
        say_it_goes_on(&f);
    else if (!f.left)
        etd_front_wait(f.link, LEAVE_SECONDS);
    show_waiting(&f, true);
    et_events_close(&f.log);
    et_relay_free(&f.relay);
    et_callback_free(&f.progress);
    etd_front_free(&f.link);
    return f.left && f.watches ? watch(c, f.run.directory) : f.code;
}
