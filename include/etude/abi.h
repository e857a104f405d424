/* SPDX-License-Identifier: Apache-2.0 */
/* abi.h: with which headers a program or a plugin was compiled.
 *
 * Programs and plugins fill in structs of these headers and read others. One that was
 * compiled when a struct had other fields would be misread, so each carries a table of
 * how the structs were declared: etude.h puts it into every call of et_ctx_new,
 * ET_PLUGIN into the plugin. What differs from the library's own is refused, by the
 * struct's name. A struct that has grown at its end since a release is no difference:
 * what is passed with a size (ET_NEW, et_trainer_new ...) is read as if the rest were
 * zero, and so is a class, which says its size (ET_CLASS). Structs that lie in others
 * or in arrays (et_component, et_option) grow into the room that they reserve.
 * Enumerations keep their values, and grow at their end. */
#ifndef ETUDE_ABI_H
#define ETUDE_ABI_H

#include "etude/etude.h"

/* ET_LAYOUTS(X): X(struct's name, hash of the name, hash of its fields), written from
 * these headers when Etude is built. */
#include "etude/layouts.h"

#ifdef __cplusplus
extern "C" {
#endif

struct et_layout {
    uint32_t name, fields; /* hashes */
    uint32_t size;
};

#define ET_LAYOUT_ROW(its_name, name, fields) {name, fields, sizeof(struct its_name)},

/* As et_ctx_new, for a caller that was compiled with N LAYOUTS. ENOTSUP, with *OUT
 * NULL, where a struct is declared differently here; et_error_get(NULL) then has the
 * sentence. */
ET_NODISCARD et_status et_ctx_new_for(struct et_ctx **out,
                                      const struct et_layout *layouts, size_t n);

ET_NODISCARD static inline et_status
et_ctx_new_here(struct et_ctx **out)
{
    static const struct et_layout layouts[] = {ET_LAYOUTS(ET_LAYOUT_ROW)};
    return et_ctx_new_for(out, layouts, sizeof layouts / sizeof *layouts);
}
#define et_ctx_new(out) et_ctx_new_here(out)

#ifdef __cplusplus
}
#endif
#endif
