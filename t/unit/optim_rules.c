/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of parameter groups and of gradients: which texts are rates, whose a parameter
 * is, and that what one step had is not what the next one has. */
#include "etude/etude.h"
#include "t/tap.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/optim/group.h"

static struct et_ctx *cx;
static struct et_device *dev;

static void
must(et_status status)
{
    if (status != ET_OK)
        bail("%s: %s", et_status_name(status), et_error_get(cx)->message);
}

static void
test_rates(void)
{
    static const struct {
        const char *text;
        double want; /* where the optimizer has 0.5; NAN: refused */
    } rows[] = {{NULL, 0.5},    {"0.01", 0.01}, {"0.1x", 0.05}, {"2x", 1},
                {"1", 1},       {"0", 0},       {"0x", 0},      {"1e-3", 0.001},
                {"1e1x", 5},    {"", NAN},      {"x", NAN},     {"0.1xx", NAN},
                {"0.1X", NAN},  {"0.1 x", NAN}, {"0.1y", NAN},  {"-1", NAN},
                {"-1x", NAN},   {"nan", NAN},   {"inf", NAN},   {"infx", NAN},
                {"1e999", NAN}, {"fast", NAN}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double rate = -1;
        bool is_rate = eti_group_rate(rows[i].text, 0.5, &rate);
        const char *text = rows[i].text ? rows[i].text : "nothing";
        if (isnan(rows[i].want))
            ok(!is_rate, "'%s' is no rate", text);
        else
            ok(is_rate && fabs(rate - rows[i].want) < 1e-15, "'%s' of 0.5 is %g", text,
               rows[i].want);
    }
}

static void
test_whose(void)
{
    static const struct {
        const char *name;
        int whose;
    } rows[] = {{"layer1.conv.weight", 1},
                {"layer12.conv.bias", 1},
                {"layer.bias", 2},
                {"head.bias", 2},
                {"norm.bias", 2},
                {"norm.weight", 3},
                {"bias.head", 3},
                {"layer1xconv", 4},
                {"emb", 0},
                {"bia+s", 0},
                {"", 0}};
    struct et_param_group g[] = {{.match = (char *)"^layer[0-9]+\\."},
                                 {.match = (char *)"\\.(bias|gain)$"},
                                 {.match = (char *)"norm|head"},
                                 {.match = (char *)"conv"}};
    struct et_param_group *groups[] = {&g[0], &g[1], &g[2], &g[3]};
    struct eti_group_patterns p;
    must(eti_group_patterns_init(cx, groups, 4, &p));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        is_int(eti_group_patterns_find(&p, rows[i].name), rows[i].whose,
               "'%s' is group %d's", rows[i].name, rows[i].whose);
    eti_group_patterns_release(&p);

    struct et_param_group last = {.match = (char *)"last"},
                          bad = {.match = (char *)"("};
    struct et_param_group *many[ET_MAX_PARAM_GROUPS + 1];
    for (int i = 0; i <= ET_MAX_PARAM_GROUPS; i++)
        many[i] = i < ET_MAX_PARAM_GROUPS - 1 ? &g[i % 4] : &last;
    must(eti_group_patterns_init(cx, many, ET_MAX_PARAM_GROUPS, &p));
    is_int(eti_group_patterns_find(&p, "last"), ET_MAX_PARAM_GROUPS,
           "there are as many groups as may be");
    eti_group_patterns_release(&p);
    ok(eti_group_patterns_init(cx, many, ET_MAX_PARAM_GROUPS + 1, &p) == ET_EINVAL &&
           strcmp(et_error_get(cx)->message,
                  "17 optimizer.groups, at most 16 are possible") == 0,
       "and no more");
    et_error_clear(cx);
    eti_group_patterns_release(&p);
    many[2] = &bad;
    ok(eti_group_patterns_init(cx, many, 4, &p) == ET_EINVAL &&
           strstr(et_error_get(cx)->message, "optimizer.groups.2.match: '('"),
       "a pattern that is none is told with its place");
    is_int(p.n, 2, "those before it are there to be released");
    eti_group_patterns_release(&p);
    is_int(p.n, 0, "once");
    et_error_clear(cx);
}

/* ---- gradients ---- */

enum { N = 5 };

/* Two parameters and an optimizer. */
struct descent {
    const struct et_optimizer_class *class;
    void *options;
    struct et_param_space *s;
    struct et_optimizer *opt;
    struct et_graph *g;
};

static void
begin_with(struct descent *d, const char *name, const char *lr)
{
    struct et_param_spec specs[] = {{.name = "a"}, {.name = "b"}};
    for (int i = 0; i < 2; i++)
        et_desc_init(&specs[i].desc, ET_F32, 1, (const int64_t[]){N}, ET_ROW_MAJOR);
    d->class = et_optimizer_find(name);
    const struct et_component *info = &d->class->info;
    must(et_alloc(cx, info->options_size, &d->options));
    must(et_options_init(cx, info->options, d->options));
    must(et_options_set(cx, info->options, d->options, "lr", lr));
    must(et_param_space_new(cx, dev, specs, 2, &d->s));
    must(et_optimizer_new(cx, d->class, d->options, d->s, &d->opt));
    must(et_graph_new(cx, dev, &d->g));
    et_optimizer_set_alpha(d->opt, 1);
}

/* Plain descent at rate 1: each value is less by its gradient. */
static void
begin(struct descent *d)
{
    begin_with(d, "sgd", "1");
}

static void
end(struct descent *d)
{
    et_graph_free(&d->g);
    et_optimizer_free(&d->opt);
    et_param_space_free(&d->s);
    et_options_release(d->class->info.options, d->options);
    et_free(cx, d->options);
}

static void
step(struct descent *d, struct et_tensor *a, struct et_tensor *b)
{
    struct et_tensor *grads[] = {a, b};
    struct et_tensor *flat = et_param_space_pack(d->g, d->s, grads);
    must(et_optimizer_update(d->g, d->opt, flat, NULL, NULL));
    must(et_eval(d->g, NULL, 0));
    et_optimizer_done(d->opt, false);
    et_graph_reset(d->g);
}

static void
read_values(const struct descent *d, int i, float *out)
{
    struct et_tensor *t;
    must(et_param_space_view(cx, d->s, -1, i, &t));
    must(et_tensor_read(cx, t, out, N * sizeof *out));
    et_tensor_free(&t);
}

static void
test_gradients(void)
{
    static const enum et_dtype dtypes[] = {ET_F32, ET_BF16, ET_F16};
    const int64_t shape[] = {N};
    struct descent d;
    float got[N];
    begin(&d);
    int wrong = 0;
    for (int k = 0; k < 3; k++) {
        struct et_tensor *x = et_iota(d.g, ET_F32, N);
        step(&d, et_cast(d.g, x, dtypes[k]), et_fill(d.g, ET_F32, 1, shape, 2));
        read_values(&d, 0, got);
        for (int i = 0; i < N; i++)
            wrong += got[i] != (float)(-i * (k + 1));
    }
    is_int(wrong, 0, "gradients of every precision are taken");
    read_values(&d, 1, got);
    ok(got[0] == -6 && d.s->slot[1].updates == 3, "and so are their neighbours'");
    ok(d.s->has_grad[0] && d.s->has_grad[1], "both have one");

    step(&d, et_iota(d.g, ET_F32, N), NULL);
    read_values(&d, 1, got);
    ok(got[0] == -6 && d.s->slot[1].updates == 3 && d.s->slot[0].updates == 4,
       "a parameter that has no gradient any more stays, and is not counted");
    ok(d.s->has_grad[0] && !d.s->has_grad[1], "one has none any more");
    step(&d, NULL, et_fill(d.g, ET_F32, 1, shape, 2));
    read_values(&d, 1, got);
    ok(got[0] == -8 && d.s->slot[1].updates == 4, "and when it has one again goes on");
    read_values(&d, 0, got);
    ok(got[N - 1] == -4 * (N - 1) && !d.s->has_grad[0], "while the other stays");
    end(&d);
}

/* Gradients of 0, of parameters that are 0 and others: no optimizer divides by them. */
static void
test_nothing(void)
{
    const int64_t shape[] = {N};
    int n;
    const struct et_optimizer_class *const *all = et_optimizer_list(&n);
    for (int i = 0; i < n; i++) {
        const char *name = all[i]->info.name;
        struct descent d;
        float got[2][N], ones[N];
        int bad = 0;
        begin_with(&d, name, "0.1");
        for (int k = 0; k < N; k++)
            ones[k] = 1;
        struct et_tensor *t;
        must(et_param_space_view(cx, d.s, -1, 1, &t));
        must(et_tensor_write(cx, t, ones, sizeof ones));
        et_tensor_free(&t);
        for (int k = 0; k < 3; k++)
            step(&d, et_fill(d.g, ET_F32, 1, shape, 0),
                 et_fill(d.g, ET_F32, 1, shape, 0));
        for (int p = 0; p < 2; p++) {
            read_values(&d, p, got[p]);
            for (int k = 0; k < N; k++)
                bad += !isfinite(got[p][k]) || got[p][k] < 0 || got[p][k] > 1;
        }
        ok(bad == 0 && got[0][0] == 0,
           "%s: gradients of 0 leave 0 as it is, and 1 finite (%g)", name, got[1][0]);
        end(&d);
    }
}

int
main(void)
{
    must(et_ctx_new(&cx));
    test_rates();
    test_whose();
    must(et_device_open(cx, "ref", 0, 0, &dev));
    test_gradients();
    test_nothing();
    et_device_close(&dev);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left allocated");
    et_ctx_free(&cx);
    return done();
}
