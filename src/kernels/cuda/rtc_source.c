/* SPDX-License-Identifier: Apache-2.0 */
/* rtc_source.c: the CUDA C of an element-wise program.
 *
 * elements.cuh, then one kernel of the program's form. Lengths and addresses are its
 * parameter; which strides are 0, 1 or others is written into the text, so that nothing
 * is computed that need not be:
 *
 *   an operand of strides 0 (a learning rate) is read once per thread, before the loop;
 *   one of last stride 0 (a number for each row) once per place;
 *   one of last stride 1 as LANES neighbours, in accesses of 16 bytes;
 *   where all arrays are dense, a place's number is every array's offset.
 *
 * Each thread takes places t, t + threads, ... below count, each of LANES elements, and
 * loads all operands of a place before it stores a result: results may be operands.
 * Every operand and result is moved once: bound by memory. */
#include "kernels/cuda/program.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text {
    char *at;
    size_t used, size;
    bool failed;
};

static void say(struct text *t, const char *fmt, ...) ET_PRINTF(2, 3);

static void
say(struct text *t, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    size_t need = t->used + (size_t)n + 1;
    if (!t->failed && need > t->size) {
        char *grown = realloc(t->at, 2 * need);
        t->failed = !grown;
        t->at = grown ? grown : t->at;
        t->size = grown ? 2 * need : t->size;
    }
    if (!t->failed)
        t->used += (size_t)vsnprintf(t->at + t->used, t->size - t->used, fmt, again);
    va_end(args);
    va_end(again);
}

struct source {
    const struct etk_program *p;
    const struct etk_shape *shape;
    struct text text;
    int last;  /* axis */
    bool flat; /* every side is dense, or of strides 0 */
};

static const char *
element_of(int dtype)
{
    static const char *const names[ET_DTYPE_COUNT] = {
        [ET_F32] = "float",        [ET_F64] = "double", [ET_BF16] = "etk_b16",
        [ET_F16] = "etk_h16",      [ET_I32] = "int",    [ET_I64] = "long long",
        [ET_U8] = "unsigned char",
    };
    return names[dtype];
}

static const char *
op_of(int op)
{
    static const char *const names[] = {
#define ET_OP(name, number) [number] = #name,
#include "etude/ops.def"
#undef ET_OP
    };
    return names[op];
}

static int64_t
last_stride(const struct source *s, int side)
{
    return s->shape->walk.stride[side][s->last];
}

/* All places read the same element. */
static bool
is_uniform(const struct source *s, int side)
{
    bool same = side >= s->p->n_out;
    for (int i = 0; i <= s->last; i++)
        same = same && s->shape->walk.stride[side][i] == 0;
    return same;
}

static bool
is_flat(const struct source *s)
{
    for (int side = 0; side < s->shape->walk.sides; side++)
        if (last_stride(s, side) != 1 && !is_uniform(s, side))
            return false;
    return s->last == 0;
}

/* ", PREFIX3" for each side that has an offset, or that is uniform. */
static void
list(struct source *s, bool uniform, const char *prefix)
{
    for (int side = 0; side < s->shape->walk.sides; side++)
        if (is_uniform(s, side) == uniform)
            say(&s->text, ", %s%d", prefix, side);
}

/* One step on registers r0, r1, ... of element k. */
static void
write_step(struct source *s, const struct et_fused_step *step, int to)
{
    struct text *t = &s->text;
    if (step->op == ET_OP_cast) {
        say(t, "        const real r%d = etk_rounded<%s>(r%d);\n", to,
            element_of((int)step->a), step->src[0]);
        return;
    }
    say(t, "        const real r%d = etk_step_%s<real>(", to, op_of(step->op));
    for (int i = 0; i < 3; i++)
        if (i < step->n_src)
            say(t, "r%d, ", step->src[i]);
        else
            say(t, "0, ");
    /* By its bits: decimal points are the locale's, and infinities have no digits. */
    const double scalar[2] = {step->a, step->b};
    for (int i = 0; i < 2; i++) {
        uint64_t bits;
        memcpy(&bits, &scalar[i], sizeof bits);
        if (bits == 0)
            say(t, "0%s", i == 0 ? ", " : ");\n");
        else
            say(t, "(real)__longlong_as_double(0x%016llxll /* %g */)%s",
                (unsigned long long)bits, scalar[i], i == 0 ? ", " : ");\n");
    }
}

/* N elements from the offsets on. */
static void
write_place(struct source *s)
{
    struct text *t = &s->text;
    const struct etk_program *p = s->p;
    say(t, "template <int N> ETK_INLINE void\nplace(const struct etk_sides &a");
    list(s, true, "real u");
    list(s, false, "long long at");
    say(t, ")\n{\n");
    for (int i = 0; i < p->n_in; i++) {
        int side = p->n_out + i;
        const char *type = element_of(p->dtype[side]);
        if (is_uniform(s, side))
            continue;
        if (last_stride(s, side) == 0)
            say(t,
                "    const real u%d = etk_from<real>(((const %s *)a.ptr[%d])[at%d]);\n",
                side, type, side, side);
        else
            say(t,
                "    const etk_lot<%s, N> x%d = etk_load<N>((const %s *)a.ptr[%d] + "
                "at%d);\n",
                type, side, type, side, side);
    }
    for (int o = 0; o < p->n_out; o++)
        say(t, "    real y%d[N];\n", o);
    say(t, "#pragma unroll\n    for (int k = 0; k < N; k++) {\n");
    for (int i = 0; i < p->n_in; i++) {
        int side = p->n_out + i;
        if (last_stride(s, side) == 0)
            say(t, "        const real r%d = u%d;\n", i, side);
        else
            say(t, "        const real r%d = etk_from<real>(x%d.v[k]);\n", i, side);
    }
    for (int k = 0; k < p->n_steps; k++)
        write_step(s, &p->step[k], p->n_in + k);
    for (int o = 0; o < p->n_out; o++)
        say(t, "        y%d[k] = r%d;\n", o, p->result[o]);
    say(t, "    }\n");
    for (int o = 0; o < p->n_out; o++)
        say(t, "    etk_store<N>((%s *)a.ptr[%d] + at%d, y%d);\n",
            element_of(p->dtype[o]), o, o, o);
    say(t, "}\n\n");
}

static void
write_flat_loop(struct source *s)
{
    struct text *t = &s->text;
    int lanes = s->shape->lanes;
    say(t,
        "    for (long long i = thread; i < a.count; i += threads) {\n"
        "        const long long e = i * %d;\n        place<%d>(a",
        lanes, lanes);
    list(s, true, "u");
    for (int side = 0; side < s->shape->walk.sides; side++)
        if (!is_uniform(s, side))
            say(t, ", e");
    say(t, ");\n    }\n");
    if (lanes == 1)
        return;
    say(t,
        "    const long long e = a.count * %d + thread;\n    if (e < a.elements)\n"
        "        place<1>(a",
        lanes);
    list(s, true, "u");
    for (int side = 0; side < s->shape->walk.sides; side++)
        if (!is_uniform(s, side))
            say(t, ", e");
    say(t, ");\n");
}

/* Axes from the last: rest = place; coordinate = rest mod length. */
static void
write_strided_loop(struct source *s)
{
    struct text *t = &s->text;
    const struct etk_walk *w = &s->shape->walk;
    int lanes = s->shape->lanes;
    say(t,
        "    for (long long i = thread; i < a.count; i += threads) {\n"
        "        %s rest = (%s)i;\n",
        w->count / lanes > INT32_MAX ? "long long" : "unsigned",
        w->count / lanes > INT32_MAX ? "long long" : "unsigned");
    for (int axis = s->last; axis > 0; axis--)
        say(t, "        const long long c%d = %d * (long long)etk_over(a, %d, rest);\n",
            axis, axis == s->last ? lanes : 1, axis);
    say(t, "        const long long c0 = %d * (long long)rest;\n",
        s->last == 0 ? lanes : 1);
    for (int side = 0; side < w->sides; side++) {
        if (is_uniform(s, side))
            continue;
        say(t, "        const long long at%d = 0", side);
        for (int axis = 0; axis <= s->last; axis++)
            if (w->stride[side][axis] == 1)
                say(t, " + c%d", axis);
            else if (w->stride[side][axis] != 0)
                say(t, " + c%d * a.stride[%d][%d]", axis, side, axis);
        say(t, ";\n");
    }
    say(t, "        place<%d>(a", lanes);
    list(s, true, "u");
    list(s, false, "at");
    say(t, ");\n    }\n");
}

static void
write_kernel(struct source *s)
{
    struct text *t = &s->text;
    say(t,
        "extern \"C\" __global__ void __launch_bounds__(%d)\n"
        "%s(const __grid_constant__ struct etk_sides a)\n{\n"
        "    const long long thread = (long long)blockIdx.x * blockDim.x + "
        "threadIdx.x;\n"
        "    const long long threads = (long long)gridDim.x * blockDim.x;\n",
        ETK_PROGRAM_THREADS, ETK_PROGRAM_KERNEL);
    for (int side = 0; side < s->shape->walk.sides; side++)
        if (is_uniform(s, side))
            say(t, "    const real u%d = etk_from<real>(*(const %s *)a.ptr[%d]);\n",
                side, element_of(s->p->dtype[side]), side);
    if (s->flat)
        write_flat_loop(s);
    else
        write_strided_loop(s);
    say(t, "}\n");
}

char *
etk_program_source(const struct etk_program *p, const struct etk_shape *shape)
{
    struct source s = {.p = p, .shape = shape, .last = shape->walk.ndim - 1};
    s.flat = is_flat(&s);
    say(&s.text, "%s\ntypedef %s real;\n\n", etk_elements_text,
        p->wide ? "double" : "float");
    write_place(&s);
    write_kernel(&s);
    if (s.text.failed) {
        free(s.text.at);
        return NULL;
    }
    return s.text.at;
}
