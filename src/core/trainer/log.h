/* SPDX-License-Identifier: Apache-2.0 */
/* log.h: the numbers of a record, which another's can take the place of (log.c). */
#ifndef ETI_TRAINER_LOG_H
#define ETI_TRAINER_LOG_H

#include "etude/logger.h"

struct eti_book;
ET_NODISCARD et_status eti_book_new(struct et_ctx *cx, struct eti_book **out);
void eti_book_free(struct eti_book **book);
void eti_book_clear(struct eti_book *book);
/* LOG goes on with *BOOK, and *BOOK becomes what it had. */
void eti_log_swap(struct et_log *log, struct eti_book **book);

#endif
