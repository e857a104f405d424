/* SPDX-License-Identifier: Apache-2.0 */
/* golden.c: see golden.h. */
#include "t/algorithms/golden.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etude/nn.h"
#include "t/unit/rig.h"

enum { LINE = 1 << 16, MOST = 4096, PARAMS = 64 };

struct param {
    char name[128];
    int ndim;
    int64_t shape[ET_MAX_DIMS];
};

struct golden_case {
    int n;
    struct param param[PARAMS];
    struct param input;
    float output[MOST], gradient[MOST];
    int64_t n_output, n_gradient;
    char of[128];
};

struct et_module *
golden_vision(struct et_ctx *cx)
{
    struct et_module *m;
    need(cx, et_module_new(cx, &et_sequential_class, NULL, &m));
    need(cx, ET_ADD(cx, m, NULL, conv2d, .in_channels = 3, .out_channels = 4,
                    .kernel = 3, .padding = 1));
    need(cx, ET_ADD(cx, m, NULL, batch_norm, .num_features = 4));
    need(cx, et_module_add(cx, m, NULL, &et_silu_class, NULL));
    need(cx, ET_ADD(cx, m, NULL, conv2d, .in_channels = 4, .out_channels = 6,
                    .kernel = 3, .stride = 2, .padding = 1, .no_bias = true));
    need(cx, et_module_add(cx, m, NULL, &et_silu_class, NULL));
    need(cx, ET_ADD(cx, m, NULL, adaptive_avg_pool2d, .height = 1));
    need(cx, et_module_add(cx, m, NULL, &et_flatten_class, NULL));
    need(cx, ET_ADD(cx, m, NULL, linear, .in_features = 6, .out_features = 5));
    return m;
}

int
replaced(struct et_ctx *cx, et_status status, struct et_surgery *surgery)
{
    int n = surgery->n;
    need(cx, status);
    et_surgery_release(surgery);
    return n;
}

void
refused(struct et_ctx *cx, et_status status, const char *what)
{
    const char *why = take_error(cx);
    ok(status == ET_EINVAL, "%s: %s", what, why);
}

/* ---- the file ---- */

static void
read_shape(const char *text, struct param *p)
{
    int used;
    p->ndim = 0;
    while (p->ndim < ET_MAX_DIMS &&
           sscanf(text, "%lld%n", (long long *)&p->shape[p->ndim], &used) == 1) {
        text += used;
        p->ndim++;
    }
}

static int64_t
read_numbers(const char *text, float *out)
{
    int64_t n = 0;
    char *end;
    for (float v = strtof(text, &end); end != text && n < MOST;
         v = strtof(text, &end)) {
        out[n++] = v;
        text = end;
    }
    return n;
}

static void
read_line(const char *line, struct golden_case *c)
{
    const char *rest;
    if (strncmp(line, "input ", 6) == 0)
        read_shape(line + 6, &c->input);
    if (strncmp(line, "output ", 7) == 0)
        c->n_output = read_numbers(line + 7, c->output);
    rest = c->n < PARAMS ? rig_word(line, "param", c->param[c->n].name) : NULL;
    if (rest)
        read_shape(rest, &c->param[c->n++]);
    rest = rig_word(line, "gradient", c->of);
    if (rest)
        c->n_gradient = read_numbers(rest, c->gradient);
}

/* ---- the model ---- */

static void
fill(struct et_ctx *cx, struct et_leaves *l, const struct golden_case *c,
     const char *name)
{
    float v[MOST];
    bool same = l->n == c->n;
    for (int i = 0; i < c->n; i++) {
        struct et_leaf *leaf = et_leaves_find(l, c->param[i].name);
        const struct et_desc *d = leaf ? &leaf->param->desc : NULL;
        bool fits = d && d->ndim == c->param[i].ndim &&
                    memcmp(d->shape, c->param[i].shape,
                           (size_t)d->ndim * sizeof *d->shape) == 0;
        if (!fits)
            diag("%s: %s is not there, or has another shape", name, c->param[i].name);
        same = same && fits;
        if (!fits)
            continue;
        int64_t n = et_desc_count(d);
        if (n > MOST)
            bail("%s has %d numbers", c->param[i].name, (int)n);
        rig_values((uint32_t)i, n, v);
        for (int64_t k = 0; k < n; k++)
            v[k] *= 0.5f;
        need(cx, et_param_write(cx, leaf->param, v, n));
    }
    ok(same, "%s: %d parameters have Composer's names and shapes", name, c->n);
}

static struct et_tensor *
input(struct formula *f, const struct golden_case *c)
{
    float v[MOST];
    int32_t token[MOST];
    int64_t n = 1;
    for (int i = 0; i < c->input.ndim; i++)
        n *= c->input.shape[i];
    if (n > MOST)
        bail("%d inputs", (int)n);
    rig_values(1000, n, v);
    if (c->input.ndim == 4)
        return reals(f, v, c->input.ndim, c->input.shape);
    for (int64_t i = 0; i < n; i++) /* make_methods.py's tokens: 1 to 10 */
        token[i] = 1 + (int32_t)(((double)v[i] + 1) / 2 * 10);
    return integers(f, token, c->input.ndim, c->input.shape);
}

static void
compute(struct formula *f, struct et_module *root, struct et_leaves *l,
        const struct golden_case *c, const char *name, double tolerance)
{
    float v[MOST], got[MOST];
    struct et_tensor *x = input(f, c), *grad;
    struct et_leaf *of = et_leaves_find(l, c->of);
    if (!of)
        bail("%s: there is no %s", name, c->of);
    struct et_forward forward = {.g = f->g, .training = true};
    struct et_tensor *y = et_forward(&forward, root, x);
    need(f->cx, et_graph_status(f->g));
    rig_values(1001, et_desc_count(&y->desc), v);
    struct et_tensor *w = reals(f, v, y->desc.ndim, y->desc.shape);
    struct et_tensor *loss = et_sum(f->g, et_mul(f->g, y, w), 0, false);
    need(f->cx, et_grad(f->g, loss, &of->param->tensor, 1, &grad));
    need(f->cx, et_eval(f->g, (struct et_tensor *[]){y, grad}, 2));
    need(f->cx, et_tensor_read(f->cx, y, got, (size_t)c->n_output * sizeof *got));
    is_near_array(got, c->output, c->n_output, tolerance, "%s: outputs are Composer's",
                  name);
    need(f->cx, et_tensor_read(f->cx, grad, got, (size_t)c->n_gradient * sizeof *got));
    is_near_array(got, c->gradient, c->n_gradient, tolerance, "%s: the gradient of %s",
                  name, c->of);
    et_graph_reset(f->g);
    et_tensor_free(&w);
    et_tensor_free(&x);
}

/* A line "buffer NAME v v ..." */
static void
check_buffer(struct formula *f, struct et_module *root, const char *line,
             double tolerance)
{
    struct et_leaves l;
    char name[128];
    float want[MOST], got[MOST];
    const char *rest = rig_word(line, "buffer", name);
    if (!rest)
        return;
    int64_t n = read_numbers(rest, want);
    need(f->cx, et_module_leaves(f->cx, root, ET_BUFFER, &l));
    struct et_leaf *leaf = et_leaves_find(&l, name);
    if (ok(leaf && et_desc_count(&leaf->param->desc) == n, "%s is there", name)) {
        need(f->cx,
             et_tensor_read(f->cx, leaf->param->tensor, got, (size_t)n * sizeof *got));
        is_near_array(got, want, n, tolerance, "and has Composer's numbers");
    }
    et_leaves_release(&l);
}

/* The file is at the first line behind "case NAME"; ends at the next case. */
static void
check_case(FILE *file, struct formula *f, struct et_module *root, const char *name,
           double tolerance)
{
    static char line[LINE];
    static struct golden_case c;
    struct et_leaves l;
    c = (struct golden_case){0};
    bool computed = false;
    need(f->cx, et_module_leaves(f->cx, root, ET_PARAM, &l));
    while (fgets(line, sizeof line, file) && strncmp(line, "case ", 5) != 0) {
        read_line(line, &c);
        if (c.n_gradient > 0 && !computed) {
            fill(f->cx, &l, &c, name);
            need(f->cx, et_module_bind(f->cx, root, f->dev, ET_PARAM | ET_BUFFER, 17));
            compute(f, root, &l, &c, name, tolerance);
            computed = true;
        }
        check_buffer(f, root, line, tolerance);
    }
    et_leaves_release(&l);
    if (!computed)
        bail("case %s has no gradient", name);
}

void
golden_check(struct formula *f, struct et_module *root, const char *name,
             double tolerance)
{
    FILE *file = rig_open_case("methods.txt", name);
    check_case(file, f, root, name, tolerance);
    fclose(file);
}

void
golden_numbers(const char *key, int64_t n, float *out)
{
    static char line[LINE];
    static float all[MOST];
    int64_t found = -1;
    FILE *file = rig_golden("methods.txt");
    while (found < 0 && fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0 && line[strlen(key)] == ' ')
            found = read_numbers(line + strlen(key), all);
    fclose(file);
    if (found != n)
        bail("t/golden/methods.txt: %s has %d numbers, not %d", key, (int)found,
             (int)n);
    memcpy(out, all, (size_t)n * sizeof *out);
}

/* ---- norms in low precision ---- */

enum { PARTS = 4, NORM_MOST = 64 };

/* What a norm gives: outputs, and the gradients of x, weight and bias. */
struct normed {
    int64_t n[PARTS];
    float v[PARTS][NORM_MOST];
};
static const char *const part_name[PARTS] = {"y", "dx", "dw", "db"};

static void
evaluate_parts(struct formula *f, struct et_tensor *y, const struct et_leaves *l,
               struct et_tensor *x, struct normed *out)
{
    float v[NORM_MOST];
    struct et_tensor *of[PARTS - 1] = {x}, *part[PARTS] = {et_cast(f->g, y, ET_F32)};
    for (int i = 0; i < l->n; i++)
        of[1 + i] = l->v[i].param->tensor;
    rig_values(1001, et_desc_count(&y->desc), v);
    struct et_tensor *w = reals(f, v, y->desc.ndim, y->desc.shape);
    struct et_tensor *loss = et_sum(f->g, et_mul(f->g, part[0], w), 0, false);
    need(f->cx, et_grad(f->g, loss, of, PARTS - 1, part + 1));
    need(f->cx, et_eval(f->g, part, PARTS));
    for (int i = 0; i < PARTS; i++) {
        out->n[i] = et_desc_count(&part[i]->desc);
        need(f->cx, et_tensor_read(f->cx, part[i], out->v[i],
                                   (size_t)out->n[i] * sizeof *out->v[i]));
    }
    et_graph_reset(f->g);
    et_tensor_free(&w);
}

/* M in bf16, of make_methods.py's pairs around 96. */
static void
run_norm(struct formula *f, struct et_module *m, int ndim, const int64_t *shape,
         struct normed *out)
{
    float v[NORM_MOST];
    struct et_forward forward = {.g = f->g, .training = true};
    struct et_leaves l;
    int64_t n = 1;
    for (int i = 0; i < ndim; i++)
        n *= shape[i];
    rig_values(1000, n, v);
    for (int64_t i = 0; i < n; i++)
        v[i] = i % 2 ? 192 - v[i - 1] : 96 + v[i];
    struct et_tensor *x = reals(f, v, ndim, shape);
    need(f->cx, et_module_bind(f->cx, m, f->dev, ET_PARAM, 17));
    need(f->cx, et_module_leaves(f->cx, m, ET_PARAM, &l));
    need(f->cx, et_graph_set_low_dtype(f->g, ET_BF16));
    et_autocast(f->g, true);
    struct et_tensor *y = et_forward(&forward, m, x);
    et_autocast(f->g, false);
    evaluate_parts(f, y, &l, x, out);
    need(f->cx, et_graph_set_low_dtype(f->g, ET_NONE));
    et_leaves_release(&l);
    et_tensor_free(&x);
}

void
golden_low_norm(struct formula *f, struct et_module *low, struct et_module *plain,
                const char *method, int ndim, const int64_t *shape)
{
    /* A last place of bf16, of numbers from 1 to 2. */
    const double tolerance = 1. / 128;
    struct normed got, without;
    float want[NORM_MOST];
    char key[128];
    run_norm(f, low, ndim, shape, &got);
    run_norm(f, plain, ndim, shape, &without);
    for (int i = 0; i < PARTS; i++) {
        double far = 0;
        snprintf(key, sizeof key, "%s_large_%s", method, part_name[i]);
        golden_numbers(key, got.n[i], want);
        is_near_array(got.v[i], want, got.n[i], tolerance,
                      "in bf16, of a large mean, %s is Composer's", part_name[i]);
        for (int64_t k = 0; k < got.n[i]; k++)
            far = fmax(far, fabs((double)without.v[i][k] - want[k]));
        /* A bias's gradient is the sum of those of outputs, whatever x is. */
        if (i != PARTS - 1)
            ok(far > 16 * tolerance, "... and not what a norm gives without it (%.2g)",
               far);
    }
}
