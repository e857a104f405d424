/* SPDX-License-Identifier: Apache-2.0 */
/* piece.h: the files of a run, for viewers on other machines: a piece of one at a time,
 * in a FILE message. */
#ifndef ETD_PIECE_H
#define ETD_PIECE_H

#include "dist/wire/wire.h"

enum {
    ETD_PIECE_BYTES = 128 << 10, /* of one message, at most */
    ETD_PIECE_TAIL = 1 << 20,    /* from the end: where a piece AT -1 begins */
};

/* The word by which FILE names each, and its place in the run's directory. */
#define ETD_PIECE_MAP(X)                                                               \
    X(EVENTS, "events", "events.log")                                                  \
    X(RUN, "run", "run.json")                                                          \
    X(RECIPE, "recipe", "recipe.yaml")                                                 \
    X(RESOLVED, "resolved", "recipe.resolved.yaml")                                    \
    X(LOG, "log", "logs/rank%d.txt")

enum etd_piece_of {
#define ETD_PIECE_ENUM(code, word, path) ETD_PIECE_##code,
    ETD_PIECE_MAP(ETD_PIECE_ENUM)
#undef ETD_PIECE_ENUM
        ETD_PIECE_COUNT
};
const char *etd_piece_word(enum etd_piece_of file);
/* Where the file is in a run's directory: of RANK, for LOG. Returns BUF. */
const char *etd_piece_path(enum etd_piece_of file, int rank, char *buf, size_t size);
/* ETD_PIECE_COUNT: there is no such word. */
enum etd_piece_of etd_piece_find(const char *word);

/* Asks for a piece of FILE from byte AT on (-1: of its last MiB). Returns bytes of the
 * message; 0: no room. */
size_t etd_piece_ask(const struct etd_head *head, enum etd_piece_of file, int rank,
                     int64_t at, char *bytes, size_t room);
/* The answer to QUESTION about the run in DIRECTORY. A file that is not there, or is no
 * plain file, is answered with "missing". Links are not followed. */
size_t etd_piece_answer(const char *directory, const struct etd_head *head,
                        const struct etd_frame *question, char *bytes, size_t room);

struct etd_piece {
    enum etd_piece_of file;
    int rank;
    int64_t at, size; /* first byte of this piece; of the file then */
    bool is_missing;  /* there is no such file */
    const char *bytes;
    size_t n; /* 0: AT is its end */
};
/* Reads an answer, whose bytes are borrowed from the frame. False: it is malformed. */
bool etd_piece_read(const struct etd_frame *f, struct etd_piece *out);

#endif
