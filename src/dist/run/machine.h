/* SPDX-License-Identifier: Apache-2.0 */
/* machine.h: what a rank's process, its machine and its GPU use, for its health.
 *
 *     cpu_util                 processors' time of the process, of all cores: 0 to 1
 *     cpu_s                    processors' time of the process since it began, seconds
 *     rss_gb                   its memory, 1e9 bytes
 *     read_mb_s, write_mb_s    1e6 bytes a second that it read from and wrote to disks
 *     net_mb_s                 of the machine, both ways, the loopback left out
 *     host_cpu                 busy time of the machine's processors: 0 to 1
 *     ram_gb, ram_total_gb     memory of the machine: what is not available; all of it
 *     host_power_w             watts of its processors, from RAPL's counters
 *     gpu_util, mem_gb, mem_total_gb, temp_c, power_w, sm_mhz    of the rank's GPU
 *
 * The numbers of the host are said by the first rank of each machine. What the system
 * does not say, or not to us (RAPL's counters are root's on most), is left out. */
#ifndef ETD_MACHINE_H
#define ETD_MACHINE_H

#include "etude/logger.h"
#include "etude/state.h"

enum { ETD_MACHINE_NUMBERS = 16, ETD_GPU_NUMBERS = 6 };

struct etd_machine {
    bool is_first; /* of the ranks of its machine */
    int cores;
    double at; /* monotonic: when the counters below were read */
    double cpu, read, written, net, joules; /* counters; NaN: not counted here */
    double busy, jiffies;                   /* of the machine's processors */
    /* Written by the training thread, which alone may ask the device. */
    _Atomic double gpu[ETD_GPU_NUMBERS]; /* NaN: not known */
    double gpu_at;                       /* monotonic: the next time */
    bool no_gpu;                         /* it has no sensors, or they have failed */
};

/* Begins to count at NOW, in monotonic seconds. */
void etd_machine_start(struct etd_machine *m, bool is_first, double now);
/* Seconds in all that the thread TID of this process was ready to run and did not get a
 * processor; NaN: the system does not say. */
double etd_machine_queued(int tid);
/* Bytes of memory that this process holds; 0: the system does not say. */
int64_t etd_machine_resident(void);
/* Adds up to ETD_MACHINE_NUMBERS to ENTRY; returns how many. Rates are since the last
 * call, or the start. On one thread, which need not be the training thread. */
int etd_machine_read(struct etd_machine *m, double now, struct et_log_entry *entry);
/* On the training thread: reads the sensors of its device, at most once a second, as
 * that takes some milliseconds. */
void etd_machine_ask_gpu(struct etd_machine *m, const struct et_state *state,
                         double now);

#endif
