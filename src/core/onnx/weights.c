/* SPDX-License-Identifier: Apache-2.0 */
/* weights.c: see weights.h. */
#include "core/onnx/weights.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/seams.h"
#include "core/models/weight_file.h"

enum {
    PAGE = 4096, /* a weight of a file beside begins at one, so that it can be mapped */
    LOCATION_EXTERNAL = 1
};

static size_t
bytes_of(const struct et_leaf *leaf)
{
    return (size_t)et_desc_count(&leaf->param->desc) * sizeof(float);
}

static int64_t
next_page(int64_t at)
{
    return (at + PAGE - 1) / PAGE * PAGE;
}

/* ---- fields ---- */

static void
add_entry(struct eti_proto *out, const char *key, const char *value)
{
    struct eti_proto entry = {.cx = out->cx};
    eti_proto_text(&entry, ONNX_ENTRY_KEY, key);
    eti_proto_text(&entry, ONNX_ENTRY_VALUE, value);
    eti_proto_message(out, ONNX_TENSOR_EXTERNAL, &entry);
    eti_proto_release(&entry);
}

/* Says where the N bytes are that begin at BEGIN. */
static void
point_beside(struct eti_proto *out, const char *location, int64_t begin, size_t n)
{
    char number[24];
    add_entry(out, "location", location);
    snprintf(number, sizeof number, "%" PRId64, begin);
    add_entry(out, "offset", number);
    snprintf(number, sizeof number, "%zu", n);
    add_entry(out, "length", number);
    eti_proto_int(out, ONNX_TENSOR_LOCATION, LOCATION_EXTERNAL);
}

/* A TensorProto's fields before its values: OUT has the field of the graph, too. Takes
 * the weight's place in W. */
static void
begin_weight(const struct et_leaf *leaf, struct eti_onnx_weights *w,
             struct eti_proto *out, struct eti_proto *scratch)
{
    const struct et_desc *d = &leaf->param->desc;
    const size_t bytes = bytes_of(leaf), inside = w->location ? 0 : bytes;
    eti_proto_clear(scratch);
    for (int i = 0; i < d->ndim; i++)
        eti_proto_int(scratch, ONNX_TENSOR_DIM, d->shape[i]);
    eti_proto_int(scratch, ONNX_TENSOR_TYPE, ONNX_FLOAT);
    eti_proto_text(scratch, ONNX_TENSOR_NAME, leaf->name);
    if (w->location) {
        const int64_t begin = next_page(w->at);
        point_beside(scratch, w->location, begin, bytes);
        w->at = begin + (int64_t)bytes;
    } else {
        eti_proto_begin(scratch, ONNX_TENSOR_RAW, bytes);
    }
    eti_proto_clear(out);
    eti_proto_begin(out, ONNX_GRAPH_INITIALIZER, scratch->n + inside);
    eti_proto_raw(out, scratch->bytes, scratch->n);
}

int64_t
eti_onnx_measure(struct eti_onnx *o, struct eti_onnx_weights *w, int *n)
{
    struct eti_proto field = {.cx = o->cx};
    int64_t bytes = 0;
    *n = 0;
    w->at = 0;
    for (int i = 0; i < o->leaves.n; i++) {
        if (!o->used[i])
            continue;
        begin_weight(&o->leaves.v[i], w, &field, &o->scratch);
        bytes += (int64_t)field.n;
        bytes += w->location ? 0 : (int64_t)bytes_of(&o->leaves.v[i]);
        (*n)++;
    }
    eti_proto_release(&field);
    return bytes;
}

/* ---- values ---- */

static et_status
write_values(struct eti_onnx *o, const struct eti_draft *to, const struct et_leaf *leaf)
{
    void *values;
    const int64_t count = et_desc_count(&leaf->param->desc);
    ET_TRY(et_alloc(o->cx, bytes_of(leaf) + sizeof(float), &values));
    et_status status = et_param_read(o->cx, leaf->param, leaf->name, 0, values, count);
    if (status == ET_OK)
        status = eti_write_all(o->cx, to->fd, to->temporary, values, bytes_of(leaf));
    et_free(o->cx, values);
    return status;
}

/* Zeros from AT to the next page. */
static et_status
fill_page(struct eti_onnx *o, const struct eti_draft *to, int64_t at)
{
    static const char zeros[PAGE];
    return eti_write_all(o->cx, to->fd, to->temporary, zeros,
                         (size_t)(next_page(at) - at));
}

static et_status
write_weight(struct eti_onnx *o, struct eti_onnx_weights *w,
             const struct eti_draft *model, const struct eti_draft *beside,
             const struct et_leaf *leaf, struct eti_proto *field)
{
    const int64_t at = w->at;
    begin_weight(leaf, w, field, &o->scratch);
    ET_TRY(field->status);
    ET_TRY(eti_write_all(o->cx, model->fd, model->temporary, field->bytes, field->n));
    if (!w->location)
        return write_values(o, model, leaf);
    ET_TRY(fill_page(o, beside, at));
    return write_values(o, beside, leaf);
}

et_status
eti_onnx_write_weights(struct eti_onnx *o, struct eti_onnx_weights *w,
                       const struct eti_draft *model, const struct eti_draft *beside)
{
    struct eti_proto field = {.cx = o->cx};
    et_status status = ET_OK;
    w->at = 0;
    for (int i = 0; i < o->leaves.n && status == ET_OK; i++)
        if (o->used[i])
            status = write_weight(o, w, model, beside, &o->leaves.v[i], &field);
    eti_proto_release(&field);
    return status;
}
