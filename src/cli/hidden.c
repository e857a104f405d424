/* SPDX-License-Identifier: Apache-2.0 */
/* hidden.c: commands that the program gives itself, in other processes of a run. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "dist/hub/hub.h"
#include "dist/wire/endpoint.h"
#include "dist/worker/worker.h"

/* Those of a terminal, or of a viewer, that is gone: what was begun is finished. */
static void
ignore_signals(void)
{
    static const int ignored[] = {SIGINT, SIGHUP, SIGQUIT, SIGPIPE};
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
        sigaction(ignored[i], &ignore, NULL);
}

/* `__hub RUN_DIRECTORY`: ends when the supervisor, on fd 3, says so or is gone; what is
 * pressed at a terminal is not for it. */
static int
hub(struct cli *c, const char *directory)
{
    ignore_signals();
    et_status status = etd_hub_run(c->cx, directory, ETD_HUB_FD);
    return status == ET_OK ? CLI_OK : cli_fail_status(c, ETI_STAGE_OUTPUT, status);
}

/* `__relay`, on the other side of ssh. */
static int
relay(struct cli *c)
{
    char folder[PATH_MAX];
    ignore_signals();
    et_status status = etd_worker_relay(c->cx, "/proc/self/exe",
                                        etd_endpoint_folder(folder, sizeof folder),
                                        STDIN_FILENO, STDOUT_FILENO);
    return status == ET_OK ? CLI_OK : cli_fail_status(c, ETI_STAGE_OUTPUT, status);
}

bool
cli_hidden(struct cli *c, int argc, char **argv, int *exit)
{
    bool is_hub = argc == 3 && strcmp(argv[1], ETD_HUB_COMMAND) == 0;
    if (!is_hub && (argc != 2 || strcmp(argv[1], ETD_RELAY_COMMAND) != 0))
        return false;
    et_ctx_set_log(c->cx, ET_LOG_WARN, cli_log, c);
    *exit = is_hub ? hub(c, argv[2]) : relay(c);
    return true;
}
