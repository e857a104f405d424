/* SPDX-License-Identifier: Apache-2.0 */
/* weight_folder.h: a model's folder as Hugging Face writes it: config.json beside
 * model.safetensors, or beside shards of it that model.safetensors.index.json lists;
 * or, where there is neither, pytorch_model.bin, likewise. */
#ifndef ETI_MODELS_WEIGHT_FOLDER_H
#define ETI_MODELS_WEIGHT_FOLDER_H

#include <jansson.h>

#include "core/models/weight_file.h"

#define ETI_FOLDER_CONFIG  "config.json"
#define ETI_FOLDER_WEIGHTS "model.safetensors"

/* What eti_weight_file_open does with a folder. *OUT has cx and file.path set. */
ET_NODISCARD et_status eti_weight_folder_open(struct et_ctx *cx, const char *path,
                                              struct eti_weight_file *out);
/* Does the folder PATH hold weights under one of the names above? */
bool eti_weight_folder_is(struct et_ctx *cx, const char *path);

/* The JSON object in the file NAME of FOLDER, which ends with json_decref. ENOENT, EIO,
 * EFORMAT: it is something else, or has more than 16 MiB. */
ET_NODISCARD et_status eti_folder_json(struct et_ctx *cx, const char *folder,
                                       const char *name, json_t **out);

#endif
