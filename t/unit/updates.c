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

/* The weights after four steps of NAME with the options TEXT, by gradients so small
 * that what is added to a denominator counts. */
static void
go_down(const char *name, const char *text, float (*out)[RIG_MOST])
{
    struct rig r;
    rig_begin(&r, cx, dev, name, text, specs, 2);
    for (int k = 0; k < 4; k++) {
        float grad[2][RIG_MOST];
        make_gradients(k, grad, &r);
        for (int i = 0; i < 2; i++)
            for (int64_t j = 0; j < r.space->slot[i].count; j++)
                grad[i][j] = ldexpf(grad[i][j], -26);
        rig_step(&r, grad);
    }
    for (int i = 0; i < 2; i++)
        rig_get(&r, i, out[i]);
    rig_end(&r);
}

/* What an optimizer does with no options is what it does with those that its source
 * has. */
static void
defaults(void)
{
    static const struct {
        const char *name, *given, *text;
    } rows[] = {
        {"sgd", "lr=.1", "momentum=0 dampening=0 nesterov=false weight_decay=0 lr=.1"},
        {"decoupled_sgdw", "lr=.1",
         "momentum=0 dampening=0 nesterov=false weight_decay=0 lr=.1"},
        {"adam", "", "lr=1e-3 betas=[.9,.999] eps=1e-8 weight_decay=0 amsgrad=false"},
        {"adamw", "",
         "lr=1e-3 betas=[.9,.999] eps=1e-8 weight_decay=.01 amsgrad=false"},
        {"decoupled_adamw", "",
         "lr=1e-3 betas=[.9,.95] eps=1e-8 weight_decay=1e-5 amsgrad=false"},
        {"radam", "", "lr=1e-3 betas=[.9,.999] eps=1e-8 weight_decay=0"},
        {"lamb", "", "lr=1e-3 betas=[.9,.999] eps=1e-6 weight_decay=0"},
        {"lion", "", "lr=1e-4 betas=[.9,.99] weight_decay=0"},
        {"rmsprop", "", "lr=.01 alpha=.99 eps=1e-8 momentum=0 weight_decay=0"},
        {"muon", "",
         "lr=.02 momentum=.95 nesterov=true weight_decay=0 ns_steps=5 "
         "adjust_lr=original adamw_lr=3e-4 betas=[.9,.95] eps=1e-10"},
    };
    int n;
    et_optimizer_list(&n);
    is_int(n, sizeof rows / sizeof *rows, "all optimizers have defaults here");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        float got[2][RIG_MOST] = {{0}}, want[2][RIG_MOST] = {{0}};
        go_down(rows[i].name, rows[i].given, got);
        go_down(rows[i].name, rows[i].text, want);
        ok(memcmp(got, want, sizeof got) == 0, "%s is by itself as with %s",
           rows[i].name, rows[i].text);
    }
}

int
main(void)
{
    if (et_ctx_new(&cx) != ET_OK || et_device_open(cx, "ref", 0, 0, &dev) != ET_OK)
        bail("no reference device");
    specs[0] = rig_spec("matrix", ET_ROLE_MATRIX, 2, (const int64_t[]){6, 4});
    specs[1] = rig_spec("bias", ET_ROLE_OTHER, 1, (const int64_t[]){5});
    defaults();
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
