/* SPDX-License-Identifier: Apache-2.0 */
/* driver.c: a driver that answers what FAKE_DRIVER says: its version, what cuInit and
 * cuDeviceGetCount return, and how many GPUs there are: "13000 0 0 1". The tests build
 * it as libcuda.so.1. */
#include <stdio.h>
#include <stdlib.h>

int cuDriverGetVersion(int *version);
int cuInit(unsigned flags);
int cuDeviceGetCount(int *count);

static int
answer(int place)
{
    const char *text = getenv("FAKE_DRIVER");
    int v[4] = {0};
    if (!text || sscanf(text, "%d %d %d %d", &v[0], &v[1], &v[2], &v[3]) != 4)
        abort();
    return v[place];
}

int
cuDriverGetVersion(int *version)
{
    *version = answer(0);
    return 0;
}

int
cuInit(unsigned flags)
{
    return flags ? 1 : answer(1);
}

int
cuDeviceGetCount(int *count)
{
    *count = answer(3);
    return answer(2);
}
