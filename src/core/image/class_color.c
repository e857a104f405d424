/* SPDX-License-Identifier: Apache-2.0 */
/* class_color.c: see class_color.h. */
#include "config.h"

#include <string.h>

#include "core/image/class_color.h"

/* Hues are a golden ratio of the circle apart. */
bool
eti_class_color(int32_t class, uint8_t rgb[3])
{
    double hue = class * 0.618033988749895;
    memset(rgb, class < 0 ? 96 : 0, 3);
    if (class <= 0)
        return false;
    hue = 6 * (hue - (double)(int64_t)hue);
    for (int c = 0; c < 3; c++) {
        double d = hue - 2 * c;
        d = d < -3 ? d + 6 : d > 3 ? d - 6 : d; /* from the channel's own hue */
        d = d < 0 ? -d : d;
        rgb[c] = d <= 1 ? 255 : d >= 2 ? 0 : (uint8_t)(255 * (2 - d));
    }
    return true;
}

void
eti_voc_color(int32_t class, uint8_t rgb[3])
{
    memset(rgb, class < 0 ? 255 : 0, 3);
    for (int bit = 7; class > 0 && bit >= 0; bit--, class >>= 3)
        for (int k = 0; k < 3; k++)
            rgb[k] |= (uint8_t)((class >> k & 1) << bit);
}
