/* SPDX-License-Identifier: Apache-2.0 */
/* symbols.cc: names of kernels and where their static shared memory is, from the symbol
 * table of the file they are in: kernels are seldom exported, so the loader knows
 * neither.
 *
 * __shared__ is static here, and a static variable of a function is named after it:
 * that of the kernel _ZL3sumPf is _ZZL3sumPfE4slot. Those that begin as zeros are
 * shared memory (a kernel has no other static variables). Variables of functions that a
 * kernel calls are not found. */
#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "state.h"

struct symbol {
    std::string name;
    char *address;
    size_t size;
    bool function;
};

/* Functions, and variables that begin as zeros, of the file that is loaded at BIAS. */
static std::vector<symbol>
read_symbols(const std::vector<char> &file, char *bias)
{
    std::vector<symbol> found;
    const ElfW(Ehdr) *head = (const ElfW(Ehdr) *)file.data();
    if (file.size() < sizeof *head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
        head->e_shoff + head->e_shnum * sizeof(ElfW(Shdr)) > file.size())
        return found;
    const ElfW(Shdr) *section = (const ElfW(Shdr) *)(file.data() + head->e_shoff);
    for (int i = 0; i < head->e_shnum; i++) {
        if (section[i].sh_type != SHT_SYMTAB)
            continue;
        const ElfW(Sym) *s = (const ElfW(Sym) *)(file.data() + section[i].sh_offset);
        const char *names = file.data() + section[section[i].sh_link].sh_offset;
        for (size_t n = section[i].sh_size / sizeof *s; n-- > 0; s++) {
            bool function = ELF64_ST_TYPE(s->st_info) == STT_FUNC;
            bool zeros = ELF64_ST_TYPE(s->st_info) == STT_OBJECT &&
                         s->st_shndx < head->e_shnum &&
                         section[s->st_shndx].sh_type == SHT_NOBITS;
            if (s->st_value && (function || zeros))
                found.push_back(
                    {names + s->st_name, bias + s->st_value, s->st_size, function});
        }
    }
    return found;
}

static std::vector<char>
read_file(const char *path)
{
    std::vector<char> all;
    FILE *f = fopen(path, "rb");
    char part[65536];
    for (size_t n; f && (n = fread(part, 1, sizeof part, f)) > 0;)
        all.insert(all.end(), part, part + n);
    if (f)
        fclose(f);
    return all;
}

/* Those of the library that ADDRESS is in, read once. */
static const std::vector<symbol> &
symbols_around(const void *address)
{
    /* By path and place. */
    static auto &libraries = *new std::map<std::string, std::vector<symbol>>;
    static auto &none = *new std::vector<symbol>;
    Dl_info info;
    struct link_map *map;
    if (!dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP))
        return none;
    const char *path = *map->l_name ? map->l_name : "/proc/self/exe";
    std::string key = path + (" at " + std::to_string(map->l_addr));
    auto it = libraries.find(key);
    if (it == libraries.end())
        it = libraries.emplace(key, read_symbols(read_file(path), (char *)map->l_addr))
                 .first;
    return it->second;
}

static const symbol *
symbol_at(const void *address)
{
    for (const symbol &s : symbols_around(address))
        if (s.function && s.address == address)
            return &s;
    return nullptr;
}

static std::string
demangled(const std::string &name)
{
    int status;
    char *plain = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
    std::string text = plain ? plain : name;
    free(plain);
    return text;
}

const gpusim_facts &
gpusim_facts_of(const void *kernel)
{
    static auto &known = *new std::map<const void *, gpusim_facts>;
    auto it = known.find(kernel);
    if (it != known.end())
        return it->second;
    gpusim_facts facts;
    const symbol *k = symbol_at(kernel);
    if (k) {
        facts.name = demangled(k->name);
        std::string prefix = "_ZZ" + k->name.substr(k->name.find("_Z") + 2) + "E";
        for (const symbol &s : symbols_around(kernel))
            if (!s.function && s.name.compare(0, prefix.size(), prefix) == 0)
                facts.shared.push_back({s.address, s.size});
    } else {
        char text[32];
        snprintf(text, sizeof text, "kernel at %p", kernel);
        facts.name = text;
    }
    return known.emplace(kernel, facts).first->second;
}
