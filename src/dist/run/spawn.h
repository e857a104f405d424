/* SPDX-License-Identifier: Apache-2.0 */
/* spawn.h: any program as ranks, without a supervisor: `etude launch`. */
#ifndef ETD_SPAWN_H
#define ETD_SPAWN_H

#include "dist/run/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the ranks came to. */
struct etd_spawned {
    int rank;   /* the first that failed; -1: none did */
    int exit;   /* its exit code, or 128 and the signal that ended it; else 0 */
    int signal; /* that signal; 0: none */
    bool late;  /* others had to be ended */
};

/* Runs ARGV, a program and its arguments, as L->nproc processes with the environment of
 * ranks (rank_env.h), and waits for all of them. Of L: nproc, world, base, node, host,
 * port. TIMEOUT_S: what a collective may take; 0: as the environment says. Once a rank
 * has failed the others have ten seconds to find that out, and are ended then; SIGINT,
 * SIGTERM and SIGHUP are passed on, and a second one ends them at once. ENOENT, EIO:
 * the program cannot be started. */
ET_NODISCARD et_status etd_spawn(struct et_ctx *cx, const struct etd_launch *l,
                                 int timeout_s, char *const *argv,
                                 struct etd_spawned *out);

#ifdef __cplusplus
}
#endif
#endif
