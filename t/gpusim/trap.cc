/* SPDX-License-Identifier: Apache-2.0 */
/* trap.cc: says what a fault of the processor means here, before the process dies of
 * it. Left out where somebody else handles these signals (AddressSanitizer). */
#include <signal.h>

#include <cstdio>

#include "state.h"

static void
explain(int signal, siginfo_t *info, void *)
{
    /* (What is called here may not be called from a handler in general. The process
     * ends in any case, and a line that is sometimes lost is better than none.) */
    std::string who = gpusim_running();
    const void *at = info->si_addr;
    if (who.empty() && gpusim_is_device_address(at))
        fprintf(stderr, "gpusim: the host touched device memory at %p\n", at);
    else if (!who.empty() && signal == SIGILL)
        fprintf(stderr, "gpusim: %s took an address that is not aligned\n",
                who.c_str());
    else if (!who.empty())
        fprintf(stderr, "gpusim: %s touched %p, which it may not\n", who.c_str(), at);
    /* The instruction is tried again, and meets the default. */
    struct sigaction plain = {};
    plain.sa_handler = SIG_DFL;
    sigaction(signal, &plain, nullptr);
}

void
gpusim_explain_traps(void)
{
    for (int signal : {SIGSEGV, SIGBUS, SIGILL}) {
        struct sigaction old, ours = {};
        ours.sa_sigaction = explain;
        ours.sa_flags = SA_SIGINFO;
        if (sigaction(signal, nullptr, &old) == 0 && !(old.sa_flags & SA_SIGINFO) &&
            old.sa_handler == SIG_DFL)
            sigaction(signal, &ours, nullptr);
    }
}
