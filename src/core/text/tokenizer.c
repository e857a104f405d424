/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer.c: opens tokenizers by what their files are, and says what they hold. */
#include "core/base/need.h"
#include "etude/tokenizer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/memory.h"
#include "core/data/file.h"
#include "core/text/charsmap.h"

/* No tokenizer's file is as large. */
#define FILE_MAX ((int64_t)256 << 20)

/* ---- parts ---- */

et_status
eti_copy(struct et_ctx *cx, const char *text, size_t n, char **out)
{
    ET_TRY(et_alloc(cx, n + 1, (void **)out));
    memcpy(*out, text, n);
    return ET_OK;
}

/* Sets a token's place in the lists of those that are found in texts. */
et_status
eti_tokenizer_add(struct et_tokenizer *t, const char *text, size_t n,
                  struct eti_added added)
{
    int32_t known = eti_vocab_find(&t->vocab, text, n);
    if (known != added.id)
        ET_TRY(eti_vocab_add(&t->vocab, added.id, text, n));
    ET_TRY(
        eti_grow(t->cx, &t->added, &t->added_room, t->n_added + 1, sizeof *t->added));
    t->added[t->n_added++] = added;
    return ET_OK;
}

/* Ids of "<0x00>" to "<0xFF>"; -1 of those that are not there. False: none is. */
static bool
find_fallback(struct et_tokenizer *t)
{
    bool any = false;
    for (int b = 0; b < 256; b++) {
        char text[8];
        int n = snprintf(text, sizeof text, "<0x%02X>", (unsigned)b);
        t->fallback[b] = eti_vocab_find(&t->vocab, text, (size_t)n);
        any |= t->fallback[b] >= 0;
    }
    return any;
}

bool
eti_has_bytes(const struct et_tokenizer *t, const char *text, size_t n)
{
    bool has = t->has_fallback;
    for (size_t i = 0; has && i < n; i++)
        has = t->fallback[(uint8_t)text[i]] >= 0;
    return has;
}

/* What each token decodes to; one with other characters is its own text. */
static et_status
find_bytes(struct et_tokenizer *t)
{
    char *bytes = NULL;
    int64_t room = 0;
    et_status s = ET_OK;
    for (int64_t id = 0; id < t->vocab.n && s == ET_OK; id++) {
        size_t n;
        const char *text = eti_vocab_text(&t->vocab, id, &n);
        if (!text)
            continue;
        s = eti_grow(t->cx, &bytes, &room, (int64_t)n + 1, 1);
        if (s != ET_OK)
            break;
        int64_t n_bytes = eti_byte_text(text, n, bytes);
        s = n_bytes >= 0 ? eti_vocab_add(&t->bytes, id, bytes, (size_t)n_bytes)
                         : eti_vocab_add(&t->bytes, id, text, n);
    }
    et_free(t->cx, bytes);
    return s;
}

static void
find_byte_ids(struct et_tokenizer *t)
{
    for (int b = 0; b < 256; b++) {
        char text[4] = {(char)b};
        size_t n = t->byte_level ? eti_byte_char((uint8_t)b, text) : 1;
        t->bpe.byte_id[b] =
            b < 0x80 || t->byte_level ? eti_vocab_find(&t->vocab, text, n) : -1;
        if (t->bpe.byte_id[b] < 0 && b < 0x80 && !t->byte_level)
            t->bpe.byte_id[b] = eti_vocab_find(&t->bpe.extra, text, n);
    }
}

/* WordPiece: tokens that begin with "##" go on; "##" itself and what is empty do not
 * count. */
static et_status
find_pieces(struct et_tokenizer *t)
{
    const char *prefix = t->bpe.prefix ? t->bpe.prefix : "";
    size_t n_prefix = strlen(prefix), n;
    for (int64_t id = 0; id < t->vocab.n; id++) {
        const char *text = eti_vocab_text(&t->vocab, id, &n);
        if (!text || n == 0 || eti_vocab_find(&t->vocab, text, n) != id)
            continue;
        ET_TRY(eti_trie_add(&t->first, text, n, (int32_t)id));
        if (n > n_prefix && memcmp(text, prefix, n_prefix) == 0)
            ET_TRY(eti_trie_add(&t->rest, text + n_prefix, n - n_prefix, (int32_t)id));
    }
    return ET_OK;
}

static const struct {
    enum et_token_role role;
    const char *text[6];
} usual[] = {
    {ET_TOKEN_UNK, {"[UNK]", "<unk>", "<|unk|>"}},
    {ET_TOKEN_BOS,
     {"<s>", "<bos>", "<|begin_of_text|>", "<|startoftext|>", "<|endoftext|>"}},
    {ET_TOKEN_EOS, {"</s>", "<eos>", "<|end_of_text|>", "<|endoftext|>"}},
    {ET_TOKEN_PAD, {"[PAD]", "<pad>", "<|pad|>", "<|padding|>"}},
    {ET_TOKEN_CLS, {"[CLS]"}},
    {ET_TOKEN_SEP, {"[SEP]"}},
    {ET_TOKEN_MASK, {"[MASK]", "<mask>"}},
};

/* Roles that no file names go to tokens that have the usual texts for them. */
static void
guess_roles(struct et_tokenizer *t)
{
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        for (int k = 0; k < 6 && usual[i].text[k]; k++) {
            int32_t *role = &t->role[usual[i].role];
            const char *text = usual[i].text[k];
            if (*role < 0)
                *role = eti_vocab_find(&t->vocab, text, strlen(text));
        }
}

static et_status
add_to_tries(struct et_tokenizer *t)
{
    struct et_encoder e = {.cx = t->cx, .t = t};
    et_status s = ET_OK;
    e.match = pcre2_match_data_create(8, NULL);
    if (!e.match)
        return ET_FAIL(t->cx, ET_ENOMEM, "no memory for a pattern's matches");
    for (int64_t i = 0; i < t->n_added && s == ET_OK; i++) {
        const struct eti_added *a = &t->added[i];
        size_t n;
        const char *text = eti_vocab_text(&t->vocab, a->id, &n);
        if (a->normalized && t->n_norms > 0)
            s = eti_normalize(&e, text, n, &text, &n);
        if (s == ET_OK && n > 0)
            s = eti_trie_add(a->normalized ? &t->normal : &t->raw, text, n, (int32_t)i);
    }
    for (int i = 0; i < 2; i++)
        et_free(t->cx, e.norm[i].text);
    pcre2_match_data_free(e.match);
    return s;
}

static bool
is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Could an added token lie on both sides of a space between two letters? */
static bool
may_cross_cut(const struct et_tokenizer *t, const struct eti_added *a)
{
    size_t n;
    const char *text = eti_vocab_text(&t->vocab, a->id, &n);
    bool strips = (a->lstrip && n && is_letter(text[0])) ||
                  (a->rstrip && n && is_letter(text[n - 1]));
    return strips || (n && memchr(text, ' ', n));
}

et_status
eti_tokenizer_finish(struct et_tokenizer *t, const char *name)
{
    if (t->vocab.n == 0)
        return ET_FAIL(t->cx, ET_EFORMAT, "%s: no token", name);
    if (t->model == ETI_WORDPIECE && t->unk < 0)
        return ET_FAIL(t->cx, ET_EFORMAT, "%s: no token for what is unknown", name);
    t->has_fallback = t->has_fallback && find_fallback(t);
    if (t->byte_level)
        ET_TRY(find_bytes(t));
    find_byte_ids(t);
    if (t->model == ETI_WORDPIECE)
        ET_TRY(find_pieces(t));
    ET_TRY(add_to_tries(t));
    if (!t->special)
        ET_TRY(et_alloc(t->cx, (size_t)t->vocab.n, (void **)&t->special));
    for (int64_t i = 0; i < t->n_added; i++) {
        if (t->added[i].special)
            t->special[t->added[i].id] = 1;
        t->cuts &= !may_cross_cut(t, &t->added[i]);
    }
    if (t->role[ET_TOKEN_UNK] < 0)
        t->role[ET_TOKEN_UNK] = t->unk;
    return ET_OK;
}

/* ---- opening ---- */

static et_status
open_bytes(struct et_tokenizer *t)
{
    for (int b = 0; b < 256; b++) {
        char byte = (char)b;
        ET_TRY(eti_vocab_add(&t->vocab, b, &byte, 1));
        ET_TRY(eti_vocab_add(&t->bytes, b, &byte, 1));
    }
    t->model = ETI_BYTES;
    t->byte_level = true;
    t->cuts = true;
    return et_alloc(t->cx, 256, (void **)&t->special);
}

static bool
ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);
    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

/* The file NAME beside PATH, "" where there is none. */
static et_status
find_beside(struct et_ctx *cx, const char *path, const char *name,
            char out[ETI_PATH_MAX])
{
    char folder[ETI_PATH_MAX];
    const char *slash = strrchr(path, '/');
    struct stat st;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 1,
             slash ? path : ".");
    ET_TRY(eti_file_path(cx, out, folder, name));
    if (stat(out, &st) != 0)
        out[0] = 0;
    return ET_OK;
}

static et_status
open_gpt2(struct et_tokenizer *t, const char *path)
{
    char vocab[ETI_PATH_MAX], merges[ETI_PATH_MAX];
    struct eti_bytes v = {0}, m = {0};
    bool is_merges = ends_with(path, ".txt");
    ET_TRY(find_beside(t->cx, path, "vocab.json", vocab));
    ET_TRY(find_beside(t->cx, path, "merges.txt", merges));
    if (!vocab[0] || !merges[0])
        return ET_FAIL(t->cx, ET_ENOENT, "%s: no %s beside it", path,
                       is_merges ? "vocab.json" : "merges.txt");
    et_status s = eti_file_load(t->cx, vocab, FILE_MAX, &v);
    if (s == ET_OK)
        s = eti_file_load(t->cx, merges, FILE_MAX, &m);
    if (s == ET_OK)
        s = eti_read_gpt2(t, vocab, (const char *)v.data, (size_t)v.n, merges,
                          (const char *)m.data, (size_t)m.n);
    et_free(t->cx, v.data);
    et_free(t->cx, m.data);
    return s;
}

/* What tokenizer_config.json and special_tokens_map.json say; HOW may be NULL. */
static et_status
open_roles(struct et_tokenizer *t, const char *path, struct eti_bert *how)
{
    static const char *const names[] = {"special_tokens_map.json",
                                        "tokenizer_config.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char beside[ETI_PATH_MAX];
        struct eti_bytes b = {0};
        ET_TRY(find_beside(t->cx, path, names[i], beside));
        if (!beside[0])
            continue;
        et_status s = eti_file_load(t->cx, beside, FILE_MAX, &b);
        if (s == ET_OK)
            s = eti_read_roles(t, beside, (const char *)b.data, (size_t)b.n, how);
        et_free(t->cx, b.data);
        ET_TRY(s);
    }
    return ET_OK;
}

/* What generation_config.json and config.json say, where nothing did before. */
static et_status
open_role_ids(struct et_tokenizer *t, const char *path)
{
    static const char *const names[] = {"generation_config.json", "config.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char beside[ETI_PATH_MAX];
        struct eti_bytes b = {0};
        ET_TRY(find_beside(t->cx, path, names[i], beside));
        if (!beside[0])
            continue;
        et_status s = eti_file_load(t->cx, beside, FILE_MAX, &b);
        if (s == ET_OK)
            s = eti_read_role_ids(t, beside, (const char *)b.data, (size_t)b.n);
        et_free(t->cx, b.data);
        ET_TRY(s);
    }
    return ET_OK;
}

static et_status
open_file(struct et_tokenizer *t, const char *path)
{
    struct eti_bytes b = {0};
    const char *name = strrchr(path, '/');
    struct eti_bert how = {0};
    name = name ? name + 1 : path;
    if (strcmp(name, "vocab.json") == 0 || strcmp(name, "merges.txt") == 0)
        return open_gpt2(t, path);
    ET_TRY(eti_file_load(t->cx, path, FILE_MAX, &b));
    const char *text = (const char *)b.data;
    et_status s;
    if (ends_with(path, ".model"))
        s = eti_read_pieces(t, path, text, (size_t)b.n);
    else if (ends_with(path, ".txt"))
        s = open_roles(t, path, &how);
    else if (ends_with(path, ".json"))
        s = eti_read_tokenizer_json(t, path, text, (size_t)b.n);
    else
        s = ET_FAIL(t->cx, ET_ENOTSUP,
                    "%s: a tokenizer is a .json, .txt or .model, or \"bytes\"", path);
    if (s == ET_OK && ends_with(path, ".txt"))
        s = eti_read_bert(t, path, text, (size_t)b.n, &how);
    et_free(t->cx, b.data);
    return s;
}

/* The file of a folder. */
static et_status
find_file(struct et_ctx *cx, const char *path, char out[ETI_PATH_MAX])
{
    static const char *const names[] = {"tokenizer.json", "vocab.json",
                                        "vocab.txt",      "tokenizer.model",
                                        "spiece.model",   "sentencepiece.bpe.model"};
    struct stat st;
    if (stat(path, &st) != 0)
        return ET_FAIL(cx, errno == ENOENT ? ET_ENOENT : ET_EIO, "cannot read %s: %s",
                       path, strerror(errno));
    if (!S_ISDIR(st.st_mode)) {
        if (snprintf(out, ETI_PATH_MAX, "%s", path) >= ETI_PATH_MAX)
            return ET_FAIL(cx, ET_EINVAL, "a path of %zu bytes", strlen(path));
        return ET_OK;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ET_TRY(eti_file_path(cx, out, path, names[i]));
        if (stat(out, &st) == 0)
            return ET_OK;
    }
    return ET_FAIL(cx, ET_ENOENT,
                   "%s: no tokenizer.json, vocab.json, vocab.txt or *.model", path);
}

static et_status
open_any(struct et_tokenizer *t, const char *path)
{
    if (strcmp(path, "bytes") == 0)
        return open_bytes(t);
    ET_TRY(open_file(t, t->path));
    ET_TRY(open_roles(t, t->path, NULL));
    ET_TRY(open_role_ids(t, t->path));
    guess_roles(t);
    return ET_OK;
}

et_status
eti_tokenizer_new(struct et_ctx *cx, const char *path, struct et_tokenizer **out)
{
    struct et_tokenizer *t;
    *out = NULL;
    ET_TRY(et_alloc(cx, sizeof *t, (void **)&t));
    t->cx = cx;
    t->unk = -1;
    for (int i = 0; i < ET_TOKEN_ROLES; i++)
        t->role[i] = -1;
    t->vocab.cx = t->bytes.cx = t->bpe.extra.cx = t->bpe.whole.cx = cx;
    t->raw.cx = t->normal.cx = t->first.cx = t->rest.cx = t->unigram.trie.cx = cx;
    *out = t;
    et_status s = eti_copy(cx, path, strlen(path), &t->path);
    if (s != ET_OK)
        et_tokenizer_free(out);
    return s;
}

et_status
et_tokenizer_open(struct et_ctx *cx, const char *path, struct et_tokenizer **out)
{
    char file[ETI_PATH_MAX] = "bytes";
    ETI_NEED(cx, out);
    *out = NULL;
    ETI_NEED(cx, cx, path);
    if (strcmp(path, "bytes") != 0)
        ET_TRY(find_file(cx, path, file));
    ET_TRY(eti_tokenizer_new(cx, file, out));
    et_status s = open_any(*out, path);
    if (s != ET_OK)
        et_tokenizer_free(out);
    return s;
}

static void
free_stages(struct et_tokenizer *t)
{
    for (int i = 0; i < t->n_norms; i++) {
        pcre2_code_free(t->norm[i].re);
        et_free(t->cx, t->norm[i].text);
        eti_charsmap_free(t->cx, t->norm[i].map);
    }
    for (int i = 0; i < t->n_splits; i++) {
        pcre2_code_free(t->split[i].re);
        et_free(t->cx, t->split[i].text);
    }
    for (int i = 0; i < t->n_joins; i++) {
        et_free(t->cx, t->join[i].text);
        et_free(t->cx, t->join[i].by);
    }
}

void
et_tokenizer_free(struct et_tokenizer **tokenizer)
{
    struct et_tokenizer *t = tokenizer ? *tokenizer : NULL;
    if (!t)
        return;
    *tokenizer = NULL;
    free_stages(t);
    eti_vocab_release(&t->vocab);
    eti_vocab_release(&t->bytes);
    eti_vocab_release(&t->bpe.extra);
    eti_trie_release(&t->bpe.whole);
    eti_trie_release(&t->raw);
    eti_trie_release(&t->normal);
    eti_trie_release(&t->first);
    eti_trie_release(&t->rest);
    eti_trie_release(&t->unigram.trie);
    void *const owned[] = {t->path,       t->added,      t->special,      t->bpe.pair,
                           t->bpe.prefix, t->bpe.suffix, t->unigram.score};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        et_free(t->cx, owned[i]);
    et_free(t->cx, t);
}

/* ---- what it holds ---- */

void
et_tokenizer_get_info(const struct et_tokenizer *t, struct et_tokenizer_info *out)
{
    if (!t || !out)
        return;
    static const char *const models[] = {"bytes", "bpe", "wordpiece", "unigram"};
    bool joins = t->n_joins == 1 && t->join[0].kind == ETI_JOIN_BYTES;
    bool exact = t->byte_level && t->n_norms == 0 && (joins || t->model == ETI_BYTES);
    for (int i = 0; i < t->n_splits; i++)
        exact &= t->split[i].kind == ETI_SPLIT_PATTERN && t->split[i].keeps_matches &&
                 t->split[i].keeps_others;
    for (int b = 0; b < 256 && t->model != ETI_BYTES; b++)
        exact &= t->bpe.byte_id[b] >= 0;
    exact &= !t->bpe.prefix && !t->bpe.suffix;
    for (int64_t i = 0; i < t->n_added; i++)
        exact &= !t->added[i].lstrip && !t->added[i].rstrip;
    *out = (struct et_tokenizer_info){
        .path = t->path,
        .model = models[t->model],
        .vocab_size = t->vocab.n,
        .is_exact = exact,
    };
    memcpy(out->role, t->role, sizeof out->role);
}

const char *
et_tokenizer_token(const struct et_tokenizer *t, int32_t id, size_t *n)
{
    return t && n ? eti_vocab_text(&t->vocab, id, n) : NULL;
}

int32_t
et_tokenizer_id(const struct et_tokenizer *t, const char *text, size_t n)
{
    return t && text ? eti_vocab_find(&t->vocab, text, n) : -1;
}

bool
et_tokenizer_is_special(const struct et_tokenizer *t, int32_t id)
{
    return t && id >= 0 && id < t->vocab.n && t->special[id] == 1;
}

size_t
et_tokenizer_cut(const struct et_tokenizer *t, const char *text, size_t n, size_t from)
{
    if (!t || !text)
        return n;
    if (t->model == ETI_BYTES)
        return from < n ? from : n;
    for (size_t i = from ? from : 1; t->cuts && i + 1 < n; i++)
        if (text[i] == ' ' && is_letter(text[i - 1]) && is_letter(text[i + 1]))
            return i;
    return n;
}
