/* SPDX-License-Identifier: Apache-2.0 */
/* cudnn_run.cc: an operation graph, computed one operation after the other.
 *
 * A tensor's elements are kept by their offset in memory, also where the tensor is
 * virtual, so that a reshape is the same memory read with other strides. What is stored
 * is rounded to the tensor's data type; sums are in f32, as on a GPU. The notes of the
 * engine are true: with TENSOR_CORE factors of f32 lose all but 10 bits, with
 * NONDETERMINISTIC every second run adds from the other end, and with
 * REDUCED_PRECISION_REDUCTION sums are kept in half precision. */
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <set>

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cudnn_sim.h"

namespace
{

typedef std::vector<int64_t> numbers;

float
rounded(cudnnDataType_t dtype, float x)
{
    switch (dtype) {
    case CUDNN_DATA_BFLOAT16:
        return __bfloat162float(__float2bfloat16_rn(x));
    case CUDNN_DATA_HALF:
        return __half2float(__float2half_rn(x));
    case CUDNN_DATA_BOOLEAN:
        return x != 0;
    default:
        return x;
    }
}

/* A tensor while its graph runs. */
struct array {
    cudnnDataType_t dtype;
    numbers dims, strides;
    char *memory = nullptr;    /* real tensors and scalars */
    std::vector<float> values; /* virtual ones, by offset */

    float get(int64_t at) const
    {
        if (!memory)
            return values[(size_t)at];
        switch (dtype) {
        case CUDNN_DATA_BFLOAT16:
            return __bfloat162float(((const __nv_bfloat16 *)memory)[at]);
        case CUDNN_DATA_HALF:
            return __half2float(((const __half *)memory)[at]);
        case CUDNN_DATA_INT32:
            return (float)((const int32_t *)memory)[at];
        case CUDNN_DATA_INT64:
            return (float)((const int64_t *)memory)[at];
        case CUDNN_DATA_BOOLEAN:
        case CUDNN_DATA_UINT8:
            return ((const uint8_t *)memory)[at];
        case CUDNN_DATA_DOUBLE:
            return (float)((const double *)memory)[at];
        default:
            return ((const float *)memory)[at];
        }
    }
    void put(int64_t at, float x)
    {
        if (!memory) {
            values[(size_t)at] = rounded(dtype, x);
            return;
        }
        switch (dtype) {
        case CUDNN_DATA_BFLOAT16:
            ((__nv_bfloat16 *)memory)[at] = __float2bfloat16_rn(x);
            break;
        case CUDNN_DATA_HALF:
            ((__half *)memory)[at] = __float2half_rn(x);
            break;
        case CUDNN_DATA_INT32:
            ((int32_t *)memory)[at] = (int32_t)x;
            break;
        case CUDNN_DATA_INT64:
            ((int64_t *)memory)[at] = (int64_t)x;
            break;
        case CUDNN_DATA_BOOLEAN:
        case CUDNN_DATA_UINT8:
            ((uint8_t *)memory)[at] = (uint8_t)x;
            break;
        case CUDNN_DATA_DOUBLE:
            ((double *)memory)[at] = x;
            break;
        default:
            ((float *)memory)[at] = x;
        }
    }
    /* The offset of INDEX; axes of length 1 repeat. */
    int64_t at(const numbers &index) const
    {
        int64_t offset = 0;
        for (size_t i = 0; i < dims.size(); i++)
            offset += dims[i] == 1 ? 0 : index[i] * strides[i];
        return offset;
    }
};

/* Calls BODY with every index below DIMS. */
void
each(const numbers &dims, const std::function<void(const numbers &)> &body)
{
    numbers index(dims.size(), 0);
    for (;;) {
        body(index);
        size_t i = dims.size();
        while (i > 0 && ++index[i - 1] == dims[i - 1])
            index[--i] = 0;
        if (i == 0)
            return;
    }
}

/* A sum of products as the engine makes it. */
struct product_sum {
    const sim_engine &engine;
    bool tf32, half, backwards;
    std::vector<float> terms;

    product_sum(const sim_engine &e, cudnnDataType_t dtype, int64_t run)
        : engine(e),
          tf32(e.has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE) && dtype == CUDNN_DATA_FLOAT),
          half(e.has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)),
          backwards(e.has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) && run % 2 == 1)
    {
    }
    float factor(float x) const
    {
        if (!tf32)
            return x;
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        bits &= ~0x1fffu;
        memcpy(&x, &bits, sizeof bits);
        return x;
    }
    void add(float a, float b)
    {
        terms.push_back(factor(a) * factor(b));
    }
    float take(void)
    {
        float sum = 0;
        if (backwards)
            std::reverse(terms.begin(), terms.end());
        for (float x : terms)
            sum = half ? rounded(CUDNN_DATA_HALF, sum + x) : sum + x;
        terms.clear();
        return sum;
    }
};

struct runner {
    const sim_engine &engine;
    int64_t run; /* how many graphs ran before */
    std::map<int64_t, array> arrays;
    /* Products in memory that the graph itself goes on with: blocks add to them, and
     * who runs the graph has cleared them (dQ_accum of cudnn-frontend). */
    std::set<int64_t> totals;

    array &of(const sim_ref &t)
    {
        return arrays.at(t->one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID));
    }
    void pointwise(const sim_desc &op);
    void reduce(const sim_desc &op);
    void matmul(const sim_desc &op);
    void convolve(const sim_desc &op);
    void reshape(const sim_desc &op);
    void random(const sim_desc &op);
};

float
gelu(float x)
{
    return 0.5f * x * (1 + erff(x * 0.70710678f));
}

float
formula(cudnnPointwiseMode_t mode, float x, float b, float t)
{
    switch (mode) {
    case CUDNN_POINTWISE_ADD:
        return x + b;
    case CUDNN_POINTWISE_ADD_SQUARE:
        return x + b * b;
    case CUDNN_POINTWISE_DIV:
        return x / b;
    case CUDNN_POINTWISE_MAX:
        return std::isnan(x) || x > b ? x : b;
    case CUDNN_POINTWISE_MIN:
        return std::isnan(x) || x < b ? x : b;
    case CUDNN_POINTWISE_MOD:
        return fmodf(x, b);
    case CUDNN_POINTWISE_MUL:
        return x * b;
    case CUDNN_POINTWISE_POW:
        return powf(x, b);
    case CUDNN_POINTWISE_SUB:
        return x - b;
    case CUDNN_POINTWISE_ABS:
        return fabsf(x);
    case CUDNN_POINTWISE_CEIL:
        return ceilf(x);
    case CUDNN_POINTWISE_COS:
        return cosf(x);
    case CUDNN_POINTWISE_EXP:
        return expf(x);
    case CUDNN_POINTWISE_FLOOR:
        return floorf(x);
    case CUDNN_POINTWISE_LOG:
        return logf(x);
    case CUDNN_POINTWISE_NEG:
        return -x;
    case CUDNN_POINTWISE_RSQRT:
        return 1 / sqrtf(x);
    case CUDNN_POINTWISE_SIN:
        return sinf(x);
    case CUDNN_POINTWISE_SQRT:
        return sqrtf(x);
    case CUDNN_POINTWISE_TAN:
        return tanf(x);
    case CUDNN_POINTWISE_ERF:
        return erff(x);
    case CUDNN_POINTWISE_IDENTITY:
        return x;
    case CUDNN_POINTWISE_RECIPROCAL:
        return 1 / x;
    case CUDNN_POINTWISE_RELU_FWD:
        return x > 0 || std::isnan(x) ? x : 0;
    case CUDNN_POINTWISE_TANH_FWD:
        return tanhf(x);
    case CUDNN_POINTWISE_SIGMOID_FWD:
        return 1 / (1 + expf(-x));
    case CUDNN_POINTWISE_ELU_FWD:
        return x > 0 ? x : expm1f(x);
    case CUDNN_POINTWISE_GELU_FWD:
        return gelu(x);
    case CUDNN_POINTWISE_SOFTPLUS_FWD:
        return log1pf(expf(x));
    case CUDNN_POINTWISE_SWISH_FWD:
        return x / (1 + expf(-x));
    case CUDNN_POINTWISE_GELU_APPROX_TANH_FWD:
        return 0.5f * x * (1 + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
    case CUDNN_POINTWISE_CMP_EQ:
        return x == b;
    case CUDNN_POINTWISE_CMP_NEQ:
        return x != b;
    case CUDNN_POINTWISE_CMP_GT:
        return x > b;
    case CUDNN_POINTWISE_CMP_GE:
        return x >= b;
    case CUDNN_POINTWISE_CMP_LT:
        return x < b;
    case CUDNN_POINTWISE_CMP_LE:
        return x <= b;
    case CUDNN_POINTWISE_LOGICAL_AND:
        return x != 0 && b != 0;
    case CUDNN_POINTWISE_LOGICAL_OR:
        return x != 0 || b != 0;
    case CUDNN_POINTWISE_LOGICAL_NOT:
        return x == 0;
    case CUDNN_POINTWISE_BINARY_SELECT:
        return t != 0 ? x : b;
    case CUDNN_POINTWISE_GEN_INDEX:
        break; /* below */
    }
    return NAN;
}

void
runner::pointwise(const sim_desc &op)
{
    sim_ref kind = op.child(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    cudnnPointwiseMode_t mode =
        kind->one<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
    sim_ref has_b = op.child(CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
    sim_ref has_t = op.child(CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
    const array &x = of(op.child(CUDNN_ATTR_OPERATION_POINTWISE_XDESC));
    const array &b = has_b ? of(has_b) : x, &t = has_t ? of(has_t) : x;
    array &y = of(op.child(CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
    size_t axis = kind->has(CUDNN_ATTR_POINTWISE_AXIS)
                      ? (size_t)kind->one<int64_t>(CUDNN_ATTR_POINTWISE_AXIS)
                      : 0;
    each(y.dims, [&](const numbers &i) {
        float value =
            mode == CUDNN_POINTWISE_GEN_INDEX
                ? (float)i[axis]
                : formula(mode, x.get(x.at(i)), b.get(b.at(i)), t.get(t.at(i)));
        y.put(y.at(i), value);
    });
}

float
joined(cudnnReduceTensorOp_t op, float sum, float x)
{
    switch (op) {
    case CUDNN_REDUCE_TENSOR_MUL:
        return sum * x;
    case CUDNN_REDUCE_TENSOR_MIN:
        return std::isnan(x) || x < sum ? x : sum;
    case CUDNN_REDUCE_TENSOR_MAX:
        return std::isnan(x) || x > sum ? x : sum;
    case CUDNN_REDUCE_TENSOR_AMAX:
        return std::max(sum, fabsf(x));
    case CUDNN_REDUCE_TENSOR_NORM1:
        return sum + fabsf(x);
    case CUDNN_REDUCE_TENSOR_NORM2:
        return sum + x * x;
    default:
        return sum + x;
    }
}

void
runner::reduce(const sim_desc &op)
{
    sim_ref kind = op.child(CUDNN_ATTR_OPERATION_REDUCTION_DESC);
    cudnnReduceTensorOp_t how =
        kind->one<cudnnReduceTensorOp_t>(CUDNN_ATTR_REDUCTION_OPERATOR);
    const array &x = of(op.child(CUDNN_ATTR_OPERATION_REDUCTION_XDESC));
    array &y = of(op.child(CUDNN_ATTR_OPERATION_REDUCTION_YDESC));
    numbers inner(x.dims.size());
    int64_t count = 1;
    for (size_t i = 0; i < inner.size(); i++)
        count *= inner[i] = y.dims[i] == 1 ? x.dims[i] : 1;
    each(y.dims, [&](const numbers &i) {
        float sum = how == CUDNN_REDUCE_TENSOR_MAX   ? -INFINITY
                    : how == CUDNN_REDUCE_TENSOR_MIN ? INFINITY
                    : how == CUDNN_REDUCE_TENSOR_MUL ? 1
                                                     : 0;
        each(inner, [&](const numbers &k) {
            numbers at = i;
            for (size_t n = 0; n < k.size(); n++)
                at[n] += k[n];
            sum = joined(how, sum, x.get(x.at(at)));
        });
        y.put(y.at(i), how == CUDNN_REDUCE_TENSOR_AVG     ? sum / (float)count
                       : how == CUDNN_REDUCE_TENSOR_NORM2 ? sqrtf(sum)
                                                          : sum);
    });
}

void
runner::matmul(const sim_desc &op)
{
    const array &a = of(op.child(CUDNN_ATTR_OPERATION_MATMUL_ADESC));
    const array &b = of(op.child(CUDNN_ATTR_OPERATION_MATMUL_BDESC));
    array &c = of(op.child(CUDNN_ATTR_OPERATION_MATMUL_CDESC));
    size_t n = c.dims.size();
    product_sum sum(engine, a.dtype, run);
    int64_t uid = op.child(CUDNN_ATTR_OPERATION_MATMUL_CDESC)
                      ->one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
    bool adds = c.memory && totals.count(uid);
    each(c.dims, [&](const numbers &i) {
        numbers left = i, right = i;
        for (int64_t k = 0; k < a.dims[n - 1]; k++) {
            left[n - 1] = right[n - 2] = k;
            sum.add(a.get(a.at(left)), b.get(b.at(right)));
        }
        c.put(c.at(i), adds ? c.get(c.at(i)) + sum.take() : sum.take());
    });
}

/* Offset of element (a, b, c, d): convolutions come by here for every product. */
static inline int64_t
at4(const array &x, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return a * x.strides[0] + b * x.strides[1] + c * x.strides[2] + d * x.strides[3];
}

/* Calls BODY(a, b, c, d) with every index below the four. */
template <class Body>
static inline void
each4(int64_t A, int64_t B, int64_t C, int64_t D, Body body)
{
    for (int64_t a = 0; a < A; a++)
        for (int64_t b = 0; b < B; b++)
            for (int64_t c = 0; c < C; c++)
                for (int64_t d = 0; d < D; d++)
                    body(a, b, c, d);
}

/* The three convolutions are sums of products of an element, ONES[one], with a row of
 * LANES neighbours, ROWS[row + lane], one result for each lane. In every result the
 * products come in the same order: that of the sum's letters below. */
struct term {
    int64_t one, row;
};

struct convolution {
    array &x, &w, &y;
    numbers pad, stride, dilation;
    int64_t C, H, V, K, R, S, P, Q, group_in, group_out, groups;
    product_sum sum;
    std::vector<term> terms;
    std::vector<float> ones, rows, lanes;

    convolution(array &x_, array &w_, array &y_, const sim_ref &kind,
                const product_sum &s)
        : x(x_), w(w_), y(y_),
          pad(kind->all<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS)),
          stride(kind->all<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES)),
          dilation(kind->all<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS)), C(x.dims[1]),
          H(x.dims[2]), V(x.dims[3]), K(w.dims[0]), R(w.dims[2]), S(w.dims[3]),
          P(y.dims[2]), Q(y.dims[3]), group_in(w.dims[1]),
          group_out(K / (C / group_in)), groups(C / group_in), sum(s)
    {
    }
    int64_t at_x(int64_t n, int64_t c, int64_t h, int64_t v) const
    {
        return ((n * C + c) * H + h) * V + v;
    }
    int64_t at_y(int64_t n, int64_t k, int64_t p, int64_t q) const
    {
        return ((n * K + k) * P + p) * Q + q;
    }
    /* Copies A's elements as factors, that of an index to the place PLACE(index). */
    template <class Place>
    std::vector<float> gathered(const array &a, Place place) const
    {
        std::vector<float> out((size_t)(a.dims[0] * a.dims[1] * a.dims[2] * a.dims[3]));
        each4(a.dims[0], a.dims[1], a.dims[2], a.dims[3],
              [&](int64_t i, int64_t j, int64_t k, int64_t l) {
                  out[(size_t)place(i, j, k, l)] =
                      sum.factor(a.get(at4(a, i, j, k, l)));
              });
        return out;
    }
    /* The term of y's pixel (p, q) and tap (r, s), if the tap is inside of x. */
    bool pixel(int64_t p, int64_t q, int64_t r, int64_t s, int64_t *h, int64_t *v) const
    {
        *h = p * stride[0] - pad[0] + r * dilation[0];
        *v = q * stride[1] - pad[1] + s * dilation[1];
        return *h >= 0 && *h < H && *v >= 0 && *v < V;
    }
    /* Adds up all terms, and forgets them. */
    void add_up(int64_t n)
    {
        lanes.assign((size_t)n, 0);
        if (sum.backwards)
            std::reverse(terms.begin(), terms.end());
        for (const term &t : terms) {
            const float one = ones[(size_t)t.one], *row = &rows[(size_t)t.row];
            float *to = lanes.data();
            if (sum.half)
                for (int64_t l = 0; l < n; l++)
                    to[l] = rounded(CUDNN_DATA_HALF, to[l] + one * row[l]);
            else
                for (int64_t l = 0; l < n; l++)
                    to[l] += one * row[l];
        }
        terms.clear();
    }
    void finish(array &out, int64_t at, size_t lane, float beta) const
    {
        float result = lanes[lane];
        out.put(at, beta == 0 ? result : result + beta * out.get(at));
    }
    void forward(float beta);
    void data(float beta);
    void filter(float beta);
};

/* y[n,k,p,q] = sum over c, r, s; lanes are a group's k. */
void
convolution::forward(float beta)
{
    ones = gathered(x, [&](int64_t n, int64_t c, int64_t h, int64_t v) {
        return at_x(n, c, h, v);
    });
    auto at_row = [&](int64_t g, int64_t c, int64_t r, int64_t s) {
        return (((g * group_in + c) * R + r) * S + s) * group_out;
    };
    rows = gathered(w, [&](int64_t k, int64_t c, int64_t r, int64_t s) {
        return at_row(k / group_out, c, r, s) + k % group_out;
    });
    each4(y.dims[0], groups, P, Q, [&](int64_t n, int64_t g, int64_t p, int64_t q) {
        each4(1, group_in, R, S, [&](int64_t, int64_t c, int64_t r, int64_t s) {
            int64_t h, v;
            if (pixel(p, q, r, s, &h, &v))
                terms.push_back({at_x(n, g * group_in + c, h, v), at_row(g, c, r, s)});
        });
        add_up(group_out);
        for (int64_t k = 0; k < group_out; k++)
            finish(y, at4(y, n, g * group_out + k, p, q), (size_t)k, beta);
    });
}

/* dx[n,c,i,j] = sum over k, r, s; lanes are a group's c. */
void
convolution::data(float beta)
{
    ones = gathered(y, [&](int64_t n, int64_t k, int64_t p, int64_t q) {
        return at_y(n, k, p, q);
    });
    auto at_row = [&](int64_t k, int64_t r, int64_t s) {
        return ((k * R + r) * S + s) * group_in;
    };
    rows = gathered(w, [&](int64_t k, int64_t c, int64_t r, int64_t s) {
        return at_row(k, r, s) + c;
    });
    each4(x.dims[0], groups, H, V, [&](int64_t n, int64_t g, int64_t i, int64_t j) {
        each4(1, group_out, R, S, [&](int64_t, int64_t in, int64_t r, int64_t s) {
            int64_t h = i + pad[0] - r * dilation[0], v = j + pad[1] - s * dilation[1];
            int64_t k = g * group_out + in;
            if (h >= 0 && v >= 0 && h % stride[0] == 0 && v % stride[1] == 0 &&
                h / stride[0] < P && v / stride[1] < Q)
                terms.push_back(
                    {at_y(n, k, h / stride[0], v / stride[1]), at_row(k, r, s)});
        });
        add_up(group_in);
        for (int64_t c = 0; c < group_in; c++)
            finish(x, at4(x, n, g * group_in + c, i, j), (size_t)c, beta);
    });
}

/* dw[k,c,r,s] = sum over n, p, q; lanes are a group's k. */
void
convolution::filter(float beta)
{
    ones = gathered(x, [&](int64_t n, int64_t c, int64_t h, int64_t v) {
        return at_x(n, c, h, v);
    });
    auto at_row = [&](int64_t n, int64_t p, int64_t q) {
        return ((n * P + p) * Q + q) * K;
    };
    rows = gathered(y, [&](int64_t n, int64_t k, int64_t p, int64_t q) {
        return at_row(n, p, q) + k;
    });
    each4(groups, group_in, R, S, [&](int64_t g, int64_t c, int64_t r, int64_t s) {
        each4(1, y.dims[0], P, Q, [&](int64_t, int64_t n, int64_t p, int64_t q) {
            int64_t h, v;
            if (pixel(p, q, r, s, &h, &v))
                terms.push_back(
                    {at_x(n, g * group_in + c, h, v), at_row(n, p, q) + g * group_out});
        });
        add_up(group_out);
        for (int64_t k = 0; k < group_out; k++)
            finish(w, at4(w, g * group_out + k, c, r, s), (size_t)k, beta);
    });
}

void
runner::convolve(const sim_desc &op)
{
    const sim_operands *o = sim_operands_of(op.type);
    bool data = op.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
    bool filter =
        op.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
    array &x = of(op.child(data ? o->out : o->in[0]));
    array &w = of(op.child(filter ? o->out : o->in[1]));
    array &y = of(op.child(data ? o->in[0] : filter ? o->in[1] : o->out));
    float beta = op.one<float>(o->beta);
    convolution c(x, w, y, op.child(o->desc), product_sum(engine, x.dtype, run));
    if (filter)
        c.filter(beta);
    else if (data)
        c.data(beta);
    else
        c.forward(beta);
}

/* The elements of x by their place in memory are those of y by theirs. */
void
runner::reshape(const sim_desc &op)
{
    const array &x = of(op.child(CUDNN_ATTR_OPERATION_RESHAPE_XDESC));
    array &y = of(op.child(CUDNN_ATTR_OPERATION_RESHAPE_YDESC));
    each(y.dims, [&](const numbers &i) { y.put(y.at(i), x.get(y.at(i))); });
}

/* Random bits of seed, offset and element (splitmix64): no generator of cuDNN's. */
void
runner::random(const sim_desc &op)
{
    sim_ref kind = op.child(CUDNN_ATTR_OPERATION_RNG_DESC);
    double p = kind->one<double>(CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY);
    const array &seed = of(op.child(CUDNN_ATTR_OPERATION_RNG_SEED));
    const array &offset = of(op.child(CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC));
    array &y = of(op.child(CUDNN_ATTR_OPERATION_RNG_YDESC));
    uint64_t key = *(const uint64_t *)seed.memory * 0x9e3779b97f4a7c15u +
                   *(const uint64_t *)offset.memory * 0xd1342543de82ef95u;
    uint64_t element = 0;
    each(y.dims, [&](const numbers &i) {
        uint64_t z = key + ++element * 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        z ^= z >> 31;
        y.put(y.at(i), (double)(z >> 11) * 0x1p-53 < p);
    });
}

} // namespace

int64_t
sim_size_of(cudnnDataType_t dtype)
{
    switch (dtype) {
    case CUDNN_DATA_DOUBLE:
    case CUDNN_DATA_INT64:
        return 8;
    case CUDNN_DATA_BFLOAT16:
    case CUDNN_DATA_HALF:
        return 2;
    case CUDNN_DATA_UINT8:
    case CUDNN_DATA_BOOLEAN:
        return 1;
    default:
        return 4;
    }
}

int64_t
sim_extent(const sim_desc &t)
{
    numbers dims = t.all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
    numbers strides = t.all<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
    int64_t last = 0;
    for (size_t i = 0; i < dims.size(); i++)
        last += (dims[i] - 1) * strides[i];
    return (last + 1) *
           sim_size_of(t.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE));
}

void
sim_compute(const sim_desc &graph, const sim_engine &engine,
            const std::map<int64_t, void *> &pointers)
{
    static int64_t runs;
    runner r = {engine, runs++, {}, {}};
    const std::vector<sim_ref> &ops = graph.children(CUDNN_ATTR_OPERATIONGRAPH_OPS);
    for (const sim_ref &op : ops)
        for (const auto &[name, a] : op->attr)
            for (const sim_ref &t : a.children) {
                if (t->type != CUDNN_BACKEND_TENSOR_DESCRIPTOR)
                    continue;
                int64_t uid = t->one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
                array &v = r.arrays[uid];
                v.dtype = t->one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
                v.dims = t->all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
                v.strides = t->all<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
                if (t->flag(CUDNN_ATTR_TENSOR_IS_VIRTUAL))
                    v.values.assign((size_t)(sim_extent(*t) / sim_size_of(v.dtype)),
                                    NAN);
                else
                    v.memory = (char *)pointers.at(uid);
            }
    for (const sim_ref &op : ops)
        if (op->type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
            r.totals.insert(op->child(CUDNN_ATTR_OPERATION_POINTWISE_XDESC)
                                ->one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID));
    for (const sim_ref &op : ops)
        switch (op->type) {
        case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
            r.pointwise(*op);
            break;
        case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
            r.reduce(*op);
            break;
        case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
            r.matmul(*op);
            break;
        case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
            r.reshape(*op);
            break;
        case CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR:
            r.random(*op);
            break;
        default:
            r.convolve(*op);
        }
}
