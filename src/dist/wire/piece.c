/* SPDX-License-Identifier: Apache-2.0 */
/* piece.c: see piece.h. */
#include "config.h"

#include "dist/wire/piece.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char *word, *path;
} files[ETD_PIECE_COUNT] = {
#define ETD_PIECE_ROW(code, word, path) {word, path},
    ETD_PIECE_MAP(ETD_PIECE_ROW)
#undef ETD_PIECE_ROW
};

const char *
etd_piece_word(enum etd_piece_of file)
{
    return files[file].word;
}

const char *
etd_piece_path(enum etd_piece_of file, int rank, char *buf, size_t size)
{
    if (file == ETD_PIECE_LOG)
        snprintf(buf, size, "logs/rank%d.txt", rank);
    else
        snprintf(buf, size, "%s", files[file].path);
    return buf;
}

enum etd_piece_of
etd_piece_find(const char *word)
{
    int i = 0;
    while (i < ETD_PIECE_COUNT && strcmp(files[i].word, word) != 0)
        i++;
    return (enum etd_piece_of)i;
}

size_t
etd_piece_ask(const struct etd_head *head, enum etd_piece_of file, int rank, int64_t at,
              char *bytes, size_t room)
{
    struct etd_out o;
    etd_begin(&o, bytes, room, head, 3);
    etd_put_text(&o, "file", files[file].word);
    etd_put_int(&o, "rank", rank);
    etd_put_int(&o, "at", at);
    return etd_end(&o);
}

/* ---- reading ---- */

/* Opens the plain file DIRECTORY/PATH for reading; -1: it is missing or no plain file.
 * PATH has one folder at most. */
static int
open_plain(const char *directory, const char *path)
{
    const int how = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    struct stat st;
    char folder[32];
    const char *slash = strchr(path, '/');
    int at = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;
    if (at >= 0 && slash) {
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
        int below = openat(at, folder, how | O_DIRECTORY);
        close(at);
        at = below;
        path = slash + 1;
    }
    if (at >= 0)
        fd = openat(at, path, how);
    if (at >= 0)
        close(at);
    if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* As much of FD from AT on as a piece has; 0 at its end, or where it cannot be read. */
static size_t
read_piece(int fd, int64_t at, char *piece)
{
    size_t n = 0;
    while (n < ETD_PIECE_BYTES) {
        ssize_t got =
            pread(fd, piece + n, ETD_PIECE_BYTES - n, (off_t)(at + (int64_t)n));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    return n;
}

size_t
etd_piece_answer(const char *directory, const struct etd_head *head,
                 const struct etd_frame *question, char *bytes, size_t room)
{
    char piece[ETD_PIECE_BYTES];
    char word[16], path[64];
    struct stat st = {0};
    struct etd_out o;
    enum etd_piece_of file =
        etd_piece_find(etd_get_text(&question->body, "file", word, sizeof word));
    int64_t rank = etd_get_int(&question->body, "rank", 0);
    int64_t at = etd_get_int(&question->body, "at", 0);
    int fd = -1;
    if (file < ETD_PIECE_COUNT && rank >= 0 && rank < INT_MAX)
        fd = open_plain(directory, etd_piece_path(file, (int)rank, path, sizeof path));
    if (fd >= 0 && fstat(fd, &st) != 0)
        st.st_size = 0;
    if (at < 0)
        at = st.st_size > ETD_PIECE_TAIL ? st.st_size - ETD_PIECE_TAIL : 0;
    size_t n = fd >= 0 ? read_piece(fd, at, piece) : 0;
    etd_begin(&o, bytes, room, head, 5 + (fd < 0));
    etd_put_text(&o, "file", word);
    etd_put_int(&o, "rank", rank);
    etd_put_int(&o, "at", at);
    etd_put_int(&o, "size", (int64_t)st.st_size);
    etd_put_bin(&o, "data", piece, n);
    if (fd < 0)
        etd_put_bool(&o, "missing", true);
    else
        close(fd);
    return etd_end(&o);
}

bool
etd_piece_read(const struct etd_frame *f, struct etd_piece *out)
{
    char word[16];
    struct etd_value data;
    int64_t rank = etd_get_int(&f->body, "rank", -1);
    *out = (struct etd_piece){
        .file = etd_piece_find(etd_get_text(&f->body, "file", word, sizeof word)),
        .rank = (int)rank,
        .at = etd_get_int(&f->body, "at", -1),
        .size = etd_get_int(&f->body, "size", -1),
        .is_missing = etd_get_bool(&f->body, "missing", false),
    };
    if (out->file == ETD_PIECE_COUNT || rank < 0 || rank >= INT_MAX || out->at < 0 ||
        out->at > INT64_MAX - UINT32_MAX || out->size < 0 ||
        !etd_find(&f->body, "data", &data) || data.type != ETD_IS_BIN)
        return false;
    out->bytes = data.bytes;
    out->n = data.n;
    return true;
}
