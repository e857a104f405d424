/* SPDX-License-Identifier: Apache-2.0 */
/* edges_run.c: see edges.h. */
#include "t/kernels/edges.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "etude/ctx.h"
#include "etude/op.h"
#include "t/kernels/judge.h"
#include "t/tap.h"

static const struct row {
    enum et_op_id op;
    const struct edge_form *form; /* NULL: the op has no kernel */
    const char *what;             /* its name */
    bool signs;                   /* the sign of a 0 is promised */
    const char *refused;          /* sizes that the op does not take: "C0" */
    const char *lacks;            /* those that a device need not compute */
} rows[] = {
#define EDGE(name, form, signs, refused, lacks)                                        \
    {ET_OP_##name, &edge_##form, #form, signs, refused, lacks},
#define EDGE_NONE(name) {.op = ET_OP_##name},
#define EDGE_BUT(name, form, operands, kinds, lenience, why)
#include "t/kernels/edges.def"
#undef EDGE
#undef EDGE_NONE
#undef EDGE_BUT
};
enum { ROWS = sizeof rows / sizeof rows[0] };

/* Bits of kinds. */
#define KIND(kind) (1u << EDGE_##kind)
#define INFINITE   (KIND(PLUS_INFINITY) | KIND(MINUS_INFINITY) | KIND(INFINITIES))
#define NO_NUMBER  (KIND(NOT_A_NUMBER) | INFINITE)
#define GREAT      (KIND(LARGEST) | KIND(LOWEST))
/* Bits of operands. */
#define ANY        (~0u)
#define OPERAND(k) (1u << (k))
enum { NOT_TRIED = -1 };

static const struct exception {
    enum et_op_id op;
    const struct edge_form *form;
    uint32_t operands, kinds;
    int lenience; /* enum lenience, or NOT_TRIED */
    const char *why;
} exceptions[] = {
#define EDGE(name, form, signs, refused, lacks)
#define EDGE_NONE(name)
#define EDGE_BUT(name, form, operands, kinds, lenience, why)                           \
    {ET_OP_##name, &edge_##form, operands, kinds, lenience, why},
#include "t/kernels/edges.def"
#undef EDGE
#undef EDGE_NONE
#undef EDGE_BUT
};
enum { EXCEPTIONS = sizeof exceptions / sizeof exceptions[0] };

static const char *const kinds[] = {
#define EDGE_KIND(name, text) text,
    EDGE_KINDS(EDGE_KIND)
#undef EDGE_KIND
};

/* ---- operands ---- */

static double
largest(enum et_dtype dtype)
{
    return dtype == ET_F16    ? 65504
           : dtype == ET_BF16 ? (double)0x1.fep127f
           : dtype == ET_F64  ? DBL_MAX
                              : (double)FLT_MAX;
}

/* The value at the NTH of the places. */
static double
value_of(enum edge_kind kind, enum et_dtype dtype, int nth)
{
    switch (kind) {
    case EDGE_NOT_A_NUMBER: /* with a sign, as 0 / 0 has it on x86, and without */
        return nth % 2 ? NAN : -NAN;
    case EDGE_PLUS_INFINITY:
        return INFINITY;
    case EDGE_MINUS_INFINITY:
        return -INFINITY;
    case EDGE_INFINITIES:
        return nth % 2 ? -INFINITY : INFINITY;
    case EDGE_MINUS_ZERO:
        return -0.0;
    case EDGE_TINY:
        return dtype == ET_F16 ? 0x1.8p-20 : 0x1.8p-130;
    case EDGE_LARGEST:
        return largest(dtype);
    default:
        return -largest(dtype);
    }
}

/* In a few places: the first and the last element, and one between. */
static void
plant(struct operand *o, const struct edge_special *s)
{
    struct etk_array a = array_of(o);
    int64_t n = et_desc_count(&o->d), few[] = {0, n / 3, n - 1};
    for (int64_t i = 0; n > 0 && i < (s->everywhere ? n : 3); i++) {
        int64_t at = s->everywhere ? i : few[i];
        etk_set(&a, etk_offset_linear(&o->d, at),
                value_of(s->kind, o->d.dtype, (int)(i % 2)));
    }
}

struct operand *
edge_operand(struct bench *b, struct edge *e, enum et_dtype dtype,
             enum contents contents, enum layout layout, int ndim, const int64_t *shape)
{
    struct operand *o = operand(b, dtype, contents, 0, layout, ndim, shape);
    fill_operand(o, b->op, e->name, e->floats);
    if (e->special && e->special->operand == e->floats)
        plant(o, e->special);
    e->floats++;
    return o;
}

struct operand *
edge_floats(struct bench *b, struct edge *e, enum contents contents, enum layout layout,
            int ndim, const int64_t *shape)
{
    return edge_operand(b, e, ET_F32, contents, layout, ndim, shape);
}

struct operand *
edge_indices(struct bench *b, int64_t n, int ndim, const int64_t *shape)
{
    struct operand *o = operand(b, ET_I32, GIVEN, 0, ROW, ndim, shape);
    int64_t count = et_desc_count(&o->d);
    int32_t *to = (int32_t *)(void *)o->block, last = (int32_t)n - 1;
    for (int64_t i = 0; i < count; i++) {
        int32_t some = n > 0 ? (int32_t)(i * 7 % n) : 0;
        const int32_t of[] = {last, -1, some, last + 1, 0, INT32_MAX, some, INT32_MIN};
        to[i] = of[i % 8];
    }
    return o;
}

/* ---- results ---- */

static struct et_ctx *
context(void)
{
    static struct et_ctx *cx;
    if (!cx && et_ctx_new(&cx) != ET_OK)
        bail("no context");
    return cx;
}

bool
edge_results(struct bench *b, enum et_op_id op, struct trial *t)
{
    const struct et_op *rules = et_op_get(op);
    struct et_desc in[MAX_OPERANDS], out[MAX_OPERANDS];
    int64_t offset;
    for (int i = 0; i < t->n_in; i++)
        in[i] = t->in[i] ? t->in[i]->d : (struct et_desc){.dtype = ET_NONE};
    if (t->n_out == 0)
        t->n_out = rules->n_out;
    memset(out, 0, sizeof out);
    const struct et_call call = {
        .op = op,
        .n_in = t->n_in,
        .n_out = t->n_out,
        .attr = t->attr,
        .attr_size = t->attr_size,
        .in = in,
        .out = out,
    };
    if (rules->infer(context(), &call, out, &offset) != ET_OK)
        return false;
    for (int i = 0; i < t->n_out; i++)
        t->out[i] = out[i].dtype == ET_NONE ? NULL : result_as(b, &out[i]);
    return true;
}

void
edge_compute(struct bench *b, struct edge *e, enum et_op_id op, struct trial *t)
{
    e->refused = e->refused || !edge_results(b, op, t);
    if (!e->refused)
        compute(b, op, t, "%s", e->name);
}

/* ---- cases ---- */

/* Whether the op takes the case's operands. */
static bool
build(struct bench *b, const struct row *r, struct edge *e, const int64_t *n)
{
    r->form->build(b, e, n);
    e->t.signs = r->signs;
    e->t.may_refuse = (b->op == ET_OP_matmul_fused &&
                       !(b->device->epilogues >> e->attr.matmul_fused.form & 1)) ||
                      (b->op == ET_OP_conv2d_fused && !b->device->fuses_convolutions);
    return !e->refused && edge_results(b, b->op, &e->t);
}

/* Size K is N. What is refused is refused because of one size that is 0. */
static void
try_size(struct bench *b, const struct row *r, int k, int64_t n)
{
    struct edge e = {.refused = false};
    int64_t all[EDGE_SIZES];
    memcpy(all, r->form->usual, sizeof all);
    all[k] = n;
    snprintf(e.name, sizeof e.name, "%s of %c = %lld", r->what, r->form->sizes[k],
             (long long)n);
    const char what[] = {r->form->sizes[k], n == 0 ? '0' : '1', '\0'};
    bool refused = n < 2 && strstr(r->refused, what);
    bool takes = build(b, r, &e, all);
    e.t.may_refuse |= n < 2 && strstr(r->lacks, what);
    if (refused || !takes)
        report(b, refused && !takes, e.name,
               takes ? "" : ": refused by the op's rules");
    else
        check(b, &e.t, "%s", e.name);
    bench_clear(b);
}

static bool
is_new(int64_t n, const int64_t *seen, int count)
{
    for (int i = 0; i < count; i++)
        if (seen[i] == n)
            return false;
    return true;
}

static void
try_sizes(struct bench *b, const struct row *r)
{
    enum { MOST = 64 };
    for (int k = 0; r->form->sizes[k]; k++) {
        int64_t seen[MOST] = {0, 1};
        int count = 2;
        try_size(b, r, k, 0);
        try_size(b, r, k, 1);
        for (const int64_t *tile = r->form->tiles[k]; tile && *tile; tile++)
            for (int64_t n = *tile - 1; n <= *tile + 1; n++)
                if (count < MOST && is_new(n, seen, count))
                    try_size(b, r, k, seen[count++] = n);
    }
}

/* How results of S are compared, or NOT_TRIED. */
static int
lenience_of(const struct row *r, const struct edge_special *s)
{
    for (int i = 0; i < EXCEPTIONS; i++) {
        const struct exception *x = &exceptions[i];
        if (x->op == r->op && x->form == r->form && x->operands >> s->operand & 1 &&
            x->kinds >> s->kind & 1)
            return x->lenience;
    }
    return AS_IT_IS;
}

/* False where there is no such operand. */
static bool
try_special(struct bench *b, const struct row *r, const struct edge_special *s)
{
    struct edge e = {.special = s};
    snprintf(e.name, sizeof e.name, "%s of %s in operand %d, %s", r->what,
             kinds[s->kind], s->operand, s->everywhere ? "everywhere" : "a few places");
    bool takes = build(b, r, &e, r->form->usual), there = s->operand < e.floats;
    int lenience = lenience_of(r, s);
    e.t.lenience = lenience == NOT_TRIED ? AS_IT_IS : (enum lenience)lenience;
    if (there && !takes)
        report(b, false, e.name, "");
    else if (there && lenience != NOT_TRIED)
        check(b, &e.t, "%s", e.name);
    bench_clear(b);
    return there;
}

static void
try_specials(struct bench *b, const struct row *r)
{
    struct edge_special s = {0};
    for (bool there = true; there; s.operand++)
        for (int i = 0; there && i < 2 * EDGE_KIND_COUNT; i++) {
            s.kind = (enum edge_kind)(i / 2);
            s.everywhere = i % 2;
            there = try_special(b, r, &s);
        }
}

void
edges_of_op(struct bench *b)
{
    int found = 0;
    for (int i = 0; i < ROWS; i++) {
        const struct row *r = &rows[i];
        if (r->op != b->op)
            continue;
        found++;
        if (!r->form)
            continue;
        try_sizes(b, r);
        try_specials(b, r);
    }
    if (!found)
        ok(false, "%s has a row in edges.def", op_name(b->op));
}
