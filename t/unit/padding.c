/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays with a border: what a pad puts a border behind is computed where the pad wants
 * it (place.c), and on a device that multiplies aligned rows fastest et_linear pads
 * wide results (ops/matmul.c). Results are those of each operation by itself
 * (ETUDE_EAGER), and those of the reference, which pads nothing. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph/graph_impl.h"
#include "etude/functional.h"
#include "etude/model.h"
#include "t/tap.h"

static struct et_ctx *cx;

static void
need(et_status status)
{
    if (status != ET_OK)
        bail("%s", et_error_get(cx)->message);
}

static struct et_tensor *
new_leaf(struct et_device *dev, enum et_dtype dtype, int ndim, const int64_t *shape,
         int seed, int most)
{
    struct et_tensor *t;
    need(et_tensor_new(cx, dev, dtype, ndim, shape, ET_ROW_MAJOR, "leaf", &t));
    int64_t n = et_desc_count(&t->desc);
    float *v = malloc((size_t)n * sizeof *v); /* or as many int32_t */
    for (int64_t i = 0; i < n; i++)
        if (dtype == ET_I32)
            ((int32_t *)v)[i] = (int32_t)((i * 7 + seed) % most);
        else
            v[i] = sinf(0.7f * (float)(i % 4099) + (float)seed);
    need(et_tensor_write(cx, t, v, (size_t)n * sizeof *v));
    free(v);
    return t;
}

/* A product of ROWS x IN and COLUMNS x IN, of which the first CLASSES columns count. */
struct shape {
    const char *what;
    int64_t rows, in, columns, classes;
    bool biased, linear; /* linear: et_linear, whose columns are CLASSES */
};

enum { X, W, BIAS, LEAVES, LOSS = LEAVES, LOGITS, RESULTS };

struct answers {
    float *v[RESULTS];
    int64_t n[RESULTS];
    struct et_plan_info plan;
    int64_t row; /* elements from one row of the logits to the next */
};

static void
compute(struct et_device *dev, const struct shape *s, enum et_dtype low, bool eager,
        struct answers *a)
{
    const int64_t x_shape[] = {s->rows, s->in}, w_shape[] = {s->columns, s->in};
    struct et_tensor *leaf[LEAVES] = {
        [X] = new_leaf(dev, ET_F32, 2, x_shape, 1, 0),
        [W] = new_leaf(dev, ET_F32, 2, w_shape, 2, 0),
        [BIAS] = new_leaf(dev, ET_F32, 1, &s->columns, 3, 0),
    };
    struct et_tensor *target = new_leaf(dev, ET_I32, 1, &s->rows, 0, (int)s->classes);
    struct et_tensor *want[RESULTS] = {NULL};
    struct et_graph *g;
    setenv("ETUDE_EAGER", eager ? "1" : "0", 1);
    need(et_graph_new(cx, dev, &g));
    unsetenv("ETUDE_EAGER");
    need(et_graph_set_low_dtype(g, low));
    et_autocast(g, low != ET_NONE);
    struct et_tensor *z = et_linear(g, leaf[X], leaf[W], s->biased ? leaf[BIAS] : NULL);
    if (!s->linear)
        z = et_slice(g, z, 1, 0, s->classes, 1);
    a->row = z ? z->desc.stride[0] : 0;
    want[LOSS] = et_cross_entropy(g, z, target, NULL, ET_IGNORE_INDEX, ET_REDUCE_MEAN);
    need(et_grad(g, want[LOSS], leaf, s->biased ? LEAVES : BIAS, want));
    want[LOGITS] = et_cast(g, et_slice(g, z, 0, 0, 3, 1), ET_F32);
    need(et_eval(g, want, RESULTS));
    et_graph_last_plan(g, &a->plan);
    for (int i = 0; i < RESULTS; i++) {
        a->n[i] = want[i] ? et_desc_count(&want[i]->desc) : 0;
        a->v[i] = calloc((size_t)a->n[i] + 1, sizeof(float));
        if (want[i])
            need(et_tensor_read(cx, want[i], a->v[i], (size_t)a->n[i] * sizeof(float)));
    }
    et_graph_free(&g);
    for (int i = 0; i < LEAVES; i++)
        et_tensor_free(&leaf[i]);
    et_tensor_free(&target);
}

static void
answers_free(struct answers *a)
{
    for (int i = 0; i < RESULTS; i++)
        free(a->v[i]);
}

/* The worst ||a - b|| / ||b|| of all results; INFINITY where one is no number. */
static double
distance(const struct answers *a, const struct answers *b)
{
    double worst = 0;
    for (int i = 0; i < RESULTS; i++) {
        double apart = 0, norm = 0;
        if (a->n[i] != b->n[i])
            return INFINITY;
        for (int64_t k = 0; k < a->n[i]; k++) {
            double d = (double)a->v[i][k] - (double)b->v[i][k];
            apart += d * d;
            norm += (double)b->v[i][k] * (double)b->v[i][k];
        }
        double is = norm > 0 ? sqrt(apart / norm) : sqrt(apart);
        worst = isfinite(is) && is > worst ? is : isfinite(is) ? worst : INFINITY;
    }
    return worst;
}

static const struct shape sliced[] = {
    {"13 of 16 columns", 37, 8, 16, 13, false, false},
    {"all but one of 65", 5, 3, 65, 64, true, false},
    {"one of two", 9, 2, 2, 1, false, false},
};

/* On one device, planned and eager, no more than LIMIT apart. */
static void
check_slices(struct et_device *dev, const char *name, double limit)
{
    for (size_t i = 0; i < sizeof sliced / sizeof *sliced; i++) {
        struct answers planned, eager;
        compute(dev, &sliced[i], ET_NONE, false, &planned);
        compute(dev, &sliced[i], ET_NONE, true, &eager);
        ok(distance(&planned, &eager) <= limit, "%s on %s: as each operation by itself",
           sliced[i].what, name);
        answers_free(&planned);
        answers_free(&eager);
    }
}

/* Gradients of logits, which a kernel writes with any strides, with a border before one
 * axis and behind the other: that is no place for them. */
static void
check_corner(struct et_device *dev, const char *name)
{
    enum { ROWS = 5, COLUMNS = 4, OUT = 3, N = (ROWS + 1) * OUT };
    const int64_t x_shape[] = {ROWS, COLUMNS}, w_shape[] = {COLUMNS + 1, OUT};
    float got[2][N];
    for (int axis = 0; axis < 2; axis++) {
        int64_t before[2] = {0}, after[2] = {0};
        before[axis] = after[!axis] = 1;
        for (int eager = 0; eager < 2; eager++) {
            struct et_graph *g;
            struct et_tensor *dx;
            struct et_tensor *x = new_leaf(dev, ET_F32, 2, x_shape, 1, 0);
            struct et_tensor *w = new_leaf(dev, ET_F32, 2, w_shape, 2, 0);
            struct et_tensor *target = new_leaf(dev, ET_I32, 1, x_shape, 0, COLUMNS);
            setenv("ETUDE_EAGER", eager ? "1" : "0", 1);
            need(et_graph_new(cx, dev, &g));
            unsetenv("ETUDE_EAGER");
            struct et_tensor *loss =
                et_cross_entropy(g, x, target, NULL, ET_IGNORE_INDEX, ET_REDUCE_MEAN);
            need(et_grad(g, loss, &x, 1, &dx));
            dx = et_matmul(g, et_pad(g, dx, before, after, 1), w, false, false);
            need(et_eval(g, &dx, 1));
            need(et_tensor_read(cx, dx, got[eager], sizeof got[eager]));
            et_graph_free(&g);
            et_tensor_free(&x);
            et_tensor_free(&w);
            et_tensor_free(&target);
        }
        ok(memcmp(got[0], got[1], sizeof got[0]) == 0,
           "a border before axis %d and behind the other on %s: as by itself", axis,
           name);
    }
}

static const struct {
    struct shape s;
    int64_t row; /* of the logits: padded, or as asked for */
    int pads;    /* pads more than without padding */
} linears[] = {
    {{"1,030 columns of 4,096 rows", 4096, 4, 1030, 1030, false, true}, 1088, 2},
    {{"with a bias", 4096, 4, 1030, 1030, true, true}, 1088, 3},
    {{"1,088 columns", 4096, 4, 1088, 1088, false, true}, 1088, 0},
    {{"few rows", 64, 4, 1030, 1030, false, true}, 1030, 0},
    {{"few columns", 4096, 4, 65, 65, false, true}, 65, 0},
};

/* The same on the reference, which pads nothing. f32: sums of up to 4,096 terms in
 * another order. bf16: results rounded to 8 bits, whose errors are apart by as much. */
static void
check_linears(struct et_device *dev, struct et_device *ref, enum et_dtype low,
              double limit)
{
    const char *dtype = low ? et_dtype_name(low) : "f32";
    for (size_t i = 0; i < sizeof linears / sizeof *linears; i++) {
        const struct shape *s = &linears[i].s;
        struct answers here, there;
        compute(dev, s, low, false, &here);
        compute(ref, s, low, false, &there);
        is_int((long)here.row, (long)linears[i].row,
               "%s in %s: a row of the logits is %d elements", s->what, dtype,
               (int)linears[i].row);
        is_int((long)there.row, (long)s->classes, "on the reference it is not padded");
        double apart = distance(&here, &there);
        ok(apart <= limit,
           "loss, logits and gradients are the reference's (%.2g apart)", apart);
        /* Rows are longer, and W is copied; a copy of the logits would be twice
         * this. */
        int64_t pass = s->rows * s->classes * (low ? 2 : 4);
        ok(here.plan.moved_bytes < there.plan.moved_bytes + pass,
           "and the logits are not copied for it (%lld bytes moved, %lld there)",
           (long long)here.plan.moved_bytes, (long long)there.plan.moved_bytes);
        answers_free(&here);
        answers_free(&there);
    }
}

int
main(void)
{
    struct et_device *ref, *dev;
    setenv("ETUDE_TUNE", "0", 0);
    setenv("ETUDE_RTC", "0", 0);
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    need(et_device_open(cx, "ref", 0, 0, &ref));
    check_slices(ref, "ref", 0);
    check_corner(ref, "ref");
    if (et_device_open(cx, "cpu", 0, 1, &dev) == ET_OK) {
        check_slices(dev, "cpu", 0);
        check_corner(dev, "cpu");
        et_device_close(&dev);
    } else {
        skip(1, "no cpu device");
        et_error_clear(cx);
    }
    if (et_device_open(cx, "gpusim", 0, 0, &dev) == ET_OK) {
        check_slices(dev, "gpusim", 1e-6); /* its products take the bias in */
        check_linears(dev, ref, ET_NONE, 1e-5);
        check_linears(dev, ref, ET_BF16, 2e-2);
        et_device_close(&dev);
    } else {
        skip(1, "no simulated GPU");
        et_error_clear(cx);
    }
    et_device_close(&ref);
    et_ctx_free(&cx);
    return done();
}
