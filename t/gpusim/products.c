/* SPDX-License-Identifier: Apache-2.0 */
/* Which of cuBLASLt's algorithms multiplies a shape: timed once, kept in the process
 * and on disk, and how often the library is called. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cublasLt.h>
#include <gpusim.h>

#include "kernels/cuda/cuda.h"
#include "t/kernels/module.h"
#include "t/tap.h"

/* What a slow algorithm takes: longer than a busy machine keeps a fast one waiting. */
enum { SLOW_MS = 60 };

static const struct et_device_table *gpu;
static char top[] = "/tmp/etude-products-XXXXXX";

/* ---- devices ---- */

static struct et_device_handle *
open_gpu(void)
{
    struct et_device_handle *d = NULL;
    char why[256] = "";
    if (gpu->open(0, 0, &d, why, sizeof why) != ET_OK)
        bail("%s", why);
    return d;
}

/* As after another start of the program. */
static void
reopen(struct et_device_handle **d)
{
    gpu->close(*d);
    gpusim_fault(NULL);
    *d = open_gpu();
}

/* ---- products ---- */

/* y[.., 64, 48] = a[.., 64, k] b[k, 48] + bias, a of f32. */
struct product {
    struct et_matmul_attr attr;
    struct et_desc in[3], out;
    struct et_call call;
};

static void
describe(struct product *p, int nb, const int64_t *batch, int64_t m, int64_t k,
         int64_t n, bool biased)
{
    int64_t a[ET_MAX_DIMS], y[ET_MAX_DIMS];
    memset(p, 0, sizeof *p);
    for (int i = 0; i < nb; i++)
        a[i] = y[i] = batch[i];
    a[nb] = y[nb] = m;
    a[nb + 1] = k;
    y[nb + 1] = n;
    et_desc_init(&p->in[0], ET_F32, nb + 2, a, ET_ROW_MAJOR);
    et_desc_init(&p->in[1], ET_F32, 2, (int64_t[]){k, n}, ET_ROW_MAJOR);
    if (biased)
        et_desc_init(&p->in[2], ET_F32, 1, &n, ET_ROW_MAJOR);
    et_desc_init(&p->out, ET_F32, nb + 2, y, ET_ROW_MAJOR);
    p->call = (struct et_call){.op = ET_OP_matmul,
                               .n_in = 3,
                               .n_out = 1,
                               .attr = &p->attr,
                               .attr_size = sizeof p->attr,
                               .in = p->in,
                               .out = &p->out};
}

/* What was prepared: its description; "" and STATUS where that failed. */
struct prepared {
    et_status status;
    char what[64], why[256];
    int64_t launches; /* that preparing took */
    size_t ws;
    struct et_kernel *kernel;
};

static struct prepared
prepare(struct et_device_handle *d, const struct product *p)
{
    struct prepared r = {0};
    int64_t before = gpusim_counts()->launches;
    r.status = gpu->prepare(d, &p->call, &r.kernel, &r.ws, r.why, sizeof r.why);
    r.launches = gpusim_counts()->launches - before;
    if (r.status == ET_OK)
        snprintf(r.what, sizeof r.what, "%s", gpu->describe(r.kernel));
    return r;
}

/* The plain product of 64 x 96 x 48 with bias, prepared and freed again. */
static struct prepared
prepare_plain(struct et_device_handle *d)
{
    struct product p;
    describe(&p, 0, NULL, 64, 96, 48, true);
    struct prepared r = prepare(d, &p);
    if (r.status == ET_OK)
        gpu->release(r.kernel);
    return r;
}

static bool
used(const struct prepared *r, int algorithm)
{
    char want[32];
    snprintf(want, sizeof want, "cuBLASLt:%d ", algorithm);
    if (r->status == ET_OK && strncmp(r->what, want, strlen(want)) == 0)
        return true;
    diag("status %d, \"%s\" %s", (int)r->status, r->what, r->why);
    return false;
}

/* ---- the cache ---- */

/* Files kept; the last one's path, where PATH is not NULL. */
static int
kept(char *path)
{
    char dir[64];
    int n = 0;
    snprintf(dir, sizeof dir, "%s/kernels", top);
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.') {
            if (path)
                snprintf(path, PATH_MAX, "%s/%s", dir, e->d_name);
            n++;
        }
    if (d)
        closedir(d);
    return n;
}

static void
forget(void)
{
    char path[PATH_MAX];
    while (kept(path) > 0)
        if (unlink(path) != 0)
            bail("cannot remove %s", path);
}

static void
damage(void)
{
    char path[PATH_MAX], byte;
    int fd = kept(path) == 1 ? open(path, O_RDWR) : -1;
    if (fd < 0 || pread(fd, &byte, 1, 100) != 1)
        bail("cannot read %s", path);
    byte = (char)~byte;
    if (pwrite(fd, &byte, 1, 100) != 1)
        bail("cannot write %s", path);
    close(fd);
}

static void
test_kept(struct et_device_handle **d)
{
    char path[PATH_MAX];
    struct prepared first = prepare_plain(*d);
    ok(first.launches > 0, "the algorithms of a new shape are timed");
    is_int(kept(path), 1, "and the choice is kept");
    struct prepared again = prepare_plain(*d);
    is_int(again.launches, 0, "the same shape is not timed twice");
    is_str(again.what, first.what, "and gets the same algorithm");
    reopen(d);
    again = prepare_plain(*d);
    is_int(again.launches, 0, "nor by another process");
    is_str(again.what, first.what, "which gets the same algorithm too");
    is_int(gpusim_counts()->allocs, gpusim_counts()->frees,
           "what the operands were timed in is given back");
}

/* What is timed anew, and what is not: CHANGE is made to a fresh device. */
static void
timed_anew(struct et_device_handle **d, const char *what, bool want,
           void (*change)(struct et_device_handle *))
{
    reopen(d);
    change(*d);
    struct prepared r = prepare_plain(*d);
    ok(r.status == ET_OK && (r.launches > 0) == want, "%s, %s", what,
       want ? "all is timed anew" : "nothing is timed");
}

static void
other_driver(struct et_device_handle *d)
{
    d->gpu.driver++;
}

static void
other_gpu(struct et_device_handle *d)
{
    d->gpu.name[0] ^= 1;
}

static void
same(struct et_device_handle *d)
{
    (void)d;
}

static void
tf32(struct et_device_handle *d)
{
    if (gpu->set(d, ET_DEVICE_TF32, 1) != ET_OK)
        bail("no TF32");
}

static void
deterministic(struct et_device_handle *d)
{
    if (gpu->set(d, ET_DEVICE_DETERMINISTIC, 1) != ET_OK)
        bail("no deterministic mode");
}

static void
capturing(struct et_device_handle *d)
{
    d->capturing = 1;
}

static void
short_of_memory(struct et_device_handle *d)
{
    (void)d;
    gpusim_fault("cudaMallocFromPoolAsync=2@1+");
}

static void
test_keys(struct et_device_handle **d)
{
    char path[PATH_MAX];
    timed_anew(d, "with another driver", true, other_driver);
    timed_anew(d, "on another GPU", true, other_gpu);
    timed_anew(d, "in TF32", true, tf32);
    is_int(kept(path), 4, "and each of these is kept beside the others");
    timed_anew(d, "as before", false, same);
    forget();
    timed_anew(d, "in deterministic mode", false, deterministic);
    timed_anew(d, "while a stream is captured", false, capturing);
    timed_anew(d, "short of memory", false, short_of_memory);
    setenv("ETUDE_TUNE", "0", 1);
    timed_anew(d, "with ETUDE_TUNE=0", false, same);
    unsetenv("ETUDE_TUNE");
    is_int(kept(path), 0, "and what was not timed is not kept");
    reopen(d);
}

static void
test_damage(struct et_device_handle **d)
{
    forget();
    reopen(d);
    prepare_plain(*d);
    damage();
    timed_anew(d, "with what was kept damaged", true, same);
    timed_anew(d, "with it written again", false, same);
}

/* ---- choosing ---- */

static void
test_fastest(struct et_device_handle **d)
{
    for (int fast = 1; fast <= 4; fast++) {
        if (fast == 3)
            continue; /* adds in the result: never taken */
        for (int i = 1; i <= 4; i++)
            gpusim_blas_delay(i, i == fast ? 0 : SLOW_MS);
        forget();
        reopen(d);
        struct prepared r = prepare_plain(*d);
        ok(used(&r, fast), "the fastest is chosen: algorithm %d", fast);
    }
    for (int i = 1; i <= 4; i++)
        gpusim_blas_delay(i, 0);
    forget();
    reopen(d);
    deterministic(*d);
    struct prepared r = prepare_plain(*d);
    ok(used(&r, 1), "in deterministic mode cuBLASLt's first choice is taken");
    reopen(d);
}

static void
test_faults(struct et_device_handle **d)
{
    static const struct {
        const char *fault, *what;
        et_status status;
        int algorithm; /* 0: the own kernel */
    } rows[] = {
        {"cublasLtCreate=1", "a cuBLASLt that does not start", ET_EDEVICE, 0},
        {"cublasLtCreate=3", "no memory for a handle", ET_ENOMEM, 0},
        {"cublasLtMatmulAlgoGetHeuristic=15@1+", "no algorithm at all", ET_OK, 0},
        {"cublasLtMatmulAlgoGetHeuristic=15@2", "none for any address", ET_OK, 1},
        {"cublasLtMatmulAlgoGetHeuristic=14", "a failing choice", ET_EINTERNAL, 0},
        {"cublasLtMatmul=15@1", "a first algorithm that does not run", ET_OK, 2},
        {"cublasLtMatmul=15@1+", "algorithms of which none runs", ET_OK, 0},
        {"cublasLtMatmul=13@1", "a first algorithm that fails", ET_OK, 2},
        {"cublasLtMatmul=13@1+", "algorithms of which each fails", ET_OK, 0},
        {"launch=700@4", "a fault of the GPU", ET_EDEVICE, 0},
        {"cudaEventCreateWithFlags=2@1", "no memory for events", ET_OK, 1},
        {"cudaEventSynchronize=700@2", "a GPU that is lost while it is timed",
         ET_EDEVICE, 0},
    };
    gpusim_blas_delay(2, SLOW_MS);
    gpusim_blas_delay(4, 2 * SLOW_MS);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        forget();
        reopen(d);
        gpusim_fault(rows[i].fault);
        struct prepared r = prepare_plain(*d);
        bool right = r.status == rows[i].status;
        if (right && rows[i].status != ET_OK)
            right = r.why[0] != '\0' || rows[i].status == ET_ENOMEM;
        else if (right && rows[i].algorithm)
            right = used(&r, rows[i].algorithm);
        else if (right)
            right = strncmp(r.what, "cuBLASLt", 8) != 0;
        ok(right, "%s: %s", rows[i].what, et_status_name(rows[i].status));
        if (!right)
            diag("status %d, \"%s\" %s", (int)r.status, r.what, r.why);
        if (rows[i].status == ET_EDEVICE) {
            gpusim_fault(NULL);
            gpu->close(*d);
            gpusim_reset();
            *d = open_gpu();
        }
    }
    for (int i = 1; i <= 4; i++)
        gpusim_blas_delay(i, 0);
    reopen(d);
}

/* ---- products and what follows them ---- */

/* The plain product in DTYPE with gelu behind it, which keeps what that was taken
 * of. */
static struct prepared
prepare_fused_in(struct et_device_handle *d, enum et_dtype dtype)
{
    struct et_matmul_fused_attr attr = {.form = ET_EPILOGUE_GELU};
    struct product p;
    describe(&p, 0, NULL, 64, 96, 48, true);
    for (int i = 0; i < 3; i++)
        p.in[i].dtype = dtype;
    p.out.dtype = dtype;
    const struct et_desc out[2] = {p.out, p.out};
    struct prepared r = {0};
    p.call.op = ET_OP_matmul_fused;
    p.call.attr = &attr;
    p.call.attr_size = sizeof attr;
    p.call.out = out;
    p.call.n_out = 2;
    r = prepare(d, &p);
    if (r.status == ET_OK)
        gpu->release(r.kernel);
    return r;
}

static struct prepared
prepare_fused(struct et_device_handle *d)
{
    return prepare_fused_in(d, ET_BF16);
}

static bool
is_split(const struct prepared *r)
{
    return r->status == ET_OK && strncmp(r->what, "split: ", 7) == 0;
}

static void
test_ways(struct et_device_handle **d)
{
    forget();
    reopen(d);
    struct prepared r = prepare_fused(*d);
    ok(r.status == ET_OK && r.launches > 0, "one kernel and three are timed");
    is_int(kept(NULL), 3, "the faster way is kept, beside what either multiplies by");
    /* The one that multiplies in parts has no epilogue. */
    gpusim_blas_delay(1, SLOW_MS);
    gpusim_blas_delay(4, SLOW_MS);
    reopen(d);
    struct prepared again = prepare_fused(*d);
    is_int(again.launches, 0, "and not timed again by another process");
    is_str(again.what, r.what, "which goes the same way");
    forget();
    reopen(d);
    r = prepare_fused(*d);
    ok(is_split(&r), "a slow epilogue is not used: %s", r.what);
    forget();
    reopen(d);
    deterministic(*d);
    r = prepare_fused(*d);
    ok(used(&r, 1) && r.launches == 0, "where no clock may decide it is taken untimed");
    gpusim_blas_delay(1, 0);
    gpusim_blas_delay(4, 0);
    forget();
    reopen(d);
    gpusim_fault("cublasLtMatmulAlgoGetHeuristic=15@1+");
    r = prepare_fused(*d);
    ok(is_split(&r), "without an algorithm for it there are three kernels: %s", r.what);
    reopen(d);
    r = prepare_fused_in(*d, ET_F32);
    ok(is_split(&r), "nor is a gelu of f32 the library's: %s", r.what);
    if (gpu->set(*d, ET_DEVICE_TF32, 1) != ET_OK)
        bail("no TF32");
    r = prepare_fused_in(*d, ET_F32);
    ok(r.status == ET_OK && !is_split(&r), "but where f32 may be rounded to TF32: %s",
       r.what);
    reopen(d);
}

/* ---- calls ---- */

/* Runs as recorded: what the graph launches. */
static et_status
run_recorded(struct et_device_handle *d, const struct prepared *r, void *const *ptr,
             void *ws, int64_t *launches)
{
    struct et_capture *capture;
    int64_t before = gpusim_counts()->graph_nodes;
    ET_TRY(gpu->capture_begin(d, NULL));
    et_status status = gpu->run(r->kernel, ptr, ws, NULL);
    is_int(d->capturing, 1, "the device knows that a stream is captured");
    ET_TRY(gpu->capture_end(d, NULL, &capture));
    is_int(d->capturing, 0, "and that it is no more");
    if (status == ET_OK)
        status = gpu->replay(capture, NULL);
    if (status == ET_OK)
        status = gpu->sync(d, NULL);
    gpu->capture_free(capture);
    *launches = gpusim_counts()->graph_nodes - before;
    return status;
}

static et_status
run_now(struct et_device_handle *d, const struct prepared *r, void *const *ptr,
        void *ws, int64_t *launches)
{
    int64_t before = gpusim_counts()->launches;
    ET_TRY(gpu->run(r->kernel, ptr, ws, NULL));
    *launches = gpusim_counts()->launches - before;
    return gpu->sync(d, NULL);
}

/* Runs P on operands of ones, of which a begins SHIFT elements into its block: every
 * element of y must be k, plus 1 with a bias. */
static bool
gives_ones(struct et_device_handle *d, const struct product *p, int64_t k, int shift,
           bool recorded, int64_t *launches)
{
    struct prepared r = prepare(d, p);
    size_t n = (size_t)et_desc_count(&p->out);
    bool biased = p->in[2].dtype != ET_NONE;
    void *block[4] = {NULL}, *ws = NULL;
    float *ones = malloc((n + 100000) * sizeof *ones);
    if (r.status != ET_OK || !ones)
        bail("%s", r.why);
    for (size_t i = 0; i < n + 100000; i++)
        ones[i] = 1;
    for (int i = 0; i < 4; i++) {
        const struct et_desc *x = i < 3 ? &p->in[i] : &p->out;
        size_t bytes = x->dtype ? et_desc_bytes(x) + 64 : 64;
        if (gpu->alloc(d, bytes, &block[i]) != ET_OK ||
            gpu->copy(d, block[i], ones, bytes, NULL) != ET_OK)
            bail("cannot allocate");
    }
    if (gpu->alloc(d, r.ws, &ws) != ET_OK)
        bail("cannot allocate");
    void *ptr[] = {(float *)block[0] + shift, block[1], biased ? block[2] : NULL,
                   block[3]};
    et_status status = (recorded ? run_recorded : run_now)(d, &r, ptr, ws, launches);
    if (status != ET_OK || gpu->copy(d, ones, block[3], n * 4, NULL) != ET_OK ||
        gpu->sync(d, NULL) != ET_OK)
        bail("%s", gpu->why(d));
    size_t wrong = 0;
    for (size_t i = 0; i < n; i++)
        wrong += ones[i] != (float)(k + biased);
    for (int i = 0; i < 4; i++)
        gpu->free(d, block[i], 0);
    gpu->free(d, ws, 0);
    gpu->release(r.kernel);
    free(ones);
    return wrong == 0;
}

static void
test_calls(struct et_device_handle **d)
{
    struct product p;
    int64_t launches;
    describe(&p, 2, (int64_t[]){3, 5}, 8, 64, 16, true);
    ok(gives_ones(*d, &p, 64, 0, false, &launches),
       "a batch with one weight is multiplied");
    is_int(launches, 1, "in one call: its matrices are rows of one");
    ok(gives_ones(*d, &p, 64, 0, true, &launches), "and recorded into a graph");
    is_int(launches, 1, "which has one node");
    p.in[0].stride[0] = 8 * 64;
    p.in[0].stride[1] = 3 * 8 * 64;
    ok(gives_ones(*d, &p, 64, 0, false, &launches),
       "and with its axes exchanged in memory");
    is_int(launches, 3, "in a call for each position along the shorter one");
    describe(&p, 2, (int64_t[]){40, 41}, 2, 4, 3, false);
    p.in[0].stride[0] = 8;
    p.in[0].stride[1] = 40 * 8;
    ok(gives_ones(*d, &p, 4, 0, false, &launches), "so is one of many small matrices");
    is_int(launches, 1, "by the own kernel, in one launch");
    describe(&p, 0, NULL, 8, 64, 16, true);
    ok(gives_ones(*d, &p, 64, 1, false, &launches),
       "operands may begin where no wide load does");
    forget();
    reopen(d);
    gpusim_fault("cublasLtMatmulAlgoGetHeuristic=15@2");
    ok(gives_ones(*d, &p, 64, 1, false, &launches),
       "and where cuBLASLt has no algorithm for that");
    reopen(d);
}

/* What a call says in the thread, libraries may take for the result of their own. */
static void
test_leftovers(struct et_device_handle **d)
{
    struct product p;
    int64_t launches;
    struct et_fence *fence;
    void *block;
    bool passed = true;
    describe(&p, 0, NULL, 8, 64, 16, true);
    if (gpu->fence_new(*d, &fence) != ET_OK || gpu->alloc(*d, 64, &block) != ET_OK ||
        gpu->fill(*d, block, 0, 64, NULL) != ET_OK ||
        gpu->fence_set(fence, NULL) != ET_OK ||
        gpu->fence_passed(fence, &passed) != ET_OK)
        bail("%s", gpu->why(*d));
    ok(!passed && gives_ones(*d, &p, 64, 0, false, &launches),
       "a fence that was asked too early spoils no product");
    gpu->fence_free(fence);
    gpu->free(*d, block, 64);
    gpusim_fault("cudaHostAlloc=2@1");
    is_int(gpu->host_alloc(*d, 64, &block), ET_ENOMEM, "pinned memory may be short");
    ok(gives_ones(*d, &p, 64, 0, false, &launches), "which spoils no product either");
    reopen(d);
}

int
main(void)
{
    gpu = open_module_of("gpusim");
    if (!gpu)
        skip_all("the device's module was not built");
    if (!mkdtemp(top))
        bail("cannot make %s", top);
    setenv("ETUDE_CACHE_DIR", top, 1);
    unsetenv("ETUDE_TUNE");
    struct et_device_handle *d = open_gpu();
    test_kept(&d);
    test_keys(&d);
    test_damage(&d);
    test_fastest(&d);
    test_faults(&d);
    test_ways(&d);
    test_calls(&d);
    test_leftovers(&d);
    gpu->close(d);
    char command[64];
    snprintf(command, sizeof command, "rm -rf %s", top);
    ok(system(command) == 0, "the test leaves nothing");
    return done();
}
