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
 * Differs: all in f32, where those iterate in bf16; the scale of a filter is that of
 * the matrix it is flattened to; a matrix has AdamW's second moment too, unused.
 * Invariant: a run is one parameter and its gap, which stays zero. */
#include "core/optim/optim.h"

#include <math.h>

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

/* p less what decay at RATE takes; nodes only where the group decays. */
static struct et_tensor *
decayed(struct et_graph *g, const struct et_update *u, struct et_tensor *rate)
{
    double decay = u->group->weight_decay;
    return decay != 0 ? et_sub(g, u->p, et_mul(g, u->p, et_mul_scalar(g, rate, decay)))
                      : u->p;
}

/* X [rows, cols] with singular values near 1: 4 rows^2 cols + 2 rows^3 flops a step,
 * for rows <= cols. */
static struct et_tensor *
orthogonal(struct et_graph *g, struct et_tensor *x, int64_t steps)
{
    static const double a = 3.4445, b = -4.7750, c = 2.0315, least = 1e-7;
    struct et_tensor *norm =
        et_maximum(g, et_norm2(g, x), et_fill(g, ET_F32, 0, NULL, least));
    x = et_div(g, x, norm);
    for (int64_t i = 0; i < steps; i++) {
        struct et_tensor *gram = et_matmul(g, x, x, false, true);
        struct et_tensor *square = et_matmul(g, gram, gram, false, false);
        struct et_tensor *p =
            et_add(g, et_mul_scalar(g, gram, b), et_mul_scalar(g, square, c));
        x = et_add(g, et_mul_scalar(g, x, a), et_matmul(g, p, x, false, false));
    }
    return x;
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

/* The rule of a matrix. Filters lie channels-last: the columns of their matrix in that
 * order, which the iteration does not mind. */
static void
update_matrix(struct et_graph *g, struct et_update *u)
{
    const struct options *o = u->options;
    const struct et_param_slot *slot = u->slot;
    int64_t rows = slot->desc.shape[0], cols = slot->count / rows;
    bool turned = slot->role == ET_ROLE_MATRIX_IN_OUT, tall = rows > cols;
    struct et_tensor *m = eti_average(g, u->moment[M], u->grad, o->momentum);
    struct et_tensor *d = o->nesterov ? eti_average(g, m, u->grad, o->momentum) : m;
    struct et_tensor *x = et_slice(g, d, 0, 0, slot->count, 1);
    x = et_reshape(g, x, 2, (const int64_t[]){rows, cols});
    x = orthogonal(g, tall ? et_transpose(g, x, 0, 1) : x, o->ns_steps);
    x = et_reshape(g, tall ? et_transpose(g, x, 0, 1) : x, 1, &slot->count);
    int64_t before = 0, gap = eti_param_span(slot) - slot->count;
    if (gap > 0)
        x = et_pad(g, x, &before, &gap, 0);
    double scale = turned ? scale_of(o->adjust_lr, (double)cols, (double)rows)
                          : scale_of(o->adjust_lr, (double)rows, (double)cols);
    struct et_tensor *rate = et_mul_scalar(g, u->hyper[LR], scale);
    u->new_moment[M] = m;
    u->new_p = et_sub(g, decayed(g, u, u->hyper[LR]), et_mul(g, x, rate));
}

static void
update_other(struct et_graph *g, struct et_update *u)
{
    const struct options *o = u->options;
    struct et_tensor *m = eti_average(g, u->moment[M], u->grad, o->betas.v[0]);
    struct et_tensor *v =
        eti_average(g, u->moment[V], et_square(g, u->grad), o->betas.v[1]);
    struct et_tensor *root = et_mul(g, et_sqrt(g, v), u->hyper[V_ROOT]);
    struct et_tensor *step =
        et_div(g, et_mul(g, m, u->hyper[M_SCALE]), et_add_scalar(g, root, o->eps));
    u->new_moment[M] = m;
    u->new_moment[V] = v;
    u->new_p = et_sub(g, decayed(g, u, u->hyper[ADAMW_LR]),
                      et_mul(g, step, u->hyper[ADAMW_LR]));
}

static void
update(struct et_graph *g, struct et_update *u)
{
    if (u->slot->role == ET_ROLE_OTHER || u->slot->desc.ndim < 2 || u->slot->count == 0)
        update_other(g, u);
    else
        update_matrix(g, u);
}

static const struct et_option table[] = {
    ETI_OPTIM_LR(struct options, "0.02"),
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
    ETI_OPTIM_DECAY(struct options, "0.0"),
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
    .per_parameter = true,
    .check = check,
    .hyper = hyper,
    .update = update,
};
