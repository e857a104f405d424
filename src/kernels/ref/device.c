/* SPDX-License-Identifier: Apache-2.0 */
/* device.c: the device table of the reference. */
#include "kernels/ref/ref.h"
#include "kernels/custom.h"
#include "kernels/ref/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct et_device_handle {
    int index;
    char why[256], told[256]; /* what an operation of the user's says of a failure */
};

struct et_kernel {
    struct etk_ref ref;
    struct etk_custom custom; /* of such an operation: then run is NULL */
    struct et_device_handle *dev;
    int64_t items;
    void (*run)(const struct etk_ref *);
    bool sums_in_acc;
};

struct row {
    void (*run)(const struct etk_ref *);
    bool sums_in_acc;
};

static const struct row rows[ET_OP_COUNT] = {
#define PLAIN(name) [ET_OP_##name] = {.run = etk_ref_##name},
#define ACC(name)   [ET_OP_##name] = {.run = etk_ref_##name, .sums_in_acc = true},
    ETK_REF_LIST(PLAIN) ETK_REF_ACC_LIST(ACC)};

static struct row
row_of(enum et_op_id op)
{
    if (etk_scalar(op))
        return (struct row){.run = etk_ref_elementwise};
    return rows[op];
}

/* One thread, whatever THREADS says: the order of sums is part of the oracle. */
static et_status
ref_open(int index, int threads, struct et_device_handle **out, char *why,
         size_t why_size)
{
    (void)threads;
    if (index != 0) {
        snprintf(why, why_size, "there is one reference device, 0, not %d", index);
        return ET_EINVAL;
    }
    *out = calloc(1, sizeof **out);
    return *out ? ET_OK : ET_ENOMEM;
}

static void
ref_close(struct et_device_handle *h)
{
    free(h);
}

static void
ref_info(struct et_device_handle *h, struct et_device_info *info)
{
    (void)h;
    *info = (struct et_device_info){
        .name = "plain C reference",
        .library = "none",
        .threads = 1,
        .host_memory = true,
    };
}

static et_status
ref_alloc(struct et_device_handle *h, size_t bytes, void **out)
{
    (void)h;
    *out = bytes > SIZE_MAX - 64 ? NULL : aligned_alloc(64, (bytes + 64) / 64 * 64);
    return *out ? ET_OK : ET_ENOMEM;
}

static void
ref_free(struct et_device_handle *h, void *block, size_t bytes)
{
    (void)h, (void)bytes;
    free(block);
}

static et_status
ref_copy(struct et_device_handle *h, void *dst, const void *src, size_t bytes,
         struct et_stream *stream)
{
    (void)h, (void)stream;
    memmove(dst, src, bytes);
    return ET_OK;
}

static et_status
ref_fill(struct et_device_handle *h, void *dst, int byte, size_t bytes,
         struct et_stream *stream)
{
    (void)h, (void)stream;
    memset(dst, byte, bytes);
    return ET_OK;
}

static void
ref_release(struct et_kernel *k)
{
    if (!k)
        return;
    free((void *)k->ref.attr);
    free(k->ref.in);
    etk_custom_free(&k->custom);
    free(k);
}

/* The kernel keeps its own copy of what CALL describes. */
static et_status
kernel_new(const struct et_call *call, struct row row, struct et_kernel **out)
{
    struct et_kernel *k = calloc(1, sizeof *k);
    if (!k)
        return ET_ENOMEM;
    k->run = row.run;
    k->sums_in_acc = row.sums_in_acc;
    k->ref.op = call->op;
    k->ref.n_in = call->n_in;
    k->ref.n_out = call->n_out;
    k->ref.in = calloc((size_t)(call->n_in + call->n_out), sizeof *k->ref.in);
    void *attr = call->attr_size ? malloc(call->attr_size) : NULL;
    k->ref.attr = attr;
    if (!k->ref.in || (call->attr_size && !attr)) {
        ref_release(k);
        return ET_ENOMEM;
    }
    if (attr)
        memcpy(attr, call->attr, call->attr_size);
    k->ref.out = k->ref.in + call->n_in;
    for (int i = 0; i < call->n_in; i++)
        k->ref.in[i].d = call->in[i];
    for (int i = 0; i < call->n_out; i++)
        k->ref.out[i].d = call->out[i];
    *out = k;
    return ET_OK;
}

/* An operation of the user's, in one piece. */
static et_status
prepare_custom(struct et_device_handle *h, const struct et_call *call,
               struct et_kernel **out, size_t *workspace, char *why, size_t why_size)
{
    if (!etk_custom_type(call)->host) {
        snprintf(why, why_size, "its class has no host function");
        return ET_ENOTSUP;
    }
    struct et_kernel *k = calloc(1, sizeof *k);
    if (!k)
        return ET_ENOMEM;
    k->dev = h;
    et_status status = etk_custom_init(&k->custom, call);
    if (status != ET_OK) {
        ref_release(k);
        return status;
    }
    *workspace = etk_custom_workspace(call);
    k->items = etk_custom_items(call);
    *out = k;
    return ET_OK;
}

static et_status
run_custom(struct et_kernel *k, void *const *ptr, void *workspace)
{
    struct et_custom_run run =
        etk_custom_run(&k->custom, ptr, workspace, k->dev->why, sizeof k->dev->why);
    k->dev->why[0] = '\0';
    run.end = k->items;
    return k->custom.type->host(&run);
}

static et_status
check(const struct et_call *call, char *why, size_t why_size)
{
    if (call->op >= ET_OP_COUNT || !row_of(call->op).run) {
        snprintf(why, why_size, "op %d has no kernel: it is a view or an assignment",
                 (int)call->op);
        return ET_ENOTSUP;
    }
    const struct et_norm_attr *norm = call->attr;
    if (call->op == ET_OP_batch_norm_grad && norm->relu &&
        (call->n_in < 6 || call->in[5].dtype == ET_NONE)) {
        snprintf(why, why_size, "the gradient through relu needs y");
        return ET_EINVAL;
    }
    if (call->op != ET_OP_fused)
        return ET_OK;
    const struct et_fused_attr *o = call->attr;
    for (int i = 0; i < o->n_steps; i++)
        if (o->step[i].op != ET_OP_cast && !etk_scalar((enum et_op_id)o->step[i].op)) {
            snprintf(why, why_size,
                     "step %d of a fused program is op %d, which is not"
                     " element-wise",
                     i, o->step[i].op);
            return ET_ENOTSUP;
        }
    return ET_OK;
}

static et_status
ref_prepare(struct et_device_handle *h, const struct et_call *call,
            struct et_kernel **out, size_t *workspace, char *why, size_t why_size)
{
    if (call->op == ET_OP_custom)
        return prepare_custom(h, call, out, workspace, why, why_size);
    ET_TRY(check(call, why, why_size));
    struct row row = row_of(call->op);
    *workspace = 0;
    if (row.sums_in_acc)
        for (int i = 0; i < call->n_out; i++)
            *workspace += (size_t)et_desc_count(&call->out[i]) * sizeof(double);
    return kernel_new(call, row, out);
}

static et_status
ref_run(struct et_kernel *k, void *const *ptr, void *workspace,
        struct et_stream *stream)
{
    (void)stream;
    double *acc = workspace;
    if (k->custom.type)
        return run_custom(k, ptr, workspace);
    for (int i = 0; i < k->ref.n_in + k->ref.n_out; i++)
        k->ref.in[i].p = k->ref.in[i].d.dtype == ET_NONE ? NULL : ptr[i];
    for (int i = 0; k->sums_in_acc && i < k->ref.n_out; i++) {
        int64_t n = et_desc_count(&k->ref.out[i].d);
        k->ref.acc[i] = acc;
        for (int64_t j = 0; j < n; j++)
            *acc++ = 0;
    }
    k->run(&k->ref);
    return ET_OK;
}

static const char *
ref_describe(const struct et_kernel *k)
{
    return k->custom.type ? "ref:custom" : "ref:loop";
}

/* Said once: it is of no later failure. */
static const char *
ref_why(struct et_device_handle *h)
{
    memcpy(h->told, h->why, sizeof h->told);
    h->why[0] = '\0';
    return h->told;
}

static et_status
ref_sync(struct et_device_handle *h, struct et_stream *stream)
{
    (void)h, (void)stream;
    return ET_OK;
}

static const struct et_device_table table = {
    .abi = ET_DEVICE_ABI,
    .size = sizeof(struct et_device_table),
    .name = "ref",
    .open = ref_open,
    .close = ref_close,
    .info = ref_info,
    .alloc = ref_alloc,
    .free = ref_free,
    .copy = ref_copy,
    .fill = ref_fill,
    .prepare = ref_prepare,
    .release = ref_release,
    .run = ref_run,
    .describe = ref_describe,
    .sync = ref_sync,
    .why = ref_why,
};

const struct et_device_table *
etk_ref_device(void)
{
    return &table;
}
