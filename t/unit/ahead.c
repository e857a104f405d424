/* SPDX-License-Identifier: Apache-2.0 */
/* Updates that the host does not wait for: which of them were skipped it learns up to
 * four later, and of which a part of the model may be left out. For every rule values,
 * moments and counts come out as where the host knows at once, bit for bit. */
#include "etude/etude.h"
#include "t/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 3, EACH = 70, UPDATES = 16, MOST_AHEAD = 4, SEEDS = 2 };

static struct et_ctx *cx;
static struct et_device *dev;

static void
must(et_status status)
{
    if (status != ET_OK)
        bail("%s: %s", et_status_name(status), et_error_get(cx)->message);
}

/* What happens, the same for every number of updates that the host is ahead. */
struct history {
    bool skipped[UPDATES], closed[UPDATES];  /* closed: the gate of the second one */
    float start[N * EACH], grad[UPDATES][N]; /* none for the last parameter */
};

static void
draw(struct history *h, uint64_t seed)
{
    struct et_rng r = et_rng_at((uint32_t)seed, ET_RNG_INIT, 0);
    for (int i = 0; i < N * EACH; i++)
        h->start[i] = (float)et_rng_normal(&r);
    for (int k = 0; k < UPDATES; k++) {
        h->skipped[k] = et_rng_below(&r, 3) == 0;
        h->closed[k] = et_rng_below(&r, 3) == 0;
        for (int i = 0; i < N; i++) {
            h->grad[k][i] = (float)et_rng_normal(&r);
        }
    }
}

/* What is left of it: values and moments, and how often each was updated. */
struct outcome {
    float array[1 + ET_MAX_MOMENTS][N * 128];
    int64_t updates[N];
    int n_moments;
};

static void
update(struct et_graph *g, struct et_optimizer *opt, struct et_gate *gate,
       const struct history *h, int k)
{
    const float closed = h->closed[k];
    gate->is_closed = h->closed[k];
    must(et_tensor_write(cx, gate->closed, &closed, sizeof closed));
    struct et_param_space *s = et_optimizer_space(opt);
    struct et_tensor *grads[N] = {NULL};
    for (int i = 0; i < N - 1; i++) {
        struct et_tensor *row = et_iota(g, ET_F32, EACH);
        row = et_mul_scalar(g, et_add_scalar(g, row, 1), h->grad[k][i] / EACH);
        grads[i] = et_reshape(g, row, s->slot[i].desc.ndim, s->slot[i].desc.shape);
    }
    struct et_tensor *flat = et_param_space_pack(g, s, grads);
    struct et_tensor *skip = et_fill(g, ET_F32, 0, NULL, h->skipped[k]);
    must(et_optimizer_update(g, opt, flat, NULL, skip));
    must(et_eval(g, NULL, 0));
    et_graph_reset(g);
}

static void
live(const struct et_optimizer_class *type, const void *options,
     const struct history *h, int ahead, struct outcome *out)
{
    static const int64_t shape[] = {7, 10};
    static const char *const names[N] = {"a", "b", "c"};
    struct et_param_spec specs[N] = {{0}};
    struct et_param_space *s;
    struct et_optimizer *opt;
    struct et_graph *g;
    struct et_gate gate = {.at = 0};
    const int64_t one = 1;
    int settled = 0;
    must(et_tensor_new(cx, dev, ET_F32, 1, &one, ET_ROW_MAJOR, "closed", &gate.closed));
    for (int i = 0; i < N; i++) {
        specs[i].name = names[i];
        specs[i].group = i > 0;
        specs[i].gate = i == 1 ? &gate : NULL;
        specs[i].role = i == 1 ? ET_ROLE_MATRIX : ET_ROLE_OTHER;
        et_desc_init(&specs[i].desc, ET_F32, 2, shape, ET_ROW_MAJOR);
    }
    must(et_param_space_new(cx, dev, specs, N, &s));
    must(et_optimizer_new(cx, type, options, s, &opt));
    must(et_graph_new(cx, dev, &g));
    for (int i = 0; i < N; i++) {
        struct et_tensor *t;
        must(et_param_space_view(cx, s, -1, i, &t));
        must(et_tensor_write(cx, t, h->start + i * EACH, EACH * sizeof(float)));
        et_tensor_free(&t);
    }
    must(et_optimizer_run_ahead(opt, 1)); /* and is told another number */
    must(et_optimizer_run_ahead(opt, ahead));
    for (int k = 0; k < UPDATES; k++) {
        for (; ahead > 0 && settled < k - ahead; settled++)
            et_optimizer_settle(opt, h->skipped[settled]);
        update(g, opt, &gate, h, k);
        et_optimizer_done(opt, ahead == 0 && h->skipped[k]);
    }
    for (; ahead > 0 && settled < UPDATES; settled++)
        et_optimizer_settle(opt, h->skipped[settled]);
    memset(out, 0, sizeof *out);
    out->n_moments = s->n_moments;
    for (int a = 0; a <= s->n_moments; a++) {
        const struct et_tensor *flat = a == 0 ? s->values : s->moment[a - 1];
        must(et_tensor_read(cx, flat, out->array[a], et_desc_bytes(&flat->desc)));
    }
    for (int i = 0; i < N; i++)
        out->updates[i] = s->slot[i].updates;
    et_graph_free(&g);
    et_tensor_free(&gate.closed);
    et_optimizer_free(&opt);
    et_param_space_free(&s);
}

static void
check(const struct et_optimizer_class *type, uint64_t seed)
{
    static struct outcome known, late;
    static struct history h;
    void *options;
    int64_t most = 0;
    must(et_alloc(cx, type->info.options_size, &options));
    must(et_options_init(cx, type->info.options, options));
    draw(&h, seed);
    live(type, options, &h, 0, &known);
    for (int i = 0; i < N; i++)
        most = known.updates[i] > most ? known.updates[i] : most;
    for (int ahead = 1; ahead <= MOST_AHEAD; ahead++) {
        live(type, options, &h, ahead, &late);
        ok(memcmp(&known, &late, sizeof late) == 0 && most > 4 && most < UPDATES &&
               known.updates[1] > 0 && known.updates[1] < most,
           "%s, seed %d: what is known %d updates later comes to the same",
           type->info.name, (int)seed, ahead);
    }
    et_options_release(type->info.options, options);
    et_free(cx, options);
}

static void
ignore(void *data, enum et_log_level level, const char *text)
{
    (void)data, (void)level, (void)text;
}

int
main(void)
{
    int n;
    if (et_ctx_new(&cx) != ET_OK || et_device_open(cx, "ref", 0, 1, &dev) != ET_OK)
        bail("no reference device");
    et_ctx_set_log(cx, ET_LOG_WARN, ignore, NULL); /* of decay that is not scaled */
    const struct et_optimizer_class *const *all = et_optimizer_list(&n);
    for (int i = 0; i < n; i++)
        for (uint64_t seed = 1; seed <= SEEDS; seed++)
            check(all[i], seed);
    et_device_close(&dev);
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left allocated");
    et_ctx_free(&cx);
    return done();
}
