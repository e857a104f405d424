/* edit.h: one value of a YAML text changed where it stands. */
#ifndef ETI_EDIT_H
#define ETI_EDIT_H

#include "core/recipe/value.h"

/* The N bytes of TEXT with the value at PATH ("ui.plot") set to VALUE, a YAML value:
 * only its bytes change, or a line is added, so comments, order and the rest of the
 * layout stay. NAME is the file's, for ERRORS. EINVAL and ERRORS: TEXT or VALUE is not
 * YAML, or PATH leads through what is no mapping. ENOTSUP: the text is written in a way
 * (aliases, odd layouts) in which that place cannot be changed alone. *OUT ends with a
 * zero; caller frees with et_free. A pure function of its arguments. */
ET_NODISCARD et_status eti_yaml_set(struct et_ctx *cx, const char *text, size_t n,
                                    const char *name, const char *path,
                                    const char *value, struct et_diagnostics *errors,
                                    char **out);

#endif
