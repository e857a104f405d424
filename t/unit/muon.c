/* Muon on the reference device and on the CPU: PyTorch's numbers (t/golden/muon.txt),
 * what the iteration promises, and which parameters of a model it is for. */
#include "etude/etude.h"
#include "t/tap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parameters are below 2 and four updates are some eight roundings of them in f32;
 * PyTorch's own f32 is 1.5e-7 off. A rule that differs is off by a good part of lr,
 * 2e-2. */
static const double ROUNDED = 8 * 1.2e-7;

enum { STEPS = 4, MOST = 64 };

static struct et_ctx *cx;
static struct et_device *dev;

static void
must(et_status status)
{
    if (status != ET_OK)
        bail("%s: %s", et_status_name(status), et_error_get(cx)->message);
}

/* golden.py's unit(): number I of STREAM, in [0, 1). */
static double
unit(uint32_t stream, uint32_t i)
{
    uint32_t x = i * 0x9E3779B1u + stream * 0x85EBCA77u;
    x = (x ^ x >> 16) * 0x21F0AAADu;
    x = (x ^ x >> 15) * 0x735A2D97u;
    return (x ^ x >> 15) * 0x1p-32;
}

static void
values(uint32_t stream, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)(2 * unit(stream, (uint32_t)i) - 1);
}

static struct et_param_spec
spec(const char *name, enum et_param_role role, int ndim, const int64_t *shape)
{
    struct et_param_spec s = {.name = name, .role = role};
    et_desc_init(&s.desc, ET_F32, ndim, shape,
                 ndim == 4 ? ET_CHANNELS_LAST : ET_ROW_MAJOR);
    return s;
}

/* An optimizer and what it works on. */
struct rig {
    const struct et_optimizer_class *class;
    void *options;
    struct et_param_space *space;
    struct et_optimizer *opt;
    struct et_graph *g;
};

/* TEXT: "lr=0.02 momentum=0.8"; parameter i begins as stream i. */
static void
begin(struct rig *r, const char *text, const struct et_param_spec *specs, int n)
{
    char line[256], *save = NULL;
    snprintf(line, sizeof line, "%s", text);
    r->class = et_optimizer_find("muon");
    must(et_alloc(cx, r->class->info.options_size, &r->options));
    must(et_options_init(cx, r->class->info.options, r->options));
    for (char *item = strtok_r(line, " ", &save); item;
         item = strtok_r(NULL, " ", &save)) {
        char *value = strchr(item, '=');
        *value++ = '\0';
        must(et_options_set(cx, r->class->info.options, r->options, item, value));
    }
    must(et_param_space_new(cx, dev, specs, n, &r->space));
    must(et_optimizer_new(cx, r->class, r->options, r->space, &r->opt));
    must(et_graph_new(cx, dev, &r->g));
    for (int i = 0; i < n; i++) {
        float v[MOST];
        struct et_tensor *t;
        values((uint32_t)i, r->space->slot[i].count, v);
        must(et_param_space_view(cx, r->space, -1, i, &t));
        must(et_tensor_write(cx, t, v, et_desc_bytes(&t->desc)));
        et_tensor_free(&t);
    }
}

/* One update: the gradients are GRAD[i], row-major. */
static void
step(struct rig *r, float (*grad)[MOST])
{
    struct et_tensor *leaf[8] = {NULL};
    for (int i = 0; i < r->space->n; i++) {
        const struct et_desc *d = &r->space->slot[i].desc;
        must(et_tensor_new(cx, dev, ET_F32, d->ndim, d->shape, ET_ROW_MAJOR, "grad",
                           &leaf[i]));
        must(et_tensor_write(cx, leaf[i], grad[i], et_desc_bytes(d)));
    }
    struct et_tensor *flat = et_param_space_pack(r->g, r->space, leaf);
    must(et_optimizer_update(r->g, r->opt, flat, NULL, NULL));
    must(et_eval(r->g, NULL, 0));
    et_optimizer_done(r->opt, false);
    et_graph_reset(r->g);
    for (int i = 0; i < r->space->n; i++)
        et_tensor_free(&leaf[i]);
}

static void
get(const struct rig *r, int i, float *out)
{
    struct et_tensor *t;
    must(et_param_space_view(cx, r->space, -1, i, &t));
    must(et_tensor_read(cx, t, out, et_desc_bytes(&t->desc)));
    et_tensor_free(&t);
}

static void
end(struct rig *r)
{
    et_graph_free(&r->g);
    et_optimizer_free(&r->opt);
    et_param_space_free(&r->space);
    et_options_release(r->class->info.options, r->options);
    et_free(cx, r->options);
}

/* ---- PyTorch's numbers ---- */

static const struct et_param_spec *
golden_specs(int *n)
{
    static struct et_param_spec s[5];
    s[0] = spec("tall", ET_ROLE_MATRIX, 2, (const int64_t[]){6, 4});
    s[1] = spec("wide", ET_ROLE_MATRIX, 2, (const int64_t[]){4, 7});
    s[2] = spec("filter", ET_ROLE_MATRIX, 4, (const int64_t[]){3, 2, 3, 3});
    s[3] = spec("bias", ET_ROLE_OTHER, 1, (const int64_t[]){5});
    s[4] = spec("embedding", ET_ROLE_OTHER, 2, (const int64_t[]){6, 4});
    *n = 5;
    return s;
}

/* The line "NAME v v v ..." that is next in F. */
static void
next_line(FILE *f, const char *name, int64_t n, double *out)
{
    char word[32];
    if (fscanf(f, "%31s", word) != 1 || strcmp(word, name) != 0)
        bail("muon.txt: expected %s, got '%s'", name, word);
    for (int64_t i = 0; i < n; i++)
        if (fscanf(f, "%lf", &out[i]) != 1)
            bail("muon.txt: %s has fewer than %d numbers", name, (int)n);
}

static void
compare_case(FILE *f, const char *text)
{
    int n;
    const struct et_param_spec *specs = golden_specs(&n);
    struct rig r;
    begin(&r, text, specs, n);
    for (int k = 1; k <= STEPS; k++) {
        float grad[5][MOST];
        for (int i = 0; i < n; i++)
            values((uint32_t)(100 * k + i), r.space->slot[i].count, grad[i]);
        step(&r, grad);
    }
    for (int i = 0; i < n; i++) {
        int64_t count = r.space->slot[i].count;
        double exact[MOST];
        float got[MOST], want[MOST];
        next_line(f, specs[i].name, count, exact);
        for (int64_t j = 0; j < count; j++)
            want[j] = (float)exact[j];
        get(&r, i, got);
        is_near_array(got, want, count, ROUNDED, "%s: %s is PyTorch's after %d updates",
                      text, specs[i].name, STEPS);
    }
    struct et_graph_stats stats;
    et_graph_get_stats(r.g, &stats);
    is_int((int64_t)stats.plans_built, 1, "and all of them replay one plan");
    end(&r);
}

static void
golden(void)
{
    const char *root = getenv("ET_SRCDIR");
    char path[4096], line[256];
    snprintf(path, sizeof path, "%s/t/golden/muon.txt", root ? root : ".");
    FILE *f = fopen(path, "r");
    int cases = 0;
    if (!f)
        bail("cannot open %s", path);
    while (fgets(line, sizeof line, f))
        if (strncmp(line, "case ", 5) == 0) {
            line[strcspn(line, "\n")] = '\0';
            compare_case(f, line + 5);
            cases++;
        }
    fclose(f);
    is_int(cases, 4, "every case of muon.txt was compared");
}

/* ---- properties ---- */

/* The step of a [ROWS, COLS] parameter of ROLE with that gradient, in units of lr. */
static void
first_step(enum et_param_role role, int64_t rows, int64_t cols, float (*grad)[MOST],
           float *out)
{
    struct et_param_spec s = spec("w", role, 2, (const int64_t[]){rows, cols});
    struct rig r;
    float before[MOST], after[MOST];
    begin(&r, "lr=1", &s, 1);
    get(&r, 0, before);
    step(&r, grad);
    get(&r, 0, after);
    for (int64_t i = 0; i < rows * cols; i++)
        out[i] = before[i] - after[i];
    end(&r);
}

static void
properties(void)
{
    enum { N = 6 };
    float grad[1][MOST] = {{0}}, x[MOST], y[MOST], big[1][MOST];
    /* singular values 1, 1/2, ... 1/6, divided by their norm: the slope at zero of five
     * iterations lifts all of them into the band around 1 */
    for (int i = 0; i < N; i++)
        grad[0][i * N + i] = 1 / (float)(i + 1);
    first_step(ET_ROLE_MATRIX, N, N, grad, x);
    double least = INFINITY, most = 0, beside = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            double v = fabs(x[i * N + j]);
            if (i != j)
                beside = fmax(beside, v);
            else
                least = fmin(least, v), most = fmax(most, v);
        }
    ok(least > 0.65 && most < 1.25 && beside < 4 * ROUNDED,
       "the singular values of a step are near 1 (%.3f to %.3f), the directions kept",
       least, most);

    values(7, 20, grad[0]);
    first_step(ET_ROLE_MATRIX, 5, 4, grad, x);
    for (int i = 0; i < 20; i++)
        big[0][i] = 1000 * grad[0][i];
    first_step(ET_ROLE_MATRIX, 5, 4, big, y);
    is_near_array(y, x, 20, 4 * ROUNDED, "the size of a gradient does not matter");
    float turned[1][MOST], back[MOST];
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 4; j++)
            turned[0][j * 5 + i] = grad[0][i * 4 + j];
    first_step(ET_ROLE_MATRIX_IN_OUT, 4, 5, turned, y);
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 4; j++)
            back[i * 4 + j] = y[j * 5 + i];
    is_near_array(back, x, 20, 4 * ROUNDED,
                  "a matrix stored the other way round takes the same step");

    memset(grad, 0, sizeof grad);
    first_step(ET_ROLE_MATRIX, 5, 4, grad, x);
    bool still = true;
    for (int i = 0; i < 20; i++)
        still &= x[i] == 0;
    ok(still, "a gradient of zeros changes nothing");
    grad[0][3] = 0.5f;
    first_step(ET_ROLE_OTHER, 5, 4, grad, x);
    /* Adam's first step is adamw_lr whatever the gradient */
    ok(fabs(x[3] - 3e-4) < 2 * ROUNDED && x[0] == 0,
       "a matrix that is none of a hidden layer takes AdamW's step");
}

/* The schedule scales both rates alike. */
static void
schedule(void)
{
    struct et_param_spec s[] = {spec("w", ET_ROLE_MATRIX, 2, (const int64_t[]){3, 4}),
                                spec("b", ET_ROLE_OTHER, 1, (const int64_t[]){3})};
    struct rig r;
    float grad[2][MOST], w[MOST], b[MOST], w2[MOST], b2[MOST];
    values(50, 12, grad[0]);
    values(51, 3, grad[1]);
    begin(&r, "lr=0.5 adamw_lr=0.1", s, 2);
    et_optimizer_set_alpha(r.opt, 0);
    get(&r, 0, w);
    get(&r, 1, b);
    step(&r, grad);
    get(&r, 0, w2);
    get(&r, 1, b2);
    ok(memcmp(w, w2, 12 * sizeof *w) == 0 && memcmp(b, b2, 3 * sizeof *b) == 0,
       "at rate 0 of the schedule nothing moves");
    float gaps[128];
    et_optimizer_set_alpha(r.opt, 1);
    step(&r, grad);
    must(et_tensor_read(cx, r.space->values, gaps, sizeof gaps));
    bool zero = true;
    for (int i = 12; i < 64; i++)
        zero &= gaps[i] == 0;
    ok(zero, "the gap behind a matrix stays zero");
    end(&r);
}

/* ---- which parameters ---- */

static void
roles_are(const char *name, const char *const *option,
          const struct et_model_facts *facts, const char *const *want)
{
    const struct et_model_class *c = et_model_class_find(name);
    struct et_model *m;
    struct et_leaves l;
    void *options;
    must(et_alloc(cx, c->info.options_size, &options));
    must(et_options_init(cx, c->info.options, options));
    for (int i = 0; option[i]; i += 2)
        must(et_options_set(cx, c->info.options, options, option[i], option[i + 1]));
    must(et_model_new(cx, c, options, facts, &m));
    must(et_module_leaves(cx, m->root, ET_PARAM, &l));
    for (; want[0]; want += 2) {
        const struct et_leaf *leaf = et_leaves_find(&l, want[0]);
        static const char *const words[] = {"other", "matrix", "matrix_in_out"};
        is_str(leaf ? words[et_model_param_role(m, &l, (int)(leaf - l.v))] : "missing",
               want[1], "%s: %s", name, want[0]);
    }
    et_leaves_release(&l);
    et_model_free(&m);
    et_options_release(c->info.options, options);
    et_free(cx, options);
}

static void
roles(void)
{
    struct et_model_facts images = {
        .channels = 3, .height = 8, .width = 8, .num_classes = 16};
    /* 16 classes: the first layers are 16 wide too */
    roles_are("resnet20", (const char *const[]){NULL}, &images,
              (const char *const[]){"conv1.weight", "matrix", "layer1.0.conv1.weight",
                                    "matrix", "bn1.weight", "other", "fc.weight",
                                    "other", "fc.bias", "other", NULL});
    struct et_model_facts text = {.vocab_size = 32, .seq_len = 8};
    roles_are("gpt2",
              (const char *const[]){"n_layers", "1", "d_model", "16", "n_heads", "2",
                                    "max_seq_len", "8", NULL},
              &text,
              (const char *const[]){
                  "transformer.wte.weight", "other", "transformer.wpe.weight", "other",
                  "transformer.h.0.attn.c_attn.weight", "matrix_in_out",
                  "transformer.h.0.mlp.c_proj.weight", "matrix_in_out",
                  "transformer.ln_f.weight", "other", NULL});
}

static void
on_device(const char *name)
{
    diag("on %s", name);
    golden();
    properties();
    schedule();
    et_device_close(&dev);
}

int
main(void)
{
    must(et_ctx_new(&cx));
    must(et_device_open(cx, "ref", 0, 0, &dev));
    on_device("ref");
    if (et_device_open(cx, "cpu", 0, 1, &dev) == ET_OK)
        on_device("cpu");
    else
        skip(1, et_error_get(cx)->message);
    et_error_clear(cx);
    roles();
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left allocated");
    et_ctx_free(&cx);
    return done();
}
