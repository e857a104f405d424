/* SPDX-License-Identifier: Apache-2.0 */
/* Formulas in schedules: what they come to, where they may stand, and what is said of
 * those that are wrong. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/assemble/formulas.h"
#include "core/recipe/recipe.h"
#include "core/sched/formula.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static const struct eti_placeholders run = {3, 40, 7};

/* ---- one formula ---- */

static void
comes_to(const char *text, enum et_option_type type, const char *want)
{
    char out[64] = "";
    bool known;
    struct et_error why = {0};
    et_status s = eti_formula_text(text, type, &run, out, sizeof out, &known, &why);
    is_str(s == ET_OK ? out : why.message, want, "%s", text);
}

static void
test_values(void)
{
    comes_to("NUM_EPOCHS * NUM_UPDATE_STEPS_PER_EPOCH ba", ET_OPT_TIME, "120ba");
    comes_to("NUM_UPDATE_STEPS_PER_EPOCH * (NUM_EPOCHS - 1)ba", ET_OPT_TIME, "80ba");
    comes_to("(NUM_EPOCHS + 3) * 2 ep", ET_OPT_TIME, "12ep");
    comes_to("TRAIN_DATALOADER_LEN+PER_PROCESS_NUM_UPDATE_STEPS_PER_EPOCH ba",
             ET_OPT_TIME, "80ba");
    comes_to("EVAL_DATALOADER_LEN / 2 ba", ET_OPT_TIME, "3ba");
    comes_to("min(NUM_EPOCHS, 2) ep", ET_OPT_TIME, "2ep");
    comes_to("1 / NUM_UPDATE_STEPS_PER_EPOCH dur", ET_OPT_TIME,
             "0.025000000000000001dur");
    comes_to("10 ^ -NUM_EPOCHS", ET_OPT_FLOAT, "0.001");
    comes_to("NUM_EPOCHS - 4 ep", ET_OPT_TIME,
             "'NUM_EPOCHS - 4 ep': comes to less than 0");
    comes_to("NUM_EPOCHS - 3 ep", ET_OPT_TIME, "0ep");
    comes_to("NUM_EPOCHS * 2", ET_OPT_TIME,
             "'NUM_EPOCHS * 2': a unit is missing at the end, such as ba or ep");
    comes_to("NUM_EPOCHS ba  ", ET_OPT_TIME, "3ba");
    comes_to("NUM_EPOCHS e", ET_OPT_TIME,
             "'NUM_EPOCHS e': a unit is missing at the end, such as ba or ep");
    comes_to("1 / NUM_EPOCHS", ET_OPT_FLOAT, "0.33333333333333331");
    comes_to("1 - NUM_EPOCHS", ET_OPT_FLOAT, "-2");
    comes_to("NUM_EPOCHS / 0 ep", ET_OPT_TIME, "'NUM_EPOCHS / 0 ep' is inf");
    comes_to("NUM_EPOCHS * ba", ET_OPT_TIME,
             "'NUM_EPOCHS * ', character 14: a number or a name is missing at the end");
    comes_to("NUM_EPOCH ep", ET_OPT_TIME,
             "'NUM_EPOCH ', character 1: 'NUM_EPOCH' is none of pi, NUM_EPOCHS, "
             "NUM_UPDATE_STEPS_PER_EPOCH, PER_PROCESS_NUM_UPDATE_STEPS_PER_EPOCH, "
             "TRAIN_DATALOADER_LEN, EVAL_DATALOADER_LEN");
}

/* A text that is too long is refused, and none is cut. */
static void
test_lengths(void)
{
    char text[513], why[300];
    snprintf(text, sizeof text, "%511s", "12");
    comes_to(text, ET_OPT_FLOAT, "12");
    snprintf(text, sizeof text, "%512s", "12");
    snprintf(why, sizeof why, "'%.200s': is longer than a formula may be", text);
    comes_to(text, ET_OPT_FLOAT, why);
}

static void
test_unknown(void)
{
    const struct eti_placeholders some = {3, 0.0 / 0.0, 0.0 / 0.0};
    char out[64];
    bool known;
    struct et_error why = {0};
    is_int(eti_formula_text("NUM_EPOCHS ep", ET_OPT_TIME, &some, out, sizeof out,
                            &known, &why),
           ET_OK, "what does not need the data is known without them");
    ok(eti_formula_text("2 * NUM_UPDATE_STEPS_PER_EPOCH ba", ET_OPT_TIME, &some, out,
                        sizeof out, &known, &why) == ET_EINVAL &&
           !known,
       "what needs them is not");
    is_str(why.message, "NUM_UPDATE_STEPS_PER_EPOCH is not known", "which is said");
    ok(eti_formula_text("PER_PROCESS_NUM_UPDATE_STEPS_PER_EPOCH ba", ET_OPT_TIME, &some,
                        out, sizeof out, &known, &why) == ET_EINVAL &&
           !known,
       "nor is what has such a name in its own");
    is_str(why.message, "PER_PROCESS_NUM_UPDATE_STEPS_PER_EPOCH is not known",
           "which is said whole");
}

/* ---- its text ---- */

/* N brackets around a number, all of them closed: right but for their number. */
static et_status
read_nested(int n, const struct eti_variable *v, struct et_error *why)
{
    char text[8192];
    double x;
    memset(text, '(', (size_t)n);
    text[n] = '1';
    memset(text + n + 1, ')', (size_t)n);
    text[2 * n + 1] = '\0';
    return eti_formula(text, v, 2, &x, why);
}

static void
test_depth(const struct eti_variable *v)
{
    static const int too_many[] = {65, 100, 1000, 4000};
    struct et_error why;
    double x;
    char row[8192];
    int used = snprintf(row, sizeof row, "0");
    ok(read_nested(64, v, &why) == ET_OK, "64 brackets are read");
    for (size_t i = 0; i < sizeof too_many / sizeof *too_many; i++)
        ok(read_nested(too_many[i], v, &why) == ET_EINVAL, "%d are too many",
           too_many[i]);
    for (int i = 0; i < 200; i++)
        used += snprintf(row + used, sizeof row - (size_t)used, " + -(1)");
    ok(eti_formula(row, v, 2, &x, &why) == ET_OK && x == -200,
       "beside each other there may be more");
}

static void
formulas(void)
{
    static const struct eti_variable v[] = {{"ep", 3}, {"ba", 250}};
    static const struct {
        const char *text;
        double want;
    } rows[] = {
        {"1 + 2 * 3", 7},
        {"(1 + 2) * 3", 9},
        {"8 / 2 / 2", 2},
        {"10 - 3 - 2", 5},
        {"-2 ^ 2", -4},
        {"2 ^ 3 ^ 2", 512},
        {"2 ** -1", .5},
        {"7 % 4 * 2", 6},
        {"--1", 1},
        {"+1 - -1", 2},
        {"ep * ba", 750},
        {"max(1, ep, 2)", 3},
        {"min(4, 2, ba)", 2},
        {"floor(2.7) + ceil(.1)", 3},
        {"abs(-1.5)", 1.5},
        {"exp(log(5))", 5},
        {"log2(8)", 3},
        {"sqrt(16)", 4},
        {"cos(pi) + sin(0)", -1},
        {"tanh(0)", 0},
        {"1 + 1 < 3", 1},
        {"ba >= 250", 1},
        {"ba > 250", 0},
        {"3 < ep", 0},
        {"2 < ep", 1},
        {"ep > 2", 1},
        {"ep <= 2", 0},
        {"ep <= 3", 1},
        {"ep >= 4", 0},
        {"ep == 3", 1},
        {"ep == 4", 0},
        {"ep != 3", 0},
        {"ep != 4", 1},
        {"(ba < 100) * 2 + .5", .5},
        {" 1e2 ", 100},
    };
    static const struct {
        const char *text, *why;
    } wrong[] = {
        {"", "'', character 1: a number or a name is missing at the end"},
        {"1 +", "'1 +', character 4: a number or a name is missing at the end"},
        {"1 + * 2", "'1 + * 2', character 5: a number or a name is missing before '*'"},
        {"2 ep", "'2 ep', character 3: 'e' was not expected"},
        {"(1", "'(1', character 3: a ')' is missing"},
        {"(1 +", "'(1 +', character 5: a number or a name is missing at the end"},
        {"sin(1", "'sin(1', character 6: a ')' is missing"},
        {"si(1)", "'si(1)', character 1: no function is called si"},
        {"sinh(1)", "'sinh(1)', character 1: no function is called sinh"},
        {"max(1", "'max(1', character 6: a ')' is missing"},
        {"epoch", "'epoch', character 1: 'epoch' is none of pi, ep, ba"},
        {"pie", "'pie', character 1: 'pie' is none of pi, ep, ba"},
        {"p", "'p', character 1: 'p' is none of pi, ep, ba"},
        {"e", "'e', character 1: 'e' is none of pi, ep, ba"},
        {"e", "'e', character 1: 'e' is none of pi, ep, ba"},
        {"1 + b", "'1 + b', character 5: 'b' is none of pi, ep, ba"},
        {"p", "'p', character 1: 'p' is none of pi, ep, ba"},
        {"e(1)", "'e(1)', character 1: no function is called e"},
        {".", "'.', character 1: no number"},
    };
    double x;
    struct et_error why;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ok(eti_formula(rows[i].text, v, 2, &x, &why) == ET_OK &&
               fabs(x - rows[i].want) < 1e-12,
           "%s is %g", rows[i].text, rows[i].want);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ok(eti_formula(wrong[i].text, v, 2, &x, &why) == ET_EINVAL, "'%s' is refused",
           wrong[i].text);
        is_str(why.message, wrong[i].why, "and it says where");
    }
    test_depth(v);
}

/* ---- in a recipe ---- */

#define HEAD                                                                           \
    "max_duration: 3ep\n"                                                              \
    "model: mlp\n"                                                                     \
    "train_data: {name: synthetic_images, num_samples: 160, batch_size: 4}\n"          \
    "eval_data: {name: synthetic_images, num_samples: 28, batch_size: 4}\n"

static struct et_recipe *
parse(struct et_ctx *cx, const char *text, struct et_diagnostics *errors)
{
    struct et_recipe *r;
    *errors = (struct et_diagnostics){0};
    if (et_recipe_parse(cx, text, strlen(text), "r.yaml", NULL, 0, NULL, &r, errors) !=
        ET_OK)
        et_error_clear(cx);
    return r;
}

static char told[1024];

static void
tell(void *data, const struct eti_settled *s)
{
    size_t used = strlen(told);
    (void)data;
    snprintf(told + used, sizeof told - used, "%s: %s; ", s->path,
             s->value ? s->value : "?");
}

/* What the formulas of a recipe with these LINES come to, with what P knows. */
static const char *
settled(struct et_ctx *cx, const char *lines, const struct eti_placeholders *p)
{
    struct et_diagnostics errors;
    char text[2048];
    snprintf(text, sizeof text, HEAD "%s", lines);
    struct et_recipe *r = parse(cx, text, &errors);
    told[0] = '\0';
    if (!r) {
        snprintf(told, sizeof told, "%s:%d:%d: %s: %s", errors.v[0].file,
                 errors.v[0].line, errors.v[0].column, errors.v[0].path,
                 errors.v[0].message);
        return told;
    }
    bool all = p != NULL;
    struct eti_placeholders own;
    if (!p)
        eti_placeholders_of(r, NULL, NULL, &own);
    if (eti_formulas_settle(cx, r, p ? p : &own, all, tell, NULL) != ET_OK) {
        snprintf(told, sizeof told, "%s", et_error_get(cx)->message);
        et_error_clear(cx);
    }
    et_recipe_free(&r);
    return told;
}

static void
test_recipe(struct et_ctx *cx)
{
    is_str(
        settled(
            cx,
            "scheduler:\n"
            "- {name: cosine, t_max: (NUM_EPOCHS - 1) * "
            "NUM_UPDATE_STEPS_PER_EPOCH ba, alpha_f: 1 / NUM_EPOCHS}\n"
            "- {name: multistep, milestones: [10ba, TRAIN_DATALOADER_LEN ba, 60ba]}\n",
            &run),
        "scheduler.0.t_max: 80ba; scheduler.0.alpha_f: 0.33333333333333331; "
        "scheduler.1.milestones: [10ba, 40ba, 60ba]; ",
        "times, numbers and lists of a recipe's schedules");
    is_str(settled(cx,
                   "scheduler: {name: sequential, schedulers: [{name: linear, t_max: "
                   "NUM_EPOCHS ep}, constant], milestones: [NUM_EPOCHS - 1 ep]}\n",
                   &run),
           "scheduler.0.schedulers.0.t_max: 3ep; scheduler.0.milestones: [2ep]; ",
           "also of schedules in schedules");
    is_str(settled(cx,
                   "optimizer: {name: sgd, lr: 0.1, groups: [{match: bias, scheduler: "
                   "{name: cosine, t_max: NUM_EPOCHS - 1 ep}}]}\n",
                   &run),
           "optimizer.groups.0.scheduler.0.t_max: 2ep; ", "and of parameter groups");
    is_str(settled(cx,
                   "scheduler: {name: step, step_size: NUM_EPOCHS ep, gamma: 1 / "
                   "TRAIN_DATALOADER_LEN}\n",
                   NULL),
           "scheduler.0.step_size: 3ep; scheduler.0.gamma: ?; ",
           "without the data what needs them stays open");
    is_str(
        settled(
            cx,
            "scheduler:\n"
            "- {name: multistep, milestones: [TRAIN_DATALOADER_LEN ba, 1000ba]}\n"
            "- {name: multistep, milestones: [10ba, TRAIN_DATALOADER_LEN ba, 60ba]}\n",
            NULL),
        "scheduler.0.milestones: ?; scheduler.1.milestones: ?; ",
        "so does a list wherever in it that stands");
    is_str(settled(cx, "scheduler: cosine\n", &run), "", "other schedules have none");
}

static void
test_wrong(struct et_ctx *cx)
{
    const struct eti_placeholders short_run = {1, 40, 0.0 / 0.0};
    is_str(
        settled(cx, "scheduler: {name: cosine, t_max: NUM_EPOCHS * }\n", &run),
        "r.yaml:5:34: scheduler.t_max: 'NUM_EPOCHS *': a unit is missing at the end, "
        "such as ba or ep",
        "a formula that is none is refused where it stands");
    is_str(
        settled(cx, "scheduler: {name: cosine, t_max: NUM_STEPS ba}\n", &run),
        "r.yaml:5:34: scheduler.t_max: 'NUM_STEPS ', character 1: 'NUM_STEPS' is none "
        "of pi, NUM_EPOCHS, NUM_UPDATE_STEPS_PER_EPOCH, "
        "PER_PROCESS_NUM_UPDATE_STEPS_PER_EPOCH, TRAIN_DATALOADER_LEN, "
        "EVAL_DATALOADER_LEN",
        "and one of other names, with those that there are");
    is_str(settled(cx, "scheduler: {name: cosine, t_max: NUM_EPOCHS - 2 ep}\n",
                   &short_run),
           "r.yaml:5:34: scheduler.0.t_max: 'NUM_EPOCHS - 2 ep': comes to less than 0",
           "what comes to nothing is refused when the length is known");
    is_str(settled(cx, "scheduler: {name: cosine, t_max: EVAL_DATALOADER_LEN ba}\n",
                   &short_run),
           "r.yaml:5:34: scheduler.0.t_max: EVAL_DATALOADER_LEN is not known",
           "and what is of data that there are not");
    is_str(settled(cx, "eval_interval: NUM_EPOCHS ep\n", &run),
           "r.yaml:5:16: eval_interval: expected time such as 10ep or 500ba, got "
           "\"NUM_EPOCHS ep\"",
           "outside of schedules there are no formulas");
}

/* The recipe that is written down has the formula, whatever it has come to. */
static void
test_resolved(struct et_ctx *cx)
{
    struct et_diagnostics errors;
    struct et_recipe *r = parse(
        cx, HEAD "scheduler: {name: cosine, t_max: NUM_EPOCHS - 1 ep}\n", &errors);
    char *before, *after;
    need(cx, et_recipe_resolved(cx, r, &before));
    need(cx, eti_formulas_settle(cx, r, &run, true, NULL, NULL));
    need(cx, et_recipe_resolved(cx, r, &after));
    ok(strstr(before, "NUM_EPOCHS - 1 ep") != NULL,
       "a resolved recipe has the formula");
    is_str(after, before, "also when it has been put in");
    const struct et_time *t = NULL;
    for (const struct et_option *row = r->scheduler.v[0].component->options; row->name;
         row++)
        if (strcmp(row->name, "t_max") == 0)
            t = eti_option_field(row, r->scheduler.v[0].options);
    ok(t && t->value == 2 && t->unit == ET_TIME_EPOCH,
       "and the schedule has its value");
    et_free(cx, before);
    et_free(cx, after);
    et_recipe_free(&r);
}

/* The data say how long an epoch is. */
static void
test_measured(struct et_ctx *cx)
{
    struct et_diagnostics errors;
    struct eti_placeholders p;
    struct et_recipe *r = parse(
        cx, HEAD "scheduler: {name: cosine, t_max: NUM_EPOCHS - 1 ep}\n", &errors);
    ok(eti_has_formulas(r), "a recipe with a formula has formulas");
    need(cx, eti_placeholders_measure(cx, r, &p));
    ok(p.epochs == 3 && p.train_batches == 40 && p.eval_batches == 7,
       "its data say how long an epoch is (%g, %g, %g)", p.epochs, p.train_batches,
       p.eval_batches);
    r->max_duration = ET_BATCHES(100);
    need(cx, eti_placeholders_measure(cx, r, &p));
    is_near(p.epochs, 2.5, 0, "100 batches are two and a half epochs of 40");
    et_recipe_free(&r);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    formulas();
    test_values();
    test_lengths();
    test_unknown();
    test_recipe(cx);
    test_wrong(cx);
    test_resolved(cx);
    test_measured(cx);
    et_ctx_free(&cx);
    return done();
}
