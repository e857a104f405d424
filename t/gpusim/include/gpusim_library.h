/* SPDX-License-Identifier: Apache-2.0 */
/* gpusim_library.h: kernels in libraries that are loaded from memory. Included by
 * cuda_runtime_api.h. */
#ifndef ETUDE_GPUSIM_LIBRARY_H
#define ETUDE_GPUSIM_LIBRARY_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpusim_library *cudaLibrary_t;
typedef struct gpusim_function *cudaKernel_t; /* the function's address */
enum cudaJitOption { cudaJitMaxRegisters = 0 };
enum cudaLibraryOption { cudaLibraryBinaryIsPreserved = 1 };

/* CODE: a shared object, what nvrtcGetCUBIN gives. */
cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code,
                                enum cudaJitOption *jit, void **jit_values,
                                unsigned n_jit, enum cudaLibraryOption *option,
                                void **values, unsigned n);
cudaError_t cudaLibraryUnload(cudaLibrary_t library);
/* NAME of a function that is extern "C". cudaErrorSymbolNotFound: there is none. */
cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library,
                                 const char *name);

#ifdef __cplusplus
}
#endif
#endif
