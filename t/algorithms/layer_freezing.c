/* SPDX-License-Identifier: Apache-2.0 */
/* LayerFreezing: spec/algorithms.md 2.15. */
#include "t/algorithms/golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etude/nn.h"
#include "t/unit/rig.h"

/* How many of N linear layers are frozen. */
static int
frozen_of(struct et_ctx *cx, int n, double elapsed, double start, double level)
{
    struct et_module *m;
    int frozen, layers;
    need(cx, et_module_new(cx, &et_sequential_class, NULL, &m));
    for (int i = 0; i < n; i++) {
        need(cx, ET_ADD(cx, m, NULL, linear, .in_features = 1, .out_features = 1));
        need(cx, et_module_add(cx, m, NULL, &et_relu_class, NULL));
    }
    et_freeze_layers(m, et_freeze_fraction(elapsed, start, level), &frozen, &layers);
    if (layers != n)
        bail("%d layers of %d", layers, n);
    et_module_free(&m);
    return frozen;
}

static void
test_depth(struct et_ctx *cx)
{
    is_int(frozen_of(cx, 11, .5, .5, 1), 0, "nothing is frozen at the start");
    ok(et_freeze_fraction(.1, .5, 1) == 0, "nor before it");
    is_int(frozen_of(cx, 11, .75, .5, 1), 5, "half of ten half-way from it");
    is_int(frozen_of(cx, 11, 1, .5, 1), 10, "all but the last at the end");
    is_int(frozen_of(cx, 4, .8, .05, 1), 2, "2 of 4 at .8 from .05 on");
    is_int(frozen_of(cx, 11, 1, .5, 0), 0, "level 0 freezes nothing");
}

/* "frozen ELAPSED NAME NAME ..." */
static void
test_golden(struct et_ctx *cx)
{
    char line[1024], names[1024];
    FILE *file = rig_golden("methods.txt");
    int cases = 0;
    while (fgets(line, sizeof line, file)) {
        struct et_module *m;
        struct et_leaves l;
        int frozen, layers;
        if (strncmp(line, "frozen ", 7) != 0)
            continue;
        double elapsed = strtod(line + 7, NULL);
        m = golden_vision(cx);
        et_freeze_layers(m, et_freeze_fraction(elapsed, .1, .9), &frozen, &layers);
        need(cx, et_module_leaves(cx, m, ET_PARAM, &l));
        int used = snprintf(names, sizeof names, "frozen %.1f", elapsed);
        for (int i = 0; i < l.n; i++)
            if (!l.v[i].param->requires_grad)
                used += snprintf(names + used, sizeof names - (size_t)used, " %s",
                                 l.v[i].name);
        line[strcspn(line, "\n")] = '\0';
        is_str(names, line, "at %.1f what Composer freezes is frozen", elapsed);
        et_leaves_release(&l);
        et_module_free(&m);
        cases++;
    }
    fclose(file);
    is_int(cases, 4, "four fractions of a run");
}

/* ---- a run ---- */

enum { WEIGHTS = 16 * 3 * 3, CHANNELS = 16 };
static float weights[9][WEIGHTS], moments[9][CHANNELS];
static int n_epochs;
static int64_t updates[2];

static et_status
watch(struct et_algorithm *self, enum et_event event, struct et_state *s,
      struct et_log *log)
{
    (void)self, (void)event, (void)log;
    if (n_epochs == 9)
        return ET_OK;
    need(s->cx,
         et_model_get_param(s->model, "conv1.weight", 17, weights[n_epochs], WEIGHTS));
    need(s->cx, et_model_get_param(s->model, "bn1.running_mean", 17,
                                   moments[n_epochs++], CHANNELS));
    updates[0] = s->params->slot[0].updates;
    updates[1] = s->params->slot[s->params->n - 1].updates;
    return ET_OK;
}

static const struct et_algorithm_class spy_class = {
    .info = {.name = "spy"},
    .events = ET_ON(EPOCH_END),
    .apply = watch,
};

/* 8 epochs of two batches; half of the layers are frozen behind the 6th. */
static void
test_run(struct et_ctx *cx)
{
    struct et_algorithm spy = {.type = &spy_class, .cx = cx};
    struct et_algorithm *a =
        algorithm(cx, "layer_freezing", OPTIONS("freeze_start", "0.5"));
    struct et_algorithm *list[] = {a, &spy};
    n_epochs = 0;
    train(
        cx,
        (struct run_setup){.n = 8,
                           .model = "resnet8",
                           .max_duration = ET_EPOCHS(8),
                           .optimizer_options = OPTIONS("lr", "0.05", "momentum", "0.9",
                                                        "weight_decay", "0.1")},
        list, 2);
    is_int(n_epochs, 8, "eight epochs");
    ok(memcmp(weights[3], weights[4], sizeof *weights) != 0,
       "at half of the run the first layer is trained");
    ok(memcmp(weights[5], weights[7], sizeof *weights) == 0,
       "frozen it keeps its bits, for all of momentum and decay");
    is_int(updates[0], 10, "it is frozen behind the fifth of eight epochs");
    is_int(updates[1], 16, "the last layer never");
    ok(memcmp(moments[5], moments[7], sizeof *moments) != 0,
       "running statistics behind it go on");
    et_algorithm_free(&a);
    a = algorithm(cx, "layer_freezing",
                  OPTIONS("freeze_start", "0.5", "freeze_level", "0.8"));
    const struct run_setup setup = {.n = 4,
                                    .model = "resnet8",
                                    .max_duration = ET_EPOCHS(2),
                                    .algorithms = &a,
                                    .n_algorithms = 1};
    is_near(
        last_logged(cx, setup, "layer_freezing/percentage_frozen"), .8, 1e-12,
        "layer_freezing logs the part of the run that is frozen, not of whole layers");
    et_algorithm_free(&a);
}

static int told;

static void
count_told(void *data, enum et_log_level level, const char *text)
{
    (void)data, (void)level;
    told += strstr(text, "layer_freezing: ") != NULL;
}

/* At half of a run that freezes from its begin on half of the layers are frozen; a norm
 * without parameters does not count as a layer. */
static void
test_told(struct et_ctx *cx)
{
    struct et_algorithm *a =
        algorithm(cx, "layer_freezing", OPTIONS("freeze_start", "0"));
    struct et_module *m;
    struct et_log *log;
    struct run r;
    double n = 0;
    int frozen, layers;
    run_open(&r, cx, &(struct run_setup){.n = 8, .max_duration = ET_BATCHES(4)});
    need(cx, et_log_new(cx, NULL, &log));
    r.state->timestamp.batch = 2;
    et_freeze_layers(r.model->root, 0, &frozen, &layers);
    et_ctx_set_log(cx, ET_LOG_INFO, count_told, NULL);
    for (int i = 0; i < 3; i++)
        need(cx, a->type->apply(a, ET_EVENT_EPOCH_END, r.state, log));
    et_ctx_set_log(cx, ET_LOG_WARN, NULL, NULL);
    is_int(told, 1, "what is frozen is told of once");
    ok(et_log_find(log, "layer_freezing/layers_frozen", &n), "and logged");
    is_int((int64_t)n, (layers - 1) / 2, "of %d layers", layers);
    r.state->timestamp.batch = 0;
    et_log_free(&log);
    run_close(&r);
    et_algorithm_free(&a);
    need(cx, et_module_new(cx, &et_sequential_class, NULL, &m));
    need(cx, ET_ADD(cx, m, NULL, layer_norm, .features = 3, .no_affine = true));
    need(cx, ET_ADD(cx, m, NULL, linear, .in_features = 3, .out_features = 3));
    et_freeze_layers(m, 0, &frozen, &layers);
    is_int(layers, 1, "a norm without parameters is no layer to freeze");
    et_module_free(&m);
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    test_depth(cx);
    test_golden(cx);
    test_run(cx);
    test_told(cx);
    const char *why = refusal(cx, "layer_freezing", OPTIONS("freeze_start", "1"));
    ok(strstr(why, "freeze_start"), "freezing from the end on is refused: %s", why);
    ok(*refusal(cx, "layer_freezing", OPTIONS("freeze_level", "1.1")),
       "so is more than all");
    check_run(cx, (struct run_setup){.n = 8, .max_duration = ET_EPOCHS(4)},
              "layer_freezing", OPTIONS("freeze_start", "0.2"));
    return finish(cx);
}
