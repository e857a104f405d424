/* SPDX-License-Identifier: Apache-2.0 */
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

/* Of a conversation, one line to a message: a line that comes again, or not at all. */
static size_t
damage_lines(struct et_rng *r, uint8_t *data, size_t size)
{
    for (uint32_t left = 1 + et_rng_below(r, 4); left && size; left--) {
        size_t from = et_rng_below(r, (uint32_t)size), at;
        while (from > 0 && data[from - 1] != '\n')
            from--;
        const uint8_t *end = memchr(data + from, '\n', size - from);
        size_t n = end ? (size_t)(end - data) + 1 - from : size - from;
        if (et_rng_below(r, 2)) {
            memmove(data + from, data + from + n, size - from - n);
            size -= n;
            continue;
        }
        at = et_rng_below(r, (uint32_t)size);
        while (at > 0 && data[at - 1] != '\n')
            at--;
        uint8_t line[256];
        if (n > sizeof line || size + n > LARGEST)
            continue;
        memcpy(line, data + from, n);
        memmove(data + at + n, data + at, size - at);
        memcpy(data + at, line, n);
        size += n;
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
    bool is_talk = strchr(indicators, '\n') != NULL;
    for (int i = 0; i < COPIES; i++) {
        memcpy(data, seed, size);
        size_t n = is_talk && i % 4 ? damage_lines(&r, data, size) : size;
        try_once(data, is_talk && i % 2 ? n : damage(&r, indicators, data, n));
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
