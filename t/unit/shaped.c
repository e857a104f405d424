/* SPDX-License-Identifier: Apache-2.0 */
/* Rules by tensor, on the reference device and on the CPU: they see each parameter with
 * its shape, and keep states of other shapes, which are skipped, carried over and
 * refused as moments are. */
#include "core/optim/optim.h"
#include "t/tap.h"
#include "t/unit/rig.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Sums of up to 18 products of numbers below 1, a few times over, in f32. */
static const double ROUNDED = 64 * 1.2e-7;

static struct et_ctx *cx;
static struct et_device *dev;

static void
must(et_status status)
{
    if (status != ET_OK)
        bail("%s: %s", et_status_name(status), et_error_get(cx)->message);
}

enum { PARAMS = 4 };

static const struct et_param_spec *
specs(void)
{
    static struct et_param_spec s[PARAMS];
    s[0] = rig_spec("tall", ET_ROLE_MATRIX, 2, (const int64_t[]){6, 4});
    s[1] = rig_spec("filter", ET_ROLE_MATRIX, 4, (const int64_t[]){3, 2, 3, 3});
    s[2] = rig_spec("bias", ET_ROLE_OTHER, 1, (const int64_t[]){5});
    s[3] = rig_spec("thin", ET_ROLE_MATRIX, 4, (const int64_t[]){2, 1, 3, 2});
    return s;
}

static void
gradients(int step, float (*grad)[RIG_MOST])
{
    for (int i = 0; i < PARAMS; i++)
        rig_values((uint32_t)(100 * step + i), RIG_MOST, grad[i]);
}

/* ---- a rule that does not care for shapes does the same by tensor ---- */

static void
same_as_flat(const char *name, const char *text)
{
    struct et_optimizer_class shaped = *et_optimizer_find(name);
    float grad[PARAMS][RIG_MOST], a[RIG_MOST], b[RIG_MOST];
    struct rig flat, own;
    int unlike = 0;
    shaped.by_tensor = true;
    rig_begin(&flat, cx, dev, name, text, specs(), PARAMS);
    rig_begin_class(&own, cx, dev, &shaped, text, specs(), PARAMS);
    for (int k = 1; k <= 3; k++) {
        gradients(k, grad);
        rig_step(&flat, grad);
        rig_step(&own, grad);
    }
    for (int i = 0; i < PARAMS; i++) {
        rig_get(&flat, i, a);
        rig_get(&own, i, b);
        unlike += memcmp(a, b, (size_t)flat.space->slot[i].count * sizeof *a) != 0;
    }
    is_int(unlike, 0, "%s by tensor gives the bits of the flat one", name);
    struct et_graph_stats stats;
    et_graph_get_stats(own.g, &stats);
    is_int((int64_t)stats.plans_built, 1, "and replays one plan");
    rig_end(&flat);
    rig_end(&own);
}

/* ---- a rule that does ---- */

/* gram += G G', [n, n] of a parameter seen as a matrix [n, m]; rows += mean of G^2 of
 * each row, [n]; p -= lr (gram + diag(rows)) G. A vector steps by its gradient. */
enum { GRAM, ROWS };
static const char *const state_names[] = {"gram", "rows", NULL};

static int
state_shape(const void *options, const struct et_param_slot *slot, int k,
            int64_t *shape)
{
    (void)options;
    if (slot->desc.ndim < 2)
        return -1;
    shape[0] = shape[1] = slot->desc.shape[0];
    return k == GRAM ? 2 : 1;
}

static void
hyper(const void *options, const struct et_optimizer_group *group, int64_t n,
      double *out)
{
    (void)options;
    (void)n;
    out[0] = group->lr;
}

static void
update(struct et_graph *g, struct et_update *u)
{
    const struct et_desc *d = &u->slot->desc;
    struct et_tensor *step = u->grad;
    if (d->ndim > 1) {
        struct et_tensor *m =
            et_reshape(g, u->grad, 2, (const int64_t[]){d->shape[0], -1});
        u->new_state[GRAM] = et_add(g, u->state[GRAM], et_matmul(g, m, m, false, true));
        u->new_state[ROWS] =
            et_add(g, u->state[ROWS], et_mean(g, et_square(g, m), 1u << 1, false));
        step = et_add(g, et_matmul(g, u->new_state[GRAM], m, false, false),
                      et_mul(g, m,
                             et_reshape(g, u->new_state[ROWS], 2,
                                        (const int64_t[]){d->shape[0], 1})));
        step = et_reshape(g, step, d->ndim, d->shape);
    }
    u->new_p = et_sub(g, u->p, et_mul(g, step, u->hyper[0]));
}

static const char *const no_moments[] = {NULL};

/* With the options of sgd. */
static struct et_optimizer_class
gram_class(void)
{
    struct et_optimizer_class c = *et_optimizer_find("sgd");
    c.info.name = "gram";
    c.check = NULL;
    c.moments = no_moments;
    c.n_moments = NULL;
    c.hyper = hyper;
    c.update = update;
    c.by_tensor = true;
    c.states = state_names;
    c.state_shape = state_shape;
    return c;
}

/* The update on the host: P, GRAM [n, n], ROWS [n] of a matrix [n, m]. */
static void
by_hand(double *p, double *gram, double *rows, const float *grad, int n, int m)
{
    for (int i = 0; i < n; i++)
        for (int c = 0; c < m; c++) {
            rows[i] += (double)grad[i * m + c] * grad[i * m + c] / m;
            for (int j = 0; j < n; j++)
                gram[i * n + j] += (double)grad[i * m + c] * grad[j * m + c];
        }
    for (int i = 0; i < n; i++)
        for (int c = 0; c < m; c++) {
            double step = rows[i] * grad[i * m + c];
            for (int j = 0; j < n; j++)
                step += gram[i * n + j] * grad[j * m + c];
            p[i * m + c] -= 0.25 * step;
        }
}

static void
read_state(const struct rig *r, int k, int i, float *out)
{
    const struct et_tensor *t = r->space->state[k][i];
    must(et_tensor_read(cx, t, out, et_desc_bytes(&t->desc)));
}

static void
shapes(void)
{
    const struct et_optimizer_class class = gram_class();
    float grad[PARAMS][RIG_MOST], got[RIG_MOST];
    double p[RIG_MOST], gram[9] = {0}, rows[3] = {0}, off = 0, off_state = 0;
    struct rig r;
    rig_begin_class(&r, cx, dev, &class, "lr=0.25", specs(), PARAMS);
    rig_get(&r, 1, got);
    for (int c = 0; c < 54; c++)
        p[c] = got[c];
    for (int k = 1; k <= 3; k++) {
        gradients(k, grad);
        rig_step(&r, grad);
        by_hand(p, gram, rows, grad[1], 3, 18);
    }
    rig_get(&r, 1, got);
    for (int c = 0; c < 54; c++)
        off = fmax(off, fabs(got[c] - p[c]) / fmax(1, fabs(p[c])));
    ok(off < ROUNDED, "a filter that lies channels-last is seen by its axes (%g)", off);
    read_state(&r, GRAM, 1, got);
    for (int c = 0; c < 9; c++)
        off_state = fmax(off_state, fabs(got[c] - gram[c]) / fmax(1, fabs(gram[c])));
    read_state(&r, ROWS, 1, got);
    for (int c = 0; c < 3; c++)
        off_state = fmax(off_state, fabs(got[c] - rows[c]) / fmax(1, rows[c]));
    ok(off_state < ROUNDED, "and its states are added up over the steps (%g)",
       off_state);
    ok(r.space->n_states == 2 && !r.space->state[GRAM][2] && !r.space->state[ROWS][2],
       "a vector has none");
    is_int(r.space->state[GRAM][0]->desc.shape[1], 6, "each has its own shape");
    rig_end(&r);
}

/* Whether parameter 0 and its states are those of A. */
struct kept {
    float p[RIG_MOST], gram[36], rows[6];
};

static struct kept
keep(const struct rig *r, int i)
{
    struct kept k;
    memset(&k, 0, sizeof k);
    rig_get(r, i, k.p);
    read_state(r, GRAM, i, k.gram);
    read_state(r, ROWS, i, k.rows);
    return k;
}

static void
skipping(void)
{
    const struct et_optimizer_class class = gram_class();
    const bool without[PARAMS] = {false, true, true, true};
    static const int64_t one[] = {1};
    float grad[PARAMS][RIG_MOST];
    struct rig r;
    rig_begin_class(&r, cx, dev, &class, "lr=0.25", specs(), PARAMS);
    gradients(1, grad);
    rig_step(&r, grad);
    struct kept before = keep(&r, 0), after;
    const int64_t total = r.space->total;
    must(et_optimizer_update(r.g, r.opt, et_fill(r.g, ET_F32, 1, &total, .5), NULL,
                             et_fill(r.g, ET_F32, 1, one, 1)));
    must(et_eval(r.g, NULL, 0));
    et_optimizer_done(r.opt, true);
    et_graph_reset(r.g);
    after = keep(&r, 0);
    ok(memcmp(&before, &after, sizeof after) == 0,
       "an update that is skipped leaves parameters and states");
    must(et_optimizer_update(r.g, r.opt, et_fill(r.g, ET_F32, 1, &total, .5), without,
                             NULL));
    must(et_eval(r.g, NULL, 0));
    et_optimizer_done(r.opt, false);
    et_graph_reset(r.g);
    after = keep(&r, 0);
    ok(memcmp(&before, &after, sizeof after) == 0,
       "a parameter without gradient keeps value and states");
    ok(r.space->slot[0].updates == 1 && r.space->slot[1].updates == 2,
       "and its count of updates");
    rig_end(&r);
}

static void
surgery(void)
{
    const struct et_optimizer_class class = gram_class();
    const struct et_param_spec next[] = {
        specs()[2], specs()[0],
        rig_spec("filter", ET_ROLE_MATRIX, 4, (const int64_t[]){2, 2, 3, 3})};
    float grad[PARAMS][RIG_MOST], got[RIG_MOST];
    struct et_param_space *old;
    struct rig r;
    rig_begin_class(&r, cx, dev, &class, "lr=0.25", specs(), PARAMS);
    gradients(1, grad);
    rig_step(&r, grad);
    struct kept before = keep(&r, 0), after;
    old = r.space;
    must(et_param_space_new(cx, dev, next, 3, &r.space));
    must(et_optimizer_move(cx, r.opt, r.space));
    et_param_space_free(&old);
    after = keep(&r, 1);
    ok(memcmp(&before, &after, sizeof after) == 0,
       "surgery carries states over by the parameter's name");
    read_state(&r, GRAM, 2, got);
    ok(r.space->state[GRAM][2]->desc.shape[0] == 2 && got[0] == 0 && got[3] == 0,
       "those of one that has another shape begin anew");
    gradients(2, grad);
    rig_step(&r, grad);
    read_state(&r, GRAM, 1, got);
    ok(got[0] > before.gram[0], "and updates go on with them");
    rig_end(&r);
}

/* ---- refusals ---- */

static int
no_shape(const void *options, const struct et_param_slot *slot, int k, int64_t *shape)
{
    (void)options;
    (void)k;
    shape[0] = strcmp(slot->name, "bias") == 0 ? 0 : 1;
    return 1;
}

static int
many_axes(const void *options, const struct et_param_slot *slot, int k, int64_t *shape)
{
    (void)options;
    (void)slot;
    (void)k;
    (void)shape;
    return ET_MAX_DIMS + 1;
}

static void
refused(const struct et_optimizer_class *class, const char *part, const char *name)
{
    struct et_param_space *space;
    struct et_optimizer *opt;
    struct et_optimizer_options *options;
    void *block;
    must(et_alloc(cx, class->info.options_size, &block));
    options = block;
    options->lr = 1;
    must(et_param_space_new(cx, dev, specs(), PARAMS, &space));
    et_status status = et_optimizer_new(cx, class, options, space, &opt);
    if (!ok(status == ET_EINVAL && strstr(et_error_get(cx)->message, part), "%s", name))
        diag("%s: %s", et_status_name(status), et_error_get(cx)->message);
    et_error_clear(cx);
    et_param_space_free(&space);
    et_free(cx, block);
}

static void
refusals(void)
{
    static const char *const five[] = {"a", "b", "c", "d", "e", NULL};
    struct et_optimizer_class class = gram_class();
    class.state_shape = no_shape;
    refused(&class, "gram: state gram of bias has no shape",
            "a state without elements is refused, with the parameter's name");
    class.state_shape = many_axes;
    refused(&class, "gram: state gram of tall has no shape",
            "as is one of more axes than there are");
    class.state_shape = NULL;
    refused(&class, "with a state_shape", "states need their shapes");
    class.state_shape = state_shape;
    class.states = five;
    refused(&class, "at most 4", "there are at most four");
    class.states = state_names;
    class.by_tensor = false;
    refused(&class, "of a rule by tensor", "and flat rules have none");
}

/* ---- as many states as there may be, and which of them is forgotten ---- */

static const char *const four_names[] = {"a", "b", "c", "d", NULL};

/* State K is of K axes, from none on. */
static int
shape_of_four(const void *options, const struct et_param_slot *slot, int k,
              int64_t *shape)
{
    (void)options;
    (void)slot;
    for (int axis = 0; axis < k; axis++)
        shape[axis] = axis + 2;
    return k;
}

static int
    forgotten; /* a state, or -1 - a moment, or -3: the parameter, or 4: nothing */

/* What it is given, plus the number of each. */
static void
update_four(struct et_graph *g, struct et_update *u)
{
    for (int k = 0; k < 4; k++)
        if (k != forgotten)
            u->new_state[k] = et_add_scalar(g, u->state[k], k + 1);
    for (int k = 0; k < 2; k++)
        if (-1 - k != forgotten)
            u->new_moment[k] = et_add_scalar(g, u->moment[k], 10 * (k + 1));
    if (forgotten != -3)
        u->new_p = et_sub(g, u->p, u->grad);
}

static void
four_states(void)
{
    static const char *const two_moments[] = {"m", "v", NULL};
    static const struct {
        int forgotten;
        const char *want;
    } rows[] = {
        {0, "new_state of a"},   {1, "new_state of b"},   {3, "new_state of d"},
        {-1, "new_moment of m"}, {-2, "new_moment of v"}, {-3, "write new_p"},
    };
    struct et_optimizer_class class = gram_class();
    static const bool all[PARAMS] = {true, true, true, true};
    float grad[PARAMS][RIG_MOST], got[RIG_MOST];
    struct rig r;
    class.moments = two_moments;
    class.states = four_names;
    class.state_shape = shape_of_four;
    class.update = update_four;
    rig_begin_class(&r, cx, dev, &class, "lr=1", specs(), PARAMS);
    is_int(r.space->n_states, 4, "a rule has up to four states");
    forgotten = 4;
    gradients(1, grad);
    for (int step = 0; step < 2; step++)
        rig_step(&r, grad);
    for (int k = 0; k < 4; k++) {
        const struct et_desc *d = &r.space->state[k][1]->desc;
        bool right = d->ndim == k && strcmp(r.space->state_name[k], four_names[k]) == 0;
        read_state(&r, k, 1, got);
        for (int64_t i = 0; i < et_desc_count(d); i++)
            right = right && got[i] == (float)(2 * (k + 1));
        ok(right, "state %s has %d axes, and goes on from step to step", four_names[k],
           k);
    }
    for (int k = 0; k < 2; k++) {
        struct et_tensor *t;
        must(et_param_space_view(cx, r.space, k, 3, &t));
        must(et_tensor_read(cx, t, got, et_desc_bytes(&t->desc)));
        et_tensor_free(&t);
        ok(got[0] == (float)(20 * (k + 1)), "and so does moment %d", k);
    }
    rig_end(&r);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rig_begin_class(&r, cx, dev, &class, "lr=1", specs(), PARAMS);
        const int64_t total = r.space->total;
        forgotten = rows[i].forgotten;
        ok(et_optimizer_update(r.g, r.opt, et_fill(r.g, ET_F32, 1, &total, 1), all,
                               NULL) == ET_EINVAL &&
               strstr(et_error_get(cx)->message, rows[i].want),
           "an update that does not %s%s is refused",
           rows[i].want[0] == 'w' ? "" : "write ", rows[i].want);
        ok(et_graph_status(r.g) == ET_EINVAL, "by its graph");
        et_error_clear(cx);
        rig_end(&r);
    }
}

/* ---- states go on in a new space where they have the shape ---- */

static int
state_of_size(const void *options, const struct et_param_slot *slot, int k,
              int64_t shape[ET_MAX_DIMS])
{
    (void)slot;
    (void)k;
    shape[0] = *(const int64_t *)options;
    return 1;
}

/* The states of a space, SIZE numbers of V for each parameter. */
static struct et_param_space *
with_states(int64_t size, float v)
{
    static const char *const states[] = {"s", NULL};
    static const struct et_optimizer_class sized = {.info = {.name = "sized"},
                                                    .by_tensor = true,
                                                    .states = states,
                                                    .state_shape = state_of_size};
    const float values[] = {v, v, v, v};
    struct et_param_space *s;
    must(et_param_space_new(cx, dev, specs(), PARAMS, &s));
    must(eti_param_states_add(cx, s, &sized, &size));
    for (int i = 0; i < PARAMS; i++)
        must(et_tensor_write(cx, s->state[0][i], values, (size_t)size * sizeof v));
    return s;
}

static void
carried_states(void)
{
    for (int64_t size = 1; size <= 4; size++) {
        struct et_param_space *from = with_states(3, 7), *to = with_states(size, 1);
        bool right = true;
        for (int i = 0; i < PARAMS; i++) {
            float got[4];
            const float want = size == 3 ? 7 : 1;
            right = right && eti_param_states_carry(cx, to, i, from, i) == ET_OK;
            must(et_tensor_read(cx, to->state[0][i], got, (size_t)size * sizeof *got));
            for (int64_t k = 0; k < size; k++)
                right = right && got[k] == want;
        }
        ok(right, "a state of %d numbers %s one of 3", (int)size,
           size == 3 ? "goes on from" : "does not go on from");
        et_param_space_free(&from);
        et_param_space_free(&to);
    }
}

static void
on_device(const char *name)
{
    if (et_device_open(cx, name, 0, 1, &dev) != ET_OK) {
        skip(1, et_error_get(cx)->message);
        et_error_clear(cx);
        return;
    }
    diag("on device %s", name);
    same_as_flat("adamw", "lr=0.02 weight_decay=0.1");
    same_as_flat("sgd", "lr=0.1 momentum=0.9");
    shapes();
    four_states();
    skipping();
    surgery();
    refusals();
    carried_states();
    et_device_close(&dev);
}

int
main(void)
{
    must(et_ctx_new(&cx));
    on_device("ref");
    on_device("cpu");
    struct et_alloc_stats stats;
    et_alloc_get_stats(cx, &stats);
    is_int((int64_t)stats.live, 0, "nothing is left allocated");
    et_ctx_free(&cx);
    return done();
}
