/* SPDX-License-Identifier: Apache-2.0 */
/* thread.h: threads beside the one that knows what to do about signals. */
#ifndef ETI_THREAD_H
#define ETI_THREAD_H

#include <pthread.h>
#include <stdint.h>

/* pthread_create, of a thread that takes no signals: all are blocked in it, and in
 * those that it begins. 0, or an errno; *THREAD is then not set. */
int eti_thread_begin(pthread_t *thread, void *(*run)(void *), void *data);

/* The processors that this process may use, or OMP_NUM_THREADS where that is set: as
 * many threads as the CPU device has when nobody chooses. */
int eti_thread_count(void);

/* RUN computes elements FIRST .. END - 1 of something, for whoever gave DATA. */
typedef void eti_part_fn(void *data, int64_t first, int64_t end);
/* Calls RUN for all of 0 .. N - 1, in parts that begin at multiples of LOT, on THREADS
 * threads, this one among them, and returns when all have. What no thread could be
 * begun for is done here. */
void eti_thread_split(int threads, int64_t n, int64_t lot, eti_part_fn *run,
                      void *data);

#endif
