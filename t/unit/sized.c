/* SPDX-License-Identifier: Apache-2.0 */
/* Structs that callers with older and newer headers pass with their size. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/sized.h"
#include "core/models/stack.h"
#include "etude/nn.h"
#include "etude/sched.h"
#include "etude/trainer.h"
#include "t/tap.h"

static void
check_sizes(struct et_ctx *cx)
{
    int from[3] = {1, 2, 0}, to[2] = {9, 9};
    is_int(eti_sized(cx, "ints", from, sizeof from[0], to, sizeof to), ET_OK,
           "a shorter struct is read");
    ok(to[0] == 1 && to[1] == 0, "as if the rest were 0");
    is_int(eti_sized(cx, "ints", from, sizeof from, to, sizeof to), ET_OK,
           "a longer one is read where what is more is 0");
    ok(to[0] == 1 && to[1] == 2, "and all of it that is known");
    is_int(eti_sized(cx, "ints", NULL, sizeof from, to, sizeof to), ET_OK,
           "without a struct");
    ok(to[0] == 0 && to[1] == 0, "all is 0");
    from[2] = 1 << 24;
    is_int(eti_sized(cx, "ints", from, sizeof from, to, sizeof to), ET_EINVAL,
           "a longer one that says more is refused");
    ok(strstr(et_error_get(cx)->message, "ints is 12 bytes in the program and 8 here"),
       "by its name: %s", et_error_get(cx)->message);
    et_error_clear(cx);
}

static void
check_modules(struct et_ctx *cx)
{
    /* As if no_bias had been added since. */
    struct et_linear_options o = {.in_features = 3, .out_features = 2, .no_bias = true};
    struct et_module *m = NULL;
    is_int(et_module_new_sized(cx, &et_linear_class, &o,
                               offsetof(struct et_linear_options, no_bias), &m),
           ET_OK, "a layer is made of an older caller's options");
    struct et_linear_module *linear = (struct et_linear_module *)m;
    ok(m && linear->o.out_features == 2 && !linear->o.no_bias,
       "and what they do not have is the default");
    et_module_free(&m);
    struct {
        struct et_linear_options o;
        int64_t more;
    } newer = {o, 1};
    is_int(et_module_new_sized(cx, &et_linear_class, &newer, sizeof newer, &m),
           ET_EINVAL, "a newer caller's that say more are refused");
    ok(!m && strstr(et_error_get(cx)->message, "linear is "), "by the layer's name");
    et_error_clear(cx);
    struct {
        struct et_trainer_config config;
        int64_t more;
    } config = {.more = 1};
    struct et_trainer *t = NULL;
    is_int(et_trainer_new_sized(cx, sizeof config, &config.config, &t), ET_EINVAL,
           "so is a trainer's config");
    ok(strstr(et_error_get(cx)->message, "struct et_trainer_config is "),
       "by its name");
    et_error_clear(cx);
}

/* The first N bytes of CLASS, whose info says so, at the end of memory: what is read
 * behind them ends the test. */
static void *
cut(const void *class, size_t n)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                    -1, 0);
    if (at == MAP_FAILED || mprotect(at + page, page, PROT_NONE) != 0)
        bail("no memory");
    struct et_component *info = memcpy(at + page - n, class, n);
    info->class_size = n;
    return info;
}

/* Each as if its last field had been added since. */
static void
check_classes(struct et_ctx *cx)
{
    const struct et_time end = {2, ET_TIME_EPOCH};
    const struct et_run_length length = {.max_duration = end, .dataloader_len = 4};
    const struct et_scheduler_class *linear = et_scheduler_find("linear");
    void *options;
    ok(ETI_HOOK(&et_linear_class, adapt) && ETI_HAS(linear, check),
       "a class that says no size has all fields");
    if (et_options_new(cx, &linear->info, NULL, &options) != ET_OK)
        bail("no options");
    const struct et_scheduler schedule = {
        cut(linear, offsetof(struct et_scheduler_class, check)), options};
    is_int(et_schedule_check(cx, &schedule, 1, &length), ET_OK,
           "an older schedule's class is used as far as it goes");
    et_options_free(&linear->info, &options);

    struct et_linear_options o = {.out_features = 2};
    struct eti_stack s = {.cx = cx, .shape = {3}};
    if (et_module_new(cx, &et_sequential_class, NULL, &s.row) != ET_OK)
        bail("no module");
    is_int(eti_stack_add(&s, NULL,
                         cut(&et_linear_class, offsetof(struct et_module_class, adapt)),
                         &o),
           ET_EINVAL, "an older layer does not adapt");
    ok(strstr(et_error_get(cx)->message, "in_features"), "so it lacks its input: %s",
       et_error_get(cx)->message);
    et_error_clear(cx);
    et_module_free(&s.row);
}

int
main(void)
{
    struct et_ctx *cx;
    if (et_ctx_new(&cx) != ET_OK)
        bail("no context");
    check_sizes(cx);
    check_modules(cx);
    check_classes(cx);
    et_ctx_free(&cx);
    return done();
}
