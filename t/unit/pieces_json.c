/* SPDX-License-Identifier: Apache-2.0 */
/* Models of SentencePiece with each of their settings, as the tokenizer.json that is
 * written of them; and the table of characters that such a model has. */
#include "config.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "core/text/base64.h"
#include "core/text/charsmap.h"
#include "core/text/impl.h"
#include "core/text/write_pieces.h"
#include "t/tap.h"

static struct et_ctx *cx;

/* ---- a table of characters: a trie, each of whose places has a block of units ---- */

enum { BLOCK = 256, BLOCKS = 600, TEXTS = 4096 };

static struct table {
    uint32_t unit[BLOCKS * BLOCK];
    char text[TEXTS];
    size_t n_units, n_texts;
    uint8_t bytes[4 + sizeof(uint32_t) * BLOCKS * BLOCK + TEXTS];
    size_t n_bytes;
} table;

static void
begin_table(void)
{
    memset(&table, 0, sizeof table);
    table.unit[0] = 1u << 10 | 1u << 9; /* a wide offset: the root has block 1 */
    table.n_units = 2 * BLOCK;
}

/* KEY becomes BY. */
static void
add_text(const char *key, const char *by)
{
    size_t base = BLOCK;
    for (const char *c = key; *c; c++) {
        const size_t at = base ^ (uint8_t)*c;
        if (table.unit[at] == 0) {
            if (table.n_units == BLOCKS * (size_t)BLOCK)
                bail("a table of too many texts");
            table.unit[at] = (uint32_t)((at ^ table.n_units) << 10) | (uint8_t)*c;
            table.n_units += BLOCK;
        }
        base = at ^ (table.unit[at] >> 10);
        table.unit[at] |= c[1] ? 0 : 1u << 8;
    }
    table.unit[base] = (uint32_t)table.n_texts | 1u << 31;
    memcpy(table.text + table.n_texts, by, strlen(by) + 1);
    table.n_texts += strlen(by) + 1;
}

static void
end_table(void)
{
    const uint32_t bytes = (uint32_t)(table.n_units * sizeof *table.unit);
    if (table.n_texts == 0)
        return;
    memcpy(table.bytes, &bytes, 4);
    memcpy(table.bytes + 4, table.unit, bytes);
    memcpy(table.bytes + 4 + bytes, table.text, table.n_texts);
    table.n_bytes = 4 + bytes + table.n_texts;
}

/* ---- a model ---- */

struct model {
    const char *says;
    const char *const *texts; /* of the table: key and what it becomes, in turn */
    const char *pieces;       /* "TYPE SCORE TEXT" each, parted by new lines */
    int type, prepends, removes, escapes, suffix, fallback;
    const char *norm, *split, *join, *model, *added;
};

static size_t
put_number(uint8_t *to, uint64_t v)
{
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        to[n++] = (uint8_t)(v | 0x80);
    to[n++] = (uint8_t)v;
    return n;
}

static size_t
put_field(uint8_t *to, unsigned number, uint64_t v)
{
    const size_t n = put_number(to, number << 3);
    return n + put_number(to + n, v);
}

static size_t
put_bytes(uint8_t *to, unsigned number, const void *bytes, size_t n_bytes)
{
    size_t n = put_number(to, number << 3 | 2);
    n += put_number(to + n, n_bytes);
    memcpy(to + n, bytes, n_bytes);
    return n + n_bytes;
}

static size_t
put_pieces(uint8_t *to, const char *pieces)
{
    size_t n = 0;
    for (const char *at = pieces; *at; at += *at == '\n') {
        uint8_t piece[64];
        char *text;
        const uint64_t type = strtoull(at, &text, 10);
        const float score = strtof(text, &text);
        const size_t length = strcspn(++text, "\n");
        size_t used = put_bytes(piece, 1, text, length);
        used += put_number(piece + used, 2 << 3 | 5);
        memcpy(piece + used, &score, sizeof score);
        used += sizeof score;
        used += put_field(piece + used, 3, type);
        n += put_bytes(to + n, 1, piece, used);
        at = text + length;
    }
    return n;
}

static struct et_tokenizer *
open_model(const struct model *m)
{
    static uint8_t all[2 * sizeof table.bytes], part[sizeof table.bytes + 64];
    char path[] = "/tmp/etude-pieces-XXXXXX.model";
    struct et_tokenizer *t = NULL;
    begin_table();
    for (size_t i = 0; m->texts && m->texts[i]; i += 2)
        add_text(m->texts[i], m->texts[i + 1]);
    end_table();
    size_t n = put_pieces(all, m->pieces), used = put_field(part, 3, (uint64_t)m->type);
    used += put_field(part + used, 24, (uint64_t)m->suffix);
    used += put_field(part + used, 35, (uint64_t)m->fallback);
    n += put_bytes(all + n, 2, part, used);
    used = put_bytes(part, 2, table.bytes, table.n_bytes);
    used += put_field(part + used, 3, (uint64_t)m->prepends);
    used += put_field(part + used, 4, (uint64_t)m->removes);
    used += put_field(part + used, 5, (uint64_t)m->escapes);
    n += put_bytes(all + n, 3, part, used);
    int fd = mkstemps(path, 6);
    if (fd < 0 || write(fd, all, n) != (ssize_t)n || close(fd) != 0)
        bail("cannot write %s", path);
    if (et_tokenizer_open(cx, path, &t) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    unlink(path);
    return t;
}

/* ---- what is written ---- */

/* Takes the table out of NORMS, if there is one: is it the model's? */
static bool
same_table(const json_t *norms)
{
    const json_t *one;
    size_t i;
    bool same = table.n_bytes == 0;
    json_array_foreach((json_t *)norms, i, one)
    {
        json_t *text = json_object_get(one, "precompiled_charsmap");
        uint8_t *bytes = NULL;
        size_t n;
        if (!text)
            continue;
        same = eti_base64_decode(cx, json_string_value(text), json_string_length(text),
                                 &bytes, &n) == ET_OK &&
               n == table.n_bytes && memcmp(bytes, table.bytes, n) == 0;
        et_free(cx, bytes);
        json_string_set(text, "its own");
    }
    return same;
}

static void
is_json(const json_t *got, const char *want, const char *name)
{
    char *text = json_dumps(got, JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII |
                                     JSON_REAL_PRECISION(6));
    for (char *c = text; c && *c; c++)
        *c = *c == '"' ? '\'' : *c;
    is_str(text, want, "%s", name);
    free(text);
}

static void
test_written(const struct model *m)
{
    struct et_tokenizer *t = open_model(m);
    json_t *json = NULL;
    if (eti_pieces_json(cx, t, &json) != ET_OK)
        bail("%s", et_error_get(cx)->message);
    const json_t *norms =
        json_object_get(json_object_get(json, "normalizer"), "normalizers");
    ok(same_table(norms), "%s: its table is written as it is", m->says);
    is_json(norms, m->norm, "its normalizers");
    is_json(json_object_get(json, "pre_tokenizer"), m->split, "what parts words");
    is_json(json_object_get(json_object_get(json, "decoder"), "decoders"), m->join,
            "what joins them");
    is_json(json_object_get(json, "model"), m->model, "its model");
    is_json(json_object_get(json, "added_tokens"), m->added, "and its special tokens");
    json_decref(json);
    et_tokenizer_free(&t);
}

#define M "\xe2\x96\x81"
static const char *const composing[] = {"e\xcc\x81",
                                        "\xc3\xa9", /* e and acute */
                                        "a\xcc\xa3\xcc\x86",
                                        "\xe1\xba\xb7",
                                        "o\xcc\xa3\xcc\x86",
                                        "o",
                                        "x\xe0\xa4\x83\xcc\x86",
                                        "x",
                                        "x\xcc\x86y",
                                        "xy",
                                        "\xcc\x88\xcc\x84",
                                        "", /* no letter */
                                        NULL};
static const char *const acute[] = {"e\xcc\x81", "\xc3\xa9", NULL};
static const char *const others[] = {"\r\n", "\n",        "ab", "c", "d",
                                     "e",    "a\xcc\x86", "f",  NULL};

static const struct model models[] = {
    {
        .says = "usual settings",
        .pieces = "2 0 <unk>\n3 0 <s>\n1 -1.5 " M "\n1 -3.25 ab\n4 0 u\n4 0 uvw\n4 0 "
                  "uv.",
        .type = 1,
        .prepends = 1,
        .removes = 1,
        .escapes = 1,
        .norm = "[{'type':'Replace','pattern':{'Regex':'\\\\A +'},'content':''}"
                ",{'type':'Replace','pattern':{'Regex':' {2,}'},'content':' '},"
                "{'type':'Replace','pattern':{'String':' '},'content':'\\u2581'"
                "},{'type':'Replace','pattern':{'Regex':'\\\\x{2581}+\\\\z'},'c"
                "ontent':''},{'type':'Prepend','prepend':'\\u2581'}]",
        .split = "{'type':'Split','pattern':{'Regex':'\\\\x{75}\\\\x{76}\\\\x{2e"
                 "}|\\\\x{75}\\\\x{76}\\\\x{77}|\\\\x{75}'},'behavior':'Isolated"
                 "','invert':false}",
        .join = "[{'type':'Replace','pattern':{'String':'\\u2581'},'content':' "
                "'},{'type':'Fuse'},{'type':'Strip','content':' ','start':1,'st"
                "op':0}]",
        .model = "{'type':'Unigram','unk_id':0,'vocab':[['<unk>',-1003.25],['<s>"
                 "',-1003.25],['\\u2581',-1.5],['ab',-3.25],['u',0.0],['uvw',0.0"
                 "],['uv.',0.0]],'byte_fallback':false}",
        .added = "[{'id':0,'content':'<unk>','single_word':false,'lstrip':false,"
                 "'rstrip':false,'normalized':false,'special':true},{'id':1,'con"
                 "tent':'<s>','single_word':false,'lstrip':false,'rstrip':false,"
                 "'normalized':false,'special':true}]",
    },
    {
        .says = "no setting at all",
        .pieces = "1 -1 a\n1 -2 b\n2 -9 <unk>\n1 -5 ab\n1 -3 bb\n1 -4 abb\n1 -3 ba\n1 "
                  "-7 bbbb\n1 -8 bbb",
        .type = 2,
        .norm = "[]",
        .split = "null",
        .join = "[{'type':'Replace','pattern':{'String':'\\u2581'},'content':' "
                "'},{'type':'Fuse'}]",
        .model = "{'type':'BPE','dropout':null,'unk_token':'<unk>','continuing_s"
                 "ubword_prefix':null,'end_of_word_suffix':null,'fuse_unk':true,"
                 "'byte_fallback':false,'ignore_merges':false,'vocab':{'a':0,'b'"
                 ":1,'<unk>':2,'ab':3,'bb':4,'abb':5,'ba':6,'bbbb':7,'bbb':8},'m"
                 "erges':[['b','b'],['b','a'],['a','bb'],['ab','b'],['a','b'],['"
                 "b','bbb'],['bb','bb'],['bbb','b'],['b','bb'],['bb','b']]}",
        .added = "[{'id':2,'content':'<unk>','single_word':false,'lstrip':false,"
                 "'rstrip':false,'normalized':false,'special':true}]",
    },
    {
        .says = "spaces behind words",
        .texts = composing,
        .pieces = "2 0 <unk>\n1 -2 a\n4 0 b\n1 -1 c",
        .type = 2,
        .prepends = 1,
        .escapes = 1,
        .suffix = 1,
        .norm = "[{'type':'Replace','pattern':{'Regex':'(?!\\\\x{323}\\\\x{306}"
                "|\\\\x{903}\\\\x{306})\\\\p{M}\\\\K(?=\\\\p{M})'},'content':'\\u"
                "FFF0'},{'type':'NFC'},{'type':'Replace','pattern':{'Regex':'(?"
                ":.|\\\\n)\\\\K(?=[\\\\p{M}\\\\x{200c}\\\\x{200d}\\\\x{e33}\\\\x"
                "{eb3}\\\\x{ff9e}\\\\x{ff9f}]|(?<=\\\\r)\\\\n)'},'content':'\\u"
                "FFF0'},{'type':'Precompiled','precompiled_charsmap':'its own'}"
                ",{'type':'Replace','pattern':{'String':'\\uFFF0'},'content':''"
                "},{'type':'Replace','pattern':{'String':' '},'content':'\\u258"
                "1'},{'type':'Replace','pattern':{'Regex':'(?<=.|\\\\n)\\\\z'},"
                "'content':'\\u2581'}]",
        .split = "{'type':'Split','pattern':{'Regex':'\\\\x{62}'},'behavior':'Is"
                 "olated','invert':false}",
        .join = "[{'type':'Replace','pattern':{'String':'\\u2581'},'content':' "
                "'},{'type':'Fuse'},{'type':'Strip','content':' ','start':0,'st"
                "op':1}]",
        .model = "{'type':'BPE','dropout':null,'unk_token':'<unk>','continuing_s"
                 "ubword_prefix':null,'end_of_word_suffix':null,'fuse_unk':true,"
                 "'byte_fallback':false,'ignore_merges':true,'vocab':{'<unk>':0,"
                 "'a':1,'b':2,'c':3},'merges':[]}",
        .added = "[{'id':0,'content':'<unk>','single_word':false,'lstrip':false,"
                 "'rstrip':false,'normalized':false,'special':true}]",
    },
    {
        .says = "spaces that stay spaces",
        .texts = others,
        .pieces = "1 -1 a\n2 0 <unk>\n1 -2 b",
        .type = 1,
        .prepends = 1,
        .removes = 1,
        .norm = "[{'type':'Replace','pattern':{'String':'\\r\\n'},'content':'\\n"
                "'},{'type':'Replace','pattern':{'String':'ab'},'content':'c'},"
                "{'type':'Replace','pattern':{'String':'a\\u0306'},'content':'f"
                "'},{'type':'Replace','pattern':{'Regex':'(?:.|\\\\n)\\\\K(?=[\\\\p"
                "{M}\\\\x{200c}\\\\x{200d}\\\\x{e33}\\\\x{eb3}\\\\x{ff9e}\\\\x{"
                "ff9f}]|(?<=\\\\r)\\\\n)'},'content':'\\uFFF0'},{'type':'Precom"
                "piled','precompiled_charsmap':'its own'},{'type':'Replace','pa"
                "ttern':{'String':'\\uFFF0'},'content':''},{'type':'Replace','p"
                "attern':{'Regex':'\\\\A +'},'content':''},{'type':'Replace','p"
                "attern':{'Regex':' {2,}'},'content':' '},{'type':'Replace','pa"
                "ttern':{'Regex':' +\\\\z'},'content':''},{'type':'Prepend','pr"
                "epend':' '}]",
        .split = "null",
        .join = "[{'type':'Replace','pattern':{'String':'\\u2581'},'content':' "
                "'},{'type':'Fuse'},{'type':'Strip','content':' ','start':1,'st"
                "op':0}]",
        .model = "{'type':'Unigram','unk_id':1,'vocab':[['a',-1.0],['<unk>',-100"
                 "2.0],['b',-2.0]],'byte_fallback':false}",
        .added = "[{'id':1,'content':'<unk>','single_word':false,'lstrip':false,"
                 "'rstrip':false,'normalized':false,'special':true}]",
    },
    {
        .says = "a table that composes no two marks",
        .texts = acute,
        .pieces = "2 0 <unk>\n1 -1 a",
        .type = 1,
        .norm = "[{'type':'Replace','pattern':{'Regex':'(?!\\\\z)\\\\p{M}\\\\K("
                "?=\\\\p{M})'},'content':'\\uFFF0'},{'type':'NFC'},{'type':'Rep"
                "lace','pattern':{'Regex':'(?:.|\\\\n)\\\\K(?=[\\\\p{M}\\\\x{20"
                "0c}\\\\x{200d}\\\\x{e33}\\\\x{eb3}\\\\x{ff9e}\\\\x{ff9f}]|(?<="
                "\\\\r)\\\\n)'},'content':'\\uFFF0'},{'type':'Precompiled','pre"
                "compiled_charsmap':'its own'},{'type':'Replace','pattern':{'St"
                "ring':'\\uFFF0'},'content':''}]",
        .split = "null",
        .join = "[{'type':'Replace','pattern':{'String':'\\u2581'},'content':' "
                "'},{'type':'Fuse'}]",
        .model = "{'type':'Unigram','unk_id':0,'vocab':[['<unk>',-1001.0],['a',-"
                 "1.0]],'byte_fallback':false}",
        .added = "[{'id':0,'content':'<unk>','single_word':false,'lstrip':false,"
                 "'rstrip':false,'normalized':false,'special':true}]",
    },
};

/* Of many texts of several characters only so many are written. */
static void
test_many(void)
{
    static char key[70][3];
    static const char *texts[141];
    for (int i = 0; i < 70; i++) {
        snprintf(key[i], sizeof key[i], "%c%c", 'A' + i / 10, 'a' + i % 10);
        texts[2 * i] = key[i];
        texts[2 * i + 1] = "x";
    }
    for (int n = 63; n <= 66; n++) {
        const char *last = texts[2 * n];
        texts[2 * n] = NULL;
        struct et_tokenizer *t = open_model(
            &(struct model){.texts = texts, .pieces = "2 0 <unk>", .type = 1});
        json_t *json = NULL;
        if (eti_pieces_json(cx, t, &json) != ET_OK)
            bail("%s", et_error_get(cx)->message);
        is_int((int64_t)json_array_size(
                   json_object_get(json_object_get(json, "normalizer"), "normalizers")),
               3 + (n < 63 ? n : 63), "of %d such texts 63 at most are written", n);
        json_decref(json);
        et_tokenizer_free(&t);
        texts[2 * n] = last;
    }
}

/* Pieces of bytes are no text, the last of them neither. */
static void
test_fallback(void)
{
    static char pieces[8192] = "2 -7 <unk>\n3 -7 <s>\n1 -3 a\n1 -4 b";
    for (int b = 0, at = (int)strlen(pieces); b < 256; b++)
        at += snprintf(pieces + at, sizeof pieces - (size_t)at, "\n6 -7 <0x%02X>", b);
    for (int type = 1; type <= 2; type++) {
        const struct model m = {.pieces = pieces, .type = type, .fallback = 1};
        struct et_tokenizer *t = open_model(&m);
        json_t *json = NULL;
        if (eti_pieces_json(cx, t, &json) != ET_OK)
            bail("%s", et_error_get(cx)->message);
        const json_t *model = json_object_get(json, "model"), *one;
        size_t i;
        int texts = 0;
        json_array_foreach(json_object_get(model, "vocab"), i, one) texts +=
            json_number_value(json_array_get(one, 1)) > -100;
        ok(json_is_true(json_object_get(model, "byte_fallback")),
           "a model of type %d says that it knows bytes", type);
        if (type == 1)
            is_int(texts, 2, "only pieces that are text can be the best way");
        is_json(json_object_get(json_object_get(json, "decoder"), "decoders"),
                "[{'type':'Replace','pattern':{'String':'\\u2581'},'content':' '},"
                "{'type':'ByteFallback'},{'type':'Fuse'}]",
                "bytes are joined");
        json_decref(json);
        et_tokenizer_free(&t);
    }
}

/* ---- what a table makes of texts ---- */

#define WIDE "\xe3\x80\x80" /* U+3000 */
#define TWO  "\xc2\xa0"
static const char *const mapped[] = {WIDE,  " ", TWO,    "  ", "x",  "",  "ab", "c",
                                     "abc", "C", "abcd", "D",  "ac", "A", NULL};

static void
test_runs(void)
{
    static const struct {
        int prepends, removes, escapes, suffix;
        const char *text, *want;
    } rows[] = {
        {0, 0, 0, 0, "ababcabcdabc acb", "cCDC Ab"},
        {0, 0, 0, 0, " a" WIDE " x " TWO "b ", " a     b "},
        {0, 0, 0, 0, "abuabu u", "abuabu u"},
        {0, 0, 0, 0, "a\xff\xc3z", "a\xef\xbf\xbd\xef\xbf\xbdz"},
        {0, 1, 0, 0, WIDE " a" WIDE " x " TWO "b" WIDE " ", "a b"},
        {0, 1, 0, 0, "a" TWO "b", "a  b"},
        {1, 1, 1, 0, WIDE " a" WIDE " x b" WIDE, M "a" M "b"},
        {1, 1, 1, 0, " " WIDE, ""},
        {1, 1, 1, 0, "x", ""},
        {1, 1, 0, 0, "x", ""},
        {1, 0, 1, 0, "x", M},
        {1, 0, 1, 0, "", ""},
        {1, 0, 0, 0, " a", "  a"},
        {1, 1, 1, 1, " a  b ", "a" M "b" M},
        {1, 0, 0, 1, " a ", " a  "},
        {0, 1, 1, 1, " a ", "a"},
        {1, 1, 1, 1, WIDE " ", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct model m = {.texts = mapped,
                                .pieces = "2 0 <unk>\n4 0 abu",
                                .type = 1,
                                .prepends = rows[i].prepends,
                                .removes = rows[i].removes,
                                .escapes = rows[i].escapes,
                                .suffix = rows[i].suffix};
        struct et_tokenizer *t = open_model(&m);
        struct et_encoder *e;
        const char *got = "";
        size_t n;
        char text[64] = "";
        if (et_encoder_new(cx, t, &e) != ET_OK ||
            eti_normalize(e, rows[i].text, strlen(rows[i].text), &got, &n) != ET_OK)
            bail("%s", et_error_get(cx)->message);
        snprintf(text, sizeof text, "%.*s", (int)n, got);
        is_str(text, rows[i].want, "row %zu: a table and spaces, as SentencePiece", i);
        et_encoder_free(&e);
        et_tokenizer_free(&t);
    }
}

/* Hugging Face's Precompiled looks short letters up with their marks. */
static void
test_precompiled(void)
{
#define DOT   "\xcc\xa3"
#define BREVE "\xcc\x86"
    static const char *const texts[] = {
        "a" DOT, "X", "\xc3\xa2" DOT, "Y", "ab", "Z", "abc", "W", "b", "B", NULL};
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"a" DOT, "X"},        {"a" DOT BREVE "b", "XB"},
        {"\xc3\xa2" DOT, "Y"}, {"\xc3\xa2" DOT BREVE, "\xc3\xa2" DOT BREVE},
        {"abc", "aBc"},        {"", ""},
    };
    struct et_tokenizer *t =
        open_model(&(struct model){.texts = texts, .pieces = "2 0 <unk>", .type = 1});
    struct et_encoder *e;
    struct eti_buf got = {0};
    if (et_encoder_new(cx, t, &e) != ET_OK)
        bail("no encoder");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[32];
        got.n = 0;
        if (eti_charsmap_precompiled(e, t->norm[0].map, rows[i].text,
                                     strlen(rows[i].text), &got) != ET_OK)
            bail("no text");
        snprintf(text, sizeof text, "%.*s", (int)got.n, got.text ? got.text : "");
        is_str(text, rows[i].want, "row %zu: a letter and its marks, as Precompiled",
               i);
    }
    et_free(cx, got.text);
    et_encoder_free(&e);
    et_tokenizer_free(&t);
}

/* ---- the table itself ---- */

static char listed[256];

static et_status
list_text(void *arg, const char *key, size_t n, const char *by)
{
    (void)arg;
    const size_t used = strlen(listed);
    snprintf(listed + used, sizeof listed - used, "%.*s=%s;", (int)n, key, by);
    return ET_OK;
}

static et_status
load(struct eti_charsmap *m, size_t n)
{
    *m = (struct eti_charsmap){0};
    return eti_charsmap_load(cx, m, (const char *)table.bytes, n);
}

static void
unload(struct eti_charsmap *m)
{
    et_free(cx, m->unit);
    et_free(cx, m->text);
}

static void
test_table(void)
{
    static const char *const texts[] = {"b",  "1", "a",    "2", "abc", "3",
                                        "ac", "4", "\xff", "5", NULL};
    struct eti_charsmap m;
    begin_table();
    for (size_t i = 0; texts[i]; i += 2)
        add_text(texts[i], texts[i + 1]);
    end_table();
    if (load(&m, table.n_bytes) != ET_OK || eti_charsmap_each(cx, &m, list_text, NULL))
        bail("%s", et_error_get(cx)->message);
    is_str(listed, "a=2;abc=3;ac=4;b=1;\xff=5;", "a table's texts come in their order");
    ok(!eti_charsmap_find(&m, "ab", 2) && !eti_charsmap_find(&m, "", 0) &&
           !eti_charsmap_find(&m, "abcd", 4) && !eti_charsmap_find(&m, "c", 1) &&
           strcmp(eti_charsmap_find(&m, "abc", 3), "3") == 0 &&
           strcmp(eti_charsmap_find(&m, "ab", 1), "2") == 0,
       "one is found whole, and no other");
    m.n_texts = 8; /* "\xff" becomes what is behind the last of them */
    ok(!eti_charsmap_find(&m, "\xff", 1) && eti_charsmap_find(&m, "ac", 2),
       "a text that the table lacks is none");
    unload(&m);
    const uint32_t all = (uint32_t)(table.n_units * sizeof *table.unit);
    const struct {
        uint32_t says;
        size_t n;
        bool good;
    } rows[] = {{all, all + 4, true},
                {all, all + 3, false},
                {all - 2, all + 4, false},
                {0, all + 4, false},
                {all, 3, false},
                {all, 4, false},
                {UINT32_MAX - 3, all + 4, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        memcpy(table.bytes, &rows[i].says, 4);
        const et_status s = load(&m, rows[i].n);
        ok(s == (rows[i].good ? ET_OK : ET_EFORMAT) &&
               (!rows[i].good || m.n_texts == 0),
           "%u bytes of a table in %zu are %s", rows[i].says, rows[i].n,
           rows[i].good ? "taken" : "refused");
        et_error_clear(cx);
        unload(&m);
    }
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        test_written(&models[i]);
    test_many();
    test_fallback();
    test_runs();
    test_precompiled();
    test_table();
    et_ctx_free(&cx);
    return done();
}
