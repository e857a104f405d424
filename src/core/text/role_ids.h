/* SPDX-License-Identifier: Apache-2.0 */
/* role_ids.h: what Hugging Face's config.json and generation_config.json call the ids
 * of tokens with a role, and tokenizer_config.json the tokens. */
#ifndef ETI_TEXT_ROLE_IDS_H
#define ETI_TEXT_ROLE_IDS_H

#include "etude/tokenizer.h"

struct eti_role_id {
    const char *key; /* NULL ends the list */
    enum et_token_role role;
};
extern const struct eti_role_id eti_role_ids[];
extern const char *const eti_token_role_keys[ET_TOKEN_ROLES];

#endif
