/* SPDX-License-Identifier: Apache-2.0 */
/* driver.h: what must be there before the module of NVIDIA GPUs is loaded: a driver
 * with a GPU (private to src/core/graph). */
#ifndef ETI_GRAPH_DRIVER_H
#define ETI_GRAPH_DRIVER_H

#include <limits.h>
#include <stddef.h>

#include "etude/status.h"

/* Does NVIDIA's driver answer, with a GPU, and is it new enough? ENOENT: driver or GPU
 * is missing; ENOTSUP: both are there and cannot be used; why, in WHY. It takes 0.1 ms
 * where no driver is installed. */
ET_NODISCARD et_status eti_driver_probe(char *why, size_t why_size);
/* What it means that the driver answered CODE (a CUresult) to cuInit: one of these two.
 * NODES: where the system keeps the GPUs' files, "/dev". */
ET_NODISCARD et_status eti_driver_explain(int code, const char *nodes, char *why,
                                          size_t why_size);

#endif
