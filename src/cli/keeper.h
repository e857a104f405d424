/* SPDX-License-Identifier: Apache-2.0 */
/* keeper.h: keeps a process that serves. */
#ifndef CLI_KEEPER_H
#define CLI_KEEPER_H

#include <stdbool.h>

#include "etude/ctx.h"

/* Forks: a child serves, and the caller becomes its keeper. Ended by a signal, as by a
 * failed assertion of a library, the child is made again, after 1 s, and after twice as
 * long, up to 16 s, where it has lived for less than a minute. Returns true in each
 * child. In the keeper it returns false once a child has ended by itself, or after
 * *STOP: *CODE is its exit status then. A child does not outlive its keeper. Where no
 * process can be made, the caller itself serves. */
bool cli_keep(struct et_ctx *cx, volatile const int *stop, int *code);

#endif
