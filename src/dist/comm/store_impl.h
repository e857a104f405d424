/* SPDX-License-Identifier: Apache-2.0 */
/* store_impl.h: what store.c and store_serve.c share: the messages between them. */
#ifndef ETD_STORE_IMPL_H
#define ETD_STORE_IMPL_H

#include "dist/comm/store.h"

#define ETD_STORE_MAGIC "etude/r"

enum {
    ETD_STORE_VERSION = 1,
    ETD_STORE_PATIENCE = 3000, /* ms: for ranks to report, once one has */
};

enum etd_store_op {
    ETD_STORE_HELLO, /* value: struct etd_store_hello; answer: why not, or nothing */
    ETD_STORE_SET,
    ETD_STORE_GET,    /* answered when there is a value */
    ETD_STORE_REPORT, /* value: uint64_t; answer: a struct etd_report for each rank */
    ETD_STORE_WATCH,  /* answered when a rank is lost */
    ETD_STORE_BYE,    /* answered when all have said it, or are gone */
    ETD_STORE_ANSWER,
};

struct etd_store_head {
    uint32_t op; /* enum etd_store_op */
    uint32_t key_bytes, value_bytes;
};

struct etd_store_hello {
    char magic[8];
    int32_t version, rank, world;
    int32_t watches; /* 1: a second connection of the rank, to watch */
    uint8_t secret[ETD_STORE_SECRET];
};

/* Milliseconds that only grow. */
int64_t etd_store_clock(void);
/* A listening or connected socket at that address; -1, and *ERROR. */
int etd_store_socket(const char *host, int port, bool listens, int *error);

/* store_serve.c: the table and its thread. ENOTSUP, ENOMEM. */
struct etd_server;
ET_NODISCARD et_status etd_server_start(const struct etd_store_config *config,
                                        struct etd_server **out, char *why,
                                        size_t size);
/* PATIENT: stops when every rank has reported, said that it ends, or is gone, at most
 * ETD_STORE_PATIENCE after the first report: no rank is to take rank 0's end for the
 * cause of the failure. */
void etd_server_stop(struct etd_server **server, bool patient);

#endif
