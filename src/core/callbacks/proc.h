/* SPDX-License-Identifier: Apache-2.0 */
/* proc.h: what Linux says of the machine, in the text of /proc. Pure functions of
 * text. */
#ifndef ETI_CALLBACKS_PROC_H
#define ETI_CALLBACKS_PROC_H

#include <stdbool.h>

/* /proc/stat: jiffies of all processors together since the start; false: it is none.
 * Waiting for a disk is idleness. */
bool eti_proc_cpu(const char *text, double *busy, double *total);
/* What part of TOTAL jiffies BUSY ones are, from 0 to 1, of two answers' differences.
 * (Of the time waited for disks proc(5) says that it may decrease: then more were busy
 * than there were.) 0: no time has passed. */
double eti_proc_part(double busy, double total);
/* /proc/meminfo: the bytes of the line that begins with KEY and a colon; 0: none
 * does. */
double eti_proc_memory(const char *text, const char *key);
/* /proc/loadavg: over 1, 5 and 15 minutes. */
bool eti_proc_load(const char *text, double out[3]);

enum {
    ETI_NET_BYTES_RECV,
    ETI_NET_PACKETS_RECV,
    ETI_NET_ERRIN,
    ETI_NET_DROPIN,
    ETI_NET_BYTES_SENT,
    ETI_NET_PACKETS_SENT,
    ETI_NET_ERROUT,
    ETI_NET_DROPOUT,
    ETI_NET_COUNTERS
};
/* /proc/net/dev: sums over all interfaces, or, without LOOPBACK, over those that lead
 * to other machines. */
void eti_proc_network(const char *text, bool loopback, double out[ETI_NET_COUNTERS]);

#endif
