/* SPDX-License-Identifier: Apache-2.0 */
/* main.c: where the program begins. */
#include "config.h"

#include "cli/cli.h"
#include "core/base/seams.h"

int
main(int argc, char **argv)
{
    return cli_main(argc, argv, &eti_system);
}
