/* SPDX-License-Identifier: Apache-2.0 */
/* device.c: the CPU as a device: the module's table.
 *
 * Memory is the process's own; work runs at once on OpenMP's threads, so there are no
 * streams and nothing to capture. Kernels come from one table by op id, filled when the
 * device is opened: the own loops of the best instruction set the processor has, then
 * the oneDNN adapters. */
#include <omp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/native.h"

#define ALIGN     64
#define HUGE_PAGE ((size_t)2 << 20)
/* First touch of 256 MB: 53 ms with 4 KiB pages, 20 ms with huge ones (ENGINE.md 1). */
#define HUGE_FROM (2 * HUGE_PAGE)
/* One core moves some 20 GB/s; below this a second one does not pay. */
#define PARALLEL_BYTES ((size_t)1 << 20)

void *
etk_new(size_t size)
{
    return calloc(1, size);
}

et_status
etk_refuse(char *why, size_t why_size, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, why_size, fmt, args);
    va_end(args);
    return ET_ENOTSUP;
}

void
etk_copy_init(struct etk_copy *c, const struct et_desc *to, const struct et_desc *from)
{
    int order[ET_MAX_DIMS], n = 0;
    for (int i = 0; i < to->ndim; i++) {
        if (to->shape[i] == 1)
            continue;
        int at = n++;
        for (; at > 0 && to->stride[order[at - 1]] < to->stride[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    memset(c, 0, sizeof *c);
    c->size = et_dtype_size(to->dtype);
    c->ndim = 1;
    c->shape[0] = c->to[0] = c->from[0] = 1;
    for (int i = 0; i < n; i++) {
        int axis = order[i], last = c->ndim - 1;
        int64_t length = to->shape[axis];
        if (i > 0 && c->to[last] == length * to->stride[axis] &&
            c->from[last] == length * from->stride[axis]) {
            c->shape[last] *= length;
        } else {
            last = i > 0 ? c->ndim++ : 0;
            c->shape[last] = length;
        }
        c->to[last] = to->stride[axis];
        c->from[last] = from->stride[axis];
    }
}

/* ---- opening ---- */

static const struct etk_cpu_row adapters[] = {
    {ET_OP_matmul, etk_prepare_matmul},
    {ET_OP_conv2d, etk_prepare_conv2d},
    {ET_OP_conv2d_fused, etk_prepare_conv2d_fused},
    {ET_OP_conv2d_grad_input, etk_prepare_conv2d_grad_input},
    {ET_OP_conv2d_grad_weight, etk_prepare_conv2d_grad_weight},
    {ET_OP_custom, etk_prepare_custom},
};

static void
fill_table(struct et_device_handle *d, const struct etk_cpu_row *row, size_t n)
{
    for (size_t i = 0; i < n; i++)
        d->prepare[row[i].op] = row[i].prepare;
}

/* Instruction sets, best first. The name is what ETUDE_CPU_ISA takes. */
static const struct etk_loops *
choose_loops(void)
{
    const char *wanted = getenv("ETUDE_CPU_ISA");
#ifdef ET_X86_64_VARIANTS
    __builtin_cpu_init();
    const struct {
        const char *name;
        bool have;
        const struct etk_loops *(*loops)(void);
    } sets[] = {
        {"v4", __builtin_cpu_supports("x86-64-v4"), etk_loops_v4},
        {"v3", __builtin_cpu_supports("x86-64-v3"), etk_loops_v3},
    };
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
        if (sets[i].have && (!wanted || strcmp(wanted, sets[i].name) == 0))
            return sets[i].loops();
#endif
    return wanted && strcmp(wanted, "base") != 0 ? NULL : etk_loops_base();
}

/* All cores the process may use, or what the user told OpenMP. */
static int
default_threads(void)
{
    const char *text = getenv("OMP_NUM_THREADS");
    long n = text ? strtol(text, NULL, 10) : 0;
    return n > 0 ? (int)n : omp_get_num_procs();
}

/* ---- threads ---- */

static void *
wait_at(void *gate)
{
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

/* OpenMP ends the program when it cannot start a thread. So as many are started here
 * first; then OpenMP starts its own, which stay. */
static et_status
start_threads(int n, char *why, size_t why_size)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_t *thread = calloc((size_t)n, sizeof *thread);
    int started = 1, error = 0; /* this one is there */
    if (!thread)
        return ET_ENOMEM;
    pthread_mutex_lock(&gate);
    while (started < n && !error) {
        error = pthread_create(&thread[started], NULL, wait_at, &gate);
        started += !error;
    }
    pthread_mutex_unlock(&gate);
    for (int i = 1; i < started; i++)
        pthread_join(thread[i], NULL);
    free(thread);
    if (error)
        return etk_refuse(why, why_size, "thread %d of %d cannot be started: %s",
                          started + 1, n, strerror(error));
    int at_work = 0;
#pragma omp parallel num_threads(n) reduction(+ : at_work)
    at_work = 1;
    if (at_work < n)
        return etk_refuse(why, why_size, "OpenMP gives %d threads of %d", at_work, n);
    return ET_OK;
}

static void
cpu_close(struct et_device_handle *d)
{
    etk_onednn_close(d);
    free(d);
}

static et_status
cpu_open(int index, int threads, struct et_device_handle **out, char *why,
         size_t why_size)
{
    if (index != 0) {
        etk_refuse(why, why_size,
                   "there is one CPU device, cpu:0; cpu:%d was asked for", index);
        return ET_EINVAL;
    }
    const struct etk_loops *loops = choose_loops();
    if (!loops)
        return etk_refuse(why, why_size,
                          "ETUDE_CPU_ISA=%s: this processor has no such set; "
                          "unset it, or use base, v3 or v4",
                          getenv("ETUDE_CPU_ISA"));
    struct et_device_handle *d = calloc(1, sizeof *d);
    if (!d)
        return ET_ENOMEM;
    d->threads = threads > 0 ? threads : default_threads();
    d->loops = loops;
    fill_table(d, loops->row, (size_t)loops->n_row);
    fill_table(d, adapters, sizeof adapters / sizeof adapters[0]);
    omp_set_num_threads(d->threads);
    omp_set_dynamic(0); /* fewer threads would add up in another order */
    et_status status = etk_onednn_open(d);
    if (status == ET_OK)
        status = start_threads(d->threads, why, why_size);
    if (status != ET_OK) {
        cpu_close(d);
        return status;
    }
    d->native_bf16 = etk_is_native_bf16(d);
    *out = d;
    return ET_OK;
}

void
etk_cpu_name(char *buf, size_t n)
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");
    snprintf(buf, n, "CPU");
    while (f && fgets(line, sizeof line, f)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon)
            continue;
        colon += strspn(colon, ": \t");
        colon[strcspn(colon, "\n")] = '\0';
        snprintf(buf, n, "%s", colon);
        break;
    }
    if (f)
        fclose(f);
}

static void
cpu_info(struct et_device_handle *d, struct et_device_info *info)
{
    int major, minor, patch;
    etk_onednn_version(&major, &minor, &patch);
    memset(info, 0, sizeof *info);
    etk_cpu_name(info->name, sizeof info->name);
    snprintf(info->library, sizeof info->library, "oneDNN %d.%d.%d, loops %s%s", major,
             minor, patch, d->loops->isa, d->native_bf16 ? ", native bf16" : "");
    info->threads = d->threads;
    info->memory_bytes =
        (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    info->host_memory = true;
}

/* ---- memory ---- */

static et_status
cpu_alloc(struct et_device_handle *d, size_t bytes, void **out)
{
    (void)d;
    bool huge = bytes >= HUGE_FROM;
    size_t align = huge ? HUGE_PAGE : ALIGN;
    if (bytes > SIZE_MAX - align)
        return ET_ENOMEM;
    size_t size = bytes ? (bytes + align - 1) & ~(align - 1) : align;
    *out = aligned_alloc(align, size);
    if (!*out)
        return ET_ENOMEM;
    if (huge) /* advice: a refusal costs speed only */
        (void)madvise(*out, size, MADV_HUGEPAGE);
    return ET_OK;
}

static void
cpu_free(struct et_device_handle *d, void *block, size_t bytes)
{
    (void)d;
    (void)bytes;
    free(block);
}

/* Calls memcpy or, where FROM is NULL, memset on a share of the bytes per thread. */
static void
move(char *to, const char *from, int byte, size_t bytes, int threads)
{
    int64_t pieces = bytes < PARALLEL_BYTES ? 1 : threads;
    size_t piece = etk_round_up((bytes + (size_t)pieces - 1) / (size_t)pieces);
#pragma omp parallel for schedule(static) num_threads(threads) if (pieces > 1)
    for (int64_t i = 0; i < pieces; i++) {
        size_t begin = (size_t)i * piece;
        size_t n = begin < bytes ? bytes - begin : 0;
        n = n < piece ? n : piece;
        if (n > 0 && from)
            memcpy(to + begin, from + begin, n);
        else if (n > 0)
            memset(to + begin, byte, n);
    }
}

static et_status
cpu_copy(struct et_device_handle *d, void *dst, const void *src, size_t bytes,
         struct et_stream *stream)
{
    (void)stream;
    if (bytes > 0)
        move(dst, src, 0, bytes, d->threads);
    return ET_OK;
}

static et_status
cpu_fill(struct et_device_handle *d, void *dst, int byte, size_t bytes,
         struct et_stream *stream)
{
    (void)stream;
    move(dst, NULL, byte, bytes, d->threads);
    return ET_OK;
}

/* ---- kernels ---- */

/* OpenMP's thread count belongs to the calling thread; kernels are made for one
 * count. */
static void
keep_threads(int threads)
{
    if (omp_get_max_threads() != threads)
        omp_set_num_threads(threads);
}

static et_status
run_nothing(struct et_kernel *k, void *const *ptr, void *ws)
{
    (void)k;
    (void)ptr;
    (void)ws;
    return ET_OK;
}

static et_status
prepare_nothing(struct et_kernel **out)
{
    struct et_kernel *k = etk_new(sizeof *k);
    if (!k)
        return ET_ENOMEM;
    k->run = run_nothing;
    k->what = "nothing";
    *out = k;
    return ET_OK;
}

/* No result has an element. */
static bool
is_empty(const struct et_call *call)
{
    for (int i = 0; i < call->n_out; i++)
        if (call->out[i].dtype != ET_NONE && et_desc_count(&call->out[i]) > 0)
            return false;
    return true;
}

et_status
etk_prepare(struct et_device_handle *d, const struct et_call *call,
            struct et_kernel **out, size_t *workspace, char *why, size_t why_size)
{
    if (call->op < 0 || call->op >= ET_OP_COUNT || !d->prepare[call->op])
        return etk_refuse(why, why_size, "the CPU module has no kernel for op %d",
                          (int)call->op);
    keep_threads(d->threads);
    *out = NULL;
    *workspace = 0;
    if (is_empty(call))
        return prepare_nothing(out);
    et_status status = d->prepare[call->op](d, call, out, workspace, why, why_size);
    if (status == ET_ENOTSUP && etk_has_low(call))
        status = etk_prepare_widened(d, call, out, workspace, why, why_size);
    ET_TRY(status);
    (*out)->threads = d->threads;
    return ET_OK;
}

void
etk_release(struct et_kernel *k)
{
    if (!k)
        return;
    if (k->release)
        k->release(k);
    free(k);
}

static et_status
cpu_run(struct et_kernel *k, void *const *ptr, void *workspace,
        struct et_stream *stream)
{
    (void)stream;
    keep_threads(k->threads);
    return k->run(k, ptr, workspace);
}

static const char *
cpu_describe(const struct et_kernel *k)
{
    return k->what;
}

/* Said once: it is of no later failure. */
static const char *
cpu_why(struct et_device_handle *d)
{
    memcpy(d->told, d->why, sizeof d->told);
    d->why[0] = '\0';
    return d->told;
}

static et_status
cpu_sync(struct et_device_handle *d, struct et_stream *stream)
{
    (void)d;
    (void)stream;
    return ET_OK;
}

const struct et_device_table *
et_device_module(void)
{
    static const struct et_device_table table = {
        .abi = ET_DEVICE_ABI,
        .size = sizeof table,
        .name = "cpu",
        .fuses_convolutions = true,
        .open = cpu_open,
        .close = cpu_close,
        .info = cpu_info,
        .alloc = cpu_alloc,
        .free = cpu_free,
        .copy = cpu_copy,
        .fill = cpu_fill,
        .prepare = etk_prepare,
        .release = etk_release,
        .run = cpu_run,
        .describe = cpu_describe,
        .sync = cpu_sync,
        .why = cpu_why,
    };
    return &table;
}
