/* SPDX-License-Identifier: Apache-2.0 */
/* elf.c: see elf.h. Every offset and count is checked against the file before it is
 * used; structs are copied out, so that alignment does not matter. */
#include "config.h"

#include "core/plugin/elf.h"

#include <elf.h>
#include <link.h>
#include <string.h>

#if UINTPTR_MAX > 0xffffffffu
typedef Elf64_Ehdr header;
typedef Elf64_Phdr segment;
typedef Elf64_Shdr section;
typedef Elf64_Sym entry;
enum { CLASS = ELFCLASS64 };
#else
typedef Elf32_Ehdr header;
typedef Elf32_Phdr segment;
typedef Elf32_Shdr section;
typedef Elf32_Sym entry;
enum { CLASS = ELFCLASS32 };
#endif

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
enum { DATA = ELFDATA2LSB };
#else
enum { DATA = ELFDATA2MSB };
#endif

#if defined __x86_64__
enum { MACHINE = EM_X86_64 };
#elif defined __aarch64__
enum { MACHINE = EM_AARCH64 };
#elif defined __i386__
enum { MACHINE = EM_386 };
#elif defined __riscv
enum { MACHINE = EM_RISCV };
#elif defined __powerpc64__
enum { MACHINE = EM_PPC64 };
#elif defined __s390x__
enum { MACHINE = EM_S390 };
#elif defined __arm__
enum { MACHINE = EM_ARM };
#else
#error "add this processor's ELF machine here"
#endif

struct file {
    const char *bytes;
    size_t n;
    header h;
};

static bool
holds(const struct file *f, size_t at, size_t n)
{
    return at <= f->n && n <= f->n - at;
}

/* Item I of a table of COUNT items of SIZE bytes at AT. */
static bool
get(const struct file *f, size_t at, size_t count, size_t i, void *out, size_t size)
{
    if (i >= count || count > f->n / size || !holds(f, at, count * size))
        return false;
    memcpy(out, f->bytes + at + i * size, size);
    return true;
}

static bool
get_section(const struct file *f, size_t i, section *out)
{
    return f->h.e_shentsize == sizeof *out &&
           get(f, f->h.e_shoff, f->h.e_shnum, i, out, sizeof *out);
}

static bool
find_dynamic_symbols(const struct file *f, section *symbols, section *names)
{
    for (size_t i = 0; i < f->h.e_shnum && get_section(f, i, symbols); i++)
        if (symbols->sh_type == SHT_DYNSYM)
            return symbols->sh_entsize == sizeof(entry) &&
                   get_section(f, symbols->sh_link, names) &&
                   holds(f, names->sh_offset, names->sh_size);
    return false;
}

static bool
is_named(const struct file *f, const section *names, size_t at, const char *name)
{
    size_t n = strlen(name) + 1;
    return at < names->sh_size && n <= names->sh_size - at &&
           memcmp(f->bytes + names->sh_offset + at, name, n) == 0;
}

/* Where in the file address AT of the loaded library comes from. */
static bool
find_bytes(const struct file *f, size_t at, size_t size, size_t *offset)
{
    segment s;
    for (size_t i = 0; f->h.e_phentsize == sizeof s &&
                       get(f, f->h.e_phoff, f->h.e_phnum, i, &s, sizeof s);
         i++)
        if (s.p_type == PT_LOAD && at >= s.p_vaddr && at - s.p_vaddr <= s.p_filesz &&
            size <= s.p_filesz - (at - s.p_vaddr) && holds(f, s.p_offset, s.p_filesz)) {
            *offset = s.p_offset + (at - s.p_vaddr);
            return true;
        }
    return false;
}

const char *
eti_elf_find(const void *bytes, size_t n, const char *symbol, size_t *offset,
             size_t *size)
{
    struct file f = {.bytes = bytes, .n = n};
    section symbols, names;
    entry e;
    if (!get(&f, 0, 1, 0, &f.h, sizeof f.h) ||
        memcmp(f.h.e_ident, ELFMAG, SELFMAG) != 0)
        return "is no ELF file";
    if (f.h.e_ident[EI_CLASS] != CLASS || f.h.e_ident[EI_DATA] != DATA ||
        f.h.e_machine != MACHINE)
        return "is for another processor";
    if (f.h.e_type != ET_DYN)
        return "is no shared library";
    if (!find_dynamic_symbols(&f, &symbols, &names))
        return "has no table of symbols";
    for (size_t i = 0;
         get(&f, symbols.sh_offset, symbols.sh_size / sizeof e, i, &e, sizeof e); i++) {
        if (e.st_shndx == SHN_UNDEF || !is_named(&f, &names, e.st_name, symbol))
            continue;
        if ((e.st_info & 0xf) != STT_OBJECT ||
            !find_bytes(&f, e.st_value, e.st_size, offset))
            return "exports et_plugin, but as no object of the file";
        *size = e.st_size;
        return NULL;
    }
    return "exports no et_plugin";
}

/* ---- what is loaded ---- */

struct range {
    uintptr_t at, begin, end;
};

static int
find_range(struct dl_phdr_info *info, size_t size, void *data)
{
    struct range *r = data;
    uintptr_t begin = UINTPTR_MAX, end = 0;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *s = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + s->p_vaddr;
        if (s->p_type != PT_LOAD)
            continue;
        begin = from < begin ? from : begin;
        end = from + s->p_memsz > end ? from + s->p_memsz : end;
    }
    if (r->at < begin || r->at >= end)
        return 0;
    r->begin = begin;
    r->end = end;
    return 1;
}

bool
eti_elf_range(const void *address, uintptr_t *begin, uintptr_t *end)
{
    struct range r = {.at = (uintptr_t)address};
    bool found = dl_iterate_phdr(find_range, &r) == 1;
    *begin = r.begin;
    *end = r.end;
    return found;
}
