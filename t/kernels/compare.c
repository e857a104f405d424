/* SPDX-License-Identifier: Apache-2.0 */
/* compare.c: see compare.h. */
#include "t/kernels/judge.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/ref/ref.h"
#include "t/kernels/cases.h"
#include "t/kernels/guard.h"
#include "t/tap.h"

/* Of one result, relative to the size of its terms (sizes.c): 8 units in the last place
 * for vectorised functions and the operations around them, and 2 for the rounding of
 * each of LENGTH sums, whose errors add up like a random walk. */
#define ULP 0x1p-23
static double
tolerance(const struct trial *t)
{
    return (8 + 2 * sqrt((double)t->length)) * ULP;
}

/* Half a unit in the last place of a number just above a power of two: what storing a
 * result in DTYPE costs besides. Sums are those of f32 in any case. */
static double
rounding(enum et_dtype dtype)
{
    return dtype == ET_BF16 ? 0x1p-8 : dtype == ET_F16 ? 0x1p-11 : 0;
}

/* The same of numbers below the least that has all its digits, whatever they are made
 * of: half of f16's last place; of the wider formats, which a device may take for 0,
 * all of them. */
static double
least(enum et_dtype dtype)
{
    return dtype == ET_F16 ? 0x1p-25 : 0x1p-126;
}

static bool
is_named(const char *kernel, const char *prefix)
{
    return strncmp(kernel, prefix, strlen(prefix)) == 0;
}

/* Terms of a sum that were rounded to DTYPE, as cuDNN's attention does, which makes
 * them by one product of matrices for another, and a product whose next step is another
 * kernel (both are named so; no other kernel is excused): an error of a term is 0.4
 * roundings in the mean square, and errors add up like a random walk, to 0.4 roundings
 * of a result of usual size. Of 10^4 results the worst is off by 4 to 5 times that, 2
 * roundings, and by 6 in rows of three times the usual size (gradients of keys that
 * every query sees). For single elements alone: the mean square of all, 0.57 roundings
 * with that of the result, stays within one. */
static double
terms_rounding(const struct trial *t, enum et_dtype dtype, const char *kernel)
{
    bool rounds = is_named(kernel, "cudnn:") || is_named(kernel, "split:");
    return rounds && t->narrow_terms ? 6 * rounding(dtype) : 0;
}

/* What a library's kernel rounds besides: cuBLASLt and cuDNN store a sum in the
 * result's dtype before they add a bias, apply an epilogue or put parts of the sum
 * together, and round what comes of it again. Seen on an H200 (cuBLASLt 13.0, cuDNN
 * 9.19), where no result of 9,000 was off by two roundings. For single elements alone:
 * the mean square of all stays within one. */
static double
library_rounding(enum et_dtype dtype, const char *kernel)
{
    return is_named(kernel, "cuBLASLt:") || is_named(kernel, "eng") ? rounding(dtype)
                                                                    : 0;
}

/* Where each term was rounded twice, as a product and by what follows it, the mean
 * square is 0.7 roundings; of as few results as 17 it may come to one. */
static double
mean_rounding(const struct trial *t, enum et_dtype dtype, const char *kernel)
{
    return t->narrow_terms && is_named(kernel, "split:") ? 0.5 * rounding(dtype) : 0;
}

/* A part of the result that was rounded to DTYPE before the last sum, as a kernel by
 * itself would store it: in the mean square one rounding more. Of 10^4 results one may
 * be 4 times the usual size before the sum, and of the usual size behind it. */
static double
part_rounding(const struct trial *t, enum et_dtype dtype)
{
    return t->narrow_part ? rounding(dtype) : 0;
}
enum { LARGEST_PART = 4 };

enum { CASE_NAME = 224 };
#define POISON_ORACLE 0x7f /* another, so that what neither wrote differs */
enum { ALIGN = 64 };       /* of a workspace, in bytes */

/* ---- running ---- */

static struct et_call
call_of(enum et_op_id op, const struct trial *t, struct operand *const *all,
        struct et_desc *desc)
{
    for (int i = 0; i < t->n_in + t->n_out; i++)
        desc[i] = all[i] ? all[i]->d : (struct et_desc){.dtype = ET_NONE};
    return (struct et_call){
        .op = op,
        .n_in = t->n_in,
        .n_out = t->n_out,
        .attr = t->attr,
        .attr_size = t->attr_size,
        .in = desc,
        .out = desc + t->n_in,
    };
}

/* One block of device memory per operand; its bytes on the host stay the master. Where
 * the device works in the host's memory the blocks, and the workspace, are guarded, and
 * end where the operand's last element does. */
struct run {
    struct block {
        void *p;
        size_t bytes;
        struct guard guard;
    } block[MAX_OPERANDS], workspace;
    void *ptr[MAX_OPERANDS];
    bool beside; /* something was written beside a block */
    char why[512], what[128];
};

/* Asked once while the device stays the same: the CPU reads a file to answer. */
static bool
is_guarded(const struct et_device_table *table, struct et_device_handle *h)
{
    static const struct et_device_table *asked[2];
    static bool answer[2];
    int i = table == etk_ref_device();
    if (asked[i] != table) {
        struct et_device_info info;
        table->info(h, &info);
        asked[i] = table;
        answer[i] = info.host_memory;
    }
    return answer[i];
}

static et_status
allocate(const struct et_device_table *table, struct et_device_handle *h, size_t bytes,
         struct block *b)
{
    b->bytes = bytes;
    if (!is_guarded(table, h))
        return table->alloc(h, bytes, &b->p);
    guard_new(&b->guard, bytes, POISON);
    b->p = b->guard.at;
    return ET_OK;
}

static void
release(const struct et_device_table *table, struct et_device_handle *h,
        struct block *b, struct run *r)
{
    if (b->guard.map)
        r->beside |= !guard_free(&b->guard, POISON);
    else if (b->p)
        table->free(h, b->p, b->bytes);
    b->p = NULL;
}

/* Bytes from the beginning of the block to the end of O's last element. */
static size_t
reach_of(const struct operand *o)
{
    int64_t last = o->base;
    if (et_desc_count(&o->d) == 0)
        return 0;
    for (int i = 0; i < o->d.ndim; i++)
        last += (o->d.shape[i] - 1) * o->d.stride[i];
    return (size_t)(last + 1) * et_dtype_size(o->d.dtype);
}

static et_status
upload(const struct et_device_table *table, struct et_device_handle *h,
       const struct trial *t, struct operand *const *all, struct run *r)
{
    for (int i = 0; i < t->n_in + t->n_out; i++) {
        if (!all[i])
            continue;
        if (i >= t->n_in && i - t->n_in < t->in_place) {
            r->ptr[i] = r->ptr[i - t->n_in];
            continue;
        }
        size_t size = et_dtype_size(all[i]->d.dtype);
        size_t bytes =
            is_guarded(table, h) ? reach_of(all[i]) : (size_t)all[i]->extent * size;
        struct block *b = &r->block[i];
        ET_TRY(allocate(table, h, bytes, b));
        ET_TRY(table->copy(h, b->p, all[i]->block, bytes, NULL));
        r->ptr[i] = (char *)b->p + (bytes ? (size_t)all[i]->base * size : 0);
    }
    return ET_OK;
}

static et_status
execute(const struct et_device_table *table, struct et_device_handle *h,
        const struct et_call *call, struct run *r)
{
    struct et_kernel *k;
    struct block *w = &r->workspace;
    size_t workspace;
    ET_TRY(table->prepare(h, call, &k, &workspace, r->why, sizeof r->why));
    snprintf(r->what, sizeof r->what, "%s", table->describe(k));
    workspace = (workspace + ALIGN - 1) / ALIGN * ALIGN;
    et_status status = workspace ? allocate(table, h, workspace, w) : ET_OK;
    if (status == ET_OK && workspace)
        status = table->fill(h, w->p, POISON, workspace, NULL);
    if (status == ET_OK)
        status = table->run(k, r->ptr, w->p, NULL);
    if (status == ET_OK && table->sync)
        status = table->sync(h, NULL);
    release(table, h, w, r);
    table->release(k);
    return status;
}

/* Runs OP on ALL (operands, then results) and brings the results back. */
static et_status
run(const struct et_device_table *table, struct et_device_handle *h, enum et_op_id op,
    const struct trial *t, struct operand *const *all, struct run *r)
{
    struct et_desc desc[MAX_OPERANDS];
    struct et_call call = call_of(op, t, all, desc);
    memset(r, 0, sizeof *r);
    et_status status = upload(table, h, t, all, r);
    if (status == ET_OK)
        status = execute(table, h, &call, r);
    for (int i = t->n_in; i < t->n_in + t->n_out && status == ET_OK; i++)
        if (all[i]) {
            bool moved = i - t->n_in < t->in_place;
            const struct block *b = &r->block[moved ? i - t->n_in : i];
            status = table->copy(h, all[i]->block, b->p, b->bytes, NULL);
        }
    if (status == ET_OK && table->sync)
        status = table->sync(h, NULL);
    for (int i = 0; i < t->n_in + t->n_out; i++)
        release(table, h, &r->block[i], r);
    return status;
}

static void
gather_operands(const struct trial *t, struct operand **all)
{
    memcpy(all, t->in, (size_t)t->n_in * sizeof *all);
    memcpy(all + t->n_in, t->out, (size_t)t->n_out * sizeof *all);
}

void
run_reference(struct bench *b, enum et_op_id op, const struct trial *t,
              struct operand *const *all)
{
    struct trial plain = *t;
    struct run r;
    plain.in_place = 0;
    if (run(etk_ref_device(), b->reference, op, &plain, all, &r) != ET_OK)
        bail("the reference refuses %s: %s", op_name(op), r.why);
    if (r.beside)
        bail("the reference writes beside the operands of %s", op_name(op));
}

static void
fill_operands(const struct trial *t, enum et_op_id op, const char *name)
{
    for (int i = 0; i < t->n_in; i++)
        fill_operand(t->in[i], op, name, i);
}

void
compute(struct bench *b, enum et_op_id op, const struct trial *t, const char *fmt, ...)
{
    struct operand *all[MAX_OPERANDS];
    char name[CASE_NAME];
    va_list args;
    va_start(args, fmt);
    vsnprintf(name, sizeof name, fmt, args);
    va_end(args);
    fill_operands(t, op, name);
    gather_operands(t, all);
    run_reference(b, op, t, all);
}

/* X with f64 in place of f32 and of what took its place, the same numbers in the same
 * places. */
static struct operand *
widened(struct bench *b, const struct operand *x)
{
    struct operand *w = need(calloc(1, sizeof *w));
    *w = *x;
    if (x->d.dtype == ET_F32 || (b->narrow && x->d.dtype == b->narrow))
        w->d.dtype = ET_F64;
    size_t size = et_dtype_size(w->d.dtype);
    w->block = need(malloc((size_t)w->extent * size));
    struct etk_array from = {.d = x->d, .p = x->block}, to = {.d = w->d, .p = w->block};
    for (int64_t i = 0; i < w->extent; i++)
        etk_move(&to, i, &from, i);
    w->next = b->operands;
    b->operands = w;
    return w;
}

/* ---- judging ---- */

struct verdict {
    double square, scale; /* sums of squares: of the error, of the sizes */
    double worst, got, want, size;
    int64_t at, count;
    bool spilled;
};

static bool
is_excused(double got, double want, enum lenience lenience)
{
    return (lenience == MAY_SPREAD && isnan(got)) ||
           (lenience != AS_IT_IS && !isfinite(got) && !isfinite(want));
}

/* 0 is right, infinity is wrong, else the distance. */
static double
distance(double got, double want, const struct trial *t)
{
    if (t->signs && got == 0 && want == 0 && signbit(got) != signbit(want))
        return INFINITY;
    if (got == want || (isnan(got) && isnan(want)) ||
        is_excused(got, want, t->lenience))
        return 0;
    double d = fabs(got - want);
    return isnan(d) ? INFINITY : d;
}

/* Bytes between the elements must be as they were. */
static bool
spilled(const struct operand *y)
{
    size_t size = et_dtype_size(y->d.dtype);
    char *own = need(calloc(1, (size_t)y->extent));
    bool changed = false;
    for (struct etk_pos i = etk_begin(&y->d); !i.end; etk_next(&y->d, &i))
        own[y->base + etk_offset(&y->d, i.ix)] = 1;
    for (size_t i = 0; i < (size_t)y->extent * size; i++)
        changed |= !own[i / size] && (unsigned char)y->block[i] != POISON;
    free(own);
    return changed;
}

/* How far one element may be off: LIMIT of the size of its terms, and what the format
 * cannot hold. */
static double
room(double limit, double size, enum et_dtype dtype)
{
    return limit * size + least(dtype);
}

/* Is infinity what DTYPE makes of WANT, or of a number so close that it may be GOT? */
static bool
overflows(double got, double want, double allowed, enum et_dtype dtype)
{
    return isinf(got) && isfinite(want) &&
           etk_round(dtype, want + copysign(allowed, want)) == got;
}

/* Judges a result of T. The worst of the elements is the one that is off by the largest
 * part of its room; of an exact result (SIZES is NULL) the first that is off. */
static struct verdict
judge(const struct trial *t, const struct operand *y, const struct operand *wanted,
      const struct operand *sizes, double limit)
{
    struct verdict v = {.worst = -1};
    struct etk_array got = array_of(y), want = array_of(wanted), size = {0};
    if (sizes)
        size = array_of(sizes);
    for (struct etk_pos i = etk_begin(&y->d); !i.end; etk_next(&y->d, &i)) {
        int64_t at = etk_offset(&wanted->d, i.ix);
        double a = etk_get(&got, etk_offset(&y->d, i.ix)), w = etk_get(&want, at);
        if (!sizes)
            w = etk_round(y->d.dtype, w);
        double s = sizes ? etk_get(&size, at) : 0, d = distance(a, w, t);
        double allowed = sizes ? room(limit, s, y->d.dtype) : 0;
        if (sizes && overflows(a, w, allowed, y->d.dtype))
            continue;
        double off = d == 0 ? 0 : sizes ? d / allowed : INFINITY;
        v.square += d * d;
        v.scale += s * s;
        v.count++;
        if (off > v.worst) {
            v.worst = off;
            v.at = i.n;
            v.got = a;
            v.want = w;
            v.size = s;
        }
    }
    return v;
}

/* Judges result K, whose elements have terms of SIZES; says what is wrong with it. */
static bool
good(const struct bench *b, const struct trial *t, int k, const struct operand *wanted,
     const struct operand *sizes, const struct run *r)
{
    const struct operand *y = t->out[k];
    enum et_dtype dtype = y->d.dtype;
    double part = part_rounding(t, dtype);
    double limit = tolerance(t) + rounding(dtype) + part;
    double most = limit + terms_rounding(t, dtype, r->what) +
                  library_rounding(dtype, r->what) + (LARGEST_PART - 1) * part;
    struct verdict v = judge(t, y, wanted, sizes, most);
    double mean = room(limit + mean_rounding(t, dtype, r->what),
                       sqrt(v.scale / (double)(v.count ? v.count : 1)), dtype);
    double rms = sqrt(v.square / (double)(v.count ? v.count : 1));
    bool spill = r->beside || (!t->in_place && spilled(y));
    if (v.worst <= 1 && (v.square == 0 || rms <= mean) && !spill)
        return true;
    if (b->tally)
        return false;
    char text[96];
    diag("result %d %s by %s: root of the mean square error %.3g of %.3g allowed, worst"
         " element %lld of %lld: got %.9g, wanted %.9g, made of terms of %.3g: %.3g "
         "times"
         " what is allowed%s",
         k, et_desc_text(&y->d, text, sizeof text), r->what, rms, mean, (long long)v.at,
         (long long)v.count, v.got, v.want, v.size, v.worst,
         spill ? "; wrote beside the elements" : "");
    return false;
}

void
report(const struct bench *b, bool pass, const char *name, const char *more)
{
    if (b->tally) {
        b->tally->cases++;
        b->tally->failed += !pass;
        return;
    }
    ok(pass, "%s%s%s%s%s%s", op_name(b->op), b->narrow ? " in " : "",
       b->narrow ? et_dtype_name(b->narrow) : "", *name ? ": " : "", name, more);
}

/* ---- the same once more ---- */

/* A case of at most so many results runs again, with other arrays for them. */
#define FEW_RESULTS 3000

static bool
is_asked_again(const struct bench *b, const struct trial *t)
{
    int64_t elements = 0;
    for (int k = 0; k < t->n_out; k++)
        elements += t->out[k] ? et_desc_count(&t->out[k]->d) : 0;
    if (b->device == etk_ref_device()) /* which computes all or nothing */
        return false;
    return !b->once && is_guarded(b->device, b->handle) && !t->in_place &&
           elements > 0 && elements <= FEW_RESULTS;
}

/* Every second element of an array, from its second on. */
static struct operand *
in_gaps(const struct operand *y)
{
    struct operand *g = need(malloc(sizeof *g));
    *g = *y;
    g->next = NULL;
    g->base = 2 * y->base + 1;
    g->extent = 2 * y->extent + 1;
    for (int i = 0; i < g->d.ndim; i++)
        g->d.stride[i] *= 2;
    size_t bytes = (size_t)g->extent * et_dtype_size(g->d.dtype);
    g->block = need(malloc(bytes));
    memset(g->block, POISON, bytes);
    return g;
}

/* All results of T but LEFT_OUT (-1: all), in gaps. The device either says that it
 * does not write so, or writes the same numbers, and nothing between them. */
static bool
good_again(struct bench *b, const struct trial *t, int left_out,
           struct operand *const *wide, struct operand *const *size)
{
    struct operand *all[MAX_OPERANDS];
    struct trial other = *t;
    struct run r;
    for (int k = 0; k < t->n_out; k++)
        other.out[k] = t->out[k] && k != left_out ? in_gaps(t->out[k]) : NULL;
    gather_operands(&other, all);
    et_status status = run(b->device, b->handle, b->op, &other, all, &r);
    bool pass = status == ET_OK || (status == ET_ENOTSUP && r.why[0]);
    for (int k = 0; k < t->n_out; k++) {
        if (pass && status == ET_OK && other.out[k])
            pass = good(b, &other, k, wide[t->n_in + k], size[k], &r);
        if (other.out[k])
            operand_free(other.out[k]);
    }
    if (!pass)
        diag("in gaps, without result %d: %s", left_out, r.why);
    return pass;
}

static bool
is_good_again(struct bench *b, const struct trial *t, struct operand *const *wide,
              struct operand *const *size)
{
    int wanted = 0;
    for (int k = 0; k < t->n_out; k++)
        wanted += t->out[k] != NULL;
    bool pass = good_again(b, t, -1, wide, size);
    /* What a fused product is before its last step is kept beside it, never alone. */
    const int first = b->op == ET_OP_matmul_fused;
    for (int k = first; k < t->n_out && wanted > 1; k++)
        pass = pass && (!t->out[k] || good_again(b, t, k, wide, size));
    return pass;
}

void
check(struct bench *b, const struct trial *t, const char *fmt, ...)
{
    struct operand *all[MAX_OPERANDS], *wide[MAX_OPERANDS], *size[MAX_OPERANDS];
    struct run r;
    static char where[CASE_NAME + 32];
    char name[CASE_NAME];
    va_list args;
    va_start(args, fmt);
    vsnprintf(name, sizeof name, fmt, args);
    va_end(args);
    fill_operands(t, b->op, name);
    snprintf(where, sizeof where, "%s: %s", op_name(b->op), name);
    guard_watch(where);

    gather_operands(t, all);
    for (int i = 0; i < t->n_in + t->n_out; i++)
        wide[i] = all[i] ? widened(b, all[i]) : NULL;
    for (int i = t->n_in; i < t->n_in + t->n_out; i++)
        if (wide[i])
            memset(wide[i]->block, POISON_ORACLE,
                   (size_t)wide[i]->extent * et_dtype_size(wide[i]->d.dtype));
    et_status status = run(b->device, b->handle, b->op, t, all, &r);
    if (status == ET_ENOTSUP && t->may_refuse) {
        report(b, r.why[0], name, ": refused with a sentence");
        return;
    }
    run_reference(b, b->op, t, wide);
    bool pass = status == ET_OK;
    if (!pass)
        diag("%s: %s", et_status_name(status), r.why);
    sizes_of(b, t, wide, size);
    for (int k = 0; k < t->n_out; k++)
        if (pass && t->out[k])
            pass = good(b, t, k, wide[t->n_in + k], size[k], &r);
    if (pass && is_asked_again(b, t))
        pass = is_good_again(b, t, wide, size);
    for (int k = 0; k < t->n_out; k++)
        if (size[k])
            operand_free(size[k]);
    report(b, pass, name, "");
}
