/* SPDX-License-Identifier: Apache-2.0 */
/* layouts.c: see layouts.h. */
#include "config.h"

#include "core/base/layouts.h"

#include <stdio.h>
#include <string.h>

#include "core/base/need.h"

struct layout {
    struct et_layout own;
    const char *name;
};

static const struct layout here[] = {
#define ROW(its_name, name, fields)                                                    \
    {{name, fields, sizeof(struct its_name)}, #its_name},
    ET_LAYOUTS(ROW)
#undef ROW
};
enum { N_HERE = sizeof here / sizeof *here };

/* The struct that is called so here; NULL: none is. I: where it may be. */
static const struct layout *
find(uint32_t name, size_t i)
{
    if (i < N_HERE && here[i].own.name == name)
        return &here[i];
    for (i = 0; i < N_HERE; i++)
        if (here[i].own.name == name)
            return &here[i];
    return NULL;
}

static bool
is_old(const struct et_layout *l, const struct eti_old_layout *old, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (old[i].name == l->name && old[i].fields == l->fields)
            return true;
    return false;
}

bool
eti_layouts_fit(const struct et_layout *layouts, size_t n,
                const struct eti_old_layout *old, size_t n_old, char *why,
                size_t why_size)
{
    for (size_t i = 0; i < n; i++) {
        const struct et_layout *l = &layouts[i];
        const struct layout *ours = find(l->name, i);
        if (!ours || (ours->own.fields == l->fields && ours->own.size == l->size) ||
            is_old(l, old, n_old))
            continue;
        if (ours->own.size != l->size)
            snprintf(why, why_size, "struct %s is %u bytes there, %u here", ours->name,
                     l->size, ours->own.size);
        else
            snprintf(why, why_size, "struct %s has other fields there than here",
                     ours->name);
        return false;
    }
    return true;
}

bool
eti_layouts_known(const struct et_layout *layouts, size_t n, char *why, size_t why_size)
{
    static const struct eti_old_layout old[] = {
#define ET_LAYOUT_OLD(name, fields) {name, fields},
#include "core/base/layouts_old.def"
#undef ET_LAYOUT_OLD
        {0, 0},
    };
    return eti_layouts_fit(layouts, n, old, sizeof old / sizeof *old - 1, why,
                           why_size);
}

size_t
eti_layouts_size(const struct et_layout *layouts, size_t n, const char *name)
{
    for (size_t i = 0; i < N_HERE; i++)
        for (size_t k = 0; k < n && strcmp(here[i].name, name) == 0; k++)
            if (layouts[k].name == here[i].own.name)
                return layouts[k].size;
    return 0;
}

/* ---- contexts ---- */

#undef et_ctx_new

et_status
et_ctx_new_for(struct et_ctx **out, const struct et_layout *layouts, size_t n)
{
    ETI_NEED(NULL, out);
    if (n > 0)
        ETI_NEED(NULL, layouts);
    char why[128];
    *out = NULL;
    et_error_clear(NULL);
    if (eti_layouts_known(layouts, n, why, sizeof why))
        return et_ctx_new(out);
    return ET_FAIL(NULL, ET_ENOTSUP,
                   "compiled with other headers than those of libetude %s: %s",
                   et_version(), why);
}
