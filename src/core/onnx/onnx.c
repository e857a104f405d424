/* SPDX-License-Identifier: Apache-2.0 */
/* onnx.c: see onnx.h. Source: onnx/onnx.proto3, and the operators of opset 20.
 *
 * The model's evaluation is built as a graph twice, with two sizes of the batch, and
 * never run; each node that the output needs becomes one or more of ONNX's. Lengths
 * that differ between the two are those that follow the batch. Weights are written one
 * by one, so that the file is never in memory whole. */
#include "core/onnx/onnx.h"

#include <stdio.h>
#include <string.h>

#include "core/base/seams.h"
#include "core/data/file.h"
#include "core/models/language.h"
#include "core/models/ways.h"
#include "core/models/weight_file.h"
#include "core/onnx/weights.h"

enum { IR_VERSION = 9 };    /* the one that came with opset 20 */
enum { HEAD = 4096 };       /* what stands before the graph is shorter */
#define MAX_BYTES INT32_MAX /* of a protobuf message */

/* ---- the graph ---- */

/* BERT's fields besides the tokens, which other programs give it, too. */
static et_status
add_token_fields(struct et_ctx *cx, const struct et_model *m, struct et_device *dev,
                 struct et_samples *in)
{
    static const char *const names[] = {"attention_mask", "token_type"};
    const bool is_bert = m->type->wants_masked || m->type->reads_tokens;
    for (size_t i = 0; is_bert && i < sizeof names / sizeof *names; i++) {
        struct et_named_tensor *other = &in->other[in->n_others];
        other->name = names[i];
        ET_TRY(et_tensor_new(cx, dev, ET_I32, 2, in->x->desc.shape, ET_ROW_MAJOR,
                             names[i], &other->tensor));
        in->n_others++;
    }
    return ET_OK;
}

/* What the model computes of N samples, on *G, which is the caller's also after a
 * failure. */
static et_status
build(struct et_ctx *cx, struct et_model *m, struct et_device *dev, int64_t n,
      struct et_graph **g, struct et_samples *in, struct et_tensor **y)
{
    const struct et_model_facts *f = &m->facts;
    struct et_desc d;
    if (eti_reads_tokens(m) && f->seq_len < 1)
        return ET_FAIL(cx, ET_EINVAL, "ONNX: nobody says how long the sequences are");
    if (eti_reads_tokens(m))
        et_desc_init(&d, ET_I32, 2, (const int64_t[]){n, f->seq_len}, ET_ROW_MAJOR);
    else if (f->height > 0)
        et_desc_init(&d, ET_F32, 4,
                     (const int64_t[]){n, f->channels, f->height, f->width},
                     ET_CHANNELS_LAST);
    else
        et_desc_init(&d, ET_F32, 2, (const int64_t[]){n, f->channels}, ET_ROW_MAJOR);
    enum et_format format = d.ndim == 4 ? ET_CHANNELS_LAST : ET_ROW_MAJOR;
    ET_TRY(et_tensor_new(cx, dev, d.dtype, d.ndim, d.shape, format, "input", &in->x));
    ET_TRY(eti_ways_samples(cx, m->root, dev, in->x, in));
    ET_TRY(add_token_fields(cx, m, dev, in));
    ET_TRY(et_graph_new(cx, dev, g));
    struct et_forward forward = {.g = *g, .samples = in};
    *y = et_model_forward(m, &forward, in->x);
    return et_graph_status(*g);
}

/* Marks what Y needs. */
static void
mark(bool *needed, const struct et_tensor *y, const struct et_graph *g)
{
    if (y->node)
        needed[y->node->id] = true;
    for (int i = g->n_nodes; i-- > 0;)
        for (int k = 0; needed[i] && k < g->node[i]->n_in; k++)
            if (g->node[i]->in[k] && g->node[i]->in[k]->node)
                needed[g->node[i]->in[k]->node->id] = true;
}

static et_status
write_nodes(struct eti_onnx *o, const struct et_tensor *y)
{
    void *block;
    ET_TRY(et_alloc(o->cx, (size_t)o->g->n_nodes + 1, &block));
    mark(block, y, o->g);
    for (int i = 0; i < o->g->n_nodes; i++)
        if (((const bool *)block)[i])
            eti_onnx_operation(o, o->g->node[i]);
    et_free(o->cx, block);
    ETI_ONNX_NODE(o, "Identity", "output", eti_onnx_name(o, y));
    return o->status;
}

/* ---- inputs and outputs ---- */

/* ValueInfoProto of T, whose lengths in OTHER follow the batch where they differ. */
static void
describe(struct eti_onnx *o, int field, const char *name, const struct et_desc *t,
         const struct et_desc *other, struct eti_proto *graph)
{
    struct eti_proto dim = {.cx = o->cx}, shape = dim, tensor = dim, type = dim,
                     value = dim;
    for (int i = 0; i < t->ndim; i++) {
        eti_proto_clear(&dim);
        if (t->shape[i] == other->shape[i])
            eti_proto_int(&dim, 1, t->shape[i]);
        else
            eti_proto_text(&dim, 2, "batch");
        eti_proto_message(&shape, 1, &dim);
    }
    eti_proto_int(&tensor, 1, eti_onnx_type(t->dtype));
    eti_proto_message(&tensor, 2, &shape);
    eti_proto_message(&type, 1, &tensor);
    eti_proto_text(&value, 1, name);
    eti_proto_message(&value, 2, &type);
    eti_proto_message(graph, field, &value);
    eti_proto_release(&dim);
    eti_proto_release(&shape);
    eti_proto_release(&tensor);
    eti_proto_release(&type);
    eti_proto_release(&value);
}

/* ---- the file ---- */

/* The model's fields before its graph, and those of the graph before its weights, of
 * which there are WEIGHTS bytes. */
static et_status
make_head(struct eti_onnx *o, const struct eti_proto *graph, int64_t weights,
          struct eti_proto *head)
{
    struct eti_proto opset = {.cx = o->cx};
    eti_proto_int(head, ONNX_MODEL_IR_VERSION, IR_VERSION);
    eti_proto_text(head, ONNX_MODEL_PRODUCER, "etude");
    eti_proto_int(&opset, ONNX_OPSET_VERSION, ETI_ONNX_OPSET);
    eti_proto_message(head, ONNX_MODEL_OPSET, &opset);
    eti_proto_release(&opset);
    eti_proto_begin(head, ONNX_MODEL_GRAPH, (uint64_t)((int64_t)graph->n + weights));
    eti_proto_raw(head, graph->bytes, graph->n);
    return graph->status != ET_OK ? graph->status : head->status;
}

/* The model's file, and the one beside it that is there before it. */
static et_status
write_files(struct eti_onnx *o, const struct eti_proto *head,
            struct eti_onnx_weights *w, const char *path, const char *beside)
{
    struct eti_draft model, data = {0};
    ET_TRY(eti_draft_open(o->cx, path, &model));
    et_status status =
        eti_write_all(o->cx, model.fd, model.temporary, head->bytes, head->n);
    if (status == ET_OK && w->location) {
        status = eti_draft_open(o->cx, beside, &data);
        if (status == ET_OK)
            status =
                eti_draft_close(&data, eti_onnx_write_weights(o, w, &model, &data));
    } else if (status == ET_OK) {
        status = eti_onnx_write_weights(o, w, &model, NULL);
    }
    return eti_draft_close(&model, status);
}

static et_status
write_file(struct eti_onnx *o, const struct eti_proto *graph, const char *path,
           struct eti_onnx_info *info)
{
    struct eti_proto head = {.cx = o->cx};
    struct eti_onnx_weights w = {0};
    const char *slash = strrchr(path, '/');
    const int64_t most = info->limit > 0 ? info->limit : MAX_BYTES;
    char beside[ETI_PATH_MAX];
    if (snprintf(beside, sizeof beside, "%s.data", path) >= (int)sizeof beside)
        return ET_FAIL(o->cx, ET_EINVAL, "%.64s...: the path is too long", path);
    int64_t weights = eti_onnx_measure(o, &w, &info->tensors);
    if ((int64_t)graph->n + weights > most - HEAD) {
        w.location = slash ? beside + (slash + 1 - path) : beside;
        weights = eti_onnx_measure(o, &w, &info->tensors);
    }
    et_status status = make_head(o, graph, weights, &head);
    info->nodes = o->n_nodes;
    info->bytes = (int64_t)head.n + weights;
    info->beside = w.at;
    if (status == ET_OK)
        status = write_files(o, &head, &w, path, beside);
    eti_proto_release(&head);
    return status;
}

static et_status export(struct eti_onnx *o, const struct et_tensor *y,
                        const struct et_samples *other, const struct et_tensor *other_y,
                        const char *path, struct eti_onnx_info *info)
{
    struct eti_proto graph = {.cx = o->cx};
    void *block;
    ET_TRY(et_module_leaves(o->cx, o->model->root, ET_PARAM | ET_BUFFER, &o->leaves));
    ET_TRY(et_alloc(o->cx, (size_t)o->leaves.n + 1, &block));
    o->used = block;
    et_status status = write_nodes(o, y);
    eti_proto_text(&graph, ONNX_GRAPH_NAME, o->model->type->info.name);
    describe(o, ONNX_GRAPH_INPUT, "input", &o->in.x->desc, &other->x->desc, &graph);
    for (int i = 0; i < other->n_others; i++)
        describe(o, ONNX_GRAPH_INPUT, other->other[i].name,
                 &o->in.other[i].tensor->desc, &other->other[i].tensor->desc, &graph);
    describe(o, ONNX_GRAPH_OUTPUT, "output", &y->desc, &other_y->desc, &graph);
    eti_proto_raw(&graph, o->constants.bytes, o->constants.n);
    eti_proto_raw(&graph, o->nodes.bytes, o->nodes.n);
    if (status == ET_OK && (o->nodes.status != ET_OK || o->constants.status != ET_OK))
        status = ET_ENOMEM;
    if (status == ET_OK)
        status = write_file(o, &graph, path, info);
    eti_proto_release(&graph);
    return status;
}

static void
release(struct eti_onnx *o)
{
    if (o->leaves.cx)
        et_leaves_release(&o->leaves);
    et_free(o->cx, o->used);
    eti_arena_release(&o->names);
    eti_proto_release(&o->nodes);
    eti_proto_release(&o->constants);
    eti_proto_release(&o->attributes);
    eti_proto_release(&o->scratch);
}

static void
release_samples(struct et_samples *in)
{
    et_tensor_free(&in->x);
    eti_ways_release(in);
}

et_status
eti_onnx_export(struct et_ctx *cx, struct et_model *m, struct et_device *dev,
                const char *path, struct eti_onnx_info *info)
{
    const struct eti_proto empty = {.cx = cx};
    struct eti_onnx o = {.cx = cx,
                         .model = m,
                         .nodes = empty,
                         .constants = empty,
                         .attributes = empty,
                         .scratch = empty};
    struct et_samples other = {0};
    struct et_tensor *y = NULL, *other_y = NULL;
    *info = (struct eti_onnx_info){.limit = info->limit};
    eti_arena_init(&o.names, cx, 16 << 10);
    et_status status = build(cx, m, dev, ONNX_BATCH, &o.g, &o.in, &y);
    if (status == ET_OK)
        status = build(cx, m, dev, ONNX_OTHER_BATCH, &o.other, &other, &other_y);
    if (status == ET_OK && o.g->n_nodes != o.other->n_nodes)
        status = ET_FAIL(cx, ET_ENOTSUP,
                         "ONNX: what the model computes depends on the "
                         "size of the batch");
    if (status == ET_OK)
        status = export(&o, y, &other, other_y, path, info);
    release(&o);
    et_graph_free(&o.other);
    et_graph_free(&o.g);
    release_samples(&other);
    release_samples(&o.in);
    return status;
}
