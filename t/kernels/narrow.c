/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU device on bf16 and f16 against the reference, in every op's cases: operands
 * as those formats hold them, sums in f32, results rounded once. Arguments: ops to run;
 * default all. */
#include "etude/attr.h"
#include "t/kernels/cases.h"
#include "t/kernels/module.h"
#include "t/tap.h"

/* The workspace of attention, or its gradient, with operands of DTYPE, in bytes. */
static size_t
workspace_of_attention(const struct et_device_table *cpu,
                       struct et_device_handle *handle, bool grad, enum et_dtype dtype)
{
    const int64_t plane[] = {2, 3, 40, 24};
    const struct et_sdpa_attr attr = {.scale = 0.2, .causal = true};
    struct et_desc x, lse, in[7] = {{0}}, out[3];
    struct et_kernel *kernel;
    char why[256] = "";
    size_t bytes;
    et_desc_init(&x, dtype, 4, plane, ET_ROW_MAJOR);
    et_desc_init(&lse, ET_F32, 3, plane, ET_ROW_MAJOR);
    for (int i = 0; i < 5; i++)
        in[i] = x;
    out[0] = out[1] = out[2] = x;
    in[5] = lse;
    if (!grad) {
        in[3] = (struct et_desc){0};
        out[1] = lse;
    }
    const struct et_call call = {
        .op = grad ? ET_OP_sdpa_grad : ET_OP_sdpa,
        .n_in = grad ? 7 : 4,
        .n_out = grad ? 3 : 2,
        .attr = &attr,
        .attr_size = sizeof attr,
        .in = in,
        .out = out,
    };
    if (cpu->prepare(handle, &call, &kernel, &bytes, why, sizeof why) != ET_OK)
        bail("%s", why);
    cpu->release(kernel);
    return bytes;
}

static void
check_attention_needs_no_copies(const struct et_device_table *cpu,
                                struct et_device_handle *handle, enum et_dtype dtype)
{
    for (int grad = 0; grad < 2; grad++)
        ok(workspace_of_attention(cpu, handle, grad, dtype) <=
               workspace_of_attention(cpu, handle, grad, ET_F32),
           "%s in %s reads and writes it where it lies: no copy in f32",
           grad ? "attention's gradient" : "attention", et_dtype_name(dtype));
}

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
    cases_run(cpu, handle, ET_BF16, argc - 1, argv + 1);
    cases_run(cpu, handle, ET_F16, argc - 1, argv + 1);
    check_attention_needs_no_copies(cpu, handle, ET_BF16);
    check_attention_needs_no_copies(cpu, handle, ET_F16);
    cpu->close(handle);
    return done();
}
