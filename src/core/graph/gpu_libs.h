/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_libs.h: loading the module of NVIDIA GPUs, and CUDA's libraries for it, from
 * where people have them (core's own). */
#ifndef ETI_GRAPH_GPU_LIBS_H
#define ETI_GRAPH_GPU_LIBS_H

#include <stddef.h>

#include "etude/status.h"

/* Loads what the folders in ETUDE_CUDA_LIBS have of CUDA's libraries; they are then
 * taken wherever somebody asks for them by name. ENOTSUP, with the reason in WHY: one
 * of them cannot be loaded, or no folder has any. */
ET_NODISCARD et_status eti_gpu_libs_use_given(char *why, size_t why_size);

/* Loads MODULE, a file that is linked to CUDA's libraries, and NVRTC if it is found.
 * Libraries that the system's loader does not find are taken from toolkits, Python's
 * packages and conda's; ROOT stands before /usr there: "", or a test's folder. ENOTSUP,
 * with the library, and packages that have it, in WHY. *OUT is never closed. */
ET_NODISCARD et_status eti_gpu_libs_load(const char *root, const char *module,
                                         void **out, char *why, size_t why_size);

/* Loads NVRTC and its built-in functions from where CUDA's runtime was found, or the
 * loader finds them, or the places below ROOT have them. NVRTC opens its built-in
 * functions by name: outside of the system's folders it would not find them, and cuDNN
 * would have no engine for attention. What is missing is no error here. */
void eti_gpu_libs_use_rtc(const char *root);

/* Calls EACH with the name and the file of each of CUDA's libraries that is loaded. */
void eti_gpu_libs_each(void (*each)(void *data, const char *name, const char *path),
                       void *data);

#endif
