/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a run, piece by piece: each word names its own file, each rank has its own
 * log, and a piece begins where it was asked for, or so far from the end. */
#include "config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dist/wire/piece.h"
#include "t/data/fixture.h"
#include "t/tap.h"

static char directory[600];
static const struct etd_head head = {.kind = ETD_FILE};

static void
put(const char *path, size_t n, char first)
{
    char whole[1024];
    snprintf(whole, sizeof whole, "%s/%s", directory, path);
    FILE *f = fopen(whole, "w");
    for (size_t i = 0; f && i < n; i++)
        fputc((char)(first + (char)(i % 7)), f);
    if (!f || fclose(f) != 0)
        bail("cannot write %s", whole);
}

/* The answer to the question for FILE of RANK from AT on. */
static struct etd_piece
ask(enum etd_piece_of file, int rank, int64_t at)
{
    static char question[ETD_CONTROL_BYTES], answer[ETD_CHUNK_BYTES];
    struct etd_frame f;
    struct etd_fault fault;
    struct etd_piece p;
    size_t n = etd_piece_ask(&head, file, rank, at, question, sizeof question);
    if (n == 0 || etd_read(question, n, &f, &fault) != ET_OK)
        bail("no question");
    n = etd_piece_answer(directory, &head, &f, answer, sizeof answer);
    if (n == 0 || etd_read(answer, n, &f, &fault) != ET_OK || !etd_piece_read(&f, &p))
        bail("no answer");
    return p;
}

static void
test_words(void)
{
    enum { RANKS = 3 };
    char path[64];
    for (int i = 0; i < ETD_PIECE_COUNT; i++)
        for (int rank = 0; rank < (i == ETD_PIECE_LOG ? RANKS : 1); rank++)
            put(etd_piece_path((enum etd_piece_of)i, rank, path, sizeof path),
                (size_t)(10 * i + rank + 1), (char)('a' + i + rank));
    for (int i = 0; i < ETD_PIECE_COUNT; i++)
        for (int rank = 0; rank < (i == ETD_PIECE_LOG ? RANKS : 1); rank++) {
            const char *word = etd_piece_word((enum etd_piece_of)i);
            struct etd_piece p = ask((enum etd_piece_of)i, rank, 0);
            is_int(etd_piece_find(word), i, "'%s' is one word", word);
            ok((int)p.file == i && p.rank == rank && !p.is_missing && p.at == 0,
               "it is answered for rank %d", rank);
            ok(p.n == (size_t)(10 * i + rank + 1) && p.size == (int64_t)p.n &&
                   p.bytes[0] == 'a' + i + rank,
               "with its own file: %zu bytes", p.n);
        }
    ok(ask(ETD_PIECE_LOG, RANKS, 0).is_missing, "one rank more has none");
}

static void
test_places(void)
{
    static const struct {
        int64_t size, asked, at, n;
    } row[] = {
        {100, 0, 0, 100},
        {100, 99, 99, 1},
        {100, 100, 100, 0},
        {100, 200, 200, 0},
        {100, -1, 0, 100},
        {ETD_PIECE_BYTES, 0, 0, ETD_PIECE_BYTES},
        {ETD_PIECE_BYTES + 1, 0, 0, ETD_PIECE_BYTES},
        {ETD_PIECE_BYTES + 1, 1, 1, ETD_PIECE_BYTES},
        {ETD_PIECE_BYTES + 1, 2, 2, ETD_PIECE_BYTES - 1},
        {ETD_PIECE_TAIL, -1, 0, ETD_PIECE_BYTES},
        {ETD_PIECE_TAIL + 1, -1, 1, ETD_PIECE_BYTES},
        {3 * ETD_PIECE_TAIL + 5, -1, 2 * ETD_PIECE_TAIL + 5, ETD_PIECE_BYTES},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        put("run.json", (size_t)row[i].size, 'a');
        struct etd_piece p = ask(ETD_PIECE_RUN, 0, row[i].asked);
        ok(p.size == row[i].size && p.at == row[i].at && (int64_t)p.n == row[i].n,
           "of %lld bytes, from %lld on: %zu from %lld on", (long long)row[i].size,
           (long long)row[i].asked, p.n, (long long)p.at);
        bool right = true;
        for (size_t k = 0; k < p.n; k++)
            right = right && p.bytes[k] == 'a' + (p.at + (int64_t)k) % 7;
        ok(right, "which are those of the file");
    }
}

/* What is no plain file of the run's folder is not sent. */
static void
test_link(void)
{
    char path[1024], other[1024];
    put("elsewhere", 5, 'a');
    snprintf(path, sizeof path, "%s/logs/rank8.txt", directory);
    snprintf(other, sizeof other, "%s/elsewhere", directory);
    if (symlink(other, path) != 0)
        bail("no link");
    struct etd_piece p = ask(ETD_PIECE_LOG, 8, 0);
    ok(p.is_missing && p.n == 0, "a link is not followed");
    snprintf(path, sizeof path, "%s/logs/rank9.txt", directory);
    if (mkdir(path, 0700) != 0)
        bail("no folder");
    p = ask(ETD_PIECE_LOG, 9, 0);
    ok(p.is_missing && p.n == 0, "nor is a folder read");
}

/* Numbers of an answer at their bounds, and beyond. */
static void
test_numbers(void)
{
    static const struct {
        int64_t rank, at, size;
        bool taken;
    } row[] = {
        {0, 0, 0, true},         {-1, 0, 0, false},         {0, -1, 0, false},
        {0, 0, -1, false},       {INT_MAX - 1, 0, 0, true}, {INT_MAX, 0, 0, false},
        {3, 1LL << 40, 5, true}, {3, INT64_MAX, 5, false},
    };
    static char bytes[ETD_CHUNK_BYTES];
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct etd_out o;
        struct etd_frame f;
        struct etd_fault fault;
        struct etd_piece p;
        etd_begin(&o, bytes, sizeof bytes, &head, 5);
        etd_put_text(&o, "file", "log");
        etd_put_int(&o, "rank", row[i].rank);
        etd_put_int(&o, "at", row[i].at);
        etd_put_int(&o, "size", row[i].size);
        etd_put_bin(&o, "data", "abc", 3);
        ok(etd_read(bytes, etd_end(&o), &f, &fault) == ET_OK &&
               etd_piece_read(&f, &p) == row[i].taken,
           "rank %lld at %lld of %lld is %s", (long long)row[i].rank,
           (long long)row[i].at, (long long)row[i].size,
           row[i].taken ? "taken" : "refused");
        if (row[i].taken)
            ok(p.file == ETD_PIECE_LOG && p.rank == row[i].rank && p.at == row[i].at &&
                   p.size == row[i].size && p.n == 3 &&
                   memcmp(p.bytes, "abc", 3) == 0 && !p.is_missing,
               "as it is");
    }
}

int
main(void)
{
    char logs[700];
    snprintf(directory, sizeof directory, "%s/run", scratch_folder());
    snprintf(logs, sizeof logs, "%s/logs", directory);
    if (mkdir(directory, 0700) != 0 || mkdir(logs, 0700) != 0)
        bail("no folder for a run");
    test_words();
    test_places();
    test_link();
    test_numbers();
    return done();
}
