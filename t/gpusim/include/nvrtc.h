/* SPDX-License-Identifier: Apache-2.0 */
/* nvrtc.h: NVRTC's interface on the simulator, as far as it is used: the host's C++
 * compiler stands for it. Result codes and signatures are those of CUDA 13.0's
 * nvrtc.h. */
#ifndef ETUDE_GPUSIM_NVRTC_H
#define ETUDE_GPUSIM_NVRTC_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    NVRTC_SUCCESS = 0,
    NVRTC_ERROR_OUT_OF_MEMORY = 1,
    NVRTC_ERROR_PROGRAM_CREATION_FAILURE = 2,
    NVRTC_ERROR_INVALID_INPUT = 3,
    NVRTC_ERROR_INVALID_PROGRAM = 4,
    NVRTC_ERROR_INVALID_OPTION = 5,
    NVRTC_ERROR_COMPILATION = 6,
    NVRTC_ERROR_BUILTIN_OPERATION_FAILURE = 7
} nvrtcResult;

typedef struct gpusim_program *nvrtcProgram;

/* The one architecture is the simulated device's. */
nvrtcResult nvrtcGetNumSupportedArchs(int *n);
nvrtcResult nvrtcGetSupportedArchs(int *archs);
nvrtcResult nvrtcCreateProgram(nvrtcProgram *program, const char *source,
                               const char *name, int n_headers,
                               const char *const *headers, const char *const *names);
nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program);
/* Options are not looked at: the compiler's own are those that give CUDA's numbers. */
nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int n_options,
                                const char *const *options);
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *size);
nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *code);
nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t *size);
nvrtcResult nvrtcGetPTX(nvrtcProgram program, char *code);
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *size);
nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *log);

#ifdef __cplusplus
}
#endif
#endif
