/* SPDX-License-Identifier: Apache-2.0 */
/* noise.c: see noise.h. */
#include "t/image/noise.h"

#include <math.h>
#include <string.h>

#include "t/tap.h"

double
noise_unit(uint64_t stream, uint64_t i)
{
    uint64_t x = (i * 0x9E3779B1 + stream * 0x85EBCA77) & 0xFFFFFFFF;
    x ^= x >> 16;
    x = x * 0x21F0AAAD & 0xFFFFFFFF;
    x ^= x >> 15;
    x = x * 0x735A2D97 & 0xFFFFFFFF;
    x ^= x >> 15;
    return (double)x * 0x1p-32;
}

struct et_canvas
noise_picture(const char *name, uint8_t *out, struct eti_scratch *room)
{
    static const struct {
        const char *name;
        int H, W, C;
    } all[] = {{"rgb", 13, 11, 3},
               {"grey", 13, 11, 1},
               {"dim", 13, 11, 3},
               {"large", 30, 28, 3}};
    uint64_t k = 0;
    while (k < 4 && strcmp(all[k].name, name) != 0)
        k++;
    if (k == 4)
        bail("no picture %s", name);
    int n = all[k].H * all[k].W * all[k].C;
    for (int i = 0; i < n; i++) {
        double v = floor(noise_unit(k + 1, (uint64_t)i) * 256);
        v = k == 2 ? 60 + floor(v * 100 / 256) : k == 3 ? floor(v * v / 256) : v;
        out[i] = (uint8_t)v;
    }
    return (struct et_canvas){out, all[k].C, all[k].H, all[k].W, room};
}
