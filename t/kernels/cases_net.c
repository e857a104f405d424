/* SPDX-License-Identifier: Apache-2.0 */
/* cases_net.c: cases of normalisation, softmax, losses and attention. */
#include "t/kernels/families.h"

#include <math.h>
#include <string.h>

/* ---- batch norm ---- */

struct batch_case {
    const char *what;
    int ndim;
    int64_t x[4];
    bool affine, residual, relu;
    enum contents contents;
    enum layout other;      /* another than channels-last */
    bool no_gamma, no_beta; /* leave one of an affine norm's two out */
    double eps;             /* 0: 1e-5, which has no effect beside a variance of 1 */
};

/* Devices have a way of their own for up to some thousand positions. */
static const struct batch_case batches[] = {
    {.what = "images", .ndim = 4, .x = {3, 17, 5, 7}, .affine = true},
    {.what = "plain", .ndim = 4, .x = {2, 5, 3, 3}},
    {.what = "relu", .ndim = 4, .x = {4, 16, 6, 6}, .affine = true, .relu = true},
    {.what = "residual",
     .ndim = 4,
     .x = {4, 16, 6, 6},
     .affine = true,
     .residual = true},
    {.what = "residual and relu",
     .ndim = 4,
     .x = {2, 33, 3, 5},
     .affine = true,
     .residual = true,
     .relu = true},
    {.what = "relu without gamma", .ndim = 4, .x = {2, 5, 3, 3}, .relu = true},
    {.what = "vectors", .ndim = 2, .x = {13, 31}, .affine = true},
    {.what = "sequences", .ndim = 3, .x = {3, 7, 11}, .affine = true},
    {.what = "one channel", .ndim = 4, .x = {7, 1, 5, 5}, .affine = true},
    {.what = "one position", .ndim = 2, .x = {1, 40}, .affine = true},
    {.what = "many positions", .ndim = 4, .x = {5, 24, 23, 31}, .affine = true},
    {.what = "many positions, residual and relu",
     .ndim = 4,
     .x = {7, 16, 20, 23},
     .affine = true,
     .residual = true,
     .relu = true},
    {.what = "many positions of three channels",
     .ndim = 4,
     .x = {11, 3, 17, 19},
     .affine = true,
     .relu = true},
    {.what = "many channels", .ndim = 2, .x = {2053, 264}, .affine = true},
    {.what = "many positions far from zero",
     .ndim = 4,
     .x = {5, 8, 25, 27},
     .affine = true,
     .contents = FAR},
    {.what = "every second element",
     .ndim = 4,
     .x = {3, 5, 4, 6},
     .affine = true,
     .residual = true,
     .relu = true,
     .other = GAPS},
    {.what = "turned images", .ndim = 4, .x = {3, 5, 4, 6}, .other = TURNED},
    {.what = "not aligned",
     .ndim = 4,
     .x = {3, 16, 5, 7},
     .affine = true,
     .residual = true,
     .relu = true,
     .other = SHIFTED},
    {.what = "many positions, not aligned",
     .ndim = 4,
     .x = {5, 16, 21, 23},
     .affine = true,
     .other = SHIFTED},
    {.what = "far from zero",
     .ndim = 4,
     .x = {5, 4, 7, 7},
     .affine = true,
     .contents = FAR},
    {.what = "an eps that has an effect",
     .ndim = 4,
     .x = {3, 17, 5, 7},
     .affine = true,
     .relu = true,
     .eps = 0.3},
    {.what = "gamma alone",
     .ndim = 4,
     .x = {3, 16, 5, 7},
     .affine = true,
     .no_beta = true},
    {.what = "beta alone",
     .ndim = 4,
     .x = {3, 16, 5, 7},
     .affine = true,
     .no_gamma = true},
};

static void
batch_norm(struct bench *b, const struct batch_case *v)
{
    struct et_norm_attr o = {.eps = v->eps > 0 ? v->eps : 1e-5,
                             .relu = v->relu,
                             .stored = v->residual ? (int32_t)b->narrow : 0};
    int64_t c = v->x[1], n = v->x[0];
    for (int k = 2; k < v->ndim; k++)
        n *= v->x[k];
    enum layout layout = v->other ? v->other : LAST;
    struct operand *x = operand(b, ET_F32, v->contents, 0, layout, v->ndim, v->x);
    struct operand *gamma = v->affine && !v->no_gamma
                                ? operand(b, ET_F32, POSITIVE, 0, ROW, SHAPE(c))
                                : NULL;
    struct operand *beta = v->affine && !v->no_beta ? normal(b, ROW, SHAPE(c)) : NULL;
    struct operand *residual = v->residual ? normal(b, layout, v->ndim, v->x) : NULL;
    struct operand *y = result_like(b, ET_F32, x);
    struct operand *mean = wide_result(b, SHAPE(c));
    struct operand *var = wide_result(b, SHAPE(c));
    struct trial forward = {ATTR(o), IN(x, gamma, beta, residual), OUT(y, mean, var),
                            .length = n, .narrow_part = v->residual};
    if (b->op == ET_OP_batch_norm) {
        check(b, &forward, "%s", v->what);
        return;
    }
    compute(b, ET_OP_batch_norm, &forward, "%s", v->what);
    check(b,
          TRIAL(ATTR(o),
                IN(normal(b, layout, v->ndim, v->x), x, gamma, mean, var,
                   v->relu ? y : NULL),
                OUT(result_like(b, ET_F32, x),
                    gamma ? result_like(b, ET_F32, gamma) : NULL,
                    beta ? result_like(b, ET_F32, beta) : NULL,
                    residual ? result_like(b, ET_F32, x) : NULL),
                .length = n),
          "%s", v->what);
}

void
cases_batch_norm(struct bench *b)
{
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++)
        batch_norm(b, &batches[i]);
}

/* ---- layer and group norm ---- */

struct row_case {
    const char *what;
    int ndim, axes, groups;
    int64_t x[4];
    bool affine, mixed; /* MIXED: in every mixture of the table below */
    enum layout layout;
    enum contents contents;
    bool no_gamma, no_beta; /* leave one of an affine norm's two out */
    double eps;             /* 0: 1e-5 */
    bool slow;              /* seconds on the simulated GPU: in f32 alone */
};

/* What a graph makes of layer norm. WIDE: x, its sum and parameters stay f32 where
 * other arrays are narrow, as in mixed precision; of those, the residual and its
 * gradient may be narrow, and the result and its gradient. */
static const struct mixture {
    const char *what;
    bool residual, wide, narrow_residual, narrow_result, no_dx;
} mixtures[] = {
    {.what = ""},
    {.what = ", of a sum", .residual = true},
    {.what = ", of a sum in mixed precision",
     .residual = true,
     .wide = true,
     .narrow_residual = true,
     .narrow_result = true},
    {.what = ", with a narrow residual",
     .residual = true,
     .wide = true,
     .narrow_residual = true},
    {.what = ", narrow for the residual alone",
     .residual = true,
     .wide = true,
     .narrow_residual = true,
     .no_dx = true},
    {.what = ", with a narrow result", .wide = true, .narrow_result = true},
    {.what = ", of a sum with a narrow result",
     .residual = true,
     .wide = true,
     .narrow_result = true},
};

static const struct row_case layers[] = {
    {.what = "last axis",
     .ndim = 3,
     .axes = 1,
     .x = {2, 7, 33},
     .mixed = true,
     .affine = true},
    {.what = "plain", .ndim = 2, .axes = 1, .x = {5, 31}},
    {.what = "two axes",
     .ndim = 3,
     .axes = 2,
     .x = {3, 5, 7},
     .mixed = true,
     .affine = true},
    {.what = "one row", .ndim = 1, .axes = 1, .x = {67}, .affine = true},
    {.what = "768",
     .ndim = 2,
     .axes = 1,
     .x = {37, 768},
     .mixed = true,
     .affine = true},
    {.what = "768 without gamma", .ndim = 2, .axes = 1, .x = {3, 768}, .mixed = true},
    {.what = "64", .ndim = 2, .axes = 1, .x = {101, 64}, .affine = true},
    {.what = "many short rows", .ndim = 2, .axes = 1, .x = {65539, 4}, .affine = true},
    {.what = "1021",
     .ndim = 2,
     .axes = 1,
     .x = {7, 1021},
     .mixed = true,
     .affine = true},
    {.what = "3072", .ndim = 2, .axes = 1, .x = {5, 3072}, .affine = true},
    {.what = "4099", .ndim = 2, .axes = 1, .x = {2, 4099}, .affine = true},
    {.what = "8192",
     .ndim = 2,
     .axes = 1,
     .x = {3, 8192},
     .mixed = true,
     .affine = true},
    {.what = "12288",
     .ndim = 2,
     .axes = 1,
     .x = {2, 12288},
     .mixed = true,
     .affine = true},
    {.what = "16384", .ndim = 2, .axes = 1, .x = {2, 16384}, .affine = true},
    /* Longer than the rows that CUDA's row_norm.c takes: norm_any.cu's, which has a
     * block for each parameter; "turned" and those behind it are as mixed, and
     * small. */
    {.what = "16392",
     .ndim = 2,
     .axes = 1,
     .x = {2, 16392},
     .affine = true,
     .slow = true},
    {.what = "768, not aligned",
     .ndim = 2,
     .axes = 1,
     .x = {5, 768},
     .affine = true,
     .mixed = true,
     .layout = SHIFTED},
    {.what = "8192, not aligned",
     .ndim = 2,
     .axes = 1,
     .x = {2, 8192},
     .affine = true,
     .layout = SHIFTED,
     .slow = true},
    {.what = "turned",
     .ndim = 3,
     .axes = 1,
     .x = {2, 7, 33},
     .affine = true,
     .mixed = true,
     .layout = TURNED},
    {.what = "every second element",
     .ndim = 2,
     .axes = 1,
     .x = {5, 31},
     .affine = true,
     .mixed = true,
     .layout = GAPS},
    {.what = "repeated rows",
     .ndim = 3,
     .axes = 1,
     .x = {4, 3, 16},
     .affine = true,
     .mixed = true,
     .layout = REPEAT},
    {.what = "no row",
     .ndim = 2,
     .axes = 1,
     .x = {0, 8},
     .affine = true,
     .mixed = true},
    {.what = "far from zero",
     .ndim = 2,
     .axes = 1,
     .x = {5, 97},
     .affine = true,
     .contents = FAR},
    {.what = "an eps that has an effect",
     .ndim = 2,
     .axes = 1,
     .x = {5, 96},
     .affine = true,
     .eps = 0.3},
    {.what = "gamma alone",
     .ndim = 2,
     .axes = 1,
     .x = {5, 96},
     .affine = true,
     .no_beta = true},
    {.what = "beta alone",
     .ndim = 2,
     .axes = 1,
     .x = {5, 96},
     .affine = true,
     .no_gamma = true},
};

static const struct row_case groups[] = {
    {.what = "four groups",
     .ndim = 4,
     .groups = 4,
     .x = {2, 16, 5, 3},
     .affine = true,
     .layout = LAST},
    {.what = "one group", .ndim = 4, .groups = 1, .x = {3, 5, 3, 3}, .layout = LAST},
    {.what = "a group per channel",
     .ndim = 4,
     .groups = 5,
     .x = {2, 5, 7, 3},
     .affine = true,
     .layout = LAST},
    {.what = "vectors", .ndim = 2, .groups = 3, .x = {5, 33}, .affine = true},
    {.what = "large images",
     .ndim = 4,
     .groups = 4,
     .x = {3, 32, 33, 29},
     .affine = true,
     .layout = LAST},
    {.what = "sequences", .ndim = 3, .groups = 2, .x = {3, 6, 13}, .affine = true},
    {.what = "not aligned",
     .ndim = 4,
     .groups = 2,
     .x = {2, 16, 5, 7},
     .affine = true,
     .layout = SHIFTED},
    {.what = "far from zero",
     .ndim = 4,
     .groups = 2,
     .x = {2, 8, 5, 5},
     .affine = true,
     .layout = LAST,
     .contents = FAR},
    {.what = "an eps that has an effect",
     .ndim = 4,
     .groups = 2,
     .x = {2, 8, 5, 3},
     .affine = true,
     .layout = LAST,
     .eps = 0.3},
    {.what = "gamma alone",
     .ndim = 4,
     .groups = 2,
     .x = {2, 8, 5, 3},
     .affine = true,
     .no_beta = true,
     .layout = LAST},
    {.what = "beta alone",
     .ndim = 4,
     .groups = 2,
     .x = {2, 8, 5, 3},
     .affine = true,
     .no_gamma = true,
     .layout = LAST},
};

static int64_t
product(const int64_t *shape, int from, int to)
{
    int64_t n = 1;
    for (int k = from; k < to; k++)
        n *= shape[k];
    return n;
}

/* An operand or result of the case's layout; WIDE: f32 in any case. */
static struct operand *
row_operand(struct bench *b, const struct row_case *v, enum contents contents,
            bool wide)
{
    return wide ? wide_operand(b, contents, v->layout, v->ndim, v->x)
                : operand(b, ET_F32, contents, 0, v->layout, v->ndim, v->x);
}

static struct operand *
row_result(struct bench *b, const struct row_case *v, bool wide)
{
    enum layout layout = v->groups ? LAST : ROW;
    return wide ? wide_result(b, v->ndim, v->x)
                : result(b, ET_F32, layout, v->ndim, v->x);
}

static struct operand *
row_parameter(struct bench *b, const struct row_case *v, enum contents contents,
              bool wide)
{
    int outer = v->ndim - v->axes, n = v->groups ? 1 : v->axes;
    const int64_t *shape = v->groups ? v->x + 1 : v->x + outer;
    if (!v->affine)
        return NULL;
    return wide ? wide_operand(b, contents, ROW, n, shape)
                : operand(b, ET_F32, contents, 0, ROW, n, shape);
}

static struct operand *
parameter_result(struct bench *b, const struct operand *like, bool wide)
{
    if (!like)
        return NULL;
    return wide ? wide_result(b, like->d.ndim, like->d.shape)
                : result_like(b, ET_F32, like);
}

static void
row_norm(struct bench *b, const struct row_case *v, const struct mixture *m)
{
    bool group = v->groups > 0;
    bool grad = b->op == ET_OP_layer_norm_grad || b->op == ET_OP_group_norm_grad;
    struct et_norm_attr o = {
        .eps = v->eps > 0 ? v->eps : 1e-5, .groups = v->groups, .axes = v->axes};
    int outer = v->ndim - v->axes;
    int64_t statistics[4] = {v->x[0], v->groups},
            length = product(v->x, 0, v->ndim) + 1;
    for (int k = 0; !group && k < outer; k++)
        statistics[k] = v->x[k];

    /* Whole numbers, whose sums every dtype holds: what is normalised is the same. */
    bool narrow_sum = m->residual && !m->wide;
    enum contents contents = narrow_sum ? COARSE : v->contents;
    struct operand *x = row_operand(b, v, contents, m->wide);
    struct operand *gamma = v->no_gamma ? NULL : row_parameter(b, v, POSITIVE, m->wide);
    struct operand *beta = v->no_beta ? NULL : row_parameter(b, v, NORMAL, m->wide);
    struct operand *residual =
        m->residual ? row_operand(b, v, contents, m->wide && !m->narrow_residual)
                    : NULL;
    bool wide_y = m->wide && !m->narrow_result;
    struct operand *y = row_result(b, v, wide_y);
    struct operand *sum = m->residual ? row_result(b, v, m->wide) : NULL;
    struct operand *mean = wide_result(b, group ? 2 : outer, statistics);
    struct operand *rstd = wide_result(b, group ? 2 : outer, statistics);
    struct trial forward = {ATTR(o), IN(x, gamma, beta, residual),
                            OUT(y, mean, rstd, sum), .length = length};
    if (group) /* which has neither residual nor sum */
        forward.n_in = forward.n_out = 3;
    if (!grad) {
        check(b, &forward, "%s%s", v->what, m->what);
        return;
    }
    compute(b, group ? ET_OP_group_norm : ET_OP_layer_norm, &forward, "%s%s", v->what,
            m->what);
    struct operand *dy = row_operand(b, v, NORMAL, wide_y);
    struct operand *dsum = m->residual ? row_operand(b, v, NORMAL, m->wide) : NULL;
    struct trial backward = {
        ATTR(o),
        IN(dy, sum ? sum : x, gamma, mean, rstd, dsum),
        OUT(m->no_dx ? NULL : row_result(b, v, m->wide),
            parameter_result(b, gamma, m->wide), parameter_result(b, beta, m->wide),
            m->residual ? row_result(b, v, m->wide && !m->narrow_residual) : NULL),
        .length = length,
        .narrow_part = narrow_sum,
    };
    if (group) {
        backward.n_in = 5;
        backward.n_out = 3;
    }
    check(b, &backward, "%s%s", v->what, m->what);
}

void
cases_row_norm(struct bench *b)
{
    bool layer = b->op == ET_OP_layer_norm || b->op == ET_OP_layer_norm_grad;
    const struct row_case *v = layer ? layers : groups;
    size_t n =
        layer ? sizeof layers / sizeof layers[0] : sizeof groups / sizeof groups[0];
    for (size_t i = 0; i < n; i++) {
        if (v[i].slow && b->narrow)
            continue;
        for (size_t k = 0; k < (v[i].mixed ? sizeof mixtures / sizeof mixtures[0] : 1);
             k++)
            row_norm(b, &v[i], &mixtures[k]);
    }
}

/* ---- softmax ---- */

static void
softmax(struct bench *b, int axis, enum contents contents, enum layout layout, int ndim,
        const int64_t *shape)
{
    struct et_axis_attr o = {.axis = axis};
    bool grad = b->op == ET_OP_softmax_grad || b->op == ET_OP_log_softmax_grad;
    bool logarithm = b->op == ET_OP_log_softmax || b->op == ET_OP_log_softmax_grad;
    int64_t length = shape[axis];
    struct operand *x = operand(b, ET_F32, contents, 0, layout, ndim, shape);
    struct operand *y = result(b, ET_F32, ROW, ndim, shape);
    struct trial forward = {ATTR(o), IN(x), OUT(y), .length = length};
    char text[96];
    et_desc_text(&x->d, text, sizeof text);
    if (!grad) {
        check(b, &forward, "%s along %d, layout %d%s", text, axis, (int)layout,
              contents == FAR ? ", far from zero" : "");
        return;
    }
    compute(b, logarithm ? ET_OP_log_softmax : ET_OP_softmax, &forward,
            "%s along %d, layout %d%s", text, axis, (int)layout,
            contents == FAR ? ", far from zero" : "");
    check(b,
          TRIAL(ATTR(o), IN(normal(b, layout, ndim, shape), y),
                OUT(result(b, ET_F32, ROW, ndim, shape)), .length = length),
          "%s along %d, layout %d%s", text, axis, (int)layout,
          contents == FAR ? ", far from zero" : "");
}

void
cases_softmax(struct bench *b)
{
    for (int axis = 0; axis < 3; axis++)
        softmax(b, axis, NORMAL, ROW, SHAPE(3, 7, 33));
    softmax(b, 1, NORMAL, ROW, SHAPE(5, 1));
    softmax(b, 1, NORMAL, ROW, SHAPE(2, 1009));
    softmax(b, 1, NORMAL, ROW, SHAPE(2, 5003));
    softmax(b, 1, NORMAL, ROW, SHAPE(3, 96));
    softmax(b, 0, NORMAL, ROW, SHAPE(20, 4100));
    softmax(b, 1, NORMAL, SHIFTED, SHAPE(3, 96));
    softmax(b, 0, NORMAL, ROW, SHAPE(31));
    softmax(b, 1, FAR, ROW, SHAPE(5, 10));
    softmax(b, 1, NORMAL, TURNED, SHAPE(5, 13));
    softmax(b, 1, NORMAL, GAPS, SHAPE(5, 13));
    softmax(b, 2, NORMAL, REPEAT, SHAPE(3, 5, 13));
    for (int axis = 0; axis < 4; axis++)
        softmax(b, axis, NORMAL, LAST, SHAPE(2, 5, 3, 7));
    softmax(b, 1, NORMAL, ROW, SHAPE(0, 5));
}

/* ---- cross entropy ---- */

static void
cross_entropy(struct bench *b, const char *what, bool dense, bool weighted,
              int64_t classes, int64_t beyond, int ndim, const int64_t *z)
{
    struct et_cross_entropy_attr o = {.ignore_index = beyond ? classes : -100};
    int64_t positions[4] = {z[0]}, n = 1;
    for (int k = 2; k < ndim; k++)
        positions[n++] = z[k];
    struct operand *logits = normal(b, LAST, ndim, z);
    struct operand *target =
        dense ? operand(b, ET_F32, POSITIVE, 0, LAST, ndim, z)
              : operand(b, ET_I32, INDEX, classes + beyond, ROW, (int)n, positions);
    struct operand *weight =
        weighted ? operand(b, ET_F32, POSITIVE, 0, ROW, SHAPE(classes)) : NULL;
    struct operand *loss = wide_result(b, (int)n, positions);
    struct operand *lse = wide_result(b, (int)n, positions);
    struct trial forward = {ATTR(o), IN(logits, target, weight), OUT(loss, lse),
                            .length = classes};
    if (b->op == ET_OP_cross_entropy) {
        check(b, &forward, "%s", what);
        forward.out[1] = NULL;
        check(b, &forward, "%s, the loss alone", what);
        return;
    }
    compute(b, ET_OP_cross_entropy, &forward, "%s", what);
    check(b,
          TRIAL(ATTR(o),
                IN(normal(b, ROW, (int)n, positions), logits, target, lse, weight),
                OUT(result_like(b, ET_F32, logits)), .length = classes),
          "%s", what);
    check(b,
          TRIAL(ATTR(o),
                IN(normal(b, REPEAT, (int)n, positions), logits, target, lse, weight),
                OUT(result_like(b, ET_F32, logits)), .length = classes),
          "%s, one dloss for all samples", what);
}

/* Logits and their gradient inside larger arrays, as where rows are padded. */
static void
cross_entropy_apart(struct bench *b)
{
    struct et_cross_entropy_attr o = {.ignore_index = -100};
    struct operand *logits = normal(b, GAPS, SHAPE(33, 67));
    struct operand *target = operand(b, ET_I32, INDEX, 67, ROW, SHAPE(33));
    struct operand *loss = wide_result(b, SHAPE(33)), *lse = wide_result(b, SHAPE(33));
    struct trial forward = {ATTR(o), IN(logits, target), OUT(loss, lse), .length = 67};
    if (b->op == ET_OP_cross_entropy) {
        check(b, &forward, "logits with gaps");
        return;
    }
    compute(b, ET_OP_cross_entropy, &forward, "logits with gaps");
    check(b,
          TRIAL(ATTR(o), IN(normal(b, ROW, SHAPE(33)), logits, target, lse),
                OUT(result(b, ET_F32, GAPS, SHAPE(33, 67))), .length = 67),
          "logits and their gradient with gaps");
}

/* Of a class that has no weight, or no share, an infinite logit counts nothing. */
static void
cross_entropy_of_nothing(struct bench *b)
{
    static const float logits[2][3] = {{1, -INFINITY, 2}, {-INFINITY, 0.5f, 1}};
    static const float shares[2][3] = {{0.25f, 0, 0.75f}, {0, 0.5f, 0.5f}};
    static const float weights[] = {1, 0, 2};
    static const int32_t classes[] = {1, 2};
    struct et_cross_entropy_attr o = {.ignore_index = -100};
    for (int dense = 0; dense < 2; dense++) {
        struct operand *z = operand(b, ET_F32, GIVEN, 0, ROW, SHAPE(2, 3));
        struct operand *w = wide_operand(b, GIVEN, ROW, SHAPE(3));
        struct operand *t = dense ? wide_operand(b, GIVEN, ROW, SHAPE(2, 3))
                                  : operand(b, ET_I32, GIVEN, 0, ROW, SHAPE(2));
        memcpy(z->block, logits, sizeof logits);
        memcpy(w->block, weights, sizeof weights);
        memcpy(t->block, dense ? (const void *)shares : classes,
               dense ? sizeof shares : sizeof classes);
        check(b,
              TRIAL(ATTR(o), IN(z, t, w),
                    OUT(wide_result(b, SHAPE(2)), wide_result(b, SHAPE(2))),
                    .length = 3),
              "infinite logits of classes without %s", dense ? "a share" : "weight");
    }
}

void
cases_cross_entropy(struct bench *b)
{
    if (b->op == ET_OP_cross_entropy && !b->narrow)
        cross_entropy_of_nothing(b);
    cross_entropy(b, "indices", false, false, 10, 0, SHAPE(33, 10));
    cross_entropy(b, "indices, some ignored", false, false, 10, 1, SHAPE(33, 10));
    cross_entropy(b, "indices, some ignored, some no class", false, false, 10, 3,
                  SHAPE(33, 10));
    cross_entropy(b, "weighted indices", false, true, 7, 1, SHAPE(31, 7));
    cross_entropy(b, "dense", true, false, 10, 0, SHAPE(33, 10));
    cross_entropy(b, "weighted dense", true, true, 7, 0, SHAPE(31, 7));
    cross_entropy(b, "images of indices", false, true, 5, 1, SHAPE(2, 5, 3, 7));
    cross_entropy(b, "dense images", true, false, 5, 0, SHAPE(2, 5, 3, 7));
    cross_entropy(b, "two classes", false, false, 2, 0, SHAPE(1, 2));
    cross_entropy(b, "a vocabulary", false, false, 1009, 0, SHAPE(5, 1009));
    cross_entropy(b, "a larger vocabulary", false, true, 5003, 1, SHAPE(3, 5003));
    cross_entropy(b, "distributions over a vocabulary", true, true, 2504, 0,
                  SHAPE(2, 2504));
    cross_entropy(b, "sequences", false, false, 11, 1, SHAPE(3, 11, 13));
    cross_entropy_apart(b);
    cross_entropy(b, "no sample", false, false, 5, 0, SHAPE(0, 5));
}

/* ---- attention ---- */

struct sdpa_case {
    const char *what;
    int64_t B, H, T, S, D;
    bool causal;
    enum layout layout, gradients;
    int64_t bias[4]; /* all 0: none */
    enum layout bias_layout;
    bool hides; /* some of the bias is -infinity */
    bool wide;  /* the bias is f32 whatever the heads are, as under mixed precision */
    bool some;  /* not all results are wanted */
    enum layout keys, values; /* layouts, where other than the queries' */
};

static const struct sdpa_case sdpas[] = {
    {.what = "plain", .B = 2, .H = 3, .T = 7, .S = 7, .D = 16},
    {.what = "causal", .B = 2, .H = 3, .T = 33, .S = 33, .D = 8, .causal = true},
    {.what = "longer keys", .B = 1, .H = 2, .T = 5, .S = 31, .D = 4},
    {.what = "causal, longer keys",
     .B = 1,
     .H = 2,
     .T = 5,
     .S = 9,
     .D = 4,
     .causal = true},
    {.what = "one position", .B = 3, .H = 1, .T = 1, .S = 1, .D = 3},
    {.what = "turned", .B = 2, .H = 2, .T = 5, .S = 5, .D = 7, .layout = TURNED},
    {.what = "heads beside each other, causal",
     .B = 2,
     .H = 3,
     .T = 9,
     .S = 9,
     .D = 16,
     .causal = true,
     .layout = HEADS,
     .gradients = GAPS},
    {.what = "repeated samples",
     .B = 3,
     .H = 2,
     .T = 4,
     .S = 4,
     .D = 8,
     .layout = REPEAT},
    {.what = "every second element",
     .B = 2,
     .H = 2,
     .T = 5,
     .S = 5,
     .D = 7,
     .layout = GAPS},
    {.what = "bias per head and key, causal",
     .B = 2,
     .H = 3,
     .T = 7,
     .S = 7,
     .D = 8,
     .causal = true,
     .bias = {1, 3, 1, 7}},
    {.what = "bias for all",
     .B = 2,
     .H = 3,
     .T = 5,
     .S = 7,
     .D = 8,
     .bias = {2, 3, 5, 7}},
    {.what = "one bias for all samples",
     .B = 2,
     .H = 3,
     .T = 5,
     .S = 7,
     .D = 8,
     .bias = {2, 3, 5, 7},
     .bias_layout = REPEAT},
    {.what = "a bias per query",
     .B = 2,
     .H = 3,
     .T = 5,
     .S = 7,
     .D = 8,
     .bias = {1, 3, 5, 7},
     .bias_layout = TURNED},
    {.what = "a tile of positions, causal",
     .B = 1,
     .H = 1,
     .T = 64,
     .S = 64,
     .D = 64,
     .causal = true},
    {.what = "a tile and a position, causal",
     .B = 1,
     .H = 2,
     .T = 65,
     .S = 65,
     .D = 64,
     .causal = true,
     .layout = HEADS,
     .gradients = HEADS},
    {.what = "197 positions, as of an image",
     .B = 1,
     .H = 1,
     .T = 197,
     .S = 197,
     .D = 64},
    {.what = "197 positions, causal, a bias per head and key",
     .B = 1,
     .H = 2,
     .T = 197,
     .S = 197,
     .D = 33,
     .causal = true,
     .bias = {1, 2, 1, 197}},
    {.what = "128 elements", .B = 1, .H = 2, .T = 70, .S = 66, .D = 128},
    {.what = "256 elements, causal",
     .B = 1,
     .H = 1,
     .T = 40,
     .S = 37,
     .D = 256,
     .causal = true},
    {.what = "one query", .B = 2, .H = 2, .T = 1, .S = 65, .D = 64},
    {.what = "one key", .B = 2, .H = 2, .T = 65, .S = 1, .D = 8},
    {.what = "more queries than keys, causal",
     .B = 1,
     .H = 2,
     .T = 70,
     .S = 5,
     .D = 8,
     .causal = true},
    {.what = "more keys than queries, causal",
     .B = 1,
     .H = 1,
     .T = 40,
     .S = 70,
     .D = 24,
     .causal = true},
    {.what = "queries, keys and values of different layouts",
     .B = 2,
     .H = 3,
     .T = 5,
     .S = 7,
     .D = 8,
     .keys = TURNED,
     .values = HEADS},
    {.what = "no samples", .B = 0, .H = 2, .T = 5, .S = 5, .D = 8},
    {.what = "packed rows, causal",
     .B = 2,
     .H = 3,
     .T = 65,
     .S = 65,
     .D = 8,
     .causal = true,
     .layout = PACKED,
     .gradients = PACKED},
    {.what = "packed rows",
     .B = 1,
     .H = 2,
     .T = 7,
     .S = 7,
     .D = 64,
     .layout = PACKED,
     .gradients = PACKED},
    {.what = "packed rows of odd heads",
     .B = 1,
     .H = 2,
     .T = 9,
     .S = 9,
     .D = 33,
     .layout = PACKED,
     .gradients = PACKED},
    {.what = "a bias of f32, causal",
     .B = 2,
     .H = 3,
     .T = 20,
     .S = 20,
     .D = 16,
     .causal = true,
     .bias = {1, 3, 1, 20},
     .wide = true},
    {.what = "some results", .B = 2, .H = 2, .T = 20, .S = 30, .D = 16, .some = true},
    {.what = "hidden keys",
     .B = 2,
     .H = 2,
     .T = 70,
     .S = 70,
     .D = 16,
     .bias = {2, 2, 1, 70},
     .hides = true},
    {.what = "queries that see nothing",
     .B = 2,
     .H = 3,
     .T = 5,
     .S = 1,
     .D = 8,
     .bias = {2, 3, 5, 1},
     .hides = true},
    {.what = "queries of which some see nothing",
     .B = 2,
     .H = 3,
     .T = 40,
     .S = 2,
     .D = 8,
     .bias = {2, 3, 40, 2},
     .hides = true},
};

static void
sdpa(struct bench *b, const struct sdpa_case *v)
{
    /* As models have it where scores would have a variance of 4 or more. */
    struct et_sdpa_attr o = {.scale = v->D > 16 ? 1 / sqrt((double)v->D) : 0.4,
                             .causal = v->causal};
    int64_t q[4] = {v->B, v->H, v->T, v->D}, k[4] = {v->B, v->H, v->S, v->D};
    enum layout keys = v->keys ? v->keys : v->layout;
    enum layout values = v->values ? v->values : v->layout;
    struct operand *in[3] = {normal(b, v->layout, 4, q), normal(b, keys, 4, k),
                             normal(b, values, 4, k)};
    enum et_dtype narrow = b->narrow;
    b->narrow = v->wide ? ET_NONE : narrow;
    struct operand *bias = v->bias[1] ? operand(b, ET_F32, v->hides ? HOLES : NORMAL, 0,
                                                v->bias_layout, 4, v->bias)
                                      : NULL;
    b->narrow = narrow;
    struct operand *out = result(b, ET_F32, ROW, 4, q);
    struct operand *lse = wide_result(b, 3, q);
    int64_t length = v->S + v->D;
    struct trial forward = {ATTR(o), IN(in[0], in[1], in[2], bias), OUT(out, lse),
                            .length = length, .narrow_terms = true};
    if (b->op == ET_OP_sdpa) {
        forward.out[1] = v->some ? NULL : lse;
        check(b, &forward, "%s", v->what);
        return;
    }
    compute(b, ET_OP_sdpa, &forward, "%s", v->what);
    /* Into a sum over queries go the scores, do v, and do . o: three sums over D
     * more. */
    check(b,
          TRIAL(ATTR(o),
                IN(normal(b, v->layout, 4, q), in[0], in[1], in[2], out, lse, bias),
                OUT(v->some ? NULL : result(b, ET_F32, v->gradients, 4, q),
                    result(b, ET_F32, v->keys ? v->keys : v->gradients, 4, k),
                    v->some ? NULL
                            : result(b, ET_F32, v->values ? v->values : v->gradients, 4,
                                     k)),
                .length = length + v->T + 3 * v->D, .narrow_terms = true),
          "%s", v->what);
}

void
cases_sdpa(struct bench *b)
{
    for (size_t i = 0; i < sizeof sdpas / sizeof sdpas[0]; i++)
        sdpa(b, &sdpas[i]);
}
