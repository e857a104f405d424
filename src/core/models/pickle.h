/* SPDX-License-Identifier: Apache-2.0 */
/* pickle.h: the tensors that a pickle of torch.save describes. Nothing is executed: the
 * names that a pickle may call are a list of a dozen, each of which only says what a
 * tensor is. */
#ifndef ETI_MODELS_PICKLE_H
#define ETI_MODELS_PICKLE_H

#include "core/base/arena.h"
#include "core/models/safetensors.h"

/* The arrays that tensors are views of are members of the archive. */
struct eti_pickle_tensor {
    const char *name;    /* of the dictionary */
    const char *storage; /* the member's name in data/ */
    enum et_dtype dtype; /* BOOL is U8 */
    int64_t elements;    /* of the storage */
    int64_t offset;      /* of the first element in it */
    int ndim;            /* at most ETI_ST_MAX_DIMS */
    int64_t shape[ETI_ST_MAX_DIMS], stride[ETI_ST_MAX_DIMS];
};

enum { ETI_PICKLE_MAX = 4 << 20 }; /* bytes: of some 20,000 tensors */

/* Reads the N bytes of a pickle: a dictionary from names to tensors, or one that has
 * such a dictionary as "state_dict", "model_state_dict", "model" or "module"; what else
 * is in it is left out. *OUT is in ARENA, in the dictionary's order. EFORMAT: it lies,
 * or asks for a name that is not in the list, which is told. PATH is for messages. A
 * pure function of the bytes but for CX's error and memory. */
ET_NODISCARD et_status eti_pickle_read(struct et_ctx *cx, const char *path,
                                       const uint8_t *bytes, int64_t n,
                                       struct eti_arena *arena,
                                       struct eti_pickle_tensor **out, int64_t *count);

#endif
