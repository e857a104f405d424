/* thread.h: threads beside the one that knows what to do about signals. */
#ifndef ETI_THREAD_H
#define ETI_THREAD_H

#include <pthread.h>

/* pthread_create, of a thread that takes no signals: all are blocked in it, and in those
 * that it begins. 0, or an errno; *THREAD is then not set. */
int eti_thread_begin(pthread_t *thread, void *(*run)(void *), void *data);

#endif
