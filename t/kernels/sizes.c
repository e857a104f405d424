/* SPDX-License-Identifier: Apache-2.0 */
/* sizes.c: how large the terms are of which a result is made.
 *
 * A kernel in f32 errs by some units in the last place of the numbers that it handles,
 * not of the one that is left of them: of 1000 - 999.9 nothing can know the seventh
 * digit. So an error is measured against the terms of its own element: the root of the
 * sum of their squares, which is the size that a sum of terms of either sign has (a
 * random walk), or the result, where terms of one sign make that larger. Errors of the
 * terms and of the partial sums add up in the same way. Where nothing cancels the two
 * agree, and neither depends on what other elements happen to be.
 *
 * The terms are found in one of three ways, a row of the table for each op. */
#include "t/kernels/judge.h"

#include <math.h>
#include <string.h>

#include "etude/rng.h"
#include "kernels/ref/ref.h"

enum manner {
    MOVED,   /* each number that goes in is moved by one part in 1024, up or down */
    SQUARES, /* the reference on the squares of its operands */
    ALONE,   /* nothing cancels: the result itself */
};

/* MOVED: the mean square by which the result moves is the sum of the squares of its
 * derivatives times what they belong to, whatever the formula. For a sum of products
 * that is the sum of the squares of the terms, once for each factor; through e^x it is
 * |x| times e^x, through x - mean the size of both. What 12 drawings estimate is less
 * than a third of that in one of 10^6 elements, which tolerances have to spare; where
 * an element depends on one of each operand, these are moved one by one, and nothing is
 * estimated. Steps of 2^-10 are far above the rounding of f64 and so small that
 * formulas are straight (of the next term less than one part in 100 comes in). */
enum { DRAWINGS = 12 };
#define STEP 0x1p-10
/* A scale is rounded when it is stored and when a position is computed with it; no sum
 * multiplies that. So it moves by a quarter of what the other numbers do, 3 units
 * of 12. */
#define SCALE_STEP (STEP / 4)

/* Terms of which MOVED sees nothing, because they are no operands: AT_LEAST, for the
 * first result or all. The logarithm of a sum of exponentials is off by the relative
 * error of the sum, by units of 1. In x/2 (1 + tanh u) and the like, 1 and the tanh
 * cancel where x is below 0: HALVES, the terms are half of operand 0; behind a product,
 * whose elements are larger than 1, at least 1. And what must not be moved, since a
 * kernel reads it as it is, and would be allowed the error of a sum: STILL, a bit for
 * each operand. */
static const struct row {
    enum manner manner;
    double at_least;
    bool halves;
    unsigned still;
} rows[ET_OP_COUNT] = {
    /* Sums of operands or of products of two, with weights of 1. */
    [ET_OP_sum] = {.manner = SQUARES},
    [ET_OP_cumsum] = {.manner = SQUARES},
    [ET_OP_matmul] = {.manner = SQUARES},
    [ET_OP_conv2d] = {.manner = SQUARES},
    [ET_OP_conv2d_grad_input] = {.manner = SQUARES},
    [ET_OP_conv2d_grad_weight] = {.manner = SQUARES},
    [ET_OP_max_pool2d_grad] = {.manner = SQUARES},
    [ET_OP_take_grad] = {.manner = SQUARES},
    [ET_OP_scatter_add] = {.manner = SQUARES},
    /* Terms of one sign; products; functions of one number that is exact. */
    [ET_OP_sum_squares] = {.manner = ALONE},
    [ET_OP_segment_sum_squares] = {.manner = ALONE},
    [ET_OP_dropout] = {.manner = ALONE},
    [ET_OP_random] = {.manner = ALONE},
    [ET_OP_mul] = {.manner = ALONE},
    [ET_OP_div] = {.manner = ALONE},
    [ET_OP_square] = {.manner = ALONE},
    [ET_OP_sqrt] = {.manner = ALONE},
    [ET_OP_rsqrt] = {.manner = ALONE},
    [ET_OP_reciprocal] = {.manner = ALONE},
    [ET_OP_mul_scalar] = {.manner = ALONE},
    [ET_OP_exp] = {.manner = ALONE},
    [ET_OP_sin] = {.manner = ALONE},
    [ET_OP_cos] = {.manner = ALONE},
    [ET_OP_pow_scalar] = {.manner = ALONE},
    [ET_OP_sigmoid] = {.manner = ALONE},
    [ET_OP_softplus] = {.manner = ALONE},
    /* Every other op is MOVED. */
    [ET_OP_gelu] = {.halves = true},
    [ET_OP_gelu_tanh] = {.halves = true},
    [ET_OP_gelu_grad] = {.halves = true},
    [ET_OP_gelu_tanh_grad] = {.halves = true},
    [ET_OP_matmul_fused] = {.at_least = 1},
    [ET_OP_log_softmax] = {.at_least = 1},
    [ET_OP_cross_entropy] = {.at_least = 1},
    [ET_OP_cross_entropy_grad] = {.still = 1 << 3}, /* lse */
    [ET_OP_sdpa_grad] = {.still = 1 << 5},          /* lse */
};

/* Attributes that are numbers of the formula, or change what the reference rounds. */
union attr {
    struct et_resize_attr resize;
    struct et_norm_attr norm;
};

bool
is_exact(const struct trial *t, int k)
{
    return t->length == 0 || !et_dtype_is_float(t->out[k]->d.dtype);
}

static bool
has_numbers(const struct operand *o)
{
    return o && et_dtype_is_float(o->d.dtype);
}

/* The least size of result K of OP. Of attention's two results only the second is a
 * logarithm; of a product's two the second is what the product was before what
 * follows. */
static double
at_least(enum et_op_id op, int k)
{
    if (op == ET_OP_sdpa)
        return k == 1;
    return op == ET_OP_matmul_fused && k == 1 ? 0 : rows[op].at_least;
}

/* ---- squares ---- */

/* Element I of O's block. Nearly all are f64, and there are many. */
static double
number(const struct operand *o, int64_t i)
{
    struct etk_array a = {.d = o->d, .p = o->block};
    return o->d.dtype == ET_F64 ? ((const double *)(const void *)o->block)[i]
                                : etk_get(&a, i);
}

static void
set_number(struct operand *o, int64_t i, double value)
{
    struct etk_array a = {.d = o->d, .p = o->block};
    if (o->d.dtype == ET_F64)
        ((double *)(void *)o->block)[i] = value;
    else
        etk_set(&a, i, value);
}

static void
map(struct operand *o, double (*f)(double))
{
    for (int64_t i = 0; i < o->extent; i++)
        set_number(o, i, f(number(o, i)));
}

static double
square(double x)
{
    return x * x;
}

/* Copies of WIDE: of its results, and of its operands where those are numbers. */
static void
copy_all(const struct trial *t, struct operand *const *wide, struct operand **all)
{
    for (int i = 0; i < t->n_in + t->n_out; i++)
        all[i] = i >= t->n_in || has_numbers(wide[i])
                     ? (wide[i] ? operand_copy(wide[i]) : NULL)
                     : wide[i];
}

static void
free_copies(const struct trial *t, struct operand *const *wide, struct operand **all)
{
    for (int i = 0; i < t->n_in + t->n_out; i++)
        if (all[i] && all[i] != wide[i])
            operand_free(all[i]);
}

static void
by_squares(struct bench *b, const struct trial *t, struct operand *const *wide,
           struct operand **size)
{
    struct operand *all[MAX_OPERANDS];
    copy_all(t, wide, all);
    for (int i = 0; i < t->n_in; i++)
        if (has_numbers(all[i]))
            map(all[i], square);
    run_reference(b, b->op, t, all);
    for (int k = 0; k < t->n_out; k++)
        if (size[k]) {
            struct operand *zeros = size[k];
            size[k] = all[t->n_in + k];
            map(size[k], sqrt);
            all[t->n_in + k] = zeros;
        }
    free_copies(t, wide, all);
}

/* ---- moved ---- */

/* STEP up or down. */
static double
factor(double step, struct et_rng *rng)
{
    return et_rng_u32(rng) & 1 ? 1 + step : 1 - step;
}

/* TO is FROM with each number moved by STEP: where one number stands for many elements
 * it moves for all of them. */
static void
move(struct operand *to, const struct operand *from, double step, struct et_rng *rng)
{
    uint32_t ups = 0;
    for (int64_t i = 0; i < from->extent; i++, ups >>= 1) {
        if (i % 32 == 0)
            ups = et_rng_u32(rng);
        set_number(to, i, number(from, i) * (ups & 1 ? 1 + step : 1 - step));
    }
}

/* Adds the squares of how far MOVED is from WANT, in steps. What lies between the
 * elements is the same in both. */
static void
add_squares(struct operand *sum, const struct operand *moved,
            const struct operand *want)
{
    for (int64_t i = 0; i < sum->extent; i++) {
        double d = (number(moved, i) - number(want, i)) / STEP;
        if (isfinite(d))
            set_number(sum, i, number(sum, i) + d * d);
    }
}

/* SIZE no less than what is WANTed, than LEAST, and than half of HALVES (or NULL);
 * where terms are no numbers, those. */
static void
enlarge(struct operand *size, const struct operand *wanted, double least,
        const struct operand *halves)
{
    struct etk_array s = array_of(size), w = array_of(wanted), x = {0};
    if (halves)
        x = array_of(halves);
    for (struct etk_pos i = etk_begin(&size->d); !i.end; etk_next(&size->d, &i)) {
        int64_t at = etk_offset(&size->d, i.ix);
        double terms = etk_get(&s, at), v = fabs(etk_get(&w, at));
        double known = fmax(isfinite(terms) ? terms : 0, isfinite(v) ? v : 0);
        if (halves)
            known = fmax(known, 0.5 * fabs(etk_get(&x, etk_offset_broadcast(
                                                           &x.d, size->d.ndim, i.ix))));
        etk_set(&s, at, fmax(known, least));
    }
}

static double
root_of_mean(double sum)
{
    return sqrt(sum / DRAWINGS);
}

/* T on operands that may move, with ATTR for its attributes where those matter. */
static struct trial
movable(enum et_op_id op, const struct trial *t, union attr *attr)
{
    struct trial m = *t;
    bool resizes = op == ET_OP_resize2d || op == ET_OP_resize2d_grad;
    if (resizes || op == ET_OP_batch_norm) {
        memcpy(attr, t->attr, t->attr_size);
        m.attr = attr;
    }
    /* What rounds a part of the result to 16 bits would jump. */
    if (op == ET_OP_batch_norm)
        attr->norm.stored = ET_F64;
    return m;
}

/* Where between two pixels a pixel comes from is as uncertain as the scale. */
static void
move_attr(enum et_op_id op, const struct trial *t, union attr *attr, struct et_rng *rng)
{
    const struct et_resize_attr *o = t->attr;
    if (op != ET_OP_resize2d && op != ET_OP_resize2d_grad)
        return;
    if (o->mode == ET_RESIZE_BILINEAR)
        for (int k = 0; k < 2; k++)
            attr->resize.scale[k] = o->scale[k] * factor(SCALE_STEP, rng);
}

static void
by_moving(struct bench *b, const struct trial *t, struct operand *const *wide,
          struct operand **size)
{
    struct operand *moved[MAX_OPERANDS], *still[MAX_OPERANDS];
    struct et_rng rng = et_rng_at(draws_seed(), ET_RNG_DATA, UINT64_MAX);
    union attr attr;
    struct trial m = movable(b->op, t, &attr);
    copy_all(t, wide, moved);
    copy_all(t, wide, still);
    bool one_by_one = etk_scalar(b->op) || b->op == ET_OP_fused;
    run_reference(b, b->op, &m, still);
    for (int time = 0; time < (one_by_one ? t->n_in : DRAWINGS); time++) {
        for (int i = 0; i < t->n_in; i++)
            if (has_numbers(moved[i]) && !(rows[b->op].still >> i & 1))
                move(moved[i], wide[i], one_by_one && i != time ? 0 : STEP, &rng);
        move_attr(b->op, t, &attr, &rng);
        run_reference(b, b->op, &m, moved);
        for (int k = 0; k < t->n_out; k++)
            if (size[k])
                add_squares(size[k], moved[t->n_in + k], still[t->n_in + k]);
    }
    for (int k = 0; k < t->n_out; k++)
        if (size[k])
            map(size[k], one_by_one ? sqrt : root_of_mean);
    free_copies(t, wide, moved);
    free_copies(t, wide, still);
}

/* ---- both ---- */

static double
nothing(double x)
{
    (void)x;
    return 0;
}

void
sizes_of(struct bench *b, const struct trial *t, struct operand *const *wide,
         struct operand **size)
{
    bool any = false;
    for (int k = 0; k < t->n_out; k++) {
        bool wanted = t->out[k] && !is_exact(t, k);
        size[k] = wanted ? operand_copy(wide[t->n_in + k]) : NULL;
        if (wanted)
            map(size[k], nothing);
        any |= wanted;
    }
    if (any && rows[b->op].manner == SQUARES)
        by_squares(b, t, wide, size);
    else if (any && rows[b->op].manner == MOVED)
        by_moving(b, t, wide, size);
    for (int k = 0; k < t->n_out; k++)
        if (size[k])
            enlarge(size[k], wide[t->n_in + k], at_least(b->op, k),
                    rows[b->op].halves ? wide[0] : NULL);
}
