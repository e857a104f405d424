/* SPDX-License-Identifier: Apache-2.0 */
/* muon.c: momentum made orthogonal for the matrices of hidden layers, AdamW for the
 * rest.
 *
 *     m  = beta m + (1 - beta) g                    for W [out, in] of a hidden layer;
 *     d  = beta m + (1 - beta) g, or m              filters are [out, in R S]
 *     X  = d / max(|d|, 1e-7), transposed where out > in, and ns_steps times
 *     X  = a X + (b A + c A A) X,  A = X X'         a, b, c = 3.4445, -4.7750, 2.0315
 *     W -= lr (weight_decay W + scale X)            scale sqrt(max(1, out / in))
 *
 * The iteration brings every singular value near 1: X is about U V' of d = U S V'.
 * Vectors, embeddings and the layer that gives the outputs follow adamw.c with
 * adamw_lr, which the schedule scales as it does lr, and the same weight_decay.
 *
 * Jordan et al. 2024, kellerjordan.github.io/posts/muon; torch.optim.Muon; adjust_lr of
 * Liu et al. 2025, arXiv 2502.16982 and Bernstein 2025, "Deriving Muon".
 *
 * What is element by element is done for all parameters at once, matrices and others,
 * with both rules' results where the run has both, of which each row of flat memory
 * takes its own: that reads and writes the second moment of matrices too, which is
 * little beside the products. Matrices of one shape are copied side by side and
 * iterated as a batch, so that the number of kernels follows from how many shapes a run
 * has. Tall ones are multiplied from the other side, X P with
 * A = X' X, and never transposed.
 *
 * Differs: all in f32, where those iterate in bf16; the scale of a filter is that of
 * the matrix it is flattened to; a matrix has AdamW's second moment too, which stays
 * zero. Invariant: gaps between parameters stay zero. */
#include "core/optim/optim.h"

#include <math.h>

#include "core/graph/graph_impl.h"

enum adjust { ORIGINAL, MATCH_RMS_ADAMW, SPECTRAL_UNCLAMPED };
static const char *const adjust_names[] = {"original", "match_rms_adamw",
                                           "spectral_unclamped", NULL};

struct options {
    struct et_optimizer_options common;
    double momentum;
    bool nesterov;
    int64_t ns_steps;
    int adjust_lr; /* enum adjust */
    double adamw_lr;
    struct et_floats betas;
    double eps;
};

/* What is called the momentum buffer elsewhere is an average of gradients here too. */
enum { M, V };
static const char *const moments[] = {"exp_avg", "exp_avg_sq", NULL};
/* hyper: both rates; 1 / (1 - beta1^n) and 1 / sqrt(1 - beta2^n) of AdamW. */
enum { LR, ADAMW_LR, M_SCALE, V_ROOT };

static et_status
check(struct et_ctx *cx, const void *options)
{
    const struct options *o = options;
    return eti_check_betas(cx, &o->betas);
}

static void
hyper(const void *options, const struct et_optimizer_group *group, int64_t n,
      double *out)
{
    const struct options *o = options;
    double alpha = group->initial_lr == 0 ? 1 : group->lr / group->initial_lr;
    out[LR] = group->lr;
    out[ADAMW_LR] = o->adamw_lr * alpha;
    out[M_SCALE] = 1 / (1 - pow(o->betas.v[0], (double)n));
    out[V_ROOT] = 1 / sqrt(1 - pow(o->betas.v[1], (double)n));
}

static bool
is_matrix(const struct et_param_slot *slot)
{
    return slot->role != ET_ROLE_OTHER && slot->desc.ndim > 1 && slot->count > 0;
}

/* Filters lie channels-last: the columns of their matrix in that order, which the
 * iteration does not mind. */
static int64_t
rows_of(const struct et_param_slot *slot)
{
    return slot->desc.shape[0];
}

static bool
same_shape(const struct et_param_slot *a, const struct et_param_slot *b)
{
    return a->count == b->count && rows_of(a) == rows_of(b);
}

/* P less weight_decay RATED, which is P times its rate; nodes only where the group
 * decays. */
static struct et_tensor *
decayed(struct et_graph *g, const struct et_update *u, struct et_tensor *p,
        struct et_tensor *rated)
{
    double decay = u->group->weight_decay;
    return decay != 0 ? et_sub(g, p, et_mul_scalar(g, rated, decay)) : p;
}

/* ---- matrices ---- */

/* X [n, rows, cols] with singular values near 1, of matrices with a norm of 1: n times
 * 4 r^2 s + 2 r^3 flops a step, r and s the shorter and the longer side. A step is
 * computed as a (X + (b/a A + c/a A A) X): its last pass reads two arrays and writes
 * one. */
static struct et_tensor *
orthogonal(struct et_graph *g, struct et_tensor *x, bool tall, int64_t steps)
{
    static const double a = 3.4445, b = -4.7750, c = 2.0315;
    for (int64_t i = 0; i < steps; i++) {
        struct et_tensor *gram = et_matmul(g, x, x, tall, !tall);
        struct et_tensor *square = et_matmul(g, gram, gram, false, false);
        struct et_tensor *p =
            et_add(g, et_mul_scalar(g, gram, b / a), et_mul_scalar(g, square, c / a));
        struct et_tensor *moved =
            tall ? et_matmul(g, x, p, false, false) : et_matmul(g, p, x, false, false);
        x = et_mul_scalar(g, et_add(g, x, moved), a);
    }
    return x;
}

/* Stretch I of X, as long as parameter SLOT and beginning where AT says. */
static struct et_tensor *
part_of(struct et_graph *g, struct et_tensor *x, int64_t at,
        const struct et_param_slot *slot)
{
    return et_slice(g, x, 0, at, slot->count, 1);
}

/* Iterates matrix FIRST and all behind it that have its shape. D, f32 [run], holds
 * them; each result is put into PART, at its parameter's number. */
static void
iterate_shape(struct et_graph *g, const struct et_update *u, struct et_tensor *d,
              int first, struct et_tensor **part, const int64_t *offset)
{
    const struct options *o = u->options;
    const struct et_param_rows *all = u->rows;
    const struct et_param_slot *like = all->slot[first];
    int64_t rows = rows_of(like), cols = like->count / rows;
    struct et_tensor **in = eti_graph_alloc(g, (size_t)all->n * sizeof(*in));
    int64_t *at = eti_graph_alloc(g, (size_t)all->n * sizeof *at);
    int *whose = eti_graph_alloc(g, (size_t)all->n * sizeof *whose), n = 0;
    if (!in || !at || !whose)
        return;
    for (int i = first; i < all->n; i++)
        if (is_matrix(all->slot[i]) && same_shape(all->slot[i], like)) {
            in[n] = part_of(g, d, offset[i], like);
            at[n] = n * like->count;
            whose[n++] = i;
        }
    struct et_tensor *x =
        n == 1 ? in[0] : et_pack(g, in, at, n, n * like->count, ET_F32);
    x = et_reshape(g, x, 3, (const int64_t[]){n, rows, cols});
    x = orthogonal(g, x, rows > cols, o->ns_steps);
    part[first] = x; /* one alone is computed where it will lie */
    if (n == 1)
        return;
    x = et_reshape(g, x, 1, (const int64_t[]){n * like->count});
    for (int i = 0; i < n; i++)
        part[whose[i]] = part_of(g, x, at[i], like);
}

/* X of every matrix in its place, f32 rows, zero elsewhere; D: directions, f32 rows. */
static struct et_tensor *
iterate(struct et_graph *g, const struct et_update *u, struct et_tensor *d)
{
    static const int64_t one[] = {1};
    static const double least = 1e-7;
    const struct et_param_rows *all = u->rows;
    const int64_t n = all->n, total = all->count * ET_PARAM_ALIGN;
    struct et_tensor **part = eti_graph_alloc(g, (size_t)n * sizeof(*part));
    int64_t *offset = eti_graph_alloc(g, (size_t)n * sizeof *offset);
    if (!part || !offset)
        return NULL;
    struct et_tensor *norm =
        et_maximum(g, eti_param_norms(g, u, d), et_fill(g, ET_F32, 1, one, least));
    d = et_reshape(g, et_div(g, d, eti_per_row(g, u, norm)), 1, &total);
    for (int i = 0; i < n; i++) {
        part[i] = NULL;
        offset[i] = all->slot[i]->offset - all->slot[0]->offset;
    }
    for (int i = 0; i < n; i++)
        if (is_matrix(all->slot[i]) && !part[i])
            iterate_shape(g, u, d, i, part, offset);
    return eti_as_rows(g, u, et_pack(g, part, offset, (int)n, total, ET_F32));
}

static double
scale_of(enum adjust adjust, double out, double in)
{
    switch (adjust) {
    case MATCH_RMS_ADAMW:
        return 0.2 * sqrt(fmax(out, in));
    case SPECTRAL_UNCLAMPED:
        return sqrt(out / in);
    case ORIGINAL:
        break;
    }
    return sqrt(fmax(1, out / in));
}

/* What the rate of a matrix is multiplied by; 0 for what is none. */
static double
number_of(const void *options, const struct et_param_slot *slot)
{
    const struct options *o = options;
    if (!is_matrix(slot))
        return 0;
    double rows = (double)rows_of(slot), cols = (double)slot->count / rows;
    bool turned = slot->role == ET_ROLE_MATRIX_IN_OUT;
    return turned ? scale_of(o->adjust_lr, cols, rows)
                  : scale_of(o->adjust_lr, rows, cols);
}

/* ---- the rules ---- */

/* AdamW on arrays of one shape: what is taken off p, and the moments. */
static struct et_tensor *
adamw_step(struct et_graph *g, const struct et_update *u, struct et_tensor *grad,
           struct et_tensor *const *moment, struct et_tensor **m, struct et_tensor **v)
{
    const struct options *o = u->options;
    *m = eti_average(g, moment[M], grad, o->betas.v[0]);
    *v = eti_average(g, moment[V], et_square(g, grad), o->betas.v[1]);
    struct et_tensor *root = et_mul(g, et_sqrt(g, *v), u->hyper[V_ROOT]);
    struct et_tensor *step =
        et_div(g, et_mul(g, *m, u->hyper[M_SCALE]), et_add_scalar(g, root, o->eps));
    return et_mul(g, step, u->hyper[ADAMW_LR]);
}

static void
update_others(struct et_graph *g, struct et_update *u)
{
    struct et_tensor *step =
        adamw_step(g, u, u->grad, u->moment, &u->new_moment[M], &u->new_moment[V]);
    struct et_tensor *rated = et_mul(g, u->p, u->hyper[ADAMW_LR]);
    u->new_p = et_sub(g, decayed(g, u, u->p, rated), step);
}

/* Rows of matrices, which have a number, take IF_MATRIX, others IF_OTHER; NULL: the run
 * has no others. */
static struct et_tensor *
either(struct et_graph *g, const struct et_update *u, struct et_tensor *if_matrix,
       struct et_tensor *if_other)
{
    return if_other ? et_where(g, u->rows->number, if_matrix, if_other) : if_matrix;
}

static void
update_rows(struct et_graph *g, struct et_update *u, bool others)
{
    const struct options *o = u->options;
    const struct et_param_rows *rows = u->rows;
    struct et_tensor *grad = eti_as_rows(g, u, u->grad), *p = rows->p;
    struct et_tensor *m = eti_average(g, rows->moment[M], grad, o->momentum);
    struct et_tensor *d = o->nesterov ? eti_average(g, m, grad, o->momentum) : m;
    struct et_tensor *rated = et_mul(g, p, u->hyper[LR]);
    struct et_tensor *other_m = NULL, *v = NULL, *step = NULL, *other_rated = NULL;
    if (others) {
        step = adamw_step(g, u, grad, rows->moment, &other_m, &v);
        other_rated = et_mul(g, p, u->hyper[ADAMW_LR]);
    }
    u->new_moment[V] = either(g, u, rows->moment[V], v);
    struct et_tensor *x = et_mul(g, iterate(g, u, d), rows->number);
    x = et_mul(g, x, u->hyper[LR]);
    u->new_moment[M] = either(g, u, m, other_m);
    u->new_p = et_sub(g, decayed(g, u, p, either(g, u, rated, other_rated)),
                      either(g, u, x, step));
}

static void
update(struct et_graph *g, struct et_update *u)
{
    int matrices = 0;
    for (int i = 0; i < u->rows->n; i++)
        matrices += is_matrix(u->rows->slot[i]);
    if (matrices > 0)
        update_rows(g, u, matrices < u->rows->n);
    else
        update_others(g, u);
}

static const struct et_option table[] = {
    ET_OPTIMIZER_LR(struct options, "0.02"),
    {
        .name = "momentum",
        .type = ET_OPT_FLOAT,
        .offset = offsetof(struct options, momentum),
        .def = "0.95",
        .min = 0,
        .max = 1,
        .flags = ET_OPT_MAX_OPEN,
        .help = "decay of the average of a matrix's gradients",
    },
    {
        .name = "nesterov",
        .type = ET_OPT_BOOL,
        .offset = offsetof(struct options, nesterov),
        .def = "true",
        .help = "look ahead by the momentum",
    },
    ET_OPTIMIZER_DECAY(struct options, "0.0"),
    {
        .name = "ns_steps",
        .type = ET_OPT_INT,
        .offset = offsetof(struct options, ns_steps),
        .def = "5",
        .min = 1,
        .max = 99,
        .help = "Newton-Schulz iterations",
    },
    {
        .name = "adjust_lr",
        .type = ET_OPT_ENUM,
        .offset = offsetof(struct options, adjust_lr),
        .def = "original",
        .choices = adjust_names,
        .help = "how a matrix's shape scales lr",
        .also = "adjust_lr_fn",
    },
    ETI_OPTIM_FLOAT(struct options, adamw_lr, "adamw_lr", "3e-4", 0,
                    "learning rate of all that is no matrix of a hidden layer"),
    ETI_OPTIM_BETAS(struct options, "[0.9, 0.95]"),
    ETI_OPTIM_EPS(struct options, "1e-10"),
    {.name = NULL},
};

const struct et_optimizer_class et_optimizer_muon = {
    .info =
        {
            .name = "muon",
            .class_name = "Muon",
            .summary = "orthogonal momentum for hidden layers, AdamW for the rest",
            .source = "Jordan et al. 2024, kellerjordan.github.io/posts/muon",
            .applies_to = "any",
            .options = table,
            .options_size = sizeof(struct options),
        },
    .moments = moments,
    .by_parameter = true,
    .check = check,
    .hyper = hyper,
    .number_of = number_of,
    .update = update,
};
