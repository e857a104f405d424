/* SPDX-License-Identifier: Apache-2.0 */
/* Rules that tell parameters apart (LAMB's norms, Muon's matrices): a parameter is
 * updated beside others, in runs cut by parameters without a gradient, as it is alone.
 * On the reference, the CPU or ETUDE_DEVICE, and the simulated GPU. */
#include "etude/etude.h"
#include "t/device.h"
#include "t/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A batched product may sum in another order than a single one: five iterations triple
 * a difference of singular values at most, each rounds sums of 90 terms, and a step
 * moves elements by about lr, 2e-2. */
static const double BATCHED = 2e-2 * 90 * 1.2e-7 * 5;

enum { UPDATES = 5 };

static struct et_ctx *cx;
static struct et_device *dev;

static void
must(et_status status)
{
    if (status != ET_OK)
        bail("%s: %s", et_status_name(status), et_error_get(cx)->message);
}

/* Rows of flat memory have 64 elements: parameters shorter, as long, longer; matrices
 * tall, wide and of one shape, beside each other and apart. */
static const struct parameter {
    const char *name;
    enum et_param_role role;
    int64_t shape[2]; /* 0: a vector */
    int every;        /* updates at which it has a gradient: 1: all, 2: the odd ones */
} parameters[] = {
    {"short", ET_ROLE_OTHER, {5, 0}, 1},
    {"tall", ET_ROLE_MATRIX, {90, 70}, 1},
    {"row", ET_ROLE_OTHER, {64, 0}, 2},
    {"wide", ET_ROLE_MATRIX, {30, 81}, 1},
    {"wide too", ET_ROLE_MATRIX_IN_OUT, {30, 81}, 1},
    {"one", ET_ROLE_OTHER, {1, 0}, 1},
    {"embedding", ET_ROLE_OTHER, {50, 7}, 1},
    {"late", ET_ROLE_MATRIX, {8, 8}, 2},
    {"wide again", ET_ROLE_MATRIX, {30, 81}, 1},
    {"more than a row", ET_ROLE_OTHER, {65, 0}, 1},
};
enum { N = sizeof parameters / sizeof *parameters, MOST = 90 * 70, ARRAYS = 3 };

/* Values, and both moments, of a parameter. */
struct state {
    float v[ARRAYS][MOST];
};
static struct state together[N], alone[N];

static void
random_values(uint64_t stream, int64_t n, float *out)
{
    struct et_rng rng = et_rng_at(7, ET_RNG_INIT, stream << 32);
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)et_rng_normal(&rng);
}

static struct et_param_spec
spec_of(int i)
{
    const struct parameter *p = &parameters[i];
    struct et_param_spec s = {.name = p->name, .role = p->role};
    et_desc_init(&s.desc, ET_F32, p->shape[1] ? 2 : 1, p->shape, ET_ROW_MAJOR);
    return s;
}

/* An optimizer of parameters FIRST .. FIRST + N - 1. */
struct rig {
    const struct et_optimizer_class *class;
    void *options;
    struct et_param_space *space;
    struct et_optimizer *opt;
    struct et_graph *g;
    int first;
};

static void
begin(struct rig *r, const char *name, int first, int n)
{
    struct et_param_spec specs[N];
    float values[MOST];
    for (int i = 0; i < n; i++)
        specs[i] = spec_of(first + i);
    r->first = first;
    r->class = et_optimizer_find(name);
    must(et_alloc(cx, r->class->info.options_size, &r->options));
    must(et_options_init(cx, r->class->info.options, r->options));
    must(et_options_set(cx, r->class->info.options, r->options, "lr", "0.02"));
    must(et_options_set(cx, r->class->info.options, r->options, "weight_decay", "0.1"));
    must(et_param_space_new(cx, dev, specs, n, &r->space));
    must(et_optimizer_new(cx, r->class, r->options, r->space, &r->opt));
    must(et_graph_new(cx, dev, &r->g));
    for (int i = 0; i < n; i++) {
        struct et_tensor *t;
        random_values((uint64_t)(first + i), r->space->slot[i].count, values);
        must(et_param_space_view(cx, r->space, -1, i, &t));
        must(et_tensor_write(cx, t, values, et_desc_bytes(&t->desc)));
        et_tensor_free(&t);
    }
}

/* Update K, from 1; parameters without a gradient in it are left out. */
static et_status
step(struct rig *r, int k)
{
    struct et_tensor *leaf[N] = {NULL};
    float grad[MOST];
    et_status status = ET_OK;
    for (int i = 0; i < r->space->n && status == ET_OK; i++) {
        const struct et_desc *d = &r->space->slot[i].desc;
        if ((k - 1) % parameters[r->first + i].every != 0)
            continue;
        random_values((uint64_t)(100 * k + r->first + i), r->space->slot[i].count,
                      grad);
        status = et_tensor_new(cx, dev, ET_F32, d->ndim, d->shape, ET_ROW_MAJOR, "g",
                               &leaf[i]);
        if (status == ET_OK)
            status = et_tensor_write(cx, leaf[i], grad, et_desc_bytes(d));
    }
    struct et_tensor *flat =
        status == ET_OK ? et_param_space_pack(r->g, r->space, leaf) : NULL;
    if (status == ET_OK)
        status = et_optimizer_update(r->g, r->opt, flat, NULL, NULL);
    if (status == ET_OK)
        status = et_eval(r->g, NULL, 0);
    if (status == ET_OK)
        et_optimizer_done(r->opt, false);
    et_graph_reset(r->g);
    for (int i = 0; i < r->space->n; i++)
        et_tensor_free(&leaf[i]);
    return status;
}

static void
read_all(const struct rig *r, struct state *to)
{
    for (int i = 0; i < r->space->n; i++)
        for (int array = 0; array < ARRAYS; array++) {
            struct et_tensor *t;
            must(et_param_space_view(cx, r->space, array - 1, i, &t));
            must(et_tensor_read(cx, t, to[i].v[array], et_desc_bytes(&t->desc)));
            et_tensor_free(&t);
        }
}

static void
end(struct rig *r)
{
    et_graph_free(&r->g);
    et_optimizer_free(&r->opt);
    et_param_space_free(&r->space);
    et_options_release(r->class->info.options, r->options);
    et_free(cx, r->options);
}

/* UPDATES of all parameters together, and of each alone. */
static void
update_both_ways(const char *name)
{
    struct rig r;
    begin(&r, name, 0, N);
    for (int k = 1; k <= UPDATES; k++)
        must(step(&r, k));
    read_all(&r, together);
    bool zero = true;
    float *flat = malloc((size_t)r.space->total * sizeof *flat);
    must(et_tensor_read(cx, r.space->values, flat,
                        (size_t)r.space->total * sizeof *flat));
    for (int i = 0; i < N; i++) {
        const struct et_param_slot *s = &r.space->slot[i];
        int64_t next = i + 1 < N ? s[1].offset : r.space->total;
        for (int64_t at = s->offset + s->count; at < next; at++)
            zero &= flat[at] == 0;
    }
    free(flat);
    ok(zero, "%s: the gaps between parameters stay zero", name);
    end(&r);
    for (int i = 0; i < N; i++) {
        begin(&r, name, i, 1);
        for (int k = 1; k <= UPDATES; k++)
            must(step(&r, k));
        read_all(&r, &alone[i]);
        end(&r);
    }
}

static void
apart(const char *name, bool batches)
{
    update_both_ways(name);
    for (int i = 0; i < N; i++) {
        const struct parameter *p = &parameters[i];
        struct et_param_spec s = spec_of(i);
        int64_t n = et_desc_count(&s.desc);
        bool same = true;
        for (int array = 0; array < ARRAYS; array++)
            same &= memcmp(together[i].v[array], alone[i].v[array],
                           (size_t)n * sizeof(float)) == 0;
        if (batches && p->role != ET_ROLE_OTHER)
            is_near_array(together[i].v[0], alone[i].v[0], n, BATCHED,
                          "%s: '%s' is iterated beside others as it is alone", name,
                          p->name);
        else
            ok(same, "%s: '%s' has the same bits beside others and alone", name,
               p->name);
    }
}

/* The tables are made at the first update, which is where memory may be short. */
static void
short_of_memory(const char *name)
{
    struct rig r;
    struct et_alloc_stats before, after;
    int refused = 0;
    bool same = true;
    et_status status = ET_ENOMEM;
    begin(&r, name, 0, N);
    must(step(&r, 1));
    read_all(&r, together);
    end(&r);
    et_alloc_get_stats(cx, &before);
    for (uint64_t k = 1; status == ET_ENOMEM; k++) {
        begin(&r, name, 0, N);
        et_alloc_fail_at(cx, k);
        status = step(&r, 1);
        et_alloc_fail_at(cx, 0);
        et_error_clear(cx);
        if (status == ET_ENOMEM) {
            refused++;
            must(step(&r, 1));
        }
        read_all(&r, alone);
        same &= memcmp(together, alone, sizeof together) == 0;
        end(&r);
    }
    et_alloc_get_stats(cx, &after);
    ok(status == ET_OK && refused > 10 && same,
       "%s: an update that runs out of memory is made again, with the same bits", name);
    is_int((int64_t)after.live, (int64_t)before.live, "%s: and leaves nothing behind",
           name);
}

/* Runs that parameters of N elements each are updated in. */
static int
runs_of(int64_t n)
{
    struct et_param_spec specs[4];
    struct rig r = {.class = et_optimizer_find("lamb")};
    int64_t begin, end_;
    int runs = 0;
    for (int i = 0; i < 4; i++) {
        specs[i] = (struct et_param_spec){.name = parameters[i].name};
        et_desc_init(&specs[i].desc, ET_F32, 1, &n, ET_ROW_MAJOR);
    }
    must(et_alloc(cx, r.class->info.options_size, &r.options));
    must(et_options_init(cx, r.class->info.options, r.options));
    must(et_param_space_new(cx, dev, specs, 4, &r.space));
    must(et_optimizer_new(cx, r.class, r.options, r.space, &r.opt));
    must(et_graph_new(cx, dev, &r.g));
    struct et_tensor *grad = et_fill(r.g, ET_F32, 1, &r.space->total, 1);
    must(et_optimizer_update(r.g, r.opt, grad, (const bool[]){1, 1, 1, 1}, NULL));
    while (et_optimizer_pending(r.opt, runs, &begin, &end_))
        runs++;
    end(&r);
    return runs;
}

/* The host runs its own kernels, through its caches. */
static void
cut(void)
{
    struct et_device_info info;
    et_device_get_info(dev, &info);
    is_int(runs_of(1000), 1, "small parameters are updated as one run");
    is_int(runs_of(100000), info.host_memory ? 2 : 1, "those of more than 1 MiB are %s",
           info.host_memory ? "cut for the caches" : "one run as well");
    is_int(runs_of(300000), info.host_memory ? 4 : 1, "and larger ones %s",
           info.host_memory ? "are alone" : "too");
}

int
main(void)
{
    const char *const devices[] = {"ref", test_device("cpu"), "gpusim"};
    must(et_ctx_new(&cx));
    for (int d = 0; d < 3; d++) {
        if (et_device_open(cx, devices[d], 0, 2, &dev) != ET_OK) {
            skip(1, et_error_get(cx)->message);
            et_error_clear(cx);
            continue;
        }
        diag("on %s", devices[d]);
        apart("lamb", false);
        apart("muon", true);
        cut();
        if (d == 0) {
            short_of_memory("lamb");
            short_of_memory("muon");
        }
        et_device_close(&dev);
    }
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left allocated");
    et_ctx_free(&cx);
    return done();
}
