/* thread.c: see thread.h. */
#include "config.h"

#include <signal.h>

#include "core/base/thread.h"

int
eti_thread_begin(pthread_t *thread, void *(*run)(void *), void *data)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, NULL, run, data);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}
