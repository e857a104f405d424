/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU device against the reference. Arguments: ops to run; default all. */
#include "t/kernels/cases.h"
#include "t/kernels/module.h"
#include "t/tap.h"

int
main(int argc, char **argv)
{
    const struct et_device_table *cpu = open_module();
    if (!cpu)
        skip_all("libetude-cpu.so was not built");
    struct et_device_handle *handle;
    char why[256] = "";
    if (cpu->open(0, 1, &handle, why, sizeof why) != ET_OK)
        bail("%s", why);
    cases_run(cpu, handle, ET_NONE, argc - 1, argv + 1);
    cpu->close(handle);
    return done();
}
