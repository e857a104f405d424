/* SPDX-License-Identifier: Apache-2.0 */
/* formula.c: see formula.h. The text is read once, from left to right, a function for
 * each strength of binding; what it comes to is computed on the way. */
#include "core/sched/formula.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 64 /* brackets and signs within each other */ };

struct reader {
    const char *text, *at;
    const struct eti_variable *v;
    int n, depth;
    bool failed;
    struct et_error *why;
};

/* Says what is wrong at AT; the first word counts. */
static double __attribute__((format(printf, 3, 4)))
fail(struct reader *r, const char *at, const char *format, ...)
{
    char what[320];
    va_list args;
    if (r->failed)
        return 0;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    snprintf(r->why->message, sizeof r->why->message, "'%s', character %d: %s", r->text,
             (int)(at - r->text) + 1, what);
    r->failed = true;
    return 0;
}

/* The next sign that is no blank. */
static char
peek(struct reader *r)
{
    while (isspace((unsigned char)*r->at))
        r->at++;
    return *r->at;
}

/* Is SIGN what follows? It is then behind us. */
static bool
take(struct reader *r, const char *sign)
{
    peek(r);
    size_t n = strlen(sign);
    if (strncmp(r->at, sign, n) != 0)
        return false;
    r->at += n;
    return true;
}

static double comparison(struct reader *r);

/* ---- names ---- */

static const struct {
    const char *name;
    double (*of)(double);
} functions[] = {
    {"abs", fabs},  {"ceil", ceil},   {"cos", cos}, {"exp", exp},   {"log", log},
    {"log2", log2}, {"floor", floor}, {"sin", sin}, {"tanh", tanh}, {"sqrt", sqrt},
};

/* Behind the name and "(": the smallest or the largest of what is listed. */
static double
extreme(struct reader *r, bool largest)
{
    double best = comparison(r);
    while (!r->failed && take(r, ",")) {
        double x = comparison(r);
        best = largest ? fmax(best, x) : fmin(best, x);
    }
    return best;
}

static double
call(struct reader *r, const char *name, int n)
{
    double x = 0;
    bool known = false, is_max = n == 3 && strncmp(name, "max", 3) == 0;
    if (is_max || (n == 3 && strncmp(name, "min", 3) == 0)) {
        x = extreme(r, is_max);
        known = true;
    }
    for (size_t i = 0; !known && i < sizeof functions / sizeof functions[0]; i++)
        if ((int)strlen(functions[i].name) == n &&
            strncmp(functions[i].name, name, (size_t)n) == 0) {
            x = functions[i].of(comparison(r));
            known = true;
        }
    if (!known)
        return fail(r, name, "no function is called %.*s", n, name);
    return take(r, ")") ? x : fail(r, r->at, "a ')' is missing");
}

static double
variable(struct reader *r, const char *name, int n)
{
    char all[256] = "pi";
    for (int i = 0; i < r->n; i++) {
        if ((int)strlen(r->v[i].name) == n &&
            strncmp(r->v[i].name, name, (size_t)n) == 0)
            return r->v[i].value;
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, ", %s", r->v[i].name);
    }
    if (n == 2 && strncmp(name, "pi", 2) == 0)
        return M_PI;
    return fail(r, name, "'%.*s' is none of %s", n, name, all);
}

/* ---- by strength of binding, the strongest first ---- */

static double
atom(struct reader *r)
{
    char c = peek(r);
    const char *begin = r->at;
    if (isdigit((unsigned char)c) || c == '.') {
        char *end;
        double x = strtod(r->at, &end);
        if (end == r->at)
            return fail(r, begin, "no number");
        r->at = end;
        return x;
    }
    if (take(r, "(")) {
        double x = comparison(r);
        return take(r, ")") ? x : fail(r, r->at, "a ')' is missing");
    }
    while (isalnum((unsigned char)*r->at) || *r->at == '_')
        r->at++;
    int n = (int)(r->at - begin);
    if (n == 0)
        return c ? fail(r, begin, "a number or a name is missing before '%c'", c)
                 : fail(r, begin, "a number or a name is missing at the end");
    return take(r, "(") ? call(r, begin, n) : variable(r, begin, n);
}

/* A sign, or a power, whose exponent may have a sign of its own. */
static double
signed_power(struct reader *r)
{
    double x = 0;
    if (r->failed || r->depth > DEEPEST)
        return fail(r, r->at, "more than %d brackets and signs within each other",
                    DEEPEST);
    r->depth++;
    if (take(r, "-")) {
        x = -signed_power(r);
    } else if (take(r, "+")) {
        x = signed_power(r);
    } else {
        x = atom(r);
        if (!r->failed && (take(r, "**") || take(r, "^")))
            x = pow(x, signed_power(r));
    }
    r->depth--;
    return x;
}

static double
product(struct reader *r)
{
    double x = signed_power(r);
    while (!r->failed)
        if (take(r, "*"))
            x *= signed_power(r);
        else if (take(r, "/"))
            x /= signed_power(r);
        else if (take(r, "%"))
            x = fmod(x, signed_power(r));
        else
            break;
    return x;
}

static double
sum(struct reader *r)
{
    double x = product(r);
    while (!r->failed)
        if (take(r, "+"))
            x += product(r);
        else if (take(r, "-"))
            x -= product(r);
        else
            break;
    return x;
}

static double
comparison(struct reader *r)
{
    double x = sum(r);
    if (r->failed)
        return x;
    if (take(r, "<="))
        return x <= sum(r);
    if (take(r, ">="))
        return x >= sum(r);
    if (take(r, "=="))
        return x == sum(r);
    if (take(r, "!="))
        return x != sum(r);
    if (take(r, "<"))
        return x < sum(r);
    return take(r, ">") ? x > sum(r) : x;
}

et_status
eti_formula(const char *text, const struct eti_variable *v, int n, double *out,
            struct et_error *why)
{
    struct reader r = {.text = text, .at = text, .v = v, .n = n, .why = why};
    *out = comparison(&r);
    if (!r.failed && peek(&r))
        fail(&r, r.at, "'%c' was not expected", *r.at);
    return r.failed ? ET_EINVAL : ET_OK;
}
