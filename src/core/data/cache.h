/* SPDX-License-Identifier: Apache-2.0 */
/* cache.h: files that can be made again, under $ETUDE_CACHE_DIR, or
 * $XDG_CACHE_HOME/etude, or ~/.cache/etude. */
#ifndef ETI_DATA_CACHE_H
#define ETI_DATA_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "etude/ctx.h"

/* The folder, made where it was not there. False where there is no place for one. */
bool eti_cache_folder(char out[4096]);

/* Writes the contents to FD. */
typedef et_status eti_cache_make(struct et_ctx *cx, int fd, void *data);

/* Is what the file FD has still what is wanted? */
typedef bool eti_cache_fits(int fd, void *data);

/* Opens NAME of FOLDER, which is made, for reading, after MAKE wrote it where it was
 * not there or did not fit. It appears whole or not at all: others read it as soon as
 * it has its name, and a crash leaves none. Of processes that come at once one makes
 * it, and the others wait. EIO: the folder. The caller closes *FD. */
ET_NODISCARD et_status eti_cache_open_in(struct et_ctx *cx, const char *folder,
                                         const char *name, eti_cache_fits *fits,
                                         eti_cache_make *make, void *data, int *fd);
/* Is NAME of FOLDER there, and does it fit? Nothing is made, nobody waited for. */
bool eti_cache_has(const char *folder, const char *name, eti_cache_fits *fits,
                   void *data);
/* As eti_cache_open_in in the user's cache, for files that take no time to make: nobody
 * waits. It fits with SIZE bytes; -1: any size will do. EIO where there is no cache to
 * write in. */
ET_NODISCARD et_status eti_cache_open(struct et_ctx *cx, const char *name, int64_t size,
                                      eti_cache_make *make, void *data, int *fd);
/* The same in a file without a name, which ends when it is closed. */
ET_NODISCARD et_status eti_temporary_open(struct et_ctx *cx, eti_cache_make *make,
                                          void *data, int *fd);

#endif
