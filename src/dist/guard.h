/* guard.h: keeps a process that serves. */
#ifndef ETD_GUARD_H
#define ETD_GUARD_H

#include <stdbool.h>

#include "etude/ctx.h"

/* Forks: a child serves, and the caller becomes its guard. Ended by a signal, as by a
 * failed assertion of a library, the child is made again, after 1 s, and after twice as
 * long, up to 16 s, where it has lived for less than a minute. Returns true in each
 * child. In the guard it returns false once a child has ended by itself, or after
 * *STOP: *CODE is its exit status then. A child does not outlive its guard. Where no
 * process can be made, the caller itself serves. */
bool etd_guard(struct et_ctx *cx, volatile const int *stop, int *code);

#endif
