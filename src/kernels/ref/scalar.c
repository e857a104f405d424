/* SPDX-License-Identifier: Apache-2.0 */
/* scalar.c: element functions, one row each; PyTorch's semantics.
 *
 * NaN passes through maximum, minimum, clamp and relu. The gelu is x Phi(x); its tanh
 * form is 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (Hendrycks and Gimpel,
 * arXiv:1606.08415). Gradients take (dy, x) or (dy, y) as ops.def says. */
#include "kernels/ref/array.h"

#include <math.h>

#define GELU_A    0.79788456080286535588 /* sqrt(2/pi) */
#define GELU_B    0.044715
#define SQRT_HALF 0.70710678118654752440
#define NORMAL_0  0.39894228040143267794 /* 1/sqrt(2 pi) */

static double
sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double
normal_cdf(double x)
{
    return 0.5 * erfc(-x * SQRT_HALF);
}

static double
gelu_tanh_slope(double x)
{
    double t = tanh(GELU_A * (x + GELU_B * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * GELU_A * (1 + 3 * GELU_B * x * x);
}

static double
larger(double a, double b)
{
    return isnan(a) || a > b ? a : b;
}

static double
smaller(double a, double b)
{
    return isnan(a) || a < b ? a : b;
}

/* name, operands, value; X, Y, Z are the operands, a and b the scalars. */
#define X (x[0])
#define Y (x[1])
#define Z (x[2])
/* clang-format off: it takes products for pointers */
#define SCALAR_MAP(ROW)                                                                \
    ROW(neg, 1, -X)                                                                    \
    ROW(abs, 1, fabs(X))                                                               \
    ROW(sign, 1, (X > 0) - (X < 0))                                                    \
    ROW(exp, 1, exp(X))                                                                \
    ROW(log, 1, log(X))                                                                \
    ROW(sin, 1, sin(X))                                                                \
    ROW(cos, 1, cos(X))                                                                \
    ROW(sqrt, 1, sqrt(X))                                                              \
    ROW(rsqrt, 1, 1 / sqrt(X))                                                         \
    ROW(square, 1, X *X)                                                               \
    ROW(reciprocal, 1, 1 / X)                                                          \
    ROW(floor, 1, floor(X))                                                            \
    ROW(relu, 1, X < 0 ? 0 : X)                                                        \
    ROW(gelu, 1, X *normal_cdf(X))                                                     \
    ROW(gelu_tanh, 1, 0.5 * X * (1 + tanh(GELU_A * (X + GELU_B * X * X * X))))         \
    ROW(silu, 1, X *sigmoid(X))                                                        \
    ROW(sigmoid, 1, sigmoid(X))                                                        \
    ROW(tanh, 1, tanh(X))                                                              \
    ROW(softplus, 1, fmax(X, 0) + log1p(exp(-fabs(X))))                                \
    ROW(add_scalar, 1, X + a)                                                          \
    ROW(mul_scalar, 1, X *a)                                                           \
    ROW(pow_scalar, 1, pow(X, a))                                                      \
    ROW(clamp, 1, smaller(larger(X, a), b))                                            \
    ROW(add, 2, X + Y)                                                                 \
    ROW(sub, 2, X - Y)                                                                 \
    ROW(mul, 2, X *Y)                                                                  \
    ROW(div, 2, X / Y)                                                                 \
    ROW(maximum, 2, larger(X, Y))                                                      \
    ROW(minimum, 2, smaller(X, Y))                                                     \
    ROW(equal, 2, X == Y)                                                              \
    ROW(less, 2, X < Y)                                                                \
    ROW(less_equal, 2, X <= Y)                                                         \
    ROW(where, 3, X != 0 ? Y : Z)                                                      \
    ROW(relu_grad, 2, Y <= 0 ? 0 : X)                                                  \
    ROW(gelu_grad, 2, X *(normal_cdf(Y) + Y * NORMAL_0 * exp(-0.5 * Y * Y)))           \
    ROW(gelu_tanh_grad, 2, X *gelu_tanh_slope(Y))                                      \
    ROW(silu_grad, 2, X *sigmoid(Y) * (1 + Y * (1 - sigmoid(Y))))                      \
    ROW(sigmoid_grad, 2, X *Y *(1 - Y))                                                \
    ROW(tanh_grad, 2, X *(1 - Y * Y))
/* clang-format on */

#define DEFINE(name, operands, value)                                                  \
    static double scalar_##name(const double *x, double a, double b)                   \
    {                                                                                  \
        (void)a, (void)b;                                                              \
        return value;                                                                  \
    }
SCALAR_MAP(DEFINE)

static const struct {
    etk_scalar_fn *fn;
    int operands;
} scalars[ET_OP_COUNT] = {
#define ENTRY(name, n, value) [ET_OP_##name] = {.fn = scalar_##name, .operands = n},
    SCALAR_MAP(ENTRY)};

etk_scalar_fn *
etk_scalar(enum et_op_id op)
{
    return op < ET_OP_COUNT ? scalars[op].fn : NULL;
}

int
etk_scalar_operands(enum et_op_id op)
{
    return op < ET_OP_COUNT ? scalars[op].operands : 0;
}
