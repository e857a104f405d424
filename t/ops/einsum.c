/* SPDX-License-Identifier: Apache-2.0 */
/* et_einsum against a loop over all letters, in double, and what it says of equations
 * and operands that do not fit. */
#include "etude/etude.h"
#include "t/ops/text.h"
#include "t/tap.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 4, LARGEST = 512 };

/* f32 sums of some dozen products of numbers below 1. */
static const double tolerance = 1e-5;

static struct et_ctx *cx;
static struct et_device *dev;
static struct et_graph *g;

static void
need(et_status status)
{
    if (status != ET_OK)
        bail("%s", et_error_get(cx)->message);
}

/* The leaves of one case, and their values in row-major order. */
struct leaves {
    int n;
    struct et_tensor *x[MOST];
    float value[MOST][LARGEST];
};

static void
make_leaves(struct leaves *l, const char *text)
{
    struct et_desc d[MOST];
    struct et_rng rng = et_rng_at(3, ET_RNG_USER, 0);
    l->n = read_descs(text, d, MOST);
    for (int i = 0; i < l->n; i++) {
        for (int64_t k = 0; k < et_desc_count(&d[i]); k++)
            l->value[i][k] = 2 * et_rng_uniform_f32(&rng) - 1;
        need(et_tensor_new(cx, dev, d[i].dtype, d[i].ndim, d[i].shape, ET_ROW_MAJOR,
                           NULL, &l->x[i]));
        need(et_tensor_write(cx, l->x[i], l->value[i], et_desc_bytes(&d[i])));
    }
}

static void
free_leaves(struct leaves *l)
{
    et_graph_reset(g);
    et_error_clear(cx);
    for (int i = 0; i < l->n; i++)
        et_tensor_free(&l->x[i]);
}

/* The place in row-major order of the element that INDEX, by letter, says of an array
 * whose axes have the first letters of NAMES; LENGTH: by letter. */
static int64_t
place(const char *names, const int64_t *index, const int64_t *length)
{
    int64_t at = 0;
    for (; isalpha((unsigned char)*names); names++)
        at = at * length[(int)*names] + index[(int)*names];
    return at;
}

/* Counts INDEX on, by letter; false after the last. */
static bool
next(int64_t *index, const int64_t *length)
{
    for (int c = 'z'; c >= 'A'; c--) {
        if (!length[c])
            continue;
        if (++index[c] < length[c])
            return true;
        index[c] = 0;
    }
    return false;
}

/* The definition: every combination of all letters adds one product. */
static void
compute(const char *text, const struct leaves *l, double *y)
{
    int64_t length[128] = {0}, index[128] = {0};
    const char *names[MOST], *result = strstr(text, "->") + 2;
    for (int i = 0; i < l->n; i++) {
        names[i] = i ? strchr(names[i - 1], ',') + 1 : text;
        for (int k = 0; k < l->x[i]->desc.ndim; k++)
            length[(int)names[i][k]] = l->x[i]->desc.shape[k];
    }
    memset(y, 0, LARGEST * sizeof *y);
    do {
        double product = 1;
        for (int i = 0; i < l->n; i++)
            product *= (double)l->value[i][place(names[i], index, length)];
        y[place(result, index, length)] += product;
    } while (next(index, length));
}

/* WRITTEN is computed; TEXT says the same with "->" and without spaces. */
static void
check(const char *written, const char *text, const char *operands, const char *shape)
{
    static struct leaves l;
    static double want[LARGEST];
    static float got[LARGEST];
    struct et_desc d;
    double off = 0;
    make_leaves(&l, operands);
    compute(text, &l, want);
    struct et_tensor *y = et_einsum(g, written, l.x, l.n);
    need(et_eval(g, &y, 1));
    read_descs(shape, &d, 1);
    ok(et_desc_same_shape(&y->desc, &d), "%s of %s is %s", written, operands, shape);
    need(et_tensor_read(cx, y, got, et_desc_bytes(&d)));
    for (int64_t i = 0; i < et_desc_count(&d); i++)
        off = fmax(off, fabs((double)got[i] - want[i]));
    ok(off <= tolerance, "%s of %s adds up the products of all letters (off by %g)",
       written, operands, off);
    free_leaves(&l);
}

static void
test_values(void)
{
    static const char *const cases[][3] = {
        {"ij,jk->ik", "f32[2,3] f32[3,4]", "f32[2,4]"},
        {"ij,kj->ik", "f32[2,3] f32[4,3]", "f32[2,4]"},
        {"ji,jk->ki", "f32[3,2] f32[3,4]", "f32[4,2]"},
        {"bij,bjk->bik", "f32[2,3,4] f32[2,4,5]", "f32[2,3,5]"},
        {"bij,bkj->bik", "f32[2,3,4] f32[2,5,4]", "f32[2,3,5]"},
        {"bthd,bshd->bhts", "f32[2,3,2,4] f32[2,5,2,4]", "f32[2,2,3,5]"},
        {"bhts,bshd->bthd", "f32[2,2,3,5] f32[2,5,2,4]", "f32[2,3,2,4]"},
        {"ij->ji", "f32[2,3]", "f32[3,2]"},
        {"ijk->j", "f32[2,3,4]", "f32[3]"},
        {"ij->", "f32[2,3]", "f32[]"},
        {"ii->i", "f32[4,4]", "f32[4]"},
        {"ii->", "f32[4,4]", "f32[]"},
        {"iji->ji", "f32[3,2,3]", "f32[2,3]"},
        {"iii->i", "f32[3,3,3]", "f32[3]"},
        {"ii,ij->j", "f32[3,3] f32[3,2]", "f32[2]"},
        {"i,i->", "f32[7] f32[7]", "f32[]"},
        {"i,j->ij", "f32[2] f32[3]", "f32[2,3]"},
        {"i,j->ji", "f32[2] f32[3]", "f32[3,2]"},
        {"ij,ij->ij", "f32[2,3] f32[2,3]", "f32[2,3]"},
        {"ij,ji->ij", "f32[2,3] f32[3,2]", "f32[2,3]"},
        {"ijk,jl->il", "f32[2,3,4] f32[3,5]", "f32[2,5]"},
        {"i,j->", "f32[2] f32[3]", "f32[]"},
        {"ij,jk,kl->il", "f32[2,3] f32[3,4] f32[4,2]", "f32[2,2]"},
        {"bi,oij,bj->bo", "f32[4,2] f32[3,2,5] f32[4,5]", "f32[4,3]"},
        {"ab,bc,cd,da->", "f32[2,3] f32[3,2] f32[2,3] f32[3,2]", "f32[]"},
        {"i,i,i->", "f32[5] f32[5] f32[5]", "f32[]"},
        {"ij,jk,j->ik", "f32[2,3] f32[3,4] f32[3]", "f32[2,4]"},
        {"ab,bc,bd->acd", "f32[2,3] f32[3,4] f32[3,2]", "f32[2,4,2]"},
        {",ij->ij", "f32[] f32[2,3]", "f32[2,3]"},
        {"abc,def->fdaecb", "f32[2,1,3] f32[2,3,1]", "f32[1,2,2,3,3,1]"},
        {"abcd,cdef->abef", "f32[2,3,1,2] f32[1,2,2,3]", "f32[2,3,2,3]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check(cases[i][0], cases[i][0], cases[i][1], cases[i][2]);
    check("ij,jk", "ij,jk->ik", "f32[2,3] f32[3,4]", "f32[2,4]");
    check("ba", "ba->ab", "f32[2,3]", "f32[3,2]");
    check("aB,Ca", "aB,Ca->BC", "f32[2,3] f32[4,2]", "f32[3,4]");
    check(" b i j , b j -> b i", "bij,bj->bi", "f32[2,3,4] f32[2,4]", "f32[2,3]");
}

static void
refuse(const char *text, const char *operands, et_status status, const char *message)
{
    static struct leaves l;
    make_leaves(&l, operands);
    struct et_tensor *y = et_einsum(g, text, l.x, l.n);
    is_str(et_error_get(cx)->message, message, "%s of %s is refused", text, operands);
    ok(!y && et_graph_status(g) == status, "%s of %s sticks as %s", text, operands,
       et_status_name(status));
    free_leaves(&l);
}

static void
test_errors(void)
{
    refuse("ij,jk->ixk", "f32[2,3] f32[3,4]", ET_EINVAL,
           "einsum \"ij,jk->ixk\", character 9: the result's 'x' is an axis of no "
           "operand");
    refuse("ij,jk->iik", "f32[2,3] f32[3,4]", ET_EINVAL,
           "einsum \"ij,jk->iik\", character 9: the result has 'i' twice");
    refuse("ij,jk->iki", "f32[2,3] f32[3,4]", ET_EINVAL,
           "einsum \"ij,jk->iki\", character 10: the result has 'i' twice");
    refuse("ij,jk->ik", "f32[2,3] f32[4,5]", ET_ESHAPE,
           "einsum \"ij,jk->ik\", character 4: 'j' has the length 4 here and 3 before");
    refuse("ii->i", "f32[2,3]", ET_ESHAPE,
           "einsum \"ii->i\", character 2: 'i' has the length 3 here and 2 before");
    refuse("ij,j->i", "f32[2,3] f32[3,1]", ET_ESHAPE,
           "einsum \"ij,j->i\", character 4: 1 axes are named here; operand 1 is "
           "f32[3,1]");
    refuse("ij,jk,kl->il", "f32[2,3] f32[3,4]", ET_EINVAL,
           "einsum \"ij,jk,kl->il\", character 7: another operand; 2 are given");
    refuse("ij->i", "f32[2,3] f32[3]", ET_EINVAL,
           "einsum \"ij->i\", character 3: 1 operands are named; 2 are given");
    refuse(
        "...i,i->i", "f32[2] f32[2]", ET_EINVAL,
        "einsum \"...i,i->i\", character 1: axes that an ellipsis stands for are not "
        "known here; name them");
    refuse("i1,1->i", "f32[2,3] f32[3]", ET_EINVAL,
           "einsum \"i1,1->i\", character 2: 1 operands are named; 2 are given");
    refuse("i*", "f32[2]", ET_EINVAL,
           "einsum \"i*\", character 2: '*' is neither a letter nor ',' or \"->\"");
    refuse("ij->i,j", "f32[2,3]", ET_EINVAL,
           "einsum \"ij->i,j\", character 6: ',' is neither a letter nor the end");
    refuse(
        "abcdefg->a", "f32[1,1,1,1,1,1]", ET_EINVAL,
        "einsum \"abcdefg->a\", character 7: 'g' is one axis more than the 6 that an "
        "array has at most");
    refuse(
        "abcd,efgh,abcdefgh->", "f32[1,1,1,1] f32[1,1,1,1] f32[1]", ET_EINVAL,
        "einsum \"abcd,efgh,abcdefgh->\", character 17: 'g' is one axis more than the "
        "6 that an array has at most");
    refuse(
        "abcd,efgh,aceg,bdfh->", "f32[1,1,1,1] f32[1,1,1,1] f32[1,1,1,1] f32[1,1,1,1]",
        ET_EINVAL,
        "einsum \"abcd,efgh,aceg,bdfh->\", character 6: the product with operand 1 has "
        "the axes abcdefgh; an array has at most 6");
    refuse("ij,jk->ik", "f32[2,3] bf16[3,4]", ET_EDTYPE,
           "matmul: b has dtype bf16; it must have f32");
}

/* As many operands as there may be, and one more. */
static void
test_many(void)
{
    enum { MANY = 16 };
    static struct leaves l;
    struct et_tensor *x[MANY + 1];
    char text[2 * MANY + 8] = "";
    double want = 0, got;
    make_leaves(&l, "f32[3]");
    for (int i = 0; i <= MANY; i++)
        x[i] = l.x[0];
    for (int i = 0; i < MANY; i++)
        text[2 * i] = 'a', text[2 * i + 1] = ',';
    snprintf(text + 2 * MANY - 1, 3, "->");
    for (int i = 0; i < 3; i++)
        want += pow((double)l.value[0][i], MANY);
    need(et_item(g, et_einsum(g, text, x, MANY), &got));
    is_near(got, want, tolerance, "a product of 16 operands");
    et_graph_reset(g);
    snprintf(text + 2 * MANY - 1, 6, ",a->");
    ok(!et_einsum(g, text, x, MANY + 1) && et_graph_status(g) == ET_EINVAL,
       "there is none of 17");
    free_leaves(&l);
}

int
main(void)
{
    need(et_ctx_new(&cx));
    need(et_device_open(cx, "ref", 0, 1, &dev));
    need(et_graph_new(cx, dev, &g));
    test_values();
    test_errors();
    test_many();
    et_graph_free(&g);
    et_device_close(&dev);
    et_ctx_free(&cx);
    return done();
}
