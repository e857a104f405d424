/* SPDX-License-Identifier: Apache-2.0 */
/* pictures.c: see pictures.h. */
#include "t/image/pictures.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/tap.h"

const char *
source_path(const char *name)
{
    static char path[4096];
    const char *root = getenv("ET_SRCDIR");
    snprintf(path, sizeof path, "%s/%s", root ? root : ".", name);
    return path;
}

static size_t
load(const char *name, uint8_t *out, size_t most)
{
    FILE *f = fopen(source_path(name), "rb");
    if (!f)
        bail("cannot read %s", name);
    size_t n = fread(out, 1, most, f);
    fclose(f);
    return n;
}

void
picture_load(struct picture_file *f, const char *name)
{
    static uint8_t rgb[sizeof f->rgb + 2];
    char path[256];
    snprintf(path, sizeof path, "t/fuzz/pictures-seeds/%s", name);
    f->n = load(path, f->bytes, sizeof f->bytes);
    snprintf(path, sizeof path, "t/image/expected/%s.rgb", name);
    size_t n = load(path, rgb, sizeof rgb);
    f->W = rgb[0];
    f->H = rgb[1];
    if (n != 2 + 3 * (size_t)f->W * (size_t)f->H)
        bail("%s has %zu bytes", path, n);
    memcpy(f->rgb, rgb + 2, n - 2);
}
