/* SPDX-License-Identifier: Apache-2.0 */
/* text_source.h: data sets of text that a tokenizer makes into tokens. */
#ifndef ETI_DATA_TEXT_SOURCE_H
#define ETI_DATA_TEXT_SOURCE_H

#include "core/data/token_file.h"
#include "etude/tokenizer.h"

/* A member of such a data set's options, and its rows. */
struct eti_text_options {
    char *tokenizer; /* NULL: the bytes, or a folder's own */
    int document;    /* enum eti_document */
};
extern const char *const eti_document_names[];

/* clang-format off */
#define ETI_TEXT_OPTIONS(T)                                                            \
    {                                                                                  \
        .name = "tokenizer",                                                           \
        .type = ET_OPT_PATH,                                                           \
        .offset = offsetof(T, text.tokenizer),                                         \
        .flags = ET_OPT_OPTIONAL,                                                      \
        .help = "tokenizer.json, vocab.json, vocab.txt, *.model or their folder; "     \
                "else bytes",                                                          \
    },                                                                                 \
    {                                                                                  \
        .name = "document",                                                            \
        .type = ET_OPT_ENUM,                                                           \
        .offset = offsetof(T, text.document),                                          \
        .def = "file",                                                                 \
        .choices = eti_document_names,                                                 \
        .help = "what is one: a file, a line, or what is between blank lines",         \
    }
/* clang-format on */

/* What a folder's tokens.json says. */
struct eti_token_folder {
    int width; /* bytes of a token */
    int64_t vocab_size;
    char tokenizer[256]; /* its file in the folder, or "bytes" */
    int32_t end;         /* the token behind each document; -1: none */
};
/* *FOUND is false where FOLDER has none. EFORMAT: it does not say all that. */
ET_NODISCARD et_status eti_token_folder_read(struct et_ctx *cx, const char *folder,
                                             struct eti_token_folder *out, bool *found);

/* What else there is about the tokens of a data set. */
struct eti_text_found {
    char ends[ETI_PATH_MAX]; /* the file that says where each document ends */
    int32_t end;             /* the token behind each document; -1: none */
};

/* Opens SELF, whose state begins with a struct eti_token_file, on the tokens of PATH: a
 * folder of `etude data tokenize`, or texts, of which a tenth of the documents is the
 * test split; or folders of MDS, train and val. What texts become is kept in the cache,
 * under a name that changes with them. FOUND may be NULL. */
ET_NODISCARD et_status eti_text_open(struct et_ctx *cx, struct et_dataset *self,
                                     const char *path,
                                     const struct eti_text_options *text,
                                     struct eti_text_found *found);

/* Opens the tokenizer that made the tokens of DATA, whose files need not be there: that
 * of its option tokenizer, else that of the folder which its path is, else the bytes
 * where it has 256 tokens. The caller's, to be freed. ENOENT: none of them. */
ET_NODISCARD et_status eti_text_tokenizer(struct et_ctx *cx,
                                          const struct et_dataset *data,
                                          struct et_tokenizer **out);

#endif
