/* SPDX-License-Identifier: Apache-2.0 */
/* network_impl.h: what network.c and network_names.c share: where reading is. */
#ifndef ETI_NETWORK_IMPL_H
#define ETI_NETWORK_IMPL_H

#include "core/recipe/network.h"

/* The block whose list is being read, and those around it. */
struct eti_network_frame {
    const struct eti_network_frame *outer;
    const struct et_value *block;
};

/* The list that is being read, and those around it. */
struct eti_network_scope {
    const struct eti_network_scope *outer;
    const struct et_value *list;
    struct eti_network *net; /* what has been read of it */
};

struct eti_network_block {
    const struct et_value *list;
    bool is_used, is_wrong; /* wrong: told once is enough */
};

struct eti_network_reading {
    const struct eti_fill *fill;
    struct eti_arena *arena;
    bool is_alone;
    struct eti_network_block *block;
    int n_blocks;
    const struct eti_network_frame *frame;
    int64_t times, n_layers; /* how often what is read now is there; of all so far */
};

/* WHAT ("layer") is called like none of NAMES [N]; the nearest is told. */
void eti_network_unknown(const struct eti_network_reading *r, const struct et_place *at,
                         const char *path, const char *what, const char *name,
                         const char *const *names, int n);
/* A name of a value, or a list of them. */
ET_NODISCARD et_status eti_network_read_refs(const struct eti_network_reading *r,
                                             const struct eti_network_scope *s,
                                             const struct et_value *v, const char *path,
                                             struct eti_network_refs *out);
/* V is the name of what OUT gives. */
void eti_network_read_as(const struct eti_network_reading *r,
                         const struct eti_network_scope *s, const struct et_value *v,
                         const char *path, struct eti_network_item *out);
void eti_network_tell_unused(const struct eti_network_reading *r,
                             const struct eti_network *net, const char *path);
/* Letters, digits, _ and - only. */
bool eti_network_is_name(const char *text);

#endif
