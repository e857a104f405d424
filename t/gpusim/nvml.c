/* SPDX-License-Identifier: Apache-2.0 */
/* nvml.c: sensors of a GPU at 0000:01:00.0, which is where the simulated one says it
 * is. FAKE_NVML=CALL=CODE,... has calls answer CODE: "power=3,init=9". Compiled with
 * OLD_DRIVER it lacks what early drivers lacked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct device;
struct utilization {
    unsigned gpu, memory;
};
struct memory {
    unsigned long long total, free, used;
};

int nvmlInit_v2(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char *place, struct device **out);
int nvmlDeviceGetUtilizationRates(struct device *, struct utilization *);
int nvmlDeviceGetMemoryInfo(struct device *, struct memory *);
int nvmlDeviceGetTemperature(struct device *, int sensor, unsigned *);
int nvmlDeviceGetPowerUsage(struct device *, unsigned *milliwatts);
int nvmlDeviceGetClockInfo(struct device *, int type, unsigned *);
int nvmlDeviceGetCurrentClocksThrottleReasons(struct device *, unsigned long long *);

static int one; /* what handles point to */

static int
answer(const char *call)
{
    const char *at = getenv("FAKE_NVML");
    size_t n = strlen(call);
    for (; at && *at; at += strcspn(at, ","), at += *at == ',')
        if (strncmp(at, call, n) == 0 && at[n] == '=')
            return (int)strtol(at + n + 1, NULL, 10);
    return 0;
}

static int
asked_of(const struct device *device, const char *call)
{
    return (const void *)device == &one ? answer(call) : 2; /* INVALID_ARGUMENT */
}

int
nvmlInit_v2(void)
{
    return answer("init");
}

int
nvmlDeviceGetHandleByPciBusId_v2(const char *place, struct device **out)
{
    if (strcmp(place, "0000:01:00.0") != 0)
        return 6; /* NOT_FOUND */
    *out = (struct device *)(void *)&one;
    return answer("find");
}

int
nvmlDeviceGetUtilizationRates(struct device *d, struct utilization *out)
{
    *out = (struct utilization){.gpu = 87, .memory = 41};
    return asked_of(d, "utilization");
}

int
nvmlDeviceGetMemoryInfo(struct device *d, struct memory *out)
{
    *out = (struct memory){
        .total = 80000000000ull, .free = 67655000000ull, .used = 12345000000ull};
    return asked_of(d, "memory");
}

int
nvmlDeviceGetTemperature(struct device *d, int sensor, unsigned *out)
{
    *out = sensor == 0 ? 64 : 999;
    return asked_of(d, "temperature");
}

#ifndef OLD_DRIVER
int
nvmlDeviceGetPowerUsage(struct device *d, unsigned *milliwatts)
{
    *milliwatts = 612345;
    return asked_of(d, "power");
}

int
nvmlDeviceGetCurrentClocksThrottleReasons(struct device *d, unsigned long long *out)
{
    const char *bits = getenv("FAKE_REASONS");
    *out = bits ? strtoull(bits, NULL, 16) : 0;
    return asked_of(d, "throttle");
}
#endif

int
nvmlDeviceGetClockInfo(struct device *d, int type, unsigned *out)
{
    *out = type == 1 ? 1755 : type == 2 ? 2619 : 0;
    return asked_of(d, "clock");
}
