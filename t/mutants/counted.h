/* SPDX-License-Identifier: Apache-2.0 */
/* What lines.pl puts in front of every source, with _exit defined to be etc_exit:
 * counters are written when a process ends by exit, and forked ones mostly end without
 * it. */
#ifndef T_MUTANTS_COUNTED_H
#define T_MUTANTS_COUNTED_H

#include <sys/syscall.h> /* macros alone: what config.h asks for comes later */

#ifdef __cplusplus
extern "C" {
#define ETC_QUIET noexcept /* as the header of libc has it */
#else
#define ETC_QUIET
#endif
void __gcov_dump(void);
long syscall(long number, ...) ETC_QUIET;

__attribute__((noreturn)) void etc_exit(int code);

__attribute__((weak, noreturn)) void
etc_exit(int code)
{
    __gcov_dump();
    for (;;)
        syscall(SYS_exit_group, (long)code);
}
#ifdef __cplusplus
}
#endif

#endif
