/* SPDX-License-Identifier: Apache-2.0 */
/* hub_config.h: config.json of a Hugging Face folder, as the name of a model and values
 * of its options, and back. */
#ifndef ETI_MODELS_HUB_CONFIG_H
#define ETI_MODELS_HUB_CONFIG_H

#include <jansson.h>

#include "etude/model.h"

enum { ETI_HUB_SETTINGS = 24 };

struct eti_hub_setting {
    char name[32], text[32]; /* an option of the model, and its value as YAML */
};

struct eti_hub_config {
    const char *model; /* its class's name */
    struct eti_hub_setting setting[ETI_HUB_SETTINGS];
    int n;
    struct et_model_facts facts; /* of images and tokens, as far as it says them */
};

/* What the config of FOLDER asks for. ENOENT, EIO; EFORMAT: it cannot be read, or asks
 * for what no model here has, which is named. */
ET_NODISCARD et_status eti_hub_config_read(struct et_ctx *cx, const char *folder,
                                           struct eti_hub_config *out);
/* The same of the object ROOT; PATH is for messages. */
ET_NODISCARD et_status eti_hub_config_parse(struct et_ctx *cx, const char *path,
                                            const json_t *root,
                                            struct eti_hub_config *out);
/* M's config.json; ends with json_decref. ENOTSUP: Hugging Face has no such model, or
 * none with those options. */
ET_NODISCARD et_status eti_hub_config_make(const struct et_model *m, json_t **out);

/* hub.c: writes JSON as the file NAME of FOLDER. ENOMEM: JSON is NULL. */
ET_NODISCARD et_status eti_hub_write_json(struct et_ctx *cx, const json_t *json,
                                          const char *folder, const char *name);

/* hub_tokens.c: writes T into FOLDER, which et_model_export has made as "hf", for
 * transformers' AutoTokenizer: the files that T was read from, or a tokenizer.json
 * where its tokens are the bytes, and tokenizer_config.json. Writes into config.json
 * which tokens begin and end a text and fill a row: T's ids, null where T has no such
 * token; and generation_config.json with these, where M goes on with texts. T may be
 * NULL: not known, so that Hugging Face's defaults, of another vocabulary, hold for no
 * GPT. */
struct et_tokenizer;
ET_NODISCARD et_status eti_hub_add_tokens(struct et_ctx *cx, const struct et_model *m,
                                          const struct et_tokenizer *t,
                                          const char *folder);

#endif
