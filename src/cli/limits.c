/* SPDX-License-Identifier: Apache-2.0 */
/* limits.c: limits of the system that a run needs, checked before anything is made. */
#include "config.h"

#include <sys/resource.h>

#include "cli/cli.h"

/* A run with every logger, a folder of data and a checkpoint being written has about 30
 * files open; libraries that it loads, a few for moments. */
enum { FILES = 64 };

/* As many open files as a run needs: raised where the user may, as the lower of the two
 * limits is but a default. */
int
cli_check_limits(struct cli *c)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= FILES)
        return CLI_OK;
    files.rlim_cur = files.rlim_max < FILES ? files.rlim_max : FILES;
    if (files.rlim_cur == FILES && setrlimit(RLIMIT_NOFILE, &files) == 0)
        return CLI_OK;
    return cli_fail(c, (enum cli_error)ET_E_SYSTEM_LIMIT,
                    "ulimit -Hn shows how far you may raise it",
                    "fd limit %llu, need %d (ulimit -n)",
                    (unsigned long long)files.rlim_cur, FILES);
}
