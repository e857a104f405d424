/* SPDX-License-Identifier: Apache-2.0 */
/* The reference in f32 against itself in f64: every case is legal, every result is
 * written, and the tolerances leave room for rounding alone. */
#include "kernels/ref/ref.h"
#include "t/kernels/cases.h"
#include "t/tap.h"

int
main(int argc, char **argv)
{
    const struct et_device_table *ref = etk_ref_device();
    struct et_device_handle *handle;
    char why[256] = "";
    if (ref->open(0, 1, &handle, why, sizeof why) != ET_OK)
        bail("%s", why);
    cases_run(ref, handle, ET_NONE, argc - 1, argv + 1);
    ref->close(handle);
    return done();
}
