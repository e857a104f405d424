/* SPDX-License-Identifier: Apache-2.0 */
/* Parameter groups: rates, decays and schedules of their own, by name. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/trainer/state.h"
#include "t/data/fixture.h"
#include "t/tap.h"
#include "t/train/desk.h"
#include "t/train/recipes.h"

/* Plain gradient descent, so that what a first step changes is rate times gradient and
 * decay; norms and biases have names that say so. */
#define NET(optimizer)                                                                 \
    "max_duration: 12ba\nseed: 5\nprecision: fp32\nmodel: {name: "                     \
    "resnet8}\n" IMAGE_DATA "optimizer: {name: sgd, " optimizer "}\n"

struct net {
    struct recipe_run r;
    float *p; /* flat memory */
};

static float *
read_flat(struct recipe_run *r)
{
    size_t bytes;
    return recipe_params(r, &bytes);
}

/* The weights after N batches of TEXT. */
static void
train(struct net *net, struct et_ctx *cx, const char *text, int n)
{
    recipe_open(
        &net->r, cx, text,
        &(struct recipe_choice){.device = "cpu", .repeats = true, .stop_after = n});
    if (n > 0)
        recipe_fit(&net->r);
    net->p = read_flat(&net->r);
}

static void
drop(struct net *net)
{
    free(net->p);
    recipe_close(&net->r);
}

/* Parameter NAME of both: is what AFTER made of BEFORE, less DECAY of it, FACTOR times
 * what PLAIN did? To rounding of the numbers that are subtracted. */
static bool
moved(const struct net *before, const struct net *plain, const struct net *after,
      const char *name, double factor, double decay)
{
    int i = et_param_space_find(before->r.state->params, name);
    int k = et_param_space_find(after->r.state->params, name);
    if (i < 0 || k < 0)
        bail("there is no parameter %s", name);
    const struct et_param_slot *a = &before->r.state->params->slot[i];
    const struct et_param_slot *b = &after->r.state->params->slot[k];
    const double rounding = 4 * 0x1p-24;
    for (int64_t j = 0; j < a->count; j++) {
        double w = before->p[a->offset + j], wanted = plain->p[a->offset + j] - w;
        double is = after->p[b->offset + j] - w;
        double room = rounding * (fabs(w) + fabs(wanted) + fabs(is));
        if (fabs(is - factor * wanted + decay * w) > room)
            return false;
    }
    return true;
}

static const char *
name_with(const struct et_param_space *s, const char *part, bool with)
{
    for (int i = 0; i < s->n; i++)
        if ((strstr(s->slot[i].name, part) != NULL) == with)
            return s->slot[i].name;
    bail("no parameter's name says %s", part);
}

static void
test_rates(struct et_ctx *cx)
{
    struct net start, plain, after;
    train(&start, cx, NET("lr: 0.1"), 0);
    train(&plain, cx, NET("lr: 0.1"), 1);
    train(&after, cx,
          NET("lr: 0.1, weight_decay: 0.5,"
              " groups: [{match: bias, lr: 0.25x, weight_decay: 0},"
              " {match: '^bn1', lr: 0.2}, {match: '^fc', lr: 0.3, weight_decay: 1}]"),
          1);
    const struct et_param_space *s = start.r.state->params;
    const char *bias = name_with(s, "bias", true), *rest = s->slot[0].name;
    ok(moved(&start, &plain, &after, bias, .25, 0),
       "a group at 0.25x learns at a quarter of the rate");
    ok(moved(&start, &plain, &after, "bn1.bias", .25, 0) &&
           moved(&start, &plain, &after, "bn1.weight", 2, .2 * .5),
       "of two groups that fit a name the first has it");
    ok(moved(&start, &plain, &after, "fc.weight", 3, .3 * 1),
       "one with a rate and a decay has these");
    ok(moved(&start, &plain, &after, rest, 1, .1 * .5),
       "the rest is as the optimizer has it");
    const struct et_param_space *t = after.r.state->params;
    ok(t->n_groups == 4 && t->n == s->n && t->total == s->total,
       "groups move parameters, and make none larger");
    ok(et_optimizer_group(after.r.state->optimizer, 1)->lr == .025 &&
           et_optimizer_group(after.r.state->optimizer, 1)->weight_decay == 0 &&
           et_optimizer_group(after.r.state->optimizer, 3)->weight_decay == 1,
       "who watches finds the rate and the decay of each");
    struct et_callback *c;
    static const double rates[] = {.1, .025, .2, .3};
    need(cx, et_callback_new(cx, et_callback_find("lr_monitor"), NULL, NULL, &c));
    need(cx, c->type->run(c, ET_EVENT_BATCH_END, after.r.state, after.r.state->log));
    for (int i = 0; i < 4; i++) {
        char name[32];
        double rate = 0;
        snprintf(name, sizeof name, "lr-SGD/group%d", i);
        ok(et_log_find(after.r.state->log, name, &rate) &&
               fabs(rate - rates[i]) < 1e-12,
           "lr_monitor logs %s as %g", name, rates[i]);
    }
    et_callback_free(&c);
    drop(&start);
    drop(&plain);
    drop(&after);
}

/* One group that has all is the optimizer with other options, bit for bit. */
static void
test_all(struct et_ctx *cx)
{
    struct net a, b;
    train(&a, cx, NET("lr: 0.05, momentum: 0.9, weight_decay: 0.01"), 6);
    train(&b, cx,
          NET("lr: 0.1, momentum: 0.9, groups: [{match: '', lr: 0.5x, weight_decay: "
              "0.01}]"),
          6);
    size_t bytes = (size_t)a.r.state->params->total * sizeof *a.p;
    ok(a.r.state->params->total == b.r.state->params->total &&
           memcmp(a.p, b.p, bytes) == 0,
       "a group that has all is as if the optimizer had its rate and decay");
    drop(&a);
    drop(&b);
}

static void
test_schedules(struct et_ctx *cx)
{
    struct net start, plain, after;
    train(&start, cx, NET("lr: 0.1"), 0);
    train(&plain, cx, NET("lr: 0.1"), 1);
    train(&after, cx,
          NET("lr: 0.1, groups: [{match: bias, scheduler: constant}]") "scheduler: "
                                                                       "{name: linear, "
                                                                       "alpha_i: 0.5, "
                                                                       "alpha_f: 1}\n",
          1);
    const struct et_param_space *s = start.r.state->params;
    ok(moved(&start, &plain, &after, name_with(s, "bias", true), 1, 0),
       "a group has a schedule of its own");
    ok(moved(&start, &plain, &after, s->slot[0].name, .5, 0),
       "and the rest has the run's");
    drop(&start);
    drop(&plain);
    drop(&after);
}

/* What is set while a run is under way, and what is refused. */
static void
test_set(struct et_ctx *cx)
{
    static const struct ask asks[] = {
        {3, "set optimizer.groups.0.lr 2x"},
        {3, "set optimizer.groups.0.weight_decay 0.125"},
        {4, "set optimizer.groups.0.lr fast"},
        {4, "set optimizer.groups.0.match weight"},
        {4, "set optimizer.groups.1.lr 0.1"},
        {5, "set optimizer.lr 0.05"},
    };
    static const char grouped[] =
        NET("lr: 0.1, groups: [{match: bias, lr: 0.5x, weight_decay: 0}]");
    struct result plain = {0}, set = {0};
    struct desk d = desk_train(cx, &(struct how){.text = grouped}, &plain);
    d = desk_train(cx, &(struct how){.text = grouped, .ask = asks, .n = 6}, &set);
    is_int(same_losses(&plain, &set), 4, "a group is set between two batches");
    is_str(d.answer[0], "was 0.5x", "the answer says what its rate was");
    is_str(d.answer[1], "was 0", "and its decay");
    ok(strstr(d.answer[2], "refused: optimizer.groups.0.lr: 'fast' is no rate"),
       "what is no rate is refused");
    ok(strstr(d.answer[3], "cannot be set while a run is under way"),
       "whose a parameter is stays");
    ok(strstr(d.answer[4], "the run has 1 parameter group, counted from 0"),
       "a group that is not there is named");
    is_int(d.n_refused, 3, "(these three)");
    is_str(d.answer[5], "was 0.1", "and the rest's rate is set as ever");
    free(plain.params);
    free(set.params);
    plain = set = (struct result){0};
    static const char all[] = NET("lr: 0.1, groups: [{match: '', lr: 0.5x}]");
    static const char half[] = NET("lr: 0.05");
    static const struct ask twice = {3, "set optimizer.lr 0.2"},
                            once = {3, "set optimizer.lr 0.1"};
    desk_train(cx, &(struct how){.text = all, .ask = &twice, .n = 1}, &set);
    desk_train(cx, &(struct how){.text = half, .ask = &once, .n = 1}, &plain);
    is_int(same_losses(&plain, &set), BATCHES,
           "a group at 0.5x follows the rate that is set");
    free(plain.params);
    free(set.params);
}

static void
test_refused(struct et_ctx *cx)
{
    static const struct {
        const char *text, *why, *what;
    } rows[] = {
        {NET("lr: 1, groups: [{match: 'a(', lr: 1}]"),
         "optimizer.groups.0.match: 'a(' is no regular expression: ",
         "a pattern that is none is refused"},
        {NET("lr: 1, groups: [{match: bias}, {match: '^bias'}]"),
         "optimizer.groups.1: '^bias' fits no parameter that an earlier group does not "
         "have; there are ",
         "one that fits nothing is"},
        {NET("lr: 1, groups: [{match: bias, lr: -1x}]"),
         "optimizer.groups.0.lr: '-1x' is no rate", "a rate below 0 is"},
        {NET("lr: 1, groups: [{match: bias, lr: 1xx}]"),
         "optimizer.groups.0.lr: '1xx' is no rate", "and one with something behind it"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct recipe_run r;
        struct et_trainer *t;
        recipe_prepare(&r, cx, rows[i].text, &(struct recipe_choice){.device = "cpu"});
        bool refused = et_trainer_new(cx, &r.parts.config, &t) == ET_EINVAL;
        ok(refused && strstr(et_error_get(cx)->message, rows[i].why), "%s",
           rows[i].what);
        et_error_clear(cx);
        recipe_close(&r);
    }
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    test_rates(cx);
    test_all(cx);
    test_schedules(cx);
    test_set(cx);
    test_refused(cx);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing leaks");
    et_ctx_free(&cx);
    return done();
}
