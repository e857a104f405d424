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
    static const et_status map[] = {
        [dnnl_success] = ET_OK,
        [dnnl_out_of_memory] = ET_ENOMEM,
        [dnnl_invalid_arguments] = ET_EINTERNAL,
        [dnnl_unimplemented] = ET_ENOTSUP,
        [dnnl_iterator_ends] = ET_ENOTSUP,
        [dnnl_runtime_error] = ET_EINTERNAL,
        [dnnl_not_required] = ET_EINTERNAL,
    };
    return map[status];
}

/* oneDNN writes to the memory for a kernel's code without a look at whether it got any:
 * that there are addresses for it is asked before. */
static dnnl_status_t
create_primitive(dnnl_primitive_t *out, const_dnnl_primitive_desc_t pd)
{
    enum { CODE_BYTES = 16 << 20 }; /* far more than the code of one (100s of KiB) */
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

/* Without AMX oneDNN emulates bf16 or has half the rate of f32: 1024 x 1024 matrices
 * ran at 33 GF/s and 165 in f32 (one thread of a Cascade Lake, bench/cpu/matmul), so
 * that f32 on copies (widen.c) is several times faster. */
static bool
has_bf16(void)
{
    return (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_amx) ==
           dnnl_cpu_isa_avx512_core_amx;
}

dnnl_data_type_t
etk_data_type(enum et_dtype dtype)
{
    if (dtype == ET_F32)
        return dnnl_f32;
    return dtype == ET_BF16 && has_bf16() ? dnnl_bf16 : dnnl_data_type_undef;
}

dnnl_memory_desc_t
etk_memory_desc(const struct et_desc *d)
{
    dnnl_memory_desc_t md;
    dnnl_dims_t dims, strides;
    for (int i = 0; i < d->ndim; i++) {
        dims[i] = d->shape[i];
        strides[i] = d->stride[i];
    }
    if (dnnl_memory_desc_init_by_strides(&md, d->ndim, dims, etk_data_type(d->dtype),
                                         strides) != dnnl_success)
        memset(&md, 0, sizeof md);
    return md;
}

/* ---- primitive descriptors ---- */

static const char *
implementation(const_dnnl_primitive_desc_t pd)
{
    const char *text = NULL;
    if (dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &text) !=
        dnnl_success)
        return "unknown";
    return text;
}

dnnl_primitive_desc_t
etk_primitive_desc(struct et_device_handle *d, const_dnnl_op_desc_t op,
                   const_dnnl_primitive_desc_t hint)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    if (dnnl_primitive_attr_create(&attr) != dnnl_success)
        return NULL;
    dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if (dnnl_primitive_desc_create(&pd, op, attr, d->engine, hint) != dnnl_success)
        pd = NULL;
    dnnl_primitive_attr_destroy(attr);
    if (pd && strstr(implementation(pd), "ref")) {
        dnnl_primitive_desc_destroy(pd);
        pd = NULL;
    }
    return pd;
}

dnnl_memory_desc_t
etk_primitive_md(const_dnnl_primitive_desc_t pd, dnnl_query_t what)
{
    dnnl_memory_desc_t none;
    const dnnl_memory_desc_t *md =
        pd ? dnnl_primitive_desc_query_md(pd, what, 0) : NULL;
    memset(&none, 0, sizeof none);
    return md ? *md : none;
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
        if (m->memory && dnnl_memory_set_data_handle_v2(
                             m->memory, at, p->device->stream) != dnnl_success)
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

void
etk_program_free(struct etk_program *p)
{
    if (!p)
        return;
    release_program(&p->base);
    free(p);
}

et_status
etk_program_finish(struct etk_program *p, struct et_kernel **out, size_t *ws, char *why,
                   size_t why_size)
{
    if (building(p)) {
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
etk_program_memory(struct etk_program *p, const dnnl_memory_desc_t *md, int slot)
{
    int i = new_memory(p, slot, dnnl_memory_desc_get_size(md));
    if (building(p))
        check(p, dnnl_memory_create(&p->memory[i].memory, md, p->device->engine,
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
                  const struct et_desc *dense, const dnnl_memory_desc_t *md, int slot)
{
    if (et_desc_equal(d, dense))
        return etk_program_memory(p, md, slot);
    int from = new_memory(p, slot, 0);
    int to = etk_program_memory(p, md, ETK_WORKSPACE);
    add_copy(p, dense, to, d, from);
    return to;
}

int
etk_program_output(struct etk_program *p, const struct et_desc *d,
                   const struct et_desc *dense, const dnnl_memory_desc_t *md, int slot)
{
    return etk_program_memory(p, md, et_desc_equal(d, dense) ? slot : ETK_WORKSPACE);
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

void
etk_program_add(struct etk_program *p, dnnl_primitive_desc_t pd,
                const struct etk_arg *args)
{
    etk_program_require(p, pd);
    struct etk_step *s = new_step(p, pd ? implementation(pd) : "");
    if (s) {
        check(p, create_primitive(&s->primitive, pd));
        for (; args->arg; args++) {
            s->arg[s->n_arg].arg = args->arg;
            s->arg[s->n_arg++].memory = p->memory[args->memory].memory;
        }
        dnnl_memory_desc_t md = etk_primitive_md(pd, dnnl_query_scratchpad_md);
        if (dnnl_memory_desc_get_size(&md) > 0) {
            int scratch = etk_program_memory(p, &md, ETK_SCRATCHPAD);
            s->arg[s->n_arg].arg = DNNL_ARG_SCRATCHPAD;
            s->arg[s->n_arg++].memory = p->memory[scratch].memory;
        }
    }
    if (pd)
        dnnl_primitive_desc_destroy(pd);
}

void
etk_program_reorder_into(struct etk_program *p, int from,
                         const dnnl_memory_desc_t *from_md, int to,
                         const dnnl_memory_desc_t *to_md)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    if (!building(p))
        return;
    check(p, dnnl_primitive_attr_create(&attr));
    if (building(p)) {
        dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
        check(p, dnnl_reorder_primitive_desc_create(&pd, from_md, p->device->engine,
                                                    to_md, p->device->engine, attr));
        dnnl_primitive_attr_destroy(attr);
    }
    if (building(p))
        etk_program_add(
            p, pd,
            (struct etk_arg[]){{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}, {0, 0}});
}

int
etk_program_reorder(struct etk_program *p, int from, const dnnl_memory_desc_t *from_md,
                    const dnnl_memory_desc_t *to_md)
{
    if (dnnl_memory_desc_equal(from_md, to_md))
        return from;
    int to = etk_program_memory(p, to_md, ETK_WORKSPACE);
    etk_program_reorder_into(p, from, from_md, to, to_md);
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
