/* loops_steps.h: one vector loop per element function, for float and for double.
 *
 * X, Y, Z are the operands, A, B the scalars, T the type. Semantics are PyTorch's: NaN
 * passes through relu, clamp, maximum and minimum. Loops may write over an operand. */
#ifndef ETUDE_KERNELS_CPU_LOOPS_STEPS_H
#define ETUDE_KERNELS_CPU_LOOPS_STEPS_H

#include "etude/device.h"
#include "kernels/cpu/loops_math.h"

/* N elements; absent operands are any valid pointer. */
typedef void etk_step_fn(int64_t n, void *y, const void *const *x, double a, double b);

#define GELU_A        ((T)0.79788456080286535588) /* sqrt(2/pi) */
#define GELU_B        ((T)0.044715)
#define NORMAL_0      ((T)0.39894228040143267794) /* 1/sqrt(2 pi) */
#define SIGMOID(x)    (1 / (1 + ETK_EXP(-(x))))
#define LARGER(a, b)  ((a) != (a) || (a) > (b) ? (a) : (b))
#define SMALLER(a, b) ((a) != (a) || (a) < (b) ? (a) : (b))
#define TRUTH(v)      ((v) ? (T)1 : (T)0)
/* (1 + tanh u) / 2 is the logistic function of 2u, one exponential instead of tanh's
 * branches. Its slope takes e = e^-|2u|, which does not overflow. Beyond FAR e is 0,
 * and what it multiplies must not be infinite. */
#define GELU_2U(x) (2 * GELU_A * ((x) + GELU_B * (x) * (x) * (x)))
#define GELU_FAR   ((T)100)
#define NEAR(x)    LARGER(SMALLER(x, GELU_FAR), -GELU_FAR)
#define GELU_SLOPE(x, e)                                                               \
    ((((x) < 0 ? (e) : 1) + 2 * GELU_A * NEAR(x) * (e) * (1 / (1 + (e))) *             \
                                (1 + 3 * GELU_B * NEAR(x) * NEAR(x))) *                \
     (1 / (1 + (e))))

/* name, value; the second form names a sub-expression first */
#define ETK_STEP_MAP(F, G)                                                             \
    F(neg, -X)                                                                         \
    F(abs, ETK_ABS(X))                                                                 \
    F(sign, TRUTH(X > 0) - TRUTH(X < 0))                                               \
    F(exp, ETK_EXP(X))                                                                 \
    F(log, ETK_LOG(X))                                                                 \
    F(sqrt, ETK_SQRT(X))                                                               \
    F(rsqrt, 1 / ETK_SQRT(X))                                                          \
    F(square, X *X)                                                                    \
    F(reciprocal, 1 / X)                                                               \
    F(floor, ETK_FLOOR(X))                                                             \
    F(relu, X < 0 ? 0 : X)                                                             \
    F(gelu, X *ETK_NORMAL(X))                                                          \
    F(gelu_tanh, X *SIGMOID(GELU_2U(X)))                                               \
    F(silu, X *SIGMOID(X))                                                             \
    F(sigmoid, SIGMOID(X))                                                             \
    F(tanh, ETK_TANH(X))                                                               \
    F(softplus, (X < 0 ? 0 : X) + ETK_LOG1P(ETK_EXP(-ETK_ABS(X))))                     \
    F(add_scalar, X + A)                                                               \
    F(mul_scalar, X *A)                                                                \
    F(pow_scalar, ETK_POW(X, A))                                                       \
    G(clamp, LARGER(X, A), SMALLER(V, B))                                              \
    F(add, X + Y)                                                                      \
    F(sub, X - Y)                                                                      \
    F(mul, X *Y)                                                                       \
    F(div, X / Y)                                                                      \
    F(maximum, LARGER(X, Y))                                                           \
    F(minimum, SMALLER(X, Y))                                                          \
    F(equal, TRUTH(X == Y))                                                            \
    F(less, TRUTH(X < Y))                                                              \
    F(less_equal, TRUTH(X <= Y))                                                       \
    F(where, X != 0 ? Y : Z)                                                           \
    F(relu_grad, Y <= 0 ? 0 : X)                                                       \
    F(gelu_grad, X *(ETK_NORMAL(Y) + Y * NORMAL_0 * ETK_EXP((T)-0.5 * Y * Y)))         \
    G(gelu_tanh_grad, ETK_EXP(-ETK_ABS(GELU_2U(Y))), X *GELU_SLOPE(Y, V))              \
    G(silu_grad, SIGMOID(Y), X *V *(1 + Y * (1 - V)))                                  \
    F(sigmoid_grad, X *Y *(1 - Y))                                                     \
    F(tanh_grad, X *(1 - Y * Y))

#define STEP_BODY(name, type, first, value)                                            \
    static void step_##name##_##type(int64_t n, void *out, const void *const *in,      \
                                     double scalar_a, double scalar_b)                 \
    {                                                                                  \
        typedef type T;                                                                \
        const T *x = in[0], *y = in[1], *z = in[2];                                    \
        T *to = out, A = (T)scalar_a, B = (T)scalar_b;                                 \
        (void)x, (void)y, (void)z, (void)A, (void)B;                                   \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++)                            \
        {                                                                              \
            T V = first;                                                               \
            (void)V;                                                                   \
            to[i] = value;                                                             \
        }                                                                              \
    }
#define X                           (x[i])
#define Y                           (y[i])
#define Z                           (z[i])
#define STEP_F(name, value)         STEP_BODY(name, float, 0, value)
#define STEP_FV(name, first, value) STEP_BODY(name, float, first, value)
#define STEP_D(name, value)         STEP_BODY(name, double, 0, value)
#define STEP_DV(name, first, value) STEP_BODY(name, double, first, value)
ETK_STEP_MAP(STEP_F, STEP_FV)
ETK_STEP_MAP(STEP_D, STEP_DV)
#undef X
#undef Y
#undef Z

/* [op][0] f32, [op][1] f64; NULL where an op is not an element function. */
static etk_step_fn *const etk_steps[ET_OP_COUNT][2] = {
#define STEP_ROW(name, value)                                                          \
    [ET_OP_##name] = {step_##name##_float, step_##name##_double},
#define STEP_ROW_V(name, first, value) STEP_ROW(name, value)
    ETK_STEP_MAP(STEP_ROW, STEP_ROW_V)};

#endif
