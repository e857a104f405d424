/* SPDX-License-Identifier: Apache-2.0 */
/* Every kind of graph that is given to cuDNN has an engine there:
 * plans are made by the real library, without a GPU, for an H200 that is only
 * described. */
#include "t/tap.h"

#ifndef WITH_CUDNN
int
main(void)
{
    skip_all("the CUDA module is not built");
    return 0;
}
#else
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph/gpu_libs.h"
#include "kernels/cuda/conv_graph.h"
#include "t/kernels/cudnn_sdpa.h"

/* What CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION takes in 9.19; not documented,
 * finalize names each key that is missing. NEEDSWORK: written by hand from NVIDIA's
 * tables; put the text here that the attribute gives on an H200. */
static const char h200[] =
    "{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],"
    "\"regsPerBlock\":65536,\"multiProcessorCount\":132,\"warpSize\":32,"
    "\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":232448,"
    "\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,"
    "\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,"
    "\"pciDeviceId\":0,\"isTccDriver\":0,\"supportCoopLaunch\":1,"
    "\"totalGlobalMem\":150754820096,\"smClockRateKHz\":1980000,"
    "\"memClockRateKHz\":3201000,\"l2CacheSize\":62914560,\"cudaDeviceId\":0,"
    "\"deviceVer\":900,\"driverVer\":13000,\"deviceName\":\"NVIDIA H200\"}";
enum { SCHEMA_OF = 919 };
static const size_t most = (size_t)256 << 20;

/* device.c's. */
void *
etk_new(size_t size)
{
    return calloc(1, size);
}

struct layer {
    int c, size, k, taps, stride, pad, groups;
};

static const struct layer resnet50[] = {
    {64, 56, 64, 1, 1, 0, 1},    {64, 56, 64, 3, 1, 1, 1},
    {64, 56, 256, 1, 1, 0, 1},   {256, 56, 64, 1, 1, 0, 1},
    {256, 56, 128, 1, 1, 0, 1},  {128, 56, 128, 3, 2, 1, 1},
    {128, 28, 512, 1, 1, 0, 1},  {256, 56, 512, 1, 2, 0, 1},
    {512, 28, 128, 1, 1, 0, 1},  {128, 28, 128, 3, 1, 1, 1},
    {512, 28, 256, 1, 1, 0, 1},  {256, 28, 256, 3, 2, 1, 1},
    {256, 14, 1024, 1, 1, 0, 1}, {512, 28, 1024, 1, 2, 0, 1},
    {1024, 14, 256, 1, 1, 0, 1}, {256, 14, 256, 3, 1, 1, 1},
    {1024, 14, 512, 1, 1, 0, 1}, {512, 14, 512, 3, 2, 1, 1},
    {512, 7, 2048, 1, 1, 0, 1},  {1024, 14, 2048, 1, 2, 0, 1},
    {2048, 7, 512, 1, 1, 0, 1},  {512, 7, 512, 3, 1, 1, 1},
};
static const struct layer resnet18[] = {
    {64, 56, 64, 3, 1, 1, 1},   {64, 56, 128, 3, 2, 1, 1},  {64, 56, 128, 1, 2, 0, 1},
    {128, 28, 128, 3, 1, 1, 1}, {128, 28, 256, 3, 2, 1, 1}, {128, 28, 256, 1, 2, 0, 1},
    {256, 14, 256, 3, 1, 1, 1}, {256, 14, 512, 3, 2, 1, 1}, {256, 14, 512, 1, 2, 0, 1},
    {512, 7, 512, 3, 1, 1, 1},
};
static const struct layer resnet20[] = {
    {16, 32, 16, 3, 1, 1, 1}, {16, 32, 32, 3, 2, 1, 1}, {16, 32, 32, 1, 2, 0, 1},
    {32, 16, 32, 3, 1, 1, 1}, {32, 16, 64, 3, 2, 1, 1}, {32, 16, 64, 1, 2, 0, 1},
    {64, 8, 64, 3, 1, 1, 1},
};
/* LeNet, U-Net's ends, squeezed pixels, groups, ViT's patches, depthwise 7x7. */
static const struct layer others[] = {
    {6, 14, 16, 5, 1, 0, 1}, {64, 128, 2, 1, 1, 0, 1},  {128, 64, 64, 2, 2, 0, 1},
    {96, 1, 4, 1, 1, 0, 1},  {64, 28, 64, 3, 1, 1, 4},  {768, 14, 192, 1, 1, 0, 1},
    {5, 7, 11, 3, 2, 1, 1},  {48, 14, 48, 7, 1, 3, 48},
};
static const struct layer stems[] = {
    {3, 224, 64, 7, 2, 3, 1}, {3, 32, 16, 3, 1, 1, 1},     {1, 28, 6, 5, 1, 0, 1},
    {3, 224, 32, 3, 2, 1, 1}, {3, 224, 768, 16, 16, 0, 1},
};

static const char *const kinds[] = {[ETK_CONV_FORWARD] = "forward",
                                    [ETK_CONV_DATA] = "gradient of the input",
                                    [ETK_CONV_FILTER] = "gradient of the weights"};

static struct etk_conv
conv_of(const struct layer *l, enum etk_conv_kind kind, enum et_dtype dtype, int n)
{
    int64_t y = (l->size + 2 * l->pad - l->taps) / l->stride + 1;
    return (struct etk_conv){
        .kind = kind,
        .dtype = dtype,
        .n = n,
        .c = l->c,
        .k = l->k,
        .x = {l->size, l->size},
        .y = {y, y},
        .taps = {l->taps, l->taps},
        .stride = {l->stride, l->stride},
        .pad = {l->pad, l->pad},
        .dilation = {1, 1},
        .groups = l->groups,
    };
}

/* Is there a plan? Its engine's name into NAME (64 bytes), its workspace into WS. */
static bool
has_plan(struct et_device_handle *d, const struct etk_conv *v, bool packed, bool adds,
         bool precompiled, char *name, size_t *ws)
{
    struct etk_dnn_graph g = {0};
    struct etk_dnn_plan *plan = NULL;
    char why[256] = "";
    etk_conv_graph(&g, v, packed, adds);
    struct etk_dnn_limits limits = {
        .workspace = most, .tune = 8, .precompiled = precompiled};
    et_status status = etk_dnn_plan(d, &g, &limits, &plan, ws, why, sizeof why);
    if (status != ET_OK)
        diag("%s of %lld x %lld x %lld: %s", kinds[v->kind], (long long)v->c,
             (long long)v->x[0], (long long)v->k, why[0] ? why : d->why);
    else
        snprintf(name, 64, "%s", etk_dnn_plan_name(plan));
    etk_dnn_plan_free(plan);
    return status == ET_OK;
}

static void
test_layers(struct et_device_handle *d, const char *what, const struct layer *l, int n,
            int batch)
{
    static const enum et_dtype dtypes[] = {ET_BF16, ET_F16, ET_F32};
    char name[64];
    size_t ws;
    for (size_t t = 0; t < 3; t++)
        for (int kind = ETK_CONV_FORWARD; kind <= ETK_CONV_FILTER; kind++)
            for (int adds = 0; adds < (kind == ETK_CONV_FILTER ? 1 : 2); adds++) {
                int found = 0;
                for (int i = 0; i < n; i++) {
                    struct etk_conv v =
                        conv_of(&l[i], (enum etk_conv_kind)kind, dtypes[t], batch);
                    found += has_plan(d, &v, false, adds, true, name, &ws);
                }
                is_int(found, n, "%s, %s, %s%s: every shape has a precompiled engine",
                       what, et_dtype_name(dtypes[t]), kinds[kind],
                       adds ? " and bias" : "");
            }
}

/* 64 MiB is far below what an engine takes that pads 3 channels itself (205 MB). */
static void
test_stems(struct et_device_handle *d)
{
    for (size_t i = 0; i < sizeof stems / sizeof stems[0]; i++)
        for (int kind = ETK_CONV_FORWARD; kind <= ETK_CONV_FILTER;
             kind += ETK_CONV_FILTER - ETK_CONV_FORWARD)
            for (enum et_dtype t = ET_BF16; t <= ET_F16; t++) {
                struct etk_conv v =
                    conv_of(&stems[i], (enum etk_conv_kind)kind, t, 256);
                char name[64] = "";
                size_t ws = SIZE_MAX;
                bool found = has_plan(d, &v, true, false, true, name, &ws);
                ok(found && ws <= (size_t)64 << 20,
                   "a stem of %d channels, %dx%d stride %d, %s, %s, space to depth: "
                   "%s, "
                   "workspace %zu",
                   stems[i].c, stems[i].taps, stems[i].taps, stems[i].stride,
                   et_dtype_name(t), kinds[kind], name, ws);
            }
}

/* Which engine a 3x3 of 64 channels gets. */
static void
test_options(struct et_device_handle *d)
{
    struct etk_conv v = conv_of(&resnet50[1], ETK_CONV_FORWARD, ET_F32, 64);
    char exact[64] = "", fast[64] = "", same[64] = "";
    size_t ws, narrow_ws = 0;
    has_plan(d, &v, false, false, true, exact, &ws);
    d->tf32 = true;
    has_plan(d, &v, false, false, true, fast, &ws);
    d->tf32 = false;
    ok(exact[0] && strcmp(exact, fast) != 0, "f32 is exact by %s, and TF32 by %s",
       exact, fast);
    v.dtype = ET_BF16;
    has_plan(d, &v, false, false, true, exact, &ws);
    d->tf32 = true;
    has_plan(d, &v, false, false, true, same, &narrow_ws);
    d->tf32 = false;
    is_str(same, exact, "which changes nothing for bf16");
    d->deterministic = true;
    for (int kind = ETK_CONV_FORWARD; kind <= ETK_CONV_FILTER; kind++) {
        v.kind = (enum etk_conv_kind)kind;
        ok(has_plan(d, &v, false, false, true, same, &ws), "%s, deterministic, by %s",
           kinds[kind], same);
    }
    d->deterministic = false;
}

static void
test_refusals(struct et_device_handle *d)
{
    struct etk_dnn_graph g = {0};
    struct etk_dnn_plan *plan = NULL;
    struct etk_dnn_limits limits = {.workspace = most};
    struct etk_conv v = conv_of(&resnet50[1], ETK_CONV_FORWARD, ET_BF16, 4);
    char why[256] = "";
    size_t ws;
    v.y[0]++;
    etk_conv_graph(&g, &v, false, false);
    ok(etk_dnn_plan(d, &g, &limits, &plan, &ws, why, sizeof why) != ET_OK &&
           (why[0] || d->why[0]),
       "a result of the wrong size is refused with a sentence: %s",
       why[0] ? why : d->why);
    struct etk_dnn_graph crowded = {0};
    int64_t one[4] = {1, 1, 1, 1};
    for (int i = 0; i <= ETK_DNN_TENSORS; i++)
        etk_dnn_virtual(&crowded, CUDNN_DATA_FLOAT, 4, one);
    is_int(etk_dnn_plan(d, &crowded, &limits, &plan, &ws, why, sizeof why),
           ET_EINTERNAL, "a graph with too many tensors is refused");
}

#define LAYERS(l) l, (int)(sizeof l / sizeof l[0])

int
main(void)
{
    if (cudnnGetVersion() / 100 != SCHEMA_OF)
        skip_all("the description of a device is that of cuDNN 9.19");
    eti_gpu_libs_use_rtc("");
    struct et_device_handle d = {.lock = PTHREAD_MUTEX_INITIALIZER};
    if (etk_dnn_open_properties(&d, h200) != ET_OK)
        bail("the H200's description is refused: %s", d.why);
    test_attention(&d);
    test_layers(&d, "ResNet-50", LAYERS(resnet50), 256);
    test_layers(&d, "ResNet-18", LAYERS(resnet18), 256);
    test_layers(&d, "ResNet-20", LAYERS(resnet20), 128);
    test_layers(&d, "other networks", LAYERS(others), 32);
    test_stems(&d);
    test_options(&d);
    test_refusals(&d);
    etk_dnn_close(&d);
    return done();
}
#endif
