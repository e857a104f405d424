/* SPDX-License-Identifier: Apache-2.0 */
/* host.h: what a worker says of its machine when it is tested. */
#ifndef ETD_HOST_H
#define ETD_HOST_H

#include "dist/wire/wire.h"

enum { ETD_HOST_GPUS = 16 };

struct etd_gpu {
    char name[64];
    double util;        /* 0 to 1; NaN, also below: not known */
    double used, total; /* bytes of its memory */
};

struct etd_host_facts {
    int64_t uptime;    /* seconds */
    int64_t disk_free; /* bytes where runs are kept */
    int64_t runs;      /* that go on */
    char run[64];      /* the newest of them; "" */
    char driver[32];   /* of the GPUs; "" */
    int n_gpus;        /* of which the following is known */
    struct etd_gpu gpu[ETD_HOST_GPUS];
};

/* The program that is asked for GPUs, and how; ends with NULL. (NVML in this process
 * would load the driver's libraries into what listens on a network.) */
extern const char *const etd_host_gpu_query[];
/* Reads its answer, a line for each GPU: "NAME, 88, 65536, 81920, 580.95", in percent
 * and MiB. Lines of other forms are passed over. */
void etd_host_read_gpus(const char *text, struct etd_host_facts *out);
/* What the system says: uptime and disk. */
void etd_host_look(struct etd_host_facts *out);

/* MACHINE in HEAD. Returns bytes; 0: no room. */
size_t etd_host_write(void *bytes, size_t room, const struct etd_head *head,
                      const struct etd_host_facts *h);
void etd_host_read(const struct etd_frame *f, struct etd_host_facts *out);

#endif
