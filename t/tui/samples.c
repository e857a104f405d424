/* SPDX-License-Identifier: Apache-2.0 */
/* samples.c: which key asks for which samples of a recipe's data, and which answers are
 * kept. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "t/tap.h"
#include "tui/samples.h"

static struct et_ctx *cx;
static struct tui_app app;
static char asked[256]; /* the words of the last question; "": nobody was asked */
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
    ok(tui_samples_act(s, action), "samples takes the key");
    is_str(asked, want, "%s", name);
}

/* Puts an answer in place: SHOWN of N samples, and STEPS transforms. */
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
           "opening asks for the first samples of the training data");
    is_str(s.name, "mild", "the samples are of the recipe that was opened");
    answer(&s, 50, 20, 0);
    s.shown = 8;
    press(&s, TUI_DO_everywhere_right, "",
          "a page that is already loaded is shown without asking");
    is_int(s.first, 8, "right moves to the first sample behind the page");
    press(&s, TUI_DO_everywhere_right, "",
          "right asks for nothing while loaded samples follow");
    press(&s, TUI_DO_everywhere_left, "",
          "left asks for nothing while loaded samples precede");
    is_int(s.first, 8, "left moves back by a page");
    s.first = 5;
    press(&s, TUI_DO_everywhere_left, "",
          "left asks for nothing less than a page behind the first sample");
    is_int(s.first, 0, "left stops at the first sample");
    s.first = 16;
    press(&s, TUI_DO_everywhere_right, SHOW "--epoch 0 --from 20 R train_data",
          "right at the end of the loaded samples asks for the next ones");
    is_int(s.first, 0, "the first of newly asked samples are shown");
    answer(&s, 50, 20, 0);
    s.first = 16;
    press(&s, TUI_DO_everywhere_right, SHOW "--epoch 0 --from 40 R train_data",
          "right asks for the third part of the samples");
    answer(&s, 50, 10, 0);
    s.first = 8;
    press(&s, TUI_DO_everywhere_right, "", "right at the last sample asks for nothing");
    is_int(s.first, 8, "right at the last sample keeps the page");
    s.first = 0;
    press(&s, TUI_DO_everywhere_left, SHOW "--epoch 0 --from 20 R train_data",
          "left at the first loaded sample asks for those before");
    s.from = 7;
    press(&s, TUI_DO_everywhere_left, SHOW "--epoch 0 --from 0 R train_data",
          "left asks for no sample before the first of all");
    press(&s, TUI_DO_everywhere_left, "",
          "left at the first sample of all asks for nothing");
    s.job.pid = 1;
    answer(&s, 50, 20, 0);
    press(&s, TUI_DO_everywhere_right, "",
          "right asks for nothing while an answer is outstanding");
    is_int(s.first, 0, "right turns no page while an answer is outstanding");
    s.job.pid = 0;
    tui_samples_close(&s);
    ok(!s.is_open && !s.all, "samples that are closed keep no answer");
}

static void
test_options(void)
{
    struct tui_samples s;
    tui_samples_open(&s, &app, "mild", ask, asked);
    answer(&s, 50, 20, 13);
    press(&s, TUI_DO_samples_epoch, SHOW "--epoch 1 --from 0 R train_data",
          "the key of the next epoch asks for its samples");
    press(&s, TUI_DO_samples_before, SHOW "--epoch 0 --from 0 R train_data",
          "the key of the epoch before asks for its samples");
    press(&s, TUI_DO_samples_before, SHOW "--epoch 0 --from 0 R train_data",
          "the key of the epoch before stays at the first epoch");
    press(&s, TUI_DO_samples_toggle, SHOW "--epoch 0 --from 0 --without 0 R train_data",
          "the toggle asks for samples without the selected transform");
    s.steps.at = 12;
    press(&s, TUI_DO_samples_toggle,
          SHOW "--epoch 0 --from 0 --without 0,12 R train_data",
          "the toggle asks for samples without a second transform");
    s.steps.at = 0;
    press(&s, TUI_DO_samples_toggle,
          SHOW "--epoch 0 --from 0 --without 12 R train_data",
          "the toggle asks for samples with a transform that was left out");
    s.steps.at = 13;
    press(&s, TUI_DO_samples_toggle, "",
          "the toggle asks for nothing where no transform is selected");
    is_str(tui_samples_hint(&s, TUI_DO_samples_toggle) ? "none" : "usual", "usual",
           "the toggle has its usual hint where there are transforms");
    press(&s, TUI_DO_samples_epoch, SHOW "--epoch 1 --from 0 --without 12 R train_data",
          "a question has the epoch and the transforms left out");
    s.from = 20;
    s.first = 4;
    press(&s, TUI_DO_samples_data, SHOW "--epoch 0 --from 0 R eval_data",
          "the key of data asks for the evaluation's samples from the first epoch");
    is_int(s.first, 0, "other data begin at the first sample");
    is_int(s.steps.at, 0, "other data begin with the first transform selected");
    is_str(tui_samples_hint(&s, TUI_DO_samples_data), "train_data",
           "the key of data has the hint that it goes back to training data");
    answer(&s, 50, 20, 0);
    is_str(tui_samples_hint(&s, TUI_DO_samples_toggle), "",
           "the toggle has no hint where there are no transforms");
    press(&s, TUI_DO_samples_data, SHOW "--epoch 0 --from 0 R train_data",
          "the key of data goes back to training data");
    ok(!tui_samples_hint(&s, TUI_DO_samples_data),
       "the key of data has its own hint at training data");
    char text[256];
    is_refused = true;
    (void)tui_samples_act(&s, TUI_DO_samples_epoch);
    is_refused = false;
    is_int(tui_samples_message(&s, text, sizeof text), TUI_BAD,
           "a question that cannot be asked is shown as bad");
    is_str(text, "x no process is left",
           "a question that cannot be asked is shown with its reason");
    tui_samples_close(&s);
}

/* The process that was asked ends with CODE, having printed OUT and ERROR. */
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
           "an outstanding answer is shown as text, or as bad after a bad one");
    ok(*s->problem || strcmp(text, "reading samples...") == 0,
       "an outstanding answer is announced as reading samples");
    ok(tui_samples_tick(s), "an answer that has come is taken");
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
        is_str(s.problem, rows[i].problem,
               "answer %zu is shown with its problem or without one", i);
        is_int(json_integer_value(json_object_get(s.all, "samples")), rows[i].samples,
               "the last good answer stays on show");
    }
    tui_samples_close(&s);
    ok(!tui_samples_tick(&s), "samples that are closed take no answer");
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
