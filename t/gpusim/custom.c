/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of the user's own on a GPU: launched on the stream, recorded and replayed,
 * and refused with the class's name. */
#include <gpusim.h>
#include <stdio.h>
#include <string.h>

#include <cuda_runtime_api.h>

#include "etude/etude.h"
#include "t/tap.h"

enum { N = 100, RUNS = 8 };

static struct et_ctx *cx;
static struct et_device *dev;
static struct et_graph *g;
static int calls;

static void
need(et_status status)
{
    if (status != ET_OK)
        bail("%s", et_error_get(cx)->message);
}

static size_t
copy_workspace(const struct et_call *call)
{
    return et_desc_bytes(&call->in[0]);
}

/* y = x, by way of the workspace. */
static et_status
copy_gpu(const struct et_custom_run *run)
{
    size_t bytes = et_desc_bytes(&run->in[0]);
    calls++;
    if (cudaMemcpyAsync(run->workspace, run->x[0], bytes, cudaMemcpyDeviceToDevice,
                        run->stream) != cudaSuccess)
        return ET_EDEVICE;
    cudaMemcpyAsync(run->y[0], run->workspace, bytes, cudaMemcpyDeviceToDevice,
                    run->stream);
    return ET_OK;
}

static et_status
failing_gpu(const struct et_custom_run *run)
{
    snprintf(run->why, run->why_size, "there is no table for %lld elements",
             (long long)et_desc_count(&run->in[0]));
    return ET_ENOTSUP;
}

/* What it launches fails, and it does not look. */
static et_status
careless_gpu(const struct et_custom_run *run)
{
    cudaMemcpyAsync(NULL, run->x[0], 4, cudaMemcpyDeviceToDevice, run->stream);
    return ET_OK;
}

static et_status
nothing_host(const struct et_custom_run *run)
{
    (void)run;
    return ET_OK;
}

#define CLASS                                                                          \
    .size = sizeof(struct et_custom_class), .min_in = 1, .max_in = 1, .n_out = 1
static const struct et_custom_class copy_class = {
    CLASS, .name = "mine", .workspace = copy_workspace, .gpu = copy_gpu};
static const struct et_custom_class failing_class = {CLASS, .name = "mine",
                                                     .gpu = failing_gpu};
static const struct et_custom_class careless_class = {CLASS, .name = "mine",
                                                      .gpu = careless_gpu};
static const struct et_custom_class host_class = {CLASS, .name = "mine",
                                                  .host = nothing_host};

static void
write_numbers(struct et_tensor *x, float first)
{
    float v[N];
    for (int i = 0; i < N; i++)
        v[i] = first + (float)i;
    need(et_tensor_write(cx, x, v, sizeof v));
}

/* 2 x + 1, half of it through the class. */
static void
test_recorded(struct et_tensor *x)
{
    struct et_graph_stats stats;
    int right = 0;
    float y[N];
    for (int k = 0; k < RUNS; k++) {
        et_graph_reset(g);
        write_numbers(x, (float)k);
        struct et_tensor *own = et_custom(g, &copy_class, &x, 1, NULL, NULL);
        struct et_tensor *sum = et_add(g, et_add_scalar(g, x, 1), own);
        need(et_eval(g, &sum, 1));
        need(et_tensor_read(cx, sum, y, sizeof y));
        right += y[0] == 2 * (float)k + 1 && y[N - 1] == 2 * (float)(k + N - 1) + 1;
    }
    et_graph_get_stats(g, &stats);
    is_int(right, RUNS, "a class's launches give what they should, recorded or not");
    ok(stats.launches >= RUNS - 3, "most evaluations replay a recording of them (%lld)",
       (long long)stats.launches);
    ok(calls < RUNS, "which does not call the class again (%d calls)", calls);
}

static void
refused(const struct et_custom_class *type, struct et_tensor *x, const char *message,
        const char *what)
{
    et_graph_reset(g);
    et_error_clear(cx);
    struct et_tensor *y = et_custom(g, type, &x, 1, NULL, NULL);
    ok(et_eval(g, &y, 1) != ET_OK, "%s fails the evaluation", what);
    const char *said = et_error_get(cx)->message;
    ok(strncmp(said, message, strlen(message)) == 0, "%s is told: %s", what, said);
}

int
main(void)
{
    const int64_t shape[] = {N};
    struct et_tensor *x;
    need(et_ctx_new(&cx));
    need(et_device_open(cx, "gpusim", 0, 1, &dev));
    need(et_graph_new(cx, dev, &g));
    need(et_tensor_new(cx, dev, ET_F32, 1, shape, ET_ROW_MAJOR, "x", &x));
    write_numbers(x, 0);
    test_recorded(x);
    refused(&failing_class, x,
            "mine failed on gpusim: there is no table for 100 elements",
            "a class that fails");
    refused(&host_class, x,
            "mine of f32[100] on gpusim: its class has no function for a GPU",
            "a class for the processor alone");
    refused(&careless_class, x, "mine failed on gpusim: custom mine: cudaError",
            "a launch that failed unseen");
    et_graph_reset(g);
    et_error_clear(cx);
    struct et_tensor *y = et_neg(g, x);
    ok(et_eval(g, &y, 1) == ET_OK, "and the next kernel is not taken for it");
    et_graph_free(&g);
    et_tensor_free(&x);
    et_device_close(&dev);
    et_ctx_free(&cx);
    return done();
}
