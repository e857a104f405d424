/* SPDX-License-Identifier: Apache-2.0 */
/* Special values, and sizes one less and one more than a tile, for every op (edges.h):
 * the reference in f32 against itself in f64, and the CPU device against the reference;
 * with ETUDE_DEVICE that device alone. Arguments: ops to run; default all. */
#include "kernels/ref/ref.h"
#include "t/kernels/cases.h"
#include "t/kernels/module.h"
#include "t/tap.h"

/* Three threads share the work of what is large: parts of unequal size, more than two
 * of them. */
enum { THREADS = 3 };

static void
run(const struct et_device_table *table, int threads, int n, char **only)
{
    struct et_device_handle *handle;
    char why[256] = "";
    if (table->open(0, threads, &handle, why, sizeof why) != ET_OK)
        bail("%s", why);
    diag("device %s", table->name);
    edges_run(table, handle, ET_NONE, n, only);
    table->close(handle);
}

int
main(int argc, char **argv)
{
    const char *name = getenv("ETUDE_DEVICE");
    if (name) {
        run(open_asked(name), 0, argc - 1, argv + 1);
        return done();
    }
    run(etk_ref_device(), 1, argc - 1, argv + 1);
    const struct et_device_table *cpu = open_module();
    if (cpu)
        run(cpu, THREADS, argc - 1, argv + 1);
    else
        skip(1, "libetude-cpu.so was not built");
    return done();
}
