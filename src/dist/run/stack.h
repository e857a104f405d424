/* SPDX-License-Identifier: Apache-2.0 */
/* stack.h: where a rank stands when it crashes, or does not go on: written by the rank
 * itself into memory that its supervisor holds as well. */
#ifndef ETD_STACK_H
#define ETD_STACK_H

/* Such memory, as a file of a name that nobody sees; -1: it could not be had. */
int etd_stack_file(void);
/* From now on this process writes its stack into FD when a signal would end it with a
 * core dump. A handler that was set before is called next. */
void etd_stack_begin(int fd);

#endif
