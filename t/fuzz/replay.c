/* replay.c: see replay.h. */
#include "t/fuzz/replay.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etude/rng.h"
#include "t/tap.h"

enum { LARGEST = 64 << 10, COPIES = 200 };

/* Changes a few bytes: another value, an indicator, an end, or a piece moved. */
static size_t
damage(struct et_rng *r, const char *indicators, uint8_t *data, size_t size)
{
    for (uint32_t left = 1 + et_rng_below(r, 4); left && size; left--) {
        uint32_t at = et_rng_below(r, (uint32_t)size);
        switch (et_rng_below(r, 4)) {
        case 0:
            data[at] = (uint8_t)et_rng_below(r, 256);
            break;
        case 1:
            data[at] =
                (uint8_t)indicators[et_rng_below(r, (uint32_t)strlen(indicators))];
            break;
        case 2:
            size = at;
            break;
        default: {
            uint32_t from = et_rng_below(r, (uint32_t)size);
            size_t n = size - (from > at ? from : at);
            memmove(data + at, data + from, n < 16 ? n : 16);
        }
        }
    }
    return size;
}

/* A block of exactly SIZE bytes, so that a sanitizer sees a read past its end. */
static void
try_once(const uint8_t *data, size_t size)
{
    uint8_t *exact = malloc(size ? size : 1);
    memcpy(exact, data, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

static void
replay(const char *folder, const char *name, const char *indicators)
{
    static uint8_t seed[LARGEST], data[LARGEST];
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    if (!f)
        bail("cannot read %s", path);
    size_t size = fread(seed, 1, sizeof seed, f);
    fclose(f);
    try_once(seed, size);
    struct et_rng r = et_rng_at(17, ET_RNG_SELECT, size);
    for (int i = 0; i < COPIES; i++) {
        memcpy(data, seed, size);
        try_once(data, damage(&r, indicators, data, size));
    }
    ok(true, "%s and %d damaged copies are read or refused", name, COPIES);
}

void
fuzz_replay(const char *name, const char *indicators)
{
    char folder[2048];
    const char *root = getenv("ET_SRCDIR");
    snprintf(folder, sizeof folder, "%s/t/fuzz/%s", root ? root : ".", name);
    DIR *dir = opendir(folder);
    if (!dir)
        bail("no folder %s", folder);
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        if (e->d_name[0] != '.')
            replay(folder, e->d_name, indicators);
    closedir(dir);
}
