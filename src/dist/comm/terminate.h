/* SPDX-License-Identifier: Apache-2.0 */
/* terminate.h: exceptions of C++ libraries that nobody catches. */
#ifndef ETD_TERMINATE_H
#define ETD_TERMINATE_H

#ifdef __cplusplus
extern "C" {
#endif

/* From now on F is called where a library has thrown std::bad_alloc and nobody caught
 * it, as where its constructors run while it is loaded: it ends the process, and if it
 * comes back the process aborts. F may do what signal handlers may. Without Gloo the
 * program has no C++ runtime, and nothing changes. */
void etd_on_bad_alloc(void (*f)(void));

#ifdef __cplusplus
}
#endif
#endif
