/* SPDX-License-Identifier: Apache-2.0 */
/* What the cases do not let through: kernels that are wrong in ways in which kernels
 * are.
 *
 * A mutant is the reference with one fault. Tolerances that know the size of the terms
 * are wide where terms cancel, and must still be too narrow for these. */
#include <stdlib.h>
#include <string.h>

#include "etude/device.h"
#include "kernels/ref/array.h"
#include "kernels/ref/ref.h"
#include "t/kernels/cases.h"
#include "t/tap.h"

enum fault {
    TERM_LEFT_OUT, /* the last element of the first operand is taken for 0 */
    SUMS_IN_BF16,  /* partial sums are kept in bf16 instead of f32 */
    FEW_DIGITS,    /* results are right to 12 bits */
};

static enum fault fault;

/* A kernel of the reference, and what it was prepared for. */
struct et_kernel {
    struct et_kernel *right;
    int n_in, n_out;
    struct et_desc d[32]; /* operands, then results */
};

static et_status
prepare(struct et_device_handle *h, const struct et_call *call, struct et_kernel **out,
        size_t *workspace, char *why, size_t why_size)
{
    struct et_kernel *k = calloc(1, sizeof *k);
    if (!k)
        return ET_ENOMEM;
    k->n_in = call->n_in;
    k->n_out = call->n_out;
    memcpy(k->d, call->in, (size_t)call->n_in * sizeof *k->d);
    memcpy(k->d + call->n_in, call->out, (size_t)call->n_out * sizeof *k->d);
    et_status status =
        etk_ref_device()->prepare(h, call, &k->right, workspace, why, why_size);
    if (status != ET_OK)
        free(k);
    else
        *out = k;
    return status;
}

static void
release(struct et_kernel *k)
{
    etk_ref_device()->release(k->right);
    free(k);
}

static const char *
describe(const struct et_kernel *k)
{
    return etk_ref_device()->describe(k->right);
}

static bool
is_number(const struct et_kernel *k, int i)
{
    return k->d[i].dtype != ET_NONE && et_dtype_is_float(k->d[i].dtype);
}

static struct etk_array
array_at(const struct et_kernel *k, int i, void *const *ptr)
{
    return (struct etk_array){.d = k->d[i], .p = ptr[i]};
}

/* Operand 0 without the last of its elements. */
static void
leave_out(const struct et_kernel *k, void *const *ptr)
{
    struct etk_array x = array_at(k, 0, ptr);
    int64_t count = et_desc_count(&x.d);
    if (count > 0)
        etk_set(&x, etk_offset_linear(&x.d, count - 1), 0);
}

/* The numbers of an array in row-major order, and back. */
static double *
numbers_of(const struct etk_array *a)
{
    double *v = calloc((size_t)et_desc_count(&a->d) + 1, sizeof *v);
    if (!v)
        bail("no memory");
    for (struct etk_pos i = etk_begin(&a->d); !i.end; etk_next(&a->d, &i))
        v[i.n] = etk_get(a, etk_offset(&a->d, i.ix));
    return v;
}

static void
put_numbers(const struct etk_array *a, const double *v)
{
    for (struct etk_pos i = etk_begin(&a->d); !i.end; etk_next(&a->d, &i))
        etk_set(a, etk_offset(&a->d, i.ix), v[i.n]);
}

/* Of an op that is linear in operand 0 and has one result: computed in parts, each with
 * every 61st number of operand 0, which are added up in bf16. */
enum { PARTS = 61 };
static et_status
add_parts(struct et_kernel *k, void *const *ptr, void *workspace,
          struct et_stream *stream)
{
    struct etk_array x = array_at(k, 0, ptr), y = array_at(k, k->n_in, ptr);
    double *all = numbers_of(&x), *sum = numbers_of(&y);
    int64_t n = et_desc_count(&y.d);
    memset(sum, 0, (size_t)n * sizeof *sum);
    for (int part = 0; part < PARTS; part++) {
        for (struct etk_pos i = etk_begin(&x.d); !i.end; etk_next(&x.d, &i))
            etk_set(&x, etk_offset(&x.d, i.ix), i.n % PARTS == part ? all[i.n] : 0);
        ET_TRY(etk_ref_device()->run(k->right, ptr, workspace, stream));
        for (struct etk_pos i = etk_begin(&y.d); !i.end; etk_next(&y.d, &i))
            sum[i.n] =
                etk_round(ET_BF16, sum[i.n] + etk_get(&y, etk_offset(&y.d, i.ix)));
    }
    put_numbers(&y, sum);
    free(all);
    free(sum);
    return ET_OK;
}

static void
cut_digits(const struct et_kernel *k, void *const *ptr)
{
    for (int i = k->n_in; i < k->n_in + k->n_out; i++) {
        if (!is_number(k, i))
            continue;
        struct etk_array y = array_at(k, i, ptr);
        double *v = numbers_of(&y);
        for (int64_t j = 0; j < et_desc_count(&y.d); j++)
            v[j] *= 1 + 0x1p-12;
        put_numbers(&y, v);
        free(v);
    }
}

static et_status
run(struct et_kernel *k, void *const *ptr, void *workspace, struct et_stream *stream)
{
    if (fault == SUMS_IN_BF16)
        return add_parts(k, ptr, workspace, stream);
    if (fault == TERM_LEFT_OUT)
        leave_out(k, ptr);
    ET_TRY(etk_ref_device()->run(k->right, ptr, workspace, stream));
    if (fault == FEW_DIGITS)
        cut_digits(k, ptr);
    return ET_OK;
}

/* Of 16 cases at least LEAST must tell. Those that cannot: of nothing; of an element
 * that is not read (a stride steps over it, an index or a mask leaves it out); of
 * results that are 0; of so few terms that bf16 holds their sum as well, as most
 * products have here. */
static const struct mutant {
    enum fault fault;
    enum et_dtype dtype;
    const char *op;
    int least;
} mutants[] = {
    {TERM_LEFT_OUT, ET_NONE, "sum", 15},
    {TERM_LEFT_OUT, ET_NONE, "matmul", 15},
    {TERM_LEFT_OUT, ET_NONE, "conv2d", 13},
    {TERM_LEFT_OUT, ET_NONE, "conv2d_grad_input", 15},
    {TERM_LEFT_OUT, ET_NONE, "conv2d_grad_weight", 14},
    {TERM_LEFT_OUT, ET_NONE, "take_grad", 10},
    {TERM_LEFT_OUT, ET_NONE, "resize2d", 8},
    {TERM_LEFT_OUT, ET_NONE, "softmax_grad", 13},
    {TERM_LEFT_OUT, ET_NONE, "sdpa_grad", 13},
    {SUMS_IN_BF16, ET_NONE, "sum", 15},
    {SUMS_IN_BF16, ET_NONE, "matmul", 15},
    {SUMS_IN_BF16, ET_NONE, "conv2d_grad_weight", 13},
    {SUMS_IN_BF16, ET_BF16, "sum", 8},
    {SUMS_IN_BF16, ET_BF16, "matmul", 5},
    {FEW_DIGITS, ET_NONE, "gelu_grad", 15},
    {FEW_DIGITS, ET_NONE, "tanh", 13},
    {FEW_DIGITS, ET_NONE, "sum", 15},
    {FEW_DIGITS, ET_NONE, "matmul", 15},
    {FEW_DIGITS, ET_NONE, "batch_norm_grad", 15},
    {FEW_DIGITS, ET_NONE, "group_norm", 15},
    {FEW_DIGITS, ET_NONE, "log_softmax", 13},
    {FEW_DIGITS, ET_NONE, "cross_entropy_grad", 14},
    {FEW_DIGITS, ET_NONE, "sdpa", 15},
};

int
main(void)
{
    static const char *const faults[] = {
        [TERM_LEFT_OUT] = "that leaves out a term",
        [SUMS_IN_BF16] = "that sums in bf16",
        [FEW_DIGITS] = "whose results are right to 12 bits",
    };
    struct et_device_table wrong = *etk_ref_device();
    struct et_device_handle *handle;
    char why[256] = "";
    wrong.prepare = prepare;
    wrong.release = release;
    wrong.describe = describe;
    wrong.run = run;
    if (wrong.open(0, 1, &handle, why, sizeof why) != ET_OK)
        bail("%s", why);
    for (size_t i = 0; i < sizeof mutants / sizeof mutants[0]; i++) {
        const struct mutant *m = &mutants[i];
        fault = m->fault;
        struct tally t = cases_tally(&wrong, handle, m->dtype, m->op);
        ok(t.failed * 16 >= t.cases * m->least && t.cases > 0,
           "%s%s%s: of %d cases %d refuse a kernel %s", m->op, m->dtype ? " in " : "",
           m->dtype ? et_dtype_name(m->dtype) : "", t.cases, t.failed, faults[fault]);
    }
    wrong.close(handle);
    return done();
}
