/* SPDX-License-Identifier: Apache-2.0 */
/* cudnn.cc: cuDNN's graph API on the simulator: descriptors, heuristics, plans.
 *
 * One table says which attributes a descriptor has, of what type and how many. Setting
 * anything else, or anything on a descriptor that is final, fails as NVIDIA documents;
 * what the attributes mean together is looked at when a descriptor is made final
 * (cudnn_check.cc). The heuristics offer four engines, worst first, whose notes tell
 * the truth: who takes one that he should have passed over gets other numbers. */
#include <cstring>

#include "cudnn_sim.h"
#include "state.h"

namespace
{

thread_local std::string last;

cudnnStatus_t
refuse(cudnnStatus_t status, const std::string &why)
{
    last = why;
    return status;
}

struct rule {
    cudnnBackendDescriptorType_t desc;
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t least, most;
    bool needed;
};

const rule rules[] = {
#define R(d, n, t, least, most, needed)                                                \
    {                                                                                  \
        CUDNN_BACKEND_##d##_DESCRIPTOR, CUDNN_ATTR_##n, CUDNN_TYPE_##t, least, most,   \
            needed                                                                     \
    }
    R(TENSOR, TENSOR_UNIQUE_ID, INT64, 1, 1, true),
    R(TENSOR, TENSOR_DATA_TYPE, DATA_TYPE, 1, 1, true),
    R(TENSOR, TENSOR_DIMENSIONS, INT64, 1, CUDNN_DIM_MAX, true),
    R(TENSOR, TENSOR_STRIDES, INT64, 1, CUDNN_DIM_MAX, true),
    R(TENSOR, TENSOR_BYTE_ALIGNMENT, INT64, 1, 1, true),
    R(TENSOR, TENSOR_IS_VIRTUAL, BOOLEAN, 1, 1, false),
    R(TENSOR, TENSOR_IS_BY_VALUE, BOOLEAN, 1, 1, false),
    R(POINTWISE, POINTWISE_MODE, POINTWISE_MODE, 1, 1, true),
    R(POINTWISE, POINTWISE_MATH_PREC, DATA_TYPE, 1, 1, true),
    R(POINTWISE, POINTWISE_AXIS, INT64, 1, 1, false),
    R(REDUCTION, REDUCTION_COMP_TYPE, DATA_TYPE, 1, 1, true),
    R(REDUCTION, REDUCTION_OPERATOR, REDUCTION_OPERATOR_TYPE, 1, 1, true),
    R(MATMUL, MATMUL_COMP_TYPE, DATA_TYPE, 1, 1, true),
    R(CONVOLUTION, CONVOLUTION_CONV_MODE, CONVOLUTION_MODE, 1, 1, true),
    R(CONVOLUTION, CONVOLUTION_COMP_TYPE, DATA_TYPE, 1, 1, true),
    R(CONVOLUTION, CONVOLUTION_SPATIAL_DIMS, INT64, 1, 1, true),
    R(CONVOLUTION, CONVOLUTION_DILATIONS, INT64, 1, CUDNN_DIM_MAX, true),
    R(CONVOLUTION, CONVOLUTION_FILTER_STRIDES, INT64, 1, CUDNN_DIM_MAX, true),
    R(CONVOLUTION, CONVOLUTION_PRE_PADDINGS, INT64, 1, CUDNN_DIM_MAX, true),
    R(CONVOLUTION, CONVOLUTION_POST_PADDINGS, INT64, 1, CUDNN_DIM_MAX, true),
    R(RNG, RNG_DISTRIBUTION, RNG_DISTRIBUTION, 1, 1, true),
    R(RNG, RNG_BERNOULLI_DIST_PROBABILITY, DOUBLE, 1, 1, true),
    R(OPERATION_POINTWISE, OPERATION_POINTWISE_PW_DESCRIPTOR, BACKEND_DESCRIPTOR, 1, 1,
      true),
    R(OPERATION_POINTWISE, OPERATION_POINTWISE_XDESC, BACKEND_DESCRIPTOR, 1, 1, true),
    R(OPERATION_POINTWISE, OPERATION_POINTWISE_BDESC, BACKEND_DESCRIPTOR, 1, 1, false),
    R(OPERATION_POINTWISE, OPERATION_POINTWISE_TDESC, BACKEND_DESCRIPTOR, 1, 1, false),
    R(OPERATION_POINTWISE, OPERATION_POINTWISE_YDESC, BACKEND_DESCRIPTOR, 1, 1, true),
    R(OPERATION_REDUCTION, OPERATION_REDUCTION_DESC, BACKEND_DESCRIPTOR, 1, 1, true),
    R(OPERATION_REDUCTION, OPERATION_REDUCTION_XDESC, BACKEND_DESCRIPTOR, 1, 1, true),
    R(OPERATION_REDUCTION, OPERATION_REDUCTION_YDESC, BACKEND_DESCRIPTOR, 1, 1, true),
    R(OPERATION_MATMUL, OPERATION_MATMUL_DESC, BACKEND_DESCRIPTOR, 1, 1, true),
    R(OPERATION_MATMUL, OPERATION_MATMUL_ADESC, BACKEND_DESCRIPTOR, 1, 1, true),
    R(OPERATION_MATMUL, OPERATION_MATMUL_BDESC, BACKEND_DESCRIPTOR, 1, 1, true),
    R(OPERATION_MATMUL, OPERATION_MATMUL_CDESC, BACKEND_DESCRIPTOR, 1, 1, true),
    R(OPERATION_RESHAPE, OPERATION_RESHAPE_XDESC, BACKEND_DESCRIPTOR, 1, 1, true),
    R(OPERATION_RESHAPE, OPERATION_RESHAPE_YDESC, BACKEND_DESCRIPTOR, 1, 1, true),
    R(OPERATION_RNG, OPERATION_RNG_DESC, BACKEND_DESCRIPTOR, 1, 1, true),
    R(OPERATION_RNG, OPERATION_RNG_SEED, BACKEND_DESCRIPTOR, 1, 1, true),
    R(OPERATION_RNG, OPERATION_RNG_OFFSET_DESC, BACKEND_DESCRIPTOR, 1, 1, true),
    R(OPERATION_RNG, OPERATION_RNG_YDESC, BACKEND_DESCRIPTOR, 1, 1, true),
#define CONV(D, A, x, w, y)                                                            \
    R(OPERATION_CONVOLUTION_##D, OPERATION_CONVOLUTION_##A##_ALPHA, FLOAT, 1, 1,       \
      true),                                                                           \
        R(OPERATION_CONVOLUTION_##D, OPERATION_CONVOLUTION_##A##_BETA, FLOAT, 1, 1,    \
          true),                                                                       \
        R(OPERATION_CONVOLUTION_##D, OPERATION_CONVOLUTION_##A##_CONV_DESC,            \
          BACKEND_DESCRIPTOR, 1, 1, true),                                             \
        R(OPERATION_CONVOLUTION_##D, OPERATION_CONVOLUTION_##A##_##x,                  \
          BACKEND_DESCRIPTOR, 1, 1, true),                                             \
        R(OPERATION_CONVOLUTION_##D, OPERATION_CONVOLUTION_##A##_##w,                  \
          BACKEND_DESCRIPTOR, 1, 1, true),                                             \
        R(OPERATION_CONVOLUTION_##D, OPERATION_CONVOLUTION_##A##_##y,                  \
          BACKEND_DESCRIPTOR, 1, 1, true)
    CONV(FORWARD, FORWARD, X, W, Y),
    CONV(BACKWARD_DATA, BWD_DATA, DX, W, DY),
    CONV(BACKWARD_FILTER, BWD_FILTER, X, DW, DY),
#undef CONV
    R(OPERATIONGRAPH, OPERATIONGRAPH_HANDLE, HANDLE, 1, 1, true),
    R(OPERATIONGRAPH, OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, 1, 100, true),
    R(ENGINEHEUR, ENGINEHEUR_OPERATION_GRAPH, BACKEND_DESCRIPTOR, 1, 1, true),
    R(ENGINEHEUR, ENGINEHEUR_MODE, HEUR_MODE, 1, 1, true),
    R(EXECUTION_PLAN, EXECUTION_PLAN_HANDLE, HANDLE, 1, 1, true),
    R(EXECUTION_PLAN, EXECUTION_PLAN_ENGINE_CONFIG, BACKEND_DESCRIPTOR, 1, 1, false),
    R(EXECUTION_PLAN, EXECUTION_PLAN_JSON_REPRESENTATION, CHAR, 1, INT64_MAX, false),
    R(VARIANT_PACK, VARIANT_PACK_UNIQUE_IDS, INT64, 1, 1000, true),
    R(VARIANT_PACK, VARIANT_PACK_DATA_POINTERS, VOID_PTR, 1, 1000, true),
    R(VARIANT_PACK, VARIANT_PACK_WORKSPACE, VOID_PTR, 1, 1, true),
    R(ENGINECFG, ENGINECFG_ENGINE, BACKEND_DESCRIPTOR, 1, 1, true),
    R(ENGINECFG, ENGINECFG_KNOB_CHOICES, BACKEND_DESCRIPTOR, 1, 8, false),
    R(ENGINE, ENGINE_OPERATION_GRAPH, BACKEND_DESCRIPTOR, 1, 1, true),
    R(ENGINE, ENGINE_GLOBAL_INDEX, INT64, 1, 1, true),
    R(KNOB_CHOICE, KNOB_CHOICE_KNOB_TYPE, KNOB_TYPE, 1, 1, true),
    R(KNOB_CHOICE, KNOB_CHOICE_KNOB_VALUE, INT64, 1, 1, true),
#undef R
};

size_t
element_size(cudnnBackendAttributeType_t type)
{
    switch (type) {
    case CUDNN_TYPE_CHAR:
    case CUDNN_TYPE_BOOLEAN:
        return 1;
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
        return 8;
    default:
        return 4; /* float and the enumerations */
    }
}

/* What a user holds. */
struct holder {
    std::shared_ptr<sim_desc> desc;
};

sim_desc *
of(cudnnBackendDescriptor_t d)
{
    return ((holder *)d)->desc.get();
}

/* From the worst to the best that is exact: an engine with a note computes as the note
 * says (cudnn_run.cc). Only the last keeps all bits of f32, and it is for single
 * convolutions. */
const sim_engine engines[] = {
    {13,
     {CUDNN_NUMERICAL_NOTE_TENSOR_CORE,
      CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION},
     0},
    {12, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, 0},
    {11, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, 1024},
    {3, {}, 4096},
};

const sim_engine *
engine_of(const sim_desc &engine)
{
    int64_t index = engine.one<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
    for (const sim_engine &e : engines)
        if (e.index == index)
            return &e;
    return nullptr;
}

template <class T>
void
put(sim_desc &d, int name, cudnnBackendAttributeType_t type, T value)
{
    sim_attr &a = d.attr[name];
    a.type = type;
    a.bytes.assign((const char *)&value, (const char *)&value + sizeof value);
}

void
put(sim_desc &d, int name, const sim_ref &child)
{
    sim_attr &a = d.attr[name];
    a.type = CUDNN_TYPE_BACKEND_DESCRIPTOR;
    a.children.push_back(child);
}

std::shared_ptr<sim_desc>
made(cudnnBackendDescriptorType_t type)
{
    std::shared_ptr<sim_desc> d = std::make_shared<sim_desc>();
    d->type = type;
    d->final = true;
    return d;
}

/* The configuration of engine E for GRAPH. */
std::shared_ptr<sim_desc>
configure(const sim_ref &graph, const sim_engine &e)
{
    std::shared_ptr<sim_desc> engine = made(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    put(*engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph);
    put(*engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, e.index);
    std::shared_ptr<sim_desc> knob = made(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
    put(*knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE,
        CUDNN_KNOB_TYPE_TILE_SIZE);
    put(*knob, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, (int64_t)1);
    std::shared_ptr<sim_desc> config = made(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    put(*config, CUDNN_ATTR_ENGINECFG_ENGINE, engine);
    put(*config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, knob);
    return config;
}

/* ---- a plan as text: descriptors with their attributes, in brackets ---- */

void
write_desc(std::string &s, const sim_desc &d)
{
    s += "[" + std::to_string((int)d.type);
    for (const auto &[name, a] : d.attr) {
        s += " " + std::to_string(name) + ":" + std::to_string((int)a.type) + "=";
        for (unsigned char byte : a.bytes) {
            s += "0123456789abcdef"[byte / 16];
            s += "0123456789abcdef"[byte % 16];
        }
        for (const sim_ref &child : a.children)
            write_desc(s, *child);
        s += ";";
    }
    s += "]";
}

/* Reads what write_desc wrote; NULL for anything else. */
std::shared_ptr<sim_desc>
read_desc(const char *&s)
{
    char *end;
    if (*s++ != '[')
        return nullptr;
    std::shared_ptr<sim_desc> d =
        made((cudnnBackendDescriptorType_t)strtol(s, &end, 10));
    for (s = end; *s == ' ';) {
        int name = (int)strtol(s + 1, &end, 10);
        if (*end != ':')
            return nullptr;
        sim_attr &a = d->attr[name];
        a.type = (cudnnBackendAttributeType_t)strtol(end + 1, &end, 10);
        if (*end != '=')
            return nullptr;
        for (s = end + 1; *s && *s != ';';) {
            unsigned byte;
            if (*s == '[') {
                a.children.push_back(read_desc(s));
                if (!a.children.back())
                    return nullptr;
            } else if (sscanf(s, "%2x", &byte) == 1) {
                a.bytes.push_back((char)byte);
                s += 2;
            } else {
                return nullptr;
            }
        }
        if (*s++ != ';')
            return nullptr;
    }
    return *s++ == ']' ? d : nullptr;
}

const char text_head[] = "{\"gpusim\":\"";

std::string
text_of(const sim_desc &plan)
{
    std::string s = text_head;
    write_desc(s, *plan.child(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG));
    return s + "\"}";
}

/* Fills the plan's configuration in from its text. */
cudnnStatus_t
read_plan(sim_desc &plan)
{
    const sim_attr &a = plan.attr.at(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION);
    std::string text(a.bytes.begin(), a.bytes.end());
    if (text.compare(0, sizeof text_head - 1, text_head) != 0)
        return refuse(CUDNN_STATUS_BAD_PARAM, "the text is not a plan's");
    const char *s = text.c_str() + sizeof text_head - 1;
    sim_ref config = read_desc(s);
    if (!config || strcmp(s, "\"}") != 0)
        return refuse(CUDNN_STATUS_BAD_PARAM, "the plan's text is damaged");
    put(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
    return CUDNN_STATUS_SUCCESS;
}

const rule *
rule_of(cudnnBackendDescriptorType_t desc, int name)
{
    for (const rule &r : rules)
        if (r.desc == desc && r.name == name)
            return &r;
    return nullptr;
}

/* Copies N elements to a caller who has room for REQUESTED, and says how many there
 * are. */
cudnnStatus_t
answer(const void *from, int64_t n, size_t size, int64_t requested, int64_t *count,
       void *to)
{
    if (count)
        *count = n;
    int64_t copied = n < requested ? n : requested;
    if (to && copied > 0)
        memcpy(to, from, (size_t)copied * size);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
answer_descs(const std::vector<sim_ref> &from, int64_t requested, int64_t *count,
             void *to)
{
    cudnnBackendDescriptor_t *into = (cudnnBackendDescriptor_t *)to;
    *count = (int64_t)from.size();
    for (int64_t i = 0; into && i < requested && i < (int64_t)from.size(); i++) {
        holder *h = (holder *)into[i];
        if (!h || h->desc->type != from[(size_t)i]->type)
            return refuse(CUDNN_STATUS_BAD_PARAM,
                          "results go into descriptors of their type");
        h->desc = std::const_pointer_cast<sim_desc>(from[(size_t)i]);
    }
    return CUDNN_STATUS_SUCCESS;
}

/* Exact engines are for single convolutions. */
std::vector<sim_ref>
results_of(const sim_desc &heur)
{
    std::vector<sim_ref> list;
    sim_ref graph = heur.child(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    bool single = graph->children(CUDNN_ATTR_OPERATIONGRAPH_OPS).size() == 1;
    for (const sim_engine &e : engines)
        if (single || !e.notes.empty())
            list.push_back(configure(graph, e));
    return list;
}

} // namespace

struct cudnnContext {
    cudaStream_t stream;
};

/* ---- the interface ---- */

size_t
cudnnGetVersion(void)
{
    return 91900;
}

const char *
cudnnGetErrorString(cudnnStatus_t status)
{
    return status == CUDNN_STATUS_SUCCESS ? "CUDNN_STATUS_SUCCESS"
                                          : "a status of the simulator";
}

void
cudnnGetLastErrorString(char *message, size_t max_size)
{
    snprintf(message, max_size, "%s", last.c_str());
    last.clear();
}

cudnnStatus_t
cudnnCreate(cudnnHandle_t *handle)
{
    *handle = new cudnnContext{nullptr};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnDestroy(cudnnHandle_t handle)
{
    delete handle;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                             cudnnBackendDescriptor_t *out)
{
    bool known = false;
    for (const rule &r : rules)
        known = known || r.desc == type;
    if (!known)
        return refuse(CUDNN_STATUS_NOT_SUPPORTED,
                      "the simulator has no such descriptor");
    holder *h = new holder{std::make_shared<sim_desc>()};
    h->desc->type = type;
    *out = h;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d)
{
    delete (holder *)d;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnBackendSetAttribute(cudnnBackendDescriptor_t to, cudnnBackendAttributeName_t name,
                         cudnnBackendAttributeType_t type, int64_t count,
                         const void *elements)
{
    if (!to || !elements)
        return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "a null pointer");
    sim_desc *d = of(to);
    const rule *r = rule_of(d->type, name);
    if (d->final)
        return refuse(CUDNN_STATUS_NOT_INITIALIZED, "the descriptor is final");
    if (!r)
        return refuse(CUDNN_STATUS_BAD_PARAM, "the descriptor has no such attribute");
    if (r->type != type)
        return refuse(CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE,
                      "the attribute has another type");
    if (count < r->least || count > r->most)
        return refuse(CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND,
                      "a wrong number of elements");
    sim_attr a = {type, {}, {}};
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
        for (int64_t i = 0; i < count; i++) {
            cudnnBackendDescriptor_t child =
                ((const cudnnBackendDescriptor_t *)elements)[i];
            if (!child)
                return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "a null descriptor");
            if (!of(child)->final)
                return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
                              "an operand is not final");
            a.children.push_back(((holder *)child)->desc);
        }
    } else {
        const char *from = (const char *)elements;
        a.bytes.assign(from, from + (size_t)count * element_size(type));
    }
    d->attr[name] = a;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnBackendFinalize(cudnnBackendDescriptor_t to)
{
    if (!to)
        return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "a null descriptor");
    sim_desc *d = of(to);
    bool text = d->has(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION);
    for (const rule &r : rules)
        if (r.desc == d->type && r.needed && !d->has(r.name))
            return refuse(CUDNN_STATUS_BAD_PARAM,
                          "attribute " + std::to_string((int)r.name) + " is missing");
    if (d->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
        if (d->has(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG) == text)
            return refuse(CUDNN_STATUS_BAD_PARAM,
                          "a plan has a configuration or a text");
        cudnnStatus_t status = text ? read_plan(*d) : CUDNN_STATUS_SUCCESS;
        if (status != CUDNN_STATUS_SUCCESS)
            return status;
    }
    std::string why;
    cudnnStatus_t status = sim_check(*d, why);
    if (status != CUDNN_STATUS_SUCCESS)
        return refuse(status, why);
    d->final = true;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnBackendGetAttribute(cudnnBackendDescriptor_t const from,
                         cudnnBackendAttributeName_t name,
                         cudnnBackendAttributeType_t type, int64_t requested,
                         int64_t *count, void *elements)
{
    const sim_desc &d = *of(from);
    if (!d.final)
        return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
                      "the descriptor is not final");
    if (d.type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR &&
        name == CUDNN_ATTR_ENGINEHEUR_RESULTS)
        return answer_descs(results_of(d), requested, count, elements);
    if (d.type == CUDNN_BACKEND_ENGINE_DESCRIPTOR &&
        name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE) {
        const sim_engine *e = engine_of(d);
        return answer(e->notes.data(), (int64_t)e->notes.size(), sizeof e->notes[0],
                      requested, count, elements);
    }
    if (d.type == CUDNN_BACKEND_ENGINE_DESCRIPTOR &&
        name == CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE) {
        cudnnBackendBehaviorNote_t note = CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
        sim_ref graph = d.child(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
        bool compiled = graph->children(CUDNN_ATTR_OPERATIONGRAPH_OPS).size() > 1;
        return answer(&note, compiled, sizeof note, requested, count, elements);
    }
    if (d.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR &&
        name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE) {
        sim_ref config = d.child(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
        const sim_engine *e = engine_of(*config->child(CUDNN_ATTR_ENGINECFG_ENGINE));
        return answer(&e->ws, 1, sizeof e->ws, requested, count, elements);
    }
    if (d.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR &&
        name == CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION) {
        std::string text = text_of(d);
        return answer(text.data(), (int64_t)text.size(), 1, requested, count, elements);
    }
    if (!d.has(name) || d.attr.at(name).type != type)
        return refuse(CUDNN_STATUS_BAD_PARAM, "the descriptor has no such attribute");
    const sim_attr &a = d.attr.at(name);
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
        return answer_descs(a.children, requested, count, elements);
    size_t size = element_size(type);
    return answer(a.bytes.data(), (int64_t)(a.bytes.size() / size), size, requested,
                  count, elements);
}

/* ---- executing ---- */

namespace
{

/* Has every tensor of GRAPH that is in memory a pointer to memory of its extent? */
cudnnStatus_t
check_pointers(const sim_desc &graph, const std::map<int64_t, void *> &pointers)
{
    for (const sim_ref &op : graph.children(CUDNN_ATTR_OPERATIONGRAPH_OPS))
        for (const auto &[name, a] : op->attr)
            for (const sim_ref &t : a.children) {
                if (t->type != CUDNN_BACKEND_TENSOR_DESCRIPTOR ||
                    t->flag(CUDNN_ATTR_TENSOR_IS_VIRTUAL))
                    continue;
                int64_t uid = t->one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
                auto found = pointers.find(uid);
                if (found == pointers.end() || !found->second)
                    return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
                                  "tensor " + std::to_string(uid) + " has no address");
                if (t->flag(CUDNN_ATTR_TENSOR_IS_BY_VALUE))
                    continue;
                if ((uintptr_t)found->second %
                    (uint64_t)t->one<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT))
                    return refuse(CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER,
                                  "tensor " + std::to_string(uid) + " is not aligned");
                bool whole;
                if (gpusim_side_of(found->second, (size_t)sim_extent(*t), &whole) !=
                        GPUSIM_DEVICE ||
                    !whole)
                    return refuse(CUDNN_STATUS_EXECUTION_FAILED,
                                  "tensor " + std::to_string(uid) +
                                      " leaves its memory");
            }
    return CUDNN_STATUS_SUCCESS;
}

} // namespace

cudnnStatus_t
cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                    cudnnBackendDescriptor_t pack)
{
    if (!handle || !plan || !pack)
        return refuse(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "a null pointer");
    const sim_desc &p = *of(plan), &v = *of(pack);
    if (!p.final || !v.final)
        return refuse(CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
                      "plan or variant pack is not final");
    std::vector<int64_t> uid = v.all<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    std::vector<void *> ptr = v.all<void *>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    std::map<int64_t, void *> pointers;
    for (size_t i = 0; i < uid.size(); i++)
        pointers[uid[i]] = ptr[i];
    sim_ref config = p.child(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    sim_ref engine = config->child(CUDNN_ATTR_ENGINECFG_ENGINE);
    sim_ref graph = engine->child(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
    cudnnStatus_t status = check_pointers(*graph, pointers);
    if (status != CUDNN_STATUS_SUCCESS)
        return status;
    const sim_engine *e = engine_of(*engine);
    void *ws = v.one<void *>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    bool whole = true;
    if (e->ws > 0 &&
        (!ws || gpusim_side_of(ws, (size_t)e->ws, &whole) != GPUSIM_DEVICE || !whole))
        return refuse(CUDNN_STATUS_BAD_PARAM, "the workspace is too small");
    /* Scalars are taken now, as a kernel's arguments are. */
    std::map<int64_t, float> values;
    for (const sim_ref &op : graph->children(CUDNN_ATTR_OPERATIONGRAPH_OPS))
        for (const auto &[name, a] : op->attr)
            for (const sim_ref &t : a.children)
                if (t->type == CUDNN_BACKEND_TENSOR_DESCRIPTOR &&
                    t->flag(CUDNN_ATTR_TENSOR_IS_BY_VALUE)) {
                    int64_t id = t->one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
                    values[id] = *(const float *)pointers[id];
                }
    cudaError_t code = gpusim_enqueue(handle->stream, "cudnn", [=]() {
        std::map<int64_t, void *> at = pointers;
        std::map<int64_t, float> held = values;
        for (auto &[id, value] : held)
            at[id] = &value;
        if (e->ws > 0)
            memset(ws, 0xab, (size_t)e->ws);
        sim_compute(*graph, *e, at);
    });
    /* Asked after its launch, it takes what another call left for its own. */
    if (code == cudaSuccess)
        code = cudaPeekAtLastError();
    return code == cudaSuccess
               ? CUDNN_STATUS_SUCCESS
               : refuse(CUDNN_STATUS_EXECUTION_FAILED, cudaGetErrorName(code));
}
