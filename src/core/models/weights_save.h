/* SPDX-License-Identifier: Apache-2.0 */
/* weights_save.h: a model's weights under the names of a hub. */
#ifndef ETI_MODELS_WEIGHTS_SAVE_H
#define ETI_MODELS_WEIGHTS_SAVE_H

#include "core/models/safetensors.h"
#include "core/models/weight_maps.h"

struct et_model;

/* et_model_save_weights (model.h) under the names of MAP (NULL: ours), with notes.
 * ENOTSUP: MAP lacks a leaf, which is named. */
ET_NODISCARD et_status eti_model_save_as(struct et_ctx *cx,
                                         const struct et_model *model,
                                         const struct eti_weight_map *map,
                                         uint32_t seed, const struct eti_st_note *notes,
                                         int n_notes, const char *path);

#endif
