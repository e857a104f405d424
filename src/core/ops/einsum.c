/* SPDX-License-Identifier: Apache-2.0 */
/* einsum.c: products and sums of arrays whose axes have names: "bij,bjk->bik".
 *
 * Operands are multiplied from the left to the right, two at a time. A letter that
 * neither the result nor a later operand has is summed as soon as it can be: of both,
 * by matmul; of one, before the product. Where nothing is summed over, the product is
 * one of elements that broadcast. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/base/need.h"
#include "core/ops/ops.h"

enum { MOST = 16, LETTERS = 128 };

/* Axes by their letters; AT: where those are in the text. */
struct names {
    int n;
    char letter[ET_MAX_DIMS];
    int at[ET_MAX_DIMS];
};

struct einsum {
    struct et_graph *g;
    const char *text;
    int n;
    struct names operand[MOST], result;
    int start[MOST];         /* where each operand's names begin */
    int64_t length[LETTERS]; /* of each letter's axes; -1: unused letter */
};

/* An array and the letters of its axes. */
struct factor {
    struct et_tensor *t;
    int n;
    char letter[ET_MAX_DIMS + 1]; /* a string */
};

/* ---- reading ---- */

/* Says what is wrong at place AT of the text. */
static et_status ET_PRINTF(4, 5)
    fail_at(const struct einsum *e, et_status status, int at, const char *format, ...)
{
    char what[256];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return ET_FAIL(et_graph_ctx(e->g), status, "einsum \"%s\", character %d: %s",
                   e->text, at + 1, what);
}

/* Reads letters from *AT on, up to the first other character. */
static et_status
read_names(const struct einsum *e, int *at, struct names *to)
{
    for (;; ++*at) {
        char c = e->text[*at];
        if (c == ' ')
            continue;
        if (c == '.')
            return fail_at(e, ET_EINVAL, *at,
                           "axes that an ellipsis stands for are not known here; name "
                           "them");
        if (!isascii(c) || !isalpha(c))
            return ET_OK;
        if (to->n == ET_MAX_DIMS)
            return fail_at(e, ET_EINVAL, *at,
                           "'%c' is one axis more than the %d that "
                           "an array has at most",
                           c, ET_MAX_DIMS);
        to->letter[to->n] = c;
        to->at[to->n++] = *at;
    }
}

/* How often the operands have LETTER. */
static int
count_of(const struct einsum *e, int letter)
{
    int count = 0;
    for (int i = 0; i < e->n; i++)
        for (int k = 0; k < e->operand[i].n; k++)
            count += e->operand[i].letter[k] == letter;
    return count;
}

/* Without "->": the letters that are there once, in the alphabet's order. */
static et_status
imply_result(struct einsum *e, int at)
{
    for (int c = 0; c < LETTERS; c++) {
        if (count_of(e, c) != 1)
            continue;
        if (e->result.n == ET_MAX_DIMS)
            return fail_at(e, ET_EINVAL, at, "the result has more than %d axes",
                           ET_MAX_DIMS);
        e->result.letter[e->result.n] = (char)c;
        e->result.at[e->result.n++] = at;
    }
    return ET_OK;
}

static et_status
check_result(const struct einsum *e)
{
    const struct names *r = &e->result;
    for (int i = 0; i < r->n; i++) {
        if (!count_of(e, r->letter[i]))
            return fail_at(e, ET_EINVAL, r->at[i],
                           "the result's '%c' is an axis of no operand", r->letter[i]);
        if (memchr(r->letter, r->letter[i], (size_t)i))
            return fail_at(e, ET_EINVAL, r->at[i], "the result has '%c' twice",
                           r->letter[i]);
    }
    return ET_OK;
}

static et_status
read_text(struct einsum *e)
{
    int at = 0, n = 0;
    for (;; at++) {
        if (n == e->n)
            return fail_at(e, ET_EINVAL, at, "another operand; %d are given", e->n);
        e->start[n] = at;
        ET_TRY(read_names(e, &at, &e->operand[n++]));
        if (e->text[at] != ',')
            break;
    }
    if (n < e->n)
        return fail_at(e, ET_EINVAL, at, "%d operands are named; %d are given", n,
                       e->n);
    bool says = e->text[at] == '-' && e->text[at + 1] == '>';
    if (says) {
        at += 2;
        ET_TRY(read_names(e, &at, &e->result));
    }
    if (e->text[at])
        return fail_at(e, ET_EINVAL, at, "'%c' is neither a letter nor %s", e->text[at],
                       says ? "the end" : "',' or \"->\"");
    return says ? check_result(e) : imply_result(e, at);
}

/* Notes how long the axes of operand I, X, are. */
static et_status
measure(struct einsum *e, int i, const struct et_tensor *x)
{
    char text[ETI_TEXT];
    const struct names *names = &e->operand[i];
    if (!x)
        return fail_at(e, ET_EINVAL, e->start[i], "operand %d is missing", i);
    if (x->desc.ndim != names->n)
        return fail_at(e, ET_ESHAPE, e->start[i],
                       "%d axes are named here; operand %d "
                       "is %s",
                       names->n, i, et_desc_text(&x->desc, text, sizeof text));
    for (int k = 0; k < names->n; k++) {
        int64_t *length = &e->length[(int)names->letter[k]];
        if (*length >= 0 && *length != x->desc.shape[k])
            return fail_at(e, ET_ESHAPE, names->at[k],
                           "'%c' has the length %lld here and %lld before",
                           names->letter[k], (long long)x->desc.shape[k],
                           (long long)*length);
        *length = x->desc.shape[k];
    }
    return ET_OK;
}

/* ---- arrays with letters ---- */

static bool
has(const struct factor *f, char letter)
{
    return strchr(f->letter, letter) != NULL;
}

/* F's axes in the order of LETTERS, which are its own. */
static struct et_tensor *
arrange(const struct einsum *e, const struct factor *f, const char *letters)
{
    int axes[ET_MAX_DIMS];
    if (!strcmp(f->letter, letters))
        return f->t;
    for (int i = 0; i < f->n; i++)
        axes[i] = (int)(strchr(f->letter, letters[i]) - f->letter);
    return et_permute(e->g, f->t, axes);
}

/* Product of the lengths of LETTERS; into SHAPE, if that is not NULL, each. */
static int64_t
lengths(const struct einsum *e, const char *letters, int64_t *shape)
{
    int64_t product = 1;
    for (int i = 0; letters[i]; i++) {
        product *= e->length[(int)letters[i]];
        if (shape)
            shape[i] = e->length[(int)letters[i]];
    }
    return product;
}

/* Axes I and J of F are one letter's: F becomes its diagonal, the letter last. */
static void
take_diagonal(const struct einsum *e, struct factor *f, int i, int j)
{
    char letter = f->letter[i];
    int64_t shape[ET_MAX_DIMS], n = e->length[(int)letter];
    int axes[ET_MAX_DIMS], rest = 0;
    for (int k = 0; k < f->n; k++)
        if (k != i && k != j) {
            shape[rest] = f->t ? f->t->desc.shape[k] : 0;
            f->letter[rest] = f->letter[k];
            axes[rest++] = k;
        }
    axes[rest] = i;
    axes[rest + 1] = j;
    shape[rest] = n * n;
    f->letter[rest] = letter;
    f->letter[rest + 1] = '\0';
    f->n = rest + 1;
    f->t = et_reshape(e->g, et_permute(e->g, f->t, axes), rest + 1, shape);
    f->t = et_slice(e->g, f->t, rest, 0, n, n + 1);
}

static struct factor
factor_of(const struct einsum *e, int i, struct et_tensor *x)
{
    struct factor f = {.t = x, .n = e->operand[i].n};
    memcpy(f.letter, e->operand[i].letter, (size_t)f.n);
    for (int k = 0; k < f.n; k++) {
        const char *next = strchr(f.letter + k + 1, f.letter[k]);
        if (next) {
            take_diagonal(e, &f, k, (int)(next - f.letter));
            k = -1;
        }
    }
    return f;
}

/* Do the result or an operand from number FROM on have LETTER? */
static bool
is_kept(const struct einsum *e, int from, char letter)
{
    bool kept = memchr(e->result.letter, letter, (size_t)e->result.n) != NULL;
    for (int i = from; i < e->n; i++)
        kept |= memchr(e->operand[i].letter, letter, (size_t)e->operand[i].n) != NULL;
    return kept;
}

/* Sums over those of F's letters that neither OTHER (NULL: nothing) has nor is kept. */
static void
sum_out(const struct einsum *e, struct factor *f, const struct factor *other, int from)
{
    uint32_t axes = 0;
    int n = 0;
    for (int i = 0; i < f->n; i++)
        if ((other && has(other, f->letter[i])) || is_kept(e, from, f->letter[i]))
            f->letter[n++] = f->letter[i];
        else
            axes |= 1u << i;
    f->letter[n] = '\0';
    f->n = n;
    if (axes)
        f->t = et_sum(e->g, f->t, axes, false);
}

/* ---- products of two ---- */

/* The letters of two factors by what becomes of them; each a string. */
struct roles {
    char batch[ET_MAX_DIMS + 1], left[ET_MAX_DIMS + 1], right[ET_MAX_DIMS + 1];
    char summed[ET_MAX_DIMS + 1];
};

static void
put(char *string, char letter)
{
    size_t n = strlen(string);
    string[n] = letter;
    string[n + 1] = '\0';
}

static struct roles
roles_of(const struct einsum *e, const struct factor *a, const struct factor *b,
         int from)
{
    struct roles r = {.batch = ""};
    for (int i = 0; i < a->n; i++) {
        char c = a->letter[i];
        put(!has(b, c) ? r.left : is_kept(e, from, c) ? r.batch : r.summed, c);
    }
    for (int i = 0; i < b->n; i++)
        if (!has(a, b->letter[i]))
            put(r.right, b->letter[i]);
    return r;
}

/* F as matrices [batch, rows, columns], or one, [rows, columns], without a batch. */
static struct et_tensor *
matrices(const struct einsum *e, const struct factor *f, const char *batch,
         const char *rows, const char *columns)
{
    char order[3 * ET_MAX_DIMS + 1];
    snprintf(order, sizeof order, "%s%s%s", batch, rows, columns);
    const int64_t shape[] = {lengths(e, batch, NULL), lengths(e, rows, NULL),
                             lengths(e, columns, NULL)};
    int skip = !batch[0];
    return et_reshape(e->g, arrange(e, f, order), 3 - skip, shape + skip);
}

/* Does F lie as matrices [batch, rows, columns] already? */
static bool
lies_as(const struct factor *f, const char *batch, const char *rows,
        const char *columns)
{
    size_t n = strlen(batch), m = strlen(rows);
    return !strncmp(f->letter, batch, n) && !strncmp(f->letter + n, rows, m) &&
           !strcmp(f->letter + n + m, columns);
}

static struct et_tensor *
multiply_matrices(const struct einsum *e, const struct roles *r, const struct factor *a,
                  const struct factor *b)
{
    bool turn_a = lies_as(a, r->batch, r->summed, r->left);
    bool turn_b = lies_as(b, r->batch, r->right, r->summed);
    struct et_tensor *left = turn_a ? matrices(e, a, r->batch, r->summed, r->left)
                                    : matrices(e, a, r->batch, r->left, r->summed);
    struct et_tensor *right = turn_b ? matrices(e, b, r->batch, r->right, r->summed)
                                     : matrices(e, b, r->batch, r->summed, r->right);
    return et_matmul(e->g, left, right, turn_a, turn_b);
}

/* Elements times elements: [batch, left, 1] and [batch, 1, right] broadcast. */
static struct et_tensor *
multiply_elements(const struct einsum *e, const struct roles *r, const struct factor *a,
                  const struct factor *b)
{
    char order[2 * ET_MAX_DIMS + 1];
    int64_t one[3 * ET_MAX_DIMS], other[3 * ET_MAX_DIMS];
    int batch = (int)strlen(r->batch), left = (int)strlen(r->left);
    int right = (int)strlen(r->right), n = batch + left + right;
    for (int i = 0; i < n; i++)
        one[i] = other[i] = 1;
    lengths(e, r->batch, one);
    lengths(e, r->left, one + batch);
    lengths(e, r->batch, other);
    lengths(e, r->right, other + batch + left);
    snprintf(order, sizeof order, "%s%s", r->batch, r->left);
    struct et_tensor *x = et_reshape(e->g, arrange(e, a, order), n, one);
    snprintf(order, sizeof order, "%s%s", r->batch, r->right);
    return et_mul(e->g, x, et_reshape(e->g, arrange(e, b, order), n, other));
}

/* A times B, where operands from number FROM on are still to come. */
static et_status
multiply(const struct einsum *e, struct factor *a, struct factor *b, int from)
{
    int64_t shape[3 * ET_MAX_DIMS];
    char order[3 * ET_MAX_DIMS + 1];
    sum_out(e, a, b, from);
    sum_out(e, b, a, from);
    const struct roles r = roles_of(e, a, b, from);
    int n = snprintf(order, sizeof order, "%s%s%s", r.batch, r.left, r.right);
    if (n > ET_MAX_DIMS)
        return fail_at(e, ET_EINVAL, e->start[from - 1],
                       "the product with operand %d has the axes %s; an array has at "
                       "most %d",
                       from - 1, order, ET_MAX_DIMS);
    struct et_tensor *y =
        r.summed[0] ? multiply_matrices(e, &r, a, b) : multiply_elements(e, &r, a, b);
    lengths(e, order, shape);
    a->t = et_reshape(e->g, y, n, shape);
    a->n = n;
    memcpy(a->letter, order, (size_t)n + 1);
    return et_graph_status(e->g);
}

static et_status
contract(struct einsum *e, struct et_tensor *const *x, struct et_tensor **out)
{
    char order[ET_MAX_DIMS + 1] = "";
    ET_TRY(read_text(e));
    for (int i = 0; i < e->n; i++)
        ET_TRY(measure(e, i, x[i]));
    struct factor y = factor_of(e, 0, x[0]);
    for (int i = 1; i < e->n; i++) {
        struct factor f = factor_of(e, i, x[i]);
        ET_TRY(multiply(e, &y, &f, i + 1));
    }
    sum_out(e, &y, NULL, e->n);
    memcpy(order, e->result.letter, (size_t)e->result.n);
    *out = arrange(e, &y, order);
    return et_graph_status(e->g);
}

struct et_tensor *
et_einsum(struct et_graph *g, const char *equation, struct et_tensor *const *x, int n)
{
    ETI_NEED_IN(g, g, equation);
    if (n > 0)
        ETI_NEED_IN(g, x);
    struct einsum e = {.g = g, .text = equation, .n = n};
    struct et_tensor *y = NULL;
    et_status status = ET_OK;
    if (et_graph_status(g) != ET_OK)
        return NULL;
    for (int c = 0; c < LETTERS; c++)
        e.length[c] = -1;
    if (n < 1 || n > MOST)
        status = fail_at(&e, ET_EINVAL, 0, "%d operands; there are 1 to %d", n, MOST);
    if (status == ET_OK)
        status = contract(&e, x, &y);
    return status == ET_OK ? y : eti_graph_fail(g, status);
}
