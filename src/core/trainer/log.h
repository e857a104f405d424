/* SPDX-License-Identifier: Apache-2.0 */
/* log.h: the numbers of a record, which another's can take the place of (log.c). */
#ifndef ETI_TRAINER_LOG_H
#define ETI_TRAINER_LOG_H

#include "etude/logger.h"

/* A picture that was written of the step: PATH is its file, a PNG. */
struct eti_logged_picture {
    char tag[ET_METRIC_NAME]; /* "images/train" */
    char path[4096];
    int64_t width, height;
};
enum { ETI_PICTURES = 4 }; /* of a record; there are no more */
/* Adds one to the record under way. */
void eti_log_picture(struct et_log *log, const char *tag, const char *path,
                     int64_t width, int64_t height);
/* Those so far; borrowed until the next call. */
const struct eti_logged_picture *eti_log_pictures(const struct et_log *log, int *n);

/* A text that is more than a line of the log: what a model has written. */
struct eti_passage {
    char tag[ET_METRIC_NAME];
    char text[4096]; /* cut where it is longer */
};
enum { ETI_PASSAGES = 2 };
void eti_log_passage(struct et_log *log, const char *tag, const char *text);
const struct eti_passage *eti_log_passages(const struct et_log *log, int *n);

struct eti_book;
ET_NODISCARD et_status eti_book_new(struct et_ctx *cx, struct eti_book **out);
void eti_book_free(struct eti_book **book);
void eti_book_clear(struct eti_book *book);
/* LOG goes on with *BOOK, and *BOOK becomes what it had. */
void eti_log_swap(struct et_log *log, struct eti_book **book);

#endif
