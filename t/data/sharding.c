/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of tokens made of texts: which tokens each document becomes and where it
 * ends, which documents are set apart for validation, and what is reported of them. */
#include "config.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/text/shards.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static struct et_ctx *cx;
static struct et_tokenizer *bytes, *bert, *gpt;

/* ---- what the folder has ---- */

enum { MOST = 4096 };

/* Reads the file NAME of the folder, and removes it; returns its bytes, -1: it is
 * missing. */
static int64_t
take_file(const char *folder, const char *name, void *out, size_t most)
{
    char path[800];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    if (!f)
        return -1;
    int64_t n = (int64_t)fread(out, 1, most, f);
    fclose(f);
    unlink(path);
    return n;
}

/* "97 98 | 99 |": the tokens of SPLIT, with a bar where a document ends. */
static const char *
documents_of(const char *folder, const char *split)
{
    static char text[MOST];
    static uint16_t id[MOST];
    static int64_t end[MOST];
    char name[32];
    snprintf(name, sizeof name, "%s.bin", split);
    int64_t n = take_file(folder, name, id, sizeof id) / 2;
    snprintf(name, sizeof name, "%s.ends", split);
    int64_t n_ends = take_file(folder, name, end, sizeof end) / 8;
    size_t used = 0;
    text[0] = '\0';
    for (int64_t i = 0, k = 0; i <= n && used < sizeof text; i++) {
        for (; k < n_ends && end[k] == i; k++)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s|",
                                     used ? " " : "");
        if (i < n)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%d",
                                     used ? " " : "", (int)id[i]);
    }
    return text;
}

/* Reads tokens.json of the folder. */
static json_t *
take_json(const char *folder)
{
    char text[MOST];
    int64_t n = take_file(folder, "tokens.json", text, sizeof text);
    json_t *json = n > 0 ? json_loadb(text, (size_t)n, 0, NULL) : NULL;
    if (!json)
        bail("no tokens.json");
    return json;
}

static void
remove_folder(const char *folder)
{
    static const char *const names[] = {"train.bin", "train.ends",     "val.bin",
                                        "val.ends",  "tokens.json",    "vocab.txt",
                                        "a.json",    "tokenizer.json", "index.json"};
    char path[800];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

static const char *
folder_of_tokens(void)
{
    static char folder[600];
    snprintf(folder, sizeof folder, "%s/tokens", scratch_folder());
    return folder;
}

/* Makes the folder of tokens by CONFIG, with the input PATH. */
static et_status
shard(const struct et_tokenizer *t, const char *path, struct eti_shards_config config,
      struct eti_shards_progress *p)
{
    const char *const input[] = {path};
    config.input = input;
    config.n_inputs = 1;
    config.folder = folder_of_tokens();
    config.threads = 1;
    remove_folder(config.folder);
    return eti_shards_write(cx, t, &config, p);
}

/* ---- documents ---- */

static void
test_documents(void)
{
    static const struct {
        const char *says, *name, *text;
        enum eti_document what;
        int64_t n;
        const char *tokens;
    } row[] = {
        {"a whole file", "a.txt", "a\r\n", ETI_DOCUMENT_FILE, 1, "97 13 10 |"},
        {"lines without their ends, but blank ones", "a.txt", "ab\r\n \t\r\n\r\nc\n\nd",
         ETI_DOCUMENT_LINE, 3, "97 98 | 99 | 100 |"},
        {"lines, of which a carriage return is part", "a.txt", "a\rb\n",
         ETI_DOCUMENT_LINE, 1, "97 13 98 |"},
        {"texts between blank lines", "a.txt", "\n \n\nab\nc\n\n\n\nd",
         ETI_DOCUMENT_BLANK, 2, "97 98 10 99 10 | 100 |"},
        {"a field of JSON lines", "a.jsonl",
         "{\"body\": \"ab\"}\n\n{\"x\": 1, \"body\": \"c\\u0000d\"}\n",
         ETI_DOCUMENT_FILE, 2, "97 98 | 99 0 100 |"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct eti_shards_progress p;
        const char *path =
            write_file(row[i].name, row[i].text, strlen(row[i].text), false);
        need(cx,
             shard(bytes, path,
                   (struct eti_shards_config){.document = row[i].what, .field = "body"},
                   &p));
        is_str(documents_of(folder_of_tokens(), "train"), row[i].tokens,
               "documents are %s", row[i].says);
        is_int(p.documents, row[i].n, "documents are counted");
        unlink(path);
    }
}

/* Faults in JSON lines are reported with the line of the file. */
static void
test_lines(void)
{
    static const struct {
        const char *text, *says;
    } row[] = {
        {"{\"body\": \"ab\"}\n\n{\"body\": 3}\n", "a.jsonl:3: no text called body"},
        {"{\"body\": \"ab\"}\n{\"body\": \"ab\"}\n\n{\"body\" 1}\n", "a.jsonl:4:9:"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct eti_shards_progress p;
        const char *path =
            write_file("a.jsonl", row[i].text, strlen(row[i].text), false);
        et_status s =
            shard(bytes, path, (struct eti_shards_config){.field = "body"}, &p);
        const char *said = take_error(cx);
        ok(s == ET_EFORMAT && strstr(said, row[i].says),
           "a fault in JSON lines is reported with its line: %s", said);
        ok(access(folder_of_tokens(), F_OK) != 0,
           "a fault in JSON lines leaves no folder");
        unlink(path);
    }
}

/* ---- ends of documents ---- */

static void
test_ends(void)
{
    static const struct {
        const char *says, *end;
        bool plain;
        const char *tokens;
    } row[] = {
        {"a document ends with the tokenizer's end token", NULL, false, "0 2 1 2 |"},
        {"a document has no end token where the option is empty", "", false, "0 2 1 |"},
        {"a document ends with the token that is given", "b", false, "0 2 1 1 |"},
        {"an end token's text is split into ordinary tokens where the text is plain",
         NULL, true, "0 1 2 |"},
    };
    static const char text[] = "a<|end|>b";
    const char *path = write_file("a.txt", text, sizeof text - 1, false);
    struct eti_shards_progress p;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const struct eti_shards_config config = {.end = row[i].end,
                                                 .plain = row[i].plain};
        need(cx, shard(gpt, path, config, &p));
        json_t *json = take_json(folder_of_tokens());
        is_str(documents_of(folder_of_tokens(), "train"), row[i].tokens, "%s",
               row[i].says);
        const json_t *end = json_object_get(json, "end");
        ok(i == 1 ? json_is_null(end)
                  : json_is_integer(end) && json_integer_value(end) == (i == 2 ? 1 : 2),
           "tokens.json has the end token that was used");
        json_decref(json);
    }
    et_status s = shard(gpt, path, (struct eti_shards_config){.end = "zz"}, &p);
    ok(s == ET_EINVAL && strstr(take_error(cx), "has no token 'zz'"),
       "an end token that the tokenizer lacks is refused");
    need(cx, shard(bert, path, (struct eti_shards_config){.end = NULL}, &p));
    const char *tokens = documents_of(folder_of_tokens(), "train");
    ok(strlen(tokens) > 4 && strcmp(tokens + strlen(tokens) - 4, " 2 |") == 0,
       "BERT's documents end with [SEP]");
    unlink(path);
}

/* Samples of token numbers: the mark before them is dropped, and the end is added once.
 */
static void
test_known_ids(void)
{
    static const int64_t marked[] = {1, 5, 6, 2}, within[] = {5, 1, 6},
                         twice[] = {6, 2, 2}, beyond[] = {5, 7};
    const void *sample[] = {marked, within, twice};
    const uint32_t size[] = {sizeof marked, sizeof within, sizeof twice};
    const void *wrong[] = {marked, beyond};
    const uint32_t wrong_size[] = {sizeof marked, sizeof beyond};
    const struct eti_shards_config config = {.field = "text"};
    struct eti_shards_progress p;
    char folder[600], path[700];
    snprintf(folder, sizeof folder, "%s/mds", scratch_folder());
    if (mkdir(folder, 0777) != 0)
        bail("no folder");
    write_mds(folder, "bytes", 3, sample, size);
    need(cx, shard(bert, folder, config, &p));
    is_str(documents_of(folder_of_tokens(), "train"), "5 6 2 | 5 1 6 2 | 6 2 2 |",
           "token numbers come without the mark before them, and with one end token");
    need(cx, shard(gpt, folder, (struct eti_shards_config){.field = "text"}, &p) ==
                     ET_EFORMAT
                 ? ET_OK
                 : ET_EINVAL);
    ok(strstr(take_error(cx), "sample 0 has the token 5"),
       "a token number that the tokenizer lacks is refused, with its sample");
    write_mds(folder, "bytes", 2, wrong, wrong_size);
    et_status s = shard(bert, folder, config, &p);
    ok(s == ET_EFORMAT && strstr(take_error(cx), "sample 1 has the token 7"),
       "the first token number above the vocabulary is refused");
    static const int64_t plain[] = {0, 1, 0};
    const void *one[] = {plain};
    const uint32_t one_size[] = {sizeof plain};
    write_mds(folder, "bytes", 1, one, one_size);
    need(cx, shard(gpt, folder, config, &p));
    is_str(documents_of(folder_of_tokens(), "train"), "0 1 0 |",
           "token numbers of a corpus keep their own end tokens");
    snprintf(path, sizeof path, "%s/shard.00000.mds", folder);
    unlink(path);
    remove_folder(folder);
}

/* ---- documents set apart, and what is reported ---- */

struct told {
    struct eti_shards_progress last;
    int n, stop; /* calls; the call that stops the work, 0: none */
};

static bool
tell(void *data, const struct eti_shards_progress *p)
{
    struct told *t = data;
    t->last = *p;
    return ++t->n != t->stop;
}

static int64_t
file_size(const char *name)
{
    char path[800];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", folder_of_tokens(), name);
    return stat(path, &st) == 0 ? (int64_t)st.st_size : -1;
}

static void
test_apart(struct own_clock *clock)
{
    enum { LINES = 40 };
    char text[LINES * LINES];
    size_t n = 0;
    int64_t letters = 0;
    struct told told = {.stop = 0};
    struct eti_shards_progress p;
    for (int i = 0; i < LINES; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "%.*s\n", 1 + i % 17,
                              "aaaaaaaaaaaaaaaaaaaa");
        letters += 1 + i % 17;
    }
    const char *path = write_file("a.txt", text, n, false);
    struct eti_shards_config config = {.document = ETI_DOCUMENT_LINE,
                                       .val_fraction = 0.3,
                                       .seed = 5,
                                       .tell = tell,
                                       .data = &told};
    clock->step = 0.25;
    double begun = clock->now;
    need(cx, shard(bytes, path, config, &p));
    double took = clock->now - begun;
    clock->step = 0;
    ok(p.seconds > 0 && p.seconds <= took, "sharding reports how many seconds it took");
    ok(p.documents == LINES && p.tokens == letters && p.n_files == 1 && p.files == 1 &&
           p.bytes == (int64_t)n && p.all_bytes == (int64_t)n &&
           p.text_bytes == (int64_t)n && p.skipped == 0,
       "sharding reports how many documents, tokens, files and bytes there were");
    ok(p.val_documents == file_size("val.ends") / 8 &&
           p.val_tokens == file_size("val.bin") / 2 && p.val_documents > 4 &&
           p.val_documents < 20 && p.val_tokens != p.val_documents,
       "sharding reports how many documents and tokens were set apart");
    ok(told.n >= 1 && told.last.tokens == letters && told.last.documents == LINES &&
           told.last.val_tokens == p.val_tokens,
       "sharding reports its progress to the callback until the end");
    json_t *json = take_json(folder_of_tokens());
    static const char *const split[] = {"train", "val"};
    const int64_t documents[] = {LINES - p.val_documents, p.val_documents},
                  tokens[] = {letters - p.val_tokens, p.val_tokens};
    for (int i = 0; i < 2; i++) {
        const json_t *part = json_object_get(json, split[i]);
        ok(json_integer_value(json_object_get(part, "documents")) == documents[i] &&
               json_integer_value(json_object_get(part, "tokens")) == tokens[i],
           "tokens.json has the documents and tokens of %s", split[i]);
    }
    json_decref(json);
    told = (struct told){.stop = 1};
    ok(shard(bytes, path, config, &p) == ET_ECANCELED &&
           access(folder_of_tokens(), F_OK) != 0,
       "a progress callback that returns false stops sharding, and nothing is written");
    et_error_clear(cx);
    unlink(path);
}

/* A single document cannot be divided: whichever part it falls to, that is refused. */
static void
test_indivisible(void)
{
    const char *path = write_file("a.txt", "abc\n", 4, false);
    int none = 0, all = 0, other = 0;
    for (uint32_t seed = 0; seed < 24; seed++) {
        const struct eti_shards_config config = {
            .document = ETI_DOCUMENT_LINE, .val_fraction = 0.5, .seed = seed};
        struct eti_shards_progress p;
        et_status s = shard(bytes, path, config, &p);
        const char *said = s == ET_EINVAL ? take_error(cx) : "";
        bool is_none = strstr(said, "of 1 documents none are set apart");
        bool is_all = strstr(said, "of 1 documents all are set apart");
        none += is_none;
        all += is_all;
        other += !is_none && !is_all;
    }
    ok(none > 0 && all > 0 && other == 0,
       "a single document that is to be divided is refused, whichever part the seed "
       "gives it to");
    unlink(path);
}

/* ---- the width of a token ---- */

static void
test_width(void)
{
    static const char text[] = "tffff t10000 tffff";
    for (int n = 0x10000; n <= 0x10001; n++) {
        struct et_tokenizer *t;
        struct eti_shards_progress p;
        char path[600], *vocab = malloc((size_t)n * 8 + 8);
        size_t room = (size_t)n * 8 + 8;
        size_t used = (size_t)snprintf(vocab, room, "[UNK]\n");
        for (int i = 1; i < n; i++)
            used += (size_t)snprintf(vocab + used, room - used, "t%x\n", (unsigned)i);
        snprintf(path, sizeof path, "%s", write_file("vocab.txt", vocab, used, false));
        need(cx, et_tokenizer_open(cx, path, &t));
        const char *input = write_file("a.txt", text, sizeof text - 1, false);
        need(cx, shard(t, input, (struct eti_shards_config){.end = ""}, &p));
        const bool is_wide = n > 0x10000;
        const int32_t last =
            is_wide ? 0x10000 : 0; /* the unknown token, where t10000 is missing */
        uint8_t got[64];
        int64_t n_got = take_file(folder_of_tokens(), "train.bin", got, sizeof got);
        const int32_t wide[] = {0xffff, last, 0xffff};
        const uint16_t narrow[] = {0xffff, 0, 0xffff};
        ok(is_wide ? n_got == sizeof wide && memcmp(got, wide, sizeof wide) == 0
                   : n_got == sizeof narrow && memcmp(got, narrow, sizeof narrow) == 0,
           "a folder with a vocabulary of %d has tokens of %d bytes", n,
           is_wide ? 4 : 2);
        json_t *json = take_json(folder_of_tokens());
        ok(json_integer_value(json_object_get(json, "bytes")) == (is_wide ? 4 : 2) &&
               json_integer_value(json_object_get(json, "vocab_size")) == n,
           "tokens.json has the bytes of a token and the vocabulary's size");
        json_decref(json);
        et_tokenizer_free(&t);
        unlink(input);
        unlink(path);
        free(vocab);
    }
}

int
main(void)
{
    static const char vocab[] = "[UNK]\n[CLS]\n[SEP]\n[PAD]\n[MASK]\na\nb\n";
    static const char json[] =
        "{\"added_tokens\": [{\"id\": 2, \"content\": \"<|end|>\", \"special\": true}],"
        "\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"<|end|>\": "
        "2}, \"merges\": []}}";
    static const char config[] = "{\"eos_token\": \"<|end|>\"}";
    char path[600];
    cx = need_ctx();
    struct own_clock *clock = own_clock(cx);
    snprintf(path, sizeof path, "%s",
             write_file("a.json", json, sizeof json - 1, false));
    (void)write_file("tokenizer_config.json", config, sizeof config - 1, false);
    need(cx, et_tokenizer_open(cx, path, &gpt));
    snprintf(path, sizeof path, "%s/tokenizer_config.json", scratch_folder());
    unlink(path);
    need(cx, et_tokenizer_open(
                 cx, write_file("vocab.txt", vocab, sizeof vocab - 1, false), &bert));
    need(cx, et_tokenizer_open(cx, "bytes", &bytes));
    test_documents();
    test_lines();
    test_ends();
    test_known_ids();
    test_apart(clock);
    test_indivisible();
    test_width();
    remove_folder(folder_of_tokens());
    et_tokenizer_free(&bytes);
    et_tokenizer_free(&bert);
    et_tokenizer_free(&gpt);
    et_ctx_free(&cx);
    return done();
}
