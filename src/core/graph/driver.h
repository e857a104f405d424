/* driver.h: what must be there before the module of NVIDIA GPUs can be loaded: a driver
 * with a GPU, and CUDA's libraries (private to src/core/graph). */
#ifndef ETI_GRAPH_DRIVER_H
#define ETI_GRAPH_DRIVER_H

#include <limits.h>
#include <stddef.h>

#include "etude/status.h"

/* Does NVIDIA's driver answer, with a GPU, and is it new enough? ENOENT: there is none;
 * ENOTSUP: there is, and it cannot be used; why, in WHY. 0.1 ms where there is none. */
et_status eti_driver_probe(char *why, size_t why_size);
/* What it means that the driver answered CODE (a CUresult) to cuInit: one of these two.
 * NODES: where the system keeps the GPUs' files, "/dev". */
et_status eti_driver_explain(int code, const char *nodes, char *why, size_t why_size);

/* The module's libraries in FOLDER, those first that others need. PATH is called with
 * each; FOLDER may have wildcards of glob(7). Returns how many there were. */
int eti_driver_find_libraries(const char *folder,
                              void (*path)(void *data, const char *path), void *data);
/* Loads those in ETUDE_CUDA_LIBS, or those that Python's packages brought: the module's
 * loader then takes them by their names. ENOTSUP: a library of ETUDE_CUDA_LIBS that
 * cannot be loaded, or a folder without any. */
et_status eti_driver_use_given(char *why, size_t why_size);
/* Returns how many were loaded. */
int eti_driver_use_pythons(void);

#endif
