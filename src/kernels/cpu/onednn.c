/* SPDX-License-Identifier: Apache-2.0 */
/* onednn.c: programs of oneDNN primitives (onednn.h). */
#include "kernels/cpu/onednn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

et_status
etk_onednn_open(struct et_device_handle *d)
{
    if (dnnl_engine_create(&d->engine, dnnl_cpu, 0) != dnnl_success ||
        dnnl_stream_create(&d->stream, d->engine, dnnl_stream_in_order) != dnnl_success)
        return ET_ENOMEM;
    return ET_OK;
}

void
etk_onednn_close(struct et_device_handle *d)
{
    dnnl_stream_destroy(d->stream);
    dnnl_engine_destroy(d->engine);
}

void
etk_onednn_version(int *major, int *minor, int *patch)
{
    const dnnl_version_t *v = dnnl_version();
    *major = v->major;
    *minor = v->minor;
    *patch = v->patch;
}

static et_status
classify(dnnl_status_t status)
{
    switch (status) {
    case dnnl_success:
        return ET_OK;
    case dnnl_out_of_memory:
        return ET_ENOMEM;
    case dnnl_unimplemented:
        return ET_ENOTSUP;
    default: /* of a call that is wrong, or a failure inside oneDNN */
        return ET_EINTERNAL;
    }
}

/* oneDNN writes to the memory for a kernel's code without a look at whether it got any,
 * and throws where the first run of a product gets none for its own: that there are
 * addresses for both is asked before. */
static dnnl_status_t
create_primitive(dnnl_primitive_t *out, const_dnnl_primitive_desc_t pd)
{
    /* Far more than the code of one (100s of KiB), and than a first run (12 MiB). */
    enum { CODE_BYTES = 32 << 20 };
    void *p = mmap(NULL, CODE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return dnnl_out_of_memory;
    munmap(p, CODE_BYTES);
    return dnnl_primitive_create(out, pd);
}

/* Records the first failure. */
static void
check(struct etk_program *p, dnnl_status_t status)
{
    if (p && p->status == ET_OK)
        p->status = classify(status);
}

static bool
building(const struct etk_program *p)
{
    return p && p->status == ET_OK;
}

bool
etk_onednn_has_bf16(void)
{
    return (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_bf16) ==
           dnnl_cpu_isa_avx512_core_bf16;
}

dnnl_data_type_t
etk_data_type(const struct et_device_handle *d, enum et_dtype dtype)
{
    if (dtype == ET_F32)
        return dnnl_f32;
    return dtype == ET_BF16 && d->native_bf16 ? dnnl_bf16 : dnnl_data_type_undef;
}

static const char *
implementation(const_dnnl_primitive_desc_t pd)
{
    const char *text = NULL;
    if (dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &text) !=
        dnnl_success)
        return "unknown";
    return text;
}

etk_layout
etk_desc_layout(const_dnnl_primitive_desc_t pd, dnnl_query_t what)
{
    return pd ? dnnl_primitive_desc_query_md(pd, what, 0) : NULL;
}

/* ---- programs ---- */

static et_status
run_program(struct et_kernel *kernel, void *const *ptr, void *ws)
{
    struct etk_program *p = (struct etk_program *)kernel;
    for (int i = 0; i < p->n_memory; i++) {
        struct etk_memory *m = &p->memory[i];
        char *at =
            m->slot >= 0
                ? ptr[m->slot]
                : (char *)ws + (m->slot == ETK_WORKSPACE ? m->offset : p->workspace);
        if (at == m->at)
            continue;
        m->at = at;
        if (m->memory &&
            etk_onednn_set_data(m->memory, at, p->device->stream) != dnnl_success)
            return ET_EINTERNAL;
    }
    for (int i = 0; i < p->n_step; i++) {
        const struct etk_step *s = &p->step[i];
        if (s->loop == ETK_COPY)
            p->device->loops->copy(&s->copy, p->memory[s->to].at,
                                   p->memory[s->from].at);
        else if (s->loop == ETK_ZERO)
            memset(p->memory[s->to].at, 0, s->bytes);
        else if (s->loop == ETK_BIAS)
            p->device->loops->bias((float *)p->memory[s->to].at,
                                   (const float *)p->memory[s->from].at, s->rows, s->c);
        else
            ET_TRY(classify(dnnl_primitive_execute(s->primitive, p->device->stream,
                                                   s->n_arg, s->arg)));
    }
    return ET_OK;
}

static void
release_program(struct et_kernel *kernel)
{
    struct etk_program *p = (struct etk_program *)kernel;
    for (int i = 0; i < p->n_step; i++)
        if (p->step[i].primitive)
            dnnl_primitive_destroy(p->step[i].primitive);
    for (int i = 0; i < p->n_memory; i++)
        if (p->memory[i].memory)
            dnnl_memory_destroy(p->memory[i].memory);
}

struct etk_program *
etk_program_new(struct et_device_handle *d)
{
    struct etk_program *p = etk_new(sizeof *p);
    if (!p)
        return NULL;
    p->device = d;
    p->base.run = run_program;
    p->base.release = release_program;
    p->base.what = p->what;
    return p;
}

/* Lets go of what only the building needs. */
static void
end_building(struct etk_program *p)
{
    for (int i = 0; i < p->n_desc; i++)
        dnnl_primitive_desc_destroy(p->desc[i]);
    for (int i = 0; i < p->n_layout; i++)
        etk_onednn_layout_free(p->layout[i]);
    p->n_desc = p->n_layout = 0;
}

void
etk_program_free(struct etk_program *p)
{
    if (!p)
        return;
    end_building(p);
    release_program(&p->base);
    free(p);
}

et_status
etk_program_finish(struct etk_program *p, struct et_kernel **out, size_t *ws, char *why,
                   size_t why_size)
{
    if (building(p)) {
        end_building(p);
        *out = &p->base;
        *ws = p->workspace + p->scratchpad;
        return ET_OK;
    }
    et_status status = p ? p->status : ET_ENOMEM;
    etk_program_free(p);
    etk_refuse(why, why_size, "%s",
               status == ET_ENOMEM
                   ? "no memory for a kernel of oneDNN's"
                   : "oneDNN has no fast kernel for this shape, layout and dtype");
    return status;
}

static etk_layout
new_layout(struct etk_program *p, const struct et_desc *d, bool any)
{
    etk_layout layout = NULL;
    dnnl_dims_t dims, strides;
    if (!building(p))
        return NULL;
    if (p->n_layout == ETK_LAYOUTS) {
        p->status = ET_EINTERNAL;
        return NULL;
    }
    for (int i = 0; i < d->ndim; i++) {
        dims[i] = d->shape[i];
        strides[i] = d->stride[i];
    }
    dnnl_status_t status =
        etk_onednn_layout_new(&layout, d->ndim, dims,
                              etk_data_type(p->device, d->dtype), any ? NULL : strides);
    if (status == dnnl_success)
        p->layout[p->n_layout++] = layout;
    else if (status == dnnl_out_of_memory)
        check(p, status);
    return layout;
}

etk_layout
etk_program_layout(struct etk_program *p, const struct et_desc *d)
{
    return new_layout(p, d, false);
}

etk_layout
etk_program_layout_any(struct etk_program *p, const struct et_desc *d)
{
    return new_layout(p, d, true);
}

/* Where a call of onednn_api.h puts the descriptor that it makes, and the attributes it
 * makes it with; false: not to be called. keep_desc follows. */
static bool
begin_desc(struct etk_program *p, dnnl_primitive_attr_t *attr)
{
    *attr = NULL;
    if (!building(p))
        return false;
    if (p->n_desc == ETK_DESCS)
        p->status = ET_EINTERNAL;
    else
        check(p, etk_onednn_attr_new(attr));
    return building(p);
}

/* STATUS: of making PD. Statuses that are not about memory mean that oneDNN has no such
 * kernel. */
static const_dnnl_primitive_desc_t
keep_desc(struct etk_program *p, dnnl_status_t status, dnnl_primitive_desc_t pd,
          dnnl_primitive_attr_t attr)
{
    dnnl_primitive_attr_destroy(attr);
    if (status == dnnl_out_of_memory)
        check(p, status);
    if (status != dnnl_success)
        return NULL;
    p->desc[p->n_desc++] = pd;
    return pd;
}

/* PD, or NULL if it is of oneDNN's reference kernel. */
static const_dnnl_primitive_desc_t
fast(const_dnnl_primitive_desc_t pd)
{
    return pd && !strstr(implementation(pd), "ref") ? pd : NULL;
}

const_dnnl_primitive_desc_t
etk_program_matmul(struct etk_program *p, etk_layout a, etk_layout b, etk_layout bias,
                   etk_layout y)
{
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t pd = NULL;
    if (!a || !b || !y || !begin_desc(p, &attr))
        return NULL;
    dnnl_status_t status =
        etk_onednn_matmul(&pd, p->device->engine, attr, a, b, bias, y);
    return fast(keep_desc(p, status, pd, attr));
}

bool
etk_desc_is_of_products(const_dnnl_primitive_desc_t pd)
{
    return pd && strstr(implementation(pd), "gemm");
}

/* PD, or NULL if it is of convolution by a product of matrices: with a residual these
 * add the wrong elements (2.6.3), and their products are done before what follows
 * anyway. */
static const_dnnl_primitive_desc_t
can_follow(const_dnnl_primitive_desc_t pd)
{
    return etk_desc_is_of_products(pd) ? NULL : pd;
}

/* Adds what follows C to the attributes that its descriptor is made with: operations of
 * which each has a number, from 0 on. */
static dnnl_status_t
set_follow(dnnl_primitive_attr_t attr, const struct etk_conv *c)
{
    dnnl_post_ops_t ops;
    dnnl_status_t status = dnnl_post_ops_create(&ops);
    if (status != dnnl_success)
        return status;
    status = dnnl_post_ops_append_binary(ops, dnnl_binary_mul, c->scale);
    if (status == dnnl_success)
        status = dnnl_post_ops_append_binary(ops, dnnl_binary_add, c->shift);
    if (status == dnnl_success && c->residual)
        status = dnnl_post_ops_append_binary(ops, dnnl_binary_add, c->residual);
    if (status == dnnl_success && c->relu)
        status = etk_onednn_append_relu(ops);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_post_ops(attr, ops);
    dnnl_post_ops_destroy(ops);
    return status;
}

const_dnnl_primitive_desc_t
etk_program_conv(struct etk_program *p, enum etk_conv_pass pass,
                 const struct etk_conv *c, const_dnnl_primitive_desc_t hint)
{
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t pd = NULL;
    if (!c->x || !c->w || !c->y || !begin_desc(p, &attr))
        return NULL;
    dnnl_status_t status = dnnl_success;
    if (c->scale)
        status = set_follow(attr, c);
    if (status == dnnl_success)
        status = etk_onednn_conv(&pd, p->device->engine, attr, pass, c, hint);
    const_dnnl_primitive_desc_t kept = fast(keep_desc(p, status, pd, attr));
    return c->scale ? can_follow(kept) : kept;
}

static int
new_memory(struct etk_program *p, int slot, size_t bytes)
{
    if (!building(p) || p->n_memory == ETK_MEMORIES) {
        if (building(p))
            p->status = ET_EINTERNAL;
        return 0;
    }
    struct etk_memory *m = &p->memory[p->n_memory];
    m->slot = slot;
    if (slot == ETK_WORKSPACE) {
        m->offset = p->workspace;
        p->workspace += etk_round_up(bytes);
    } else if (slot == ETK_SCRATCHPAD && bytes > p->scratchpad) {
        p->scratchpad = bytes;
    }
    return p->n_memory++;
}

int
etk_program_memory(struct etk_program *p, etk_layout layout, int slot)
{
    if (!building(p))
        return 0;
    int i = new_memory(p, slot, dnnl_memory_desc_get_size(layout));
    if (building(p))
        check(p, dnnl_memory_create(&p->memory[i].memory, layout, p->device->engine,
                                    DNNL_MEMORY_NONE));
    return i;
}

/* Names what runs, for describe(). */
static void
add_name(struct etk_program *p, const char *name)
{
    size_t n = strlen(p->what);
    snprintf(p->what + n, sizeof p->what - n, "%s%s", n ? " + " : "", name);
}

static struct etk_step *
new_step(struct etk_program *p, const char *name)
{
    if (!building(p))
        return NULL;
    if (p->n_step == ETK_STEPS) {
        p->status = ET_EINTERNAL;
        return NULL;
    }
    add_name(p, name);
    return &p->step[p->n_step++];
}

static void
add_copy(struct etk_program *p, const struct et_desc *to_desc, int to,
         const struct et_desc *from_desc, int from)
{
    struct etk_step *s = new_step(p, "copy");
    if (!s)
        return;
    s->loop = ETK_COPY;
    s->to = to;
    s->from = from;
    etk_copy_init(&s->copy, to_desc, from_desc);
}

int
etk_program_input(struct etk_program *p, const struct et_desc *d,
                  const struct et_desc *dense, etk_layout layout, int slot)
{
    if (et_desc_equal(d, dense))
        return etk_program_memory(p, layout, slot);
    return etk_program_gather(p, d, new_memory(p, slot, 0), dense, layout);
}

int
etk_program_gather(struct etk_program *p, const struct et_desc *d, int from,
                   const struct et_desc *dense, etk_layout layout)
{
    int to = etk_program_memory(p, layout, ETK_WORKSPACE);
    add_copy(p, dense, to, d, from);
    return to;
}

int
etk_program_frame(struct etk_program *p, const struct et_desc *d,
                  const struct et_desc *frame, const int32_t at[2], int slot)
{
    struct et_desc inner = *d;
    int from = new_memory(p, slot, 0);
    int whole = new_memory(p, ETK_WORKSPACE, et_desc_bytes(frame));
    int part = new_memory(p, ETK_WORKSPACE, 0);
    if (!building(p))
        return 0;
    int64_t first = at[0] * frame->stride[2] + at[1] * frame->stride[3];
    p->memory[part].offset =
        p->memory[whole].offset + (size_t)first * et_dtype_size(frame->dtype);
    memcpy(inner.stride, frame->stride, sizeof inner.stride);
    etk_program_zero(p, whole, et_desc_bytes(frame));
    add_copy(p, &inner, part, d, from);
    return whole;
}

int
etk_program_output(struct etk_program *p, const struct et_desc *d,
                   const struct et_desc *dense, etk_layout layout, int slot)
{
    return etk_program_memory(p, layout,
                              et_desc_equal(d, dense) ? slot : ETK_WORKSPACE);
}

void
etk_program_store(struct etk_program *p, const struct et_desc *d,
                  const struct et_desc *dense, int memory, int slot)
{
    if (!building(p) || p->memory[memory].slot != ETK_WORKSPACE)
        return;
    add_copy(p, d, new_memory(p, slot, 0), dense, memory);
}

void
etk_program_require(struct etk_program *p, const_dnnl_primitive_desc_t pd)
{
    if (!pd)
        check(p, dnnl_unimplemented);
}

static void
add_arg(struct etk_program *p, struct etk_step *s, int arg, int memory)
{
    if (s->n_arg == ETK_ARGS) {
        p->status = ET_EINTERNAL;
        return;
    }
    s->arg[s->n_arg++] = (dnnl_exec_arg_t){arg, p->memory[memory].memory};
}

void
etk_program_add(struct etk_program *p, const_dnnl_primitive_desc_t pd,
                const struct etk_arg *args)
{
    etk_program_require(p, pd);
    struct etk_step *s = new_step(p, pd ? implementation(pd) : "");
    if (!s)
        return;
    check(p, create_primitive(&s->primitive, pd));
    for (; args->arg; args++)
        add_arg(p, s, args->arg, args->memory);
    etk_layout layout = etk_desc_layout(pd, dnnl_query_scratchpad_md);
    if (dnnl_memory_desc_get_size(layout) > 0) {
        int scratch = etk_program_memory(p, layout, ETK_SCRATCHPAD);
        add_arg(p, s, DNNL_ARG_SCRATCHPAD, scratch);
    }
}

void
etk_program_reorder_into(struct etk_program *p, int from, etk_layout from_layout,
                         int to, etk_layout to_layout)
{
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t pd = NULL;
    if (!begin_desc(p, &attr))
        return;
    dnnl_status_t status = dnnl_reorder_primitive_desc_create(
        &pd, from_layout, p->device->engine, to_layout, p->device->engine, attr);
    etk_program_add(p, keep_desc(p, status, pd, attr),
                    (struct etk_arg[]){
                        {DNNL_ARG_FROM, from},
                        {DNNL_ARG_TO, to},
                        {0, 0},
                    });
}

int
etk_program_reorder(struct etk_program *p, int from, etk_layout from_layout,
                    etk_layout to_layout)
{
    if (!building(p) || dnnl_memory_desc_equal(from_layout, to_layout))
        return from;
    int to = etk_program_memory(p, to_layout, ETK_WORKSPACE);
    etk_program_reorder_into(p, from, from_layout, to, to_layout);
    return to;
}

void
etk_program_bias(struct etk_program *p, int y, int bias, int64_t rows, int64_t c)
{
    struct etk_step *s = new_step(p, "bias");
    if (!s)
        return;
    s->loop = ETK_BIAS;
    s->to = y;
    s->from = bias;
    s->rows = rows;
    s->c = c;
}

void
etk_program_zero(struct etk_program *p, int y, size_t bytes)
{
    struct etk_step *s = new_step(p, "zero");
    if (!s)
        return;
    s->loop = ETK_ZERO;
    s->to = y;
    s->bytes = bytes;
}
