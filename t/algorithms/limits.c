/* SPDX-License-Identifier: Apache-2.0 */
/* What algorithms share, and some of them on all sides: draws, who may join, methods of
 * plugins, batches of unequal length, what mixup makes of a batch. */
#include "t/algorithms/fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/algorithms/algorithms.h"
#include "core/algorithms/methods.h"

/* ---- draws ---- */

static int
by_bits(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(uint64_t[2]));
}

/* No two of algorithm, seed, stream, sample and part draw the same. */
static void
test_draws(void)
{
    enum { MOST = 4096 };
    static uint64_t drawn[MOST][2];
    static const enum et_rng_stream streams[] = {ET_RNG_MIX, ET_RNG_SELECT};
    size_t n = 0, same = 0;
    for (int i = 0; et_algorithm_classes[i]; i++)
        for (int k = 0; k < 2 * 2 * 3 * 4; k++) {
            const struct et_algorithm a = {.type = et_algorithm_classes[i]};
            const struct et_state s = {.seed = (uint32_t)(k & 1)};
            struct et_rng r = eti_draws(&a, &s, streams[k / 2 % 2], k / 16, k / 4 % 4);
            struct et_rng again = r;
            if (n == MOST)
                bail("there are more algorithms");
            drawn[n][0] = et_rng_u64(&r);
            drawn[n++][1] = et_rng_u64(&r);
            same += et_rng_u64(&again) == drawn[n - 1][0];
        }
    is_int((int64_t)same, (int64_t)n, "draws repeat");
    qsort(drawn, n, sizeof *drawn, by_bits);
    same = 0;
    for (size_t i = 1; i < n; i++)
        same += drawn[i][0] == drawn[i - 1][0];
    is_int((int64_t)same, 0, "%d draws of algorithms and their parts differ", (int)n);
}

/* ---- classes ---- */

static void
test_joining(void)
{
    static const enum et_event before[] = {ET_EVENT_INIT, ET_EVENT_BEFORE_LOAD,
                                           ET_EVENT_AFTER_LOAD, ET_EVENT_FIT_START};
    struct et_algorithm_class c = {.events = ET_ON(BATCH_END)};
    ok(!et_algorithm_why_not_join(&c) && et_algorithm_switches(&c),
       "what acts on batches alone may join");
    c.flags = ET_ALG_REQUIRED_ON_LOAD;
    is_str(et_algorithm_why_not_join(&c), "changes the model before the first batch",
           "what a model cannot do without may not");
    int right = 0;
    for (int i = 0; i < 4; i++) {
        const uint64_t early = UINT64_C(1) << before[i];
        c = (struct et_algorithm_class){.events = early, .flags = ET_ALG_PREPARES};
        const char *why = et_algorithm_why_not_join(&c);
        right +=
            !et_algorithm_switches(&c) && why && strstr(why, "how steps are taken");
        c = (struct et_algorithm_class){.events = early | ET_ON(BATCH_START)};
        why = et_algorithm_why_not_join(&c);
        right += et_algorithm_switches(&c) && why && strstr(why, "a part of its work");
        c.flags = ET_ALG_PREPARES;
        right += et_algorithm_switches(&c) && !et_algorithm_why_not_join(&c);
    }
    is_int(right, 12, "what acts before the first batch may if it only prepares there");
}

static struct et_algorithm_class plugin = {
    .info = {.name = "a_plugin", .summary = "does", .applies_to = NULL}};

static const struct et_component *
get(const struct et_registry *self, enum et_kind kind, int i)
{
    (void)self;
    return kind == ET_KIND_ALGORITHM && i == 0 ? &plugin.info : NULL;
}

static void
test_methods(void)
{
    static const struct et_registry registry = {.get = get};
    static const struct {
        uint64_t events;
        const char *sort;
    } rows[] = {
        {ET_ON(INIT), "surgery"},
        {ET_ON(INIT) | ET_ON(BATCH_START), "loop"},
        {ET_ON(FIT_START), "loop"},
        {ET_ON(BEFORE_FORWARD), "data"},
        {ET_ON(AFTER_DATALOADER) | ET_ON(BATCH_END), "data"},
        {ET_ON(INIT) | ET_ON(BEFORE_FORWARD), "data"},
    };
    struct eti_method m[ETI_METHODS_MAX];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        plugin.events = rows[i].events;
        const int n = eti_methods(&registry, m, ETI_METHODS_MAX);
        int at = 0;
        while (at < n && strcmp(m[at].name, "a_plugin") != 0)
            at++;
        ok(at < n && m[at].class == &plugin.info &&
               strcmp(m[at].applies_to, "any") == 0,
           "a plugin's method is for anything");
        is_str(at < n ? eti_sort_word(m[at].sort) : "", rows[i].sort,
               "and is shown by when it acts");
    }
    bool ordered, either;
    ok(eti_methods_clash("mixup", "cutmix", &either) && !either &&
           eti_methods_clash("cutmix", "mixup", &either) && !either,
       "two that clash do so in either order");
    ok(eti_methods_clash("label_smoothing", "mixup", &ordered) && ordered &&
           !eti_methods_clash("mixup", "label_smoothing", &ordered),
       "or in one only");
}

/* ---- batches ---- */

/* The last batch of an epoch is shorter, the next one long again. */
static void
test_uneven(struct et_ctx *cx)
{
    const struct {
        const char *name;
        const char *const *options;
    } rows[] = {
        {"mixup", OPTIONS()},
        {"mixup", OPTIONS("interpolate_loss", "true")},
        {"label_smoothing", OPTIONS()},
        {"selective_backprop", OPTIONS("start", "0", "end", "1", "interrupt", "0")},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_algorithm *a = algorithm(cx, rows[i].name, rows[i].options);
        struct losses got = train(
            cx,
            (struct run_setup){.n = 11, .batch_size = 8, .max_duration = ET_EPOCHS(2)},
            &a, 1);
        bool finite = true;
        for (int k = 0; k < got.n; k++)
            finite = finite && isfinite(got.v[k]);
        ok(got.n == 4 && finite, "%s of batches of 8 and 3", rows[i].name);
        et_algorithm_free(&a);
    }
}

enum { N = 8, PIXELS = 48, PARTS = 4, STEPS = 2 };

/* What a batch is before mixup and behind it: a leaf for each part of it. */
struct spy {
    struct et_algorithm algorithm; /* first */
    struct et_tensor *x[PARTS], *target[PARTS];
    float got_x[STEPS][N][PIXELS], got_target[STEPS][N][N];
    int step;
};

static void
keep(struct et_state *s, struct et_tensor **leaf, struct et_tensor *value)
{
    if (!*leaf)
        need(s->cx, et_tensor_new(s->cx, s->dev, value->desc.dtype, value->desc.ndim,
                                  value->desc.shape, ET_ROW_MAJOR, "spy", leaf));
    et_assign(s->graph, *leaf, et_contiguous(s->graph, value, ET_ROW_MAJOR));
}

static et_status
look(struct et_algorithm *self, enum et_event event, struct et_state *s,
     struct et_log *log)
{
    struct spy *spy = (struct spy *)self;
    const int64_t part = s->batch.first_row / s->batch.n;
    (void)log;
    if (event == ET_EVENT_BEFORE_LOSS) {
        keep(s, &spy->x[part], s->batch.x);
        keep(s, &spy->target[part], s->batch.target);
        return et_graph_status(s->graph);
    }
    for (int i = 0; i < PARTS && spy->x[i]; i++) {
        const int64_t n = spy->x[i]->desc.shape[0];
        need(s->cx, et_tensor_read(s->cx, spy->x[i], spy->got_x[spy->step][i * n],
                                   (size_t)n * PIXELS * sizeof(float)));
        need(s->cx,
             et_tensor_read(s->cx, spy->target[i], spy->got_target[spy->step][i * n],
                            (size_t)n * N * sizeof(float)));
    }
    spy->step++;
    return ET_OK;
}

static const struct et_algorithm_class spy_class = {
    .info = {.name = "spy"},
    .events = ET_ON(BEFORE_LOSS) | ET_ON(BATCH_END),
    .apply = look,
};

static void
mix(struct et_ctx *cx, struct spy *spy, int64_t parts)
{
    struct et_algorithm *a = algorithm(cx, "mixup", OPTIONS("alpha", "1"));
    struct et_algorithm *list[] = {a, &spy->algorithm};
    struct run r;
    *spy = (struct spy){.algorithm = {.type = &spy_class, .cx = cx}};
    run_open(&r, cx,
             &(struct run_setup){.n = N,
                                 .batch_size = N,
                                 .grad_accum = parts,
                                 .algorithms = list,
                                 .n_algorithms = 2,
                                 .max_duration = ET_EPOCHS(STEPS)});
    need(cx, et_trainer_fit(r.trainer, ET_TIME_UNSET));
    for (int i = 0; i < PARTS; i++) {
        et_tensor_free(&spy->x[i]);
        et_tensor_free(&spy->target[i]);
    }
    run_close(&r);
    et_algorithm_free(&a);
}

static double
pixel(int sample, int at)
{
    return (7 * sample + at) % 256 / 255.0;
}

/* Each row is sample I and its partner J by one weight: in its image and its target.
 * Returns the weight, or a negative number where it is not so. */
static double
weight_of(const struct spy *spy, int step, int *partners)
{
    double m = -1;
    unsigned own = 0;
    *partners = 0;
    for (int row = 0; row < N; row++) {
        const float *t = spy->got_target[step][row], *x = spy->got_x[step][row];
        int i = 0, j = -1;
        for (int k = 1; k < N; k++)
            i = t[k] > t[i] ? k : i;
        for (int k = 0; k < N; k++)
            j = k != i && t[k] > 0 ? k : j;
        if (j < 0 && fabsf(t[i] - 1) > F32_TOL)
            return -2;
        if (j >= 0 && m >= 0 && fabs(m - (double)t[j]) > F32_TOL)
            return -3;
        m = j >= 0 ? (double)t[j] : m;
        for (int k = 0; k < PIXELS; k++) {
            double want = j < 0 ? pixel(i, k) : (1 - m) * pixel(i, k) + m * pixel(j, k);
            if (!(fabs(want - (double)x[k]) < F32_TOL))
                return -4;
        }
        own |= 1u << i;
        *partners += 1 << 3 * (j < 0 ? i : j); /* octal: each of them once */
    }
    return own == (1u << N) - 1 ? m : -5;
}

static void
test_mixed(struct et_ctx *cx)
{
    static struct spy whole, split;
    int partners;
    double m[STEPS];
    mix(cx, &whole, 1);
    for (int step = 0; step < STEPS; step++) {
        m[step] = weight_of(&whole, step, &partners);
        ok(m[step] > 0 && m[step] <= 0.5,
           "in step %d image and target are mixed alike by at most a half (%g)", step,
           m[step]);
        is_int(partners, 011111111, "each sample is the partner of one");
    }
    ok(fabs(m[0] - m[1]) > F32_TOL, "each step has its own weight");
    for (int64_t parts = 2; parts <= PARTS; parts *= 2) {
        mix(cx, &split, parts);
        ok(memcmp(whole.got_x[0], split.got_x[0], sizeof whole.got_x) == 0 &&
               memcmp(whole.got_target[0], split.got_target[0],
                      sizeof whole.got_target) == 0,
           "in %d parts it is the same", (int)parts);
    }
}

/* ---- selective_backprop ---- */

static bool statistics_moved;

/* Behind the selection, and before anything is trained. */
static et_status
look_at_statistics(struct et_algorithm *self, enum et_event event, struct et_state *s,
                   struct et_log *log)
{
    float mean[16];
    (void)self;
    (void)event;
    (void)log;
    need(s->cx, et_model_get_param(s->model, "bn1.running_mean", 17, mean, 16));
    for (int i = 0; i < 16; i++)
        statistics_moved |= mean[i] != 0;
    return ET_OK;
}

static const struct et_algorithm_class statistics_class = {
    .info = {.name = "spy"},
    .events = ET_ON(BATCH_START),
    .apply = look_at_statistics,
};

/* The model's own class, but that it notes the size of the images it sees. */
static struct et_module_class noting;
static struct et_tensor *(*real_forward)(struct et_module *m, struct et_forward *f,
                                         struct et_tensor *x);
static int64_t height[4], width[4];
static int n_forward;

static struct et_tensor *
note_size(struct et_module *m, struct et_forward *f, struct et_tensor *x)
{
    if (n_forward < 4) {
        height[n_forward] = x->desc.shape[2];
        width[n_forward++] = x->desc.shape[3];
    }
    return real_forward(m, f, x);
}

/* Images of 6 rows and 8 columns, half as large while samples are chosen. */
static void
test_shrinking(struct et_ctx *cx)
{
    struct et_algorithm *a =
        algorithm(cx, "selective_backprop",
                  OPTIONS("start", "0", "interrupt", "0", "scale_factor", "0.5"));
    struct run r;
    run_open(&r, cx,
             &(struct run_setup){
                 .n = 8, .model = "resnet8", .algorithms = &a, .n_algorithms = 1});
    const struct et_module_class *type = r.model->root->type;
    noting = *type;
    noting.forward = note_size;
    real_forward = type->forward;
    r.model->root->type = &noting;
    need(cx, et_trainer_fit(r.trainer, ET_BATCHES(1)));
    r.model->root->type = type;
    ok(n_forward == 2 && height[0] == 3 && width[0] == 4,
       "images are shrunk in both directions for the selection (%d x %d)",
       (int)height[0], (int)width[0]);
    ok(height[1] == 6 && width[1] == 8, "and trained on as they are");
    run_close(&r);
    et_algorithm_free(&a);
}

static void
test_selection(struct et_ctx *cx)
{
    struct et_algorithm spy = {.type = &statistics_class, .cx = cx};
    for (int eval = 0; eval < 2; eval++) {
        struct et_algorithm *a =
            algorithm(cx, "selective_backprop",
                      OPTIONS("start", "0", "interrupt", "0", "eval_mode",
                              eval ? "true" : "false"));
        struct et_algorithm *list[] = {a, &spy};
        statistics_moved = false;
        train(cx,
              (struct run_setup){
                  .n = 8, .model = "resnet8", .max_duration = ET_BATCHES(1)},
              list, 2);
        ok(statistics_moved != (eval == 1),
           "selecting with eval_mode %s moves %s statistics", eval ? "true" : "false",
           eval ? "no" : "the");
        et_algorithm_free(&a);
    }
}

/* ---- gradient_clipping ---- */

/* One step from weights of zero: is anything else behind it? */
static bool
leaves_zero(struct et_ctx *cx, const char *const *options)
{
    struct et_algorithm *a = algorithm(cx, "gradient_clipping", options);
    struct run r;
    bool moved = false;
    run_open(&r, cx, &(struct run_setup){.n = 8, .algorithms = &a, .n_algorithms = 1});
    const size_t bytes = et_desc_bytes(&r.state->params->values->desc);
    float *v = calloc(1, bytes);
    need(cx, et_tensor_write(cx, r.state->params->values, v, bytes));
    need(cx, et_trainer_fit(r.trainer, ET_BATCHES(1)));
    need(cx, et_tensor_read(cx, r.state->params->values, v, bytes));
    for (size_t i = 0; i < bytes / sizeof *v; i++)
        moved |= v[i] != 0;
    free(v);
    run_close(&r);
    et_algorithm_free(&a);
    return moved;
}

/* ---- methods that a run of few epochs never uses ---- */

static void
test_misses(struct et_ctx *cx)
{
    static const char resizing[] = "images never have their full size";
    static const char selection[] = "no batch is ever pruned";
    static const char freezing[] = "no layer is frozen while it trains";
    static const char depth[] = "blocks are never left out at drop_rate";
    static const char ema[] = "the average never begins";
    static const char swa[] = "the average never becomes the weights";
    static const struct {
        const char *name, *options[5];
        int epochs;
        const char *misses; /* NULL: nothing */
    } rows[] = {
        {"progressive_resizing", {"finetune_fraction", "0.2"}, 4, resizing},
        {"progressive_resizing", {"finetune_fraction", "0.2"}, 5, NULL},
        {"selective_backprop", {"start", "0.5", "end", "0.9"}, 1, selection},
        {"selective_backprop", {"start", "0.5", "end", "0.9"}, 2, NULL},
        {"selective_backprop", {"start", "0.5", "end", "0.6"}, 3, selection},
        {"layer_freezing", {"freeze_start", "0.5"}, 2, freezing},
        {"layer_freezing", {"freeze_start", "0.5"}, 3, NULL},
        {"stochastic_depth",
         {"target_layer_name", "ResNetBottleneck", "drop_warmup", "0.5dur"},
         1,
         depth},
        {"stochastic_depth",
         {"target_layer_name", "ResNetBottleneck", "drop_warmup", "0.5dur"},
         2,
         NULL},
        {"ema", {"half_life", "10ba", "ema_start", "0.7dur"}, 2, ema},
        {"ema", {"half_life", "10ba", "ema_start", "0.5dur"}, 2, NULL},
        {"ema", {"half_life", "1ep", "ema_start", "0.7dur"}, 2, NULL},
        {"swa", {"update_interval", "1ba", "swa_end", "0.9dur"}, 2, swa},
        {"swa", {"update_interval", "1ba", "swa_end", "0.9dur"}, 10, NULL},
        {"swa", {"update_interval", "1ep", "swa_end", "0.9dur"}, 2, NULL},
        {"cutmix", {NULL}, 1, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct et_component *c = &et_algorithm_find(rows[i].name)->info;
        char said[512] = "";
        void *values;
        need(cx, et_options_new(cx, c, rows[i].options, &values));
        bool misses =
            eti_method_misses(c, values, ET_EPOCHS(rows[i].epochs), said, sizeof said);
        ok(misses == (rows[i].misses != NULL) &&
               (!misses || strstr(said, rows[i].misses)),
           "%s in %d epochs: %s", rows[i].name, rows[i].epochs,
           misses ? said : "nothing is missed");
        et_options_free(c, &values);
    }
}

int
main(void)
{
    struct et_ctx *cx = need_ctx();
    test_draws();
    test_joining();
    test_methods();
    test_uneven(cx);
    test_mixed(cx);
    test_selection(cx);
    test_shrinking(cx);
    test_misses(cx);
#define ADAPTIVE "clipping_type", "adaptive", "clipping_threshold", "0.5"
    ok(leaves_zero(cx, OPTIONS(ADAPTIVE)), "weights of zero have a gradient");
    ok(!leaves_zero(cx, OPTIONS(ADAPTIVE, "compat", "true")), "and in compat none");
    return finish(cx);
}
