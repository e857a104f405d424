/* SPDX-License-Identifier: Apache-2.0 */
/* Schedules: the multipliers at known times, products, warmup, and what is refused. */
#include "etude/ctx.h"
#include "etude/rng.h"
#include "etude/sched.h"
#include "t/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The answers are printed with six digits after the point. */
static const double PRINTED = 5.1e-7;

static struct et_ctx *cx;
static char last_log[256];

static void
keep_log(void *data, enum et_log_level level, const char *text)
{
    (void)data;
    if (level == ET_LOG_WARN)
        snprintf(last_log, sizeof last_log, "%s", text);
}

/* SPEC is "name option=text ..."; 0 when an option does not exist or does not parse. */
static bool
make(const char *spec, struct et_scheduler *out)
{
    char line[512], *save = NULL;
    snprintf(line, sizeof line, "%s", spec);
    out->type = et_scheduler_find(strtok_r(line, " ", &save));
    if (!out->type)
        return false;
    const struct et_component *info = &out->type->info;
    void *options;
    if (et_alloc(cx, info->options_size, &options) != ET_OK)
        return false;
    out->options = options;
    if (et_options_init(cx, info->options, options) != ET_OK)
        return false;
    for (char *item; (item = strtok_r(NULL, " ", &save));) {
        char *value = strchr(item, '=');
        *value++ = 0;
        if (et_options_set(cx, info->options, options, item, value) != ET_OK)
            return false;
    }
    return true;
}

static void
drop(struct et_scheduler *s)
{
    if (!s->type)
        return;
    et_options_release(s->type->info.options, (void *)s->options);
    et_free(cx, (void *)s->options);
}

static struct et_run_length
epochs(double n, double ratio)
{
    return (struct et_run_length){
        .max_duration = ET_EPOCHS(n),
        .dataloader_len = 100,
        .scale_schedule_ratio = ratio,
    };
}

static struct et_timestamp
at_batch(int64_t batch)
{
    return (struct et_timestamp){
        .batch = batch,
        .epoch = batch / 100,
        .batch_in_epoch = batch % 100,
        .sample = batch * 32,
    };
}

/* alpha of SPEC after each of N batch counts. */
static void
follows(const char *spec, struct et_run_length length, const int *batch,
        const double *want, int n)
{
    struct et_scheduler s = {0};
    if (!ok(make(spec, &s), "'%s' is a scheduler", spec)) {
        diag("%s", et_error_get(cx)->message);
        et_error_clear(cx);
    }
    for (int i = 0; s.type && i < n; i++) {
        struct et_timestamp ts = at_batch(batch[i]);
        double got = NAN;
        if (et_schedule_alpha(cx, &s, 1, &ts, &length, &got) != ET_OK) {
            diag("%s", et_error_get(cx)->message);
            et_error_clear(cx);
        }
        is_near(got, want[i], PRINTED, "%s after %d batches", spec, batch[i]);
    }
    drop(&s);
}

static void
curves(void)
{
    static const int batch[] = {0, 1, 50, 100, 250, 500, 750, 999, 1000};
    enum { N = sizeof batch / sizeof *batch };
    static const struct {
        const char *spec;
        double want[N];
    } rows[] = {
        {"step step_size=2ep", {1, 1, 1, 1, .1, .01, .001, 1e-4, 1e-5}},
        {"multistep milestones=[.3dur,.5dur,.9dur]",
         {1, 1, 1, 1, 1, .01, .01, .001, .001}},
        {"linear", {1, .999, .95, .9, .75, .5, .25, .001, 0}},
        {"exponential gamma=.9 decay_period=1ep",
         {1, .998947, .948683, .9, .768433, .590490, .453752, .349046, .348678}},
        {"cosine", {1, .999998, .993844, .975528, .853553, .5, .146447, 2e-6, 0}},
        {"cosine alpha_f=.1",
         {1, .999998, .994460, .977975, .868198, .55, .231802, .100002, .1}},
        {"cosine_warm_restarts t_0=2ep t_mult=2",
         {1, .999938, .853553, .5, .961940, .146447, .915735, .501963, .5}},
        {"polynomial power=2", {1, .998001, .9025, .81, .5625, .25, .0625, 1e-6, 0}},
        {"multistep_with_warmup t_warmup=1ep milestones=[5ep,8ep]",
         {0, .01, .5, 1, 1, .1, .1, .01, .01}},
        {"linear_with_warmup t_warmup=1ep",
         {0, .01, .5, 1, .833333, .555556, .277778, .001111, 0}},
        {"cosine_with_warmup t_warmup=1ep",
         {0, .01, .5, 1, .933013, .586824, .178606, 3e-6, 0}},
        {"polynomial_with_warmup t_warmup=1ep power=2",
         {0, .01, .5, 1, .694444, .308642, .077160, 1e-6, 0}},
        {"constant", {1, 1, 1, 1, 1, 1, 1, 1, 1}},
        {"constant alpha=.5 t_max=5ep", {.5, .5, .5, .5, .5, 1, 1, 1, 1}},
        {"constant_with_warmup t_warmup=1ep alpha=.5",
         {0, .005, .25, .5, .5, .5, .5, .5, .5}},
        {"linear alpha_i=.5 alpha_f=1.5 t_max=500ba",
         {.5, .502, .6, .7, 1, 1.5, 1.5, 1.5, 1.5}},
        {"cosine_warm_restarts t_0=50ba t_mult=2",
         {1, .999013, 1, .5, .5, .691342, 1, .779416, .777785}},
        {"cosine_warm_restarts t_0=250ba",
         {1, .999961, .904508, .654508, 1, 1, 1, .000039, 1}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        follows(rows[i].spec, epochs(10, 1), batch, rows[i].want, N);
}

/* The multipliers of the schedules' own code at the same t: timm 1.0.31 with
 * t_in_epochs=False (multistep's decay_t one later, see there), PyTorch's CyclicLR,
 * LambdaLR and SequentialLR with batches as steps, its OneCycleLR with total_steps =
 * t_max + 1 and pct_start = (t_peak + 1) / total_steps, pytorch-accelerated 0.1.61, all
 * with lr 1. */
static void
borrowed(void)
{
    static const int batch[] = {0, 1, 50, 100, 250, 500, 750, 999, 1000};
    enum { N = sizeof batch / sizeof *batch };
    static const struct {
        const char *spec;
        double want[N];
    } rows[] = {
        {"timm_cosine",
         {1, .999998, .993844, .975528, .853553, .5, .146447, .000002, 0}},
        {"timm_cosine t_warmup=1ep alpha_i=.1 alpha_f=.05 k_decay=2",
         {.1, .109, .55, .999766, .990873, .860876, .432332, .050009, .05}},
        {"timm_cosine t_initial=2ep cycle_mul=2 cycle_decay=.5 cycle_limit=2 "
         "t_warmup=1ep warmup_prefix=true",
         {0, .01, .5, 1, .146447, .25, 0, 0, 0}},
        {"timm_cosine t_initial=240ba cycle_decay=.5 cycle_limit=4 alpha_f=.1",
         {1, .999961, .907009, .666469, .498289, .247444, .124048, .1, .1}},
        {"timm_tanh",
         {.999999, .999999, .999998, .999994, .999877, .982014, .268941, .002522, 0}},
        {"timm_tanh lb=-4 ub=4 t_initial=400ba cycle_mul=1.5 cycle_limit=3 "
         "cycle_decay=.5 alpha_f=.1",
         {.999698, .999686, .997775, .983812, .207283, .498078, .183443, .100138,
          .249950}},
        {"timm_tanh t_initial=9ep t_warmup=1ep alpha_i=.2 warmup_prefix=true",
         {.2, .208, .6, .999999, .999977, .994007, .390682, .002528, 0}},
        {"timm_poly", {1, .999500, .974679, .948683, .866025, .707107, .5, .031623, 0}},
        {"timm_poly power=2 k_decay=1.5 t_initial=3ep cycle_mul=2 cycle_limit=2 "
         "cycle_decay=.5 alpha_f=.1",
         {1, .999654, .881692, .686923, .151527, .360855, .149135, .1, .1}},
        {"timm_step decay_t=2ep decay_rate=.5",
         {1, 1, 1, 1, .5, .25, .125, .0625, .03125}},
        {"timm_step decay_t=150ba decay_rate=.5 t_warmup=1ep alpha_i=.1",
         {.1, .109, .55, 1, .5, .25, .0625, .03125, .015625}},
        {"timm_step decay_t=200ba decay_rate=.5 t_warmup=1ep warmup_prefix=false",
         {0, .01, .5, 1, .5, .25, .125, .0625, .03125}},
        {"timm_multistep decay_t=[4ep,9ep] decay_rate=.1 t_warmup=1ep",
         {0, .01, .5, 1, 1, .1, .1, .1, .01}},
        {"timm_multistep decay_t=[250ba,1dur] decay_rate=.1 t_warmup=1ep alpha_i=.5 "
         "warmup_prefix=false",
         {.5, .505, .75, 1, .1, .1, .1, .1, .01}},
        {"one_cycle",
         {.04, .040026, .104308, .28, .935692, .811746, .283061, .000009, .000004}},
        {"one_cycle anneal_strategy=linear div_factor=10 final_div_factor=100 "
         "t_peak=1ep t_max=9ep",
         {.1, .109, .55, 1, .812688, .5005, .188312, .001, .001}},
        {"one_cycle three_phase=true final_div_factor=4",
         {.04, .040026, .104308, .28, .935692, .28, .030740, .01, .01}},
        {"one_cycle three_phase=true t_peak=4ep anneal_strategy=linear",
         {.04, .0424, .16, .28, .64, .76, .16, .000204, .000004}},
        {"warmup_stable_decay", {0, .1, 1, 1, 1, 1, 1, .005014, .000001}},
        {"warmup_stable_decay t_warmup=1ep alpha_i=.1 t_decay=6ep alpha_f=.02",
         {.1, .109, .55, 1, 1, .599917, .251513, .020817, .02}},
        {"wsd t_warmup=0ba t_decay=6ep alpha_f=.01 decay=inverse",
         {1, 1, 1, 1, 1, .057143, .017021, .010017, .01}},
        {"cosine_with_cooldown t_cooldown=2ep alpha_f=.1",
         {1, .999997, .991353, .965746, .800007, .377792, .108647, .1, .1}},
        {"cosine_with_cooldown t_cooldown=1ep k_decay=1.5",
         {1, 1, .999577, .996619, .948041, .633320, .134736, 0, 0}},
        {"cyclic t_up=2ep", {.1, .1045, .325, .55, .775, .55, .325, .9955, 1}},
        {"cyclic t_up=100ba t_down=2ep alpha_i=.25 mode=triangular2",
         {.25, .2575, .625, 1, .4375, .4375, .390625, .342813, .34375}},
        {"cyclic t_up=70ba mode=exp_range gamma=.999",
         {.1, .112844, .711489, .565322, .400357, .567778, .403550, .189913, .194550}},
        {"expression alpha=.95^ep",
         {1, 1, 1, .95, .9025, .773781, .698337, .630249, .598737}},
        {"lambda alpha=min(1,ba/100)*(ba<500)+.5*(dur>=.5)",
         {0, .01, .5, 1, 1, .5, .5, .5, .5}},
        {"sequential milestones=[1ep,.5dur] "
         "schedulers=[{\"name\":linear,\"alpha_i\":.1,"
         "\"alpha_f\":1},cosine,{\"name\":exponential,\"gamma\":.99,"
         "\"decay_period\":1ba}]",
         {.1, .109, .55, 1, .691342, 1, .081059, .006637, .006570}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        follows(rows[i].spec, epochs(10, 1), batch, rows[i].want, N);
}

/* Half a cosine, as the schedules write it. */
static double
half_cosine(double x)
{
    return .5 + .5 * cos(M_PI * x);
}

static void
cooldown(void)
{
    /* T = 100, W = 20, C = 10: (1 + cos(pi (u - 20) / 70)) / 2 in between. */
    static const int batch[] = {0, 1, 10, 19, 20, 21, 45, 69, 70, 80, 90, 99};
    static const double want[] = {1e-5,     .0500095, .500005,  .9500005,
                                  1,        .9994965, .7169447, .2061153,
                                  .1882632, .0495251, 1e-5,     1e-5};
    follows("cosine_with_cooldown t_warmup=20ba t_cooldown=10ba alpha_i=1e-5 "
            "alpha_f=1e-5",
            epochs(1, 1), batch, want, sizeof batch / sizeof *batch);
    /* With ratio .5 the cooldown is 50 batches; the warmup too only where it says
     * so. */
    static const int half[] = {0, 25, 50, 100, 250, 400, 450, 500};
    follows("cosine_with_cooldown t_warmup=1ep t_cooldown=1ep", epochs(5, .5), half,
            (double[]){0, .25, .5, 1, half_cosine(150. / 350), half_cosine(300. / 350),
                       0, 0},
            8);
    follows("cosine_with_cooldown t_warmup=1ep t_cooldown=1ep scale_warmup=true",
            epochs(5, .5), half,
            (double[]){0, .5, 1, half_cosine(50. / 400), half_cosine(200. / 400),
                       half_cosine(350. / 400), 0, 0},
            8);
    /* A run of tokens: no warmup and no cooldown fit whatever is counted. */
    struct et_run_length tokens = {{3200, ET_TIME_TOKEN}, 100, 1};
    struct et_timestamp ts = {.token = 800};
    static const char *const specs[] = {"cosine_with_cooldown", "timm_cosine"};
    for (int i = 0; i < 2; i++) {
        struct et_scheduler s = {0};
        double alpha = 7;
        ok(make(specs[i], &s) && et_schedule_check(cx, &s, 1, &tokens) == ET_OK &&
               et_schedule_alpha(cx, &s, 1, &ts, &tokens, &alpha) == ET_OK,
           "%s counts tokens in a run of tokens", specs[i]);
        is_near(alpha, half_cosine(.25), 1e-12, "%s is a quarter through", specs[i]);
        drop(&s);
    }
}

/* A decay before each of 250, 500 and 1000: over a tenth of 250, 250, 500 batches. */
static void
decays(void)
{
    static const int batch[] = {1,   224, 226, 240, 249, 250, 475,
                                480, 499, 500, 949, 960, 999, 1000};
    static const double sqrt_decay[] = {.1, 1,       .8,      .225404, .020205,
                                        1,  1,       .552787, .020205, 1,
                                        1,  .552787, .010051, 1e-6};
    follows("wsd num_checkpoints=3", epochs(10, 1), batch, sqrt_decay,
            sizeof batch / sizeof *batch);
    /* Two: before 500 and 1000, over a fifth of 500 batches each. */
    static const double inverse[] = {
        .1, 1, 1, 1, 1, 1, .013289, .012469, .0101, 1, .020198, .016556, .0101, .01};
    follows("wsd num_checkpoints=2 decay=inverse alpha_f=.01 t_decay=.2dur",
            epochs(10, 1), batch, inverse, sizeof batch / sizeof *batch);
    /* As many as there are batches to halve: nothing is too short. */
    follows("wsd num_checkpoints=16 t_warmup=0ba", epochs(10, 1),
            (const int[]){0, 1, 7, 1000}, (const double[]){1, 1, 1, 1e-6}, 4);
}

/* alpha of SPEC at BATCH of ten epochs. */
static double
alpha_at(const char *spec, int batch)
{
    struct et_scheduler s = {0};
    struct et_run_length length = epochs(10, 1);
    struct et_timestamp ts = at_batch(batch);
    double out = NAN;
    if (!make(spec, &s) || et_schedule_alpha(cx, &s, 1, &ts, &length, &out) != ET_OK)
        bail("%s: %s", spec, et_error_get(cx)->message);
    drop(&s);
    return out;
}

static void
noise(void)
{
    enum { N = 400 };
    /* The mean of N draws lies within 4 standard errors but once in 16,000 times, and
     * the seed is fixed. */
    static const char still[] = "timm_step decay_t=2ep decay_rate=.5";
    static const char noisy[] = "timm_step decay_t=2ep decay_rate=.5 "
                                "noise_range_t=[1ep,5ep] noise_pct=.4 noise_std=.1";
    double sum = 0, squares = 0, most = 0;
    int quiet = 0;
    for (int i = 100; i < 100 + N; i++) {
        double n = alpha_at(noisy, i) / alpha_at(still, i) - 1;
        quiet += n == 0;
        sum += n;
        squares += n * n;
        most = fmax(most, fabs(n));
    }
    is_int(quiet, 0, "each step of its range has noise, the first and the last too");
    is_near(sum / N, 0, 4 * .1 / sqrt(N), "noise has no direction");
    is_near(sqrt(squares / N), .1, 4 * .1 / sqrt(2 * N), "its deviation is noise_std");
    ok(most < .4 && most > .2, "and it is less than noise_pct: %g at most", most);
    ok(alpha_at(noisy, 99) == alpha_at(still, 99) &&
           alpha_at(noisy, 500) == alpha_at(still, 500),
       "there is none before its beginning, or from its end on");
    ok(alpha_at(noisy, 150) == alpha_at(noisy, 150) &&
           alpha_at(noisy, 150) != alpha_at(noisy, 151),
       "it is another at each time, and the same when that is asked again");
    ok(alpha_at("timm_multistep decay_t=[2ep] t_warmup=1ep noise_range_t=[0ep]", 50) !=
           alpha_at("timm_multistep decay_t=[2ep] t_warmup=1ep", 50),
       "a warmup has noise, too");
    static const char *const others[] = {
        "timm_cosine",
        "timm_tanh",
        "timm_poly",
        "timm_multistep decay_t=[2ep]",
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        char with[96], seed[128];
        snprintf(with, sizeof with, "%s noise_range_t=[0ba]", others[i]);
        snprintf(seed, sizeof seed, "%s noise_seed=7", with);
        ok(alpha_at(with, 300) != alpha_at(others[i], 300) &&
               alpha_at(with, 300) != alpha_at(seed, 300),
           "%s has it too, and noise_seed gives another", others[i]);
    }
    most = 0;
    for (int i = 0; i < N; i++)
        most = fmax(most, fabs(alpha_at("timm_step decay_t=1dur noise_range_t=[0ba] "
                                        "noise_pct=.05",
                                        i) -
                               1));
    ok(most < .05 && most > .04, "draws beyond noise_pct are drawn again");
    ok(alpha_at("timm_poly step_every=epoch noise_range_t=[0ba]", 310) ==
           alpha_at("timm_poly step_every=epoch noise_range_t=[0ba]", 390),
       "by epoch it stays for the epoch");
}

static void
ratio(void)
{
    static const int batch[] = {0, 50, 100, 250, 300, 500};
    follows("cosine_with_warmup t_warmup=1ep", epochs(5, .5), batch,
            (double[]){0, .5, 1, .691342, .5, 0}, 6);
    /* Differs from Composer, which stays in warmup until batch 100 here. */
    follows("linear_with_warmup t_warmup=1ep scale_warmup=true", epochs(5, .5), batch,
            (double[]){0, 1, 400. / 450, 250. / 450, 200. / 450, 0}, 6);
    follows("multistep_with_warmup t_warmup=1ep scale_warmup=true milestones=[5ep]",
            epochs(5, .5), batch, (double[]){0, 1, 1, .1, .1, .1}, 6);
    /* The peak, too, comes at half the time: after 300 batches. */
    follows("one_cycle t_peak=6ep three_phase=false", epochs(5, .5), batch,
            (double[]){.04, .104308, .28, .935692, 1, 4e-6}, 6);
    follows("timm_poly power=1 t_initial=4ep", epochs(5, .5), batch,
            (double[]){1, .75, .5, 0, 0, 0}, 6);
    follows("step step_size=2ep", epochs(5, .5), batch,
            (double[]){1, 1, .1, .01, .001, 1e-5}, 6);
    follows("polynomial power=2 t_max=2ep", epochs(10, 1), batch,
            (double[]){1, .5625, .25, 0, 0, 0}, 6);
}

/* An epoch has 100 batches. */
static void
by_epoch(void)
{
    static const int batch[] = {0, 1, 99, 100, 250};
    struct et_scheduler list[2] = {{0}, {0}};
    const struct et_run_length length = epochs(10, 1);
    struct et_timestamp ts = at_batch(150);
    double alpha = 7;
    follows("linear step_every=epoch", length, batch, (double[]){1, 1, 1, .9, .8}, 5);
    follows("linear_with_warmup t_warmup=1ep step_every=epoch", length, batch,
            (double[]){0, 0, 0, 1, 1 - 1 / 9.}, 5);
    ok(make("linear step_every=epoch", &list[0]) && make("linear", &list[1]) &&
           et_schedule_alpha(cx, list, 2, &ts, &length, &alpha) == ET_OK,
       "one schedule may step by epoch and another by batch");
    is_near(alpha, .9 * .85, 1e-12, "each keeps its own pace");
    drop(&list[0]);
    drop(&list[1]);

    /* Of a run of 1000 s, 300 have gone, of which the epoch under way has taken 120. */
    const struct et_run_length seconds = {.max_duration = {1000, ET_TIME_SECOND},
                                          .scale_schedule_ratio = 1};
    ts.total_wct = 300;
    ts.epoch_wct = 120;
    ok(make("linear step_every=epoch", &list[0]) &&
           et_schedule_alpha(cx, list, 1, &ts, &seconds, &alpha) == ET_OK,
       "one of a run of so many seconds may step by epoch");
    is_near(alpha, 1 - 180 / 1000., 1e-12,
            "it sees the second at which the epoch began");
    drop(&list[0]);

    /* Of 4000 tokens 900 have been, and 90 samples of 400. */
    static const struct {
        const char *spec;
        struct et_time length;
    } counted[] = {
        {"linear_with_warmup t_warmup=1600tok step_every=epoch", {4000, ET_TIME_TOKEN}},
        {"linear_with_warmup t_warmup=160sp step_every=epoch", {400, ET_TIME_SAMPLE}},
    };
    ts = (struct et_timestamp){.epoch = 1,
                               .token = 900,
                               .token_in_epoch = 100,
                               .sample = 90,
                               .sample_in_epoch = 10};
    for (int i = 0; i < 2; i++) {
        const struct et_run_length run = {counted[i].length, 100, 1};
        ok(make(counted[i].spec, &list[0]) &&
               et_schedule_alpha(cx, list, 1, &ts, &run, &alpha) == ET_OK,
           "%s", counted[i].spec);
        is_near(alpha, .5, 1e-12, "it sees where the epoch began");
        drop(&list[0]);
    }
}

static void
products(void)
{
    struct et_scheduler list[2] = {{0}, {0}};
    struct et_run_length length = epochs(10, 1);
    struct et_timestamp ts = at_batch(500);
    double alpha = 7;
    ok(make("linear", &list[0]) && make("multistep milestones=[3ep]", &list[1]),
       "two schedulers");
    ok(et_schedule_alpha(cx, list, 2, &ts, &length, &alpha) == ET_OK, "have a product");
    is_near(alpha, .05, 1e-12, "several schedulers multiply");
    ok(et_schedule_alpha(cx, list, 0, &ts, &length, &alpha) == ET_OK && alpha == 1,
       "no scheduler leaves the rate alone");
    drop(&list[0]);
    drop(&list[1]);

    ok(make("linear t_max=3200sp", &list[0]), "a schedule may count samples");
    ts = at_batch(50);
    ok(et_schedule_alpha(cx, list, 1, &ts, &length, &alpha) == ET_OK,
       "and has a value");
    is_near(alpha, .5, 1e-12, "by the samples that are done");
    drop(&list[0]);
}

/* CHECK and alpha of SPEC at the end fail with a sentence that holds PART. */
static void
refuses(const char *spec, struct et_run_length length, const char *part,
        const char *name)
{
    struct et_scheduler s = {0};
    struct et_timestamp end = at_batch(1000);
    double alpha;
    ok(make(spec, &s), "'%s' can be written", spec);
    et_status status = et_schedule_check(cx, &s, 1, &length);
    if (status == ET_OK)
        status = et_schedule_alpha(cx, &s, 1, &end, &length, &alpha);
    if (!ok(status == ET_EINVAL && strstr(et_error_get(cx)->message, part), "%s", name))
        diag("status %s, message '%s'", et_status_name(status),
             et_error_get(cx)->message);
    et_error_clear(cx);
    drop(&s);
}

static void
accepts(const char *spec, struct et_run_length length, const char *name)
{
    struct et_scheduler s = {0};
    if (!ok(make(spec, &s) && et_schedule_check(cx, &s, 1, &length) == ET_OK, "%s",
            name))
        diag("%s", et_error_get(cx)->message);
    et_error_clear(cx);
    drop(&s);
}

static void
checks(void)
{
    struct et_run_length run = epochs(10, 1), unknown = {ET_EPOCHS(10), -1, 1};
    struct et_run_length tokens = {{1e6, ET_TIME_TOKEN}, 100, 1};
    refuses("cosine", unknown, "length is not known",
            "1dur of epochs needs their length");
    refuses("cosine_with_warmup t_warmup=100ba", tokens, "different units",
            "warmup in batches does not fit a run in tokens");
    refuses("cosine_with_warmup t_warmup=1ep t_max=5ep", run,
            "ends before max_duration",
            "a schedule with warmup lasts as long as the run");
    refuses("constant_with_warmup t_warmup=1ep t_max=5ep", run,
            "ends before max_duration", "also a constant one");
    refuses("cosine_with_warmup t_warmup=1ep t_max=999ba", run,
            "ends before max_duration", "one that ends a batch before it is refused");
    accepts("cosine_with_warmup t_warmup=1ep t_max=1000ba", run,
            "one that ends with it is taken");
    /* Each that has a warmup and an end, or a warmup alone. */
    static const char *const to_an_end[] = {"linear_with_warmup",
                                            "cosine_with_warmup",
                                            "polynomial_with_warmup",
                                            "constant_with_warmup",
                                            "cosine_with_cooldown",
                                            "wsd",
                                            "one_cycle"};
    static const char *const warming[] = {"linear_with_warmup",
                                          "cosine_with_warmup",
                                          "polynomial_with_warmup",
                                          "constant_with_warmup",
                                          "multistep_with_warmup milestones=[2ep]",
                                          "cosine_with_cooldown",
                                          "wsd t_decay=1ep",
                                          "timm_cosine",
                                          "timm_tanh",
                                          "timm_poly",
                                          "timm_step decay_t=2ep",
                                          "timm_multistep decay_t=[2ep]"};
    char spec[128];
    for (size_t i = 0; i < sizeof to_an_end / sizeof *to_an_end; i++) {
        bool is_cycle = strcmp(to_an_end[i], "one_cycle") == 0;
        const char *warmup = is_cycle ? "" : " t_warmup=1ep";
        snprintf(spec, sizeof spec, "%s%s t_max=999ba", to_an_end[i], warmup);
        if (!is_cycle)
            refuses(spec, run, "t_max 999ba ends before max_duration 10ep",
                    "it lasts as long as the run");
        snprintf(spec, sizeof spec, "%s%s t_max=1000ba", to_an_end[i], warmup);
        accepts(spec, run, spec);
    }
    for (size_t i = 0; i < sizeof warming / sizeof *warming; i++) {
        snprintf(spec, sizeof spec, "%s t_warmup=.0001dur", warming[i]);
        last_log[0] = '\0';
        accepts(spec, run, spec);
        is_str(last_log,
               "t_warmup 0.0001dur is 0ba in this run: there will be no warmup",
               "which is told that it has no warmup");
        snprintf(spec, sizeof spec, "%s t_warmup=.001dur", warming[i]);
        last_log[0] = '\0';
        accepts(spec, run, spec);
        is_str(last_log, "", "one of a batch is one");
    }
    refuses("cosine_warm_restarts t_0=2ep t_mult=.01", run, "shortens the cycles",
            "cycles do not shrink to nothing");
    refuses("cosine_warm_restarts t_0=0ep", run, "at least 1", "nor begin as nothing");
    refuses("step step_size=.0001dur", run, "0ba in this run",
            "steps take a batch or more");
    refuses("exponential gamma=.9 decay_period=0ba", run, "at least 1",
            "a decay takes time");

    refuses("cosine_with_cooldown t_max=5ep", run, "ends before max_duration",
            "a cooldown lasts until the end of the run");
    refuses("cosine_with_cooldown t_cooldown=10ba", tokens, "different units",
            "a cooldown in batches does not fit a run in tokens");
    refuses("timm_cosine t_warmup=10ba", tokens, "different units",
            "nor does a warmup of timm's");
    refuses("warmup_stable_decay decay=inverse alpha_f=0", run, "never reaches",
            "an inverse decay has no end at 0");
    refuses("warmup_stable_decay t_decay=0ba", run, "at least 1",
            "the last decay takes time");
    refuses("one_cycle t_peak=11ep", run, "leaves no time",
            "a cycle has its peak before its end");
    refuses("one_cycle t_peak=6ep three_phase=true", run, "needs it twice",
            "three phases need the way up twice");
    refuses("timm_tanh lb=3", run, "must be below ub", "tanh goes from lb up to ub");
    refuses("timm_poly t_initial=0ep", run, "at least 1", "a cycle takes time");
    refuses("timm_step decay_t=0ba", run, "at least 1", "timm's steps take time");
    refuses("timm_poly noise_range_t=[1ep,2ep,3ep]", run, "a beginning and an end",
            "noise has one range");
    refuses("timm_multistep decay_t=[]", run, "is empty", "and there is one or more");

    refuses("cyclic t_up=0ba", run, "t_up 0ba is 0ba", "a cycle goes up");
    refuses("cyclic t_up=1ep t_down=100tok", run, "different units",
            "and down in the same unit");
    refuses("sequential milestones=[1ep] schedulers=[linear]", run,
            "1 schedulers take 0 milestones, and there are 1",
            "between two schedules is one milestone");
    refuses("sequential milestones=[5ep,200ba] schedulers=[linear,cosine,constant]",
            run, "milestone 200ba does not come after the one before it",
            "milestones come in order");
    refuses("sequential milestones=[5ep] schedulers=[linear,"
            "{\"name\":step,\"step_size\":100tok}]",
            run,
            "step_size 100tok is counted in token, and its milestones are in batch",
            "times within are counted as the milestones are");
    refuses("sequential milestones=[5ep] schedulers=[linear,"
            "{\"name\":linear,\"step_every\":epoch}]",
            run, "step_every of all its schedulers is its own, not that of linear",
            "there is one step_every");
    refuses("sequential milestones=[5ep] schedulers=[linear,"
            "{\"name\":one_cycle,\"t_peak\":6ep}]",
            run, "leaves no time", "each is checked for as long as it holds");
    refuses("sequential milestones=[5ep] schedulers=[linear,"
            "{\"name\":expression,\"alpha\":1+}]",
            run, "'1+', character 3", "and computed where it begins");
    refuses("expression alpha=1-ba/500", run, "is -1 after 1000 batches",
            "a rate is not negative");
    refuses("expression alpha=1/(1000-ba)", run, "is inf after 1000 batches",
            "nor is it without bounds");
    refuses("expression alpha=dur", (struct et_run_length){ET_TIME_UNSET, -1, 1},
            "dur is not known in this run", "dur needs an end");
    refuses("expression alpha=dur",
            (struct et_run_length){{3600, ET_TIME_SECOND}, 100, 1},
            "dur is not known in this run", "which is not a time by the clock");
    refuses("expression alpha=dur", (struct et_run_length){ET_EPOCHS(5), -1, 1},
            "dur is not known in this run", "nor epochs of no known length");
    refuses("expression alpha=dur", (struct et_run_length){ET_EPOCHS(5), 0, 1},
            "dur is not known in this run", "nor of none");

    struct et_scheduler s = {0};
    ok(make("linear_with_warmup t_warmup=.0001dur", &s),
       "a tiny warmup can be written");
    ok(et_schedule_check(cx, &s, 1, &run) == ET_OK && strstr(last_log, "no warmup"),
       "a warmup that rounds to nothing is allowed with a warning");
    drop(&s);
}

/* What SPEC comes to after BATCH batches of RUN. */
static double
value_in(struct et_run_length run, const char *spec, int batch)
{
    struct et_scheduler s = {0};
    struct et_timestamp ts = at_batch(batch);
    double got = NAN;
    ts.token = 64 * ts.sample;
    if (!make(spec, &s) || et_schedule_alpha(cx, &s, 1, &ts, &run, &got) != ET_OK)
        diag("%s: %s", spec, et_error_get(cx)->message);
    et_error_clear(cx);
    drop(&s);
    return got;
}

/* The same of a run of 10 epochs. */
static double
value_at(const char *spec, int batch)
{
    return value_in(epochs(10, 1), spec, batch);
}

/* Where two parts of a curve meet, the later one holds. */
/* A run that has no end: schedules that know theirs stay there, and what needs the
 * run's is refused before the first batch. */
static void
endless(void)
{
    const struct et_run_length run = {ET_TIME_UNSET, 100, 1};
    static const int batch[] = {0, 50, 100, 200, 201, 300, 1000};
    static const double line[] = {0, 0.5, 1, 0.25, 0.25, 0.25, 0.25};
    static const char *const specs[] = {
        "linear_with_warmup t_warmup=1ep t_max=2ep alpha_f=0.25",
        "cosine_with_warmup t_warmup=1ep t_max=2ep alpha_f=0.25",
        "polynomial_with_warmup t_warmup=1ep t_max=2ep alpha_f=0.25",
    };
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        accepts(specs[i], run, "a schedule that knows its end needs not the run's");
        follows(specs[i], run, batch, line, 7);
    }
    struct et_scheduler s = {0};
    ok(make("cosine", &s) && et_schedule_check(cx, &s, 1, &run) == ET_EINVAL,
       "one that lasts as long as the run is refused before it begins");
    et_error_clear(cx);
    drop(&s);
}

static void
borders(void)
{
    static const struct {
        const char *spec;
        int batch;
        double want;
    } rows[] = {
        {"multistep_with_warmup t_warmup=1ep milestones=[1ep]", 99, .99},
        {"multistep_with_warmup t_warmup=1ep milestones=[1ep]", 100, .1},
        {"linear_with_warmup t_warmup=1dur", 999, .999},
        {"linear_with_warmup t_warmup=1dur", 1000, 1},
        {"one_cycle t_peak=10ep div_factor=4 anneal_strategy=linear", 500, .625},
        {"wsd t_warmup=0ba t_decay=101ba num_checkpoints=2", 450, 1},
        {"wsd t_warmup=0ba t_decay=101ba num_checkpoints=2", 475, .292894},
        {"timm_step t_warmup=10ba alpha_i=.5 decay_t=4ba decay_rate=.5", 9, .95},
        {"timm_step t_warmup=10ba alpha_i=.5 decay_t=4ba decay_rate=.5", 10, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        is_near(value_at(rows[i].spec, rows[i].batch), rows[i].want, PRINTED,
                "%s after %d batches", rows[i].spec, rows[i].batch);
    accepts("one_cycle t_peak=10ep", epochs(10, 1), "a cycle may end at its peak");
    accepts("wsd t_decay=1ep alpha_f=0", epochs(10, 1), "a decay may end at 0");
    accepts("cosine_with_warmup t_warmup=10ba t_max=100ba",
            (struct et_run_length){{1e6, ET_TIME_TOKEN}, 100, 1},
            "an end in another unit than the run's is no earlier one");
    struct et_scheduler two[2] = {{0}};
    const struct et_run_length run = epochs(10, 1);
    ok(make("timm_tanh lb=3", &two[0]) && make("linear", &two[1]) &&
           et_schedule_check(cx, two, 2, &run) == ET_EINVAL,
       "of several schedules the first is checked, too");
    et_error_clear(cx);
    drop(&two[0]);
    drop(&two[1]);
}

/* Sequences count what their milestones count, each schedule from its own beginning. */
static void
sequences(void)
{
    static const struct {
        const char *unit;
        struct et_time length;
        int per_batch;
    } units[] = {{"ba", {1000, ET_TIME_BATCH}, 1},
                 {"sp", {32000, ET_TIME_SAMPLE}, 32},
                 {"tok", {2048000, ET_TIME_TOKEN}, 2048}};
    const struct et_run_length run = epochs(10, 1),
                               tokens = {{1e6, ET_TIME_TOKEN}, 100, 1};
    for (int i = 0; i < 3; i++) {
        const struct et_run_length length = {units[i].length, 100, 1};
        char spec[256];
        snprintf(spec, sizeof spec,
                 "sequential milestones=[%d%s,%d%s] schedulers=[linear,cosine,"
                 "{\"name\":polynomial,\"power\":2}]",
                 200 * units[i].per_batch, units[i].unit, 600 * units[i].per_batch,
                 units[i].unit);
        accepts(spec, length, spec);
        is_near(value_in(length, spec, 50), .75, PRINTED, "a quarter of the first");
        is_near(value_in(length, spec, 400), .5, PRINTED, "half of the second");
        is_near(value_in(length, spec, 700), .5625, PRINTED, "a quarter of the last");
    }
    is_near(value_at("sequential milestones=[1dur] schedulers=[linear,cosine]", 1000),
            1, PRINTED, "one that begins where the run ends is at its beginning");
    accepts("sequential milestones=[5ep] schedulers=[constant,{\"name\":cyclic,"
            "\"t_up\":1ep}]",
            run, "times that are not set are not counted");
    accepts("sequential milestones=[200ba] schedulers=[linear,"
            "{\"name\":exponential,\"gamma\":.9,\"decay_period\":10ba}]",
            tokens, "the first schedule is as long as it holds, whatever the run is");
    refuses("sequential milestones=[200ba] schedulers=[constant,linear]", tokens,
            "needs a max_duration",
            "the last is as long as the run, where that is counted in its unit");
    refuses("sequential milestones=[] schedulers=[linear]", run,
            "1 schedulers take 0 milestones, and there are 0",
            "one schedule is no sequence");
    refuses("sequential milestones=[0ba] schedulers=[linear,cosine]", run,
            "milestone 0ba does not come after the beginning", "the first holds");
    refuses("sequential milestones=[5ep,500ba] schedulers=[linear,cosine,constant]",
            run, "milestone 500ba does not come after the one before it",
            "and so does each");
    refuses("sequential milestones=[5ep] schedulers=[linear,"
            "{\"name\":multistep,\"milestones\":[1ep,100tok]}]",
            run, "milestones 100tok is counted in token",
            "every time of a list counts");
    refuses("sequential milestones=[2ep,5ep] schedulers=[linear,"
            "{\"name\":expression,\"alpha\":1+},constant]",
            run, "'1+', character 3", "each schedule is computed where it begins");
}

/* The multipliers that are named for a place of the curve are what it has there,
 * whatever they are: at the end of the warmup (of a schedule without warmup: at the
 * start), halfway from there to t_max, at t_max, and behind it. */
static void
named_places(void)
{
    static const struct {
        const char *name, *more;
        int warm;           /* it has a warmup */
        const char *begins; /* the option that says where it begins; NULL: at 1 */
        double halfway;     /* part of the way; NAN: no matter */
    } rows[] = {
        {"linear", "", 0, "alpha_i", .5},
        {"linear_with_warmup", "", 1, "alpha_i", .5},
        {"cosine", "", 0, NULL, .5},
        {"cosine_with_warmup", "", 1, NULL, .5},
        {"polynomial", "power=2", 0, NULL, .75},
        {"polynomial_with_warmup", "power=2", 1, NULL, .75},
    };
    struct et_rng rng = et_rng_at(3, ET_RNG_DATA, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int round = 0; round < 3; round++) {
            const double from = rows[i].begins ? et_rng_uniform(&rng) : 1,
                         to = et_rng_uniform(&rng);
            const int warm = rows[i].warm * 2 * (1 + (int)et_rng_below(&rng, 99)),
                      end = 1000;
            char spec[256];
            int n = snprintf(spec, sizeof spec, "%s %s alpha_f=%.9g", rows[i].name,
                             rows[i].more, to);
            if (rows[i].begins)
                n += snprintf(spec + n, sizeof spec - (size_t)n, " %s=%.9g",
                              rows[i].begins, from);
            if (warm)
                snprintf(spec + n, sizeof spec - (size_t)n, " t_warmup=%dba", warm);
            const double middle = from + rows[i].halfway * (to - from);
            is_near(value_at(spec, warm), from, PRINTED, "%s: where it begins", spec);
            is_near(value_at(spec, (warm + end) / 2), middle, PRINTED, "halfway");
            is_near(value_at(spec, end), to, PRINTED, "where it ends");
            if (warm)
                is_near(value_at(spec, warm / 2), from / 2, PRINTED,
                        "half of it in the middle of the warmup");
        }
}

/* Each variable of an expression is the counter that it is named for. */
static void
variables(void)
{
    static const struct {
        const char *spec;
        double want;
    } rows[] = {
        {"expression alpha=ep", 3},
        {"expression alpha=ba", 350},
        {"expression alpha=sp", 11200},
        {"expression alpha=tok", 716800},
        {"expression alpha=dur", .35},
        {"expression alpha=ba step_every=epoch", 300},
        {"expression alpha=sp step_every=epoch", 9600},
        {"expression alpha=tok step_every=epoch", 614400},
    };
    const struct et_run_length run = epochs(10, 1);
    struct et_timestamp ts = at_batch(350);
    ts.token = 64 * ts.sample;
    ts.sample_in_epoch = 50 * 32;
    ts.token_in_epoch = 64 * ts.sample_in_epoch;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_scheduler s = {0};
        double got = NAN;
        ok(make(rows[i].spec, &s) &&
               et_schedule_alpha(cx, &s, 1, &ts, &run, &got) == ET_OK,
           "'%s' is computed", rows[i].spec);
        is_near(got, rows[i].want, 1e-12, "and is the run's counter");
        drop(&s);
    }
}

static void
registry(void)
{
    static const char *const aliases[][2] = {
        {"linear_decay", "linear"},
        {"linear_decay_with_warmup", "linear_with_warmup"},
        {"cosine_decay", "cosine"},
        {"cosine_decay_with_warmup", "cosine_with_warmup"},
        {"cosine_warmrestart", "cosine_warm_restarts"},
        {"wsd", "warmup_stable_decay"},
    };
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        ok(et_scheduler_find(aliases[i][0]) == et_scheduler_find(aliases[i][1]) &&
               et_scheduler_find(aliases[i][1]),
           "%s is read as %s", aliases[i][0], aliases[i][1]);
    ok(!et_scheduler_find("cosine_annealing"), "an unknown name finds nothing");
    int n;
    const struct et_scheduler_class *const *list = et_scheduler_list(&n);
    for (int i = 0; i < n; i++) {
        ok(et_scheduler_find(list[i]->info.name) == list[i], "%s is found by its name",
           list[i]->info.name);
        const struct et_option *row = list[i]->info.options;
        while (row->name && strcmp(row->name, "step_every") != 0)
            row++;
        ok(row->name &&
               row->offset == offsetof(struct et_scheduler_options, step_every),
           "%s says how often it is asked", list[i]->info.name);
    }
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no memory");
    et_ctx_set_log(cx, ET_LOG_WARN, keep_log, NULL);
    curves();
    named_places();
    borrowed();
    cooldown();
    decays();
    noise();
    ratio();
    by_epoch();
    products();
    checks();
    endless();
    borders();
    sequences();
    variables();
    registry();
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left allocated");
    et_ctx_free(&cx);
    return done();
}
