/* SPDX-License-Identifier: Apache-2.0 */
/* Texts packed into sequences, and instructions: every token is there once, what each
 * is to predict, where texts begin, and what is cut. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/data/fields.h"
#include "core/data/packing.h"
#include "etude/tokenizer.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static struct et_ctx *cx;
static char gpt2[512];

static et_status
try_open(const char *name, const char *const *set, struct et_dataset **out)
{
    const struct et_dataset_class *c = et_dataset_find(name);
    void *options;
    need(cx, et_alloc(cx, c->info.options_size, &options));
    need(cx, et_options_init(cx, c->info.options, options));
    for (int i = 0; set[i]; i += 2)
        need(cx, et_options_set(cx, c->info.options, options, set[i], set[i + 1]));
    et_status s = et_dataset_open(cx, c, options, out);
    et_options_release(c->info.options, options);
    et_free(cx, options);
    return s;
}

#define OPTIONS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* ---- best fit ---- */

static void
test_best_fit(void)
{
    static const int32_t lengths[] = {3, 8, 5, 2, 2, 6, 1, 4};
    enum { N = sizeof lengths / sizeof *lengths, T_MAX = 8 };
    struct eti_piece *piece;
    struct eti_packed p;
    bool seen[N] = {false}, fits = true;
    int n_seen = 0;
    need(cx, et_alloc(cx, sizeof lengths / sizeof *lengths * sizeof *piece,
                      (void **)&piece));
    for (int i = 0; i < N; i++)
        piece[i] = (struct eti_piece){i, lengths[i], false};
    need(cx, eti_pack_best_fit(cx, piece, N, T_MAX, &p));
    for (int64_t r = 0; r < p.n_rows; r++) {
        int32_t sum = 0;
        for (int64_t i = p.first[r]; i < p.first[r + 1]; i++) {
            n_seen += !seen[p.piece[i].begin];
            seen[p.piece[i].begin] = true;
            fits &= p.piece[i].n == lengths[p.piece[i].begin];
            sum += p.piece[i].n;
        }
        fits &= sum <= T_MAX;
    }
    ok(fits && n_seen == N && p.n_pieces == N, "every piece is in one sequence");
    /* 8, 6 + 2, 5 + 3, 4 + 2 + 1 of 31 tokens: no fewer can have them. */
    is_int(p.n_rows, 4, "31 tokens take 4 sequences of 8");
    is_int(p.first[1] - p.first[0], 1, "the longest fills the first alone");
    ok(p.first[2] - p.first[1] == 2 && p.piece[p.first[1]].begin == 5 &&
           p.piece[p.first[1] + 1].begin == 3,
       "a short one goes where it leaves the least room");
    eti_packed_release(cx, &p);
}

/* Sequences with the same room are all found, the first one, too. */
static void
test_like_rooms(void)
{
    static const int32_t lengths[] = {2, 6, 2, 6, 6, 2};
    struct eti_piece *piece;
    struct eti_packed p;
    int64_t whole = 0;
    need(cx, et_alloc(cx, 6 * sizeof *piece, (void **)&piece));
    for (int i = 0; i < 6; i++)
        piece[i] = (struct eti_piece){i, lengths[i], false};
    need(cx, eti_pack_best_fit(cx, piece, 6, 8, &p));
    for (int64_t r = 0; r < p.n_rows; r++)
        whole += eti_packed_length(&p, r) == 8;
    ok(p.n_rows == 3 && whole == 3, "three of 6 and three of 2 fill 3 sequences of 8");
    eti_packed_release(cx, &p);
}

/* A sequence longer than a word of the bits that say what room there is. */
static void
test_long_sequences(void)
{
    enum { N = 4000, T_MAX = 1000 };
    struct eti_piece *piece;
    struct eti_packed p;
    struct et_rng r = et_rng_at(5, ET_RNG_DATA, 0);
    int64_t tokens = 0, worst = 0;
    need(cx, et_alloc(cx, N * sizeof *piece, (void **)&piece));
    for (int i = 0; i < N; i++) {
        piece[i] = (struct eti_piece){i, 1 + (int32_t)et_rng_below(&r, 300), false};
        tokens += piece[i].n;
    }
    need(cx, eti_pack_best_fit(cx, piece, N, T_MAX, &p));
    for (int64_t row = 0; row < p.n_rows; row++) {
        int64_t sum = 0;
        for (int64_t i = p.first[row]; i < p.first[row + 1]; i++)
            sum += p.piece[i].n;
        worst = sum > worst ? sum : worst;
    }
    ok(worst <= T_MAX && p.n_rows == (tokens + T_MAX - 1) / T_MAX,
       "4,000 pieces fill sequences of 1,000 tokens but for the last (%lld for %lld)",
       (long long)p.n_rows, (long long)tokens);
    eti_packed_release(cx, &p);
}

/* ---- packed_text ---- */

static struct et_dataset *
open_lines(const char *path, const char *seq_len, const char *packing,
           const char *attention)
{
    struct et_dataset *d;
    need(cx, try_open("packed_text",
                      OPTIONS("path", path, "document", "line", "seq_len", seq_len,
                              "packing", packing, "attention", attention),
                      &d));
    return d;
}

/* Lines of bytes: line I has 1 + I % 23 of the letter I % 26. */
static const char *
write_lines(int n)
{
    static char text[65536];
    size_t used = 0;
    for (int i = 0; i < n; i++) {
        for (int k = 0; k <= i % 23; k++)
            text[used++] = (char)('a' + i % 26);
        text[used++] = '\n';
    }
    return write_file("lines.txt", text, used, false);
}

struct seen {
    int64_t tokens, targets, crossing, wrong, rows, unmarked;
};

/* Looks at each sequence of D, whose documents are runs of one letter. */
static struct seen
look(const struct et_dataset *d)
{
    struct seen c = {0};
    struct eti_room room = {0};
    for (int64_t at = 0; at < d->facts.n_samples; at++, c.rows++) {
        struct et_sample s;
        struct et_error why;
        bool broken;
        need(cx, eti_sample_read(d, at, NULL, &room, &s, &why, &broken));
        const int32_t *x = s.v[0].data, *y = s.v[1].data;
        const bool marked = d->facts.n_fields == 4;
        int64_t n = s.v[0].shape[0];
        c.wrong += n != d->type->length(d, at);
        for (int64_t i = 0; i < n; i++) {
            const int32_t *document = s.v[2].data, *position = s.v[3].data;
            bool begins = i == 0 || (marked && document[i] != document[i - 1]);
            c.tokens++;
            c.targets += y[i] != ET_IGNORE_INDEX;
            c.crossing += y[i] != ET_IGNORE_INDEX && y[i] != x[i];
            c.wrong += i + 1 < n && y[i] != ET_IGNORE_INDEX && y[i] != x[i + 1];
            if (!marked)
                continue;
            c.wrong += position[i] != (begins ? 0 : position[i - 1] + 1);
            c.wrong += begins && document[i] != (i ? document[i - 1] + 1 : 1);
            c.unmarked += i > 0 && x[i] != x[i - 1] && !begins;
        }
    }
    eti_room_free(&room);
    return c;
}

/* What the train and test splits of N lines have together. */
static struct seen
look_at_both(const char *path, const char *seq_len, const char *packing,
             const char *attention)
{
    struct seen sum = {0};
    for (int i = 0; i < 2; i++) {
        struct et_dataset *d;
        need(cx, try_open("packed_text",
                          OPTIONS("path", path, "document", "line", "seq_len", seq_len,
                                  "packing", packing, "attention", attention, "split",
                                  i ? "test" : "train"),
                          &d));
        struct seen c = look(d);
        et_dataset_close(&d);
        sum.tokens += c.tokens;
        sum.targets += c.targets;
        sum.crossing += c.crossing;
        sum.wrong += c.wrong;
        sum.rows += c.rows;
        sum.unmarked += c.unmarked;
    }
    return sum;
}

static void
test_packed_text(void)
{
    enum { LINES = 460, TOKENS = 20 * (23 * 24 / 2) };
    char path[512];
    snprintf(path, sizeof path, "%s", write_lines(LINES));
    struct seen c = look_at_both(path, "32", "best_fit", "document");
    is_int(c.tokens, TOKENS, "best_fit: every token is there once");
    is_int(c.targets, TOKENS - LINES, "each but the first of a line is predicted");
    ok(c.crossing == 0 && c.wrong == 0 && c.unmarked == 0,
       "by the one before it, and lines are told apart");
    ok(c.rows * 32 - TOKENS < 64, "and hardly a place is padding (%lld of %lld)",
       (long long)(c.rows * 32 - TOKENS), (long long)c.rows * 32);
    c = look_at_both(path, "32", "wrapped", "document");
    ok(c.tokens == TOKENS && c.targets == TOKENS - LINES && c.crossing == 0 &&
           c.wrong == 0 && c.unmarked == 0,
       "wrapped: likewise");
    ok(c.rows <= (TOKENS + 31) / 32 + 1, "in as few sequences as there can be");
    c = look_at_both(path, "8", "best_fit", "document");
    ok(c.tokens == TOKENS && c.targets == TOKENS - LINES && c.wrong == 0,
       "longer lines are cut, and what follows a cut is predicted");
    struct et_dataset *d = open_lines(path, "32", "best_fit", "all");
    c = look(d);
    ok(d->facts.n_fields == 2 && c.crossing == 0,
       "attention: all has no fields more, and no target in another line");
    et_dataset_close(&d);
}

/* Lines without a letter are no documents, wherever they stand. */
static void
test_empty_lines(void)
{
    static const char text[] = "\n\naaaa\n\n\nbbbb\ncccc\n\n\n\ndddd\n\n";
    static const char *const packing[] = {"wrapped", "best_fit"};
    char path[512];
    snprintf(path, sizeof path, "%s",
             write_file("empty.txt", text, sizeof text - 1, false));
    for (int i = 0; i < 2; i++) {
        struct seen c = look_at_both(path, "8", packing[i], "document");
        ok(c.tokens == 16 && c.targets == 12 && c.wrong + c.crossing + c.unmarked == 0,
           "%s: empty lines have no tokens", packing[i]);
    }
}

/* Documents that another program made, some of them without tokens. */
static void
test_empty_documents(void)
{
    static const int64_t ends[] = {0, 5, 5, 5, 8, 8, 16, 16, 17, 17};
    static const char *const packing[] = {"wrapped", "best_fit"};
    enum { N = 17 };
    uint16_t token[N];
    char folder[512];
    for (int i = 0; i < N; i++)
        token[i] = (uint16_t)("aaaaabbbccccccccd"[i]);
    snprintf(folder, sizeof folder, "%s/made", scratch_folder());
    mkdir(folder, 0777);
    static const char known[] =
        "{\"bytes\": 2, \"vocab_size\": 256, \"tokenizer\": \"bytes\"}";
    write_file("made/tokens.json", known, sizeof known - 1, false);
    write_file("made/train.bin", token, sizeof token, false);
    write_file("made/train.ends", ends, sizeof ends, false);
    for (int i = 0; i < 2; i++) {
        struct et_dataset *d;
        need(cx, try_open("packed_text",
                          OPTIONS("path", folder, "seq_len", "8", "packing", packing[i],
                                  "attention", "document"),
                          &d));
        struct seen c = look(d);
        et_dataset_close(&d);
        ok(c.tokens == N && c.targets == N - 4 &&
               c.wrong + c.crossing + c.unmarked == 0,
           "%s: a document without tokens is none", packing[i]);
    }
}

/* ---- instructions ---- */

static struct et_dataset *
open_instructions(const char *path, const char *seq_len, const char *packing,
                  const char *truncation, const char *template)
{
    struct et_dataset *d;
    need(cx, try_open("instructions",
                      OPTIONS("path", path, "tokenizer", gpt2, "seq_len", seq_len,
                              "packing", packing, "truncation", truncation, "template",
                              template),
                      &d));
    return d;
}

/* Tokens of TEXT to the end of OUT, which has *N; learned ones have themselves as
 * label. END: the end of a text follows. */
static void
expect(const char *text, bool learned, bool end, int32_t *out, int32_t *label,
       int64_t *n)
{
    struct et_tokenizer *t;
    struct et_tokenizer_info info;
    struct et_encoder *e;
    struct et_encoding a;
    need(cx, et_tokenizer_open(cx, gpt2, &t));
    need(cx, et_encoder_new(cx, t, &e));
    need(cx, et_encode(e, text, strlen(text), 0, &a));
    et_tokenizer_get_info(t, &info);
    for (int64_t i = 0; i < a.n; i++, ++*n) {
        out[*n] = a.id[i];
        label[*n] = learned ? a.id[i] : ET_IGNORE_INDEX;
    }
    if (end) {
        out[*n] = info.role[ET_TOKEN_EOS];
        label[(*n)++] = info.role[ET_TOKEN_EOS];
    }
    et_encoder_free(&e);
    et_tokenizer_free(&t);
}

/* Is sample AT of D the N tokens from X on, with their labels, a place further on? */
static bool
is_row(const struct et_dataset *d, int64_t at, const int32_t *x, const int32_t *label,
       int64_t n)
{
    struct eti_room room = {0};
    struct et_sample s;
    struct et_error why;
    bool broken;
    need(cx, eti_sample_read(d, at, NULL, &room, &s, &why, &broken));
    const int32_t *token = s.v[0].data, *target = s.v[1].data;
    bool same = s.v[0].shape[0] == n;
    for (int64_t i = 0; same && i < n; i++)
        same = token[i] == x[i] &&
               target[i] == (i + 1 < n ? label[i + 1] : ET_IGNORE_INDEX);
    eti_room_free(&room);
    return same;
}

static void
test_pairs(void)
{
    static const char json[] =
        "{\"prompt\": \"What is the heaven?\", \"response\": \" God's.\"}\n\n"
        "{\"prompt\": \"And it was so\", \"response\": \"\"}\n";
    int32_t x[256], label[256];
    int64_t n = 0;
    char path[512];
    snprintf(path, sizeof path, "%s",
             write_file("pairs.jsonl", json, sizeof json - 1, false));
    struct et_dataset *d =
        open_instructions(path, "64", "none", "keep_start", "'{prompt}{response}'");
    expect("What is the heaven?", false, false, x, label, &n);
    expect(" God's.", true, true, x, label, &n);
    ok(d->facts.n_samples == 2 && d->facts.n_fields == 2 && is_row(d, 0, x, label, n),
       "the response is learned, and that it ends; the prompt is given");
    int64_t second = n;
    expect("And it was so", false, true, x, label, &n);
    ok(is_row(d, 1, x + second, label + second, n - second), "of an empty one the end");
    et_dataset_close(&d);
    d = open_instructions(path, "64", "best_fit", "keep_start", "'{prompt}{response}'");
    label[second] = ET_IGNORE_INDEX;
    ok(d->facts.n_samples == 1 && d->facts.n_fields == 4 && is_row(d, 0, x, label, n),
       "both are packed into one sequence, the longer first");
    et_dataset_close(&d);
    d = open_instructions(path, "64", "none", "keep_start",
                          "\"Q: {prompt} {curly\\nA:{response} !\"");
    n = 0;
    expect("Q: What is the heaven? {curly\nA:", false, false, x, label, &n);
    expect(" God's. !", true, true, x, label, &n);
    ok(is_row(d, 0, x, label, n), "a template surrounds them");
    et_dataset_close(&d);
}

static void
test_truncation(void)
{
    static const char json[] =
        "{\"prompt\": \"a b c d e f g h\", \"response\": \" x y z\"}\n"
        "{\"prompt\": \"a\", \"response\": \" x\"}\n";
    int32_t x[64], label[64];
    int64_t n = 0;
    char path[512];
    snprintf(path, sizeof path, "%s",
             write_file("long.jsonl", json, sizeof json - 1, false));
    expect("a b c d e f g h", false, false, x, label, &n);
    expect(" x y z", true, true, x, label, &n);
    struct et_dataset *d =
        open_instructions(path, "10", "none", "keep_start", "'{prompt}{response}'");
    ok(n > 10 && d->facts.n_samples == 2 && is_row(d, 0, x, label, 10),
       "keep_start cuts the end");
    et_dataset_close(&d);
    d = open_instructions(path, "10", "none", "keep_end", "'{prompt}{response}'");
    ok(is_row(d, 0, x + n - 10, label + n - 10, 10), "keep_end cuts the beginning");
    et_dataset_close(&d);
    d = open_instructions(path, "8", "none", "keep_start", "'{prompt}{response}'");
    is_int(d->facts.n_samples, 1, "a line with no response left is left out");
    et_dataset_close(&d);
    et_status s = try_open(
        "instructions", OPTIONS("path", path, "tokenizer", gpt2, "seq_len", "1"), &d);
    ok(s == ET_EFORMAT && strstr(take_error(cx), "2 have nothing to learn"),
       "where that is all of them, it is an error");
}

static char cut_line[128], left_line[128];

static void
hear_of_cuts(void *data, enum et_log_level level, const char *text)
{
    const char *at = strstr(text, ".jsonl: ");
    (void)data;
    (void)level;
    if (at && strstr(at, "are cut"))
        snprintf(cut_line, sizeof cut_line, "%s", at + 8);
    if (at && strstr(at, "left out"))
        snprintf(left_line, sizeof left_line, "%s", at + 8);
}

/* Opens JSON's lines in sequences of SEQ_LEN; what is said of those that are cut. */
static const char *
said_of_cuts_at(const char *json, const char *seq_len)
{
    char path[512];
    snprintf(path, sizeof path, "%s",
             write_file("cut.jsonl", json, strlen(json), false));
    cut_line[0] = left_line[0] = '\0';
    et_ctx_set_log(cx, ET_LOG_WARN, hear_of_cuts, NULL);
    struct et_dataset *d =
        open_instructions(path, seq_len, "none", "keep_start", "'{prompt}{response}'");
    et_ctx_set_log(cx, ET_LOG_WARN, NULL, NULL);
    et_dataset_close(&d);
    return cut_line;
}

static const char *
said_of_cuts(const char *json)
{
    return said_of_cuts_at(json, "8");
}

/* A line that is left out is not said to be cut as well, and hides none that is. */
static void
test_told_cuts(void)
{
#define SHORT "{\"prompt\": \"a\", \"response\": \" x\"}\n"
#define CUT   "{\"prompt\": \"a\", \"response\": \" x y z x y z x x x\"}\n"
#define LOST  "{\"prompt\": \"a b c d e f g h i j\", \"response\": \" x\"}\n"
    is_str(said_of_cuts(SHORT), "", "nothing is said where no line is cut");
    is_str(said_of_cuts(SHORT LOST), "", "nor of one that is cut and left out");
    is_str(said_of_cuts(CUT SHORT CUT LOST LOST LOST),
           "2 lines are longer than 8 tokens and are cut",
           "lines that are cut are counted, whatever others are left out");
    is_str(left_line,
           "3 of 6 lines are left out: there is nothing to learn in their 8 tokens",
           "and so are these");
    (void)said_of_cuts(SHORT LOST);
    is_str(left_line,
           "1 of 2 lines are left out: there is nothing to learn in their 8 tokens",
           "also one alone");
}

/* One line, in sequences that just have it, and in some that just do not. */
static void
test_just_cut(void)
{
    int32_t x[64], label[64];
    int64_t n = 0;
    char seq_len[2][16], want[96];
    expect("a", false, false, x, label, &n);
    expect(" x y", true, true, x, label, &n);
    for (int i = 0; i < 2; i++)
        snprintf(seq_len[i], sizeof *seq_len, "%d", (int)n - i);
    snprintf(want, sizeof want, "1 lines are longer than %s tokens and are cut",
             seq_len[1]);
    const char *json = "{\"prompt\": \"a\", \"response\": \" x y\"}\n";
    is_str(said_of_cuts_at(json, seq_len[0]), "", "a line as long is not cut");
    is_str(said_of_cuts_at(json, seq_len[1]), want, "one that is longer by one is");
}

static void
test_messages(void)
{
    static const char json[] =
        "{\"messages\": [{\"role\": \"system\", \"content\": \"Be good.\"},"
        "{\"role\": \"user\", \"content\": \"Hi\"},"
        "{\"role\": \"assistant\", \"content\": \"Yes\"},"
        "{\"role\": \"user\", \"content\": \"So?\"},"
        "{\"role\": \"assistant\", \"content\": \"No\"}]}\n";
    int32_t x[128], label[128];
    int64_t n = 0;
    struct et_dataset *d;
    char path[512];
    snprintf(path, sizeof path, "%s",
             write_file("chat.jsonl", json, sizeof json - 1, false));
    need(cx, try_open("instructions",
                      OPTIONS("path", path, "tokenizer", gpt2, "message",
                              "\"<{role}> {content}\\n\"", "seq_len", "128"),
                      &d));
    expect("<system> Be good.\n<user> Hi\n<assistant> ", false, false, x, label, &n);
    expect("Yes\n", true, false, x, label, &n);
    expect("<user> So?\n<assistant> ", false, false, x, label, &n);
    expect("No\n", true, true, x, label, &n);
    ok(is_row(d, 0, x, label, n), "of messages the assistant's are learned");
    et_dataset_close(&d);
}

/* Nine lines for training, then one for the test. */
static void
test_splits(void)
{
    char json[1024] = "", path[512];
    struct et_dataset *d;
    for (int i = 0; i < 20; i++)
        snprintf(json + strlen(json), sizeof json - strlen(json),
                 "{\"prompt\": \"%d\", \"response\": \"b\"}\n", i);
    snprintf(path, sizeof path, "%s", write_file("s.jsonl", json, strlen(json), false));
    for (int test = 0; test < 2; test++) {
        need(cx, try_open("instructions",
                          OPTIONS("path", path, "packing", "none", "seq_len", "16",
                                  "split", test ? "test" : "train"),
                          &d));
        is_int(d->facts.n_samples, test ? 2 : 18, "%s",
               test ? "the test has 2 of 20" : "training has the others");
        et_dataset_close(&d);
    }
}

static void
test_bad_lines(void)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"{\"prompt\": \"a\"}\n", "bad.jsonl:1: no text called 'response'"},
        {"\n{\"prompt\": 1, \"response\": \"a\"}\n", "bad.jsonl:2: no text called"},
        {"{\"prompt\": \"a\", \"response\": \"b\"}\n{\"prompt\"}\n", "bad.jsonl:2:"},
        {"{\"messages\": [{\"content\": \"a\"}]}\n", "bad.jsonl:1: message 1 has no"},
        {"{\"messages\": [{\"role\": \"user\"}]}\n", "no text called 'content'"},
        {"{\"messages\": []}\n", "nothing to learn"},
        {"", "no lines"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct et_dataset *d;
        char path[512];
        snprintf(path, sizeof path, "%s",
                 write_file("bad.jsonl", rows[i].text, strlen(rows[i].text), false));
        et_status s = try_open("instructions", OPTIONS("path", path), &d);
        const char *why = take_error(cx);
        ok(s == ET_EFORMAT && strstr(why, rows[i].says), "refused: %s", rows[i].says);
        if (!strstr(why, rows[i].says))
            diag("%s", why);
    }
    struct et_dataset *d;
    et_status s = try_open("instructions",
                           OPTIONS("path", "x.jsonl", "template", "'{prompt}'"), &d);
    ok(s == ET_EINVAL && strstr(take_error(cx), "template has no {response}"),
       "a template without a response is refused");
    s = try_open("instructions", OPTIONS("path", "x.jsonl", "message", "'{role}'"), &d);
    ok(s == ET_EINVAL && strstr(take_error(cx), "message has no {content}"),
       "as is a message without its content");
}

/* The second of two files ends early: the tokens of the first are not all there are. */
static void
test_cut_texts(void)
{
    static char text[60000], packed[60000];
    char path[512], folder[512];
    struct et_dataset *d = NULL;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)('a' + i * 2654435761u % 23);
    snprintf(folder, sizeof folder, "%s/cuts", scratch_folder());
    if (mkdir(folder, 0700) != 0)
        bail("no folder");
    write_file("cuts/a.txt", text, sizeof text, false);
    snprintf(path, sizeof path, "%s",
             write_file("cuts/b.txt.gz", text, sizeof text, true));
    FILE *f = fopen(path, "rb");
    const size_t n = f ? fread(packed, 1, sizeof packed, f) : 0;
    if (!f || fclose(f) != 0 || n < 100)
        bail("no packed file");
    write_file("cuts/b.txt.gz", packed, n / 2, false);
    et_status s =
        try_open("packed_text",
                 OPTIONS("path", folder, "document", "line", "seq_len", "16"), &d);
    const char *why = s == ET_OK ? "it is taken" : take_error(cx);
    if (!ok(s == ET_EFORMAT && strstr(why, "cut short"),
            "texts are refused if one is cut short, not made of what is there"))
        diag("%s", why);
    if (s == ET_OK)
        et_dataset_close(&d);
}

int
main(void)
{
    const char *source = getenv("ET_SRCDIR") ? getenv("ET_SRCDIR") : ".";
    unsetenv("ETUDE_CACHE_DIR"); /* the cache is where each test has it */
    cx = need_ctx();
    snprintf(gpt2, sizeof gpt2, "%s/t/golden/tokenizers/gpt2.json", source);
    setenv("XDG_CACHE_HOME", scratch_folder(), 1);
    test_best_fit();
    test_like_rooms();
    test_long_sequences();
    test_packed_text();
    test_empty_lines();
    test_empty_documents();
    test_pairs();
    test_truncation();
    test_told_cuts();
    test_just_cut();
    test_messages();
    test_splits();
    test_bad_lines();
    test_cut_texts();
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing leaks");
    et_ctx_free(&cx);
    return done();
}
