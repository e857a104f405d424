/* cache.h: files that can be made again, under $XDG_CACHE_HOME/etude. */
#ifndef ETI_DATA_CACHE_H
#define ETI_DATA_CACHE_H

#include "etude/ctx.h"

/* Writes the contents to FD. */
typedef et_status eti_cache_make(struct et_ctx *cx, int fd, void *data);

/* Opens NAME for reading, after MAKE wrote it where it was not there. It appears whole
 * or not at all: others read it as soon as it has its name. Where the cache cannot be
 * written a nameless temporary file serves. The caller closes *FD. */
ET_NODISCARD et_status eti_cache_open(struct et_ctx *cx, const char *name,
                                      eti_cache_make *make, void *data, int *fd);

#endif
