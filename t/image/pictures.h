/* SPDX-License-Identifier: Apache-2.0 */
/* pictures.h: files of t/fuzz/pictures-seeds, and what Pillow finds in them
 * (t/golden/make_codecs.py). */
#ifndef ETUDE_T_IMAGE_PICTURES_H
#define ETUDE_T_IMAGE_PICTURES_H

#include <stddef.h>
#include <stdint.h>

struct picture_file {
    uint8_t bytes[1 << 16];
    size_t n;
    int H, W;
    uint8_t rgb[1 << 14]; /* packed */
};

/* The end of the test where there is none. */
void picture_load(struct picture_file *f, const char *name);
/* The path of a file of the source tree. Borrowed until the next. */
const char *source_path(const char *name);

#endif
