/* SPDX-License-Identifier: Apache-2.0 */
/* worker.h: a host's service, and how others ask it (RELIABILITY.md 1, 7.2 and 7.3).
 *
 * A worker listens at a socket of its user and, where it is told to, at a TCP address
 * behind keys. To whoever may connect it tells what runs there are, and passes on the
 * conversation with the hub of each; operators may also send it recipes, which it
 * starts as runs of its own user. It reads no recipe itself. */
#ifndef ETD_WORKER_H
#define ETD_WORKER_H

#include "dist/hub/client.h"
#include "dist/worker/host.h"
#include "dist/worker/session.h"

#define ETD_WORKER_SOCKET "_worker" /* a name that no run has */

struct etd_serve {
    const char *listen;       /* "tcp://ADDRESS:PORT"; NULL: this machine alone */
    const char *key;          /* path of curve.key, */
    const char *authorized;   /* of authorized_keys */
    const char *program;      /* this one */
    const char *folder;       /* for recipes that are sent */
    volatile const int *stop; /* ends when it is not 0 */
    /* Called once it listens: with the TCP address (NULL: none) and the fingerprint. */
    void (*ready)(void *data, const char *address, const char *fingerprint);
    void *data;
};
/* Serves until it is stopped. Fails as errors.h says. */
ET_NODISCARD et_status etd_worker_serve(struct et_ctx *cx, const struct etd_serve *o);

/* The other side of an ssh:// target: one conversation, each message behind its length,
 * on the descriptors IN and OUT. */
ET_NODISCARD et_status etd_worker_relay(struct et_ctx *cx, const char *program,
                                        const char *folder, int in, int out);

/* ---- asking: each connects, waits at most SECONDS, and closes ---- */

struct etd_worker_info {
    char name[256], version[64], role[16];
    int64_t cores, gpus;
    double rtt; /* seconds of a PING */
};
ET_NODISCARD et_status etd_worker_info(struct et_ctx *cx,
                                       const struct etd_channel_options *to,
                                       double seconds, struct etd_worker_info *out);
/* The same, and what it says of its machine, and how fast bytes come from there. */
struct etd_worker_test {
    struct etd_worker_info info;
    struct etd_host_facts host;
    double bandwidth; /* bytes a second */
};
ET_NODISCARD et_status etd_worker_test(struct et_ctx *cx,
                                       const struct etd_channel_options *to,
                                       double seconds, struct etd_worker_test *out);
struct json_t;
/* Facts of its runs, the newest first; the caller owns *OUT. */
ET_NODISCARD et_status etd_worker_runs(struct et_ctx *cx,
                                       const struct etd_channel_options *to,
                                       double seconds, struct json_t **out);
/* A recipe, as it is sent. All borrowed. */
struct etd_launch_there {
    const char *recipe; /* its text, */
    size_t bytes;       /* of it; with those of FILE at most ETD_RECIPE_BYTES */
    const struct etd_file_there {
        const char *path; /* beneath the recipe's folder, without ".." */
        const char *text;
        size_t bytes;
    } * file; /* [n_files], 64 at most: what it includes */
    int n_files;
    const char *name;        /* what it is called: a word; NULL: nothing */
    const char *const *args; /* [n]: key=value, or --alg=NAME and the like (start.c) */
    int n;
    int gpus; /* that there must be; 0: whatever */
};
/* Starts it, and asks again with the same id as long as nobody answers and there is
 * time: it is started once. OUT->kind is APPLIED, REJECTED or EXPIRED, its text what
 * `train` said there, its code that of `train`'s error. */
ET_NODISCARD et_status etd_worker_start(struct et_ctx *cx,
                                        const struct etd_channel_options *to,
                                        double seconds,
                                        const struct etd_launch_there *l,
                                        struct etd_answer *out);

#endif
