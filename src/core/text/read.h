/* SPDX-License-Identifier: Apache-2.0 */
/* read.h: what the readers of tokenizer files share. */
#ifndef ETI_TEXT_READ_H
#define ETI_TEXT_READ_H

#include <jansson.h>

#include "core/text/impl.h"

/* Reads an object; EFORMAT with file:line:column. */
ET_NODISCARD et_status eti_json(struct et_ctx *cx, const char *name, const char *text,
                                size_t n, json_t **out);
/* {"text": id}, into T's vocabulary. */
ET_NODISCARD et_status eti_read_vocab(struct et_tokenizer *t, const char *name,
                                      const json_t *vocab);
/* One merge of BPE. WHERE begins the message. */
ET_NODISCARD et_status eti_read_merge(struct et_tokenizer *t, const char *where,
                                      int64_t rank, const char *left, size_t n_left,
                                      const char *right, size_t n_right);
/* The error that stands, with the file's name and WHERE in it. */
ET_NODISCARD et_status eti_text_name_file(struct et_tokenizer *t, const char *name,
                                          const char *where);
/* CLS A SEP, and CLS A SEP B SEP. */
void eti_frame_bert(struct et_tokenizer *t, int32_t cls, int32_t sep);

/* ---- tokenizer.json, step by step (read_stages.c) ---- */

ET_NODISCARD et_status eti_read_normalizer(struct et_tokenizer *t, const char *name,
                                           const json_t *json);
ET_NODISCARD et_status eti_read_pre_tokenizer(struct et_tokenizer *t, const char *name,
                                              const json_t *json);
ET_NODISCARD et_status eti_read_decoder(struct et_tokenizer *t, const char *name,
                                        const json_t *json);
ET_NODISCARD et_status eti_read_post_processor(struct et_tokenizer *t, const char *name,
                                               const json_t *json);
/* The model is read first: these then know its vocabulary. */

/* A member that may be missing, and then is what OTHERWISE says. */
bool eti_json_flag(const json_t *json, const char *key, bool otherwise);

#endif
