/* SPDX-License-Identifier: Apache-2.0 */
/* samples.c: which samples of a recipe's data are asked for by which key, and what is
 * kept of the answers. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "t/tap.h"
#include "tui/samples.h"

static struct et_ctx *cx;
static struct tui_app app;
static char asked[256]; /* the words of the last question; "": none was asked */
static bool is_refused;

static void
add_words(const char *const *word)
{
    for (; *word; word++)
        snprintf(asked + strlen(asked), sizeof asked - strlen(asked), "%s%s",
                 *asked ? " " : "", *word);
}

static et_status
ask(void *owner, struct tui_job *job, const char *const *words,
    const char *const *after)
{
    (void)job;
    if (owner != asked)
        bail("another's question");
    if (is_refused)
        return ET_FAIL(cx, ET_EIO, "no process is left");
    asked[0] = '\0';
    add_words(words);
    add_words((const char *const[]){"R", NULL});
    add_words(after);
    return ET_OK;
}

static void
press(struct tui_samples *s, enum tui_action action, const char *want, const char *name)
{
    asked[0] = '\0';
    ok(tui_samples_act(s, action), "a key of samples");
    is_str(asked, want, "%s", name);
}

/* The answer has come: SHOWN of N samples, and STEPS transforms. */
static void
answer(struct tui_samples *s, int n, int shown, int steps)
{
    json_t *list = json_array(), *all = json_array();
    for (int i = 0; i < shown; i++)
        json_array_append_new(list, json_object());
    for (int i = 0; i < steps; i++)
        json_array_append_new(all, json_object());
    json_decref(s->all);
    s->all =
        json_pack("{s:i, s:o, s:o}", "samples", n, "shown", list, "transforms", all);
}

#define SHOW "data show --json --pictures --limit 20 "

static void
test_pages(void)
{
    struct tui_samples s;
    tui_samples_open(&s, &app, "mild", ask, asked);
    is_str(asked, SHOW "--epoch 0 --from 0 R train_data",
           "at first the first samples of what is trained with are asked for");
    is_str(s.name, "mild", "of the recipe");
    answer(&s, 50, 20, 0);
    s.shown = 8;
    press(&s, TUI_DO_everywhere_right, "", "the next ones have come already");
    is_int(s.first, 8, "and are shown");
    press(&s, TUI_DO_everywhere_right, "", "those behind too");
    press(&s, TUI_DO_everywhere_left, "", "one goes back by what was shown");
    is_int(s.first, 8, "to those before");
    s.first = 5;
    press(&s, TUI_DO_everywhere_left, "", "not beyond");
    is_int(s.first, 0, "the first");
    s.first = 16;
    press(&s, TUI_DO_everywhere_right, SHOW "--epoch 0 --from 20 R train_data",
          "behind those that came the next are asked for");
    is_int(s.first, 0, "of which the first are shown");
    answer(&s, 50, 20, 0);
    s.first = 16;
    press(&s, TUI_DO_everywhere_right, SHOW "--epoch 0 --from 40 R train_data",
          "and the next");
    answer(&s, 50, 10, 0);
    s.first = 8;
    press(&s, TUI_DO_everywhere_right, "", "behind the last are none");
    is_int(s.first, 8, "which stay");
    s.first = 0;
    press(&s, TUI_DO_everywhere_left, SHOW "--epoch 0 --from 20 R train_data",
          "before the first of those that came the others are asked for");
    s.from = 7;
    press(&s, TUI_DO_everywhere_left, SHOW "--epoch 0 --from 0 R train_data",
          "not before the first of all");
    press(&s, TUI_DO_everywhere_left, "", "before which are none");
    s.job.pid = 1;
    answer(&s, 50, 20, 0);
    press(&s, TUI_DO_everywhere_right, "", "while an answer is waited for,");
    is_int(s.first, 0, "no page is turned");
    s.job.pid = 0;
    tui_samples_close(&s);
    ok(!s.is_open && !s.all, "then it is closed");
}

static void
test_options(void)
{
    struct tui_samples s;
    tui_samples_open(&s, &app, "mild", ask, asked);
    answer(&s, 50, 20, 13);
    press(&s, TUI_DO_samples_epoch, SHOW "--epoch 1 --from 0 R train_data",
          "samples are transformed otherwise in the next epoch");
    press(&s, TUI_DO_samples_before, SHOW "--epoch 0 --from 0 R train_data",
          "and in the one before");
    press(&s, TUI_DO_samples_before, SHOW "--epoch 0 --from 0 R train_data",
          "before the first is none");
    press(&s, TUI_DO_samples_toggle, SHOW "--epoch 0 --from 0 --without 0 R train_data",
          "a transform is left out");
    s.steps.at = 12;
    press(&s, TUI_DO_samples_toggle,
          SHOW "--epoch 0 --from 0 --without 0,12 R train_data", "then one more");
    s.steps.at = 0;
    press(&s, TUI_DO_samples_toggle,
          SHOW "--epoch 0 --from 0 --without 12 R train_data", "or is taken back");
    s.steps.at = 13;
    press(&s, TUI_DO_samples_toggle, "", "one that is not there is not left out");
    is_str(tui_samples_hint(&s, TUI_DO_samples_toggle) ? "none" : "usual", "usual",
           "the key has its hint where there are transforms");
    press(&s, TUI_DO_samples_epoch, SHOW "--epoch 1 --from 0 --without 12 R train_data",
          "options go together");
    s.from = 20;
    s.first = 4;
    press(&s, TUI_DO_samples_data, SHOW "--epoch 0 --from 0 R eval_data",
          "other data begin anew");
    is_int(s.first, 0, "from the first");
    is_int(s.steps.at, 0, "with the first transform selected");
    is_str(tui_samples_hint(&s, TUI_DO_samples_data), "train_data",
           "the key says that it goes back");
    answer(&s, 50, 20, 0);
    is_str(tui_samples_hint(&s, TUI_DO_samples_toggle), "",
           "without transforms their key has no hint");
    press(&s, TUI_DO_samples_data, SHOW "--epoch 0 --from 0 R train_data",
          "and goes back");
    ok(!tui_samples_hint(&s, TUI_DO_samples_data), "from where it has its own hint");
    char text[256];
    is_refused = true;
    (void)tui_samples_act(&s, TUI_DO_samples_epoch);
    is_refused = false;
    is_int(tui_samples_message(&s, text, sizeof text), TUI_BAD,
           "where nothing can be started that is bad");
    is_str(text, "x no process is left", "and said");
    tui_samples_close(&s);
}

/* The process that was asked has ended with CODE; it printed OUT and ERROR. */
static void
comes(struct tui_samples *s, int code, char *out, const char *error)
{
    char text[256];
    pid_t pid = fork();
    if (pid < 0)
        bail("no process");
    if (pid == 0)
        _exit(code);
    s->job = (struct tui_job){.pid = pid, .out = -1, .err = -1, .input = -1};
    s->job.text = out;
    s->job.n = strlen(out);
    s->job.n_error = strlen(error);
    snprintf(s->job.error, sizeof s->job.error, "%s", error);
    is_int(tui_samples_message(s, text, sizeof text), *s->problem ? TUI_BAD : TUI_TEXT,
           "an answer is waited for");
    ok(*s->problem || strcmp(text, "reading samples...") == 0, "which is said");
    ok(tui_samples_tick(s), "it comes");
    s->job.text = NULL;
}

static void
test_answers(void)
{
    static const struct {
        int code;
        const char *out, *error, *problem;
        int samples;
    } rows[] = {
        {0, "{\"samples\": 7}", "", "", 7},
        {2, "{\"samples\": 8}", "{\"message\": \"no such file\"}", "no such file", 7},
        {0, "{\"samples\": 9}", "a warning", "", 9},
        {1, "", "cannot read it", "cannot read it", 9},
        {0, "[1]", "", "etude data show ended without a word", 9},
        {0, "{\"samples\": 5}", "", "", 5},
    };
    struct tui_samples s;
    tui_samples_open(&s, &app, "mild", ask, asked);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char out[64];
        snprintf(out, sizeof out, "%s", rows[i].out);
        comes(&s, rows[i].code, out, rows[i].error);
        is_str(s.problem, rows[i].problem, "answer %zu has its problem, or none", i);
        is_int(json_integer_value(json_object_get(s.all, "samples")), rows[i].samples,
               "and the last that was good is shown");
    }
    tui_samples_close(&s);
    ok(!tui_samples_tick(&s), "what is closed gets no answer");
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    app.cx = cx;
    test_pages();
    test_options();
    test_answers();
    et_ctx_free(&cx);
    return done();
}
