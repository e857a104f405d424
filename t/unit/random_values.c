/* SPDX-License-Identifier: Apache-2.0 */
/* random_values.c: see random_values.h. */
#include "t/unit/random_values.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct rg rg;

/* ---- random numbers: splitmix64 ---- */

static int
draw_from(uint64_t *from, int n)
{
    uint64_t z = *from += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (int)((z ^ (z >> 31)) % (uint64_t)n);
}

int
rg_draw(int n)
{
    return draw_from(&rg.state, n);
}

int
rg_draw_apart(int n)
{
    return draw_from(&rg.variant, n);
}

/* ---- values ---- */

int64_t
rg_count(int ndim, const int64_t *shape)
{
    int64_t n = 1;
    for (int i = 0; i < ndim; i++)
        n *= shape[i];
    return n;
}

/* How large whole numbers of DTYPE may become: f32 then has the result of an operation
 * on them before it is rounded. */
static double
most_in(enum et_dtype dtype)
{
    return dtype == ET_U8 ? 255 : dtype == ET_F16 ? 1 << 15 : 1 << 22;
}

/* V as DTYPE has it: to the nearest, of two to the even one. Whole numbers stay
 * whole. */
static double
rounded(double v, enum et_dtype dtype)
{
    const int bits = dtype == ET_BF16 ? 8 : dtype == ET_F16 ? 11 : 53;
    int exponent;
    const double part = frexp(v, &exponent);
    return ldexp(rint(ldexp(part, bits)), exponent - bits);
}

void
rg_list(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(rg.listing + rg.listed, sizeof rg.listing - rg.listed, fmt, args);
    va_end(args);
    rg.listed += rg.listed + (size_t)n < sizeof rg.listing ? (size_t)n : 0;
}

struct value *
rg_claim(enum et_dtype dtype, int ndim, const int64_t *shape, double bound)
{
    if (rg.n_values == VALUES || ndim > DIMS || rg_count(ndim, shape) > ROOM ||
        bound > most_in(dtype))
        return NULL;
    struct value *v = &rg.value[rg.n_values];
    *v = (struct value){.dtype = dtype, .ndim = ndim, .bound = rounded(bound, dtype)};
    for (int i = 0; i < ndim; i++)
        v->shape[i] = shape[i];
    v->n = rg_count(ndim, shape);
    return v;
}

int
rg_number_of(const struct value *v)
{
    return (int)(v - rg.value);
}

void
rg_add(struct value *v, struct et_tensor *t, const char *op, const struct value *a,
       const struct value *b, const char *fmt, ...)
{
    char more[128] = "";
    va_list args;
    va_start(args, fmt);
    vsnprintf(more, sizeof more, fmt, args);
    va_end(args);
    v->t = t;
    for (int64_t i = 0; i < v->n; i++)
        v->v[i] = rounded(v->v[i], v->dtype);
    v->of_leaf |= a && a->t == t && a->of_leaf; /* nothing was to be done */
    rg_list("  v%d %s[", rg.n_values, et_dtype_name(v->dtype));
    for (int i = 0; i < v->ndim; i++)
        rg_list("%s%d", i ? "," : "", (int)v->shape[i]);
    rg_list("] = %s", op);
    if (a)
        rg_list(" v%d", rg_number_of(a));
    if (b)
        rg_list(" v%d", rg_number_of(b));
    rg_list(" %s\n", more);
    rg.n_values++;
}

/* V, or if that is a leaf sometimes another of its shape, in each layout another. */
static struct value *
swap_leaf(struct value *v)
{
    struct value *w = &rg.value[rg_draw_apart(rg.n_leaves)];
    const bool is_alike =
        w->ndim == v->ndim && memcmp(w->shape, v->shape, sizeof v->shape) == 0;
    return rg_number_of(v) < rg.n_leaves && is_alike ? w : v;
}

struct value *
rg_pick(void)
{
    int a = rg_draw(rg.n_values), b = rg_draw(rg.n_values);
    return swap_leaf(&rg.value[a > b ? a : b]);
}

struct value *
rg_pick_f32(void)
{
    struct value *v = rg_pick();
    return v->dtype == ET_F32 ? v : NULL;
}

void
rg_locate(int64_t i, int ndim, const int64_t *shape, int64_t *at)
{
    for (int d = ndim - 1; d >= 0; d--) {
        at[d] = i % shape[d];
        i /= shape[d];
    }
}

double
rg_element(const struct value *v, int ndim, const int64_t *at)
{
    int64_t i = 0;
    for (int d = 0; d < v->ndim; d++)
        i = i * v->shape[d] + (v->shape[d] == 1 ? 0 : at[ndim - v->ndim + d]);
    return v->v[i];
}

bool
rg_broadcast(const struct value *a, const struct value *b, int *ndim, int64_t *shape)
{
    *ndim = a->ndim > b->ndim ? a->ndim : b->ndim;
    for (int d = 1; d <= *ndim; d++) {
        int64_t x = d <= a->ndim ? a->shape[a->ndim - d] : 1;
        int64_t y = d <= b->ndim ? b->shape[b->ndim - d] : 1;
        if (x != y && x != 1 && y != 1)
            return false;
        shape[*ndim - d] = x > y ? x : y;
    }
    return true;
}
