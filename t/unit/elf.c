/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a library's symbols from its bytes: found where the loaded program has them,
 * and no file, however damaged, leads outside itself (the sanitizers' build
 * watches). */
#include "core/plugin/elf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "t/tap.h"

/* Exported: the tests are linked with -rdynamic. Its address is not the linker's to
 * know. */
extern const uint32_t elf_test_object[4];
const uint32_t elf_test_object[4] = {0x12345678, 0x9abcdef0, 3, 4};

static char *
read_self(size_t *n)
{
    FILE *f = fopen("/proc/self/exe", "rb");
    size_t room = 64 << 20;
    char *bytes = malloc(room);
    if (!f || !bytes)
        bail("cannot read this program");
    *n = fread(bytes, 1, room, f);
    fclose(f);
    return bytes;
}

/* Whatever is found lies within the file. */
static bool
is_sound(const char *bytes, size_t n)
{
    size_t offset = 0, size = 0;
    const char *why = eti_elf_find(bytes, n, "elf_test_object", &offset, &size);
    return why ? why[0] != '\0' : offset <= n && size <= n - offset;
}

static uint32_t
next(uint32_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 17;
    *x ^= *x << 5;
    return *x;
}

int
main(void)
{
    size_t n, offset, size;
    uintptr_t begin, end;
    char *bytes = read_self(&n);
    const char *why = eti_elf_find(bytes, n, "elf_test_object", &offset, &size);
    ok(!why && size == sizeof elf_test_object &&
           memcmp(bytes + offset, elf_test_object, size) == 0,
       "an exported object is found in the file%s%s", why ? ": " : "", why ? why : "");
    is_str(eti_elf_find(bytes, n, "elf_test_nothing", &offset, &size),
           "exports no et_plugin", "one that is not there is not");
    is_str(eti_elf_find(bytes, n, "main", &offset, &size),
           "exports et_plugin, but as no object of the file", "nor is a function");
    is_str(eti_elf_find("\177ELF", 4, "x", &offset, &size), "is no ELF file",
           "four bytes are no library");

    /* Files cut anywhere, each in memory of exactly its size. */
    bool sound = true;
    for (size_t cut = 0; cut < n; cut += cut < 256 ? 1 : n / 97) {
        char *part = malloc(cut ? cut : 1);
        memcpy(part, bytes, cut);
        sound &= is_sound(part, cut);
        free(part);
    }
    ok(sound, "a file that is cut off is refused, or sound");

    /* The header and the tables of sections and segments, with bytes changed. */
    uint32_t seed = 12345;
    char *copy = malloc(n);
    enum { ROUNDS = 4000, HEAD = 2048, TAIL = 4096 };
    for (int i = 0; i < ROUNDS; i++) {
        memcpy(copy, bytes, i == 0 ? n : HEAD);
        memcpy(copy + n - TAIL, bytes + n - TAIL, TAIL);
        for (int k = 0; k < 4; k++) {
            size_t at = next(&seed) % (k & 1 ? HEAD : TAIL);
            copy[k & 1 ? at : n - TAIL + at] = (char)next(&seed);
        }
        copy[0] = '\177';
        sound &= is_sound(copy, n);
    }
    ok(sound, "and so is one whose tables lie, %d times", ROUNDS);
    free(copy);
    free(bytes);

    ok(eti_elf_range(elf_test_object, &begin, &end) &&
           begin <= (uintptr_t)elf_test_object && (uintptr_t)elf_test_object < end &&
           begin <= (uintptr_t)&main && (uintptr_t)&main < end,
       "the range of what is loaded holds its objects and its code");
    ok(!eti_elf_range((const void *)16, &begin, &end), "no library is at address 16");
    return done();
}
