/* SPDX-License-Identifier: Apache-2.0 */
/* cudnn_check.cc: what the attributes of a descriptor must be to each other, and which
 * operation graphs have an engine.
 *
 * As cuDNN documents for finalize; where ENGINE.md section 3 measured 9.19 to take
 * less, as measured there. */
#include <set>

#include "cudnn_sim.h"

namespace
{

typedef std::vector<int64_t> numbers;

numbers
dims_of(const sim_desc &t)
{
    return t.all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
}

cudnnDataType_t
dtype_of(const sim_desc &t)
{
    return t.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
}

/* A sentence about why not; "" where all is well. */
typedef std::string verdict;

verdict
check_tensor(const sim_desc &t)
{
    numbers dims = dims_of(t), strides = t.all<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
    int64_t align = t.one<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
    if (dims.size() != strides.size())
        return "a tensor has as many strides as dimensions";
    if (dims.size() < 3 && !t.flag(CUDNN_ATTR_TENSOR_IS_BY_VALUE))
        return "a tensor has at least 3 dimensions";
    for (size_t i = 0; i < dims.size(); i++)
        if (dims[i] <= 0 || strides[i] <= 0)
            return "dimensions and strides are positive";
    if (align <= 0 || (align & (align - 1)))
        return "the alignment is a power of two";
    if (t.flag(CUDNN_ATTR_TENSOR_IS_VIRTUAL) && t.flag(CUDNN_ATTR_TENSOR_IS_BY_VALUE))
        return "a tensor is virtual or by value";
    if (t.flag(CUDNN_ATTR_TENSOR_IS_BY_VALUE))
        for (int64_t n : dims)
            if (n != 1)
                return "what is by value is one number";
    return "";
}

/* Do X's axes fit OUT's, or are of length 1? */
bool
broadcasts(const numbers &x, const numbers &out)
{
    if (x.size() != out.size())
        return false;
    for (size_t i = 0; i < x.size(); i++)
        if (x[i] != out[i] && x[i] != 1)
            return false;
    return true;
}

/* Operands beside x that MODE takes. */
int
others_of(cudnnPointwiseMode_t mode)
{
    switch (mode) {
    case CUDNN_POINTWISE_BINARY_SELECT:
        return 2;
    case CUDNN_POINTWISE_ADD:
    case CUDNN_POINTWISE_MUL:
    case CUDNN_POINTWISE_MIN:
    case CUDNN_POINTWISE_MAX:
    case CUDNN_POINTWISE_ADD_SQUARE:
    case CUDNN_POINTWISE_DIV:
    case CUDNN_POINTWISE_MOD:
    case CUDNN_POINTWISE_POW:
    case CUDNN_POINTWISE_SUB:
    case CUDNN_POINTWISE_CMP_EQ:
    case CUDNN_POINTWISE_CMP_NEQ:
    case CUDNN_POINTWISE_CMP_GT:
    case CUDNN_POINTWISE_CMP_GE:
    case CUDNN_POINTWISE_CMP_LT:
    case CUDNN_POINTWISE_CMP_LE:
    case CUDNN_POINTWISE_LOGICAL_AND:
    case CUDNN_POINTWISE_LOGICAL_OR:
        return 1;
    default:
        return 0;
    }
}

verdict
check_pointwise(const sim_desc &op)
{
    sim_ref kind = op.child(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    cudnnPointwiseMode_t mode =
        kind->one<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
    sim_ref b = op.child(CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
    sim_ref t = op.child(CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
    sim_ref x = op.child(CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
    numbers out = dims_of(*op.child(CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
    if (others_of(mode) != (b ? 1 : 0) + (t ? 1 : 0) || (t && !b))
        return "the mode takes another number of operands";
    if (!broadcasts(dims_of(*x), out) || (b && !broadcasts(dims_of(*b), out)) ||
        (t && !broadcasts(dims_of(*t), out)))
        return "operands of a pointwise operation broadcast to its result";
    if (mode == CUDNN_POINTWISE_GEN_INDEX) {
        if (!kind->has(CUDNN_ATTR_POINTWISE_AXIS) ||
            kind->one<int64_t>(CUDNN_ATTR_POINTWISE_AXIS) >= (int64_t)out.size())
            return "GEN_INDEX has an axis of its result";
    } else if (kind->has(CUDNN_ATTR_POINTWISE_AXIS)) {
        return "only GEN_INDEX has an axis";
    }
    return t && dtype_of(*t) != CUDNN_DATA_BOOLEAN
               ? "BINARY_SELECT is decided by a boolean"
               : "";
}

verdict
check_reduction(const sim_desc &op)
{
    numbers x = dims_of(*op.child(CUDNN_ATTR_OPERATION_REDUCTION_XDESC));
    numbers y = dims_of(*op.child(CUDNN_ATTR_OPERATION_REDUCTION_YDESC));
    return broadcasts(y, x) ? "" : "a reduction's result has length 1 or that of x";
}

verdict
check_matmul(const sim_desc &op)
{
    numbers a = dims_of(*op.child(CUDNN_ATTR_OPERATION_MATMUL_ADESC));
    numbers b = dims_of(*op.child(CUDNN_ATTR_OPERATION_MATMUL_BDESC));
    numbers c = dims_of(*op.child(CUDNN_ATTR_OPERATION_MATMUL_CDESC));
    size_t n = c.size();
    if (a.size() != n || b.size() != n || n < 3)
        return "matrices have the same number of dimensions, at least 3";
    if (a[n - 1] != b[n - 2] || a[n - 2] != c[n - 2] || b[n - 1] != c[n - 1])
        return "[M,K] times [K,N] is [M,N]";
    for (size_t i = 0; i + 2 < n; i++)
        if ((a[i] != c[i] && a[i] != 1) || (b[i] != c[i] && b[i] != 1))
            return "batches are those of the result, or 1";
    return "";
}

verdict
check_convolution(const sim_desc &op)
{
    const sim_operands *o = sim_operands_of(op.type);
    sim_ref kind = op.child(o->desc);
    bool data = op.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
    bool filter =
        op.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
    sim_ref tx = op.child(data ? o->out : o->in[0]);
    sim_ref tw = op.child(filter ? o->out : o->in[1]);
    sim_ref ty = op.child(data ? o->in[0] : filter ? o->in[1] : o->out);
    numbers x = dims_of(*tx), w = dims_of(*tw), y = dims_of(*ty);
    numbers pre = kind->all<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
    numbers post = kind->all<int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
    numbers stride = kind->all<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
    numbers dilation = kind->all<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
    size_t axes = (size_t)kind->one<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
    if (x.size() != axes + 2 || w.size() != axes + 2 || y.size() != axes + 2 ||
        pre.size() != axes || post.size() != axes || stride.size() != axes ||
        dilation.size() != axes)
        return "a convolution's tensors have two dimensions more than there are axes";
    if (x[0] != y[0] || w[0] != y[1] || x[1] % w[1] || w[0] % (x[1] / w[1]))
        return "images or channels do not fit";
    for (size_t i = 0; i < axes; i++) {
        if (stride[i] < 1 || dilation[i] < 1 || pre[i] < 0 || post[i] < 0)
            return "strides and dilations are positive, paddings not negative";
        int64_t reach = x[2 + i] + pre[i] + post[i] - dilation[i] * (w[2 + i] - 1) - 1;
        if (reach < 0 || reach / stride[i] + 1 != y[2 + i])
            return "the result is not as large as paddings and strides make it";
    }
    if (dtype_of(*tx) != dtype_of(*tw) || dtype_of(*tx) != dtype_of(*ty))
        return "a convolution's tensors have one data type";
    return "";
}

verdict
check_reshape(const sim_desc &op)
{
    int64_t n[2] = {1, 1};
    for (int64_t d : dims_of(*op.child(CUDNN_ATTR_OPERATION_RESHAPE_XDESC)))
        n[0] *= d;
    for (int64_t d : dims_of(*op.child(CUDNN_ATTR_OPERATION_RESHAPE_YDESC)))
        n[1] *= d;
    return n[0] == n[1] ? "" : "a reshape keeps the number of elements";
}

verdict
check_rng(const sim_desc &op)
{
    for (int name :
         {CUDNN_ATTR_OPERATION_RNG_SEED, CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC})
        if (dtype_of(*op.child(name)) != CUDNN_DATA_INT64)
            return "seed and offset are 64-bit integers";
    return "";
}

/* Every virtual tensor is made once, before it is used, and used; ids name one
 * tensor. */
verdict
check_graph(const sim_desc &graph)
{
    std::map<int64_t, sim_ref> known;
    std::set<int64_t> made, used;
    for (const sim_ref &op : graph.children(CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
        const sim_operands *o = sim_operands_of(op->type);
        if (!o)
            return "an operation graph consists of operations";
        for (int name : {o->in[0], o->in[1], o->in[2], o->out}) {
            sim_ref t = name ? op->child(name) : sim_ref();
            if (!t)
                continue;
            int64_t uid = t->one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
            if (known.count(uid) && known[uid] != t)
                return "two tensors have one unique id";
            known[uid] = t;
            if (name == o->out) {
                if (t->flag(CUDNN_ATTR_TENSOR_IS_BY_VALUE) || !made.insert(uid).second)
                    return "a tensor is the result of two operations, or by value";
            } else {
                if (t->flag(CUDNN_ATTR_TENSOR_IS_VIRTUAL) && !made.count(uid))
                    return "a virtual tensor is used before it is made";
                used.insert(uid);
            }
        }
    }
    for (const auto &[uid, t] : known)
        if (t->flag(CUDNN_ATTR_TENSOR_IS_VIRTUAL) && !used.count(uid))
            return "a virtual tensor is made and not used";
    return "";
}

verdict
check_pack(const sim_desc &pack)
{
    numbers uid = pack.all<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    if (uid.size() != pack.all<void *>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).size())
        return "a variant pack has as many pointers as ids";
    return std::set<int64_t>(uid.begin(), uid.end()).size() == uid.size()
               ? ""
               : "an id stands twice in a variant pack";
}

verdict
check_by_type(const sim_desc &d)
{
    switch (d.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
        return check_tensor(d);
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        return check_pointwise(d);
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
        return check_reduction(d);
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        return check_matmul(d);
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
        return check_convolution(d);
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
        return check_reshape(d);
    case CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR:
        return check_rng(d);
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
        return check_graph(d);
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
        return check_pack(d);
    default:
        return "";
    }
}

} // namespace

const sim_operands *
sim_operands_of(cudnnBackendDescriptorType_t type)
{
    static const sim_operands rows[] = {
        {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
         {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
          CUDNN_ATTR_OPERATION_POINTWISE_TDESC},
         CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
         0},
        {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_REDUCTION_DESC,
         {CUDNN_ATTR_OPERATION_REDUCTION_XDESC, 0, 0},
         CUDNN_ATTR_OPERATION_REDUCTION_YDESC,
         0},
        {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_MATMUL_DESC,
         {CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC, 0},
         CUDNN_ATTR_OPERATION_MATMUL_CDESC,
         0},
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
         {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, 0},
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
         {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, 0},
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
         {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, 0},
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
        {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
         0,
         {CUDNN_ATTR_OPERATION_RESHAPE_XDESC, 0, 0},
         CUDNN_ATTR_OPERATION_RESHAPE_YDESC,
         0},
        {CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR,
         CUDNN_ATTR_OPERATION_RNG_DESC,
         {CUDNN_ATTR_OPERATION_RNG_SEED, CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC, 0},
         CUDNN_ATTR_OPERATION_RNG_YDESC,
         0},
    };
    for (const sim_operands &row : rows)
        if (row.type == type)
            return &row;
    return nullptr;
}

/* Attention's engines want two bytes an element in memory and heads of 8 n elements. */
cudnnStatus_t
sim_supports(const sim_desc &d, std::string &why)
{
    const std::vector<sim_ref> &ops = d.children(CUDNN_ATTR_OPERATIONGRAPH_OPS);
    int products = 0;
    for (const sim_ref &op : ops) {
        if (op->type != CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
            continue;
        products++;
        for (int name :
             {CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC}) {
            sim_ref t = op->child(name);
            bool wide = dtype_of(*t) == CUDNN_DATA_FLOAT;
            if (ops.size() > 1 && wide)
                why = "composite products are of two-byte elements";
        }
    }
    sim_ref first = ops[0]->type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR
                        ? ops[0]->child(CUDNN_ATTR_OPERATION_MATMUL_ADESC)
                        : sim_ref();
    if (products > 1 && first && dims_of(*first).back() % 8)
        why = "heads have a multiple of 8 elements";
    return why.empty() ? CUDNN_STATUS_SUCCESS
                       : CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN;
}

cudnnStatus_t
sim_check(const sim_desc &d, std::string &why)
{
    if (d.type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)
        return sim_supports(*d.child(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH), why);
    why = check_by_type(d);
    return why.empty() ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}
