/* SPDX-License-Identifier: Apache-2.0 */
/* mask_names.h: what the classes of masks are called: as the user says, as a file says,
 * or as the data have it. */
#ifndef ETI_DATA_MASK_NAMES_H
#define ETI_DATA_MASK_NAMES_H

#include "core/data/picture_list.h"

struct eti_mask_name_options {
    struct et_texts classes; /* names in order; none: see CLASS_FILE */
    char *class_file;        /* of names, a line each, or of ADE20K's; NULL: none */
};
/* Rows of a struct with a member `names` of it. */
#define ETI_MASK_NAME_OPTIONS(S)                                                       \
    {                                                                                  \
        .name = "classes",                                                             \
        .type = ET_OPT_TEXTS,                                                          \
        .offset = offsetof(S, names.classes),                                          \
        .def = "[]",                                                                   \
        .flags = ET_OPT_LATER,                                                         \
        .help =                                                                        \
            "names of the classes, in order; empty: class_file's, or the layout's",    \
    },                                                                                 \
    {                                                                                  \
        .name = "class_file", .type = ET_OPT_PATH,                                     \
        .offset = offsetof(S, names.class_file),                                       \
        .flags = ET_OPT_OPTIONAL | ET_OPT_LATER,                                       \
        .help = "file with a name a line, or with ADE20K's table (objectInfo150.txt)", \
    }

/* Puts the names of N classes into OUT, which is empty, and stays so where nobody
 * names them. FALLBACK [N], which may be NULL: names where the user has none. TABLE,
 * which may be NULL: a file that is taken where it is there and the user has no other.
 * EFORMAT, EINVAL: there is another number of names than N. */
ET_NODISCARD et_status eti_mask_names(struct et_ctx *cx,
                                      const struct eti_mask_name_options *o,
                                      const char *const *fallback, const char *table,
                                      int64_t n, struct eti_strings *out);

#endif
