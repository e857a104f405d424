/* SPDX-License-Identifier: Apache-2.0 */
/* nvml.c: what the GPU's sensors say, through NVIDIA's management library.
 *
 * libnvidia-ml.so.1 comes with the driver and has no part in CUDA: it is opened when
 * somebody first asks, and a machine without it, or a driver without one of its
 * functions, loses those numbers and nothing else. Its interface is stable: the few
 * declarations here are those of nvml.h, which toolkits do not always bring. It numbers
 * GPUs in its own order, so ours is found by its place on the bus. */
#include "kernels/cuda/cuda.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct nvml_device; /* the library's */

struct nvml_utilization {
    unsigned gpu, memory; /* percent of the last sampling period, 1/6 s to 1 s */
};

struct nvml_memory {
    unsigned long long total, free, used; /* bytes */
};

enum { NVML_TEMPERATURE_GPU = 0, NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2 };

/* Bits of nvmlClocksThrottleReasons, and what they are to us. */
static const struct {
    unsigned long long reason;
    unsigned slowed;
} reasons[] = {
    {0x04, ET_SLOWED_POWER},    /* SwPowerCap */
    {0x08, ET_SLOWED_HARDWARE}, /* HwSlowdown */
    {0x20, ET_SLOWED_HEAT},     /* SwThermalSlowdown */
    {0x40, ET_SLOWED_HEAT},     /* HwThermalSlowdown */
    {0x80, ET_SLOWED_POWER},    /* HwPowerBrakeSlowdown */
};

/* Member, symbol, arguments. The first two must be there. */
#define NVML_CALLS(X)                                                                  \
    X(init, nvmlInit_v2, (void))                                                       \
    X(find, nvmlDeviceGetHandleByPciBusId_v2, (const char *, struct nvml_device **))   \
    X(utilization, nvmlDeviceGetUtilizationRates,                                      \
      (struct nvml_device *, struct nvml_utilization *))                               \
    X(memory, nvmlDeviceGetMemoryInfo, (struct nvml_device *, struct nvml_memory *))   \
    X(temperature, nvmlDeviceGetTemperature, (struct nvml_device *, int, unsigned *))  \
    X(power, nvmlDeviceGetPowerUsage, (struct nvml_device *, unsigned *))              \
    X(clock, nvmlDeviceGetClockInfo, (struct nvml_device *, int, unsigned *))          \
    X(throttle, nvmlDeviceGetCurrentClocksThrottleReasons,                             \
      (struct nvml_device *, unsigned long long *))

struct etk_nvml {
    struct nvml_device *device; /* NULL: it could not be opened */
    et_status status;           /* why not */
#define MEMBER(member, symbol, args) int(*member) args;
    NVML_CALLS(MEMBER)
#undef MEMBER
};

/* ---- opening ---- */

static et_status
refuse(struct et_device_handle *d, const char *why)
{
    pthread_mutex_lock(&d->lock);
    snprintf(d->why, sizeof d->why, "%s", why);
    pthread_mutex_unlock(&d->lock);
    return ET_ENOTSUP;
}

/* Beside a real GPU the simulated one must not show the real one's numbers. */
static const char *
library_name(void)
{
    const char *given = getenv("ETUDE_NVML");
    if (given && given[0])
        return given;
#ifdef ETK_SIM
    return NULL;
#else
    return "libnvidia-ml.so.1";
#endif
}

static et_status
start(struct et_device_handle *d, struct etk_nvml *n)
{
    char place[32];
    const char *name = library_name();
    void *library = name ? dlopen(name, RTLD_LAZY | RTLD_LOCAL) : NULL;
    if (!library)
        return refuse(d, name ? dlerror() : "a simulated GPU has no sensors");
#define FIND(member, symbol, args) *(void **)&n->member = dlsym(library, #symbol);
    NVML_CALLS(FIND)
#undef FIND
    if (!n->init || !n->find)
        return refuse(d, "the management library of this driver is too old");
    int code = n->init();
    if (code != 0)
        return etk_fail(d, ETK_NVML, code, "nvmlInit_v2");
    ETK_TRY_CUDA(d, cudaDeviceGetPCIBusId(place, (int)sizeof place, d->index));
    code = n->find(place, &n->device);
    return code ? etk_fail(d, ETK_NVML, code, "nvmlDeviceGetHandleByPciBusId_v2")
                : ET_OK;
}

/* Once: what failed is not tried at every sample. */
static et_status
open_once(struct et_device_handle *d)
{
    if (d->nvml)
        return d->nvml->status;
    d->nvml = calloc(1, sizeof *d->nvml);
    if (!d->nvml)
        return ET_ENOMEM;
    d->nvml->status = start(d, d->nvml);
    return d->nvml->status;
}

/* The library itself stays: its last user would unload it, and it has threads. */
void
etk_nvml_close(struct et_device_handle *d)
{
    free(d->nvml);
    d->nvml = NULL;
}

/* ---- reading ---- */

/* What a call answered. A GPU need not have every sensor; one that is lost has none. */
static bool
says(struct et_device_handle *d, int code, const char *what)
{
    if (etk_classify(ETK_NVML, code) == ET_EDEVICE)
        d->nvml->status = etk_fail(d, ETK_NVML, code, what);
    return code == 0;
}

static void
read_clocks(struct et_device_handle *d, struct et_device_sensors *s)
{
    const struct etk_nvml *n = d->nvml;
    unsigned mhz;
    unsigned long long why;
    if (n->clock && says(d, n->clock(n->device, NVML_CLOCK_SM, &mhz), "the clock"))
        s->clock = mhz;
    if (n->clock && says(d, n->clock(n->device, NVML_CLOCK_MEM, &mhz), "the clock"))
        s->memory_clock = mhz;
    if (!n->throttle || !says(d, n->throttle(n->device, &why), "the clock's limits"))
        return;
    unsigned slowed = 0;
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        slowed |= why & reasons[i].reason ? reasons[i].slowed : 0;
    s->slowed = slowed;
}

et_status
etk_nvml_read(struct et_device_handle *d, struct et_device_sensors *s)
{
    struct nvml_utilization busy;
    struct nvml_memory memory;
    unsigned value;
    *s = (struct et_device_sensors){NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    ET_TRY(d->lost);
    ET_TRY(open_once(d));
    const struct etk_nvml *n = d->nvml;
    if (n->utilization && says(d, n->utilization(n->device, &busy), "utilization")) {
        s->busy = busy.gpu;
        s->memory_busy = busy.memory;
    }
    if (n->memory && says(d, n->memory(n->device, &memory), "memory in use"))
        s->memory_used = (double)memory.used;
    if (n->temperature &&
        says(d, n->temperature(n->device, NVML_TEMPERATURE_GPU, &value), "temperature"))
        s->temperature = value;
    if (n->power && says(d, n->power(n->device, &value), "power"))
        s->power = value / 1e3;
    read_clocks(d, s);
    return n->status;
}
