/* SPDX-License-Identifier: Apache-2.0 */
/* Update rules on gradients that change sign and fall, against the numbers of
 * torch.optim and of the papers (t/golden/updates.txt), on the reference and the
 * CPU. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "t/tap.h"
#include "t/unit/rig.h"

/* Parameters are below 4 and 20 updates are some 60 roundings of them, which mostly
 * cancel: PyTorch's own f32 is up to 4.1e-7 off. A rule that differs in a coefficient
 * is off by a good part of a step, 1e-4 and more. */
static const double ROUNDED = 2e-6;

enum { STEPS = 20, CASES = 19 };

static struct et_ctx *cx;
static struct et_device *dev;
static struct et_param_spec specs[2];

/* make_updates.py's gradients of update K, which counts from 0. */
static void
make_gradients(int k, float (*grad)[RIG_MOST], const struct rig *r)
{
    for (int i = 0; i < r->space->n; i++) {
        int64_t n = r->space->slot[i].count;
        rig_values((uint32_t)(100 * (k + 1) + i), n, grad[i]);
        for (int64_t j = 0; j < n; j++)
            grad[i][j] = ldexpf(grad[i][j], -(k / 4));
    }
}

/* TEXT: the optimizer's name, then its options. */
static void
compare_case(FILE *f, const char *text)
{
    char name[32];
    struct rig r;
    size_t n = strcspn(text, " ");
    snprintf(name, sizeof name, "%.*s", (int)n, text);
    rig_begin(&r, cx, dev, name, text + n + 1, specs, 2);
    for (int k = 0; k < STEPS; k++) {
        float grad[2][RIG_MOST];
        et_optimizer_set_alpha(r.opt, k < STEPS / 2 ? 1 : 1.0 / 3);
        make_gradients(k, grad, &r);
        rig_step(&r, grad);
    }
    rig_compare(&r, specs, f, ROUNDED, text);
    rig_end(&r);
}

static void
on_device(const char *name)
{
    diag("on %s", name);
    is_int(rig_cases("updates.txt", compare_case), CASES,
           "every case of updates.txt was compared");
    et_device_close(&dev);
}

/* Each optimizer has a case, or a test of its own. */
static void
none_is_left_out(void)
{
    char line[256];
    int n;
    const struct et_optimizer_class *const *all = et_optimizer_list(&n);
    for (int i = 0; i < n; i++) {
        FILE *f = rig_golden("updates.txt");
        const char *name = all[i]->info.name;
        bool found = strcmp(name, "muon") == 0; /* t/unit/muon.c */
        while (!found && fgets(line, sizeof line, f))
            found = strncmp(line, "case ", 5) == 0 &&
                    strncmp(line + 5, name, strlen(name)) == 0 &&
                    line[5 + strlen(name)] == ' ';
        fclose(f);
        ok(found, "%s is compared", name);
    }
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK || et_device_open(cx, "ref", 0, 0, &dev) != ET_OK)
        bail("no reference device");
    specs[0] = rig_spec("matrix", ET_ROLE_MATRIX, 2, (const int64_t[]){6, 4});
    specs[1] = rig_spec("bias", ET_ROLE_OTHER, 1, (const int64_t[]){5});
    on_device("ref");
    if (et_device_open(cx, "cpu", 0, 1, &dev) == ET_OK)
        on_device("cpu");
    else
        skip(1, et_error_get(cx)->message);
    none_is_left_out();
    et_error_clear(cx);
    et_ctx_free(&cx);
    return done();
}
