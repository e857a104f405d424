/* SPDX-License-Identifier: Apache-2.0 */
/* rtc.h: kernels that are compiled at run time, with NVRTC.
 *
 * A text is compiled once per process and, kept on disk (cache.h), once per machine:
 * 50 to 100 ms each. NVRTC itself is loaded when the first text is not kept. */
#ifndef ETUDE_KERNELS_CUDA_RTC_H
#define ETUDE_KERNELS_CUDA_RTC_H

#include "kernels/cuda/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Does the device compile? ETUDE_RTC=0 in the environment turns it off, and 1 on, also
 * in the simulator, where it takes a second a kernel. */
bool etk_rtc_is_on(struct et_device_handle *d);

/* The kernel NAME of SOURCE, which has one kernel, extern "C". Valid until the device
 * is closed. ENOTSUP where NVRTC is missing or does not serve this GPU: something else
 * must do. EINTERNAL for a text that does not compile, with its first error as the
 * device's why. Not while a stream is captured. */
ET_NODISCARD et_status etk_rtc_get(struct et_device_handle *d, const char *source,
                                   const char *name, const void **kernel);

/* Machine code of SOURCE for compute capability ARCH (90: 9.0), without a device: *CODE
 * is freed by the caller. REPORT takes what the assembler says of registers and spills,
 * or the compiler of errors. */
ET_NODISCARD et_status etk_rtc_compile(const char *source, int arch, void **code,
                                       size_t *size, char *report, size_t report_size);

void etk_rtc_close(struct et_device_handle *d);

#ifdef __cplusplus
}
#endif
#endif
