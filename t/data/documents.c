/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of files and folders, block by block; where documents end; lists of names; and
 * the folder that shards are written to. */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/memory.h"
#include "core/data/document_ends.h"
#include "core/data/picture_list.h"
#include "core/text/documents.h"
#include "core/text/shards_folder.h"
#include "core/text/vocab.h"
#include "etude/rng.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static struct et_ctx *cx;
static struct et_tokenizer *bytes;

/* ---- what blocks hold ---- */

struct taken {
    char *text;
    int64_t n, room, blocks;
    int wrong; /* lines that are not those where a block begins, or ends of none */
    int64_t skipped, files;
    uint64_t hash;
    bool cuts_tail;
    int64_t first; /* bytes of the first block */
    et_status status;
};

static int64_t
lines_in(const char *text, int64_t n)
{
    int64_t lines = 0;
    for (int64_t i = 0; i < n; i++)
        lines += text[i] == '\n';
    return lines;
}

static bool
ends_where(enum eti_document what, const struct eti_text_block *b, bool ends_file)
{
    bool line = b->n > 0 && b->text[b->n - 1] == '\n';
    bool blank = line && b->n > 1 && b->text[b->n - 2] == '\n';
    return ends_file || (what == ETI_DOCUMENT_LINE && line) ||
           (what == ETI_DOCUMENT_BLANK && blank) || what == ETI_DOCUMENT_FILE;
}

/* Takes all blocks of INPUTS, and looks at what each says of itself. */
static struct taken
take_all(const char *const *inputs, int n, enum eti_document what, double val)
{
    struct eti_shards_config config = {
        .input = inputs, .n_inputs = n, .document = what, .val_fraction = val};
    struct eti_text_block b = {0};
    struct eti_documents *d;
    struct taken out = {0};
    const char *path = NULL;
    bool found = true, last = false;
    int64_t line = 1;
    out.status = eti_documents_open(cx, bytes, &config, &d);
    while (out.status == ET_OK && found) {
        out.status = eti_documents_next(d, &b, &found);
        if (out.status != ET_OK || !found)
            break;
        bool fresh = !path || strcmp(path, b.path) != 0;
        line = fresh ? 1 : line;
        out.wrong += last || b.line != line;
        out.wrong += !b.ends_document && what != ETI_DOCUMENT_FILE;
        line += lines_in(b.text, b.n);
        path = b.path;
        last = b.last;
        out.first = out.blocks++ == 0 ? b.n : out.first;
        struct eti_shards_progress p = {0};
        eti_documents_progress(d, &p);
        out.skipped = p.skipped;
        out.files = p.n_files;
        out.wrong +=
            !ends_where(what, &b, p.bytes == p.all_bytes || b.last || b.ends_document);
        need(cx,
             eti_text_append(cx, &out.text, &out.n, &out.room, b.text, (size_t)b.n));
    }
    out.wrong += out.status == ET_OK && !last;
    if (d) {
        out.hash = eti_documents_hash(d);
        out.cuts_tail = eti_documents_cuts_tail(d);
        eti_documents_close(&d);
    }
    et_free(cx, b.text);
    return out;
}

static void
drop(struct taken *t)
{
    et_free(cx, t->text);
    *t = (struct taken){0};
}

/* ---- large files ---- */

enum { LARGE = 3 << 20 };

/* Lines of up to 200 letters; now and then a blank one. */
static char *
large_text(void)
{
    struct et_rng r = et_rng_at(5, ET_RNG_USER, 0);
    char *text = malloc(LARGE);
    for (int64_t i = 0; i < LARGE;) {
        int64_t n = (int64_t)et_rng_below(&r, 200);
        for (; n > 0 && i < LARGE; n--)
            text[i++] = (char)('a' + et_rng_below(&r, 26));
        if (i < LARGE)
            text[i++] = '\n';
    }
    return text;
}

static void
test_blocks(void)
{
    static const char *const names[] = {"a file", "lines", "what blank lines part"};
    char *text = large_text(), one[512], two[512];
    snprintf(one, sizeof one, "%s", write_file("large.txt", text, LARGE, false));
    snprintf(two, sizeof two, "%s", write_file("packed.txt.gz", text, LARGE, true));
    for (int what = 0; what < 3; what++) {
        const char *const inputs[] = {one, two};
        struct taken t = take_all(inputs, 2, (enum eti_document)what, 0);
        ok(t.status == ET_OK && t.n == 2 * LARGE && t.blocks > 4 &&
               memcmp(t.text, text, LARGE) == 0 &&
               memcmp(t.text + LARGE, text, LARGE) == 0,
           "of %s all bytes come, packed or not, in %d blocks", names[what],
           (int)t.blocks);
        is_int(t.wrong, 0, "which say in which line they begin, and which is the last");
        drop(&t);
    }
    /* The first file's last block is not the last of all. */
    const char *const inputs[] = {one};
    struct taken t = take_all(inputs, 1, ETI_DOCUMENT_FILE, 0.25);
    ok(t.cuts_tail && t.n == LARGE && t.wrong == 0,
       "an only document is cut where its end is set apart");
    drop(&t);
    unlink(one);
    unlink(two);
    free(text);
}

/* Each block but the last ends behind a blank line, and they are as long as can be. */
static void
test_blank(void)
{
    enum { PARTS = 40, PART = 50000 };
    char *text = malloc(PARTS * (PART + 8)), path[512], *at = text;
    for (int i = 0; i < PARTS; i++) {
        memset(at, 'x', PART);
        for (int k = 100; k < PART; k += 100)
            at[k] = '\n';
        at += PART;
        *at++ = '\n';
        *at++ = '\n';
    }
    int64_t n = at - text;
    snprintf(path, sizeof path, "%s", write_file("blank.txt", text, (size_t)n, false));
    const char *const inputs[] = {path};
    struct taken t = take_all(inputs, 1, ETI_DOCUMENT_BLANK, 0);
    ok(t.status == ET_OK && t.n == n && t.first % (PART + 2) == 0 && t.blocks == 2,
       "a block holds whole documents between blank lines (%lld bytes)",
       (long long)t.first);
    drop(&t);
    unlink(path);
    free(text);
}

static void
test_tails(void)
{
    char one[512], two[512], gz[512];
    snprintf(one, sizeof one, "%s", write_file("one.txt", "0123456789", 10, false));
    snprintf(two, sizeof two, "%s", write_file("two.txt", "abc", 3, false));
    snprintf(gz, sizeof gz, "%s", write_file("three.txt.gz", "0123456789", 10, true));
    const char *const inputs[] = {one, two}, *const packed[] = {gz};
    static const struct {
        const char *says;
        enum eti_document what;
        int n;
        double val;
        bool cuts;
        int64_t first;
    } rows[] = {
        {"three tenths of an only file", ETI_DOCUMENT_FILE, 1, 0.3, true, 7},
        {"nothing of an only file where nothing is asked for", ETI_DOCUMENT_FILE, 1, 0,
         false, 10},
        {"nothing of the last of two files", ETI_DOCUMENT_FILE, 2, 0.3, false, 10},
        {"nothing of a file of lines", ETI_DOCUMENT_LINE, 1, 0.3, false, 10},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct taken t = take_all(inputs, rows[i].n, rows[i].what, rows[i].val);
        ok(t.status == ET_OK && t.cuts_tail == rows[i].cuts &&
               t.first == rows[i].first && t.wrong == 0,
           "%s is set apart", rows[i].says);
        drop(&t);
    }
    struct taken t = take_all(packed, 1, ETI_DOCUMENT_FILE, 0.3);
    ok(t.status == ET_OK && !t.cuts_tail && t.n == 10,
       "nothing of a packed file, whose length is not known");
    drop(&t);
    unlink(one);
    unlink(two);
    unlink(gz);
}

/* ---- folders ---- */

static void
put_in(const char *folder, const char *name, const char *text, size_t n)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    if (!f || fwrite(text, 1, n, f) != n || fclose(f) != 0)
        bail("cannot write %s", path);
}

static uint64_t
hash_of(const char *folder)
{
    const char *const inputs[] = {folder};
    struct taken t = take_all(inputs, 1, ETI_DOCUMENT_FILE, 0);
    uint64_t hash = t.hash;
    drop(&t);
    return hash;
}

static void
set_time(const char *folder, const char *name, time_t when)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    const struct timespec times[2] = {{.tv_sec = when}, {.tv_sec = when}};
    if (utimensat(AT_FDCWD, path, times, 0) != 0)
        bail("no time for %s", path);
}

static void
test_hash(const char *folder)
{
    put_in(folder, "b.txt", "B", 1);
    set_time(folder, "b.txt", 1000);
    const uint64_t was = hash_of(folder);
    ok(hash_of(folder) == was, "the hash of the same files is the same");
    set_time(folder, "b.txt", 1001);
    ok(hash_of(folder) != was, "another where one was written later");
    put_in(folder, "b.txt", "BB", 2);
    set_time(folder, "b.txt", 1000);
    ok(hash_of(folder) != was, "or is longer");
    put_in(folder, "c.txt", "", 0);
    uint64_t more = hash_of(folder);
    put_in(folder, "b.txt", "B", 1);
    set_time(folder, "b.txt", 1000);
    ok(hash_of(folder) != was && hash_of(folder) != more, "or there is another");
    char path[1024];
    snprintf(path, sizeof path, "%s/c.txt", folder);
    unlink(path);
    ok(hash_of(folder) == was, "and what goes back has the hash that it had");
}

static void
test_folder(void)
{
    static const char *const made[] = {"a.txt", "b.txt", "z/deep.txt", ".hidden",
                                       "d.bin", "again", "z"};
    char folder[600], path[1024];
    snprintf(folder, sizeof folder, "%s/texts", scratch_folder());
    snprintf(path, sizeof path, "%s/z", folder);
    if (mkdir(folder, 0777) != 0 || mkdir(path, 0777) != 0)
        bail("no folder");
    put_in(folder, "z/deep.txt", "D", 1);
    put_in(folder, "a.txt", "A", 1);
    put_in(folder, ".hidden", "H", 1);
    put_in(folder, "d.bin", "x\0y", 3);
    snprintf(path, sizeof path, "%s/again", folder);
    if (symlink(folder, path) != 0)
        bail("no link");
    test_hash(folder);
    const char *inputs[] = {folder};
    struct taken t = take_all(inputs, 1, ETI_DOCUMENT_FILE, 0);
    ok(t.status == ET_OK && t.n == 3 && memcmp(t.text, "ABD", 3) == 0 && t.files == 4 &&
           t.wrong == 0,
       "a folder's files come in their order, without hidden ones and links");
    is_int(t.skipped, 1, "what is no text is skipped, and counted");
    drop(&t);
    snprintf(path, sizeof path, "%s/d.bin", folder);
    inputs[0] = path;
    t = take_all(inputs, 1, ETI_DOCUMENT_FILE, 0);
    ok(t.status == ET_OK && t.n == 3 && t.skipped == 0, "a file that is named is read");
    drop(&t);
    char link[1024];
    snprintf(link, sizeof link, "%s/again", folder);
    inputs[0] = link;
    t = take_all(inputs, 1, ETI_DOCUMENT_FILE, 0);
    ok(t.status == ET_OK && t.n == 3, "and so is a link that is named");
    drop(&t);
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, made[i]);
        remove(path);
    }
    const char *const none[] = {folder};
    t = take_all(none, 1, ETI_DOCUMENT_FILE, 0);
    ok(t.status == ET_ENOENT && strstr(take_error(cx), "no file in"),
       "a folder without files is refused");
    drop(&t);
    rmdir(folder);
    t = take_all(none, 1, ETI_DOCUMENT_FILE, 0);
    ok(t.status == ET_ENOENT && strstr(take_error(cx), "texts"),
       "and so is one that is not there");
    drop(&t);
}

static void
test_packed(void)
{
    char path[512], *packed = malloc(1 << 16), *text = malloc(60000);
    for (int i = 0; i < 60000; i++)
        text[i] = (char)('a' + i * 2654435761u % 23);
    snprintf(path, sizeof path, "%s", write_file("cut.txt.gz", text, 60000, true));
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(packed, 1, 1 << 16, f) : 0;
    if (!f || fclose(f) != 0 || n < 100)
        bail("no packed file");
    int wrong = 0;
    for (size_t cut = 20; cut < n; cut += n / 9) {
        write_file("cut.txt.gz", packed, cut, false);
        const char *const inputs[] = {path};
        struct taken t = take_all(inputs, 1, ETI_DOCUMENT_FILE, 0);
        wrong += t.status != ET_EFORMAT || !strstr(take_error(cx), "cut short");
        drop(&t);
    }
    is_int(wrong, 0, "a packed file that is cut short anywhere is refused");
    unlink(path);
    free(packed);
    free(text);
}

/* ---- samples of MDS shards ---- */

static void
test_samples(void)
{
    enum { N = 9, LONG = 300000 };
    static char text[N][LONG];
    const void *sample[N];
    uint32_t size[N];
    char folder[600], name[700];
    snprintf(folder, sizeof folder, "%s/mds", scratch_folder());
    if (mkdir(folder, 0777) != 0)
        bail("no folder");
    for (int i = 0; i < N; i++) {
        memset(text[i], 'a' + i, LONG);
        sample[i] = text[i];
        size[i] = (uint32_t)(LONG - 1000 * i);
    }
    write_mds(folder, "str", N, sample, size);
    const char *const inputs[] = {folder};
    struct eti_shards_config config = {
        .input = inputs, .n_inputs = 1, .document = ETI_DOCUMENT_FILE, .field = "text"};
    struct eti_text_block b = {0};
    struct eti_documents *d;
    bool found;
    int at = 0, wrong = 0, blocks = 0;
    need(cx, eti_documents_open(cx, bytes, &config, &d));
    for (;; blocks++) {
        need(cx, eti_documents_next(d, &b, &found));
        if (!found)
            break;
        wrong += b.kind != ETI_BLOCK_RECORDS || b.line != at;
        for (int64_t k = 0; k < b.n; at++) {
            uint32_t n;
            memcpy(&n, b.text + k, sizeof n);
            wrong += at >= N || n != size[at] ||
                     memcmp(b.text + k + sizeof n, text[at], n) != 0;
            k += (int64_t)sizeof n + n;
        }
        wrong += b.last != (at == N);
    }
    ok(wrong == 0 && at == N && blocks > 1,
       "samples come in %d blocks, which say with which they begin", blocks);
    eti_documents_close(&d);

    static const struct {
        const char *says;
        int64_t id[3];
    } rows[] = {{NULL, {0, INT32_MAX - 1, 7}},
                {"number 1 of sample 1 is no token", {5, -1, 7}},
                {"number 0 of sample 1 is no token", {(int64_t)1 << 31, 2, 7}},
                {"number 2 of sample 1 is no token", {1, 2, ((int64_t)1 << 40) + 3}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int64_t first[] = {1, 2};
        const void *both[] = {first, rows[i].id};
        const uint32_t sizes[] = {sizeof first, sizeof rows[i].id};
        write_mds(folder, "bytes", 2, both, sizes);
        need(cx, eti_documents_open(cx, bytes, &config, &d));
        et_status s = eti_documents_next(d, &b, &found);
        const char *said = take_error(cx);
        const int32_t want[] = {8, 1, 2, 12, 0, INT32_MAX - 1, 7};
        ok(rows[i].says ? s == ET_EFORMAT && strstr(said, rows[i].says) &&
                              strstr(said, "shard.00000.mds")
                        : s == ET_OK && b.kind == ETI_BLOCK_IDS && b.n == sizeof want &&
                              memcmp(b.text, want, sizeof want) == 0,
           "tokens of samples: %s", rows[i].says ? said : "they are as they are there");
        eti_documents_close(&d);
    }
    et_free(cx, b.text);
    snprintf(name, sizeof name, "%s/index.json", folder);
    unlink(name);
    snprintf(name, sizeof name, "%s/shard.00000.mds", folder);
    unlink(name);
    rmdir(folder);
}

/* ---- where documents end ---- */

static et_status
read_ends(const int64_t *end, int64_t n, int64_t n_tokens, struct eti_document_ends *e)
{
    const char *path = write_file("train.ends", end, (size_t)n * sizeof *end, false);
    return eti_document_ends_read(cx, path, n_tokens, e);
}

static void
test_ends(void)
{
    static const int64_t good[] = {3, 3, 7, 12}, back[] = {3, 2, 12},
                         below[] = {-1, 12}, beyond[] = {3, 13}, early[] = {3, 11};
    struct eti_document_ends e;
    int wrong = 0;
    need(cx, read_ends(good, 4, 12, &e));
    for (int64_t at = 0; at < 12; at++) {
        int64_t i = 0;
        while (e.end[i] <= at)
            i++;
        wrong += eti_document_of(&e, at) != i;
    }
    is_int(wrong, 0, "each token is of the document that it lies in; one is empty");
    for (int64_t most = 1; most < 8; most++)
        for (int64_t tail = 0; tail < 3; tail++) {
            struct eti_piece *p;
            int64_t n, k = 0;
            need(cx, eti_document_pieces(cx, &e, most, tail, &p, &n));
            for (int64_t i = 0; i < e.n; i++)
                for (int64_t at = i ? e.end[i - 1] : 0; at < e.end[i] - tail; k++) {
                    int64_t left = e.end[i] - tail - at,
                            now = left < most ? left : most;
                    wrong += k >= n || p[k].begin != at || p[k].n != now ||
                             p[k].goes_on != (left > most);
                    at += now;
                }
            wrong += k != n;
            et_free(cx, p);
        }
    is_int(wrong, 0,
           "documents are cut into pieces, of which the last goes on nowhere");
    eti_document_ends_free(cx, &e);
    const struct {
        const int64_t *end;
        int64_t n;
        const char *says;
    } rows[] = {
        {back, 3, "document 1 ends at token 2, which is not between 3 and 12"},
        {below, 2, "document 0 ends at token -1, which is not between 0 and 12"},
        {beyond, 2, "document 1 ends at token 13"},
        {early, 2, "the documents end at token 11, of 12"},
        {good, 0, "the documents end at token 0, of 12"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        et_status s = read_ends(rows[i].end, rows[i].n, 12, &e);
        const char *said = take_error(cx);
        ok(s == ET_EFORMAT && strstr(said, rows[i].says), "refused: %s", said);
        eti_document_ends_free(cx, &e);
    }
}

/* ---- lists of names ---- */

static void
test_names(void)
{
    static const char lines[] = "  b one \r\n# none\n\nc\n\ta\t\n  \n#\nlast ";
    static const char zero[] = "a\nb\0c\nd";
    static const char *const want[] = {"b one", "c", "a", "last"};
    struct eti_strings s = {0};
    const char *path = write_file("names.txt", lines, sizeof lines - 1, false);
    need(cx, eti_strings_of_lines(cx, path, &s));
    bool same = s.n == 4;
    for (int i = 0; same && i < 4; i++)
        same = strcmp(eti_string(&s, i), want[i]) == 0;
    ok(same, "the lines of a file are names, without blanks, empty lines and comments");
    eti_strings_sort(&s);
    int wrong = 0;
    for (int64_t i = 0; i < s.n; i++) {
        wrong += eti_strings_find(&s, eti_string(&s, i)) != i;
        wrong += i > 0 && strcmp(eti_string(&s, i - 1), eti_string(&s, i)) >= 0;
    }
    ok(wrong == 0 && eti_strings_find(&s, "b") == -1 &&
           eti_strings_find(&s, "") == -1 && eti_strings_find(&s, "z") == -1,
       "of sorted names each is found where it is, and no other");
    eti_strings_free(cx, &s);
    path = write_file("names.txt", zero, sizeof zero - 1, false);
    ok(eti_strings_of_lines(cx, path, &s) == ET_EFORMAT &&
           strstr(take_error(cx), "names.txt: a zero byte"),
       "a zero byte anywhere in a list of names is refused");
    eti_strings_free(cx, &s);
}

/* ---- a new folder ---- */

static int
count_names(const char *path)
{
    struct eti_strings s = {0};
    char hidden[700];
    need(cx, eti_strings_of_folder(cx, path, &s));
    int n = (int)s.n;
    eti_strings_free(cx, &s);
    snprintf(hidden, sizeof hidden, "ls -A '%s' | wc -l", path);
    FILE *f = popen(hidden, "r");
    int all = -1;
    if (!f || fscanf(f, "%d", &all) != 1)
        bail("no ls");
    pclose(f);
    return all >= n ? all : -1;
}

static void
test_new_folder(void)
{
    static const char *const refused[] = {".shards", "", "/"};
    struct eti_new_folder f;
    char root[600], path[700], file[800];
    int fd;
    snprintf(root, sizeof root, "%s/new", scratch_folder());
    if (mkdir(root, 0777) != 0)
        bail("no folder");
    snprintf(path, sizeof path, "%s/shards//", root);
    need(cx, eti_new_folder_begin(cx, path, &f));
    need(cx, eti_new_folder_file(cx, &f, "a", &fd));
    close(fd);
    snprintf(file, sizeof file, "%s/shards", root);
    ok(access(file, F_OK) != 0, "a new folder has no name until it is whole");
    eti_new_folder_end(cx, &f);
    is_int(count_names(root), 0, "and leaves nothing where it does not become so");
    need(cx, eti_new_folder_begin(cx, path, &f));
    need(cx, eti_new_folder_file(cx, &f, "a", &fd));
    close(fd);
    ok(eti_new_folder_file(cx, &f, "a", &fd) == ET_EIO, "a file cannot be made twice");
    et_error_clear(cx);
    need(cx, eti_new_folder_commit(cx, &f));
    eti_new_folder_end(cx, &f);
    snprintf(file, sizeof file, "%s/shards/a", root);
    ok(access(file, F_OK) == 0 && count_names(root) == 1,
       "then it has its name, slashes behind it or not");
    ok(eti_new_folder_begin(cx, path, &f) == ET_EINVAL &&
           strstr(take_error(cx), "has files in it"),
       "a folder of one file is not written to");
    eti_new_folder_end(cx, &f);
    unlink(file);
    need(cx, eti_new_folder_begin(cx, path, &f));
    need(cx, eti_new_folder_commit(cx, &f));
    eti_new_folder_end(cx, &f);
    ok(count_names(root) == 1, "an empty one is");
    int wrong = 0;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        snprintf(path, sizeof path, "%s%s%s", i == 0 ? root : "", i == 0 ? "/" : "",
                 refused[i]);
        wrong += eti_new_folder_begin(cx, path, &f) != ET_EINVAL ||
                 !strstr(take_error(cx), "is no name of a new folder");
        eti_new_folder_end(cx, &f);
    }
    is_int(wrong, 0, "names that begin with a point, or are none, are refused");
    snprintf(file, sizeof file, "%s/shards", root);
    rmdir(file);
    rmdir(root);
}

int
main(void)
{
    cx = need_ctx();
    need(cx, et_tokenizer_open(cx, "bytes", &bytes));
    test_blocks();
    test_blank();
    test_tails();
    test_folder();
    test_packed();
    test_samples();
    test_ends();
    test_names();
    test_new_folder();
    et_tokenizer_free(&bytes);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left allocated");
    et_ctx_free(&cx);
    return done();
}
