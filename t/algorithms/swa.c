/* SPDX-License-Identifier: Apache-2.0 */
/* SWA: spec/algorithms.md 2.26. */
#include "t/algorithms/fixture.h"

#include <math.h>
#include <string.h>

#include "core/algorithms/swa.h"

static void
test_rates(void)
{
    static const double linear[] = {.1, .0775, .055, .0325, .01, .01};
    static const double cosine[] = {.1, .08682, .055, .02318, .01, .01};
    for (int i = 0; i < 6; i++) {
        is_near(eti_swa_rate(.1, .01, false, 4, i), linear[i], 1e-15,
                "%d steps of 4 from .1 to .01, linear", i);
        is_near(eti_swa_rate(.1, .01, true, 4, i), cosine[i], 1e-5, "cosine");
    }
}

/* ---- a run, watched before and behind SWA ---- */

enum { ROOM = 1 << 18, STATISTICS = 16 };
struct spy {
    struct et_algorithm algorithm; /* first */
    bool behind;                   /* SWA acts before it */
};

static float now[ROOM], mean[ROOM], statistics[2][STATISTICS];
static int64_t n_weights;
static int samples, adopted_at;
static double rate[32];
static int n_rates;

static void
read_weights(struct et_state *s)
{
    n_weights = s->params->total;
    if (n_weights > ROOM)
        bail("%d weights", (int)n_weights);
    need(s->cx, et_tensor_read(s->cx, s->params->values, now,
                               (size_t)n_weights * sizeof *now));
}

static void
read_statistics(struct et_state *s, bool behind)
{
    need(s->cx, et_model_get_param(s->model, "bn1.running_mean", 17, statistics[behind],
                                   STATISTICS));
}

/* Samples are taken at the ends of epochs 7, 8 and 9. */
static et_status
watch(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    bool behind = ((struct spy *)self)->behind;
    (void)event, (void)log;
    read_weights(s);
    read_statistics(s, behind);
    if (!behind && s->timestamp.epoch >= 7 && samples < 3) {
        samples++;
        for (int64_t i = 0; i < n_weights; i++)
            mean[i] += (now[i] - mean[i]) / (float)samples;
    }
    if (behind && memcmp(statistics[0], statistics[1], sizeof *statistics) != 0)
        diag("running statistics jump at epoch %d", (int)s->timestamp.epoch);
    double far = 0;
    for (int64_t i = 0; i < n_weights; i++)
        far = fmax(far, fabs((double)(now[i] - mean[i])));
    if (behind && samples == 3 && far < 1e-6 && !adopted_at)
        adopted_at = (int)s->timestamp.epoch;
    return ET_OK;
}

static const struct et_algorithm_class spy_class = {
    .info = {.name = "spy"},
    .events = ET_ON(EPOCH_END),
    .apply = watch,
};

static void
test_average(struct et_ctx *cx)
{
    struct spy before = {.algorithm = {.type = &spy_class, .cx = cx}};
    struct spy behind = {.algorithm = {.type = &spy_class, .cx = cx}, .behind = true};
    struct et_algorithm *swa =
        algorithm(cx, "swa", OPTIONS("swa_start", "0.7dur", "swa_end", "0.9dur"));
    struct et_algorithm *list[] = {&before.algorithm, swa, &behind.algorithm};
    struct run_setup setup = {
        .n = 8, .model = "resnet8", .max_duration = ET_EPOCHS(10)};
    struct losses plain = train(cx, setup, NULL, 0);
    struct losses with = train(cx, setup, list, 3);
    is_int(samples, 3, "weights are sampled behind epochs 7, 8 and 9");
    is_int(adopted_at, 9, "their mean is the weights at the end of epoch 9");
    ok(memcmp(statistics[0], statistics[1], sizeof *statistics) == 0,
       "running statistics are not averaged");
    int same = 0;
    while (same < plain.n && same < with.n && plain.v[same] == with.v[same])
        same++;
    is_int(same, 18, "training is another one from epoch 10 on, not before");
    et_algorithm_free(&swa);
}

/* ---- the rate ---- */

static et_status
note_rate(struct et_algorithm *self, enum et_event event, struct et_state *s,
          struct et_log *log)
{
    (void)self, (void)event, (void)log;
    if (n_rates < 32)
        rate[n_rates++] = et_optimizer_group(s->optimizer, 0)->lr;
    return ET_OK;
}

static const struct et_algorithm_class rate_class = {
    .info = {.name = "spy"},
    .events = ET_ON(BATCH_END),
    .apply = note_rate,
};

/* Of 20 batches at 0.1: samples from the 5th on, every second; adopted at the 17th. */
static void
test_schedule(struct et_ctx *cx)
{
    struct et_algorithm spy = {.type = &rate_class, .cx = cx};
    struct et_algorithm *swa = algorithm(
        cx, "swa",
        OPTIONS("swa_start", "2ep", "swa_end", "8ep", "update_interval", "2ba",
                "schedule_swa_lr", "true", "anneal_steps", "4", "swa_lr", "0.02"));
    struct et_algorithm *list[] = {&spy, swa};
    static const double want[20] = {.1,  .1,  .1,  .1,  .1,  .08, .08, .06, .06, .04,
                                    .04, .02, .02, .02, .02, .02, .02, .1,  .1,  .1};
    n_rates = 0;
    train(cx, (struct run_setup){.n = 8, .max_duration = ET_EPOCHS(10)}, list, 2);
    double worst = n_rates == 20 ? 0 : INFINITY;
    for (int i = 0; i < n_rates && i < 20; i++)
        worst = fmax(worst, fabs(rate[i] - want[i]));
    ok(worst < 1e-12,
       "the rate goes to swa_lr sample by sample, and back when it is over (%g)",
       worst);
    for (int i = 0; worst >= 1e-12 && i < n_rates; i++)
        diag("%d: %g", i, rate[i]);
    et_algorithm_free(&swa);
}

/* The same at half the rate: it is half of it that the rate begins at. */
static void
test_scaled_schedule(struct et_ctx *cx)
{
    struct et_algorithm spy = {.type = &rate_class, .cx = cx};
    struct et_algorithm *swa = algorithm(
        cx, "swa",
        OPTIONS("swa_start", "2ep", "swa_end", "8ep", "update_interval", "2ba",
                "schedule_swa_lr", "true", "anneal_steps", "4", "swa_lr", "0.02"));
    struct et_algorithm *list[] = {&spy, swa};
    const struct et_scheduler_class *c = et_scheduler_find("constant");
    void *options;
    need(cx, et_options_new(cx, &c->info, OPTIONS("alpha", "0.5", "t_max", "1dur"),
                            &options));
    const struct et_scheduler half = {.type = c, .options = options};
    static const double want[20] = {.05,  .05,  .05,   .05,   .05, .0425, .0425,
                                    .035, .035, .0275, .0275, .02, .02,   .02,
                                    .02,  .02,  .02,   .05,   .05, .05};
    struct run_setup setup = {
        .n = 8, .max_duration = ET_EPOCHS(10), .algorithms = list, .n_algorithms = 2};
    struct run r;
    n_rates = 0;
    run_prepare(&r, cx, &setup);
    r.config.schedulers = &half;
    r.config.n_schedulers = 1;
    run_start(&r);
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    run_close(&r);
    double worst = n_rates == 20 ? 0 : INFINITY;
    for (int i = 0; i < n_rates && i < 20; i++)
        worst = fmax(worst, fabs(rate[i] - want[i]));
    ok(worst < 1e-12, "where a schedule has halved it, from that rate (%g)", worst);
    for (int i = 0; worst >= 1e-12 && i < n_rates; i++)
        diag("%d: %g", i, rate[i]);
    et_algorithm_free(&swa);
    et_options_free(&c->info, &options);
}

static int warnings;

static void
count_warnings(void *data, enum et_log_level level, const char *text)
{
    (void)data, (void)level;
    warnings += strstr(text, "swa: ") != NULL;
}

static void
test_end(struct et_ctx *cx)
{
    struct et_algorithm *swa;
    et_ctx_set_log(cx, ET_LOG_WARN, count_warnings, NULL);
    swa = algorithm(cx, "swa", OPTIONS("swa_end", "1dur"));
    is_int(warnings, 1, "swa_end 1dur is warned of");
    train(cx, (struct run_setup){.n = 4, .max_duration = ET_EPOCHS(4)}, &swa, 1);
    is_int(warnings, 2, "and an average that nothing is trained with");
    et_ctx_set_log(cx, ET_LOG_WARN, NULL, NULL);
    et_algorithm_free(&swa);
}

static void
test_refusals(struct et_ctx *cx)
{
    const struct {
        const char *const *options;
        const char *says;
    } rows[] = {
        {OPTIONS("swa_start", "1ep"), "one unit"},
        {OPTIONS("swa_start", "0.97dur"), "after"},
        {OPTIONS("swa_end", "1.5dur"), "1dur"},
        {OPTIONS("swa_start", "3ba"), "swa_start"},
        {OPTIONS("update_interval", "0ba"), "update_interval"},
        {OPTIONS("anneal_steps", "0"), "anneal_steps"},
        {OPTIONS("anneal_strategy", "step"), "cosine"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *why = refusal(cx, "swa", rows[i].options);
        ok(strstr(why, rows[i].says), "%s = %s is refused: %s", rows[i].options[0],
           rows[i].options[1], why);
    }
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    test_rates();
    test_average(cx);
    test_schedule(cx);
    test_scaled_schedule(cx);
    test_end(cx);
    test_refusals(cx);
    check_run(
        cx, (struct run_setup){.n = 16, .batch_size = 4, .max_duration = ET_EPOCHS(3)},
        "swa", OPTIONS("swa_start", "0ep", "swa_end", "2ep", "update_interval", "1ba"));
    return finish(cx);
}
