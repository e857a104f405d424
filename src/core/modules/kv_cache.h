/* SPDX-License-Identifier: Apache-2.0 */
/* kv_cache.h: keys and values of the tokens that a causal model has seen, so that the
 * next token costs one position and not the whole text.
 *
 * A pass over a window fills the cache; each pass after it has one token, whose keys
 * and values are added, and whose query sees all of them. A cache is of one sequence.
 * Source: Pope et al., "Efficiently scaling transformer inference", 2022 (2211.05102),
 * section 2. */
#ifndef ETI_MODULES_KV_CACHE_H
#define ETI_MODULES_KV_CACHE_H

#include "etude/module.h"

struct eti_kv_cache;

/* For sequences of up to T tokens through ROOT, on DEV, which are borrowed until it is
 * freed. *OUT is NULL where ROOT has a layer that looks at other positions and is no
 * causal attention, for which nothing can be kept. ENOMEM. */
ET_NODISCARD et_status eti_kv_cache_new(struct et_ctx *cx, struct et_device *dev,
                                        struct et_module *root, int64_t T,
                                        struct eti_kv_cache **out);
void eti_kv_cache_free(struct eti_kv_cache **cache);

/* Until eti_kv_end, what is built on G is a pass over the first tokens of a sequence
 * and keeps their keys and values in C, which may be NULL. */
void eti_kv_fill(struct et_graph *g, struct eti_kv_cache *c);
/* The same for the one token at the place AT, I32 [1]: those before it are in C. */
void eti_kv_go_on(struct et_graph *g, struct eti_kv_cache *c, struct et_tensor *at);
void eti_kv_end(struct et_graph *g);

/* For an attention in its forward pass over T positions. Where G has no cache these
 * leave all as it is. How many keys its queries are compared with: */
int64_t eti_kv_keys(const struct et_graph *g, int64_t t);
/* BIAS [1,1|H,1,KEYS], which may be NULL, with the places hidden that no token has
 * yet. */
struct et_tensor *eti_kv_hide(struct et_graph *g, struct et_tensor *bias);
/* KV: keys and values [1,H,T,D] of ATTENTION, which are kept, and become those of all
 * KEYS. */
void eti_kv_keep(struct et_graph *g, const struct et_module *attention,
                 struct et_tensor *kv[2]);

#endif
