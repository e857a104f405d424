/* SPDX-License-Identifier: Apache-2.0 */
/* Flat parameters and update rules, on the reference device and on the CPU: the
 * published numbers, parameters without gradient, skipped steps, surgery, and what is
 * refused. */
#include "etude/etude.h"
#include "t/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A few roundings of numbers near 1 in f32. */
static const double ROUNDED = 4 * 1.2e-7;

static struct et_ctx *cx;
static struct et_device *dev;
static char last_log[256];

static void
keep_log(void *data, enum et_log_level level, const char *text)
{
    (void)data;
    (void)level;
    snprintf(last_log, sizeof last_log, "%s", text);
}

static void
must(et_status status)
{
    if (status != ET_OK)
        bail("%s: %s", et_status_name(status), et_error_get(cx)->message);
}

static void
fails(et_status status, enum et_status want, const char *part, const char *name)
{
    if (!ok(status == want && strstr(et_error_get(cx)->message, part), "%s", name))
        diag("status %s, message '%s'", et_status_name(status),
             et_error_get(cx)->message);
    et_error_clear(cx);
}

/* SPEC is "name option=text ...". The options are made with et_alloc. */
static void
parse(const char *spec, const struct et_optimizer_class **class, void **options)
{
    char line[256], *save = NULL;
    snprintf(line, sizeof line, "%s", spec);
    *class = et_optimizer_find(strtok_r(line, " ", &save));
    if (!*class)
        bail("no optimizer for '%s'", spec);
    const struct et_component *info = &(*class)->info;
    must(et_alloc(cx, info->options_size, options));
    must(et_options_init(cx, info->options, *options));
    for (char *item; (item = strtok_r(NULL, " ", &save));) {
        char *value = strchr(item, '=');
        *value++ = 0;
        must(et_options_set(cx, info->options, *options, item, value));
    }
}

static void
drop(const struct et_optimizer_class *class, void *options)
{
    et_options_release(class->info.options, options);
    et_free(cx, options);
}

/* Parameter I, or moment ARRAY of it, in row-major order. */
static void
read_slot(const struct et_param_space *s, int array, int i, float *out)
{
    struct et_tensor *t;
    must(et_param_space_view(cx, s, array, i, &t));
    must(et_tensor_read(cx, t, out, et_desc_bytes(&t->desc)));
    et_tensor_free(&t);
}

static void
write_slot(const struct et_param_space *s, int array, int i, const float *values)
{
    struct et_tensor *t;
    must(et_param_space_view(cx, s, array, i, &t));
    must(et_tensor_write(cx, t, values, et_desc_bytes(&t->desc)));
    et_tensor_free(&t);
}

static struct et_param_spec
spec(const char *name, int64_t n, int group)
{
    struct et_param_spec s = {.name = name, .group = group};
    et_desc_init(&s.desc, ET_F32, 1, &n, ET_ROW_MAJOR);
    return s;
}

/* One update with the gradient of parameter I filled with GRAD[I]; NAN: it has none. */
static void
step(struct et_graph *g, struct et_optimizer *opt, const float *grad,
     struct et_tensor *skip, bool skipped)
{
    struct et_param_space *s = et_optimizer_space(opt);
    struct et_tensor *grads[8] = {NULL};
    for (int i = 0; i < s->n; i++)
        if (!isnan(grad[i]))
            grads[i] = et_fill(g, ET_F32, s->slot[i].desc.ndim, s->slot[i].desc.shape,
                               grad[i]);
    struct et_tensor *flat = et_param_space_pack(g, s, grads);
    must(et_optimizer_update(g, opt, flat, NULL, skip));
    must(et_eval(g, NULL, 0));
    et_optimizer_done(opt, skipped);
    et_graph_reset(g);
}

/* ---- published numbers: p = 1, g = 0.5 ---- */

static void
follows(const char *text, double alpha, const double *want, int n)
{
    const struct et_optimizer_class *class;
    void *options;
    struct et_param_space *s;
    struct et_optimizer *opt;
    struct et_graph *g;
    parse(text, &class, &options);
    struct et_param_spec one = spec("p", 3, 0);
    must(et_param_space_new(cx, dev, &one, 1, &s));
    write_slot(s, -1, 0, (const float[]){1, 1, 1});
    must(et_optimizer_new(cx, class, options, s, &opt));
    must(et_graph_new(cx, dev, &g));
    et_optimizer_set_alpha(opt, alpha);
    float p[3];
    for (int i = 0; i < n; i++) {
        step(g, opt, (const float[]){0.5f}, NULL, false);
        read_slot(s, -1, 0, p);
        is_near(p[2], want[i], ROUNDED, "%s, alpha %g: update %d", text, alpha, i + 1);
    }
    is_int(s->slot[0].updates, n, "the updates are counted");
    struct et_graph_stats stats;
    et_graph_get_stats(g, &stats);
    is_int((int64_t)stats.plans_built, 1, "and all of them replay one plan");
    et_graph_free(&g);
    et_optimizer_free(&opt);
    et_param_space_free(&s);
    drop(class, options);
}

/* Adam by its definition, in double, where no published numbers are at hand. */
static void
adam_by_hand(double coupled, double scaled, bool amsgrad, double *want, int n)
{
    double p = 1, m = 0, v = 0, most = 0, b1 = 0.9, b2 = 0.999, lr = 0.1;
    for (int i = 1; i <= n; i++) {
        double g = 0.5 + coupled * p;
        p -= lr * scaled * p;
        m = b1 * m + (1 - b1) * g;
        v = b2 * v + (1 - b2) * g * g;
        most = amsgrad ? fmax(most, v) : v;
        p -= lr / (1 - pow(b1, i)) * m / (sqrt(most) / sqrt(1 - pow(b2, i)) + 1e-8);
        want[i - 1] = p;
    }
}

/* RAdam with beta2 = .9 becomes adaptive at update 6: rho is 4.58, then 5.39. */
static void
radam_by_hand(double *want, int n)
{
    double p = 1, m = 0, v = 0, b1 = 0.9, b2 = 0.9, inf = 19;
    for (int i = 1; i <= n; i++) {
        double g = 0.5, left = pow(b2, i), rho = inf - 2 * i * left / (1 - left), r = 1;
        m = b1 * m + (1 - b1) * g;
        v = b2 * v + (1 - b2) * g * g;
        if (rho > 5)
            r = sqrt((rho - 4) * (rho - 2) * inf / ((inf - 4) * (inf - 2) * rho)) *
                sqrt(1 - left) / (sqrt(v) + 1e-8);
        p -= .1 / (1 - pow(b1, i)) * m * r;
        want[i - 1] = p;
    }
}

/* Decay that is not scaled by the rate is warned of from a thousandth a step on. */
static void
warnings(void)
{
    static const char *const names[] = {"decoupled_sgdw", "decoupled_adamw"};
    static const struct {
        const char *decay;
        bool warned;
    } rows[] = {{"0.00099", false}, {"0.001", true}, {"0", false}, {"0.5", true}};
    for (int i = 0; i < 8; i++) {
        const struct et_optimizer_class *class;
        struct et_param_spec one = spec("p", 3, 0);
        struct et_param_space *s;
        struct et_optimizer *opt;
        void *options;
        char text[64];
        snprintf(text, sizeof text, "%s lr=.1 weight_decay=%s", names[i / 4],
                 rows[i % 4].decay);
        last_log[0] = '\0';
        parse(text, &class, &options);
        must(et_param_space_new(cx, dev, &one, 1, &s));
        must(et_optimizer_new(cx, class, options, s, &opt));
        ok((strstr(last_log, "not scaled") != NULL) == rows[i % 4].warned, "%s %s",
           text, rows[i % 4].warned ? "draws a warning" : "draws none");
        et_optimizer_free(&opt);
        et_param_space_free(&s);
        drop(class, options);
    }
}

static void
published(void)
{
    follows("decoupled_sgdw lr=.1 momentum=.9 weight_decay=.01", 1,
            (const double[]){.94, .8356, .691744}, 3);
    ok(strstr(last_log, "multiplies the weights by 0.99"),
       "decay of a hundredth a step draws a warning");
    follows("decoupled_sgdw lr=.1 momentum=.9 weight_decay=.01 nesterov=true", 1,
            (const double[]){.895, .75055, .5710945}, 3);
    follows("decoupled_sgdw lr=.1 momentum=.9 weight_decay=.01", .5,
            (const double[]){.97, .91765, .84531175}, 3);
    follows("decoupled_adamw lr=1e-3 weight_decay=1e-5", 1,
            (const double[]){.99899, .9979800101, .9969700304}, 3);
    follows("decoupled_adamw lr=1e-3 weight_decay=1e-5", .5,
            (const double[]){.999495, .9989900025, .9984850076}, 3);
    follows("decoupled_sgdw lr=0 weight_decay=.5", 1, (const double[]){.5, .25, .125},
            3);

    /* d = .5 + .1 p; the first buffer is d, the next .9 buf + .5 d */
    follows("sgd lr=.1 momentum=.9 dampening=.5 weight_decay=.1", 1,
            (const double[]){.94, .8563, .7516885}, 3);
    follows("sgd lr=.1", 1, (const double[]){.95, .9, .85}, 3);
    double want[4];
    adam_by_hand(0, 0, false, want, 4);
    follows("adam lr=.1", 1, want, 4);
    adam_by_hand(.1, 0, false, want, 4);
    follows("adam lr=.1 weight_decay=.1", 1, want, 4);
    adam_by_hand(.1, 0, true, want, 4);
    follows("adam lr=.1 weight_decay=.1 amsgrad=true", 1, want, 4);
    adam_by_hand(0, .2, false, want, 4);
    follows("adamw lr=.1 weight_decay=.2", 1, want, 4);
    double rectified[9];
    radam_by_hand(rectified, 9);
    follows("radam lr=.1 betas=[.9,.9]", 1, rectified, 9);
    /* s = .125, .1875: d = .5 / sqrt(s); the buffer is d, then .5 d1 + d2 */
    follows("rmsprop lr=.1 alpha=.5 momentum=.5", 1,
            (const double[]){.8585786438, .6723978638}, 2);
    follows("rmsprop lr=.1 alpha=.5", 1, (const double[]){.8585786438, .7431085419}, 2);
    /* the sign is 1, and decay takes a tenth of lr */
    follows("lion lr=.1 weight_decay=.1", 1, (const double[]){.89, .7811}, 2);
}

/* ---- layout ---- */

static void
layout(void)
{
    struct et_param_spec specs[] = {spec("a", 3, 1), spec("b", 64, 0),
                                    spec("c", 65, 1)};
    struct et_param_space *s;
    must(et_param_space_new(cx, dev, specs, 3, &s));
    ok(s->slot[1].offset == 0 && s->slot[0].offset == 64 && s->slot[2].offset == 128 &&
           s->total == 256,
       "parameters begin at multiples of 64, group by group");
    ok(et_param_space_find(s, "c") == 2 && et_param_space_find(s, "d") < 0,
       "parameters are found by name");
    write_slot(s, -1, 0, (const float[]){1, 2, 3});
    float all[256];
    must(et_tensor_read(cx, s->values, all, sizeof all));
    ok(all[63] == 0 && all[64] == 1 && all[66] == 3 && all[67] == 0,
       "a view writes into the flat array and not into gaps");
    et_param_space_free(&s);

    for (int i = 0; i < 3; i++) {
        struct et_param_spec alike[] = {specs[0], specs[1], specs[2]};
        alike[i].name = specs[(i + 1) % 3].name;
        fails(et_param_space_new(cx, dev, alike, 3, &s), ET_EINVAL,
              "two parameters are named", "no two have one name");
    }
    fails(et_param_space_new(cx, dev, specs, 0, &s), ET_EINVAL, "without parameters",
          "a model has parameters");
    specs[2].name = "a";
    fails(et_param_space_new(cx, dev, specs, 3, &s), ET_EINVAL, "named a",
          "names are unique");
    specs[2] = spec("c", 65, 3);
    must(et_param_space_new(cx, dev, specs, 3, &s));
    ok(s->n_groups == 4 && s->slot[2].offset + 128 == s->total,
       "a group may have no parameter");
    et_param_space_free(&s);
    specs[2] = spec("c", 65, 1);
    specs[2].desc.dtype = ET_F16;
    fails(et_param_space_new(cx, dev, specs, 3, &s), ET_EDTYPE, "f16",
          "masters are f32");
    specs[2] = spec("c", 65, 1);
    specs[2].desc.stride[0] = 2;
    fails(et_param_space_new(cx, dev, specs, 3, &s), ET_ESHAPE, "not dense",
          "parameters are dense");
    ok(s == NULL, "what fails gives nothing");
}

/* A filter lies channels-last; its gradient, made row-major, must be put in that
 * order. */
static void
memory_order(void)
{
    static const int64_t shape[] = {2, 3, 2, 2};
    struct et_param_spec filter = {.name = "w"};
    et_desc_init(&filter.desc, ET_F32, 4, shape, ET_CHANNELS_LAST);
    struct et_param_space *s;
    struct et_graph *g;
    must(et_param_space_new(cx, dev, &filter, 1, &s));
    must(et_graph_new(cx, dev, &g));
    const struct et_optimizer_class *class;
    void *options;
    struct et_optimizer *opt;
    parse("sgd lr=1", &class, &options);
    must(et_optimizer_new(cx, class, options, s, &opt));
    struct et_tensor *iota = et_iota(g, ET_F32, 24);
    struct et_tensor *grad = et_reshape(g, iota, 4, shape);
    must(et_optimizer_update(g, opt, et_param_space_pack(g, s, &grad), NULL, NULL));
    must(et_eval(g, NULL, 0));
    float got[24], want[24];
    for (int i = 0; i < 24; i++)
        want[i] = (float)-i;
    read_slot(s, -1, 0, got);
    is_near_array(got, want, 24, 0, "a gradient in another memory order is reordered");
    et_graph_free(&g);
    et_optimizer_free(&opt);
    et_param_space_free(&s);
    drop(class, options);
}

/* ---- no gradient, groups, skipping ---- */

static void
without_gradient(void)
{
    struct et_param_spec specs[] = {spec("a", 5, 0), spec("b", 70, 0), spec("c", 2, 1)};
    const struct et_optimizer_class *class;
    struct et_param_space *s;
    struct et_optimizer *opt;
    struct et_graph *g;
    void *options;
    float p[70], before[70], m[70], ones[70];
    for (int i = 0; i < 70; i++)
        ones[i] = 1;
    parse("decoupled_adamw lr=.1 weight_decay=.01", &class, &options);
    must(et_param_space_new(cx, dev, specs, 3, &s));
    must(et_optimizer_new(cx, class, options, s, &opt));
    must(et_graph_new(cx, dev, &g));
    for (int i = 0; i < 3; i++)
        write_slot(s, -1, i, ones);
    et_optimizer_group(opt, 1)->initial_lr = .2;
    et_optimizer_group(opt, 1)->weight_decay = 0;
    et_optimizer_set_alpha(opt, 1);
    is_near(et_optimizer_group(opt, 1)->lr, .2, 0, "a group has a rate of its own");

    step(g, opt, (const float[]){.5f, NAN, .5f}, NULL, false);
    read_slot(s, -1, 1, p);
    read_slot(s, 0, 1, m);
    ok(p[0] == 1 && p[69] == 1 && m[0] == 0 && s->slot[1].updates == 0,
       "a parameter without gradient keeps value, moments and count");
    read_slot(s, -1, 0, p);
    is_near(p[4], 1 - .01 - .1, ROUNDED, "its neighbour is updated and decays");
    read_slot(s, -1, 2, p);
    is_near(p[1], 1 - .2, ROUNDED, "the other group has its own rate and no decay");

    /* Adam's first update is lr whatever the gradient: only if it counts as the
     * first. */
    step(g, opt, (const float[]){.5f, .5f, .5f}, NULL, false);
    read_slot(s, -1, 1, p);
    is_near(p[0], 1 - .01 - .1, ROUNDED,
            "a parameter that joins late begins at update 1");
    et_optimizer_done(opt, false);
    ok(s->slot[0].updates == 2 && s->slot[1].updates == 1,
       "each counts its own updates, once");

    read_slot(s, -1, 1, before);
    read_slot(s, 1, 1, m);
    struct et_tensor *skip = et_fill(g, ET_U8, 0, NULL, 1);
    step(g, opt, (const float[]){INFINITY, -INFINITY, INFINITY}, skip, true);
    float after[70], m_after[70];
    read_slot(s, -1, 1, after);
    read_slot(s, 1, 1, m_after);
    ok(memcmp(before, after, sizeof after) == 0 && memcmp(m, m_after, sizeof m) == 0 &&
           s->slot[1].updates == 1,
       "a skipped step changes nothing");
    skip = et_fill(g, ET_F32, 0, NULL, 0);
    step(g, opt, (const float[]){.5f, .5f, .5f}, skip, false);
    read_slot(s, -1, 1, after);
    ok(after[0] < before[0] && s->slot[1].updates == 2,
       "a step not skipped changes it");
    float nan = NAN;
    skip = et_fill(g, ET_F32, 0, NULL, (double)nan);
    read_slot(s, -1, 1, before);
    step(g, opt, (const float[]){.5f, .5f, .5f}, skip, true);
    read_slot(s, -1, 1, after);
    ok(memcmp(before, after, sizeof after) == 0, "a skip that is not a number skips");

    step(g, opt, (const float[]){NAN, NAN, NAN}, NULL, false);
    read_slot(s, -1, 1, after);
    ok(memcmp(before, after, sizeof after) == 0, "no gradient at all changes nothing");

    float gaps[64 * 4];
    must(et_tensor_read(cx, s->values, gaps, sizeof gaps));
    bool zero = true;
    for (int i = 5; i < 64; i++)
        zero &= gaps[i] == 0;
    ok(zero, "the gaps between parameters stay zero");
    et_graph_free(&g);
    et_optimizer_free(&opt);
    et_param_space_free(&s);
    drop(class, options);
}

static void
norms_of_each(void)
{
    struct et_param_spec specs[] = {spec("a", 4, 0), spec("b", 4, 0)};
    const struct et_optimizer_class *class;
    struct et_param_space *s;
    struct et_optimizer *opt;
    struct et_graph *g;
    void *options;
    float p[4];
    /* all elements are equal, so |p| / |r| r is p: a step takes away lr of it */
    follows("lamb lr=.1 weight_decay=.1", 1, (const double[]){.9, .81, .729}, 3);
    parse("lamb lr=.1", &class, &options);
    must(et_param_space_new(cx, dev, specs, 2, &s));
    must(et_optimizer_new(cx, class, options, s, &opt));
    must(et_graph_new(cx, dev, &g));
    write_slot(s, -1, 0, (const float[]){3, 3, 3, 3});
    step(g, opt, (const float[]){.5f, .5f}, NULL, false);
    read_slot(s, -1, 0, p);
    is_near(p[0], 3 - .1 * 3, 4 * ROUNDED, "LAMB scales a step by its own parameter");
    read_slot(s, -1, 1, p);
    is_near(p[0], -.1, ROUNDED, "a parameter of zeros takes the plain step");
    et_graph_free(&g);
    et_optimizer_free(&opt);
    et_param_space_free(&s);
    drop(class, options);
}

/* ---- surgery ---- */

/* Slot I of FLAT, memory laid out as S is. */
static void
read_flat(struct et_tensor *flat, const struct et_param_space *s, int i, float *out)
{
    struct et_tensor *t;
    must(et_tensor_view(cx, flat->storage, s->slot[i].offset, &s->slot[i].desc, "flat",
                        &t));
    must(et_tensor_read(cx, t, out, et_desc_bytes(&t->desc)));
    et_tensor_free(&t);
}

static void
fill_tensor(struct et_tensor *t, float v)
{
    size_t bytes = et_desc_bytes(&t->desc);
    float *all = malloc(bytes);
    if (!all)
        bail("no memory");
    for (size_t i = 0; i < bytes / sizeof *all; i++)
        all[i] = v;
    must(et_tensor_write(cx, t, all, bytes));
    free(all);
}

static void
surgery(void)
{
    struct et_param_spec old[] = {spec("a", 4, 0), spec("b", 4, 0), spec("c", 4, 0)};
    struct et_param_spec new[] = {spec("new", 100, 0), spec("c", 4, 0),
                                  spec("a", 5, 0)};
    const struct et_optimizer_class *class;
    struct et_param_space *s, *t;
    struct et_optimizer *opt;
    struct et_graph *g;
    void *options;
    float p[8], m[8], q[100];
    parse("sgd lr=.1 momentum=.9", &class, &options);
    must(et_param_space_new(cx, dev, old, 3, &s));
    must(et_optimizer_new(cx, class, options, s, &opt));
    must(et_graph_new(cx, dev, &g));
    write_slot(s, -1, 2, (const float[]){1, 2, 3, 4});
    step(g, opt, (const float[]){.5f, .5f, .5f}, NULL, false);
    struct et_param_copy *copy, *other;
    must(et_param_copy_new(s, "copy", &copy));
    must(et_param_copy_new(s, "another", &other));
    fill_tensor(copy->values, 9);

    must(et_param_space_new(cx, dev, new, 3, &t));
    float fresh[100];
    for (int i = 0; i < 100; i++)
        fresh[i] = (float)i;
    write_slot(t, -1, 0, fresh);
    must(et_optimizer_move(cx, opt, t));
    et_param_copy_free(&other);
    et_param_space_free(&s);
    ok(et_optimizer_space(opt) == t, "the optimizer follows");
    read_flat(copy->values, t, 1, p);
    read_flat(copy->values, t, 0, q);
    ok(copy->space == t && copy->moves == 1 && p[0] == 9 && p[3] == 9,
       "a copy of the parameters follows by name");
    ok(memcmp(q, fresh, sizeof fresh) == 0, "and has the values of those that are new");
    read_slot(t, -1, 1, p);
    read_slot(t, 0, 1, m);
    ok(p[3] == 3.95f && m[3] == .5f && t->slot[1].updates == 1,
       "a parameter that stays keeps value, moment and count");
    read_slot(t, -1, 2, p);
    ok(p[0] == 0 && t->slot[2].updates == 0, "one whose shape changed begins anew");

    step(g, opt, (const float[]){.5f, .5f, .5f}, NULL, false);
    read_slot(t, -1, 1, p);
    read_slot(t, -1, 0, q);
    is_near(p[3], 3.95 - .1 * .95, 4 * ROUNDED, "the old momentum goes on");
    is_near(q[99], 99 - .05, 64 * ROUNDED, "what was added starts its own");

    t->slot[1].frozen = true;
    static const bool all[] = {true, true, true};
    const int64_t total[] = {t->total};
    et_graph_reset(g);
    must(et_optimizer_update(g, opt, et_fill(g, ET_F32, 1, total, .5), all, NULL));
    must(et_eval(g, NULL, 0));
    et_optimizer_done(opt, false);
    read_slot(t, -1, 1, m);
    read_slot(t, -1, 0, fresh);
    ok(memcmp(p, m, 4 * sizeof *p) == 0 && t->slot[1].updates == 2,
       "what is frozen is not updated, though it has a gradient");
    ok(fresh[99] < q[99] && t->slot[0].updates == 2, "and the rest is");

    struct et_param_spec two[] = {spec("a", 4, 0), spec("b", 4, 1)};
    must(et_param_space_new(cx, dev, two, 2, &s));
    struct et_param_space *last = t;
    must(et_optimizer_move(cx, opt, s));
    ok(et_optimizer_group(opt, 1)->initial_lr == .1 &&
           et_optimizer_group(opt, 1)->weight_decay == 0,
       "a group that surgery brings begins as the options say");
    et_param_space_free(&last);
    t = s;
    et_graph_free(&g);
    et_optimizer_free(&opt);
    et_param_space_free(&t);
    ok(copy->space == NULL && copy->values, "a copy may stay longer than its space");
    et_param_copy_free(&copy);
    drop(class, options);
}

/* Each moment and each copy goes on as itself, and whoever asks for more than there
 * are is told. */
static void
moves(void)
{
    struct et_param_spec old[] = {spec("a", 4, 0), spec("b", 4, 1)};
    struct et_param_spec new[] = {spec("b", 4, 0), spec("a", 4, 2)};
    const struct et_optimizer_class *class;
    struct et_param_space *s, *t;
    struct et_param_copy *copy[3];
    struct et_optimizer *opt;
    struct et_tensor *view;
    void *options;
    float v[4];
    parse("adam lr=.5 weight_decay=.125 amsgrad=true", &class, &options);
    must(et_param_space_new(cx, dev, old, 2, &s));
    must(et_optimizer_new(cx, class, options, s, &opt));
    fails(et_optimizer_move(cx, opt, s), ET_EINVAL, "is on that space already",
          "an optimizer cannot move to where it is");
    for (int array = -1; array < 3; array++)
        for (int i = 0; i < 2; i++) {
            const float n = (float)(10 * array + i + 20);
            write_slot(s, array, i, (const float[]){n, n, n, n});
        }
    for (int k = 0; k < 3; k++) {
        must(et_param_copy_new(s, "copy", &copy[k]));
        fill_tensor(copy[k]->values, (float)(100 + k));
    }
    et_param_copy_free(&copy[1]);
    s->slot[0].updates = 3;
    s->slot[1].updates = 5;
    et_optimizer_group(opt, 1)->weight_decay = 0;
    must(et_param_space_new(cx, dev, new, 2, &t));
    must(et_optimizer_move(cx, opt, t));
    et_param_space_free(&s);
    for (int array = -1; array < 3; array++)
        for (int i = 0; i < 2; i++) {
            read_slot(t, array, i, v);
            is_near(v[3], 10 * array + (1 - i) + 20, 0, "array %d of '%s' goes on",
                    array, t->slot[i].name);
        }
    ok(t->slot[0].updates == 5 && t->slot[1].updates == 3, "with its own updates");
    for (int k = 0; k < 3; k += 2) {
        read_flat(copy[k]->values, t, 1, v);
        ok(v[0] == (float)(100 + k) && copy[k]->space == t && copy[k]->moves == 1,
           "each copy does");
    }
    ok(et_optimizer_group(opt, 1)->weight_decay == 0 &&
           et_optimizer_group(opt, 2)->weight_decay == .125 &&
           et_optimizer_group(opt, 2)->lr == .5 &&
           et_optimizer_group(opt, 2)->initial_lr == .5,
       "groups stay as they are, and new ones begin as the options say");
    static const int beyond[][2] = {{3, 0}, {-1, 2}, {0, 2}, {0, -1}};
    for (int i = 0; i < 4; i++)
        fails(et_param_space_view(cx, t, beyond[i][0], beyond[i][1], &view), ET_EINVAL,
              "there is no parameter", "what is not there cannot be viewed");
    for (int k = 0; k < 3; k += 2)
        et_param_copy_free(&copy[k]);
    et_optimizer_free(&opt);
    et_param_space_free(&t);
    drop(class, options);
}

static void
refusals(void)
{
    struct et_param_spec one = spec("p", 3, 0);
    const struct et_optimizer_class *class;
    struct et_param_space *s;
    struct et_optimizer *opt, *second;
    void *options, *good;
    must(et_param_space_new(cx, dev, &one, 1, &s));
    static const char *const nesterov[] = {
        "sgd lr=.1 nesterov=true",
        "decoupled_sgdw lr=.1 nesterov=true momentum=.9 dampening=.1",
    };
    for (int i = 0; i < 2; i++) {
        parse(nesterov[i], &class, &options);
        fails(et_optimizer_new(cx, class, options, s, &opt), ET_EINVAL,
              "nesterov needs", "nesterov needs momentum and no dampening");
        drop(class, options);
    }
    static const char *const two_betas[] = {
        "adam", "adamw", "decoupled_adamw", "lamb", "lion", "muon", "radam",
    };
    for (size_t i = 0; i < 2 * sizeof two_betas / sizeof *two_betas; i++) {
        char text[64];
        const char *name = two_betas[i / 2];
        snprintf(text, sizeof text, "%s betas=%s", name, i % 2 ? "[.9]" : "[.9,.9,.9]");
        parse(text, &class, &options);
        fails(et_optimizer_new(cx, class, options, s, &opt), ET_EINVAL,
              i % 2 ? "1 numbers" : "3 numbers", name);
        drop(class, options);
    }
    ok(s->n_moments == 0 && opt == NULL, "a refused optimizer leaves no moments");
    parse("adam", &class, &good);
    must(et_optimizer_new(cx, class, good, s, &opt));
    ok(s->n_moments == 2 && strcmp(s->moment_name[1], "exp_avg_sq") == 0,
       "moments are known by name");
    fails(et_optimizer_new(cx, class, good, s, &second), ET_EINVAL, "already",
          "parameters have one optimizer");
    et_optimizer_free(&opt);
    et_param_space_free(&s);
    drop(class, good);

    int n;
    const struct et_optimizer_class *const *list = et_optimizer_list(&n);
    for (int i = 0; i < n; i++)
        ok(et_optimizer_find(list[i]->info.name) == list[i], "%s is found by its name",
           list[i]->info.name);
    ok(!et_optimizer_find("adamax"), "an unknown name finds nothing");
}

/* Every allocation of a life fails in turn: nothing leaks. */
static void
torture(void)
{
    struct et_param_spec specs[] = {spec("a", 4, 0), spec("b", 4, 1)};
    const struct et_optimizer_class *class;
    void *options;
    struct et_alloc_stats before, after;
    parse("adam", &class, &options);
    et_alloc_get_stats(cx, &before);
    int refused = 0;
    et_status status = ET_ENOMEM;
    for (uint64_t k = 1; status == ET_ENOMEM; k++) {
        struct et_param_space *s = NULL;
        struct et_optimizer *opt = NULL;
        et_alloc_fail_at(cx, k);
        status = et_param_space_new(cx, dev, specs, 2, &s);
        if (status == ET_OK)
            status = et_optimizer_new(cx, class, options, s, &opt);
        et_alloc_fail_at(cx, 0);
        refused += status == ET_ENOMEM;
        et_optimizer_free(&opt);
        et_param_space_free(&s);
        et_error_clear(cx);
    }
    et_alloc_get_stats(cx, &after);
    ok(status == ET_OK && refused > 10, "every allocation can fail");
    is_int((int64_t)after.live, (int64_t)before.live, "and leaves nothing behind");
    drop(class, options);
}

static void
on_device(const char *name)
{
    diag("on %s", name);
    published();
    memory_order();
    without_gradient();
    norms_of_each();
    surgery();
    moves();
    et_device_close(&dev);
}

int
main(void)
{
    must(et_ctx_new(&cx));
    et_ctx_set_log(cx, ET_LOG_WARN, keep_log, NULL);
    must(et_device_open(cx, "ref", 0, 0, &dev));
    layout();
    warnings();
    refusals();
    torture();
    on_device("ref");
    if (et_device_open(cx, "cpu", 0, 1, &dev) == ET_OK)
        on_device("cpu");
    else
        skip(1, et_error_get(cx)->message);
    et_error_clear(cx);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left allocated");
    et_ctx_free(&cx);
    return done();
}
