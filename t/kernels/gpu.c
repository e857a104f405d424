/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA module's kernels against the reference: on the simulator, or on the GPU with
 * ETUDE_DEVICE=cuda. Arguments: f32, bf16 or f16, what stands for f32 (default: each in
 * turn); ops to run (default: all). --list prints the names of all and runs nothing.
 *
 * Each takes a minute of the simulator. There f16, whose kernels differ from bf16's by
 * how a number becomes f32 and back, has its turn where it is named, or with
 * ETUDE_LONG. */
#include <stdlib.h>
#include <string.h>

#include "t/kernels/cases.h"
#include "t/kernels/module.h"
#include "t/tap.h"

static const enum et_dtype dtypes[] = {ET_F32, ET_BF16, ET_F16};
/* Ops that are computed otherwise in deterministic mode. */
static char *const otherwise[] = {"sdpa_grad"};
enum { OTHERWISE = sizeof otherwise / sizeof otherwise[0] };

/* Those of them that are among the N ops named; all where none is. */
static void
run_deterministic(const struct et_device_table *gpu, struct et_device_handle *handle,
                  int n, char **named)
{
    if (gpu->set && gpu->set(handle, ET_DEVICE_DETERMINISTIC, 1) != ET_OK)
        bail("no deterministic mode");
    diag("in deterministic mode:");
    for (int i = 0; i < OTHERWISE; i++) {
        bool wanted = n == 0;
        for (int k = 0; k < n; k++)
            wanted |= strcmp(named[k], otherwise[i]) == 0;
        if (wanted)
            cases_run(gpu, handle, ET_BF16, 1, &otherwise[i]);
    }
}

int
main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        cases_list();
        return 0;
    }
    const char *name = getenv("ETUDE_DEVICE");
    const struct et_device_table *gpu = open_asked(name ? name : "gpusim");
    struct et_device_handle *handle;
    char why[256] = "";
    if (gpu->open(0, 0, &handle, why, sizeof why) != ET_OK)
        skip_all(why);
    int first = 1;
    const char *only = argc > 1 ? argv[1] : "";
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        first = strcmp(only, et_dtype_name(dtypes[i])) == 0 ? 2 : first;
    const bool simulated = !name || strcmp(name, "gpusim") == 0;
    const size_t n = simulated && first == 1 && !getenv("ETUDE_LONG")
                         ? 2
                         : sizeof dtypes / sizeof dtypes[0];
    for (size_t i = 0; i < n; i++)
        if (first == 1 || strcmp(only, et_dtype_name(dtypes[i])) == 0)
            cases_run(gpu, handle, dtypes[i] == ET_F32 ? ET_NONE : dtypes[i],
                      argc - first, argv + first);
    run_deterministic(gpu, handle, argc - first, argv + first);
    gpu->close(handle);
    return done();
}
